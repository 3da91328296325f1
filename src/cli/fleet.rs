//! Fleets on the command line.

use std::path::Path;

use super::console::Stop;
use super::{Console, Format};
use crate::program::Failure;
use crate::program::fleet::{Audience, Fleet, Request, begin, reject_fleet_options};
use crate::simulation::Outcome;
use nodecast_fleet::{LoadedCluster, terminal};

/// Options of `run` that only fleets have.
#[derive(clap::Args, Debug)]
pub(super) struct RunOptions {
    /// Clusters of a fleet to run in parallel; does not change the result [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl RunOptions {
    /// Refuses these options for a scenario.
    pub(super) fn reject_for_scenario(&self) -> Result<(), Failure> {
        reject_fleet_options(&[("--threads", self.threads.is_some())])
    }
}

/// Runs on Ctrl-C no further.
struct Watch(Stop);

impl Audience for Watch {
    fn ended(&self, _: &LoadedCluster, _: &Outcome) {}

    fn is_stopped(&self) -> bool {
        self.0.is_wanted()
    }
}

/// Runs a fleet, writes its report, and prints the answer.
pub(super) fn run(
    request: &Request,
    out: Option<&Path>,
    options: &RunOptions,
    (format, quiet): (Format, bool),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let fleet = Fleet::load(request.clone())?;
    let out = out.map_or_else(|| fleet.output_directory(), Path::to_owned);
    let directory = begin(&out)?;
    let seed = fleet.seed();
    let answer = fleet.answer(seed, options.threads, Some(&directory), &Watch(Stop::on_interrupt()))?;
    let command = fleet.command(seed);
    answer.bill.write(&fleet.loaded, &answer.summary, &command, &directory).map_err(Failure::of_report)?;
    directory.commit().map_err(Failure::of_report)?;
    match format {
        Format::Table => console.verdicts(&terminal::table(&answer.summary, console.width()))?,
        Format::Json => console.document(&answer.summary.to_json().map_err(Failure::of_report)?)?,
    }
    if !quiet {
        console.tell(&format!("report: {}", out.join("index.html").display()));
    }
    Ok(())
}
