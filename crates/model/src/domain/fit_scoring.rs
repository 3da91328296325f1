//! How the plugin NodeResourcesFit of kube-scheduler is set up to score nodes.

use super::ResourceName;

/// How NodeResourcesFit scores nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FitStrategy {
    /// Emptier nodes first: the default.
    #[default]
    LeastAllocated,
    /// Fuller nodes first.
    MostAllocated,
    /// A polygon over the utilisation in percent: points of (utilisation, score 0 to 10), in order of utilisation.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// Settings of NodeResourcesFit's score.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FitScoring {
    /// How a resource is scored.
    pub strategy: FitStrategy,
    /// Resources with their weights.
    pub resources: Vec<(ResourceName, i64)>,
}

impl Default for FitScoring {
    /// LeastAllocated over CPU and memory, equally.
    fn default() -> Self {
        Self { strategy: FitStrategy::default(), resources: vec![(ResourceName::CPU, 1), (ResourceName::MEMORY, 1)] }
    }
}
