//! A Job that has not ended, as the Job controller counts its pods, whoever made it: a user, a CronJob or KEDA.
//!
//! What must not live here: what makes Jobs, and what else than the controller wants to know of their pods.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`.

use super::super::actor_events::ActorEvent;
use super::super::event::{WorkloadEvent, class};
use super::ended_jobs::Ending;
use super::job_indexes::{IndexFailure, Indexes};
use super::pod_labels;
use crate::actors::sim::Sim;
use crate::actors::vertical::Vertical;
use crate::actors::workload_controllers::Controllers;
use crate::cluster::{Pod, PodPhase};
use crate::domain::workload::{JobSpec, JobStatus};
use crate::domain::{KubernetesBehaviour, KubernetesVersion, PodId, SimDuration, SimTime, WorkloadId};
use crate::world::World;
use crate::world::record::JobOutcomeKind;
use nodecast_replicas::workloads::{JobEnd, JobStep, JobView, job_step, job_wants, retry_delay};

/// Pods that one sync of the controller makes at most.
const PODS_PER_SYNC: u32 = 500;
/// From a sync to the next one that its own pods cause.
const SYNC_BATCH: SimDuration = SimDuration::from_secs(1);

/// An active pod of a Job, with what its maker remembers of it.
pub(in crate::actors) trait JobPod {
    /// A pod that has just been made.
    fn made(pod: PodId) -> Self;

    /// The pod.
    fn id(&self) -> PodId;
}

impl JobPod for PodId {
    fn made(pod: PodId) -> Self {
        pod
    }

    fn id(&self) -> PodId {
        *self
    }
}

/// A pod of a Job that is there when the run begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::actors) struct FoundJobPod {
    /// The pod.
    pub id: PodId,
    /// When it was made.
    pub created: SimTime,
    /// Whether its containers run.
    pub running: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Restarts in the status of a pod's containers: one that waits for its restart is not counted yet.
fn restarts_shown(pod: &Pod) -> u32 {
    pod.restarts.saturating_sub(u32::from(pod.phase == PodPhase::Starting))
}

/// The pods of a Job, and how they have fared.
#[derive(Clone, Debug)]
pub(in crate::actors) struct JobState<P> {
    /// Its position in the record.
    pub(in crate::actors) job: usize,
    /// Those that are active.
    pub(in crate::actors) pods: Vec<P>,
    /// Pods that are being deleted and are replaced when they have ended, and whether each counts as failed then.
    leaving: Vec<(PodId, bool)>,
    /// Pods with claims of their own that have ended by themselves.
    ended: Vec<PodId>,
    succeeded: u32,
    failed: u32,
    /// Indexes that were given up before the run began.
    failed_indexes: u32,
    /// Failures since the last success.
    failures_in_row: u32,
    /// When pods may be made again.
    not_before: SimTime,
    /// Its indexes, where failures count by index.
    indexes: Indexes,
}

impl<P: JobPod> JobState<P> {
    /// A Job without pods at this position of the record.
    pub(in crate::actors) fn new(job: usize) -> Self {
        Self {
            job,
            pods: Vec::new(),
            leaving: Vec::new(),
            ended: Vec::new(),
            succeeded: 0,
            failed: 0,
            failed_indexes: 0,
            failures_in_row: 0,
            not_before: SimTime::ZERO,
            indexes: Indexes::default(),
        }
    }

    /// So many of its pods had ended before the run began. How they followed each other the controller keeps in memory alone.
    pub(in crate::actors) fn go_on(&mut self, world: &mut World, status: &JobStatus) {
        (self.succeeded, self.failed) = (status.succeeded, status.failed);
        self.failed_indexes = status.failed_indexes;
        self.indexes.skip(status.succeeded, status.failed_indexes);
        world.go_on_with_job(self.job, status);
    }

    /// A pod of it is there when the run begins. One that is being deleted is active no more: it counts as failed in the Job's status already
    /// unless that waits for its end.
    ///
    /// Source: `isPodFailed`, `onlyReplaceFailedPods`.
    pub(in crate::actors) fn find_pod(&mut self, spec: &JobSpec, found: FoundJobPod, p: P) {
        if !found.deleting {
            if spec.follows_indexes()
                && let Some(index) = self.indexes.next(spec, SimTime::ZERO)
            {
                self.indexes.run(index, found.id);
            }
            self.pods.push(p);
        } else if spec.replaces_ended_only {
            self.leaving.push((found.id, true));
        }
    }

