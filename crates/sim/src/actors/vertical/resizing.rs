//! Resizes where a pod runs: what the API server takes, and what the kubelet makes of it.
//!
//! Deviation: the kubelet applies a resize at once, and checks a resize that waits for capacity once a minute. While
//! it waits, kube-scheduler counts the current requests of the pod, not the desired ones. No container restarts for a
//! resize, whatever `resizePolicy` is.
//!
//! Source: Kubernetes 1.36 `pkg/kubelet/allocation/allocation_manager.go`, `pkg/apis/core/validation/validation.go`
//! (`ValidatePodResize`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actors::actor_events::ActorEvent;
use crate::actors::cpu_shares::CpuShares;
use crate::actors::load_loop::Loads;
use crate::actors::metrics_server::MetricsServer;
use crate::actors::sim::Sim;
use crate::actors::usage_loop::Usages;
use crate::actors::vertical::Vertical;
use crate::actors::workload_controllers::Controllers;
use crate::cluster::PodPhase;
use crate::domain::{KubernetesBehaviour, KubernetesVersion, NodeId, PodId, PodSpec, ResourceName, Resources, SimTime};
use crate::world::record::{EventKind, VerticalMeans};
use nodecast_vpa::{AdmittedContainer, ResizeCondition, respecified};

/// The Vertical Pod Autoscaler, with what a resize of a pod reads and changes.
pub(in crate::actors) struct Resizing<'a, 's> {
    pub(in crate::actors) sim: &'a mut Sim<'s>,
    pub(in crate::actors) vertical: &'a mut Vertical,
    pub(in crate::actors) controllers: &'a Controllers,
    pub(in crate::actors) cpu_shares: &'a mut CpuShares,
    pub(in crate::actors) metrics: &'a mut MetricsServer,
    pub(in crate::actors) loads: &'a mut Loads,
    pub(in crate::actors) usages: &'a Usages,
}

/// Resizes that have not come off.
#[derive(Debug, Default)]
pub(super) struct Resizes {
    waiting: BTreeMap<PodId, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    wanted: Arc<PodSpec>,
    condition: ResizeCondition,
    reason: String,
}

impl Resizes {
    /// How far the kubelet is with the resize of a pod; `None` if it has nothing to do.
    pub(super) fn condition(&self, pod: PodId) -> Option<ResizeCondition> {
        self.waiting.get(&pod).map(|waiting| waiting.condition)
    }

    /// What a pod is to become once there is room.
    pub(super) fn deferred(&self, pod: PodId) -> Option<&PodSpec> {
        let waiting = self.waiting.get(&pod).filter(|waiting| waiting.condition != ResizeCondition::Infeasible);
        waiting.map(|waiting| &*waiting.wanted)
    }
}

/// Whether the quality of service stays what it is, which the API server insists on.
fn keeps_quality(before: &PodSpec, after: &PodSpec) -> bool {
    quality(before) == quality(after)
}

/// Whether pods request nothing, and whether every container has limits that are its requests.
fn quality(spec: &PodSpec) -> (bool, bool) {
    const BOTH: [ResourceName; 2] = [ResourceName::CPU, ResourceName::MEMORY];
    let containers =
        || spec.containers.iter().chain(spec.init_containers.iter().map(|init_container| &init_container.container));
    let states_nothing = containers()
        .all(|container| BOTH.iter().all(|&name| container.requests.get(name) == 0 && container.limits.get(name) == 0));
    let guaranteed = containers().all(|container| {
        let requests = container.effective_requests();
        BOTH.iter().all(|&name| container.limits.get(name) > 0 && container.limits.get(name) == requests.get(name))
    });
    (states_nothing, guaranteed)
}

fn lowers_memory_limit(before: &PodSpec, after: &PodSpec) -> bool {
    let limit = |container: &crate::domain::Container| container.limits.find(ResourceName::MEMORY).unwrap_or(i64::MAX);
    before.containers.iter().zip(&after.containers).any(|(before, after)| limit(after) < limit(before))
}

/// What a pod is with other requests and limits, if the API server takes them; nothing where they are those that it has.
fn taken(
    sim: &Sim<'_>,
    controllers: &Controllers,
    vertical: &Vertical,
    pod: PodId,
    containers: &[AdmittedContainer],
) -> Result<Option<PodSpec>, Refused> {
    let release: KubernetesVersion = sim.control_plane;
    let state = sim.world.pod(pod);
    let Some(wanted) = respecified(&state.spec, containers) else { return Ok(None) };
    let lowers = !release.has(KubernetesBehaviour::MemoryLimitDecrease) && lowers_memory_limit(&state.spec, &wanted);
    let beyond = || controllers.quotas.refuses_resize(sim, vertical, pod, &wanted).is_some();
    let resizes = release.has(KubernetesBehaviour::PodResize);
    if !resizes || lowers || !keeps_quality(&state.spec, &wanted) || beyond() {
        return Err(Refused);
    }
    Ok(Some(wanted))
}

