//! `nodecast diff`: effect of an edit, from runs of both sides with the same seeds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::edits::Length;
use super::experiment::{self, Common};
use super::{Console, Format};
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::experiment::comparability::{NodeManagement, weigh};
use crate::experiment::comparison::{About, Comparison, Wording, compare};
use crate::experiment::inspection::inputs;
use crate::experiment::points::PointError;
use crate::experiment::presentation::comment::{Outcome, comment};
use crate::experiment::presentation::{page, table};
use crate::experiment::question::Kind;
use crate::experiment::{Cell, Point, Question, points};
use crate::program::base::{self, Base};
use crate::program::compare::about;
use crate::program::simulations::shell_line;
use crate::program::{Failure, Prices, edits, prices, recorded_path};
use crate::scenario::lints::studies;
use crate::scenario::{Caveat, Caveats, Edit, Scenario, Warning};

/// Show how a change to a scenario affects cost, wait times, and churn
///
/// Compares two scenario files, one file with and without --set, or with --base the files of another commit. Both run with the same seeds. Writes nothing unless you pass --html.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Scenario file as it is now
    #[arg(value_name = "NOW", required_unless_present = "base", conflicts_with = "base")]
    before: Option<PathBuf>,
    /// Scenario file with the change [default: NOW with --set applied]
    #[arg(value_name = "CHANGED", required_unless_present_any = ["set", "base"])]
    after: Option<PathBuf>,
    /// Compare with this commit, branch, or tag of the git repository, for example origin/main
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
    /// With --base: scenario file to compare; repeatable [default: each file scenario.yaml that git knows]
    #[arg(long, value_name = "FILE", requires = "base")]
    scenario: Vec<PathBuf>,
    /// Value to change in CHANGED, in the scenario or a manifest, for example `NodePool[default].spec.disruption.consolidateAfter=5m`
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Policy to simulate [default: the first in each file]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    policy: Option<String>,
    #[command(flatten)]
    length: Length,
    /// Number of seeds [default: `replications` of NOW]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications: Option<u32>,
    /// First seed [default: `seed` of NOW]
    #[arg(long, value_name = "N", value_parser = crate::program::edits::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Also write the comparison as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What to print: a table for people, or the comparison as JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Print Markdown instead, for a pull request comment: at most 25 lines
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Names of the sides in JSON, which programs read.
const SIDES: [&str; 2] = ["before", "after"];
/// Names of the sides for people.
const LABELS: [&str; 2] = ["now", "with the change"];

/// One side of the comparison.
struct Side {
    scenario: Scenario,
    warnings: Vec<Warning>,
    /// The policy's name in its file.
    policy: String,
}

impl Side {
    fn load(path: &Path, edits: &[Edit], policy: Option<&str>, catalog: &Catalog) -> Result<Self, Failure> {
        let (scenario, warnings) = edits::load(path, catalog, edits)?;
        let policy = scenario.for_policy(policy)?.name.clone();
        Ok(Self { scenario, warnings, policy })
    }

    /// What the policy has to do with its nodes.
    fn footing(&self, name: &str) -> Result<NodeManagement, Failure> {
        let policy = self.scenario.for_policy(Some(&self.policy))?;
        Ok(NodeManagement::new(name, policy))
    }
}

/// Two scenarios that cannot be compared.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the scenarios use different currencies: {before} {} and {after} {}", LABELS[0], LABELS[1])]
#[diagnostic(help("costs in different currencies cannot be compared; use regions with the same currency"))]
struct TwoCurrencies {
    before: &'static str,
    after: &'static str,
}

/// Simulates both sides and prints the differences.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    if let Some(base) = &arguments.base {
        return against_commit(arguments, base, console);
    }
    // The parser requires NOW if there is no base.
    let Some(before) = &arguments.before else { return Err(Failure::silent(Failure::BAD_INPUT)) };
    let pair = Pair { before, after: arguments.after.as_ref().unwrap_or(before) };
    let answer = answer(arguments, pair, console)?;
    show(arguments, &answer, str::to_owned, console)?;
    if arguments.markdown {
        let name = pair.after.display().to_string();
        console.data(&comment(&[(name, Outcome::Compared(Box::new(answer.labelled)))]))?;
    }
    if answer.is_whole { Ok(()) } else { Err(Failure::silent(Failure::INTERRUPTED)) }
}

