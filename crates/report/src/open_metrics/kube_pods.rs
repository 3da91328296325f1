//! Pods as kube-state-metrics shows them.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/workload/pod-metrics.md`.

use std::io;

use super::exposition::{Exposition, Family, Labels, Level, Spans};
use super::kube_nodes::resource_labels;
use super::lives::{Lives, earliest, scale, value};
use super::owners::{Owners, owner_labels};
use crate::domain::{PodId, ResourceName, SimDuration, SimTime};
use nodecast_world::record::{EventKind, PodFacts};

/// Series of each pod at one time, for the size of the text.
pub(super) const SERIES: u64 = 14;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>, owners: &Owners) -> io::Result<()> {
    info(out, lives, owners)?;
    owner(out, lives, owners)?;
    phases(out, lives)?;
    unschedulable(out, lives)?;
    readiness(out, lives)?;
    times(out, lives)?;
    requests(out, lives)
}

/// Namespace and name of a pod.
pub(super) fn named(lives: &Lives<'_>, pod: &PodFacts) -> Labels {
    vec![
        ("namespace", value(lives.workload_of(pod).map(|workload| workload.name.namespace))),
        ("pod", pod.name.clone()),
    ]
}

/// A pod without a node has no series yet: a name with two sets of labels at one time could be joined with nothing.
fn info(out: &mut Exposition<'_>, lives: &Lives<'_>, owners: &Owners) -> io::Result<()> {
    out.family(Family::gauge("kube_pod_info", "1 for each pod that has a node, with what made it."));
    let mut spans = Spans::default();
    for (id, ref pod) in lives.pods() {
        let (Some(from), Some(node)) = (pod.scheduled, lives.node_of(pod)) else { continue };
        let mut labels = named(lives, pod);
        let (kind, name) = owners.owner(lives, pod);
        labels.extend([("created_by_kind", kind), ("created_by_name", name), ("node", node.name.clone())]);
        spans.add(labels, (from, lives.gone(id, pod)), 1.0);
    }
    out.spans(spans, true)
}

fn owner(out: &mut Exposition<'_>, lives: &Lives<'_>, owners: &Owners) -> io::Result<()> {
    out.family(Family::gauge("kube_pod_owner", "1 for each pod, with the object that made it."));
    let mut spans = Spans::default();
    for (id, ref pod) in lives.pods() {
        let mut labels = named(lives, pod);
        labels.extend(owner_labels(owners.owner(lives, pod)));
        spans.add(labels, (pod.created, lives.gone(id, pod)), 1.0);
    }
    out.spans(spans, true)
}

fn unschedulable(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("kube_pod_status_unschedulable", "1 while the scheduler has found no node for the pod."));
    let mut spans = Spans::default();
    for (id, ref pod) in lives.pods() {
        if let Some(from) = pod.unschedulable {
            spans.add(named(lives, pod), (from, earliest([pod.scheduled, lives.gone(id, pod)])), 1.0);
        }
    }
    out.spans(spans, true)
}

