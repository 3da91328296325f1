//! The keda suite: decisions of KEDA.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nodecast_model::domain::cron::CronWindow;
use nodecast_model::domain::hpa::{Behavior, MetricTarget, ScaleTargetRef};
use nodecast_model::domain::keda::{
    Fallback, FallbackBehavior, JobStrategy, Reads, ScaledJob, ScaledObject, ScalingAnnotations, ScalingModifiers,
    Trigger, TriggerCalculation, TriggerMetricType, TriggerSource,
};
use nodecast_model::domain::labels::Labels;
use nodecast_model::domain::pod::{PodPhase, PodSpec};
use nodecast_model::domain::workload::JobSpec;
use nodecast_model::domain::{Quantity, SimDuration, Symbol};
use nodecast_replicas::keda::{
    Composite, FallbackCounts, FallbackRead, Formula, JobDemand, JobPodView, JobTrigger, Partition, PollView,
    QueryResult, QueueFigures, SourceReading, TriggerState, combine, composite, horizontal_pod_autoscaler, is_active,
    is_pending, plan_jobs, poll, read_with_fallback, target_of, trigger_value,
};
use serde_json::Value;

use crate::fields::{
    NOW, ago, check_read, count, count_or, flag_or, integer, list, note_unread, number_or, same, same_condition,
    seconds_or, text,
};
use crate::hpa::behavior;
use crate::tally::{Tally, run_cases};

/// Runs every case below `paths`.
pub fn run(paths: &[PathBuf], _catalogs: Option<&Path>) -> Result<Tally, String> {
    run_cases(paths, check)
}

const OF_SCALED_OBJECT: [&str; 8] = [
    "minReplicaCount",
    "maxReplicaCount",
    "idleReplicaCount",
    "cooldownPeriod",
    "initialCooldownPeriod",
    "fallback_replicas",
    "annotations",
    "behavior",
];
const OF_SCALED_JOB: [&str; 10] = [
    "minReplicaCount",
    "maxReplicaCount",
    "strategy",
    "calculation",
    "customScalingQueueLengthDeduction",
    "customScalingRunningJobPercentage",
    "scaleTo",
    "maxScale",
    "running",
    "pending",
];
const OF_TRIGGERS: [&str; 44] = [
    // prometheus
    "trigger",
    "result",
    "query",
    "threshold",
    "activationThreshold",
    "ignoreNullValues",
    "serverAddress",
    "namespace",
    "timeout",
    // aws-sqs-queue
    "queueURL",
    "awsRegion",
    "visible",
    "in_flight",
    "delayed",
    "queueLength",
    "activationQueueLength",
    "scaleOnInFlight",
    "scaleOnDelayed",
    // kafka
    "partitions",
    "bootstrapServers",
    "consumerGroup",
    "topic",
    "lagThreshold",
    "activationLagThreshold",
    "offsetResetPolicy",
    "allowIdleConsumers",
    "excludePersistentLag",
    "limitToPartitionsWithLag",
    "ensureEvenDistributionOfPartitions",
    "scaleToZeroOnInvalidOffset",
    // rabbitmq
    "queues",
    "queueName",
    "mode",
    "value",
    "activationValue",
    "excludeUnacknowledged",
    "operation",
    "useRegex",
    // redis, kubernetes-workload
    "length",
    "listName",
    "listLength",
    "activationListLength",
    "matching_pods",
    "nodes",
];
/// A queue of RabbitMQ.
const OF_QUEUES: [&str; 11] = [
    "messages",
    "ready",
    "messages_ready",
    "unacknowledged",
    "unacked",
    "publish_rate",
    "publishRate",
    "rate",
    "deliver_rate",
    "deliverRate",
    "deliver_get_rate",
];
/// What else a trigger's input may have.
const OF_OTHER_TRIGGERS: [&str; 11] = [
    "podSelector",
    "groupByNode",
    "address",
    "host",
    "port",
    "databaseIndex",
    "scalerAddress",
    "targetValue",
    "told_value",
    "metric",
    "active",
];

