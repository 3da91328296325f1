//! Limits on nodes that were reached, with what they did.

use super::SUMMARY_FILE;
use crate::figure::Figure;
use crate::page::html::Html;
use crate::summary::Summary;
use crate::table::Rows;

pub(in super::super) fn reached_limits(page: &mut Html, summary: &Summary) {
    if summary.limits_reached.is_empty() {
        return;
    }
    page.element("h3 id=\"limits\"", "Limits reached");
    let table = Rows::new(&summary.limits_reached)
        .text("limit", |limit| limit.subject())
        .number("pods that waited", |limit| limit.pods)
        .number("launches refused", |limit| limit.refused_launches)
        .number("from", |limit| Figure::seconds(limit.from_seconds))
        .number("for", |limit| Figure::seconds(limit.for_seconds));
    page.add_table(table, SUMMARY_FILE);
}
