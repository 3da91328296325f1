//! The tier of the control plane, and the controllers that waited for its limits.

use super::SUMMARY_FILE;
use crate::figure::Figure;
use crate::page::html::Html;
use crate::summary::Summary;
use crate::table::Rows;

pub(in super::super) fn control_plane(page: &mut Html, summary: &Summary) {
    let Some(control_plane) = &summary.controllers.control_plane else { return };
    let limited = summary.controllers.limited();
    if limited.is_empty() && !control_plane.is_provisioned() {
        return;
    }
    page.element("h3 id=\"control-plane\"", "Control plane");
    page.element("p", &control_plane.words());
    let table = Rows::new(limited)
        .text("controller", |limited| limited.who.clone())
        .text("limit", |limited| limited.limit.clone())
        .number("calls or passes", |limited| limited.delayed.1)
        .number("waited", |limited| limited.delayed.0)
        .number("max wait", |limited| Figure::seconds(limited.longest_seconds));
    page.add_table(table, SUMMARY_FILE);
}
