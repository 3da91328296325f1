//! The end of a node: it takes no more pods, its pods are evicted, its instance is terminated, the node goes.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/termination`, `pkg/controllers/nodeclaim/lifecycle`; v0.16.0
//! `pkg/controllers/termination`.

use super::cluster_view::pod_view;
use super::disruption::DRIFT;
use super::{batching, claims, disruption, eviction, has_disruption_loop, is_managed, queue, static_pools};
use crate::actors::context::{Context, Jitter};
use crate::actors::event::{Event, class};
use crate::actors::{kubelet, node_life, scheduler_loop, volumes};
use crate::cluster::NodePhase;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};
use crate::world::record::{EventKind, NodeEnd};

/// Between two looks at a draining node.
const POLL: SimDuration = SimDuration::from_secs(1);
/// A v1 node drains for at least this long.
const SHORTEST_DRAIN: SimDuration = SimDuration::from_secs(5);
/// Between two looks whether an instance is gone.
const INSTANCE_POLL: SimDuration = SimDuration::from_secs(5);
/// Between two looks for claims whose instance has vanished.
const GARBAGE_COLLECTION: SimDuration = SimDuration::from_secs(120);
/// From the failure of a launch to the claim being gone.
const CLAIM_GOES: SimDuration = SimDuration::from_secs(1);
/// Classes of pods that are critical to the system: they leave last.
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// How long after the scenario's begin claims without an instance are first looked for.
pub(super) fn garbage_phase(context: &Context<'_>) -> SimDuration {
    context.streams.stream("garbage-phase", "").span_up_to(GARBAGE_COLLECTION)
}

/// Begins to remove a node.
pub(super) fn begin(context: &mut Context<'_>, now: SimTime, node: NodeId, end: NodeEnd, reason: &str) {
    if context.world.node(node).deletion_requested.is_some() {
        return;
    }
    if !claims::is_marked(context, node) {
        disruption::changed(context, now);
    }
    context.world.disrupt_node(node, end, now, reason);
    set_termination_time(context, now, node);
    static_pools::wake(context, now);
    match context.world.node(node).phase {
        NodePhase::Registered if is_lost(context, node) && !context.world.node(node).ready => {
            context.world.terminate_instance(node, now);
            remove(context, now, node);
        }
        NodePhase::Registered => {
            taint(context, now, node);
            if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
                claim.draining_since = Some(now);
            }
            drain_poll(context, now, node);
            batching::node_trigger(context, now, node);
        }
        NodePhase::Launched => terminate(context, now, node),
        NodePhase::Claimed | NodePhase::Terminating | NodePhase::Gone => {}
    }
}

/// The longest time that the drain may take, as the claim says.
fn set_termination_time(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if let Some(claim) = context.karpenter.nodes.get_mut(&node)
        && let Some(grace) = claim.template.termination_grace_period
        && claim.termination_time.is_none()
    {
        claim.termination_time = Some(queue::termination_time(now, grace));
    }
}

/// A claim got its instance after its deletion had been asked for.
pub(super) fn deleted_while_launching(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    terminate(context, now, node);
}

fn is_lost(context: &Context<'_>, node: NodeId) -> bool {
    context.karpenter.nodes.get(&node).is_some_and(|claim| claim.instance_gone)
}

/// Taints a node so that it takes no more pods.
pub(super) fn taint(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let legacy = !has_disruption_loop(context.setup.versions.karpenter);
    let taint = queue::leaving(context);
    let Some(claim) = context.karpenter.nodes.get_mut(&node) else { return };
    if std::mem::replace(&mut claim.tainted, true) {
        return;
    }
    context.world.taint_node(node, taint);
    context.world.note_node(node, now, EventKind::NodeTainted, taint.key.as_str());
    scheduler_loop::node_changed(context, now, node);
    if !legacy {
        batching::node_trigger(context, now, node);
    }
}

