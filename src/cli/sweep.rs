//! `nodecast sweep`: many settings of one scenario, and which are worth a look.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::compare::about;
use super::edits;
use super::experiment::{self, Common, Parts, report_failure};
use super::prices::{self, Prices};
use super::run::shell_line;
use super::{Console, Failure, Format};
use crate::catalog::Catalog;
use crate::experiment::axes::{self, Axis, Sampling, Setting};
use crate::experiment::comparison::About;
use crate::experiment::figures::{FIGURES, Unit, find};
use crate::experiment::model::MODEL;
use crate::experiment::presentation::{sweep_page, sweep_table};
use crate::experiment::question::Kind;
use crate::experiment::sweep::{Sweep, sweep};
use crate::experiment::{Cell, Point, Question, points};
use crate::report::directory::check_written;
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::{Limits, Scenario};

/// Try many settings of a scenario and find the front of cost against waiting
///
/// Also the cheapest setting that meets all objectives. Writes sweep.html, sweep.json and sweep.csv into the output directory. Finished simulations are kept in a file beside
/// it until then: interrupted by Ctrl-C or anything else, the same command goes on where it stopped.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// A value of the scenario or of a manifest, and what to try for it: a list (`duration=1h,2h`), or a range
    /// (`load[web].requests.scale=0.5..2:0.5`). Objects are named by kind:
    /// `NodePool[default].spec.disruption.consolidateAfter=30s,1m,5m`
    #[arg(long = "set", value_name = "PATH=VALUES", required = true)]
    set: Vec<String>,
    /// Try this many settings, drawn from the axes, instead of every combination
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// How settings are drawn
    #[arg(long, value_enum, default_value = "latin-hypercube", requires = "sample")]
    sampling: SamplingArgument,
    /// The policies to try each setting under [default: the scenario's first]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policies: Vec<String>,
    /// The figure to hold cost against
    #[arg(long, value_name = "FIGURE", default_value = "pending_p99")]
    latency: String,
    /// How many seeds for each setting [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: Option<u32>,
    /// The first seed [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    #[command(flatten)]
    parts: Parts,
    /// Forget the finished simulations of an interrupted sweep and begin anew
    #[arg(long)]
    restart: bool,
    /// The directory for the report [default: reports/<name>-swept, for parts reports/<name>-parts]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or sweep.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

/// How settings are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum SamplingArgument {
    /// Every axis is cut into as many equal parts as there are settings, and each part is used once.
    LatinHypercube,
    /// Each value of its own.
    Random,
}

/// What is wrong with the question.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum SweepError {
    #[error("there is no figure `{name}` to hold cost against")]
    #[diagnostic(help("known are {known}"))]
    UnknownFigure { name: String, known: String },
    #[error("`{}` holds simulations of another sweep", path.display())]
    #[diagnostic(help("begin anew with --restart, or name another directory with --out"))]
    OtherSweep { path: PathBuf },
}

/// Runs the sweep, or what is left of it.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.common.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    let loaded = Scenario::load_with(&arguments.scenario, catalog, &Limits::default());
    let (scenario, _) = loaded.map_err(Failure::bad_input)?;
    let question = question(arguments, &scenario)?;
    let (scenarios, warnings) = scenarios(&question, catalog)?;
    if let Some(shard) = arguments.parts.shard {
        let one = |cell: Cell<'_>| points::simulate(&scenarios[cell.setting], catalog, cell);
        let out = arguments.out.as_deref();
        return experiment::run_part(question, shard, (&one, &arguments.common), out, &scenario, console);
    }
    let out = output_directory(arguments.out.as_deref(), &scenario);
    OutputDirectory::check_if(&out, check_replaceable).map_err(|error| report_failure(error.into()))?;
    let store = Store::open(&unfinished(&out), &question, arguments.restart)?;
    let points = finish(arguments, &question, &scenarios, catalog, &store, console)?;
    let Some(points) = points else {
        console.tell("stopped; the same command goes on from here");
        return Err(Failure::silent(Failure::INTERRUPTED));
    };
    let output = (out.as_path(), arguments.format, arguments.common.quiet);
    conclude(&question, (&scenario, warnings), catalog, points, output, console)?;
    store.remove()
}

