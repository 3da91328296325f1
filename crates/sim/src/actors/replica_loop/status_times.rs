//! Time stamps of a pod as the autoscaler reads them: whole seconds, the Ready condition a moment after the container's creation.
//!
//! The first reading of a new pod covers the time since its container was created, and counts only if the pod was Ready all that time.
//! Between the two lie tenths of a second, so the fractions that the stamps lose decide.
//!
//! Deviation: a pod is Ready, and serves, when its containers start or its probe succeeds. Only the condition that an
//! autoscaler on CPU reads changes later. That delay is fitted to eleven first readings.
//!
//! Must not: change when a pod serves or is read.
//!
//! Source: Kubernetes 1.36 `pkg/controller/podautoscaler/replica_calculator.go`, `groupPods`; `metav1.Time`, which is written in whole seconds;
//! `pkg/kubelet/status/status_manager.go`, `updateLastTransitionTime`.

use crate::actors::metrics_server::{LONGEST_LAG, STAMP};
use crate::domain::{PodId, SimDuration, SimTime};
use crate::engine::{Ordinals, Streams};
use nodecast_replicas::hpa::Sample;

/// Least time from a container's creation to the transition of the Ready condition.
const LEAST_LAG: SimDuration = SimDuration::from_millis(100);
/// Mean of the exponential time on top of it. Of eleven first readings on real clusters three to five counted; with this mean it is a
/// quarter.
const MEAN_LAG: SimDuration = SimDuration::from_millis(200);

/// Draws of the moments at which containers are created within a second, and of the time until their pods are Ready.
#[derive(Debug)]
pub(super) struct StatusTimes {
    fractions: Ordinals,
    lags: Ordinals,
}

impl StatusTimes {
    /// The draws of a run: every pod has its own, the same for all autoscalers.
    pub(super) fn new(streams: &Streams) -> Self {
        Self { fractions: streams.ordinals("pod-second"), lags: streams.ordinals("pod-ready-lag") }
    }

    /// Transition time in the Ready condition of a pod that is Ready since `since`.
    pub(super) fn ready_condition(&self, pod: PodId, since: SimTime) -> SimTime {
        let mean = MEAN_LAG.as_secs_f64();
        let drawn = SimDuration::from_secs_f64(-mean * libm::log(unit(self.lags, pod)));
        self.stamp(pod, since + (LEAST_LAG + drawn).min(LONGEST_LAG))
    }

    /// Start time in the status of a pod whose containers start at `at`.
    pub(super) fn start(&self, pod: PodId, at: SimTime) -> SimTime {
        self.stamp(pod, at)
    }

    /// The sample with the time stamp that the metrics API shows.
    pub(super) fn stamped(&self, pod: PodId, sample: Sample) -> Sample {
        Sample { at: self.stamp(pod, sample.at), ..sample }
    }

    /// An instant cut to the second. The model starts the containers of a batch at one instant, real ones start at any fraction of a
    /// second: seconds begin at a fraction of the pod's own, for both of its stamps.
    fn stamp(&self, pod: PodId, at: SimTime) -> SimTime {
        let second = STAMP.as_micros();
        let fraction = (unit(self.fractions, pod) * second as f64) as i64;
        SimTime::from_micros((at.as_micros() + fraction).div_euclid(second) * second)
    }
}

/// The pod's draw, in (0, 1].
fn unit(ordinals: Ordinals, pod: PodId) -> f64 {
    // Of the 64 bits a float holds 53.
    ((ordinals.nth(u64::from(pod.0)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOLUTION: SimDuration = SimDuration::from_secs(15);

    /// Share of pods Ready at 100.3 s whose reading at an instant counts, given the window of it.
    fn counted(at: i64, window: SimDuration) -> f64 {
        let times = StatusTimes::new(&Streams::new(7));
        let (pods, since) = (4_000, SimTime::from_micros(100_300_000));
        let counts = |pod: &u32| {
            let sample = times.stamped(PodId(*pod), Sample { milli: 1, at: SimTime::from_micros(at), window });
            sample.at >= times.ready_condition(PodId(*pod), since) + sample.window
        };
        (0..pods).filter(counts).count() as f64 / f64::from(pods)
    }

    #[test]
    fn first_reading_counts_for_a_quarter() {
        // How often depends on where in its second the reading falls.
        let shares = (0..40).map(|step| 111_000_000 + step * 25_000);
        let shares = shares.map(|at| counted(at, SimDuration::from_micros(at - 100_300_000)));
        let mean = shares.sum::<f64>() / 40.0;
        assert!((0.2..0.32).contains(&mean), "{mean}");
    }

    #[test]
    fn reading_after_a_whole_window_always_counts() {
        let first = 100_300_000 + (LONGEST_LAG + STAMP).as_micros();
        assert_eq!(counted(first + RESOLUTION.as_micros(), RESOLUTION).to_bits(), 1_f64.to_bits());
    }
}
