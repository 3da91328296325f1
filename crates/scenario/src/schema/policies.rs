//! Policies: who adds and removes nodes, and how it is set up.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::Form;
use super::cluster::{NodeGroups, Tier, VersionsKeys};
use super::fargate::FargateKeys;
use super::kind::{
    File, FolderName, Kind, Name, Number, OneOrMore, Placed, Positive, Read, Scalar, Share, Show, Whole, kind, words,
};
use super::vertical::VerticalKeys;
use crate::definition::{Autoscaler, KarpenterOptions, PolicyVariant};
use crate::domain::controller_time::ControllerTime;
use crate::domain::workload::ObjectName;
use crate::domain::{RebalanceReaction, SimDuration, Symbol};
use crate::file::Reading;
use crate::tree::Node;
use nodecast_karpenter::packing::{MinValuesPolicy, PackerKind, PreferencePolicy};
use nodecast_model::auto_mode::BuiltIn;
use nodecast_model::domain::topology::{NodeInclusionPolicy, TopologySpread, WhenUnsatisfiable};

section! {
    /// Each policy is the scenario with its own settings laid over it. All meet the same load, prices, capacity and
    /// faults for a seed.
    POLICY: "a policy", "`policies[]`";
    example "policies:
  - { name: today, autoscaler: karpenter }
  - name: next
    autoscaler: karpenter
    packer: cost-aware
    versions: { karpenter: v1.14 }
    karpenter: { feature_gates: { spot_to_spot_consolidation: true } }
    manifests: [more.yaml]
  - name: handler
    autoscaler: karpenter
    karpenter: { interruption_queue: false }
    node_termination_handler: { daemon_set: kube-system/handler }
  - name: cas
    autoscaler: cluster-autoscaler
    flags:
      expander: least-waste
      scale-down-unneeded-time: 5m
      balancing-ignore-label: [topology.ebs.csi.aws.com/zone]
    nodeGroups: [{ name: workers, instanceTypes: [m5.large], min: 1, max: 20 }]
    controller_time: { cluster_autoscaler: { speed: 2 } }
  - name: auto
    autoscaler: eks-auto-mode
    eks_auto_mode: { node_pools: [general-purpose, system] }
  - name: jobs-on-fargate
    autoscaler: static
    fargate: { profiles: [{ name: jobs, selectors: [{ namespace: jobs }] }] }
  - name: hasty
    autoscaler: static
    versions: { vertical-pod-autoscaler: \"1.6\" }
    vertical_pod_autoscaler: { updater: { in-recommendation-bounds-eviction-lifetime-threshold: 1h } }
  - { name: fixed, autoscaler: static, control_plane_tier: 4xl }
";
    impl PolicyVariant: {
        /// Its name; a comparison keeps its report in a folder of that name.
        name: FolderName;
        /// Who adds and removes nodes. Under `static` (or `none`) nobody does: the groups keep their sizes.
        autoscaler: AutoscalerWord;
    } aside {
        /// Flags of Cluster Autoscaler as on its command line; one that may be given several times is a list.
        /// [cluster-autoscaler.md](cluster-autoscaler.md#flags)
        flags["flag without its dashes"]: BTreeMap<Symbol, OneOrMore<Scalar>>, or "the defaults of the release";
    } {
        /// Who packs pods for Karpenter: Karpenter itself, or a search for the cheapest nodes under the same
        /// constraints.
        packer: PackerWord = PackerKind::Karpenter;
    } aside {
        /// Releases under this policy.
        versions: VersionsKeys, or "those of the scenario";
        /// How Karpenter is set up under this policy.
        karpenter: KarpenterKeys, or "that of the scenario";
        /// EKS Auto Mode under this policy.
        eks_auto_mode: AutoModeKeys, or "that of the scenario";
        /// EKS on Fargate under this policy.
        fargate: FargateKeys, or "that of the scenario";
        /// Flags of the Vertical Pod Autoscaler's programs under this policy.
        vertical_pod_autoscaler: VerticalKeys, or "those of the scenario";
        /// AWS Node Termination Handler under this policy.
        node_termination_handler: Handler, or "that of the scenario";
        /// How long controllers take under this policy.
        controller_time: ControllerTimes, or "that of the scenario";
        /// Tier of the control plane under this policy.
        control_plane_tier: Placed<Tier>, or "that of the cluster";
        /// Objects of this policy, over those of the scenario: one of the same kind and name takes the place of the
        /// other.
        manifests: Vec<File>, or "none";
        /// Node groups of this policy, likewise.
        "nodeGroups" as node_groups: NodeGroups, or "none";
    } also {
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
}

section! {
    /// What a policy leaves out is as the scenario states it.
    KARPENTER: "`karpenter`", "`karpenter`: how Karpenter is set up";
    example "karpenter:
  interruption_queue: true
  batch_idle_duration: 2s
  batch_max_duration: 30s
  preference_policy: Ignore
  min_values_policy: BestEffort
  image_release_every: 14d
  vm_memory_overhead_percent: 6%
  reserved_enis: 1
  scheduler_config:
    podTopologySpread:
      defaultConstraints:
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: DoNotSchedule
          minDomains: 2
          nodeAffinityPolicy: Honor
          nodeTaintsPolicy: Ignore
  feature_gates:
    spot_to_spot_consolidation: true
    node_repair: true
    static_capacity: true
    node_overlay: true
    capacity_buffer: true
    reserved_capacity: false
";
    struct KarpenterKeys {
        /// Whether it has a queue to read interruption notices from (`settings.interruptionQueue`); releases from
        /// v0.19 on read it.
        interruption_queue: bool, over true;
        /// How long it waits for one more pod before it schedules (`BATCH_IDLE_DURATION`).
        batch_idle_duration: Positive, over KarpenterOptions::default().batch_idle;
        /// How long it waits at most, since the first pod (`BATCH_MAX_DURATION`).
        batch_max_duration: Positive, over KarpenterOptions::default().batch_max;
        /// Whether it tries preferences of pods before it gives them up (`PREFERENCE_POLICY`, from v1.4 on).
        preference_policy: Preferences, over PreferencePolicy::Respect;
        /// What becomes of `minValues` that too few types are left for (`MIN_VALUES_POLICY`, from v1.6 on).
        min_values_policy: MinValues, over MinValuesPolicy::Strict;
        /// Time between two releases of machine images, each of which replaces the nodes of classes that take the newest
        /// (`al2023@latest`, a name with `*`, tags), on Wednesdays at 18:00 UTC if it is a number of weeks (assumed).
        image_release_every: Positive, or "none comes out";
        /// The share of a type's memory that it takes the hypervisor and the kernel to keep, until it has seen a node of
        /// the type (`VM_MEMORY_OVERHEAD_PERCENT`).
        vm_memory_overhead_percent: Millionths, over KarpenterOptions::default().vm_memory_overhead_millionths;
        /// Network interfaces of each node that give pods no addresses, as with custom networking (`RESERVED_ENIS`).
        reserved_enis: Whole<0, 1_000>, over KarpenterOptions::default().reserved_enis;
        /// The part of kube-scheduler's configuration that it follows (`SCHEDULER_CONFIG`, on `main` after v1.14).
        scheduler_config: SchedulerConfigKeys, or "none";
        /// Its feature gates.
        feature_gates: Gates, or "those of the release";
    }
}

section! {
    SCHEDULER_CONFIG: "`scheduler_config`", "`karpenter.scheduler_config`";
    becomes Vec<TopologySpread>, |_, _, own: Self| Ok(own.pod_topology_spread);
    struct SchedulerConfigKeys {
        /// Spread of pods that state none.
        "podTopologySpread" as pod_topology_spread: PodTopologySpreadKeys = Vec::new(), or "no default constraints";
    }
}

section! {
    POD_TOPOLOGY_SPREAD: "`podTopologySpread`", "`karpenter.scheduler_config.podTopologySpread`";
    becomes Vec<TopologySpread>, |_, _, own: Self| Ok(own.default_constraints);
    struct PodTopologySpreadKeys {
        /// Constraints of pods without `topologySpreadConstraints`. They count the pods of the same Services and the same ReplicaSet or
        /// StatefulSet.
        "defaultConstraints" as default_constraints: DefaultConstraints = Vec::new(), or "none";
    }
}

section! {
    /// A default constraint has no selector: each pod gets its own.
    DEFAULT_CONSTRAINT: "a default constraint", "`defaultConstraints[]`";
    becomes TopologySpread, |_, _, own: Self| Ok(TopologySpread {
        topology_key: own.topology_key,
        max_skew: own.max_skew,
        when_unsatisfiable: own.when_unsatisfiable,
        selector: None,
        min_domains: own.min_domains,
        node_affinity_policy: own.node_affinity_policy,
        node_taints_policy: own.node_taints_policy,
        match_label_keys: Vec::new(),
    });
    struct DefaultConstraintKeys {
        /// Largest difference between the pods of two domains.
        "maxSkew" as max_skew: Whole<1, { i32::MAX as i64 }, i64>;
        /// Node label whose values are the domains.
        "topologyKey" as topology_key["label"]: Name;
        /// Whether it is required or preferred.
        "whenUnsatisfiable" as when_unsatisfiable: Unsatisfiable;
        /// Number of domains below which the smallest count is zero.
        "minDomains" as min_domains: Whole<1, { i32::MAX as i64 }, i64>, or "1";
        /// Whether nodes that the pod does not select are no domains.
        "nodeAffinityPolicy" as node_affinity_policy: Inclusion = NodeInclusionPolicy::Honor;
        /// Whether nodes with taints that the pod does not tolerate are no domains.
        "nodeTaintsPolicy" as node_taints_policy: Inclusion = NodeInclusionPolicy::Ignore;
    }
}

kind! {
    /// Default constraints, each of another key or action.
    DefaultConstraints: Vec<DefaultConstraintKeys> => Vec<TopologySpread>, |reading, node, _, constraints| {
        let same = |one: &TopologySpread, other: &TopologySpread| {
            (one.topology_key, one.when_unsatisfiable) == (other.topology_key, other.when_unsatisfiable)
        };
        let twice = (1..constraints.len()).find(|&place| constraints[..place].iter().any(|constraint| same(constraint, &constraints[place])));
        let Some(place) = twice else { return Ok(constraints) };
        Err(reading
            .error(node.items()[place].at, format!("two default constraints on `{}`", constraints[place].topology_key))
            .because("Karpenter does not start with a repeated key and `whenUnsatisfiable`")
            .help("keep one of them"))
    }
}

section! {
    /// For policies with `autoscaler: eks-auto-mode`: Karpenter as AWS runs it, on instances that AWS manages. Its NodePools are those
    /// whose `nodeClassRef.group` is `eks.amazonaws.com`, and built-in ones. What a policy leaves out is as the scenario states it.
    AUTO_MODE: "`eks_auto_mode`", "`eks_auto_mode`: EKS Auto Mode";
    example "eks_auto_mode:
  node_pools: [general-purpose, system]
  fee_share: 12%
  fee_shares: { m7i.large: 10% }
  image_release_every: 7d
  image_release_day: wednesday
";
    struct AutoModeKeys {
        /// Built-in NodePools that are switched on.
        node_pools: Vec<BuiltInWord>, or "both where no manifest has a NodePool of EKS Auto Mode, else none";
        /// What AWS takes for managing an instance, as a share of its type's On-Demand price.
        fee_share: Millionths, or "AWS's: 12%, and from 2026-07-01 on 7.8% for G families, 4.8% for P families and Trainium";
        /// The same for single types.
        fee_shares["instance type"]: FeeShareOfTypes, or "`fee_share`";
        /// Time between two releases of the machine image, each of which replaces all nodes (assumed).
        image_release_every: Positive, or "7d";
        /// The day of the week at which one comes out, at 18:00 UTC (assumed).
        image_release_day: Weekday, or "`wednesday`";
    }
}

section! {
    GATES: "`feature_gates`", "`karpenter.feature_gates`";
    struct Gates {
        /// Spot nodes may be replaced by cheaper Spot nodes.
        spot_to_spot_consolidation: bool, over false;
        /// Nodes that are unhealthy for long are replaced.
        node_repair: bool, over false;
        /// NodePools with `replicas` keep so many nodes.
        static_capacity: bool, over false;
        /// NodeOverlays count, from v1.7 on.
        node_overlay: bool, over false;
        /// CapacityBuffers keep room free, from v1.14 on.
        capacity_buffer: bool, over false;
        /// Launches go into the capacity reservations that EC2NodeClasses select, and into no others, from v1.3 on. Where it is
        /// off EC2 fills any open reservation that matches, and the node is On-Demand.
        reserved_capacity: bool, or "on from v1.6, off before";
    }
}

section! {
    /// Cordons and drains a node on its interruption notice, if one of its pods runs there.
    HANDLER: "`node_termination_handler`", "`node_termination_handler`";
    example "node_termination_handler: { daemon_set: kube-system/handler, rebalance: drain }
";
    struct Handler {
        /// Its DaemonSet, which the manifests hold.
        daemon_set: Placed<ObjectName>;
        /// What it does when EC2 recommends to replace the instance.
        rebalance: Rebalance = RebalanceReaction::Ignore;
    }
}

section! {
    /// `measured` has each controller take the time that the real program was measured to take, and call the API
    /// server as fast as its client may; `none` has all of them act at once. A map says it for each controller; one
    /// that it leaves out is as the scenario has it. Limits of the control plane that are not given go by its tier,
    /// `cluster.control_plane_tier`.
    CONTROLLER_TIME: "`controller_time`", "`controller_time`: how long controllers take";
    example "controller_time:
  kube_controller_manager: { qps: 20, burst: 30, concurrent_replicaset_syncs: 5, concurrent_horizontal_pod_autoscaler_syncs: 10, metrics_call: 250ms }
  kube_scheduler: { qps: 50, burst: 100 }
  karpenter: { qps: 200, burst: 300, speed: 1 }
  cluster_autoscaler: { qps: 5, burst: 10, speed: 0.5 }
";
    struct ControllerTimeKeys {
        /// How fast its controllers make and delete pods.
        kube_controller_manager: Time<ControllerManagerTime>, over TimeSetting::Measured;
        /// How fast it binds pods.
        kube_scheduler: Time<SchedulerTime>, over TimeSetting::Measured;
        /// How long Karpenter's scheduling passes and looks at nodes take.
        karpenter: Time<KarpenterTime>, over TimeSetting::Measured;
        /// How long an iteration of Cluster Autoscaler takes.
        cluster_autoscaler: Time<ClusterAutoscalerTime>, over TimeSetting::Measured;
    }
}

section! {
    /// Each controller has a client of its own with these limits.
    CONTROLLER_MANAGER_TIME: "`kube_controller_manager`", "`controller_time.kube_controller_manager`";
    struct ControllerManagerTime {
        /// Calls per second in the long run (`--kube-api-qps`).
        qps: Calls, over ControllerTime::MEASURED.controller_manager.map_or(0, |time| time.calls.per_second);
        /// Calls at once after a pause (`--kube-api-burst`).
        burst: Calls, over ControllerTime::MEASURED.controller_manager.map_or(0, |time| time.calls.burst);
        /// ReplicaSets that are worked on at once.
        concurrent_replicaset_syncs: Whole<1, 10_000>, over ControllerTime::MEASURED.controller_manager.map_or(0, |time| time.replica_set_syncs);
        /// HorizontalPodAutoscalers that are evaluated at a time (`--concurrent-horizontal-pod-autoscaler-syncs`).
        concurrent_horizontal_pod_autoscaler_syncs: Whole<1, 100_000>, or "that of the control plane's tier: 5, 50, 100, 200, 200";
        /// Time that each of them waits for its metrics, in addition to 2 to 10 ms of its own.
        metrics_call: SimDuration, over SimDuration::ZERO;
    }
}

section! {
    SCHEDULER_TIME: "`kube_scheduler`", "`controller_time.kube_scheduler`";
    struct SchedulerTime {
        /// Calls per second in the long run (`--kube-api-qps`).
        qps: Calls, or "that of the control plane's tier: 50, from 500 nodes on 100; 167, 283, 400, 400";
        /// Calls at once after a pause (`--kube-api-burst`).
        burst: Calls, or "that of the control plane's tier: 100; 167, 283, 400, 400";
    }
}

section! {
    KARPENTER_TIME: "`karpenter`", "`controller_time.karpenter`";
    struct KarpenterTime {
        /// Calls per second in the long run (`KUBE_CLIENT_QPS`).
        qps: Calls, over ControllerTime::MEASURED.karpenter.map_or(0, |time| time.calls.per_second);
        /// Calls at once after a pause (`KUBE_CLIENT_BURST`).
        burst: Calls, over ControllerTime::MEASURED.karpenter.map_or(0, |time| time.calls.burst);
        /// How fast it computes, as a multiple of the processors that were measured.
        speed: Number<10, 1_000_000>, over 1.0;
    }
}

section! {
    CLUSTER_AUTOSCALER_TIME: "`cluster_autoscaler`", "`controller_time.cluster_autoscaler`";
    struct ClusterAutoscalerTime {
        /// Calls per second in the long run (`--kube-client-qps`).
        qps: Calls, over ControllerTime::MEASURED.cluster_autoscaler.map_or(0, |time| time.calls.per_second);
        /// Calls at once after a pause (`--kube-client-burst`).
        burst: Calls, over ControllerTime::MEASURED.cluster_autoscaler.map_or(0, |time| time.calls.burst);
        /// How fast it computes, as a multiple of the processors that were measured.
        speed: Number<10, 1_000_000>, over 1.0;
    }
}

/// Policies: read by hand, after what they are laid over.
pub type Policies = Vec<PolicyVariant>;

/// How long all controllers take.
pub type ControllerTimes = Time<ControllerTimeKeys>;

/// A number of calls.
type Calls = Whole<1, 1_000_000>;

words! {
    /// Who adds and removes nodes.
    AutoscalerWord: Autoscaler,
    "karpenter" => Autoscaler::Karpenter,
    "cluster-autoscaler" => Autoscaler::ClusterAutoscaler,
    "eks-auto-mode" => Autoscaler::EksAutoMode,
    "static" => Autoscaler::None,
    "none" => Autoscaler::None,
}

words! {
    /// A NodePool that comes with EKS Auto Mode.
    BuiltInWord: BuiltIn, "general-purpose" => BuiltIn::GeneralPurpose, "system" => BuiltIn::System
}

words! {
    /// A day of the week, Monday first.
    Weekday: u32,
    "monday" => 0, "tuesday" => 1, "wednesday" => 2, "thursday" => 3, "friday" => 4, "saturday" => 5, "sunday" => 6
}

kind! {
    /// A share of up to the whole, in millionths.
    Millionths: Share<100> => u32, |_, _, _, share| Ok(libm::round(share * 1e6) as u32);
    show |share| Share::<100>::show(&(f64::from(*share) / 1e6))
}

kind! {
    /// Shares of single instance types, in millionths.
    FeeShareOfTypes: BTreeMap<Symbol, u32> = Form::Free("", Box::new(Millionths::form())), |reading, node, what| {
        let mut shares = BTreeMap::new();
        for entry in reading.reader.entries(node, what)? {
            let name = Symbol::new(&entry.key);
            if reading.region().instance_type(name).is_none() {
                return Err(reading
                    .error(entry.key_at, format!("`{name}` is not an instance type of {}", reading.region().name))
                    .because("unknown instance type")
                    .help("write for example `m5.large`"));
            }
            shares.insert(name, Millionths::read(reading, &entry.value, "fee_share")?);
        }
        Ok(shares)
    }
}

words! {
    /// Who packs pods.
    PackerWord: PackerKind, "karpenter" => PackerKind::Karpenter, "cost-aware" => PackerKind::CostAware
}

words! {
    /// What is done about a rebalance recommendation.
    Rebalance: RebalanceReaction,
    "ignore" => RebalanceReaction::Ignore, "cordon" => RebalanceReaction::Cordon, "drain" => RebalanceReaction::Drain
}

words! {
    /// Whether a spread is required.
    Unsatisfiable: WhenUnsatisfiable,
    "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule, "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway
}

words! {
    /// Which nodes are domains.
    Inclusion: NodeInclusionPolicy, "Honor" => NodeInclusionPolicy::Honor, "Ignore" => NodeInclusionPolicy::Ignore
}

words! {
    /// What Karpenter makes of preferences.
    Preferences: PreferencePolicy, "Respect" => PreferencePolicy::Respect, "Ignore" => PreferencePolicy::Ignore
}

words! {
    /// What Karpenter makes of `minValues` that cannot be had.
    MinValues: MinValuesPolicy, "Strict" => MinValuesPolicy::Strict, "BestEffort" => MinValuesPolicy::BestEffort
}

/// How long a controller takes: as measured, no time, or by keys that are laid over what holds otherwise.
#[derive(Clone, PartialEq, Debug)]
pub enum TimeSetting<K> {
    /// As measured.
    Measured,
    /// No time.
    Nothing,
    /// By these keys.
    Keys(K),
}

/// `measured`, `none`, or a section.
pub struct Time<K>(PhantomData<K>);

impl<K: Kind> Time<K> {
    const WORDS: &[(&str, bool)] = &[("measured", true), ("none", false)];
}

impl<K: Kind> Kind for Time<K> {
    type Value = TimeSetting<K::Value>;

    fn form() -> Form {
        Form::Either(Box::new(Form::Words(Self::WORDS.iter().map(|(word, _)| *word).collect())), Box::new(K::form()))
    }

    fn read<'s>(reading: &mut Reading<'_, 's>, node: &Node<'s>, what: &str) -> Read<Self::Value> {
        if node.as_text().is_none() {
            return K::read(reading, node, what).map(TimeSetting::Keys);
        }
        let measured = reading.reader.choice(node, "controller_time", Self::WORDS)?;
        Ok(if measured { TimeSetting::Measured } else { TimeSetting::Nothing })
    }
}

impl<K: Kind> Show for Time<K> {
    fn show(_: &Self::Value) -> String {
        Self::WORDS[0].0.to_owned()
    }
}
