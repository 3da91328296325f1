//! EKS node auto repair: a node of a managed group that stays not Ready is replaced.
//!
//! Source: EKS user guide, `node-repair.adoc` (dbc0b72, 2026). Only the condition Ready is simulated; the others need the node monitoring agent.
//! A kubelet that does not answer stops no pod, so nothing drains. Assumption: while repair is stopped, EKS checks again every minute.

use super::drain;
use super::{NodeGroups, member};
use crate::actors::event::{GroupEvent, class};
use crate::actors::sim::Sim;
use crate::cloud::autoscaling::EndReason;
use crate::cluster::NodePhase;
use crate::domain::{NodeId, SimDuration, SimTime};
use crate::world::record::{NodeEnd, NodeOrigin};

/// Between two checks of a node whose repair has to wait.
const AGAIN: SimDuration = SimDuration::from_secs(60);

/// A node is no longer Ready.
pub(in crate::actors) fn node_lost(sim: &mut Sim<'_>, node_groups: &NodeGroups, node: NodeId) {
    let Some((_, group)) = member(sim, node) else { return };
    let wait = node_groups.stated[group].repair.as_ref().and_then(|repair| repair.wait);
    if let Some(wait) = wait {
        sim.queue.schedule_in(wait, class::CLOUD, GroupEvent::GroupRepair(node));
    }
}

/// A node has not been Ready for as long as EKS waits.
pub(in crate::actors) fn due(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    let Some((instance, group)) = member(sim, node) else { return };
    if sim.world.node(node).ready || sim.groups.is_ending(instance) {
        return;
    }
    if !repairs_now(sim, node_groups, group) {
        sim.queue.schedule_in(AGAIN, class::CLOUD, GroupEvent::GroupRepair(node));
        return;
    }
    sim.world.disrupt_node(node, NodeEnd::Unhealthy, now, "EKS repairs it: it has not been Ready for too long");
    sim.groups.find_unhealthy(instance, now);
    drain::end(sim, node_groups, now, instance, EndReason::Unhealthy);
    node_groups.wake(sim, now, group);
}

/// Whether EKS repairs a node of the group at present: not while too many nodes are unhealthy, or repaired already.
fn repairs_now(sim: &Sim<'_>, node_groups: &NodeGroups, group: usize) -> bool {
    let Some(repair) = &node_groups.stated[group].repair else { return false };
    let origin = NodeOrigin::NodeGroup(sim.groups.spec(group).name);
    let record = &sim.world.record().nodes;
    let (mut size, mut unhealthy, mut repaired) = (0, 0, 0);
    for &node in sim.world.live_nodes() {
        let (state, facts) = (sim.world.node(node), &record[node.index()]);
        if state.origin != origin || state.phase > NodePhase::Registered && facts.end != Some(NodeEnd::Unhealthy) {
            continue;
        }
        let is_lost = facts.ready.is_some() && !state.ready;
        size += 1;
        unhealthy += u32::from(is_lost);
        repaired += u32::from(facts.end == Some(NodeEnd::Unhealthy));
    }
    let parallel = repair.max_parallel.map_or(u32::MAX, |most| most.nodes(unhealthy));
    !repair.stops(unhealthy, size) && repaired < parallel
}
