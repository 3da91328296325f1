//! The Cluster Autoscaler: its main loop on the Auto Scaling groups of the setup.
//!
//! Each iteration reads the groups if it is time ([`groups`]), looks at the cluster ([`observation`]) and lets
//! `nodecast-cluster-autoscaler` decide. Growth is a call at once; nodes that go are tainted, drained and ended ([`removal`]);
//! what was decided and why goes to the record ([`notes`]).
//!
//! Source: Cluster Autoscaler 1.36 `main.go`, `loop/trigger.go`.
//!
//! Deviation: where controllers take no time, an iteration takes a tenth of a second, however large the cluster is.

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

pub(super) use removal::{batch_deletes, proceed as removal_proceeds};

use super::context::Context;
use super::event::{LoopEvent, class};
use super::news::News;
use super::setup::{Autoscaler, Setup};
use super::sight::Sight;
use crate::cluster::{Derived, NodePhase};
use crate::control_plane::call_limit::CallLimit;
use crate::domain::GroupRanks;
use crate::domain::controller_time::at_speed;
use crate::domain::{NodeId, SimDuration, SimTime, Taint, TaintEffect, WorkloadId};
use crate::engine::Streams;
use crate::world::record::{ControllerLoop, EventKind};
use nodecast_cluster_autoscaler::cluster_state::ClusterState;
use nodecast_cluster_autoscaler::controller_time as model;
use nodecast_cluster_autoscaler::view::PodView;
use nodecast_cluster_autoscaler::{ClusterAutoscaler, DELETION_CANDIDATE, ExpanderInputs, Flags, Iteration};
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
    noted: notes::Noted,
    /// An iteration whose time is not over.
    thought: Option<Box<Thought>>,
    /// How long the last one took, and the pods for which it looked for new places.
    last: (SimDuration, u64),
    /// The calls of its client, where they take time.
    calls: Option<CallLimit>,
}

/// An iteration that has begun and takes time.
#[derive(Debug)]
struct Thought {
    /// What it saw at its start.
    seen: observation::Seen,
    began: SimTime,
    took: SimDuration,
}

impl AutoscalerLoop {
    /// The limit of its client, where calls take time.
    pub(super) fn call_limit(&self) -> Option<&CallLimit> {
        self.calls.as_ref()
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
            calls: time.map(|time| CallLimit::new(time.calls)),
            ..Self::default()
        }
    }
}

/// The flags, if this autoscaler runs.
fn flags<'s>(context: &Context<'s>) -> Option<&'s Arc<Flags>> {
    match &context.setup.autoscaler {
        Autoscaler::ClusterAutoscaler(settings) => Some(&settings.flags),
        Autoscaler::Static | Autoscaler::Karpenter(_) => None,
    }
}

/// Lets one event happen.
pub(super) fn handle(context: &mut Context<'_>, now: SimTime, event: LoopEvent) {
    match event {
        LoopEvent::Iteration => iterate(context, now),
        LoopEvent::Concluded => concluded(context, now),
        LoopEvent::Removal(node) => removal_proceeds(context, now, node),
        LoopEvent::Deletes(group) => batch_deletes(context, now, group),
    }
}

/// What it does not look up when its loop comes round.
pub(super) fn observe(context: &mut Context<'_>, now: SimTime, sight: Sight) {
    match sight {
        Sight::PodUnschedulable(_) => pod_unschedulable(context, now),
        Sight::NodeGone(node) => node_gone(context, node),
        _ => {}
    }
}

/// The program starts.
pub(super) fn begin(context: &mut Context<'_>) {
    if context.cluster_autoscaler.program.is_some() {
        let interval = flags(context).map_or(SimDuration::ZERO, |flags| flags.scan_interval);
        let phase = context.streams.stream("scan-phase", "").span_up_to(interval);
        iterate_at(context, SimTime::ZERO + phase);
    }
}

fn iterate_at(context: &mut Context<'_>, at: SimTime) {
    if context.cluster_autoscaler.due.is_none_or(|due| at < due) {
        context.cluster_autoscaler.due = Some(at);
        context.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Iteration);
    }
}

