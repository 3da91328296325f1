//! The scenario as it is today, its controls, and what is known of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use miette::GraphicalTheme;
use rayon::prelude::*;

use super::lru_cache::LruCache;
use crate::experiment::axes::Setting;
use crate::experiment::effects::digest;
use crate::experiment::points::{self, Cell, Point};
use crate::program::recommend::{objects, seen_by, value_changes};
use crate::program::simulations::{on_threads, shell_line};
use crate::program::{Failure, Prices, edits, prices};
use crate::recommend::controls::{Basis, Controls, State};
use crate::recommend::recommendation::ValueChange;
use crate::report::page::data;
use crate::report::{Summary, page_of};
use crate::scenario::document::Document;
use crate::scenario::{Caveats, Edit, Limits, Scenario};
use crate::simulation::{self, Outcome};

/// What the page is of.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// The scenario file
    pub scenario: PathBuf,
    /// The policy to start from [default: the scenario's first]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    pub policy: Option<String>,
    /// First seed [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Number of seeds to simulate each state with eventually
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub replications: u32,
    /// What is changed first, today as the page knows it; options that state changes are read apart.
    #[arg(skip)]
    pub edits: Vec<Edit>,
    /// Directory for policies saved from the page [default: ./NAME-studio]
    #[arg(long = "write", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

/// Points that are kept; one has about two kilobytes.
const POINTS_MAX: usize = 1_500;
/// Curves that are kept; those of a run have some tens of kilobytes.
const CURVES_MAX: usize = 24;
/// Points of all curves of one sort together: half of what a screen shows.
const CURVE_POINTS: usize = 4_000;

/// Curves, or what they are drawn from: the numbers go ahead of them.
pub(super) enum Drawing {
    Known(Arc<str>),
    Of(Box<Outcome>),
}

/// A setting as a key.
pub(super) type Key = Arc<str>;

/// The scenario as it is today, its controls, and what has been simulated.
pub struct Session {
    pub(super) request: Request,
    pub(super) prices: Prices,
    pub(super) scenario: Arc<Scenario>,
    pub(super) policy: String,
    pub(super) seed: u64,
    /// The currency of every amount.
    pub(super) currency: String,
    /// Warnings of reading the scenario.
    warnings: Caveats,
    /// What is found while the page waits for it, or why it cannot be found.
    findings: OnceLock<Result<Findings, String>>,
    /// How many controls have been tried, and how many there are to try; 0 before today has been simulated.
    tried: [AtomicUsize; 2],
    points: Mutex<LruCache<(Key, u64), Arc<Point>>>,
    curves: Mutex<LruCache<Key, Arc<str>>>,
}

/// Today's settings: what follows from their simulation.
#[derive(Default)]
pub(super) struct Findings {
    pub controls: Controls,
    /// What the model left out, and what the scenario's author should know.
    pub warnings: Caveats,
    /// The curves of today, with the first seed.
    pub today: Arc<str>,
    /// The documents of today.
    before: Vec<Document>,
}

pub(super) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept is whole at any time: nobody panics between two changes that belong together.
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why there is no answer, for people.
pub(super) fn told(failure: &Failure) -> String {
    failure.text(GraphicalTheme::none()).unwrap_or_else(|| "stopped".to_owned())
}

/// What a setting comes to with a seed, and what its curves are drawn from.
type Answered = (Arc<Point>, Option<Drawing>);

impl Session {
    /// Reads the scenario. `find` has to follow.
    ///
    /// # Errors
    /// If the scenario or anything that it names cannot be used.
    pub fn load(request: Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let (scenario, warnings) = edits::load(&request.scenario, prices.catalog(), &request.edits)?;
        let policy = scenario.for_policy(request.policy.as_deref())?.name.clone();
        let seed = request.seed.unwrap_or(scenario.seed);
        let currency =
            prices.catalog().region(scenario.region.as_str()).map_err(prices::unusable)?.currency.code().to_owned();
        let mut caveats = scenario.caveats();
        caveats.merge(&Caveats::from_warnings(&warnings));
        Ok(Self {
            request,
            prices,
            scenario: Arc::new(scenario),
            policy,
            seed,
            currency,
            warnings: caveats,
            findings: OnceLock::new(),
            tried: Default::default(),
            points: Mutex::new(LruCache::at_most(POINTS_MAX)),
            curves: Mutex::new(LruCache::at_most(CURVES_MAX)),
        })
    }

