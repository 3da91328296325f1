//! What kube-scheduler tells the API server, as fast as its client may: bindings, and why no node takes a pod.
//!
//! A pod has one call under way at most: a binding takes the place of a condition that has not been written yet. From 1.34 on
//! calls are made beside the scheduling of other pods; before, writing a condition holds the loop up.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/backend/api_dispatcher`, `cmd/kube-scheduler/app/options/options.go` (events have
//! a client of their own).

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{conclude_binding, conclude_condition};
use crate::actors::call_limit::CallLimit;
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::setup::Setup;
use crate::domain::{KubernetesVersion, NodeId, PodId, SimTime};
use crate::policy::kube_scheduler::Unschedulable;

/// The first release whose calls are made beside the loop.
const ASYNCHRONOUS: u8 = 34;

/// Calls that wait for a token.
#[derive(Debug)]
pub(super) struct Calls {
    limit: Option<CallLimit>,
    waiting: FxHashMap<PodId, Call>,
    /// Why no node takes a pod, as the API server was last told.
    told: FxHashMap<PodId, Unschedulable>,
    asynchronous: bool,
    /// Until when a call holds the loop up.
    pub(super) held_until: SimTime,
}

/// A call about a pod.
#[derive(Clone, Debug)]
enum Call {
    /// It is bound to a node.
    Bind(NodeId),
    /// No node takes it.
    Condition(Unschedulable),
}

impl Calls {
    pub(super) fn new(setup: &Setup) -> Self {
        let version: KubernetesVersion = setup.scheduler.version;
        Self {
            limit: setup.controller_time.scheduler.map(|time| CallLimit::new(time.calls)),
            waiting: FxHashMap::default(),
            told: FxHashMap::default(),
            asynchronous: version.minor() >= ASYNCHRONOUS,
            held_until: SimTime::ZERO,
        }
    }

    /// Whether the API server has not been told just this of the pod. Where calls take no time nobody counts them.
    fn is_news(&mut self, pod: PodId, why: &Unschedulable) -> bool {
        if self.limit.is_none() {
            return true;
        }
        match self.told.entry(pod) {
            Entry::Occupied(told) if told.get() == why => false,
            told => {
                told.insert_entry(why.clone());
                true
            }
        }
    }

    /// The limit of the scheduler's client.
    pub(super) const fn limit(&self) -> Option<&CallLimit> {
        self.limit.as_ref()
    }

    /// Hands a call over: it comes back if it can be made at once.
    fn admit(&mut self, now: SimTime, pod: PodId, call: Call) -> Result<Call, Option<SimTime>> {
        if let Some(before) = self.waiting.get_mut(&pod) {
            *before = call;
            return Err(None);
        }
        let at = self.limit.as_mut().map_or(now, |limit| limit.reserve(now));
        if at <= now {
            return Ok(call);
        }
        if !self.asynchronous && matches!(call, Call::Condition(_)) {
            self.held_until = self.held_until.max(at);
        }
        self.waiting.insert(pod, call);
        Err(Some(at))
    }
}

/// Binds a pod, at once or when the call has its turn.
pub(super) fn bind(context: &mut Context<'_>, now: SimTime, pod: PodId, node: NodeId) {
    if let Some(call) = send(context, now, pod, Call::Bind(node)) {
        make(context, now, pod, call);
    }
}

/// Tells why no node takes a pod: comes back if that is said at once, not if it waits or if the API server knows.
pub(super) fn tell(context: &mut Context<'_>, now: SimTime, pod: PodId, why: Unschedulable) -> Option<Unschedulable> {
    if !context.scheduler.calls.is_news(pod, &why) {
        return None;
    }
    match send(context, now, pod, Call::Condition(why))? {
        Call::Condition(why) => Some(why),
        Call::Bind(_) => None,
    }
}

/// Hands a call over; it comes back if it can be made now.
fn send(context: &mut Context<'_>, now: SimTime, pod: PodId, call: Call) -> Option<Call> {
    match context.scheduler.calls.admit(now, pod, call) {
        Ok(call) => Some(call),
        Err(at) => {
            if let Some(at) = at {
                context.queue.schedule(at, class::SCHEDULER, Event::SchedulerCall(pod));
            }
            None
        }
    }
}

/// A call that waited has its turn; the pod may be gone.
pub(in crate::actors) fn call_has_its_turn(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    if let Some(call) = context.scheduler.calls.waiting.remove(&pod) {
        make(context, now, pod, call);
    }
}

fn make(context: &mut Context<'_>, now: SimTime, pod: PodId, call: Call) {
    match call {
        Call::Bind(node) => conclude_binding(context, now, pod, node),
        Call::Condition(why) => conclude_condition(context, now, pod, why),
    }
}

/// The pod is gone: nothing more is said of it.
pub(super) fn forget(context: &mut Context<'_>, pod: PodId) {
    context.scheduler.calls.told.remove(&pod);
    if let Some(Call::Bind(_)) = context.scheduler.calls.waiting.remove(&pod) {
        context.scheduler.view.forget_pod(pod);
    }
}
