//! Token buckets of the EC2 API: a call takes tokens, the bucket fills by time.

use super::settings::BucketSize;
use nodecast_model::domain::SimTime;

/// A token bucket, full at the start. Counts in millionths of a token, so that nothing is lost between two calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    micro_tokens: i64,
    at: SimTime,
}

const MICRO: i64 = 1_000_000;

impl Bucket {
    /// A full bucket.
    pub fn full(size: BucketSize) -> Self {
        Self { micro_tokens: i64::from(size.size) * MICRO, at: SimTime::ZERO }
    }

    /// Takes `tokens` if there are so many, under limits that may have changed since the last call.
    pub fn take(&mut self, tokens: u32, size: BucketSize, now: SimTime) -> bool {
        let most = i64::from(size.size) * MICRO;
        // A token a second is a millionth of a token a microsecond.
        let gained = now.saturating_since(self.at).as_micros().saturating_mul(i64::from(size.per_second));
        self.micro_tokens = self.micro_tokens.saturating_add(gained).min(most);
        self.at = self.at.max(now);
        let wanted = i64::from(tokens) * MICRO;
        let granted = wanted <= self.micro_tokens;
        if granted {
            self.micro_tokens -= wanted;
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::Bucket;
    use crate::settings::{ApiLimits, BucketSize};
    use nodecast_model::domain::{SimDuration, SimTime};

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    #[test]
    fn thousand_launches_pass_then_100_after_50s() {
        let size = ApiLimits::default().launched_instances;
        let mut bucket = Bucket::full(size);
        assert!(bucket.take(1_000, size, at(0)));
        assert!(!bucket.take(100, size, at(10)), "20 tokens have come back");
        assert!(bucket.take(100, size, at(50)));
    }

    #[test]
    fn bucket_throttles_51st_launch_call() {
        let size = ApiLimits::default().mutating;
        let mut bucket = Bucket::full(size);
        assert!((0..50).all(|_| bucket.take(1, size, at(0))));
        assert!(!bucket.take(1, size, at(0)));
        assert!(bucket.take(1, size, at(1)));
    }

    #[test]
    fn a_smaller_limit_takes_hold_at_once() {
        let mut bucket = Bucket::full(ApiLimits::default().mutating);
        let small = BucketSize { size: 1, per_second: 0 };
        assert!(bucket.take(1, small, at(1)));
        assert!(!bucket.take(1, small, at(1_000)));
    }
}
