//! Levers of workloads and of what scales them.

use std::collections::BTreeMap;

use super::{AUTOSCALERS_MAX, BaselineFacts, Kind, Level, Lever, dearest};
use crate::domain::hpa::{HorizontalPodAutoscaler, MetricSource, MetricTarget};
use crate::domain::keda::ScaledObject;
use crate::domain::workload::{Deployment, ObjectName};
use crate::domain::{Labels, well_known};

/// Levers of autoscalers of the dearest workloads, of placeholders, and of workloads that shun Spot.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    let manifests = &known.policy.manifests;
    let of_hpa = |pod_autoscaler: &HorizontalPodAutoscaler| {
        format!("{}/{}", pod_autoscaler.namespace, pod_autoscaler.target.name)
    };
    let of_object = |scaled_object: &ScaledObject| format!("{}/{}", scaled_object.namespace, scaled_object.target.name);
    let targets: Vec<String> =
        manifests.autoscalers.iter().map(of_hpa).chain(manifests.scaled_objects.iter().map(of_object)).collect();
    let chosen = dearest(targets.iter().map(String::as_str), known.by_workload, AUTOSCALERS_MAX);
    for autoscaler in manifests.autoscalers.iter().filter(|autoscaler| chosen.contains(&of_hpa(autoscaler).as_str())) {
        all.extend(targets_of(autoscaler, known));
        all.extend([minimum(autoscaler), behavior(autoscaler)]);
    }
    for scaled_object in
        manifests.scaled_objects.iter().filter(|scaled_object| chosen.contains(&of_object(scaled_object).as_str()))
    {
        all.extend(least_replicas(scaled_object));
    }
    all.extend(manifests.deployments.iter().filter(|deployment| is_placeholder(deployment)).filter_map(headroom));
    all.extend(super::additions::placeholders(known));
    let deployments = manifests
        .deployments
        .iter()
        .map(|deployment| ("Deployment", deployment.name, &deployment.template.node_selector));
    let sets = manifests
        .stateful_sets
        .iter()
        .map(|stateful_set| ("StatefulSet", stateful_set.name, &stateful_set.template.node_selector));
    let pinned: Vec<_> = deployments.chain(sets).filter(|(_, _, item)| is_pinned(item)).collect();
    all.extend(unpinned(&pinned));
}

fn object(pod_autoscaler: &HorizontalPodAutoscaler) -> String {
    format!("HorizontalPodAutoscaler[{}/{}]", pod_autoscaler.namespace, pod_autoscaler.name)
}

fn lever(kind: Kind, pod_autoscaler: &HorizontalPodAutoscaler, today: impl Into<String>, levels: Vec<Level>) -> Lever {
    let subject = format!("HorizontalPodAutoscaler {}/{}", pod_autoscaler.namespace, pod_autoscaler.name);
    Lever { kind, subject, today: today.into(), levels }
}

/// What it aims at, where that is a share of a request.
fn targets_of(pod_autoscaler: &HorizontalPodAutoscaler, known: &BaselineFacts<'_>) -> Option<Lever> {
    let is_share = |(_, metric): &(usize, &crate::domain::hpa::MetricSpec)| {
        matches!(metric.source, MetricSource::Resource { .. } | MetricSource::ContainerResource { .. })
    };
    let (place, metric) = pod_autoscaler.metrics.iter().enumerate().find(is_share)?;
    let MetricTarget::Utilization(today) = metric.target else { return None };
    let field = if matches!(metric.source, MetricSource::Resource { .. }) { "resource" } else { "containerResource" };
    let newer = format!("{}.spec.metrics[{place}].{field}.target.averageUtilization", object(pod_autoscaler));
    let older = format!("{}.spec.targetCPUUtilizationPercentage", object(pod_autoscaler));
    let path = [newer, older].into_iter().find(|path| (known.can_set)(&vec![(path.clone(), today.to_string())]))?;
    let tried = [50, 60, 70, 80, 90].into_iter().filter(|share| *share != today);
    let levels =
        tried.map(|share: i32| Level::new(format!("aims at {share}%"), [(path.clone(), share.to_string().as_str())]));
    Some(lever(Kind::HpaTargets, pod_autoscaler, format!("aims at {today}%"), levels.collect()))
}

