//! The run over time in a few lines of text, for the terminal.

use super::curves::{self, Point};
use super::format::{self, money};
use crate::domain::SimTime;
use nodecast_world::Outcome;

/// Columns of a line; each shows the largest value of its stretch of time.
const COLUMNS: usize = 40;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Width of the names before the lines.
const LABEL: usize = 24;

/// Lines of `outcome` over time; none for a run that was too short to be sampled twice.
pub(super) fn lines(outcome: &Outcome) -> Vec<String> {
    let end = SimTime::ZERO + outcome.about.duration;
    let samples = &outcome.record.samples;
    if samples.len() < 2 || end <= SimTime::ZERO {
        return Vec::new();
    }
    let of = |value: &dyn Fn(&nodecast_world::record::Sample) -> f64| {
        samples.iter().map(|sample| (sample.at, value(sample).into())).collect::<Vec<Point>>()
    };
    let mut lines = Vec::new();
    let mut add = |label: &str, points: &[Point], say: &dyn Fn(f64) -> String| {
        let columns = columns(points, end);
        let most = columns.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            lines.push(format!("{label:<LABEL$}{}  peak {}", drawn(&columns, most), say(most)));
        }
    };
    let requests = of(&|sample| sample.workloads.iter().map(|workload| workload.requests_per_second).sum());
    add("requests per second", &requests, &format::whole);
    let replicas = of(&|sample| sample.workloads.iter().map(|workload| f64::from(workload.replicas_ready)).sum());
    add("Ready replicas", &replicas, &format::whole);
    add("unscheduled pods", &curves::pods_waiting(outcome).points, &format::whole);
    // As the pods above not by samples, which miss nodes that are gone before the next: the table has the true maximum.
    add("Ready nodes", &curves::nodes_ready(outcome), &format::whole);
    let currency = outcome.bill.currency.code();
    let rate = of(&|sample| sample.cost_rate.as_f64());
    add("node cost per hour", &rate, &|most| money(currency, most));
    lines
}

/// The largest value of each stretch of time; a value holds until the next.
fn columns(points: &[Point], end: SimTime) -> Vec<f64> {
    let span = end.as_micros().max(1);
    let column = |at: SimTime| {
        let column = i128::from(at.as_micros().clamp(0, span)) * COLUMNS as i128 / i128::from(span);
        usize::try_from(column).unwrap_or(0).min(COLUMNS - 1)
    };
    let mut columns = vec![0.0_f64; COLUMNS];
    for (position, &(at, value)) in points.iter().enumerate() {
        let until = points.get(position + 1).map_or(end, |next| next.0);
        let last = column(SimTime::from_micros(until.as_micros() - 1)).max(column(at));
        for column in &mut columns[column(at)..=last] {
            *column = column.max(value.get().unwrap_or(0.0));
        }
    }
    columns
}

fn drawn(columns: &[f64], most: f64) -> String {
    let level = |value: &f64| {
        let level = libm::ceil(value / most * LEVELS.len() as f64) as usize;
        LEVELS[level.clamp(1, LEVELS.len()) - 1]
    };
    columns.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, columns, drawn};
    use crate::domain::SimTime;

    #[test]
    fn no_peak_is_lost_however_short() {
        let at = SimTime::from_micros;
        let points = [(at(0), 1.0), (at(500), 8.0), (at(501), 2.0)].map(|(at, value)| (at, value.into()));
        let columns = columns(&points, at(1_000));
        assert_eq!((columns[0], columns[COLUMNS / 2], columns[COLUMNS - 1]), (1.0, 8.0, 2.0));
        let line = drawn(&columns, 8.0);
        assert!(line.starts_with("▁▁") && line.ends_with("▂▂") && line.matches('█').count() == 1, "{line}");
    }
}
