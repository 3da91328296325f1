//! From a history to a target and its bounds.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/logic`: `recommender.go`, `estimator.go`.

use super::amount::{amount, power, scaled};
use super::histogram::{Counted, Filled, Histogram};
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
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Base {
    target: i64,
    lower: i64,
    upper: i64,
    /// What the histogram had been through.
    filled: Filled,
    /// While less than so much weight is added nothing here can change.
    lasts: f64,
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

/// The bases of both resources.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Bases {
    /// Of CPU.
    pub cpu: Base,
    /// Of memory.
    pub memory: Base,
}

impl Bases {
    /// That of a resource.
    pub(super) fn of(&self, counted: Counted) -> &Base {
        match counted {
            Counted::Cores => &self.cpu,
            Counted::Bytes => &self.memory,
        }
    }

    /// Whether these others come to the same targets and bounds for any length of history.
    pub(super) fn says_what(&self, others: &Self) -> bool {
        self.cpu.amounts() == others.cpu.amounts() && self.memory.amounts() == others.memory.amounts()
    }
}

impl Base {
    /// What a histogram comes to; it is gone through three times.
    pub(super) fn of(
        settings: &RecommenderSettings,
        counted: Counted,
        (histogram, filled): (&Histogram, Filled),
    ) -> Self {
        let percentiles: Percentiles = match counted {
            Counted::Cores => settings.cpu,
            Counted::Bytes => settings.memory,
        };
        let mut lasts = f64::INFINITY;
        let mut with_margin = |part: f64| {
            let found = histogram.percentile(part);
            // What is not a number lasts for nothing.
            lasts = if found.lasts < lasts || found.lasts.is_nan() { found.lasts } else { lasts };
            let base = match counted {
                Counted::Cores => amount(found.value * 1000.0),
                Counted::Bytes => amount(found.value),
            };
            base.saturating_add(scaled(base, settings.margin))
        };
        let (target, lower, upper) =
            (with_margin(percentiles.target), with_margin(percentiles.lower), with_margin(percentiles.upper));
        Self { target, lower, upper, filled, lasts }
    }

    fn amounts(&self) -> [i64; 3] {
        [self.target, self.lower, self.upper]
    }

    /// Whether it is still what comes out of histograms that have been through so much.
    pub(super) fn holds(&self, now: Filled) -> bool {
        self.filled == now || (self.filled.rearranged == now.rearranged && now.total - self.filled.total < self.lasts)
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

/// What is recommended for one of so many containers of a pod that share the least that a pod is recommended. Without an extent it is
/// as if there were an endless history: no history that does end has a higher lower or a lower upper bound.
pub(super) fn estimate(
    settings: &RecommenderSettings,
    container: Symbol,
    (bases, extent): (&Bases, Option<Extent>),
    containers: usize,
) -> ContainerRecommendation {
    let share = 1.0 / containers as f64;
    let confidence = |interval| extent.map_or(f64::INFINITY, |extent| extent.confidence(interval));
    let cpu = bases
        .cpu
        .estimate(confidence(settings.cpu_confidence_interval), scaled(amount(settings.pod_minimum_milli), share));
    let memory = bases.memory.estimate(
        confidence(settings.memory_confidence_interval),
        scaled(amount(settings.pod_minimum_mebibytes * MEBIBYTE), share),
    );
    let mut recommended = ContainerRecommendation::of(container);
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
