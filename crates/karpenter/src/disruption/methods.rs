//! The methods of the disruption loop.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/emptiness.go`, `multinodeconsolidation.go`,
//! `singlenodeconsolidation.go`, `drift.go`.

use std::collections::BTreeSet;

use super::budgets::Allowance;
use super::candidates::Candidate;
use super::obstacles::Obstacle;
use super::replacement::{Decision, Evaluation, NoOp, evaluate, without_same_type};
use super::view::ClusterView;
use super::what_if::{PodPlace, Simulation, WhatIf};
use super::{Command, balanced};
use crate::controller_time::SearchWork;
use crate::packing::PlannedClaim;
use crate::release::EmptyDrifted;
use nodecast_model::domain::{HourlyRate, Symbol};

/// What a method came to.
#[derive(Clone, PartialEq, Debug)]
pub enum MethodResult {
    /// Something to do.
    Command(Command),
    /// Nothing, and the same again for as long as nothing changes.
    Nothing,
    /// Nothing, but a budget or the end of the time for it stood in the way.
    NotNow,
}

/// Whether the time for a search is over that has come so far.
pub type TimeIsUp<'t> = &'t dyn Fn(SearchWork) -> bool;

/// What single-node consolidation remembers from one pass to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Pools that it did not come to before its time was over.
    pub unseen: BTreeSet<Symbol>,
    /// Candidates that its last look passed over, as positions in the view, and why.
    pub passed_over: Vec<(usize, Obstacle)>,
}

impl Command {
    fn new(nodes: &[&Candidate], evaluation: &Evaluation) -> Self {
        let replacements = match &evaluation.decision {
            Decision::Replace(claim) => vec![(**claim).clone()],
            Decision::Delete | Decision::NoOp(_) => Vec::new(),
        };
        let moves = moves(&evaluation.simulation);
        let replaced = replaced(&evaluation.simulation);
        let nodes = nodes.iter().map(|node| node.node).collect();
        Self { nodes, replacements, moves, replaced, price: evaluation.price }
    }
}

fn moves(simulation: &Simulation) -> Vec<(usize, Vec<PodPlace>)> {
    let of = |pods: &[usize]| pods.iter().map(|&pod| simulation.pods[pod]).collect();
    simulation.plan.existing.iter().map(|placement| (placement.node, of(&placement.pods))).collect()
}

fn replaced(simulation: &Simulation) -> Vec<PodPlace> {
    let first = simulation.plan.claims.first();
    first.into_iter().flat_map(|claim| claim.pods.iter().map(|&pod| simulation.pods[pod])).collect()
}

fn nothing(constrained: bool) -> MethodResult {
    if constrained { MethodResult::NotNow } else { MethodResult::Nothing }
}

/// All empty nodes that the budgets let go, as one command.
pub fn emptiness(candidates: &[Candidate], allowances: &mut [Allowance]) -> MethodResult {
    let mut constrained = false;
    let mut nodes = Vec::new();
    for candidate in candidates {
        if allowances[candidate.pool].take() {
            nodes.push(candidate.node);
        } else {
            constrained = true;
        }
    }
    if nodes.is_empty() {
        return nothing(constrained);
    }
    let price = HourlyRate::ZERO;
    MethodResult::Command(Command { nodes, replacements: Vec::new(), moves: Vec::new(), replaced: Vec::new(), price })
}

