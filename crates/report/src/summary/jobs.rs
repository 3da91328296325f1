//! Jobs that were due, and what became of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::{SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::{JobFacts, JobOutcomeKind, WorkloadKind};

/// What became of Jobs and of what CronJobs were to start. Jobs of ScaledJobs are left out: how many there are is KEDA's choice, and their
/// work is messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobFigures {
    /// Jobs that were applied, and times at which the schedule of a CronJob called for one.
    pub due: u64,
    /// Jobs that are complete.
    pub complete: u64,
    /// Jobs that were given up.
    pub failed: u64,
    /// Of those due all that are not done: given up, deleted before they had ended, never started because the one before still ran, or still
    /// running although the next of their CronJob was due. The newest Job of a CronJob only runs when the run ends.
    pub undone: u64,
    /// Of those complete the ones that were so before the warm-up was over: no wait and no eviction of their pods counts.
    #[serde(default, skip_serializing_if = "is_none")]
    pub complete_in_warm_up: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What is known of one workload.
#[derive(Default)]
struct WorkloadJobs<'o> {
    due: u64,
    /// When the last was due; `None` where no schedule says it.
    last: Option<SimTime>,
    jobs: Vec<&'o JobFacts>,
}

/// What became of Jobs; `None` where none was due.
pub(super) fn figures(outcome: &Outcome) -> Option<JobFigures> {
    let mut all: BTreeMap<WorkloadId, WorkloadJobs<'_>> = BTreeMap::new();
    for (workload, at) in &outcome.record.jobs_due {
        let workload_jobs = all.entry(*workload).or_default();
        workload_jobs.due += 1;
        workload_jobs.last = Some(*at);
    }
    let kind = |job: &JobFacts| outcome.record.workloads.get(job.workload.index()).map(|facts| facts.kind);
    let is_own = |job: &&JobFacts| matches!(kind(job), Some(WorkloadKind::Job | WorkloadKind::CronJob));
    for job in outcome.record.jobs.iter().filter(is_own) {
        all.entry(job.workload).or_default().jobs.push(job);
    }
    let figures =
        all.values().fold(JobFigures::default(), |sum, item| sum.and(&job_figures(item, outcome.about.counts_from())));
    (figures.due > 0).then_some(figures)
}

fn job_figures(workload_jobs: &WorkloadJobs<'_>, counts_from: SimTime) -> JobFigures {
    let ended =
        |kind| workload_jobs.jobs.iter().filter(|job| job.end.is_some_and(|end| end.kind == kind)).count() as u64;
    let complete = ended(JobOutcomeKind::Complete);
    let is_newest = |job: &&&JobFacts| job.end.is_none() && workload_jobs.last.is_some_and(|last| job.created >= last);
    let newest = workload_jobs.jobs.iter().filter(is_newest).count() as u64;
    // Jobs of a CronJob that were there when the run began were due before.
    let due = workload_jobs.due.max(workload_jobs.jobs.len() as u64);
    let undone = due.saturating_sub(complete + newest);
    let in_warm_up =
        |job: &&&JobFacts| job.end.is_some_and(|end| end.kind == JobOutcomeKind::Complete && end.at < counts_from);
    let complete_in_warm_up = workload_jobs.jobs.iter().filter(in_warm_up).count() as u64;
    JobFigures { due, complete, failed: ended(JobOutcomeKind::Failed), undone, complete_in_warm_up }
}

impl JobFigures {
    fn and(self, other: &Self) -> Self {
        Self {
            due: self.due + other.due,
            complete: self.complete + other.complete,
            failed: self.failed + other.failed,
            undone: self.undone + other.undone,
            complete_in_warm_up: self.complete_in_warm_up + other.complete_in_warm_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WorkloadJobs, job_figures};
    use crate::domain::{SimDuration, SimTime, WorkloadId};
    use nodecast_world::record::{JobFacts, JobOutcome, JobOutcomeKind};

    fn at(minutes: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(60 * minutes)
    }

    fn job(created: i64, end: Option<(i64, JobOutcomeKind)>) -> JobFacts {
        JobFacts {
            workload: WorkloadId(0),
            name: "report".into(),
            created: at(created),
            completions: Some(1),
            parallelism: 1,
            ended_before: (0, 0),
            end: end.map(|(minutes, kind)| JobOutcome { at: at(minutes), kind }),
        }
    }

    fn undone(due: u64, last: Option<i64>, jobs: &[JobFacts]) -> (u64, u64) {
        let known = WorkloadJobs { due, last: last.map(at), jobs: jobs.iter().collect() };
        let figures = job_figures(&known, SimTime::ZERO);
        (figures.due, figures.undone)
    }

    #[test]
    fn skipped_and_failed_jobs_count_as_unfinished() {
        let complete = |created: i64| job(created, Some((created + 5, JobOutcomeKind::Complete)));
        assert_eq!(undone(3, Some(20), &[complete(0), complete(10), job(20, None)]), (3, 0));
        // The second was skipped, since the first still runs.
        assert_eq!(undone(2, Some(10), &[job(0, None)]), (2, 2));
        assert_eq!(undone(4, Some(30), &[complete(0), complete(30)]), (4, 2));
        assert_eq!(undone(2, Some(10), &[job(0, Some((5, JobOutcomeKind::Failed))), complete(10)]), (2, 1));
        // A Job without a schedule is done or not; one of before the run is more than was due.
        assert_eq!((undone(0, None, &[job(0, None)]), undone(0, None, &[complete(0)])), ((1, 1), (1, 0)));
        assert_eq!(undone(1, Some(10), &[complete(0), complete(10)]), (2, 0));
    }
}
