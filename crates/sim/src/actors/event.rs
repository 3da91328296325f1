//! Everything that can happen.

use crate::domain::{NodeId, PodId, Symbol, WorkloadId};
use nodecast_karpenter::machine::Timer;

/// A volume's attachment to a node, by its place among all that there were.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttachmentId(pub(super) u32);

/// Something that happens at an instant: small and `Copy`, naming what it concerns by id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A step of the scenario's timeline.
    TimelineStep(u32),
    /// Something happens to a workload controller, or to a recorded trace of pods.
    Workloads(WorkloadEvent),
    /// Something happens to kube-scheduler.
    Scheduler(SchedulerEvent),
    /// Something happens to the containers of a pod.
    Kubelet(KubeletEvent),
    /// Something happens to a machine and its node.
    Node(NodeEvent),
    /// Something happens to requests and messages.
    Load(LoadEvent),
    /// Something happens to those who measure.
    Metrics(MetricsEvent),
    /// Something happens to an autoscaler of replicas.
    Replicas(ReplicaEvent),
    /// Something happens to an Auto Scaling group.
    Group(GroupEvent),
    /// Something happens to instances, from EC2's side.
    Cloud(CloudEvent),
    /// A volume is detached from a node.
    VolumeDetached(AttachmentId),
    /// Something happens to the node autoscaler.
    NodeAutoscaler(AutoscalerEvent),
    /// The cluster is sampled for the report.
    Sample,
    /// A call of `kubectl drain` looks again: which of those of the run.
    DrainLook(u32),
    /// Something happens to the Vertical Pod Autoscaler.
    Vertical(VerticalEvent),
    /// Something happens to a pod on Fargate.
    Fargate(FargateEvent),
}

/// Something that happens to a pod on Fargate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FargateEvent {
    /// It has its launch token, or asks for vCPUs of the quota again.
    Token(PodId),
    /// Its machine has registered.
    Started(PodId),
    /// A pod that had finished is deleted, and its machine goes.
    Deleted(NodeId),
}

/// Something that happens to a workload controller, or to a recorded trace of pods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkloadEvent {
    /// A workload's controller looks at its pods.
    Reconcile(WorkloadId),
    /// The DaemonSet controller looks whether the node of a daemon that is gone wants another.
    DaemonGone(PodId),
    /// A pod that ends by itself has done its work.
    JobPodDone(PodId),
    /// A sync of the ReplicaSet controller goes on: which of those that run at once.
    ReplicaSetSync(u32),
    /// The DaemonSet controller may make the pod of a node.
    DaemonDue(WorkloadId, NodeId),
    /// Pods of the trace are created.
    TraceStep,
    /// The recorded end of a pod of the trace.
    TracePodEnds(PodId),
    /// Pods of the trace that were lost are made again.
    TraceAgain,
    /// The time to live of Jobs that have ended may be over.
    JobExpires(WorkloadId),
}

/// Something that happens to kube-scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SchedulerEvent {
    /// The scheduler takes the next pod.
    ScheduleNext,
    /// The scheduler moves pods that have waited long enough back to its queue.
    FlushUnschedulable,
    /// A call of kube-scheduler about a pod has its turn.
    SchedulerCall(PodId),
}

/// Something that happens to the containers of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KubeletEvent {
    /// A pod's containers run.
    PodStarted(PodId),
    /// A pod's readiness probe succeeds.
    PodReady(PodId),
    /// A probe may give up on one of the pod's containers.
    ProbeGivesUp(PodId),
    /// A deleted pod's containers have stopped.
    PodStopped(PodId),
    /// The application of a pod whose containers run already takes messages from now on.
    WorkerStarts(PodId),
}

