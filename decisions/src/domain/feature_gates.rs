//! Karpenter's feature gates that change what it does with nodes.

/// The gates (`settings.featureGates`); all are off unless a scenario says otherwise, as in a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeatureGates {
    /// `spotToSpotConsolidation`: Spot nodes may be replaced by cheaper Spot nodes.
    pub spot_to_spot: bool,
    /// `nodeRepair`: nodes that are unhealthy for long are replaced.
    pub node_repair: bool,
    /// `staticCapacity`: NodePools with `replicas` keep so many nodes.
    pub static_capacity: bool,
    /// `nodeOverlay`: NodeOverlays count.
    pub node_overlay: bool,
    /// `capacityBuffer`: CapacityBuffers keep room free.
    pub capacity_buffer: bool,
}