/// Runs what is left; `None` if it was stopped.
fn finish(
    arguments: &Arguments,
    question: &Question,
    scenarios: &[Scenario],
    catalog: &Catalog,
    store: &Store,
    console: &mut Console<'_>,
) -> Result<Option<Vec<Point>>, Failure> {
    let plan = question.plan();
    let mut points: Vec<Option<Point>> = vec![None; plan.len()];
    for (index, point) in &store.known {
        if let Some(place) = points.get_mut(*index) {
            *place = Some(point.clone());
        }
    }
    let cells: Vec<Cell<'_>> = plan.cells().filter(|cell| points[cell.index].is_none()).collect();
    if cells.len() < plan.len() && !arguments.common.quiet {
        console.tell(&format!("going on: {} of {} simulations were done before", plan.len() - cells.len(), plan.len()));
    }
    let durations = cells.iter().map(|cell| scenarios[cell.setting].duration);
    experiment::announce(console, &arguments.common, cells.len(), durations);
    let one = |cell: Cell<'_>| points::simulate(&scenarios[cell.setting], catalog, cell);
    let keep = |index: usize, point: &Point| store.keep(index, point);
    let new = experiment::simulate(&cells, &one, &arguments.common, console, keep)?;
    for (index, point) in new {
        points[index] = Some(point);
    }
    Ok(points.into_iter().collect())
}

/// What is asked, every name and value checked.
fn question(arguments: &Arguments, scenario: &Scenario) -> Result<Question, Failure> {
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let axes = arguments.set.iter().map(|text| Axis::parse(text)).collect::<Result<Vec<_>, _>>();
    let axes = axes.map_err(Failure::bad_input)?;
    let settings: Vec<Setting> = match arguments.sample {
        None => axes::grid(&axes),
        Some(count) => axes::sample(
            &axes,
            count,
            match arguments.sampling {
                SamplingArgument::LatinHypercube => Sampling::LatinHypercube,
                SamplingArgument::Random => Sampling::Random,
            },
            seed,
        ),
    }
    .map_err(Failure::bad_input)?;
    let mut policies: Vec<String> = arguments.policies.clone();
    if policies.is_empty() {
        policies.extend(scenario.policies.first().map(|policy| policy.name.clone()));
    }
    for name in &policies {
        scenario.for_policy(Some(name)).map_err(Failure::bad_input)?;
    }
    latency(&arguments.latency)?;
    Ok(Question {
        kind: Kind::Sweep,
        scenario: arguments.scenario.display().to_string(),
        inputs: experiment::inputs(scenario),
        pricing_data: arguments.common.pricing_data.as_ref().map(|directory| directory.display().to_string()),
        policies,
        first_seed: seed,
        replications: arguments.replications.unwrap_or(scenario.replications),
        settings,
        axes: axes_options(arguments),
        latency: Some(arguments.latency.clone()),
    })
}

/// The number of the figure called `name`, which is measured in seconds.
fn latency(name: &str) -> Result<usize, Failure> {
    match find(name) {
        Some((position, figure)) if figure.unit == Unit::Seconds => Ok(position),
        _ => {
            let known: Vec<&str> =
                FIGURES.iter().filter(|figure| figure.unit == Unit::Seconds).map(|figure| figure.name).collect();
            Err(Failure::bad_input(SweepError::UnknownFigure { name: name.to_owned(), known: known.join(", ") }))
        }
    }
}