/// Fails on fields that nothing here reads.
fn check_fields(kind: &str, input: &Value, expected: &Value) -> Result<(), String> {
    let of_jobs: [&str; 3] = ["effective_max_scale", "scale_to", "jobs_created_if_active"];
    let of_values: [&str; 5] = ["metric", "active", "hpa_replicas", "error", "hpa_target_average_value"];
    let (known, answers): (Vec<&str>, &[&str]) = match kind {
        "scaledobject_poll" => (
            [&OF_SCALED_OBJECT[..], &["current", "created_ago_s", "last_active_ago_s", "active", "error"]].concat(),
            &["replicas", "last_active_updated", "paused", "Active", "Ready"],
        ),
        "fallback" => (
            vec![
                "scaler_error",
                "failureThreshold",
                "replicas",
                "behavior",
                "target",
                "target_kind",
                "metric_milli",
                "failures_before",
                "current",
                "ready",
            ],
            &["metric_milli", "failures", "fallback", "error"],
        ),
        "scaledjob_strategy" | "scaledjob_decision" => (OF_SCALED_JOB.to_vec(), &of_jobs),
        "scaledjob_multi" => ([&OF_SCALED_JOB[..], &["scalers"]].concat(), &["active", "scaleTo", "maxScale"]),
        "scaledjob_pending" => (vec!["pods", "pendingPodConditions"], &["pending"]),
        "cron" => (vec!["timezone", "start", "end", "desiredReplicas", "now"], &of_values),
        "trigger_value" => ([&OF_TRIGGERS[..], &OF_QUEUES, &OF_OTHER_TRIGGERS].concat(), &of_values),
        "hpa_mapping" => (OF_SCALED_OBJECT.to_vec(), &["hpa_min", "hpa_max", "behavior"]),
        "scaling_modifiers" => {
            (vec!["formula", "values", "target", "activationTarget", "current", "fallback_replicas"], &of_values)
        }
        _ => return Ok(()),
    };
    note_unread("input", input, &known);
    check_read("expected", expected, answers)
}

fn check(case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    note_unread("case", case, &["id", "kind", "name", "origin", "source", "input", "expected", "why"]);
    check_fields(text(case, "kind")?.unwrap_or_default(), input, expected)?;
    match text(case, "kind")? {
        Some("scaledobject_poll") => poll_case(input, expected),
        Some("fallback") => fallback_case(input, expected),
        Some("scaledjob_strategy" | "scaledjob_decision") => jobs_case(input, expected),
        Some("scaledjob_multi") => multi_case(input, expected),
        Some("scaledjob_pending") => pending_case(input, expected),
        Some("cron") => cron_case(input, expected),
        Some("trigger_value") => value_case(input, expected),
        Some("hpa_mapping") => mapping_case(input, expected),
        Some("scaling_modifiers") => modifiers_case(input, expected),
        other => Err(format!("unknown kind {other:?}")),
    }
}

fn poll_case(input: &Value, expected: &Value) -> Result<(), String> {
    let object = scaled_object(input)?;
    let view = PollView {
        now: NOW,
        created: ago(input, "created_ago_s")?.unwrap_or(NOW),
        last_active: ago(input, "last_active_ago_s")?,
        replicas: count(input, "current")?,
        active: flag_or(input, "active", false)?,
        failed: flag_or(input, "error", false)?,
    };
    let decision = poll(&object, &view);
    same("replicas", decision.replicas, count(expected, "replicas")?)?;
    let refreshed = flag_or(expected, "last_active_updated", decision.refreshes_last_active)?;
    same("last_active_updated", decision.refreshes_last_active, refreshed)?;
    same("paused", object.annotations.stops_scaling(), flag_or(expected, "paused", false)?)?;
    let spelled = |(status, reason): (&str, &str)| format!("{status}/{reason}");
    let active = decision.active.map(|reason| spelled(reason.as_condition()));
    same_condition("Active", active.as_deref(), text(expected, "Active")?)?;
    // A poll that finds nothing wrong says so.
    let ready = decision.ready.map_or(("True", "ScaledObjectReady"), |reason| reason.as_condition());
    same_condition("Ready", Some(&spelled(ready)), text(expected, "Ready")?)
}

