//! What is there when a run begins, and has been for a while.
//!
//! The cluster has nodes and pods as old as they are; the record begins with the run, and has them as there from its first
//! instant on. What must not live here: which nodes and pods these are (`simulation`).

use super::World;
use super::node_operations::LaunchFacts;
use super::record::{EventKind, NodeFacts};
use crate::cluster::NewNode;
use crate::domain::labels::deprecated_node_labels;
use crate::domain::{Labels, NodeId, PodId, Resources, SimTime, Taint, WorkloadId};

/// A node that is there when a run begins.
#[derive(Debug)]
pub struct FoundNode<'f> {
    /// Name and origin.
    pub new: NewNode,
    /// When it was created.
    pub created: SimTime,
    /// Its machine; `None` where nothing is known of one, and nothing is billed.
    pub machine: Option<LaunchFacts>,
    /// Its labels.
    pub labels: &'f Labels,
    /// Its annotations.
    pub annotations: &'f Labels,
    /// Its taints.
    pub taints: &'f [Taint],
    /// What it holds.
    pub capacity: Resources,
    /// What it offers to pods.
    pub allocatable: Resources,
    /// Whether it is Ready.
    pub ready: bool,
    /// Whether whoever launched it counts it as initialized.
    pub initialized: bool,
}

/// How far a pod is that is there when a run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundPod {
    /// Its node.
    pub node: NodeId,
    /// Whether its containers run.
    pub running: bool,
    /// Whether it is Ready.
    pub ready: bool,
}

impl World {
    /// Adds a node that has been there since before the run began.
    pub fn find_node(&mut self, found: FoundNode<'_>) -> NodeId {
        let start = SimTime::ZERO;
        let FoundNode { new, created, machine, labels, annotations, taints, capacity, allocatable, ready, initialized } =
            found;
        let mut facts = NodeFacts::asked_for(new.name.clone(), new.origin, start);
        if let Some(machine) = &machine {
            facts.instance = Some(machine.instance.clone());
            facts.instance_type = Some(machine.instance_type);
            facts.zone = Some(machine.zone);
            facts.capacity_type = Some(machine.capacity_type);
            facts.arch = Some(machine.arch);
            facts.rate = machine.rate;
        }
        (facts.launched, facts.running, facts.registered) = (Some(start), Some(start), Some(start));
        facts.ready = ready.then_some(start);
        facts.initialized = initialized.then_some(start);
        (facts.capacity, facts.allocatable) = (self.shared(&capacity), self.shared(&allocatable));
        self.record.nodes.push(facts);
        self.settled.push(start);
        let id = self.cluster.add_node(new, created);
        self.cluster.launch_node(id, labels, capacity.clone(), allocatable.clone());
        // Whoever wrote the node down may have left them out.
        self.cluster.register_node(id, capacity, allocatable, &deprecated_node_labels(labels), &[]);
        self.cluster.set_taints(id, taints.to_vec());
        for (key, value) in annotations.iter() {
            self.cluster.annotate_node(id, key, Some(value));
        }
        self.cluster.set_ready(id, ready);
        if initialized {
            self.cluster.initialize_node(id);
        }
        self.note_node(id, start, EventKind::NodeFound, &age(start, created));
        id
    }

    /// Adds a pod that has been there since before the run began; a daemon's is pinned to its node.
    pub fn find_pod(
        &mut self,
        (workload, revision): (WorkloadId, u32),
        name: String,
        created: SimTime,
        pinned: Option<NodeId>,
    ) -> PodId {
        self.add_pod(workload, revision, pinned, name, created)
    }

    /// The pod has been on its node since before the run began.
    pub fn place_found_pod(&mut self, id: PodId, created: SimTime, found: FoundPod) {
        let start = SimTime::ZERO;
        self.cluster.bind_pod(id, found.node);
        let facts = self.record.pods.change(id);
        (facts.created, facts.found) = (start, true);
        (facts.scheduled, facts.node) = (Some(start), Some(found.node));
        if found.running {
            facts.started = Some(start);
            self.cluster.start_pod(id, created);
        }
        self.note_pod(id, start, EventKind::PodFound, &age(start, created));
        if found.running && found.ready {
            self.record.pods.change(id).ready = Some(start);
            self.cluster.ready_pod(id, created);
            self.count_replicas(self.cluster.pod(id).workload, start);
        }
    }
}

/// How old something is, in words.
fn age(now: SimTime, created: SimTime) -> String {
    let age = now.saturating_since(created);
    if age.as_micros() == 0 { String::new() } else { format!("{age} old") }
}
