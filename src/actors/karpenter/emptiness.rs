//! Emptiness in releases before v1: a node that holds no pod but daemons is stamped, and deleted when the stamp is old
//! enough.
//!
//! Source: Karpenter v0.16.0 `pkg/controllers/node/emptiness.go`.

use super::claims::nominated_until;
use super::{assignment, consolidation, has_disruption_loop, holds_pods, pool_of, termination};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::domain::{NodeId, SimDuration, SimTime};
use crate::world::record::{EventKind, NodeEnd};

/// Something about the node has changed: looks at it at once, and again when a nomination ends.
pub(super) fn consider(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if !has_disruption_loop(context.setup.versions.karpenter) {
        emptiness_check(context, now, node);
    }
}

/// A pod came to the node: an older stamp is removed.
pub(super) fn in_use(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.karpenter.empty_since.remove(&node).is_some() {
        context.world.note_node(node, now, EventKind::NodeInUse, "removed the emptiness stamp");
    }
}

/// Looks whether the node is empty.
pub(in crate::actors) fn emptiness_check(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let state = context.world.node(node);
    let Some(ttl) = ttl(context, node) else { return };
    if !state.initialized || state.deletion_requested.is_some() || holds_pods(context, node, true) {
        return;
    }
    let until = nominated_until(context, node).max(assignment::awaited_until(context, now, node));
    if let Some(until) = until.filter(|&until| until > now) {
        context.queue.schedule(until, class::NODE_AUTOSCALER, Event::EmptinessCheck(node));
        return;
    }
    if let std::collections::btree_map::Entry::Vacant(stamp) = context.karpenter.empty_since.entry(node) {
        stamp.insert(now);
        context.world.note_node(node, now, EventKind::NodeEmpty, &format!("added TTL of {ttl} to the empty node"));
        context.queue.schedule_in(ttl, class::NODE_AUTOSCALER, Event::EmptinessDue(node));
    }
}

/// A stamp may be old enough.
pub(in crate::actors) fn emptiness_due(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(ttl) = ttl(context, node) else { return };
    let Some(&since) = context.karpenter.empty_since.get(&node) else { return };
    // The stamp may have been removed and set again since this was planned.
    if now - since >= ttl && context.world.node(node).deletion_requested.is_none() {
        let reason = format!("triggering termination after {ttl} for the empty node");
        termination::begin(context, now, node, NodeEnd::Empty, &reason);
    }
}

/// `ttlSecondsAfterEmpty` of the node's Provisioner; one that consolidates has none.
fn ttl(context: &Context<'_>, node: NodeId) -> Option<SimDuration> {
    let pool = pool_of(context, node)?;
    pool.disruption.consolidate_after.filter(|_| !consolidation::is_enabled(pool))
}
