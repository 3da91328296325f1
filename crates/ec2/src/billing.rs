//! From instance lives to lines of the bill.
//!
//! Source: AWS documentation and pricing pages as of 2026. Running time is billed by the second with a minimum of 60 s,
//! from entering `running` to leaving it; volumes from creation to deletion, likewise. Spot is billed at the price in
//! effect at each instant; a Spot instance that EC2 ends in its first hour is free, one that we end is not.

pub mod balancers;
pub mod disks;
pub mod eks_fees;
pub mod fargate;
mod listed;
pub mod management;
mod net;
pub mod network;
pub mod other;
mod over_time;
mod reserved;
mod spot_range;
pub mod support;
mod warm;

use std::collections::BTreeSet;

use self::disks::{Disk, ListedVolumes};
use self::eks_fees::EksOrders;
pub use self::fargate::{FargatePod, FargatePrices};
use self::listed::Listed;
pub use self::management::{FeeShares, ManagedNodes};
use self::net::{Coverage, Piece};
use self::network::Traffic;
pub use self::over_time::{Spent, over_time};
use self::reserved::ReservedLives;
use self::warm::WarmRun;
use super::bill::{Bill, BillItem, BillLine};
use super::commitments::{CoveredShare, Platform, Usage, UsageKind, WHOLE, cover};
use super::credits;
use super::ec2::{Ec2, EndedBy, Instance};
use super::market::PriceInterval;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Accrual, HourlyRate, Money, NodeId, SimDuration, SimTime, well_known};

/// Seconds billed at least each time an instance enters `running`.
const MINIMUM: SimDuration = SimDuration::from_secs(60);
/// Hours in a month, for prices by the month.
const HOURS_PER_MONTH: i64 = 730;
/// A public IPv4 address per hour, in all regions.
const PUBLIC_IPV4: HourlyRate = HourlyRate::from_nanos(5_000_000);
const HOUR: SimDuration = SimDuration::from_secs(3_600);

/// What is billed beside the lives of instances.
#[derive(Clone, Debug, Default)]
pub struct NonComputeUsage {
    /// How far into a clock hour the run began.
    pub into_hour: SimDuration,
    /// What moved over the network.
    pub traffic: Traffic,
    /// The volumes of claims.
    pub disks: Vec<Disk>,
    /// The times for which the cluster's Kubernetes release is under EKS's extended support.
    pub extended: Vec<(SimTime, SimTime)>,
    /// What the cluster orders of EKS.
    pub eks: EksOrders,
    /// CPU that burstable nodes used beyond their credits, in millionths of a vCPU-hour, in order of node.
    pub surplus: Vec<(NodeId, i64)>,
    /// Nodes for whose management AWS takes a fee.
    pub managed: ManagedNodes,
    /// Nodes that run Windows.
    pub windows: BTreeSet<NodeId>,
    /// Pods on Fargate, with what an hour of them costs; `None` without a profile.
    pub fargate: Option<(Vec<FargatePod>, FargatePrices)>,
}

impl NonComputeUsage {
    /// The platform of an instance.
    ///
    /// Deviation: nodes without Windows run Linux without a licence, also with custom images. Reserved Instances for
    /// RHEL and SUSE therefore cover nothing.
    fn platform(&self, instance: &Instance) -> Platform {
        if self.windows.contains(&instance.node) { Platform::Windows } else { Platform::Linux }
    }
}