fn scaled_object(input: &Value) -> Result<ScaledObject, String> {
    let target = ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("case") };
    let mut object = ScaledObject::new(Symbol::new("default"), Symbol::new("case"), target, Vec::new());
    let optional = |key| if input[key].is_null() { Ok(None) } else { count(input, key).map(Some) };
    object.min_replica_count = optional("minReplicaCount")?;
    object.max_replica_count = optional("maxReplicaCount")?;
    object.idle_replica_count = optional("idleReplicaCount")?;
    object.cooldown_period = seconds_or(input, "cooldownPeriod", object.cooldown_period)?;
    object.initial_cooldown_period = seconds_or(input, "initialCooldownPeriod", SimDuration::ZERO)?;
    object.fallback = optional("fallback_replicas")?.map(|replicas| Fallback {
        failure_threshold: 3,
        replicas,
        behavior: FallbackBehavior::Static,
    });
    let known = ["paused", "paused_replicas", "paused_scale_in", "paused_scale_out", "force_activation"];
    note_unread("annotations", &input["annotations"], &known);
    let mut annotations = Labels::new();
    for (key, value) in input["annotations"].as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let key = format!("autoscaling.keda.sh/{}", key.replace('_', "-"));
        annotations.set(Symbol::new(&key), Symbol::new(&scalar(value).ok_or("annotations: not a text")?));
    }
    object.annotations = ScalingAnnotations::read(&annotations);
    object.behavior = optional_behavior(&input["behavior"])?;
    Ok(object)
}

fn optional_behavior(block: &Value) -> Result<Option<Behavior>, String> {
    if block.is_null() { Ok(None) } else { behavior(block).map(Some) }
}

/// A text, number or truth value as a manifest's text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn fallback_case(input: &Value, expected: &Value) -> Result<(), String> {
    let behavior = match text(input, "behavior")? {
        None | Some("static") => FallbackBehavior::Static,
        Some("currentReplicas") => FallbackBehavior::CurrentReplicas,
        Some("currentReplicasIfHigher") => FallbackBehavior::CurrentReplicasIfHigher,
        Some("currentReplicasIfLower") => FallbackBehavior::CurrentReplicasIfLower,
        Some("scalingModifiers") => FallbackBehavior::ScalingModifiers,
        Some(other) => return Err(format!("unknown behavior {other:?}")),
    };
    let fallback = match &input["failureThreshold"] {
        Value::Null => None,
        _ => Some(Fallback {
            failure_threshold: count(input, "failureThreshold")?,
            replicas: count(input, "replicas")?,
            behavior,
        }),
    };
    let failed = flag_or(input, "scaler_error", false)?;
    let value = if failed { None } else { integer(input, "metric_milli")? };
    let metric_type = match text(input, "target_kind")? {
        Some("Value") => TriggerMetricType::Value,
        _ => TriggerMetricType::AverageValue,
    };
    let target = quantity(&input["target"])?.as_f64();
    let counts = FallbackCounts { replicas: count_or(input, "current", 0)?, ready: count_or(input, "ready", 0)? };
    let mut failures = count_or(input, "failures_before", 0)?;
    let read = read_with_fallback(fallback.as_ref(), value, &mut failures, (target, metric_type), counts);
    same("failures", failures, count_or(expected, "failures", failures)?)?;
    same("error", read == FallbackRead::Failed, flag_or(expected, "error", false)?)?;
    let synthetic = matches!(read, FallbackRead::Synthetic(_));
    same("fallback", synthetic, flag_or(expected, "fallback", synthetic)?)?;
    let wanted = integer(expected, "metric_milli")?;
    let milli = match read {
        FallbackRead::Value(milli) | FallbackRead::Synthetic(milli) => Some(milli),
        // KEDA passes on minus one, which the formula reads as nil.
        FallbackRead::Nil => wanted.map(|_| -1_000),
        FallbackRead::Failed => None,
    };
    same("metric_milli", milli, wanted)
}

