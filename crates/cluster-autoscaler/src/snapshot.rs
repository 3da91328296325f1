//! The cluster as an iteration imagines it: real nodes, nodes to come, and pods placed in thought. What is imagined can be
//! taken back.
//!
//! A snapshot outlives its iteration: the next one takes back what was imagined and takes over what is observed to have changed
//! ([`Snapshot::observe`]). Thirty thousand pods that stay where they are are not put on their nodes anew every ten seconds.
//!
//! Source: Cluster Autoscaler 1.36 `simulator/clustersnapshot`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::view::{NodeTemplate, NodeView, Observation, PodTraits};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{Labels, NodeId, PodId, PodSpec, ResourceName, Resources, Symbol, Taint, TaintEffect};
use nodecast_scheduler::{ClusterView, PodVolumes, Predicates, Rejection, SchedulerNode, ShapeId};

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
    pub(super) labels: Labels,
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
    Removed(NodeAt, Box<Removed>),
}

/// A node that was taken away.
#[derive(Clone, Debug)]
struct Removed {
    known: SchedulerNode,
    pods: Vec<PodAt>,
    /// Where it stood in the order.
    place: usize,
}

/// What is known of a node, and its pods.
type Placement<'s> = (&'s SchedulerNode, &'s Resources, Vec<(Option<usize>, &'s Arc<PodTraits>)>);

/// Entries of nodes, pods or kinds of pods that may be held for nothing before all is made anew.
const SPARE: usize = 1_024;

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

/// The imagined cluster.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    view: ClusterView,
    /// The namespaces that the view was made with.
    namespaces: Vec<(Symbol, Labels)>,
    predicates: Predicates,
    nodes: Vec<SnapshotNode>,
    /// The nodes that are there, in the order in which they are searched.
    order: Vec<NodeAt>,
    pods: Vec<SnapshotPod>,
    by_id: FxHashMap<NodeId, NodeAt>,
    /// Shapes by namespace, address of the specification, and what volumes ask for; specifications are kept so that their
    /// addresses stay their own.
    shapes: FxHashMap<(Symbol, usize, PodVolumes), (ShapeId, Arc<PodSpec>)>,
    /// What follows from traits, by their address; they are kept for the same reason.
    kinds: FxHashMap<usize, (ShapeId, Arc<Resources>, Arc<PodTraits>)>,
    /// What was done since nodes and pods were observed.
    steps: Vec<Step>,
    /// The observed pods that are placed, as observed.
    observed: Vec<(PodId, PodAt)>,
    /// How many entries of nodes and pods there were when these had been observed: later ones are imagined.
    real: (usize, usize),
    /// Where in the order the next search begins.
    next: usize,
    imagined: u32,
    /// Whether resource claims of pods have no effect.
    ignores_claims: bool,
}

impl Snapshot {
    /// An empty cluster whose first search begins at `next`.
    pub fn new(next: usize) -> Self {
        Self { next, ..Self::default() }
    }

    /// Sets whether resource claims of pods have no effect. A change empties the cluster.
    ///
    /// Source: Cluster Autoscaler 1.33.0, 1.34.1 and 1.35.0 `main.go` and `config/flags/flags.go`: the scheduler's DynamicResources runs only with
    /// `enable-dynamic-resource-allocation`, which is false before 1.35 and true from then on.
    pub fn set_ignores_claims(&mut self, ignores_claims: bool) {
        if self.ignores_claims != ignores_claims {
            *self = Self { next: self.next, ignores_claims, ..Self::default() };
        }
    }

    /// An empty cluster with these namespaces.
    fn from_namespaces(namespaces: &[(Symbol, Labels)]) -> Self {
        let view = ClusterView::new(Vec::new(), namespaces.iter().cloned());
        Self { view, namespaces: namespaces.to_vec(), ..Self::default() }
    }

    /// Where the next search begins.
    pub const fn next(&self) -> usize {
        self.next
    }

    pub(super) const fn set_next(&mut self, next: usize) {
        self.next = next;
    }

    /// Takes back what was imagined, and takes over what is observed now: the nodes, and those of the pods that are `placed` on one
    /// of them, each with its place among the observed pods. Searches begin at `next`.
    ///
    /// Who stays as observed before stays as it is here, so that this costs what has changed. The outcome is that of a snapshot made
    /// from nothing; only the numbers of nodes and pods differ, and those of observed nodes are always the lower ones.
    pub fn observe(&mut self, next: usize, seen: &Observation<'_>, placed: &[(usize, NodeId)]) {
        let wasteful = |entries: usize, used: usize| entries > 2 * used + SPARE;
        if wasteful(self.real.0, seen.nodes.len())
            || wasteful(self.real.1, placed.len())
            || wasteful(self.kinds.len(), placed.len())
            || self.namespaces != seen.namespaces
        {
            *self = Self { ignores_claims: self.ignores_claims, ..Self::from_namespaces(seen.namespaces) };
        }
        self.go_back(Mark(0));
        self.nodes.truncate(self.real.0);
        self.pods.truncate(self.real.1);
        (self.next, self.imagined) = (next, 0);
        self.take_over(seen, placed);
        self.real = (self.nodes.len(), self.pods.len());
        debug_assert_eq!(self.placements(), Self::default().take_over(seen, placed).placements());
    }

