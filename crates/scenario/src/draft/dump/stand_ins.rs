//! Deployments that stand for pods whose controller is not simulated: which pods share one, and which count together.
//!
//! Must not: make the Deployments (`rebuilt`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Notes;
use super::objects::{Object, find};
use super::rebuilt::workload_of;
use super::targets::names_target;
use super::yaml::{self, word};
use crate::tree::Node;

/// An object that controls pods: its kind and `namespace/name`.
type Controller = (String, String);

/// The controllers that are not simulated and whose pods are no copies of each other.
#[derive(Default, Debug)]
pub(super) struct StandIns {
    apart: BTreeSet<Controller>,
}

impl StandIns {
    /// Looks which controllers have pods with volumes of their own, or pods that differ. An object that something scales has pods that are
    /// alike.
    pub(super) fn from_objects(objects: &[Object<'_>]) -> Self {
        let mut shapes: BTreeMap<Controller, BTreeSet<String>> = BTreeMap::new();
        let mut apart = BTreeSet::new();
        for pod in objects.iter().filter(|object| object.kind == "Pod" && !object.is_deleted() && !has_ended(object)) {
            let Some(controller) = controller_of(pod) else { continue };
            if has_claim(pod) {
                apart.insert(controller.clone());
            }
            shapes.entry(controller).or_default().insert(shape(pod));
        }
        let scaled: BTreeSet<Controller> = objects.iter().filter_map(names_target).collect();
        let differ = shapes.into_iter().filter(|(key, shapes)| shapes.len() > 1 && !scaled.contains(key));
        apart.extend(differ.map(|(item, _)| item));
        Self { apart }
    }

    /// The Deployment that stands in for the controller of a pod; one for each pod where they are no copies of each other.
    pub(super) fn name_of<'o>(&self, pod: &'o Object<'_>) -> Option<&'o str> {
        let controller = controller_of(pod)?;
        let (_, name) = pod.controller()?;
        Some(if self.apart.contains(&controller) { &pod.name } else { name })
    }
}

/// What controls a pod, if that is not simulated.
fn controller_of(pod: &Object<'_>) -> Option<Controller> {
    let (kind, name) = pod.controller().filter(|_| pod.kind == "Pod")?;
    if ["Node", "Job"].contains(&kind) || workload_of(pod).is_some() {
        return None;
    }
    Some((kind.to_owned(), format!("{}/{name}", pod.own_namespace())))
}

fn has_ended(pod: &Object<'_>) -> bool {
    ["Succeeded", "Failed"].contains(&pod.text(&["status", "phase"]).unwrap_or_default())
}

/// Whether a pod has a PersistentVolumeClaim.
fn has_claim(pod: &Object<'_>) -> bool {
    let volumes = pod.at(&["spec", "volumes"]).map_or(&[][..], Node::items);
    volumes.iter().any(|volume| volume.get("persistentVolumeClaim").is_some())
}

/// What of a pod decides on its room: what its containers request, and the nodes that it selects.
fn shape(pod: &Object<'_>) -> String {
    let containers = ["initContainers", "containers"].iter().filter_map(|list| pod.at(&["spec", list]));
    let mut text = String::new();
    for container in containers.flat_map(Node::items) {
        text += container.get("name").and_then(Node::as_text).unwrap_or_default();
        find(container, &["resources", "requests"]).into_iter().for_each(|item| yaml::document(item, &mut text));
    }
    pod.at(&["spec", "nodeSelector"]).into_iter().for_each(|pod| yaml::document(pod, &mut text));
    text
}

/// Deployments of one pod each that stand in for one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parts {
    /// What they count as, and the kind of the object.
    whole: (String, String),
    /// The Deployments, by `namespace/name`.
    names: Vec<String>,
}

/// The Deployments among `stand_ins` that count as one workload: of each the Deployment, and the pod that it is made of. A name that a
/// workload has already (`is_taken`) gets the kind of the object behind it.
pub(super) fn parts<'o>(
    stand_ins: impl Iterator<Item = (&'o str, &'o Object<'o>)>,
    is_taken: impl Fn(&str) -> bool,
    notes: &mut Notes,
) -> Vec<Parts> {
    let mut all: BTreeMap<Controller, Vec<String>> = BTreeMap::new();
    for (name, pod) in stand_ins {
        if let Some(controller) = controller_of(pod) {
            all.entry(controller).or_default().push(format!("{}/{name}", pod.own_namespace()));
        }
    }
    let several = all.into_iter().filter(|(_, names)| names.len() > 1);
    let parts: Vec<Parts> = several
        .map(|((kind, name), names)| {
            let whole = if is_taken(&name) { format!("{name}-{}", kind.to_ascii_lowercase()) } else { name };
            Parts { whole: (whole, kind), names }
        })
        .collect();
    for Parts { whole: (whole, kind), names } in &parts {
        notes.assume(format!(
            "The {} pods of the {kind} {whole} are a Deployment each, because each has a volume of its own or other requests. They count as one workload: it has zero Ready replicas only while none of them is Ready.",
            names.len()
        ));
    }
    parts
}

/// Lines of the section `workloads`.
pub(super) fn lines(parts: &[Parts], text: &mut String) {
    for Parts { whole: (whole, kind), names } in parts {
        for name in names {
            let _ = writeln!(text, "  - {{ name: {}, part_of: {} }}     # {kind}", word(name), word(whole));
        }
    }
}
