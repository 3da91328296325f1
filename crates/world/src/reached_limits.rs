//! Limits on nodes that kept pods waiting: of NodePools and of node groups.
//!
//! Must not decide when a limit is reached: the autoscalers do.

use std::collections::BTreeMap;

use super::World;
use crate::domain::{PodId, Resources, SimTime, Symbol};

/// A limit on nodes, as it was when it was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapacityLimit {
    /// The limits of a NodePool, of which one at least left no room.
    NodePool(Symbol, Resources),
    /// The maximum size of a node group.
    NodeGroup(Symbol, u64),
    /// The most nodes that Cluster Autoscaler allows (`--max-nodes-total`).
    AllNodes,
}

/// A limit and the pods that it kept waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReachedLimit {
    /// The limit.
    pub limit: CapacityLimit,
    /// The pods, each with the time at which the limit first kept it waiting.
    pub pods: BTreeMap<PodId, SimTime>,
}

impl World {
    /// Records that a limit leaves no room for a node for these pods.
    pub fn note_limit(&mut self, limit: CapacityLimit, pods: impl IntoIterator<Item = PodId>, at: SimTime) {
        let limits = &mut self.record.limits;
        let place = limits.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            limits.push(ReachedLimit { limit, pods: BTreeMap::new() });
            limits.len() - 1
        });
        for pod in pods {
            limits[place].pods.entry(pod).or_insert(at);
        }
    }
}
