//! Charges of a cluster that no commitment can cover, hour by hour: what the FOCUS file has beyond usage and commitments.

use std::collections::BTreeMap;

use nodecast_commitments::FocusService;
use nodecast_ec2::bill::{BillItem, BillLine};
use nodecast_model::domain::{Money, SimDuration, SimTime, Symbol, well_known};

use crate::usage::{HOUR, hours_between};

/// What a charge is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ChargeKey {
    pub hour: u32,
    pub item: BillItem,
    /// Whether it is of Spot.
    pub is_spot: bool,
    /// Number of the node, for instances.
    pub node: Option<u32>,
    pub instance_type: Option<Symbol>,
    /// Name of the zone, for instances.
    pub zone: Option<Symbol>,
}

/// A charge of one hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Charge {
    pub amount: Money,
    /// Time of the instance; zero of all others.
    pub ran: SimDuration,
}

/// Charges by hour and kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Charges(BTreeMap<ChargeKey, Charge>);

impl Charges {
    /// Adds a line of a bill, spread evenly over its time.
    pub(crate) fn add(&mut self, line: &BillLine) {
        let is_instance = line.item == BillItem::Instance;
        let spans: Vec<(u32, SimDuration)> = match hours_between(line.from, line.to).collect::<Vec<_>>() {
            spans if spans.is_empty() => {
                let hour = (line.from - SimTime::ZERO).as_micros() / HOUR.as_micros();
                vec![(u32::try_from(hour).unwrap_or(0), SimDuration::from_micros(1))]
            }
            spans => spans,
        };
        let weights = spans.iter().map(|(_, ran)| i128::from(ran.as_micros()));
        for (&(hour, ran), amount) in spans.iter().zip(line.amount.shared_by(weights)) {
            let key = ChargeKey {
                hour,
                item: line.item,
                is_spot: line.capacity_type == Some(well_known::SPOT) || line.item == BillItem::FreeFirstHour,
                node: line.node.map(|node| node.0).filter(|_| is_instance),
                instance_type: line.instance_type.filter(|_| is_instance || line.item == BillItem::FreeFirstHour),
                zone: line.zone.filter(|_| is_instance),
            };
            let charge = self.0.entry(key).or_default();
            charge.amount += amount;
            if is_instance {
                charge.ran += ran;
            }
        }
    }

    /// Each charge, in order of hours.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ChargeKey, &Charge)> {
        self.0.iter()
    }

    /// The sum.
    pub(crate) fn total(&self) -> Money {
        self.0.values().map(|charge| charge.amount).sum()
    }
}

/// Service and usage type of a charge, as AWS's bill names them.
///
/// Source: AWS Data Exports user guide, usage types (2026-08).
pub(crate) fn meter(key: &ChargeKey) -> (FocusService, String) {
    let (ec2, eks, balancers) = (FocusService::EC2, FocusService::EKS, FocusService::BALANCERS);
    let name = key.instance_type.map_or("", |name| name.as_str());
    let (service, meter) = match key.item {
        BillItem::Instance | BillItem::FreeFirstHour => {
            let head = if key.is_spot { "SpotUsage" } else { "BoxUsage" };
            return (ec2, format!("{head}:{name}"));
        }
        BillItem::WarmPool => return (ec2, format!("BoxUsage:{name}")),
        BillItem::RootVolume | BillItem::PersistentVolume | BillItem::WarmPoolVolume => (ec2, "EBS:VolumeUsage.gp3"),
        BillItem::PublicIpv4 => (FocusService::VPC, "PublicIPv4:InUseAddress"),
        BillItem::ControlPlane => (eks, "AmazonEKS-Hours:perCluster"),
        BillItem::ExtendedSupport => (eks, "AmazonEKS-Hours:extendedSupport"),
        BillItem::ControlPlaneTier => (eks, "AmazonEKS-Hours:controlPlaneTier"),
        BillItem::LoadBalancer => (balancers, "LoadBalancerUsage"),
        BillItem::LoadBalancerCapacity => (balancers, "LCUUsage"),
        BillItem::NatGateway => (ec2, "NatGateway-Hours"),
        BillItem::NatTransfer => (ec2, "NatGateway-Bytes"),
        BillItem::CrossZoneTransfer => (ec2, "DataTransfer-Regional-Bytes"),
        BillItem::CpuCredits => (ec2, "CPUCredits:t3"),
        BillItem::NodeFee | BillItem::AutoModeFee => (eks, "EKS-Auto:management-hours"),
        BillItem::FargateStorage => (eks, "Fargate-EphemeralStorage-GB-Hours"),
        item => (ec2, item.name()),
    };
    (service, meter.to_owned())
}
