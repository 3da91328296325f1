//! Comparing the record of a replay with the timeline that was recorded.

use std::collections::BTreeMap;

use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::{NodeId, SimDuration, SimTime};
use nodecast_world::Record;
use nodecast_world::record::{CommandFacts, EventKind, NodeFacts, ReplacementFacts, WorkloadKind};
use serde_json::{Map, Value, json};

use crate::karpenter_timeline::ZERO;
use agreement::fields::list;

/// Times agree if they are this close, in seconds.
const CLOSE: f64 = 0.11;
/// By what share sums may leave the range that the real program's runs saw.
const SLACK: f64 = 0.05;
/// Events that have to agree.
const CORE: [&str; 11] = [
    "claim-created",
    "claim-launched",
    "command-proposed",
    "command-rejected",
    "command-started",
    "command-succeeded",
    "command-failed",
    "node-tainted",
    "pod-terminating",
    "pod-bound",
    "node-gone",
];
/// Those of them that a long timeline lists.
const BRIEF: [&str; 7] = [
    "claim-created",
    "claim-launched",
    "command-proposed",
    "command-rejected",
    "command-started",
    "command-failed",
    "node-gone",
];

/// An event: when, in seconds of the case, what, and its details.
struct Happening {
    at: f64,
    kind: &'static str,
    details: Value,
}

/// Compares the whole of a replay.
///
/// # Errors
/// The first difference.
pub fn compare(record: &Record, case: &Value) -> Result<(), String> {
    let expected = &case["expected"];
    match expected["stable"].as_str().unwrap_or_default() {
        "timeline" => {
            let brief = !expected["timelineFilter"].is_null();
            let kept = |kind: &str| !brief || BRIEF.contains(&kind);
            compare_timeline(happenings(record), list(expected, "timeline")?, kept, (brief, CLOSE))
        }
        "counts" => compare_counts(happenings(record), list(expected, "counts")?),
        "aggregate" => compare_aggregate(record, case),
        other => Err(format!("unknown kind of expectation `{other}`")),
    }
}

/// How a simulation with a world of its own is held against a timeline.
#[derive(Clone, Copy, Debug)]
pub struct Likeness {
    /// Seconds of the simulation at the instant that the case calls zero.
    pub zero: f64,
    /// How far times may be apart, in seconds.
    pub close: f64,
}

/// Compares a simulation of a scenario that states the same: what happens to which node, but neither which of alike pods it happens to nor
/// how many types a claim is left with, as types and prices are the program's own.
///
/// # Errors
/// The first difference.
pub fn compare_likeness(record: &Record, case: &Value, likeness: Likeness) -> Result<(), String> {
    let expected = &case["expected"];
    let brief = !expected["timelineFilter"].is_null();
    let of_counts = expected["stable"] == "counts";
    let known = |kind: &str, details: &Value| if of_counts { without_names(kind, details) } else { alike(details) };
    let expected = if of_counts { one_by_one(list(expected, "counts")?) } else { list(expected, "timeline")?.to_vec() };
    let found = happenings(record).into_iter().map(|happening| Happening {
        at: happening.at + ZERO - likeness.zero,
        details: known(happening.kind, &happening.details),
        ..happening
    });
    let expected: Vec<Value> = expected
        .iter()
        .map(|event| json!([event[0], event[1], known(event[1].as_str().unwrap_or_default(), &event[2])]))
        .collect();
    let kept = |kind: &str| !brief || BRIEF.contains(&kind);
    compare_timeline(found.collect(), &expected, kept, (false, likeness.close))
}

/// The details that a world of its own shares with another.
fn alike(details: &Value) -> Value {
    let mut details = details.clone();
    if let Some(details) = details.as_object_mut() {
        details.retain(|key, _| !["pod", "types", "requests", "replacements"].contains(&key.as_str()));
    }
    details
}

