//! Karpenter's feature gates that change what it does with nodes.

/// The gates (`settings.featureGates`). All are off by default but `reservedCapacity`, which has a default for each release.
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
    /// `reservedCapacity`: launches use the capacity reservations that node classes select; `None` for the release's default.
    pub reserved_capacity: Option<bool>,
}

impl FeatureGates {
    /// Open gates, by Karpenter's names; `ReservedCapacity` only where it is set.
    ///
    /// Source: Karpenter v1.13 `pkg/operator/options/options.go`, `FeatureGates`.
    pub fn open(self) -> Vec<&'static str> {
        let Self { spot_to_spot, node_repair, static_capacity, node_overlay, capacity_buffer, reserved_capacity } =
            self;
        let gates = [
            ("SpotToSpotConsolidation", spot_to_spot),
            ("NodeRepair", node_repair),
            ("StaticCapacity", static_capacity),
            ("NodeOverlay", node_overlay),
            ("CapacityBuffer", capacity_buffer),
            ("ReservedCapacity", reserved_capacity == Some(true)),
        ];
        gates.into_iter().filter(|(_, is_open)| *is_open).map(|(name, _)| name).collect()
    }
}