/// The scenario under every setting, so that a bad value is found before the first simulation, and the warnings of all.
fn scenarios(question: &Question, catalog: &Catalog) -> Result<(Vec<Scenario>, Vec<String>), Failure> {
    let load = |setting: &Setting| {
        let edits = edits::of_setting(setting).map_err(Failure::bad_input)?;
        edits::load(Path::new(&question.scenario), catalog, &edits)
    };
    let (mut scenarios, mut all) = (Vec::new(), Vec::new());
    for setting in &question.settings {
        let (scenario, warnings) = load(setting)?;
        for line in experiment::warning_lines(&warnings) {
            if !all.contains(&line) {
                all.push(line);
            }
        }
        scenarios.push(scenario);
    }
    all.splice(0..0, idle_axes(question, &scenarios, catalog));
    Ok((scenarios, all))
}

/// Warnings of axes of which no value changes anything in a policy that runs: settings that differ in nothing else are the same.
fn idle_axes(question: &Question, scenarios: &[Scenario], catalog: &Catalog) -> Vec<String> {
    let Some((first, scenario)) = question.settings.first().zip(scenarios.first()) else { return Vec::new() };
    let idle = |place: &usize| {
        let values = question.settings.iter().filter_map(|setting| setting.get(*place)).map(|(_, value)| value);
        let mut values: Vec<&String> = values.filter(|value| **value != first[*place].1).collect();
        values.dedup();
        let mut seen = values.iter().take(AXIS_VALUES_MAX).map(|value| {
            let mut other = first.clone();
            other[*place].1.clone_from(value);
            edits::of_setting(&other).is_ok_and(|edits| {
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
            edits::idle_line(&format!("no value of `{path}` changes anything"), &question.policies)
        })
        .collect()
}

/// Values of an axis that are tried to find one that changes anything.
const AXIS_VALUES_MAX: usize = 5;

/// Finished simulations on disk: the question in the first line, then a line for each.
struct Store {
    path: PathBuf,
    known: Vec<(usize, Point)>,
    file: Mutex<File>,
}

/// The first line of the file of finished simulations.
#[derive(Serialize, Deserialize)]
struct Header {
    program: String,
    program_version: String,
    /// Simulations of another model have other figures.
    model: u32,
    question: Question,
}

impl Store {
    /// Opens the file at `path`, with what it holds if it belongs to `question`.
    fn open(path: &Path, question: &Question, restart: bool) -> Result<Self, Failure> {
        let header = Header {
            program: crate::report::summary::PROGRAM.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            model: MODEL,
            question: question.clone(),
        };
        let failed = |action: &'static str| {
            let path = path.to_owned();
            move |reason: std::io::Error| report_failure(OutputError::Io { action, path, reason }.into())
        };
        let first = serde_json::to_string(&header).map_err(|error| report_failure(error.into()))?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed("create the directory of"))?;
        }
        let mut known = Vec::new();
        let mut kept = first.clone() + "\n";
        if path.exists() && !restart {
            let mut lines = BufReader::new(File::open(path).map_err(failed("read"))?).lines();
            match lines.next() {
                // Killed before its first line was whole.
                None => {}
                Some(line) if line.as_ref().is_ok_and(|line| *line == first) => {
                    // The last line may be cut off; what follows it was never written.
                    for line in lines.map_while(Result::ok) {
                        let Ok(entry) = serde_json::from_str::<(usize, Point)>(&line) else { break };
                        kept += &line;
                        kept.push('\n');
                        known.push(entry);
                    }
                }
                Some(line) if line.as_ref().is_ok_and(|line| first.starts_with(line.as_str())) => {}
                Some(_) => return Err(Failure::bad_input(SweepError::OtherSweep { path: path.to_owned() })),
            }
        }
        experiment::write_whole(path, &kept)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed("write"))?;
        Ok(Self { path: path.to_owned(), known, file: Mutex::new(file) })
    }

    /// Keeps a finished simulation. One that cannot be kept is only run again.
    fn keep(&self, index: usize, point: &Point) {
        let Ok(line) = serde_json::to_string(&(index, point)) else { return };
        if let Ok(mut file) = self.file.lock() {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Removes the file, when the report holds everything.
    fn remove(self) -> Result<(), Failure> {
        std::fs::remove_file(&self.path).map_err(|reason| {
            report_failure(OutputError::Io { action: "remove", path: self.path.clone(), reason }.into())
        })
    }
}

/// Where finished simulations of a sweep are kept: beside its directory.
fn unfinished(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished.jsonl");
    out.with_file_name(name)
}

/// Reports on parts that were put together.
pub(super) fn conclude_merged(
    question: &Question,
    scenario: &Scenario,
    catalog: &Catalog,
    points: Vec<Point>,
    (out, format, quiet): (Option<&Path>, Format, bool),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let out = output_directory(out, scenario);
    OutputDirectory::check_if(&out, check_replaceable).map_err(|error| report_failure(error.into()))?;
    let (_, warnings) = scenarios(question, catalog)?;
    conclude(question, (scenario, warnings), catalog, points, (&out, format, quiet), console)
}

/// Writes the report and prints the answer.
fn conclude(
    question: &Question,
    (scenario, warnings): (&Scenario, Vec<String>),
    catalog: &Catalog,
    points: Vec<Point>,
    (out, format, quiet): (&Path, Format, bool),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let failed = |error: OutputError| report_failure(error.into());
    let region = catalog.region(scenario.region.as_str()).map_err(prices::unusable)?;
    let about = About {
        replications: u64::from(question.replications),
        // Each setting has its own.
        set: Vec::new(),
        ..about(question, scenario, region.currency.code(), &points)
    };
    let latency = latency(question.latency.as_deref().unwrap_or_default())?;
    let answer: Sweep = sweep(about, question, latency, &points, warnings);
    let json = answer.to_json().map_err(|error| report_failure(error.into()))?;
    let directory = OutputDirectory::begin_if(out, check_replaceable).map_err(failed)?;
    directory.file("sweep.json", |output| output.write_all(json.as_bytes())).map_err(failed)?;
    let page = sweep_page::render(&answer, &command(question));
    directory.file("sweep.html", |output| output.write_all(page.as_bytes())).map_err(failed)?;
    directory.file("sweep.csv", |output| sweep_table::csv(&answer, output)).map_err(failed)?;
    directory.commit().map_err(failed)?;
    match format {
        Format::Table => console.data(&sweep_table::table(&answer))?,
        Format::Json => console.data(&json)?,
    }
    if !quiet {
        console.tell(&format!("report: {}", out.join("sweep.html").display()));
    }
    Ok(())
}

/// The command line that repeats the sweep.
fn command(question: &Question) -> String {
    let (policies, replications, seed) =
        (question.policies.join(","), question.replications.to_string(), question.first_seed.to_string());
    let mut words = vec!["nodecast", "sweep", &question.scenario];
    words.extend(question.axes.iter().map(String::as_str));
    words.extend(["--policies", &policies, "--replications", &replications, "--seed", &seed]);
    words.extend(question.latency.iter().flat_map(|name| ["--latency", name.as_str()]));
    words.extend(question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
    shell_line(&words)
}

/// The options that settings come from, as the command line has them.
fn axes_options(arguments: &Arguments) -> Vec<String> {
    let mut words: Vec<String> = arguments.set.iter().flat_map(|text| ["--set".to_owned(), text.clone()]).collect();
    if let Some(count) = arguments.sample {
        let sampling = match arguments.sampling {
            SamplingArgument::LatinHypercube => "latin-hypercube",
            SamplingArgument::Random => "random",
        };
        words.extend(["--sample", &count.to_string(), "--sampling", sampling].map(str::to_owned));
    }
    words
}

/// Where the report goes: what the command line says, else `reports/<name>-swept`.
fn output_directory(stated: Option<&Path>, scenario: &Scenario) -> PathBuf {
    stated.map_or_else(|| Path::new("reports").join(format!("{}-swept", scenario.name)), Path::to_owned)
}

/// Whether `target` may go: an earlier sweep, with nothing added.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "sweep.json", &|_, name| matches!(name, "sweep.html" | "sweep.csv"))
}
