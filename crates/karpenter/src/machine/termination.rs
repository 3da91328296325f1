//! The end of a node: it takes no more pods, its pods are evicted, its instance is terminated, the node goes.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/termination`, `pkg/controllers/nodeclaim/lifecycle`; v0.16.0
//! `pkg/controllers/termination`.

use super::cluster_view::unnamed_pod_view;
use super::io::{Action, Draw, Fact, LateTimer, Stage, Timer};
use super::step::Step;
use super::{batching, claims, eviction, pace, queue, static_pools};
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};

/// Between two looks at a draining node.
const POLL: SimDuration = SimDuration::from_secs(1);
/// Between two looks whether an instance is gone.
const INSTANCE_POLL: SimDuration = SimDuration::from_secs(5);
/// Between two looks for claims whose instance has vanished.
const GARBAGE_COLLECTION: SimDuration = SimDuration::from_secs(120);
/// From the failure of a launch to the claim being gone.
const CLAIM_GOES: SimDuration = SimDuration::from_secs(1);
/// Classes of pods that are critical to the system: they leave last.
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// How long after the scenario's begin claims without an instance are first looked for.
pub(super) fn garbage_phase(step: &Step<'_>) -> SimDuration {
    step.outside.draw(Draw::GarbagePhase(GARBAGE_COLLECTION))
}

/// Begins to remove a node.
pub(super) fn begin(step: &mut Step<'_>, now: SimTime, node: NodeId, end: NodeEnd, reason: &str) {
    if step.cluster.node(node).deletion_requested.is_some() {
        return;
    }
    if !claims::is_marked(step, node) {
        step.changed(now);
    }
    step.act(Action::Delete(node, end, reason.to_owned()));
    set_termination_time(step, now, node);
    static_pools::wake(step, now);
    match step.cluster.node(node).phase {
        NodePhase::Registered if is_lost(step, node) && !step.cluster.node(node).ready => {
            step.act(Action::Remove { node, unannounced: true });
        }
        NodePhase::Registered => match pace::until_eviction(step) {
            SimDuration::ZERO => step.next(Stage::Drain(node)),
            wait => step.wake(now + wait, Timer::DrainBegins(node)),
        },
        NodePhase::Launched => terminate(step, now, node),
        NodePhase::Claimed | NodePhase::Terminating | NodePhase::Gone => {}
    }
}

/// The controllers have come as far as the drain of a node that was deleted a moment ago.
pub(super) fn drain_begins(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if step.cluster.node(node).phase == NodePhase::Registered {
        drain(step, now, node);
    }
}

/// The node is being deleted: it is tainted and drains.
pub(super) fn drain(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    taint(step, now, node);
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        claim.draining_since = Some(now);
    }
    drain_poll(step, now, node);
    if step.karpenter.behaviour.draining_nodes_trigger {
        batching::node_trigger(step, now, node);
    }
}

/// The longest time that the drain may take, as the claim says.
fn set_termination_time(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if let Some(claim) = step.karpenter.nodes.get_mut(&node)
        && let Some(grace) = claim.template.termination_grace_period
        && claim.termination_time.is_none()
    {
        claim.termination_time = Some(queue::termination_time(now, grace));
    }
}

/// A claim got its instance after its deletion had been asked for.
pub(super) fn deleted_while_launching(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    terminate(step, now, node);
}

fn is_lost(step: &Step<'_>, node: NodeId) -> bool {
    step.karpenter.nodes.get(&node).is_some_and(|claim| claim.instance_gone)
}

/// Taints a node so that it takes no more pods.
pub(super) fn taint(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let taint = queue::leaving(step);
    let Some(claim) = step.karpenter.nodes.get_mut(&node) else { return };
    if std::mem::replace(&mut claim.tainted, true) {
        return;
    }
    step.act(Action::Taint(node, taint));
    step.note_node(node, Fact::NodeTainted, taint.key.as_str());
    if step.karpenter.behaviour.leaving_nodes_trigger {
        batching::node_trigger(step, now, node);
    }
}

/// The node has reached the age limit of its claim. From v0.23 to v0.37 that is a matter of the disruption loop.
pub(super) fn expired(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if step.has_disruption_loop() && !step.karpenter.behaviour.v1_disruption {
        return;
    }
    let state = step.cluster.node(node);
    if state.deletion_requested.is_none() && state.phase < NodePhase::Terminating {
        begin(step, now, node, NodeEnd::Expired, "the node has reached its age limit");
    }
}

