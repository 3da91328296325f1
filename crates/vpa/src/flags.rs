//! The command line flags of the recommender and of the updater that bear on what they decide, under their own names.
//!
//! Source: Vertical Pod Autoscaler 1.7 `docs/flags.md`, `pkg/recommender/config`, `pkg/updater/config`.

use super::settings::{RecommenderSettings, UpdaterSettings};
use nodecast_model::domain::durations::duration;
use nodecast_model::domain::{Quantity, ResourceName, SimDuration, VerticalPodAutoscalerVersion};

/// Which program a flag is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum VerticalProgram {
    /// `vpa-recommender`.
    Recommender,
    /// `vpa-updater`.
    Updater,
}

/// Why a flag is not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{flag}`: {reason}")]
pub struct VerticalFlagError {
    /// Its name.
    pub flag: String,
    /// What is wrong.
    pub reason: String,
    /// Whether the program has no such flag, or none that is reproduced.
    pub is_unknown: bool,
}

/// Flags that change nothing here: how the programs log, talk to the API server and stay one.
pub const WITHOUT_EFFECT: &[&str] = &[
    "add-dir-header",
    "address",
    "alsologtostderr",
    "checkpoints-gc-interval",
    "checkpoints-timeout",
    "kube-api-burst",
    "kube-api-qps",
    "kubeconfig",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "log-backtrace-at",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "logtostderr",
    "min-checkpoints",
    "one-output",
    "profiling",
    "skip-headers",
    "skip-log-headers",
    "stderrthreshold",
    "update-worker-count",
    "use-admission-controller-status",
    "v",
    "vmodule",
];

