//! Deployments, StatefulSets, DaemonSets and HorizontalPodAutoscalers as kube-state-metrics shows them.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/workload`.

use std::collections::BTreeMap;
use std::io;

use super::exposition::{Changes, Exposition, Family, Labels, Level};
use super::lives::Lives;
use crate::domain::{SimTime, WorkloadId};
use nodecast_world::record::{MetricUnit, WorkloadKind};

/// Series of each workload, for the size of the text.
pub(super) const SERIES: u64 = 6;

/// Families of one kind of workload: replicas wanted, there, Ready, and what else follows from the latter two.
struct Names {
    kind: WorkloadKind,
    key: &'static str,
    wanted: Option<&'static str>,
    there: &'static str,
    ready: &'static [&'static str],
    missing: Option<&'static str>,
}

const KINDS: [Names; 3] = [
    Names {
        kind: WorkloadKind::Deployment,
        key: "deployment",
        wanted: Some("kube_deployment_spec_replicas"),
        there: "kube_deployment_status_replicas",
        ready: &["kube_deployment_status_replicas_ready", "kube_deployment_status_replicas_available"],
        missing: Some("kube_deployment_status_replicas_unavailable"),
    },
    Names {
        kind: WorkloadKind::StatefulSet,
        key: "statefulset",
        wanted: Some("kube_statefulset_replicas"),
        there: "kube_statefulset_status_replicas",
        ready: &["kube_statefulset_status_replicas_ready"],
        missing: None,
    },
    Names {
        kind: WorkloadKind::DaemonSet,
        key: "daemonset",
        wanted: None,
        there: "kube_daemonset_status_desired_number_scheduled",
        ready: &["kube_daemonset_status_number_ready"],
        missing: Some("kube_daemonset_status_number_unavailable"),
    },
];

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    for names in &KINDS {
        of_kind(out, lives, names)?;
    }
    autoscalers(out, lives)?;
    targets(out, lives)
}

fn of_kind(out: &mut Exposition<'_>, lives: &Lives<'_>, names: &Names) -> io::Result<()> {
    if let Some(wanted) = names.wanted {
        out.family(Family::gauge(wanted, "Replicas wanted."));
        for workload in workloads_of_kind(lives, names.kind) {
            if let Some((from, wanted)) = wanted_replicas(lives, workload) {
                let labels = lives.workload_labels(workload, names.key);
                out.series(&labels, from, |at| Some(wanted.at(at) as f64))?;
            }
        }
    }
    let (mut there, mut ready, mut missing) = (Changes::default(), Changes::default(), Changes::default());
    for (id, ref pod) in lives.pods() {
        if lives.workload_of(pod).is_none_or(|workload| workload.kind != names.kind) {
            continue;
        }
        let labels = || lives.workload_labels(pod.workload, names.key);
        let until = lives.active_until(id, pod);
        there.between(labels(), pod.created, until, 1);
        missing.between(labels(), pod.created, until, 1);
        ready.between(labels(), pod.created, until, 0);
        if let Some(from) = pod.ready {
            ready.between(labels(), from, until, 1);
            missing.between(labels(), from, until, -1);
        }
    }
    out.family(Family::gauge(names.there, "Pods that are there and not on their way out."));
    out.changes(there, 1.0)?;
    for name in names.ready {
        out.family(Family::gauge(name, "Pods that are Ready."));
        out.changes(ready.clone(), 1.0)?;
    }
    if let Some(name) = names.missing {
        out.family(Family::gauge(name, "Pods that are not Ready."));
        out.changes(missing, 1.0)?;
    }
    Ok(())
}

/// The workloads of a kind.
fn workloads_of_kind(lives: &Lives<'_>, kind: WorkloadKind) -> Vec<WorkloadId> {
    let facts = lives.outcome.record.workloads.iter().enumerate();
    facts.filter(|(_, item)| item.kind == kind).map(|(index, _)| WorkloadId::from_index(index)).collect()
}

