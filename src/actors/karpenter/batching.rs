//! The batcher: pods that cannot be scheduled are collected for a moment, then packed together.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/batcher.go` and `controller.go`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rustc_hash::FxHashSet;

use super::disruption::DRIFT;
use super::provisioning;
use crate::actors::context::{Context, Jitter};
use crate::actors::event::{Event, class};
use crate::cluster::{NodePhase, PodPhase};
use crate::domain::{NodeId, PodId, SimDuration, SimTime};
use crate::engine::TimerId;

/// A pending pod triggers again after this time, for as long as it is pending.
const RETRIGGER: SimDuration = SimDuration::from_secs(10);

/// What can trigger the batcher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Trigger {
    Pod(PodId),
    Node(NodeId),
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
    closes: TimerId,
    latest: SimTime,
}

/// The scheduler has declared a pod unschedulable: it triggers the batcher, and again every 10 s.
pub(in crate::actors) fn pod_unschedulable(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    if context.karpenter.settings.is_some() && !context.world.pod(pod).daemon {
        pod_trigger(context, now, pod);
    }
}

/// A pending pod triggers the batcher.
pub(in crate::actors) fn pod_trigger(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let by = Trigger::Pod(pod);
    let state = context.world.pod(pod);
    if state.phase != PodPhase::Pending || !state.unschedulable || !state.is_active() {
        context.karpenter.batch.came(by, now);
        return;
    }
    trigger_again(context, now, by, Event::ProvisioningTrigger(pod));
    trigger(context, now, by);
}

/// A node that is being removed triggers the batcher, and again every 10 s while it is there: its pods need a new place.
pub(in crate::actors) fn node_trigger(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let by = Trigger::Node(node);
    let tainted = context.karpenter.nodes.get(&node).is_some_and(|claim| claim.tainted);
    let there = matches!(context.world.node(node).phase, NodePhase::Registered | NodePhase::Terminating);
    if there && (tainted || context.world.node(node).deletion_requested.is_some()) {
        trigger_again(context, now, by, Event::DisruptedNodeTrigger(node));
        trigger(context, now, by);
    } else {
        context.karpenter.batch.came(by, now);
    }
}

/// Plans the next trigger, unless one is planned that is still to come.
fn trigger_again(context: &mut Context<'_>, now: SimTime, by: Trigger, event: Event) {
    let entity = match by {
        Trigger::Pod(pod) => pod.0,
        Trigger::Node(node) => node.0,
    };
    let at = now + RETRIGGER + context.jitter(Jitter::Trigger, entity, now, DRIFT);
    match context.karpenter.batch.again.entry(by) {
        Entry::Occupied(next) if *next.get() > now => return,
        Entry::Occupied(mut next) => *next.get_mut() = at,
        Entry::Vacant(next) => {
            next.insert(at);
        }
    }
    context.queue.schedule(at, class::NODE_AUTOSCALER, event);
}

fn trigger(context: &mut Context<'_>, now: SimTime, by: Trigger) {
    let batch = &mut context.karpenter.batch;
    if !batch.seen.insert(by) {
        return;
    }
    if batch.busy {
        batch.armed = true;
    } else {
        open(context, now);
    }
}

/// Opens the window, or prolongs it.
fn open(context: &mut Context<'_>, now: SimTime) {
    let Some(settings) = context.karpenter.settings else { return };
    let batch = &mut context.karpenter.batch;
    let idle_end = now + settings.batch_idle;
    let latest = match batch.window.take() {
        Some(window) => {
            context.queue.cancel(window.closes);
            window.latest
        }
        None => now + settings.batch_max,
    };
    let closes = context.queue.schedule(idle_end.min(latest), class::BATCH, Event::BatchClosed);
    batch.window = Some(Window { closes, latest });
}

/// A pass has begun that takes time: what triggers meanwhile opens the next window when the pass is over.
pub(super) fn pass_begins(context: &mut Context<'_>) {
    context.karpenter.batch.busy = true;
}

/// The pass is over.
pub(super) fn pass_ends(context: &mut Context<'_>, now: SimTime) {
    context.karpenter.batch.busy = false;
    if std::mem::take(&mut context.karpenter.batch.armed) {
        open(context, now);
    }
}

/// The window ends: one scheduling pass for whatever is pending.
pub(in crate::actors) fn batch_closed(context: &mut Context<'_>, now: SimTime) {
    let batch = &mut context.karpenter.batch;
    batch.seen.clear();
    batch.window = None;
    provisioning::pass(context, now);
}
