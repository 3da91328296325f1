//! The scenario as the search sees it: each choice of levels is a scenario of its own, read once, and each simulation is kept.
//! The results of commitments follow from the simulation without them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::{DOMINATES, Recommend};
use crate::experiment::axes::Setting;
use crate::experiment::figures::find;
use crate::experiment::points::{self, Cell, Point, PointError};
use crate::experiment::statistics::Paired;
use crate::program::simulations::{One, on_threads};
use crate::program::{Failure, prices};
use crate::recommend::recommendation::{
    Choice, Kind, Lever, Limit, OnDemandTime, Problem, Requirements, Robustness, Sample, Search, Stress, added_cost,
    measures, on_demand_times, setting, strain,
};
use crate::scenario::Scenario;

/// What runs simulations side by side.
pub(super) type Runner<'r> = dyn Fn(&[Cell<'_>], &One<'_>) -> Result<Vec<(usize, Point)>, Failure> + 'r;

/// Whether a level of a lever adds Spot.
fn adds_spot(lever: &Lever, level: usize) -> bool {
    lever.kind == Kind::Spot || (lever.kind == Kind::Split && lever.levels[level].label.ends_with(WITH_SPOT))
}

/// What a setting costs that makes no scenario: more than any that does.
const UNUSABLE: f64 = 1e15;

/// A simulation, and the nodes that commitments could cover.
pub(super) type Run = (Point, Vec<OnDemandTime>);

/// For each lever its place in another problem, and the places of its levels there.
type LeverPlaces = Vec<(usize, Vec<usize>)>;

/// A scenario under search.
pub(super) struct Simulated<'a> {
    asked: &'a Recommend,
    levers: RefCell<Vec<Lever>>,
    levels: Vec<usize>,
    today: Requirements,
    limits: Vec<Limit>,
    run: &'a Runner<'a>,
    threads: Option<u16>,
    scenarios: RefCell<BTreeMap<Choice, Option<Arc<Scenario>>>>,
    points: RefCell<BTreeMap<(Choice, u64), Run>>,
    /// Whether commitments change nothing but instances' part of the bill.
    is_arithmetic: bool,
    /// The problem that this is a part of, with the place of each lever and of each of its levels there.
    of: Option<(&'a Simulated<'a>, LeverPlaces)>,
}

/// The end of the label of a level that adds a NodePool with Spot.
const WITH_SPOT: &str = ", Spot and On-Demand";

/// The failure of a simulation.
pub(super) fn failure(error: PointError) -> Failure {
    match error {
        PointError::Scenario(error) => (*error).into(),
        PointError::Catalog(error) => prices::unusable(error),
    }
}

impl<'a> Simulated<'a> {
    pub(super) fn new(
        asked: &'a Recommend,
        (mut levers, today, limits): (Vec<Lever>, Requirements, Vec<Limit>),
        run: &'a Runner<'a>,
        threads: Option<u16>,
    ) -> Self {
        // Its levels are found once the rest is chosen.
        let (subject, today_of) = (String::new(), String::new());
        levers.push(Lever { kind: Kind::Commitments, subject, today: today_of, levels: Vec::new() });
        let levels = levers.iter().map(|lever| lever.levels.len() + 1).collect();
        let levers = RefCell::new(levers);
        let (scenarios, points) = (RefCell::default(), RefCell::default());
        let is_arithmetic = is_arithmetic(&asked.scenario);
        Self { asked, levers, levels, today, limits, run, threads, scenarios, points, is_arithmetic, of: None }
    }

    /// The same without levers and levels that add Spot; `None` if there are none, or nothing else.
    pub(super) fn without_spot(&'a self) -> Option<Self> {
        let mut places = Vec::new();
        let mut levers = Vec::new();
        for (place, lever) in self.levers.borrow().iter().enumerate() {
            let kept = (0..lever.levels.len()).filter(|level| !adds_spot(lever, *level));
            let kept: Vec<usize> = kept.collect();
            if !kept.is_empty() {
                let levels = kept.iter().map(|level| lever.levels[*level].clone()).collect();
                levers.push(Lever { levels, ..lever.clone() });
                places.push((place, std::iter::once(0).chain(kept.iter().map(|level| level + 1)).collect()));
            }
        }
        let is_less = places.iter().map(|(_, levels): &(usize, Vec<usize>)| levels.len() - 1).sum::<usize>()
            < self.levels.iter().map(|levels| levels - 1).sum();
        if levers.is_empty() || !is_less {
            return None;
        }
        places.push((self.levels.len() - 1, vec![0]));
        let facts = (levers, self.today.clone(), self.limits.clone());
        Some(Self { of: Some((self, places)), ..Self::new(self.asked, facts, self.run, self.threads) })
    }

    /// The choice of the whole problem that a choice without Spot is.
    fn original(&self, choice: &Choice) -> Option<(&Self, Choice)> {
        let (whole, places) = self.of.as_ref()?;
        let mut all = vec![0; whole.levels.len()];
        for (level, (place, levels)) in choice.iter().zip(places) {
            all[*place] = *levels.get(*level)?;
        }
        Some((whole, all))
    }

