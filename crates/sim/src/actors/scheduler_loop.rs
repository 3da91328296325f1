//! kube-scheduler's loop: a queue of pods, one attempt at a time, and the pods that wait for something to change.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/backend/queue/scheduling_queue.go`.

mod calls;
mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use calls::Calls;
pub(super) use calls::call_has_its_turn;

use super::actor_events::ActorEvent;
use super::drift::until_beat;
use super::event::{SchedulerEvent, class};
use super::kubelet;
use super::setup::Setup;
use super::sim::Sim;
use super::volumes::Volumes;
use crate::cluster::{NodePhase, PodPhase, SpecId};
use crate::control_plane::call_limit::CallLimit;
use crate::domain::controller_time::CallRate;
use crate::domain::{
    ControlPlaneTier, KubernetesBehaviour, KubernetesVersion, Labels, NodeId, PodId, SimDuration, SimTime, Symbol,
    WorkloadId, well_known,
};
use crate::engine::{Streams, TimerId};
use crate::world::record::WorkloadKind;
use nodecast_scheduler::events::{ClusterEvent, may_help};
use nodecast_scheduler::queue::{
    BACKOFF_FLUSH_PERIOD, QueueOrder, UNSCHEDULABLE_FLUSH_PERIOD, UNSCHEDULABLE_TIMEOUT, backoff_expiry,
    next_backoff_flush, pops_from_backoff,
};
use nodecast_scheduler::{
    ClusterView, Evaluation, PendingPod, Placement, PluginSet, PodVolumes, Scheduler, SchedulerNode, Service, ShapeId,
    TieBreak, Unschedulable, evaluate,
};

/// What one attempt costs where controllers take no time (assumed).
const CYCLE: SimDuration = SimDuration::from_millis(1);
/// What one costs that finds no node in the cluster and ends there (assumed).
const CYCLE_WITHOUT_NODES: SimDuration = SimDuration::from_micros(100);

/// The scheduler's queue and what it knows of the cluster.
#[derive(Debug)]
pub(super) struct SchedulerLoop {
    view: ClusterView,
    scheduler: Scheduler,
    active: BTreeSet<QueueOrder>,
    backing_off: BTreeMap<SimTime, BTreeSet<QueueOrder>>,
    /// Pods that met an error, by when they are tried again: not a moment earlier.
    after_errors: BTreeMap<SimTime, BTreeSet<QueueOrder>>,
    waiting: BTreeMap<PodId, Waiting>,
    pods: FxHashMap<PodId, PodEntry>,
    /// The shape of the pods of a workload that are alike and whose volumes ask for the same.
    shapes: FxHashMap<(WorkloadId, SpecId, PodVolumes), ShapeId>,
    attempts: u64,
    /// What was last said of a pod that no node takes: mostly the next one hears the same.
    last_message: Option<(Unschedulable, String)>,
    calls: Calls,
    awake: bool,
    /// The end of the next back-off, while nothing else is to be done.
    asleep: Option<TimerId>,
    flush_planned: bool,
    /// When the first flush of unschedulable pods is, counted from the start: the scheduler has run since before it.
    flush_phase: SimDuration,
    /// When a window of the backoff queue ends and it is flushed, counted from the start: at its clock's whole seconds.
    backoff_phase: SimDuration,
    streams: Streams,
}

/// A pod that found no node.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    rejected_by: PluginSet,
    since: SimTime,
}

/// A pod as the scheduler knows it.
#[derive(Clone, Copy, Debug)]
struct PodEntry {
    shape: ShapeId,
    failures: u32,
    /// Errors in a row.
    errors: u32,
}