fn scaled_job(input: &Value) -> Result<ScaledJob, String> {
    let job = JobSpec::from_template(Arc::new(PodSpec::default()));
    let mut job = ScaledJob::new(Symbol::new("default"), Symbol::new("case"), job, Vec::new());
    job.min_replica_count = integer(input, "minReplicaCount")?.unwrap_or(0);
    job.max_replica_count = integer(input, "maxReplicaCount")?.unwrap_or(100);
    job.strategy = match text(input, "strategy")? {
        Some("custom") => JobStrategy::Custom {
            queue_length_deduction: integer(input, "customScalingQueueLengthDeduction")?.unwrap_or(0),
            running_job_percentage: scalar(&input["customScalingRunningJobPercentage"]).unwrap_or_default(),
        },
        Some("accurate") => JobStrategy::Accurate,
        Some("eager") => JobStrategy::Eager,
        _ => JobStrategy::Default,
    };
    job.calculation = match text(input, "calculation")? {
        Some("min") => TriggerCalculation::Min,
        Some("avg") => TriggerCalculation::Avg,
        Some("sum") => TriggerCalculation::Sum,
        _ => TriggerCalculation::Max,
    };
    Ok(job)
}

fn jobs_case(input: &Value, expected: &Value) -> Result<(), String> {
    let number = |key| integer(input, key).map(Option::unwrap_or_default);
    let demand = JobDemand { active: true, scale_to: number("scaleTo")?, max_scale: number("maxScale")? };
    let plan = plan_jobs(&scaled_job(input)?, demand, number("running")?, number("pending")?);
    for (key, found) in [
        ("effective_max_scale", plan.effective_max_scale),
        ("scale_to", plan.scale_to),
        ("jobs_created_if_active", plan.created),
    ] {
        same(key, found, integer(expected, key)?.unwrap_or(found))?;
    }
    Ok(())
}

fn multi_case(input: &Value, expected: &Value) -> Result<(), String> {
    let trigger = |scaler: &Value| {
        note_unread("scaler", scaler, &["queue", "max", "active"]);
        Ok(JobTrigger {
            queue: number_or(scaler, "queue", 0.0)?,
            maximum: number_or(scaler, "max", 0.0)?,
            active: flag_or(scaler, "active", false)?,
        })
    };
    let triggers = list(input, "scalers")?.iter().map(trigger).collect::<Result<Vec<_>, String>>()?;
    let demand = combine(&scaled_job(input)?, &triggers);
    same("active", demand.active, flag_or(expected, "active", demand.active)?)?;
    same("scaleTo", demand.scale_to, integer(expected, "scaleTo")?.unwrap_or(demand.scale_to))?;
    same("maxScale", demand.max_scale, integer(expected, "maxScale")?.unwrap_or(demand.max_scale))
}

fn pending_case(input: &Value, expected: &Value) -> Result<(), String> {
    let symbols = |value: &Value, key: &str| -> Result<Vec<Symbol>, String> {
        let text = |one: &Value| one.as_str().map(Symbol::new).ok_or_else(|| format!("{key}: {one} is not a text"));
        list(value, key)?.iter().map(text).collect()
    };
    let mut pods = Vec::new();
    for pod in list(input, "pods")? {
        note_unread("pod", pod, &["name", "phase", "conditions"]);
        let phase = match text(pod, "phase")? {
            Some("Running") => PodPhase::Running,
            Some("Succeeded") => PodPhase::Succeeded,
            Some("Failed") => PodPhase::Failed,
            Some("Unknown") => PodPhase::Unknown,
            Some("Pending") | None => PodPhase::Pending,
            Some(other) => return Err(format!("unknown phase {other:?}")),
        };
        pods.push((phase, symbols(pod, "conditions")?));
    }
    let views: Vec<JobPodView<'_>> =
        pods.iter().map(|(phase, conditions)| JobPodView { phase: *phase, conditions }).collect();
    let pending = is_pending(&views, &symbols(input, "pendingPodConditions")?);
    same("pending", i64::from(pending), integer(expected, "pending")?.unwrap_or(0))
}

