//! Jobs that have ended and are still there: their pods' objects stay with them, and so do the claims that came with the pods, whose
//! volumes cost on. Pods without such claims are not remembered: nothing depends on whether they are still there.
//!
//! A Job goes when its time to live is over (`ttlSecondsAfterFinished`); one of a CronJob or ScaledJob when enough later ones have ended
//! alike, too; any other one stays.
//!
//! Source: Kubernetes 1.36 `pkg/controller/ttlafterfinished`; `pkg/controller/cronjob/cronjob_controllerv2.go`, `cleanupFinishedJobs`;
//! KEDA 2.20 `pkg/scaling/executor/scale_jobs.go`, `cleanUp`.

use std::collections::BTreeMap;

use super::super::event::{WorkloadEvent, class};
use crate::actors::actor_events::ActorEvent;
use crate::actors::sim::Sim;
use crate::actors::workload_controllers::Controllers;
use crate::domain::{PodId, SimDuration, SimTime, WorkloadId};
use crate::world::record::JobOutcomeKind;

/// The Jobs of each workload that have ended, by their position in the record: in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct EndedJobs(BTreeMap<WorkloadId, BTreeMap<usize, EndedJob>>);

#[derive(Debug)]
struct EndedJob {
    complete: bool,
    /// The end of its time to live.
    until: Option<SimTime>,
    /// Its pods with claims of their own that have ended by themselves.
    pods: Vec<PodId>,
}

/// A Job that ends.
#[derive(Debug)]
pub(in crate::actors) struct Ending {
    /// Its position in the record.
    pub job: usize,
    /// How it ended.
    pub kind: JobOutcomeKind,
    /// Its pods with claims of their own that have ended by themselves.
    pub pods: Vec<PodId>,
    /// How long it stays.
    pub ttl: Option<SimDuration>,
}

/// How many Jobs of a CronJob or ScaledJob stay that are complete, and that were given up.
#[derive(Clone, Copy, Debug)]
pub(in crate::actors) struct History {
    /// `successfulJobsHistoryLimit`.
    pub successful: u32,
    /// `failedJobsHistoryLimit`.
    pub failed: u32,
}

impl Controllers {
    /// A Job has ended; without a `history` nobody but its time to live ends its stay.
    pub(in crate::actors) fn keep_ended(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        ending: Ending,
        history: Option<History>,
    ) {
        // How many are older than the first with claims is of no matter.
        let none_before = self.ended_jobs.0.get(&workload).is_none_or(BTreeMap::is_empty);
        if ending.pods.is_empty() && (history.is_none() || none_before) {
            return;
        }
        let until = ending.ttl.map(|ttl| (sim.whole_seconds(now) + ttl).max(now));
        if let Some(until) = until.filter(|_| !ending.pods.is_empty()) {
            sim.queue.schedule(until, class::CONTROLLERS, WorkloadEvent::JobExpires(workload));
        }
        let kept = EndedJob { complete: ending.kind == JobOutcomeKind::Complete, until, pods: ending.pods };
        let ended_jobs = self.ended_jobs.0.entry(workload).or_default();
        ended_jobs.insert(ending.job, kept);
        let mut gone = expired(ended_jobs, now);
        if let Some(History { successful, failed }) = history {
            gone.extend(beyond(ended_jobs, true, successful));
            gone.extend(beyond(ended_jobs, false, failed));
        }
        delete_pods(sim, &gone);
    }

    /// Jobs of the workload go whose time to live is over.
    pub(in crate::actors) fn expire_ended(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId) {
        let ended_job = self.ended_jobs.0.get_mut(&workload);
        let gone = ended_job.map(|ended_job| expired(ended_job, now)).unwrap_or_default();
        delete_pods(sim, &gone);
    }

    /// All Jobs of the workload that have ended go.
    pub(in crate::actors) fn forget_ended(&mut self, sim: &mut Sim<'_>, workload: WorkloadId) {
        let ended_job = self.ended_jobs.0.remove(&workload).unwrap_or_default();
        let gone: Vec<PodId> = ended_job.into_values().flat_map(|job| job.pods).collect();
        delete_pods(sim, &gone);
    }
}

/// The objects of pods that had ended by themselves go, and their claims with them.
pub(in crate::actors) fn delete_pods(sim: &mut Sim<'_>, pods: &[PodId]) {
    for &pod in pods {
        sim.publish(ActorEvent::ObjectDeleted(pod));
    }
}

/// Takes out the Jobs whose time to live is over; their pods.
fn expired(ended_jobs: &mut BTreeMap<usize, EndedJob>, now: SimTime) -> Vec<PodId> {
    let mut gone = Vec::new();
    ended_jobs.retain(|_, job| {
        let stays = job.until.is_none_or(|until| until > now);
        if !stays {
            gone.append(&mut job.pods);
        }
        stays
    });
    gone
}

/// Takes out the oldest Jobs that ended so, until `most` are left; their pods.
fn beyond(ended_jobs: &mut BTreeMap<usize, EndedJob>, complete: bool, most: u32) -> Vec<PodId> {
    let alike: Vec<usize> =
        ended_jobs.iter().filter(|(_, job)| job.complete == complete).map(|(&job, _)| job).collect();
    let many = alike.len().saturating_sub(most as usize);
    alike.iter().take(many).filter_map(|job| ended_jobs.remove(job)).flat_map(|job| job.pods).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{EndedJob, beyond, expired};
    use crate::domain::{PodId, SimDuration, SimTime};

    fn jobs() -> BTreeMap<usize, EndedJob> {
        let kept = |complete, pod: u32, minutes: Option<i64>| {
            let until = minutes.map(|minutes| SimTime::ZERO + SimDuration::from_secs(60 * minutes));
            EndedJob { complete, until, pods: vec![PodId(pod)] }
        };
        BTreeMap::from([
            (3, kept(true, 30, None)),
            (1, kept(true, 10, Some(5))),
            (2, kept(false, 20, None)),
            (4, kept(true, 40, None)),
        ])
    }

    #[test]
    fn the_oldest_that_ended_alike_go_first() {
        let mut jobs = jobs();
        assert_eq!(beyond(&mut jobs, true, 1), [PodId(10), PodId(30)]);
        assert_eq!(beyond(&mut jobs, false, 1), []);
        assert_eq!(beyond(&mut jobs, false, 0), [PodId(20)]);
        assert_eq!(jobs.into_keys().collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn a_job_stays_for_its_time_to_live() {
        let mut jobs = jobs();
        assert_eq!(expired(&mut jobs, SimTime::ZERO + SimDuration::from_secs(299)), []);
        assert_eq!(expired(&mut jobs, SimTime::ZERO + SimDuration::from_secs(300)), [PodId(10)]);
        assert_eq!(jobs.len(), 3);
    }
}
