//! The batcher: pods that cannot be scheduled are collected for a moment, then packed together.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/batcher.go` and `controller.go`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashSet;

use super::io::{Slip, Timer};
use super::provisioning;
use super::step::Step;
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
    /// What has triggered since the last window ended; a second trigger by the same counts for nothing.
    seen: FxHashSet<Trigger>,
    window: Option<Window>,
    /// Whether a pass is going on, so that no window opens.
    busy: bool,
    /// Whether something has triggered meanwhile.
    armed: bool,
    /// What triggers again, and when next: one chain for each, whatever else makes it trigger in between.
    again: BTreeMap<Trigger, SimTime>,
}

impl Batch {
    /// The next trigger of `by` is planned no longer, if its time has come.
    fn came(&mut self, by: Trigger, now: SimTime) {
        if let Entry::Occupied(next) = self.again.entry(by)
            && *next.get() <= now
        {
            next.remove();
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
        step.own.batch.came(by, now);
        return;
    }
    trigger_again(step, now, by, Timer::PodTrigger(pod));
    trigger(step, now, by);
}

/// A node that is being removed triggers the batcher, and again every 10 s while it is there: its pods need a new place.
pub(super) fn node_trigger(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let by = Trigger::Node(node);
    let tainted = step.own.nodes.get(&node).is_some_and(|claim| claim.tainted);
    let there = matches!(step.cluster.node(node).phase, NodePhase::Registered | NodePhase::Terminating);
    if there && (tainted || step.cluster.node(node).deletion_requested.is_some()) {
        trigger_again(step, now, by, Timer::NodeTrigger(node));
        trigger(step, now, by);
    } else {
        step.own.batch.came(by, now);
    }
}

/// CapacityBuffers trigger the batcher, which do so again by themselves.
pub(super) fn buffers_trigger(step: &mut Step<'_>, now: SimTime) {
    trigger(step, now, Trigger::Buffers);
}

/// Plans the next trigger, unless one is planned that is still to come.
fn trigger_again(step: &mut Step<'_>, now: SimTime, by: Trigger, timer: Timer) {
    let entity = match by {
        Trigger::Pod(pod) => pod.0,
        Trigger::Node(node) => node.0,
        Trigger::Buffers => return,
    };
    let at = now + RETRIGGER + step.slip(Slip::Trigger, entity, now);
    match step.own.batch.again.entry(by) {
        Entry::Occupied(next) if *next.get() > now => return,
        Entry::Occupied(mut next) => *next.get_mut() = at,
        Entry::Vacant(next) => {
            next.insert(at);
        }
    }
    step.wake(at, timer);
}

fn trigger(step: &mut Step<'_>, now: SimTime, by: Trigger) {
    let batch = &mut step.own.batch;
    // Before v1.2 whoever triggers again prolongs the window again.
    if !batch.seen.insert(by) && step.own.behaviour.counts_triggers_once {
        return;
    }
    if batch.busy {
        batch.armed = true;
    } else {
        open(step, now);
    }
}

/// Opens the window, or prolongs it.
fn open(step: &mut Step<'_>, now: SimTime) {
    let flags = step.own.settings.flags;
    let batch = &mut step.own.batch;
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
    step.own.batch.busy = true;
}

/// The pass is over.
pub(super) fn pass_ends(step: &mut Step<'_>, now: SimTime) {
    step.own.batch.busy = false;
    if std::mem::take(&mut step.own.batch.armed) {
        open(step, now);
    }
}

/// The window ends: one scheduling pass for whatever is pending.
pub(super) fn batch_closed(step: &mut Step<'_>, now: SimTime) {
    let batch = &mut step.own.batch;
    batch.seen.clear();
    batch.window = None;
    provisioning::pass(step, now);
}