/// The API server refuses a resize.
struct Refused;

/// Whether the API server would take new requests and limits of a running pod.
pub(super) fn is_taken(
    sim: &Sim<'_>,
    controllers: &Controllers,
    vertical: &Vertical,
    pod: PodId,
    containers: &[AdmittedContainer],
) -> bool {
    taken(sim, controllers, vertical, pod, containers).is_ok()
}

/// Somebody writes new requests and limits into a running pod; whether the API server takes them.
pub(super) fn ask(
    parts: &mut Resizing<'_, '_>,
    now: SimTime,
    pod: PodId,
    containers: &[AdmittedContainer],
    (reason, means): (&str, &mut VerticalMeans),
) -> bool {
    let wanted = match taken(parts.sim, parts.controllers, parts.vertical, pod, containers) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return true,
        Err(Refused) => return false,
    };
    let wanted = Arc::new(wanted);
    let condition = condition(parts, now, pod, &wanted);
    match condition {
        None => {
            means.resized += 1;
            carry_out(parts, now, pod, wanted, reason);
        }
        Some(condition) => {
            let kind = match condition {
                ResizeCondition::Deferred => {
                    means.deferred += 1;
                    EventKind::ResizeDeferred
                }
                ResizeCondition::Infeasible => {
                    means.infeasible += 1;
                    EventKind::ResizeInfeasible
                }
                _ => EventKind::ResizeError,
            };
            parts.sim.world.note_pod(pod, now, kind, reason);
            let waiting = Waiting { wanted, condition, reason: reason.to_owned() };
            parts.vertical.resizes.waiting.insert(pod, waiting);
        }
    }
    true
}

/// Why the kubelet does not resize a pod now.
fn condition(parts: &mut Resizing<'_, '_>, now: SimTime, pod: PodId, wanted: &PodSpec) -> Option<ResizeCondition> {
    let state = parts.sim.world.pod(pod);
    let node: NodeId = state.node?;
    let requests = wanted.requests();
    let machine = parts.sim.world.node(node);
    if !requests.fits(&machine.allocatable) {
        return Some(ResizeCondition::Infeasible);
    }
    let mut left: Resources = machine.allocatable.clone();
    left.subtract(&machine.requested);
    left.add(&state.requests);
    if !requests.fits(&left) {
        return Some(ResizeCondition::Deferred);
    }
    let for_requests = parts.metrics.memory_for_requests(parts.sim, parts.loads, now, pod);
    let used = parts.usages.memory_of_containers(parts.sim, pod, for_requests)?;
    let limits = wanted.containers.iter().map(|container| container.limits.find(ResourceName::MEMORY));
    let too_low = used.iter().zip(limits).any(|(used, limit)| limit.is_some_and(|limit| *used > limit));
    too_low.then_some(ResizeCondition::Error)
}

/// The kubelet looks again at what waits for room; what has gone waits no more.
pub(super) fn try_again(parts: &mut Resizing<'_, '_>, now: SimTime) {
    let all: Vec<PodId> = parts.vertical.resizes.waiting.keys().copied().collect();
    for pod in all {
        let state = parts.sim.world.pod(pod);
        if state.phase == PodPhase::Gone || !state.is_active() {
            parts.vertical.resizes.waiting.remove(&pod);
            parts.vertical.terminations.remove(&pod);
            continue;
        }
        let Some(waiting) = parts.vertical.resizes.waiting.remove(&pod) else { continue };
        let condition = condition(parts, now, pod, &waiting.wanted);
        match condition {
            Some(condition) => {
                parts.vertical.resizes.waiting.insert(pod, Waiting { condition, ..waiting });
            }
            None => {
                let place = parts.vertical.position(parts.sim.world.pod(pod).workload);
                if let Some(facts) = place.and_then(|place| parts.vertical.autoscalers[place].facts) {
                    parts.sim.world.vertical_means(facts).resized += 1;
                }
                carry_out(parts, now, pod, waiting.wanted, &waiting.reason);
            }
        }
    }
}

/// The pod has its new size: everybody who counts what it requests or what limits it counts anew.
fn carry_out(parts: &mut Resizing<'_, '_>, now: SimTime, pod: PodId, spec: Arc<PodSpec>, reason: &str) {
    let state = parts.sim.world.pod(pod);
    let ready = state.is_ready();
    parts.vertical.resizes.waiting.remove(&pod);
    parts.metrics.pod_resizes(parts.sim, parts.loads, pod);
    if ready {
        parts.cpu_shares.pod_unready(parts.sim, parts.loads, pod);
    }
    parts.sim.world.resize_pod(pod, spec, now, reason);
    if ready {
        parts.cpu_shares.pod_ready(parts.sim, parts.loads, pod);
    }
    parts.sim.publish(ActorEvent::PodResized(pod));
}
