//! Pools with a fixed number of nodes (`spec.replicas`), behind the feature gate `StaticCapacity`: what is missing is made, what
//! is too much goes.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/static/provisioning`, `pkg/controllers/static/deprovisioning`.

use super::claims::is_marked;
use super::cluster_view::{ties, with_packing_setup, with_view};
use super::{has_disruption_loop, is_managed, provisioning, termination};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::cluster::NodePhase;
use crate::domain::{NodeId, SimDuration, SimTime};
use crate::policy::disruption::{NodeFacts, StaticCount, removal_order, template_claim};
use crate::world::record::NodeEnd;

/// Between two looks if nothing changes.
const POLL: SimDuration = SimDuration::from_secs(60);

/// Whether pools with a fixed number of nodes are looked after.
pub(super) fn are_on(context: &Context<'_>) -> bool {
    let gate = context.karpenter.settings.is_some_and(|settings| settings.gates.static_capacity);
    gate && has_disruption_loop(context.setup.versions.karpenter)
}

/// Something has changed: the pools are looked at, at this instant.
pub(super) fn wake(context: &mut Context<'_>, now: SimTime) {
    if are_on(context) && context.karpenter.pools.iter().any(|pool| pool.replicas.is_some()) {
        look_at(context, now);
    }
}

fn look_at(context: &mut Context<'_>, at: SimTime) {
    if context.karpenter.static_look.is_none_or(|planned| at < planned) {
        context.karpenter.static_look = Some(at);
        context.queue.schedule(at, class::NODE_AUTOSCALER, Event::StaticPools);
    }
}

/// Brings every such pool to its number of nodes.
pub(in crate::actors) fn look(context: &mut Context<'_>, now: SimTime) {
    if context.karpenter.static_look != Some(now) {
        return;
    }
    context.karpenter.static_look = None;
    for pool in 0..context.karpenter.pools.len() {
        if context.karpenter.pools[pool].replicas.is_some() {
            fill(context, now, pool);
            shrink(context, now, pool);
        }
    }
    look_at(context, now + POLL);
}

/// Claims of a pool that are not gone.
fn claims_of(context: &Context<'_>, pool: usize) -> Vec<NodeId> {
    let name = context.karpenter.pools[pool].name;
    let own = |&&node: &&NodeId| context.world.node(node).origin.name() == name && is_managed(context, node);
    context.world.live_nodes().iter().filter(own).copied().collect()
}

fn count(context: &Context<'_>, claims: &[NodeId]) -> StaticCount {
    let mut count = StaticCount::default();
    for &node in claims {
        if context.world.node(node).deletion_requested.is_some() {
            count.deleting += 1;
        } else if is_marked(context, node) {
            count.pending_disruption += 1;
        } else {
            count.active += 1;
        }
    }
    count
}

fn fill(context: &mut Context<'_>, now: SimTime, pool: usize) {
    let missing = count(context, &claims_of(context, pool)).missing(&context.karpenter.pools[pool]);
    if missing == 0 || !context.karpenter.pools[pool].ready {
        return;
    }
    provisioning::refresh(context, now);
    let claim = with_packing_setup(context, |setup| template_claim(setup, pool, ties(context)));
    let Some(claim) = claim else { return };
    for _ in 0..missing {
        provisioning::make_claim(context, now, claim.clone());
    }
}

/// Claims without an instance go first.
fn shrink(context: &mut Context<'_>, now: SimTime, pool: usize) {
    let claims = claims_of(context, pool);
    let surplus = count(context, &claims).surplus(&context.karpenter.pools[pool]);
    if surplus == 0 {
        return;
    }
    let active: Vec<NodeId> = claims.into_iter().filter(|&node| !is_marked(context, node)).collect();
    let starting = |&&node: &&NodeId| context.world.node(node).phase == NodePhase::Claimed;
    let mut order: Vec<NodeId> = active.iter().filter(starting).copied().collect();
    order.extend(with_view(context, now, &[], |_, view, nodes| {
        let own = nodes.iter().enumerate().filter(|(_, node)| active.contains(node));
        let mut own: Vec<(usize, NodeFacts<'_>)> = own.map(|(at, _)| (at, view.nodes[at])).collect();
        removal_order(&mut own, now);
        own.into_iter().map(|(at, _)| nodes[at]).collect::<Vec<NodeId>>()
    }));
    for node in order.into_iter().take(usize::try_from(surplus).unwrap_or(0)) {
        termination::begin(context, now, node, NodeEnd::ScaledIn, "its NodePool has more nodes than it wants");
    }
}
