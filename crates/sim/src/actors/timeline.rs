//! What people do to the cluster, as the scenario's timeline says.

use super::components::Components;
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
pub(super) fn happen(components: &mut Components<'_>, now: SimTime, step: u32) {
    let setup = components.sim.setup;
    let Some(step) = setup.timeline.get(step as usize) else { return };
    match &step.action {
        Action::TakeUp => initial::take_up(components, now),
        Action::Deploy(deployment) => {
            deployments::apply(&mut components.sim, &mut components.controllers, now, deployment)
        }
        Action::DeployStateful(set) => stateful_sets::apply(&mut components.sim, &mut components.controllers, now, set),
        Action::RunJob(job) => jobs::apply_job(&mut components.sim, &mut components.controllers, now, job),
        Action::RunCronJob(cron) => jobs::apply_cron_job(&mut components.sim, &mut components.controllers, now, cron),
        Action::RunPod(pod) => bare_pods::apply(&mut components.sim, now, pod.name, &pod.spec),
        Action::RunDaemon(daemon_set) => daemon_sets::apply(
            &mut components.sim,
            &mut components.controllers,
            &mut components.vertical,
            now,
            daemon_set,
        ),
        Action::Scale { workload, replicas } => {
            if let Some(id) = components.sim.workload_named(*workload) {
                components.sim.world.set_replicas(id, *replicas, now, EventKind::ReplicasSet, "timeline");
                workload_controllers::wake(&mut components.sim, id);
            }
        }
        // The group of another policy: there is nothing to call EC2 for.
        Action::ScaleGroup { group, .. } if components.sim.groups.position(*group).is_none() => {}
        Action::ScaleGroup { group, desired } => {
            if let Err(error) = components.sim.set_desired_capacity(now, *group, *desired, "timeline") {
                components.sim.world.note(now, EventKind::ScalingActivityFailed, None, format!("{group}: {error}"));
            }
        }
        Action::UpdateGroup(group) => node_groups::update(&mut components.sim, &mut components.node_groups, now, group),
        Action::UpdateVersion(update) => {
            node_groups::begin_update(&mut components.sim, &mut components.node_groups, now, *update)
        }
        Action::RefreshGroup(refresh) => {
            node_groups::begin_refresh(&mut components.sim, &mut components.node_groups, now, refresh)
        }
        Action::ReplaceClass(class) => node_autoscaler::replace_class(components, now, class),
        Action::ReplacePool(pool) => node_autoscaler::replace_pool(components, now, pool),
        Action::ReplaceOverlays(overlays) => node_autoscaler::replace_overlays(components, now, overlays),
        Action::ReplaceBuffers(buffers) => node_autoscaler::replace_buffers(components, now, buffers),
        Action::LabelNamespace(name, labels) => {
            let Components { sim, scheduler, namespaces: known, .. } = components;
            if namespaces::apply(sim, scheduler, known, now, *name, labels) {
                node_autoscaler::replace_namespaces(components, now);
            }
        }
        Action::ApplyBudget(budget) => {
            let Sim { world, budgets, .. } = &mut components.sim;
            budgets.apply_budget(world, now, budget);
        }
        Action::ApplyQuota(quota) => components.controllers.quotas.apply(&mut components.sim, now, quota),
        Action::ApplyVolume(volume) => components.volumes.apply_volume(&mut components.sim, now, volume),
        Action::ApplyClaim(claim) => volumes::apply_claim(&mut components.sim, &mut components.volumes, now, claim),
        Action::ReplaceRanks(ranks) => {
            node_autoscaler::replace_ranks(&mut components.sim, &mut components.cluster_autoscaler, now, ranks)
        }
        Action::Cordon(nodes) => kubectl::cordon(&mut components.sim, now, nodes),
        Action::Uncordon(nodes) => kubectl::uncordon(&mut components.sim, now, nodes),
        Action::Drain { nodes, force, timeout } => {
            let options = kubectl::drain::Options { force: *force, timeout: *timeout };
            kubectl::drain::begin(&mut components.sim, &mut components.drains, now, nodes, options);
        }
        Action::Delete { kind, namespace, which } => {
            deletion::delete(components, now, *kind, *namespace, which);
        }
        Action::UpgradeControlPlane(release) => control_plane::upgrade(&mut components.sim, now, *release),
        Action::ChangeControlPlaneTier(tier) => {
            let Components { sim, scheduler, autoscalers, .. } = components;
            control_plane::change_tier(sim, scheduler, autoscalers, now, *tier);
        }
        Action::Autoscale(autoscaler) => {
            replica_loop::apply(
                &mut components.sim,
                &mut components.autoscalers,
                &components.scaled_objects,
                now,
                autoscaler,
                None,
            );
        }
        Action::AutoscaleVertically(autoscaler) => components.vertical.apply(&mut components.sim, now, autoscaler),
        Action::ScaleJobs(plan) => job_loop::apply(
            &mut components.sim,
            &mut components.controllers,
            &mut components.jobs,
            &mut components.queues,
            now,
            plan,
        ),
        Action::ScaleObject(plan) => keda_loop::apply(
            &mut components.sim,
            &mut components.autoscalers,
            &mut components.scaled_objects,
            now,
            plan,
        ),
    }
}
