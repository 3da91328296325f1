//! A node on its way out: tainted, watched for a moment, drained, ended; or given back if that fails.
//!
//! Source: Cluster Autoscaler 1.36 `core/scaledown/actuation/` (`actuator.go`, `drain.go`, `group_deletion_scheduler.go`,
//! `delete_in_batch.go`).

use super::client::{Subject, notify};
use super::groups;
use super::observation::{budgets, pod_view};
use crate::actors::actor_events::ActorEvent;
use crate::actors::cluster_autoscaler::{AutoscalerLoop, Lists};
use crate::actors::event::{LoopEvent, class};
use crate::actors::eviction;
use crate::actors::sim::Sim;
use crate::cluster::NodePhase;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol, Taint, TaintEffect, well_known};
use crate::world::record::{EventKind, NodeEnd, NodeOrigin};
use nodecast_cluster_autoscaler::budgets::RemainingBudgets;
use nodecast_cluster_autoscaler::drainability::{Drainability, drainability};
use nodecast_cluster_autoscaler::pods::is_low_priority;
use nodecast_cluster_autoscaler::{Flags, TO_BE_DELETED};

/// Between two attempts to evict a pod.
const EVICTION_RETRY: SimDuration = SimDuration::from_secs(10);
/// Between two looks at pods that are ending, and at annotations that delay a deletion.
const POLL: SimDuration = SimDuration::from_secs(5);
/// How much longer than its grace period a pod may take.
const HEADROOM: SimDuration = SimDuration::from_secs(30);
/// Annotations that delay the deletion of a node while they are there.
const DELAYS: &str = "delay-deletion.cluster-autoscaler.kubernetes.io/";
/// What a pod of a DaemonSet says of its own eviction.
const DAEMON_EVICTION: &str = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";

/// A node that the planner has chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chosen {
    pub(super) node: NodeId,
    /// Whether it had nothing to move.
    pub(super) empty: bool,
    /// Why it goes.
    pub(super) reason: String,
}

/// How far a removal has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The taint has been set a moment ago.
    Tainted,
    /// Pods are being evicted, from this time on.
    Evicting(SimTime),
    /// All pods were asked to leave; they must be gone by then.
    Leaving(SimTime),
    /// Nothing is left on it; annotations may delay its end until then.
    Delayed(SimTime),
    /// It waits for others of its group, to be deleted with them.
    Gathered,
}

/// A removal that is going on.
#[derive(Clone, Copy, Debug)]
pub(in crate::actors) struct Removal {
    /// Whether the node had nothing to move.
    pub(super) empty: bool,
    /// Whether nobody had decided on the node's end before.
    first: bool,
    stage: Stage,
    /// Pods that it has evicted, and calls that do so and are under way.
    evicted: u32,
    open: u32,
}

/// Taints the chosen nodes, empty ones first, and waits for a moment. If one cannot be tainted, its like are given back,
/// nothing more is tainted, and the answer is `false`.
pub(super) fn begin(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, chosen: &[Chosen]) -> bool {
    for empty in [true, false] {
        let alike: Vec<&Chosen> = chosen.iter().filter(|one| one.empty == empty).collect();
        if alike.iter().any(|one| sim.world.node(one.node).phase != NodePhase::Registered) {
            return false;
        }
        for one in alike {
            let first = taint(sim, now, one);
            enter_tainted(sim, autoscaler, now, one, first);
        }
    }
    true
}

/// The removal of a node that is tainted begins: it is watched for a moment.
pub(super) fn enter_tainted(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    chosen: &Chosen,
    first: bool,
) {
    let Some(flags) = super::flags(sim) else { return };
    enter(autoscaler, chosen.node, Removal { empty: chosen.empty, first, stage: Stage::Tainted, evicted: 0, open: 0 });
    let at = now + flags.node_delete_delay_after_taint;
    sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Removal(chosen.node));
}

