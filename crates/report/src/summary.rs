//! The summary of one run: what `summary.json` holds, and what the other reports print.
//!
//! Field names are the keys of `summary.json` and carry their unit; they change only with [`SCHEMA_VERSION`]. Amounts of
//! money are in the currency that `about.currency` names. `docs/outputs.md` explains each key.

mod about;
mod allocation;
pub mod availability;
pub mod churn;
mod controllers;
mod cost;
mod cost_groups;
mod jobs;
pub mod lives;
pub(crate) mod made_anew;
mod objectives;
mod reached_limits;
pub mod service;
mod upgrades;
mod vertical;
pub mod waits;

use crate::format;
use crate::percentile::SortedSpans;
pub use about::{AboutSummary, InputSummary, VersionsSummary};
pub use availability::{AutoscalerAtMax, AvailabilitySummary, WorkloadAvailability};
pub use churn::{BlockedFigures, ChurnSummary, CycleFigures, DecisionFigures, DriftedFigures, ReplacementFigures};
pub use controllers::{ControlPlaneFigures, ControllerSummary, Limited, LoopFigures};
pub use cost_groups::{CostGroup, LabelCost, RequestUse};
pub use jobs::JobFigures;
use nodecast_settings::Caveats;
use nodecast_world::Outcome;
pub use objectives::ObjectiveResult;
pub use reached_limits::LimitFigures;
use serde::{Deserialize, Serialize};
pub use upgrades::{MissingFigures, UpgradeFigures};
pub use vertical::{ContainerFigures, Sizes, VerticalFigures};
pub use waits::{PriorityWaits, WaitFigures, WorkloadWaits};

/// The version of the layout of `summary.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// The name that `summary.json` carries, by which an earlier report is known as ours.
pub const PROGRAM: &str = "nodecast";

/// Hours in a month, for every monthly figure.
pub const HOURS_PER_MONTH: f64 = 730.0;

/// Seconds of an hour.
const HOUR_SECONDS: f64 = 3_600.0;

/// The summary of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// The version of this layout.
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: String,
    /// Its version.
    pub program_version: String,
    /// What was simulated.
    pub about: AboutSummary,
    /// How many of the replicas wanted served.
    #[serde(default)]
    pub availability: AvailabilitySummary,
    /// What it cost.
    pub cost: CostSummary,
    /// How long pods waited.
    pub pods: PodSummary,
    /// How many nodes it took.
    pub nodes: NodeSummary,
    /// Limits on nodes that were reached; absent where none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<LimitFigures>,
    /// How full the nodes were.
    pub utilisation: Utilisation,
    /// What the coming and going of nodes cost.
    pub churn: ChurnSummary,
    /// Upgrades of nodes: updates and instance refreshes of node groups, and drift of NodePools; absent where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_upgrades: Vec<UpgradeFigures>,
    /// How requests fared, one entry for each workload with load.
    pub requests: Vec<RequestFigures>,
    /// Workloads whose load is CPU in cores: their requests and response times are not known; absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads_in_cores: Vec<String>,
    /// How the messages of each queue fared.
    pub queues: Vec<QueueFigures>,
    /// What became of Jobs and of what CronJobs were to start; absent where none was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobFigures>,
    /// How replica counts moved.
    pub scaling: ScalingSummary,
    /// What each VerticalPodAutoscaler recommended and did; absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vertical: Vec<VerticalFigures>,
    /// What controllers took for their decisions; absent where they take no time.
    #[serde(default, skip_serializing_if = "ControllerSummary::is_empty")]
    pub controllers: ControllerSummary,
    /// The scenario's objectives against what happened.
    pub objectives: Vec<ObjectiveResult>,
    /// What the model left out or assumed and could change the answer.
    #[serde(flatten)]
    pub warnings: Caveats,
    /// A hash over every event, 16 hexadecimal digits; equal runs have equal hashes.
    pub event_hash: String,
}

