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
        .text("group or NodePool", |own| &own.node_origin)
        .text("way", |own| &own.way)
        .text("outcome", |own| &own.outcome)
        .number("nodes replaced", |own| own.replaced)
        .number("took", |own| Figure::seconds(own.duration_seconds))
        .number("additional nodes", |own| own.extra_nodes)
        .text("their cost", |own| money(own.extra_cost))
        .number("evictions", |own| own.evictions)
        .number("pods missing", |own| Figure::seconds(own.missing_seconds));
    page.add_table(table, "summary.json");
}
