//! The limits that a scenario states for its answer.

use std::fmt;

use nodecast_model::domain::SimDuration;
use nodecast_model::domain::workload::ObjectName;

/// A limit on the time that some pods wait for a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitLimit {
    /// Whose waits.
    pub whose: Waiting,
    /// Which of their figures.
    pub measure: WaitMeasure,
    /// The limit.
    pub limit: SimDuration,
}

/// Pods whose waits are limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// Those of a workload.
    Workload(ObjectName),
    /// Those of a priority, placeholders left out.
    Priority(i32),
}

/// A figure of spans of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitMeasure {
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The longest.
    Longest,
}

impl WaitMeasure {
    /// Every measure with its key.
    pub const ALL: [(&'static str, Self); 5] =
        [("mean", Self::Mean), ("p50", Self::P50), ("p95", Self::P95), ("p99", Self::P99), ("longest", Self::Longest)];
}

impl fmt::Display for WaitLimit {
    /// `p95 wait of shop/web`, `mean wait of priority 1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = WaitMeasure::ALL.iter().find(|(_, key)| *key == self.measure).map_or("", |(key, _)| key);
        match self.whose {
            Waiting::Workload(name) => write!(f, "{key} wait of {name}"),
            Waiting::Priority(priority) => write!(f, "{key} wait of priority {priority}"),
        }
    }
}
