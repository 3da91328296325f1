//! How long the real programs take for their decisions, told from what they have to do.
//!
//! Models, fitted to measurements: each is a sum of counts times constants, in nanoseconds, without a clock. A decision here
//! takes far less; what is modelled is the time that passes in the cluster before it is acted upon.

pub mod call_limit;
pub mod cluster_autoscaler;
pub mod karpenter;

use crate::domain::SimDuration;

/// A time that was measured, on processors of this speed in percent of those of the measurements.
pub fn at_speed(measured: SimDuration, speed_percent: u32) -> SimDuration {
    let micros = i128::from(measured.as_micros()) * 100 / i128::from(speed_percent.max(1));
    SimDuration::from_micros(i64::try_from(micros).unwrap_or(i64::MAX / 4))
}

/// What a program at this speed gets done within a limit of real time, as the time that it was measured to take.
pub fn work_within(limit: SimDuration, speed_percent: u32) -> SimDuration {
    let micros = i128::from(limit.as_micros()) * i128::from(speed_percent) / 100;
    SimDuration::from_micros(i64::try_from(micros).unwrap_or(i64::MAX / 4))
}

/// Nanoseconds as a duration, rounded to microseconds.
fn of_nanos(nanos: u128) -> SimDuration {
    SimDuration::from_micros(i64::try_from((nanos + 500) / 1_000).unwrap_or(i64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::{at_speed, work_within};
    use crate::domain::SimDuration;

    #[test]
    fn a_program_on_twice_the_speed_takes_half_the_time_and_does_twice_as_much_within_a_limit() {
        let minute = SimDuration::from_secs(60);
        assert_eq!(at_speed(minute, 200), SimDuration::from_secs(30));
        assert_eq!(work_within(minute, 200), SimDuration::from_secs(120));
        assert_eq!((at_speed(minute, 100), work_within(minute, 100)), (minute, minute));
    }
}
