//! The HorizontalPodAutoscaler controller: every autoscaler at its own phase, every 15 s.

use super::context::Context;
use super::event::{Event, class};
use super::workload_controllers;
use crate::domain::hpa::{HorizontalPodAutoscaler, MetricSource, MetricSpec};
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, ResourceName, SimDuration, SimTime, WorkloadId};
use crate::policy::replicas::hpa::{
    self, HpaDecision, HpaParameters, HpaState, HpaView, MetricReading, PodSample, PodView, ReadyCondition, Reported,
    effective_metrics, pod_request_milli,
};
use crate::world::PodPhase;
use crate::world::record::EventKind;

/// `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: SimDuration = SimDuration::from_secs(15);

/// One autoscaler and what the controller remembers of it.
#[derive(Debug)]
pub(super) struct ReplicaLoop<'s> {
    spec: &'s HorizontalPodAutoscaler,
    /// The workload that it scales.
    pub(super) target: Option<WorkloadId>,
    state: HpaState,
    parameters: HpaParameters,
    last_failure: Option<String>,
}

/// An autoscaler is applied. Up to Kubernetes 1.36 its first pass comes within one period, from 1.37 at once.
pub(super) fn apply<'s>(context: &mut Context<'s>, now: SimTime, spec: &'s HorizontalPodAutoscaler) {
    let version = context.setup.versions.kubernetes;
    let target = context.workload_named(ObjectName { namespace: spec.namespace, name: spec.target.name });
    let index = context.autoscalers.len() as u32;
    context.autoscalers.push(ReplicaLoop {
        spec,
        target,
        state: HpaState::default(),
        parameters: HpaParameters::of(version),
        last_failure: None,
    });
    let entity = format!("{}/{}", spec.namespace, spec.name);
    let phase = context.streams.stream("hpa-phase", &entity).span_up_to(SYNC_PERIOD);
    let first = if version.minor() >= 37 { SimDuration::ZERO } else { phase };
    context.queue.schedule_in(first, class::REPLICA_AUTOSCALER, Event::ReplicaSync(index));
    context.world.note(now, EventKind::ManifestApplied, target, format!("HorizontalPodAutoscaler {entity}"));
}

/// One pass over one autoscaler.
pub(super) fn sync(context: &mut Context<'_>, now: SimTime, index: u32) {
    context.queue.schedule_in(SYNC_PERIOD, class::REPLICA_AUTOSCALER, Event::ReplicaSync(index));
    let Some(target) = context.autoscalers[index as usize].target else { return };
    let pods: Vec<PodId> = context.world.workload(target).pods.clone();
    let views: Vec<PodView> = pods.iter().map(|&pod| pod_view(context, pod)).collect();
    let spec = context.autoscalers[index as usize].spec;
    let metrics = effective_metrics(spec);
    let samples: Vec<Option<Vec<PodSample>>> =
        metrics.iter().map(|metric| read_metric(context, now, target, &pods, metric)).collect();
    let readings: Vec<MetricReading<'_>> = samples.iter().map(|samples| reading(samples.as_deref())).collect();
    let view = HpaView {
        now,
        spec_replicas: context.world.workload(target).replicas as i32,
        status_replicas: pods.len() as i32,
        pods: &views,
        readings: &readings,
        selector_problem: None,
    };
    let own = &mut context.autoscalers[index as usize];
    let decision = hpa::sync(spec, &mut own.state, &view, &own.parameters);
    apply_decision(context, now, index, target, metrics, &decision);
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
        let reason = format!("{} ({})", decision.reason.text(metrics), readings_text(decision));
        let replicas = u32::try_from(decision.desired).unwrap_or(0);
        context.world.set_replicas(target, replicas, now, EventKind::Rescaled, &reason);
        workload_controllers::wake(context, target);
    }
}

fn readings_text(decision: &HpaDecision) -> String {
    let texts: Vec<String> = decision
        .proposals
        .iter()
        .map(|proposal| match proposal {
            Ok(proposal) => {
                let value = match proposal.reported {
                    Reported::Utilization { percent, .. } => format!("{percent} %"),
                    Reported::AverageValue(milli) | Reported::Value(milli) => format!("{milli}m"),
                };
                format!("{value}, asks for {}", proposal.replicas)
            }
            Err(problem) => problem.to_string(),
        })
        .collect();
    texts.join("; ")
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

/// Samples of one metric for each pod; `None` if nothing in the cluster serves it.
fn read_metric(
    context: &Context<'_>,
    now: SimTime,
    target: WorkloadId,
    pods: &[PodId],
    metric: &MetricSpec,
) -> Option<Vec<PodSample>> {
    let (MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. }) = metric.source else {
        return None;
    };
    if name != ResourceName::CPU {
        return None;
    }
    let container = match metric.source {
        MetricSource::ContainerResource { container, .. } => Some(container.as_str()),
        _ => None,
    };
    let request = pod_request_milli(&context.world.workload(target).template, name, container).ok();
    let sample = |&pod: &PodId| {
        let state = context.world.pod(pod);
        let running = state.phase == PodPhase::Running;
        let sample = if running { context.metrics.sample(pod, state.started, now) } else { None };
        PodSample { sample, request }
    };
    Some(pods.iter().map(sample).collect())
}

fn reading(samples: Option<&[PodSample]>) -> MetricReading<'_> {
    match samples {
        Some(samples) => MetricReading::PerPod { samples, unmatched: &[] },
        None => MetricReading::Failed("no metrics pipeline serves this metric in the simulation"),
    }
}
