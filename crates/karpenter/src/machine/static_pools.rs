//! Pools with a fixed number of nodes (`spec.replicas`), behind the feature gate `StaticCapacity`: what is missing is made, what
//! is too much goes.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/static/provisioning`, `pkg/controllers/static/deprovisioning`.

use super::claims::is_marked;
use super::cluster_view::{with_packing_setup, with_view};
use super::io::Timer;
use super::provisioning::Purpose;
use super::step::Step;
use super::{provisioning, termination};
use crate::disruption::{NodeFacts, StaticCount, removal_order};
use crate::packing::static_claim;
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::{NodeId, SimDuration, SimTime};

/// Between two looks if nothing changes.
const POLL: SimDuration = SimDuration::from_secs(60);

/// Whether pools with a fixed number of nodes are looked after.
pub(super) fn are_on(step: &Step<'_>) -> bool {
    step.karpenter.settings.flags.gates.static_capacity && step.karpenter.behaviour.knows_static_pools
}

/// Something has changed: the pools are looked at, at this instant.
pub(super) fn wake(step: &mut Step<'_>, now: SimTime) {
    if are_on(step) && step.karpenter.pools.iter().any(|pool| pool.replicas.is_some()) {
        look_at(step, now);
    }
}

fn look_at(step: &mut Step<'_>, at: SimTime) {
    if step.karpenter.static_look.is_none_or(|planned| at < planned) {
        step.karpenter.static_look = Some(at);
        step.wake(at, Timer::StaticPools);
    }
}

/// Brings every such pool to its number of nodes.
pub(super) fn look(step: &mut Step<'_>, now: SimTime) {
    if step.karpenter.static_look != Some(now) {
        return;
    }
    step.karpenter.static_look = None;
    for pool in 0..step.karpenter.pools.len() {
        if step.karpenter.pools[pool].replicas.is_some() {
            fill(step, now, pool);
            shrink(step, now, pool);
        }
    }
    look_at(step, now + POLL);
}

/// Claims of a pool that are not gone.
fn claims_of(step: &Step<'_>, pool: usize) -> Vec<NodeId> {
    let name = step.karpenter.pools[pool].name;
    let matches = |&&node: &&NodeId| step.cluster.node(node).origin.name() == name && step.is_managed(node);
    step.cluster.live_nodes().iter().filter(matches).copied().collect()
}

fn count(step: &Step<'_>, claims: &[NodeId]) -> StaticCount {
    let mut count = StaticCount::default();
    for &node in claims {
        if step.cluster.node(node).deletion_requested.is_some() {
            count.deleting += 1;
        } else if is_marked(step, node) {
            count.pending_disruption += 1;
        } else {
            count.active += 1;
        }
    }
    count
}

/// Makes the claims that a pool lacks, whether or not capacity is known to be unavailable: the launch is then refused without a call, and
/// the next claim follows as soon as the refused one is gone.
fn fill(step: &mut Step<'_>, now: SimTime, pool: usize) {
    let missing = count(step, &claims_of(step, pool)).missing(&step.karpenter.pools[pool]);
    if missing == 0 || !step.karpenter.pools[pool].ready {
        return;
    }
    provisioning::refresh(step, now);
    let claim = with_packing_setup(step, |setup| static_claim(&setup, pool));
    let Some(claim) = claim else { return };
    for _ in 0..missing {
        provisioning::make_claim(step, claim.clone(), Purpose::Fill);
    }
}

/// Claims without an instance go first.
fn shrink(step: &mut Step<'_>, now: SimTime, pool: usize) {
    let claims = claims_of(step, pool);
    let surplus = count(step, &claims).surplus(&step.karpenter.pools[pool]);
    if surplus == 0 {
        return;
    }
    let active: Vec<NodeId> = claims.into_iter().filter(|&node| !is_marked(step, node)).collect();
    let starting = |&&node: &&NodeId| step.cluster.node(node).phase == NodePhase::Claimed;
    let mut order: Vec<NodeId> = active.iter().filter(starting).copied().collect();
    order.extend(with_view(step, now, &[], |_, view, nodes| {
        let node = nodes.iter().enumerate().filter(|(_, node)| active.contains(node));
        let mut item: Vec<(usize, NodeFacts<'_>)> = node.map(|(at, _)| (at, view.nodes[at])).collect();
        removal_order(&mut item, now);
        item.into_iter().map(|(at, _)| nodes[at]).collect::<Vec<NodeId>>()
    }));
    for node in order.into_iter().take(usize::try_from(surplus).unwrap_or(0)) {
        termination::begin(step, now, node, NodeEnd::ScaledIn, "its NodePool has more nodes than it wants");
    }
}