/// Pairs found and expected events of one kind with the same details in order of time; tells of the earliest without its
/// like.
fn compare_timeline(
    found: Vec<Happening>,
    expected: &[Value],
    kept: impl Fn(&str) -> bool,
    (brief, close): (bool, f64),
) -> Result<(), String> {
    let mut sides: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for mut happening in found.into_iter().filter(|item| kept(item.kind)) {
        if brief {
            happening.details.as_object_mut().map(|details| details.remove("requests"));
        }
        sides.entry(key(happening.kind, happening.details)).or_default().0.push(happening.at);
    }
    for event in expected {
        let kind = event[1].as_str().unwrap_or_default();
        if CORE.contains(&kind) {
            let at = event[0].as_f64().unwrap_or(f64::NAN);
            sides.entry(key(kind, event[2].clone())).or_default().1.push(at);
        }
    }
    let mut first: Option<(f64, String)> = None;
    let mut tell = |at: f64, text: String| {
        if first.as_ref().is_none_or(|(known, _)| at < *known) {
            first = Some((at, text));
        }
    };
    for (what, (mut key, mut wanted)) in sides {
        key.sort_by(f64::total_cmp);
        wanted.sort_by(f64::total_cmp);
        for position in 0..key.len().max(wanted.len()) {
            match (key.get(position), wanted.get(position)) {
                (Some(&a), Some(&b)) if (a - b).abs() <= close => continue,
                (Some(&a), Some(&b)) => tell(a.min(b), format!("{what} at {a:.2}, expected at {b:.2}")),
                (Some(&a), None) => tell(a, format!("{what} at {a:.2}, not expected")),
                (None, Some(&b)) => tell(b, format!("{what} expected at {b:.2}, missing")),
                (None, None) => {}
            }
            break;
        }
    }
    first.map_or(Ok(()), |(_, text)| Err(text))
}

/// One text for an event and its details; the order of the nodes of an Empty command means nothing.
fn key(kind: &str, mut details: Value) -> String {
    if details["reason"] == "Empty"
        && let Some(nodes) = details["candidates"].as_array_mut()
    {
        nodes.sort_by_key(Value::to_string);
    }
    // A claim of a static pool asks for nothing.
    if details.get("requests").is_some_and(|detail| detail.is_null() || detail.as_object().is_some_and(Map::is_empty)) {
        details.as_object_mut().map(|detail| detail.remove("requests"));
    }
    details.sort_all_objects();
    format!("{kind} {details}")
}

/// Compares how many events of a kind there are at each instant, without names.
fn compare_counts(found: Vec<Happening>, expected: &[Value]) -> Result<(), String> {
    let nameless = found
        .into_iter()
        .map(|happening| Happening { details: without_names(happening.kind, &happening.details), ..happening });
    compare_timeline(nameless.collect(), &one_by_one(expected), |_| true, (false, CLOSE))
}

/// Counted events as a timeline.
fn one_by_one(counted: &[Value]) -> Vec<Value> {
    let event = |value: &Value| json!([value[0], value[1], value[3]]);
    counted.iter().flat_map(|item| (0..item[2].as_u64().unwrap_or(0)).map(move |_| event(item))).collect()
}

fn without_names(kind: &str, details: &Value) -> Value {
    let kept: &[&str] = match kind {
        "claim-created" => &["pool"],
        "claim-launched" => &["type"],
        _ if kind.starts_with("command-") => &["category", "decision", "method", "reason"],
        _ => &[],
    };
    let mut left: Map<String, Value> =
        kept.iter().filter_map(|&key| Some((key.to_owned(), details.get(key)?.clone()))).collect();
    if let Some(nodes) = details["candidates"].as_array() {
        left.insert("candidates".to_owned(), nodes.len().into());
    }
    Value::Object(left)
}

fn seconds(at: SimTime) -> f64 {
    at.as_secs_f64() - ZERO
}

