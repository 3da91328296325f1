//! The plots of a run: which curves stand in which picture. `canvas` draws them.

mod axis;
mod canvas;

use rayon::prelude::*;

use super::summary::lives::{is_daemon, wait_for_node};
use super::summary::service::workload_name;
use crate::domain::{Currency, SimTime};
use crate::simulation::Outcome;
use crate::world::record::{MetricFacts, QueueSample, Sample, WorkloadSample};
use canvas::{Panel, Series};

/// Workloads drawn in one picture; more curves than this cannot be told apart.
const WORKLOADS_MAX: usize = 5;

/// A picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plot {
    /// File name, for example `replicas.svg`.
    pub file: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What was left out of it, if anything.
    pub note: Option<String>,
    /// The `svg` element, without background or style of its own.
    pub svg: String,
}

impl Plot {
    /// The picture as a file of its own, for light and dark surroundings.
    pub fn standalone(&self) -> String {
        const STYLE: &str = "<style>svg{background:#fff}text{fill:#24292f}@media(prefers-color-scheme:dark){\
            svg{background:#14171c}text{fill:#d7dde4}}</style>\n";
        match self.svg.find(">\n") {
            Some(end) => format!("{}{STYLE}{}", &self.svg[..end + 2], &self.svg[end + 2..]),
            None => self.svg.clone(),
        }
    }
}

/// The pictures of a run and those that had nothing to show.
#[derive(Clone, Debug, Default)]
pub struct Plots {
    /// Pictures with data.
    pub drawn: Vec<Plot>,
    /// Why a picture is missing, a sentence each.
    pub left_out: Vec<String>,
}

/// plotters could not draw. Writing to memory does not fail, so nothing is known to cause this.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot draw {file}: {reason}")]
pub struct PlotError {
    /// The picture.
    pub file: &'static str,
    /// What plotters said.
    pub reason: String,
}

impl Plots {
    /// Draws every picture that has data.
    ///
    /// # Errors
    /// If plotters fails.
    pub fn of(outcome: &Outcome) -> Result<Self, PlotError> {
        let mut plots = Self::default();
        if outcome.record.samples.len() < 2 || outcome.about.duration.as_micros() <= 0 {
            plots.left_out.push("There are no plots: the run was too short to be sampled twice.".to_owned());
            return Ok(plots);
        }
        let shown = most_replicas_first(outcome);
        let note = note_on_workloads(outcome, &shown);
        let pictures = [
            Picture::new("replicas.svg", "Replicas and load", note.clone(), replicas_and_load(outcome, &shown)),
            Picture::new("metrics.svg", "Metrics and their targets", metrics_left_out(outcome), metrics(outcome)),
            Picture::new("queues.svg", "Queues", None, queues(outcome)),
            Picture::new("nodes.svg", "Nodes and what they cost", None, nodes_and_cost(outcome)),
            Picture::new("pending.svg", "Pods on their way", None, pods_on_their_way(outcome)),
            Picture::new("latency.svg", "Response time", note, latency(outcome, &shown)),
        ];
        let drawn: Vec<Option<Plot>> =
            pictures.par_iter().map(|picture| picture.draw(outcome)).collect::<Result<_, PlotError>>()?;
        for (picture, drawn) in pictures.iter().zip(drawn) {
            match drawn {
                Some(plot) => plots.drawn.push(plot),
                None if ["metrics.svg", "queues.svg"].contains(&picture.file) => {}
                None => {
                    plots.left_out.push(format!(
                        "\u{201c}{}\u{201d} is left out: nothing to show at any sampled instant.",
                        picture.title
                    ));
                }
            }
        }
        Ok(plots)
    }
}

/// A picture to be drawn.
struct Picture {
    file: &'static str,
    title: &'static str,
    note: Option<String>,
    panels: Vec<Panel>,
}

impl Picture {
    fn new(file: &'static str, title: &'static str, note: Option<String>, mut panels: Vec<Panel>) -> Self {
        panels.retain(Panel::has_data);
        Self { file, title, note, panels }
    }

    /// The picture, or nothing if it has no data.
    fn draw(&self, outcome: &Outcome) -> Result<Option<Plot>, PlotError> {
        let Self { file, title, .. } = *self;
        if self.panels.is_empty() {
            return Ok(None);
        }
        let svg =
            canvas::draw(title, outcome.about.duration, &self.panels).map_err(|reason| PlotError { file, reason })?;
        Ok(Some(Plot { file, title, note: self.note.clone(), svg }))
    }
}

