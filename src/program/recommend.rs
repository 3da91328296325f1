//! What to change of a scenario: from its file to the answer and the manifests that make it true.

mod assembly;
mod clock;
mod files;
mod lines;
mod simulated;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rayon::prelude::*;

use super::simulations::{on_threads, simulate};
use super::{Audience, Failure, Prices, edits, prices};
use crate::catalog::{Catalog, Region};
use crate::domain::{SimDuration, SimTime};
use crate::experiment::axes::Setting;
use crate::experiment::effects::digest;
use crate::experiment::points::{self, Cell, Point};
use crate::recommend::recommendation::{
    Allowance, BaselineFacts, Choice, Effort, Exclusion, FamilyCurve, Kind, Level, Lever, Reaches, Recommendation,
    Requirements, Robustness, Search, Stress, Verdict, commitments_lever, curves, dearest_family, exclude, hours,
    largest_lines, levers, limits, on_demand_times, requirements, setting,
};
use crate::recommend::rightsizing::{Patch, Sizing, measure, observed, patches};
use crate::report::Summary;
use crate::scenario::document::Content;
use crate::scenario::lints::studies;
use crate::scenario::{Caveats, Edit, Limits, Scenario, Warning};
use crate::simulation::Outcome;
use assembly::Assembly;
pub(super) use assembly::value_changes;
use clock::Clock;
pub(super) use files::{Change, Origin, objects, seen_by};
pub use files::{Written, begin};
use simulated::Simulated;

/// Unless somebody says otherwise, a change has to save this share of what is left to pay.
pub const LEAST_SAVING: f64 = 0.01;
/// Unless somebody says otherwise, all changes together have surely to save this share of today's cost.
pub const WORTH: f64 = 0.02;
/// Unless somebody says otherwise, there are at most so many changes.
pub const CHANGES_MAX: u32 = 6;

/// What to ask.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// The scenario file, or a fleet file with `--levers commitments`
    pub scenario: PathBuf,
    /// Policy to improve [default: the first in the scenario]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    pub policy: Option<String>,
    /// Maximum simulations; the same number gives the same answer on every machine
    #[arg(long, value_name = "N", default_value = "400", value_parser = clap::value_parser!(u32).range(i64::from(SIMULATIONS_MIN)..=1_000_000))]
    pub simulations: u32,
    /// Stop searching after this time; the answer states how many simulations it is based on
    #[arg(long, value_name = "TIME", value_parser = edits::time)]
    pub budget: Option<SimDuration>,
    /// What may be changed; the command line names it by two options.
    #[arg(skip)]
    pub kinds: Vec<Kind>,
    /// What may not be changed.
    #[arg(skip)]
    pub ruled_out: Vec<Kind>,
    /// Minimum saving per change, as a share of the remaining cost
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub least_saving: f64,
    /// Minimum certain saving of all changes together, as a share of today's cost
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    pub worth: f64,
    /// Maximum number of changes
    #[arg(long = "changes", value_name = "N", default_value = "6", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub changes_max: u32,
    /// Also try three-year commitments paid all upfront; without it, the answer only states their price
    #[arg(long)]
    pub three_years: bool,
    /// First seed of the search [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// What is changed first; options that state changes are read apart.
    #[arg(skip)]
    pub edits: Vec<Edit>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let share = number.map(|number| number / 100.0).filter(|share| (0.0..=0.5).contains(share));
    share.ok_or_else(|| "write for example 1% or 0.5%, at most 50%".to_owned())
}

/// A question that has been read and can be run.
pub struct Recommend {
    request: Request,
    prices: Prices,
    scenario: Scenario,
    warnings: Vec<Warning>,
    /// Whether errors of Spot prices are drawn because nobody says otherwise.
    draws: bool,
    policy: String,
    seed: u64,
}

/// The answer, and what manifests are made of.
pub struct Recommended {
    /// The answer.
    pub answer: Recommendation,
    pub(super) request: Request,
    pub(super) prices: Prices,
    pub(super) scenario: Scenario,
    pub(super) policy: String,
    /// Everything that is to be set, for all changes together; of the answer without Spot, too, if there is one.
    pub(super) settings: Vec<Setting>,
}

