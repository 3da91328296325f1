//! The karpenter-timeline suite: whole timelines of Karpenter's controllers, replayed by the simulator's own.

use std::path::{Path, PathBuf};

use crate::replay::{LaunchFault, LaunchFaultKind, NodeChange, PodChange, Replay, ReplayAction, Run};
use nodecast_karpenter::disruption::ConditionStatus;
use nodecast_karpenter::instance_types::complete_pools;
use nodecast_karpenter::interruption::{InstanceState, Notice};
use nodecast_karpenter::machine::{KarpenterSettings, Provider, Settings, Ties};
use nodecast_karpenter::packing::{DefaultSpread, MinValuesPolicy, PackerKind, PreferencePolicy};
use nodecast_manifests::{node_pool_from_json, pod_disruption_budget_from_json, pod_from_json};
use nodecast_model::domain::pod::IntOrPercent;
use nodecast_model::domain::workload::{DaemonSet, ObjectName};
use nodecast_model::domain::{
    FeatureGates, LabelSelector, NodePool, PodSpec, Resources, SimDuration, SimTime, Symbol, Taint, TaintEffect,
    Versions, well_known,
};

use serde_json::Value;
use std::sync::Arc;

use crate::karpenter_timeline_events::compare;
use agreement::fields::{list, note_unread, number_or, text};
use agreement::karpenter_case::{Catalogs, change_offerings, read_catalog};
use agreement::tally::{Tally, each_case, guarded};

/// Seconds of simulated time at the instant that a case calls zero: its controllers start 9.63 seconds before.
pub const ZERO: f64 = 10.0;
/// When the controllers start, in the time of a case.
const BEGIN: f64 = -9.63;
/// More steps than any case takes that comes to an end.
const MOST_STEPS: u64 = 200_000_000;
/// What a case may have.
const FIELDS: [&str; 14] = [
    "name",
    "category",
    "description",
    "catalog",
    "offeringOverrides",
    "addOfferings",
    "nodePools",
    "start",
    "durationSeconds",
    "options",
    "model",
    "launchFaults",
    "actions",
    "expected",
];
/// What each action may have beside its time and kind.
const ACTIONS: [(&str, &[&str]); 16] = [
    ("setReplicas", &["name", "replicas", "pod"]),
    ("stream", &["name", "count", "every", "pod"]),
    ("createBarePods", &["name", "count", "pod"]),
    ("finishPod", &["name"]),
    ("patchPod", &["name", "patch"]),
    ("patchPDB", &["name", "patch"]),
    ("patchNodePool", &["name", "patch"]),
    ("patchNode", &["onNodeOf", "patch"]),
    ("createPDB", &["podDisruptionBudget"]),
    ("daemonSet", &["name", "daemonSet"]),
    ("deleteNodeClaim", &["onNodeOf"]),
    ("driftNode", &["onNodeOf"]),
    ("killInstance", &["onNodeOf"]),
    ("notice", &["onNodeOf", "kind", "service", "category", "state"]),
    ("statusCheck", &["onNodeOf", "failed"]),
    ("withdrawType", &["name"]),
];

/// Runs every case below `paths`: files with one case, or with a list `cases`; gzip or not.
pub fn run(paths: &[PathBuf], catalogs: Option<&Path>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut catalogs = Catalogs::new(catalogs);
    each_case(paths, |path, case| {
        let told = |problem: String| format!("{}: {problem}", path.display());
        let outcome = guarded(|| {
            let types = catalogs.find(path, case["catalog"].as_str().unwrap_or_default())?;
            replay(case, types)
        });
        tally.count(case["name"].as_str().unwrap_or("?"), outcome.map_err(told));
    })?;
    Ok(tally)
}

/// Replays a case and compares what happens.
fn replay(case: &Value, types: &Value) -> Result<(), String> {
    check_fields(case)?;
    let mut run = Run::new(read(case, types)?);
    let mut steps = 0;
    while run.step() {
        steps += 1;
        if steps > MOST_STEPS {
            return Err("the replay does not come to an end".to_owned());
        }
    }
    compare(run.world().record(), case)
}

