//! Load: requests arrive as the scenario says, and are answered by whichever replicas are Ready.

use std::fmt::Write;

use super::cpu_shares::CpuShares;
use super::cpu_use::CpuUse;
use super::event::{LoadEvent, class};
use super::load_steps::LoadStep;
use super::of_workloads::OfWorkloads;
use super::setup::{LoadPart, LoadPlan, Setup};
use super::sim::Sim;
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{Check, SimDuration, SimTime, WorkloadId};
use crate::engine::{Streams, TimerId};
use crate::load::queueing::ResponseTime;
use crate::load::{Replicas, RequestModel, Service, Source};
use crate::world::record::{EventKind, ReplicaMemory};

/// The requests to one workload.
#[derive(Debug)]
pub(super) struct LoadLoop {
    /// The workload's name.
    pub(super) workload: ObjectName,
    /// The workload, once applied.
    pub(super) id: Option<WorkloadId>,
    /// The queue in front of its replicas.
    pub(super) model: RequestModel,
    /// What a replica that was always Ready would have used.
    pub(super) cpu: CpuUse,
    /// Ready replicas since anything last changed.
    ready: u32,
    /// Ready replicas at present, by their CPU limit.
    pub(super) replicas: Replicas,
    /// What all replicas had used when last counted and at the last sample, where requests are simulated one by one.
    cpu_seen: f64,
    cpu_sampled: (f64, SimTime),
    /// The part of the plan that holds.
    part: Option<u32>,
    shift: Option<TimerId>,
    /// The response time last sampled, with its 99th percentile: finding it takes a search.
    sampled: Option<(ResponseTime, f64)>,
}

impl LoadLoop {
    pub(super) fn new(plan: &LoadPlan, streams: &Streams, resolution: SimDuration) -> Self {
        let service = plan.parts.first().map_or_else(Service::default, |part| part.service);
        let model = if plan.exact {
            let entity = plan.workload.to_string();
            let stream = |name| streams.stream(name, &entity);
            RequestModel::exact(service, stream("request-arrival"), stream("request-service"))
        } else {
            RequestModel::new(service)
        };
        Self {
            workload: plan.workload,
            id: None,
            model,
            cpu: CpuUse::read_every(resolution),
            ready: 0,
            replicas: Replicas::default(),
            cpu_seen: 0.0,
            cpu_sampled: (0.0, SimTime::ZERO),
            part: None,
            shift: None,
            sampled: None,
        }
    }

    /// The same that is told whether what its model keeps is worked out at each use too.
    pub(super) fn checked(self, check: Check) -> Self {
        Self { model: self.model.checked(check), ..self }
    }

    /// Mean and 99th percentile of the response time at present, in seconds; `None` when nothing is served. Where requests
    /// are simulated one by one, those of the answers since the last call.
    pub(super) fn response_seconds(&mut self) -> Option<(f64, f64)> {
        if let Some(mut recent) = self.model.take_recent() {
            let last = recent.len().checked_sub(1)?;
            let mean = recent.iter().sum::<f64>() / recent.len() as f64;
            // The nearest rank of the 99th percentile, counted from zero.
            let rank = (recent.len() * 99).div_ceil(100).saturating_sub(1).min(last);
            return Some((mean, *recent.select_nth_unstable_by(rank, f64::total_cmp).1));
        }
        let response = self.model.response_time()?;
        let p99 = match self.sampled {
            Some((known, p99)) if known == response => p99,
            _ => response.quantile(0.99),
        };
        self.sampled = Some((response, p99));
        Some((response.mean(), p99))
    }

    /// CPU that all Ready replicas use at present, in thousandths; where requests are simulated one by one, the mean since
    /// the last call.
    pub(super) fn cpu_used_milli(&mut self, now: SimTime) -> f64 {
        let Some(used) = self.model.cpu_used_exactly() else {
            return self.cpu.rate() as f64 * f64::from(self.ready) / 1e3;
        };
        let (before, since) = self.cpu_sampled;
        self.cpu_sampled = (used, now);
        let seconds = now.saturating_since(since).as_secs_f64();
        if seconds > 0.0 { (used - before) / seconds / 1e3 } else { 0.0 }
    }

