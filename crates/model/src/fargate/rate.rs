//! How fast Fargate launches pods: a token bucket for account and region, first come, first served.

use crate::domain::{SimDuration, SimTime};

const SECOND: i64 = 1_000_000;

/// A token bucket. A pod takes a token as soon as there is one for it and waits until then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchRate {
    burst: i64,
    per_second: i64,
    /// When the bucket would be full if nobody took anything any more.
    full_at: SimTime,
}

impl LaunchRate {
    /// A full bucket of so many tokens, which gains so many a second.
    pub const fn new(burst: u32, per_second: u32) -> Self {
        Self { burst: burst as i64, per_second: per_second as i64, full_at: SimTime::ZERO }
    }

    /// When a pod that comes at `now`, after all that came before, has its token.
    pub fn take(&mut self, now: SimTime) -> SimTime {
        let one = SimDuration::from_micros(SECOND / self.per_second.max(1));
        let reserve = SimDuration::from_micros(SECOND * self.burst / self.per_second.max(1));
        self.full_at = self.full_at.max(now) + one;
        let ahead = self.full_at - now;
        if ahead <= reserve { now } else { now + (ahead - reserve) }
    }
}
