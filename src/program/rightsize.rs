//! What requests that fit would save: from a scenario file to the answer and its patches.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::simulations::{shell_line, simulate};
use super::{Audience, Failure, Prices, edits, prices};
use crate::experiment::inspection::inputs;
use crate::experiment::points::{self, Cell, Plan, Point};
use crate::recommend::presentation::rightsizing::kustomization;
use crate::recommend::rightsizing::{
    Aside, Measured, RightSizing, Run, Sizing, answer, measure, observed, patches, sized,
};
use crate::report::directory::check_written;
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::{Caveats, Edit, Scenario, Warning};

/// The file that says whose the folder of patches is.
const MARKER: &str = "rightsizing.json";

/// What to ask.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// The scenario file
    pub scenario: PathBuf,
    /// The policy [default: the scenario's first]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Number of seeds [default: the scenario's `replications`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub replications: Option<u32>,
    /// First seed; usage is measured with this one [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// What is changed first; options that state changes are read apart.
    #[arg(skip)]
    pub edits: Vec<Edit>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

/// A question that has been read and can be run.
pub struct RightSize {
    prices: Prices,
    scenario: Scenario,
    warnings: Vec<Warning>,
    policy: String,
    seeds: Vec<u64>,
    command: String,
}

/// The answer, and what patches are made of.
pub struct RightSized {
    /// The answer.
    pub answer: RightSizing,
    /// The command line that repeats it.
    pub command: String,
    scenario: Scenario,
    policy: String,
    measured: Measured,
    /// Whether nothing stopped it.
    pub is_whole: bool,
}

impl RightSize {
    /// Reads everything that the question needs.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: &Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let (scenario, warnings) = edits::load(&request.scenario, prices.catalog(), &request.edits)?;
        let policy = scenario.for_policy(request.policy.as_deref())?.name.to_string();
        let count = request.replications.unwrap_or(scenario.replications);
        let seeds = points::seeds(request.seed.unwrap_or(scenario.seed), count);
        let command = command(request, (&policy, count), seeds.first().copied().unwrap_or(scenario.seed));
        Ok(Self { prices, scenario, warnings, policy, seeds, command })
    }

    /// Simulates the cluster as it is, then with every other sizing, on so many threads, or one for each processor.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn answer(self, threads: Option<u16>, audience: &mut dyn Audience) -> Result<RightSized, Failure> {
        let Self { prices, scenario, warnings, policy, seeds, command } = self;
        let catalog = prices.catalog();
        let today = observed(&scenario, &policy);
        let kept: Mutex<Vec<(usize, Aside)>> = Mutex::new(Vec::new());
        let measured: Mutex<Option<Measured>> = Mutex::new(None);
        let first_seed = seeds.first().copied().unwrap_or(scenario.seed);
        let plan = |settings| Plan { settings, policies: vec![policy.clone()], seeds: seeds.clone() };
        let run = |scenario: &Scenario, cell: Cell<'_>, number: usize| {
            let outcome = points::outcome(scenario, catalog, cell)?;
            if let Ok(mut kept) = kept.lock() {
                kept.push((number, Aside::from_outcome(&outcome)));
            }
            let measures = number == 0 && cell.seed == first_seed;
            if let (true, Ok(mut measured)) = (measures, measured.lock()) {
                *measured = Some(measure(scenario, &policy, &outcome));
            }
            Ok(points::point(cell, &outcome))
        };
        let as_it_is = plan(1);
        let cells: Vec<Cell<'_>> = as_it_is.cells().collect();
        let all = cells.len() * Sizing::ALL.len();
        let watcher = audience.begin(all, &[scenario.duration]);
        let mut points = simulate(&cells, &|cell| run(&today, cell, cell.index), threads, &*watcher)?;
        let found = measured.lock().ok().and_then(|mut measured| measured.take()).unwrap_or_default();
        let others: Vec<Scenario> =
            Sizing::ALL[1..].iter().map(|sizing| sized(&scenario, &policy, &found, *sizing)).collect();
        let with_sizes = plan(others.len());
        let cells: Vec<Cell<'_>> = with_sizes.cells().collect();
        let one = |cell: Cell<'_>| run(&others[cell.setting], cell, cell.index + seeds.len());
        let more = simulate(&cells, &one, threads, &*watcher)?;
        drop(watcher);
        points.extend(more.into_iter().map(|(index, point)| (index + seeds.len(), point)));
        let is_whole = points.len() == all;
        let kept = kept.into_inner().unwrap_or_default();
        let runs = by_sizing(points, kept, seeds.len());
        let region = catalog.region(scenario.region.as_str()).map_err(prices::unusable)?;
        let mut answer = answer((&scenario, &policy), &found, &runs, (region.currency.code(), inputs(&scenario)));
        answer.warnings.precede(Caveats::from_warnings(&warnings));
        Ok(RightSized { answer, command, scenario, policy, measured: found, is_whole })
    }
}

