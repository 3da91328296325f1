//! The scenario as the search sees it: each choice of levels is a scenario of its own, read once, and each simulation is kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::Recommend;
use crate::experiment::axes::Setting;
use crate::experiment::figures::find;
use crate::experiment::points::{self, Cell, Point, PointError};
use crate::experiment::recommendation::{
    Choice, Kind, Lever, Limit, Problem, Requirements, Robustness, Sample, Stress, measures, setting, strain,
};
use crate::experiment::statistics::Paired;
use crate::program::simulations::{One, on_threads};
use crate::program::{Failure, prices};
use crate::scenario::Scenario;

/// What runs simulations side by side.
pub(super) type Run<'r> = dyn Fn(&[Cell<'_>], &One<'_>) -> Result<Vec<(usize, Point)>, Failure> + 'r;

/// What a setting costs that makes no scenario: more than any that does.
const UNUSABLE: f64 = 1e15;

/// A scenario under search.
pub(super) struct Simulated<'a> {
    asked: &'a Recommend,
    levers: RefCell<Vec<Lever>>,
    levels: Vec<usize>,
    today: Requirements,
    limits: Vec<Limit>,
    run: &'a Run<'a>,
    threads: Option<u16>,
    scenarios: RefCell<BTreeMap<Choice, Option<Arc<Scenario>>>>,
    points: RefCell<BTreeMap<(Choice, u64), Point>>,
}

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
        (levers, today, limits): (Vec<Lever>, Requirements, Vec<Limit>),
        run: &'a Run<'a>,
        threads: Option<u16>,
    ) -> Self {
        let levels = levers.iter().map(|lever| lever.levels.len() + 1).collect();
        let levers = RefCell::new(levers);
        let (scenarios, points) = (RefCell::default(), RefCell::default());
        Self { asked, levers, levels, today, limits, run, threads, scenarios, points }
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
        if let Some(own) = self.levers.borrow_mut().get_mut(place) {
            *own = lever;
        }
    }

    /// The simulations of a choice with these seeds.
    pub(super) fn points(&self, choice: &Choice, seeds: &[u64]) -> Vec<Point> {
        let known = self.points.borrow();
        seeds.iter().filter_map(|seed| known.get(&(choice.clone(), *seed)).cloned()).collect()
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

    /// Simulates scenarios with their seeds; the points come in the same order.
    fn run(&self, asked: &[(&Scenario, u64)]) -> Result<Vec<Point>, Failure> {
        let cell = |(index, (_, seed)): (usize, &(&Scenario, u64))| Cell {
            index,
            setting: 0,
            policy: &self.asked.policy,
            seed: *seed,
        };
        let cells: Vec<Cell<'_>> = asked.iter().enumerate().map(cell).collect();
        let catalog = self.asked.prices.catalog();
        let found = (self.run)(&cells, &|cell| points::simulate(asked[cell.index].0, catalog, cell))?;
        if found.len() < asked.len() {
            return Err(Failure::silent(Failure::INTERRUPTED));
        }
        Ok(found.into_iter().map(|(_, point)| point).collect())
    }

    /// How both scenarios, today's and what is recommended, fare under a stress.
    pub(super) fn under(&self, stress: &Stress, both: &[Scenario; 2], seeds: &[u64]) -> Result<Robustness, Failure> {
        let [today, own] = both;
        let asked: Vec<(&Scenario, u64)> =
            seeds.iter().map(|seed| (today, *seed)).chain(seeds.iter().map(|seed| (own, *seed))).collect();
        let found = self.run(&asked)?;
        let samples: Vec<Sample> = found.iter().map(|point| self.sample(point)).collect();
        let (today, own) = samples.split_at(seeds.len());
        let costs = |samples: &[Sample]| -> Vec<f64> { samples.iter().map(|sample| sample.cost).collect() };
        let paired = Paired::of(&costs(today), &costs(own));
        let (today, own): (Vec<&Sample>, Vec<&Sample>) = (today.iter().collect(), own.iter().collect());
        let broken =
            self.limits.iter().enumerate().find(|(place, limit)| strain(limit, *place, (&today, &own), 1.0) > 0.0);
        let saves = paired.as_ref().is_some_and(|own| own.difference.mean < 0.0);
        let why = match (saves, broken) {
            (_, Some((_, limit))) => Some(limit.name().to_owned()),
            (false, None) => Some("it costs no less".to_owned()),
            (true, None) => None,
        };
        let relative = paired.and_then(|own| own.relative);
        Ok(Robustness { when: stress.words(), relative, holds: why.is_none(), why })
    }

    fn sample(&self, point: &Point) -> Sample {
        let figure = |name: &str| find(name).and_then(|(place, _)| point.figures.get(place).copied().flatten());
        let cost = figure("cost_per_month").or_else(|| figure("cost")).unwrap_or(0.0);
        Sample { cost, measures: measures(point, &self.limits) }
    }
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
        self.levers.borrow().iter().position(|own| own.kind == Kind::Commitments)
    }

    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Failure> {
        self.read(&asked.iter().map(|(choice, _)| choice).collect())?;
        let scenarios = self.scenarios.borrow();
        let of = |choice: &Choice| scenarios.get(choice).and_then(Option::as_deref);
        let mut points = self.points.borrow_mut();
        let is_new = |own: &&(Choice, u64)| !points.contains_key(*own);
        let new: Vec<(&(Choice, u64), &Scenario)> =
            asked.iter().filter(is_new).filter_map(|own| Some((own, of(&own.0)?))).collect();
        let runs: Vec<(&Scenario, u64)> = new.iter().map(|(own, scenario)| (*scenario, own.1)).collect();
        points.extend(new.iter().map(|(own, _)| (*own).clone()).zip(self.run(&runs)?));
        let unusable = || Sample { cost: UNUSABLE, measures: vec![None; self.limits.len()] };
        Ok(asked.iter().map(|own| points.get(own).map_or_else(unusable, |point| self.sample(point))).collect())
    }
}
