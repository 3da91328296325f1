//! Queues: messages arrive as the scenario says, and are worked off by whichever replicas are Ready.
//!
//! Deviation: a Kafka consumer group has committed an offset for every partition from the start of the run on.

use super::context::Context;
use super::event::{KubeletEvent, LoadEvent, class};
use super::job_loop;
use super::setup::QueuePlan;
use super::sim::Sim;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimDuration, SimTime, WorkloadId};
use crate::engine::TimerId;
use crate::load::WorkQueue;
use crate::world::record::{QueueSample, WorkloadKind};
use nodecast_replicas::keda::{Partition, QueueFigures};
use nodecast_settings::QueueKind;

/// One queue and its workers.
#[derive(Debug)]
pub(super) struct QueueLoop {
    workload: ObjectName,
    /// The workload, once applied.
    pub(super) id: Option<WorkloadId>,
    /// The messages.
    pub(super) queue: WorkQueue,
    /// What a Ready worker uses at present, in millionths of a CPU.
    cpu_rate: i64,
    shift: Option<TimerId>,
}

impl QueueLoop {
    pub(super) fn new(plan: &QueuePlan<'_>) -> Self {
        let partitions = match plan.spec.kind {
            QueueKind::Kafka { partitions, .. } => Some(partitions),
            QueueKind::Sqs | QueueKind::RabbitMq | QueueKind::Redis => None,
        };
        Self {
            workload: plan.spec.workload,
            id: None,
            queue: WorkQueue::new(plan.spec.work, partitions, plan.spec.waiting),
            cpu_rate: 0,
            shift: None,
        }
    }

    /// CPU that a Ready worker uses at present, in millionths of a CPU.
    pub(super) fn cpu_rate(&self) -> i64 {
        self.cpu_rate
    }

    /// Messages that wait and those that are being worked on, as whole numbers; none is both.
    pub(super) fn messages(&self) -> (i64, i64) {
        self.queue.messages()
    }

    /// What the report shows of it.
    pub(super) fn sample(&self) -> QueueSample {
        QueueSample {
            waiting: self.queue.waiting(),
            in_flight: self.queue.in_flight(),
            arrival_rate: self.queue.arrival_rate(),
            throughput: self.queue.throughput(),
        }
    }

    /// What RabbitMQ says of it: messages that are ready, and with them those that are not acknowledged yet.
    pub(super) fn figures(&self) -> QueueFigures {
        let (ready, in_flight) = self.messages();
        QueueFigures {
            messages: ready + in_flight,
            ready,
            publish_rate: self.queue.arrival_rate(),
            deliver_rate: self.queue.delivery_rate(),
        }
    }

    /// What Kafka says of its partitions, beside what it said before.
    pub(super) fn partitions(&self, before: &[i64]) -> Vec<Partition> {
        let offsets = self.queue.offsets().into_iter().enumerate();
        offsets
            .map(|(index, (latest, committed))| Partition {
                latest,
                committed: Some(committed),
                committed_before: before.get(index).copied(),
            })
            .collect()
    }
}

/// Puts the first change of every queue's arrivals on the queue of events.
pub(super) fn begin(sim: &mut Sim<'_>) {
    let setup = sim.setup;
    for (queue, plan) in setup.queues.iter().enumerate() {
        if let Some(first) = plan.arrivals.first() {
            sim.queue.schedule(first.0, class::LOAD, LoadEvent::QueueStep(queue as u32, 0));
        }
    }
}

/// Messages arrive at another rate from now on.
pub(super) fn step(context: &mut Context<'_>, now: SimTime, queue: u32, step: u32) {
    let setup = context.setup;
    let arrivals = &setup.queues[queue as usize].arrivals;
    let Some(&(_, rate)) = arrivals.get(step as usize) else { return };
    if let Some(next) = arrivals.get(step as usize + 1) {
        context.queue.schedule(next.0, class::LOAD, LoadEvent::QueueStep(queue, step + 1));
    }
    context.queues[queue as usize].queue.set_rate(rate, now);
    settle(context, now, queue as usize);
}

