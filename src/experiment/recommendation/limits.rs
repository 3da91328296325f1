//! What a recommendation has to keep: the scenario's objectives, or what there is today.

use super::search::Sample;
use crate::experiment::figures::find;
use crate::experiment::points::{Objective, Point};

/// How a measure of the runs is judged.
#[derive(Clone, PartialEq, Debug)]
pub enum Limit {
    /// At most `limit` in a share of the runs, or in as many of them as today.
    AtMost {
        /// Its name for people.
        name: String,
        /// The limit.
        limit: f64,
        /// The share of runs that have to keep it, 0 to 1.
        share: f64,
    },
    /// On average no more than today.
    AsToday {
        /// Its name for people.
        name: String,
        /// The figure.
        figure: &'static str,
        /// So much more counts as no more, in its unit.
        slack: f64,
        /// The same as a share of today's mean; the larger of both holds.
        share: f64,
    },
}

impl Limit {
    /// What it limits, for people.
    pub fn name(&self) -> &str {
        match self {
            Self::AtMost { name, .. } | Self::AsToday { name, .. } => name,
        }
    }
}

/// The share of runs that have to meet an objective.
const MET_IN: f64 = crate::experiment::sweep::MET_IN;

/// What has to be kept by whatever is cheaper: the scenario's objectives, as a run of it judges them, or, without any, what waits,
/// availability and churn are today; and in any case no work left undone that is done today, and, of which no objective can
/// speak, no longer waits of messages.
pub fn limits(today: &Point) -> Vec<Limit> {
    let objectives =
        today.objectives.iter().map(|own| Limit::AtMost { name: own.name.clone(), limit: own.limit, share: MET_IN });
    let mut all: Vec<Limit> = objectives.collect();
    if all.is_empty() {
        all.extend([
            as_today("pending_p99", 5.0, 0.1),
            as_today("unavailable_pod_minutes", 5.0, 0.1),
            as_today("evictions", 2.0, 0.1),
        ]);
    }
    all.extend([as_today("pods_pending", 0.5, 0.0), as_today("requests_lost", 0.001, 0.1)]);
    let batch = [("messages_undone", 0.001, 0.1), ("message_wait", 5.0, 0.1), ("jobs_undone", 0.001, 0.1)];
    let there = batch.into_iter().filter(|(name, ..)| figure(today, name).is_some());
    all.extend(there.map(|(name, slack, share)| as_today(name, slack, share)));
    all
}

/// The value of a figure in a run.
fn figure(point: &Point, name: &str) -> Option<f64> {
    find(name).and_then(|(place, _)| point.figures.get(place).copied().flatten())
}

fn as_today(figure: &'static str, slack: f64, share: f64) -> Limit {
    let name = find(figure).map_or(figure, |(_, own)| own.label).to_owned();
    Limit::AsToday { name, figure, slack, share }
}

/// What a run measures for each of `limits`; beyond any number where the run misses an objective whatever it measures, as one on response
/// times is missed by a workload that leaves too many requests without an answer.
pub fn measures(point: &Point, limits: &[Limit]) -> Vec<Option<f64>> {
    let mut objectives = point.objectives.iter();
    limits
        .iter()
        .map(|limit| match limit {
            // Objectives stand first, in the scenario's order.
            Limit::AtMost { .. } => objectives.next().and_then(measured),
            Limit::AsToday { figure: name, .. } => figure(point, name),
        })
        .collect()
}

fn measured(own: &Objective) -> Option<f64> {
    let is_within = own.actual.is_none_or(|actual| actual <= own.limit);
    if own.met == Some(false) && is_within { Some(f64::INFINITY) } else { own.actual }
}

/// How many of `count` runs may miss an objective that `share` of all runs have to meet. Judged with few runs a share cannot be told to the
/// run: where all of the slack may be used, a part of a run counts as a whole one, so that one of ten may miss what 95 % have to meet;
/// otherwise only whole ones count.
fn misses(count: f64, share: f64, slack: f64) -> f64 {
    let exact = (1.0 - share) * count;
    if slack < 1.0 { libm::floor(exact + 1e-9) } else { libm::ceil(exact - 1e-9) }
}

