//! What goes into the machine and what comes out of it.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use super::settings::Buffer;
use crate::disruption::{ConditionStatus, Obstacle};
use crate::instance_types::InstanceType;
use crate::interruption::Notice;
use crate::selection::LaunchRequest;
use nodecast_model::cluster::{Cluster, NewNode, NodeEnd};
use nodecast_model::control_plane::eviction::{BudgetStatus, Protections};
use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::volumes::{NodeVolumes, Storage};
use nodecast_model::domain::{
    CommandId, HourlyRate, KubernetesVersion, Labels, NodeClass, NodeId, NodePool, PodId, Requirements, Resources,
    SimDuration, SimTime, Symbol, Taint,
};

/// What Karpenter writes down in a NodeClaim, and reads there when it is started anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// When the node became initialized, if it is.
    pub initialized: Option<SimTime>,
    /// The last time that a pod came to it or left it.
    pub last_pod_event: Option<SimTime>,
    /// Since when it is drifted.
    pub drifted: Option<SimTime>,
}

impl Written {
    /// The same with instants since `start`, which was so long after 1970.
    #[must_use]
    pub fn since(self, start: SimTime) -> Self {
        let since = |at: Option<SimTime>| at.map(|at| SimTime::ZERO + (at - start));
        let Self { initialized, last_pod_event, drifted } = self;
        Self { initialized: since(initialized), last_pod_event: since(last_pod_event), drifted: since(drifted) }
    }
}

/// What Karpenter is told.
#[derive(Debug)]
pub enum Input<'a> {
    /// Its controllers start.
    Begin,
    /// A node is there that Karpenter launched before it was started anew, with what its NodeClaim says.
    Adopt(NodeId, Written),
    /// The time has come that [`Action::Wake`] named, or is over; once for each.
    Wake(Timer),
    /// What stood before [`Action::Next`] has been carried out.
    Next(Stage),
    /// The claim that [`Action::CreateClaim`] asked for is there.
    ClaimCreated(NodeId),
    /// What became of a launch ([`Action::CreateFleet`], [`Action::Create`]).
    LaunchAnswered(NodeId, Result<&'a LaunchAnswer, CallRefused>),
    /// Whether an eviction ([`Action::Evict`]) was allowed.
    EvictionAnswered(PodId, bool),
    /// The scheduler has found no node for a pod.
    PodUnschedulable(PodId),
    /// A pod has been bound to a node.
    PodBound(PodId, NodeId),
    /// A pod has ended by itself; it is still on its node.
    PodFinished(PodId, NodeId),
    /// A pod on a node has begun to terminate.
    PodTerminating(PodId, NodeId),
    /// A pod of a node is gone.
    PodGone(NodeId),
    /// Something else has changed that could change a decision.
    Changed,
    /// A node has registered; its instance is of this type.
    NodeRegistered(NodeId, Symbol),
    /// A node has become Ready or lost a taint that comes off by itself: it may be initialized in a moment.
    NodeMayBeInitialized(NodeId),
    /// The same, and Karpenter looks at once.
    LookAtInitialization(NodeId),
    /// A condition of a node has changed.
    ConditionChanged(NodeId, Symbol, ConditionStatus),
    /// The instance of a node no longer exists.
    InstanceGone(NodeId),
    /// A node is gone, and its claim with it.
    NodeGone(NodeId),
    /// AWS says something of the instance of a node.
    Notice(NodeId, Notice),
    /// A status check of an instance begins to fail (`true`), or succeeds again.
    StatusChecked(NodeId, bool),
    /// The control plane runs another release.
    ControlPlaneUpgraded,
    /// A node class is replaced by another of its name, or is new; the types of each pool that uses it come with it.
    ClassReplaced(Box<NodeClass>, Vec<(Symbol, Vec<InstanceType>)>),
    /// The types of a pool are others, because it is about to name another node class or other kubelet settings.
    TypesReplaced(Symbol, Vec<InstanceType>),
    /// A NodePool is replaced by another of its name.
    PoolReplaced(Box<NodePool>),
    /// Somebody deletes a NodePool.
    PoolDeleted(Symbol),
    /// Somebody deletes a claim.
    ClaimDeleted(NodeId),
    /// Something outside has made a claim differ from its pool.
    ClaimChanged(NodeId),
    /// Karpenter sees that a capacity reservation has ended whose instances run on as On-Demand.
    ReservationEnded(Symbol),
    /// An instance type is no longer to be had.
    TypeWithdrawn(Symbol),
    /// CapacityBuffers are others.
    BuffersReplaced(Vec<Buffer>),
    /// Namespaces are others, or labelled otherwise: all that there are from now on, as in [`Settings`](super::Settings).
    NamespacesReplaced(Vec<(Symbol, Labels)>),
}

