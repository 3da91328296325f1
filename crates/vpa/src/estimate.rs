//! From a history to a target and its bounds.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/logic`: `recommender.go`, `estimator.go`.

use super::aggregation::Aggregation;
use super::amount::{amount, power, scaled};
use super::histogram::{Histogram, HistogramResource};
use super::settings::{Percentiles, RecommenderSettings};
use nodecast_model::domain::vertical::ContainerRecommendation;
use nodecast_model::domain::{ResourceName, SimDuration, SimTime, Symbol};

/// By this the lower bound is the less, and to this power, the less there is to go by.
const LOWER: (f64, i32) = (0.001, -2);
/// The same of the upper bound.
const UPPER: (f64, i32) = (1.0, 1);
const MEBIBYTE: f64 = 1024.0 * 1024.0;
const MINUTE: f64 = 60_000_000.0;

/// What the use of a resource comes to with the margin, before the length of its history counts.
struct Base {
    target: i64,
    lower: i64,
    upper: i64,
}

/// From when to when a history reaches, and how many CPU samples it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Extent {
    /// When the first CPU sample was taken.
    pub first: Option<SimTime>,
    /// When the last one was.
    pub last: Option<SimTime>,
    /// How many there were.
    pub samples: u64,
}

impl Base {
    /// What a histogram comes to.
    fn new(settings: &RecommenderSettings, counted: HistogramResource, histogram: &Histogram) -> Self {
        let percentiles: Percentiles = match counted {
            HistogramResource::Cores => settings.cpu,
            HistogramResource::Bytes => settings.memory,
        };
        let with_margin = |part: f64| {
            let found = histogram.percentile(part);
            let base = match counted {
                HistogramResource::Cores => amount(found * 1000.0),
                HistogramResource::Bytes => amount(found),
            };
            base.saturating_add(scaled(base, settings.margin))
        };
        Self {
            target: with_margin(percentiles.target),
            lower: with_margin(percentiles.lower),
            upper: with_margin(percentiles.upper),
        }
    }

    /// A target and its bounds: no less than the least that there is.
    fn estimate(&self, confidence: f64, least: i64) -> [i64; 3] {
        let factor = |(weight, exponent): (f64, i32)| power(1.0 + weight / confidence, exponent);
        [
            self.target.max(least),
            scaled(self.lower, factor(LOWER)).max(least),
            scaled(self.upper, factor(UPPER)).max(least),
        ]
    }
}

/// What is recommended for one of so many containers of a pod that share the least that a pod is recommended.
pub(super) fn estimate(
    settings: &RecommenderSettings,
    container: Symbol,
    history: &Aggregation,
    containers: usize,
) -> ContainerRecommendation {
    let (share, extent) = (1.0 / containers as f64, history.extent);
    let cpu = Base::new(settings, HistogramResource::Cores, &history.cpu).estimate(
        extent.confidence(settings.cpu_confidence_interval),
        scaled(amount(settings.pod_minimum_milli), share),
    );
    let memory = Base::new(settings, HistogramResource::Bytes, &history.memory).estimate(
        extent.confidence(settings.memory_confidence_interval),
        scaled(amount(settings.pod_minimum_mebibytes * MEBIBYTE), share),
    );
    let mut recommended = ContainerRecommendation::for_container(container);
    for (name, [target, lower, upper]) in [(ResourceName::CPU, cpu), (ResourceName::MEMORY, memory)] {
        recommended.target.set(name, target);
        recommended.lower_bound.set(name, lower);
        recommended.upper_bound.set(name, upper);
    }
    recommended
}

impl Extent {
    /// That of two histories together.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            first: [self.first, other.first].into_iter().flatten().min(),
            last: self.last.max(other.last),
            samples: self.samples + other.samples,
        }
    }

    /// How many days, or intervals, a history is worth: those that it spans, or those that its CPU samples would fill at one a minute.
    fn confidence(self, interval: SimDuration) -> f64 {
        let interval = interval.as_micros() as f64;
        let span = self.first.zip(self.last).map_or(SimDuration::ZERO, |(first, last)| last - first);
        let (lived, sampled) = (span.as_micros() as f64 / interval, self.samples as f64 / (interval / MINUTE));
        lived.min(sampled)
    }
}
