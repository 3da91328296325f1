//! Node groups: Auto Scaling groups whose instances are nodes of the cluster, run by EKS or by oneself.

mod upkeep;
mod warm_pool;

use std::collections::BTreeMap;

use super::node_pool::{AmiFamily, KubeletConfig};
use super::volumes::{DiskClass, NodeVolume, NodeVolumes};
use super::{Labels, Symbol, Taint};
pub use upkeep::{InstanceRefresh, NodeRepair, NodeShare, UpdateConfig, UpdateStrategy, VersionUpdate};
pub use warm_pool::{WarmPool, WarmPoolState};

/// A node group, from an eksctl `ClusterConfig` or a scenario's own list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeGroup {
    /// Name.
    pub name: Symbol,
    /// Whether it is an EKS managed node group: EKS drains its nodes before they end and replaces Spot instances at risk.
    pub managed: bool,
    /// Instance types, the preferred one first.
    pub instance_types: Vec<Symbol>,
    /// Capacity units of an instance of each type, in their order: `WeightedCapacity`. Empty where each instance is one unit. Sizes and
    /// `onDemandBaseCapacity` are in these units.
    pub weights: Vec<u32>,
    /// How many of its instances are On-Demand and how pools are chosen.
    pub distribution: InstancesDistribution,
    /// Whether a Spot instance at risk is replaced before it is interrupted.
    pub capacity_rebalance: bool,
    /// Whether its Auto Scaling group moves instances out of crowded zones: the process `AZRebalance` is not suspended.
    pub zone_rebalance: bool,
    /// `minSize`.
    pub min_size: u32,
    /// `desiredCapacity`.
    pub desired_size: u32,
    /// Whether `desiredCapacity` is stated: an update of the group without it leaves the size that the group has.
    pub states_desired: bool,
    /// `maxSize`.
    pub max_size: u32,
    /// Labels of its nodes.
    pub labels: Labels,
    /// Taints of its nodes.
    pub taints: Vec<Taint>,
    /// Zones; empty for every zone of the cluster.
    pub zones: Vec<Symbol>,
    /// Family of machine images.
    pub ami_family: AmiFamily,
    /// Size in bytes of the volume for pods, which is the root volume but for Bottlerocket.
    pub volume_bytes: i64,
    /// What that volume is ordered as: type, operations and throughput.
    pub disk: DiskClass,
    /// Its nodes' other EBS volumes (eksctl's `additionalVolumes`).
    pub more_volumes: Vec<NodeVolume>,
    /// `cpuCredits`: what becomes of its burstable instances whose credits are spent; `None` for what holds elsewhere.
    pub cpu_credits: Option<CreditMode>,
    /// Whether its nodes boot an image that the group names (`ami`): EKS then does not say how many pods they take.
    pub own_image: bool,
    /// Kubelet settings that change what its nodes offer: `maxPodsPerNode`, and what `bottlerocket` states.
    pub kubelet: KubeletConfig,
    /// What its nodes' kubelets register beside labels and taints of the group.
    pub registers: Registration,
    /// `updateConfig`.
    pub update_config: UpdateConfig,
    /// The update with which a run begins: the group of a policy states another release or machine image than that of the scenario.
    pub updated_at_start: Option<VersionUpdate>,
    /// `warmPoolConfig`; `None` where it is off.
    pub warm_pool: Option<WarmPool>,
    /// `nodeRepairConfig`; `None` where it is off.
    pub repair: Option<NodeRepair>,
    /// Tags of the Auto Scaling group.
    pub tags: Labels,
    /// Tags of a managed group that its Auto Scaling group does not have: EKS does not hand them on.
    pub own_tags: Labels,
    /// The cluster with which eksctl makes the group; `None` for a scenario's own groups.
    pub eksctl_cluster: Option<Symbol>,
    /// The keys of eksctl's form of it with their values, each as one text, but for sizes, labels and taints; empty for a scenario's own groups.
    pub statement: BTreeMap<String, String>,
}

/// Labels and taints that kubelets register of themselves: nobody who reads the group or its tags knows of them before a node is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registration {
    /// Labels.
    pub labels: Labels,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Whether `node-lifecycle` says how the instance was bought, as eksctl has it on Amazon Linux 2 and Ubuntu: `spot` or
    /// `on-demand`.
    pub lifecycle: bool,
}

/// GiB of the volume that Bottlerocket boots from: as much as Karpenter orders for it.
const BOTTLEROCKET_ROOT_GIB: i64 = 4;

impl NodeGroup {
    /// The EBS volumes of each of its nodes, that for pods first: the root volume, of Bottlerocket one beside the root.
    ///
    /// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/defaults.go`, `bottlerocketDataDisk` and `bottlerocketOSDisk`.
    pub fn volumes(&self) -> NodeVolumes {
        let for_pods = NodeVolume { gib: self.volume_bytes.div_euclid(1 << 30), class: self.disk };
        let boots = (self.ami_family == AmiFamily::Bottlerocket)
            .then(|| NodeVolume { gib: BOTTLEROCKET_ROOT_GIB, class: DiskClass::of_type("gp3") });
        std::iter::once(for_pods).chain(boots).chain(self.more_volumes.iter().copied()).collect()
    }

