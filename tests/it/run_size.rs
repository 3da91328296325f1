//! Size of a run that `validate` forecasts, compared with the run.

use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::domain::SimDuration;
use nodecast::experiment::inspection::inspect;
use nodecast::report::{self, Summary};
use nodecast::simulation;

/// Shipped scenarios whose runs take little time.
const FAST: [&str; 5] = ["eks-101", "keda-istio", "provisioners", "spot-interruption", "churn/no-capacity"];

/// Forecasts of `path` that differ from its runs by more than a factor of two.
fn misses(path: &str) -> Vec<String> {
    let catalog = Catalog::embedded().unwrap();
    let (scenario, _) = nodecast::scenario::load(Path::new(path)).unwrap();
    let (holds, _) = inspect(&scenario, catalog).unwrap();
    let mut misses = Vec::new();
    for (policy, held) in scenario.policies.iter().zip(&holds.policies) {
        let outcome = simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap();
        let summary = Summary::from_outcome(&outcome);
        let place = tempfile::tempdir().unwrap();
        let folder = report::write(&outcome, &summary, "", None, &place.path().join("report")).unwrap();
        let files = std::fs::read_dir(folder).unwrap();
        let bytes: u64 = files.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        let samples: usize = outcome.record.samples.iter().map(|sample| sample.workloads.len()).sum();
        let (expected, record) = (&held.expected, &outcome.record);
        for (name, forecast, actual) in [
            ("pods", expected.pods, record.pods.len() as u64),
            ("nodes", expected.nodes, summary.nodes.max_ready),
            ("events", expected.events, record.events.len() as u64),
            ("samples", expected.workload_samples, samples as u64),
            ("bytes", expected.report_bytes, bytes),
        ] {
            let is_near = forecast <= 2 * actual && actual <= 2 * forecast;
            if !is_near {
                misses.push(format!("{} {}: {name} {forecast}, actual {actual}", scenario.name, policy.name));
            }
        }
    }
    misses
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn forecast_of_fast_scenarios_is_within_factor_two() {
    let paths = FAST.map(|name| format!("{}/scenarios/{name}/scenario.yaml", env!("CARGO_MANIFEST_DIR")));
    let misses: Vec<String> = paths.iter().flat_map(|path| misses(path)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn forecast_of_shipped_scenarios_is_within_factor_two() {
    // `.ci/long whole-runs` has days and weeks too.
    let whole = std::env::var_os("NODECAST_WHOLE_RUNS").is_some();
    let is_short = |path: &String| {
        nodecast::scenario::load(Path::new(path)).unwrap().0.duration <= SimDuration::from_secs(6 * 3_600)
    };
    let mut paths = crate::validate::scenarios();
    assert!(paths.len() > 20, "{paths:?}");
    paths.retain(|path| whole || is_short(path));
    let misses: Vec<String> = paths.iter().flat_map(|path| misses(path)).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}
