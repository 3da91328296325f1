//! What containers use, as the cAdvisor in each kubelet tells it: CPU and memory of pods for whose workload requests or messages
//! are simulated. Of the others nothing is known.
//!
//! Source: cAdvisor 0.52 `metrics/prometheus.go`; kubelet 1.36 `pkg/kubelet/server/server.go`, `containerPrometheusLabelsFunc`.

use std::collections::BTreeSet;
use std::io;

use super::exposition::{Exposition, Family, Labels};
use super::kube_pods::{container, named};
use super::lives::{Lives, value};
use super::metered::Metered;
use crate::domain::{PodId, WorkloadId};
use nodecast_world::record::PodFacts;

/// Series of each such pod, for the size of the text.
pub(super) const SERIES: u64 = 2;

/// Microseconds and millionths of a CPU in one second of a CPU.
const CPU_SECOND: f64 = 1e12;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>, metered: &Metered<'_>) -> io::Result<()> {
    let workloads: BTreeSet<WorkloadId> = metered.workloads().collect();
    let pods = || lives.pods().filter(|(_, pod)| workloads.contains(&pod.workload));
    out.family(Family::counter("container_cpu_usage_seconds", "CPU time that the container has used."));
    for (id, ref pod) in pods() {
        let Some(from) = pod.started else { continue };
        out.living(&labels(lives, id, pod), (from, lives.room_until(id, pod)), |at| {
            Some(metered.cpu_used(pod, at) as f64 / CPU_SECOND)
        })?;
    }
    out.family(Family::gauge("container_memory_working_set_bytes", "Memory in use, what cannot be given back."));
    for (id, ref pod) in pods() {
        let Some(from) = pod.started else { continue };
        out.living(&labels(lives, id, pod), (from, lives.room_until(id, pod)), |at| {
            metered.memory(pod, at).map(|bytes| bytes as f64)
        })?;
    }
    Ok(())
}

fn labels(lives: &Lives<'_>, id: PodId, pod: &PodFacts) -> Labels {
    let container = container(lives, pod);
    let stated = lives.workload_of(pod).map(|workload| workload.image.to_string()).filter(|image| !image.is_empty());
    let image = stated.unwrap_or_else(|| format!("unknown/{container}"));
    let mut labels = named(lives, pod);
    labels.extend([
        ("id", format!("/kubepods/pod{}/{container}", id.index())),
        ("container", container),
        ("image", image),
        ("node", value_of_node(lives, pod)),
    ]);
    labels
}

fn value_of_node(lives: &Lives<'_>, pod: &PodFacts) -> String {
    lives.node_of(pod).map_or_else(|| value(None), |node| node.name.clone())
}
