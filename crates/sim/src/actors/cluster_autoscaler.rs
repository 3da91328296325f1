//! The Cluster Autoscaler: its main loop on the Auto Scaling groups of the setup.
//!
//! Each iteration reads the groups if it is time ([`groups`]), looks at the cluster ([`observation`]) and lets
//! `nodecast-cluster-autoscaler` decide. Growth is a call at once; nodes that go are tainted, drained and ended ([`removal`]);
//! what was decided and why goes to the record ([`notes`]).
//!
//! Source: Cluster Autoscaler 1.36 `main.go`, `loop/trigger.go`.
//!
//! Where controllers take time, an iteration decides when it has computed, and ends with its calls to the API server ([`ending`]), which
//! share one limit with its events, taints and evictions ([`client`]).
//!
//! Deviation: if controllers take no time, an iteration takes a tenth of a second in a cluster of any size.

mod client;
mod ending;
mod groups;
pub mod inquiry;
mod notes;
mod observation;
mod removal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub(crate) use groups::template as group_template;
pub(super) use removal::{batch_deletes, proceed as removal_proceeds};

use super::actor_events::ActorEvent;
use super::event::{LoopEvent, class};
use super::node_groups::NodeGroups;
use super::scheduler_loop::SchedulerLoop;
use super::setup::{Autoscaler, Setup};
use super::sim::Sim;
use super::volumes::Volumes;
use crate::cluster::{Derived, NodePhase};
use crate::control_plane::call_limit::CallLimit;
use crate::domain::GroupRanks;
use crate::domain::controller_time::at_speed;
use crate::domain::{Labels, NodeId, SimDuration, SimTime, Symbol, Taint, TaintEffect, WorkloadId};
use crate::engine::Streams;
use crate::world::record::{ControllerLoop, EventKind};
use nodecast_cluster_autoscaler::cluster_state::ClusterState;
use nodecast_cluster_autoscaler::controller_time as model;
use nodecast_cluster_autoscaler::view::PodView;
use nodecast_cluster_autoscaler::{
    ClusterAutoscaler, DELETION_CANDIDATE, EstimatedIteration, ExpanderInputs, Flags, Iteration,
};
use nodecast_scheduler::PodVolumes;

/// How long an iteration takes.
const ITERATION: SimDuration = SimDuration::from_millis(100);

/// What the program remembers, and what it knows of the groups.
#[derive(Debug, Default)]
pub(super) struct AutoscalerLoop {
    program: Option<Box<ClusterAutoscaler>>,
    groups: groups::KnownGroups,
    /// When the last two iterations began.
    starts: [SimTime; 2],
    /// When the next one begins.
    due: Option<SimTime>,
    /// Whether a pod was found unschedulable since the last one began.
    signalled: bool,
    iterations: u64,
    removals: BTreeMap<NodeId, removal::Removal>,
    /// Nodes ready to be deleted, gathered by group.
    batches: BTreeMap<usize, Vec<NodeId>>,
    nodes: BTreeMap<NodeId, observation::KnownNode>,
    /// By workload and address of the specification.
    pods: FxHashMap<(WorkloadId, usize, PodVolumes), observation::KnownTemplate>,
    /// The pods as seen last.
    views: Derived<Arc<Vec<PodView>>>,
    noted: notes::LastReasons,
    /// An iteration whose time is not over.
    thought: Option<Box<Thought>>,
    /// Pods for which the last one looked for new places.
    moved_pods: u64,
    /// Whether an iteration that takes time is under way, with its calls.
    is_busy: bool,
    /// Whether it could not read the groups, so that it ends without more.
    fails: bool,
    /// What it has still to do.
    ending: Option<Box<ending::Ending>>,
    /// The client, where calls take time.
    client: Option<client::Client>,
}

/// An iteration that has begun and takes time.
#[derive(Debug)]
struct Thought {
    /// What it saw at its start.
    seen: observation::IterationInput,
    began: SimTime,
    /// Its estimates, if pods wait.
    estimated: Option<Box<EstimatedIteration>>,
}

impl AutoscalerLoop {
    /// The limit of its client, where calls take time.
    pub(super) fn call_limit(&self) -> Option<&CallLimit> {
        self.client.as_ref().map(|client| &client.limit)
    }

    /// How many nodes it takes for unneeded.
    pub(super) fn unneeded(&self) -> u32 {
        self.program.as_ref().map_or(0, |program| program.planner().unneeded().count() as u32)
    }

