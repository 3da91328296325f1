//! What happened: facts about every pod and node, the log of events with their causes, and samples over time.
//!
//! Appended while the simulation runs, read when it is over. No actor reads it: a decision that depended on the record
//! would depend on what somebody chose to record.

pub use super::availability::AvailabilityFacts;
pub use super::commands::{CommandFacts, ReplacementFacts};
pub use super::controller_loops::{ControllerLoop, ControllerLoops, LoopFacts};
pub use super::event_kind::EventKind;
pub use super::events::{Event, EventIter, Events};
pub use super::jobs::{JobFacts, JobOutcome, JobOutcomeKind};
pub use super::meters::{BudgetSample, Meter, ReplicaMemory, ServingSpell};
pub use super::obstacles::Obstacles;
pub use super::pods::{PodIter, Pods};
pub use super::reached_limits::{CapacityLimit, ReachedLimit};
pub use super::upgrades::{UpgradeFacts, UpgradeWay};
pub use super::vertical::{
    PressedFacts, RecommendationSample, ThrottledFacts, UseOfContainer, VerticalFacts, VerticalMeans,
};
pub use crate::cluster::{NodeEnd, NodeOrigin, WorkloadKind};
pub use crate::domain::CommandId;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::domain::workload::ObjectName;
use crate::domain::{
    HourlyRate, KubernetesVersion, Labels, Money, NodeId, ResourceName, Resources, SimDuration, SimTime, Symbol,
    WorkloadId,
};
use nodecast_karpenter::disruption::Obstacle;

/// Everything recorded about one run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// One entry for each workload, by [`WorkloadId`].
    pub workloads: Vec<WorkloadFacts>,
    /// How many of the replicas that each workload wants served, by [`WorkloadId`]; from the end of the warm-up on.
    pub availability: Vec<AvailabilityFacts>,
    /// One entry for each pod ever created, by [`PodId`](crate::domain::PodId).
    pub pods: Pods,
    /// One entry for each node or node claim ever created, by [`NodeId`].
    pub nodes: Vec<NodeFacts>,
    /// Jobs, in the order in which they began.
    pub jobs: Vec<JobFacts>,
    /// When Jobs of CronJobs were due by their schedules, in order, whether they were started or not.
    pub jobs_due: Vec<(WorkloadId, SimTime)>,
    /// One entry for each metric of each autoscaler of replicas, in order of application.
    pub metrics: Vec<MetricFacts>,
    /// Every change of a workload's replicas, in order.
    pub replica_changes: Vec<ReplicaChange>,
    /// Commands of Karpenter's disruption, by [`CommandId`].
    pub commands: Vec<CommandFacts>,
    /// What kept nodes from being consolidated.
    pub obstacles: Obstacles,
    /// Nodes that are drifted at the end and not on their way out, each with what keeps it from being replaced; nothing where its turn has
    /// not come.
    pub drifted: Vec<(NodeId, Option<Obstacle>)>,
    /// What controllers' loops took.
    pub controllers: ControllerLoops,
    /// Scale-ups of the Cluster Autoscaler, in order.
    pub scale_ups: Vec<ScaleUpFacts>,
    /// What happened, in order.
    pub events: Events,
    /// The cluster at regular instants.
    pub samples: Vec<Sample>,
    /// VerticalPodAutoscalers, in order of application.
    pub verticals: Vec<VerticalFacts>,
    /// How long containers were held back by their CPU limit, of workloads of which the scenario states what they use.
    pub throttled: Vec<ThrottledFacts>,
    /// Pods that kubelets evicted because their node ran out of memory.
    pub pressed: PressedFacts,
    /// Limits on nodes that kept pods waiting, in the order in which they were first reached.
    pub limits: Vec<ReachedLimit>,
    /// Updates and instance refreshes of node groups, in the order in which they began.
    pub upgrades: Vec<UpgradeFacts>,
    /// Steps of the timeline that found nothing to act on, with their time.
    pub unmet: Vec<(SimTime, String)>,
}

/// A workload that took part.
#[derive(Clone, Debug)]
pub struct WorkloadFacts {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it is.
    pub kind: WorkloadKind,
    /// Whether requests are simulated for it.
    pub has_load: bool,
    /// Whether its pods hold room for others and do nothing themselves, as its present template has it.
    pub placeholder: bool,
    /// The image of the first container of its present template.
    pub image: Box<str>,
    /// The labels of pods of its present template.
    pub labels: Labels,
    /// The name under which its replicas are counted together with those of others.
    pub part_of: Option<ObjectName>,
}

