//! Containers that are killed and start again: at once the first time, later with every time (`CrashLoopBackOff`).
//!
//! Before Kubernetes 1.35 the pod's worker finds only at its next look, 10 to 15 s after the one before, that the wait is over.
//!
//! Source: Kubernetes 1.36 `pkg/kubelet/kuberuntime/kuberuntime_manager.go`, `doBackOff`; `client-go/util/flowcontrol`; 1.34
//! `pkg/kubelet/pod_workers.go`, `completeWork`; kubernetes/kubernetes#133066.

use std::collections::BTreeMap;

use super::actor_events::ActorEvent;
use super::event::{KubeletEvent, class};
use super::kubelet;
use super::sim::Sim;
use crate::domain::{KubernetesBehaviour, PodId, SimDuration, SimTime};

/// The wait before the second start; it doubles with every further one. The first comes at once.
const BACK_OFF: SimDuration = SimDuration::from_secs(10);
/// The longest wait.
const BACK_OFF_MAX: SimDuration = SimDuration::from_secs(300);
/// A container that ends so long after its last start, or later, starts at once again.
const FORGOTTEN: SimDuration = SimDuration::from_secs(600);

/// From one look of a pod's worker to the next, at least, and the longest time on top of it.
const LOOK: (SimDuration, SimDuration) = (SimDuration::from_secs(10), SimDuration::from_secs(5));

/// The back-off of each pod that was started again.
pub(super) type BackOffs = BTreeMap<PodId, BackOff>;

/// When a pod was last started again, and how long its next start waits.
#[derive(Debug)]
pub(super) struct BackOff {
    started: SimTime,
    wait: SimDuration,
    /// Why its containers end now.
    why: String,
}

/// The containers of a pod are killed for a reason: they end after `stops_in`, and start again when the back-off is over.
pub(super) fn restart(
    sim: &mut Sim<'_>,
    back_offs: &mut BackOffs,
    now: SimTime,
    pod: PodId,
    stops_in: SimDuration,
    why: &str,
) {
    let ended = now + stops_in;
    let wait = match back_offs.get(&pod) {
        Some(back_off) if ended.saturating_since(back_off.started) <= FORGOTTEN => back_off.wait,
        _ => SimDuration::ZERO,
    };
    let again = ended + until_look(sim, pod, wait);
    let state = if wait > SimDuration::ZERO { "CrashLoopBackOff, " } else { "" };
    let why = format!("{why}; {state}it starts again in {}", again - now);
    let most = longest_wait(sim);
    back_offs.insert(pod, BackOff { started: again, wait: (wait * 2).clamp(BACK_OFF.min(most), most), why });
    kubelet::cut_off(sim, now, pod);
    sim.publish(ActorEvent::PodRestarted(pod));
}

/// The containers end once the listeners know that the pod serves no more: until then it uses memory.
pub(super) fn containers_end(sim: &mut Sim<'_>, back_offs: &mut BackOffs, now: SimTime, pod: PodId) {
    let Some(back_off) = back_offs.get_mut(&pod) else { return };
    sim.world.restart_pod(pod, now, &std::mem::take(&mut back_off.why));
    sim.queue.schedule(back_off.started + kubelet::CONTAINER_START, class::MACHINES, KubeletEvent::PodStarted(pod));
}

/// The longest wait, as far as the kubelet of the release can be set up.
///
/// Source: Kubernetes 1.35 `pkg/kubelet/kubelet.go`, `newCrashLoopBackOff`.
fn longest_wait(sim: &Sim<'_>) -> SimDuration {
    let can_be_set = sim.setup.policy.versions.kubernetes.has(KubernetesBehaviour::CrashLoopBackOffMax);
    sim.setup.scenario.max_container_restart_period.filter(|_| can_be_set).unwrap_or(BACK_OFF_MAX)
}

/// From the end of a pod's containers to when its worker starts them again, given the back-off.
fn until_look(sim: &Sim<'_>, pod: PodId, wait: SimDuration) -> SimDuration {
    if sim.setup.policy.versions.kubernetes.has(KubernetesBehaviour::PromptContainerRestart) {
        return wait;
    }
    let restart = sim.world.pod(pod).restarts.to_string();
    let mut looks = sim.streams.nth("restart-looks", &restart, u64::from(pod.0));
    let mut after = SimDuration::ZERO;
    while after < wait {
        after += LOOK.0 + looks.span_up_to(LOOK.1);
    }
    after
}
