//! Deployments, StatefulSets and DaemonSets, and what protects or ranks their pods.

use std::sync::Arc;

use super::bounds::{int_or_share, replicas};
use super::common::{count, int_or_percent, label_selector, metadata};
pub(super) use super::pod::template;
use super::pod::{OBJECT, priority};
use super::storage;
use nodecast_model::domain::pod::{DisruptionRule, IntOrPercent, OwnerKind, PodDisruptionBudget, PreemptionPolicy};
use nodecast_model::domain::workload::{DaemonSet, Deployment, ObjectName, StatefulSet, StatefulUpdate};
use nodecast_model::domain::{LabelSelector, PodSpec, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static DEPLOYMENT: Shape = Shape {
    name: "a Deployment's spec",
    keys: &["replicas", "selector", "template", "strategy", "minReadySeconds", "progressDeadlineSeconds"],
    without_effect: &["revisionHistoryLimit"],
    unsupported: &[("paused", "assuming the Deployment is not paused")],
    strict: false,
};
static STRATEGY: Shape = Shape {
    name: "a Deployment's strategy",
    keys: &["type", "rollingUpdate"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static ROLLING_UPDATE: Shape = Shape {
    name: "`rollingUpdate`",
    keys: &["maxSurge", "maxUnavailable"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static STATEFUL_SET: Shape = Shape {
    name: "a StatefulSet's spec",
    keys: &[
        "replicas",
        "selector",
        "template",
        "podManagementPolicy",
        "serviceName",
        "updateStrategy",
        "ordinals",
        "minReadySeconds",
        "volumeClaimTemplates",
        "persistentVolumeClaimRetentionPolicy",
    ],
    without_effect: &["revisionHistoryLimit"],
    unsupported: &[],
    strict: false,
};
static RETENTION: Shape = Shape {
    name: "a StatefulSet's `persistentVolumeClaimRetentionPolicy`",
    keys: &["whenScaled", "whenDeleted"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static ORDINALS: Shape =
    Shape { name: "`ordinals`", keys: &["start"], without_effect: &[], unsupported: &[], strict: false };
static STATEFUL_UPDATE: Shape = Shape {
    name: "a StatefulSet's `updateStrategy`",
    keys: &["type", "rollingUpdate"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static PARTITION: Shape = Shape {
    name: "`rollingUpdate`",
    keys: &["partition", "maxUnavailable"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static DAEMON_SET: Shape = Shape {
    name: "a DaemonSet's spec",
    keys: &["selector", "template", "updateStrategy", "minReadySeconds"],
    without_effect: &["revisionHistoryLimit"],
    unsupported: &[],
    strict: false,
};
static DAEMON_UPDATE: Shape = Shape {
    name: "a DaemonSet's `updateStrategy`",
    keys: &["type", "rollingUpdate"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static DAEMON_ROLLING: Shape = Shape {
    name: "`rollingUpdate`",
    keys: &["maxUnavailable", "maxSurge"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static DISRUPTION_BUDGET: Shape = Shape {
    name: "a PodDisruptionBudget's spec",
    keys: &["selector", "minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static PRIORITY_CLASS: Shape = Shape {
    name: "a PriorityClass",
    keys: &["apiVersion", "kind", "metadata", "value", "globalDefault", "preemptionPolicy"],
    without_effect: &["description"],
    unsupported: &[],
    strict: false,
};

/// Types of an update strategy: whether pods wait for somebody to delete them.
const UPDATES: &[(&str, bool)] = &[("RollingUpdate", false), ("OnDelete", true)];

/// A PriorityClass object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriorityClass {
    /// Name.
    pub name: Symbol,
    /// The priority that it stands for.
    pub value: i32,
    /// Whether it applies to pods that name no class.
    pub global_default: bool,
    /// Whether its pods may evict others.
    pub preemption_policy: PreemptionPolicy,
}

/// `progressDeadlineSeconds` unless given.
pub(super) const PROGRESS_DEADLINE: SimDuration = SimDuration::from_secs(600);

/// A Deployment object.
pub(super) fn deployment<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Deployment, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &DEPLOYMENT)?;
    let (selector, template) = selected_pods(reader, spec, OwnerKind::ReplicaSet)?;
    let (max_surge, max_unavailable) = strategy(reader, spec)?;
    let (min_ready, progress_deadline) = times(reader, spec)?;
    Ok(Deployment {
        name,
        replicas: replicas(reader, spec, "replicas")?,
        selector,
        template: Arc::new(template),
        rolls_out: true,
        max_surge,
        max_unavailable,
        min_ready,
        progress_deadline,
    })
}

/// How long a Deployment's pod must be Ready, and how long a rollout may stand still, which has to be longer.
///
/// Source: Kubernetes 1.36 `pkg/apis/apps/validation/validation.go`, `ValidateDeploymentSpec`.
fn times<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<(SimDuration, SimDuration), InputError> {
    let seconds = |key| spec.optional(key, |n, what| reader.seconds(n, what));
    let stated = seconds("progressDeadlineSeconds")?;
    let (min_ready, deadline) =
        (seconds("minReadySeconds")?.unwrap_or(SimDuration::ZERO), stated.unwrap_or(PROGRESS_DEADLINE));
    if min_ready < deadline {
        return Ok((min_ready, deadline));
    }
    let unless_given = if stated.is_none() { ", which is 600 unless given," } else { "" };
    let at = spec.get("progressDeadlineSeconds").or(spec.get("minReadySeconds")).map_or(spec.at, |node| node.at);
    let text = format!("`progressDeadlineSeconds`{unless_given} must be greater than `minReadySeconds`");
    Err(reader.error(at, text).because("the API server refuses it").help("raise the first or lower the second"))
}

/// A StatefulSet object.
pub(super) fn stateful_set<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<StatefulSet, InputError> {
    const POLICIES: &[(&str, bool)] = &[("OrderedReady", false), ("Parallel", true)];
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &STATEFUL_SET)?;
    let (selector, mut template) = selected_pods(reader, spec, OwnerKind::StatefulSet)?;
    template.volumes.extend(storage::claim_templates(reader, spec)?);
    let (keeps_claims, leaves_claims) = claim_retention(reader, spec)?;
    let first_ordinal = match spec.get("ordinals") {
        Some(node) => {
            let ordinals = reader.fields(node, &ORDINALS)?;
            count(reader, ordinals, "start")?.unwrap_or(0)
        }
        None => 0,
    };
    Ok(StatefulSet {
        name,
        replicas: replicas(reader, spec, "replicas")?,
        selector,
        template: Arc::new(template),
        parallel: spec.optional("podManagementPolicy", |n, what| reader.choice(n, what, POLICIES))?.unwrap_or(false),
        service: spec.optional("serviceName", |n, what| reader.symbol(n, what))?.unwrap_or(Symbol::new("")),
        first_ordinal,
        keeps_claims,
        leaves_claims,
        update: stateful_update(reader, spec)?,
        min_ready: spec.optional("minReadySeconds", |n, what| reader.seconds(n, what))?.unwrap_or(SimDuration::ZERO),
    })
}

/// Whether claims stay when there are too many replicas, and when the StatefulSet is deleted.
fn claim_retention<'s>(reader: &mut Reader<'s>, spec: Fields<'_, 's>) -> Result<(bool, bool), InputError> {
    const POLICIES: &[(&str, bool)] = &[("Retain", true), ("Delete", false)];
    let Some(node) = spec.get("persistentVolumeClaimRetentionPolicy") else { return Ok((true, true)) };
    let retention = reader.fields(node, &RETENTION)?;
    let stays = |key| retention.optional(key, |n, what| reader.choice(n, what, POLICIES));
    Ok((stays("whenScaled")?.unwrap_or(true), stays("whenDeleted")?.unwrap_or(true)))
}

fn stateful_update<'s>(reader: &mut Reader<'s>, spec: Fields<'_, 's>) -> Result<StatefulUpdate, InputError> {
    let one = IntOrPercent::Count(1);
    let by_default = StatefulUpdate::Rolling { partition: 0, max_unavailable: one };
    let Some(node) = spec.get("updateStrategy") else { return Ok(by_default) };
    let fields = reader.fields(node, &STATEFUL_UPDATE)?;
    if fields.optional("type", |n, what| reader.choice(n, what, UPDATES))?.unwrap_or(false) {
        return Ok(StatefulUpdate::OnDelete);
    }
    let Some(node) = fields.get("rollingUpdate") else { return Ok(by_default) };
    let rolling = reader.fields(node, &PARTITION)?;
    Ok(StatefulUpdate::Rolling {
        partition: count(reader, rolling, "partition")?.unwrap_or(0),
        max_unavailable: rolling.optional("maxUnavailable", |n, what| int_or_share(reader, n, what))?.unwrap_or(one),
    })
}

/// A DaemonSet object.
pub(super) fn daemon_set<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<DaemonSet, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &DAEMON_SET)?;
    let (selector, template) = selected_pods(reader, spec, OwnerKind::DaemonSet)?;
    let (max_unavailable, max_surge) = daemon_update(reader, spec)?;
    Ok(DaemonSet {
        name,
        selector,
        template: Arc::new(template),
        max_unavailable,
        max_surge,
        min_ready: spec.optional("minReadySeconds", |n, what| reader.seconds(n, what))?.unwrap_or(SimDuration::ZERO),
    })
}

/// Pods that an update may take away at once, `None` for `OnDelete`; and nodes that may have a new one beside the old one.
fn daemon_update<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
) -> Result<(Option<IntOrPercent>, IntOrPercent), InputError> {
    let none = IntOrPercent::Count(0);
    let one = Some(IntOrPercent::Count(1));
    let Some(node) = spec.get("updateStrategy") else { return Ok((one, none)) };
    let fields = reader.fields(node, &DAEMON_UPDATE)?;
    if fields.optional("type", |n, what| reader.choice(n, what, UPDATES))?.unwrap_or(false) {
        return Ok((None, none));
    }
    let Some(node) = fields.get("rollingUpdate") else { return Ok((one, none)) };
    let rolling = reader.fields(node, &DAEMON_ROLLING)?;
    let limit = |key| rolling.optional(key, |n, what| int_or_share(reader, n, what));
    let (unavailable, surge) = (limit("maxUnavailable")?.or(one), limit("maxSurge")?.unwrap_or(none));
    let some = |limit: IntOrPercent| limit.of_rounded_up(100) > 0;
    if let Some(node) = rolling.get("maxSurge").filter(|_| some(surge) && unavailable.is_some_and(some)) {
        return Err(reader
            .error(node.at, "a DaemonSet's `maxSurge` needs `maxUnavailable: 0`, which is 1 unless given")
            .because("both above zero")
            .help("Kubernetes refuses such a DaemonSet; write `rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }`"));
    }
    Ok((unavailable, surge))
}

/// The selector and the template, which have to agree as the API server demands. An absent selector stands for the
/// template's labels, as in the APIs before `apps/v1`.
pub(super) fn selected_pods<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
    owner: OwnerKind,
) -> Result<(LabelSelector, PodSpec), InputError> {
    let template = template(reader, spec.required(reader, "template")?, owner)?;
    let Some(node) = spec.get("selector") else {
        let match_labels = template.labels.clone();
        return Ok((LabelSelector { match_labels, expressions: Vec::new() }, template));
    };
    let selector = label_selector(reader, node)?;
    if !selector.matches(&template.labels) {
        return Err(reader
            .error(node.at, "the selector does not match the labels of the pod template")
            .because("selects other pods")
            .help("give `selector.matchLabels` and `template.metadata.labels` the same labels"));
    }
    Ok((selector, template))
}

/// `maxSurge` and `maxUnavailable` of a rollout, 25 % each unless given; no surge at all for `Recreate`.
fn strategy<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
) -> Result<(Option<IntOrPercent>, Option<IntOrPercent>), InputError> {
    let quarter = Some(IntOrPercent::Percent(25));
    let Some(node) = spec.get("strategy") else { return Ok((quarter, quarter)) };
    let fields = reader.fields(node, &STRATEGY)?;
    let kinds = [("RollingUpdate", false), ("Recreate", true)];
    if fields.optional("type", |n, what| reader.choice(n, what, &kinds))?.unwrap_or(false) {
        return Ok((None, None));
    }
    let Some(node) = fields.get("rollingUpdate") else { return Ok((quarter, quarter)) };
    let fields = reader.fields(node, &ROLLING_UPDATE)?;
    let surge = fields.optional("maxSurge", |n, what| int_or_percent(reader, n, what))?;
    let unavailable = fields.optional("maxUnavailable", |n, what| int_or_share(reader, n, what))?;
    refuse_standstill(reader, fields, surge, unavailable)?;
    Ok((surge.or(quarter), unavailable.or(quarter)))
}

/// A rollout that may neither add a pod nor take one away would never go on.
///
/// Source: Kubernetes 1.36 `pkg/apis/apps/validation/validation.go`, `ValidateRollingUpdateDeployment`.
fn refuse_standstill(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    surge: Option<IntOrPercent>,
    unavailable: Option<IntOrPercent>,
) -> Result<(), InputError> {
    let none = |limit: Option<IntOrPercent>| matches!(limit, Some(IntOrPercent::Count(0) | IntOrPercent::Percent(0)));
    if !(none(surge) && none(unavailable)) {
        return Ok(());
    }
    Err(reader
        .error(fields.at, "`maxSurge` and `maxUnavailable` of a rollout are both 0")
        .because("no pod could be replaced")
        .help("raise one of them; both are 25% unless they are given"))
}

/// A PodDisruptionBudget object.
pub(super) fn pod_disruption_budget<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
) -> Result<PodDisruptionBudget, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let ObjectName { namespace, name } = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &DISRUPTION_BUDGET)?;
    let limit = |key| spec.optional(key, |n, what| int_or_share(reader, n, what));
    let rule = match (limit("minAvailable")?, limit("maxUnavailable")?) {
        (Some(_), Some(_)) => {
            return Err(reader
                .error(spec.at, "a PodDisruptionBudget has `minAvailable` or `maxUnavailable`, not both")
                .because("both are given")
                .help("remove one of them"));
        }
        (None, Some(most)) => DisruptionRule::MaxUnavailable(most),
        // Neither is legal: the API's default is minAvailable 0, which protects nothing.
        (least, None) => DisruptionRule::MinAvailable(least.unwrap_or(IntOrPercent::Count(0))),
    };
    let policies = [("IfHealthyBudget", false), ("AlwaysAllow", true)];
    let always_allow_unhealthy =
        spec.optional("unhealthyPodEvictionPolicy", |n, what| reader.choice(n, what, &policies))?.unwrap_or(false);
    let selector = spec.get("selector").map(|n| label_selector(reader, n)).transpose()?;
    Ok(PodDisruptionBudget { namespace, name, selector, rule, always_allow_unhealthy })
}

/// The highest priority that a class of one's own may have.
///
/// Source: Kubernetes 1.36 `pkg/apis/scheduling/types.go`, `HighestUserDefinablePriority`.
const HIGHEST_OF_ONES_OWN: i32 = 1_000_000_000;

/// Refuses a class that takes the priority or the name of Kubernetes' own.
///
/// Source: Kubernetes 1.36 `pkg/apis/scheduling/validation/validation.go`, `ValidatePriorityClass`.
fn refuse_as_systems(reader: &Reader<'_>, fields: Fields<'_, '_>, name: &str, value: i32) -> Result<(), InputError> {
    if super::SYSTEM_CLASSES.contains(&(name, value)) {
        return Ok(());
    }
    let at = |key| fields.get(key).map_or(fields.at, |node: &Node<'_>| node.at);
    if name.starts_with("system-") {
        let at = fields.get("metadata").and_then(|field| field.get("name")).map_or(fields.at, |node| node.at);
        return Err(reader
            .error(at, format!("a PriorityClass cannot be called `{name}`"))
            .because("kept for Kubernetes' own")
            .help("choose a name that does not start with `system-`"));
    }
    if value > HIGHEST_OF_ONES_OWN {
        return Err(reader
            .error(at("value"), format!("the priority of the class `{name}` is {value}"))
            .because("kept for Kubernetes' own")
            .help(format!("write at most {HIGHEST_OF_ONES_OWN}")));
    }
    Ok(())
}

/// A PriorityClass object.
pub(super) fn priority_class<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<PriorityClass, InputError> {
    let fields = reader.fields(object, &PRIORITY_CLASS)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let value = priority(reader, fields, "value")?.unwrap_or(0);
    refuse_as_systems(reader, fields, name.as_str(), value)?;
    let preemption =
        [("PreemptLowerPriority", PreemptionPolicy::PreemptLowerPriority), ("Never", PreemptionPolicy::Never)];
    Ok(PriorityClass {
        name,
        value,
        global_default: fields.optional("globalDefault", |n, what| reader.truth(n, what))?.unwrap_or(false),
        preemption_policy: fields
            .optional("preemptionPolicy", |n, what| reader.choice(n, what, &preemption))?
            .unwrap_or_default(),
    })
}