    /// What the name of its Auto Scaling group begins with, if EKS or CloudFormation draws the rest.
    ///
    /// Source: EKS user guide, managed node groups (`eks-<name>-<uuid>`); eksctl `pkg/cfn/manager/nodegroup.go`,
    /// `makeNodeGroupStackName`, whose stack has the resource `NodeGroup`.
    fn auto_scaling_group_prefix(&self) -> Option<String> {
        auto_scaling_group_prefix(self.name.as_str(), self.managed, self.eksctl_cluster.map(Symbol::as_str))
    }

    /// The name of its Auto Scaling group: of a managed group and of one that eksctl makes with an ending that follows from the group's
    /// name, where EKS and CloudFormation draw one; of a scenario's own groups that nobody manages the group's name.
    pub fn auto_scaling_group_name(&self) -> String {
        let Some(prefix) = self.auto_scaling_group_prefix() else { return self.name.to_string() };
        let (first, second) = (digits(&prefix), digits(self.name.as_str()));
        if self.managed {
            let (time, rest) = first.split_at(8);
            let (middle, version) = rest.split_at(4);
            format!("{prefix}{time}-{middle}-{version}-{}-{}", &second[..4], &second[4..])
        } else {
            format!("{prefix}{}", first[..12].to_uppercase())
        }
    }

    /// Whether `text` names its Auto Scaling group: by the group's own name, or as AWS calls it, whatever the ending.
    pub fn is_called(&self, text: &str) -> bool {
        is_group_called(text, self.name.as_str(), self.managed, self.eksctl_cluster.map(Symbol::as_str))
    }
}

/// What the name of a group's Auto Scaling group begins with, if EKS or CloudFormation draws the rest.
fn auto_scaling_group_prefix(name: &str, managed: bool, eksctl_cluster: Option<&str>) -> Option<String> {
    if managed {
        return Some(format!("eks-{name}-"));
    }
    eksctl_cluster.map(|cluster| format!("eksctl-{cluster}-nodegroup-{name}-NodeGroup-"))
}

/// Whether `text` names the Auto Scaling group of the node group `name`, of EKS or of eksctl for a cluster: by the group's own name, or as
/// AWS calls it, whatever the ending.
pub fn is_group_called(text: &str, name: &str, managed: bool, eksctl_cluster: Option<&str>) -> bool {
    // An EKS group's ending is a UUID; a longer one is that of a group whose name goes on.
    const LONGEST: usize = 36;
    let is_ending = |rest: &str| {
        let by_eks = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let known = |byte: u8| if managed { by_eks(byte) } else { byte.is_ascii_alphanumeric() };
        !rest.is_empty() && rest.len() <= LONGEST && rest.bytes().all(known)
    };
    let prefix = auto_scaling_group_prefix(name, managed, eksctl_cluster);
    text == name || prefix.and_then(|prefix| text.strip_prefix(&prefix)).is_some_and(is_ending)
}

/// Sixteen hexadecimal digits that follow from a text (FNV-1a, its bits mixed once more for short texts).
fn digits(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, step);
    format!("{:016x}", (hash ^ (hash >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// What becomes of a burstable instance whose CPU credits are spent.
///
/// Source: EC2 API reference, `CreditSpecification`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CreditMode {
    /// Its CPU goes down to the baseline.
    Standard,
    /// It goes on at a price.
    Unlimited,
}

impl CreditMode {
    /// EC2's default for a family: standard for T2, unlimited for all others.
    pub fn default_of(family: &str) -> Self {
        if family == "t2" { Self::Standard } else { Self::Unlimited }
    }
}

/// How many instances of a group are On-Demand, and how the pools of either kind are chosen.
///
/// Source: EC2 Auto Scaling API reference, `InstancesDistribution`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstancesDistribution {
    /// `OnDemandBaseCapacity`: so many instances are On-Demand before anything is Spot.
    pub on_demand_base: u32,
    /// `OnDemandPercentageAboveBaseCapacity`, 0 to 100.
    pub on_demand_percent: u32,
    /// `OnDemandAllocationStrategy`.
    pub on_demand_strategy: OnDemandStrategy,
    /// `SpotAllocationStrategy`.
    pub spot_strategy: SpotStrategy,
}

/// How a group chooses among On-Demand pools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnDemandStrategy {
    /// The preferred type that has capacity.
    #[default]
    Prioritized,
    /// The cheapest.
    LowestPrice,
}

/// How a group chooses among Spot pools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpotStrategy {
    /// The cheapest pools, used evenly.
    LowestPrice {
        /// `SpotInstancePools`: how many.
        pools: u32,
    },
    /// The deepest pool.
    CapacityOptimized,
    /// Among pools of nearly the greatest depth, the preferred type.
    CapacityOptimizedPrioritized,
    /// Among deep pools, the cheapest.
    PriceCapacityOptimized,
}

