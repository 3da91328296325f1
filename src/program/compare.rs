//! Every policy with every seed, and what the differences are worth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::simulations::{on_threads, shell_line, simulate};
use super::{Audience, Failure, Prices, edits, prices, recorded_path};
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::experiment::comparability::{NodeManagement, weigh};
use crate::experiment::comparison::{About, Comparison, DRAWS_PRICE_ERRORS, compare};
use crate::experiment::inspection::inputs;
use crate::experiment::presentation::{page, table};
use crate::experiment::price_dates;
use crate::experiment::question::Kind;
use crate::experiment::sequential::{self, Sequential};
use crate::experiment::statistics::confidence_per_look;
use crate::experiment::{Cell, Point, Question, points};
use crate::report::directory::{check_written, is_report};
use crate::report::open_metrics::{self, Extent};
use crate::report::{self, OutputDirectory, OutputError, Summary};
use crate::scenario::{Caveats, Edit, Scenario, Warning};
use crate::simulation::{self, Outcome};
use nodecast_karpenter::packing::PackerKind;

/// What a run has to be told to draw errors of Spot prices as a comparison does.
const DRAWN: &str = "ec2.spot.price_errors=drawn";

/// What to compare.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Request {
    /// The scenario file, or a fleet file with `--policies`
    pub scenario: PathBuf,
    /// Policies to compare, baseline first [default: all, in scenario order]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', visible_alias = "policy")]
    pub policies: Vec<String>,
    /// Number of seeds [default: the scenario's `replications`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub replications: Option<u32>,
    /// First seed [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// What is changed first; options that state changes are read apart.
    #[arg(skip)]
    pub edits: Vec<Edit>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

/// Replications until every cost difference is known well enough.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Precision {
    /// The share of the first policy's cost, on either side, to which each difference is to be known.
    pub share: f64,
    /// How many replications to stop at if it is not reached.
    pub replications_max: u32,
}

/// A comparison that has been read and can be run.
pub struct Compare {
    prices: Prices,
    /// The scenario, changes made.
    pub scenario: Scenario,
    origin: Origin,
    /// What is asked, every name checked.
    pub question: Question,
}

/// What a comparison knows of how its scenario was read.
struct Origin {
    warnings: Vec<Warning>,
    /// Whether errors of Spot prices are drawn because nobody says otherwise: a run has to be told.
    draws: bool,
}

impl Origin {
    /// The same of `scenario`, which from here on draws errors of Spot prices unless it says otherwise.
    fn new(scenario: &mut Scenario, warnings: Vec<Warning>) -> Self {
        let draws = scenario.ec2.cloud.price_errors.is_none();
        scenario.draw_price_errors();
        Self { warnings, draws }
    }
}

