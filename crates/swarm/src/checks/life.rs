//! Lives of pods and nodes: in order, on nodes that are there, never above what a node offers, none lost, budgets kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{INSTANT, Rule};
use crate::case::Case;
use crate::report::{Event, Node, Pod, Report};

pub fn check(case: &Case, report: &Report, faults: &mut Vec<String>) {
    in_order(report, faults);
    on_nodes(report, faults);
    fits(report, faults);
    names(report, faults);
    counted(report, faults);
    events(report, faults);
    budgets(case, report, faults);
}

fn ascending(times: &[Option<f64>]) -> bool {
    let known: Vec<f64> = times.iter().copied().flatten().collect();
    known.windows(2).all(|pair| pair[0] <= pair[1] + INSTANT)
}

fn in_order(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("lives go forward", faults);
    for pod in &report.pods {
        let start = [Some(pod.created), pod.scheduled, pod.started, pod.ready];
        let end = [Some(pod.created), pod.deletion, pod.removed];
        rule.holds(ascending(&start) && ascending(&end), || format!("{pod:?}"));
        rule.holds(pod.scheduled.is_none() == pod.node.is_empty(), || {
            format!("bound without a node or a time: {pod:?}")
        });
    }
    for node in &report.nodes {
        let start = [Some(node.requested), node.launched, node.running, node.registered, node.ready, node.initialized];
        let end = [Some(node.requested), node.deletion, node.terminating, node.terminated];
        rule.holds(ascending(&start), || format!("{node:?}"));
        rule.holds(ascending(&[end[0], end[2], end[3]]), || format!("{node:?}"));
    }
}

/// The node of a pod: of several of one name, the one that there was.
fn node_of<'r>(nodes: &BTreeMap<&str, Vec<&'r Node>>, pod: &Pod) -> Option<&'r Node> {
    let at = pod.scheduled?;
    let this_node = nodes.get(pod.node.as_str())?;
    this_node.iter().copied().rev().find(|node| node.requested <= at + INSTANT)
}

fn by_name(report: &Report) -> BTreeMap<&str, Vec<&Node>> {
    let mut nodes: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    report.nodes.iter().for_each(|node| nodes.entry(&node.name).or_default().push(node));
    nodes
}

fn on_nodes(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("no pod is on a node that is not there", faults);
    let nodes = by_name(report);
    for pod in report.pods.iter().filter(|pod| pod.scheduled.is_some()) {
        let Some(node) = node_of(&nodes, pod) else {
            rule.holds(false, || format!("no such node: {pod:?}"));
            continue;
        };
        let at = pod.scheduled.unwrap_or_default();
        let registered = node.registered.is_some_and(|registered| registered <= at + INSTANT);
        rule.holds(registered, || format!("{} before its node {} registered", pod.name, node.name));
        if let Some(gone) = node.terminated {
            rule.holds(at <= gone + INSTANT, || format!("{} bound to {} that was gone at {gone}", pod.name, node.name));
        }
    }
}

/// A pod comes to a node or goes: when, which of the two, its CPU and its memory.
type Change = (f64, i8, f64, f64);

/// At no instant do the pods of a node request more than it offers.
fn fits(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("nobody above allocatable", faults);
    let nodes = by_name(report);
    let mut changes: BTreeMap<(&str, u64), Vec<Change>> = BTreeMap::new();
    for pod in &report.pods {
        let (Some(at), Some(node)) = (pod.scheduled, node_of(&nodes, pod)) else { continue };
        let changes = changes.entry((&node.name, node.requested.to_bits())).or_default();
        let (cpu, memory) = pod.before.last().map_or((pod.cpu, pod.memory), |first| (first.1, first.2));
        changes.push((at, 1, cpu, memory));
        // The last resize stands first.
        let after = std::iter::once((pod.cpu, pod.memory)).chain(pod.before.iter().map(|pod| (pod.1, pod.2)));
        for (&(at, cpu, memory), after) in pod.before.iter().zip(after) {
            changes.push((at, 0, after.0 - cpu, after.1 - memory));
        }
        // A pod that has ended by itself holds nothing any more, which the table does not say: it ends where it is removed.
        if let Some(removed) = pod.removed {
            changes.push((removed, -1, -pod.cpu, -pod.memory));
        }
    }
    for ((name, requested), mut change) in changes {
        let Some(node) = report.nodes.iter().find(|node| node.name == name && node.requested.to_bits() == requested)
        else {
            continue;
        };
        change.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (mut cpu, mut memory) = (0.0, 0.0);
        for (at, _, more_cpu, more_memory) in change {
            (cpu, memory) = (cpu + more_cpu, memory + more_memory);
            let over = cpu > node.cpu + 0.5 || memory > node.memory + 0.5;
            rule.holds(!over, || {
                format!("{name} at {at}: {cpu} of {} milli-CPU, {memory} of {} bytes", node.cpu, node.memory)
            });
        }
    }
}

