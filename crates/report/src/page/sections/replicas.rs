//! Replicas of each workload: wanted, Ready, missing; and the autoscalers that had no more to give.

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
    let found =
        |own: &WorkloadScaling| summary.availability.workloads.iter().find(|found| found.workload == own.workload);
    let minutes = |own: &WorkloadScaling| found(own).map_or(0.0, |found| found.unavailable_pod_minutes);
    let mut workloads: Vec<&WorkloadScaling> = summary.scaling.workloads.iter().collect();
    workloads.sort_by(|one, other| minutes(other).total_cmp(&minutes(one)));
    let missing = |own: &WorkloadScaling| match found(own)? {
        found if found.placeholder => Some("placeholder".to_owned()),
        found => Some(format::minutes(found.unavailable_pod_minutes)),
    };
    // Nobody misses a placeholder.
    let missed = |own: &WorkloadScaling| found(own).filter(|found| !found.placeholder);
    let table = Rows::new(workloads)
        .text("workload", |own| &own.workload)
        .number("missing", |own| missing(own))
        .unit("pod-minutes")
        .number("none Ready for", |own| missed(own).map(|found| Figure::seconds(found.at_zero_seconds)))
        .number("stretches", |own| missed(own).map(|found| found.times_at_zero))
        .number("changes by an autoscaler", |own| own.rescales)
        .number("most wanted", |own| own.max_replicas_desired)
        .number("most Ready", |own| own.max_replicas_ready);
    page.add_table(table, SUMMARY_FILE);
    let table = Rows::new(&summary.availability.autoscalers)
        .text("autoscaler", |own| &own.autoscaler)
        .text("workload", |own| &own.workload)
        .number("maximum", |own| own.max_replicas)
        .number("time at the maximum", |own| Figure::seconds(own.at_max_seconds));
    page.add_table(table, SUMMARY_FILE);
    page.element(
        "p class=\"note\"",
        "Missing are replicas that are wanted and not Ready, from the instant that they stop serving; of Deployments and \
         StatefulSets alone, since the pods of Jobs come to an end. A placeholder holds room for others, and nobody misses it.",
    );
}
