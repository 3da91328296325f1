//! Which nodes of a dump stand for those to come.

use std::cmp::Reverse;

use crate::actors::{Example, InitialNode};
use crate::cluster::NodeOrigin;
use crate::domain::node::NodeObject;
use crate::domain::{ResourceName, SimTime};
use nodecast_karpenter::instance_types::RealNode;

/// A node of each group and NodePool for each of its types: one that is Ready and stays, with the most kinds of devices (of one that has just come
/// the device plugins may not have registered yet), among those the youngest.
pub(super) fn example_nodes(nodes: &[InitialNode<'_>]) -> Vec<Example> {
    let mut best: Vec<(Example, Rank<'_>)> = Vec::new();
    for this_node in nodes {
        let node = &this_node.found.node;
        let Some(pool) = this_node.pool.filter(|_| stands_for_others(this_node)) else { continue };
        let rank: Rank<'_> = (devices(node), this_node.created, Reverse(node.name.as_str()));
        let offers = RealNode { capacity: node.capacity.clone(), allocatable: node.allocatable.clone() };
        let example = Example { origin: this_node.origin, instance_type: pool.instance_type, offers };
        let same = best
            .iter_mut()
            .find(|(known, _)| (known.origin, known.instance_type) == (this_node.origin, pool.instance_type));
        match same {
            Some(known) if known.1 < rank => *known = (example, rank),
            Some(_) => {}
            None => best.push((example, rank)),
        }
    }
    best.into_iter().map(|(example, _)| example).collect()
}

/// Devices that it offers, when it was made, and its name.
type Rank<'n> = (usize, Option<SimTime>, Reverse<&'n str>);

fn stands_for_others(initial_node: &InitialNode<'_>) -> bool {
    let node = &initial_node.found.node;
    let is_of_many = !matches!(initial_node.origin, NodeOrigin::Fargate(_));
    is_of_many && initial_node.initialized && node.ready && !node.deleting && node.allocatable.cpu_milli() > 0
}

fn devices(node: &NodeObject) -> usize {
    let usual = [ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS, ResourceName::EPHEMERAL_STORAGE];
    node.allocatable.iter().filter(|(name, amount)| *amount > 0 && !usual.contains(name)).count()
}
