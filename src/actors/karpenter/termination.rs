//! The end of a node: it takes no more pods, its pods are evicted, its instance is terminated.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/termination`; v0.16.0 `pkg/controllers/termination`.

use super::{batching, eviction, has_disruption_loop};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::{node_life, scheduler_loop};
use crate::domain::taints::TaintEffect;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Taint, well_known};
use crate::world::NodePhase;
use crate::world::record::NodeEnd;

/// Between two looks at a draining node.
const POLL: SimDuration = SimDuration::from_secs(1);
/// A v1 node drains for at least this long.
const SHORTEST_DRAIN: SimDuration = SimDuration::from_secs(5);
/// Priorities from here on are those of pods that are critical to the system: they leave last.
const CRITICAL: i32 = 2_000_000_000;

/// Begins to remove a node.
pub(super) fn begin(context: &mut Context<'_>, now: SimTime, node: NodeId, end: NodeEnd, reason: &str) {
    let key = if has_disruption_loop(context.setup.versions.karpenter) {
        well_known::TAINT_DISRUPTED
    } else {
        well_known::TAINT_UNSCHEDULABLE
    };
    context.world.disrupt_node(node, end, now, reason);
    match context.world.node(node).phase {
        NodePhase::Registered => {
            context.world.taint_node(node, Taint::new(key, TaintEffect::NoSchedule));
            scheduler_loop::node_changed(context, now, node);
            context.karpenter.draining.insert(node, now);
            drain_poll(context, now, node);
            batching::node_trigger(context, now, node);
        }
        NodePhase::Launched => node_life::terminate(context, now, node),
        NodePhase::Claimed | NodePhase::Terminating | NodePhase::Gone => {}
    }
}

/// The node has reached the age limit of its pool.
pub(in crate::actors) fn expired(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let state = context.world.node(node);
    if state.deletion_requested.is_none() && state.phase < NodePhase::Terminating {
        begin(context, now, node, NodeEnd::Expired, "the node has reached its age limit");
    }
}

/// Looks at a draining node: evicts the next group of pods, or goes on when nobody is left that has to leave.
pub(in crate::actors) fn drain_poll(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(&since) = context.karpenter.draining.get(&node) else { return };
    if context.world.node(node).phase != NodePhase::Registered {
        return;
    }
    let group = next_group(context, node);
    for &pod in &group {
        let spec = &context.world.pod(pod).spec;
        if context.world.pod(pod).is_active() && !spec.do_not_disrupt() {
            eviction::evict(context, now, pod, "its node is being removed");
        }
    }
    let too_soon = has_disruption_loop(context.setup.versions.karpenter) && now - since < SHORTEST_DRAIN;
    if !group.is_empty() || too_soon {
        context.queue.schedule_in(POLL, class::NODE_AUTOSCALER, Event::DrainPoll(node));
        return;
    }
    context.karpenter.draining.remove(&node);
    context.world.drain_node(node, now);
    node_life::terminate(context, now, node);
}

/// The pods that have to leave next. In v1 plain pods go first, then daemons that do not tolerate the taint, then the same
/// of critical pods, each group only when the former is gone; before v1 daemons stay.
fn next_group(context: &Context<'_>, node: NodeId) -> Vec<PodId> {
    let state = context.world.node(node);
    let by_taint = has_disruption_loop(context.setup.versions.karpenter);
    let taint = Taint::new(well_known::TAINT_DISRUPTED, TaintEffect::NoSchedule);
    let has_to_leave = |pod: &PodId| {
        let spec = &context.world.pod(*pod).spec;
        let stays = if by_taint {
            spec.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
        } else {
            context.world.pod(*pod).daemon
        };
        !stays
    };
    let rank = |pod: &PodId| {
        let state = context.world.pod(*pod);
        if by_taint { (state.spec.priority >= CRITICAL, state.daemon) } else { (false, false) }
    };
    let leaving: Vec<PodId> = state.pods.iter().copied().filter(has_to_leave).collect();
    let Some(first) = leaving.iter().map(rank).min() else { return Vec::new() };
    leaving.into_iter().filter(|pod| rank(pod) == first).collect()
}
