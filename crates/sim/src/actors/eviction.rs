//! Evictions through the API server: who asks is told whether the pod's budgets allow it now.

use super::kubelet;
use super::sim::Sim;
use crate::control_plane::eviction::EvictionAnswer;
use crate::domain::{PodId, SimDuration, SimTime};

/// Evicts the pod if its budgets allow it now; whether they did.
pub(super) fn evict(sim: &mut Sim<'_>, now: SimTime, pod: PodId, reason: &str) -> bool {
    let grace = sim.world.pod(pod).spec.grace_period();
    evict_within(sim, now, pod, grace, reason)
}

/// The same with a grace period of the evicting program's choice.
pub(super) fn evict_within(sim: &mut Sim<'_>, now: SimTime, pod: PodId, grace: SimDuration, reason: &str) -> bool {
    matches!(ask_within(sim, now, pod, grace, reason), EvictionAnswer::Evicted { .. })
}

/// Evicts the pod if its budgets allow it now, for somebody to whom it matters why they do not.
pub(super) fn ask(sim: &mut Sim<'_>, now: SimTime, pod: PodId, reason: &str) -> EvictionAnswer {
    let grace = sim.world.pod(pod).spec.grace_period();
    ask_within(sim, now, pod, grace, reason)
}

fn ask_within(sim: &mut Sim<'_>, now: SimTime, pod: PodId, grace: SimDuration, reason: &str) -> EvictionAnswer {
    let answer = sim.budgets.answer(&sim.world, pod);
    if matches!(answer, EvictionAnswer::Evicted { .. }) && sim.world.pod(pod).is_active() {
        kubelet::delete_within(sim, now, pod, grace, true, reason);
    }
    answer
}