fn cron_case(input: &Value, expected: &Value) -> Result<(), String> {
    let fails = flag_or(expected, "error", false)?;
    let source = TriggerSource::read("cron", &metadata(input), None).map_err(|problem| problem.to_string());
    let window = source.and_then(|source| match &source.reads {
        Reads::Cron(cron) => Ok((CronWindow::new(cron).map_err(|problem| problem.to_string())?, source.clone())),
        _ => Err("not a cron trigger".to_owned()),
    });
    let (window, source) = match window {
        Err(_) if fails => return Ok(()),
        other => other?,
    };
    let now = text(input, "now")?.unwrap_or_default();
    let now: Timestamp = now.parse().map_err(|error| format!("now: {error}"))?;
    let state = window.at(now);
    let value = trigger_value(&source, &SourceReading::Window(state.active)).map_err(|problem| problem.to_string())?;
    same("error", false, fails)?;
    same("active", value.active, flag_or(expected, "active", value.active)?)?;
    same("metric", value.milli, integer(expected, "metric")?.map_or(value.milli, |metric| metric * 1_000))?;
    let target = number_or(expected, "hpa_target_average_value", 1.0)? * 1000.0;
    same("target in thousandths", target_milli(source), target as i64)
}

/// Every scalar of a case as metadata, with something for what a manifest must have and a case leaves out.
fn metadata(input: &Value) -> Labels {
    let mut labels = Labels::new();
    for key in ["queueURL", "consumerGroup", "topic", "queueName", "listName", "podSelector", "scalerAddress", "query"]
    {
        labels.set(Symbol::new(key), Symbol::new("case"));
    }
    // rabbitmq has a default for its target, and an old name for it.
    for key in ["threshold", "value"].iter().filter(|_| input["trigger"] != "rabbitmq") {
        labels.set(Symbol::new(key), Symbol::new("1"));
    }
    for (key, value) in input.as_object().into_iter().flatten() {
        if let Some(text) = scalar(value) {
            labels.set(Symbol::new(key), Symbol::new(&text));
        }
    }
    labels
}

fn target_milli(source: TriggerSource) -> i64 {
    let metric_type = TriggerMetricType::AverageValue;
    match target_of(&Trigger { name: None, source, metric_type, use_cached_metrics: false }) {
        MetricTarget::AverageValue(quantity) | MetricTarget::Value(quantity) => quantity.milli_value(),
        MetricTarget::Utilization(percent) => i64::from(percent),
    }
}

fn value_case(input: &Value, expected: &Value) -> Result<(), String> {
    let kind = text(input, "trigger")?.unwrap_or_default();
    let fails = flag_or(expected, "error", false)?;
    let source = match TriggerSource::read(kind, &metadata(input), None) {
        Err(_) if fails => return Ok(()),
        other => other.map_err(|problem| problem.to_string())?,
    };
    // A partition whose latest offset is not known is left out.
    let known = list(input, "partitions")?.iter().filter(|partition| !partition["latest"].is_null());
    let partitions = known.map(partition).collect::<Result<Vec<_>, _>>()?;
    let queues = match &input["queues"] {
        Value::Null => vec![queue(input)?],
        _ => list(input, "queues")?.iter().map(named_queue).collect::<Result<Vec<_>, _>>()?,
    };
    let number = |key| integer(input, key).map(Option::unwrap_or_default);
    let reading = match kind {
        "prometheus" => SourceReading::Query(query_result(&input["result"])?),
        "aws-sqs-queue" => SourceReading::Messages {
            visible: number("visible")?,
            in_flight: number("in_flight")?,
            delayed: number("delayed")?,
        },
        "kafka" => SourceReading::Partitions(&partitions),
        "rabbitmq" => SourceReading::Queues(&queues),
        "redis" => SourceReading::Messages { visible: number("length")?, in_flight: 0, delayed: 0 },
        "kubernetes-workload" if flag_or(input, "groupByNode", false)? => SourceReading::Count(number("nodes")?),
        "kubernetes-workload" => SourceReading::Count(number("matching_pods")?),
        "external" | "external-push" => SourceReading::Told {
            value: number_or(input, "told_value", number_or(input, "metric", 0.0)?)?,
            active: flag_or(input, "active", false)?,
        },
        other => return Err(format!("unknown trigger {other:?}")),
    };
    let value = match trigger_value(&source, &reading) {
        Err(_) if fails => return Ok(()),
        other => other.map_err(|problem| problem.to_string())?,
    };
    same("error", false, fails)?;
    let wanted = number_or(expected, "metric", value.milli as f64 / 1000.0)?;
    same("metric in thousandths", value.milli, (wanted * 1000.0).round() as i64)?;
    same("active", value.active, flag_or(expected, "active", value.active)?)?;
    let replicas = per_target(value.milli, target_milli(source));
    same("hpa_replicas", replicas, integer(expected, "hpa_replicas")?.unwrap_or(replicas))
}

