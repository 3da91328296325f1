//! KEDA's ScaledObject and ScaledJob, as a manifest states them.
//!
//! Source: KEDA 2.20 `apis/keda/v1alpha1`.

mod metadata;
mod scalers;
mod triggers;

pub use scalers::{Origin, Scaler};
pub use triggers::{
    CronTrigger, KafkaTrigger, OffsetResetPolicy, QueueOperation, QueueTrigger, RabbitMqMode, RabbitMqTrigger, Reads,
    Trigger, TriggerMetricType, TriggerProblem, TriggerSource,
};

use super::hpa::{Behavior, ScaleTargetRef};
use super::labels::Labels;
use super::quantity::Quantity;
use super::symbol::Symbol;
use super::time::{SimDuration, SimTime};
use super::workload::JobSpec;

/// A ScaledObject: scales a workload between zero (or idle) and its minimum, and has a HorizontalPodAutoscaler do the rest.
#[derive(Clone, PartialEq, Debug)]
pub struct ScaledObject {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// What it scales.
    pub target: ScaleTargetRef,
    /// Time between two polls, 30 s unless given.
    pub polling_interval: SimDuration,
    /// How long all triggers must have been inactive before the count goes to zero or idle, 300 s unless given.
    pub cooldown_period: SimDuration,
    /// The same for an object that has never been active, counted from its creation; none unless given.
    pub initial_cooldown_period: SimDuration,
    /// `minReplicaCount`; `None` means 0.
    pub min_replica_count: Option<i32>,
    /// `maxReplicaCount`; `None` means 100.
    pub max_replica_count: Option<i32>,
    /// `idleReplicaCount`: the count while no trigger is active, below the minimum.
    pub idle_replica_count: Option<i32>,
    /// What to do when triggers fail.
    pub fallback: Option<Fallback>,
    /// The behavior block of its autoscaler.
    pub behavior: Option<Behavior>,
    /// The name of its autoscaler, if not `keda-hpa-<name>`.
    pub autoscaler_name: Option<Symbol>,
    /// Whether deleting the object sets the count from before it.
    pub restore_to_original_replica_count: bool,
    /// A formula over its triggers.
    pub scaling_modifiers: Option<ScalingModifiers>,
    /// What it looks at, in order.
    pub triggers: Vec<Trigger>,
    /// What its annotations ask for.
    pub annotations: ScalingAnnotations,
    /// `status.lastActiveTime` of one that ran already, since 1970.
    pub last_active: Option<SimTime>,
}

impl ScaledObject {
    /// A ScaledObject with KEDA's defaults.
    pub fn new(namespace: Symbol, name: Symbol, target: ScaleTargetRef, triggers: Vec<Trigger>) -> Self {
        Self {
            namespace,
            name,
            target,
            polling_interval: SimDuration::from_secs(30),
            cooldown_period: SimDuration::from_secs(300),
            initial_cooldown_period: SimDuration::ZERO,
            min_replica_count: None,
            max_replica_count: None,
            idle_replica_count: None,
            fallback: None,
            behavior: None,
            autoscaler_name: None,
            restore_to_original_replica_count: false,
            scaling_modifiers: None,
            triggers,
            annotations: ScalingAnnotations::default(),
            last_active: None,
        }
    }
}

/// What the annotations below `autoscaling.keda.sh/` ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ScalingAnnotations {
    /// `paused`: no polling, no autoscaler; the count stays.
    pub paused: bool,
    /// `paused-replicas`: the same, at this count.
    pub paused_replicas: Option<i32>,
    /// `paused-scale-in`: no fewer.
    pub paused_scale_in: bool,
    /// `paused-scale-out`: no more.
    pub paused_scale_out: bool,
    /// `force-activation`: as if a trigger were active.
    pub force_activation: bool,
}

impl ScalingAnnotations {
    /// Reads an object's annotations. A text that is no truth value counts as true, as in KEDA.
    pub fn read(annotations: &Labels) -> Self {
        let text = |name: &str| {
            let found = annotations
                .iter()
                .find(|(key, _)| key.as_str().strip_prefix("autoscaling.keda.sh/").is_some_and(|rest| rest == name));
            found.map(|(_, value)| value.as_str())
        };
        // The texts that Go's `strconv.ParseBool` takes for false.
        let set = |name| text(name).is_some_and(|text| !matches!(text, "0" | "f" | "F" | "false" | "FALSE" | "False"));
        Self {
            paused: set("paused"),
            paused_replicas: text("paused-replicas").and_then(|text| text.parse().ok()),
            paused_scale_in: set("paused-scale-in"),
            paused_scale_out: set("paused-scale-out"),
            force_activation: set("force-activation"),
        }
    }

