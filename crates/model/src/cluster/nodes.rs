//! What can become of a node, from its claim to the end of its instance.

use super::state::{DrawnNames, Node, NodeOrigin, NodePhase};
use super::{Change, Cluster, Position};
use crate::domain::{Labels, NodeId, Resources, SimTime, Symbol, Taint, well_known};

/// A node claim (or a node group's instance) about to come to be.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// Name, by which reports call it.
    pub name: String,
    /// The names that API server and EC2 gave, if they bear on decisions.
    pub drawn: Option<DrawnNames>,
    /// What asked for it.
    pub origin: NodeOrigin,
    /// Labels known before launch.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Taints that it keeps.
    pub taints: Vec<Taint>,
    /// Taints that it starts with.
    pub startup_taints: Vec<Taint>,
}

impl NewNode {
    /// A node without labels and taints.
    pub fn called(name: impl Into<String>, origin: NodeOrigin) -> Self {
        Self {
            name: name.into(),
            drawn: None,
            origin,
            labels: Labels::new(),
            annotations: Labels::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
        }
    }
}

impl Cluster {
    /// Adds a node claim.
    pub fn add_node(&mut self, new: NewNode, at: SimTime) -> NodeId {
        let id = NodeId::from_index(self.nodes.len());
        self.nodes.push(Node {
            name: Symbol::new(&new.name),
            drawn: new.drawn,
            origin: new.origin,
            labels: new.labels,
            annotations: new.annotations,
            taints: new.taints,
            startup_taints: new.startup_taints,
            capacity: Resources::new(),
            allocatable: Resources::new(),
            phase: NodePhase::Claimed,
            ready: false,
            initialized: false,
            created: at,
            deletion_requested: None,
            pods: Vec::new(),
            pods_changed: Position::default(),
            requested: Resources::new(),
        });
        self.live_nodes.push(id);
        self.note_change(Change::Node(id));
        id
    }

    /// The claim has an instance, with these labels; it is believed to hold and to offer so much.
    pub fn launch_node(&mut self, id: NodeId, labels: &Labels, capacity: Resources, allocatable: Resources) {
        self.change_node(id, |node| {
            node.phase = NodePhase::Launched;
            node.labels.extend(labels);
            (node.capacity, node.allocatable) = (capacity, allocatable);
        });
    }

    /// The node has registered, with what the real machine holds and offers, and with these labels and taints beside its own.
    pub fn register_node(
        &mut self,
        id: NodeId,
        capacity: Resources,
        allocatable: Resources,
        labels: &Labels,
        taints: &[Taint],
    ) {
        self.change_node(id, |node| {
            node.phase = NodePhase::Registered;
            node.labels.extend(labels);
            node.labels.set(well_known::HOSTNAME, node.name);
            for taint in taints {
                if !node.taints.contains(taint) {
                    node.taints.push(*taint);
                }
            }
            (node.capacity, node.allocatable) = (capacity, allocatable);
        });
    }

    /// The Node object is gone, and its instance is still there.
    pub fn unregister_node(&mut self, id: NodeId) {
        self.change_node(id, |node| {
            node.phase = NodePhase::Launched;
            node.ready = false;
        });
    }

    /// Says whether the node is Ready.
    pub fn set_ready(&mut self, id: NodeId, ready: bool) {
        self.change_node(id, |node| node.ready = ready);
    }

    /// Sets or removes an annotation.
    pub fn annotate_node(&mut self, id: NodeId, key: Symbol, value: Option<Symbol>) {
        self.change_node(id, |node| match value {
            Some(value) => node.annotations.set(key, value),
            None => node.annotations.remove(key),
        });
    }

    /// Replaces all labels.
    pub fn relabel_node(&mut self, id: NodeId, labels: Labels) {
        self.change_node(id, |node| node.labels = labels);
    }

    /// Replaces all taints.
    pub fn set_taints(&mut self, id: NodeId, taints: Vec<Taint>) {
        self.change_node(id, |node| node.taints = taints);
    }

    /// Adds a taint, unless the node has it.
    pub fn taint_node(&mut self, id: NodeId, taint: Taint) {
        if !self.node(id).taints.contains(&taint) {
            self.change_node(id, |node| node.taints.push(taint));
        }
    }

    /// Removes every taint with this key.
    pub fn untaint_node(&mut self, id: NodeId, key: Symbol) {
        self.change_node(id, |node| node.taints.retain(|taint| taint.key != key));
    }

    /// Karpenter counts the node as initialized.
    pub fn initialize_node(&mut self, id: NodeId) {
        self.change_node(id, |node| {
            node.initialized = true;
            node.labels.set(well_known::NODE_INITIALIZED, well_known::TRUE);
        });
    }

    /// The node's removal is decided, or, with `None`, is decided no more.
    pub fn set_deletion_requested(&mut self, id: NodeId, at: Option<SimTime>) {
        self.change_node(id, |node| node.deletion_requested = at);
    }

    /// The node's instance is on its way out.
    pub fn terminate_node(&mut self, id: NodeId) {
        self.change_node(id, |node| {
            node.phase = NodePhase::Terminating;
            node.ready = false;
        });
    }

    /// The node is no more.
    pub fn remove_node(&mut self, id: NodeId) {
        self.live_nodes.retain(|&live| live != id);
        self.change_node(id, |node| node.phase = NodePhase::Gone);
        self.gone_nodes.push_back((self.journal.end(), id));
        self.forget_nodes();
    }

    /// Of nodes that the journal does not name any more, and that no pod is on, labels, annotations, taints, and amounts are of no use
    /// to anybody.
    fn forget_nodes(&mut self) {
        let until = self.journal.start();
        while let Some((_, id)) = self.gone_nodes.pop_front_if(|(at, _)| *at <= until) {
            let node = &mut self.nodes[id.index()];
            if node.pods.is_empty() {
                (node.labels, node.annotations) = (Labels::new(), Labels::new());
                (node.taints, node.startup_taints, node.pods) = (Vec::new(), Vec::new(), Vec::new());
                for amounts in [&mut node.capacity, &mut node.allocatable, &mut node.requested] {
                    *amounts = Resources::new();
                }
            }
        }
    }

    fn change_node(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        change(&mut self.nodes[id.index()]);
        self.note_change(Change::Node(id));
    }
}
