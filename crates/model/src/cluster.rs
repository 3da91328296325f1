//! The cluster as it is at one instant: specifications, pods, nodes and workloads, and one journal of what has changed.
//!
//! Whatever somebody derives from the cluster is brought up to date from here: the [`Journal`] numbers every change, a reader
//! remembers the [`Position`] up to which it has read, and what a change names is looked up as it is now. Positions are the only
//! measure of staleness: of everything ([`Cluster::changed`]), of a node's pods ([`Node::pods_changed`](state::Node::pods_changed)).
//!
//! What must not live here: when something happens (`actors`), what ought to happen (the deciding crates), what is told of it afterwards
//! (`world`), what a component believes of the cluster (its own memory).

pub mod derived;
pub mod journal;
mod nodes;
mod pod_table;
mod pods;
pub mod specs;
pub mod state;
mod workloads;

pub use derived::{Derived, Follow};
pub use journal::{Change, Journal, Position};
pub use nodes::NewNode;
pub use specs::{Spec, SpecId, Specs};
pub use state::{DrawnNames, Node, NodeEnd, NodeOrigin, NodePhase, Pod, PodPhase, Workload, WorkloadKind};
pub use workloads::NewWorkload;

use std::collections::VecDeque;

use pod_table::PodTable;

use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::ObjectName;
use crate::domain::{Check, NodeId, PodId, WorkloadId};

/// The state of one cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    specs: Specs,
    pods: PodTable,
    nodes: Vec<Node>,
    /// Nodes that are gone and still as they were, each with the position of the change with which it went, in order.
    gone_nodes: VecDeque<(Position, NodeId)>,
    workloads: Vec<Workload>,
    live_nodes: Vec<NodeId>,
    budgets: Vec<PodDisruptionBudget>,
    counts: Counts,
    journal: Journal,
    check: Check,
}

/// Pods of workloads other than DaemonSets, by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Without a node.
    pub pending: u32,
    /// On a node, not Ready.
    pub starting: u32,
    /// Ready.
    pub ready: u32,
}

impl Cluster {
    /// An empty cluster with room for so many pods.
    pub fn with_capacity(pods: usize) -> Self {
        Self { pods: PodTable::with_capacity(pods), ..Self::default() }
    }

    /// Whether values that are [derived](Derived) from it are made from nothing too at each use, and compared.
    pub const fn check(&self) -> Check {
        self.check
    }

    /// Says whether they are.
    pub fn set_check(&mut self, check: Check) {
        self.check = check;
        self.journal.set_check(check);
    }

    /// What pods ask for, each once.
    pub const fn specs(&self) -> &Specs {
        &self.specs
    }

    /// The pod `id`, which may be gone. Of one that is, where it ran and when is forgotten once the journal does not name it any more.
    pub fn pod(&self, id: PodId) -> &Pod {
        &self.pods[id]
    }

    /// The pod `id`, if it has been created. A pod that is gone is still returned, as by [`Cluster::pod`].
    pub fn get_pod(&self, id: PodId) -> Option<&Pod> {
        (id.index() < self.pods.len()).then(|| &self.pods[id])
    }

    /// How many pods there have been.
    pub const fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// The node `id`, which may be gone. Of one that is, labels and taints are forgotten once the journal does not name it any more.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The node `id`, if it has been created. A node that is gone is still returned, as by [`Cluster::node`].
    pub fn get_node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// The id that the next node will have.
    pub fn next_node(&self) -> NodeId {
        NodeId::from_index(self.nodes.len())
    }

    /// The workload `id`.
    pub fn workload(&self, id: WorkloadId) -> &Workload {
        &self.workloads[id.index()]
    }

    /// All workloads with their ids.
    pub fn workloads(&self) -> impl Iterator<Item = (WorkloadId, &Workload)> {
        self.workloads.iter().enumerate().map(|(index, workload)| (WorkloadId::from_index(index), workload))
    }

    /// Nodes and node claims whose instance is not gone, in order of creation.
    pub fn live_nodes(&self) -> &[NodeId] {
        &self.live_nodes
    }

    /// PodDisruptionBudgets, in order of application.
    pub fn budgets(&self) -> &[PodDisruptionBudget] {
        &self.budgets
    }

    /// Adds a budget, or changes the one of its name.
    pub fn apply_budget(&mut self, budget: PodDisruptionBudget) {
        let same = |pod_disruption_budget: &&mut PodDisruptionBudget| {
            pod_disruption_budget.namespace == budget.namespace && pod_disruption_budget.name == budget.name
        };
        match self.budgets.iter_mut().find(same) {
            Some(this_budget) => *this_budget = budget,
            None => self.budgets.push(budget),
        }
        self.note_change(Change::Budgets);
    }

    /// Removes the budget of this name; whether there was one.
    pub fn remove_budget(&mut self, name: ObjectName) -> bool {
        let before = self.budgets.len();
        self.budgets.retain(|budget| (budget.namespace, budget.name) != (name.namespace, name.name));
        self.note_change(Change::Budgets);
        self.budgets.len() < before
    }