impl InstancesDistribution {
    /// Everything On-Demand.
    pub const ON_DEMAND: Self = Self {
        on_demand_base: 0,
        on_demand_percent: 100,
        on_demand_strategy: OnDemandStrategy::Prioritized,
        spot_strategy: SpotStrategy::PriceCapacityOptimized,
    };
    /// Everything Spot, as a managed node group buys it.
    pub const SPOT: Self = Self { on_demand_percent: 0, ..Self::ON_DEMAND };

    /// How many of `desired` instances are On-Demand; fractions count for On-Demand.
    pub fn on_demand_of(&self, desired: u32) -> u32 {
        let base = desired.min(self.on_demand_base);
        let above = u64::from(desired - base) * u64::from(self.on_demand_percent.min(100));
        base + above.div_ceil(100) as u32
    }

    /// Whether no instance is Spot.
    pub fn is_on_demand(&self) -> bool {
        self.on_demand_percent >= 100
    }

    /// Whether every instance is Spot.
    pub fn is_spot(&self) -> bool {
        self.on_demand_base == 0 && self.on_demand_percent == 0
    }
}

/// The group that a node belongs to, by its labels, and whether EKS manages it. A node whose labels name no group is of one that is
/// called after its instance type.
pub fn group_of_node<'l>(label: impl Fn(&str) -> Option<&'l str>) -> (String, bool) {
    if let Some(name) = label("eks.amazonaws.com/nodegroup") {
        return (name.to_owned(), true);
    }
    if let Some(name) = label("alpha.eksctl.io/nodegroup-name") {
        return (name.to_owned(), false);
    }
    let kind = label("node.kubernetes.io/instance-type").or_else(|| label("beta.kubernetes.io/instance-type"));
    (format!("self-managed-{}", kind.unwrap_or("unknown").replace('.', "-")), false)
}

/// Labels by which a node says how its machine was bought where neither Karpenter nor EKS does. Nothing holds nodes to them.
///
/// Source: eksctl `pkg/nodebootstrap/assets/scripts/bootstrap.helper.sh` (`node-lifecycle`); AWS CDK `aws-eks`, `addAutoScalingGroupCapacity`,
/// which labels its Spot nodes `lifecycle=Ec2Spot`; node groups made with terraform-aws-eks, `--node-labels=node.kubernetes.io/lifecycle=spot`.
const LIFECYCLES: [&str; 3] = ["node.kubernetes.io/lifecycle", "node-lifecycle", "lifecycle"];

/// Whether a node's labels say that it is Spot: Karpenter's or that of a managed group, else one that people give their nodes.
pub fn is_spot_node<'l>(label: impl Fn(&str) -> Option<&'l str>) -> bool {
    let sure = ["karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType"].iter().find_map(|key| label(key));
    if let Some(kind) = sure {
        return kind.eq_ignore_ascii_case("spot");
    }
    let says = |key: &&str| {
        label(key).is_some_and(|label| ["spot", "Ec2Spot"].iter().any(|is| label.eq_ignore_ascii_case(is)))
    };
    LIFECYCLES.iter().any(says)
}

/// The label by which a node says how it was bought, if it is one that people give their nodes.
pub fn says_how_bought<'l>(label: impl Fn(&str) -> Option<&'l str>) -> Option<&'static str> {
    let sure = ["karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType"].iter().any(|key| label(key).is_some());
    LIFECYCLES.into_iter().find(|key| !sure && label(key).is_some())
}

#[cfg(test)]
mod tests {
    use super::{InstancesDistribution, is_spot_node, says_how_bought};

    #[test]
    fn spot_node_groups_are_detected_from_labels() {
        for (labels, spot, by) in [
            (&[("eks.amazonaws.com/capacityType", "SPOT")][..], true, None),
            (&[("karpenter.sh/capacity-type", "spot")], true, None),
            (&[("karpenter.sh/capacity-type", "on-demand"), ("lifecycle", "Ec2Spot")], false, None),
            (&[("node.kubernetes.io/lifecycle", "spot")], true, Some("node.kubernetes.io/lifecycle")),
            (&[("node-lifecycle", "on-demand")], false, Some("node-lifecycle")),
            (&[("lifecycle", "Ec2Spot")], true, Some("lifecycle")),
            (&[("role", "spot")], false, None),
        ] {
            let label = |key: &str| labels.iter().find(|(this_key, _)| *this_key == key).map(|(_, value)| *value);
            assert_eq!((is_spot_node(label), says_how_bought(label)), (spot, by), "{labels:?}");
        }
    }

    #[test]
    fn on_demand_base_and_share_round_up() {
        let mixed = InstancesDistribution { on_demand_base: 2, on_demand_percent: 25, ..InstancesDistribution::SPOT };
        let counts: Vec<u32> = [0, 1, 2, 3, 6, 7, 10].iter().map(|&desired| mixed.on_demand_of(desired)).collect();
        assert_eq!(counts, [0, 1, 2, 3, 3, 4, 4]);
        assert_eq!(InstancesDistribution::SPOT.on_demand_of(9), 0);
        assert_eq!(InstancesDistribution::ON_DEMAND.on_demand_of(9), 9);
    }
}
