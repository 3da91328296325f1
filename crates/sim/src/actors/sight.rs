//! What a node autoscaler is told at once.

use crate::domain::{NodeId, PodId, Symbol};

/// What a node autoscaler sees of the cluster and hears of the cloud at once; everything else it looks up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sight {
    /// The scheduler has found no node for a pod.
    PodUnschedulable(PodId),
    /// A pod has been bound to a node.
    PodBound(PodId, NodeId),
    /// A pod on a node has begun to terminate.
    PodTerminating(PodId, NodeId),
    /// A pod is gone, from the node if it had one.
    PodGone(Option<NodeId>),
    /// A node has registered; its instance is of this type.
    NodeRegistered(NodeId, Symbol),
    /// A node has become Ready and has lost the taints that come off by themselves.
    NodeUsable(NodeId),
    /// A node is not heard of any more.
    NodeLost(NodeId),
    /// It is heard of again.
    NodeRegained(NodeId),
    /// A node is gone.
    NodeGone(NodeId),
    /// EC2 gives notice to the instance of a node.
    InterruptionNotice(NodeId),
    /// A status check of the instance of a node begins to fail.
    StatusCheckFails(NodeId),
    /// The control plane runs another release.
    ControlPlaneUpgraded,
}
