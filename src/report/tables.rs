//! The tables of a run (CSV) and its log of events (JSON lines). `docs/outputs.md` explains each column.
//!
//! Instants are seconds since the start of the run, exact to the microsecond; money has all nine decimals; an empty cell
//! is an instant that never came or a value that does not exist.

use std::io::{self, Write};

use serde::Serialize;

use super::format::{Calendar, exact_seconds, instant_cell, span_cell};
use super::summary::lives::{is_daemon, ready_interval, wait_for_node};
use super::summary::rounded;
use super::summary::service::workload_name;
use crate::domain::{Money, NodeId, SimTime, Symbol};
use crate::simulation::Outcome;
use crate::world::record::{NodeFacts, NodeOrigin};

fn symbol_cell(symbol: Option<Symbol>) -> String {
    symbol.map_or_else(String::new, |symbol| symbol.to_string())
}

fn number_cell(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// A table with one header line and `\n` line ends.
fn table(output: &mut dyn Write, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(&row)?;
    }
    writer.flush()
}

/// `timeline.csv`: the cluster at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn timeline(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let calendar = Calendar::new(&outcome.about.start);
    let header = [
        "at_seconds",
        "time",
        "pods_pending",
        "pods_starting",
        "pods_ready",
        "nodes_starting",
        "nodes_spot",
        "nodes_on_demand",
        "cost_per_hour",
        "cpu_requested_milli",
        "cpu_allocatable_milli",
        "memory_requested_bytes",
        "memory_allocatable_bytes",
    ];
    let rows = outcome.record.samples.iter().map(|sample| {
        vec![
            exact_seconds(sample.at.as_micros()),
            calendar.time(sample.at).unwrap_or_default(),
            sample.pods_pending.to_string(),
            sample.pods_starting.to_string(),
            sample.pods_ready.to_string(),
            sample.nodes_starting.to_string(),
            sample.nodes_spot.to_string(),
            sample.nodes_on_demand.to_string(),
            sample.cost_rate.to_string(),
            sample.cpu_requested_milli.to_string(),
            sample.cpu_allocatable_milli.to_string(),
            sample.memory_requested_bytes.to_string(),
            sample.memory_allocatable_bytes.to_string(),
        ]
    });
    table(output, &header, rows)
}

/// `workloads.csv`: each workload at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn workloads(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let header = [
        "at_seconds",
        "workload",
        "replicas_desired",
        "replicas_ready",
        "requests_per_second",
        "cpu_used_milli",
        "latency_mean_seconds",
        "latency_p99_seconds",
    ];
    let rows = outcome.record.samples.iter().flat_map(|sample| {
        sample.workloads.iter().map(|workload| {
            vec![
                exact_seconds(sample.at.as_micros()),
                workload_name(outcome, workload.workload),
                workload.replicas_desired.to_string(),
                workload.replicas_ready.to_string(),
                workload.requests_per_second.to_string(),
                workload.cpu_used_milli.to_string(),
                number_cell(workload.latency_mean_seconds),
                number_cell(workload.latency_p99_seconds),
            ]
        })
    });
    table(output, &header, rows)
}

/// `metrics.csv`: what each autoscaler of replicas last read of each metric, at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn metrics(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let header = [
        "at_seconds",
        "autoscaler",
        "workload",
        "metric",
        "unit",
        "value",
        "target",
        "asks_for",
        "replicas_desired",
        "replicas_ready",
    ];
    let rows = outcome.record.samples.iter().flat_map(|sample| {
        sample.metrics.iter().filter_map(|metric| {
            let facts = outcome.record.metrics.get(metric.metric as usize)?;
            let workload = sample.workloads.iter().find(|workload| workload.workload == facts.workload);
            let count = |count: Option<u32>| count.map_or_else(String::new, |count| count.to_string());
            Some(vec![
                exact_seconds(sample.at.as_micros()),
                facts.autoscaler.to_string(),
                workload_name(outcome, facts.workload),
                facts.name.clone(),
                facts.unit.as_str().to_owned(),
                number_cell(metric.value),
                facts.target.to_string(),
                count(metric.asks_for),
                count(workload.map(|workload| workload.replicas_desired)),
                count(workload.map(|workload| workload.replicas_ready)),
            ])
        })
    });
    table(output, &header, rows)
}