    /// Counts the CPU used up to `now`, where requests are simulated one by one.
    fn count_cpu(&mut self, now: SimTime) {
        if !self.model.is_exact() {
            return;
        }
        self.model.advance(now);
        let used = self.model.cpu_used_exactly().unwrap_or_default();
        if self.ready > 0 {
            self.cpu.add(libm::round((used - self.cpu_seen) * 1e6 / f64::from(self.ready)) as i128, now);
        }
        self.cpu_seen = used;
    }

    /// What a replica that was always Ready would have used by `now`, in millionths of a CPU times microseconds; the model has
    /// been brought there.
    pub(super) fn cpu_of_replica(&self, now: SimTime) -> i128 {
        let not_counted = self.model.cpu_used_exactly().filter(|_| self.ready > 0).unwrap_or(self.cpu_seen);
        let each = (not_counted - self.cpu_seen) * 1e6 / f64::from(self.ready.max(1));
        self.cpu.by(now) + libm::round(each) as i128
    }

    /// Memory of a Ready replica at present, at most `limit`; `None` if the scenario does not say what requests need.
    pub(super) fn memory_of_replica(&self, limit: Option<i64>) -> Option<ReplicaMemory> {
        let service = self.model.conditions().service();
        Some(ReplicaMemory {
            present: self.model.memory_of_replica()?,
            kept_per_million: service.memory?.kept_per_million,
            cpu_per_request: service.cpu_per_request,
            limit,
        })
    }

    /// Memory in bytes of a Ready replica that has used so much CPU (in millionths of a CPU times microseconds); `None` if
    /// the scenario does not say what requests need.
    pub(super) fn memory_of(&self, cpu_used: i128) -> Option<i64> {
        let service = self.model.conditions().service();
        let kept = service.memory?.kept_per_million as f64;
        let answered = cpu_used as f64 / 1e6 / service.cpu_per_request.as_micros().max(1) as f64;
        Some(self.model.memory_of_replica()? + libm::round(kept * answered / 1e6) as i64)
    }
}

/// Brings loads whose requests are simulated one by one to `now`, so that what they used is known.
pub(super) fn count_up_to(loads: &mut [LoadLoop], now: SimTime) {
    for load in loads {
        load.count_cpu(now);
    }
}

/// Every load of the setup, in its order.
#[derive(Debug)]
pub(super) struct Loads {
    pub(super) all: Vec<LoadLoop>,
    /// The positions of each workload's.
    pub(super) of: OfWorkloads,
}

impl Loads {
    pub(super) fn new(setup: &Setup<'_>, streams: &Streams) -> Self {
        let load = |plan| LoadLoop::new(plan, streams, setup.scenario.metrics_server.resolution).checked(setup.check);
        Self { all: setup.loads.iter().map(load).collect(), of: OfWorkloads::default() }
    }
}

/// Puts the first step of every load on the queue.
pub(super) fn begin(sim: &mut Sim<'_>) {
    let setup = sim.setup;
    for (load, plan) in setup.loads.iter().enumerate() {
        if let Some(first) = plan.steps.first() {
            sim.queue.schedule(first.at, class::LOAD, LoadEvent::LoadStep(load as u32, 0));
        }
    }
}

impl Loads {
    /// Requests come from elsewhere from now on.
    pub(super) fn step(&mut self, sim: &mut Sim<'_>, cpu_shares: &mut CpuShares, now: SimTime, load: u32, step: u32) {
        let setup = sim.setup;
        let Some(plan) = setup.loads.get(load as usize) else { return };
        let Some(LoadStep { source, part, .. }) = plan.steps.get(step as usize) else { return };
        if let Some(next) = plan.steps.get(step as usize + 1) {
            sim.queue.schedule(next.at, class::LOAD, LoadEvent::LoadStep(load, step + 1));
        }
        let before = self.all[load as usize].model.source();
        let item = &mut self.all[load as usize];
        if item.part != Some(part)
            && let Some(LoadPart { service, spacing }) = plan.parts.get(part as usize)
        {
            item.part = Some(part);
            item.model.set_service(*service, spacing.clone(), now);
        }
        item.model.set_source(source, now);
        let workload = self.all[load as usize].id;
        match (before, source) {
            (_, Source::Closed { clients, remaining, think_time }) => {
                let people = counted(u64::from(clients), "client", "clients");
                let mut message = format!("{people}, {}", requests(remaining));
                if think_time > SimDuration::ZERO {
                    let _ = write!(message, ", pauses of {think_time}");
                }
                sim.world.note(now, EventKind::LoadStarted, workload, message);
            }
            (Source::Idle, Source::Open { rate }) if rate > 0.0 => {
                sim.world.note(now, EventKind::LoadStarted, workload, rate_text(rate));
            }
            (Source::Idle, Source::Cpu { milli }) if milli > 0.0 => {
                sim.world.note(
                    now,
                    EventKind::LoadStarted,
                    workload,
                    format!("{} cores in use", libm::round(milli) / 1e3),
                );
            }
            _ => {}
        }
        self.settle(sim, cpu_shares, now, load as usize);
    }

