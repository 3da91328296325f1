//! NodeResourcesFit and NodeResourcesBalancedAllocation: whether a pod's requests fit a node, and how well.

use super::node::NodeEntry;
use super::plugins::{Reason, Rejection};
use super::shape::PodShape;
use nodecast_model::domain::fit_scoring::{FitScoring, FitStrategy};
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, ResourceName};

/// The highest score of a node.
pub(super) const MAX_NODE_SCORE: i64 = 100;

/// Checks that the node has a free pod slot and room for every resource that the pod asks for.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/noderesources/fit.go`, `fitsRequest`.
pub(super) fn fits(shape: &PodShape, node: &NodeEntry) -> Result<(), Rejection> {
    let mut reasons = Vec::new();
    let mut resolvable_by_eviction = true;
    if node.pods.len() as i64 + 1 > node.pods_allowed {
        reasons.push(Reason::TooManyPods);
    }
    let mut check = |name: ResourceName, request: i64, allocatable: i64, used: i64| {
        if request > 0 && request > allocatable - used {
            reasons.push(Reason::Insufficient(name));
            resolvable_by_eviction &= request <= allocatable;
        }
    };
    let (requests, offered, used) = (&shape.requests, &node.allocatable, &node.requested);
    check(ResourceName::CPU, requests.milli_cpu, offered.milli_cpu, used.milli_cpu);
    check(ResourceName::MEMORY, requests.memory, offered.memory, used.memory);
    let (request, storage, used_storage) =
        (requests.ephemeral_storage, offered.ephemeral_storage, used.ephemeral_storage);
    check(ResourceName::EPHEMERAL_STORAGE, request, storage, used_storage);
    for &(name, request) in &shape.extended {
        check(name, request, node.node.allocatable.get(name), node.extended.get(name));
    }
    if reasons.is_empty() { Ok(()) } else { Err(Rejection { reasons, resolvable_by_eviction }) }
}

/// Whether [`fits`] would accept the node.
pub(super) fn has_room(shape: &PodShape, node: &NodeEntry) -> bool {
    let (requests, offered, used) = (&shape.requests, &node.allocatable, &node.requested);
    let fits = |request: i64, allocatable: i64, used: i64| request <= 0 || request <= allocatable - used;
    (node.pods.len() as i64) < node.pods_allowed
        && fits(requests.milli_cpu, offered.milli_cpu, used.milli_cpu)
        && fits(requests.memory, offered.memory, used.memory)
        && fits(requests.ephemeral_storage, offered.ephemeral_storage, used.ephemeral_storage)
        && shape
            .extended
            .iter()
            .all(|&(name, request)| fits(request, node.node.allocatable.get(name), node.extended.get(name)))
}

/// Whether the pod would fit the node if nothing else ran there.
pub(super) fn fits_when_empty(shape: &PodShape, node: &NodeEntry) -> bool {
    let (requests, offered) = (&shape.requests, &node.allocatable);
    node.pods_allowed >= 1
        && requests.milli_cpu <= offered.milli_cpu
        && requests.memory <= offered.memory
        && requests.ephemeral_storage <= offered.ephemeral_storage
        && shape.extended.iter().all(|&(name, amount)| amount <= node.node.allocatable.get(name))
}

