//! The event handlers: each collects a view, calls a decision and applies its plan through the world.
//!
//! A handler is a function of the shared state, the components that it changes, the time, and the event. It reads the
//! [`World`](crate::world::World), asks a deciding crate what to do, and changes the world through named operations with the reason of the
//! decision. It puts later work on the event queue, and publishes changes that other components listen to.
//!
//! What must not live here: arithmetic that a real controller could use (the deciding crates), and the reading of files
//! (`scenario`).

mod actor_events;
mod budgets;
mod cluster_autoscaler;
mod components;
mod control_plane;
mod cpu_shares;
mod cpu_use;
mod credits;
mod deletion;
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

pub(crate) use cluster_autoscaler::group_template;
pub use components::Components;
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
pub use vertical::PodUsageModel;
pub(crate) use volumes::EBS_DAEMON_SET;

use crate::domain::SimTime;
use crate::domain::{PodId, WorkloadId};
use crate::world::record::WorkloadKind;
use node_autoscaler::NodeAutoscaler;
use workload_controllers::{bare_pods, daemon_sets, deployments, jobs, stateful_sets};

/// Puts everything that happens at the start on the queue: node groups, the timeline, samples.
pub fn begin(components: &mut Components<'_>) {
    components.volumes.begin(&components.sim);
    node_groups::begin(
        &mut components.sim,
        &mut components.startup_taints,
        &mut components.node_groups,
        &components.node_templates,
    );
    timeline::begin(&mut components.sim, &mut components.pod_trace);
    interruption::begin(&mut components.sim);
    NodeAutoscaler::from_setup(components.sim.setup).begin(components);
    prometheus::begin(&mut components.sim);
    sampler::begin(&mut components.sim);
    dispatch::settle(components, SimTime::ZERO);
}

/// The run is over: what was counted on the way is written down.
pub fn end(components: &mut Components<'_>, now: SimTime) {
    components.usages.conclude(&mut components.sim, now);
    components.vertical.end(&mut components.sim, now);
}

/// Hands news to their listeners that a caller outside a handler has published, as an API call in a test does.
pub fn settle(components: &mut Components<'_>, now: SimTime) {
    dispatch::settle(components, now);
}

/// Lets one event happen.
pub fn handle(components: &mut Components<'_>, now: SimTime, event: Event) {
    // News from outside a handler would reach their listeners at a later time than they happened.
    debug_assert!(components.sim.outbox.is_empty(), "news were published outside a handler");
    if components.darkness.holds(&components.sim, event) {
        return;
    }
    react(components, now, event);
    dispatch::settle(components, now);
}

fn react(components: &mut Components<'_>, now: SimTime, event: Event) {
    let Components { sim, images, metrics, loads, usages, vertical, volumes, drains, fargate, .. } = components;
    match event {
        Event::TimelineStep(step) => timeline::happen(components, now, step),
        Event::Workloads(event) => workloads_event(components, now, event),
        Event::Scheduler(event) => scheduler_event(components, now, event),
        Event::Kubelet(event) => kubelet_event(components, now, event),
        Event::Node(event) => node_event(components, now, event),
        Event::Load(event) => load_event(components, now, event),
        Event::Metrics(event) => metrics_event(components, now, event),
        Event::Replicas(event) => replicas_event(components, now, event),
        Event::Group(event) => group_event(components, now, event),
        Event::Cloud(event) => cloud_event(components, now, event),
        Event::VolumeDetached(attachment) => kubelet::volume_detached(sim, images, volumes, now, attachment),
        Event::NodeAutoscaler(event) => node_autoscaler::handle(components, now, event),
        Event::Sample => sampler::sample(&mut components.sampling(), now),
        Event::Fargate(event) => fargate::handle(sim, fargate, now, event),
        Event::DrainLook(drain) => kubectl::drain::look(sim, drains, now, drain),
        Event::Vertical(VerticalEvent::Recommend) => {
            vertical.recommend(sim, loads, metrics, usages, now);
        }
        Event::Vertical(VerticalEvent::Update) => vertical::update(&mut components.resizing(), now),
    }
}

