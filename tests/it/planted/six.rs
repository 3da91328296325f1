//! Six scenarios that were made dearer on purpose, what `recommend` says of them, and what is true.
//!
//! What is true is simulated with seeds that the search never has: how much less the scenario costs without what was planted, and how much less
//! with what is recommended. `examples/planted.rs` asks what takes too long for each change.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodecast::catalog::Catalog;
use nodecast::experiment::figures::find;
use nodecast::experiment::points::{Cell, simulate};
use nodecast::experiment::statistics::mean;
use nodecast::recommend::recommendation::Recommendation;
use nodecast::scenario::{Edit, Limits};
use rayon::prelude::*;

/// What comes of it, or why nothing does.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A scenario, and what was planted.
pub struct Planted {
    pub scenario: &'static str,
    pub policy: &'static str,
    /// What makes the scenario quick to simulate, and what it has that was taken away.
    pub before: &'static [&'static str],
    /// What was planted.
    pub plant: &'static [&'static str],
    /// Simulations that are enough to find it.
    pub simulations: u32,
    /// What else is asked of the search.
    pub asked: &'static [&'static str],
    /// The lever that undoes it.
    pub lever: &'static str,
}

/// Nodes stay that are nearly empty.
pub const CONSOLIDATION: Planted = Planted {
    scenario: "scenarios/consolidation-tuning/scenario.yaml",
    policy: "after-1m",
    before: &["duration=3h30m"],
    plant: &[
        "NodePool[spot].spec.disruption.consolidateAfter=Never",
        "NodePool[on-demand].spec.disruption.consolidateAfter=Never",
    ],
    simulations: 400,
    asked: &[],
    lever: "consolidate-after",
};

/// Nothing but families with much memory. What has to be kept is stated: with the cheap families back there are more nodes and evictions than with the
/// planted ones.
pub const FAMILIES: Planted = Planted {
    scenario: "scenarios/multi-architecture/scenario.yaml",
    policy: "amd64",
    before: &["duration=12h", "objectives={pending_p99: 3m, request_p99: 1s}"],
    plant: &["NodePool[default].spec.template.spec.requirements[karpenter.k8s.aws/instance-category].values=[r]"],
    simulations: 220,
    asked: &["--without", "spot"],
    lever: "families",
};

/// Requests three times what is used.
pub const REQUESTS: Planted = Planted {
    scenario: "tests/data/planted/scenario.yaml",
    policy: "as-they-are",
    before: &[],
    plant: &[
        "Deployment[shop/search].spec.template.spec.containers[app].resources.requests={cpu: 3900m, memory: 7500Mi}",
        "Deployment[shop/web].spec.template.spec.containers[app].resources.requests={cpu: 1200m, memory: 1800Mi}",
    ],
    simulations: 200,
    asked: &["--without", "spot"],
    lever: "requests",
};

/// A pin to On-Demand that nothing needs.
pub const PIN: Planted = Planted {
    scenario: "scenarios/spot-storm/scenario.yaml",
    policy: "flexible",
    before: &[],
    plant: &["Deployment[shop/frontend].spec.template.spec.nodeSelector={karpenter.sh/capacity-type: on-demand}"],
    simulations: 200,
    asked: &[],
    lever: "spot",
};

/// A Savings Plan that was there.
pub const COMMITMENT: Planted = Planted {
    scenario: "scenarios/headroom/scenario.yaml",
    policy: "larger-minimum",
    before: &[
        "duration=4h",
        "ec2.billing.savings_plans=[{family: c6i, commitment: 1.8, term: 1y, payment: no_upfront}]",
    ],
    plant: &["ec2.billing.savings_plans=[]"],
    simulations: 150,
    asked: &["--levers", "commitments"],
    lever: "commitments",
};

/// An autoscaler that aims at less than a third.
pub const TARGET: Planted = Planted {
    scenario: "scenarios/zone-outage/scenario.yaml",
    policy: "spread-if-possible",
    before: &[],
    plant: &[
        "HorizontalPodAutoscaler[shop/frontend].spec.metrics[0].resource.target.averageUtilization=30",
        "HorizontalPodAutoscaler[shop/frontend].spec.maxReplicas=120",
    ],
    simulations: 200,
    asked: &[],
    lever: "hpa-targets",
};

/// The first of the seeds that no search has.
const FRESH: u64 = 900_000_000;

