//! What EC2 and EKS charge for one run, line by line.

use std::collections::BTreeSet;

use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Capability, Currency, HourlyRate, Money, NodeId, SimDuration, SimTime, Symbol};

/// What a line of the bill is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BillItem {
    /// An instance's running time at one price.
    Instance,
    /// Taken back: running time of a Spot instance that EC2 interrupted within its first hour.
    FreeFirstHour,
    /// Running time of an instance in a warm pool.
    WarmPool,
    /// Volumes of an instance in a warm pool.
    WarmPoolVolume,
    /// An instance's root volume.
    RootVolume,
    /// The EBS volume of a claim.
    PersistentVolume,
    /// An instance's public address.
    PublicIpv4,
    /// The EKS control plane.
    ControlPlane,
    /// What EKS charges beside it once standard support of the Kubernetes release has ended.
    ExtendedSupport,
    /// The tier of the control plane, in addition to the price of every cluster.
    ControlPlaneTier,
    /// An EKS Capability and its items.
    Capability(Capability),
    /// vCPUs of hybrid nodes.
    HybridNodes,
    /// Reserved Instances, as far as they were used.
    ReservedInstances,
    /// A capacity reservation, as far as instances used it.
    CapacityReservation,
    /// A capacity reservation, as far as nothing used it.
    UnusedCapacityReservation,
    /// Savings Plans, as far as they were used.
    SavingsPlans,
    /// The part of reservations and plans that covered nothing.
    UnusedCommitment,
    /// Load balancers, by the hour.
    LoadBalancer,
    /// Capacity units of load balancers.
    LoadBalancerCapacity,
    /// NAT gateways, by the hour.
    NatGateway,
    /// Images pulled through NAT gateways.
    NatTransfer,
    /// What moved between zones.
    CrossZoneTransfer,
    /// Taken back: On-Demand running time that reservations and plans pay for.
    Covered,
    /// Taken back: the discount of the account.
    Discount,
    /// CPU that a burstable instance of unlimited mode used beyond its credits.
    CpuCredits,
    /// A licence or vendor fee for a running node.
    NodeFee,
    /// What AWS takes for managing an instance of EKS Auto Mode.
    AutoModeFee,
    /// vCPUs of a pod on Fargate.
    FargateCpu,
    /// Memory of a pod on Fargate.
    FargateMemory,
    /// Ephemeral storage of a pod on Fargate beyond what comes with it.
    FargateStorage,
    /// A line that the scenario states, by its name.
    Other(Symbol),
}

impl BillItem {
    /// The item as reports write it: of a line that the scenario states, its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other(name) => name.as_str(),
            _ => self.as_str(),
        }
    }

    /// The kind of item.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::FreeFirstHour => "free first hour",
            Self::WarmPool => "warm pool",
            Self::WarmPoolVolume => "warm pool volumes",
            Self::RootVolume => "root volume",
            Self::PersistentVolume => "persistent volume",
            Self::PublicIpv4 => "public IPv4",
            Self::ControlPlane => "control plane",
            Self::ExtendedSupport => "extended support",
            Self::ControlPlaneTier => "control plane tier",
            Self::Capability(Capability::ArgoCd) => "capability Argo CD",
            Self::Capability(Capability::Ack) => "capability ACK",
            Self::Capability(Capability::Kro) => "capability KRO",
            Self::HybridNodes => "hybrid nodes",
            Self::ReservedInstances => "reserved instances",
            Self::CapacityReservation => "capacity reservation",
            Self::UnusedCapacityReservation => "unused capacity reservation",
            Self::SavingsPlans => "savings plans",
            Self::UnusedCommitment => "unused commitment",
            Self::LoadBalancer => "load balancers",
            Self::LoadBalancerCapacity => "load balancer capacity units",
            Self::NatGateway => "NAT gateways",
            Self::NatTransfer => "NAT transfer",
            Self::CrossZoneTransfer => "cross-zone transfer",
            Self::Covered => "covered by commitments",
            Self::Discount => "discount",
            Self::CpuCredits => "CPU credits",
            Self::NodeFee => "node fee",
            Self::AutoModeFee => "EKS Auto Mode fee",
            Self::FargateCpu => "Fargate vCPU",
            Self::FargateMemory => "Fargate memory",
            Self::FargateStorage => "Fargate storage",
            Self::Other(_) => "other",
        }
    }

    /// The key of a scenario that states its price, of what is billed beside instances.
    pub const fn price_key(self) -> Option<&'static str> {
        Some(match self {
            Self::RootVolume | Self::PersistentVolume | Self::WarmPoolVolume => "ec2.billing.volume_per_month",
            Self::PublicIpv4 => "ec2.billing.public_ipv4",
            Self::ControlPlane => "ec2.billing.control_plane",
            Self::ControlPlaneTier => "ec2.billing.control_plane_tier",
            Self::Capability(_) => "ec2.billing.capabilities",
            Self::HybridNodes => "ec2.billing.hybrid_vcpu_hour",
            Self::LoadBalancer => "ec2.billing.load_balancers.per_hour",
            Self::LoadBalancerCapacity => "ec2.billing.load_balancers.per_unit_hour",
            Self::NatGateway => "ec2.billing.nat_gateways.per_hour",
            Self::NatTransfer => "ec2.billing.nat_gateways.per_gb",
            Self::CrossZoneTransfer => "ec2.billing.cross_zone.per_gb",
            Self::FargateCpu => "fargate.vcpu_hour",
            Self::FargateMemory => "fargate.gb_hour",
            _ => return None,
        })
    }

    /// Whether it is the network's: load balancers, gateways, addresses, transfer.
    pub const fn is_network(self) -> bool {
        matches!(
            self,
            Self::LoadBalancer
                | Self::LoadBalancerCapacity
                | Self::NatGateway
                | Self::NatTransfer
                | Self::CrossZoneTransfer
                | Self::PublicIpv4
        )
    }

    /// Whether it charges, or takes back, compute: instances, and what is bought ahead of them. A discount is on everything.
    pub const fn is_compute(self) -> bool {
        matches!(
            self,
            Self::Instance
                | Self::FreeFirstHour
                | Self::ReservedInstances
                | Self::SavingsPlans
                | Self::UnusedCommitment
                | Self::CapacityReservation
                | Self::UnusedCapacityReservation
                | Self::Covered
                | Self::FargateCpu
                | Self::FargateMemory
        )
    }
}

