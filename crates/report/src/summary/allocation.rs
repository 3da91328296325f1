//! Allocation of the bill: the net cost of nodes divided among the workloads of their pods.
//!
//! Must not: round, or name anything for people but the owners of cost.

use std::collections::BTreeMap;

use super::service::workload_name;
use crate::cloud::{BillItem, BillLine};
use crate::domain::{Money, NodeId, Resources, SimDuration, SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::{NodeFacts, PodFacts};

/// Parts per billion: a share as an integer.
const BILLION: i128 = 1_000_000_000;

/// What a part of the bill is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum CostOwner {
    /// Billed without a node.
    Cluster,
    /// Capacity that no workload requests.
    Idle,
    /// The pods of a workload.
    Workload(WorkloadId),
}

impl CostOwner {
    /// Its label: of a workload its namespace and name.
    pub(super) fn name(self, outcome: &Outcome) -> String {
        match self {
            Self::Cluster => "(cluster)".to_owned(),
            Self::Idle => "(idle)".to_owned(),
            Self::Workload(workload) => workload_name(outcome, workload),
        }
    }
}

/// Allocates the whole net bill, exactly. A node's cost times the largest of its mean requests of CPU, memory and each kind of
/// accelerator over the time billed is used, the rest idle: whoever holds all GPUs of a node leaves nothing of it to others.
/// The used part goes to the pods of the node in proportion to the largest of their shares of these, times the time that
/// they held them.
pub(super) fn by_owner(outcome: &Outcome) -> BTreeMap<CostOwner, Money> {
    let mut node_costs = vec![(Money::ZERO, SimDuration::ZERO); outcome.record.nodes.len()];
    let mut sums = BTreeMap::new();
    for line in outcome.bill.lines.iter().filter(|line| is_time_of_machine(line)) {
        if let Some((_, billed)) = line.node.and_then(|node| node_costs.get_mut(node.index())) {
            *billed += line.to - line.from;
        }
    }
    for line in outcome.bill.net() {
        let owner = if is_unused(line) { CostOwner::Idle } else { CostOwner::Cluster };
        match line.node.and_then(|node| node_costs.get_mut(node.index())) {
            Some((cost, _)) => *cost += line.amount,
            None => *sums.entry(owner).or_insert(Money::ZERO) += line.amount,
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
            *sums.entry(CostOwner::Workload(workload)).or_insert(Money::ZERO) += part;
        }
        *sums.entry(CostOwner::Idle).or_insert(Money::ZERO) += cost - handed_out;
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

/// For each node, the weight of each workload (by its number) among the node's pods.
fn weights_by_node(outcome: &Outcome) -> Vec<BTreeMap<WorkloadId, i128>> {
    let nodes = &outcome.record.nodes;
    let end = SimTime::ZERO + outcome.about.duration;
    let mut weights = vec![BTreeMap::new(); nodes.len()];
    for pod in outcome.record.pods.unnamed() {
        let Some(node) = pod.node.map(NodeId::index).filter(|&node| node < nodes.len()) else { continue };
        let weight = pod_weight(&pod, &nodes[node], end);
        if weight > 0 {
            *weights[node].entry(pod.workload).or_insert(0) += weight;
        }
    }
    weights
}

/// The largest of a pod's shares of its node's CPU, memory and accelerators, in billionths, times the microseconds it held
/// them; one that was resized where it runs held one size after the other.
fn pod_weight(pod: &PodFacts, node: &NodeFacts, end: SimTime) -> i128 {
    held(pod, node, end)
        .map(|(from, until, requests)| largest_share(requests, node) * i128::from((until - from).as_micros()))
        .sum()
}

/// What a pod requests of its node, by the spans of the time for which it holds that while the node is billed.
pub(super) fn held<'p>(
    pod: &'p PodFacts,
    node: &NodeFacts,
    end: SimTime,
) -> impl Iterator<Item = (SimTime, SimTime, &'p Resources)> {
    let from = pod.scheduled.max(node.running).unwrap_or(end);
    let until = pod.removed.unwrap_or(end).min(node.terminating.unwrap_or(end));
    pod.requests_between(from, until)
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

/// Whether a line of the net bill is for capacity that was bought ahead and that nothing used.
pub(super) fn is_unused(line: &BillLine) -> bool {
    line.node.is_none() && line.item.is_compute()
}