/// How far beyond a limit runs are, 0 within it: `place` is the limit's among the measures, `slack` how much of what it allows
/// may be used.
pub fn strain(limit: &Limit, place: usize, (today, own): (&[&Sample], &[&Sample]), slack: f64) -> f64 {
    let measure = |sample: &&Sample| sample.measures.get(place).copied().flatten();
    let count = own.len().max(1) as f64;
    match limit {
        Limit::AtMost { limit, share, .. } => {
            let missed =
                |samples: &[&Sample]| samples.iter().filter_map(measure).filter(|own| own > limit).count() as f64;
            let allowed = misses(count, *share, slack).max(missed(today));
            ((missed(own) - allowed) / count).max(0.0)
        }
        Limit::AsToday { slack: least, share, .. } => {
            let mean = |samples: &[&Sample]| samples.iter().filter_map(measure).sum::<f64>() / count;
            let (before, after) = (mean(today), mean(own));
            let allowed = least.max(share * before) * slack;
            let beyond = after - before - allowed;
            if beyond > 1e-9 { beyond / allowed.max(before).max(1e-6) } else { 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limit, Objective, Sample, measured, strain};

    fn runs(values: &[f64]) -> Vec<Sample> {
        values.iter().map(|value| Sample { cost: 0.0, measures: vec![Some(*value)] }).collect()
    }

    fn strained(limit: &Limit, today: &[f64], own: &[f64]) -> bool {
        strained_with(limit, today, own, 1.0)
    }

    fn strained_with(limit: &Limit, today: &[f64], own: &[f64], slack: f64) -> bool {
        let (today, own) = (runs(today), runs(own));
        strain(limit, 0, (&today.iter().collect::<Vec<_>>(), &own.iter().collect::<Vec<_>>()), slack) > 0.0
    }

    /// So many runs, `missed` of them beyond a limit of 10.
    fn of_runs(count: usize, missed: usize) -> Vec<f64> {
        (0..count).map(|run| if run < missed { 11.0 } else { 9.0 }).collect()
    }

    #[test]
    fn a_limit_may_be_missed_as_often_as_today() {
        let limit = Limit::AtMost { name: "wait".into(), limit: 10.0, share: 0.95 };
        assert!(!strained(&limit, &[1.0; 4], &[9.0; 4]));
        assert!(strained(&limit, &[1.0; 4], &[9.0, 9.0, 11.0, 11.0]));
        assert!(!strained(&limit, &[1.0, 1.0, 12.0, 12.0], &[11.0, 11.0, 9.0, 9.0]));
    }

    #[test]
    fn a_part_of_a_run_counts_as_a_whole_one_where_it_is_judged_and_not_where_it_is_chosen() {
        let limit = Limit::AtMost { name: "wait".into(), limit: 10.0, share: 0.95 };
        // Runs, and how many of them may miss: the share of a twentieth, rounded up and down.
        for (count, judged, chosen) in [(5, 1, 0), (10, 1, 0), (20, 1, 1), (21, 2, 1), (40, 2, 2)] {
            let today = vec![1.0; count];
            for (slack, allowed) in [(1.0, judged), (0.5, chosen)] {
                let beyond = |missed| strained_with(&limit, &today, &of_runs(count, missed), slack);
                assert!(!beyond(allowed) && beyond(allowed + 1), "{count} runs, {allowed}");
            }
        }
    }

    #[test]
    fn an_objective_that_a_run_misses_is_missed_whatever_the_run_measures() {
        let own = |actual: Option<f64>, met: Option<bool>| {
            let (name, unit) = ("request_p99".to_owned(), "seconds".to_owned());
            measured(&Objective { name, unit, limit: 10.0, actual, met })
        };
        assert_eq!(own(Some(3.0), Some(true)), Some(3.0));
        assert_eq!((own(Some(12.0), Some(false)), own(None, None)), (Some(12.0), None));
        let limit = Limit::AtMost { name: "request_p99".into(), limit: 10.0, share: 0.95 };
        let of = |actual| (0..4).map(|_| own(actual, Some(false)).unwrap()).collect::<Vec<_>>();
        // Most requests got no answer, and those that did got it soon.
        assert!(strained(&limit, &[1.0; 4], &of(Some(3.0))) && strained(&limit, &[1.0; 4], &of(None)));
    }

    #[test]
    fn what_is_as_today_may_be_a_little_more() {
        let limit = Limit::AsToday { name: "wait".into(), figure: "pending_p99", slack: 1.0, share: 0.05 };
        assert!(!strained(&limit, &[10.0; 3], &[11.0; 3]));
        assert!(strained(&limit, &[10.0; 3], &[11.5; 3]));
        assert!(!strained(&limit, &[100.0; 3], &[104.0; 3]));
        assert!(!strained(&limit, &[100.0; 3], &[50.0; 3]));
    }
}
