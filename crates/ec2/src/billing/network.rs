//! Lines for what the network costs: load balancers, NAT gateways, traffic between zones.
//!
//! Source: AWS pricing pages as of 2026, us-east-1; pricing-data/network.csv for other regions. Every price can be set.

use std::collections::BTreeMap;

use super::balancers::{self, BalancerUse};
use super::{FargatePod, HOUR, Listed, blank, charge};
use crate::bill::{BillItem, BillLine};
use crate::ec2::Ec2;
use nodecast_model::catalog::{NetworkFees, PriceQuality};
use nodecast_model::domain::{HourlyRate, Money, NodeId, SimTime, Symbol};

/// Load balancers in front of the cluster: as many as are stated, else those that Services and Ingresses call for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadBalancers {
    /// How many network load balancers; `None` for those that the manifests call for.
    pub count: Option<u32>,
    /// What one costs per hour; `None` for AWS's price of its kind.
    pub per_hour: Option<HourlyRate>,
    /// Capacity units that one uses on average, in thousandths; `None` for those that its requests come to, of stated ones for one unit.
    pub milli_units: Option<u32>,
    /// What a capacity unit costs per hour; `None` for AWS's price of its kind.
    pub per_unit_hour: Option<HourlyRate>,
    /// Bytes that a request moves, its answer included: assumed.
    pub bytes_per_request: i64,
    /// Connections that are opened for a thousand requests: assumed.
    pub connections_permille: u32,
}

impl Default for LoadBalancers {
    /// Those that the manifests call for; 20 kB and a tenth of a new connection for each request, both assumed.
    fn default() -> Self {
        Self {
            count: None,
            per_hour: None,
            milli_units: None,
            per_unit_hour: None,
            bytes_per_request: Self::BYTES_PER_REQUEST,
            connections_permille: Self::CONNECTIONS_PERMILLE,
        }
    }
}

impl LoadBalancers {
    /// Bytes of a request where nothing is stated.
    pub const BYTES_PER_REQUEST: i64 = 20_000;
    /// Connections for a thousand requests where nothing is stated.
    pub const CONNECTIONS_PERMILLE: u32 = 100;
}

/// NAT gateways, through which nodes pull images, those of pods on Fargate too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatGateways {
    /// How many: they stand in the first so many zones of the cluster.
    pub count: u32,
    /// What one costs for each hour begun; `None` for AWS's price.
    pub per_hour: Option<HourlyRate>,
    /// What it costs to process a gigabyte; `None` for AWS's price.
    pub per_gb: Option<Money>,
    /// Whether a gateway endpoint of S3 takes the layers of images of ECR off them.
    pub s3_endpoint: bool,
}

/// Traffic that crosses zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossZone {
    /// What it costs to move a gigabyte, both directions of the charge together; `None` for AWS's price.
    pub per_gb: Option<Money>,
    /// Bytes that a request moves between nodes; `None` where they are not known, and then no request is billed.
    pub bytes_per_request: Option<i64>,
    /// Share of requests that leave their zone, in thousandths; `None` for that of an even spread over the zones of the pods.
    pub permille: Option<u32>,
}

/// What is paid for the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkPrices {
    /// Load balancers; `None` to leave them out of the bill.
    pub load_balancers: Option<LoadBalancers>,
    /// NAT gateways; without them, images come for nothing.
    pub nat_gateways: Option<NatGateways>,
    /// Traffic between zones; without it, it costs nothing.
    pub cross_zone: Option<CrossZone>,
}

impl Default for NetworkPrices {
    /// The load balancers that the manifests call for, and nothing else.
    fn default() -> Self {
        Self { load_balancers: Some(LoadBalancers::default()), nat_gateways: None, cross_zone: None }
    }
}

