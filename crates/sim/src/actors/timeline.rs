//! What people do to the cluster, as the scenario's timeline says.

use super::context::Context;
use super::event::{Event, class};
use super::pod_trace::TraceLoop;
use super::sim::Sim;
use super::workload_controllers::{bare_pods, daemon_sets, deployments, jobs, stateful_sets};
use super::{
    control_plane, deletion, initial, job_loop, keda_loop, kubectl, load_loop, memory_limits, namespaces,
    node_autoscaler, node_groups, queue_loop, replica_loop, usage_loop, volumes, workload_controllers,
};
use crate::actors::setup::Action;
use crate::domain::SimTime;
use crate::world::record::EventKind;

/// Puts every step on the queue. Steps at the start happen before the first pod exists.
pub(super) fn begin(sim: &mut Sim<'_>, pod_trace: &mut TraceLoop) {
    let setup = sim.setup;
    for (index, step) in setup.timeline.iter().enumerate() {
        sim.queue.schedule(step.at, class::PEOPLE, Event::TimelineStep(index as u32));
    }
    pod_trace.begin(sim);
    load_loop::begin(sim);
    memory_limits::begin(sim);
    queue_loop::begin(sim);
    usage_loop::begin(sim);
}

/// One step happens.
pub(super) fn happen(context: &mut Context<'_>, now: SimTime, step: u32) {
    let setup = context.setup;
    let Some(step) = setup.timeline.get(step as usize) else { return };
    match &step.action {
        Action::TakeUp => initial::take_up(context, now),
        Action::Deploy(deployment) => deployments::apply(&mut context.sim, &mut context.controllers, now, deployment),
        Action::DeployStateful(set) => stateful_sets::apply(&mut context.sim, &mut context.controllers, now, set),
        Action::RunJob(job) => jobs::apply_job(&mut context.sim, &mut context.controllers, now, job),
        Action::RunCronJob(cron) => jobs::apply_cron_job(&mut context.sim, &mut context.controllers, now, cron),
        Action::RunPod(pod) => bare_pods::apply(&mut context.sim, now, pod.name, &pod.spec),
        Action::RunDaemon(daemon_set) => {
            daemon_sets::apply(&mut context.sim, &mut context.controllers, &mut context.vertical, now, daemon_set)
        }
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
        Action::UpdateGroup(group) => node_groups::update(&mut context.sim, &mut context.node_groups, now, group),
        Action::UpdateVersion(update) => {
            node_groups::begin_update(&mut context.sim, &mut context.node_groups, now, *update)
        }
        Action::RefreshGroup(refresh) => {
            node_groups::begin_refresh(&mut context.sim, &mut context.node_groups, now, refresh)
        }
        Action::ReplaceClass(class) => node_autoscaler::replace_class(context, now, class),
        Action::ReplacePool(pool) => node_autoscaler::replace_pool(context, now, pool),
        Action::ReplaceOverlays(overlays) => node_autoscaler::replace_overlays(context, now, overlays),
        Action::ReplaceBuffers(buffers) => node_autoscaler::replace_buffers(context, now, buffers),
        Action::LabelNamespace(name, labels) => namespaces::apply(context, now, *name, labels),
        Action::ApplyBudget(budget) => {
            let Sim { world, budgets, .. } = &mut context.sim;
            budgets.apply_budget(world, now, budget);
        }
        Action::ApplyQuota(quota) => context.controllers.quotas.apply(&mut context.sim, now, quota),
        Action::ApplyVolume(volume) => context.volumes.apply_volume(&mut context.sim, now, volume),
        Action::ApplyClaim(claim) => volumes::apply_claim(&mut context.sim, &mut context.volumes, now, claim),
        Action::ReplaceRanks(ranks) => {
            node_autoscaler::replace_ranks(&mut context.sim, &mut context.cluster_autoscaler, now, ranks)
        }
        Action::Cordon(nodes) => kubectl::cordon(&mut context.sim, now, nodes),
        Action::Uncordon(nodes) => kubectl::uncordon(&mut context.sim, now, nodes),
        Action::Drain { nodes, force, timeout } => {
            let options = kubectl::drain::Options { force: *force, timeout: *timeout };
            kubectl::drain::begin(&mut context.sim, &mut context.drains, now, nodes, options);
        }
        Action::Delete { kind, namespace, which } => {
            deletion::delete(context, now, *kind, *namespace, which);
        }
        Action::UpgradeControlPlane(release) => control_plane::upgrade(&mut context.sim, now, *release),
        Action::ChangeControlPlaneTier(tier) => control_plane::change_tier(context, now, *tier),
        Action::Autoscale(autoscaler) => {
            replica_loop::apply(
                &mut context.sim,
                &mut context.autoscalers,
                &context.scaled_objects,
                now,
                autoscaler,
                None,
            );
        }
        Action::AutoscaleVertically(autoscaler) => context.vertical.apply(&mut context.sim, now, autoscaler),
        Action::ScaleJobs(plan) => job_loop::apply(
            &mut context.sim,
            &mut context.controllers,
            &mut context.jobs,
            &mut context.queues,
            now,
            plan,
        ),
        Action::ScaleObject(plan) => {
            keda_loop::apply(&mut context.sim, &mut context.autoscalers, &mut context.scaled_objects, now, plan)
        }
    }
}
