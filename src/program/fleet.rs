//! Fleets: many clusters, one bill.

pub mod comparison;
pub mod inspection;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nodecast_fleet::focus;
use nodecast_fleet::recommend::Leftover;
use nodecast_fleet::{
    ClusterUsage, FleetBill, FleetRun, FleetSummary, FocusVersion, LoadedCluster, LoadedFleet, Observer, Overrides,
    RunError, load,
};

use crate::experiment::figures;
use crate::experiment::points::{self, Cell, Point};

use super::simulations::{on_threads, shell_line};
use super::{Failure, Prices, prices};
use crate::domain::{Currency, SimDuration};
use crate::report::directory::{check_written, is_report};
use crate::report::{self, OutputDirectory, OutputError, Summary, open_metrics};
use crate::scenario::ScenarioError;
use crate::simulation::Outcome;

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The fleet file.
    pub file: PathBuf,
    /// Duration of every run, in place of the fleet's.
    pub duration: Option<SimDuration>,
    /// The seed, in place of the fleet's.
    pub seed: Option<u64>,
    /// Policy of every cluster whose scenario has it.
    pub policy: Option<String>,
    /// Directory of prices, in place of the built-in ones.
    pub pricing_data: Option<PathBuf>,
}

/// A fleet that has been read and can be run.
pub struct Fleet {
    request: Request,
    prices: Prices,
    /// The fleet.
    pub loaded: LoadedFleet,
}

/// The result of a fleet with one seed.
pub struct Answer {
    /// The runs of its clusters.
    pub run: FleetRun,
    /// Its bill.
    pub bill: FleetBill,
    /// Both for people and programs.
    pub summary: FleetSummary,
}

/// What is told of each cluster that has ended, and whether to stop.
pub trait Audience: Sync {
    /// A cluster's run has ended.
    fn ended(&self, cluster: &LoadedCluster, outcome: &Outcome);
    /// Whether no further run is wanted.
    fn is_stopped(&self) -> bool;
}

/// An option that means nothing for a fleet, or for a scenario.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{option}` does not apply to {what}")]
#[diagnostic(help("{help}"))]
struct NotApplicable {
    option: &'static str,
    what: &'static str,
    help: &'static str,
}

/// An outcome that could not be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{0}")]
struct Unusable(String);

/// Refuses options that have no effect on a fleet.
///
/// # Errors
/// If one of them is given.
pub fn reject_options(options: &[(&'static str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::bad_input(NotApplicable {
            option,
            what: "a fleet",
            help: match *option {
                "--out" => "remove the option: the comparison of a fleet is printed, and writes no directory",
                _ => {
                    "set the value in the fleet file (`policy`, `set` of a cluster), or run the scenario of one cluster alone"
                }
            },
        })),
        None => Ok(()),
    }
}

/// Refuses options of fleets for a scenario.
///
/// # Errors
/// If one of them is given.
pub fn reject_fleet_options(options: &[(&'static str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::bad_input(NotApplicable {
            option,
            what: "a scenario",
            help: "list the scenario under `clusters` of a fleet file, and run that",
        })),
        None => Ok(()),
    }
}

/// The failure of a lever that a fleet does not have.
pub fn only_commitments() -> Failure {
    let error = ScenarioError::new("a fleet has no other lever than `commitments`");
    error.help("use `--levers commitments`, or pass the scenario of one cluster").into()
}