/// When something happened to pods, in Unix time: each as long as it says something of the pod.
fn times(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    type Of = fn(&Lives<'_>, PodId, &PodFacts) -> Vec<(SimTime, Option<SimTime>)>;
    let families: [(&'static str, &'static str, Of); 6] = [
        ("kube_pod_created", "When the pod was created, in Unix time.", |lives, id, pod| {
            vec![(pod.created, lives.gone(id, pod))]
        }),
        ("kube_pod_status_scheduled_time", "When the pod was bound to a node, in Unix time.", |lives, id, pod| {
            pod.scheduled.map(|from| (from, lives.gone(id, pod))).into_iter().collect()
        }),
        ("kube_pod_start_time", "When the kubelet took up the pod, in Unix time.", |lives, id, pod| {
            pod.scheduled.map(|from| (from, lives.gone(id, pod))).into_iter().collect()
        }),
        ("kube_pod_container_state_started", "Since when the containers run, in Unix time.", |lives, id, pod| {
            lives.since(id, (pod.started, EventKind::PodStarted), lives.room_until(id, pod))
        }),
        ("kube_pod_status_ready_time", "Since when the pod is Ready, in Unix time.", |lives, id, pod| {
            lives.since(id, (pod.ready, EventKind::PodReady), lives.active_until(id, pod))
        }),
        ("kube_pod_completion_time", "When the containers had ended, in Unix time.", |lives, id, pod| {
            lives.finished(id).map(|(from, _)| (from, lives.gone(id, pod))).into_iter().collect()
        }),
    ];
    for (name, help, of) in families {
        out.family(Family::gauge(name, help));
        let mut spans = Spans::default();
        for (id, ref pod) in lives.pods() {
            let mut labels = named(lives, pod);
            if name == "kube_pod_container_state_started" {
                labels.push(("container", container(lives, pod)));
            }
            for life in of(lives, id, pod) {
                spans.add(labels.clone(), life, out.unix_seconds(life.0) as f64);
            }
        }
        out.spans(spans, false)?;
    }
    deletions(out, lives)
}

/// The API server writes when the grace period ends.
fn deletions(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let help = "When a pod that is being deleted is to be gone, in Unix time.";
    out.family(Family::gauge("kube_pod_deletion_timestamp", help));
    let mut spans = Spans::default();
    for (_, ref pod) in lives.pods() {
        if let Some(from) = pod.deletion_requested {
            let over = from + pod.grace.unwrap_or(SimDuration::ZERO);
            spans.add(named(lives, pod), (from, pod.removed), out.unix_seconds(over) as f64);
        }
    }
    out.spans(spans, false)
}

/// The one container of a pod, named like its workload.
pub(super) fn container(lives: &Lives<'_>, pod: &PodFacts) -> String {
    value(lives.workload_of(pod).map(|workload| workload.name.name))
}

/// The phases of a pod with the times when it was in them.
pub(super) fn phases_of(
    lives: &Lives<'_>,
    id: PodId,
    pod: &PodFacts,
) -> Vec<(&'static str, (SimTime, Option<SimTime>))> {
    let finished = lives.finished(id);
    let over = lives.room_until(id, pod);
    let mut phases = vec![("Pending", (pod.created, earliest([pod.started, over])))];
    phases.extend(pod.started.map(|from| ("Running", (from, over))));
    phases.extend(
        finished.map(|(from, failed)| (if failed { "Failed" } else { "Succeeded" }, (from, lives.gone(id, pod)))),
    );
    phases.retain(|(_, (from, until))| *until != Some(*from));
    phases
}

fn phases(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge(
        "kube_pod_status_phase",
        "1 for the phase that the pod is in, 0 for one that it has left.",
    ));
    let mut spans = Spans::default();
    for (id, ref pod) in lives.pods() {
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
    for (id, ref pod) in lives.pods() {
        let until = lives.active_until(id, pod);
        let began = pod.ready.filter(|from| until.is_none_or(|until| *from < until));
        let ready = began.into_iter().flat_map(|from| [(Some(from), 1), (until, -1)]);
        let ready = Level::from_changes(ready.filter_map(|(at, by)| Some((at?, by))).collect());
        for (condition, wanted) in [("true", 1), ("false", 0)] {
            let mut labels = named(lives, pod);
            labels.push(("condition", condition.to_owned()));
            let shown = |now| f64::from(u8::from(now == wanted));
            spans.follow(&labels, (pod.created, lives.gone(id, pod)), &ready, shown);
        }
    }
    out.spans(spans, true)
}

/// The record has what a pod requests as a whole: it stands under one container with the name of the workload.
fn requests(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let help = "What the pod requests, as if it had one container.";
    out.family(Family::gauge("kube_pod_container_resource_requests", help));
    let mut spans = Spans::default();
    for (id, ref pod) in lives.pods() {
        let container = container(lives, pod);
        let (from, gone) = (pod.scheduled.unwrap_or(pod.created), lives.gone(id, pod));
        for (from, until, requests) in pod.requests_between(from, gone.unwrap_or(SimTime::FAR_FUTURE)) {
            let until = Some(until).filter(|until| *until < SimTime::FAR_FUTURE);
            for (resource, amount) in requests.iter().filter(|(name, _)| *name != ResourceName::PODS) {
                let mut labels = named(lives, pod);
                labels.extend([("container", container.clone()), ("node", value_of_node(lives, pod))]);
                labels.extend(resource_labels(resource));
                spans.add(labels, (from, until), amount as f64 / scale(resource));
            }
        }
    }
    out.spans(spans, true)
}

fn value_of_node(lives: &Lives<'_>, pod: &PodFacts) -> String {
    lives.node_of(pod).map_or_else(String::new, |node| node.name.clone())
}
