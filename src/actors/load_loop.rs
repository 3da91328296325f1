//! Load: requests arrive as the scenario says, and are answered by whichever replicas are Ready.

use super::context::Context;
use super::event::{Event, class};
use super::setup::{LoadPlan, LoadStep};
use super::{prometheus, queue_loop};
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, SimTime, WorkloadId};
use crate::engine::TimerId;
use crate::load::queueing::ResponseTime;
use crate::load::{RequestModel, Service, Source};
use crate::world::record::EventKind;

/// The cost of a request where no load is ever stated.
const IDLE_SERVICE: Service = Service {
    cpu_per_request: SimDuration::ZERO,
    concurrency: 1,
    base_latency: SimDuration::ZERO,
    cpu_limit_milli: None,
};

/// The requests to one workload.
#[derive(Debug)]
pub(super) struct LoadLoop {
    /// The workload's name.
    pub(super) workload: ObjectName,
    /// The workload, once applied.
    pub(super) id: Option<WorkloadId>,
    /// The queue in front of its replicas.
    pub(super) model: RequestModel,
    /// CPU that a replica which was always Ready would have used, in millionths of a CPU times microseconds.
    cpu_per_replica: i128,
    /// What a Ready replica uses at present, in millionths of a CPU.
    cpu_rate: i64,
    settled: SimTime,
    shift: Option<TimerId>,
    /// The response time last sampled, with its 99th percentile: finding it takes a search.
    sampled: Option<(ResponseTime, f64)>,
}

impl LoadLoop {
    pub(super) fn new(plan: &LoadPlan) -> Self {
        Self {
            workload: plan.workload,
            id: None,
            model: RequestModel::new(plan.services.first().copied().unwrap_or(IDLE_SERVICE)),
            cpu_per_replica: 0,
            cpu_rate: 0,
            settled: SimTime::ZERO,
            shift: None,
            sampled: None,
        }
    }

    /// Mean and 99th percentile of the response time at present, in seconds; `None` when nothing is served.
    pub(super) fn response_seconds(&mut self) -> Option<(f64, f64)> {
        let response = self.model.response_time()?;
        let p99 = match self.sampled {
            Some((known, p99)) if known == response => p99,
            _ => response.quantile(0.99),
        };
        self.sampled = Some((response, p99));
        Some((response.mean(), p99))
    }

    /// CPU that a replica which was always Ready would have used by `now`, in millionths of a CPU times microseconds.
    pub(super) fn cpu_of_one_replica(&self, now: SimTime) -> i128 {
        self.cpu_per_replica + i128::from(self.cpu_rate) * i128::from(now.saturating_since(self.settled).as_micros())
    }

    /// CPU that a Ready replica uses at present, in millionths of a CPU.
    pub(super) fn cpu_rate(&self) -> i64 {
        self.cpu_rate
    }
}

/// Puts the first step of every load on the queue.
pub(super) fn begin(context: &mut Context<'_>) {
    let setup = context.setup;
    for (load, plan) in setup.loads.iter().enumerate() {
        if let Some(first) = plan.steps.first() {
            context.queue.schedule(first.at, class::LOAD, Event::LoadStep(load as u32, 0));
        }
    }
}

/// Requests come from elsewhere from now on.
pub(super) fn step(context: &mut Context<'_>, now: SimTime, load: u32, step: u32) {
    let setup = context.setup;
    let Some(plan) = setup.loads.get(load as usize) else { return };
    let Some(&LoadStep { source, service, .. }) = plan.steps.get(step as usize) else { return };
    if let Some(next) = plan.steps.get(step as usize + 1) {
        context.queue.schedule(next.at, class::LOAD, Event::LoadStep(load, step + 1));
    }
    let before = context.loads[load as usize].model.source();
    if let Some(&service) = plan.services.get(service as usize) {
        context.loads[load as usize].model.set_service(service, now);
    }
    context.loads[load as usize].model.set_source(source, now);
    let workload = context.loads[load as usize].id;
    match (before, source) {
        (_, Source::Closed { clients, remaining }) => {
            let message = format!("{clients} clients, {remaining:.0} requests");
            context.world.note(now, EventKind::LoadStarted, workload, message);
        }
        (Source::Idle, Source::Open { rate }) if rate > 0.0 => {
            context.world.note(now, EventKind::LoadStarted, workload, format!("{rate} requests per second"));
        }
        _ => {}
    }
    settle(context, now, load as usize);
}

/// The load changes by itself.
pub(super) fn shift(context: &mut Context<'_>, now: SimTime, load: u32) {
    let own = &mut context.loads[load as usize];
    own.shift = None;
    own.model.advance(now);
    if own.model.is_finished() {
        own.model.set_source(Source::Idle, now);
        let message = format!("{:.0} requests answered", own.model.completed());
        context.world.note(now, EventKind::LoadFinished, own.id, message);
    }
    settle(context, now, load as usize);
}

/// The number of Ready replicas of a workload has changed.
pub(super) fn replicas_changed(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    let ready = context.world.workload(workload).ready;
    for load in 0..context.loads.len() {
        if context.loads[load].id == Some(workload) {
            context.loads[load].model.set_replicas(ready, now);
            settle(context, now, load);
        }
    }
    prometheus::replicas_changed(context, workload);
    queue_loop::replicas_changed(context, now, workload);
}

/// A workload has come to be: loads that name it find it.
pub(super) fn workload_applied(context: &mut Context<'_>, workload: WorkloadId) {
    let name = context.world.workload(workload).name;
    for load in &mut context.loads {
        if load.workload == name {
            load.id = Some(workload);
        }
    }
    queue_loop::workload_applied(context, workload);
}

/// After any change of source or replicas: accrues CPU at the old rate, takes the new one, and re-arms the timer for the
/// model's own next change.
fn settle(context: &mut Context<'_>, now: SimTime, load: usize) {
    let own = &mut context.loads[load];
    own.cpu_per_replica = own.cpu_of_one_replica(now);
    own.settled = now;
    let ready = own.id.map_or(0, |id| context.world.workload(id).ready);
    own.cpu_rate = if ready == 0 { 0 } else { own.model.cpu_use_micro() / i64::from(ready) };
    if let Some(timer) = own.shift.take() {
        context.queue.cancel(timer);
    }
    own.shift =
        own.model.next_change().map(|at| context.queue.schedule(at, class::LOAD, Event::LoadShift(load as u32)));
}
