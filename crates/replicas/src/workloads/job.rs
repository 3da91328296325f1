//! The Job controller: how many pods a Job makes or deletes, and when it has come to its end.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`, `syncJob`, `manageJob`.

use nodecast_model::domain::pod::Container;
use nodecast_model::domain::workload::JobSpec;
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, PodSpec, SimDuration};

/// The wait after a failure; it doubles with every further one.
const BACK_OFF: SimDuration = SimDuration::from_secs(10);
/// The longest such wait.
const BACK_OFF_MAX: SimDuration = SimDuration::from_secs(600);

/// A Job as the controller finds it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// What it is to do.
    pub spec: &'a JobSpec,
    /// Pods that have neither ended nor are being deleted.
    pub active: u32,
    /// Pods that are being deleted and have not ended yet.
    pub terminating: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Pods that failed.
    pub failed: u32,
    /// Indexes that are given up: no pod is made for them any more.
    pub failed_indexes: u32,
    /// Whether a rule of its `successPolicy` holds.
    pub success: bool,
    /// Restarts of the containers of its active pods.
    pub restarts: u32,
    /// How long it has run without being suspended.
    pub age: SimDuration,
    /// Whether the wait after its last failure is not over.
    pub backing_off: bool,
}

/// How a Job ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobEnd {
    /// With all its completions.
    Complete,
    /// With the completions that its `successPolicy` wants.
    SuccessPolicy,
    /// More pods failed than `backoffLimit` allows.
    BackoffLimitExceeded,
    /// It ran for longer than `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// Each index is done, and some of them are given up.
    FailedIndexes,
    /// More indexes are given up than `maxFailedIndexes` allows.
    MaxFailedIndexesExceeded,
}

impl JobEnd {
    /// The reason of the Job's condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::SuccessPolicy => "SuccessPolicy",
            Self::BackoffLimitExceeded => "BackoffLimitExceeded",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::FailedIndexes => "FailedIndexes",
            Self::MaxFailedIndexesExceeded => "MaxFailedIndexesExceeded",
        }
    }
}

/// What one pass does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobStep {
    /// It makes so many pods, perhaps none.
    Create(u32),
    /// It deletes so many pods.
    Delete(u32),
    /// The Job has ended; pods that are left are deleted.
    End(JobEnd),
}

/// Pods that a Job wants at a time, of which `active` are there and `done` have ended well or stand for indexes that are given up: its
/// parallelism, as far as so many are left.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`, `manageJob` (`wantActive`).
pub fn job_wants(spec: &JobSpec, active: u32, done: u32) -> u32 {
    match spec.completions {
        _ if spec.suspended => 0,
        Some(completions) => spec.parallelism.min(completions.saturating_sub(done)),
        // A queue of work: after the first success no further pods are made, and those that run come to their end.
        None if done > 0 => active,
        None => spec.parallelism,
    }
}

/// Whether the containers of a Job's pods have restarted as often as `backoffLimit` says, once where that is zero.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`, `pastBackoffLimitOnFailure`.
const fn has_too_many_restarts(job: &JobView<'_>) -> bool {
    let limit = if job.spec.backoff_limit == 0 { 1 } else { job.spec.backoff_limit };
    job.spec.restarts_in_place && job.restarts >= limit
}

/// What one pass of the controller does with a Job.
pub fn job_step(job: &JobView<'_>) -> JobStep {
    let spec = job.spec;
    if job.failed > spec.backoff_limit || has_too_many_restarts(job) {
        return JobStep::End(JobEnd::BackoffLimitExceeded);
    }
    if !spec.suspended && spec.active_deadline.is_some_and(|deadline| job.age >= deadline) {
        return JobStep::End(JobEnd::DeadlineExceeded);
    }
    if spec.max_failed_indexes.is_some_and(|most| job.failed_indexes > most) {
        return JobStep::End(JobEnd::MaxFailedIndexesExceeded);
    }
    if job.success {
        return JobStep::End(JobEnd::SuccessPolicy);
    }
    let done = job.succeeded.saturating_add(job.failed_indexes);
    let is_done = match spec.completions {
        Some(completions) => done >= completions,
        None => done > 0 && job.active == 0,
    };
    if is_done {
        return JobStep::End(if job.failed_indexes > 0 { JobEnd::FailedIndexes } else { JobEnd::Complete });
    }
    let wanted = job_wants(spec, job.active, done);
    if job.active > wanted {
        JobStep::Delete(job.active - wanted)
    } else if job.backing_off {
        JobStep::Create(0)
    } else {
        let awaited = if spec.replaces_ended_only { job.terminating } else { 0 };
        JobStep::Create(wanted.saturating_sub(job.active + awaited))
    }
}

