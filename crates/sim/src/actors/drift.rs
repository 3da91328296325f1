//! How the clocks of controllers run: what keeps to a beat of its own, and how far others slip.
//!
//! A loop that slips comes round a little more than its period after it came round before. What it finds to be one period, or
//! twenty, old is therefore a little older, and comparisons with whole periods never end in a tie. metrics-server's ticker keeps
//! to its beat, and Prometheus aligns its scrapes.
//!
//! The spans are assumed: milliseconds, as on a control plane with little to do.

use crate::domain::{SimDuration, SimTime};
use crate::engine::{Stream, Streams};

/// What one sync of the HorizontalPodAutoscaler controller takes at least and at most: it reads the scale and the metrics, and
/// writes its status.
const SYNC: (SimDuration, SimDuration) = (SimDuration::from_millis(2), SimDuration::from_millis(10));
/// How late a timer of KEDA fires at least and at most.
const TIMER: (SimDuration, SimDuration) = (SimDuration::RESOLUTION, SimDuration::from_millis(2));

/// The slips of one loop, one after the other.
#[derive(Debug)]
pub(super) struct Drift {
    stream: Stream,
    least: SimDuration,
    most: SimDuration,
}

impl Drift {
    /// That of the autoscaler called `name`: its key goes back to the controller's queue for one period when the sync is done.
    ///
    /// Source: Kubernetes 1.36 `pkg/controller/podautoscaler/horizontal.go`, `processNextWorkItem`.
    pub(super) fn of_autoscaler(streams: &Streams, name: &str) -> Self {
        Self { stream: streams.stream("hpa-drift", name), least: SYNC.0, most: SYNC.1 }
    }

    /// That of the ScaledObject or ScaledJob called `name`: a timer of one interval is set when a poll begins.
    ///
    /// Source: KEDA 2.20 `pkg/scaling/scale_handler.go`, `startScaleLoop`.
    pub(super) fn of_poll(streams: &Streams, name: &str) -> Self {
        Self { stream: streams.stream("keda-drift", name), least: TIMER.0, most: TIMER.1 }
    }

    /// From the last time that the loop came round to the next.
    pub(super) fn after(&mut self, period: SimDuration) -> SimDuration {
        period + self.least + self.stream.span_up_to(self.most - self.least)
    }
}

/// From `now` to the next instant after it at which something happens that keeps to a beat: every `period`, at `phase` counted
/// from the start and before it.
pub(super) fn until_beat(now: SimTime, phase: SimDuration, period: SimDuration) -> SimDuration {
    let since_last = (now.as_micros() - phase.as_micros()).rem_euclid(period.as_micros().max(1));
    period - SimDuration::from_micros(since_last)
}

#[cfg(test)]
mod tests {
    use super::{Drift, until_beat};
    use crate::domain::{SimDuration, SimTime};
    use crate::engine::Streams;

    #[test]
    fn heartbeat_phase_is_independent_of_subscription_time() {
        let seconds = SimDuration::from_secs;
        let next = |now| until_beat(SimTime::ZERO + seconds(now), seconds(7), seconds(30)).as_secs();
        assert_eq!([next(0), next(6), next(7), next(8), next(36), next(37), next(330)], [7, 1, 30, 29, 1, 30, 7]);
        assert_eq!(until_beat(SimTime::ZERO, SimDuration::ZERO - seconds(4), seconds(30)).as_secs(), 26);
    }

    #[test]
    fn loops_drift_by_milliseconds_independently() {
        let streams = Streams::new(7);
        let period = SimDuration::from_secs(15);
        let slips = |mut drift: Drift| (0..20).map(|_| (drift.after(period) - period).as_micros()).collect::<Vec<_>>();
        let (one, other) = (Drift::of_autoscaler(&streams, "a/b"), Drift::of_autoscaler(&streams, "a/c"));
        let (one, other, poll) = (slips(one), slips(other), slips(Drift::of_poll(&streams, "a/b")));
        assert!(one.iter().chain(&other).all(|slip| (2_000..10_000).contains(slip)), "{one:?} {other:?}");
        assert!(poll.iter().all(|slip| (1..2_000).contains(slip)), "{poll:?}");
        assert_ne!(one, other);
    }
}
