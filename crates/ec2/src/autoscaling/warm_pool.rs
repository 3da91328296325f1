//! The warm pool of a group: instances that are bootstrapped and wait until the group grows.
//!
//! Source: EC2 Auto Scaling user guide, warm pools; EKS user guide, warm pools of managed node groups (8cd63e6, 2026). Assumptions: an
//! instance is prepared for 60 to 120 seconds, the group takes warm instances of the wanted zone first, and a launch into the pool that EC2
//! refuses is tried again after a minute. Instances of an older launch template are replaced at once.

use super::plan::LaunchBatch;
use super::{AutoScaling, Group, LifecycleState, MemberState};
use crate::ec2::WarmId;
use crate::{Ec2, InstanceId, Pool};
use nodecast_model::domain::node_group::{WarmPool, WarmPoolState};
use nodecast_model::domain::{NodeId, SimDuration, SimTime, Symbol};

/// From the launch into the pool to the instance running.
const RUNNING: SimDuration = SimDuration::from_secs(12);
/// Bounds of the time from then until it is prepared, in seconds.
const PREPARED: (f64, f64) = (60.0, 120.0);
/// From a refused launch to the next one.
const AGAIN: SimDuration = SimDuration::from_secs(60);

/// An instance in a warm pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarmMember {
    id: WarmId,
    pool: Pool,
    /// When it is prepared.
    ready: SimTime,
    /// The version of the launch template that it was launched from.
    template: u32,
    /// The node that it was before it returned to the pool.
    former: Option<NodeId>,
}

/// How an instance left a warm pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarmStart {
    /// The state that it waited in.
    pub state: WarmPoolState,
    /// The node that it was before, whose images it still has.
    pub former: Option<NodeId>,
}

impl Group {
    /// Instances that the pool is to have.
    fn warm_size(&self) -> u32 {
        self.spec.warm_pool.map_or(0, |pool| pool.size(self.spec.max, self.desired))
    }
}

impl AutoScaling {
    /// Changes the warm pool of a group; the group acts on it later.
    pub fn set_warm_pool(&mut self, group: usize, pool: Option<WarmPool>) {
        self.groups[group].spec.warm_pool = pool;
    }

    /// How an instance of a group left the group's warm pool; `None` for one that was launched cold.
    pub fn warm_start(&self, instance: InstanceId) -> Option<WarmStart> {
        self.held(instance)?.warm
    }

    /// Whether a former node waits in a warm pool.
    pub fn is_in_warm_pool(&self, node: NodeId) -> bool {
        self.groups.iter().flat_map(|group| &group.warm).any(|member| member.former == Some(node))
    }

    /// Gives a group the warm pool that it has had since before the simulation.
    pub fn prepare_warm_pool(&mut self, group: usize, ec2: &mut Ec2, now: SimTime) {
        for _ in 0..self.groups[group].warm_size() {
            let place = self.warm_place(group, ec2, now).filter(|pool| ec2.free_addresses(pool.zone, now) > 0);
            let Some(pool) = place else { return };
            let group = &mut self.groups[group];
            let id = ec2.add_warm(pool, &group.spec.volumes, now);
            if group.spec.warm_pool.is_some_and(|pool| pool.state == WarmPoolState::Running) {
                ec2.run_warm(id, now, now);
            }
            group.warm.push(WarmMember { id, pool, ready: now, template: group.template, former: None });
        }
    }

    /// Stops what is prepared, ends what is too much or outdated, and launches what is missing; returns when to tend the pool next.
    pub fn tend_warm_pool(&mut self, group: usize, ec2: &mut Ec2, now: SimTime) -> Option<SimTime> {
        let of_group = &mut self.groups[group];
        let runs = of_group.spec.warm_pool.is_some_and(|pool| pool.state == WarmPoolState::Running);
        for member in of_group.warm.iter().filter(|member| !runs && member.ready <= now) {
            ec2.stop_warm(member.id, member.ready);
        }
        let reuses = of_group.spec.warm_pool.is_some_and(|pool| pool.reuse_on_scale_in);
        let is_returning = |held: &&MemberState| reuses && held.returns && held.state == LifecycleState::Terminating;
        let returning = of_group.members.iter().filter(is_returning);
        let size = (of_group.warm_size() as usize).saturating_sub(returning.count());
        let mut kept = Vec::with_capacity(size);
        for member in std::mem::take(&mut of_group.warm) {
            if kept.len() < size && member.template == of_group.template {
                kept.push(member);
            } else {
                ec2.end_warm(member.id, now);
            }
        }
        of_group.warm = kept;
        let mut again = None;
        while self.groups[group].warm.len() < size && again.is_none() {
            if !self.launch_warm(group, ec2, now) {
                again = Some(now + AGAIN);
            }
        }
        let next = self.groups[group].warm.iter().map(|member| member.ready).filter(|ready| *ready > now);
        next.chain(again).min()
    }

