//! Churn: what the coming and going of nodes costs pods and the bill, and whether it goes round in circles.

mod cycles;
pub mod moves;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Count, HOUR_SECONDS, rounded};
use crate::cloud::BillItem;
use crate::domain::{NodeId, SimTime};
use crate::format;
use moves::{Removal, removals};
use nodecast_world::Outcome;
use nodecast_world::record::{CommandFacts, CommandId, NodeEnd, NodeFacts};

/// Cycles that a summary holds at most.
const CYCLES_MAX: usize = 20;
/// Decisions that a summary holds at most.
const DECISIONS_MAX: usize = 200;
/// Names of nodes that a cycle holds at most.
const NODES_MAX: usize = 10;
/// Seconds of a day.
const DAY_SECONDS: f64 = 24.0 * HOUR_SECONDS;

/// What the coming and going of nodes cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChurnSummary {
    /// Pods evicted or lost with their node, those of DaemonSets left out.
    pub evictions: u64,
    /// The same per day of simulated time; `None` for a run without duration.
    pub evictions_per_day: Option<f64>,
    /// Time for which pods that had to leave a node were missing: from the end of one to its successor being Ready, summed.
    pub ready_time_lost_seconds: f64,
    /// Nodes that ended and were replaced, by reason.
    pub replacements: Vec<ReplacementFigures>,
    /// Hours for which a replacement and a node that it replaced were both billed.
    pub overlap_hours: f64,
    /// What the replacements cost in these hours.
    pub overlap_cost: f64,
    /// Bytes of images pulled to replacements.
    pub image_bytes: u64,
    /// What pulling them cost: NAT gateways and traffic between zones.
    pub image_cost: f64,
    /// Cycles found in all.
    pub cycles_in_all: u64,
    /// Cycles, those with the most rounds first, at most twenty.
    pub cycles: Vec<CycleFigures>,
    /// What kept nodes from being consolidated, the most nodes first.
    pub blocked: Vec<BlockedFigures>,
    /// Nodes that are drifted at the end and not on their way out; left out where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drifted_at_end: Option<DriftedFigures>,
    /// Decisions of Karpenter's disruption in all.
    pub decisions_in_all: u64,
    /// The first of them, at most two hundred; `events.jsonl` has all.
    pub decisions: Vec<DecisionFigures>,
}

/// Nodes that ended for one reason.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReplacementFigures {
    /// The reason.
    pub reason: String,
    /// Nodes that ended for it.
    pub nodes: u64,
    /// Of these, nodes in whose place another was launched.
    pub replaced: u64,
    /// Of these, nodes replaced by one of the same instance type and capacity type.
    pub by_equal: u64,
}

/// The same again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CycleFigures {
    /// `pods moved`: the same pods were moved from node to node; `replacement failed`: a node was to be replaced, and could
    /// not be.
    pub kind: String,
    /// Why nodes were removed, or were to be.
    pub reason: String,
    /// How often.
    pub rounds: u64,
    /// Mean time between two rounds.
    pub period_seconds: f64,
    /// The first round, from the start of the run.
    pub first_seconds: f64,
    /// The last round, from the start of the run.
    pub last_seconds: f64,
    /// Pods evicted by it.
    pub evictions: u64,
    /// Namespace and name of the workloads whose pods it moved or would have moved.
    pub workloads: Vec<String>,
    /// Nodes that it removed or would have removed, in order, the first ten.
    pub nodes: Vec<String>,
    /// Instance types of these nodes.
    pub instance_types: Vec<String>,
    /// What the last round came to, in the words of the decision; empty where pods were moved.
    pub because: String,
}

/// What kept nodes from being consolidated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockedFigures {
    /// What.
    pub reason: String,
    /// Nodes that it kept at some time.
    pub nodes: u64,
    /// Looks at a node that met it. Consolidation looks again only when something has changed.
    pub looks: u64,
}

/// Nodes that are drifted at the end and not on their way out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftedFigures {
    /// How many.
    pub nodes: u64,
    /// What keeps them from being replaced, the most nodes first; those whose turn has not come are not among them.
    pub blocked: Vec<Count>,
}

