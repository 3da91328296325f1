//! Consolidation in releases before v1, for Provisioners with `consolidation.enabled`: every ten seconds all empty nodes at once,
//! else the first node, by what its removal disturbs, whose pods fit elsewhere or on one cheaper node. While something is
//! carried out nothing else is looked at, until the nodes are gone.
//!
//! Up to v0.18 the cluster has to have been left alone for a while; v0.22 looks again after fifteen seconds, and tries several
//! nodes at once first.
//!
//! Source: Karpenter v0.16.0 `pkg/controllers/consolidation/controller.go`, `stabilizationwindow.go`; core v0.22.1
//! `pkg/controllers/deprovisioning`.
//!
//! Deviation: before v1, too, consolidation takes the pools in turn and finds places for pods that wait already; upstream orders
//! the nodes of all Provisioners together and asks about the node's own pods.

use super::queue::{self, Proposal};
use super::{cluster_view, disruption, provisioning};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::cluster::NodePhase;
use crate::domain::node_pool::ConsolidationPolicy;
use crate::domain::pod::OwnerKind;
use crate::domain::{KarpenterVersion, NodeId, NodePool, SimDuration, SimTime};
use crate::policy::controller_time::karpenter::SearchWork;
use crate::policy::disruption::{
    Candidate, ClusterView, Found, Memory, Method, Rejection, Survey, WhatIf, candidates, emptiness, multi_node,
    single_node,
};
use crate::world::record::{CommandId, WorkloadKind};

/// Between two looks.
const POLL: SimDuration = SimDuration::from_secs(10);
/// Between a proposal and its validation, from v0.19 on.
const VALIDATION: SimDuration = SimDuration::from_secs(15);
/// How long nothing may have changed before, where all workloads are ready and no pod waits.
const QUIET: SimDuration = SimDuration::from_secs(15);
/// The same where that is not so.
const RESTLESS: SimDuration = SimDuration::from_secs(180);
/// After this time without consolidation it does not wait for quiet any more.
const LONGEST: SimDuration = SimDuration::from_secs(600);
/// A node is waited for so long to be gone: 60 tries, first after 2 s, in the end every 10 s.
const GONE_WITHIN: SimDuration = SimDuration::from_secs(572);

/// What the loop remembers.
#[derive(Debug, Default)]
pub(super) struct Loop {
    /// The stamp with which it last found nothing.
    memo: Option<u64>,
    memory: Memory,
    /// A proposal before its validation.
    waiting: Option<(Method, Proposal, CommandId)>,
    /// What a look or a validation came to whose time is not over: without a command, a proposal.
    thought: Option<(Method, Proposal, Option<CommandId>)>,
    /// Nodes of the last command.
    leaving: Vec<NodeId>,
    last_action: SimTime,
}

/// Puts the first look on the queue, if the release knows consolidation and a Provisioner wants it.
pub(super) fn begin(context: &mut Context<'_>) {
    let knows = (KarpenterVersion::V0_16..KarpenterVersion::V1_13).contains(&context.setup.versions.karpenter);
    if knows && context.karpenter.pools.iter().any(|pool| is_enabled(pool)) {
        let phase = disruption::phase(context);
        context.queue.schedule_in(phase, class::DISRUPTION, Event::DisruptionPass);
    }
}

/// Whether the Provisioner has `consolidation.enabled`.
pub(super) fn is_enabled(pool: &NodePool) -> bool {
    pool.disruption.policy != ConsolidationPolicy::WhenEmpty
}

/// One look.
pub(super) fn pass(context: &mut Context<'_>, now: SimTime) {
    let again = context.queue.schedule_in(POLL, class::DISRUPTION, Event::DisruptionPass);
    if is_busy(context, now) || disruption::is_unsynced(context) {
        return;
    }
    let stamp = context.karpenter.stamp.read(now);
    if context.karpenter.consolidation.memo == Some(stamp) || !is_quiet(context, now) {
        return;
    }
    let (found, work) = search(context, now);
    let took = disruption::took(context, work, false);
    if let Some(took) = took {
        context.queue.cancel(again);
        context.queue.schedule_in(took + POLL, class::DISRUPTION, Event::DisruptionPass);
    }
    let Some((method, proposal)) = found else {
        context.karpenter.consolidation.memo = Some(stamp);
        return;
    };
    match took {
        None => propose(context, now, method, proposal),
        Some(took) => think(context, took, (method, proposal, None)),
    }
}

/// What was found out is acted upon after the time that it took.
fn think(context: &mut Context<'_>, took: SimDuration, thought: (Method, Proposal, Option<CommandId>)) {
    context.karpenter.consolidation.thought = Some(thought);
    context.queue.schedule_in(took, class::DISRUPTION, Event::DisruptionConcluded);
}

/// The time of a look or of a validation is over.
pub(super) fn concluded(context: &mut Context<'_>, now: SimTime) {
    let Some((method, proposal, command)) = context.karpenter.consolidation.thought.take() else { return };
    match (disruption::are_there(context, &proposal), command) {
        (true, None) => propose(context, now, method, proposal),
        (true, Some(command)) => carry_out(context, now, command, proposal),
        (false, None) => {}
        (false, Some(command)) => context.world.reject_command(command, now, &Rejection::Churn.to_string()),
    }
}

