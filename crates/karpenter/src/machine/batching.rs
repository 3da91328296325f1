//! The batcher: pods that cannot be scheduled are collected for a moment, then packed together.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/batcher.go` and `controller.go`.

use rustc_hash::FxHashMap;

use super::io::{Draw, LateTimer, Timer};
use super::step::Step;
use super::{disruption, provisioning};
use nodecast_model::cluster::{NodePhase, PodPhase};
use nodecast_model::domain::{NodeId, PodId, SimDuration, SimTime};

/// A pending pod triggers again after this time, for as long as it is pending.
const RETRIGGER: SimDuration = SimDuration::from_secs(10);

/// What can trigger the batcher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Trigger {
    Pod(PodId),
    Node(NodeId),
    Buffers,
}

/// The batching window.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// When each trigger came and when it comes next. Thousands of pods trigger every few seconds, so one look-up has to do.
    triggers: FxHashMap<Trigger, TriggerState>,
    /// Number of triggers above which those without a next time are forgotten.
    full: usize,
    /// Number of windows that have ended.
    windows: u64,
    window: Option<Window>,
    /// Whether a pass is going on, so that no window opens.
    busy: bool,
    /// Whether something has triggered meanwhile.
    armed: bool,
}

/// When a pod, node or buffer triggers.
#[derive(Clone, Copy, Debug, Default)]
struct TriggerState {
    /// The next time: one chain for each, whatever else makes it trigger in between.
    next: Option<SimTime>,
    /// The window of its last trigger, counted from 1: a second trigger within a window has no effect.
    window: u64,
}

impl TriggerState {
    /// A trigger within the window; whether it is not the first one of the window.
    fn enter(&mut self, window: u64) -> bool {
        std::mem::replace(&mut self.window, window) == window
    }
}

impl Batch {
    /// The next trigger of `by` is planned no longer, if its time has come.
    fn came(&mut self, by: Trigger, now: SimTime) {
        if let Some(state) = self.triggers.get_mut(&by) {
            state.next = state.next.filter(|&next| next > now);
        }
    }

    /// Forgets triggers of an ended window that do not come again, once there are many.
    fn forget(&mut self) {
        /// Number of triggers that may always stay.
        const FEW: usize = 1_024;
        if self.triggers.len() > self.full.max(FEW) {
            self.triggers.retain(|_, state| state.next.is_some());
            self.full = 2 * self.triggers.len();
        }
    }
}

#[derive(Debug)]
struct Window {
    latest: SimTime,
}

/// The scheduler has declared a pod unschedulable: it triggers the batcher, and again every 10 s.
pub(super) fn pod_unschedulable(step: &mut Step<'_>, now: SimTime, pod: PodId) {
    if !step.cluster.pod(pod).daemon {
        pod_trigger(step, now, pod);
    }
}

/// A pending pod triggers the batcher.
pub(super) fn pod_trigger(step: &mut Step<'_>, now: SimTime, pod: PodId) {
    let by = Trigger::Pod(pod);
    let state = step.cluster.pod(pod);
    if state.phase != PodPhase::Pending || !state.unschedulable || !state.is_active() {
        step.karpenter.batch.came(by, now);
        return;
    }
    trigger_again(step, now, by, (pod.0, Timer::PodTrigger(pod)));
}

/// A node that is being removed triggers the batcher, and again every 10 s while it is there: its pods need a new place.
pub(super) fn node_trigger(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let by = Trigger::Node(node);
    let tainted = step.karpenter.nodes.get(&node).is_some_and(|claim| claim.tainted);
    let there = matches!(step.cluster.node(node).phase, NodePhase::Registered | NodePhase::Terminating);
    if there && (tainted || step.cluster.node(node).deletion_requested.is_some()) {
        trigger_again(step, now, by, (node.0, Timer::NodeTrigger(node)));
    } else {
        step.karpenter.batch.came(by, now);
    }
}

/// CapacityBuffers trigger the batcher, which do so again by themselves.
pub(super) fn buffers_trigger(step: &mut Step<'_>, now: SimTime) {
    let batch = &mut step.karpenter.batch;
    let repeated = batch.triggers.entry(Trigger::Buffers).or_default().enter(batch.windows + 1);
    triggered(step, now, repeated);
}

/// The pod or node triggers, and triggers again later unless that is planned.
fn trigger_again(step: &mut Step<'_>, now: SimTime, by: Trigger, (entity, timer): (u32, Timer)) {
    let batch = &mut step.karpenter.batch;
    let state = batch.triggers.entry(by).or_default();
    let repeated = state.enter(batch.windows + 1);
    if state.next.is_none_or(|next| next <= now) {
        let slip = step.outside.draw(Draw::Slip(LateTimer::Trigger, entity, now, disruption::DRIFT));
        let at = now + RETRIGGER + slip;
        state.next = Some(at);
        step.wake(at, timer);
    }
    triggered(step, now, repeated);
}

/// Something has triggered, perhaps not for the first time within the window.
fn triggered(step: &mut Step<'_>, now: SimTime, repeated: bool) {
    // Before v1.2 a repeated trigger prolongs the window again.
    if repeated && step.karpenter.behaviour.counts_triggers_once {
        return;
    }
    let batch = &mut step.karpenter.batch;
    if batch.busy {
        batch.armed = true;
    } else {
        open(step, now);
    }
}

/// Opens the window, or prolongs it.
fn open(step: &mut Step<'_>, now: SimTime) {
    let flags = step.karpenter.settings.flags;
    let batch = &mut step.karpenter.batch;
    let idle_end = now + flags.batch_idle;
    let latest = match batch.window.take() {
        Some(window) => window.latest,
        None => now + flags.batch_max,
    };
    batch.window = Some(Window { latest });
    step.wake(idle_end.min(latest), Timer::BatchClosed);
}

/// A pass has begun that takes time: what triggers meanwhile opens the next window when the pass is over.
pub(super) fn pass_begins(step: &mut Step<'_>) {
    step.karpenter.batch.busy = true;
}

/// The pass is over.
pub(super) fn pass_ends(step: &mut Step<'_>, now: SimTime) {
    step.karpenter.batch.busy = false;
    if std::mem::take(&mut step.karpenter.batch.armed) {
        open(step, now);
    }
}

/// The window ends: one scheduling pass for whatever is pending.
pub(super) fn batch_closed(step: &mut Step<'_>, now: SimTime) {
    let batch = &mut step.karpenter.batch;
    batch.windows += 1;
    batch.forget();
    batch.window = None;
    provisioning::pass(step, now);
}
