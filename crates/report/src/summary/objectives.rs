//! The scenario's objectives against what happened.

use serde::{Deserialize, Serialize};

use super::availability::AvailabilitySummary;
use super::{CostSummary, Distribution, PodSummary, RequestFigures, WaitFigures};
use crate::domain::SimDuration;
use crate::format::{POD_MINUTES, SECONDS, percent};
use nodecast_settings::{WaitLimit, WaitMeasure, Waiting};
use nodecast_world::Outcome;

/// A limit of the scenario against what happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObjectiveResult {
    /// The key of the scenario, `pending_p99` for instance; of a wait what is limited and whose, `p95 wait of shop/web`.
    pub name: String,
    /// `seconds`, `pod-minutes` or a currency code.
    pub unit: String,
    /// The limit.
    pub limit: f64,
    /// What happened; `null` when there was nothing to measure.
    pub actual: Option<f64>,
    /// Whether `actual` is within `limit`; `null` when there was nothing to measure.
    pub met: Option<bool>,
    /// Why it is missed although `actual` is within `limit`, or there is none.
    pub because: Option<String>,
}

/// The workload that answered fewer than 99 of 100 requests, the worst of them: then the 99th percentile of all requests
/// is no answer, however fast the answered ones were.
fn unanswered(requests: &[RequestFigures]) -> Option<String> {
    let share = |figures: &RequestFigures| figures.unanswered_share().filter(|share| *share > 0.01);
    let worst = requests.iter().filter_map(|figures| Some((share(figures)?, &figures.workload)));
    let (share, workload) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!("{} of requests to {workload} were unanswered", percent(share)))
}

/// A limit against what happened.
fn result(name: &str, unit: &str, limit: f64, actual: Option<f64>) -> ObjectiveResult {
    let met = actual.map(|actual| actual <= limit);
    ObjectiveResult { name: name.to_owned(), unit: unit.to_owned(), limit, actual, met, because: None }
}

/// Objectives in the order in which a scenario documents them. The slowest workload stands for all requests, the workload
/// that was without a Ready replica longest for all workloads, the autoscaler that stood at its maximum longest for all.
pub(super) fn judge(
    outcome: &Outcome,
    cost: &CostSummary,
    pods: &PodSummary,
    requests: &[RequestFigures],
    availability: &AvailabilitySummary,
) -> Vec<ObjectiveResult> {
    let limits = &outcome.about.objectives;
    let mut results = Vec::new();
    let mut span = |name: &str, limit: Option<SimDuration>, actual: Option<f64>| {
        results.extend(limit.map(|limit| result(name, SECONDS, limit.as_secs_f64(), actual)));
    };
    span("at_zero", limits.at_zero, (!availability.workloads.is_empty()).then_some(availability.at_zero_seconds));
    span("at_max", limits.at_max, availability.at_max_seconds);
    span("pending_p95", limits.pending_p95, pods.wait_for_node.map(|waits| waits.p95_seconds));
    span("pending_p99", limits.pending_p99, pods.wait_for_node.map(|waits| waits.p99_seconds));
    if let Some(limit) = limits.unavailable_pod_minutes {
        let actual = availability.unavailable_share.map(|_| availability.unavailable_pod_minutes);
        results.insert(0, result("unavailable_pod_minutes", POD_MINUTES, limit, actual));
    }
    results.extend(limits.waits.iter().map(|limit| wait(pods, limit)));
    if let Some(limit) = limits.request_p99 {
        let actual = requests.iter().filter_map(|figures| figures.p99_seconds).max_by(f64::total_cmp);
        let judged = result("request_p99", SECONDS, limit.as_secs_f64(), actual);
        results.push(match unanswered(requests) {
            Some(because) => ObjectiveResult { met: Some(false), because: Some(because), ..judged },
            None => judged,
        });
    }
    if let Some(limit) = limits.cost {
        results.push(result("cost", outcome.bill.currency.code(), limit, Some(cost.total)));
    }
    results
}

/// A limit on the waits of one workload, or of one priority, against them.
fn wait(pods: &PodSummary, limit: &WaitLimit) -> ObjectiveResult {
    let wait_figures: Option<&WaitFigures> = match limit.whose {
        Waiting::Workload(name) => {
            let name = name.to_string();
            pods.by_workload.iter().find(|workload| workload.workload == name).map(|workload| &workload.waits)
        }
        Waiting::Priority(priority) => pods
            .by_priority
            .iter()
            .find(|this_priority| this_priority.priority == priority)
            .map(|priority| &priority.waits),
    };
    let spans = wait_figures.and_then(|wait_figure| wait_figure.wait_for_node);
    result(&limit.to_string(), SECONDS, limit.limit.as_secs_f64(), spans.map(|spans| measured(&spans, limit.measure)))
}

fn measured(spans: &Distribution, measure: WaitMeasure) -> f64 {
    match measure {
        WaitMeasure::Mean => spans.mean_seconds,
        WaitMeasure::P50 => spans.p50_seconds,
        WaitMeasure::P95 => spans.p95_seconds,
        WaitMeasure::P99 => spans.p99_seconds,
        WaitMeasure::Longest => spans.max_seconds,
    }
}
