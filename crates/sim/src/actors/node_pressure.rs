//! Nodes whose pods use more memory than the node offers them: the kubelet evicts one pod after the other, whatever budgets say.
//!
//! Deviation: the system and its daemons use exactly their reservation. A node is therefore short if its pods use
//! more than its allocatable memory. A pod without usage data uses no memory. A node is checked within ten seconds
//! after the memory of one of its pods may have risen, not all the time. The condition MemoryPressure and its taint,
//! which repel pods without requests for five minutes, are omitted. Kills by the kernel, where memory rises faster
//! than the kubelet's checks, are omitted, too.

use super::event::{LoadEvent, class};
use super::load_loop::Loads;
use super::metrics_server::MetricsServer;
use super::sim::Sim;
use super::usage_loop::Usages;
use super::{kubelet, metrics_server, usage_loop};
use crate::cluster::{NodeOrigin, NodePhase, PodPhase};
use crate::domain::{NodeId, PodId, ResourceName, SimTime};
use nodecast_model::node_pressure::{GRACE, LOOK, PodMemory, first_to_go};

const MEBIBYTE: i64 = 1 << 20;

/// The kubelet of a node holds what its pods use against what there is.
pub(super) fn look(
    sim: &mut Sim<'_>,
    metrics: &mut MetricsServer,
    loads: &mut Loads,
    usages: &mut Usages,
    now: SimTime,
    node: NodeId,
) {
    usages.looks.begun(node);
    let state = sim.world.node(node);
    if state.phase != NodePhase::Registered || matches!(state.origin, NodeOrigin::Fargate(_)) {
        return;
    }
    let allocatable = state.allocatable.memory_bytes();
    let running: Vec<PodId> =
        state.pods.iter().copied().filter(|&pod| sim.world.pod(pod).phase == PodPhase::Running).collect();
    // Where limits keep pods below it nobody needs to be asked what they use.
    let limits = running.iter().map(|&pod| sim.world.pod(pod).spec.limit_with_sidecars(ResourceName::MEMORY));
    if limits.sum::<Option<i64>>().is_some_and(|most| most <= allocatable) {
        return;
    }
    let used: Vec<i64> = running.iter().map(|&pod| memory_in_use(sim, metrics, loads, usages, now, pod)).collect();
    let sum: i64 = used.iter().sum();
    if sum <= allocatable {
        return;
    }
    // A pod that is on its way out frees its memory by itself.
    let staying = running.iter().zip(&used).filter(|(pod, _)| sim.world.pod(**pod).is_active());
    let (staying, memory): (Vec<PodId>, Vec<PodMemory>) = staying
        .map(|(&pod, &used)| {
            let spec = &sim.world.pod(pod).spec;
            (pod, PodMemory { priority: spec.priority, requested: spec.requests().memory_bytes(), used })
        })
        .unzip();
    if let Some(place) = first_to_go(&memory) {
        let PodMemory { requested, used, .. } = memory[place];
        let reason = format!(
            "the node was low on memory: its pods use {} MiB of {} MiB; this one used {} MiB and requests {} MiB",
            sum / MEBIBYTE,
            allocatable / MEBIBYTE,
            used / MEBIBYTE,
            requested / MEBIBYTE
        );
        let workload = sim.world.pod(staying[place]).workload;
        sim.world.note_pressed(now, workload);
        kubelet::delete_within(sim, now, staying[place], GRACE, true, &reason);
    }
    if usages.looks.is_new(node) {
        sim.queue.schedule_in(LOOK, class::MACHINES, LoadEvent::NodeMemoryLook(node));
    }
}

/// Memory that a pod uses by all that is said of it, in bytes.
fn memory_in_use(
    sim: &Sim<'_>,
    metrics: &mut MetricsServer,
    loads: &mut Loads,
    usages: &mut Usages,
    now: SimTime,
    pod: PodId,
) -> i64 {
    let for_requests = metrics.memory_for_requests(sim, loads, now, pod);
    let state = sim.world.pod(pod);
    let ready = sim.world.workload(state.workload).ready;
    let usages = (usages.all.as_slice(), &usages.of);
    let stated = usage_loop::memory_of_pod(usages, state.workload, (&state.spec, ready));
    metrics_server::memory_in_use((for_requests, stated), &state.spec).unwrap_or(0)
}
