//! Which pod took the place of which, and which node.
//!
//! A record knows pods one by one: that one follows another is worked out here. Of each workload, the first pod created
//! when or after another had to leave is taken to be its successor, each pod once and at most a minute later; pods that a
//! rise of replicas makes at the same time can be mistaken for successors. A StatefulSet makes the next pod of a name only once the
//! former is gone, which takes long where its node is not heard of: there the next of that name is the successor, whenever it
//! comes, and until it does the pod is missing.

use std::collections::BTreeMap;

use crate::domain::{NodeId, PodId, SimDuration, SimTime, WorkloadId};
use crate::summary::lives::{self, is_daemon};
use nodecast_world::Outcome;
use nodecast_world::record::{NodeEnd, PodFacts, WorkloadKind};

/// A successor is created so soon: at once by a ReplicaSet, ten seconds later by a Job.
const SUCCEEDS_WITHIN: SimDuration = SimDuration::from_secs(60);

/// A pod that had to leave its node.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The pod.
    pub pod: PodId,
    /// Its workload.
    pub workload: WorkloadId,
    /// The pod that took its place.
    pub successor: Option<PodId>,
}

/// A node that ended.
#[derive(Clone, Debug)]
pub struct Removal<'o> {
    /// The node.
    pub node: NodeId,
    /// Why.
    pub end: NodeEnd,
    /// When its removal was decided.
    pub at: SimTime,
    /// Its pods that had to leave.
    pub moves: Vec<Move>,
    /// Nodes that were asked for from then on and took their place.
    pub replacements: Vec<NodeId>,
    /// The outcome that it is part of.
    pub outcome: &'o Outcome,
}

impl Removal<'_> {
    /// The nodes to which its pods' successors went.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = NodeId> {
        let pods = &self.outcome.record.pods;
        self.moves.iter().filter_map(|move_| pods.get(move_.successor?)?.node)
    }
}

/// Every node that ran and ended, in order of the decision, and the time for which pods that had to leave since figures count
/// were missing, summed.
pub fn removals(outcome: &Outcome) -> (Vec<Removal<'_>>, SimDuration) {
    let (mut by_node, lost) = moves(outcome);
    let record = &outcome.record;
    let started = decided(outcome);
    let mut found: Vec<Removal<'_>> = record
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(index, facts)| {
            let node = NodeId::from_index(index);
            let end = facts.end.filter(|_| facts.registered.is_some())?;
            let asked = facts.deletion_requested.or(facts.terminating).or(facts.terminated)?;
            let (at, made) = started.get(&node).copied().unwrap_or((asked, &[]));
            let moves = by_node.remove(&node).unwrap_or_default();
            Some(Removal { node, end, at, moves, replacements: made.to_vec(), outcome })
        })
        .collect();
    for removal in &mut found {
        let from = removal.at;
        let new: Vec<NodeId> =
            removal.destinations().filter(|node| record.nodes[node.index()].requested >= from).collect();
        removal.replacements.extend(new);
        removal.replacements.retain(|node| record.nodes[node.index()].launched.is_some());
        removal.replacements.sort_unstable();
        removal.replacements.dedup();
    }
    found.sort_by_key(|removal| (removal.at, removal.node));
    (found, lost)
}

/// The pod that took the place of one that had to leave its node; `None` if it did not have to, or if none followed.
pub fn successor(outcome: &Outcome, pod: PodId) -> Option<PodId> {
    let (by_node, _) = moves(outcome);
    by_node.into_values().flatten().find(|node| node.pod == pod)?.successor
}

/// Pods that had to leave, by node.
pub(crate) fn by_node(outcome: &Outcome) -> BTreeMap<NodeId, Vec<Move>> {
    moves(outcome).0
}

/// The time for which a pod that had to leave was missing.
pub(crate) fn missing_time(outcome: &Outcome, item: &Move) -> SimDuration {
    let end = SimTime::ZERO + outcome.about.duration;
    let pods = &outcome.record.pods;
    let facts = pods.facts(item.pod);
    let waits =
        outcome.record.workloads[item.workload.index()].kind == WorkloadKind::StatefulSet && facts.removed.is_none();
    if item.successor.is_none() && !waits {
        return SimDuration::ZERO;
    }
    missing(outcome, &facts, item.successor.map(|successor| pods.facts(successor)).as_ref(), end)
}