/// Everything in a record that has to agree.
fn happenings(record: &Record) -> Vec<Happening> {
    let mut found = Vec::new();
    let mut add = |at: SimTime, kind, details| found.push(Happening { at: seconds(at), kind, details });
    let node_name = |node: NodeId| record.nodes[node.index()].name.as_str();
    for node in &record.nodes {
        let Some(claim) = &node.claim else { continue };
        let kinds: Vec<&str> = claim.capacity_types.iter().map(|kind| kind.as_str()).collect();
        let requests: Map<String, Value> =
            claim.requests.iter().map(|(name, amount)| (name.to_string(), name.format(amount).into())).collect();
        add(
            node.requested,
            "claim-created",
            json!({"claim": node.name, "pool": node.origin.name().as_str(), "types": claim.types,
                "capacityTypes": kinds, "requests": requests}),
        );
        if let (Some(at), Some(name), Some(zone), Some(kind)) =
            (node.launched, node.instance_type, node.zone, node.capacity_type)
        {
            let details = json!({"claim": node.name, "type": name.as_str(), "zone": zone.as_str(),
                "capacityType": kind.as_str()});
            add(at, "claim-launched", details);
        }
        if let (Some(_), Some(at)) = (node.registered, node.terminated) {
            add(at, "node-gone", json!({"node": node.name}));
        }
    }
    for event in record.events.iter().filter(|event| event.kind == EventKind::NodeTainted) {
        if let Some(node) = event.node {
            add(event.at, "node-tainted", json!({"node": node_name(node)}));
        }
    }
    for pod in &record.pods {
        let Some(node) = pod.node else { continue };
        if let Some(at) = pod.scheduled {
            add(at, "pod-bound", json!({"node": node_name(node), "pod": pod.name}));
        }
        if let (Some(at), Some(grace)) = (pod.deletion_requested, pod.grace) {
            let details = json!({"node": node_name(node), "pod": pod.name, "graceSeconds": grace.as_secs()});
            add(at, "pod-terminating", details);
        }
    }
    for command in &record.commands {
        for (at, kind, details) in command_events(command, &node_name) {
            add(at, kind, details);
        }
    }
    found
}

fn command_events<'r>(
    command: &CommandFacts,
    node_name: &impl Fn(NodeId) -> &'r str,
) -> Vec<(SimTime, &'static str, Value)> {
    let decision = if command.replacements.is_empty() { "delete" } else { "replace" };
    let describe = |nodes: &[NodeId]| {
        let nodes: Vec<&str> = nodes.iter().map(|&node| node_name(node)).collect();
        let mut details = json!({"candidates": nodes, "decision": decision, "reason": command.reason.as_str()});
        if let Some(method) = command.method {
            details["method"] = method.into();
        }
        details
    };
    let with_replacements = |mut details: Value| {
        if !command.replacements.is_empty() {
            details["replacements"] = command.replacements.iter().map(replacement).collect();
        }
        details
    };
    let mut found = Vec::new();
    if let Some(at) = command.proposed {
        found.push((at, "command-proposed", with_replacements(describe(&command.candidates))));
    }
    if let Some((at, category)) = &command.rejected {
        let mut details = describe(&command.candidates);
        details["category"] = category.to_string().into();
        found.push((*at, "command-rejected", details));
    }
    if let Some(at) = command.started {
        found.push((at, "command-started", with_replacements(describe(&command.nodes))));
    }
    if let Some(at) = command.succeeded {
        found.push((at, "command-succeeded", describe(&command.nodes)));
    }
    // One that could not be started was never in the queue.
    if let (Some(_), Some((at, _))) = (command.started, &command.failed) {
        found.push((*at, "command-failed", describe(&command.nodes)));
    }
    found
}

fn replacement(replacement_facts: &ReplacementFacts) -> Value {
    let kinds: Vec<&str> = replacement_facts.capacity_types.iter().map(|kind| kind.as_str()).collect();
    let mut written =
        json!({"pool": replacement_facts.node_pool.as_str(), "types": replacement_facts.types, "capacityTypes": kinds});
    if let Some((name, price)) = replacement_facts.cheapest {
        written["cheapest"] = name.as_str().into();
        written["price"] = price.as_f64().into();
    }
    written
}

