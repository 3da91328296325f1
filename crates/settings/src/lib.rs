//! What a scenario says, as plain data with every reference checked: the cluster, what happens to it, and the policies to try.
//!
//! What lives here: the types that readers fill in and simulations take ([`Scenario`], [`PolicyVariant`] and their parts), and what an answer
//! leaves out or assumes ([`Caveats`]). What must not: how a file says it (`nodecast-scenario`), and what comes of it (`nodecast-sim`).

mod caveat;
pub mod lints;
mod objectives;
mod stated;

use std::collections::BTreeMap;
use std::sync::Arc;

use nodecast_cluster_autoscaler::Flags;
use nodecast_ec2::billing::FeeShares;
use nodecast_ec2::{BootStages, CloudSettings};
use nodecast_karpenter::instance_types::{Measured, ProviderSettings};
use nodecast_karpenter::machine::{ImageReleases, KarpenterSettings};
use nodecast_karpenter::packing::{MinValuesPolicy, PackerKind, PreferencePolicy};
use nodecast_karpenter::release::Behaviour;
use nodecast_load::{Curve, Service, Uncertainty, Work};
use nodecast_manifests::Manifests;
use nodecast_model::domain::controller_time::ControllerTime;
use nodecast_model::domain::which::{ObjectKind, Which};
use nodecast_model::domain::words::counted;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{
    ControlPlaneTier, FeatureGates, HourlyRate, KarpenterVersion, KubernetesVersion, Labels, PodSpec, Resources,
    SimDuration, SimTime, Symbol, TerminationHandler, Versions,
};
use nodecast_model::fargate::Profile;
pub use nodecast_model::text::error::Effect;
use nodecast_model::text::error::{InputError, Warning, listed, nearest};
use nodecast_vpa::{RecommenderSettings, UpdaterSettings};
use serde::{Deserialize, Serialize};

use self::lints::Lint;
pub use caveat::{Caveat, Caveats};
pub use objectives::{WaitLimit, WaitMeasure, Waiting};
pub use stated::{
    CostOf, ImageSettings, MetricsServer, Objectives, OutputSettings, Phases, PrometheusSettings, Scenario,
    StartupTaint, WorkloadTimes,
};

/// What adds and removes nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Autoscaler {
    /// Karpenter, in the release that the versions name.
    Karpenter,
    /// The Cluster Autoscaler, likewise.
    ClusterAutoscaler,
    /// EKS Auto Mode: Karpenter as AWS runs it.
    EksAutoMode,
    /// Nothing: the node groups keep their desired size.
    None,
}

impl Autoscaler {
    /// Whether it launches nodes for NodePools, whoever runs it.
    pub const fn is_karpenter(self) -> bool {
        matches!(self, Self::Karpenter | Self::EksAutoMode)
    }
}

/// EKS Auto Mode as a policy has it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AutoMode {
    /// When new images come out.
    pub images: ImageReleases,
    /// What AWS takes for managing an instance.
    pub shares: FeeShares,
    /// DaemonSets that have no pods on its nodes, because what they run is part of them.
    pub agents: Vec<String>,
    /// NodePools that it does not see, because their node class is not one of its own.
    pub foreign_pools: Vec<Symbol>,
}

/// How the Vertical Pod Autoscaler's programs are set up.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VerticalSettings {
    /// The recommender.
    pub recommender: RecommenderSettings,
    /// The updater.
    pub updater: UpdaterSettings,
}

/// EKS on Fargate as a policy has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FargateSettings {
    /// Its profiles.
    pub profiles: Vec<Profile>,
    /// vCPUs that all pods may have together.
    pub vcpu_quota: u32,
    /// Pods that are launched at once after a pause.
    pub burst: u32,
    /// Pods that are launched a second in the long run.
    pub per_second: u32,
    /// From a pod's launch to its node having registered, in the median.
    pub start_time: SimDuration,
    /// Bytes of compressed images per second, unpacking included.
    pub pull_rate: i64,
    /// Whether pods go round the zones; otherwise each is drawn.
    pub round_robin: bool,
    /// CPUs in thousandths that containers request which are put beside those of every pod.
    pub sidecar_cpu_milli: i64,
    /// Bytes of memory that they request.
    pub sidecar_memory: i64,
    /// Price of a vCPU for an hour; `None` for that of the region.
    pub vcpu_hour: Option<HourlyRate>,
    /// Price of a GB for an hour; `None` for that of the region.
    pub gb_hour: Option<HourlyRate>,
}

