//! Commands that are being carried out: nodes are tainted at once and removed when their replacements are initialized.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/queue.go`, `controller.go` (`executeCommand`).

use std::collections::BTreeMap;

use super::claims::{nominate, whole};
use super::io::{Action, Fact, LateTimer, Stage, Timer};
use super::provisioning::Purpose;
use super::step::Step;
use super::{provisioning, static_pools, termination};
use crate::packing::PlannedClaim;
use crate::release::LeavingMark;
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::taints::TaintEffect;
use nodecast_model::domain::{CommandId, NodeId, SimDuration, SimTime, Symbol, Taint, well_known};

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

/// A command before its replacements have been made.
#[derive(Debug)]
struct Starting {
    proposal: Proposal,
    awaited: Vec<NodeId>,
}

/// The commands that are not over.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// How many have been proposed.
    pub(super) proposed: u32,
    starting: BTreeMap<CommandId, Starting>,
    running: BTreeMap<CommandId, Running>,
    /// Those that took too long and whose nodes are being deleted all the same.
    late: BTreeMap<CommandId, Running>,
}

impl Commands {
    /// Whether any is carried out.
    pub(super) fn are_under_way(&self) -> bool {
        !self.running.is_empty()
    }

    /// A claim has been made to take the place of a command's nodes.
    pub(super) fn replaced(&mut self, id: CommandId, node: NodeId) {
        if let Some(starting) = self.starting.get_mut(&id) {
            starting.awaited.push(node);
        }
    }
}

/// Starts a command: taints its nodes and makes the replacements. Whether it could be started: a replacement that would exceed
/// its pool's limits cannot be made, and the taints go at the next pass.
pub(super) fn start(step: &mut Step<'_>, now: SimTime, id: CommandId, mut proposal: Proposal) -> bool {
    for &node in &proposal.nodes {
        termination::taint(step, now, node);
    }
    let over = proposal.replacements.iter().find(|claim| provisioning::exceeds_limits(step, claim.pool));
    if let Some(claim) = over {
        let reason = format!("NodePool {} is over its limits", claim.node_pool);
        step.act(Action::Fail(id, reason));
        return false;
    }
    step.act(Action::Start(id, proposal.nodes.clone()));
    for claim in std::mem::take(&mut proposal.replacements) {
        provisioning::make_claim(step, claim, Purpose::Replaces(id));
    }
    step.karpenter.commands.starting.insert(id, Starting { proposal, awaited: Vec::new() });
    step.next(Stage::CommandMade(id));
    true
}

/// The replacements of a command have been made: looks at it for the first time.
pub(super) fn made(step: &mut Step<'_>, now: SimTime, id: CommandId) {
    let Some(Starting { proposal, awaited }) = step.karpenter.commands.starting.remove(&id) else { return };
    step.act(Action::Replaced(id, awaited.clone()));
    for node in &proposal.nodes {
        if let Some(claim) = step.karpenter.nodes.get_mut(node) {
            claim.marked = true;
            claim.queued = true;
        }
    }
    let until = now + step.karpenter.nomination_window();
    for &node in &proposal.destinations {
        nominate(step, node, until);
    }
    let running = Running { nodes: proposal.nodes, awaited, started: now, end: proposal.end };
    step.karpenter.commands.running.insert(id, running);
    look(step, now, id);
}

/// The nodes of a command that took too long have been deleted.
pub(super) fn late(step: &mut Step<'_>, now: SimTime, id: CommandId) {
    if let Some(running) = step.karpenter.commands.late.remove(&id) {
        roll_back(step, now, id, &running, "the command took too long");
    }
}

