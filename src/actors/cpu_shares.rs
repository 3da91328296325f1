//! The CPU of nodes, shared among the pods under load that run there.
//!
//! A node is looked at only while it could be short: of every load a level is kept that its replicas do not exceed, and nodes
//! that have enough at these levels need no second look. A level that is passed rises by a quarter more, so looks are few.
//!
//! Deviation: pods that serve no requests are taken to use no CPU, and workers of queues are not slowed down. Where some nodes
//! of a workload are short and others are not, its replicas together get what each node has left for them: a balancer that
//! sends requests to whoever has the fewest evens that out. While a rollout changes CPU requests or limits, each of the workload's
//! Ready pods is taken to want the mean of all, and those on one node to weigh the same.

use std::collections::BTreeSet;

use super::context::Context;
use super::load_loop;
use crate::domain::{NodeId, PodId, SimTime};
use crate::load::shares::{Contenders, shares};

/// What is known of nodes and loads.
#[derive(Debug, Default)]
pub(super) struct CpuShares {
    nodes: Vec<Node>,
    loads: Vec<Demand>,
    /// Nodes whose pods have changed since they were looked at.
    changed: BTreeSet<NodeId>,
}

/// What is known of one node.
#[derive(Debug, Default)]
struct Node {
    /// Its Ready pods under load, in the order of the loads.
    pods: Vec<(usize, Pods)>,
    /// Whether it might be short at the levels of these.
    at_risk: bool,
    /// What a pod of each load gets if it is short, in thousandths.
    short: Vec<(usize, i64)>,
}

/// The Ready pods of a load on one node.
#[derive(Clone, Copy, Debug, Default)]
struct Pods {
    count: i64,
    /// CPU that they request together, in thousandths.
    requested: i64,
}

/// What the replicas of a load want.
#[derive(Clone, Debug, Default)]
struct Demand {
    /// CPU that each would use on a node with enough of it, in thousandths.
    wanted: i64,
    /// A level that `wanted` does not exceed.
    level: i64,
    /// Nodes with Ready pods of it.
    nodes: BTreeSet<NodeId>,
    /// What the model was last told.
    told: Option<i64>,
}

impl CpuShares {
    fn demand(&mut self, load: usize) -> &mut Demand {
        if self.loads.len() <= load {
            self.loads.resize_with(load + 1, Demand::default);
        }
        &mut self.loads[load]
    }

    fn wanted(&self, load: usize) -> i64 {
        self.loads.get(load).map_or(0, |demand| demand.wanted)
    }

    fn node(&mut self, node: NodeId) -> &mut Node {
        if self.nodes.len() <= node.index() {
            self.nodes.resize_with(node.index() + 1, Node::default);
        }
        &mut self.nodes[node.index()]
    }

    /// CPU that the pods of a node want together, in thousandths.
    fn used(&self, node: NodeId) -> i64 {
        self.nodes[node.index()].pods.iter().map(|&(load, pods)| pods.count * self.wanted(load)).sum()
    }

    /// Looks whether the node could be short at the levels of its loads.
    fn assess(&mut self, node: NodeId, capacity: i64) {
        let level = |load: usize| self.loads.get(load).map_or(0, |demand| demand.level);
        let own = &mut self.nodes[node.index()];
        own.at_risk = own.pods.iter().map(|&(load, pods)| pods.count * level(load)).sum::<i64>() > capacity;
    }
}

/// A pod takes requests from now on.
pub(super) fn pod_ready(context: &mut Context<'_>, pod: PodId) {
    count(context, pod, 1);
}

/// A pod takes no requests any more.
pub(super) fn pod_unready(context: &mut Context<'_>, pod: PodId) {
    count(context, pod, -1);
}

fn count(context: &mut Context<'_>, pod: PodId, change: i64) {
    let state = context.world.pod(pod);
    let Some(node) = state.node else { return };
    let Some(load) = context.loads.iter().position(|load| load.id == Some(state.workload)) else { return };
    let (limit, requested) = (state.spec.cpu_limit_milli(), state.requests.cpu_milli());
    let replicas = &mut context.loads[load].replicas;
    if change > 0 {
        replicas.add(limit)
    } else {
        replicas.remove(limit)
    }
    let own = &mut context.cpu_shares;
    let pods = &mut own.node(node).pods;
    let place = pods.binary_search_by_key(&load, |(load, _)| *load).unwrap_or_else(|place| {
        pods.insert(place, (load, Pods::default()));
        place
    });
    let left = &mut pods[place].1;
    left.count += change;
    left.requested += change * requested;
    if left.count <= 0 {
        pods.remove(place);
        own.demand(load).nodes.remove(&node);
    } else {
        own.demand(load).nodes.insert(node);
    }
    own.changed.insert(node);
}

