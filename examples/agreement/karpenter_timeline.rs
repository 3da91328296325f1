//! The karpenter-timeline suite: whole timelines of Karpenter's controllers, replayed by the simulator's own.

use std::path::{Path, PathBuf};

use nodecast::actors::replay::{LaunchFault, LaunchFaultKind, NodeChange, Replay, ReplayAction};
use nodecast::actors::{Autoscaler, KarpenterSettings, Setup};
use nodecast::catalog::Catalog;
use nodecast::domain::pod::IntOrPercent;
use nodecast::domain::volumes::Storage;
use nodecast::domain::workload::{DaemonSet, ObjectName};
use nodecast::domain::{
    FeatureGates, LabelSelector, PodSpec, Resources, SimDuration, SimTime, Symbol, Taint, TaintEffect, Versions,
    well_known,
};
use nodecast::policy::disruption::ConditionStatus;
use nodecast::policy::interruption::{InstanceState, Notice};
use nodecast::scenario::manifests::{node_pool_from_json, pod_disruption_budget_from_json, pod_from_json};
use nodecast::simulation::Simulation;
use serde_json::Value;
use std::sync::Arc;

use super::fields::{list, number_or, text};
use super::karpenter_case::{Catalogs, read_catalog, read_json};
use super::karpenter_timeline_events::compare;
use super::tally::{Tally, files};

/// Seconds of simulated time at the instant that a case calls zero: its controllers start 9.63 seconds before.
pub const ZERO: f64 = 10.0;
/// When the controllers start, in the time of a case.
const BEGIN: f64 = -9.63;

/// Runs every case below `paths`: files with one case, or with a list `cases`; gzip or not.
pub fn run(paths: &[PathBuf], catalogs: Option<&Path>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut catalogs = Catalogs::new(catalogs);
    let catalog = Catalog::embedded().map_err(|error| error.to_string())?;
    for path in files(paths, &[".json", ".json.gz"]).map_err(|error| error.to_string())? {
        let told = |problem: String| format!("{}: {problem}", path.display());
        let file = read_json(&path)?;
        let cases = if file["cases"].is_null() { std::slice::from_ref(&file) } else { list(&file, "cases")? };
        for case in cases {
            let types = catalogs.find(&path, case["catalog"].as_str().unwrap_or_default()).map_err(told)?;
            let setup = setup(case, types, catalog).map_err(told)?;
            let mut simulation = Simulation::new(&setup);
            while simulation.step().is_some() {}
            let name = case["name"].as_str().unwrap_or("?");
            tally.count(name, compare(simulation.context().world.record(), case));
        }
    }
    Ok(tally)
}

/// An instant of a case as an instant of the simulation.
fn instant(seconds: f64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs_f64(ZERO + seconds)
}

