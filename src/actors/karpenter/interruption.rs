//! What Karpenter makes of an interruption notice.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/interruption/controller.go`; v0.22.0
//! `pkg/controllers/interruption`. Releases before v0.19 have no such controller, and none acts without a queue: the node
//! then vanishes with its pods.

use super::{Karpenter, is_managed, termination};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::domain::{KarpenterVersion, NodeId, SimDuration, SimTime};
use crate::world::NodePhase;
use crate::world::record::NodeEnd;

/// How long an interrupted offering counts as unavailable.
const UNAVAILABLE: SimDuration = SimDuration::from_secs(180);
/// Time from the notice to Karpenter reading it: median in seconds and spread; and the share of notices that get lost.
const DELIVERY: (f64, f64) = (1.5, 0.7);
const LOST: f64 = 0.001;

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

/// Karpenter reads the notice: it avoids the offering for a while and removes the node.
pub(in crate::actors) fn interruption_message(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let Some(machine) = context.machine(node) else { return };
    let pool = context.ec2.instance(machine.instance).pool;
    let offering = (pool.instance_type, pool.zone, pool.capacity_type);
    context.karpenter.unavailable.insert(offering, now + UNAVAILABLE);
    let state = context.world.node(node);
    if state.deletion_requested.is_none() && state.phase < NodePhase::Terminating {
        termination::begin(context, now, node, NodeEnd::Interrupted, "its Spot instance is being interrupted");
    }
}
