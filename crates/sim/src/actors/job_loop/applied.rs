//! ScaledJobs that are applied, changed, or deleted.
//!
//! Must not: create Jobs.

use super::{Job, JobLoop, ScaledJobs, delete};
use crate::actors::drift::Drift;
use crate::actors::queue_loop::Queues;
use crate::actors::setup::JobPlan;
use crate::actors::sim::Sim;
use crate::actors::triggers::TriggerMemory;
use crate::actors::workload_controllers::Controllers;
use crate::cluster::NewWorkload;
use crate::domain::keda::ScaledJob;
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, SimTime};
use crate::world::record::{EventKind, JobOutcomeKind, WorkloadKind};

/// A ScaledJob is applied. One of the start of the run is first polled within one interval, a later one at once; one that is paused is not
/// polled.
pub(in crate::actors) fn apply<'s>(
    sim: &mut Sim<'s>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'s>,
    queues: &mut Queues,
    now: SimTime,
    plan: &'s JobPlan,
) {
    let name = ObjectName { namespace: plan.job.namespace, name: plan.job.name };
    let triggers = plan.job.triggers.len();
    if let Some(known) = jobs.all.iter().position(|job| !job.retired && job.name() == name) {
        let job = &mut jobs.all[known];
        let before = std::mem::replace(&mut job.plan, plan);
        job.memory = vec![TriggerMemory::default(); triggers];
        let workload = job.workload;
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), format!("ScaledJob {name}"));
        return change(sim, controllers, jobs, queues, now, known, &before.job);
    }
    let workload = sim.world.add_workload(
        NewWorkload {
            name,
            kind: WorkloadKind::ScaledJob,
            selector: LabelSelector { match_labels: plan.job.job.template.labels.clone(), expressions: Vec::new() },
            template: plan.job.job.template.clone(),
            replicas: 0,
        },
        false,
    );
    sim.world.note(now, EventKind::ManifestApplied, Some(workload), format!("ScaledJob {name}"));
    let memory = vec![TriggerMemory::default(); triggers];
    let drift = Drift::of_poll(&sim.streams, &name.to_string());
    jobs.all.push(JobLoop {
        plan,
        retired: false,
        workload,
        memory,
        revision: 0,
        form: 0,
        rolled_out: 0,
        jobs: Vec::new(),
        made: 0,
        drift,
        next_poll: None,
    });
    jobs.begin_polling(sim, now, jobs.all.len() - 1);
}

/// A known ScaledJob is applied again: a pause stops its loop and nothing else; another form, or the end of a pause, begins the loop anew,
/// and Jobs of former forms are deleted unless its rollout is gradual. What is not simulated of the object counts as unchanged.
///
/// Source: `scaledjob_controller.go`, `reconcileScaledJob`, `checkIfPaused`.
fn change(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    now: SimTime,
    index: usize,
    before: &ScaledJob,
) {
    let job = &jobs.all[index].plan.job;
    let changed = ScaledJob { paused: job.paused, ..before.clone() } != *job;
    if changed {
        let (workload, template) = (jobs.all[index].workload, (*job.job.template).clone());
        let revision = sim.world.revision_of(workload, template);
        if sim.world.workload(workload).revision != revision {
            sim.world.use_revision(workload, revision);
        }
        jobs.all[index].revision = revision;
        jobs.all[index].form += 1;
    }
    let job = &mut jobs.all[index];
    if job.plan.job.paused {
        return jobs.stop_polling(sim, index);
    }
    if !changed && !before.paused {
        return;
    }
    let of_former = std::mem::replace(&mut job.rolled_out, job.form) != job.form;
    if of_former && !job.plan.job.gradual_rollout {
        delete_former(sim, controllers, jobs, queues, now, index);
    }
    jobs.stop_polling(sim, index);
    jobs.begin_polling(sim, now, index);
}

/// Jobs that were made from another form of the ScaledJob are deleted, those that have ended too.
///
/// Source: `scaledjob_controller.go`, `deletePreviousVersionScaleJobs`.
fn delete_former(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'_>,
    queues: &mut Queues,
    now: SimTime,
    index: usize,
) {
    let this_job = &mut jobs.all[index];
    let (workload, form) = (this_job.workload, this_job.form);
    controllers.forget_ended(sim, workload);
    let all = std::mem::take(&mut jobs.all[index].jobs);
    let (stay, go): (Vec<Job<'_>>, Vec<Job<'_>>) = all.into_iter().partition(|job| job.form == form);
    let left = stay.len() as u32;
    jobs.all[index].jobs = stay;
    if go.is_empty() {
        return;
    }
    for Job { mut state, .. } in go {
        sim.world.end_job(state.job, now, JobOutcomeKind::Deleted);
        let pods = std::mem::take(&mut state.pods);
        delete(sim, jobs, queues, now, index, pods, "its Job is of a former version of the ScaledJob");
        state.delete_ended(sim);
    }
    let because = "KEDA deletes the Jobs of the former version";
    sim.world.set_replicas(workload, left, now, EventKind::ReplicasSet, because);
}

/// The ScaledJob of this name is deleted: it makes no more Jobs.
pub(in crate::actors) fn retire(sim: &mut Sim<'_>, jobs: &mut ScaledJobs<'_>, name: ObjectName) {
    for index in 0..jobs.all.len() {
        if jobs.all[index].name() != name {
            continue;
        }
        jobs.all[index].retired = true;
        for job in std::mem::take(&mut jobs.all[index].jobs) {
            job.state.delete_ended(sim);
        }
    }
}
