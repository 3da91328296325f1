//! How long the samples of a record hold, and where it has none.
//!
//! A recorder is late now and then, and files are put together of several answers: one short gap says nothing of the others.

use super::records::Values;
use crate::domain::SimDuration;
use crate::domain::words::counted;
use nodecast_load::{Curve, CurveStep};

/// A sample holds until the next one if that is no more than so many periods later; behind a longer gap some are missing.
const LATE: f64 = 1.5;

/// Seconds from each sample to the next.
fn gaps<T>(samples: &[(f64, T)]) -> impl Iterator<Item = f64> {
    samples.windows(2).map(|pair| pair[1].0 - pair[0].0)
}

/// The step of a query: the gap that there is most often, to the millisecond, and the shorter of those that there are as often. Those who
/// answer queries leave samples out and shift none. Infinite without a gap.
pub(super) fn step<T>(series: &[Vec<(f64, T)>]) -> f64 {
    let mut all: Vec<f64> = series.iter().flat_map(|item| gaps(item)).collect();
    all.sort_by(f64::total_cmp);
    let (mut best, mut most) = (f64::INFINITY, 0);
    for alike in all.chunk_by(|a, b| libm::round(a * 1e3).to_bits() == libm::round(b * 1e3).to_bits()) {
        if let Some(first) = alike.first().filter(|_| alike.len() > most) {
            (best, most) = (*first, alike.len());
        }
    }
    best
}

/// The usual time from one row of a table to the next: the gap in the middle, the longer of two. Infinite without a gap.
pub(super) fn usual<T>(samples: &[(f64, T)]) -> f64 {
    let mut all: Vec<f64> = gaps(samples).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// The curve of samples, seconds and values: each holds until the next or, where that is missing and behind the last, for a period. Where
/// there is no sample, or one without a value, nothing comes.
pub(super) fn held(samples: &[(f64, Option<f64>)], period: f64, values: Values) -> Curve {
    let mut steps: Vec<CurveStep> = Vec::new();
    for (place, (at, value)) in samples.iter().enumerate() {
        let Some(value) = value else { continue };
        let next = samples.get(place + 1).map(|sample| sample.0).filter(|next| next - at <= period * LATE);
        let until = next.unwrap_or(at + period);
        let rate = if values == Values::Totals { value / (until - at) } else { *value };
        let from = SimDuration::from_secs_f64(*at);
        steps.pop_if(|gap| gap.from >= from);
        steps.push(CurveStep { from, rate });
        steps.push(CurveStep { from: SimDuration::from_secs_f64(until), rate: 0.0 });
    }
    Curve::from_steps(steps)
}

/// That rows of a table are missing, if any are: how often, and for how long at most.
pub(super) fn missing<T>(samples: &[(f64, T)], file: &str) -> Option<String> {
    let period = usual(samples);
    let missing: Vec<f64> = gaps(samples).filter(|gap| *gap > period * LATE).map(|gap| gap - period).collect();
    let longest = missing.iter().copied().fold(0.0, f64::max);
    let span = |seconds: f64| SimDuration::from_secs(libm::round(seconds) as i64);
    (!missing.is_empty()).then(|| {
        format!(
            "{file}: rows are missing in {}, the longest {}. The load is zero there; each row covers {}, the usual interval",
            counted(missing.len() as u64, "place", "places"),
            span(longest),
            span(period)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{held, missing, step, usual};
    use crate::file::load::records::Values;

    fn rates(samples: &[(f64, f64)], period: f64, values: Values) -> Vec<(i64, f64)> {
        let samples: Vec<_> = samples.iter().map(|(at, value)| (*at, Some(*value))).collect();
        held(&samples, period, values).steps().iter().map(|step| (step.from.as_secs(), step.rate)).collect()
    }

    #[test]
    fn one_late_row_moves_no_other() {
        let late = [(0.0, 8.0), (300.0, 8.0), (301.0, 8.0), (600.0, 8.0), (900.0, 8.0)];
        assert!((usual(&late) - 300.0).abs() < 1e-9 && (step(&[late.to_vec()]) - 300.0).abs() < 1e-9);
        let held = rates(&late, 300.0, Values::Rates);
        assert_eq!(held, [(0, 8.0), (300, 8.0), (301, 8.0), (600, 8.0), (900, 8.0), (1_200, 0.0)]);
        assert_eq!(missing(&late, "a.csv"), None);
    }

    #[test]
    fn totals_are_kept_whatever_their_rows_stand_for() {
        let days = [(0.0, 86_400.0), (86_400.0, 86_400.0), (169_200.0, 86_400.0)];
        let held = rates(&days, 86_400.0, Values::Totals);
        assert_eq!(held.iter().map(|item| item.0).collect::<Vec<_>>(), [0, 86_400, 169_200, 255_600]);
        assert!((held[1].1 * 82_800.0 - 86_400.0).abs() < 1e-6);
    }

    #[test]
    fn gap_in_load_table_is_zero_with_warning() {
        let table = [(0.0, 1.0), (60.0, 1.0), (120.0, 1.0), (3_600.0, 1.0)];
        assert_eq!(
            rates(&table, 60.0, Values::Rates),
            [(0, 1.0), (60, 1.0), (120, 1.0), (180, 0.0), (3_600, 1.0), (3_660, 0.0)]
        );
        let told = "a.csv: rows are missing in 1 place, the longest 57m. The load is zero there; each row covers 1m, the usual interval";
        assert_eq!(missing(&table, "a.csv").as_deref(), Some(told));
    }
}
