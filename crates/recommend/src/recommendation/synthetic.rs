//! The search on a thousand stand-ins for the simulator whose truth is known.

use std::convert::Infallible;

use super::{Advice, Choice, Effort, Limit, Problem, Sample, Search, Verdict};
use crate::engine::{Stream, Streams};

/// A stand-in: each level of each lever adds to the cost and to the wait, pairs of levers add more, and runs with one seed share
/// most of their noise.
struct StandIn {
    seed: u64,
    levels: Vec<usize>,
    /// What each level adds to a cost of 100, by lever.
    cost: Vec<Vec<f64>>,
    /// What each level adds to a wait of 30 s.
    wait: Vec<Vec<f64>>,
    /// What two levers add if both are off what they are today.
    pairs: Vec<(usize, usize, f64)>,
    limits: Vec<Limit>,
    /// The lever that is worked out for the others.
    bound: Option<usize>,
}

const COST: f64 = 100.0;
const WAIT: f64 = 30.0;

impl StandIn {
    /// One in which levels save if `saves`, and only cost otherwise.
    fn new(seed: u64, saves: bool) -> Self {
        let mut stream = Streams::new(seed).stream("stand-in", "");
        let mut whole = |least: usize, most: usize| least + (stream.uniform() * (most - least + 1) as f64) as usize;
        let levels: Vec<usize> = (0..whole(4, 10)).map(|_| whole(2, 5)).collect();
        let mut stream = Streams::new(seed).stream("stand-in", "effects");
        let cost = |stream: &mut Stream| match (saves, stream.uniform()) {
            (true, draw) if draw < 0.25 => -12.0 * stream.uniform(),
            (true, _) => 6.0 * (stream.uniform() - 0.3),
            (false, _) => 6.0 * stream.uniform(),
        };
        let costs = effects(&levels, &mut stream, &cost);
        let wait = |stream: &mut Stream| if stream.uniform() < 0.2 { 20.0 * stream.uniform() } else { 0.0 };
        let waits = effects(&levels, &mut stream, &wait);
        let mut pairs = Vec::new();
        for _ in 0..levels.len() / 2 {
            let mut lever = || (stream.uniform() * levels.len() as f64) as usize;
            let (one, other) = (lever(), lever());
            let most = if saves { 8.0 } else { 4.0 };
            pairs.push((one, other, if saves { most * (stream.uniform() - 0.5) } else { most * stream.uniform() }));
        }
        let limits = vec![Limit::AtMost { name: "wait".into(), limit: 40.0, share: 0.95 }];
        Self { seed, levels, cost: costs, wait: waits, pairs, limits, bound: None }
    }

    /// What a choice costs in truth.
    fn truth(&self, choice: &Choice) -> f64 {
        let matches =
            |effects: &[Vec<f64>]| choice.iter().zip(effects).map(|(level, effect)| effect[*level]).sum::<f64>();
        let moved = |lever: usize| choice[lever] != 0;
        let pairs = self.pairs.iter().filter(|(one, other, _)| one != other && moved(*one) && moved(*other));
        COST + matches(&self.cost) + pairs.map(|pair| pair.2).sum::<f64>()
    }

    fn sample(&self, choice: &Choice, seed: u64) -> Sample {
        let shared = Streams::new(self.seed).nth("shared", "", seed).normal();
        let key: String = choice.iter().map(|level| format!("{level},")).collect();
        let mut streams = Streams::new(self.seed).nth("own", &key, seed);
        let wait: f64 = WAIT + choice.iter().zip(&self.wait).map(|(level, wait)| wait[*level]).sum::<f64>();
        let cost = self.truth(choice) * (1.0 + 0.1 * shared) + 1.5 * streams.normal();
        Sample { cost, measures: vec![Some(wait + streams.normal())] }
    }
}

/// An effect for each level but today's.
fn effects(levels: &[usize], stream: &mut Stream, draw: &dyn Fn(&mut Stream) -> f64) -> Vec<Vec<f64>> {
    levels.iter().map(|count| (0..*count).map(|level| if level == 0 { 0.0 } else { draw(stream) }).collect()).collect()
}

impl Problem for StandIn {
    type Error = Infallible;

