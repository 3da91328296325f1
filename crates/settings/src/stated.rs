//! What the sections of a scenario file state, once they are read.
//!
//! A key's meaning, its default and its bounds stand in the section that reads it (`nodecast-scenario`, `schema`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodecast_ec2::BillItem;
use nodecast_model::domain::external_metrics::ExternalMetric;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Money, Quantity, SimDuration, Symbol, TaintEffect};
use nodecast_single_pass::Inventory;

use crate::lints::LintId;
use crate::{
    AdapterRule, Assumption, Calibrated, Ec2Settings, InputFile, LoadSpec, Outage, PodTrace, PolicyVariant, QueueSpec,
    SeriesSpec, TimedAction, UsageSpec, WaitLimit,
};

/// A scenario: a cluster, what happens to it, and the policies to try.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Where the cluster runs.
    pub region: Symbol,
    /// The calendar time at which the run begins.
    pub start: Timestamp,
    /// How long to simulate.
    pub duration: SimDuration,
    /// For so long from the start waits, churn and response times do not count.
    pub warm_up: SimDuration,
    /// The seed of every random draw, and the first of those that a comparison uses.
    pub seed: u64,
    /// With how many successive seeds experiments simulate each policy.
    pub replications: u32,
    /// The nodes and pods with which the run begins; `None` for an empty cluster.
    pub initial: Option<Arc<Inventory>>,
    /// Requests to workloads.
    pub load: Vec<LoadSpec>,
    /// What pods use in addition to requests.
    pub usage: Vec<UsageSpec>,
    /// Prometheus and the metrics adapter; `None` if there is none.
    pub prometheus: Option<PrometheusSettings>,
    /// metrics-server.
    pub metrics_server: MetricsServer,
    /// When the loops of controllers first come round.
    pub phases: Phases,
    /// Queues of messages.
    pub queues: Vec<QueueSpec>,
    /// Values that are stated for scalers, metrics and resources.
    pub external_metrics: Vec<ExternalMetric>,
    /// The pods of a recorded cluster.
    pub pods: Option<Arc<PodTrace>>,
    /// How long things take that no manifest tells, by workload.
    pub times: BTreeMap<ObjectName, WorkloadTimes>,
    /// Sizes of container images, and how fast nodes pull them.
    pub images: ImageSettings,
    /// What is special about the simulated EC2.
    pub ec2: Ec2Settings,
    /// Limits of the answer.
    pub objectives: Objectives,
    /// Where the report goes.
    pub output: OutputSettings,
    /// Sentences of the author on what is made up or left out.
    pub assumptions: Vec<Assumption>,
    /// Kinds of warnings that are not shown.
    pub allow: Vec<LintId>,
    /// Those of them that applied as the files were read.
    pub silenced: BTreeSet<LintId>,
    /// Zones in use, in order of name.
    pub zones: Vec<Symbol>,
    /// What is known of startup taints.
    pub startup_taints: Vec<StartupTaint>,
    /// Longest delay before a container restarts, where the kubelets have such a setting.
    pub max_container_restart_period: Option<SimDuration>,
    /// What is done by hand, in order of time.
    pub timeline: Vec<TimedAction>,
    /// The policies, at least one; the first is what `run` simulates.
    pub policies: Vec<PolicyVariant>,
    /// What a calibration gave; `None` without one.
    pub calibrated: Option<Calibrated>,
    /// The files read, the scenario itself first.
    pub inputs: Vec<InputFile>,
    /// The tables of prices that were read in place of built-in ones.
    pub prices: Vec<InputFile>,
}

/// A startup taint, and what removes it.
#[derive(Clone, PartialEq, Debug)]
pub struct StartupTaint {
    /// Its key.
    pub key: Symbol,
    /// The DaemonSet whose pod on the node has to be Ready before the taint is removed.
    pub removed_by: Option<ObjectName>,
    /// Time from then until the taint is removed.
    pub after: Option<SimDuration>,
    /// Share of new nodes that keep the taint for good.
    pub stuck: f64,
    /// Effect with which something other than NodePools and node groups puts the taint on every new node.
    pub on_every_node: Option<TaintEffect>,
}

