//! The HorizontalPodAutoscaler controller: every autoscaler 15 s after its last pass was done.
//!
//! Those that exist when the controller starts are all queued then, so that they have one phase, and slip apart by the time that
//! their passes take. One that comes later is looked at a period after it was made, from Kubernetes 1.37 on at once.
//!
//! Where controllers take time, the tier of the control plane sets how many are evaluated at once.

mod reading;
mod selected;
mod status_times;
mod workers;

use std::cell::RefCell;

use smallvec::SmallVec;

use super::drift::Drift;
use super::event::{ReplicaEvent, class};
use super::keda_loop::ScaledObjects;
use super::load_loop::Loads;
use super::metrics_server::MetricsServer;
use super::prometheus::Prometheus;
use super::queue_loop::Queues;
use super::setup::Setup;
use super::sim::Sim;
use super::usage_loop::Usages;
use super::workload_controllers;
use crate::cluster::{Derived, PodPhase};
use crate::control_plane::scales::TakenFromOthers;
use crate::domain::hpa::{HorizontalPodAutoscaler, MetricSource, MetricSpec, MetricTarget};
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::words::rounded;
use crate::domain::workload::ObjectName;
use crate::domain::{ControlPlaneTier, KubernetesBehaviour, PodId, ResourceName, SimDuration, SimTime, WorkloadId};
use crate::world::World;
use crate::world::controller_loops::AutoscalerPasses;
use crate::world::record::{EventKind, MetricFacts, MetricSample, MetricUnit};
use nodecast_replicas::hpa::{
    self, HpaDecision, HpaParameters, HpaState, HpaView, MetricProblem, MetricReading, PodView, Proposal,
    ReadyCondition, Reported, SelectorProblem, SettledPods, effective_metrics,
};

use reading::{MetricRead, Reading, read_metrics};
use status_times::StatusTimes;
pub(super) use workers::Workers;

/// `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: SimDuration = SimDuration::from_secs(15);

/// Every autoscaler that there is or has been, in order of application.
#[derive(Debug)]
pub(super) struct ReplicaLoops<'s> {
    pub(super) all: Vec<ReplicaLoop<'s>>,
    /// Pods that the selectors of other workloads take; brought up to date by whoever asks.
    taken_from_others: RefCell<Derived<TakenFromOthers>>,
    /// The workers that evaluate them.
    workers: Workers,
}

impl ReplicaLoops<'_> {
    pub(super) fn new(setup: &Setup<'_>, world: &World) -> Self {
        let taken_from_others = RefCell::new(Derived::new(world));
        Self { all: Vec::new(), taken_from_others, workers: Workers::new(setup) }
    }

    /// The control plane has another tier.
    pub(super) fn change_tier(&mut self, setup: &Setup<'_>, tier: ControlPlaneTier) {
        self.workers.change_tier(setup, tier);
    }

    /// Passes over autoscalers of replicas, where they take time.
    pub(super) fn passes(&self) -> Option<AutoscalerPasses> {
        self.workers.passes()
    }

    /// Those that there are, with what they scale.
    pub(super) fn scales(&self) -> impl Iterator<Item = (&HorizontalPodAutoscaler, WorkloadId)> {
        self.all.iter().filter_map(ReplicaLoop::scales)
    }
}

/// One autoscaler and what the controller remembers of it.
#[derive(Debug)]
pub(super) struct ReplicaLoop<'s> {
    spec: &'s HorizontalPodAutoscaler,
    /// The ScaledObject that owns it, by its position.
    owner: Option<u32>,
    /// Whether it has been deleted.
    retired: bool,
    /// The workload that it scales.
    pub(super) target: Option<WorkloadId>,
    /// Whether another one scales the same workload.
    has_rival: bool,
    state: HpaState,
    parameters: HpaParameters,
    last_failure: Option<String>,
    /// What the last pass read, for the report.
    read: Vec<MetricSample>,
    /// Room for the pods of a pass, which is used again: there are thousands of passes an hour.
    room: Option<Box<PassBuffers>>,
    drift: Drift,
    times: StatusTimes,
}

