//! ServiceMonitors and PodMonitors of the Prometheus operator: they set how often a metric moves.

use super::common::{label_selector, metadata};
use super::pod::OBJECT;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{LabelSelector, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::Node;

static MONITOR: Shape = Shape {
    name: "a monitor's spec",
    keys: &["selector", "namespaceSelector", "endpoints", "podMetricsEndpoints"],
    without_effect: &[
        "jobLabel",
        "targetLabels",
        "podTargetLabels",
        "sampleLimit",
        "targetLimit",
        "labelLimit",
        "labelNameLengthLimit",
        "labelValueLengthLimit",
        "attachMetadata",
        "scrapeClass",
        "bodySizeLimit",
        "keepDroppedTargets",
        "scrapeProtocols",
        "fallbackScrapeProtocol",
        "selectorMechanism",
    ],
    unsupported: &[],
    strict: false,
};

/// A ServiceMonitor or PodMonitor: what Prometheus scrapes, and how often.
#[derive(Clone, PartialEq, Debug)]
pub struct Monitor {
    /// Namespace and name.
    pub name: ObjectName,
    /// Whether it selects Services rather than pods.
    pub of_services: bool,
    /// The Services or pods whose metrics are scraped.
    pub selector: LabelSelector,
    /// Namespaces that it looks into; `None` for all.
    pub namespaces: Option<Vec<Symbol>>,
    /// The shortest interval among its endpoints; `None` for Prometheus's own.
    pub interval: Option<SimDuration>,
}

/// A ServiceMonitor or PodMonitor object.
pub(super) fn monitor<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Monitor, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &MONITOR)?;
    let selector = spec.get("selector").map(|n| label_selector(reader, n)).transpose()?.unwrap_or_default();
    let mut interval: Option<SimDuration> = None;
    for key in ["endpoints", "podMetricsEndpoints"] {
        for endpoint in spec.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default() {
            if let Some(node) = endpoint.get("interval") {
                let duration = reader.duration(node, "interval")?;
                interval = Some(interval.map_or(duration, |shortest| shortest.min(duration)));
            }
        }
    }
    let elsewhere = spec.get("namespaceSelector");
    let any = elsewhere.and_then(|n| n.get("any")).and_then(Node::as_text) == Some("true");
    let listed = elsewhere.and_then(|n| n.get("matchNames")).map(Node::items).unwrap_or_default();
    let listed: Vec<Symbol> = listed.iter().filter_map(Node::as_text).map(Symbol::new).collect();
    let namespaces = match (any, listed.is_empty()) {
        (true, _) => None,
        (false, true) => Some(vec![name.namespace]),
        (false, false) => Some(listed),
    };
    Ok(Monitor { name, of_services: spec.get("endpoints").is_some(), selector, namespaces, interval })
}
