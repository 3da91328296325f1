//! Percentiles by the nearest-rank rule, over integers.

use crate::domain::SimDuration;

/// Spans in ascending order, ready to be asked for percentiles.
#[derive(Clone, Debug, Default)]
pub struct SortedSpans {
    spans: Vec<SimDuration>,
}

impl SortedSpans {
    /// Sorts `spans`.
    pub fn new(mut spans: Vec<SimDuration>) -> Self {
        spans.sort_unstable();
        Self { spans }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The `percent`-th percentile: the smallest span such that at least `percent` per cent of all are not longer.
    /// Always one of the spans, never a value in between; `None` without spans.
    pub fn percentile(&self, percent: u32) -> Option<SimDuration> {
        let rank = (self.spans.len() * percent.min(100) as usize).div_ceil(100);
        self.spans.get(rank.max(1) - 1).copied()
    }

    /// The longest span.
    pub fn max(&self) -> Option<SimDuration> {
        self.spans.last().copied()
    }

    /// The mean in seconds.
    pub fn mean_seconds(&self) -> Option<f64> {
        let total: i128 = self.spans.iter().map(|span| i128::from(span.as_micros())).sum();
        (!self.spans.is_empty()).then(|| total as f64 / self.spans.len() as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::SortedSpans;
    use crate::domain::SimDuration;

    fn spans(seconds: impl IntoIterator<Item = i64>) -> SortedSpans {
        SortedSpans::new(seconds.into_iter().map(SimDuration::from_secs).collect())
    }

    #[test]
    fn percentile_uses_nearest_rank() {
        let of_five = spans([50, 15, 40, 20, 35]);
        let at = |percent| of_five.percentile(percent).map(SimDuration::as_secs);
        assert_eq!(
            [at(0), at(5), at(30), at(40), at(50), at(100)].map(Option::unwrap_or_default),
            [15, 15, 20, 20, 35, 50]
        );
        assert_eq!(spans(1..=100).percentile(99).map(SimDuration::as_secs), Some(99));
        assert_eq!(spans(1..=101).percentile(99).map(SimDuration::as_secs), Some(100));
        assert_eq!(of_five.mean_seconds(), Some(32.0));
    }

    #[test]
    fn no_span_has_no_percentile() {
        let none = spans([]);
        assert!(none.is_empty());
        assert_eq!((none.percentile(50), none.max(), none.mean_seconds()), (None, None, None));
    }
}