/// Writes the page, and prints the table or the JSON. `named` gives files the names that people know them by.
fn show(
    arguments: &Arguments,
    answer: &Answer,
    named: impl Fn(&str) -> String,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.html {
        let page = page::render(&answer.labelled, &command(arguments, &answer.question), &[]);
        experiment::write_whole(path, &named(&page))?;
    }
    match arguments.format {
        _ if arguments.markdown => Ok(()),
        Format::Table => console.verdicts(&named(&table::table_within(&answer.labelled, console.width(), true))),
        Format::Json => console.document(&named(&answer.comparison.to_json().map_err(Failure::of_report)?)),
    }
}

/// `--base` where one answer is asked for, and there is not one scenario.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{0} scenarios to compare with the base, but JSON and HTML hold one comparison")]
#[diagnostic(help("name one with --scenario, or use --markdown"))]
struct NotOne(usize);

/// A scenario that one of the sides lacks.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{0}` is {1}")]
#[diagnostic(help("name another file with --scenario, or use --markdown to have a line for each scenario"))]
struct Missing(String, &'static str);

/// Compares scenarios of the working tree with those of another commit.
fn against_commit(arguments: &Arguments, base: &str, console: &mut Console<'_>) -> Result<(), Failure> {
    let base = Base::check_out(base)?;
    let scenarios = if arguments.scenario.is_empty() { base::scenarios()? } else { arguments.scenario.clone() };
    let names = scenarios.iter().map(|path| base.name_of(path)).collect::<Result<BTreeSet<PathBuf>, Failure>>()?;
    if names.len() != 1 && (arguments.format == Format::Json || arguments.html.is_some()) {
        return Err(Failure::bad_input(NotOne(names.len())));
    }
    let (mut outcomes, mut failed) = (Vec::new(), false);
    for name in &names {
        let outcome = against(arguments, &base, name, console).or_else(|failure| {
            let is_line = arguments.markdown && failure.exit_code() == Failure::BAD_INPUT;
            failed |= is_line;
            let why = failure.remark().filter(|_| is_line).map(|remark| format!("cannot run: {}", remark.message));
            why.map(Outcome::Without).ok_or(failure)
        })?;
        outcomes.push((name.display().to_string(), outcome));
    }
    if arguments.markdown {
        console.data(&comment(&outcomes))?;
    }
    if failed { Err(Failure::silent(Failure::BAD_INPUT)) } else { Ok(()) }
}

/// Compares one scenario with that of another commit.
fn against(arguments: &Arguments, base: &Base, name: &Path, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let [before, after] = base.sides(name);
    let missing = match (before.is_file(), after.is_file()) {
        (false, false) => Some("neither in the base nor in the working tree"),
        (false, true) => Some("new, so there is nothing to compare with"),
        (true, false) => Some("removed"),
        (true, true) => None,
    };
    match missing {
        Some(why) if arguments.markdown => return Ok(Outcome::Without(why.to_owned())),
        Some(why) => return Err(Failure::bad_input(Missing(name.display().to_string(), why))),
        None => {}
    }
    let answer = answer(arguments, Pair { before: &before, after: &after }, console)?;
    if !answer.is_whole {
        return Err(Failure::silent(Failure::INTERRUPTED));
    }
    show(arguments, &answer, |text| base.named(text), console)?;
    Ok(Outcome::Compared(Box::new(answer.labelled)))
}

/// The files of both sides.
#[derive(Clone, Copy)]
struct Pair<'p> {
    before: &'p Path,
    after: &'p Path,
}

/// Result of the simulations of a pair.
struct Answer {
    question: Question,
    /// The comparison for programs.
    comparison: Comparison,
    /// The comparison for people.
    labelled: Comparison,
    /// Whether no simulation was left out.
    is_whole: bool,
}

