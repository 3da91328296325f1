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
use crate::domain::{Money, NodeId, SimTime, Symbol, WorkloadId};
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

/// Room for the line of a series, which is made again at every change; a longer one finds more.
const LINE_BYTES: usize = 256;

/// A table whose rows begin with an instant and tell the state of one of several series each, by number: (instant, series,
/// state). Nearly always a series is as it was, so what was last written of each is kept and written again while its state is
/// the same.
fn table_of_series<S: PartialEq>(
    output: &mut dyn Write,
    header: &[&str],
    rows: impl Iterator<Item = (SimTime, usize, S)>,
    cells: impl Fn(usize, &S) -> Vec<String>,
) -> io::Result<()> {
    table(output, header, std::iter::empty())?;
    let mut last: Vec<Option<(S, Vec<u8>)>> = Vec::new();
    let mut instant: Option<(SimTime, String)> = None;
    for (at, series, state) in rows {
        if instant.as_ref().is_none_or(|(known, _)| *known != at) {
            instant = Some((at, exact_seconds(at.as_micros()) + ","));
        }
        if last.len() <= series {
            last.resize_with(series + 1, || None);
        }
        if last[series].as_ref().is_none_or(|(known, _)| *known != state) {
            let mut writer = csv::WriterBuilder::new().buffer_capacity(LINE_BYTES).from_writer(Vec::new());
            writer.write_record(cells(series, &state))?;
            let line = writer.into_inner().map_err(|error| error.into_error())?;
            last[series] = Some((state, line));
        }
        if let (Some((_, instant)), Some((_, line))) = (&instant, &last[series]) {
            output.write_all(instant.as_bytes())?;
            output.write_all(line)?;
        }
    }
    Ok(())
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
    let states = outcome.record.samples.iter().flat_map(|sample| {
        sample.workloads.iter().map(|own| {
            let counts = [own.replicas_desired, own.replicas_ready];
            let rates = [own.requests_per_second, own.cpu_used_milli].map(f64::to_bits);
            let latencies = [own.latency_mean_seconds, own.latency_p99_seconds].map(|own| own.map(f64::to_bits));
            (sample.at, own.workload.index(), (counts, rates, latencies))
        })
    });
    table_of_series(output, &header, states, |workload, (counts, rates, latencies)| {
        let mut cells = vec![workload_name(outcome, WorkloadId::from_index(workload))];
        cells.extend(counts.map(|count| count.to_string()));
        cells.extend(rates.map(|rate| f64::from_bits(rate).to_string()));
        cells.extend(latencies.map(|latency| number_cell(latency.map(f64::from_bits))));
        cells
    })
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
    let states = outcome.record.samples.iter().flat_map(|sample| {
        sample.metrics.iter().filter_map(|own| {
            let facts = outcome.record.metrics.get(own.metric as usize)?;
            // A sample has its workloads in the order of their numbers.
            let place = sample.workloads.binary_search_by_key(&facts.workload, |workload| workload.workload).ok();
            let counts = place.map(|place| {
                let workload = &sample.workloads[place];
                [workload.replicas_desired, workload.replicas_ready]
            });
            Some((sample.at, own.metric as usize, (own.value.map(f64::to_bits), own.asks_for, counts)))
        })
    });
    table_of_series(output, &header, states, |metric, &(value, asks_for, counts)| {
        let facts = &outcome.record.metrics[metric];
        let count = |count: Option<u32>| count.map_or_else(String::new, |count| count.to_string());
        vec![
            facts.autoscaler.to_string(),
            workload_name(outcome, facts.workload),
            facts.name.clone(),
            facts.unit.as_str().to_owned(),
            number_cell(value.map(f64::from_bits)),
            facts.target.to_string(),
            count(asks_for),
            count(counts.map(|[desired, _]| desired)),
            count(counts.map(|[_, ready]| ready)),
        ]
    })
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
    time: Option<&'a str>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a str>,
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
    let workloads: Vec<String> = record.workloads.iter().map(|workload| workload.name.to_string()).collect();
    // Much happens at one instant.
    let mut instant: Option<(SimTime, Option<String>)> = None;
    let mut text = Vec::new();
    for event in &record.events {
        let (_, time) = match &mut instant {
            Some(known) if known.0 == event.at => known,
            other => other.insert((event.at, calendar.time(event.at))),
        };
        let line = EventLine {
            at_seconds: event.at.as_secs_f64(),
            time: time.as_deref(),
            kind: event.kind.as_str(),
            workload: event.workload.map(|own| workloads.get(own.index()).map_or("", String::as_str)),
            pod: event.pod.and_then(|pod| record.pods.get(pod.index())).map(|pod| pod.name.as_str()),
            node: event.node.and_then(|node| record.nodes.get(node.index())).map(|node| node.name.as_str()),
            decision: event.command.map(|command| command.to_string()),
            message: &event.message,
        };
        text.clear();
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
        output.write_all(&text)?;
    }
    Ok(())
}
