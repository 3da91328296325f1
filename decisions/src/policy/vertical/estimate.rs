//! From a history to a target and its bounds.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/logic`: `recommender.go`, `estimator.go`.

use super::aggregation::Aggregation;
use super::amount::{amount, power, scaled};
use super::settings::{Percentiles, RecommenderSettings};
use crate::domain::vertical::ContainerRecommendation;
use crate::domain::{ResourceName, SimDuration, Symbol};

/// By this the lower bound is the less, and to this power, the less there is to go by.
const LOWER: (f64, i32) = (0.001, -2);
/// The same of the upper bound.
const UPPER: (f64, i32) = (1.0, 1);
const MEBIBYTE: f64 = 1024.0 * 1024.0;
const MINUTE: f64 = 60_000_000.0;

/// A target with its bounds.
struct Estimate {
    target: i64,
    lower: i64,
    upper: i64,
}

/// What a history recommends for one of so many containers of a pod that share the least that a pod is recommended.
pub(super) fn estimate(
    settings: &RecommenderSettings,
    container: Symbol,
    history: &Aggregation,
    containers: usize,
) -> ContainerRecommendation {
    let share = 1.0 / containers as f64;
    let cpu = Estimate::of(
        settings.margin,
        |part| amount(history.cpu.percentile(part) * 1000.0),
        settings.cpu,
        confidence(history, settings.cpu_confidence_interval),
        scaled(amount(settings.pod_minimum_milli), share),
    );
    let memory = Estimate::of(
        settings.margin,
        |part| amount(history.memory.percentile(part)),
        settings.memory,
        confidence(history, settings.memory_confidence_interval),
        scaled(amount(settings.pod_minimum_mebibytes * MEBIBYTE), share),
    );
    let mut recommended = ContainerRecommendation::of(container);
    for (name, estimate) in [(ResourceName::CPU, cpu), (ResourceName::MEMORY, memory)] {
        recommended.target.set(name, estimate.target);
        recommended.lower_bound.set(name, estimate.lower);
        recommended.upper_bound.set(name, estimate.upper);
    }
    recommended
}

/// How many days, or intervals, a history is worth: those that it spans, or those that its CPU samples would fill at one a minute.
fn confidence(history: &Aggregation, interval: SimDuration) -> f64 {
    let interval = interval.as_micros() as f64;
    let span = history.first.zip(history.last).map_or(SimDuration::ZERO, |(first, last)| last - first);
    let (lived, sampled) = (span.as_micros() as f64 / interval, history.samples as f64 / (interval / MINUTE));
    lived.min(sampled)
}

impl Estimate {
    fn of(margin: f64, percentile: impl Fn(f64) -> i64, percentiles: Percentiles, confidence: f64, least: i64) -> Self {
        let with_margin = |part: f64| {
            let base = percentile(part);
            base.saturating_add(scaled(base, margin))
        };
        let factor = |(weight, exponent): (f64, i32)| power(1.0 + weight / confidence, exponent);
        Self {
            target: with_margin(percentiles.target).max(least),
            lower: scaled(with_margin(percentiles.lower), factor(LOWER)).max(least),
            upper: scaled(with_margin(percentiles.upper), factor(UPPER)).max(least),
        }
    }
}
