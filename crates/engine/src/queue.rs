//! The event queue and the clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use nodecast_model::domain::{SimDuration, SimTime};

/// Orders events at one instant: lower classes happen first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PriorityClass(pub u8);

impl PriorityClass {
    /// The class of events without a reason to come first or last.
    pub const NORMAL: Self = Self(128);
    /// After everything else at its instant.
    pub const LAST: Self = Self(255);
}

/// Names a scheduled event so that it can be cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerId(u64);

/// Events in the order (time, class, sequence), and the clock that follows them.
///
/// Only the events of the present second are in order: they are sorted when it begins, and those that are scheduled for it
/// later stand in a small heap. The events of the seconds that follow lie unordered in one slot each, and later ones in a heap
/// of their own until their second comes into reach.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// What was to happen before `next_slot` when its second began, last first.
    present: Vec<Entry<E>>,
    /// What has been scheduled for the present second since.
    added: BinaryHeap<Reverse<Entry<E>>>,
    /// What happens in the seconds from `next_slot` on, each at its number modulo [`SLOTS`].
    soon: Vec<Vec<Entry<E>>>,
    /// Events in `soon`.
    soon_len: usize,
    /// What happens after those seconds.
    later: BinaryHeap<Reverse<Entry<E>>>,
    /// The first second that is neither in `present` nor in `added`.
    next_slot: i64,
    cancelled: FxHashSet<u64>,
    now: SimTime,
    next_sequence: u64,
}

/// Seconds that have a slot of their own: more than the period of any loop that runs all the time.
const SLOTS: i64 = 64;

/// The second in which an instant lies.
fn slot_of(at: SimTime) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// Time, class and sequence packed so that one comparison orders two entries.
    key: u128,
    event: E,
}

const SEQUENCE_BITS: u32 = 56;
const SEQUENCE_MASK: u128 = (1 << SEQUENCE_BITS) - 1;

impl<E> Entry<E> {
    fn sequence(&self) -> u64 {
        (self.key & SEQUENCE_MASK) as u64
    }