/// Positions within [`Sample::workloads`] of the workloads to draw, those with the most replicas first.
fn most_replicas_first(outcome: &Outcome) -> Vec<usize> {
    let mut most: Vec<u32> = Vec::new();
    for sample in &outcome.record.samples {
        most.resize(most.len().max(sample.workloads.len()), 0);
        for (most, workload) in most.iter_mut().zip(&sample.workloads) {
            *most = (*most).max(workload.replicas_desired).max(workload.replicas_ready);
        }
    }
    let mut order: Vec<usize> = (0..most.len()).collect();
    order.sort_by_key(|&position| std::cmp::Reverse(most[position]));
    order.truncate(WORKLOADS_MAX);
    order
}

fn note_on_workloads(outcome: &Outcome, shown: &[usize]) -> Option<String> {
    let all = outcome.record.samples.iter().map(|sample| sample.workloads.len()).max().unwrap_or(0);
    (all > shown.len()).then(|| {
        format!(
            "The {} workloads with the most replicas are drawn, {} are not; workloads.csv has all.",
            shown.len(),
            all - shown.len()
        )
    })
}

/// A curve over all samples; `value` is `None` where the curve has a gap.
fn curve(outcome: &Outcome, value: impl Fn(&Sample) -> Option<f64>) -> Vec<(SimTime, Option<f64>)> {
    outcome.record.samples.iter().map(|sample| (sample.at, value(sample))).collect()
}

fn workload_curve(
    outcome: &Outcome,
    position: usize,
    value: impl Fn(&WorkloadSample) -> Option<f64>,
) -> Vec<(SimTime, Option<f64>)> {
    curve(outcome, |sample| sample.workloads.get(position).and_then(&value))
}

fn name_at(outcome: &Outcome, position: usize) -> String {
    let sample = outcome.record.samples.iter().find_map(|sample| sample.workloads.get(position));
    sample.map_or_else(String::new, |sample| workload_name(outcome, sample.workload))
}

fn replicas_and_load(outcome: &Outcome, shown: &[usize]) -> Vec<Panel> {
    let mut replicas = Panel::counts("replicas");
    let mut load = Panel::amounts("requests per second");
    for (color, &position) in shown.iter().enumerate() {
        let name = name_at(outcome, position);
        let wanted = workload_curve(outcome, position, |w| Some(f64::from(w.replicas_desired)));
        let ready = workload_curve(outcome, position, |w| Some(f64::from(w.replicas_ready)));
        replicas.series.push(Series::steps(format!("{name} wanted"), color, wanted).faint());
        replicas.series.push(Series::steps(format!("{name} ready"), color, ready));
        let served = workload_curve(outcome, position, |w| Some(w.requests_per_second));
        load.series.push(Series::line(format!("{name} served"), color, served));
    }
    load.series.retain(Series::is_ever_above_zero);
    vec![replicas, load]
}

/// One panel for each metric of an autoscaler, since they have little in common: what it read, and its target.
fn metrics(outcome: &Outcome) -> Vec<Panel> {
    let panel = |(index, facts): (usize, &MetricFacts)| {
        let read = curve(outcome, |sample| {
            sample.metrics.iter().find(|metric| metric.metric as usize == index).and_then(|metric| metric.value)
        });
        let target = curve(outcome, |_| Some(facts.target));
        let mut panel = Panel::amounts(facts.unit.as_str());
        panel.series.push(Series::steps(format!("target of {}", facts.autoscaler), index, target).faint());
        panel.series.push(Series::steps(facts.name.clone(), index, read));
        panel
    };
    outcome.record.metrics.iter().enumerate().take(WORKLOADS_MAX).map(panel).collect()
}

fn metrics_left_out(outcome: &Outcome) -> Option<String> {
    let all = outcome.record.metrics.len();
    (all > WORKLOADS_MAX).then(|| {
        format!("The first {WORKLOADS_MAX} metrics are drawn, {} are not; metrics.csv has all.", all - WORKLOADS_MAX)
    })
}

