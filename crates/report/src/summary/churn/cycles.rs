//! Limit cycles: the same pods moved again and again, or a node that is to be replaced again and again and cannot be.
//!
//! A cycle has at least four rounds, no two of them further apart than [`LONGEST_PERIOD`], and no time between two rounds differs
//! from the mean of those before by more than a factor of [`UNEVEN`]. A round may have several steps, as where one node becomes two and
//! these become one: the same instance types leave in the same step of each round.

use std::collections::{BTreeMap, BTreeSet};

use super::moves::Removal;
use super::{CycleFigures, NODES_MAX, name};
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};
use crate::summary::rounded;
use nodecast_world::Outcome;
use nodecast_world::record::{CommandFacts, NodeEnd};

/// The kind of a cycle that moves pods.
pub(super) const MOVED: &str = "pods moved";
/// The kind of a cycle of replacements that fail.
const FAILED: &str = "replacement failed";
/// Rounds that make a cycle.
const ROUNDS: usize = 4;
/// Time between two rounds at most.
const LONGEST_PERIOD: SimDuration = SimDuration::from_secs(2 * 3_600);
/// By which factor a time between two rounds may differ from the mean of those before. The longest and the shortest of all would be
/// further apart the more rounds there are.
const UNEVEN: f64 = 1.5;
/// Steps of a round at most.
const STEPS_MAX: usize = 4;

