//! Pools with a fixed number of nodes: how many to make, which to remove, which drifted ones to replace.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/static`, `pkg/controllers/disruption/staticdrift.go`.

use super::Command;
use super::budgets::Allowance;
use super::candidates::Candidate;
use super::cost::node_cost;
use super::obstacles::Obstacle;
use super::view::{ClusterView, NodeFacts};
use crate::packing::PlannedClaim;
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::domain::{HourlyRate, NodePool, ResourceName, SimTime};

/// The claims of a static pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StaticCount {
    /// Claims that are to stay.
    pub active: i64,
    /// Claims that a command has marked and not deleted yet.
    pub pending_disruption: i64,
    /// Claims that are being deleted.
    pub deleting: i64,
}

impl StaticCount {
    /// How many claims the pool's limit of nodes still lets be made; no limit lets any number.
    pub fn room(self, pool: &NodePool) -> i64 {
        let limit = pool.limits.iter().find(|(name, _)| *name == ResourceName::NODES);
        let all = self.active + self.pending_disruption + self.deleting;
        limit.map_or(i64::MAX, |(_, limit)| (limit - all).max(0))
    }

    /// How many claims to make so that there are as many as the pool wants.
    pub fn missing(self, pool: &NodePool) -> i64 {
        let wanted = i64::from(pool.replicas.unwrap_or(0));
        (wanted - self.active - self.pending_disruption).clamp(0, self.room(pool))
    }

    /// Whether there are more claims than the pool wants, so that drifted ones are not replaced.
    pub fn is_overscaled(self, pool: &NodePool) -> bool {
        self.active + self.pending_disruption > i64::from(pool.replicas.unwrap_or(0))
    }

    /// How many claims to remove.
    pub fn surplus(self, pool: &NodePool) -> i64 {
        (self.active - i64::from(pool.replicas.unwrap_or(0))).max(0)
    }
}

/// The drifted nodes to replace one for one, in one command each: as many of every pool as its budget and its limit of nodes
/// allow, and none while it has more nodes than it wants. `candidates` are those of static drift.
pub fn static_drift(view: &ClusterView<'_>, candidates: &[Candidate], allowances: &[Allowance]) -> Vec<usize> {
    let mut taken = Vec::new();
    for (position, pool) in view.pools.iter().enumerate() {
        let count = count(view, position);
        let most = if count.is_overscaled(pool.pool) { 0 } else { allowances[position].0.min(count.room(pool.pool)) };
        let node = candidates.iter().filter(|candidate| candidate.pool == position).map(|candidate| candidate.node);
        taken.extend(node.take(usize::try_from(most).unwrap_or(0)));
    }
    taken
}

/// Why no drifted node of the static pool at this position is replaced now, whatever its budgets let go.
pub fn against_static_drift(view: &ClusterView<'_>, pool: usize) -> Option<Obstacle> {
    let (pool, count) = (view.pools[pool].pool, count(view, pool));
    if count.is_overscaled(pool) {
        return Some(Obstacle::Overscaled);
    }
    (count.room(pool) == 0).then_some(Obstacle::NodeLimit)
}

/// The claims of a pool that have their instance.
fn count(view: &ClusterView<'_>, pool: usize) -> StaticCount {
    let mut count = StaticCount::default();
    for node in view.nodes.iter().filter(|node| node.view.managed && node.pool(view.pools) == Some(pool)) {
        match (node.marked_for_deletion(), node.queued) {
            (false, _) => count.active += 1,
            (true, true) => count.pending_disruption += 1,
            (true, false) => count.deleting += 1,
        }
    }
    count
}

/// The command that replaces a node by a claim.
pub fn one_for_one(node: usize, replacement: PlannedClaim) -> Command {
    Command {
        nodes: vec![node],
        replacements: vec![replacement],
        moves: Vec::new(),
        replaced: Vec::new(),
        price: HourlyRate::ZERO,
    }
}

/// The order in which surplus nodes go: empty ones first, then those without a protected pod, then the cheapest to disturb. A
/// node with daemons alone is empty, but not with a protected one; pods that end or have ended still hold theirs.
pub fn removal_order(nodes: &mut [(usize, NodeFacts<'_>)], now: SimTime) {
    let key = |node: &NodeFacts<'_>| {
        let protected = node.pods().iter().any(|pod| !pod.is_disruptable(now));
        let holds = node.pods().iter().any(|pod| pod.spec.owner != OwnerKind::DaemonSet);
        (holds || protected, protected)
    };
    nodes.sort_by(|(_, a), (_, b)| {
        let costs = || node_cost(a, now).total_cmp(&node_cost(b, now));
        key(a).cmp(&key(b)).then_with(costs).then_with(|| (a.created, a.view.name).cmp(&(b.created, b.view.name)))
    });
}

#[cfg(test)]
mod tests {
    use super::StaticCount;
    use nodecast_model::domain::{NodePool, ResourceName, Resources};

    #[test]
    fn static_pool_scales_within_limit_to_replicas() {
        let mut pool = NodePool { replicas: Some(5), ..NodePool::named("static") };
        let count = |active, pending_disruption, deleting| StaticCount { active, pending_disruption, deleting };
        assert_eq!((count(2, 0, 0).missing(&pool), count(2, 1, 4).missing(&pool)), (3, 2));
        assert_eq!((count(7, 1, 0).missing(&pool), count(7, 1, 0).surplus(&pool)), (0, 2));
        assert_eq!(count(2, 0, 0).room(&pool), i64::MAX);
        pool.limits = Resources::new().with(ResourceName::NODES, 6);
        assert_eq!((count(2, 1, 2).room(&pool), count(2, 1, 2).missing(&pool)), (1, 1));
        assert_eq!((count(2, 1, 9).room(&pool), count(2, 1, 9).missing(&pool)), (0, 0));
        pool.replicas = Some(0);
        assert_eq!((count(2, 0, 0).missing(&pool), count(2, 0, 0).surplus(&pool)), (0, 2));
    }
}
