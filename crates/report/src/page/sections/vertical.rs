//! What VerticalPodAutoscalers recommended, against what pods request and use.

use super::SUMMARY_FILE;
use crate::page::html::Html;
use crate::run_tables;
use crate::summary::Summary;

pub(in super::super) fn vertical(page: &mut Html, summary: &Summary) {
    if summary.vertical.is_empty() {
        return;
    }
    page.element("h3 id=\"vertical\"", "Requests and recommendations");
    page.add_table(run_tables::containers(&summary.vertical, usize::MAX), "recommendations.csv");
    page.add_table(run_tables::vertical(&summary.vertical), SUMMARY_FILE);
    page.element("p class=\"note\"", "Requests and usage are means over running pods: CPU in cores, memory in MiB.");
}
