//! A fleet under several policies, with the same seeds.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Audience, Failure, Fleet, Request};
use crate::experiment::points::Cell;
use crate::experiment::question::{Answer, FIGURE_MAX, Kind};
use crate::experiment::statistics::{Estimate, Paired};
use crate::experiment::{Question, Shard};
use crate::program::compare::check_named_once;
use crate::program::recorded_path;
use crate::report::summary::InputSummary;
use crate::scenario::ScenarioError;

/// Seeds unless the fleet or the command line sets a number.
const SEEDS: u32 = 5;

/// A fleet with one policy and one seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetPoint {
    policy: String,
    seed: u64,
    /// Net cost per month.
    per_month: f64,
    /// Unused commitments.
    unused: f64,
    /// Highest p99 of pod wait among the clusters, in seconds.
    pod_wait_p99_seconds: Option<f64>,
    /// Launches that EC2 refused.
    launches_refused: f64,
}

impl Answer for FleetPoint {
    const FIGURES: usize = 4;

    fn cell(&self) -> (usize, &str, u64) {
        (0, &self.policy, self.seed)
    }

    fn damage(&self) -> Option<String> {
        let figures = [
            ("per_month", Some(self.per_month)),
            ("unused", Some(self.unused)),
            ("pod_wait_p99_seconds", self.pod_wait_p99_seconds),
            ("launches_refused", Some(self.launches_refused)),
        ];
        figures.into_iter().find_map(|(name, value)| {
            let value = value.filter(|value| !(0.0..=FIGURE_MAX).contains(value))?;
            Some(format!("`{name}` is {value}"))
        })
    }
}

/// The result of a policy over all seeds.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PolicyResult {
    /// The policy: each cluster whose scenario has it uses it.
    pub policy: String,
    /// Net cost of the fleet per month, by seed.
    pub per_month: Vec<f64>,
    /// Its mean with a 95% confidence interval.
    pub cost: Option<Estimate>,
    /// Unused commitments of a run, mean.
    pub unused: f64,
    /// Highest p99 of pod wait among the clusters, mean over seeds, in seconds.
    pub pod_wait_p99_seconds: Option<f64>,
    /// Launches that EC2 refused, mean.
    pub launches_refused: f64,
    /// Difference of cost per month from the first policy.
    pub difference: Option<Paired>,
}

/// A fleet's policies, compared.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FleetComparison {
    /// Name of the fleet.
    pub fleet: String,
    /// Currency.
    pub currency: String,
    /// First seed.
    pub first_seed: u64,
    /// Seeds of each policy.
    pub replications: u32,
    /// The policies, in the order asked for.
    pub policies: Vec<PolicyResult>,
}

/// A comparison that has been read and can be run.
pub struct FleetCompare {
    /// The fleet under each policy of the question.
    fleets: Vec<Fleet>,
    /// The simulations.
    pub question: Question,
}

impl FleetCompare {
    /// Reads the fleet under each of `policies`.
    ///
    /// # Errors
    /// If there are fewer than two policies, one of them is unknown or there twice, or the fleet cannot be read.
    pub fn load(request: &Request, policies: &[String], replications: Option<u32>) -> Result<Self, Failure> {
        if policies.len() < 2 {
            let error = ScenarioError::new("a comparison of a fleet needs at least two policies");
            return Err(error.help("name policies of its scenarios: `--policies spot,on-demand`").into());
        }
        check_named_once(policies)?;
        let under = |policy: &String| Fleet::load(Request { policy: Some(policy.clone()), ..request.clone() });
        let fleets = policies.iter().map(under).collect::<Result<Vec<_>, _>>()?;
        let first = &fleets[0];
        let question = Question {
            kind: Kind::FleetCompare,
            scenario: recorded_path(&request.file)?,
            inputs: first.loaded.inputs.iter().map(InputSummary::from).collect(),
            pricing_data: request.pricing_data.as_deref().map(recorded_path).transpose()?,
            policies: policies.to_vec(),
            first_seed: first.seed(),
            replications: replications.or(first.loaded.fleet.replications).unwrap_or(SEEDS),
            settings: vec![Vec::new()],
            axes: Vec::new(),
            latency: None,
            duration: request.duration.map(|duration| duration.to_string()),
        };
        Ok(Self { fleets, question })
    }

