//! Karpenter's NodePool and EC2NodeClass (and, read into the same shape, the older Provisioner and AWSNodeTemplate), and
//! EKS managed node groups.

use super::capability::Capability;
use super::control_plane_tier::ControlPlaneTier;
use super::labels::Labels;
use super::pod::IntOrPercent;
use super::requirements::Requirement;
use super::resources::Resources;
use super::symbol::{Symbol, well_known};
use super::taints::Taint;
use super::time::SimDuration;
use super::volumes::{DiskClass, NodeVolume};

/// A NodePool (`karpenter.sh/v1`), or a Provisioner (`v1alpha5`) read as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodePool {
    /// Name.
    pub name: Symbol,
    /// Higher is tried first; 0 unless given.
    pub weight: i32,
    /// `spec.template.spec.requirements`, as written and in order.
    pub requirements: Vec<Requirement>,
    /// Labels that its nodes get.
    pub labels: Labels,
    /// Annotations that its nodes get.
    pub annotations: Labels,
    /// Taints that its nodes keep.
    pub taints: Vec<Taint>,
    /// Taints that its nodes start with and something else removes.
    pub startup_taints: Vec<Taint>,
    /// Limits; only the resources named bind. May name `nodes`.
    pub limits: Resources,
    /// The node class.
    pub node_class: Symbol,
    /// What may end a node's life.
    pub disruption: Disruption,
    /// Age at which a node is replaced; `None` for never.
    pub expire_after: Option<SimDuration>,
    /// Longest time that draining may take.
    pub termination_grace_period: Option<SimDuration>,
    /// A fixed number of nodes, which makes the pool static.
    pub replicas: Option<u32>,
    /// Kubelet settings of a Provisioner, which carried them itself.
    pub kubelet: Option<KubeletConfig>,
    /// Whether its node class is one of EKS Auto Mode (`nodeClassRef.group: eks.amazonaws.com`): only Auto Mode uses it.
    pub auto_mode: bool,
    /// Whether this was a Provisioner.
    pub legacy: bool,
    /// Whether Karpenter may use it: its `Ready` condition, if there is one, is true, and it is not being deleted.
    pub ready: bool,
}

/// When Karpenter may remove or replace a node of a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disruption {
    /// Which nodes qualify.
    pub policy: ConsolidationPolicy,
    /// How long a node must have been left alone; `None` for `Never`.
    pub consolidate_after: Option<SimDuration>,
    /// Limits on how many at once.
    pub budgets: Vec<Budget>,
}

/// Which nodes consolidation considers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConsolidationPolicy {
    /// Only nodes without pods other than daemons.
    WhenEmpty,
    /// Empty nodes and nodes whose pods fit elsewhere or on a cheaper node.
    WhenEmptyOrUnderutilized,
    /// As the former, weighing savings against disruption (v1.14).
    Balanced,
}

/// Why a node is disrupted, as budgets name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DisruptionReason {
    /// It does not pay for itself.
    Underutilized,
    /// It has no pods.
    Empty,
    /// It no longer looks as its NodePool or NodeClass says.
    Drifted,
    /// It has reached its age limit: a reason in v0.32 to v0.37, which no budget can name.
    Expired,
}

impl DisruptionReason {
    /// Every reason that budgets can name.
    pub const ALL: [Self; 3] = [Self::Underutilized, Self::Empty, Self::Drifted];

    /// The reason as Karpenter writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Underutilized => "Underutilized",
            Self::Expired => "Expired",
        }
    }
}

/// A disruption budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Nodes that may be disrupted at a time.
    pub nodes: IntOrPercent,
    /// The reasons it limits; `None` for all.
    pub reasons: Option<Vec<DisruptionReason>>,
    /// Cron expression (UTC) at which it becomes active; `None` for always.
    pub schedule: Option<String>,
    /// How long it stays active.
    pub duration: Option<SimDuration>,
}

impl Default for Disruption {
    /// The defaults of `karpenter.sh/v1`.
    fn default() -> Self {
        Self {
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            consolidate_after: Some(SimDuration::ZERO),
            budgets: vec![Budget { nodes: IntOrPercent::Percent(10), reasons: None, schedule: None, duration: None }],
        }
    }
}

impl NodePool {
    /// A NodePool without requirements, limits or taints, with the defaults of `karpenter.sh/v1`.
    pub fn named(name: impl Into<Symbol>) -> Self {
        Self {
            name: name.into(),
            weight: 0,
            requirements: Vec::new(),
            labels: Labels::new(),
            annotations: Labels::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            limits: Resources::new(),
            node_class: well_known::DEFAULT,
            disruption: Disruption::default(),
            expire_after: Some(SimDuration::from_secs(720 * 3_600)),
            termination_grace_period: None,
            replicas: None,
            kubelet: None,
            auto_mode: false,
            legacy: false,
            ready: true,
        }
    }
}