/// Whether the API server lets a Job have `new` as its template instead of `old`: where it scheduled pods to may change while it is
/// suspended, and what they ask for too from Kubernetes 1.36 on. Until then, it must not have run before; `idle` says whether it is
/// suspended without an active pod, `has_run` whether it ever was not.
///
/// Source: Kubernetes 1.36 `pkg/registry/batch/job/strategy.go`, `validationOptionsForJob`; `pkg/apis/batch/validation/validation.go`,
/// `validatePodTemplateUpdate`; the gates `MutableSchedulingDirectivesForSuspendedJobs` and `MutablePodResourcesForSuspendedJobs`.
pub fn may_change_template(
    (old, new): (&PodSpec, &PodSpec),
    (idle, has_run): (bool, bool),
    version: KubernetesVersion,
) -> bool {
    let with_resources = version.has(KubernetesBehaviour::SuspendedJobResources);
    if old == new {
        return true;
    }
    if !idle || has_run && !with_resources {
        return false;
    }
    let mut alike = PodSpec {
        labels: old.labels.clone(),
        annotations: old.annotations.clone(),
        node_selector: old.node_selector.clone(),
        node_affinity: old.node_affinity.clone(),
        tolerations: old.tolerations.clone(),
        scheduling_gates: old.scheduling_gates.clone(),
        ..new.clone()
    };
    if with_resources {
        alike.containers.iter_mut().zip(&old.containers).for_each(|(container, old)| take_resources(container, old));
        let init = alike.init_containers.iter_mut().zip(&old.init_containers);
        init.for_each(|(unknown_request, old)| take_resources(&mut unknown_request.container, &old.container));
    }
    alike == *old
}

fn take_resources(container: &mut Container, other: &Container) {
    container.requests = other.requests.clone();
    container.limits = other.limits.clone();
}

