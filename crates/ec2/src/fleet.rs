//! CreateFleet of type instant: the request, the reply, and the allocation strategies.

use super::ec2::{InstanceId, Pool};
use super::faults::ServerError;
use nodecast_model::domain::AllocationStrategy;
use nodecast_model::domain::{HourlyRate, Symbol};

/// What CreateFleet is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct FleetRequest {
    /// `spot` or `on-demand`.
    pub capacity_type: Symbol,
    /// How to choose among the overrides.
    pub strategy: AllocationStrategy,
    /// `InstancePoolsToUseCount`: at lowest price, the instances are spread over so many of the cheapest pools; 1 otherwise.
    pub pools_to_use: u32,
    /// Capacity units wanted: instances, unless overrides have weights.
    pub target: u32,
    /// The pools to choose from.
    pub overrides: Vec<FleetOverride>,
}

/// One pool of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FleetOverride {
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// Lower is better; counts only for the prioritized strategies.
    pub priority: u32,
    /// `WeightedCapacity`: capacity units of an instance, 1 without weights.
    pub weight: u32,
}

impl FleetRequest {
    /// Instances that meet the target if all are of the smallest weight.
    pub fn most_instances(&self) -> u32 {
        let least = self.overrides.iter().map(|wanted| wanted.weight).min().unwrap_or(1);
        self.target.div_ceil(least.max(1))
    }
}

/// What CreateFleet answers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FleetReply {
    /// The instances launched, at most as many as wanted.
    pub instances: Vec<InstanceId>,
    /// One error for each pool that was tried and could not deliver.
    pub errors: Vec<FleetError>,
}

/// Why a pool delivered nothing, or less than wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FleetError {
    /// The API's code.
    pub code: FleetErrorCode,
    /// Instance type of the pool.
    pub instance_type: Symbol,
    /// Zone of the pool.
    pub zone: Symbol,
}

/// The API's error codes for a pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FleetErrorCode {
    /// The pool has fewer free instances than wanted.
    InsufficientInstanceCapacity,
    /// The zone does not offer the type, or not in this way.
    Unsupported,
    /// The On-Demand vCPU quota is used up.
    VcpuLimitExceeded,
    /// The Spot vCPU quota is used up.
    MaxSpotInstanceCountExceeded,
    /// The subnet has no address left.
    InsufficientFreeAddressesInSubnet,
    /// The capacity reservation has no room.
    ReservationCapacityExceeded,
}

/// `RequestLimitExceeded`: there have been too many calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("RequestLimitExceeded")]
pub struct Throttled;

/// Why a call had no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// There have been too many calls.
    #[error(transparent)]
    Throttled(#[from] Throttled),
    /// EC2 failed.
    #[error("{}", .0.as_str())]
    Server(ServerError),
}

impl FleetErrorCode {
    /// The code as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InsufficientInstanceCapacity => "InsufficientInstanceCapacity",
            Self::Unsupported => "Unsupported",
            Self::VcpuLimitExceeded => "VcpuLimitExceeded",
            Self::MaxSpotInstanceCountExceeded => "MaxSpotInstanceCountExceeded",
            Self::InsufficientFreeAddressesInSubnet => "InsufficientFreeAddressesInSubnet",
            Self::ReservationCapacityExceeded => "ReservationCapacityExceeded",
        }
    }
}

/// A pool as the strategies see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The pool.
    pub pool: Pool,
    /// Instances that it can still deliver to this account.
    pub free: u32,
    /// Instances that it has, whatever the quotas of the account: strategies compare these.
    pub depth: u32,
    /// Its price.
    pub price: HourlyRate,
    /// Its priority in the request; lower is better.
    pub priority: u32,
    /// Capacity units of an instance.
    pub weight: u32,
}

impl Candidate {
    /// Price of a capacity unit, by which strategies rank prices.
    ///
    /// Source: EC2 Auto Scaling user guide, instance weights; EC2 API reference, `FleetLaunchTemplateOverrides`, `WeightedCapacity`.
    fn unit_price(&self) -> u64 {
        u64::try_from(self.price.as_nanos()).unwrap_or(0) / u64::from(self.weight.max(1))
    }
}

