//! The bill summed up in several ways, each exact to the nano-unit until it becomes a figure of the summary.

use std::collections::BTreeMap;

use super::{CostSummary, HOURS_PER_MONTH, Part, PhaseCost, Share, SpotRangeSummary, rounded};
use crate::cloud::billing::other::not_simulated;
use crate::cloud::{BillItem, BillLine};
use crate::domain::{Money, NodeId, Resources, SimDuration, SimTime};
use nodecast_settings::CostOf;
use nodecast_world::Outcome;
use nodecast_world::record::{NodeFacts, PodFacts};

/// Parts per billion: a share as an integer.
const BILLION: i128 = 1_000_000_000;

/// The label of what is billed for nothing that a workload asked for.
const IDLE: &str = "(idle)";
/// The label of what is billed without a node behind it.
const CLUSTER: &str = "(cluster)";
/// The label of what a line of the bill does not state.
const UNKNOWN: &str = "unknown";

pub(super) fn summary(outcome: &Outcome) -> CostSummary {
    let total = outcome.bill.total();
    let hours = outcome.about.duration.as_secs_f64() / 3_600.0;
    let per_hour = |amount: Money| (hours > 0.0).then(|| rounded(amount.as_f64() / hours, 9));
    let net = || outcome.bill.net().iter();
    let node_lines = || net().filter_map(|line| Some((line, node_of(outcome, line)?)));
    let by_workload = by_workload(outcome);
    let nodes: Money = node_lines().map(|(line, _)| line.amount).sum();
    let idle = by_workload.get(IDLE).copied().unwrap_or_default();
    CostSummary {
        total: total.as_f64(),
        per_hour: per_hour(total),
        per_month: (hours > 0.0).then(|| rounded(total.as_f64() / hours * HOURS_PER_MONTH, 9)),
        by_item: by_item(outcome),
        nodes: nodes.as_f64(),
        nodes_per_hour: per_hour(nodes),
        by_capacity_type: parts(
            sums(node_lines().map(|(line, node)| (label(node.capacity_type.or(line.capacity_type)), line.amount))),
            total,
        ),
        by_family: parts(sums(node_lines().map(|(line, node)| (family(line, node), line.amount))), total),
        by_zone: parts(sums(node_lines().map(|(line, node)| (label(line.zone.or(node.zone)), line.amount))), total),
        by_node_origin: parts(
            sums(node_lines().map(|(line, node)| (node.origin.name().to_string(), line.amount))),
            total,
        ),
        by_workload: parts(by_workload, total),
        by_price_quality: parts(sums(net().map(|line| (line.quality.as_str().to_owned(), line.amount))), total),
        spot_range: outcome.bill.spot_range.map(|range| SpotRangeSummary {
            spot: range.spot.as_f64(),
            total_low: range.low.as_f64(),
            total_high: range.high.as_f64(),
        }),
        without_network: without_network(outcome),
        not_simulated: not_simulated(&outcome.bill.lines).into_iter().map(str::to_owned).collect(),
        unconfirmed: share(net().filter(|line| !line.quality.is_fact()).map(|line| line.amount).sum(), total),
        idle: share(idle, total),
        unused: share(net().filter(|line| is_unused(line)).map(|line| line.amount).sum(), total),
        phases: phases(outcome),
    }
}

/// The part of the bill that rests on each assumption of the scenario; none where the scenario says so of none.
pub(super) fn of_assumptions(outcome: &Outcome) -> Vec<Option<Share>> {
    let stated = &outcome.about.costs_of_assumptions;
    if stated.iter().all(Option::is_none) {
        return Vec::new();
    }
    let total = outcome.bill.total();
    let by_workload = by_workload(outcome);
    let net = || outcome.bill.net().iter();
    let amount = |parts: &CostOf| -> Money {
        let of_workloads = parts.workloads.iter().filter_map(|name| by_workload.get(&name.to_string()).copied());
        let is_of_pool =
            |node: &NodeFacts| parts.node_pools.iter().any(|name| node.origin.name().to_string() == name.as_str());
        let of_pools = net().filter(|line| node_of(outcome, line).is_some_and(is_of_pool)).map(|line| line.amount);
        let of_items = net().filter(|line| parts.items.contains(&line.item)).map(|line| line.amount);
        of_workloads.chain(of_pools).chain(of_items).sum()
    };
    stated.iter().map(|parts| parts.as_ref().map(|parts| share(amount(parts), total))).collect()
}