    /// Simulates the scenario once as it is today, and finds out what can be moved, unless it becomes `unwanted`.
    pub(super) fn find(&self, unwanted: &AtomicBool) {
        let found = self.findings(unwanted).map_err(|error| told(&error));
        // Nobody else finds anything.
        let _ = self.findings.set(found);
    }

    /// What was found; `None` until it is.
    ///
    /// # Errors
    /// Why it cannot be found, for people.
    pub(super) fn found(&self) -> Option<Result<&Findings, &str>> {
        self.findings.get().map(|found| found.as_ref().map_err(String::as_str))
    }

    /// How many controls have been tried, and how many there are to try.
    pub(super) fn tried(&self) -> [usize; 2] {
        [0, 1].map(|place| self.tried[place].load(Ordering::Relaxed))
    }

    fn findings(&self, unwanted: &AtomicBool) -> Result<Findings, Failure> {
        let mut found = Findings { warnings: self.warnings.clone(), ..Findings::default() };
        let outcome = self.outcome(&self.scenario, self.seed, unwanted)?;
        let Some(outcome) = outcome else { return Ok(found) };
        let summary = Summary::from_outcome(&outcome);
        let today = self.keep(&Key::from(""), self.seed, &outcome);
        found.today = data::of_one(&outcome, CURVE_POINTS).into();
        found.warnings.merge(&today.warnings);
        let region = self.prices.catalog().region(self.scenario.region.as_str()).map_err(prices::unusable)?;
        found.before = self.documents(&Setting::new())?;
        let Some(root) = found.before.first() else { return Ok(found) };
        let by_workload: BTreeMap<String, f64> =
            summary.cost.by_workload.iter().map(|workload| (workload.name.clone(), workload.amount)).collect();
        let mut controls = Controls::from_basis(&Basis {
            scenario: &self.scenario,
            root: &root.content,
            objects: &objects(&found.before),
            policy: self.scenario.for_policy(Some(&self.policy))?,
            region: &region,
            outcome: &outcome,
            by_origin: &today.cost_by_origin,
            by_workload: &by_workload,
            can_set: &|setting| self.scenario_of(setting).is_ok(),
        });
        let trials = controls.trials();
        let now = self.digest(&self.scenario);
        self.tried[1].store(trials.len(), Ordering::Relaxed);
        let works = |(place, value): &(usize, String)| {
            if unwanted.load(Ordering::Relaxed) {
                return false;
            }
            self.tried[0].fetch_add(1, Ordering::Relaxed);
            let setting = controls.setting(&controls.alone(*place, value)).ok();
            let scenario = setting.and_then(|setting| self.scenario_of(&setting).ok());
            scenario.is_some_and(|scenario| self.digest(&scenario) != now)
        };
        let works: Vec<bool> = on_threads(None, || trials.par_iter().map(works).collect())?;
        controls.keep(&trials, &works);
        found.controls = controls;
        Ok(found)
    }

    fn digest(&self, scenario: &Scenario) -> Option<u64> {
        let policy = scenario.for_policy(Some(&self.policy)).ok()?;
        digest(scenario, policy, self.prices.catalog())
    }

    /// What is set for a state, as a key too.
    ///
    /// # Errors
    /// Why it comes to nothing, for people.
    pub(super) fn setting(&self, state: &State) -> Result<(Setting, Key), String> {
        let setting = self.ready()?.controls.setting(state).map_err(|misfit| misfit.to_string())?;
        let key = edits::texts(&setting).join("\n").into();
        Ok((setting, key))
    }

    /// What was found.
    ///
    /// # Errors
    /// Why there is nothing yet, for people.
    pub(super) fn ready(&self) -> Result<&Findings, String> {
        let unready = || "the studio is still trying today's settings; try again in a moment".to_owned();
        self.found().ok_or_else(unready)?.map_err(str::to_owned)
    }

    fn edits(&self, setting: &Setting) -> Result<Vec<Edit>, Failure> {
        let mut all = self.request.edits.clone();
        all.extend(edits::of_setting(setting)?);
        Ok(all)
    }

    /// The scenario with values set; today's without any.
    ///
    /// # Errors
    /// If they make none.
    pub(super) fn scenario_of(&self, setting: &Setting) -> Result<Arc<Scenario>, Failure> {
        if setting.is_empty() {
            return Ok(Arc::clone(&self.scenario));
        }
        let (scenario, _) = edits::load(&self.request.scenario, self.prices.catalog(), &self.edits(setting)?)?;
        Ok(Arc::new(scenario))
    }

