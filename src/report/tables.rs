//! The tables of a run (CSV) and its log of events (JSON lines). `docs/outputs.md` explains each column.
//!
//! Instants are seconds since the start of the run, exact to the microsecond; money has all nine decimals; an empty cell
//! is an instant that never came or a value that does not exist.

mod row;

use std::io::{self, Write};

use self::row::Row;
use super::format::{Calendar, ExactSeconds};
use super::summary::lives::{is_daemon, ready_interval, wait_for_node};
use super::summary::rounded;
use super::summary::service::workload_name;
use crate::domain::{Money, NodeId, SimTime, WorkloadId};
use crate::simulation::Outcome;
use crate::world::record::{NodeFacts, NodeOrigin};

/// A table with one header line and `\n` line ends; `fill` puts the cells of a thing into its row.
fn table<T>(
    output: &mut dyn Write,
    header: &[&str],
    things: impl IntoIterator<Item = T>,
    fill: impl Fn(T, &mut Row),
) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(header)?;
    let mut row = Row::default();
    for thing in things {
        row.clear();
        fill(thing, &mut row);
        writer.write_byte_record(row.cells())?;
    }
    writer.flush()
}

/// Room for the line of a series, which is made again at every change; a longer one finds more.
const LINE_BYTES: usize = 1 << 10;