/// What the run cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CostSummary {
    /// The whole bill.
    pub total: f64,
    /// The bill divided by the simulated hours; `null` for a run without duration.
    pub per_hour: Option<f64>,
    /// `per_hour` times 730 hours.
    pub per_month: Option<f64>,
    /// Instances, volumes, control plane: sums to `total`.
    pub by_item: Vec<Part>,
    /// What nodes cost (instances and their volumes); the next four sum to it.
    pub nodes: f64,
    /// The same divided by the simulated hours; `null` for a run without duration.
    #[serde(default)]
    pub nodes_per_hour: Option<f64>,
    /// Node cost by Spot and On-Demand.
    pub by_capacity_type: Vec<Part>,
    /// Node cost by instance family.
    pub by_family: Vec<Part>,
    /// Node cost by zone.
    pub by_zone: Vec<Part>,
    /// Node cost by NodePool or node group.
    pub by_node_origin: Vec<Part>,
    /// The whole bill by workload: the used part of each node shared out by what pods requested; what nobody
    /// requested is `(idle)`, what has no node is `(cluster)`.
    pub by_workload: Vec<Part>,
    /// The whole bill by namespace; absent with one namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_namespace: Vec<CostGroup>,
    /// The whole bill by each label of the scenario's `output.cost_by`; absent without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_label: Vec<LabelCost>,
    /// The whole bill by the quality of its prices.
    pub by_price_quality: Vec<Part>,
    /// What the bill would be if Spot prices were off; `null` without Spot at a price that may be.
    #[serde(default)]
    pub spot_range: Option<SpotRangeSummary>,
    /// The total without load balancers, gateways, public addresses and transfer; absent where none is in the bill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_network: Option<f64>,
    /// Usual lines of an EKS bill that are neither simulated nor stated, so that they are not in the total.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_simulated: Vec<String>,
    /// The part of the bill at prices that were worked out or assumed, neither published nor observed.
    pub unconfirmed: Share,
    /// The part of the bill that paid for capacity nobody requested, `unused` included.
    pub idle: Share,
    /// The part of the bill that paid for capacity that was bought ahead and that no instance used.
    #[serde(default)]
    pub unused: Share,
    /// Net compute cost of nodes by phase of their lives.
    pub phases: PhaseCost,
}

/// The whole bill at the tenth and the ninetieth percentile of the error of Spot prices, all pools erring the same way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpotRangeSummary {
    /// What Spot instances at prices that may be off cost.
    pub spot: f64,
    /// The whole bill at the tenth percentile.
    pub total_low: f64,
    /// The whole bill at the ninetieth percentile.
    pub total_high: f64,
}

/// A named part of the bill.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// What it is for.
    pub name: String,
    /// What it cost.
    pub amount: f64,
    /// Its share of the whole bill, 0 to 1; in `by_item`, of all that is charged before anything is taken back.
    pub share: f64,
}

/// A part of the bill.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Share {
    /// What it cost.
    pub amount: f64,
    /// Its share of the whole bill, 0 to 1.
    pub share: f64,
}

/// Instance cost by phase of a node's life.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseCost {
    /// From running to Ready: all of it for a node that was never Ready.
    pub starting: f64,
    /// Ready and not on its way out.
    pub useful: f64,
    /// From the decision to remove the node to the end of billing.
    pub draining: f64,
}

/// How long pods waited. Pods of DaemonSets are left out: they come with their node and do not wait for one. So are
/// placeholders, whose waiting is nobody's: they have figures of their own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PodSummary {
    /// Pods created.
    pub created: u64,
    /// Pods of DaemonSets created, in none of the other figures.
    pub daemon_pods_created: u64,
    /// Pods without a node at the end that were still wanted.
    pub pending_at_end: u64,
    /// Pods deleted before they had a node.
    pub never_scheduled: u64,
    /// Pods evicted.
    pub evicted: u64,
    /// Times that the containers of a pod were killed, by a probe or for want of memory, and started again.
    #[serde(default)]
    pub restarts: u64,
    /// Pods that had no node a second after they were made.
    #[serde(default)]
    pub waited: u64,
    /// Creation to binding. A pod that never had a node counts with the time it waited until it was deleted or the run
    /// ended.
    pub wait_for_node: Option<Distribution>,
    /// Creation to Ready, of pods that got there.
    pub created_to_ready: Option<Distribution>,
    /// Waits by workload; a workload some of whose pods are placeholders has an entry for these.
    #[serde(default)]
    pub by_workload: Vec<WorkloadWaits>,
    /// Waits by priority, the highest first.
    #[serde(default)]
    pub by_priority: Vec<PriorityWaits>,
    /// Pods that hold room for others and do nothing themselves, in none of the other figures but `by_workload`.
    #[serde(default)]
    pub placeholders: PlaceholderSummary,
}

/// Pods that hold room for others and do nothing themselves.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlaceholderSummary {
    /// Pods created.
    pub created: u64,
    /// Those without a node at the end that were still wanted.
    pub pending_at_end: u64,
    /// Those evicted, mostly to make room.
    pub evicted: u64,
    /// How long they waited for a node.
    #[serde(flatten)]
    pub waits: WaitFigures,
}

/// Spans of time in figures. Percentiles are by the nearest-rank rule.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Distribution {
    /// How many spans.
    pub count: u64,
    /// Mean.
    pub mean_seconds: f64,
    /// Median.
    pub p50_seconds: f64,
    /// 95th percentile.
    pub p95_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// Longest.
    pub max_seconds: f64,
}

