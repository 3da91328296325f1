//! What kube-scheduler tells the API server, as fast as its client may: bindings, and why no node takes a pod.
//!
//! Bindings are made beside the scheduling of other pods; writing a condition holds the loop up, until the call has had its turn
//! behind the bindings that asked before.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `handleSchedulingFailure`; `pkg/features/kube_features.go`
//! (`SchedulerAsyncAPICalls` is off unless somebody turns it on); `cmd/kube-scheduler/app/options/options.go` (events have a client
//! of their own).
//!
//! Deviation: `SchedulerAsyncAPICalls` was on in 1.34.0, 1.34.1, and 1.35.0, which wrote conditions in parallel with
//! the loop. Here no release does.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{conclude_binding, conclude_condition};
use crate::actors::event::{SchedulerEvent, class};
use crate::actors::scheduler_loop::SchedulerLoop;
use crate::actors::setup::Setup;
use crate::actors::sim::Sim;
use crate::control_plane::call_limit::CallLimit;
use crate::domain::controller_time::{CallRate, SchedulerTime};
use crate::domain::{ControlPlaneTier, KubernetesVersion, NodeId, PodId, SimDuration, SimTime};
use nodecast_scheduler::Unschedulable;

/// Calls that wait for a token.
#[derive(Debug)]
pub(super) struct Calls {
    limit: Option<Limited>,
    waiting: FxHashMap<PodId, Call>,
    /// Why no node takes a pod, as the API server was last told.
    told: FxHashMap<PodId, Unschedulable>,
    /// Until when a call holds the loop up.
    pub(super) held_until: SimTime,
}

/// The limit of the scheduler's client, which goes by the size of the cluster.
#[derive(Debug)]
struct Limited {
    time: SchedulerTime,
    tier: ControlPlaneTier,
    version: KubernetesVersion,
    rate: CallRate,
    limit: CallLimit,
}

impl Limited {
    fn new(time: SchedulerTime, tier: ControlPlaneTier, version: KubernetesVersion) -> Self {
        let rate = time.calls(tier, version, 0);
        Self { time, tier, version, rate, limit: CallLimit::new(rate) }
    }

    /// Takes a token in a cluster with so many nodes: when the call can be made.
    fn reserve(&mut self, now: SimTime, nodes: usize) -> SimTime {
        let rate = self.time.calls(self.tier, self.version, nodes);
        if rate != self.rate {
            self.limit.set_rate(now, rate);
            self.rate = rate;
        }
        self.limit.reserve(now)
    }
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
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let policy = setup.policy;
        let release = policy.versions.kubernetes;
        Self {
            limit: policy.controller_time.scheduler.map(|time| Limited::new(time, policy.control_plane_tier, release)),
            waiting: FxHashMap::default(),
            told: FxHashMap::default(),
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

    /// The pod is gone.
    pub(super) fn forget_told(&mut self, pod: PodId) {
        self.told.remove(&pod);
    }

    /// The control plane has another tier.
    pub(super) fn change_tier(&mut self, tier: ControlPlaneTier) {
        if let Some(limited) = &mut self.limit {
            limited.tier = tier;
        }
    }

    /// How long an attempt takes, where controllers take time.
    pub(super) fn attempt(&self) -> Option<SimDuration> {
        self.limit.as_ref().map(|limited| limited.tier.scheduler_attempt())
    }

    /// The limit of the scheduler's client, and its rate now.
    pub(super) fn limit(&self) -> Option<(&CallLimit, CallRate)> {
        self.limit.as_ref().map(|limited| (&limited.limit, limited.rate))
    }

    /// Hands a call over: it comes back if it can be made at once, else when it can. While a condition waits no pod is tried, and
    /// a pod that is bound is not tried again, so that no pod has two calls.
    fn admit(&mut self, now: SimTime, nodes: usize, pod: PodId, call: Call) -> Result<Call, SimTime> {
        let at = self.limit.as_mut().map_or(now, |limited| limited.reserve(now, nodes));
        if at <= now {
            return Ok(call);
        }
        if matches!(call, Call::Condition(_)) {
            self.held_until = self.held_until.max(at);
        }
        self.waiting.insert(pod, call);
        Err(at)
    }
}

/// Binds a pod, at once or when the call has its turn.
pub(super) fn bind(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, now: SimTime, pod: PodId, node: NodeId) {
    if let Some(call) = scheduler.send(sim, now, pod, Call::Bind(node)) {
        make(sim, scheduler, now, pod, call);
    }
}

impl SchedulerLoop {
    /// Tells why no node takes a pod: comes back if that is said at once, not if it waits or if the API server knows.
    pub(super) fn tell(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        pod: PodId,
        why: Unschedulable,
    ) -> Option<Unschedulable> {
        if !self.calls.is_news(pod, &why) {
            return None;
        }
        match self.send(sim, now, pod, Call::Condition(why))? {
            Call::Condition(why) => Some(why),
            Call::Bind(_) => None,
        }
    }