    /// The ConfigMap of the expander `priority` changes to this form: the program reads it anew each time it expands.
    pub(super) fn replace_ranks(&mut self, ranks: &GroupRanks) {
        if let Some(program) = &mut self.program {
            program.replace_ranks(ranks.clone());
        }
    }

    /// What the program remembers of groups, to tell it of something.
    fn state_mut(&mut self) -> Option<&mut ClusterState> {
        Some(self.program.as_mut()?.state_mut())
    }

    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let Autoscaler::ClusterAutoscaler(settings) = &setup.autoscaler else { return Self::default() };
        let inputs = ExpanderInputs { ranks: settings.ranks.clone(), pod_price: None };
        let program = ClusterAutoscaler::new((*settings.flags).clone(), inputs, SimTime::ZERO);
        let time = setup.policy.controller_time.cluster_autoscaler;
        let program = match time {
            Some(time) => program.taking_time(time.speed_percent),
            None => program,
        };
        Self {
            program: Some(Box::new(program)),
            groups: groups::KnownGroups::new(setup),
            client: time.map(|time| client::Client::new(time.calls)),
            ..Self::default()
        }
    }
}

/// The flags, if this autoscaler runs.
fn flags<'s>(sim: &Sim<'s>) -> Option<&'s Arc<Flags>> {
    match &sim.setup.autoscaler {
        Autoscaler::ClusterAutoscaler(settings) => Some(&settings.flags),
        Autoscaler::Static | Autoscaler::Karpenter(_) => None,
    }
}

/// What the program lists besides the cluster.
#[derive(Clone, Copy)]
pub(super) struct Lists<'a> {
    pub(super) scheduler: &'a SchedulerLoop,
    pub(super) volumes: &'a Volumes,
    pub(super) node_groups: &'a NodeGroups,
    /// Namespaces with their labels.
    pub(super) namespaces: &'a Arc<Vec<(Symbol, Labels)>>,
}

/// Lets one event happen.
pub(super) fn handle(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    now: SimTime,
    event: LoopEvent,
) {
    match event {
        LoopEvent::Iteration => iterate(sim, autoscaler, lists, now),
        LoopEvent::Concluded => concluded(sim, autoscaler, now),
        LoopEvent::Removal(node) => removal_proceeds(sim, autoscaler, lists, now, node),
        LoopEvent::Deletes(group) => batch_deletes(sim, autoscaler, now, group),
        LoopEvent::Called => ending::called(sim, autoscaler, now),
        LoopEvent::Posted => client::posted(sim, autoscaler, now),
        LoopEvent::Tainted(node) => ending::tainted(sim, autoscaler, now, node),
        LoopEvent::Evicted(node, pod) => removal::evicted(sim, autoscaler, now, node, pod),
        LoopEvent::Checked(node) => removal::checked(sim, autoscaler, now, node),
    }
}

/// What it does not look up when its loop comes round.
pub(super) fn observe(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, news: ActorEvent) {
    match news {
        ActorEvent::PodUnschedulable(_) => pod_unschedulable(sim, autoscaler, now),
        ActorEvent::NodeGone(node) | ActorEvent::NodeDeleted(node) => node_gone(autoscaler, node),
        _ => {}
    }
}

/// The program starts.
pub(super) fn begin(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop) {
    if autoscaler.program.is_some() {
        let interval = flags(sim).map_or(SimDuration::ZERO, |flags| flags.scan_interval);
        let phase = sim.streams.stream("scan-phase", "").span_up_to(interval);
        iterate_at(sim, autoscaler, SimTime::ZERO + phase);
    }
}

fn iterate_at(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, at: SimTime) {
    if autoscaler.due.is_none_or(|due| at < due) {
        autoscaler.due = Some(at);
        sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Iteration);
    }
}

/// The scheduler has found no node for a pod: the wait for the next iteration ends.
pub(super) fn pod_unschedulable(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    if flags(sim).is_some_and(|flags| flags.frequent_loops) {
        autoscaler.signalled = true;
        if autoscaler.is_busy {
            return;
        }
        let busy_until = if autoscaler.client.is_some() { now } else { autoscaler.starts[1] + ITERATION };
        iterate_at(sim, autoscaler, now.max(busy_until));
    }
}

