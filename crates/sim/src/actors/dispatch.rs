//! Routes news of pods, nodes, and instances to their listeners.
//!
//! An actor that changes the cluster publishes the [news](News) with [`Sim::tell`] and does not name the listeners: only this module does. Each
//! kind of news has one arm in [`hear`], which is the order of its listeners. The order is part of the result of a run: the first listener
//! schedules first and draws first. The node autoscaler is the last listener of all news.
//!
//! Must not: decide what a component makes of the news.

use super::actor_events::ActorEvent;
use super::components::Components;
use super::node_autoscaler::{instance_gone, observe};
use super::sim::Sim;
use super::workload_controllers::daemon_sets;
use super::{
    fargate, job_loop, kubelet, metrics_server, node_groups, node_life, pod_gc, restarts, scheduler_loop,
    workload_controllers,
};
use crate::domain::{PodId, SimTime, WorkloadId};
use crate::world::record::WorkloadKind;

/// Hands every published news to its listeners, and what they publish in turn.
pub(super) fn settle(components: &mut Components<'_>, now: SimTime) {
    while let Some(news) = components.sim.outbox.take() {
        hear(components, now, news);
        observe(components, now, news);
        if let ActorEvent::InstanceGone(node) = news
            && !instance_gone(components, now, node)
        {
            node_life::remove(&mut components.sim, now, node);
        }
    }
}