    /// Hands a call over; it comes back if it can be made now.
    fn send(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, call: Call) -> Option<Call> {
        let nodes = self.view.node_count();
        match self.calls.admit(now, nodes, pod, call) {
            Ok(call) => Some(call),
            Err(at) => {
                sim.queue.schedule(at, class::SCHEDULER, SchedulerEvent::SchedulerCall(pod));
                None
            }
        }
    }

    /// The pod is gone: nothing more is said of it.
    pub(super) fn forget_calls(&mut self, pod: PodId) {
        self.calls.forget_told(pod);
        if let Some(Call::Bind(_)) = self.calls.waiting.remove(&pod) {
            self.view.forget_pod(pod);
        }
    }
}

/// A call that waited has its turn; the pod may be gone.
pub(in crate::actors) fn call_has_its_turn(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, now: SimTime, pod: PodId) {
    if let Some(call) = scheduler.calls.waiting.remove(&pod) {
        make(sim, scheduler, now, pod, call);
    }
}

fn make(sim: &mut Sim<'_>, scheduler: &mut SchedulerLoop, now: SimTime, pod: PodId, call: Call) {
    match call {
        Call::Bind(node) => conclude_binding(sim, scheduler, now, pod, node),
        Call::Condition(why) => conclude_condition(sim, scheduler, now, pod, why),
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::{Call, CallRate, Calls, Limited};
    use crate::domain::controller_time::SchedulerTime;
    use crate::domain::{ControlPlaneTier, KubernetesVersion, NodeId, PodId, SimDuration, SimTime};
    use nodecast_scheduler::Unschedulable;

    fn limited(per_second: u32, burst: u32) -> Limited {
        let time = SchedulerTime { per_second: Some(per_second), burst: Some(burst) };
        Limited::new(time, ControlPlaneTier::Standard, KubernetesVersion::default())
    }

    #[test]
    fn standard_tier_grows_with_the_cluster() {
        let time = SchedulerTime { per_second: None, burst: None };
        let mut limited = Limited::new(time, ControlPlaneTier::Standard, KubernetesVersion::default());
        (0..100).for_each(|_| _ = limited.reserve(SimTime::ZERO, 499));
        let wait = |limited: &mut Limited, nodes| (limited.reserve(SimTime::ZERO, nodes) - SimTime::ZERO).as_micros();
        assert_eq!(
            [wait(&mut limited, 499), wait(&mut limited, 500)],
            [20_000, 20_000],
            "one at 50, two at 100 a second"
        );
        assert_eq!(limited.rate, CallRate::new(100, 100));
    }

    #[test]
    fn condition_update_blocks_scheduler_but_binding_does_not() {
        let limit = Some(limited(2, 1));
        let mut calls =
            Calls { limit, waiting: FxHashMap::default(), told: FxHashMap::default(), held_until: SimTime::ZERO };
        let at = |millis| SimTime::ZERO + SimDuration::from_millis(millis);
        let bind = |calls: &mut Calls, pod| calls.admit(at(0), 1, PodId(pod), Call::Bind(NodeId(0))).err();
        assert_eq!([bind(&mut calls, 0), bind(&mut calls, 1)], [None, Some(at(500))]);
        assert_eq!(calls.held_until, SimTime::ZERO);
        let why = Unschedulable { nodes: 1, ..Unschedulable::default() };
        assert_eq!(calls.admit(at(0), 1, PodId(2), Call::Condition(why)).err(), Some(at(1_000)));
        assert_eq!(calls.held_until, at(1_000), "it is behind both bindings");
    }

    #[test]
    fn reported_condition_is_forgotten_with_its_pod() {
        let limit = Some(limited(2, 1));
        let mut calls =
            Calls { limit, waiting: FxHashMap::default(), told: FxHashMap::default(), held_until: SimTime::ZERO };
        let why = Unschedulable { nodes: 1, ..Unschedulable::default() };
        assert!(calls.is_news(PodId(0), &why));
        assert!(!calls.is_news(PodId(0), &why));
        calls.forget_told(PodId(0));
        assert!(calls.told.is_empty());
    }
}
