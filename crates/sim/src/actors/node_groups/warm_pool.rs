//! Warm pools of node groups: prepared instances, which become nodes when the group grows.
//!
//! Deviation: the node of an instance that returns to the pool leaves the cluster, and the instance comes back as a new node.

use super::NodeGroups;
use crate::actors::event::{GroupEvent, class};
use crate::actors::sim::Sim;
use crate::domain::{NodeId, SimTime};

/// The pools of all groups are there from the start.
pub(super) fn begin(sim: &mut Sim<'_>, node_groups: &mut NodeGroups) {
    for group in 0..sim.setup.policy.manifests.node_groups.len() {
        sim.groups.prepare_warm_pool(group, &mut sim.ec2, SimTime::ZERO);
        tend(sim, node_groups, SimTime::ZERO, group);
    }
}

/// Brings the pool of a group to its size.
pub(super) fn tend(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, group: usize) {
    let next = sim.groups.tend_warm_pool(group, &mut sim.ec2, now);
    if next != node_groups.warm_due[group] {
        node_groups.warm_due[group] = next;
        if let Some(at) = next {
            sim.queue.schedule(at, class::CLOUD, GroupEvent::GroupWarmPool(group as u32));
        }
    }
}

/// An instance of a pool is prepared, or a launch is tried again.
pub(in crate::actors) fn due(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, group: u32) {
    let group = group as usize;
    // Another time has been set since.
    if node_groups.warm_due[group] == Some(now) {
        node_groups.warm_due[group] = None;
        tend(sim, node_groups, now, group);
    }
}

/// The node that the instance of a node was before it waited in a warm pool.
pub(in crate::actors) fn former_node(sim: &Sim<'_>, node: NodeId) -> Option<NodeId> {
    sim.groups.warm_start(sim.machine(node)?.instance)?.former
}
