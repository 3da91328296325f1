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
//! Deviation: before v1, too, consolidation goes through the pools in turn and places pods that wait already.
//! Upstream orders the nodes of all Provisioners together and places only the node's own pods.

use super::io::{Action, Timer};
use super::queue::{self, Proposal};
use super::step::Step;
use super::{cluster_view, disruption, provisioning, validation};
use crate::controller_time::SearchWork;
use crate::disruption::{
    Candidate, ClusterView, Memory, Method, MethodResult, Rejection, Survey, WhatIf, candidates, emptiness, multi_node,
    single_node,
};
use crate::release::Consolidation;
use nodecast_model::cluster::{NodePhase, WorkloadKind};
use nodecast_model::domain::node_pool::ConsolidationPolicy;
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::domain::{CommandId, NodeId, NodePool, SimDuration, SimTime};

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

/// What a look found, and how long that took.
type Looked = (Option<(Method, Proposal)>, Option<SimDuration>);

/// Plans the first look, if the release knows consolidation and a Provisioner wants it.
pub(super) fn begin(step: &mut Step<'_>, now: SimTime) {
    if step.karpenter.behaviour.consolidation != Consolidation::None
        && step.karpenter.pools.iter().any(|pool| is_enabled(pool))
    {
        let phase = disruption::phase(step);
        step.wake(now + phase, Timer::DisruptionPass);
    }
}

/// Whether the Provisioner has `consolidation.enabled`.
pub(super) fn is_enabled(pool: &NodePool) -> bool {
    pool.disruption.policy != ConsolidationPolicy::WhenEmpty
}

/// One look.
pub(super) fn pass(step: &mut Step<'_>, now: SimTime) {
    let (found, took) = look(step, now).unwrap_or_default();
    step.wake(now + took.unwrap_or_default() + POLL, Timer::DisruptionPass);
    let Some((method, proposal)) = found else { return };
    match took {
        None => propose(step, now, method, proposal),
        Some(took) => think(step, now, took, (method, proposal, None)),
    }
}

/// What is found, if anything may be done now, and how long it took to find out, where that takes time.
fn look(step: &mut Step<'_>, now: SimTime) -> Option<Looked> {
    if is_busy(step, now) || disruption::is_unsynced(step) {
        return None;
    }
    let stamp = step.karpenter.stamp.read(now);
    if step.karpenter.consolidation.memo == Some(stamp) || !is_quiet(step, now) {
        return None;
    }
    let (found, work) = search(step, now);
    if found.is_none() {
        step.karpenter.consolidation.memo = Some(stamp);
    }
    Some((found, disruption::took(step, work, false)))
}

/// What was found out is acted upon after the time that it took.
fn think(step: &mut Step<'_>, now: SimTime, took: SimDuration, thought: (Method, Proposal, Option<CommandId>)) {
    step.karpenter.consolidation.thought = Some(thought);
    step.wake(now + took, Timer::DisruptionConcluded);
}

/// The time of a look or of a validation is over.
pub(super) fn concluded(step: &mut Step<'_>, now: SimTime) {
    let Some((method, proposal, command)) = step.karpenter.consolidation.thought.take() else { return };
    match (disruption::are_there(step, &proposal), command) {
        (true, None) => propose(step, now, method, proposal),
        (true, Some(command)) => carry_out(step, now, command, proposal),
        (false, None) => {}
        (false, Some(command)) => step.act(Action::Reject(command, Rejection::Churn.to_string())),
    }
}

fn propose(step: &mut Step<'_>, now: SimTime, method: Method, proposal: Proposal) {
    let command = disruption::propose(step, method, &proposal);
    if validates(step) {
        step.karpenter.consolidation.waiting = Some((method, proposal, command));
        step.wake(now + VALIDATION, Timer::DisruptionValidation);
    } else {
        carry_out(step, now, command, proposal);
    }
}

/// The wait is over: what still holds is carried out.
pub(super) fn validated(step: &mut Step<'_>, now: SimTime) {
    let Some((method, mut proposal, command)) = step.karpenter.consolidation.waiting.take() else { return };
    provisioning::refresh(step, now);
    let (holds, work) = validation::revalidate(step, now, method, &proposal, &mut Survey::default());
    let took = disruption::took(step, work, false);
    match holds {
        Ok(nodes) => {
            proposal.nodes = nodes;
            match took {
                None => carry_out(step, now, command, proposal),
                Some(took) => think(step, now, took, (method, proposal, Some(command))),
            }
        }
        Err(why) => step.act(Action::Reject(command, why.to_string())),
    }
}