/// A table whose rows begin with an instant and tell the state of one of several series each, by number: (instant, series,
/// state). Nearly always a series is as it was, so what was last written of each is kept and written again while its state is
/// the same.
fn table_of_series<S: PartialEq>(
    output: &mut dyn Write,
    header: &[&str],
    rows: impl Iterator<Item = (SimTime, usize, S)>,
    fill: impl Fn(usize, &S, &mut Row),
) -> io::Result<()> {
    table(output, header, std::iter::empty::<()>(), |(), _| {})?;
    let mut last: Vec<(Option<S>, Vec<u8>)> = Vec::new();
    let (mut instant, mut instant_text) = (None, String::new());
    let mut row = Row::default();
    for (at, series, state) in rows {
        if instant != Some(at) {
            (instant, instant_text) = (Some(at), format!("{},", ExactSeconds(at.as_micros())));
        }
        if last.len() <= series {
            last.resize_with(series + 1, || (None, Vec::new()));
        }
        let (known, line) = &mut last[series];
        if known.as_ref() != Some(&state) {
            row.clear();
            fill(series, &state, &mut row);
            line.clear();
            let mut writer = csv::WriterBuilder::new().buffer_capacity(LINE_BYTES).from_writer(&mut *line);
            writer.write_byte_record(row.cells())?;
            writer.flush()?;
            drop(writer);
            *known = Some(state);
        }
        output.write_all(instant_text.as_bytes())?;
        output.write_all(line)?;
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
        "cost",
        "cpu_requested_milli",
        "cpu_allocatable_milli",
        "memory_requested_bytes",
        "memory_allocatable_bytes",
    ];
    table(output, &header, &outcome.record.samples, |sample, row| {
        row.at(sample.at)
            .optional(calendar.time(sample.at))
            .value(sample.pods_pending)
            .value(sample.pods_starting)
            .value(sample.pods_ready)
            .value(sample.nodes_starting)
            .value(sample.nodes_spot)
            .value(sample.nodes_on_demand)
            .value(sample.cost_rate)
            .value(sample.cost)
            .value(sample.cpu_requested_milli)
            .value(sample.cpu_allocatable_milli)
            .value(sample.memory_requested_bytes)
            .value(sample.memory_allocatable_bytes);
    })
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
    let names = workload_names(outcome);
    table_of_series(output, &header, states, |workload, &(counts, rates, latencies), row| {
        row.text(names.get(workload).map_or("", String::as_str));
        for count in counts {
            row.value(count);
        }
        for rate in rates {
            row.value(f64::from_bits(rate));
        }
        for latency in latencies {
            row.optional(latency.map(f64::from_bits));
        }
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
    let names = workload_names(outcome);
    table_of_series(output, &header, states, |metric, &(value, asks_for, counts), row| {
        let facts = &outcome.record.metrics[metric];
        row.value(facts.autoscaler)
            .text(names.get(facts.workload.index()).map_or("", String::as_str))
            .text(&facts.name)
            .text(facts.unit.as_str())
            .optional(value.map(f64::from_bits))
            .value(facts.target)
            .optional(asks_for)
            .optional(counts.map(|[desired, _]| desired))
            .optional(counts.map(|[_, ready]| ready));
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
    let states = outcome
        .record
        .samples
        .iter()
        .flat_map(|sample| outcome.queues.iter().zip(&sample.queues).map(|(queue, own)| (sample.at, queue, own)));
    table(output, &header, states, |(at, queue, own), row| {
        row.at(at)
            .text(&queue.name)
            .text(queue.kind)
            .value(queue.workload)
            .value(rounded(own.waiting, 3))
            .value(rounded(own.in_flight, 3))
            .value(own.arrival_rate)
            .value(own.throughput);
    })
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
        "priority",
        "placeholder",
        "cut_off_seconds",
        "wait_for_node_seconds",
        "created_to_ready_seconds",
    ];
    let names = workload_names(outcome);
    table(output, &header, &outcome.record.pods, |pod, row| {
        let node = pod.node.and_then(|node| outcome.record.nodes.get(node.index()));
        row.text(&pod.name)
            .text(names.get(pod.workload.index()).map_or("", String::as_str))
            .value(is_daemon(outcome, pod))
            .text(node.map_or("", |node| &node.name))
            .value(pod.requests.cpu_milli())
            .value(pod.requests.memory_bytes())
            .at(pod.created)
            .instant(pod.unschedulable)
            .instant(pod.scheduled)
            .instant(pod.started)
            .instant(pod.ready)
            .instant(pod.deletion_requested)
            .instant(pod.removed)
            .value(pod.evicted)
            .value(pod.priority)
            .value(pod.placeholder)
            .instant(pod.cut_off)
            .span(Some(wait_for_node(pod, end)))
            .span(pod.ready.map(|ready| ready - pod.created));
    })
}

/// Names of workloads, by number.
fn workload_names(outcome: &Outcome) -> Vec<String> {
    let ids = (0..outcome.record.workloads.len()).map(WorkloadId::from_index);
    ids.map(|id| workload_name(outcome, id)).collect()
}

/// What each node cost net, its volume included, by [`NodeId`].
pub(super) fn node_costs(outcome: &Outcome) -> Vec<Money> {
    let mut costs = vec![Money::ZERO; outcome.record.nodes.len()];
    for line in outcome.bill.net() {
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
    let nodes = outcome.record.nodes.iter().zip(node_costs(outcome));
    table(output, &header, nodes, |(node, cost), row| fill_node(outcome, node, cost, row))
}

fn fill_node(outcome: &Outcome, node: &NodeFacts, cost: Money, row: &mut Row) {
    let (cpu, memory) = node_utilisation(node, SimTime::ZERO + outcome.about.duration);
    let origin_kind = match node.origin {
        NodeOrigin::NodeGroup(_) => "NodeGroup",
        NodeOrigin::NodePool(_) => "NodePool",
    };
    row.text(&node.name)
        .text(origin_kind)
        .value(node.origin.name())
        .optional(node.instance_type)
        .optional(node.zone)
        .optional(node.capacity_type)
        .optional(node.arch)
        .optional(node.kubelet_version)
        .value(node.rate)
        .value(node.allocatable.cpu_milli())
        .value(node.allocatable.memory_bytes())
        .at(node.requested)
        .instant(node.launched)
        .instant(node.running)
        .instant(node.registered)
        .instant(node.ready)
        .instant(node.initialized)
        .instant(node.deletion_requested)
        .instant(node.drained)
        .instant(node.terminating)
        .instant(node.terminated)
        .text(node.end.map_or("", |end| end.as_str()))
        .optional(cpu)
        .optional(memory)
        .value(cost);
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
    table(output, &header, &outcome.bill.lines, |line, row| {
        row.text(line.item.as_str())
            .text(line.node.map_or("", |node| node_name(outcome, node)))
            .optional(line.capacity_type)
            .optional(line.instance_type)
            .optional(line.zone)
            .at(line.from)
            .at(line.to)
            .span(Some(line.billed))
            .value(line.rate)
            .value(line.amount)
            .text(outcome.bill.currency.code())
            .text(line.quality.as_str());
    })
}

fn node_name(outcome: &Outcome, node: NodeId) -> &str {
    outcome.record.nodes.get(node.index()).map_or("", |node| &node.name)
}

/// `events.jsonl`: what happened and why, one JSON object a line, in order.
///
/// # Errors
/// Whatever `output` returns.
pub fn events(outcome: &Outcome, output: &mut dyn Write) -> io::Result<()> {
    let calendar = Calendar::new(&outcome.about.start);
    let record = &outcome.record;
    let workloads = workload_names(outcome);
    // Much happens at one instant.
    let (mut instant, mut beginning) = (None, Vec::new());
    let mut line = Vec::new();
    for event in &record.events {
        if instant != Some(event.at) {
            instant = Some(event.at);
            beginning.clear();
            begin_line(&mut beginning, event.at, calendar)?;
        }
        line.clear();
        line.extend_from_slice(&beginning);
        line.extend_from_slice(b",\"kind\":\"");
        line.extend_from_slice(event.kind.as_str().as_bytes());
        line.push(b'"');
        let mut name = |key: &str, name: Option<&str>| {
            let Some(name) = name else { return Ok(()) };
            line.extend_from_slice(key.as_bytes());
            text(&mut line, name)
        };
        name(",\"workload\":", event.workload.map(|own| workloads.get(own.index()).map_or("", String::as_str)))?;
        name(",\"pod\":", event.pod.and_then(|pod| record.pods.get(pod.index())).map(|pod| pod.name.as_str()))?;
        name(",\"node\":", event.node.and_then(|node| record.nodes.get(node.index())).map(|node| node.name.as_str()))?;
        name(",\"decision\":", event.command.map(|command| command.to_string()).as_deref())?;
        name(",\"message\":", Some(&event.message))?;
        line.extend_from_slice(b"}\n");
        output.write_all(&line)?;
    }
    Ok(())
}

/// A text as JSON. Few hold anything that has to be escaped, and to find that out for a whole text at once is quick.
fn text(line: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |found, byte| found | escaped(byte)) {
        return Ok(serde_json::to_writer(line, text)?);
    }
    line.push(b'"');
    line.extend_from_slice(text.as_bytes());
    line.push(b'"');
    Ok(())
}

/// The members with which the line of every event at an instant begins.
fn begin_line(line: &mut Vec<u8>, at: SimTime, calendar: Calendar) -> io::Result<()> {
    line.extend_from_slice(b"{\"at_seconds\":");
    serde_json::to_writer(&mut *line, &at.as_secs_f64())?;
    if let Some(time) = calendar.time(at) {
        line.extend_from_slice(b",\"time\":");
        serde_json::to_writer(line, &time)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_text_is_the_json_that_the_library_makes_of_it() {
        let every_byte: Vec<String> = (0..=0x7f_u8).map(|byte| format!("a{}b", char::from(byte))).collect();
        let others = ["", "web-00012", "caf\u{e9} \u{2026}", "\\", "a \"quoted\" word\n"].map(str::to_owned);
        for own in every_byte.iter().chain(&others) {
            let mut line = Vec::new();
            text(&mut line, own).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), serde_json::to_string(own).unwrap());
        }
    }
}
