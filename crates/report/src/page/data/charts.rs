//! The charts of the page: which curves stand in which, and as few points as show them whole.

use std::collections::BTreeSet;

use serde::Serialize;

use super::encode::{Number, Runs, significant, tenths};
use super::thinning::States;
use crate::curves::{self, Panel, Point, Series};
use crate::domain::SimTime;
use nodecast_world::Outcome;

/// Workloads, metrics and queues with curves of their own.
const CURVES_MAX: usize = 60;
/// Points of one curve; a screen shows no more.
const CURVE_POINTS_MAX: usize = 2_000;
/// Instants that the curves of a stacked chart share, at least and at most.
const STACK_POINTS: (usize, usize) = (1_200, 2_800);
/// Things of a chart whose curves are drawn before the reader asks for more.
const DRAWN_FIRST: usize = 5;

/// A chart.
#[derive(Serialize)]
pub(crate) struct Chart {
    id: &'static str,
    title: &'static str,
    unit: String,
    /// Whether values are counts.
    #[serde(skip_serializing_if = "is_false")]
    whole: bool,
    /// Whether the curves add up to a whole.
    #[serde(skip_serializing_if = "is_false")]
    stacked: bool,
    /// Whether the values span orders of magnitude.
    #[serde(skip_serializing_if = "is_false")]
    logarithmic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The instants of all curves of a stacked chart, each less the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Runs<i64>>,
    series: Vec<Curve>,
}

/// A curve: steps at the instants `at` (its own or its chart's), or measured values `every` so many tenths of a second.
#[derive(Serialize)]
struct Curve {
    name: String,
    color: usize,
    #[serde(skip_serializing_if = "is_false")]
    faint: bool,
    #[serde(skip_serializing_if = "is_false")]
    hidden: bool,
    /// Instants, each less the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Runs<i64>>,
    /// The time between values, in tenths of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<i64>,
    values: Runs<Option<Number>>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A chart before its curves are thinned.
struct Draft {
    id: &'static str,
    title: &'static str,
    panel: Panel,
    stacked: bool,
    note: Option<String>,
}

impl Draft {
    fn new(id: &'static str, title: &'static str, panel: Panel) -> Self {
        Self { id, title, panel, stacked: false, note: None }
    }

    fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    fn noted(mut self, note: Option<String>) -> Self {
        self.note = note;
        self
    }
}

/// The charts of a run, in the order of the page, with about `points` points for all curves of one sort together. One
/// without anything to show is left out.
pub(super) fn charts(outcome: &Outcome, points: usize) -> Vec<Chart> {
    let end = SimTime::ZERO + outcome.about.duration;
    if outcome.record.samples.len() < 2 || end <= SimTime::ZERO {
        return Vec::new();
    }
    finished(drafts(outcome), end, points)
}

fn drafts(outcome: &Outcome) -> Vec<Draft> {
    let mut shown = curves::most_replicas_first(outcome);
    let all = shown.len();
    shown.truncate(CURVES_MAX);
    let left_out = (all > CURVES_MAX)
        .then(|| format!("The {CURVES_MAX} workloads with the most replicas; workloads.csv has all {all}."));
    let mut drafts = Vec::new();
    let mut add = |id, title, panels: Vec<Panel>, note: &Option<String>| {
        drafts.extend(panels.into_iter().map(|panel| Draft::new(id, title, panel).noted(note.clone())));
    };
    let mut pair = curves::replicas_and_load(outcome, &shown);
    let load = pair.pop();
    add("replicas", "Replicas", pair, &left_out);
    add("load", "Requests served", load.into_iter().collect(), &left_out);
    add("pending", "Pods on their way", curves::pods_on_their_way(outcome), &None);
    let mut latency = curves::latency(outcome, &shown);
    for panel in &mut latency {
        let drawn = drawn_first(&panel.series);
        panel.series.retain(|series| !series.faint || drawn.contains(&series.color));
    }
    add("latency", "Response time", latency, &left_out);
    add("metrics", "What autoscalers read", vec![curves::metrics_against_targets(outcome, CURVES_MAX)], &None);
    let mut queues = curves::queues(outcome, CURVES_MAX);
    let rates = queues.pop();
    add("queues", "Queues", queues, &None);
    add("rates", "Messages", rates.into_iter().collect(), &None);
    let mut memory = curves::requested_and_offered(outcome);
    let cpu = memory.drain(..1).collect();
    add("cpu", "CPU requested of what nodes offer", cpu, &None);
    add("memory", "Memory requested of what nodes offer", memory, &None);
    let cost = curves::cost_by_kind(outcome);
    let nodes = Draft::new("nodes", "Nodes Ready", curves::nodes_by_type(outcome)).stacked();
    let cost = Draft::new("cost", "Rate of cost", cost).stacked();
    // What happened to the load, then to nodes and money.
    drafts.splice(3.min(drafts.len())..3.min(drafts.len()), [nodes, cost]);
    drafts
}

/// The charts of a page that compares runs: one curve for each run.
pub(super) fn of_many(outcomes: &[(&str, &Outcome)], points: usize) -> Vec<Chart> {
    let end = outcomes.iter().map(|(_, outcome)| SimTime::ZERO + outcome.about.duration).max();
    let end = end.unwrap_or(SimTime::ZERO);
    let mut drafts: Vec<Draft> = Vec::new();
    for (color, (name, outcome)) in outcomes.iter().enumerate() {
        if outcome.record.samples.len() < 2 {
            continue;
        }
        for (position, mut sum) in sums(outcome).into_iter().enumerate() {
            for series in &mut sum.panel.series {
                (series.name, series.color) = ((*name).to_owned(), color);
            }
            match drafts.get_mut(position) {
                Some(draft) => draft.panel.series.append(&mut sum.panel.series),
                None => drafts.push(sum),
            }
        }
    }
    finished(drafts, end, points)
}

/// One curve in each chart, for a run as a whole.
fn sums(outcome: &Outcome) -> Vec<Draft> {
    let whole = |mut panel: Panel| {
        let points = added(&panel.series);
        panel.series = vec![Series::steps("", 0, points)];
        panel
    };
    let mut waiting = Panel::counts("pods");
    waiting.series.push(curves::pods_waiting(outcome));
    let cost = curves::cost_by_kind(outcome);
    let mut latency = curves::latency(outcome, &curves::most_replicas_first(outcome)).swap_remove(0);
    latency.series.retain(|series| !series.faint);
    latency.series = vec![Series::line("", 0, largest(&latency.series))];
    let mut cpu = curves::requested_and_offered(outcome).swap_remove(0);
    cpu.series.retain(|series| series.faint);
    cpu.series.iter_mut().for_each(|series| series.faint = false);
    vec![
        Draft::new("nodes", "Nodes Ready", whole(curves::nodes_by_type(outcome))),
        Draft::new("cost", "Rate of cost", whole(cost)),
        Draft::new("pending", "Pods that wait for a node", waiting),
        Draft::new("cpu", "CPU that nodes offer", cpu),
        Draft::new("latency", "Response time of the slowest workload, p99", latency),
    ]
}

/// The sum of curves of steps, at each instant at which one changes.
fn added(series: &[Series]) -> Vec<Point> {
    let mut changes: Vec<(SimTime, f64)> = Vec::new();
    for budget in series {
        let mut before = 0.0;
        for &(at, value) in &budget.points {
            let value = value.get().unwrap_or(before);
            changes.push((at, value - before));
            before = value;
        }
    }
    changes.sort_by_key(|change| change.0);
    let mut sum = 0.0;
    let mut points: Vec<Point> = Vec::new();
    for changes in changes.chunk_by(|one, other| one.0 == other.0) {
        sum += changes.iter().map(|change| change.1).sum::<f64>();
        points.push((changes[0].0, sum.into()));
    }
    points
}

/// The largest of curves that are sampled at the same instants.
fn largest(series: &[Series]) -> Vec<Point> {
    let Some((first, others)) = series.split_first() else { return Vec::new() };
    let mut points = first.points.clone();
    for other in others {
        for (point, this_point) in points.iter_mut().zip(&other.points) {
            let larger = match (point.1.get(), this_point.1.get()) {
                (Some(one), Some(two)) => Some(one.max(two)),
                (one, two) => one.or(two),
            };
            point.1 = larger.into();
        }
    }
    points
}

/// Thins the curves and leaves out charts without data.
fn finished(drafts: Vec<Draft>, end: SimTime, points: usize) -> Vec<Chart> {
    let drafts: Vec<Draft> = drafts.into_iter().filter(|draft| draft.panel.has_data()).collect();
    let curves = drafts.iter().flat_map(|draft| &draft.panel.series);
    let (steps, lines): (Vec<&Series>, Vec<&Series>) = curves.partition(|series| series.steps);
    let share = |curves: usize| (points / curves.max(1)).min(CURVE_POINTS_MAX);
    let budget = Budget { steps: share(steps.len()), line: share(lines.len()), end };
    drafts.into_iter().map(|draft| chart(draft, &budget)).collect()
}

/// How many points a curve may have.
struct Budget {
    steps: usize,
    line: usize,
    /// The end of the run.
    end: SimTime,
}

fn chart(draft: Draft, budget: &Budget) -> Chart {
    let Draft { id, title, panel, stacked, note } = draft;
    let drawn = drawn_first(&panel.series);
    let curve = |series: &Series| {
        let hidden = !drawn.contains(&series.color);
        if series.steps { steps(series, hidden, budget) } else { line(series, hidden, budget.line) }
    };
    let (at, series) = if stacked {
        let (at, series) = stack(&panel.series, budget);
        (Some(at), series)
    } else {
        (None, panel.series.iter().map(curve).collect())
    };
    Chart {
        id,
        title,
        unit: unit(title, panel.unit),
        whole: panel.whole,
        stacked,
        logarithmic: !stacked && id == "latency" && spans_magnitudes(&panel),
        note,
        at,
        series,
    }
}

/// The first colours of a chart; curves of one colour belong to one thing.
fn drawn_first(series: &[Series]) -> BTreeSet<usize> {
    let colors: BTreeSet<usize> = series.iter().map(|series| series.color).collect();
    colors.into_iter().take(DRAWN_FIRST).collect()
}

/// What the values are in, without the words that the title has already; what is counted there is a number here.
fn unit(title: &str, unit: &str) -> String {
    let title = title.to_lowercase();
    let said = |word: &&str| title.split(' ').any(|part| part == *word);
    let words: Vec<&str> = unit.split(' ').skip_while(said).collect();
    if words.is_empty() { "number".to_owned() } else { words.join(" ") }
}

/// Whether the largest value is more than fifty times the smallest above zero.
fn spans_magnitudes(panel: &Panel) -> bool {
    let values = panel.series.iter().flat_map(|series| &series.points).filter_map(|point| point.1.get());
    let (least, most) =
        values.filter(|value| *value > 0.0).fold((f64::MAX, 0.0), |(least, most), v| (v.min(least), v.max(most)));
    most > least * 50.0
}

/// A curve of steps as the instants at which it changes, thinned where there are too many.
fn steps(series: &Series, hidden: bool, budget: &Budget) -> Curve {
    let states = States::new(&[&series.points]).thinned(tenths(budget.end), budget.steps);
    let at = states.instants();
    Curve { at: Some(at), ..curve(series, hidden, states.values().next().unwrap_or(Runs(Vec::new()))) }
}

/// Curves of steps that add up to a whole, and the instants that they share.
fn stack(series: &[Series], budget: &Budget) -> (Runs<i64>, Vec<Curve>) {
    let layers: Vec<&[Point]> = series.iter().map(|series| series.points.as_slice()).collect();
    // Their instants are written once: there is room for more of them.
    let most = (budget.steps * series.len().div_ceil(2)).clamp(STACK_POINTS.0, STACK_POINTS.1);
    let states = States::new(&layers).thinned(tenths(budget.end), most);
    let instants = states.instants();
    (instants, series.iter().zip(states.values()).map(|(series, values)| curve(series, false, values)).collect())
}

/// A curve without instants of its own.
fn curve(series: &Series, hidden: bool, values: Runs<Option<Number>>) -> Curve {
    Curve { name: series.name.clone(), color: series.color, faint: series.faint, hidden, at: None, every: None, values }
}

/// A curve through samples. Where there are too many, the largest of each few stands for them at the instant of the last of
/// these: a sample is never shown before it was taken. The first stands for itself.
fn line(series: &Series, hidden: bool, points: usize) -> Curve {
    let samples = &series.points;
    let group = samples.len().div_ceil(points.max(1)).max(1);
    let interval = samples.get(1).zip(samples.first()).map_or(0, |(second, first)| tenths(second.0) - tenths(first.0));
    let largest = |group: &[Point]| {
        let value = group.iter().filter_map(|point| point.1.get()).max_by(f64::total_cmp);
        value.map(|value| Number(significant(value, 3)))
    };
    let (first, others) = samples.split_at(samples.len().min(1));
    let values = Runs(first.chunks(1).chain(others.chunks(group)).map(largest).collect());
    Curve { every: Some(interval * group as i64), ..curve(series, hidden, values) }
}
