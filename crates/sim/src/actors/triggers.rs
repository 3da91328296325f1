//! The values of KEDA's triggers in the simulation: the calendar, pods, Prometheus, queues, and what the
//! scenario states.
//!
//! What must not live here: what KEDA does with a value (`keda_loop`, the deciding crates).

use std::collections::BTreeSet;

use super::prometheus::Prometheus;
use super::queue_loop::Queues;
use super::setup::{TriggerReader, TriggerSources};
use super::sim::Sim;
use crate::cluster::PodPhase;
use crate::domain::cron::CronWindow;
use crate::domain::keda::Reads;
use crate::domain::{LabelSelector, NodeId, SimDuration, SimTime, Symbol};
use nodecast_replicas::keda::{Partition, QueueFigures, SourceReading, TriggerValue, trigger_value};

/// What is remembered of one trigger between reads.
#[derive(Clone, Debug, Default)]
pub(super) struct TriggerMemory {
    /// Failures in a row, as a fallback counts them.
    pub(super) failures: i32,
    /// What the last poll read, in thousandths; an inner `None` is a failure.
    pub(super) polled: Option<Option<i64>>,
    /// Whether the last read failed, so that a series of failures is noted once.
    pub(super) failing: bool,
    /// The offsets that the last read found committed.
    committed: Vec<i64>,
    /// Whether the calendar is inside the window, and until when that holds.
    window: Option<(bool, SimTime)>,
}

/// The value of the trigger at `index`, its queues brought up to `now`.
///
/// # Errors
/// Its source gives no value; the text says why.
pub(super) fn read_current(
    sim: &Sim<'_>,
    (prometheus, queues): (&Prometheus, &mut Queues),
    now: SimTime,
    sources: &TriggerSources<'_>,
    index: usize,
    memory: &mut TriggerMemory,
) -> Result<TriggerValue, String> {
    if let TriggerReader::Queues(positions) = &sources.readers[index] {
        for &position in positions {
            queues.all[position].queue.advance(now);
        }
    }
    read(sim, (prometheus, queues), now, sources, index, memory)
}

/// The value of the trigger at `index` and whether it is active.
///
/// # Errors
/// Its source gives no value; the text says why.
fn read(
    sim: &Sim<'_>,
    (prometheus, queues): (&Prometheus, &Queues),
    now: SimTime,
    sources: &TriggerSources<'_>,
    index: usize,
    memory: &mut TriggerMemory,
) -> Result<TriggerValue, String> {
    let source = &sources.triggers[index].source;
    let (partitions, figures);
    let reading = match &sources.readers[index] {
        TriggerReader::MetricsServer => return Err("it is read from metrics-server".to_owned()),
        TriggerReader::Unreachable(why) | TriggerReader::Unknown(why) => return Err(why.clone()),
        TriggerReader::Calendar(window) => SourceReading::Window(inside(sim, now, window, memory)),
        TriggerReader::Pods(selector) => {
            let by_node = matches!(source.reads, Reads::KubernetesWorkload { group_by_node: true, .. });
            SourceReading::Count(count_pods(sim, sources.namespace, selector, by_node))
        }
        TriggerReader::External(position) => {
            let metric = &sim.setup.scenario.external_metrics[*position];
            let value = metric.at(now).ok_or("the scaler does not answer")?;
            SourceReading::Told { value, active: value > metric.active_above.max(source.activation) }
        }
        TriggerReader::Query(query) => SourceReading::Query(prometheus.trigger_result(sim, now, query)?),
        TriggerReader::Queues(positions) => match source.reads {
            Reads::Kafka(_) => {
                partitions = read_partitions(queues, positions, memory);
                SourceReading::Partitions(&partitions)
            }
            Reads::RabbitMq(_) => {
                let all = positions.iter().map(|&position| queues.all[position].figures());
                figures = all.collect::<Vec<QueueFigures>>();
                SourceReading::Queues(&figures)
            }
            _ => {
                let (visible, in_flight) = positions.first().map_or((0, 0), |&at| queues.all[at].messages());
                SourceReading::Messages { visible, in_flight, delayed: 0 }
            }
        },
    };
    trigger_value(source, &reading).map_err(|problem| problem.to_string())
}

/// The partitions of all topics that the trigger looks at, beside the offsets that the last read found.
fn read_partitions(queues: &Queues, positions: &[usize], memory: &mut TriggerMemory) -> Vec<Partition> {
    let mut partitions = Vec::new();
    for &position in positions {
        let before = memory.committed.get(partitions.len()..).unwrap_or_default();
        let this_partitions = queues.all[position].partitions(before);
        partitions.extend(this_partitions);
    }
    memory.committed = partitions.iter().filter_map(|partition| partition.committed).collect();
    partitions
}

/// Whether the calendar is inside the window; asked again only when that can have changed.
fn inside(sim: &Sim<'_>, now: SimTime, window: &CronWindow, memory: &mut TriggerMemory) -> bool {
    if let Some((inside, until)) = memory.window
        && now < until
    {
        return inside;
    }
    let start = sim.setup.scenario.start;
    let calendar = start.saturating_add(jiff::SignedDuration::from_micros(now.as_micros())).unwrap_or(start);
    let state = window.at(calendar);
    let ahead = state.until.duration_since(calendar).as_micros();
    let ahead = SimDuration::from_micros(i64::try_from(ahead).unwrap_or(i64::MAX / 4).min(i64::MAX / 4));
    memory.window = Some((state.active, now + ahead));
    state.active
}

/// The pods of a namespace that match and have not ended, or the nodes that they are on.
///
/// Source: KEDA 2.20 `pkg/scalers/kubernetes_workload_scaler.go`, `getMetricValue`.
fn count_pods(sim: &Sim<'_>, namespace: Symbol, selector: &LabelSelector, by_node: bool) -> i64 {
    let workloads = sim.world.workloads().filter(|(_, workload)| workload.name.namespace == namespace);
    let pods = workloads.flat_map(|(_, workload)| &workload.pods).map(|&pod| sim.world.pod(pod));
    let matching = pods.filter(|pod| pod.phase != PodPhase::Gone && selector.matches(&pod.spec.labels));
    if by_node {
        matching.filter_map(|pod| pod.node).collect::<BTreeSet<NodeId>>().len() as i64
    } else {
        matching.count() as i64
    }
}
