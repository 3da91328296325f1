//! ScaledJobs: KEDA polls their triggers and makes Jobs, whose pods take messages, work on them and end.
//!
//! Deviation: a Job never fails; a pod that is evicted or lost gives its messages back and is made again ten seconds later.
//!
//! Source: KEDA 2.20 `pkg/scaling/executor/scale_jobs.go`; Kubernetes 1.36 `pkg/controller/job`.

use std::sync::Arc;

use super::context::Context;
use super::event::{Event, class};
use super::setup::JobPlan;
use super::triggers::{self, TriggerMemory};
use super::{kubelet, scheduler_loop};
use crate::domain::hpa::MetricTarget;
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimDuration, SimTime, Symbol, WorkloadId};
use crate::policy::replicas::keda::{
    JobPodView, JobTrigger, combine, is_pending, plan_jobs, target_of, trigger_maximum, trigger_metric_name,
};
use crate::world::PodPhase;
use crate::world::pod_operations::NewWorkload;
use crate::world::record::{EventKind, WorkloadKind};

/// How long a pod runs that finds nothing to take.
const NOTHING_TO_DO: SimDuration = SimDuration::from_secs(1);
/// From the end of a pod that did not succeed to its replacement.
const BACK_OFF: SimDuration = SimDuration::from_secs(10);

/// One ScaledJob and its Jobs.
#[derive(Debug)]
pub(super) struct JobLoop<'s> {
    plan: &'s JobPlan,
    workload: WorkloadId,
    memory: Vec<TriggerMemory>,
    /// Jobs that have not finished, oldest first.
    jobs: Vec<Job>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    pods: Vec<Worker>,
    succeeded: u32,
    /// When pods may be made again.
    not_before: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct Worker {
    pod: PodId,
    /// Messages that it took.
    messages: u32,
}

/// A ScaledJob is applied. One of the start of the run is first polled within one interval, a later one at once.
pub(super) fn apply<'s>(context: &mut Context<'s>, now: SimTime, plan: &'s JobPlan) {
    let name = ObjectName { namespace: plan.job.namespace, name: plan.job.name };
    let triggers = plan.job.triggers.len();
    if let Some(known) =
        context.jobs.iter_mut().find(|own| own.plan.job.namespace == name.namespace && own.plan.job.name == name.name)
    {
        known.plan = plan;
        known.memory = vec![TriggerMemory::default(); triggers];
        let workload = known.workload;
        context.world.note(now, EventKind::ManifestApplied, Some(workload), format!("ScaledJob {name}"));
        return;
    }
    let mut template = (*plan.job.template).clone();
    // No claim is simulated, see `workload_controllers`.
    template.volumes.clear();
    let workload = context.world.add_workload(NewWorkload {
        name,
        kind: WorkloadKind::ScaledJob,
        selector: crate::domain::LabelSelector {
            match_labels: plan.job.template.labels.clone(),
            expressions: Vec::new(),
        },
        template: Arc::new(template),
        replicas: 0,
        has_load: false,
    });
    context.world.note(now, EventKind::ManifestApplied, Some(workload), format!("ScaledJob {name}"));
    let memory = vec![TriggerMemory::default(); triggers];
    context.jobs.push(JobLoop { plan, workload, memory, jobs: Vec::new() });
    let index = (context.jobs.len() - 1) as u32;
    let phase = context.streams.stream("keda-phase", &name.to_string()).span_up_to(plan.job.polling_interval);
    let first = if now == SimTime::ZERO { phase } else { SimDuration::ZERO };
    context.queue.schedule_in(first, class::KEDA, Event::JobPoll(index));
}

