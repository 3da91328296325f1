//! Pods, nodes and workloads as they are at one instant.

use std::sync::Arc;

use super::journal::Position;
use super::specs::SpecId;
use crate::domain::node::is_short_name;
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, Labels, NodeId, PodId, PodSpec, Resources, SimTime, Symbol, Taint, WorkloadId};

/// How far a pod has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PodPhase {
    /// It has no node.
    Pending,
    /// It has a node; its containers do not run yet.
    Starting,
    /// Its containers run.
    Running,
    /// It is no more.
    Gone,
}

/// What a workload is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkloadKind {
    /// A Deployment.
    Deployment,
    /// A DaemonSet.
    DaemonSet,
    /// A ScaledJob of KEDA with its Jobs.
    ScaledJob,
    /// A StatefulSet.
    StatefulSet,
    /// A Job.
    Job,
    /// A CronJob with its Jobs.
    CronJob,
    /// The pods of a namespace that nothing controls.
    Pods,
}

impl WorkloadKind {
    /// Whether the objects of its pods that end by themselves stay until their Job goes.
    pub const fn keeps_ended_pods(self) -> bool {
        matches!(self, Self::Job | Self::CronJob | Self::ScaledJob)
    }

    /// The Kubernetes kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::DaemonSet => "DaemonSet",
            Self::ScaledJob => "ScaledJob",
            Self::StatefulSet => "StatefulSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::Pods => "Pod",
        }
    }
}

/// Where a node came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeOrigin {
    /// A managed node group.
    NodeGroup(Symbol),
    /// A Karpenter NodePool.
    NodePool(Symbol),
    /// A Fargate profile: the node is one pod's own.
    Fargate(Symbol),
}

impl NodeOrigin {
    /// The name of the node group, NodePool or Fargate profile.
    pub const fn name(self) -> Symbol {
        match self {
            Self::NodeGroup(name) | Self::NodePool(name) | Self::Fargate(name) => name,
        }
    }
}

/// Why a node's life ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodeEnd {
    /// It held no pod but daemons for long enough.
    Empty,
    /// It grew older than `expireAfter`.
    Expired,
    /// EC2 had no capacity for it.
    LaunchFailed,
    /// EC2 accepted its launch and then gave it up.
    Aborted,
    /// Its machine started, but the node did not register in time.
    NotRegistered,
    /// EC2 interrupted its Spot instance.
    Interrupted,
    /// Its node group or static NodePool had more instances than desired, or was told to end this one.
    ScaledIn,
    /// Its node group, or Karpenter's node repair, found it unhealthy.
    Unhealthy,
    /// Its node group replaced it: it was at risk, or its zone had more instances than others.
    Rebalanced,
    /// An update or an instance refresh of its node group replaced it.
    Updated,
    /// Its pods fit elsewhere, or on a cheaper node.
    Underutilized,
    /// It no longer was as its NodePool says.
    Drifted,
    /// Somebody deleted its claim.
    Deleted,
    /// Its instance vanished.
    InstanceLost,
    /// Its pod on Fargate ended or was deleted.
    PodGone,
}

impl NodeEnd {
    /// The reason as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Expired => "expired",
            Self::LaunchFailed => "launch failed",
            Self::Aborted => "launch aborted",
            Self::NotRegistered => "not registered",
            Self::Interrupted => "interrupted",
            Self::ScaledIn => "scaled in",
            Self::Unhealthy => "unhealthy",
            Self::Rebalanced => "rebalanced",
            Self::Updated => "updated",
            Self::Underutilized => "underutilized",
            Self::Drifted => "drifted",
            Self::Deleted => "deleted",
            Self::InstanceLost => "instance lost",
            Self::PodGone => "pod gone",
        }
    }
}

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// What made it.
    pub workload: WorkloadId,
    /// Which of the workload's templates it was made from.
    pub revision: u32,
    /// Its namespace.
    pub namespace: Symbol,
    /// What it asks for: pods with the same are alike.
    pub spec_id: SpecId,
    /// The same, to read.
    pub spec: Arc<PodSpec>,
    /// What the scheduler counts for it.
    pub requests: Arc<Resources>,
    /// The only node it may go to (a daemon's).
    pub pinned: Option<NodeId>,
    /// How far it has come.
    pub phase: PodPhase,
    /// The node it is bound to.
    pub node: Option<NodeId>,
    /// When it was created.
    pub created: SimTime,
    /// When its containers started.
    pub started: Option<SimTime>,
    /// How often its containers were started again.
    pub restarts: u32,
    /// When it became Ready; `None` while it is not.
    pub ready_since: Option<SimTime>,
    /// Whether the scheduler has declared it unschedulable and not placed it since.
    pub unschedulable: bool,
    /// When its deletion was asked for.
    pub deletion_requested: Option<SimTime>,
    /// When its grace period ends, in whole seconds, once its deletion was asked for.
    pub deletion_ends: Option<SimTime>,
    /// Whether its containers have ended for good; its room on the node is free.
    pub finished: bool,
    /// Whether it belongs to a DaemonSet.
    pub daemon: bool,
}

