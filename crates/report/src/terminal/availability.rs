//! Desired replicas that did not serve.

use super::{LABEL, WORKLOADS_MAX};
use crate::format::{self, counted, percent};
use crate::summary::Summary;

/// Adds the lines; none where nothing was to serve.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    let availability = &summary.availability;
    let Some(share) = availability.unavailable_share else { return };
    let missing = format::objective(format::POD_MINUTES, availability.unavailable_pod_minutes);
    lines.push(format!("{:<LABEL$}{missing} ({} of desired)", "missing replicas", percent(share)));
    let at_zero: Vec<String> = availability
        .worst()
        .iter()
        .filter(|item| item.at_zero_seconds > 0.0)
        .map(|workload_availability| workload_availability.at_zero_words())
        .collect();
    list(lines, "  zero Ready replicas", &at_zero, ("more workload", "more workloads"));
    let at_max: Vec<String> = availability.full().iter().map(|item| item.words()).collect();
    list(lines, "  at max replicas", &at_max, ("more autoscaler", "more autoscalers"));
    lines.push(String::new());
}

/// The first of `all`, a line each, the label before the first.
pub(super) fn list(lines: &mut Vec<String>, label: &str, all: &[String], (one, many): (&str, &str)) {
    for (position, text) in all.iter().take(WORKLOADS_MAX).enumerate() {
        lines.push(format!("{:<LABEL$}{text}", if position == 0 { label } else { "" }));
    }
    let more = all.len().saturating_sub(WORKLOADS_MAX) as u64;
    if more > 0 {
        lines.push(format!("{:<LABEL$}+ {} in the report", "", counted(more, one, many)));
    }
}
