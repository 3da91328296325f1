//! The simulated cluster, changed through named operations, and the record of what happened to it.
//!
//! Every change goes through an operation that changes the [`cluster`] and appends to the [`record`]. Actors read
//! the cluster freely; nobody but an operation writes it.
//!
//! What must not live here: when something happens (`actors`), what ought to happen (the deciding crates), money (`ec2`).

mod actions;
pub mod availability;
pub mod commands;
pub mod controller_loops;
pub mod event_kind;
pub mod events;
pub mod found;
pub mod jobs;
pub mod meters;
pub mod node_operations;
pub mod obstacles;
pub mod outcome;
mod packed;
pub mod pod_operations;
pub mod pods;
pub mod reached_limits;
pub mod record;
pub mod upgrades;
pub mod vertical;

pub use outcome::Outcome;
pub use record::Record;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use nodecast_ec2 as cloud;
use nodecast_model::{cluster, control_plane, domain};

use crate::cluster::Cluster;
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::ObjectName;
use crate::domain::{Check, PodId, Resources, SimDuration, SimTime, WorkloadId};
use nodecast_karpenter::machine::{Fact, Subject};
use record::{Event, EventKind};

/// One simulated cluster, and what happened to it. Whoever holds it reads the cluster through it.
#[derive(Debug, Default)]
pub struct World {
    cluster: Cluster,
    record: Record,
    /// Up to when the integrals of each node count.
    settled: Vec<SimTime>,
    /// The number of the next pod of each workload.
    next_pods: Vec<u32>,
    /// Workloads whose replicas are counted together.
    parts: BTreeMap<ObjectName, Vec<WorkloadId>>,
    /// The different amounts that nodes hold and offer: nodes by the thousand have those of a few instance types.
    amounts: FxHashSet<Arc<Resources>>,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl From<Fact> for EventKind {
    fn from(fact: Fact) -> Self {
        match fact {
            Fact::ClaimsComputed => EventKind::ClaimsComputed,
            Fact::LaunchRequested => EventKind::LaunchRequested,
            Fact::SpotFallback => EventKind::SpotFallback,
            Fact::CallThrottled => EventKind::CallThrottled,
            Fact::CallFailed => EventKind::CallFailed,
            Fact::LaunchFailed => EventKind::LaunchFailed,
            Fact::PodNotPlaced => EventKind::PodNotPlaced,
            Fact::NodeTainted => EventKind::NodeTainted,
            Fact::NodeUntainted => EventKind::NodeUntainted,
            Fact::NodeDrifted => EventKind::NodeDrifted,
            Fact::NodeEmpty => EventKind::NodeEmpty,
            Fact::NodeInUse => EventKind::NodeInUse,
            Fact::AwaitingVolumeDetachment => EventKind::AwaitingVolumeDetachment,
        }
    }
}

/// Pods for which room is made for each hour of a run.
const PODS_AN_HOUR: usize = 1_024;
/// Hours for which room is made at most.
const HOURS_MAX: usize = 48;

impl World {
    /// An empty cluster, with room for what happens in a run of this duration. Room that stays empty costs no memory, and lists
    /// of megabytes that grow step by step are moved each time.
    pub fn with_room_for(duration: SimDuration, sample_interval: SimDuration) -> Self {
        let micros = duration.as_micros().max(0);
        let hours = usize::try_from(micros / 3_600_000_000).unwrap_or(0).min(HOURS_MAX);
        let samples = usize::try_from(micros / sample_interval.as_micros().max(1)).unwrap_or(0).min(hours * 3_600);
        let mut world = Self { cluster: Cluster::with_capacity(hours * PODS_AN_HOUR), ..Self::default() };
        world.record.pods = record::Pods::with_capacity(hours * PODS_AN_HOUR);
        world.record.samples = Vec::with_capacity(samples + 2);
        world
    }

    /// Says whether what is derived from the cluster is made from nothing too at each use, and compared.
    pub fn set_check(&mut self, check: Check) {
        self.cluster.set_check(check);
    }

    /// The name of a pod.
    pub fn pod_name(&self, id: PodId) -> &str {
        self.record.pods.name(id).unwrap_or_default()
    }

    /// What Karpenter tells of something.
    pub fn note_of(&mut self, subject: Subject, at: SimTime, fact: Fact, text: &str) {
        match subject {
            Subject::All => self.note(at, fact.into(), None, text),
            Subject::Node(node) => self.note_node(node, at, fact.into(), text),
            Subject::Pod(pod) => self.note_pod(pod, at, fact.into(), text),
        }
    }

    /// What happened so far, for those who write it out.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Ends the simulation: the record is all that is left.
    pub fn into_record(mut self, now: SimTime) -> Record {
        for id in self.cluster.live_nodes().to_vec() {
            self.settle_node(id, now);
        }
        self.conclude_replicas(now);
        self.record
    }

    /// Records something that concerns the cluster as a whole or a workload.
    pub fn note(&mut self, at: SimTime, kind: EventKind, workload: Option<WorkloadId>, message: impl AsRef<str>) {
        let message = message.as_ref();
        self.record.events.push(Event { at, kind, pod: None, node: None, workload, command: None, message });
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

    /// Removes the disruption budget of this name; whether there was one.
    pub fn remove_budget(&mut self, name: ObjectName) -> bool {
        self.cluster.remove_budget(name)
    }

    /// Notes that a step of the timeline found nothing to act on.
    pub fn note_unmet(&mut self, at: SimTime, what: String) {
        self.record.unmet.push((at, what));
    }

    /// Adds a disruption budget, or changes the one of its name.
    pub fn apply_budget(&mut self, budget: PodDisruptionBudget) {
        self.cluster.apply_budget(budget);
    }

    /// Records a sample.
    pub fn note_sample(&mut self, sample: record::Sample) {
        self.record.samples.push(sample);
    }
}
