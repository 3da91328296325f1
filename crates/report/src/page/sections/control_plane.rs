//! The tier of the control plane, and the controllers that waited for its limits.

use super::SUMMARY_FILE;
use crate::format;
use crate::page::html::{Column, Html};
use crate::summary::{Limited, Summary};

pub(in super::super) fn control_plane(page: &mut Html, summary: &Summary) {
    let Some(control_plane) = &summary.controllers.control_plane else { return };
    let limited = summary.controllers.limited();
    if limited.is_empty() && !control_plane.is_provisioned() {
        return;
    }
    page.element("h3 id=\"control-plane\"", "Control plane");
    page.element("p", &control_plane.words());
    if limited.is_empty() {
        return;
    }
    let columns = [
        Column::Text("controller"),
        Column::Text("limit"),
        Column::Figure("calls or passes"),
        Column::Figure("waited"),
        Column::Figure("max wait"),
    ];
    page.table(&columns, &limited.iter().map(row).collect::<Vec<_>>(), SUMMARY_FILE);
}

fn row(limited: &Limited) -> Vec<String> {
    let (delayed, all) = limited.delayed;
    vec![
        limited.who.clone(),
        limited.limit.clone(),
        format::count(all),
        format::count(delayed),
        format::span(limited.longest_seconds),
    ]
}
