//! Summaries and histograms of spans of time.

use std::io;

use super::exposition::{Exposition, Labels, Part};
use crate::domain::{SimDuration, SimTime};

/// Quantiles of Karpenter's summaries.
///
/// Source: Karpenter core v1.13 `pkg/metrics/constants.go`, `SummaryObjectives`.
const QUANTILES: [(f64, &str); 5] = [(0.0, "0"), (0.5, "0.5"), (0.9, "0.9"), (0.99, "0.99"), (1.0, "1")];
/// How far back the quantiles of a summary look: the default of Prometheus's client.
const WINDOW: SimDuration = SimDuration::from_secs(600);
/// Upper limits of the buckets of Karpenter's histograms, in milliseconds.
///
/// Source: Karpenter core v1.13 `pkg/metrics/constants.go`, `DurationBuckets`.
pub(super) const KARPENTER_BUCKETS: [i64; 45] = [
    5, 10, 25, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1_000, 1_250, 1_500, 1_750, 2_000,
    2_500, 3_000, 3_500, 4_000, 4_500, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000, 15_000, 20_000, 25_000, 30_000,
    40_000, 50_000, 60_000, 120_000, 150_000, 300_000, 450_000, 600_000,
];
/// Lines of a histogram at one instant.
pub(super) const HISTOGRAM_LINES: u64 = KARPENTER_BUCKETS.len() as u64 + 3;

/// Spans in order of the instant at which they were over, with the sum of all up to each.
struct Observed {
    spans: Vec<(SimTime, SimDuration)>,
    sums: Vec<i64>,
}

impl Observed {
    fn from_spans(spans: impl Iterator<Item = (SimTime, SimDuration)>) -> Self {
        let mut spans: Vec<(SimTime, SimDuration)> = spans.collect();
        spans.sort_unstable();
        let mut sum = 0;
        let sums = spans.iter().map(|(_, span)| {
            sum += span.as_micros();
            sum
        });
        Self { sums: sums.collect(), spans }
    }

    /// How many were over by `at`.
    fn count(&self, at: SimTime) -> usize {
        self.spans.partition_point(|(over, _)| *over <= at)
    }

    /// Count and sum by `at`.
    fn totals(&self, at: SimTime) -> [Part; 2] {
        let count = self.count(at);
        let sum = count.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(0);
        let part = |suffix, value| Part { suffix, label: None, value };
        [part("_count", count as f64), part("_sum", sum as f64 / 1e6)]
    }
}

/// The series of a summary whose family has begun: quantiles are of the last ten minutes, and not numbers when nothing was
/// observed in them.
pub(super) fn summary(
    out: &mut Exposition<'_>,
    labels: &Labels,
    spans: impl Iterator<Item = (SimTime, SimDuration)>,
) -> io::Result<()> {
    let observed = Observed::from_spans(spans);
    out.points(labels, |at| {
        let since = if at - SimTime::ZERO < WINDOW { 0 } else { observed.count(at - WINDOW) };
        let recent = observed.spans.get(since..observed.count(at)).unwrap_or_default();
        let mut recent: Vec<SimDuration> = recent.iter().map(|(_, span)| *span).collect();
        recent.sort_unstable();
        let quantile = |share: f64| {
            let rank = libm::ceil(share * recent.len() as f64) as usize;
            recent.get(rank.saturating_sub(1)).map_or(f64::NAN, |span| span.as_secs_f64())
        };
        let quantiles = QUANTILES.iter().map(|(share, name)| Part {
            suffix: "",
            label: Some(("quantile", (*name).to_owned())),
            value: quantile(*share),
        });
        quantiles.chain(observed.totals(at)).collect()
    })
}

/// The series of a histogram whose family has begun, with these upper limits of its buckets in milliseconds.
pub(super) fn histogram(
    out: &mut Exposition<'_>,
    labels: &Labels,
    buckets: &[i64],
    spans: impl Iterator<Item = (SimTime, SimDuration)>,
) -> io::Result<()> {
    let observed = Observed::from_spans(spans);
    // For each bucket the instants at which its count grows.
    let grows: Vec<Vec<SimTime>> = buckets
        .iter()
        .map(|limit| {
            let within = observed.spans.iter().filter(|(_, span)| *span <= SimDuration::from_millis(*limit));
            within.map(|(over, _)| *over).collect()
        })
        .collect();
    out.points(labels, |at| {
        let bucket =
            |le: String, count: usize| Part { suffix: "_bucket", label: Some(("le", le)), value: count as f64 };
        let limits = buckets.iter().zip(&grows);
        let buckets = limits.map(|(limit, grows)| {
            bucket(format!("{:?}", *limit as f64 / 1e3), grows.partition_point(|over| *over <= at))
        });
        let all = std::iter::once(bucket("+Inf".to_owned(), observed.count(at)));
        buckets.chain(all).chain(observed.totals(at)).collect()
    })
}