/// The bill for everything up to `end`, when whatever still runs stops being counted.
pub fn bill(ec2: &mut Ec2, end: SimTime, non_compute: &NonComputeUsage) -> Bill {
    let settings = ec2.settings().billing.clone();
    let mut listed = Listed::from_region(ec2.region());
    let currency = ec2.region().currency;
    // Prices are made as they are asked for, which changes the account while its instances are read.
    let instances = ec2.lend_instances();
    // Mostly an instance has a line for its time and one for its volume.
    let mut lines: Vec<BillLine> = Vec::with_capacity(2 * instances.len() + 16);
    let reserved = ReservedLives::new(ec2, &instances, end);
    let mut ends = Vec::with_capacity(instances.len());
    for (number, instance) in instances.iter().enumerate() {
        lines.extend(running_time(ec2, (number, instance), end, settings.hourly_at_start, &reserved));
        ends.push(lines.len());
    }
    let warm = warm::runs(ec2, end);
    ec2.take_back(instances);
    let ec2 = &*ec2;
    let instances = ec2.instances();
    lines.extend(reserved.lines());
    let of_fargate = non_compute.fargate.as_ref();
    let of_fargate = of_fargate.map_or_else(Vec::new, |fargate| fargate::lines(fargate, &mut listed, end));
    let on_fargate: Money = of_fargate.iter().map(|line| line.amount).sum();
    let others = (&*warm, on_fargate + warm::total(&warm));
    let mut net = net_compute(ec2, instances, (&ends, &mut lines, others), &reserved, (end, non_compute));
    let managed = non_compute.managed.lines(ec2.region(), instances, end);
    if let Some(net) = &mut net {
        net.extend_from_slice(&managed);
    }
    lines.extend(managed);
    lines.extend(of_fargate);
    lines.extend(warm::lines(&warm).cloned());
    let of_compute = lines.len();
    lines.extend(warm::volumes(ec2, &mut listed, end));
    lines.extend(non_compute_lines(ec2, instances, &mut listed, (end, non_compute)));
    if let Some(net) = &mut net {
        net.extend_from_slice(&lines[of_compute..]);
        net::discount(settings.discount, net);
    }
    discount(settings.discount, end, &mut lines);
    let charged = lines.len();
    if settings.node_fee > HourlyRate::ZERO {
        let fee = |instance| while_running(BillItem::NodeFee, instance, end, (settings.node_fee, PriceQuality::Own));
        lines.extend(instances.iter().filter_map(fee));
    }
    lines.extend(other::lines(&settings, &non_compute.traffic, end));
    let mut bill = match net {
        Some(mut net) => {
            net.extend_from_slice(&lines[charged..]);
            Bill::with_net(currency, lines, net)
        }
        None => Bill::plain(currency, lines),
    };
    bill.spot_range = spot_range::of_bill(ec2.region(), ec2.settings(), bill.net());
    bill.unpriced = listed.into_unpriced();
    bill.windows = non_compute.windows.clone();
    bill
}

/// Lines for volumes, CPU credits, addresses, the control plane and the network.
fn non_compute_lines(
    ec2: &Ec2,
    instances: &[Instance],
    listed: &mut Listed,
    (end, non_compute): (SimTime, &NonComputeUsage),
) -> Vec<BillLine> {
    let billing = &ec2.settings().billing;
    let volumes = ListedVolumes::new(ec2.region().volumes, billing.volume_per_month, listed.is_known());
    let mut lines = Vec::with_capacity(instances.len() + 16);
    lines.extend(instances.iter().filter_map(|instance| root_volume(instance, end, (volumes, listed))));
    lines.extend(disks::lines(&non_compute.disks, volumes, listed, end));
    lines.extend(surplus(&non_compute.surplus, instances, listed, end));
    lines.extend(instances.iter().filter_map(|instance| public_address(ec2, instance, listed, end)));
    lines.extend(support::lines(billing.control_plane, &non_compute.extended, listed, end));
    lines.extend(eks_fees::lines(&billing.eks, &non_compute.eks, (ec2.region().name.as_str(), listed), end));
    let on_fargate = non_compute.fargate.as_ref().map_or(&[][..], |(pods, _)| pods);
    lines.extend(network::lines((ec2, on_fargate), &billing.network, (&non_compute.traffic, listed), end));
    lines
}