/// `queues.csv`: each queue at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn queues(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let header = [
        "at_seconds",
        "queue",
        "kind",
        "workload",
        "waiting",
        "in_flight",
        "arrivals_per_second",
        "processed_per_second",
    ];
    let rows = outcome.record.samples.iter().flat_map(|sample| {
        outcome.queues.iter().zip(&sample.queues).map(|(queue, own)| {
            vec![
                exact_seconds(sample.at.as_micros()),
                queue.name.clone(),
                queue.kind.to_owned(),
                queue.workload.to_string(),
                rounded(own.waiting, 3).to_string(),
                rounded(own.in_flight, 3).to_string(),
                own.arrival_rate.to_string(),
                own.throughput.to_string(),
            ]
        })
    });
    table(output, &header, rows)
}

/// `pods.csv`: one line for each pod, in order of creation.
///
/// # Errors
/// Whatever `output` returns.
pub fn pods(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let end = SimTime::ZERO + outcome.about.duration;
    let header = [
        "pod",
        "workload",
        "daemon",
        "node",
        "cpu_request_milli",
        "memory_request_bytes",
        "created_seconds",
        "unschedulable_seconds",
        "scheduled_seconds",
        "started_seconds",
        "ready_seconds",
        "deletion_requested_seconds",
        "removed_seconds",
        "evicted",
        "wait_for_node_seconds",
        "created_to_ready_seconds",
    ];
    let rows = outcome.record.pods.iter().map(|pod| {
        let node = pod.node.and_then(|node| outcome.record.nodes.get(node.index()));
        vec![
            pod.name.clone(),
            workload_name(outcome, pod.workload),
            is_daemon(outcome, pod).to_string(),
            node.map_or_else(String::new, |node| node.name.clone()),
            pod.requests.cpu_milli().to_string(),
            pod.requests.memory_bytes().to_string(),
            exact_seconds(pod.created.as_micros()),
            instant_cell(pod.unschedulable),
            instant_cell(pod.scheduled),
            instant_cell(pod.started),
            instant_cell(pod.ready),
            instant_cell(pod.deletion_requested),
            instant_cell(pod.removed),
            pod.evicted.to_string(),
            span_cell(Some(wait_for_node(pod, end))),
            span_cell(pod.ready.map(|ready| ready - pod.created)),
        ]
    });
    table(output, &header, rows)
}

/// What each node cost, its volume included, by [`NodeId`].
pub(super) fn node_costs(outcome: &Outcome) -> Vec<Money> {
    let mut costs = vec![Money::ZERO; outcome.record.nodes.len()];
    for line in &outcome.bill.lines {
        if let Some(cost) = line.node.and_then(|node| costs.get_mut(node.index())) {
            *cost += line.amount;
        }
    }
    costs
}

/// Mean CPU and memory requested over allocatable while a node was Ready, 0 to 1.
pub(super) fn node_utilisation(node: &NodeFacts, end: SimTime) -> (Option<f64>, Option<f64>) {
    let Some((from, until)) = ready_interval(node, end) else { return (None, None) };
    let micros = i128::from((until - from).as_micros());
    let ratio = |requested: i128, allocatable: i64| {
        let offered = i128::from(allocatable) * micros;
        (offered > 0).then(|| rounded(requested as f64 / offered as f64, 6))
    };
    (
        ratio(node.requested_cpu, node.allocatable.cpu_milli()),
        ratio(node.requested_memory, node.allocatable.memory_bytes()),
    )
}

/// `nodes.csv`: one line for each node or node claim, in order of creation.
///
/// # Errors
/// Whatever `output` returns.
pub fn nodes(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let header = [
        "node",
        "origin_kind",
        "origin",
        "instance_type",
        "zone",
        "capacity_type",
        "arch",
        "kubelet_version",
        "rate_per_hour",
        "cpu_allocatable_milli",
        "memory_allocatable_bytes",
        "requested_seconds",
        "launched_seconds",
        "running_seconds",
        "registered_seconds",
        "ready_seconds",
        "initialized_seconds",
        "deletion_requested_seconds",
        "drained_seconds",
        "terminating_seconds",
        "terminated_seconds",
        "end",
        "cpu_requested_share",
        "memory_requested_share",
        "cost",
    ];
    let costs = node_costs(outcome);
    let rows = outcome.record.nodes.iter().zip(costs).map(|(node, cost)| node_row(outcome, node, cost));
    table(output, &header, rows)
}

