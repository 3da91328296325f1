//! Karpenter's scheduler: which pods go on which nodes, existing or new, and which instance types a new node may have.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling` and `pkg/scheduling`. One call is one scheduling
//! pass. Older releases differ only where [`PackingSetup::karpenter`] is consulted.
//!
//! `Packer::new` compiles node pools, instance types and daemons once; `Packer::pack` then answers for any set of
//! nodes and pods, so that consolidation can ask "what if these nodes were gone" again and again.
//!
//! What must not live here: when a pass happens, which pods are provisionable, what a launch request looks like
//! (`selection`), the creation of anything.

mod errors;
mod input;
mod plan;

pub use errors::{
    CriteriaMissed, HostPortConflict, PoolRefusal, Refusal, ReservedRefusal, TopologyKind, TopologyRefusal,
    TypesRefusal, Unschedulable, VolumeRefusal,
};
pub use input::{
    BoundPod, MinValuesPolicy, NamespaceView, NodeView, PackingOptions, PackingSetup, PendingPod, PoolView,
    PreferencePolicy, ReservedMode, Situation, TieBreak, Volumes,
};
pub use plan::{DroppedPool, ExistingPlacement, PackingPlan, PlannedClaim, PricedType, UnschedulablePod};