/// Adds what commitments cost and cover to the lines, and works out what compute comes to net; `None` where the lines of the
/// bill are that already. `lives` are the lines so far and where those of each instance end; `when` is the end of the run and
/// how far into a clock hour it began. Pods on Fargate and runs in warm pools, which cost `others` without commitments, are part of it.
fn net_compute(
    ec2: &Ec2,
    instances: &[Instance],
    (ends, lines, (warm, others)): (&[usize], &mut Vec<BillLine>, (&[WarmRun], Money)),
    reserved: &ReservedLives,
    (end, non_compute): (SimTime, &NonComputeUsage),
) -> Option<Vec<BillLine>> {
    let billing = &ec2.settings().billing;
    let is_spread = billing.discount > 0
        || !billing.commitments.is_empty()
        || !ec2.settings().reservations.is_empty()
        || lines.iter().any(|line| line.item == BillItem::FreeFirstHour);
    if !is_spread {
        return None;
    }
    let (coverage, fees) = commitments(ec2, (instances, warm), reserved, end, non_compute);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let lives = instances.iter().zip(starts.zip(ends).map(|(from, &to)| &lines[from..to]));
    let mut net = net::compute(lives, reserved, instances, &coverage);
    if let Some((pods, prices)) = &non_compute.fargate {
        net.extend(fargate::net_lines(pods, prices, &coverage, end));
    }
    net.extend(warm::net_lines(warm, &coverage));
    if !billing.commitments.is_empty() {
        // Both sides have what instances and reservations cost; the fees stand on one side only.
        let charged = lines.iter().map(|line| line.amount).sum::<Money>() + others;
        let is_fee =
            |item| matches!(item, BillItem::ReservedInstances | BillItem::SavingsPlans | BillItem::UnusedCommitment);
        let left: Money = net.iter().filter(|line| !is_fee(line.item)).map(|line| line.amount).sum();
        let [of_reserved, of_plans] = coverage.qualities();
        // The price of a reservation changes what it costs; the discount of a plan changes how much it covers.
        let items = [
            (BillItem::ReservedInstances, fees.reserved, of_reserved),
            (BillItem::SavingsPlans, fees.plans, of_plans),
            (BillItem::UnusedCommitment, fees.unused, net::weaker([of_reserved, of_plans])),
            (BillItem::Covered, left - charged, of_plans),
        ];
        for (item, amount, quality) in items.into_iter().filter(|(_, amount, _)| *amount != Money::ZERO) {
            lines.push(BillLine { amount, quality, ..blank(item, None, SimTime::ZERO, end) });
        }
    }
    Some(net)
}

/// Time billed for a running time of `span`: whole seconds, rounded up, at least the minimum.
pub fn billed_time(span: SimDuration) -> SimDuration {
    let whole =
        SimDuration::from_secs(span.as_micros().div_euclid(1_000_000) + i64::from(span.as_micros() % 1_000_000 != 0));
    whole.max(MINIMUM)
}

/// What `rate` charges for `billed`.
pub fn charge(rate: HourlyRate, billed: SimDuration) -> Money {
    Accrual::new(rate, billed).total()
}

/// A stretch of an instance's running time at one price.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charge {
    /// The prices and the time they held.
    pub at: PriceInterval,
    /// Time billed: the time they held; the last of a life takes on what rounding and the minimum add.
    pub billed: SimDuration,
    /// What is charged.
    pub amount: Money,
}

/// Charges for a life that `prices` covers without gap.
pub fn charges(prices: &[PriceInterval]) -> Vec<Charge> {
    let (Some(first), Some(last)) = (prices.first(), prices.last()) else { return Vec::new() };
    let added = billed_time(last.to - first.from) - (last.to - first.from);
    let count = prices.len();
    let billed = |position: usize, price: &PriceInterval| {
        (price.to - price.from) + if position + 1 == count { added } else { SimDuration::ZERO }
    };
    prices
        .iter()
        .enumerate()
        .map(|(position, price)| {
            let billed = billed(position, price);
            Charge { at: *price, billed, amount: charge(price.rate, billed) }
        })
        .collect()
}

