//! How long controllers take, and how fast their clients may call the API server.
//!
//! Source: the limits are the upstream defaults of Kubernetes 1.36 (`--kube-api-qps`, `--kube-api-burst` of
//! kube-controller-manager and kube-scheduler), Karpenter v1.13 (`KUBE_CLIENT_QPS`, `KUBE_CLIENT_BURST`) and Cluster
//! Autoscaler 1.36 (`--kube-client-qps`, `--kube-client-burst`); those of kube-scheduler, and how many autoscalers are evaluated at a
//! time, go by the tier of the control plane unless stated.

use super::{ControlPlaneTier, KubernetesVersion, SimDuration};

/// How fast a client may call: a bucket of `burst` tokens into which `per_second` flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallRate {
    /// Calls per second in the long run, at least 1.
    pub per_second: u32,
    /// Calls at once after a pause, at least 1.
    pub burst: u32,
}

impl CallRate {
    /// A rate of so many calls per second after so many at once.
    pub const fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second, burst }
    }
}

/// kube-controller-manager: each of its controllers has a client of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ControllerManagerTime {
    /// What each controller's client may call.
    pub calls: CallRate,
    /// How many ReplicaSets are worked on at once (`--concurrent-replicaset-syncs`), at least 1.
    pub replica_set_syncs: u32,
    /// How many HorizontalPodAutoscalers are evaluated at a time (`--concurrent-horizontal-pod-autoscaler-syncs`), at least 1; `None` as
    /// the tier has it.
    pub autoscaler_syncs: Option<u32>,
    /// For how long each of them waits for its metrics.
    pub metrics_call: SimDuration,
}

impl ControllerManagerTime {
    /// How many HorizontalPodAutoscalers are evaluated at a time on this tier.
    pub fn autoscaler_syncs(&self, tier: ControlPlaneTier) -> u32 {
        self.autoscaler_syncs.unwrap_or_else(|| tier.autoscaler_syncs())
    }
}

/// kube-scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SchedulerTime {
    /// What its client may call per second, bindings and conditions of pods that no node takes; `None` as the tier has it.
    pub per_second: Option<u32>,
    /// What it may call at once after a pause; `None` as the tier has it.
    pub burst: Option<u32>,
}

impl SchedulerTime {
    /// The limit of its client on this tier, in a cluster with this many nodes.
    pub fn calls(&self, tier: ControlPlaneTier, version: KubernetesVersion, nodes: usize) -> CallRate {
        let scheduler_calls = tier.scheduler_calls(version, nodes);
        CallRate {
            per_second: self.per_second.unwrap_or(scheduler_calls.per_second),
            burst: self.burst.unwrap_or(scheduler_calls.burst),
        }
    }

    /// Whether the tier decides nothing.
    pub const fn is_stated(&self) -> bool {
        self.per_second.is_some() && self.burst.is_some()
    }
}

/// A node autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AutoscalerTime {
    /// What its client may call.
    pub calls: CallRate,
    /// How fast it computes, in percent of the processors that passes were measured on; more than 0.
    pub speed_percent: u32,
}

/// The time that each controller takes; `None` for one that takes none and may call without limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ControllerTime {
    /// kube-controller-manager.
    pub controller_manager: Option<ControllerManagerTime>,
    /// kube-scheduler.
    pub scheduler: Option<SchedulerTime>,
    /// Karpenter.
    pub karpenter: Option<AutoscalerTime>,
    /// The Cluster Autoscaler.
    pub cluster_autoscaler: Option<AutoscalerTime>,
}

impl ControllerTime {
    /// No controller takes time.
    pub const NONE: Self =
        Self { controller_manager: None, scheduler: None, karpenter: None, cluster_autoscaler: None };

    /// Controllers as they were measured, with the limits that they have unless somebody raises them.
    pub const MEASURED: Self = Self {
        controller_manager: Some(ControllerManagerTime {
            calls: CallRate::new(20, 30),
            replica_set_syncs: 5,
            autoscaler_syncs: None,
            metrics_call: SimDuration::ZERO,
        }),
        scheduler: Some(SchedulerTime { per_second: None, burst: None }),
        karpenter: Some(AutoscalerTime { calls: CallRate::new(200, 300), speed_percent: 100 }),
        cluster_autoscaler: Some(AutoscalerTime { calls: CallRate::new(5, 10), speed_percent: 100 }),
    };

    /// Whether the tier of the control plane has an effect.
    pub fn goes_by_tier(&self) -> bool {
        self.scheduler.is_some_and(|time| !time.is_stated())
            || self.controller_manager.is_some_and(|time| time.autoscaler_syncs.is_none())
    }
}

impl Default for ControllerTime {
    fn default() -> Self {
        Self::MEASURED
    }
}

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
pub fn of_nanos(nanos: u128) -> SimDuration {
    SimDuration::from_micros(i64::try_from((nanos + 500) / 1_000).unwrap_or(i64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::{SimDuration, at_speed, work_within};

    #[test]
    fn doubled_controller_speed_halves_time_and_doubles_work() {
        let minute = SimDuration::from_secs(60);
        assert_eq!(at_speed(minute, 200), SimDuration::from_secs(30));
        assert_eq!(work_within(minute, 200), SimDuration::from_secs(120));
        assert_eq!((at_speed(minute, 100), work_within(minute, 100)), (minute, minute));
    }
}
