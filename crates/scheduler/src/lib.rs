//! kube-scheduler: which node a pod goes to, why none takes it, and whom it may evict.
//!
//! The caller keeps a [`ClusterView`] up to date (nodes, placed pods, nominations), a [`Scheduler`] remembers where the
//! last search stopped, and [`Scheduler::schedule`] decides for one pod. The queue itself (who is next, who waits) is
//! the caller's; its arithmetic is in [`queue`], and [`events`] says which event can help which pod.
//!
//! Reproduced: the default profile of Kubernetes 1.36, and where placements differ, earlier releases by version.
//!
//! Deviation: devices of resource claims, extenders, and the parallelism of filters are omitted. Nodes are searched
//! one after the other.
//!
//! What must not live here: time, the queue's state, binding, events of the simulation.

pub mod events;
pub mod queue;

mod cluster_view;
mod evaluation;
mod filters;
mod host;
mod known_nodes;
mod node;
mod plugins;
mod predicates;
mod preemption;
mod resources;
mod scores;
mod shape;
mod shape_cache;
#[cfg(test)]
mod tests;
mod topology;
mod topology_state;
mod volumes;

pub use cluster_view::{ClusterView, Service};
pub use evaluation::{Evaluation, NodeEvaluation, evaluate};
pub use host::{TieBreak, feasible_nodes_to_find};
pub use node::{NodeImage, SchedulerNode};
pub use plugins::{Plugin, PluginSet, Reason, Rejection, Unschedulable};
pub use predicates::{FreeCapacity, Predicates};
pub use preemption::{BudgetState, NoPreemption, Preemption};
pub use shape::{PodShape, ShapeId};
pub use topology_state::HARD_POD_AFFINITY_WEIGHT;
pub use volumes::PodVolumes;

use cluster_view::Slot;
use evaluation::{named_nothing, named_slots, rivals};
use node::PlacedPod;
use nodecast_model::domain::fit_scoring::FitScoring;
use nodecast_model::domain::{Check, KubernetesVersion, NodeId, PodId};
use rustc_hash::FxHashMap;
use shape_cache::{Scratch, ShapeCache};

/// Settings of the scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchedulerConfig {
    /// The release reproduced.
    pub version: KubernetesVersion,
    /// `percentageOfNodesToScore`; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: u8,
    /// How NodeResourcesFit scores.
    pub fit: FitScoring,
    /// Whether what is kept in numbers of the nodes is counted anew, too.
    pub check: Check,
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

/// Shapes that are remembered at most, and nodes remembered for all of them together.
const REMEMBERED_SHAPES: usize = 1_024;
const REMEMBERED_NODES: usize = 1 << 20;

