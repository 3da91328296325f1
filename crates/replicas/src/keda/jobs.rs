//! How many Jobs a ScaledJob makes.

use nodecast_model::domain::Symbol;
use nodecast_model::domain::keda::{JobStrategy, ScaledJob, TriggerCalculation};
use nodecast_model::domain::pod::PodPhase;

/// What one trigger of a ScaledJob says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobTrigger {
    /// The metric's value.
    pub queue: f64,
    /// Jobs that this asks for at most, see [`trigger_maximum`].
    pub maximum: f64,
    /// Whether it is active.
    pub active: bool,
}

/// Jobs that a queue asks for at most: the queue over its target, no more than `max_replica_count`; none without a target.
///
/// Source: KEDA 2.20 `pkg/scaling/scaledjob/metrics.go`, `CalculateQueueLengthAndMaxValue`.
pub fn trigger_maximum(queue: f64, target: f64, max_replica_count: i64) -> f64 {
    if libm::fabs(target) > 0.0 { libm::fmin(queue / target, max_replica_count as f64) } else { 0.0 }
}

/// What all triggers together ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JobDemand {
    /// Whether Jobs may be made.
    pub active: bool,
    /// Waiting work.
    pub scale_to: i64,
    /// Jobs asked for at most.
    pub max_scale: i64,
}

/// Combines the active triggers. With the largest or smallest queue a queue of zero makes nothing active; a minimum of
/// Jobs makes everything active.
///
/// Source: KEDA 2.20 `pkg/scaling/scaledjob/metrics.go`, `IsScaledJobActive`.
pub fn combine(job: &ScaledJob, triggers: &[JobTrigger]) -> JobDemand {
    let active = || triggers.iter().filter(|trigger| trigger.active);
    let summed = || active().fold((0.0, 0.0), |(queue, maximum), one| (queue + one.queue, maximum + one.maximum));
    let (mut queue, mut maximum, mut any) = (0.0, 0.0, false);
    match job.calculation {
        TriggerCalculation::Max => {
            for trigger in active().filter(|trigger| trigger.queue > 0.0) {
                if trigger.queue > queue {
                    (queue, maximum, any) = (trigger.queue, trigger.maximum, true);
                }
            }
        }
        TriggerCalculation::Min => {
            for trigger in active() {
                // A queue of zero found before gives way, as if nothing had been found.
                if libm::fabs(queue) <= 0.0 || trigger.queue < queue {
                    (queue, maximum, any) = (trigger.queue, trigger.maximum, true);
                }
            }
        }
        TriggerCalculation::Avg => {
            let count = active().count() as f64;
            if count > 0.0 {
                let (queues, maxima) = summed();
                (queue, maximum, any) = (queues / count, maxima / count, true);
            }
        }
        TriggerCalculation::Sum => {
            (queue, maximum) = summed();
            any = active().next().is_some();
        }
    }
    JobDemand {
        active: any || job.min_replica_count > 0,
        scale_to: libm::ceil(queue) as i64,
        max_scale: libm::ceil(libm::fmin(maximum, job.max_replica_count as f64)) as i64,
    }
}

/// What one poll of a ScaledJob makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JobPlan {
    /// Jobs that the strategy leaves room for; may be below zero.
    pub effective_max_scale: i64,
    /// Jobs wanted.
    pub scale_to: i64,
    /// Jobs made.
    pub created: i64,
}

/// One poll, with `running` Jobs that have not finished, `pending` of them without a pod at work.
///
/// Source: KEDA 2.20 `pkg/scaling/executor/scale_jobs.go`, `getScalingDecision`, `GetEffectiveMaxScale`, `createJobs`.
pub fn plan_jobs(job: &ScaledJob, demand: JobDemand, running: i64, pending: i64) -> JobPlan {
    let missing = job.min_replica_count.saturating_sub(running);
    let (effective_max_scale, scale_to) = if missing > 0 {
        (missing, missing)
    } else {
        // Jobs kept by the minimum are not set against the queue.
        effective_max_scale(job, demand, running.saturating_sub(job.min_replica_count), pending)
    };
    let created = if demand.active { scale_to.min(effective_max_scale.max(0)).max(0) } else { 0 };
    JobPlan { effective_max_scale, scale_to, created }
}