/// A decision of Karpenter's disruption.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionFigures {
    /// As `nodecast explain` takes it.
    pub id: String,
    /// When it was made, from the start of the run.
    pub at_seconds: f64,
    /// `Empty`, `Drifted` or `Underutilized`.
    pub reason: String,
    /// The nodes to remove.
    pub nodes: Vec<String>,
    /// What was to take their place.
    pub replacements: Vec<String>,
    /// `succeeded`, `rejected`, `failed` or `under way`.
    pub outcome: String,
    /// Why, where it was rejected or failed.
    pub because: Option<String>,
}

impl CycleFigures {
    /// The cycle in one sentence.
    pub fn sentence(&self) -> String {
        let many = self.workloads.len().saturating_sub(3);
        let more = if many > 0 { format!(" and {many} more") } else { String::new() };
        let workloads = self.workloads.iter().take(3).cloned().collect::<Vec<_>>().join(", ") + &more;
        let period = format::span(self.period_seconds);
        let rounds = format::count(self.rounds);
        let nodes = self.nodes.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let dots = if self.rounds > 3 { ", \u{2026}" } else { "" };
        if self.kind == cycles::MOVED {
            let types = self.instance_types.join(", ");
            format!("every {period}, {rounds} times: pods of {workloads} are evicted from {nodes}{dots} ({types})")
        } else {
            let because = &self.because;
            format!("every {period}, {rounds} times: replacement of {nodes} started but not completed: {because}")
        }
    }
}

impl DecisionFigures {
    /// Sums up the command with this id.
    pub fn new(outcome: &Outcome, id: CommandId, facts: &CommandFacts) -> Self {
        let at = facts.proposed.or(facts.started).or(facts.failed.as_ref().map(|(at, _)| *at)).unwrap_or_default();
        let because = facts.rejected.as_ref().or(facts.failed.as_ref()).map(|(_, why)| why.to_string());
        let outcome_of = match (&facts.rejected, &facts.failed, facts.succeeded) {
            (Some(_), _, _) => "rejected",
            (None, Some(_), _) => "failed",
            (None, None, Some(_)) => "succeeded",
            (None, None, None) => "under way",
        };
        Self {
            id: id.to_string(),
            at_seconds: at.as_secs_f64(),
            reason: facts.reason.as_str().to_owned(),
            nodes: facts.concerned().iter().map(|&node| name(outcome, node)).collect(),
            replacements: facts.replacements.iter().map(ToString::to_string).collect(),
            outcome: outcome_of.to_owned(),
            because,
        }
    }
}

/// Sums up the churn of a run.
pub(super) fn summary(outcome: &Outcome, evictions: u64) -> ChurnSummary {
    let counts_from = outcome.about.counts_from();
    let (mut removals, lost) = removals(outcome);
    removals.retain(|removal| removal.at >= counts_from);
    let days = (outcome.about.duration - outcome.about.warm_up).as_secs_f64() / DAY_SECONDS;
    let (overlap_hours, overlap_cost) = overlap(outcome, &removals);
    let (image_bytes, image_cost) = images(outcome, &removals);
    let cycles = cycles::find(outcome, &removals);
    let commands = &outcome.record.commands;
    let decision = |(index, facts): (usize, &CommandFacts)| {
        DecisionFigures::new(outcome, CommandId(u32::try_from(index).unwrap_or(u32::MAX)), facts)
    };
    ChurnSummary {
        evictions,
        evictions_per_day: (days > 0.0).then(|| rounded(evictions as f64 / days, 6)),
        ready_time_lost_seconds: rounded(lost.as_secs_f64(), 6),
        replacements: replacements(outcome, &removals),
        overlap_hours,
        overlap_cost,
        image_bytes,
        image_cost,
        cycles_in_all: cycles.len() as u64,
        cycles: cycles.into_iter().take(CYCLES_MAX).collect(),
        blocked: blocked(outcome),
        drifted_at_end: drifted_at_end(outcome),
        decisions_in_all: commands.len() as u64,
        decisions: commands.iter().enumerate().take(DECISIONS_MAX).map(decision).collect(),
    }
}

fn name(outcome: &Outcome, node: NodeId) -> String {
    outcome.record.nodes.get(node.index()).map_or_else(String::new, |node| node.name.clone())
}

