//! Curves that add up to a whole: nodes by type, the rate of cost by kind.

use std::collections::BTreeMap;

use super::{Panel, Series, open_at_once};
use crate::cloud::{BillItem, BillLine};
use crate::domain::{Currency, SimDuration, SimTime, Symbol, well_known};
use crate::format::bought_as;
use crate::summary::lives::ready_intervals;
use nodecast_world::Outcome;
use nodecast_world::record::NodeOrigin;

/// Kinds of nodes with a curve of their own; the others share one.
const KINDS_MAX: usize = 9;
/// Microseconds of an hour.
const HOUR: i128 = 3_600_000_000;

type Interval = (SimTime, SimTime);

/// Ready nodes by instance type and how they were bought, those that were there longest first.
pub(crate) fn nodes_by_type(outcome: &Outcome) -> Panel {
    let end = SimTime::ZERO + outcome.about.duration;
    let mut kinds: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    for node in &outcome.record.nodes {
        let mut intervals = ready_intervals(node, end).peekable();
        let (Some(_), Some(instance_type)) = (intervals.peek(), node.instance_type) else { continue };
        kinds.entry(kind_of(node.origin, instance_type, node.capacity_type)).or_default().extend(intervals);
    }
    let time = |intervals: &[Interval]| {
        intervals.iter().map(|(from, until)| i128::from((*until - *from).as_micros())).sum::<i128>()
    };
    let mut kinds: Vec<(String, Vec<Interval>)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, intervals)| std::cmp::Reverse(time(intervals)));
    if kinds.len() > KINDS_MAX + 1 {
        let others = kinds.split_off(KINDS_MAX);
        let name = format!("{} other kinds", others.len());
        kinds.push((name, others.into_iter().flat_map(|(_, intervals)| intervals).collect()));
    }
    let mut panel = Panel::counts("nodes");
    for (color, (name, intervals)) in kinds.into_iter().enumerate() {
        panel.series.push(Series::steps(name, color, open_at_once(intervals.iter().copied(), intervals.len(), end)));
    }
    panel
}

/// The type of a node and how it was bought; pods on Fargate have no type.
fn kind_of(origin: NodeOrigin, instance_type: Symbol, capacity_type: Option<Symbol>) -> String {
    if matches!(origin, NodeOrigin::Fargate(_)) {
        return "Fargate".to_owned();
    }
    let bought = capacity_type.unwrap_or(well_known::ON_DEMAND);
    format!("{instance_type} {}", bought_as(bought.as_str()))
}

/// What a line of the net bill is a kind of, in the order in which kinds are drawn; nothing for what is taken back, which is
/// off the others there.
fn kind(line: &BillLine) -> Option<(usize, &'static str)> {
    match line.item {
        BillItem::Instance if line.capacity_type != Some(well_known::SPOT) => Some((0, "On-Demand instances")),
        BillItem::Instance => Some((1, "Spot instances")),
        BillItem::ReservedInstances | BillItem::SavingsPlans => Some((2, "Commitments")),
        BillItem::CapacityReservation | BillItem::UnusedCapacityReservation | BillItem::UnusedCommitment => {
            Some((3, "Reservations and unused commitments"))
        }
        BillItem::WarmPool => Some((0, "On-Demand instances")),
        BillItem::RootVolume | BillItem::PersistentVolume | BillItem::WarmPoolVolume => Some((4, "Volumes")),
        BillItem::ControlPlane | BillItem::ExtendedSupport | BillItem::ControlPlaneTier => Some((5, "Control plane")),
        BillItem::LoadBalancer
        | BillItem::LoadBalancerCapacity
        | BillItem::NatGateway
        | BillItem::NatTransfer
        | BillItem::CrossZoneTransfer
        | BillItem::PublicIpv4 => Some((6, "Network")),
        BillItem::NodeFee
        | BillItem::AutoModeFee
        | BillItem::CpuCredits
        | BillItem::Capability(_)
        | BillItem::HybridNodes
        | BillItem::Other(_) => Some((7, "Fees")),
        BillItem::FargateCpu | BillItem::FargateMemory | BillItem::FargateStorage => Some((8, "Fargate")),
        BillItem::FreeFirstHour | BillItem::Covered | BillItem::Discount => None,
    }
}

/// What is billed in an hour, in nano-units: the price of a running instance, the mean of anything else.
fn rate(line: &BillLine) -> i128 {
    if line.item == BillItem::Instance {
        return i128::from(line.rate.as_nanos());
    }
    line.amount.as_nanos() * HOUR / i128::from((line.to - line.from).as_micros())
}

/// What an hour costs net at each instant, by kind.
pub(crate) fn cost_by_kind(outcome: &Outcome) -> Panel {
    let end = SimTime::ZERO + outcome.about.duration;
    let mut changes: BTreeMap<(usize, &'static str), BTreeMap<SimTime, i128>> = BTreeMap::new();
    let lines = outcome.bill.net().iter().filter(|line| line.to - line.from > SimDuration::ZERO);
    for (line, kind) in lines.filter_map(|line| Some((line, kind(line)?))) {
        let changes = changes.entry(kind).or_default();
        *changes.entry(line.from).or_default() += rate(line);
        // What runs when the run ends goes on.
        if line.to < end {
            *changes.entry(line.to).or_default() -= rate(line);
        }
    }
    let mut panel = Panel::amounts(match outcome.bill.currency {
        Currency::Usd => "USD per hour",
        Currency::Cny => "CNY per hour",
    });
    for ((order, name), changes) in changes {
        // Spot has the purple that it has in the replay.
        let color = match order {
            1 => 3,
            3 => 1,
            other => other,
        };
        let mut sum = 0_i128;
        let mut points = vec![(SimTime::ZERO, 0.0.into())];
        for (at, change) in changes {
            sum += change;
            points.push((at, (sum.max(0) as f64 / 1e9).into()));
        }
        panel.series.push(Series::steps(name, color, points));
    }
    panel
}
