//! The limits that a scenario states for its answer.

use std::fmt;

use crate::domain::workload::ObjectName;
use crate::domain::{Money, Quantity, SimDuration};

/// Limits that the answer is held against.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Objectives {
    /// Replicas wanted and not Ready, times minutes.
    pub unavailable_pod_minutes: Option<Quantity>,
    /// Time for which a workload wants replicas and has none Ready.
    pub at_zero: Option<SimDuration>,
    /// Time for which an autoscaler of replicas stands at its maximum.
    pub at_max: Option<SimDuration>,
    /// 95th percentile of the time that pods wait for a node.
    pub pending_p95: Option<SimDuration>,
    /// 99th percentile of the time that pods wait for a node.
    pub pending_p99: Option<SimDuration>,
    /// The same of some of the pods.
    pub waits: Vec<WaitLimit>,
    /// 99th percentile of the response time.
    pub request_p99: Option<SimDuration>,
    /// Cost of the whole run, in the region's currency.
    pub cost: Option<Money>,
}

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
        let key = WaitMeasure::ALL.iter().find(|(_, own)| *own == self.measure).map_or("", |(key, _)| key);
        match self.whose {
            Waiting::Workload(name) => write!(f, "{key} wait of {name}"),
            Waiting::Priority(priority) => write!(f, "{key} wait of priority {priority}"),
        }
    }
}
