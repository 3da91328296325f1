//! Steps that replace the nodes of a node group.

use crate::definition::Action;
use crate::domain::SimDuration;
use crate::domain::node_group::{InstanceRefresh, VersionUpdate};
use crate::schema::groups::{RefreshGroup, UpdateGroup};
use crate::tree::Location;

/// `update_group`, with the place of the group's name.
pub(super) fn update(own: UpdateGroup) -> (Action, Location) {
    let UpdateGroup { group: (group, place), release, ami, force } = own;
    (Action::UpdateGroup(VersionUpdate { group, release, image: ami, force }), place)
}

/// `refresh_group`, with the place of the group's name.
pub(super) fn refresh(own: RefreshGroup) -> (Action, Location) {
    let (group, place) = own.group;
    let refresh = InstanceRefresh {
        group,
        min_healthy: own.min_healthy,
        warm_up: own.warm_up.unwrap_or(SimDuration::ZERO),
        checkpoints: own.checkpoints,
        checkpoint_delay: own.checkpoint_delay.unwrap_or(InstanceRefresh::CHECKPOINT_DELAY),
        skip_matching: own.skip_matching,
        release: own.release,
    };
    (Action::RefreshGroup(refresh), place)
}
