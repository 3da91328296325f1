//! The end of an iteration that takes time: its calls to the API server, one after the other, before the next one is planned.
//!
//! Nodes that go are tainted, five at a time and those without pods first; then soft taints change, for three seconds at most; then the
//! status ConfigMap is read and written. Each call waits for its token.
//!
//! Must not: decide which nodes go.
//!
//! Source: Cluster Autoscaler 1.36 `core/static_autoscaler.go`, `RunOnce`; `core/scaledown/actuation/actuator.go`, `taintNodesSync`;
//! `core/scaledown/actuation/softtaint.go`; `clusterstate/utils/status.go`, `WriteStatusConfigMap`.

use std::collections::VecDeque;

use super::client::{Subject, notify};
use super::removal::{self, Chosen};
use super::{flags, plan_next, set_soft_taint};
use crate::actors::cluster_autoscaler::AutoscalerLoop;
use crate::actors::event::{LoopEvent, class};
use crate::actors::sim::Sim;
use crate::cluster::NodePhase;
use crate::domain::{NodeId, SimTime};

/// Nodes that are tainted at once.
const TAINTING: usize = 5;

/// A call, or calls that go out together.
#[derive(Debug)]
enum Step {
    /// The taint of nodes that go, all empty or all with pods.
    Taints(Vec<Chosen>),
    /// The soft taint of a node comes or goes.
    SoftTaint(NodeId, bool),
    /// The status ConfigMap is read, or written.
    Status,
}

/// Nodes that are being tainted.
#[derive(Debug, Default)]
struct Tainting {
    waiting: VecDeque<Chosen>,
    under_way: Vec<Chosen>,
    tainted: Vec<(Chosen, bool)>,
    failed: bool,
}

/// What an iteration has still to do.
#[derive(Debug, Default)]
pub(super) struct Ending {
    steps: VecDeque<Step>,
    tainting: Tainting,
    /// The call that is under way.
    called: Option<Step>,
    /// When soft taints began to change.
    soft_taints_since: Option<SimTime>,
}

impl Ending {
    /// The end of an iteration that chose these nodes and these changes of soft taints: nodes that lose it, nodes that get it.
    pub(super) fn new(chosen: Vec<Chosen>, soft_taints: (&[NodeId], &[NodeId]), writes_status: bool) -> Self {
        let (empty, others): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|one| one.empty);
        let taints = [empty, others].into_iter().filter(|chosen| !chosen.is_empty()).map(Step::Taints);
        let removed = soft_taints.0.iter().map(|&node| Step::SoftTaint(node, false));
        let added = soft_taints.1.iter().map(|&node| Step::SoftTaint(node, true));
        let status = std::iter::repeat_with(|| Step::Status).take(if writes_status { 2 } else { 0 });
        Self { steps: taints.chain(removed).chain(added).chain(status).collect(), ..Self::default() }
    }
}

/// Makes the next call; after the last one the iteration is over.
pub(super) fn proceed(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    let Some(ending) = &mut autoscaler.ending else { return };
    match ending.steps.pop_front() {
        None => {
            autoscaler.ending = None;
            plan_next(sim, autoscaler, now);
        }
        Some(Step::Taints(chosen)) => {
            ending.tainting = Tainting { waiting: chosen.into(), ..Tainting::default() };
            taint_more(sim, autoscaler, now);
        }
        Some(step) => {
            if matches!(step, Step::SoftTaint(..)) && is_late(sim, autoscaler, now) {
                return proceed(sim, autoscaler, now);
            }
            let Some(at) = super::call(autoscaler, now) else { return };
            if let Some(ending) = &mut autoscaler.ending {
                ending.called = Some(step);
            }
            sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Called);
        }
    }
}

/// Whether soft taints have changed for as long as they may.
fn is_late(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) -> bool {
    let most = flags(sim).map(|flags| flags.max_bulk_soft_taint_time);
    let Some(ending) = &mut autoscaler.ending else { return true };
    let since = *ending.soft_taints_since.get_or_insert(now);
    most.is_some_and(|most| now - since >= most)
}

/// A call has returned.
pub(super) fn called(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    let step = autoscaler.ending.as_mut().and_then(|ending| ending.called.take());
    if let Some(Step::SoftTaint(node, comes)) = step {
        set_soft_taint(sim, autoscaler, node, comes);
    }
    proceed(sim, autoscaler, now);
}

/// Asks for further taints, as long as fewer than five are under way.
fn taint_more(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime) {
    loop {
        let Some(ending) = &mut autoscaler.ending else { return };
        let tainting = &mut ending.tainting;
        if tainting.under_way.len() >= TAINTING {
            return;
        }
        let Some(chosen) = tainting.waiting.pop_front() else { break };
        let node = chosen.node;
        tainting.under_way.push(chosen);
        let Some(at) = super::call(autoscaler, now) else { return };
        sim.queue.schedule(at, class::NODE_AUTOSCALER, LoopEvent::Tainted(node));
    }
    let tainting = autoscaler.ending.as_mut().map(|ending| &mut ending.tainting);
    if let Some(tainting) = tainting.filter(|tainting| tainting.under_way.is_empty()) {
        let Tainting { tainted, failed, .. } = std::mem::take(tainting);
        all_tainted(sim, autoscaler, now, tainted, failed);
    }
}

/// The call that taints a node has returned; a node that is gone by then cannot be tainted.
pub(super) fn tainted(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, now: SimTime, node: NodeId) {
    let Some(ending) = &mut autoscaler.ending else { return };
    let under_way = &mut ending.tainting.under_way;
    let Some(place) = under_way.iter().position(|chosen| chosen.node == node) else { return };
    let chosen = under_way.remove(place);
    if sim.world.node(node).phase == NodePhase::Registered {
        let first = removal::taint(sim, now, &chosen);
        notify(sim, autoscaler, now, [Subject::Node(node)]);
        if let Some(ending) = &mut autoscaler.ending {
            ending.tainting.tainted.push((chosen, first));
        }
    } else if let Some(ending) = &mut autoscaler.ending {
        ending.tainting.failed = true;
    }
    taint_more(sim, autoscaler, now);
}

/// All nodes of a step are tainted: their removals begin. If one could not be, its like are given back, and nothing more is tainted.
fn all_tainted(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    tainted: Vec<(Chosen, bool)>,
    failed: bool,
) {
    for (chosen, first) in tainted {
        removal::enter_tainted(sim, autoscaler, now, &chosen, first);
        if failed {
            removal::give_back(sim, autoscaler, now, chosen.node, "another node could not be tainted");
        } else {
            notify(sim, autoscaler, now, [Subject::Status]);
        }
    }
    if failed {
        if let Some(program) = &mut autoscaler.program {
            program.deletion_failed(now);
        }
        if let Some(ending) = &mut autoscaler.ending {
            ending.steps.retain(|step| !matches!(step, Step::Taints(_)));
        }
    }
    proceed(sim, autoscaler, now);
}
