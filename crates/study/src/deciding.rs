//! The figure that decides a comparison's verdict, and the replications that would settle it. Must not hold: words for people.

use serde::{Deserialize, Serialize};

use super::comparison::{Comparison, ObjectiveShare};
use super::points::MET_IN;
use super::statistics::{Estimate, share_of};

/// Costs that differ by less than this share of the first policy's are alike; a difference known to this share needs no more
/// replications.
pub const ENOUGH: f64 = 0.02;
/// The same of waits.
const ENOUGH_OF_WAITS: f64 = 0.1;
/// Objectives that need more replications than these are met in so nearly 95 % of runs that no number is worth it.
const REPLICATIONS_MAX: u64 = 10_000;

/// What a verdict depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// An objective is met in some runs and missed in others.
    Objective,
    /// The cheaper policy is not known.
    CostSign,
    /// The cheaper policy is known, but not by how much.
    CostSize,
    /// Costs are alike, and the policy with the shorter waits is not known.
    WaitSign,
}

/// The figure that decides a verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Deciding {
    /// What the verdict depends on.
    pub matter: Matter,
    /// The figure's name, or the objective's.
    pub figure: String,
    /// The policy that needs most replications.
    pub policy: String,
    /// Replications that would settle it, if the spread stays.
    pub replications: u64,
}

/// The figure that decides the verdict of `comparison`; `None` where it is settled, or with one replication.
pub fn deciding(comparison: &Comparison) -> Option<Deciding> {
    if comparison.about.replications < 2 {
        return None;
    }
    if comparison.precision.is_some() {
        return cost_size(comparison);
    }
    objective(comparison)
        .or_else(|| cost_sign(comparison))
        .or_else(|| wait_sign(comparison))
        .or_else(|| cost_size(comparison))
}

/// Of several the one that needs most.
fn most(needed: impl Iterator<Item = Deciding>, have: u64) -> Option<Deciding> {
    needed.filter(|one| one.replications > have).max_by_key(|one| one.replications)
}

fn objective(comparison: &Comparison) -> Option<Deciding> {
    let of_policies = comparison.policies.iter().flat_map(|policy| {
        policy.objectives.iter().filter_map(|objective| {
            Some(Deciding {
                matter: Matter::Objective,
                figure: objective.name.clone(),
                policy: policy.name.clone(),
                replications: runs_to_judge(objective)?,
            })
        })
    });
    most(of_policies, comparison.about.replications)
}

/// Runs after which it is known whether an objective is met in enough of them; `None` where it is, and where all runs agree.
fn runs_to_judge(objective: &ObjectiveShare) -> Option<u64> {
    let (met, judged) = (objective.met as f64, objective.judged as f64);
    if objective.met == 0 || objective.met == objective.judged {
        return None;
    }
    let is_open = |runs: u64| {
        let estimate = share_of(met / judged * runs as f64, runs as f64);
        estimate.low.zip(estimate.high).is_some_and(|(low, high)| (low..=high).contains(&MET_IN))
    };
    let (mut open, mut settled) = (objective.judged, REPLICATIONS_MAX);
    if !is_open(open) || is_open(settled) {
        return None;
    }
    while settled - open > 1 {
        let middle = open.midpoint(settled);
        if is_open(middle) {
            open = middle;
        } else {
            settled = middle;
        }
    }
    Some(settled)
}

/// The relative difference of a policy's cost from the first one's.
fn cost(comparison: &Comparison, position: usize) -> Option<Estimate> {
    comparison.figure(position, comparison.cost_figure())?.against_first.as_ref()?.relative
}

fn is_within(estimate: &Estimate, least: f64) -> bool {
    estimate.low.zip(estimate.high).is_some_and(|(low, high)| low > -least && high < least)
}

/// Values that would bring an interval clear of zero, or within `enough` of it, if the spread stays.
fn values_for_sign(estimate: &Estimate, enough: f64) -> Option<u64> {
    let target = estimate.centre().abs().max(enough - estimate.centre().abs());
    let ratio = estimate.half_width()? / target;
    let needed = libm::ceil(estimate.count as f64 * ratio * ratio);
    Some(if needed < 1e9 { (needed as u64).max(estimate.count + 1) } else { 1_000_000_000 })
}

fn cost_sign(comparison: &Comparison) -> Option<Deciding> {
    let open = comparison.comparable().filter_map(|position| {
        let relative = cost(comparison, position)?;
        if relative.excludes_zero() || is_within(&relative, ENOUGH) {
            return None;
        }
        Some(Deciding {
            matter: Matter::CostSign,
            figure: comparison.cost_figure().to_owned(),
            policy: comparison.policies.get(position)?.name.clone(),
            replications: values_for_sign(&relative, ENOUGH)?,
        })
    });
    most(open, comparison.about.replications)
}

