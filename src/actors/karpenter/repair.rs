//! Node repair: a node that is unhealthy for long is removed at once, whatever its pods say.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/health/controller.go`.

use super::{claims, has_disruption_loop, termination};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::cluster::NodePhase;
use crate::domain::{NodeId, SimDuration, SimTime, Symbol};
use crate::policy::disruption::{ConditionStatus, NodeCondition, is_unhealthy, repair_due, too_many_unhealthy};
use crate::world::record::NodeEnd;

/// Between two looks while too many nodes are unhealthy.
const RETRY: SimDuration = SimDuration::from_secs(300);

/// A condition of a node has changed.
pub(in crate::actors) fn condition_changed(
    context: &mut Context<'_>,
    now: SimTime,
    node: NodeId,
    kind: Symbol,
    status: ConditionStatus,
) {
    let gate = context.karpenter.settings.is_some_and(|settings| settings.gates.node_repair);
    if !gate || !has_disruption_loop(context.setup.versions.karpenter) {
        return;
    }
    let Some(claim) = context.karpenter.nodes.get_mut(&node) else { return };
    if claim.conditions.iter().any(|own| (own.kind, own.status) == (kind, status)) {
        return;
    }
    claim.conditions.retain(|own| own.kind != kind);
    claim.conditions.push(NodeCondition { kind, status, since: claims::whole(now) });
    if let Some(due) = repair_due(&claim.conditions) {
        context.queue.schedule(due.max(now), class::NODE_AUTOSCALER, Event::RepairDue(node));
    }
}

/// A node may have been unhealthy for long enough.
pub(in crate::actors) fn look(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(claim) = context.karpenter.nodes.get(&node) else { return };
    let leaving = context.world.node(node).deletion_requested.is_some();
    if leaving || repair_due(&claim.conditions).is_none_or(|due| due > now) {
        return;
    }
    let pool = context.world.node(node).origin;
    let nodes = context.karpenter.nodes.iter().filter(|(other, _)| {
        let state = context.world.node(**other);
        state.origin == pool && matches!(state.phase, NodePhase::Registered | NodePhase::Terminating)
    });
    let (all, unhealthy) = nodes
        .fold((0, 0), |(all, unhealthy), (_, own)| (all + 1, unhealthy + usize::from(is_unhealthy(&own.conditions))));
    if too_many_unhealthy(unhealthy, all) {
        context.queue.schedule_in(RETRY, class::NODE_AUTOSCALER, Event::RepairDue(node));
        return;
    }
    force(context, now, node, NodeEnd::Unhealthy, "it has been unhealthy for too long");
}

/// Removes a node without waiting for anything: the time that its drain may take is over.
pub(super) fn force(context: &mut Context<'_>, now: SimTime, node: NodeId, end: NodeEnd, reason: &str) {
    if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
        let over = claims::whole(now);
        claim.termination_time = Some(claim.termination_time.map_or(over, |set| set.min(over)));
    }
    termination::begin(context, now, node, end, reason);
}
