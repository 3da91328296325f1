//! The control plane's release, which somebody may upgrade during a run.
//!
//! Deviation: after an upgrade of the control plane its own controllers and the scheduler go on as those of the release before;
//! only the images of nodes follow.

use super::news::News;
use super::sim::Sim;
use crate::domain::{KubernetesVersion, SimTime};
use crate::world::record::EventKind;

/// The API server reports another release.
pub(super) fn upgrade(sim: &mut Sim<'_>, now: SimTime, release: KubernetesVersion) {
    let before = std::mem::replace(&mut sim.control_plane, release);
    sim.world.note(now, EventKind::ControlPlaneUpgraded, None, format!("{before} to {release}"));
    sim.tell(News::ControlPlaneUpgraded);
}
