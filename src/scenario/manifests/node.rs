//! Node objects of a running cluster.

use super::common::{metadata_and_life, resources, taints};
use crate::domain::NodeObject;
use crate::scenario::ScenarioError;
use crate::scenario::reader::{Reader, Shape};
use crate::scenario::tree::Node;

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
pub(super) fn node<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeObject, ScenarioError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let mut node = NodeObject {
        name: metadata.name.name.as_str().to_owned(),
        labels: metadata.labels,
        annotations: metadata.annotations,
        ready: true,
        deleting: life.deleting,
        ..NodeObject::default()
    };
    if let Some(given) = fields.get("spec") {
        let spec = reader.fields(given, &SPEC)?;
        node.taints = taints(reader, spec, "taints")?;
        node.unschedulable = spec.optional("unschedulable", |n, what| reader.truth(n, what))?.unwrap_or(false);
        node.provider_id = spec.optional("providerID", |n, what| reader.text(n, what))?.map(str::to_owned);
    }
    if let Some(given) = fields.get("status") {
        let status = reader.fields(given, &STATUS)?;
        node.capacity = resources(reader, status, "capacity")?;
        node.allocatable = resources(reader, status, "allocatable")?;
        node.ready = status.get("conditions").is_none_or(is_ready);
    }
    if node.allocatable.is_empty() {
        node.allocatable = node.capacity.clone();
    } else if node.capacity.is_empty() {
        node.capacity = node.allocatable.clone();
    }
    Ok(node)
}

/// Whether the condition `Ready`, if there is one, is true.
pub(super) fn is_ready(conditions: &Node<'_>) -> bool {
    let ready = conditions.items().iter().find(|item| item.get("type").and_then(Node::as_text) == Some("Ready"));
    ready.and_then(|item| item.get("status")).and_then(Node::as_text).is_none_or(|status| status == "True")
}