/// The family of machine images.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    AL2,
    /// Amazon Linux 2023.
    AL2023,
    /// Bottlerocket.
    Bottlerocket,
    /// Ubuntu (v0.x).
    Ubuntu,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
    /// The user's own.
    Custom,
}

impl AmiFamily {
    /// Whether nodes with these images run Windows.
    pub const fn is_windows(self) -> bool {
        matches!(self, Self::Windows2019 | Self::Windows2022 | Self::Windows2025)
    }

    /// The device that nodes with these images boot from; `None` where the images are the user's own.
    ///
    /// Source: Karpenter AWS provider v1.13 `pkg/providers/amifamily/{al2,al2023,bottlerocket,windows}.go`, `DefaultBlockDeviceMappings`;
    /// v0.37 and before `pkg/providers/amifamily/ubuntu.go`.
    pub const fn root_device(self) -> Option<&'static str> {
        match self {
            Self::AL2 | Self::AL2023 | Self::Bottlerocket => Some("/dev/xvda"),
            Self::Ubuntu | Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => Some("/dev/sda1"),
            Self::Custom => None,
        }
    }
}

/// An EC2NodeClass (`karpenter.k8s.aws/v1`), or an AWSNodeTemplate read as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeClass {
    /// Name.
    pub name: Symbol,
    /// The family of machine images.
    pub ami_family: AmiFamily,
    /// Whether an AMI selector names its images, so that a new release of Kubernetes brings no others.
    pub fixed_images: bool,
    /// Whether it takes the newest image that there is (`@latest`, a pattern, tags), so that one that is released replaces its nodes.
    pub newest_images: bool,
    /// What selects its images, in no order: two classes with the same text have the same images.
    pub images: Symbol,
    /// What selects its security groups, in no order; `None` where that is not known.
    pub security_groups: Option<Symbol>,
    /// What selects its subnets, in no order; `None` where that is not known.
    pub subnets: Option<Symbol>,
    /// All that Karpenter compares by hash, but for the family, in a form of its own; `None` where no such object was read.
    pub hashed: Option<Symbol>,
    /// Architectures that an AMI selector leaves; empty means no restriction known.
    pub ami_architectures: Vec<Symbol>,
    /// Zones that its subnets cover; empty means every zone of the region.
    pub zones: Vec<Symbol>,
    /// Kubelet settings.
    pub kubelet: KubeletConfig,
    /// Kubelet settings in `userData`, which Karpenter does not read.
    pub user_data: KubeletConfig,
    /// The EBS volumes that it states, root first; empty for those that Karpenter orders for the family.
    pub block_devices: Vec<BlockDevice>,
    /// Whether local disks are joined into one volume for pods (`instanceStorePolicy: RAID0`).
    pub instance_store_raid0: bool,
    /// Whether its nodes have public IPv4 addresses (`associatePublicIPAddress`); `None` to leave that to their subnets.
    pub public_address: Option<bool>,
    /// Tags, kept for reports.
    pub tags: Labels,
    /// Capacity reservations that its nodes may use; none without a term.
    pub capacity_reservations: Vec<ReservationTerm>,
    /// Whether it is a NodeClass of EKS Auto Mode (`eks.amazonaws.com/v1`).
    pub auto_mode: bool,
}

/// A term of `capacityReservationSelectorTerms`: what is stated must fit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReservationTerm {
    /// The reservation's id.
    pub id: Option<Symbol>,
    /// Its tags; `*` stands for any value.
    pub tags: Labels,
    /// `instanceMatchCriteria`: whether it is open (else targeted).
    pub open: Option<bool>,
}

impl NodeClass {
    /// Whether the parts that Karpenter compares by hash are the same: not what selects images, subnets and reservations.
    ///
    /// Source: Karpenter AWS provider v1.13 `pkg/apis/v1/ec2nodeclass.go`, `EC2NodeClass.Hash`.
    pub fn has_same_hash(&self, other: &Self) -> bool {
        if let (Some(hashed), Some(others)) = (self.hashed, other.hashed) {
            return self.ami_family == other.ami_family && hashed == others;
        }
        // One of them is assumed, or of an older kind: what is known of both counts.
        let known =
            |node_class: &Self| (node_class.ami_family, node_class.instance_store_raid0, node_class.public_address);
        known(self) == known(other)
            && self.kubelet == other.kubelet
            && self.block_devices.len() == other.block_devices.len()
            && self.block_devices.iter().all(|block_device| other.block_devices.contains(block_device))
            && self.tags == other.tags
    }

