//! Counts of nodes and pods over time, for the words of the replay: of all nodes, however few are drawn.
//!
//! Counts agree with `timeline.csv` at its instants.

use std::collections::BTreeMap;

use serde::Serialize;

use super::encode::{Runs, differences, tenths};
use crate::curves::{Point, Spans, open_at_once};
use crate::domain::{NodeId, SimTime, Symbol};
use crate::summary::lives::{is_daemon, ready_intervals};
use nodecast_world::Outcome;
use nodecast_world::record::{EventKind, NodeFacts};

/// Instants of exact counts of nodes; where more would be needed, the instants are those of the samples.
const NODE_INSTANTS_MAX: usize = 10_000;
/// The same for counts of pods, which are more.
const POD_INSTANTS_MAX: usize = 5_000;
/// Microseconds in a tenth of a second.
const TENTH: i64 = 100_000;

type Span = (SimTime, SimTime);

/// Counts of nodes and pods over time.
#[derive(Serialize)]
pub(super) struct Counts {
    /// The instant at which the page opens.
    pub(super) opens: i64,
    nodes: NodeCounts,
    pods: PodCounts,
}

/// When counts were taken.
#[derive(Serialize)]
struct Instants {
    /// Whether these are the instants of the samples; counts are exact otherwise.
    sampled: bool,
    /// Each less the one before it.
    at: Runs<i64>,
}

/// Counts of nodes.
#[derive(Serialize)]
struct NodeCounts {
    instants: Instants,
    /// Ready nodes by capacity type.
    ready: Vec<ReadyCount>,
    starting: Runs<i64>,
    not_ready: Runs<i64>,
    interrupted: Runs<i64>,
    draining: Runs<i64>,
}

/// Counts of pods, those of DaemonSets left out.
#[derive(Serialize)]
struct PodCounts {
    instants: Instants,
    on_nodes: Runs<i64>,
    pending: Runs<i64>,
}

/// Ready nodes of one capacity type; counts are written as differences.
#[derive(Serialize)]
struct ReadyCount {
    bought: &'static str,
    count: Runs<i64>,
}

impl Counts {
    pub(super) fn new(outcome: &Outcome) -> Self {
        let notices = notices(outcome);
        Self {
            opens: tenths(opening(outcome, &notices)),
            nodes: NodeCounts::new(outcome, &notices),
            pods: PodCounts::new(outcome),
        }
    }
}

impl NodeCounts {
    fn new(outcome: &Outcome, notices: &BTreeMap<NodeId, SimTime>) -> Self {
        let end = SimTime::ZERO + outcome.about.duration;
        let mut ready: BTreeMap<&'static str, Vec<Span>> = BTreeMap::new();
        let mut states: [Vec<Span>; 4] = Default::default();
        for (index, node) in outcome.record.nodes.iter().enumerate() {
            let bought = node.capacity_type.map_or("", Symbol::as_str);
            ready.entry(bought).or_default().extend(ready_intervals(node, end));
            let notice = notices.get(&NodeId(u32::try_from(index).unwrap_or(u32::MAX))).copied();
            for (state, spans) in states.iter_mut().zip(node_states(node, notice, end)) {
                state.extend(spans);
            }
        }
        let curve = |spans: &Vec<Span>| open_at_once(spans.iter().copied(), spans.len(), end);
        let ready: Vec<(&str, Vec<Point>)> = ready.iter().map(|(bought, spans)| (*bought, curve(spans))).collect();
        let states = states.each_ref().map(curve);
        let curves = ready.iter().map(|(_, points)| points).chain(&states);
        let (instants, times) = Instants::new(outcome, curves, NODE_INSTANTS_MAX);
        let [starting, not_ready, interrupted, draining] = states.each_ref().map(|points| counts(points, &times));
        let ready = ready.iter().map(|(bought, points)| ReadyCount { bought, count: counts(points, &times) });
        Self { instants, ready: ready.collect(), starting, not_ready, interrupted, draining }
    }
}

