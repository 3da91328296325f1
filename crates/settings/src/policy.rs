//! Policies: the autoscaler that adds and removes nodes, and its settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodecast_cluster_autoscaler::Flags;
use nodecast_ec2::billing::FeeShares;
use nodecast_karpenter::instance_types::ProviderSettings;
use nodecast_karpenter::machine::{ImageReleases, KarpenterSettings};
use nodecast_karpenter::packing::{MinValuesPolicy, PackerKind, PreferencePolicy};
use nodecast_karpenter::release::Behaviour;
use nodecast_manifests::Manifests;
use nodecast_model::domain::controller_time::ControllerTime;
use nodecast_model::domain::topology::TopologySpread;
use nodecast_model::domain::{
    ControlPlaneTier, FeatureGates, HourlyRate, KarpenterVersion, Resources, SimDuration, Symbol, TerminationHandler,
    Versions,
};
use nodecast_model::fargate::Profile;
use nodecast_vpa::{Bounds, NamespaceLimits, RecommenderSettings, UpdaterSettings};

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

/// What the LimitRanges of each namespace say.
pub fn namespace_limits(manifests: &Manifests) -> BTreeMap<Symbol, NamespaceLimits> {
    let mut limits: BTreeMap<Symbol, NamespaceLimits> = BTreeMap::new();
    for range in &manifests.limit_ranges {
        let limits = limits.entry(range.name.namespace).or_default();
        let [min, max, default] = range.of_containers();
        limits.add_container(&Bounds { min: min.clone(), max: max.clone(), default: default.clone() });
        let [min, max] = range.of_pods();
        if !(min.is_empty() && max.is_empty()) {
            limits.add_pod(&Bounds { min: min.clone(), max: max.clone(), default: Resources::new() });
        }
    }
    limits
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
    /// Default topology spread of Karpenter (`scheduler-config`).
    pub default_spread: Vec<TopologySpread>,
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
        let reserved_enis = if Behaviour::for_release(version).knows_reserved_enis { reserved_enis } else { 0 };
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
