//! How many of the replicas that a workload wants serve, over time.
//!
//! A replica serves from the moment that its pod is Ready until it is not: until its deletion is asked for, its containers
//! are killed, or its machine dies, whether anybody has noticed or not. What must not live here: which workloads count
//! (`report`).

use super::World;
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, SimTime, WorkloadId};

/// How a workload's replicas stood against what it wants, up to an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AvailabilityFacts {
    /// Time-integral of the replicas wanted, in replica microseconds.
    pub wanted: i128,
    /// Time-integral of the replicas wanted and not Ready, likewise.
    pub missing: i128,
    /// Time for which some were wanted and none was Ready.
    pub at_zero: SimDuration,
    /// How often that began; a stretch that was going on when counting began is one.
    pub times_at_zero: u32,
    /// The longest such stretch.
    pub longest_at_zero: SimDuration,
    /// When the longest began.
    pub longest_at_zero_from: Option<SimTime>,
    /// Time for which the workload had as many replicas as its autoscaler may give it, and not because a calendar asks for them.
    pub at_max: SimDuration,
    /// When that first began.
    pub at_max_from: Option<SimTime>,
    /// Whether it is a calendar that asks for the most replicas.
    is_planned: bool,
    /// The most replicas that its autoscaler may give it; `None` without one, or where the least are as many.
    ceiling: Option<u32>,
    /// Replicas wanted and Ready since `settled`.
    now: (u32, u32),
    /// Up to when all this counts.
    settled: SimTime,
    /// When the stretch without a Ready replica began that is going on.
    zero_since: Option<SimTime>,
}

impl AvailabilityFacts {
    /// Adds what another workload had, which came to be under the same name when this one was gone.
    pub fn add(&mut self, other: &Self) {
        self.wanted += other.wanted;
        self.missing += other.missing;
        self.at_zero += other.at_zero;
        self.times_at_zero += other.times_at_zero;
        if other.longest_at_zero > self.longest_at_zero {
            (self.longest_at_zero, self.longest_at_zero_from) = (other.longest_at_zero, other.longest_at_zero_from);
        }
        self.at_max += other.at_max;
        self.at_max_from = self.at_max_from.into_iter().chain(other.at_max_from).min();
    }
}

impl AvailabilityFacts {
    /// Counts up to `at`, from where on the workload wants and has other numbers.
    fn change(&mut self, at: SimTime, wanted: u32, ready: u32) {
        self.settle(at);
        self.now = (wanted, ready);
        let none = wanted > 0 && ready == 0;
        match self.zero_since {
            None if none => {
                self.zero_since = Some(at);
                self.times_at_zero += 1;
            }
            Some(since) if !none => {
                self.note_stretch(since, at);
                self.zero_since = None;
            }
            _ => {}
        }
    }

    fn settle(&mut self, at: SimTime) {
        let from = self.settled;
        let span = at.saturating_since(from);
        self.settled = self.settled.max(at);
        let (wanted, ready) = self.now;
        let micros = i128::from(span.as_micros());
        self.wanted += micros * i128::from(wanted);
        self.missing += micros * i128::from(wanted.saturating_sub(ready));
        if self.zero_since.is_some() {
            self.at_zero += span;
        }
        if span > SimDuration::ZERO && !self.is_planned && self.ceiling.is_some_and(|ceiling| wanted >= ceiling) {
            self.at_max += span;
            self.at_max_from.get_or_insert(from);
        }
    }

    fn note_stretch(&mut self, since: SimTime, until: SimTime) {
        let length = until.saturating_since(since);
        // A stretch that ends at the instant at which it begins is none.
        if length == SimDuration::ZERO {
            self.times_at_zero = self.times_at_zero.saturating_sub(1);
        } else if length > self.longest_at_zero {
            (self.longest_at_zero, self.longest_at_zero_from) = (length, Some(since));
        }
    }

    /// Forgets what was counted up to `at`.
    fn begin_anew(&mut self, at: SimTime) {
        let zero_since = self.zero_since.map(|_| at);
        *self = Self {
            ceiling: self.ceiling,
            is_planned: self.is_planned,
            now: self.now,
            settled: at,
            zero_since,
            times_at_zero: u32::from(zero_since.is_some()),
            ..Self::default()
        };
    }

    /// Counts up to the end of the run.
    fn conclude(&mut self, end: SimTime) {
        self.settle(end);
        if let Some(since) = self.zero_since {
            self.note_stretch(since, end);
        }
    }
}

