//! The ReplicaSet controller: how many pods one pass makes or deletes, and which go first.

use std::cmp::Ordering;

use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::{SimDuration, SimTime};

/// How many pods a ReplicaSet makes or deletes in one pass at most.
pub const BURST: i64 = 500;

/// What one pass of a ReplicaSet does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PodChange {
    /// It has what it wants.
    Keep,
    /// It makes so many pods, in [`slow_start_batches`].
    Create(i64),
    /// It deletes so many pods, see [`victims`].
    Delete(i64),
}

/// What a ReplicaSet does with `active` pods (neither ended nor being deleted) when it wants `wanted`. Pods being deleted do
/// not count, so their replacements run beside them.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/replicaset/replica_set.go`, `manageReplicas`.
pub fn pod_change(active: i64, wanted: i64) -> PodChange {
    match active.cmp(&wanted) {
        Ordering::Equal => PodChange::Keep,
        Ordering::Less => PodChange::Create(wanted.saturating_sub(active).min(BURST)),
        Ordering::Greater => PodChange::Delete(active.saturating_sub(wanted).min(BURST)),
    }
}

/// The sizes of the batches in which `count` pods are made: 1, 2, 4 and so on. A batch in which a pod is refused ends the
/// pass, so a namespace at its quota is asked once and not five hundred times.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/replicaset/replica_set.go`, `slowStartBatch`.
pub fn slow_start_batches(count: i64) -> impl Iterator<Item = i64> {
    let (mut left, mut size) = (count, 1_i64);
    std::iter::from_fn(move || {
        let batch = size.min(left);
        left -= batch;
        size = size.saturating_mul(2);
        (batch > 0).then_some(batch)
    })
}

/// A pod that a ReplicaSet might delete. Only active pods are candidates: not ended, not being deleted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VictimView {
    /// Whether it has been assigned to a node.
    pub assigned: bool,
    /// Its phase.
    pub phase: PodPhase,
    /// Since when it has been ready; `None` if it is not.
    pub ready_since: Option<SimTime>,
    /// The annotation `controller.kubernetes.io/pod-deletion-cost`, 0 unless given.
    pub deletion_cost: i32,
    /// Active pods of the same Deployment, of all its ReplicaSets, on the same node.
    pub siblings_on_node: u32,
    /// The highest restart count among its app containers.
    pub restarts: u32,
    /// The highest restart count among its sidecars.
    pub sidecar_restarts: u32,
    /// When it was created.
    pub created: SimTime,
    /// Stands for its UID, which is random: it breaks ties.
    pub uid: u64,
}

/// The positions of the `count` pods that a ReplicaSet deletes, in the order in which it deletes them.
///
/// Crowded nodes lose pods first, which spreads what is left: scaling down does not empty nodes.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/controller_utils.go`, `ActivePodsWithRanks`.
///
/// Deviation: the real order of victims is not transitive: pods that became ready in one second are compared by
/// restarts, and with pods of another second by UID. It depends on the order of the pods in a cache. Here the same
/// pods in the same order always give the same victims.
pub fn victims(pods: &[VictimView], count: usize, now: SimTime) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    if count < pods.len() {
        merge_sort(&mut order, &|&a: &usize, &b: &usize| deleted_before(&pods[a], &pods[b], now));
        order.truncate(count);
    }
    order
}

/// Sorts by a comparison that need not be transitive, which the standard library's sorts may answer with a panic.
fn merge_sort<T: Copy>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let (left, right) = items.split_at_mut(items.len() / 2);
    merge_sort(left, compare);
    merge_sort(right, compare);
    let merged = {
        let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
        std::iter::from_fn(|| match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if compare(b, a) == Ordering::Less => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        })
        .collect::<Vec<T>>()
    };
    items.copy_from_slice(&merged);
}

/// `Less` if `a` goes before `b`.
fn deleted_before(a: &VictimView, b: &VictimView, now: SimTime) -> Ordering {
    a.assigned
        .cmp(&b.assigned)
        .then_with(|| phase_rank(a.phase).cmp(&phase_rank(b.phase)))
        .then_with(|| a.ready_since.is_some().cmp(&b.ready_since.is_some()))
        .then_with(|| a.deletion_cost.cmp(&b.deletion_cost))
        .then_with(|| b.siblings_on_node.cmp(&a.siblings_on_node))
        .then_with(|| match (a.ready_since, b.ready_since) {
            (Some(one), Some(other)) => younger_first((one, a.uid), (other, b.uid), now),
            _ => Ordering::Equal,
        })
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| b.sidecar_restarts.cmp(&a.sidecar_restarts))
        .then_with(|| younger_first((a.created, a.uid), (b.created, b.uid), now))
        .then_with(|| a.uid.cmp(&b.uid))
}

fn phase_rank(phase: PodPhase) -> u8 {
    match phase {
        PodPhase::Pending => 0,
        PodPhase::Unknown => 1,
        PodPhase::Running | PodPhase::Succeeded | PodPhase::Failed => 2,
    }
}

