//! Jobs, and CronJobs that make them: pods that do their work and end.
//!
//! How long a pod runs and whether it fails no manifest says; the scenario does, see
//! [`WorkloadTimes`](crate::scenario::definition::WorkloadTimes).
//!
//! Deviation: a container that fails is not restarted in place (`restartPolicy: OnFailure`); its pod fails and is made again
//! after the Job's own wait, which is as long.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job`, `pkg/controller/cronjob`.

use jiff::Timestamp;

use super::super::context::Context;
use super::super::event::{WorkloadEvent, class};
use super::super::{kubelet, quotas, scheduler_loop};
use super::{REACTION, begin_workload, may_call, wake};
use crate::domain::pod::OwnerKind;
use crate::domain::workload::{CronJob, Job, JobSpec};
use crate::domain::{LabelSelector, PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::policy::workloads::{
    CronCalendar, CronStep, CronView, JobEnd, JobStep, JobView, cron_step, job_step, job_wants, retry_delay,
};
use crate::world::record::{EventKind, JobOutcomeKind, WorkloadKind};

/// What the controllers remember of a Job, or of a CronJob and its Jobs.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    spec: JobSpec,
    cron: Option<Cron>,
    /// Jobs that have not ended, oldest first.
    running: Vec<Running>,
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

#[derive(Clone, Debug, Default)]
struct Running {
    /// Its position in the record.
    job: usize,
    began: SimTime,
    pods: Vec<PodId>,
    succeeded: u32,
    failed: u32,
    /// Failures since the last success.
    failures_in_row: u32,
    /// When pods may be made again.
    not_before: SimTime,
}

/// A Job is applied; of a known one the parallelism and whether it is suspended change.
pub(in crate::actors) fn apply_job(context: &mut Context<'_>, now: SimTime, job: &Job) {
    let known = context.workload_named(job.name).filter(|id| context.controllers.batches.contains_key(id));
    if let Some(workload) = known {
        context.world.note(now, EventKind::ManifestApplied, Some(workload), "Job");
        if let Some(own) = context.controllers.batches.get_mut(&workload) {
            own.spec = JobSpec { template: own.spec.template.clone(), ..job.spec.clone() };
        }
        return wake(context, workload);
    }
    let selector = selector_of(&job.spec);
    let owner = (OwnerKind::Job, 1);
    let (workload, _) = begin_workload(context, now, job.name, WorkloadKind::Job, &selector, &job.spec.template, owner);
    let mut batch = Batch { spec: job.spec.clone(), cron: None, running: Vec::new() };
    begin(context, now, workload, &mut batch, job.name.name.to_string());
    context.controllers.batches.insert(workload, batch);
    wake(context, workload);
}

/// A CronJob is applied; a known one keeps the Jobs that run.
pub(in crate::actors) fn apply_cron_job(context: &mut Context<'_>, now: SimTime, object: &CronJob) {
    let Ok(calendar) = CronCalendar::new(&object.schedule, object.time_zone.as_deref()) else { return };
    let cron = Cron { object: object.clone(), calendar, last: calendar_time(context, now), planned: SimTime::ZERO };
    let known = context.workload_named(object.name).filter(|id| context.controllers.batches.contains_key(id));
    let workload = match known {
        Some(workload) => {
            context.world.note(now, EventKind::ManifestApplied, Some(workload), "CronJob");
            if let Some(own) = context.controllers.batches.get_mut(&workload) {
                let last = own.cron.as_ref().map_or(cron.last, |before| before.last);
                own.spec = JobSpec { template: own.spec.template.clone(), ..object.job.clone() };
                own.cron = Some(Cron { last, ..cron });
            }
            workload
        }
        None => {
            let selector = selector_of(&object.job);
            let (kind, owner) = (WorkloadKind::CronJob, (OwnerKind::Job, 0));
            let (workload, _) = begin_workload(context, now, object.name, kind, &selector, &object.job.template, owner);
            let batch = Batch { spec: object.job.clone(), cron: Some(cron), running: Vec::new() };
            context.controllers.batches.insert(workload, batch);
            workload
        }
    };
    wake(context, workload);
}

/// A Job of a CronJob is there that began a while ago; its number among those that have not ended.
pub(in crate::actors) fn begin_found(
    context: &mut Context<'_>,
    workload: WorkloadId,
    (name, began): (Symbol, SimTime),
) -> usize {
    let Some(batch) = context.controllers.batches.get_mut(&workload) else { return 0 };
    let job = context.world.begin_job(workload, name.to_string(), &batch.spec, began.max(SimTime::ZERO));
    batch.running.push(Running { job, began, ..Running::default() });
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
    let wanted = |job: &Running| job_wants(&batch.spec, job.pods.len() as u32, job.succeeded);
    Some(batch.running.iter().map(wanted).sum())
}

fn selector_of(spec: &JobSpec) -> LabelSelector {
    LabelSelector { match_labels: spec.template.labels.clone(), expressions: Vec::new() }
}

fn calendar_time(context: &Context<'_>, now: SimTime) -> Timestamp {
    Timestamp::from_second(context.setup.unix_seconds(now)).unwrap_or(context.setup.scenario.start)
}

/// A Job begins; the controller looks again when its time is up.
fn begin(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch, name: String) {
    let job = context.world.begin_job(workload, name, &batch.spec, now);
    batch.running.push(Running { job, began: now, ..Running::default() });
    if let Some(deadline) = batch.spec.active_deadline {
        context.queue.schedule_in(deadline, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
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
        let before = job.pods.len();
        job.pods.retain(|&pod| context.world.pod(pod).is_active());
        let lost = (before - job.pods.len()) as u32;
        if lost > 0 && !batch.spec.ignores_disruptions {
            fail(context, now, workload, job, lost);
        }
    }
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
    let spec = batch.spec.clone();
    batch.running.retain_mut(|job| {
        let step = job_step(&JobView {
            spec: &spec,
            active: job.pods.len() as u32,
            succeeded: job.succeeded,
            failed: job.failed,
            age: now.saturating_since(job.began),
            backing_off: job.not_before > now,
        });
        match step {
            JobStep::Create(count) => create(context, now, workload, job, count),
            JobStep::Delete(count) => {
                let keep = job.pods.len() - (count as usize).min(job.pods.len());
                delete(context, now, job.pods.split_off(keep), "the Job needs fewer pods");
            }
            JobStep::End(end) => {
                left -= 1;
                context.world.end_job(job.job, now, outcome_of(end));
                conclude(context, now, workload, std::mem::take(&mut job.pods), (end, left));
                return false;
            }
        }
        true
    });
}

fn create(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, job: &mut Running, count: u32) {
    let revision = context.world.workload(workload).revision;
    for _ in 0..count {
        if !may_call(context, now, workload) || !quotas::admits(context, now, workload, revision) {
            return;
        }
        let pod = context.world.create_pod(workload, None, now);
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
        && let Some(next) = cron.calendar.next_after(instant)
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