/// The scheduler has found no node for a pod: the wait for the next iteration ends.
pub(super) fn pod_unschedulable(context: &mut Context<'_>, now: SimTime) {
    if flags(context).is_some_and(|flags| flags.frequent_loops) {
        let own = &mut context.cluster_autoscaler;
        own.signalled = true;
        if own.thought.is_some() {
            return;
        }
        let busy_until = own.starts[1] + if own.calls.is_some() { own.last.0 } else { ITERATION };
        iterate_at(context, now.max(busy_until));
    }
}

/// One iteration, and the plan of the next.
pub(super) fn iterate(context: &mut Context<'_>, now: SimTime) {
    // An earlier one has been put in front of this one since.
    if context.cluster_autoscaler.due != Some(now) {
        return;
    }
    context.cluster_autoscaler.due = None;
    context.cluster_autoscaler.signalled = false;
    let Some(mut program) = context.cluster_autoscaler.program.take() else { return };
    if let Some(time) = context.setup.policy.controller_time.cluster_autoscaler {
        return iterate_in_time(context, program, now, time.speed_percent);
    }
    match groups::refresh(context, &program, now) {
        Ok(()) => run(context, &mut program, now),
        // The iteration ends here; the next one asks again.
        Err(error) => context.world.note(now, EventKind::CallFailed, None, format!("Cluster Autoscaler: {error}")),
    }
    let own = &mut context.cluster_autoscaler;
    own.iterations += 1;
    let before_last = own.starts[1];
    own.starts = [before_last, now];
    let at_once = own.iterations > 1 && program.continues_at_once(before_last);
    let wait = if at_once || own.signalled { ITERATION } else { ITERATION.max(program.flags().scan_interval) };
    own.program = Some(program);
    iterate_at(context, now + wait);
}

/// An iteration that takes time: what it comes to is known when it is over, by what it saw at its start.
fn iterate_in_time(context: &mut Context<'_>, mut program: Box<ClusterAutoscaler>, now: SimTime, speed_percent: u32) {
    let read = groups::refresh(context, &program, now);
    let own = &mut context.cluster_autoscaler;
    own.iterations += 1;
    own.starts = [own.starts[1], now];
    let began = match read {
        Ok(()) => Some(observation::Seen::new(context, program.flags(), now)),
        Err(error) => {
            context.world.note(now, EventKind::CallFailed, None, format!("Cluster Autoscaler: {error}"));
            None
        }
    };
    let (took, cut) = match &began {
        Some(seen) => took(context, &mut program, seen, now),
        None => (model::around(context.world.live_nodes().len() as u64, 0), false),
    };
    let took = at_speed(took, speed_percent);
    context.world.note_loop(ControllerLoop::AutoscalerIteration, took, cut);
    context.cluster_autoscaler.last.0 = took;
    match began {
        Some(seen) => {
            context.cluster_autoscaler.thought = Some(Box::new(Thought { seen, began: now, took }));
            context.cluster_autoscaler.program = Some(program);
            context.queue.schedule_in(took, class::NODE_AUTOSCALER, LoopEvent::Concluded);
        }
        None => plan_next(context, program, now, took),
    }
}

/// How long an iteration takes on the processor that was measured, and whether a limit cuts it. What its estimates take is found out by
/// making them in thought.
///
/// Deviation: scale-down's search for new places of pods is taken to cost what it did in the iteration before.
fn took(
    context: &Context<'_>,
    program: &mut ClusterAutoscaler,
    seen: &observation::Seen,
    now: SimTime,
) -> (SimDuration, bool) {
    let around = model::around(seen.node_count() as u64, context.cluster_autoscaler.last.1);
    if !seen.has_waiting_pods() {
        return (around, false);
    }
    let mut calls = groups::Trial::new(&context.cluster_autoscaler.groups);
    let (estimates, cut) = program.time_of_estimates(&seen.observation(now), &mut calls, &mut |_| 0);
    (around + estimates, cut)
}

