//! The section on churn: what the coming and going of nodes cost, cycles, what blocks consolidation, and its decisions.

use super::html::Html;
use crate::figure::Figure;
use crate::format;
use crate::summary::{ChurnSummary, CycleFigures, DecisionFigures, ReplacementFigures, Summary};
use crate::table::Rows;

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
        "{}{per_day}; {} of Ready time lost in total. Old and replacement nodes overlapped for {:.2} hours, costing {}; image pulls of {} cost {}.",
        format::counted(churn.evictions, "pod evicted", "pods evicted"),
        format::span(churn.ready_time_lost_seconds),
        churn.overlap_hours,
        money(churn.overlap_cost),
        format::bytes(churn.image_bytes),
        money(churn.image_cost)
    )
}

fn replacements(page: &mut Html, replacements: &[ReplacementFigures]) {
    let table = Rows::new(replacements)
        .text("removal reason", |removal| &removal.reason)
        .number("nodes", |removal| removal.nodes)
        .number("replaced", |removal| removal.replaced)
        .number("with the same type", |removal| removal.by_equal);
    page.add_table(table, SUMMARY_FILE);
}

fn cycles(page: &mut Html, churn: &ChurnSummary) {
    if churn.cycles.is_empty() {
        return;
    }
    page.element("h4", "Churn loops");
    let sentences: Vec<String> = churn
        .cycles
        .iter()
        .map(|cycle_figures: &CycleFigures| format!("{}, {}", cycle_figures.kind, cycle_figures.sentence()))
        .collect();
    page.list(&sentences);
}

fn blocked(page: &mut Html, churn: &ChurnSummary) {
    let table = Rows::new(&churn.blocked)
        .text("consolidation blocked by", |blocker| &blocker.reason)
        .number("nodes", |blocker| blocker.nodes)
        .number("checks", |blocker| blocker.looks);
    page.add_table(table, SUMMARY_FILE);
}

fn decisions(page: &mut Html, decisions: &[DecisionFigures]) {
    let because =
        |decision: &DecisionFigures| decision.because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let table = Rows::new(decisions)
        .text("decision", |decision| &decision.id)
        .number("after", |decision| Figure::seconds(decision.at_seconds))
        .text("reason", |decision| &decision.reason)
        .text("nodes", |decision| decision.nodes.join(", "))
        .text("replaced by", |decision| decision.replacements.join(" and "))
        .text("result", move |decision| format!("{}{}", decision.outcome, because(decision)));
    page.add_table(table, EVENTS_FILE);
}