fn replacements(outcome: &Outcome, removals: &[Removal<'_>]) -> Vec<ReplacementFigures> {
    let nodes = &outcome.record.nodes;
    let kind = |node: &NodeFacts| (node.instance_type, node.capacity_type);
    let mut by_reason: BTreeMap<NodeEnd, ReplacementFigures> = BTreeMap::new();
    for removal in removals {
        let reason = by_reason.entry(removal.end).or_insert_with(|| ReplacementFigures {
            reason: removal.end.as_str().to_owned(),
            nodes: 0,
            replaced: 0,
            by_equal: 0,
        });
        let old = kind(&nodes[removal.node.index()]);
        reason.nodes += 1;
        reason.replaced += u64::from(!removal.replacements.is_empty());
        reason.by_equal += u64::from(removal.replacements.iter().any(|new| kind(&nodes[new.index()]) == old));
    }
    by_reason.into_values().collect()
}

/// When a node was billed.
fn billed(node: &NodeFacts, end: SimTime) -> Option<(SimTime, SimTime)> {
    let from = node.running?.max(SimTime::ZERO);
    let until = node.terminating.or(node.terminated).unwrap_or(end).min(end);
    (from < until).then_some((from, until))
}

/// Hours for which replacements were billed beside a node that they replaced, and what they cost then.
fn overlap(outcome: &Outcome, removals: &[Removal<'_>]) -> (f64, f64) {
    let end = SimTime::ZERO + outcome.about.duration;
    let nodes = &outcome.record.nodes;
    // Of the nodes that one replacement replaces, the one that stays longest counts.
    let mut until: BTreeMap<NodeId, SimTime> = BTreeMap::new();
    for removal in removals {
        let Some((_, gone)) = billed(&nodes[removal.node.index()], end) else { continue };
        for &new in &removal.replacements {
            let latest = until.entry(new).or_insert(gone);
            *latest = gone.max(*latest);
        }
    }
    let (mut hours, mut cost) = (0.0, 0.0);
    for (new, gone) in until {
        let facts = &nodes[new.index()];
        let Some((from, last)) = billed(facts, end) else { continue };
        let both = gone.min(last).saturating_since(from).as_secs_f64() / HOUR_SECONDS;
        hours += both;
        cost += both * facts.rate.as_f64();
    }
    (rounded(hours, 6), rounded(cost, 9))
}

/// Bytes of images pulled to replacements, and what that cost.
fn images(outcome: &Outcome, removals: &[Removal<'_>]) -> (u64, f64) {
    let new: BTreeSet<NodeId> = removals.iter().flat_map(|removal| removal.replacements.iter().copied()).collect();
    let bytes: i64 = new.iter().map(|node| outcome.record.nodes[node.index()].image_bytes).sum();
    let transfer = |item| matches!(item, BillItem::NatTransfer | BillItem::CrossZoneTransfer);
    let lines = outcome.bill.lines.iter().filter(|line| transfer(line.item));
    let cost = lines.filter(|line| line.node.is_some_and(|node| new.contains(&node))).map(|line| line.amount.as_f64());
    (bytes.unsigned_abs(), rounded(cost.fold(0.0, |sum, cost| sum + cost), 9))
}

fn drifted_at_end(outcome: &Outcome) -> Option<DriftedFigures> {
    let drifted = &outcome.record.drifted;
    let mut kept: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in drifted.iter().filter_map(|(_, kind)| *kind) {
        *kept.entry(kind.as_str()).or_default() += 1;
    }
    let mut blocked: Vec<Count> =
        kept.into_iter().map(|(name, count)| Count { name: name.to_owned(), count }).collect();
    blocked.sort_by_key(|item| std::cmp::Reverse(item.count));
    (!drifted.is_empty()).then_some(DriftedFigures { nodes: drifted.len() as u64, blocked })
}

fn blocked(outcome: &Outcome) -> Vec<BlockedFigures> {
    let figures = |(kind, looks, nodes): (nodecast_karpenter::disruption::Obstacle, u64, u64)| BlockedFigures {
        reason: kind.as_str().to_owned(),
        nodes,
        looks,
    };
    let mut found: Vec<BlockedFigures> = outcome.record.obstacles.met().map(figures).collect();
    // What stands in the way for a moment of every node's life is met at many nodes, what holds them on in many looks.
    found.sort_by_key(|blocked_figures| std::cmp::Reverse((blocked_figures.looks, blocked_figures.nodes)));
    found
}
