//! Equivalence groups: pods of one controller that are alike are decided on together.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::view::{ControllerKind, PodTraits};
use nodecast_model::domain::pod::ClaimSource;
use nodecast_model::domain::{Labels, PodSpec, Symbol};

/// Groups of one controller that further pods may join.
const MOST_GROUPS_OF_A_CONTROLLER: usize = 10;

/// Pods that are alike: places in the list of pods that the groups were built from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodGroup {
    /// The first stands for all.
    pub pods: Vec<usize>,
}

/// Namespace, kind and name of a controller.
type ControllerKey = (Symbol, ControllerKind, Symbol);

/// Whether two pods are alike: equal labels and an equal specification. Annotations do not count.
///
/// Source: Cluster Autoscaler 1.36 `core/scaleup/equivalence/groups.go` and `utils/pod_schedulable.go`, `PodSpecSemanticallyEqual`.
pub fn alike(one: &PodTraits, other: &PodTraits) -> bool {
    // The claims that a StatefulSet makes stand in its pods' specifications, each under a name of its own.
    if one.spec.volumes.iter().any(|volume| matches!(volume.source, ClaimSource::Template(_))) {
        return false;
    }
    Arc::ptr_eq(&one.spec, &other.spec) || one.spec == other.spec || {
        let bare = |spec: &PodSpec| PodSpec { annotations: Labels::new(), ..spec.clone() };
        one.spec.labels == other.spec.labels && bare(&one.spec) == bare(&other.spec)
    }
}

/// Which controller a pod belongs to; `None` for a pod that always stands alone.
fn controller_key(traits: &PodTraits) -> Option<(Symbol, ControllerKind, Symbol)> {
    if traits.is_daemon() {
        return None;
    }
    traits.controller.map(|controller| (traits.namespace, controller.kind, controller.name))
}

/// Sorts pods into groups, in order of each group's first pod.
///
/// Source: Cluster Autoscaler 1.36 `core/scaleup/equivalence/groups.go`, `groupPodsBySchedulingProperties`.
pub fn pod_groups<'a>(pods: impl IntoIterator<Item = &'a PodTraits>) -> Vec<PodGroup> {
    let mut groups: Vec<PodGroup> = Vec::new();
    let mut by_controller: FxHashMap<ControllerKey, Vec<(usize, &PodTraits)>> = FxHashMap::default();
    for (at, traits) in pods.into_iter().enumerate() {
        if let Some(key) = controller_key(traits) {
            let known = by_controller.entry(key).or_default();
            if let Some(&(group, _)) = known.iter().find(|(_, first)| alike(first, traits)) {
                groups[group].pods.push(at);
                continue;
            }
            if known.len() < MOST_GROUPS_OF_A_CONTROLLER {
                known.push((groups.len(), traits));
            }
        }
        groups.push(PodGroup { pods: vec![at] });
    }
    groups
}

/// Pods that were found not to fit anywhere, so that their like need not be tried.
///
/// Source: Cluster Autoscaler 1.36 `simulator/scheduling/similar_pods.go`.
#[derive(Default)]
pub struct SimilarPods<'a> {
    failed: FxHashMap<ControllerKey, Vec<&'a PodTraits>>,
}

impl<'a> SimilarPods<'a> {
    /// Whether a pod like this one was found not to fit.
    pub fn knows(&self, traits: &PodTraits) -> bool {
        let known = controller_key(traits).and_then(|key| self.failed.get(&key));
        known.is_some_and(|known| known.iter().any(|first| alike(first, traits)))
    }

    /// Remembers that a pod does not fit.
    pub fn remember(&mut self, traits: &'a PodTraits) {
        if let Some(key) = controller_key(traits) {
            let known = self.failed.entry(key).or_default();
            if known.len() < MOST_GROUPS_OF_A_CONTROLLER {
                known.push(traits);
            }
        }
    }
}
