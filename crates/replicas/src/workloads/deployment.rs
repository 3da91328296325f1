//! The Deployment controller: how large each of its ReplicaSets is to be.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/deployment`.

use std::cmp::Reverse;

use nodecast_model::domain::SimTime;
use nodecast_model::domain::pod::IntOrPercent;

/// A ReplicaSet of a Deployment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReplicaSetView {
    /// Pods that it is told to have.
    pub replicas: i64,
    /// Its available pods.
    pub available: i64,
    /// When it was made.
    pub created: SimTime,
    /// The Deployment's count when the controller last set this ReplicaSet (annotation `desired-replicas`).
    pub annotated_replicas: i64,
    /// That count with the surge of the time (annotation `max-replicas`).
    pub annotated_maximum: i64,
}

/// How many pods a rollout may have too many, and too few.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RollingLimits {
    /// Above the count.
    pub surge: i64,
    /// Below the count.
    pub unavailable: i64,
}

impl RollingLimits {
    /// The limits for a count: the surge rounded up, the unavailable rounded down, and one of them at least 1, since a rollout
    /// could not begin otherwise.
    ///
    /// Source: `util/deployment_util.go`, `ResolveFenceposts`, `MaxUnavailable`.
    pub fn new(replicas: i64, max_surge: IntOrPercent, max_unavailable: IntOrPercent) -> Self {
        let surge = max_surge.of_rounded_up(replicas).max(0);
        let mut unavailable = max_unavailable.of_rounded_down(replicas).max(0);
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self { surge, unavailable: unavailable.min(replicas.max(0)) }
    }
}

/// The ReplicaSets of a Deployment in the middle of a rollout.
#[derive(Clone, Copy, Debug)]
pub struct Rollout<'a> {
    /// Pods that the Deployment wants.
    pub replicas: i64,
    /// How far it may go.
    pub limits: RollingLimits,
    /// The ReplicaSet of the present template.
    pub new: ReplicaSetView,
    /// Those of former templates.
    pub old: &'a [ReplicaSetView],
}

impl Rollout<'_> {
    fn pods(&self) -> i64 {
        self.old.iter().fold(self.new.replicas, |sum, set| sum.saturating_add(set.replicas))
    }

    fn available(&self) -> i64 {
        self.old.iter().fold(self.new.available, |sum, set| sum.saturating_add(set.available))
    }

    /// Positions in `old`, oldest first.
    fn oldest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.old.len()).collect();
        order.sort_by_key(|&position| self.old[position].created);
        order
    }
}

/// One step of a rolling update: the sizes that the new ReplicaSet and the old ones are to have. A step grows the new one or
/// shrinks the old ones, not both.
///
/// Source: `rolling.go`, `rolloutRolling`.
pub fn roll(rollout: &Rollout<'_>) -> (i64, Vec<i64>) {
    let sizes: Vec<i64> = rollout.old.iter().map(|set| set.replicas).collect();
    let new = new_size(rollout);
    if new != rollout.new.replicas {
        return (new, sizes);
    }
    (new, shrink_old(rollout, sizes))
}

/// Source: `util/deployment_util.go`, `NewRSNewReplicas`; `rolling.go`, `reconcileNewReplicaSet`.
fn new_size(rollout: &Rollout<'_>) -> i64 {
    let replicas = rollout.new.replicas;
    if replicas >= rollout.replicas {
        return rollout.replicas;
    }
    let room = rollout.replicas.saturating_add(rollout.limits.surge).saturating_sub(rollout.pods());
    replicas + room.clamp(0, rollout.replicas - replicas)
}

/// Source: `rolling.go`, `reconcileOldReplicaSets`, `cleanupUnhealthyReplicas`,
/// `scaleDownOldReplicaSetsForRollingUpdate`.
fn shrink_old(rollout: &Rollout<'_>, mut sizes: Vec<i64>) -> Vec<i64> {
    let least = rollout.replicas - rollout.limits.unavailable;
    let unavailable_new = rollout.new.replicas - rollout.new.available;
    let mut budget = rollout.pods() - least - unavailable_new;
    if budget <= 0 {
        return sizes;
    }
    let order = rollout.oldest_first();
    // Pods that are not available anyway go first; they cost nothing.
    for &position in &order {
        let unhealthy = (sizes[position] - rollout.old[position].available).clamp(0, budget.max(0));
        sizes[position] -= unhealthy;
        budget -= unhealthy;
    }
    let mut spare = rollout.available() - least;
    for &position in &order {
        let fewer = sizes[position].clamp(0, spare.max(0));
        sizes[position] -= fewer;
        spare -= fewer;
    }
    sizes
}