/// Taints a node; whether nobody had decided on its end before.
pub(super) fn taint(sim: &mut Sim<'_>, now: SimTime, chosen: &Chosen) -> bool {
    let cordons = super::flags(sim).is_some_and(|flags| flags.cordon_node_before_terminating);
    let began = Symbol::new(&now.as_secs().to_string());
    let taint = Taint { key: Symbol::new(TO_BE_DELETED), value: began, effect: TaintEffect::NoSchedule };
    sim.world.taint_node(chosen.node, taint);
    if cordons {
        sim.world.taint_node(chosen.node, Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule));
    }
    sim.world.note_node(chosen.node, now, EventKind::NodeTainted, TO_BE_DELETED);
    let first = sim.world.node(chosen.node).deletion_requested.is_none();
    if first {
        let end = if chosen.empty { NodeEnd::Empty } else { NodeEnd::Underutilized };
        sim.world.disrupt_node(chosen.node, end, now, &chosen.reason);
    }
    sim.publish(ActorEvent::NodeTainted(chosen.node));
    first
}

/// The removal of a node goes on.
pub(in crate::actors) fn proceed(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    now: SimTime,
    node: NodeId,
) {
    let Some(&removal) = autoscaler.removals.get(&node) else { return };
    let Some(flags) = super::flags(sim) else { return };
    if sim.world.node(node).phase != NodePhase::Registered {
        autoscaler.removals.remove(&node);
        return;
    }
    match removal.stage {
        Stage::Tainted => look_again(sim, autoscaler, lists, now, node, removal),
        Stage::Evicting(since) => evict(sim, autoscaler, flags, now, node, removal, since),
        Stage::Leaving(_) => ask_whether_gone(sim, autoscaler, flags, now, node, removal),
        Stage::Delayed(until) => delete_unless_delayed(sim, autoscaler, flags, now, node, removal, until),
        Stage::Gathered => {}
    }
}

/// Asks for the pods of a node one after the other, up to the first that is still there.
fn ask_whether_gone(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    flags: &Flags,
    now: SimTime,
    node: NodeId,
    removal: Removal,
) {
    let Some(first) = super::call(autoscaler, now) else { return checked(sim, autoscaler, now, node) };
    let others = if leaving(sim, flags, node).is_empty() { removal.evicted.saturating_sub(1) } else { 0 };
    let at = (0..others).filter_map(|_| super::call(autoscaler, now)).last().unwrap_or(first);
    sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Checked(node));
}

/// It is known whether the pods of a node are gone.
pub(super) fn checked(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, node: NodeId) {
    let Some(&removal) = autoscaler.removals.get(&node) else { return };
    let (Some(flags), Stage::Leaving(until)) = (super::flags(sim), removal.stage) else { return };
    if sim.world.node(node).phase != NodePhase::Registered {
        autoscaler.removals.remove(&node);
    } else if leaving(sim, flags, node).is_empty() {
        drained(sim, autoscaler, flags, now, node, removal);
    } else if now >= until {
        give_back(sim, autoscaler, now, node, "its pods did not end in time");
    } else {
        poll(sim, node, POLL);
    }
}

/// What draining a node does with the pods that it holds now.
struct Verdict {
    movable: Vec<PodId>,
    daemons: Vec<PodId>,
    /// Why it cannot be drained, if so.
    blocked: Option<String>,
}

/// The pods of a node as the program lists them before it drains it: without expendable ones, which are not evicted, not waited for,
/// and hold up nothing. They end with the instance, if nobody else drains it.
///
/// Source: Cluster Autoscaler 1.36 `core/scaledown/actuation/actuator.go`, `createSnapshot`.
fn heeded(sim: &Sim<'_>, flags: &Flags, node: NodeId) -> Vec<PodId> {
    let expendable = |pod: PodId| is_low_priority(flags, &sim.world.pod(pod).spec);
    sim.world.node(node).pods.iter().copied().filter(|&pod| !expendable(pod)).collect()
}

fn verdict(
    sim: &Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    flags: &Flags,
    now: SimTime,
    node: NodeId,
) -> Verdict {
    let budgets = budgets(sim);
    let budgets = RemainingBudgets::new(&budgets);
    let mut found = Verdict { movable: Vec::new(), daemons: Vec::new(), blocked: None };
    for pod in heeded(sim, flags, node) {
        let view = pod_view(sim, autoscaler, lists, pod, flags);
        match drainability(flags, &view, &budgets, now) {
            Drainability::Movable => found.movable.push(pod),
            Drainability::Daemon => found.daemons.push(pod),
            Drainability::Skipped | Drainability::WaitsForCompletion => {}
            Drainability::Blocks(reason) => {
                let name = sim.world.pod_name(pod);
                found.blocked = Some(format!("{name} cannot be moved: {}", reason.as_str()));
            }
        }
    }
    found
}

