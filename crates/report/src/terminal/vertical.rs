//! The lines on VerticalPodAutoscalers.

use crate::short_names::{apart, without_namespace};
use crate::summary::{Sizes, Summary};

/// Containers that are printed; the page has all.
const SHOWN: usize = 10;
/// Room for a name.
const WIDTH: usize = 26;

/// Adds a line for each container, and what became of pods.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    if summary.vertical.is_empty() {
        return;
    }
    lines.push(format!("{:<WIDTH$}{:>20}{:>9}  {}", "requests", "first, last", "used", "recommended (bounds)"));
    let all = summary.vertical.iter().flat_map(|own| own.containers.iter().map(move |container| (own, container)));
    let all: Vec<_> = all.take(SHOWN).collect();
    let names: Vec<String> =
        all.iter().map(|(own, container)| format!("{}:{}", own.workload, container.container)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for ((_, container), name) in all.iter().zip(apart(&names, WIDTH - 3, without_namespace)) {
        for (sizes, unit, decimals) in [(container.cpu, "CPU", 3), (container.memory, "MiB", 0)] {
            let Some(Sizes { request_first, request_last, used_mean, target, lower_bound, upper_bound, .. }) = sizes
            else {
                continue;
            };
            let shown = |amount: Option<f64>| amount.map_or("none".to_owned(), |amount| format!("{amount:.decimals$}"));
            let request = format!("{}, {} {unit}", shown(request_first), shown(request_last));
            let upper = if upper_bound > 1e7 { "any".to_owned() } else { shown(Some(upper_bound)) };
            let bounds = format!("{} ({} to {upper})", shown(Some(target)), shown(Some(lower_bound)));
            lines.push(format!("  {name:<width$}{request:>20}{:>9}  {bounds}", shown(used_mean), width = WIDTH - 2));
        }
    }
    let shown = summary.vertical.iter().take(SHOWN);
    let names: Vec<&str> = shown.clone().map(|own| own.autoscaler.as_str()).collect();
    for (own, name) in shown.zip(apart(&names, WIDTH - 3, without_namespace)) {
        lines.push(format!("  {name:<width$}{}: {}", own.mode, own.deeds(), width = WIDTH - 2));
    }
    lines.push(String::new());
}
