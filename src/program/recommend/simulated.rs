//! The scenario as the search sees it: each choice of levels is a scenario of its own, read once, and each simulation is kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Recommend;
use crate::experiment::axes::Setting;
use crate::experiment::figures::find;
use crate::experiment::points::{self, Cell, Point, PointError};
use crate::experiment::recommendation::{
    Choice, Lever, Limit, Problem, Requirements, Robustness, Sample, Stress, measures, setting, strain,
};
use crate::experiment::statistics::Paired;
use crate::program::simulations::One;
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
        levers: Vec<Lever>,
        today: Requirements,
        limits: Vec<Limit>,
        run: &'a Run<'a>,
    ) -> Self {
        let levels = levers.iter().map(|lever| lever.levels.len() + 1).collect();
        let levers = RefCell::new(levers);
        Self { asked, levers, levels, today, limits, run, scenarios: RefCell::default(), points: RefCell::default() }
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

    /// The scenario of a choice; `None` if its values go not together.
    fn scenario(&self, choice: &Choice) -> Option<Arc<Scenario>> {
        if let Some(known) = self.scenarios.borrow().get(choice) {
            return known.clone();
        }
        let own = if choice.iter().all(|level| *level == 0) {
            Some(Arc::new(self.asked.scenario.clone()))
        } else {
            self.asked.with(&self.setting(choice)).map(Arc::new)
        };
        self.scenarios.borrow_mut().insert(choice.clone(), own.clone());
        own
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

    fn simulate(&self, asked: &[(Choice, u64)]) -> Result<Vec<Sample>, Failure> {
        let scenarios: Vec<Option<Arc<Scenario>>> = asked.iter().map(|(choice, _)| self.scenario(choice)).collect();
        let runs: Vec<(&Scenario, u64)> = scenarios
            .iter()
            .zip(asked)
            .filter_map(|(scenario, (_, seed))| Some((scenario.as_deref()?, *seed)))
            .collect();
        let mut found = self.run(&runs)?.into_iter();
        let mut samples = Vec::with_capacity(asked.len());
        for (scenario, own) in scenarios.iter().zip(asked) {
            let point = scenario.as_ref().and_then(|_| found.next());
            samples.push(match point {
                Some(point) => {
                    let sample = self.sample(&point);
                    self.points.borrow_mut().insert(own.clone(), point);
                    sample
                }
                None => Sample { cost: UNUSABLE, measures: vec![None; self.limits.len()] },
            });
        }
        Ok(samples)
    }
}