fn workloads_event(components: &mut Components<'_>, now: SimTime, event: WorkloadEvent) {
    let Components { sim, pod_trace, controllers, vertical, .. } = components;
    match event {
        WorkloadEvent::Reconcile(workload) => reconcile(components, now, workload),
        WorkloadEvent::DaemonGone(pod) => {
            workload_controllers::daemon_sets::come_back(sim, controllers, vertical, now, pod)
        }
        WorkloadEvent::JobPodDone(pod) => job_pod_done(components, now, pod),
        WorkloadEvent::ReplicaSetSync(slot) => {
            workload_controllers::replica_sets::proceed(sim, controllers, vertical, now, slot)
        }
        WorkloadEvent::DaemonDue(workload, node) => {
            workload_controllers::daemon_sets::due(sim, controllers, vertical, now, workload, node)
        }
        WorkloadEvent::TraceStep => pod_trace::step(sim, pod_trace, now),
        WorkloadEvent::TracePodEnds(pod) => pod_trace::pod_ends(sim, pod_trace, now, pod),
        WorkloadEvent::TraceAgain => pod_trace::make_again(sim, pod_trace, now),
        WorkloadEvent::JobExpires(workload) => controllers.expire_ended(sim, now, workload),
    }
}

fn scheduler_event(components: &mut Components<'_>, now: SimTime, event: SchedulerEvent) {
    let Components { sim, scheduler, volumes, .. } = components;
    match event {
        SchedulerEvent::ScheduleNext => scheduler_loop::schedule_next(sim, scheduler, volumes, now),
        SchedulerEvent::FlushUnschedulable => scheduler.flush(sim, now),
        SchedulerEvent::SchedulerCall(pod) => scheduler_loop::call_has_its_turn(sim, scheduler, now, pod),
    }
}

fn kubelet_event(components: &mut Components<'_>, now: SimTime, event: KubeletEvent) {
    let Components { sim, back_offs, .. } = components;
    match event {
        KubeletEvent::PodStarted(pod) => kubelet::start(sim, now, pod),
        KubeletEvent::PodReady(pod) => kubelet::ready(sim, now, pod),
        KubeletEvent::ProbeGivesUp(pod) => probes::give_up(sim, back_offs, now, pod),
        KubeletEvent::PodStopped(pod) => kubelet::stopped(sim, now, pod),
        KubeletEvent::WorkerStarts(pod) => worker_starts(components, now, pod),
    }
}

fn node_event(components: &mut Components<'_>, now: SimTime, event: NodeEvent) {
    let Components {
        sim,
        scheduler,
        cpu_shares,
        loads,
        darkness,
        taint_evictions,
        startup_taints,
        node_groups,
        terminations,
        volumes,
        node_templates,
        ..
    } = components;
    match event {
        NodeEvent::InstanceRunning(node) => node_life::running(sim, now, node),
        NodeEvent::NodeRegistered(node) => node_life::registered(sim, startup_taints, node_templates, now, node),
        NodeEvent::NodeReady(node) => node_life::ready(sim, startup_taints, node_groups, now, node),
        NodeEvent::DriverRegistered(node) => volumes::driver_registered(sim, volumes, node),
        NodeEvent::StartupTaintRemoved(node, key) => {
            startup_taints::removed(sim, taint_evictions, startup_taints, now, node, key)
        }
        NodeEvent::LaunchAborted(node) => node_life::aborted(sim, now, node),
        NodeEvent::NodeUnreachable(node) => zone_outage::unreachable(sim, darkness, now, node),
        NodeEvent::PatienceOver(pod) => zone_outage::patience_over(sim, darkness, now, pod),
        NodeEvent::TaintPatienceOver(pod) => taint_evictions.evict(sim, now, pod),
        NodeEvent::InstanceGone(node) => node_life::gone(sim, now, node),
        NodeEvent::TerminationsSent => terminations::send(sim, terminations, now),
        NodeEvent::StatusCheckFails(node) => zone_outage::status_check_fails(sim, darkness, node),
        NodeEvent::CreditsSpent(node) => cpu_shares.spent(sim, loads, now, node),
        NodeEvent::OrphansCollected(node) => deletion::collect_orphans(sim, scheduler, volumes, now, node),
    }
}