/// The same life priced by the hour: the price at the start of each instance-hour holds for all of it.
pub fn by_the_hour(prices: &[PriceInterval]) -> Vec<PriceInterval> {
    let (Some(first), Some(last)) = (prices.first(), prices.last()) else { return Vec::new() };
    let mut hours = Vec::new();
    let mut from = first.from;
    while from < last.to {
        let to = (from + HOUR).min(last.to);
        let Some(price) = prices.iter().rev().find(|price| price.from <= from) else { break };
        hours.push(PriceInterval { from, to, ..*price });
        from = to;
    }
    hours
}

/// Whether a Spot instance's life is free: EC2 ended it before its first hour was over.
pub fn is_free(lived: SimDuration, ended_by: Option<EndedBy>) -> bool {
    ended_by == Some(EndedBy::Ec2) && lived < HOUR
}

/// Lines for an instance's running time, one for each price, and what is taken back for a free first hour.
fn running_time(
    ec2: &mut Ec2,
    (number, instance): (usize, &Instance),
    end: SimTime,
    hourly_at_start: bool,
    reserved: &ReservedLives,
) -> Vec<BillLine> {
    let Some(from) = instance.running.filter(|&from| from < end) else { return Vec::new() };
    let to = instance.terminating.unwrap_or(end).min(end);
    let spot = instance.pool.capacity_type == well_known::SPOT;
    let mut prices = ec2.market().intervals(instance.pool, from, to);
    if spot && hourly_at_start {
        prices = by_the_hour(&prices);
    }
    prices = reserved.priced(number, prices);
    let capacity_type = |at| {
        if reserved.is_reserved(number, at) { well_known::RESERVED } else { instance.pool.capacity_type }
    };
    let mut lines: Vec<BillLine> = charges(&prices)
        .into_iter()
        .map(|Charge { at, billed, amount }| BillLine {
            billed,
            rate: at.rate,
            amount,
            quality: at.quality,
            capacity_type: Some(capacity_type(at.from)),
            ..blank(BillItem::Instance, Some(instance), at.from, at.to)
        })
        .collect();
    let ended = instance.terminating.is_some_and(|at| at <= end);
    if spot && ended && is_free(to - from, instance.ended_by) {
        let credit: Money = lines.iter().map(|line| line.amount).sum();
        let quality = lines.last().map_or(PriceQuality::Assumed, |line| line.quality);
        lines.push(BillLine { amount: -credit, quality, ..blank(BillItem::FreeFirstHour, Some(instance), from, to) });
    }
    lines
}

/// The EBS volumes of an instance, the root volume and others together.
fn root_volume(instance: &Instance, end: SimTime, (volumes, listed): (ListedVolumes, &mut Listed)) -> Option<BillLine> {
    let from = Some(instance.accepted).filter(|&from| from < end)?;
    let (per_month, quality) = volumes.of_node(&instance.volumes, listed)?;
    let to = instance.terminated.unwrap_or(end).min(end);
    let rate = per_month.scaled(1, HOURS_PER_MONTH);
    let billed = billed_time(to - from);
    let amount = charge(rate, billed);
    Some(BillLine { billed, rate, amount, quality, ..blank(BillItem::RootVolume, Some(instance), from, to) })
}

/// A fee for each hour that an instance runs, by the second.
fn while_running(
    item: BillItem,
    instance: &Instance,
    end: SimTime,
    (rate, quality): (HourlyRate, PriceQuality),
) -> Option<BillLine> {
    let from = instance.running.filter(|&from| from < end)?;
    let to = instance.terminating.unwrap_or(end).min(end);
    let billed = billed_time(to - from);
    Some(BillLine { billed, rate, amount: charge(rate, billed), quality, ..blank(item, Some(instance), from, to) })
}

