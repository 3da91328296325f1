//! The limit that a client of the API server puts on its own calls.

use crate::domain::controller_time::CallRate;
use crate::domain::{SimDuration, SimTime};

/// A bucket of tokens, full at the start, from which calls take one each in the order in which they ask.
///
/// Source: client-go v0.36 `util/flowcontrol/throttle.go`, over `golang.org/x/time/rate`.
#[derive(Clone, Debug)]
pub struct CallLimit {
    /// The time in which one token comes.
    every: SimDuration,
    burst: i64,
    /// When the bucket would be full, if nobody drew on it any more.
    full_at: SimTime,
    /// Since when calls wait without a pause, and until when.
    held: Option<(SimTime, SimTime)>,
    used: Used,
}

/// What was drawn on a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Calls.
    pub calls: u64,
    /// Those that had to wait.
    pub delayed: u64,
    /// The longest wait.
    pub longest: SimDuration,
    /// The longest time for which calls waited without a pause.
    pub held: SimDuration,
}

impl CallLimit {
    /// A full bucket of a client with this rate.
    pub fn new(rate: CallRate) -> Self {
        Self::every(SimDuration::from_micros(1_000_000 / i64::from(rate.per_second.max(1))), i64::from(rate.burst))
    }

    /// A token comes after each such time, and there is room for `burst`.
    pub const fn every(every: SimDuration, burst: i64) -> Self {
        let used = Used { calls: 0, delayed: 0, longest: SimDuration::ZERO, held: SimDuration::ZERO };
        Self { every, burst, full_at: SimTime::ZERO, held: None, used }
    }

    /// Takes another rate from now on. The bucket lacks as many tokens as before, those of calls that wait included.
    pub fn set_rate(&mut self, now: SimTime, rate: CallRate) {
        let lacking = self.full_at.saturating_since(now).as_micros();
        let Self { every, burst, .. } = Self::new(rate);
        let full_in = i128::from(lacking) * i128::from(every.as_micros()) / i128::from(self.every.as_micros().max(1));
        self.full_at = now + SimDuration::from_micros(i64::try_from(full_in).unwrap_or(i64::MAX / 4));
        (self.every, self.burst) = (every, burst);
    }

    /// When a call could be made that asks now.
    pub fn next(&self, now: SimTime) -> SimTime {
        let full_at = self.full_at.max(now) + self.every;
        now + (full_at - now - self.every * self.burst).max(SimDuration::ZERO)
    }

    /// Takes a token: when the call can be made.
    pub fn reserve(&mut self, now: SimTime) -> SimTime {
        let at = self.next(now);
        self.full_at = self.full_at.max(now) + self.every;
        self.used.calls += 1;
        self.used.delayed += u64::from(at > now);
        self.used.longest = self.used.longest.max(at - now);
        self.hold(now, at);
        at
    }

    /// A call that asks now waits until `at`.
    fn hold(&mut self, now: SimTime, at: SimTime) {
        if at > now {
            let since = self.held.filter(|(_, until)| now <= *until).map_or(now, |(since, _)| since);
            self.held = Some((since, at));
            self.used.held = self.used.held.max(at - since);
        }
    }

    /// Takes a token if there is one; otherwise when there will be.
    pub fn take(&mut self, now: SimTime) -> Result<(), SimTime> {
        let at = self.next(now);
        if at > now {
            self.hold(now, at);
            return Err(at);
        }
        self.reserve(now);
        Ok(())
    }

    /// What was drawn on it so far.
    pub const fn used(&self) -> Used {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::CallLimit;
    use crate::domain::controller_time::CallRate;
    use crate::domain::{SimDuration, SimTime};

    fn at(millis: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_millis(millis)
    }

    #[test]
    fn call_limit_allows_burst_then_steady_rate() {
        let mut limit = CallLimit::new(CallRate::new(20, 30));
        assert!((0..30).all(|_| limit.reserve(at(5_000)) == at(5_000)));
        assert_eq!(limit.reserve(at(5_000)), at(5_050));
        assert_eq!(limit.reserve(at(5_000)), at(5_100));
        // A second later twenty have come, and two were spoken for.
        assert!((0..18).all(|_| limit.take(at(6_000)).is_ok()));
        assert_eq!(limit.take(at(6_000)), Err(at(6_050)));
        assert!((0..30).all(|_| limit.take(at(60_000)).is_ok()));
        let facts = limit.used();
        assert_eq!((facts.calls, facts.delayed, facts.longest), (80, 2, SimDuration::from_millis(100)));
    }

    #[test]
    fn held_time_ends_with_a_pause() {
        let mut limit = CallLimit::new(CallRate::new(4, 2));
        (0..10).for_each(|_| _ = limit.reserve(at(1_000)));
        assert_eq!(limit.used().held, SimDuration::from_secs(2));
        // The queue is empty at 3 s: what waits from 5 s on is another stretch.
        (0..7).for_each(|_| _ = limit.reserve(at(5_000)));
        assert_eq!(limit.used().held, SimDuration::from_secs(2));
        // It lasts to 6.25 s; one that asks until then prolongs it.
        (0..5).for_each(|_| _ = limit.reserve(at(6_250)));
        assert_eq!(limit.used().held, SimDuration::from_millis(2_500));
    }

    #[test]
    fn refused_token_counts_as_held() {
        let mut limit = CallLimit::new(CallRate::new(10, 1));
        let mut now = at(0);
        for _ in 0..40 {
            while let Err(later) = limit.take(now) {
                now = later;
            }
        }
        assert_eq!(limit.used().held, SimDuration::from_millis(3_900));
    }

    #[test]
    fn another_rate_keeps_the_waiting_calls() {
        let mut limit = CallLimit::new(CallRate::new(10, 5));
        (0..25).for_each(|_| _ = limit.reserve(at(0)));
        limit.set_rate(at(0), CallRate::new(40, 5));
        assert_eq!(limit.reserve(at(0)), at(525), "twenty-one calls at 40 a second");
    }
}