/// The pods of a pass.
#[derive(Debug, Default)]
struct PassBuffers {
    /// Those that are looked at one by one.
    pods: Vec<PodId>,
    /// The newest pod at the last pass.
    newest: Option<PodId>,
    views: Vec<PodView>,
    reading: Reading,
}

impl ReplicaLoop<'_> {
    fn name(&self) -> ObjectName {
        ObjectName { namespace: self.spec.namespace, name: self.spec.name }
    }

    /// The autoscaler and the workload that it scales, unless it has been deleted or never found one.
    pub fn scales(&self) -> Option<(&HorizontalPodAutoscaler, WorkloadId)> {
        self.target.filter(|_| !self.retired).map(|target| (self.spec, target))
    }

    /// What the last pass read.
    pub(super) fn samples(&self) -> &[MetricSample] {
        &self.read
    }
}

/// An autoscaler is applied, by a person or by the ScaledObject that owns it; a known one takes its new form and owner, and keeps what
/// the controller remembers. The first pass of a new one comes after one period, from Kubernetes 1.37 on at once; of those that
/// are there from the start within one period, at one phase.
pub(super) fn apply<'s>(
    sim: &mut Sim<'s>,
    autoscalers: &mut ReplicaLoops<'s>,
    scaled_objects: &ScaledObjects<'s>,
    now: SimTime,
    spec: &'s HorizontalPodAutoscaler,
    owner: Option<u32>,
) {
    let version = sim.setup.policy.versions.kubernetes;
    let name = ObjectName { namespace: spec.namespace, name: spec.name };
    let target = sim.scaled_workload(spec.namespace, spec.target);
    sim.world.note(now, EventKind::ManifestApplied, target, format!("HorizontalPodAutoscaler {name}"));
    if let Some(known) = autoscalers.all.iter_mut().find(|autoscaler| !autoscaler.retired && autoscaler.name() == name)
    {
        if known.owner.is_some() && owner.is_none() {
            // KEDA watches the autoscaler that it owns, and sets its form back at once.
            return;
        }
        known.owner = owner;
        known.spec = spec;
        known.target = target;
        known.read.clear();
        known.room = None;
        autoscalers.find_rivals();
        limit_replicas(sim, scaled_objects, now, (spec, owner), target);
        return;
    }
    let index = autoscalers.all.len() as u32;
    autoscalers.all.push(ReplicaLoop {
        spec,
        owner,
        retired: false,
        target,
        has_rival: false,
        state: HpaState::default(),
        parameters: HpaParameters::for_version(version),
        last_failure: None,
        read: Vec::new(),
        room: None,
        drift: Drift::of_autoscaler(&sim.streams, &name.to_string()),
        times: StatusTimes::new(&sim.streams),
    });
    autoscalers.find_rivals();
    limit_replicas(sim, scaled_objects, now, (spec, owner), target);
    let first = first_sync(sim, now);
    sim.queue.schedule_in(first, class::REPLICA_AUTOSCALER, ReplicaEvent::ReplicaSync(index));
}

/// Tells the record how many replicas the autoscaler may give the workload that it scales.
fn limit_replicas(
    sim: &mut Sim<'_>,
    scaled_objects: &ScaledObjects<'_>,
    now: SimTime,
    (spec, owner): (&HorizontalPodAutoscaler, Option<u32>),
    target: Option<WorkloadId>,
) {
    let count = |replicas: i32| u32::try_from(replicas).unwrap_or(0);
    let limits = (count(spec.min_replicas.unwrap_or(1)), count(spec.max_replicas));
    if let Some(target) = target {
        sim.world.limit_replicas(target, Some(limits), now);
        // Where there is a calendar, it is what asks for the most until another metric does.
        let has_calendar = owner.is_some_and(|owner| scaled_objects.calendar_triggers(owner).contains(&true));
        sim.world.plan_maximum(target, has_calendar, now);
    }
}