/// NodeResourcesFit's score, 0 to 100, not normalised further.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/noderesources/least_allocated.go`, `most_allocated.go`,
/// `requested_to_capacity_ratio.go` and `resource_allocation.go`.
pub(super) fn fit_score(scoring: &FitScoring, shape: &PodShape, node: &NodeEntry) -> i64 {
    let mut sum = 0;
    let mut weights = 0;
    for &(name, weight) in &scoring.resources {
        let (allocatable, requested) = match name {
            ResourceName::CPU => (node.allocatable.milli_cpu, node.counted.milli_cpu + shape.counted.milli_cpu),
            ResourceName::MEMORY => (node.allocatable.memory, node.counted.memory + shape.counted.memory),
            ResourceName::EPHEMERAL_STORAGE => (
                node.allocatable.ephemeral_storage,
                node.requested.ephemeral_storage + shape.requests.ephemeral_storage,
            ),
            _ => match shape.extended.iter().find(|entry| entry.0 == name) {
                Some(&(_, request)) => (node.node.allocatable.get(name), node.extended.get(name) + request),
                None => continue, // An extended resource that the pod does not ask for says nothing about it.
            },
        };
        if allocatable == 0 {
            continue;
        }
        let score = match &scoring.strategy {
            FitStrategy::LeastAllocated if requested > allocatable => 0,
            FitStrategy::LeastAllocated => percent_of(allocatable - requested, allocatable),
            FitStrategy::MostAllocated => percent_of(requested.min(allocatable), allocatable),
            FitStrategy::RequestedToCapacityRatio(points) => {
                let utilization = if requested > allocatable { 100 } else { percent_of(requested, allocatable) };
                polygon(points, utilization)
            }
        };
        // The ratio strategy ignores resources that score nothing; the mean strategies count them.
        let counts = score > 0 || !matches!(scoring.strategy, FitStrategy::RequestedToCapacityRatio(_));
        sum += score * weight;
        weights += if counts { weight } else { 0 };
    }
    match (&scoring.strategy, weights) {
        (_, 0) => 0,
        // Rounded to the nearest, where the others truncate.
        (FitStrategy::RequestedToCapacityRatio(_), _) => libm::round(sum as f64 / weights as f64) as i64,
        _ => sum / weights,
    }
}

/// `part * 100 / whole`, truncated; `whole` is not zero.
fn percent_of(part: i64, whole: i64) -> i64 {
    match part.checked_mul(MAX_NODE_SCORE) {
        Some(scaled) => scaled / whole,
        None => (i128::from(part) * i128::from(MAX_NODE_SCORE) / i128::from(whole)) as i64,
    }
}

/// The polygon's value at `utilization`, flat outside its points; scores of 0 to 10 become 0 to 100.
fn polygon(points: &[(i64, i64)], utilization: i64) -> i64 {
    let scaled = |score: i64| score * (MAX_NODE_SCORE / 10);
    let mut before: Option<(i64, i64)> = None;
    for &(at, score) in points {
        if utilization <= at {
            return match before {
                Some((left, left_score)) if at != left => {
                    scaled(left_score) + (scaled(score) - scaled(left_score)) * (utilization - left) / (at - left)
                }
                _ => scaled(score),
            };
        }
        before = Some((at, score));
    }
    points.last().map_or(0, |&(_, score)| scaled(score))
}

/// NodeResourcesBalancedAllocation's score, or `None` where the plugin leaves the pod out. Since 1.36 the score is about
/// the change that the pod makes (75 is no change); before, about the state it leaves.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go`.
pub(super) fn balanced_score(version: KubernetesVersion, shape: &PodShape, node: &NodeEntry) -> Option<i64> {
    // Best-effort pods are left out since 1.33.
    if version.has(KubernetesBehaviour::SchedulerSkipsBestEffortBalance) && shape.is_best_effort() {
        return None;
    }
    let (offered, used, requests) = (&node.allocatable, &node.requested, &shape.requests);
    let with_pod =
        balance(used.milli_cpu + requests.milli_cpu, offered.milli_cpu, used.memory + requests.memory, offered.memory);
    if !version.has(KubernetesBehaviour::SchedulerBalanceChange) {
        return Some(with_pod);
    }
    let without = balance(used.milli_cpu, offered.milli_cpu, used.memory, offered.memory);
    Some(MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with_pod - without) / 2)
}