    fn levels(&self) -> &[usize] {
        &self.levels
    }

    fn limits(&self) -> &[Limit] {
        &self.limits
    }

    fn bound(&self) -> Option<usize> {
        self.bound
    }

    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Infallible> {
        Ok(asked.iter().map(|(choice, seed)| self.sample(choice, *seed)).collect())
    }
}

fn effort(simulations: usize) -> Effort<'static> {
    Effort { simulations, first_seed: 1, least_saving: 0.01, worth: 0.02, changes_max: 6, is_late: &|_| false }
}

/// What comes of a search that has to end after `looks` rounds, as whoever has no more time asks for it, and with which effort.
fn ended_after(problem: &StandIn, simulations: usize, looks: usize) -> (Verdict, usize) {
    let count = std::cell::Cell::new(0);
    let is_late = |_| count.replace(count.get() + 1) >= looks;
    let late = Effort { is_late: &is_late, ..effort(simulations) };
    let mut search = Search::new(problem, late);
    let Ok(_) = search.best();
    assert!(search.is_late(), "{looks} looks are not all");
    let ended = late.ended_after(search.used(), 150);
    (recommended(problem, ended.simulations).0, ended.simulations)
}

#[test]
fn timed_out_search_matches_fewer_simulations() {
    let problem = StandIn::new(2, true);
    let efforts = [1, 6].map(|looks| ended_after(&problem, 600, looks));
    assert!(efforts[0].1 == 150 && efforts[1].1 < 600, "{efforts:?}");
    for (verdict, simulations) in &efforts {
        assert!(*verdict == recommended(&problem, *simulations).0);
    }
}

fn recommended(problem: &StandIn, simulations: usize) -> (Verdict, usize) {
    let mut search = Search::new(problem, effort(simulations));
    let Ok(best) = search.best();
    let Ok(verdict) = search.verdict(best);
    (verdict, search.used())
}

#[test]
fn a_search_with_simulations_to_spare_ends() {
    // What few seeds find better and many worse does not come back.
    for seed in 0..30 {
        let (_, used) = recommended(&StandIn::new(seed, true), 20_000);
        assert!(used < 20_000, "{used} simulations");
    }
}

#[test]
fn savings_blocked_by_limits_are_reported() {
    let limits = vec![Limit::AtMost { name: "wait".into(), limit: 40.0, share: 0.95 }];
    let (cost, wait) = (vec![vec![0.0, -50.0]], vec![vec![0.0, 20.0]]);
    let problem = StandIn { seed: 1, levels: vec![2], cost, wait, pairs: Vec::new(), limits, bound: None };
    let mut search = Search::new(&problem, effort(400));
    let Ok(best) = search.best();
    assert_eq!(best, [0]);
    search.given_up = Some(vec![1]);
    let Ok(verdict) = search.verdict(best);
    assert_eq!((verdict.advice, verdict.choice), (Advice::BeyondLimits, vec![1]));
    assert!(verdict.cost.is_some_and(|cost| cost.difference.mean < -40.0));
}

#[test]
fn neutral_change_is_taken_when_limits_already_fail() {
    let limits = vec![Limit::AtMost { name: "wait".into(), limit: 20.0, share: 0.95 }];
    let (cost, wait) = (vec![vec![0.0, -50.0]], vec![vec![0.0, 0.0]]);
    let problem = Steady(StandIn { seed: 1, levels: vec![2], cost, wait, pairs: Vec::new(), limits, bound: None });
    let mut search = Search::new(&problem, effort(400));
    let Ok(best) = search.best();
    assert_eq!(best, [1]);
}

#[test]
fn commitment_survives_unrelated_limit() {
    let limits = vec![Limit::AtMost { name: "wait".into(), limit: 40.0, share: 0.95 }];
    // Each of two changes alone makes everybody wait too long; the commitment saves least.
    let cost = vec![vec![0.0, -20.0], vec![0.0, -20.0], vec![0.0, -10.0]];
    let wait = vec![vec![0.0, 20.0], vec![0.0, 20.0], vec![0.0, 0.0]];
    let problem = StandIn { seed: 1, levels: vec![2; 3], cost, wait, pairs: Vec::new(), limits, bound: Some(2) };
    let mut search = Search::new(&problem, effort(1_000));
    let Ok(_) = search.best();
    let Ok(verdict) = search.verdict(vec![1, 1, 1]);
    assert_eq!((verdict.advice, verdict.choice), (Advice::Change, vec![0, 0, 1]));
}