/// All cycles, those with the most rounds first.
pub(super) fn find(outcome: &Outcome, removals: &[Removal<'_>]) -> Vec<CycleFigures> {
    let mut found: Vec<CycleFigures> = moved(outcome, removals);
    found.extend(failed(outcome));
    found.sort_by(|a, b| b.rounds.cmp(&a.rounds).then(a.first_seconds.total_cmp(&b.first_seconds)));
    found
}

/// Nodes that were removed at one instant, as one command does.
type Step<'r, 'o> = Vec<&'r Removal<'o>>;

/// Chains of steps of which each moves pods that the one before has moved.
fn moved(outcome: &Outcome, removals: &[Removal<'_>]) -> Vec<CycleFigures> {
    let by_choice = |removal: &&Removal<'_>| matches!(removal.end, NodeEnd::Underutilized | NodeEnd::Drifted);
    let mut steps: Vec<Step<'_, '_>> = Vec::new();
    for removal in removals.iter().filter(by_choice) {
        match steps.last_mut() {
            Some(last) if last[0].at == removal.at => last.push(removal),
            _ => steps.push(vec![removal]),
        }
    }
    let mut mover: BTreeMap<PodId, usize> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        mover.extend(step.iter().flat_map(|removal| &removal.moves).map(|moved| (moved.pod, index)));
    }
    let mut used = vec![false; steps.len()];
    let mut found = Vec::new();
    for first in 0..steps.len() {
        let mut chain = Vec::new();
        let mut next = Some(first);
        while let Some(index) = next.filter(|&index| !used[index]) {
            used[index] = true;
            chain.push(&steps[index]);
            let moves = steps[index].iter().flat_map(|removal| &removal.moves);
            let successors = moves.filter_map(|moved| mover.get(&moved.successor?).copied());
            next = successors.filter(|&later| later > index && !used[later]).min();
        }
        let times: Vec<SimTime> = chain.iter().map(|step| step[0].at).collect();
        let types: Vec<Vec<Option<Symbol>>> = chain.iter().map(|step| types_of(outcome, step)).collect();
        let cycles = regular(&times, |one, other| types[one] == types[other]);
        found.extend(cycles.map(|stretch| cycle_of_moves(outcome, &chain[stretch.from..stretch.to], stretch)));
    }
    found
}

/// The instance types of the nodes that leave in a step, in order.
fn types_of(outcome: &Outcome, step: &Step<'_, '_>) -> Vec<Option<Symbol>> {
    let types = step.iter().map(|removal| outcome.record.nodes[removal.node.index()].instance_type);
    let mut types: Vec<Option<Symbol>> = types.collect();
    types.sort_unstable();
    types
}

fn cycle_of_moves(outcome: &Outcome, chain: &[&Step<'_, '_>], stretch: Stretch) -> CycleFigures {
    let removals = || chain.iter().flat_map(|step| step.iter());
    let moves = || removals().flat_map(|removal| &removal.moves);
    let reasons: BTreeSet<&str> = removals().map(|removal| removal.end.as_str()).collect();
    let workloads: BTreeSet<String> =
        moves().map(|move_| outcome.record.workloads[move_.workload.index()].name.to_string()).collect();
    let nodes: Vec<NodeId> = removals().map(|removal| removal.node).collect();
    let times: Vec<SimTime> = chain.iter().map(|step| step[0].at).collect();
    let reason = reasons.into_iter().collect::<Vec<_>>().join(", ");
    CycleFigures {
        evictions: moves().count() as u64,
        workloads: workloads.into_iter().collect(),
        ..described(outcome, MOVED, reason, (&times, stretch.steps), &nodes)
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
        // Alike by their key; a round is one attempt.
        for Stretch { from, to, .. } in regular(&times, |_, _| false) {
            let run = &commands[from..to];
            let nodes: Vec<NodeId> = run.iter().flat_map(|(_, command, _)| command.concerned()).copied().collect();
            let because = run.last().map_or_else(String::new, |(_, _, why)| (*why).to_owned());
            let workloads = workloads_on(outcome, &nodes, times[from]);
            let cycle = described(outcome, FAILED, reason.to_lowercase(), (&times[from..to], 1), &nodes);
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

/// What a cycle is whose rounds have so many steps.
fn described(
    outcome: &Outcome,
    kind: &str,
    reason: String,
    (times, steps): (&[SimTime], usize),
    nodes: &[NodeId],
) -> CycleFigures {
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
        rounds: (times.len() / steps) as u64,
        period_seconds: rounded((last - first).as_secs_f64() / (times.len() - 1) as f64 * steps as f64, 3),
        first_seconds: first.as_secs_f64(),
        last_seconds: last.as_secs_f64(),
        evictions: 0,
        workloads: Vec::new(),
        nodes: distinct.into_iter().map(|node| name(outcome, node)).collect(),
        instance_types: types.into_iter().collect(),
        because: String::new(),
    }
}

/// Steps that are rounds of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    from: usize,
    to: usize,
    /// Steps of a round.
    steps: usize,
}

impl Stretch {
    const fn rounds(self) -> usize {
        (self.to - self.from) / self.steps
    }
}

/// The stretches of `times` (ascending) that are regular and long enough, each with as many rounds as there can be from its start. `alike`
/// says whether two steps can be the same one of two rounds; it is not asked where a round has one step.
fn regular(times: &[SimTime], alike: impl Fn(usize, usize) -> bool) -> impl Iterator<Item = Stretch> {
    let mut found = Vec::new();
    let mut from = 0;
    while from + ROUNDS <= times.len() {
        let all = (1..=STEPS_MAX).map(|steps| stretch_from(times, from, steps, &alike));
        // Of equal ones the one with the fewest steps a round.
        match all.rev().max_by_key(|stretch| stretch.rounds()).filter(|stretch| stretch.rounds() >= ROUNDS) {
            Some(stretch) => {
                found.push(stretch);
                from = stretch.to;
            }
            None => from += 1,
        }
    }
    found.into_iter()
}

/// The longest regular stretch from a step on whose rounds have so many steps.
fn stretch_from(times: &[SimTime], from: usize, steps: usize, alike: &impl Fn(usize, usize) -> bool) -> Stretch {
    let (mut to, mut sum, mut gaps) = ((from + steps).min(times.len()), 0.0, 0.0);
    while to < times.len() {
        let gap = times[to] - times[to - steps];
        let seconds = gap.as_secs_f64();
        let mean = if gaps > 0.0 { sum / gaps } else { seconds };
        let is_uneven = seconds > UNEVEN * mean || mean > UNEVEN * seconds;
        if seconds <= 0.0 || gap > LONGEST_PERIOD || is_uneven || (steps > 1 && !alike(to, to - steps)) {
            break;
        }
        (sum, gaps, to) = (sum + seconds, gaps + 1.0, to + 1);
    }
    Stretch { from, to, steps }
}

#[cfg(test)]
mod tests {
    use super::{Stretch, regular};
    use crate::domain::SimTime;

    /// Regular stretches of steps at these minutes, of which those of the same letter are alike.
    fn found(minutes: &[i64], letters: &str) -> Vec<(usize, usize, usize)> {
        let times: Vec<SimTime> = minutes.iter().map(|&minute| SimTime::from_micros(minute * 60_000_000)).collect();
        let letters = letters.as_bytes();
        let alike = |one: usize, other: usize| letters[one] == letters[other];
        regular(&times, alike).map(|Stretch { from, to, steps }| (from, to, steps)).collect()
    }

    #[test]
    fn four_even_rounds_are_a_cycle() {
        assert_eq!(found(&[0, 4, 8, 12], "abcd"), [(0, 4, 1)]);
        assert_eq!(found(&[0, 4, 8], "aaa"), []);
        assert_eq!(found(&[0, 4, 9, 13, 18], "aaaaa"), [(0, 5, 1)]);
    }

    #[test]
    fn what_is_uneven_or_rare_is_none() {
        assert_eq!(found(&[0, 4, 20, 24], "aaaa"), []);
        assert_eq!(found(&[0, 150, 300, 450], "aaaa"), []);
        assert_eq!(found(&[0, 30, 34, 38, 42, 46, 90], "aaaaaaa"), [(1, 6, 1)]);
    }

    #[test]
    fn rounds_of_two_uneven_steps_are_a_cycle() {
        let two: Vec<i64> = (0..6).flat_map(|round| [round * 30, round * 30 + 8]).collect();
        assert_eq!(found(&two, "abababababab"), [(0, 12, 2)]);
        assert_eq!(found(&two[..7], "abababa"), [], "three and a half rounds");
        assert_eq!(found(&two, "abcdefghijkl"), [], "nothing comes back");
    }

    #[test]
    fn long_cycle_with_varying_periods_is_one() {
        let mut minutes = vec![0];
        for gap in [10, 12, 9, 13, 8, 12, 10, 11, 13, 9, 8, 13] {
            minutes.push(minutes[minutes.len() - 1] + gap);
        }
        assert_eq!(found(&minutes, "aaaaaaaaaaaaa"), [(0, 13, 1)]);
    }
}