/// Nothing waits any more somewhere in the queue, or as many messages are done there as arrive.
pub(super) fn shift(context: &mut Context<'_>, now: SimTime, queue: u32) {
    let own = &mut context.queues[queue as usize];
    own.shift = None;
    own.queue.advance(now);
    settle(context, now, queue as usize);
}

/// A pod is Ready. One without a readiness probe is so as soon as its containers run, and takes messages only when its
/// application has started.
pub(super) fn pod_ready(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let workload = context.world.pod(pod).workload;
    // Pods of Jobs take theirs one batch at a time.
    let takes_messages = context.world.workload(workload).kind != WorkloadKind::ScaledJob
        && context.queues.iter().any(|queue| queue.id == Some(workload));
    if let Some(at) = has_started_at(context, pod).filter(|&at| takes_messages && at > now) {
        context.queue.schedule(at, class::MACHINES, KubeletEvent::WorkerStarts(pod));
    }
}

/// A worker whose containers ran before has started.
pub(super) fn worker_starts(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let (workload, ready) = (context.world.pod(pod).workload, context.world.pod(pod).is_ready());
    if context.world.workload(workload).kind == WorkloadKind::ScaledJob {
        job_loop::worker_starts(context, now, pod);
    } else if ready {
        replicas_changed(context, now, workload);
    }
}

/// When the application of a pod has started.
fn has_started_at(sim: &Sim<'_>, pod: PodId) -> Option<SimTime> {
    let state = sim.world.pod(pod);
    Some(state.started? + sim.times_of(state.workload).start_time)
}

/// Ready replicas whose application has started.
fn workers(sim: &Sim<'_>, now: SimTime, workload: WorkloadId) -> u32 {
    let state = sim.world.workload(workload);
    if sim.times_of(workload).start_time == SimDuration::ZERO {
        return state.ready;
    }
    let works = |pod: &&PodId| {
        sim.world.pod(**pod).is_ready() && has_started_at(sim, **pod).is_some_and(|started| started <= now)
    };
    state.pods.iter().filter(works).count() as u32
}

/// The number of Ready replicas of a workload has changed.
pub(super) fn replicas_changed(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    if context.queues.iter().all(|queue| queue.id != Some(workload)) {
        return;
    }
    let workers = workers(context, now, workload);
    for queue in 0..context.queues.len() {
        if context.queues[queue].id == Some(workload) {
            context.queues[queue].queue.set_workers(workers, now);
            settle(context, now, queue);
        }
    }
}

/// A workload has come to be: queues that name it find it.
pub(super) fn workload_applied(context: &mut Context<'_>, workload: WorkloadId) {
    let name = context.world.workload(workload).name;
    for queue in &mut context.queues {
        if queue.workload == name {
            queue.id = Some(workload);
        }
    }
}

/// After any change: tells metrics-server what a worker uses from now on, and re-arms the timer for the queue's own next change.
fn settle(context: &mut Context<'_>, now: SimTime, queue: usize) {
    let own = &mut context.queues[queue];
    let ready = own.id.map_or(0, |id| context.sim.world.workload(id).ready);
    own.cpu_rate = if ready == 0 { 0 } else { own.queue.cpu_use_micro() / i64::from(ready) };
    if let Some(timer) = own.shift.take() {
        context.sim.queue.cancel(timer);
    }
    if let Some(workload) = own.id {
        let rate = context.queues.iter().filter(|other| other.id == Some(workload)).map(|other| other.cpu_rate).sum();
        context.metrics.set_worker_use(workload, rate, now);
    }
    let own = &mut context.queues[queue];
    own.shift = own
        .queue
        .next_change()
        .map(|at| context.sim.queue.schedule(at, class::LOAD, LoadEvent::QueueShift(queue as u32)));
}