    /// Simulates, as `run` does; nothing if it became `unwanted`.
    ///
    /// # Errors
    /// If the scenario lacks the policy, or there are no prices.
    pub(super) fn outcome(
        &self,
        scenario: &Scenario,
        seed: u64,
        unwanted: &AtomicBool,
    ) -> Result<Option<Outcome>, Failure> {
        let policy = scenario.for_policy(Some(&self.policy))?;
        let catalog = self.prices.catalog();
        simulation::run_unless(scenario, policy, catalog, seed, unwanted).map_err(prices::unusable)
    }

    fn keep(&self, key: &Key, seed: u64, outcome: &Outcome) -> Arc<Point> {
        let cell = Cell { index: 0, setting: 0, policy: &self.policy, seed };
        let point = Arc::new(points::point(cell, outcome));
        lock(&self.points).put((key.clone(), seed), Arc::clone(&point));
        point
    }

    /// What a setting comes to with a seed, if that is known.
    pub(super) fn known(&self, key: &Key, seed: u64) -> Option<Arc<Point>> {
        lock(&self.points).get(&(key.clone(), seed))
    }

    /// What a setting comes to with a seed, and what its curves are drawn from if those are wanted: as known, or simulated now. Nothing if
    /// it became `unwanted`.
    ///
    /// # Errors
    /// If the scenario cannot be had or simulated.
    pub(super) fn answer(
        &self,
        (key, seed, with_curves): (&Key, u64, bool),
        scenario: impl FnOnce() -> Result<Arc<Scenario>, String>,
        unwanted: &AtomicBool,
    ) -> Result<Option<Answered>, String> {
        let known = self.known(key, seed);
        let drawn = match (with_curves, key.is_empty()) {
            (true, true) => self.ready().ok().map(|found| Arc::clone(&found.today)),
            (true, false) => lock(&self.curves).get(key),
            (false, _) => None,
        };
        if let Some(point) = known.filter(|_| drawn.is_some() || !with_curves) {
            return Ok(Some((point, drawn.map(Drawing::Known))));
        }
        let Some(outcome) = self.outcome(&*scenario()?, seed, unwanted).map_err(|error| told(&error))? else {
            return Ok(None);
        };
        let point = self.keep(key, seed, &outcome);
        Ok(Some((point, with_curves.then(|| Drawing::Of(Box::new(outcome))))))
    }

    /// The curves of a setting with the first seed.
    pub(super) fn curves(&self, key: &Key, drawing: Drawing) -> Arc<str> {
        match drawing {
            Drawing::Known(curves) => curves,
            Drawing::Of(outcome) => {
                let curves = Arc::<str>::from(data::of_one(&outcome, CURVE_POINTS));
                lock(&self.curves).put(key.clone(), Arc::clone(&curves));
                curves
            }
        }
    }

    /// The command line that repeats what is shown of a setting with the first seed.
    pub(super) fn command(&self, setting: &Setting) -> String {
        let mut words = vec!["nodecast".to_owned(), "run".to_owned(), self.request.scenario.display().to_string()];
        words.extend(["--policy".to_owned(), self.policy.clone(), "--seed".to_owned(), self.seed.to_string()]);
        words.extend(edits::options(&edits::setting(&self.request.edits)));
        words.extend(edits::options(setting));
        if let Some(directory) = &self.request.pricing_data {
            words.extend(["--pricing-data".to_owned(), directory.display().to_string()]);
        }
        shell_line(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn documents(&self, setting: &Setting) -> Result<Vec<Document>, Failure> {
        let edits = self.edits(setting)?;
        let catalog = self.prices.catalog();
        let documents = crate::scenario::documents(&self.request.scenario, catalog, &Limits::default(), &edits)?;
        Ok(seen_by(&self.policy, documents))
    }

    /// What changes in which object.
    ///
    /// # Errors
    /// If the values make no scenario.
    pub(super) fn changes(&self, setting: &Setting) -> Result<Vec<ValueChange>, Failure> {
        let before = self.ready().map(|found| found.before.as_slice()).unwrap_or_default();
        Ok(value_changes(before, &self.documents(setting)?))
    }

    /// The page of a run of a setting with the first seed.
    ///
    /// # Errors
    /// If it cannot be simulated or drawn.
    pub(super) fn report(&self, setting: &Setting, unwanted: &AtomicBool) -> Result<String, Failure> {
        let scenario = self.scenario_of(setting)?;
        let outcome =
            self.outcome(&scenario, self.seed, unwanted)?.ok_or_else(|| Failure::silent(Failure::INTERRUPTED))?;
        page_of(&outcome, &Summary::from_outcome(&outcome), &self.command(setting)).map_err(Failure::of_report)
    }
}
