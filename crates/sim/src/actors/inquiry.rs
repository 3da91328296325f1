//! What people ask of a running simulation. Each answer comes from the code that decides; the run goes on as if nobody had
//! asked, if it goes on at all.

pub use super::cluster_autoscaler::inquiry::{
    GroupAnswer, OptionAnswer, SCALE_DOWN_DISABLED, ScaleDownAnswer, ScaleUpAnswer, Standing,
};
pub use super::karpenter::inquiry::{Keeper, drifted, kept, node, pod, removal};
pub use super::vertical::inquiry::{ContainerAnswer, VerticalAnswer, vertical};
pub use nodecast_karpenter::machine::inquiry::{Destination, Launch, NodeAnswer, PodAnswer, Removal};

use super::cluster_autoscaler::inquiry;
use super::context::Context;
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimTime, Symbol};
use nodecast_scheduler::Evaluation;

/// What the scheduler would say of every node for a pod that waits now; `None` if the pod does not wait, or does not exist yet.
pub fn kube_scheduler(context: &Context<'_>, pod: PodId) -> Option<Evaluation> {
    context.scheduler.inquire(&context.sim, pod)
}

/// What a scale-up would do now, for a pod that waits if one is given; `None` if the Cluster Autoscaler does not run, or does not
/// see the pod wait.
pub fn scale_up(context: &mut Context<'_>, now: SimTime, pod: Option<PodId>) -> Option<ScaleUpAnswer> {
    let (sim, autoscaler, lists) = context.cluster_autoscaler();
    inquiry::scale_up(sim, autoscaler, lists, now, pod)
}

/// Why a node stays, or that it goes now; `None` if the Cluster Autoscaler does not run or does not see the node.
pub fn scale_down(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Option<ScaleDownAnswer> {
    let (sim, autoscaler, lists) = context.cluster_autoscaler();
    inquiry::scale_down(sim, autoscaler, lists, now, node)
}

/// Deployments whose rollouts stand still, past their deadlines, with the claim whose volume one of the new pods waits for.
pub fn stalled_rollouts(context: &Context<'_>) -> Vec<(ObjectName, Option<Symbol>)> {
    context.controllers.stalled(&context.sim, &context.volumes)
}
