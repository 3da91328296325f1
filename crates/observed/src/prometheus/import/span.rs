//! Of which part of the window there is a record: a Prometheus that is younger than the window, or that ended before it, knows nothing of
//! the rest, and a cluster without nodes there would be judged by it.

use super::super::saved::Answers;
use super::nodes::NodeCounts;
use super::time_text;
use crate::observation::Window;

/// A gap at either end that is no reason to cut the window, in seconds: a restart, a scrape that failed.
const GAP: i64 = 600;

/// The part of a window of which there is a record.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub window: Window,
    /// Its begin as a Unix time in microseconds.
    pub start: i64,
    /// Its share of the window that was asked for.
    pub share: f64,
    /// What has to be told if it is not all of it.
    pub warning: Option<String>,
}

impl Span {
    /// From the first to the last instant at which nodes were counted; all of the window where nobody counted any.
    pub(super) fn new(counted: &NodeCounts, answers: &Answers) -> Self {
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for (role, series) in counted.answers() {
            let step = answers.asked(role).map_or(0, |asked| asked.step);
            for sample in series.iter().flat_map(|series| &series.samples) {
                let second = sample.at.div_euclid(1_000_000);
                (first, last) = (first.min(second), last.max(second + step));
            }
        }
        let (asked_from, asked_to) = (answers.from, answers.to);
        let from = if first > last || first - asked_from <= GAP { asked_from } else { first };
        let to = if first > last || asked_to - last <= GAP { asked_to } else { last };
        let whole = (asked_to - asked_from).max(1) as f64;
        let warning = ((from, to) != (asked_from, asked_to)).then(|| {
            format!(
                "nothing was recorded of the rest of {} to {}: the observation is of {} to {}",
                time_text(asked_from),
                time_text(asked_to),
                time_text(from),
                time_text(to)
            )
        });
        Self { window: Window::new(from, to), start: from * 1_000_000, share: (to - from) as f64 / whole, warning }
    }
}
