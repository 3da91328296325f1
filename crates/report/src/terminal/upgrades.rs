//! The lines on upgrades of nodes.

use super::LABEL;
use crate::format::{self, money_among};
use crate::summary::{Summary, UpgradeFigures};

/// Workloads that are printed for an upgrade; the summary has all.
const SHOWN: usize = 3;

/// Adds the lines of each upgrade.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    let mut line = |label: &str, text: &str| lines.push(format!("{label:<LABEL$}{text}"));
    for own in &summary.node_upgrades {
        line("node upgrade", &own.sentence());
        let cost = money_among(&summary.about.currency, own.extra_cost, summary.cost.total);
        let nodes = format::counted(own.extra_nodes, "node", "nodes");
        line("  additional", &format!("at most {nodes}, {:.2} node-hours: {cost}", own.extra_node_hours));
        if own.evictions > 0 {
            line("  pods missing", &missing(own));
        }
    }
}

/// Replicas that are missing in an upgrade, by workload.
fn missing(own: &UpgradeFigures) -> String {
    let workloads = own.missing.iter().take(SHOWN);
    let each: Vec<String> = workloads.map(|own| format!("{} {}", own.workload, format::span(own.seconds))).collect();
    let more = own.missing.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let evicted = format::counted(own.evictions, "eviction", "evictions");
    format!("{} in {evicted}: {}{more}", format::span(own.missing_seconds), each.join(", "))
}
