//! `nodecast calibrate`: what a scenario assumes, fitted to what a cluster recorded.

use std::path::PathBuf;

use nodecast_observed::claims::SourceUse;
use serde::Serialize;

use super::experiment::{Bar, Common};
use super::{Console, Format};
use crate::experiment::calibration::{Effect, Parameter};
use crate::experiment::presentation::calibration as presentation;
use crate::program::Failure;
use crate::program::calibrate::{self, Calibrate, Request};

/// Fit what a scenario assumes to what a cluster recorded, with intervals
///
/// Reads NodeClaims, Nodes, Pods and Events as kubectl prints them (`kubectl get nodeclaims --watch --output-watch-events -o json` into a file that
/// grows is best), Karpenter's log in JSON, records of CloudTrail and EventBridge, and reports of `nodecast run`. Fits how long nodes boot, images
/// are pulled and pods start, how often Spot instances are taken and launches fail; never policies, requests or limits. Writes a fragment
/// that a scenario names under `calibration`, and says which of the values change the answer most.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Where the fragment goes
    #[arg(long, value_name = "FILE", default_value = "calibration.yaml")]
    out: PathBuf,
    /// Do not simulate what each value changes
    #[arg(long)]
    no_effects: bool,
    /// How many seeds what a value changes is simulated with
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    replications: u32,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

/// The answer as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    schema_version: u32,
    program: &'static str,
    program_version: &'static str,
    sources: &'a [SourceUse],
    parameters: &'a [Parameter],
    effects: &'a [Effect],
    warnings: &'a [String],
}

/// Fits, shows and writes. Nothing is written before everything has been read.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    calibrate::check(&arguments.out)?;
    let fitted = Calibrate::load(&arguments.request)?;
    let table = matches!(arguments.format, Format::Table);
    if table {
        console.data(&presentation::table(&fitted.calibration, &fitted.history, console.width()))?;
    }
    let effects = match arguments.no_effects {
        true => Vec::new(),
        false => {
            let mut bar = Bar::new(console, &arguments.common);
            fitted.effects(arguments.replications, arguments.common.threads, &mut bar)?
        }
    };
    fitted.write(&arguments.out)?;
    if table && !effects.is_empty() {
        let (policy, currency) = (fitted.policy()?, fitted.currency()?);
        let width = console.width();
        console.data(&presentation::effects(&effects, policy, &currency, arguments.replications, width))?;
    }
    if !table {
        console.json(&Answer {
            schema_version: 1,
            program: "nodecast",
            program_version: env!("CARGO_PKG_VERSION"),
            sources: &fitted.history.sources,
            parameters: &fitted.calibration.parameters,
            effects: &effects,
            warnings: &fitted.calibration.warnings,
        })?;
    }
    if !arguments.common.quiet {
        let out = arguments.out.display();
        let named = calibrate::named_in(&arguments.request.scenario, &arguments.out);
        console.tell(&format!("calibration: {out}; write `calibration: {named}` into the scenario to run with it"));
    }
    Ok(())
}