/// What burstable instances used beyond their credits; what they still owe at the end of the run is charged as if they ended then.
fn surplus(used: &[(NodeId, i64)], instances: &[Instance], listed: &mut Listed, end: SimTime) -> Vec<BillLine> {
    let line = |&(node, micro_hours): &(NodeId, i64)| {
        let instance = instances.iter().find(|instance| instance.node == node)?;
        let name = instance.pool.instance_type.as_str();
        let rate = credits::surplus_rate(name.split_once('.').map_or(name, |(family, _)| family));
        let (rate, quality) = listed.everywhere(BillItem::CpuCredits, None, rate)?;
        let nanos = i128::from(rate.as_nanos()) * i128::from(micro_hours);
        let amount = Money::from_nanos((nanos + 500_000).div_euclid(1_000_000));
        let to = instance.terminating.unwrap_or(end).min(end);
        let line = blank(BillItem::CpuCredits, Some(instance), instance.running?, to);
        let billed = SimDuration::from_micros(micro_hours * 3_600);
        Some(BillLine { billed, rate, amount, quality, ..line })
    };
    used.iter().filter_map(line).collect()
}

/// The public address of an instance: of one whose launch says so, else of one in a subnet that is public or, where nothing is known of
/// subnets, of every one if a price is stated; at that price, or at AWS's.
fn public_address(ec2: &Ec2, instance: &Instance, listed: &mut Listed, end: SimTime) -> Option<BillLine> {
    let stated = ec2.settings().billing.public_ipv4;
    let by_subnet = || ec2.settings().network.is_public(instance.pool.zone).unwrap_or(stated.is_some());
    if !instance.public_address.unwrap_or_else(by_subnet) || instance.running.is_none_or(|from| from >= end) {
        return None;
    }
    let price = listed.everywhere(BillItem::PublicIpv4, stated, PUBLIC_IPV4)?;
    while_running(BillItem::PublicIpv4, instance, end, price)
}

/// A line that charges nothing yet.
fn blank(item: BillItem, instance: Option<&Instance>, from: SimTime, to: SimTime) -> BillLine {
    BillLine {
        item,
        node: instance.map(|instance| instance.node),
        capacity_type: instance.map(|instance| instance.pool.capacity_type),
        instance_type: instance.map(|instance| instance.pool.instance_type),
        zone: instance.map(|instance| instance.pool.zone),
        from,
        to,
        billed: SimDuration::ZERO,
        rate: HourlyRate::ZERO,
        amount: Money::ZERO,
        quality: PriceQuality::Published,
    }
}

/// What commitments cost in a run: used, and unused.
#[derive(Default)]
struct Fees {
    reserved: Money,
    plans: Money,
    unused: Money,
}

