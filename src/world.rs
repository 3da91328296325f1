//! The simulated cluster: its state with indices, changed through named operations, and the record of what happened.
//!
//! Every change goes through an operation that keeps the indices true and appends to the [`record`]. Actors read the
//! state freely; nobody but an operation writes it.
//!
//! What must not live here: when something happens (`actors`), what ought to happen (`policy`), money (`cloud`).

pub mod commands;
pub mod event_kind;
pub mod node_operations;
pub mod obstacles;
pub mod pod_operations;
pub mod record;
pub mod state;

pub use record::Record;
pub use state::{Node, NodePhase, Pod, PodPhase, Workload};

use crate::domain::{NodeId, PodId, SimTime, WorkloadId};
use record::{Event, EventKind};

/// The state of one simulated cluster.
#[derive(Debug, Default)]
pub struct World {
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    workloads: Vec<Workload>,
    live_nodes: Vec<NodeId>,
    counts: Counts,
    /// Changes that leave no event behind.
    unrecorded: u64,
    record: Record,
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

impl World {
    /// The pod `id`, which may be gone.
    pub fn pod(&self, id: PodId) -> &Pod {
        &self.pods[id.index()]
    }

    /// The name of a pod.
    pub fn pod_name(&self, id: PodId) -> &str {
        &self.record.pods[id.index()].name
    }

    /// The node `id`, which may be gone.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
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

    /// Pods of workloads other than DaemonSets, by state.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Grows with every change of a pod, a node or a workload: while it stays the same, so do they.
    pub fn revision(&self) -> u64 {
        self.record.events.len() as u64 + self.unrecorded
    }

    /// What happened so far, for those who write it out.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Ends the simulation: the record is all that is left.
    pub fn into_record(mut self, now: SimTime) -> Record {
        for id in std::mem::take(&mut self.live_nodes) {
            self.settle_node(id, now);
        }
        self.record
    }

    /// Records something that concerns the cluster as a whole or a workload.
    pub fn note(&mut self, at: SimTime, kind: EventKind, workload: Option<WorkloadId>, message: impl Into<Box<str>>) {
        self.record.event(Event { at, kind, pod: None, node: None, workload, command: None, message: message.into() });
    }

    /// Records that something was noticed about a pod.
    pub fn note_pod(&mut self, id: PodId, at: SimTime, kind: EventKind, message: &str) {
        self.pod_event(at, kind, id, message);
    }

    /// Records that an autoscaler looks at a metric; returns the metric's position in the record.
    pub fn add_metric(&mut self, metric: record::MetricFacts) -> u32 {
        self.record.metrics.push(metric);
        (self.record.metrics.len() - 1) as u32
    }

    /// Records a scale-up of the Cluster Autoscaler.
    pub fn note_scale_up(&mut self, scale_up: record::ScaleUpFacts) {
        self.record.scale_ups.push(scale_up);
    }

    /// Records a sample.
    pub fn note_sample(&mut self, sample: record::Sample) {
        self.record.samples.push(sample);
    }
}