    /// Whether changes that add Spot alone save most of what `best` saves.
    pub(super) fn is_spot(&self, search: &Search<'_, Self>, best: &Choice) -> bool {
        let levers = self.levers.borrow();
        let adds = |place: &usize| best[*place].checked_sub(1).is_some_and(|level| adds_spot(&levers[*place], level));
        let spot: Vec<usize> = (0..best.len()).filter(adds).collect();
        search.share_alone(best, &spot) >= DOMINATES
    }

    /// The values to set for a choice.
    pub(super) fn setting(&self, choice: &Choice) -> Setting {
        setting(&self.levers.borrow(), choice, &self.today)
    }

    /// The levers, as they are now.
    pub(super) fn levers(&self) -> Vec<Lever> {
        self.levers.borrow().clone()
    }

    /// Puts a lever in place of another.
    pub(super) fn replace(&self, place: usize, lever: Lever) {
        if let Some(this_lever) = self.levers.borrow_mut().get_mut(place) {
            *this_lever = lever;
        }
    }

    /// The simulations of a choice with these seeds.
    pub(super) fn points(&self, choice: &Choice, seeds: &[u64]) -> Vec<Point> {
        let known = self.points.borrow();
        seeds.iter().filter_map(|seed| Some(known.get(&(choice.clone(), *seed))?.0.clone())).collect()
    }

    /// The On-Demand nodes of the simulations of a choice with these seeds.
    ///
    /// # Errors
    /// If one of them was not run before and cannot be run.
    pub(super) fn on_demand(&self, choice: &Choice, seeds: &[u64]) -> Result<Vec<Vec<OnDemandTime>>, Failure> {
        self.simulate(&seeds.iter().map(|seed| (choice.clone(), *seed)).collect::<Vec<_>>())?;
        let known = self.points.borrow();
        Ok(seeds.iter().filter_map(|seed| Some(known.get(&(choice.clone(), *seed))?.1.clone())).collect())
    }

    /// Keeps a simulation of today.
    pub(super) fn keep_today(&self, seed: u64, run: Run) {
        self.points.borrow_mut().insert((vec![0; self.levels.len()], seed), run);
    }

    /// Whether `choice` differs from today in commitments alone, whose results follow from those of today.
    fn is_paid_alone(&self, choice: &Choice) -> bool {
        self.is_arithmetic && choice.iter().rev().skip(1).all(|level| *level == 0)
    }

    /// The choice that has to be simulated for `choice`.
    fn base(&self, choice: &Choice) -> Choice {
        let mut base = choice.clone();
        if let Some(level) = base.last_mut().filter(|_| self.is_arithmetic) {
            *level = 0;
        }
        base
    }

    /// Reads the scenarios of choices that were not read before, side by side.
    fn read(&self, choices: &BTreeSet<&Choice>) -> Result<(), Failure> {
        let known = self.scenarios.borrow();
        let new: Vec<(&Choice, Setting)> = choices
            .iter()
            .filter(|choice| !known.contains_key(**choice))
            .map(|choice| (*choice, self.setting(choice)))
            .collect();
        drop(known);
        let asked = self.asked;
        let load = |(_, setting): &(&Choice, Setting)| match setting.is_empty() {
            true => Some(Arc::new(asked.scenario.clone())),
            false => asked.with(setting).map(Arc::new),
        };
        let loaded: Vec<Option<Arc<Scenario>>> = on_threads(self.threads, || new.par_iter().map(load).collect())?;
        let all = new.iter().map(|(choice, _)| (*choice).clone()).zip(loaded);
        self.scenarios.borrow_mut().extend(all);
        Ok(())
    }

    /// Simulates scenarios with their seeds; the results come in the same order.
    fn run(&self, asked: &[(&Scenario, u64)]) -> Result<Vec<Run>, Failure> {
        let cell = |(index, (_, seed)): (usize, &(&Scenario, u64))| Cell {
            index,
            setting: 0,
            policy: &self.asked.policy,
            seed: *seed,
        };
        let cells: Vec<Cell<'_>> = asked.iter().enumerate().map(cell).collect();
        let catalog = self.asked.prices.catalog();
        let times: Mutex<BTreeMap<usize, Vec<OnDemandTime>>> = Mutex::default();
        let found = (self.run)(&cells, &|cell| {
            let scenario = asked[cell.index].0;
            let outcome = points::outcome(scenario, catalog, cell)?;
            let of_run = on_demand_times(&outcome, scenario);
            times.lock().unwrap_or_else(PoisonError::into_inner).insert(cell.index, of_run);
            Ok(points::point(cell, &outcome))
        })?;
        if found.len() < asked.len() {
            return Err(Failure::silent(Failure::INTERRUPTED));
        }
        let mut times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(found.into_iter().map(|(index, point)| (point, times.remove(&index).unwrap_or_default())).collect())
    }

