//! The cluster as an iteration imagines it: real nodes, nodes to come, and pods placed in thought. What is imagined can be
//! taken back.
//!
//! Source: Cluster Autoscaler 1.36 `simulator/clustersnapshot`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::view::{NodeTemplate, NodeView, PodTraits};
use crate::domain::symbol::well_known;
use crate::domain::{NodeId, PodId, Resources, Symbol, Taint, TaintEffect};
use crate::policy::kube_scheduler::{ClusterView, PodVolumes, Predicates, Rejection, SchedulerNode, ShapeId};

/// A node of the snapshot, by place in its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeAt(pub usize);

/// A pod of the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PodAt(pub usize);

/// What the snapshot holds of a node.
#[derive(Clone, Debug)]
pub struct SnapshotNode {
    /// The node's id in the view of the scheduler.
    pub(super) id: NodeId,
    /// The place among the observed nodes, `None` for a node that is only imagined.
    pub(super) observed: Option<usize>,
    pub(super) labels: crate::domain::Labels,
    pub(super) capacity: Resources,
    pub(super) allocatable: Resources,
    pub(super) pods: Vec<PodAt>,
    unschedulable: bool,
}

#[derive(Clone, Debug)]
struct SnapshotPod {
    traits: Arc<PodTraits>,
    shape: ShapeId,
    requests: Arc<Resources>,
    node: Option<NodeAt>,
    /// The place among the observed pods.
    observed: Option<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    Placed(PodAt),
    Displaced(PodAt, NodeAt, usize),
    Added(NodeAt),
    Tainted(NodeAt, Box<SchedulerNode>),
}

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

/// The imagined cluster.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    view: ClusterView,
    predicates: Predicates,
    nodes: Vec<SnapshotNode>,
    /// The nodes that are there, in the order in which they are searched.
    order: Vec<NodeAt>,
    pods: Vec<SnapshotPod>,
    by_id: FxHashMap<NodeId, NodeAt>,
    /// Shapes by namespace, address of the specification, which the view keeps alive, and what volumes ask for.
    shapes: FxHashMap<(Symbol, usize, PodVolumes), ShapeId>,
    /// What follows from traits, by their address: pods keep them alive.
    kinds: FxHashMap<usize, (ShapeId, Arc<Resources>)>,
    steps: Vec<Step>,
    /// Where in the order the next search begins.
    next: usize,
    imagined: u32,
}

impl Snapshot {
    /// An empty cluster whose first search begins at `next`.
    pub fn new(next: usize) -> Self {
        Self { next, ..Self::default() }
    }

    /// Where the next search begins.
    pub const fn next(&self) -> usize {
        self.next
    }

    pub(super) const fn set_next(&mut self, next: usize) {
        self.next = next;
    }

    /// Adds an observed node.
    pub fn add_node(&mut self, observed: usize, node: &NodeView) -> NodeAt {
        let known = SchedulerNode {
            name: Arc::clone(&node.name),
            labels: node.labels.clone(),
            taints: node.taints.clone(),
            unschedulable: node.unschedulable,
            allocatable: node.allocatable.clone(),
            images: Vec::new(),
            volume_limits: node.volume_limits.clone(),
        };
        self.view.add_node(node.id, known);
        self.enter(SnapshotNode {
            id: node.id,
            observed: Some(observed),
            labels: node.labels.clone(),
            capacity: node.capacity.clone(),
            allocatable: node.allocatable.clone(),
            pods: Vec::new(),
            unschedulable: node.unschedulable,
        })
    }

    /// Adds a fresh node made from a template, with its pods.
    pub fn add_from_template(&mut self, template: &NodeTemplate) -> NodeAt {
        self.imagined += 1;
        let id = NodeId(u32::MAX - self.imagined);
        let mut labels = template.labels.clone();
        // Without the label each node is a host of its own.
        labels.remove(well_known::HOSTNAME);
        let known = SchedulerNode {
            name: Arc::from("template-node"),
            labels: labels.clone(),
            taints: template.taints.clone(),
            unschedulable: template.unschedulable,
            allocatable: template.allocatable.clone(),
            images: Vec::new(),
            // What a node can attach is known once its driver runs there.
            volume_limits: Vec::new(),
        };
        self.view.add_node(id, known);
        let at = self.enter(SnapshotNode {
            id,
            observed: None,
            labels,
            capacity: template.capacity.clone(),
            allocatable: template.allocatable.clone(),
            pods: Vec::new(),
            unschedulable: template.unschedulable,
        });
        for traits in &template.pods {
            let pod = self.add_pod(None, traits);
            self.place(pod, at);
        }
        at
    }