/// A metric of an autoscaler of replicas.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricFacts {
    /// Namespace and name of the HorizontalPodAutoscaler.
    pub autoscaler: ObjectName,
    /// The workload that it scales.
    pub workload: WorkloadId,
    /// The metric, as short as it is unambiguous: `cpu`, or the name of the series.
    pub name: String,
    /// What the value is compared with.
    pub target: f64,
    /// What both are in.
    pub unit: MetricUnit,
}

/// What the value of a metric is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricUnit {
    /// Mean use in percent of what pods request.
    PercentOfRequest,
    /// Units of the metric for each pod: CPUs, bytes, or whatever is counted.
    PerPod,
    /// Units of the metric as a whole.
    Total,
}

impl MetricUnit {
    /// The unit as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PercentOfRequest => "percent of request",
            Self::PerPod => "per pod",
            Self::Total => "total",
        }
    }
}

/// A change of the number of replicas that a workload is to have.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicaChange {
    /// When.
    pub at: SimTime,
    /// Of what.
    pub workload: WorkloadId,
    /// By whom, as the kind of the event.
    pub kind: EventKind,
    /// Replicas before.
    pub from: u32,
    /// Replicas after.
    pub to: u32,
    /// The values that led to it, or the reason where there are none.
    pub because: Box<str>,
}

/// The life of a pod; an instant that never came is `None`.
#[derive(Clone, Debug)]
pub struct PodFacts {
    /// Name.
    pub name: String,
    /// What made it.
    pub workload: WorkloadId,
    /// Which of the workload's templates it was made from: each has a ReplicaSet of its own.
    pub revision: u32,
    /// The position of its Job in [`Record::jobs`].
    pub job: Option<u32>,
    /// What the scheduler counted for it last.
    pub requests: Arc<Resources>,
    /// What it counted before, each with the instant at which the pod was resized where it runs, in order.
    pub requested_before: Vec<(SimTime, Arc<Resources>)>,
    /// Its priority.
    pub priority: i32,
    /// Whether it holds room for others and does nothing itself.
    pub placeholder: bool,
    /// When it was created, at the earliest the start of the run.
    pub created: SimTime,
    /// Whether it had its node when the run began: it has waited for nothing.
    pub found: bool,
    /// When the scheduler first found no node for it.
    pub unschedulable: Option<SimTime>,
    /// When it was bound to a node.
    pub scheduled: Option<SimTime>,
    /// When its containers ran.
    pub started: Option<SimTime>,
    /// When it was Ready.
    pub ready: Option<SimTime>,
    /// When it stopped being Ready while it was still wanted, and was not Ready again.
    pub cut_off: Option<SimTime>,
    /// When its deletion was asked for.
    pub deletion_requested: Option<SimTime>,
    /// When it was gone.
    pub removed: Option<SimTime>,
    /// The node it was bound to.
    pub node: Option<NodeId>,
    /// Whether it was evicted rather than deleted by its owner.
    pub evicted: bool,
    /// The grace period that its deletion gave it.
    pub grace: Option<SimDuration>,
    /// When it took its share of simulated requests or messages; nothing where there are none for its workload.
    pub serving: Vec<ServingSpell>,
}

impl PodFacts {
    /// What the scheduler counted for it at an instant; just as it was resized, the new amounts.
    pub fn requests_at(&self, at: SimTime) -> &Resources {
        self.requested_before.iter().find(|(until, _)| at < *until).map_or(&self.requests, |(_, before)| before)
    }

    /// The spans between two instants in which it requested the same, with their ends.
    pub fn requests_between(
        &self,
        from: SimTime,
        until: SimTime,
    ) -> impl Iterator<Item = (SimTime, SimTime, &Resources)> {
        let last = std::iter::once((SimTime::FAR_FUTURE, &*self.requests));
        let all = self.requested_before.iter().map(|(until, before)| (*until, &**before)).chain(last);
        let spans = all.scan(SimTime::from_micros(i64::MIN), |start, (end, requests)| {
            let item = (*start, end, requests);
            *start = end;
            Some(item)
        });
        let cut = spans.map(move |(start, end, requests)| (start.max(from), end.min(until), requests));
        cut.filter(|(start, end, _)| start < end)
    }
}

