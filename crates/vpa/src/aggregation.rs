//! The history that all containers share whose namespace, name and labels of the pod are the same: the replicas of one revision.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/model/aggregate_container_state.go`.

use super::estimate::Extent;
use super::histogram::{Histogram, HistogramResource};
use super::settings::RecommenderSettings;
use nodecast_model::domain::{SimDuration, SimTime};

/// What a CPU sample weighs at least, and from 1.4 on always.
const CPU_WEIGHT: f64 = 0.1;
/// What a peak of memory weighs.
const MEMORY_WEIGHT: f64 = 1.0;

/// A history.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Aggregation {
    /// Use of CPU, in cores.
    pub cpu: Histogram,
    /// Peaks of memory, in bytes.
    pub memory: Histogram,
    /// From when to when it reaches.
    pub extent: Extent,
    /// When it began.
    pub created: SimTime,
}

impl Aggregation {
    /// An empty one.
    pub(super) fn new(settings: &RecommenderSettings, now: SimTime) -> Self {
        Self {
            cpu: Histogram::new(HistogramResource::Cores, settings.half_life(HistogramResource::Cores)),
            memory: Histogram::new(HistogramResource::Bytes, settings.half_life(HistogramResource::Bytes)),
            extent: Extent::default(),
            created: now,
        }
    }

    /// Adds a CPU sample; the request is that of its container.
    pub(super) fn add_cpu(&mut self, settings: &RecommenderSettings, at: SimTime, milli: i64, request_milli: i64) {
        let cores = |milli: i64| milli as f64 / 1000.0;
        let by_request = settings.behaviour.weighs_cpu_by_request;
        let weight = if by_request { cores(request_milli).max(CPU_WEIGHT) } else { CPU_WEIGHT };
        self.cpu.add(cores(milli), weight, at);
        self.extent = self.extent.with(Extent { first: Some(at), last: Some(at), samples: 1 });
    }

    /// Adds the peak of a window that ends at an instant.
    pub(super) fn add_peak(&mut self, window_end: SimTime, bytes: i64) {
        self.memory.add(bytes as f64, MEMORY_WEIGHT, window_end);
    }

    /// Takes such a peak back.
    pub(super) fn subtract_peak(&mut self, window_end: SimTime, bytes: i64) {
        self.memory.subtract(bytes as f64, MEMORY_WEIGHT, window_end);
    }

    /// Adds what another holds.
    pub(super) fn merge(&mut self, other: &mut Self) {
        self.cpu.merge(&mut other.cpu);
        self.memory.merge(&mut other.memory);
        self.extent = self.extent.with(other.extent);
    }

    /// Whether it tells nothing and belongs to nobody, or tells only of what is too long ago.
    pub(super) fn is_forgotten(&self, now: SimTime, in_use: bool, history: SimDuration) -> bool {
        let Extent { last, samples, .. } = self.extent;
        let latest = if samples == 0 { self.created } else { last.unwrap_or(self.created) };
        (samples == 0 && !in_use) || now - latest >= history
    }
}
