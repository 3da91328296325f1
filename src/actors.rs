//! The event handlers: each collects a view, calls a decision and applies its plan through the world.
//!
//! A handler is a function of (context, now, event). It reads the [`World`](crate::world::World), asks `policy` what to
//! do, and changes the world through named operations, giving the reason that the decision gave. What it wants done later
//! it puts on the event queue.
//!
//! What must not live here: arithmetic that a real controller could use (`policy`), and the reading of files
//! (`scenario`).

mod cluster_autoscaler;
mod context;
mod control_plane;
mod cpu_shares;
mod cpu_use;
mod drift;
mod event;
mod eviction;
pub mod inquiry;
mod interruption;
mod job_loop;
mod karpenter;
mod keda_loop;
mod kubelet;
mod load_loop;
mod memory_limits;
mod metrics_server;
mod names;
mod node_autoscaler;
mod node_groups;
mod node_life;
mod pod_trace;
mod probes;
mod prometheus;
mod queue_loop;
mod replica_loop;
mod restarts;
mod sampler;
mod scheduler_loop;
mod setup;
mod termination_handler;
mod terminations;
mod timeline;
mod triggers;
mod volumes;
mod workload_controllers;
mod zone_outage;

pub use context::Context;
pub use event::{Event, class};
pub use setup::{
    Action, AdapterPlan, Autoscaler, ClusterAutoscalerSettings, JobPlan, KarpenterSettings, LoadPart, LoadPlan,
    LoadStep, PrometheusPlan, QueuePlan, STREAM_NAMES, ScalingPlan, SeriesPlan, Setup, Step, TriggerReader,
    TriggerSources,
};
pub use volumes::AttachmentId;

use crate::domain::SimTime;
use node_autoscaler::NodeAutoscaler;

/// Puts everything that happens at the start on the queue: node groups, the timeline, samples.
pub fn begin(context: &mut Context<'_>) {
    volumes::begin(context);
    node_groups::begin(context);
    timeline::begin(context);
    interruption::begin(context);
    NodeAutoscaler::of(context.setup).begin(context);
    prometheus::begin(context);
    sampler::begin(context);
}

/// Lets one event happen.
pub fn handle(context: &mut Context<'_>, now: SimTime, event: Event) {
    if zone_outage::holds(context, event) {
        return;
    }
    match event {
        Event::TimelineStep(step) => timeline::happen(context, now, step),
        Event::Reconcile(workload) => workload_controllers::reconcile(context, now, workload),
        Event::ScheduleNext => scheduler_loop::schedule_next(context, now),
        Event::FlushUnschedulable => scheduler_loop::flush(context, now),
        Event::PodStarted(pod) => kubelet::start(context, now, pod),
        Event::VolumeDetached(attachment) => volumes::detached(context, now, attachment),
        Event::PodReady(pod) => kubelet::ready(context, now, pod),
        Event::WorkerStarts(pod) => queue_loop::worker_starts(context, now, pod),
        Event::DaemonGone(pod) => workload_controllers::daemon_sets::come_back(context, now, pod),
        Event::ProbeGivesUp(pod) => probes::give_up(context, now, pod),
        Event::PodStopped(pod) => kubelet::stopped(context, now, pod),
        Event::LoadStep(load, step) => load_loop::step(context, now, load, step),
        Event::LoadShift(load) => load_loop::shift(context, now, load),
        Event::MetricsTick(node) => metrics_server::tick(context, now, node),
        Event::ReplicaSync(autoscaler) => replica_loop::sync(context, now, autoscaler),
        Event::Scrape(series) => prometheus::scrape(context, now, series),
        Event::QueueStep(queue, step) => queue_loop::step(context, now, queue, step),
        Event::QueueShift(queue) => queue_loop::shift(context, now, queue),
        Event::KedaPoll(object) => keda_loop::poll(context, now, object),
        Event::JobPoll(object) => job_loop::poll(context, now, object),
        Event::JobPodDone(pod) => workload_controllers::pod_done(context, now, pod),
        Event::MemoryCheck(load) => memory_limits::check(context, now, load),
        Event::TraceStep => pod_trace::step(context, now),
        Event::TracePodEnds(pod) => pod_trace::pod_ends(context, now, pod),
        Event::TraceAgain => pod_trace::make_again(context, now),
        Event::InstanceRunning(node) => node_life::running(context, now, node),
        Event::NodeRegistered(node) => node_life::registered(context, now, node),
        Event::NodeReady(node) => node_life::ready(context, now, node),
        Event::StartupTaintsRemoved(node) => node_life::startup_taints_removed(context, now, node),
        Event::LaunchAborted(node) => node_life::aborted(context, now, node),
        Event::NodeUnreachable(node) => zone_outage::unreachable(context, now, node),
        Event::PatienceOver(pod) => zone_outage::patience_over(context, now, pod),
        Event::InstanceGone(node) => node_life::gone(context, now, node),
        Event::PoolWarned(pool, number) => interruption::pool_warned(context, now, pool, number),
        Event::PoolReclaims(pool, number) => interruption::pool_reclaims(context, now, pool, number),
        Event::GroupActs(group) => node_groups::acts(context, now, group),
        Event::GroupInService(node) => node_groups::in_service(context, now, node),
        Event::GroupNoticesLoss(node) => node_groups::notices_loss(context, now, node),
        Event::GroupStatusCheck(node) => node_groups::status_check(context, now, node),
        Event::GroupDrainPoll(node) => node_groups::drain_poll(context, now, node),
        Event::TerminationsSent => terminations::send(context, now),
        Event::InterruptionNotice(node) => interruption::notice(context, now, node),
        Event::NodeAutoscaler(event) => node_autoscaler::handle(context, now, event),
        Event::HandlerActs(node, noticed) => termination_handler::act(context, now, node, noticed),
        Event::InterruptionDue(node) => interruption::due(context, now, node),
        Event::FaultBegins(fault) => interruption::fault_begins(context, now, fault),
        Event::FaultEnds(fault) => interruption::fault_ends(context, now, fault),
        Event::Sample => sampler::sample(context, now),
        Event::ReplicaSetSync(slot) => workload_controllers::replica_sets::proceed(context, now, slot),
        Event::DaemonDue(workload, node) => workload_controllers::daemon_sets::due(context, now, workload, node),
        Event::SchedulerCall(pod) => scheduler_loop::call_has_its_turn(context, now, pod),
        Event::StatusCheckFails(node) => zone_outage::status_check_fails(context, now, node),
    }
}