    /// What is to be done next for a Job that runs since `started`, or is suspended.
    pub(in crate::actors) fn step(
        &self,
        spec: &JobSpec,
        world: &World,
        started: Option<SimTime>,
        now: SimTime,
    ) -> JobStep {
        let restarts = self.pods.iter().map(|pod| restarts_shown(world.pod(pod.id())));
        job_step(&JobView {
            spec,
            active: self.pods.len() as u32,
            terminating: self.leaving.len() as u32,
            succeeded: self.succeeded,
            failed: self.failed,
            failed_indexes: self.failed_indexes,
            success: spec.success_policy.iter().any(|rule| rule.holds(self.indexes.succeeded())),
            restarts: if spec.restarts_in_place { restarts.sum() } else { 0 },
            age: started.map_or(SimDuration::ZERO, |started| now.saturating_since(started)),
            backing_off: self.not_before > now,
        })
    }

    /// How many pods it wants now.
    pub(in crate::actors) fn wants(&self, spec: &JobSpec) -> u32 {
        job_wants(spec, self.pods.len() as u32, self.succeeded.saturating_add(self.failed_indexes))
    }

    /// Whether none of its pods has succeeded.
    pub(in crate::actors) const fn has_no_success(&self) -> bool {
        self.succeeded == 0
    }

