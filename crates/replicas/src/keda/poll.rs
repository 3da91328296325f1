//! One poll of a ScaledObject: between zero (or idle) and the minimum.

use nodecast_model::domain::keda::ScaledObject;
use nodecast_model::domain::{SimDuration, SimTime};

/// What one trigger said at a poll.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TriggerState {
    /// Whether it is active, or in fallback.
    pub active: bool,
    /// Whether it failed.
    pub failed: bool,
}

/// Whether a ScaledObject is active: any trigger is. With cpu and memory alone it always is. With a formula (`composite` is
/// whether its value is above the activation target) no trigger may have failed.
///
/// Source: KEDA 2.20 `pkg/scaling/scale_handler.go`, `getScaledObjectState`.
pub fn is_active(object: &ScaledObject, states: &[TriggerState], composite: Option<bool>) -> bool {
    if object.triggers.iter().all(|trigger| trigger.source.is_resource()) {
        return true;
    }
    match composite {
        Some(active) => active && states.iter().all(|state| !state.failed),
        None => states.iter().any(|state| state.active),
    }
}

/// What one poll reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PollView {
    /// The instant of the poll.
    pub now: SimTime,
    /// When the ScaledObject was created.
    pub created: SimTime,
    /// When it was last active, as its status says.
    pub last_active: Option<SimTime>,
    /// What the target was told.
    pub replicas: i32,
    /// Whether the object is active, see [`is_active`].
    pub active: bool,
    /// Whether a trigger failed.
    pub failed: bool,
}

/// What one poll decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PollDecision {
    /// What the target is to be told; the same if nothing is written.
    pub replicas: i32,
    /// Whether the last active time becomes now.
    pub refreshes_last_active: bool,
    /// The `Active` condition; `None` while paused.
    pub active: Option<ActiveReason>,
    /// The `Ready` condition, where the poll turns it.
    pub ready: Option<ReadyReason>,
}

/// The `Active` condition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ActiveReason {
    /// True.
    ScalerActive,
    /// False.
    ScalerNotActive,
    /// False, but it was active a short time ago.
    ScalerCooldown,
}

impl ActiveReason {
    /// The condition's status and reason.
    pub const fn as_condition(self) -> (&'static str, &'static str) {
        match self {
            Self::ScalerActive => ("True", "ScalerActive"),
            Self::ScalerNotActive => ("False", "ScalerNotActive"),
            Self::ScalerCooldown => ("False", "ScalerCooldown"),
        }
    }
}

/// The `Ready` condition after a failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReadyReason {
    /// Unknown: some triggers fail, others are active.
    PartialTriggerError,
    /// False: triggers fail and nothing is active.
    TriggerError,
}

impl ReadyReason {
    /// The condition's status and reason.
    pub const fn as_condition(self) -> (&'static str, &'static str) {
        match self {
            Self::PartialTriggerError => ("Unknown", "PartialTriggerError"),
            Self::TriggerError => ("False", "TriggerError"),
        }
    }
}

/// One poll. A paused object is not polled: its count is set to `paused-replicas` once, by whoever sees the annotation.
///
/// Source: KEDA 2.20 `pkg/scaling/executor/scale_scaledobjects.go`, `RequestScale`.
pub fn poll(object: &ScaledObject, view: &PollView) -> PollDecision {
    let mut decision =
        PollDecision { replicas: view.replicas, refreshes_last_active: false, active: None, ready: None };
    if object.annotations.stops_scaling() {
        return decision;
    }
    if view.active || object.annotations.force_activation {
        decision.active = Some(ActiveReason::ScalerActive);
        activate(object, view, &mut decision);
    } else {
        decision.active = Some(ActiveReason::ScalerNotActive);
        deactivate(object, view, &mut decision);
    }
    decision
}

fn activate(object: &ScaledObject, view: &PollView, decision: &mut PollDecision) {
    let min = object.min_replica_count.unwrap_or(0);
    let idle = object.idle_replica_count.is_some() && view.replicas < min;
    if idle || view.replicas == 0 {
        if !object.annotations.paused_scale_out {
            decision.replicas = if min > 0 { min } else { 1 };
            decision.refreshes_last_active = true;
        }
    } else if view.failed {
        decision.ready = Some(ReadyReason::PartialTriggerError);
    } else {
        decision.refreshes_last_active = true;
    }
}