/// One line of the bill.
#[derive(Clone, Debug)]
pub struct BillLine {
    /// What it is for.
    pub item: BillItem,
    /// The node behind it, if one is.
    pub node: Option<NodeId>,
    /// `spot`, `on-demand` or `reserved`, for instances and capacity reservations.
    pub capacity_type: Option<Symbol>,
    /// The instance type, for instances and their volumes.
    pub instance_type: Option<Symbol>,
    /// The zone, for instances and volumes.
    pub zone: Option<Symbol>,
    /// Start of the time billed.
    pub from: SimTime,
    /// End of the time billed.
    pub to: SimTime,
    /// Time billed, with the minimum applied.
    pub billed: SimDuration,
    /// Price per hour.
    pub rate: HourlyRate,
    /// What is charged.
    pub amount: Money,
    /// How far the price can be trusted.
    pub quality: PriceQuality,
}

/// The bill of one run: instances first, in order of node, then the rest.
#[derive(Clone, Debug)]
pub struct Bill {
    /// The currency of every amount.
    pub currency: Currency,
    /// The lines.
    pub lines: Vec<BillLine>,
    /// See [`Bill::net`]; `None` where nothing has to be spread.
    net: Option<Vec<BillLine>>,
    /// What the bill would be if Spot prices were off; `None` without Spot at a price that may be.
    pub spot_range: Option<SpotRange>,
    /// What is not billed, or not all of it, as nobody states its price and AWS's is not known in the currency.
    pub unpriced: Vec<BillItem>,
    /// Nodes that run Windows: commitments for Linux do not cover them.
    pub windows: BTreeSet<NodeId>,
}

/// The whole bill at the tenth and the ninetieth percentile of the error of the Spot prices that the price data have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpotRange {
    /// What Spot instances at such prices cost net.
    pub spot: Money,
    /// The whole bill at the tenth percentile.
    pub low: Money,
    /// The whole bill at the ninetieth percentile.
    pub high: Money,
}

impl Bill {
    /// A bill of these lines, of which none has to be spread over others.
    pub const fn plain(currency: Currency, lines: Vec<BillLine>) -> Self {
        Self { currency, lines, net: None, spot_range: None, unpriced: Vec::new(), windows: BTreeSet::new() }
    }

    /// A bill of these lines, which come to `net` once all is spread over what it covers.
    pub(super) const fn with_net(currency: Currency, lines: Vec<BillLine>, net: Vec<BillLine>) -> Self {
        Self { currency, lines, net: Some(net), spot_range: None, unpriced: Vec::new(), windows: BTreeSet::new() }
    }

    /// The sum of all lines.
    pub fn total(&self) -> Money {
        self.lines.iter().map(|line| line.amount).sum()
    }

    /// What of the bill is at estimated prices of instances, which AWS's price lists have.
    pub fn at_estimated_prices_of_instances(&self) -> Money {
        let is_of_instance =
            |item: BillItem| item.is_compute() && !matches!(item, BillItem::FargateCpu | BillItem::FargateMemory);
        let estimated = self.net().iter().filter(|line| is_of_instance(line.item) && !line.quality.is_fact());
        estimated.map(|line| line.amount).sum()
    }

    /// The same bill by what is paid for: what is taken back (a free first hour, usage that commitments cover, the discount)
    /// is off the lines that it is taken back from, and what Reserved Instances, Savings Plans and capacity reservations cost
    /// stands with the nodes that they cover, so that a line of compute without a node is capacity that was bought ahead and
    /// that nothing used. No amount is negative, and they sum to [`Bill::total`] exactly.
    pub fn net(&self) -> &[BillLine] {
        self.net.as_deref().unwrap_or(&self.lines)
    }
}
