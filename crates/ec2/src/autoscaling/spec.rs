//! What an Auto Scaling group is told.

use nodecast_model::catalog::Region;
use nodecast_model::domain::AllocationStrategy;
use nodecast_model::domain::node_group::{InstancesDistribution, NodeGroup, OnDemandStrategy, SpotStrategy, WarmPool};
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{Labels, Symbol};

/// An Auto Scaling group as it was created: launch template, mixed instances policy, zones and limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSpec {
    /// Name.
    pub name: Symbol,
    /// Zones, each with a subnet.
    pub zones: Vec<Symbol>,
    /// Least size in capacity units, which are instances without weights.
    pub min: u32,
    /// Largest size, likewise.
    pub max: u32,
    /// Instance types, the preferred one first.
    pub instance_types: Vec<Symbol>,
    /// Capacity units of an instance of each type, in their order; empty where each instance is one.
    pub weights: Vec<u32>,
    /// On-Demand and Spot, and how pools are chosen.
    pub distribution: InstancesDistribution,
    /// Capacity Rebalancing: a Spot instance at risk is replaced before it is interrupted.
    pub capacity_rebalance: bool,
    /// The process `AZRebalance`: an instance of a crowded zone is replaced by one in an emptier zone.
    pub zone_rebalance: bool,
    /// The warm pool, if it has one.
    pub warm_pool: Option<WarmPool>,
    /// The EBS volumes of each instance.
    pub volumes: NodeVolumes,
    /// Tags.
    pub tags: Labels,
}

impl GroupSpec {
    /// The group behind a node group; `zones` are the cluster's, of which a group that states none has those that offer
    /// one of its types.
    pub fn new(group: &NodeGroup, zones: &[Symbol], region: &Region) -> Self {
        let offers = |zone: &Symbol| {
            let kinds = group.instance_types.iter().filter_map(|&kind| region.instance_type(kind));
            region.zone_index(*zone).is_some_and(|index| kinds.into_iter().any(|kind| kind.offered_in(index)))
        };
        let mut zones = if group.zones.is_empty() { zones.to_vec() } else { group.zones.clone() };
        if group.zones.is_empty() && zones.iter().any(offers) {
            zones.retain(offers);
        }
        Self {
            name: group.name,
            zones,
            min: group.min_size,
            max: group.max_size,
            instance_types: group.instance_types.clone(),
            weights: group.weights.clone(),
            distribution: group.distribution,
            capacity_rebalance: group.capacity_rebalance,
            zone_rebalance: group.zone_rebalance,
            warm_pool: group.warm_pool,
            volumes: group.volumes(),
            tags: group.tags.clone(),
        }
    }

    /// Whether it launches by RunInstances: its launch template alone says what to launch. A mixed instances policy makes
    /// it CreateFleet.
    pub(super) fn launches_by_run_instances(&self) -> bool {
        self.instance_types.len() == 1 && self.distribution.is_on_demand() && !self.is_weighted()
    }

    /// Whether instances count by weight.
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Capacity units of an instance of a type: one without weights, and for a type that the group does not launch.
    pub fn weight(&self, instance_type: Symbol) -> u32 {
        let mut weighted = self.instance_types.iter().zip(&self.weights);
        weighted.find(|(name, _)| **name == instance_type).map_or(1, |(_, weight)| *weight)
    }

    /// The largest weight.
    pub fn largest_weight(&self) -> u32 {
        self.weights.iter().copied().max().unwrap_or(1)
    }

    /// The smallest weight.
    pub(super) fn least_weight(&self) -> u32 {
        self.weights.iter().copied().min().unwrap_or(1)
    }

    /// How EC2 is asked to choose among the pools of a zone, and among how many at lowest price.
    pub(super) fn strategy(&self, spot: bool) -> (AllocationStrategy, u32) {
        if !spot {
            return match self.distribution.on_demand_strategy {
                OnDemandStrategy::Prioritized => (AllocationStrategy::Prioritized, 1),
                OnDemandStrategy::LowestPrice => (AllocationStrategy::LowestPrice, 1),
            };
        }
        match self.distribution.spot_strategy {
            SpotStrategy::LowestPrice { pools } => (AllocationStrategy::LowestPrice, pools),
            SpotStrategy::CapacityOptimized => (AllocationStrategy::CapacityOptimized, 1),
            SpotStrategy::CapacityOptimizedPrioritized => (AllocationStrategy::CapacityOptimizedPrioritized, 1),
            SpotStrategy::PriceCapacityOptimized => (AllocationStrategy::PriceCapacityOptimized, 1),
        }
    }

    /// By how much it may exceed its largest size while it replaces instances: a tenth, at least the largest instance.
    pub(super) fn margin(&self) -> u32 {
        (self.max / 10).max(self.largest_weight())
    }
}
