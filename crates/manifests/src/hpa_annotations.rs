//! What HorizontalPodAutoscalers of older API versions say in annotations: whatever their versions have no field for.
//!
//! A malformed annotation counts as none, as the API server takes it.
//!
//! Source: Kubernetes 1.36 `pkg/apis/autoscaling/annotations.go`; `pkg/apis/autoscaling/v1/conversion.go` and, of Kubernetes 1.24,
//! `v2beta1/conversion.go`, `Convert_*_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler`.

use std::borrow::Cow;

use serde_json::Value;

use super::{hpa, hpa_old};
use crate::lints;
use nodecast_model::domain::hpa::{Behavior, MetricSpec};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Entry, Location, Node, NodeKind};

/// The scaling behavior.
pub(super) const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// Metrics beside CPU utilization, in the form of `autoscaling/v1`, which is that of `v2beta1`.
pub(super) const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// The metrics of an `autoscaling/v1` object that are not its CPU utilization.
///
/// # Errors
/// If they are read but cannot be what they say.
pub(super) fn metrics<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Vec<MetricSpec>, InputError> {
    let Some(node) = annotation(reader, object, METRICS) else { return Ok(Vec::new()) };
    node.items().iter().map(|node| hpa_old::metric(reader, node)).collect()
}

/// The behavior of an object whose version has no `behavior`.
///
/// # Errors
/// If it is read but cannot be what it says.
pub(super) fn behavior<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Option<Behavior>, InputError> {
    let Some(node) = annotation(reader, object, BEHAVIOR) else { return Ok(None) };
    hpa::behavior(reader, &node).map(Some)
}

/// The JSON of an annotation, all of which stands where the annotation does.
fn annotation<'s>(reader: &mut Reader<'s>, object: &Node<'s>, key: &str) -> Option<Node<'static>> {
    let node = object.get("metadata")?.get("annotations")?.get(key)?;
    let read = serde_json::from_str::<Value>(node.as_text()?).ok();
    match read.filter(|value| value.is_object() == (key == BEHAVIOR) && value.is_array() == (key == METRICS)) {
        Some(value) => Some(tree(value, node.at)),
        None => {
            let message = format!("the annotation `{key}` is not valid JSON for its schema; the API server ignores it");
            reader.warn(
                &lints::HPA_ANNOTATION,
                node.at,
                message,
                "cannot be read",
                "write the autoscaler as `autoscaling/v2`, which has a field for it",
            );
            None
        }
    }
}

/// A JSON value as a tree. Go writes the names of the fields of its own types, `ScaleDown`, and reads keys in any case.
fn tree(value: Value, at: Location) -> Node<'static> {
    let scalar = |text: String, plain| NodeKind::Scalar { text: Cow::Owned(text), plain };
    let kind = match value {
        Value::Null => NodeKind::Null,
        Value::Bool(truth) => scalar(truth.to_string(), true),
        Value::Number(number) => scalar(number.to_string(), true),
        Value::String(text) => scalar(text, false),
        Value::Array(items) => NodeKind::Seq(items.into_iter().map(|item| tree(item, at)).collect()),
        Value::Object(fields) => {
            let entry = |(key, value)| Entry::new(Cow::Owned(uncapitalized(key)), at, tree(value, at));
            NodeKind::Map(fields.into_iter().map(entry).collect())
        }
    };
    Node { kind, at }
}

fn uncapitalized(mut key: String) -> String {
    if let Some(first) = key.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    key
}

#[cfg(test)]
mod tests {
    use crate::{Manifests, read_manifests};
    use nodecast_model::domain::hpa::{MetricSource, MetricTarget, ScalingPolicyKind, ScalingRules, SelectPolicy};
    use nodecast_model::domain::{HorizontalPodAutoscaler, SimDuration};
    use nodecast_model::text::Source;

    fn read(version: &str, annotations: &str) -> Manifests {
        let text = format!(
            "apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: web\n  annotations:\n{annotations}\
             spec:\n  scaleTargetRef: {{kind: Deployment, name: web}}\n  maxReplicas: 10\n  targetCPUUtilizationPercentage: 50\n"
        );
        read_manifests(&Source::new("hpa.yaml", text)).unwrap()
    }

    fn autoscaler(version: &str, annotations: &str) -> HorizontalPodAutoscaler {
        read(version, annotations).autoscalers.remove(0)
    }

    const BEHAVIOR: &str = "    autoscaling.alpha.kubernetes.io/behavior: '{\"ScaleUp\":null,\"ScaleDown\":{\"StabilizationWindowSeconds\":60,\
        \"SelectPolicy\":\"Min\",\"Policies\":[{\"Type\":\"Pods\",\"Value\":4,\"PeriodSeconds\":30}],\"Tolerance\":null}}'\n";

    #[test]
    fn old_hpa_reads_behavior_from_annotation() {
        let behavior = autoscaler("v1", BEHAVIOR).behavior.unwrap();
        assert_eq!(behavior.scale_up, ScalingRules::default());
        let down = behavior.scale_down;
        assert_eq!(down.stabilization_window, Some(SimDuration::from_secs(60)));
        assert_eq!(down.select_policy, Some(SelectPolicy::Min));
        let policies = down.policies.unwrap();
        assert_eq!((policies[0].kind, policies[0].value), (ScalingPolicyKind::Pods, 4));
        let lower = BEHAVIOR.replace("ScaleDown", "scaleDown").replace("SelectPolicy", "selectPolicy");
        assert_eq!(autoscaler("v1", &lower), autoscaler("v1", BEHAVIOR));
        assert_eq!(autoscaler("v2", BEHAVIOR).behavior, None, "it has a field for it");
    }

    #[test]
    fn annotation_metrics_precede_cpu_utilization() {
        let metrics = "    autoscaling.alpha.kubernetes.io/metrics: '[{\"type\":\"External\",\"external\":{\"metricName\":\"queue\",\
            \"targetAverageValue\":\"30\"}},{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageUtilization\":70}}]'\n";
        let found = autoscaler("v1", metrics).metrics;
        assert_eq!(found.len(), 3);
        assert!(matches!(found[0].source, MetricSource::External { .. }), "{found:?}");
        assert_eq!(found[1].target, MetricTarget::Utilization(70));
        assert_eq!(found[2].target, MetricTarget::Utilization(50));
    }

    #[test]
    fn malformed_hpa_annotation_is_ignored_with_warning() {
        for value in ["'{'", "'[]'", "text"] {
            let objects = read("v1", &format!("    autoscaling.alpha.kubernetes.io/behavior: {value}\n"));
            assert_eq!(objects.autoscalers[0].behavior, None);
            assert_eq!(objects.warnings.len(), 1, "{value}");
        }
    }
}
