//! The account: pools of free instances, and the instances launched from them.

mod addresses;
mod faults;
mod quota;
mod requests;
mod reserved;
mod sharing;
mod warm;

use std::cell::RefCell;
use std::sync::Arc;

pub use self::faults::LaunchOutcome;
use self::quota::{Change, QuotaLeft, beyond_quota};
pub use self::requests::{InstanceFilter, LaunchError, RunRequest};
use self::sharing::Refusal;
pub use self::warm::{WarmId, WarmLife};

use rustc_hash::FxHashMap;

use super::account::{AccountUse, PoolUse};
use super::api::ApiAction;
use super::boot::{BootStages, BootTimes, BootTraits, fleet_call_time};
use super::demand::Demand;
use super::fleet::{CallError, Candidate, FleetError, FleetErrorCode, FleetReply, FleetRequest, allocate};
use super::market::Market;
use super::quotas::QuotaKey;
use super::reservations::ReservationUse;
use super::settings::{CapacityModel, CloudSettings};
use nodecast_engine::Streams;
use nodecast_model::catalog::Region;
use nodecast_model::domain::node_group::WarmPoolState;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{HourlyRate, NodeId, SimDuration, SimTime, Symbol, well_known};

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
    pub fn stream_name(self) -> String {
        // There are thousands of pools, and formatting takes several times as long.
        [self.instance_type, self.zone, self.capacity_type].map(Symbol::as_str).join("/")
    }
}

/// An instance and what is billed for it.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Where it comes from.
    pub pool: Pool,
    /// The node that it became.
    pub node: NodeId,
    /// Price per hour at launch.
    pub rate: HourlyRate,
    /// The EBS volumes that it was launched with.
    pub volumes: NodeVolumes,
    /// Whether it was launched with a public address, or without one; `None` where that is the subnet's to say.
    pub public_address: Option<bool>,
    /// When the request was accepted.
    pub accepted: SimTime,
    /// When it entered `running`.
    pub running: Option<SimTime>,
    /// When it left `running`.
    pub terminating: Option<SimTime>,
    /// Who ended it, once it has left `running`.
    pub ended_by: Option<EndedBy>,
    /// When it was gone.
    pub terminated: Option<SimTime>,
    /// Its number among the instances of its pool.
    pub ordinal: u64,
    /// What its launch said of capacity reservations.
    pub how: ReservationUse,
    /// The account's reservation that it was launched into, or runs in since, by position.
    pub reservation: Option<u32>,
    /// The subnet that it lives in, by position; `None` where no subnet is stated.
    pub subnet: Option<u32>,
    /// Addresses of the subnet that it keeps.
    pub addresses: u32,
}

/// Who ended an instance: it decides what the first hour of a Spot instance costs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EndedBy {
    /// We did, by TerminateInstances.
    User,
    /// EC2 reclaimed it.
    Ec2,
}

/// The account in one region.
#[derive(Debug)]
pub struct Ec2 {
    region: Arc<Region>,
    streams: Streams,
    market_streams: Streams,
    settings: Arc<CloudSettings>,
    market: Market,
    /// Use of the pools: with `capacity: shared`, of a whole fleet.
    pools: PoolUse,
    /// Instances that each pool launched for this cluster.
    launched: FxHashMap<Pool, u64>,
    /// The free instances at the start of those that were asked about: each launch looks at a hundred pools.
    free_at_start: RefCell<FxHashMap<Pool, u32>>,
    instances: Vec<Instance>,
    /// Times of instances in warm pools.
    warm: Vec<WarmLife>,
    /// Use of the limits of the account by all its clusters.
    account: AccountUse,
    /// This cluster's number among them.
    cluster: u32,
    /// vCPUs of this cluster, and of what it has reserved and does not use as of its last event.
    own_vcpus: FxHashMap<QuotaKey, u32>,
    own_reserved: FxHashMap<QuotaKey, u32>,
    /// Demand on limits that clusters may share, if it is recorded.
    demand: Option<Box<RefCell<Demand>>>,
    /// The shared limit that refused the last request.
    refusal: Option<Refusal>,
    calls: u64,
    reads: u64,
    /// Launch calls that reached EC2, those that it refused included.
    arrived: u64,
    /// How often each pool has been asked for instances.
    requests: FxHashMap<Pool, u64>,
    /// Addresses taken of each subnet.
    addresses_taken: Vec<u32>,
}

