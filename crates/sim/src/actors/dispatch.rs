//! What has become of pods, nodes and instances is told to those who go by it: each kind of news to the same components in the same order.
//!
//! Whoever changes the cluster (the kubelet, the scheduler, the life of a node) does so and hands the [news](News) over
//! ([`Context::tell`]); it does not know who listens, and only this module knows all. A component that is to hear of something gets its line here. The
//! order is part of what a run comes to: what is told first schedules first, and draws first. The cluster has changed before anybody is told.
//!
//! What must not live here: what a component makes of the news.

use super::context::Context;
use super::news::News;
use super::node_autoscaler::observe;
use super::sight::Sight;
use super::sim::Sim;
use super::workload_controllers::daemon_sets;
use super::{fargate, kubelet, load_loop, metrics_server, pod_gc, taint_eviction, workload_controllers};
use crate::domain::{PodId, SimTime};

/// Tells those whom it concerns, at once.
pub(super) fn dispatch(context: &mut Context<'_>, now: SimTime, news: News) {
    match news {
        News::PodCreated(pod) => {
            context.vertical.admit(&mut context.sim, pod);
            context.volumes.pod_created(&mut context.sim, pod);
            let scheduled = context.scheduler.pod_created(&context.sim, &mut context.volumes, pod);
            if scheduled && !fargate::pod_created(context, now, pod) {
                context.scheduler.queue(&mut context.sim, now, pod);
            }
        }
        News::PodUnschedulable(pod) => observe(context, now, Sight::PodUnschedulable(pod)),
        News::PodBound(pod, node) => {
            let placed = context.scheduler.placed(pod);
            context.volumes.pod_bound(&mut context.sim, now, pod, node);
            kubelet::take_up(context, now, pod);
            observe(context, now, Sight::PodBound(pod, node));
            taint_eviction::pod_bound(context, now, pod, node);
            context.scheduler.pod_placed(&mut context.sim, now, placed);
        }
        News::PodStarted(pod) => {
            context.metrics.pod_started(&context.sim, &mut context.loads, &context.queues, pod);
            workload_controllers::pod_started(context, now, pod);
            context.usages.pod_started(&mut context.sim, pod);
        }
        News::PodServes(pod) => {
            let workload = context.world.pod(pod).workload;
            metrics_server::begin_serving(context, now, pod);
            context.cpu_shares.pod_ready(&context.sim, &mut context.loads, pod);
            load_loop::replicas_changed(context, now, workload);
            context.queues.pod_ready(&mut context.sim, now, pod);
        }
        News::PodReady(pod) => {
            context.controllers.pod_ready(&mut context.sim, now, pod);
            // A driver reports its limit before it removes its taint.
            context.volumes.pod_ready(&mut context.sim, now, pod);
            context.startup_taints.pod_ready(&mut context.sim, now, pod);
        }
        News::PodServesNoMore(pod) => {
            let workload = context.world.pod(pod).workload;
            context.metrics.end_serving(&mut context.sim, &mut context.loads, now, pod);
            context.cpu_shares.pod_unready(&context.sim, &mut context.loads, pod);
            load_loop::replicas_changed(context, now, workload);
        }
        News::PodFinished(pod) => context.fargate.pod_finished(pod),
        News::PodDeleted(pod) => context.pod_trace.pod_leaves(&mut context.sim, pod),
        News::PodWithdrawn(pod) => context.scheduler.forget(pod),
        News::PodTerminating(pod, node) => {
            context.scheduler.pod_terminating(pod);
            observe(context, now, Sight::PodTerminating(pod, node));
            wake_controller(context, pod);
        }
        News::PodHurried(pod) => wake_controller(context, pod),
        News::PodGone(pod, node) => {
            context.metrics.pod_gone(pod);
            context.scheduler.pod_removed(&mut context.sim, now, pod, node);
            if node.is_some() {
                daemon_sets::pod_gone(context, pod);
            }
            observe(context, now, Sight::PodGone(node));
            fargate::pod_gone(context, now, pod);
            wake_controller(context, pod);
        }
        // The scheduler has forgotten the node with all that was on it, and an autoscaler hears of the node.
        News::PodLost(pod) => {
            context.metrics.pod_gone(pod);
            context.scheduler.forget_told(pod);
            fargate::pod_gone(context, now, pod);
            wake_controller(context, pod);
        }
        News::ClaimMade(namespace, name) => context.scheduler.claim_added(&mut context.sim, now, (namespace, name)),
        News::NodeRegistered(node, instance_type) => {
            context.volumes.node_registered(&mut context.sim, node, instance_type);
            context.scheduler.node_changed(&mut context.sim, &mut context.volumes, now, node);
            context.metrics.node_registered(&mut context.sim, node);
            daemon_sets::node_registered(context, now, node);
            observe(context, now, Sight::NodeRegistered(node, instance_type));
        }
        News::NodeUntainted(node) => {
            context.scheduler.node_changed(&mut context.sim, &mut context.volumes, now, node);
            daemon_sets::node_untainted(context, now, node);
        }
        News::NodeTainted(node) | News::AttachLimitReported(node) => {
            context.scheduler.node_changed(&mut context.sim, &mut context.volumes, now, node)
        }
        News::NodeRelabelled(node) => {
            context.scheduler.node_changed(&mut context.sim, &mut context.volumes, now, node);
            daemon_sets::node_relabelled(context, now, node);
            taint_eviction::node_changed(context, now, node);
        }
        News::NodeUsable(node) => observe(context, now, Sight::NodeUsable(node)),
        News::NodeLost(node) => observe(context, now, Sight::NodeLost(node)),
        News::NodeRegained(node) => observe(context, now, Sight::NodeRegained(node)),
        News::NodeGone(node) => {
            context.darkness.forget(node);
            context.scheduler.node_removed(node);
            context.volumes.node_gone(&mut context.sim, now, node);
            context.images.forget(node);
            context.startup_taints.forget(node);
            observe(context, now, Sight::NodeGone(node));
        }
        News::NodeDeleted(node) => {
            context.scheduler.node_removed(node);
            observe(context, now, Sight::NodeGone(node));
            pod_gc::node_gone(context, now, node);
        }
        News::InstanceLaunched(pool) => context.interruption.launched(&mut context.sim, now, pool),
        News::InterruptionNotice(node) => observe(context, now, Sight::InterruptionNotice(node)),
        News::StatusCheckFails(node) => observe(context, now, Sight::StatusCheckFails(node)),
        News::ControlPlaneUpgraded => observe(context, now, Sight::ControlPlaneUpgraded),
    }
}

fn wake_controller(sim: &mut Sim<'_>, pod: PodId) {
    let workload = sim.world.pod(pod).workload;
    workload_controllers::wake(sim, workload);
}
