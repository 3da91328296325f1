//! What Karpenter does about notices, and about the status of instances that it asks for.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/interruption/controller.go`; v0.22.0
//! `pkg/controllers/interruption`. Releases before v0.19 have no such controller, and none acts without a queue: the node
//! then vanishes with its pods.
//!
//! Deviation: in a simulation all notices are those of Spot interruptions. The only failing status checks are those
//! of planned hardware failures (`node_failure`), not those of a zone without power.

use super::io::Timer;
use super::step::Step;
use super::{repair, termination};
use crate::interruption::{Avoided, Notice, is_impaired};
use crate::release::StatusChecks;
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::{NodeId, SimDuration, SimTime, well_known};

/// How long an interrupted offering counts as unavailable.
const UNAVAILABLE: SimDuration = SimDuration::from_secs(180);
/// Between two questions for the status of instances.
const STATUS_POLL: SimDuration = SimDuration::from_secs(60);

/// Karpenter learns something of an instance: it may avoid what the instance came from for a while, and remove the node.
pub(super) fn receive(step: &mut Step<'_>, now: SimTime, node: NodeId, notice: Notice) {
    if !step.is_managed(node) {
        return;
    }
    let state = step.cluster.node(node);
    let label = |key| state.labels.get(key);
    let bought = match notice.avoids() {
        Some(Avoided::Offering) => label(well_known::CAPACITY_TYPE),
        Some(Avoided::Reservation) => label(well_known::CAPACITY_RESERVATION_ID),
        None => None,
    };
    let offering = label(well_known::INSTANCE_TYPE).zip(label(well_known::ZONE)).zip(bought);
    let leaves = state.deletion_requested.is_some() || state.phase >= NodePhase::Terminating;
    if let Some(((name, zone), bought)) = offering {
        step.karpenter.unavailable.insert((name, zone, bought), now + UNAVAILABLE);
    }
    if notice.removes_node() && !leaves {
        termination::begin(step, now, node, NodeEnd::Interrupted, notice.reason());
    }
}

/// A status check of an instance begins to fail, or succeeds again.
pub(super) fn status_checked(step: &mut Step<'_>, now: SimTime, node: NodeId, failed: bool) {
    let Some(claim) = step.karpenter.nodes.get_mut(&node) else { return };
    let before = claim.status_failed;
    claim.status_failed = failed.then(|| before.unwrap_or(now));
    if failed && before.is_none() && step.karpenter.behaviour.status_checks != StatusChecks::NotAsked {
        let begins = step.karpenter.settings.begins;
        let polls = (now - begins).as_micros().div_euclid(STATUS_POLL.as_micros()) + 1;
        step.wake(begins + STATUS_POLL * polls, Timer::StatusPoll(node));
    }
}

/// Karpenter asks EC2 for the status of an instance that fails its checks; if it has for long, the node goes: at once, or in v1.12
/// as its pods let it.
pub(super) fn poll_status(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let since = step.karpenter.nodes.get(&node).and_then(|claim| claim.status_failed);
    let Some(since) = since.filter(|_| step.cluster.node(node).deletion_requested.is_none()) else { return };
    const REASON: &str = "its instance has failed its status checks for too long";
    if !is_impaired(now - since) {
        step.wake(now + STATUS_POLL, Timer::StatusPoll(node));
    } else if step.karpenter.behaviour.status_checks == StatusChecks::Drain {
        termination::begin(step, now, node, NodeEnd::Unhealthy, REASON);
    } else {
        repair::force(step, now, node, NodeEnd::Unhealthy, REASON);
    }
}
