//! The event handlers: each collects a view, calls a decision and applies its plan through the world.
//!
//! A handler is a function of (context, now, event). It reads the [`World`](crate::world::World), asks a deciding crate what to
//! do, and changes the world through named operations, giving the reason that the decision gave. What it wants done later
//! it puts on the event queue.
//!
//! What must not live here: arithmetic that a real controller could use (the deciding crates), and the reading of files
//! (`scenario`).

mod cluster_autoscaler;
mod context;
mod control_plane;
mod cpu_shares;
mod cpu_use;
mod credits;
mod dispatch;
mod drift;
mod event;
mod eviction;
mod fargate;
mod initial;
pub mod inquiry;
mod interruption;
mod job_loop;
mod karpenter;
mod keda_loop;
mod kubectl;
mod kubelet;
mod load_loop;
mod load_steps;
mod memory_limits;
mod metrics_server;
mod names;
mod namespaces;
mod news;
mod node_autoscaler;
mod node_groups;
mod node_life;
mod node_pressure;
mod node_templates;
mod of_workloads;
mod pod_gc;
mod pod_trace;
mod probes;
mod prometheus;
mod queue_loop;
mod quotas;
mod replica_loop;
mod restarts;
mod sampler;
mod scheduler_loop;
mod setup;
mod sight;
mod sim;
pub mod startup_taints;
mod taint_eviction;
mod termination_handler;
mod terminations;
mod timeline;
mod triggers;
mod usage_loop;
mod vertical;
mod volumes;
mod workload_controllers;
mod zone_outage;

pub use context::Context;
pub use event::{
    AttachmentId, AutoscalerEvent, CloudEvent, Event, GroupEvent, KarpenterEvent, KubeletEvent, LoadEvent, LoopEvent,
    MetricsEvent, NodeEvent, ReplicaEvent, SchedulerEvent, VerticalEvent, WorkloadEvent, class,
};
pub use kubelet::{BIND, CONTAINER_START, PULL_OVERHEAD};
pub use load_steps::{LoadStep, LoadSteps, Unit as LoadUnit};
pub use setup::{
    Action, AdapterPlan, Autoscaler, ClusterAutoscalerSettings, Example, InitialNode, InitialPlan, JobPlan,
    KarpenterSettings, LoadPart, LoadPlan, PrometheusPlan, QueuePlan, STREAM_NAMES, ScalingPlan, SeriesPlan, Setup,
    Step, TriggerReader, TriggerSources, UsagePlan,
};
pub use sim::Sim;
pub use vertical::{StatedUse, container_states, namespace_limits, respecified};
pub(crate) use volumes::EBS_DAEMON_SET;

use crate::domain::SimTime;
use node_autoscaler::NodeAutoscaler;

/// Puts everything that happens at the start on the queue: node groups, the timeline, samples.
pub fn begin(context: &mut Context<'_>) {
    context.volumes.begin(&context.sim);
    node_groups::begin(context);
    timeline::begin(context);
    interruption::begin(context);
    NodeAutoscaler::of(context.setup).begin(context);
    prometheus::begin(context);
    sampler::begin(context);
}

/// The run is over: what was counted on the way is written down.
pub fn end(context: &mut Context<'_>, now: SimTime) {
    context.usages.conclude(&mut context.sim, now);
    context.vertical.end(&mut context.sim, now);
}

