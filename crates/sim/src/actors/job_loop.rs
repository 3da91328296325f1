//! ScaledJobs: KEDA polls their triggers and makes Jobs, whose pods take messages, work on them and end.
//!
//! Deviation: a pod that fails, is evicted, or is lost returns its messages at once. SQS shows them again after their
//! visibility timeout.
//!
//! Source: KEDA 2.20 `pkg/scaling/executor/scale_jobs.go`, `controllers/keda/scaledjob_controller.go`; Kubernetes 1.36
//! `pkg/controller/job`.

mod applied;

pub(super) use applied::{apply, retire};

use super::actor_events::ActorEvent;
use super::drift::Drift;
use super::event::{KubeletEvent, ReplicaEvent, WorkloadEvent, class};
use super::prometheus::Prometheus;
use super::queue_loop::Queues;
use super::restarts::BackOffs;
use super::setup::JobPlan;
use super::sim::Sim;
use super::triggers::{self, TriggerMemory};
use super::vertical::Vertical;
use super::workload_controllers::Controllers;
use super::workload_controllers::ended_jobs::History;
use super::workload_controllers::job_state::{FoundJobPod, JobPod, JobState};
use super::workload_controllers::jobs::{fails, reconcile_at, restart_in_place};
use super::workload_controllers::pod_labels;
use super::{keda_loop, kubelet, names, volumes, workload_controllers};
use crate::cluster::PodPhase;
use crate::domain::hpa::MetricTarget;
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::workload::{self, JobSpec, ObjectName};
use crate::domain::{PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::engine::TimerId;
use crate::world::World;
use crate::world::record::EventKind;
use nodecast_replicas::keda::{
    JobPodView, JobTrigger, combine, is_pending, plan_jobs, target_of, trigger_maximum, trigger_metric_name,
};
use nodecast_replicas::workloads::{JobEnd, JobStep};

/// How long a pod runs that finds nothing to take.
const NOTHING_TO_DO: SimDuration = SimDuration::from_secs(1);

/// Every ScaledJob that there is or has been, in order of application.
#[derive(Debug, Default)]
pub(super) struct ScaledJobs<'s> {
    all: Vec<JobLoop<'s>>,
}

/// One ScaledJob and its Jobs.
#[derive(Debug)]
pub(super) struct JobLoop<'s> {
    plan: &'s JobPlan,
    /// Whether it has been deleted.
    retired: bool,
    workload: WorkloadId,
    memory: Vec<TriggerMemory>,
    /// The revision of the workload that pods of new Jobs are made from.
    revision: u32,
    /// How often it has been changed, and how often when its Jobs were last looked at because of that.
    form: u32,
    rolled_out: u32,
    /// Jobs that have not finished, oldest first.
    jobs: Vec<Job<'s>>,
    /// Jobs made so far.
    made: u64,
    drift: Drift,
    /// `None` while it is paused.
    next_poll: Option<TimerId>,
}

impl JobLoop<'_> {
    fn name(&self) -> ObjectName {
        ObjectName { namespace: self.plan.job.namespace, name: self.plan.job.name }
    }
}

#[derive(Clone, Debug)]
struct Job<'s> {
    /// What the ScaledJob said when it was made.
    spec: &'s JobSpec,
    /// How often the ScaledJob had been changed.
    form: u32,
    revision: u32,
    began: SimTime,
    /// Whether its object says when.
    is_begun: bool,
    state: JobState<Worker>,
}

impl<'s> Job<'s> {
    /// A Job at this position of the record that begins now.
    fn new(job_loop: &JobLoop<'s>, job: usize, began: SimTime) -> Self {
        let state = JobState::new(job);
        Self {
            spec: &job_loop.plan.job.job,
            form: job_loop.form,
            revision: job_loop.revision,
            began,
            is_begun: true,
            state,
        }
    }

    fn step(&self, world: &World, now: SimTime) -> JobStep {
        self.state.step(self.spec, world, Some(self.began), now)
    }
}

#[derive(Clone, Copy, Debug)]
struct Worker {
    pod: PodId,
    /// Messages that it took.
    messages: u32,
    /// Whether it runs since before the run began, and has its messages since then.
    found: bool,
}