/// One poll of one ScaledJob.
pub(super) fn poll(context: &mut Context<'_>, now: SimTime, index: u32) {
    let plan = context.jobs[index as usize].plan;
    context.queue.schedule_in(plan.job.polling_interval, class::KEDA, Event::JobPoll(index));
    let mut texts = Vec::new();
    let mut read = Vec::new();
    for trigger in 0..plan.job.triggers.len() {
        let mut memory = std::mem::take(&mut context.jobs[index as usize].memory[trigger]);
        let value = triggers::read_current(context, now, &plan.sources(), trigger, &mut memory);
        note_failures(context, now, index, trigger, value.as_ref().err().map(String::as_str), &mut memory);
        context.jobs[index as usize].memory[trigger] = memory;
        let Ok(value) = value else { continue };
        let queue = value.milli as f64 / 1e3;
        let maximum = trigger_maximum(queue, target(plan, trigger), plan.job.max_replica_count);
        texts.push(format!("{} is {queue}", metric_name(plan, trigger)));
        read.push(JobTrigger { queue, maximum, active: value.active });
    }
    let own = &context.jobs[index as usize];
    let running = own.jobs.len() as i64;
    let pending = own.jobs.iter().filter(|job| is_job_pending(context, plan, job)).count() as i64;
    let decision = plan_jobs(&plan.job, combine(&plan.job, &read), running, pending);
    if decision.created > 0 {
        let values = format!("{}; {running} running, {pending} of them pending", texts.join("; "));
        create(context, now, index, decision.created, &values);
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

/// Notes the first and the end of a series of failures of a trigger.
fn note_failures(
    context: &mut Context<'_>,
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
    let own = &context.jobs[index as usize];
    let (workload, name) = (own.workload, metric_name(own.plan, trigger));
    let (kind, text) = match problem {
        Some(problem) => (EventKind::TriggerFailed, format!("{name}: {problem}")),
        None => (EventKind::TriggerRecovered, name.to_string()),
    };
    context.world.note(now, kind, Some(workload), text);
}

fn is_job_pending(context: &Context<'_>, plan: &JobPlan, job: &Job) -> bool {
    let held = |worker: &Worker| {
        let pod = context.world.pod(worker.pod);
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
    let held: Vec<(ReportedPhase, Vec<Symbol>)> = job.pods.iter().map(held).collect();
    let views: Vec<JobPodView<'_>> =
        held.iter().map(|(phase, conditions)| JobPodView { phase: *phase, conditions }).collect();
    job.succeeded == 0 && is_pending(&views, &plan.job.pending_pod_conditions)
}

/// KEDA makes Jobs.
fn create(context: &mut Context<'_>, now: SimTime, index: u32, count: i64, values: &str) {
    let workload = context.jobs[index as usize].workload;
    let before = context.jobs[index as usize].jobs.len() as u32;
    let after = before.saturating_add(u32::try_from(count).unwrap_or(0));
    context.jobs[index as usize].jobs.resize(after as usize, Job::default());
    context.world.rescale(workload, after, now, EventKind::JobsCreated, ("KEDA: Jobs for waiting work", values));
    reconcile(context, now, workload);
}

/// The Job controller makes the pods that are missing, and finishes Jobs with enough successes.
pub(super) fn reconcile(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    let Some(index) = context.jobs.iter().position(|own| own.workload == workload) else { return };
    let plan = context.jobs[index].plan;
    give_back_lost(context, now, index);
    for position in 0..context.jobs[index].jobs.len() {
        let job = &context.jobs[index].jobs[position];
        let open = plan.job.completions.saturating_sub(job.succeeded);
        let missing = plan.job.parallelism.min(open).saturating_sub(job.pods.len() as u32);
        if missing > 0 && job.not_before > now {
            continue;
        }
        for _ in 0..missing {
            let pod = context.world.create_pod(workload, None, now);
            context.jobs[index].jobs[position].pods.push(Worker { pod, messages: 0 });
            scheduler_loop::pod_created(context, now, pod);
        }
    }
}

/// Pods that were evicted or lost: what they took goes back, and they are made again after a while.
fn give_back_lost(context: &mut Context<'_>, now: SimTime, index: usize) {
    let plan = context.jobs[index].plan;
    let workload = context.jobs[index].workload;
    let mut back = 0;
    let world = &context.world;
    for job in &mut context.jobs[index].jobs {
        let before = job.pods.len();
        job.pods.retain(|worker| {
            let there = world.pod(worker.pod).is_active();
            back += if there { 0 } else { worker.messages };
            there
        });
        if job.pods.len() < before {
            job.not_before = now + BACK_OFF;
            context.queue.schedule_in(BACK_OFF, class::CONTROLLERS, Event::Reconcile(workload));
        }
    }
    if let Some(queue) = plan.queue.filter(|_| back > 0) {
        context.queues[queue].queue.give_back(back, now);
    }
}

/// A pod's containers run: one of a Job takes messages and works until they are done.
pub(super) fn pod_started(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let Some((index, position, place)) = find(context, pod) else { return };
    let plan = context.jobs[index].plan;
    let time = match plan.queue {
        None => context.times_of(context.jobs[index].workload).run_time(),
        Some(queue) => {
            let taken = context.queues[queue].queue.take(context.setup.queues[queue].messages_per_job, now);
            context.jobs[index].jobs[position].pods[place].messages = taken;
            let work = context.setup.queues[queue].work;
            let rounds = i64::from(taken.div_ceil(work.concurrency.max(1)));
            if taken == 0 { NOTHING_TO_DO } else { work.time_per_message * rounds }
        }
    };
    context.queue.schedule_in(time, class::MACHINES, Event::JobPodDone(pod));
}

/// A pod of a Job has done its work.
pub(super) fn pod_done(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    if !context.world.pod(pod).is_active() {
        return;
    }
    let Some((index, position, place)) = find(context, pod) else { return };
    let plan = context.jobs[index].plan;
    let worker = context.jobs[index].jobs[position].pods.remove(place);
    if let Some(queue) = plan.queue {
        context.queues[queue].queue.finish(worker.messages, now);
    }
    kubelet::succeeded(context, now, pod);
    let job = &mut context.jobs[index].jobs[position];
    job.succeeded += 1;
    if job.succeeded >= plan.job.completions {
        context.jobs[index].jobs.remove(position);
        let (workload, left) = (context.jobs[index].workload, context.jobs[index].jobs.len() as u32);
        context.world.finish_job(workload, left, now);
    }
}

fn find(context: &Context<'_>, pod: PodId) -> Option<(usize, usize, usize)> {
    let workload = context.world.pod(pod).workload;
    let index = context.jobs.iter().position(|own| own.workload == workload)?;
    let jobs = context.jobs[index].jobs.iter().enumerate();
    jobs.filter_map(|(position, job)| Some((index, position, job.pods.iter().position(|own| own.pod == pod)?))).next()
}
