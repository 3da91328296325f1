//! Workloads: what makes pods.

use std::sync::Arc;

use super::labels::LabelSelector;
use super::pod::{IntOrPercent, PodSpec};
use super::symbol::Symbol;
use super::time::SimDuration;

/// A namespaced object's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectName {
    /// Namespace.
    pub namespace: Symbol,
    /// Name within it.
    pub name: Symbol,
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A Deployment.
#[derive(Clone, PartialEq, Debug)]
pub struct Deployment {
    /// Namespace and name.
    pub name: ObjectName,
    /// `replicas`; `None` when the manifest leaves it out (the API then says 1).
    pub replicas: Option<u32>,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// Pods above the wanted number that a rollout may have; `None` for `Recreate`.
    pub max_surge: Option<IntOrPercent>,
    /// Pods below the wanted number that a rollout may have.
    pub max_unavailable: Option<IntOrPercent>,
    /// How long a pod must be Ready before it counts as available.
    pub min_ready: SimDuration,
}

/// A DaemonSet.
#[derive(Clone, PartialEq, Debug)]
pub struct DaemonSet {
    /// Namespace and name.
    pub name: ObjectName,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
}
