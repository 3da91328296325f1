//! Emptiness in releases before v1: a node that holds no pod but daemons is stamped, and deleted when the stamp is old
//! enough; from v0.23 on by the disruption loop.
//!
//! Source: Karpenter v0.16.0 `pkg/controllers/node/emptiness.go`.

use super::claims::nominated_until;
use super::io::{Fact, Timer};
use super::step::Step;
use super::{assignment, consolidation, termination};
use nodecast_model::cluster::NodeEnd;
use nodecast_model::domain::{NodeId, SimDuration, SimTime};

/// Something about the node has changed: looks at it at once, and again when a nomination ends.
pub(super) fn consider(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if !step.karpenter.behaviour.v1_disruption {
        check(step, now, node);
    }
}

/// A pod came to the node: an older stamp is removed.
pub(super) fn in_use(step: &mut Step<'_>, node: NodeId) {
    if step.karpenter.empty_since.remove(&node).is_some() {
        step.note_node(node, Fact::NodeInUse, "removed the emptiness stamp");
    }
}

/// Looks whether the node is empty.
pub(super) fn check(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let state = step.cluster.node(node);
    let Some(ttl) = ttl(step, node) else { return };
    if !state.initialized || state.deletion_requested.is_some() || step.holds_pods(node) {
        return;
    }
    let until = nominated_until(step, node).max(assignment::awaited_until(step, now, node));
    if let Some(until) = until.filter(|&until| until > now) {
        step.wake(until, Timer::EmptinessCheck(node));
        return;
    }
    if let std::collections::btree_map::Entry::Vacant(stamp) = step.karpenter.empty_since.entry(node) {
        stamp.insert(now);
        step.note_node(node, Fact::NodeEmpty, format!("added TTL of {ttl} to the empty node"));
        if !step.has_disruption_loop() {
            step.wake(now + ttl, Timer::EmptinessDue(node));
        }
    }
}

/// A stamp may be old enough.
pub(super) fn due(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let Some(ttl) = ttl(step, node) else { return };
    let Some(&since) = step.karpenter.empty_since.get(&node) else { return };
    // The stamp may have been removed and set again since this was planned.
    if now - since >= ttl && step.cluster.node(node).deletion_requested.is_none() {
        let reason = format!("triggering termination after {ttl} for the empty node");
        termination::begin(step, now, node, NodeEnd::Empty, &reason);
    }
}

/// `ttlSecondsAfterEmpty` of the node's Provisioner; one that consolidates has none.
fn ttl(step: &Step<'_>, node: NodeId) -> Option<SimDuration> {
    let pool = step.pool_of(node)?;
    pool.disruption.consolidate_after.filter(|_| !consolidation::is_enabled(pool))
}
