//! Steps of the timeline.

use std::sync::Arc;

use nodecast_manifests::Manifests;
use nodecast_model::domain::node_group::{InstanceRefresh, VersionUpdate};
use nodecast_model::domain::which::{ObjectKind, Which};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{ControlPlaneTier, KubernetesVersion, SimDuration, SimTime, Symbol};

/// Something done by hand.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedAction {
    /// When.
    pub at: SimTime,
    /// What.
    pub action: Action,
}

/// What is done by hand.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// `kubectl scale`.
    Scale {
        /// The workload.
        workload: ObjectName,
        /// Its new number of replicas.
        replicas: u32,
    },
    /// SetDesiredCapacity: somebody sets the size of a node group.
    ScaleGroup {
        /// The node group.
        group: Symbol,
        /// Its new desired size.
        desired: u32,
    },
    /// A managed node group is updated to another release or machine image.
    UpdateGroup(VersionUpdate),
    /// Somebody starts an instance refresh of a group.
    RefreshGroup(InstanceRefresh),
    /// `kubectl cordon`: the nodes take no more pods.
    Cordon(Which),
    /// `kubectl uncordon`.
    Uncordon(Which),
    /// `kubectl drain`.
    Drain {
        /// The nodes.
        nodes: Which,
        /// Whether pods that nothing controls are evicted too.
        force: bool,
        /// After this time the drain of a node is given up.
        timeout: Option<SimDuration>,
    },
    /// `kubectl delete`.
    Delete {
        /// What is deleted.
        kind: ObjectKind,
        /// Where objects are that are named by their labels.
        namespace: Symbol,
        /// Which of them.
        which: Which,
    },
    /// The control plane is upgraded to this release.
    UpgradeControlPlane(KubernetesVersion),
    /// EKS is asked for another tier of the control plane.
    ChangeControlPlaneTier(ControlPlaneTier),
    /// `kubectl apply`: the objects appear, or change to this form.
    Apply(Arc<Manifests>),
}

impl Action {
    /// What the step applies, if it applies anything.
    pub const fn applied(&self) -> Option<&Arc<Manifests>> {
        match self {
            Self::Apply(manifests) => Some(manifests),
            _ => None,
        }
    }
}