fn effective_max_scale(job: &ScaledJob, demand: JobDemand, running: i64, pending: i64) -> (i64, i64) {
    let (maximum, wanted, most) = (demand.max_scale, demand.scale_to, job.max_replica_count);
    match &job.strategy {
        JobStrategy::Default => (maximum.saturating_sub(running), wanted),
        JobStrategy::Custom { queue_length_deduction, running_job_percentage } => {
            let Ok(ratio) = running_job_percentage.parse::<f64>() else {
                return (maximum.saturating_sub(running), wanted);
            };
            let counted = (running as f64 * ratio) as i64;
            (maximum.saturating_sub(*queue_length_deduction).saturating_sub(counted).min(most), wanted)
        }
        JobStrategy::Accurate if maximum.saturating_add(running).saturating_sub(pending) > most => {
            (most.saturating_sub(running), wanted)
        }
        JobStrategy::Accurate => (maximum.saturating_sub(pending), wanted),
        JobStrategy::Eager => (most.saturating_sub(running).saturating_sub(pending).min(maximum), most),
    }
}

/// A pod of an unfinished Job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JobPodView<'a> {
    /// Its phase.
    pub phase: PodPhase,
    /// The conditions that hold for it.
    pub conditions: &'a [Symbol],
}

/// Whether an unfinished Job counts as pending: no pod of it runs or has succeeded or, where conditions are listed, none
/// meets all of them.
///
/// Source: KEDA 2.20 `pkg/scaling/executor/scale_jobs.go`, `getPendingJobCount`.
pub fn is_pending(pods: &[JobPodView<'_>], conditions: &[Symbol]) -> bool {
    let at_work = |pod: &JobPodView<'_>| {
        if conditions.is_empty() {
            matches!(pod.phase, PodPhase::Running | PodPhase::Succeeded)
        } else {
            conditions.iter().all(|condition| pod.conditions.contains(condition))
        }
    };
    !pods.iter().any(at_work)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{JobDemand, JobTrigger, combine, plan_jobs, trigger_maximum};
    use nodecast_model::domain::Symbol;
    use nodecast_model::domain::keda::{JobStrategy, ScaledJob, TriggerCalculation};
    use nodecast_model::domain::pod::PodSpec;
    use nodecast_model::domain::workload::JobSpec;

    fn job() -> ScaledJob {
        ScaledJob::new(
            Symbol::new("jobs"),
            Symbol::new("batch"),
            JobSpec::from_template(Arc::new(PodSpec::default())),
            Vec::new(),
        )
    }

    fn trigger(queue: f64, maximum: f64) -> JobTrigger {
        JobTrigger { queue, maximum, active: true }
    }

    #[test]
    fn empty_queue_makes_scaled_job_inactive_under_max() {
        let demand = combine(&job(), &[trigger(0.0, 0.0)]);
        assert_eq!(demand, JobDemand { active: false, scale_to: 0, max_scale: 0 });
        let summed = ScaledJob { calculation: TriggerCalculation::Sum, ..job() };
        assert!(combine(&summed, &[trigger(0.0, 0.0)]).active);
    }

    #[test]
    fn summed_job_demand_is_capped_at_maximum() {
        let summed = ScaledJob { calculation: TriggerCalculation::Sum, max_replica_count: 10, ..job() };
        let demand = combine(&summed, &[trigger(8.0, 8.0), trigger(7.5, 7.5)]);
        assert_eq!(demand, JobDemand { active: true, scale_to: 16, max_scale: 10 });
        assert!((trigger_maximum(30.0, 4.0, 5) - 5.0).abs() < 1e-9);
        assert!(trigger_maximum(30.0, 0.0, 5).abs() < 1e-9);
    }

    #[test]
    fn a_minimum_keeps_jobs_running_beside_the_queue() {
        let with_minimum = ScaledJob { min_replica_count: 2, ..job() };
        let idle = combine(&with_minimum, &[]);
        assert!(idle.active);
        assert_eq!(plan_jobs(&with_minimum, idle, 1, 0).created, 1);
        let busy = JobDemand { active: true, scale_to: 5, max_scale: 5 };
        assert_eq!(plan_jobs(&with_minimum, busy, 4, 0).created, 3);
    }

    #[test]
    fn nothing_is_made_while_nothing_is_active() {
        let demand = JobDemand { active: false, scale_to: 5, max_scale: 5 };
        let eager = ScaledJob { strategy: JobStrategy::Eager, ..job() };
        assert_eq!(plan_jobs(&eager, demand, 0, 0).created, 0);
    }
}
