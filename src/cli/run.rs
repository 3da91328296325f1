//! `nodecast run`: one policy, one seed, one report.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::console::Stop;
use super::edits::Edits;
use super::watch::Watch;
use super::{Console, Format};
use crate::domain::{Money, SimDuration};
use crate::program::Failure;
use crate::program::fleet;
use crate::program::run::{Request, Run, metrics_step};
use crate::report::{self, OutputDirectory, Summary, markdown, open_metrics, report_index, terminal};
use crate::simulation::{Outcome, Progress};

/// From this share of the bill at estimated prices on, people are told how to get AWS's.
const MOSTLY: f64 = 0.5;

/// Simulate a scenario under one policy and report its cost and wait times
///
/// Writes report.html, summary.json, plots, and tables to the output directory. Replaces the whole directory.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    edits: Edits,
    /// Output directory [default: the scenario's `output`, or reports/<scenario name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Output format: a table, or summary.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Also write metrics.om: the cluster's metrics in OpenMetrics format, sampled every STEP (1s to 4m) [default: 60s]
    #[arg(long, value_name = "STEP", num_args = 0..=1, require_equals = true, default_missing_value = "60s")]
    #[arg(value_parser = metrics_step)]
    open_metrics: Option<SimDuration>,
    /// Maximum samples in metrics.om for per-node and per-pod series; above it they are thinned out or dropped
    #[arg(long, value_name = "N", default_value_t = open_metrics::Settings::SAMPLES_MAX)]
    open_metrics_samples: u64,
    /// Also write index.html to the parent of the output directory: a list of the runs whose reports are below it
    #[arg(long)]
    index: bool,
    /// Compress the tables with gzip: pods.csv becomes pods.csv.gz
    #[arg(long)]
    compress: bool,
    /// Also write the summary as Markdown, for a pull request comment
    #[arg(long, value_name = "FILE")]
    summary_md: Option<PathBuf>,
    /// Show simulated time, nodes, and pending pods while the simulation runs
    #[arg(long, conflicts_with = "quiet")]
    watch: bool,
    /// Recompute every cached value and check invariants after each event. Slower; the report is identical, or an error says what differs
    #[arg(long)]
    check: bool,
    /// Also print the tables of waits, requests, queues, replicas, and churn, and the run over time
    #[arg(long)]
    verbose: bool,
    /// Print only the result: no progress, no warnings, no report path
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    fleet: super::fleet::RunOptions,
}

/// Simulates and reports. Nothing is written before the simulation is over, and nothing at all if it cannot begin.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    if nodecast_fleet::is_fleet(&arguments.request.scenario) {
        return run_fleet(arguments, console);
    }
    arguments.fleet.reject_for_scenario()?;
    let mut run = Run::load(Request { edits: arguments.edits.parse()?, ..arguments.request.clone() })?;
    if arguments.open_metrics.is_none() {
        run.without_metrics();
    }
    let out = arguments.out.clone().unwrap_or_else(|| run.output_directory());
    let parent = arguments.index.then(|| parent_of(&out));
    if let Some(parent) = &parent {
        report_index::check(parent).map_err(Failure::of_report)?;
    }
    let directory = OutputDirectory::begin(&out).map_err(Failure::of_report)?.compressing_tables(arguments.compress);
    let Some(outcome) = simulate(arguments, &run, console)? else {
        return Err(Failure::silent(Failure::INTERRUPTED));
    };
    conclude(arguments, &run, &outcome, (directory, &out), console)?;
    if let Some(parent) = &parent {
        let index = report_index::write(parent).map_err(Failure::of_report)?;
        if !arguments.quiet {
            console.tell(&format!("index: {}", index.display()));
        }
    }
    Ok(())
}

/// The directory that holds another.
fn parent_of(directory: &Path) -> PathBuf {
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Runs a fleet, which takes fewer options than a scenario.
fn run_fleet(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let options = [
        ("--policy", arguments.request.policy.is_some()),
        ("--set", arguments.edits.has_set()),
        ("--open-metrics", arguments.open_metrics.is_some()),
        ("--index", arguments.index),
        ("--summary-md", arguments.summary_md.is_some()),
        ("--watch", arguments.watch),
        ("--check", arguments.check),
    ];
    fleet::reject_options(&options)?;
    let request = fleet::Request {
        file: arguments.request.scenario.clone(),
        duration: arguments.edits.duration(),
        seed: arguments.request.seed,
        policy: None,
        pricing_data: arguments.request.pricing_data.clone(),
    };
    let shown = (arguments.format, arguments.quiet);
    super::fleet::run(&request, arguments.out.as_deref(), &arguments.fleet, shown, console)
}

/// Simulates, and shows how far it is.
fn simulate(arguments: &Arguments, run: &Run, console: &mut Console<'_>) -> Result<Option<Outcome>, Failure> {
    let scenario = &run.scenario;
    let progress = console.progress(scenario.duration, !arguments.quiet);
    let mut watch = arguments.watch.then(|| Watch::new(&scenario.start.to_string(), scenario.duration));
    let mut show = |moment: &Progress<'_>| {
        progress.reached(moment.now);
        let Some(watch) = &mut watch else { return };
        if progress.is_drawn() {
            progress.say(watch.line(moment));
        } else if watch.is_due(moment.now) {
            console.tell(&watch.line(moment));
        }
    };
    if arguments.check {
        return run.simulate_checked(&mut show).map(Some);
    }
    let stop = Stop::on_interrupt();
    run.simulate(&mut |moment| {
        show(moment);
        if stop.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Writes the report of `outcome` and prints the answer.
fn conclude(
    arguments: &Arguments,
    run: &Run,
    outcome: &Outcome,
    (directory, out): (OutputDirectory, &Path),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let summary = Summary::from_outcome(outcome);
    let metrics = run.write((outcome, &summary), arguments.open_metrics, arguments.open_metrics_samples, directory)?;
    if let Some(path) = &arguments.summary_md {
        super::experiment::write_whole(path, &markdown::render(&summary, &run.command(outcome, None)))?;
    }
    let place = format!("report: {}", out.join("report.html").display());
    match arguments.format {
        Format::Table => {
            let width = console.width();
            let text = match arguments.verbose {
                true => terminal::table_over_time_within(&summary, outcome, width),
                false => terminal::brief(&summary, width),
            };
            console.verdicts(&text)?;
        }
        Format::Json => {
            let json = summary.to_json().map_err(Failure::of_report)?;
            console.document(&json)?;
            if !arguments.quiet && !summary.warnings.is_empty() {
                let count = report::format::counted(summary.warnings.len() as u64, "warning", "warnings");
                console.tell(&format!("{count}; see the report"));
            }
        }
    }
    if !arguments.quiet {
        for note in metrics.iter().flat_map(|settings| open_metrics::Extent::new(outcome, *settings).notes()) {
            console.note(&note);
        }
        // The script fetches prices of instances and nothing else.
        let can_be_fetched = outcome.bill.at_estimated_prices_of_instances() > Money::ZERO;
        if arguments.request.pricing_data.is_none() && can_be_fetched && summary.cost.unconfirmed.share > MOSTLY {
            console.note(&format!(
                "most of this bill uses estimated prices; to use current AWS prices, run `nodecast pricing fetch-script {}`",
                arguments.request.scenario.display()
            ));
        }
        console.tell(&place);
    }
    Ok(())
}