/// The sizes of a Deployment's ReplicaSets after its count changed, in their order; `new` is the position of the one with
/// the present template, if there is one. In the middle of a rollout the change is spread over all of them in proportion,
/// what is left over goes to the largest.
///
/// Source: `sync.go`, `scale`; `util/deployment_util.go`, `GetReplicaSetProportion`.
pub fn scale_replica_sets(replicas: i64, surge: i64, sets: &[ReplicaSetView], new: Option<usize>) -> Vec<i64> {
    let mut sizes: Vec<i64> = sets.iter().map(|set| set.replicas).collect();
    let active: Vec<usize> = (0..sets.len()).filter(|&position| sets[position].replicas > 0).collect();
    if let Some(only) = only_one(&active, sets, new) {
        sizes[only] = replicas;
        return sizes;
    }
    if let Some(position) = new.filter(|&position| sets.get(position).is_some_and(|set| saturated(set, replicas))) {
        for other in active.into_iter().filter(|&other| other != position) {
            sizes[other] = 0;
        }
        return sizes;
    }
    spread(replicas, surge, sets, active, sizes)
}

/// The one ReplicaSet that takes the whole change: the only active one, else the present one, else the latest.
fn only_one(active: &[usize], sets: &[ReplicaSetView], new: Option<usize>) -> Option<usize> {
    match active {
        [only] => Some(*only),
        [] => new
            .filter(|&position| position < sets.len())
            .or_else(|| (0..sets.len()).max_by_key(|&position| sets[position].created)),
        _ => None,
    }
}

fn saturated(set: &ReplicaSetView, replicas: i64) -> bool {
    set.replicas == replicas && set.annotated_replicas == replicas && set.available == replicas
}

fn spread(replicas: i64, surge: i64, sets: &[ReplicaSetView], mut active: Vec<usize>, mut sizes: Vec<i64>) -> Vec<i64> {
    let allowed = if replicas > 0 { replicas.saturating_add(surge) } else { 0 };
    let change = allowed - active.iter().map(|&position| sets[position].replicas).sum::<i64>();
    if change > 0 {
        active.sort_by_key(|&position| (Reverse(sets[position].replicas), Reverse(sets[position].created)));
    } else {
        active.sort_by_key(|&position| (Reverse(sets[position].replicas), sets[position].created));
    }
    let mut left = change;
    for &position in &active {
        let share = fraction(&sets[position], replicas, surge);
        let share = if change > 0 { share.min(left) } else { share.max(left) };
        let share = if left == 0 { 0 } else { share };
        sizes[position] += share;
        left -= share;
    }
    if let Some(&largest) = active.first() {
        sizes[largest] = (sizes[largest] + left).max(0);
    }
    sizes
}

/// By how much a ReplicaSet changes to keep its part of the whole.
///
/// Source: `util/deployment_util.go`, `getReplicaSetFraction`.
fn fraction(set: &ReplicaSetView, replicas: i64, surge: i64) -> i64 {
    if replicas == 0 {
        return -set.replicas;
    }
    if set.annotated_maximum <= 0 {
        return 0;
    }
    let whole = replicas.saturating_add(surge);
    let size = set.replicas.saturating_mul(whole) as f64 / set.annotated_maximum as f64;
    libm::round(size) as i64 - set.replicas
}

#[cfg(test)]
mod tests {
    use super::{ReplicaSetView, RollingLimits, Rollout, roll, scale_replica_sets};
    use nodecast_model::domain::pod::IntOrPercent;
    use nodecast_model::domain::{SimDuration, SimTime};

    const QUARTER: IntOrPercent = IntOrPercent::Percent(25);

