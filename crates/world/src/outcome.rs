//! What one simulation leaves behind: all that reports are made from.

use crate::cloud::Bill;
use crate::domain::workload::ObjectName;
use crate::domain::{ControlPlaneTier, NodeGroup, NodePool, SimDuration, SimTime, Symbol, Versions, WorkloadId};
use crate::record::Record;
use nodecast_settings::Caveats;
use nodecast_settings::{Calibrated, CostOf, WaitLimit};

/// The result of one run: a pure function of (scenario, policy, seed).
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was simulated.
    pub about: About,
    /// What happened.
    pub record: Record,
    /// What it cost.
    pub bill: Bill,
    /// How requests fared, one entry for each workload with load.
    pub requests: Vec<RequestSummary>,
    /// How the messages of each queue fared.
    pub queues: Vec<QueueSummary>,
    /// What was configured, as far as reports tell it.
    pub objects: Objects,
    /// What the model left out or assumed and could change the answer.
    pub warnings: Caveats,
    /// A running hash over every event; equal runs have equal hashes.
    pub event_hash: u64,
}

/// What was configured, as far as reports tell it.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Whether Karpenter adds and removes nodes.
    pub karpenter: bool,
    /// Whether the Cluster Autoscaler does.
    pub cluster_autoscaler: bool,
    /// Whether Karpenter reads notices of EC2 from a queue.
    pub interruption_queue: bool,
    /// Karpenter's NodePools, as they were at the start.
    pub node_pools: Vec<NodePool>,
    /// Node groups, as they were at the start.
    pub node_groups: Vec<NodeGroup>,
    /// HorizontalPodAutoscalers, as they were at the end.
    pub replica_autoscalers: Vec<ReplicaAutoscaler>,
    /// Workloads whose load is CPU in cores, whose requests and response times nobody knows.
    pub loads_in_cores: Vec<ObjectName>,
}

/// A HorizontalPodAutoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaAutoscaler {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it scales.
    pub workload: WorkloadId,
    /// Least replicas.
    pub min_replicas: i32,
    /// Most replicas.
    pub max_replicas: i32,
}

/// What stands behind "prices of" where no instance was launched.
pub const UNPRICED: &str = "none (no instance was launched)";

/// What was simulated.
#[derive(Clone, Debug)]
pub struct About {
    /// The scenario's name.
    pub scenario: String,
    /// The policy's name.
    pub policy: String,
    /// The autoscaler and its version, for people.
    pub autoscaler: String,
    /// The region.
    pub region: String,
    /// The zones in use.
    pub zones: Vec<Symbol>,
    /// Calendar time of the start, RFC 3339.
    pub start: String,
    /// Simulated time.
    pub duration: SimDuration,
    /// For so long from the start figures of waiting, churn and response times do not count.
    pub warm_up: SimDuration,
    /// The seed.
    pub seed: u64,
    /// Releases reproduced.
    pub versions: Versions,
    /// Tier of the control plane.
    pub control_plane_tier: ControlPlaneTier,
    /// Input files with their SHA-256, in order of reading.
    pub inputs: Vec<InputHash>,
    /// Date of the prices of what was launched; [`UNPRICED`] if nothing was.
    pub price_date: String,
    /// What the scenario's author assumed, for the report.
    pub assumptions: Vec<String>,
    /// Of the first of these, in order, the part of the bill that rests on each; `None` where nobody says.
    pub costs_of_assumptions: Vec<Option<CostOf>>,
    /// Keys of pod labels by which the report sums cost, in their order.
    pub cost_by: Vec<Symbol>,
    /// What a calibration gave; `None` without one.
    pub calibration: Option<Calibrated>,
    /// Limits that the answer is held against.
    pub objectives: Objectives,
}

impl About {
    /// From when on waits, churn and response times count.
    pub fn counts_from(&self) -> SimTime {
        SimTime::ZERO + self.warm_up
    }
}

/// The limits that a scenario states for its answer.
#[derive(Clone, Debug, Default)]
pub struct Objectives {
    /// Replicas wanted and not Ready, times minutes.
    pub unavailable_pod_minutes: Option<f64>,
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
    pub cost: Option<f64>,
}

/// An input file.
#[derive(Clone, Debug)]
pub struct InputHash {
    /// Path as the scenario names it.
    pub path: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Response times in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResponseFigures {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// How the requests to one workload fared. Response times are those of completed requests.
#[derive(Clone, Debug)]
pub struct RequestSummary {
    /// The workload.
    pub workload: WorkloadId,
    /// Requests completed.
    pub completed: f64,
    /// Requests whose client gave up before they were taken up.
    pub timed_out: f64,
    /// Requests refused, because the queue was full or no replica was Ready.
    pub dropped: f64,
    /// Requests that still waited for an answer at the end.
    pub unanswered: f64,
    /// When load began.
    pub first: SimTime,
    /// When load ended, or the run did.
    pub last: SimTime,
    /// Mean, median, 95th and 99th percentile of the response time in seconds; `None` where nothing was answered.
    pub response: Option<ResponseFigures>,
    /// Time for which replicas wanted more CPU than their limit or their node gave, in seconds.
    pub throttled_seconds: f64,
    /// Time with offered load above what the ready replicas can serve.
    pub overloaded: SimDuration,
}

/// How the messages of one queue fared.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueSummary {
    /// The queue.
    pub name: String,
    /// `kind` of the scenario's queue.
    pub kind: &'static str,
    /// Who takes its messages.
    pub workload: ObjectName,
    /// Messages that arrived, those at the start included.
    pub arrived: f64,
    /// Messages worked on to the end.
    pub processed: f64,
    /// Messages that waited at the end of the run.
    pub waiting_at_end: f64,
    /// Most messages that waited at once.
    pub most_waiting: f64,
    /// When that was.
    pub most_waiting_at: SimTime,
    /// When nothing waited for the first time after that.
    pub drained: Option<SimTime>,
    /// Mean time that a message waited before it was worked on, in seconds.
    pub mean_wait_seconds: Option<f64>,
    /// Longest that a message waited.
    pub longest_wait: SimDuration,
}