/// The moment after tainting is over: what is on the node now decides.
fn look_again(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    now: SimTime,
    node: NodeId,
    removal: Removal,
) {
    let Some(flags) = super::flags(sim) else { return };
    let found = verdict(sim, autoscaler, lists, flags, now, node);
    if let Some(reason) = &found.blocked {
        give_back(sim, autoscaler, now, node, reason);
    } else if removal.empty && !found.movable.is_empty() {
        give_back(sim, autoscaler, now, node, "it is not empty any more");
    } else if removal.empty {
        if flags.daemonset_eviction_for_empty_nodes {
            evict_daemons(sim, now, &found.daemons, true);
        }
        drained(sim, autoscaler, flags, now, node, removal);
    } else {
        evict_daemons(sim, now, &found.daemons, flags.daemonset_eviction_for_occupied_nodes);
        evict(sim, autoscaler, flags, now, node, removal, now);
    }
}

/// Evicts pods of DaemonSets as far as that works: all of them or none unless they say otherwise themselves.
fn evict_daemons(sim: &mut Sim<'_>, now: SimTime, daemons: &[PodId], all: bool) {
    for &pod in daemons {
        let annotation = sim.world.pod(pod).spec.annotations.get(Symbol::new(DAEMON_EVICTION));
        if annotation.map_or(all, |annotation| annotation == well_known::TRUE) {
            eviction::evict(sim, now, pod, "Cluster Autoscaler drains its node");
        }
    }
}

/// Pods of the node that have to be gone before it ends.
fn leaving(sim: &Sim<'_>, flags: &Flags, node: NodeId) -> Vec<PodId> {
    let mut pods = heeded(sim, flags, node);
    pods.retain(|&pod| !sim.world.pod(pod).daemon);
    pods
}

/// Evicts what is not leaving yet; what is refused is tried again for a while. All pods of a node are asked to leave at once.
fn evict(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    flags: &Flags,
    now: SimTime,
    node: NodeId,
    removal: Removal,
    since: SimTime,
) {
    if now > since && now >= since + flags.max_pod_eviction_time {
        give_back(sim, autoscaler, now, node, "pods on it could not be evicted in time");
        return;
    }
    let mut removal = Removal { stage: Stage::Evicting(since), ..removal };
    for pod in leaving(sim, flags, node) {
        if sim.world.pod(pod).is_active() {
            notify(sim, autoscaler, now, [Subject::Evicted(pod)]);
            match super::call(autoscaler, now) {
                Some(at) => {
                    removal.open += 1;
                    sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Evicted(node, pod));
                }
                None => evict_pod(sim, flags, now, pod),
            }
        }
    }
    enter(autoscaler, node, removal);
    if removal.open == 0 {
        all_asked(sim, autoscaler, flags, now, node, removal, since);
    }
}

fn evict_pod(sim: &mut Sim<'_>, flags: &Flags, now: SimTime, pod: PodId) {
    let grace = sim.world.pod(pod).spec.grace_period().min(flags.max_graceful_termination);
    eviction::evict_within(sim, now, pod, grace, "Cluster Autoscaler drains its node");
}

/// The call that evicts a pod has returned.
pub(super) fn evicted(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, node: NodeId, pod: PodId) {
    let Some(&removal) = autoscaler.removals.get(&node) else { return };
    let (Some(flags), Stage::Evicting(since)) = (super::flags(sim), removal.stage) else { return };
    if sim.world.pod(pod).is_active() {
        evict_pod(sim, flags, now, pod);
    }
    // Handlers of the eviction may have touched the removal.
    let Some(removal) = autoscaler.removals.get_mut(&node) else { return };
    removal.open = removal.open.saturating_sub(1);
    removal.evicted += 1;
    let removal = *removal;
    if removal.open == 0 {
        all_asked(sim, autoscaler, flags, now, node, removal, since);
    }
}