/// The node has reached the age limit of its claim.
pub(in crate::actors) fn expired(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let state = context.world.node(node);
    if state.deletion_requested.is_none() && state.phase < NodePhase::Terminating {
        begin(context, now, node, NodeEnd::Expired, "the node has reached its age limit");
    }
}

/// Looks at a draining node: evicts the next group of pods, or goes on when nobody is left that has to leave.
pub(in crate::actors) fn drain_poll(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(since) = context.karpenter.nodes.get(&node).and_then(|claim| claim.draining_since) else { return };
    if context.world.node(node).phase != NodePhase::Registered {
        return;
    }
    if context.karpenter.nodes.get(&node).is_some_and(|claim| claim.awaits_volumes) {
        await_volumes(context, now, node);
        return;
    }
    delete_overdue(context, now, node);
    let group = next_group(context, now, node);
    for &pod in &group {
        if pod_view(context, pod).is_active() && !pod_view(context, pod).do_not_disrupt(now) {
            eviction::enqueue(context, now, pod);
        }
    }
    let too_soon = has_disruption_loop(context.setup.versions.karpenter) && now - since < SHORTEST_DRAIN;
    if !group.is_empty() || too_soon {
        let drift = context.jitter(Jitter::NodePoll, node.0, now, DRIFT);
        context.queue.schedule_in(POLL + drift, class::NODE_AUTOSCALER, Event::DrainPoll(node));
        return;
    }
    context.world.drain_node(node, now);
    await_volumes(context, now, node);
}

/// The instance of a drained node is terminated once no volume is attached that a pod which had to leave has used, or when the
/// node's time is up. Releases before v1 do not wait.
///
/// Source: Karpenter core v1.13 `pkg/controllers/node/termination/controller.go`, `ensureVolumesDetached`,
/// `filterVolumeAttachments`.
fn await_volumes(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let latest = context.karpenter.nodes.get(&node).and_then(|claim| claim.termination_time);
    let stays = |pod: PodId| !pod_view(context, pod).waits_for_eviction(now);
    let waits = has_disruption_loop(context.setup.versions.karpenter)
        && latest.is_none_or(|latest| now < latest)
        && volumes::holds_node(context, node, stays);
    let Some(claim) = context.karpenter.nodes.get_mut(&node) else { return };
    if waits {
        if !std::mem::replace(&mut claim.awaits_volumes, true) {
            context.world.note_node(node, now, EventKind::AwaitingVolumeDetachment, "");
        }
        let drift = context.jitter(Jitter::NodePoll, node.0, now, DRIFT);
        context.queue.schedule_in(POLL + drift, class::NODE_AUTOSCALER, Event::DrainPoll(node));
        return;
    }
    claim.draining_since = None;
    terminate(context, now, node);
}

/// Deletes the pods that would not be gone in time otherwise, whatever protects them.
///
/// Source: Karpenter core v1.13 `pkg/controllers/node/termination/terminator/terminator.go`, `DeleteExpiringPods`.
fn delete_overdue(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(latest) = context.karpenter.nodes.get(&node).and_then(|claim| claim.termination_time) else { return };
    let overdue = |pod: &PodId| {
        let view = pod_view(context, *pod);
        let too_late = view.deletion.is_none_or(|end| end > latest);
        view.waits_for_eviction(now) && too_late && now > latest - view.spec.grace_period()
    };
    let pods: Vec<PodId> = context.world.node(node).pods.iter().copied().filter(overdue).collect();
    let grace = SimDuration::from_secs((latest - now).as_secs().max(1));
    for pod in pods {
        kubelet::delete_within(context, now, pod, grace, true, "its node must be gone soon");
    }
}