impl PodCounts {
    fn new(outcome: &Outcome) -> Self {
        let end = SimTime::ZERO + outcome.about.duration;
        let most = outcome.record.pods.len();
        let (mut on_nodes, mut pending) = (Spans::with_room(most, end), Spans::with_room(most, end));
        for pod in outcome.record.pods.unnamed().filter(|pod| !is_daemon(outcome, pod)) {
            let gone = pod.removed.unwrap_or(end);
            on_nodes.extend(pod.scheduled.map(|from| (from.max(SimTime::ZERO), gone)));
            pending.extend([(pod.created.max(SimTime::ZERO), pod.scheduled.unwrap_or(gone).min(gone))]);
        }
        let curves = [on_nodes.open(), pending.open()];
        let (instants, times) = Instants::new(outcome, curves.iter(), POD_INSTANTS_MAX);
        let [on_nodes, pending] = curves.each_ref().map(|points| counts(points, &times));
        Self { instants, on_nodes, pending }
    }
}

impl Instants {
    /// The instants at which one of `curves` changes, or those of the samples where these are more than `most`.
    fn new<'c>(outcome: &Outcome, curves: impl Iterator<Item = &'c Vec<Point>>, most: usize) -> (Self, Vec<SimTime>) {
        // In whole tenths of a second, and never before what happened.
        let written = |at: SimTime| -(-at.as_micros()).div_euclid(TENTH);
        let mut changes: Vec<i64> = curves.flatten().map(|point| written(point.0)).collect();
        changes.sort_unstable();
        changes.dedup();
        let sampled = changes.len() > most;
        let times: Vec<SimTime> = if sampled {
            outcome.record.samples.iter().map(|sample| sample.at).collect()
        } else {
            changes.into_iter().map(|at| SimTime::from_micros(at * TENTH)).collect()
        };
        (Self { sampled, at: differences(times.iter().copied().map(tenths)) }, times)
    }
}

/// The values of a curve of counts at some instants, as differences.
fn counts(points: &[Point], times: &[SimTime]) -> Runs<i64> {
    let value = |at: &SimTime| {
        let after = points.partition_point(|point| point.0 <= *at);
        let value = after.checked_sub(1).and_then(|position| points[position].1.get());
        value.map_or(0, |value| value as i64)
    };
    differences(times.iter().map(value))
}

/// When EC2 gave notice to each node.
pub(super) fn notices(outcome: &Outcome) -> BTreeMap<NodeId, SimTime> {
    let events = outcome.record.events.iter();
    let notices = events.filter(|event| event.kind == EventKind::InterruptionNotice);
    notices.filter_map(|event| Some((event.node?, event.at))).collect()
}

/// A time worth seeing first: the first interruption, else when most nodes were Ready.
fn opening(outcome: &Outcome, notices: &BTreeMap<NodeId, SimTime>) -> SimTime {
    let most = || {
        let ready = crate::curves::nodes_ready(outcome);
        let larger = |one: Point, other: Point| if other.1.get() > one.1.get() { other } else { one };
        ready.into_iter().reduce(larger).map(|point| point.0)
    };
    let at = notices.values().copied().min().or_else(most).unwrap_or(SimTime::ZERO);
    at.clamp(SimTime::ZERO, SimTime::ZERO + outcome.about.duration)
}

/// When a node is gone; one that was never launched goes with its claim.
pub(super) fn gone(node: &NodeFacts) -> Option<SimTime> {
    node.terminated.or_else(|| node.deletion_requested.filter(|_| node.launched.is_none()))
}

/// When a node is starting, not Ready any more, interrupted by EC2 and draining.
fn node_states(node: &NodeFacts, notice: Option<SimTime>, end: SimTime) -> [Vec<Span>; 4] {
    let over = node.terminating.or_else(|| gone(node)).unwrap_or(end).min(end);
    let span = |from: SimTime, until: SimTime| (from.max(SimTime::ZERO), until.min(over));
    let told = node.deletion_requested.filter(|told| node.ready.is_some_and(|ready| ready <= *told));
    let lost = node.not_ready.iter().filter(|(from, _)| *from < over);
    [
        vec![span(node.requested, node.ready.unwrap_or(end))],
        lost.map(|(from, again)| span(*from, again.unwrap_or(end))).collect(),
        notice.map(|notice| span(notice, told.unwrap_or(end))).into_iter().collect(),
        told.map(|told| span(told, end)).into_iter().collect(),
    ]
}
