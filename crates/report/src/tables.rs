//! The tables of a run and its log of events: as files (CSV, JSON lines), or cell by cell for those who keep tables in a form of
//! their own. `docs/outputs.md` explains each column.
//!
//! Instants are seconds since the start of the run, exact to the microsecond; money has all nine decimals; an empty cell
//! is an instant that never came or a value that does not exist.

mod events;
mod output;
mod recommendations;

use std::io;

pub use self::events::events;
pub use self::output::{Cell, Column, Kind, Output, Row, Sink};
use self::output::{table, table_of_series};
pub use self::recommendations::recommendations;
use super::format::Calendar;
use super::summary::lives::{is_daemon, ready_micros, wait_for_node};
use super::summary::made_anew;
use super::summary::rounded;
use super::summary::service::workload_name;
use crate::domain::{Money, NodeId, SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::{NodeFacts, NodeOrigin};

/// What writes a table of a run.
pub type Table = fn(&Outcome, &mut Output<'_>) -> io::Result<()>;

/// The bytes of a table's file.
///
/// # Errors
/// Whatever `table` returns.
pub fn bytes(table: Table, outcome: &Outcome) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    table(outcome, &mut Output::File(&mut bytes))?;
    Ok(bytes)
}

/// `timeline.csv`: the cluster at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn timeline(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let calendar = Calendar::new(&outcome.about.start);
    let has_fargate = outcome.record.nodes.iter().any(|node| matches!(node.origin, NodeOrigin::Fargate(_)));
    let mut columns = vec![
        ("at_seconds", Kind::Seconds),
        ("time", Kind::Time),
        ("pods_pending", Kind::Whole),
        ("pods_starting", Kind::Whole),
        ("pods_ready", Kind::Whole),
        ("nodes_starting", Kind::Whole),
        ("nodes_spot", Kind::Whole),
        ("nodes_on_demand", Kind::Whole),
        ("cost_per_hour", Kind::Money),
        ("cost", Kind::Money),
        ("cpu_requested_milli", Kind::Whole),
        ("cpu_allocatable_milli", Kind::Whole),
        ("memory_requested_bytes", Kind::Whole),
        ("memory_allocatable_bytes", Kind::Whole),
    ];
    if has_fargate {
        columns.push(("nodes_fargate", Kind::Whole));
    }
    table(output, &columns, &outcome.record.samples, |sample, row| {
        row.at(sample.at)
            .time(calendar.instant(sample.at))
            .whole(sample.pods_pending)
            .whole(sample.pods_starting)
            .whole(sample.pods_ready)
            .whole(sample.nodes_starting)
            .whole(sample.nodes_spot)
            .whole(sample.nodes_on_demand)
            .rate(sample.cost_rate)
            .money(sample.cost)
            .whole(sample.cpu_requested_milli)
            .whole(sample.cpu_allocatable_milli)
            .whole(sample.memory_requested_bytes)
            .whole(sample.memory_allocatable_bytes);
        if has_fargate {
            row.whole(sample.nodes_fargate);
        }
    })
}

/// `workloads.csv`: each workload at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn workloads(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("at_seconds", Kind::Seconds),
        ("workload", Kind::Text),
        ("replicas_desired", Kind::Whole),
        ("replicas_ready", Kind::Whole),
        ("requests_per_second", Kind::Number),
        ("cpu_used_milli", Kind::Number),
        ("latency_mean_seconds", Kind::Number),
        ("latency_p99_seconds", Kind::Number),
    ];
    let firsts = made_anew::firsts(outcome);
    let states = outcome.record.samples.iter().flat_map(|sample| {
        made_anew::merged(sample, &firsts).into_iter().map(|workload_sample| {
            let counts = [workload_sample.replicas_desired, workload_sample.replicas_ready];
            let rates = [workload_sample.requests_per_second, workload_sample.cpu_used_milli].map(f64::to_bits);
            let latencies = [workload_sample.latency_mean_seconds, workload_sample.latency_p99_seconds]
                .map(|latency_mean_seconds| latency_mean_seconds.map(f64::to_bits));
            (sample.at, workload_sample.workload.index(), (counts, rates, latencies))
        })
    });
    let names = workload_names(outcome);
    table_of_series(output, &columns, states, |workload, &(counts, rates, latencies), row| {
        row.text(names.get(workload).map_or("", String::as_str));
        for count in counts {
            row.whole(count);
        }
        for rate in rates {
            row.number(f64::from_bits(rate));
        }
        for latency in latencies {
            row.optional_number(latency.map(f64::from_bits));
        }
    })
}