    fn enter(&mut self, node: SnapshotNode) -> NodeAt {
        let at = NodeAt(self.nodes.len());
        self.by_id.insert(node.id, at);
        self.nodes.push(node);
        self.order.push(at);
        self.steps.push(Step::Added(at));
        at
    }

    /// Makes a pod known, without a place.
    pub fn add_pod(&mut self, observed: Option<usize>, traits: &Arc<PodTraits>) -> PodAt {
        let kind = Arc::as_ptr(traits).addr();
        let (shape, requests) = match self.kinds.get(&kind) {
            Some((shape, requests)) => (*shape, Arc::clone(requests)),
            None => {
                let known = (self.shape(traits), Arc::new(traits.spec.requests()));
                self.kinds.insert(kind, known.clone());
                known
            }
        };
        self.pods.push(SnapshotPod { traits: Arc::clone(traits), shape, requests, node: None, observed });
        PodAt(self.pods.len() - 1)
    }

    /// The scheduler's shape of such pods.
    pub fn shape(&mut self, traits: &PodTraits) -> ShapeId {
        let view = &mut self.view;
        let key = (traits.namespace, Arc::as_ptr(&traits.spec).addr(), traits.volumes.clone());
        *self.shapes.entry(key).or_insert_with(|| {
            let mut spec = Arc::clone(&traits.spec);
            // A bound pod's node stands in its specification; here it may go anywhere.
            if spec.node_name.is_some() {
                spec = Arc::new(crate::domain::PodSpec { node_name: None, ..(*spec).clone() });
            }
            view.shape_with_volumes(traits.namespace, &spec, None, traits.volumes.clone())
        })
    }

    /// Puts a pod on a node, fitting or not.
    pub fn place(&mut self, pod: PodAt, node: NodeAt) {
        self.put(pod, node);
        self.steps.push(Step::Placed(pod));
    }

    fn put(&mut self, pod: PodAt, node: NodeAt) {
        let entry = &mut self.pods[pod.0];
        entry.node = Some(node);
        self.view.place(self.nodes[node.0].id, PodId(pod.0 as u32), entry.shape);
        self.nodes[node.0].pods.push(pod);
    }

    /// Takes a pod off its node.
    pub fn displace(&mut self, pod: PodAt) {
        if let Some((node, at)) = self.lift(pod) {
            self.steps.push(Step::Displaced(pod, node, at));
        }
    }

    fn lift(&mut self, pod: PodAt) -> Option<(NodeAt, usize)> {
        let node = self.pods[pod.0].node.take()?;
        self.view.forget_pod(PodId(pod.0 as u32));
        let pods = &mut self.nodes[node.0].pods;
        let at = pods.iter().rposition(|other| *other == pod)?;
        pods.remove(at);
        Some((node, at))
    }

    /// Takes a node away for good, with its pods.
    pub fn remove_node(&mut self, node: NodeAt) {
        for pod in std::mem::take(&mut self.nodes[node.0].pods) {
            self.pods[pod.0].node = None;
        }
        self.view.remove_node(self.nodes[node.0].id);
        self.by_id.remove(&self.nodes[node.0].id);
        if self.order.last() == Some(&node) {
            self.order.pop();
        } else {
            self.order.retain(|other| *other != node);
        }
    }

    /// Empties a node and taints it as one that is being deleted: its domain still counts, but nothing goes there.
    pub fn make_ghost(&mut self, node: NodeAt, observed: &NodeView) {
        for pod in self.nodes[node.0].pods.clone() {
            self.displace(pod);
        }
        let old = SchedulerNode {
            name: Arc::clone(&observed.name),
            labels: observed.labels.clone(),
            taints: observed.taints.clone(),
            unschedulable: observed.unschedulable,
            allocatable: observed.allocatable.clone(),
            images: Vec::new(),
            volume_limits: observed.volume_limits.clone(),
        };
        let mut ghost = old.clone();
        ghost.taints.push(Taint::new(Symbol::new(super::TO_BE_DELETED), TaintEffect::NoSchedule));
        self.view.update_node(self.nodes[node.0].id, ghost);
        self.steps.push(Step::Tainted(node, Box::new(old)));
    }