impl World {
    /// Counts the replicas of a workload together with those of all others that are part of `whole`.
    pub fn count_as_part(&mut self, workload: WorkloadId, whole: ObjectName) {
        self.record.workloads[workload.index()].part_of = Some(whole);
        self.parts.entry(whole).or_default().push(workload);
    }

    /// The replicas that a workload wants, or those that are Ready, have changed: counts them so from `at` on. Those of parts of one whole
    /// are counted with the first of them.
    pub fn count_replicas(&mut self, workload: WorkloadId, at: SimTime) {
        let part_of = self.record.workloads[workload.index()].part_of;
        let alone = [workload];
        let parts = part_of.and_then(|whole| self.parts.get(&whole)).map_or(&alone[..], Vec::as_slice);
        let states = parts.iter().map(|&part| self.cluster.workload(part));
        let (wanted, ready) =
            states.fold((0, 0), |(wanted, ready), state| (wanted + state.replicas, ready + state.ready));
        let counted = parts.first().copied().unwrap_or(workload);
        self.record.availability[counted.index()].change(at, wanted, ready);
    }

    /// The autoscaler of a workload may give it from `least` to `most` replicas; `None` if it has none any more.
    pub fn limit_replicas(&mut self, workload: WorkloadId, limits: Option<(u32, u32)>, at: SimTime) {
        let facts = &mut self.record.availability[workload.index()];
        facts.settle(at);
        facts.ceiling = limits.filter(|(least, most)| least < most).map(|(_, most)| most);
    }

    /// Whether a calendar, and nothing else, asks for the most replicas that the autoscaler of a workload may give it.
    pub fn plan_maximum(&mut self, workload: WorkloadId, is_planned: bool, at: SimTime) {
        let facts = &mut self.record.availability[workload.index()];
        if facts.is_planned != is_planned {
            facts.settle(at);
            facts.is_planned = is_planned;
        }
    }

    /// What was counted of replicas up to `at` is forgotten.
    pub fn count_replicas_anew(&mut self, at: SimTime) {
        for facts in &mut self.record.availability {
            facts.settle(at);
            facts.begin_anew(at);
        }
    }

    /// Counts replicas up to the end of the run.
    pub(super) fn conclude_replicas(&mut self, end: SimTime) {
        for facts in &mut self.record.availability {
            facts.conclude(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AvailabilityFacts;
    use crate::domain::{SimDuration, SimTime};

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    /// A workload that wants so many from the start, none of which is Ready.
    fn wanting(replicas: u32) -> AvailabilityFacts {
        let mut facts = AvailabilityFacts::default();
        facts.change(at(0), replicas, 0);
        facts
    }

    #[test]
    fn replicas_are_missing_while_ready_below_desired() {
        let mut facts = wanting(2);
        facts.change(at(10), 2, 1);
        facts.change(at(20), 2, 2);
        facts.change(at(100), 2, 0);
        facts.change(at(160), 2, 3);
        facts.conclude(at(200));
        assert_eq!(facts.missing, 1_000_000 * (2 * 10 + 10 + 2 * 60));
        assert_eq!(facts.wanted, 1_000_000 * 400);
        assert_eq!((facts.at_zero, facts.times_at_zero), (SimDuration::from_secs(70), 2));
        assert_eq!((facts.longest_at_zero, facts.longest_at_zero_from), (SimDuration::from_secs(60), Some(at(100))));
    }

    #[test]
    fn zero_desired_replicas_miss_none() {
        let mut facts = wanting(0);
        facts.change(at(50), 3, 0);
        facts.change(at(50), 3, 3);
        facts.conclude(at(100));
        assert_eq!((facts.missing, facts.at_zero, facts.times_at_zero), (0, SimDuration::ZERO, 0));
    }

    #[test]
    fn availability_resets_but_keeps_ongoing_outage() {
        let mut facts = wanting(1);
        facts.settle(at(60));
        facts.begin_anew(at(60));
        facts.change(at(90), 1, 1);
        facts.conclude(at(100));
        assert_eq!((facts.at_zero, facts.times_at_zero), (SimDuration::from_secs(30), 1));
        assert_eq!(facts.longest_at_zero_from, Some(at(60)));
    }

    #[test]
    fn workload_is_at_max_while_desired_equals_limit() {
        let mut facts = wanting(4);
        facts.ceiling = Some(5);
        facts.change(at(10), 5, 4);
        facts.change(at(40), 3, 4);
        facts.conclude(at(100));
        assert_eq!((facts.at_max, facts.at_max_from), (SimDuration::from_secs(30), Some(at(10))));
    }
}
