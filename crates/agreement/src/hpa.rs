//! The hpa suite: replica decisions of the HorizontalPodAutoscaler.

use std::path::{Path, PathBuf};

use nodecast_model::domain::hpa::{
    Behavior, HorizontalPodAutoscaler, MetricSource, MetricSpec, MetricTarget, ScaleTargetRef, ScalingPolicy,
    ScalingPolicyKind, ScalingRules, SelectPolicy,
};
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::resources::ResourceName;
use nodecast_model::domain::{KubernetesVersion, Quantity, SimDuration, SimTime, Symbol};
use nodecast_replicas::hpa::{
    BehaviorBounds, ConditionReason, HpaParameters, HpaState, HpaView, MetricReading, PodSample, PodView,
    ReadyCondition, Recommendation, Reported, Sample, ScaleEvent, SettledPods, clamp_without_behavior, group_pods,
    limit_rate, propose, replica_change, stabilize_with_behavior, stabilize_without_behavior, store_scale_event, sync,
    tolerance_of,
};
use serde_json::Value;

use crate::fields::{
    NOW, ago, check_read, count, count_or, either, flag_or, integer, list, note_unread, number_or, same,
    same_condition, seconds_or, text,
};
use crate::tally::{Tally, run_cases};

/// Runs every case below `paths`.
pub fn run(paths: &[PathBuf], _catalogs: Option<&Path>) -> Result<Tally, String> {
    run_cases(paths, check)
}

/// What every case may have.
const OF_EVERY_CASE: [&str; 9] = ["id", "kind", "name", "origin", "why", "expected", "params", "gates", "source"];
/// The fields of each kind beside them: of the case, then of what is expected.
const FIELDS: [(&str, &[&str], &[&str]); 8] = [
    (
        "metric",
        &["current_replicas", "status_replicas", "metric", "pods"],
        &["replicas", "reported", "raw_average_milli", "error"],
    ),
    ("group", &["resource", "pods"], &["ready", "unready", "missing", "ignored"]),
    ("clamp_legacy", &["current", "desired", "min", "max"], &["replicas", "reason"]),
    ("stabilize_legacy", &["desired", "recommendations", "window_s"], &["replicas", "log_values_after"]),
    (
        "behavior_rate",
        &["current", "desired", "min", "max", "scale_up", "scale_down", "scale_up_events", "scale_down_events"],
        &["replicas", "reason"],
    ),
    (
        "stabilize_behavior",
        &["current", "desired", "recommendations", "up_window_s", "down_window_s"],
        &["replicas", "reason", "log_values_after"],
    ),
    ("store_event", &["previous", "change", "longest_policy_period_s"], &["events", "change_in_last_60s_before"]),
    (
        "reconcile",
        &["spec", "pods", "recommendations", "scale_up_events", "scale_down_events", "scaled_to_zero_condition"],
        &[
            "desired",
            "scaled",
            "AbleToScale",
            "ScalingActive",
            "ScalingLimited",
            "ScaledToZero",
            "event_reason",
            "proposals",
        ],
    ),
];

/// Fails on fields that nothing here reads.
fn check_fields(case: &Value) -> Result<(), String> {
    let kind = text(case, "kind")?.unwrap_or_default();
    let Some((_, item, expected)) = FIELDS.iter().find(|(name, ..)| *name == kind) else { return Ok(()) };
    note_unread("case", case, &[&OF_EVERY_CASE[..], item].concat());
    check_read("expected", &case["expected"], expected)?;
    let params = ["tolerance_up", "tolerance_down", "cpu_init_s", "readiness_delay_s", "legacy_factor"];
    note_unread("params", &case["params"], &params);
    note_unread("gates", &case["gates"], &["HPAConfigurableTolerance", "HPAScaleToZero"]);
    Ok(())
}

