//! A fleet under several policies, with the same seeds.

use serde::Serialize;

use super::{Audience, Failure, Fleet, Request};
use crate::experiment::statistics::{Estimate, Paired};
use crate::scenario::ScenarioError;

/// Seeds unless the fleet or the command line sets a number.
const SEEDS: u32 = 5;

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

/// Runs a fleet under each of `policies` with the same seeds.
///
/// # Errors
/// If there are fewer than two policies, or a run fails.
pub fn compare(
    request: &Request,
    (policies, replications): (&[String], Option<u32>),
    threads: Option<u16>,
    audience: &dyn Audience,
) -> Result<FleetComparison, Failure> {
    if policies.len() < 2 {
        let error = ScenarioError::new("a comparison of a fleet needs at least two policies");
        return Err(error.help("name policies of its scenarios: `--policies spot,on-demand`").into());
    }
    let mut results: Vec<PolicyResult> = Vec::new();
    let mut about = (String::new(), String::new(), 0, 0);
    for policy in policies {
        let fleet = Fleet::load(Request { policy: Some(policy.clone()), ..request.clone() })?;
        let seeds = replications.or(fleet.loaded.fleet.replications).unwrap_or(SEEDS);
        about = (fleet.loaded.fleet.name.clone(), fleet.currency()?.to_owned(), fleet.seed(), seeds);
        let base = results.first().map(|result| result.per_month.clone());
        results.push(under(&fleet, policy, seeds, base.as_deref(), (threads, audience))?);
    }
    let (fleet, currency, first_seed, replications) = about;
    Ok(FleetComparison { fleet, currency, first_seed, replications, policies: results })
}

/// The results of one policy.
fn under(
    fleet: &Fleet,
    policy: &str,
    seeds: u32,
    base: Option<&[f64]>,
    (threads, audience): (Option<u16>, &dyn Audience),
) -> Result<PolicyResult, Failure> {
    let (mut per_month, mut unused, mut waits, mut refused) = (Vec::new(), 0.0, Vec::new(), 0.0);
    for number in 0..u64::from(seeds) {
        let summary = fleet.answer(fleet.seed().wrapping_add(number), threads, None, audience)?.summary;
        per_month.push(summary.figures.per_month);
        unused += summary.figures.unused / f64::from(seeds);
        waits.extend(summary.clusters.iter().filter_map(|row| row.pod_wait_p99_seconds).max_by(f64::total_cmp));
        refused += summary.clusters.iter().map(|row| row.launches_refused as f64).sum::<f64>() / f64::from(seeds);
    }
    let wait = (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64);
    Ok(PolicyResult {
        policy: policy.to_owned(),
        cost: Estimate::from_values(&per_month),
        unused,
        pod_wait_p99_seconds: wait,
        launches_refused: refused,
        difference: base.and_then(|base| Paired::new(base, &per_month)),
        per_month,
    })
}
