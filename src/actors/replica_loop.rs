//! The HorizontalPodAutoscaler controller: every autoscaler at its own phase, every 15 s.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::context::Context;
use super::event::{Event, class};
use super::{keda_loop, prometheus, workload_controllers};
use crate::domain::external_metrics::ExternalSubject;
use crate::domain::hpa::{HorizontalPodAutoscaler, MetricSource, MetricSpec, MetricTarget};
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::words::rounded;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, PodSpec, ResourceName, SimDuration, SimTime, Symbol, WorkloadId};
use crate::policy::replicas::hpa::{
    self, HpaDecision, HpaParameters, HpaState, HpaView, MetricProblem, MetricReading, PodSample, PodView, Proposal,
    ReadyCondition, Reported, Sample, SelectorProblem, SettledPods, effective_metrics, pod_request_milli,
};
use crate::policy::replicas::promql::Element;
use crate::world::PodPhase;
use crate::world::record::{EventKind, MetricFacts, MetricSample, MetricUnit};

/// `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: SimDuration = SimDuration::from_secs(15);

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
    room: Room,
}

/// The pods of a pass.
#[derive(Debug, Default)]
struct Room {
    /// Those that are looked at one by one.
    pods: Vec<PodId>,
    /// The newest pod at the last pass.
    newest: Option<PodId>,
    views: Vec<PodView>,
    reading: Reading,
}

/// What reading a resource needs anew at every pass, or nearly so.
#[derive(Debug, Default)]
struct Reading {
    samples: Vec<PodSample>,
    /// What a pod of a template requests of the resource last asked about.
    request: Option<(Arc<PodSpec>, ResourceName, Option<i64>)>,
}

impl Reading {
    fn request(&mut self, template: &Arc<PodSpec>, (name, container): (ResourceName, Option<&str>)) -> Option<i64> {
        if container.is_some() {
            return pod_request_milli(template, name, container).ok();
        }
        if let Some((known, of, request)) = &self.request
            && Arc::ptr_eq(known, template)
            && *of == name
        {
            return *request;
        }
        let request = pod_request_milli(template, name, None).ok();
        self.request = Some((Arc::clone(template), name, request));
        request
    }
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
    pub(super) fn samples(&self) -> impl Iterator<Item = MetricSample> {
        self.read.iter().copied()
    }
}

/// What was read for one metric.
enum Read {
    PerPod(Vec<PodSample>),
    Series(Vec<i64>),
    Failed(String),
}

impl Read {
    /// The samples, for their room.
    fn into_samples(self) -> Option<Vec<PodSample>> {
        match self {
            Self::PerPod(samples) => Some(samples),
            Self::Series(_) | Self::Failed(_) => None,
        }
    }

    fn as_reading(&self) -> MetricReading<'_> {
        match self {
            Self::PerPod(samples) => MetricReading::PerPod { samples, unmatched: &[] },
            Self::Series(values) => MetricReading::Series(values),
            Self::Failed(why) => MetricReading::Failed(why),
        }
    }
}

/// An autoscaler is applied, by a person or by the ScaledObject that owns it; a known one takes its new form and keeps what
/// the controller remembers. Up to Kubernetes 1.36 its first pass comes within one period, from 1.37 at once.
pub(super) fn apply<'s>(
    context: &mut Context<'s>,
    now: SimTime,
    spec: &'s HorizontalPodAutoscaler,
    owner: Option<u32>,
) {
    let version = context.setup.versions.kubernetes;
    let name = ObjectName { namespace: spec.namespace, name: spec.name };
    let target = context.workload_named(ObjectName { namespace: spec.namespace, name: spec.target.name });
    context.world.note(now, EventKind::ManifestApplied, target, format!("HorizontalPodAutoscaler {name}"));
    if let Some(known) = context.autoscalers.iter_mut().find(|own| !own.retired && own.name() == name) {
        known.spec = spec;
        known.target = target;
        known.read.clear();
        known.room = Room::default();
        find_rivals(context);
        return;
    }
    let index = context.autoscalers.len() as u32;
    context.autoscalers.push(ReplicaLoop {
        spec,
        owner,
        retired: false,
        target,
        has_rival: false,
        state: HpaState::default(),
        parameters: HpaParameters::of(version),
        last_failure: None,
        read: Vec::new(),
        room: Room::default(),
    });
    find_rivals(context);
    let phase = context.streams.stream("hpa-phase", &name.to_string()).span_up_to(SYNC_PERIOD);
    let first = if version.minor() >= 37 { SimDuration::ZERO } else { phase };
    context.queue.schedule_in(first, class::REPLICA_AUTOSCALER, Event::ReplicaSync(index));
}