/// Something that happens to a machine and its node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeEvent {
    /// An instance enters `running`.
    InstanceRunning(NodeId),
    /// A kubelet registers its node.
    NodeRegistered(NodeId),
    /// A node reports Ready.
    NodeReady(NodeId),
    /// A component removes the startup taint with a key from a node.
    StartupTaintRemoved(NodeId, Symbol),
    /// The driver of EBS volumes of a node reports how many it attaches.
    DriverRegistered(NodeId),
    /// EC2 gives up a launch that it had accepted.
    LaunchAborted(NodeId),
    /// A node has not been heard of for too long.
    NodeUnreachable(NodeId),
    /// A pod has been on an unreachable node for as long as it tolerates.
    PatienceOver(PodId),
    /// A pod has been on a node with a `NoExecute` taint for as long as it tolerates.
    TaintPatienceOver(PodId),
    /// A terminated instance is gone.
    InstanceGone(NodeId),
    /// Instances that are to end are terminated by a call.
    TerminationsSent,
    /// EC2's status checks of an instance begin to fail.
    StatusCheckFails(NodeId),
    /// The CPU credits of a node are spent.
    CreditsSpent(NodeId),
    /// The garbage collector of pods finds those of a node that somebody deleted.
    OrphansCollected(NodeId),
}

/// Something that happens to requests and messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoadEvent {
    /// The load's next step: which load, which step.
    LoadStep(u32, u32),
    /// A load changes by itself: the backlog is gone or the last request answered.
    LoadShift(u32),
    /// The memory of a load's pods is held against their limits.
    MemoryCheck(u32),
    /// Messages arrive at another rate: which queue, which step.
    QueueStep(u32, u32),
    /// A queue changes by itself: nothing waits any more.
    QueueShift(u32),
    /// Pods use another amount of CPU beside requests: which usage, which step.
    CpuUsageStep(u32, u32),
    /// The same of memory.
    MemoryUsageStep(u32, u32),
    /// The memory that a pod uses beside requests is held against its limits.
    MemoryLook(PodId),
    /// The memory that the pods of a node use is held against what it offers.
    NodeMemoryLook(NodeId),
}

/// Something that happens to those who measure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MetricsEvent {
    /// metrics-server reads a node.
    MetricsTick(NodeId),
    /// Prometheus scrapes the targets of a series.
    Scrape(u32),
}

/// Something that happens to an autoscaler of replicas.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReplicaEvent {
    /// A HorizontalPodAutoscaler is due.
    ReplicaSync(u32),
    /// KEDA polls the triggers of a ScaledObject.
    KedaPoll(u32),
    /// KEDA polls the triggers of a ScaledJob.
    JobPoll(u32),
    /// The metrics of a HorizontalPodAutoscaler are there.
    ReplicaMetrics(u32),
}

/// Something that happens to the Vertical Pod Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VerticalEvent {
    /// The recommender reads what pods use and recommends.
    Recommend,
    /// The updater looks at pods.
    Update,
}

/// Something that happens to an Auto Scaling group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupEvent {
    /// An Auto Scaling group acts: its place in the setup.
    GroupActs(u32),
    /// A group's instance is in service.
    GroupInService(NodeId),
    /// A health check finds that a group's instance is gone.
    GroupNoticesLoss(NodeId),
    /// The warm pool of a group is tended: its place in the setup.
    GroupWarmPool(u32),
    /// A health check looks at a group's instance whose status checks have failed.
    GroupStatusCheck(NodeId),
    /// Somebody other than Karpenter looks whether the node that he drains is empty: EKS, or the termination handler.
    GroupDrainPoll(NodeId),
    /// An update or an instance refresh of a group proceeds: the group's place in the setup.
    GroupUpkeep(u32),
    /// EKS looks at a node of a managed group that has not been Ready for too long.
    GroupRepair(NodeId),
}

/// Something that happens to instances, from EC2's side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloudEvent {
    /// An event of a pool's market begins to be felt: the pool by its number, the event by its place in time.
    PoolWarned(u32, u32),
    /// EC2 begins to reclaim from a pool.
    PoolReclaims(u32, u32),
    /// EC2 gives notice to an instance.
    InterruptionNotice(NodeId),
    /// The time after a notice is over.
    InterruptionDue(NodeId),
    /// AWS Node Termination Handler acts on what EC2 told a node's instance: a notice, or else a recommendation.
    HandlerActs(NodeId, bool),
    /// EC2 takes back the instances of a Capacity Block: its place in the setup.
    BlockCloses(u32),
    /// A fault begins: its place in the setup.
    FaultBegins(u32),
    /// A fault ends.
    FaultEnds(u32),
}