    fn take_over(&mut self, seen: &Observation<'_>, placed: &[(usize, NodeId)]) -> &Self {
        self.observe_nodes(seen.nodes);
        self.observe_pods(seen, placed);
        self
    }

    /// By node in the order of search: what the scheduler and the autoscaler know of it, and its pods.
    fn placements(&self) -> Vec<Placement<'_>> {
        let of_node = |node: &NodeAt| {
            let node = &self.nodes[node.0];
            let pods = node.pods.iter().map(|pod| (self.pods[pod.0].observed, &self.pods[pod.0].traits)).collect();
            self.view.node(node.id).map(|known| (known, &node.capacity, pods))
        };
        self.order.iter().filter_map(of_node).collect()
    }

    fn observe_nodes(&mut self, nodes: &[NodeView]) {
        self.nodes.iter_mut().for_each(|node| node.observed = None);
        let mut order = Vec::with_capacity(nodes.len());
        for (observed, node) in nodes.iter().enumerate() {
            let at = match self.find(node.id) {
                Some(at) => at,
                None => self.enter(observed, node),
            };
            self.nodes[at.0].observed = Some(observed);
            if !self.is_as_known(at, node) {
                self.view.update_node(node.id, told(node));
                let pods = std::mem::take(&mut self.nodes[at.0].pods);
                self.nodes[at.0] = SnapshotNode { pods, ..SnapshotNode::observed(observed, node) };
            }
            order.push(at);
        }
        for node in std::mem::replace(&mut self.order, order) {
            if self.nodes[node.0].observed.is_none() {
                self.take_out(node);
            }
        }
    }

    fn is_as_known(&self, at: NodeAt, node: &NodeView) -> bool {
        let this_node = &self.nodes[at.0];
        this_node.capacity == node.capacity && self.view.node(node.id).is_some_and(|known| is_told(known, node))
    }

    fn observe_pods(&mut self, seen: &Observation<'_>, placed: &[(usize, NodeId)]) {
        let mut before = std::mem::take(&mut self.observed).into_iter().peekable();
        let mut now = Vec::with_capacity(placed.len());
        let mut changed: Vec<NodeAt> = Vec::new();
        for &(observed, node) in placed {
            let (id, traits) = (seen.pods[observed].id, &seen.pods[observed].traits);
            while let Some((_, gone)) = before.next_if(|pair| pair.0 < id) {
                self.lift(gone);
            }
            if let Some((_, pod)) = before.next_if(|pair| pair.0 == id) {
                let this_pod = &mut self.pods[pod.0];
                let stays = this_pod.node.is_some_and(|at| self.nodes[at.0].id == node);
                if stays && Arc::ptr_eq(&this_pod.traits, traits) {
                    this_pod.observed = Some(observed);
                    now.push((id, pod));
                    continue;
                }
                self.lift(pod);
            }
            if let Some(place) = self.find(node) {
                let pod = self.add_pod(Some(observed), traits);
                self.put(pod, place);
                changed.push(place);
                now.push((id, pod));
            }
        }
        for (_, gone) in before {
            self.lift(gone);
        }
        self.observed = now;
        // A pod that came may stand before one that was there.
        for node in changed {
            let (nodes, pods) = (&mut self.nodes, &self.pods);
            nodes[node.0].pods.sort_by_key(|pod| pods[pod.0].observed);
        }
    }

    /// Adds an observed node.
    pub fn add_node(&mut self, observed: usize, node: &NodeView) -> NodeAt {
        let at = self.enter(observed, node);
        self.order.push(at);
        self.steps.push(Step::Added(at));
        at
    }

    fn enter(&mut self, observed: usize, node: &NodeView) -> NodeAt {
        self.view.add_node(node.id, told(node));
        self.hold(SnapshotNode::observed(observed, node))
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
            missing_drivers: Vec::new(),
        };
        self.view.add_node(id, known);
        let at = self.hold(SnapshotNode {
            id,
            observed: None,
            labels,
            capacity: template.capacity.clone(),
            allocatable: template.allocatable.clone(),
            pods: Vec::new(),
            unschedulable: template.unschedulable,
        });
        self.order.push(at);
        self.steps.push(Step::Added(at));
        for traits in &template.pods {
            let pod = self.add_pod(None, traits);
            self.place(pod, at);
        }
        at
    }

    fn hold(&mut self, node: SnapshotNode) -> NodeAt {
        let at = NodeAt(self.nodes.len());
        self.by_id.insert(node.id, at);
        self.nodes.push(node);
        at
    }

    /// Makes a pod known, without a place.
    pub fn add_pod(&mut self, observed: Option<usize>, traits: &Arc<PodTraits>) -> PodAt {
        let kind = Arc::as_ptr(traits).addr();
        let (shape, requests) = match self.kinds.get(&kind) {
            Some((shape, requests, _)) => (*shape, Arc::clone(requests)),
            None => {
                let (shape, requests) = (self.shape(traits), Arc::new(traits.spec.requests()));
                self.kinds.insert(kind, (shape, Arc::clone(&requests), Arc::clone(traits)));
                (shape, requests)
            }
        };
        self.pods.push(SnapshotPod { traits: Arc::clone(traits), shape, requests, node: None, observed });
        PodAt(self.pods.len() - 1)
    }

    /// The scheduler's shape of such pods.
    pub fn shape(&mut self, traits: &PodTraits) -> ShapeId {
        let (view, ignores_claims) = (&mut self.view, self.ignores_claims);
        let key = (traits.namespace, Arc::as_ptr(&traits.spec).addr(), traits.volumes.clone());
        let of_spec = || {
            let mut spec = Arc::clone(&traits.spec);
            // A bound pod's node stands in its specification; here it may go anywhere.
            let resource_claims = spec.resource_claims && !ignores_claims;
            if spec.node_name.is_some() || spec.resource_claims != resource_claims {
                spec =
                    Arc::new(nodecast_model::domain::PodSpec { node_name: None, resource_claims, ..(*spec).clone() });
            }
            let shape = view.shape_with_volumes(traits.namespace, &spec, None, traits.volumes.clone());
            (shape, Arc::clone(&traits.spec))
        };
        self.shapes.entry(key).or_insert_with(of_spec).0
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

    /// Takes a node away, with its pods.
    pub fn remove_node(&mut self, node: NodeAt) {
        if let Some(removed) = self.drop_node(node) {
            self.steps.push(Step::Removed(node, Box::new(removed)));
        }
    }

    fn drop_node(&mut self, node: NodeAt) -> Option<Removed> {
        // Mostly it is the last that came.
        let place = self.order.iter().rposition(|other| *other == node)?;
        self.order.remove(place);
        let (known, pods) = self.take_out(node)?;
        Some(Removed { known, pods, place })
    }

    /// Takes out a node that is not in the order any more.
    fn take_out(&mut self, node: NodeAt) -> Option<(SchedulerNode, Vec<PodAt>)> {
        let pods = std::mem::take(&mut self.nodes[node.0].pods);
        for pod in &pods {
            self.pods[pod.0].node = None;
        }
        self.by_id.remove(&self.nodes[node.0].id);
        Some((self.view.remove_node(self.nodes[node.0].id)?, pods))
    }

    fn put_back(&mut self, node: NodeAt, removed: Removed) {
        let id = self.nodes[node.0].id;
        self.view.add_node(id, removed.known);
        self.by_id.insert(id, node);
        self.order.insert(removed.place, node);
        for pod in removed.pods {
            self.put(pod, node);
        }
    }

    /// Empties a node and taints it as one that is being deleted: its domain still counts, but nothing goes there.
    pub fn make_ghost(&mut self, node: NodeAt, observed: &NodeView) {
        for pod in self.nodes[node.0].pods.clone() {
            self.displace(pod);
        }
        let old = told(observed);
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
                Some(Step::Added(node)) => drop(self.drop_node(node)),
                Some(Step::Tainted(node, old)) => self.view.update_node(self.nodes[node.0].id, *old),
                Some(Step::Removed(node, removed)) => self.put_back(node, *removed),
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

    /// What all pods on a node request of a resource.
    pub fn requested(&self, node: NodeAt, resource: ResourceName) -> i64 {
        self.view.requested(self.nodes[node.0].id, resource)
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

impl SnapshotNode {
    fn observed(place: usize, node: &NodeView) -> Self {
        Self {
            id: node.id,
            observed: Some(place),
            labels: node.labels.clone(),
            capacity: node.capacity.clone(),
            allocatable: node.allocatable.clone(),
            pods: Vec::new(),
            unschedulable: node.unschedulable,
        }
    }
}

/// What the scheduler is told of an observed node.
fn told(node: &NodeView) -> SchedulerNode {
    SchedulerNode {
        name: Arc::clone(&node.name),
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        unschedulable: node.unschedulable,
        allocatable: node.allocatable.clone(),
        images: Vec::new(),
        volume_limits: node.volume_limits.clone(),
        // Its simulations have the drivers of a template on every node.
        missing_drivers: Vec::new(),
    }
}

/// Whether that is what the scheduler knows, which may have added the taint of a cordoned node.
fn is_told(known: &SchedulerNode, node: &NodeView) -> bool {
    let cordoned = Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule);
    let more = known.taints.strip_prefix(&node.taints[..]);
    known.unschedulable == node.unschedulable
        && more.is_some_and(|more| more.is_empty() || node.unschedulable && *more == [cordoned])
        && known.name == node.name
        && known.labels == node.labels
        && known.allocatable == node.allocatable
        && known.volume_limits == node.volume_limits
}