/// Compares what remains meaningful where the real program's runs differ by chance: sums and counters. Eight runs do not see
/// every outcome, so what they ranged over is widened: sums by a twentieth on either side, counters by one.
fn compare_aggregate(record: &Record, case: &Value) -> Result<(), String> {
    let expected = &case["expected"]["aggregate"];
    let end = SimTime::ZERO + SimDuration::from_secs_f64(ZERO + case["durationSeconds"].as_f64().unwrap_or(0.0));
    let lives: Vec<(&NodeFacts, SimTime, SimTime)> =
        record.nodes.iter().filter_map(|node| Some((node, node.launched?, node.terminating.unwrap_or(end)))).collect();
    let span = |from: SimTime, to: SimTime| (to - from).as_secs_f64();
    let node_seconds: f64 = lives.iter().map(|(_, from, to)| span(*from, *to)).sum();
    let cost: f64 = lives.iter().map(|(node, from, to)| node.rate.as_f64() * span(*from, *to) / 3_600.0).sum();
    let pending: f64 = record.pods.iter().filter_map(|pod| Some(span(pod.created, pod.scheduled?))).sum();
    for (what, found) in [("nodeSeconds", node_seconds), ("cost", cost), ("podPendingSeconds", pending)] {
        within(what, found, &expected[what], |bound| bound * SLACK)?;
    }
    for (name, wanted) in expected["counters"].as_object().into_iter().flatten() {
        within(name, counter(record, name)? as f64, wanted, |_| 1.0)?;
    }
    Ok(())
}

/// A counter of the aggregate by its name.
fn counter(record: &Record, name: &str) -> Result<usize, String> {
    let started = || record.commands.iter().filter(|command| command.started.is_some());
    if let Some(category) = name.strip_prefix("rejected ") {
        let rejected = record.commands.iter().filter_map(|command| command.rejected.as_ref());
        return Ok(rejected.filter(|(_, why)| **why == *category).count());
    }
    Ok(match name {
        "claims" => record.nodes.iter().filter(|node| node.claim.is_some()).count(),
        "launches" => record.nodes.iter().filter(|node| node.launched.is_some()).count(),
        "nodes disrupted" => started().map(|command| command.nodes.len()).sum(),
        "pods created" => created(record),
        "pods never bound and never removed" => {
            record.pods.iter().filter(|pod| pod.scheduled.is_none() && pod.removed.is_none()).count()
        }
        "command failed" => started().filter(|command| command.failed.is_some()).count(),
        _ => {
            let wanted = name.strip_prefix("command ").ok_or_else(|| format!("unknown counter `{name}`"))?;
            started().filter(|command| describe(command) == wanted).count()
        }
    })
}

fn created(record: &Record) -> usize {
    let of_daemon = |workload: WorkloadKind| workload == WorkloadKind::DaemonSet;
    record.pods.iter().filter(|pod| !of_daemon(record.workloads[pod.workload.index()].kind)).count()
}

/// `Underutilized replace single`, `Drifted delete`, ...
fn describe(command: &CommandFacts) -> String {
    let decision = if command.replacements.is_empty() { "delete" } else { "replace" };
    let reason: DisruptionReason = command.reason;
    match command.method {
        Some(method) => format!("{} {decision} {method}", reason.as_str()),
        None => format!("{} {decision}", reason.as_str()),
    }
}

/// Whether a figure is the expected one, or within the expected range; each end is moved by `slack`.
fn within(what: &str, found: f64, expected: &Value, slack: impl Fn(f64) -> f64) -> Result<(), String> {
    let bound = |end: usize| match expected {
        Value::Array(ends) => ends.get(end).and_then(Value::as_f64).unwrap_or(f64::NAN),
        single => single.as_f64().unwrap_or(f64::NAN),
    };
    let (least, most) = (bound(0) - slack(bound(0)), bound(1) + slack(bound(1)));
    if (least..=most).contains(&found) { Ok(()) } else { Err(format!("{what} is {found}, expected {expected}")) }
}
