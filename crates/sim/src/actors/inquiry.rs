//! What people ask of a running simulation. Each answer comes from the code that decides; the run goes on as if nobody had
//! asked, if it goes on at all.

pub use super::cluster_autoscaler::inquiry::{
    GroupAnswer, OptionAnswer, SCALE_DOWN_DISABLED, ScaleDownAnswer, ScaleUpAnswer, Standing,
};
pub use super::karpenter::inquiry::DrainBlocker;
pub use super::vertical::inquiry::{ContainerAnswer, VerticalAnswer};
pub use nodecast_karpenter::machine::inquiry::{Destination, Launch, NodeAnswer, PodAnswer, Removal};

use super::context::Context;
use super::{cluster_autoscaler, karpenter, vertical};
use crate::domain::node_pool::DisruptionReason;
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimTime, Symbol};
use nodecast_karpenter::disruption::Obstacle;
use nodecast_scheduler::Evaluation;

/// What the scheduler would say of every node for a pod that waits now; `None` if the pod does not wait, or does not exist yet.
pub fn kube_scheduler(context: &Context<'_>, pod: PodId) -> Option<Evaluation> {
    context.scheduler.inquire(&context.sim, pod)
}

/// What a scale-up would do now, for a pod that waits if one is given; `None` if the Cluster Autoscaler does not run, or does not
/// see the pod wait.
pub fn scale_up(context: &mut Context<'_>, now: SimTime, pod: Option<PodId>) -> Option<ScaleUpAnswer> {
    let (sim, autoscaler, lists) = context.cluster_autoscaler();
    cluster_autoscaler::inquiry::scale_up(sim, autoscaler, lists, now, pod)
}

/// Why a node stays, or that it goes now; `None` if the Cluster Autoscaler does not run or does not see the node.
pub fn scale_down(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Option<ScaleDownAnswer> {
    let (sim, autoscaler, lists) = context.cluster_autoscaler();
    cluster_autoscaler::inquiry::scale_down(sim, autoscaler, lists, now, node)
}

/// What the VerticalPodAutoscaler that a pod belongs to makes of it; `None` if it belongs to none, or does not exist yet.
pub fn vertical(context: &Context<'_>, now: SimTime, pod: PodId) -> Option<VerticalAnswer> {
    vertical::inquiry::vertical(&context.sim, &context.controllers, &context.vertical, now, pod)
}

/// Deployments whose rollouts stand still, past their deadlines, with the claim whose volume one of the new pods waits for.
pub fn stalled_rollouts(context: &Context<'_>) -> Vec<(ObjectName, Option<Symbol>)> {
    context.controllers.stalled(&context.sim, &context.volumes)
}

/// The pods that keep a node of Karpenter's from being drained, each with what keeps it there. One that waits for its turn is not among
/// them. Nothing if the node does not exist yet.
pub fn kept(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Vec<(PodId, DrainBlocker)> {
    karpenter::inquiry::kept(&mut context.karpenter(), now, node)
}

/// The drifted nodes that are not on their way out, each with the first thing that keeps Karpenter from replacing it; nothing where its
/// turn has not come.
pub fn drifted(context: &mut Context<'_>, now: SimTime) -> Vec<(NodeId, Option<Obstacle>)> {
    karpenter::inquiry::drifted(&mut context.karpenter(), now)
}

/// What stands against the removal of a node, and what it would come to; `None` if Karpenter does not see the node now or its
/// release has no disruption loop.
pub fn node(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Option<NodeAnswer> {
    karpenter::inquiry::node(&mut context.karpenter(), now, node)
}

/// What the removal of some nodes for a reason would come to, whatever stands against it.
pub fn removal(context: &mut Context<'_>, now: SimTime, nodes: &[NodeId], reason: DisruptionReason) -> Option<Removal> {
    karpenter::inquiry::removal(&mut context.karpenter(), now, nodes, reason)
}

/// What a scheduling pass of Karpenter would do with a pod that waits now; `None` if it would not take the pod on.
pub fn pod(context: &mut Context<'_>, now: SimTime, pod: PodId) -> Option<PodAnswer> {
    karpenter::inquiry::pod(&mut context.karpenter(), now, pod)
}
