//! How the Karpenter of a dump is set up: what the environment and the flags of its Deployment say.
//!
//! A flag goes before the variable of its name.
//!
//! Source: Karpenter v1.13 `pkg/operator/options/options.go` (`AddFlags`, `ParseFeatureGates`); the provider's
//! `pkg/operator/options/options.go` for the queue, the overhead of memory and the interfaces left alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Notes;
use super::cluster::{containers, stated_by};
use super::objects::Object;
use crate::definition::KarpenterOptions;
use crate::domain::{KarpenterVersion, SimDuration};
use crate::error::{listed, nearest};
use crate::tree::Node;
use nodecast_karpenter::release::Behaviour;

/// Variables that are looked at, each with its flag.
const SETTINGS: [(&str, &str); 9] = [
    ("INTERRUPTION_QUEUE", "interruption-queue"),
    ("BATCH_IDLE_DURATION", "batch-idle-duration"),
    ("BATCH_MAX_DURATION", "batch-max-duration"),
    ("PREFERENCE_POLICY", "preference-policy"),
    ("MIN_VALUES_POLICY", "min-values-policy"),
    (FEATURE_GATES, "feature-gates"),
    ("VM_MEMORY_OVERHEAD_PERCENT", "vm-memory-overhead-percent"),
    ("RESERVED_ENIS", "reserved-enis"),
    (CLUSTER, "cluster-name"),
];
/// Variables that a scenario has no key for, each with its flag and the number that holds there.
const LIMITS: [(&str, &str, f64); 2] =
    [("KUBE_CLIENT_QPS", "kube-client-qps", 200.0), ("KUBE_CLIENT_BURST", "kube-client-burst", 300.0)];
/// Variables that a scenario has no key for, each with its flag, its default and what holds here.
const NOT_SIMULATED: [(&str, &str, &str, &str); 6] = [
    (
        "IGNORE_DRA_REQUESTS",
        "ignore-dra-requests",
        "true",
        "no node has devices here, so pods with resource claims stay pending",
    ),
    (
        "ENABLE_ZONAL_SHIFT",
        "enable-zonal-shift",
        "false",
        "zones under a zonal shift stay in use here, so waits in one may be too short",
    ),
    (
        "AMI_REFRESH_INTERVAL",
        "ami-refresh-interval",
        "1m",
        "new images are found at once here, so drift begins too early",
    ),
    ("SUBNET_REFRESH_INTERVAL", "subnet-refresh-interval", "1m", "changed subnets are found at once here"),
    ("AWS_FEATURE_GATES", "aws-feature-gates", "NodeClassCEL=false", "expressions in kubelet settings are not read"),
    ("SCHEDULER_CONFIG", "scheduler-config", "", "copy it to `karpenter.scheduler_config` of the scenario"),
];
/// Whether Karpenter reads no prices.
const ISOLATED: (&str, &str) = ("ISOLATED_VPC", "isolated-vpc");
/// What every Karpenter is told from the release on that is told all else so too.
const FEATURE_GATES: &str = "FEATURE_GATES";
const CLUSTER: &str = "CLUSTER_NAME";
const TOLD_SINCE: (u8, u8) = (0, 32);
/// Gates by Karpenter's names and by those of a scenario. All but `ReservedCapacity` are off by default.
const GATES: [(&str, &str); 6] = [
    ("SpotToSpotConsolidation", "spot_to_spot_consolidation"),
    ("NodeRepair", "node_repair"),
    ("StaticCapacity", "static_capacity"),
    ("NodeOverlay", "node_overlay"),
    ("CapacityBuffer", "capacity_buffer"),
    (RESERVED_CAPACITY, "reserved_capacity"),
];
const RESERVED_CAPACITY: &str = "ReservedCapacity";
/// A gate that a scenario cannot close, and that is open in the releases that have it.
const OPEN: &str = "Drift";
/// Most network interfaces that a scenario can reserve.
const MOST_ENIS: u32 = 1_000;

/// All variables that are looked at, each with its flag.
fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let limits = LIMITS.iter().map(|(name, flag, _)| (*name, *flag));
    let others = NOT_SIMULATED.iter().map(|(name, flag, ..)| (*name, *flag));
    SETTINGS.iter().copied().chain(limits).chain(others).chain([ISOLATED])
}

/// What the Deployment says, kept before environments are taken out of a dump.
#[derive(Debug, Default)]
pub(super) struct DeploymentEnvironment {
    /// Values by variable; `None` for one that comes from elsewhere in the cluster.
    values: BTreeMap<&'static str, Option<String>>,
    /// Whether a whole ConfigMap or Secret is taken in.
    takes_in: bool,
}

