//! What Karpenter's questions want to know of the pods on each node, kept until one of them changes: most questions find most
//! nodes with the pods that they had before.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cluster_view::{unnamed_pending_pod, unnamed_pod_view};
use super::step::Step;
use crate::disruption::EvictionCost;
use crate::packing::{BoundPod, NodePods, QueuedPods};
use nodecast_model::cluster::Position;
use nodecast_model::domain::{NodeId, PodId};

/// By node, what its pods came to when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct NodePodsCache(RefCell<FxHashMap<NodeId, CachedPods>>);

/// The pods of a node at one of its revisions.
#[derive(Debug)]
struct CachedPods {
    changed: Position,
    bound: NodePods,
    digest: Option<Arc<EvictionCost>>,
    /// Those that would have to go elsewhere, in the order of the packer's queue.
    queued: Option<Arc<QueuedPods>>,
}

impl NodePodsCache {
    /// Forgets a node that is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.0.get_mut().remove(&node);
    }
}

/// The pods of a node as they are now, as the packer counts them on a node that stays.
pub(super) fn on_node(step: &Step<'_>, node: NodeId) -> NodePods {
    with(step, node, |kept| kept.bound.clone())
}

/// The same, and as the methods of disruption want to know them.
pub(super) fn with_digest(step: &Step<'_>, node: NodeId) -> (NodePods, Arc<EvictionCost>) {
    with(step, node, |kept| {
        let digest = kept.digest.get_or_insert_with(|| {
            let facts = |&pod: &PodId| {
                let view = unnamed_pod_view(step, pod);
                (&**view.spec, view.is_reschedulable())
            };
            let pods = step.cluster.node(node).pods.iter().map(facts);
            Arc::new(EvictionCost::counting(pods, step.karpenter.behaviour.counts_all_pods))
        });
        (kept.bound.clone(), Arc::clone(digest))
    })
}

/// Its pods at some positions, which are those that would have to go elsewhere, in the order of the packer's queue.
pub(super) fn queued(step: &Step<'_>, node: NodeId, positions: &[usize]) -> Arc<QueuedPods> {
    with(step, node, |kept| {
        let cluster = step.cluster;
        let pods = &cluster.node(node).pods;
        let with_size = |&position: &usize| {
            let pod = pods[position];
            (unnamed_pending_pod(step, pod), move || &*cluster.pod(pod).requests)
        };
        let queued = || Arc::new(QueuedPods::from_pods(positions.iter().map(with_size)));
        Arc::clone(kept.queued.get_or_insert_with(queued))
    })
}

fn with<R>(step: &Step<'_>, node: NodeId, ask: impl FnOnce(&mut CachedPods) -> R) -> R {
    let changed = step.cluster.node(node).pods_changed;
    let mut kept = step.karpenter.node_pods_cache.0.borrow_mut();
    let now = || CachedPods { changed, bound: bound(step, node), digest: None, queued: None };
    let kept = kept.entry(node).or_insert_with(now);
    if kept.changed != changed {
        *kept = now();
    }
    ask(kept)
}

fn bound(step: &Step<'_>, node: NodeId) -> NodePods {
    let pods = step.cluster.node(node).pods.iter().map(|&pod| (pod, step.cluster.pod(pod)));
    NodePods::sum(pods.filter(|(_, state)| !state.finished).map(|(pod, state)| {
        // Names are far from the rest in memory, and nobody asks for one but for the sake of volumes.
        let name = if state.spec.volumes.is_empty() { "" } else { step.outside.pod_name(pod) };
        let bound =
            BoundPod { namespace: state.namespace, name, spec: &state.spec, counts_in_topology: state.is_active() };
        (bound, &*state.requests)
    }))
}