impl Compare {
    /// Reads everything that the comparison needs.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: &Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let (mut scenario, warnings) = edits::load(&request.scenario, prices.catalog(), &request.edits)?;
        let question = question(request, &scenario)?;
        let origin = Origin::new(&mut scenario, warnings);
        Ok(Self { prices, scenario, origin, question })
    }

    /// One simulation of it.
    ///
    /// # Errors
    /// If the scenario lacks the policy, or the catalog prices for its region.
    pub fn simulate(&self, cell: Cell<'_>) -> Result<Point, points::PointError> {
        points::simulate(&self.scenario, self.prices.catalog(), cell)
    }

    /// Runs and compares on so many threads, or one for each processor; with a precision, as many replications as it takes.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn answer(
        mut self,
        precision: Option<Precision>,
        threads: Option<u16>,
        audience: &mut dyn Audience,
    ) -> Result<Compared, Failure> {
        let firsts = Firsts::default();
        if let Some(precision) = precision {
            self.question.replications = self.question.replications.min(precision.replications_max);
        }
        let mut points = self.run_cells(0, &firsts, threads, audience)?;
        let mut is_whole = points.len() == self.question.plan().len();
        let mut comparison = self.compared(points.clone())?;
        while let (Some(precision), true) = (precision, is_whole) {
            let Some(next) = next_count(&comparison, precision, self.question.replications) else { break };
            let done = self.question.plan().len();
            self.question.replications = next;
            points.extend(self.run_cells(done, &firsts, threads, audience)?);
            is_whole = points.len() == self.question.plan().len();
            comparison = self.compared(points.clone())?;
        }
        comparison.aim_for(precision.map(|precision| precision.share));
        let Self { prices, scenario, origin, question } = self;
        Ok(Compared { prices, scenario, origin, question, comparison, is_whole, firsts })
    }

    /// Runs and compares until each difference of cost is sure or below `share` of the first policy's, with at most the replications of the
    /// question. Policies get as many seeds as each other.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn answer_when_sure(
        mut self,
        share: f64,
        threads: Option<u16>,
        audience: &mut dyn Audience,
    ) -> Result<Compared, Failure> {
        let firsts = Firsts::default();
        let most = self.question.replications;
        let looks = sequential::looks(most);
        let confidence = confidence_per_look(looks.len());
        let (mut points, mut done) = (Vec::new(), 0);
        let mut last = None;
        for look in looks {
            self.question.replications = look;
            points.extend(self.run_cells(done, &firsts, threads, audience)?);
            done = self.question.plan().len();
            let mut comparison = self.compared(points.clone())?;
            let is_whole = points.len() == done;
            let sure = is_whole && sequential::is_sure(&comparison, share, confidence);
            comparison.sequential = Some(Sequential { share, replications_max: most.into(), confidence, sure });
            last = Some((comparison, is_whole));
            if sure || !is_whole {
                break;
            }
        }
        let (comparison, is_whole) = match last {
            Some(item) => item,
            None => (self.compared(Vec::new())?, true),
        };
        let Self { prices, scenario, origin, question } = self;
        Ok(Compared { prices, scenario, origin, question, comparison, is_whole, firsts })
    }

    /// Runs the cells of the question from a number on, and keeps first replications.
    fn run_cells(
        &self,
        from: usize,
        firsts: &Firsts,
        threads: Option<u16>,
        audience: &mut dyn Audience,
    ) -> Result<Vec<Point>, Failure> {
        let plan = self.question.plan();
        let cells: Vec<Cell<'_>> = plan.cells().skip(from).collect();
        let one = |cell: Cell<'_>| {
            let outcome = points::outcome(&self.scenario, self.prices.catalog(), cell)?;
            let point = points::point(cell, &outcome);
            if let (true, Ok(mut firsts)) = (cell.seed == self.question.first_seed, firsts.lock()) {
                let catalog = self.prices.catalog();
                let told = told(outcome, &self.question, (&self.scenario, &self.origin), catalog);
                firsts.insert(cell.policy.to_owned(), Arc::new(told));
            }
            Ok(point)
        };
        let watcher = audience.begin(cells.len(), &[self.scenario.duration]);
        let points = simulate(&cells, &one, threads, &*watcher)?;
        Ok(points.into_iter().map(|(_, point)| point).collect())
    }

    fn compared(&self, points: Vec<Point>) -> Result<Comparison, Failure> {
        compared(&self.question, (&self.scenario, &self.origin), self.prices.catalog(), points)
    }

    /// The answer to a question that was asked before, of which all points are at hand.
    ///
    /// # Errors
    /// If the catalog has no prices for the scenario's region.
    pub fn merged(
        question: Question,
        (mut scenario, warnings): (Scenario, &[Warning]),
        prices: Prices,
        points: Vec<Point>,
    ) -> Result<Compared, Failure> {
        let origin = Origin::new(&mut scenario, warnings.to_vec());
        let comparison = compared(&question, (&scenario, &origin), prices.catalog(), points)?;
        Ok(Compared { prices, scenario, origin, question, comparison, is_whole: true, firsts: Firsts::default() })
    }
}

