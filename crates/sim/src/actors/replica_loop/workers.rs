//! The workers of the HorizontalPodAutoscaler controller: each evaluates one autoscaler at a time, the others wait in the order in which they
//! are due.
//!
//! Must not: read metrics or decide on replicas.
//!
//! Source: Kubernetes 1.36 `pkg/controller/podautoscaler/horizontal.go`, `Run`, `processNextWorkItem`.

use crate::actors::setup::Setup;
use crate::domain::{ControlPlaneTier, SimDuration, SimTime};
use crate::world::controller_loops::AutoscalerPasses;

/// The workers, where passes take time.
#[derive(Debug, Default)]
pub(in crate::actors) struct Workers {
    /// When each is free.
    free_at: Vec<SimTime>,
    /// For how long a pass waits for metrics.
    metrics_call: SimDuration,
    passes: AutoscalerPasses,
}

impl Workers {
    pub(in crate::actors) fn new(setup: &Setup<'_>) -> Self {
        let Some(time) = setup.policy.controller_time.controller_manager else { return Self::default() };
        let at_once = time.autoscaler_syncs(setup.policy.control_plane_tier).max(1);
        Self {
            free_at: vec![SimTime::ZERO; at_once as usize],
            metrics_call: time.metrics_call,
            passes: AutoscalerPasses { at_once, ..AutoscalerPasses::default() },
        }
    }

    /// Another tier of the control plane: workers are added, or those that are free last end.
    pub(super) fn change_tier(&mut self, setup: &Setup<'_>, tier: ControlPlaneTier) {
        let Some(time) = setup.policy.controller_time.controller_manager else { return };
        let at_once = time.autoscaler_syncs(tier).max(1);
        self.free_at.sort_unstable();
        self.free_at.resize(at_once as usize, SimTime::ZERO);
        self.passes.at_once = at_once;
    }

    /// Takes up an autoscaler that is due now and whose pass takes `duration` besides the wait for metrics: when it has its metrics.
    pub(super) fn take_up(&mut self, now: SimTime, duration: SimDuration) -> SimTime {
        let Some(free_at) = self.free_at.iter_mut().min() else { return now };
        let begin = now.max(*free_at);
        let has_metrics = begin + self.metrics_call;
        *free_at = has_metrics + duration;
        self.passes.passes += 1;
        self.passes.delayed += u64::from(begin > now);
        self.passes.longest = self.passes.longest.max(begin - now);
        has_metrics
    }

    /// Passes so far, if they take time and there were any.
    pub(in crate::actors) fn passes(&self) -> Option<AutoscalerPasses> {
        Some(self.passes).filter(|passes| passes.passes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{AutoscalerPasses, Workers};
    use crate::domain::{SimDuration, SimTime};

    fn workers(count: usize, metrics_call: i64) -> Workers {
        Workers {
            free_at: vec![SimTime::ZERO; count],
            metrics_call: SimDuration::from_millis(metrics_call),
            passes: AutoscalerPasses::default(),
        }
    }

    #[test]
    fn pass_waits_for_free_worker() {
        let mut workers = workers(3, 400);
        let now = SimTime::ZERO + SimDuration::from_secs(20);
        let after = |at: SimTime| (at - now).as_micros() / 1_000;
        let duration = SimDuration::from_millis(100);
        let metrics: Vec<i64> = (0..7).map(|_| after(workers.take_up(now, duration))).collect();
        assert_eq!(metrics, [400, 400, 400, 900, 900, 900, 1_400]);
        assert_eq!((workers.passes.delayed, workers.passes.longest), (4, SimDuration::from_secs(1)));
    }

    #[test]
    fn without_workers_nothing_waits() {
        let now = SimTime::ZERO + SimDuration::from_secs(3);
        let mut none = Workers::default();
        assert_eq!((none.take_up(now, SimDuration::from_secs(9)), none.passes()), (now, None));
    }
}