/// The longest prefix of the candidates that can go at once, from v0.30 on of a hundred (and one more where there are more), as far as a binary search finds it: what a prefix saves is not
/// compared. A simulation during which `time_is_up` counts for nothing, and the best before it is what is found; `None` for any
/// time.
pub fn multi_node(
    what_if: &mut WhatIf<'_, '_>,
    candidates: &[Candidate],
    allowances: &mut [Allowance],
    time_is_up: Option<TimeIsUp<'_>>,
) -> MethodResult {
    let (view, before) = (what_if.view(), what_if.work());
    let mut constrained = false;
    let mut kept: Vec<&Candidate> = Vec::new();
    for candidate in candidates {
        if allowances[candidate.pool].0 == 0 {
            constrained = true;
        } else if !balanced::is_empty(view, candidate.node) {
            allowances[candidate.pool].take();
            kept.push(candidate);
        }
    }
    let most_nodes = view.behaviour().multi_node_most;
    let most = if kept.len() <= most_nodes { kept.len().saturating_sub(1) } else { most_nodes };
    let (mut low, mut high) = (1, most);
    let mut best = None;
    while low <= high {
        let middle = usize::midpoint(low, high);
        if !view.behaviour().unknown_price_is_zero && kept[..=middle].iter().any(|item| item.price.is_none()) {
            return MethodResult::NotNow;
        }
        let found = prefix(what_if, &kept[..=middle]);
        if time_is_up.is_some_and(|over| over(what_if.work().since(before))) {
            break;
        }
        match found {
            Some(command) => {
                best = Some(command);
                low = middle + 1;
            }
            None => high = middle - 1,
        }
    }
    match best {
        Some(command) => MethodResult::Command(command),
        None => nothing(constrained),
    }
}

fn prefix(what_if: &mut WhatIf<'_, '_>, nodes: &[&Candidate]) -> Option<Command> {
    let view = what_if.view();
    let mut evaluation = evaluate(what_if, nodes);
    if let Decision::Replace(claim) = &mut evaluation.decision {
        without_same_type(view, nodes, claim).ok()?;
    }
    is_worth_it(view, nodes, &evaluation).then(|| Command::new(nodes, &evaluation))
}

/// Whether there is something to do and the pools' balance allows it.
fn is_worth_it(view: &ClusterView<'_>, nodes: &[&Candidate], evaluation: &Evaluation) -> bool {
    let replacement = match &evaluation.decision {
        Decision::NoOp(_) => return false,
        Decision::Delete => HourlyRate::ZERO,
        Decision::Replace(claim) => replacement_price(view, claim),
    };
    balanced::approved(view, nodes, replacement)
}

/// The estimated price of a replacement: that of its cheapest allowed offering; in v1.14.0, of any available offering of its first type.
///
/// Source: Karpenter core v1.14.0 and v1.14.1 `pkg/controllers/disruption/types.go`, `EstimatedSavings`.
fn replacement_price(view: &ClusterView<'_>, claim: &PlannedClaim) -> HourlyRate {
    if !view.behaviour().prices_every_offering {
        return claim.instance_types.iter().find_map(|kind| kind.price).unwrap_or_default();
    }
    let types = view.pools[claim.pool].instance_types;
    let first = claim.instance_types.first().map(|kind| &types[kind.index as usize]);
    let offerings = first.into_iter().flat_map(|kind| &kind.offerings);
    offerings.filter(|offering| offering.available).map(|offering| offering.price).min().unwrap_or_default()
}

/// The first candidate that can go or be replaced, from v1.4 on the cheapest of each pool in turn; pools that an earlier pass did not
/// come to are first. Before each `time_is_up` is asked: nothing is found then, and the pools not come to are remembered.
pub fn single_node(
    what_if: &mut WhatIf<'_, '_>,
    candidates: &[Candidate],
    allowances: &[Allowance],
    memory: &mut Memory,
    time_is_up: Option<TimeIsUp<'_>>,
) -> MethodResult {
    let (view, before) = (what_if.view(), what_if.work());
    let name = |candidate: &Candidate| view.pools[candidate.pool].pool.name;
    let mut unseen: BTreeSet<Symbol> = candidates.iter().map(name).collect();
    memory.passed_over.clear();
    let mut constrained = false;
    let order = match view.behaviour().takes_pools_in_turn {
        true => interleaved(view, candidates, &memory.unseen),
        false => candidates.iter().collect(),
    };
    for candidate in order {
        if time_is_up.is_some_and(|over| over(what_if.work().since(before))) {
            memory.unseen = unseen;
            return MethodResult::NotNow;
        }
        unseen.remove(&name(candidate));
        if allowances[candidate.pool].0 == 0 {
            constrained = true;
            memory.passed_over.push((candidate.node, Obstacle::NodeBudget));
            continue;
        }
        if balanced::is_empty(view, candidate.node) {
            memory.passed_over.push((candidate.node, Obstacle::Empty));
            continue;
        }
        if !balanced::approved(view, &[candidate], HourlyRate::ZERO) {
            memory.passed_over.push((candidate.node, Obstacle::Unbalanced));
            continue;
        }
        let evaluation = evaluate(what_if, &[candidate]);
        if is_worth_it(view, &[candidate], &evaluation) {
            return MethodResult::Command(Command::new(&[candidate], &evaluation));
        }
        memory.passed_over.push((candidate.node, evaluation.obstacle()));
    }
    memory.unseen.clear();
    nothing(constrained)
}