/// Free instances of a pool without limit: more than any scenario takes.
const UNLIMITED: u32 = 1_000_000;

impl Ec2 {
    /// An account without instances, in a run until `end`.
    pub fn new(region: Arc<Region>, streams: Streams, settings: Arc<CloudSettings>, end: SimTime) -> Self {
        Self::in_market(region, streams, streams, settings, end)
    }

    /// The same in a market with random streams of its own, which several clusters may meet.
    pub fn in_market(
        region: Arc<Region>,
        streams: Streams,
        market: Streams,
        settings: Arc<CloudSettings>,
        end: SimTime,
    ) -> Self {
        Self {
            market: Market::new(Arc::clone(&region), market, Arc::clone(&settings), end).striking(streams),
            region,
            streams,
            market_streams: market,
            account: AccountUse::new(&settings.api, 1),
            cluster: 0,
            settings,
            pools: PoolUse::default(),
            launched: FxHashMap::default(),
            free_at_start: RefCell::default(),
            instances: Vec::new(),
            warm: Vec::new(),
            own_vcpus: FxHashMap::default(),
            own_reserved: FxHashMap::default(),
            demand: None,
            refusal: None,
            calls: 0,
            reads: 0,
            arrived: 0,
            requests: FxHashMap::default(),
            addresses_taken: Vec::new(),
        }
    }

    /// What the account is told.
    pub fn settings(&self) -> &CloudSettings {
        &self.settings
    }