fn check(case: &Value) -> Result<(), String> {
    check_fields(case)?;
    match text(case, "kind")? {
        Some("metric") => metric_case(case),
        Some("group") => group_case(case),
        Some("clamp_legacy") => clamp_case(case),
        Some("stabilize_legacy") => stabilize_case(case),
        Some("behavior_rate") => rate_case(case),
        Some("stabilize_behavior") => stabilize_behavior_case(case),
        Some("store_event") => store_case(case),
        Some("reconcile") => reconcile_case(case),
        other => Err(format!("unknown kind {other:?}")),
    }
}

fn metric_case(case: &Value) -> Result<(), String> {
    let expected = &case["expected"];
    let metric = metric_spec(&case["metric"])?;
    let parameters = parameters(case)?;
    let current = count(case, "current_replicas")?;
    let pods = Pods::read(list(case, "pods")?)?;
    let reading = Reading::read(&case["metric"], &pods)?;
    let view = HpaView {
        now: NOW,
        spec_replicas: current,
        status_replicas: count_or(case, "status_replicas", current)?,
        pods: &pods.views,
        settled: SettledPods::default(),
        readings: &[],
        selector_problem: None,
    };
    let tolerance = tolerance_of(&autoscaler(1, i32::MAX, Vec::new(), None), &parameters);
    let proposal = match (propose(&metric, reading.borrow(), &view, tolerance, &parameters), text(expected, "error")?) {
        (Err(problem), Some(part)) if problem.text.contains(part) => return Ok(()),
        (Err(problem), Some(part)) => return Err(format!("fails with {:?}, expected {part:?}", problem.text)),
        (Err(problem), None) => return Err(format!("fails with {:?}", problem.text)),
        (Ok(proposal), Some(part)) => return Err(format!("proposes {proposal:?}, expected the failure {part:?}")),
        (Ok(proposal), None) => proposal,
    };
    same("replicas", proposal.replicas, count(expected, "replicas")?)?;
    let (reported, mean) = match proposal.reported {
        Reported::Utilization { percent, mean_milli } => (i64::from(percent), mean_milli),
        Reported::AverageValue(milli) | Reported::Value(milli) => (milli, milli),
    };
    same("reported", reported, integer(expected, "reported")?.unwrap_or(reported))?;
    same("raw_average_milli", mean, integer(expected, "raw_average_milli")?.unwrap_or(mean))
}

fn group_case(case: &Value) -> Result<(), String> {
    let expected = &case["expected"];
    let pods = Pods::read(list(case, "pods")?)?;
    let cpu = text(case, "resource")? == Some("cpu");
    let groups = group_pods(&pods.views, &pods.samples, cpu, NOW, &parameters(case)?);
    for (name, found) in
        [("ready", groups.ready), ("unready", groups.unready), ("missing", groups.missing), ("ignored", groups.ignored)]
    {
        same(name, found as i64, integer(expected, name)?.unwrap_or(0))?;
    }
    Ok(())
}

fn clamp_case(case: &Value) -> Result<(), String> {
    let bounds = (count(case, "min")?, count(case, "max")?);
    let factor = parameters(case)?.scale_up_limit_factor;
    let found = clamp_without_behavior(count(case, "current")?, count(case, "desired")?, bounds, factor);
    count_and_reason(found, &case["expected"])
}

fn stabilize_case(case: &Value) -> Result<(), String> {
    let mut log = recommendations(list(case, "recommendations")?)?;
    let window = seconds_or(case, "window_s", SimDuration::from_secs(300))?;
    let replicas = stabilize_without_behavior(&mut log, count(case, "desired")?, window, NOW);
    same("replicas", replicas, count(&case["expected"], "replicas")?)?;
    same_log(&log, &case["expected"])
}

fn rate_case(case: &Value) -> Result<(), String> {
    let behavior = Behavior { scale_up: rules(&case["scale_up"])?, scale_down: rules(&case["scale_down"])? };
    let bounds = BehaviorBounds { behavior: &behavior, min: count(case, "min")?, max: count(case, "max")? };
    let events = [events(list(case, "scale_up_events")?)?, events(list(case, "scale_down_events")?)?];
    let counts = (count(case, "current")?, count(case, "desired")?);
    count_and_reason(limit_rate(counts, bounds, (&events[0], &events[1]), NOW), &case["expected"])
}

