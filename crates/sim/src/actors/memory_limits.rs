//! Containers that need more memory than their limit: the kernel kills them, and the kubelet starts them again.
//!
//! Deviation: containers are checked every ten seconds. The other replicas serve the work of a killed container.

use super::event::{LoadEvent, class};
use super::load_loop::Loads;
use super::metrics_server::MetricsServer;
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

/// The pods of one load, which are to be checked now, one after the other.
pub(super) fn due(sim: &mut Sim<'_>, loads: &Loads, load: u32) -> Vec<PodId> {
    sim.queue.schedule_in(LOOK, class::MACHINES, LoadEvent::MemoryCheck(load));
    let workload = loads.all.get(load as usize).and_then(|load| load.id);
    workload.map_or_else(Vec::new, |workload| sim.world.workload(workload).pods.clone())
}

/// The memory that a running pod needs for its requests, and its limit, where that is less.
pub(super) fn over_limit(
    sim: &mut Sim<'_>,
    metrics: &mut MetricsServer,
    loads: &mut Loads,
    usages: &mut Usages,
    now: SimTime,
    pod: PodId,
) -> Option<(i64, i64)> {
    let state = sim.world.pod(pod);
    if state.phase != PodPhase::Running || !state.is_active() {
        return None;
    }
    usages.look_at_node_of(sim, pod);
    metrics.memory_and_limit(sim, loads, now, pod).filter(|(needed, limit)| needed > limit)
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

/// The kernel kills a container, by its place in the pod, and its pod starts again.
pub(super) fn kill_container(
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
