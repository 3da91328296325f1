//! `scenarios/consolidation-tuning`: what its README says, how much less a difference scatters when both sides have the same
//! seeds, and a sweep of 64 settings that is killed half-way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

use nodecast::catalog::Catalog;
use nodecast::experiment::figures::find;
use nodecast::experiment::{Cell, Point, points};
use nodecast::scenario::{Edit, Limits};
use rayon::prelude::*;

use crate::cli::Place;

const SEEDS: u64 = 24;

/// Four ways to consolidate, four choices of families, four limits to what runs on Spot.
const SETTINGS: [&str; 4] = [
    "NodePool[spot].spec.disruption.consolidateAfter=0s,1m,5m,15m",
    "NodePool[spot].spec.template.spec.requirements[karpenter.k8s.aws/instance-family].values=\
     [m5],[m5,m6i],[c5,m5,r5],[c5,c6i,m5,m6i,r5]",
    "NodePool[spot].spec.limits.cpu=0,12,24,1000",
    "duration=40m",
];

fn scenario() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/consolidation-tuning/scenario.yaml")
}

/// What every seed of a shorter run brings under a policy, figure by figure.
fn figures<const N: usize>(policy: &str, names: [&str; N]) -> [Vec<f64>; N] {
    let catalog = Catalog::embedded().unwrap();
    let edits = [Edit::parse("duration=2h").unwrap()];
    let (scenario, warnings) =
        nodecast::scenario::load_edited(&scenario(), catalog, &Limits::default(), &edits).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let one = |seed| points::simulate(&scenario, catalog, Cell { index: 0, setting: 0, policy, seed }).unwrap();
    let points: Vec<Point> = (1..=SEEDS).into_par_iter().map(one).collect();
    names.map(|name| {
        let (figure, _) = find(name).unwrap();
        points.iter().map(|point| point.figures[figure].unwrap()).collect()
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
#[allow(clippy::print_stdout)]
fn the_same_seeds_make_a_small_difference_visible() {
    let names = ["cost", "evictions"];
    let [(prompt, _), (patient, _), (lazy, evicted)] = ["after-1m", "after-5m", "when-empty"]
        .map(|policy| figures(policy, names))
        .map(|[cost, evicted]| (cost, evicted));
    let differences: Vec<f64> = prompt.iter().zip(&patient).map(|(one, other)| one - other).collect();
    assert!(differences.iter().any(|difference| difference.abs() > 0.0), "the setting changes something");
    // With seeds of their own the two sides would scatter independently, and their variances add up.
    let factor = (variance(&prompt) + variance(&patient)) / variance(&differences);
    println!("the same seeds make the variance of the difference {factor:.1} times smaller");
    assert!(factor >= 5.0, "{factor}");
    // What the README says of the three policies.
    assert!((mean(&patient) / mean(&prompt) - 1.0).abs() < 0.01);
    assert!(mean(&lazy) > 1.08 * mean(&prompt) && mean(&evicted) < 1.0);
}

fn sweep(place: &Place, out: &str) -> Child {
    let mut command = Command::new(cargo_bin!("nodecast"));
    command.arg("sweep").arg(scenario()).args(SETTINGS.iter().flat_map(|axis| ["--set", axis]));
    command.args(["--replications", "1", "--out", out]).current_dir(place.path(""));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn killed_sweep_of_64_settings_resumes() {
    let place = Place::new();
    assert!(sweep(&place, "whole").wait().unwrap().success());
    let swept: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.path("whole/sweep.json")).unwrap()).unwrap();
    assert_eq!(swept["results"].as_array().unwrap().len(), 64);
    let front = swept["front"].as_array().unwrap().len();
    assert!((1..64).contains(&front), "{front}");
    let mut child = sweep(&place, "killed");
    let kept = place.path("killed.unfinished.jsonl");
    // A line for what was asked, and one for each finished simulation.
    while fs::read_to_string(&kept).map_or(0, |text| text.lines().count()) < 33 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = fs::read_to_string(&kept).unwrap().lines().count();
    assert!((33..=64).contains(&finished), "killed after {finished} lines");
    assert!(sweep(&place, "killed").wait().unwrap().success());
    for file in ["sweep.json", "sweep.csv"] {
        let [whole, killed] = ["whole", "killed"].map(|run| fs::read(place.path(&format!("{run}/{file}"))).unwrap());
        assert!(whole == killed, "{file} differs");
    }
}
