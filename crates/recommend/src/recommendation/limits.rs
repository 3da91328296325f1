//! What a recommendation has to keep: the scenario's objectives, or what there is today.

use super::search::Sample;
use crate::figures::find;
use crate::levels::{difference, level};
use crate::points::{MET_IN, Objective, Point};
use crate::report::format::{POD_MINUTES, objective};
use crate::statistics::{Paired, mean};

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
    /// No more than today, by the statistic over seeds that stands for the figure: of waits the median, else the mean.
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

/// What has to be kept by whatever is cheaper: the scenario's objectives, as a run of it judges them, or, without any, what waits,
/// availability and churn are today; and in any case no work left undone that is done today, and, of which no objective can
/// speak, no longer waits of messages and no more containers that are killed, as those are whose memory was made too small.
pub fn limits(today: &Point) -> Vec<Limit> {
    let objectives = today.objectives.iter().map(|objective| Limit::AtMost {
        name: objective.name.clone(),
        limit: objective.limit,
        share: MET_IN,
    });
    let mut all: Vec<Limit> = objectives.collect();
    if all.is_empty() {
        all.extend([
            as_today("pending_p99", 5.0, 0.1),
            as_today("unavailable_pod_minutes", 5.0, 0.1),
            as_today("evictions", 2.0, 0.1),
        ]);
    }
    all.extend([as_today("pods_pending", 0.5, 0.0), as_today("requests_lost", 0.001, 0.1)]);
    all.push(as_today("restarts", 1.0, 0.1));
    let batch = [("messages_undone", 0.001, 0.1), ("message_wait", 5.0, 0.1), ("jobs_undone", 0.001, 0.1)];
    let there = batch.into_iter().filter(|(name, ..)| figure(today, name).is_some());
    all.extend(there.map(|(name, slack, share)| as_today(name, slack, share)));
    all
}

/// Objectives that speak of replicas that are missing, by their names.
const OF_AVAILABILITY: [&str; 2] = ["unavailable_pod_minutes", "at_zero"];

/// That clearly more replicas are missing in the runs `points` than in those of `today` with the same seeds, where there are objectives and none of
/// them speaks of that: then it is not kept as it is today.
pub fn missing_more(today: &[Point], points: &[Point]) -> Option<String> {
    let objectives = &today.first()?.objectives;
    if objectives.is_empty() || objectives.iter().any(|stated| OF_AVAILABILITY.contains(&stated.name.as_str())) {
        return None;
    }
    let values = |points: &[Point]| -> Option<Vec<f64>> {
        points.iter().map(|point| figure(point, "unavailable_pod_minutes")).collect()
    };
    let (before, after) = (values(today)?, values(points)?);
    let least = (mean(&before)? * 0.1).max(5.0);
    let difference = Paired::new(&before, &after)?.difference;
    let amount = |values: &[f64]| mean(values).map_or_else(String::new, |mean| objective(POD_MINUTES, mean));
    (difference.is_off_zero() && difference.mean > least).then(|| {
        format!(
            "missing replicas rise to {} (today {}). No objective limits this; set `objectives.unavailable_pod_minutes` to keep it",
            amount(&after),
            amount(&before)
        )
    })
}

/// The value of a figure in a run.
fn figure(point: &Point, name: &str) -> Option<f64> {
    find(name).and_then(|(place, _)| point.figures.get(place).copied().flatten())
}