/// How long after `now` a new autoscaler is looked at first.
fn first_sync(sim: &Sim<'_>, now: SimTime) -> SimDuration {
    if now == SimTime::ZERO {
        // The controller has run since before the start, and so have they.
        let drawn = || sim.streams.stream("hpa-phase", "").span_up_to(SYNC_PERIOD);
        return sim.setup.scenario.phases.replica_autoscalers.unwrap_or_else(drawn);
    }
    let at_once = sim.setup.policy.versions.kubernetes.has(KubernetesBehaviour::HpaPromptFirstSync);
    if at_once { SimDuration::ZERO } else { SYNC_PERIOD }
}

impl ReplicaLoops<'_> {
    /// The ScaledObject `owner` has no other autoscaler than `keep` any more.
    pub(super) fn retire_owned(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        owner: u32,
        keep: Option<&HorizontalPodAutoscaler>,
    ) {
        for replica_loop in &mut self.all {
            if replica_loop.owner == Some(owner) && keep.is_none_or(|keep| keep.name != replica_loop.spec.name) {
                replica_loop.retired = true;
                replica_loop.read.clear();
                if let Some(target) = replica_loop.target {
                    sim.world.limit_replicas(target, None, now);
                }
            }
        }
        self.find_rivals();
    }

    /// The autoscaler of this name is deleted; whether there is one.
    pub(super) fn retire(&mut self, sim: &mut Sim<'_>, now: SimTime, name: ObjectName) -> bool {
        let Some(replica_loop) =
            self.all.iter_mut().find(|replica_loop| !replica_loop.retired && replica_loop.name() == name)
        else {
            return false;
        };
        replica_loop.retired = true;
        replica_loop.read.clear();
        if let Some(target) = replica_loop.target {
            sim.world.limit_replicas(target, None, now);
        }
        self.find_rivals();
        true
    }

    /// A workload is deleted: whoever scaled it looks for another of its name.
    pub(super) fn target_deleted(&mut self, workload: WorkloadId) {
        for replica_loop in self.all.iter_mut().filter(|replica_loop| replica_loop.target == Some(workload)) {
            replica_loop.target = None;
            replica_loop.read.clear();
            replica_loop.room = None;
        }
        self.find_rivals();
    }

    /// Whether an autoscaler whose target has no replicas looks at its metrics: up to 1.36 with a minimum of zero, from 1.37 if it
    /// took the target there itself.
    fn wakes(&self, sim: &Sim<'_>, index: u32) -> bool {
        let replica_loop = &self.all[index as usize];
        if sim.setup.policy.versions.kubernetes.has(KubernetesBehaviour::HpaZeroByCondition) {
            replica_loop.state.conditions.scaled_to_zero.is_true()
        } else {
            replica_loop.spec.min_replicas == Some(0)
        }
    }

    /// Keeps what the pass read for the report.
    fn remember(
        &mut self,
        sim: &mut Sim<'_>,
        index: u32,
        target: WorkloadId,
        metrics: &[MetricSpec],
        proposals: &[Result<Proposal, MetricProblem>],
    ) {
        let replica_loop = &mut self.all[index as usize];
        let autoscaler = replica_loop.name();
        if replica_loop.read.len() != metrics.len() {
            replica_loop.read = metrics
                .iter()
                .map(|metric| {
                    let (target_value, unit) = target_in_units(metric);
                    let facts = MetricFacts {
                        autoscaler,
                        workload: target,
                        name: short_name(metric),
                        target: target_value,
                        unit,
                    };
                    MetricSample { metric: sim.world.add_metric(facts), value: None, asks_for: None }
                })
                .collect();
        }
        for (position, sample) in replica_loop.read.iter_mut().enumerate() {
            let proposal = proposals.get(position).and_then(|outcome| outcome.as_ref().ok());
            sample.value = proposal.map(|proposal| reported_in_units(proposal.reported, &metrics[position]));
            sample.asks_for = proposal.map(|proposal| u32::try_from(proposal.replicas).unwrap_or(0));
        }
    }

    /// Writes the new count, and the reason with the readings behind it.
    fn apply_decision(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        index: u32,
        target: WorkloadId,
        metrics: &[MetricSpec],
        decision: &HpaDecision,
    ) {
        let replica_loop = &mut self.all[index as usize];
        // A controller repeats its warning at every pass; the record keeps the first of a series.
        if decision.failure != replica_loop.last_failure {
            replica_loop.last_failure.clone_from(&decision.failure);
            if let Some(failure) = &decision.failure {
                sim.world.note(now, EventKind::RescaleFailed, Some(target), failure.as_str());
            }
        }
        if decision.rescales() {
            let (reason, values) = (decision.reason.text(metrics), readings_text(metrics, decision));
            let replicas = u32::try_from(decision.desired).unwrap_or(0);
            sim.world.rescale(target, replicas, now, EventKind::Rescaled, (&reason, &values));
            workload_controllers::wake(sim, target);
        }
    }
}