/// Looks at a draining node: evicts the next group of pods, or goes on when nobody is left that has to leave.
pub(super) fn drain_poll(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if step.karpenter.nodes.get(&node).is_none_or(|claim| claim.draining_since.is_none()) {
        return;
    }
    if step.cluster.node(node).phase != NodePhase::Registered {
        return;
    }
    if step.karpenter.nodes.get(&node).is_some_and(|claim| claim.awaits_volumes) {
        await_volumes(step, now, node);
        return;
    }
    if !step.karpenter.behaviour.queue_forces_deletion && delete_overdue(step, now, node) {
        step.next(Stage::Evict(node));
    } else {
        evict_next(step, now, node);
    }
}

/// Evicts the next group of pods, or goes on when nobody is left that has to leave.
pub(super) fn evict_next(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let Some(since) = step.karpenter.nodes.get(&node).and_then(|claim| claim.draining_since) else { return };
    let queue_deletes = step.karpenter.behaviour.queue_forces_deletion;
    let overdue = if queue_deletes { overdue(step, now, node) } else { Vec::new() };
    let group = next_group(step, now, node, &overdue);
    for &pod in &overdue {
        eviction::enqueue(step, now, pod);
    }
    for &pod in &group {
        let view = unnamed_pod_view(step, pod);
        if view.is_active() && (queue_deletes || !view.do_not_disrupt(now)) {
            eviction::enqueue(step, now, pod);
        }
    }
    let too_soon = now - since < step.karpenter.behaviour.shortest_drain;
    if !group.is_empty() || !overdue.is_empty() || too_soon {
        let drift = step.slip(LateTimer::NodePoll, node.0, now);
        step.wake(now + POLL + drift, Timer::DrainPoll(node));
        return;
    }
    step.act(Action::Drained(node));
    await_volumes(step, now, node);
}

/// The instance of a drained node is terminated once no volume is attached that a pod which had to leave has used, or when the
/// node's time is up. Releases before v1 do not wait.
///
/// Source: Karpenter core v1.13 `pkg/controllers/node/termination/controller.go`, `ensureVolumesDetached`,
/// `filterVolumeAttachments`.
fn await_volumes(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let latest = step.karpenter.nodes.get(&node).and_then(|claim| claim.termination_time);
    let stays = |pod: PodId| !unnamed_pod_view(step, pod).waits_for_eviction(now);
    let waits = step.karpenter.behaviour.awaits_instance
        && latest.is_none_or(|latest| now < latest)
        && step.outside.holds_volumes(node, &stays);
    let Some(claim) = step.karpenter.nodes.get_mut(&node) else { return };
    if waits {
        if !std::mem::replace(&mut claim.awaits_volumes, true) {
            step.note_node(node, Fact::AwaitingVolumeDetachment, "");
        }
        let drift = step.slip(LateTimer::NodePoll, node.0, now);
        step.wake(now + POLL + drift, Timer::DrainPoll(node));
        return;
    }
    claim.draining_since = None;
    terminate(step, now, node);
}

/// Deletes the pods that would not be gone in time otherwise, whatever protects them; whether there were any.
///
/// Source: Karpenter core v1.13 `pkg/controllers/node/termination/terminator/terminator.go`, `DeleteExpiringPods`.
fn delete_overdue(step: &mut Step<'_>, now: SimTime, node: NodeId) -> bool {
    let pods = overdue(step, now, node);
    for &pod in &pods {
        if let Some(grace) = forced_grace(step, now, node, pod) {
            step.act(Action::DeletePod(pod, grace));
        }
    }
    !pods.is_empty()
}

/// The pods of a node that would not be gone in time otherwise.
fn overdue(step: &Step<'_>, now: SimTime, node: NodeId) -> Vec<PodId> {
    let pods = step.cluster.node(node).pods.iter().copied();
    pods.filter(|&pod| forced_grace(step, now, node, pod).is_some()).collect()
}

/// The grace period with which a pod is deleted, whatever protects it; `None` if it can be gone in time otherwise.
pub(super) fn forced_grace(step: &Step<'_>, now: SimTime, node: NodeId, pod: PodId) -> Option<SimDuration> {
    let latest = step.karpenter.nodes.get(&node)?.termination_time?;
    let view = unnamed_pod_view(step, pod);
    let too_late = view.deletion.is_none_or(|end| end > latest);
    let overdue = view.waits_for_eviction(now) && too_late && now > latest - view.spec.grace_period();
    overdue.then(|| SimDuration::from_secs((latest - now).as_secs().max(1)))
}

