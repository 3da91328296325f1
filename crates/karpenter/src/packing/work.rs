//! What a scheduling pass had to do, counted as upstream does it.

/// How much work a pass was: numbers of steps in upstream's loops, whatever shortcuts are taken here. They tell how long a
/// pass takes: see [`controller_time`](crate::controller_time).
///
/// Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/scheduler.go` (`Solve`, `add`), `nodeclaim.go`
/// (`CanAdd`), `topology.go` (`AddRequirements`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassWork {
    /// Existing nodes of the cluster, which each pass copies.
    pub cluster: u64,
    /// Attempts to place a pod: one for each turn in the queue, and one more for each preference dropped.
    pub attempts: u64,
    /// Existing nodes asked for a place, one pod after the other.
    pub nodes: u64,
    /// Open claims asked for a place.
    pub claims: u64,
    /// Groups of topology constraints gone through for those.
    pub groups: u64,
    /// Instance types that a claim's check went through, open ones and new ones.
    pub types: u64,
    /// Those among them of claims that were opened.
    pub new_types: u64,
    /// Preferences dropped.
    pub relaxed: u64,
    /// Claims opened.
    pub opened: u64,
}
