//! Node objects of a running cluster.

use super::common::{instant, metadata_and_life, resources, taints};
use nodecast_model::domain::{NodeObject, SimTime, Symbol, Taint, TaintEffect};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::{Node, NodeKind};

static OBJECT: Shape = Shape {
    name: "a Node",
    keys: &["apiVersion", "kind", "metadata", "spec", "status"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static SPEC: Shape = Shape {
    name: "a Node's spec",
    keys: &["taints", "unschedulable", "providerID"],
    without_effect: &["podCIDR", "podCIDRs", "externalID", "configSource"],
    unsupported: &[],
    strict: false,
};
static STATUS: Shape = Shape {
    name: "a Node's status",
    keys: &["capacity", "allocatable", "conditions"],
    without_effect: &[
        "addresses",
        "config",
        "daemonEndpoints",
        "features",
        "images",
        "nodeInfo",
        "phase",
        "runtimeHandlers",
        "volumesAttached",
        "volumesInUse",
        "declaredFeatures",
    ],
    unsupported: &[],
    strict: false,
};

/// A Node object.
pub(super) fn node<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeObject, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let mut node = NodeObject {
        name: metadata.name.name.as_str().to_owned(),
        labels: metadata.labels,
        annotations: metadata.annotations,
        ready: true,
        deleting: life.deleting,
        created: life.created,
        ..NodeObject::default()
    };
    if let Some(given) = fields.get("spec") {
        let spec = reader.fields(given, &SPEC)?;
        node.taints = taints(reader, spec, "taints")?;
        node.tainted = taint_times(reader, spec.get("taints"), &node.taints)?;
        node.unschedulable = spec.optional("unschedulable", |n, what| reader.truth(n, what))?.unwrap_or(false);
        node.provider_id = spec.optional("providerID", |n, what| reader.text(n, what))?.map(str::to_owned);
    }
    if let Some(given) = fields.get("status") {
        let status = reader.fields(given, &STATUS)?;
        node.capacity = resources(reader, status, "capacity")?;
        node.allocatable = resources(reader, status, "allocatable")?;
        node.ready = status.get("conditions").is_none_or(is_ready);
        node.heard_of = status.get("conditions").map_or(Ok(None), |list| last_heartbeat(reader, list))?;
    }
    if node.allocatable.is_empty() {
        node.allocatable = node.capacity.clone();
    } else if node.capacity.is_empty() {
        node.capacity = node.allocatable.clone();
    }
    Ok(node)
}

/// When the `NoExecute` taints were added, as far as they say: the node controllers write it, and for no other effect.
fn taint_times(
    reader: &Reader<'_>,
    list: Option<&Node<'_>>,
    taints: &[Taint],
) -> Result<Vec<(Symbol, SimTime)>, InputError> {
    let mut times = Vec::new();
    for (item, taint) in list.map_or(&[][..], Node::items).iter().zip(taints) {
        let stated = item.get("timeAdded").filter(|node| node.kind != NodeKind::Null);
        if let Some(node) = stated.filter(|_| taint.effect == TaintEffect::NoExecute) {
            times.push((taint.key, instant(reader, node, "timeAdded")?));
        }
    }
    Ok(times)
}

/// The latest heartbeat of the conditions.
fn last_heartbeat(reader: &Reader<'_>, conditions: &Node<'_>) -> Result<Option<SimTime>, InputError> {
    let stated = conditions.items().iter().filter_map(|item| item.get("lastHeartbeatTime"));
    let mut latest = None;
    for node in stated.filter(|node| node.kind != NodeKind::Null) {
        latest = latest.max(Some(instant(reader, node, "lastHeartbeatTime")?));
    }
    Ok(latest)
}

/// Whether the condition `Ready`, if there is one, is true.
pub(super) fn is_ready(conditions: &Node<'_>) -> bool {
    let ready = conditions.items().iter().find(|item| item.get("type").and_then(Node::as_text) == Some("Ready"));
    ready.and_then(|item| item.get("status")).and_then(Node::as_text).is_none_or(|status| status == "True")
}