fn validates(step: &Step<'_>) -> bool {
    step.karpenter.behaviour.consolidation == Consolidation::Validated
}

fn carry_out(step: &mut Step<'_>, now: SimTime, command: CommandId, proposal: Proposal) {
    let consolidation = &mut step.karpenter.consolidation;
    consolidation.leaving.clone_from(&proposal.nodes);
    consolidation.last_action = now;
    if !queue::start(step, now, command, proposal) {
        queue::clean_up(step);
    }
}

/// Whether a command is being validated or carried out, or its nodes are not gone yet.
fn is_busy(step: &Step<'_>, now: SimTime) -> bool {
    let consolidation = &step.karpenter.consolidation;
    let leaves = |&node: &NodeId| is_leaving(step, now, node);
    consolidation.waiting.is_some()
        || consolidation.thought.is_some()
        || step.karpenter.commands.are_under_way()
        || consolidation.leaving.iter().any(leaves)
}

/// Whether a node that was deleted is waited for.
pub(super) fn is_leaving(step: &Step<'_>, now: SimTime, node: NodeId) -> bool {
    let state = step.cluster.node(node);
    let awaited = state.deletion_requested.is_some_and(|since| now - since < GONE_WITHIN);
    awaited && state.phase != NodePhase::Gone
}

/// Whether nothing has changed for long enough.
fn is_quiet(step: &Step<'_>, now: SimTime) -> bool {
    let karpenter = &*step.karpenter;
    if validates(step) || now - karpenter.consolidation.last_action > LONGEST {
        return true;
    }
    let controlled = |kind| matches!(kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet);
    let all_ready =
        step.cluster.workloads().all(|(_, workload)| !controlled(workload.kind) || workload.ready == workload.replicas);
    let settled = all_ready && provisioning::provisionable(step, now).is_empty();
    now - karpenter.stamp.changed() > if settled { QUIET } else { RESTLESS }
}

fn search(step: &mut Step<'_>, now: SimTime) -> (Option<(Method, Proposal)>, SearchWork) {
    provisioning::refresh(step, now);
    let pending = provisioning::provisionable(step, now);
    let unix_seconds = step.karpenter.settings.unix_seconds(now);
    let mut memory = std::mem::take(&mut step.karpenter.consolidation.memory);
    let mut work = SearchWork::default();
    let found = cluster_view::with_view(step, now, &pending, |setup, view, nodes| {
        let allowances = |method: Method| view.allowances(method.reason(), unix_seconds);
        let proposed = |method: Method, found: MethodResult| match found {
            MethodResult::Command(command) => Some((method, disruption::proposal(method, &command, nodes))),
            MethodResult::Nothing | MethodResult::NotNow => None,
        };
        let empty = own_candidates(step, view, Method::Emptiness);
        let all_empty = emptiness(&empty, &mut allowances(Method::Emptiness));
        if let Some(found) = proposed(Method::Emptiness, all_empty) {
            return Some(found);
        }
        let loaded = own_candidates(step, view, Method::SingleNode);
        if loaded.is_empty() {
            return None;
        }
        let mut packer = step.karpenter.instance_types.packer(&step.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let over = |method: Method| {
            let limit = disruption::limit(step, method);
            move |work: SearchWork| limit.is_some_and(|limit| work.time() > limit)
        };
        if validates(step) {
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
    step.karpenter.consolidation.memory = memory;
    (found, work)
}

/// The candidates of Provisioners that consolidate; up to v0.18 a pod that nothing controls keeps its node.
fn own_candidates(step: &Step<'_>, view: &ClusterView<'_>, method: Method) -> Vec<Candidate> {
    let alone = |candidate: &Candidate| {
        let pods = view.nodes[candidate.node].pods().iter();
        pods.filter(|pod| pod.is_active()).any(|pod| pod.spec.owner == OwnerKind::None)
    };
    let mut found = candidates(view, method);
    found.retain(|item| is_enabled(view.pools[item.pool].pool));
    found.retain(|item| validates(step) || !alone(item));
    found
}