/// Why Karpenter wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timer {
    /// A pending pod triggers the batcher again.
    PodTrigger(PodId),
    /// A node that is being removed triggers the batcher again.
    NodeTrigger(NodeId),
    /// The batching window ends. To set it again moves it: there is one window at most.
    BatchClosed,
    /// The time of a scheduling pass is over.
    PassFinished,
    /// The call is answered that launches a claim.
    Launch(NodeId),
    /// A node should have registered by now.
    RegistrationOverdue(NodeId),
    /// A node that became Ready may be initialized.
    InitializationSeen(NodeId),
    /// A claim whose launch failed is gone.
    ClaimGone(NodeId),
    /// A node that was deleted begins to drain.
    DrainBegins(NodeId),
    /// A node may be empty (before v1).
    EmptinessCheck(NodeId),
    /// A node may have been empty for long enough (before v1).
    EmptinessDue(NodeId),
    /// The disruption loop makes a pass.
    DisruptionPass,
    /// The time of a look of the disruption loop is over.
    DisruptionConcluded,
    /// The wait before a command is over.
    DisruptionValidation,
    /// A command may be finished.
    CommandPoll(CommandId),
    /// A node that leaves may be drained.
    DrainPoll(NodeId),
    /// An eviction is tried again.
    EvictionRetry(PodId),
    /// A terminated instance may be gone.
    InstancePoll(NodeId),
    /// Claims are looked for whose instance has vanished.
    GarbageCollection,
    /// A node may have been unhealthy for too long.
    RepairDue(NodeId),
    /// Pools with a fixed number of nodes are looked at.
    StaticPools,
    /// A node may no longer be as its NodePool says.
    DriftLook(NodeId),
    /// The status of an instance that fails its checks is asked for.
    StatusPoll(NodeId),
    /// The release of the control plane is read.
    ControlPlaneSeen,
    /// A node reaches its age limit.
    Expired(NodeId),
    /// CapacityBuffers are looked at.
    BufferLook,
    /// Capacity Blocks may be about to end.
    BlockLook,
    /// An image is released on the schedule of whoever runs Karpenter.
    ImageReleased,
}

/// How something goes on for which the cluster must show first what has been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// A claim has its instance.
    Launched(NodeId),
    /// A node is tainted and begins to drain.
    Drain(NodeId),
    /// Pods that would have stayed too long are deleted; the others of the node are evicted.
    Evict(NodeId),
    /// A node is initialized and may be empty.
    Initialized(NodeId),
    /// A node has other labels.
    Relabelled(NodeId),
    /// The replacements of a command have been made.
    CommandMade(CommandId),
    /// The nodes of a command that took too long have been deleted.
    CommandLate(CommandId),
    /// Nodes that no command concerns take pods again, and the disruption loop looks at the cluster.
    Look,
}

