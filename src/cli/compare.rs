//! `nodecast compare`: every policy with every seed, and what the differences are worth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rayon::prelude::*;

use super::edits::{self, Edits};
use super::experiment::{self, Common, Parts, report_failure};
use super::prices::{self, Prices};
use super::{Console, Failure, Format};
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::experiment::axes::Setting;
use crate::experiment::comparison::{About, Comparison, compare};
use crate::experiment::presentation::{page, table};
use crate::experiment::question::Kind;
use crate::experiment::uneven::{Footing, weigh};
use crate::experiment::{Cell, Point, Question, points};
use crate::report::directory::{check_written, is_report};
use crate::report::open_metrics::{self, Extent};
use crate::report::{self, OutputDirectory, OutputError, Summary};
use crate::scenario::{Scenario, Warning};
use crate::simulation::outcome::UNPRICED;
use crate::simulation::{self, Outcome};

/// Compare the policies of a scenario over many seeds, with confidence intervals
///
/// Every policy meets the same load, prices and capacity, seed by seed, so that small differences show after few
/// replications. Writes comparison.html, comparison.json, replications.csv and one report for each policy into the
/// output directory, which is replaced as a whole. Ctrl-C stops after the simulations that run, and reports on the
/// replications that are whole.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// The policies to compare, the one that the others are held against first [default: all, in order]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policies: Vec<String>,
    /// How many seeds [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: Option<u32>,
    /// The first seed [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Run until every cost difference is known to this share of the first policy's cost on either side, for example 2%
    #[arg(long, value_name = "PERCENT", value_parser = percentage, conflicts_with = "shard")]
    precision: Option<f64>,
    /// How many replications to stop at if the precision is not reached
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "precision")]
    replications_max: u32,
    #[command(flatten)]
    edits: Edits,
    #[command(flatten)]
    parts: Parts,
    /// The directory for the report [default: reports/<name>-compared, for parts reports/<name>-parts]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or comparison.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

/// A share written as `2%` or `0.02`.
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let wrong = || "write for example `2%`".to_owned();
    let value = match text.strip_suffix('%') {
        Some(digits) => digits.trim().parse::<f64>().map_err(|_| wrong())? / 100.0,
        None => text.parse::<f64>().map_err(|_| wrong())?,
    };
    if value.is_finite() && value > 0.0 && value <= 1.0 { Ok(value) } else { Err(wrong()) }
}

/// Runs and compares. Nothing is written before all simulations are over.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.common.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    let edits = arguments.edits.parse()?;
    let (scenario, warnings) = edits::load(&arguments.scenario, catalog, &edits)?;
    let mut question = question(arguments, &scenario, edits::setting(&edits))?;
    let one = |cell: Cell<'_>| points::simulate(&scenario, catalog, cell);
    if let Some(shard) = arguments.parts.shard {
        let out = arguments.out.as_deref();
        return experiment::run_part(question, shard, (&one, &arguments.common), out, &scenario, console);
    }
    let out = output_directory(arguments.out.as_deref(), &scenario);
    OutputDirectory::check_if(&out, check_replaceable).map_err(|error| report_failure(error.into()))?;
    let firsts = Firsts::default();
    experiment::announce(console, &arguments.common, question.plan().len(), [scenario.duration]);
    let mut points = run_cells(arguments, &question, (0, &firsts), &scenario, catalog, console)?;
    let mut whole = points.len() == question.plan().len();
    let mut comparison = compared(&question, &scenario, &warnings, catalog, points.clone())?;
    while let (Some(precision), true) = (arguments.precision, whole) {
        let Some(next) = next_count(&comparison, precision, question.replications, arguments.replications_max) else {
            break;
        };
        let done = question.plan().len();
        question.replications = next;
        experiment::announce(console, &arguments.common, question.plan().len() - done, [scenario.duration]);
        points.extend(run_cells(arguments, &question, (done, &firsts), &scenario, catalog, console)?);
        whole = points.len() == question.plan().len();
        comparison = compared(&question, &scenario, &warnings, catalog, points.clone())?;
    }
    let answer = Answer { question: &question, scenario: &scenario, comparison: &comparison, firsts };
    let output = (out.as_path(), arguments.format, arguments.common.quiet);
    answer.conclude(catalog, output, arguments.common.threads, console)?;
    if whole { Ok(()) } else { Err(Failure::silent(Failure::INTERRUPTED)) }
}

/// What is asked, every name checked.
fn question(arguments: &Arguments, scenario: &Scenario, setting: Setting) -> Result<Question, Failure> {
    let mut policies: Vec<String> = arguments.policies.clone();
    if policies.is_empty() {
        policies.extend(scenario.policies.iter().map(|policy| policy.name.clone()));
    }
    for (position, name) in policies.iter().enumerate() {
        scenario.for_policy(Some(name)).map_err(Failure::bad_input)?;
        if policies[..position].contains(name) {
            return Err(Failure::bad_input(NamedTwice(name.clone())));
        }
    }
    Ok(Question {
        kind: Kind::Compare,
        scenario: arguments.scenario.display().to_string(),
        inputs: experiment::inputs(scenario),
        pricing_data: arguments.common.pricing_data.as_ref().map(|directory| directory.display().to_string()),
        policies,
        first_seed: arguments.seed.unwrap_or(scenario.seed),
        replications: arguments.replications.unwrap_or(scenario.replications),
        settings: vec![setting],
        axes: Vec::new(),
        latency: None,
    })
}