/// The pods that have to leave next. In v1 plain pods go first, then daemons that do not tolerate the taint, then the same
/// of critical pods, each group only when the former is gone; before v1 daemons stay. Pods that are deleted now are in no group.
fn next_group(step: &Step<'_>, now: SimTime, node: NodeId, deleted: &[PodId]) -> Vec<PodId> {
    let by_taint = step.karpenter.behaviour.drains_by_taint;
    let rank = |pod: &PodId| {
        let state = step.cluster.pod(*pod);
        let critical = state.spec.priority_class.is_some_and(|name: Symbol| CRITICAL.contains(&name.as_str()));
        if by_taint { (critical, state.daemon) } else { (false, false) }
    };
    let leaving: Vec<PodId> = leaving(step, now, node).filter(|pod| !deleted.contains(pod)).collect();
    let Some(first) = leaving.iter().map(rank).min() else { return Vec::new() };
    leaving.into_iter().filter(|pod| rank(pod) == first).collect()
}

/// The pods of a node that have to leave before its drain is over.
fn leaving<'s>(step: &'s Step<'_>, now: SimTime, node: NodeId) -> impl Iterator<Item = PodId> + 's {
    let by_taint = step.karpenter.behaviour.drains_by_taint;
    let has_to_leave = move |pod: &PodId| {
        if by_taint { unnamed_pod_view(step, *pod).waits_for_eviction(now) } else { !step.cluster.pod(*pod).daemon }
    };
    step.cluster.node(node).pods.iter().copied().filter(has_to_leave)
}

/// The same pods, each with whether `karpenter.sh/do-not-disrupt` keeps it from being evicted now.
pub(super) fn waits_for(step: &Step<'_>, now: SimTime, node: NodeId) -> Vec<(PodId, bool)> {
    leaving(step, now, node).map(|pod| (pod, unnamed_pod_view(step, pod).do_not_disrupt(now))).collect()
}

/// Has the instance terminated; from v1 on Karpenter looks every five seconds whether it is gone.
fn terminate(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if is_lost(step, node) {
        step.act(Action::Remove { node, unannounced: true });
        return;
    }
    if step.karpenter.behaviour.awaits_instance && step.is_managed(node) {
        if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
            claim.awaits_instance = true;
        }
        let drift = step.slip(LateTimer::NodePoll, node.0, now);
        step.wake(now + INSTANCE_POLL + drift, Timer::InstancePoll(node));
    }
    step.act(Action::Terminate(node));
}

/// The instance of a node no longer exists: Karpenter finds that when it looks.
pub(super) fn instance_gone(step: &mut Step<'_>, node: NodeId) {
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        claim.instance_gone = true;
    }
}

/// Karpenter looks whether a terminated instance is gone; if so, node and claim go.
pub(super) fn instance_poll(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let phase = step.cluster.node(node).phase;
    if phase == NodePhase::Gone {
        return;
    }
    if phase == NodePhase::Terminating && is_lost(step, node) {
        step.act(Action::Remove { node, unannounced: false });
    } else {
        let drift = step.slip(LateTimer::NodePoll, node.0, now);
        step.wake(now + INSTANCE_POLL + drift, Timer::InstancePoll(node));
    }
}

/// A launch has failed for good: the claim goes a moment later.
pub(super) fn give_up(step: &mut Step<'_>, now: SimTime, node: NodeId, reason: &str) {
    if !step.karpenter.behaviour.makes_claims {
        step.act(Action::FailLaunch(node, reason.to_owned()));
        return;
    }
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        claim.failed = true;
    }
    step.note_node(node, Fact::LaunchFailed, reason);
    step.wake(now + CLAIM_GOES, Timer::ClaimGone(node));
}

/// A claim whose launch failed is gone.
pub(super) fn claim_gone(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if step.cluster.node(node).phase == NodePhase::Claimed {
        step.act(Action::DropClaim(node));
        step.node_gone(now, node);
    }
}

/// Looks for registered claims whose instance has vanished, and removes those whose node is not Ready.
///
/// Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/garbagecollection/controller.go`.
pub(super) fn collect_garbage(step: &mut Step<'_>, now: SimTime) {
    step.wake(now + GARBAGE_COLLECTION, Timer::GarbageCollection);
    let vanished: Vec<NodeId> = step
        .karpenter
        .nodes
        .iter()
        .filter(|(node, claim)| {
            let state = step.cluster.node(**node);
            let stays = state.phase == NodePhase::Registered && state.deletion_requested.is_none();
            claim.instance_gone && stays && !state.ready
        })
        .map(|(&node, _)| node)
        .collect();
    for node in vanished {
        begin(step, now, node, NodeEnd::InstanceLost, "its instance has vanished");
    }
}
