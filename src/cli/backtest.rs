//! `nodecast backtest`: a forecast held against what a cluster recorded.

use std::path::PathBuf;

use super::edits::Edits;
use super::experiment::{Bar, Common};
use super::{Console, Format};
use crate::evidence::backtest::Mode;
use crate::program::Failure;
use crate::program::backtest::{Backtest, Request, begin};

/// Compare a forecast with recorded data, metric by metric
///
/// Simulates the recorded period with many seeds. Judges each metric (cost, node-hours, launches, wait times, replicas of each workload)
/// against its tolerance and the spread between seeds, and compares it with a naive forecast: the same hours of earlier days.
/// Writes backtest.html and backtest.json to the output directory. Replaces the whole directory.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Inputs for the evaluated period: its recorded traffic, Spot prices, and reclaims, or only what was known at the split
    #[arg(long, value_enum, default_value = "replay")]
    mode: ModeArgument,
    /// Exit 1 if any metric differs
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
        Format::Table => console.verdicts(&answered.table(console.width()))?,
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