impl JobPod for Worker {
    fn made(pod: PodId) -> Self {
        Self { pod, messages: 0, found: false }
    }

    fn id(&self) -> PodId {
        self.pod
    }
}

impl<'s> ScaledJobs<'s> {
    /// The loop that polls begins, unless the object is paused.
    fn begin_polling(&mut self, sim: &mut Sim<'_>, now: SimTime, index: usize) {
        let job_loop = &self.all[index];
        let (name, job) = (job_loop.name(), &job_loop.plan.job);
        if !job.paused {
            let first = keda_loop::first_poll(sim, now, name, job.polling_interval);
            self.schedule(sim, index, first);
        }
    }

    fn schedule(&mut self, sim: &mut Sim<'_>, index: usize, after: SimDuration) {
        let timer = sim.queue.schedule_in(after, class::KEDA, ReplicaEvent::JobPoll(index as u32));
        self.all[index].next_poll = Some(timer);
    }

    fn stop_polling(&mut self, sim: &mut Sim<'_>, index: usize) {
        if let Some(timer) = self.all[index].next_poll.take() {
            sim.queue.cancel(timer);
        }
    }

    /// Notes the first and the end of a series of failures of a trigger.
    fn note_failures(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        index: u32,
        trigger: usize,
        problem: Option<&str>,
        memory: &mut TriggerMemory,
    ) {
        if problem.is_some() == memory.failing {
            return;
        }
        memory.failing = problem.is_some();
        let job_loop = &self.all[index as usize];
        let (workload, name) = (job_loop.workload, metric_name(job_loop.plan, trigger));
        let (kind, text) = match problem {
            Some(problem) => (EventKind::TriggerFailed, format!("{name}: {problem}")),
            None => (EventKind::TriggerRecovered, name.to_string()),
        };
        sim.world.note(now, kind, Some(workload), text);
    }