/// Lets one event happen.
pub fn handle(context: &mut Context<'_>, now: SimTime, event: Event) {
    if context.darkness.holds(&context.sim, event) {
        return;
    }
    match event {
        Event::TimelineStep(step) => timeline::happen(context, now, step),
        Event::Workloads(event) => workloads_event(context, now, event),
        Event::Scheduler(event) => scheduler_event(context, now, event),
        Event::Kubelet(event) => kubelet_event(context, now, event),
        Event::Node(event) => node_event(context, now, event),
        Event::Load(event) => load_event(context, now, event),
        Event::Metrics(event) => metrics_event(context, now, event),
        Event::Replicas(event) => replicas_event(context, now, event),
        Event::Group(event) => group_event(context, now, event),
        Event::Cloud(event) => cloud_event(context, now, event),
        Event::VolumeDetached(attachment) => volumes::detached(context, now, attachment),
        Event::NodeAutoscaler(event) => node_autoscaler::handle(context, now, event),
        Event::Sample => sampler::sample(context, now),
        Event::Fargate(event) => fargate::handle(context, now, event),
        Event::DrainLook(drain) => kubectl::drain::look(context, now, drain),
        Event::Vertical(VerticalEvent::Recommend) => {
            let Context { sim, vertical, loads, metrics, usages, .. } = context;
            vertical.recommend(sim, loads, metrics, usages, now);
        }
        Event::Vertical(VerticalEvent::Update) => vertical::update(context, now),
    }
}

fn workloads_event(context: &mut Context<'_>, now: SimTime, event: WorkloadEvent) {
    match event {
        WorkloadEvent::Reconcile(workload) => workload_controllers::reconcile(context, now, workload),
        WorkloadEvent::DaemonGone(pod) => workload_controllers::daemon_sets::come_back(context, now, pod),
        WorkloadEvent::JobPodDone(pod) => workload_controllers::pod_done(context, now, pod),
        WorkloadEvent::ReplicaSetSync(slot) => workload_controllers::replica_sets::proceed(context, now, slot),
        WorkloadEvent::DaemonDue(workload, node) => {
            workload_controllers::daemon_sets::due(context, now, workload, node)
        }
        WorkloadEvent::TraceStep => pod_trace::step(context, now),
        WorkloadEvent::TracePodEnds(pod) => pod_trace::pod_ends(context, now, pod),
        WorkloadEvent::TraceAgain => pod_trace::make_again(context, now),
        WorkloadEvent::JobExpires(workload) => {
            context.controllers.expire_ended(&context.sim, &mut context.volumes, now, workload)
        }
    }
}

fn scheduler_event(context: &mut Context<'_>, now: SimTime, event: SchedulerEvent) {
    match event {
        SchedulerEvent::ScheduleNext => scheduler_loop::schedule_next(context, now),
        SchedulerEvent::FlushUnschedulable => context.scheduler.flush(&mut context.sim, now),
        SchedulerEvent::SchedulerCall(pod) => scheduler_loop::call_has_its_turn(context, now, pod),
    }
}

fn kubelet_event(context: &mut Context<'_>, now: SimTime, event: KubeletEvent) {
    match event {
        KubeletEvent::PodStarted(pod) => kubelet::start(context, now, pod),
        KubeletEvent::PodReady(pod) => kubelet::ready(context, now, pod),
        KubeletEvent::ProbeGivesUp(pod) => probes::give_up(context, now, pod),
        KubeletEvent::PodStopped(pod) => kubelet::stopped(context, now, pod),
        KubeletEvent::WorkerStarts(pod) => queue_loop::worker_starts(context, now, pod),
    }
}

fn node_event(context: &mut Context<'_>, now: SimTime, event: NodeEvent) {
    match event {
        NodeEvent::InstanceRunning(node) => node_life::running(context, now, node),
        NodeEvent::NodeRegistered(node) => node_life::registered(context, now, node),
        NodeEvent::NodeReady(node) => node_life::ready(context, now, node),
        NodeEvent::DriverRegistered(node) => volumes::driver_registered(context, now, node),
        NodeEvent::StartupTaintRemoved(node, key) => startup_taints::removed(context, now, node, key),
        NodeEvent::LaunchAborted(node) => node_life::aborted(context, now, node),
        NodeEvent::NodeUnreachable(node) => zone_outage::unreachable(context, now, node),
        NodeEvent::PatienceOver(pod) => zone_outage::patience_over(context, now, pod),
        NodeEvent::TaintPatienceOver(pod) => taint_eviction::patience_over(context, now, pod),
        NodeEvent::InstanceGone(node) => node_life::gone(context, now, node),
        NodeEvent::TerminationsSent => terminations::send(context, now),
        NodeEvent::StatusCheckFails(node) => zone_outage::status_check_fails(context, now, node),
        NodeEvent::CreditsSpent(node) => context.cpu_shares.spent(&mut context.sim, &mut context.loads, now, node),
        NodeEvent::OrphansCollected(node) => kubectl::delete::collect_orphans(context, now, node),
    }
}