/// Simulates both sides.
fn answer(arguments: &Arguments, pair: Pair<'_>, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    // Both sides are as long; what is set is of one.
    let length = edits::of_duration(arguments.length.duration)?;
    let edits = edits::parse(&arguments.set, arguments.length.duration)?;
    let policy = arguments.policy.as_deref();
    let before = Side::load(pair.before, &length, policy, catalog)?;
    let after = Side::load(pair.after, &edits, policy, catalog)?;
    let currency = |side: &Side| catalog.region(side.scenario.region.as_str()).map(|region| region.currency.code());
    let (old, new) = (currency(&before).map_err(prices::unusable)?, currency(&after).map_err(prices::unusable)?);
    if old != new {
        return Err(Failure::bad_input(TwoCurrencies { before: old, after: new }));
    }
    let question = question(arguments, pair.before, &before, &after)?;
    let points = run(arguments, &question, [&before, &after], catalog, console)?;
    let is_whole = points.len() == question.plan().len();
    let mut warnings = warnings(&before, &after);
    let lengths = [before.scenario.duration, after.scenario.duration];
    let set = edits::texts(&edits::setting(&edits));
    let other_duration_seconds = (lengths[0] != lengths[1]).then(|| lengths[1].as_secs_f64());
    let of_first = about(&question, &before.scenario, old, &points);
    let about =
        About { scenario: titled(&before, &after), set, other_duration_seconds, cost_aware: Vec::new(), ..of_first };
    let run = std::slice::from_ref(&after.policy);
    warnings.precede(edits::idle(pair.after, &edits, (&after.scenario, false), run, catalog));
    let compared = |names: [&str; 2], wording| -> Result<Comparison, Failure> {
        let points = points.iter().map(|point| {
            let name = names[usize::from(point.policy != SIDES[0])];
            Point { policy: name.to_owned(), ..point.clone() }
        });
        let mut comparison = compare(about.clone(), &names.map(str::to_owned), points.collect(), warnings.clone());
        comparison.wording = wording;
        weigh(&mut comparison, &[before.footing(names[0])?, after.footing(names[1])?]);
        Ok(comparison)
    };
    let comparison = compared(SIDES, Wording::Policies)?;
    if comparison.about.replications == 0 {
        console.tell("stopped before the first replication finished; nothing to report");
        return Err(Failure::silent(Failure::INTERRUPTED));
    }
    let labelled = compared(LABELS, Wording::Phrases)?;
    Ok(Answer { question, comparison, labelled, is_whole })
}

/// Warnings of both files, and about settings that make the sides less comparable.
fn warnings(before: &Side, after: &Side) -> Caveats {
    let mut warnings = before.scenario.caveats();
    warnings.merge(&Caveats::from_warnings(&before.warnings));
    warnings.extend(Caveats::from_warnings(&after.warnings));
    let [now, changed] = LABELS;
    let [was, is] = [before.scenario.warm_up, after.scenario.warm_up];
    if was != is {
        warnings.add(&studies::UNEVEN_WARM_UP, format!(
            "`warm_up` is {was} {now} and {is} {changed}, so wait times, churn, and response times cover different periods"
        ));
    }
    let lengths = [before.scenario.duration, after.scenario.duration];
    // Of warnings a table shows the first few.
    warnings
        .precede(uneven_lengths(lengths).map(|note| Caveat::new(&studies::UNEVEN_LENGTHS, note)).into_iter().collect());
    let errors = |side: &Side| side.scenario.ec2.cloud.price_errors.unwrap_or(false);
    if let Some(note) = uneven_price_errors(errors(before), errors(after)) {
        warnings.add(&studies::UNEVEN_PRICE_ERRORS, note);
    }
    warnings
}

/// Note on sides with different durations.
fn uneven_lengths([before, after]: [SimDuration; 2]) -> Option<String> {
    let [now, changed] = LABELS;
    (before != after).then(|| {
        format!(
            "`duration` is {before} {now} and {after} {changed}: costs are compared per month, but counts (pods that waited, evictions, unanswered requests, pod-minutes) cover runs of different lengths"
        )
    })
}