fn as_today(figure: &'static str, slack: f64, share: f64) -> Limit {
    let name = find(figure).map_or(figure, |(_, item)| item.label).to_owned();
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

fn measured(objective: &Objective) -> Option<f64> {
    let is_within = objective.actual.is_none_or(|actual| actual <= objective.limit);
    if objective.met == Some(false) && is_within { Some(f64::INFINITY) } else { objective.actual }
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
pub fn strain(limit: &Limit, place: usize, (today, item): (&[&Sample], &[&Sample]), slack: f64) -> f64 {
    let measure = |sample: &&Sample| sample.measures.get(place).copied().flatten();
    let count = item.len().max(1) as f64;
    match limit {
        Limit::AtMost { limit, share, .. } => {
            let missed = |samples: &[&Sample]| {
                samples.iter().filter_map(measure).filter(|measure| measure > limit).count() as f64
            };
            let allowed = misses(count, *share, slack).max(missed(today));
            ((missed(item) - allowed) / count).max(0.0)
        }
        Limit::AsToday { figure, slack: least, share, .. } => {
            let values = |samples: &[&Sample]| -> Vec<f64> {
                samples.iter().map(|sample| measure(sample).unwrap_or_default()).collect()
            };
            let (today, item) = (values(today), values(item));
            let Some((_, figure)) = find(figure) else { return 0.0 };
            let before = level(figure, &today).map_or(0.0, |level| level.centre());
            let change = difference(figure, &today, &item).map_or(0.0, |paired| paired.difference.centre());
            let allowed = least.max(share * before) * slack;
            let beyond = change - allowed;
            if beyond > 1e-9 { beyond / allowed.max(before).max(1e-6) } else { 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Limit, Objective, Point, Sample, limits, measured, missing_more, strain};
    use crate::figures::{FIGURES, find};
    use crate::scenario::Caveats;

    fn runs(values: &[f64]) -> Vec<Sample> {
        values.iter().map(|value| Sample { cost: 0.0, measures: vec![Some(*value)] }).collect()
    }

    fn strained(limit: &Limit, today: &[f64], numbers: &[f64]) -> bool {
        strained_with(limit, today, numbers, 1.0)
    }

    fn strained_with(limit: &Limit, today: &[f64], numbers: &[f64], slack: f64) -> bool {
        let (today, runs) = (runs(today), runs(numbers));
        strain(limit, 0, (&today.iter().collect::<Vec<_>>(), &runs.iter().collect::<Vec<_>>()), slack) > 0.0
    }

    /// So many runs, `missed` of them beyond a limit of 10.
    fn of_runs(count: usize, missed: usize) -> Vec<f64> {
        (0..count).map(|run| if run < missed { 11.0 } else { 9.0 }).collect()
    }

    #[test]
    fn limit_may_be_missed_as_often_as_today() {
        let limit = Limit::AtMost { name: "wait".into(), limit: 10.0, share: 0.95 };
        assert!(!strained(&limit, &[1.0; 4], &[9.0; 4]));
        assert!(strained(&limit, &[1.0; 4], &[9.0, 9.0, 11.0, 11.0]));
        assert!(!strained(&limit, &[1.0, 1.0, 12.0, 12.0], &[11.0, 11.0, 9.0, 9.0]));
    }

    #[test]
    fn partial_run_counts_fully_in_final_check() {
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
    fn run_missing_objective_counts_as_missed() {
        let make = |actual: Option<f64>, met: Option<bool>| {
            let (name, unit) = ("request_p99".to_owned(), "seconds".to_owned());
            measured(&Objective { name, unit, limit: 10.0, actual, met })
        };
        assert_eq!(make(Some(3.0), Some(true)), Some(3.0));
        assert_eq!((make(Some(12.0), Some(false)), make(None, None)), (Some(12.0), None));
        let limit = Limit::AtMost { name: "request_p99".into(), limit: 10.0, share: 0.95 };
        let of = |actual| (0..4).map(|_| make(actual, Some(false)).unwrap()).collect::<Vec<_>>();
        // Most requests got no answer, and those that did got it soon.
        assert!(strained(&limit, &[1.0; 4], &of(Some(3.0))) && strained(&limit, &[1.0; 4], &of(None)));
    }

    /// A run with these figures and objectives.
    fn point(figures: &[(&str, f64)], objectives: &[&str]) -> Point {
        let mut item = vec![None; FIGURES.len()];
        figures.iter().for_each(|(name, value)| item[find(name).unwrap().0] = Some(*value));
        let stated = |name: &&str| Objective {
            name: (*name).to_owned(),
            unit: "seconds".into(),
            limit: 300.0,
            actual: Some(1.0),
            met: Some(true),
        };
        Point {
            setting: 0,
            policy: "own".into(),
            seed: 1,
            figures: item,
            objectives: objectives.iter().map(stated).collect(),
            event_hash: String::new(),
            unconfirmed: 0.0,
            cost_by_origin: BTreeMap::new(),
            spot: false,
            never_registered: 0,
            silent: Vec::new(),
            at_zero_seconds: Default::default(),
            price_date: String::new(),
            warnings: Caveats::new(),
        }
    }

    #[test]
    fn unfinished_work_and_oom_kills_always_have_limits() {
        let names = |today: &Point| limits(today).iter().map(|limit| limit.name().to_owned()).collect::<Vec<_>>();
        let label = |name: &str| find(name).unwrap().1.label.to_owned();
        let batch = [("messages_undone", 0.0), ("message_wait", 4.6), ("jobs_undone", 0.0)];
        let with = names(&point(&batch, &["pending_p99"]));
        for name in ["restarts", "messages_undone", "message_wait", "jobs_undone"] {
            assert!(with.contains(&label(name)), "{name}: {with:?}");
        }
        assert!(!with.contains(&label("unavailable_pod_minutes")));
        // What there is not has no limit.
        let without = names(&point(&[], &[]));
        assert!(without.contains(&label("restarts")) && !without.contains(&label("jobs_undone")), "{without:?}");
    }

    #[test]
    fn extra_missing_replicas_are_reported_without_objective() {
        let runs =
            |missing: f64, objective: &str| vec![point(&[("unavailable_pod_minutes", missing)], &[objective]); 4];
        let told = |objective: &str, missing| missing_more(&runs(0.0, objective), &runs(missing, objective));
        assert!(told("pending_p99", 4_800.0).is_some_and(|text| text.contains("missing replicas rise to 4,800")));
        assert_eq!((told("pending_p99", 3.0), told("at_zero", 4_800.0)), (None, None));
    }

    /// A boot fails in the last of them.
    #[test]
    fn one_failed_boot_breaks_no_wait_limit() {
        let today = [40.0, 44.0, 48.0, 52.0, 56.0, 60.0];
        let mut later = today.map(|wait| wait + 2.0);
        later[5] = 1_100.0;
        for (figure, is_beyond) in [("ready_p99", false), ("message_wait", false), ("unavailable_pod_minutes", true)] {
            let limit = Limit::AsToday { name: figure.into(), figure, slack: 5.0, share: 0.1 };
            assert_eq!(strained(&limit, &today, &later), is_beyond, "{figure}");
            assert!(strained(&limit, &today, &today.map(|wait| wait + 11.0)), "{figure}");
        }
    }

    #[test]
    fn unchanged_metric_limit_has_slack() {
        let limit = Limit::AsToday { name: "wait".into(), figure: "pending_p99", slack: 1.0, share: 0.05 };
        assert!(!strained(&limit, &[10.0; 3], &[11.0; 3]));
        assert!(strained(&limit, &[10.0; 3], &[11.5; 3]));
        assert!(!strained(&limit, &[100.0; 3], &[104.0; 3]));
        assert!(!strained(&limit, &[100.0; 3], &[50.0; 3]));
    }
}