/// What is asked, every name checked.
fn question(request: &Request, scenario: &Scenario) -> Result<Question, Failure> {
    let mut policies: Vec<String> = request.policies.clone();
    if policies.is_empty() {
        policies.extend(scenario.policies.iter().map(|policy| policy.name.clone()));
    }
    for name in &policies {
        scenario.for_policy(Some(name))?;
    }
    check_named_once(&policies)?;
    Ok(Question {
        kind: Kind::Compare,
        scenario: recorded_path(&request.scenario)?,
        inputs: inputs(scenario),
        pricing_data: request.pricing_data.as_deref().map(recorded_path).transpose()?,
        policies,
        first_seed: request.seed.unwrap_or(scenario.seed),
        replications: request.replications.unwrap_or(scenario.replications),
        settings: vec![edits::setting(&request.edits)],
        axes: Vec::new(),
        latency: None,
        duration: None,
    })
}

/// Refuses a policy that is listed twice.
pub(super) fn check_named_once(policies: &[String]) -> Result<(), Failure> {
    let twice = policies.iter().enumerate().find(|(position, name)| policies[..*position].contains(name));
    twice.map_or(Ok(()), |(_, name)| Err(Failure::bad_input(NamedTwice(name.clone()))))
}

#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`--policies` lists `{0}` twice")]
#[diagnostic(help("list each policy once"))]
struct NamedTwice(String);

/// Each policy's first replication as far as it has been run: what the policy's own report is made of.
type Firsts = Mutex<BTreeMap<String, Arc<Outcome>>>;

/// The number of replications to go on with; `None` when there are enough, or no more can be had.
fn next_count(comparison: &Comparison, precision: Precision, have: u32) -> Option<u32> {
    let Precision { share: precision, replications_max: most } = precision;
    if have >= most || comparison.cost_precision().is_some_and(|known| known <= precision) {
        return None;
    }
    // At least a quarter more, since the spread is only estimated; at most four times as many, for the same reason.
    let needed = comparison.replications_needed(precision).unwrap_or(u64::from(have) + 1);
    let needed = u32::try_from(needed).unwrap_or(u32::MAX);
    let (least, largest) = (have.saturating_add((have / 4).max(2)), have.saturating_mul(4).max(10));
    Some(needed.clamp(least, largest.max(least)).min(most))
}

/// `outcome` as [`Run`](super::run::Run) tells it: with the warnings of reading the scenario, and of changes that change nothing, before its own.
fn told(
    mut outcome: Outcome,
    question: &Question,
    (scenario, origin): (&Scenario, &Origin),
    catalog: &Catalog,
) -> Outcome {
    let edits = question.settings.first().and_then(|setting| edits::of_setting(setting).ok()).unwrap_or_default();
    let path = Path::new(&question.scenario);
    let run = std::slice::from_ref(&outcome.about.policy);
    let mut before = edits::idle(path, &edits, (scenario, origin.draws), run, catalog);
    before.extend(Caveats::from_warnings(&origin.warnings));
    outcome.warnings.precede(before);
    outcome
}

/// The comparison of `points`.
fn compared(
    question: &Question,
    (scenario, origin): (&Scenario, &Origin),
    catalog: &Catalog,
    points: Vec<Point>,
) -> Result<Comparison, Failure> {
    let region = catalog.region(scenario.region.as_str()).map_err(prices::unusable)?;
    let mut about = about(question, scenario, region.currency.code(), &points);
    about.assumptions.extend(assumed_of_prices(origin.draws, &points));
    let setting = question.settings.first();
    let mut lines = scenario.caveats();
    lines.extend(setting.into_iter().flat_map(|item| edits::without_effect(question, item, scenario, catalog)));
    lines.extend(Caveats::from_warnings(&origin.warnings));
    let mut comparison = compare(about, &question.policies, points, lines);
    let policies = question.policies.iter().filter_map(|name| Some((name, scenario.for_policy(Some(name)).ok()?)));
    let footings: Vec<NodeManagement> = policies.map(|(name, policy)| NodeManagement::new(name, policy)).collect();
    weigh(&mut comparison, &footings);
    comparison.warnings.add_unused();
    Ok(comparison)
}

