//! A pod's life on its node: image pull, start, readiness, stop.
//!
//! Deviation: image sizes are not in a manifest, so every image is taken as 100 MB; a pod stops one second after it was
//! told to, whatever its grace period beyond that allows.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::context::Context;
use super::event::{Event, class};
use super::{job_loop, karpenter, load_loop, replay, scheduler_loop, workload_controllers};
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};
use crate::world::record::EventKind;
use crate::world::{NodePhase, PodPhase};

/// Size of an image, compressed.
const IMAGE_BYTES: i64 = 100_000_000;
/// Pull of an image that the node does not have: 1.5 s, plus 100 MB at 80 MB/s, plus unpacking at 180 MB/s.
const PULL: SimDuration = SimDuration::from_millis(3_300);
/// An image that the node has.
const CACHED_PULL: SimDuration = SimDuration::from_millis(300);
/// From the last image pulled to the containers running.
const CONTAINER_START: SimDuration = SimDuration::from_secs(1);
/// From the order to stop to the containers having stopped.
const STOP: SimDuration = SimDuration::from_secs(1);
/// From binding to the kubelet taking the pod up.
const BIND: SimDuration = SimDuration::from_millis(20);

/// The images of every node: from when on each is there, and when the node can pull the next one.
#[derive(Debug, Default)]
pub(super) struct Images {
    there: FxHashMap<(NodeId, Symbol), SimTime>,
    pulling_until: FxHashMap<NodeId, SimTime>,
    pulled: BTreeMap<NodeId, i64>,
}

impl Images {
    /// When `image` can be used on `node` if it is asked for at `from`. A node pulls one image at a time.
    fn available(&mut self, node: NodeId, image: Symbol, from: SimTime) -> SimTime {
        if let Some(&there) = self.there.get(&(node, image)) {
            return there.max(from + CACHED_PULL);
        }
        let idle = self.pulling_until.get(&node).copied().unwrap_or(from);
        let there = idle.max(from) + PULL;
        self.there.insert((node, image), there);
        self.pulling_until.insert(node, there);
        *self.pulled.entry(node).or_insert(0) += IMAGE_BYTES;
        there
    }

    /// Bytes that each node pulled.
    pub(super) fn bytes_pulled(&self) -> Vec<(NodeId, i64)> {
        self.pulled.iter().map(|(&node, &bytes)| (node, bytes)).collect()
    }
}

/// The pod has just been bound: its images are pulled, those of init containers first, then its containers start.
pub(super) fn take_up(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    let Some(node) = state.node else { return };
    let mut at = now + BIND;
    for init in &state.spec.init_containers {
        at = context.images.available(node, Symbol::new(&init.container.image), at) + CONTAINER_START;
    }
    let pulled = state.spec.containers.iter().map(|container| Symbol::new(&container.image));
    let there = pulled.map(|image| context.images.available(node, image, at)).max().unwrap_or(at);
    context.queue.schedule(there + CONTAINER_START, class::MACHINES, Event::PodStarted(pod));
}

/// The pod's containers run; its readiness probe, if it has one, is what Ready waits for.
pub(super) fn start(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    if state.phase != PodPhase::Starting || !state.is_active() {
        return;
    }
    let first_success = |probe: crate::domain::pod::Probe| {
        probe.initial_delay + probe.period * i64::from(probe.success_threshold.saturating_sub(1))
    };
    let wait = state
        .spec
        .containers
        .iter()
        .map(|container| {
            let startup = container.startup_probe.map_or(SimDuration::ZERO, first_success);
            startup + container.readiness_probe.map_or(SimDuration::ZERO, first_success)
        })
        .max()
        .unwrap_or(SimDuration::ZERO);
    context.world.start_pod(pod, now);
    job_loop::pod_started(context, now, pod);
    if wait == SimDuration::ZERO {
        ready(context, now, pod);
    } else {
        context.queue.schedule_in(wait, class::MACHINES, Event::PodReady(pod));
    }
}

