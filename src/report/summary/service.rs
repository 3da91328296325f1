//! Requests, replica counts and objectives.

use super::{CostSummary, ObjectiveResult, PodSummary, RequestFigures, ScalingSummary, WorkloadScaling};
use crate::domain::WorkloadId;
use crate::simulation::Outcome;
use crate::world::record::{EventKind, WorkloadKind};

/// The namespace and name of a workload.
pub(crate) fn workload_name(outcome: &Outcome, workload: WorkloadId) -> String {
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
            mean_seconds: summary.mean_seconds,
            p50_seconds: summary.p50_seconds,
            p95_seconds: summary.p95_seconds,
            p99_seconds: summary.p99_seconds,
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
    for event in outcome.record.events.iter().filter(|event| event.kind == EventKind::Rescaled) {
        total += 1;
        if let Some(count) = event.workload.and_then(|workload| rescales.get_mut(workload.index())) {
            *count += 1;
        }
    }
    for sample in outcome.record.samples.iter().flat_map(|sample| &sample.workloads) {
        let index = sample.workload.index();
        if index < workloads.len() {
            desired[index] = desired[index].max(sample.replicas_desired);
            ready[index] = ready[index].max(sample.replicas_ready);
        }
    }
    let workloads = workloads
        .iter()
        .enumerate()
        .filter(|(_, facts)| facts.kind != WorkloadKind::DaemonSet)
        .map(|(index, facts)| WorkloadScaling {
            workload: facts.name.to_string(),
            rescales: rescales[index],
            max_replicas_desired: u64::from(desired[index]),
            max_replicas_ready: u64::from(ready[index]),
        })
        .collect();
    ScalingSummary { rescales: total, workloads }
}

/// Objectives in the order in which a scenario documents them. The slowest workload stands for all requests.
pub(super) fn objectives(
    outcome: &Outcome,
    cost: &CostSummary,
    pods: &PodSummary,
    requests: &[RequestFigures],
) -> Vec<ObjectiveResult> {
    let limits = &outcome.about.objectives;
    let result = |name: &str, unit: &str, limit: f64, actual: Option<f64>| ObjectiveResult {
        name: name.to_owned(),
        unit: unit.to_owned(),
        limit,
        actual,
        met: actual.map(|actual| actual <= limit),
    };
    let mut results = Vec::new();
    if let Some(limit) = limits.pending_p99 {
        let actual = pods.wait_for_node.map(|waits| waits.p99_seconds);
        results.push(result("pending_p99", "seconds", limit.as_secs_f64(), actual));
    }
    if let Some(limit) = limits.request_p99 {
        let served = requests.iter().filter(|figures| figures.completed > 0.0);
        let actual = served.map(|figures| figures.p99_seconds).max_by(f64::total_cmp);
        results.push(result("request_p99", "seconds", limit.as_secs_f64(), actual));
    }
    if let Some(limit) = limits.cost {
        results.push(result("cost", outcome.bill.currency.code(), limit, Some(cost.total)));
    }
    results
}
