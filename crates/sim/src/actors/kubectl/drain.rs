//! `kubectl drain --ignore-daemonsets --delete-emptydir-data`: all nodes are cordoned, then one after the other is emptied by evictions.
//!
//! An eviction that a budget forbids is tried again every five seconds; the drain goes on to the next node when every pod is gone,
//! or has failed.
//!
//! Source: kubectl `pkg/cmd/drain/drain.go`, `RunDrain`; `pkg/drain/drain.go`, `evictPods`, `waitForDelete`; `pkg/drain/filters.go`.

use std::collections::VecDeque;

use crate::actors::event::{Event, class};
use crate::actors::eviction;
use crate::actors::sim::Sim;
use crate::cluster::{NodePhase, PodPhase};
use crate::control_plane::eviction::EvictionAnswer;
use crate::domain::pod::OwnerKind;
use crate::domain::which::Which;
use crate::domain::{NodeId, PodId, SimDuration, SimTime};
use crate::world::record::EventKind;

/// From an eviction that was refused to the next attempt.
const RETRY: SimDuration = SimDuration::from_secs(5);
/// Between two looks whether an evicted pod is gone.
const LOOK: SimDuration = SimDuration::from_secs(1);

/// How the command was called.
#[derive(Clone, Copy, Debug)]
pub(in crate::actors) struct Options {
    /// Whether pods that nothing controls are evicted too.
    pub(in crate::actors) force: bool,
    /// After this time the drain of a node is given up.
    pub(in crate::actors) timeout: Option<SimDuration>,
}

/// The drains of a run, in order of their beginning.
#[derive(Debug, Default)]
pub(in crate::actors) struct Drains(Vec<Drain>);

/// One call of the command.
#[derive(Debug)]
struct Drain {
    options: Options,
    /// Nodes whose turn comes later.
    next: VecDeque<NodeId>,
    now: Option<OfNode>,
}

/// The drain of one node.
#[derive(Debug)]
struct OfNode {
    node: NodeId,
    began: SimTime,
    /// Pods whose eviction has not been allowed yet.
    refused: Vec<PodId>,
    /// Pods that are on their way out.
    leaving: Vec<PodId>,
    /// Why it has failed, if it has.
    failure: Option<&'static str>,
}

/// The command is called.
pub(in crate::actors) fn begin(sim: &mut Sim<'_>, drains: &mut Drains, now: SimTime, which: &Which, options: Options) {
    let nodes = super::chosen_nodes(sim, now, "drain", which);
    for &node in &nodes {
        super::cordon_one(sim, now, node);
    }
    let number = drains.0.len();
    drains.0.push(Drain { options, next: nodes.into(), now: None });
    go_on(sim, drains, now, number);
}

/// It takes up the next node, and goes on as far as it can at once.
fn go_on(sim: &mut Sim<'_>, drains: &mut Drains, now: SimTime, number: usize) {
    while let Some(this_drain) = drains.0.get_mut(number) {
        let force = this_drain.options.force;
        let Some(node) = this_drain.next.pop_front() else { return };
        match pods_to_evict(sim, node, force) {
            Ok(refused) => {
                let drain = OfNode { node, began: now, refused, leaving: Vec::new(), failure: None };
                if !take_step(sim, drains, now, number, drain) {
                    return;
                }
            }
            Err(why) => sim.world.note_node(node, now, EventKind::DrainFailed, why),
        }
    }
}

/// The pods of a node that have to leave: not those of DaemonSets, nor static ones.
fn pods_to_evict(sim: &Sim<'_>, node: NodeId, force: bool) -> Result<Vec<PodId>, &'static str> {
    let mut pods = Vec::new();
    for &pod in &sim.world.node(node).pods {
        let state = sim.world.pod(pod);
        if state.daemon || state.spec.owner == OwnerKind::Node {
            continue;
        }
        if state.spec.owner == OwnerKind::None && !state.finished && !force {
            return Err("cannot evict pods that declare no controller (`force` would)");
        }
        pods.push(pod);
    }
    Ok(pods)
}

/// Looks again at the node that is being drained.
pub(in crate::actors) fn look(sim: &mut Sim<'_>, drains: &mut Drains, now: SimTime, number: u32) {
    let number = number as usize;
    let Some(drain) = drains.0.get_mut(number).and_then(|drain| drain.now.take()) else { return };
    if take_step(sim, drains, now, number, drain) {
        go_on(sim, drains, now, number);
    }
}

/// Evicts what may leave; whether the drain of the node is over.
fn take_step(sim: &mut Sim<'_>, drains: &mut Drains, now: SimTime, number: usize, mut drain: OfNode) -> bool {
    let there = |sim: &Sim<'_>, pod: PodId| sim.world.pod(pod).phase != PodPhase::Gone;
    drain.leaving.retain(|&pod| there(sim, pod));
    let waited = now - drain.began;
    if waited.as_micros() % RETRY.as_micros() == 0 {
        for pod in std::mem::take(&mut drain.refused) {
            if !there(sim, pod) {
                continue;
            }
            match eviction::ask(sim, now, pod, "its node is being drained by hand") {
                EvictionAnswer::Evicted { .. } => drain.leaving.push(pod),
                EvictionAnswer::TooManyRequests => drain.refused.push(pod),
                EvictionAnswer::SeveralBudgets => drain.failure = Some("a pod is protected by more than one budget"),
            }
        }
        drain.leaving.retain(|&pod| there(sim, pod));
    }
    let timeout = drains.0.get(number).and_then(|drain| drain.options.timeout);
    if sim.world.node(drain.node).phase > NodePhase::Registered {
        // The node is gone, and its pods with it.
        return true;
    }
    let waits = !drain.refused.is_empty() || !drain.leaving.is_empty();
    if waits && timeout.is_some_and(|most| waited >= most) {
        sim.world.note_node(drain.node, now, EventKind::DrainFailed, "global timeout reached");
        return true;
    }
    if !waits {
        match drain.failure {
            Some(why) => sim.world.note_node(drain.node, now, EventKind::DrainFailed, why),
            None => sim.world.note_node(drain.node, now, EventKind::NodeDrained, "kubectl"),
        }
        return true;
    }
    sim.queue.schedule_in(LOOK, class::PEOPLE, Event::DrainLook(number as u32));
    if let Some(this_drain) = drains.0.get_mut(number) {
        this_drain.now = Some(drain);
    }
    false
}
