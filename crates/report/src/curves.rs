//! Curves of a run over time: what the plots draw and the page shows. Every point is a fact of the outcome.
//!
//! What must not live here: pixels, colours, files.

mod kinds;

pub(super) use kinds::{cost_by_kind, nodes_by_type};

use std::collections::BTreeMap;

use super::summary::lives::{is_daemon, ready_intervals, wait_for_node};
use super::summary::service::workload_name;
use crate::domain::{Currency, SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::{MetricFacts, PodFacts, QueueSample, Sample, WorkloadKind, WorkloadSample};

/// A value at an instant.
pub(super) type Point = (SimTime, Value);

/// A value, or a gap of the curve, in the room of a number: curves have a million points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value(f64);

impl Value {
    /// The value; nothing where the curve has a gap.
    pub(super) fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Self {
        Self(value.unwrap_or(f64::NAN))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

/// A curve.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Whose values they are.
    pub name: String,
    /// A number by which curves of one thing share a colour.
    pub color: usize,
    /// A value holds until the next instant, rather than being one point of a smooth curve.
    pub steps: bool,
    /// It stands behind its sibling.
    pub faint: bool,
    /// In order of time.
    pub points: Vec<Point>,
}

impl Series {
    /// A curve of values that hold until they change.
    pub(super) fn steps(name: impl Into<String>, color: usize, points: Vec<Point>) -> Self {
        Self { name: name.into(), color, steps: true, faint: false, points }
    }

    /// A curve through measured values.
    pub(super) fn line(name: impl Into<String>, color: usize, points: Vec<Point>) -> Self {
        Self { name: name.into(), color, steps: false, faint: false, points }
    }

    /// The same curve, drawn behind its sibling.
    pub(super) fn faint(mut self) -> Self {
        self.faint = true;
        self
    }

    /// Whether there is anything to see.
    fn is_ever_above_zero(&self) -> bool {
        self.max() > 0.0
    }

    /// The largest value, at least zero.
    pub(super) fn max(&self) -> f64 {
        self.points.iter().filter_map(|point| point.1.get()).fold(0.0, f64::max)
    }
}

/// One chart: curves in one unit.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// What the values are in.
    pub unit: &'static str,
    /// Whether the values are counts.
    pub whole: bool,
    /// The curves, the ones behind first.
    pub series: Vec<Series>,
}

impl Panel {
    /// A chart of things that are counted.
    pub(super) const fn counts(unit: &'static str) -> Self {
        Self { unit, whole: true, series: Vec::new() }
    }

    /// A chart of amounts.
    pub(super) const fn amounts(unit: &'static str) -> Self {
        Self { unit, whole: false, series: Vec::new() }
    }

    /// Whether there is anything to see.
    pub(super) fn has_data(&self) -> bool {
        self.series.iter().any(Series::is_ever_above_zero)
    }
}

/// Positions within [`Sample::workloads`], those with the most replicas first.
pub(super) fn most_replicas_first(outcome: &Outcome) -> Vec<usize> {
    let mut most: Vec<u32> = Vec::new();
    for sample in &outcome.record.samples {
        most.resize(most.len().max(sample.workloads.len()), 0);
        for (most, workload) in most.iter_mut().zip(&sample.workloads) {
            *most = (*most).max(workload.replicas_desired).max(workload.replicas_ready);
        }
    }
    let mut order: Vec<usize> = (0..most.len()).collect();
    order.sort_by_key(|&position| std::cmp::Reverse(most[position]));
    order
}

/// The colour of each workload, the same wherever something of it is drawn; DaemonSets have none. Those with the most replicas
/// have the first.
pub(super) fn workload_colors(outcome: &Outcome) -> BTreeMap<WorkloadId, usize> {
    let sample = outcome.record.samples.iter().max_by_key(|sample| sample.workloads.len());
    let drawn = most_replicas_first(outcome).into_iter();
    let drawn = drawn.filter_map(|position| sample?.workloads.get(position)).map(|workload| workload.workload);
    let mut colors: BTreeMap<WorkloadId, usize> = drawn.enumerate().map(|(color, id)| (id, color)).collect();
    let mut next = colors.len();
    for (index, facts) in outcome.record.workloads.iter().enumerate() {
        let id = WorkloadId(u32::try_from(index).unwrap_or(u32::MAX));
        if facts.kind == WorkloadKind::DaemonSet {
            colors.remove(&id);
        } else {
            // One that came and went between two samples has no curve, but a colour all the same.
            colors.entry(id).or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
    }
    colors
}

/// A curve over all samples; `value` is `None` where the curve has a gap.
fn curve(outcome: &Outcome, mut value: impl FnMut(&Sample) -> Option<f64>) -> Vec<Point> {
    outcome.record.samples.iter().map(|sample| (sample.at, value(sample).into())).collect()
}

/// So many curves over all samples, each sample gone through once for all of them: what one sample holds lies together.
fn side_by_side(
    outcome: &Outcome,
    curves: usize,
    mut value: impl FnMut(&Sample, usize) -> Option<f64>,
) -> Vec<Vec<Point>> {
    let samples = &outcome.record.samples;
    let mut points: Vec<Vec<Point>> = (0..curves).map(|_| Vec::with_capacity(samples.len())).collect();
    for sample in samples {
        for (number, points) in points.iter_mut().enumerate() {
            points.push((sample.at, value(sample, number).into()));
        }
    }
    points
}

/// Curves of the workloads at the positions `shown`.
fn workload_curves(
    outcome: &Outcome,
    shown: &[usize],
    value: impl Fn(&WorkloadSample) -> Option<f64>,
) -> Vec<Vec<Point>> {
    side_by_side(outcome, shown.len(), |sample, number| sample.workloads.get(shown[number]).and_then(&value))
}

/// The name of the workload at a position within [`Sample::workloads`].
fn name_at(outcome: &Outcome, position: usize) -> String {
    let sample = outcome.record.samples.iter().find_map(|sample| sample.workloads.get(position));
    sample.map_or_else(String::new, |sample| workload_name(outcome, sample.workload))
}

/// Replicas wanted and Ready, and requests served, of the workloads at the positions `shown`.
pub(super) fn replicas_and_load(outcome: &Outcome, shown: &[usize]) -> Vec<Panel> {
    let mut replicas = Panel::counts("replicas");
    let mut load = Panel::amounts("requests per second");
    let wanted = workload_curves(outcome, shown, |w| Some(f64::from(w.replicas_desired)));
    let ready = workload_curves(outcome, shown, |w| Some(f64::from(w.replicas_ready)));
    let served = workload_curves(outcome, shown, |w| Some(w.requests_per_second));
    let curves = wanted.into_iter().zip(ready).zip(served);
    for ((color, &position), ((wanted, ready), served)) in shown.iter().enumerate().zip(curves) {
        let name = name_at(outcome, position);
        replicas.series.push(Series::steps(format!("{name} desired"), color, wanted).faint());
        replicas.series.push(Series::steps(format!("{name} ready"), color, ready));
        load.series.push(Series::line(format!("{name} served"), color, served));
    }
    load.series.retain(Series::is_ever_above_zero);
    vec![replicas, load]
}

/// One panel for each of the first metrics of autoscalers, since they have little in common: what it read, and its target.
pub(super) fn metrics(outcome: &Outcome, most: usize) -> Vec<Panel> {
    let colors = workload_colors(outcome);
    let panel = |(index, facts): (usize, &MetricFacts)| {
        let mut place = index;
        let read = curve(outcome, |sample| sample.metric(index, &mut place)?.value);
        let target = curve(outcome, |_| Some(facts.target));
        let mut panel = Panel::amounts(facts.unit.as_str());
        let color = color_of(&colors, facts.workload);
        panel.series.push(Series::steps(format!("target of {}", facts.autoscaler), color, target).faint());
        panel.series.push(Series::steps(facts.name.clone(), color, read));
        panel
    };
    outcome.record.metrics.iter().enumerate().take(most).map(panel).collect()
}

/// The colour of `workload`; one that is never drawn shares the last.
fn color_of(colors: &BTreeMap<WorkloadId, usize>, workload: WorkloadId) -> usize {
    colors.get(&workload).copied().unwrap_or(colors.len())
}

/// Messages that wait, and how fast they come and go, of the first queues, in the colours of the workloads that take them.
pub(super) fn queues(outcome: &Outcome, most: usize) -> Vec<Panel> {
    let mut waiting = Panel::amounts("queued messages");
    let mut rates = Panel::amounts("messages per second");
    let colors = workload_colors(outcome);
    for (position, queue) in outcome.queues.iter().enumerate().take(most) {
        let taker = outcome.record.workloads.iter().position(|facts| facts.name == queue.workload);
        let taker = WorkloadId(taker.and_then(|index| u32::try_from(index).ok()).unwrap_or(u32::MAX));
        let color = color_of(&colors, taker);
        let of = |value: fn(&QueueSample) -> f64| curve(outcome, |sample| sample.queues.get(position).map(value));
        waiting.series.push(Series::line(queue.name.clone(), color, of(|queue| queue.waiting)));
        rates
            .series
            .push(Series::steps(format!("{} arriving", queue.name), color, of(|queue| queue.arrival_rate)).faint());
        rates.series.push(Series::line(format!("{} processed", queue.name), color, of(|queue| queue.throughput)));
    }
    vec![waiting, rates]
}

/// Ready nodes by how they were bought, those of pods on Fargate, and what compute costs net.
pub(super) fn nodes_and_cost(outcome: &Outcome) -> Vec<Panel> {
    let count = |value: fn(&Sample) -> u32| curve(outcome, |sample| Some(f64::from(value(sample))));
    let mut nodes = Panel::counts("nodes");
    nodes.series.push(Series::steps("Spot", 2, count(|sample| sample.nodes_spot)));
    nodes.series.push(Series::steps("On-Demand", 0, count(|sample| sample.nodes_on_demand)));
    nodes.series.push(Series::steps("Fargate", 4, count(|sample| sample.nodes_fargate)));
    nodes.series.push(Series::steps("Starting", 1, count(|sample| sample.nodes_starting)));
    nodes.series.retain(Series::is_ever_above_zero);
    let mut cost = Panel::amounts(match outcome.bill.currency {
        Currency::Usd => "compute, USD per hour",
        Currency::Cny => "compute, CNY per hour",
    });
    cost.series.push(Series::steps("Cost rate", 3, curve(outcome, |sample| Some(sample.cost_rate.as_f64()))));
    vec![nodes, cost]
}

/// Pods that wait for a node. From the lives of pods rather than from samples: waits are short, and samples of a long run pass between them.
pub(super) fn pods_waiting(outcome: &Outcome) -> Series {
    let end = SimTime::ZERO + outcome.about.duration;
    waiting(open_at_once(working(outcome).map(|pod| wait(&pod, end)), outcome.record.pods.len(), end))
}

fn waiting(points: Vec<Point>) -> Series {
    Series::steps("Waiting for a node", 4, points)
}

/// From when until when a pod waits for a node.
fn wait(pod: &PodFacts, end: SimTime) -> (SimTime, SimTime) {
    (pod.created, pod.created + wait_for_node(pod, end))
}

/// How many nodes are Ready, by their lives.
pub(super) fn nodes_ready(outcome: &Outcome) -> Vec<Point> {
    let (end, nodes) = (SimTime::ZERO + outcome.about.duration, &outcome.record.nodes);
    open_at_once(nodes.iter().flat_map(|node| ready_intervals(node, end)), nodes.len(), end)
}

/// Pods that wait for a node, and pods that start on one.
pub(super) fn pods_on_their_way(outcome: &Outcome) -> Vec<Panel> {
    let end = SimTime::ZERO + outcome.about.duration;
    let start = |pod: &PodFacts| {
        let over = [pod.ready, pod.deletion_requested, pod.removed];
        Some((pod.scheduled?, over.into_iter().flatten().min().unwrap_or(end)))
    };
    let most = outcome.record.pods.len();
    let (mut waits, mut starts) = (Spans::with_room(most, end), Spans::with_room(most, end));
    for pod in working(outcome) {
        waits.extend([wait(&pod, end)]);
        starts.extend(start(&pod));
    }
    let mut panel = Panel::counts("pods");
    panel.series.push(waiting(waits.open()));
    panel.series.push(Series::steps("On a node, not Ready", 1, starts.open()));
    vec![panel]
}

/// The pods but those of DaemonSets.
fn working(outcome: &Outcome) -> impl Iterator<Item = PodFacts> {
    outcome.record.pods.unnamed().filter(|pod| !is_daemon(outcome, pod))
}

/// How many of the spans (from, until), which are `most` or fewer, are [open](Spans::open).
pub(super) fn open_at_once(spans: impl Iterator<Item = (SimTime, SimTime)>, most: usize, end: SimTime) -> Vec<Point> {
    let mut all = Spans::with_room(most, end);
    all.extend(spans);
    all.open()
}

/// Spans of time, of which is asked how many are open when.
pub(super) struct Spans {
    begins: Vec<SimTime>,
    ends: Vec<SimTime>,
    end: SimTime,
}

impl Spans {
    /// Room for `most` spans up to `end`. There may be millions: what grows takes up to twice as much.
    pub(super) fn with_room(most: usize, end: SimTime) -> Self {
        Self { begins: Vec::with_capacity(most), ends: Vec::with_capacity(most), end }
    }

    /// How many are open, at each instant at which that changes, from the start to the end; at the end those that reach it still are.
    pub(super) fn open(mut self) -> Vec<Point> {
        self.begins.sort_unstable();
        self.ends.sort_unstable();
        let changes = || {
            let (mut begins, mut ends) = (self.begins.as_slice(), self.ends.as_slice());
            let mut open = 0;
            std::iter::from_fn(move || {
                let at = *begins.first().into_iter().chain(ends.first()).min()?;
                open += take_equal(&mut begins, at) - take_equal(&mut ends, at);
                Some((at, open))
            })
        };
        let mut curve = Vec::with_capacity(changes().count() + 2);
        curve.push((SimTime::ZERO, 0.0.into()));
        curve.extend(changes().map(|(at, open)| (at, f64::from(open).into())));
        curve.push((self.end, f64::from(changes().last().map_or(0, |last| last.1)).into()));
        curve
    }
}

impl Extend<(SimTime, SimTime)> for Spans {
    fn extend<I: IntoIterator<Item = (SimTime, SimTime)>>(&mut self, spans: I) {
        for (from, until) in spans.into_iter().filter(|(from, until)| from < until) {
            self.begins.extend(Some(from).filter(|at| *at < self.end));
            self.ends.extend(Some(until).filter(|at| *at < self.end));
        }
    }
}

/// Takes the instants equal to `at` from the front; how many there were.
fn take_equal(instants: &mut &[SimTime], at: SimTime) -> i32 {
    let equal = instants.iter().take_while(|&&instant| instant == at).count();
    *instants = &instants[equal..];
    equal as i32
}

/// What pods request against what Ready nodes offer: CPU, then memory.
pub(super) fn requested_and_offered(outcome: &Outcome) -> Vec<Panel> {
    const GIB: f64 = 1_073_741_824.0;
    let of = |value: fn(&Sample) -> f64| curve(outcome, |sample| Some(value(sample)));
    let mut cpu = Panel::amounts("cores");
    cpu.series.push(Series::steps("Allocatable", 0, of(|sample| sample.cpu_allocatable_milli as f64 / 1e3)).faint());
    cpu.series.push(Series::steps("Requested", 0, of(|sample| sample.cpu_requested_milli as f64 / 1e3)));
    let mut memory = Panel::amounts("GiB");
    let allocatable = of(|sample| sample.memory_allocatable_bytes as f64 / GIB);
    memory.series.push(Series::steps("Allocatable", 1, allocatable).faint());
    memory.series.push(Series::steps("Requested", 1, of(|sample| sample.memory_requested_bytes as f64 / GIB)));
    vec![cpu, memory]
}

/// What each metric of an autoscaler of replicas read, in percent of its target, so that all share one chart.
pub(super) fn metrics_against_targets(outcome: &Outcome, most: usize) -> Panel {
    let mut panel = Panel::amounts("percent of the target");
    let colors = workload_colors(outcome);
    let known = outcome.record.metrics.iter().enumerate().filter(|(_, facts)| facts.target > 0.0);
    let shown: Vec<(usize, &MetricFacts)> = known.take(most).collect();
    let mut places: Vec<usize> = shown.iter().map(|(index, _)| *index).collect();
    let read = side_by_side(outcome, shown.len(), |sample, number| {
        let (index, facts) = shown[number];
        sample.metric(index, &mut places[number])?.value.map(|value| value / facts.target * 100.0)
    });
    for ((_, facts), read) in shown.iter().zip(read) {
        let name = format!("{}, {}", facts.autoscaler, facts.name);
        panel.series.push(Series::line(name, color_of(&colors, facts.workload), read));
    }
    panel
}

/// Mean and 99th percentile of the response times of the workloads at the positions `shown`.
pub(super) fn latency(outcome: &Outcome, shown: &[usize]) -> Vec<Panel> {
    let mut panel = Panel::amounts("milliseconds");
    let mean = workload_curves(outcome, shown, |w| w.latency_mean_seconds.map(|seconds| seconds * 1e3));
    let p99 = workload_curves(outcome, shown, |w| w.latency_p99_seconds.map(|seconds| seconds * 1e3));
    for ((color, &position), (mean, p99)) in shown.iter().enumerate().zip(mean.into_iter().zip(p99)) {
        let name = name_at(outcome, position);
        panel.series.push(Series::line(format!("{name} mean"), color, mean).faint());
        panel.series.push(Series::line(format!("{name} p99"), color, p99));
    }
    panel.series.retain(Series::is_ever_above_zero);
    vec![panel]
}

#[cfg(test)]
mod tests {
    use super::open_at_once;
    use crate::domain::SimTime;

    #[test]
    fn spans_are_counted_exactly_however_short() {
        let at = SimTime::from_micros;
        let spans = [(at(5), at(6)), (at(5), at(9)), (at(6), at(8)), (at(7), at(7)), (at(9), at(10))];
        let curve = open_at_once(spans.into_iter(), spans.len(), at(10));
        let counts: Vec<(i64, f64)> =
            curve.into_iter().map(|(at, open)| (at.as_micros(), open.get().unwrap_or(-1.0))).collect();
        assert_eq!(counts, [(0, 0.0), (5, 2.0), (6, 2.0), (8, 1.0), (9, 1.0), (10, 1.0)]);
    }
}
