//! Interruption notices on their way to Karpenter, and the status of instances that it asks for.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/interruption/controller.go`; v0.22.0
//! `pkg/controllers/interruption`. Releases before v0.19 have no such controller, and none acts without a queue: the node
//! then vanishes with its pods.
//!
//! Deviation: but for replays, the only notices are those of Spot interruptions, and the only status checks that fail are those of
//! instances whose hardware fails on purpose (`node_failure`), not those of a zone without power.

use super::{Karpenter, is_managed, repair, termination};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::cluster::NodePhase;
use crate::domain::{KarpenterVersion, NodeId, SimDuration, SimTime, well_known};
use crate::policy::interruption::{Avoided, Notice, is_impaired};
use crate::world::record::NodeEnd;

/// How long an interrupted offering counts as unavailable.
const UNAVAILABLE: SimDuration = SimDuration::from_secs(180);
/// Time from the notice to Karpenter reading it: median in seconds and spread; and the share of notices that get lost.
const DELIVERY: (f64, f64) = (1.5, 0.7);
const LOST: f64 = 0.001;
/// Between two questions for the status of instances.
const STATUS_POLL: SimDuration = SimDuration::from_secs(60);

impl Karpenter {
    /// Whether the release acts on notices.
    fn reads_notices(&self, version: KarpenterVersion) -> bool {
        version.reads_notices() && self.settings.is_some_and(|settings| settings.interruption_queue)
    }
}

/// EC2 has given notice: the message is on its way to the queue.
pub(in crate::actors) fn interruption_noticed(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if !is_managed(context, node) || !context.karpenter.reads_notices(context.setup.versions.karpenter) {
        return;
    }
    let Some(machine) = context.machine(node) else { return };
    let instance = context.ec2.instance(machine.instance);
    let entity = format!("{}/{}/{}", instance.pool.instance_type, instance.pool.zone, instance.pool.capacity_type);
    let mut stream = context.streams.nth("notice-delivery", &entity, instance.ordinal);
    if stream.happens(LOST.max(context.ec2.lost_notices(now))) {
        return;
    }
    let delay = SimDuration::from_secs_f64(stream.lognormal(DELIVERY.0, DELIVERY.1));
    context.queue.schedule(now + delay, class::NODE_AUTOSCALER, Event::InterruptionMessage(node));
}

/// Karpenter reads the notice of a Spot interruption.
pub(in crate::actors) fn interruption_message(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    receive(context, now, node, Notice::SpotInterruption);
}

/// Karpenter learns something of an instance: it may avoid what the instance came from for a while, and remove the node.
pub(in crate::actors) fn receive(context: &mut Context<'_>, now: SimTime, node: NodeId, notice: Notice) {
    if !is_managed(context, node) {
        return;
    }
    let state = context.world.node(node);
    let label = |key| state.labels.get(key);
    let bought = match notice.avoids() {
        Some(Avoided::Offering) => label(well_known::CAPACITY_TYPE),
        Some(Avoided::Reservation) => label(well_known::CAPACITY_RESERVATION_ID),
        None => None,
    };
    let offering = label(well_known::INSTANCE_TYPE).zip(label(well_known::ZONE)).zip(bought);
    let leaves = state.deletion_requested.is_some() || state.phase >= NodePhase::Terminating;
    if let Some(((name, zone), bought)) = offering {
        context.karpenter.unavailable.insert((name, zone, bought), now + UNAVAILABLE);
    }
    if notice.removes_node() && !leaves {
        termination::begin(context, now, node, NodeEnd::Interrupted, notice.reason());
    }
}

/// A status check of an instance begins to fail, or succeeds again.
pub(in crate::actors) fn status_checked(context: &mut Context<'_>, now: SimTime, node: NodeId, failed: bool) {
    let Some(claim) = context.karpenter.nodes.get_mut(&node) else { return };
    let before = claim.status_failed;
    claim.status_failed = failed.then(|| before.unwrap_or(now));
    if failed && before.is_none() && context.setup.versions.karpenter >= KarpenterVersion::V1_13 {
        let begins = context.setup.replay.as_ref().map_or(SimTime::ZERO, |replay| replay.begins);
        let polls = (now - begins).as_micros().div_euclid(STATUS_POLL.as_micros()) + 1;
        context.queue.schedule(begins + STATUS_POLL * polls, class::NODE_AUTOSCALER, Event::StatusPoll(node));
    }
}

/// Karpenter asks EC2 for the status of an instance that fails its checks; if it has for long, the node goes at once.
pub(in crate::actors) fn poll_status(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let since = context.karpenter.nodes.get(&node).and_then(|claim| claim.status_failed);
    let Some(since) = since.filter(|_| context.world.node(node).deletion_requested.is_none()) else { return };
    if is_impaired(now - since) {
        repair::force(context, now, node, NodeEnd::Unhealthy, "its instance has failed its status checks for too long");
    } else {
        context.queue.schedule_in(STATUS_POLL, class::NODE_AUTOSCALER, Event::StatusPoll(node));
    }
}