impl NetworkPrices {
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
    /// The part of these that is images of private repositories of ECR in the region.
    pub from_ecr: BTreeMap<NodeId, i64>,
    /// Zones in which pods that serve requests ran; 0 for all of the cluster's.
    pub spread: usize,
    /// Requests completed.
    pub requests: u64,
    /// Of these, requests to workloads whose Services keep calls in their zone.
    pub near: u64,
    /// The load balancers that the manifests call for.
    pub balancers: Vec<BalancerUse>,
    /// NAT gateways that a ClusterConfig orders; they are billed where the scenario sets none.
    pub ordered_gateways: u32,
    /// Whether nodes pull images through these.
    pub pulls_through_ordered: bool,
}

/// Bytes of a gigabyte, as AWS counts transfer.
pub(super) const GB: i128 = 1_000_000_000;

fn of_bytes(per_gb: Money, bytes: i128) -> Money {
    Money::from_nanos((per_gb.as_nanos() * bytes + GB / 2).div_euclid(GB))
}

/// The network's lines of the bill. Nodes are the account's instances and those of `fargate`.
pub(super) fn lines(
    (ec2, fargate): (&Ec2, &[FargatePod]),
    prices: &NetworkPrices,
    (traffic, listed): (&Traffic, &mut Listed),
    end: SimTime,
) -> Vec<BillLine> {
    let mut lines = Vec::new();
    let billed = end - SimTime::ZERO;
    if let Some(stated) = &prices.load_balancers {
        lines.extend(balancers::lines(stated, &traffic.balancers, listed, end));
    }
    let price = |gateways: NatGateways, listed: &mut Listed| {
        let (item, fee) = (BillItem::NatGateway, |fees: &NetworkFees| (fees.nat_hour, fees.nat_quality));
        let price = listed.fee(item, gateways.per_hour, fee, NetworkPrices::NAT_HOUR)?;
        Some((i64::from(gateways.count), price))
    };
    let ordered = NatGateways { count: traffic.ordered_gateways, per_hour: None, per_gb: None, s3_endpoint: false };
    let gateways = prices.nat_gateways.or((ordered.count > 0).then_some(ordered));
    if let Some((count, (per_hour, quality))) = gateways.and_then(|gateways| price(gateways, listed)) {
        // An hour begun is an hour paid.
        let hours =
            billed.as_micros().div_euclid(HOUR.as_micros()) + i64::from(billed.as_micros() % HOUR.as_micros() > 0);
        let (billed, rate) = (HOUR * hours, per_hour.scaled(count, 1));
        let line = blank(BillItem::NatGateway, None, SimTime::ZERO, end);
        lines.push(BillLine { billed, rate, amount: charge(rate, billed), quality, ..line });
    }
    let on_the_way = gateways.filter(|_| prices.nat_gateways.is_some() || traffic.pulls_through_ordered);
    let pulled_through = NetworkPrices { nat_gateways: on_the_way, ..*prices };
    lines.extend(pulls((ec2, fargate), &pulled_through, (traffic, listed), end));
    lines.extend(requests(prices, (traffic, listed), end));
    lines
}