/// What is assumed of Spot prices where their errors are drawn because nobody says otherwise, and there were Spot nodes.
pub(super) fn assumed_of_prices(draws: bool, points: &[Point]) -> Option<String> {
    (draws && points.iter().any(|point| point.spot)).then(|| DRAWS_PRICE_ERRORS.to_owned())
}

/// The compared policies with the cost-aware packer.
fn cost_aware(question: &Question, scenario: &Scenario) -> Vec<String> {
    let is_asked = |name: &str| question.policies.iter().any(|policy| policy == name);
    let policies = scenario.policies.iter().filter(|policy| policy.packer == PackerKind::CostAware);
    policies.map(|policy| policy.name.to_string()).filter(|name| is_asked(name)).collect()
}

/// What an experiment was about.
pub fn about(question: &Question, scenario: &Scenario, currency: &str, points: &[Point]) -> About {
    About {
        scenario: scenario.name.clone(),
        start: scenario.start.to_string(),
        duration_seconds: scenario.duration.as_secs_f64(),
        other_duration_seconds: None,
        warm_up_seconds: (scenario.warm_up > SimDuration::ZERO).then(|| scenario.warm_up.as_secs_f64()),
        region: scenario.region.to_string(),
        currency: currency.to_owned(),
        price_date: price_dates::of_all(points.iter().map(|point| &*point.price_date)),
        first_seed: question.first_seed,
        replications_planned: u64::from(question.replications),
        replications: 0,
        inputs: question.inputs.clone(),
        set: question.settings.first().map(edits::texts).unwrap_or_default(),
        assumptions: scenario.assumptions.iter().map(|assumption| assumption.text.clone()).collect(),
        cost_aware: cost_aware(question, scenario),
    }
}

/// A comparison with what it was made from.
pub struct Compared {
    prices: Prices,
    /// The scenario.
    pub scenario: Scenario,
    origin: Origin,
    question: Question,
    /// The comparison.
    pub comparison: Comparison,
    /// Whether everything that was asked for has been run.
    pub is_whole: bool,
    /// First replications that are at hand; the others are run again.
    firsts: Firsts,
}

impl Compared {
    /// Writes the report into a directory that was [begun](begin), made on so many threads or one for each processor; says what is left out of it.
    ///
    /// # Errors
    /// If the report cannot be made or written; what stood there is then as it was.
    pub fn write(&self, directory: OutputDirectory, threads: Option<u16>) -> Result<Vec<String>, Failure> {
        let json = self.comparison.to_json().map_err(Failure::of_report)?;
        directory.file("comparison.json", |output| output.write_all(json.as_bytes())).map_err(Failure::of_report)?;
        let policies = self.question.policies.par_iter().with_max_len(1);
        let runs = || policies.map(|policy| self.run(policy)).collect::<Result<Vec<_>, Failure>>();
        let runs: Vec<Arc<Outcome>> = on_threads(threads, runs)??;
        let outcomes = runs.iter().map(AsRef::as_ref);
        let named: Vec<(&str, &Outcome)> = self.question.policies.iter().map(String::as_str).zip(outcomes).collect();
        let page = page::render(&self.comparison, &self.command(), &named);
        directory.file("comparison.html", |output| output.write_all(page.as_bytes())).map_err(Failure::of_report)?;
        directory
            .file("replications.csv", |output| table::replications(&self.comparison, output))
            .map_err(Failure::of_report)?;
        let reports = named.par_iter().with_max_len(1);
        let write = || reports.try_for_each(|(policy, outcome)| self.write_run(&directory, policy, outcome));
        on_threads(threads, write)??;
        directory.commit().map_err(Failure::of_report)?;
        let mut left_out = Vec::new();
        if let Some(settings) = self.metrics() {
            for (policy, outcome) in &named {
                left_out.extend(Extent::new(outcome, settings).notes().iter().map(|note| format!("{policy}/{note}")));
            }
        }
        Ok(left_out)
    }

