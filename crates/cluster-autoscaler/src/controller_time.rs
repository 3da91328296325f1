//! How long the Cluster Autoscaler takes for an iteration of its main loop.
//!
//! Fitted to release 1.36, measured on one thread of a shared virtual processor of 2024: 1,000 to 51,000 pods against one to
//! ten groups, which took about a tenth of a millisecond for each pod and group. What pods with constraints between pods take
//! is known by its order of magnitude alone.

use nodecast_model::domain::SimDuration;
use nodecast_model::domain::controller_time::of_nanos;

/// For each pod that is held against a group, in nanoseconds as all that follow.
const POD: u128 = 90_000;
/// So many nodes an estimate opens at that price; beyond, each costs more.
const CHEAP_NODES: u64 = 300;
/// How many more nodes double the price.
const DEAR_NODES: u64 = 1_000;
/// A pod with constraints between pods is held against every node of the snapshot; so many of them cost as much as another pod.
const NODES_PER_POD: u64 = 10;
/// The least and the most that such a pod costs, as a multiple of another.
const CONSTRAINED: (u64, u64) = (10, 100);
/// Around an iteration. On four groups an iteration took 10 to 30 ms, on 102 groups 70 to 160 ms, with its two calls about the status
/// ConfigMap, which are not part of this.
const AROUND: u128 = 4_000_000;
/// For each group.
const GROUP: u128 = 800_000;
/// For each node of the cluster.
const CLUSTER_NODE: u128 = 100_000;
/// For each pod whose new place scale-down looks for.
const MOVED_POD: u128 = 50_000;

/// What an estimate had to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EstimateWork {
    /// Pods that were held against the group.
    pub pods: u64,
    /// Those among them with constraints between pods.
    pub constrained: u64,
    /// Nodes that it opened.
    pub opened: u64,
    /// Nodes of the snapshot before.
    pub nodes: u64,
}

/// How long an estimate for one group takes.
pub fn estimate(work: &EstimateWork) -> SimDuration {
    let plain = work.pods.saturating_sub(work.constrained);
    let times = ((work.nodes + work.opened) / NODES_PER_POD).clamp(CONSTRAINED.0, CONSTRAINED.1);
    let all = u128::from(plain) + u128::from(work.constrained) * u128::from(times);
    let more = u128::from(work.opened.saturating_sub(CHEAP_NODES));
    of_nanos(all * POD * (u128::from(DEAR_NODES) + more) / u128::from(DEAR_NODES))
}

/// How long an iteration takes besides its estimates and calls, given the number of nodes and groups, and of pods for which scale-down
/// looks for new places.
pub fn around(nodes: u64, groups: u64, moved_pods: u64) -> SimDuration {
    of_nanos(AROUND + u128::from(groups) * GROUP + u128::from(nodes) * CLUSTER_NODE) + moves(moved_pods)
}

/// How long the search for new places of so many pods takes.
pub fn moves(pods: u64) -> SimDuration {
    of_nanos(u128::from(pods) * MOVED_POD)
}

#[cfg(test)]
mod tests {
    use super::{EstimateWork, around, estimate};

    /// Seconds for so many pods against so many groups, each of which would open so many nodes.
    fn seconds(pods: u64, groups: u64, opened: u64) -> f64 {
        let one = estimate(&EstimateWork { pods, opened, ..EstimateWork::default() }).as_secs_f64();
        groups as f64 * one + around(0, groups, 0).as_secs_f64()
    }

    #[test]
    fn autoscaler_iteration_time_is_near_measured() {
        let rows = [
            (1_000, 5, 100, 0.32),
            (5_000, 1, 300, 0.66),
            (5_000, 5, 300, 2.5),
            (5_000, 10, 300, 4.5),
            (51_000, 1, 1_000, 4.1),
        ];
        for (pods, groups, opened, measured) in rows {
            let ratio = seconds(pods, groups, opened) / measured;
            assert!((0.5..=2.0).contains(&ratio), "{pods} pods, {groups} groups: {ratio}");
        }
    }

    #[test]
    fn quiet_iteration_takes_longer_on_more_groups() {
        // With two calls of 4 ms each.
        let millis = |groups| 8.0 + 1_000.0 * around(3, groups, 0).as_secs_f64();
        assert!((10.0..30.0).contains(&millis(1)) && (10.0..30.0).contains(&millis(4)));
        assert!((70.0..160.0).contains(&millis(102)));
    }

    #[test]
    fn inter_pod_constraints_slow_estimate_ten_to_hundredfold() {
        let plain = EstimateWork { pods: 1_000, ..EstimateWork::default() };
        let all = |nodes| EstimateWork { constrained: 1_000, nodes, ..plain };
        let times = |nodes| estimate(&all(nodes)).as_secs_f64() / estimate(&plain).as_secs_f64();
        assert!((times(0) - 10.0).abs() < 0.1 && (times(500) - 50.0).abs() < 0.5 && (times(5_000) - 100.0).abs() < 1.0);
    }
}
