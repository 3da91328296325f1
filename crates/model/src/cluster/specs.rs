//! What pods ask for, each specification once: pods are alike if they have the same.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::domain::{PodSpec, Resources};

/// A specification among those of a cluster; equal ids mean equal specifications.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SpecId(pub u32);

/// A specification and what follows from it alone.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The specification.
    pub pod: Arc<PodSpec>,
    /// What the scheduler counts for a pod.
    pub requests: Arc<Resources>,
    /// Whether a pod holds room for others and does nothing itself.
    pub placeholder: bool,
}

/// The specifications of a cluster's pods, in order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    specs: Vec<Spec>,
    ids: FxHashMap<Arc<PodSpec>, SpecId>,
}

impl Specs {
    /// The specification `id`.
    pub fn get(&self, id: SpecId) -> &Spec {
        &self.specs[id.0 as usize]
    }

    /// The id of a specification, if pods have had it.
    pub fn find(&self, spec: &PodSpec) -> Option<SpecId> {
        self.ids.get(spec).copied()
    }

    pub(super) fn intern(&mut self, spec: Arc<PodSpec>) -> SpecId {
        if let Some(&known) = self.ids.get(&spec) {
            return known;
        }
        let id = SpecId(self.specs.len() as u32);
        let (requests, placeholder) = (Arc::new(spec.requests()), spec.is_placeholder());
        self.specs.push(Spec { pod: Arc::clone(&spec), requests, placeholder });
        self.ids.insert(spec, id);
        id
    }
}