fn load_event(context: &mut Context<'_>, now: SimTime, event: LoadEvent) {
    match event {
        LoadEvent::LoadStep(load, step) => {
            context.loads.step(&mut context.sim, &mut context.cpu_shares, now, load, step)
        }
        LoadEvent::LoadShift(load) => context.loads.shift(&mut context.sim, &mut context.cpu_shares, now, load),
        LoadEvent::MemoryCheck(load) => memory_limits::check(context, now, load),
        LoadEvent::QueueStep(queue, step) => {
            context.queues.step(&mut context.sim, &mut context.metrics, now, queue, step)
        }
        LoadEvent::QueueShift(queue) => context.queues.shift(&mut context.sim, &mut context.metrics, now, queue),
        LoadEvent::CpuUsageStep(usage, step) => {
            context.usages.cpu_step(&mut context.sim, &mut context.metrics, now, usage, step)
        }
        LoadEvent::MemoryUsageStep(usage, step) => context.usages.memory_step(&mut context.sim, usage, step),
        LoadEvent::MemoryLook(pod) => memory_limits::look(context, now, pod),
        LoadEvent::NodeMemoryLook(node) => node_pressure::look(context, now, node),
    }
}

fn metrics_event(context: &mut Context<'_>, now: SimTime, event: MetricsEvent) {
    match event {
        MetricsEvent::MetricsTick(node) => {
            context.metrics.tick(&mut context.sim, &mut context.loads, &context.usages, now, node)
        }
        MetricsEvent::Scrape(series) => context.prometheus.scrape(&mut context.sim, &mut context.loads, now, series),
    }
}

fn replicas_event(context: &mut Context<'_>, now: SimTime, event: ReplicaEvent) {
    match event {
        ReplicaEvent::ReplicaSync(autoscaler) => replica_loop::due(context, now, autoscaler),
        ReplicaEvent::ReplicaMetrics(autoscaler) => replica_loop::sync(context, now, autoscaler),
        ReplicaEvent::KedaPoll(object) => {
            context.scaled_objects.poll(&mut context.sim, &context.prometheus, &mut context.queues, now, object)
        }
        ReplicaEvent::JobPoll(object) => job_loop::poll(context, now, object),
    }
}

fn group_event(context: &mut Context<'_>, now: SimTime, event: GroupEvent) {
    match event {
        GroupEvent::GroupActs(group) => node_groups::acts(context, now, group),
        GroupEvent::GroupInService(node) => context.node_groups.in_service(&mut context.sim, now, node),
        GroupEvent::GroupNoticesLoss(node) => context.node_groups.notices_loss(&mut context.sim, now, node),
        GroupEvent::GroupStatusCheck(node) => node_groups::status_check(context, now, node),
        GroupEvent::GroupDrainPoll(node) => node_groups::drain_poll(context, now, node),
    }
}

fn cloud_event(context: &mut Context<'_>, now: SimTime, event: CloudEvent) {
    match event {
        CloudEvent::PoolWarned(pool, number) => interruption::pool_warned(context, now, pool, number),
        CloudEvent::PoolReclaims(pool, number) => {
            context.interruption.pool_reclaims(&mut context.sim, now, pool, number)
        }
        CloudEvent::InterruptionNotice(node) => interruption::notice(context, now, node),
        CloudEvent::InterruptionDue(node) => interruption::due(context, now, node),
        CloudEvent::HandlerActs(node, noticed) => termination_handler::act(context, now, node, noticed),
        CloudEvent::BlockCloses(number) => interruption::block_closes(context, now, number),
        CloudEvent::FaultBegins(fault) => interruption::fault_begins(context, now, fault),
        CloudEvent::FaultEnds(fault) => interruption::fault_ends(context, now, fault),
    }
}