/// Images come through a NAT gateway: that of the node's zone, or one of another zone. Fargate runs in private subnets alone, and each of its
/// pods pulls its own, as nothing keeps them.
///
/// Layers of images of private ECR repositories come from S3, so that a gateway endpoint, which costs nothing, takes them off the gateways.
///
/// Source: EKS user guide, "Simplify compute management with AWS Fargate" (2026): private subnets only; ECR guide, "Using ECR with EKS", and
/// "Amazon ECR interface VPC endpoints" (2026): layers are in S3; VPC guide, "Gateway endpoints" (2026): no charge.
fn pulls(
    (ec2, fargate): (&Ec2, &[FargatePod]),
    prices: &NetworkPrices,
    (traffic, listed): (&Traffic, &mut Listed),
    end: SimTime,
) -> Vec<BillLine> {
    let Some(gateways) = prices.nat_gateways.filter(|gateways| gateways.count > 0) else { return Vec::new() };
    let pods: BTreeMap<NodeId, &FargatePod> = fargate.iter().map(|pod| (pod.node, pod)).collect();
    let mut lines = Vec::new();
    let around =
        |node: &NodeId| if gateways.s3_endpoint { traffic.from_ecr.get(node).copied().unwrap_or(0) } else { 0 };
    let pulled = traffic.pulled.iter().map(|(node, bytes)| (*node, bytes - around(node)));
    for (node, bytes) in pulled.filter(|(_, bytes)| *bytes > 0) {
        let Some(place) = place(ec2, &pods, node, end) else { continue };
        let item = BillItem::NatTransfer;
        let fee = |fees: &NetworkFees| (fees.nat_gb, fees.nat_quality);
        if let Some((per_gb, quality)) = listed.fee(item, gateways.per_gb, fee, NetworkPrices::NAT_GB) {
            let amount = of_bytes(per_gb, i128::from(bytes));
            lines.push(BillLine { item, amount, quality, ..place.clone() });
        }
        let zone = traffic.zones.iter().position(|&zone| place.zone == Some(zone));
        let has_gateway = zone.is_some_and(|zone| zone < gateways.count as usize);
        let crossing = prices.cross_zone.filter(|_| !has_gateway);
        if let Some((per_gb, quality)) = crossing.and_then(|cross| cross_zone_price(cross, listed)) {
            let amount = of_bytes(per_gb, i128::from(bytes));
            lines.push(BillLine { item: BillItem::CrossZoneTransfer, amount, quality, ..place });
        }
    }
    lines.retain(|line| line.amount != Money::ZERO);
    lines
}

/// A line that charges nothing yet for what `node` pulled: where it was, and for how long.
fn place(ec2: &Ec2, pods: &BTreeMap<NodeId, &FargatePod>, node: NodeId, end: SimTime) -> Option<BillLine> {
    let item = BillItem::NatTransfer;
    if let Some(pod) = pods.get(&node) {
        let line = blank(item, None, pod.from, pod.until.unwrap_or(end).min(end));
        return Some(BillLine { node: Some(node), zone: Some(pod.zone), ..line });
    }
    let instance = ec2.instances().iter().find(|instance| instance.node == node)?;
    Some(blank(item, Some(instance), instance.accepted, instance.terminating.unwrap_or(end).min(end)))
}

/// What a gigabyte between zones costs.
fn cross_zone_price(cross: CrossZone, listed: &mut Listed) -> Option<(Money, PriceQuality)> {
    listed.regional(BillItem::CrossZoneTransfer, cross.per_gb, NetworkPrices::CROSS_ZONE_GB)
}

/// Requests between nodes leave their zone as often as an even spread over the zones of their pods has it, unless it is stated; those to Services that keep calls in
/// their zone do not leave it.
///
/// Deviation: calls to Services that keep calls in their zone stay there even if the zone has too few pods for it.
fn requests(prices: &NetworkPrices, (traffic, listed): (&Traffic, &mut Listed), end: SimTime) -> Option<BillLine> {
    let cross = prices.cross_zone?;
    let bytes = cross.bytes_per_request?;
    let zones = if traffic.spread > 0 { traffic.spread } else { traffic.zones.len().max(1) } as i128;
    let far = traffic.requests.saturating_sub(traffic.near);
    let all = i128::from(far) * i128::from(bytes);
    let crossing = match cross.permille {
        Some(permille) => all * i128::from(permille) / 1_000,
        None => all * (zones - 1) / zones,
    };
    if crossing == 0 {
        return None;
    }
    let (per_gb, quality) = cross_zone_price(cross, listed)?;
    let amount = of_bytes(per_gb, crossing);
    let line = BillLine { amount, quality, ..blank(BillItem::CrossZoneTransfer, None, SimTime::ZERO, end) };
    (amount != Money::ZERO).then_some(line)
}
