//! Runs of the scenarios that are shipped.

use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::simulation::{self, Outcome};

/// A policy of `scenarios/NAME/scenario.yaml`, which is read without a warning, with the scenario's seed.
pub fn run(name: &str, policy: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name).join("scenario.yaml");
    let (scenario, warnings) = nodecast::scenario::load(&path).unwrap();
    assert_eq!(warnings, []);
    let policy = scenario.for_policy(Some(policy)).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}
