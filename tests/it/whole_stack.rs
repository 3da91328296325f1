//! Real runs of a whole control plane against the simulation, row by row: see tests/cases/whole-stack/README.md.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::WorkloadKind;
use rayon::prelude::*;
use serde_json::Value;

const FOLDER: &str = "tests/cases/whole-stack";
const SEEDS: u64 = 20;
/// Rows that hold at least; all 62 are wanted.
const WANTED: usize = 54;

/// What one run, real or simulated, comes to.
#[derive(Debug)]
struct Run {
    name: String,
    waits_compare: bool,
    created: f64,
    evicted: f64,
    pending_pod_seconds: f64,
    wait_p95: f64,
    cost: f64,
    node_seconds: f64,
    /// Instant and type.
    launches: Vec<(f64, String)>,
    nodes_at_end: Vec<String>,
    /// Every five seconds.
    nodes_ready: Vec<f64>,
}

impl Run {
    fn measure(&self, name: &str) -> f64 {
        match name {
            "created" => self.created,
            "evicted" => self.evicted,
            "pending_pod_seconds" => self.pending_pod_seconds,
            "wait_p95" => self.wait_p95,
            "cost" => self.cost,
            "node_seconds" => self.node_seconds,
            other => panic!("no measure is called {other}"),
        }
    }

    /// The types launched before an instant, in order of name.
    fn types_by(&self, until: f64) -> Vec<&str> {
        let before = self.launches.iter().filter(|(at, _)| *at < until);
        let mut types: Vec<&str> = before.map(|(_, kind)| kind.as_str()).collect();
        types.sort_unstable();
        types
    }

    fn first_launch_after(&self, after: f64) -> f64 {
        self.launches.iter().map(|(at, _)| *at).filter(|at| *at > after).fold(f64::INFINITY, f64::min)
    }

    /// The mean difference of nodes that are Ready.
    fn gap(&self, other: &Self) -> f64 {
        let gaps = self.nodes_ready.iter().zip(&other.nodes_ready).map(|(one, two)| (one - two).abs());
        gaps.sum::<f64>() / self.nodes_ready.len() as f64
    }