/// An answer, and the folder that it was written into.
pub struct Answer {
    pub answer: Recommendation,
    place: tempfile::TempDir,
}

impl Answer {
    /// The scenario that was written, as it would be: its file.
    fn scenario(&self) -> PathBuf {
        let folder = self.place.path().join("recommended");
        let after = folder.join("after.yaml");
        if after.exists() { after } else { folder.join("scenario.yaml") }
    }
}

impl Answer {
    /// What a month costs on average with what is recommended.
    pub fn cost(&self, seeds: u64) -> Result<f64> {
        cost(&self.scenario(), &[], "recommended", seeds)
    }
}

/// Asks the program at `program` for a policy of a scenario, and has the answer written.
fn recommend(program: &Path, (scenario, policy): (&Path, &str), set: &[&str], more: &[&str]) -> Result<Answer> {
    let place = tempfile::tempdir()?;
    let output = Command::new(program)
        .arg("recommend")
        .arg(scenario)
        .args(["--policy", policy, "--format", "json", "--quiet"])
        .args(set.iter().flat_map(|item| ["--set", item]))
        .args(more)
        .arg("--write")
        .arg(place.path().join("recommended"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(Answer { answer: serde_json::from_slice(&output.stdout)?, place })
}

impl Planted {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.scenario)
    }

    fn set(&self) -> Vec<&'static str> {
        self.before.iter().chain(self.plant).copied().collect()
    }

    /// What is recommended for it, by so many simulations or those that are enough.
    pub fn asked(&self, program: &Path, simulations: Option<u32>) -> Result<Answer> {
        self.asked_from(program, simulations, None)
    }

    /// The same with a first seed of its own.
    pub fn asked_from(&self, program: &Path, simulations: Option<u32>, seed: Option<u64>) -> Result<Answer> {
        let count = simulations.unwrap_or(self.simulations).to_string();
        let seed: Vec<String> = seed.iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]).collect();
        let seed: Vec<&str> = seed.iter().map(String::as_str).collect();
        let more = [self.asked, &["--simulations", &count], &seed].concat();
        recommend(program, (&self.path(), self.policy), &self.set(), &more)
    }

    /// What a month costs on average as it was before anything was planted, with what was planted, and with what is recommended, by so many
    /// fresh seeds.
    pub fn costs(&self, answer: &Answer, seeds: u64) -> Result<[f64; 3]> {
        let before = cost(&self.path(), self.before, self.policy, seeds)?;
        let planted = cost(&self.path(), &self.set(), self.policy, seeds)?;
        Ok([before, planted, answer.cost(seeds)?])
    }

    /// What so many further searches, over what is recommended, find: those of them that find anything more.
    pub fn again(&self, program: &Path, simulations: Option<u32>, searches: u64) -> Result<Vec<Recommendation>> {
        let asked = self.asked(program, simulations)?;
        let count = simulations.unwrap_or(self.simulations).to_string();
        let mut found = Vec::new();
        for ordinal in 0..searches {
            let seed = (FRESH + ordinal * 1_000).to_string();
            let more = [self.asked, &["--simulations", &count, "--seed", &seed]].concat();
            let again = recommend(program, (&*asked.scenario(), "recommended"), &[], &more)?;
            found.extend(Some(again.answer).filter(Recommendation::is_change));
        }
        Ok(found)
    }
}

/// What a month costs on average with the fresh seeds.
fn cost(scenario: &Path, set: &[&str], policy: &str, seeds: u64) -> Result<f64> {
    let catalog = Catalog::embedded()?;
    let edits = set.iter().map(|item| Edit::parse(item)).collect::<std::result::Result<Vec<Edit>, _>>()?;
    let (mut scenario, _) = nodecast::scenario::load_edited(scenario, catalog, &Limits::default(), &edits)?;
    scenario.draw_price_errors();
    let (figure, _) = find("cost_per_month").ok_or("there is no such figure")?;
    let cost = |ordinal: u64| {
        let point = simulate(&scenario, catalog, Cell { index: 0, setting: 0, policy, seed: FRESH + ordinal })?;
        Ok(point.figures[figure].ok_or("a run without a cost")?)
    };
    let costs = (0..seeds).into_par_iter().map(cost).collect::<Result<Vec<f64>>>()?;
    mean(&costs).ok_or_else(|| "no seed".into())
}
