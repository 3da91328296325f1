//! What Karpenter's controllers take beside their passes: the calls of their one client, the time from a claim to its launch
//! call, and from a Ready node to one that counts as initialized.
//!
//! Source: Karpenter v1.13 beside a real control plane: 0.15 s from a claim to its call, 0.7 s for the last of 34; from Ready to
//! initialized 1.3 s in the median and 3.4 s in nine of ten cases.

use super::has_disruption_loop;
use crate::actors::call_limit::CallLimit;
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::setup::Setup;
use crate::domain::{NodeId, SimDuration, SimTime};

/// From a claim to its launch call.
const FIRST_CLAIM: SimDuration = SimDuration::from_millis(150);
/// From the launch call of one claim of a pass to that of the next.
const NEXT_CLAIM: SimDuration = SimDuration::from_micros(16_700);
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
    pub(super) fn new(setup: &Setup) -> Option<Self> {
        let time = setup.controller_time.karpenter.filter(|_| setup.replay.is_none())?;
        Some(Self { limit: CallLimit::new(time.calls), claims: (SimTime::ZERO, 0) })
    }

    /// The limit of the client.
    pub(super) const fn limit(&self) -> &CallLimit {
        &self.limit
    }
}

/// When the launch call of a claim is made that is made now.
pub(super) fn launch_begins(context: &mut Context<'_>, now: SimTime) -> SimTime {
    let Some(pace) = &mut context.karpenter.pace else { return now };
    let (at, before) = pace.claims;
    let before = if at == now { before } else { 0 };
    pace.claims = (now, before + 1);
    pace.limit.reserve(now) + FIRST_CLAIM + NEXT_CLAIM * i64::from(before)
}

/// When an eviction is asked for that is due now.
pub(super) fn eviction_at(context: &mut Context<'_>, now: SimTime) -> SimTime {
    context.karpenter.pace.as_mut().map_or(now, |pace| pace.limit.reserve(now))
}

/// A node that Karpenter launched may be initialized: it is looked at in a moment, or at once where that takes no time.
pub(in crate::actors) fn look_at_initialization(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.karpenter.pace.is_none() || !has_disruption_loop(context.setup.versions.karpenter) {
        return super::look_at_initialization(context, now, node);
    }
    let (median, sigma) = INITIALIZATION;
    let seconds = context.streams.nth("initialization", "", u64::from(node.0)).lognormal(median, sigma);
    let wait = SimDuration::from_secs_f64(seconds);
    context.queue.schedule_in(wait, class::NODE_AUTOSCALER, Event::InitializationSeen(node));
}
