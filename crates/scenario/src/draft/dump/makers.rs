//! What made the pods and workloads of a dump, up to whatever a user wrote: its own pods stay, though it is not simulated.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::Object;

/// Kinds that run, and those that a run simulates.
const RUNS: [&str; 7] = ["Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// An object by its kind and `namespace/name`.
pub(super) type Name = (String, String);

/// What controls something that runs, at first or at second hand.
#[derive(Default, Debug)]
pub(super) struct Makers {
    all: BTreeSet<Name>,
    /// Of them those that control a workload, and so are known by it.
    of_workloads: BTreeSet<Name>,
}

impl Makers {
    /// What made the pods and workloads among `objects`.
    pub(super) fn from_objects(objects: &[Object<'_>]) -> Self {
        let owners: BTreeMap<Name, Name> =
            objects.iter().filter_map(|object| Some((name(object), owner(object)?))).collect();
        let mut makers = Self::default();
        for object in objects.iter().filter(|object| RUNS.contains(&&*object.kind)) {
            if let Some(owner) = owner(object).filter(|_| object.kind != "Pod") {
                makers.of_workloads.insert(owner);
            }
            let mut name = name(object);
            while let Some(owner) = owners.get(&name) {
                if !makers.all.insert(owner.clone()) {
                    break;
                }
                name.clone_from(owner);
            }
        }
        makers
    }

    /// Whether an object made something that runs.
    pub(super) fn contains(&self, object: &Object<'_>) -> bool {
        self.all.contains(&name(object))
    }

    /// Whether it made a workload.
    pub(super) fn made_workloads(&self, object: &Object<'_>) -> bool {
        self.of_workloads.contains(&name(object))
    }
}

/// What an object is known by.
pub(super) fn name(object: &Object<'_>) -> Name {
    (object.kind.clone(), object.full_name())
}

/// The controller of an object, in its namespace.
pub(super) fn owner(object: &Object<'_>) -> Option<Name> {
    let owner = object.owner()?;
    Some((owner.called(), format!("{}/{}", object.own_namespace(), owner.name)))
}
