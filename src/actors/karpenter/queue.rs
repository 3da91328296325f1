//! Commands that are being carried out: nodes are tainted at once and removed when their replacements are initialized.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/queue.go`, `controller.go` (`executeCommand`).

use super::claims::{nominate, whole};
use super::disruption::DRIFT;
use super::{has_disruption_loop, nomination_window, provisioning, static_pools, termination};
use crate::actors::context::{Context, Jitter};
use crate::actors::event::{Event, class};
use crate::actors::scheduler_loop;
use crate::cluster::NodePhase;
use crate::domain::taints::TaintEffect;
use crate::domain::{NodeId, SimDuration, SimTime, Taint, well_known};
use crate::policy::packing::PlannedClaim;
use crate::world::record::{CommandId, EventKind, NodeEnd};

/// Between two looks at a command.
const POLL: SimDuration = SimDuration::from_secs(1);
/// A command is given up after this time for each node in the queue, within bounds.
const TIMEOUT_PER_NODE: SimDuration = SimDuration::from_millis(80);
const TIMEOUT_LEAST: SimDuration = SimDuration::from_secs(10 * 60);
const TIMEOUT_MOST: SimDuration = SimDuration::from_secs(3_600);

/// A command under way.
#[derive(Debug)]
pub(super) struct Running {
    nodes: Vec<NodeId>,
    /// Nodes to wait for, until each has been seen initialized.
    awaited: Vec<NodeId>,
    started: SimTime,
    end: NodeEnd,
}

/// What is to be started.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    /// Nodes to remove.
    pub(super) nodes: Vec<NodeId>,
    /// Claims to make before.
    pub(super) replacements: Vec<PlannedClaim>,
    /// Nodes that are to receive pods.
    pub(super) destinations: Vec<NodeId>,
    /// What the nodes' end is called.
    pub(super) end: NodeEnd,
}

/// Starts a command: taints its nodes, makes the replacements, and looks at it for the first time. Whether it could be
/// started: a replacement that would exceed its pool's limits cannot be made, and the taints go at the next pass.
pub(super) fn start(context: &mut Context<'_>, now: SimTime, id: CommandId, proposal: Proposal) -> bool {
    for &node in &proposal.nodes {
        termination::taint(context, now, node);
    }
    let over = proposal.replacements.iter().find(|claim| provisioning::exceeds_limits(context, claim.pool));
    if let Some(claim) = over {
        let reason = format!("NodePool {} is over its limits", claim.node_pool);
        context.world.fail_command(id, now, &reason);
        return false;
    }
    context.world.start_command(id, &proposal.nodes, now);
    let make = |claim: PlannedClaim| provisioning::make_claim(context, now, claim);
    let awaited: Vec<NodeId> = proposal.replacements.into_iter().map(make).collect();
    context.world.note_replacements(id, &awaited);
    for node in &proposal.nodes {
        if let Some(claim) = context.karpenter.nodes.get_mut(node) {
            claim.marked = true;
            claim.queued = true;
        }
    }
    let Some(settings) = context.karpenter.settings else { return false };
    let until = now + nomination_window(context.setup.versions.karpenter, settings);
    for &node in &proposal.destinations {
        nominate(context, node, until);
    }
    let running = Running { nodes: proposal.nodes, awaited, started: now, end: proposal.end };
    context.karpenter.commands.insert(id, running);
    look(context, now, id);
    true
}