impl SchedulerLoop {
    pub(super) fn new(setup: &Setup<'_>, streams: Streams) -> Self {
        let services = setup.policy.manifests.services.iter();
        let services =
            services.map(|service| Service { namespace: service.name.namespace, selector: service.selector.clone() });
        Self {
            view: ClusterView::new(services.collect(), setup.namespaces()),
            scheduler: Scheduler::new(setup.scheduler.clone()),
            active: BTreeSet::new(),
            backing_off: BTreeMap::new(),
            after_errors: BTreeMap::new(),
            waiting: BTreeMap::new(),
            pods: FxHashMap::default(),
            shapes: FxHashMap::default(),
            attempts: 0,
            last_message: None,
            calls: Calls::new(setup),
            awake: false,
            asleep: None,
            flush_planned: false,
            flush_phase: streams.stream("flush-phase", "").span_up_to(UNSCHEDULABLE_FLUSH_PERIOD),
            backoff_phase: streams.stream("backoff-phase", "").span_up_to(BACKOFF_FLUSH_PERIOD),
            streams,
        }
    }

    /// The control plane has another tier.
    pub(super) fn change_tier(&mut self, tier: ControlPlaneTier) {
        self.calls.change_tier(tier);
    }

    /// The limit of its client, where calls take time.
    pub(super) fn call_limit(&self) -> Option<(&CallLimit, CallRate)> {
        self.calls.limit()
    }

    /// From `now` to the next flush after it: they come at a beat of their own, whenever pods find no node.
    fn until_flush(&self, now: SimTime) -> SimDuration {
        until_beat(now, self.flush_phase, UNSCHEDULABLE_FLUSH_PERIOD)
    }

    fn known(&self, pod: PodId) -> Option<PodEntry> {
        self.pods.get(&pod).copied()
    }

    /// A pod of this shape is there.
    fn know(&mut self, pod: PodId, shape: ShapeId) {
        self.pods.insert(pod, PodEntry { shape, failures: 0, errors: 0 });
    }

    /// Takes the pod that is next, from the backoff queue too where the release does so.
    fn take_next(&mut self, now: SimTime) -> Option<PodId> {
        self.release_backoffs(now);
        if let Some(first) = self.active.pop_first() {
            return Some(first.pod);
        }
        if !pops_from_backoff(self.scheduler.config().version) {
            return None;
        }
        let mut earliest = self.backing_off.first_entry()?;
        let pod = earliest.get_mut().pop_first().map(|order| order.pod);
        if earliest.get().is_empty() {
            earliest.remove();
        }
        pod
    }

    fn release_backoffs(&mut self, now: SimTime) {
        for queue in [&mut self.backing_off, &mut self.after_errors] {
            while let Some(entry) = queue.first_entry().filter(|entry| *entry.key() <= now) {
                self.active.extend(entry.remove());
            }
        }
    }

    /// When the next pod's back-off is over.
    fn next_expiry(&self) -> Option<SimTime> {
        let first = |queue: &BTreeMap<SimTime, BTreeSet<QueueOrder>>| queue.first_key_value().map(|(&at, _)| at);
        first(&self.backing_off).into_iter().chain(first(&self.after_errors)).min()
    }