impl FargateSettings {
    /// How long a pod's machine takes in the median: assumed, by published measurements.
    pub const START_TIME: SimDuration = SimDuration::from_secs(45);
    /// How fast images are pulled: assumed.
    pub const PULL_RATE: i64 = 20_000_000;
    /// The quota: assumed, an account of some age.
    pub const VCPU_QUOTA: u32 = 4_000;
    /// What containers beside those of every pod request.
    pub fn sidecars(&self) -> Resources {
        Resources::cpu_memory(self.sidecar_cpu_milli, self.sidecar_memory)
    }

    /// Burst and refill of launches for accounts that run only EKS pods on Fargate.
    pub const LAUNCHES: u32 = 20;
}

impl Default for FargateSettings {
    fn default() -> Self {
        Self {
            profiles: Vec::new(),
            vcpu_quota: Self::VCPU_QUOTA,
            burst: Self::LAUNCHES,
            per_second: Self::LAUNCHES,
            start_time: Self::START_TIME,
            pull_rate: Self::PULL_RATE,
            round_robin: false,
            sidecar_cpu_milli: 0,
            sidecar_memory: 0,
            vcpu_hour: None,
            gb_hour: None,
        }
    }
}

/// How Karpenter waits for pods, and what it makes of preferences and `minValues`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KarpenterOptions {
    /// How long it waits for one more pod.
    pub batch_idle: SimDuration,
    /// How long it waits at most.
    pub batch_max: SimDuration,
    /// What it makes of preferences.
    pub preferences: PreferencePolicy,
    /// What it makes of `minValues`.
    pub min_values: MinValuesPolicy,
    /// Time between two releases of the images that node classes take the newest of; `None` for none during the run.
    pub image_release_every: Option<SimDuration>,
    /// The share of memory, in millionths, that it takes the hypervisor and the kernel to keep.
    pub vm_memory_overhead_millionths: u32,
    /// Network interfaces that give pods no addresses.
    pub reserved_enis: u32,
}

/// A policy: who adds and removes nodes, and how it is set up.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyVariant {
    /// Its name.
    pub name: String,
    /// Who adds and removes nodes.
    pub autoscaler: Autoscaler,
    /// Who packs pods for Karpenter.
    pub packer: PackerKind,
    /// Releases reproduced.
    pub versions: Versions,
    /// Whether Karpenter has an interruption queue to read notices from.
    pub interruption_queue: bool,
    /// How Karpenter waits for pods, and what it makes of preferences and `minValues`.
    pub karpenter_options: KarpenterOptions,
    /// Karpenter's feature gates.
    pub feature_gates: FeatureGates,
    /// AWS Node Termination Handler, if it is installed.
    pub termination_handler: Option<TerminationHandler>,
    /// How long controllers take.
    pub controller_time: ControllerTime,
    /// Tier of the control plane.
    pub control_plane_tier: ControlPlaneTier,
    /// EKS Auto Mode, if that is the autoscaler.
    pub auto_mode: Option<AutoMode>,
    /// EKS on Fargate, if there is a profile.
    pub fargate: Option<Arc<FargateSettings>>,
    /// How the Vertical Pod Autoscaler's programs are set up.
    pub vertical: Arc<VerticalSettings>,
    /// The flags of the Cluster Autoscaler, if that is the autoscaler.
    pub flags: Option<Arc<Flags>>,
    /// The objects that exist from the start: the scenario's, those of the policy laid over them, priorities resolved.
    pub manifests: Arc<Manifests>,
}

impl PolicyVariant {
    /// The settings by which Karpenter shapes its instance types under this policy.
    pub fn provider_settings(&self) -> ProviderSettings {
        self.karpenter_options.provider(self.versions.karpenter)
    }
}