/// Prometheus and the metrics adapter.
#[derive(Clone, PartialEq, Debug)]
pub struct PrometheusSettings {
    /// How often pods are scraped that no monitor selects; `None` for Prometheus's own default.
    pub scrape_interval: Option<SimDuration>,
    /// Workloads whose requests `istio_requests_total` counts.
    pub istio: Vec<SeriesSpec>,
    /// Other series.
    pub series: Vec<SeriesSpec>,
    /// What prometheus-adapter serves.
    pub adapter: Vec<AdapterRule>,
    /// How often the adapter looks which series exist.
    pub relist_interval: SimDuration,
    /// When Prometheus neither scrapes nor answers.
    pub outages: Vec<Outage>,
}

/// metrics-server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricsServer {
    /// How often all nodes are read.
    pub resolution: SimDuration,
}

impl MetricsServer {
    /// As it is published.
    pub const PUBLISHED: Self = Self { resolution: SimDuration::from_secs(15) };
}

/// When the loops of controllers first come round; `None` for an instant drawn from the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phases {
    /// The first reading of metrics-server.
    pub metrics_server: Option<SimDuration>,
    /// The first look at all HorizontalPodAutoscalers that exist at the start.
    pub replica_autoscalers: Option<SimDuration>,
    /// The first poll of all ScaledObjects and ScaledJobs that exist at the start.
    pub keda: Option<SimDuration>,
    /// The first pass of Karpenter's disruption loop.
    pub disruption: Option<SimDuration>,
    /// Karpenter's first search for NodeClaims whose instance is gone.
    pub garbage_collection: Option<SimDuration>,
}

/// How long things take of one workload that no manifest tells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkloadTimes {
    /// How long the containers of a pod run that ends by itself; `None` for [`WorkloadTimes::RUN_TIME`], with a warning.
    pub run_time: Option<SimDuration>,
    /// The share of such pods that fail.
    pub failures: f64,
    /// How long each init container runs.
    pub init_time: SimDuration,
    /// From the start of the containers until the application answers.
    pub start_time: SimDuration,
    /// From the signal to stop until the containers have stopped, if the grace period allows it.
    pub shutdown_time: SimDuration,
    /// Under which name the availability of its replicas is counted; `None` for its own.
    pub part_of: Option<ObjectName>,
}

impl Default for WorkloadTimes {
    fn default() -> Self {
        Self {
            run_time: None,
            failures: 0.0,
            init_time: SimDuration::ZERO,
            start_time: SimDuration::ZERO,
            shutdown_time: SimDuration::from_secs(1),
            part_of: None,
        }
    }
}

/// Sizes of container images, and how fast nodes pull them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageSettings {
    /// Compressed bytes of an image that `sizes` does not name.
    pub size: i64,
    /// Compressed bytes, by image.
    pub sizes: BTreeMap<Symbol, i64>,
    /// Bytes per second that a node fetches.
    pub pull_rate: i64,
    /// Bytes per second that it unpacks.
    pub unpack_rate: i64,
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self { size: 100_000_000, sizes: BTreeMap::new(), pull_rate: 80_000_000, unpack_rate: 180_000_000 }
    }
}

/// Limits of the answer; `None` for no limit.
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
    /// Limits on the waits of one workload, or of one priority.
    pub waits: Vec<WaitLimit>,
    /// 99th percentile of the response time.
    pub request_p99: Option<SimDuration>,
    /// Cost of the whole run, in the currency of the region.
    pub cost: Option<Money>,
}

/// Where the report goes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OutputSettings {
    /// The directory for the report; `None` for `reports/<name>`.
    pub directory: Option<String>,
    /// Time between the samples of `metrics.om`; `None` where there is no such file.
    pub open_metrics: Option<SimDuration>,
    /// Time between the samples of tables and curves; `None` for what keeps them small.
    pub sample_every: Option<SimDuration>,
    /// Keys of pod labels by which the report sums cost.
    pub cost_by: Vec<Symbol>,
}

impl OutputSettings {
    /// Time between samples of `metrics.om` unless given: the default of Prometheus for scrapes.
    pub const STEP: SimDuration = SimDuration::from_secs(60);
    /// The least and the most time between samples. Prometheus forgets a series five minutes after its last sample.
    pub const STEPS: (SimDuration, SimDuration) = (SimDuration::from_secs(1), SimDuration::from_secs(240));
}

/// The parts of the bill that rest on an assumption; they are added up.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CostOf {
    /// Workloads: their share of the nodes.
    pub workloads: Vec<ObjectName>,
    /// NodePools and node groups: their nodes.
    pub node_pools: Vec<Symbol>,
    /// Items of the bill.
    pub items: Vec<BillItem>,
}