fn load_event(components: &mut Components<'_>, now: SimTime, event: LoadEvent) {
    let Components { sim, cpu_shares, back_offs, metrics, loads, queues, usages, vertical, .. } = components;
    match event {
        LoadEvent::LoadStep(load, step) => loads.step(sim, cpu_shares, now, load, step),
        LoadEvent::LoadShift(load) => loads.shift(sim, cpu_shares, now, load),
        LoadEvent::MemoryCheck(load) => memory_check(components, now, load),
        LoadEvent::QueueStep(queue, step) => queues.step(sim, metrics, now, queue, step),
        LoadEvent::QueueShift(queue) => queues.shift(sim, metrics, now, queue),
        LoadEvent::CpuUsageStep(usage, step) => usages.cpu_step(sim, metrics, now, usage, step),
        LoadEvent::MemoryUsageStep(usage, step) => usages.memory_step(sim, usage, step),
        LoadEvent::MemoryLook(pod) => memory_limits::look(sim, back_offs, usages, vertical, now, pod),
        LoadEvent::NodeMemoryLook(node) => node_pressure::look(sim, metrics, loads, usages, now, node),
    }
}

/// The containers of one load are checked.
fn memory_check(components: &mut Components<'_>, now: SimTime, load: u32) {
    for pod in memory_limits::due(&mut components.sim, &components.loads, load) {
        let Components { sim, back_offs, metrics, loads, usages, vertical, .. } = components;
        if let Some((needed, limit)) = memory_limits::over_limit(sim, metrics, loads, usages, now, pod) {
            memory_limits::kill_container(sim, back_offs, vertical, now, (pod, 0), needed, limit);
            // The other replicas have the work of this one, and more memory in use, when it is their turn.
            dispatch::settle(components, now);
        }
    }
}

fn metrics_event(components: &mut Components<'_>, now: SimTime, event: MetricsEvent) {
    let Components { sim, metrics, loads, usages, prometheus, .. } = components;
    match event {
        MetricsEvent::MetricsTick(node) => metrics.tick(sim, loads, usages, now, node),
        MetricsEvent::Scrape(series) => prometheus.scrape(sim, loads, now, series),
    }
}

fn replicas_event(components: &mut Components<'_>, now: SimTime, event: ReplicaEvent) {
    let Components { sim, scaled_objects, jobs, queues, prometheus, .. } = components;
    match event {
        ReplicaEvent::ReplicaSync(autoscaler) => replica_loop::due(&mut components.syncing(), now, autoscaler),
        ReplicaEvent::ReplicaMetrics(autoscaler) => replica_loop::sync(&mut components.syncing(), now, autoscaler),
        ReplicaEvent::KedaPoll(object) => scaled_objects.poll(sim, prometheus, queues, now, object),
        ReplicaEvent::JobPoll(object) => job_loop::poll(sim, jobs, queues, prometheus, now, object),
    }
}

