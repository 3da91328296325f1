//! NodeClaims: what Karpenter has written down of the nodes that it launched.

use super::common::{instant, metadata_and_life};
use nodecast_model::domain::{NodeClaimObject, SimTime};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::Node;

static OBJECT: Shape = Shape {
    name: "a NodeClaim",
    keys: &["apiVersion", "kind", "metadata", "status"],
    without_effect: &["spec"],
    unsupported: &[],
    strict: false,
};
static STATUS: Shape = Shape {
    name: "a NodeClaim's status",
    keys: &["nodeName", "conditions", "lastPodEventTime"],
    without_effect: &["allocatable", "capacity", "imageID", "providerID"],
    unsupported: &[],
    strict: false,
};

/// A NodeClaim object.
pub(super) fn node_claim<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeClaimObject, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let name = metadata.name.name.as_str().to_owned();
    let mut claim =
        NodeClaimObject { name, created: life.created, deleting: life.deleting, ..NodeClaimObject::default() };
    if let Some(given) = fields.get("status") {
        let status = reader.fields(given, &STATUS)?;
        claim.node = status.optional("nodeName", |n, what| reader.text(n, what))?.map(str::to_owned);
        claim.last_pod_event = status.optional("lastPodEventTime", |n, what| instant(reader, n, what))?;
        if let Some(conditions) = status.get("conditions") {
            claim.initialized = true_since(reader, conditions, "Initialized")?;
            claim.drifted = true_since(reader, conditions, "Drifted")?;
        }
    }
    Ok(claim)
}

/// Since when the condition of this type is true, if it is.
fn true_since(reader: &Reader<'_>, conditions: &Node<'_>, kind: &str) -> Result<Option<SimTime>, InputError> {
    let says = |item: &Node<'_>, key: &str, text: &str| item.get(key).and_then(Node::as_text) == Some(text);
    let mut conditions = conditions.items().iter();
    let found = conditions.find(|item| says(item, "type", kind) && says(item, "status", "True"));
    found
        .and_then(|item| item.get("lastTransitionTime"))
        .map(|at| instant(reader, at, "lastTransitionTime"))
        .transpose()
}