/// Fails on fields that nothing here reads.
fn check_fields(case: &Value) -> Result<(), String> {
    note_unread("case", case, &FIELDS);
    let gates = ["spotToSpot", "nodeRepair", "staticCapacity"];
    note_unread(
        "options",
        &case["options"],
        &[&gates[..], &["batchIdleSeconds", "batchMaxSeconds", "karpenter"]].concat(),
    );
    let model =
        ["launchSeconds", "registerSeconds", "readySeconds", "podShutdownSeconds", "instanceTerminationSeconds"];
    note_unread("model", &case["model"], &model);
    for fault in list(case, "launchFaults")? {
        note_unread("launch fault", fault, &["from", "to", "kind", "types", "zone", "capacityType"]);
    }
    for action in list(case, "actions")? {
        let op = text(action, "op")?.unwrap_or_default();
        let known = ACTIONS.iter().find(|(key, _)| *key == op);
        let (_, item) = known.ok_or_else(|| format!("unknown action {op:?}"))?;
        note_unread(op, action, &[&["t", "op"], *item].concat());
    }
    Ok(())
}

/// An instant of a case as an instant of the simulation.
fn instant(seconds: f64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs_f64(ZERO + seconds)
}

/// A case as it is replayed.
pub fn read(case: &Value, types: &Value) -> Result<Replay, String> {
    let named = |error: nodecast_model::text::InputError| error.to_string();
    let model = &case["model"];
    let span = |key: &str| number_or(model, key, 0.0).map(SimDuration::from_secs_f64);
    let mut instance_types = read_catalog(types)?;
    change_offerings(case, &mut instance_types)?;
    let start = case["start"].as_str().unwrap_or_default();
    let start: jiff::Timestamp = start.parse().map_err(|error| format!("start: {error}"))?;
    let versions = Versions::default();
    let release = text(&case["options"], "karpenter")?.map_or(Ok(versions.karpenter), str::parse);
    let release = release.map_err(|error| error.to_string())?;
    let pools = list(case, "nodePools")?.iter().map(node_pool_from_json).collect::<Result<_, _>>();
    let mut pools: Vec<NodePool> = pools.map_err(named)?;
    complete_pools(release, &mut pools);
    Ok(Replay {
        settings: Settings {
            release,
            kubernetes: versions.kubernetes,
            flags: flags(&case["options"])?,
            node_classes: Vec::new(),
            namespaces: Vec::new(),
            reservations: false,
            provider: Provider::Plain,
            ties: Ties::ByName,
            time: None,
            epoch: start.as_second() - ZERO as i64,
            begins: instant(BEGIN),
            buffers: Vec::new(),
            images: None,
            default_spread: DefaultSpread::default(),
        },
        pools,
        end: instant(number_or(case, "durationSeconds", 0.0)?),
        instance_types,
        launch: span("launchSeconds")?,
        register: span("registerSeconds")?,
        ready: span("readySeconds")?,
        pod_shutdown: span("podShutdownSeconds")?,
        instance_termination: span("instanceTerminationSeconds")?,
        faults: list(case, "launchFaults")?.iter().map(fault).collect::<Result<_, _>>()?,
        actions: actions(case)?,
    })
}

fn flags(options: &Value) -> Result<KarpenterSettings, String> {
    let seconds = |key: &str, default: f64| number_or(options, key, default).map(SimDuration::from_secs_f64);
    Ok(KarpenterSettings {
        batch_idle: seconds("batchIdleSeconds", 1.0)?,
        batch_max: seconds("batchMaxSeconds", 10.0)?,
        interruption_queue: false,
        preferences: match options["preferencePolicy"] == "Ignore" {
            true => PreferencePolicy::Ignore,
            false => PreferencePolicy::Respect,
        },
        min_values: MinValuesPolicy::Strict,
        packer: PackerKind::Karpenter,
        gates: FeatureGates {
            spot_to_spot: options["spotToSpot"] == true,
            node_repair: options["nodeRepair"] == true,
            static_capacity: options["staticCapacity"] == true,
            ..FeatureGates::default()
        },
    })
}

fn fault(value: &Value) -> Result<LaunchFault, String> {
    let kind = match text(value, "kind")? {
        Some("noCapacity") => LaunchFaultKind::NoCapacity,
        Some("error") => LaunchFaultKind::Error,
        Some("neverRegister") => LaunchFaultKind::NeverRegister,
        Some("neverReady") => LaunchFaultKind::NeverReady,
        other => return Err(format!("launch fault of the unknown kind {other:?}")),
    };
    let types =
        value["types"].as_array().map(|types| types.iter().filter_map(Value::as_str).map(Symbol::new).collect());
    Ok(LaunchFault {
        from: instant(number_or(value, "from", 0.0)?),
        to: instant(number_or(value, "to", 0.0)?),
        kind,
        types,
        zone: text(value, "zone")?.map(Symbol::new),
        capacity_type: text(value, "capacityType")?.map(Symbol::new),
    })
}