    fn real(run: &Value) -> Self {
        let number = |key: &str| run[key].as_f64().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            name: text(&run["run"]),
            waits_compare: run["waitsCompare"] == true,
            created: number("created"),
            evicted: number("evicted"),
            pending_pod_seconds: number("pendingPodSeconds"),
            wait_p95: number("waitP95Seconds"),
            cost: number("cost"),
            node_seconds: number("nodeSeconds"),
            launches: array(&run["launches"]).map(|array| (array[0].as_f64().unwrap(), text(&array[1]))).collect(),
            nodes_at_end: array(&run["nodesAtEnd"]).map(text).collect(),
            nodes_ready: array(&run["nodesReadyEveryFiveSeconds"]).map(|array| array.as_f64().unwrap()).collect(),
        }
    }

    fn simulated(outcome: &Outcome, duration: f64) -> Self {
        let seconds = |at: SimTime| (at - SimTime::ZERO).as_secs_f64();
        let clipped = |at: Option<SimTime>| at.map_or(duration, |at| seconds(at).min(duration));
        let record = &outcome.record;
        let daemon =
            |workload: nodecast::domain::WorkloadId| record.workloads[workload.index()].kind == WorkloadKind::DaemonSet;
        let pods: Vec<_> = record.pods.iter().filter(|pod| !daemon(pod.workload)).collect();
        let mut waits: Vec<f64> =
            pods.iter().map(|pod| clipped(pod.scheduled.or(pod.removed)) - seconds(pod.created)).collect();
        waits.sort_by(f64::total_cmp);
        let nodes: Vec<_> = record.nodes.iter().filter_map(|node| Some((node.launched?, node))).collect();
        let lives = nodes.iter().map(|(at, node)| (clipped(node.terminating) - seconds(*at), node.rate.as_f64()));
        let ready = |at: f64| {
            let is = |node: &&nodecast::world::record::NodeFacts| {
                let end = node.terminating.map_or(duration + 1.0, seconds);
                node.ready.is_some_and(|ready| seconds(ready) <= at) && at < end
            };
            nodes.iter().map(|(_, node)| *node).filter(is).count() as f64
        };
        let kind = |node: &nodecast::world::record::NodeFacts| node.instance_type.unwrap().as_str().to_owned();
        let mut nodes_at_end: Vec<String> =
            nodes.iter().filter(|(_, node)| node.terminating.is_none()).map(|(_, node)| kind(node)).collect();
        nodes_at_end.sort_unstable();
        Self {
            name: String::new(),
            waits_compare: true,
            created: pods.len() as f64,
            evicted: pods.iter().filter(|pod| pod.evicted).count() as f64,
            pending_pod_seconds: waits.iter().sum(),
            wait_p95: waits[(95 * waits.len()).div_ceil(100) - 1],
            cost: lives.clone().map(|(life, rate)| life * rate / 3_600.0).sum(),
            node_seconds: lives.map(|(life, _)| life).sum(),
            launches: nodes.iter().map(|(at, node)| (seconds(*at), kind(node))).collect(),
            nodes_at_end,
            nodes_ready: (0..).map(|step| f64::from(step) * 5.0).take_while(|at| *at <= duration).map(ready).collect(),
        }
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

/// The rows, as they are compared.
#[derive(Debug, Default)]
struct Table {
    good: usize,
    all: usize,
    lines: Vec<String>,
}

impl Table {
    fn row(&mut self, about: &str, good: bool, real: impl Display, ours: impl Display) {
        self.all += 1;
        self.good += usize::from(good);
        let verdict = if good { "ok  " } else { "MISS" };
        self.lines.push(format!("{verdict} {about:60} real {real}   simulated {ours}"));
    }

    fn spread(&mut self, about: &str, (share, plus): (f64, f64), real: &[f64], ours: &[f64]) {
        let (real, ours) = (sorted(real), sorted(ours));
        let (low, high) = (real[0], real[real.len() - 1]);
        let (tenth, ninth) = (ours[ours.len() / 10], ours[ours.len() - 1 - ours.len() / 10]);
        let (typical, typical_real) = (ours[ours.len() / 2], real[real.len() / 2]);
        let near = low * (1.0 - share) - plus <= typical && typical <= high * (1.0 + share) + plus;
        let middle = near || (tenth <= typical_real && typical_real <= ninth);
        let range = |from: f64, to: f64| format!("{from:.5} to {to:.5}");
        self.row(&format!("{about}: middle"), middle, range(low, high), format!("{typical:.5}"));
        let least = ours[0] * (1.0 - share / 2.0) - plus / 2.0;
        let most = ours[ours.len() - 1] * (1.0 + share / 2.0) + plus / 2.0;
        let inside = least <= low && high <= most;
        self.row(&format!("{about}: inside"), inside, range(low, high), range(ours[0], ours[ours.len() - 1]));
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

fn compare(table: &mut Table, entry: &Value, real: &[Run], ours: &[Run]) {
    let scenario = entry["scenario"].as_str().unwrap();
    let fair: Vec<&Run> = real.iter().filter(|run| run.waits_compare).collect();
    for within in array(&entry["within"]) {
        let measure = within["measure"].as_str().unwrap();
        let waits = matches!(measure, "pending_pod_seconds" | "wait_p95");
        let held = real.iter().filter(|run| !waits || run.waits_compare);
        let held: Vec<f64> = held.map(|run| run.measure(measure)).collect();
        let ours: Vec<f64> = ours.iter().map(|run| run.measure(measure)).collect();
        let slack = (within["share"].as_f64().unwrap(), within["plus"].as_f64().unwrap());
        table.spread(&format!("{scenario}: {measure}"), slack, &held, &ours);
    }
    for until in array(&entry["typesLaunchedBySeconds"]).map(|until| until.as_f64().unwrap()) {
        let named = entry["typesOfRuns"].as_array();
        let counts = |run: &&Run| named.is_none_or(|named| named.iter().any(|name| *name == run.name));
        let sets: BTreeSet<Vec<&str>> = ours.iter().map(|run| run.types_by(until)).collect();
        let held: BTreeSet<Vec<&str>> = real.iter().filter(counts).map(|run| run.types_by(until)).collect();
        let about = format!("{scenario}: types launched in {until} s");
        table.row(&about, held.is_subset(&sets), format!("{held:?}"), format!("{sets:?}"));
    }
    for until in array(&entry["nodesLaunchedBySeconds"]).map(|until| until.as_f64().unwrap()) {
        let numbers =
            |runs: &[Run]| sorted(&runs.iter().map(|run| run.types_by(until).len() as f64).collect::<Vec<_>>());
        let (held, ours) = (numbers(real), numbers(ours));
        let good = ours[0] <= held[0] && held[held.len() - 1] <= ours[ours.len() - 1];
        table.row(&format!("{scenario}: nodes launched in {until} s"), good, format!("{held:?}"), format!("{ours:?}"));
    }
    for moment in array(&entry["firstLaunchAfterSeconds"]) {
        let (after, slack) = (moment["after"].as_f64().unwrap(), moment["slack"].as_f64().unwrap());
        let held: Vec<f64> = fair.iter().map(|run| run.first_launch_after(after)).collect();
        let ours = sorted(&ours.iter().map(|run| run.first_launch_after(after)).collect::<Vec<_>>());
        let (least, most) = (ours[0] - slack, ours[ours.len() - 1] + slack);
        let good = held.iter().all(|at| least <= *at && *at <= most);
        table.row(
            &format!("{scenario}: first launch after {after} s"),
            good,
            format!("{held:?}"),
            format!("{ours:.1?}"),
        );
    }
    if entry["comparesNodesAtEnd"] == true {
        let sets: BTreeSet<&[String]> = ours.iter().map(|run| run.nodes_at_end.as_slice()).collect();
        let good = real.iter().any(|run| sets.contains(run.nodes_at_end.as_slice()));
        table.row(
            &format!("{scenario}: nodes at the end"),
            good,
            format!("{:?}", real[0].nodes_at_end),
            format!("{sets:?}"),
        );
    }
    let between = fair.iter().enumerate().flat_map(|(place, one)| fair[..place].iter().map(|two| one.gap(two)));
    let limit = between.fold(0.3, f64::max);
    let nearest: Vec<f64> =
        fair.iter().map(|run| ours.iter().map(|our| run.gap(our)).fold(f64::INFINITY, f64::min)).collect();
    let good = nearest.iter().all(|gap| *gap <= limit);
    table.row(&format!("{scenario}: Ready nodes over time"), good, format!("{limit:.2}"), format!("{nearest:.2?}"));
}

/// Simulates a scenario with the seeds.
fn simulate(name: &str, duration: f64) -> Vec<Run> {
    let scenario = nodecast::scenario::load(&Path::new(FOLDER).join(name).join("scenario.yaml")).unwrap().0;
    assert_eq!(scenario.duration, SimDuration::from_secs_f64(duration));
    let policy = scenario.for_policy(None).unwrap();
    let catalog = Catalog::embedded().unwrap();
    let one = |seed| simulation::run(&scenario, policy, catalog, seed, &mut |_| {}).unwrap();
    (1..=SEEDS).into_par_iter().map(|seed| Run::simulated(&one(seed), duration)).collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn simulated_runs_resemble_real_control_plane() {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("real.json")).unwrap();
    let entries: Value = serde_json::from_str(&text).unwrap();
    let mut table = Table::default();
    for entry in array(&entries) {
        let real: Vec<Run> = array(&entry["runs"]).map(Run::real).collect();
        let ours = simulate(entry["scenario"].as_str().unwrap(), entry["durationSeconds"].as_f64().unwrap());
        compare(&mut table, entry, &real, &ours);
    }
    let lines = table.lines.join("\n");
    println!("{lines}\nwhole-stack: {}/{}", table.good, table.all);
    assert_eq!(table.all, 62, "{lines}");
    assert!(table.good >= WANTED, "{} of {}\n{lines}", table.good, table.all);
}