    /// The DaemonSets that there are.
    pub fn daemon_sets(&self) -> impl Iterator<Item = (WorkloadId, &Workload)> {
        self.workloads().filter(|(_, workload)| workload.kind == WorkloadKind::DaemonSet && !workload.deleted)
    }

    /// Pods of workloads other than DaemonSets, by state.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// What has changed, in order.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The position of the last change of anything: while it stays the same, so does the cluster.
    pub const fn changed(&self) -> Position {
        self.journal.end()
    }

    fn note_change(&mut self, change: Change) {
        self.journal.push(change);
        if let Change::Placement(pod) = change
            && let Some(node) = self.pods[pod].node
        {
            self.nodes[node.index()].pods_changed = self.journal.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cluster, NewNode, NewWorkload, NodeOrigin, WorkloadKind};
    use crate::domain::workload::ObjectName;
    use crate::domain::{LabelSelector, SimDuration, SimTime, Symbol, WorkloadId};

    /// A Deployment of one replica.
    fn web(cluster: &mut Cluster) -> WorkloadId {
        cluster.add_workload(NewWorkload {
            name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") },
            kind: WorkloadKind::Deployment,
            selector: LabelSelector::default(),
            template: std::sync::Arc::default(),
            replicas: 1,
        })
    }

    #[test]
    fn node_pods_follow_binding_and_removal() {
        let (mut cluster, at) = (Cluster::default(), SimTime::ZERO);
        let web = web(&mut cluster);
        let node = cluster.add_node(NewNode::called("default-00001", NodeOrigin::NodePool(Symbol::new("default"))), at);
        let mut seen = (cluster.changed(), cluster.node(node).pods_changed);
        let mut next = |cluster: &Cluster| {
            let before = seen;
            seen = (cluster.changed(), cluster.node(node).pods_changed);
            (seen.0 > before.0, seen.1 > before.1)
        };
        let (all, none) = ((true, true), (true, false));
        let pod = cluster.create_pod(web, 0, None, at);
        assert_eq!(next(&cluster), none, "it has no node yet");
        cluster.mark_unschedulable(pod);
        assert_eq!(next(&cluster), none);
        cluster.mark_unschedulable(pod);
        assert_eq!(next(&cluster), (false, false), "that is no news");
        cluster.bind_pod(pod, node);
        assert_eq!(next(&cluster), all);
        cluster.start_pod(pod, at);
        cluster.ready_pod(pod, at);
        assert_eq!(next(&cluster), none);
        cluster.lose_readiness(pod);
        assert_eq!(next(&cluster), none);
        cluster.restart_pod(pod);
        assert_eq!(next(&cluster), none);
        cluster.set_replicas(web, 2);
        assert_eq!(next(&cluster), none);
        cluster.set_ready(node, true);
        assert_eq!(next(&cluster), none);
        cluster.request_pod_deletion(pod, at, SimDuration::from_secs(30));
        assert_eq!(next(&cluster), all);
        cluster.remove_pod(pod);
        assert_eq!(next(&cluster), all);
    }

    #[test]
    fn repeated_pod_deletion_only_shortens_grace_period() {
        let mut cluster = Cluster::default();
        let web = web(&mut cluster);
        let pod = cluster.create_pod(web, 0, None, SimTime::ZERO);
        let second = |seconds| SimTime::ZERO + SimDuration::from_secs(seconds);
        let late = SimDuration::from_millis(300);
        assert!(cluster.request_pod_deletion(pod, second(10) + late, SimDuration::from_secs(300)));
        for (at, grace, ends) in [(20, 400, 310), (30, 60, 70), (40, 1, 11), (50, 1, 11)] {
            assert!(!cluster.request_pod_deletion(pod, second(at) + late, SimDuration::from_secs(grace)));
            assert_eq!(cluster.pod(pod).deletion_ends, Some(second(ends)), "{grace} s of grace at {at} s");
        }
        assert_eq!(cluster.pod(pod).deletion_requested, Some(second(10) + late));
    }

    #[test]
    fn pods_of_equal_templates_have_one_specification() {
        let mut cluster = Cluster::default();
        let mut workload = |name: &str| {
            cluster.add_workload(NewWorkload {
                name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new(name) },
                kind: WorkloadKind::Deployment,
                selector: LabelSelector::default(),
                template: std::sync::Arc::default(),
                replicas: 1,
            })
        };
        let (web, api) = (workload("web"), workload("api"));
        let one = cluster.create_pod(web, 0, None, SimTime::ZERO);
        let other = cluster.create_pod(api, 0, None, SimTime::ZERO);
        assert_eq!(cluster.pod(one).spec_id, cluster.pod(other).spec_id);
        assert!(std::sync::Arc::ptr_eq(&cluster.pod(one).spec, &cluster.pod(other).spec));
    }
}
