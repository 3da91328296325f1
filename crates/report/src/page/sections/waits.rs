//! Waits for a node by workload and by priority.

use super::SUMMARY_FILE;
use crate::page::html::Html;
use crate::run_tables;
use crate::summary::{Summary, WaitFigures};

/// The two tables; a table of one row would say what stands above it.
pub(super) fn tables(page: &mut Html, summary: &Summary) {
    let pods = &summary.pods;
    let named = |name: &str, placeholder| if placeholder { format!("{name} (placeholders)") } else { name.to_owned() };
    let workloads =
        pods.by_workload.iter().map(|workload| (named(&workload.workload, workload.placeholder), &workload.waits));
    table(page, "Pod wait by workload", workloads.collect());
    let priorities = pods.by_priority.iter().map(|priority| (priority.priority.to_string(), &priority.waits));
    table(page, "Pod wait by priority", priorities.collect());
}

fn table(page: &mut Html, of_what: &'static str, mut all: Vec<(String, &WaitFigures)>) {
    if all.len() < 2 {
        return;
    }
    // Who waited longest comes first.
    let p99 = |waits: &WaitFigures| waits.wait_for_node.as_ref().map_or(-1.0, |wait| wait.p99_seconds);
    all.sort_by(|one, other| p99(other.1).total_cmp(&p99(one.1)));
    let rows = all.into_iter().filter_map(|(name, waits)| Some((name, waits.wait_for_node.as_ref()?, waits.waited)));
    let table = run_tables::spans(of_what, rows).number("longer than 1 s", |(.., waited)| *waited);
    page.add_table(table, SUMMARY_FILE);
}
