//! The section on upgrades of nodes.

use super::html::Html;
use crate::figure::Figure;
use crate::format;
use crate::summary::Summary;
use crate::table::Rows;

/// Adds the section, if nodes were upgraded.
pub(super) fn section(page: &mut Html, summary: &Summary) {
    if summary.node_upgrades.is_empty() {
        return;
    }
    page.element("h3 id=\"node-upgrades\"", "Node upgrades");
    let money = |amount| format::money_among(&summary.about.currency, amount, summary.cost.total);
    let table = Rows::new(&summary.node_upgrades)
        .text("group or NodePool", |rows| &rows.node_origin)
        .text("way", |text| &text.way)
        .text("outcome", |text| &text.outcome)
        .number("nodes replaced", |text| text.replaced)
        .number("took", |number| Figure::seconds(number.duration_seconds))
        .number("additional nodes", |number| number.extra_nodes)
        .text("their cost", |number| money(number.extra_cost))
        .number("evictions", |text| text.evictions)
        .number("pods missing", |number| Figure::seconds(number.missing_seconds));
    page.add_table(table, "summary.json");
}
