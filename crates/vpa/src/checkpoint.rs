//! What the recommender keeps over a restart, for each VerticalPodAutoscaler and container.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/checkpoint`, `VerticalPodAutoscalerCheckpoint`.

use super::aggregation::Aggregation;
use super::estimate::Extent;
use super::histogram::{Histogram, HistogramResource};
use super::settings::RecommenderSettings;
use nodecast_model::domain::{SimTime, Symbol};

/// The history of a container.
#[derive(Clone, PartialEq, Debug)]
pub struct Checkpoint {
    /// Name of the container.
    pub container: Symbol,
    /// Use of CPU.
    pub cpu: HistogramCheckpoint,
    /// Peaks of memory.
    pub memory: HistogramCheckpoint,
    /// When the first CPU sample was taken.
    pub first_sample: Option<SimTime>,
    /// When the last one was.
    pub last_sample: Option<SimTime>,
    /// How many there were.
    pub samples: u64,
}

/// A histogram, its buckets as whole numbers of which the largest is 10,000.
#[derive(Clone, PartialEq, Debug)]
pub struct HistogramCheckpoint {
    /// The instant at which a sample of weight one weighs one.
    pub reference: SimTime,
    /// What all samples weigh.
    pub total: f64,
    /// Buckets that are not empty with their weight, in order.
    pub weights: Vec<(usize, u32)>,
}

impl Checkpoint {
    pub(super) fn new(container: Symbol, aggregation: &Aggregation) -> Self {
        Self {
            container,
            cpu: aggregation.cpu.checkpoint(),
            memory: aggregation.memory.checkpoint(),
            first_sample: aggregation.extent.first,
            last_sample: aggregation.extent.last,
            samples: aggregation.extent.samples,
        }
    }

    pub(super) fn restored(&self, settings: &RecommenderSettings) -> Aggregation {
        Aggregation {
            cpu: Histogram::restored(HistogramResource::Cores, settings.half_life(HistogramResource::Cores), &self.cpu),
            memory: Histogram::restored(
                HistogramResource::Bytes,
                settings.half_life(HistogramResource::Bytes),
                &self.memory,
            ),
            extent: Extent { first: self.first_sample, last: self.last_sample, samples: self.samples },
            created: self.last_sample.unwrap_or_default(),
        }
    }
}