fn stabilize_behavior_case(case: &Value) -> Result<(), String> {
    let mut log = recommendations(list(case, "recommendations")?)?;
    let windows = (
        seconds_or(case, "up_window_s", SimDuration::ZERO)?,
        seconds_or(case, "down_window_s", SimDuration::from_secs(300))?,
    );
    let counts = (count(case, "current")?, count(case, "desired")?);
    count_and_reason(stabilize_with_behavior(&mut log, counts, windows, NOW), &case["expected"])?;
    same_log(&log, &case["expected"])
}

fn store_case(case: &Value) -> Result<(), String> {
    let expected = &case["expected"];
    let mut stored = events(list(case, "previous")?)?;
    let before = replica_change(&stored, SimDuration::from_secs(60), NOW);
    same("change before", before, count_or(expected, "change_in_last_60s_before", before)?)?;
    let period = seconds_or(case, "longest_policy_period_s", SimDuration::ZERO)?;
    store_scale_event(&mut stored, count(case, "change")?, period, NOW);
    let wanted = list(expected, "events")?
        .iter()
        .map(|event| Ok((count(event, "change")?, flag_or(event, "outdated", false)?)))
        .collect::<Result<Vec<_>, String>>()?;
    same("events", stored.iter().map(|event| (event.change, event.outdated)).collect(), wanted)
}

fn reconcile_case(case: &Value) -> Result<(), String> {
    let (spec, expected) = (&case["spec"], &case["expected"]);
    note_unread("spec", spec, &["min", "max", "spec_replicas", "status_replicas", "metrics", "behavior"]);
    let metrics = list(spec, "metrics")?;
    let behavior = match &spec["behavior"] {
        Value::Null => None,
        block => Some(behavior(block)?),
    };
    let specs = metrics.iter().map(metric_spec).collect::<Result<Vec<_>, _>>()?;
    let mut hpa = autoscaler(1, count(spec, "max")?, specs, behavior);
    hpa.min_replicas = if spec["min"].is_null() { None } else { Some(count(spec, "min")?) };
    let own_pods = metrics.iter().find(|metric| !metric["pods"].is_null()).unwrap_or(case);
    let pods = Pods::read(list(if list(case, "pods")?.is_empty() { own_pods } else { case }, "pods")?)?;
    let readings = metrics.iter().map(|metric| Reading::read(metric, &pods)).collect::<Result<Vec<_>, _>>()?;
    let readings: Vec<MetricReading<'_>> = readings.iter().map(Reading::borrow).collect();
    let current = count(spec, "spec_replicas")?;
    let view = HpaView {
        now: NOW,
        spec_replicas: current,
        status_replicas: count_or(spec, "status_replicas", current)?,
        pods: &pods.views,
        settled: SettledPods::default(),
        readings: &readings,
        selector_problem: None,
    };
    let mut state = HpaState {
        recommendations: match &case["recommendations"] {
            Value::String(_) => None,
            _ => Some(recommendations(list(case, "recommendations")?)?),
        },
        scale_up_events: events(list(case, "scale_up_events")?)?,
        scale_down_events: events(list(case, "scale_down_events")?)?,
        ..HpaState::default()
    };
    if flag_or(case, "scaled_to_zero_condition", false)? {
        state.conditions.scaled_to_zero.set(true, ConditionReason::ScaledToZero, NOW);
    }
    let decision = sync(&hpa, &mut state, &view, &parameters(case)?);
    same("desired", decision.desired, count(expected, "desired")?)?;
    same("scaled", decision.rescales(), flag_or(expected, "scaled", decision.rescales())?)?;
    for (name, condition) in [
        ("AbleToScale", state.conditions.able_to_scale),
        ("ScalingActive", state.conditions.scaling_active),
        ("ScalingLimited", state.conditions.scaling_limited),
        ("ScaledToZero", state.conditions.scaled_to_zero),
    ] {
        same_condition(name, Some(&condition.to_string()), text(expected, name)?)?;
    }
    if let Some(wanted) = text(expected, "event_reason")? {
        let said = decision.events.iter().any(|event| event.text.contains(wanted));
        same("whether an event says so", said, true)?;
    }
    if expected["proposals"].is_null() {
        return Ok(());
    }
    let found: Vec<Option<i64>> =
        decision.proposals.iter().map(|one| one.as_ref().ok().map(|one| i64::from(one.replicas))).collect();
    same("proposals", found, list(expected, "proposals")?.iter().map(Value::as_i64).collect())
}