/// Replicas that an average-value target asks for.
fn per_target(milli: i64, target_milli: i64) -> i64 {
    (milli as f64 / target_milli as f64).ceil() as i64
}

fn partition(partition: &Value) -> Result<Partition, String> {
    let before = ["committed_before", "previous", "previous_committed", "previous_offset", "last_committed"];
    note_unread("partition", partition, &[&["name", "latest", "committed"], &before[..]].concat());
    Ok(Partition {
        latest: integer(partition, "latest")?.unwrap_or(0),
        // Brokers say -1 for no offset.
        committed: integer(partition, "committed")?.filter(|&committed| committed >= 0),
        committed_before: first_integer(partition, &before)?,
    })
}

fn queue(queue: &Value) -> Result<QueueFigures, String> {
    let messages = integer(queue, "messages")?.unwrap_or(0);
    let unacknowledged = first_integer(queue, &["unacknowledged", "unacked"])?.unwrap_or(0);
    let rate = |keys: [&str; 3]| keys.iter().try_fold(0.0, |found, key| number_or(queue, key, found));
    Ok(QueueFigures {
        messages,
        ready: first_integer(queue, &["ready", "messages_ready"])?.unwrap_or(messages - unacknowledged),
        publish_rate: rate(["publish_rate", "publishRate", "rate"])?,
        deliver_rate: rate(["deliver_rate", "deliverRate", "deliver_get_rate"])?,
    })
}

/// One of several queues.
fn named_queue(one: &Value) -> Result<QueueFigures, String> {
    note_unread("queue", one, &[&["name"], &OF_QUEUES[..]].concat());
    queue(one)
}

fn first_integer(value: &Value, keys: &[&str]) -> Result<Option<i64>, String> {
    keys.iter().try_fold(None, |found: Option<i64>, key| Ok(found.or(integer(value, key)?)))
}

fn query_result(result: &Value) -> Result<QueryResult, String> {
    Ok(match result {
        Value::Null => QueryResult::Empty,
        Value::Number(_) => QueryResult::Value(result.as_f64().unwrap_or(f64::NAN)),
        Value::Array(elements) => match elements.as_slice() {
            [] => QueryResult::Empty,
            [one] => query_result(one)?,
            _ => QueryResult::Several,
        },
        Value::String(text) => match text.as_str() {
            "empty" | "null" | "none" => QueryResult::Empty,
            "several" | "multiple" | "many" => QueryResult::Several,
            number => QueryResult::Value(number.parse().map_err(|_| format!("unknown result {number:?}"))?),
        },
        other => return Err(format!("unknown result {other}")),
    })
}

fn mapping_case(input: &Value, expected: &Value) -> Result<(), String> {
    let object = scaled_object(input)?;
    let Some(hpa) = horizontal_pod_autoscaler(&object) else {
        return same("autoscaler", true, expected["hpa_min"].is_null());
    };
    let min = hpa.min_replicas.unwrap_or(1);
    same("hpa_min", min, count_or(expected, "hpa_min", min)?)?;
    same("hpa_max", hpa.max_replicas, count_or(expected, "hpa_max", hpa.max_replicas)?)?;
    if expected.get("behavior").is_none() {
        return Ok(());
    }
    same("behavior", hpa.behavior, optional_behavior(&expected["behavior"])?)
}