/// One iteration, and the plan of the next.
fn iterate(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, now: SimTime) {
    // An earlier one has been put in front of this one since.
    if autoscaler.due != Some(now) {
        return;
    }
    autoscaler.due = None;
    autoscaler.signalled = false;
    let Some(mut program) = autoscaler.program.take() else { return };
    if let Some(time) = sim.setup.policy.controller_time.cluster_autoscaler {
        return iterate_in_time(sim, autoscaler, lists, program, now, time.speed_percent);
    }
    match groups::refresh(sim, autoscaler, lists, &program, now) {
        Ok(()) => run(sim, autoscaler, lists, &mut program, now),
        // The iteration ends here; the next one asks again.
        Err(error) => sim.world.note(now, EventKind::CallFailed, None, format!("Cluster Autoscaler: {error}")),
    }
    autoscaler.iterations += 1;
    let before_last = autoscaler.starts[1];
    autoscaler.starts = [before_last, now];
    let at_once = autoscaler.iterations > 1 && program.continues_at_once(before_last);
    let wait = if at_once || autoscaler.signalled { ITERATION } else { ITERATION.max(program.flags().scan_interval) };
    autoscaler.program = Some(program);
    iterate_at(sim, autoscaler, now + wait);
}

/// An iteration that takes time: it acts when it is over, on what it saw at its start. Its estimates are made at once, because their
/// work is its time.
///
/// Deviation: scale-down's search for new places of pods takes the same time as in the previous iteration.
fn iterate_in_time(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    mut program: Box<ClusterAutoscaler>,
    now: SimTime,
    speed_percent: u32,
) {
    let read = groups::refresh(sim, autoscaler, lists, &program, now);
    autoscaler.iterations += 1;
    autoscaler.starts = [autoscaler.starts[1], now];
    autoscaler.is_busy = true;
    let began = match &read {
        Ok(()) => Some(observation::IterationInput::new(sim, autoscaler, lists, program.flags())),
        Err(error) => {
            sim.world.note(now, EventKind::CallFailed, None, format!("Cluster Autoscaler: {error}"));
            None
        }
    };
    let around = match &began {
        Some(seen) => model::around(seen.node_count() as u64, seen.group_count() as u64, autoscaler.moved_pods),
        None => model::around(sim.world.live_nodes().len() as u64, autoscaler.groups.count() as u64, 0),
    };
    let waits = began.as_ref().filter(|seen| seen.has_waiting_pods());
    let estimated =
        waits.map(|seen| program.estimate(&seen.observation(now), &mut groups::Trial::new(&autoscaler.groups)));
    let estimates = estimated.as_ref().map_or(SimDuration::ZERO, |made| made.took);
    let took = at_speed(around + estimates, speed_percent);
    autoscaler.thought = began.map(|seen| Box::new(Thought { seen, began: now, estimated }));
    autoscaler.fails = read.is_err();
    autoscaler.program = Some(program);
    sim.queue.schedule_in(took, class::NODE_AUTOSCALER, LoopEvent::Concluded);
}

/// The time of an iteration is over: what it came to is done. What is left are its calls to the API server.
fn concluded(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    let writes_status = flags(sim).is_some_and(|flags| flags.write_status_configmap);
    let (ending, cut) = match autoscaler.thought.take() {
        Some(thought) => conclude_thought(sim, autoscaler, now, *thought, writes_status),
        None => (ending::Ending::new(Vec::new(), (&[], &[]), writes_status && !autoscaler.fails), false),
    };
    sim.world.note_loop(ControllerLoop::AutoscalerIteration, now - autoscaler.starts[1], cut);
    autoscaler.ending = Some(Box::new(ending));
    ending::proceed(sim, autoscaler, now);
}

/// Does what an iteration came to, and says which calls are left, and whether a limit of time stopped it.
fn conclude_thought(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    thought: Thought,
    writes_status: bool,
) -> (ending::Ending, bool) {
    let Some(mut program) = autoscaler.program.take() else { return Default::default() };
    let Thought { seen, began, estimated } = thought;
    let cut = estimated.as_ref().is_some_and(|made| made.cut);
    let iteration = conclude(sim, autoscaler, &mut program, now, (&seen, began), estimated);
    let chosen = chosen(&program, now, &seen, &iteration);
    autoscaler.program = Some(program);
    let soft_taints = (&iteration.soft_taints.removed[..], &iteration.soft_taints.added[..]);
    (ending::Ending::new(chosen, soft_taints, writes_status), cut || iteration.scale_down.cut)
}

