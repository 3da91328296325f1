//! What the packer is told: borrowed views, cheap to build from any representation of a cluster.

use std::sync::Arc;

use super::default_spread::DefaultSpread;
use super::node_pods::NodePods;
use crate::instance_types::InstanceType;
use crate::release::Behaviour;
use nodecast_model::domain::volumes::Storage;
use nodecast_model::domain::{Check, KarpenterVersion, Labels, NodePool, PodSpec, Resources, SimTime, Symbol, Taint};

/// Who packs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PackerKind {
    /// Karpenter's own scheduler.
    #[default]
    Karpenter,
    /// The cost-aware packer, which no release has.
    CostAware,
}

impl PackerKind {
    /// The name in options and scenarios.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Karpenter => "karpenter",
            Self::CostAware => "cost-aware",
        }
    }

    /// Whether it can pack by the rules of a release: the cost-aware packer not by those up to v0.6, which put every pod
    /// into a group of equal constraints.
    pub fn knows(self, version: KarpenterVersion) -> bool {
        self == Self::Karpenter || !Behaviour::for_release(version).packs_by_group
    }
}

/// Whether preferences are tried before they are dropped (`--preference-policy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PreferencePolicy {
    /// Preferences count as requirements until they cannot be met.
    #[default]
    Respect,
    /// Preferences are not looked at.
    Ignore,
}

/// What happens when too few different values remain for a `minValues` (`--min-values-policy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MinValuesPolicy {
    /// The pod is refused.
    #[default]
    Strict,
    /// A new claim lowers its `minValues` to what there is.
    BestEffort,
}

/// What happens when a compatible capacity reservation exists but is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReservedMode {
    /// The pod waits for the next pass (provisioning).
    #[default]
    Strict,
    /// Other capacity is taken (consolidation's what-ifs).
    Fallback,
}

/// Karpenter's settings that change a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PackingOptions {
    /// Treatment of preferences.
    pub preferences: PreferencePolicy,
    /// Treatment of `minValues`.
    pub min_values: MinValuesPolicy,
    /// How many instance types of a claim are kept, the cheapest first (600).
    pub max_instance_types: usize,
    /// Whether what is told without packing is packed too, and compared.
    pub check: Check,
}

impl Default for PackingOptions {
    fn default() -> Self {
        let (preferences, min_values) = (PreferencePolicy::Respect, MinValuesPolicy::Strict);
        Self { preferences, min_values, max_instance_types: 600, check: Check::AsBuilt }
    }
}

/// A NodePool with the instance types that its node class can launch.
#[derive(Clone, Copy, Debug)]
pub struct PoolView<'a> {
    /// The pool. Static pools and those that are not ready open no node.
    pub pool: &'a NodePool,
    /// Its instance types in the provider's order. Pools that share a slice share the work of compiling it.
    pub instance_types: &'a [InstanceType],
}

/// A namespace with its labels, for affinity terms that select namespaces.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceView<'a> {
    /// Name.
    pub name: Symbol,
    /// Labels, with `kubernetes.io/metadata.name`, which the API server writes
    /// ([`with_namespace_name`](nodecast_model::domain::labels::with_namespace_name)).
    pub labels: &'a Labels,
}

/// The storage objects of the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volumes<'a> {
    /// Claims, volumes and classes; `None` is the same as none of each.
    pub storage: Option<&'a Storage>,
}

impl<'a> Volumes<'a> {
    /// These objects.
    pub const fn from_storage(storage: &'a Storage) -> Self {
        Self { storage: Some(storage) }
    }
}

/// What stays the same over many questions to the packer.
#[derive(Clone, Copy, Debug)]
pub struct PackingSetup<'a> {
    /// The release to reproduce. v0.4 and v0.6 pack by another algorithm and look at no existing node.
    pub karpenter: KarpenterVersion,
    /// Settings.
    pub options: PackingOptions,
    /// Node pools in any order.
    pub pools: &'a [PoolView<'a>],
    /// One representative pod for each DaemonSet.
    pub daemons: &'a [Arc<PodSpec>],
    /// Every namespace with pods; needed only where an affinity term selects namespaces by label.
    pub namespaces: &'a [NamespaceView<'a>],
    /// Storage objects.
    pub volumes: Volumes<'a>,
    /// Constraints of pods that have none, where the release has such defaults.
    pub default_spread: Option<&'a DefaultSpread>,
}