    /// A Job of a ScaledJob is there that KEDA made before the run began: with its own object if there is one, otherwise as it makes them now.
    /// Its place among those that have not ended, and the revision that its pods are of.
    ///
    /// Source: `scale_jobs.go`, `getRunningJobCount`: every Job of the ScaledJob that has not ended counts, from the first poll on.
    pub(super) fn begin_found(
        &mut self,
        sim: &mut Sim<'s>,
        now: SimTime,
        workload: WorkloadId,
        (name, object): (Symbol, Option<&'s workload::Job>),
    ) -> (usize, u32) {
        let Some(index) = self.all.iter().position(|job_loop| job_loop.workload == workload) else { return (0, 0) };
        let item = &self.all[index];
        let mut job = Job::new(item, 0, now);
        job.is_begun = false;
        if let Some(object) = object {
            job.spec = &object.spec;
            job.revision = sim.world.revision_of(workload, (*object.spec.template).clone());
        }
        job.state.job = sim.world.begin_job(workload, name.to_string(), job.spec, now);
        if let Some(object) = object {
            job.state.go_on(&mut sim.world, &object.status);
        }
        let started = object.and_then(|object| object.status.started).zip(sim.setup.initial.as_ref());
        if let Some((at, initial)) = started {
            (job.began, job.is_begun) = (initial.instant(Some(at)), true);
        }
        plan_deadline(sim, now, workload, &job);
        let (revision, place) = (job.revision, self.all[index].jobs.len());
        self.all[index].jobs.push(job);
        sim.world.count_bare_pods(workload, u32::try_from(place + 1).unwrap_or(u32::MAX));
        workload_controllers::wake(sim, workload);
        (place, revision)
    }

    /// A pod of the Job at this place is there; where no object says since when the Job has run, it has since the oldest of them was made.
    pub(super) fn found(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        (pod, place): (FoundJobPod, usize),
    ) {
        let Some(index) = self.all.iter().position(|job_loop| job_loop.workload == workload) else { return };
        let Some(job) = self.all[index].jobs.get_mut(place) else { return };
        job.state.find_pod(job.spec, pod, Worker { found: pod.running, ..Worker::made(pod.id) });
        let number = job.state.job;
        let older = (!job.is_begun && pod.created < job.began).then(|| {
            job.began = pod.created;
            job.clone()
        });
        sim.world.assign_to_job(pod.id, number);
        pod_labels::label_job(sim, pod.id, number);
        if let Some(job) = older {
            plan_deadline(sim, now, workload, &job);
        }
    }

    /// Pods that the Jobs of a ScaledJob want now; `None` if the workload is none.
    pub(super) fn pods_wanted(&self, workload: WorkloadId) -> Option<u32> {
        let job_loop = self.all.iter().find(|job_loop| job_loop.workload == workload)?;
        Some(job_loop.jobs.iter().map(|job| job.state.wants(job.spec)).sum())
    }

    fn give_back(&mut self, queues: &mut Queues, now: SimTime, index: usize, messages: u32) {
        if let Some(queue) = self.all[index].plan.queue.filter(|_| messages > 0) {
            queues.all[queue].queue.give_back(messages, now);
        }
    }

    /// Pods that were evicted or lost: what they took goes back, and they count as failed.
    fn give_back_lost(&mut self, sim: &mut Sim<'_>, queues: &mut Queues, now: SimTime, index: usize) {
        let (workload, version) = (self.all[index].workload, sim.setup.policy.versions.kubernetes);
        let mut back = 0;
        let mut again = Vec::new();
        for job in &mut self.all[index].jobs {
            let lost = job.state.take_lost(job.spec, (&sim.world, now), |worker| back += worker.messages);
            again.push(job.state.lose(job.spec, &lost, version));
        }
        again.into_iter().for_each(|again| reconcile_at(sim, now, workload, again));
        self.give_back(queues, now, index, back);
    }

    /// A pod's containers run: one that takes messages does so when its application has started.
    pub(super) fn pod_started(&mut self, sim: &mut Sim<'_>, queues: &mut Queues, now: SimTime, pod: PodId) {
        let Some((index, position, place)) = self.find(sim, pod) else { return };
        // Its Job may have ended with the restart.
        if sim.world.pod(pod).restarts > 0 {
            workload_controllers::wake(sim, self.all[index].workload);
        }
        let start = sim.times_of(self.all[index].workload).start_time;
        let found = self.all[index].jobs[position].state.pods[place].found;
        if !found && self.all[index].plan.queue.is_some() && start > SimDuration::ZERO {
            sim.queue.schedule_in(start, class::MACHINES, KubeletEvent::WorkerStarts(pod));
        } else {
            self.work(sim, queues, now, pod);
        }
    }

    /// The application of a Job's pod has started.
    pub(super) fn worker_starts(&mut self, sim: &mut Sim<'_>, queues: &mut Queues, now: SimTime, pod: PodId) {
        if sim.world.pod(pod).is_active() {
            self.work(sim, queues, now, pod);
        }
    }

    /// A pod of a Job takes messages and works until they are done, or runs for the time that its workload is said to. One that ran before the run
    /// began has as many as a pod takes, and works on them from the start on.
    fn work(&mut self, sim: &mut Sim<'_>, queues: &mut Queues, now: SimTime, pod: PodId) {
        let Some((index, position, place)) = self.find(sim, pod) else { return };
        let plan = self.all[index].plan;
        let time = match plan.queue {
            None => sim.times_of(self.all[index].workload).run_time(),
            Some(queue) => {
                let most = sim.setup.queues[queue].spec.messages_per_job;
                let this_queue = &mut queues.all[queue].queue;
                let found = self.all[index].jobs[position].state.pods[place].found;
                let taken = if found { this_queue.find_taken(most, now) } else { this_queue.take(most, now) };
                self.all[index].jobs[position].state.pods[place].messages = taken;
                let work = sim.setup.queues[queue].spec.work;
                let rounds = i64::from(taken.div_ceil(work.concurrency.max(1)));
                if taken == 0 { NOTHING_TO_DO } else { work.time_per_message * rounds }
            }
        };
        sim.queue.schedule_in(time, class::MACHINES, WorkloadEvent::JobPodDone(pod));
    }

    fn find(&self, sim: &Sim<'_>, pod: PodId) -> Option<(usize, usize, usize)> {
        let workload = sim.world.pod(pod).workload;
        let index = self.all.iter().position(|job_loop| job_loop.workload == workload)?;
        let jobs = self.all[index].jobs.iter().enumerate();
        jobs.filter_map(|(position, job)| {
            Some((index, position, job.state.pods.iter().position(|this_pod| this_pod.pod == pod)?))
        })
        .next()
    }
}

/// One poll of one ScaledJob.
pub(super) fn poll(
    sim: &mut Sim<'_>,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    prometheus: &Prometheus,
    now: SimTime,
    index: u32,
) {
    if jobs.all[index as usize].retired {
        return;
    }
    let plan = jobs.all[index as usize].plan;
    let next = jobs.all[index as usize].drift.after(plan.job.polling_interval);
    jobs.schedule(sim, index as usize, next);
    let mut texts = Vec::new();
    let mut read = Vec::new();
    for trigger in 0..plan.job.triggers.len() {
        let mut memory = std::mem::take(&mut jobs.all[index as usize].memory[trigger]);
        let value = triggers::read_current(sim, (prometheus, queues), now, &plan.sources(), trigger, &mut memory);
        jobs.note_failures(sim, now, index, trigger, value.as_ref().err().map(String::as_str), &mut memory);
        jobs.all[index as usize].memory[trigger] = memory;
        let Ok(value) = value else { continue };
        let queue = value.milli as f64 / 1e3;
        let maximum = trigger_maximum(queue, target(plan, trigger), plan.job.max_replica_count);
        texts.push(format!("{} is {queue}", metric_name(plan, trigger)));
        read.push(JobTrigger { queue, maximum, active: value.active });
    }
    let this_job = &jobs.all[index as usize];
    let running = this_job.jobs.len() as i64;
    let pending = this_job.jobs.iter().filter(|job| is_job_pending(sim, plan, job)).count() as i64;
    let decision = plan_jobs(&plan.job, combine(&plan.job, &read), running, pending);
    if decision.created > 0 {
        let values = format!("{}; {running} running, {pending} of them pending", texts.join("; "));
        create(sim, jobs, now, index, decision.created, &values);
    }
}

fn metric_name(plan: &JobPlan, trigger: usize) -> Symbol {
    trigger_metric_name(plan.job.namespace, &plan.job.triggers, trigger)
}

fn target(plan: &JobPlan, trigger: usize) -> f64 {
    match target_of(&plan.job.triggers[trigger]) {
        MetricTarget::AverageValue(quantity) | MetricTarget::Value(quantity) => quantity.as_f64(),
        MetricTarget::Utilization(percent) => f64::from(percent),
    }
}

fn is_job_pending(sim: &Sim<'_>, plan: &JobPlan, job: &Job) -> bool {
    let held = |worker: &Worker| {
        let pod = sim.world.pod(worker.pod);
        let running = pod.phase == PodPhase::Running;
        let phase = if running { ReportedPhase::Running } else { ReportedPhase::Pending };
        let mut conditions = Vec::new();
        for (name, holds) in [
            ("PodScheduled", pod.node.is_some()),
            ("Initialized", running),
            ("ContainersReady", pod.is_ready()),
            ("Ready", pod.is_ready()),
        ] {
            if holds {
                conditions.push(Symbol::new(name));
            }
        }
        (phase, conditions)
    };
    let held: Vec<(ReportedPhase, Vec<Symbol>)> = job.state.pods.iter().map(held).collect();
    let views: Vec<JobPodView<'_>> =
        held.iter().map(|(phase, conditions)| JobPodView { phase: *phase, conditions }).collect();
    job.state.has_no_success() && is_pending(&views, &plan.job.pending_pod_conditions)
}

/// KEDA makes Jobs.
fn create(sim: &mut Sim<'_>, jobs: &mut ScaledJobs<'_>, now: SimTime, index: u32, count: i64, values: &str) {
    let workload = jobs.all[index as usize].workload;
    let before = jobs.all[index as usize].jobs.len() as u32;
    let after = before.saturating_add(u32::try_from(count).unwrap_or(0));
    for _ in before..after {
        let this_job = &mut jobs.all[index as usize];
        let name = names::of_job(&sim.streams, this_job.plan.job.name, this_job.made);
        this_job.made += 1;
        let job = sim.world.begin_job(workload, name, &this_job.plan.job.job, now);
        this_job.jobs.push(Job::new(this_job, job, now));
    }
    if let Some(deadline) = jobs.all[index as usize].plan.job.job.active_deadline {
        sim.queue.schedule_in(deadline, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
    }
    sim.world.rescale(workload, after, now, EventKind::JobsCreated, ("KEDA: Jobs for waiting work", values));
    sim.publish(ActorEvent::JobsCreated(workload));
}

/// The controller looks at a Job again when its time is up, if that is limited.
fn plan_deadline(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, job: &Job<'_>) {
    if let Some(deadline) = job.spec.active_deadline {
        let end = (job.began + deadline).max(now);
        sim.queue.schedule(end, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
    }
}

/// The Job controller: every Job makes the pods that it lacks, or ends.
pub(super) fn reconcile(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
) {
    let Some(index) = jobs.all.iter().position(|job| job.workload == workload) else { return };
    jobs.give_back_lost(sim, queues, now, index);
    let mut all = std::mem::take(&mut jobs.all[index].jobs);
    let mut left = all.len() as u32;
    all.retain_mut(|job| {
        match job.step(&sim.world, now) {
            JobStep::Create(count) => {
                job.state.make_pods(sim, controllers, vertical, now, (workload, job.revision), (job.spec, count));
            }
            JobStep::Delete(count) => {
                let surplus = job.state.take_surplus(job.spec, count);
                delete(sim, jobs, queues, now, index, surplus, "the Job needs fewer pods");
            }
            JobStep::End(end) => {
                left -= 1;
                conclude(sim, controllers, jobs, queues, now, job, (index, end, left));
                return false;
            }
        }
        true
    });
    jobs.all[index].jobs = all;
}

/// Pods that are no longer needed: what they took goes back.
fn delete(
    sim: &mut Sim<'_>,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    now: SimTime,
    index: usize,
    pods: Vec<Worker>,
    reason: &str,
) {
    for worker in pods {
        jobs.give_back(queues, now, index, worker.messages);
        kubelet::delete(sim, now, worker.pod, false, reason);
    }
}

/// A Job has ended; `left` of the workload's have not.
fn conclude(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    now: SimTime,
    job: &mut Job<'_>,
    (index, end, left): (usize, JobEnd, u32),
) {
    let (workload, object) = (jobs.all[index].workload, &jobs.all[index].plan.job);
    let history =
        History { successful: object.successful_jobs_history_limit, failed: object.failed_jobs_history_limit };
    let (pods, ending) = job.state.end(&mut sim.world, now, (workload, left), (end, job.spec.ttl));
    delete(sim, jobs, queues, now, index, pods, "its Job has ended");
    controllers.keep_ended(sim, now, workload, ending, Some(history));
}

/// A pod of a Job comes to its end, well or not; a Job that has ended by that leaves at once.
pub(super) fn pod_done(
    sim: &mut Sim<'_>,
    back_offs: &mut BackOffs,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    now: SimTime,
    pod: PodId,
) {
    if !sim.world.pod(pod).is_active() {
        return;
    }
    let Some((index, position, place)) = jobs.find(sim, pod) else { return };
    let plan = jobs.all[index].plan;
    let workload = jobs.all[index].workload;
    let fails = fails(sim, pod);
    let has_claims = volumes::has_ephemeral(sim, pod);
    let Job { spec, state: job, .. } = &mut jobs.all[index].jobs[position];
    if fails && spec.restarts_in_place {
        let messages = std::mem::take(&mut job.pods[place].messages);
        job.pods[place].found = false;
        jobs.give_back(queues, now, index, messages);
        return restart_in_place(sim, back_offs, now, pod);
    }
    let worker = job.take_ended(place, has_claims);
    if fails {
        let again = job.fail(spec, now, pod);
        reconcile_at(sim, now, workload, again);
        jobs.give_back(queues, now, index, worker.messages);
        kubelet::failed(sim, now, pod);
    } else {
        job.succeed(pod);
        if let Some(queue) = plan.queue {
            queues.all[queue].queue.finish(worker.messages, now);
        }
        kubelet::succeeded(sim, now, pod);
    }
    if let JobStep::End(end) = jobs.all[index].jobs[position].step(&sim.world, now) {
        let mut job = jobs.all[index].jobs.remove(position);
        let left = jobs.all[index].jobs.len() as u32;
        conclude(sim, controllers, jobs, queues, now, &mut job, (index, end, left));
    }
}
