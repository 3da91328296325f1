//! The policy `Balanced` of v1.14: a move is made only if the share of a pool's cost that it saves is at least half the share
//! of the pool's disturbance that it causes.
//!
//! Source: Karpenter core v1.14 `pkg/controllers/disruption/balanced.go`.

use super::candidates::Candidate;
use super::view::{ClusterView, NodeFacts};
use crate::selection::price::Terms;
use nodecast_model::domain::node_pool::ConsolidationPolicy;
use nodecast_model::domain::{HourlyRate, well_known};

/// A move is approved if its score is at least the inverse of this.
const K: f64 = 2.0;

/// The score of a move for one pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Share of the pool's cost that is saved.
    pub savings: f64,
    /// Share of the pool's disturbance that is caused.
    pub disruption: f64,
}

impl Score {
    /// Savings over disturbance; nothing for a move that saves nothing.
    pub fn ratio(self) -> f64 {
        if self.savings <= 0.0 { 0.0 } else { self.savings / self.disruption }
    }

    /// Whether the move is made.
    pub fn approves(self) -> bool {
        self.ratio() >= 1.0 / K
    }
}

/// What the removal of a node disturbs, as v1.14 counts: 1, and the cost of each pod that would have to go elsewhere.
pub fn rescheduling_cost(node: &NodeFacts<'_>) -> f64 {
    node.digest.rescheduling
}

/// Whether a node counts as empty: none of its pods would have to go elsewhere, or (v1.14) none of them costs anything.
pub(super) fn is_empty(view: &ClusterView<'_>, node: usize) -> bool {
    let facts = &view.nodes[node];
    if view.behaviour().weighs_savings {
        rescheduling_cost(facts) <= 1.0
    } else {
        facts.digest.reschedulable.is_empty()
    }
}

/// Whether every pool that is `Balanced` approves of removing the nodes and paying `replacement` instead. Savings are split
/// over the pools by what the nodes of each cost.
pub(super) fn approved(view: &ClusterView<'_>, nodes: &[&Candidate], replacement: HourlyRate) -> bool {
    if !view.behaviour().weighs_savings {
        return true;
    }
    let price = |candidate: &Candidate| candidate.price.map_or(0.0, HourlyRate::as_f64);
    let total: f64 = nodes.iter().map(|node| price(node)).sum();
    let saved = total - replacement.as_f64();
    (0..view.pools.len()).all(|pool| {
        let of_pool: Vec<&&Candidate> = nodes.iter().filter(|node| node.pool == pool).collect();
        let balanced = view.pools[pool].pool.disruption.policy == ConsolidationPolicy::Balanced;
        if of_pool.is_empty() || !balanced {
            return true;
        }
        let number: f64 = of_pool.iter().map(|candidate| price(candidate)).sum();
        let share = if total > 0.0 { saved * number / total } else { 0.0 };
        let disturbed: f64 = of_pool.iter().map(|pool| rescheduling_cost(&view.nodes[pool.node])).sum();
        let (pool_cost, pool_disturbance) = pool_totals(view, pool);
        let savings = if pool_cost > 0.0 { share / pool_cost } else { 0.0 };
        let disruption = if pool_disturbance > 0.0 { disturbed / pool_disturbance } else { 1.0 };
        Score { savings, disruption }.approves()
    })
}

/// What all nodes of a pool cost per hour, and what their removal would disturb.
fn pool_totals(view: &ClusterView<'_>, pool: usize) -> (f64, f64) {
    let types = view.pools[pool].instance_types;
    let mut totals = (0.0, 0.0);
    for node in view.nodes.iter().filter(|node| node.pool(view.pools) == Some(pool)) {
        let name = node.view.labels.get(well_known::INSTANCE_TYPE);
        let kind = types.iter().find(|instance_type| Some(instance_type.name) == name);
        let price = kind
            .zip(Terms::of_labels(node.view.labels))
            .and_then(|(kind, terms)| super::prices::own_price(kind, &terms));
        totals.0 += price.map_or(0.0, HourlyRate::as_f64);
        totals.1 += rescheduling_cost(node);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::Score;

    #[test]
    fn balanced_policy_needs_savings_half_of_disruption() {
        assert!(Score { savings: 0.1, disruption: 0.2 }.approves());
        assert!(!Score { savings: 0.1, disruption: 0.21 }.approves());
        assert!(!Score { savings: -0.1, disruption: 0.0 }.approves());
    }
}