    /// Pods that the scheduler has declared unschedulable, in order of creation.
    pub(super) fn unschedulable_pods<'a>(&'a self, sim: &'a Sim<'_>) -> impl Iterator<Item = PodId> + 'a {
        // Pods that wait again after an event still carry the condition, so the world is asked, not the queue.
        let parked = self.waiting.keys().copied();
        let queued = self.active.iter().map(|order| order.pod);
        let backing_off = self.backing_off.values().chain(self.after_errors.values());
        let backing_off = backing_off.flatten().map(|order| order.pod);
        let all: BTreeSet<PodId> = parked.chain(queued).chain(backing_off).collect();
        // A pod that has evicted others waits for their room, not for a node.
        let waits = |pod: PodId| self.view.nominated_node(pod).is_none();
        all.into_iter().filter(move |&pod| sim.world.pod(pod).unschedulable && waits(pod))
    }

    /// The node whose room the pod waits for after it has evicted others, if so.
    pub(super) fn nominated_node(&self, pod: PodId) -> Option<NodeId> {
        self.view.nominated_node(pod)
    }

    /// A pod has been created and admission controllers have changed it; whether it is to have a node.
    pub(super) fn pod_created(&mut self, sim: &Sim<'_>, volumes: &mut Volumes, pod: PodId) -> bool {
        let shape = self.shape_of(sim, volumes, pod);
        self.know(pod, shape);
        // Neither kube-scheduler nor an autoscaler looks at a pod whose gates are closed, and nobody opens them here: `resolve` warns.
        sim.world.pod(pod).spec.scheduling_gates.is_empty()
    }

    /// A new pod waits for its turn.
    pub(super) fn queue(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let priority = sim.world.pod(pod).spec.priority;
        self.active.insert(QueueOrder { priority, queued_at: now, pod });
        self.wake(sim, SimDuration::ZERO);
    }

    /// A pod is there that has had its node since `started`.
    pub(super) fn pod_found(
        &mut self,
        sim: &mut Sim<'_>,
        volumes: &mut Volumes,
        pod: PodId,
        node: NodeId,
        started: SimTime,
    ) {
        volumes.pod_created(sim, pod);
        let shape = self.shape_of(sim, volumes, pod);
        self.know(pod, shape);
        self.view.assume_pod(node, pod, shape, started);
    }

    /// The pod's shape as its claims are now.
    fn shape_of(&mut self, sim: &Sim<'_>, volumes: &mut Volumes, pod: PodId) -> ShapeId {
        let asked = volumes.of_pod(sim, pod);
        let state = sim.world.pod(pod);
        let key = (state.workload, state.spec_id, asked);
        if let Some(&known) = self.shapes.get(&key) {
            return known;
        }
        let owner = sim.world.workload(state.workload);
        // The pods of a DaemonSet are spread by being pinned, not by their owner's selector; some pods have no owner.
        let selector = (!state.daemon && owner.kind != WorkloadKind::Pods).then_some(&owner.selector);
        let view = &mut self.view;
        let shape = view.shape_with_volumes(state.namespace, &state.spec, selector, key.2.clone());
        self.shapes.insert(key, shape);
        shape
    }

    /// A pod is gone: what the API server was told of it is of no use any more.
    pub(super) fn forget_told(&mut self, pod: PodId) {
        self.calls.forget_told(pod);
    }

    /// A pod is gone before it had a node.
    pub(super) fn forget(&mut self, pod: PodId) {
        self.forget_calls(pod);
        self.view.clear_nomination(pod);
        self.waiting.remove(&pod);
        self.active.retain(|order| order.pod != pod);
        for queue in [&mut self.backing_off, &mut self.after_errors] {
            queue.retain(|_, orders| {
                orders.retain(|order| order.pod != pod);
                !orders.is_empty()
            });
        }
    }

    /// What the scheduler would say of every node for a pod that waits now; `None` if the pod does not wait, or does not exist yet.
    pub fn inquire(&self, sim: &Sim<'_>, pod: PodId) -> Option<Evaluation> {
        let state = sim.world.get_pod(pod)?;
        let known = self.known(pod).filter(|_| state.phase == PodPhase::Pending)?;
        let pending = PendingPod { id: pod, shape: known.shape, pinned_to: state.pinned };
        Some(evaluate(self.scheduler.config(), &self.view, &pending))
    }

    /// A pod that no node takes waits for something that may help. One that found no node in the cluster at all has met an error: it
    /// is tried again when its back-off is over.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/backend/queue/scheduling_queue.go`, `AddUnschedulablePodIfNotPresent` and
    /// `determineSchedulingHintForInFlightPod`.
    fn set_aside(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, why: &Unschedulable) {
        let priority = sim.world.pod(pod).spec.priority;
        let version = sim.setup.scheduler.version;
        let Some(known) = self.pods.get_mut(&pod) else { return };
        if why.nodes == 0 {
            known.errors += 1;
            let expiry = backoff_expiry(now, known.errors, version, self.backoff_phase);
            let flush = next_backoff_flush(expiry, self.backoff_phase);
            self.after_errors.entry(flush).or_default().insert(QueueOrder { priority, queued_at: now, pod });
            return;
        }
        known.errors = 0;
        known.failures += 1;
        self.waiting.insert(pod, Waiting { rejected_by: why.rejected_by, since: now });
        if !self.flush_planned {
            self.flush_planned = true;
            let wait = self.until_flush(now);
            sim.queue.schedule_in(wait, class::SCHEDULER, SchedulerEvent::FlushUnschedulable);
        }
    }

    /// As what the scheduler knows a pod that has been placed.
    pub(super) fn placed(&self, pod: PodId) -> Option<ShapeId> {
        self.known(pod).map(|known| known.shape)
    }

    /// A pod of this shape has been placed: pods that it may help are tried again.
    pub(super) fn pod_placed(&mut self, sim: &mut Sim<'_>, now: SimTime, shape: Option<ShapeId>) {
        if let Some(shape) = shape {
            self.notify(sim, now, ClusterEvent::PodPlaced(shape));
        }
    }

    /// Gives the pod its condition; whether it had none.
    fn mark_unschedulable(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, why: Unschedulable) -> bool {
        let first = !sim.world.pod(pod).unschedulable;
        let version = sim.setup.scheduler.version;
        sim.world.mark_unschedulable(pod, now, || message(&mut self.last_message, why, version));
        first
    }

    /// Pods that have waited for five minutes are tried again.
    pub(super) fn flush(&mut self, sim: &mut Sim<'_>, now: SimTime) {
        let overdue: Vec<PodId> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| now - waiting.since > UNSCHEDULABLE_TIMEOUT)
            .map(|(&pod, _)| pod)
            .collect();
        for pod in overdue {
            self.requeue(sim, now, pod);
        }
        self.flush_planned = !self.waiting.is_empty();
        if self.flush_planned {
            let wait = self.until_flush(now);
            sim.queue.schedule_in(wait, class::SCHEDULER, SchedulerEvent::FlushUnschedulable);
        }
    }

    /// A node has come to be or has changed: pods that it may help are tried again.
    pub(super) fn node_changed(&mut self, sim: &mut Sim<'_>, volumes: &mut Volumes, now: SimTime, node: NodeId) {
        let state = sim.world.node(node);
        let entry = SchedulerNode {
            name: Arc::from(state.name.as_str()),
            labels: state.labels.clone(),
            taints: state.taints.clone(),
            unschedulable: state.taints.iter().any(|taint| taint.key == well_known::TAINT_UNSCHEDULABLE),
            allocatable: state.allocatable.clone(),
            images: Vec::new(),
            volume_limits: volumes.limits(node).to_vec(),
            missing_drivers: volumes.missing_drivers(node),
        };
        self.view.add_node(node, entry);
        // Compared with a node that was not there, every change that can help does help.
        self.notify(sim, now, ClusterEvent::NodeAdded(node));
    }

    /// The labels of a namespace are others. No pod is tried again for that: no event that the scheduler waits for is one of a namespace.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go`, `EventsToRegister`.
    pub(super) fn namespace_labelled(&mut self, namespace: Symbol, labels: &Labels) {
        self.view.label_namespace(namespace, labels.clone());
        self.scheduler.forget_nodes();
    }

    /// A node is gone.
    pub(super) fn node_removed(&mut self, node: NodeId) {
        self.view.remove_node(node);
    }

    /// A placed pod is being deleted: it no longer counts for spreads.
    pub(super) fn pod_terminating(&mut self, pod: PodId) {
        self.view.mark_terminating(pod);
    }

    /// A placed pod requests something else: its node has more room than before, or less.
    pub(super) fn pod_resized(&mut self, sim: &mut Sim<'_>, volumes: &mut Volumes, now: SimTime, pod: PodId) {
        let (Some(node), Some(before)) = (sim.world.pod(pod).node, self.known(pod)) else { return };
        let started = sim.world.pod(pod).started.unwrap_or(now);
        let shape = self.shape_of(sim, volumes, pod);
        self.view.forget_pod(pod);
        self.know(pod, shape);
        self.view.assume_pod(node, pod, shape, started);
        self.notify(sim, now, ClusterEvent::PodGone(before.shape));
    }

    /// A pod is gone, from its node if it had one.
    pub(super) fn pod_removed(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, node: Option<NodeId>) {
        self.forget_told(pod);
        self.view.forget_pod(pod);
        if let (Some(_), Some(known)) = (node, self.known(pod)) {
            self.notify(sim, now, ClusterEvent::PodGone(known.shape));
        }
        self.pods.remove(&pod);
    }

    /// A claim has been made: pods that wait for it are tried again.
    pub(super) fn claim_added(&mut self, sim: &mut Sim<'_>, now: SimTime, (namespace, name): (Symbol, Symbol)) {
        self.notify(sim, now, ClusterEvent::ClaimAdded(namespace, name));
    }

    fn notify(&mut self, sim: &mut Sim<'_>, now: SimTime, event: ClusterEvent<'_>) {
        let helped: Vec<PodId> = self
            .waiting
            .iter()
            .filter(|(pod, waiting)| {
                self.known(**pod).is_some_and(|known| {
                    let pinned_to = sim.world.pod(**pod).pinned;
                    let pending = PendingPod { id: **pod, shape: known.shape, pinned_to };
                    may_help(&self.view, event, waiting.rejected_by, &pending)
                })
            })
            .map(|(&pod, _)| pod)
            .collect();
        for pod in helped {
            self.requeue(sim, now, pod);
        }
    }

    /// Moves a waiting pod to the active queue, or to the backoff queue until its backoff is over.
    fn requeue(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let Some(waiting) = self.waiting.remove(&pod) else { return };
        let failures = self.known(pod).map_or(0, |known| known.failures);
        let priority = sim.world.pod(pod).spec.priority;
        let order = QueueOrder { priority, queued_at: waiting.since, pod };
        let phase = self.backoff_phase;
        let expiry = backoff_expiry(waiting.since, failures, sim.setup.policy.versions.kubernetes, phase);
        if expiry <= now {
            self.active.insert(order);
        } else {
            let flush = next_backoff_flush(expiry, phase);
            self.backing_off.entry(flush).or_default().insert(order);
        }
        self.wake(sim, SimDuration::ZERO);
    }

    /// Plans the next attempt if none is planned and somebody may want one.
    fn wake(&mut self, sim: &mut Sim<'_>, delay: SimDuration) {
        let idle = self.active.is_empty() && self.next_expiry().is_none();
        if !self.awake && !idle {
            if let Some(timer) = self.asleep.take() {
                sim.queue.cancel(timer);
            }
            self.awake = true;
            sim.queue.schedule_in(delay, class::SCHEDULER, SchedulerEvent::ScheduleNext);
        }
    }
}

