//! Functions over a range of samples.

use super::Point;
use super::parser::RangeFunction;
use nodecast_model::domain::{SimDuration, SimTime};

/// The value of `function` over the samples of a range of length `range` that ends at `end`; `None` if there are too few.
pub(super) fn over_range(function: RangeFunction, points: &[Point], range: SimDuration, end: SimTime) -> Option<f64> {
    let last = points.last()?;
    let values = || points.iter().map(|point| point.value);
    let count = points.len() as f64;
    Some(match function {
        RangeFunction::Rate => extrapolated(points, range, end, true)? / range.as_secs_f64(),
        RangeFunction::Increase => extrapolated(points, range, end, true)?,
        RangeFunction::Delta => extrapolated(points, range, end, false)?,
        RangeFunction::InstantRate => {
            let [.., before, last] = points else { return None };
            // After a reset the counter began at zero.
            let increase = if last.value < before.value { last.value } else { last.value - before.value };
            increase / (last.at - before.at).as_secs_f64()
        }
        RangeFunction::Average => values().sum::<f64>() / count,
        RangeFunction::Largest => values().fold(f64::NEG_INFINITY, libm::fmax),
        RangeFunction::Smallest => values().fold(f64::INFINITY, libm::fmin),
        RangeFunction::Sum => values().sum(),
        RangeFunction::Count => count,
        RangeFunction::Last => last.value,
    })
}

/// The increase within the range, extended beyond the first and the last sample: to the edge of the range if that is no
/// farther than a little more than the usual distance of samples, else by half of that. A counter is not extended to before
/// the time at which it was zero.
///
/// Source: Prometheus 3 `promql/functions.go`, `extrapolatedRate`.
fn extrapolated(points: &[Point], range: SimDuration, end: SimTime, counter: bool) -> Option<f64> {
    let [first, .., last] = points else { return None };
    let mut increase = last.value - first.value;
    if counter {
        for pair in points.windows(2) {
            if pair[1].value < pair[0].value {
                increase += pair[0].value;
            }
        }
    }
    let sampled = (last.at - first.at).as_secs_f64();
    let mean = sampled / (points.len() - 1) as f64;
    let threshold = mean * 1.1;
    let mut to_start = (first.at - (end - range)).as_secs_f64();
    let mut to_end = (end - last.at).as_secs_f64();
    if to_start >= threshold {
        to_start = mean / 2.0;
    }
    if counter && increase > 0.0 && first.value >= 0.0 {
        to_start = to_start.min(sampled * (first.value / increase));
    }
    if to_end >= threshold {
        to_end = mean / 2.0;
    }
    Some(increase * ((sampled + to_start + to_end) / sampled))
}
