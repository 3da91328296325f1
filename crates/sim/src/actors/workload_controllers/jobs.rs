//! Jobs, and CronJobs that make them: pods that do their work and end.
//!
//! How long a pod runs and whether it fails no manifest says; the scenario does, see
//! [`WorkloadTimes`](nodecast_settings::WorkloadTimes).
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job`, `pkg/controller/cronjob`.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::event::{WorkloadEvent, class};
use super::super::setup::InitialPlan;
use super::super::sim::Sim;
use super::super::{kubelet, restarts, volumes};
use super::ended_jobs::History;
use super::job_state::{FoundJobPod, JobState};
use super::{REACTION, begin_workload, owned_template, pod_labels, refuse_edit, wake};
use crate::actors::restarts::BackOffs;
use crate::actors::vertical::Vertical;
use crate::actors::workload_controllers::Controllers;
use crate::domain::pod::OwnerKind;
use crate::domain::workload::{Concurrency, CronJob, Job, JobSpec, JobStatus};
use crate::domain::{LabelSelector, PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::{EventKind, JobOutcomeKind, WorkloadKind};
use nodecast_replicas::workloads::{
    CronCalendar, CronStep, CronView, JobStep, cron_step, fixed_of_job, may_change_template,
};

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

impl Cron {
    /// A Job of it is there when the run begins: what was due since that was started, and had to wait for its end, still waits.
    ///
    /// Source: Kubernetes 1.36 `pkg/controller/cronjob/cronjob_controllerv2.go`, `syncCronJob`, which counts missed times from
    /// `status.lastScheduleTime`.
    fn is_held_back(&mut self) {
        let stated = self.object.last_schedule.and_then(|at| Timestamp::from_second(at.as_secs()).ok());
        if let Some(last) = stated.filter(|_| self.object.concurrency == Concurrency::Forbid) {
            self.last = self.last.min(last);
        }
    }
}

#[derive(Clone, Debug)]
struct Running {
    work: Work,
    /// Since when it has run; `None` while it is suspended.
    started: Option<SimTime>,
    /// Whether it has ever not been suspended.
    has_run: bool,
    /// Whether its object says since when it has run.
    is_begun: bool,
    state: JobState<PodId>,
}

impl Running {
    fn new(job: usize, work: Work) -> Self {
        Self { work, started: None, has_run: false, is_begun: false, state: JobState::new(job) }
    }

    fn wants(&self) -> u32 {
        self.state.wants(&self.work.spec)
    }

    /// It has run since `began`, unless it is suspended; gives back when its time is up, if that is limited.
    fn has_run_since(&mut self, began: SimTime) -> Option<SimTime> {
        *self.started.as_mut()? = began;
        self.work.spec.active_deadline.map(|deadline| began + deadline)
    }
}

/// A Job is applied; of a known one what may change does.
pub(in crate::actors) fn apply_job(sim: &mut Sim<'_>, controllers: &mut Controllers, now: SimTime, job: &Job) {
    let known = sim.workload_named(job.name).filter(|id| controllers.batches.contains_key(id));
    if let Some(workload) = known {
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), "Job");
        if let Some(mut batch) = controllers.batches.remove(&workload) {
            change_job(sim, now, workload, &mut batch, job);
            controllers.batches.insert(workload, batch);
        }
        return wake(sim, workload);
    }
    let selector = selector_of(&job.spec);
    let status = status_of(sim, now, job);
    let owner = (OwnerKind::Job, u32::from(status.end.is_none()));
    let (workload, _) =
        begin_workload(sim, controllers, now, job.name, WorkloadKind::Job, (&selector, &job.spec.template), owner);
    let mut batch = Batch::new(Work { spec: Arc::new(job.spec.clone()), revision: 0 }, None);
    if let Some(end) = status.end {
        batch.ended = Some(instant(sim, end.at));
    } else {
        begin(sim, now, workload, &mut batch, job.name.name.to_string());
        batch.running.iter_mut().for_each(|running| go_on(sim, now, workload, running, status));
    }
    controllers.batches.insert(workload, batch);
    wake(sim, workload);
}

/// How far a Job is that is applied: what its object says where the run begins with a dump of it; whoever applies one later gives none.
///
/// Source: `pkg/registry/batch/job/strategy.go`, `PrepareForCreate`, which takes the status out.
fn status_of(sim: &Sim<'_>, now: SimTime, job: &Job) -> JobStatus {
    let is_of_dump = sim.setup.initial.as_ref().is_some_and(InitialPlan::is_dump);
    if is_of_dump && now == SimTime::ZERO { job.status } else { JobStatus::default() }
}

/// An instant since 1970 as one of a run that begins with a dump, its first if there is none.
fn instant(sim: &Sim<'_>, at: Option<SimTime>) -> SimTime {
    sim.setup.initial.as_ref().map_or(SimTime::ZERO, |initial| initial.instant(at))
}

/// A Job goes on from what its status says: so many completions are left, so many failures allowed, so much of its time.
fn go_on(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, job: &mut Running, status: JobStatus) {
    job.state.go_on(&mut sim.world, &status);
    let Some(at) = status.started else { return };
    job.is_begun = true;
    if let Some(end) = job.has_run_since(instant(sim, Some(at))) {
        sim.queue.schedule(end.max(now), class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
    }
}

/// A known Job is applied again: it is made anew if the old one has been deleted since its end, else changed where that is allowed.
fn change_job(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch, job: &Job) {
    if batch.has_expired(now) {
        batch.work = work_of(sim, workload, &job.spec);
        batch.ended = None;
        begin(sim, now, workload, batch, job.name.name.to_string());
        let because = ("it is applied again", "the Job before had been deleted after its time to live");
        return sim.world.rescale(workload, 1, now, EventKind::JobsCreated, because);
    }
    let version = sim.setup.policy.versions.kubernetes;
    if let Some(field) = fixed_of_job(&batch.work.spec, &job.spec, version) {
        return refuse_edit(sim, now, workload, field);
    }
    let idle = |running: &Running| running.work.spec.suspended && running.state.pods.is_empty();
    let state = (batch.running.iter().any(idle), batch.running.iter().any(|running| running.has_run));
    let templates = (&*batch.work.spec.template, &*job.spec.template);
    if !may_change_template(templates, state, version) {
        let name = job.name;
        return sim.world.note_unmet(
            now,
            format!("the template of the Job {name} cannot change so: nothing of it was changed; delete it first"),
        );
    }
    // Completions that nobody has stated stay as the API server wrote them down.
    let completions = job.spec.completions.or(batch.work.spec.completions);
    batch.work = work_of(sim, workload, &JobSpec { completions, ..job.spec.clone() });
    for running in &mut batch.running {
        running.work = batch.work.clone();
        // Source: `job_controller.go`, `updateJob`, which looks again when the new deadline is over.
        let ends = running.started.zip(job.spec.active_deadline).map(|(started, deadline)| started + deadline);
        if let Some(ends) = ends {
            sim.queue.schedule(ends.max(now), class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        }
    }
}

/// What Jobs of a workload do from now on.
fn work_of(sim: &mut Sim<'_>, workload: WorkloadId, spec: &JobSpec) -> Work {
    let revision = sim.world.revision_of(workload, owned_template(&spec.template, OwnerKind::Job));
    if sim.world.workload(workload).revision != revision {
        sim.world.use_revision(workload, revision);
    }
    Work { spec: Arc::new(spec.clone()), revision }
}

/// A CronJob is applied; the Jobs of a known one go on as they are.
pub(in crate::actors) fn apply_cron_job(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    now: SimTime,
    object: &CronJob,
) {
    let Ok(calendar) = CronCalendar::new(&object.schedule, object.time_zone.as_deref()) else { return };
    let cron = Cron { object: object.clone(), calendar, last: calendar_time(sim, now), planned: SimTime::ZERO };
    let known = sim.workload_named(object.name).filter(|id| controllers.batches.contains_key(id));
    let workload = match known {
        Some(workload) => {
            sim.world.note(now, EventKind::ManifestApplied, Some(workload), "CronJob");
            let work = work_of(sim, workload, &object.job);
            if let Some(batch) = controllers.batches.get_mut(&workload) {
                let last = batch.cron.as_ref().map_or(cron.last, |before| before.last);
                batch.work = work;
                batch.cron = Some(Cron { last, ..cron });
            }
            workload
        }
        None => {
            let selector = selector_of(&object.job);
            let (kind, owner) = (WorkloadKind::CronJob, (OwnerKind::Job, 0));
            let (workload, _) =
                begin_workload(sim, controllers, now, object.name, kind, (&selector, &object.job.template), owner);
            let work = Work { spec: Arc::new(object.job.clone()), revision: 0 };
            controllers.batches.insert(workload, Batch::new(work, Some(cron)));
            workload
        }
    };
    wake(sim, workload);
}

impl Controllers {
    /// The workload is deleted, and its Jobs with it.
    pub(super) fn jobs_deleted(&mut self, sim: &mut Sim<'_>, workload: WorkloadId) {
        let Some(batch) = self.batches.remove(&workload) else { return };
        for job in batch.running {
            job.state.delete_ended(sim);
        }
    }

    /// A Job of a CronJob is there that began a while ago: with its own object if there is one, otherwise as the CronJob makes them now. Its
    /// number among those that have not ended, and the revision that its pods are of.
    pub(in crate::actors) fn begin_found_job(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        (name, object): (Symbol, Option<&Job>),
    ) -> (usize, u32) {
        let Some(mut batch) = self.batches.remove(&workload) else { return (0, 0) };
        let work = match object {
            Some(job) => {
                let template = owned_template(&job.spec.template, OwnerKind::Job);
                let revision = sim.world.revision_of(workload, template);
                Work { spec: Arc::new(job.spec.clone()), revision }
            }
            None => batch.work.clone(),
        };
        let revision = work.revision;
        let job = sim.world.begin_job(workload, name.to_string(), &work.spec, now);
        let has_run = !work.spec.suspended;
        let mut running = Running { started: has_run.then_some(now), has_run, ..Running::new(job, work) };
        if let Some(object) = object {
            go_on(sim, now, workload, &mut running, object.status);
            if !running.is_begun
                && let Some(end) = running.has_run_since(now)
            {
                sim.queue.schedule(end, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
            }
        }
        batch.running.push(running);
        if let Some(cron) = &mut batch.cron {
            cron.is_held_back();
        }
        let jobs = batch.running.len();
        self.batches.insert(workload, batch);
        sim.world.count_bare_pods(workload, u32::try_from(jobs).unwrap_or(u32::MAX));
        (jobs - 1, revision)
    }

    /// Whether a workload is a Job that had ended when the run began with it.
    pub(in crate::actors) fn jobs_have_ended(&self, workload: WorkloadId) -> bool {
        let batch = self.batches.get(&workload);
        batch.is_some_and(|batch| batch.cron.is_none() && batch.running.is_empty() && batch.ended.is_some())
    }

    /// A pod of the Job of this number is there.
    ///
    /// The Job has run since its `startTime`; where no file states one, since the oldest of its pods was made. Its deadline counts from then.
    pub(in crate::actors) fn find_job_pod(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        (pod, number): (FoundJobPod, usize),
    ) {
        let Some(batch) = self.batches.get_mut(&workload) else { return };
        let Some(job) = batch.running.get_mut(number) else { return };
        let created = pod.created;
        job.state.find_pod(&job.work.spec, pod, pod.id);
        let place = job.state.job;
        let is_older = !job.is_begun && job.started.is_some_and(|started| created <= started);
        let end = if is_older { job.has_run_since(created) } else { None };
        sim.world.assign_to_job(pod.id, place);
        pod_labels::label_job(sim, pod.id, place);
        if let Some(end) = end {
            sim.queue.schedule(end.max(now), class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        }
    }

    /// Pods that the Jobs of a workload want now; `None` if it is neither a Job nor a CronJob.
    pub(in crate::actors) fn job_pods_wanted(&self, sim: &Sim<'_>, workload: WorkloadId) -> Option<u32> {
        let batch = self.batches.get(&workload)?;
        let version = sim.setup.policy.versions.kubernetes;
        let batch = batch.running.iter().filter(|running| !running.work.spec.is_managed_elsewhere(version));
        Some(batch.map(Running::wants).sum())
    }

    /// A pod's containers run: it ends when its work is done.
    pub(in crate::actors) fn job_pod_started(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        let workload = sim.world.pod(pod).workload;
        if self.batches.contains_key(&workload) {
            let time = sim.times_of(workload).run_time();
            sim.queue.schedule_in(time, class::MACHINES, WorkloadEvent::JobPodDone(pod));
            // Its Job may have ended with the restart.
            if sim.world.pod(pod).restarts > 0 {
                wake(sim, workload);
            }
        }
    }
}

fn selector_of(spec: &JobSpec) -> LabelSelector {
    LabelSelector { match_labels: spec.template.labels.clone(), expressions: Vec::new() }
}

fn calendar_time(sim: &Sim<'_>, now: SimTime) -> Timestamp {
    Timestamp::from_second(sim.setup.unix_seconds(now)).unwrap_or(sim.setup.scenario.start)
}

/// A Job begins.
fn begin(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch, name: String) {
    let job = sim.world.begin_job(workload, name, &batch.work.spec, now);
    let mut running = Running::new(job, batch.work.clone());
    start_or_suspend(sim, now, workload, &mut running);
    batch.running.push(running);
}

/// The time of a Job begins when it is not suspended any more, and anew after every suspension; the controller looks again when it is up.
///
/// Source: `job_controller.go`, `syncJob`, which clears `startTime` and sets it.
fn start_or_suspend(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, job: &mut Running) {
    if job.work.spec.suspended {
        job.started = None;
    } else if job.started.is_none() {
        (job.started, job.has_run) = (Some(sim.whole_seconds(now)), true);
        if let Some(deadline) = job.work.spec.active_deadline {
            sim.queue.schedule_in(deadline, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        }
    }
}

/// One pass: a CronJob starts a Job whose time has come, then every Job makes the pods that it lacks or ends.
pub(in crate::actors) fn reconcile(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
) {
    let Some(mut batch) = controllers.batches.remove(&workload) else { return };
    count_lost(sim, now, workload, &mut batch);
    settle(sim, controllers, vertical, now, workload, &mut batch);
    if batch.cron.is_some() {
        start_due(sim, now, workload, &mut batch);
        settle(sim, controllers, vertical, now, workload, &mut batch);
    }
    controllers.batches.insert(workload, batch);
}

/// Pods that somebody else deleted or that went with their node count as failed.
fn count_lost(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch) {
    let version = sim.setup.policy.versions.kubernetes;
    for job in &mut batch.running {
        let lost = job.state.take_lost(&job.work.spec, (&sim.world, now), |_| {});
        let again = job.state.lose(&job.work.spec, &lost, version);
        reconcile_at(sim, now, workload, again);
    }
}

/// The controller looks at the Jobs of a workload again when pods may be made again after a failure.
pub(in crate::actors) fn reconcile_at(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, again: Option<SimTime>) {
    if let Some(again) = again {
        sim.queue.schedule(again.max(now), class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
    }
}

/// Every Job takes its step; those that have ended leave.
fn settle(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    batch: &mut Batch,
) {
    let mut left = batch.running.len() as u32;
    let history = batch.cron.as_ref().map(|cron| History {
        successful: cron.object.successful_jobs_history_limit,
        failed: cron.object.failed_jobs_history_limit,
    });
    let mut ended = batch.ended;
    let version = sim.setup.policy.versions.kubernetes;
    batch.running.retain_mut(|job| {
        if job.work.spec.is_managed_elsewhere(version) {
            return true;
        }
        start_or_suspend(sim, now, workload, job);
        let Running { work, started, state, .. } = job;
        match state.step(&work.spec, &sim.world, *started, now) {
            JobStep::Create(count) => {
                state.make_pods(sim, controllers, vertical, now, (workload, work.revision), (&work.spec, count))
            }
            JobStep::Delete(count) => {
                delete(sim, now, state.take_surplus(&work.spec, count), "the Job needs fewer pods");
            }
            JobStep::End(end) => {
                left -= 1;
                let (pods, ending) = state.end(&mut sim.world, now, (workload, left), (end, work.spec.ttl));
                delete(sim, now, pods, "its Job has ended");
                controllers.keep_ended(sim, now, workload, ending, history);
                ended = Some(sim.whole_seconds(now));
                return false;
            }
        }
        true
    });
    batch.ended = ended;
}

fn delete(sim: &mut Sim<'_>, now: SimTime, pods: Vec<PodId>, reason: &str) {
    for pod in pods {
        kubelet::delete(sim, now, pod, false, reason);
    }
}

/// A CronJob starts a Job if its time has come, and plans its next look.
fn start_due(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, batch: &mut Batch) {
    let instant = calendar_time(sim, now);
    let active = batch.running.len();
    let Some(cron) = &mut batch.cron else { return };
    let step =
        cron_step(&CronView { object: &cron.object, calendar: &cron.calendar, last: cron.last, active }, instant);
    if cron.planned <= now
        && let Some(next) = cron.calendar.next_start(cron.last, instant)
    {
        // The first look is none that a schedule calls for.
        if cron.planned > SimTime::ZERO && !cron.object.suspended {
            sim.world.job_is_due(workload, now);
        }
        let wait = SimDuration::from_secs(next.as_second() - sim.setup.scenario.start.as_second());
        cron.planned = SimTime::ZERO + wait + REACTION;
        sim.queue.schedule(cron.planned, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
    }
    let CronStep::Start { at, replaces } = step else { return };
    cron.last = at;
    if replaces {
        for job in std::mem::take(&mut batch.running) {
            conclude_replaced(sim, now, job);
        }
    }
    // Source: `pkg/controller/cronjob/utils.go`, `getJobName`: the minute that the Job was scheduled for.
    let name = format!("{}-{}", sim.world.workload(workload).name.name, at.as_second().div_euclid(60));
    begin(sim, now, workload, batch, name);
    let jobs = batch.running.len() as u32;
    sim.world.rescale(workload, jobs, now, EventKind::JobsCreated, ("the schedule of its CronJob", &at.to_string()));
}

fn conclude_replaced(sim: &mut Sim<'_>, now: SimTime, job: Running) {
    let Running { mut state, .. } = job;
    sim.world.end_job(state.job, now, JobOutcomeKind::Deleted);
    delete(sim, now, std::mem::take(&mut state.pods), "its Job is replaced");
    state.delete_ended(sim);
}

/// Whether this start of a pod of a Job fails, by the share that the scenario states.
pub(in crate::actors) fn fails(sim: &Sim<'_>, pod: PodId) -> bool {
    let state = sim.world.pod(pod);
    let failing = sim.times_of(state.workload).failures;
    let restart = if state.restarts > 0 { state.restarts.to_string() } else { String::new() };
    failing > 0.0 && sim.streams.nth("job-fate", &restart, u64::from(pod.0)).uniform() < failing
}

/// The container of a Job's pod has failed and restarts where it is (`restartPolicy: OnFailure`).
pub(in crate::actors) fn restart_in_place(sim: &mut Sim<'_>, back_offs: &mut BackOffs, now: SimTime, pod: PodId) {
    restarts::restart(sim, back_offs, now, pod, SimDuration::ZERO, "its container has failed");
}

/// A pod comes to its end, well or not.
pub(in crate::actors) fn pod_done(
    sim: &mut Sim<'_>,
    back_offs: &mut BackOffs,
    controllers: &mut Controllers,
    now: SimTime,
    pod: PodId,
) {
    let state = sim.world.pod(pod);
    let workload = state.workload;
    if !state.is_active() {
        return;
    }
    let Some(mut batch) = controllers.batches.remove(&workload) else { return };
    let fails = fails(sim, pod);
    let mut restarts = false;
    for job in &mut batch.running {
        let Some(place) = job.state.pods.iter().position(|&this_pod| this_pod == pod) else { continue };
        restarts = fails && job.work.spec.restarts_in_place;
        if restarts {
            break;
        }
        job.state.take_ended(place, volumes::has_ephemeral(sim, pod));
        if fails {
            let again = job.state.fail(&job.work.spec, now, pod);
            reconcile_at(sim, now, workload, again);
        } else {
            job.state.succeed(pod);
        }
        break;
    }
    controllers.batches.insert(workload, batch);
    if restarts {
        restart_in_place(sim, back_offs, now, pod);
    } else if fails {
        kubelet::failed(sim, now, pod);
    } else {
        kubelet::succeeded(sim, now, pod);
    }
}
