//! The control plane's release and tier, which somebody may change during a run.
//!
//! Deviation: after an upgrade of the control plane, its own controllers and the scheduler continue as those of the
//! previous release. Only the images of nodes follow.

use super::actor_events::ActorEvent;
use super::replica_loop::ReplicaLoops;
use super::scheduler_loop::SchedulerLoop;
use super::sim::Sim;
use crate::domain::{ControlPlaneTier, KubernetesVersion, SimTime};
use crate::world::record::EventKind;

/// The API server reports another release.
pub(super) fn upgrade(sim: &mut Sim<'_>, now: SimTime, release: KubernetesVersion) {
    let before = std::mem::replace(&mut sim.control_plane, release);
    sim.world.note(now, EventKind::ControlPlaneUpgraded, None, format!("{before} to {release}"));
    sim.publish(ActorEvent::ControlPlaneUpgraded);
}

/// The limits of another tier apply: to kube-scheduler's next call and to the next autoscaler that is due.
pub(super) fn change_tier(
    sim: &mut Sim<'_>,
    scheduler: &mut SchedulerLoop,
    autoscalers: &mut ReplicaLoops<'_>,
    now: SimTime,
    tier: ControlPlaneTier,
) {
    scheduler.change_tier(tier);
    autoscalers.change_tier(sim.setup, tier);
    sim.world.note(now, EventKind::ControlPlaneTierChanged, None, tier.to_string());
}