fn minimum(pod_autoscaler: &HorizontalPodAutoscaler) -> Lever {
    let today = pod_autoscaler.min_replicas.unwrap_or(1);
    let path = format!("{}.spec.minReplicas", object(pod_autoscaler));
    let levels = fewer(today)
        .map(|count| Level::new(format!("minReplicas {count}"), [(path.clone(), count.to_string().as_str())]));
    lever(Kind::HpaMinimum, pod_autoscaler, format!("minReplicas {today}"), levels.collect())
}

/// Half and a quarter of a number of replicas.
fn fewer(today: i32) -> impl Iterator<Item = i32> {
    let (half, quarter) = ((today + 1) / 2, (today + 3) / 4);
    [half, quarter]
        .into_iter()
        .enumerate()
        .filter(move |(place, count)| *count >= 1 && *count < today && (*place == 0 || quarter < half))
        .map(|(_, count)| count)
}

fn behavior(pod_autoscaler: &HorizontalPodAutoscaler) -> Lever {
    let stated = pod_autoscaler.behavior.as_ref().and_then(|behavior| behavior.scale_down.stabilization_window);
    let today = stated.map_or_else(|| "5m".to_owned(), |window| window.to_string());
    let path = format!("{}.spec.behavior.scaleDown.stabilizationWindowSeconds", object(pod_autoscaler));
    let tried = [("1m", "60"), ("5m", "300"), ("10m", "600")].into_iter().filter(|(shown, _)| *shown != today);
    let levels = tried
        .map(|(shown, seconds)| Level::new(format!("scales down after {shown}"), [(path.clone(), seconds)]))
        .collect();
    lever(Kind::HpaBehavior, pod_autoscaler, format!("scales down after {today}"), levels)
}

/// The least number of replicas of a ScaledObject.
fn least_replicas(scaled_object: &ScaledObject) -> Option<Lever> {
    let today = scaled_object.min_replica_count.unwrap_or(0);
    let path = format!("ScaledObject[{}/{}].spec.minReplicaCount", scaled_object.namespace, scaled_object.name);
    let levels: Vec<Level> =
        fewer(today).map(|count| Level::new(count.to_string(), [(path.clone(), count.to_string().as_str())])).collect();
    let subject = format!("ScaledObject {}/{}", scaled_object.namespace, scaled_object.name);
    (!levels.is_empty()).then(|| Lever { kind: Kind::HpaMinimum, subject, today: today.to_string(), levels })
}

/// Whether its pods only keep a place for others: anything may take it from them.
fn is_placeholder(deployment: &Deployment) -> bool {
    deployment.template.priority < 0
}

fn headroom(deployment: &Deployment) -> Option<Lever> {
    let today = deployment.replicas.unwrap_or(1);
    let path = format!("Deployment[{}].spec.replicas", deployment.name);
    let tried = [0, today / 2, today * 2].into_iter().filter(|count| *count != today);
    let counts: std::collections::BTreeSet<u32> = tried.collect();
    let levels: Vec<Level> = counts
        .into_iter()
        .map(|count| Level::new(count.to_string(), [(path.clone(), count.to_string().as_str())]))
        .collect();
    let subject = format!("Deployment {}", deployment.name);
    (!levels.is_empty()).then(|| Lever { kind: Kind::Headroom, subject, today: today.to_string(), levels })
}

fn is_pinned(selector: &Labels) -> bool {
    selector.get(well_known::CAPACITY_TYPE).is_some_and(|value| value.as_str() == "on-demand")
}

/// Takes the On-Demand pin off all Deployments that have one.
fn unpinned(pinned: &[(&'static str, ObjectName, &Labels)]) -> Option<Lever> {
    let deployments: Vec<_> = pinned.iter().filter(|(kind, _, _)| *kind == "Deployment").collect();
    let first = deployments.first()?;
    let set = |(kind, name, selector): &&(&'static str, ObjectName, &Labels)| {
        let rest: BTreeMap<&str, &str> = selector
            .iter()
            .filter(|(key, _)| *key != well_known::CAPACITY_TYPE)
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let rest = serde_json::json!(rest).to_string();
        (format!("{kind}[{name}].spec.template.spec.nodeSelector"), rest)
    };
    let level = Level {
        label: "wherever the NodePool lets them".to_owned(),
        sets: deployments.iter().map(set).collect(),
        requirements: Vec::new(),
    };
    let subject = match deployments.len() {
        1 => format!("Deployment {}", first.1),
        count => format!("{count} Deployments"),
    };
    Some(Lever { kind: Kind::Spot, subject, today: "On-Demand, by node selector".to_owned(), levels: vec![level] })
}
