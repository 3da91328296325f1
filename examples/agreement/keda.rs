//! The keda suite: decisions of KEDA.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nodecast::domain::hpa::{Behavior, MetricTarget, ScaleTargetRef};
use nodecast::domain::keda::{
    Fallback, FallbackBehavior, JobStrategy, ScaledJob, ScaledObject, ScalingAnnotations, ScalingModifiers, Trigger,
    TriggerCalculation, TriggerMetricType, TriggerSource,
};
use nodecast::domain::labels::Labels;
use nodecast::domain::pod::{PodPhase, PodSpec};
use nodecast::domain::workload::JobSpec;
use nodecast::domain::{Quantity, SimDuration, Symbol};
use nodecast::policy::replicas::keda::{
    CronWindow, FallbackCounts, FallbackRead, Formula, JobDemand, JobPodView, JobTrigger, Partition, PollView,
    QueryResult, QueueFigures, SourceReading, combine, composite, horizontal_pod_autoscaler, is_pending, plan_jobs,
    poll, read_with_fallback, target_of, trigger_value,
};
use serde_json::Value;

use super::fields::{NOW, ago, count, count_or, flag_or, integer, list, number_or, run_cases, same, seconds_or, text};
use super::hpa::rules;
use super::tally::Tally;

/// Runs every case below `paths`.
pub fn run(paths: &[PathBuf], _catalogs: Option<&Path>) -> Result<Tally, String> {
    run_cases(paths, check)
}

fn check(case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
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
    let active = decision.active.map(|reason| reason.as_condition());
    same_condition("Active", active, text(expected, "Active")?)?;
    same_condition("Ready", decision.ready.map(|reason| reason.as_condition()), text(expected, "Ready")?)
}

/// Compares `True/Reason`, or the status alone where no reason is expected.
fn same_condition(name: &str, found: Option<(&str, &str)>, wanted: Option<&str>) -> Result<(), String> {
    let Some(wanted) = wanted else { return Ok(()) };
    let found = found.map(|(status, reason)| match wanted.contains('/') {
        true => format!("{status}/{reason}"),
        false => status.to_owned(),
    });
    same(name, found.as_deref(), Some(wanted))
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
    let annotations = &input["annotations"];
    object.annotations = ScalingAnnotations {
        paused: flag_or(annotations, "paused", false)?,
        paused_replicas: if annotations["paused_replicas"].is_null() {
            None
        } else {
            Some(count(annotations, "paused_replicas")?)
        },
        paused_scale_in: flag_or(annotations, "paused_scale_in", false)?,
        paused_scale_out: flag_or(annotations, "paused_scale_out", false)?,
        force_activation: flag_or(annotations, "force_activation", false)?,
    };
    object.behavior = behavior(&input["behavior"])?;
    Ok(object)
}

fn behavior(block: &Value) -> Result<Option<Behavior>, String> {
    if block.is_null() {
        return Ok(None);
    }
    Ok(Some(Behavior { scale_up: rules(&block["scaleUp"])?, scale_down: rules(&block["scaleDown"])? }))
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
    let milli = match read {
        FallbackRead::Value(milli) | FallbackRead::Synthetic(milli) => Some(milli),
        FallbackRead::Nil | FallbackRead::Failed => None,
    };
    same("metric_milli", milli, integer(expected, "metric_milli")?)
}

fn scaled_job(input: &Value) -> Result<ScaledJob, String> {
    let job = JobSpec::of(Arc::new(PodSpec::default()));
    let mut job = ScaledJob::new(Symbol::new("default"), Symbol::new("case"), job, Vec::new());
    job.min_replica_count = integer(input, "minReplicaCount")?.unwrap_or(0);
    job.max_replica_count = integer(input, "maxReplicaCount")?.unwrap_or(100);
    job.strategy = match text(input, "strategy")? {
        Some("custom") => JobStrategy::Custom {
            queue_length_deduction: integer(input, "customScalingQueueLengthDeduction")?.unwrap_or(0),
            running_job_percentage: text(input, "customScalingRunningJobPercentage")?.unwrap_or_default().to_owned(),
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
        Ok(list(value, key)?.iter().filter_map(Value::as_str).map(Symbol::new).collect())
    };
    let mut pods = Vec::new();
    for pod in list(input, "pods")? {
        let phase = match text(pod, "phase")? {
            Some("Running") => PodPhase::Running,
            Some("Succeeded") => PodPhase::Succeeded,
            Some("Failed") => PodPhase::Failed,
            Some("Unknown") => PodPhase::Unknown,
            _ => PodPhase::Pending,
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
    let window = source.and_then(|source| match &source {
        TriggerSource::Cron(cron) => {
            Ok((CronWindow::new(cron).map_err(|problem| problem.to_string())?, source.clone()))
        }
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
    for key in ["queueURL", "consumerGroup", "queueName", "listName", "podSelector", "scalerAddress", "query"] {
        labels.set(Symbol::new(key), Symbol::new("case"));
    }
    for key in ["threshold", "value"] {
        labels.set(Symbol::new(key), Symbol::new(if input["trigger"] == "rabbitmq" { "20" } else { "1" }));
    }
    for (key, value) in input.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => continue,
        };
        labels.set(Symbol::new(key), Symbol::new(&text));
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
    let partitions = list(input, "partitions")?.iter().map(partition).collect::<Result<Vec<_>, _>>()?;
    let queues = match list(input, "queues")? {
        [] => vec![queue(input)?],
        queues => queues.iter().map(queue).collect::<Result<Vec<_>, _>>()?,
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
        "redis" => SourceReading::Length(number("length")?),
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
    Ok(Partition {
        latest: integer(partition, "latest")?.unwrap_or(0),
        committed: integer(partition, "committed")?,
        committed_before: first_integer(partition, &["committed_before", "previous", "previous_committed"])?,
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
            "empty" => QueryResult::Empty,
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
    same("hpa_min", hpa.min_replicas, Some(count(expected, "hpa_min")?))?;
    same("hpa_max", hpa.max_replicas, count(expected, "hpa_max")?)?;
    same("behavior", hpa.behavior, behavior(&expected["behavior"])?)
}

fn modifiers_case(input: &Value, expected: &Value) -> Result<(), String> {
    let modifiers = ScalingModifiers {
        formula: text(input, "formula")?.unwrap_or_default().to_owned(),
        target: quantity(&input["target"])?,
        activation_target: quantity(&input["activationTarget"])?,
        metric_type: TriggerMetricType::AverageValue,
    };
    let value = |name: &str| input["values"].get(name).map(Value::as_f64);
    let outcome = Formula::parse(&modifiers.formula).and_then(|formula| formula.evaluate(&value));
    let fallback = if input["fallback_replicas"].is_null() { None } else { Some(count(input, "fallback_replicas")?) };
    let metric = match outcome {
        Err(_) if flag_or(expected, "error", false)? => return Ok(()),
        other => composite(&modifiers, other.map_err(|error| error.to_string())?, fallback),
    };
    same("error", false, flag_or(expected, "error", false)?)?;
    let wanted = number_or(expected, "metric", metric.milli as f64 / 1000.0)?;
    same("metric in thousandths", metric.milli, (wanted * 1000.0).round() as i64)?;
    same("active", metric.active, flag_or(expected, "active", metric.active)?)?;
    let replicas = per_target(metric.milli, modifiers.target.milli_value());
    same("hpa_replicas", replicas, integer(expected, "hpa_replicas")?.unwrap_or(replicas))
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
