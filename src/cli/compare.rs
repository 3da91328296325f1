//! `nodecast compare`: every policy with every seed, and what the differences are worth.

use std::path::{Path, PathBuf};

use super::edits::Edits;
use super::experiment::{self, Bar, Common, Parts};
use super::{Console, Format};
use crate::experiment::Cell;
use crate::experiment::presentation::table;
use crate::program::Failure;
use crate::program::compare::{Compare, Compared, Precision, Request, begin, output_directory};
use crate::program::fleet;
use crate::report::OutputDirectory;

/// Compare the policies of a scenario over many seeds, with confidence intervals
///
/// Runs every policy with the same seeds, so all of them face the same load, prices, and capacity, and small differences show after few
/// replications. Writes comparison.html, comparison.json, replications.csv, and one report per policy to the output directory. Replaces the
/// whole directory. Ctrl-C lets running simulations finish, then reports on the complete replications.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Run until every cost difference is known to within ± this share of the baseline's cost, for example 2%
    #[arg(long, value_name = "PERCENT", value_parser = percentage, conflicts_with = "shard")]
    precision: Option<f64>,
    /// Run until the sign of each cost difference is certain, or the difference is certainly below this share of the baseline's cost.
    /// Checks after 5, 10, 20 ... replications
    #[arg(long, value_name = "PERCENT", value_parser = percentage, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1%", conflicts_with_all = ["shard", "precision"])]
    until_sure: Option<f64>,
    /// Stop after this many replications even if the precision is not reached
    #[arg(long, value_name = "N", default_value_t = 1_000, requires = "precision")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replications_max: u32,
    #[command(flatten)]
    edits: Edits,
    #[command(flatten)]
    parts: Parts,
    /// Output directory [default: reports/<name>-compared; with --shard, reports/<name>-parts]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or comparison.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Print all policies, however narrow the terminal is
    #[arg(long)]
    wide: bool,
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
    let common = &arguments.common;
    if nodecast_fleet::is_fleet(&arguments.request.scenario) {
        return compare_fleet(arguments, console);
    }
    let compare = Compare::load(&Request { edits: arguments.edits.parse()?, ..arguments.request.clone() })?;
    if let Some(shard) = arguments.parts.shard {
        let (out, question) = (arguments.out.as_deref(), compare.question.clone());
        let one = |cell: Cell<'_>| compare.simulate(cell);
        return experiment::run_part(question, shard, (&one, common), out, &compare.scenario, console);
    }
    let out = arguments.out.clone().unwrap_or_else(|| output_directory(&compare.scenario));
    let directory = begin(&out)?;
    let precision = arguments.precision;
    let precision = precision.map(|share| Precision { share, replications_max: arguments.replications_max });
    let mut bar = Bar::new(console, common);
    let compared = match arguments.until_sure {
        Some(share) => compare.answer_when_sure(share, common.threads, &mut bar)?,
        None => compare.answer(precision, common.threads, &mut bar)?,
    };
    conclude(&compared, (directory, &out), (arguments.format, arguments.wide, common.quiet), common.threads, console)?;
    if compared.is_whole { Ok(()) } else { Err(Failure::silent(Failure::INTERRUPTED)) }
}

/// Compares the policies of a fleet; its answer is a table. Only a part of it goes to a directory.
fn compare_fleet(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let request = &arguments.request;
    fleet::reject_options(&[
        ("--set", arguments.edits.has_set()),
        ("--precision", arguments.precision.is_some()),
        ("--until-sure", arguments.until_sure.is_some()),
        ("--out", arguments.out.is_some() && arguments.parts.shard.is_none()),
    ])?;
    let file = fleet::Request {
        file: request.scenario.clone(),
        duration: arguments.edits.duration(),
        seed: request.seed,
        policy: None,
        pricing_data: request.pricing_data.clone(),
    };
    let asked = (request.policies.as_slice(), request.replications);
    let part = (arguments.parts.shard, arguments.out.as_deref());
    super::fleet::compare(&file, asked, part, (arguments.format, &arguments.common), console)
}

/// Writes the report on as many threads as are asked for, and prints the answer.
pub(super) fn conclude(
    compared: &Compared,
    (directory, out): (OutputDirectory, &Path),
    (format, wide, quiet): (Format, bool, bool),
    threads: Option<u16>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let comparison = &compared.comparison;
    if comparison.about.replications == 0 {
        console.tell("stopped before the first replication finished; nothing to report");
        return Err(Failure::silent(Failure::INTERRUPTED));
    }
    let notes = compared.write(directory, threads)?;
    match format {
        Format::Table => console.verdicts(&table::table_within(comparison, console.width(), wide))?,
        Format::Json => console.document(&comparison.to_json().map_err(Failure::of_report)?)?,
    }
    if !quiet {
        notes.iter().for_each(|note| console.note(note));
        compared.row_commands().iter().for_each(|line| console.tell(line));
        console.tell(&format!("report: {}", out.join("comparison.html").display()));
    }
    Ok(())
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
