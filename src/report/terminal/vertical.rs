//! The lines on VerticalPodAutoscalers.

use super::shortened;
use crate::report::summary::{Sizes, Summary};

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
    for (own, container) in all.take(SHOWN) {
        let name = shortened(&format!("{}:{}", own.workload, container.container), WIDTH - 3);
        for (sizes, unit, decimals) in [(container.cpu, "CPU", 3), (container.memory, "MiB", 0)] {
            let Some(Sizes { request_first, request_last, used_mean, target, lower_bound, upper_bound }) = sizes else {
                continue;
            };
            let shown = |amount: Option<f64>| amount.map_or("none".to_owned(), |amount| format!("{amount:.decimals$}"));
            let request = format!("{}, {} {unit}", shown(request_first), shown(request_last));
            let upper = if upper_bound > 1e7 { "any".to_owned() } else { shown(Some(upper_bound)) };
            let bounds = format!("{} ({} to {upper})", shown(Some(target)), shown(Some(lower_bound)));
            lines.push(format!("  {name:<width$}{request:>20}{:>9}  {bounds}", shown(used_mean), width = WIDTH - 2));
        }
    }
    for own in summary.vertical.iter().take(SHOWN) {
        lines.push(format!(
            "  {:<width$}{}: {}",
            shortened(&own.autoscaler, WIDTH - 3),
            own.mode,
            own.deeds(),
            width = WIDTH - 2
        ));
    }
    lines.push(String::new());
}