/// The ScaledObject `owner` has no other autoscaler than `keep` any more.
pub(super) fn retire_owned(context: &mut Context<'_>, owner: u32, keep: Option<&HorizontalPodAutoscaler>) {
    for own in &mut context.autoscalers {
        if own.owner == Some(owner) && keep.is_none_or(|keep| keep.name != own.spec.name) {
            own.retired = true;
            own.read.clear();
        }
    }
    find_rivals(context);
}

/// One pass over one autoscaler.
pub(super) fn sync(context: &mut Context<'_>, now: SimTime, index: u32) {
    if context.autoscalers[index as usize].retired {
        return;
    }
    context.queue.schedule_in(SYNC_PERIOD, class::REPLICA_AUTOSCALER, Event::ReplicaSync(index));
    let Some(target) = target(context, index) else { return };
    let spec = context.autoscalers[index as usize].spec;
    let metrics = effective_metrics(spec);
    let mut room = std::mem::take(&mut context.autoscalers[index as usize].room);
    let settled = look_at_pods(context, now, target, metrics, &mut room);
    let Room { pods, views, reading, .. } = &mut room;
    // At zero the controller asks for nothing unless it scales from there.
    let reads: SmallVec<[Read; 1]> = match context.world.workload(target).replicas == 0 && !wakes(context, index) {
        true => SmallVec::new(),
        false => {
            let mut read = |metric| read_metric(context, now, index, &pods[..], metric, reading);
            (0..metrics.len()).map(&mut read).collect()
        }
    };
    let readings: SmallVec<[MetricReading<'_>; 1]> = reads.iter().map(Read::as_reading).collect();
    let view = HpaView {
        now,
        spec_replicas: context.world.workload(target).replicas as i32,
        status_replicas: context.world.workload(target).pods.len() as i32,
        pods: views,
        settled,
        readings: &readings,
        selector_problem: ambiguous(context, index).then_some(SelectorProblem::Ambiguous),
    };
    let own = &mut context.autoscalers[index as usize];
    let decision = hpa::sync(spec, &mut own.state, &view, &own.parameters);
    drop(readings);
    room.reading.samples = reads.into_iter().find_map(Read::into_samples).unwrap_or(room.reading.samples);
    own.room = room;
    remember(context, index, target, metrics, &decision);
    apply_decision(context, now, index, target, metrics, &decision);
}

/// Puts the pods that have to be looked at one by one where `room` has them, and sums up the others: those that have settled
/// at metrics-server, unless a metric other than CPU has a value for each.
fn look_at_pods(
    context: &Context<'_>,
    now: SimTime,
    target: WorkloadId,
    metrics: &[MetricSpec],
    room: &mut Room,
) -> SettledPods {
    let all = context.world.workload(target).pods.as_slice();
    let mut settled = SettledPods::default();
    if metrics.iter().all(is_known_of_settled_pods) {
        settled = context.metrics.settled_pods(target, &context.loads, now);
        find_unsettled(context, all, settled.pods, room);
    } else {
        room.pods.clear();
        room.pods.extend_from_slice(all);
    }
    room.views.clear();
    room.views.extend(room.pods.iter().map(|&pod| pod_view(context, pod)));
    settled
}

/// The pods of `all`, in order of creation, but for the `settled` ones: mostly those of the last pass that still are so and
/// those made since, so that the others need no look. Only if that does not make up all of them, one has unsettled.
fn find_unsettled(context: &Context<'_>, all: &[PodId], settled: i64, room: &mut Room) {
    let unsettled = |pod: &PodId| !context.metrics.is_settled(*pod);
    let Room { pods, newest, .. } = room;
    pods.retain(|pod| context.world.pod(*pod).phase != PodPhase::Gone && unsettled(pod));
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

/// Whether an autoscaler whose target has no replicas looks at its metrics: up to 1.36 with a minimum of zero, from 1.37 if it
/// took the target there itself.
fn wakes(context: &Context<'_>, index: u32) -> bool {
    let own = &context.autoscalers[index as usize];
    match context.setup.versions.kubernetes.minor() {
        ..37 => own.spec.min_replicas == Some(0),
        _ => own.state.conditions.scaled_to_zero.is_true(),
    }
}

/// Whether another autoscaler scales the same workload, which the controller looks at from Kubernetes 1.26 on.
///
/// Source: Kubernetes 1.26 `pkg/controller/podautoscaler/horizontal.go`, `validateAndParseSelector`.
fn ambiguous(context: &Context<'_>, index: u32) -> bool {
    context.setup.versions.kubernetes.minor() >= 26 && context.autoscalers[index as usize].has_rival
}

/// Finds out which autoscalers scale the same workload: an autoscaler or its target has come or gone.
fn find_rivals(context: &mut Context<'_>) {
    let mut scalers: FxHashMap<WorkloadId, u32> = FxHashMap::default();
    for (_, target) in context.replica_autoscalers() {
        *scalers.entry(target).or_default() += 1;
    }
    for own in &mut context.autoscalers {
        let others = |target| scalers.get(&target).copied().unwrap_or(0) - u32::from(!own.retired);
        own.has_rival = own.target.is_some_and(|target| others(target) > 0);
    }
}

/// The workload that the autoscaler scales, which may have come to be after it.
fn target(context: &mut Context<'_>, index: u32) -> Option<WorkloadId> {
    let spec = context.autoscalers[index as usize].spec;
    if context.autoscalers[index as usize].target.is_none() {
        let name = ObjectName { namespace: spec.namespace, name: spec.target.name };
        context.autoscalers[index as usize].target = context.workload_named(name);
        if context.autoscalers[index as usize].target.is_some() {
            find_rivals(context);
        }
    }
    context.autoscalers[index as usize].target
}

/// Keeps what the pass read for the report.
fn remember(context: &mut Context<'_>, index: u32, target: WorkloadId, metrics: &[MetricSpec], decision: &HpaDecision) {
    let own = &mut context.autoscalers[index as usize];
    let autoscaler = own.name();
    if own.read.len() != metrics.len() {
        own.read = metrics
            .iter()
            .map(|metric| {
                let (target_value, unit) = target_in_units(metric);
                let facts =
                    MetricFacts { autoscaler, workload: target, name: short_name(metric), target: target_value, unit };
                MetricSample { metric: context.world.add_metric(facts), value: None, asks_for: None }
            })
            .collect();
    }
    for (position, sample) in own.read.iter_mut().enumerate() {
        let proposal = decision.proposals.get(position).and_then(|outcome| outcome.as_ref().ok());
        sample.value = proposal.map(|proposal| reported_in_units(proposal.reported, &metrics[position]));
        sample.asks_for = proposal.map(|proposal| u32::try_from(proposal.replicas).unwrap_or(0));
    }
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

/// Writes the new count, and the reason with the readings behind it.
fn apply_decision(
    context: &mut Context<'_>,
    now: SimTime,
    index: u32,
    target: WorkloadId,
    metrics: &[MetricSpec],
    decision: &HpaDecision,
) {
    let own = &mut context.autoscalers[index as usize];
    // A controller repeats its warning at every pass; the record keeps the first of a series.
    if decision.failure != own.last_failure {
        own.last_failure.clone_from(&decision.failure);
        if let Some(failure) = &decision.failure {
            context.world.note(now, EventKind::RescaleFailed, Some(target), failure.as_str());
        }
    }
    if decision.rescales() {
        let (reason, values) = (decision.reason.text(metrics), readings_text(metrics, decision));
        let replicas = u32::try_from(decision.desired).unwrap_or(0);
        context.world.rescale(target, replicas, now, EventKind::Rescaled, (&reason, &values));
        workload_controllers::wake(context, target);
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

fn pod_view(context: &Context<'_>, pod: PodId) -> PodView {
    let state = context.world.pod(pod);
    let phase = match state.phase {
        PodPhase::Pending | PodPhase::Starting => ReportedPhase::Pending,
        PodPhase::Running => ReportedPhase::Running,
        PodPhase::Gone => ReportedPhase::Succeeded,
    };
    let ready = state.started.map(|started| ReadyCondition {
        ready: state.is_ready(),
        since: state.ready_since.or(state.deletion_requested).unwrap_or(started),
    });
    PodView { phase, deleting: state.deletion_requested.is_some(), start_time: state.started, ready }
}

/// Reads the metric at `position`.
fn read_metric(
    context: &mut Context<'_>,
    now: SimTime,
    index: u32,
    pods: &[PodId],
    position: usize,
    room: &mut Reading,
) -> Read {
    let (spec, owner) = (context.autoscalers[index as usize].spec, context.autoscalers[index as usize].owner);
    let metric = &effective_metrics(spec)[position];
    match &metric.source {
        MetricSource::Resource { name } => read_resource(context, now, pods, (*name, None), room),
        MetricSource::ContainerResource { name, container } => {
            read_resource(context, now, pods, (*name, Some(container.as_str())), room)
        }
        MetricSource::External { .. } if owner.is_some() => {
            match keda_loop::external_metric(context, now, owner.unwrap_or_default(), position) {
                Ok(milli) => Read::Series(vec![milli]),
                Err(why) => Read::Failed(why),
            }
        }
        MetricSource::External { metric, selector } => match prometheus::adapted(context, now, *metric) {
            Some(Ok(elements)) => {
                let chosen = elements
                    .iter()
                    .filter(|own| selector.as_ref().is_none_or(|selector| selector.matches(&own.labels)));
                series(chosen.map(|own| own.value).collect())
            }
            Some(Err(why)) => Read::Failed(why),
            None => stated(context, now, *metric),
        },
        MetricSource::Object { metric, object, .. } => match prometheus::adapted(context, now, *metric) {
            Some(Ok(elements)) => {
                let kind = Symbol::new(&object.kind.as_str().to_ascii_lowercase());
                let own = |element: &&Element| {
                    is_in(element, spec.namespace) && element.labels.get(kind) == Some(object.name)
                };
                series(elements.iter().filter(own).map(|own| own.value).collect())
            }
            Some(Err(why)) => Read::Failed(why),
            None => stated(context, now, *metric),
        },
        MetricSource::Pods { metric, .. } => match prometheus::adapted(context, now, *metric) {
            Some(Ok(elements)) => of_pods(context, now, spec.namespace, pods, &elements),
            Some(Err(why)) => Read::Failed(why),
            None => Read::Failed(NO_PIPELINE.to_owned()),
        },
    }
}

/// Values as the adapter hands them on: thousandths, truncated.
fn series(values: Vec<f64>) -> Read {
    if values.is_empty() {
        return Read::Failed("the adapter has no value of the metric".to_owned());
    }
    Read::Series(values.into_iter().map(|value| (value * 1e3) as i64).collect())
}

/// Whether an element belongs to the namespace; one without the label is taken to.
fn is_in(element: &Element, namespace: Symbol) -> bool {
    element.labels.get(Symbol::new("namespace")).is_none_or(|own| own == namespace)
}

/// The values of the pods; those without one are missing.
fn of_pods(context: &Context<'_>, now: SimTime, namespace: Symbol, pods: &[PodId], elements: &[Element]) -> Read {
    let label = Symbol::new("pod");
    let values: FxHashMap<Symbol, f64> = elements
        .iter()
        .filter(|element| is_in(element, namespace))
        .filter_map(|element| Some((element.labels.get(label)?, element.value)))
        .collect();
    let sample = |&pod: &PodId| {
        let value = Symbol::existing(context.world.pod_name(pod)).and_then(|name| values.get(&name));
        let window = SimDuration::from_secs(60);
        PodSample { sample: value.map(|value| Sample { milli: (value * 1e3) as i64, at: now, window }), request: None }
    };
    let samples: Vec<PodSample> = pods.iter().map(sample).collect();
    if samples.iter().all(|sample| sample.sample.is_none()) {
        return Read::Failed("the adapter has no value of any pod".to_owned());
    }
    Read::PerPod(samples)
}

const NO_PIPELINE: &str = "no metrics pipeline serves this metric in the simulation";

/// The value that the scenario states for a metric.
fn stated(context: &Context<'_>, now: SimTime, metric: Symbol) -> Read {
    let subject = ExternalSubject::Metric(metric);
    match context.setup.external_metrics.iter().find(|stated| stated.subject == subject) {
        Some(stated) => match stated.at(now) {
            Some(value) => Read::Series(vec![(value * 1e3) as i64]),
            None => Read::Failed("the scenario says that reading it fails".to_owned()),
        },
        None => Read::Failed(NO_PIPELINE.to_owned()),
    }
}

/// A resource of each pod, or of one container of each, from metrics-server. The samples are put where `room` has them.
fn read_resource(
    context: &Context<'_>,
    now: SimTime,
    pods: &[PodId],
    (name, container): (ResourceName, Option<&str>),
    room: &mut Reading,
) -> Read {
    let is_memory = name == ResourceName::MEMORY;
    let has_memory = || pods.iter().any(|&pod| context.metrics.memory_sample(pod, now).is_some());
    if name != ResourceName::CPU && !(is_memory && has_memory()) {
        return Read::Failed(NO_PIPELINE.to_owned());
    }
    let mut samples = std::mem::take(&mut room.samples);
    samples.clear();
    let sample = |&pod: &PodId| {
        let state = context.world.pod(pod);
        let running = state.phase == PodPhase::Running;
        let sample = match is_memory {
            _ if !running => None,
            true => context.metrics.memory_sample(pod, now),
            false => context.metrics.sample(pod, (state.workload, state.started), &context.loads, now),
        };
        PodSample { sample, request: room.request(&state.spec, (name, container)) }
    };
    samples.extend(pods.iter().map(sample));
    Read::PerPod(samples)
}
