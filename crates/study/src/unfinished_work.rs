//! Work that one of two leaves undone and the other does: then their costs say nothing against each other.

use super::statistics::Estimate;

/// A figure of work left undone.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The figure's name.
    pub figure: &'static str,
    /// A smaller difference leaves costs comparable.
    least: f64,
}

/// What can be left undone, what is to be named first at the front: pods without a node at the end of the run (less than
/// one of them, on average, only waited when the run ended), and the share of requests that got no answer, of messages that nobody took, and of
/// Jobs that were due and not done.
pub const MEASURES: [Measure; 4] = [
    Measure { figure: "pods_pending", least: 1.0 },
    Measure { figure: "requests_lost", least: 0.01 },
    Measure { figure: "messages_undone", least: 0.01 },
    Measure { figure: "jobs_undone", least: 0.01 },
];

impl Measure {
    /// Whether one leaves clearly more undone (`true`), or clearly less (`false`), than what it is held against, by the
    /// `difference` of this figure; `None` if neither is clear. A single replication is taken at its word.
    pub fn more(&self, difference: &Estimate) -> Option<bool> {
        (difference.is_off_zero() && difference.mean.abs() >= self.least).then_some(difference.mean > 0.0)
    }
}