/// Something that happens to a node autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AutoscalerEvent {
    /// To Karpenter.
    Karpenter(KarpenterEvent),
    /// To the Cluster Autoscaler.
    ClusterAutoscaler(LoopEvent),
}

/// Something that happens to Karpenter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KarpenterEvent {
    /// One of its timers fires.
    Timer(Timer),
    /// It reads the notice of a node's interruption from its queue.
    InterruptionMessage(NodeId),
    /// It sees that a capacity reservation has ended.
    ReservationEnded(Symbol),
}

/// Something that happens to the Cluster Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopEvent {
    /// Its main loop runs once.
    Iteration,
    /// The time that an iteration took is over.
    Concluded,
    /// It goes on with the removal of a node.
    Removal(NodeId),
    /// It deletes the nodes of a group that it has gathered: the group's place in the setup.
    Deletes(u32),
    /// A call of its main loop has returned.
    Called,
    /// An event is posted.
    Posted,
    /// The call that taints a node has returned.
    Tainted(NodeId),
    /// The call that evicts a pod from a node has returned.
    Evicted(NodeId, PodId),
    /// The calls have returned that ask whether the pods of a node are gone.
    Checked(NodeId),
}

macro_rules! nested {
    ($($variant:ident($event:ty)),* $(,)?) => {
        $(impl From<$event> for Event {
            fn from(event: $event) -> Self {
                Self::$variant(event)
            }
        })*
    };
}

nested!(
    Workloads(WorkloadEvent),
    Scheduler(SchedulerEvent),
    Kubelet(KubeletEvent),
    Node(NodeEvent),
    Load(LoadEvent),
    Metrics(MetricsEvent),
    Replicas(ReplicaEvent),
    Group(GroupEvent),
    Cloud(CloudEvent),
    NodeAutoscaler(AutoscalerEvent),
    Fargate(FargateEvent),
    Vertical(VerticalEvent),
);

impl From<KarpenterEvent> for Event {
    fn from(event: KarpenterEvent) -> Self {
        Self::NodeAutoscaler(AutoscalerEvent::Karpenter(event))
    }
}

impl From<LoopEvent> for Event {
    fn from(event: LoopEvent) -> Self {
        Self::NodeAutoscaler(AutoscalerEvent::ClusterAutoscaler(event))
    }
}

/// Priority classes: the order in which things happen at one instant.
pub mod class {
    use crate::engine::PriorityClass;

    /// What befalls the cloud: faults and the market.
    pub const CLOUD: PriorityClass = PriorityClass(5);
    /// What people do: the timeline.
    pub const PEOPLE: PriorityClass = PriorityClass(10);
    /// Metric scrapes.
    pub const METRICS: PriorityClass = PriorityClass(20);
    /// Machines, kubelets and pods.
    pub const MACHINES: PriorityClass = PriorityClass(40);
    /// Load.
    pub const LOAD: PriorityClass = PriorityClass(50);
    /// Workload controllers.
    pub const CONTROLLERS: PriorityClass = PriorityClass(60);
    /// kube-scheduler.
    pub const SCHEDULER: PriorityClass = PriorityClass(70);
    /// The end of the node autoscaler's batching window, before what would prolong it at the same instant.
    pub const BATCH: PriorityClass = PriorityClass(75);
    /// The node autoscaler.
    pub const NODE_AUTOSCALER: PriorityClass = PriorityClass(80);
    /// KEDA's polls.
    pub const KEDA: PriorityClass = PriorityClass(90);
    /// The node autoscaler's disruption loop, which sees what its other controllers did at the same instant.
    pub const DISRUPTION: PriorityClass = PriorityClass(85);
    /// Replica autoscalers.
    pub const REPLICA_AUTOSCALER: PriorityClass = PriorityClass(100);
    /// Samples for the report, after everything else.
    pub const SAMPLES: PriorityClass = PriorityClass::LAST;
}
