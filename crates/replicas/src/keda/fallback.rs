//! What the autoscaler reads when a trigger fails.

use super::mapping::target_of;
use nodecast_model::domain::hpa::MetricTarget;
use nodecast_model::domain::keda::{Fallback, FallbackBehavior, ScaledObject, Trigger, TriggerMetricType};

/// What a read of one metric gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FallbackRead {
    /// The trigger's own value, in thousandths.
    Value(i64),
    /// A synthetic value, in thousandths.
    Synthetic(i64),
    /// Nothing, which a formula sees as nil.
    Nil,
    /// The failure itself.
    Failed,
}

/// The counts that a fallback may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FallbackCounts {
    /// What the target was told.
    pub replicas: i32,
    /// Its ready pods.
    pub ready: i32,
}

/// The fallback that counts; `None` as well for one that KEDA leaves alone: with a formula its target must be a whole number.
///
/// Source: KEDA 2.20 `pkg/fallback/fallback.go`, `HasValidFallback`.
pub fn valid_fallback(object: &ScaledObject) -> Option<&Fallback> {
    let fits = object.scaling_modifiers.as_ref().is_none_or(|modifiers| modifiers.is_whole);
    object.fallback.as_ref().filter(|_| fits)
}

/// What the synthetic value of a failed trigger is a multiple of: a target in units, and what it means. With a formula that value stands for
/// the value of the formula, so it is the formula's own target, whatever the trigger's is.
///
/// Source: KEDA 2.20 `pkg/fallback/fallback.go`, `doFallback`; `pkg/scaling/modifiers/formula.go`, `HandleScalingModifiers`.
pub fn fallback_goal(object: &ScaledObject, trigger: &Trigger) -> (f64, TriggerMetricType) {
    if let Some(modifiers) = &object.scaling_modifiers {
        return (modifiers.target.as_f64(), modifiers.metric_type);
    }
    let target = match target_of(trigger) {
        MetricTarget::AverageValue(quantity) | MetricTarget::Value(quantity) => quantity.as_f64(),
        MetricTarget::Utilization(percent) => f64::from(percent),
    };
    (target, trigger.metric_type)
}

/// One read of a metric, by a poll or by the autoscaler. `value` is what the trigger said, in thousandths, `None` if it
/// failed; `failures` is its count of failures in a row, which both kinds of read raise and one success resets. `target` is
/// the metric's target in units, see [`fallback_goal`].
///
/// Source: KEDA 2.20 `pkg/fallback/fallback.go`, `GetMetricsWithFallback`, `doFallback`.
pub fn read_with_fallback(
    fallback: Option<&Fallback>,
    value: Option<i64>,
    failures: &mut i32,
    (target, metric_type): (f64, TriggerMetricType),
    counts: FallbackCounts,
) -> FallbackRead {
    // Without a valid fallback failures are not even counted.
    let usable = fallback.filter(|fallback| fallback.failure_threshold >= 0 && fallback.replicas >= 0);
    if let Some(milli) = value {
        if usable.is_some() {
            *failures = 0;
        }
        return FallbackRead::Value(milli);
    }
    let Some(fallback) = usable else { return FallbackRead::Failed };
    *failures = failures.saturating_add(1);
    if *failures <= fallback.failure_threshold {
        return FallbackRead::Failed;
    }
    let mut replicas = f64::from(match fallback.behavior {
        FallbackBehavior::ScalingModifiers => return FallbackRead::Nil,
        FallbackBehavior::Static => fallback.replicas,
        FallbackBehavior::CurrentReplicas => counts.replicas,
        FallbackBehavior::CurrentReplicasIfHigher => fallback.replicas.max(counts.replicas),
        FallbackBehavior::CurrentReplicasIfLower => fallback.replicas.min(counts.replicas),
    });
    if metric_type == TriggerMetricType::Value {
        if counts.ready <= 0 {
            return FallbackRead::Failed;
        }
        replicas /= f64::from(counts.ready);
    }
    FallbackRead::Synthetic((target * 1000.0 * replicas) as i64)
}

