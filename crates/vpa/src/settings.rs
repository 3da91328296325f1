//! What the programs are told on their command lines, with its defaults.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/config`, `pkg/updater/config`.

use super::histogram::HistogramResource;
use super::release::Behaviour;
use nodecast_model::domain::vertical::{UpdateMode, UpdatePolicy};
use nodecast_model::domain::{Resources, SimDuration, VerticalPodAutoscalerVersion};

const DAY: SimDuration = SimDuration::from_secs(86_400);
const MINUTE: SimDuration = SimDuration::from_secs(60);

/// Which parts of the weight make a target and its bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Percentiles {
    /// `--target-cpu-percentile`, `--target-memory-percentile`.
    pub target: f64,
    /// `--recommendation-lower-bound-cpu-percentile` and of memory.
    pub lower: f64,
    /// `--recommendation-upper-bound-cpu-percentile` and of memory.
    pub upper: f64,
}

impl Default for Percentiles {
    fn default() -> Self {
        Self { target: 0.9, lower: 0.5, upper: 0.95 }
    }
}

/// Of the recommender. What its release does not know is not looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct RecommenderSettings {
    /// What its release does.
    pub behaviour: &'static Behaviour,
    /// `--recommender-interval`: from look to look.
    pub interval: SimDuration,
    /// `--recommendation-margin-fraction`.
    pub margin: f64,
    /// Of CPU.
    pub cpu: Percentiles,
    /// Of memory.
    pub memory: Percentiles,
    /// `--confidence-interval-cpu`.
    pub cpu_confidence_interval: SimDuration,
    /// `--confidence-interval-memory`.
    pub memory_confidence_interval: SimDuration,
    /// `--cpu-histogram-decay-half-life`; above zero, as is the next.
    pub cpu_half_life: SimDuration,
    /// `--memory-histogram-decay-half-life`.
    pub memory_half_life: SimDuration,
    /// `--memory-aggregation-interval`: of each container one peak counts in such a span.
    pub memory_interval: SimDuration,
    /// `--memory-aggregation-interval-count`: a history is forgotten after so many intervals.
    pub memory_interval_count: i64,
    /// `--pod-recommendation-min-cpu-millicores`, shared among the containers of a pod.
    pub pod_minimum_milli: f64,
    /// `--pod-recommendation-min-memory-mb`, of 2^20 bytes, shared likewise.
    pub pod_minimum_mebibytes: f64,
    /// `--oom-bump-up-ratio`.
    pub oom_bump_up_ratio: f64,
    /// `--oom-min-bump-up-bytes`.
    pub oom_min_bump_up_bytes: f64,
    /// `--round-cpu-millicores`: CPU is a multiple of it.
    pub round_milli: i64,
    /// `--round-memory-bytes`: memory is a multiple of it.
    pub round_bytes: i64,
    /// `--cpu-integer-post-processor-enabled`.
    pub whole_cores: bool,
    /// `--container-recommendation-max-allowed-cpu` and `-memory`, where no policy states a maximum.
    pub max_allowed: Resources,
    /// The feature gate PerVPAConfig.
    pub per_vpa_config: bool,
}

impl RecommenderSettings {
    /// The defaults of a release.
    pub fn for_release(release: VerticalPodAutoscalerVersion) -> Self {
        Self {
            behaviour: Behaviour::for_release(release),
            interval: MINUTE,
            margin: 0.15,
            cpu: Percentiles::default(),
            memory: Percentiles::default(),
            cpu_confidence_interval: DAY,
            memory_confidence_interval: DAY,
            cpu_half_life: DAY,
            memory_half_life: DAY,
            memory_interval: DAY,
            memory_interval_count: 8,
            pod_minimum_milli: 25.0,
            pod_minimum_mebibytes: 250.0,
            oom_bump_up_ratio: 1.2,
            oom_min_bump_up_bytes: 100.0 * 1024.0 * 1024.0,
            round_milli: 1,
            round_bytes: 1,
            whole_cores: false,
            max_allowed: Resources::new(),
            per_vpa_config: false,
        }
    }

    /// In which time the weight of a sample of a resource halves.
    pub(super) fn half_life(&self, counted: HistogramResource) -> SimDuration {
        match counted {
            HistogramResource::Cores => self.cpu_half_life,
            HistogramResource::Bytes => self.memory_half_life,
        }
    }

    pub(super) fn uses_per_vpa_config(&self) -> bool {
        self.per_vpa_config && self.behaviour.knows_per_vpa_config
    }
}

impl Default for RecommenderSettings {
    fn default() -> Self {
        Self::for_release(VerticalPodAutoscalerVersion::default())
    }
}

/// Of the updater. What its release does not know is not looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct UpdaterSettings {
    /// What its release does.
    pub behaviour: &'static Behaviour,
    /// `--updater-interval`: from look to look.
    pub interval: SimDuration,
    /// `--min-replicas`: smaller groups are left alone.
    pub min_replicas: i32,
    /// `--eviction-tolerance`: the part of a group that may be missing.
    pub eviction_tolerance: f64,
    /// `--pod-update-threshold`: a smaller change is none.
    pub update_threshold: f64,
    /// `--in-recommendation-bounds-eviction-lifetime-threshold`: younger pods stay while they are within the bounds.
    pub lifetime_threshold: SimDuration,
    /// `--evict-after-oom-threshold`: a container that was killed for memory within so long of its start wants a change at once.
    pub quick_oom: SimDuration,
    /// `--in-place-skip-disruption-budget`.
    pub skip_disruption_budget: bool,
    /// The feature gate InPlaceOrRecreate; the default of the release where it is not stated.
    pub in_place_or_recreate: Option<bool>,
    /// The feature gate InPlace.
    pub in_place: bool,
    /// The feature gate PerVPAConfig.
    pub per_vpa_config: bool,
}

impl UpdaterSettings {
    /// The defaults of a release.
    pub fn for_release(release: VerticalPodAutoscalerVersion) -> Self {
        Self {
            behaviour: Behaviour::for_release(release),
            interval: MINUTE,
            min_replicas: 2,
            eviction_tolerance: 0.5,
            update_threshold: 0.1,
            lifetime_threshold: SimDuration::from_secs(12 * 3_600),
            quick_oom: SimDuration::from_secs(600),
            skip_disruption_budget: false,
            in_place_or_recreate: None,
            in_place: false,
            per_vpa_config: false,
        }
    }

    /// How soon after its start a kill for memory is a quick one.
    pub fn quick_oom(&self, policy: &UpdatePolicy) -> SimDuration {
        let stated = policy.evict_after_oom.filter(|_| self.per_vpa_config && self.behaviour.knows_per_vpa_config);
        stated.unwrap_or(self.quick_oom)
    }

    /// Whether resizes that restart no container need no budget.
    pub fn skips_budget(&self) -> bool {
        self.skip_disruption_budget && self.behaviour.knows_skipped_budget
    }

    /// The mode of a policy.
    pub fn mode(&self, policy: &UpdatePolicy) -> UpdateMode {
        policy.mode.unwrap_or(self.behaviour.default_mode)
    }
}

impl Default for UpdaterSettings {
    fn default() -> Self {
        Self::for_release(VerticalPodAutoscalerVersion::default())
    }
}
