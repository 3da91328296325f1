//! The calls that others make: reading groups and their activities, setting a size, ending one instance.

use super::{Activity, AutoScaling, EndReason, LifecycleState, MemberState};
use crate::api::{ApiError, instance_name};
use crate::{Ec2, InstanceId};
use nodecast_model::domain::{Labels, SimTime, Symbol};

/// A group, as DescribeAutoScalingGroups shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView {
    /// Name.
    pub name: Symbol,
    /// Least size.
    pub min: u32,
    /// Largest size.
    pub max: u32,
    /// Desired size. What `instances` lacks of it has not been launched yet, or could not be.
    pub desired: u32,
    /// Zones.
    pub zones: Vec<Symbol>,
    /// Instance types of its launch template or mixed instances policy, the preferred one first.
    pub instance_types: Vec<Symbol>,
    /// Tags.
    pub tags: Labels,
    /// Its instances, in order of launch; those that are being terminated too.
    pub instances: Vec<GroupInstance>,
}

/// An instance of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupInstance {
    /// The instance.
    pub id: InstanceId,
    /// Its type.
    pub instance_type: Symbol,
    /// Its zone.
    pub zone: Symbol,
    /// How far it has come.
    pub state: LifecycleState,
    /// Whether it is protected from scale-in.
    pub protected: bool,
}

impl AutoScaling {
    /// Every group, as a call shows it.
    pub fn describe(&self, ec2: &Ec2) -> Vec<GroupView> {
        let instance = |held: &MemberState| {
            let pool = ec2.instance(held.id).pool;
            GroupInstance {
                id: held.id,
                instance_type: pool.instance_type,
                zone: pool.zone,
                state: held.state,
                protected: held.protected,
            }
        };
        let groups = self.groups.iter().map(|group| GroupView {
            name: group.spec.name,
            min: group.spec.min,
            max: group.spec.max,
            desired: group.desired,
            zones: group.spec.zones.clone(),
            instance_types: group.spec.instance_types.clone(),
            tags: group.spec.tags.clone(),
            instances: group.members.iter().map(instance).collect(),
        });
        groups.collect()
    }

    /// The activities of a group, the newest first.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn activities(&self, name: Symbol) -> Result<impl Iterator<Item = &Activity>, ApiError> {
        let group = self.position(name).ok_or(ApiError::GroupNotFound(name))?;
        Ok(self.groups[group].activities.iter().rev())
    }

    /// Sets the size that a group is to have; it acts on it later.
    ///
    /// # Errors
    /// If there is no such group, or the size is outside its limits.
    pub fn set_desired(&mut self, name: Symbol, desired: u32) -> Result<(), ApiError> {
        let position = self.position(name).ok_or(ApiError::GroupNotFound(name))?;
        let group = &mut self.groups[position];
        let (min, max) = (group.spec.min, group.spec.max);
        if desired > max {
            let message =
                format!("New SetDesiredCapacity value {desired} is above max value {max} for the AutoScalingGroup.");
            return Err(ApiError::Validation(message));
        }
        if desired < min {
            let message =
                format!("New SetDesiredCapacity value {desired} is below min value {min} for the AutoScalingGroup.");
            return Err(ApiError::Validation(message));
        }
        group.desired = desired;
        Ok(())
    }

    /// Decides the end of one instance of a group, scale-in protection or not; with `decrement` the group wants the instance's capacity
    /// units less, but not less than its least size (an assumption; the API reference does not say what weights do here).
    ///
    /// # Errors
    /// If the instance belongs to no group, or one less would be below the group's least size.
    pub fn end_instance(&mut self, instance: InstanceId, decrement: bool, now: SimTime) -> Result<(), ApiError> {
        let group = self.group_of(instance).ok_or_else(|| {
            ApiError::Validation(format!(
                "Instance Id not found - No managed instance found for instance ID: {}",
                instance_name(instance)
            ))
        })?;
        if self.is_ending(instance) {
            return Ok(());
        }
        let weight = self.weight(instance);
        let group = &mut self.groups[group];
        if decrement {
            if group.desired <= group.spec.min {
                return Err(ApiError::Validation(format!(
                    "Currently, desiredSize equals minSize ({}). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
                    group.spec.min
                )));
            }
            group.desired = group.desired.saturating_sub(weight).max(group.spec.min);
        }
        self.begin_end(instance, EndReason::Requested, now);
        if let Some((held, _)) = self.held_mut(instance) {
            held.returns = decrement;
        }
        Ok(())
    }
}
