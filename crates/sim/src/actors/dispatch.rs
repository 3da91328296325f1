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
use super::{
    cpu_shares, fargate, interruption, kubelet, load_loop, metrics_server, pod_gc, pod_trace, queue_loop,
    scheduler_loop, startup_taints, taint_eviction, usage_loop, vertical, volumes, workload_controllers, zone_outage,
};
use crate::domain::{PodId, SimTime};

/// Tells those whom it concerns, at once.
pub(super) fn dispatch(context: &mut Context<'_>, now: SimTime, news: News) {
    match news {
        News::PodCreated(pod) => {
            vertical::admit(context, pod);
            volumes::pod_created(context, pod);
            let scheduled = scheduler_loop::pod_created(context, pod);
            if scheduled && !fargate::pod_created(context, now, pod) {
                scheduler_loop::queue(context, now, pod);
            }
        }
        News::PodUnschedulable(pod) => observe(context, now, Sight::PodUnschedulable(pod)),
        News::PodBound(pod, node) => {
            let placed = scheduler_loop::placed(context, pod);
            volumes::pod_bound(context, now, pod, node);
            kubelet::take_up(context, now, pod);
            observe(context, now, Sight::PodBound(pod, node));
            taint_eviction::pod_bound(context, now, pod, node);
            scheduler_loop::pod_placed(context, now, placed);
        }
        News::PodStarted(pod) => {
            metrics_server::pod_started(context, pod);
            workload_controllers::pod_started(context, now, pod);
            usage_loop::pod_started(context, pod);
        }
        News::PodServes(pod) => {
            let workload = context.world.pod(pod).workload;
            metrics_server::begin_serving(context, now, pod);
            cpu_shares::pod_ready(context, pod);
            load_loop::replicas_changed(context, now, workload);
            queue_loop::pod_ready(context, now, pod);
        }
        News::PodReady(pod) => {
            workload_controllers::pod_ready(context, now, pod);
            // A driver reports its limit before it removes its taint.
            volumes::pod_ready(context, now, pod);
            startup_taints::pod_ready(context, now, pod);
        }
        News::PodServesNoMore(pod) => {
            let workload = context.world.pod(pod).workload;
            metrics_server::end_serving(context, now, pod);
            cpu_shares::pod_unready(context, pod);
            load_loop::replicas_changed(context, now, workload);
        }
        News::PodFinished(pod) => fargate::pod_finished(context, pod),
        News::PodDeleted(pod) => pod_trace::pod_leaves(context, pod),
        News::PodWithdrawn(pod) => scheduler_loop::forget(context, pod),
        News::PodTerminating(pod, node) => {
            scheduler_loop::pod_terminating(context, pod);
            observe(context, now, Sight::PodTerminating(pod, node));
            wake_controller(context, pod);
        }
        News::PodHurried(pod) => wake_controller(context, pod),
        News::PodGone(pod, node) => {
            metrics_server::pod_gone(context, pod);
            scheduler_loop::pod_removed(context, now, pod, node);
            if node.is_some() {
                daemon_sets::pod_gone(context, pod);
            }
            observe(context, now, Sight::PodGone(node));
            fargate::pod_gone(context, now, pod);
            wake_controller(context, pod);
        }
        // The scheduler has forgotten the node with all that was on it, and an autoscaler hears of the node.
        News::PodLost(pod) => {
            metrics_server::pod_gone(context, pod);
            scheduler_loop::forget_told(context, pod);
            fargate::pod_gone(context, now, pod);
            wake_controller(context, pod);
        }
        News::ClaimMade(namespace, name) => scheduler_loop::claim_added(context, now, (namespace, name)),
        News::NodeRegistered(node, instance_type) => {
            volumes::node_registered(context, node, instance_type);
            scheduler_loop::node_changed(context, now, node);
            metrics_server::node_registered(context, node);
            daemon_sets::node_registered(context, now, node);
            observe(context, now, Sight::NodeRegistered(node, instance_type));
        }
        News::NodeUntainted(node) => {
            scheduler_loop::node_changed(context, now, node);
            daemon_sets::node_untainted(context, now, node);
        }
        News::NodeTainted(node) | News::AttachLimitReported(node) => scheduler_loop::node_changed(context, now, node),
        News::NodeRelabelled(node) => {
            scheduler_loop::node_changed(context, now, node);
            daemon_sets::node_relabelled(context, now, node);
            taint_eviction::node_changed(context, now, node);
        }
        News::NodeUsable(node) => observe(context, now, Sight::NodeUsable(node)),
        News::NodeLost(node) => observe(context, now, Sight::NodeLost(node)),
        News::NodeRegained(node) => observe(context, now, Sight::NodeRegained(node)),
        News::NodeGone(node) => {
            zone_outage::forget(context, node);
            scheduler_loop::node_removed(context, node);
            volumes::node_gone(context, now, node);
            context.images.forget(node);
            context.startup_taints.forget(node);
            observe(context, now, Sight::NodeGone(node));
        }
        News::NodeDeleted(node) => {
            scheduler_loop::node_removed(context, node);
            observe(context, now, Sight::NodeGone(node));
            pod_gc::node_gone(context, now, node);
        }
        News::InstanceLaunched(pool) => interruption::launched(context, now, pool),
        News::InterruptionNotice(node) => observe(context, now, Sight::InterruptionNotice(node)),
        News::StatusCheckFails(node) => observe(context, now, Sight::StatusCheckFails(node)),
        News::ControlPlaneUpgraded => observe(context, now, Sight::ControlPlaneUpgraded),
    }
}

fn wake_controller(sim: &mut Sim<'_>, pod: PodId) {
    let workload = sim.world.pod(pod).workload;
    workload_controllers::wake(sim, workload);
}