/// A case as a setup that replays it.
pub fn setup(case: &Value, types: &Value, catalog: &Catalog) -> Result<Setup, String> {
    let named = |error: nodecast::scenario::ScenarioError| error.to_string();
    let region = catalog.region("us-east-1").map_err(|error| error.to_string())?;
    let model = &case["model"];
    let span = |key: &str| number_or(model, key, 0.0).map(SimDuration::from_secs_f64);
    let replay = Replay {
        instance_types: read_catalog(types)?,
        begins: instant(BEGIN),
        launch: span("launchSeconds")?,
        register: span("registerSeconds")?,
        ready: span("readySeconds")?,
        pod_shutdown: span("podShutdownSeconds")?,
        instance_termination: span("instanceTerminationSeconds")?,
        faults: list(case, "launchFaults")?.iter().map(fault).collect::<Result<_, _>>()?,
        actions: actions(case)?,
    };
    let start = case["start"].as_str().unwrap_or_default();
    let start: jiff::Timestamp = start.parse().map_err(|error| format!("start: {error}"))?;
    let options = &case["options"];
    let seconds = |key: &str, default: f64| number_or(options, key, default).map(SimDuration::from_secs_f64);
    let settings = KarpenterSettings {
        batch_idle: seconds("batchIdleSeconds", 1.0)?,
        batch_max: seconds("batchMaxSeconds", 10.0)?,
        interruption_queue: false,
        packer: nodecast::policy::packing::PackerKind::Karpenter,
        gates: FeatureGates {
            spot_to_spot: options["spotToSpot"] == true,
            node_repair: options["nodeRepair"] == true,
            static_capacity: options["staticCapacity"] == true,
        },
    };
    let pools = list(case, "nodePools")?.iter().map(node_pool_from_json).collect::<Result<_, _>>().map_err(named)?;
    Ok(Setup {
        storage: Storage::default(),
        versions: Versions::default(),
        price_list: Arc::clone(&region),
        region,
        zones: Vec::new(),
        duration: SimDuration::from_secs_f64(ZERO + number_or(case, "durationSeconds", 0.0)?),
        seed: 1,
        autoscaler: Autoscaler::Karpenter(settings),
        scheduler: nodecast::policy::kube_scheduler::SchedulerConfig::default(),
        termination_handler: None,
        node_groups: Vec::new(),
        node_pools: pools,
        node_classes: Vec::new(),
        namespaces: Vec::new(),
        services: Vec::new(),
        disruption_budgets: Vec::new(),
        loads: Vec::new(),
        timeline: Vec::new(),
        pod_trace: None,
        times: Default::default(),
        images: Default::default(),
        boot: None,
        cloud: Arc::default(),
        sample_interval: SimDuration::from_secs(60),
        start: start - jiff::SignedDuration::from_secs(ZERO as i64),
        prometheus: None,
        queues: Vec::new(),
        external_metrics: Vec::new(),
        replay: Some(replay),
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
            let (name, pod) = (symbol(action, "name"), pod(&action["pod"])?);
            let every = number_or(action, "every", 0.0)?;
            for number in 0..action["count"].as_u64().unwrap_or(0) {
                let add = ReplayAction::AddReplica { name, pod: Arc::clone(&pod) };
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
    let named = |error: nodecast::scenario::ScenarioError| error.to_string();
    let count = |key: &str| action[key].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let node_of = symbol(action, "onNodeOf");
    Ok(match action["op"].as_str().unwrap_or_default() {
        "setReplicas" => {
            let own = if action["pod"].is_null() { None } else { Some(pod(&action["pod"])?) };
            ReplayAction::SetReplicas { name: symbol(action, "name"), replicas: count("replicas"), pod: own }
        }
        "createBarePods" => ReplayAction::CreateBarePods {
            name: symbol(action, "name"),
            count: count("count"),
            pod: pod(&action["pod"])?,
        },
        "finishPod" => ReplayAction::FinishPod(symbol(action, "name")),
        "patchPod" => {
            ReplayAction::AnnotatePod(symbol(action, "name"), annotations(&action["patch"]["metadata"]["annotations"]))
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

/// A pod template; what nobody defaults stays as it is written.
fn pod(value: &Value) -> Result<Arc<PodSpec>, String> {
    let mut spec = pod_from_json(value).map_err(|error| error.to_string())?.spec;
    for container in &mut spec.containers {
        container.limits = Resources::new();
    }
    Ok(Arc::new(spec))
}

fn annotations(value: &Value) -> Vec<(Symbol, Option<Symbol>)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (Symbol::new(key), value.as_str().map(Symbol::new))).collect()
}

fn node_change(patch: &Value) -> Result<NodeChange, String> {
    let mut change = NodeChange {
        annotations: annotations(&patch["metadata"]["annotations"]),
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
    let own = Taint::new(symbol(value, "key"), effect);
    Ok(Taint { value: symbol(value, "value"), ..own })
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
            target.as_object_mut().map(|own| own.remove(key));
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}
