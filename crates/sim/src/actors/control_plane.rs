//! The control plane's release, which somebody may upgrade during a run.
//!
//! Deviation: after an upgrade of the control plane its own controllers and the scheduler go on as those of the release before;
//! only the images of nodes follow.

use super::context::Context;
use super::news::News;
use crate::domain::{KubernetesVersion, SimTime};
use crate::world::record::EventKind;

/// The API server reports another release.
pub(super) fn upgrade(context: &mut Context<'_>, now: SimTime, release: KubernetesVersion) {
    let before = std::mem::replace(&mut context.control_plane, release);
    context.world.note(now, EventKind::ControlPlaneUpgraded, None, format!("{before} to {release}"));
    context.tell(now, News::ControlPlaneUpgraded);
}