/// When each node of a command that succeeded was decided on, and the claims made for it.
fn decided(outcome: &Outcome) -> BTreeMap<NodeId, (SimTime, &[NodeId])> {
    let mut found = BTreeMap::new();
    for command in outcome.record.commands.iter().filter(|command| command.succeeded.is_some()) {
        let Some(started) = command.started else { continue };
        found.extend(command.nodes.iter().map(|&node| (node, (started, command.made.as_slice()))));
    }
    found
}

/// Pods of a workload in order of creation with when that was, and those that had to leave with when that was.
type Changes = (Vec<(SimTime, PodId)>, Vec<(SimTime, PodId)>);

/// Pods that had to leave, by node, and the time for which they were missing.
fn moves(outcome: &Outcome) -> (BTreeMap<NodeId, Vec<Move>>, SimDuration) {
    let end = SimTime::ZERO + outcome.about.duration;
    let pods = &outcome.record.pods;
    let mut by_workload: BTreeMap<WorkloadId, Changes> = BTreeMap::new();
    for (index, pod) in pods.unnamed().enumerate().filter(|(_, pod)| !is_daemon(outcome, pod)) {
        let (made, left) = by_workload.entry(pod.workload).or_default();
        made.push((pod.created, PodId::from_index(index)));
        if pod.evicted {
            left.push((pod.deletion_requested.unwrap_or(end), PodId::from_index(index)));
        }
    }
    let (mut by_node, mut lost): (BTreeMap<NodeId, Vec<Move>>, _) = (BTreeMap::new(), SimDuration::ZERO);
    for (workload, (made, mut left)) in by_workload {
        left.sort_unstable();
        let has_names =
            !left.is_empty() && outcome.record.workloads[workload.index()].kind == WorkloadKind::StatefulSet;
        let by_name = has_names.then(|| by_name(outcome, &made));
        let mut next = made.into_iter().peekable();
        for (leaves, pod) in left {
            let facts = pods.facts(pod);
            let successor = match &by_name {
                Some(by_name) => {
                    by_name.get(&*facts.name).and_then(|name| name.iter().find(|name| **name > pod).copied())
                }
                None => {
                    while next.next_if(|(created, item)| *created < leaves || *item <= pod).is_some() {}
                    next.next_if(|(created, _)| *created - leaves <= SUCCEEDS_WITHIN).map(|(_, item)| item)
                }
            };
            let counts = !facts.placeholder && lives::left(&facts, end) >= outcome.about.counts_from();
            // A StatefulSet waits for the end of the pod, and wants it to the last.
            let waits = by_name.is_some() && facts.removed.is_none();
            if counts && (successor.is_some() || waits) {
                lost += missing(outcome, &facts, successor.map(|successor| pods.facts(successor)).as_ref(), end);
            }
            if let Some(node) = facts.node {
                by_node.entry(node).or_default().push(Move { pod, workload, successor });
            }
        }
    }
    (by_node, lost)
}

/// Pods by name, each name's in order of creation.
fn by_name<'o>(outcome: &'o Outcome, pods: &[(SimTime, PodId)]) -> BTreeMap<&'o str, Vec<PodId>> {
    let mut found: BTreeMap<&str, Vec<PodId>> = BTreeMap::new();
    for &(_, pod) in pods {
        found.entry(outcome.record.pods.name(pod).unwrap_or_default()).or_default().push(pod);
    }
    found
}

/// From when a pod stopped serving to its successor being Ready, or to the successor's own end; to the end of the run where none has come.
fn missing(outcome: &Outcome, pod: &PodFacts, successor: Option<&PodFacts>, end: SimTime) -> SimDuration {
    let node = pod.node.map(|node| &outcome.record.nodes[node.index()]);
    let gone = node.and_then(|node| node.terminating);
    let from = pod.deletion_requested.into_iter().chain(gone).chain(pod.cut_off).min().unwrap_or(end);
    let until = successor
        .and_then(|successor| successor.ready.or(successor.deletion_requested).or(successor.removed))
        .unwrap_or(end);
    until.saturating_since(from)
}
