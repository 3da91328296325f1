//! The bill summed up in several ways, each exact to the nano-unit until it becomes a figure of the summary.

use std::collections::BTreeMap;

use super::allocation::{CostOwner, by_owner, is_unused};
use super::cost_groups::Grouping;
use super::{CostSummary, HOURS_PER_MONTH, Part, PhaseCost, Share, SpotRangeSummary, rounded};
use crate::cloud::BillLine;
use crate::cloud::billing::other::not_simulated;
use crate::domain::{Money, SimTime};
use nodecast_settings::CostOf;
use nodecast_world::Outcome;
use nodecast_world::record::NodeFacts;

/// The label of what a line of the bill does not state.
const UNKNOWN: &str = "unknown";

pub(super) fn summary(outcome: &Outcome) -> CostSummary {
    let total = outcome.bill.total();
    let hours = outcome.about.duration.as_secs_f64() / 3_600.0;
    let per_hour = |amount: Money| (hours > 0.0).then(|| rounded(amount.as_f64() / hours, 9));
    let net = || outcome.bill.net().iter();
    let node_lines = || net().filter_map(|line| Some((line, node_of(outcome, line)?)));
    let by_owner = by_owner(outcome);
    let groups = Grouping::new(outcome, &by_owner);
    let nodes: Money = node_lines().map(|(line, _)| line.amount).sum();
    let idle = by_owner.get(&CostOwner::Idle).copied().unwrap_or_default();
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
        by_workload: parts(by_name(outcome, &by_owner), total),
        by_namespace: groups.by_namespace(|sums| parts(sums, total)),
        by_label: groups.by_label(|sums| parts(sums, total)),
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
    let by_workload = by_name(outcome, &by_owner(outcome));
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

/// The bill by the label of its owners; workloads of one name are one.
fn by_name(outcome: &Outcome, by_owner: &BTreeMap<CostOwner, Money>) -> BTreeMap<String, Money> {
    sums(by_owner.iter().map(|(owner, amount)| (owner.name(outcome), *amount)))
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
