//! The vpa suite: the Vertical Pod Autoscaler's recommender, updater and admission controller.

use std::path::{Path, PathBuf};

use nodecast_manifests::vertical_pod_autoscaler_from_json;
use nodecast_model::domain::vertical::{ContainerRecommendation, VerticalPodAutoscaler};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Quantity, ResourceName, Resources, SimDuration, Symbol};
use nodecast_vpa::{AdmittedContainer, Bounds, ContainerState, NamespaceLimits};
use serde_json::{Map, Value, json};

use crate::fields::{list, note_unread, same, text};
use crate::tally::{Tally, run_cases};
use crate::{vpa_pods, vpa_recommender};

/// Runs every case below `paths`.
pub fn run(paths: &[PathBuf], _catalogs: Option<&Path>) -> Result<Tally, String> {
    run_cases(paths, check)
}

fn check(case: &Value) -> Result<(), String> {
    note_unread("case", case, &["name", "what", "kind", "input", "expected"]);
    let (input, expected) = (&case["input"], &case["expected"]);
    match text(case, "kind")? {
        Some("recommender") => vpa_recommender::check(input, expected),
        Some("updater") => vpa_pods::check_updater(input, expected),
        Some("admission") => vpa_pods::check_admission(input, expected),
        other => Err(format!("unknown kind {other:?}")),
    }
}

/// An object of the namespace of all cases.
pub(crate) fn named(name: &str) -> ObjectName {
    ObjectName { namespace: Symbol::new("default"), name: Symbol::new(name) }
}

/// The VerticalPodAutoscaler of a case.
pub(crate) fn autoscaler(
    spec: &Value,
    annotations: &Value,
    recommendation: &Value,
) -> Result<VerticalPodAutoscaler, String> {
    let mut spec = spec.clone();
    spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"});
    let mut object = json!({"metadata": {"name": "vpa", "annotations": annotations}, "spec": spec});
    if !recommendation.is_null() {
        object["status"] = json!({"recommendation": recommendation});
    }
    vertical_pod_autoscaler_from_json(&object).map_err(|error| error.to_string())
}

/// The list of recommendations in `recommendation`, in the form of a status.
pub(crate) fn recommendation(value: &Value) -> Result<Option<Vec<ContainerRecommendation>>, String> {
    Ok(autoscaler(&json!({}), &Value::Null, value)?.recommendation)
}

/// A duration as the programs' flags have it.
pub(crate) fn duration(value: &Value, key: &str) -> Result<Option<SimDuration>, String> {
    let read = |text: &str| text.parse().map_err(|error| format!("{key}: {text} {error}"));
    text(value, key)?.map(read).transpose()
}

/// Amounts of resources as a manifest writes them.
pub(crate) fn quantities(value: &Value) -> Result<Resources, String> {
    let mut amounts = Resources::new();
    for (name, amount) in value.as_object().into_iter().flatten() {
        let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        let quantity: Quantity = text.parse().map_err(|error| format!("{name}: {text} {error}"))?;
        let name = ResourceName(Symbol::new(name));
        amounts.set(name, name.amount(quantity));
    }
    Ok(amounts)
}

/// Amounts of resources as answers write them.
pub(crate) fn amounts(of: &Resources) -> Value {
    let mut result = Map::new();
    for (key, name) in [("cpuMilli", ResourceName::CPU), ("memoryBytes", ResourceName::MEMORY)] {
        if let Some(amount) = of.find(name) {
            result.insert(key.to_owned(), json!(amount));
        }
    }
    Value::Object(result)
}

/// The containers of a pod as answers write them.
pub(crate) fn containers(of: &[AdmittedContainer]) -> Value {
    let one = |admitted_container: &AdmittedContainer| {
        (
            admitted_container.name.to_string(),
            json!({"requests": amounts(&admitted_container.requests), "limits": amounts(&admitted_container.limits)}),
        )
    };
    Value::Object(of.iter().map(one).collect())
}

/// What the LimitRanges of a case say.
pub(crate) fn namespace_limits(input: &Value) -> Result<NamespaceLimits, String> {
    let mut limits = NamespaceLimits::default();
    for range in list(input, "limitRanges")? {
        note_unread("limitRange", range, &["limits"]);
        for limit in list(range, "limits")? {
            note_unread("limit", limit, &["type", "min", "max", "default"]);
            let of = |key: &str| quantities(&limit[key]);
            let bounds = Bounds { min: of("min")?, max: of("max")?, default: of("default")? };
            match text(limit, "type")? {
                Some("Container") => limits.add_container(&bounds),
                Some("Pod") => limits.add_pod(&bounds),
                other => return Err(format!("unknown type of limit {other:?}")),
            }
        }
    }
    Ok(limits)
}

/// A container of a pod: its status counts where it states resources.
pub(crate) fn container(value: &Value) -> Result<ContainerState, String> {
    let known = ["name", "requests", "limits", "resizePolicy", "statusResources", "lastTermination"];
    note_unread("container", value, &known);
    let counts = if value["statusResources"].is_null() { value } else { &value["statusResources"] };
    Ok(ContainerState {
        name: Symbol::new(text(value, "name")?.unwrap_or_default()),
        requests: quantities(&counts["requests"])?,
        limits: quantities(&counts["limits"])?,
    })
}

/// Says where two answers differ.
pub(crate) fn same_answer(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    // Maps are equal whatever the order of their keys.
    same(what, found, expected).map_err(|_| format!("{what} is {found}, expected {expected}"))
}