/// The first of each pool, then the second of each, and so on.
///
/// Deviation: upstream takes the pools in the order of a Go map, which changes from pass to pass. Here the disruption
/// cost of their first candidates gives the order.
fn interleaved<'c>(
    view: &ClusterView<'_>,
    candidates: &'c [Candidate],
    unseen: &BTreeSet<Symbol>,
) -> Vec<&'c Candidate> {
    // Candidates come in order of cost, so the pools do in that of their first candidates.
    let mut by_pool: Vec<(usize, Vec<&Candidate>)> = Vec::new();
    for candidate in candidates {
        match by_pool.iter_mut().find(|(pool, _)| *pool == candidate.pool) {
            Some((_, list)) => list.push(candidate),
            None => by_pool.push((candidate.pool, vec![candidate])),
        }
    }
    by_pool.sort_by_key(|(pool, _)| !unseen.contains(&view.pools[*pool].pool.name));
    let longest = by_pool.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
    (0..longest).flat_map(|round| by_pool.iter().filter_map(move |(_, list)| list.get(round).copied())).collect()
}

/// The first drifted node whose pods have somewhere to go, with as many new nodes as that takes, at whatever price. Returned
/// are also the nodes that were passed over because their pods would have no place, which none is before v0.30. Releases differ in what they do with those that
/// are empty. What expires up to v0.37 is replaced in the same way.
pub fn drift(
    what_if: &mut WhatIf<'_, '_>,
    candidates: &[Candidate],
    allowances: &[Allowance],
) -> (Option<Command>, Vec<(usize, NoOp)>) {
    let mut passed_over = Vec::new();
    let empty = |candidate: &Candidate| candidate.reschedulable.is_empty();
    let (empty_drifted, skips) = {
        let behaviour = what_if.view().behaviour();
        (behaviour.empty_drifted, behaviour.skips_unplaceable)
    };
    if empty_drifted == EmptyDrifted::AllAtOnce {
        let all: Vec<Candidate> = candidates.iter().filter(|candidate| empty(candidate)).cloned().collect();
        if let MethodResult::Command(command) = emptiness(&all, &mut allowances.to_vec()) {
            return (Some(command), passed_over);
        }
    }
    let taken = |candidate: &&Candidate| empty_drifted == EmptyDrifted::First || !empty(candidate);
    for candidate in candidates.iter().filter(taken).filter(|candidate| allowances[candidate.pool].0 > 0) {
        let simulation = what_if.simulate(&[candidate]);
        if let Some(failure) = simulation.failure.clone().filter(|_| skips) {
            passed_over.push((candidate.node, NoOp::PodsStay(failure)));
            continue;
        }
        let (moves, replaced) = (moves(&simulation), replaced(&simulation));
        let (nodes, price) = (vec![candidate.node], HourlyRate::ZERO);
        let command = Command { nodes, replacements: simulation.plan.claims, moves, replaced, price };
        return (Some(command), passed_over);
    }
    (None, passed_over)
}
