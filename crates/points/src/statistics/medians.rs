//! Medians with intervals by order statistics: for waits, which a rare failure moves by minutes. Must not hold: anything on means.

use super::{Estimate, Method, Paired, are_equal, mean, standard_error, student_t_quantile};
use crate::report::format::relative_change;

/// The share of intervals that cover the true median.
const CONFIDENCE: f64 = 0.95;

impl Estimate {
    /// The median of `values` with its interval; `None` without values.
    ///
    /// The interval ends at two of the values in order, whatever their distribution. Fewer than six values have no such interval of
    /// 95 %: their range is widened to Student's interval around the median.
    ///
    /// Source: H. A. David and H. N. Nagaraja, Order Statistics, third edition, section 7.1.
    pub fn of_median(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (count, middle) = (sorted.len(), median(&sorted)?);
        let mean = if are_equal(values) { sorted[0] } else { mean(values)? };
        let bare =
            Self { count: count as u64, mean, median: Some(middle), low: None, high: None, method: Method::None };
        if count < 2 {
            return Some(bare);
        }
        let ranked = |rank: usize| (sorted[rank - 1], sorted[count - rank]);
        if let Some(rank) = rank(count) {
            let (low, high) = ranked(rank);
            return Some(Self { low: Some(low), high: Some(high), method: Method::OrderStatistics, ..bare });
        }
        let (least, most) = ranked(1);
        let reach = student_t_quantile(0.5 + CONFIDENCE / 2.0, (count - 1) as f64) * standard_error(&sorted, mean);
        let (low, high) = (least.min(middle - reach), most.max(middle + reach));
        let method = if are_equal(values) { Method::Equal } else { Method::StudentT };
        Some(Self { low: Some(low), high: Some(high), method, ..bare })
    }
}

impl Paired {
    /// Compares values that belong together two by two by the median of their differences; `None` without any. The relative change
    /// is the median of the pairs' own; `null` where one of `base` is too near 0.
    pub fn of_medians(base: &[f64], other: &[f64]) -> Option<Self> {
        let pairs = || base.iter().zip(other);
        let differences: Vec<f64> = pairs().map(|(base, other)| other - base).collect();
        let changes: Option<Vec<f64>> = pairs().map(|(base, other)| relative_change(other - base, *base)).collect();
        let difference = Estimate::of_median(&differences)?;
        Some(Self { difference, relative: changes.and_then(|changes| Estimate::of_median(&changes)) })
    }
}

/// The middle of sorted values, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.get((sorted.len().checked_sub(1)?) / 2)?, sorted.get(sorted.len() / 2)?);
    Some(if low.total_cmp(high).is_eq() { *low } else { low.midpoint(*high) })
}

/// The largest rank from either end, counted from 1, whose values hold the median with the confidence; `None` where the
/// outermost do not.
fn rank(count: usize) -> Option<usize> {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    // The probability that exactly `below` of the values lie below the median.
    let (mut exactly, mut at_most, mut found) = (libm::pow(0.5, count as f64), 0.0, None);
    for below in 0..count / 2 {
        at_most += exactly;
        if at_most > tail {
            break;
        }
        found = Some(below + 1);
        exactly *= (count - below) as f64 / (below + 1) as f64;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::rank;
    use crate::engine::Streams;
    use crate::statistics::{Estimate, Method, Paired};

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Tables of sign-test intervals: from n = 6 on the range, 2 from n = 9 on, 3 from n = 12 on, then 6 of 20 and 10 of 30.
        for (count, expected) in [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
            (12, Some(3)),
            (20, Some(6)),
            (30, Some(10)),
        ] {
            assert_eq!(rank(count), expected, "{count}");
        }
    }

    #[test]
    fn one_failed_boot_does_not_move_the_median() {
        let waits = [61.0, 58.5, 63.2, 915.0, 60.1, 59.4, 62.0, 57.9, 60.8, 61.5];
        let estimate = Estimate::of_median(&waits).unwrap();
        assert_eq!((estimate.method, estimate.low, estimate.high), (Method::OrderStatistics, Some(58.5), Some(63.2)));
        assert!((estimate.centre() - 60.9).abs() < 1e-9 && estimate.mean > 140.0, "{estimate:?}");
    }

    #[test]
    fn few_values_have_at_least_their_range() {
        let estimate = Estimate::of_median(&[40.0, 41.0, 90.0]).unwrap();
        assert!(estimate.low.unwrap() < 40.0 && estimate.high.unwrap() > 90.0, "{estimate:?}");
        assert_eq!(Estimate::of_median(&[3.0]).unwrap().low, None);
        assert_eq!(Estimate::of_median(&[]), None);
    }

    #[test]
    fn equal_waits_are_not_called_exact() {
        assert_eq!(Estimate::of_median(&[7.0; 3]).unwrap().method, Method::Equal);
        assert_eq!(Estimate::of_median(&[7.0; 9]).unwrap().method, Method::OrderStatistics);
    }

    #[test]
    fn intervals_cover_the_median_of_skewed_waits() {
        let (mut level, mut difference) = (0_u32, 0_u32);
        // Waits with a median of 60 s, one boot of twelve lost; the other policy waits 5 s longer in the median.
        for experiment in 0..2_000 {
            let mut stream = Streams::new(29).nth("waits", "", experiment);
            let mut wait = |median: f64| {
                let rare = stream.uniform() < 1.0 / 12.0;
                if rare { 900.0 * stream.uniform() } else { median + 4.0 * stream.normal() }
            };
            let base: Vec<f64> = (0..10).map(|_| wait(60.0)).collect();
            let longer: Vec<f64> = base.iter().map(|base| base + 5.0 + wait(0.0)).collect();
            let covers =
                |estimate: &Estimate, value: f64| (estimate.low.unwrap()..=estimate.high.unwrap()).contains(&value);
            level += u32::from(covers(&Estimate::of_median(&base).unwrap(), 60.5));
            difference += u32::from(covers(&Paired::of_medians(&base, &longer).unwrap().difference, 5.5));
        }
        assert!(level > 1_900 && difference > 1_900, "{level} {difference}");
    }
}