/// `metrics.csv`: what each autoscaler of replicas last read of each metric, at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn metrics(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("at_seconds", Kind::Seconds),
        ("autoscaler", Kind::Text),
        ("workload", Kind::Text),
        ("metric", Kind::Text),
        ("unit", Kind::Text),
        ("value", Kind::Number),
        ("target", Kind::Number),
        ("asks_for", Kind::Whole),
        ("replicas_desired", Kind::Whole),
        ("replicas_ready", Kind::Whole),
    ];
    let states = outcome.record.samples.iter().flat_map(|sample| {
        sample.metrics.iter().filter_map(|metric| {
            let facts = outcome.record.metrics.get(metric.metric as usize)?;
            // A sample has its workloads in the order of their numbers.
            let place = sample.workloads.binary_search_by_key(&facts.workload, |workload| workload.workload).ok();
            let counts = place.map(|place| {
                let workload = &sample.workloads[place];
                [workload.replicas_desired, workload.replicas_ready]
            });
            Some((sample.at, metric.metric as usize, (metric.value.map(f64::to_bits), metric.asks_for, counts)))
        })
    });
    let names = workload_names(outcome);
    table_of_series(output, &columns, states, |metric, &(value, asks_for, counts), row| {
        let facts = &outcome.record.metrics[metric];
        row.shown(facts.autoscaler)
            .text(names.get(facts.workload.index()).map_or("", String::as_str))
            .text(&facts.name)
            .text(facts.unit.as_str())
            .optional_number(value.map(f64::from_bits))
            .number(facts.target)
            .optional_whole(asks_for)
            .optional_whole(counts.map(|[desired, _]| desired))
            .optional_whole(counts.map(|[_, ready]| ready));
    })
}

/// `queues.csv`: each queue at each sampled instant.
///
/// # Errors
/// Whatever `output` returns.
pub fn queues(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("at_seconds", Kind::Seconds),
        ("queue", Kind::Text),
        ("kind", Kind::Text),
        ("workload", Kind::Text),
        ("waiting", Kind::Number),
        ("in_flight", Kind::Number),
        ("arrivals_per_second", Kind::Number),
        ("processed_per_second", Kind::Number),
    ];
    let states = outcome.record.samples.iter().flat_map(|sample| {
        outcome.queues.iter().zip(&sample.queues).map(|(queue, this_queue)| (sample.at, queue, this_queue))
    });
    table(output, &columns, states, |(at, queue, item), row| {
        row.at(at)
            .text(&queue.name)
            .text(queue.kind)
            .shown(queue.workload)
            .number(rounded(item.waiting, 3))
            .number(rounded(item.in_flight, 3))
            .number(item.arrival_rate)
            .number(item.throughput);
    })
}

