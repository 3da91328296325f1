//! Who adds and removes nodes: one enum through which everything else speaks to it, so that another autoscaler is a variant here and
//! a module of its own, and nothing elsewhere.
//!
//! What must not live here: what an autoscaler decides or how it is driven.

use super::actor_events::ActorEvent;
use super::cluster_autoscaler::AutoscalerLoop;
use super::components::Components;
use super::event::AutoscalerEvent;
use super::setup::{Autoscaler, Setup};
use super::sim::Sim;
use super::{cluster_autoscaler, karpenter};
use crate::cluster::NodeOrigin;
use crate::domain::GroupRanks;
use crate::domain::{NodeClass, NodeId, NodeOverlay, NodePool, SimTime, Symbol};
use crate::world::record::EventKind;
use nodecast_karpenter::machine::{Buffer, Written};

/// Who adds and removes nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeAutoscaler {
    /// Nobody.
    Static,
    /// Karpenter.
    Karpenter,
    /// The Cluster Autoscaler.
    ClusterAutoscaler,
}

impl NodeAutoscaler {
    /// The one that the setup names.
    pub(super) const fn from_setup(setup: &Setup<'_>) -> Self {
        match setup.autoscaler {
            Autoscaler::Static => Self::Static,
            Autoscaler::Karpenter(_) => Self::Karpenter,
            Autoscaler::ClusterAutoscaler(_) => Self::ClusterAutoscaler,
        }
    }

    /// Puts its first events on the queue.
    pub(super) fn begin(self, components: &mut Components<'_>) {
        match self {
            Self::Static => {}
            Self::Karpenter => karpenter::begin(&mut components.karpenter()),
            Self::ClusterAutoscaler => {
                cluster_autoscaler::begin(&mut components.sim, &mut components.cluster_autoscaler)
            }
        }
    }
}

/// Lets one event happen.
pub(super) fn handle(components: &mut Components<'_>, now: SimTime, event: AutoscalerEvent) {
    match event {
        AutoscalerEvent::Karpenter(event) => karpenter::handle(&mut components.karpenter(), now, event),
        AutoscalerEvent::ClusterAutoscaler(event) => {
            let (sim, autoscaler, lists) = components.cluster_autoscaler();
            cluster_autoscaler::handle(sim, autoscaler, lists, now, event);
        }
    }
}

/// Tells it what it sees.
pub(super) fn observe(components: &mut Components<'_>, now: SimTime, news: ActorEvent) {
    match NodeAutoscaler::from_setup(components.sim.setup) {
        NodeAutoscaler::Static => {}
        NodeAutoscaler::Karpenter => karpenter::observe(&mut components.karpenter(), now, news),
        NodeAutoscaler::ClusterAutoscaler => {
            cluster_autoscaler::observe(&mut components.sim, &mut components.cluster_autoscaler, now, news)
        }
    }
}

/// The instance of a node no longer exists; whether the autoscaler will notice that by itself and have the node removed.
pub(super) fn instance_gone(components: &mut Components<'_>, now: SimTime, node: NodeId) -> bool {
    match NodeAutoscaler::from_setup(components.sim.setup) {
        NodeAutoscaler::Karpenter => karpenter::instance_gone(&mut components.karpenter(), now, node),
        NodeAutoscaler::Static | NodeAutoscaler::ClusterAutoscaler => false,
    }
}

/// It takes up a node that was there before the run began, with what is written down of it; one that is being deleted goes on its way.
pub(super) fn take_up_node(
    components: &mut Components<'_>,
    now: SimTime,
    node: NodeId,
    written: Written,
    deleting: bool,
) {
    if let NodeAutoscaler::Karpenter = NodeAutoscaler::from_setup(components.sim.setup) {
        karpenter::take_up_node(&mut components.karpenter(), now, node, written, deleting);
    }
}

/// A node class is applied.
pub(super) fn replace_class(components: &mut Components<'_>, now: SimTime, class: &NodeClass) {
    components.sim.world.note(now, EventKind::ManifestApplied, None, format!("EC2NodeClass {}", class.name));
    if let NodeAutoscaler::Karpenter = NodeAutoscaler::from_setup(components.sim.setup) {
        karpenter::replace_class(&mut components.karpenter(), now, class);
    }
}

/// The ranks of groups for the expander `priority` are applied.
pub(super) fn replace_ranks(
    sim: &mut Sim<'_>,
    cluster_autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    ranks: &GroupRanks,
) {
    sim.world.note(now, EventKind::ManifestApplied, None, "ConfigMap cluster-autoscaler-priority-expander");
    if let NodeAutoscaler::ClusterAutoscaler = NodeAutoscaler::from_setup(sim.setup) {
        cluster_autoscaler.replace_ranks(ranks);
    }
}

/// Namespaces are labelled otherwise.
pub(super) fn replace_namespaces(components: &mut Components<'_>, now: SimTime) {
    match NodeAutoscaler::from_setup(components.sim.setup) {
        // The Cluster Autoscaler lists them at each iteration.
        NodeAutoscaler::Static | NodeAutoscaler::ClusterAutoscaler => {}
        NodeAutoscaler::Karpenter => {
            let all = components.namespaces.to_vec();
            karpenter::replace_namespaces(&mut components.karpenter(), now, all);
        }
    }
}

/// A NodePool is deleted; whether there is one.
pub(super) fn delete_pool(components: &mut Components<'_>, now: SimTime, name: Symbol) -> bool {
    let known = components.sim.setup.node_pools.iter().any(|pool| pool.name == name);
    if let (true, NodeAutoscaler::Karpenter) = (known, NodeAutoscaler::from_setup(components.sim.setup)) {
        karpenter::delete_pool(&mut components.karpenter(), now, name);
        return true;
    }
    false
}

/// A NodeClaim or its node is deleted: whoever launched it has a finalizer on both. Whether anybody has.
pub(super) fn delete_claim(components: &mut Components<'_>, now: SimTime, node: NodeId) -> bool {
    let of_pool = matches!(components.sim.world.node(node).origin, NodeOrigin::NodePool(_));
    let has_finalizer = of_pool && NodeAutoscaler::from_setup(components.sim.setup) == NodeAutoscaler::Karpenter;
    if has_finalizer {
        karpenter::delete_claim(&mut components.karpenter(), now, node);
    }
    has_finalizer
}

/// A NodePool is applied.
pub(super) fn replace_pool(components: &mut Components<'_>, now: SimTime, pool: &NodePool) {
    components.sim.world.note(now, EventKind::ManifestApplied, None, format!("NodePool {}", pool.name));
    if let NodeAutoscaler::Karpenter = NodeAutoscaler::from_setup(components.sim.setup) {
        karpenter::replace_pool(&mut components.karpenter(), now, pool);
    }
}

/// NodeOverlays are applied.
pub(super) fn replace_overlays(components: &mut Components<'_>, now: SimTime, overlays: &[NodeOverlay]) {
    components.sim.world.note(now, EventKind::ManifestApplied, None, "NodeOverlays");
    karpenter::replace_overlays(&mut components.karpenter(), now, overlays);
}

/// CapacityBuffers are applied.
pub(super) fn replace_buffers(components: &mut Components<'_>, now: SimTime, buffers: &[Buffer]) {
    components.sim.world.note(now, EventKind::ManifestApplied, None, "CapacityBuffers");
    karpenter::replace_buffers(&mut components.karpenter(), now, buffers);
}