/// The requests to a workload or its replicas have changed: nodes that could be short are looked at.
pub(super) fn demand_changed(context: &mut Context<'_>, now: SimTime, load: usize) {
    let own = &context.loads[load];
    let ready = own.id.map_or(0, |id| context.world.workload(id).ready);
    let wanted = if ready == 0 { 0 } else { own.model.cpu_wanted_micro() / i64::from(ready) / 1_000 };
    let mut look = std::mem::take(&mut context.cpu_shares.changed);
    let demand = context.cpu_shares.demand(load);
    let same = demand.wanted == wanted;
    demand.wanted = wanted;
    let passed = wanted > demand.level || wanted < demand.level / 4;
    if passed {
        demand.level = wanted + wanted / 4 + 1;
    }
    let of_load = demand.nodes.iter().copied();
    let nodes: Vec<NodeId> =
        if passed { of_load.chain(look.iter().copied()).collect() } else { look.iter().copied().collect() };
    for node in nodes {
        let capacity = context.world.node(node).allocatable.cpu_milli();
        context.cpu_shares.assess(node, capacity);
    }
    if !same || passed {
        let own = &context.cpu_shares;
        let could_be_short = |node: &&NodeId| {
            let node = &own.nodes[node.index()];
            node.at_risk || !node.short.is_empty()
        };
        look.extend(own.loads[load].nodes.iter().filter(could_be_short));
    }
    let mut affected: BTreeSet<usize> = BTreeSet::new();
    for node in look {
        share(context, node, &mut affected);
    }
    for load in affected {
        tell(context, now, load);
    }
}

/// Shares the CPU of one node if it is short; adds the loads for which that changed something.
fn share(context: &mut Context<'_>, node: NodeId, affected: &mut BTreeSet<usize>) {
    let capacity = context.world.node(node).allocatable.cpu_milli();
    let own = &context.cpu_shares;
    let Node { pods, at_risk, .. } = &own.nodes[node.index()];
    let mut given = Vec::new();
    if *at_risk && own.used(node) > capacity {
        let contenders = |&(load, Pods { count, requested }): &(usize, Pods)| Contenders {
            count,
            wanted_milli: own.wanted(load),
            weight: (requested / count.max(1)).max(2),
        };
        let kinds: Vec<Contenders> = pods.iter().map(contenders).collect();
        given = pods.iter().map(|(load, _)| *load).zip(shares(capacity, &kinds)).collect();
    }
    let short = &mut context.cpu_shares.nodes[node.index()].short;
    if *short != given {
        affected.extend(short.iter().chain(&given).map(|(load, _)| *load));
        *short = given;
    }
}

/// Tells the model what its replicas may use on average, if some of them are short.
fn tell(context: &mut Context<'_>, now: SimTime, load: usize) {
    let own = &context.cpu_shares;
    let nodes = &own.loads[load].nodes;
    let mut available = None;
    if nodes.iter().any(|node| !own.nodes[node.index()].short.is_empty()) {
        let (mut sum, mut replicas) = (0_i64, 0_i64);
        for &node in nodes {
            let Node { pods, short, .. } = &own.nodes[node.index()];
            let count = pods.iter().find(|(other, _)| *other == load).map_or(0, |(_, pods)| pods.count);
            let spare = (context.world.node(node).allocatable.cpu_milli() - own.used(node)).max(0);
            let each = short.iter().find(|(other, _)| *other == load).map(|(_, each)| *each);
            sum += each.map_or(own.wanted(load) * count + spare, |each| each * count);
            replicas += count;
        }
        available = (replicas > 0).then(|| (sum / replicas).max(1));
    }
    if context.cpu_shares.loads[load].told != available {
        context.cpu_shares.loads[load].told = available;
        load_loop::set_cpu_available(context, now, load, available);
    }
}