    /// The comparison to which a question of parts belongs, read again.
    ///
    /// # Errors
    /// As [`load`](Self::load), or if the duration of the question is none.
    pub fn reload(question: &Question) -> Result<Self, Failure> {
        let duration = question.duration.as_deref().map(str::parse).transpose();
        let duration = duration.map_err(|_| ScenarioError::new("the duration of the shards is not a duration"))?;
        let request = Request {
            file: Path::new(&question.scenario).to_owned(),
            duration,
            seed: Some(question.first_seed),
            policy: None,
            pricing_data: question.pricing_data.as_deref().map(|path| Path::new(path).to_owned()),
        };
        Self::load(&request, &question.policies, Some(question.replications))
    }

    /// The name of the fleet.
    pub fn name(&self) -> &str {
        &self.fleets[0].loaded.fleet.name
    }

    /// The simulations of a shard, or all, with the numbers of their cells.
    ///
    /// `threads` limits how many clusters run at a time; without it, one per processor.
    ///
    /// # Errors
    /// If a run fails, or the audience stops it.
    pub fn points(
        &self,
        shard: Option<Shard>,
        threads: Option<u16>,
        audience: &dyn Audience,
    ) -> Result<Vec<(usize, FleetPoint)>, Failure> {
        let plan = self.question.plan();
        let cells = shard.map_or_else(|| plan.cells().collect(), |shard| shard.cells(&plan));
        cells.into_iter().map(|cell| Ok((cell.index, self.point(cell, threads, audience)?))).collect()
    }

    /// One simulation.
    fn point(&self, cell: Cell<'_>, threads: Option<u16>, audience: &dyn Audience) -> Result<FleetPoint, Failure> {
        // Policies are innermost in a plan.
        let fleet = &self.fleets[cell.index % self.fleets.len()];
        let summary = fleet.answer(cell.seed, threads, None, audience)?.summary;
        let waits = summary.clusters.iter().filter_map(|row| row.pod_wait_p99_seconds);
        Ok(FleetPoint {
            policy: cell.policy.to_owned(),
            seed: cell.seed,
            per_month: summary.figures.per_month,
            unused: summary.figures.unused,
            pod_wait_p99_seconds: waits.max_by(f64::total_cmp),
            launches_refused: summary.clusters.iter().map(|row| row.launches_refused as f64).sum(),
        })
    }

    /// The comparison of all points, which are in the order of their cells.
    ///
    /// # Errors
    /// If the catalog has no prices of the region.
    pub fn answer(&self, points: &[FleetPoint]) -> Result<FleetComparison, Failure> {
        let mut policies: Vec<PolicyResult> = Vec::new();
        for policy in &self.question.policies {
            let points: Vec<&FleetPoint> = points.iter().filter(|point| point.policy == *policy).collect();
            let base = policies.first().map(|result| result.per_month.as_slice());
            policies.push(result(policy, &points, base));
        }
        Ok(FleetComparison {
            fleet: self.name().to_owned(),
            currency: self.fleets[0].currency()?.to_owned(),
            first_seed: self.question.first_seed,
            replications: self.question.replications,
            policies,
        })
    }
}

/// The result of one policy.
fn result(policy: &str, points: &[&FleetPoint], base: Option<&[f64]>) -> PolicyResult {
    let mean = |value: fn(&FleetPoint) -> f64| {
        let seeds = points.len() as f64;
        points.iter().map(|point| value(point) / seeds).sum()
    };
    let per_month: Vec<f64> = points.iter().map(|point| point.per_month).collect();
    let waits: Vec<f64> = points.iter().filter_map(|point| point.pod_wait_p99_seconds).collect();
    PolicyResult {
        policy: policy.to_owned(),
        cost: Estimate::from_values(&per_month),
        unused: mean(|point| point.unused),
        pod_wait_p99_seconds: (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64),
        launches_refused: mean(|point| point.launches_refused),
        difference: base.and_then(|base| Paired::new(base, &per_month)),
        per_month,
    }
}
