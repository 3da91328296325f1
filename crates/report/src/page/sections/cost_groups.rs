//! Cost by namespace and by label, with requests and usage.

use super::SUMMARY_FILE;
use crate::format::percent;
use crate::page::html::Html;
use crate::run_tables;
use crate::summary::{CostGroup, RequestUse, Summary};

/// A table for namespaces, and one for each label that the scenario asks for.
pub(super) fn sections(page: &mut Html, summary: &Summary) {
    let cost = &summary.cost;
    section(page, summary, ("Cost by namespace", "namespace"), &cost.by_namespace);
    for label in &cost.by_label {
        section(page, summary, (&format!("Cost by label {}", label.label), &label.label), &label.groups);
    }
}

fn section(page: &mut Html, summary: &Summary, (heading, column): (&str, &str), groups: &[CostGroup]) {
    if groups.is_empty() {
        return;
    }
    page.element("h3", heading);
    page.raw("<div class=\"groups\">\n");
    page.add_table(run_tables::cost_groups(column, groups, (&summary.about, summary.cost.total)), SUMMARY_FILE);
    page.raw("</div>\n");
    page.element("p class=\"note\"", &note(groups));
}

fn note(groups: &[CostGroup]) -> String {
    let measured = |use_of: fn(&CostGroup) -> Option<RequestUse>| {
        let (requested, measured) = groups
            .iter()
            .filter_map(use_of)
            .fold((0.0, 0.0), |(requested, measured), known| (requested + known.requested, measured + known.measured));
        percent(if requested > 0.0 { measured / requested } else { 0.0 })
    };
    format!(
        "Cost is for requested capacity; (idle) is capacity that no pod requests, and (cluster) is billed without a node. Efficiency is usage divided by requests, for workloads with usage data: {} of requested CPU and {} of requested memory. Amounts are means over the run.",
        measured(|group| group.cpu),
        measured(|group| group.memory)
    )
}
