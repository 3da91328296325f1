//! Questions to Karpenter in a running simulation.

use super::with_machine;
use crate::actors::context::Context;
use crate::domain::node_pool::DisruptionReason;
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimTime};
use nodecast_karpenter::disruption::Obstacle;
use nodecast_karpenter::machine::inquiry::{NodeAnswer, PodAnswer, Removal};

/// What keeps a pod on a node that drains.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Keeper {
    /// The one PodDisruptionBudget that selects it allows no disruption now.
    Budget(ObjectName),
    /// Several PodDisruptionBudgets select it, and the API server evicts no such pod.
    SeveralBudgets(Vec<ObjectName>),
    /// Its annotation `karpenter.sh/do-not-disrupt`.
    DoNotDisrupt,
    /// It has been told to stop, and its containers run on.
    Stops,
}

/// The pods that keep a node of Karpenter's from being drained, each with what keeps it there. One that waits for its turn is not among
/// them. Nothing if the node does not exist yet.
pub fn kept(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Vec<(PodId, Keeper)> {
    if context.world.get_node(node).is_none() {
        return Vec::new();
    }
    let waits =
        with_machine(context, now, |machine, context| machine.drain_waits_for(now, &context.world, context, node));
    let keeper = |(pod, protected): (PodId, bool)| {
        if !context.world.pod(pod).is_active() {
            return Some((pod, Keeper::Stops));
        }
        if protected {
            return Some((pod, Keeper::DoNotDisrupt));
        }
        match &context.budgets.refused_by(&context.world, pod)[..] {
            [] => None,
            [only] => Some((pod, Keeper::Budget(*only))),
            several => Some((pod, Keeper::SeveralBudgets(several.to_vec()))),
        }
    };
    waits.unwrap_or_default().into_iter().filter_map(keeper).collect()
}

/// The drifted nodes that are not on their way out, each with the first thing that keeps Karpenter from replacing it; nothing where its
/// turn has not come.
pub fn drifted(context: &mut Context<'_>, now: SimTime) -> Vec<(NodeId, Option<Obstacle>)> {
    // Nothing is asked, and no price read, in runs without any.
    if !context.karpenter.machine.as_ref().is_some_and(|machine| machine.some_drifted()) {
        return Vec::new();
    }
    let found = with_machine(context, now, |machine, context| machine.drifted_nodes(now, &context.world, context));
    found.unwrap_or_default()
}

/// What stands against the removal of a node, and what it would come to; `None` if Karpenter does not see the node now or its
/// release has no disruption loop.
pub fn node(context: &mut Context<'_>, now: SimTime, node: NodeId) -> Option<NodeAnswer> {
    context.world.get_node(node)?;
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