/// What Karpenter does, in this order.
#[derive(Debug)]
pub enum Action {
    /// Wake it at this instant.
    Wake(SimTime, Timer),
    /// Step it again when everything before this has been carried out.
    Next(Stage),
    /// Make a NodeClaim; [`Input::ClaimCreated`] answers at once.
    CreateClaim(Box<NewClaim>),
    /// A claim is launched: its call begins at `begins` and is sent at `called`; [`Timer::Launch`] is to come when it is answered.
    Launch {
        /// The claim.
        claim: NodeId,
        /// When the client was free to make the call.
        begins: SimTime,
        /// When it is sent.
        called: SimTime,
    },
    /// Have EC2 answer this request; [`Input::LaunchAnswered`] is the answer.
    CreateFleet(NodeId, Box<FleetCall>),
    /// Have a provider other than AWS launch a claim; [`Input::LaunchAnswered`] is the answer.
    Create(NodeId, Box<ClaimRequest>),
    /// A claim has this instance.
    Launched(NodeId, Box<LaunchedNode>),
    /// A launch has failed, and its claim goes with it (before v1).
    FailLaunch(NodeId, String),
    /// Delete a claim that has no instance.
    DropClaim(NodeId),
    /// Delete a node that is there, for a reason, which people read in the text.
    Delete(NodeId, NodeEnd, String),
    /// Add a taint to a node.
    Taint(NodeId, Taint),
    /// Take the taints with this key off a node.
    Untaint(NodeId, Symbol),
    /// Label a node as initialized.
    Initialize(NodeId),
    /// Give a node and its claim these labels in place of those that they have.
    Relabel(NodeId, Box<Labels>),
    /// Evict a pod if its budgets allow it; [`Input::EvictionAnswered`] says whether they did.
    Evict(PodId),
    /// Delete a pod within a grace period, whatever protects it.
    DeletePod(PodId, SimDuration),
    /// Nothing has to leave a node any more.
    Drained(NodeId),
    /// Terminate the instance of a node.
    Terminate(NodeId),
    /// The instance of a node is found to be gone, and node and claim go.
    Remove {
        /// The node.
        node: NodeId,
        /// Whether nobody has said so far that its instance ends.
        unannounced: bool,
    },
    /// A command is proposed: the next of [`CommandId`]s.
    Propose(CommandId, Box<ProposedCommand>),
    /// A command was started for these nodes.
    Start(CommandId, Vec<NodeId>),
    /// These claims were made to take the place of a command's nodes.
    Replaced(CommandId, Vec<NodeId>),
    /// A proposal no longer holds.
    Reject(CommandId, String),
    /// A command was given up.
    Fail(CommandId, String),
    /// The nodes of a command were deleted.
    Finish(CommandId),
    /// What people are told.
    Note(Subject, Fact, String),
    /// The limits of a NodePool leave no room for a node for these pods, which keep waiting.
    LimitReached {
        /// The NodePool.
        node_pool: Symbol,
        /// Its limits; only that on nodes where that one is used up.
        limits: Resources,
        /// The pods.
        pods: Vec<PodId>,
    },
    /// What kept nodes when the disruption loop looked.
    Met(Vec<(NodeId, Obstacle)>),
    /// A loop takes so long from now on; `cut` if a limit of time stopped it.
    Takes {
        /// The loop.
        what: Busy,
        /// How long.
        took: SimDuration,
        /// Whether a limit of time stopped it.
        cut: bool,
    },
}

/// What a note is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Nothing in particular.
    All,
    /// A node.
    Node(NodeId),
    /// A pod.
    Pod(PodId),
}

/// What people are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// A pass found pods that need new nodes.
    ClaimsComputed,
    /// A launch was asked for.
    LaunchRequested,
    /// Spot is allowed, and On-Demand was asked for.
    SpotFallback,
    /// There were too many calls.
    CallThrottled,
    /// A call failed.
    CallFailed,
    /// A launch failed for good.
    LaunchFailed,
    /// A pod cannot be placed.
    PodNotPlaced,
    /// A node was tainted.
    NodeTainted,
    /// A node's taint was taken off.
    NodeUntainted,
    /// A node is no longer as its NodePool says.
    NodeDrifted,
    /// A node holds no pod but daemons (before v1).
    NodeEmpty,
    /// A node that was empty is in use (before v1).
    NodeInUse,
    /// A node waits for volumes to be detached.
    AwaitingVolumeDetachment,
}

