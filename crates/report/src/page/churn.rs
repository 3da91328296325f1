//! The section on churn: what the coming and going of nodes cost, cycles, what blocks consolidation, and its decisions.

use super::html::{Column, Html};
use crate::format;
use crate::summary::{ChurnSummary, CycleFigures, DecisionFigures, ReplacementFigures, Summary};

/// Where a table that is cut short is found whole.
const EVENTS_FILE: &str = "events.jsonl";
const SUMMARY_FILE: &str = "summary.json";

/// Adds the section, if there is anything to tell.
pub(super) fn section(page: &mut Html, summary: &Summary) {
    let churn = &summary.churn;
    if churn.evictions == 0 && churn.replacements.is_empty() && churn.blocked.is_empty() && churn.decisions.is_empty() {
        return;
    }
    page.element("h3 id=\"churn\"", "Churn");
    page.element("p", &what_it_cost(summary));
    replacements(page, &churn.replacements);
    cycles(page, churn);
    blocked(page, churn);
    decisions(page, &churn.decisions);
}

fn what_it_cost(summary: &Summary) -> String {
    let churn = &summary.churn;
    let money = |amount| format::money_among(&summary.about.currency, amount, summary.cost.total);
    let per_day =
        churn.evictions_per_day.map_or_else(String::new, |rate| format!(" ({} per day)", format::per_day(rate)));
    format!(
        "{}{per_day}; pods were missing for {} altogether. Replacements ran beside what they replaced for {:.2} hours, which \
         cost {}, and pulled {} of images, which cost {}.",
        format::counted(churn.evictions, "pod evicted", "pods evicted"),
        format::span(churn.ready_time_lost_seconds),
        churn.overlap_hours,
        money(churn.overlap_cost),
        format::bytes(churn.image_bytes),
        money(churn.image_cost)
    )
}

fn replacements(page: &mut Html, replacements: &[ReplacementFigures]) {
    let row = |own: &ReplacementFigures| {
        let figures = [own.nodes, own.replaced, own.by_equal].map(format::count);
        std::iter::once(own.reason.clone()).chain(figures).collect()
    };
    let rows: Vec<Vec<String>> = replacements.iter().map(row).collect();
    let columns = [
        Column::Text("nodes removed because"),
        Column::Figure("nodes"),
        Column::Figure("replaced"),
        Column::Figure("by one of the same type"),
    ];
    page.table(&columns, &rows, SUMMARY_FILE);
}

fn cycles(page: &mut Html, churn: &ChurnSummary) {
    if churn.cycles.is_empty() {
        return;
    }
    page.element("h4", "Limit cycles");
    let sentences: Vec<String> =
        churn.cycles.iter().map(|own: &CycleFigures| format!("{}, {}", own.kind, own.sentence())).collect();
    page.list(&sentences);
}

fn blocked(page: &mut Html, churn: &ChurnSummary) {
    let row = |own: &crate::summary::BlockedFigures| {
        vec![own.reason.clone(), format::count(own.nodes), format::count(own.looks)]
    };
    let rows: Vec<Vec<String>> = churn.blocked.iter().map(row).collect();
    let columns = [Column::Text("not consolidated because"), Column::Figure("nodes"), Column::Figure("looks")];
    page.table(&columns, &rows, SUMMARY_FILE);
}

fn decisions(page: &mut Html, decisions: &[DecisionFigures]) {
    let row = |own: &DecisionFigures| {
        let because = own.because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        vec![
            own.id.clone(),
            format::span(own.at_seconds),
            own.reason.clone(),
            own.nodes.join(", "),
            own.replacements.join(" and "),
            format!("{}{because}", own.outcome),
        ]
    };
    let rows: Vec<Vec<String>> = decisions.iter().map(row).collect();
    let columns = [
        Column::Text("decision"),
        Column::Figure("after"),
        Column::Text("reason"),
        Column::Text("nodes"),
        Column::Text("replaced by"),
        Column::Text("came to"),
    ];
    page.table(&columns, &rows, EVENTS_FILE);
}