    fn time(&self) -> SimTime {
        // The sign bit is flipped so that negative times order below positive ones.
        SimTime::from_micros(((self.key >> 64) as u64 ^ (1 << 63)) as i64)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue with the clock at zero.
    pub fn new() -> Self {
        Self {
            present: Vec::new(),
            added: BinaryHeap::new(),
            soon: (0..SLOTS).map(|_| Vec::new()).collect(),
            soon_len: 0,
            later: BinaryHeap::new(),
            next_slot: 0,
            cancelled: FxHashSet::default(),
            now: SimTime::ZERO,
            next_sequence: 0,
        }
    }

    /// The time of the event that happened last.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Number of events still to come.
    pub fn len(&self) -> usize {
        self.present.len() + self.added.len() + self.soon_len + self.later.len() - self.cancelled.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Schedules `event`. A time before the clock counts as now: nothing happens in the past.
    pub fn schedule(&mut self, at: SimTime, class: PriorityClass, event: impl Into<E>) -> TimerId {
        let at = at.max(self.now);
        let time = (at.as_micros() as u64) ^ (1 << 63);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let key = u128::from(time) << 64 | u128::from(class.0) << SEQUENCE_BITS | u128::from(sequence);
        self.place(Entry { key, event: event.into() });
        TimerId(sequence)
    }

    fn place(&mut self, entry: Entry<E>) {
        let slot = slot_of(entry.time());
        if slot < self.next_slot {
            self.added.push(Reverse(entry));
        } else if slot < self.next_slot + SLOTS {
            self.soon[slot.rem_euclid(SLOTS) as usize].push(entry);
            self.soon_len += 1;
        } else {
            self.later.push(Reverse(entry));
        }
    }

    /// Goes on to the next second in which something happens, if the present has nothing left.
    fn fill_present(&mut self) {
        while self.present.is_empty() && self.added.is_empty() && self.soon_len + self.later.len() > 0 {
            if self.soon_len == 0
                && let Some(Reverse(first)) = self.later.peek()
            {
                self.next_slot = slot_of(first.time());
            }
            while self.later.peek().is_some_and(|Reverse(entry)| slot_of(entry.time()) < self.next_slot + SLOTS) {
                if let Some(Reverse(entry)) = self.later.pop() {
                    self.place(entry);
                }
            }
            let slot = &mut self.soon[self.next_slot.rem_euclid(SLOTS) as usize];
            self.soon_len -= slot.len();
            // The present is empty, and its room serves the slot from now on.
            std::mem::swap(slot, &mut self.present);
            self.present.sort_unstable_by_key(|entry| Reverse(entry.key));
            self.next_slot += 1;
        }
    }

    /// Schedules `event` after `delay`; a negative delay is none.
    pub fn schedule_in(&mut self, delay: SimDuration, class: PriorityClass, event: impl Into<E>) -> TimerId {
        self.schedule(self.now + delay, class, event)
    }

    /// Makes sure that a scheduled event does not happen. Must not be called for one that already has.
    pub fn cancel(&mut self, timer: TimerId) {
        self.cancelled.insert(timer.0);
    }

    /// The time of the next event.
    pub fn next_time(&mut self) -> Option<SimTime> {
        loop {
            let next = self.take_first()?;
            if !self.is_cancelled(next.sequence()) {
                let at = next.time();
                // It is the first of all, so that its place is the last in the list.
                self.present.push(next);
                return Some(at);
            }
        }
    }

    /// Takes the next event and moves the clock to it.
    pub fn pop(&mut self) -> Option<(SimTime, E)> {
        loop {
            let next = self.take_first()?;
            if !self.is_cancelled(next.sequence()) {
                self.now = next.time();
                return Some((self.now, next.event));
            }
        }
    }

    /// Takes what comes first, cancelled or not.
    fn take_first(&mut self) -> Option<Entry<E>> {
        self.fill_present();
        match (self.present.last(), self.added.peek()) {
            (Some(listed), Some(Reverse(added))) if listed.key > added.key => self.added.pop().map(|first| first.0),
            (None, _) => self.added.pop().map(|first| first.0),
            _ => self.present.pop(),
        }
    }

    /// Whether the event with this number was cancelled, which is then forgotten.
    fn is_cancelled(&mut self, sequence: u64) -> bool {
        !self.cancelled.is_empty() && self.cancelled.remove(&sequence)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EventQueue, PriorityClass};
    use nodecast_model::domain::{SimDuration, SimTime};

    #[test]
    fn simultaneous_events_run_by_class_then_order() {
        let mut queue = EventQueue::<char>::new();
        let at = SimTime::from_micros(5);
        queue.schedule(at, PriorityClass::LAST, 'd');
        queue.schedule(at, PriorityClass::NORMAL, 'b');
        queue.schedule(at, PriorityClass::NORMAL, 'c');
        queue.schedule(at, PriorityClass(0), 'a');
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcd");
    }

    #[test]
    fn nothing_is_scheduled_in_the_past() {
        let mut queue = EventQueue::<u8>::new();
        queue.schedule(SimTime::from_micros(10), PriorityClass::NORMAL, 1);
        assert_eq!(queue.pop(), Some((SimTime::from_micros(10), 1)));
        queue.schedule(SimTime::from_micros(3), PriorityClass::NORMAL, 2);
        assert_eq!(queue.pop(), Some((SimTime::from_micros(10), 2)));
    }

    proptest! {
        #[test]
        fn event_queue_is_stable_sort_without_cancelled(
            events in prop::collection::vec((-50_i64..50, 0_u8..3, any::<bool>()), 0..200),
            // From microseconds to minutes, so that some events are out of reach at first.
            unit in prop::sample::select(vec![1_i64, 300_000, 7_000_000]),
        ) {
            let mut queue = EventQueue::<usize>::new();
            // The clock starts at zero, so earlier times count as zero.
            let mut expected: Vec<(i64, u8, usize)> = Vec::new();
            for (position, &(time, class, cancelled)) in events.iter().enumerate() {
                let timer = queue.schedule(SimTime::from_micros(time * unit), PriorityClass(class), position);
                if cancelled { queue.cancel(timer) } else { expected.push((time.max(0) * unit, class, position)) }
            }
            expected.sort();
            prop_assert_eq!(queue.len(), expected.len());
            let popped: Vec<(i64, usize)> =
                std::iter::from_fn(|| queue.pop()).map(|(at, event)| (at.as_micros(), event)).collect();
            prop_assert_eq!(popped, expected.into_iter().map(|(at, _, event)| (at, event)).collect::<Vec<_>>());
        }

        #[test]
        fn events_scheduled_during_processing_are_ordered(
            steps in prop::collection::vec((0_i64..150_000_000, 0_u8..3, 0_usize..4), 1..200)
        ) {
            let mut queue = EventQueue::<usize>::new();
            let mut waiting = std::collections::BTreeSet::new();
            for (position, (delay, class, takes)) in steps.into_iter().enumerate() {
                let at = queue.now() + SimDuration::from_micros(delay);
                queue.schedule(at, PriorityClass(class), position);
                waiting.insert((at, class, position));
                for _ in 0..takes {
                    prop_assert_eq!(queue.next_time(), waiting.first().map(|first| first.0));
                    prop_assert_eq!(queue.pop(), waiting.pop_first().map(|(at, _, position)| (at, position)));
                    prop_assert_eq!(queue.len(), waiting.len());
                }
            }
        }
    }
}