impl DeploymentEnvironment {
    /// Reads the containers of a Deployment, or of a pod of it.
    pub(super) fn from_deployment(deployment: &Object<'_>) -> Self {
        let containers = containers(deployment);
        let mut deployment_environment = Self::default();
        for variable in containers.iter().filter_map(|container| container.get("env")).flat_map(Node::items) {
            let name = variable.get("name").and_then(Node::as_text).unwrap_or_default();
            let Some((name, _)) = settings().find(|(known, _)| *known == name) else { continue };
            let value = variable.get("value").and_then(Node::as_text).unwrap_or_default();
            let value = variable.get("valueFrom").is_none().then(|| value.to_owned());
            deployment_environment.values.insert(name, value);
        }
        for (flag, value) in stated_by(deployment) {
            if let Some((name, _)) = settings().find(|(_, known)| *known == flag) {
                deployment_environment.values.insert(name, Some(value.to_owned()));
            }
        }
        deployment_environment.takes_in = containers.iter().any(|container| container.get("envFrom").is_some());
        deployment_environment
    }

    /// Names settings that a scenario has no key for.
    fn name_others(&self, notes: &mut Notes) {
        for (name, _, holds) in LIMITS {
            let Some(value) = self.value(name) else { continue };
            if value.parse::<f64>().is_ok_and(|value| (value - holds).abs() > 1e-9) {
                notes.warn(format!(
                    "Karpenter's `{name}` is {value}, which a scenario cannot set: its calls are limited as with {holds}, so large launches and drains may take longer or shorter"
                ));
            }
        }
        for (name, _, default, holds) in NOT_SIMULATED {
            let Some(value) = self.value(name) else { continue };
            let duration = |text: &str| text.parse::<SimDuration>().ok();
            if value != default && (duration(value).is_none() || duration(value) != duration(default)) {
                let shown: String = value.chars().take(80).collect();
                notes.warn(format!("Karpenter's `{name}` is `{shown}`, which is not simulated: {holds}"));
            }
        }
        if self.value(ISOLATED.0).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            notes.warn(format!(
                "Karpenter's `{}` is true, which is not simulated: it then knows no prices newer than itself, so it may choose other instance types",
                ISOLATED.0
            ));
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_deref()
    }

    /// Whether it shows which gates are open. Without any setting, somebody has taken the environment out.
    pub(super) fn shows_gates(&self) -> bool {
        !(self.values.is_empty() || self.takes_in) && self.values.get(FEATURE_GATES).is_none_or(Option::is_some)
    }

    /// Opens and closes gates, in Karpenter's own form, over those that are stated.
    pub(super) fn add_gates(&mut self, gates: &str) {
        let stated = self.value(FEATURE_GATES).unwrap_or_default();
        let both = format!("{stated},{gates}");
        self.values.insert(FEATURE_GATES, Some(both));
    }
}

/// Reads `FEATURE_GATES`, each with whether it is open; `Err` holds what cannot be read.
///
/// Source: Karpenter v1.13 `pkg/operator/options/options.go`, `ParseFeatureGates`; Go's `strconv.ParseBool`.
fn gates_of(text: &str) -> impl Iterator<Item = Result<(&str, bool), &str>> {
    text.split(',').filter(|gate| !gate.trim().is_empty()).map(|gate| {
        let (name, value) = gate.split_once('=').unwrap_or((gate, ""));
        match value.trim() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok((name.trim(), true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok((name.trim(), false)),
            _ => Err(gate),
        }
    })
}

/// Checks feature gates in Karpenter's own form.
///
/// # Errors
/// In words, if one is unknown, or neither on nor off.
pub(crate) fn check_gates(text: &str) -> Result<(), String> {
    for gate in gates_of(text) {
        let (name, _) = gate.map_err(|gate| format!("`{gate}` is not `Gate=true` or `Gate=false`"))?;
        let known = || GATES.iter().map(|(key, _)| *key).chain([OPEN]);
        if !known().any(|item| item == name) {
            let near = nearest(name, known()).map_or_else(|| listed(known()), |near| format!("did you mean `{near}`?"));
            return Err(format!("unknown feature gate `{name}`: {near}"));
        }
    }
    Ok(())
}

/// The settings that are not as a scenario has them anyway.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Lines of the section `karpenter`.
    lines: Vec<String>,
}

