//! What goes with what is on its way out: pods of a controller or of a namespace that is being deleted, and those of a Job that has
//! ended. They leave their nodes as the run begins, and nothing makes them again.
//!
//! Deviation: a controller that waits for a finalizer other than `foregroundDeletion` keeps its pods until the
//! finalizer is gone. Here its pods are deleted when the run starts.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/garbagecollector/garbagecollector.go`, `attemptToDeleteItem` (dependents of an object with
//! the finalizer `foregroundDeletion` are deleted before it, those of one that is gone after it, and those of one with `orphan` lose
//! their owner and stay); `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`, `Delete`;
//! `pkg/controller/job/job_controller.go`, `syncJob` (the active pods of a Job that has ended are deleted).
//!
//! What must not live here: pods that are being deleted themselves, whose objects say until when.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::jobs;
use super::makers::{Name, name, owner};
use super::objects::{Object, find_mut, remove, scalar, set};
use super::rebuilt::workload_of;
use super::{Dump, Notes};
use crate::domain::words::counted;
use crate::tree::Node;

/// The finalizer of an object whose dependents stay when it goes.
const ORPHAN: &str = "orphan";
/// `terminationGracePeriodSeconds` where a pod states none, as the API server sets it.
const GRACE: i64 = 30;
/// Objects that own each other in a row, at most: more are a circle.
const LONGEST: usize = 16;

/// What takes its pods with it.
#[derive(Default, Debug)]
pub(super) struct Ending {
    controllers: BTreeSet<Name>,
    namespaces: BTreeSet<String>,
    owners: BTreeMap<Name, Name>,
}

impl Ending {
    /// What goes of `objects`.
    pub(super) fn from_objects(objects: &[Object<'_>]) -> Self {
        let mut ending = Self::default();
        for object in objects {
            if object.kind == "Namespace" && object.is_deleted() {
                ending.namespaces.insert(object.name.clone());
            }
            let goes = object.is_deleted() && !["Node", "NodeClaim"].contains(&&*object.kind) && !orphans(object);
            if goes || object.kind == "Job" && jobs::has_ended(object) {
                ending.controllers.insert(name(object));
            }
            ending.owners.extend(owner(object).map(|owner| (name(object), owner)));
        }
        ending
    }

    /// Whether an object goes with what made it, at first or at second hand, or with its namespace.
    pub(super) fn takes(&self, object: &Object<'_>) -> bool {
        self.namespaces.contains(object.own_namespace()) || self.is_of_controller(object)
    }

    fn is_of_controller(&self, object: &Object<'_>) -> bool {
        if self.controllers.is_empty() {
            return false;
        }
        // A dump seldom has the ReplicaSets between Deployments and their pods.
        if let Some((kind, workload)) = workload_of(object) {
            let kinds: &[&str] = if kind == "Deployment" { &["Deployment", "Rollout"] } else { &[kind] };
            let full = format!("{}/{workload}", object.own_namespace());
            if kinds.iter().any(|kind| self.controllers.contains(&((*kind).to_owned(), full.clone()))) {
                return true;
            }
        }
        let first = owner(object);
        std::iter::successors(first, |item| self.owners.get(item).cloned())
            .take(LONGEST)
            .any(|successor| self.controllers.contains(&successor))
    }
}

/// Whether the dependents of an object that is being deleted stay.
fn orphans(object: &Object<'_>) -> bool {
    let finalizers = object.at(&["metadata", "finalizers"]).map_or(&[][..], Node::items);
    finalizers.iter().any(|finalizer| finalizer.as_text() == Some(ORPHAN))
}

/// Leaves pods that go on their nodes, as pods whose deletion begins with the run.
pub(super) fn take_up(dump: &mut Dump<'_>, notes: &mut Notes) {
    if dump.going.is_empty() {
        return;
    }
    let last = last_heard_of(dump).unwrap_or(Timestamp::UNIX_EPOCH);
    let count = counted(dump.going.len() as u64, "pod goes", "pods go");
    notes.assume(format!(
        "{count} as the run begins: what made them is being deleted, as their namespace may be, or is a Job that has ended."
    ));
    for mut pod in std::mem::take(&mut dump.going) {
        let stated = pod.text(&["spec", "terminationGracePeriodSeconds"]).and_then(|text| text.parse::<i64>().ok());
        let until = last.checked_add(SignedDuration::from_secs(stated.unwrap_or(GRACE).max(0))).unwrap_or(last);
        if let Some(metadata) = find_mut(Rc::make_mut(&mut pod.node), &["metadata"]) {
            remove(metadata, &["ownerReferences"]);
            set(metadata, "deletionTimestamp", scalar(until.to_string()));
        }
        dump.running.push(pod);
    }
}

/// The last instant that the objects of a dump tell: when it was made, as a run that begins with it has it.
fn last_heard_of(dump: &Dump<'_>) -> Option<Timestamp> {
    let instant = |text: Option<&str>| text?.parse::<Timestamp>().ok();
    let conditions = dump.nodes.iter().filter_map(|node| node.at(&["status", "conditions"])).flat_map(Node::items);
    let beats = conditions.filter_map(|condition| instant(condition.get("lastHeartbeatTime")?.as_text()));
    let created = dump.nodes.iter().chain(&dump.running).chain(&dump.going);
    let created = created.filter_map(|created| instant(created.text(&["metadata", "creationTimestamp"])));
    beats.chain(created).max()
}