#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`--policies` names `{0}` twice")]
#[diagnostic(help("name each policy once"))]
struct NamedTwice(String);

/// Each policy's first replication as far as it has been run: what the policy's own report is made of.
pub(super) type Firsts = Mutex<BTreeMap<String, Outcome>>;

/// Runs the cells of the question from a number on, and keeps first replications.
fn run_cells(
    arguments: &Arguments,
    question: &Question,
    (from, firsts): (usize, &Firsts),
    scenario: &Scenario,
    catalog: &Catalog,
    console: &Console<'_>,
) -> Result<Vec<Point>, Failure> {
    let plan = question.plan();
    let cells: Vec<Cell<'_>> = plan.cells().skip(from).collect();
    let one = |cell: Cell<'_>| {
        let outcome = points::outcome(scenario, catalog, cell)?;
        let point = points::point(cell, &outcome);
        if let (true, Ok(mut firsts)) = (cell.seed == question.first_seed, firsts.lock()) {
            firsts.insert(cell.policy.to_owned(), outcome);
        }
        Ok(point)
    };
    let points = experiment::simulate(&cells, &one, &arguments.common, console, |_, _| {})?;
    Ok(points.into_iter().map(|(_, point)| point).collect())
}

/// The number of replications to go on with; `None` when there are enough, or no more can be had.
fn next_count(comparison: &Comparison, precision: f64, have: u32, most: u32) -> Option<u32> {
    if have >= most || comparison.cost_precision().is_some_and(|known| known <= precision) {
        return None;
    }
    // At least a quarter more, since the spread is only estimated; at most four times as many, for the same reason.
    let needed = comparison.replications_needed(precision).unwrap_or(u64::from(have) + 1);
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    let (least, largest) = (have.saturating_add((have / 4).max(2)), have.saturating_mul(4).max(10));
    Some(needed.clamp(least, largest.max(least)).min(most))
}

/// The comparison of `points`.
pub(super) fn compared(
    question: &Question,
    scenario: &Scenario,
    warnings: &[Warning],
    catalog: &Catalog,
    points: Vec<Point>,
) -> Result<Comparison, Failure> {
    let region = catalog.region(scenario.region.as_str()).map_err(prices::unusable)?;
    let about = about(question, scenario, region.currency.code(), &points);
    let setting = question.settings.first();
    let mut lines = setting.map_or_else(Vec::new, |own| edits::without_effect(question, own, scenario, catalog));
    lines.extend(experiment::warning_lines(warnings));
    let mut comparison = compare(about, &question.policies, points, lines);
    let policies = question.policies.iter().filter_map(|name| Some((name, scenario.for_policy(Some(name)).ok()?)));
    let footings: Vec<Footing> = policies.map(|(name, policy)| Footing::of(name, policy)).collect();
    weigh(&mut comparison, &footings);
    Ok(comparison)
}

/// What an experiment was about.
pub(super) fn about(question: &Question, scenario: &Scenario, currency: &str, points: &[Point]) -> About {
    About {
        scenario: scenario.name.clone(),
        start: scenario.start.to_string(),
        duration_seconds: scenario.duration.as_secs_f64(),
        warm_up_seconds: (scenario.warm_up > SimDuration::ZERO).then(|| scenario.warm_up.as_secs_f64()),
        region: scenario.region.to_string(),
        currency: currency.to_owned(),
        price_date: price_date(points),
        first_seed: question.first_seed,
        replications_planned: u64::from(question.replications),
        replications: 0,
        inputs: question.inputs.clone(),
        set: question.settings.first().map(edits::texts).unwrap_or_default(),
        assumptions: scenario.assumptions.clone(),
    }
}

/// The dates of the prices of the first simulation that launched anything.
fn price_date(points: &[Point]) -> String {
    let dated = points.iter().find(|point| point.price_date != UNPRICED);
    dated.or(points.first()).map_or_else(String::new, |point| point.price_date.clone())
}

/// A comparison with what it was made from.
pub(super) struct Answer<'a> {
    /// What was asked.
    pub question: &'a Question,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The comparison.
    pub comparison: &'a Comparison,
    /// First replications that are at hand; the others are run again.
    pub firsts: Firsts,
}

