//! Cases of the Vertical Pod Autoscaler's updater and admission controller: what becomes of pods.

use std::collections::BTreeSet;

use nodecast_model::domain::vertical::ContainerRecommendation;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{SimTime, Symbol};
use nodecast_vpa::{
    Admission, Answers, Cap, ControllerKind, LastTermination, NamespaceLimits, NotAdmitted, PodGroup, PodToUpdate,
    RankedPod, Resize, ResizeCondition, Updater, UpdaterSettings, UpdaterView, Verdict, Written, admit, cap,
};
use serde_json::{Map, Value, json};

use crate::fields::{NOW, check_read, flag_or, integer, list, note_unread, number_or, same, text};
use crate::vpa::{
    amounts, autoscaler, container, containers, duration, named, namespace_limits, recommendation, same_answer,
};

/// By what a change may differ.
const CLOSE: f64 = 1e-12;

/// The API of a pass: what was asked of it, and which names it refuses.
#[derive(Default)]
struct Api {
    refused_evictions: BTreeSet<String>,
    refused_resizes: BTreeSet<String>,
    actions: Vec<Value>,
}

impl Answers for Api {
    fn evict(&mut self, pod: ObjectName) -> bool {
        let name = pod.name.to_string();
        let accepted = !self.refused_evictions.contains(&name);
        self.actions.push(if accepted { json!({"evict": name}) } else { json!({"evictionRefused": name}) });
        accepted
    }

    fn resize(&mut self, resize: Resize) -> bool {
        let name = resize.pod.name.to_string();
        let accepted = !self.refused_resizes.contains(&name);
        let resized = json!({"resize": name, "containers": containers(&resize.containers)});
        self.actions.push(if accepted { resized } else { json!({"resizeRefused": name}) });
        accepted
    }
}

