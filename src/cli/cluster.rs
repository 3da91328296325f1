//! What the questions about a cluster as it stands have in common: its file, and what that does not say.

use std::path::{Path, PathBuf};

use super::Console;
use crate::catalog::Catalog;
use crate::domain::{KarpenterVersion, Symbol};
use crate::program::Failure;
use crate::program::pack::warning_line;
use crate::scenario::draft::FeatureGateWords;
use crate::scenario::{Circumstances, packing_question};
use crate::single_pass::PackingQuestion;

/// What a dump does not say.
#[derive(clap::Args, Debug)]
pub(super) struct OfCluster {
    /// AWS region, for example us-east-1 [default: the nodes' region]
    #[arg(long, global = true)]
    region: Option<String>,
    /// Zones that the cluster has subnets in [default: all]
    #[arg(long, value_name = "ZONE,...", value_delimiter = ',', global = true)]
    zones: Vec<String>,
    /// Release of Karpenter that a cluster runs [default: that of Karpenter's Deployment or pods in the dump, or v1.13]
    #[arg(long, value_name = "VERSION", global = true)]
    karpenter: Option<KarpenterVersion>,
    /// Feature gates of a cluster in the form of Karpenter's FEATURE_GATES, over those in the dump, for example
    /// SpotToSpotConsolidation=true
    #[arg(long, value_name = "GATE=BOOL,...", global = true)]
    feature_gates: Option<FeatureGateWords>,
}

impl OfCluster {
    /// A flag that is stated.
    pub(super) fn stated(&self) -> Option<&'static str> {
        let flags = [
            ("--region", self.region.is_some()),
            ("--zones", !self.zones.is_empty()),
            ("--karpenter", self.karpenter.is_some()),
            ("--feature-gates", self.feature_gates.is_some()),
        ];
        flags.into_iter().find(|(_, stated)| *stated).map(|(flag, _)| flag)
    }
}

/// Whether a file holds objects of Kubernetes and no scenario, as far as its first lines tell.
pub(super) fn is_cluster(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_kind = |line: &str| line.starts_with("kind:") || line.starts_with("apiVersion:");
    text.lines().any(is_kind) || text.trim_start().starts_with('{') && text.contains("\"apiVersion\"")
}

/// Reads the cluster of a file, and says what could make the real one answer otherwise.
pub(super) fn load(
    path: &PathBuf,
    rest: &OfCluster,
    catalog: &Catalog,
    console: &mut Console<'_>,
) -> Result<PackingQuestion, Failure> {
    let circumstances = Circumstances {
        region: rest.region.clone(),
        zones: rest.zones.iter().map(|zone| Symbol::new(zone)).collect(),
        karpenter: rest.karpenter,
        feature_gates: rest.feature_gates.clone(),
        without_pools: true,
    };
    let question = packing_question::load(&[path], &circumstances, catalog)?;
    for warning in &question.warnings {
        console.note(&warning_line(warning));
    }
    Ok(question)
}
