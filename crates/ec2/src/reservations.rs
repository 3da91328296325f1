//! On-Demand Capacity Reservations: capacity of one type in one zone that is kept, and paid for, used or not.
//!
//! Source: AWS documentation of capacity reservations as of 2026.
//!
//! What must not live here: which reservations an autoscaler knows (the deciding crates, actors), what they cost (`billing`).

use super::Pool;
use nodecast_model::domain::{HourlyRate, Labels, SimDuration, SimTime, Symbol, well_known};

/// EC2 begins to take back the instances of a Capacity Block so long before its end.
///
/// Source: EC2 user guide, "Capacity Blocks for ML" (2026). UltraServers, for which it is an hour, are not told apart.
const BLOCK_CLOSES: SimDuration = SimDuration::from_secs(30 * 60);

/// An On-Demand Capacity Reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapacityReservation {
    /// Its id, for example `cr-0123456789abcdef0`.
    pub id: Symbol,
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// How many instances it holds.
    pub count: u32,
    /// Whether matching instances use it by themselves (`open`); else only launches that name it do (`targeted`).
    pub open: bool,
    /// Its tags.
    pub tags: Labels,
    /// When it is created.
    pub from: SimTime,
    /// When it ends: what runs in it then goes on as On-Demand. `None` for never.
    pub until: Option<SimTime>,
    /// Whether it is a Capacity Block: paid for up front, and EC2 takes its instances back before it ends.
    pub block: bool,
    /// What it costs by the hour and instance, where it is not the On-Demand price: that of a Capacity Block spread over its time.
    pub per_hour: Option<HourlyRate>,
}

impl CapacityReservation {
    /// Whether it exists at `now`.
    pub fn is_held(&self, now: SimTime) -> bool {
        self.from <= now && self.until.is_none_or(|until| now < until) && self.taken_back().is_none_or(|at| now < at)
    }

    /// When EC2 takes back what runs in a Capacity Block: half an hour before its end.
    pub fn taken_back(&self) -> Option<SimTime> {
        self.until.filter(|_| self.block).map(|until| until - BLOCK_CLOSES)
    }

    /// Whether instances of `pool` are of the kind that it holds.
    pub fn matches(&self, pool: Pool) -> bool {
        pool.capacity_type != well_known::SPOT && pool.instance_type == self.instance_type && pool.zone == self.zone
    }

    /// The pool that its instances come from.
    pub fn pool(&self) -> Pool {
        Pool { instance_type: self.instance_type, zone: self.zone, capacity_type: well_known::ON_DEMAND }
    }
}

/// What a launch says of capacity reservations (`CapacityReservationPreference` and its target).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ReservationUse {
    /// `open`: a matching open reservation is used if it has room.
    #[default]
    Open,
    /// `none`: no reservation is used.
    None,
    /// The reservation at this position of the account's list is used, or nothing is launched.
    Targeted(u32),
}

/// A stretch of an instance's life, in microseconds.
pub type Stretch = (i64, i64);

/// Which stretches of which lives a reservation of `count` instances, held during `held`, takes in. Lives are those of
/// matching instances: start, end, and whether they name the reservation. Those that name it go first, then the others in
/// order, each as long as there is room; what becomes free is taken by whoever runs then.
pub fn covered(count: u32, held: Stretch, lives: &[(i64, i64, bool)]) -> Vec<Vec<Stretch>> {
    let mut stretches: Vec<Vec<Stretch>> = vec![Vec::new(); lives.len()];
    let mut changes: Vec<(i64, bool, usize)> = Vec::with_capacity(lives.len() * 2);
    for (number, &(from, to, _)) in lives.iter().enumerate() {
        let (from, to) = (from.max(held.0), to.min(held.1));
        if from < to {
            changes.extend([(from, true, number), (to, false, number)]);
        }
    }
    changes.sort_unstable();
    // Those that name the reservation sort first.
    let mut running: std::collections::BTreeSet<(bool, usize)> = std::collections::BTreeSet::new();
    let mut reached = held.0;
    let mut next = changes.into_iter().peekable();
    while let Some(&(at, _, _)) = next.peek() {
        for &(_, number) in running.iter().take(if reached < at { count as usize } else { 0 }) {
            match stretches[number].last_mut() {
                Some(last) if last.1 == reached => last.1 = at,
                _ => stretches[number].push((reached, at)),
            }
        }
        reached = at;
        while let Some((_, starts, number)) = next.next_if(|change| change.0 == at) {
            let key = (!lives[number].2, number);
            if starts {
                running.insert(key);
            } else {
                running.remove(&key);
            }
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::covered;

    #[test]
    fn explicit_reservation_users_precede_matching_instances() {
        let lives = [(0, 100, false), (10, 50, true)];
        assert_eq!(covered(1, (0, 100), &lives), [vec![(0, 10), (50, 100)], vec![(10, 50)]]);
    }

    #[test]
    fn what_becomes_free_is_taken_by_whoever_runs() {
        let lives = [(0, 30, false), (0, 60, false), (20, 90, false)];
        assert_eq!(covered(2, (0, 100), &lives), [vec![(0, 30)], vec![(0, 60)], vec![(30, 90)]]);
    }

    #[test]
    fn nothing_is_covered_before_or_after_the_reservation() {
        assert_eq!(covered(5, (10, 20), &[(0, 100, false)]), [vec![(10, 20)]]);
        assert_eq!(covered(5, (10, 20), &[(30, 100, true)]), [vec![]]);
    }
}
