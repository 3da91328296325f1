//! Containers that need more memory than their limit: the kernel kills them, and the kubelet starts them again.
//!
//! Deviation: containers are checked every ten seconds. The other replicas serve the work of a killed container.

use super::context::Context;
use super::dispatch::settle;
use super::event::{LoadEvent, class};
use super::restarts;
use super::restarts::BackOffs;
use super::sim::Sim;
use super::usage_loop::Usages;
use super::vertical::Vertical;
use crate::cluster::PodPhase;
use crate::domain::{PodId, SimDuration, SimTime};

/// Between two looks at the containers of a workload.
const LOOK: SimDuration = SimDuration::from_secs(10);
/// Looks begin with the first request, where the scenario says what requests need.
pub(super) fn begin(sim: &mut Sim<'_>) {
    let setup = sim.setup;
    for (load, plan) in setup.loads.iter().enumerate() {
        let modelled = plan.parts.iter().any(|part| part.service.memory.is_some());
        if let (true, Some(first)) = (modelled, plan.steps.first()) {
            sim.queue.schedule(first.at + LOOK, class::MACHINES, LoadEvent::MemoryCheck(load as u32));
        }
    }
}

/// Looks at the pods of one load.
pub(super) fn check(context: &mut Context<'_>, now: SimTime, load: u32) {
    context.queue.schedule_in(LOOK, class::MACHINES, LoadEvent::MemoryCheck(load));
    let Some(workload) = context.loads.all.get(load as usize).and_then(|load| load.id) else { return };
    for pod in context.world.workload(workload).pods.clone() {
        let Context { sim, back_offs, metrics, loads, usages, vertical, .. } = context;
        let state = sim.world.pod(pod);
        if state.phase != PodPhase::Running || !state.is_active() {
            continue;
        }
        usages.look_at_node_of(sim, pod);
        if let Some((needed, limit)) = metrics.memory_and_limit(sim, loads, now, pod)
            && needed > limit
        {
            kill_container(sim, back_offs, vertical, now, (pod, 0), needed, limit);
            // The other replicas have the work of this one, and more memory in use, when it is their turn.
            settle(context, now);
        }
    }
}

/// The memory that a pod uses by what the scenario states is held against the limits of its containers.
pub(super) fn look(
    sim: &mut Sim<'_>,
    back_offs: &mut BackOffs,
    usages: &Usages,
    vertical: &mut Vertical,
    now: SimTime,
    pod: PodId,
) {
    if let Some((container, needed, limit)) = usages.over_limit(sim, pod) {
        kill_container(sim, back_offs, vertical, now, (pod, container), needed, limit);
    }
}

/// The kernel kills a container, by its place in the pod, and its pod starts anew.
fn kill_container(
    sim: &mut Sim<'_>,
    back_offs: &mut BackOffs,
    vertical: &mut Vertical,
    now: SimTime,
    (pod, container): (PodId, usize),
    needed: i64,
    limit: i64,
) {
    vertical.out_of_memory(sim, now, pod, container);
    let mib = |bytes: i64| bytes / (1 << 20);
    let why = format!("OOMKilled: it needs {} MiB, its limit is {} MiB", mib(needed), mib(limit));
    restarts::restart(sim, back_offs, now, pod, SimDuration::ZERO, &why);
}