    /// Whether both select their security groups alike, as far as is known.
    pub fn has_same_security_groups(&self, other: &Self) -> bool {
        self.security_groups.zip(other.security_groups).is_none_or(|(security_group, others)| security_group == others)
    }

    /// Whether both select their subnets alike, as far as is known.
    pub fn has_same_subnets(&self, other: &Self) -> bool {
        self.subnets.zip(other.subnets).is_none_or(|(subnet, others)| subnet == others)
    }

    /// Whether it has images for an architecture, as far as is known. Windows there is for amd64 alone.
    ///
    /// Source: Karpenter AWS provider v1.13 `pkg/providers/amifamily/windows.go`, `DescribeImageQuery`; v0.32 `DefaultAMIs`.
    pub fn has_images_for(&self, architecture: Symbol) -> bool {
        let selected = self.ami_architectures.is_empty() || self.ami_architectures.contains(&architecture);
        selected && (architecture == well_known::AMD64 || !self.ami_family.is_windows())
    }

    /// A node class with every default, on AL2023.
    pub fn named(name: impl Into<Symbol>) -> Self {
        Self {
            name: name.into(),
            ami_family: AmiFamily::AL2023,
            fixed_images: false,
            newest_images: false,
            images: Symbol::new(""),
            security_groups: None,
            subnets: None,
            hashed: None,
            ami_architectures: Vec::new(),
            zones: Vec::new(),
            kubelet: KubeletConfig::default(),
            user_data: KubeletConfig::default(),
            block_devices: Vec::new(),
            instance_store_raid0: false,
            public_address: None,
            tags: Labels::new(),
            capacity_reservations: Vec::new(),
            auto_mode: false,
        }
    }
}

/// One EBS volume of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockDevice {
    /// The device, for example `/dev/xvda`.
    pub device: String,
    /// Size in bytes.
    pub size_bytes: i64,
    /// Whether it is marked as the root volume.
    pub root: bool,
    /// What it is ordered as: type, operations and throughput.
    pub disk: DiskClass,
}

impl BlockDevice {
    /// The volume, whose size EC2 is given in whole GiB, rounded up.
    ///
    /// Source: Karpenter AWS provider v1.13 `pkg/providers/launchtemplate/launchtemplate.go`, `volumeSize`.
    pub fn volume(&self) -> NodeVolume {
        NodeVolume { gib: (self.size_bytes.max(0).unsigned_abs().div_ceil(1 << 30)) as i64, class: self.disk }
    }
}

/// Kubelet settings that change what a node offers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KubeletConfig {
    /// `maxPods`.
    pub max_pods: Option<i64>,
    /// `podsPerCore`.
    pub pods_per_core: Option<i64>,
    /// `kubeReserved`, replacing single resources of the computed value.
    pub kube_reserved: Resources,
    /// `systemReserved`.
    pub system_reserved: Resources,
    /// `evictionHard`, by signal, as written (quantity or percentage).
    pub eviction_hard: Vec<(Symbol, String)>,
    /// `evictionSoft`, by signal, as written.
    pub eviction_soft: Vec<(Symbol, String)>,
}

/// What a manifest says of the cluster itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClusterInfo {
    /// Name.
    pub name: Option<Symbol>,
    /// Region.
    pub region: Option<Symbol>,
    /// Kubernetes version as written, for example `1.23`.
    pub kubernetes_version: Option<String>,
    /// Zones that the cluster's subnets lie in; empty where none are stated.
    pub zones: Vec<Symbol>,
    /// NAT gateways of the cluster's VPC; `None` where they are not known.
    pub nat_gateways: Option<NatGateways>,
    /// Whether the cluster has node groups and all of them are in private subnets.
    pub private_nodes: bool,
    /// Release of Karpenter that is installed with the cluster, as written, for example `1.8.2`.
    pub karpenter_version: Option<String>,
    /// Whether that Karpenter has an interruption queue; `None` without one.
    pub karpenter_queue: Option<bool>,
    /// Tier of the control plane; `None` where none is given, or an unknown one.
    pub control_plane_tier: Option<ControlPlaneTier>,
    /// EKS Capabilities of the cluster.
    pub capabilities: Vec<Capability>,
}

/// NAT gateways of a VPC that eksctl creates.
///
/// Source: eksctl 0.229 `pkg/apis/eksctl.io/v1alpha5/types.go`, `ClusterNAT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NatGateways {
    /// None.
    Disable,
    /// One for all zones.
    Single,
    /// One in each zone.
    HighlyAvailable,
}

impl NatGateways {
    /// Number of gateways in a VPC with `zones` zones.
    pub const fn count(self, zones: u32) -> u32 {
        match self {
            Self::Disable => 0,
            Self::Single => 1,
            Self::HighlyAvailable => zones,
        }
    }
}
