//! A resolved scenario: plain data, every reference checked.

pub mod objectives;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use objectives::{Objectives, WaitLimit, WaitMeasure, Waiting};

use super::error::{ScenarioError, listed, nearest};
use super::manifests::Manifests;
use crate::cloud::{BootStages, CloudSettings};
use crate::domain::external_metrics::ExternalMetric;
use crate::domain::workload::ObjectName;
use crate::domain::{
    ControllerTime, FeatureGates, KubernetesVersion, Labels, PodSpec, SimDuration, SimTime, Symbol, TerminationHandler,
    Versions,
};
use crate::load::{Curve, Service, Uncertainty, Work};
use crate::policy::cluster_autoscaler::Flags;
use crate::policy::packing::PackerKind;

/// A question to the simulator: a cluster, what happens to it, and the policies to try.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name; also the name of the output folder.
    pub name: String,
    /// The AWS region.
    pub region: Symbol,
    /// Zones in use, in order of name.
    pub zones: Vec<Symbol>,
    /// Calendar time at which simulated time is zero.
    pub start: jiff::Timestamp,
    /// How long to simulate.
    pub duration: SimDuration,
    /// For so long from the start figures of waiting, churn and response times do not count; less than `duration`.
    pub warm_up: SimDuration,
    /// The first seed.
    pub seed: u64,
    /// How many successive seeds a comparison uses.
    pub replications: u32,
    /// Load on workloads. From its start on an entry takes the place of an earlier one on the same workload.
    pub load: Vec<LoadSpec>,
    /// Values of scalers, metrics and resources that are stated in place of a model.
    pub external_metrics: Vec<ExternalMetric>,
    /// Time between two readings of metrics-server (`--metric-resolution`), at least 10 s.
    pub metrics_resolution: SimDuration,
    /// When loops that run from before the start come round first.
    pub phases: Phases,
    /// Prometheus, if there is one.
    pub prometheus: Option<PrometheusSettings>,
    /// Queues.
    pub queues: Vec<QueueSpec>,
    /// Pods of a recorded cluster.
    pub pods: Option<Arc<PodTrace>>,
    /// How long what no manifest tells takes, by workload.
    pub times: BTreeMap<ObjectName, WorkloadTimes>,
    /// Sizes of images, and how fast nodes pull them.
    pub images: ImageSettings,
    /// What is done by hand, in order of time.
    pub timeline: Vec<TimedAction>,
    /// The policies, at least one; the first is what `run` simulates.
    pub policies: Vec<PolicyVariant>,
    /// What is special about EC2.
    pub ec2: Ec2Settings,
    /// Limits that the answer is held against.
    pub objectives: Objectives,
    /// Where output goes.
    pub output: OutputSettings,
    /// What the author assumed, for the report.
    pub assumptions: Vec<String>,
    /// The files read, the scenario itself first.
    pub inputs: Vec<InputFile>,
}

/// One policy: an autoscaler and the cluster as that policy configures it.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyVariant {
    /// Name; also the name of its folder in a comparison.
    pub name: String,
    /// What adds and removes nodes.
    pub autoscaler: Autoscaler,
    /// Releases reproduced.
    pub versions: Versions,
    /// Whether Karpenter has an interruption queue to read notices from.
    pub interruption_queue: bool,
    /// Karpenter's feature gates.
    pub feature_gates: FeatureGates,
    /// AWS Node Termination Handler, if it is installed.
    pub termination_handler: Option<TerminationHandler>,
    /// How long controllers take.
    pub controller_time: ControllerTime,
    /// Who packs Karpenter's pods.
    pub packer: PackerKind,
    /// The flags of the Cluster Autoscaler, if that is the autoscaler.
    pub flags: Option<Arc<Flags>>,
    /// The objects that exist from the start: the scenario's, those of the policy laid over them, priorities resolved.
    pub manifests: Arc<Manifests>,
}

/// What adds and removes nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Autoscaler {
    /// Karpenter, in the release that the versions name.
    Karpenter,
    /// The Cluster Autoscaler, likewise.
    ClusterAutoscaler,
    /// Nothing: the node groups keep their desired size.
    None,
}

/// Load on one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadSpec {
    /// The workload that serves the requests.
    pub workload: ObjectName,
    /// When it begins.
    pub at: SimTime,
    /// When it ends at the latest; `None` for the end of the run.
    pub until: Option<SimTime>,
    /// How requests arrive.
    pub requests: Requests,
    /// Whether requests are simulated one by one.
    pub detail: Detail,
    /// What one request costs. The CPU limit is that of the workload's pods, the sum over its containers where all have
    /// one.
    pub service: Service,
}

/// When the loops of controllers that run from before the start come round first, counted from the start; `None` where it is
/// drawn from the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Phases {
    /// metrics-server reads the nodes.
    pub metrics_server: Option<SimDuration>,
    /// The HorizontalPodAutoscalers that exist at the start are looked at.
    pub replica_autoscalers: Option<SimDuration>,
    /// KEDA polls the ScaledObjects and ScaledJobs that exist at the start.
    pub keda: Option<SimDuration>,
}

