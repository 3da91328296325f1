//! What runs in a dumped cluster, in as few words as a run needs to begin with it: nodes, NodeClaims, and pods with their nodes.
//!
//! What must not live here: what controllers make pods of (`rebuilt`, and what the dump carries).

use std::rc::Rc;

use super::objects::{Object, find, map, scalar};
use super::{DraftFile, Dump, yaml};
use crate::error::ScenarioError;
use crate::tree::{Entry, Location, Node, NodeKind};

/// The file of what runs.
pub(super) const FILE: &str = "dump.yaml";
/// Objects that are in memory in this form at a time: a large cluster has many pods.
const AT_A_TIME: usize = 1_000;
/// Keys of a container that say what it asks for.
const CONTAINER: [&str; 4] = ["name", "image", "resources", "restartPolicy"];
/// Keys of a pod that say where it may run, of use where nothing else says so.
const PLACEMENT: [&str; 7] = [
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "priority",
    "terminationGracePeriodSeconds",
];
/// Controllers whose template says so.
const WITH_TEMPLATE: [&str; 4] = ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"];

/// What runs, in as few words.
fn objects<'d, 's>(dump: &'d Dump<'s>) -> impl Iterator<Item = Object<'s>> + use<'d, 's> {
    let short = |object: &Object<'s>, node: Node<'s>| Object { node: Rc::new(node), ..object.clone() };
    let nodes = dump.nodes.iter().map(move |this_node| short(this_node, node(this_node)));
    let claims = dump.claims.iter().map(move |this_claim| short(this_claim, claim(this_claim)));
    nodes.chain(claims).chain(dump.running.iter().map(move |dump| short(dump, pod(dump))))
}

/// The file of what runs; none if there are no nodes. `check` gets all of its objects, at most [`AT_A_TIME`] per call.
///
/// # Errors
/// That of `check`.
pub(super) fn file<'s>(
    dump: &Dump<'s>,
    check: impl Fn(&[Object<'s>]) -> Result<(), ScenarioError>,
) -> Result<Option<DraftFile>, ScenarioError> {
    if dump.nodes.is_empty() {
        return Ok(None);
    }
    let mut documents = String::new();
    let mut left = dump.nodes.len() + dump.claims.len() + dump.running.len();
    let mut all = objects(dump);
    loop {
        let some: Vec<Object<'s>> = all.by_ref().take(AT_A_TIME).collect();
        if some.is_empty() {
            let about = "# What ran in the cluster: nodes, and pods with their nodes. The run begins with it; what makes the pods is in the other files.\n";
            // In place, because a second text would be as large.
            documents.insert_str(0, about);
            return Ok(Some(DraftFile { name: FILE.into(), text: documents }));
        }
        check(&some)?;
        let before = documents.len();
        some.iter().for_each(|object| yaml::document(&object.node, &mut documents));
        // Room for the rest, if it is as long as these objects: a text that grows is copied.
        left -= some.len();
        documents.reserve((documents.len() - before) / some.len() * left);
    }
}

/// Those of `keys` that a map has.
fn only<'s>(node: Option<&Node<'s>>, keys: &[&str]) -> Node<'s> {
    let Some(Node { kind: NodeKind::Map(entries), at }) = node else { return map([]) };
    let entry = entries.iter().filter(|entry| keys.contains(&&*entry.key)).cloned();
    Node { kind: NodeKind::Map(entry.collect()), at: *at }
}

/// An object with these parts, as far as they hold anything.
fn object<'s>(this_object: &Object<'s>, parts: impl IntoIterator<Item = (&'static str, Node<'s>)>) -> Node<'s> {
    let mut object = only(Some(&this_object.node), &["apiVersion", "kind"]);
    if let NodeKind::Map(entries) = &mut object.kind {
        let full = parts
            .into_iter()
            .filter(|(_, part)| !matches!(&part.kind, NodeKind::Map(this_object) if this_object.is_empty()));
        entries.extend(full.map(|(key, part)| Entry::new(key.into(), Location::NONE, part)));
    }
    object
}