    /// A point to go back to.
    pub const fn mark(&self) -> Mark {
        Mark(self.steps.len())
    }

    /// Takes back everything since the mark. Pods made known since stay known, without a place.
    pub fn go_back(&mut self, mark: Mark) {
        while self.steps.len() > mark.0 {
            match self.steps.pop() {
                Some(Step::Placed(pod)) => drop(self.lift(pod)),
                Some(Step::Displaced(pod, node, at)) => {
                    self.put(pod, node);
                    let pods = &mut self.nodes[node.0].pods;
                    let moved = pods.pop();
                    pods.splice(at..at, moved);
                }
                Some(Step::Added(node)) => self.remove_node(node),
                Some(Step::Tainted(node, old)) => self.view.update_node(self.nodes[node.0].id, *old),
                None => break,
            }
        }
    }

    /// Whether a pod could go to a node.
    ///
    /// # Errors
    /// The refusal of the first filter that refuses.
    pub fn check(&mut self, shape: ShapeId, node: NodeAt) -> Result<(), Rejection> {
        self.predicates.check(&self.view, shape, self.nodes[node.0].id)
    }

    /// Whether a pod could go to a node.
    pub fn passes(&mut self, shape: ShapeId, node: NodeAt) -> bool {
        self.predicates.passes(&self.view, shape, self.nodes[node.0].id)
    }

    /// The first node that takes the pod, from where the last search stopped, round and round; `accepts` says which nodes
    /// are looked at. Cordoned nodes never are.
    ///
    /// Source: Cluster Autoscaler 1.36 `simulator/clustersnapshot/predicate/plugin_runner.go`,
    /// `RunFiltersUntilPassingNode`.
    pub fn find_node(&mut self, shape: ShapeId, accepts: impl Fn(NodeAt, &SnapshotNode) -> bool) -> Option<NodeAt> {
        let length = self.order.len();
        for turn in 0..length {
            let place = (self.next + turn) % length;
            let node = self.order[place];
            let entry = &self.nodes[node.0];
            if entry.unschedulable || !accepts(node, entry) {
                continue;
            }
            if self.predicates.passes(&self.view, shape, entry.id) {
                self.next = (place + 1) % length;
                return Some(node);
            }
        }
        None
    }

    /// Places a pod on the first node that takes it.
    pub fn place_anywhere(&mut self, pod: PodAt, accepts: impl Fn(NodeAt, &SnapshotNode) -> bool) -> Option<NodeAt> {
        let node = self.find_node(self.pods[pod.0].shape, accepts)?;
        self.place(pod, node);
        Some(node)
    }

    /// The nodes that are there, in the order in which they are searched.
    pub fn order(&self) -> &[NodeAt] {
        &self.order
    }

    /// What is held of a node.
    pub fn node(&self, node: NodeAt) -> &SnapshotNode {
        &self.nodes[node.0]
    }

    /// The place of a node, while it is there.
    pub fn find(&self, id: NodeId) -> Option<NodeAt> {
        self.by_id.get(&id).copied()
    }

    /// A pod's shape.
    pub fn shape_of(&self, pod: PodAt) -> ShapeId {
        self.pods[pod.0].shape
    }

    /// What a pod requests.
    pub fn requests(&self, pod: PodAt) -> &Resources {
        &self.pods[pod.0].requests
    }

    /// What a pod shares with its siblings.
    pub fn traits(&self, pod: PodAt) -> &Arc<PodTraits> {
        &self.pods[pod.0].traits
    }

    /// The place of a pod among the observed ones.
    pub fn observed_pod(&self, pod: PodAt) -> Option<usize> {
        self.pods[pod.0].observed
    }

    /// The scheduler's view.
    pub const fn view(&self) -> &ClusterView {
        &self.view
    }
}
