//! What the recommender remembers of one container of one pod: when it was last sampled, and the window of its memory.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/model/container.go`.

use super::aggregation::Aggregation;
use super::amount::{amount, scaled};
use super::recommender::NotTaken;
use super::settings::RecommenderSettings;
use nodecast_model::domain::vertical::ContainerPolicy;
use nodecast_model::domain::{Quantity, SimDuration, SimTime};

/// That a container was killed for lack of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    /// When.
    pub at: SimTime,
    /// What it requested then, in bytes.
    pub request_bytes: i64,
}

/// A container of a pod.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct TrackedContainer {
    /// The request of CPU, in thousandths.
    pub request_milli: i64,
    last_cpu: Option<SimTime>,
    last_memory: Option<SimTime>,
    window_end: Option<SimTime>,
    usage_peak: i64,
    out_of_memory_peak: i64,
}

impl TrackedContainer {
    /// A container that requests so much CPU.
    pub(super) fn new(request_milli: i64) -> Self {
        Self { request_milli, ..Self::default() }
    }

    /// The peak of a window that is open at an instant, with the window's end.
    pub(super) fn open_peak(&self, now: SimTime) -> Option<(SimTime, i64)> {
        self.window_end.filter(|end| now < *end).map(|end| (end, self.peak()))
    }

    fn peak(&self) -> i64 {
        self.usage_peak.max(self.out_of_memory_peak)
    }

    /// Takes a CPU sample that is younger than the last.
    pub(super) fn cpu(
        &mut self,
        (history, settings): (&mut Aggregation, &RecommenderSettings),
        at: SimTime,
        milli: i64,
    ) -> Result<(), NotTaken> {
        if self.last_cpu.is_some_and(|last| at <= last) {
            return Err(NotTaken::Outdated);
        }
        self.last_cpu = Some(at);
        history.add_cpu(settings, at, milli, self.request_milli);
        Ok(())
    }

    /// Takes a memory sample that is no older than the last.
    pub(super) fn memory(
        &mut self,
        (history, settings): (&mut Aggregation, &RecommenderSettings),
        at: SimTime,
        bytes: i64,
    ) -> Result<(), NotTaken> {
        if self.last_memory.is_some_and(|last| at < last) {
            return Err(NotTaken::Outdated);
        }
        if self.take_peak((history, settings.memory_interval), at, bytes) {
            self.usage_peak = bytes;
        }
        Ok(())
    }

    /// Takes what a container would have needed that was killed: more than it requested and more than it was seen to use, by the ratio
    /// of the settings and at least by so many bytes, which the policy of the container may state where PerVPAConfig is on. What a kill
    /// before asked for does not count, so that repeated kills do not drive the memory up by themselves.
    pub(super) fn out_of_memory(
        &mut self,
        (history, settings): (&mut Aggregation, &RecommenderSettings),
        kill: OutOfMemory,
        policy: Option<&ContainerPolicy>,
    ) -> Result<(), NotTaken> {
        let interval = settings.memory_interval;
        if self.window_end.is_some_and(|end| kill.at < end - interval) {
            return Err(NotTaken::Outdated);
        }
        let policy = policy.filter(|_| settings.uses_per_vpa_config());
        let ratio = policy.and_then(|policy| policy.oom_bump_up_ratio).map(Quantity::as_f64);
        let least = policy.and_then(|policy| policy.oom_min_bump_up).map(Quantity::as_f64);
        let used = kill.request_bytes.max(self.usage_peak);
        let more = used.saturating_add(amount(least.unwrap_or(settings.oom_min_bump_up_bytes)));
        let needed = more.max(scaled(used, ratio.unwrap_or(settings.oom_bump_up_ratio)));
        if self.take_peak((history, interval), kill.at, needed) {
            self.out_of_memory_peak = needed;
        }
        Ok(())
    }

    /// Whether a value becomes the peak of its window, which is then that of the history. A value in a window whose peak is zero does
    /// not: so the window of a container that begins with a sample of nothing stays at nothing.
    fn take_peak(&mut self, (history, interval): (&mut Aggregation, SimDuration), at: SimTime, bytes: i64) -> bool {
        self.last_memory = Some(at);
        let end = self.window_end.unwrap_or(at);
        if at < end {
            let before = self.peak();
            if before == 0 || bytes <= before {
                return false;
            }
            history.subtract_peak(end, before);
            history.add_peak(end, bytes);
            return true;
        }
        let windows = (at - end).as_micros() / interval.as_micros().max(1) + 1;
        let end = end + interval * windows;
        self.window_end = Some(end);
        (self.usage_peak, self.out_of_memory_peak) = (0, 0);
        history.add_peak(end, bytes);
        true
    }
}