impl Fleet {
    /// Reads everything that the fleet needs.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let overrides = Overrides { duration: request.duration, policy: request.policy.clone() };
        let loaded = load(&request.file, prices.catalog(), &overrides)?;
        Ok(Self { request, prices, loaded })
    }

    /// The seed that it runs with.
    pub fn seed(&self) -> u64 {
        self.request.seed.unwrap_or(self.loaded.seed)
    }

    /// The catalog of prices.
    pub fn catalog(&self) -> &crate::catalog::Catalog {
        self.prices.catalog()
    }

    /// Runs all clusters with a seed on so many threads, or one for each processor, and writes the report of each into a directory.
    ///
    /// # Errors
    /// If a cluster cannot be run, or its report not be written; with exit code 130 if the audience stops it.
    pub fn answer(
        &self,
        seed: u64,
        threads: Option<u16>,
        directory: Option<&OutputDirectory>,
        audience: &dyn Audience,
    ) -> Result<Answer, Failure> {
        let catalog = self.prices.catalog();
        let command = self.command(seed);
        let writer = Writer { directory, command: &command, audience, failure: Mutex::default() };
        let run = on_threads(threads, || nodecast_fleet::run(&self.loaded, catalog, seed, &writer))?;
        let failure = writer.failure.into_inner().ok().flatten();
        let run = run.map_err(|error| match error {
            RunError::Catalog(error) => prices::unusable(error),
            RunError::Stopped => Failure::silent(Failure::INTERRUPTED),
            RunError::Observer(reason) => failure.unwrap_or_else(|| Failure::system(Unusable(reason))),
        })?;
        let clusters: Vec<_> = run.clusters.iter().map(|cluster| (cluster.bearer, &cluster.usage)).collect();
        let bill = nodecast_fleet::price(&self.loaded, &clusters, &mut |_, _| {});
        let summary = FleetSummary::new(&self.loaded, seed, &run, &bill, self.currency()?);
        Ok(Answer { run, bill, summary })
    }

    /// Runs all clusters with successive seeds; the usage that owned commitments leave, and the currency.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn leftover(&self, seeds: u32, threads: Option<u16>, audience: &dyn Audience) -> Result<Leftover, Failure> {
        let mut leftover = Leftover::default();
        for number in 0..u64::from(seeds) {
            let answer = self.answer(self.seed().wrapping_add(number), threads, None, audience)?;
            let usage: Vec<&ClusterUsage> = answer.run.clusters.iter().map(|cluster| &cluster.usage).collect();
            leftover.add(&self.loaded, &usage, self.catalog());
        }
        Ok(leftover)
    }

    /// Points of each cluster over successive seeds, with its net cost in the fleet, and those of the fleet, which have costs alone.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn points(
        &self,
        seeds: u32,
        threads: Option<u16>,
        audience: &dyn Audience,
    ) -> Result<BTreeMap<String, Vec<Point>>, Failure> {
        let mut all: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        for number in 0..u64::from(seeds) {
            let seed = self.seed().wrapping_add(number);
            let collector = Collector { audience, seed, points: Mutex::default() };
            let summary = self.answer(seed, threads, None, &collector)?.summary;
            let mut points = collector.points.into_inner().unwrap_or_default();
            for row in &summary.clusters {
                let Some(mut point) = points.remove(&row.name) else { continue };
                set_cost(&mut point, (row.net, row.per_month));
                all.entry(row.name.clone()).or_default().push(point);
            }
            let Some(last) = all.values().next().and_then(|points| points.last()) else { continue };
            let mut total = Point { figures: vec![None; last.figures.len()], objectives: Vec::new(), ..last.clone() };
            set_cost(&mut total, (summary.figures.total, summary.figures.per_month));
            all.entry(WHOLE.to_owned()).or_default().push(total);
        }
        Ok(all)
    }

    /// The account with this name or id.
    ///
    /// # Errors
    /// If there is none.
    pub fn account(&self, name: &str) -> Result<usize, Failure> {
        let accounts = &self.loaded.fleet.accounts;
        accounts.iter().position(|account| account.name == name || account.id == name).ok_or_else(|| {
            let known = accounts.iter().map(|account| account.name.as_str());
            let error = ScenarioError::new(format!("unknown account `{name}`"));
            error.help(format!("the fleet has {}", crate::scenario::error::listed(known))).into()
        })
    }

    /// The bill as the text of a FOCUS file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn focus(&self, answer: &Answer, version: FocusVersion) -> Result<String, Failure> {
        let currency = Currency::from_code(self.currency()?).unwrap_or(Currency::Usd);
        let mut text = Vec::new();
        let written =
            focus::write(&self.loaded, (&answer.run, &answer.bill), (version, currency), self.catalog(), &mut text);
        let unusable = |reason: String| Failure::system(Unusable(reason));
        written.map_err(|error| unusable(error.to_string()))?;
        String::from_utf8(text).map_err(|error| unusable(error.to_string()))
    }

    /// The code of the currency of all amounts.
    ///
    /// # Errors
    /// If the catalog has no prices of the region.
    pub fn currency(&self) -> Result<&'static str, Failure> {
        let region =
            self.catalog().region(self.loaded.clusters[0].scenario.region.as_str()).map_err(prices::unusable)?;
        Ok(region.currency.code())
    }

    /// The command line that repeats a run.
    pub fn command(&self, seed: u64) -> String {
        let file = self.request.file.display().to_string();
        let mut words = vec!["nodecast".to_owned(), "run".to_owned(), file, "--seed".to_owned(), seed.to_string()];
        if let Some(duration) = self.request.duration {
            words.extend(["--duration".to_owned(), duration.to_string()]);
        }
        if let Some(prices) = &self.request.pricing_data {
            words.extend(["--pricing-data".to_owned(), prices.display().to_string()]);
        }
        shell_line(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Where the report goes unless the command line names a directory.
    pub fn output_directory(&self) -> PathBuf {
        Path::new("reports").join(&self.loaded.fleet.name)
    }
}

/// The name under which a baseline has the fleet itself.
const WHOLE: &str = "(fleet)";

/// Sets the cost of a point, in all and per month.
fn set_cost(point: &mut Point, (total, per_month): (f64, f64)) {
    for (name, value) in [("cost", total), ("cost_per_month", per_month)] {
        if let Some((place, _)) = figures::find(name) {
            point.figures[place] = Some(value);
        }
    }
}

/// Reduces outcomes to points.
struct Collector<'c> {
    audience: &'c dyn Audience,
    seed: u64,
    points: Mutex<BTreeMap<String, Point>>,
}

