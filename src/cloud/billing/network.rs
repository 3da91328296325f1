//! Lines for what the network costs: load balancers, NAT gateways, traffic between zones.
//!
//! Source: AWS pricing pages as of 2026, us-east-1; every price can be set.

use super::{HOUR, blank, charge};
use crate::cloud::bill::{BillItem, BillLine};
use crate::cloud::ec2::Ec2;
use crate::domain::{HourlyRate, Money, NodeId, SimDuration, SimTime, Symbol};

/// Network load balancers in front of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadBalancers {
    /// How many.
    pub count: u32,
    /// What one costs per hour.
    pub per_hour: HourlyRate,
    /// Capacity units that one uses on average, in thousandths.
    pub milli_units: u32,
    /// What a capacity unit costs per hour.
    pub per_unit_hour: HourlyRate,
}

/// NAT gateways, through which nodes pull images.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatGateways {
    /// How many: they stand in the first so many zones of the cluster.
    pub count: u32,
    /// What one costs for each hour begun.
    pub per_hour: HourlyRate,
    /// What it costs to process a gigabyte.
    pub per_gb: Money,
}

/// Traffic that crosses zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossZone {
    /// What it costs to move a gigabyte, both directions of the charge together.
    pub per_gb: Money,
    /// Bytes that a request moves between nodes.
    pub bytes_per_request: i64,
    /// Share of requests that leave their zone, in thousandths; `None` for that of an even spread over the zones.
    pub permille: Option<u32>,
}

/// What is paid for the network; what is not stated costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkPrices {
    /// Load balancers.
    pub load_balancers: Option<LoadBalancers>,
    /// NAT gateways.
    pub nat_gateways: Option<NatGateways>,
    /// Traffic between zones.
    pub cross_zone: Option<CrossZone>,
}

impl NetworkPrices {
    /// A load balancer per hour, us-east-1.
    pub const LOAD_BALANCER_HOUR: HourlyRate = HourlyRate::from_nanos(22_500_000);
    /// A capacity unit of a network load balancer per hour, us-east-1.
    pub const CAPACITY_UNIT_HOUR: HourlyRate = HourlyRate::from_nanos(6_000_000);
    /// A NAT gateway per hour, us-east-1.
    pub const NAT_HOUR: HourlyRate = HourlyRate::from_nanos(45_000_000);
    /// A gigabyte through a NAT gateway, us-east-1.
    pub const NAT_GB: Money = Money::from_nanos(45_000_000);
    /// A gigabyte between zones, us-east-1: a cent in each direction.
    pub const CROSS_ZONE_GB: Money = Money::from_nanos(20_000_000);
}

/// What moved over the network in a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Traffic {
    /// The cluster's zones, in order.
    pub zones: Vec<Symbol>,
    /// Bytes of images that each node pulled.
    pub pulled: Vec<(NodeId, i64)>,
    /// Requests completed.
    pub requests: u64,
}

/// Bytes of a gigabyte, as AWS counts transfer.
const GB: i128 = 1_000_000_000;

fn of_bytes(per_gb: Money, bytes: i128) -> Money {
    Money::from_nanos((per_gb.as_nanos() * bytes + GB / 2).div_euclid(GB))
}

/// The network's lines of the bill.
pub(super) fn lines(ec2: &Ec2, prices: &NetworkPrices, traffic: &Traffic, end: SimTime) -> Vec<BillLine> {
    let mut lines = Vec::new();
    let billed = end - SimTime::ZERO;
    let mut of_the_run = |item, billed: SimDuration, rate: HourlyRate| {
        let amount = charge(rate, billed);
        lines.push(BillLine { billed, rate, amount, ..blank(item, None, SimTime::ZERO, end) });
    };
    if let Some(balancers) = prices.load_balancers {
        let count = i64::from(balancers.count);
        of_the_run(BillItem::LoadBalancer, billed, balancers.per_hour.scaled(count, 1));
        let units = count * i64::from(balancers.milli_units);
        of_the_run(BillItem::LoadBalancerCapacity, billed, balancers.per_unit_hour.scaled(units, 1_000));
    }
    if let Some(gateways) = prices.nat_gateways {
        // An hour begun is an hour paid.
        let hours =
            billed.as_micros().div_euclid(HOUR.as_micros()) + i64::from(billed.as_micros() % HOUR.as_micros() > 0);
        of_the_run(BillItem::NatGateway, HOUR * hours, gateways.per_hour.scaled(i64::from(gateways.count), 1));
    }
    lines.extend(pulls(ec2, prices, traffic, end));
    lines.extend(requests(prices, traffic, end));
    lines
}

/// Images come through a NAT gateway: that of the node's zone, or one of another zone.
fn pulls(ec2: &Ec2, prices: &NetworkPrices, traffic: &Traffic, end: SimTime) -> Vec<BillLine> {
    let Some(gateways) = prices.nat_gateways.filter(|gateways| gateways.count > 0) else { return Vec::new() };
    let mut lines = Vec::new();
    for &(node, bytes) in &traffic.pulled {
        let Some(instance) = ec2.instances().iter().find(|instance| instance.node == node) else { continue };
        let place = |item| blank(item, Some(instance), instance.accepted, instance.terminating.unwrap_or(end).min(end));
        let amount = of_bytes(gateways.per_gb, i128::from(bytes));
        lines.push(BillLine { amount, ..place(BillItem::NatTransfer) });
        let zone = traffic.zones.iter().position(|&zone| zone == instance.pool.zone);
        let has_gateway = zone.is_some_and(|zone| zone < gateways.count as usize);
        if let Some(cross) = prices.cross_zone.filter(|_| !has_gateway) {
            let amount = of_bytes(cross.per_gb, i128::from(bytes));
            lines.push(BillLine { amount, ..place(BillItem::CrossZoneTransfer) });
        }
    }
    lines.retain(|line| line.amount != Money::ZERO);
    lines
}

/// Requests between nodes leave their zone as often as an even spread has it, unless it is stated.
fn requests(prices: &NetworkPrices, traffic: &Traffic, end: SimTime) -> Option<BillLine> {
    let cross = prices.cross_zone?;
    let zones = traffic.zones.len().max(1) as i128;
    let all = i128::from(traffic.requests) * i128::from(cross.bytes_per_request);
    let crossing = match cross.permille {
        Some(permille) => all * i128::from(permille) / 1_000,
        None => all * (zones - 1) / zones,
    };
    let amount = of_bytes(cross.per_gb, crossing);
    let line = BillLine { amount, ..blank(BillItem::CrossZoneTransfer, None, SimTime::ZERO, end) };
    (amount != Money::ZERO).then_some(line)
}
