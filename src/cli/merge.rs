//! `nodecast merge`: parts of an experiment, run anywhere, put together.

use std::path::PathBuf;

use super::{Console, Format, compare};
use crate::domain::words::refusal;
use crate::experiment::inspection::inputs;
use crate::experiment::points::Point;
use crate::experiment::question::{Kind, MergeError, Question, merge};
use crate::program::compare::{Compare, begin, output_directory};
use crate::program::fleet::comparison::{FleetCompare, FleetPoint};
use crate::program::fleet::reject_options;
use crate::program::{Failure, Prices, edits};
use crate::report::summary::InputSummary;

/// Merge `--shard` outputs into one report, byte-identical to a single-machine run
///
/// Reads the scenario again from its original path; it must be unchanged.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Shard files
    #[arg(required = true, value_name = "FILES")]
    parts: Vec<PathBuf>,
    /// Output directory [default: the same as without --shard]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Print all policies and columns, however narrow the terminal is
    #[arg(long)]
    wide: bool,
    /// Print the answer alone: no word on where the report is
    #[arg(long, short)]
    quiet: bool,
}

/// A file that is no part.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum PartError {
    #[error("cannot read `{file}`: {}", refusal(reason))]
    #[diagnostic(help("pass the files that `--shard` wrote, for example part-1-of-8.json"))]
    Unreadable { file: String, reason: std::io::Error },
    #[error("`{file}` is not a shard file: {reason}")]
    #[diagnostic(help("pass the files that `--shard` wrote, for example part-1-of-8.json"))]
    Malformed { file: String, reason: serde_json::Error },
    #[error("scenario `{scenario}` has changed since the shards ran")]
    #[diagnostic(help("`{file}` differs; restore the old version, or run the shards again"))]
    Changed { scenario: String, file: String },
}

/// What parts of every kind have.
#[derive(serde::Deserialize)]
struct AnyPart {
    question: Question,
}

/// The parts in files, each with the name of its file.
fn parsed<P: serde::de::DeserializeOwned>(texts: &[(String, String)]) -> Result<Vec<(String, P)>, Failure> {
    let one = |(file, text): &(String, String)| match serde_json::from_str(text) {
        Ok(part) => Ok((file.clone(), part)),
        Err(reason) => Err(Failure::bad_input(PartError::Malformed { file: file.clone(), reason })),
    };
    texts.iter().map(one).collect()
}

/// Refuses input that has changed since the question was asked.
fn check_unchanged(question: &Question, now: &[InputSummary]) -> Result<(), Failure> {
    if now == question.inputs {
        return Ok(());
    }
    let changed = now.iter().find(|input| !question.inputs.contains(input));
    let file = changed.map_or_else(|| question.scenario.clone(), |input| input.path.clone());
    Err(Failure::bad_input(PartError::Changed { scenario: question.scenario.clone(), file }))
}

/// Merges and reports.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let read = |path: &PathBuf| {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok((file, text)),
            Err(reason) => Err(Failure::bad_input(PartError::Unreadable { file, reason })),
        }
    };
    let texts = arguments.parts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let kinds: Vec<(String, AnyPart)> = parsed(&texts)?;
    let is_fleet = |(_, part): &(String, AnyPart)| part.question.kind == Kind::FleetCompare;
    if let Some((file, _)) = kinds.iter().find(|part| is_fleet(part) != is_fleet(&kinds[0])) {
        let (file, first) = (file.clone(), kinds[0].0.clone());
        return Err(Failure::bad_input(MergeError::OtherQuestion { file, first }));
    }
    if kinds.iter().any(is_fleet) {
        return merge_fleet(arguments, &texts, console);
    }
    let (question, points) = merge::<Point>(parsed(&texts)?).map_err(Failure::bad_input)?;
    let prices = Prices::open(question.pricing_data.as_deref().map(std::path::Path::new))?;
    let catalog = prices.catalog();
    let path = std::path::Path::new(&question.scenario);
    // A sweep loads each of its settings itself.
    let (scenario, warnings) = edits::load(path, catalog, &edits::of_question(&question)?)?;
    check_unchanged(&question, &inputs(&scenario))?;
    let output = (arguments.format, arguments.wide, arguments.quiet);
    if question.kind == Kind::Sweep {
        let to = (arguments.out.as_deref(), output);
        return super::sweep::conclude_merged(question, scenario, prices, points, to, console);
    }
    let out = arguments.out.clone().unwrap_or_else(|| output_directory(&scenario));
    let directory = begin(&out)?;
    let compared = Compare::merged(question, (scenario, &warnings), prices, points)?;
    compare::conclude(&compared, (directory, &out), output, None, console)
}

/// Merges the comparison of a fleet, whose answer is a table.
fn merge_fleet(arguments: &Arguments, texts: &[(String, String)], console: &mut Console<'_>) -> Result<(), Failure> {
    reject_options(&[("--out", arguments.out.is_some())])?;
    let (question, points) = merge::<FleetPoint>(parsed(texts)?).map_err(Failure::bad_input)?;
    let compare = FleetCompare::reload(&question)?;
    check_unchanged(&question, &compare.question.inputs)?;
    super::fleet::print_comparison(&compare.answer(&points)?, arguments.format, console)
}
