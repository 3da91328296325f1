//! The HorizontalPodAutoscaler that KEDA makes for a ScaledObject.

use nodecast_model::domain::Symbol;
use nodecast_model::domain::hpa::{
    Behavior, HorizontalPodAutoscaler, MetricSource, MetricSpec, MetricTarget, SelectPolicy,
};
use nodecast_model::domain::keda::{Reads, ScaledObject, Trigger, TriggerMetricType};
use nodecast_model::domain::labels::{LabelSelector, Labels};
use nodecast_model::domain::quantity::Quantity;

/// The autoscaler's name.
pub fn autoscaler_name(object: &ScaledObject) -> Symbol {
    object.autoscaler_name.unwrap_or_else(|| Symbol::new(&format!("keda-hpa-{}", object.name)))
}

/// The autoscaler of a ScaledObject; `None` while the object is paused, which deletes it.
///
/// Its minimum is at least 1: zero is KEDA's own. It has a behavior block only if the user gave one or pauses a direction,
/// and without one it may at most double in one pass.
///
/// Source: KEDA 2.20 `controllers/keda/hpa.go`, `newHPAForScaledObject`.
pub fn horizontal_pod_autoscaler(object: &ScaledObject) -> Option<HorizontalPodAutoscaler> {
    if object.annotations.stops_scaling() {
        return None;
    }
    Some(HorizontalPodAutoscaler {
        namespace: object.namespace,
        name: autoscaler_name(object),
        target: object.target,
        min_replicas: Some(object.min_replica_count.filter(|&min| min > 0).unwrap_or(1)),
        max_replicas: object.max_replica_count.unwrap_or(100),
        metrics: metrics(object),
        behavior: behavior(object),
    })
}

fn behavior(object: &ScaledObject) -> Option<Behavior> {
    let pauses = object.annotations;
    if !pauses.paused_scale_in && !pauses.paused_scale_out {
        return object.behavior.clone();
    }
    let mut behavior = object.behavior.clone().unwrap_or_default();
    if pauses.paused_scale_in {
        behavior.scale_down.select_policy = Some(SelectPolicy::Disabled);
    }
    if pauses.paused_scale_out {
        behavior.scale_up.select_policy = Some(SelectPolicy::Disabled);
    }
    Some(behavior)
}

/// Resource triggers keep their own metric; the others have one each, or one together if there is a formula.
fn metrics(object: &ScaledObject) -> Vec<MetricSpec> {
    let own_selector = || LabelSelector {
        match_labels: Labels::new().with("scaledobject.keda.sh/name", object.name),
        expressions: Vec::new(),
    };
    let external = |metric, target| MetricSpec {
        source: MetricSource::External { metric, selector: Some(own_selector()) },
        target,
    };
    let mut metrics = Vec::with_capacity(object.triggers.len());
    for (index, trigger) in object.triggers.iter().enumerate() {
        if let Reads::Resource { name, container, target } = &trigger.source.reads {
            let source = match container {
                Some(container) => MetricSource::ContainerResource { name: *name, container: *container },
                None => MetricSource::Resource { name: *name },
            };
            metrics.push(MetricSpec { source, target: *target });
        } else if object.scaling_modifiers.is_none() {
            metrics.push(external(external_metric_name(object, index), target_of(trigger)));
        }
    }
    if let Some(modifiers) = &object.scaling_modifiers {
        metrics.push(external(Symbol::new("composite-metric"), typed(modifiers.target, modifiers.metric_type)));
    }
    metrics
}

/// What the autoscaler compares the trigger's metric with.
pub fn target_of(trigger: &Trigger) -> MetricTarget {
    let quantity = match &trigger.source.reads {
        Reads::Resource { target, .. } => return *target,
        _ => trigger.source.target.unwrap_or(Quantity::from_nanos(1_000_000_000)),
    };
    // Written with three decimals, so rounded; a half goes up.
    let thousandths = (quantity.nanos() + 500_000).div_euclid(1_000_000);
    typed(Quantity::from_nanos(thousandths * 1_000_000), trigger.metric_type)
}

