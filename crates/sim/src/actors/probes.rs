//! Probes of a container: when they find its application up, and when they give up on it before that.
//!
//! Deviation: a probe fails only until the application has started (`start_time` of its workload). A started
//! application answers its probes under any load. If a probe kills a container, the other containers of its pod stop
//! too. Probes do not kill pods of Jobs.
//!
//! Source: Kubernetes 1.36 `pkg/kubelet/prober/worker.go`.

use super::event::{KubeletEvent, class};
use super::restarts::BackOffs;
use super::sim::Sim;
use super::{kubelet, restarts};
use crate::cluster::PodPhase;
use crate::domain::pod::{Container, Probe};
use crate::domain::{PodId, SimDuration, SimTime};
use crate::world::record::WorkloadKind;

/// When a probe has succeeded as often as it has to, for an application that answers after `answers`: probes come one period
/// after the other, the first after the initial delay.
pub(super) fn first_success(probe: Probe, answers: SimDuration) -> SimDuration {
    let late = (answers - probe.initial_delay).as_micros().max(0);
    let misses = late.div_euclid(probe.period.as_micros()) + i64::from(late.rem_euclid(probe.period.as_micros()) > 0);
    probe.initial_delay + probe.period * (misses + i64::from(probe.success_threshold.saturating_sub(1)))
}

/// When a container is Ready, counted from its start. The first readiness probe after a start-up probe's success comes at
/// once.
fn ready_after(container: &Container, answers: SimDuration) -> SimDuration {
    let started = container.startup_probe.map(|probe| first_success(probe, answers));
    match (container.readiness_probe, started) {
        (None, started) => started.unwrap_or(SimDuration::ZERO),
        (Some(probe), None) => first_success(probe, answers),
        (Some(probe), Some(started)) => {
            let again = i64::from(probe.success_threshold.saturating_sub(1));
            started.max(probe.initial_delay) + probe.period * again
        }
    }
}

/// A probe that gives up on a container.
#[derive(Clone, Copy, Debug)]
struct GivingUp<'c> {
    /// When, counted from the container's start.
    after: SimDuration,
    name: &'static str,
    probe: Probe,
    container: &'c Container,
}

/// Which probe kills the container before its application answers, if one does. A liveness probe waits for a start-up
/// probe's success, and then the application answers.
fn giving_up(container: &Container, answers: SimDuration) -> Option<GivingUp<'_>> {
    let (name, probe) = match container.startup_probe {
        Some(probe) => ("startup", probe),
        None => ("liveness", container.liveness_probe?),
    };
    let after = probe.initial_delay + probe.period * i64::from(probe.failure_threshold.saturating_sub(1));
    (after < answers).then_some(GivingUp { after, name, probe, container })
}

/// When the pod's containers are Ready, counted from their start; `None` if a probe kills one before.
pub(super) fn pod_ready_after(sim: &Sim<'_>, pod: PodId) -> Option<SimDuration> {
    let state = sim.world.pod(pod);
    let answers = sim.times_of(state.workload).start_time;
    let waits = state.spec.containers.iter().map(|container| ready_after(container, answers));
    let wait = waits.max().unwrap_or(SimDuration::ZERO);
    first_giving_up(sim, pod).is_none_or(|first_giving_up| wait < first_giving_up.after).then_some(wait)
}

/// The first of the pod's probes that gives up on a container.
fn first_giving_up<'c>(sim: &'c Sim<'_>, pod: PodId) -> Option<GivingUp<'c>> {
    let state = sim.world.pod(pod);
    let owner = sim.world.workload(state.workload).kind;
    if matches!(owner, WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::ScaledJob) {
        return None;
    }
    let answers = sim.times_of(state.workload).start_time;
    state
        .spec
        .containers
        .iter()
        .filter_map(|container| giving_up(container, answers))
        .min_by_key(|giving_up| giving_up.after)
}

/// The pod's containers have started: a probe that will give up on one has its moment put on the queue.
pub(super) fn watch(sim: &mut Sim<'_>, pod: PodId) {
    if let Some(after) = first_giving_up(sim, pod).map(|first_giving_up| first_giving_up.after) {
        sim.queue.schedule_in(after, class::MACHINES, KubeletEvent::ProbeGivesUp(pod));
    }
}

/// A probe has failed too often: the kubelet kills the container, which starts again.
pub(super) fn give_up(sim: &mut Sim<'_>, back_offs: &mut BackOffs, now: SimTime, pod: PodId) {
    let state = sim.world.pod(pod);
    let Some(started) = state.started.filter(|_| state.phase == PodPhase::Running && state.is_active()) else { return };
    let Some(first_giving_up) =
        first_giving_up(sim, pod).filter(|first_giving_up| started + first_giving_up.after <= now)
    else {
        return;
    };
    let why = format!(
        "the {} probe of container {} failed {} times in a row, until {} after its start, and the application answers after {}",
        first_giving_up.name,
        first_giving_up.container.name,
        first_giving_up.probe.failure_threshold,
        first_giving_up.after,
        sim.times_of(state.workload).start_time,
    );
    let grace = first_giving_up.probe.termination_grace.unwrap_or_else(|| state.spec.grace_period());
    let stops_in = kubelet::stop_time(sim, pod, grace);
    restarts::restart(sim, back_offs, now, pod, stops_in, &why);
}
