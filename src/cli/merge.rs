//! `nodecast merge`: parts of an experiment, run anywhere, put together.

use std::path::PathBuf;

use super::{Console, Format, compare};
use crate::domain::words::refusal;
use crate::experiment::inspection::inputs;
use crate::experiment::question::{Kind, Part, merge};
use crate::program::compare::{Compare, begin, output_directory};
use crate::program::{Failure, Prices, edits};

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

/// Merges and reports.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut parts = Vec::new();
    for path in &arguments.parts {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|reason| Failure::bad_input(PartError::Unreadable { file: file.clone(), reason }))?;
        let part: Part = serde_json::from_str(&text)
            .map_err(|reason| Failure::bad_input(PartError::Malformed { file: file.clone(), reason }))?;
        parts.push((file, part));
    }
    let (question, points) = merge(parts).map_err(Failure::bad_input)?;
    let prices = Prices::open(question.pricing_data.as_deref().map(std::path::Path::new))?;
    let catalog = prices.catalog();
    let path = std::path::Path::new(&question.scenario);
    // A sweep loads each of its settings itself.
    let (scenario, warnings) = edits::load(path, catalog, &edits::of_question(&question)?)?;
    let now = inputs(&scenario);
    if now != question.inputs {
        let changed = now.iter().find(|input| !question.inputs.contains(input));
        let file = changed.map_or_else(|| question.scenario.clone(), |input| input.path.clone());
        return Err(Failure::bad_input(PartError::Changed { scenario: question.scenario, file }));
    }
    let output = (arguments.format, arguments.wide, arguments.quiet);
    match question.kind {
        Kind::Compare => {
            let out = arguments.out.clone().unwrap_or_else(|| output_directory(&scenario));
            let directory = begin(&out)?;
            let compared = Compare::merged(question, (scenario, &warnings), prices, points)?;
            compare::conclude(&compared, (directory, &out), output, None, console)
        }
        Kind::Sweep => super::sweep::conclude_merged(
            question,
            scenario,
            prices,
            points,
            (arguments.out.as_deref(), output),
            console,
        ),
    }
}
