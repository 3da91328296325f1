//! Steps that replace the nodes of a node group.

use crate::definition::Action;
use crate::domain::SimDuration;
use crate::domain::node_group::{InstanceRefresh, VersionUpdate};
use crate::schema::groups::{RefreshGroup, UpdateGroup};
use crate::tree::Location;

/// `update_group`, with the place of the group's name.
pub(super) fn update(update_group: UpdateGroup) -> (Action, Location) {
    let UpdateGroup { group: (group, place), release, ami, force } = update_group;
    (Action::UpdateGroup(VersionUpdate { group, release, image: ami, force }), place)
}

/// `refresh_group`, with the place of the group's name.
pub(super) fn refresh(refresh_group: RefreshGroup) -> (Action, Location) {
    let (group, place) = refresh_group.group;
    let refresh = InstanceRefresh {
        group,
        min_healthy: refresh_group.min_healthy,
        warm_up: refresh_group.warm_up.unwrap_or(SimDuration::ZERO),
        checkpoints: refresh_group.checkpoints,
        checkpoint_delay: refresh_group.checkpoint_delay.unwrap_or(InstanceRefresh::CHECKPOINT_DELAY),
        skip_matching: refresh_group.skip_matching,
        release: refresh_group.release,
    };
    (Action::RefreshGroup(refresh), place)
}