fn group_event(components: &mut Components<'_>, now: SimTime, event: GroupEvent) {
    let Components { sim, darkness, node_groups, node_templates, .. } = components;
    match event {
        GroupEvent::GroupActs(group) => node_groups::acts(sim, node_groups, node_templates, now, group),
        GroupEvent::GroupInService(node) => node_groups.in_service(sim, now, node),
        GroupEvent::GroupNoticesLoss(node) => node_groups.notices_loss(sim, now, node),
        GroupEvent::GroupStatusCheck(node) => node_groups::status_check(sim, darkness, node_groups, now, node),
        GroupEvent::GroupUpkeep(group) => node_groups::upkeep(sim, node_groups, now, group),
        GroupEvent::GroupWarmPool(group) => node_groups::warm_pool_due(sim, node_groups, now, group),
        GroupEvent::GroupRepair(node) => node_groups::repair_due(sim, node_groups, now, node),
        GroupEvent::GroupDrainPoll(node) => node_groups::drain_poll(sim, node_groups, now, node),
    }
}

fn cloud_event(components: &mut Components<'_>, now: SimTime, event: CloudEvent) {
    let Components { sim, interruption, darkness, node_groups, .. } = components;
    match event {
        CloudEvent::PoolWarned(pool, number) => {
            interruption::pool_warned(sim, interruption, node_groups, now, pool, number)
        }
        CloudEvent::PoolReclaims(pool, number) => interruption.pool_reclaims(sim, now, pool, number),
        CloudEvent::InterruptionNotice(node) => interruption::notice(sim, node_groups, now, node),
        CloudEvent::InterruptionDue(node) => interruption::due(sim, now, node),
        CloudEvent::HandlerActs(node, noticed) => termination_handler::act(sim, node_groups, now, node, noticed),
        CloudEvent::BlockCloses(number) => interruption::block_closes(sim, now, number),
        CloudEvent::FaultBegins(fault) => interruption::fault_begins(sim, darkness, node_groups, now, fault),
        CloudEvent::FaultEnds(fault) => interruption::fault_ends(sim, darkness, now, fault),
    }
}

/// A pod that ends by itself has done its work.
fn job_pod_done(components: &mut Components<'_>, now: SimTime, pod: PodId) {
    let Components { sim, pod_trace, back_offs, controllers, jobs, queues, .. } = components;
    match sim.world.workload(sim.world.pod(pod).workload).kind {
        WorkloadKind::ScaledJob => job_loop::pod_done(sim, back_offs, controllers, jobs, queues, now, pod),
        WorkloadKind::Job | WorkloadKind::CronJob => jobs::pod_done(sim, back_offs, controllers, now, pod),
        WorkloadKind::Pods => pod_trace::pod_done(sim, pod_trace, now, pod),
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {}
    }
}

/// A workload's controller makes what is missing and deletes what is too many.
fn reconcile(components: &mut Components<'_>, now: SimTime, workload: WorkloadId) {
    let Components { sim, controllers, jobs, queues, vertical, volumes, .. } = components;
    match sim.world.workload(workload).kind {
        WorkloadKind::Deployment => deployments::reconcile(sim, controllers, vertical, now, workload),
        WorkloadKind::StatefulSet => stateful_sets::reconcile(sim, controllers, vertical, volumes, now, workload),
        WorkloadKind::Job | WorkloadKind::CronJob => jobs::reconcile(sim, controllers, vertical, now, workload),
        WorkloadKind::ScaledJob => job_loop::reconcile(sim, controllers, jobs, queues, vertical, now, workload),
        WorkloadKind::Pods => bare_pods::reconcile(sim, workload),
        WorkloadKind::DaemonSet => daemon_sets::reconcile(sim, controllers, vertical, now, workload),
    }
}

/// A worker whose containers ran before has started.
fn worker_starts(components: &mut Components<'_>, now: SimTime, pod: PodId) {
    let Components { sim, metrics, jobs, queues, .. } = components;
    let (workload, ready) = (sim.world.pod(pod).workload, sim.world.pod(pod).is_ready());
    if sim.world.workload(workload).kind == WorkloadKind::ScaledJob {
        jobs.worker_starts(sim, queues, now, pod);
    } else if ready {
        queues.replicas_changed(sim, metrics, now, workload);
    }
}