/// The time of an iteration is over: what it came to is done, and the next one planned.
pub(super) fn concluded(context: &mut Context<'_>, now: SimTime) {
    let Some(thought) = context.cluster_autoscaler.thought.take() else { return };
    let Some(mut program) = context.cluster_autoscaler.program.take() else { return };
    let Thought { seen, began, took } = *thought;
    conclude(context, &mut program, now, (&seen, began));
    plan_next(context, program, began, took);
}

/// Plans the iteration after one that began then and took so long: one that took longer than the interval is followed at once.
fn plan_next(context: &mut Context<'_>, program: Box<ClusterAutoscaler>, began: SimTime, took: SimDuration) {
    let own = &mut context.cluster_autoscaler;
    let at_once = own.iterations > 1 && program.continues_at_once(own.starts[0]);
    let wait = if at_once || own.signalled { took } else { took.max(program.flags().scan_interval) };
    own.program = Some(program);
    iterate_at(context, began + wait);
}

fn run(context: &mut Context<'_>, program: &mut ClusterAutoscaler, now: SimTime) {
    let seen = observation::Seen::new(context, program.flags(), now);
    conclude(context, program, now, (&seen, now));
}

/// The lots of the iteration of this number, for options that the expander does not tell apart.
fn ties(streams: Streams, number: u64) -> impl FnMut(usize) -> usize {
    let mut draws = None;
    move |options: usize| {
        let draws = draws.get_or_insert_with(|| streams.nth("expander-ties", "cluster-autoscaler", number));
        ((draws.uniform() * options as f64) as usize).min(options.saturating_sub(1))
    }
}

/// Decides on what was seen at `began`, and does it now.
fn conclude(
    context: &mut Context<'_>,
    program: &mut ClusterAutoscaler,
    now: SimTime,
    (seen, began): (&observation::Seen, SimTime),
) {
    let mut ties = ties(context.streams, context.cluster_autoscaler.iterations);
    let mut calls = groups::Calls { context, now };
    let iteration = program.run_once(&seen.observation(began), &mut calls, &mut ties);
    context.cluster_autoscaler.last.1 = iteration.scale_down.moved_pods;
    notes::record(context, program, seen, &iteration, now);
    carry_out(context, program, now, seen, &iteration);
}

/// Begins removals and changes soft taints.
fn carry_out(
    context: &mut Context<'_>,
    program: &mut ClusterAutoscaler,
    now: SimTime,
    seen: &observation::Seen,
    iteration: &Iteration,
) {
    let found = &iteration.scale_down;
    let reason = |at: usize| notes::removal_reason(program, seen, at, &found.nodes[at], now);
    let chosen: Vec<removal::Chosen> = found
        .deletions
        .iter()
        .map(|deletion| removal::Chosen {
            node: seen.node(deletion.node),
            empty: deletion.empty,
            reason: reason(deletion.node),
        })
        .collect();
    if !removal::begin(context, now, &chosen) {
        program.deletion_failed(now);
    }
    let gone = |context: &Context<'_>, node: NodeId| context.world.node(node).phase >= NodePhase::Terminating;
    for &node in &iteration.soft_taints.removed {
        if context.cluster_autoscaler.calls.is_some() && gone(context, node) {
            continue;
        }
        context.world.untaint_node(node, DELETION_CANDIDATE.into());
        context.tell(now, News::NodeTainted(node));
    }
    for &node in &iteration.soft_taints.added {
        let timed = context.cluster_autoscaler.calls.is_some();
        if context.cluster_autoscaler.removals.contains_key(&node) || timed && gone(context, node) {
            continue;
        }
        context.world.taint_node(node, Taint::new(DELETION_CANDIDATE.into(), TaintEffect::PreferNoSchedule));
        context.tell(now, News::NodeTainted(node));
    }
}

/// A node is gone: nothing about it is remembered.
pub(super) fn node_gone(context: &mut Context<'_>, node: NodeId) {
    context.cluster_autoscaler.removals.remove(&node);
    context.cluster_autoscaler.nodes.remove(&node);
    context.cluster_autoscaler.noted.forget(node);
}
