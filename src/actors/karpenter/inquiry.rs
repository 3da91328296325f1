//! Questions to Karpenter in a running simulation.

use super::with_machine;
use crate::actors::context::Context;
use crate::domain::node_pool::DisruptionReason;
use crate::domain::{NodeId, PodId, SimTime};
use crate::policy::karpenter::inquiry::{NodeAnswer, PodAnswer, Removal};

/// What stands against the removal of a node, and what it would come to; `None` if Karpenter does not see the node now or its
/// release has no disruption loop.
pub fn node(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Option<NodeAnswer> {
    with_machine(context, now, |machine, context| machine.about_node(now, &context.world, context, node))?
}

/// What the removal of some nodes for a reason would come to, whatever stands against it.
pub fn removal(context: &mut Context<'_>, now: SimTime, nodes: &[NodeId], reason: DisruptionReason) -> Option<Removal> {
    with_machine(context, now, |machine, context| machine.about_removal(now, &context.world, context, nodes, reason))?
}

/// What a scheduling pass of Karpenter would do with a pod that waits now; `None` if it would not take the pod on.
pub fn pod(context: &mut Context<'_>, now: SimTime, pod: PodId) -> Option<PodAnswer> {
    with_machine(context, now, |machine, context| machine.about_pod(now, &context.world, context, pod))?
}