/// A loop that takes time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    /// A scheduling pass.
    Pass,
    /// A look or a validation of the disruption loop.
    Look,
}

/// A NodeClaim to be made.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// Its number among those of its pool, from 1 on, by which the API server draws its name.
    pub number: u32,
    /// The claim, without drawn names.
    pub node: NewNode,
    /// What is asked for, in the shape of Karpenter's own log line.
    pub text: String,
    /// Requests of its pods and daemons together.
    pub requests: Resources,
    /// How many instance types it may have.
    pub types: usize,
    /// The capacity types that it may have, in order of name.
    pub capacity_types: Vec<Symbol>,
}

/// A launch request to EC2.
#[derive(Clone, Debug)]
pub struct FleetCall {
    /// The request.
    pub request: LaunchRequest,
    /// The EBS volumes of the instance.
    pub volumes: NodeVolumes,
    /// Whether a matching open capacity reservation may be used that the request does not name.
    pub uses_open_reservations: bool,
}

/// A claim as a provider other than AWS is asked to launch it.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The NodePool.
    pub node_pool: Symbol,
    /// What the claim asks for.
    pub requirements: Arc<Requirements>,
    /// Names of the instance types, cheapest first.
    pub types: Vec<Symbol>,
}

/// What a provider answers to a launch.
#[derive(Clone, Debug, Default)]
pub struct LaunchAnswer {
    /// The instance, if there is one.
    pub instance: Option<LaunchedInstance>,
    /// Offerings that could not deliver.
    pub errors: Vec<OfferingError>,
}

/// An instance that was launched.
#[derive(Clone, Copy, Debug)]
pub struct LaunchedInstance {
    /// What the provider calls it.
    pub id: u32,
    /// Its instance type.
    pub instance_type: Symbol,
    /// Its zone.
    pub zone: Symbol,
    /// `spot` or `on-demand`.
    pub capacity_type: Symbol,
    /// The capacity reservation that it was launched into by name.
    pub reservation: Option<Symbol>,
}

/// An offering that could not deliver.
#[derive(Clone, Copy, Debug)]
pub struct OfferingError {
    /// The provider's code.
    pub code: &'static str,
    /// Instance type of the offering.
    pub instance_type: Symbol,
    /// Its zone.
    pub zone: Symbol,
    /// Its capacity type; `None` for that of the request.
    pub capacity_type: Option<Symbol>,
    /// Whether the error is that a capacity reservation has no room.
    pub reservation_full: bool,
}

/// A provider took no call, or failed.
#[derive(Clone, Debug)]
pub struct CallRefused {
    /// Whether there were too many calls.
    pub throttled: bool,
    /// What it said.
    pub message: String,
}

/// What Karpenter knows of a claim with its instance.
#[derive(Clone, Debug)]
pub struct LaunchedNode {
    /// The instance.
    pub instance: LaunchedInstance,
    /// Its capacity type as labels say it: `reserved` for one in a reservation.
    pub capacity_type: Symbol,
    /// Labels that follow from its type and reservation.
    pub labels: Labels,
    /// What it is believed to hold.
    pub capacity: Resources,
    /// What it is believed to offer to pods.
    pub allocatable: Resources,
    /// The release of Kubernetes that its image is for.
    pub image_for: Option<KubernetesVersion>,
}

/// A command of the disruption loop.
#[derive(Clone, Debug)]
pub struct ProposedCommand {
    /// Why.
    pub reason: DisruptionReason,
    /// Which search found it: `empty`, `multi`, `single`; `None` for drift.
    pub method: Option<&'static str>,
    /// Whether it waits for a second look.
    pub waits: bool,
    /// The nodes proposed, in the order of the method.
    pub nodes: Vec<NodeId>,
    /// What is to take their place.
    pub replacements: Vec<ProposedNode>,
}