    /// A policy's first replication.
    ///
    /// # Errors
    /// If the scenario has no such policy.
    pub fn run(&self, policy: &str) -> Result<Arc<Outcome>, Failure> {
        let kept = self.firsts.lock().ok().and_then(|firsts| firsts.get(policy).cloned());
        if let Some(outcome) = kept {
            return Ok(outcome);
        }
        let variant = self.scenario.for_policy(Some(policy))?;
        let (catalog, seed) = (self.prices.catalog(), self.question.first_seed);
        let outcome = simulation::run(&self.scenario, variant, catalog, seed, &mut |_| {}).map_err(prices::unusable)?;
        Ok(Arc::new(told(outcome, &self.question, (&self.scenario, &self.origin), catalog)))
    }

    /// What each policy's report shows to Prometheus.
    fn metrics(&self) -> Option<open_metrics::Settings> {
        self.scenario.output.open_metrics.map(open_metrics::Settings::every)
    }

    /// The whole report of a policy's first replication, in a folder of its own.
    fn write_run(&self, directory: &OutputDirectory, policy: &str, outcome: &Outcome) -> Result<(), Failure> {
        let command = self.run_command(policy, self.question.first_seed);
        let summary = Summary::from_outcome(outcome);
        report::write_into(directory, policy, outcome, &summary, &command, self.metrics()).map_err(Failure::of_report)
    }

    /// The command line of the run that a row of `replications.csv` is of. `explain` takes the same options.
    pub fn run_command(&self, policy: &str, seed: u64) -> String {
        let seed = seed.to_string();
        let mut words = vec!["nodecast", "run", &self.question.scenario, "--policy", policy, "--seed", &seed];
        let edits = self.edits();
        words.extend(edits.iter().map(String::as_str));
        if self.origin.draws {
            words.extend(["--set", DRAWN]);
        }
        words.extend(self.question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
        shell_line(&words)
    }

    /// The first and the last row, each with the command line of its run.
    pub fn row_commands(&self) -> Vec<String> {
        let points = &self.comparison.points;
        let ends = [points.first(), points.last().filter(|_| points.len() > 1)];
        let line = |point: &Point| {
            format!("repeat {}, seed {}: {}", point.policy, point.seed, self.run_command(&point.policy, point.seed))
        };
        ends.into_iter().flatten().map(line).collect()
    }

    /// What was changed before anything ran, as the command line has it.
    fn edits(&self) -> Vec<String> {
        self.question.settings.iter().flat_map(edits::options).collect()
    }

    /// The command line that repeats the comparison, whole, on one machine.
    fn command(&self) -> String {
        let question = &self.question;
        let (policies, replications, seed) =
            (question.policies.join(","), question.replications.to_string(), question.first_seed.to_string());
        let mut words = vec!["nodecast", "compare", &question.scenario, "--policies", &policies];
        words.extend(["--replications", &replications, "--seed", &seed]);
        let edits = self.edits();
        words.extend(edits.iter().map(String::as_str));
        words.extend(question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
        shell_line(&words)
    }
}

/// Where the report goes if nobody says otherwise.
pub fn output_directory(scenario: &Scenario) -> PathBuf {
    Path::new("reports").join(format!("{}-compared", scenario.name))
}

/// Begins the directory of a report, in place of an earlier comparison.
///
/// # Errors
/// If something else stands there, another run writes there, or the system refuses.
pub fn begin(out: &Path) -> Result<OutputDirectory, Failure> {
    OutputDirectory::begin_if(out, check_replaceable).map_err(Failure::of_report)
}

/// Whether `target` may go: an earlier comparison, with nothing added.
///
/// # Errors
/// If it may not, or cannot be looked into.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "comparison.json", &|entry, name| {
        matches!(name, "comparison.html" | "replications.csv") || is_report(entry)
    })
}
