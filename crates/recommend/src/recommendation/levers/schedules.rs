//! Levers of schedules: fewer replicas, or none, at hours of the day whose load is known to be low.
//!
//! A Deployment gets a ScaledObject of KEDA with a cron trigger, and a ScaledObject that exists gets one more trigger. StatefulSets and
//! Deployments without a stated load keep their replicas.

mod quiet;

use serde_json::{Value, json};

use super::{AUTOSCALERS_MAX, BaselineFacts, Kind, Level, Lever, dearest};
use crate::domain::hpa::{HorizontalPodAutoscaler, MetricSource, MetricTarget};
use crate::domain::keda::ScaledObject;
use crate::domain::workload::{Deployment, ObjectName};
use quiet::{Window, profile, windows};

/// Levers of ScaledObjects that need no replica while no trigger is active, and of Deployments with quiet hours.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    let manifests = &known.policy.manifests;
    all.extend(manifests.scaled_objects.iter().filter_map(to_zero));
    let deployments: Vec<&Deployment> =
        manifests.deployments.iter().filter(|deployment| deployment.template.priority >= 0).collect();
    let names: Vec<String> = deployments.iter().map(|deployment| deployment.name.to_string()).collect();
    let chosen = dearest(names.iter().map(String::as_str), known.by_workload, AUTOSCALERS_MAX);
    let chosen = deployments.into_iter().filter(|deployment| chosen.contains(&deployment.name.to_string().as_str()));
    all.extend(chosen.filter_map(|deployment| schedule(known, deployment)));
}

fn path(object: &ScaledObject) -> String {
    format!("ScaledObject[{}/{}].spec", object.namespace, object.name)
}

/// No replica while no trigger is active. CPU and memory triggers cannot wake a workload that has none.
fn to_zero(object: &ScaledObject) -> Option<Lever> {
    let least = object.min_replica_count.unwrap_or(0);
    let wakes = object.triggers.iter().any(|trigger| !trigger.source.is_resource());
    if least == 0 || !wakes || object.idle_replica_count == Some(0) {
        return None;
    }
    let path = path(object);
    let levels = vec![
        Level::new("minReplicaCount 0", [(format!("{path}.minReplicaCount"), "0")]),
        Level::new("idleReplicaCount 0", [(format!("{path}.idleReplicaCount"), "0")]),
    ];
    let subject = format!("ScaledObject {}/{}", object.namespace, object.name);
    Some(Lever { kind: Kind::Schedules, subject, today: format!("minReplicaCount {least}"), levels })
}

/// Today's scaling of a Deployment.
enum Scaling<'s> {
    Fixed(u32),
    Keda(&'s ScaledObject),
    Hpa(&'s HorizontalPodAutoscaler),
}

impl Scaling<'_> {
    /// The replicas that it never goes below.
    fn least(&self) -> u32 {
        let least = match self {
            Self::Fixed(replicas) => return *replicas,
            Self::Keda(object) => object.min_replica_count.unwrap_or(0),
            Self::Hpa(hpa) => hpa.min_replicas.unwrap_or(1),
        };
        least.max(0).unsigned_abs()
    }
}

/// Fewer replicas of a Deployment at its quiet hours.
fn schedule(known: &BaselineFacts<'_>, deployment: &Deployment) -> Option<Lever> {
    let manifests = &known.policy.manifests;
    let name = deployment.name;
    let is_own = |namespace, target: &crate::domain::hpa::ScaleTargetRef| {
        namespace == name.namespace && target.name == name.name && target.kind.as_str() == "Deployment"
    };
    let object = manifests.scaled_objects.iter().find(|object| is_own(object.namespace, &object.target));
    let hpa = manifests.autoscalers.iter().find(|hpa| is_own(hpa.namespace, &hpa.target));
    let scaling = match (object, hpa) {
        (Some(object), _) => Scaling::Keda(object),
        (None, Some(hpa)) => Scaling::Hpa(hpa),
        (None, None) => Scaling::Fixed(deployment.replicas.unwrap_or(1)),
    };
    let day = scaling.least();
    let profile = profile(known.scenario, name).filter(|_| day > 0)?;
    let of_window = |window: Window| {
        let night = window.replicas(day);
        let sets = (night < day).then(|| sets(name, &scaling, &window, night))??;
        let label =
            format!("{night} from {} UTC, {day} from {} UTC", window.shown(window.from), window.shown(window.until));
        Some(Level { label: label + window.days_shown(), sets, requirements: Vec::new() })
    };
    let levels: Vec<Level> = windows(&profile).into_iter().filter_map(of_window).collect();
    let subject = format!("replicas of Deployment {name}");
    let today = format!("at least {day} at all hours");
    (!levels.is_empty()).then_some(Lever { kind: Kind::Schedules, subject, today, levels })
}

/// The values that give a Deployment `night` replicas at quiet hours; `None` where its autoscaler cannot be replaced.
fn sets(name: ObjectName, scaling: &Scaling<'_>, window: &Window, night: u32) -> Option<Vec<(String, String)>> {
    let (start, end) = window.cron();
    let day = scaling.least().to_string();
    let cron = json!({
        "type": "cron",
        "metadata": {"timezone": "Etc/UTC", "start": start, "end": end, "desiredReplicas": day},
    });
    let mut spec =
        json!({"scaleTargetRef": {"kind": "Deployment", "name": name.name.as_str()}, "minReplicaCount": night});
    let mut metadata = json!({});
    match scaling {
        Scaling::Keda(object) => {
            let path = path(object);
            let least = (format!("{path}.minReplicaCount"), night.to_string());
            return Some(vec![least, (format!("{path}.triggers[+]"), cron.to_string())]);
        }
        Scaling::Fixed(replicas) => {
            spec["maxReplicaCount"] = json!(replicas);
            spec["triggers"] = json!([cron]);
        }
        // The ScaledObject takes the autoscaler over, by its name.
        Scaling::Hpa(hpa) => {
            let mut triggers = hpa.metrics.iter().map(trigger).collect::<Option<Vec<Value>>>()?;
            triggers.push(cron);
            spec["maxReplicaCount"] = json!(hpa.max_replicas);
            spec["triggers"] = json!(triggers);
            spec["advanced"] = json!({"horizontalPodAutoscalerConfig": {"name": hpa.name.as_str()}});
            metadata["annotations"] = json!({"scaledobject.keda.sh/transfer-hpa-ownership": "true"});
        }
    }
    let object = json!({"apiVersion": "keda.sh/v1alpha1", "metadata": metadata, "spec": spec});
    Some(vec![(format!("ScaledObject[{name}]"), object.to_string())])
}

/// A metric of an autoscaler as a trigger of KEDA; `None` if KEDA has no such trigger.
fn trigger(metric: &crate::domain::hpa::MetricSpec) -> Option<Value> {
    let MetricSource::Resource { name } = &metric.source else { return None };
    let MetricTarget::Utilization(share) = metric.target else { return None };
    Some(json!({"type": name.to_string(), "metricType": "Utilization", "metadata": {"value": share.to_string()}}))
}