/// Another scheduler has bound a pod.
pub(super) fn bound_elsewhere(
    sim: &mut Sim<'_>,
    scheduler: &mut SchedulerLoop,
    now: SimTime,
    pod: PodId,
    node: NodeId,
) {
    let Some(known) = scheduler.known(pod) else { return };
    scheduler.view.assume_pod(node, pod, known.shape, now);
    conclude_binding(sim, scheduler, now, pod, node);
}

/// The scheduler takes the next pod.
pub(super) fn schedule_next(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, volumes: &mut Volumes, now: SimTime) {
    scheduler.awake = false;
    scheduler.asleep = None;
    let Some(pod) = scheduler.take_next(now) else {
        if let Some(at) = scheduler.next_expiry() {
            scheduler.asleep = Some(sim.queue.schedule(at, class::SCHEDULER, SchedulerEvent::ScheduleNext));
        }
        return;
    };
    attempt(sim, scheduler, volumes, now, pod);
    let held = scheduler.calls.held_until.saturating_since(now);
    let attempt = scheduler.calls.attempt().unwrap_or(CYCLE);
    let cycle = if scheduler.view.node_count() == 0 { CYCLE_WITHOUT_NODES } else { attempt };
    scheduler.wake(sim, cycle.max(held));
}

fn attempt(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, volumes: &mut Volumes, now: SimTime, pod: PodId) {
    let state = sim.world.pod(pod);
    let Some(mut known) = scheduler.known(pod) else { return };
    if state.phase != PodPhase::Pending || !state.is_active() {
        return;
    }
    let pinned_to = state.pinned;
    if !state.spec.volumes.is_empty() {
        // Another pod may have bound a claim since.
        known.shape = scheduler.shape_of(sim, volumes, pod);
        scheduler.pods.insert(pod, known);
    }
    if named::goes_by_itself(sim, scheduler, now, pod, known) {
        return;
    }
    let pending = PendingPod { id: pod, shape: known.shape, pinned_to };
    scheduler.attempts += 1;
    let version = scheduler.scheduler.config().version;
    let draw = if version.has(KubernetesBehaviour::SchedulerHeapTies) {
        0
    } else {
        (scheduler.streams.nth("scheduler-ties", "", scheduler.attempts).uniform() * (1_u64 << 53) as f64) as u64
    };
    let tie = TieBreak::of_version(version, draw);
    match scheduler.scheduler.schedule(&scheduler.view, &pending, tie) {
        Placement::Node(chosen) => {
            scheduler.view.assume_pod(chosen.node, pod, known.shape, now);
            calls::bind(sim, scheduler, now, pod, chosen.node);
        }
        Placement::Unschedulable(why) => {
            scheduler.set_aside(sim, now, pod, &why);
            if named::is_unknown_to_scheduler(sim, pod) {
                return;
            }
            let told = scheduler.tell(sim, now, pod, why);
            let first = told.is_some_and(|why| scheduler.mark_unschedulable(sim, now, pod, why));
            if !preempt(sim, scheduler, now, &pending) && first {
                sim.publish(ActorEvent::PodUnschedulable(pod));
            }
        }
    }
}