impl Answer<'_> {
    /// Writes the report on as many threads as are asked for, and prints the answer.
    pub(super) fn conclude(
        &self,
        catalog: &Catalog,
        (out, format, quiet): (&Path, Format, bool),
        threads: Option<u16>,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        if self.comparison.about.replications == 0 {
            console.tell("stopped before one replication was whole: there is nothing to report");
            return Err(Failure::silent(Failure::INTERRUPTED));
        }
        let notes = self.write(catalog, out, threads)?;
        match format {
            Format::Table => console.data(&table::table(self.comparison))?,
            Format::Json => {
                let json = self.comparison.to_json().map_err(|error| report_failure(error.into()))?;
                console.data(&json)?;
            }
        }
        if !quiet {
            notes.iter().for_each(|note| console.tell(note));
            console.tell(&format!("report: {}", out.join("comparison.html").display()));
        }
        Ok(())
    }

    /// Writes the report; says what is left out of it.
    fn write(&self, catalog: &Catalog, out: &Path, threads: Option<u16>) -> Result<Vec<String>, Failure> {
        let failed = |error: OutputError| report_failure(error.into());
        let directory = OutputDirectory::begin_if(out, check_replaceable).map_err(failed)?;
        let json = self.comparison.to_json().map_err(|error| report_failure(error.into()))?;
        directory.file("comparison.json", |output| output.write_all(json.as_bytes())).map_err(failed)?;
        let policies = self.question.policies.par_iter().with_max_len(1);
        let runs = || policies.map(|policy| self.run(policy, catalog)).collect::<Result<Vec<Outcome>, Failure>>();
        let runs = experiment::on_threads(threads, runs)??;
        let named: Vec<(&str, &Outcome)> = self.question.policies.iter().map(String::as_str).zip(&runs).collect();
        let page = page::render(self.comparison, &self.command(), &named);
        directory.file("comparison.html", |output| output.write_all(page.as_bytes())).map_err(failed)?;
        directory.file("replications.csv", |output| table::replications(self.comparison, output)).map_err(failed)?;
        let reports = named.par_iter().with_max_len(1);
        let write = || reports.try_for_each(|(policy, outcome)| self.write_run(&directory, policy, outcome));
        experiment::on_threads(threads, write)??;
        directory.commit().map_err(failed)?;
        let mut left_out = Vec::new();
        if let Some(settings) = self.metrics() {
            for (policy, outcome) in &named {
                left_out.extend(Extent::of(outcome, settings).notes().iter().map(|note| format!("{policy}/{note}")));
            }
        }
        Ok(left_out)
    }

    /// What each policy's report shows to Prometheus.
    fn metrics(&self) -> Option<open_metrics::Settings> {
        self.scenario.output.open_metrics.map(open_metrics::Settings::every)
    }

    /// A policy's first replication.
    fn run(&self, policy: &str, catalog: &Catalog) -> Result<Outcome, Failure> {
        let kept = self.firsts.lock().ok().and_then(|mut firsts| firsts.remove(policy));
        if let Some(outcome) = kept {
            return Ok(outcome);
        }
        let variant = self.scenario.for_policy(Some(policy)).map_err(Failure::bad_input)?;
        let seed = self.question.first_seed;
        simulation::run(self.scenario, variant, catalog, seed, &mut |_| {}).map_err(prices::unusable)
    }

    /// The whole report of a policy's first replication, in a folder of its own.
    fn write_run(&self, directory: &OutputDirectory, policy: &str, outcome: &Outcome) -> Result<(), Failure> {
        let seed = self.question.first_seed.to_string();
        let mut words = vec!["nodecast", "run", &self.question.scenario, "--policy", policy, "--seed", &seed];
        let edits = self.edits();
        words.extend(edits.iter().map(String::as_str));
        words.extend(self.question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
        let command = super::run::shell_line(&words);
        let summary = Summary::of(outcome);
        report::write_into(directory, policy, outcome, &summary, &command, self.metrics()).map_err(report_failure)
    }

    /// What was changed before anything ran, as the command line has it.
    fn edits(&self) -> Vec<String> {
        self.question.settings.iter().flat_map(edits::options).collect()
    }

    /// The command line that repeats the comparison, whole, on one machine.
    fn command(&self) -> String {
        let question = self.question;
        let (policies, replications, seed) =
            (question.policies.join(","), question.replications.to_string(), question.first_seed.to_string());
        let mut words = vec!["nodecast", "compare", &question.scenario, "--policies", &policies];
        words.extend(["--replications", &replications, "--seed", &seed]);
        let edits = self.edits();
        words.extend(edits.iter().map(String::as_str));
        words.extend(question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
        super::run::shell_line(&words)
    }
}

/// Where the report goes: what the command line says, else `reports/<name>-compared`.
pub(super) fn output_directory(stated: Option<&Path>, scenario: &Scenario) -> PathBuf {
    stated.map_or_else(|| Path::new("reports").join(format!("{}-compared", scenario.name)), Path::to_owned)
}

/// Whether `target` may go: an earlier comparison, with nothing added.
pub(super) fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "comparison.json", &|entry, name| {
        matches!(name, "comparison.html" | "replications.csv") || is_report(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn a_precision_is_a_share() {
        assert_eq!(percentage("2%"), Ok(0.02));
        assert_eq!(percentage("0.05"), Ok(0.05));
        for wrong in ["0", "-1%", "200%", "two", "NaN"] {
            assert!(percentage(wrong).is_err(), "{wrong}");
        }
    }
}
