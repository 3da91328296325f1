//! Many settings of one scenario, and which are worth a look.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::compare::{about, assumed_of_prices};
use super::simulations::shell_line;
use super::{Failure, Prices, edits, prices, recorded_path};
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::experiment::axes::{self, Axis, Sampling, Setting};
use crate::experiment::comparison::About;
use crate::experiment::figures::{FIGURES, Unit, find};
use crate::experiment::inspection::inputs;
use crate::experiment::points::PointError;
use crate::experiment::presentation::{sweep_page, sweep_table};
use crate::experiment::question::Kind;
use crate::experiment::racing::Open;
use crate::experiment::sequential;
use crate::experiment::statistics::confidence_per_look;
use crate::experiment::sweep::{self, sweep};
use crate::experiment::{Cell, Point, Question, points};
use crate::report::directory::check_written;
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::lints::studies;
use crate::scenario::{Caveat, Caveats, Scenario};

/// What to try.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// The scenario file
    pub scenario: PathBuf,
    /// Setting to vary, in the scenario or a manifest, with a list of values (`duration=1h,2h`) or a range
    /// (`load[web].requests.scale=0.5..2:0.5`). Address an object by its kind:
    /// `NodePool[default].spec.disruption.consolidateAfter=30s,1m,5m`
    #[arg(long = "set", value_name = "PATH=VALUES", required = true)]
    pub set: Vec<String>,
    /// Try a random sample of N settings instead of every combination
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// How settings are drawn; the command line has words for it.
    #[arg(skip = Sampling::LatinHypercube)]
    pub sampling: Sampling,
    /// Policies to run with each setting [default: the first in the scenario]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', visible_alias = "policy")]
    pub policies: Vec<String>,
    /// Metric to plot against cost
    #[arg(long, value_name = "FIGURE", default_value = "pending_p99")]
    pub latency: String,
    /// Seeds per setting [default: the scenario's `replications`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub replications: Option<u32>,
    /// First seed [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// How long to simulate each setting; `None` for the scenario's time.
    #[arg(skip)]
    pub duration: Option<SimDuration>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

/// What is wrong with the question.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("unknown metric `{name}` for latency")]
#[diagnostic(help("known are {known}"))]
struct UnknownFigure {
    name: String,
    known: String,
}

/// Settings that cannot be held against each other.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the settings are billed in {first} and {other}")]
#[diagnostic(help("costs in different currencies cannot be compared; use regions with the same currency"))]
struct TwoCurrencies {
    first: &'static str,
    other: &'static str,
}

/// Runs the cells of a round: their points in the same order, `None` if it was stopped.
pub type RunRound<'r> = dyn FnMut(&[Cell<'_>]) -> Result<Option<Vec<Point>>, Failure> + 'r;

/// A sweep that has been read and can be run.
pub struct Sweep {
    prices: Prices,
    /// The scenario as its file has it.
    pub scenario: Scenario,
    /// What is asked, every name and value checked.
    pub question: Question,
    /// The scenario under every setting.
    pub scenarios: Vec<Scenario>,
    warnings: Caveats,
}

impl Sweep {
    /// Reads everything that the sweep needs, every setting of it.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: &Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let edits = edits::of_duration(request.duration)?;
        let (scenario, _) = edits::load(&request.scenario, prices.catalog(), &edits)?;
        let question = question(request, &scenario)?;
        Self::new(question, scenario, prices)
    }

    /// The sweep of a question that has been checked.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(question: Question, scenario: Scenario, prices: Prices) -> Result<Self, Failure> {
        let (mut scenarios, mut warnings) = scenarios(&question, prices.catalog())?;
        refuse_currencies(&scenarios, prices.catalog())?;
        warnings.precede(
            uneven_lengths(&scenarios).map(|note| Caveat::new(&studies::UNEVEN_LENGTHS, note)).into_iter().collect(),
        );
        scenarios.iter_mut().for_each(Scenario::draw_price_errors);
        Ok(Self { prices, scenario, question, scenarios, warnings })
    }

    /// One simulation of it.
    ///
    /// # Errors
    /// If the scenario lacks the policy, or the catalog prices for its region.
    pub fn simulate(&self, cell: Cell<'_>) -> Result<Point, PointError> {
        points::simulate(&self.scenarios[cell.setting], self.prices.catalog(), cell)
    }

    /// Simulates in rounds, and takes out after each but the last which settings are clearly worse than another, if that is wanted; `run` has what
    /// a round's cells come to, `None` where it was stopped, and so has this. The points are in order.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn in_rounds(&self, knockout: bool, run: &mut RunRound<'_>) -> Result<Option<Vec<Point>>, Failure> {
        let question = &self.question;
        let plan = question.plan();
        let looks = if knockout { sequential::looks(question.replications) } else { vec![question.replications] };
        let confidence = confidence_per_look(looks.len());
        let latency = latency(question.latency.as_deref().unwrap_or_default())?;
        let cost = cost(&self.scenarios);
        let mut open = Open::all(question);
        let mut points: BTreeMap<usize, Point> = BTreeMap::new();
        let mut from = 0;
        for to in looks {
            let is_due = |cell: &Cell<'_>| {
                let place = cell.seed.wrapping_sub(question.first_seed);
                let is_open = open.is_open(question, cell.setting, cell.policy);
                is_open && (u64::from(from)..u64::from(to)).contains(&place)
            };
            let cells: Vec<Cell<'_>> = plan.cells().filter(is_due).collect();
            let Some(new) = run(&cells)? else { return Ok(None) };
            points.extend(cells.iter().map(|cell| cell.index).zip(new));
            if to < question.replications {
                let known: Vec<Point> = points.values().cloned().collect();
                open.knock_out(question, (cost, latency), &known, confidence);
            }
            from = to;
        }
        Ok(Some(points.into_values().collect()))
    }

    /// What all of its points, in order, come to.
    ///
    /// # Errors
    /// If the catalog has no prices for the scenario's region.
    pub fn answer(self, points: &[Point]) -> Result<Swept, Failure> {
        let cost = cost(&self.scenarios);
        let Self { prices, scenario, question, warnings, .. } = self;
        let region = prices.catalog().region(scenario.region.as_str()).map_err(prices::unusable)?;
        let mut about = About {
            replications: u64::from(question.replications),
            // Each setting has its own.
            set: Vec::new(),
            ..about(&question, &scenario, region.currency.code(), points)
        };
        about.assumptions.extend(assumed_of_prices(scenario.ec2.cloud.price_errors.is_none(), points));
        let latency = latency(question.latency.as_deref().unwrap_or_default())?;
        Ok(Swept { answer: sweep(about, &question, (cost, latency), points, warnings), question })
    }
}

