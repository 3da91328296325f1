//! kube-scheduler: which node a pod goes to, why none takes it, and whom it may evict.
//!
//! The caller keeps a [`ClusterView`] up to date (nodes, placed pods, nominations), a [`Scheduler`] remembers where the
//! last search stopped, and [`Scheduler::schedule`] decides for one pod. The queue itself (who is next, who waits) is
//! the caller's; its arithmetic is in [`queue`], and [`events`] says which event can help which pod.
//!
//! Reproduced: the default profile of Kubernetes 1.36, and where placements differ, earlier releases by version.
//!
//! Deviation: volumes, dynamic resource claims, extenders and the filters' parallelism are left out; nodes are searched
//! one after the other.
//!
//! What must not live here: time, the queue's state, binding, events of the simulation.

pub mod events;
pub mod queue;

mod cluster_view;
mod evaluation;
mod filters;
mod host;
mod node;
mod plugins;
mod resources;
mod scores;
mod shape;
mod topology;
mod topology_state;

pub use cluster_view::{ClusterView, Service};
pub use evaluation::{Evaluation, NodeEvaluation, evaluate};
pub use host::{TieBreak, feasible_nodes_to_find};
pub use node::{NodeImage, SchedulerNode};
pub use plugins::{Plugin, PluginSet, Reason, Rejection, Unschedulable};
pub use resources::{FitScoring, FitStrategy};
pub use shape::{PodShape, ShapeId};
pub use topology_state::HARD_POD_AFFINITY_WEIGHT;

use crate::domain::{KubernetesVersion, NodeId, PodId};
use cluster_view::Slot;
use evaluation::Cycle;

/// Settings of the scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchedulerConfig {
    /// The release reproduced.
    pub version: KubernetesVersion,
    /// `percentageOfNodesToScore`; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: u8,
    /// How NodeResourcesFit scores.
    pub fit: FitScoring,
}

/// A pod that wants a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingPod {
    /// The pod.
    pub id: PodId,
    /// Its shape in the view.
    pub shape: ShapeId,
    /// The node on which alone it may run, as a DaemonSet's pod says by required affinity for the node's name. Said here
    /// and not in the specification, all pods of a DaemonSet have one shape.
    pub pinned_to: Option<NodeId>,
}

/// What became of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// It goes to a node.
    Node(Chosen),
    /// No node takes it.
    Unschedulable(Unschedulable),
}

/// The node that a pod goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// The node.
    pub node: NodeId,
    /// Its weighted total, `None` if it was the only one and so taken without scoring.
    pub total: Option<i64>,
    /// Nodes that passed the filters, up to the number looked for.
    pub feasible: usize,
    /// Nodes that were looked at.
    pub examined: usize,
}

/// The scheduler's own state: where in the order of nodes the next search starts.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    config: SchedulerConfig,
    next_start: usize,
    order: Vec<Slot>,
    order_version: Option<u64>,
}

impl Scheduler {
    /// A scheduler that starts its first search at the first node.
    pub fn new(config: SchedulerConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// The settings.
    pub const fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// Decides for one pod. The view is not changed: tell it by [`ClusterView::assume_pod`]. One scheduler must be used
    /// with one view.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `schedulePod`.
    pub fn schedule(&mut self, view: &ClusterView, pod: &PendingPod, tie: TieBreak) -> Placement {
        if self.order_version != Some(view.order_version()) {
            self.order = view.order();
            self.order_version = Some(view.order_version());
        }
        let mut cycle = Cycle::new(view, pod);
        if let Some(conflict) = cycle.conflict() {
            return Placement::Unschedulable(conflict);
        }
        if let Some(chosen) = cycle.try_nominated_node() {
            return Placement::Node(chosen);
        }
        let named = cycle.named_nodes(&self.order);
        let searched = named.as_ref().unwrap_or(&self.order);
        let search = cycle.search(searched, self.next_start, self.config.percentage_of_nodes_to_score);
        if !self.order.is_empty() {
            self.next_start = (self.next_start + search.examined) % self.order.len();
        }
        match search.feasible.as_slice() {
            [] => Placement::Unschedulable(cycle.unschedulable(search, self.order.len())),
            [only] => Placement::Node(cycle.chosen(*only, None, 1, search.examined)),
            several => {
                let totals = cycle.totals(&self.config, several);
                let index = tie.pick(&totals).unwrap_or(0);
                Placement::Node(cycle.chosen(several[index], Some(totals[index]), several.len(), search.examined))
            }
        }
    }
}
