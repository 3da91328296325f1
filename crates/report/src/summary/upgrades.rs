//! Upgrades of nodes: how long each takes, how many additional nodes it needs, and which replicas are missing meanwhile.
//!
//! An upgrade is an update or an instance refresh of a node group, or the drift of a NodePool. All nodes of the group or pool that run beyond
//! those at the start of the upgrade are additional, whatever launched them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::churn::moves;
use super::{HOUR_SECONDS, rounded};
use crate::domain::{NodeId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::format;
use nodecast_world::Outcome;
use nodecast_world::record::{EventKind, NodeEnd, NodeFacts, NodeOrigin};

/// An upgrade of the nodes of a group or of a NodePool.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UpgradeFigures {
    /// The node group or NodePool.
    pub node_origin: String,
    /// `DEFAULT`, `MINIMAL`, `instance refresh`, or `drift`.
    pub way: String,
    /// When it began, from the start of the run; drift begins when Karpenter finds the first node drifted.
    pub began_seconds: f64,
    /// How long it took, or has taken at the end of the run.
    pub duration_seconds: f64,
    /// `succeeded`, `under way`, or why it failed.
    pub outcome: String,
    /// Nodes that it replaced.
    pub replaced: u64,
    /// Most additional nodes at once.
    pub extra_nodes: u64,
    /// Hours of additional nodes.
    pub extra_node_hours: f64,
    /// Their cost, at the mean price of the nodes that ran.
    pub extra_cost: f64,
    /// Pods that had to leave nodes of the group or NodePool meanwhile.
    pub evictions: u64,
    /// Time for which these pods were missing, summed.
    pub missing_seconds: f64,
    /// The same by workload, the longest first.
    pub missing: Vec<MissingFigures>,
}

/// The outcome of an upgrade that replaced every node.
const SUCCEEDED: &str = "succeeded";
/// The outcome of an upgrade that the end of the run cuts short.
const UNDER_WAY: &str = "under way";

impl UpgradeFigures {
    /// Whether it replaced every node. Of others the duration says how long they tried.
    pub fn is_complete(&self) -> bool {
        self.outcome == SUCCEEDED
    }

    /// Whether it ended before it replaced every node.
    pub fn is_failed(&self) -> bool {
        !self.is_complete() && self.outcome != UNDER_WAY
    }
}

/// Pods of a workload that had to leave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissingFigures {
    /// Namespace and name of the workload.
    pub workload: String,
    /// Its pods that had to leave.
    pub evictions: u64,
    /// Time for which they were missing, summed.
    pub seconds: f64,
}

/// An upgrade as the record shows it.
struct Upgrade {
    origin: NodeOrigin,
    way: &'static str,
    began: SimTime,
    ended: Option<SimTime>,
    failure: Option<&'static str>,
}

/// All upgrades of a run, in order of their beginning.
pub(super) fn summary(outcome: &Outcome) -> Vec<UpgradeFigures> {
    let updates = outcome.record.upgrades.iter().map(|facts| Upgrade {
        origin: NodeOrigin::NodeGroup(facts.group),
        way: facts.way.as_str(),
        began: facts.began,
        ended: facts.ended,
        failure: facts.failure,
    });
    let mut all: Vec<Upgrade> = updates.chain(drifts(outcome)).collect();
    if all.is_empty() {
        return Vec::new();
    }
    all.sort_by_key(|upgrade| (upgrade.began, upgrade.origin.name().as_str()));
    let moves = moves::by_node(outcome);
    all.iter().map(|upgrade| figures(outcome, upgrade, &moves)).collect()
}

/// The drift of each NodePool of which a node was replaced for it.
fn drifts(outcome: &Outcome) -> Vec<Upgrade> {
    let record = &outcome.record;
    let mut pools: BTreeMap<&str, (Symbol, Option<SimTime>)> = BTreeMap::new();
    for facts in record.nodes.iter().filter(|facts| facts.end == Some(NodeEnd::Drifted)) {
        if let NodeOrigin::NodePool(pool) = facts.origin {
            let (_, last) = pools.entry(pool.as_str()).or_insert((pool, Some(SimTime::ZERO)));
            *last = facts.terminating.zip(*last).map(|(terminating, last)| terminating.max(last));
        }
    }
    let upgrade = |(pool, last): (Symbol, Option<SimTime>)| {
        let origin = NodeOrigin::NodePool(pool);
        let of_pool = |node: NodeId| record.nodes.get(node.index()).is_some_and(|facts| facts.origin == origin);
        let mut drifted = record.events.iter().filter(|event| event.kind == EventKind::NodeDrifted);
        let began = drifted.find(|event| event.node.is_some_and(of_pool)).map(|event| event.at)?;
        let waits = record.drifted.iter().any(|(node, _)| of_pool(*node));
        Some(Upgrade { origin, way: "drift", began, ended: last.filter(|_| !waits), failure: None })
    };
    pools.into_values().filter_map(upgrade).collect()
}