impl KarpenterOptions {
    /// Everything that Karpenter is told when it starts, with its interruption queue, packer and gates.
    pub const fn settings(
        &self,
        interruption_queue: bool,
        packer: PackerKind,
        gates: FeatureGates,
    ) -> KarpenterSettings {
        KarpenterSettings {
            interruption_queue,
            batch_idle: self.batch_idle,
            batch_max: self.batch_max,
            preferences: self.preferences,
            min_values: self.min_values,
            packer,
            gates,
        }
    }

    /// The settings by which a release shapes its instance types.
    pub fn provider(&self, version: KarpenterVersion) -> ProviderSettings {
        let Self { vm_memory_overhead_millionths, reserved_enis, .. } = *self;
        let reserved_enis = if Behaviour::of(version).knows_reserved_enis { reserved_enis } else { 0 };
        ProviderSettings { version, vm_memory_overhead_millionths, reserved_enis }
    }
}

impl Default for KarpenterOptions {
    fn default() -> Self {
        let KarpenterSettings { batch_idle, batch_max, preferences, min_values, .. } = KarpenterSettings::default();
        let ProviderSettings { vm_memory_overhead_millionths, reserved_enis, .. } = ProviderSettings::default();
        Self {
            batch_idle,
            batch_max,
            preferences,
            min_values,
            image_release_every: None,
            vm_memory_overhead_millionths,
            reserved_enis,
        }
    }
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
    /// What one request costs, nothing where the load is CPU. The CPU limit is that of the workload's pods, the sum over its
    /// containers where all have one.
    pub service: Service,
}

/// What the pods of a workload use beside requests, counted from the start of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageSpec {
    /// The workload.
    pub workload: ObjectName,
    /// The container that uses it; `None` for all, in the proportion of what the template has them request.
    pub container: Option<Symbol>,
    /// Whether the curves are of all Ready pods together, and not of each.
    pub of_workload: bool,
    /// CPU, in cores.
    pub cpu: Option<OpenRequests>,
    /// Memory, in MiB.
    pub memory: Option<OpenRequests>,
    /// What each pod uses more as it starts.
    pub start_up: Option<StartUpUse>,
}

/// What a pod uses beyond the rest from the start of its containers on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StartUpUse {
    /// CPU, in cores.
    pub cpu: f64,
    /// For how long.
    pub length: SimDuration,
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
    /// No requests that anybody counts, but CPU in use, in cores where those have requests per second.
    Cpu(OpenRequests),
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
    /// `kubectl cordon`: the nodes take no more pods.
    Cordon(Which),
    /// `kubectl uncordon`.
    Uncordon(Which),
    /// `kubectl drain`.
    Drain {
        /// The nodes.
        nodes: Which,
        /// Whether pods that nothing controls are evicted too.
        force: bool,
        /// After this time the drain of a node is given up.
        timeout: Option<SimDuration>,
    },
    /// `kubectl delete`.
    Delete {
        /// What is deleted.
        kind: ObjectKind,
        /// Where objects are that are named by their labels.
        namespace: Symbol,
        /// Which of them.
        which: Which,
    },
    /// The control plane is upgraded to this release.
    UpgradeControlPlane(KubernetesVersion),
    /// `kubectl apply`: the objects appear, or change to this form.
    Apply(Arc<Manifests>),
}

impl Action {
    /// What the step applies, if it applies anything.
    pub const fn applied(&self) -> Option<&Arc<Manifests>> {
        match self {
            Self::Apply(manifests) => Some(manifests),
            _ => None,
        }
    }
}

/// What is special about EC2 in this scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ec2Settings {
    /// Stages of a boot; `None` for those of each node's own family of machine images.
    pub launch_latency: Option<BootStages>,
    /// What is known of the real machines of a type, by type.
    pub measured: BTreeMap<Symbol, Measured>,
    /// Prices, capacity, interruptions, faults and billing.
    pub cloud: Arc<CloudSettings>,
}

/// What a calibration gave, by paths of keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Calibrated {
    /// The file.
    pub file: String,
    /// Values that hold as they were measured.
    pub measured: Vec<String>,
    /// Values between what was measured and what is assumed, because there was little to measure.
    pub shrunk: Vec<String>,
    /// What can be fitted and the scenario states itself.
    pub stated: Vec<String>,
    /// What can be fitted and is still assumed.
    pub assumed: Vec<String>,
}