    /// Whether polling stops and the autoscaler is deleted.
    pub const fn stops_scaling(self) -> bool {
        self.paused || self.paused_replicas.is_some()
    }
}

/// What a metric reads when its trigger has failed too often in a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fallback {
    /// Failures in a row that are borne.
    pub failure_threshold: i32,
    /// Replicas that the synthetic metric asks for.
    pub replicas: i32,
    /// How the current count matters.
    pub behavior: FallbackBehavior,
}

/// How the current count enters a fallback.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FallbackBehavior {
    /// Not at all.
    #[default]
    Static,
    /// It alone counts.
    CurrentReplicas,
    /// The larger of the two.
    CurrentReplicasIfHigher,
    /// The smaller of the two.
    CurrentReplicasIfLower,
    /// The failed trigger is nil in the formula.
    ScalingModifiers,
}

/// A formula over the triggers, whose value is the one metric of the autoscaler.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ScalingModifiers {
    /// The formula over trigger names.
    pub formula: String,
    /// What its value is compared with.
    pub target: Quantity,
    /// Whether that is written as a whole number, without which KEDA takes no fallback: `5.0` is not.
    pub is_whole: bool,
    /// The formula's value must be above this for the object to be active; 0 unless given.
    pub activation_target: Quantity,
    /// Whether the target is for each pod or for the whole.
    pub metric_type: TriggerMetricType,
}

/// A ScaledJob: makes Jobs for work that waits.
#[derive(Clone, PartialEq, Debug)]
pub struct ScaledJob {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// What each of its Jobs does.
    pub job: JobSpec,
    /// Time between two polls, 30 s unless given.
    pub polling_interval: SimDuration,
    /// Jobs that are kept running, 0 unless given.
    pub min_replica_count: i64,
    /// Jobs that may run, 100 unless given.
    pub max_replica_count: i64,
    /// Completed Jobs kept, 100 unless given.
    pub successful_jobs_history_limit: u32,
    /// Failed Jobs kept, 100 unless given.
    pub failed_jobs_history_limit: u32,
    /// Whether it is paused (annotation `autoscaling.keda.sh/paused`): it is not polled, and Jobs that run go on.
    pub paused: bool,
    /// Whether Jobs that run stay when it is changed (`rollout.strategy: gradual`); else they are deleted.
    pub gradual_rollout: bool,
    /// How running Jobs are set against waiting work.
    pub strategy: JobStrategy,
    /// How several triggers are combined.
    pub calculation: TriggerCalculation,
    /// Conditions that a pod must meet for its Job to stop counting as pending; empty: it must have started.
    pub pending_pod_conditions: Vec<Symbol>,
    /// What it looks at, in order.
    pub triggers: Vec<Trigger>,
}

impl ScaledJob {
    /// A ScaledJob with KEDA's defaults.
    pub fn new(namespace: Symbol, name: Symbol, job: JobSpec, triggers: Vec<Trigger>) -> Self {
        Self {
            namespace,
            name,
            job,
            polling_interval: SimDuration::from_secs(30),
            min_replica_count: 0,
            max_replica_count: 100,
            successful_jobs_history_limit: 100,
            failed_jobs_history_limit: 100,
            paused: false,
            gradual_rollout: false,
            strategy: JobStrategy::Default,
            calculation: TriggerCalculation::Max,
            pending_pod_conditions: Vec::new(),
            triggers,
        }
    }
}

/// How running Jobs are set against waiting work.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum JobStrategy {
    /// Running Jobs still hold their work in the queue.
    #[default]
    Default,
    /// As the user computes it.
    Custom {
        /// `customScalingQueueLengthDeduction`.
        queue_length_deduction: i64,
        /// `customScalingRunningJobPercentage`, a ratio as text; KEDA takes `default` instead if it is no number.
        running_job_percentage: String,
    },
    /// A Job takes its work out of the queue at once.
    Accurate,
    /// As many as there is room for.
    Eager,
}

/// How several triggers of a ScaledJob are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerCalculation {
    /// The longest queue.
    #[default]
    Max,
    /// The shortest queue.
    Min,
    /// The mean.
    Avg,
    /// The sum.
    Sum,
}

#[cfg(test)]
mod tests {
    use super::ScalingAnnotations;
    use crate::domain::labels::Labels;

    #[test]
    fn non_boolean_pause_annotations_count_as_true() {
        let annotations = Labels::new()
            .with("autoscaling.keda.sh/paused", "false")
            .with("autoscaling.keda.sh/paused-scale-in", "yes please")
            .with("autoscaling.keda.sh/paused-replicas", "3")
            .with("paused-scale-out", "true");
        let read = ScalingAnnotations::read(&annotations);
        assert!(!read.paused && read.paused_scale_in && !read.paused_scale_out);
        assert!(read.stops_scaling() && read.paused_replicas == Some(3));
    }
}
