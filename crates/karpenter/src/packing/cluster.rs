//! A cluster compiled once, and the questions asked of it: what if these nodes were gone and these pods had to be placed.

use super::existing::{CompiledNodes, NodeReader};
use super::existing_index::ExistingNodes;
use super::input::{NodeView, PendingPod, ReservedMode, TieBreak};
use super::node_memo::NodeMemo;
use super::templates::Templates;
use super::topology::{ClusterTopology, Rules, TopologyNode};
use super::{PackingSetup, requirement_table::RequirementTable, resource_table::ResourceTable};
use crate::release::NodeLimit;
use nodecast_model::domain::{ResourceName, Resources, SimDuration, Symbol};

/// The nodes of a cluster and their pods, compiled by [`Packer::cluster`](super::Packer::cluster) for that packer. Every
/// question leaves it as it was.
pub struct ClusterView {
    nodes: Vec<NodeFacts>,
    pub(super) existing: ExistingNodes,
    pub(super) topology: ClusterTopology,
    /// What the nodes leave of the limits of each template's pool.
    limits: Vec<Resources>,
}

/// What is kept of a node beside its room.
struct NodeFacts {
    offered: bool,
    pool: Option<Symbol>,
    /// What it has; empty where no pool has limits, so that nobody asks.
    capacity: Resources,
}

/// A question to a [`ClusterView`]. Nodes are named by their position in the views that the cluster was compiled from.
#[derive(Clone, Copy, Debug)]
pub struct WhatIf<'q> {
    /// Nodes that are taken away: no pod goes there, they make no topology domain and use up no limit. Their pods still
    /// count in topologies unless they are `displaced`.
    pub without: &'q [usize],
    /// Bound pods that are among the pods to place and so no longer count where they run: node, and position among the
    /// node's pods.
    pub displaced: &'q [(usize, usize)],
    /// The pods to place.
    pub pods: &'q [PendingPod<'q>],
    /// Treatment of used-up reservations.
    pub reserved: ReservedMode,
    /// Treatment of ties.
    pub ties: TieBreak,
    /// Stop once more claims than this are open: the plan is incomplete then, and known to need more.
    pub most_claims: usize,
    /// Nodes whose pool's `consolidateAfter` has not yet passed since their last pod came or went. From v1.14 on they do
    /// not take the pods at `running`; older releases do not ask.
    pub unsettled: &'q [usize],
    /// Positions in `pods` of those that run on nodes that consolidation wants to remove.
    pub running: &'q [usize],
    /// Nodes to which no pod at `running` may go: with the first that does, the pass is given up, if it is certain by then that
    /// every pod finds some place. Empty for a whole plan.
    pub(crate) unready: &'q [usize],
    /// How long the pass may take, on the processor that was measured; `None` for any time. What is placed by then is in the plan.
    pub time: Option<SimDuration>,
    /// Whether nobody asks what several claims would be, only how many: they stand in the plan's `untold` then.
    pub(crate) only_one: bool,
    /// A pod of `pods` for which the answers of existing nodes are kept in the plan's `verdicts`.
    pub watched: Option<usize>,
}

impl<'q> WhatIf<'q> {
    /// The plain question: where do these pods go.
    pub const fn placing(pods: &'q [PendingPod<'q>], reserved: ReservedMode, ties: TieBreak) -> Self {
        Self {
            without: &[],
            displaced: &[],
            pods,
            reserved,
            ties,
            most_claims: usize::MAX,
            unsettled: &[],
            running: &[],
            unready: &[],
            time: None,
            only_one: false,
            watched: None,
        }
    }

    /// The same question with these nodes taken away.
    #[must_use]
    pub const fn without(self, nodes: &'q [usize]) -> Self {
        Self { without: nodes, ..self }
    }
}

/// The limits of a pool that a pass of the release applies.
fn limits_of(setup: &PackingSetup<'_>, pool: usize) -> Resources {
    let mut limits = setup.pools[pool].pool.limits.clone();
    if setup.behaviour().node_limit != NodeLimit::InPasses {
        limits.remove(ResourceName::NODES);
    }
    limits
}

impl ClusterView {
    /// Compiles the nodes.
    pub(super) fn new(
        setup: &PackingSetup<'_>,
        templates: &Templates,
        table: &mut RequirementTable,
        resources: &mut ResourceTable,
        rules: &mut Rules,
        memo: &mut NodeMemo,
        views: &[NodeView<'_>],
    ) -> Self {
        let mut reader =
            NodeReader { setup, daemons: &templates.daemons, table: &mut *table, resources, rules: &mut *rules, memo };
        let CompiledNodes { existing, nodes, pods } = reader.read(views);
        let limited = templates.list.iter().any(|template| !setup.pools[template.pool].pool.limits.is_empty());
        let facts = |(view, node): (&NodeView<'_>, &TopologyNode)| NodeFacts {
            offered: view.offered,
            pool: node.fixed.pool,
            capacity: if limited { view.capacity.clone() } else { Resources::new() },
        };
        let facts = views.iter().zip(&nodes).map(facts).collect();
        let topology = ClusterTopology::new(nodes, pods, rules, setup, &templates.spanning, table);
        let mut cluster = Self { nodes: facts, existing, topology, limits: Vec::new() };
        for template in &templates.list {
            cluster.limits.push(limits_of(setup, template.pool));
        }
        let mut limits = std::mem::take(&mut cluster.limits);
        for node in (0..views.len()).filter(|&node| views[node].offered) {
            cluster.charge(&mut limits, node, setup, templates, i64::saturating_sub);
        }
        cluster.limits = limits;
        cluster
    }

    /// Adds what a node has to the limits of its pool, or takes it off; each node counts as one of `nodes`.
    fn charge(
        &self,
        limits: &mut [Resources],
        node: usize,
        setup: &PackingSetup<'_>,
        templates: &Templates,
        how: fn(i64, i64) -> i64,
    ) {
        let facts = &self.nodes[node];
        let Some(name) = facts.pool else { return };
        for (template, left) in templates.list.iter().zip(limits) {
            let pool = setup.pools[template.pool].pool;
            if pool.name != name {
                continue;
            }
            for (name, _) in limits_of(setup, template.pool).iter() {
                let number = if name == ResourceName::NODES { 1 } else { facts.capacity.get(name) };
                left.set(name, how(left.get(name), number));
            }
        }
    }

    /// What the nodes that stay leave of the limits of each template's pool.
    pub(super) fn limits_without(
        &self,
        without: &[usize],
        setup: &PackingSetup<'_>,
        templates: &Templates,
    ) -> Vec<Resources> {
        let mut limits = self.limits.clone();
        for &node in without.iter().filter(|&&node| self.nodes[node].offered) {
            self.charge(&mut limits, node, setup, templates, i64::saturating_add);
        }
        limits
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}
