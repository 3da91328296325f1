//! Jobs, and CronJobs that make them: pods that do their work and end.
//!
//! How long a pod runs and whether it fails no manifest says; the scenario does, see
//! [`WorkloadTimes`](crate::scenario::definition::WorkloadTimes).
//!
//! Deviation: a container that fails is not restarted in place (`restartPolicy: OnFailure`); its pod fails and is made again
//! after the Job's own wait, which is as long.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job`, `pkg/controller/cronjob`.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::context::Context;
use super::super::event::{WorkloadEvent, class};
use super::super::{kubelet, quotas, scheduler_loop, volumes};
use super::ended_jobs::{self, Ending, History};
use super::{REACTION, begin_workload, may_call, owned_template, wake};
use crate::cluster::PodPhase;
use crate::domain::pod::OwnerKind;
use crate::domain::workload::{CronJob, Job, JobSpec};
use crate::domain::{LabelSelector, PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::policy::workloads::{
    CronCalendar, CronStep, CronView, JobEnd, JobStep, JobView, cron_step, job_step, job_wants, may_change_template,
    retry_delay,
};
use crate::world::record::{EventKind, JobOutcomeKind, WorkloadKind};

/// What the controllers remember of a Job, or of a CronJob and its Jobs.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// What a Job does that is made now.
    work: Work,
    cron: Option<Cron>,
    /// Jobs that have not ended, oldest first.
    running: Vec<Running>,
    /// When the Job ended, where there is no CronJob.
    ended: Option<SimTime>,
}

impl Batch {
    fn new(work: Work, cron: Option<Cron>) -> Self {
        Self { work, cron, running: Vec::new(), ended: None }
    }

    /// Whether the Job has been deleted because its time to live was over.
    ///
    /// Source: `pkg/controller/ttlafterfinished/ttlafterfinished_controller.go`, `processTTL`.
    fn has_expired(&self, now: SimTime) -> bool {
        self.ended.zip(self.work.spec.ttl).is_some_and(|(ended, ttl)| ended + ttl <= now)
    }
}

/// What a Job does, with the revision of the workload that has its template. A Job that a CronJob has made keeps it, whatever becomes of
/// the CronJob.
///
/// Source: `pkg/controller/cronjob/utils.go`, `getJobFromTemplate2`.
#[derive(Clone, Debug)]
struct Work {
    spec: Arc<JobSpec>,
    revision: u32,
}

#[derive(Clone, Debug)]
struct Cron {
    object: CronJob,
    calendar: CronCalendar,
    /// The time that the last Job was started for.
    last: Timestamp,
    /// When the controller looks next.
    planned: SimTime,
}

#[derive(Clone, Debug)]
struct Running {
    /// Its position in the record.
    job: usize,
    work: Work,
    /// Since when it has run; `None` while it is suspended.
    started: Option<SimTime>,
    /// Whether it has ever not been suspended.
    has_run: bool,
    pods: Vec<PodId>,
    /// Pods that are being deleted and are replaced when they have ended, and whether each counts as failed then.
    leaving: Vec<(PodId, bool)>,
    /// Pods with claims of their own that have ended by themselves.
    ended: Vec<PodId>,
    succeeded: u32,
    failed: u32,
    /// Failures since the last success.
    failures_in_row: u32,
    /// When pods may be made again.
    not_before: SimTime,
}

impl Running {
    fn new(job: usize, work: Work) -> Self {
        Self {
            job,
            work,
            started: None,
            has_run: false,
            pods: Vec::new(),
            leaving: Vec::new(),
            ended: Vec::new(),
            succeeded: 0,
            failed: 0,
            failures_in_row: 0,
            not_before: SimTime::ZERO,
        }
    }

    fn step(&self, now: SimTime) -> JobStep {
        job_step(&JobView {
            spec: &self.work.spec,
            active: self.pods.len() as u32,
            terminating: self.leaving.len() as u32,
            succeeded: self.succeeded,
            failed: self.failed,
            age: self.started.map_or(SimDuration::ZERO, |started| now.saturating_since(started)),
            backing_off: self.not_before > now,
        })
    }
}

/// A Job is applied; of a known one what may change does.
pub(in crate::actors) fn apply_job(context: &mut Context<'_>, now: SimTime, job: &Job) {
    let known = context.workload_named(job.name).filter(|id| context.controllers.batches.contains_key(id));
    if let Some(workload) = known {
        context.world.note(now, EventKind::ManifestApplied, Some(workload), "Job");
        if let Some(mut batch) = context.controllers.batches.remove(&workload) {
            change_job(context, now, workload, &mut batch, job);
            context.controllers.batches.insert(workload, batch);
        }
        return wake(context, workload);
    }
    let selector = selector_of(&job.spec);
    let owner = (OwnerKind::Job, 1);
    let (workload, _) = begin_workload(context, now, job.name, WorkloadKind::Job, &selector, &job.spec.template, owner);
    let mut batch = Batch::new(Work { spec: Arc::new(job.spec.clone()), revision: 0 }, None);
    begin(context, now, workload, &mut batch, job.name.name.to_string());
    context.controllers.batches.insert(workload, batch);
    wake(context, workload);
}

