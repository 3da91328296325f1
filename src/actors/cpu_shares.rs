//! The CPU of nodes, shared among the pods under load that run there.
//!
//! A node is looked at only while it could be short: of every load a level is kept that its replicas do not exceed, and nodes
//! that have enough at these levels need no second look. A level that is passed rises by a quarter more, so looks are few.
//!
//! Deviation: pods that serve no requests are taken to use no CPU, and workers of queues are not slowed down. Where some nodes
//! of a workload are short and others are not, its replicas together get what each node has left for them: a balancer that
//! sends requests to whoever has the fewest evens that out. While a rollout changes CPU requests or limits, each of the workload's
//! Ready pods is taken to want the mean of all, and those on one node to weigh the same.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Context;
use super::load_loop;
use crate::domain::{NodeId, PodId, SimTime};
use crate::load::shares::{Contenders, shares};

/// What is known of nodes and loads.
#[derive(Debug, Default)]
pub(super) struct CpuShares {
    /// Ready pods under load of each node, by load.
    nodes: BTreeMap<NodeId, BTreeMap<usize, Pods>>,
    loads: Vec<Demand>,
    /// Nodes that might be short at the levels of their loads.
    at_risk: BTreeSet<NodeId>,
    /// Nodes whose pods have changed since they were looked at.
    changed: BTreeSet<NodeId>,
    /// What a pod of each load gets on nodes that are short, in thousandths.
    short: BTreeMap<NodeId, BTreeMap<usize, i64>>,
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

    /// Whether the node could be short at the levels of its loads.
    fn assess(&mut self, node: NodeId, capacity: i64) {
        let pods = self.nodes.get(&node);
        let level = |load: usize| self.loads.get(load).map_or(0, |demand| demand.level);
        let most: i64 = pods.into_iter().flatten().map(|(&load, pods)| pods.count * level(load)).sum();
        if most > capacity {
            self.at_risk.insert(node);
        } else {
            self.at_risk.remove(&node);
        }
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
    let pods = own.nodes.entry(node).or_default();
    let left = pods.entry(load).or_default();
    left.count += change;
    left.requested += change * requested;
    if left.count <= 0 {
        pods.remove(&load);
        own.demand(load).nodes.remove(&node);
    } else {
        own.demand(load).nodes.insert(node);
    }
    if own.nodes.get(&node).is_some_and(BTreeMap::is_empty) {
        own.nodes.remove(&node);
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
    let nodes = if passed { demand.nodes.clone() } else { BTreeSet::new() };
    for &node in nodes.iter().chain(&look) {
        let capacity = context.world.node(node).allocatable.cpu_milli();
        context.cpu_shares.assess(node, capacity);
    }
    if !same || passed {
        let own = &context.cpu_shares;
        look.extend(own.at_risk.iter().chain(own.short.keys()).filter(|node| own.loads[load].nodes.contains(node)));
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
    let pods = own.nodes.get(&node).cloned().unwrap_or_default();
    let used: i64 = pods.iter().map(|(&load, pods)| pods.count * own.wanted(load)).sum();
    let mut given = BTreeMap::new();
    if used > capacity && own.at_risk.contains(&node) {
        let contenders = |(&load, &Pods { count, requested }): (&usize, &Pods)| Contenders {
            count,
            wanted_milli: own.wanted(load),
            weight: (requested / count.max(1)).max(2),
        };
        let kinds: Vec<Contenders> = pods.iter().map(contenders).collect();
        given = pods.keys().copied().zip(shares(capacity, &kinds)).collect();
    }
    let before = if given.is_empty() {
        context.cpu_shares.short.remove(&node)
    } else {
        context.cpu_shares.short.insert(node, given.clone())
    }
    .unwrap_or_default();
    if before != given {
        affected.extend(before.keys().chain(given.keys()));
    }
}

/// Tells the model what its replicas may use on average, if some of them are short.
fn tell(context: &mut Context<'_>, now: SimTime, load: usize) {
    let own = &context.cpu_shares;
    let nodes = &own.loads[load].nodes;
    let mut available = None;
    if nodes.iter().any(|node| own.short.contains_key(node)) {
        let (mut sum, mut replicas) = (0_i64, 0_i64);
        for &node in nodes {
            let pods = own.nodes.get(&node);
            let count = pods.and_then(|pods| pods.get(&load)).map_or(0, |pods| pods.count);
            let used: i64 = pods.into_iter().flatten().map(|(&load, pods)| pods.count * own.wanted(load)).sum();
            let spare = (context.world.node(node).allocatable.cpu_milli() - used).max(0);
            let each = own.short.get(&node).and_then(|given| given.get(&load)).copied();
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
