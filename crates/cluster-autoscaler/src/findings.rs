//! What a scale-down says of a node: what was found, and why it stays.
//!
//! Source: Cluster Autoscaler 1.36 `simulator/cluster.go`.

use super::drainability::BlockingReason;
use super::utilization::Utilization;
use nodecast_model::domain::SimTime;

/// Why a node stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnremovableReason {
    /// `cluster-autoscaler.kubernetes.io/scale-down-disabled`.
    ScaleDownDisabledAnnotation,
    /// It is not ready, and such nodes are left alone.
    ScaleDownUnreadyDisabled,
    /// It has not been unneeded for long enough.
    NotUnneededLongEnough,
    /// It has not been unready for long enough.
    NotUnreadyLongEnough,
    /// Its group is at its minimum.
    NodeGroupMinSizeReached,
    /// The cluster would fall below a limit.
    MinimalResourceLimitExceeded,
    /// It is being deleted.
    CurrentlyBeingDeleted,
    /// Too much of it is asked for.
    NotUnderutilized,
    /// A pod on it must not be evicted, and the node is left until that pod has ended by itself. The node may well be unneeded.
    WaitsForCompletion,
    /// It was found not to be removable a while ago.
    RecentlyUnremovable,
    /// Its pods have nowhere to go.
    NoPlaceToMovePods,
    /// A pod on it cannot be moved.
    BlockedByPod,
    /// Its utilisation cannot be worked out.
    UnexpectedError,
}

impl UnremovableReason {
    /// The reason's name as the autoscaler reports it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScaleDownDisabledAnnotation => "ScaleDownDisabledAnnotation",
            Self::ScaleDownUnreadyDisabled => "ScaleDownUnreadyDisabled",
            Self::NotUnneededLongEnough => "NotUnneededLongEnough",
            Self::NotUnreadyLongEnough => "NotUnreadyLongEnough",
            Self::NodeGroupMinSizeReached => "NodeGroupMinSizeReached",
            Self::MinimalResourceLimitExceeded => "MinimalResourceLimitExceeded",
            Self::CurrentlyBeingDeleted => "CurrentlyBeingDeleted",
            Self::NotUnderutilized => "NotUnderutilized",
            Self::WaitsForCompletion => "BlockedByOnCompletionPod",
            Self::RecentlyUnremovable => "RecentlyUnremovable",
            Self::NoPlaceToMovePods => "NoPlaceToMovePods",
            Self::BlockedByPod => "BlockedByPod",
            Self::UnexpectedError => "UnexpectedError",
        }
    }
}

/// Why a node was not even looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PassedOver {
    /// It is registered but not ready yet, and counts as one that is still to come.
    StillToCome,
    /// It belongs to no group.
    NoGroup,
    /// Its group has no more nodes than it must have.
    GroupAtMinimum,
    /// Its group changed too short a while ago, with delays that count for each group alone.
    GroupDelayed,
    /// It is being deleted.
    BeingDeleted,
    /// As many nodes as an iteration minds were found unneeded before its turn came.
    EnoughFound,
}

impl PassedOver {
    /// The reason in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StillToCome => "it is not ready yet and counts as a node that is still to come",
            Self::NoGroup => "it belongs to no node group",
            Self::GroupAtMinimum => "its node group is at its minimum",
            Self::GroupDelayed => "its node group changed too short a while ago",
            Self::BeingDeleted => "it is being deleted",
            Self::EnoughFound => "enough other nodes were found unneeded before its turn came",
        }
    }
}

/// What was found of a node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeFinding {
    /// Why it was not looked at, if so.
    pub passed_over: Option<PassedOver>,
    /// Its utilisation, if it was looked at.
    pub utilization: Option<Utilization>,
    /// The share of its resources up to which little enough is asked for, if it was looked at.
    pub threshold: Option<f64>,
    /// When its time as an unneeded node is over, if it is one; it goes only later than that.
    pub waits_until: Option<SimTime>,
    /// Whether it could go as far as simulation can tell.
    pub unneeded: bool,
    /// Why it stays.
    pub reason: Option<UnremovableReason>,
    /// The pod that keeps it, as a place among the observed pods, and why.
    pub blocking: Option<(usize, BlockingReason)>,
}
