//! Node repair: a node that is unhealthy for long is removed at once, whatever its pods say.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/health/controller.go`.

use super::io::Timer;
use super::step::Step;
use super::{claims, termination};
use crate::disruption::{ConditionStatus, NodeCondition, is_unhealthy, repair_due, too_many_unhealthy};
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::{NodeId, SimDuration, SimTime, Symbol};

/// Between two looks while too many nodes are unhealthy.
const RETRY: SimDuration = SimDuration::from_secs(300);

/// A condition of a node has changed.
pub(super) fn condition_changed(
    step: &mut Step<'_>,
    now: SimTime,
    node: NodeId,
    kind: Symbol,
    status: ConditionStatus,
) {
    if !step.karpenter.settings.flags.gates.node_repair || !step.karpenter.behaviour.knows_node_repair {
        return;
    }
    let Some(claim) = step.karpenter.nodes.get_mut(&node) else { return };
    if claim.conditions.iter().any(|condition| (condition.kind, condition.status) == (kind, status)) {
        return;
    }
    claim.conditions.retain(|condition| condition.kind != kind);
    claim.conditions.push(NodeCondition { kind, status, since: claims::whole(now) });
    if let Some(due) = repair_due(&claim.conditions) {
        step.wake(due.max(now), Timer::RepairDue(node));
    }
}

/// A node may have been unhealthy for long enough.
pub(super) fn look(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let Some(claim) = step.karpenter.nodes.get(&node) else { return };
    let leaving = step.cluster.node(node).deletion_requested.is_some();
    if leaving || repair_due(&claim.conditions).is_none_or(|due| due > now) {
        return;
    }
    let pool = step.cluster.node(node).origin;
    let nodes = step.karpenter.nodes.iter().filter(|(other, _)| {
        let state = step.cluster.node(**other);
        state.origin == pool && matches!(state.phase, NodePhase::Registered | NodePhase::Terminating)
    });
    let (all, unhealthy) = nodes.fold((0, 0), |(all, unhealthy), (_, claim_state)| {
        (all + 1, unhealthy + usize::from(is_unhealthy(&claim_state.conditions)))
    });
    if too_many_unhealthy(unhealthy, all) {
        step.wake(now + RETRY, Timer::RepairDue(node));
        return;
    }
    force(step, now, node, NodeEnd::Unhealthy, "it has been unhealthy for too long");
}

/// Removes a node without waiting for anything: the time that its drain may take is over.
pub(super) fn force(step: &mut Step<'_>, now: SimTime, node: NodeId, end: NodeEnd, reason: &str) {
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        let over = claims::whole(now);
        claim.termination_time = Some(claim.termination_time.map_or(over, |set| set.min(over)));
    }
    termination::begin(step, now, node, end, reason);
}