impl Calibrated {
    /// How much was measured, in a line.
    pub fn in_short(&self) -> String {
        let values = |paths: &[String]| counted(paths.len() as u64, "value", "values");
        let mut parts = vec![format!("{} measured", values(&self.measured))];
        if !self.shrunk.is_empty() {
            parts.push(format!("{} between measured and assumed", values(&self.shrunk)));
        }
        if !self.stated.is_empty() {
            parts.push(format!("stated: {}", self.stated.join(", ")));
        }
        if !self.assumed.is_empty() {
            parts.push(format!("assumed: {}", self.assumed.join(", ")));
        }
        format!("{} ({})", parts.join("; "), self.file)
    }

    /// What the answer rests on, in sentences.
    pub fn assumptions(&self) -> Vec<String> {
        let list = |paths: &[String]| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        let sentence =
            |words: &str, paths: &[String]| (!paths.is_empty()).then(|| format!("{words}: {}.", list(paths)));
        let file = &self.file;
        [
            sentence(&format!("Measured on a cluster, by {file}"), &self.measured),
            sentence(&format!("Between measured and assumed, by {file}, since little was recorded"), &self.shrunk),
            sentence("Stated by the scenario", &self.stated),
            sentence("Assumed, neither stated nor measured", &self.assumed),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What a scenario's author assumed.
#[derive(Clone, PartialEq, Debug)]
pub struct Assumption {
    /// The sentence.
    pub text: String,
    /// The part of the bill that rests on it; `None` where nobody says.
    pub cost_of: Option<CostOf>,
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
    /// Lets the level of Spot prices be off by a draw of each seed, unless the scenario says whether it is: what a comparison of policies
    /// rests on should hold for the prices that may be, not for one of them.
    pub fn draw_price_errors(&mut self) {
        if self.ec2.cloud.price_errors.is_none() {
            Arc::make_mut(&mut self.ec2.cloud).price_errors = Some(true);
        }
    }

    /// No warnings yet, where `allow` silences some.
    pub fn caveats(&self) -> Caveats {
        Caveats::allowing(&self.allow, &self.silenced)
    }

    /// Removes the warnings that `allow` silences, and records their lints.
    pub fn silence(&mut self, warnings: &mut Vec<Warning>) {
        let allowed = |warning: &Warning| warning.lint().map(Lint::id).filter(|id| self.allow.contains(id));
        self.silenced = warnings.iter().filter_map(allowed).collect();
        warnings.retain(|warning| allowed(warning).is_none());
    }

    /// The policy called `name`; the first where no name is given.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn for_policy(&self, name: Option<&str>) -> Result<&PolicyVariant, InputError> {
        let names = || self.policies.iter().map(|policy| policy.name.as_str());
        let wanted = name.or_else(|| names().next()).unwrap_or_default();
        self.policies.iter().find(|policy| policy.name == wanted).ok_or_else(|| {
            let known = listed(names());
            let help = nearest(wanted, names())
                .map_or_else(|| format!("it has {known}"), |near| format!("did you mean `{near}`? it has {known}"));
            InputError::new(format!("the scenario has no policy `{wanted}`")).help(help)
        })
    }
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

/// The system that a queue belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueKind {
    /// Its word, as the scaler that reads it has it.
    pub system: &'static str,
    /// Kafka only.
    pub topic: Option<KafkaTopic>,
}

/// A Kafka topic with one consumer group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KafkaTopic {
    /// Its partitions.
    pub partitions: u32,
    /// The group.
    pub group: String,
}

impl WorkloadTimes {
    /// How long a pod with an end runs unless the scenario says it: assumed, as the other times are.
    pub const RUN_TIME: SimDuration = SimDuration::from_secs(60);

    /// How long a pod runs that ends by itself.
    pub fn run_time(&self) -> SimDuration {
        self.run_time.unwrap_or(Self::RUN_TIME)
    }
}

impl ImageSettings {
    /// Compressed bytes of an image.
    pub fn size_of(&self, image: Symbol) -> i64 {
        self.sizes.get(&image).copied().unwrap_or(self.size)
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
