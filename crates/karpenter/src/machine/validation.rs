//! What the disruption loop proposed is looked at again after its wait.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/validation.go`.

use super::cluster_view::with_view;
use super::disruption::{Thought, Waiting, next_pass, start, think, took, try_methods};
use super::io::Action;
use super::provisioning;
use super::queue::Proposal;
use super::step::Step;
use crate::controller_time::SearchWork;
use crate::disruption::{Candidate, Command, Method, Rejection, Survey, WhatIf, validate, validate_empty};
use crate::release::FailedValidation;
use nodecast_model::domain::{HourlyRate, NodeId, SimTime};

/// The wait is over: what still holds is started, and the loop goes on at once; otherwise the methods that come later are tried.
pub(super) fn due(step: &mut Step<'_>, now: SimTime) {
    let Some(waiting) = step.karpenter.disruption.waiting.take() else { return };
    provisioning::refresh(step, now);
    let mut survey = std::mem::take(&mut step.karpenter.disruption.survey);
    survey.clear_view();
    let (holds, work) =
        revalidate(step, now, step.karpenter.behaviour.methods[waiting.place], &waiting.proposal, &mut survey);
    step.karpenter.disruption.survey = survey;
    match took(step, work, false) {
        Some(took) => think(step, now, took, Thought::Validated(waiting, holds)),
        None => settle(step, now, waiting, holds),
    }
}

/// Starts a proposal that still holds, or drops it.
pub(super) fn settle(step: &mut Step<'_>, now: SimTime, waiting: Waiting, holds: Result<Vec<NodeId>, Rejection>) {
    let Waiting { place, mut proposal, command } = waiting;
    match holds {
        Ok(nodes) => {
            proposal.nodes = nodes;
            let starts = start(step, now, command, proposal);
            next_pass(step, now, !starts);
        }
        Err(why) => {
            step.act(Action::Reject(command, why.to_string()));
            after_failure(step, now, place, &proposal);
        }
    }
}

/// What follows a validation that failed.
fn after_failure(step: &mut Step<'_>, now: SimTime, place: usize, proposal: &Proposal) {
    let single = step.karpenter.behaviour.methods[place] == Method::SingleNode;
    match (step.karpenter.behaviour.failed_validation, single) {
        (FailedValidation::NextCandidate, true) => {
            step.karpenter.disruption.refused.extend(&proposal.nodes);
            try_methods(step, now, place);
        }
        (FailedValidation::NextCandidate, false) | (FailedValidation::NextMethodOrError, true) => {
            next_pass(step, now, true);
        }
        (FailedValidation::NextMethodOrError, false) | (FailedValidation::NextMethod, _) => {
            try_methods(step, now, place + 1);
        }
    }
}

/// Whether none of the nodes proposed has pods by now, as far as they are candidates for anything: v0.34 to v0.36 do not miss one that is
/// not. `empty` are the candidates without pods, `all` those that may have some.
fn still_empty(empty: &[Candidate], all: &[Candidate], proposed: &[usize]) -> Result<(), Rejection> {
    let is_of = |candidates: &[Candidate], node: usize| candidates.iter().any(|candidate| candidate.node == node);
    let gone = proposed.contains(&usize::MAX);
    let in_use = proposed.iter().any(|&node| is_of(all, node) && !is_of(empty, node));
    if gone || in_use { Err(Rejection::Churn) } else { Ok(()) }
}

/// The nodes that may still go, and what it took to find out. Up to v1.4 all of the empty ones may, or none.
pub(super) fn revalidate(
    step: &Step<'_>,
    now: SimTime,
    method: Method,
    proposal: &Proposal,
    survey: &mut Survey,
) -> (Result<Vec<NodeId>, Rejection>, SearchWork) {
    let pending = provisioning::provisionable(step, now);
    let mut work = SearchWork::default();
    let unix_seconds = step.karpenter.settings.unix_seconds(now);
    let holds = with_view(step, now, &pending, |setup, view, nodes| {
        let surveyed = survey.survey(view, method);
        let fresh = &surveyed.0;
        let mut allowances = view.allowances(method.reason(), unix_seconds);
        // A node that is gone has no position, which no candidate has either.
        let position = |node_id: &NodeId| nodes.iter().position(|node| node == node_id).unwrap_or(usize::MAX);
        let proposed: Vec<usize> = proposal.nodes.iter().map(position).collect();
        if matches!(method, Method::Emptiness | Method::EmptyConsolidation) {
            if step.karpenter.behaviour.forgets_lost_empty {
                return still_empty(&surveyed.0, &survey.survey(view, Method::SingleNode).0, &proposed)
                    .map(|()| proposal.nodes.clone());
            }
            let left = validate_empty(&proposed, fresh, &mut allowances)?;
            if left.len() < proposed.len() && !step.karpenter.behaviour.drops_some_empty {
                return Err(Rejection::Churn);
            }
            return Ok(left.into_iter().map(|node| nodes[node]).collect());
        }
        let command = Command {
            nodes: proposed,
            replacements: proposal.replacements.clone(),
            moves: Vec::new(),
            replaced: Vec::new(),
            price: HourlyRate::ZERO,
        };
        let mut packer = step.karpenter.instance_types.packer(&step.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let valid = validate(&mut what_if, &command, fresh, &mut allowances);
        work = what_if.work();
        valid.map(|()| proposal.nodes.clone())
    });
    (holds, work)
}
