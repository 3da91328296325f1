//! Limits on nodes that were reached.

use super::availability;
use crate::summary::Summary;

/// Adds the lines; none where no limit was reached.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    if summary.limits_reached.is_empty() {
        return;
    }
    let all: Vec<String> = summary.limits_reached.iter().map(|limit| limit.words()).collect();
    availability::list(lines, "limits reached", &all, ("more limit", "more limits"));
    lines.push(String::new());
}
