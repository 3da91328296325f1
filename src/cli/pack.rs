//! `nodecast pack`: what Karpenter would launch now for the pods of some files.

use std::path::PathBuf;

use clap::ValueEnum;

use super::prices::Prices;
use super::{Console, Failure};
use crate::domain::{KarpenterVersion, Symbol};
use crate::report::pack::PackAnswer;
use crate::scenario::{Circumstances, PackingQuestion, Warning};
use crate::simulation::single_pass::SinglePass;

/// Show which nodes Karpenter would launch right now for the pods of some files
///
/// The files are manifests, what `kubectl get pods,nodes,nodepools,ec2nodeclasses -A -o yaml` prints (or -o json), or tables of
/// pods (.csv with the columns name,replicas,cpu,memory and, if wanted, namespace). Pods without a node are placed; pods with a
/// node count on it.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Manifests, dumps and tables; - is the standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The region, for example us-east-1 [default: that of a ClusterConfig or of the nodes]
    #[arg(long)]
    region: Option<String>,
    /// The zones of the cluster's subnets [default: that of a ClusterConfig, or all]
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',')]
    zones: Vec<String>,
    /// The release of Karpenter
    #[arg(long, value_name = "VERSION", default_value = "v1.13")]
    karpenter: KarpenterVersion,
    /// Say why each NodePool and its instance types can or cannot take this pod
    #[arg(long, value_name = "POD")]
    explain: Option<String>,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Prices to use instead of the built-in ones, laid out like pricing-data/
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
    /// Print the answer alone: no warnings
    #[arg(long, short)]
    quiet: bool,
}

/// How the answer is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// JSON with stable keys.
    Json,
}

/// JSON that could not be written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot write the answer as JSON: {0}")]
struct Unwritable(#[from] serde_json::Error);

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let circumstances = Circumstances {
        region: arguments.region.clone(),
        zones: arguments.zones.iter().map(|zone| Symbol::new(zone)).collect(),
        karpenter: arguments.karpenter,
    };
    let question =
        PackingQuestion::load(&arguments.files, &circumstances, prices.catalog()).map_err(Failure::bad_input)?;
    let explained = arguments.explain.as_deref().map(|pod| question.find(pod)).transpose();
    let explained = explained.map_err(Failure::bad_input)?;
    let answer = PackAnswer::of(&SinglePass::of(&question), explained);
    match arguments.format {
        Format::Table => console.data(&answer.table())?,
        Format::Json => {
            let json = answer.to_json().map_err(|error| Failure::system(Unwritable(error)))?;
            console.data(&json)?;
        }
    }
    if !arguments.quiet {
        for warning in &question.warnings {
            console.tell(&line(warning));
        }
    }
    Ok(())
}

/// A warning in one line, with its place.
fn line(warning: &Warning) -> String {
    match warning.place() {
        Some(place) => format!("warning: {}:{}:{}: {}", place.file, place.line, place.column, warning.message()),
        None => format!("warning: {}", warning.message()),
    }
}
