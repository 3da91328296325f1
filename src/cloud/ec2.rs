//! The account: pools of free instances, and the instances launched from them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::boot::{BootStages, BootTimes, BootTraits, fleet_call_time, shutdown_time};
use super::fleet::{Candidate, FleetError, FleetErrorCode, FleetReply, FleetRequest, allocate};
use crate::catalog::{PriceQuality, Region};
use crate::domain::{HourlyRate, NodeId, SimDuration, SimTime, Symbol, well_known};
use crate::engine::Streams;

/// An instance, numbered in order of launch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId(pub u32);

/// Where an instance comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pool {
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// `spot` or `on-demand`.
    pub capacity_type: Symbol,
}

impl Pool {
    /// The name under which the pool's random streams are drawn.
    fn stream_name(self) -> String {
        format!("{}/{}/{}", self.instance_type, self.zone, self.capacity_type)
    }
}

/// An instance and what is billed for it.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Where it comes from.
    pub pool: Pool,
    /// The node that it became.
    pub node: NodeId,
    /// Price per hour.
    pub rate: HourlyRate,
    /// How far the price can be trusted.
    pub quality: PriceQuality,
    /// Size of its root volume in GiB.
    pub volume_gib: i64,
    /// When the request was accepted.
    pub accepted: SimTime,
    /// When it entered `running`.
    pub running: Option<SimTime>,
    /// When it left `running`.
    pub terminating: Option<SimTime>,
    /// When it was gone.
    pub terminated: Option<SimTime>,
    ordinal: u64,
}

/// The account in one region.
#[derive(Debug)]
pub struct Ec2 {
    region: Arc<Region>,
    streams: Streams,
    pools: FxHashMap<Pool, PoolState>,
    instances: Vec<Instance>,
    calls: u64,
}

#[derive(Clone, Copy, Debug)]
struct PoolState {
    free: u32,
    launched: u64,
}

/// Free On-Demand instances of a pool: more than any scenario takes.
const ON_DEMAND_FREE: u32 = 1_000_000;

impl Ec2 {
    /// An account without instances.
    pub fn new(region: Arc<Region>, streams: Streams) -> Self {
        Self { region, streams, pools: FxHashMap::default(), instances: Vec::new(), calls: 0 }
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The instance `id`.
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.instances[id.0 as usize]
    }

    /// Every instance ever launched, in order of launch.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// The price of a pool at present, if the pool exists.
    pub fn price(&self, pool: Pool) -> Option<(HourlyRate, PriceQuality)> {
        let zone = self.region.zone_index(pool.zone)?;
        let offered = self.region.instance_type(pool.instance_type).filter(|kind| kind.offered_in(zone))?;
        let price = if pool.capacity_type == well_known::SPOT { offered.spot(zone) } else { offered.on_demand };
        price.map(|price| (price.rate, price.quality))
    }

    /// How long the next CreateFleet call takes. Calls are numbered, so the n-th takes the same time whoever makes it.
    pub fn next_fleet_call_time(&mut self, target: u32) -> SimDuration {
        self.calls += 1;
        fleet_call_time(target, &mut self.streams.nth("api", "CreateFleet", self.calls))
    }