#[cfg(test)]
mod tests {
    use super::{FallbackCounts, FallbackRead, fallback_goal, read_with_fallback, valid_fallback};
    use nodecast_model::domain::Symbol;
    use nodecast_model::domain::hpa::ScaleTargetRef;
    use nodecast_model::domain::keda::{
        Fallback, FallbackBehavior, ScaledObject, ScalingModifiers, Trigger, TriggerMetricType, TriggerSource,
    };
    use nodecast_model::domain::labels::Labels;
    use nodecast_model::domain::quantity::Quantity;

    const COUNTS: FallbackCounts = FallbackCounts { replicas: 4, ready: 3 };

    fn read(behavior: FallbackBehavior, metric_type: TriggerMetricType) -> FallbackRead {
        let fallback = Fallback { failure_threshold: 0, replicas: 10, behavior };
        read_with_fallback(Some(&fallback), None, &mut 0, (2.5, metric_type), COUNTS)
    }

    #[test]
    fn the_behavior_says_how_the_current_count_matters() {
        for (behavior, milli) in [
            (FallbackBehavior::Static, 25_000),
            (FallbackBehavior::CurrentReplicas, 10_000),
            (FallbackBehavior::CurrentReplicasIfHigher, 25_000),
            (FallbackBehavior::CurrentReplicasIfLower, 10_000),
        ] {
            assert_eq!(read(behavior, TriggerMetricType::AverageValue), FallbackRead::Synthetic(milli));
        }
        assert_eq!(read(FallbackBehavior::ScalingModifiers, TriggerMetricType::AverageValue), FallbackRead::Nil);
    }

    #[test]
    fn fallback_value_is_divided_among_ready_pods() {
        assert_eq!(read(FallbackBehavior::Static, TriggerMetricType::Value), FallbackRead::Synthetic(8_333));
    }

    #[test]
    fn without_a_fallback_failures_are_not_counted() {
        let mut failures = 7;
        let kind = (1.0, TriggerMetricType::AverageValue);
        assert_eq!(read_with_fallback(None, None, &mut failures, kind, COUNTS), FallbackRead::Failed);
        assert_eq!(read_with_fallback(None, Some(5), &mut failures, kind, COUNTS), FallbackRead::Value(5));
        assert_eq!(failures, 7);
    }

    #[test]
    fn formula_target_decides_fallback_and_must_be_whole() {
        let target = ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("web") };
        let metadata = Labels::new().with("queryValue", "50");
        let source = TriggerSource::read("datadog", &metadata, None).unwrap_or_else(|problem| panic!("{problem}"));
        let metric_type = TriggerMetricType::AverageValue;
        let trigger = Trigger { name: Some(Symbol::new("a")), source, metric_type, use_cached_metrics: false };
        let mut object = ScaledObject::new(Symbol::new("shop"), Symbol::new("web"), target, vec![trigger.clone()]);
        object.fallback = Some(Fallback { failure_threshold: 3, replicas: 7, behavior: FallbackBehavior::Static });
        assert_eq!(fallback_goal(&object, &trigger), (50.0, TriggerMetricType::AverageValue));
        assert!(valid_fallback(&object).is_some());
        let formula = |milli: i128| ScalingModifiers {
            formula: "a".to_owned(),
            target: Quantity::from_nanos(milli * 1_000_000),
            is_whole: milli % 1_000 == 0,
            activation_target: Quantity::default(),
            metric_type: TriggerMetricType::Value,
        };
        object.scaling_modifiers = Some(formula(5_000));
        assert_eq!(fallback_goal(&object, &trigger), (5.0, TriggerMetricType::Value));
        assert!(valid_fallback(&object).is_some());
        object.scaling_modifiers = Some(formula(2_500));
        assert!(valid_fallback(&object).is_none());
    }
}