/// Looks whether a command can be finished or has to be given up.
pub(in crate::actors) fn look(context: &mut Context<'_>, now: SimTime, id: CommandId) {
    let queued: usize = context.karpenter.commands.values().map(|own| own.nodes.len()).sum();
    let Some(mut running) = context.karpenter.commands.remove(&id) else { return };
    running.awaited.retain(|&node| !context.world.node(node).initialized);
    let lost = |node: &NodeId| context.world.node(*node).phase == NodePhase::Gone;
    let failure = running.awaited.iter().any(lost).then_some("a replacement is gone");
    let late = now - running.started > timeout(queued);
    if failure.is_none() && running.awaited.is_empty() {
        finish(context, now, &running);
        if late {
            roll_back(context, now, id, &running, "the command took too long");
        } else {
            context.world.finish_command(id, now);
        }
        return;
    }
    match failure.or(late.then_some("the command took too long")) {
        Some(reason) => roll_back(context, now, id, &running, reason),
        None => {
            context.karpenter.commands.insert(id, running);
            let drift = context.jitter(Jitter::CommandPoll, id.0, now, DRIFT);
            context.queue.schedule_in(POLL + drift, class::NODE_AUTOSCALER, Event::CommandPoll(id));
        }
    }
}

/// How long a command may take with so many nodes in the queue.
fn timeout(queued: usize) -> SimDuration {
    let queued = i64::try_from(queued).unwrap_or(i64::MAX / TIMEOUT_MOST.as_micros());
    (TIMEOUT_PER_NODE * queued).clamp(TIMEOUT_LEAST, TIMEOUT_MOST)
}

/// Removes the nodes of a command.
fn finish(context: &mut Context<'_>, now: SimTime, running: &Running) {
    for &node in &running.nodes {
        if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
            claim.queued = false;
        }
        if context.world.node(node).phase != NodePhase::Gone {
            termination::begin(context, now, node, running.end, running.end.as_str());
        }
    }
}

/// Gives a command up: its nodes take pods again. Replacements that were launched stay.
fn roll_back(context: &mut Context<'_>, now: SimTime, id: CommandId, running: &Running, reason: &str) {
    for &node in &running.nodes {
        if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
            claim.marked = false;
            claim.queued = false;
        }
        untaint(context, now, node);
    }
    context.world.fail_command(id, now, reason);
    static_pools::wake(context, now);
}

/// Takes the taint off nodes that no command concerns and that are not on their way out.
pub(super) fn clean_up(context: &mut Context<'_>, now: SimTime) {
    let left_over: Vec<NodeId> = context
        .karpenter
        .nodes
        .iter()
        .filter(|(node, claim)| {
            let leaving = context.world.node(**node).deletion_requested.is_some();
            claim.tainted && !claim.queued && !claim.marked && !leaving
        })
        .map(|(&node, _)| node)
        .collect();
    for node in left_over {
        untaint(context, now, node);
    }
}

fn untaint(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.world.node(node).deletion_requested.is_some() {
        return;
    }
    let Some(claim) = context.karpenter.nodes.get_mut(&node) else { return };
    if std::mem::take(&mut claim.tainted) {
        context.world.untaint_node(node, leaving(context).key);
        context.world.note_node(node, now, EventKind::NodeUntainted, "");
        scheduler_loop::node_changed(context, now, node);
    }
}

/// The taint of nodes that are on their way out: the release's own, or that of `kubectl cordon`.
pub(super) fn leaving(context: &Context<'_>) -> Taint {
    let own = has_disruption_loop(context.setup.versions.karpenter);
    let key = if own { well_known::TAINT_DISRUPTED } else { well_known::TAINT_UNSCHEDULABLE };
    Taint::new(key, TaintEffect::NoSchedule)
}

/// When a claim's `terminationGracePeriod` ends that was deleted now.
pub(super) fn termination_time(now: SimTime, grace: SimDuration) -> SimTime {
    whole(now) + grace
}

#[cfg(test)]
mod tests {
    use super::timeout;

    #[test]
    fn a_command_may_take_longer_the_more_nodes_are_in_the_queue() {
        for (queued, seconds) in
            [(100, 600), (4_000, 600), (10_000, 800), (40_000, 3_200), (80_000, 3_600), (100_000, 3_600)]
        {
            assert_eq!(timeout(queued).as_secs(), seconds, "{queued} nodes");
        }
    }
}