/// What the bill comes to without the network's lines; `None` where it has none.
fn without_network(outcome: &Outcome) -> Option<f64> {
    let of_network = || outcome.bill.net().iter().filter(|line| line.item.is_network());
    let sum: Money = of_network().map(|line| line.amount).sum();
    of_network().next().map(|_| (outcome.bill.total() - sum).as_f64())
}

fn node_of<'a>(outcome: &'a Outcome, line: &BillLine) -> Option<&'a NodeFacts> {
    outcome.record.nodes.get(line.node?.index())
}

fn label(name: Option<crate::domain::Symbol>) -> String {
    name.map_or_else(|| UNKNOWN.to_owned(), |name| name.to_string())
}

/// The part of an instance type's name before its size.
fn family(line: &BillLine, node: &NodeFacts) -> String {
    let name = label(line.instance_type.or(node.instance_type));
    name.split_once('.').map_or(name.clone(), |(family, _)| family.to_owned())
}

fn sums(amounts: impl Iterator<Item = (String, Money)>) -> BTreeMap<String, Money> {
    let mut sums = BTreeMap::new();
    for (name, amount) in amounts {
        *sums.entry(name).or_insert(Money::ZERO) += amount;
    }
    sums
}

/// Parts by amount, the largest first; equal amounts by name.
fn parts(sums: BTreeMap<String, Money>, total: Money) -> Vec<Part> {
    let mut sorted: Vec<(String, Money)> = sums.into_iter().collect();
    sorted.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
    sorted
        .into_iter()
        .map(|(name, amount)| {
            let share = share(amount, total);
            Part { name, amount: share.amount, share: share.share }
        })
        .collect()
}

fn share(amount: Money, total: Money) -> Share {
    let share = if total == Money::ZERO { 0.0 } else { rounded(amount.as_nanos() as f64 / total.as_nanos() as f64, 6) };
    Share { amount: amount.as_f64(), share }
}

/// The lines of the bill as they are charged, so that what is taken back is negative. The share of each, taken back or not, is
/// one of all that is charged before anything is taken back.
fn by_item(outcome: &Outcome) -> Vec<Part> {
    let sums = sums(outcome.bill.lines.iter().map(|line| (line.item.name().to_owned(), line.amount)));
    let charged: Money = sums.values().copied().filter(|amount| *amount > Money::ZERO).sum();
    let mut parts = parts(sums, charged);
    parts.iter_mut().for_each(|part| part.share = part.share.abs());
    parts
}

/// Whether a line of the net bill is for capacity that was bought ahead and that nothing used.
fn is_unused(line: &BillLine) -> bool {
    line.node.is_none() && line.item.is_compute()
}

/// Shares out the whole bill, net. A node's cost times the largest of its mean requests of CPU, memory and each kind of
/// accelerator over the time billed is used, the rest idle: whoever holds all GPUs of a node leaves nothing of it to others.
/// The used part goes to the pods of the node in proportion to the largest of their shares of these, times the time that
/// they held them.
fn by_workload(outcome: &Outcome) -> BTreeMap<String, Money> {
    let mut node_costs = vec![(Money::ZERO, SimDuration::ZERO); outcome.record.nodes.len()];
    let mut sums = BTreeMap::new();
    for line in outcome.bill.lines.iter().filter(|line| is_time_of_machine(line)) {
        if let Some((_, billed)) = line.node.and_then(|node| node_costs.get_mut(node.index())) {
            *billed += line.to - line.from;
        }
    }
    for line in outcome.bill.net() {
        let label = if is_unused(line) { IDLE } else { CLUSTER };
        match line.node.and_then(|node| node_costs.get_mut(node.index())) {
            Some((cost, _)) => *cost += line.amount,
            None => *sums.entry(label.to_owned()).or_insert(Money::ZERO) += line.amount,
        }
    }
    let weights = weights_by_node(outcome);
    for ((node, (cost, billed)), weights) in outcome.record.nodes.iter().zip(node_costs).zip(&weights) {
        if cost == Money::ZERO {
            continue;
        }
        let used = cost.portion(used_billionths(node, billed), BILLION);
        let mut handed_out = Money::ZERO;
        for (&workload, part) in weights.keys().zip(used.shared_by(weights.values().copied())) {
            handed_out += part;
            *sums.entry(workload_name(outcome, workload)).or_insert(Money::ZERO) += part;
        }
        let left = cost - handed_out;
        *sums.entry(IDLE.to_owned()).or_insert(Money::ZERO) += left;
    }
    sums
}

/// Whether a line says for how long a node is billed: that of its instance, or of the vCPUs of its pod on Fargate, whose memory and storage are
/// billed for the same time.
const fn is_time_of_machine(line: &BillLine) -> bool {
    matches!(line.item, BillItem::Instance | BillItem::FargateCpu)
}