/// Compares a case of the updater.
pub(crate) fn check_updater(input: &Value, expected: &Value) -> Result<(), String> {
    note_unread("input", input, &["controller", "flags", "vpaSpec", "limitRanges", "recommendation", "loops"]);
    let mut updater = Updater::new(settings(&input["flags"])?);
    let mut vpa = autoscaler(&input["vpaSpec"], &Value::Null, &input["recommendation"])?;
    let limits = namespace_limits(input)?;
    let expected = expected.as_array().ok_or("expected is not a list")?;
    let loops = list(input, "loops")?;
    same("the number of loops", loops.len(), expected.len())?;
    let mut now = NOW;
    for (number, (pass, expected)) in loops.iter().zip(expected).enumerate() {
        note_unread("loop", pass, &["after", "pods", "recommendation", "refuseEviction", "refuseResize"]);
        now += duration(pass, "after")?.unwrap_or_default();
        if let Some(newer) = recommendation(&pass["recommendation"])? {
            vpa.recommendation = Some(newer);
        }
        let names = |key: &str| -> Result<BTreeSet<String>, String> {
            Ok(list(pass, key)?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        let mut api = Api {
            refused_evictions: names("refuseEviction")?,
            refused_resizes: names("refuseResize")?,
            actions: Vec::new(),
        };
        let groups = [group(&input["controller"], list(pass, "pods")?, now)?];
        let ranked = updater.run(&UpdaterView { now, vpa: &vpa, limits: &limits, groups: &groups }, &mut api);
        compare_pass(&ranked, api.actions, expected).map_err(|difference| format!("loop {number}: {difference}"))?;
    }
    Ok(())
}

fn compare_pass(ranked: &[RankedPod], actions: Vec<Value>, expected: &Value) -> Result<(), String> {
    check_read("expected", expected, &["actions", "priorities", "verdicts"])?;
    let priorities = list(expected, "priorities")?;
    same("the number of priorities", ranked.len(), priorities.len())?;
    let mut verdicts = Map::new();
    for (found, expected) in ranked.iter().zip(priorities) {
        check_read("priority", expected, &["pod", "outsideRange", "scaleUp", "change"])?;
        let name = found.pod.name.as_str();
        same("the pod", name, text(expected, "pod")?.unwrap_or_default())?;
        same(
            &format!("outsideRange of {name}"),
            found.priority.outside_range,
            flag_or(expected, "outsideRange", false)?,
        )?;
        same(&format!("scaleUp of {name}"), found.priority.scale_up, flag_or(expected, "scaleUp", false)?)?;
        let (change, wanted) = (found.priority.change, number_or(expected, "change", f64::NAN)?);
        if (change - wanted).abs() > CLOSE * wanted.abs().max(1.0) || wanted.is_nan() {
            return Err(format!("change of {name} is {change}, expected {wanted}"));
        }
        verdicts.insert(name.to_owned(), json!(verdict(found.verdict)));
    }
    same_answer("actions", &Value::Array(actions), &expected["actions"])?;
    same_answer("verdicts", &Value::Object(verdicts), &expected["verdicts"])
}

fn verdict(of: Verdict) -> &'static str {
    match of {
        Verdict::Evicted => "evicted",
        Verdict::Resized => "resized",
        Verdict::EvictionRefused => "eviction-refused",
        Verdict::ResizeRefused => "resize-refused",
        Verdict::AcceptedNoAction => "accepted-no-action",
        Verdict::YoungInRange => "young-in-range",
        Verdict::ChangeTooSmall => "change-too-small",
        Verdict::OomWithoutChange => "oom-without-change",
        Verdict::EvictionRequirement => "eviction-requirement",
        Verdict::Filtered => "filtered",
        Verdict::Crash => "crash",
    }
}

fn settings(flags: &Value) -> Result<UpdaterSettings, String> {
    let mut settings = UpdaterSettings::default();
    let known = [
        "featureGates",
        "in-place-skip-disruption-budget",
        "eviction-tolerance",
        "in-recommendation-bounds-eviction-lifetime-threshold",
        "pod-update-threshold",
    ];
    note_unread("flags", flags, &known);
    note_unread("featureGates", &flags["featureGates"], &["InPlace"]);
    settings.in_place = flag_or(&flags["featureGates"], "InPlace", false)?;
    settings.skip_disruption_budget = flag_or(flags, "in-place-skip-disruption-budget", false)?;
    settings.eviction_tolerance = number_or(flags, "eviction-tolerance", settings.eviction_tolerance)?;
    settings.update_threshold = number_or(flags, "pod-update-threshold", settings.update_threshold)?;
    let threshold = duration(flags, "in-recommendation-bounds-eviction-lifetime-threshold")?;
    settings.lifetime_threshold = threshold.unwrap_or(settings.lifetime_threshold);
    Ok(settings)
}

fn group(controller: &Value, pods: &[Value], now: SimTime) -> Result<PodGroup, String> {
    note_unread("controller", controller, &["kind", "replicas"]);
    let replicas = integer(controller, "replicas")?.unwrap_or_default();
    let controller = match text(controller, "kind")? {
        Some("ReplicaSet" | "StatefulSet" | "ReplicationController" | "DaemonSet") => {
            ControllerKind::Replicated(replicas)
        }
        Some("Job") => ControllerKind::Job,
        _ => ControllerKind::Custom,
    };
    let pods = pods.iter().enumerate().map(|(place, value)| pod(value, place, now)).collect::<Result<_, _>>()?;
    Ok(PodGroup { controller, pods })
}

/// A pod; in a case the same name stands at the same place of each loop.
fn pod(value: &Value, place: usize, now: SimTime) -> Result<PodToUpdate, String> {
    note_unread("pod", value, &["name", "age", "phase", "conditions", "containers"]);
    let (mut states, mut terminations, mut restarts_on_resize) = (Vec::new(), Vec::new(), false);
    for item in list(value, "containers")? {
        let state = container(item)?;
        for policy in list(item, "resizePolicy")? {
            restarts_on_resize |= text(policy, "restartPolicy")? == Some("RestartContainer");
        }
        let last = &item["lastTermination"];
        if !last.is_null() {
            note_unread("lastTermination", last, &["reason", "ranFor"]);
            terminations.push(LastTermination {
                container: state.name,
                out_of_memory: text(last, "reason")? == Some("OOMKilled"),
                ran_for: duration(last, "ranFor")?.unwrap_or_default(),
            });
        }
        states.push(state);
    }
    Ok(PodToUpdate {
        name: named(text(value, "name")?.unwrap_or_default()),
        uid: place as u64,
        started: duration(value, "age")?.map(|age| now - age),
        pending: text(value, "phase")? == Some("Pending"),
        resize: resize_condition(list(value, "conditions")?)?,
        containers: states,
        observed: None,
        restarts_on_resize,
        terminations,
    })
}

fn resize_condition(conditions: &[Value]) -> Result<Option<ResizeCondition>, String> {
    let resizing = ["PodResizePending", "PodResizeInProgress"];
    for condition in conditions {
        note_unread("condition", condition, &["type", "status", "reason", "message"]);
        let kind = text(condition, "type")?.unwrap_or_default();
        if !resizing.contains(&kind) {
            continue;
        }
        if text(condition, "status")? != Some("True") {
            return Ok(None);
        }
        let reason = text(condition, "reason")?.unwrap_or_default();
        let message = text(condition, "message")?.unwrap_or_default();
        return Ok(Some(match (kind, reason) {
            ("PodResizePending", "Deferred") => ResizeCondition::Deferred,
            ("PodResizePending", "Infeasible") => ResizeCondition::Infeasible,
            ("PodResizePending", _) => ResizeCondition::PendingOther,
            (_, "Error") => ResizeCondition::Error,
            (_, "") if message.is_empty() => ResizeCondition::InProgress,
            _ => ResizeCondition::InProgressOther,
        }));
    }
    Ok(None)
}

/// Compares a case of the admission controller.
pub(crate) fn check_admission(input: &Value, expected: &Value) -> Result<(), String> {
    note_unread("input", input, &["pod", "controller", "vpaSpec", "recommendation", "limitRanges"]);
    note_unread("pod", &input["pod"], &["name", "age", "containers"]);
    check_read("expected", expected, &["containers", "patched", "observedContainers", "capped", "cappedBy"])?;
    let vpa = autoscaler(&input["vpaSpec"], &Value::Null, &input["recommendation"])?;
    let pod = list(&input["pod"], "containers")?.iter().map(container).collect::<Result<Vec<_>, _>>()?;
    let limits: NamespaceLimits = namespace_limits(input)?;
    let is_controlled = text(input, "controller")? != Some("");
    let admitted = admit(&vpa, &pod, is_controlled, &limits);
    same_answer("containers", &containers(&admitted.containers), &expected["containers"])?;
    same_answer("patched", &patched(&admitted), &expected["patched"])?;
    let observes = !matches!(admitted.untouched, Some(NotAdmitted::NoController | NotAdmitted::Off));
    let names: Vec<String> = pod.iter().filter(|_| observes).map(|item| item.name.to_string()).collect();
    same("observedContainers", names.join(", ").as_str(), text(expected, "observedContainers")?.unwrap_or_default())?;
    let recommendation = vpa.recommendation.as_deref().unwrap_or_default();
    let capped = cap(recommendation, &vpa, &pod, &limits).map_err(|error| error.to_string())?;
    same_answer("capped", &told(&capped.containers), &expected["capped"])?;
    let mut caps: Map<String, Value> = Map::new();
    let mut sorted = capped.caps;
    sorted.sort_by_key(|(container, name, cap)| (*container, *name, spelled(*cap)));
    for (container, name, cap) in sorted {
        let reasons = caps.entry(container.to_string()).or_insert_with(|| json!([]));
        reasons.as_array_mut().ok_or("no list")?.push(json!(format!("{name} {}", spelled(cap))));
    }
    same_answer("cappedBy", &Value::Object(caps), &expected["cappedBy"])
}

fn spelled(cap: Cap) -> &'static str {
    match cap {
        Cap::LimitRangeMin => "limit-range-min",
        Cap::LimitRangeMax => "limit-range-max",
        Cap::MinAllowed => "min-allowed",
        Cap::MaxAllowed => "max-allowed",
        Cap::ContainerLimit => "container-limit",
    }
}

fn patched(admission: &Admission) -> Value {
    let mut result = Map::new();
    for container in admission.containers.iter().filter(|container| !container.written.is_empty()) {
        let mut written = container.written.clone();
        written.sort();
        let spelled = written.iter().map(|(place, name)| match place {
            Written::Limits => format!("limits.{name}"),
            Written::Requests => format!("requests.{name}"),
        });
        result.insert(container.name.to_string(), json!(spelled.collect::<Vec<_>>()));
    }
    Value::Object(result)
}

fn told(recommended: &[ContainerRecommendation]) -> Value {
    let one = |recommendation: &ContainerRecommendation| {
        let told = json!({
            "target": amounts(&recommendation.target),
            "lowerBound": amounts(&recommendation.lower_bound),
            "upperBound": amounts(&recommendation.upper_bound),
        });
        (Symbol::to_string(&recommendation.container), told)
    };
    Value::Object(recommended.iter().map(one).collect())
}