/// `pods.csv`: one line for each pod, in order of creation.
///
/// # Errors
/// Whatever `output` returns.
pub fn pods(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let end = SimTime::ZERO + outcome.about.duration;
    let columns = [
        ("pod", Kind::Text),
        ("workload", Kind::Text),
        ("daemon", Kind::Flag),
        ("node", Kind::Text),
        ("cpu_request_milli", Kind::Whole),
        ("memory_request_bytes", Kind::Whole),
        ("created_seconds", Kind::Seconds),
        ("unschedulable_seconds", Kind::Seconds),
        ("scheduled_seconds", Kind::Seconds),
        ("started_seconds", Kind::Seconds),
        ("ready_seconds", Kind::Seconds),
        ("deletion_requested_seconds", Kind::Seconds),
        ("removed_seconds", Kind::Seconds),
        ("evicted", Kind::Flag),
        ("priority", Kind::Whole),
        ("placeholder", Kind::Flag),
        ("cut_off_seconds", Kind::Seconds),
        ("wait_for_node_seconds", Kind::Seconds),
        ("created_to_ready_seconds", Kind::Seconds),
    ];
    let names = workload_names(outcome);
    table(output, &columns, &outcome.record.pods, |pod, row| {
        let node = pod.node.and_then(|node| outcome.record.nodes.get(node.index()));
        row.text(&pod.name)
            .text(names.get(pod.workload.index()).map_or("", String::as_str))
            .flag(is_daemon(outcome, &pod))
            .optional_text(node.map(|node| node.name.as_str()))
            .whole(pod.requests.cpu_milli())
            .whole(pod.requests.memory_bytes())
            .at(pod.created)
            .instant(pod.unschedulable)
            .instant(pod.scheduled)
            .instant(pod.started)
            .instant(pod.ready)
            .instant(pod.deletion_requested)
            .instant(pod.removed)
            .flag(pod.evicted)
            .whole(pod.priority)
            .flag(pod.placeholder)
            .instant(pod.cut_off)
            .span(Some(wait_for_node(&pod, end)))
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
    let micros = ready_micros(node, end);
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
pub fn nodes(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("node", Kind::Text),
        ("origin_kind", Kind::Text),
        ("origin", Kind::Text),
        ("instance_type", Kind::Text),
        ("zone", Kind::Text),
        ("capacity_type", Kind::Text),
        ("arch", Kind::Text),
        ("kubelet_version", Kind::Text),
        ("rate_per_hour", Kind::Money),
        ("cpu_allocatable_milli", Kind::Whole),
        ("memory_allocatable_bytes", Kind::Whole),
        ("requested_seconds", Kind::Seconds),
        ("launched_seconds", Kind::Seconds),
        ("running_seconds", Kind::Seconds),
        ("registered_seconds", Kind::Seconds),
        ("ready_seconds", Kind::Seconds),
        ("initialized_seconds", Kind::Seconds),
        ("deletion_requested_seconds", Kind::Seconds),
        ("drained_seconds", Kind::Seconds),
        ("terminating_seconds", Kind::Seconds),
        ("terminated_seconds", Kind::Seconds),
        ("end", Kind::Text),
        ("cpu_requested_share", Kind::Number),
        ("memory_requested_share", Kind::Number),
        ("cost", Kind::Money),
    ];
    let nodes = outcome.record.nodes.iter().zip(node_costs(outcome));
    table(output, &columns, nodes, |(node, cost), row| fill_node(outcome, node, cost, row))
}

fn fill_node(outcome: &Outcome, node: &NodeFacts, cost: Money, row: &mut Row) {
    let (cpu, memory) = node_utilisation(node, SimTime::ZERO + outcome.about.duration);
    let origin_kind = match node.origin {
        NodeOrigin::NodeGroup(_) => "NodeGroup",
        NodeOrigin::NodePool(_) => "NodePool",
        NodeOrigin::Fargate(_) => "Fargate profile",
    };
    row.text(&node.name)
        .text(origin_kind)
        .shown(node.origin.name())
        .optional_shown(node.instance_type)
        .optional_shown(node.zone)
        .optional_shown(node.capacity_type)
        .optional_shown(node.arch)
        .optional_shown(node.kubelet_version)
        .rate(node.rate)
        .whole(node.allocatable.cpu_milli())
        .whole(node.allocatable.memory_bytes())
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
        .optional_text(node.end.map(|end| end.as_str()))
        .optional_number(cpu)
        .optional_number(memory)
        .money(cost);
}

/// `bill.csv`: the lines of the bill. The amounts sum exactly to the total.
///
/// # Errors
/// Whatever `output` returns.
pub fn bill(outcome: &Outcome, output: &mut Output<'_>) -> io::Result<()> {
    let columns = [
        ("item", Kind::Text),
        ("node", Kind::Text),
        ("capacity_type", Kind::Text),
        ("instance_type", Kind::Text),
        ("zone", Kind::Text),
        ("from_seconds", Kind::Seconds),
        ("to_seconds", Kind::Seconds),
        ("billed_seconds", Kind::Seconds),
        ("rate_per_hour", Kind::Money),
        ("amount", Kind::Money),
        ("currency", Kind::Text),
        ("price_quality", Kind::Text),
    ];
    table(output, &columns, &outcome.bill.lines, |line, row| {
        row.text(line.item.name())
            .optional_text(line.node.map(|node| node_name(outcome, node)))
            .optional_shown(line.capacity_type)
            .optional_shown(line.instance_type)
            .optional_shown(line.zone)
            .at(line.from)
            .at(line.to)
            .span(Some(line.billed))
            .rate(line.rate)
            .money(line.amount)
            .text(outcome.bill.currency.code())
            .text(line.quality.as_str());
    })
}

fn node_name(outcome: &Outcome, node: NodeId) -> &str {
    outcome.record.nodes.get(node.index()).map_or("", |node| &node.name)
}
