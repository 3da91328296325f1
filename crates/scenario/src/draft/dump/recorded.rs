//! Pods that were observed and that nothing in a dump makes, batch jobs most of all: a trace of them, each as it was recorded.
//!
//! Deviation: for an observed pod, kube-state-metrics reports GPUs, tolerations and, if enabled, selectors of
//! well-known labels, but no affinity. A Job of the dump or a similar pod can supply the rest. Without them, the pod
//! fits every node without a taint and requests no GPU.
//!
//! What must not live here: pods of workloads that the scenario simulates.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nodecast_model::text::cells::csv_cell;

use super::objects::Object;
use super::passing::{columns, mebibytes};
use super::{DraftFile, Dump, Notes, Trace};
use crate::domain::words::counted;
use crate::domain::{PodSpec, SimTime};
use crate::draft::{Observed, ObservedPlacement, ObservedPod};

/// The file of the trace.
const FILE: &str = "recorded.csv";
/// The table of an observation that tells where pods may go.
const PLACEMENTS: &str = "placements.csv";
/// Kinds whose pods a run makes.
const MAKERS: [&str; 10] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "ReplicationController",
    "Rollout",
    "ScaledJob",
    "StatefulSet",
];
/// How many names a sentence lists.
const NAMED: usize = 5;

/// What pods of a dump ask for, so that those that were recorded ask for the same.
#[derive(Default)]
pub(super) struct KnownRequests {
    /// Of each Job.
    jobs: BTreeMap<String, String>,
    /// Of pods that come and go, by namespace, CPU and memory.
    passing: BTreeMap<(String, i64, i64), String>,
}

impl KnownRequests {
    /// A Job whose template is `spec`.
    pub(super) fn job(&mut self, name: String, spec: &PodSpec) {
        self.jobs.insert(name, columns(spec));
    }

    /// A pod that comes and goes.
    pub(super) fn passing(&mut self, namespace: &str, spec: &PodSpec) {
        let requests = spec.requests();
        let key = (namespace.to_owned(), requests.cpu_milli(), requests.memory_bytes());
        self.passing.entry(key).or_insert_with(|| columns(spec));
    }

    /// Whether it is known what a pod asks for: one whose requests nobody recorded would be a pod without any.
    fn asks(&self, pod: &ObservedPod) -> bool {
        pod.cpu_milli > 0 || pod.memory_bytes > 0 || self.name(pod).is_some()
    }

    fn name(&self, pod: &ObservedPod) -> Option<&String> {
        let namespace = pod.workload.split('/').next().unwrap_or_default().to_owned();
        let alike = (namespace, pod.cpu_milli, pod.memory_bytes);
        self.jobs.get(&pod.workload).or_else(|| self.passing.get(&alike))
    }
}

/// Takes the Jobs out of a dump whose pods were observed: a replay of the window has them when they ran, not when it begins.
pub(super) fn take_jobs<'s>(dump: &mut Dump<'s>, observed: Option<&Observed>) -> Vec<Object<'s>> {
    let Some(pods) = observed.and_then(|observed| observed.pods.as_ref()) else { return Vec::new() };
    let seen: BTreeSet<&str> =
        pods.iter().filter(|pod| pod.created.is_some()).map(|pod| pod.workload.as_str()).collect();
    let is_seen = |object: &Object<'_>| object.kind == "Job" && seen.contains(&*object.full_name());
    let (jobs, carried) = std::mem::take(&mut dump.carried).into_iter().partition(is_seen);
    dump.carried = carried;
    jobs
}

/// The pods that were observed and that nothing that the scenario carries makes, as a trace; what cannot be replayed is warned of.
pub(super) fn trace(
    observed: Option<&Observed>,
    dump: &Dump<'_>,
    known: &KnownRequests,
    notes: &mut Notes,
) -> Option<Trace> {
    let pods = observed?.pods.as_ref()?;
    let makers = dump.carried.iter().filter(|item| MAKERS.contains(&&*item.kind));
    let makers: BTreeMap<String, &str> = makers.map(|maker| (maker.full_name(), maker.kind.as_str())).collect();
    let (unknown, lost): (Vec<&ObservedPod>, Vec<&ObservedPod>) = pods
        .iter()
        .filter(|pod| !is_made(&pod.workload, &makers))
        .partition(|pod| !pod.is_daemon && pod.created.is_some() && known.asks(pod));
    warn_of(&lost, notes);
    let rows: Vec<(&ObservedPod, Row)> =
        unknown.into_iter().filter_map(|pod| Some((pod, Row::from_pod(pod)?))).collect();
    if rows.is_empty() {
        return None;
    }
    let namespace = most(rows.iter().map(|(pod, _)| pod.workload.split('/').next().unwrap_or_default()))?;
    notes.assume(assumption(&rows, known, namespace));
    Some(Trace {
        file: DraftFile { name: FILE.into(), text: text(rows, known) },
        namespace: namespace.to_owned(),
        about: "pods that the dump does not have, as they were recorded",
    })
}

/// Whether one of these makes the pods of a workload; a CronJob names its Jobs after itself and the minute.
fn is_made(workload: &str, makers: &BTreeMap<String, &str>) -> bool {
    let timed = || {
        let (name, minute) = workload.rsplit_once('-')?;
        let is_minute = !minute.is_empty() && minute.bytes().all(|byte| byte.is_ascii_digit());
        makers.get(name).filter(|kind| is_minute && **kind == "CronJob")
    };
    makers.contains_key(workload) || timed().is_some()
}

