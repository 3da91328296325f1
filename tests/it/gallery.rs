//! The scenario gallery: every scenario is in the index, has a README and shows what that says.

mod auto_mode;
mod batch;
mod black_friday;
mod fargate;
mod gpu_inference;
mod headroom;
mod karpenter_vs_cas;
mod multi_architecture;
mod node_upgrade;
mod pod_trace;
mod replica_trace;
mod right_sizing;
mod shop_day;
mod worldcup_week;
mod zone_outage;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::report::{Summary, format};
use nodecast::scenario::{Edit, Limits};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, PodFacts};
use rayon::prelude::*;

/// How far a figure of a README may be from the measured one. Claims in words are held to the measured ones.
const TOLERANCE: f64 = 0.05;

/// A scenario of the gallery under one of its policies.
struct Run {
    policy: String,
    outcome: Outcome,
    summary: Summary,
}

impl Run {
    /// The pods of a workload that are created after `minutes`.
    fn pods(&self, workload: &str, minutes: i64) -> Vec<PodFacts> {
        let record = &self.outcome.record;
        let of = |pod: &PodFacts| record.workloads[pod.workload.index()].name.to_string();
        let from = SimTime::ZERO + SimDuration::from_secs(minutes * 60);
        record.pods.iter().filter(|pod| pod.created >= from && of(pod) == workload).collect()
    }

    /// The longest that a pod of these workloads, created after `minutes`, waits for a node, in seconds.
    fn longest_wait(&self, workloads: &[&str], minutes: i64) -> f64 {
        let end = SimTime::ZERO + self.outcome.about.duration;
        let wait = |pod: &PodFacts| {
            let until = pod.scheduled.or(pod.deletion_requested).unwrap_or(end);
            until.saturating_since(pod.created).as_secs_f64()
        };
        let pods = workloads.iter().flat_map(|workload| self.pods(workload, minutes));
        pods.map(|pod| wait(&pod)).fold(0.0, f64::max)
    }

    /// Requests that got no answer.
    fn lost(&self) -> f64 {
        self.summary.requests.iter().map(|request| request.timed_out + request.dropped + request.unanswered).sum()
    }

    /// The longest of the 99th percentiles of response times, in seconds.
    fn slowest(&self) -> f64 {
        self.summary.requests.iter().filter_map(|request| request.p99_seconds).fold(0.0, f64::max)
    }

    fn events(&self, kind: EventKind) -> usize {
        self.outcome.record.events.iter().filter(|event| event.kind == kind).count()
    }

    fn cost(&self) -> String {
        format::money(&self.summary.about.currency, self.summary.cost.total)
    }
}

/// What a scenario comes to under each of its policies, in their order.
fn runs<const N: usize>(name: &str) -> [Run; N] {
    edited_runs(name, &[])
}

/// As [`runs`], with values of the scenario changed.
fn edited_runs<const N: usize>(name: &str, edits: &[&str]) -> [Run; N] {
    let catalog = Catalog::embedded().unwrap();
    let edits: Vec<Edit> = edits.iter().map(|edit| Edit::parse(edit).unwrap()).collect();
    let path = folder().join(name).join("scenario.yaml");
    let (scenario, warnings) = nodecast::scenario::load_edited(&path, catalog, &Limits::default(), &edits).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let run = |policy| {
        let outcome = simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap();
        Run { policy: policy.name.clone(), summary: Summary::from_outcome(&outcome), outcome }
    };
    let runs: Vec<Run> = scenario.policies.par_iter().map(run).collect();
    runs.try_into().unwrap_or_else(|runs: Vec<Run>| panic!("{name} has {} policies", runs.len()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

fn readme(name: &str) -> String {
    fs::read_to_string(folder().join(name).join("README.md")).unwrap()
}

/// Fails unless the README of a scenario has a row with these figures for each run.
fn has_rows<const N: usize>(name: &str, runs: &[Run], figures: impl Fn(&Run) -> [String; N]) {
    let readme = readme(name);
    let rows = runs.iter().map(|run| format!("| `{}` | {} |", run.policy, figures(run).join(" | ")));
    let missing: Vec<String> = rows.filter(|row| !readme.lines().any(|line| is_near(line, row))).collect();
    assert!(missing.is_empty(), "scenarios/{name}/README.md does not have\n{}", missing.join("\n"));
}

/// Whether two texts are equal but for numbers, and these are near each other.
fn is_near(written: &str, measured: &str) -> bool {
    let (written, measured) = (parts(written), parts(measured));
    let near = |(written, measured): (&String, &String)| match (number(written), number(measured)) {
        (Some(written), Some(measured)) => (written - measured).abs() <= TOLERANCE * written.abs().max(measured.abs()),
        (None, None) => written == measured,
        _ => false,
    };
    written.len() == measured.len() && written.iter().zip(&measured).all(near)
}

fn number(part: &str) -> Option<f64> {
    part.replace(',', "").parse().ok()
}

/// A text cut into numbers and what stands between them.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut within = false;
    for character in text.chars() {
        let digit = character.is_ascii_digit() || within && matches!(character, '.' | ',');
        match parts.last_mut() {
            Some(last) if digit == within => last.push(character),
            _ => parts.push(character.to_string()),
        }
        within = digit;
    }
    parts
}

#[test]
fn figures_of_a_readme_are_compared_as_numbers() {
    assert!(is_near("| `none` | $13.6 | 89,000 |", "| `none` | $13.58 | 88,955 |"));
    assert!(!is_near("| `none` | $13.6 | 89,000 |", "| `none` | $13.58 | 98,955 |"));
    assert!(!is_near("| `none` | $13.6 | 89 s |", "| `none` | $13.6 | 89 ms |"));
    assert!(!is_near("| `none` | 0 |", "| `none` | 3 |"));
}

/// Every folder with a scenario, from `scenarios/` on.
fn scenarios(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            scenarios(&entry, found);
        } else if entry.ends_with("scenario.yaml") {
            found.insert(folder.strip_prefix(self::folder()).unwrap().to_owned());
        }
    }
}

#[test]
fn every_scenario_loads_and_is_indexed() {
    let mut found = BTreeSet::new();
    scenarios(&folder(), &mut found);
    assert!(found.len() >= 18, "{found:?}");
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    for name in found {
        let path = folder().join(&name).join("scenario.yaml");
        let (_, warnings) =
            nodecast::scenario::load(&path).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        assert!(warnings.is_empty(), "{}: {warnings:?}", name.display());
        // Scenarios that belong together share one README.
        let ancestor = name.ancestors().find(|place| folder().join(place).join("README.md").exists()).unwrap();
        assert!(
            index.contains(&format!("({}/)", ancestor.display())),
            "scenarios/README.md says nothing of {}",
            ancestor.display()
        );
        let text = readme(ancestor.to_str().unwrap());
        let command = format!("scenarios/{}/scenario.yaml", name.display());
        let shown = text.lines().any(|line| line.starts_with("nodecast ") && line.contains(&command));
        assert!(shown || text.contains("cargo bench"), "{}/README.md has no command for it", ancestor.display());
    }
}