/// A sweep with what it was made from.
pub struct Swept {
    /// The answer.
    pub answer: sweep::Sweep,
    question: Question,
}

impl Swept {
    /// Writes the report into a directory that was [begun](begin).
    ///
    /// # Errors
    /// If the report cannot be made or written; what stood there is then as it was.
    pub fn write(&self, directory: OutputDirectory) -> Result<(), Failure> {
        let json = self.answer.to_json().map_err(Failure::of_report)?;
        let write = || {
            directory.file("sweep.json", |output| output.write_all(json.as_bytes()))?;
            let page = sweep_page::render(&self.answer, &command(&self.question, self.answer.is_sequential()));
            directory.file("sweep.html", |output| output.write_all(page.as_bytes()))?;
            directory.file("sweep.csv", |output| sweep_table::csv(&self.answer, output))?;
            directory.commit()
        };
        write().map(|_| ()).map_err(Failure::of_report)
    }
}

/// What is asked, every name and value checked.
fn question(request: &Request, scenario: &Scenario) -> Result<Question, Failure> {
    let seed = request.seed.unwrap_or(scenario.seed);
    let axes = request.set.iter().map(|text| Axis::parse(text)).collect::<Result<Vec<_>, _>>();
    let axes = axes.map_err(Failure::bad_input)?;
    edits::said_once(request.duration, &request.set, &axes)?;
    let settings: Vec<Setting> = match request.sample {
        None => axes::grid(&axes),
        Some(count) => axes::sample(&axes, count, request.sampling, seed),
    }
    .map_err(Failure::bad_input)?;
    let mut policies: Vec<String> = request.policies.clone();
    if policies.is_empty() {
        policies.extend(scenario.policies.first().map(|policy| policy.name.clone()));
    }
    for name in &policies {
        scenario.for_policy(Some(name))?;
    }
    latency(&request.latency)?;
    Ok(Question {
        kind: Kind::Sweep,
        scenario: recorded_path(&request.scenario)?,
        inputs: inputs(scenario),
        pricing_data: request.pricing_data.as_deref().map(recorded_path).transpose()?,
        policies,
        first_seed: seed,
        replications: request.replications.unwrap_or(scenario.replications),
        settings,
        axes: axes_options(request),
        duration: request.duration.map(|duration| duration.to_string()),
        latency: Some(request.latency.clone()),
    })
}

/// The number of the figure called `name`, which is measured in seconds.
fn latency(name: &str) -> Result<usize, Failure> {
    match find(name) {
        Some((position, figure)) if figure.unit == Unit::Seconds => Ok(position),
        _ => {
            let known: Vec<&str> =
                FIGURES.iter().filter(|figure| figure.unit == Unit::Seconds).map(|figure| figure.name).collect();
            Err(Failure::bad_input(UnknownFigure { name: name.to_owned(), known: known.join(", ") }))
        }
    }
}

/// The number of the figure by which a setting is cheap: settings that run for different times are held against each other by the month.
fn cost(scenarios: &[Scenario]) -> usize {
    let name = if uneven_lengths(scenarios).is_some() { "cost_per_month" } else { "cost" };
    find(name).map_or(0, |(position, _)| position)
}