    /// The load changes by itself.
    pub(super) fn shift(&mut self, sim: &mut Sim<'_>, cpu_shares: &mut CpuShares, now: SimTime, load: u32) {
        let item = &mut self.all[load as usize];
        item.shift = None;
        item.model.advance(now);
        if item.model.is_finished() {
            item.model.set_source(Source::Idle, now);
            let message = format!("{} answered", requests(item.model.completed()));
            sim.world.note(now, EventKind::LoadFinished, item.id, message);
        }
        self.settle(sim, cpu_shares, now, load as usize);
    }

    /// After any change of source or replicas: takes the new rates, and shares the CPU of nodes that are short of it.
    fn settle(&mut self, sim: &mut Sim<'_>, cpu_shares: &mut CpuShares, now: SimTime, load: usize) {
        self.take_rates(sim, now, load);
        cpu_shares.demand_changed(sim, self, now, load);
    }
}

/// A rate for people: two decimals, below one request per second four.
fn rate_text(rate: f64) -> String {
    let scale = if rate < 1.0 { 1e4 } else { 1e2 };
    format!("{} requests per second", libm::round(rate * scale) / scale)
}

/// A number of requests in words.
fn requests(number: f64) -> String {
    counted(libm::round(number) as u64, "request", "requests")
}

impl Loads {
    /// A workload has come to be: loads that name it find it.
    pub(super) fn workload_applied(&mut self, sim: &Sim<'_>, workload: WorkloadId) {
        let name = sim.world.workload(workload).name;
        for load in &mut self.all {
            if load.workload == name {
                load.id = Some(workload);
            }
        }
        self.of = OfWorkloads::new(self.all.iter().map(|load| load.id));
    }

    /// The number of Ready replicas of a workload has changed.
    pub(super) fn replicas_changed(
        &mut self,
        sim: &mut Sim<'_>,
        cpu_shares: &mut CpuShares,
        now: SimTime,
        workload: WorkloadId,
    ) {
        for at in 0..self.of.indices(workload).len() {
            let load = self.of.indices(workload)[at];
            let item = &mut self.all[load];
            item.model.set_replicas(item.replicas.clone(), now);
            self.settle(sim, cpu_shares, now, load);
        }
    }

    /// The nodes leave the replicas another amount of CPU than before.
    pub(super) fn set_cpu_available(&mut self, sim: &mut Sim<'_>, now: SimTime, load: usize, milli: Option<i64>) {
        self.all[load].model.set_cpu_available(milli, now);
        self.take_rates(sim, now, load);
    }

    /// After any change of source or replicas: takes the new rate of CPU use, and re-arms the timer for the model's own next
    /// change.
    fn take_rates(&mut self, sim: &mut Sim<'_>, now: SimTime, load: usize) {
        let item = &mut self.all[load];
        item.count_cpu(now);
        item.ready = item.id.map_or(0, |id| sim.world.workload(id).ready);
        let counted = item.ready == 0 || item.model.is_exact();
        let rate = if counted { 0 } else { item.model.cpu_use_micro() / i64::from(item.ready) };
        debug_assert!(rate >= 0, "a replica uses {rate}");
        item.cpu.set_rate(rate, now);
        if let Some(timer) = item.shift.take() {
            sim.queue.cancel(timer);
        }
        item.shift = item
            .model
            .next_change(now)
            .map(|at| sim.queue.schedule(at, class::LOAD, LoadEvent::LoadShift(load as u32)));
    }
}
