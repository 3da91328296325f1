//! KEDA's ScaledObjects, and the triggers that ScaledJobs have as well.
//!
//! What KEDA's admission webhook refuses is refused here with its place, and so is a formula or a selector that cannot be
//! read. A trigger whose value a simulation does not make, and a query that it does not answer, are warned of.
//!
//! Source: KEDA 2.20 `apis/keda/v1alpha1`, `scaledobject_types.go` and `scaledobject_webhook.go`.

use super::common::{Metadata, instant, labels, metadata};
use super::hpa::{behavior, int32};
use super::pod::OBJECT;
use super::rollout::scaled_kind;
use crate::lints;
use nodecast_model::domain::cron::CronWindow;
use nodecast_model::domain::hpa::ScaleTargetRef;
use nodecast_model::domain::keda::{
    Fallback, FallbackBehavior, Reads, ScaledObject, Scaler, ScalingAnnotations, ScalingModifiers, Trigger,
    TriggerMetricType, TriggerProblem, TriggerSource,
};
use nodecast_model::domain::selector_text::parse_selector;
use nodecast_model::domain::{Labels, Quantity, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::error::nearest;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;
use nodecast_replicas::keda::{Formula, valid_fallback};
use nodecast_replicas::promql::{Query, SUPPORTED};

static SPEC: Shape = Shape {
    name: "a ScaledObject's spec",
    keys: &[
        "scaleTargetRef",
        "pollingInterval",
        "cooldownPeriod",
        "initialCooldownPeriod",
        "minReplicaCount",
        "maxReplicaCount",
        "idleReplicaCount",
        "fallback",
        "advanced",
        "triggers",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TARGET: Shape = Shape {
    name: "`scaleTargetRef`",
    keys: &["kind", "name"],
    without_effect: &["apiVersion", "envSourceContainerName"],
    unsupported: &[],
    strict: false,
};
static FALLBACK: Shape = Shape {
    name: "`fallback`",
    keys: &["failureThreshold", "replicas", "behavior"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static ADVANCED: Shape = Shape {
    name: "`advanced`",
    keys: &["restoreToOriginalReplicaCount", "horizontalPodAutoscalerConfig", "scalingModifiers"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static HPA_CONFIG: Shape = Shape {
    name: "`horizontalPodAutoscalerConfig`",
    keys: &["name", "behavior"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static MODIFIERS: Shape = Shape {
    name: "`scalingModifiers`",
    keys: &["formula", "target", "activationTarget", "metricType"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TRIGGER: Shape = Shape {
    name: "a trigger",
    keys: &["type", "name", "metadata", "metricType", "useCachedMetrics"],
    without_effect: &["authenticationRef"],
    unsupported: &[],
    strict: false,
};

const METRIC_TYPES: &[(&str, TriggerMetricType)] = &[
    ("AverageValue", TriggerMetricType::AverageValue),
    ("Value", TriggerMetricType::Value),
    ("Utilization", TriggerMetricType::Utilization),
];

/// A ScaledObject object.
pub(super) fn scaled_object<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<ScaledObject, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let meta = metadata(reader, fields.get("metadata"))?;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let target = target(reader, spec.required(reader, "scaleTargetRef")?)?;
    let triggers = triggers(reader, spec.required(reader, "triggers")?)?;
    let mut result = ScaledObject::new(meta.name.namespace, meta.name.name, target, triggers);
    result.annotations = annotations(reader, fields, &meta)?;
    if let Some(interval) = spec.optional("pollingInterval", |n, what| reader.integer(n, what, 1, 1_000_000))? {
        result.polling_interval = nodecast_model::domain::SimDuration::from_secs(interval);
    }
    let seconds = |key| spec.optional(key, |n, what| reader.seconds(n, what));
    result.cooldown_period = seconds("cooldownPeriod")?.unwrap_or(result.cooldown_period);
    result.initial_cooldown_period = seconds("initialCooldownPeriod")?.unwrap_or(result.initial_cooldown_period);
    counts(reader, spec, &mut result)?;
    if let Some(node) = object.get("status").and_then(|status| status.get("lastActiveTime")) {
        result.last_active = Some(instant(reader, node, "lastActiveTime")?);
    }
    if let Some(node) = spec.get("fallback") {
        result.fallback = Some(fallback(reader, node, &result.triggers)?);
    }
    if let Some(node) = spec.get("advanced") {
        advanced(reader, node, &mut result)?;
    }
    Ok(result)
}

fn target<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<ScaleTargetRef, InputError> {
    let fields = reader.fields(node, &TARGET)?;
    let kind = fields.optional("kind", |n, what| reader.symbol(n, what))?;
    Ok(ScaleTargetRef {
        kind: scaled_kind(kind.unwrap_or_else(|| Symbol::new("Deployment"))),
        name: reader.symbol(fields.required(reader, "name")?, "name")?,
    })
}

/// The annotations, of which `paused-replicas` has to be a number. One below KEDA's own prefix that it does not know is warned of: a misspelt
/// pause pauses nothing.
fn annotations<'s>(
    reader: &mut Reader<'s>,
    object: Fields<'_, 's>,
    meta: &Metadata<'_, 's>,
) -> Result<ScalingAnnotations, InputError> {
    const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
    const KNOWN: [&str; 5] = ["paused", "paused-replicas", "paused-scale-in", "paused-scale-out", "force-activation"];
    let Some(node) = object.get("metadata").and_then(|m| m.get("annotations")) else {
        return Ok(ScalingAnnotations::read(&meta.annotations));
    };
    if let Some(node) = node.get(PAUSED_REPLICAS) {
        int32(reader, node, PAUSED_REPLICAS, 0)?;
    }
    for entry in reader.entries(node, "annotations")? {
        let Some(name) = entry.key.strip_prefix("autoscaling.keda.sh/").filter(|name| !KNOWN.contains(name)) else {
            continue;
        };
        let shown: String = name.chars().take(80).collect();
        let help = nearest(name, KNOWN).map_or_else(
            || format!("remove it; known are {}", KNOWN.join(", ")),
            |near| format!("did you mean `autoscaling.keda.sh/{near}`?"),
        );
        let message = format!("KEDA knows no annotation `autoscaling.keda.sh/{shown}`");
        reader.warn(&lints::KEDA_ANNOTATION, entry.key_at, message, "ignored", &help);
    }
    Ok(ScalingAnnotations::read(&meta.annotations))
}

/// The three counts, which have to be in order.
fn counts<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>, result: &mut ScaledObject) -> Result<(), InputError> {
    let count = |key| spec.optional(key, |n, what| int32(reader, n, what, 0));
    result.min_replica_count = count("minReplicaCount")?;
    result.max_replica_count = count("maxReplicaCount")?;
    result.idle_replica_count = count("idleReplicaCount")?;
    let (min, max) = (result.min_replica_count.unwrap_or(0), result.max_replica_count.unwrap_or(100));
    if min > max {
        let at = spec.get("minReplicaCount").map_or(spec.at, |node| node.at);
        return Err(reader
            .error(at, format!("`minReplicaCount` is {min}, above `maxReplicaCount`, which is {max}"))
            .because("above the maximum")
            .help("raise `maxReplicaCount` or lower `minReplicaCount`"));
    }
    if let (Some(idle), Some(node)) = (result.idle_replica_count, spec.get("idleReplicaCount"))
        && idle >= min
    {
        return Err(reader
            .error(node.at, format!("`idleReplicaCount` is {idle}, not below `minReplicaCount`, which is {min}"))
            .because("not below the minimum")
            .help("remove `idleReplicaCount`, or raise `minReplicaCount`"));
    }
    if min == 0 && result.idle_replica_count.is_none() && only_resources(&result.triggers) {
        let at = spec.get("minReplicaCount").or(spec.get("triggers")).map_or(spec.at, |node| node.at);
        return Err(reader
            .error(at, "a ScaledObject with only cpu and memory triggers cannot scale to zero")
            .because("`minReplicaCount` is 0 here, which is also its default")
            .help("write `minReplicaCount: 1`, or add a trigger of another type"));
    }
    Ok(())
}

fn only_resources(triggers: &[Trigger]) -> bool {
    triggers.iter().all(|trigger| trigger.source.is_resource())
}

fn fallback<'s>(reader: &mut Reader<'s>, node: &Node<'s>, triggers: &[Trigger]) -> Result<Fallback, InputError> {
    const BEHAVIORS: &[(&str, FallbackBehavior)] = &[
        ("static", FallbackBehavior::Static),
        ("currentReplicas", FallbackBehavior::CurrentReplicas),
        ("currentReplicasIfHigher", FallbackBehavior::CurrentReplicasIfHigher),
        ("currentReplicasIfLower", FallbackBehavior::CurrentReplicasIfLower),
        ("scalingModifiers", FallbackBehavior::ScalingModifiers),
    ];
    if only_resources(triggers) {
        return Err(reader
            .error(node.at, "cpu and memory triggers have no fallback")
            .because("no trigger here supports a fallback")
            .help("take `fallback` out, or add a trigger of another type"));
    }
    let fields = reader.fields(node, &FALLBACK)?;
    Ok(Fallback {
        failure_threshold: int32(reader, fields.required(reader, "failureThreshold")?, "failureThreshold", 0)?,
        replicas: int32(reader, fields.required(reader, "replicas")?, "replicas", 0)?,
        behavior: fields.optional("behavior", |n, what| reader.choice(n, what, BEHAVIORS))?.unwrap_or_default(),
    })
}

fn advanced<'s>(reader: &mut Reader<'s>, node: &Node<'s>, result: &mut ScaledObject) -> Result<(), InputError> {
    let fields = reader.fields(node, &ADVANCED)?;
    result.restore_to_original_replica_count =
        fields.optional("restoreToOriginalReplicaCount", |n, what| reader.truth(n, what))?.unwrap_or(false);
    if let Some(node) = fields.get("horizontalPodAutoscalerConfig") {
        let config = reader.fields(node, &HPA_CONFIG)?;
        result.autoscaler_name = config.optional("name", |n, what| reader.symbol(n, what))?;
        result.behavior = config.get("behavior").map(|n| behavior(reader, n)).transpose()?;
    }
    if let Some(node) = fields.get("scalingModifiers") {
        result.scaling_modifiers = modifiers(reader, node, &result.triggers)?;
        if result.fallback.is_some() && valid_fallback(result).is_none() {
            let at = node.get("target").map_or(node.at, |target| target.at);
            let message = "the `fallback` is never used: with a formula, KEDA requires a whole-number `target`";
            let help = "state the formula's `target` as a whole number, and scale the formula to match";
            reader.warn(&lints::KEDA_FALLBACK, at, message, "not a whole number", help);
        }
    }
    Ok(())
}

/// An empty block is none.
fn modifiers<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    triggers: &[Trigger],
) -> Result<Option<ScalingModifiers>, InputError> {
    let fields = reader.fields(node, &MODIFIERS)?;
    if ["formula", "target", "activationTarget", "metricType"].iter().all(|key| fields.get(key).is_none()) {
        return Ok(None);
    }
    let formula_node = fields.required(reader, "formula")?;
    let formula = reader.text(formula_node, "formula")?;
    check_formula(reader, formula_node, formula, triggers)?;
    let target_node = fields.required(reader, "target")?;
    let target = plain_number(reader, target_node, "target")?;
    if target.nanos() <= 0 {
        return Err(reader
            .error(target_node.at, "`target` is not above zero")
            .because("must be above zero")
            .help("set the formula value the autoscaler should target"));
    }
    let metric_type = match fields.get("metricType") {
        Some(node) => external_type(reader, node)?,
        None => TriggerMetricType::AverageValue,
    };
    Ok(Some(ScalingModifiers {
        formula: formula.to_owned(),
        target,
        is_whole: target_node.as_text().is_some_and(|text| text.parse::<i64>().is_ok()),
        activation_target: fields
            .optional("activationTarget", |n, what| plain_number(reader, n, what))?
            .unwrap_or_default(),
        metric_type,
    }))
}

/// A number without a suffix: KEDA refuses a quantity such as `500m` where it compares the value of a formula.
///
/// Source: KEDA 2.20 `apis/keda/v1alpha1/scaledobject_webhook.go`, `validateScalingModifiersTarget`; `pkg/scaling/scale_handler.go`.
fn plain_number<'s>(reader: &Reader<'s>, node: &Node<'s>, what: &str) -> Result<Quantity, InputError> {
    if reader.text(node, what)?.parse::<f64>().is_err() {
        return Err(reader
            .error(node.at, format!("a formula's `{what}` must be a plain number"))
            .because("not a plain number")
            .help("write the number out, for example `0.5` for `500m` and `5000` for `5k`"));
    }
    reader.quantity(node, what)
}

/// A formula that can be read, over triggers that have the names it uses.
fn check_formula(reader: &Reader<'_>, node: &Node<'_>, text: &str, triggers: &[Trigger]) -> Result<(), InputError> {
    let formula = Formula::parse(text).map_err(|error| {
        reader
            .error(node.at, format!("the formula cannot be read: {error}"))
            .because("this formula")
            .help("refer to triggers by name, for example `(a + b) / 2`")
    })?;
    let named = || {
        let named = triggers.iter().filter(|trigger| !trigger.source.is_resource());
        named.filter_map(|trigger| trigger.name).map(Symbol::as_str)
    };
    for name in formula.names() {
        if !named().any(|known| known == name) {
            let help = nearest(name, named()).map_or_else(
                || "give the trigger a `name`; cpu and memory triggers cannot be used in a formula".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(reader
                .error(node.at, format!("the formula uses `{name}`, which is not the name of a trigger"))
                .because("this formula")
                .help(help));
        }
    }
    Ok(())
}

/// `metricType` of an external metric.
fn external_type(reader: &Reader<'_>, node: &Node<'_>) -> Result<TriggerMetricType, InputError> {
    let given = reader.choice(node, "metricType", METRIC_TYPES)?;
    if given == TriggerMetricType::Utilization {
        return Err(reader
            .error(node.at, "`Utilization` is for cpu and memory triggers")
            .because("has no request to be a percentage of")
            .help("write `AverageValue` or `Value`"));
    }
    Ok(given)
}

/// The triggers of an object.
pub(super) fn triggers<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Vec<Trigger>, InputError> {
    let mut triggers: Vec<Trigger> = Vec::new();
    for item in reader.list(node, "triggers")? {
        let read = trigger(reader, item)?;
        if read.name.is_some() && triggers.iter().any(|other| other.name == read.name) {
            let name = read.name.map(Symbol::as_str).unwrap_or_default();
            return Err(reader
                .error(item.at, format!("duplicate trigger name `{name}`"))
                .because("the second one")
                .help("give each its own name"));
        }
        triggers.push(read);
    }
    if triggers.is_empty() {
        return Err(reader
            .error(node.at, "no triggers")
            .because("an empty list")
            .help("add at least one, for example of the type `prometheus`"));
    }
    Ok(triggers)
}

/// One trigger with everything in its metadata that can be checked.
fn trigger<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Trigger, InputError> {
    let fields = reader.fields(node, &TRIGGER)?;
    let type_node = fields.required(reader, "type")?;
    let kind = reader.text(type_node, "type")?;
    let metric_type = match fields.get("metricType") {
        Some(node) if matches!(kind, "cpu" | "memory") => Some(reader.choice(node, "metricType", METRIC_TYPES)?),
        Some(node) => Some(external_type(reader, node)?),
        None => None,
    };
    let given = labels(reader, fields, "metadata")?;
    let metadata_node = fields.get("metadata").unwrap_or(node);
    let source = source(reader, metadata_node, kind, &given, metric_type)?;
    warn_about_keys(reader, metadata_node, kind)?;
    match &source.reads {
        Reads::External { .. } => warn_about_target(reader, metadata_node)?,
        Reads::Outside => warn_about_outside(reader, type_node, metadata_node, &source),
        _ => {}
    }
    check_source(reader, metadata_node, &source)?;
    let use_cached_metrics = fields.optional("useCachedMetrics", |n, what| reader.truth(n, what))?.unwrap_or(false);
    if use_cached_metrics && matches!(source.reads, Reads::Resource { .. } | Reads::Cron(_)) {
        let at = fields.get("useCachedMetrics").map_or(node.at, |n| n.at);
        return Err(reader
            .error(at, format!("`useCachedMetrics` is not supported by triggers of the type `{kind}`"))
            .because("KEDA refuses this")
            .help("take it out"));
    }
    let name = fields.optional("name", |n, what| reader.symbol(n, what))?.filter(|name| !name.as_str().is_empty());
    Ok(Trigger { name, source, metric_type: metric_type.unwrap_or_default(), use_cached_metrics })
}

/// What a trigger looks at. A field that a variable of a container holds is not known, and the trigger is as one of a system outside.
fn source(
    reader: &mut Reader<'_>,
    metadata: &Node<'_>,
    kind: &str,
    given: &Labels,
    metric_type: Option<TriggerMetricType>,
) -> Result<TriggerSource, InputError> {
    let from_variable = |key: &str| {
        let names = [format!("{key}FromEnv"), format!("{key}FromFile")];
        given.iter().any(|(key, _)| names.iter().any(|name| key.as_str() == name))
    };
    let read = match TriggerSource::read(kind, given, metric_type) {
        Err(TriggerProblem::Missing(key)) if from_variable(key) => {
            let message = format!("`{key}` of this `{kind}` trigger is read from a container's environment");
            let help = "set it in the metadata, or provide the trigger's values under `external_metrics`; until then it never scales";
            reader.warn(&lints::TRIGGER_FROM_ENVIRONMENT, metadata.at, message, "not known here", help);
            TriggerSource::outside(kind, given)
        }
        read => read,
    };
    let has_every_topic =
        |source: &TriggerSource| matches!(&source.reads, Reads::Kafka(kafka) if kafka.topic.is_none());
    if read.as_ref().is_ok_and(has_every_topic) && from_variable("topic") {
        let message = format!("`topic` of this `{kind}` trigger is read from a container's environment");
        let help = "write it into the metadata; until then the lag of every topic of the group counts";
        reader.warn(&lints::KAFKA_TOPIC_FROM_ENVIRONMENT, metadata.at, message, "not known here", help);
    }
    read.map_err(|problem| {
        let message = format!("a trigger of the type `{kind}` {problem}");
        if let TriggerProblem::Removed { key, instead, .. } = problem {
            let at = metadata.get(key).map_or(metadata.at, |node| node.at);
            let help =
                format!("write `{instead}` beside the `type` of the trigger and take `{key}` out of the metadata");
            return reader.error(at, message).because("KEDA makes no autoscaler with it").help(help);
        }
        reader
            .error(metadata.at, message)
            .because("in this metadata")
            .help(format!("KEDA refuses such a trigger; its scaler `{kind}` documents every field"))
    })
}

/// Warns of metadata that the simulation leaves out and of keys that KEDA does not know. A scaler of the user's own has
/// whatever keys it likes.
fn warn_about_keys<'s>(reader: &mut Reader<'s>, metadata: &Node<'s>, kind: &str) -> Result<(), InputError> {
    let Some(scaler) = Scaler::find(kind).filter(|scaler| scaler.keys().next().is_some()) else { return Ok(()) };
    for entry in reader.entries(metadata, "metadata")? {
        let key: &str = &entry.key;
        if scaler.keys().any(|known| known == key) || key.ends_with("FromEnv") || key.ends_with("FromFile") {
            continue;
        }
        let shown: String = key.chars().take(80).collect();
        if key == "partitionLimitation" {
            let message = format!("`{shown}` of a trigger of the type `{kind}` is not simulated: all partitions count");
            reader.left_out(&lints::KAFKA_PARTITIONS, entry.key_at, message, "");
            continue;
        }
        let help = nearest(key, scaler.keys()).map_or_else(
            || "remove it, or check the type of the trigger".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let message = format!("unknown key `{shown}` in the metadata of a trigger of the type `{kind}`");
        if entry.edited {
            return Err(reader.error(entry.key_at, message).because("not a key here").help(help));
        }
        reader.warn(&lints::TRIGGER_KEY, entry.key_at, message, "ignored", &help);
    }
    Ok(())
}

/// Warns of an external trigger that does not say what it holds its value against: in a cluster the scaler itself names the
/// target, here the metadata has to.
fn warn_about_target<'s>(reader: &mut Reader<'s>, metadata: &Node<'s>) -> Result<(), InputError> {
    const TARGET: &str = "targetValue";
    let entries = reader.entries(metadata, "metadata")?;
    if entries.iter().any(|entry| entry.key == TARGET) {
        return Ok(());
    }
    let near = entries.iter().find(|entry| nearest(&entry.key, std::iter::once(TARGET)).is_some());
    let (at, help) = match near {
        Some(entry) => {
            let shown: String = entry.key.chars().take(80).collect();
            (entry.key_at, format!("did you mean `{TARGET}` by `{shown}`?"))
        }
        None => (metadata.at, format!("write `{TARGET}` into the metadata: what the scaler answers in a cluster")),
    };
    let message = format!("external trigger without `{TARGET}`: assuming a target of 1");
    reader.warn(&lints::EXTERNAL_TARGET, at, message, "no target here", &help);
    Ok(())
}

/// Warns of a type that KEDA does not document, and of a target that the metadata leaves to a variable.
fn warn_about_outside(reader: &mut Reader<'_>, kind: &Node<'_>, metadata: &Node<'_>, outside: &TriggerSource) {
    let shown: String = outside.kind.as_str().chars().take(80).collect();
    if Scaler::find(outside.kind.as_str()).is_none() {
        let help = nearest(outside.kind.as_str(), Scaler::types()).map_or_else(
            || "provide its values under `external_metrics`; until then it never scales".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let message = format!("unknown trigger type `{shown}`");
        reader.warn(&lints::UNKNOWN_TRIGGER, kind.at, message, "not known", &help);
    }
    if outside.target.is_none() {
        let message = format!("a trigger of the type `{shown}` without a target: it is taken to be 1");
        let help = "write the target into the metadata";
        reader.warn(&lints::EXTERNAL_TARGET, metadata.at, message, "no target here", help);
    }
}

/// What a trigger's metadata holds in a language of its own: windows and selectors.
fn check_source(reader: &mut Reader<'_>, metadata: &Node<'_>, source: &TriggerSource) -> Result<(), InputError> {
    let at = |key: &str| metadata.get(key).map_or(metadata.at, |node| node.at);
    match &source.reads {
        Reads::Cron(cron) => CronWindow::new(cron).map(|_| ()).map_err(|problem| {
            use nodecast_model::domain::cron::CronProblem;
            let key = match &problem {
                CronProblem::TimeZone(_) => "timezone",
                CronProblem::Fields(text) | CronProblem::Never(text) if *text == cron.end => "end",
                CronProblem::Field { field, .. } if cron.end.split_whitespace().any(|word| word == field) => "end",
                _ => "start",
            };
            reader
                .error(at(key), format!("invalid cron trigger: {problem}"))
                .because("here")
                .help("write for example `timezone: Asia/Kolkata`, `start: 30 8 * * 1-5`, `end: 0 18 * * 1-5`")
        }),
        Reads::KubernetesWorkload { pod_selector, .. } => parse_selector(pod_selector).map(|_| ()).map_err(|error| {
            reader
                .error(at("podSelector"), format!("the pod selector cannot be read: {error}"))
                .because("no label selector")
                .help("write for example `app=web,tier in (front, back)`")
        }),
        Reads::Prometheus { .. } => {
            let node = metadata.get("query").unwrap_or(metadata);
            check_trigger_query(reader, node)
        }
        Reads::RabbitMq(rabbit) if rabbit.operation.is_some() => {
            regex_lite::Regex::new(&rabbit.queue).map(|_| ()).map_err(|problem| {
                reader
                    .error(at("queueName"), format!("the pattern of queue names cannot be read: {problem}"))
                    .because("no regular expression")
                    .help("write for example `orders-.*`, or take `useRegex` out")
            })
        }
        _ => Ok(()),
    }
}

/// The query of a trigger: one that the simulation cannot answer is warned of, for Prometheus may.
fn check_trigger_query(reader: &mut Reader<'_>, node: &Node<'_>) -> Result<(), InputError> {
    match Query::parse(reader.text(node, "query")?) {
        Ok(query) if query.is_scalar() => Err(reader
            .error(node.at, "the query returns a scalar; KEDA needs a vector")
            .because("this query")
            .help("wrap it in `vector(...)`")),
        Ok(_) => Ok(()),
        Err(error) => {
            let help = format!(
                "a query may contain {SUPPORTED}; state the trigger's values under `external_metrics`, until then it scales nothing"
            );
            let because = format!("at character {} of this query", error.position);
            let message = format!("unsupported query: {}", error.problem);
            reader.warn(&lints::QUERY_NOT_ANSWERED, node.at, message, &because, &help);
            Ok(())
        }
    }
}

/// A query that the simulation can answer.
pub fn check_query(reader: &Reader<'_>, node: &Node<'_>) -> Result<Query, InputError> {
    let text = reader.text(node, "query")?;
    Query::parse(text).map_err(|error| {
        reader
            .error(node.at, format!("invalid query: {}", error.problem))
            .because(format!("at character {} of this query", error.position))
            .help(format!("a query may contain {SUPPORTED}"))
    })
}
