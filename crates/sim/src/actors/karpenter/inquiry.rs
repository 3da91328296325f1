//! Questions to Karpenter in a running simulation.

use super::{Running, with_machine};
use crate::domain::node_pool::DisruptionReason;
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimTime};
use nodecast_karpenter::disruption::Obstacle;
use nodecast_karpenter::machine::inquiry::{NodeAnswer, PodAnswer, Removal};

/// What keeps a pod on a node that drains.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DrainBlocker {
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
pub(in crate::actors) fn kept(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId) -> Vec<(PodId, DrainBlocker)> {
    if parts.sim.world.get_node(node).is_none() {
        return Vec::new();
    }
    let waits = with_machine(parts, now, |machine, parts| machine.drain_waits_for(now, &parts.sim.world, parts, node));
    let keeper = |(pod, protected): (PodId, bool)| {
        if !parts.sim.world.pod(pod).is_active() {
            return Some((pod, DrainBlocker::Stops));
        }
        if protected {
            return Some((pod, DrainBlocker::DoNotDisrupt));
        }
        match &parts.sim.budgets.refused_by(&parts.sim.world, pod)[..] {
            [] => None,
            [only] => Some((pod, DrainBlocker::Budget(*only))),
            several => Some((pod, DrainBlocker::SeveralBudgets(several.to_vec()))),
        }
    };
    waits.unwrap_or_default().into_iter().filter_map(keeper).collect()
}

/// The drifted nodes that are not on their way out, each with the first thing that keeps Karpenter from replacing it; nothing where its
/// turn has not come.
pub(in crate::actors) fn drifted(parts: &mut Running<'_, '_>, now: SimTime) -> Vec<(NodeId, Option<Obstacle>)> {
    // Nothing is asked, and no price read, in runs without any.
    if !parts.driver.machine.as_ref().is_some_and(|machine| machine.some_drifted()) {
        return Vec::new();
    }
    let found = with_machine(parts, now, |machine, parts| machine.drifted_nodes(now, &parts.sim.world, parts));
    found.unwrap_or_default()
}

/// What stands against the removal of a node, and what it would come to; `None` if Karpenter does not see the node now or its
/// release has no disruption loop.
pub(in crate::actors) fn node(parts: &mut Running<'_, '_>, now: SimTime, node: NodeId) -> Option<NodeAnswer> {
    parts.sim.world.get_node(node)?;
    with_machine(parts, now, |machine, parts| machine.about_node(now, &parts.sim.world, parts, node))?
}

/// What the removal of some nodes for a reason would come to, whatever stands against it.
pub(in crate::actors) fn removal(
    parts: &mut Running<'_, '_>,
    now: SimTime,
    nodes: &[NodeId],
    reason: DisruptionReason,
) -> Option<Removal> {
    with_machine(parts, now, |machine, parts| machine.about_removal(now, &parts.sim.world, parts, nodes, reason))?
}

/// What a scheduling pass of Karpenter would do with a pod that waits now; `None` if it would not take the pod on.
pub(in crate::actors) fn pod(parts: &mut Running<'_, '_>, now: SimTime, pod: PodId) -> Option<PodAnswer> {
    with_machine(parts, now, |machine, parts| machine.about_pod(now, &parts.sim.world, parts, pod))?
}