/// The controller's loops, with what they read and scale.
pub(super) struct Syncing<'a, 's> {
    pub(super) sim: &'a mut Sim<'s>,
    pub(super) autoscalers: &'a mut ReplicaLoops<'s>,
    pub(super) scaled_objects: &'a mut ScaledObjects<'s>,
    pub(super) metrics: &'a MetricsServer,
    pub(super) loads: &'a Loads,
    pub(super) usages: &'a Usages,
    pub(super) prometheus: &'a Prometheus,
    pub(super) queues: &'a mut Queues,
}

/// An autoscaler is due: a worker takes it up, now or when one is free.
pub(super) fn due(parts: &mut Syncing<'_, '_>, now: SimTime, index: u32) {
    let loops = &mut *parts.autoscalers;
    if loops.all[index as usize].retired {
        return;
    }
    let next = loops.all[index as usize].drift.after(SYNC_PERIOD);
    let has_metrics = loops.workers.take_up(now, next - SYNC_PERIOD);
    parts.sim.queue.schedule(has_metrics + next, class::REPLICA_AUTOSCALER, ReplicaEvent::ReplicaSync(index));
    if has_metrics == now {
        return sync(parts, now, index);
    }
    parts.sim.queue.schedule(has_metrics, class::REPLICA_AUTOSCALER, ReplicaEvent::ReplicaMetrics(index));
}