impl Settings {
    /// What a release was told that it does not do by itself; what cannot be taken over is noted.
    pub(super) fn new(stated: &DeploymentEnvironment, release: KarpenterVersion, notes: &mut Notes) -> Self {
        let mut settings = Self::default();
        for (name, _) in stated.values.iter().filter(|(name, value)| value.is_none() && **name != CLUSTER) {
            notes.warn(format!(
                "Karpenter's `{name}` comes from a ConfigMap, a Secret or the like, and is not known: the default stands in"
            ));
        }
        if stated.takes_in {
            notes.warn(
                "Karpenter has settings from a whole ConfigMap or Secret (`envFrom`), which are not known: `karpenter` in the scenario states them",
            );
        }
        settings.queue(stated, release);
        stated.name_others(notes);
        let defaults = KarpenterOptions::default();
        settings.duration(stated, ("BATCH_IDLE_DURATION", "batch_idle_duration"), defaults.batch_idle, notes);
        settings.duration(stated, ("BATCH_MAX_DURATION", "batch_max_duration"), defaults.batch_max, notes);
        if release.release() >= (1, 4) {
            settings.word(stated, ("PREFERENCE_POLICY", "preference_policy"), ["Respect", "Ignore"], notes);
        }
        if release.release() >= (1, 6) {
            settings.word(stated, ("MIN_VALUES_POLICY", "min_values_policy"), ["Strict", "BestEffort"], notes);
        }
        settings.instance_types(stated, defaults, notes);
        settings.gates(stated, release, notes);
        settings
    }

    /// A queue without a name is none. Where the Deployment says of which cluster it is and of no queue, there is none.
    fn queue(&mut self, stated: &DeploymentEnvironment, release: KarpenterVersion) {
        const NAME: &str = "INTERRUPTION_QUEUE";
        let is_told = stated.values.contains_key(CLUSTER) && !stated.takes_in && release.release() >= TOLD_SINCE;
        if stated.value(NAME) == Some("") || (is_told && !stated.values.contains_key(NAME)) {
            self.lines.push("interruption_queue: false".to_owned());
        }
    }

    fn duration(
        &mut self,
        stated: &DeploymentEnvironment,
        (name, key): (&str, &str),
        default: SimDuration,
        notes: &mut Notes,
    ) {
        let Some(value) = stated.value(name).filter(|value| !value.is_empty()) else { return };
        match value.parse::<SimDuration>() {
            Ok(number) if number == default => {}
            Ok(number) if number > SimDuration::ZERO => self.lines.push(format!("{key}: {number}")),
            _ => left_out(name, value, notes),
        }
    }

    /// One of two words, of which the first is what holds anyway.
    fn word(&mut self, stated: &DeploymentEnvironment, (name, key): (&str, &str), words: [&str; 2], notes: &mut Notes) {
        match stated.value(name) {
            Some(value) if value == words[1] => self.lines.push(format!("{key}: {value}")),
            Some(value) if !(value.is_empty() || value == words[0]) => left_out(name, value, notes),
            _ => {}
        }
    }

    /// The settings that shape instance types.
    fn instance_types(&mut self, stated: &DeploymentEnvironment, defaults: KarpenterOptions, notes: &mut Notes) {
        const OVERHEAD: &str = "VM_MEMORY_OVERHEAD_PERCENT";
        const ENIS: &str = "RESERVED_ENIS";
        if let Some(value) = stated.value(OVERHEAD).filter(|value| !value.is_empty()) {
            match value.parse::<f64>() {
                Ok(share) if (0.0..=1.0).contains(&share) => {
                    let millionths = libm::round(share * 1e6) as u32;
                    if millionths != defaults.vm_memory_overhead_millionths {
                        self.lines.push(format!("vm_memory_overhead_percent: {}", f64::from(millionths) / 1e6));
                    }
                }
                _ => left_out(OVERHEAD, value, notes),
            }
        }
        if let Some(value) = stated.value(ENIS).filter(|value| !value.is_empty()) {
            match value.parse::<u32>() {
                Ok(enis) if enis == defaults.reserved_enis => {}
                Ok(enis) if enis <= MOST_ENIS => self.lines.push(format!("reserved_enis: {enis}")),
                _ => left_out(ENIS, value, notes),
            }
        }
    }

    /// Gates that are not as the release has them by default.
    fn gates(&mut self, stated: &DeploymentEnvironment, release: KarpenterVersion, notes: &mut Notes) {
        let reserved_by_default = Behaviour::for_release(release).reserved_capacity_gate;
        let mut set: Vec<(&str, bool)> = Vec::new();
        for gate in gates_of(stated.value(FEATURE_GATES).unwrap_or_default()) {
            let Ok((name, is_open)) = gate.inspect_err(|gate| left_out(FEATURE_GATES, gate, notes)) else { continue };
            match GATES.iter().find(|(gate, _)| *gate == name) {
                // Of a gate that is given twice the last counts.
                Some((_, key)) => {
                    set.retain(|(other, _)| other != key);
                    let default = if name == RESERVED_CAPACITY { reserved_by_default } else { Some(false) };
                    set.extend(default.is_some_and(|default| default != is_open).then_some((*key, is_open)));
                }
                None if is_open != (name == OPEN) => {
                    notes.warn(format!(
                        "Karpenter's feature gate `{name}` is {}, for which a scenario has no key",
                        if is_open { "on" } else { "off" }
                    ));
                }
                None => {}
            }
        }
        if !set.is_empty() {
            let set: Vec<String> = set.iter().map(|(key, is_open)| format!("{key}: {is_open}")).collect();
            self.lines.push(format!("feature_gates: {{ {} }}", set.join(", ")));
        }
    }

