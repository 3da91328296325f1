//! What stands beside the question of a folded part: its answer in a few words.

use super::answers::figure;
use super::html::text;
use crate::format;
use crate::summary::Summary;

pub(super) fn cost(summary: &Summary) -> String {
    let parts = summary.cost.by_item.iter().filter(|item| item.amount > 0.0);
    let currency = &summary.about.currency;
    let mut parts: Vec<_> = parts.collect();
    parts.sort_by(|one, other| other.amount.total_cmp(&one.amount));
    let shown: Vec<String> = parts
        .iter()
        .take(3)
        .map(|part| format!("{} {}", part.name, format::money_among(currency, part.amount, summary.cost.total)))
        .collect();
    text(&shown.join(", "))
}

pub(super) fn waiting(summary: &Summary) -> String {
    let pods = &summary.pods;
    let mut words = format::counted(pods.created, "pod", "pods");
    if let Some(waits) = &pods.wait_for_node {
        words += &format!(", longest wait {}", format::span(waits.max_seconds));
    }
    text(&words)
}

pub(super) fn nodes(summary: &Summary) -> String {
    let nodes = &summary.nodes;
    let most = figure("nodes.max_ready", nodes.max_ready as f64, &format::count(nodes.max_ready));
    let launches = figure("nodes.launches", nodes.launches as f64, &format::count(nodes.launches));
    let evictions = summary.churn.evictions;
    let evicted = figure("churn.evictions", evictions as f64, &format::count(evictions));
    let mut words = format!(
        "peak {most} Ready, {launches} launched, {}, {evicted} {} evicted",
        nodes.departures(),
        if evictions == 1 { "pod" } else { "pods" }
    );
    if let (Some(cpu), Some(memory)) = (summary.utilisation.cpu_requested, summary.utilisation.memory_requested) {
        let cpu = figure("utilisation.cpu_requested", cpu, &format::percent(cpu));
        let memory = figure("utilisation.memory_requested", memory, &format::percent(memory));
        words += &format!(", {cpu} of CPU and {memory} of memory requested");
    }
    words
}

pub(super) fn scaling(summary: &Summary) -> String {
    let scaling = &summary.scaling;
    let rescales = figure("scaling.rescales", scaling.rescales as f64, &format::count(scaling.rescales));
    let mut words = format!("{rescales} replica changes by autoscalers");
    if let Some(full) = summary.availability.full().into_iter().next() {
        words += &text(&format!(", at max replicas: {}", full.words()));
    }
    words
}

pub(super) fn rests_on(summary: &Summary) -> String {
    let warnings = format::counted(summary.warnings.len() as u64, "warning", "warnings");
    let assumptions = format::counted(summary.about.assumptions.len() as u64, "assumption", "assumptions");
    text(&format!("{warnings}, {assumptions}"))
}