/// A known Job is applied again: it is made anew if the old one has been deleted since its end, else changed where that is allowed.
fn change_job(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch, job: &Job) {
    if batch.has_expired(now) {
        batch.work = work_of(context, workload, &job.spec);
        batch.ended = None;
        begin(context, now, workload, batch, job.name.name.to_string());
        let because = ("it is applied again", "the Job before had been deleted after its time to live");
        return context.world.rescale(workload, 1, now, EventKind::JobsCreated, because);
    }
    let idle = |running: &Running| running.work.spec.suspended && running.pods.is_empty();
    let state = (batch.running.iter().any(idle), batch.running.iter().any(|running| running.has_run));
    let templates = (&*batch.work.spec.template, &*job.spec.template);
    if !may_change_template(templates, state, context.setup.policy.versions.kubernetes) {
        let name = job.name;
        return context.world.note_unmet(
            now,
            format!("the template of the Job {name} cannot change so: nothing of it was changed; delete it first"),
        );
    }
    batch.work = work_of(context, workload, &job.spec);
    for running in &mut batch.running {
        running.work = batch.work.clone();
    }
}

/// What Jobs of a workload do from now on.
fn work_of(context: &mut Context<'_>, workload: WorkloadId, spec: &JobSpec) -> Work {
    let revision = context.world.revision_of(workload, owned_template(&spec.template, OwnerKind::Job));
    if context.world.workload(workload).revision != revision {
        context.world.use_revision(workload, revision);
    }
    Work { spec: Arc::new(spec.clone()), revision }
}

/// A CronJob is applied; the Jobs of a known one go on as they are.
pub(in crate::actors) fn apply_cron_job(context: &mut Context<'_>, now: SimTime, object: &CronJob) {
    let Ok(calendar) = CronCalendar::new(&object.schedule, object.time_zone.as_deref()) else { return };
    let cron = Cron { object: object.clone(), calendar, last: calendar_time(context, now), planned: SimTime::ZERO };
    let known = context.workload_named(object.name).filter(|id| context.controllers.batches.contains_key(id));
    let workload = match known {
        Some(workload) => {
            context.world.note(now, EventKind::ManifestApplied, Some(workload), "CronJob");
            let work = work_of(context, workload, &object.job);
            if let Some(own) = context.controllers.batches.get_mut(&workload) {
                let last = own.cron.as_ref().map_or(cron.last, |before| before.last);
                own.work = work;
                own.cron = Some(Cron { last, ..cron });
            }
            workload
        }
        None => {
            let selector = selector_of(&object.job);
            let (kind, owner) = (WorkloadKind::CronJob, (OwnerKind::Job, 0));
            let (workload, _) = begin_workload(context, now, object.name, kind, &selector, &object.job.template, owner);
            let work = Work { spec: Arc::new(object.job.clone()), revision: 0 };
            context.controllers.batches.insert(workload, Batch::new(work, Some(cron)));
            workload
        }
    };
    wake(context, workload);
}

/// The workload is deleted, and its Jobs with it.
pub(super) fn deleted(context: &mut Context<'_>, workload: WorkloadId) {
    let Some(batch) = context.controllers.batches.remove(&workload) else { return };
    for job in batch.running {
        ended_jobs::delete_pods(context, &job.ended);
    }
}

/// A Job of a CronJob is there that began a while ago; its number among those that have not ended.
pub(in crate::actors) fn begin_found(
    context: &mut Context<'_>,
    workload: WorkloadId,
    (name, began): (Symbol, SimTime),
) -> usize {
    let Some(batch) = context.controllers.batches.get_mut(&workload) else { return 0 };
    let work = batch.work.clone();
    let job = context.world.begin_job(workload, name.to_string(), &work.spec, began.max(SimTime::ZERO));
    let has_run = !work.spec.suspended;
    batch.running.push(Running { started: has_run.then_some(began), has_run, ..Running::new(job, work) });
    let jobs = batch.running.len();
    context.world.count_bare_pods(workload, u32::try_from(jobs).unwrap_or(u32::MAX));
    jobs - 1
}

/// A pod of the Job of this number is there.
pub(in crate::actors) fn found(context: &mut Context<'_>, workload: WorkloadId, pod: PodId, number: usize) {
    let job = context.controllers.batches.get_mut(&workload).and_then(|batch| batch.running.get_mut(number));
    if let Some(job) = job {
        job.pods.push(pod);
        context.world.assign_to_job(pod, job.job);
    }
}