fn deactivate(object: &ScaledObject, view: &PollView, decision: &mut PollDecision) {
    let min = object.min_replica_count.unwrap_or(0);
    if view.failed && object.fallback.is_some_and(|fallback| fallback.replicas != 0) {
        // At zero the autoscaler would be disabled and could never reach the fallback's count.
        return;
    }
    if view.failed && object.fallback.is_none() {
        decision.ready = Some(ReadyReason::TriggerError);
        return;
    }
    let above_idle = object.idle_replica_count.is_some_and(|idle| view.replicas > idle);
    if above_idle || (view.replicas > 0 && min == 0) {
        if object.annotations.paused_scale_in {
            return;
        }
        if cooled_down(object, view) {
            decision.replicas = object.idle_replica_count.unwrap_or(min);
        } else {
            decision.active = Some(ActiveReason::ScalerCooldown);
        }
    } else if object.idle_replica_count.is_none() && view.replicas < min {
        decision.replicas = min;
    }
}

/// Whether strictly more than the cooldown has passed: since the last activity, or since creation if there was none.
fn cooled_down(object: &ScaledObject, view: &PollView) -> bool {
    let (since, period): (SimTime, SimDuration) = match view.last_active {
        Some(last) => (last, object.cooldown_period),
        None => (view.created, object.initial_cooldown_period),
    };
    since + period < view.now
}

#[cfg(test)]
mod tests {
    use super::{ActiveReason, PollView, ReadyReason, TriggerState, is_active, poll};
    use nodecast_model::domain::hpa::ScaleTargetRef;
    use nodecast_model::domain::keda::{
        Fallback, FallbackBehavior, ScaledObject, Trigger, TriggerMetricType, TriggerSource,
    };
    use nodecast_model::domain::labels::Labels;
    use nodecast_model::domain::{SimDuration, SimTime, Symbol};

    fn object(triggers: Vec<Trigger>) -> ScaledObject {
        let target = ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("worker") };
        ScaledObject::new(Symbol::new("jobs"), Symbol::new("worker"), target, triggers)
    }

    fn view(replicas: i32, active: bool) -> PollView {
        let now = SimTime::ZERO + SimDuration::from_secs(10_000);
        PollView { now, created: SimTime::ZERO, last_active: None, replicas, active, failed: false }
    }

    fn trigger(kind: &str) -> Trigger {
        let metadata = Labels::new().with("value", "60").with("queueURL", "queue");
        let metric_type = TriggerMetricType::Utilization;
        let source = TriggerSource::read(kind, &metadata, Some(metric_type));
        let source = source.unwrap_or_else(|problem| panic!("{problem}"));
        Trigger { name: None, source, metric_type, use_cached_metrics: false }
    }

    #[test]
    fn zero_fallback_lets_failing_object_scale_to_zero() {
        let fallback = |replicas| Fallback { failure_threshold: 3, replicas, behavior: FallbackBehavior::Static };
        let failing = PollView { failed: true, ..view(4, false) };
        let zero = ScaledObject { fallback: Some(fallback(0)), ..object(Vec::new()) };
        assert_eq!(poll(&zero, &failing).replicas, 0);
        let five = ScaledObject { fallback: Some(fallback(5)), ..object(Vec::new()) };
        assert_eq!(poll(&five, &failing).replicas, 4);
        let none = poll(&object(Vec::new()), &failing);
        assert_eq!((none.replicas, none.ready), (4, Some(ReadyReason::TriggerError)));
    }

    #[test]
    fn zero_target_wakes_despite_failing_trigger() {
        let decision = poll(&object(Vec::new()), &PollView { failed: true, ..view(0, true) });
        assert_eq!((decision.replicas, decision.refreshes_last_active, decision.ready), (1, true, None));
    }

    #[test]
    fn never_active_object_waits_only_initial_cooldown() {
        let mut young = object(Vec::new());
        young.initial_cooldown_period = SimDuration::from_secs(10_000);
        assert_eq!(poll(&young, &view(3, false)).active, Some(ActiveReason::ScalerCooldown));
        young.initial_cooldown_period = SimDuration::from_secs(9_999);
        assert_eq!(poll(&young, &view(3, false)).replicas, 0);
    }

    #[test]
    fn cpu_and_memory_triggers_are_active_only_alone() {
        let idle = TriggerState::default();
        assert!(is_active(&object(vec![trigger("cpu"), trigger("memory")]), &[idle, idle], None));
        assert!(!is_active(&object(vec![trigger("cpu"), trigger("aws-sqs-queue")]), &[idle, idle], None));
    }

    #[test]
    fn formula_is_inactive_while_a_trigger_fails() {
        let with = object(vec![trigger("aws-sqs-queue")]);
        let failed = TriggerState { active: false, failed: true };
        assert!(is_active(&with, &[TriggerState::default()], Some(true)));
        assert!(!is_active(&with, &[failed], Some(true)));
        assert!(!is_active(&with, &[TriggerState { active: true, failed: false }], Some(false)));
    }
}
