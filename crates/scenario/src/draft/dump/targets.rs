//! What autoscalers scale by way of an object that is not simulated: its scale subresource sets the replicas of a workload that is.
//!
//! What must not live here: Rollouts, which are read as Deployments.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::makers::{Name, owner};
use super::objects::{Object, find, find_mut, scalar, set};
use super::stand_ins::StandIns;
use super::{Dump, Notes};
use crate::tree::Node;

/// Kinds whose replicas can be set.
const SCALED: [&str; 3] = ["Deployment", "Rollout", "StatefulSet"];
/// Where an autoscaler names what it scales.
const REFERENCES: [(&str, &str); 3] = [
    ("HorizontalPodAutoscaler", "scaleTargetRef"),
    ("ScaledObject", "scaleTargetRef"),
    ("VerticalPodAutoscaler", "targetRef"),
];

/// Kind and `namespace/name` of what an autoscaler scales; KEDA scales Deployments unless it is told otherwise.
pub(super) fn names_target(object: &Object<'_>) -> Option<Name> {
    let (_, key) = REFERENCES.iter().find(|(kind, _)| *kind == object.kind)?;
    let text = |text: &str| find(&object.node, &["spec", key, text]).and_then(Node::as_text);
    Some((text("kind").unwrap_or("Deployment").to_owned(), format!("{}/{}", object.own_namespace(), text("name")?)))
}

/// The workloads of objects that are not simulated, by kind and name.
#[derive(Default, Debug)]
pub(super) struct Targets(BTreeMap<Name, BTreeSet<(String, String)>>);

impl Targets {
    /// The workloads among `objects` that have an owner, and those that pods of what is not simulated become.
    pub(super) fn new(objects: &[Object<'_>], stand_ins: &StandIns) -> Self {
        let mut targets = Self::default();
        for object in objects.iter().filter(|object| !object.is_deleted()) {
            let workload = if SCALED.contains(&&*object.kind) {
                (object.kind.clone(), object.name.clone())
            } else if let Some(name) = stand_ins.name_of(object) {
                ("Deployment".to_owned(), name.to_owned())
            } else {
                continue;
            };
            if let Some(owner) = owner(object) {
                targets.0.entry(owner).or_default().insert(workload);
            }
        }
        targets
    }

    /// The one workload whose replicas an object of this kind and `namespace/name` sets.
    fn only(&self, kind: &str, full_name: String) -> Option<&(String, String)> {
        let all = self.0.get(&(kind.to_owned(), full_name))?;
        all.first().filter(|_| all.len() == 1)
    }

    /// Has autoscalers that name what is not simulated scale the one workload of it.
    pub(super) fn name_workloads(&self, dump: &mut Dump<'_>, notes: &mut Notes) {
        let mut told = BTreeSet::new();
        for object in dump.carried.iter_mut().chain(&mut dump.autoscalers) {
            let Some((_, key)) = REFERENCES.iter().find(|(kind, _)| *kind == object.kind) else { continue };
            let text = |text: &str| find(&object.node, &["spec", key, text]).and_then(Node::as_text).map(str::to_owned);
            let (Some(kind), Some(name)) = (text("kind"), text("name")) else { continue };
            if SCALED.contains(&&*kind) {
                continue;
            }
            let full = format!("{}/{name}", object.own_namespace());
            let Some((own_kind, own_name)) = self.only(&kind, full.clone()) else { continue };
            // KEDA's own is told of with its ScaledObject.
            if object.owner().is_none() {
                told.insert(format!(
                    "{} {} scales {kind} {name}, which is not simulated: here it is for the {own_kind} {own_name}, whose pods are the same.",
                    object.kind,
                    object.full_name()
                ));
            }
            let group = if own_kind == "Rollout" { "argoproj.io/v1alpha1" } else { "apps/v1" };
            if let Some(reference) = find_mut(Rc::make_mut(&mut object.node), &["spec", key]) {
                set(reference, "apiVersion", scalar(group));
                set(reference, "kind", scalar(own_kind.clone()));
                set(reference, "name", scalar(own_name.clone()));
            }
        }
        told.into_iter().for_each(|text| notes.assume(text));
    }
}
