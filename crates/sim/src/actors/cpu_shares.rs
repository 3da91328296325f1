//! The CPU of nodes, shared among the pods under load that run there.
//!
//! A node is looked at only while it could be short: of every load a level is kept that its replicas do not exceed, and nodes
//! that have enough at these levels need no second look. A level that is passed rises by a quarter more, so looks are few.
//!
//! Deviation: pods that serve no requests use no CPU, and workers of queues do not slow down. One container of a pod
//! does all the work of a load, and its own CPU limit throttles it. It is the container in
//! `kubectl.kubernetes.io/default-container`, or else the first that is not a proxy known by its name. The others use
//! no CPU. If only some nodes of a workload are short of CPU, its replicas together get the CPU that each node has
//! left for them: a balancer that prefers the replica with the fewest requests has the same effect. While a rollout
//! changes CPU requests or limits, each Ready pod of the workload needs the mean of all, and the pods on one node
//! have equal weight.

use super::credits::Accounts;
use super::load_loop::Loads;
use super::sim::Sim;
use crate::domain::{Check, NodeId, PodId, SimTime};
use crate::load::shares::{Contenders, shares};
use crate::world::World;

/// What is known of nodes and loads.
#[derive(Debug, Default)]
pub(super) struct CpuShares {
    nodes: Vec<Node>,
    loads: Vec<Demand>,
    /// Nodes whose pods have changed since they were looked at.
    changed: Vec<NodeId>,
    /// Accounts of the nodes whose CPU works on credits.
    pub(super) credits: Accounts,
}

/// What is known of one node.
#[derive(Debug, Default)]
struct Node {
    /// Its Ready pods under load, in the order of the loads.
    pods: Vec<(usize, Pods)>,
    /// CPU that these want together, in thousandths.
    used: i64,
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
    /// Nodes with Ready pods of it, in order.
    nodes: Vec<On>,
    /// What the model was last told.
    told: Option<i64>,
}

/// The Ready pods of a load on one node.
#[derive(Clone, Copy, Debug)]
struct On {
    node: NodeId,
    pods: i64,
    /// What each of them gets if the node is short, in thousandths.
    short: Option<i64>,
}

impl Demand {
    /// What each of its pods on `node` gets if that is short; there are some.
    fn set_short(&mut self, node: NodeId, short: Option<i64>) {
        if let Ok(place) = self.nodes.binary_search_by_key(&node, |node| node.node) {
            self.nodes[place].short = short;
        }
    }

    /// Its replicas want so much each from now on; whether that is more or less than before, and whether it has passed the
    /// level, which is then another.
    fn set_wanted(&mut self, wanted: i64) -> (bool, bool) {
        let differs = self.wanted != wanted;
        self.wanted = wanted;
        let passed = wanted > self.level || wanted < self.level / 4;
        if passed {
            self.level = wanted + wanted / 4 + 1;
        }
        (differs, passed)
    }
}

impl Node {
    fn used_anew(&self, loads: &[Demand]) -> i64 {
        self.pods.iter().map(|&(load, pods)| pods.count * loads[load].wanted).sum()
    }

    /// Looks whether the node could be short at the levels of its loads.
    fn assess(&mut self, loads: &[Demand], capacity: i64) {
        self.at_risk = self.pods.iter().map(|&(load, pods)| pods.count * loads[load].level).sum::<i64>() > capacity;
    }

    /// Shares the CPU of the node, which is `node`, if it is short; adds the loads for which that changed something.
    fn share(&mut self, node: NodeId, loads: &mut [Demand], capacity: i64, affected: &mut Vec<usize>, check: Check) {
        if check.compares() {
            let (kept, anew) = (self.used, self.used_anew(loads));
            check.hold(kept == anew, || format!("loads on a node were known to want {kept} milli-CPU and want {anew}"));
        }
        let mut given = Vec::new();
        if self.at_risk && self.used > capacity {
            let contenders = |&(load, Pods { count, requested }): &(usize, Pods)| Contenders {
                count,
                wanted_milli: loads[load].wanted,
                weight: (requested / count.max(1)).max(2),
            };
            let kinds: Vec<Contenders> = self.pods.iter().map(contenders).collect();
            given = self.pods.iter().map(|(load, _)| *load).zip(shares(capacity, &kinds)).collect();
        }
        // Nobody is told to get less here, and nobody was.
        if given.is_empty() && self.short.is_empty() {
            return;
        }
        // Also where all get what they got: pods may have gone and come in between.
        for (place, &(load, _)) in self.pods.iter().enumerate() {
            loads[load].set_short(node, given.get(place).map(|pair| pair.1));
        }
        if self.short != given {
            affected.extend(self.short.iter().chain(&given).map(|(load, _)| *load));
            self.short = given;
        }
    }
}

