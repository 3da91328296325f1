//! What people do to the cluster, as the scenario's timeline says.

use super::context::Context;
use super::event::{Event, class};
use super::workload_controllers::{bare_pods, daemon_sets, deployments, jobs, stateful_sets};
use super::{
    control_plane, initial, job_loop, keda_loop, kubectl, load_loop, memory_limits, namespaces, node_autoscaler,
    node_groups, queue_loop, replica_loop, usage_loop, volumes, workload_controllers,
};
use crate::actors::setup::Action;
use crate::domain::SimTime;
use crate::world::record::EventKind;

/// Puts every step on the queue. Steps at the start happen before the first pod exists.
pub(super) fn begin(context: &mut Context<'_>) {
    let setup = context.setup;
    for (index, step) in setup.timeline.iter().enumerate() {
        context.queue.schedule(step.at, class::PEOPLE, Event::TimelineStep(index as u32));
    }
    context.pod_trace.begin(&mut context.sim);
    load_loop::begin(context);
    memory_limits::begin(context);
    queue_loop::begin(context);
    usage_loop::begin(context);
}

/// One step happens.
pub(super) fn happen(context: &mut Context<'_>, now: SimTime, step: u32) {
    let setup = context.setup;
    let Some(step) = setup.timeline.get(step as usize) else { return };
    match &step.action {
        Action::TakeUp => initial::take_up(context, now),
        Action::Deploy(deployment) => deployments::apply(context, now, deployment),
        Action::DeployStateful(set) => stateful_sets::apply(context, now, set),
        Action::RunJob(job) => jobs::apply_job(context, now, job),
        Action::RunCronJob(cron) => jobs::apply_cron_job(context, now, cron),
        Action::RunPod(pod) => bare_pods::apply(context, now, pod.name, &pod.spec),
        Action::RunDaemon(daemon_set) => daemon_sets::apply(context, now, daemon_set),
        Action::Scale { workload, replicas } => {
            if let Some(id) = context.workload_named(*workload) {
                context.world.set_replicas(id, *replicas, now, EventKind::ReplicasSet, "timeline");
                workload_controllers::wake(context, id);
            }
        }
        Action::ScaleGroup { group, desired } => {
            if let Err(error) = context.set_desired_capacity(now, *group, *desired, "timeline") {
                context.world.note(now, EventKind::ScalingActivityFailed, None, format!("{group}: {error}"));
            }
        }
        Action::UpdateGroup(group) => node_groups::update(context, now, group),
        Action::ReplaceClass(class) => node_autoscaler::replace_class(context, now, class),
        Action::ReplacePool(pool) => node_autoscaler::replace_pool(context, now, pool),
        Action::ReplaceOverlays(overlays) => node_autoscaler::replace_overlays(context, now, overlays),
        Action::ReplaceBuffers(buffers) => node_autoscaler::replace_buffers(context, now, buffers),
        Action::LabelNamespace(name, labels) => namespaces::apply(context, now, *name, labels),
        Action::ApplyBudget(budget) => context.budgets.apply_budget(&mut context.sim, now, budget),
        Action::ApplyQuota(quota) => context.quotas.apply(&mut context.sim, now, quota),
        Action::ApplyVolume(volume) => context.volumes.apply_volume(&mut context.sim, now, volume),
        Action::ApplyClaim(claim) => volumes::apply_claim(context, now, claim),
        Action::ReplaceRanks(ranks) => node_autoscaler::replace_ranks(context, now, ranks),
        Action::Cordon(nodes) => kubectl::cordon(context, now, nodes),
        Action::Uncordon(nodes) => kubectl::uncordon(context, now, nodes),
        Action::Drain { nodes, force, timeout } => {
            let options = kubectl::drain::Options { force: *force, timeout: *timeout };
            kubectl::drain::begin(context, now, nodes, options);
        }
        Action::Delete { kind, namespace, which } => {
            kubectl::delete::delete(context, now, *kind, *namespace, which);
        }
        Action::UpgradeControlPlane(release) => control_plane::upgrade(context, now, *release),
        Action::ChangeControlPlaneTier(tier) => control_plane::change_tier(context, now, *tier),
        Action::Autoscale(autoscaler) => {
            replica_loop::apply(context, now, autoscaler, None);
        }
        Action::AutoscaleVertically(autoscaler) => context.vertical.apply(&mut context.sim, now, autoscaler),
        Action::ScaleJobs(plan) => job_loop::apply(context, now, plan),
        Action::ScaleObject(plan) => keda_loop::apply(context, now, plan),
    }
}
