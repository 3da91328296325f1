//! Recorded availability of pools, replayed: how many instances could be had when.
//!
//! What must not live here: the reading of files (`scenario`).

use super::reclaims::{PoolEvent, PoolOutlook};
use crate::Pool;
use nodecast_model::domain::{SimTime, Symbol};

/// How many Spot instances of a pool could be had from `at` on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Availability {
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// From when on.
    pub at: SimTime,
    /// How many.
    pub available: u32,
}

/// The records of one pool in `records`, which are in order of pool and time.
pub fn of_pool(records: &[Availability], pool: Pool) -> &[Availability] {
    let key = (pool.instance_type, pool.zone);
    let first = records.partition_point(|record| (record.instance_type, record.zone) < key);
    let last = records.partition_point(|record| (record.instance_type, record.zone) <= key);
    &records[first..last]
}

/// What the records say of the pool: it is short while nothing could be had, and each drop takes the share of instances by
/// which it fell. `None` without a record.
pub fn outlook(records: &[Availability], pool: Pool, end: SimTime) -> Option<PoolOutlook> {
    let records = of_pool(records, pool);
    let mut outlook = PoolOutlook::default();
    for (position, record) in records.iter().enumerate() {
        let until = records.get(position + 1).map_or(end, |next| next.at);
        if record.available == 0 && record.at < until {
            outlook.shortages.push((record.at, until));
        }
        let before = position.checked_sub(1).map_or(0, |before| records[before].available);
        if record.available < before && record.at > SimTime::ZERO {
            let lost = f64::from(before - record.available) / f64::from(before);
            let number = outlook.events.len() as u64;
            outlook.events.push(PoolEvent::recorded(pool, number, record.at, until, lost));
        }
    }
    (!records.is_empty()).then_some(outlook)
}

/// How many instances the records let the pool have at `now`; `None` without a record.
pub fn available(records: &[Availability], pool: Pool, now: SimTime) -> Option<u32> {
    let records = of_pool(records, pool);
    let after = records.partition_point(|record| record.at <= now);
    records.get(after.saturating_sub(1)).map(|record| record.available)
}

#[cfg(test)]
mod tests {
    use super::{Availability, available, outlook};
    use crate::Pool;
    use nodecast_model::domain::{SimDuration, SimTime, Symbol, well_known};

    fn at(hours: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(hours * 3_600)
    }

    #[test]
    fn capacity_drop_reclaims_share_until_next_record() {
        let (instance_type, zone) = (Symbol::new("p3.2xlarge"), Symbol::new("us-east-1a"));
        let pool = Pool { instance_type, zone, capacity_type: well_known::SPOT };
        let record = |hours, available| Availability { instance_type, zone, at: at(hours), available };
        let records = [record(0, 16), record(2, 4), record(5, 0), record(6, 16)];
        let seen = outlook(&records, pool, at(10)).unwrap();
        assert_eq!(seen.shortages, [(at(5), at(6))]);
        let events: Vec<_> = seen.events.iter().map(|event| (event.at, event.severity)).collect();
        assert_eq!(events, [(at(2), 0.75), (at(5), 1.0)]);
        assert_eq!(
            [1, 3, 5, 7].map(|hours| available(&records, pool, at(hours))),
            [Some(16), Some(4), Some(0), Some(16)]
        );
        let other = Pool { zone: Symbol::new("us-east-1b"), ..pool };
        assert!(outlook(&records, other, at(10)).is_none() && available(&records, other, at(1)).is_none());
    }
}