    /// Launches one instance into the pool; whether EC2 does.
    fn launch_warm(&mut self, group: usize, ec2: &mut Ec2, now: SimTime) -> bool {
        let Some(pool) = self.warm_place(group, ec2, now) else { return false };
        let of_group = &mut self.groups[group];
        let Some(id) = ec2.launch_warm(pool, &of_group.spec.volumes, now) else { return false };
        of_group.warm_launches += 1;
        let mut stream = self.streams.nth("warm-pool", of_group.spec.name.as_str(), of_group.warm_launches);
        let runs_from = now + RUNNING;
        ec2.run_warm(id, runs_from, now);
        let ready = runs_from + SimDuration::from_secs_f64(stream.between(PREPARED.0, PREPARED.1));
        of_group.warm.push(WarmMember { id, pool, ready, template: of_group.template, former: None });
        true
    }

    /// Where the next instance of the pool goes: the zone with the fewest of group and pool, ties by name.
    fn warm_place(&self, group: usize, ec2: &mut Ec2, now: SimTime) -> Option<Pool> {
        let of_group = &self.groups[group];
        let warm = of_group.warm.iter().map(|member| member.pool.zone);
        let in_group = of_group.members.iter().filter(|held| held.state != LifecycleState::Terminating);
        let all: Vec<Symbol> = in_group.map(|held| ec2.instance(held.id).pool.zone).chain(warm).collect();
        let count = |zone| all.iter().filter(|other| **other == zone).count();
        let zone = of_group.spec.zones.iter().copied().min_by_key(|&zone| (count(zone), zone))?;
        ec2.likely_pool(&self.fleet_request(group, zone, false, 1), now)
    }

    /// Takes prepared instances out of the pool for a launch: those of the zone first.
    pub(super) fn start_warm(
        &mut self,
        group: usize,
        ec2: &mut Ec2,
        batch: &LaunchBatch,
        nodes: &[NodeId],
        now: SimTime,
    ) -> Vec<(InstanceId, WarmStart)> {
        let of_group = &mut self.groups[group];
        let Some(pool) = of_group.spec.warm_pool.filter(|_| !batch.spot) else { return Vec::new() };
        let is_prepared = |member: &&WarmMember| member.ready <= now && member.template == of_group.template;
        let mut prepared: Vec<WarmMember> = of_group.warm.iter().filter(is_prepared).copied().collect();
        prepared.sort_by_key(|member| member.pool.zone != batch.zone);
        let mut started = Vec::new();
        for member in prepared {
            let Some(&node) = nodes.get(started.len()) else { break };
            let Ok(instance) = ec2.start_warm(member.id, node, now) else { continue };
            of_group.warm.retain(|other| other.id != member.id);
            started.push((instance, WarmStart { state: pool.state, former: member.former }));
        }
        started
    }

    /// An instance that scale-in ends returns to the warm pool, if the group reuses instances and the pool has room.
    pub fn return_to_warm_pool(&mut self, instance: InstanceId, ec2: &mut Ec2, now: SimTime) {
        let Some(group) = self.group_of(instance) else { return };
        let Some(&MemberState { returns, template, .. }) = self.held(instance) else { return };
        let of_group = &mut self.groups[group];
        let Some(settings) = of_group.spec.warm_pool.filter(|pool| pool.reuse_on_scale_in && returns) else { return };
        if template != of_group.template || of_group.warm.len() >= of_group.warm_size() as usize {
            return;
        }
        let (pool, former) = (ec2.instance(instance).pool, ec2.instance(instance).node);
        let ready = now + ec2.time_to_stop(instance);
        let id = ec2.add_former_node(pool, &of_group.spec.volumes, ready);
        if settings.state == WarmPoolState::Running {
            ec2.run_warm(id, now, now);
        }
        of_group.warm.push(WarmMember { id, pool, ready, template, former: Some(former) });
    }
}