/// 100 less the spread between the two utilisations in percent, truncated.
fn balance(milli_cpu: i64, cpu_offered: i64, memory: i64, memory_offered: i64) -> i64 {
    let share = |used: i64, offered: i64| (used as f64 / offered as f64).min(1.0);
    let deviation = if cpu_offered == 0 || memory_offered == 0 {
        0.0 // One resource alone is always in balance.
    } else {
        ((share(milli_cpu, cpu_offered) - share(memory, memory_offered)) / 2.0).abs()
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::{FitScoring, FitStrategy, balanced_score, fit_score, polygon};
    use crate::node::{NodeEntry, PlacedPod, SchedulerNode};
    use crate::shape::{PeerId, PodShape, ShapeId};
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{Container, KubernetesVersion, NodeId, PodId, PodSpec, Resources, SimTime};
    use std::sync::Arc;

    const GIB: i64 = 1 << 30;

    fn pod(milli_cpu: i64, gib: i64) -> PodShape {
        let requests = Resources::cpu_memory(milli_cpu, gib * GIB);
        let container = Container { requests, ..Container::default() };
        let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        PodShape::new(well_known::DEFAULT, &Arc::new(spec), PeerId(0), None, |_| 0)
    }

    fn node(milli_cpu: i64, gib: i64, used_milli_cpu: i64, used_gib: i64) -> NodeEntry {
        let allocatable = Resources::cpu_memory(milli_cpu, gib * GIB);
        let mut entry = NodeEntry::new(NodeId(0), SchedulerNode { allocatable, ..SchedulerNode::default() });
        let placed = PlacedPod { pod: PodId(0), shape: ShapeId(0), started: SimTime::ZERO, terminating: false };
        if used_milli_cpu > 0 {
            entry.place(placed, &pod(used_milli_cpu, used_gib));
        }
        entry
    }

    #[test]
    fn least_allocated_scores_match_hand_calculation() {
        let until_1_35 = KubernetesVersion::from_minor(35).unwrap();
        for (offered, used, pair, least, balance_before, balance_since) in [
            ((4_000, 16), (0, 0), (1_000, 2), 81, 93, 71),
            ((8_000, 32), (4_000, 4), (1_000, 8), 49, 87, 78),
            ((2_000, 8), (500, 6), (500, 1), 31, 81, 78),
            ((4_000, 8), (2_000, 1), (1_000, 1), 50, 75, 72),
        ] {
            let node = node(offered.0, offered.1, used.0, used.1);
            let shape = pod(pair.0, pair.1);
            assert_eq!(fit_score(&FitScoring::default(), &shape, &node), least);
            assert_eq!(balanced_score(until_1_35, &shape, &node), Some(balance_before));
            assert_eq!(balanced_score(KubernetesVersion::default(), &shape, &node), Some(balance_since));
        }
    }

    #[test]
    fn most_allocated_prefers_fuller_node() {
        let (empty, half) = (node(4_000, 16, 0, 0), node(4_000, 16, 2_000, 8));
        let most = FitScoring { strategy: FitStrategy::MostAllocated, ..FitScoring::default() };
        let shape = pod(1_000, 4);
        assert_eq!((fit_score(&most, &shape, &empty), fit_score(&most, &shape, &half)), (25, 75));
        let points = vec![(0, 10), (100, 0)];
        let falling = FitScoring { strategy: FitStrategy::RequestedToCapacityRatio(points), ..FitScoring::default() };
        assert_eq!((fit_score(&falling, &shape, &empty), fit_score(&falling, &shape, &half)), (75, 25));
    }

    #[test]
    fn a_polygon_is_flat_outside_its_points() {
        let points = [(20, 2), (60, 10)];
        assert_eq!([0, 20, 40, 60, 90].map(|at| polygon(&points, at)), [20, 20, 60, 100, 100]);
        assert_eq!(polygon(&[], 50), 0);
    }

    #[test]
    fn pods_without_requests_skip_balance_since_1_33() {
        let shape = PodShape::new(well_known::DEFAULT, &Arc::new(PodSpec::default()), PeerId(0), None, |_| 0);
        let node = node(4_000, 16, 1_000, 0);
        assert_eq!(balanced_score(KubernetesVersion::default(), &shape, &node), None);
        let older = KubernetesVersion::from_minor(32).unwrap();
        assert_eq!(balanced_score(older, &shape, &node), Some(87));
    }
}