impl CpuShares {
    fn demand(&mut self, load: usize) -> &mut Demand {
        if self.loads.len() <= load {
            self.loads.resize_with(load + 1, Demand::default);
        }
        &mut self.loads[load]
    }

    fn node(&mut self, node: NodeId) -> &mut Node {
        if self.nodes.len() <= node.index() {
            self.nodes.resize_with(node.index() + 1, Node::default);
        }
        &mut self.nodes[node.index()]
    }

    /// One pod more of `load` on `node`, or one fewer, that requests so much.
    fn count(&mut self, (load, node): (usize, NodeId), change: i64, requested: i64) {
        let on = &mut self.demand(load).nodes;
        let place = on.binary_search_by_key(&node, |on| on.node).unwrap_or_else(|place| {
            on.insert(place, On { node, pods: 0, short: None });
            place
        });
        on[place].pods += change;
        debug_assert!(on[place].pods >= 0, "more pods of load {load} left {node:?} than were there");
        if on[place].pods <= 0 {
            on.remove(place);
        }
        let pods = &mut self.node(node).pods;
        let place = pods.binary_search_by_key(&load, |(item, _)| *item).unwrap_or_else(|place| {
            pods.insert(place, (load, Pods::default()));
            place
        });
        let left = &mut pods[place].1;
        left.count += change;
        left.requested += change * requested;
        if left.count <= 0 {
            pods.remove(place);
            if pods.is_empty() {
                // Most nodes that there have been are gone.
                pods.shrink_to_fit();
            }
        }
        let this_node = &mut self.nodes[node.index()];
        this_node.used = this_node.used_anew(&self.loads);
        self.changed.push(node);
    }

