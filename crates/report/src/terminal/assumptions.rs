//! The assumptions of a scenario that says which part of the bill rests on them.

use super::super::answers::size_in_words;
use super::super::format;
use super::super::summary::Summary;

/// Assumptions that are printed; the page has all.
const SHOWN: usize = 5;

/// The largest, each with its size.
pub(super) fn lines(summary: &Summary, lines: &mut Vec<String>) {
    let all = summary.about.sized_assumptions();
    if all.is_empty() {
        return;
    }
    let count = format::counted(all.len() as u64, "assumption", "assumptions");
    lines.push(format!("\n{count}, each with the part of the bill that depends on it:"));
    for (text, size) in all.iter().take(SHOWN) {
        let first = text.split_once(". ").map_or(*text, |(first, _)| first);
        lines.push(format!("  {}: {}", size_in_words(*size, summary), first.trim_end_matches('.')));
    }
    if all.len() > SHOWN {
        lines.push(format!("  + {} more in the report", all.len() - SHOWN));
    }
}