    /// CreateFleet of type instant, answered for the nodes in `nodes` in order; each instance gets a root volume of
    /// `volume_gib`. Pools that were wanted and could not deliver are among the errors even when others could.
    pub fn create_fleet(
        &mut self,
        request: &FleetRequest,
        nodes: &[NodeId],
        volume_gib: i64,
        now: SimTime,
    ) -> FleetReply {
        let mut reply = FleetReply::default();
        let mut candidates = Vec::with_capacity(request.overrides.len());
        for wanted in &request.overrides {
            let pool =
                Pool { instance_type: wanted.instance_type, zone: wanted.zone, capacity_type: request.capacity_type };
            let error = |code| FleetError { code, instance_type: pool.instance_type, zone: pool.zone };
            let Some((price, _)) = self.price(pool) else {
                reply.errors.push(error(FleetErrorCode::Unsupported));
                continue;
            };
            let free = self.pool_state(pool).free;
            if free == 0 {
                reply.errors.push(error(FleetErrorCode::InsufficientInstanceCapacity));
            } else {
                candidates.push(Candidate { pool, free, price, priority: wanted.priority });
            }
        }
        let granted = allocate(request.strategy, request.target, &candidates);
        let undone = request.target - granted.iter().sum::<u32>();
        let mut waiting = nodes.iter();
        for (candidate, count) in candidates.iter().zip(&granted) {
            for &node in waiting.by_ref().take(*count as usize) {
                reply.instances.push(self.launch(candidate.pool, node, volume_gib, now));
            }
            if undone > 0 {
                let code = FleetErrorCode::InsufficientInstanceCapacity;
                let Pool { instance_type, zone, .. } = candidate.pool;
                reply.errors.push(FleetError { code, instance_type, zone });
            }
        }
        reply
    }

    /// Adds an instance that has been running since before the simulation began; `None` if the pool does not exist.
    pub fn add_running(&mut self, pool: Pool, node: NodeId, volume_gib: i64, now: SimTime) -> Option<InstanceId> {
        self.price(pool)?;
        let id = self.launch(pool, node, volume_gib, now);
        self.mark_running(id, now);
        Some(id)
    }

    /// Draws how long the instance takes to run and to become a node.
    pub fn boot(&self, id: InstanceId, stages: &BootStages) -> BootTimes {
        let instance = self.instance(id);
        let mut stream = self.streams.nth("boot", &instance.pool.stream_name(), instance.ordinal);
        stages.draw(self.boot_traits(instance.pool.instance_type), &mut stream)
    }

    /// The instance enters `running`.
    pub fn mark_running(&mut self, id: InstanceId, now: SimTime) {
        self.instances[id.0 as usize].running = Some(now);
    }

    /// TerminateInstances: the instance leaves `running` at once; returns how long it takes to be gone.
    pub fn terminate(&mut self, id: InstanceId, now: SimTime) -> SimDuration {
        let instance = &mut self.instances[id.0 as usize];
        instance.terminating = Some(now);
        let (pool, ordinal) = (instance.pool, instance.ordinal);
        let metal = self.boot_traits(pool.instance_type).metal;
        shutdown_time(metal, &mut self.streams.nth("shutdown", &pool.stream_name(), ordinal))
    }

    /// The instance is gone; its place in the pool is free again.
    pub fn mark_terminated(&mut self, id: InstanceId, now: SimTime) {
        let instance = &mut self.instances[id.0 as usize];
        instance.terminated = Some(now);
        let pool = instance.pool;
        if let Some(state) = self.pools.get_mut(&pool) {
            state.free += 1;
        }
    }

    fn launch(&mut self, pool: Pool, node: NodeId, volume_gib: i64, now: SimTime) -> InstanceId {
        let id = InstanceId(u32::try_from(self.instances.len()).unwrap_or(u32::MAX));
        let (rate, quality) = self.price(pool).unwrap_or((HourlyRate::ZERO, PriceQuality::Assumed));
        let state = self.pool_state(pool);
        let ordinal = state.launched;
        self.pools.insert(pool, PoolState { free: state.free.saturating_sub(1), launched: ordinal + 1 });
        self.instances.push(Instance {
            pool,
            node,
            rate,
            quality,
            volume_gib,
            accepted: now,
            running: None,
            terminating: None,
            terminated: None,
            ordinal,
        });
        id
    }

    /// The pool's state. Its free instances at the start depend on the seed and the pool alone, never on who looks first.
    fn pool_state(&self, pool: Pool) -> PoolState {
        self.pools.get(&pool).copied().unwrap_or_else(|| PoolState { free: self.initial_free(pool), launched: 0 })
    }

