//! What Karpenter's controllers take beside their passes: the calls of their one client, the time from a claim to its launch
//! call, and from a Ready node to one that counts as initialized.
//!
//! Source: Karpenter v1.13 beside a real control plane: 0.15 s from a claim to its call, 0.7 s for the last of 34; from Ready to
//! initialized 1.3 s in the median and 3.4 s in nine of ten cases.

use super::io::{Draw, Timer};
use super::step::Step;
use nodecast_model::control_plane::call_limit::CallLimit;
use nodecast_model::domain::controller_time::AutoscalerTime;
use nodecast_model::domain::{NodeId, SimDuration, SimTime};

/// From a claim to its launch call.
const FIRST_CLAIM: SimDuration = SimDuration::from_millis(150);
/// From the launch call of one claim of a pass to that of the next.
const NEXT_CLAIM: SimDuration = SimDuration::from_micros(16_700);
/// From the deletion of an object to the end of what its controller does about it first: the call, the watch event, and the controller's
/// own call (assumed; a claim's first launch call, with one call more, takes [three times as long](FIRST_CLAIM)).
const DELETION: SimDuration = SimDuration::from_millis(50);
/// Marking the nodes of a command: a patch of the node, then one of the claim's status (assumed).
const MARKING: SimDuration = SimDuration::from_millis(20);
/// From a Ready node to an initialized one: the median in seconds, and the standard deviation of the logarithm.
const INITIALIZATION: (f64, f64) = (1.3, 0.75);

/// The calls of Karpenter's client.
#[derive(Debug)]
pub(super) struct Pace {
    limit: CallLimit,
    /// Claims made at the last instant at which some were.
    claims: (SimTime, u32),
}

impl Pace {
    pub(super) fn new(time: AutoscalerTime) -> Self {
        Self { limit: CallLimit::new(time.calls), claims: (SimTime::ZERO, 0) }
    }

    /// The limit of the client.
    pub(super) const fn limit(&self) -> &CallLimit {
        &self.limit
    }
}

/// When the launch call of a claim is made that is made now.
pub(super) fn launch_begins(step: &mut Step<'_>, now: SimTime) -> SimTime {
    let Some(pace) = &mut step.karpenter.pace else { return now };
    let (at, before) = pace.claims;
    let before = if at == now { before } else { 0 };
    pace.claims = (now, before + 1);
    pace.limit.reserve(now) + FIRST_CLAIM + NEXT_CLAIM * i64::from(before)
}

/// When an eviction is asked for that is due now.
pub(super) fn eviction_at(step: &mut Step<'_>, now: SimTime) -> SimTime {
    step.karpenter.pace.as_mut().map_or(now, |pace| pace.limit.reserve(now))
}

/// How long after the deletion of a node's claim its pods are first evicted: the claim's controller deletes the node, the node's
/// controller puts its pods into the eviction queue, which evicts them. Before v0.28 the node is deleted at once. Until then the pods are
/// active on a node that is on its way out, and hold their new places in every simulation.
///
/// Source: Karpenter core v1.13.0 `pkg/controllers/disruption/queue.go` (`waitOrTerminate`), `pkg/controllers/nodeclaim/lifecycle/controller.go`
/// (`finalize`), `pkg/controllers/node/termination/controller.go` (`awaitDrain`), `pkg/controllers/node/termination/terminator/eviction.go`.
pub(super) fn until_eviction(step: &Step<'_>) -> SimDuration {
    match (&step.karpenter.pace, step.karpenter.behaviour.makes_claims) {
        (None, _) => SimDuration::ZERO,
        (Some(_), false) => DELETION,
        (Some(_), true) => DELETION * 2,
    }
}

/// How long the disruption loop waits for the nodes of a command to be marked, before it looks again.
///
/// Source: Karpenter core v1.13.0 `pkg/controllers/disruption/queue.go`, `markDisrupted`.
pub(super) fn marking(step: &Step<'_>) -> SimDuration {
    if step.karpenter.pace.is_some() { MARKING } else { SimDuration::ZERO }
}

/// A node that Karpenter launched may be initialized: it is looked at in a moment, or at once where that takes no time.
pub(super) fn look_at_initialization(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    if step.karpenter.pace.is_none() || !step.has_disruption_loop() {
        return step.look_at_initialization(now, node);
    }
    let (median, sigma) = INITIALIZATION;
    let wait = step.outside.draw(Draw::Initialization(node, median, sigma));
    step.wake(now + wait, Timer::InitializationSeen(node));
}