/// The scheduler's own state: where in the order of nodes the next search starts, and what it remembers of nodes.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    config: SchedulerConfig,
    next_start: usize,
    order: Vec<Slot>,
    order_version: Option<u64>,
    caches: FxHashMap<ShapeId, Box<ShapeCache>>,
    attempts: u64,
    scratch: Scratch,
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

    /// Forgets what it remembers of nodes, because the view has changed in what its journal does not say. The search goes on from where it is.
    pub fn forget_nodes(&mut self) {
        self.caches.clear();
    }

    /// Decides for one pod. The view is not changed: tell it by [`ClusterView::assume_pod`]. One scheduler must be used
    /// with one view.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `schedulePod`.
    pub fn schedule(&mut self, view: &ClusterView, pod: &PendingPod, tie: TieBreak) -> Placement {
        let rivals = rivals(view, pod);
        let mut cache = self.remembered(view, pod.shape, &rivals);
        let placement = self.schedule_with(&mut cache, view, pod, &rivals, tie);
        self.caches.insert(pod.shape, cache);
        placement
    }

    fn schedule_with(
        &mut self,
        cache: &mut ShapeCache,
        view: &ClusterView,
        pod: &PendingPod,
        rivals: &[(Slot, PlacedPod)],
        tie: TieBreak,
    ) -> Placement {
        if let Some(conflict) = named_nothing(view, &cache.shape) {
            return Placement::Unschedulable(conflict);
        }
        // A pod that evicted others takes the node it is nominated for, without a look at others, once it passes there.
        if let Some(node) = view.nominated_node(pod.id)
            && let Some(slot) = view.slot(node)
            && cache.passes(view, slot, rivals)
        {
            return Placement::Node(Chosen { node, total: None, feasible: 1, examined: 1 });
        }
        let named = named_slots(view, pod, &cache.shape, &self.order);
        let searched = named.as_ref().unwrap_or(&self.order);
        let scratch = &mut self.scratch;
        let start = self.next_start;
        let first = if searched.is_empty() { 0 } else { start % searched.len() };
        let wanted = feasible_nodes_to_find(searched.len(), self.config.percentage_of_nodes_to_score);
        let examined = cache.search(view, (searched, first), named.is_none(), wanted, rivals, &mut scratch.feasible);
        if !self.order.is_empty() {
            self.next_start = (start + examined) % self.order.len();
        }
        let feasible = scratch.feasible.len();
        cache.check(self.config.check);
        let (index, total) = match feasible {
            0 => {
                let why = cache.unschedulable(view, searched, rivals, self.order.len());
                return Placement::Unschedulable(why);
            }
            1 => (0, None),
            _ => {
                cache.totals(&self.config, view, scratch);
                let index = tie.pick_with(&scratch.totals, &mut scratch.heap).unwrap_or(0);
                (index, scratch.totals.get(index).copied())
            }
        };
        match view.entry(scratch.feasible[index]) {
            Some(entry) => Placement::Node(Chosen { node: entry.id, total, feasible, examined }),
            // Every slot of the order holds a node.
            None => Placement::Unschedulable(Unschedulable::default()),
        }
    }

    /// Decides whom to evict for a pod that no node takes. The caller evicts the victims, nominates the pod for the node
    /// ([`ClusterView::nominate`]), clears the nominations of the demoted, and puts the pod back into the queue. `offset`
    /// says where among the nodes the search starts: upstream draws it.
    ///
    /// # Errors
    /// Why nobody is evicted.
    pub fn preempt(
        &mut self,
        view: &ClusterView,
        pod: &PendingPod,
        budgets: &[BudgetState],
        offset: u64,
    ) -> Result<Preemption, NoPreemption> {
        let rivals = rivals(view, pod);
        let mut cache = self.remembered(view, pod.shape, &rivals);
        let outcome = self.preempt_with(&mut cache, view, pod, &rivals, budgets, offset);
        self.caches.insert(pod.shape, cache);
        outcome
    }

    fn preempt_with(
        &mut self,
        cache: &mut ShapeCache,
        view: &ClusterView,
        pod: &PendingPod,
        rivals: &[(Slot, PlacedPod)],
        budgets: &[BudgetState],
        offset: u64,
    ) -> Result<Preemption, NoPreemption> {
        let named = named_slots(view, pod, &cache.shape, &self.order);
        let nominated = view.nominated_node(pod.id).and_then(|node| view.slot(node));
        let mut curable = Vec::new();
        let mut nominated_is_hopeless = false;
        for &slot in named.as_ref().unwrap_or(&self.order) {
            cache.passes(view, slot, rivals);
            if let Some(rejection) = cache.rejection(view, slot, rivals) {
                if rejection.resolvable_by_eviction {
                    curable.push(slot);
                } else if nominated == Some(slot) {
                    nominated_is_hopeless = true;
                }
            }
        }
        preemption::eligible(view, pod, nominated_is_hopeless)?;
        let (shape, state) = cache.parts(view);
        preemption::Attempt { view, shape, state, rivals, budgets }.run(&curable, offset)
    }

    /// What is remembered for a shape, brought up to date; and the order of nodes likewise.
    fn remembered(&mut self, view: &ClusterView, id: ShapeId, rivals: &[(Slot, PlacedPod)]) -> Box<ShapeCache> {
        if self.order_version != Some(view.order_version()) {
            self.order = view.order();
            self.order_version = Some(view.order_version());
        }
        self.attempts += 1;
        let mut cache = self.caches.remove(&id).unwrap_or_else(|| {
            let room = (REMEMBERED_NODES / view.slot_count().max(1)).clamp(1, REMEMBERED_SHAPES);
            if self.caches.len() >= room {
                // `last_used` is different for each, so the order of the map does not matter.
                let oldest = self.caches.iter().min_by_key(|(_, cache)| cache.last_used).map(|(&id, _)| id);
                oldest.and_then(|id| self.caches.remove(&id));
            }
            Box::new(ShapeCache::new(view, view.shared_shape(id)))
        });
        cache.last_used = self.attempts;
        cache.catch_up(view, rivals);
        cache
    }
}
