//! Fleets: many clusters, one bill.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nodecast_fleet::{
    FleetBill, FleetRun, FleetSummary, LoadedCluster, LoadedFleet, Observer, Overrides, RunError, load,
};

use super::simulations::{on_threads, shell_line};
use super::{Failure, Prices, prices};
use crate::domain::SimDuration;
use crate::report::directory::{check_written, is_report};
use crate::report::{self, OutputDirectory, OutputError, Summary, open_metrics};
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
            help: "set the value in the fleet file (`policy`, `set` of a cluster), or run the scenario of one cluster alone",
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
        let duration = self.loaded.clusters[0].scenario.duration;
        let bill = nodecast_fleet::price(&self.loaded.fleet, (self.loaded.start, duration), &clusters, &mut |_, _| {});
        let region = catalog.region(self.loaded.clusters[0].scenario.region.as_str()).map_err(prices::unusable)?;
        let summary = FleetSummary::new(&self.loaded, seed, &run, &bill, region.currency.code());
        Ok(Answer { run, bill, summary })
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