/// The replicas that a workload is to have, and since when it is known.
fn wanted_replicas(lives: &Lives<'_>, workload: WorkloadId) -> Option<(SimTime, Level)> {
    let record = &lives.outcome.record;
    let changes: Vec<_> = record.replica_changes.iter().filter(|change| change.workload == workload).collect();
    let sampled = record.samples.iter().find_map(|sample| {
        let workload = sample.workloads.iter().find(|this_workload| this_workload.workload == workload)?;
        Some((sample.at, workload.replicas_desired))
    });
    let first = changes.first().map(|change| (change.at, change.from));
    let (mut from, mut replicas) = sampled.into_iter().chain(first).min()?;
    if let Some(created) = record.pods.iter().find(|pod| pod.workload == workload).map(|pod| pod.created) {
        from = from.min(created);
    }
    if let Some((_, before)) = first {
        replicas = before;
    }
    let mut level = vec![(from, i64::from(replicas))];
    level.extend(changes.iter().map(|change| (change.at, i64::from(change.to) - i64::from(change.from))));
    Some((from, Level::from_changes(level)))
}

fn autoscalers(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let make = || lives.outcome.objects.replica_autoscalers.iter();
    let labels = |name: crate::domain::workload::ObjectName| -> Labels {
        vec![("namespace", name.namespace.to_string()), ("horizontalpodautoscaler", name.name.to_string())]
    };
    out.family(Family::gauge("kube_horizontalpodautoscaler_info", "1 for each autoscaler, with what it scales."));
    for scaler in make() {
        let Some(target) = lives.outcome.record.workloads.get(scaler.workload.index()) else { continue };
        let mut labels = labels(scaler.name);
        labels.extend([
            ("scaletargetref_api_version", "apps/v1".to_owned()),
            ("scaletargetref_kind", target.kind.as_str().to_owned()),
            ("scaletargetref_name", target.name.name.to_string()),
        ]);
        out.series(&labels, SimTime::ZERO, |_| Some(1.0))?;
    }
    out.family(Family::gauge("kube_horizontalpodautoscaler_spec_min_replicas", "Least replicas."));
    for scaler in make() {
        out.series(&labels(scaler.name), SimTime::ZERO, |_| Some(f64::from(scaler.min_replicas)))?;
    }
    out.family(Family::gauge("kube_horizontalpodautoscaler_spec_max_replicas", "Most replicas."));
    for scaler in make() {
        out.series(&labels(scaler.name), SimTime::ZERO, |_| Some(f64::from(scaler.max_replicas)))?;
    }
    out.family(Family::gauge("kube_horizontalpodautoscaler_status_desired_replicas", "Replicas that it wants."));
    for scaler in make() {
        if let Some((from, wanted)) = wanted_replicas(lives, scaler.workload) {
            out.series(&labels(scaler.name), from, |at| Some(wanted.at(at) as f64))?;
        }
    }
    out.family(Family::gauge("kube_horizontalpodautoscaler_status_current_replicas", "Replicas that it counts."));
    for scaler in make() {
        let mut there = Changes::default();
        for (id, ref pod) in lives.pods().filter(|(_, pod)| pod.workload == scaler.workload) {
            there.between(labels(scaler.name), pod.created, lives.active_until(id, pod), 1);
        }
        out.changes(there, 1.0)?;
    }
    Ok(())
}

/// What each autoscaler holds its metrics against, and what it last read.
fn targets(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let record = &lives.outcome.record;
    let labels = |index: usize| -> Labels {
        let Some(facts) = record.metrics.get(index) else { return Vec::new() };
        let kind = match facts.unit {
            MetricUnit::PercentOfRequest => "utilization",
            MetricUnit::PerPod => "average",
            MetricUnit::Total => "value",
        };
        vec![
            ("namespace", facts.autoscaler.namespace.to_string()),
            ("horizontalpodautoscaler", facts.autoscaler.name.to_string()),
            ("metric_name", facts.name.clone()),
            ("metric_target_type", kind.to_owned()),
        ]
    };
    // An autoscaler that was applied anew has its metrics in the record twice.
    let mut series: BTreeMap<Labels, Vec<usize>> = BTreeMap::new();
    for index in 0..record.metrics.len() {
        series.entry(labels(index)).or_default().push(index);
    }
    out.family(Family::gauge("kube_horizontalpodautoscaler_spec_target_metric", "What the metric is held against."));
    for (labels, indices) in &series {
        let target = indices.first().and_then(|index| record.metrics.get(*index)).map(|facts| facts.target);
        out.series(labels, SimTime::ZERO, |_| target)?;
    }
    out.family(Family::gauge("kube_horizontalpodautoscaler_status_target_metric", "What was last read of the metric."));
    for (labels, indices) in &series {
        out.series(labels, SimTime::ZERO, |at| {
            lives.sample(at)?.metrics.iter().find(|metric| indices.contains(&(metric.metric as usize)))?.value
        })?;
    }
    Ok(())
}