impl Distribution {
    /// The figures of `spans`, `None` without spans.
    pub fn from_spans(spans: &SortedSpans) -> Option<Self> {
        let at = |percent| spans.percentile(percent).map(|span| span.as_secs_f64());
        Some(Self {
            count: spans.len() as u64,
            mean_seconds: rounded(spans.mean_seconds()?, 6),
            p50_seconds: at(50)?,
            p95_seconds: at(95)?,
            p99_seconds: at(99)?,
            max_seconds: spans.max()?.as_secs_f64(),
        })
    }
}

/// How many nodes it took.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeSummary {
    /// Most nodes Ready at once.
    pub max_ready: u64,
    /// Mean number of Ready nodes over the run; `null` for a run without duration.
    pub mean_ready: Option<f64>,
    /// Nodes that were Ready when the run began.
    pub at_start: u64,
    /// Nodes Ready at the end.
    pub at_end: u64,
    /// Instances launched during the run.
    pub launches: u64,
    /// Launches that failed: EC2 refused them, or Karpenter without a call.
    pub failed_launches: u64,
    /// Failed launches for which Karpenter did not call EC2, since it knew no available offering.
    #[serde(default, skip_serializing_if = "lives::is_zero")]
    pub failed_without_call: u64,
    /// Spot instances that EC2 gave notice to.
    pub interruptions: u64,
    /// Spot instances that EC2 took when the notice was over.
    pub reclaimed: u64,
    /// Warnings that a Spot instance is at risk.
    pub rebalance_recommendations: u64,
    /// Requests for On-Demand although Spot was allowed: no Spot pool was left.
    pub on_demand_fallbacks: u64,
    /// Launch calls that EC2 refused to take.
    pub calls_throttled: u64,
    /// Changes of the price of a Spot instance while it ran.
    pub spot_price_changes: u64,
    /// Nodes that ended, by reason; those that still drain at the end are not among them.
    pub terminations: Vec<Count>,
    /// Nodes that are to go and still have pods at the end that have to leave; left out where there are none.
    #[serde(default, skip_serializing_if = "lives::is_zero")]
    pub draining_at_end: u64,
    /// EC2's answer to Ready, of nodes launched during the run that got there.
    pub launch_to_ready: Option<Distribution>,
    /// Mean time from running to the end of billing, of nodes that ended.
    pub mean_lifetime_seconds: Option<f64>,
}

/// How often something happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Count {
    /// What.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// Requested over allocatable on Ready nodes, weighted by time, 0 to 1; `null` when no node was ever Ready. Pods of
/// DaemonSets count.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Utilisation {
    /// CPU.
    pub cpu_requested: Option<f64>,
    /// Memory.
    pub memory_requested: Option<f64>,
}

/// How the requests to one workload fared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RequestFigures {
    /// Namespace and name.
    pub workload: String,
    /// Requests completed.
    pub completed: f64,
    /// Requests that still waited for an answer at the end.
    pub unanswered: f64,
    /// When load began, from the start of the run.
    pub first_seconds: f64,
    /// When load ended, from the start of the run.
    pub last_seconds: f64,
    /// Mean response time of completed requests; `None` without any, like the three that follow.
    pub mean_seconds: Option<f64>,
    /// Median response time.
    pub p50_seconds: Option<f64>,
    /// 95th percentile.
    pub p95_seconds: Option<f64>,
    /// 99th percentile.
    pub p99_seconds: Option<f64>,
    /// Requests whose client gave up before they were taken up.
    pub timed_out: f64,
    /// Requests refused, because the queue was full or no replica was Ready.
    pub dropped: f64,
    /// Time for which replicas wanted more CPU than their limit or their node gave.
    pub throttled_seconds: f64,
    /// Time with offered load above what the ready replicas can serve.
    pub overloaded_seconds: f64,
}

impl RequestFigures {
    /// The share of its requests, 0 to 1, that got no answer; `None` if there were none.
    pub fn unanswered_share(&self) -> Option<f64> {
        let lost = self.unanswered + self.timed_out + self.dropped;
        let all = self.completed + lost;
        (all > 0.0).then(|| lost / all)
    }

    /// What became of the requests that were not answered, for people; `None` if there were none.
    pub fn failed(&self) -> Option<String> {
        let (given_up, refused) = (format::whole(self.timed_out), format::whole(self.dropped));
        (self.timed_out + self.dropped >= 0.5).then(|| format!("{given_up} timed out, {refused} rejected"))
    }
}