fn propose(context: &mut Context<'_>, now: SimTime, method: Method, proposal: Proposal) {
    let command = disruption::record(context, now, method, &proposal);
    if validates(context) {
        context.karpenter.consolidation.waiting = Some((method, proposal, command));
        context.queue.schedule_in(VALIDATION, class::DISRUPTION, Event::DisruptionValidation);
    } else {
        carry_out(context, now, command, proposal);
    }
}

/// The wait is over: what still holds is carried out.
pub(super) fn validated(context: &mut Context<'_>, now: SimTime) {
    let Some((method, mut proposal, command)) = context.karpenter.consolidation.waiting.take() else { return };
    provisioning::refresh(context, now);
    let (holds, work) = disruption::revalidate(context, now, method, &proposal, &mut Survey::default());
    let took = disruption::took(context, work, false);
    match holds {
        Ok(nodes) => {
            proposal.nodes = nodes;
            match took {
                None => carry_out(context, now, command, proposal),
                Some(took) => think(context, took, (method, proposal, Some(command))),
            }
        }
        Err(why) => context.world.reject_command(command, now, &why.to_string()),
    }
}

fn validates(context: &Context<'_>) -> bool {
    context.setup.versions.karpenter >= KarpenterVersion::V0_22
}

fn carry_out(context: &mut Context<'_>, now: SimTime, command: CommandId, proposal: Proposal) {
    let own = &mut context.karpenter.consolidation;
    own.leaving.clone_from(&proposal.nodes);
    own.last_action = now;
    if !queue::start(context, now, command, proposal) {
        queue::clean_up(context, now);
    }
}

/// Whether a command is being validated or carried out, or its nodes are not gone yet.
fn is_busy(context: &Context<'_>, now: SimTime) -> bool {
    let own = &context.karpenter.consolidation;
    let leaves = |node: &NodeId| {
        let state = context.world.node(*node);
        let awaited = state.deletion_requested.is_some_and(|since| now - since < GONE_WITHIN);
        awaited && state.phase != NodePhase::Gone
    };
    own.waiting.is_some()
        || own.thought.is_some()
        || !context.karpenter.commands.is_empty()
        || own.leaving.iter().any(leaves)
}

/// Whether nothing has changed for long enough.
fn is_quiet(context: &Context<'_>, now: SimTime) -> bool {
    let karpenter = &context.karpenter;
    if validates(context) || now - karpenter.consolidation.last_action > LONGEST {
        return true;
    }
    let controlled = |kind| matches!(kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet);
    let all_ready = context.world.workloads().all(|(_, own)| !controlled(own.kind) || own.ready == own.replicas);
    let settled = all_ready && provisioning::provisionable(context).is_empty();
    now - karpenter.stamp.changed() > if settled { QUIET } else { RESTLESS }
}

fn search(context: &mut Context<'_>, now: SimTime) -> (Option<(Method, Proposal)>, SearchWork) {
    provisioning::refresh(context, now);
    let pending = provisioning::provisionable(context);
    let unix_seconds = context.setup.unix_seconds(now);
    let mut memory = std::mem::take(&mut context.karpenter.consolidation.memory);
    let mut work = SearchWork::default();
    let found = cluster_view::with_view(context, now, &pending, |setup, view, nodes| {
        let allowances = |method: Method| view.allowances(method.reason(), unix_seconds);
        let proposed = |method: Method, found: Found| match found {
            Found::Command(command) => Some((method, disruption::proposal(method, &command, nodes))),
            Found::Nothing | Found::NotNow => None,
        };
        let empty = own_candidates(view, Method::Emptiness);
        let all_empty = emptiness(&empty, &mut allowances(Method::Emptiness));
        if let Some(found) = proposed(Method::Emptiness, all_empty) {
            return Some(found);
        }
        let loaded = own_candidates(view, Method::SingleNode);
        if loaded.is_empty() {
            return None;
        }
        let mut packer = context.karpenter.instance_types.packer(&context.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let over = |method: Method| {
            let limit = disruption::limit(context, method);
            move |work: SearchWork| limit.is_some_and(|limit| work.time() > limit)
        };
        if view.karpenter >= KarpenterVersion::V0_22 {
            let over = over(Method::MultiNode);
            let several = multi_node(&mut what_if, &loaded, &mut allowances(Method::MultiNode), Some(&over));
            work = what_if.work();
            if let Some(found) = proposed(Method::MultiNode, several) {
                return Some(found);
            }
        }
        let over = over(Method::SingleNode);
        let one = single_node(&mut what_if, &loaded, &allowances(Method::SingleNode), &mut memory, Some(&over));
        work = what_if.work();
        proposed(Method::SingleNode, one)
    });
    context.karpenter.consolidation.memory = memory;
    (found, work)
}

/// The candidates of Provisioners that consolidate; up to v0.18 a pod that nothing controls keeps its node.
fn own_candidates(view: &ClusterView<'_>, method: Method) -> Vec<Candidate> {
    let alone = |own: &Candidate| {
        let pods = view.nodes[own.node].pods().iter();
        pods.filter(|pod| pod.is_active()).any(|pod| pod.spec.owner == OwnerKind::None)
    };
    let mut found = candidates(view, method);
    found.retain(|own| is_enabled(view.pools[own.pool].pool));
    found.retain(|own| view.karpenter >= KarpenterVersion::V0_22 || !alone(own));
    found
}