impl Audience for Collector<'_> {
    fn ended(&self, cluster: &LoadedCluster, outcome: &Outcome) {
        self.audience.ended(cluster, outcome);
        let cell = Cell { index: 0, setting: 0, policy: &cluster.policy, seed: self.seed };
        let point = Point { seed: self.seed, ..points::point(cell, outcome) };
        if let Ok(mut points) = self.points.lock() {
            points.insert(cluster.name.clone(), point);
        }
    }

    fn is_stopped(&self) -> bool {
        self.audience.is_stopped()
    }
}

/// Begins the directory of a fleet's report.
///
/// # Errors
/// If something else stands there, another run writes there, or the system refuses.
pub fn begin(out: &Path) -> Result<OutputDirectory, Failure> {
    OutputDirectory::begin_if(out, check_replaceable).map_err(Failure::of_report)
}

/// Whether `target` may go: an earlier report of a fleet, with nothing added.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "fleet.json", &|entry, name| {
        matches!(name, "index.html" | "chargeback.csv" | "commitments.csv") || is_report(entry)
    })
}

/// Writes the report of each cluster as its run ends, so that no outcome has to be held.
struct Writer<'w> {
    directory: Option<&'w OutputDirectory>,
    command: &'w str,
    audience: &'w dyn Audience,
    failure: Mutex<Option<Failure>>,
}

impl Observer for Writer<'_> {
    fn ended(&self, cluster: &LoadedCluster, outcome: &Outcome, summary: &Summary) -> Result<(), String> {
        self.audience.ended(cluster, outcome);
        let Some(directory) = self.directory else { return Ok(()) };
        let step = cluster.scenario.output.open_metrics;
        let samples_max = open_metrics::Settings::SAMPLES_MAX;
        let metrics = step.map(|step| open_metrics::Settings { step, samples_max });
        report::write_into(directory, &cluster.name, outcome, summary, self.command, metrics).map_err(|error| {
            let reason = error.to_string();
            if let Ok(mut failure) = self.failure.lock() {
                failure.get_or_insert_with(|| Failure::of_report(error));
            }
            reason
        })
    }

    fn is_stopped(&self) -> bool {
        self.audience.is_stopped()
    }
}
