//! The disruption loop of v1: every 10 s the methods are tried in a fixed order; what consolidation proposes is looked at again
//! after 15 s, during which the loop stands still.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/controller.go`, `validation.go`.
//!
//! Deviation: pools with a fixed number of nodes are not simulated, so static drift never finds a node.

use super::cluster_view::with_view;
use super::queue::{self, Proposal};
use super::{claims, is_managed, provisioning};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::domain::{NodeId, SimDuration, SimTime};
use crate::policy::disruption::{
    Command, Found, Memory, Method, Rejection, WhatIf, candidates, drift, emptiness, multi_node, single_node, validate,
    validate_empty,
};
use crate::policy::packing::Packer;
use crate::world::NodePhase;
use crate::world::record::{CommandFacts, CommandId, NodeEnd, ReplacementFacts};

/// Between two passes that find nothing.
const POLL: SimDuration = SimDuration::from_secs(10);
/// While a claim has no instance yet.
const POLL_UNSYNCED: SimDuration = SimDuration::from_secs(1);
/// Between a proposal and its validation.
const VALIDATION: SimDuration = SimDuration::from_secs(15);
/// The methods in the order in which they are tried.
const ORDER: [Method; 4] = [Method::Emptiness, Method::Drift, Method::MultiNode, Method::SingleNode];

/// What the loop remembers.
#[derive(Debug, Default)]
pub(super) struct Loop {
    /// For each method the stamp with which it last found nothing.
    memos: [Option<u64>; ORDER.len()],
    memory: Memory,
    waiting: Option<Waiting>,
}

/// A proposal before its validation.
#[derive(Debug)]
struct Waiting {
    /// Place in the order of methods.
    place: usize,
    proposal: Proposal,
    command: CommandId,
}

/// What a method came to.
enum Outcome {
    Nothing,
    Waits,
    Started,
}

/// One pass of the loop.
pub(in crate::actors) fn disruption_pass(context: &mut Context<'_>, now: SimTime) {
    if is_unsynced(context) {
        context.queue.schedule_in(POLL_UNSYNCED, class::DISRUPTION, Event::DisruptionPass);
        return;
    }
    queue::clean_up(context, now);
    provisioning::refresh(context, now);
    try_methods(context, now, 0);
}

/// Whether a claim waits for its instance.
pub(super) fn is_unsynced(context: &Context<'_>) -> bool {
    let launching = |&node: &NodeId| is_managed(context, node) && context.world.node(node).phase == NodePhase::Claimed;
    context.world.live_nodes().iter().any(launching)
}

/// Tries the methods from one on, until one has something to do.
fn try_methods(context: &mut Context<'_>, now: SimTime, from: usize) {
    for place in from..ORDER.len() {
        match attempt(context, now, place) {
            Outcome::Nothing => {}
            Outcome::Waits => return,
            Outcome::Started => {
                context.queue.schedule_in(SimDuration::ZERO, class::DISRUPTION, Event::DisruptionPass);
                return;
            }
        }
    }
    context.queue.schedule_in(POLL, class::DISRUPTION, Event::DisruptionPass);
}

fn attempt(context: &mut Context<'_>, now: SimTime, place: usize) -> Outcome {
    let method = ORDER[place];
    let remembers = method != Method::Drift;
    let stamp = context.karpenter.stamp.read(now);
    if remembers && context.karpenter.disruption.memos[place] == Some(stamp) {
        return Outcome::Nothing;
    }
    let Some(found) = decide(context, now, method) else { return Outcome::Nothing };
    match found {
        Answer::NotNow => Outcome::Nothing,
        Answer::Nothing => {
            context.karpenter.disruption.memos[place] = remembers.then_some(stamp);
            Outcome::Nothing
        }
        Answer::Proposal(proposal) => {
            let command = record(context, now, method, &proposal);
            if method == Method::Drift {
                return if queue::start(context, now, command, proposal) { Outcome::Started } else { Outcome::Nothing };
            }
            context.karpenter.disruption.waiting = Some(Waiting { place, proposal, command });
            context.queue.schedule_in(VALIDATION, class::DISRUPTION, Event::DisruptionValidation);
            Outcome::Waits
        }
    }
}

/// What a method found, in terms of the world.
enum Answer {
    Nothing,
    NotNow,
    Proposal(Proposal),
}

