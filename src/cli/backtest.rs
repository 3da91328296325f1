//! `nodecast backtest`: a forecast held against what a cluster recorded.

use std::path::PathBuf;

use super::edits::{self, Edits};
use super::experiment::{Bar, Common};
use super::{Console, Format};
use crate::domain::SimDuration;
use crate::experiment::backtest::Mode;
use crate::program::Failure;
use crate::program::backtest::bill::BillRequest;
use crate::program::backtest::{Backtest, Request, begin};
use crate::program::edits::time;

/// Hold a forecast against what a cluster recorded, figure by figure
///
/// Simulates the recorded time with many seeds, and judges each figure (cost, node-hours, launches, waits, replicas of each
/// workload) against a stated tolerance and the spread of the seeds, beside a naive forecast: the same hours of days before.
/// Writes backtest.html and backtest.json into the output directory, which is replaced as a whole.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file, which simulates the recorded time
    scenario: PathBuf,
    /// What was recorded: a directory that `nodecast observe` or `nodecast run` has written
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The policy that ran [default: the scenario's first]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    policy: Option<String>,
    /// Judge what comes so long after the start of the record; what comes before may have set the scenario up [default: two
    /// thirds of ten days or more, else all is judged]
    #[arg(long, value_name = "DURATION", value_parser = time)]
    split: Option<SimDuration>,
    /// What goes into the simulations of the judged time: its own traffic with the recorded Spot prices and reclaims, or what was
    /// known at the split
    #[arg(long, value_enum, default_value = "replay")]
    mode: ModeArgument,
    /// Also swap in what was recorded of the market one at a time, to see where errors come from
    #[arg(long)]
    ablation: bool,
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replications: u32,
    /// The first seed [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// End with exit code 1 if any figure differs
    #[arg(long, value_name = "VERDICT", value_enum)]
    fail_on: Option<FailOn>,
    /// A bill of the judged time, to set beside the simulated one: a report of cost and usage or FOCUS, as CSV, gzip'd or Parquet;
    /// may be given several times
    #[arg(long, value_name = "FILE")]
    bill: Vec<PathBuf>,
    /// The cluster's name as the bill's tags and ARNs have it [default: the name by
    /// which an observation chose its series, or the scenario's]
    #[arg(long, value_name = "NAME", requires = "bill")]
    cluster: Option<String>,
    /// A share of lines of the bill that name no cluster, by usage type, for example nat=100%
    #[arg(long, value_name = "TYPE=PERCENT", requires = "bill")]
    share: Vec<String>,
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
        scenario: arguments.scenario.clone(),
        recorded: arguments.from.clone(),
        policy: arguments.policy.clone(),
        split: arguments.split,
        mode: if arguments.mode == ModeArgument::Replay { Mode::Replay } else { Mode::Forecast },
        ablation: arguments.ablation,
        replications: arguments.replications,
        seed: arguments.seed,
        edits: arguments.edits.parse()?,
        bill: BillRequest {
            files: arguments.bill.clone(),
            cluster: arguments.cluster.clone(),
            shares: arguments.share.clone(),
        },
        pricing_data: common.pricing_data.clone(),
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