/// An iteration is over: plans the next one. The interval counts from now.
fn plan_next(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    autoscaler.is_busy = false;
    let Some(program) = &autoscaler.program else { return };
    let at_once = autoscaler.iterations > 1 && program.continues_at_once(autoscaler.starts[0]);
    let wait = if at_once || autoscaler.signalled { SimDuration::ZERO } else { program.flags().scan_interval };
    iterate_at(sim, autoscaler, now + wait);
}

fn run(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    program: &mut ClusterAutoscaler,
    now: SimTime,
) {
    let seen = observation::IterationInput::new(sim, autoscaler, lists, program.flags());
    let iteration = conclude(sim, autoscaler, program, now, (&seen, now), None);
    carry_out(sim, autoscaler, program, now, &seen, &iteration);
}

/// The lots of the iteration of this number, for options that the expander does not tell apart.
fn ties(streams: Streams, number: u64) -> impl FnMut(usize) -> usize {
    let mut draws = None;
    move |options: usize| {
        let draws = draws.get_or_insert_with(|| streams.nth("expander-ties", "cluster-autoscaler", number));
        ((draws.uniform() * options as f64) as usize).min(options.saturating_sub(1))
    }
}

/// Decides on what was seen at `began`, with the estimates that were made then, and does it now.
fn conclude(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    program: &mut ClusterAutoscaler,
    now: SimTime,
    (seen, began): (&observation::IterationInput, SimTime),
    estimated: Option<Box<EstimatedIteration>>,
) -> Iteration {
    let mut ties = ties(sim.streams, autoscaler.iterations);
    let mut calls = groups::Calls { sim, autoscaler, now };
    let observation = seen.observation(began);
    let iteration = match estimated {
        Some(estimated) => program.run_estimated(*estimated, &observation, &mut calls, &mut ties),
        None => program.run_once(&observation, &mut calls, &mut ties),
    };
    autoscaler.moved_pods = iteration.scale_down.moved_pods;
    notes::record(sim, autoscaler, program, seen, &iteration, now);
    notes::announce(sim, autoscaler, seen, &iteration, now);
    iteration
}

/// The nodes that an iteration has chosen to go.
fn chosen(
    program: &ClusterAutoscaler,
    now: SimTime,
    seen: &observation::IterationInput,
    iteration: &Iteration,
) -> Vec<removal::Chosen> {
    let found = &iteration.scale_down;
    let reason = |at: usize| notes::removal_reason(program, seen, at, &found.nodes[at], now);
    let chosen = found.deletions.iter().map(|deletion| removal::Chosen {
        node: seen.node(deletion.node),
        empty: deletion.empty,
        reason: reason(deletion.node),
    });
    chosen.collect()
}

/// Begins removals and changes soft taints, where that takes no time.
fn carry_out(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    program: &mut ClusterAutoscaler,
    now: SimTime,
    seen: &observation::IterationInput,
    iteration: &Iteration,
) {
    if !removal::begin(sim, autoscaler, now, &chosen(program, now, seen, iteration)) {
        program.deletion_failed(now);
    }
    for &node in &iteration.soft_taints.removed {
        set_soft_taint(sim, autoscaler, node, false);
    }
    for &node in &iteration.soft_taints.added {
        set_soft_taint(sim, autoscaler, node, true);
    }
}

/// The soft taint of a node comes or goes, unless the node is on its way out.
fn set_soft_taint(sim: &mut Sim<'_>, autoscaler: &AutoscalerLoop, node: NodeId, comes: bool) {
    let goes = comes && autoscaler.removals.contains_key(&node);
    if goes || autoscaler.client.is_some() && sim.world.node(node).phase >= NodePhase::Terminating {
        return;
    }
    if comes {
        sim.world.taint_node(node, Taint::new(DELETION_CANDIDATE.into(), TaintEffect::PreferNoSchedule));
    } else {
        sim.world.untaint_node(node, DELETION_CANDIDATE.into());
    }
    sim.publish(ActorEvent::NodeTainted(node));
}

/// When the answer to a call that is asked for now is there; `None` where calls take no time.
fn call(autoscaler: &mut AutoscalerLoop, now: SimTime) -> Option<SimTime> {
    autoscaler.client.as_mut().map(|client| client.call(now))
}

/// A node is gone: nothing about it is remembered.
pub(super) fn node_gone(autoscaler: &mut AutoscalerLoop, node: NodeId) {
    autoscaler.removals.remove(&node);
    autoscaler.nodes.remove(&node);
    autoscaler.noted.forget(node);
}
