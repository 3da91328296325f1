//! What the removal of a node disturbs.
//!
//! Source: Karpenter core v1.13 `pkg/utils/disruption/disruption.go`.

use super::view::NodeFacts;
use nodecast_model::domain::{PodSpec, SimDuration, SimTime, well_known};

/// Cost of a pod at most, and at least with the sign turned.
const POD_COST_BOUND: f64 = 10.0;

/// The cost of moving one pod: 1, more for a high priority or deletion cost, between -10 and 10.
pub fn pod_cost(spec: &PodSpec) -> f64 {
    let annotation = spec.annotations.get(well_known::POD_DELETION_COST);
    let deletion_cost: f64 = annotation.and_then(|cost| cost.as_str().parse().ok()).unwrap_or(0.0);
    let cost = 1.0 + deletion_cost / f64::from(1_u32 << 27) + f64::from(spec.priority) / f64::from(1_u32 << 25);
    cost.clamp(-POD_COST_BOUND, POD_COST_BOUND)
}

/// The cost of removing a node: that of all its pods, daemons included, times the share of its life that is left to it.
pub fn node_cost(node: &NodeFacts<'_>, now: SimTime) -> f64 {
    Disturbance::new(node).at(now)
}

/// What the removal of a node disturbs while its life grows shorter and its pods stay as they are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Disturbance {
    pods: f64,
    created: SimTime,
    expire_after: Option<SimDuration>,
}

impl Disturbance {
    /// That of a node.
    pub fn new(node: &NodeFacts<'_>) -> Self {
        Self { pods: node.digest.cost, created: node.created, expire_after: node.expire_after }
    }

    /// The [cost](node_cost) of removing the node at an instant.
    pub fn at(&self, now: SimTime) -> f64 {
        self.pods * self.lifetime_left(now)
    }

    fn lifetime_left(&self, now: SimTime) -> f64 {
        let Some(expiry) = self.expire_after else { return 1.0 };
        let age = now - self.created;
        if expiry.as_micros() <= 0 {
            return 0.0;
        }
        ((expiry - age).as_secs_f64() / expiry.as_secs_f64()).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::pod_cost;
    use nodecast_model::domain::{Labels, PodSpec, well_known};

    fn with(cost: &str, priority: i32) -> f64 {
        pod_cost(&PodSpec {
            annotations: Labels::new().with(well_known::POD_DELETION_COST, cost),
            priority,
            ..PodSpec::default()
        })
    }

    #[test]
    fn priority_and_deletion_cost_have_bounded_effect() {
        let same = |cost: f64, expected: f64| assert!((cost - expected).abs() < 1e-12, "{cost}, not {expected}");
        same(pod_cost(&PodSpec::default()), 1.0);
        assert!(with("100", 0) > 1.0 && with("-100", 0) < 1.0);
        assert!(with("101", 0) > with("100", 0) && with("100", 0) > with("99", 0));
        assert!(with("0", 1) > 1.0 && with("0", -1) < 1.0);
        same(with("0", 2_000_000_000), 10.0);
        same(with("-2147483647", 0), -10.0);
        same(with("many", 0), 1.0);
    }
}
