//! The calls that programs around a cluster make, and the simulated account that answers them.
//!
//! Karpenter calls CreateFleet, DescribeInstances and TerminateInstances; Cluster Autoscaler calls
//! DescribeAutoScalingGroups, DescribeScalingActivities, SetDesiredCapacity and TerminateInstanceInAutoScalingGroup. A
//! call draws on the bucket of its action and has no effect when it is refused.
//!
//! What must not live here: what is simulated behind a call (`ec2`, `autoscaling`).

use super::api::{ApiAction, ApiError};
use super::autoscaling::{Activity, AutoScaling, GroupView};
use super::consistency::InstanceView;
use super::ec2::{Ec2, InstanceFilter, InstanceId};
use super::fleet::{CallError, FleetReply, FleetRequest, Throttled};
use super::reservations::ReservationUse;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{NodeId, SimDuration, SimTime, Symbol};

/// The simulated account: its instances and its groups.
#[derive(Debug)]
pub struct SimulatedAccount<'a> {
    /// Instances.
    pub ec2: &'a mut Ec2,
    /// Groups.
    pub groups: &'a mut AutoScaling,
}

impl SimulatedAccount<'_> {
    /// CreateFleet of type instant, for the nodes in `nodes`, each with `volumes`, with a word on capacity reservations.
    ///
    /// # Errors
    /// If there have been too many calls, or the cloud fails.
    pub fn create_fleet_using(
        &mut self,
        request: &FleetRequest,
        how: ReservationUse,
        nodes: &[NodeId],
        volumes: &NodeVolumes,
        now: SimTime,
    ) -> Result<FleetReply, CallError> {
        self.ec2.create_fleet_using(request, how, nodes, volumes, now)
    }

    /// CreateFleet for one instance in any of these capacity reservations, the first with room.
    ///
    /// # Errors
    /// As [`Self::create_fleet_using`].
    pub fn launch_reserved(
        &mut self,
        reservations: &[Symbol],
        node: NodeId,
        volumes: &NodeVolumes,
        now: SimTime,
    ) -> Result<FleetReply, CallError> {
        self.ec2.launch_reserved(reservations, node, volumes, now)
    }

    /// TerminateInstances: how long each takes to be gone.
    ///
    /// # Errors
    /// If there have been too many calls, or too many instances were named.
    pub fn terminate_instances(&mut self, ids: &[InstanceId], now: SimTime) -> Result<Vec<SimDuration>, Throttled> {
        self.ec2.terminate_instances(ids, now)
    }

    /// DescribeInstances, asked by `caller`; what it shows may be the state of a moment ago.
    ///
    /// # Errors
    /// If there have been too many calls, or one of the instances asked for is not visible.
    pub fn describe_instances(
        &mut self,
        filter: InstanceFilter<'_>,
        caller: &str,
        now: SimTime,
    ) -> Result<Vec<InstanceView>, ApiError> {
        self.ec2.describe_instances(filter, caller, now)
    }

    /// DescribeAutoScalingGroups: every group, in the order of their creation.
    ///
    /// # Errors
    /// If there have been too many calls.
    pub fn describe_auto_scaling_groups(&mut self, now: SimTime) -> Result<Vec<GroupView>, ApiError> {
        self.ec2.take_tokens(ApiAction::DescribeAutoScalingGroups, 0, now)?;
        Ok(self.groups.describe(self.ec2))
    }

    /// DescribeScalingActivities: the activities of one group that began at `since` or later, the newest first.
    ///
    /// # Errors
    /// If there have been too many calls, or there is no such group.
    pub fn describe_scaling_activities(
        &mut self,
        group: Symbol,
        since: SimTime,
        now: SimTime,
    ) -> Result<Vec<Activity>, ApiError> {
        self.ec2.take_tokens(ApiAction::DescribeAutoScalingGroups, 0, now)?;
        Ok(self.groups.activities(group)?.take_while(|activity| activity.start >= since).cloned().collect())
    }

    /// SetDesiredCapacity without regard to cooldowns: the group acts on it later.
    ///
    /// # Errors
    /// If there have been too many calls, there is no such group, or the size is outside its limits.
    pub fn set_desired_capacity(&mut self, group: Symbol, desired: u32, now: SimTime) -> Result<(), ApiError> {
        self.ec2.take_tokens(ApiAction::ChangeAutoScalingGroup, 0, now)?;
        self.groups.set_desired(group, desired)
    }

    /// TerminateInstanceInAutoScalingGroup: the instance leaves its group, which wants one less with `decrement` and
    /// replaces it otherwise.
    ///
    /// # Errors
    /// If there have been too many calls, the instance belongs to no group, or one less would be below the group's least
    /// size.
    pub fn terminate_instance_in_auto_scaling_group(
        &mut self,
        instance: InstanceId,
        decrement: bool,
        now: SimTime,
    ) -> Result<(), ApiError> {
        self.ec2.take_tokens(ApiAction::ChangeAutoScalingGroup, 0, now)?;
        self.groups.end_instance(instance, decrement, now)
    }
}
