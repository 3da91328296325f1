//! HorizontalPodAutoscalers: `autoscaling/v2`, `v1` (the form that `kubectl autoscale` makes) and, in `hpa_old`, `v2beta1`; what the older
//! two say in annotations is in `hpa_annotations`.

use super::common::{label_selector, metadata};
use super::pod::OBJECT;
use super::rollout::scaled_kind;
use super::{hpa_annotations, hpa_old};
use nodecast_model::domain::hpa::{
    Behavior, MetricSource, MetricSpec, MetricTarget, ScaleTargetRef, ScalingPolicy, ScalingPolicyKind, ScalingRules,
    SelectPolicy,
};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{HorizontalPodAutoscaler, LabelSelector, Quantity, ResourceName, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static SPEC: Shape = Shape {
    name: "a HorizontalPodAutoscaler's spec",
    keys: &["scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior", "targetCPUUtilizationPercentage"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TARGET_REF: Shape = Shape {
    name: "a reference to an object",
    keys: &["kind", "name"],
    without_effect: &["apiVersion"],
    unsupported: &[],
    strict: false,
};
pub(super) static METRIC: Shape = Shape {
    name: "a metric",
    keys: &["type", "resource", "containerResource", "pods", "object", "external"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static SOURCE: Shape = Shape {
    name: "a metric's source",
    keys: &["name", "container", "metric", "describedObject", "target"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static METRIC_NAME: Shape =
    Shape { name: "`metric`", keys: &["name", "selector"], without_effect: &[], unsupported: &[], strict: false };
static TARGET: Shape = Shape {
    name: "a metric's target",
    keys: &["type", "averageUtilization", "averageValue", "value"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static BEHAVIOR: Shape =
    Shape { name: "`behavior`", keys: &["scaleUp", "scaleDown"], without_effect: &[], unsupported: &[], strict: false };
static RULES: Shape = Shape {
    name: "scaling rules",
    keys: &["stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static POLICY: Shape = Shape {
    name: "a scaling policy",
    keys: &["type", "value", "periodSeconds"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// Types of a metric with the key of what they say.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("Pods", "pods"),
    ("Object", "object"),
    ("External", "external"),
];

const INT32_MAX: i64 = i32::MAX as i64;

/// A HorizontalPodAutoscaler object. What the API server refuses of one whatever its release is refused.
///
/// Source: Kubernetes 1.36 `pkg/apis/autoscaling/v1/conversion.go` for the `v1` form, `pkg/apis/autoscaling/validation/validation.go`.
pub(super) fn autoscaler<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
) -> Result<HorizontalPodAutoscaler, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let ObjectName { namespace, name } = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let target = target_ref(reader, spec.required(reader, "scaleTargetRef")?)?;
    let target = ScaleTargetRef { kind: scaled_kind(target.kind), ..target };
    let min_replicas = spec.optional("minReplicas", |n, what| int32(reader, n, what, 0))?;
    let max_node = spec.required(reader, "maxReplicas")?;
    let max_replicas = int32(reader, max_node, "maxReplicas", 1)?;
    if min_replicas.is_some_and(|least| least > max_replicas) {
        return Err(reader
            .error(max_node.at, "`maxReplicas` is below `minReplicas`")
            .because("below the minimum")
            .help("raise `maxReplicas` or lower `minReplicas`"));
    }
    let version = object.get("apiVersion").and_then(Node::as_text).unwrap_or_default();
    let (first, old) = (version.ends_with("/v1"), version.ends_with("/v2beta1"));
    let mut metrics = if first { hpa_annotations::metrics(reader, object)? } else { Vec::new() };
    for node in spec.optional("metrics", |n, what| reader.list(n, what))?.unwrap_or_default() {
        metrics.push(if old { hpa_old::metric(reader, node)? } else { metric(reader, node)? });
    }
    if let Some(node) = spec.get("targetCPUUtilizationPercentage") {
        let percent = int32(reader, node, "targetCPUUtilizationPercentage", 1)?;
        let source = MetricSource::Resource { name: ResourceName::CPU };
        metrics.push(MetricSpec { source, target: MetricTarget::Utilization(percent) });
    }
    if min_replicas == Some(0) && !metrics.iter().any(is_there_without_pods) {
        let at = spec.get("minReplicas").map_or(max_node.at, |node| node.at);
        return Err(reader
            .error(at, "`minReplicas: 0` needs an Object or External metric: with zero pods, no other metric can trigger a scale-up")
            .because("the API server refuses it")
            .help("state 1 or more, or a metric that is there without pods"));
    }
    let behavior = match spec.get("behavior") {
        Some(node) => Some(behavior(reader, node)?),
        None if first || old => hpa_annotations::behavior(reader, object)?,
        None => None,
    };
    Ok(HorizontalPodAutoscaler { namespace, name, target, min_replicas, max_replicas, metrics, behavior })
}

/// Whether the metric can be read while there are no pods.
const fn is_there_without_pods(metric: &MetricSpec) -> bool {
    matches!(metric.source, MetricSource::Object { .. } | MetricSource::External { .. })
}

/// A whole number of at least `least` that fits 32 bits.
pub(super) fn int32(reader: &Reader<'_>, node: &Node<'_>, what: &str, least: i64) -> Result<i32, InputError> {
    let number = reader.integer(node, what, least, INT32_MAX)?;
    Ok(i32::try_from(number).unwrap_or(i32::MAX))
}

pub(super) fn target_ref<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<ScaleTargetRef, InputError> {
    let fields = reader.fields(node, &TARGET_REF)?;
    Ok(ScaleTargetRef {
        kind: reader.symbol(fields.required(reader, "kind")?, "kind")?,
        name: reader.symbol(fields.required(reader, "name")?, "name")?,
    })
}

fn metric<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<MetricSpec, InputError> {
    let fields = reader.fields(node, &METRIC)?;
    let key = reader.choice(fields.required(reader, "type")?, "type", KINDS)?;
    let inner = reader.fields(fields.required(reader, key)?, &SOURCE)?;
    let resource = |reader: &Reader<'s>| -> Result<ResourceName, InputError> {
        Ok(ResourceName(reader.symbol(inner.required(reader, "name")?, "name")?))
    };
    let source = match key {
        "resource" => MetricSource::Resource { name: resource(reader)? },
        "containerResource" => MetricSource::ContainerResource {
            name: resource(reader)?,
            container: reader.symbol(inner.required(reader, "container")?, "container")?,
        },
        _ => {
            let (metric, selector) = metric_name(reader, inner)?;
            match key {
                "pods" => MetricSource::Pods { metric, selector },
                "object" => {
                    let object = target_ref(reader, inner.required(reader, "describedObject")?)?;
                    MetricSource::Object { metric, selector, object }
                }
                _ => MetricSource::External { metric, selector },
            }
        }
    };
    Ok(MetricSpec { source, target: target(reader, inner.required(reader, "target")?, target_kinds(key))? })
}

fn metric_name<'s>(
    reader: &mut Reader<'s>,
    inner: Fields<'_, 's>,
) -> Result<(Symbol, Option<LabelSelector>), InputError> {
    let fields = reader.fields(inner.required(reader, "metric")?, &METRIC_NAME)?;
    let name = reader.symbol(fields.required(reader, "name")?, "name")?;
    let selector = fields.get("selector").map(|n| label_selector(reader, n)).transpose()?;
    Ok((name, selector))
}

/// The types that the target of such a metric may have, with the key of what they say.
///
/// Source: Kubernetes 1.36 `pkg/apis/autoscaling/validation/validation.go`, `validateResourceSource`, `validatePodsSource` and the like.
fn target_kinds(metric: &str) -> &'static [(&'static str, &'static str)] {
    match metric {
        "resource" | "containerResource" => &[("Utilization", "averageUtilization"), ("AverageValue", "averageValue")],
        "pods" => &[("AverageValue", "averageValue")],
        _ => &[("AverageValue", "averageValue"), ("Value", "value")],
    }
}

fn target<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    kinds: &[(&'static str, &'static str)],
) -> Result<MetricTarget, InputError> {
    let fields = reader.fields(node, &TARGET)?;
    let key = target_kind(reader, fields.required(reader, "type")?, kinds)?;
    let value = fields.required(reader, key)?;
    if key == "averageUtilization" {
        return int32(reader, value, key, 1).map(MetricTarget::Utilization);
    }
    let quantity = reader.quantity(value, key)?;
    if quantity.nanos() <= 0 {
        return Err(reader
            .error(value.at, format!("`{key}` is not above zero"))
            .because("must be above zero")
            .help("set the target value for the autoscaler"));
    }
    Ok(if key == "averageValue" { MetricTarget::AverageValue(quantity) } else { MetricTarget::Value(quantity) })
}

/// The key of what a target of this type says; one that such a metric cannot have is told with those that it can.
fn target_kind<'s>(
    reader: &Reader<'s>,
    node: &Node<'s>,
    kinds: &[(&'static str, &'static str)],
) -> Result<&'static str, InputError> {
    const ALL: [&str; 3] = ["Utilization", "AverageValue", "Value"];
    let stated = node.as_text().unwrap_or_default();
    if kinds.iter().any(|kind| kind.0 == stated) || !ALL.contains(&stated) {
        return reader.choice(node, "type", kinds);
    }
    let may: Vec<&str> = kinds.iter().map(|kind| kind.0).collect();
    Err(reader
        .error(node.at, format!("target type `{stated}` is not valid for this metric"))
        .because("the API server refuses it")
        .help(format!("state {}", may.join(" or "))))
}

/// A behavior block.
pub(super) fn behavior<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Behavior, InputError> {
    let fields = reader.fields(node, &BEHAVIOR)?;
    let mut rules = |key| match fields.get(key) {
        Some(node) => scaling_rules(reader, node),
        None => Ok(ScalingRules::default()),
    };
    Ok(Behavior { scale_up: rules("scaleUp")?, scale_down: rules("scaleDown")? })
}

fn scaling_rules<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<ScalingRules, InputError> {
    const SELECT: &[(&str, SelectPolicy)] =
        &[("Max", SelectPolicy::Max), ("Min", SelectPolicy::Min), ("Disabled", SelectPolicy::Disabled)];
    let fields = reader.fields(node, &RULES)?;
    let window = fields.optional("stabilizationWindowSeconds", |n, what| reader.integer(n, what, 0, 3_600))?;
    let policies = match fields.optional("policies", |n, what| reader.list(n, what))? {
        Some([]) => {
            let at = fields.get("policies").map_or(node.at, |field| field.at);
            return Err(reader
                .error(at, "`policies` is an empty list")
                .because("the API server refuses it")
                .help("remove the key to use the default policies, or set `selectPolicy: Disabled` to block changes"));
        }
        Some(items) => Some(items.iter().map(|n| scaling_policy(reader, n)).collect::<Result<_, _>>()?),
        None => None,
    };
    Ok(ScalingRules {
        stabilization_window: window.map(SimDuration::from_secs),
        select_policy: fields.optional("selectPolicy", |n, what| reader.choice(n, what, SELECT))?,
        policies,
        tolerance: fields.optional("tolerance", |n, what| tolerance(reader, n, what))?,
    })
}

/// How far a metric may be off before anybody acts.
///
/// Source: Kubernetes 1.36 `pkg/apis/autoscaling/validation/validation.go`, `validateScalingRules`.
fn tolerance(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<Quantity, InputError> {
    let tolerance = reader.quantity(node, what)?;
    if tolerance.nanos() >= 0 {
        return Ok(tolerance);
    }
    Err(reader
        .error(node.at, format!("`{what}` is negative"))
        .because("below zero")
        .help("write a share of 0 or more: `0.05`"))
}

fn scaling_policy<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<ScalingPolicy, InputError> {
    const KINDS: &[(&str, ScalingPolicyKind)] =
        &[("Pods", ScalingPolicyKind::Pods), ("Percent", ScalingPolicyKind::Percent)];
    let fields = reader.fields(node, &POLICY)?;
    let period = reader.integer(fields.required(reader, "periodSeconds")?, "periodSeconds", 1, 1_800)?;
    Ok(ScalingPolicy {
        kind: reader.choice(fields.required(reader, "type")?, "type", KINDS)?,
        value: int32(reader, fields.required(reader, "value")?, "value", 1)?,
        period: SimDuration::from_secs(period),
    })
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;

    /// What is said against an autoscaler whose specification goes on so; nothing where it is read.
    fn refused(version: &str, spec: &str) -> String {
        let text = format!(
            "apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web}}\n\
             spec: {{scaleTargetRef: {{kind: Deployment, name: web}}, maxReplicas: 10, {spec}}}\n"
        );
        read_manifests(&Source::new("hpa.yaml", text)).err().map_or_else(String::new, |error| error.to_string())
    }

    fn target_manifest(kind: &str, source: &str, target: &str) -> String {
        refused("v2", &format!("metrics: [{{type: {kind}, {source}, target: {{{target}}}}}}}]"))
    }

    #[test]
    fn scale_to_zero_needs_external_metric() {
        let cpu = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}";
        let depth = "{type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: 5}}}";
        for metrics in ["[]".to_owned(), format!("[{cpu}]")] {
            let text = refused("v2", &format!("minReplicas: 0, metrics: {metrics}"));
            assert!(text.contains("`minReplicas: 0` needs an Object or External metric"), "{text}");
        }
        assert!(!refused("v1", "minReplicas: 0, targetCPUUtilizationPercentage: 50").is_empty());
        assert_eq!(refused("v2", &format!("minReplicas: 0, metrics: [{cpu}, {depth}]")), "");
        assert_eq!(refused("v2", &format!("minReplicas: 1, metrics: [{cpu}]")), "");
    }

    #[test]
    fn hpa_target_type_must_fit_metric() {
        let (share, mean, whole) = (
            "type: Utilization, averageUtilization: 5",
            "type: AverageValue, averageValue: 5",
            "type: Value, value: 5",
        );
        let object = "object: {metric: {name: x}, describedObject: {kind: Service, name: y}";
        for (kind, source, may) in [
            ("Resource", "resource: {name: cpu", [true, true, false]),
            ("ContainerResource", "containerResource: {name: cpu, container: c", [true, true, false]),
            ("Pods", "pods: {metric: {name: x}", [false, true, false]),
            ("Object", object, [false, true, true]),
            ("External", "external: {metric: {name: x}", [false, true, true]),
        ] {
            for (target, may) in [share, mean, whole].into_iter().zip(may) {
                let text = target_manifest(kind, source, target);
                assert_eq!(text.is_empty(), may, "{kind} {target}: {text}");
                assert!(may || text.contains("is not valid for this metric"), "{text}");
            }
        }
    }

    #[test]
    fn old_hpa_target_must_fit_metric() {
        let target_manifest =
            |kind: &str, source: &str| refused("v2beta1", &format!("metrics: [{{type: {kind}, {source}}}]"));
        assert_eq!(target_manifest("Resource", "resource: {name: cpu, targetAverageUtilization: 50}"), "");
        assert_ne!(target_manifest("Resource", "resource: {name: cpu, targetValue: 50}"), "");
        assert_eq!(target_manifest("Pods", "pods: {metricName: x, targetAverageValue: 50}"), "");
        assert_ne!(target_manifest("Pods", "pods: {metricName: x, targetValue: 50}"), "");
        assert_eq!(target_manifest("External", "external: {metricName: x, targetValue: 50}"), "");
    }

    #[test]
    fn an_empty_list_of_policies_is_refused() {
        for direction in ["scaleUp", "scaleDown"] {
            let text = refused("v2", &format!("behavior: {{{direction}: {{policies: []}}}}"));
            assert!(text.contains("`policies` is an empty list"), "{text}");
        }
        assert_eq!(refused("v2", "behavior: {scaleUp: {policies: null, stabilizationWindowSeconds: 0}}"), "");
    }
}