fn node_row(outcome: &Outcome, node: &NodeFacts, cost: Money) -> Vec<String> {
    let (cpu, memory) = node_utilisation(node, SimTime::ZERO + outcome.about.duration);
    let origin_kind = match node.origin {
        NodeOrigin::NodeGroup(_) => "NodeGroup",
        NodeOrigin::NodePool(_) => "NodePool",
    };
    vec![
        node.name.clone(),
        origin_kind.to_owned(),
        node.origin.name().to_string(),
        symbol_cell(node.instance_type),
        symbol_cell(node.zone),
        symbol_cell(node.capacity_type),
        symbol_cell(node.arch),
        node.kubelet_version.map(|release| release.to_string()).unwrap_or_default(),
        node.rate.to_string(),
        node.allocatable.cpu_milli().to_string(),
        node.allocatable.memory_bytes().to_string(),
        exact_seconds(node.requested.as_micros()),
        instant_cell(node.launched),
        instant_cell(node.running),
        instant_cell(node.registered),
        instant_cell(node.ready),
        instant_cell(node.initialized),
        instant_cell(node.deletion_requested),
        instant_cell(node.drained),
        instant_cell(node.terminating),
        instant_cell(node.terminated),
        node.end.map_or_else(String::new, |end| end.as_str().to_owned()),
        number_cell(cpu),
        number_cell(memory),
        cost.to_string(),
    ]
}

/// `bill.csv`: the lines of the bill. The amounts sum exactly to the total.
///
/// # Errors
/// Whatever `output` returns.
pub fn bill(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let header = [
        "item",
        "node",
        "capacity_type",
        "instance_type",
        "zone",
        "from_seconds",
        "to_seconds",
        "billed_seconds",
        "rate_per_hour",
        "amount",
        "currency",
        "price_quality",
    ];
    let rows = outcome.bill.lines.iter().map(|line| {
        vec![
            line.item.as_str().to_owned(),
            line.node.map_or_else(String::new, |node| node_name(outcome, node)),
            symbol_cell(line.capacity_type),
            symbol_cell(line.instance_type),
            symbol_cell(line.zone),
            exact_seconds(line.from.as_micros()),
            exact_seconds(line.to.as_micros()),
            exact_seconds(line.billed.as_micros()),
            line.rate.to_string(),
            line.amount.to_string(),
            outcome.bill.currency.code().to_owned(),
            line.quality.as_str().to_owned(),
        ]
    });
    table(output, &header, rows)
}

fn node_name(outcome: &Outcome, node: NodeId) -> String {
    outcome.record.nodes.get(node.index()).map_or_else(String::new, |node| node.name.clone())
}

/// One line of `events.jsonl`.
#[derive(Serialize)]
struct EventLine<'a> {
    at_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    message: &'a str,
}

/// `events.jsonl`: what happened and why, one JSON object a line, in order.
///
/// # Errors
/// Whatever `output` returns.
pub fn events(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let calendar = Calendar::new(&outcome.about.start);
    let record = &outcome.record;
    for event in &record.events {
        let line = EventLine {
            at_seconds: event.at.as_secs_f64(),
            time: calendar.time(event.at),
            kind: event.kind.as_str(),
            workload: event.workload.map(|workload| workload_name(outcome, workload)),
            pod: event.pod.and_then(|pod| record.pods.get(pod.index())).map(|pod| pod.name.as_str()),
            node: event.node.and_then(|node| record.nodes.get(node.index())).map(|node| node.name.as_str()),
            decision: event.command.map(|command| command.to_string()),
            message: &event.message,
        };
        serde_json::to_writer(&mut *output, &line)?;
        output.write_all(b"\n")?;
    }
    Ok(())
}