fn count_and_reason((replicas, reason): (i32, ConditionReason), expected: &Value) -> Result<(), String> {
    same("replicas", replicas, count(expected, "replicas")?)?;
    same("reason", reason.as_str(), text(expected, "reason")?.unwrap_or(reason.as_str()))
}

fn same_log(log: &[Recommendation], expected: &Value) -> Result<(), String> {
    if expected["log_values_after"].is_null() {
        return Ok(());
    }
    let wanted = list(expected, "log_values_after")?.iter().filter_map(Value::as_i64).collect();
    same("log", log.iter().map(|entry| i64::from(entry.replicas)).collect::<Vec<_>>(), wanted)
}

/// The release that the cases were taken from, with a case's own constants and gates.
fn parameters(case: &Value) -> Result<HpaParameters, String> {
    let version = KubernetesVersion::from_minor(KubernetesVersion::NEWEST).unwrap_or_default();
    let (default, given, gates) = (HpaParameters::for_version(version), &case["params"], &case["gates"]);
    // Cases without parameters come from unit tests, which have shorter periods than production.
    Ok(HpaParameters {
        tolerance_up: number_or(given, "tolerance_up", default.tolerance_up)?,
        tolerance_down: number_or(given, "tolerance_down", default.tolerance_down)?,
        cpu_initialization_period: seconds_or(given, "cpu_init_s", SimDuration::from_secs(120))?,
        initial_readiness_delay: seconds_or(given, "readiness_delay_s", SimDuration::from_secs(10))?,
        scale_up_limit_factor: number_or(given, "legacy_factor", default.scale_up_limit_factor)?,
        configurable_tolerance: flag_or(gates, "HPAConfigurableTolerance", default.configurable_tolerance)?,
        scale_to_zero: flag_or(gates, "HPAScaleToZero", default.scale_to_zero)?,
        ..default
    })
}

fn autoscaler(min: i32, max: i32, metrics: Vec<MetricSpec>, behavior: Option<Behavior>) -> HorizontalPodAutoscaler {
    HorizontalPodAutoscaler {
        namespace: Symbol::new("default"),
        name: Symbol::new("case"),
        target: ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("case") },
        min_replicas: Some(min),
        max_replicas: max,
        metrics,
        behavior,
    }
}

fn metric_spec(metric: &Value) -> Result<MetricSpec, String> {
    let known = [
        "type",
        "name",
        "resource",
        "container",
        "target_kind",
        "target",
        "values_milli",
        "pods",
        "error",
        "error_reason",
        "extra_unmatched_samples",
    ];
    note_unread("metric", metric, &known);
    let name = Symbol::new(text(metric, "name")?.or(text(metric, "container")?).unwrap_or("metric"));
    let resource = ResourceName(Symbol::new(text(metric, "resource")?.unwrap_or("cpu")));
    let source = match text(metric, "type")? {
        Some("Resource") => MetricSource::Resource { name: resource },
        Some("ContainerResource") => MetricSource::ContainerResource { name: resource, container: name },
        Some("Pods") => MetricSource::Pods { metric: name, selector: None },
        Some("External") => MetricSource::External { metric: name, selector: None },
        // A type that the controller does not know reaches it through the reading.
        _ => MetricSource::Object {
            metric: name,
            selector: None,
            object: ScaleTargetRef { kind: Symbol::new("Service"), name },
        },
    };
    let target = integer(metric, "target")?.unwrap_or(0);
    let milli = Quantity::from_nanos(i128::from(target) * 1_000_000);
    let target = match text(metric, "target_kind")? {
        Some("Utilization") => MetricTarget::Utilization(count(metric, "target")?),
        Some("AverageValue") => MetricTarget::AverageValue(milli),
        Some("Value") | None => MetricTarget::Value(milli),
        Some(other) => return Err(format!("unknown target_kind {other:?}")),
    };
    Ok(MetricSpec { source, target })
}