/// A node that is to take the place of others.
#[derive(Clone, Debug)]
pub struct ProposedNode {
    /// Its NodePool.
    pub node_pool: Symbol,
    /// How many instance types it may have.
    pub types: usize,
    /// The capacity types that it may have, in order of name.
    pub capacity_types: Vec<Symbol>,
    /// The cheapest of the types and its price.
    pub cheapest: Option<(Symbol, HourlyRate)>,
}

/// What is left to chance in a real controller.
#[derive(Clone, Copy, Debug)]
pub enum Draw<'a> {
    /// How late a timer fires, of what kind, for whom, that is set at this instant; below the span.
    Slip(LateTimer, u32, SimTime, SimDuration),
    /// How long the AWS SDK waits, after how many refusals, before it calls again for a claim of this name; up to the span.
    Retry(&'a str, u32, SimDuration),
    /// From Ready to initialized for a node: the median in seconds and the standard deviation of the logarithm.
    Initialization(NodeId, f64, f64),
    /// How long after it is first observed the disruption loop looks; up to the span.
    DisruptionPhase(SimDuration),
    /// The same of the search for claims without an instance.
    GarbagePhase(SimDuration),
}

/// Timers that fire a little late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateTimer {
    /// The disruption loop's wait.
    DisruptionLoop,
    /// A look at a command.
    CommandPoll,
    /// A look at a node that drains or whose instance ends.
    NodePoll,
    /// A pod or node that triggers provisioning again.
    Trigger,
}

/// Nothing of the kind.
static NO_STORAGE: LazyLock<Storage> = LazyLock::new(Storage::default);

/// What Karpenter can read beside the cluster: what else the API server and the provider tell who asks. What a driver leaves out, its
/// cluster does not have.
pub trait Outside: Debug {
    /// Pods of which the scheduler says that no node takes them and that do not wait for the room of pods which they evicted, in
    /// order of creation.
    fn unschedulable_pods(&self, cluster: &Cluster) -> Vec<PodId> {
        let pods = (0..cluster.pod_count()).map(PodId::from_index);
        pods.filter(|&pod| {
            let state = cluster.pod(pod);
            state.unschedulable && state.node.is_none() && state.is_active()
        })
        .collect()
    }

    /// The name of a pod, which matters where its volumes are named after it.
    fn pod_name(&self, _pod: PodId) -> &str {
        ""
    }

    /// The rank of a pod's UID among all UIDs.
    fn uid_rank(&self, pod: PodId) -> u64 {
        u64::from(pod.0)
    }

    /// Claims, volumes and storage classes.
    fn storage(&self) -> &Storage {
        &NO_STORAGE
    }

    /// How many volumes of each driver a node can attach, once it has registered.
    fn volume_limits(&self, _node: NodeId) -> &[(Symbol, u32)] {
        &[]
    }

    /// Whether a volume is attached to the node that none of its pods uses for which `stays` says yes.
    fn holds_volumes(&self, _node: NodeId, _stays: &dyn Fn(PodId) -> bool) -> bool {
        false
    }

    /// The status of every PodDisruptionBudget, in the order of the cluster.
    fn budget_statuses(&self) -> Vec<BudgetStatus>;

    /// Which of them protect which pods, as far as somebody has asked.
    fn protections(&self) -> &Protections;

    /// Instances that fit into a capacity reservation.
    fn reservation_room(&self, _id: Symbol, _now: SimTime) -> u32 {
        0
    }

    /// The release of the control plane.
    fn control_plane(&self) -> KubernetesVersion;

    /// What a real controller draws; a driver without chance is never late.
    fn draw(&self, _draw: Draw<'_>) -> SimDuration {
        SimDuration::ZERO
    }
}

/// What there is to read beside a cluster without budgets, volumes and chance.
#[derive(Debug, Default)]
pub struct Bare {
    protections: Protections,
    control_plane: KubernetesVersion,
}

impl Outside for Bare {
    fn budget_statuses(&self) -> Vec<BudgetStatus> {
        Vec::new()
    }

    fn protections(&self) -> &Protections {
        &self.protections
    }

    fn control_plane(&self) -> KubernetesVersion {
        self.control_plane
    }
}
