//! The lines on upgrades of nodes.

use super::LABEL;
use crate::format::{self, money_among};
use crate::summary::{Summary, UpgradeFigures};

/// Workloads that are printed for an upgrade; the summary has all.
const SHOWN: usize = 3;

/// Adds the lines of each upgrade.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    let mut line = |label: &str, text: &str| lines.push(format!("{label:<LABEL$}{text}"));
    for node_upgrade in &summary.node_upgrades {
        line("node upgrade", &node_upgrade.sentence());
        let cost = money_among(&summary.about.currency, node_upgrade.extra_cost, summary.cost.total);
        let nodes = format::counted(node_upgrade.extra_nodes, "node", "nodes");
        line("  additional", &format!("at most {nodes}, {:.2} node-hours: {cost}", node_upgrade.extra_node_hours));
        if node_upgrade.evictions > 0 {
            line("  pods missing", &missing(node_upgrade));
        }
    }
}

/// Replicas that are missing in an upgrade, by workload.
fn missing(upgrade_figures: &UpgradeFigures) -> String {
    let workloads = upgrade_figures.missing.iter().take(SHOWN);
    let each: Vec<String> =
        workloads.map(|workload| format!("{} {}", workload.workload, format::span(workload.seconds))).collect();
    let more = upgrade_figures.missing.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let evicted = format::counted(upgrade_figures.evictions, "eviction", "evictions");
    format!("{} in {evicted}: {}{more}", format::span(upgrade_figures.missing_seconds), each.join(", "))
}
