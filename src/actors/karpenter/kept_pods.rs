//! What Karpenter's questions want to know of the pods on each node, kept until one of them changes: most questions find most
//! nodes with the pods that they had before.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::cluster_view::pod_views;
use crate::actors::context::Context;
use crate::domain::NodeId;
use crate::policy::disruption::PodsDigest;
use crate::policy::packing::{BoundPod, NodePods};

/// By node, what its pods came to when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct KeptPods(RefCell<FxHashMap<NodeId, (u64, OfNode)>>);

/// The pods of a node, for different questions. Copies share what they hold.
#[derive(Clone, Debug)]
pub(super) struct OfNode {
    /// As the packer counts them on a node that stays.
    pub(super) bound: NodePods,
    /// As the methods of disruption want to know them.
    pub(super) digest: PodsDigest,
}

impl KeptPods {
    /// Forgets a node that is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.0.get_mut().remove(&node);
    }
}

/// The pods of a node as they are now.
pub(super) fn of_node(context: &Context<'_>, node: NodeId) -> OfNode {
    let revision = context.world.node(node).pods_revision;
    let mut kept = context.karpenter.kept_pods.0.borrow_mut();
    match kept.get(&node) {
        Some((known, own)) if *known == revision => own.clone(),
        _ => {
            let pods = &context.world.node(node).pods;
            let size = |position: usize| {
                let requests = &context.world.pod(pods[position]).requests;
                (requests.cpu_milli(), requests.memory_bytes())
            };
            let digest = PodsDigest::sized(&pod_views(context, node), size);
            let own = OfNode { bound: bound(context, node), digest };
            kept.insert(node, (revision, own.clone()));
            own
        }
    }
}

fn bound(context: &Context<'_>, node: NodeId) -> NodePods {
    let pods = context.world.node(node).pods.iter().map(|&pod| (pod, context.world.pod(pod)));
    NodePods::sum(pods.filter(|(_, state)| !state.finished).map(|(pod, state)| {
        let bound = BoundPod {
            namespace: state.namespace,
            name: context.world.pod_name(pod),
            spec: &state.spec,
            counts_in_topology: state.is_active(),
        };
        (bound, &*state.requests)
    }))
}
