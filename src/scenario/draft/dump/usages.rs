//! What pods used as the dump was made, by PodMetrics of metrics-server or what `kubectl top pods` prints, as the use of workloads of which nothing else says what they use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::demand::Demand;
use super::objects::Object;
use super::rebuilt::workload_of;
use super::yaml::word;
use super::{Dump, Notes};
use crate::domain::Quantity;
use crate::domain::words::counted;
use crate::scenario::draft::ObservedLoad;
use crate::scenario::manifests::Manifests;
use crate::scenario::tree::Node;

/// What a container of a workload used, in the mean of its pods.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Used {
    /// Namespace and name of the workload.
    workload: String,
    /// `None` where only the pod's use is known.
    container: Option<String>,
    cores: f64,
    bytes: f64,
    pods: u32,
}

/// The use of each container of the Deployments and StatefulSets that have no load, in order of name.
pub(super) fn usages(
    dump: &Dump<'_>,
    manifests: &Manifests,
    (demand, replayed): (&Demand, &[&ObservedLoad]),
    notes: &mut Notes,
) -> Vec<Used> {
    let owner = |pod: &Object<'_>| Some(format!("{}/{}", pod.own_namespace(), workload_of(pod)?.1));
    let owners: BTreeMap<String, String> =
        dump.pods.iter().filter_map(|pod| Some((pod.full_name(), owner(pod)?))).collect();
    let deployments = manifests.deployments.iter().map(|own| own.name.to_string());
    let serving: Vec<String> =
        deployments.chain(manifests.stateful_sets.iter().map(|own| own.name.to_string())).collect();
    let has_load = |workload: &str| {
        demand.loads.iter().any(|load| load.workload.to_string() == workload)
            || replayed.iter().any(|load| load.workload == workload)
    };
    let mut sums: BTreeMap<(String, Option<String>), (f64, f64, u32)> = BTreeMap::new();
    for pod in &dump.metrics {
        let Some(workload) = owners.get(&pod.full_name()).filter(|own| serving.contains(own) && !has_load(own)) else {
            continue;
        };
        for (container, cores, bytes) in pod.at(&["containers"]).map_or(&[][..], Node::items).iter().filter_map(read) {
            let sum = sums.entry((workload.clone(), container.map(str::to_owned))).or_insert((0.0, 0.0, 0));
            *sum = (sum.0 + cores, sum.1 + bytes, sum.2 + 1);
        }
    }
    let used = sums.into_iter().map(|((workload, container), (cores, bytes, pods))| {
        let of_pod = |sum: f64| sum / f64::from(pods.max(1));
        Used { workload, container, cores: of_pod(cores), bytes: of_pod(bytes), pods }
    });
    let mut used: Vec<Used> = used.collect();
    if !used.is_empty() {
        let containers = counted(used.len() as u64, "container uses", "containers use");
        notes
            .assume(format!("{containers} all day what PodMetrics or `kubectl top pods` showed as the dump was made."));
    }
    for idle in &demand.idle {
        let workload = idle.workload.to_string();
        if !has_load(&workload) && used.iter().all(|own| own.workload != workload) {
            notes.assume(format!("{workload} uses all day as much memory as its autoscaler measured, and no CPU."));
            let (bytes, pods) = (idle.memory as f64, idle.replicas);
            used.push(Used { workload, container: None, cores: 0.0, bytes, pods });
        }
    }
    used
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
    for own in used {
        let _ = writeln!(
            text,
            "  - {{ workload: {}, {}cpu: {{ constant: {:.3} }}, memory: {{ constant: {:.0} }} }}   # {}",
            word(&own.workload),
            own.container.as_ref().map_or_else(String::new, |name| format!("container: {}, ", word(name))),
            own.cores,
            own.bytes / f64::from(1 << 20),
            counted(u64::from(own.pods), "pod", "pods")
        );
    }
}