/// The command line that repeats the answer.
fn command(request: &Request, (policy, count): (&str, u32), seed: u64) -> String {
    let scenario = request.scenario.display().to_string();
    let (replications, seed) = (count.to_string(), seed.to_string());
    let mut words = vec!["nodecast", "rightsize", &scenario, "--policy", policy];
    words.extend(["--replications", &replications, "--seed", &seed]);
    let options = edits::options(&edits::setting(&request.edits));
    words.extend(options.iter().map(String::as_str));
    let prices = request.pricing_data.as_ref().map(|directory| directory.display().to_string());
    words.extend(prices.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
    shell_line(&words)
}

/// The runs of every sizing, by seed; of seeds that not all sizings have met, none.
fn by_sizing(points: Vec<(usize, Point)>, mut kept: Vec<(usize, Aside)>, seeds: usize) -> Vec<Vec<Run>> {
    kept.sort_by_key(|(number, _)| *number);
    let mut all: Vec<Vec<Option<Run>>> = vec![vec![None; seeds]; Sizing::ALL.len()];
    for (number, point) in points {
        let aside = kept.binary_search_by_key(&number, |(item, _)| *item).ok().map(|at| kept[at].1.clone());
        let place = all.get_mut(number / seeds.max(1)).and_then(|item| item.get_mut(number % seeds.max(1)));
        if let (Some(place), Some(aside)) = (place, aside) {
            *place = Some((point, aside));
        }
    }
    let met = |seed: &usize| all.iter().all(|item| item[*seed].is_some());
    let whole: Vec<usize> = (0..seeds).filter(met).collect();
    all.iter().map(|item| whole.iter().filter_map(|seed| item[*seed].clone()).collect()).collect()
}

impl RightSized {
    /// Writes a kustomize component with the patches of a sizing, and the answer beside it, into a folder of its own that was [begun](begin); the names of the
    /// workloads that change.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn write(&self, directory: OutputDirectory, sizing: Sizing) -> Result<Vec<String>, Failure> {
        let patches = patches(&self.scenario, &self.policy, &self.measured, sizing);
        let json = self.answer.to_json().map_err(Failure::of_report)?;
        let text = |name: &str, text: &str| directory.file(name, |output| output.write_all(text.as_bytes()));
        text(MARKER, &json).map_err(Failure::of_report)?;
        for (name, content) in kustomization(&patches, sizing) {
            text(&name, &content).map_err(Failure::of_report)?;
        }
        directory.commit().map_err(Failure::of_report)?;
        Ok(patches.iter().map(|patch| patch.owner.1.to_string()).collect())
    }
}

/// Begins the folder of patches, in place of earlier ones.
///
/// # Errors
/// If something else stands there, another run writes there, or the system refuses.
pub fn begin(folder: &Path) -> Result<OutputDirectory, Failure> {
    OutputDirectory::begin_if(folder, check_replaceable).map_err(Failure::of_report)
}

/// Whether patches may be written into a folder: it holds nothing, or an earlier answer.
///
/// # Errors
/// If it holds anything else.
fn check_replaceable(folder: &Path) -> Result<(), OutputError> {
    check_written(folder, MARKER, &|entry, name| name.ends_with(".yaml") && !entry.is_dir())
}