fn queues(outcome: &Outcome) -> Vec<Panel> {
    let mut waiting = Panel::amounts("messages waiting");
    let mut rates = Panel::amounts("messages per second");
    for (position, queue) in outcome.queues.iter().enumerate().take(WORKLOADS_MAX) {
        let of = |value: fn(&QueueSample) -> f64| curve(outcome, |sample| sample.queues.get(position).map(value));
        waiting.series.push(Series::line(queue.name.clone(), position, of(|queue| queue.waiting)));
        rates
            .series
            .push(Series::steps(format!("{} arrives", queue.name), position, of(|queue| queue.arrival_rate)).faint());
        rates.series.push(Series::line(format!("{} worked off", queue.name), position, of(|queue| queue.throughput)));
    }
    vec![waiting, rates]
}

fn nodes_and_cost(outcome: &Outcome) -> Vec<Panel> {
    let count = |value: fn(&Sample) -> u32| curve(outcome, |sample| Some(f64::from(value(sample))));
    let mut nodes = Panel::counts("nodes");
    nodes.series.push(Series::steps("Spot", 2, count(|sample| sample.nodes_spot)));
    nodes.series.push(Series::steps("On-Demand", 0, count(|sample| sample.nodes_on_demand)));
    nodes.series.push(Series::steps("starting", 1, count(|sample| sample.nodes_starting)));
    nodes.series.retain(Series::is_ever_above_zero);
    let mut cost = Panel::amounts(match outcome.bill.currency {
        Currency::Usd => "instances, USD per hour",
        Currency::Cny => "instances, CNY per hour",
    });
    cost.series.push(Series::steps("cost rate", 3, curve(outcome, |sample| Some(sample.cost_rate.as_f64()))));
    vec![nodes, cost]
}

/// From the lives of pods rather than from samples: waits are short, and samples of a long run pass between them.
fn pods_on_their_way(outcome: &Outcome) -> Vec<Panel> {
    let end = SimTime::ZERO + outcome.about.duration;
    let pods = || outcome.record.pods.iter().filter(|pod| !is_daemon(outcome, pod));
    let waits = pods().map(|pod| (pod.created, pod.created + wait_for_node(pod, end)));
    let starts = pods().filter_map(|pod| {
        let over = [pod.ready, pod.deletion_requested, pod.removed];
        Some((pod.scheduled?, over.into_iter().flatten().min().unwrap_or(end)))
    });
    let mut panel = Panel::counts("pods");
    panel.series.push(Series::steps("wait for a node", 4, open_at_once(waits, end)));
    panel.series.push(Series::steps("on a node, not Ready", 1, open_at_once(starts, end)));
    vec![panel]
}

/// How many of the spans (from, until) are open, at each instant at which that changes, from the start to `end`.
fn open_at_once(spans: impl Iterator<Item = (SimTime, SimTime)>, end: SimTime) -> Vec<(SimTime, Option<f64>)> {
    let mut changes: Vec<(SimTime, i32)> =
        spans.filter(|(from, until)| from < until).flat_map(|(from, until)| [(from, 1), (until, -1)]).collect();
    changes.sort_unstable();
    let mut open = 0;
    let mut curve = vec![(SimTime::ZERO, Some(0.0))];
    for changes in changes.chunk_by(|one, other| one.0 == other.0) {
        open += changes.iter().map(|change| change.1).sum::<i32>();
        curve.push((changes[0].0, Some(f64::from(open))));
    }
    curve.push((end, Some(f64::from(open))));
    curve
}

fn latency(outcome: &Outcome, shown: &[usize]) -> Vec<Panel> {
    let mut panel = Panel::amounts("milliseconds");
    for (color, &position) in shown.iter().enumerate() {
        let name = name_at(outcome, position);
        let mean = workload_curve(outcome, position, |w| w.latency_mean_seconds.map(|seconds| seconds * 1e3));
        let p99 = workload_curve(outcome, position, |w| w.latency_p99_seconds.map(|seconds| seconds * 1e3));
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
        let spans = [(at(5), at(6)), (at(5), at(9)), (at(6), at(8)), (at(7), at(7))];
        let curve = open_at_once(spans.into_iter(), at(10));
        let counts: Vec<(i64, f64)> =
            curve.into_iter().map(|(at, open)| (at.as_micros(), open.unwrap_or(-1.0))).collect();
        assert_eq!(counts, [(0, 0.0), (5, 2.0), (6, 2.0), (8, 1.0), (9, 0.0), (10, 0.0)]);
    }
}