/// Objects that later actions patch, as they are at the time.
struct Objects {
    pools: Vec<Value>,
    budgets: Vec<Value>,
}

fn actions(case: &Value) -> Result<Vec<(SimTime, ReplayAction)>, String> {
    let mut objects = Objects { pools: list(case, "nodePools")?.to_vec(), budgets: Vec::new() };
    let mut ordered: Vec<&Value> = list(case, "actions")?.iter().collect();
    let time = |action: &Value| action["t"].as_f64().unwrap_or(0.0);
    // A patch builds on what came before it in time.
    ordered.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut found = Vec::new();
    for action in ordered {
        let at = time(action);
        if action["op"] == "stream" {
            let (name, pod) = (symbol(action, "name"), optional_pod(&action["pod"])?);
            let every = number_or(action, "every", 0.0)?;
            for number in 0..action["count"].as_u64().unwrap_or(0) {
                let add = ReplayAction::AddReplica { name, pod: pod.clone() };
                found.push((instant(at + every * number as f64), add));
            }
        } else {
            found.push((instant(at), read_action(action, &mut objects)?));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    Ok(found)
}

fn read_action(action: &Value, objects: &mut Objects) -> Result<ReplayAction, String> {
    let named = |error: nodecast_model::text::InputError| error.to_string();
    let count = |key: &str| action[key].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let node_of = symbol(action, "onNodeOf");
    Ok(match action["op"].as_str().unwrap_or_default() {
        "setReplicas" => {
            let pod = optional_pod(&action["pod"])?;
            ReplayAction::SetReplicas { name: symbol(action, "name"), replicas: count("replicas"), pod }
        }
        "createBarePods" => ReplayAction::CreateBarePods {
            name: symbol(action, "name"),
            count: count("count"),
            pod: pod(&action["pod"])?,
        },
        "finishPod" => ReplayAction::FinishPod(symbol(action, "name")),
        "patchPod" => {
            let patch = &action["patch"];
            note_unread("patch", patch, &["metadata"]);
            note_unread("metadata", &patch["metadata"], &["annotations", "labels"]);
            let changes = PodChange {
                annotations: entries(&patch["metadata"]["annotations"]),
                labels: entries(&patch["metadata"]["labels"]),
            };
            ReplayAction::PatchPod(symbol(action, "name"), changes)
        }
        "patchNode" => ReplayAction::PatchNode(node_of, node_change(&action["patch"])?),
        "patchNodePool" => {
            let name = action["name"].as_str().unwrap_or_default();
            let pool = objects.pools.iter_mut().find(|pool| pool["metadata"]["name"] == name);
            let pool = pool.ok_or_else(|| format!("no NodePool {name}"))?;
            merge(pool, &action["patch"]);
            ReplayAction::ReplaceNodePool(Box::new(node_pool_from_json(pool).map_err(named)?))
        }
        "createPDB" => {
            let budget = action["podDisruptionBudget"].clone();
            let read = pod_disruption_budget_from_json(&budget).map_err(named)?;
            objects.budgets.push(budget);
            ReplayAction::ApplyBudget(Box::new(read))
        }
        "patchPDB" => {
            let name = action["name"].as_str().unwrap_or_default();
            let budget = objects.budgets.iter_mut().find(|budget| budget["metadata"]["name"] == name);
            let budget = budget.ok_or_else(|| format!("no PodDisruptionBudget {name}"))?;
            merge(budget, &action["patch"]);
            ReplayAction::ApplyBudget(Box::new(pod_disruption_budget_from_json(budget).map_err(named)?))
        }
        "daemonSet" => {
            let template = pod(&action["daemonSet"])?;
            let name = ObjectName { namespace: well_known::DEFAULT, name: symbol(action, "name") };
            let selector = LabelSelector { match_labels: template.labels.clone(), ..LabelSelector::default() };
            ReplayAction::RunDaemon(Box::new(DaemonSet {
                name,
                selector,
                template,
                max_unavailable: None,
                max_surge: IntOrPercent::Count(0),
                min_ready: SimDuration::ZERO,
            }))
        }
        "deleteNodeClaim" => ReplayAction::DeleteClaim(node_of),
        "driftNode" => ReplayAction::Drift(node_of),
        "notice" => ReplayAction::Notice(node_of, notice(action)?),
        "statusCheck" => ReplayAction::StatusCheck(node_of, action["failed"] == true),
        "withdrawType" => ReplayAction::WithdrawType(symbol(action, "name")),
        "killInstance" => ReplayAction::KillInstance(node_of),
        other => return Err(format!("unknown action {other}")),
    })
}

fn notice(action: &Value) -> Result<Notice, String> {
    let is = |key: &str, wanted: &str| action[key] == wanted;
    Ok(match action["kind"].as_str().unwrap_or_default() {
        "spotInterruption" => Notice::SpotInterruption,
        "rebalanceRecommendation" => Notice::RebalanceRecommendation,
        "healthEvent" => {
            Notice::HealthEvent { of_ec2: is("service", "EC2"), scheduled_change: is("category", "scheduledChange") }
        }
        "reservationInterruption" => Notice::ReservationInterruption,
        "scheduledEvent" => Notice::ScheduledEvent,
        "stateChange" => Notice::StateChange(match action["state"].as_str().unwrap_or_default() {
            "pending" => InstanceState::Pending,
            "running" => InstanceState::Running,
            "stopping" => InstanceState::Stopping,
            "stopped" => InstanceState::Stopped,
            "shutting-down" => InstanceState::ShuttingDown,
            "terminated" => InstanceState::Terminated,
            other => return Err(format!("unknown state of an instance {other}")),
        }),
        other => return Err(format!("unknown notice {other}")),
    })
}

fn symbol(value: &Value, key: &str) -> Symbol {
    Symbol::new(value[key].as_str().unwrap_or_default())
}

fn optional_pod(value: &Value) -> Result<Option<Arc<PodSpec>>, String> {
    if value.is_null() { Ok(None) } else { pod(value).map(Some) }
}

/// A pod template; what nobody defaults stays as it is written.
fn pod(value: &Value) -> Result<Arc<PodSpec>, String> {
    let mut spec = pod_from_json(value).map_err(|error| error.to_string())?.spec;
    for container in &mut spec.containers {
        container.limits = Resources::new();
    }
    Ok(Arc::new(spec))
}

/// The entries of a merge patch of annotations or labels; null removes one.
fn entries(value: &Value) -> Vec<(Symbol, Option<Symbol>)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (Symbol::new(key), value.as_str().map(Symbol::new))).collect()
}