/// The pod is Ready.
pub(super) fn ready(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    if state.phase != PodPhase::Running || !state.is_active() || state.is_ready() {
        return;
    }
    if state.node.is_some_and(|node| context.world.node(node).phase >= NodePhase::Terminating) {
        return;
    }
    let workload = state.workload;
    context.world.ready_pod(pod, now);
    context.metrics.pod_ready(pod, workload, &mut context.loads, now);
    load_loop::replicas_changed(context, now, workload);
    workload_controllers::pod_ready(context, workload);
}

/// Somebody deletes the pod: its endpoint leaves at once; an unbound pod is gone at once, a bound one when it has stopped.
pub(super) fn delete(context: &mut Context<'_>, now: SimTime, pod: PodId, evicted: bool, reason: &str) {
    if context.world.pod(pod).is_active() {
        let grace = context.world.pod(pod).spec.grace_period();
        delete_within(context, now, pod, grace, evicted, reason);
    }
}

/// Somebody deletes the pod with a grace period of his own; a pod that is being deleted is given less time.
pub(super) fn delete_within(
    context: &mut Context<'_>,
    now: SimTime,
    pod: PodId,
    grace: SimDuration,
    evicted: bool,
    reason: &str,
) {
    let state = context.world.pod(pod);
    if state.phase == PodPhase::Gone {
        return;
    }
    let (workload, bound, was_ready, again) =
        (state.workload, state.node, state.is_ready(), state.deletion_requested.is_some());
    if was_ready {
        context.metrics.pod_unready(pod, workload, &mut context.loads, now);
    }
    context.world.request_pod_deletion(pod, now, grace, evicted, reason);
    if was_ready {
        load_loop::replicas_changed(context, now, workload);
    }
    match bound {
        None => {
            scheduler_loop::forget(context, pod);
            context.world.remove_pod(pod, now);
            karpenter::state_changed(context, now);
        }
        Some(node) => {
            let stops_in = replay::stops_in(context, pod, grace).unwrap_or(STOP.min(grace));
            context.queue.schedule_in(stops_in, class::MACHINES, Event::PodStopped(pod));
            if !again {
                karpenter::pod_terminating(context, now, pod, node);
            }
        }
    }
    workload_controllers::wake(context, workload);
}

/// The pod's containers have stopped.
pub(super) fn stopped(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    if state.phase == PodPhase::Gone {
        return;
    }
    let (node, workload) = (state.node, state.workload);
    context.world.remove_pod(pod, now);
    scheduler_loop::pod_removed(context, now, pod, node);
    if let Some(node) = node {
        karpenter::pod_gone(context, now, node);
    }
    workload_controllers::wake(context, workload);
}

/// The pod's containers have ended by themselves, their work done.
pub(super) fn succeeded(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    cut_off(context, now, pod);
    context.world.note_pod(pod, now, EventKind::PodSucceeded, "");
    stopped(context, now, pod);
}

/// The pod's machine is gone without a word: it answers no more, and nobody has noticed yet.
pub(super) fn cut_off(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    if !state.is_ready() {
        return;
    }
    let workload = state.workload;
    context.metrics.pod_unready(pod, workload, &mut context.loads, now);
    context.world.unready_pod(pod);
    load_loop::replicas_changed(context, now, workload);
}

/// The node is gone, and the pod with it.
pub(super) fn lost(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    if state.phase == PodPhase::Gone {
        return;
    }
    let (workload, was_ready) = (state.workload, state.is_ready());
    if state.is_active() {
        context.world.request_pod_deletion(pod, now, SimDuration::ZERO, true, "its node is gone");
    }
    if was_ready {
        context.metrics.pod_unready(pod, workload, &mut context.loads, now);
        load_loop::replicas_changed(context, now, workload);
    }
    context.world.remove_pod(pod, now);
    workload_controllers::wake(context, workload);
}

/// Notes that are about a pod's owner, kept here so that their wording is in one place.
pub(super) fn note_applied(context: &mut Context<'_>, now: SimTime, workload: crate::domain::WorkloadId, what: &str) {
    context.world.note(now, EventKind::ManifestApplied, Some(workload), what);
}
