//! Limit cycles: the same pods moved again and again, or a node that is to be replaced again and again and cannot be.
//!
//! A cycle has at least four rounds, no two of them further apart than [`LONGEST_PERIOD`], and no time between two rounds is
//! more than [`UNEVEN`] times another.

use std::collections::{BTreeMap, BTreeSet};

use super::moves::Removal;
use super::{CycleFigures, NODES_MAX, name};
use crate::domain::{NodeId, PodId, SimDuration, SimTime};
use crate::report::summary::rounded;
use crate::simulation::Outcome;
use crate::world::record::{CommandFacts, NodeEnd};

/// The kind of a cycle that moves pods.
pub(super) const MOVED: &str = "pods moved";
/// The kind of a cycle of replacements that fail.
const FAILED: &str = "replacement failed";
/// Rounds that make a cycle.
const ROUNDS: usize = 4;
/// Time between two rounds at most.
const LONGEST_PERIOD: SimDuration = SimDuration::from_secs(2 * 3_600);
/// How much longer the longest time between two rounds may be than the shortest.
const UNEVEN: f64 = 1.5;

/// All cycles, those with the most rounds first.
pub(super) fn find(outcome: &Outcome, removals: &[Removal<'_>]) -> Vec<CycleFigures> {
    let mut found: Vec<CycleFigures> = moved(outcome, removals);
    found.extend(failed(outcome));
    found.sort_by(|a, b| b.rounds.cmp(&a.rounds).then(a.first_seconds.total_cmp(&b.first_seconds)));
    found
}

/// Chains of removals of which each moves pods that the one before has moved.
fn moved(outcome: &Outcome, removals: &[Removal<'_>]) -> Vec<CycleFigures> {
    let by_choice = |end| matches!(end, NodeEnd::Underutilized | NodeEnd::Drifted);
    let mut mover: BTreeMap<PodId, usize> = BTreeMap::new();
    for (index, removal) in removals.iter().enumerate().filter(|(_, removal)| by_choice(removal.end)) {
        mover.extend(removal.moves.iter().map(|own| (own.pod, index)));
    }
    let mut used = vec![false; removals.len()];
    let mut found = Vec::new();
    for first in 0..removals.len() {
        let mut chain = Vec::new();
        let mut next = Some(first).filter(|&own| by_choice(removals[own].end));
        while let Some(index) = next.filter(|&index| !used[index]) {
            used[index] = true;
            chain.push(&removals[index]);
            let successors = removals[index].moves.iter().filter_map(|own| mover.get(&own.successor?).copied());
            next = successors.filter(|&later| later > index && !used[later]).min();
        }
        let times: Vec<SimTime> = chain.iter().map(|removal| removal.at).collect();
        found.extend(regular(&times).map(|(from, to)| cycle_of_moves(outcome, &chain[from..to])));
    }
    found
}

fn cycle_of_moves(outcome: &Outcome, chain: &[&Removal<'_>]) -> CycleFigures {
    let moves = || chain.iter().flat_map(|removal| &removal.moves);
    let reasons: BTreeSet<&str> = chain.iter().map(|removal| removal.end.as_str()).collect();
    let workloads: BTreeSet<String> =
        moves().map(|own| outcome.record.workloads[own.workload.index()].name.to_string()).collect();
    let nodes: Vec<NodeId> = chain.iter().map(|removal| removal.node).collect();
    let times: Vec<SimTime> = chain.iter().map(|removal| removal.at).collect();
    let reason = reasons.into_iter().collect::<Vec<_>>().join(", ");
    CycleFigures {
        evictions: moves().count() as u64,
        workloads: workloads.into_iter().collect(),
        ..described(outcome, MOVED, reason, &times, &nodes)
    }
}

/// Commands that were given up again and again, by reason and the cheapest type that was to come.
fn failed(outcome: &Outcome) -> Vec<CycleFigures> {
    let mut groups: BTreeMap<_, Vec<(SimTime, &CommandFacts, &str)>> = BTreeMap::new();
    let counts_from = outcome.about.counts_from();
    for command in &outcome.record.commands {
        let failed = command.failed.as_ref().filter(|(at, _)| *at >= counts_from);
        let Some(((at, why), replacement)) = failed.zip(command.replacements.first()) else {
            continue;
        };
        let kind = replacement.cheapest.map(|(name, _)| name);
        let key = (command.reason.as_str(), replacement.node_pool, kind);
        groups.entry(key).or_default().push((*at, command, &**why));
    }
    let mut found = Vec::new();
    for ((reason, _, _), commands) in groups {
        let times: Vec<SimTime> = commands.iter().map(|(at, _, _)| *at).collect();
        for (from, to) in regular(&times) {
            let run = &commands[from..to];
            let nodes: Vec<NodeId> = run.iter().flat_map(|(_, command, _)| command.concerned()).copied().collect();
            let because = run.last().map_or_else(String::new, |(_, _, why)| (*why).to_owned());
            let workloads = workloads_on(outcome, &nodes, times[from]);
            let cycle = described(outcome, FAILED, reason.to_lowercase(), &times[from..to], &nodes);
            found.push(CycleFigures { workloads, because, ..cycle });
        }
    }
    found
}

/// The workloads of the pods that were on these nodes at an instant or came later.
fn workloads_on(outcome: &Outcome, nodes: &[NodeId], at: SimTime) -> Vec<String> {
    let nodes: BTreeSet<NodeId> = nodes.iter().copied().collect();
    let record = &outcome.record;
    let there = record.pods.unnamed().filter(|pod| {
        let on = pod.node.is_some_and(|node| nodes.contains(&node)) && pod.removed.is_none_or(|gone| gone > at);
        on && !super::super::lives::is_daemon(outcome, pod)
    });
    let names: BTreeSet<String> = there.map(|pod| record.workloads[pod.workload.index()].name.to_string()).collect();
    names.into_iter().collect()
}

fn described(outcome: &Outcome, kind: &str, reason: String, times: &[SimTime], nodes: &[NodeId]) -> CycleFigures {
    let (first, last) = (times[0], times[times.len() - 1]);
    let mut distinct = Vec::new();
    for &node in nodes {
        if !distinct.contains(&node) && distinct.len() < NODES_MAX {
            distinct.push(node);
        }
    }
    let types: BTreeSet<String> = nodes
        .iter()
        .filter_map(|node| outcome.record.nodes[node.index()].instance_type)
        .map(|kind| kind.to_string())
        .collect();
    CycleFigures {
        kind: kind.to_owned(),
        reason,
        rounds: times.len() as u64,
        period_seconds: rounded((last - first).as_secs_f64() / (times.len() - 1) as f64, 3),
        first_seconds: first.as_secs_f64(),
        last_seconds: last.as_secs_f64(),
        evictions: 0,
        workloads: Vec::new(),
        nodes: distinct.into_iter().map(|node| name(outcome, node)).collect(),
        instance_types: types.into_iter().collect(),
        because: String::new(),
    }
}

/// The stretches of `times` (ascending) that are regular and long enough, each as long as it can be from its start.
fn regular(times: &[SimTime]) -> impl Iterator<Item = (usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while from + ROUNDS <= times.len() {
        let (mut to, mut least, mut most) = (from + 1, f64::INFINITY, 0.0_f64);
        while to < times.len() {
            let gap = times[to] - times[to - 1];
            let seconds = gap.as_secs_f64();
            let (low, high) = (least.min(seconds), most.max(seconds));
            if seconds <= 0.0 || gap > LONGEST_PERIOD || high > UNEVEN * low {
                break;
            }
            (least, most, to) = (low, high, to + 1);
        }
        if to - from >= ROUNDS {
            found.push((from, to));
            from = to;
        } else {
            from += 1;
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::regular;
    use crate::domain::SimTime;

    fn found(minutes: &[i64]) -> Vec<(usize, usize)> {
        let times: Vec<SimTime> = minutes.iter().map(|own| SimTime::from_micros(own * 60_000_000)).collect();
        regular(&times).collect()
    }

    #[test]
    fn four_even_rounds_are_a_cycle() {
        assert_eq!(found(&[0, 4, 8, 12]), [(0, 4)]);
        assert_eq!(found(&[0, 4, 8]), []);
        assert_eq!(found(&[0, 4, 9, 13, 18]), [(0, 5)]);
    }

    #[test]
    fn what_is_uneven_or_rare_is_none() {
        assert_eq!(found(&[0, 4, 20, 24]), []);
        assert_eq!(found(&[0, 150, 300, 450]), []);
        assert_eq!(found(&[0, 30, 34, 38, 42, 46, 90]), [(1, 6)]);
    }
}