/// All components that listen hear the news, but for the node autoscaler, which is the last.
fn hear(components: &mut Components<'_>, now: SimTime, news: ActorEvent) {
    let Components {
        sim,
        scheduler,
        images,
        pod_trace,
        cpu_shares,
        back_offs,
        controllers,
        metrics,
        jobs,
        loads,
        queues,
        usages,
        vertical,
        interruption,
        darkness,
        taint_evictions,
        startup_taints,
        node_groups,
        terminations,
        volumes,
        fargate,
        ..
    } = components;
    match news {
        ActorEvent::PodCreated(pod) => {
            vertical.admit(sim, pod);
            volumes.pod_created(sim, pod);
            let scheduled = scheduler.pod_created(sim, volumes, pod);
            if scheduled && !fargate::pod_created(sim, volumes, fargate, now, pod) {
                scheduler.queue(sim, now, pod);
            }
        }
        ActorEvent::PodBound(pod, node) => {
            let placed = scheduler.placed(pod);
            volumes.pod_bound(sim, now, pod, node);
            kubelet::take_up(sim, images, volumes, now, pod);
            taint_evictions.pod_bound(sim, now, pod, node);
            scheduler.pod_placed(sim, now, placed);
        }
        ActorEvent::PodStarted(pod) => {
            metrics.pod_started(sim, loads, queues, pod);
            match sim.world.workload(sim.world.pod(pod).workload).kind {
                WorkloadKind::ScaledJob => jobs.pod_started(sim, queues, now, pod),
                WorkloadKind::Job | WorkloadKind::CronJob => controllers.job_pod_started(sim, pod),
                WorkloadKind::Pods => pod_trace.pod_started(sim, pod),
                WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {}
            }
            usages.pod_started(sim, pod);
        }
        ActorEvent::PodAnswers(pod) => kubelet::ready(sim, now, pod),
        ActorEvent::PodServes(pod) => {
            let workload = sim.world.pod(pod).workload;
            metrics_server::begin_serving(sim, metrics, loads, queues, now, pod);
            cpu_shares.pod_ready(sim, loads, pod);
            replicas_changed(components, now, workload);
            components.queues.pod_ready(&mut components.sim, now, pod);
        }
        ActorEvent::PodReady(pod) => {
            controllers.pod_ready(sim, now, pod);
            // A driver reports its limit before it removes its taint.
            volumes.pod_ready(sim, now, pod);
            startup_taints.pod_ready(sim, now, pod);
        }
        ActorEvent::PodStoppedServing(pod) => {
            let workload = sim.world.pod(pod).workload;
            metrics.end_serving(sim, loads, now, pod);
            cpu_shares.pod_unready(sim, loads, pod);
            replicas_changed(components, now, workload);
        }
        ActorEvent::PodStartsUp(pod) => metrics.pod_starts_up(sim, usages, pod),
        ActorEvent::WorkloadApplied(workload) => {
            loads.workload_applied(sim, workload);
            queues.workload_applied(sim, workload);
            usages.workload_applied(sim, workload);
        }
        ActorEvent::JobsCreated(workload) => {
            job_loop::reconcile(sim, controllers, jobs, queues, vertical, now, workload)
        }
        ActorEvent::PodResized(pod) => {
            let workload = sim.world.pod(pod).workload;
            scheduler.pod_resized(sim, volumes, now, pod);
            replicas_changed(components, now, workload);
        }
        ActorEvent::PodRestarted(pod) => {
            metrics.container_restarted(pod);
            restarts::containers_end(sim, back_offs, now, pod);
        }
        ActorEvent::PodPlaced(pod, node) => scheduler_loop::bound_elsewhere(sim, scheduler, now, pod, node),
        ActorEvent::PodFinished(pod) => {
            fargate.pod_finished(pod);
            volumes.pod_finished(sim, pod);
        }
        ActorEvent::ObjectDeleted(pod) => volumes.delete_ended(sim, pod),
        ActorEvent::PodDeleted(pod) => pod_trace.pod_leaves(sim, pod),
        ActorEvent::PodWithdrawn(pod) => scheduler.forget(pod),
        ActorEvent::PodTerminating(pod, _) => {
            scheduler.pod_terminating(pod);
            wake_controller(sim, pod);
        }
        ActorEvent::GraceShortened(pod) => wake_controller(sim, pod),
        ActorEvent::PodGone(pod, node) => {
            volumes.pod_gone(sim, now, pod, false);
            metrics.pod_gone(pod);
            scheduler.pod_removed(sim, now, pod, node);
            if node.is_some() {
                daemon_sets::pod_gone(sim, pod);
            }
            fargate::pod_gone(sim, fargate, now, pod);
            wake_controller(sim, pod);
        }
        // The scheduler has forgotten the node with all that was on it, and an autoscaler hears of the node.
        ActorEvent::PodLost(pod) => {
            volumes.pod_gone(sim, now, pod, true);
            metrics.pod_gone(pod);
            scheduler.forget_told(pod);
            fargate::pod_gone(sim, fargate, now, pod);
            wake_controller(sim, pod);
        }
        ActorEvent::ClaimMade(namespace, name) => scheduler.claim_added(sim, now, (namespace, name)),
        ActorEvent::NodeFound(node, instance_type) => {
            if let Some(instance_type) = instance_type {
                volumes.node_found(sim, node, instance_type);
            }
            scheduler.node_changed(sim, volumes, now, node);
            metrics.node_registered(sim, node);
        }
        ActorEvent::NodeRegistered(node, instance_type) => {
            volumes.node_registered(sim, node, instance_type);
            scheduler.node_changed(sim, volumes, now, node);
            metrics.node_registered(sim, node);
            daemon_sets::node_registered(sim, controllers, vertical, now, node);
        }
        ActorEvent::NodeUntainted(node) => {
            scheduler.node_changed(sim, volumes, now, node);
            daemon_sets::node_untainted(sim, controllers, vertical, now, node);
        }
        ActorEvent::NodeTainted(node) | ActorEvent::AttachLimitReported(node) => {
            scheduler.node_changed(sim, volumes, now, node)
        }
        ActorEvent::NodeRelabelled(node) => {
            scheduler.node_changed(sim, volumes, now, node);
            daemon_sets::node_relabelled(sim, controllers, vertical, now, node);
            taint_evictions.node_changed(sim, now, node);
        }
        ActorEvent::NodeGone(node) => {
            darkness.forget(node);
            scheduler.node_removed(node);
            volumes.node_gone(sim, now, node);
            if !sim.groups.is_in_warm_pool(node) {
                images.forget(node);
            }
            startup_taints.forget(node);
        }
        ActorEvent::NodeLost(node) => node_groups::node_lost(sim, node_groups, node),
        ActorEvent::NodeDeleted(node) => {
            scheduler.node_removed(node);
            pod_gc::node_gone(sim, now, node);
        }
        ActorEvent::TerminationRequested(node) => terminations.request(sim, now, node),
        ActorEvent::GroupChanged(group) => node_groups.wake(sim, now, group),
        ActorEvent::InstanceEndRequested(instance) => node_groups::end_requested(sim, node_groups, now, instance),
        ActorEvent::InstanceLeaves(node) => node_groups.instance_left(sim, now, node),
        ActorEvent::InstanceLaunched(node, pool) => {
            cpu_shares.credits.note(node, pool.instance_type);
            if let Some(former) = node_groups::former_node(sim, node) {
                images.inherit(former, node);
            }
            interruption.launched(sim, now, pool);
        }
        ActorEvent::PodUnschedulable(_)
        | ActorEvent::NodeUsable(_)
        | ActorEvent::NodeRegained(_)
        | ActorEvent::InstanceGone(_)
        | ActorEvent::InterruptionNotice(_)
        | ActorEvent::StatusCheckFails(_)
        | ActorEvent::ControlPlaneUpgraded => {}
    }
}

fn wake_controller(sim: &mut Sim<'_>, pod: PodId) {
    let workload = sim.world.pod(pod).workload;
    workload_controllers::wake(sim, workload);
}

/// The number of Ready replicas of a workload has changed.
fn replicas_changed(components: &mut Components<'_>, now: SimTime, workload: WorkloadId) {
    let Components { sim, cpu_shares, metrics, loads, queues, usages, prometheus, .. } = components;
    loads.replicas_changed(sim, cpu_shares, now, workload);
    usages.replicas_changed(sim, metrics, now, workload);
    prometheus.replicas_changed(sim, loads, workload);
    queues.replicas_changed(sim, metrics, now, workload);
}
