//! Persistent volumes, as far as they decide where a pod may run.

use super::pod::NodeSelectorTerm;
use super::symbol::Symbol;

/// When a StorageClass makes the volume for a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum VolumeBindingMode {
    /// As soon as the claim exists.
    #[default]
    Immediate,
    /// When the first pod that uses the claim is placed.
    WaitForFirstConsumer,
}

/// A StorageClass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageClass {
    /// Name.
    pub name: Symbol,
    /// The driver, for example `ebs.csi.aws.com`.
    pub provisioner: Symbol,
    /// When volumes are made.
    pub binding_mode: VolumeBindingMode,
    /// `allowedTopologies`: alternatives, each a set of label expressions; empty means anywhere.
    pub allowed_topologies: Vec<NodeSelectorTerm>,
    /// Whether claims that name no class get this one.
    pub default_class: bool,
}

/// A PersistentVolume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentVolume {
    /// Name.
    pub name: Symbol,
    /// The CSI driver; in-tree names are translated by whoever reads the manifest. `None` for volumes without one.
    pub driver: Option<Symbol>,
    /// The alternatives of its required node affinity; empty means anywhere.
    pub node_affinity: Vec<NodeSelectorTerm>,
    /// Whether it is a `local` or `hostPath` volume, whose hostname affinity a new node could never meet.
    pub node_local: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// A PersistentVolumeClaim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentVolumeClaim {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// `storageClassName`; `None` when not given.
    pub class: Option<Symbol>,
    /// The volume it is bound to.
    pub volume: Option<Symbol>,
    /// Whether binding has finished (annotation `pv.kubernetes.io/bind-completed`).
    pub bind_completed: bool,
    /// Whether its volume is lost.
    pub lost: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}