/// Asks a method; `None` if no node is a candidate.
fn decide(context: &mut Context<'_>, now: SimTime, method: Method) -> Option<Answer> {
    let pending = provisioning::provisionable(context);
    let mut memory = std::mem::take(&mut context.karpenter.disruption.memory);
    let unix_seconds = context.setup.unix_seconds(now);
    let answer = with_view(context, now, &pending, |setup, view, nodes| {
        let candidates = candidates(view, method);
        if candidates.is_empty() {
            return None;
        }
        let mut allowances = view.allowances(method.reason(), unix_seconds);
        let mut ask = |search: &mut dyn FnMut(&mut WhatIf<'_, '_>, &mut [_]) -> Found| {
            search(&mut WhatIf::new(&mut Packer::new(setup), view), &mut allowances)
        };
        let found = match method {
            Method::Emptiness => emptiness(&candidates, &mut allowances),
            Method::MultiNode => ask(&mut |what_if, allowances| multi_node(what_if, &candidates, allowances, None)),
            Method::SingleNode => {
                ask(&mut |what_if, allowances| single_node(what_if, &candidates, allowances, &mut memory, None))
            }
            Method::Drift | Method::StaticDrift => ask(&mut |what_if, allowances| {
                drift(what_if, &candidates, allowances).0.map_or(Found::Nothing, Found::Command)
            }),
        };
        Some(match found {
            Found::Nothing => Answer::Nothing,
            Found::NotNow => Answer::NotNow,
            Found::Command(command) => Answer::Proposal(proposal(method, &command, nodes)),
        })
    });
    context.karpenter.disruption.memory = memory;
    answer
}

fn proposal(method: Method, command: &Command, nodes: &[NodeId]) -> Proposal {
    Proposal {
        nodes: command.nodes.iter().map(|&node| nodes[node]).collect(),
        replacements: command.replacements.clone(),
        destinations: command.moves.iter().map(|(node, _)| nodes[*node]).collect(),
        end: match method {
            Method::Emptiness => NodeEnd::Empty,
            Method::Drift | Method::StaticDrift => NodeEnd::Drifted,
            Method::MultiNode | Method::SingleNode => NodeEnd::Underutilized,
        },
    }
}

fn record(context: &mut Context<'_>, now: SimTime, method: Method, proposal: &Proposal) -> CommandId {
    let shared: &Context<'_> = context;
    let replacements = proposal.replacements.iter().map(|claim| ReplacementFacts {
        node_pool: claim.node_pool,
        types: claim.instance_types.len(),
        capacity_types: provisioning::capacity_types(shared, claim),
        cheapest: claim.instance_types.first().and_then(|own| Some((own.name, own.price?))),
    });
    let facts = CommandFacts {
        reason: method.reason(),
        method: match method {
            Method::Emptiness => Some("empty"),
            Method::MultiNode => Some("multi"),
            Method::SingleNode => Some("single"),
            Method::Drift | Method::StaticDrift => None,
        },
        proposed: (method != Method::Drift).then_some(now),
        candidates: proposal.nodes.clone(),
        replacements: replacements.collect(),
        started: None,
        nodes: Vec::new(),
        rejected: None,
        succeeded: None,
        failed: None,
    };
    context.world.propose_command(facts, now)
}

/// The wait is over: what still holds is started, and the loop goes on at once; otherwise the methods that come later are tried.
pub(in crate::actors) fn disruption_validation(context: &mut Context<'_>, now: SimTime) {
    let Some(Waiting { place, mut proposal, command }) = context.karpenter.disruption.waiting.take() else { return };
    provisioning::refresh(context, now);
    match revalidate(context, now, ORDER[place], &proposal) {
        Ok(nodes) => {
            proposal.nodes = nodes;
            queue::start(context, now, command, proposal);
            context.queue.schedule_in(SimDuration::ZERO, class::DISRUPTION, Event::DisruptionPass);
        }
        Err(why) => {
            context.world.reject_command(command, now, &why.to_string());
            try_methods(context, now, place + 1);
        }
    }
}

/// The nodes that may still go.
fn revalidate(
    context: &Context<'_>,
    now: SimTime,
    method: Method,
    proposal: &Proposal,
) -> Result<Vec<NodeId>, Rejection> {
    let pending = provisioning::provisionable(context);
    let unix_seconds = context.setup.unix_seconds(now);
    with_view(context, now, &pending, |setup, view, nodes| {
        let fresh = candidates(view, method);
        let mut allowances = view.allowances(method.reason(), unix_seconds);
        // A node that is gone has no position, which no candidate has either.
        let position = |own: &NodeId| nodes.iter().position(|node| node == own).unwrap_or(usize::MAX);
        let proposed: Vec<usize> = proposal.nodes.iter().map(position).collect();
        if method == Method::Emptiness {
            let left = validate_empty(&proposed, &fresh, &mut allowances)?;
            return Ok(left.into_iter().map(|node| nodes[node]).collect());
        }
        let command = Command {
            nodes: proposed,
            replacements: proposal.replacements.clone(),
            moves: Vec::new(),
            replaced: Vec::new(),
            price: crate::domain::HourlyRate::ZERO,
        };
        let mut packer = Packer::new(setup);
        validate(&mut WhatIf::new(&mut packer, view), &command, &fresh, &mut allowances)?;
        Ok(proposal.nodes.clone())
    })
}

/// Something has changed that could change a decision.
pub(super) fn changed(context: &mut Context<'_>, now: SimTime) {
    context.karpenter.stamp.renew(now);
}

/// A pod came to a node, ended on it or began to leave it.
pub(super) fn pod_event(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    claims::pod_event(context, now, node);
}