/// The one that there is most of.
fn most<'n>(all: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    all.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().max_by(|one, other| one.1.cmp(&other.1).then(other.0.cmp(one.0))).map(|count| count.0)
}

/// When a pod comes and goes, in seconds from the window's begin on.
struct Row {
    at: f64,
    /// How long it ran once its containers had started.
    run: Option<f64>,
    /// When it went, where it did not end by itself.
    delete: Option<f64>,
}

impl Row {
    /// `None` of a pod that was gone when the window began.
    fn from_pod(pod: &ObservedPod) -> Option<Self> {
        let from_begin = |at: SimTime| at.max(SimTime::ZERO);
        let (created, end) = (pod.created?, pod.deletion_requested.or(pod.removed));
        if end.is_some_and(|end| end <= SimTime::ZERO) {
            return None;
        }
        let at = from_begin(created);
        let mut row = Self { at: at.as_secs_f64(), run: None, delete: None };
        match (pod.deletion_requested, pod.removed, pod.started) {
            (None, Some(end), Some(started)) => {
                row.run = Some(end.saturating_since(from_begin(started)).as_secs_f64().max(1.0));
            }
            (_, _, _) => row.delete = end.map(|end| end.max(at).as_secs_f64()),
        }
        Some(row)
    }
}

fn text(rows: Vec<(&ObservedPod, Row)>, known: &KnownRequests) -> String {
    let mut rows = rows;
    rows.sort_by(|(one_pod, one), (pod, other)| one.at.total_cmp(&other.at).then(one_pod.name.cmp(&pod.name)));
    let mut names = BTreeSet::new();
    let mut text =
        String::from("create_s,run_s,delete_s,name,cpu_milli,memory_mib,gpu,node_selector,tolerations,priority\n");
    for (pod, row) in rows {
        let seconds = |number: Option<f64>| number.map_or(String::new(), |number| format!("{number:.0}"));
        // They all come into one namespace, where a name is there once.
        let name = if names.insert(&pod.name) { cell(&pod.name) } else { "".into() };
        let asks = known.name(pod).cloned().unwrap_or_else(|| recorded(pod));
        let _ = writeln!(text, "{:.0},{},{},{name},{asks}", row.at, seconds(row.run), seconds(row.delete));
    }
    text
}

/// What a pod was recorded to ask for, as columns of the trace.
fn recorded(pod: &ObservedPod) -> String {
    let unknown = ObservedPlacement::default();
    let placement = pod.placement.as_ref().unwrap_or(&unknown);
    let gpus = if placement.gpus > 0 { placement.gpus.to_string() } else { String::new() };
    let (selector, tolerations) = (cell(&placement.node_selector), cell(&placement.tolerations));
    format!("{},{},{gpus},{selector},{tolerations},", pod.cpu_milli, mebibytes(pod.memory_bytes))
}

/// A text as a cell: whatever a Prometheus holds, it stays one.
pub(super) fn cell(text: &str) -> Cow<'_, str> {
    let text = csv_cell(text);
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")).into() } else { text }
}

/// Workloads by how many of the pods are theirs, the first ones named.
fn listed<'p>(pods: impl Iterator<Item = &'p ObservedPod>) -> (usize, String) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    pods.for_each(|pod| *counts.entry(&pod.workload).or_default() += 1);
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let named = counts.iter().take(NAMED).map(|(name, count)| format!("{name} ({})", counted(*count, "pod", "pods")));
    let more = if counts.len() > NAMED { ", ..." } else { "" };
    (counts.len(), named.collect::<Vec<String>>().join(", ") + more)
}

fn assumption(rows: &[(&ObservedPod, Row)], known: &KnownRequests, namespace: &str) -> String {
    let (workloads, named) = listed(rows.iter().map(|(pod, _)| *pod));
    let pods = counted(rows.len() as u64, "pod", "pods");
    let of = counted(workloads as u64, "workload", "workloads");
    let strangers = || rows.iter().filter(|(pod, _)| known.name(pod).is_none());
    let (told, unknown) = (
        strangers().filter(|(pod, _)| pod.placement.is_some()).count(),
        strangers().filter(|(pod, _)| pod.placement.is_none()).count(),
    );
    let mut asked = String::new();
    if told > 0 {
        asked +=
            &format!(" {told} of them ask of their node what was recorded ({PLACEMENTS}), which holds no affinity.");
    }
    if unknown > 0 {
        asked += &format!(
            " Which nodes {unknown} of them required or tolerated is not recorded: they go anywhere, and to no node with a taint."
        );
    }
    format!(
        "{pods} of {of} that the dump does not have are replayed as they were recorded ({FILE}): {named}. What ended by itself runs as long \
         again once it has started, the rest goes when it went. All are in the namespace {namespace}.{asked}"
    )
}

/// Warns of pods of which too little was recorded, and of those that come with each node: nobody runs them.
fn warn_of(lost: &[&ObservedPod], notes: &mut Notes) {
    if lost.is_empty() {
        return;
    }
    let (workloads, named) = listed(lost.iter().copied());
    let of = counted(workloads as u64, "workload was", "workloads were");
    let them = if workloads == 1 { "it" } else { "them" };
    notes.warn(format!("{of} observed of which the dump has nothing, so nobody runs {them}: {named}"));
}