impl Pod {
    /// Whether it has neither ended nor gone and is not being deleted.
    pub fn is_active(&self) -> bool {
        self.phase != PodPhase::Gone && self.deletion_requested.is_none() && !self.finished
    }

    /// Whether it is Ready.
    pub fn is_ready(&self) -> bool {
        self.ready_since.is_some()
    }
}

/// How far a node has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodePhase {
    /// A node claim without an instance.
    Claimed,
    /// It has an instance; no node has registered.
    Launched,
    /// The node exists.
    Registered,
    /// Its instance is being terminated.
    Terminating,
    /// It is no more.
    Gone,
}

/// A node, from the claim to the end of its instance.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, the same for claim and node: a friendly one, by which reports call it.
    pub name: Symbol,
    /// The names that decisions go by; the friendly one where these are not drawn.
    pub(super) drawn: Option<DrawnNames>,
    /// What asked for it.
    pub origin: NodeOrigin,
    /// Labels of the claim or node.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Taints at present.
    pub taints: Vec<Taint>,
    /// Taints that come off before the node counts as initialized.
    pub startup_taints: Vec<Taint>,
    /// What it holds, as the autoscaler believes until the node has registered, then as the node says.
    pub capacity: Resources,
    /// What it offers to pods, likewise.
    pub allocatable: Resources,
    /// How far it has come.
    pub phase: NodePhase,
    /// Whether the node is Ready.
    pub ready: bool,
    /// Whether Karpenter counts it as initialized.
    pub initialized: bool,
    /// When the claim was made.
    pub created: SimTime,
    /// When its removal was decided.
    pub deletion_requested: Option<SimTime>,
    /// Pods bound to it that are not gone, in order of binding.
    pub pods: Vec<PodId>,
    /// The position of the last change of the list of these pods, of what they ask for, and of whether they have ended or are on
    /// their way out; not as they start or become Ready.
    pub pods_changed: Position,
    /// Sum of the requests of these pods.
    pub requested: Resources,
}

/// The random names of a node: the API server ends a NodeClaim's name with five random letters, and a node is called after its
/// address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrawnNames {
    /// The NodeClaim's.
    pub claim: Box<str>,
    /// The Node's.
    pub node: Box<str>,
}

impl Node {
    /// The name by which programs know it: its claim's until it has registered, then its own.
    pub fn api_name(&self) -> &str {
        match &self.drawn {
            None => self.name.as_str(),
            Some(drawn) if self.phase < NodePhase::Registered => &drawn.claim,
            Some(drawn) => &drawn.node,
        }
    }

    /// Whether reports, the API server or the NodeClaim have this name for it.
    pub fn is_called(&self, name: &str) -> bool {
        [self.name.as_str(), self.api_name(), self.claim_name()].contains(&name)
    }

    /// Whether `short` is the host name in one of its names.
    pub fn has_short_name(&self, short: &str) -> bool {
        [self.name.as_str(), self.api_name()].iter().any(|name| is_short_name(short, name))
    }

    /// The name of its NodeClaim.
    pub fn claim_name(&self) -> &str {
        self.drawn.as_ref().map_or(self.name.as_str(), |drawn| &drawn.claim)
    }
}

/// What the pods made from one template share.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    /// The template.
    pub(super) spec: SpecId,
    /// Its active pods.
    pub(super) active: u32,
}

impl Workload {
    /// Active pods made from the template of this revision.
    pub fn active(&self, revision: u32) -> u32 {
        self.revisions.get(revision as usize).map_or(0, |revision| revision.active)
    }
}

/// A workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it is.
    pub kind: WorkloadKind,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// What the scheduler counts for one of them.
    pub requests: Arc<Resources>,
    /// Which of its templates `template` is, counted from 0 in order of appearance.
    pub revision: u32,
    /// All templates that it has had.
    pub(super) revisions: Vec<Revision>,
    /// Replicas wanted; unused for a DaemonSet.
    pub replicas: u32,
    /// Its pods that are not gone, in order of creation.
    pub pods: Vec<PodId>,
    /// How many of them are Ready.
    pub ready: u32,
    /// Whether it has been deleted: nobody makes pods for it any more, and those that it has are on their way out.
    pub deleted: bool,
}