fn names(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("one node for a claim, one name for a node", faults);
    for (name, this_name) in by_name(report) {
        for pair in this_name.windows(2) {
            let gone =
                pair[0].terminated.or(pair[0].terminating).is_some_and(|gone| gone <= pair[1].requested + INSTANT);
            rule.holds(gone, || format!("{name} twice at {}", pair[1].requested));
        }
    }
    let began = ["ClaimCreated", "NodeFound"];
    let claims = report.events.iter().filter(|event| began.contains(&event.kind.as_str())).count();
    rule.holds(claims == report.nodes.len(), || format!("{claims} claims and {} nodes", report.nodes.len()));
}

/// What the summary and the timeline count is what there is in the tables.
fn counted(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("pods are conserved", faults);
    for (path, daemon) in [("pods.created", false), ("pods.daemon_pods_created", true)] {
        let there = report.pods.iter().filter(|pod| pod.daemon == daemon).count();
        let stated = report.figure(path).unwrap_or(f64::NAN);
        // With a warm-up the summary may leave out what was before it.
        let warm = report.figure("about.warm_up_seconds").unwrap_or(0.0) > 0.0;
        rule.holds(warm || (stated - there as f64).abs() < 0.5, || {
            format!("{path} is {stated}, the table has {there}")
        });
    }
    for row in &report.timeline.rows {
        let at = report.timeline.number(row, "at_seconds").unwrap_or_default();
        let stated = report.timeline.number(row, "pods_pending").unwrap_or(f64::NAN);
        let (least, most) = pending(report, at);
        let holds = (least as f64..=most as f64).contains(&stated);
        rule.holds(holds, || {
            format!("at {at} {stated} pods are pending by the timeline, {least} to {most} by the table")
        });
    }
    for row in &report.workloads.rows {
        let at = report.workloads.number(row, "at_seconds").unwrap_or_default();
        let name = report.workloads.text(row, "workload");
        let stated = report.workloads.number(row, "replicas_ready").unwrap_or(f64::NAN);
        let could = |pod: &&Pod| {
            pod.workload == name
                && pod.ready.is_some_and(|ready| ready <= at + INSTANT)
                && pod.removed.is_none_or(|removed| removed >= at - INSTANT)
        };
        let most = report.pods.iter().filter(could).count();
        rule.holds(stated <= most as f64, || format!("at {at} {stated} of {name} are Ready, the table has {most}"));
    }
}

/// How many pods wait for a node at an instant: those about which there is no doubt, and those that may.
fn pending(report: &Report, at: f64) -> (usize, usize) {
    let ends = |pod: &Pod| {
        let ends = [pod.scheduled, pod.deletion, pod.removed];
        ends.into_iter().flatten().fold(f64::INFINITY, f64::min)
    };
    let waits = |pod: &&Pod, slack: f64| pod.created <= at + slack && ends(pod) > at - slack;
    let of = |slack| report.pods.iter().filter(|pod| waits(pod, slack)).count();
    // Daemon pods may or may not count as pending.
    let daemons = report.pods.iter().filter(|pod| pod.daemon && waits(pod, INSTANT)).count();
    (of(-INSTANT).saturating_sub(daemons), of(INSTANT))
}

