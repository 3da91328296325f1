//! `nodecast calibrate`: what a scenario assumes, fitted to what a cluster recorded.

use std::path::PathBuf;

use nodecast_observed::claims::SourceUse;
use serde::Serialize;

use super::experiment::{Bar, Common};
use super::{Console, Format};
use crate::evidence::calibration::{Effect, Parameter};
use crate::evidence::presentation::calibration as presentation;
use crate::program::Failure;
use crate::program::calibrate::{self, Calibrate, Request};

/// Fit a scenario's assumptions to recorded data, with confidence intervals
///
/// Reads NodeClaims, Nodes, Pods, and Events in kubectl's output format, Karpenter's JSON log, CloudTrail and EventBridge records, and
/// `nodecast run` reports. Best source: `kubectl get nodeclaims --watch --output-watch-events -o json`, appended to a file. Fits boot
/// times, image pull times, pod start times, and the rates of Spot reclaims and failed launches. Never changes policies, requests, or
/// limits. Writes a file to reference under `calibration` in a scenario, and shows which values affect the result most.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Output file
    #[arg(long, value_name = "FILE", default_value = "calibration.yaml")]
    out: PathBuf,
    /// Skip the simulations that measure each value's effect
    #[arg(long)]
    no_effects: bool,
    /// Seeds for measuring each value's effect
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    replications: u32,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

/// The answer as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Answer<'a> {
    schema_version: u32,
    program: &'static str,
    program_version: &'static str,
    sources: &'a [SourceUse],
    /// Kinds of facts that no source has.
    not_recorded: Vec<&'static str>,
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
            not_recorded: fitted.history.not_recorded(),
            parameters: &fitted.calibration.parameters,
            effects: &effects,
            warnings: &fitted.calibration.warnings,
        })?;
    }
    if !arguments.common.quiet {
        let out = arguments.out.display();
        let named = calibrate::named_in(&arguments.request.scenario, &arguments.out);
        console.tell(&format!("wrote {out}; to use it, add `calibration: {named}` to the scenario"));
    }
    Ok(())
}
