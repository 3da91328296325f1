//! Requests and replica counts.

use super::{
    CHANGES_MAX, MetricFigures, QueueFigures, ReplicaChangeFigures, RequestFigures, ScalingSummary, WorkloadScaling,
    made_anew, rounded,
};
use crate::domain::WorkloadId;
use nodecast_world::Outcome;
use nodecast_world::outcome::QueueSummary;
use nodecast_world::record::{EventKind, MetricFacts, ReplicaChange, Sample, WorkloadKind};

/// The namespace and name of a workload.
pub fn workload_name(outcome: &Outcome, workload: WorkloadId) -> String {
    let facts = outcome.record.workloads.get(workload.index());
    facts.map_or_else(String::new, |facts| facts.name.to_string())
}

pub(super) fn requests(outcome: &Outcome) -> Vec<RequestFigures> {
    outcome
        .requests
        .iter()
        .map(|summary| RequestFigures {
            workload: workload_name(outcome, summary.workload),
            completed: summary.completed,
            unanswered: summary.unanswered,
            first_seconds: summary.first.as_secs_f64(),
            last_seconds: summary.last.as_secs_f64(),
            mean_seconds: summary.response.map(|response| response.mean),
            p50_seconds: summary.response.map(|response| response.p50),
            p95_seconds: summary.response.map(|response| response.p95),
            p99_seconds: summary.response.map(|response| response.p99),
            timed_out: summary.timed_out,
            dropped: summary.dropped,
            throttled_seconds: rounded(summary.throttled_seconds, 6),
            overloaded_seconds: summary.overloaded.as_secs_f64(),
        })
        .collect()
}

pub(super) fn scaling(outcome: &Outcome) -> ScalingSummary {
    let workloads = &outcome.record.workloads;
    let mut rescales = vec![0_u64; workloads.len()];
    let mut desired = vec![0_u32; workloads.len()];
    let mut ready = vec![0_u32; workloads.len()];
    let mut total = 0;
    let firsts = made_anew::firsts(outcome);
    let first = |workload: WorkloadId| made_anew::first_of(&firsts, workload).index();
    for change in replica_changes(outcome).filter(|change| is_by_autoscaler(outcome, change)) {
        total += 1;
        if let Some(count) = rescales.get_mut(first(change.workload)) {
            *count += 1;
        }
    }
    // Samples miss what is over before the next; of Jobs a change counts the Jobs, and not their pods.
    for change in outcome.record.replica_changes.iter().filter(|change| change.kind != EventKind::JobsCreated) {
        if let Some(most) = desired.get_mut(first(change.workload)) {
            *most = (*most).max(change.to);
        }
    }
    for sample in outcome.record.samples.iter().flat_map(|sample| &sample.workloads) {
        let index = first(sample.workload);
        if index < workloads.len() {
            desired[index] = desired[index].max(sample.replicas_desired);
            ready[index] = ready[index].max(sample.replicas_ready);
        }
    }
    let workloads = workloads
        .iter()
        .enumerate()
        .filter(|(index, facts)| facts.kind != WorkloadKind::DaemonSet && firsts[*index].index() == *index)
        .map(|(index, facts)| WorkloadScaling {
            workload: facts.name.to_string(),
            rescales: rescales[index],
            max_replicas_desired: u64::from(desired[index]),
            max_replicas_ready: u64::from(ready[index]),
        })
        .collect();
    let changes_in_all = replica_changes(outcome).count() as u64;
    ScalingSummary { rescales: total, workloads, metrics: metrics(outcome), changes_in_all, changes: changes(outcome) }
}

/// Whether an autoscaler has changed a count of replicas: neither a person, by a manifest, a scale or a deletion, nor the clock of a CronJob.
/// Of Jobs those of a ScaledJob are KEDA's.
fn is_by_autoscaler(outcome: &Outcome, change: &ReplicaChange) -> bool {
    let kind = outcome.record.workloads.get(change.workload.index()).map(|facts| facts.kind);
    match change.kind {
        EventKind::ReplicasSet | EventKind::ObjectDeleted => false,
        EventKind::JobsCreated => kind == Some(WorkloadKind::ScaledJob),
        _ => true,
    }
}

/// Changes of replica counts since figures count.
fn replica_changes(outcome: &Outcome) -> impl Iterator<Item = &ReplicaChange> {
    let counts_from = outcome.about.counts_from();
    outcome.record.replica_changes.iter().filter(move |change| change.at >= counts_from)
}

fn metrics(outcome: &Outcome) -> Vec<MetricFigures> {
    let figures = |(index, facts): (usize, &MetricFacts)| {
        let mut place = index;
        let mut make = |sample: &Sample| sample.metric(index, &mut place)?.value;
        let values: Vec<f64> = outcome.record.samples.iter().filter_map(&mut make).collect();
        let mean = (!values.is_empty()).then(|| rounded(values.iter().sum::<f64>() / values.len() as f64, 6));
        MetricFigures {
            autoscaler: facts.autoscaler.to_string(),
            workload: workload_name(outcome, facts.workload),
            metric: facts.name.clone(),
            unit: facts.unit.as_str().to_owned(),
            target: facts.target,
            mean,
            max: values.iter().copied().max_by(f64::total_cmp),
            last: outcome.record.samples.last().and_then(make),
        }
    };
    outcome.record.metrics.iter().enumerate().map(figures).collect()
}

fn changes(outcome: &Outcome) -> Vec<ReplicaChangeFigures> {
    let figures = |change: &ReplicaChange| ReplicaChangeFigures {
        at_seconds: change.at.as_secs_f64(),
        workload: workload_name(outcome, change.workload),
        kind: change.kind.as_str().to_owned(),
        from: u64::from(change.from),
        to: u64::from(change.to),
        because: change.because.to_string(),
    };
    replica_changes(outcome).take(CHANGES_MAX).map(figures).collect()
}

pub(super) fn queues(outcome: &Outcome) -> Vec<QueueFigures> {
    let figures = |queue: &QueueSummary| QueueFigures {
        queue: queue.name.clone(),
        kind: queue.kind.to_owned(),
        workload: queue.workload.to_string(),
        arrived: rounded(queue.arrived, 3),
        processed: rounded(queue.processed, 3),
        waiting_at_end: rounded(queue.waiting_at_end, 3),
        most_waiting: rounded(queue.most_waiting, 3),
        most_waiting_seconds: queue.most_waiting_at.as_secs_f64(),
        drain_seconds: queue.drained.map(|at| (at - queue.most_waiting_at).as_secs_f64()),
        mean_wait_seconds: queue.mean_wait_seconds.map(|seconds| rounded(seconds, 6)),
        longest_wait_seconds: queue.longest_wait.as_secs_f64(),
    };
    outcome.queues.iter().map(figures).collect()
}
