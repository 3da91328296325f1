//! The lines on churn.

use super::LABEL;
use crate::format::{self, money_among};
use crate::summary::{BlockedFigures, Count, DriftedFigures, ReplacementFigures, Summary};

/// Cycles, and reasons against consolidation, that are printed; the page has all.
const SHOWN: usize = 3;

/// Adds the lines, as far as there is something to tell.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    let churn = &summary.churn;
    let mut line = |label: &str, text: &str| lines.push(format!("{label:<LABEL$}{text}"));
    if churn.evictions > 0 {
        let per_day =
            churn.evictions_per_day.map_or_else(String::new, |rate| format!(" ({} per day)", format::per_day(rate)));
        let evicted = format::counted(churn.evictions, "pod evicted", "pods evicted");
        let missing = format::span(churn.ready_time_lost_seconds);
        line("churn", &format!("{evicted}{per_day}, {missing} of Ready time lost in total"));
    }
    let replaced: Vec<&ReplacementFigures> =
        churn.replacements.iter().filter(|replacement| replacement.replaced > 0).collect();
    if !replaced.is_empty() {
        let counts: Vec<String> = replaced
            .iter()
            .map(|replacement_figures| {
                format!("{} {}", format::count(replacement_figures.replaced), replacement_figures.reason)
            })
            .collect();
        let equal: u64 = replaced.iter().map(|replacement_figures| replacement_figures.by_equal).sum();
        line(
            "  nodes replaced",
            &format!("{}; {} with the same instance type", counts.join(", "), format::count(equal)),
        );
        let cost = money_among(&summary.about.currency, churn.overlap_cost + churn.image_cost, summary.cost.total);
        let images = format::bytes(churn.image_bytes);
        line(
            "  overlap cost",
            &format!("{:.2} h both nodes billed, {images} of images pulled: {cost}", churn.overlap_hours),
        );
    }
    for cycle in churn.cycles.iter().take(SHOWN) {
        line("  churn loop", &cycle.sentence());
    }
    if churn.cycles_in_all > SHOWN as u64 {
        line("", &format!("+ {} more in the report", churn.cycles_in_all - SHOWN as u64));
    }
    let said = |blocked_figures: &BlockedFigures| {
        let nodes = format::counted(blocked_figures.nodes, "node", "nodes");
        format!("{} ({}, {nodes})", blocked_figures.reason, format::counted(blocked_figures.looks, "check", "checks"))
    };
    let blocked: Vec<String> = churn.blocked.iter().take(SHOWN).map(said).collect();
    if !blocked.is_empty() {
        line("blocked consolidation", &blocked.join(", "));
    }
    if let Some(drifted) = &churn.drifted_at_end {
        line("still drifted", &drifted_text(drifted));
    }
}

/// How many nodes are drifted, and what keeps the most of them.
fn drifted_text(drifted: &DriftedFigures) -> String {
    let nodes = |count| format::counted(count, "node", "nodes");
    let said = |count: &Count| format!("{} ({})", count.name, nodes(count.count));
    let kept: Vec<String> = drifted.blocked.iter().take(SHOWN).map(said).collect();
    let waiting = drifted.nodes - drifted.blocked.iter().map(|item| item.count).sum::<u64>().min(drifted.nodes);
    let turn = (waiting > 0).then(|| format!("waiting for their turn ({})", nodes(waiting)));
    let why: Vec<String> = kept.into_iter().chain(turn).collect();
    format!("{} not replaced: {}", nodes(drifted.nodes), why.join(", "))
}

#[cfg(test)]
mod tests {
    use super::drifted_text;
    use crate::summary::{Count, DriftedFigures};

    #[test]
    fn drifted_nodes_show_their_blockers() {
        let kept = Count { name: "a pod cannot be rescheduled".to_owned(), count: 2 };
        let shown = |nodes| drifted_text(&DriftedFigures { nodes, blocked: vec![kept.clone()] });
        assert_eq!(shown(2), "2 nodes not replaced: a pod cannot be rescheduled (2 nodes)");
        assert!(shown(3).ends_with("(2 nodes), waiting for their turn (1 node)"), "{}", shown(3));
    }
}
