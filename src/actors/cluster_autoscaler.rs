//! The Cluster Autoscaler: its main loop on the Auto Scaling groups of the setup.
//!
//! Each iteration reads the groups if it is time ([`groups`]), looks at the cluster ([`observation`]) and lets
//! `policy::cluster_autoscaler` decide. Growth is a call at once; nodes that go are tainted, drained and ended ([`removal`]);
//! what was decided and why goes to the record ([`notes`]).
//!
//! Source: Cluster Autoscaler 1.36 `main.go`, `loop/trigger.go`.
//!
//! Deviation: an iteration takes a tenth of a second, however large the cluster is. One that would find all as the last one
//! did, with no limit of time passed since, is not gone through again: only where searches for room begin can differ.

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
use super::event::{Event, class};
use super::scheduler_loop;
use super::setup::{Autoscaler, Setup};
use crate::domain::{NodeId, SimDuration, SimTime, Taint, TaintEffect, WorkloadId};
use crate::policy::cluster_autoscaler::{ClusterAutoscaler, DELETION_CANDIDATE, ExpanderInputs, Flags, Iteration};
use crate::policy::kube_scheduler::PodVolumes;
use crate::world::record::EventKind;

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
    /// What the last iteration saw, if another like it would do nothing.
    settled: Option<Settled>,
    removals: BTreeMap<NodeId, removal::Removal>,
    /// Nodes ready to be deleted, gathered by group.
    batches: BTreeMap<usize, Vec<NodeId>>,
    nodes: BTreeMap<NodeId, observation::KnownNode>,
    /// By workload and address of the specification.
    pods: FxHashMap<(WorkloadId, usize, PodVolumes), observation::KnownTemplate>,
    noted: notes::Noted,
}

/// What nothing follows from for a while.
#[derive(Clone, Copy, Debug)]
struct Settled {
    /// The state of the cluster.
    revision: u64,
    /// The state of the groups.
    reading: u64,
    /// When time alone may change a decision.
    until: SimTime,
}

impl AutoscalerLoop {
    /// How many nodes it takes for unneeded.
    pub(super) fn unneeded(&self) -> u32 {
        self.program.as_ref().map_or(0, |program| program.planner().unneeded().count() as u32)
    }

    pub(super) fn new(setup: &Setup) -> Self {
        let Autoscaler::ClusterAutoscaler(settings) = &setup.autoscaler else { return Self::default() };
        let inputs = ExpanderInputs { ranks: settings.ranks.clone(), pod_price: None };
        let program = ClusterAutoscaler::new((*settings.flags).clone(), inputs, SimTime::ZERO);
        Self { program: Some(Box::new(program)), groups: groups::KnownGroups::new(setup), ..Self::default() }
    }
}

/// The flags, if this autoscaler runs.
fn flags<'s>(context: &Context<'s>) -> Option<&'s Arc<Flags>> {
    match &context.setup.autoscaler {
        Autoscaler::ClusterAutoscaler(settings) => Some(&settings.flags),
        Autoscaler::Static | Autoscaler::Karpenter(_) => None,
    }
}

/// The program starts.
pub(super) fn begin(context: &mut Context<'_>) {
    if context.cluster_autoscaler.program.is_some() {
        iterate_at(context, SimTime::ZERO);
    }
}

fn iterate_at(context: &mut Context<'_>, at: SimTime) {
    if context.cluster_autoscaler.due.is_none_or(|due| at < due) {
        context.cluster_autoscaler.due = Some(at);
        context.queue.schedule(at, class::NODE_AUTOSCALER, Event::AutoscalerIteration);
    }
}

/// The scheduler has found no node for a pod: the wait for the next iteration ends.
pub(super) fn pod_unschedulable(context: &mut Context<'_>, now: SimTime) {
    if flags(context).is_some_and(|flags| flags.frequent_loops) {
        let busy_until = context.cluster_autoscaler.starts[1] + ITERATION;
        context.cluster_autoscaler.signalled = true;
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
    match groups::refresh(context, &program, now) {
        Ok(()) if is_settled(context, now) => {}
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

fn is_settled(context: &Context<'_>, now: SimTime) -> bool {
    let own = &context.cluster_autoscaler;
    own.settled.is_some_and(|settled| {
        settled.revision == context.world.revision() && settled.reading == own.groups.version() && now < settled.until
    })
}

fn run(context: &mut Context<'_>, program: &mut ClusterAutoscaler, now: SimTime) {
    let seen = observation::Seen::new(context, program.flags(), now);
    let (streams, number) = (context.streams, context.cluster_autoscaler.iterations);
    let mut draws = None;
    let mut ties = |options: usize| {
        let draws = draws.get_or_insert_with(|| streams.nth("expander-ties", "cluster-autoscaler", number));
        ((draws.uniform() * options as f64) as usize).min(options.saturating_sub(1))
    };
    let mut calls = groups::Calls { context, now };
    let iteration = program.run_once(&seen.observation(now), &mut calls, &mut ties);
    notes::record(context, program, &seen, &iteration, now);
    let until = program.unchanged_until(&seen.observation(now), &iteration);
    let (revision, reading) = (context.world.revision(), context.cluster_autoscaler.groups.version());
    context.cluster_autoscaler.settled = (until > now).then_some(Settled { revision, reading, until });
    carry_out(context, program, now, &seen, &iteration);
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
    for &node in &iteration.soft_taints.removed {
        context.world.untaint_node(node, DELETION_CANDIDATE.into());
        scheduler_loop::node_changed(context, now, node);
    }
    for &node in &iteration.soft_taints.added {
        if context.cluster_autoscaler.removals.contains_key(&node) {
            continue;
        }
        context.world.taint_node(node, Taint::new(DELETION_CANDIDATE.into(), TaintEffect::PreferNoSchedule));
        scheduler_loop::node_changed(context, now, node);
    }
}

/// A node is gone: nothing about it is remembered.
pub(super) fn node_gone(context: &mut Context<'_>, node: NodeId) {
    context.cluster_autoscaler.removals.remove(&node);
    context.cluster_autoscaler.nodes.remove(&node);
    context.cluster_autoscaler.noted.forget(node);
}
