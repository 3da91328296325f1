//! The simulated cluster: its state with indices, changed through named operations, and the record of what happened.
//!
//! Every change goes through an operation that keeps the indices true and appends to the [`record`]. Actors read the
//! state freely; nobody but an operation writes it.
//!
//! What must not live here: when something happens (`actors`), what ought to happen (`policy`), money (`cloud`).

pub mod availability;
pub mod commands;
pub mod controller_loops;
pub mod event_kind;
pub mod node_operations;
pub mod obstacles;
pub mod pod_operations;
pub mod record;
pub mod state;

pub use record::Record;
pub use state::{DrawnNames, Node, NodePhase, Pod, PodPhase, Workload};

use crate::domain::{NodeId, PodId, SimDuration, SimTime, WorkloadId};
use record::{Event, EventKind};

/// The state of one simulated cluster.
#[derive(Debug, Default)]
pub struct World {
    pods: Vec<Pod>,
    nodes: Vec<Node>,
    workloads: Vec<Workload>,
    live_nodes: Vec<NodeId>,
    counts: Counts,
    /// Whether some pod so far has cared where others are.
    topology: bool,
    /// Changes that leave no event behind.
    unrecorded: u64,
    /// Changes, with an event or without, that move no pod and touch no node; see [`World::placement_revision`].
    bystanders: u64,
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

/// Pods and events for which room is made for each hour of a run.
const PODS_AN_HOUR: usize = 1_024;
const EVENTS_AN_HOUR: usize = 4_096;
/// Hours for which room is made at most.
const HOURS_MAX: usize = 48;

impl World {
    /// An empty cluster, with room for what happens in a run of this duration. Room that stays empty costs no memory, and lists
    /// of megabytes that grow step by step are moved each time.
    pub fn with_room_for(duration: SimDuration, sample_interval: SimDuration) -> Self {
        let micros = duration.as_micros().max(0);
        let hours = usize::try_from(micros / 3_600_000_000).unwrap_or(0).min(HOURS_MAX);
        let samples = usize::try_from(micros / sample_interval.as_micros().max(1)).unwrap_or(0).min(hours * 3_600);
        let mut world = Self { pods: Vec::with_capacity(hours * PODS_AN_HOUR), ..Self::default() };
        world.record.pods = Vec::with_capacity(hours * PODS_AN_HOUR);
        world.record.events = Vec::with_capacity(hours * EVENTS_AN_HOUR);
        world.record.samples = Vec::with_capacity(samples + 2);
        world
    }

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

    /// Grows with every change of a node, of which pods it has, of what these ask for, and of whether they have ended or are on
    /// their way out; not as pods come to be, start, or become Ready, nor as workloads are scaled.
    pub fn placement_revision(&self) -> u64 {
        self.revision() - self.bystanders
    }

    /// Whether any pod, or what pods are made from, has asked so far to be with others, apart from them or spread among them.
    pub fn has_topology(&self) -> bool {
        self.topology
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
        self.conclude_replicas(now);
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

#[cfg(test)]
mod tests {
    use super::World;
    use super::node_operations::NewNode;
    use super::pod_operations::NewWorkload;
    use super::record::{EventKind, NodeOrigin, WorkloadKind};
    use crate::domain::workload::ObjectName;
    use crate::domain::{LabelSelector, Labels, SimDuration, SimTime, Symbol};

    #[test]
    fn placement_changes_as_pods_come_to_nodes_and_leave_them_and_not_as_they_start() {
        let (mut world, at) = (World::default(), SimTime::ZERO);
        let web = world.add_workload(NewWorkload {
            name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") },
            kind: WorkloadKind::Deployment,
            selector: LabelSelector::default(),
            template: std::sync::Arc::default(),
            replicas: 1,
            has_load: false,
        });
        let node = world.add_node(
            NewNode {
                name: "default-00001".to_owned(),
                drawn: None,
                origin: NodeOrigin::NodePool(Symbol::new("default")),
                labels: Labels::new(),
                taints: Vec::new(),
                startup_taints: Vec::new(),
                reason: String::new(),
            },
            at,
        );
        let mut seen = (world.revision(), world.placement_revision(), world.node(node).pods_revision);
        let mut next = |world: &World| {
            let before = seen;
            seen = (world.revision(), world.placement_revision(), world.node(node).pods_revision);
            (seen.0 > before.0, seen.1 > before.1, seen.2 > before.2)
        };
        let (all, none) = ((true, true, true), (true, false, false));
        let pod = world.create_pod(web, None, at);
        assert_eq!(next(&world), none, "it has no node yet");
        world.mark_unschedulable(pod, at, String::new);
        assert_eq!(next(&world), none);
        world.bind_pod(pod, node, at);
        assert_eq!(next(&world), all);
        world.start_pod(pod, at);
        world.ready_pod(pod, at);
        assert_eq!(next(&world), none);
        world.unready_pod(pod, at);
        assert_eq!(next(&world), none);
        world.restart_pod(pod, at, "out of memory");
        assert_eq!(next(&world), none);
        world.rescale(web, 2, at, EventKind::Rescaled, ("", ""));
        assert_eq!(next(&world), none);
        world.ready_node(node, at);
        assert_eq!(next(&world), (true, true, false));
        world.request_pod_deletion(pod, at, SimDuration::from_secs(30), true, "");
        assert_eq!(next(&world), all);
        world.remove_pod(pod, at);
        assert_eq!(next(&world), all);
    }
}
