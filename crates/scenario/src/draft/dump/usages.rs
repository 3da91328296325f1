//! What pods used as the dump was made, by PodMetrics of metrics-server or what `kubectl top pods` prints, as the use of workloads of which nothing else says what they use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::demand::{Demand, Load};
use super::objects::Object;
use super::rebuilt::workload_of;
use super::yaml::word;
use super::{Dump, Notes};
use crate::domain::Quantity;
use crate::domain::words::counted;
use crate::draft::ObservedLoad;
use crate::manifests::Manifests;
use crate::tree::Node;

/// What a container of a workload used, in the mean of its pods.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Used {
    /// Namespace and name of the workload.
    workload: String,
    /// `None` where only the pod's use is known.
    container: Option<String>,
    /// `None` where the workload's load states its CPU.
    cores: Option<f64>,
    bytes: f64,
    pods: u32,
}

/// The use of each container of the Deployments and StatefulSets, in order of name: of those that have a load their memory alone, as far as
/// it says nothing of that.
pub(super) fn usages(
    dump: &Dump<'_>,
    manifests: &Manifests,
    (demand, replayed): (&Demand, &[&ObservedLoad]),
    notes: &mut Notes,
) -> Vec<Used> {
    let owner = |pod: &Object<'_>| {
        let name = workload_of(pod).map(|(_, name)| name).or_else(|| dump.stand_ins.name_of(pod))?;
        Some(format!("{}/{name}", pod.own_namespace()))
    };
    let owners: BTreeMap<String, String> =
        dump.pods.iter().filter_map(|pod| Some((pod.full_name(), owner(pod)?))).collect();
    let deployments = manifests.deployments.iter().map(|deployment| deployment.name.to_string());
    let serving: Vec<String> =
        deployments.chain(manifests.stateful_sets.iter().map(|stateful_set| stateful_set.name.to_string())).collect();
    let has_load = |workload: &str| {
        demand.loads.iter().any(|load| load.workload.to_string() == workload)
            || replayed.iter().any(|load| load.workload == workload)
    };
    let has_memory = |workload: &str| {
        let of_load = demand.loads.iter().any(|load| load.memory.is_some() && load.workload.to_string() == workload);
        of_load || demand.memory.iter().any(|item| item.workload.to_string() == workload)
    };
    let mut sums: BTreeMap<(String, Option<String>), (f64, f64, u32)> = BTreeMap::new();
    for pod in &dump.metrics {
        let is_unknown = |text: &&String| serving.contains(text) && !(has_load(text) && has_memory(text));
        let Some(workload) = owners.get(&pod.full_name()).filter(is_unknown) else { continue };
        for (container, cores, bytes) in pod.at(&["containers"]).map_or(&[][..], Node::items).iter().filter_map(read) {
            let sum = sums.entry((workload.clone(), container.map(str::to_owned))).or_insert((0.0, 0.0, 0));
            *sum = (sum.0 + cores, sum.1 + bytes, sum.2 + 1);
        }
    }
    let used = sums.into_iter().map(|((workload, container), (cores, bytes, pods))| {
        let of_pod = |sum: f64| sum / f64::from(pods.max(1));
        let cores = (!has_load(&workload)).then(|| of_pod(cores));
        Used { workload, container, cores, bytes: of_pod(bytes), pods }
    });
    let mut used: Vec<Used> = used.collect();
    if !used.is_empty() {
        let containers = counted(used.len() as u64, "container uses", "containers use");
        notes
            .assume(format!("{containers} all day what PodMetrics or `kubectl top pods` showed as the dump was made."));
    }
    for memory_user in &demand.memory {
        let workload = memory_user.workload.to_string();
        if memory_user.is_idle && has_load(&workload) || used.iter().any(|used| used.workload == workload) {
            continue;
        }
        let cpu = if memory_user.is_idle { "no CPU" } else { "the CPU that was observed" };
        notes.assume(format!("{workload} uses all day as much memory as its autoscaler measured, and {cpu}."));
        let (bytes, pods) = (memory_user.memory as f64, memory_user.replicas);
        used.push(Used { workload, container: None, cores: memory_user.is_idle.then_some(0.0), bytes, pods });
    }
    used.extend(demand.loads.iter().filter_map(of_load));
    used
}

/// The memory of a workload whose autoscaler reads it, where its load is its CPU.
fn of_load(load: &Load) -> Option<Used> {
    let (workload, bytes) = (load.workload.to_string(), load.memory? as f64);
    Some(Used { workload, container: None, cores: None, bytes, pods: load.replicas })
}

/// A container with its cores and bytes.
fn read<'n>(container: &'n Node<'_>) -> Option<(Option<&'n str>, f64, f64)> {
    let amount = |name| container.get("usage")?.get(name)?.as_text()?.parse::<Quantity>().ok().map(Quantity::as_f64);
    Some((container.get("name").and_then(Node::as_text), amount("cpu")?, amount("memory")?))
}

/// The section of the scenario.
pub(super) fn text(used: &[Used], text: &mut String) {
    if used.is_empty() {
        return;
    }
    *text +=
        "\nusage:                              # of each pod: cores, MiB; one look at the cluster, taken for all day\n";
    for item in used {
        let _ = writeln!(
            text,
            "  - {{ workload: {}, {}{}memory: {{ constant: {:.0} }} }}   # {}",
            word(&item.workload),
            item.container.as_ref().map_or_else(String::new, |name| format!("container: {}, ", word(name))),
            item.cores.map_or_else(String::new, |cores| format!("cpu: {{ constant: {cores:.3} }}, ")),
            item.bytes / f64::from(1 << 20),
            counted(u64::from(item.pods), "pod", "pods")
        );
    }
}