/// How closely requests are simulated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Detail {
    /// One by one where they are few, as a fluid otherwise.
    #[default]
    Auto,
    /// One by one.
    Exact,
    /// As a fluid.
    Fluid,
}

/// How requests arrive.
#[derive(Clone, PartialEq, Debug)]
pub enum Requests {
    /// Clients that each wait for the answer, and pause, before they ask again.
    ClosedLoop {
        /// How many clients.
        clients: u32,
        /// How many requests they send altogether.
        requests: u64,
        /// The mean pause.
        think_time: SimDuration,
    },
    /// A rate that does not depend on the answers.
    Open(OpenRequests),
}

/// Requests that arrive whatever became of those before them.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenRequests {
    /// Their rate, counted from the start of the load.
    pub curve: Arc<Curve>,
    /// Their arrivals one by one, counted likewise, where a trace states them.
    pub arrivals: Option<Arc<[SimDuration]>>,
    /// Whether they are spaced evenly rather than at random.
    pub even: bool,
    /// By how much the demand of one seed may differ from `curve`.
    pub uncertainty: Uncertainty,
}

/// Something done by hand.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedAction {
    /// When.
    pub at: SimTime,
    /// What.
    pub action: Action,
}

/// What is done by hand.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// `kubectl scale`.
    Scale {
        /// The workload.
        workload: ObjectName,
        /// Its new number of replicas.
        replicas: u32,
    },
    /// SetDesiredCapacity: somebody sets the size of a node group.
    ScaleGroup {
        /// The node group.
        group: Symbol,
        /// Its new desired size.
        desired: u32,
    },
    /// The control plane is upgraded to this release.
    UpgradeControlPlane(KubernetesVersion),
    /// `kubectl apply`: the objects appear, or change to this form.
    Apply(Arc<Manifests>),
}

/// What is special about EC2 in this scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ec2Settings {
    /// Stages of a boot; `None` for those of each node's own family of machine images.
    pub launch_latency: Option<BootStages>,
    /// Prices, capacity, interruptions, faults and billing.
    pub cloud: Arc<CloudSettings>,
}

/// Where output goes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OutputSettings {
    /// The directory; `None` for `reports/<name>`.
    pub directory: Option<String>,
    /// Time between samples of `metrics.om`; `None` to leave it out.
    pub open_metrics: Option<SimDuration>,
}

impl OutputSettings {
    /// Time between samples of `metrics.om` unless given: the default of Prometheus for scrapes.
    pub const STEP: SimDuration = SimDuration::from_secs(60);
    /// The least and the most time between samples. Prometheus forgets a series five minutes after its last sample.
    pub const STEPS: (SimDuration, SimDuration) = (SimDuration::from_secs(1), SimDuration::from_secs(240));
}

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputFile {
    /// Path as the scenario names it.
    pub path: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Scenario {
    /// The policy called `name`; the first where no name is given.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn for_policy(&self, name: Option<&str>) -> Result<&PolicyVariant, ScenarioError> {
        let names = || self.policies.iter().map(|policy| policy.name.as_str());
        let wanted = name.or_else(|| names().next()).unwrap_or_default();
        self.policies.iter().find(|policy| policy.name == wanted).ok_or_else(|| {
            let known = listed(names());
            let help = nearest(wanted, names())
                .map_or_else(|| format!("it has {known}"), |near| format!("did you mean `{near}`? it has {known}"));
            ScenarioError::new(format!("the scenario has no policy `{wanted}`")).help(help)
        })
    }
}

/// Prometheus and the metrics adapter in front of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PrometheusSettings {
    /// Time between two scrapes of a target that no monitor selects; `None` for Prometheus's own default of a minute.
    pub scrape_interval: Option<SimDuration>,
    /// The series that there are.
    pub series: Vec<SeriesSpec>,
    /// What the adapter serves to HorizontalPodAutoscalers.
    pub adapter: Vec<AdapterRule>,
    /// How often the adapter looks which series exist, 10 minutes unless given.
    pub relist_interval: SimDuration,
    /// When Prometheus neither scrapes nor answers.
    pub outages: Vec<Outage>,
}

/// Series of one name that tell of one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesSpec {
    /// Name.
    pub name: String,
    /// The workload.
    pub workload: ObjectName,
    /// What they show.
    pub kind: SeriesKind,
    /// Who exports them.
    pub owner: SeriesOwner,
    /// Labels over those that they have anyway.
    pub labels: Labels,
}

/// What a series shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesKind {
    /// Requests answered, as Istio's proxies count them, with their labels.
    IstioRequests,
    /// Requests answered: a counter of the pods' own.
    Requests,
    /// Requests that are being served or wait, as a share of each pod.
    RequestsInFlight,
    /// Ready replicas.
    ReplicasReady,
    /// Replicas wanted.
    ReplicasDesired,
}

