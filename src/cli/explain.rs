//! `nodecast explain`: why a node stays, why a decision was made, why a pod waits.

use std::path::PathBuf;

use clap::Subcommand;

use super::edits::{self, Edits};
use super::experiment;
use super::prices::Prices;
use super::{Console, Failure, Format};
use crate::experiment::explanation::{Moment, MomentError, Subject, explain};
use crate::experiment::presentation::explanation;
use crate::report::ReportError;
use crate::scenario::Scenario;

/// Explain why a node stays, a decision was made, or a pod waits
///
/// Runs the scenario again, which is deterministic, up to the moment in question and asks the code that decides there. What was set for the run in question is to be set here too: the same policy, seed, --set and --duration. Nothing is written.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    #[command(subcommand)]
    about: About,
    /// The policy to simulate [default: the scenario's first]
    #[arg(long, value_name = "NAME", global = true)]
    policy: Option<String>,
    /// The seed of every random draw [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true, global = true)]
    seed: Option<u64>,
    #[command(flatten)]
    edits: Edits,
    /// What to print: text for people, or JSON
    #[arg(long, value_enum, default_value = "table", global = true)]
    format: Format,
    /// Prices to use instead of the built-in ones, laid out like pricing-data/
    #[arg(long, value_name = "DIR", global = true)]
    pricing_data: Option<PathBuf>,
}

/// What is asked about.
#[derive(Subcommand, Debug)]
enum About {
    /// Why a node stays: what stands against its removal, and where its pods would go
    Node {
        /// The node, as nodes.csv names it
        name: String,
        /// When: after the start (1h30m), by the clock (13:45), or with the date (2026-11-24T13:45:00Z); times are UTC
        #[arg(long, value_name = "TIME")]
        at: Moment,
    },
    /// Why a decision of Karpenter's disruption or of the Cluster Autoscaler was made, and what became of it
    Decision {
        /// Its id: d7 in the report and in events.jsonl; up2 and down3 for the second growth and third removal of the Cluster Autoscaler
        id: String,
    },
    /// Why a pod waits, or where it went and why
    Pod {
        /// The pod, as pods.csv names it, with or without its namespace
        name: String,
        /// When: after the start (1h30m), by the clock (13:45), or with the date (2026-11-24T13:45:00Z); times are UTC
        /// [default: the end]
        #[arg(long, value_name = "TIME")]
        at: Option<Moment>,
    },
}

impl About {
    fn subject(&self, scenario: &Scenario) -> Result<Subject, MomentError> {
        Ok(match self {
            Self::Node { name, at } => Subject::Node { name: name.clone(), at: at.of_run(scenario)? },
            Self::Decision { id } => Subject::Decision { id: id.clone() },
            Self::Pod { name, at } => {
                Subject::Pod { name: name.clone(), at: at.as_ref().map(|at| at.of_run(scenario)).transpose()? }
            }
        })
    }
}

/// Explains.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    let (scenario, _) = edits::load(&arguments.scenario, catalog, &arguments.edits.parse()?)?;
    let policy = scenario.for_policy(arguments.policy.as_deref()).map_err(Failure::bad_input)?;
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let subject = arguments.about.subject(&scenario).map_err(Failure::bad_input)?;
    let answer = explain(&scenario, policy, catalog, seed, &subject).map_err(Failure::bad_input)?;
    match arguments.format {
        Format::Table => console.data(&explanation::text(&answer)),
        Format::Json => {
            let json = serde_json::to_string_pretty(&answer)
                .map_err(|error| experiment::report_failure(ReportError::from(error)))?;
            console.data(&(json + "\n"))
        }
    }
}
