//! `nodecast pack`: what Karpenter would launch now for the pods of some files.

pub(super) mod suite;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{Console, Format};
use crate::domain::KarpenterVersion;
use crate::program::pack::{Options, pack, warning_line};
use crate::program::{Failure, Prices};
use crate::scenario::draft::FeatureGateWords;
use nodecast_karpenter::packing::PackerKind;

/// Show which nodes Karpenter would launch for pending pods, from a dump or manifests
///
/// The files are manifests, what `kubectl get pods,nodes,nodepools,ec2nodeclasses -A -o yaml` prints (or -o json), or tables of
/// pods (.csv with the columns name,replicas,cpu,memory and, if wanted, namespace). Pods without a node are scheduled; pods with a node
/// occupy it.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Manifests, dumps and tables; - is the standard input
    #[arg(required_unless_present = "suite", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Pack every problem in a suite directory such as scenarios/packing, and report packing quality
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "explain"])]
    suite: Option<PathBuf>,
    /// Exit 1 if any problem in the suite packs worse than in this baseline
    // clap waives `requires` where what is required conflicts with what is there, so the conflict is stated here too.
    #[arg(long, value_name = "FILE", requires = "suite", conflicts_with = "files")]
    baseline: Option<PathBuf>,
    /// Allowed cost increase over the baseline, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0.5", value_parser = percentage, requires = "baseline")]
    tolerance: f64,
    /// Write the current results as a baseline
    #[arg(long, value_name = "FILE", requires = "suite", conflicts_with = "files")]
    write_baseline: Option<PathBuf>,
    /// AWS region, for example us-east-1 [default: from the ClusterConfig or the nodes]
    #[arg(long)]
    region: Option<String>,
    /// Zones that the cluster has subnets in [default: the ClusterConfig's, or all]
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',')]
    zones: Vec<String>,
    /// Release of Karpenter [default: that of Karpenter's Deployment or pods in the files, or v1.13]
    #[arg(long, value_name = "VERSION")]
    karpenter: Option<KarpenterVersion>,
    /// Feature gates in the form of Karpenter's FEATURE_GATES, over those in the files, for example SpotToSpotConsolidation=true
    #[arg(long, value_name = "GATE=BOOL,...")]
    feature_gates: Option<FeatureGateWords>,
    /// Repack all pods on Karpenter's nodes from scratch: show the avoidable cost and the cost of each scheduling constraint
    #[arg(long, conflicts_with = "suite")]
    repack: bool,
    /// Show why each NodePool and its instance types can or cannot run this pod
    #[arg(long, value_name = "POD")]
    explain: Option<String>,
    /// Packing algorithm
    #[arg(long, value_enum, default_value = "karpenter")]
    packer: PackerChoice,
    /// Time limit in seconds for finding a cheaper plan, and again for tightening the lower bound; uses the best found so far. 0 takes the
    /// first plan
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
    /// Print the answer alone: no warnings
    #[arg(long, short)]
    quiet: bool,
}

/// The packers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PackerChoice {
    /// Karpenter's own.
    Karpenter,
    /// One that looks for the cheapest nodes under the same constraints; never dearer.
    CostAware,
}

impl PackerChoice {
    fn kind(self) -> PackerKind {
        match self {
            Self::Karpenter => PackerKind::Karpenter,
            Self::CostAware => PackerKind::CostAware,
        }
    }
}

/// JSON that could not be written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot write the answer as JSON: {0}")]
struct Unwritable(#[from] serde_json::Error);

impl Arguments {
    /// How to pack.
    fn options(&self) -> Options {
        Options {
            region: self.region.clone(),
            zones: self.zones.clone(),
            karpenter: self.karpenter,
            feature_gates: self.feature_gates.clone(),
            packer: self.packer.kind(),
            time_limit: self.time_limit,
            repack: self.repack,
        }
    }
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let options = arguments.options();
    options.check(options.karpenter.unwrap_or_default())?;
    if let Some(suite) = &arguments.suite {
        return suite::execute(arguments, suite, console);
    }
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let packed = pack(&arguments.files, arguments.explain.as_deref(), &prices, &options)?;
    match arguments.format {
        Format::Table => console.data(&packed.answer.table_within(console.width()))?,
        Format::Json => {
            let json = packed.answer.to_json().map_err(|error| Failure::system(Unwritable(error)))?;
            console.document(&json)?;
        }
    }
    if !arguments.quiet {
        for warning in &packed.warnings {
            console.note(&warning_line(warning));
        }
    }
    Ok(())
}

/// A percentage from zero on.
fn percentage(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.parse().ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| format!("`{text}` is no percentage from 0 on"))
}

/// A number of seconds, of which a part may be given.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is no number of seconds from 0 on"))
}
