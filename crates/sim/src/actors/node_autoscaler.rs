//! Who adds and removes nodes: one enum through which everything else speaks to it, so that another autoscaler is a variant here and
//! a module of its own, and nothing elsewhere.
//!
//! What must not live here: what an autoscaler decides or how it is driven.

use super::actor_events::ActorEvent;
use super::cluster_autoscaler::AutoscalerLoop;
use super::context::Context;
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
    pub(super) fn begin(self, context: &mut Context<'_>) {
        match self {
            Self::Static => {}
            Self::Karpenter => karpenter::begin(&mut context.karpenter()),
            Self::ClusterAutoscaler => cluster_autoscaler::begin(&mut context.sim, &mut context.cluster_autoscaler),
        }
    }
}

/// Lets one event happen.
pub(super) fn handle(context: &mut Context<'_>, now: SimTime, event: AutoscalerEvent) {
    match event {
        AutoscalerEvent::Karpenter(event) => karpenter::handle(&mut context.karpenter(), now, event),
        AutoscalerEvent::ClusterAutoscaler(event) => {
            let (sim, autoscaler, lists) = context.cluster_autoscaler();
            cluster_autoscaler::handle(sim, autoscaler, lists, now, event);
        }
    }
}

/// Tells it what it sees.
pub(super) fn observe(context: &mut Context<'_>, now: SimTime, news: ActorEvent) {
    match NodeAutoscaler::from_setup(context.setup) {
        NodeAutoscaler::Static => {}
        NodeAutoscaler::Karpenter => karpenter::observe(&mut context.karpenter(), now, news),
        NodeAutoscaler::ClusterAutoscaler => {
            cluster_autoscaler::observe(&mut context.sim, &mut context.cluster_autoscaler, now, news)
        }
    }
}

/// The instance of a node no longer exists; whether the autoscaler will notice that by itself and have the node removed.
pub(super) fn instance_gone(context: &mut Context<'_>, now: SimTime, node: NodeId) -> bool {
    match NodeAutoscaler::from_setup(context.setup) {
        NodeAutoscaler::Karpenter => karpenter::instance_gone(&mut context.karpenter(), now, node),
        NodeAutoscaler::Static | NodeAutoscaler::ClusterAutoscaler => false,
    }
}

/// It takes up a node that was there before the run began, with what is written down of it; one that is being deleted goes on its way.
pub(super) fn take_up_node(context: &mut Context<'_>, now: SimTime, node: NodeId, written: Written, deleting: bool) {
    if let NodeAutoscaler::Karpenter = NodeAutoscaler::from_setup(context.setup) {
        karpenter::take_up_node(&mut context.karpenter(), now, node, written, deleting);
    }
}

/// A node class is applied.
pub(super) fn replace_class(context: &mut Context<'_>, now: SimTime, class: &NodeClass) {
    context.world.note(now, EventKind::ManifestApplied, None, format!("EC2NodeClass {}", class.name));
    if let NodeAutoscaler::Karpenter = NodeAutoscaler::from_setup(context.setup) {
        karpenter::replace_class(&mut context.karpenter(), now, class);
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
pub(super) fn replace_namespaces(context: &mut Context<'_>, now: SimTime) {
    match NodeAutoscaler::from_setup(context.setup) {
        // The Cluster Autoscaler lists them at each iteration.
        NodeAutoscaler::Static | NodeAutoscaler::ClusterAutoscaler => {}
        NodeAutoscaler::Karpenter => {
            let all = context.namespaces.to_vec();
            karpenter::replace_namespaces(&mut context.karpenter(), now, all);
        }
    }
}

/// A NodePool is deleted; whether there is one.
pub(super) fn delete_pool(context: &mut Context<'_>, now: SimTime, name: Symbol) -> bool {
    let known = context.setup.node_pools.iter().any(|pool| pool.name == name);
    if let (true, NodeAutoscaler::Karpenter) = (known, NodeAutoscaler::from_setup(context.setup)) {
        karpenter::delete_pool(&mut context.karpenter(), now, name);
        return true;
    }
    false
}

/// A NodeClaim or its node is deleted: whoever launched it has a finalizer on both. Whether anybody has.
pub(super) fn delete_claim(context: &mut Context<'_>, now: SimTime, node: NodeId) -> bool {
    let of_pool = matches!(context.world.node(node).origin, NodeOrigin::NodePool(_));
    let has_finalizer = of_pool && NodeAutoscaler::from_setup(context.setup) == NodeAutoscaler::Karpenter;
    if has_finalizer {
        karpenter::delete_claim(&mut context.karpenter(), now, node);
    }
    has_finalizer
}

/// A NodePool is applied.
pub(super) fn replace_pool(context: &mut Context<'_>, now: SimTime, pool: &NodePool) {
    context.world.note(now, EventKind::ManifestApplied, None, format!("NodePool {}", pool.name));
    if let NodeAutoscaler::Karpenter = NodeAutoscaler::from_setup(context.setup) {
        karpenter::replace_pool(&mut context.karpenter(), now, pool);
    }
}

/// NodeOverlays are applied.
pub(super) fn replace_overlays(context: &mut Context<'_>, now: SimTime, overlays: &[NodeOverlay]) {
    context.world.note(now, EventKind::ManifestApplied, None, "NodeOverlays");
    karpenter::replace_overlays(&mut context.karpenter(), now, overlays);
}

/// CapacityBuffers are applied.
pub(super) fn replace_buffers(context: &mut Context<'_>, now: SimTime, buffers: &[Buffer]) {
    context.world.note(now, EventKind::ManifestApplied, None, "CapacityBuffers");
    karpenter::replace_buffers(&mut context.karpenter(), now, buffers);
}