/// The largest of mean requested CPU, memory and accelerators over allocatable, in billionths of what `billed` time offered.
fn used_billionths(node: &NodeFacts, billed: SimDuration) -> i128 {
    let used = |integral: i128, allocatable: i64| {
        let offered = i128::from(allocatable) * i128::from(billed.as_micros());
        if offered <= 0 { 0 } else { (integral.saturating_mul(BILLION) / offered).clamp(0, BILLION) }
    };
    let accelerators = node.requested_accelerators.iter();
    let of_accelerators = accelerators.map(|(name, integral)| used(*integral, node.allocatable.get(*name))).max();
    used(node.requested_cpu, node.allocatable.cpu_milli())
        .max(used(node.requested_memory, node.allocatable.memory_bytes()))
        .max(of_accelerators.unwrap_or(0))
}

fn workload_name(outcome: &Outcome, workload: u32) -> String {
    let facts = outcome.record.workloads.get(workload as usize);
    facts.map_or_else(|| UNKNOWN.to_owned(), |facts| facts.name.to_string())
}

/// For each node, the weight of each workload (by its number) among the node's pods.
fn weights_by_node(outcome: &Outcome) -> Vec<BTreeMap<u32, i128>> {
    let nodes = &outcome.record.nodes;
    let end = SimTime::ZERO + outcome.about.duration;
    let mut weights = vec![BTreeMap::new(); nodes.len()];
    for pod in outcome.record.pods.unnamed() {
        let Some(node) = pod.node.map(NodeId::index).filter(|&node| node < nodes.len()) else { continue };
        let weight = pod_weight(&pod, &nodes[node], end);
        if weight > 0 {
            *weights[node].entry(pod.workload.0).or_insert(0) += weight;
        }
    }
    weights
}

/// The largest of a pod's shares of its node's CPU, memory and accelerators, in billionths, times the microseconds it held
/// them; one that was resized where it runs held one size after the other.
fn pod_weight(pod: &PodFacts, node: &NodeFacts, end: SimTime) -> i128 {
    let from = pod.scheduled.max(node.running).unwrap_or(end);
    let until = pod.removed.unwrap_or(end).min(node.terminating.unwrap_or(end));
    let spans = pod.requests_between(from, until);
    spans.map(|(from, until, requests)| largest_share(requests, node) * i128::from((until - from).as_micros())).sum()
}

/// The largest of the shares that requests have of a node's CPU, memory and accelerators, in billionths.
fn largest_share(requests: &Resources, node: &NodeFacts) -> i128 {
    let share = |requested: i64, allocatable: i64| {
        if allocatable <= 0 { 0 } else { i128::from(requested) * BILLION / i128::from(allocatable) }
    };
    let accelerators = requests.iter().filter(|(name, _)| name.is_accelerator());
    let of_accelerators = accelerators.map(|(name, amount)| share(amount, node.allocatable.get(name))).max();
    share(requests.cpu_milli(), node.allocatable.cpu_milli())
        .max(share(requests.memory_bytes(), node.allocatable.memory_bytes()))
        .max(of_accelerators.unwrap_or(0))
}

/// Splits what the compute of nodes costs net at the instants at which they became Ready and were told to go. The parts sum
/// to it exactly.
fn phases(outcome: &Outcome) -> PhaseCost {
    let (mut starting, mut useful, mut draining) = (Money::ZERO, Money::ZERO, Money::ZERO);
    for line in outcome.bill.net().iter().filter(|line| line.item.is_compute()) {
        let Some(node) = node_of(outcome, line) else { continue };
        let ready = node.ready.unwrap_or(SimTime::FAR_FUTURE);
        // A node told to go before it was Ready never drained anything: all of it was starting.
        let leaving = node.deletion_requested.unwrap_or(SimTime::FAR_FUTURE).max(ready);
        let until_ready = amount_until(line, ready);
        let until_leaving = amount_until(line, leaving);
        starting += until_ready;
        useful += until_leaving - until_ready;
        draining += line.amount - until_leaving;
    }
    PhaseCost { starting: starting.as_f64(), useful: useful.as_f64(), draining: draining.as_f64() }
}

/// The part of a line's amount that falls before `instant`, the amount spread evenly over the time billed.
fn amount_until(line: &BillLine, instant: SimTime) -> Money {
    if instant >= line.to {
        return line.amount;
    }
    let elapsed = i128::from(instant.saturating_since(line.from).as_micros());
    line.amount.portion(elapsed, i128::from((line.to - line.from).as_micros()))
}