/// Share of the deepest pool's depth from which on price alone decides, in percent.
const PRICE_CAPACITY_DEPTH_PERCENT: u64 = 50;
/// Share of the deepest pool's depth from which on priority decides, in percent.
const PRIORITY_DEPTH_PERCENT: u64 = 80;

/// Splits `target` capacity units over the candidates: how many instances from each, in candidate order. Ties go to the
/// earlier candidate. The last instance may exceed the target. What the candidates cannot deliver stays undone.
///
/// Deviation: AWS publishes the goals of the strategies, but not their rules. The depth thresholds are assumptions.
pub fn allocate(strategy: AllocationStrategy, pools_to_use: u32, target: u32, candidates: &[Candidate]) -> Vec<u32> {
    let mut granted = vec![0; candidates.len()];
    match strategy {
        AllocationStrategy::LowestPrice => {
            let ranked = ranked(candidates, Candidate::unit_price);
            let cheapest: Vec<usize> = ranked.into_iter().take(pools_to_use as usize).collect();
            let left = spread(&mut granted, target, candidates, &cheapest);
            fill(&mut granted, left, candidates, Candidate::unit_price);
        }
        AllocationStrategy::Prioritized => fill(&mut granted, target, candidates, |c| u64::from(c.priority)),
        AllocationStrategy::PriceCapacityOptimized => {
            let deepest = candidates.iter().map(|c| u64::from(c.depth)).max().unwrap_or(0);
            let deep = |c: &Candidate| u64::from(c.depth) * 100 >= deepest * PRICE_CAPACITY_DEPTH_PERCENT;
            // Deep pools first by price, then the shallow ones by depth.
            fill(&mut granted, target, candidates, |c| {
                if deep(c) { c.unit_price() } else { u64::MAX - u64::from(c.depth) }
            });
        }
        AllocationStrategy::CapacityOptimized => one_by_one(&mut granted, target, candidates, 100),
        AllocationStrategy::CapacityOptimizedPrioritized => {
            one_by_one(&mut granted, target, candidates, PRIORITY_DEPTH_PERCENT);
        }
        AllocationStrategy::Diversified => {
            let all: Vec<usize> = (0..candidates.len()).collect();
            spread(&mut granted, target, candidates, &all);
        }
    }
    granted
}

/// Positions of the candidates in order of `rank`.
fn ranked(candidates: &[Candidate], rank: impl Fn(&Candidate) -> u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|&at| (rank(&candidates[at]), at));
    order
}

/// Takes `wanted` more units by emptying one pool after the other, in order of `rank`.
fn fill(granted: &mut [u32], mut wanted: u32, candidates: &[Candidate], rank: impl Fn(&Candidate) -> u64) {
    for at in ranked(candidates, rank) {
        let weight = candidates[at].weight.max(1);
        let more = wanted.div_ceil(weight).min(candidates[at].free - granted[at]);
        granted[at] += more;
        wanted = wanted.saturating_sub(more * weight);
    }
}

/// Takes instance after instance from the best pool whose depth is at least `percent` of the deepest at that moment.
fn one_by_one(granted: &mut [u32], mut wanted: u32, candidates: &[Candidate], percent: u64) {
    while wanted > 0 {
        let has_some = |at: &usize| candidates[*at].free > granted[*at];
        let left = |at: usize| u64::from(candidates[at].depth - granted[at]);
        let deepest = (0..candidates.len()).filter(has_some).map(left).max().unwrap_or(0);
        let eligible = (0..candidates.len()).filter(has_some).filter(|&at| left(at) * 100 >= deepest * percent);
        let Some(best) = eligible.min_by_key(|&at| (candidates[at].priority, at)) else { return };
        granted[best] += 1;
        wanted = wanted.saturating_sub(candidates[best].weight.max(1));
    }
}