impl PackingSetup<'_> {
    /// What the release does.
    pub(super) fn behaviour(&self) -> &'static Behaviour {
        Behaviour::for_release(self.karpenter)
    }

    /// The DaemonSets whose requests new nodes reserve: releases that refuse pods with claims for devices leave those of DaemonSets out, too.
    ///
    /// Source: Karpenter core v1.7 `pkg/controllers/provisioning/scheduling/scheduler.go`, `getDaemonOverhead`.
    pub(super) fn counted_daemons(&self) -> impl Iterator<Item = &Arc<PodSpec>> {
        let refuses = self.behaviour().refuses_device_claims;
        self.daemons.iter().filter(move |daemon| !(refuses && daemon.resource_claims))
    }
}

/// A pod that is bound to a node.
#[derive(Clone, Copy, Debug)]
pub struct BoundPod<'a> {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name, which names its ephemeral volumes' claims.
    pub name: &'a str,
    /// Its specification; a pod of a DaemonSet says so in `owner`.
    pub spec: &'a Arc<PodSpec>,
    /// Whether it counts in topologies: false when it is terminating or is itself among the pods to place.
    pub counts_in_topology: bool,
}

/// A node of the cluster, or a launched claim that has no Node object yet.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// The claim's name until the node has registered, the node's name afterwards.
    pub name: &'a str,
    /// Labels: the claim's until registration, the node's afterwards.
    pub labels: &'a Labels,
    /// Taints: the claim's until registration, the node's afterwards. Startup and ephemeral taints may be among them.
    pub taints: &'a [Taint],
    /// The claim's startup taints; not respected before initialization.
    pub startup_taints: &'a [Taint],
    /// What the node has.
    pub capacity: &'a Resources,
    /// What it offers to pods. Before initialization, resources that the kubelet does not report yet carry the claim's
    /// amount.
    pub allocatable: &'a Resources,
    /// Whether Karpenter launched it.
    pub managed: bool,
    /// Whether it is initialized; a node that Karpenter did not launch always is.
    pub initialized: bool,
    /// Whether a Node object exists, so that its labels make topology domains.
    pub registered: bool,
    /// Whether pods may be put on it. A node that is being deleted, or that a what-if takes away, is still listed so that
    /// its pods are counted.
    pub offered: bool,
    /// Pods bound to it that have not ended.
    pub pods: &'a [BoundPod<'a>],
    /// The same, if somebody has summed them up: `pods` is not read then.
    pub summed: Option<&'a NodePods>,
    /// How many volumes of each CSI driver can be attached.
    pub volume_limits: &'a [(Symbol, u32)],
}

/// A pod to place.
#[derive(Clone, Copy, Debug)]
pub struct PendingPod<'a> {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name, which names its ephemeral volumes' claims.
    pub name: &'a str,
    /// Its specification. Pods whose specifications are one `Arc`, or equal, are treated as one class.
    pub spec: &'a Arc<PodSpec>,
    /// When it was created; upstream compares whole seconds.
    pub created: SimTime,
    /// Its place in the order of UIDs, which decides between pods of one size and one second.
    pub uid_rank: u64,
}

/// How ties between topology domains are broken.
///
/// Deviation: among equal topology domains, upstream uses the first of Go's map iteration, a fresh draw at every
/// attempt. Here the draw is reproducible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TieBreak {
    /// The byte-wise smallest name: for comparison with recorded answers. As a rule for production it would starve pods
    /// while the smallest zone is out of capacity.
    SmallestName,
    /// By a hash of (seed, pass, number of the attempt in the pass, domain).
    Seeded {
        /// The run's seed.
        seed: u64,
        /// The number of the pass.
        pass: u64,
    },
}

/// What is asked in one pass.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Every node of the cluster.
    pub nodes: &'a [NodeView<'a>],
    /// The pods to place.
    pub pods: &'a [PendingPod<'a>],
    /// Treatment of used-up reservations.
    pub reserved: ReservedMode,
    /// Treatment of ties.
    pub ties: TieBreak,
}