/// One pass over one autoscaler, at the instant at which it has its metrics.
pub(super) fn sync(parts: &mut Syncing<'_, '_>, now: SimTime, index: u32) {
    if parts.autoscalers.all[index as usize].retired {
        return;
    }
    let Some(target) = target(parts.sim, parts.autoscalers, parts.scaled_objects, now, index) else {
        return;
    };
    let spec = parts.autoscalers.all[index as usize].spec;
    let metrics = effective_metrics(spec);
    let mut room = parts.autoscalers.all[index as usize].room.take().unwrap_or_default();
    let settled = look_at_pods(parts, now, (index, target), metrics, &mut room);
    let workload = parts.sim.world.workload(target);
    let view = HpaView {
        now,
        spec_replicas: workload.replicas as i32,
        status_replicas: workload.pods.len() as i32,
        pods: &room.views,
        settled,
        readings: &[],
        selector_problem: parts.autoscalers.is_ambiguous(parts.sim, index).then_some(SelectorProblem::Ambiguous),
    };
    let reads = read_metrics(parts, index, &view, &room.pods, &mut room.reading);
    let readings: SmallVec<[MetricReading<'_>; 1]> = reads.iter().map(MetricRead::as_reading).collect();
    let autoscaler = &mut parts.autoscalers.all[index as usize];
    let view = HpaView { readings: &readings, ..view };
    let decision = hpa::sync(autoscaler.spec, &mut autoscaler.state, &view, &autoscaler.parameters);
    drop(readings);
    room.reading.samples = reads.into_iter().find_map(MetricRead::into_samples).unwrap_or(room.reading.samples);
    autoscaler.room = Some(room);
    parts.autoscalers.remember(parts.sim, index, target, metrics, &decision.proposals);
    note_planned_maximum(parts.sim, parts.autoscalers, parts.scaled_objects, now, index, &decision.proposals);
    parts.autoscalers.apply_decision(parts.sim, now, index, target, metrics, &decision);
}

/// Tells the record whether the calendar alone asks for the most replicas: where a cron trigger does, and no other metric. It stays so until
/// another metric asks for as many, since replicas go down later than what was asked for.
fn note_planned_maximum(
    sim: &mut Sim<'_>,
    autoscalers: &ReplicaLoops<'_>,
    scaled_objects: &ScaledObjects<'_>,
    now: SimTime,
    index: u32,
    proposals: &[Result<Proposal, MetricProblem>],
) {
    let autoscaler = &autoscalers.all[index as usize];
    let (Some(owner), Some(target)) = (autoscaler.owner, autoscaler.target) else { return };
    let is_calendar = scaled_objects.calendar_triggers(owner);
    if !is_calendar.contains(&true) {
        return;
    }
    let asks = |calendar: bool| {
        let mut all = proposals.iter().zip(&is_calendar).filter(|(_, is_calendar)| **is_calendar == calendar);
        all.any(|(proposal, _)| {
            proposal.as_ref().is_ok_and(|proposal| proposal.replicas >= autoscaler.spec.max_replicas)
        })
    };
    match (asks(false), asks(true)) {
        (true, _) => sim.world.plan_maximum(target, false, now),
        (false, true) => sim.world.plan_maximum(target, true, now),
        (false, false) => {}
    }
}

/// Puts the pods that have to be looked at one by one where `room` has them, and sums up the others: those that have settled
/// at metrics-server, unless a metric other than CPU has a value for each, or others have made some of the pods.
fn look_at_pods(
    parts: &Syncing<'_, '_>,
    now: SimTime,
    (index, target): (u32, WorkloadId),
    metrics: &[MetricSpec],
    room: &mut PassBuffers,
) -> SettledPods {
    let all = parts.sim.world.workload(target).pods.as_slice();
    let of_others = parts.autoscalers.of_others(parts.sim, target);
    let mut settled = SettledPods::default();
    if of_others.is_empty() && metrics.iter().all(is_known_of_settled_pods) {
        settled = parts.metrics.settled_pods(target, &parts.loads.all, now);
        find_unsettled(parts.sim, parts.metrics, all, settled.pods, room);
    } else {
        room.newest = None;
        room.pods.clear();
        room.pods.extend_from_slice(all);
        room.pods.extend(of_others);
    }
    room.views.clear();
    let times = &parts.autoscalers.all[index as usize].times;
    room.views.extend(room.pods.iter().map(|&pod| pod_view(parts.sim, times, pod)));
    settled
}

/// The pods of `all`, in order of creation, but for the `settled` ones: mostly those of the last pass that still are so and
/// those made since, so that the others need no look. Only if that does not make up all of them, one has unsettled.
fn find_unsettled(sim: &Sim<'_>, metrics: &MetricsServer, all: &[PodId], settled: i64, room: &mut PassBuffers) {
    let unsettled = |pod: &PodId| !metrics.is_settled(*pod);
    let PassBuffers { pods, newest, .. } = room;
    // At the last pass all were looked at, and perhaps those of others.
    if newest.is_none() {
        pods.clear();
    }
    pods.retain(|pod| sim.world.pod(*pod).phase != PodPhase::Gone && unsettled(pod));
    let made_since = all.iter().rev().take_while(|pod| newest.is_none_or(|newest| **pod > newest));
    pods.extend(made_since.copied().filter(unsettled));
    *newest = all.last().copied().max(*newest);
    if pods.len() as i64 + settled != all.len() as i64 {
        pods.clear();
        pods.extend(all.iter().copied().filter(unsettled));
    }
}

/// Whether the metric has no value for each pod, or is the CPU use that is known of settled pods.
fn is_known_of_settled_pods(metric: &MetricSpec) -> bool {
    match &metric.source {
        MetricSource::Resource { name } => *name == ResourceName::CPU,
        MetricSource::Object { .. } | MetricSource::External { .. } => true,
        MetricSource::ContainerResource { .. } | MetricSource::Pods { .. } => false,
    }
}

/// The workload that the autoscaler scales, which may have come to be after it.
fn target(
    sim: &mut Sim<'_>,
    autoscalers: &mut ReplicaLoops<'_>,
    scaled_objects: &ScaledObjects<'_>,
    now: SimTime,
    index: u32,
) -> Option<WorkloadId> {
    let ReplicaLoop { spec, owner, .. } = autoscalers.all[index as usize];
    if autoscalers.all[index as usize].target.is_none() {
        let found = sim.scaled_workload(spec.namespace, spec.target);
        autoscalers.all[index as usize].target = found;
        if found.is_some() {
            autoscalers.find_rivals();
            limit_replicas(sim, scaled_objects, now, (spec, owner), found);
        }
    }
    autoscalers.all[index as usize].target
}

fn target_in_units(metric: &MetricSpec) -> (f64, MetricUnit) {
    match metric.target {
        MetricTarget::Utilization(percent) => (f64::from(percent), MetricUnit::PercentOfRequest),
        MetricTarget::AverageValue(quantity) => (quantity.as_f64(), MetricUnit::PerPod),
        MetricTarget::Value(quantity) => (quantity.as_f64(), MetricUnit::Total),
    }
}

fn reported_in_units(reported: Reported, metric: &MetricSpec) -> f64 {
    match (reported, metric.target) {
        (Reported::Utilization { percent, .. }, _) => f64::from(percent),
        (Reported::AverageValue(milli) | Reported::Value(milli), _) => milli as f64 / 1e3,
    }
}

/// The metric's name without its selector.
fn short_name(metric: &MetricSpec) -> String {
    match &metric.source {
        MetricSource::Resource { name } => name.to_string(),
        MetricSource::ContainerResource { name, container } => format!("{name} of {container}"),
        MetricSource::Pods { metric, .. }
        | MetricSource::Object { metric, .. }
        | MetricSource::External { metric, .. } => metric.to_string(),
    }
}

/// Each metric against its target, in the order of `kubectl get hpa` but with rounded numbers, and what it asks for.
fn readings_text(metrics: &[MetricSpec], decision: &HpaDecision) -> String {
    let text = |(metric, outcome): (&MetricSpec, &Result<Proposal, MetricProblem>)| {
        let name = short_name(metric);
        let proposal = match outcome {
            Ok(proposal) => proposal,
            Err(problem) => return format!("{name}: {problem}"),
        };
        let value = match (proposal.reported, metric.target) {
            (Reported::Utilization { percent, .. }, _) => format!("{percent}%"),
            (Reported::AverageValue(milli) | Reported::Value(milli), _) => rounded(milli as f64 / 1e3),
        };
        let target = match metric.target {
            MetricTarget::Utilization(percent) => format!("{percent}%"),
            MetricTarget::AverageValue(quantity) => format!("{} (avg)", rounded(quantity.as_f64())),
            MetricTarget::Value(quantity) => rounded(quantity.as_f64()),
        };
        format!("{name} {value}/{target}, asks for {}", proposal.replicas)
    };
    metrics.iter().zip(&decision.proposals).map(text).collect::<Vec<_>>().join("; ")
}

fn pod_view(sim: &Sim<'_>, times: &StatusTimes, pod: PodId) -> PodView {
    let state = sim.world.pod(pod);
    let phase = match state.phase {
        PodPhase::Pending | PodPhase::Starting => ReportedPhase::Pending,
        PodPhase::Running => ReportedPhase::Running,
        PodPhase::Gone => ReportedPhase::Succeeded,
    };
    let ready = state.started.map(|started| ReadyCondition {
        ready: state.is_ready(),
        since: match state.ready_since {
            Some(since) => times.ready_condition(pod, since),
            None => state.deletion_requested.unwrap_or(started),
        },
    });
    PodView {
        phase,
        deleting: state.deletion_requested.is_some(),
        start_time: state.started.map(|started| times.start(pod, started)),
        ready,
    }
}
