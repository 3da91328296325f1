//! What the page's script works with: the curves, the lives of nodes and pods, and the decisions of a run, as compact JSON
//! inside the page. Instants are whole tenths of a second since the start.
//!
//! What must not live here: figures. Every number of the page that a reader could quote is in the summary.

mod charts;
mod counts;
mod decisions;
mod encode;
mod replay;
mod thinning;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::curves;
use crate::domain::{Symbol, WorkloadId};
use crate::summary::service::workload_name;
pub(crate) use charts::Chart;
use encode::tenths;
use nodecast_world::Outcome;

/// Bytes of a page: its data takes what its tables and scripts leave.
const PAGE_BYTES_MAX: usize = 990_000;

/// How much of a run the page shows.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Points of all curves of one sort together, those through measured values and those of steps.
    points: usize,
    /// Rows of pods.
    pods: usize,
    /// Bytes of decisions, roughly.
    decisions: usize,
}

/// What is tried in turn until the data is small enough: curves give way before lives, lives before decisions.
const BUDGETS: [Budget; 9] = [
    Budget { points: 60_000, pods: 48_000, decisions: 300_000 },
    Budget { points: 60_000, pods: 26_000, decisions: 300_000 },
    Budget { points: 40_000, pods: 26_000, decisions: 300_000 },
    Budget { points: 40_000, pods: 16_000, decisions: 300_000 },
    Budget { points: 30_000, pods: 16_000, decisions: 300_000 },
    Budget { points: 30_000, pods: 10_000, decisions: 300_000 },
    Budget { points: 20_000, pods: 6_000, decisions: 200_000 },
    Budget { points: 10_000, pods: 3_000, decisions: 100_000 },
    Budget { points: 5_000, pods: 1_500, decisions: 50_000 },
];

/// Everything that the script of a run's page reads.
#[derive(Serialize)]
struct Data<'d> {
    /// Calendar time of the start, RFC 3339.
    start: String,
    /// Simulated time.
    duration: i64,
    /// The time at the start that figures leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_up: Option<i64>,
    /// Names that rows refer to by their position.
    names: &'d [String],
    workloads: &'d [Workload],
    charts: Vec<Chart>,
    counts: &'d counts::Counts,
    replay: &'d replay::Replay,
    decisions: &'d decisions::Decisions,
}

/// A workload as pods refer to it.
#[derive(Serialize)]
struct Workload {
    name: String,
    /// The colour that its curves have; nothing for a DaemonSet.
    color: Option<usize>,
}

/// The data of a page that compares runs: their curves alone.
#[derive(Serialize)]
struct Comparison {
    start: String,
    duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_up: Option<i64>,
    charts: Vec<Chart>,
}

/// Names by the order in which they were first met.
#[derive(Debug, Default)]
struct Names {
    positions: BTreeMap<Symbol, usize>,
    names: Vec<String>,
}

impl Names {
    /// The position of `name`, `-1` for nothing.
    fn position(&mut self, name: Option<Symbol>) -> i64 {
        let Some(name) = name else { return -1 };
        let position = *self.positions.entry(name).or_insert_with(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        });
        position as i64
    }
}

/// The data of the page of `outcome`, safe within a `script` element; `others` are the bytes of all else in the page.
pub(super) fn page_data(outcome: &Outcome, others: usize) -> String {
    let mut json = String::new();
    let room = PAGE_BYTES_MAX.saturating_sub(others);
    let counts = counts::Counts::new(outcome);
    // Finding the lives and decisions that fit takes long: one budget's serve the next with as much room for them.
    let (mut lives, mut decided) = (None, None);
    let workloads = workloads(outcome);
    for budget in BUDGETS {
        let lives = of_room(&mut lives, budget.pods, |rows| Lives::new(outcome, &counts, rows));
        let decisions = of_room(&mut decided, budget.decisions, |bytes| decisions::Decisions::new(outcome, bytes));
        json = within_script(&Data {
            start: outcome.about.start.clone(),
            duration: tenths(crate::domain::SimTime::ZERO + outcome.about.duration),
            warm_up: warm_up(outcome),
            workloads: &workloads,
            charts: charts::charts(outcome, budget.points),
            counts: &counts,
            replay: &lives.replay,
            decisions,
            names: &lives.names.names,
        });
        if json.len() <= room {
            break;
        }
    }
    json
}

/// The lives of nodes and pods, and the names in them.
struct Lives {
    replay: replay::Replay,
    names: Names,
}

impl Lives {
    fn new(outcome: &Outcome, counts: &counts::Counts, rows: usize) -> Self {
        let mut names = Names::default();
        Self { replay: replay::Replay::new(outcome, counts, &mut names, rows), names }
    }
}

/// What fits into so much room, which is what `known` holds if that was found for as much.
fn of_room<T>(known: &mut Option<(usize, T)>, room: usize, find: impl FnOnce(usize) -> T) -> &T {
    let found = match known.take() {
        Some((item, found)) if item == room => found,
        _ => find(room),
    };
    &known.insert((room, found)).1
}

/// The data of a page that holds `outcomes` against each other, each under its name.
pub fn of_many(outcomes: &[(&str, &Outcome)]) -> String {
    of_some(outcomes, BUDGETS[0].points)
}

/// The curves of one run among those that a page holds against each other, with about `points` points in all.
pub fn of_one(outcome: &Outcome, points: usize) -> String {
    of_some(&[("", outcome)], points)
}

fn of_some(outcomes: &[(&str, &Outcome)], points: usize) -> String {
    let Some((_, first)) = outcomes.first() else { return "null".to_owned() };
    let longest = outcomes.iter().map(|(_, outcome)| outcome.about.duration).max().unwrap_or_default();
    within_script(&Comparison {
        start: first.about.start.clone(),
        duration: tenths(crate::domain::SimTime::ZERO + longest),
        warm_up: outcomes.iter().filter_map(|(_, outcome)| warm_up(outcome)).max(),
        charts: charts::of_many(outcomes, points),
    })
}

/// The time at the start that figures leave out, if any.
fn warm_up(outcome: &Outcome) -> Option<i64> {
    Some(tenths(outcome.about.counts_from())).filter(|until| *until > 0)
}

/// Workloads by their id, with the colours of the charts.
fn workloads(outcome: &Outcome) -> Vec<Workload> {
    let colors = curves::workload_colors(outcome);
    let ids = (0..outcome.record.workloads.len()).map(|index| WorkloadId(u32::try_from(index).unwrap_or(u32::MAX)));
    ids.map(|id| Workload { name: workload_name(outcome, id), color: colors.get(&id).copied() }).collect()
}

/// `data` as JSON that cannot end the element it stands in, nor begin another, and without control characters.
pub fn within_script(data: &impl Serialize) -> String {
    // Serialising plain data to memory does not fail; a page without data says so.
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    // These occur within strings only.
    let dangerous = |c: char| c.is_control() || matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    let (mut safe, mut rest) = (String::with_capacity(json.len()), json.as_str());
    while let Some(at) = rest.find(dangerous) {
        safe.push_str(&rest[..at]);
        let mut from = rest[at..].chars();
        safe.extend(from.next().map(|character| format!("\\u{:04x}", u32::from(character))));
        rest = from.as_str();
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests {
    use super::within_script;

    #[test]
    fn embedded_text_cannot_end_the_script() {
        let hostile = "</script><script>alert(1)</script> & <!-- \u{2028}\u{7f}\u{9b}";
        let safe = within_script(&hostile);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}', '\u{7f}', '\u{9b}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
    }
}