    /// Makes `count` pods as far as calls, quotas and the waits of indexes allow, and no more than one sync makes.
    ///
    /// Source: `manageJob`, `MaxPodCreateDeletePerSync`; `SyncJobBatchPeriod` until the next sync.
    pub(in crate::actors) fn make_pods(
        &mut self,
        sim: &mut Sim<'_>,
        controllers: &mut Controllers,
        vertical: &mut Vertical,
        now: SimTime,
        (workload, revision): (WorkloadId, u32),
        (spec, count): (&JobSpec, u32),
    ) {
        if count > PODS_PER_SYNC {
            sim.queue.schedule_in(SYNC_BATCH, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        }
        for _ in 0..count.min(PODS_PER_SYNC) {
            let by_index = spec.follows_indexes();
            let index = by_index.then(|| self.indexes.next(spec, now)).flatten();
            if by_index && index.is_none() {
                return;
            }
            if !controllers.may_call(sim, now, workload)
                || !controllers.quotas.admits(sim, vertical, now, workload, revision)
            {
                return;
            }
            let name = sim.world.next_pod_name(workload);
            let pod = sim.world.create_pod_of(workload, revision, None, name, now);
            self.pods.push(P::made(pod));
            if let Some(index) = index {
                self.indexes.run(index, pod);
            }
            sim.world.assign_to_job(pod, self.job);
            pod_labels::label_job(sim, pod, self.job);
            sim.publish(ActorEvent::PodCreated(pod));
        }
    }

    /// Takes out so many pods, which are to be deleted.
    pub(in crate::actors) fn take_surplus(&mut self, spec: &JobSpec, count: u32) -> Vec<P> {
        let keep = self.pods.len() - (count as usize).min(self.pods.len());
        let surplus = self.pods.split_off(keep);
        surplus.iter().for_each(|pod| self.indexes.stop(pod.id()));
        if spec.replaces_ended_only {
            self.leaving.extend(surplus.iter().map(|item| (item.id(), false)));
        }
        surplus
    }

    /// Takes out pods that somebody else deleted or that went with their node, and hands each to `gone`. Those that have failed by `now`, at
    /// once or when they have ended, and since when.
    ///
    /// Source: `isPodFailed`; `backoff_utils.go`, `getFinishedTime`.
    pub(in crate::actors) fn take_lost(
        &mut self,
        spec: &JobSpec,
        (world, now): (&World, SimTime),
        mut gone: impl FnMut(&P),
    ) -> Vec<(PodId, SimTime)> {
        let waits = spec.replaces_ended_only;
        let (mut lost, leaving) = (Vec::new(), &mut self.leaving);
        self.pods.retain(|this_pod| {
            let pod = world.pod(this_pod.id());
            let active = pod.is_active();
            if !active {
                gone(this_pod);
                lost.extend((!waits).then(|| (this_pod.id(), pod.deletion_requested.unwrap_or(now))));
                leaving.extend(waits.then_some((this_pod.id(), true)));
            }
            active
        });
        leaving.retain(|&(pod, counts)| {
            let gone = world.pod(pod).phase == PodPhase::Gone;
            lost.extend((gone && counts).then_some((pod, now)));
            !gone
        });
        lost
    }

    /// Takes out the active pod at this place, which ends by itself, and remembers it where it has claims of its own.
    pub(in crate::actors) fn take_ended(&mut self, place: usize, has_claims: bool) -> P {
        let pod = self.pods.remove(place);
        self.ended.extend(has_claims.then_some(pod.id()));
        pod
    }

    /// A pod has done its work: failures before it delay no pod any more.
    ///
    /// Source: `backoff_utils.go`, `newBackoffRecord`.
    pub(in crate::actors) fn succeed(&mut self, pod: PodId) {
        self.succeeded += 1;
        (self.failures_in_row, self.not_before) = (0, SimTime::ZERO);
        self.indexes.succeed(pod);
    }

    /// Pods that others deleted have failed, each since an instant: when others may be made.
    ///
    /// Failures that the policy ignores do not count, but delay the next pods, from Kubernetes 1.28 on.
    ///
    /// Source: `syncJob`; kubernetes/kubernetes#119434.
    pub(in crate::actors) fn lose(
        &mut self,
        spec: &JobSpec,
        pods: &[(PodId, SimTime)],
        version: KubernetesVersion,
    ) -> Option<SimTime> {
        match spec.ignores_disruptions {
            true if !version.has(KubernetesBehaviour::JobIgnoredFailureBackoff) => None,
            ignored => self.fail_pods(spec, pods, ignored),
        }
    }

    /// A pod has failed by itself: when others may be made.
    pub(in crate::actors) fn fail(&mut self, spec: &JobSpec, now: SimTime, pod: PodId) -> Option<SimTime> {
        self.fail_pods(spec, &[(pod, now)], false)
    }

    fn fail_pods(&mut self, spec: &JobSpec, pods: &[(PodId, SimTime)], ignored: bool) -> Option<SimTime> {
        let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        if !ignored {
            self.failed = self.failed.saturating_add(count);
        }
        if let Some(limit) = spec.index_backoff_limit {
            let ends = pods.iter().map(|&(pod, at)| self.indexes.fail(pod, at, (limit, ignored)));
            let ends: Vec<IndexFailure> = ends.flatten().collect();
            self.failed_indexes += ends.iter().map(|end| u32::from(end.given_up)).sum::<u32>();
            return ends.iter().map(|end| end.not_before).max();
        }
        pods.iter().for_each(|&(pod, _)| self.indexes.stop(pod));
        let last = pods.iter().map(|&(_, at)| at).max()?;
        self.failures_in_row = self.failures_in_row.saturating_add(count);
        self.not_before = last + retry_delay(self.failures_in_row);
        Some(self.not_before)
    }

    /// The Job ends, and so many of its workload's have not. Its active pods, which are to be deleted, and what is left of it then.
    pub(in crate::actors) fn end(
        &mut self,
        world: &mut World,
        now: SimTime,
        (workload, left): (WorkloadId, u32),
        (end, ttl): (JobEnd, Option<SimDuration>),
    ) -> (Vec<P>, Ending) {
        let kind = match end {
            JobEnd::Complete | JobEnd::SuccessPolicy => JobOutcomeKind::Complete,
            JobEnd::BackoffLimitExceeded
            | JobEnd::DeadlineExceeded
            | JobEnd::FailedIndexes
            | JobEnd::MaxFailedIndexesExceeded => JobOutcomeKind::Failed,
        };
        world.end_job(self.job, now, kind);
        match kind {
            JobOutcomeKind::Complete => world.finish_job(workload, left, now),
            _ => world.fail_job(workload, left, now, end.as_str()),
        }
        let ending = Ending { job: self.job, kind, pods: std::mem::take(&mut self.ended), ttl };
        (std::mem::take(&mut self.pods), ending)
    }

    /// The Job is deleted: its pods with claims of their own that have ended go.
    pub(in crate::actors) fn delete_ended(&self, sim: &mut Sim<'_>) {
        super::ended_jobs::delete_pods(sim, &self.ended);
    }
}
