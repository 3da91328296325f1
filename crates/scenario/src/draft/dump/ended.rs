//! How long pods of Jobs and CronJobs run, from those that have ended, in the dump or in an observation.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Dump;
use super::objects::Object;
use super::passing::is_passing;
use super::stand_ins::{self, Parts};
use super::yaml::word;
use crate::domain::SimDuration;
use crate::draft::{Observed, ObservedPod};

/// Seconds that the pods of a workload ran.
pub(super) struct RunTime {
    workload: String,
    /// The middle one of those that have ended.
    time: SimDuration,
    count: usize,
}

/// Of each Job and CronJob of which pods have ended well, in order of name.
pub(super) fn run_times(dump: &Dump<'_>, observed: Option<&Observed>) -> Vec<RunTime> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for pod in dump.ended.iter().filter(|item| item.text(&["status", "phase"]) == Some("Succeeded")) {
        if let (Some(workload), Some(seconds)) = (workload(pod, dump), seconds(pod)) {
            all.entry(workload).or_default().push(seconds);
        }
    }
    for pod in observed.iter().flat_map(|item| &item.pods).flatten() {
        if let (Some((namespace, name)), Some(seconds)) = (pod.workload.split_once('/'), ran(pod))
            && let Some(workload) = maker((namespace, name), dump)
        {
            all.entry(workload).or_default().push(seconds);
        }
    }
    all.into_iter()
        .filter_map(|(workload, mut seconds)| {
            seconds.sort_by(f64::total_cmp);
            let middle = *seconds.get(seconds.len() / 2)?;
            Some(RunTime { workload, time: SimDuration::from_secs(middle as i64), count: seconds.len() })
        })
        .collect()
}

/// The Job or CronJob of the dump that a pod is of: a CronJob names its Jobs after itself and the minute.
fn workload(pod: &Object<'_>, dump: &Dump<'_>) -> Option<String> {
    let owner = pod.owner().filter(|owner| owner.kind == "Job" && is_passing(pod).is_none())?;
    maker((&pod.namespace, owner.name), dump)
}

/// The Job or CronJob of the dump that a Job of this namespace and name is, or is of.
fn maker((namespace, job): (&str, &str), dump: &Dump<'_>) -> Option<String> {
    let has = |kind: &str, name: &str| {
        let mut carried = dump.carried.iter();
        carried.any(|carried| carried.kind == kind && carried.name == name && carried.namespace == namespace)
    };
    let made = || {
        let object = dump
            .carried
            .iter()
            .find(|object| object.kind == "Job" && object.name == job && object.namespace == namespace)?;
        let (kind, name) = object.controller()?;
        has(kind, name).then(|| format!("{namespace}/{name}"))
    };
    // Its pods run as long as those of all that its CronJob or ScaledJob makes.
    if let Some(name) = made() {
        return Some(name);
    }
    let timed = || job.rsplit_once('-').map(|(name, _)| name).filter(|name| has("CronJob", name));
    let name = if has("Job", job) || has("CronJob", job) { Some(job) } else { timed() };
    name.map(|name| format!("{namespace}/{name}"))
}

/// Seconds that an observed pod ran until it ended by itself.
fn ran(pod: &ObservedPod) -> Option<f64> {
    let (from, until) = (pod.started?, pod.removed.filter(|_| pod.deletion_requested.is_none())?);
    Some(until.saturating_since(from).as_secs_f64()).filter(|seconds| *seconds >= 1.0)
}

/// Seconds from the start of the first of a pod's containers to the end of the last: what it did, without its image's pull.
fn seconds(pod: &Object<'_>) -> Option<f64> {
    let instants = |key: &str| -> Vec<jiff::Timestamp> {
        let containers = pod.at(&["status", "containerStatuses"]).map_or(&[][..], |pod| pod.items());
        let text =
            containers.iter().filter_map(|container| container.get("state")?.get("terminated")?.get(key)?.as_text());
        text.filter_map(|text| text.parse().ok()).collect()
    };
    let (began, ended) = (instants("startedAt").into_iter().min()?, instants("finishedAt").into_iter().max()?);
    Some(ended.duration_since(began).as_secs_f64()).filter(|secs_f64| *secs_f64 >= 1.0)
}

/// The run times and the workloads that count as one, as the scenario states them.
pub(super) fn text(run_times: &[RunTime], parts: &[Parts], text: &mut String) {
    let about = match (run_times.is_empty(), parts.is_empty()) {
        (true, true) => return,
        (false, true) => "how long the pods ran that have ended, the middle of them",
        (true, false) => "Deployments whose replicas count together",
        (false, false) => "median run time of ended pods; Deployments whose replicas count together",
    };
    let _ = writeln!(text, "\nworkloads:                          # {about}");
    stand_ins::lines(parts, text);
    for run_time in run_times {
        let _ = writeln!(
            text,
            "  - {{ name: {}, run_time: {} }}     # of {}",
            word(&run_time.workload),
            run_time.time,
            run_time.count
        );
    }
}