/// The pod's binding reaches the API server. A node that is gone by then takes nothing: the pod is queued again.
fn conclude_binding(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, now: SimTime, pod: PodId, node: NodeId) {
    let state = sim.world.pod(pod);
    if state.phase != PodPhase::Pending || !state.is_active() {
        return scheduler.view.forget_pod(pod);
    }
    if scheduler.known(pod).is_none() {
        return;
    }
    if sim.world.node(node).phase == NodePhase::Gone {
        let priority = state.spec.priority;
        scheduler.active.insert(QueueOrder { priority, queued_at: now, pod });
        return scheduler.wake(sim, SimDuration::ZERO);
    }
    sim.world.bind_pod(pod, node, now);
    sim.publish(ActorEvent::PodBound(pod, node));
}

/// The condition of a pod that no node takes reaches the API server, later than it was found.
fn conclude_condition(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, now: SimTime, pod: PodId, why: Unschedulable) {
    let state = sim.world.pod(pod);
    let waits = state.phase == PodPhase::Pending && state.is_active();
    if waits && scheduler.mark_unschedulable(sim, now, pod, why) && scheduler.nominated_node(pod).is_none() {
        sim.publish(ActorEvent::PodUnschedulable(pod));
    }
}

/// What is said of a pod that no node takes, given what was last said of one.
fn message(last: &mut Option<(Unschedulable, String)>, why: Unschedulable, version: KubernetesVersion) -> String {
    let message = match last.take() {
        Some((before, message)) if before == why => message,
        _ => why.message(version),
    };
    last.insert((why, message)).1.clone()
}

/// Evicts pods of lower priority if that lets the pod onto a node, and reserves the node for it. Returns whether a node is
/// reserved: then no other is needed.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/preemption/preemption.go`, `Preempt`.
fn preempt(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, now: SimTime, pending: &PendingPod) -> bool {
    let pod = pending.id;
    let priority = sim.world.pod(pod).spec.priority;
    if scheduler.view.has_pods_below(priority) {
        let budgets = sim.budgets.budget_states(&sim.world);
        let draw = scheduler.streams.nth("preemption-start", "", scheduler.attempts).uniform();
        let start = (draw * (1_u64 << 53) as f64) as u64;
        if let Ok(plan) = scheduler.scheduler.preempt(&scheduler.view, pending, &budgets, start) {
            for demoted in plan.demoted {
                scheduler.view.clear_nomination(demoted);
            }
            scheduler.view.nominate(pod, pending.shape, plan.node);
            let reason = format!("preempted by {} of priority {priority}", sim.world.pod_name(pod));
            for victim in plan.victims {
                kubelet::delete(sim, now, victim, true, &reason);
            }
        }
    }
    scheduler.view.nominated_node(pod).is_some()
}