/// Note on sides of which one draws errors of Spot prices.
fn uneven_price_errors(before: bool, after: bool) -> Option<String> {
    let named = |drawn| if drawn { "drawn" } else { "none" };
    let [now, changed] = LABELS;
    (before != after).then(|| {
        format!(
            "`ec2.spot.price_errors` is `{}` {now} and `{}` {changed}, so Spot prices differ between the two runs",
            named(before),
            named(after)
        )
    })
}

fn titled(before: &Side, after: &Side) -> String {
    let (old, new) = (&before.scenario.name, &after.scenario.name);
    if old == new { old.clone() } else { format!("{old} and {new}") }
}

fn question(arguments: &Arguments, path: &Path, before: &Side, after: &Side) -> Result<Question, Failure> {
    let mut both = inputs(&before.scenario);
    both.extend(inputs(&after.scenario));
    both.dedup();
    Ok(Question {
        kind: Kind::Compare,
        scenario: recorded_path(path)?,
        inputs: both,
        pricing_data: arguments.pricing_data.as_deref().map(recorded_path).transpose()?,
        policies: SIDES.map(str::to_owned).to_vec(),
        first_seed: arguments.seed.unwrap_or(before.scenario.seed),
        replications: arguments.replications.unwrap_or(before.scenario.replications),
        settings: vec![Vec::new()],
        axes: Vec::new(),
        latency: None,
        duration: None,
    })
}

fn run(
    arguments: &Arguments,
    question: &Question,
    [before, after]: [&Side; 2],
    catalog: &Catalog,
    console: &mut Console<'_>,
) -> Result<Vec<Point>, Failure> {
    let plan = question.plan();
    let cells: Vec<Cell<'_>> = plan.cells().collect();
    let durations = [before.scenario.duration, after.scenario.duration];
    let one = |cell: Cell<'_>| -> Result<Point, PointError> {
        let side = if cell.policy == SIDES[0] { before } else { after };
        let point = points::simulate(&side.scenario, catalog, Cell { policy: &side.policy, ..cell })?;
        Ok(Point { policy: cell.policy.to_owned(), ..point })
    };
    let points = experiment::simulate(&cells, &durations, &one, &arguments.common, console)?;
    Ok(points.into_iter().map(|(_, point)| point).collect())
}

/// The command line that repeats the comparison.
fn command(arguments: &Arguments, question: &Question) -> String {
    let before = arguments.before.as_ref().map(|path| path.display().to_string());
    let after = arguments.after.as_ref().map(|path| path.display().to_string());
    let (replications, seed) = (question.replications.to_string(), question.first_seed.to_string());
    let mut words = vec!["nodecast", "diff"];
    words.extend(before.as_deref());
    words.extend(after.as_deref());
    words.extend(arguments.base.iter().flat_map(|commit| ["--base", commit.as_str()]));
    let scenarios: Vec<String> = arguments.scenario.iter().map(|path| path.display().to_string()).collect();
    words.extend(scenarios.iter().flat_map(|path| ["--scenario", path.as_str()]));
    words.extend(arguments.set.iter().flat_map(|text| ["--set", text.as_str()]));
    words.extend(arguments.policy.iter().flat_map(|name| ["--policy", name.as_str()]));
    let duration = arguments.length.duration.map(|duration| duration.to_string());
    words.extend(duration.iter().flat_map(|duration| ["--duration", duration.as_str()]));
    words.extend(["--replications", &replications, "--seed", &seed]);
    words.extend(question.pricing_data.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
    shell_line(&words)
}

#[cfg(test)]
mod tests {
    use super::{uneven_lengths, uneven_price_errors};

    #[test]
    fn runs_of_two_lengths_are_told() {
        let [three, six] = ["3h", "6h"].map(|text| text.parse().unwrap());
        assert_eq!(uneven_lengths([three, three]), None);
        let told = uneven_lengths([three, six]).unwrap();
        assert!(
            told.starts_with("`duration` is 3h now and 6h with the change: costs are compared per month"),
            "{told}"
        );
    }

    #[test]
    fn one_sided_price_errors_are_warned_about() {
        assert_eq!(uneven_price_errors(true, true), None);
        let told = uneven_price_errors(false, true).unwrap();
        assert!(told.starts_with("`ec2.spot.price_errors` is `none` now and `drawn` with the change"), "{told}");
    }
}