/// The pods of a case, with their samples of one metric.
#[derive(Clone)]
struct Pods {
    views: Vec<PodView>,
    samples: Vec<PodSample>,
}

impl Pods {
    fn read(pods: &[Value]) -> Result<Self, String> {
        let mut all = Self { views: Vec::new(), samples: Vec::new() };
        for pod in pods {
            let known = [
                "name",
                "phase",
                "ready",
                "deleting",
                "started_ago_s",
                "ready_changed_ago_s",
                "sample_age_s",
                "window_s",
                "request_milli",
                "usage_milli",
            ];
            note_unread("pod", pod, &known);
            let phase = match text(pod, "phase")? {
                Some("Pending") => PodPhase::Pending,
                Some("Running") | None => PodPhase::Running,
                Some("Succeeded") => PodPhase::Succeeded,
                Some("Failed") => PodPhase::Failed,
                Some("Unknown") => PodPhase::Unknown,
                Some(other) => return Err(format!("unknown phase {other:?}")),
            };
            let since = past(pod, "ready_changed_ago_s")?.unwrap_or(NOW);
            let no_condition = pod.get("ready").is_some_and(Value::is_null);
            let ready = flag_or(pod, "ready", true)?;
            all.views.push(PodView {
                phase,
                deleting: flag_or(pod, "deleting", false)?,
                start_time: past(pod, "started_ago_s")?,
                ready: (!no_condition).then_some(ReadyCondition { ready, since }),
            });
            let window = seconds_or(pod, "window_s", SimDuration::from_secs(60))?;
            let at = ago(pod, "sample_age_s")?.unwrap_or(NOW);
            let sample = integer(pod, "usage_milli")?.map(|milli| Sample { milli, at, window });
            all.samples.push(PodSample { sample, request: integer(pod, "request_milli")? });
        }
        Ok(all)
    }
}

/// An instant of a pod's life: long ago unless stated, `None` if stated as null.
fn past(pod: &Value, key: &str) -> Result<Option<SimTime>, String> {
    let long_ago = NOW + SimDuration::from_secs(-100_000);
    if pod.get(key).is_none() { Ok(Some(long_ago)) } else { ago(pod, key) }
}

/// A reading that owns what the policy borrows.
enum Reading {
    PerPod { samples: Vec<PodSample>, unmatched: Vec<i64> },
    Series(Vec<i64>),
    Failed(String),
    UnknownType(String),
}

impl Reading {
    fn read(metric: &Value, pods: &Pods) -> Result<Self, String> {
        let kind = text(metric, "type")?.unwrap_or_default();
        let per_pod = ["Resource", "ContainerResource", "Pods"].contains(&kind);
        if !per_pod && kind != "Object" && kind != "External" {
            return Ok(Self::UnknownType(kind.to_owned()));
        }
        if let Some(error) = text(metric, "error")? {
            return Ok(Self::Failed(error.to_owned()));
        }
        if !per_pod {
            let value = |value: &Value| value.as_i64().ok_or_else(|| format!("{value} is not a value in thousandths"));
            return Ok(Self::Series(list(metric, "values_milli")?.iter().map(value).collect::<Result<_, _>>()?));
        }
        let samples = match &metric["pods"] {
            Value::Null => pods.samples.clone(),
            _ => Pods::read(list(metric, "pods")?)?.samples,
        };
        let unmatched = usize::try_from(integer(metric, "extra_unmatched_samples")?.unwrap_or(0));
        Ok(Self::PerPod { samples, unmatched: vec![0; unmatched.map_err(|error| error.to_string())?] })
    }