/// Pods that the Jobs of a workload want now; `None` if it is neither a Job nor a CronJob.
pub(in crate::actors) fn pods_wanted(context: &Context<'_>, workload: WorkloadId) -> Option<u32> {
    let batch = context.controllers.batches.get(&workload)?;
    let wanted = |job: &Running| job_wants(&job.work.spec, job.pods.len() as u32, job.succeeded);
    Some(batch.running.iter().map(wanted).sum())
}

fn selector_of(spec: &JobSpec) -> LabelSelector {
    LabelSelector { match_labels: spec.template.labels.clone(), expressions: Vec::new() }
}

fn calendar_time(context: &Context<'_>, now: SimTime) -> Timestamp {
    Timestamp::from_second(context.setup.unix_seconds(now)).unwrap_or(context.setup.scenario.start)
}

/// A Job begins.
fn begin(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch, name: String) {
    let job = context.world.begin_job(workload, name, &batch.work.spec, now);
    let mut running = Running::new(job, batch.work.clone());
    start_or_suspend(context, now, workload, &mut running);
    batch.running.push(running);
}

/// The time of a Job begins when it is not suspended any more, and anew after every suspension; the controller looks again when it is up.
///
/// Source: `job_controller.go`, `syncJob`, which clears `startTime` and sets it.
fn start_or_suspend(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, job: &mut Running) {
    if job.work.spec.suspended {
        job.started = None;
    } else if job.started.is_none() {
        (job.started, job.has_run) = (Some(now), true);
        if let Some(deadline) = job.work.spec.active_deadline {
            context.queue.schedule_in(deadline, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        }
    }
}

/// One pass: a CronJob starts a Job whose time has come, then every Job makes the pods that it lacks or ends.
pub(super) fn reconcile(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    let Some(mut batch) = context.controllers.batches.remove(&workload) else { return };
    count_lost(context, now, workload, &mut batch);
    settle(context, now, workload, &mut batch);
    if batch.cron.is_some() {
        start_due(context, now, workload, &mut batch);
        settle(context, now, workload, &mut batch);
    }
    context.controllers.batches.insert(workload, batch);
}

/// Pods that somebody else deleted or that went with their node count as failed.
fn count_lost(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch) {
    for job in &mut batch.running {
        let lost = take_lost(context, job);
        if lost > 0 && !job.work.spec.ignores_disruptions {
            fail(context, now, workload, job, lost);
        }
    }
}

/// How many pods of a Job count as failed now that somebody else deleted: at once, or when they have ended.
///
/// Source: `job_controller.go`, `isPodFailed`.
fn take_lost(context: &Context<'_>, job: &mut Running) -> u32 {
    let waits = job.work.spec.replaces_ended_only;
    let (mut lost, leaving) = (0, &mut job.leaving);
    job.pods.retain(|&pod| {
        let active = context.world.pod(pod).is_active();
        if !active && waits {
            leaving.push((pod, true));
        }
        lost += u32::from(!active && !waits);
        active
    });
    leaving.retain(|&(pod, counts)| {
        let gone = context.world.pod(pod).phase == PodPhase::Gone;
        lost += u32::from(gone && counts);
        !gone
    });
    lost
}

fn fail(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, job: &mut Running, pods: u32) {
    job.failed += pods;
    job.failures_in_row += pods;
    let wait = retry_delay(job.failures_in_row);
    job.not_before = now + wait;
    context.queue.schedule_in(wait, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
}

/// Every Job takes its step; those that have ended leave.
fn settle(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch) {
    let mut left = batch.running.len() as u32;
    let history = batch.cron.as_ref().map(|cron| History {
        successful: cron.object.successful_jobs_history_limit,
        failed: cron.object.failed_jobs_history_limit,
    });
    let mut ended = batch.ended;
    batch.running.retain_mut(|job| {
        start_or_suspend(context, now, workload, job);
        match job.step(now) {
            JobStep::Create(count) => create(context, now, workload, job, count),
            JobStep::Delete(count) => {
                let keep = job.pods.len() - (count as usize).min(job.pods.len());
                let surplus = job.pods.split_off(keep);
                if job.work.spec.replaces_ended_only {
                    job.leaving.extend(surplus.iter().map(|&pod| (pod, false)));
                }
                delete(context, now, surplus, "the Job needs fewer pods");
            }
            JobStep::End(end) => {
                left -= 1;
                context.world.end_job(job.job, now, outcome_of(end));
                conclude(context, now, workload, std::mem::take(&mut job.pods), (end, left));
                let (pods, ttl) = (std::mem::take(&mut job.ended), job.work.spec.ttl);
                let ending = Ending { job: job.job, kind: outcome_of(end), pods, ttl };
                ended_jobs::keep(context, now, workload, ending, history);
                ended = Some(now);
                return false;
            }
        }
        true
    });
    batch.ended = ended;
}

fn create(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, job: &mut Running, count: u32) {
    let revision = job.work.revision;
    for _ in 0..count {
        if !may_call(context, now, workload) || !quotas::admits(context, now, workload, revision) {
            return;
        }
        let name = context.world.next_pod_name(workload);
        let pod = context.world.create_pod_of(workload, revision, None, name, now);
        job.pods.push(pod);
        context.world.assign_to_job(pod, job.job);
        scheduler_loop::pod_created(context, now, pod);
    }
}

fn delete(context: &mut Context<'_>, now: SimTime, pods: Vec<PodId>, reason: &str) {
    for pod in pods {
        kubelet::delete(context, now, pod, false, reason);
    }
}

/// How a Job ended that ended so.
pub(in crate::actors) fn outcome_of(end: JobEnd) -> JobOutcomeKind {
    match end {
        JobEnd::Complete => JobOutcomeKind::Complete,
        JobEnd::BackoffLimitExceeded | JobEnd::DeadlineExceeded => JobOutcomeKind::Failed,
    }
}

fn conclude(
    context: &mut Context<'_>,
    now: SimTime,
    workload: WorkloadId,
    pods: Vec<PodId>,
    (end, left): (JobEnd, u32),
) {
    match end {
        JobEnd::Complete => context.world.finish_job(workload, left, now),
        JobEnd::BackoffLimitExceeded | JobEnd::DeadlineExceeded => {
            context.world.fail_job(workload, left, now, end.as_str());
        }
    }
    delete(context, now, pods, "its Job has ended");
}

/// A CronJob starts a Job if its time has come, and plans its next look.
fn start_due(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch) {
    let instant = calendar_time(context, now);
    let active = batch.running.len();
    let Some(cron) = &mut batch.cron else { return };
    let step =
        cron_step(&CronView { object: &cron.object, calendar: &cron.calendar, last: cron.last, active }, instant);
    if cron.planned <= now
        && let Some(next) = cron.calendar.next_start(cron.last, instant)
    {
        let wait = SimDuration::from_secs(next.as_second() - context.setup.scenario.start.as_second());
        cron.planned = SimTime::ZERO + wait + REACTION;
        context.queue.schedule(cron.planned, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
    }
    let CronStep::Start { at, replaces } = step else { return };
    cron.last = at;
    if replaces {
        for job in std::mem::take(&mut batch.running) {
            conclude_replaced(context, now, job);
        }
    }
    // Source: `pkg/controller/cronjob/utils.go`, `getJobName`: the minute that the Job was scheduled for.
    let name = format!("{}-{}", context.world.workload(workload).name.name, at.as_second().div_euclid(60));
    begin(context, now, workload, batch, name);
    let jobs = batch.running.len() as u32;
    context.world.rescale(
        workload,
        jobs,
        now,
        EventKind::JobsCreated,
        ("the schedule of its CronJob", &at.to_string()),
    );
}

fn conclude_replaced(context: &mut Context<'_>, now: SimTime, job: Running) {
    context.world.end_job(job.job, now, JobOutcomeKind::Deleted);
    delete(context, now, job.pods, "its Job is replaced");
    ended_jobs::delete_pods(context, &job.ended);
}

/// A pod's containers run: it ends when its work is done.
pub(in crate::actors) fn pod_started(context: &mut Context<'_>, pod: PodId) {
    let workload = context.world.pod(pod).workload;
    if context.controllers.batches.contains_key(&workload) {
        let time = context.times_of(workload).run_time();
        context.queue.schedule_in(time, class::MACHINES, WorkloadEvent::JobPodDone(pod));
    }
}

/// Whether a pod of a Job fails, by the share that the scenario states.
pub(in crate::actors) fn fails(context: &Context<'_>, pod: PodId) -> bool {
    let failing = context.times_of(context.world.pod(pod).workload).failures;
    failing > 0.0 && context.streams.nth("job-fate", "", u64::from(pod.0)).uniform() < failing
}

/// A pod comes to its end, well or not.
pub(in crate::actors) fn pod_done(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let state = context.world.pod(pod);
    let workload = state.workload;
    if !state.is_active() {
        return;
    }
    let Some(mut batch) = context.controllers.batches.remove(&workload) else { return };
    let fails = fails(context, pod);
    if let Some(job) = batch.running.iter_mut().find(|job| job.pods.contains(&pod)) {
        job.pods.retain(|&own| own != pod);
        if volumes::has_ephemeral(context, pod) {
            job.ended.push(pod);
        }
        if fails {
            fail(context, now, workload, job, 1);
        } else {
            job.succeeded += 1;
            job.failures_in_row = 0;
        }
    }
    context.controllers.batches.insert(workload, batch);
    if fails {
        kubelet::failed(context, now, pod);
    } else {
        kubelet::succeeded(context, now, pod);
    }
}
