//! How a group launches: zone by zone, by RunInstances or by a fleet over the types of its mixed instances policy.
//!
//! Deviation: at lowest price, one launch uses the pools evenly. The group's existing instances of each pool are
//! ignored. The calls of a group use the limits of the account.

use super::activity::{Activity, Reason, Refusal, launch_cause};
use super::plan::LaunchBatch;
use super::{Acted, AutoScaling, LifecycleState, MemberState, WarmStart};
use crate::fleet::{FleetErrorCode, FleetOverride, FleetRequest};
use crate::{Ec2, InstanceId, LaunchError, Pool, RunRequest};
use nodecast_model::domain::{NodeId, SimTime, Symbol, well_known};

/// What EC2 made of one launch: the instances, and why there are not more.
type Answer = (Vec<InstanceId>, Option<Reason>);

impl AutoScaling {
    /// Launches the batches, one after the other, and logs how each fared.
    pub(super) fn launch(
        &mut self,
        group: usize,
        ec2: &mut Ec2,
        batches: &[LaunchBatch],
        first_node: NodeId,
        now: SimTime,
        acted: &mut Acted,
    ) {
        let held = |held: &&MemberState| held.state != LifecycleState::Terminating && held.outgoing.is_none();
        let size: u32 = self.groups[group].members.iter().filter(held).map(|held| held.weight).sum();
        let cause = launch_cause(size, self.groups[group].desired);
        for batch in batches {
            let from = first_node.index() + acted.launched.len();
            let most = batch.count.div_ceil(self.groups[group].spec.least_weight());
            let nodes: Vec<NodeId> = (from..from + most as usize).map(NodeId::from_index).collect();
            let warm = self.start_warm(group, ec2, batch, &nodes, now);
            let cold = LaunchBatch { count: batch.count.saturating_sub(warm.len() as u32), ..*batch };
            let (instances, refused) = match nodes.get(warm.len()..) {
                Some(nodes) if cold.count > 0 => self.ask(group, ec2, &cold, nodes, now),
                _ => (Vec::new(), None),
            };
            let warm = warm.into_iter().map(|(instance, start)| (instance, Some(start)));
            for (instance, start) in warm.chain(instances.into_iter().map(|instance| (instance, None))) {
                let weight = self.groups[group].spec.weight(ec2.instance(instance).pool.instance_type);
                self.take_in(group, (instance, weight, start), &cause, now);
                acted.launched.push(instance);
            }
            let group = &mut self.groups[group];
            let Some(reason) = refused else {
                group.refusals.delivered(batch.zone, batch.spot);
                continue;
            };
            group.refusals.refused(batch.zone, batch.spot, now);
            let refusal = Refusal {
                reason,
                zone: batch.zone,
                types: &group.spec.instance_types,
                spot: batch.spot,
                by_fleet: !group.spec.launches_by_run_instances(),
            };
            let message = refusal.message(ec2.region());
            group.activities.push(Activity::failed(message.clone(), &cause, now));
            acted.failures.push(match ec2.take_fleet_use() {
                Some(fleet) => format!("{message} ({fleet})"),
                None => message,
            });
        }
    }

    /// The fleet of `target` capacity units that the group asks for in one zone: every type of its mixed instances policy.
    pub fn fleet_request(&self, group: usize, zone: Symbol, spot: bool, target: u32) -> FleetRequest {
        let spec = &self.groups[group].spec;
        let (strategy, pools_to_use) = spec.strategy(spot);
        let overrides = spec.instance_types.iter().enumerate();
        let of_type = |(position, &instance_type)| FleetOverride {
            instance_type,
            zone,
            priority: position as u32,
            weight: spec.weight(instance_type),
        };
        let capacity_type = if spot { well_known::SPOT } else { well_known::ON_DEMAND };
        FleetRequest { capacity_type, strategy, pools_to_use, target, overrides: overrides.map(of_type).collect() }
    }

    fn ask(&self, group: usize, ec2: &mut Ec2, batch: &LaunchBatch, nodes: &[NodeId], now: SimTime) -> Answer {
        let spec = &self.groups[group].spec;
        if let (true, &[instance_type]) = (spec.launches_by_run_instances(), spec.instance_types.as_slice()) {
            let pool = Pool { instance_type, zone: batch.zone, capacity_type: well_known::ON_DEMAND };
            let request = RunRequest { pool, min: 1, max: batch.count, volumes: spec.volumes.clone() };
            return match ec2.run_instances(&request, nodes, now) {
                Ok(launched) if launched.len() < nodes.len() => {
                    (launched, Some(Reason::Pool(FleetErrorCode::InsufficientInstanceCapacity)))
                }
                Ok(launched) => (launched, None),
                Err(LaunchError::Call(error)) => (Vec::new(), Some(Reason::Call(error))),
                Err(LaunchError::Refused(code)) => (Vec::new(), Some(Reason::Pool(code))),
            };
        }
        let request = self.fleet_request(group, batch.zone, batch.spot, batch.count);
        match ec2.create_fleet(&request, nodes, &spec.volumes, now) {
            Err(error) => (Vec::new(), Some(Reason::Call(error))),
            Ok(reply) => {
                let weight = |id: &InstanceId| spec.weight(ec2.instance(*id).pool.instance_type);
                if reply.instances.iter().map(weight).sum::<u32>() >= batch.count {
                    return (reply.instances, None);
                }
                let worst = reply.errors.iter().map(|error| error.code).min();
                let code = worst.unwrap_or(FleetErrorCode::InsufficientInstanceCapacity);
                (reply.instances, Some(Reason::Pool(code)))
            }
        }
    }

    fn take_in(
        &mut self,
        group: usize,
        (instance, weight, warm): (InstanceId, u32, Option<WarmStart>),
        cause: &str,
        now: SimTime,
    ) {
        self.group_of.insert(instance, group);
        let group = &mut self.groups[group];
        group.activities.push(Activity::launching(instance, cause, now));
        group.members.push(MemberState {
            id: instance,
            state: LifecycleState::Pending,
            serves: false,
            protected: false,
            outgoing: None,
            template: group.template,
            weight,
            warm,
            returns: false,
            activity: Some(group.activities.len() - 1),
        });
    }
}