fn figures(outcome: &Outcome, upgrade: &Upgrade, moves: &BTreeMap<NodeId, Vec<moves::Move>>) -> UpgradeFigures {
    let end = SimTime::ZERO + outcome.about.duration;
    let until = upgrade.ended.unwrap_or(end);
    let nodes = &outcome.record.nodes;
    let item: Vec<(NodeId, &NodeFacts)> = nodes
        .iter()
        .enumerate()
        .filter(|(_, facts)| facts.origin == upgrade.origin)
        .map(|(index, facts)| (NodeId::from_index(index), facts))
        .collect();
    let ends_for_it = |facts: &NodeFacts| matches!(facts.end, Some(NodeEnd::Updated | NodeEnd::Drifted));
    let in_time = |at: Option<SimTime>| at.is_some_and(|at| upgrade.began <= at && at <= until);
    let replaced = item.iter().filter(|(_, facts)| ends_for_it(facts) && in_time(facts.deletion_requested)).count();
    let (peak, hours, cost) = additional(&item, upgrade.began, until);
    let missing =
        missing(outcome, item.iter().filter_map(|(node, _)| moves.get(node)).flatten(), (upgrade.began, until));
    let outcome_of = upgrade.failure.unwrap_or(if upgrade.ended.is_some() { SUCCEEDED } else { UNDER_WAY });
    UpgradeFigures {
        node_origin: upgrade.origin.name().to_string(),
        way: upgrade.way.to_owned(),
        began_seconds: upgrade.began.as_secs_f64(),
        duration_seconds: rounded((until - upgrade.began).as_secs_f64(), 6),
        outcome: outcome_of.to_owned(),
        replaced: replaced as u64,
        extra_nodes: peak,
        extra_node_hours: rounded(hours, 6),
        extra_cost: rounded(cost, 9),
        evictions: missing.iter().map(|item| item.evictions).sum(),
        missing_seconds: rounded(missing.iter().map(|missing_figures| missing_figures.seconds).sum(), 6),
        missing,
    }
}

/// Most additional nodes at once, their hours, and their cost.
fn additional(nodes: &[(NodeId, &NodeFacts)], began: SimTime, until: SimTime) -> (u64, f64, f64) {
    let mut changes: BTreeMap<SimTime, (i64, f64)> = BTreeMap::new();
    for (_, facts) in nodes {
        let Some(running) = facts.running else { continue };
        let end = facts.terminating.or(facts.terminated).unwrap_or(SimTime::FAR_FUTURE);
        for (at, sign) in [(running.max(SimTime::ZERO), 1), (end, -1)] {
            let change = changes.entry(at).or_default();
            change.0 += sign;
            change.1 += sign as f64 * facts.rate.as_f64();
        }
    }
    let (mut count, mut rate) = (0_i64, 0.0);
    let (mut peak, mut hours, mut cost) = (0, 0.0, 0.0);
    let before = nodes_at(&changes, began);
    let mut last = began;
    for (&at, &(more, its_rate)) in changes.iter().take_while(|(at, _)| **at < until) {
        add(&mut hours, &mut cost, (count - before, count, rate), at.max(began).saturating_since(last));
        (count, rate) = (count + more, rate + its_rate);
        last = last.max(at);
        if at >= began {
            peak = peak.max(count - before);
        }
    }
    add(&mut hours, &mut cost, (count - before, count, rate), until.saturating_since(last));
    (peak.unsigned_abs(), hours, cost)
}

fn nodes_at(changes: &BTreeMap<SimTime, (i64, f64)>, at: SimTime) -> i64 {
    changes.range(..=at).map(|(_, (more, _))| more).sum()
}

/// Adds a span, with the number of additional nodes and their joint hourly rate.
fn add(hours: &mut f64, cost: &mut f64, (extra, count, rate): (i64, i64, f64), span: SimDuration) {
    if extra > 0 && count > 0 {
        let item = extra as f64 * span.as_secs_f64() / HOUR_SECONDS;
        *hours += item;
        *cost += item * rate / count as f64;
    }
}

/// Pods that had to leave between two times, by workload.
fn missing<'m>(
    outcome: &Outcome,
    moves: impl Iterator<Item = &'m moves::Move>,
    (began, until): (SimTime, SimTime),
) -> Vec<MissingFigures> {
    let mut found: BTreeMap<WorkloadId, (u64, f64)> = BTreeMap::new();
    for move_ in moves {
        let left = outcome.record.pods.get(move_.pod).and_then(|facts| facts.deletion_requested.or(facts.cut_off));
        if left.is_some_and(|at| began <= at && at <= until) {
            let entry = found.entry(move_.workload).or_default();
            entry.0 += 1;
            entry.1 += moves::missing_time(outcome, move_).as_secs_f64();
        }
    }
    let name = |id: WorkloadId| outcome.record.workloads[id.index()].name.to_string();
    let figures =
        |(id, (evictions, seconds))| MissingFigures { workload: name(id), evictions, seconds: rounded(seconds, 6) };
    let mut all: Vec<MissingFigures> = found.into_iter().map(figures).collect();
    all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then_with(|| one.workload.cmp(&other.workload)));
    all
}

impl UpgradeFigures {
    /// The upgrade in one sentence.
    pub fn sentence(&self) -> String {
        let nodes = format::counted(self.replaced, "node", "nodes");
        let length = format::span(self.duration_seconds);
        format!("{} ({}): {nodes} replaced in {length}, {}", self.node_origin, self.way, self.outcome)
    }

    /// The error and the nodes replaced before it, of an upgrade that failed.
    pub fn failure(&self) -> String {
        let nodes = format::counted(self.replaced, "node", "nodes");
        format!("{} after {}, {nodes} replaced", self.outcome, format::span(self.duration_seconds))
    }
}
