//! Versions of a group's launch template: instances of an older version stay until somebody replaces them.

use super::{AutoScaling, LifecycleState, MemberState};
use crate::InstanceId;

impl AutoScaling {
    /// Gives the group a new version of its launch template; returns the version before.
    pub fn renew_template(&mut self, group: usize) -> u32 {
        let group = &mut self.groups[group];
        group.newest_template += 1;
        std::mem::replace(&mut group.template, group.newest_template)
    }

    /// Returns the group to a version of its launch template.
    pub fn restore_template(&mut self, group: usize, version: u32) {
        self.groups[group].template = version;
    }

    /// The instances of a group that are not being terminated, of the present launch template or of others, in order of launch.
    pub fn instances(&self, group: usize, outdated: bool) -> Vec<InstanceId> {
        let group = &self.groups[group];
        let chosen = |held: &&MemberState| {
            held.state != LifecycleState::Terminating && (held.template != group.template) == outdated
        };
        group.members.iter().filter(chosen).map(|held| held.id).collect()
    }

    /// Smallest and largest size of a group.
    pub fn limits(&self, group: usize) -> (u32, u32) {
        let spec = &self.groups[group].spec;
        (spec.min, spec.max)
    }

    /// Capacity units of the instances of a group that serve, and of all that it has, with those that are being terminated.
    pub fn counts(&self, group: usize) -> (u32, u32) {
        let members = &self.groups[group].members;
        let serves = |held: &&MemberState| held.serves && held.state != LifecycleState::Terminating;
        let units = |held: &MemberState| held.weight;
        (members.iter().filter(serves).map(units).sum(), members.iter().map(units).sum())
    }
}