/// Who exports a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesOwner {
    /// Each pod of the workload: its series end with it.
    Pods,
    /// Something that outlives the pods: a gateway, or kube-state-metrics.
    Gateway,
}

/// What the adapter serves under the name of a metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterRule {
    /// The name that a HorizontalPodAutoscaler uses.
    pub metric: Symbol,
    /// The query, whose elements carry labels `namespace` and `pod` (for Pods metrics) or the object's kind.
    pub query: String,
}

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// Its start.
    pub from: SimTime,
    /// Its end.
    pub until: SimTime,
}

/// A queue whose messages a workload takes.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueSpec {
    /// The SQS queue, Kafka topic, RabbitMQ queue or Redis list.
    pub name: String,
    /// What it is.
    pub kind: QueueKind,
    /// Who takes its messages: a Deployment, or the Jobs of a ScaledJob.
    pub workload: ObjectName,
    /// What one worker does.
    pub work: Work,
    /// Messages that one pod of a ScaledJob takes; 1 unless given.
    pub messages_per_job: u32,
    /// Messages that wait at the start.
    pub waiting: f64,
    /// Messages that arrive; `None` if none do.
    pub messages: Option<OpenRequests>,
}

/// What a queue is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueKind {
    /// An SQS queue.
    Sqs,
    /// A Kafka topic with one consumer group.
    Kafka {
        /// Its partitions.
        partitions: u32,
        /// The group.
        group: String,
    },
    /// A RabbitMQ queue.
    RabbitMq,
    /// A Redis list.
    Redis,
}

/// How long what no manifest tells takes for the pods of one workload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkloadTimes {
    /// From the start of a pod's containers to their end, for pods of Jobs and CronJobs, and of ScaledJobs that no queue names;
    /// `None` for [a minute](Self::RUN_TIME), which is assumed.
    pub run_time: Option<SimDuration>,
    /// The share of such pods that fail, from 0 to 1; 0 unless given.
    pub failures: f64,
    /// From the start of an init container to its end; 0 unless given (assumed).
    pub init_time: SimDuration,
    /// From the start of the containers until the application answers its probes; 0 unless given (assumed).
    pub start_time: SimDuration,
    /// From the signal to stop until the containers have stopped, if the grace period allows it; 1 s unless given (assumed).
    pub shutdown_time: SimDuration,
}

impl WorkloadTimes {
    /// How long a pod with an end runs unless the scenario says it.
    pub const RUN_TIME: SimDuration = SimDuration::from_secs(60);

    /// How long a pod runs that ends by itself.
    pub fn run_time(&self) -> SimDuration {
        self.run_time.unwrap_or(Self::RUN_TIME)
    }
}

impl Default for WorkloadTimes {
    fn default() -> Self {
        Self {
            run_time: None,
            failures: 0.0,
            init_time: SimDuration::ZERO,
            start_time: SimDuration::ZERO,
            shutdown_time: SimDuration::from_secs(1),
        }
    }
}

/// Images, and how fast a node pulls them. The defaults are assumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageSettings {
    /// Compressed bytes of an image that `sizes` does not name; 100 MB unless given.
    pub size: i64,
    /// Compressed bytes of images, named as manifests name them.
    pub sizes: BTreeMap<Symbol, i64>,
    /// Bytes per second that a node fetches; 80 MB unless given.
    pub pull_rate: i64,
    /// Bytes per second that it unpacks; 180 MB unless given.
    pub unpack_rate: i64,
}

impl ImageSettings {
    /// Compressed bytes of an image.
    pub fn size_of(&self, image: Symbol) -> i64 {
        self.sizes.get(&image).copied().unwrap_or(self.size)
    }
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self { size: 100_000_000, sizes: BTreeMap::new(), pull_rate: 80_000_000, unpack_rate: 180_000_000 }
    }
}

/// The pods of a recorded cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct PodTrace {
    /// Their namespace.
    pub namespace: Symbol,
    /// What they look like; pods that are alike share one.
    pub templates: Vec<Arc<PodSpec>>,
    /// Their lives, in order of creation.
    pub rows: Vec<TraceRow>,
    /// Whether a pod that is evicted or lost is made again.
    pub again: bool,
}

/// Pods of a trace that are created at one instant and are alike.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceRow {
    /// When they are created.
    pub at: SimTime,
    /// How many.
    pub count: u32,
    /// Which of the templates they have.
    pub template: u32,
    /// When they end.
    pub end: TraceEnd,
    /// Their name.
    pub name: Option<Box<str>>,
}

/// When a pod of a trace ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEnd {
    /// Not within the trace.
    Never,
    /// At this instant, whatever has become of it.
    At(SimTime),
    /// When it has run for so long.
    After(SimDuration),
}
