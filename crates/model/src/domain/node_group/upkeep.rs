//! Upkeep of node groups: updates to another version, instance refreshes, and node auto repair.
//!
//! Must not: hold the state of a group in a run.

use crate::domain::{KubernetesVersion, SimDuration, Symbol};

/// A number of nodes, or a share of the nodes of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeShare {
    /// A number.
    Count(u32),
    /// A percentage, 1 to 100.
    Percent(u32),
}

impl NodeShare {
    /// The number of nodes of a group of `size`: at least one, fractions cut off.
    pub fn nodes(self, size: u32) -> u32 {
        let nodes = match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (u64::from(size) * u64::from(percent) / 100) as u32,
        };
        nodes.max(1)
    }
}

/// Order in which an update of a managed group launches and terminates.
///
/// Source: EKS API reference, `NodegroupUpdateConfig`, `updateStrategy` (2026).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum UpdateStrategy {
    /// New nodes come before old ones end.
    #[default]
    Default,
    /// Old nodes end before new ones come.
    Minimal,
}

/// `updateConfig` of a managed group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UpdateConfig {
    /// Nodes that are drained at a time: `maxUnavailable` or `maxUnavailablePercentage`.
    pub max_unavailable: NodeShare,
    /// `updateStrategy`.
    pub strategy: UpdateStrategy,
}

impl UpdateConfig {
    /// Nodes by which an update enlarges a group of `size` nodes in `zones`, at most: two per zone or a batch, and none with `MINIMAL`.
    ///
    /// Source: EKS user guide, `nodegroups/managed-node-update-behavior.adoc` (0bfeeaf).
    pub fn surge(&self, size: u32, zones: usize) -> u32 {
        match self.strategy {
            UpdateStrategy::Default => self.max_unavailable.nodes(size).max(2 * zones as u32),
            UpdateStrategy::Minimal => 0,
        }
    }
}

impl Default for UpdateConfig {
    fn default() -> Self {
        Self { max_unavailable: NodeShare::Count(1), strategy: UpdateStrategy::Default }
    }
}

/// An update of a managed group to another release or machine image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VersionUpdate {
    /// The group.
    pub group: Symbol,
    /// Release of the new nodes' kubelets; `None` for that of the nodes before.
    pub release: Option<KubernetesVersion>,
    /// Name of the new machine image, if the update is one of the image.
    pub image: Option<Symbol>,
    /// Whether pods that budgets keep on a node are deleted when the time of its drain is over.
    pub force: bool,
}

/// An instance refresh of an Auto Scaling group.
///
/// Source: EC2 Auto Scaling API reference, `RefreshPreferences`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceRefresh {
    /// The group.
    pub group: Symbol,
    /// `MinHealthyPercentage`, 0 to 100.
    pub min_healthy: u32,
    /// `InstanceWarmup`: time from an instance in service to the next batch.
    pub warm_up: SimDuration,
    /// `CheckpointPercentages`: the refresh pauses after these percentages of the instances, in rising order.
    pub checkpoints: Vec<u32>,
    /// `CheckpointDelay`.
    pub checkpoint_delay: SimDuration,
    /// `SkipMatching`: instances of the newest launch template stay.
    pub skip_matching: bool,
    /// Release of the new nodes' kubelets; `None` for that of the nodes before.
    pub release: Option<KubernetesVersion>,
}

impl InstanceRefresh {
    /// The API's default of `CheckpointDelay`.
    pub const CHECKPOINT_DELAY: SimDuration = SimDuration::from_secs(3_600);
}

/// `nodeRepairConfig` of a managed group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeRepair {
    /// Unhealthy nodes above which repair stops; `None` for more than 20% of a group of more than five nodes.
    pub max_unhealthy: Option<NodeShare>,
    /// Nodes that are repaired at a time; `None` for all.
    pub max_parallel: Option<NodeShare>,
    /// Time for which a node is not Ready until it is replaced; `None` if it is not.
    pub wait: Option<SimDuration>,
}

impl NodeRepair {
    /// Time that a node that is not Ready waits for its replacement.
    ///
    /// Source: EKS user guide, node auto repair (2026).
    pub const NOT_READY: SimDuration = SimDuration::from_secs(30 * 60);

    /// Whether repair of a group of `size` nodes stops at `unhealthy` ones.
    pub fn stops(&self, unhealthy: u32, size: u32) -> bool {
        match self.max_unhealthy {
            Some(limit) => unhealthy > limit.nodes(size),
            None => size > 5 && unhealthy * 5 > size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeRepair, NodeShare};

    #[test]
    fn share_of_nodes_is_at_least_one() {
        let sizes = |share: NodeShare| [0, 3, 7, 50].map(|size| share.nodes(size));
        assert_eq!(sizes(NodeShare::Percent(33)), [1, 1, 2, 16]);
        assert_eq!(sizes(NodeShare::Count(4)), [4; 4]);
    }

    #[test]
    fn repair_stops_above_a_fifth_of_a_larger_group() {
        let stops = |repair: &NodeRepair| [(2, 10), (3, 10), (2, 5), (5, 5)].map(|(bad, size)| repair.stops(bad, size));
        assert_eq!(stops(&NodeRepair::default()), [false, true, false, false]);
        let strict = NodeRepair { max_unhealthy: Some(NodeShare::Count(1)), ..NodeRepair::default() };
        assert_eq!(stops(&strict), [true; 4]);
    }
}
