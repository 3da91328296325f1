//! Queues: messages arrive as the scenario says, and are worked off by whichever replicas are Ready.
//!
//! Deviation: a Kafka consumer group has a committed offset for every partition from the start of the run.

use super::event::{KubeletEvent, LoadEvent, class};
use super::metrics_server::MetricsServer;
use super::setup::{QueuePlan, Setup};
use super::sim::Sim;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimDuration, SimTime, WorkloadId};
use crate::engine::TimerId;
use crate::load::WorkQueue;
use crate::world::record::{QueueSample, WorkloadKind};
use nodecast_replicas::keda::{Partition, QueueFigures};

/// Every queue of the setup, in its order.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) all: Vec<QueueLoop>,
}

impl Queues {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self { all: setup.queues.iter().map(QueueLoop::new).collect() }
    }
}

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
        let partitions = plan.spec.kind.topic.as_ref().map(|topic| topic.partitions);
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

impl Queues {
    /// Messages arrive at another rate from now on.
    pub(super) fn step(&mut self, sim: &mut Sim<'_>, metrics: &mut MetricsServer, now: SimTime, queue: u32, step: u32) {
        let setup = sim.setup;
        let arrivals = &setup.queues[queue as usize].arrivals;
        let Some(&(_, rate)) = arrivals.get(step as usize) else { return };
        if let Some(next) = arrivals.get(step as usize + 1) {
            sim.queue.schedule(next.0, class::LOAD, LoadEvent::QueueStep(queue, step + 1));
        }
        self.all[queue as usize].queue.set_rate(rate, now);
        self.settle(sim, metrics, now, queue as usize);
    }

    /// Nothing waits any more somewhere in the queue, or as many messages are done there as arrive.
    pub(super) fn shift(&mut self, sim: &mut Sim<'_>, metrics: &mut MetricsServer, now: SimTime, queue: u32) {
        let queue_loop = &mut self.all[queue as usize];
        queue_loop.shift = None;
        queue_loop.queue.advance(now);
        self.settle(sim, metrics, now, queue as usize);
    }

    /// A pod is Ready. One without a readiness probe is so as soon as its containers run, and takes messages only when its
    /// application has started.
    pub(super) fn pod_ready(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let workload = sim.world.pod(pod).workload;
        // Pods of Jobs take theirs one batch at a time.
        let takes_messages = sim.world.workload(workload).kind != WorkloadKind::ScaledJob
            && self.all.iter().any(|queue| queue.id == Some(workload));
        if let Some(at) = has_started_at(sim, pod).filter(|&at| takes_messages && at > now) {
            sim.queue.schedule(at, class::MACHINES, KubeletEvent::WorkerStarts(pod));
        }
    }

    /// The number of Ready replicas of a workload has changed.
    pub(super) fn replicas_changed(
        &mut self,
        sim: &mut Sim<'_>,
        metrics: &mut MetricsServer,
        now: SimTime,
        workload: WorkloadId,
    ) {
        if self.all.iter().all(|queue| queue.id != Some(workload)) {
            return;
        }
        let workers = workers(sim, now, workload);
        for queue in 0..self.all.len() {
            if self.all[queue].id == Some(workload) {
                self.all[queue].queue.set_workers(workers, now);
                self.settle(sim, metrics, now, queue);
            }
        }
    }

    /// A workload has come to be: queues that name it find it.
    pub(super) fn workload_applied(&mut self, sim: &Sim<'_>, workload: WorkloadId) {
        let name = sim.world.workload(workload).name;
        for queue in &mut self.all {
            if queue.workload == name {
                queue.id = Some(workload);
            }
        }
    }

    /// After any change: tells metrics-server what a worker uses from now on, and re-arms the timer for the queue's own next change.
    fn settle(&mut self, sim: &mut Sim<'_>, metrics: &mut MetricsServer, now: SimTime, queue: usize) {
        let queue_loop = &mut self.all[queue];
        let ready = queue_loop.id.map_or(0, |id| sim.world.workload(id).ready);
        queue_loop.cpu_rate = if ready == 0 { 0 } else { queue_loop.queue.cpu_use_micro() / i64::from(ready) };
        debug_assert!(queue_loop.cpu_rate >= 0, "a worker uses {}", queue_loop.cpu_rate);
        if let Some(timer) = queue_loop.shift.take() {
            sim.queue.cancel(timer);
        }
        if let Some(workload) = queue_loop.id {
            let rate = self.all.iter().filter(|other| other.id == Some(workload)).map(|other| other.cpu_rate).sum();
            metrics.set_worker_use(workload, rate, now);
        }
        let queue_loop = &mut self.all[queue];
        queue_loop.shift = queue_loop
            .queue
            .next_change()
            .map(|at| sim.queue.schedule(at, class::LOAD, LoadEvent::QueueShift(queue as u32)));
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