/// The conditions that are of some of these types, without what they say in words; those of all types if none is named.
fn conditions<'s>(object: &Object<'s>, types: &[&str]) -> Option<(&'static str, Node<'s>)> {
    const KEYS: [&str; 5] = ["type", "status", "reason", "lastHeartbeatTime", "lastTransitionTime"];
    let all = object.at(&["status", "conditions"])?.items().iter();
    let wanted = all.filter(|condition| {
        let kind = condition.get("type").and_then(Node::as_text).unwrap_or_default();
        types.is_empty() || types.contains(&kind)
    });
    let kept: Vec<Node<'s>> = wanted.map(|condition| only(Some(condition), &KEYS)).collect();
    Some(("conditions", Node { kind: NodeKind::Seq(kept), at: Location::NONE }))
}

/// A status of these keys and conditions.
fn status<'s>(object: &Object<'s>, keys: &[&str], types: &[&str]) -> Node<'s> {
    let mut status = only(object.at(&["status"]), keys);
    if let (NodeKind::Map(entries), Some((key, conditions))) = (&mut status.kind, conditions(object, types)) {
        entries.push(Entry::new(key.into(), Location::NONE, conditions));
    }
    status
}

fn node<'s>(this_object: &Object<'s>) -> Node<'s> {
    const METADATA: [&str; 5] = ["name", "labels", "annotations", "creationTimestamp", "deletionTimestamp"];
    object(
        this_object,
        [
            ("metadata", only(this_object.at(&["metadata"]), &METADATA)),
            ("spec", only(this_object.at(&["spec"]), &["providerID", "taints", "unschedulable"])),
            ("status", status(this_object, &["capacity", "allocatable"], &["Ready"])),
        ],
    )
}

fn claim<'s>(this_object: &Object<'s>) -> Node<'s> {
    const METADATA: [&str; 4] = ["name", "labels", "creationTimestamp", "deletionTimestamp"];
    object(
        this_object,
        [
            ("metadata", only(this_object.at(&["metadata"]), &METADATA)),
            ("status", status(this_object, &["nodeName", "lastPodEventTime"], &[])),
        ],
    )
}

fn pod<'s>(this_object: &Object<'s>) -> Node<'s> {
    const METADATA: [&str; 5] = ["name", "namespace", "labels", "creationTimestamp", "deletionTimestamp"];
    let mut metadata = only(this_object.at(&["metadata"]), &METADATA);
    let controller = this_object.controller().map(|(kind, name)| (kind.to_owned(), name.to_owned()));
    if let (NodeKind::Map(entries), Some((kind, name))) = (&mut metadata.kind, &controller) {
        let owner =
            map([("kind", scalar(kind.clone())), ("name", scalar(name.clone())), ("controller", scalar("true"))]);
        let owners = Node { kind: NodeKind::Seq(vec![owner]), at: Location::NONE };
        entries.push(Entry::new("ownerReferences".into(), Location::NONE, owners));
    }
    let has_template = controller.is_some_and(|(kind, _)| WITH_TEMPLATE.contains(&&*kind));
    let mut keys = vec!["nodeName", "overhead"];
    if !has_template {
        keys.extend(PLACEMENT);
    }
    let mut spec = only(this_object.at(&["spec"]), &keys);
    for list in ["initContainers", "containers"] {
        let Some(containers) = this_object.at(&["spec", list]) else { continue };
        let kept = containers.items().iter().map(|container| only(Some(container), &CONTAINER)).collect();
        let kept = Node { kind: NodeKind::Seq(kept), at: Location::NONE };
        if let NodeKind::Map(entries) = &mut spec.kind {
            entries.push(Entry::new(list.into(), Location::NONE, kept));
        }
    }
    let status = status(this_object, &["phase"], &["Ready", "PodScheduled"]);
    object(this_object, [("metadata", metadata), ("spec", spec), ("status", status)])
}

/// Whether a pod has come to a node.
pub(super) fn is_placed(pod: &Object<'_>) -> bool {
    find(&pod.node, &["spec", "nodeName"]).and_then(Node::as_text).is_some_and(|name| !name.is_empty())
}