/// Compares two instants by the logarithm of their age, younger first, within one bucket by UID; instants in the same second
/// are equal, because the API stores whole seconds.
fn younger_first((a, a_uid): (SimTime, u64), (b, b_uid): (SimTime, u64), now: SimTime) -> Ordering {
    if a.as_secs() == b.as_secs() {
        return Ordering::Equal;
    }
    age_bucket(a, now).cmp(&age_bucket(b, now)).then(a_uid.cmp(&b_uid))
}

/// The binary logarithm of the age in nanoseconds, rounded down; `None`, the youngest, for no age.
fn age_bucket(instant: SimTime, now: SimTime) -> Option<u32> {
    let age = now - (SimTime::ZERO + SimDuration::from_secs(instant.as_secs()));
    let nanos = u128::try_from(age.as_micros()).ok()? * 1_000;
    nanos.checked_ilog2()
}

#[cfg(test)]
mod tests {
    use super::{PodChange, VictimView, age_bucket, merge_sort, pod_change, slow_start_batches, victims};
    use nodecast_model::domain::pod::PodPhase;
    use nodecast_model::domain::{SimDuration, SimTime};

    fn at(secs: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(secs)
    }

    const NOW: i64 = 100_000;

    fn pod(uid: u64) -> VictimView {
        VictimView {
            assigned: true,
            phase: PodPhase::Running,
            ready_since: Some(at(0)),
            deletion_cost: 0,
            siblings_on_node: 1,
            restarts: 0,
            sidecar_restarts: 0,
            created: at(0),
            uid,
        }
    }

    #[test]
    fn replica_set_sync_changes_at_most_500_pods() {
        for (active, wanted, change) in [
            (3, 3, PodChange::Keep),
            (0, 7, PodChange::Create(7)),
            (0, 1_200, PodChange::Create(500)),
            (9, 2, PodChange::Delete(7)),
            (1_200, 0, PodChange::Delete(500)),
        ] {
            assert_eq!(pod_change(active, wanted), change, "{active} to {wanted}");
        }
    }

    #[test]
    fn batches_double_and_sum_up_to_the_whole() {
        assert_eq!(slow_start_batches(11).collect::<Vec<_>>(), [1, 2, 4, 4]);
        assert_eq!(slow_start_batches(500).sum::<i64>(), 500);
        assert_eq!(slow_start_batches(0).count(), 0);
        assert_eq!(slow_start_batches(-3).count(), 0);
    }

    #[test]
    fn each_rule_decides_before_the_ones_below_it() {
        // Every pod is the next victim by one rule and the last by all rules below it.
        let worse = VictimView { siblings_on_node: 0, ..pod(9) };
        let pods = [
            VictimView { assigned: false, ..worse },
            VictimView { phase: PodPhase::Pending, ..worse },
            VictimView { phase: PodPhase::Unknown, ..worse },
            VictimView { ready_since: None, deletion_cost: 1, ..worse },
            VictimView { deletion_cost: -1, ..worse },
            VictimView { siblings_on_node: 5, ..pod(9) },
            VictimView { ready_since: Some(at(NOW - 10)), ..pod(8) },
            VictimView { restarts: 4, ..pod(7) },
            VictimView { sidecar_restarts: 2, ..pod(6) },
            VictimView { created: at(NOW - 20), ..pod(5) },
            pod(0),
            pod(1),
            worse,
        ];
        let mut shuffled = pods;
        shuffled.reverse();
        let order: Vec<usize> = victims(&shuffled, 12, at(NOW)).into_iter().map(|i| pods.len() - 1 - i).collect();
        assert_eq!(order, (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn similar_ready_ages_are_ordered_by_uid() {
        // 40 s and 60 s lie between 2^35 and 2^36 ns, 70 s above.
        let ready = |secs, uid| VictimView { ready_since: Some(at(NOW - secs)), restarts: uid as u32, ..pod(uid) };
        assert_eq!(victims(&[ready(40, 2), ready(60, 1), ready(70, 0)], 2, at(NOW)), vec![1, 0]);
        assert_eq!(age_bucket(at(NOW), at(NOW)), None);
        assert_eq!(age_bucket(at(NOW - 35), at(NOW)), Some(35));
    }

    #[test]
    fn deleting_all_pods_keeps_given_order() {
        assert_eq!(victims(&[pod(3), pod(1)], 5, at(NOW)), vec![0, 1]);
        assert_eq!(victims(&[], 5, at(NOW)), Vec::<usize>::new());
        assert_eq!(victims(&[pod(3), pod(1)], 0, at(NOW)), Vec::<usize>::new());
    }

    #[test]
    fn inconsistent_comparison_still_gives_permutation() {
        let mut items: Vec<u32> = (0..200).collect();
        merge_sort(&mut items, &|a, b| (a * 7 % 3).cmp(&(b * 5 % 3)));
        items.sort_unstable();
        assert_eq!(items, (0..200).collect::<Vec<_>>());
    }
}
