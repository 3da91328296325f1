//! `nodecast backtest`: a forecast held against what a cluster recorded.

use std::path::PathBuf;

use super::edits::Edits;
use super::experiment::{Bar, Common};
use super::{Console, Format};
use crate::experiment::backtest::Mode;
use crate::program::Failure;
use crate::program::backtest::{Backtest, Request, begin};

/// Hold a forecast against what a cluster recorded, figure by figure
///
/// Simulates the recorded time with many seeds, and judges each figure (cost, node-hours, launches, waits, replicas of each
/// workload) against a stated tolerance and the spread of the seeds, beside a naive forecast: the same hours of days before.
/// Writes backtest.html and backtest.json into the output directory, which is replaced as a whole.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// What goes into the simulations of the judged time: its own traffic with the recorded Spot prices and reclaims, or what was
    /// known at the split
    #[arg(long, value_enum, default_value = "replay")]
    mode: ModeArgument,
    /// End with exit code 1 if any figure differs
    #[arg(long, value_name = "VERDICT", value_enum)]
    fail_on: Option<FailOn>,
    #[command(flatten)]
    edits: Edits,
    /// The directory for the report [default: reports/<name>-backtest]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or backtest.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum ModeArgument {
    /// The judged time's own traffic and market.
    Replay,
    /// What was known at the split.
    Forecast,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum FailOn {
    /// Some figure differs.
    Differs,
}

/// Simulates and judges. Nothing is written before all simulations are over.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let common = &arguments.common;
    let backtest = Backtest::load(Request {
        mode: if arguments.mode == ModeArgument::Replay { Mode::Replay } else { Mode::Forecast },
        edits: arguments.edits.parse()?,
        ..arguments.request.clone()
    })?;
    let out = arguments.out.clone().unwrap_or_else(|| backtest.output_directory());
    let directory = begin(&out)?;
    let answered = backtest.answer(common.threads, &mut Bar::new(console, common))?;
    let Some(answered) = answered else { return Err(Failure::silent(Failure::INTERRUPTED)) };
    answered.write(directory)?;
    match arguments.format {
        Format::Table => console.data(&answered.table(console.width()))?,
        Format::Json => console.document(&answered.json()?)?,
    }
    if !common.quiet {
        console.tell(&format!("report: {}", out.join("backtest.html").display()));
    }
    let differs = answered.answer.findings.tally.differs;
    if arguments.fail_on == Some(FailOn::Differs) && differs > 0 {
        return Err(Failure::silent(Failure::WORSE));
    }
    Ok(())
}