    fn borrow(&self) -> MetricReading<'_> {
        match self {
            Self::PerPod { samples, unmatched } => MetricReading::PerPod { samples, unmatched },
            Self::Series(values) => MetricReading::Series(values),
            Self::Failed(text) => MetricReading::Failed(text),
            Self::UnknownType(text) => MetricReading::UnknownType(text),
        }
    }
}

/// A behavior block.
pub fn behavior(block: &Value) -> Result<Behavior, String> {
    note_unread("behavior", block, &["scaleUp", "scaleDown"]);
    Ok(Behavior { scale_up: rules(&block["scaleUp"])?, scale_down: rules(&block["scaleDown"])? })
}

/// The rules of one direction of a behavior block.
fn rules(rules: &Value) -> Result<ScalingRules, String> {
    let known = ["select", "selectPolicy", "stabilization_s", "stabilizationWindowSeconds", "policies", "tolerance"];
    note_unread("rules", rules, &known);
    let select_policy = match either(rules, ["select", "selectPolicy"]).as_str() {
        None => None,
        Some("Max") => Some(SelectPolicy::Max),
        Some("Min") => Some(SelectPolicy::Min),
        Some("Disabled") => Some(SelectPolicy::Disabled),
        Some(other) => return Err(format!("unknown select {other:?}")),
    };
    let windows = ["stabilization_s", "stabilizationWindowSeconds"];
    let window = windows.iter().try_fold(SimDuration::ZERO, |found, key| seconds_or(rules, key, found))?;
    let tolerance = match &rules["tolerance"] {
        Value::Null => None,
        Value::String(text) => Some(text.parse()),
        number => Some(number.to_string().parse()),
    };
    let policies = list(rules, "policies")?.iter().map(policy).collect::<Result<Vec<_>, _>>()?;
    Ok(ScalingRules {
        stabilization_window: (!either(rules, windows).is_null()).then_some(window),
        select_policy,
        policies: (!rules["policies"].is_null()).then_some(policies),
        tolerance: tolerance.transpose().map_err(|error| format!("tolerance {error}"))?,
    })
}

fn policy(policy: &Value) -> Result<ScalingPolicy, String> {
    note_unread("policy", policy, &["type", "value", "period_s", "periodSeconds"]);
    let kind = match text(policy, "type")? {
        Some("Pods") => ScalingPolicyKind::Pods,
        Some("Percent") => ScalingPolicyKind::Percent,
        other => return Err(format!("unknown policy type {other:?}")),
    };
    let spelled = ["period_s", "periodSeconds"];
    let period = spelled.iter().try_fold(SimDuration::from_secs(15), |found, key| seconds_or(policy, key, found))?;
    Ok(ScalingPolicy { kind, value: count(policy, "value")?, period })
}

fn recommendations(entries: &[Value]) -> Result<Vec<Recommendation>, String> {
    let entry = |entry: &Value| {
        note_unread("recommendation", entry, &["value", "age_s"]);
        Ok(Recommendation { replicas: count(entry, "value")?, at: ago(entry, "age_s")?.unwrap_or(NOW) })
    };
    entries.iter().map(entry).collect()
}

fn events(events: &[Value]) -> Result<Vec<ScaleEvent>, String> {
    let event = |event: &Value| {
        note_unread("event", event, &["change", "age_s", "outdated"]);
        Ok(ScaleEvent {
            change: count(event, "change")?,
            at: ago(event, "age_s")?.unwrap_or(NOW),
            outdated: flag_or(event, "outdated", false)?,
        })
    };
    events.iter().map(event).collect()
}
