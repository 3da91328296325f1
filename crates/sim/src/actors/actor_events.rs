//! What becomes of pods, nodes, their instances and the control plane, as it is handed over by whom it happens to.
//!
//! What must not live here: who goes by it (`dispatch`).

use crate::cloud::InstanceId;
use crate::cloud::ec2::Pool;
use crate::domain::{NodeId, PodId, Symbol, WorkloadId};

/// Something has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ActorEvent {
    /// The pod has been made.
    PodCreated(PodId),
    /// The scheduler has found no node for the pod.
    PodUnschedulable(PodId),
    /// The pod has been bound to the node.
    PodBound(PodId, NodeId),
    /// Its containers run.
    PodStarted(PodId),
    /// It answers as soon as its containers run.
    PodAnswers(PodId),
    /// It is Ready, and takes its share of the work.
    PodServes(PodId),
    /// It has become Ready and has not been before: its controller counts on it.
    PodReady(PodId),
    /// It serves no more.
    PodStoppedServing(PodId),
    /// Its containers begin to run, which is what the metrics server measures first.
    PodStartsUp(PodId),
    /// A workload has come to be.
    WorkloadApplied(WorkloadId),
    /// KEDA has created Jobs, which have no pods yet.
    JobsCreated(WorkloadId),
    /// The pod has another size.
    PodResized(PodId),
    /// A container of the pod starts again.
    PodRestarted(PodId),
    /// The pod has been placed on the node without the scheduler.
    PodPlaced(PodId, NodeId),
    /// Its containers have ended by themselves.
    PodFinished(PodId),
    /// Somebody deletes the pod.
    PodDeleted(PodId),
    /// It is to leave before any node has taken it up.
    PodWithdrawn(PodId),
    /// A pod on the node has begun to terminate.
    PodTerminating(PodId, NodeId),
    /// The object of a pod that had ended by itself is deleted.
    ObjectDeleted(PodId),
    /// One that terminates has less time now.
    GraceShortened(PodId),
    /// The pod is gone, from the node if it had one.
    PodGone(PodId, Option<NodeId>),
    /// The pod is gone because its node is.
    PodLost(PodId),
    /// A claim of this namespace and name has been made, which pods may name that are there.
    ClaimMade(Symbol, Symbol),
    /// The node is there and Ready at once; an instance of the machine's type attaches volumes.
    NodeFound(NodeId, Option<Symbol>),
    /// The node has registered; its instance is of this type.
    NodeRegistered(NodeId, Symbol),
    /// Taints of the node that come off by themselves have done so.
    NodeUntainted(NodeId),
    /// The node has other taints; whom a `NoExecute` taint drives out is up to who sets it.
    NodeTainted(NodeId),
    /// The driver of EBS volumes of the node has reported how many it attaches.
    AttachLimitReported(NodeId),
    /// The node has other labels and taints.
    NodeRelabelled(NodeId),
    /// The node has become Ready and has lost the taints that come off by themselves.
    NodeUsable(NodeId),
    /// The node is not heard of any more.
    NodeLost(NodeId),
    /// It is heard of again.
    NodeRegained(NodeId),
    /// Somebody asks EC2 to terminate its instance.
    TerminationRequested(NodeId),
    /// A node group has another desired size.
    GroupChanged(usize),
    /// Somebody asks an Auto Scaling group to end an instance.
    InstanceEndRequested(InstanceId),
    /// Its instance has begun to end.
    InstanceLeaves(NodeId),
    /// Its instance is gone.
    InstanceGone(NodeId),
    /// The node is gone.
    NodeGone(NodeId),
    /// The Node object is gone, and its machine is not.
    NodeDeleted(NodeId),
    /// An instance of this pool has been launched for the node.
    InstanceLaunched(NodeId, Pool),
    /// EC2 gives notice to the instance of the node.
    InterruptionNotice(NodeId),
    /// A status check of the instance of the node begins to fail.
    StatusCheckFails(NodeId),
    /// The control plane runs another release.
    ControlPlaneUpgraded,
}

/// News that wait for their listeners: news of a listener go before those that waited already.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Published since the last was taken, in order.
    fresh: Vec<ActorEvent>,
    /// Those before, the next one last.
    waiting: Vec<ActorEvent>,
}

impl Outbox {
    /// Puts news after all others of the same handler.
    pub(super) fn publish(&mut self, news: ActorEvent) {
        self.fresh.push(news);
    }

    /// Whether all news have been taken.
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.waiting.is_empty()
    }

    /// Takes the next news.
    pub(super) fn take(&mut self) -> Option<ActorEvent> {
        self.waiting.extend(self.fresh.drain(..).rev());
        self.waiting.pop()
    }
}