/// Fewer simulations than this confirm no change.
pub const SIMULATIONS_MIN: u32 = 40;
/// A search with fewer simulations keeps none for an answer without Spot.
const SECOND_FROM: usize = 300;
/// Simulations that show how long one takes.
const MEASURED: u64 = 4;
/// Spot dominates if it alone saves this share of the saving.
const DOMINATES: f64 = 0.5;
/// Seeds of each trial under other conditions.
const STRESS_SEEDS: u64 = 3;
/// Seeds whose hours commitments are worked out from.
const COMMITMENT_SEEDS: u64 = 3;
/// Other conditions, at most.
const STRESSES_MAX: u64 = 6;
/// Simulations that are not of the search, at most.
const BESIDE: usize = (2 + COMMITMENT_SEEDS + STRESSES_MAX * STRESS_SEEDS * 2) as usize;

/// The simulations of the first answer, before it shows whether there is a second one.
const fn first_part(simulations: usize) -> usize {
    simulations * 2 / 3
}

/// The result of a search.
struct SearchResult<'p> {
    search: Search<'p, Simulated<'p>>,
    verdict: Verdict,
    commitments: Vec<FamilyCurve>,
    /// Whether Spot dominates what was chosen.
    is_spot: bool,
}

impl Recommend {
    /// Reads everything that the question needs.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let (mut scenario, warnings) = edits::load(&request.scenario, prices.catalog(), &request.edits)?;
        let draws = scenario.ec2.cloud.price_errors.is_none();
        scenario.draw_price_errors();
        let policy = scenario.for_policy(request.policy.as_deref())?.name.to_string();
        let seed = request.seed.unwrap_or(scenario.seed);
        Ok(Self { request, prices, scenario, warnings, draws, policy, seed })
    }

    /// Searches, on so many threads, or one for each processor.
    ///
    /// # Errors
    /// If a simulation cannot be run, or somebody stops it before there is an answer.
    pub fn answer(self, threads: Option<u16>, audience: &mut dyn Audience) -> Result<Recommended, Failure> {
        let catalog = self.prices.catalog();
        let region = catalog.region(self.scenario.region.as_str()).map_err(prices::unusable)?;
        let budget = self.request.budget.map(|budget| Duration::from_secs_f64(budget.as_secs_f64().max(0.0)));
        let clock = Clock::new(budget);
        let beside = BESIDE + self.request.simulations as usize;
        let watcher = audience.begin(beside, &[self.scenario.duration]);
        let first = self.outcome(&self.scenario, self.seed)?;
        let today = points::point(self.cell(self.seed), &first);
        let (mut levers, mut excluded) = self.levers(&region, &first, &today)?;
        let untried = self.prune(&mut levers, &mut excluded, (&region, threads))?;
        let run = |cells: &[Cell<'_>], one: &super::simulations::One<'_>| {
            clock.measure(cells.len(), || simulate(cells, one, threads, &*watcher))
        };
        let problem = Simulated::new(&self, (levers, self.requirements(), limits(&today)), &run, threads);
        problem.keep_today(self.seed, (today.clone(), on_demand_times(&first, &self.scenario)));
        let without = problem.without_spot();
        let effort = self.effort(&problem, &clock, without.is_some())?;
        let found = self.found(&problem, &region, effort, without.is_some())?;
        let robustness = self.robustness(&problem, &found.verdict)?;
        let lines = largest_lines(&first);
        let assembly =
            |problem, found| Assembly { problem, found, catalog, region: &region, first: &today, lines: &lines };
        let mut answer = assembly(&problem, &found).answer(&self, robustness, excluded, effort.simulations)?;
        let mut settings = vec![problem.setting(&found.verdict.choice)];
        if let Some(without) = without.filter(|_| found.is_spot) {
            let left = effort.simulations.saturating_sub(found.search.used()).min(found.search.used());
            let second = Effort { simulations: left, is_late: &|_| false, ..effort };
            if left >= second.least() {
                let found = self.sought(&without, &region, second)?;
                answer.effort.used += found.search.used() as u64;
                answer.without_spot = Some(assembly(&without, &found).alternative(&self)?);
                settings.push(without.setting(&found.verdict.choice));
            }
        }
        answer.warnings.extend(untried.iter());
        answer.warnings.precede(Caveats::from_warnings(&self.warnings));
        drop(found);
        drop(problem);
        drop(watcher);
        let Self { request, prices, scenario, policy, .. } = self;
        Ok(Recommended { answer, request, prices, scenario, policy, settings })
    }

    /// The effort that was asked for, or as much of it as there is time for.
    fn effort(&self, problem: &Simulated<'_>, clock: &Clock, has_second: bool) -> Result<Effort<'static>, Failure> {
        use crate::recommend::recommendation::Problem;
        let changes_max = (self.request.changes_max as usize).min(problem.levers().len()).max(1);
        let whole = Effort {
            simulations: self.request.simulations as usize,
            first_seed: self.seed,
            least_saving: self.request.least_saving,
            worth: self.request.worth,
            changes_max,
            is_late: &|_| false,
        };
        if self.request.budget.is_none() {
            return Ok(whole);
        }
        let today: Choice = vec![0; problem.levers().len()];
        problem.simulate(&(0..MEASURED).map(|ordinal| (today.clone(), self.seed + ordinal)).collect::<Vec<_>>())?;
        let least = whole.least();
        let most = clock.affordable().saturating_sub(BESIDE).min(whole.simulations).max(least);
        let is_split = has_second && most >= SECOND_FROM;
        let part = Effort { simulations: if is_split { first_part(most) } else { most }, ..whole };
        // With so many of a part, how many the whole is.
        let of_part = |count: usize| if is_split { (count * 3).div_ceil(2) } else { count };
        let is_late = |after: usize| {
            let all = of_part(part.ended_after(after, least).simulations);
            clock.ends_before(all.saturating_sub(clock.done()) + BESIDE)
        };
        let mut search = Search::new(problem, Effort { is_late: &is_late, ..part });
        search.best()?;
        let ended = part.ended_after(search.used(), least).simulations;
        Ok(Effort { simulations: if search.is_late() { of_part(ended) } else { most }, ..whole })
    }

    /// The search of an effort. With enough simulations it begins with a part of them: if Spot dominates what they find, the rest is for an answer
    /// without Spot.
    fn found<'p>(
        &'p self,
        problem: &'p Simulated<'p>,
        region: &Arc<Region>,
        effort: Effort<'static>,
        has_second: bool,
    ) -> Result<SearchResult<'p>, Failure> {
        if has_second && effort.simulations >= SECOND_FROM {
            let mut search = Search::new(problem, Effort { simulations: first_part(effort.simulations), ..effort });
            let best = search.best()?;
            if problem.is_spot(&search, &best) {
                let found = self.confirmed(problem, region, (search, best))?;
                return Ok(SearchResult { is_spot: true, ..found });
            }
        }
        let found = self.sought(problem, region, effort)?;
        let is_spot = has_second && problem.is_spot(&found.search, &found.verdict.choice);
        Ok(SearchResult { is_spot, ..found })
    }

    /// A search of its own.
    fn sought<'p>(
        &'p self,
        problem: &'p Simulated<'p>,
        region: &Arc<Region>,
        effort: Effort<'static>,
    ) -> Result<SearchResult<'p>, Failure> {
        let mut search = Search::new(problem, effort);
        let best = search.best()?;
        self.confirmed(problem, region, (search, best))
    }

    /// Commitments for what a search chose, and the verdict on both.
    fn confirmed<'p>(
        &'p self,
        problem: &'p Simulated<'p>,
        region: &Arc<Region>,
        (mut search, best): (Search<'p, Simulated<'p>>, Choice),
    ) -> Result<SearchResult<'p>, Failure> {
        let mut best = search.thinned_out(best)?;
        let commitments = self.commit(region, problem, &mut search, &mut best)?;
        let verdict = search.verdict(best)?;
        Ok(SearchResult { search, verdict, commitments, is_spot: false })
    }

    fn cell(&self, seed: u64) -> Cell<'_> {
        Cell { index: 0, setting: 0, policy: &self.policy, seed }
    }

    fn outcome(&self, scenario: &Scenario, seed: u64) -> Result<Outcome, Failure> {
        points::outcome(scenario, self.prices.catalog(), self.cell(seed)).map_err(simulated::failure)
    }

    fn requirements(&self) -> Requirements {
        self.scenario.for_policy(Some(&self.policy)).map(requirements).unwrap_or_default()
    }

    /// What may be changed, before anything of it is tried.
    fn levers(
        &self,
        region: &Arc<Region>,
        first: &Outcome,
        today: &Point,
    ) -> Result<(Vec<Lever>, Vec<Exclusion>), Failure> {
        let policy = self.scenario.for_policy(Some(&self.policy))?;
        let summary = Summary::from_outcome(first);
        let by_workload =
            summary.cost.by_workload.iter().map(|workload| (workload.name.clone(), workload.amount)).collect();
        let file = Path::new(&self.request.scenario);
        let documents =
            crate::scenario::documents(file, self.prices.catalog(), &Limits::default(), &self.request.edits)?;
        let root = documents.first().map(|document| document.content.clone());
        let known = BaselineFacts {
            root: &root.unwrap_or(Content::Map(Vec::new())),
            objects: &objects(&seen_by(&self.policy, documents)),
            scenario: &self.scenario,
            policy,
            region,
            by_origin: &today.cost_by_origin,
            by_workload: &by_workload,
            can_set: &|setting| self.with(setting).is_some(),
            allowance: self.allowance(),
        };
        let (mut all, mut excluded) = levers(&known);
        all.retain(|lever| self.request.kinds.contains(&lever.kind));
        excluded.retain(|part| self.request.kinds.iter().any(|kind| kind.as_str() == part.lever));
        if self.request.kinds.contains(&Kind::Requests) {
            all.extend(self.requests()?);
        }
        Ok((all, excluded))
    }

    fn allowance(&self) -> Allowance {
        Allowance::new(&self.request.kinds, &self.request.ruled_out)
    }

    /// The nodes that a scenario may launch.
    fn reaches(&self, scenario: &Scenario, region: &Arc<Region>) -> Option<Reaches> {
        scenario.for_policy(Some(&self.policy)).ok().map(|policy| Reaches::new(scenario, policy, region))
    }

    /// Requests that fit, if a run says what containers use.
    fn requests(&self) -> Result<Option<Lever>, Failure> {
        let seen = self.outcome(&observed(&self.scenario, &self.policy), self.seed)?;
        let measured = measure(&self.scenario, &self.policy, &seen);
        let level = |(sizing, label): (Sizing, &str)| {
            let patches = patches(&self.scenario, &self.policy, &measured, sizing);
            let sets: Setting = patches.iter().flat_map(Patch::setting).collect();
            let count = patches.len() as u64;
            let workloads = crate::domain::words::counted(count, "workload", "workloads");
            (count > 0).then(|| Level { label: format!("{label}, {workloads}"), sets, requirements: Vec::new() })
        };
        let sizings = [(Sizing::Recommended, "as the VPA recommends"), (Sizing::P99, "the 99th percentile of use")];
        let levels: Vec<Level> = sizings.into_iter().filter_map(level).collect();
        let lever = Lever {
            kind: Kind::Requests,
            subject: "requests".to_owned(),
            today: "as the templates state".to_owned(),
            levels,
        };
        Ok((!lever.levels.is_empty()).then_some(lever))
    }

    /// The scenario with these values set; `None` if that makes none.
    fn with(&self, setting: &Setting) -> Option<Scenario> {
        let mut all = self.request.edits.clone();
        all.extend(edits::of_setting(setting).ok()?);
        let (mut scenario, _) = edits::load(&self.request.scenario, self.prices.catalog(), &all).ok()?;
        scenario.draw_price_errors();
        Some(scenario)
    }

    /// Why the scenario cannot be read with these values; `None` if it can.
    fn refusal(&self, setting: &Setting) -> Option<String> {
        let mut all = self.request.edits.clone();
        let read = edits::of_setting(setting).and_then(|setting| {
            all.extend(setting);
            crate::scenario::load_edited(&self.request.scenario, self.prices.catalog(), &Limits::default(), &all)
        });
        read.err().map(|error| error.message().to_owned())
    }

    /// Takes out levels that make no scenario, that change nothing, that another level of the lever comes to as well, or that launch what is
    /// excluded; warnings of levers of which no level makes a scenario.
    fn prune(
        &self,
        levers: &mut Vec<Lever>,
        excluded: &mut Vec<Exclusion>,
        (region, threads): (&Arc<Region>, Option<u16>),
    ) -> Result<Caveats, Failure> {
        self.exclude(levers, excluded, (region, threads))?;
        let catalog = self.prices.catalog();
        let today = self.digest(&self.scenario, catalog);
        let requires = self.requirements();
        let digests: Vec<Vec<Option<u64>>> = on_threads(threads, || {
            let of_lever = |lever: &Lever| {
                let of_level = |level: &Level| {
                    let alone = Lever { levels: vec![level.clone()], ..lever.clone() };
                    self.with(&setting(&[alone], &vec![1], &requires)).and_then(|item| self.digest(&item, catalog))
                };
                lever.levels.iter().map(of_level).collect()
            };
            levers.par_iter().map(of_lever).collect()
        })?;
        let mut untried = Caveats::new();
        for (lever, digests) in levers.iter_mut().zip(digests) {
            if digests.iter().all(Option::is_none) {
                let why = self.refusal(&setting(std::slice::from_ref(lever), &vec![1], &requires));
                let (kind, subject) = (lever.kind.as_str(), &lever.subject);
                why.into_iter().for_each(|why| {
                    untried.add(&studies::LEVER_NOT_TRIED, format!("did not try {kind} for {subject}: {why}"))
                });
            }
            let mut seen = vec![today];
            let mut digests = digests.into_iter();
            lever.levels.retain(|_| {
                let digest = digests.next().flatten();
                let is_new = digest.is_some() && !seen.contains(&digest);
                seen.push(digest);
                is_new
            });
        }
        levers.retain(|lever| !lever.levels.is_empty());
        Ok(untried)
    }

    /// Takes out levels that launch nodes which neither a flag nor today's NodePools and node groups allow.
    fn exclude(
        &self,
        levers: &mut Vec<Lever>,
        excluded: &mut Vec<Exclusion>,
        (region, threads): (&Arc<Region>, Option<u16>),
    ) -> Result<(), Failure> {
        let requires = self.requirements();
        let Some(today) = self.reaches(&self.scenario, region) else { return Ok(()) };
        let changed = |setting: &Setting| self.reaches(&self.with(setting)?, region);
        let found = on_threads(threads, || exclude(levers, self.allowance(), (&today, &requires), &changed))?;
        excluded.extend(found);
        Ok(())
    }

    fn digest(&self, scenario: &Scenario, catalog: &Catalog) -> Option<u64> {
        scenario.for_policy(Some(&self.policy)).ok().and_then(|policy| digest(scenario, policy, catalog))
    }

    /// Works out commitments against the hours of what was chosen, and tries them.
    fn commit(
        &self,
        region: &Arc<Region>,
        problem: &Simulated<'_>,
        search: &mut Search<'_, Simulated<'_>>,
        best: &mut Choice,
    ) -> Result<Vec<FamilyCurve>, Failure> {
        let bought = &self.scenario.ec2.cloud.billing.commitments;
        let place = best.len().saturating_sub(1);
        if !self.request.kinds.contains(&Kind::Commitments) || !bought.is_empty() {
            return Ok(Vec::new());
        }
        let seeds: Vec<u64> = (0..COMMITMENT_SEEDS).map(|ordinal| self.seed.wrapping_add(ordinal)).collect();
        let times = problem.on_demand(best, &seeds)?;
        let all: Vec<_> = times.iter().flat_map(|times| hours(times, self.scenario.duration)).collect();
        let curves = curves(&all, region);
        let lever = commitments_lever(&curves, self.request.three_years);
        let levels = lever.levels.len() + 1;
        problem.replace(place, lever);
        if levels > 1 {
            search.open_lever(place, levels, best)?;
        }
        Ok(curves)
    }

    /// How what is recommended fares when something turns out differently.
    fn robustness(&self, problem: &Simulated<'_>, verdict: &Verdict) -> Result<Vec<Robustness>, Failure> {
        if verdict.advice != crate::recommend::recommendation::Advice::Change {
            return Ok(Vec::new());
        }
        let Some(recommended) = self.with(&problem.setting(&verdict.choice)) else { return Ok(Vec::new()) };
        let outcome = self.outcome(&recommended, self.seed)?;
        let stresses = Stress::new(&self.scenario, dearest_family(&outcome, SimTime::ZERO + recommended.duration));
        let seeds: Vec<u64> = verdict.seeds.iter().copied().take(STRESS_SEEDS as usize).collect();
        let of = |stress: &Stress| {
            let both = [stress.applied(&self.scenario), stress.applied(&recommended)];
            problem.under(stress, (&verdict.choice, &both), &seeds)
        };
        stresses.iter().map(of).collect()
    }
}