fn wait_sign(comparison: &Comparison) -> Option<Deciding> {
    let alike = comparison.comparable().filter(|&position| {
        cost(comparison, position)
            .is_some_and(|relative| is_within(&relative, ENOUGH) && relative.half_width() > Some(0.0))
    });
    let open = alike.filter_map(|position| {
        let difference = comparison.figure(position, WAIT)?.against_first.as_ref()?.difference;
        let enough = ENOUGH_OF_WAITS * comparison.figure(0, WAIT)?.mean?.centre();
        if difference.excludes_zero() || is_within(&difference, enough) {
            return None;
        }
        Some(Deciding {
            matter: Matter::WaitSign,
            figure: WAIT.to_owned(),
            policy: comparison.policies.get(position)?.name.clone(),
            replications: values_for_sign(&difference, enough)?,
        })
    });
    most(open, comparison.about.replications)
}

/// The figure of waits that verdicts show.
const WAIT: &str = "pending_p99";

fn cost_size(comparison: &Comparison) -> Option<Deciding> {
    let target = comparison.precision.unwrap_or(ENOUGH);
    let open = comparison.comparable().filter_map(|position| {
        let paired = comparison.figure(position, comparison.cost_figure())?.against_first.as_ref()?;
        if paired.relative?.half_width()? <= target {
            return None;
        }
        Some(Deciding {
            matter: Matter::CostSize,
            figure: comparison.cost_figure().to_owned(),
            policy: comparison.policies.get(position)?.name.clone(),
            replications: paired.pairs_needed(target)?,
        })
    });
    most(open, comparison.about.replications)
}

#[cfg(test)]
mod tests {
    use super::{Deciding, Matter, deciding};
    use crate::comparison::{About, compare};
    use crate::figures::{FIGURES, find};
    use crate::points::{Objective, Point};
    use crate::scenario::Caveats;

    /// A run of a policy with a seed: its cost, its p99 wait, and whether it met the objective, if there is one.
    type Run = (f64, f64, Option<bool>);

    fn point(policy: &str, seed: u64, (cost, wait, met): Run) -> Point {
        let mut figures = vec![None; FIGURES.len()];
        for (name, value) in [("cost", cost), ("pending_p99", wait)] {
            figures[find(name).unwrap().0] = Some(value);
        }
        let objective = met.map(|met| Objective {
            name: "pending_p99".into(),
            unit: "seconds".into(),
            limit: 60.0,
            actual: Some(wait),
            met: Some(met),
        });
        Point {
            setting: 0,
            policy: policy.to_owned(),
            seed,
            figures,
            objectives: objective.into_iter().collect(),
            event_hash: format!("{policy}{seed}"),
            unconfirmed: 0.0,
            cost_by_origin: Default::default(),
            spot: false,
            never_registered: 0,
            silent: Vec::new(),
            at_zero_seconds: Default::default(),
            price_date: String::new(),
            warnings: Caveats::new(),
        }
    }

    fn of_runs(before: impl Fn(u64) -> Run, after: impl Fn(u64) -> Run) -> Option<Deciding> {
        let points = (0..8).flat_map(|seed| [point("before", seed, before(seed)), point("after", seed, after(seed))]);
        let policies = ["before".to_owned(), "after".to_owned()];
        deciding(&compare(About::of_test(0, 8), &policies, points.collect(), Caveats::new()))
    }

    fn noise(seed: u64) -> f64 {
        [1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, -1.5][seed as usize % 8]
    }

    #[test]
    fn unsettled_objective_decides_before_cost() {
        let found = of_runs(|_| (10.0, 50.0, Some(true)), |seed| (10.0 + noise(seed), 50.0, Some(seed > 0))).unwrap();
        assert_eq!(
            (found.matter, found.policy.as_str(), found.figure.as_str()),
            (Matter::Objective, "after", "pending_p99")
        );
        assert!(found.replications > 8, "{found:?}");
    }

    #[test]
    fn cost_decides_by_sign_then_size() {
        let of_cost =
            |shift: f64| of_runs(|_| (10.0, 50.0, None), move |seed| (10.0 + shift + noise(seed), 50.0, None));
        let unclear = of_cost(0.3).unwrap();
        assert_eq!(unclear.matter, Matter::CostSign);
        let clear = of_cost(-5.0).unwrap();
        assert_eq!((clear.matter, clear.figure.as_str()), (Matter::CostSize, "cost"));
        assert!(clear.replications > unclear.replications, "{clear:?} {unclear:?}");
    }

    #[test]
    fn waits_decide_where_costs_are_alike() {
        let after = |seed: u64| (10.0 + noise(seed) / 100.0, 50.0 + 10.0 * noise(seed), None);
        let found = of_runs(|_| (10.0, 50.0, None), after).unwrap();
        assert_eq!((found.matter, found.figure.as_str()), (Matter::WaitSign, "pending_p99"));
        // Known costs and waits leave nothing to decide.
        assert_eq!(of_runs(|_| (10.0, 50.0, None), |seed| (9.0 + noise(seed) / 100.0, 40.0, None)), None);
    }
}