    fn set(age_rank: i64, replicas: i64, available: i64) -> ReplicaSetView {
        let created = SimTime::ZERO + SimDuration::from_secs(age_rank);
        ReplicaSetView { replicas, available, created, annotated_replicas: 10, annotated_maximum: 13 }
    }

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        for (replicas, surge, unavailable, expected) in [
            (10, QUARTER, QUARTER, (3, 2)),
            (1, QUARTER, QUARTER, (1, 0)),
            (4, IntOrPercent::Count(0), IntOrPercent::Percent(10), (0, 1)),
            (4, IntOrPercent::Count(0), IntOrPercent::Count(9), (0, 4)),
            (0, QUARTER, QUARTER, (0, 0)),
        ] {
            let limits = RollingLimits::new(replicas, surge, unavailable);
            assert_eq!((limits.surge, limits.unavailable), expected, "{replicas} {surge:?} {unavailable:?}");
        }
    }

    /// A step for ten replicas, three more and two fewer.
    fn step(new: (i64, i64), old: &[(i64, i64)]) -> (i64, Vec<i64>) {
        let sets: Vec<ReplicaSetView> = old
            .iter()
            .enumerate()
            .map(|(rank, &(replicas, available))| set(rank as i64, replicas, available))
            .collect();
        let limits = RollingLimits::new(10, QUARTER, QUARTER);
        roll(&Rollout { replicas: 10, limits, new: set(99, new.0, new.1), old: &sets })
    }

    #[test]
    fn rollout_grows_new_set_then_shrinks_old() {
        assert_eq!(step((0, 0), &[(10, 10)]), (3, vec![10]));
        // Two may be missing at once.
        assert_eq!(step((3, 0), &[(10, 10)]), (3, vec![8]));
        assert_eq!(step((3, 0), &[(8, 8)]), (5, vec![8]));
        assert_eq!(step((5, 0), &[(8, 8)]), (5, vec![8]));
        // As the new pods come up, old ones may go.
        assert_eq!(step((5, 4), &[(8, 8)]), (5, vec![4]));
        assert_eq!(step((10, 10), &[(2, 2)]), (10, vec![0]));
    }

    #[test]
    fn unhealthy_old_pods_go_first_then_oldest_set() {
        assert_eq!(step((3, 3), &[(4, 4), (6, 1)]), (3, vec![4, 1]));
        assert_eq!(step((6, 6), &[(3, 3), (4, 4)]), (6, vec![0, 2]));
    }

    #[test]
    fn oversized_new_replica_set_shrinks_to_count() {
        assert_eq!(step((14, 14), &[]), (10, vec![]));
    }

    #[test]
    fn scaling_outside_rollout_changes_active_set() {
        assert_eq!(scale_replica_sets(7, 2, &[set(0, 0, 0), set(1, 10, 10)], Some(1)), vec![0, 7]);
        assert_eq!(scale_replica_sets(7, 2, &[set(0, 0, 0), set(1, 0, 0)], None), vec![0, 7]);
        assert_eq!(scale_replica_sets(7, 2, &[], None), Vec::<i64>::new());
    }

    #[test]
    fn scaling_during_rollout_is_proportional() {
        // 13 pods of ten replicas; twenty and five more make 25.
        assert_eq!(scale_replica_sets(20, 5, &[set(0, 8, 8), set(1, 5, 5)], Some(1)), vec![15, 10]);
        // Five and two more make 7.
        assert_eq!(scale_replica_sets(5, 2, &[set(0, 8, 8), set(1, 5, 5)], Some(1)), vec![4, 3]);
        assert_eq!(scale_replica_sets(0, 0, &[set(0, 8, 8), set(1, 5, 5)], Some(1)), vec![0, 0]);
        // Of equal sets the newer grows first, and nothing is left for the other.
        let even = |rank| ReplicaSetView { annotated_maximum: 10, ..set(rank, 5, 5) };
        assert_eq!(scale_replica_sets(11, 0, &[even(0), even(1)], Some(1)), vec![5, 6]);
        // What rounding leaves over goes to the largest.
        let three = [set(0, 7, 7), set(1, 3, 3), set(2, 3, 3)];
        assert_eq!(scale_replica_sets(11, 3, &three, Some(2)), vec![8, 3, 3]);
    }

    #[test]
    fn finished_rollout_empties_old_sets() {
        let done = ReplicaSetView { annotated_replicas: 10, ..set(1, 10, 10) };
        assert_eq!(scale_replica_sets(10, 3, &[set(0, 2, 2), done], Some(1)), vec![0, 10]);
    }
}