    /// Deviation: capacity is a fixed number for each pool: unlimited On-Demand, and for Spot a seeded draw that is
    /// smaller for large types and for types that the Spot Advisor reports as often interrupted.
    fn initial_free(&self, pool: Pool) -> u32 {
        if pool.capacity_type != well_known::SPOT {
            return ON_DEMAND_FREE;
        }
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return 0 };
        let by_band = match kind.advisor.map_or(2, |advice| advice.band) {
            0 => 400.0,
            1 => 250.0,
            2 => 150.0,
            3 => 100.0,
            _ => 60.0,
        };
        let by_size = 8.0 / f64::from(kind.facts.vcpus.max(8));
        let drawn = self.streams.stream("capacity", &pool.stream_name()).lognormal(by_band * by_size, 0.6);
        (libm::round(drawn) as u32).max(1)
    }

    fn boot_traits(&self, instance_type: Symbol) -> BootTraits {
        let Some(kind) = self.region.instance_type(instance_type) else { return BootTraits::default() };
        BootTraits {
            metal: kind.facts.bare_metal,
            gpu: kind.facts.gpu.is_some(),
            local_disk: kind.facts.local_storage_gb > 0,
            xen: kind.facts.hypervisor.is_some_and(|hypervisor| hypervisor.as_str() == "xen"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ec2, Pool};
    use crate::catalog::Catalog;
    use crate::cloud::fleet::{FleetErrorCode, FleetOverride, FleetRequest};
    use crate::domain::{NodeId, SimTime, Symbol, well_known};
    use crate::engine::Streams;
    use crate::policy::selection::AllocationStrategy;

    fn account() -> Ec2 {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        Ec2::new(region, Streams::new(7))
    }

    fn request(types: &[&str], target: u32) -> FleetRequest {
        FleetRequest {
            capacity_type: well_known::SPOT,
            strategy: AllocationStrategy::LowestPrice,
            target,
            overrides: types
                .iter()
                .map(|name| FleetOverride {
                    instance_type: Symbol::new(name),
                    zone: Symbol::new("us-east-1a"),
                    priority: 0,
                })
                .collect(),
        }
    }

    #[test]
    fn two_fleets_for_more_than_a_pool_holds_get_what_it_holds_and_errors_for_the_rest() {
        let mut ec2 = account();
        let nodes: Vec<NodeId> = (0..5_000).map(NodeId).collect();
        let first = ec2.create_fleet(&request(&["m5.large"], 1), &nodes, 20, SimTime::ZERO);
        let second = ec2.create_fleet(&request(&["m5.large"], 5_000), &nodes, 20, SimTime::ZERO);
        assert_eq!(first.instances.len(), 1);
        assert!(first.errors.is_empty());
        assert!(!second.instances.is_empty() && second.instances.len() < 5_000);
        assert_eq!(second.errors[0].code, FleetErrorCode::InsufficientInstanceCapacity);
        let third = ec2.create_fleet(&request(&["m5.large"], 1), &nodes, 20, SimTime::ZERO);
        assert!(third.instances.is_empty(), "the pool is empty");
        ec2.terminate(first.instances[0], SimTime::ZERO);
        ec2.mark_terminated(first.instances[0], SimTime::ZERO);
        assert_eq!(ec2.create_fleet(&request(&["m5.large"], 1), &nodes, 20, SimTime::ZERO).instances.len(), 1);
    }

    #[test]
    fn a_type_that_the_zone_does_not_offer_is_unsupported() {
        let reply = account().create_fleet(&request(&["no-such.type"], 1), &[NodeId(0)], 20, SimTime::ZERO);
        assert_eq!(reply.errors[0].code, FleetErrorCode::Unsupported);
    }

    #[test]
    fn a_pools_capacity_does_not_depend_on_which_pools_were_looked_at_before() {
        let pool = |name: &str| Pool {
            instance_type: Symbol::new(name),
            zone: Symbol::new("us-east-1a"),
            capacity_type: well_known::SPOT,
        };
        let (one, other) = (account(), account());
        let _ = other.initial_free(pool("c5.large"));
        assert_eq!(one.initial_free(pool("m5.large")), other.initial_free(pool("m5.large")));
    }
}
