//! Pods as kube-state-metrics shows them.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/workload/pod-metrics.md`.

use std::io;

use super::exposition::{Exposition, Family, Labels, Level, Spans};
use super::kube_nodes::resource_labels;
use super::lives::{Lives, earliest, scale, value};
use crate::domain::{PodId, ResourceName, SimTime};
use crate::world::record::{PodFacts, WorkloadKind};

/// Series of each pod at one time, for the size of the text.
pub(super) const SERIES: u64 = 8;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    info(out, lives)?;
    out.family(Family::gauge("kube_pod_created", "When the pod was created, in Unix time."));
    let mut spans = Spans::default();
    for (_, pod) in lives.pods() {
        spans.add(named(lives, pod), (pod.created, pod.removed), out.unix_seconds(pod.created));
    }
    out.spans(spans, false)?;
    phases(out, lives)?;
    readiness(out, lives)?;
    requests(out, lives)
}

/// Namespace and name of a pod.
fn named(lives: &Lives<'_>, pod: &PodFacts) -> Labels {
    vec![("namespace", value(lives.workload_of(pod).map(|own| own.name.namespace))), ("pod", pod.name.clone())]
}

/// The kind of object that makes the pods of a workload.
pub(super) const fn maker(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Deployment => "ReplicaSet",
        WorkloadKind::DaemonSet => "DaemonSet",
        WorkloadKind::StatefulSet => "StatefulSet",
        WorkloadKind::ScaledJob | WorkloadKind::Job | WorkloadKind::CronJob => "Job",
        WorkloadKind::Pods => "",
    }
}

fn info(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("kube_pod_info", "1 for each pod, with its node and what made it."));
    let mut spans = Spans::default();
    for (_, pod) in lives.pods() {
        let mut labels = named(lives, pod);
        if let Some(own) = lives.workload_of(pod) {
            let maker = maker(own.kind);
            let name = if maker.is_empty() { String::new() } else { own.name.name.to_string() };
            labels.extend([("created_by_kind", maker.to_owned()), ("created_by_name", name)]);
        }
        // Bound to a node the pod is another series.
        let bound = earliest([pod.scheduled, pod.removed]);
        spans.add(labels.clone(), (pod.created, bound), 1.0);
        if let (Some(from), Some(node)) = (pod.scheduled, lives.node_of(pod)) {
            labels.push(("node", node.name.clone()));
            spans.add(labels, (from, pod.removed), 1.0);
        }
    }
    out.spans(spans, true)
}

/// The phases of a pod with the times when it was in them.
pub(super) fn phases_of(
    lives: &Lives<'_>,
    id: PodId,
    pod: &PodFacts,
) -> Vec<(&'static str, (SimTime, Option<SimTime>))> {
    let finished = lives.finished(id);
    let over = earliest([finished.map(|(at, _)| at), pod.removed]);
    let mut phases = vec![("Pending", (pod.created, earliest([pod.started, over])))];
    phases.extend(pod.started.map(|from| ("Running", (from, over))));
    phases.extend(finished.map(|(from, failed)| (if failed { "Failed" } else { "Succeeded" }, (from, pod.removed))));
    phases.retain(|(_, (from, until))| *until != Some(*from));
    phases
}

fn phases(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge(
        "kube_pod_status_phase",
        "1 for the phase that the pod is in, 0 for one that it has left.",
    ));
    let mut spans = Spans::default();
    for (id, pod) in lives.pods() {
        for (phase, life) in phases_of(lives, id, pod) {
            let mut labels = named(lives, pod);
            labels.push(("phase", phase.to_owned()));
            spans.add(labels, life, 1.0);
        }
    }
    out.spans(spans, true)
}

fn readiness(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("kube_pod_status_ready", "Whether the pod's condition Ready has this status."));
    let mut spans = Spans::default();
    for (id, pod) in lives.pods() {
        let until = lives.active_until(id, pod);
        let began = pod.ready.filter(|from| until.is_none_or(|until| *from < until));
        let ready = began.into_iter().flat_map(|from| [(Some(from), 1), (until, -1)]);
        let ready = Level::of(ready.filter_map(|(at, by)| Some((at?, by))).collect());
        for (condition, wanted) in [("true", 1), ("false", 0)] {
            let mut labels = named(lives, pod);
            labels.push(("condition", condition.to_owned()));
            let shown = |now| f64::from(u8::from(now == wanted));
            spans.follow(&labels, (pod.created, pod.removed), &ready, shown);
        }
    }
    out.spans(spans, true)
}

/// The record has what a pod requests as a whole: it stands under one container with the name of the workload.
fn requests(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let help = "What the pod requests, as if it had one container.";
    out.family(Family::gauge("kube_pod_container_resource_requests", help));
    let mut spans = Spans::default();
    for (_, pod) in lives.pods() {
        let container = value(lives.workload_of(pod).map(|own| own.name.name));
        for (resource, amount) in pod.requests.iter().filter(|(name, _)| *name != ResourceName::PODS) {
            let mut labels = named(lives, pod);
            labels.extend([("container", container.clone()), ("node", value_of_node(lives, pod))]);
            labels.extend(resource_labels(resource));
            let from = pod.scheduled.unwrap_or(pod.created);
            spans.add(labels, (from, pod.removed), amount as f64 / scale(resource));
        }
    }
    out.spans(spans, true)
}

fn value_of_node(lives: &Lives<'_>, pod: &PodFacts) -> String {
    lives.node_of(pod).map_or_else(String::new, |node| node.name.clone())
}
