//! Jobs as they came and went, those of CronJobs and ScaledJobs among them.
//!
//! What must not live here: when a Job makes pods or has ended (the deciding crates), and when that is looked at (`actors`).

use super::World;
use crate::domain::workload::{JobSpec, JobStatus};
use crate::domain::{PodId, SimTime, WorkloadId};

/// A Job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobFacts {
    /// The Job itself, or the CronJob or ScaledJob that made it.
    pub workload: WorkloadId,
    /// Its name.
    pub name: Box<str>,
    /// When it was created, at the earliest the start of the run.
    pub created: SimTime,
    /// Successes that complete it; `None` if one success of any pod does.
    pub completions: Option<u32>,
    /// Pods at a time.
    pub parallelism: u32,
    /// Pods that had done their work, and pods that had failed, before the run began.
    pub ended_before: (u32, u32),
    /// How it ended.
    pub end: Option<JobOutcome>,
}

/// How a Job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobOutcome {
    /// When.
    pub at: SimTime,
    /// Why.
    pub kind: JobOutcomeKind,
}

/// Why a Job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobOutcomeKind {
    /// It is complete.
    Complete,
    /// It was given up.
    Failed,
    /// It was deleted before it had ended.
    Deleted,
}

impl World {
    /// A Job of `workload` begins; its position in the record.
    pub fn begin_job(&mut self, workload: WorkloadId, name: String, spec: &JobSpec, at: SimTime) -> usize {
        let (completions, parallelism) = (spec.completions, spec.parallelism);
        let name = name.into_boxed_str();
        let (ended_before, end) = ((0, 0), None);
        self.record.jobs.push(JobFacts { workload, name, created: at, completions, parallelism, ended_before, end });
        self.record.jobs.len() - 1
    }

    /// By the schedule of a CronJob a Job of it is due.
    pub fn job_is_due(&mut self, workload: WorkloadId, at: SimTime) {
        self.record.jobs_due.push((workload, at));
    }

    /// The Job at this position of the record had come so far before the run began.
    pub fn go_on_with_job(&mut self, job: usize, status: &JobStatus) {
        if let Some(facts) = self.record.jobs.get_mut(job) {
            facts.ended_before = (status.succeeded, status.failed);
        }
    }

    /// The pod belongs to the Job at this position of the record.
    pub fn assign_to_job(&mut self, pod: PodId, job: usize) {
        self.record.pods.change(pod).job = u32::try_from(job).ok();
    }

    /// The Jobs of a workload are deleted, those that have not ended.
    pub(super) fn end_jobs_of(&mut self, workload: WorkloadId, at: SimTime) {
        let deleted = JobOutcome { at, kind: JobOutcomeKind::Deleted };
        for facts in self.record.jobs.iter_mut().filter(|facts| facts.workload == workload) {
            facts.end.get_or_insert(deleted);
        }
    }

    /// The Job at this position of the record has ended.
    pub fn end_job(&mut self, job: usize, at: SimTime, kind: JobOutcomeKind) {
        if let Some(facts) = self.record.jobs.get_mut(job) {
            facts.end.get_or_insert(JobOutcome { at, kind });
        }
    }
}