/// How long a Job waits before it makes pods again after so many failures without a success in between.
///
/// Source: `backoff_utils.go`.
pub fn retry_delay(failures: u32) -> SimDuration {
    let doublings = failures.saturating_sub(1).min(10);
    (BACK_OFF * i64::from(1_u32 << doublings)).min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{JobEnd, JobStep, JobView, job_step, may_change_template, retry_delay};
    use nodecast_model::domain::pod::Container;
    use nodecast_model::domain::workload::JobSpec;
    use nodecast_model::domain::{KubernetesVersion, Labels, PodSpec, ResourceName, Resources, SimDuration};

    fn spec(parallelism: u32, completions: Option<u32>) -> JobSpec {
        JobSpec {
            template: Arc::new(PodSpec::default()),
            parallelism,
            completions,
            backoff_limit: 2,
            index_backoff_limit: None,
            max_failed_indexes: None,
            restarts_in_place: false,
            active_deadline: Some(SimDuration::from_secs(100)),
            suspended: false,
            ignores_disruptions: false,
            replaces_ended_only: false,
            ttl: None,
            failure_policy: false,
            indexed: false,
            success_policy: Vec::new(),
            manager: None,
        }
    }

    fn view(spec: &JobSpec, active: u32, succeeded: u32, failed: u32) -> JobView<'_> {
        let age = SimDuration::from_secs(99);
        JobView {
            spec,
            active,
            terminating: 0,
            succeeded,
            failed,
            failed_indexes: 0,
            success: false,
            restarts: 0,
            age,
            backing_off: false,
        }
    }

    fn step(spec: &JobSpec, active: u32, succeeded: u32, failed: u32) -> JobStep {
        job_step(&view(spec, active, succeeded, failed))
    }

    #[test]
    fn job_runs_pods_up_to_remaining_completions() {
        let three_of_five = spec(3, Some(5));
        assert_eq!(step(&three_of_five, 0, 0, 0), JobStep::Create(3));
        assert_eq!(step(&three_of_five, 2, 2, 0), JobStep::Create(1));
        assert_eq!(step(&three_of_five, 2, 4, 0), JobStep::Delete(1));
        assert_eq!(step(&three_of_five, 0, 5, 0), JobStep::End(JobEnd::Complete));
    }

    #[test]
    fn failed_index_is_not_retried_and_fails_job() {
        let three_of_five = spec(3, Some(5));
        let step =
            |active, succeeded| job_step(&JobView { failed_indexes: 1, ..view(&three_of_five, active, succeeded, 1) });
        assert_eq!(step(0, 0), JobStep::Create(3));
        assert_eq!(step(1, 2), JobStep::Create(1), "two of five are left");
        assert_eq!(step(0, 4), JobStep::End(JobEnd::FailedIndexes));
        assert_eq!(JobEnd::FailedIndexes.as_str(), "FailedIndexes");
    }

    #[test]
    fn restarts_reaching_the_limit_end_the_job() {
        let ends = |spec: &JobSpec, restarts| job_step(&JobView { restarts, ..view(spec, 1, 0, 0) });
        let failed = JobStep::End(JobEnd::BackoffLimitExceeded);
        let in_place = |limit| JobSpec { restarts_in_place: true, backoff_limit: limit, ..spec(1, Some(1)) };
        assert_eq!([1, 2].map(|restarts| ends(&in_place(2), restarts)), [JobStep::Create(0), failed]);
        assert_eq!([0, 1].map(|restarts| ends(&in_place(0), restarts)), [JobStep::Create(0), failed]);
        assert_eq!(ends(&spec(1, Some(1)), 5), JobStep::Create(0), "another policy");
    }

    #[test]
    fn failed_indexes_above_the_maximum_end_the_job() {
        let job = JobSpec { max_failed_indexes: Some(1), ..spec(2, Some(5)) };
        let step = |failed_indexes| job_step(&JobView { failed_indexes, ..view(&job, 1, 1, 0) });
        assert_eq!([1, 2].map(step), [JobStep::Create(1), JobStep::End(JobEnd::MaxFailedIndexesExceeded)]);
    }

    #[test]
    fn without_completions_first_success_stops_new_pods() {
        let queue = spec(3, None);
        assert_eq!(step(&queue, 1, 0, 0), JobStep::Create(2));
        assert_eq!(step(&queue, 2, 1, 0), JobStep::Create(0));
        assert_eq!(step(&queue, 0, 1, 0), JobStep::End(JobEnd::Complete));
    }

    #[test]
    fn backoff_limit_and_deadline_fail_the_job() {
        let job = spec(1, Some(1));
        assert_eq!(step(&job, 0, 0, 2), JobStep::Create(1));
        assert_eq!(step(&job, 0, 0, 3), JobStep::End(JobEnd::BackoffLimitExceeded));
        let late = JobView {
            spec: &job,
            active: 1,
            terminating: 0,
            succeeded: 0,
            failed: 0,
            failed_indexes: 0,
            success: false,
            restarts: 0,
            age: SimDuration::from_secs(100),
            backing_off: false,
        };
        assert_eq!(job_step(&late), JobStep::End(JobEnd::DeadlineExceeded));
    }

    #[test]
    fn suspended_or_backing_off_job_creates_no_pods() {
        let suspended = JobSpec { suspended: true, ..spec(2, Some(2)) };
        assert_eq!(step(&suspended, 2, 0, 0), JobStep::Delete(2));
        assert_eq!(step(&suspended, 0, 0, 0), JobStep::Create(0));
        let job = spec(2, Some(2));
        let view = JobView {
            spec: &job,
            active: 0,
            terminating: 0,
            succeeded: 0,
            failed: 1,
            failed_indexes: 0,
            success: false,
            restarts: 0,
            age: SimDuration::ZERO,
            backing_off: true,
        };
        assert_eq!(job_step(&view), JobStep::Create(0));
    }

    #[test]
    fn terminating_pods_are_replaced_according_to_policy() {
        let step = |spec: &JobSpec, active: u32, terminating: u32| {
            let age = SimDuration::ZERO;
            job_step(&JobView {
                spec,
                active,
                terminating,
                succeeded: 0,
                failed: 0,
                failed_indexes: 0,
                success: false,
                restarts: 0,
                age,
                backing_off: false,
            })
        };
        let at_once = spec(3, Some(3));
        assert_eq!(step(&at_once, 1, 2), JobStep::Create(2));
        let waits = JobSpec { replaces_ended_only: true, ..at_once };
        assert_eq!(step(&waits, 1, 2), JobStep::Create(0));
        assert_eq!(step(&waits, 1, 1), JobStep::Create(1));
        // Two went because fewer were to run, and are still there when more are to run again.
        assert_eq!(step(&waits, 2, 2), JobStep::Create(0));
    }

    #[test]
    fn suspended_job_allows_scheduling_and_resource_changes() {
        let version = |minor| KubernetesVersion::from_minor(minor).unwrap();
        let container = |cpu: i64, image: &str| Container {
            image: image.to_owned(),
            requests: Resources::new().with(ResourceName::CPU, cpu),
            ..Container::default()
        };
        let old = PodSpec { containers: vec![container(1_000, "one")], ..PodSpec::default() };
        let moved = PodSpec { node_selector: Labels::new().with("zone", "a"), ..old.clone() };
        let larger = PodSpec { containers: vec![container(2_000, "one")], ..old.clone() };
        let other = PodSpec { containers: vec![container(1_000, "two")], ..old.clone() };
        let may =
            |new: &PodSpec, idle, has_run, minor| may_change_template((&old, new), (idle, has_run), version(minor));
        assert!(may(&moved, true, true, 36) && may(&larger, true, true, 36));
        assert!(may(&moved, true, false, 35) && !may(&moved, true, true, 35) && !may(&larger, true, false, 35));
        assert!(!may(&other, true, false, 36) && !may(&moved, false, false, 36));
        assert!(may(&old, false, true, 36));
    }

    #[test]
    fn job_backoff_doubles_up_to_ten_minutes() {
        let seconds: Vec<i64> = [1, 2, 3, 6, 7, 60].map(|failures| retry_delay(failures).as_secs()).to_vec();
        assert_eq!(seconds, [10, 20, 40, 320, 600, 600]);
    }
}