    /// The nodes on which what is wanted may be another once this load is looked at, in order.
    fn touched(&mut self, load: usize) -> Vec<NodeId> {
        let of_load = self.demand(load).nodes.iter().map(|node| node.node).collect::<Vec<_>>();
        let mut touched: Vec<NodeId> = self.changed.iter().copied().chain(of_load).collect();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// See [`Demand::set_wanted`].
    fn set_wanted(&mut self, load: usize, wanted: i64) -> (bool, bool) {
        let demand = self.demand(load);
        let more = wanted - demand.wanted;
        let changes = demand.set_wanted(wanted);
        if more != 0 {
            for &On { node, pods, .. } in &self.loads[load].nodes {
                self.nodes[node.index()].used += more * pods;
            }
        }
        changes
    }

    /// A pod takes requests from now on.
    pub(super) fn pod_ready(&mut self, sim: &Sim<'_>, loads: &mut Loads, pod: PodId) {
        self.count_pod(sim, loads, pod, 1);
    }

    /// A pod takes no requests any more.
    pub(super) fn pod_unready(&mut self, sim: &Sim<'_>, loads: &mut Loads, pod: PodId) {
        self.count_pod(sim, loads, pod, -1);
    }

    fn count_pod(&mut self, sim: &Sim<'_>, loads: &mut Loads, pod: PodId, change: i64) {
        let state = sim.world.pod(pod);
        let Some(node) = state.node else { return };
        let Some(&load) = loads.of.indices(state.workload).first() else { return };
        let (limit, requested) = (state.spec.working_cpu_limit_milli(), state.requests.cpu_milli());
        let replicas = &mut loads.all[load].replicas;
        if change > 0 {
            replicas.add(limit)
        } else {
            replicas.remove(limit)
        }
        self.count((load, node), change, requested);
    }

    /// The requests to a workload or its replicas have changed: nodes that could be short are looked at.
    pub(super) fn demand_changed(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, load: usize) {
        let this_load = &loads.all[load];
        let ready = this_load.id.map_or(0, |id| sim.world.workload(id).ready);
        let wanted = if ready == 0 { 0 } else { this_load.model.cpu_wanted_micro() / i64::from(ready) / 1_000 };
        let touched = if self.credits.is_empty() { Vec::new() } else { self.touched(load) };
        for load in self.look(sim, load, wanted) {
            self.tell(sim, loads, now, load);
        }
        self.use_changed(sim, loads, now, &touched);
    }

    /// CPU that the pods under load on a node want together, in thousandths.
    pub(super) fn wanted_on(&self, node: NodeId) -> i64 {
        self.nodes.get(node.index()).map_or(0, |node| node.used)
    }

    /// The CPU that a node has for pods has changed.
    pub(super) fn capacity_changed(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, node: NodeId) {
        let check = sim.setup.check;
        let capacity = capacity(&sim.world, &self.credits, node);
        let Self { nodes, loads: demands, .. } = self;
        let Some(state) = nodes.get_mut(node.index()) else { return };
        let mut affected = Vec::new();
        state.assess(demands, capacity);
        state.share(node, demands, capacity, &mut affected, check);
        affected.sort_unstable();
        affected.dedup();
        for load in affected {
            self.tell(sim, loads, now, load);
        }
    }

    /// Looks at the nodes that could be short now that each replica of a load wants so much; the loads, in order, whose replicas
    /// get more there than before, or less.
    fn look(&mut self, sim: &Sim<'_>, load: usize, wanted: i64) -> Vec<usize> {
        let (check, world) = (sim.setup.check, &sim.world);
        let (differs, passed) = self.set_wanted(load, wanted);
        let Self { nodes, loads, changed, credits } = self;
        let capacity = |node: NodeId| capacity(world, credits, node);
        changed.sort_unstable();
        changed.dedup();
        for &node in &*changed {
            nodes[node.index()].assess(loads, capacity(node));
        }
        if passed {
            for &On { node, .. } in &loads[load].nodes {
                nodes[node.index()].assess(loads, capacity(node));
            }
        }
        let mut affected = Vec::new();
        for &node in &*changed {
            nodes[node.index()].share(node, loads, capacity(node), &mut affected, check);
        }
        if differs || passed {
            for place in 0..loads[load].nodes.len() {
                let node = loads[load].nodes[place].node;
                let this_node = &mut nodes[node.index()];
                if (this_node.at_risk || !this_node.short.is_empty()) && changed.binary_search(&node).is_err() {
                    this_node.share(node, loads, capacity(node), &mut affected, check);
                }
            }
        }
        changed.clear();
        affected.sort_unstable();
        affected.dedup();
        affected
    }

    /// Tells the model what its replicas may use on average, if some of them are short.
    fn tell(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, load: usize) {
        let Self { nodes, loads: demands, credits, .. } = &*self;
        let Demand { wanted, nodes: on, told, .. } = &demands[load];
        if sim.setup.check.compares() {
            let anew =
                |on: &On| nodes[on.node.index()].short.iter().find(|(other, _)| *other == load).map(|pair| pair.1);
            let wrong = on.iter().find(|item| item.short != anew(item));
            sim.setup.check.hold(wrong.is_none(), || format!("a pod was known to get CPU as in {wrong:?}"));
        }
        let mut available = None;
        if on.iter().any(|item| item.short.is_some()) {
            let (mut sum, mut replicas) = (0_i64, 0_i64);
            for &On { node, pods, short } in on {
                let spare = || (capacity(&sim.world, credits, node) - nodes[node.index()].used).max(0);
                sum += short.map_or_else(|| wanted * pods + spare(), |each| each * pods);
                replicas += pods;
            }
            available = (replicas > 0).then(|| (sum / replicas).max(1));
        }
        if *told != available {
            self.loads[load].told = available;
            loads.set_cpu_available(sim, now, load, available);
        }
    }
}

/// CPU that a node has for pods, in thousandths: less than it offers where its credits are spent.
pub(super) fn capacity(world: &World, credits: &Accounts, node: NodeId) -> i64 {
    let offered = world.node(node).allocatable.cpu_milli();
    credits.limit(node).map_or(offered, |limit| limit.min(offered))
}
