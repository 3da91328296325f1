//! Containers that something adds to pods when they are made (the proxy of a mesh, an agent): templates do not have them and running
//! pods do, so templates take them over.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::objects::{Object, find, find_mut, map};
use super::rebuilt::{simulated_as, workload_of};
use super::{Dump, Notes};
use crate::domain::words::counted;
use crate::tree::{Entry, Location, Node, NodeKind};

/// Keys of a container that say what it asks for.
const CONTAINER: [&str; 5] = ["name", "image", "resources", "restartPolicy", "ports"];

/// Adds to each template the containers that its newest pod has and it has not.
pub(super) fn containers(dump: &mut Dump<'_>, notes: &mut Notes) {
    let mut newest: BTreeMap<(&'static str, String, String), usize> = BTreeMap::new();
    for (position, pod) in dump.pods.iter().enumerate() {
        let Some((kind, name)) = workload_of(pod) else { continue };
        let created = |position: usize| dump.pods[position].text(&["metadata", "creationTimestamp"]);
        let newest = newest.entry((kind, pod.own_namespace().to_owned(), name.to_owned())).or_insert(position);
        if created(position) > created(*newest) {
            *newest = position;
        }
    }
    let (mut names, mut count) = (BTreeSet::new(), 0_u64);
    for object in &mut dump.carried {
        let Some(kind) = simulated_as(&object.kind) else { continue };
        let namespace = object.own_namespace().to_owned();
        let Some(&pod) = newest.get(&(kind, namespace, object.name.clone())) else { continue };
        let added = add(object, &dump.pods[pod]);
        count += u64::from(!added.is_empty());
        names.extend(added);
    }
    if count > 0 {
        let all: Vec<String> = names.into_iter().collect();
        notes.assume(format!(
            "{} what is added to their pods when they are made, as the newest pods show it: {}.",
            counted(count, "workload has", "workloads have"),
            all.join(", ")
        ));
    }
}

/// The names of what a template lacks and a pod of it has, now added.
fn add<'s>(object: &mut Object<'s>, pod: &Object<'s>) -> Vec<String> {
    let mut added = Vec::new();
    for list in ["containers", "initContainers"] {
        let Some(spec) = find_mut(Rc::make_mut(&mut object.node), &["spec", "template", "spec"]) else { continue };
        let name = |container: &Node<'s>| container.get("name").and_then(Node::as_text).unwrap_or_default().to_owned();
        let known: BTreeSet<String> = find(spec, &[list]).map_or(&[][..], Node::items).iter().map(&name).collect();
        let pod = pod.at(&["spec", list]).map_or(&[][..], Node::items).iter();
        // What only runs before the others changes no request that counts.
        let stays = |container: &&Node<'s>| {
            list == "containers" || container.get("restartPolicy").and_then(Node::as_text) == Some("Always")
        };
        let missing: Vec<Node<'s>> =
            pod.filter(|container| !known.contains(&name(container))).filter(stays).map(short).collect();
        added.extend(missing.iter().map(&name));
        match find_mut(spec, &[list]) {
            Some(Node { kind: NodeKind::Seq(items), .. }) => items.extend(missing),
            _ if missing.is_empty() => {}
            _ => {
                if let NodeKind::Map(entries) = &mut spec.kind {
                    let items = Node { kind: NodeKind::Seq(missing), at: Location::NONE };
                    entries.push(Entry::new(list.into(), Location::NONE, items));
                }
            }
        }
    }
    added
}

/// What of a container says what it asks for.
fn short<'s>(container: &Node<'s>) -> Node<'s> {
    let mut object = map([]);
    if let (NodeKind::Map(kept), NodeKind::Map(entries)) = (&mut object.kind, &container.kind) {
        kept.extend(entries.iter().filter(|entry| CONTAINER.contains(&&*entry.key)).cloned());
    }
    object.at = container.at;
    object
}
