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
}

impl CallLimit {
    /// A full bucket of a client with this rate.
    pub fn new(rate: CallRate) -> Self {
        Self::every(SimDuration::from_micros(1_000_000 / i64::from(rate.per_second.max(1))), i64::from(rate.burst))
    }

    /// A token comes after each such time, and there is room for `burst`.
    pub const fn every(every: SimDuration, burst: i64) -> Self {
        let used = Used { calls: 0, delayed: 0, longest: SimDuration::ZERO };
        Self { every, burst, full_at: SimTime::ZERO, used }
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
        at
    }

    /// Takes a token if there is one; otherwise when there will be.
    pub fn take(&mut self, now: SimTime) -> Result<(), SimTime> {
        let at = self.next(now);
        if at > now {
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
    fn a_burst_is_free_then_calls_come_at_their_rate_and_a_pause_fills_the_bucket() {
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
}
