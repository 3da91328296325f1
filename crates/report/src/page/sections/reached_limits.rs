//! Limits on nodes that were reached, with what they did.

use super::SUMMARY_FILE;
use crate::format;
use crate::page::html::{Column, Html};
use crate::summary::{LimitFigures, Summary};

pub(in super::super) fn reached_limits(page: &mut Html, summary: &Summary) {
    if summary.limits_reached.is_empty() {
        return;
    }
    page.element("h3 id=\"limits\"", "Limits reached");
    let rows: Vec<Vec<String>> = summary.limits_reached.iter().map(row).collect();
    let columns = [
        Column::Text("limit"),
        Column::Figure("pods that waited"),
        Column::Figure("launches refused"),
        Column::Figure("from"),
        Column::Figure("for"),
    ];
    page.table(&columns, &rows, SUMMARY_FILE);
}

fn row(limit: &LimitFigures) -> Vec<String> {
    let count = |count: Option<u64>| count.map_or_else(String::new, format::count);
    vec![
        limit.subject(),
        count(limit.pods),
        count(limit.refused_launches),
        format::span(limit.from_seconds),
        format::span(limit.for_seconds),
    ]
}
