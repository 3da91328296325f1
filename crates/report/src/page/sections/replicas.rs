//! Replicas of each workload: wanted, Ready, missing; and the autoscalers that had no more to give.

use super::SUMMARY_FILE;
use crate::format;
use crate::page::html::{Column, Html};
use crate::summary::{Summary, WorkloadScaling};

pub(in super::super) fn replicas(page: &mut Html, summary: &Summary) {
    if summary.scaling.workloads.is_empty() {
        return;
    }
    page.element("h3 id=\"replicas\"", "Replicas");
    // What was missing most comes first.
    let missing = |own: &WorkloadScaling| {
        let found = summary.availability.workloads.iter().find(|found| found.workload == own.workload);
        found.map_or(0.0, |found| found.unavailable_pod_minutes)
    };
    let mut workloads: Vec<&WorkloadScaling> = summary.scaling.workloads.iter().collect();
    workloads.sort_by(|one, other| missing(other).total_cmp(&missing(one)));
    let rows: Vec<Vec<String>> = workloads.into_iter().map(|own| row(summary, own)).collect();
    let columns = [
        Column::Text("workload"),
        Column::Figure("missing, pod-minutes"),
        Column::Figure("none Ready for"),
        Column::Figure("stretches"),
        Column::Figure("changes by an autoscaler"),
        Column::Figure("most wanted"),
        Column::Figure("most Ready"),
    ];
    page.table(&columns, &rows, SUMMARY_FILE);
    let rows: Vec<Vec<String>> = summary
        .availability
        .autoscalers
        .iter()
        .map(|own| {
            let (max, at_max) = (format::count(own.max_replicas), format::span(own.at_max_seconds));
            vec![own.autoscaler.clone(), own.workload.clone(), max, at_max]
        })
        .collect();
    let columns = [
        Column::Text("autoscaler"),
        Column::Text("workload"),
        Column::Figure("maximum"),
        Column::Figure("time at the maximum"),
    ];
    page.table(&columns, &rows, SUMMARY_FILE);
    page.element(
        "p class=\"note\"",
        "Missing are replicas that are wanted and not Ready, from the instant that they stop serving; of Deployments and \
         StatefulSets alone, since the pods of Jobs come to an end. A placeholder holds room for others, and nobody misses it.",
    );
}

fn row(summary: &Summary, scaling: &WorkloadScaling) -> Vec<String> {
    let own = summary.availability.workloads.iter().find(|own| own.workload == scaling.workload);
    let of_own = match own {
        None => [String::new(), String::new(), String::new()],
        Some(own) if own.placeholder => ["placeholder".to_owned(), String::new(), String::new()],
        Some(own) => [
            format::minutes(own.unavailable_pod_minutes),
            format::span(own.at_zero_seconds),
            format::count(own.times_at_zero),
        ],
    };
    let counts = [scaling.rescales, scaling.max_replicas_desired, scaling.max_replicas_ready].map(format::count);
    [scaling.workload.clone()].into_iter().chain(of_own).chain(counts).collect()
}