/// What is to be known where settings run for different times.
fn uneven_lengths(scenarios: &[Scenario]) -> Option<String> {
    let lengths: BTreeSet<SimDuration> = scenarios.iter().map(|scenario| scenario.duration).collect();
    let (least, most) = lengths.first().zip(lengths.last()).filter(|(least, most)| least != most)?;
    Some(format!(
        "settings run for {least} to {most}: costs are compared per month, but counts (pods that waited, evictions, unanswered requests, pod-minutes) cover runs of different lengths"
    ))
}

/// Refuses settings that are billed in two currencies.
fn refuse_currencies(scenarios: &[Scenario], catalog: &Catalog) -> Result<(), Failure> {
    let mut first = None;
    for scenario in scenarios {
        let code = catalog.region(scenario.region.as_str()).map_err(prices::unusable)?.currency.code();
        let first = *first.get_or_insert(code);
        if code != first {
            return Err(Failure::bad_input(TwoCurrencies { first, other: code }));
        }
    }
    Ok(())
}

/// The scenario under every setting, so that a bad value is found before the first simulation, and the warnings of all.
fn scenarios(question: &Question, catalog: &Catalog) -> Result<(Vec<Scenario>, Caveats), Failure> {
    let load = |setting: &Setting| {
        let edits = edits::of_setting_in(question, setting)?;
        edits::load(Path::new(&question.scenario), catalog, &edits)
    };
    let (mut scenarios, mut all): (Vec<Scenario>, Caveats) = (Vec::new(), Caveats::new());
    for setting in &question.settings {
        let (scenario, warnings) = load(setting)?;
        if scenarios.is_empty() {
            all = scenario.caveats();
        }
        all.merge(&Caveats::from_warnings(&warnings));
        scenarios.push(scenario);
    }
    all.precede(idle_axes(question, &scenarios, catalog));
    Ok((scenarios, all))
}

/// Warnings of axes of which no value changes anything in a policy that runs: settings that differ in nothing else are the same.
fn idle_axes(question: &Question, scenarios: &[Scenario], catalog: &Catalog) -> Caveats {
    let Some((first, scenario)) = question.settings.first().zip(scenarios.first()) else { return Caveats::new() };
    let idle = |place: &usize| {
        let values = question.settings.iter().filter_map(|setting| setting.get(*place)).map(|(_, value)| value);
        let mut values: Vec<&String> = values.filter(|value| **value != first[*place].1).collect();
        values.dedup();
        let mut seen = values.iter().take(AXIS_VALUES_MAX).map(|value| {
            let mut other = first.clone();
            other[*place].1.clone_from(value);
            edits::of_setting_in(question, &other).is_ok_and(|edits| {
                let loaded = edits::load(Path::new(&question.scenario), catalog, &edits);
                loaded.is_ok_and(|(other, _)| edits::same(scenario, &other, &question.policies, catalog))
            })
        });
        !values.is_empty() && seen.all(|same| same)
    };
    let places = (0..first.len()).filter(idle);
    places
        .map(|place| {
            let path = &first[place].0;
            edits::idle_caveat(&format!("no value of `{path}` has any effect"), &question.policies)
        })
        .collect()
}

/// Values of an axis that are tried to find one that changes anything.
const AXIS_VALUES_MAX: usize = 5;

/// The command line that repeats the sweep.
fn command(question: &Question, knockout: bool) -> String {
    let (policies, replications, seed) =
        (question.policies.join(","), question.replications.to_string(), question.first_seed.to_string());
    let mut words = vec!["nodecast", "sweep", &question.scenario];
    words.extend(question.axes.iter().map(String::as_str));
    words.extend(["--policies", &policies, "--replications", &replications, "--seed", &seed]);
    words.extend(knockout.then_some("--knockout"));
    words.extend(question.latency.iter().flat_map(|name| ["--latency", name.as_str()]));
    words.extend(question.duration.iter().flat_map(|duration| ["--duration", duration.as_str()]));
    words.extend(question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
    shell_line(&words)
}

/// The options that settings come from, as the command line has them.
fn axes_options(request: &Request) -> Vec<String> {
    let mut words: Vec<String> = request.set.iter().flat_map(|text| ["--set".to_owned(), text.clone()]).collect();
    if let Some(count) = request.sample {
        let sampling = match request.sampling {
            Sampling::LatinHypercube => "latin-hypercube",
            Sampling::Random => "random",
        };
        words.extend(["--sample", &count.to_string(), "--sampling", sampling].map(str::to_owned));
    }
    words
}

/// Where the report goes if nobody says otherwise.
pub fn output_directory(scenario: &Scenario) -> PathBuf {
    Path::new("reports").join(format!("{}-swept", scenario.name))
}

/// Begins the directory of a report, in place of an earlier sweep.
///
/// # Errors
/// If something else stands there, another run writes there, or the system refuses.
pub fn begin(out: &Path) -> Result<OutputDirectory, Failure> {
    OutputDirectory::begin_if(out, check_replaceable).map_err(Failure::of_report)
}

/// Whether `target` may go: an earlier sweep, with nothing added.
///
/// # Errors
/// If it may not, or cannot be looked into.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "sweep.json", &|_, name| matches!(name, "sweep.html" | "sweep.csv"))
}