fn events(report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("events are in order and say what the tables say", faults);
    let forward = report.events.windows(2).all(|pair| pair[0].at <= pair[1].at);
    rule.holds(forward, || "an event is before the one above it".to_owned());
    let bound =
        report.events.iter().filter(|event| ["PodScheduled", "PodFound"].contains(&event.kind.as_str())).count();
    let there = report.pods.iter().filter(|pod| pod.scheduled.is_some()).count();
    rule.holds(bound == there, || format!("{bound} PodScheduled, {there} pods with a node"));
    let at: BTreeMap<(&str, &str), f64> = report
        .events
        .iter()
        .filter(|event| ["NodeReady", "NodeFound"].contains(&event.kind.as_str()))
        .rev()
        .map(|event| (("", event.node.as_str()), event.at))
        .collect();
    for node in report.nodes.iter().filter(|node| node.ready.is_some()) {
        let item = at.get(&("", node.name.as_str())).copied();
        rule.holds(item.is_some(), || format!("{} is Ready without an event", node.name));
    }
    let evicted = report.events.iter().filter(|event| event.kind == "PodEvicted").count();
    let there = report.pods.iter().filter(|pod| pod.evicted).count();
    rule.holds(evicted == there, || format!("{evicted} PodEvicted, {there} evicted pods"));
    let last = report.events.last().map_or(0.0, |event| event.at);
    rule.holds(last <= report.end + INSTANT, || format!("an event at {last}, after the end"));
}

fn budgets(case: &Case, report: &Report, faults: &mut Vec<String>) {
    let mut rule = Rule::new("budgets are never broken", faults);
    // A kubelet whose node runs out of memory asks no budget.
    let is_pressed =
        |event: &&Event| event.kind == "PodEvicted" && event.message.starts_with("the node was low on memory");
    let pressed: BTreeSet<&str> = report.events.iter().filter(is_pressed).map(|event| event.pod.as_str()).collect();
    for guarded in &case.guarded {
        let pods: Vec<&Pod> = report.pods.iter().filter(|pod| pod.workload == guarded.workload).collect();
        // Those that are gone at once went with their node, which nobody asked a budget for.
        let with_node = |pod: &&&Pod| pod.removed.zip(pod.deletion).is_some_and(|(gone, asked)| gone - asked < INSTANT);
        let asked = |pod: &&&Pod| pod.evicted && !with_node(pod) && !pressed.contains(pod.name.as_str());
        for pod in pods.iter().filter(asked) {
            let Some(at) = pod.deletion else { continue };
            if pod.ready.is_none_or(|ready| ready > at) {
                continue;
            }
            let serves = |pod: &&&Pod| {
                pod.ready.is_some_and(|ready| ready <= at + INSTANT)
                    && pod.deletion.is_none_or(|deletion| deletion > at + INSTANT)
                    && pod.removed.is_none_or(|removed| removed > at)
            };
            let left = pods.iter().filter(serves).count() as u64;
            rule.holds(left >= guarded.min_available, || {
                format!("{} evicted at {at} leaves {left} of {} Ready", pod.name, guarded.min_available)
            });
        }
    }
    let Some(most) = case.node_budget else { return };
    // Neither age nor interruption asks a budget, nor do people who delete something.
    let forced = ["age limit", "interrupt", "EC2", "was deleted"];
    let asks = |event: &&crate::report::Event| {
        event.kind == "NodeDisrupted" && !forced.iter().any(|word| event.raw.contains(word))
    };
    let disrupted = report.events.iter().filter(asks);
    for event in disrupted {
        let at = event.at;
        let on_its_way_out = |node: &&Node| {
            node.of_pool
                && node.deletion.is_some_and(|deletion| deletion <= at + INSTANT)
                && node.terminating.is_none_or(|gone| gone > at + INSTANT)
        };
        let out = report.nodes.iter().filter(on_its_way_out).count() as u64;
        rule.holds(out <= most.max(1), || format!("{out} nodes on their way out at {at}, the budget lets {most} go"));
    }
}