    /// How both scenarios, today's and that of `choice`, fare under a stress.
    pub(super) fn under(
        &self,
        stress: &Stress,
        (choice, both): (&Choice, &[Scenario; 2]),
        seeds: &[u64],
    ) -> Result<Robustness, Failure> {
        let [today, item] = both;
        let with_seeds = |scenario| seeds.iter().map(move |seed| (scenario, *seed));
        let mut asked: Vec<(&Scenario, u64)> = with_seeds(today).collect();
        if !self.is_paid_alone(choice) {
            asked.extend(with_seeds(item));
        }
        let mut found = self.run(&asked)?;
        if self.is_paid_alone(choice) {
            found.extend(found.clone().iter().map(|run| with_commitments(run, item)));
        }
        let samples: Vec<Sample> = found.iter().map(|(point, _)| self.sample(point)).collect();
        let (today, item) = samples.split_at(seeds.len());
        let costs = |samples: &[Sample]| -> Vec<f64> { samples.iter().map(|sample| sample.cost).collect() };
        let paired = Paired::new(&costs(today), &costs(item));
        let (today, item): (Vec<&Sample>, Vec<&Sample>) = (today.iter().collect(), item.iter().collect());
        let broken =
            self.limits.iter().enumerate().find(|(place, limit)| strain(limit, *place, (&today, &item), 1.0) > 0.0);
        let saves = paired.as_ref().is_some_and(|paired| paired.difference.mean < 0.0);
        let why = match (saves, broken) {
            (_, Some((_, limit))) => Some(limit.name().to_owned()),
            (false, None) => Some("it costs no less".to_owned()),
            (true, None) => None,
        };
        let relative = paired.and_then(|paired| paired.relative);
        Ok(Robustness { when: stress.words(), relative, holds: why.is_none(), why })
    }

    fn sample(&self, point: &Point) -> Sample {
        let figure = |name: &str| find(name).and_then(|(place, _)| point.figures.get(place).copied().flatten());
        let cost = figure("cost_per_month").or_else(|| figure("cost")).unwrap_or(0.0);
        Sample { cost, measures: measures(point, &self.limits) }
    }
}

/// Whether Savings Plans change nothing of a bill but what On-Demand instances cost: no discount on all of it, nothing else that covers
/// instances, and no objective for the cost.
fn is_arithmetic(scenario: &Scenario) -> bool {
    let cloud = &scenario.ec2.cloud;
    cloud.billing.discount == 0
        && cloud.billing.commitments.is_empty()
        && cloud.reservations.is_empty()
        && scenario.objectives.cost.is_none()
}

/// A simulation with the commitments of `scenario`, which it did not have.
fn with_commitments((point, times): &Run, scenario: &Scenario) -> Run {
    let added = added_cost(times, &scenario.ec2.cloud.billing.commitments, scenario);
    (point.clone().with_added_cost(added), times.clone())
}

impl Problem for Simulated<'_> {
    type Error = Failure;

    fn levels(&self) -> &[usize] {
        &self.levels
    }

    fn limits(&self) -> &[Limit] {
        &self.limits
    }

    fn bound(&self) -> Option<usize> {
        self.levers.borrow().iter().position(|lever| lever.kind == Kind::Commitments)
    }

    fn arithmetic(&self) -> Option<usize> {
        self.bound().filter(|_| self.is_arithmetic)
    }

    fn group(&self, lever: usize) -> usize {
        self.levers.borrow().get(lever).map_or(0, |lever| lever.kind as usize)
    }

    fn is_free(&self, choice: &Choice, seed: u64) -> bool {
        self.original(choice).is_some_and(|(whole, choice)| whole.points.borrow().contains_key(&(choice, seed)))
    }

    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Failure> {
        for (choice, seed) in asked {
            let known = self
                .original(choice)
                .and_then(|(whole, original)| whole.points.borrow().get(&(original, *seed)).cloned());
            self.points.borrow_mut().extend(known.map(|point| ((choice.clone(), *seed), point)));
        }
        let bases: BTreeSet<(Choice, u64)> = asked.iter().map(|(choice, seed)| (self.base(choice), *seed)).collect();
        self.read(&asked.iter().chain(&bases).map(|(choice, _)| choice).collect())?;
        let scenarios = self.scenarios.borrow();
        let scenario = |choice: &Choice| scenarios.get(choice).and_then(Option::as_deref);
        let mut points = self.points.borrow_mut();
        let new = bases.iter().filter(|key| !points.contains_key(*key));
        let new: Vec<(&(Choice, u64), &Scenario)> = new.filter_map(|key| Some((key, scenario(&key.0)?))).collect();
        let runs: Vec<(&Scenario, u64)> = new.iter().map(|(key, scenario)| (*scenario, key.1)).collect();
        points.extend(new.iter().map(|(key, _)| (*key).clone()).zip(self.run(&runs)?));
        for key in asked.iter().filter(|key| !bases.contains(*key)) {
            let with = points.get(&(self.base(&key.0), key.1)).zip(scenario(&key.0));
            if let Some(run) = with.map(|(run, scenario)| with_commitments(run, scenario)) {
                points.insert(key.clone(), run);
            }
        }
        let unusable = || Sample { cost: UNUSABLE, measures: vec![None; self.limits.len()] };
        Ok(asked.iter().map(|key| points.get(key).map_or_else(unusable, |(point, _)| self.sample(point))).collect())
    }
}