/// Looks whether a command can be finished or has to be given up.
pub(super) fn look(step: &mut Step<'_>, now: SimTime, id: CommandId) {
    let queued: usize = step.karpenter.commands.running.values().map(|command| command.nodes.len()).sum();
    let Some(mut running) = step.karpenter.commands.running.remove(&id) else { return };
    running.awaited.retain(|&node| !step.cluster.node(node).initialized);
    let lost = |node: &NodeId| step.cluster.node(*node).phase == NodePhase::Gone;
    let failure = running.awaited.iter().any(lost).then_some("a replacement is gone");
    let longest = if step.karpenter.behaviour.scales_command_timeout { timeout(queued) } else { TIMEOUT_LEAST };
    let late = now - running.started > longest;
    if failure.is_none() && running.awaited.is_empty() {
        finish(step, now, &running);
        if late {
            step.karpenter.commands.late.insert(id, running);
            step.next(Stage::CommandLate(id));
        } else {
            step.act(Action::Finish(id));
        }
        return;
    }
    match failure.or(late.then_some("the command took too long")) {
        Some(reason) => roll_back(step, now, id, &running, reason),
        None => {
            step.karpenter.commands.running.insert(id, running);
            let drift = step.slip(LateTimer::CommandPoll, id.0, now);
            step.wake(now + POLL + drift, Timer::CommandPoll(id));
        }
    }
}

/// How long a command may take with so many nodes in the queue.
fn timeout(queued: usize) -> SimDuration {
    let queued = i64::try_from(queued).unwrap_or(i64::MAX / TIMEOUT_MOST.as_micros());
    (TIMEOUT_PER_NODE * queued).clamp(TIMEOUT_LEAST, TIMEOUT_MOST)
}

/// Removes the nodes of a command.
fn finish(step: &mut Step<'_>, now: SimTime, running: &Running) {
    for &node in &running.nodes {
        if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
            claim.queued = false;
        }
        if step.cluster.node(node).phase != NodePhase::Gone {
            termination::begin(step, now, node, running.end, running.end.as_str());
        }
    }
}

/// Gives a command up: its nodes take pods again. Replacements that were launched stay.
fn roll_back(step: &mut Step<'_>, now: SimTime, id: CommandId, running: &Running, reason: &str) {
    for &node in &running.nodes {
        if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
            claim.marked = false;
            claim.queued = false;
        }
        untaint(step, node);
    }
    step.act(Action::Fail(id, reason.to_owned()));
    static_pools::wake(step, now);
}

/// Takes the taint off nodes that no command concerns and that are not on their way out; whether there are any.
pub(super) fn clean_up(step: &mut Step<'_>) -> bool {
    let left_over: Vec<NodeId> = step
        .karpenter
        .nodes
        .iter()
        .filter(|(node, claim)| {
            let leaving = step.cluster.node(**node).deletion_requested.is_some();
            claim.tainted && !claim.queued && !claim.marked && !leaving
        })
        .map(|(&node, _)| node)
        .collect();
    for &node in &left_over {
        untaint(step, node);
    }
    !left_over.is_empty()
}

fn untaint(step: &mut Step<'_>, node: NodeId) {
    if step.cluster.node(node).deletion_requested.is_some() {
        return;
    }
    let Some(claim) = step.karpenter.nodes.get_mut(&node) else { return };
    if std::mem::take(&mut claim.tainted) {
        let key = leaving(step).key;
        step.act(Action::Untaint(node, key));
        step.note_node(node, Fact::NodeUntainted, "");
    }
}

/// The taint of nodes that are on their way out: the release's own, or that of `kubectl cordon`.
pub(super) fn leaving(step: &Step<'_>) -> Taint {
    let taint = |key| Taint::new(key, TaintEffect::NoSchedule);
    match step.karpenter.behaviour.leaving_mark {
        LeavingMark::Cordon => taint(well_known::TAINT_UNSCHEDULABLE),
        LeavingMark::Disruption => Taint { value: Symbol::new("disrupting"), ..taint(well_known::TAINT_DISRUPTION) },
        LeavingMark::Disrupted => taint(well_known::TAINT_DISRUPTED),
    }
}

/// When a claim's `terminationGracePeriod` ends that was deleted now.
pub(super) fn termination_time(now: SimTime, grace: SimDuration) -> SimTime {
    whole(now) + grace
}

#[cfg(test)]
mod tests {
    use super::timeout;

    #[test]
    fn command_timeout_grows_with_queued_nodes() {
        for (queued, seconds) in
            [(100, 600), (4_000, 600), (10_000, 800), (40_000, 3_200), (80_000, 3_600), (100_000, 3_600)]
        {
            assert_eq!(timeout(queued).as_secs(), seconds, "{queued} nodes");
        }
    }
}