/// Where a value goes.
enum Slot<'a> {
    /// A part, zero to one.
    Part(&'a mut f64),
    /// A number, zero or above.
    Number(&'a mut f64),
    Integer(&'a mut i64),
    Truth(&'a mut bool),
    /// A span above zero.
    Span(&'a mut SimDuration),
}

impl Slot<'_> {
    fn set(self, text: &str) -> Result<(), String> {
        let number = |most: f64| {
            let number = text.parse().ok().filter(|number: &f64| (0.0..=most).contains(number));
            number.ok_or_else(|| format!("`{text}` is not a number from 0 to {most}"))
        };
        match self {
            Self::Part(slot) => *slot = number(1.0)?,
            Self::Number(slot) => *slot = number(1e15)?,
            Self::Integer(slot) => *slot = number(1e15)? as i64,
            Self::Truth(slot) => *slot = truth(text)?,
            Self::Span(slot) => {
                *slot = duration(text)?;
                if *slot <= SimDuration::ZERO {
                    return Err(format!("`{text}` is not above zero"));
                }
            }
        }
        Ok(())
    }
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "True" | "TRUE" | "t" | "1" => Ok(true),
        "false" | "False" | "FALSE" | "f" | "0" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

fn wrong(flag: &str, is_unknown: bool, reason: impl Into<String>) -> VerticalFlagError {
    VerticalFlagError { flag: flag.to_owned(), reason: reason.into(), is_unknown }
}

fn unknown(flag: &str) -> VerticalFlagError {
    wrong(flag, true, "the program has no such flag, or none that is reproduced")
}

/// `settings` with flags over them, each but those without effect taken by `take`.
fn over<'f, S>(
    mut settings: S,
    flags: impl IntoIterator<Item = (&'f str, &'f str)>,
    take: impl Fn(&mut S, &str, &str) -> Result<(), VerticalFlagError>,
) -> Result<S, VerticalFlagError> {
    for (flag, value) in flags {
        if !WITHOUT_EFFECT.contains(&flag) {
            take(&mut settings, flag, value)?;
        }
    }
    Ok(settings)
}

impl RecommenderSettings {
    /// The defaults of a release, and over them flags; their names are written without dashes in front.
    ///
    /// # Errors
    /// The first flag that is not known, or whose value it does not take.
    pub fn with_flags<'f>(
        release: VerticalPodAutoscalerVersion,
        flags: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, VerticalFlagError> {
        over(Self::for_release(release), flags, Self::take)
    }

    fn take(&mut self, flag: &str, value: &str) -> Result<(), VerticalFlagError> {
        let maximum = match flag {
            "container-recommendation-max-allowed-cpu" => Some(ResourceName::CPU),
            "container-recommendation-max-allowed-memory" => Some(ResourceName::MEMORY),
            _ => None,
        };
        if let Some(name) = maximum {
            let quantity: Quantity =
                value.parse().map_err(|_| wrong(flag, false, format!("`{value}` is no quantity")))?;
            self.max_allowed.set(name, name.amount(quantity));
            return Ok(());
        }
        if flag == "feature-gates" {
            return gates(value, |gate, on| gate == "PerVPAConfig" && set(&mut self.per_vpa_config, on));
        }
        let slot = self.slot(flag).ok_or_else(|| unknown(flag))?;
        slot.set(value).map_err(|reason| wrong(flag, false, reason))
    }

    fn slot(&mut self, flag: &str) -> Option<Slot<'_>> {
        Some(match flag {
            "recommender-interval" => Slot::Span(&mut self.interval),
            "recommendation-margin-fraction" => Slot::Number(&mut self.margin),
            "target-cpu-percentile" => Slot::Part(&mut self.cpu.target),
            "recommendation-lower-bound-cpu-percentile" => Slot::Part(&mut self.cpu.lower),
            "recommendation-upper-bound-cpu-percentile" => Slot::Part(&mut self.cpu.upper),
            "target-memory-percentile" => Slot::Part(&mut self.memory.target),
            "recommendation-lower-bound-memory-percentile" => Slot::Part(&mut self.memory.lower),
            "recommendation-upper-bound-memory-percentile" => Slot::Part(&mut self.memory.upper),
            "confidence-interval-cpu" => Slot::Span(&mut self.cpu_confidence_interval),
            "confidence-interval-memory" => Slot::Span(&mut self.memory_confidence_interval),
            "cpu-histogram-decay-half-life" => Slot::Span(&mut self.cpu_half_life),
            "memory-histogram-decay-half-life" => Slot::Span(&mut self.memory_half_life),
            "memory-aggregation-interval" => Slot::Span(&mut self.memory_interval),
            "memory-aggregation-interval-count" => Slot::Integer(&mut self.memory_interval_count),
            "pod-recommendation-min-cpu-millicores" => Slot::Number(&mut self.pod_minimum_milli),
            "pod-recommendation-min-memory-mb" => Slot::Number(&mut self.pod_minimum_mebibytes),
            "oom-bump-up-ratio" => Slot::Number(&mut self.oom_bump_up_ratio),
            "oom-min-bump-up-bytes" => Slot::Number(&mut self.oom_min_bump_up_bytes),
            "round-cpu-millicores" => Slot::Integer(&mut self.round_milli),
            "round-memory-bytes" => Slot::Integer(&mut self.round_bytes),
            "cpu-integer-post-processor-enabled" => Slot::Truth(&mut self.whole_cores),
            _ => return None,
        })
    }
}

impl UpdaterSettings {
    /// The defaults of a release, and over them flags; their names are written without dashes in front.
    ///
    /// # Errors
    /// The first flag that is not known, or whose value it does not take.
    pub fn with_flags<'f>(
        release: VerticalPodAutoscalerVersion,
        flags: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, VerticalFlagError> {
        over(Self::for_release(release), flags, Self::take)
    }

    fn take(&mut self, flag: &str, value: &str) -> Result<(), VerticalFlagError> {
        if flag == "feature-gates" {
            return gates(value, |gate, on| match gate {
                "InPlaceOrRecreate" => {
                    self.in_place_or_recreate = Some(on);
                    true
                }
                "InPlace" => set(&mut self.in_place, on),
                "PerVPAConfig" => set(&mut self.per_vpa_config, on),
                _ => false,
            });
        }
        let slot = match flag {
            "updater-interval" => Slot::Span(&mut self.interval),
            "eviction-tolerance" => Slot::Part(&mut self.eviction_tolerance),
            "pod-update-threshold" => Slot::Number(&mut self.update_threshold),
            "in-recommendation-bounds-eviction-lifetime-threshold" => Slot::Span(&mut self.lifetime_threshold),
            "evict-after-oom-threshold" => Slot::Span(&mut self.quick_oom),
            "in-place-skip-disruption-budget" => Slot::Truth(&mut self.skip_disruption_budget),
            "min-replicas" => {
                self.min_replicas = value.parse().map_err(|_| wrong(flag, false, "not a whole number"))?;
                return Ok(());
            }
            _ => return Err(unknown(flag)),
        };
        slot.set(value).map_err(|reason| wrong(flag, false, reason))
    }
}

fn set(slot: &mut bool, on: bool) -> bool {
    *slot = on;
    true
}

/// `Gate=true,Other=false`; a program passes over the gates of the others.
fn gates(text: &str, mut take: impl FnMut(&str, bool) -> bool) -> Result<(), VerticalFlagError> {
    const OF_ANY: [&str; 5] = ["InPlaceOrRecreate", "InPlace", "PerVPAConfig", "AllAlpha", "AllBeta"];
    for gate in text.split(',').filter(|gate| !gate.is_empty()) {
        let wrong = |reason: String| wrong("feature-gates", false, reason);
        let (name, on) =
            gate.split_once('=').ok_or_else(|| wrong(format!("`{gate}` is not <gate>=<true or false>")))?;
        let on = truth(on).map_err(wrong)?;
        if !take(name, on) && !OF_ANY.contains(&name) {
            return Err(wrong(format!("the gate `{name}` is not reproduced")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{RecommenderSettings, UpdaterSettings};
    use nodecast_model::domain::{SimDuration, VerticalPodAutoscalerVersion};

    #[test]
    fn flags_stand_over_the_defaults_of_a_release() {
        let release = VerticalPodAutoscalerVersion::default();
        let flags = [
            ("target-cpu-percentile", "0.95"),
            ("cpu-histogram-decay-half-life", "48h0m0s"),
            ("pod-recommendation-min-memory-mb", "100"),
            ("container-recommendation-max-allowed-memory", "4Gi"),
            ("v", "4"),
            ("feature-gates", "PerVPAConfig=true"),
        ];
        let read = RecommenderSettings::with_flags(release, flags).unwrap();
        assert!((read.cpu.target - 0.95).abs() < 1e-12 && (read.memory.target - 0.9).abs() < 1e-12);
        assert_eq!(read.cpu_half_life, SimDuration::from_secs(48 * 3_600));
        assert!((read.pod_minimum_mebibytes - 100.0).abs() < 1e-12 && read.per_vpa_config);
        assert_eq!(read.max_allowed.memory_bytes(), 4 << 30);
        let flags = [("min-replicas", "1"), ("feature-gates", "InPlace=true"), ("eviction-tolerance", "0.1")];
        let read = UpdaterSettings::with_flags(release, flags).unwrap();
        assert_eq!((read.min_replicas, read.in_place, read.in_place_or_recreate), (1, true, None));
    }

    #[test]
    fn unsupported_vpa_flags_and_values_are_rejected() {
        let release = VerticalPodAutoscalerVersion::default();
        let recommender = |flag, value| RecommenderSettings::with_flags(release, [(flag, value)]).unwrap_err();
        assert!(recommender("storage", "prometheus").is_unknown);
        let told = recommender("target-cpu-percentile", "95");
        assert!(!told.is_unknown && told.to_string().contains("from 0 to 1"), "{told}");
        assert!(recommender("memory-aggregation-interval", "0s").to_string().contains("above zero"));
        let updater = |flag, value| UpdaterSettings::with_flags(release, [(flag, value)]).unwrap_err();
        assert!(updater("eviction-rate-limit", "1").is_unknown);
        assert!(updater("feature-gates", "CPUStartupBoost=true").to_string().contains("not reproduced"));
    }
}
