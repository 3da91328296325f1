//! Loads that were observed, in place of those that a dump lets guess: curves of requests or of cores in files of their own.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::yaml::word;
use super::{DraftFile, Notes};
use crate::domain::SimDuration;
use crate::domain::words::counted;
use crate::draft::{Observed, ObservedLoad};
use crate::manifests::Manifests;

/// So long a run that replays a window leaves out the figures of waiting and churn: it begins without the nodes of the cluster
/// (assumed to be enough for all pods to have one again).
pub(super) const WARM_UP: &str = "2h";
/// The longest run that a draft replays; the files hold the rest.
const REPLAYED_MAX: SimDuration = SimDuration::from_secs(7 * 86_400);

/// Warns of tables that the observation lacks.
pub(super) fn warn_of_unrecorded(observed: Option<&Observed>, notes: &mut Notes) {
    let Some(observed) = observed else { return };
    if observed.zones.is_none() {
        notes.warn("the observation has no nodes (`nodes.csv`, `node_counts.csv`): zones are those of the dump alone");
    }
    if observed.pods.is_none() {
        notes.warn(
            "the observation has no pods (`pods.csv`): pods that the dump lacks, and Jobs that ended, are not replayed. Cost may be too low",
        );
    }
}

/// The loads of workloads that the dump has.
pub(super) fn loads<'o>(
    observed: Option<&'o Observed>,
    manifests: &Manifests,
    notes: &mut Notes,
) -> Vec<&'o ObservedLoad> {
    let Some(observed) = observed else { return Vec::new() };
    let deployments = manifests.deployments.iter().map(|deployment| deployment.name.to_string());
    let serving: BTreeSet<String> =
        deployments.chain(manifests.stateful_sets.iter().map(|stateful_set| stateful_set.name.to_string())).collect();
    let (known, unknown): (Vec<&ObservedLoad>, Vec<&ObservedLoad>) =
        observed.loads.iter().partition(|load| serving.contains(&load.workload));
    let lost: Vec<&str> = unknown
        .iter()
        .filter(|observed_load| observed_load.cpu_per_request.is_some())
        .map(|item| item.workload.as_str())
        .collect();
    if !lost.is_empty() {
        let workloads = counted(lost.len() as u64, "workload has", "workloads have");
        notes.warn(format!(
            "{workloads} requests in the observation and no Deployment or StatefulSet in the dump: {}",
            lost.join(", ")
        ));
    }
    known
}

/// The name of the file with a load's curve. No namespace has a dot, so no two workloads share one.
fn file_name(load: &ObservedLoad) -> String {
    let kind = if load.cpu_per_request.is_some() { "requests" } else { "cores" };
    format!("{kind}.{}.csv", load.workload.replacen('/', ".", 1))
}

/// The files with the curves.
pub(super) fn files(loads: &[&ObservedLoad]) -> Vec<DraftFile> {
    loads.iter().map(|load| DraftFile { name: file_name(load).into(), text: load.curve.clone() }).collect()
}

/// Start and length of a run that replays the window.
pub(super) fn head(observed: &Observed, text: &mut String) {
    let _ = writeln!(text, "start: {}         # the begin of what was observed", observed.start);
    let _ = writeln!(text, "duration: {}", observed.length.min(REPLAYED_MAX));
}

/// The loads, as the scenario states them.
pub(super) fn text(loads: &[&ObservedLoad], text: &mut String) {
    for load in loads {
        let _ = writeln!(text, "  - workload: {}     # {}", word(&load.workload), load.basis);
        let file = word(&file_name(load));
        match load.cpu_per_request {
            Some(cpu) => {
                let _ = writeln!(text, "    requests: {{ csv: {file} }}");
                let _ = writeln!(
                    text,
                    "    service: {{ cpu_per_request: {cpu}, concurrency: 16, base_latency: 20ms, timeout: 10s }}"
                );
            }
            None => {
                let _ = writeln!(text, "    cpu: {{ csv: {file} }}");
            }
        }
    }
}