/// Deals instances out over the candidates at `pools` in turn; returns the units that are missing then.
fn spread(granted: &mut [u32], mut wanted: u32, candidates: &[Candidate], pools: &[usize]) -> u32 {
    while wanted > 0 {
        let before = wanted;
        for &at in pools {
            if wanted > 0 && granted[at] < candidates[at].free {
                granted[at] += 1;
                wanted = wanted.saturating_sub(candidates[at].weight.max(1));
            }
        }
        if wanted == before {
            break;
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::{Candidate, allocate};
    use crate::Pool;
    use nodecast_model::domain::AllocationStrategy::{self, *};
    use nodecast_model::domain::{HourlyRate, Symbol, well_known};

    fn candidates(pools: &[(u32, i64)]) -> Vec<Candidate> {
        pools
            .iter()
            .enumerate()
            .map(|(at, &(free, price))| Candidate {
                pool: Pool {
                    instance_type: Symbol::new("m5.large"),
                    zone: Symbol::new("a"),
                    capacity_type: well_known::SPOT,
                },
                free,
                depth: free,
                price: HourlyRate::from_nanos(price),
                priority: at as u32,
                weight: 1,
            })
            .collect()
    }

    fn check(strategy: AllocationStrategy, target: u32, pools: &[(u32, i64)], expected: &[u32]) {
        assert_eq!(allocate(strategy, 1, target, &candidates(pools)), expected, "{strategy:?}");
    }

    #[test]
    fn lowest_price_empties_the_cheapest_pool_first() {
        check(LowestPrice, 5, &[(9, 30), (3, 10), (9, 20)], &[0, 3, 2]);
    }

    #[test]
    fn lowest_price_uses_cheapest_pools_before_overflow() {
        let pools = candidates(&[(9, 30), (9, 10), (3, 20), (9, 40)]);
        assert_eq!(allocate(LowestPrice, 2, 5, &pools), [0, 3, 2, 0]);
        assert_eq!(allocate(LowestPrice, 2, 14, &pools), [2, 9, 3, 0]);
        assert_eq!(allocate(LowestPrice, 9, 8, &pools), [2, 2, 2, 2]);
    }

    #[test]
    fn weights_rank_prices_per_unit_until_met() {
        let mut pools = candidates(&[(9, 24), (9, 40), (1, 72)]);
        (pools[0].weight, pools[1].weight, pools[2].weight) = (2, 5, 6);
        // 12, 8 and 12 per unit: the second pool, whose third instance exceeds the 11 units by 4.
        for strategy in [LowestPrice, PriceCapacityOptimized] {
            assert_eq!(allocate(strategy, 1, 11, &pools), [0, 3, 0], "{strategy:?}");
        }
        assert_eq!(allocate(Prioritized, 1, 11, &pools), [6, 0, 0]);
        assert_eq!(allocate(LowestPrice, 3, 13, &pools), [1, 1, 1]);
        assert_eq!(allocate(CapacityOptimized, 1, 8, &pools), [2, 1, 0], "the deepest pool, instance by instance");
        pools[1].free = 1;
        assert_eq!(allocate(LowestPrice, 1, 11, &pools), [3, 1, 0]);
    }

    #[test]
    fn prioritized_ignores_price() {
        check(Prioritized, 5, &[(3, 30), (9, 10)], &[3, 2]);
    }

    #[test]
    fn price_capacity_optimized_prefers_clearly_deeper_pools() {
        check(PriceCapacityOptimized, 2, &[(10, 10), (100, 10)], &[0, 2]);
        check(PriceCapacityOptimized, 2, &[(100, 8), (150, 10)], &[2, 0]);
    }

    #[test]
    fn capacity_optimized_prioritized_skips_shallow_first_pool() {
        check(CapacityOptimizedPrioritized, 1, &[(50, 10), (100, 20)], &[0, 1]);
        check(CapacityOptimizedPrioritized, 1, &[(90, 10), (100, 20)], &[1, 0]);
        check(CapacityOptimized, 1, &[(90, 10), (100, 20)], &[0, 1]);
    }

    #[test]
    fn diversified_spreads_evenly_and_redistributes_shortfall() {
        check(Diversified, 7, &[(9, 1), (1, 1), (9, 1)], &[3, 1, 3]);
    }

    #[test]
    fn what_no_pool_can_deliver_stays_undone() {
        for strategy in [
            LowestPrice,
            Prioritized,
            CapacityOptimized,
            CapacityOptimizedPrioritized,
            PriceCapacityOptimized,
            Diversified,
        ] {
            let granted = allocate(strategy, 1, 10, &candidates(&[(2, 1), (0, 2), (3, 3)]));
            assert_eq!(granted, [2, 0, 3], "{strategy:?}");
        }
    }
}