fn node_change(patch: &Value) -> Result<NodeChange, String> {
    note_unread("patch", patch, &["metadata", "spec", "status"]);
    note_unread("metadata", &patch["metadata"], &["annotations", "labels"]);
    note_unread("spec", &patch["spec"], &["taints"]);
    note_unread("status", &patch["status"], &["conditions"]);
    let mut change = NodeChange {
        annotations: entries(&patch["metadata"]["annotations"]),
        labels: entries(&patch["metadata"]["labels"]),
        taints: None,
        conditions: Vec::new(),
    };
    if let Some(spec) = patch["spec"].as_object()
        && let Some(taints) = spec.get("taints")
    {
        let taints = taints.as_array().into_iter().flatten();
        change.taints = Some(taints.map(taint).collect::<Result<_, _>>()?);
    }
    for condition in patch["status"]["conditions"].as_array().into_iter().flatten() {
        let status = match text(condition, "status")? {
            Some("True") => ConditionStatus::True,
            Some("False") => ConditionStatus::False,
            Some("Unknown") => ConditionStatus::Unknown,
            other => return Err(format!("a condition with the status {other:?}")),
        };
        change.conditions.push((symbol(condition, "type"), status));
    }
    Ok(change)
}

fn taint(value: &Value) -> Result<Taint, String> {
    let effect = match text(value, "effect")? {
        Some("NoSchedule") => TaintEffect::NoSchedule,
        Some("NoExecute") => TaintEffect::NoExecute,
        Some("PreferNoSchedule") => TaintEffect::PreferNoSchedule,
        other => return Err(format!("a taint with the effect {other:?}")),
    };
    let taint = Taint::new(symbol(value, "key"), effect);
    Ok(Taint { value: symbol(value, "value"), ..taint })
}

/// A JSON merge patch (RFC 7386).
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|target| target.remove(key));
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
