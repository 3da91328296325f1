//! What each release of Karpenter does: a record of switches, made once for every release, so that no decision compares
//! versions. A new release is a new row.
//!
//! Rules are named as in docs/karpenter-releases.md: `P` for provisioning, `I` for instance types and launches, `D` for disruption,
//! `L` for the lives of nodes. Sources are commits of Karpenter core (`#n`) and of the AWS provider (`A#n`), read on both sides of the
//! boundary.

mod api;
mod caveats;
mod rows;

pub use api::{apply_api, leave_out_unread, unread_kind, warnings};
pub use caveats::caveats;

use crate::disruption::Method;
use nodecast_model::domain::{FeatureGates, KarpenterVersion, SimDuration};

/// What a release does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behaviour {
    // Provisioning.
    /// Pods go into groups of equal constraints, and no existing node is looked at: v0.4 and v0.6.
    pub packs_by_group: bool,
    /// A pod without a Provisioner in its selector goes to `default` alone: v0.4.
    pub asks_named_pool_only: bool,
    /// Instance types stand in the order of their On-Demand prices, also for Spot: up to v0.16.
    pub orders_by_on_demand: bool,
    /// The node class is a label of every node: v0.32.
    pub labels_node_class: bool,
    /// P3 (#330): `minDomains` counts.
    pub knows_min_domains: bool,
    /// P4 (#414): nodes that Karpenter has not launched are capacity.
    pub reads_unmanaged_nodes: bool,
    /// P5 (#432): a pod does not go to an existing node that lacks a label it asks for.
    pub refuses_undefined_labels: bool,
    /// P6 (`nodepool.go`, `OrderByWeight`): pools of equal weight are tried by name, the last first; before, in the order of the list.
    pub orders_pools_by_name: bool,
    /// P7, P16 (#963, #1070, #2430): how many of the cheapest types a claim lists.
    pub claim_types: usize,
    /// P8 (#1244): what has triggered the batcher does not prolong its window again.
    pub counts_triggers_once: bool,
    /// P9 (#1727): a daemon is matched by what it requires, with every one of its terms, and no `PreferNoSchedule` keeps it off.
    pub matches_daemons_strictly: bool,
    /// P10 (#852): `matchLabelKeys`, `nodeAffinityPolicy` and `nodeTaintsPolicy` of a spread count, and so do taints of pools for the
    /// domains of affinity.
    pub knows_spread_policies: bool,
    /// P11 (#2119): a pod gives up its preferences one after the other at one try, and gets them back when that fails; before, one is
    /// given up for good at each failure, and the pod goes to the tail of the queue.
    pub relaxes_at_once: bool,
    /// #2182: only required terms are held against restricted labels.
    pub checks_required_terms_only: bool,
    /// P12 (#2122): `preference-policy` may say that preferences are not looked at.
    pub knows_preference_policy: bool,
    /// #2299: `min-values-policy` may say that a claim lowers its `minValues`.
    pub knows_min_values_policy: bool,
    /// P13 (#2121): a pass ends after a minute.
    pub limits_passes: bool,
    /// P14 (#2102, #3022): whose host ports a new claim knows.
    pub host_ports: HostPorts,
    /// #2384: pods with claims for devices are refused; before, the claims are not looked at.
    pub refuses_device_claims: bool,
    /// #3025: taints of `readiness.k8s.io` go by themselves.
    pub readiness_taints_go: bool,
    /// P18 (#2780): the places of a pod's volumes narrow its node and not the domains of its spread.
    pub keeps_volumes_from_spread: bool,
    /// P20 (#2743): every place where a pod's volumes can be is tried, not only the first.
    pub tries_all_volume_places: bool,
    /// P21 (#2975, #2161): a daemon counts on types that it can run on, and those that select `karpenter.sh/initialized` or
    /// `karpenter.sh/registered` count.
    pub daemons_by_type: bool,
    /// #169: the newest pod of a DaemonSet represents it, as admission left it, or its template while no pod is known; before, its template.
    pub reads_daemon_pods: bool,
    /// AWS v1.11.0 and v1.11.2 (core v1.11.0, #2671, #2957): domains count only where the pool that has them fits the pod.
    pub filters_domains_by_pool: bool,

    /// AWS v1.8.4 (core v1.8.1, #2639): domains count only where a node has them that the pod may go to.
    pub filters_domains_by_node: bool,
    /// P26 (#3205): pods without spread constraints get those of `--scheduler-config`.
    pub knows_default_spread: bool,

    // Instance types and launches.
    /// Which types are listed at all.
    pub types: ListedTypes,
    /// The provider leaves out types of before 2022 unless a Provisioner chooses types.
    pub leaves_out_old_types: bool,
    /// Of these c3, m3 and r3 stay.
    pub pardons_third_generation: bool,
    /// Types are listed by price and not by name.
    pub lists_by_price: bool,
    /// The labels of nodes.
    pub labels: LabelSet,
    /// A#8218: nodes carry their tenancy, and pods and pools may ask for it.
    pub labels_tenancy: bool,
    /// Nodes carry the id of their zone.
    pub labels_zone_ids: bool,
    /// `node.k8s.aws/capacity-type` is the label of the capacity type.
    pub old_capacity_type_label: bool,
    /// A#4857: types are listed with every zone, whatever is available in it.
    pub lists_all_zones: bool,
    /// Prices are also read from lists in yuan.
    pub reads_yuan: bool,
    /// What is added to a Provisioner that says nothing of it.
    pub defaults: PoolDefaults,
    /// Such defaults go to NodePools as well, as they stand for Provisioners.
    pub defaults_for_node_pools: bool,
    /// Provisioners are read: up to v0.32, which reads both (core v0.33 has no `pkg/apis/v1alpha5`).
    pub reads_provisioners: bool,
    /// What the hypervisor keeps counts as overhead and not against the capacity.
    pub hypervisor_is_overhead: bool,
    /// I3 (A#3568): nothing is set aside for the system, and the kubelet keeps a tenth of the disk free.
    pub modern_overhead: bool,
    /// `evictionHard` and `evictionSoft` are looked at.
    pub reads_eviction: bool,
    /// A#8565: `evictionSoft` no longer counts.
    pub ignores_soft_eviction: bool,
    /// I5 (A#3940): arm64 loses 64 MiB.
    pub arm_loses_memory: bool,
    /// `RESERVED_ENIS` is read.
    pub knows_reserved_enis: bool,
    /// A#8205: what the kubelet reserves for pods counts interfaces that give pods no address.
    pub reserves_for_all_enis: bool,
    /// A#4735: local disks that are joined are the storage of pods.
    pub joins_local_disks: bool,
    /// Gaudi accelerators are known.
    pub knows_gaudi: bool,
    /// Neuron cores, branch interfaces and EFA are resources.
    pub knows_modern_devices: bool,
    /// I7 (A#7004): how much memory nodes of a type really have is learnt from those that register.
    pub learns_memory: bool,
    /// Offerings are chosen as v1 does: from all types of a launch, and a kept list is asked. Before v0.24 otherwise.
    pub weighs_open_types: bool,
    /// Types of common families are preferred.
    pub prefers_generic: bool,
    /// On-Demand is taken wherever it is allowed.
    pub prefers_on_demand: bool,
    /// The order of types in a launch of such a release.
    pub launch_rank: LaunchRank,
    /// Spot is asked for by price and depth; before, by depth and priority.
    pub spot_by_price: bool,
    /// I1, I11, I9 (A#3292, A#8016, A#8731): which Spot offerings are too expensive next to On-Demand.
    pub spot_filter: SpotFilter,
    /// Up to v0.34: exotic types and expensive Spot are left out also where a requirement has `minValues` (A#5640).
    pub filters_all_for_min_values: bool,
    /// P7 (A#6182): how many types CreateFleet is given.
    pub launch_types: usize,
    /// P15 (#2356, A#7726): default of the feature gate ReservedCapacity; `None` in releases without it.
    pub reserved_capacity_gate: Option<bool>,
    /// A#8362: nothing is launched into Capacity Blocks that are about to end.
    pub leaves_out_ending_blocks: bool,

    // The controllers.
    /// Nodes are removed by one loop over the methods, and not by a timer on each and another loop for consolidation: v0.23.
    pub disruption_loop: bool,
    /// Consolidation in releases without that loop.
    pub consolidation: Consolidation,
    /// The Node object is made with the launch, and pods are bound to it at once.
    pub binds_pods: bool,
    /// How long a node that is to receive pods is left alone, in halves of the longest batching window; none at all for zero.
    pub nomination_half_windows: i64,
    /// A new claim is nominated for the pods that it was made for, and not only when a later pass puts pods on it.
    pub nominates_claims: bool,
    /// Limits of NodePools are asked for again before a claim is made.
    pub asks_limits_again: bool,
    /// L1 (machine lifecycle): nodes have claims; one that fails is deleted, and one without an instance is found.
    pub makes_claims: bool,
    /// L1: a claim whose node does not register within fifteen minutes is given up.
    pub awaits_registration: bool,
    /// L5 (#2349): how long a claim may be without an instance.
    pub launch_timeout: SimDuration,
    /// Launches whose calls are refused are tried again, for as long as a claim may wait.
    pub retries_launches: bool,
    /// What lacked capacity is remembered for so long.
    pub avoids_for: Option<SimDuration>,
    /// I8, I10 (A#8199, A#9054; the code itself v0.31): what is avoided where a subnet has no address left.
    pub full_subnets: FullSubnets,
    /// Messages of the interruption queue are read.
    pub reads_notices: bool,
    /// L7 (A#9064, A#9198): what becomes of a node whose instance fails its status checks.
    pub status_checks: StatusChecks,
    /// L3 (#508, #1468): how a node is marked that is on its way out.
    pub leaving_mark: LeavingMark,
    /// #933: a node on its way out triggers the batcher every ten seconds, from its taint on.
    pub leaving_nodes_trigger: bool,
    /// From the begin of its drain on.
    pub draining_nodes_trigger: bool,
    /// What tolerates the mark stays, and daemons that do not are evicted after other pods: v0.32.
    pub drains_by_taint: bool,
    /// L8 (#3063): the queue of evictions deletes pods whose time is short; these do not delay pods of later tiers.
    pub queue_forces_deletion: bool,
    /// L6 (#2709): the least time that a drain takes.
    pub shortest_drain: SimDuration,
    /// #1195, #1294: a drained node waits for its volumes, and its object for the end of the instance.
    pub awaits_instance: bool,
    /// An instance is looked up before it is terminated.
    pub looks_up_instances: bool,
    /// D7 (#423): drifted nodes are replaced (feature gate Drift, on by default).
    pub replaces_drifted: bool,
    /// #1787: a node drifts whose instance type is not to be had any more; `None` before v1.1.
    pub type_drift: Option<TypeDrift>,

    // Disruption.
    /// D1 (#367): what follows a validation that fails.
    pub failed_validation: FailedValidation,
    /// D2 (#415): each method remembers for itself that it found nothing; before, a pass does in which no method found anything.
    pub remembers_by_method: bool,
    /// D5 (#451): what has expired or drifted stays where its pods have no other place.
    pub skips_unplaceable: bool,
    /// D21 (#2812): a node whose offering is gone counts as free of charge; before, it is passed over, and ends the look at several.
    pub unknown_price_is_zero: bool,
    /// #981: at the validation of empty nodes one that is no candidate any more is not missed, and goes with the others: v0.34 to v0.36.
    pub forgets_lost_empty: bool,
    /// #1012: Spot to Spot keeps the cheapest types and not the first of the list: from v0.34.1 on.
    pub sorts_spot_to_spot: bool,
    /// The methods in the order in which they are tried.
    pub methods: &'static [Method],
    /// D3 (#472): how many nodes multi-node consolidation takes at most.
    pub multi_node_most: usize,
    /// D3: consolidation searches for a limited time.
    pub limits_searches: bool,
    /// D4: a pending pod that fits nowhere keeps consolidation from everything.
    pub pending_pods_block: bool,
    /// Up to v0.33 no pod of a candidate may go to a node that is not Ready either.
    pub wants_ready_targets: bool,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow` counts.
    pub knows_unhealthy_policy: bool,
    /// D6 (#542, #797): how many commands may be under way.
    pub queue: CommandQueue,
    /// D8 (#849): nodes whose instance is being terminated no longer count for budgets (#1735).
    pub ends_leave_budgets: bool,
    /// D9 (#897): Spot is replaced by Spot with the gate SpotToSpotConsolidation.
    pub knows_spot_to_spot: bool,
    /// D10 (#789): all pods of a node count for its cost and can block; before, those that would have to go elsewhere.
    pub counts_all_pods: bool,
    /// #1331: `do-not-disrupt` on a node protects it only with the value `true`.
    pub node_annotation_is_true: bool,
    /// D11, D12 (#1453, #1333): `consolidateAfter` is for every policy and counts from the last pod event, and a node that expires is
    /// deleted; before, v1beta1 delays emptiness alone, and replaces what expires.
    pub v1_disruption: bool,
    /// D14 (#1787): a node of an unknown type can be empty or drifted.
    pub takes_unknown_types: bool,
    /// D15 (#2033): pods of nodes that leave get no new place while their budgets never let them go.
    pub leaves_blocked_pods: bool,
    /// D15: nor while they carry `do-not-disrupt`.
    pub leaves_protected_pods: bool,
    /// D16 (#2035): single-node consolidation takes the pools in turn.
    pub takes_pools_in_turn: bool,
    /// D17 (#2180, #2206): of the empty nodes proposed those go that still are empty; before, all of them or none.
    pub drops_some_empty: bool,
    /// D18, D19 (#2180, #2423): what drift does with empty nodes.
    pub empty_drifted: EmptyDrifted,
    /// D20 (#2411): a command may take longer the more nodes are in the queue.
    pub scales_command_timeout: bool,
    /// D22 (#2874): `do-not-disrupt` of a pod may state for how long.
    pub knows_timed_protection: bool,
    /// D23 (#2962, #3006): nodes are taken in the order of what they save, the policy Balanced is known, and nodes within their own
    /// `consolidateAfter` take no pods of others.
    pub weighs_savings: bool,
    /// D24 (#3217): a replacement's price for `Balanced` is that of the cheapest offering of its type, also of one that the claim excludes.
    pub prices_every_offering: bool,
    /// Of a replacement the cheapest offering must cost less, and On-Demand is not asked for where Spot is: from v0.18 on.
    pub replaces_by_cheapest: bool,
    /// NodeRepair can be on (#1793).
    pub knows_node_repair: bool,
    /// Static pools can be on (#2521).
    pub knows_static_pools: bool,
    /// NodeOverlays can be on (#2296, #2306).
    pub knows_node_overlays: bool,
    /// Of two NodeOverlays that state one resource the lighter counts (corrected by #2767).
    pub last_overlay_states_capacity: bool,
    /// CapacityBuffers can be on (#3028, #3131).
    pub knows_capacity_buffers: bool,

    // The API.
    /// P19 (#1365, #2526): where `limits.nodes` applies.
    pub node_limit: NodeLimit,
    /// P7: `minValues` is known.
    pub knows_min_values: bool,
    /// D8: NodePools have budgets.
    pub knows_budgets: bool,
    /// D13, D12 (#991, #916): budgets name reasons, and there is a `terminationGracePeriod`.
    pub v1_api: bool,
    /// D25 (#3220): `consolidateAfter` may be left out of `disruption`, and is then zero.
    pub defaults_consolidate_after: bool,
    /// A metric tells of NodePools, and not of Provisioners.
    pub node_pool_metrics: bool,
    /// Metrics have the names of v1.
    pub v1_metrics: bool,
    /// Metrics of nodes say `provisioner`, and there are some (v0.22); of Provisioners alone (v0.16).
    pub node_metrics: bool,
    /// There is a metric of the usage of Provisioners.
    pub provisioner_metrics: bool,
}

/// Whose host ports a new claim knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostPorts {
    /// Those of its pods: daemons' are forgotten.
    WithoutDaemons,
    /// Those of daemons and of the pods of all claims of the template.
    OfTemplate,
    /// Those of daemons and of its own pods.
    OfClaim,
}

/// Which instance types a provider lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListedTypes {
    /// A few families, no bare metal.
    Few,
    /// Also i3.
    FewAndI3,
    /// All but FPGAs and g2.
    WithoutFpga,
    /// All.
    All,
    /// What EKS Auto Mode allows.
    AutoMode,
}

/// The labels that a release sets on its nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LabelSet {
    /// Type, architecture, operating system, place and capacity type.
    Basic,
    /// Also the shape of the type, GPUs and the number of pods.
    V0_16,
    /// Also network bandwidth and encryption in transit.
    V0_22,
    /// Everything; no longer the number of pods.
    V1,
    /// Those of EKS Auto Mode, under names of their own.
    AutoMode,
}

impl LabelSet {
    /// Whether nodes say in a label how many pods they take.
    pub const fn says_pods(self) -> bool {
        matches!(self, Self::V0_16 | Self::V0_22)
    }
}

/// What an admission webhook adds to a Provisioner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolDefaults {
    /// Nothing.
    Nothing,
    /// On-Demand.
    OnDemand,
    /// On-Demand, amd64.
    OnDemandAmd64,
    /// Linux, amd64, On-Demand; the newer c, m and r.
    CommonFamilies,
}

/// How types stand in a launch before v0.24.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchRank {
    /// By size.
    Size,
    /// By On-Demand price.
    OnDemand,
    /// By the cheapest open offering.
    Cheapest,
}

/// Which Spot offerings are left out beside On-Demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpotFilter {
    /// None.
    Nothing,
    /// All of a type whose cheapest available offering of any capacity type and zone costs more than the cheapest On-Demand one.
    ByCheapestOffering,
    /// All of a type whose cheapest Spot offering costs more than the cheapest On-Demand one; a type without Spot stays.
    ByCheapestSpot,
    /// Each that costs more than the cheapest On-Demand one.
    ByOffering,
}

/// Where a limit on the `nodes` of a pool that is not static applies.
///
/// Source: Karpenter core `pkg/controllers/provisioning/provisioner.go` (`Create`) and `pkg/apis/v1/nodepool.go` (`Limits.ExceededBy`) of
/// v0.37.0, v1.0.0 and v1.4.0 to v1.13.0, which count nodes since v1.0 (`pkg/controllers/nodepool/counter/controller.go`, from v1.4 on
/// `pkg/controllers/state/cluster.go`); `pkg/controllers/provisioning/scheduling/scheduler.go` of v1.10.0 and v1.11.0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeLimit {
    /// Nowhere: nodes are not counted.
    NoEffect,
    /// When a claim is created: none is, once the pool has more launched nodes than the limit.
    AtCreation,
    /// Also in a pass, which opens no claim once the pool's nodes have reached the limit. What the pass opens itself is not counted.
    InPasses,
}

/// What follows a validation that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedValidation {
    /// Single-node consolidation goes on with its next candidate; after another method the pass ends.
    NextCandidate,
    /// The next method has its turn; after the last the pass ends with an error.
    NextMethodOrError,
    /// The next method has its turn.
    NextMethod,
}

/// Consolidation in releases without the disruption loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consolidation {
    /// There is none, or the disruption loop does it.
    None,
    /// It waits until the cluster has been left alone, and takes one node at a time.
    WhenQuiet,
    /// It tries several nodes at once first, and looks again at what it has found after a while.
    Validated,
}

/// How a node on its way out is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeavingMark {
    /// As `kubectl cordon` does it.
    Cordon,
    /// By the taint `karpenter.sh/disruption=disrupting`.
    Disruption,
    /// By the taint `karpenter.sh/disrupted`.
    Disrupted,
}

/// When a node drifts whose type is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeDrift {
    /// At any look (v1.1).
    AtOnce,
    /// From an age of one hour on, every half hour (v1.6).
    Slowly,
}

/// What is avoided where a subnet has no address left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullSubnets {
    /// Nothing: the error is not known.
    Forgotten,
    /// The offering.
    OfOffering,
    /// The zone.
    OfZone,
}

/// What becomes of a node whose instance fails its status checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusChecks {
    /// Nobody asks for them.
    NotAsked,
    /// It is drained (v1.12).
    Drain,
    /// It goes at once.
    Force,
}

/// How many commands may be under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandQueue {
    /// One, until its nodes are gone.
    UntilGone,
    /// One, until it is carried out.
    One,
    /// Any number.
    Any,
}

/// What drift does with empty nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EmptyDrifted {
    /// Takes all that budgets allow in one command.
    AllAtOnce,
    /// Leaves them to emptiness.
    Never,
    /// Takes them first, one at a time.
    First,
}

impl Behaviour {
    /// That of a release; of one that is not reproduced that of the [nearest](KarpenterVersion::reproduced).
    pub fn for_release(release: KarpenterVersion) -> &'static Self {
        rows::row(release)
    }

    /// Whether launches use the capacity reservations that node classes select.
    pub fn uses_reservations(&self, gates: FeatureGates) -> bool {
        self.reserved_capacity_gate.is_some_and(|default| gates.reserved_capacity.unwrap_or(default))
    }

    /// Whether nodes whose pods fit elsewhere are removed.
    pub fn knows_consolidation(&self) -> bool {
        self.disruption_loop || self.consolidation != Consolidation::None
    }
}