/// A target in thousandths, truncated: finer parts do not reach the autoscaler.
fn typed(quantity: Quantity, metric_type: TriggerMetricType) -> MetricTarget {
    let quantity = Quantity::from_nanos(quantity.nanos() / 1_000_000 * 1_000_000);
    match metric_type {
        TriggerMetricType::Value => MetricTarget::Value(quantity),
        TriggerMetricType::AverageValue | TriggerMetricType::Utilization => MetricTarget::AverageValue(quantity),
    }
}

/// The name of the external metric of the trigger at `index`, as the autoscaler's events show it.
///
/// Source: KEDA 2.20 `pkg/scalers/scaler.go`, `GenerateMetricNameWithIndex`, and each scaler's `GetMetricSpecForScaling`.
pub fn external_metric_name(object: &ScaledObject, index: usize) -> Symbol {
    trigger_metric_name(object.namespace, &object.triggers, index)
}

/// The same for one of the `triggers` of an object in `namespace`.
pub fn trigger_metric_name(namespace: Symbol, triggers: &[Trigger], index: usize) -> Symbol {
    let metric = match triggers.get(index).map(|trigger| &trigger.source) {
        Some(source) if matches!(source.reads, Reads::KubernetesWorkload { .. }) => {
            format!("{}-{namespace}", source.metric)
        }
        source => source.map_or("external", |source| &source.metric).to_owned(),
    };
    let normalized: String =
        metric.chars().map(|c| if matches!(c, '/' | '.' | ':' | '%' | '(' | ')') { '-' } else { c }).collect();
    Symbol::new(&format!("s{index}-{normalized}"))
}

#[cfg(test)]
mod tests {
    use super::{autoscaler_name, horizontal_pod_autoscaler};
    use crate::hpa::metric_name;
    use nodecast_model::domain::Symbol;
    use nodecast_model::domain::hpa::{MetricTarget, ScaleTargetRef};
    use nodecast_model::domain::keda::{ScaledObject, ScalingModifiers, Trigger, TriggerMetricType, TriggerSource};
    use nodecast_model::domain::labels::Labels;
    use nodecast_model::domain::quantity::Quantity;

    fn object() -> ScaledObject {
        let target = ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("web") };
        let cron = Labels::new()
            .with("timezone", "Asia/Kolkata")
            .with("start", "0 9 * * *")
            .with("end", "0 */6 * * *")
            .with("desiredReplicas", "4");
        let query = Labels::new().with("query", "up").with("threshold", "2.5");
        let metric_type = TriggerMetricType::AverageValue;
        let triggers = [("cron", cron), ("prometheus", query)].map(|(kind, metadata)| {
            let source = TriggerSource::read(kind, &metadata, None).unwrap_or_else(|problem| panic!("{problem}"));
            Trigger { name: None, source, metric_type, use_cached_metrics: false }
        });
        ScaledObject::new(Symbol::new("shop"), Symbol::new("web"), target, triggers.to_vec())
    }

    #[test]
    fn each_trigger_becomes_named_external_metric() {
        let Some(hpa) = horizontal_pod_autoscaler(&object()) else { panic!("not paused") };
        let names: Vec<String> = hpa.metrics.iter().map(metric_name).collect();
        let selector = "(&LabelSelector{MatchLabels:map[string]string{scaledobject.keda.sh/name: web,},\
                        MatchExpressions:[]LabelSelectorRequirement{},})";
        let expected = ["s0-cron-Asia-Kolkata-09xxx-0xSl6xxx", "s1-prometheus"];
        assert_eq!(names, expected.map(|name| format!("external metric {name}{selector}")));
        assert!(matches!(hpa.metrics[1].target, MetricTarget::AverageValue(q) if q.milli_value() == 2_500));
        assert_eq!(autoscaler_name(&object()).as_str(), "keda-hpa-web");
    }

    #[test]
    fn formula_leaves_one_metric_and_pause_no_hpa() {
        let mut object = object();
        object.scaling_modifiers = Some(ScalingModifiers {
            formula: "a + b".to_owned(),
            target: Quantity::from_nanos(1_000_000_000),
            is_whole: true,
            activation_target: Quantity::default(),
            metric_type: TriggerMetricType::Value,
        });
        let metrics = horizontal_pod_autoscaler(&object).map(|hpa| hpa.metrics);
        assert_eq!(metrics.as_ref().map(Vec::len), Some(1));
        object.annotations.paused = true;
        assert_eq!(horizontal_pod_autoscaler(&object), None);
    }
}
