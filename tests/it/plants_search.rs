//! Small scenarios with one planted saving each: `recommend` finds it within 400 simulations, and fresh seeds confirm the claim.

use std::path::{Path, PathBuf};
use std::process::Command;

use nodecast::catalog::Catalog;
use nodecast::experiment::figures::find;
use nodecast::experiment::points::{Cell, simulate};
use nodecast::experiment::statistics::mean;
use nodecast::recommend::presentation::recommendation::text;
use nodecast::recommend::recommendation::{Advice, Change, Recommendation};
use nodecast::scenario::{Edit, Limits};
use rayon::prelude::*;

/// Simulations that are enough to find each plant.
const SIMULATIONS: &str = "400";
/// The first of the seeds that no search uses, and their number.
const FRESH: u64 = 900_000_000;
const SEEDS: u64 = 12;
/// Seeds that confirm a claim, as many as `compare` runs by default and half as many again.
const SEEDS_OF_CLAIM: u64 = 30;

/// A scenario of `tests/data/plants`, and what removes the planted cost.
struct Plant {
    name: &'static str,
    undo: &'static [&'static str],
    /// The lever that finds it.
    lever: &'static str,
    asked: &'static [&'static str],
    /// The policy of the answer, of those that `--write` writes.
    policy: &'static str,
}

const BLOCKED: Plant = Plant {
    name: "blocked-disruption",
    undo: &[
        "NodePool[general].spec.disruption.budgets[1].nodes=\"1\"",
        "Deployment[clinic/records].spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]=null",
        "PodDisruptionBudget[clinic/imaging].spec.minAvailable=null",
        "PodDisruptionBudget[clinic/imaging].spec.maxUnavailable=1",
    ],
    lever: "blockers",
    asked: &["--without", "spot,split"],
    policy: "recommended",
};

const DAEMONS: Plant = Plant {
    name: "daemon-requests",
    undo: &[
        "DaemonSet[agents/log-shipper].spec.template.spec.containers[shipper].resources.requests={cpu: 70m, memory: 165Mi}",
        "DaemonSet[agents/node-watch].spec.template.spec.containers[watch].resources.requests={cpu: 40m, memory: 120Mi}",
        "DaemonSet[agents/node-watch].spec.template.spec.containers[export].resources.requests={cpu: 25m, memory: 60Mi}",
    ],
    lever: "daemonsets",
    asked: &["--without", "spot,split"],
    policy: "recommended",
};

const OFFICE: Plant = Plant {
    name: "office-hours",
    undo: &[
        "ScaledObject[bureau/archive].spec.minReplicaCount=0",
        "ScaledObject[bureau/casework]={apiVersion: keda.sh/v1alpha1, spec: {scaleTargetRef: {name: casework}, minReplicaCount: 0, \
         maxReplicaCount: 12, triggers: [{type: cron, metadata: {timezone: UTC, start: '30 6 * * *', end: '0 18 * * *', \
         desiredReplicas: '12'}}]}}",
    ],
    lever: "schedules",
    asked: &["--without", "spot,split"],
    policy: "recommended",
};

const BEHIND_SPOT: Plant = Plant {
    name: "behind-spot",
    undo: &["NodePool[main].spec.template.spec.requirements[karpenter.k8s.aws/instance-category].values=[c]"],
    lever: "families",
    asked: &["--without", "commitments"],
    policy: "without-spot",
};

impl Plant {
    fn file(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plants").join(self.name).join("scenario.yaml")
    }

    /// The answer, written to `folder`.
    fn answer(&self, folder: &Path) -> Recommendation {
        let output = Command::new(env!("CARGO_BIN_EXE_nodecast"))
            .arg("recommend")
            .arg(self.file())
            .args(["--simulations", SIMULATIONS, "--format", "json", "--quiet", "--write"])
            .arg(folder)
            .args(self.asked)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// At least nine tenths of the planted saving are found, and the claim holds on fresh seeds.
    fn is_found(&self) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("written");
        let answer = self.answer(&folder);
        let shown = text(&answer);
        let is_second = self.policy != "recommended";
        let second = answer.without_spot.as_ref().filter(|_| is_second);
        let (advice, changes, cost) = match second {
            Some(second) => (second.advice, &second.changes, &second.cost_per_month),
            None => (answer.advice, &answer.changes, &answer.cost_per_month),
        };
        assert!(second.is_some() == is_second && advice == Advice::Change, "{shown}");
        assert!(answer.effort.used <= 400, "{shown}");
        assert!(changes.iter().any(|change: &Change| change.lever == self.lever), "{shown}");
        // Commitments are no setting of a policy: with them the whole change is a scenario of its own.
        let whole = folder.join("after.yaml");
        let written = if whole.exists() { whole } else { folder.join("scenario.yaml") };
        let [planted, undone, found] =
            [(self.file(), &[][..], "today"), (self.file(), self.undo, "today"), (written, &[], self.policy)]
                .map(|(file, set, policy)| costs(&file, set, policy));
        let average = |costs: &[f64]| mean(&costs[..SEEDS as usize]).unwrap();
        let (truth, saved) = (average(&planted) - average(&undone), average(&planted) - average(&found));
        assert!(truth > 0.05 * average(&planted), "the plant is {truth} of {}", average(&planted));
        assert!(saved >= 0.9 * truth, "{saved} of {truth} found:\n{shown}");
        let relative = cost.as_ref().unwrap().relative.unwrap();
        let change = mean(&found).unwrap() / mean(&planted).unwrap() - 1.0;
        let (low, high) = (relative.low.unwrap() - 0.01, relative.high.unwrap() + 0.01);
        assert!((low..=high).contains(&change), "{change} is not in {low} to {high}:\n{shown}");
    }
}

/// Costs of a month with each of the fresh seeds.
fn costs(file: &Path, set: &[&str], policy: &str) -> Vec<f64> {
    let catalog = Catalog::embedded().unwrap();
    let edits: Vec<Edit> = set.iter().map(|edit| Edit::parse(edit).unwrap()).collect();
    let (mut scenario, _) = nodecast::scenario::load_edited(file, catalog, &Limits::default(), &edits).unwrap();
    scenario.draw_price_errors();
    let (figure, _) = find("cost_per_month").unwrap();
    let cost = |ordinal: u64| {
        let cell = Cell { index: 0, setting: 0, policy, seed: FRESH + ordinal };
        simulate(&scenario, catalog, cell).unwrap().figures[figure].unwrap()
    };
    (0..SEEDS_OF_CLAIM).into_par_iter().map(cost).collect()
}

#[test]
#[ignore = "long: .ci/long plants"]
fn blocked_disruption_is_found() {
    BLOCKED.is_found();
}

#[test]
#[ignore = "long: .ci/long plants"]
fn requests_of_daemon_sets_are_found() {
    DAEMONS.is_found();
}

#[test]
#[ignore = "long: .ci/long plants"]
fn replicas_outside_office_hours_are_found() {
    OFFICE.is_found();
}

#[test]
#[ignore = "long: .ci/long plants"]
fn saving_behind_spot_is_found() {
    BEHIND_SPOT.is_found();
}
