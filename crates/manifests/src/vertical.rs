//! VerticalPodAutoscalers: `autoscaling.k8s.io/v1` and `v1beta2`, with what their status recommends.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/apis/autoscaling.k8s.io/v1/types.go`, `deploy/vpa-v1-crd-gen.yaml`.

use super::common::{Metadata, metadata_and_life, resources, symbols};
use super::hpa::{int32, target_ref};
use super::rollout::scaled_kind;
use nodecast_model::domain::hpa::ScaleTargetRef;
use nodecast_model::domain::vertical::{
    ChangeRequirement, ContainerPolicy, ContainerRecommendation, EvictionRequirement, UpdateMode, UpdatePolicy,
    VerticalPodAutoscaler,
};
use nodecast_model::domain::{ResourceName, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static OBJECT: Shape = Shape {
    name: "a VerticalPodAutoscaler",
    keys: &["apiVersion", "kind", "metadata", "spec", "status"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static SPEC: Shape = Shape {
    name: "a VerticalPodAutoscaler's spec",
    keys: &["targetRef", "updatePolicy", "resourcePolicy", "recommenders"],
    without_effect: &[],
    unsupported: &[("startupBoost", "new pods get no more CPU for their start")],
    strict: false,
};
static UPDATE_POLICY: Shape = Shape {
    name: "`updatePolicy`",
    keys: &["updateMode", "minReplicas", "evictionRequirements", "evictAfterOOMSeconds"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static REQUIREMENT: Shape = Shape {
    name: "an eviction requirement",
    keys: &["resources", "changeRequirement"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static RESOURCE_POLICY: Shape = Shape {
    name: "`resourcePolicy`",
    keys: &["containerPolicies"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static CONTAINER_POLICY: Shape = Shape {
    name: "a container policy",
    keys: &[
        "containerName",
        "mode",
        "minAllowed",
        "maxAllowed",
        "controlledResources",
        "controlledValues",
        "oomBumpUpRatio",
        "oomMinBumpUp",
    ],
    without_effect: &[],
    unsupported: &[("startupBoost", "new pods get no more CPU for their start")],
    strict: false,
};
static RECOMMENDER: Shape =
    Shape { name: "a recommender", keys: &["name"], without_effect: &[], unsupported: &[], strict: false };
static STATUS: Shape = Shape {
    name: "a VerticalPodAutoscaler's status",
    keys: &["recommendation"],
    without_effect: &["conditions"],
    unsupported: &[],
    strict: false,
};
static RECOMMENDATION: Shape = Shape {
    name: "`recommendation`",
    keys: &["containerRecommendations"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static OF_CONTAINER: Shape = Shape {
    name: "the recommendation of a container",
    keys: &["containerName", "target", "lowerBound", "upperBound", "uncappedTarget"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

const MODES: &[(&str, UpdateMode)] = &[
    ("Off", UpdateMode::Off),
    ("Initial", UpdateMode::Initial),
    ("Recreate", UpdateMode::Recreate),
    ("Auto", UpdateMode::Auto),
    ("InPlaceOrRecreate", UpdateMode::InPlaceOrRecreate),
    ("InPlace", UpdateMode::InPlace),
];

/// A VerticalPodAutoscaler object.
pub(super) fn vertical_pod_autoscaler<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
) -> Result<VerticalPodAutoscaler, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    if let Some(version) = fields.get("apiVersion") {
        refuse_older(reader, version)?;
    }
    let (Metadata { name, annotations, .. }, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let target = target_ref(reader, spec.required(reader, "targetRef")?)?;
    let target = ScaleTargetRef { kind: scaled_kind(target.kind), ..target };
    Ok(VerticalPodAutoscaler {
        created: life.created,
        annotations,
        update: spec.get("updatePolicy").map(|n| update_policy(reader, n)).transpose()?.unwrap_or_default(),
        containers: spec.get("resourcePolicy").map(|n| container_policies(reader, n)).transpose()?.unwrap_or_default(),
        recommenders: recommenders(reader, spec)?,
        recommendation: match fields.get("status") {
            Some(status) => recommendation(reader, status)?,
            None => None,
        },
        ..VerticalPodAutoscaler::new(name, target)
    })
}

/// `v1beta1` selects pods by labels and has no target.
fn refuse_older(reader: &Reader<'_>, version: &Node<'_>) -> Result<(), InputError> {
    if !version.as_text().is_some_and(|text| text.ends_with("/v1beta1")) {
        return Ok(());
    }
    Err(reader
        .error(version.at, "VerticalPodAutoscalers of `autoscaling.k8s.io/v1beta1` are not read")
        .because("selects pods by labels, as no release since 1.0 does")
        .help("write it as `autoscaling.k8s.io/v1`, with a `targetRef`"))
}

fn update_policy<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<UpdatePolicy, InputError> {
    const CHANGES: &[(&str, ChangeRequirement)] = &[
        ("TargetHigherThanRequests", ChangeRequirement::TargetHigherThanRequests),
        ("TargetLowerThanRequests", ChangeRequirement::TargetLowerThanRequests),
    ];
    let fields = reader.fields(node, &UPDATE_POLICY)?;
    let mut eviction_requirements = Vec::new();
    for node in fields.optional("evictionRequirements", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &REQUIREMENT)?;
        let change = fields.required(reader, "changeRequirement")?;
        let change = reader.choice(change, "changeRequirement", CHANGES)?;
        let resources = symbols(reader, fields, "resources")?.into_iter().map(ResourceName).collect();
        eviction_requirements.push(EvictionRequirement { resources, change });
    }
    Ok(UpdatePolicy {
        mode: fields.optional("updateMode", |n, what| reader.choice(n, what, MODES))?,
        min_replicas: fields.optional("minReplicas", |n, what| int32(reader, n, what, 1))?,
        eviction_requirements,
        evict_after_oom: fields
            .optional("evictAfterOOMSeconds", |n, what| int32(reader, n, what, 1))?
            .map(|seconds| SimDuration::from_secs(i64::from(seconds))),
    })
}

fn container_policies<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Vec<ContainerPolicy>, InputError> {
    const MODES: &[(&str, bool)] = &[("Auto", false), ("Off", true)];
    const VALUES: &[(&str, bool)] = &[("RequestsAndLimits", false), ("RequestsOnly", true)];
    let fields = reader.fields(node, &RESOURCE_POLICY)?;
    let mut policies = Vec::new();
    for node in fields.optional("containerPolicies", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &CONTAINER_POLICY)?;
        let container = fields.optional("containerName", |n, what| reader.symbol(n, what))?;
        let mut policy =
            ContainerPolicy::for_container(container.unwrap_or_else(|| Symbol::new(ContainerPolicy::ALL_OTHERS)));
        policy.off = fields.optional("mode", |n, what| reader.choice(n, what, MODES))?.unwrap_or(false);
        policy.min_allowed = resources(reader, fields, "minAllowed")?;
        policy.max_allowed = resources(reader, fields, "maxAllowed")?;
        if fields.get("controlledResources").is_some() {
            let controlled = symbols(reader, fields, "controlledResources")?;
            policy.controlled_resources = Some(controlled.into_iter().map(ResourceName).collect());
        }
        let values = fields.optional("controlledValues", |n, what| reader.choice(n, what, VALUES))?;
        policy.requests_only = values.unwrap_or(false);
        policy.oom_bump_up_ratio = fields.optional("oomBumpUpRatio", |n, what| reader.quantity(n, what))?;
        policy.oom_min_bump_up = fields.optional("oomMinBumpUp", |n, what| reader.quantity(n, what))?;
        policies.push(policy);
    }
    Ok(policies)
}

fn recommenders<'s>(reader: &mut Reader<'s>, spec: Fields<'_, 's>) -> Result<Vec<Symbol>, InputError> {
    let mut names = Vec::new();
    for node in spec.optional("recommenders", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &RECOMMENDER)?;
        names.push(reader.symbol(fields.required(reader, "name")?, "name")?);
    }
    Ok(names)
}

fn recommendation<'s>(
    reader: &mut Reader<'s>,
    status: &Node<'s>,
) -> Result<Option<Vec<ContainerRecommendation>>, InputError> {
    let fields = reader.fields(status, &STATUS)?;
    let Some(node) = fields.get("recommendation") else { return Ok(None) };
    let fields = reader.fields(node, &RECOMMENDATION)?;
    let mut recommended = Vec::new();
    for node in fields.optional("containerRecommendations", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &OF_CONTAINER)?;
        let container = reader.symbol(fields.required(reader, "containerName")?, "containerName")?;
        recommended.push(ContainerRecommendation {
            container,
            target: resources(reader, fields, "target")?,
            lower_bound: resources(reader, fields, "lowerBound")?,
            upper_bound: resources(reader, fields, "upperBound")?,
            uncapped_target: resources(reader, fields, "uncappedTarget")?,
        });
    }
    Ok(Some(recommended))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::vertical_pod_autoscaler_from_json;
    use nodecast_model::domain::vertical::{ChangeRequirement, UpdateMode};
    use nodecast_model::domain::{ResourceName, Resources, Symbol};

    #[test]
    fn vpa_reads_policies_and_recommendation() {
        let vpa = vertical_pod_autoscaler_from_json(&json!({
            "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-03-01T12:00:00Z"},
            "spec": {
                "targetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"},
                "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1, "evictAfterOOMSeconds": 90, "evictionRequirements": [
                    {"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}]},
                "resourcePolicy": {"containerPolicies": [
                    {"containerName": "side", "mode": "Off"},
                    {"containerName": "*", "minAllowed": {"cpu": "50m"}, "maxAllowed": {"memory": "1Gi"},
                        "controlledResources": ["cpu"], "controlledValues": "RequestsOnly", "oomBumpUpRatio": "1.5"}]},
                "recommenders": [{"name": "cautious"}]},
            "status": {"recommendation": {"containerRecommendations": [
                {"containerName": "app", "target": {"cpu": "250m", "memory": "262144k"}}]}}
        }))
        .unwrap();
        assert_eq!((vpa.name.to_string(), vpa.target.kind.as_str()), ("shop/web".to_owned(), "Deployment"));
        assert_eq!(vpa.created.map(|at| at.as_secs()), Some(1_772_366_400));
        assert_eq!((vpa.update.mode, vpa.update.min_replicas), (Some(UpdateMode::InPlaceOrRecreate), Some(1)));
        assert_eq!(vpa.update.eviction_requirements[0].change, ChangeRequirement::TargetHigherThanRequests);
        assert_eq!(vpa.update.evict_after_oom.map(|span| span.as_secs()), Some(90));
        assert!(vpa.policy_of(Symbol::new("side")).unwrap().off);
        let others = vpa.policy_of(Symbol::new("app")).unwrap();
        assert!(others.requests_only && others.controls(ResourceName::CPU) && !others.controls(ResourceName::MEMORY));
        assert_eq!(others.min_allowed.cpu_milli(), 50);
        assert_eq!(others.oom_bump_up_ratio.map(|ratio| ratio.milli_value()), Some(1_500));
        assert_eq!(vpa.recommenders, [Symbol::new("cautious")]);
        assert_eq!(vpa.recommendation.unwrap()[0].target, Resources::cpu_memory(250, 262_144_000));
    }

    #[test]
    fn unset_vpa_fields_use_component_defaults() {
        let vpa = vertical_pod_autoscaler_from_json(&json!({
            "apiVersion": "autoscaling.k8s.io/v1beta2", "metadata": {"name": "web"},
            "spec": {"targetRef": {"kind": "StatefulSet", "name": "db"}}
        }))
        .unwrap();
        assert_eq!((vpa.update.mode, vpa.recommendation), (None, None));
    }

    #[test]
    fn old_vpa_api_and_unknown_mode_warn() {
        let read = |version: &str, mode: &str| {
            let target = json!({"kind": "Deployment", "name": "web"});
            vertical_pod_autoscaler_from_json(&json!({
                "apiVersion": version, "kind": "VerticalPodAutoscaler", "metadata": {"name": "web"},
                "spec": {"targetRef": target, "updatePolicy": {"updateMode": mode}}
            }))
        };
        let told = |version, mode| read(version, mode).unwrap_err().to_string();
        assert!(told("autoscaling.k8s.io/v1beta1", "Off").contains("v1beta1"));
        assert!(told("autoscaling.k8s.io/v1", "Always").contains("VerticalPodAutoscaler web"));
    }
}
