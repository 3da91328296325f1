//! Metrics of HorizontalPodAutoscalers in the form of `autoscaling/v2beta1`.
//!
//! Source: Kubernetes 1.21 `staging/src/k8s.io/api/autoscaling/v2beta1/types.go`.

use super::common::label_selector;
use super::hpa::{KINDS, METRIC, int32, target_ref};
use nodecast_model::domain::hpa::{MetricSource, MetricSpec, MetricTarget};
use nodecast_model::domain::{LabelSelector, ResourceName, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static SOURCE: Shape = Shape {
    name: "a metric's source of `autoscaling/v2beta1`",
    keys: &[
        "name",
        "container",
        "metricName",
        "metricSelector",
        "selector",
        "target",
        "targetValue",
        "averageValue",
        "targetAverageValue",
        "targetAverageUtilization",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// A metric.
pub(super) fn metric<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<MetricSpec, InputError> {
    let fields = reader.fields(node, &METRIC)?;
    let key = reader.choice(fields.required(reader, "type")?, "type", KINDS)?;
    let inner = reader.fields(fields.required(reader, key)?, &SOURCE)?;
    let named = |reader: &Reader<'s>, what| -> Result<Symbol, InputError> {
        reader.symbol(inner.required(reader, what)?, what)
    };
    let source = match key {
        "resource" => MetricSource::Resource { name: ResourceName(named(reader, "name")?) },
        "containerResource" => MetricSource::ContainerResource {
            name: ResourceName(named(reader, "name")?),
            container: named(reader, "container")?,
        },
        _ => {
            let metric = named(reader, "metricName")?;
            let selector = selector(reader, inner)?;
            match key {
                "pods" => MetricSource::Pods { metric, selector },
                "object" => {
                    let object = target_ref(reader, inner.required(reader, "target")?)?;
                    MetricSource::Object { metric, selector, object }
                }
                _ => MetricSource::External { metric, selector },
            }
        }
    };
    Ok(MetricSpec { source, target: target(reader, inner, key)? })
}

fn selector<'s>(reader: &mut Reader<'s>, inner: Fields<'_, 's>) -> Result<Option<LabelSelector>, InputError> {
    let node = inner.get("metricSelector").or_else(|| inner.get("selector"));
    node.map(|node| label_selector(reader, node)).transpose()
}

/// The target, which stands beside the metric; one for each pod goes before one for all. A key that such a metric does not have counts as
/// not given.
fn target<'s>(reader: &Reader<'s>, inner: Fields<'_, 's>, metric: &str) -> Result<MetricTarget, InputError> {
    if matches!(metric, "resource" | "containerResource") {
        if let Some(node) = inner.get("targetAverageValue") {
            return reader.quantity(node, "targetAverageValue").map(MetricTarget::AverageValue);
        }
        let node = inner.required(reader, "targetAverageUtilization")?;
        return int32(reader, node, "targetAverageUtilization", 1).map(MetricTarget::Utilization);
    }
    for key in ["targetAverageValue", "averageValue"] {
        if let Some(node) = inner.get(key) {
            return reader.quantity(node, key).map(MetricTarget::AverageValue);
        }
    }
    let key = if metric == "pods" { "targetAverageValue" } else { "targetValue" };
    reader.quantity(inner.required(reader, key)?, key).map(MetricTarget::Value)
}