/// What reservations and Savings Plans cost and cover, clock hour by clock hour.
fn commitments(
    ec2: &Ec2,
    (instances, warm): (&[Instance], &[WarmRun]),
    reserved: &ReservedLives,
    end: SimTime,
    non_compute: &NonComputeUsage,
) -> (Coverage, Fees) {
    let bought = &ec2.settings().billing.commitments;
    let fargate =
        non_compute.fargate.as_ref().filter(|_| bought.plans.iter().any(|plan| plan.fargate_discount.is_some()));
    let pods = fargate.map_or(0, |(pods, _)| pods.len());
    let reservations = ec2.settings().reservations.len();
    let mut coverage = Coverage::new((instances.len(), reservations), (pods, warm.len()), bought.qualities());
    let mut fees = Fees::default();
    let is_on_demand = |(_, instance): &(usize, &Instance)| instance.pool.capacity_type != well_known::SPOT;
    let on_demand: Vec<(usize, &Instance)> = instances.iter().enumerate().filter(is_on_demand).collect();
    let mut from = SimTime::ZERO;
    let mut to = SimTime::ZERO + (HOUR - non_compute.into_hour);
    while from < end && !bought.is_empty() {
        to = to.min(end);
        let running: Vec<(usize, Stretch, Usage)> = on_demand
            .iter()
            .filter_map(|&(number, instance)| {
                let (number, stretch, usage) = usage_within(number, instance, reserved, from, to)?;
                Some((number, stretch, Usage { platform: non_compute.platform(instance), ..usage }))
            })
            .collect();
        let held: Vec<(usize, Usage)> = reserved.usage((from, to), |guest| non_compute.platform(&instances[guest]));
        let on_fargate: Vec<((usize, usize), Stretch, Usage)> =
            fargate.map_or_else(Vec::new, |(pods, prices)| fargate::usage(pods, prices, (from, to)).collect());
        let in_pools: Vec<(usize, Stretch, Usage)> = warm::usage(warm, (from, to)).collect();
        let of_instances = running.iter().map(|pair| pair.2).chain(held.iter().map(|pair| pair.1));
        let of_others = on_fargate.iter().map(|fargate| fargate.2).chain(in_pools.iter().map(|run| run.2));
        let usage: Vec<Usage> = of_instances.chain(of_others).collect();
        let hour = cover(bought, &usage, to - from);
        let piece = |(from, to): Stretch, usage: &Usage, share: CoveredShare| Piece { from, to, ran: usage.ran, share };
        let (of_running, of_others) = hour.shares.split_at(running.len());
        let (of_held, of_others) = of_others.split_at(held.len());
        let (of_fargate, of_warm) = of_others.split_at(on_fargate.len());
        for ((number, stretch, usage), share) in running.iter().zip(of_running) {
            coverage.note_instance(*number, piece(*stretch, usage, *share));
        }
        for ((number, usage), share) in held.iter().zip(of_held) {
            coverage.note_reservation(*number, piece((from, to), usage, *share));
        }
        for ((number, stretch, usage), share) in on_fargate.iter().zip(of_fargate) {
            coverage.note_fargate(*number, piece(*stretch, usage, *share));
        }
        for ((number, stretch, usage), share) in in_pools.iter().zip(of_warm) {
            coverage.note_warm(*number, piece(*stretch, usage, *share));
        }
        let unused = hour.reserved_unused + hour.plan_unused;
        coverage.note_unused(from, to, unused);
        fees.reserved += hour.reserved_fees - hour.reserved_unused;
        fees.plans += hour.plan_fees - hour.plan_unused;
        fees.unused += unused;
        (from, to) = (to, to + HOUR);
    }
    (coverage, fees)
}

/// The time between two instants.
type Stretch = (SimTime, SimTime);

/// What an instance used outside capacity reservations.
fn usage_within(
    number: usize,
    instance: &Instance,
    reserved: &ReservedLives,
    from: SimTime,
    to: SimTime,
) -> Option<(usize, Stretch, Usage)> {
    let began = instance.running?.max(from);
    let ended = instance.terminating.unwrap_or(to).min(to);
    let ran = if began < ended { reserved.outside(number, began, ended) } else { SimDuration::ZERO };
    let usage = Usage {
        kind: UsageKind::Instance(instance.pool.instance_type),
        platform: Platform::Linux,
        zone: instance.pool.zone,
        rate: instance.rate,
        ran,
        reserved: false,
    };
    (ran > SimDuration::ZERO).then_some((number, (began, ended), usage))
}

/// A discount on all lines so far, in millionths.
fn discount(share: u32, end: SimTime, lines: &mut Vec<BillLine>) {
    let charged: Money = lines.iter().map(|line| line.amount).sum();
    let nanos = charged.portion(i128::from(share), i128::from(WHOLE)).as_nanos();
    if nanos != 0 {
        let amount = Money::from_nanos(-nanos);
        lines.push(BillLine { amount, ..blank(BillItem::Discount, None, SimTime::ZERO, end) });
    }
}

#[cfg(test)]
mod tests;
