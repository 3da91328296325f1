//! `nodecast explain`: why a node stays, why a decision was made, why a pod waits.

use std::path::PathBuf;

use clap::Subcommand;

use super::cluster::{self, OfCluster};
use super::edits::Edits;
use super::{Console, Format};
use crate::catalog::Catalog;
use crate::domain::SimTime;
use crate::explain::presentation;
use crate::explain::standing::{by_cluster_autoscaler, explain_standing};
use crate::explain::{MomentError, StatedTime, Subject, explain};
use crate::program::{self, Failure, Prices};
use crate::scenario::Scenario;
use crate::scenario::source::{Limits, load_argument};

/// Explain why a node is kept, why a decision was made, or why a pod is pending
///
/// For a scenario: reruns it to the given time (runs are deterministic) and queries the decision code. Pass the same --policy, --seed,
/// --set, and --duration as the original run. For a cluster dump: explains its nodes in their current state (`kubectl get
/// pods,nodes,nodeclaims,nodepools,ec2nodeclasses,deploy,sts,ds,pdb,pvc,pv,storageclasses -A -o yaml`). Writes nothing.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file, or a dump of a cluster
    scenario: PathBuf,
    #[command(flatten)]
    of_cluster: OfCluster,
    #[command(subcommand)]
    about: About,
    /// Policy to simulate [default: the first in the scenario]
    #[arg(long, value_name = "NAME", visible_alias = "policies", global = true)]
    policy: Option<String>,
    /// Random seed [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = crate::program::edits::seed, allow_negative_numbers = true, global = true)]
    seed: Option<u64>,
    #[command(flatten)]
    edits: Edits,
    /// What to print: text for people, or JSON
    #[arg(long, value_enum, default_value = "table", global = true)]
    format: Format,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR", global = true)]
    pricing_data: Option<PathBuf>,
}

/// What is asked about.
#[derive(Subcommand, Debug)]
enum About {
    /// Why a node stays: what stands against its removal, and where its pods would go
    Node {
        /// The node, as nodes.csv or the dump names it
        name: String,
        /// When: after the start (1h30m), by the clock (13:45), or with the date (2026-11-24T13:45:00Z); times are UTC
        /// [default: the end; a dump is asked as it stands]
        #[arg(long, value_name = "TIME")]
        at: Option<StatedTime>,
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
        at: Option<StatedTime>,
    },
}

impl About {
    fn subject(&self, scenario: &Scenario) -> Result<Subject, MomentError> {
        Ok(match self {
            Self::Node { name, at } => {
                let at = at.as_ref().map_or(Ok(SimTime::ZERO + scenario.duration), |at| at.of_run(scenario))?;
                Subject::Node { name: name.clone(), at }
            }
            Self::Decision { id } => Subject::Decision { id: id.clone() },
            Self::Pod { name, at } => {
                Subject::Pod { name: name.clone(), at: at.as_ref().map(|at| at.of_run(scenario)).transpose()? }
            }
        })
    }
}

/// A question that only a run can answer, one that none can, or what only a dump leaves open.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum OfDump {
    #[error("a dump has no history, so `explain` cannot cover decisions or pods")]
    #[diagnostic(help("explain a node instead; for a pending pod, run `nodecast pack FILE --explain POD`"))]
    NoRun,
    #[error("`{0}` is only for cluster dumps; a scenario states this itself")]
    #[diagnostic(help("remove it; use `--set` to change the scenario"))]
    Scenario(&'static str),
    #[error("a dump is a single point in time; `--at` does not apply")]
    #[diagnostic(help("remove `--at`"))]
    OneInstant,
}

/// Explains a node of a cluster as it stands.
fn of_cluster(arguments: &Arguments, catalog: &Catalog, console: &mut Console<'_>) -> Result<(), Failure> {
    let name = match &arguments.about {
        About::Node { at: Some(_), .. } => return Err(Failure::bad_input(OfDump::OneInstant)),
        About::Node { name, at: None } => name,
        About::Decision { .. } | About::Pod { .. } => return Err(Failure::bad_input(OfDump::NoRun)),
    };
    let question = cluster::load(&arguments.scenario, &arguments.of_cluster, catalog, console)?;
    let mut answer = explain_standing(&question, name)?;
    if answer.node.methods.is_empty() && arguments.scenario.as_os_str() != "-" {
        let source = load_argument(&arguments.scenario, &Limits::default())?;
        // What cannot be made a scenario of has no Cluster Autoscaler that could be asked.
        if let Ok(Some((figures, program))) =
            by_cluster_autoscaler(&[source], &answer.node.name, (&question.region, catalog))
        {
            answer.node.because = None;
            answer.node.cluster_autoscaler = Some(figures);
            answer.cluster_autoscaler = Some(program);
        }
    }
    match arguments.format {
        Format::Table => console.data(&presentation::standing_text(&answer, console.width())),
        Format::Json => console.json(&answer),
    }
}

/// Explains.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    if cluster::is_cluster(&arguments.scenario) {
        return of_cluster(arguments, catalog, console);
    }
    if let Some(flag) = arguments.of_cluster.stated() {
        return Err(Failure::bad_input(OfDump::Scenario(flag)));
    }
    let (scenario, _) = program::edits::load(&arguments.scenario, catalog, &arguments.edits.parse()?)?;
    let policy = scenario.for_policy(arguments.policy.as_deref())?;
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let subject = arguments.about.subject(&scenario).map_err(Failure::bad_input)?;
    let answer = explain(&scenario, policy, catalog, seed, &subject).map_err(Failure::bad_input)?;
    match arguments.format {
        Format::Table => console.data(&presentation::text_within(&answer, console.width())),
        Format::Json => console.json(&answer),
    }
}
