//! The disruption loop of v1: every 10 s it looks for empty nodes, waits 15 s, looks again, and removes those that are
//! still empty.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/controller.go`, `emptiness.go`, `validation.go` and
//! `pkg/controllers/nodeclaim/disruption/consolidation.go`.
//!
//! Deviation: of the loop's methods only emptiness is here; nodes are neither consolidated nor drifted.

use std::collections::BTreeMap;

use super::{holds_pods, is_managed, is_nominated, pool_of, termination};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::domain::node_pool::DisruptionReason;
use crate::domain::{NodeId, NodePool, SimDuration, SimTime, Symbol};
use crate::world::NodePhase;
use crate::world::record::{EventKind, NodeEnd};

/// Between two passes that find nothing.
const POLL: SimDuration = SimDuration::from_secs(10);
/// While a claim has no instance yet.
const POLL_UNSYNCED: SimDuration = SimDuration::from_secs(1);
/// Between a proposal and its validation.
const VALIDATION: SimDuration = SimDuration::from_secs(15);
/// A pod event so soon after the last one is not written down.
const POD_EVENT_DEDUPE: SimDuration = SimDuration::from_secs(10);

/// A pod came to the node or began to leave it.
pub(super) fn pod_event(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    // Times in objects are cut to whole seconds.
    let stored = SimTime::ZERO + SimDuration::from_secs(now.as_secs());
    let last = context.karpenter.last_pod_event.entry(node).or_insert(stored);
    if stored - *last >= POD_EVENT_DEDUPE {
        *last = stored;
    }
}

/// One pass of the loop.
pub(in crate::actors) fn disruption_pass(context: &mut Context<'_>, now: SimTime) {
    let unsynced = context
        .world
        .live_nodes()
        .iter()
        .any(|&node| is_managed(context, node) && context.world.node(node).phase == NodePhase::Claimed);
    if unsynced {
        context.queue.schedule_in(POLL_UNSYNCED, class::NODE_AUTOSCALER, Event::DisruptionPass);
        return;
    }
    let proposed = within_budgets(context, candidates(context, now));
    if proposed.is_empty() {
        context.queue.schedule_in(POLL, class::NODE_AUTOSCALER, Event::DisruptionPass);
        return;
    }
    for &node in &proposed {
        context.world.note_node(node, now, EventKind::NodeEmpty, "proposed for removal, validated in 15s");
    }
    context.karpenter.proposed = proposed;
    context.queue.schedule_in(VALIDATION, class::NODE_AUTOSCALER, Event::DisruptionValidation);
}

/// The wait is over: what is still empty is removed, and the loop goes on at once.
pub(in crate::actors) fn disruption_validation(context: &mut Context<'_>, now: SimTime) {
    let proposed = std::mem::take(&mut context.karpenter.proposed);
    let still: Vec<NodeId> = candidates(context, now).into_iter().filter(|node| proposed.contains(node)).collect();
    let valid = within_budgets(context, still);
    for &node in &valid {
        termination::begin(context, now, node, NodeEnd::Empty, "the node is empty");
    }
    for node in proposed.into_iter().filter(|node| !valid.contains(node)) {
        context.world.note_node(node, now, EventKind::NodeInUse, "validation failed: no longer empty, or over budget");
    }
    let next = if valid.is_empty() { POLL } else { SimDuration::ZERO };
    context.queue.schedule_in(next, class::NODE_AUTOSCALER, Event::DisruptionPass);
}

/// Empty nodes that may go, oldest first.
fn candidates(context: &Context<'_>, now: SimTime) -> Vec<NodeId> {
    let may_go = |&node: &NodeId| {
        let state = context.world.node(node);
        is_managed(context, node)
            && state.initialized
            && state.phase == NodePhase::Registered
            && state.deletion_requested.is_none()
            && !is_nominated(context, now, node)
            && is_consolidatable(context, now, node)
            && !holds_pods(context, node, false)
            && !state.pods.iter().any(|&pod| context.world.pod(pod).spec.do_not_disrupt())
    };
    context.world.live_nodes().iter().copied().filter(may_go).collect()
}

/// Whether the node has been left alone for `consolidateAfter`.
fn is_consolidatable(context: &Context<'_>, now: SimTime, node: NodeId) -> bool {
    let after = pool_of(context, node).and_then(|pool| pool.disruption.consolidate_after);
    let since = context.karpenter.last_pod_event.get(&node).or_else(|| context.karpenter.initialized_at.get(&node));
    matches!((after, since), (Some(after), Some(&since)) if now - since >= after)
}

/// The first of `nodes` for which their pools' budgets leave room.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, `GetAllowedDisruptionsByReason`, and
/// `pkg/controllers/disruption/helpers.go`, `BuildDisruptionBudgetMapping`.
fn within_budgets(context: &Context<'_>, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut room: BTreeMap<Symbol, i64> = BTreeMap::new();
    nodes
        .into_iter()
        .filter(|&node| {
            let Some(pool) = pool_of(context, node) else { return false };
            let left = room.entry(pool.name).or_insert_with(|| budget(context, pool));
            *left -= 1;
            *left >= 0
        })
        .collect()
}

fn budget(context: &Context<'_>, pool: &NodePool) -> i64 {
    let counted = |&node: &NodeId| {
        let state = context.world.node(node);
        state.origin.name() == pool.name && state.initialized && state.phase == NodePhase::Registered
    };
    let nodes: Vec<NodeId> = context.world.live_nodes().iter().copied().filter(counted).collect();
    let total = nodes.len() as i64;
    let leaving = |node: &&NodeId| {
        let state = context.world.node(**node);
        !state.ready || state.deletion_requested.is_some()
    };
    let disrupting = nodes.iter().filter(leaving).count() as i64;
    let applies = |reasons: &Option<Vec<DisruptionReason>>| {
        reasons.as_ref().is_none_or(|reasons| reasons.contains(&DisruptionReason::Empty))
    };
    let allowed = pool
        .disruption
        .budgets
        .iter()
        .filter(|budget| applies(&budget.reasons))
        .map(|budget| budget.nodes.of_rounded_up(total))
        .min()
        .unwrap_or(i64::from(i32::MAX));
    (allowed - disrupting).max(0)
}