/// All pods of a node were asked to leave: those that may not are asked again later.
fn all_asked(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    flags: &Flags,
    now: SimTime,
    node: NodeId,
    removal: Removal,
    since: SimTime,
) {
    let staying = leaving(sim, flags, node).iter().any(|&pod| sim.world.pod(pod).is_active());
    let until = now + flags.max_graceful_termination + HEADROOM;
    let removal = Removal { stage: if staying { Stage::Evicting(since) } else { Stage::Leaving(until) }, ..removal };
    enter(autoscaler, node, removal);
    if staying {
        poll(sim, node, EVICTION_RETRY);
    } else if autoscaler.client.is_some() {
        ask_whether_gone(sim, autoscaler, flags, now, node, removal);
    } else {
        checked(sim, autoscaler, now, node);
    }
}

fn enter(autoscaler: &mut AutoscalerLoop, node: NodeId, removal: Removal) {
    autoscaler.removals.insert(node, removal);
}

fn poll(sim: &mut Sim<'_>, node: NodeId, wait: SimDuration) {
    sim.queue.schedule_in(wait, class::NODE_AUTOSCALER, LoopEvent::Removal(node));
}

/// Nothing is left on the node that had to leave.
fn drained(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    flags: &Flags,
    now: SimTime,
    node: NodeId,
    removal: Removal,
) {
    if !removal.empty {
        sim.world.drain_node(node, now);
    }
    delete_unless_delayed(sim, autoscaler, flags, now, node, removal, now + flags.node_deletion_delay_timeout);
}

fn delete_unless_delayed(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    flags: &Flags,
    now: SimTime,
    node: NodeId,
    removal: Removal,
    until: SimTime,
) {
    let delayed = sim.world.node(node).annotations.iter().any(|(key, _)| key.as_str().starts_with(DELAYS));
    if delayed && now < until {
        enter(autoscaler, node, Removal { stage: Stage::Delayed(until), ..removal });
        poll(sim, node, POLL);
        return;
    }
    let NodeOrigin::NodeGroup(name) = sim.world.node(node).origin else { return };
    let known = &autoscaler.groups.groups;
    let Some((place, group)) = known.iter().enumerate().find(|(_, group)| group.name == name) else { return };
    let position = group.position;
    if flags.node_deletion_batcher_interval == SimDuration::ZERO {
        delete(sim, autoscaler, now, place, node);
        return;
    }
    enter(autoscaler, node, Removal { stage: Stage::Gathered, ..removal });
    let gathered = autoscaler.batches.entry(position).or_default();
    gathered.push(node);
    if gathered.len() == 1 {
        let wait = flags.node_deletion_batcher_interval;
        sim.queue.schedule_in(wait, class::NODE_AUTOSCALER, LoopEvent::Deletes(position as u32));
    }
}

/// The nodes of a group that were gathered are deleted.
pub(in crate::actors) fn batch_deletes(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    position: u32,
) {
    let position = position as usize;
    let gathered = autoscaler.batches.remove(&position).unwrap_or_default();
    let Some(place) = autoscaler.groups.place_of(position) else { return };
    for node in gathered {
        delete(sim, autoscaler, now, place, node);
    }
}

/// The instance ends. If the call is refused, the node is given back.
fn delete(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, group: usize, node: NodeId) {
    if let Err(error) = groups::delete_node(sim, autoscaler, now, group, node) {
        give_back(sim, autoscaler, now, node, &error.to_string());
        return;
    }
    autoscaler.removals.remove(&node);
    let name = autoscaler.groups.groups[group].name;
    if let Some(state) = autoscaler.state_mut() {
        state.register_scale_down(name, now);
    }
    notify(sim, autoscaler, now, [Subject::Node(node), Subject::Status]);
}

/// The node stays after all.
pub(super) fn give_back(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, node: NodeId, reason: &str) {
    let removal = autoscaler.removals.remove(&node);
    for key in [Symbol::new(TO_BE_DELETED), well_known::TAINT_UNSCHEDULABLE] {
        sim.world.untaint_node(node, key);
    }
    if removal.is_some_and(|removal| removal.first) {
        sim.world.spare_node(node);
    }
    super::call(autoscaler, now);
    notify(sim, autoscaler, now, [Subject::NotRemoved(node)]);
    sim.world.note_node(node, now, EventKind::NodeUntainted, reason);
    sim.publish(ActorEvent::NodeTainted(node));
    let NodeOrigin::NodeGroup(group) = sim.world.node(node).origin else { return };
    if let Some(state) = autoscaler.state_mut() {
        state.register_failed_scale_down(group, now);
    }
}
