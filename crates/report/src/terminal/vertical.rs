//! The lines on VerticalPodAutoscalers.

use crate::run_tables;
use crate::summary::Summary;

/// Containers that are printed; the page has all.
const SHOWN: usize = 10;

/// Adds a line for each container and resource, and the outcomes of pods.
pub(super) fn lines(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    if summary.vertical.is_empty() {
        return;
    }
    lines.extend(run_tables::containers(&summary.vertical, SHOWN).lines(width));
    lines.extend(run_tables::vertical(summary.vertical.iter().take(SHOWN)).lines(width));
    lines.push(String::new());
}
