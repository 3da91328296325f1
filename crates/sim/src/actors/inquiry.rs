//! What people ask of a running simulation. Each answer comes from the code that decides; the run goes on as if nobody had
//! asked, if it goes on at all.

pub use super::cluster_autoscaler::inquiry::{
    GroupAnswer, OptionAnswer, SCALE_DOWN_DISABLED, ScaleDownAnswer, ScaleUpAnswer, Standing,
};
pub use super::karpenter::inquiry::DrainBlocker;
pub use super::vertical::inquiry::{ContainerAnswer, VerticalAnswer};
pub use nodecast_karpenter::machine::inquiry::{Destination, Launch, NodeAnswer, PodAnswer, Removal};

use super::components::Components;
use super::{cluster_autoscaler, karpenter, vertical};
use crate::domain::node_pool::DisruptionReason;
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimTime, Symbol};
use nodecast_karpenter::disruption::Obstacle;
use nodecast_scheduler::Evaluation;

/// What the scheduler would say of every node for a pod that waits now; `None` if the pod does not wait, or does not exist yet.
pub fn kube_scheduler(components: &Components<'_>, pod: PodId) -> Option<Evaluation> {
    components.scheduler.inquire(&components.sim, pod)
}

/// What a scale-up would do now, for a pod that waits if one is given; `None` if the Cluster Autoscaler does not run, or does not
/// see the pod wait.
pub fn scale_up(components: &mut Components<'_>, now: SimTime, pod: Option<PodId>) -> Option<ScaleUpAnswer> {
    let (sim, autoscaler, lists) = components.cluster_autoscaler();
    cluster_autoscaler::inquiry::scale_up(sim, autoscaler, lists, now, pod)
}

/// Why a node stays, or that it goes now; `None` if the Cluster Autoscaler does not run or does not see the node.
pub fn scale_down(components: &mut Components<'_>, now: SimTime, node: NodeId) -> Option<ScaleDownAnswer> {
    let (sim, autoscaler, lists) = components.cluster_autoscaler();
    cluster_autoscaler::inquiry::scale_down(sim, autoscaler, lists, now, node)
}

/// What the VerticalPodAutoscaler that a pod belongs to makes of it; `None` if it belongs to none, or does not exist yet.
pub fn vertical(components: &Components<'_>, now: SimTime, pod: PodId) -> Option<VerticalAnswer> {
    vertical::inquiry::vertical(&components.sim, &components.controllers, &components.vertical, now, pod)
}

/// Deployments whose rollouts stand still, past their deadlines, with the claim whose volume one of the new pods waits for.
pub fn stalled_rollouts(components: &Components<'_>) -> Vec<(ObjectName, Option<Symbol>)> {
    components.controllers.stalled(&components.sim, &components.volumes)
}

/// The pods that keep a node of Karpenter's from being drained, each with what keeps it there. One that waits for its turn is not among
/// them. Nothing if the node does not exist yet.
pub fn kept(components: &mut Components<'_>, now: SimTime, node: NodeId) -> Vec<(PodId, DrainBlocker)> {
    karpenter::inquiry::kept(&mut components.karpenter(), now, node)
}

/// The drifted nodes that are not on their way out, each with the first thing that keeps Karpenter from replacing it; nothing where its
/// turn has not come.
pub fn drifted(components: &mut Components<'_>, now: SimTime) -> Vec<(NodeId, Option<Obstacle>)> {
    karpenter::inquiry::drifted(&mut components.karpenter(), now)
}

/// What stands against the removal of a node, and what it would come to; `None` if Karpenter does not see the node now or its
/// release has no disruption loop.
pub fn node(components: &mut Components<'_>, now: SimTime, node: NodeId) -> Option<NodeAnswer> {
    karpenter::inquiry::node(&mut components.karpenter(), now, node)
}

/// What the removal of some nodes for a reason would come to, whatever stands against it.
pub fn removal(
    components: &mut Components<'_>,
    now: SimTime,
    nodes: &[NodeId],
    reason: DisruptionReason,
) -> Option<Removal> {
    karpenter::inquiry::removal(&mut components.karpenter(), now, nodes, reason)
}

/// What a scheduling pass of Karpenter would do with a pod that waits now; `None` if it would not take the pod on.
pub fn pod(components: &mut Components<'_>, now: SimTime, pod: PodId) -> Option<PodAnswer> {
    karpenter::inquiry::pod(&mut components.karpenter(), now, pod)
}