    /// The market: prices and shortages.
    pub fn market(&mut self) -> &mut Market {
        &mut self.market
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

    /// Hands out the instances: the account has none until [`Ec2::take_back`].
    pub(crate) fn lend_instances(&mut self) -> Vec<Instance> {
        std::mem::take(&mut self.instances)
    }

    /// Takes its instances back.
    pub(crate) fn take_back(&mut self, instances: Vec<Instance>) {
        debug_assert!(self.instances.is_empty(), "instances were launched while the others were lent");
        self.instances = instances;
    }

    /// How long the next CreateFleet call for one instance takes. Calls are numbered, so the n-th takes the same time whoever makes it.
    pub fn next_fleet_call_time(&mut self, now: SimTime) -> SimDuration {
        self.calls += 1;
        let times = self.settings.times;
        let drawn =
            || fleet_call_time(times.fleet_call_median, &mut self.streams.nth("api", "CreateFleet", self.calls));
        let fleet_call = times.fleet_call.unwrap_or_else(drawn);
        self.with_api_latency(fleet_call, now)
    }

    /// [`Ec2::create_fleet_using`] open capacity reservations, as launches do that say nothing of them.
    ///
    /// # Errors
    /// As [`Ec2::create_fleet_using`].
    pub fn create_fleet(
        &mut self,
        request: &FleetRequest,
        nodes: &[NodeId],
        volumes: &NodeVolumes,
        now: SimTime,
    ) -> Result<FleetReply, CallError> {
        self.create_fleet_using(request, ReservationUse::Open, nodes, volumes, now)
    }

    /// CreateFleet of type instant, answered for the nodes in `nodes` in order; each instance gets
    /// `volumes`. Pools that were wanted and could not deliver are among the errors even when others could.
    ///
    /// # Errors
    /// If there have been too many calls, or if EC2 fails: nothing is launched.
    pub fn create_fleet_using(
        &mut self,
        request: &FleetRequest,
        how: ReservationUse,
        nodes: &[NodeId],
        volumes: &NodeVolumes,
        now: SimTime,
    ) -> Result<FleetReply, CallError> {
        self.arrived += 1;
        self.take_tokens(ApiAction::CreateFleet, request.most_instances(), now)?;
        self.server_error(ApiAction::CreateFleet, self.arrived, now)?;
        self.settle(now);
        let mut reply = FleetReply::default();
        let mut candidates = Vec::with_capacity(request.overrides.len());
        let mut quotas = QuotaLeft::default();
        let mut quota = (None, 0);
        for wanted in &request.overrides {
            let pool =
                Pool { instance_type: wanted.instance_type, zone: wanted.zone, capacity_type: request.capacity_type };
            // The pools of a type stand together, and share its quota.
            if quota.0 != Some(pool.instance_type) {
                quota = (Some(pool.instance_type), quotas.instances(self, (pool, request.most_instances()), now));
            }
            match self.candidate_within(quota.1, (pool, how), wanted.priority, now) {
                Ok(candidate) => candidates.push(Candidate { weight: wanted.weight, ..candidate }),
                Err(code) => {
                    reply.errors.push(FleetError { code, instance_type: pool.instance_type, zone: pool.zone });
                }
            }
        }
        self.order_zones(&mut candidates);
        self.log_choice(request.capacity_type, request.strategy, candidates.len());
        let granted = allocate(request.strategy, request.pools_to_use, request.target, &candidates);
        let units = |(candidate, count): (&Candidate, &u32)| candidate.weight.saturating_mul(*count);
        let is_met = candidates.iter().zip(&granted).map(units).sum::<u32>() >= request.target;
        let (mut waiting, mut launched) = (nodes.iter(), 0_u32);
        for (candidate, count) in candidates.iter().zip(&granted) {
            let Pool { instance_type, zone, .. } = candidate.pool;
            for _ in 0..*count {
                // Pools of one zone share its subnets.
                if self.free_addresses(zone, now) == 0 {
                    let code = FleetErrorCode::InsufficientFreeAddressesInSubnet;
                    reply.errors.push(FleetError { code, instance_type, zone });
                    break;
                }
                // So do all pools of one class its quota, in which what is reserved counts already.
                let over = self.over_quota(candidate.pool, now);
                if let Some(code) = over.filter(|_| self.room_in_open(candidate.pool, how, now) == 0) {
                    reply.errors.push(FleetError { code, instance_type, zone });
                    break;
                }
                let Some(&node) = waiting.next() else { break };
                reply.instances.push(self.launch_with(candidate.pool, node, volumes, how, now));
                launched = launched.saturating_add(candidate.weight);
            }
            if !is_met {
                let code = FleetErrorCode::InsufficientInstanceCapacity;
                reply.errors.push(FleetError { code, instance_type, zone });
            }
        }
        if launched < request.target {
            self.note_refusal(request, &reply, now);
        }
        Ok(reply)
    }

    /// Puts the zones of each type in an order that is drawn for this call, so that zones between which a strategy makes no difference, as
    /// those of one On-Demand price, are chosen evenly.
    ///
    /// Deviation: AWS publishes the goals of the strategies, but not the choice of EC2 Fleet between equal pools. An
    /// even draw is assumed.
    fn order_zones(&self, candidates: &mut [Candidate]) {
        let draws = self.streams.ordinals("zone-choice").part(self.arrived);
        let place = |zone| self.region().zone_index(zone).map_or(u64::MAX, |place| draws.nth(place as u64));
        for zones in candidates.chunk_by_mut(|one, next| one.pool.instance_type == next.pool.instance_type) {
            zones.sort_by_key(|candidate| place(candidate.pool.zone));
        }
    }

    /// What `pool` can deliver to a launch that says nothing of capacity reservations, or why it cannot.
    fn candidate(
        &mut self,
        (pool, target): (Pool, u32),
        priority: u32,
        now: SimTime,
    ) -> Result<Candidate, FleetErrorCode> {
        let left = self.left_of_quota((pool, target), now);
        self.candidate_within(left, (pool, ReservationUse::Open), priority, now)
    }

    /// The same where the vCPU quota leaves room for so many instances, for a launch that says so of capacity reservations.
    fn candidate_within(
        &mut self,
        within_quota: u32,
        (pool, how): (Pool, ReservationUse),
        priority: u32,
        now: SimTime,
    ) -> Result<Candidate, FleetErrorCode> {
        let Some((price, _)) = self.market.price(pool, now) else { return Err(FleetErrorCode::Unsupported) };
        let reserved = self.room_in_open(pool, how, now);
        if within_quota == 0 && reserved == 0 {
            return Err(beyond_quota(pool));
        }
        let addresses = self.free_addresses(pool.zone, now);
        if addresses == 0 {
            return Err(FleetErrorCode::InsufficientFreeAddressesInSubnet);
        }
        let depth = self.free(pool, now);
        match depth.min(within_quota).saturating_add(reserved).min(addresses) {
            0 => Err(FleetErrorCode::InsufficientInstanceCapacity),
            free => {
                let depth = depth.saturating_add(reserved).min(addresses);
                Ok(Candidate { pool, free, depth, price, priority, weight: 1 })
            }
        }
    }

    /// An instance has these volumes, since it was launched.
    pub fn set_volumes(&mut self, id: InstanceId, volumes: NodeVolumes) {
        self.instances[id.0 as usize].volumes = volumes;
    }

    /// An instance was launched with a public address, or without one, whatever its subnet says.
    pub fn set_public_address(&mut self, id: InstanceId, has_one: bool) {
        self.instances[id.0 as usize].public_address = Some(has_one);
    }

    /// Instances that the pool has to give beside what is reserved.
    fn free(&mut self, pool: Pool, now: SimTime) -> u32 {
        if self.is_withheld(pool, now) {
            return 0;
        }
        if let Some(recorded) = self.market.recorded(pool, now) {
            return recorded.saturating_sub(self.pools.live(self.market.listed_pool(pool)));
        }
        match self.settings.capacity {
            CapacityModel::Infinite => UNLIMITED,
            CapacityModel::Static | CapacityModel::UpDown => {
                if self.market.is_short(pool, now) {
                    0
                } else {
                    self.free_now(pool)
                }
            }
        }
    }

    /// Adds an instance that has been running since before the simulation began; `None` if the pool does not exist.
    pub fn add_running(&mut self, pool: Pool, node: NodeId, volumes: &NodeVolumes, now: SimTime) -> Option<InstanceId> {
        self.market.listed(pool)?;
        let id = self.launch(pool, node, volumes, now);
        self.mark_running(id, now);
        Some(id)
    }

    /// Draws how long the instance takes to run and to become a node.
    pub fn boot(&self, id: InstanceId, stages: &BootStages) -> BootTimes {
        let instance = self.instance(id);
        let mut stream = self.streams.nth("boot", &instance.pool.stream_name(), instance.ordinal);
        let boot = stages.draw(self.boot_traits(instance.pool.instance_type), &mut stream);
        self.slowed(boot, instance.accepted)
    }

    /// Draws how long an instance of a warm pool takes to become a node.
    pub fn warm_boot(&self, id: InstanceId, stages: &BootStages, state: WarmPoolState) -> BootTimes {
        let instance = self.instance(id);
        let mut stream = self.streams.nth("warm-boot", &instance.pool.stream_name(), instance.ordinal);
        self.slowed(stages.draw_warm(state, &mut stream), instance.accepted)
    }

    /// The instance enters `running`.
    pub fn mark_running(&mut self, id: InstanceId, now: SimTime) {
        self.instances[id.0 as usize].running = Some(now);
    }

    /// TerminateInstances: the instance leaves `running` at once; returns how long it takes to be gone.
    pub fn terminate(&mut self, id: InstanceId, now: SimTime) -> SimDuration {
        self.end(id, EndedBy::User, now)
    }

    /// EC2 reclaims the instance: it leaves `running` at once; returns how long it takes to be gone.
    pub fn reclaim(&mut self, id: InstanceId, now: SimTime) -> SimDuration {
        self.end(id, EndedBy::Ec2, now)
    }

    fn end(&mut self, id: InstanceId, by: EndedBy, now: SimTime) -> SimDuration {
        let instance = &mut self.instances[id.0 as usize];
        instance.terminating = Some(now);
        instance.ended_by = Some(by);
        self.time_to_stop(id)
    }

    /// The instance is gone; its place in the pool is free again.
    pub fn mark_terminated(&mut self, id: InstanceId, now: SimTime) {
        let instance = &mut self.instances[id.0 as usize];
        instance.terminated = Some(now);
        let pool = instance.pool;
        self.pools.put_back(self.market.listed_pool(pool));
        self.log_pool(pool, -1, now);
        self.count_vcpus(pool, Change::Ended, now);
        self.take_addresses(id, 0);
        self.settle(now);
        self.note_reserved(now);
    }

    fn launch(&mut self, pool: Pool, node: NodeId, volumes: &NodeVolumes, now: SimTime) -> InstanceId {
        self.launch_with(pool, node, volumes, ReservationUse::Open, now)
    }

    fn launch_with(
        &mut self,
        pool: Pool,
        node: NodeId,
        volumes: &NodeVolumes,
        how: ReservationUse,
        now: SimTime,
    ) -> InstanceId {
        let id = InstanceId(u32::try_from(self.instances.len()).unwrap_or(u32::MAX));
        let rate = self.market.price(pool, now).map_or(HourlyRate::ZERO, |(rate, _)| rate);
        let reservation = self.reservation_for(pool, how, now);
        self.count_vcpus(pool, if reservation.is_some() { Change::Reserved } else { Change::Launched }, now);
        let free = self.free_now(pool);
        self.pools.take(self.market.listed_pool(pool), free);
        self.log_pool(pool, 1, now);
        let launched = self.launched.entry(pool).or_insert(0);
        let ordinal = *launched;
        *launched += 1;
        self.instances.push(Instance {
            pool,
            node,
            rate,
            volumes: volumes.clone(),
            public_address: None,
            accepted: now,
            running: None,
            terminating: None,
            ended_by: None,
            terminated: None,
            ordinal,
            how,
            reservation,
            subnet: self.roomiest_subnet(pool.zone).map(|(number, _)| number),
            addresses: 0,
        });
        self.take_addresses(id, 1);
        self.note_reserved(now);
        id
    }

    /// Free instances of the pool.
    fn free_now(&self, pool: Pool) -> u32 {
        self.pools.free.get(&self.market.listed_pool(pool)).copied().unwrap_or_else(|| self.free_at_start(pool))
    }

    /// Free instances of the pool at the start: they depend on the seed and the pool alone, never on who looks first.
    fn free_at_start(&self, pool: Pool) -> u32 {
        *self.free_at_start.borrow_mut().entry(pool).or_insert_with(|| self.initial_free(pool))
    }

    /// Deviation: capacity is a fixed number for each pool. On-Demand is unlimited. Spot is a seeded draw, smaller
    /// for large types and for types with frequent interruptions in the Spot Advisor.
    fn initial_free(&self, pool: Pool) -> u32 {
        if pool.capacity_type != well_known::SPOT {
            return UNLIMITED;
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
        let drawn = self
            .market_streams
            .stream("capacity", &self.market.listed_pool(pool).stream_name())
            .lognormal(by_band * by_size, 0.6);
        (libm::round(drawn) as u32).max(1)
    }

    fn boot_traits(&self, instance_type: Symbol) -> BootTraits {
        self.region
            .instance_type(instance_type)
            .map_or_else(BootTraits::default, |kind| BootTraits::from_facts(&kind.facts))
    }
}

#[cfg(test)]
mod tests;