/// How replica counts moved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScalingSummary {
    /// How often an autoscaler changed a replica count.
    pub rescales: u64,
    /// One entry for each workload that is not a DaemonSet.
    pub workloads: Vec<WorkloadScaling>,
    /// One entry for each metric of each autoscaler of replicas.
    pub metrics: Vec<MetricFigures>,
    /// Changes of replica counts, those by hand included.
    pub changes_in_all: u64,
    /// The first changes of replica counts, at most [`CHANGES_MAX`]; `events.jsonl` has all.
    pub changes: Vec<ReplicaChangeFigures>,
}

/// Changes of replica counts that a summary holds at most.
pub const CHANGES_MAX: usize = 200;

/// What an autoscaler of replicas read of one metric, over the sampled instants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MetricFigures {
    /// Namespace and name of the HorizontalPodAutoscaler.
    pub autoscaler: String,
    /// Namespace and name of the workload that it scales.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// `percent of request`, `per pod` or `total`.
    pub unit: String,
    /// What the value is held against.
    pub target: f64,
    /// Mean of the values; `null` if it was never read.
    pub mean: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// The value at the end.
    pub last: Option<f64>,
}

/// A change of a replica count.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReplicaChangeFigures {
    /// When, from the start of the run.
    pub at_seconds: f64,
    /// Namespace and name of the workload.
    pub workload: String,
    /// By whom: the kind of the event.
    pub kind: String,
    /// Replicas before.
    pub from: u64,
    /// Replicas after.
    pub to: u64,
    /// The values that led to it, or the reason where there are none.
    pub because: String,
}

/// How the messages of one queue fared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueFigures {
    /// The queue.
    pub queue: String,
    /// `kind` of the scenario's queue.
    pub kind: String,
    /// Namespace and name of who takes its messages.
    pub workload: String,
    /// Messages that arrived, those at the start included.
    pub arrived: f64,
    /// Messages worked on to the end.
    pub processed: f64,
    /// Messages that waited at the end of the run.
    pub waiting_at_end: f64,
    /// Most messages that waited at once.
    pub most_waiting: f64,
    /// When that was, from the start of the run.
    pub most_waiting_seconds: f64,
    /// From then until nothing waited; `null` if something still does.
    pub drain_seconds: Option<f64>,
    /// Mean time that a message waited before it was worked on; `null` if none arrived.
    pub mean_wait_seconds: Option<f64>,
    /// Longest that a message waited.
    pub longest_wait_seconds: f64,
}

/// How the replica count of one workload moved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadScaling {
    /// Namespace and name.
    pub workload: String,
    /// How often an autoscaler changed its replica count.
    pub rescales: u64,
    /// Most replicas wanted at a sampled instant.
    pub max_replicas_desired: u64,
    /// Most replicas Ready at a sampled instant.
    pub max_replicas_ready: u64,
}

impl Summary {
    /// Sums up `outcome`.
    pub fn from_outcome(outcome: &Outcome) -> Self {
        let cost = cost::summary(outcome);
        let pods = lives::pods(outcome);
        let requests = service::requests(outcome);
        let availability = availability::summary(outcome);
        let objectives = objectives::judge(outcome, &cost, &pods, &requests, &availability);
        Self {
            schema_version: SCHEMA_VERSION,
            program: PROGRAM.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            about: about::summary(&outcome.about, outcome.bill.currency.code(), cost::of_assumptions(outcome)),
            availability,
            cost,
            churn: churn::summary(outcome, pods.evicted),
            node_upgrades: upgrades::summary(outcome),
            nodes: lives::nodes(outcome),
            limits_reached: reached_limits::figures(outcome),
            utilisation: lives::utilisation(outcome),
            pods,
            requests,
            loads_in_cores: outcome.objects.loads_in_cores.iter().map(ToString::to_string).collect(),
            queues: service::queues(outcome),
            jobs: jobs::figures(outcome),
            scaling: service::scaling(outcome),
            vertical: vertical::summary(outcome),
            controllers: controllers::summary(outcome),
            objectives,
            warnings: outcome.warnings.clone(),
            event_hash: format!("{:016x}", outcome.event_hash),
        }
    }

    /// A word to those whose manifests hold no DaemonSet: the nodes of a real cluster run some.
    pub fn hint_on_daemons(&self) -> Option<&'static str> {
        const HINT: &str = "No DaemonSets in this scenario. Real nodes run aws-node, kube-proxy, CSI drivers, and log shippers, which use CPU, memory, and pod slots on every node. The cost is probably too low: add their manifests.";
        (self.pods.daemon_pods_created == 0 && self.pods.created > 0).then_some(HINT)
    }

    /// `summary.json`: two spaces of indentation, a line feed at the end.
    ///
    /// # Errors
    /// If serde_json cannot write it, which no summary brings about.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// `value` without the digits beyond `decimals`, which are noise of division.
pub fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = (0..decimals).fold(1.0, |scale, _| scale * 10.0);
    libm::round(value * scale) / scale
}