impl Record {
    /// Claims of Karpenter whose launch failed without a call to EC2.
    pub fn failed_without_call(&self) -> impl Iterator<Item = &NodeFacts> {
        let (mut called, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for event in self.events.iter() {
            match event.kind {
                EventKind::LaunchRequested => called.extend(event.node),
                EventKind::LaunchFailed => failed.extend(event.node.filter(|node| !called.contains(node))),
                _ => {}
            }
        }
        let nodes = failed.into_iter().filter_map(|node| self.nodes.get(node.index()));
        let is_refused = |node: &&NodeFacts| {
            node.end == Some(NodeEnd::LaunchFailed) && matches!(node.origin, NodeOrigin::NodePool(_))
        };
        nodes.filter(is_refused)
    }
}

/// What a claim of Karpenter's states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimFacts {
    /// Requests of its pods and daemons together.
    pub requests: Resources,
    /// How many instance types it may have.
    pub types: usize,
    /// The capacity types that it may have, in order of name.
    pub capacity_types: Vec<Symbol>,
}

/// The life of a node, from the claim to the end of the instance; an instant that never came is `None`.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// Name (of the node claim until a node has registered).
    pub name: String,
    /// What asked for it.
    pub origin: NodeOrigin,
    /// The id of the instance, once launched.
    pub instance: Option<Box<str>>,
    /// The instance type, once launched.
    pub instance_type: Option<Symbol>,
    /// The zone, once launched.
    pub zone: Option<Symbol>,
    /// `spot` or `on-demand`, once launched.
    pub capacity_type: Option<Symbol>,
    /// `amd64` or `arm64`, once launched.
    pub arch: Option<Symbol>,
    /// The release of its kubelet, once launched.
    pub kubelet_version: Option<KubernetesVersion>,
    /// Price per hour at launch.
    pub rate: HourlyRate,
    /// What it holds. Nodes of an instance type mostly share these amounts.
    pub capacity: Arc<Resources>,
    /// What it offers to pods.
    pub allocatable: Arc<Resources>,
    /// When the claim was made, or the node group asked for the instance.
    pub requested: SimTime,
    /// When EC2 answered with an instance.
    pub launched: Option<SimTime>,
    /// When the instance entered `running` and billing began.
    pub running: Option<SimTime>,
    /// When the kubelet registered the node.
    pub registered: Option<SimTime>,
    /// When the node was Ready first.
    pub ready: Option<SimTime>,
    /// When it stopped being Ready after that, and when it was so again, in order; nothing of how it ended.
    pub not_ready: Vec<(SimTime, Option<SimTime>)>,
    /// When Karpenter counted it initialized.
    pub initialized: Option<SimTime>,
    /// When its removal was decided.
    pub deletion_requested: Option<SimTime>,
    /// When its last pod that had to leave was gone.
    pub drained: Option<SimTime>,
    /// When the instance left `running` and billing ended.
    pub terminating: Option<SimTime>,
    /// When the instance was gone.
    pub terminated: Option<SimTime>,
    /// Why it ended.
    pub end: Option<NodeEnd>,
    /// Time-integral of CPU requested by pods while Ready, in milli-CPU microseconds.
    pub requested_cpu: i128,
    /// Time-integral of memory requested by pods while Ready, in byte microseconds.
    pub requested_memory: i128,
    /// The same of each kind of accelerator that pods requested, in device microseconds.
    pub requested_accelerators: Vec<(ResourceName, i128)>,
    /// What its claim states, if Karpenter made one.
    pub claim: Option<ClaimFacts>,
    /// Bytes of images pulled to it, as counted at the end of the run.
    pub image_bytes: i64,
}

impl NodeFacts {
    /// Whether it is the machine of a pod on Fargate, which EC2 launches for nobody.
    pub const fn is_of_fargate(&self) -> bool {
        matches!(self.origin, NodeOrigin::Fargate(_))
    }

    /// A node that is asked for, of which nothing more is known.
    pub(super) fn asked_for(name: String, origin: NodeOrigin, at: SimTime) -> Self {
        Self {
            name,
            origin,
            instance: None,
            instance_type: None,
            zone: None,
            capacity_type: None,
            arch: None,
            kubelet_version: None,
            rate: HourlyRate::ZERO,
            capacity: Arc::default(),
            allocatable: Arc::default(),
            requested: at,
            launched: None,
            running: None,
            registered: None,
            ready: None,
            not_ready: Vec::new(),
            initialized: None,
            deletion_requested: None,
            drained: None,
            terminating: None,
            terminated: None,
            end: None,
            requested_cpu: 0,
            requested_memory: 0,
            requested_accelerators: Vec::new(),
            claim: None,
            image_bytes: 0,
        }
    }

    /// Whether it is to go and pods that have to leave are still on it: it drains, and is billed.
    pub const fn is_draining(&self) -> bool {
        let went_on = self.drained.is_some() || self.terminating.is_some() || self.terminated.is_some();
        self.deletion_requested.is_some() && self.registered.is_some() && !went_on
    }
}

