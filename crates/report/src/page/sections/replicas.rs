//! Replicas of each workload: desired, Ready, missing; and the autoscalers at their maximum.

use super::SUMMARY_FILE;
use crate::figure::Figure;
use crate::format;
use crate::page::html::Html;
use crate::summary::{Summary, WorkloadScaling};
use crate::table::Rows;

pub(in super::super) fn replicas(page: &mut Html, summary: &Summary) {
    if summary.scaling.workloads.is_empty() {
        return;
    }
    page.element("h3 id=\"replicas\"", "Replicas");
    // What was missing most comes first.
    let found = |workload: &WorkloadScaling| {
        summary.availability.workloads.iter().find(|found| found.workload == workload.workload)
    };
    let minutes = |workload: &WorkloadScaling| found(workload).map_or(0.0, |found| found.unavailable_pod_minutes);
    let mut workloads: Vec<&WorkloadScaling> = summary.scaling.workloads.iter().collect();
    workloads.sort_by(|one, other| minutes(other).total_cmp(&minutes(one)));
    let missing = |workload: &WorkloadScaling| match found(workload)? {
        found if found.placeholder => Some("placeholder".to_owned()),
        found => Some(format::minutes(found.unavailable_pod_minutes)),
    };
    // A placeholder is never missing.
    let missed = |workload: &WorkloadScaling| found(workload).filter(|found| !found.placeholder);
    let table = Rows::new(workloads)
        .text("workload", |workload| &workload.workload)
        .number("missing", |workload| missing(workload))
        .unit("pod-minutes")
        .number("time at zero Ready", |workload| missed(workload).map(|found| Figure::seconds(found.at_zero_seconds)))
        .number("periods", |workload| missed(workload).map(|found| found.times_at_zero))
        .number("autoscaler changes", |workload| workload.rescales)
        .number("peak desired", |workload| workload.max_replicas_desired)
        .number("peak Ready", |workload| workload.max_replicas_ready);
    page.add_table(table, SUMMARY_FILE);
    let table = Rows::new(&summary.availability.autoscalers)
        .text("autoscaler", |autoscaler| &autoscaler.autoscaler)
        .text("workload", |autoscaler| &autoscaler.workload)
        .number("max replicas", |autoscaler| autoscaler.max_replicas)
        .number("time at max", |autoscaler| Figure::seconds(autoscaler.at_max_seconds));
    page.add_table(table, SUMMARY_FILE);
    page.element(
        "p class=\"note\"",
        "A replica is missing while it is desired but not Ready, counted from when it stops serving. Only Deployments and StatefulSets count; Job pods end by design, and placeholder pods only reserve room.",
    );
}