/// The pods that have to leave next. In v1 plain pods go first, then daemons that do not tolerate the taint, then the same
/// of critical pods, each group only when the former is gone; before v1 daemons stay.
fn next_group(context: &Context<'_>, now: SimTime, node: NodeId) -> Vec<PodId> {
    let state = context.world.node(node);
    let by_taint = has_disruption_loop(context.setup.versions.karpenter);
    let has_to_leave = |pod: &PodId| {
        if by_taint { pod_view(context, *pod).waits_for_eviction(now) } else { !context.world.pod(*pod).daemon }
    };
    let rank = |pod: &PodId| {
        let state = context.world.pod(*pod);
        let critical = state.spec.priority_class.is_some_and(|name: Symbol| CRITICAL.contains(&name.as_str()));
        if by_taint { (critical, state.daemon) } else { (false, false) }
    };
    let leaving: Vec<PodId> = state.pods.iter().copied().filter(has_to_leave).collect();
    let Some(first) = leaving.iter().map(rank).min() else { return Vec::new() };
    leaving.into_iter().filter(|pod| rank(pod) == first).collect()
}

/// Has the instance terminated; from v1 on Karpenter looks every five seconds whether it is gone.
fn terminate(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if is_lost(context, node) {
        context.world.terminate_instance(node, now);
        remove(context, now, node);
        return;
    }
    if has_disruption_loop(context.setup.versions.karpenter) && is_managed(context, node) {
        if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
            claim.awaits_instance = true;
        }
        let drift = context.jitter(Jitter::NodePoll, node.0, now, DRIFT);
        context.queue.schedule_in(INSTANCE_POLL + drift, class::NODE_AUTOSCALER, Event::InstancePoll(node));
    }
    node_life::terminate(context, now, node);
}

/// Whether Karpenter will notice by itself that the instance is gone; if so, it is told that it is.
pub(in crate::actors) fn instance_gone(context: &mut Context<'_>, node: NodeId) -> bool {
    let Some(claim) = context.karpenter.nodes.get_mut(&node) else { return false };
    claim.instance_gone = true;
    claim.awaits_instance
}

/// Karpenter looks whether a terminated instance is gone; if so, node and claim go.
pub(in crate::actors) fn instance_poll(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let phase = context.world.node(node).phase;
    if phase == NodePhase::Gone {
        return;
    }
    if phase == NodePhase::Terminating && is_lost(context, node) {
        remove(context, now, node);
    } else {
        let drift = context.jitter(Jitter::NodePoll, node.0, now, DRIFT);
        context.queue.schedule_in(INSTANCE_POLL + drift, class::NODE_AUTOSCALER, Event::InstancePoll(node));
    }
}

fn remove(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    node_life::remove(context, now, node);
}

/// A launch has failed for good: the claim goes a moment later.
pub(super) fn give_up(context: &mut Context<'_>, now: SimTime, node: NodeId, reason: &str) {
    if !has_disruption_loop(context.setup.versions.karpenter) {
        context.world.fail_launch(node, now, reason);
        return;
    }
    if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
        claim.failed = true;
    }
    context.world.note_node(node, now, EventKind::LaunchFailed, reason);
    context.queue.schedule_in(CLAIM_GOES, class::NODE_AUTOSCALER, Event::ClaimGone(node));
}

/// A claim whose launch failed is gone.
pub(in crate::actors) fn claim_gone(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.world.node(node).phase == NodePhase::Claimed {
        context.world.drop_claim(node, now);
        super::node_gone(context, now, node);
    }
}

/// Looks for registered claims whose instance has vanished, and removes those whose node is not Ready.
///
/// Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/garbagecollection/controller.go`.
pub(in crate::actors) fn collect_garbage(context: &mut Context<'_>, now: SimTime) {
    context.queue.schedule_in(GARBAGE_COLLECTION, class::NODE_AUTOSCALER, Event::GarbageCollection);
    let vanished: Vec<NodeId> = context
        .karpenter
        .nodes
        .iter()
        .filter(|(node, claim)| {
            let state = context.world.node(**node);
            let stays = state.phase == NodePhase::Registered && state.deletion_requested.is_none();
            claim.instance_gone && stays && !state.ready
        })
        .map(|(&node, _)| node)
        .collect();
    for node in vanished {
        begin(context, now, node, NodeEnd::InstanceLost, "its instance has vanished");
    }
}