#[test]
fn infeasible_changes_are_dropped_before_evaluation() {
    let limits = vec![Limit::AtMost { name: "wait".into(), limit: 40.0, share: 0.95 }];
    let (cost, wait) = (vec![vec![0.0, -20.0], vec![0.0, 1.0], vec![0.0, -20.0]], vec![vec![0.0, 0.0]; 2]);
    let wait = [wait, vec![vec![0.0, 20.0]]].concat();
    let problem = StandIn { seed: 1, levels: vec![2; 3], cost, wait, pairs: Vec::new(), limits, bound: None };
    let mut search = Search::new(&problem, effort(1_000));
    let Ok(_) = search.best();
    let Ok(choice) = search.thinned_out(vec![1, 1, 1]);
    assert_eq!(choice, [1, 0, 0]);
}

/// One whose waits are those of today whatever is changed.
struct Steady(StandIn);

impl Problem for Steady {
    type Error = Infallible;

    fn levels(&self) -> &[usize] {
        self.0.levels()
    }

    fn limits(&self) -> &[Limit] {
        self.0.limits()
    }

    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Infallible> {
        let steady = |(choice, seed): &(Choice, u64)| {
            let today = self.0.sample(&vec![0; choice.len()], *seed);
            Sample { measures: today.measures, ..self.0.sample(choice, *seed) }
        };
        Ok(asked.iter().map(steady).collect())
    }
}

#[test]
fn claims_are_true_and_intervals_cover_the_truth() {
    let (mut claims, mut falsely, mut covered, mut confirmed) = (0, 0, 0, 0);
    for seed in 0..1_000 {
        let problem = StandIn::new(seed, seed % 2 == 0);
        let (verdict, used) = recommended(&problem, 400);
        assert!(used <= 400, "{used} simulations");
        let truth = problem.truth(&verdict.choice) - COST;
        claims += usize::from(verdict.advice == Advice::Change);
        falsely += usize::from(verdict.advice == Advice::Change && truth >= 0.0);
        if let Some(cost) = &verdict.cost {
            confirmed += 1;
            let Some((low, high)) = cost.difference.low.zip(cost.difference.high) else { panic!("no interval") };
            covered += usize::from(low <= truth && truth <= high);
        }
    }
    assert!(claims > 400, "{claims} claims");
    assert!(falsely * 20 < 1_000, "{falsely} of {claims} claims are false");
    let cover = f64::from(covered as u32) / f64::from(confirmed);
    assert!((0.92..=0.98).contains(&cover), "{cover} of {confirmed}");
}

/// Two levers of which either alone makes pods wait longer than both do, and a third that no pod notices.
struct Crossed {
    limits: Vec<Limit>,
}

impl Problem for Crossed {
    type Error = Infallible;

    fn levels(&self) -> &[usize] {
        &[2, 2, 2]
    }

    fn limits(&self) -> &[Limit] {
        &self.limits
    }

    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Infallible> {
        let sample = |(choice, seed): &(Choice, u64)| {
            let wait = [[30.0, 38.0], [39.0, 36.5]][choice[1]][choice[2]];
            let saved =
                [50.0, 10.0, 12.0].iter().zip(choice).map(|(saving, level)| saving * *level as f64).sum::<f64>();
            let noise = Streams::new(7).nth("cost", "", *seed).normal();
            Sample { cost: COST - saved + noise, measures: vec![Some(wait)] }
        };
        Ok(asked.iter().map(sample).collect())
    }
}

#[test]
fn change_without_effect_on_limits_stays() {
    let limit = Limit::AsToday { name: "wait".into(), figure: "pending_p99", slack: 5.0, share: 0.1 };
    let problem = Crossed { limits: vec![limit] };
    let mut search = Search::new(&problem, effort(400));
    let Ok(verdict) = search.verdict(vec![1, 1, 1]);
    assert_eq!((verdict.advice, verdict.choice), (Advice::Change, vec![1, 0, 0]));
}