fn modifiers_case(input: &Value, expected: &Value) -> Result<(), String> {
    // A trigger without a value is nil to the formula; one that says "error" failed.
    let failed = |value: &&Value| value.as_str() == Some("error");
    let unreadable = |value: &&Value| !value.is_null() && !value.is_number() && !failed(value);
    let values: Vec<&Value> = input["values"].as_object().into_iter().flatten().map(|(_, value)| value).collect();
    if let Some(value) = values.iter().find(|value| unreadable(value)) {
        return Err(format!("values: {value} is neither a number nor null nor \"error\""));
    }
    let modifiers = ScalingModifiers {
        formula: text(input, "formula")?.unwrap_or_default().to_owned(),
        target: quantity(&input["target"])?,
        // No case asks whether a fallback is taken.
        is_whole: false,
        activation_target: quantity(&input["activationTarget"])?,
        metric_type: TriggerMetricType::AverageValue,
    };
    let value = |name: &str| input["values"].get(name).map(Value::as_f64);
    let outcome = Formula::parse(&modifiers.formula).and_then(|formula| formula.evaluate(&value));
    let fallback = if input["fallback_replicas"].is_null() { None } else { Some(count(input, "fallback_replicas")?) };
    let failing = values.iter().any(failed);
    let composite = |value| composite(&modifiers, value, fallback);
    if failing {
        return failed_modifiers_case(&values, outcome.ok().map(composite), expected);
    }
    let metric = match outcome {
        Err(_) if flag_or(expected, "error", false)? => return Ok(()),
        other => composite(other.map_err(|error| error.to_string())?),
    };
    same("error", false, flag_or(expected, "error", false)?)?;
    let wanted = number_or(expected, "metric", metric.milli as f64 / 1000.0)?;
    same("metric in thousandths", metric.milli, (wanted * 1000.0).round() as i64)?;
    same("active", metric.active, flag_or(expected, "active", metric.active)?)?;
    let replicas = per_target(metric.milli, modifiers.target.milli_value());
    same("hpa_replicas", replicas, integer(expected, "hpa_replicas")?.unwrap_or(replicas))
}

/// A formula one of whose triggers failed: whatever it makes of the others, the object is not active.
fn failed_modifiers_case(values: &[&Value], metric: Option<Composite>, expected: &Value) -> Result<(), String> {
    let state = |value: &&Value| TriggerState { active: value.is_number(), failed: value.is_string() };
    let states: Vec<TriggerState> = values.iter().map(state).collect();
    let source = TriggerSource::read("redis", &metadata(&Value::Null), None).map_err(|problem| problem.to_string())?;
    let metric_type = TriggerMetricType::AverageValue;
    let trigger = Trigger { name: None, source, metric_type, use_cached_metrics: false };
    let target = ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("case") };
    let object = ScaledObject::new(Symbol::new("default"), Symbol::new("case"), target, vec![trigger; states.len()]);
    let active = is_active(&object, &states, Some(metric.is_some_and(|metric| metric.active)));
    same("active", active, flag_or(expected, "active", false)?)?;
    same("error", true, flag_or(expected, "error", true)?)?;
    match (&expected["metric"], metric) {
        (Value::Null, _) => Ok(()),
        (_, None) => Err("the formula has no value".to_owned()),
        (_, Some(metric)) => {
            let wanted = number_or(expected, "metric", 0.0)?;
            same("metric in thousandths", metric.milli, (wanted * 1000.0).round() as i64)
        }
    }
}

/// A number as a case or a manifest writes it; nothing is zero.
fn quantity(value: &Value) -> Result<Quantity, String> {
    let text = match value {
        Value::Null => return Ok(Quantity::default()),
        Value::String(text) if text.is_empty() => return Ok(Quantity::default()),
        Value::String(text) => text.clone(),
        number => number.to_string(),
    };
    text.parse().map_err(|error| format!("{text} {error}"))
}
