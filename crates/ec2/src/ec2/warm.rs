//! Instances of warm pools: launched, prepared, and stopped, but no nodes yet.
//!
//! A stopped instance keeps its private addresses. A new instance of a pool has one: no network plugin ran on it. One that was a node keeps those
//! of its interfaces.
//!
//! Deviation: they use no capacity reservations.
//!
//! Source: EC2 user guide, "Stop and start Amazon EC2 instances" (2026).

use super::{Ec2, InstanceId, Pool, quota::Change};
use crate::api::ApiAction;
use crate::fleet::FleetErrorCode;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{NodeId, SimDuration, SimTime};

/// An instance of a warm pool, numbered in order of its entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WarmId(u32);

/// Time of an instance in a warm pool, as it is billed.
#[derive(Clone, Debug)]
pub struct WarmLife {
    /// Where it comes from.
    pub pool: Pool,
    /// Its EBS volumes.
    pub volumes: NodeVolumes,
    /// When it entered the pool.
    pub entered: SimTime,
    /// When it left the pool.
    pub left: Option<SimTime>,
    /// When it ran; the last run may go on.
    pub runs: Vec<(SimTime, Option<SimTime>)>,
    /// Whether it holds capacity of its pool and of the vCPU quota.
    has_capacity: bool,
    /// The subnet whose addresses it holds; `None` where no subnet is set.
    subnet: Option<u32>,
    /// How many addresses it holds.
    addresses: u32,
}

impl Ec2 {
    /// Times of all instances in warm pools, in order of entry.
    pub fn warm_lives(&self) -> &[WarmLife] {
        &self.warm
    }

    /// A stopped instance enters a warm pool at `entered`.
    pub fn add_warm(&mut self, pool: Pool, volumes: &NodeVolumes, entered: SimTime) -> WarmId {
        let id = WarmId(u32::try_from(self.warm.len()).unwrap_or(u32::MAX));
        self.warm.push(WarmLife {
            pool,
            volumes: volumes.clone(),
            entered,
            left: None,
            runs: Vec::new(),
            has_capacity: false,
            subnet: self.roomiest_subnet(pool.zone).map(|(number, _)| number),
            addresses: 0,
        });
        self.hold_addresses(id, 1);
        id
    }

    /// A stopped instance that was a node enters a warm pool at `entered`: its interfaces keep their addresses.
    pub fn add_former_node(&mut self, pool: Pool, volumes: &NodeVolumes, entered: SimTime) -> WarmId {
        let id = self.add_warm(pool, volumes, entered);
        if let Some(kind) = self.region.instance_type(pool.instance_type) {
            self.hold_addresses(id, self.settings.network.addresses_of(&kind.facts, 0));
        }
        id
    }

    /// It holds `addresses` of its subnet from now on.
    fn hold_addresses(&mut self, id: WarmId, addresses: u32) {
        let life = &mut self.warm[id.0 as usize];
        let before = std::mem::replace(&mut life.addresses, addresses);
        if let Some(subnet) = life.subnet {
            self.change_taken(subnet, before, addresses);
        }
    }

    /// Launches an instance into a warm pool; `None` if EC2 refuses.
    pub fn launch_warm(&mut self, pool: Pool, volumes: &NodeVolumes, now: SimTime) -> Option<WarmId> {
        self.take_tokens(ApiAction::RunInstances, 1, now).ok()?;
        self.candidate((pool, 1), 0, now).ok()?;
        let id = self.add_warm(pool, volumes, now);
        self.hold_warm(id, now);
        Some(id)
    }

    /// An instance of a warm pool runs from `from` on.
    pub fn run_warm(&mut self, id: WarmId, from: SimTime, now: SimTime) {
        self.hold_warm(id, now);
        self.warm[id.0 as usize].runs.push((from, None));
    }

    /// It stops: its capacity is free.
    pub fn stop_warm(&mut self, id: WarmId, now: SimTime) {
        let life = &mut self.warm[id.0 as usize];
        if let Some((from, until @ None)) = life.runs.last_mut() {
            *until = Some(now.max(*from));
        }
        if std::mem::take(&mut life.has_capacity) {
            let pool = life.pool;
            self.pools.put_back(self.market.listed_pool(pool));
            self.log_pool(pool, -1, now);
            self.count_vcpus(pool, Change::Ended, now);
        }
    }

    /// It leaves its warm pool, and is gone.
    pub fn end_warm(&mut self, id: WarmId, now: SimTime) {
        self.stop_warm(id, now);
        self.hold_addresses(id, 0);
        let life = &mut self.warm[id.0 as usize];
        life.left = Some(now.max(life.entered));
    }

    /// It leaves its warm pool to become a node. A stopped one needs capacity again.
    ///
    /// # Errors
    /// If the pool has no capacity for it, or a quota no room.
    pub fn start_warm(&mut self, id: WarmId, node: NodeId, now: SimTime) -> Result<InstanceId, FleetErrorCode> {
        let WarmLife { pool, has_capacity, addresses, .. } = self.warm[id.0 as usize];
        if !has_capacity {
            // Its addresses are there for it.
            self.hold_addresses(id, 0);
            let candidate = self.candidate((pool, 1), 0, now);
            self.hold_addresses(id, addresses);
            candidate?;
        }
        self.end_warm(id, now);
        let volumes = self.warm[id.0 as usize].volumes.clone();
        Ok(self.launch(pool, node, &volumes, now))
    }

    /// How long an instance takes from the request until it is stopped or gone.
    pub fn time_to_stop(&self, id: InstanceId) -> SimDuration {
        let instance = self.instance(id);
        let metal = self.boot_traits(instance.pool.instance_type).metal;
        let name = instance.pool.stream_name();
        let drawn = || crate::boot::shutdown_time(metal, &mut self.streams.nth("shutdown", &name, instance.ordinal));
        self.settings.times.shutdown.unwrap_or_else(drawn)
    }

    fn hold_warm(&mut self, id: WarmId, now: SimTime) {
        let life = &mut self.warm[id.0 as usize];
        if std::mem::replace(&mut life.has_capacity, true) {
            return;
        }
        let pool = life.pool;
        self.count_vcpus(pool, Change::Launched, now);
        let free = self.free_now(pool);
        self.pools.take(self.market.listed_pool(pool), free);
        self.log_pool(pool, 1, now);
    }
}
