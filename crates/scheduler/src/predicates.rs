//! The filters alone, without scores: whether a pod could go to a given node. An autoscaler asks this of nodes that it
//! only imagines.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/framework/runtime/framework.go`, `RunPreFilterPlugins` and
//! `RunFilterPlugins`.

use rustc_hash::FxHashMap;

use super::cluster_view::{ClusterView, Slot};
use super::filters;
use super::node::NodeEntry;
use super::plugins::{Reason, Refusal, Rejection};
use super::shape::{PodShape, ShapeId};
use super::topology_state::TopologyState;
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::{NodeId, PodId, ResourceName, SimTime};

/// The counts over the cluster for one shape, and how far they follow the view.
#[derive(Clone, Debug)]
struct Followed {
    state: TopologyState,
    until: u64,
    last_used: u64,
}

/// Shapes whose counts are remembered at most.
const REMEMBERED: usize = 256;

/// Runs the filters on single nodes. One of these must be used with one view.
#[derive(Clone, Debug, Default)]
pub struct Predicates {
    followed: FxHashMap<ShapeId, Box<Followed>>,
    uses: u64,
}

impl Predicates {
    /// Whether pods of `shape` could go to `node` as the view stands.
    ///
    /// # Errors
    /// The refusal of the first filter that refuses.
    pub fn check(&mut self, view: &ClusterView, shape: ShapeId, node: NodeId) -> Result<(), Rejection> {
        let Some((slot, entry)) = slot_and_entry(view, node) else {
            return Err(Rejection::unresolvable(Reason::OtherNodeName));
        };
        filters::check_node(view.shape_of(shape), entry)?;
        Ok(self.check_topology(view, shape, slot)?)
    }

    /// Whether [`Self::check`] would accept the node; says no more and costs less.
    pub fn passes(&mut self, view: &ClusterView, shape: ShapeId, node: NodeId) -> bool {
        let Some((slot, entry)) = slot_and_entry(view, node) else { return false };
        filters::passes_node(view.shape_of(shape), entry) && self.check_topology(view, shape, slot).is_ok()
    }

    /// Whether the answer for pods of `shape` can depend on other nodes than the one asked about.
    pub fn looks_beyond_the_node(view: &ClusterView, shape: ShapeId) -> bool {
        let shape = view.shape_of(shape);
        !shape.hard_spread.is_empty()
            || !shape.required_affinity.is_empty()
            || !shape.required_anti_affinity.is_empty()
            || !shape.volumes.one_pod.is_empty()
            || view.pods_with_affinity() > 0
    }

    fn check_topology(&mut self, view: &ClusterView, id: ShapeId, slot: Slot) -> Result<(), Refusal> {
        if !Self::looks_beyond_the_node(view, id) {
            return Ok(());
        }
        self.uses += 1;
        if !self.followed.contains_key(&id) {
            self.make_room();
            let state = TopologyState::new(view, view.shared_shape(id));
            self.followed.insert(id, Box::new(Followed { state, until: view.journal_end(), last_used: 0 }));
        }
        let Some(followed) = self.followed.get_mut(&id) else { return Ok(()) };
        followed.last_used = self.uses;
        followed.catch_up(view);
        followed.state.gate(view).check(slot)
    }

    fn make_room(&mut self) {
        if self.followed.len() >= REMEMBERED {
            // `last_used` is different for each, so the order of the map does not matter.
            let oldest = self.followed.iter().min_by_key(|(_, followed)| followed.last_used).map(|(&id, _)| id);
            oldest.and_then(|id| self.followed.remove(&id));
        }
    }
}

impl Followed {
    fn catch_up(&mut self, view: &ClusterView) {
        match view.changed_since(self.until) {
            Some(changed) if changed.len() <= view.slot_count().max(64) => {
                for change in changed {
                    let matters = change.peer.is_none_or(|peer| !self.state.is_indifferent_to(view, peer));
                    if matters {
                        self.state.follow(view, change.slot, view.entry(change.slot));
                    }
                }
                self.state.settle();
            }
            // The same few nodes have changed again and again.
            _ => {
                for slot in view.slots_changed_since(self.until) {
                    self.state.follow(view, slot, view.entry(slot));
                }
                self.state.settle();
            }
        }
        self.until = view.journal_end();
    }
}

fn slot_and_entry(view: &ClusterView, node: NodeId) -> Option<(Slot, &NodeEntry)> {
    let slot = view.slot(node)?;
    Some((slot, view.entry(slot)?))
}

/// What is left on one node, for shapes whose pods look at nothing beyond it: a few numbers instead of a node.
#[derive(Clone, Debug)]
pub struct FreeCapacity {
    milli_cpu: i64,
    memory: i64,
    ephemeral_storage: i64,
    pods: i64,
    extended: Vec<(ResourceName, i64)>,
    host_ports: Vec<HostPort>,
}

impl FreeCapacity {
    /// What is left on a node of the view; `None` if it has no such node.
    pub fn on(view: &ClusterView, node: NodeId) -> Option<Self> {
        let (_, entry) = slot_and_entry(view, node)?;
        let offered = entry.node.allocatable.iter().filter(|&(name, _)| super::shape::is_extended(name));
        Some(Self {
            milli_cpu: entry.allocatable.milli_cpu - entry.requested.milli_cpu,
            memory: entry.allocatable.memory - entry.requested.memory,
            ephemeral_storage: entry.allocatable.ephemeral_storage - entry.requested.ephemeral_storage,
            pods: entry.pods_allowed - entry.pods.len() as i64,
            extended: offered.map(|(name, amount)| (name, amount - entry.extended.get(name))).collect(),
            host_ports: entry.host_ports.iter().map(|(port, _)| *port).collect(),
        })
    }

    /// Whether one more pod of `shape` has room.
    pub fn fits(&self, shape: &PodShape) -> bool {
        let fits = |request: i64, left: i64| request <= 0 || request <= left;
        let left = |name| self.extended.iter().find(|entry| entry.0 == name).map_or(0, |entry| entry.1);
        let requests = &shape.requests;
        self.pods > 0
            && fits(requests.milli_cpu, self.milli_cpu)
            && fits(requests.memory, self.memory)
            && fits(requests.ephemeral_storage, self.ephemeral_storage)
            && shape.extended.iter().all(|&(name, request)| fits(request, left(name)))
            && !shape
                .host_ports
                .iter()
                .any(|wanted| self.host_ports.iter().any(|used| filters::ports_conflict(wanted, used)))
    }

    /// Takes the room of one pod of `shape`.
    pub fn take(&mut self, shape: &PodShape) {
        self.milli_cpu -= shape.requests.milli_cpu;
        self.memory -= shape.requests.memory;
        self.ephemeral_storage -= shape.requests.ephemeral_storage;
        self.pods -= 1;
        for &(name, amount) in &shape.extended {
            if let Some(entry) = self.extended.iter_mut().find(|entry| entry.0 == name) {
                entry.1 -= amount;
            }
        }
        self.host_ports.extend_from_slice(&shape.host_ports);
    }
}

impl ClusterView {
    /// Places a pod of which nothing but its place matters, with no start time.
    pub fn place(&mut self, node: NodeId, pod: PodId, shape: ShapeId) {
        self.assume_pod(node, pod, shape, SimTime::ZERO);
    }
}