/// A scale-up of the Cluster Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScaleUpFacts {
    /// When it was asked for, or found to have failed.
    pub at: SimTime,
    /// Nodes asked for.
    pub nodes: u32,
    /// Why it failed, as the Cluster Autoscaler's metrics write it; `None` if it was granted.
    pub failure: Option<&'static str>,
}

/// The cluster at one instant.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// When.
    pub at: SimTime,
    /// Pods that wait for a node, daemons left out.
    pub pods_pending: u32,
    /// Pods bound to a node and not Ready, daemons left out.
    pub pods_starting: u32,
    /// Pods that are Ready, daemons left out.
    pub pods_ready: u32,
    /// Node claims without a Ready node.
    pub nodes_starting: u32,
    /// Ready nodes from Spot.
    pub nodes_spot: u32,
    /// Ready nodes bought On-Demand.
    pub nodes_on_demand: u32,
    /// Ready nodes of pods on Fargate.
    pub nodes_fargate: u32,
    /// Nodes that Karpenter's methods last found they may take, in the order of
    /// [`DisruptionReason::ALL`](crate::domain::node_pool::DisruptionReason::ALL).
    pub nodes_eligible: [u32; 3],
    /// Nodes that the Cluster Autoscaler takes for unneeded.
    pub nodes_unneeded: u32,
    /// What compute costs per hour, net: running instances, and what was bought ahead of them. The end of the run fills it in,
    /// since only the bill knows what covers what.
    pub cost_rate: HourlyRate,
    /// What compute cost since the sample before, likewise.
    pub cost: Money,
    /// CPU requested on Ready nodes, in thousandths.
    pub cpu_requested_milli: i64,
    /// CPU that Ready nodes offer, in thousandths.
    pub cpu_allocatable_milli: i64,
    /// Memory requested on Ready nodes, in bytes.
    pub memory_requested_bytes: i64,
    /// Memory that Ready nodes offer, in bytes.
    pub memory_allocatable_bytes: i64,
    /// One entry for each workload that is not a DaemonSet, in order of id.
    pub workloads: Vec<WorkloadSample>,
    /// What autoscalers of replicas last read, those left out that have not looked yet.
    pub metrics: Vec<MetricSample>,
    /// One entry for each queue, in the order of the scenario.
    pub queues: Vec<QueueSample>,
    /// One entry for each workload with requests or messages, in order of id.
    pub meters: Vec<Meter>,
    /// One entry for each PodDisruptionBudget, in order of application.
    pub budgets: Vec<BudgetSample>,
}

/// A queue at one instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueSample {
    /// Messages that nobody works on yet.
    pub waiting: f64,
    /// Messages that are being worked on.
    pub in_flight: f64,
    /// Messages that arrive in a second.
    pub arrival_rate: f64,
    /// Messages that are worked off in a second.
    pub throughput: f64,
}

impl Sample {
    /// What was read of the metric at a position of [`Record::metrics`]. Metrics stand here in another order, which hardly
    /// ever changes from sample to sample: `place` is where this one stood in the sample looked at before.
    pub fn metric(&self, position: usize, place: &mut usize) -> Option<&MetricSample> {
        let is_own = |metric: &MetricSample| metric.metric as usize == position;
        if !self.metrics.get(*place).is_some_and(is_own) {
            *place = self.metrics.iter().position(is_own)?;
        }
        self.metrics.get(*place)
    }
}

/// What an autoscaler last read of one of its metrics.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MetricSample {
    /// Position in [`Record::metrics`].
    pub metric: u32,
    /// The value as the autoscaler's status shows it, in the metric's unit; `None` if it could not be read.
    pub value: Option<f64>,
    /// Replicas that this metric alone asks for, before limits and stabilization.
    pub asks_for: Option<u32>,
}

/// A workload at one instant.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadSample {
    /// Which workload.
    pub workload: WorkloadId,
    /// Replicas wanted.
    pub replicas_desired: u32,
    /// Replicas that are Ready.
    pub replicas_ready: u32,
    /// Requests per second completed; zero without load.
    pub requests_per_second: f64,
    /// CPU in use by all replicas together, in thousandths; zero without load.
    pub cpu_used_milli: f64,
    /// Memory in use by all Ready replicas together, in bytes; `None` without usage data.
    pub memory_used_bytes: Option<i64>,
    /// Mean response time in seconds, `None` when no request was served.
    pub latency_mean_seconds: Option<f64>,
    /// 99th percentile of the response time in seconds, `None` when no request was served.
    pub latency_p99_seconds: Option<f64>,
}