    /// The section, if there is anything to say.
    pub(super) fn write(&self, text: &mut String) {
        if self.lines.is_empty() {
            return;
        }
        *text += "\nkarpenter:                          # as its Deployment sets it up\n";
        for line in &self.lines {
            let _ = writeln!(text, "  {line}");
        }
    }
}

fn left_out(name: &str, value: &str, notes: &mut Notes) {
    let shown: String = value.chars().take(80).collect();
    notes.warn(format!("Karpenter's `{name}` is `{shown}`, which cannot be read: the default stands in"));
}

#[cfg(test)]
mod tests {
    use super::{DeploymentEnvironment, Settings};
    use crate::domain::KarpenterVersion;
    use crate::draft::dump::Notes;

    fn told(values: &[(&'static str, Option<&str>)]) -> (String, Vec<String>) {
        let values = values.iter().map(|(name, value)| (*name, value.map(str::to_owned))).collect();
        let (mut notes, mut text) = (Notes::default(), String::new());
        let stated = DeploymentEnvironment { values, takes_in: false };
        Settings::new(&stated, KarpenterVersion::default(), &mut notes).write(&mut text);
        (text, notes.warnings.iter().map(|warning| warning.message().to_owned()).collect())
    }

    #[test]
    fn defaults_say_nothing() {
        let all = [
            ("CLUSTER_NAME", Some("shop")),
            ("INTERRUPTION_QUEUE", Some("shop")),
            ("BATCH_IDLE_DURATION", Some("1s")),
            ("BATCH_MAX_DURATION", Some("10s")),
            ("PREFERENCE_POLICY", Some("Respect")),
            ("FEATURE_GATES", Some("ReservedCapacity=true,SpotToSpotConsolidation=false,NodeRepair=false")),
            ("VM_MEMORY_OVERHEAD_PERCENT", Some("0.075")),
        ];
        assert_eq!(told(&all), (String::new(), Vec::new()));
        assert_eq!(told(&[]), (String::new(), Vec::new()));
    }

    #[test]
    fn settings_without_a_key_are_warned_of() {
        let (text, warnings) = told(&[
            ("IGNORE_DRA_REQUESTS", Some("false")),
            ("ENABLE_ZONAL_SHIFT", Some("false")),
            ("AMI_REFRESH_INTERVAL", Some("30m0s")),
            ("SUBNET_REFRESH_INTERVAL", Some("1m0s")),
        ]);
        assert_eq!(text, "");
        let named: Vec<_> = warnings.iter().map(|warning| warning.split('`').nth(1)).collect();
        assert_eq!(named, [Some("IGNORE_DRA_REQUESTS"), Some("AMI_REFRESH_INTERVAL")], "{warnings:?}");
    }

    #[test]
    fn karpenter_settings_are_imported_and_unknowns_listed() {
        let (text, warnings) = told(&[
            ("CLUSTER_NAME", None),
            ("BATCH_MAX_DURATION", Some("1m0s")),
            ("BATCH_IDLE_DURATION", None),
            ("MIN_VALUES_POLICY", Some("BestEffort")),
            ("FEATURE_GATES", Some("NodeRepair=true, StaticCapacity=1,ReservedCapacity=false")),
            ("RESERVED_ENIS", Some("1")),
            ("VM_MEMORY_OVERHEAD_PERCENT", Some("1.5")),
        ]);
        assert_eq!(
            text,
            "\nkarpenter:                          # as its Deployment sets it up\n  interruption_queue: false\n  \
             batch_max_duration: 1m\n  min_values_policy: BestEffort\n  reserved_enis: 1\n  \
             feature_gates: { node_repair: true, static_capacity: true, reserved_capacity: false }\n"
        );
        assert_eq!(
            warnings,
            [
                "Karpenter's `BATCH_IDLE_DURATION` comes from a ConfigMap, a Secret or the like, and is not known: the default stands in",
                "Karpenter's `VM_MEMORY_OVERHEAD_PERCENT` is `1.5`, which cannot be read: the default stands in",
            ]
        );
    }
}
