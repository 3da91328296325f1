//! Pods: each with its times, in whole seconds as the cluster has them, and how many wait.

use std::collections::BTreeMap;

use nodecast_model::domain::{SimDuration, SimTime};
use nodecast_model::text::InputError;

use super::super::answer::{Sample, Series};
use super::answer_reader::AnswerReader;
use super::owners::{Owner, Owners};
use super::{Frame, text};
use crate::observation::about::Waits;
use crate::observation::{Pending, PodLife};

/// Sets an instant of a pod.
type SetTime = fn(&mut PodLife, Option<SimTime>);

/// The roles of answers whose values are instants of pods, and what of a pod each is.
const TIMES: [(&str, SetTime); 6] = [
    ("pod_created", |pod, at| pod.created = at),
    ("pod_scheduled", |pod, at| pod.scheduled = at),
    ("pod_started", |pod, at| pod.started = at),
    // What is exported is the last time that it became Ready: the first one that was seen is the nearest to the first.
    ("pod_ready", |pod, at| pod.ready = at),
    ("pod_deleted", |pod, at| pod.deletion_requested = at),
    // With its containers ended it holds no room any more, whoever clears it away.
    ("pod_completed", |pod, at| pod.removed = at),
];

/// Kinds whose pods come and go with their node: the kubelet makes those of manifests in a node's own files.
const OF_NODES: [&str; 2] = ["DaemonSet", "Node"];

/// Seconds after which a pod that is seen no more is gone: twice the look-back of a Prometheus, and every scrape is more frequent.
const UNSEEN: f64 = 600.0;

/// Whether pods of this owner come and go with their node.
pub(super) fn comes_with_its_node(owner: &Owner) -> bool {
    OF_NODES.contains(&&*owner.kind)
}

/// Each pod that was seen, in order of creation.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn lives(told: &mut AnswerReader<'_>, owners: &Owners, frame: Frame) -> Result<Vec<PodLife>, InputError> {
    let mut all: BTreeMap<(String, String), PodLife> = BTreeMap::new();
    let key = |series: &Series| (series.label("namespace").to_owned(), series.label("pod").to_owned());
    let first = |series: &Series| series.samples.iter().filter_map(|sample| frame.of_value(sample.value)).min();
    for (role, set) in TIMES {
        for series in told.series(role)? {
            let (namespace, pod) = key(&series);
            let new = || {
                let owner = owners.of_pod(&namespace, &pod);
                PodLife {
                    pod: pod.clone(),
                    workload: owner.map(|owner| owner.workload.clone()),
                    daemon: owner.map(comes_with_its_node),
                    ..PodLife::default()
                }
            };
            set(all.entry((namespace.clone(), pod.clone())).or_insert_with(new), first(&series));
        }
    }
    gone(&mut all, &told.series("pod_seen")?, frame);
    for series in told.series("pod_node")? {
        if let Some(pod) = all.get_mut(&key(&series)) {
            pod.node = text(&series, "node");
        }
    }
    for series in told.series("pod_requests")? {
        let (Some(pod), Some(sample)) = (all.get_mut(&key(&series)), last_amount(&series)) else { continue };
        match series.label("resource") {
            "cpu" => pod.cpu_request_milli = Some(libm::round(sample.value * 1e3) as i64),
            _ => pod.memory_request_bytes = Some(libm::round(sample.value) as i64),
        }
    }
    for pod in all.values_mut() {
        let span = |end: Option<SimTime>| end.zip(pod.created).map(|(end, from)| end.saturating_since(from));
        (pod.wait_for_node, pod.created_to_ready) = (span(pod.scheduled), span(pod.ready));
    }
    let mut all: Vec<((String, String), PodLife)> = all.into_iter().collect();
    all.sort_by(|(one_name, one), (other_name, other)| (one.created, one_name).cmp(&(other.created, other_name)));
    Ok(all.into_iter().map(|(_, pod)| pod).collect())
}

/// Pods that were seen no more, long before others were: somebody deleted them, when they were last seen or within the minute.
fn gone(all: &mut BTreeMap<(String, String), PodLife>, seen: &[Series], frame: Frame) {
    let last = |series: &Series| series.samples.iter().map(|sample| sample.value).fold(f64::NAN, f64::max);
    let latest = seen.iter().map(last).fold(f64::NAN, f64::max);
    for series in seen {
        let key = (series.label("namespace").to_owned(), series.label("pod").to_owned());
        let is_gone = latest - last(series) > UNSEEN;
        if let Some(pod) = all.get_mut(&key).filter(|pod| is_gone && pod.removed.is_none()) {
            pod.deletion_requested = pod.deletion_requested.or(frame.of_value(last(series)));
        }
    }
}

/// The last sample that is an amount. A record without markers of staleness ends a series with a zero, which is none; where all are zero, it is zero.
pub(super) fn last_amount(series: &Series) -> Option<&Sample> {
    series.samples.iter().rfind(|sample| sample.value > 0.0).or(series.samples.last())
}

/// Pods that wait, by namespace, and those without a node in the whole cluster.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn pending(told: &mut AnswerReader<'_>, frame: Frame) -> Result<Vec<Pending>, InputError> {
    let mut rows: BTreeMap<(SimTime, Option<String>), Pending> = BTreeMap::new();
    for (role, set) in [
        ("pods_pending", (|row, count| row.pods_pending = Some(count)) as fn(&mut Pending, i64)),
        ("pods_unschedulable", |row, count| row.pods_unschedulable = Some(count)),
    ] {
        for series in told.series(role)? {
            let namespace = text(&series, "namespace");
            for sample in series.samples.iter().filter(|sample| sample.value.is_finite()) {
                let at = frame.at(sample);
                let new = || Pending { at, namespace: namespace.clone(), ..Pending::default() };
                let row = rows.entry((at, namespace.clone())).or_insert_with(new);
                set(row, libm::round(sample.value) as i64);
            }
        }
    }
    Ok(rows.into_values().collect())
}

/// The waits for a node of the pods that were made within the window, without those of DaemonSets and placeholders; `None` if there
/// are none.
pub fn waits_of(pods: &[PodLife]) -> Option<Waits> {
    let counts = |pod: &&PodLife| {
        pod.daemon == Some(false) && pod.placeholder != Some(true) && pod.created.is_some_and(|at| at >= SimTime::ZERO)
    };
    let mut waits: Vec<SimDuration> = pods.iter().filter(counts).filter_map(|pod| pod.wait_for_node).collect();
    waits.sort_unstable();
    // The nearest rank, counted from one.
    let rank =
        |percent: usize| waits.get((waits.len() * percent).div_ceil(100).max(1) - 1).map(|wait| wait.as_secs_f64());
    Some(Waits { pods: waits.len() as u64, p50_seconds: rank(50)?, p99_seconds: rank(99)?, max_seconds: rank(100)? })
}
