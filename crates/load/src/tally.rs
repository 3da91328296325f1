//! What became of the requests to one workload.

use super::histogram::LatencyHistogram;
use nodecast_model::domain::{SimDuration, SimTime};

/// Counts and times of the requests to one workload so far, or since it was begun anew.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests answered.
    pub completed: f64,
    /// Requests whose client gave up before they were taken up.
    pub timed_out: f64,
    /// Requests refused because the queue was full or no replica was Ready.
    pub dropped: f64,
    /// Time in which more was asked than the Ready replicas could serve at once.
    pub overloaded: SimDuration,
    /// Time for which replicas wanted more CPU than their limit or their node gave, in seconds.
    pub throttled_seconds: f64,
    /// Response times of the requests answered.
    pub histogram: LatencyHistogram,
    /// Whether what was asked for was stated as CPU at any time: then there need be no requests.
    pub in_cores: bool,
    /// When load began.
    pub first: Option<SimTime>,
    /// When load was last there.
    pub last: SimTime,
}

impl Tally {
    /// Requests that got no answer.
    pub fn failed(&self) -> f64 {
        self.timed_out + self.dropped
    }
}
