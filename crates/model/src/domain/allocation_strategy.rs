//! How EC2 is asked to choose among the pools of a request.

/// The allocation strategy of a CreateFleet request.
///
/// Source: EC2 API reference, `SpotOptionsRequest` and `OnDemandOptionsRequest`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocationStrategy {
    /// The cheapest pool with capacity.
    LowestPrice,
    /// The pool with the best priority that has capacity (On-Demand).
    Prioritized,
    /// The deepest pool.
    CapacityOptimized,
    /// Among pools of nearly the greatest depth, the one with the best priority.
    CapacityOptimizedPrioritized,
    /// Among deep pools, the cheapest.
    PriceCapacityOptimized,
    /// All pools evenly.
    Diversified,
}

impl AllocationStrategy {
    /// The strategy as the EC2 API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LowestPrice => "lowest-price",
            Self::Prioritized => "prioritized",
            Self::CapacityOptimized => "capacity-optimized",
            Self::CapacityOptimizedPrioritized => "capacity-optimized-prioritized",
            Self::PriceCapacityOptimized => "price-capacity-optimized",
            Self::Diversified => "diversified",
        }
    }
}
