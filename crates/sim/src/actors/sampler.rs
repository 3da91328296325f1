//! Samples of the cluster for the report.

use std::collections::BTreeSet;

use super::event::{Event, class};
use super::job_loop::ScaledJobs;
use super::load_loop::Loads;
use super::metrics_server::{self, MetricsServer};
use super::queue_loop::Queues;
use super::replica_loop::ReplicaLoops;
use super::sim::Sim;
use super::usage_loop::{self, Usages};
use super::workload_controllers::Controllers;
use crate::cluster::{NodeOrigin, NodePhase};
use crate::domain::workload::ObjectName;
use crate::domain::{ResourceName, SimTime, WorkloadId, well_known};
use crate::world::record::{BudgetSample, Meter, Sample, WorkloadKind, WorkloadSample};

/// What a sample is taken of.
pub(super) struct Sampling<'c, 's> {
    pub(super) sim: &'c mut Sim<'s>,
    pub(super) controllers: &'c Controllers,
    pub(super) jobs: &'c ScaledJobs<'s>,
    pub(super) autoscalers: &'c ReplicaLoops<'s>,
    pub(super) metrics: &'c MetricsServer,
    pub(super) loads: &'c mut Loads,
    pub(super) usages: &'c Usages,
    pub(super) queues: &'c mut Queues,
    /// Nodes that each reason of Karpenter's disruption may take.
    pub(super) nodes_eligible: [u32; 3],
    /// Nodes that the Cluster Autoscaler does not need.
    pub(super) nodes_unneeded: u32,
}

/// The first sample is taken at the start.
pub(super) fn begin(sim: &mut Sim<'_>) {
    sim.queue.schedule(SimTime::ZERO, class::SAMPLES, Event::Sample);
}

/// Takes one sample.
pub(super) fn sample(cluster: &mut Sampling<'_, '_>, now: SimTime) {
    cluster.sim.queue.schedule_in(cluster.sim.setup.sample_interval, class::SAMPLES, Event::Sample);
    let sample = take(cluster, now);
    cluster.sim.world.note_sample(sample);
}

/// The cluster as it is.
pub(super) fn take(cluster: &mut Sampling<'_, '_>, now: SimTime) -> Sample {
    for load in &mut cluster.loads.all {
        load.model.advance(now);
    }
    let counts = cluster.sim.world.counts();
    let mut sample = Sample {
        at: now,
        pods_pending: counts.pending,
        pods_starting: counts.starting,
        pods_ready: counts.ready,
        nodes_eligible: cluster.nodes_eligible,
        nodes_unneeded: cluster.nodes_unneeded,
        ..Sample::default()
    };
    for id in cluster.sim.world.live_nodes().to_vec() {
        let node = cluster.sim.world.node(id);
        let machine = cluster.sim.machine(id).map(|machine| cluster.sim.ec2.instance(machine.instance).pool);
        if !node.ready {
            // One that was Ready before has not to start: it is lost.
            let is_new = cluster.sim.world.record().nodes[id.index()].ready.is_none();
            sample.nodes_starting += u32::from(node.phase < NodePhase::Terminating && is_new);
            continue;
        }
        if matches!(node.origin, NodeOrigin::Fargate(_)) {
            sample.nodes_fargate += 1;
        } else if machine.is_some_and(|pool| pool.capacity_type == well_known::SPOT) {
            sample.nodes_spot += 1;
        } else {
            sample.nodes_on_demand += 1;
        }
        sample.cpu_requested_milli += node.requested.cpu_milli();
        sample.cpu_allocatable_milli += node.allocatable.cpu_milli();
        sample.memory_requested_bytes += node.requested.memory_bytes();
        sample.memory_allocatable_bytes += node.allocatable.memory_bytes();
    }
    let scalable: Vec<WorkloadId> = cluster
        .sim
        .world
        .workloads()
        .filter(|(_, workload)| workload.kind != WorkloadKind::DaemonSet)
        .map(|(id, _)| id)
        .collect();
    for queue in &mut cluster.queues.all {
        queue.queue.advance(now);
    }
    sample.queues = cluster.queues.all.iter().map(super::queue_loop::QueueLoop::sample).collect();
    sample.metrics.reserve(cluster.autoscalers.all.len());
    for autoscaler in &cluster.autoscalers.all {
        sample.metrics.extend_from_slice(autoscaler.samples());
    }
    if cluster.sim.setup.keeps_meters {
        sample.meters = metered(cluster.loads, cluster.queues)
            .into_iter()
            .map(|id| meter(cluster.sim, cluster.metrics, cluster.loads, now, id))
            .collect();
    }
    sample.budgets = budgets(cluster.sim);
    sample.workloads = scalable.into_iter().map(|id| workload_sample(cluster, now, id)).collect();
    sample
}

/// The workloads for which requests or messages are simulated, in order of id.
fn metered(loads: &Loads, queues: &Queues) -> BTreeSet<WorkloadId> {
    let of_loads = loads.all.iter().filter_map(|load| load.id);
    of_loads.chain(queues.all.iter().filter_map(|queue| queue.id)).collect()
}

/// What requests and messages of a workload came to; its load has been brought to `now`.
fn meter(sim: &Sim<'_>, metrics: &MetricsServer, loads: &Loads, now: SimTime, workload: WorkloadId) -> Meter {
    let load = loads.of.indices(workload).first().and_then(|&load| loads.all.get(load));
    let limit = sim.world.workload(workload).template.limit(ResourceName::MEMORY);
    Meter {
        workload,
        cpu_of_replica: metrics.cpu_of_replica(workload, load, now),
        answered: load.map_or(0.0, |load| load.model.completed()),
        refused: load.map_or(0.0, |load| load.model.refused()),
        given_up: load.map_or(0.0, |load| load.model.given_up()),
        memory: load.and_then(|load| load.memory_of_replica(limit)).map(Box::new),
    }
}

/// The status of every PodDisruptionBudget.
fn budgets(sim: &Sim<'_>) -> Vec<BudgetSample> {
    let budgets = sim.world.budgets().iter().zip(sim.budgets.statuses(&sim.world));
    let sample = budgets.map(|(budget, status)| BudgetSample {
        name: ObjectName { namespace: budget.namespace, name: budget.name },
        expected: status.expected,
        desired_healthy: status.desired_healthy,
        healthy: status.healthy,
        disruptions_allowed: status.disruptions_allowed,
    });
    sample.collect()
}

fn workload_sample(cluster: &mut Sampling<'_, '_>, now: SimTime, id: WorkloadId) -> WorkloadSample {
    let of_jobs = cluster.controllers.job_pods_wanted(cluster.sim, id).or_else(|| cluster.jobs.pods_wanted(id));
    let memory_used_bytes = memory_used(cluster, now, id);
    let workload = cluster.sim.world.workload(id);
    let mut load = cluster.loads.of.indices(id).first().and_then(|&load| cluster.loads.all.get_mut(load));
    let response = load.as_mut().and_then(|load| load.response_seconds());
    let cpu_used_milli = load.as_mut().map_or(0.0, |load| load.cpu_used_milli(now));
    let load = load.as_deref();
    let queued_cpu: i64 =
        cluster.queues.all.iter().filter(|queue| queue.id == Some(id)).map(|queue| queue.cpu_rate()).sum();
    let other_cpu = queued_cpu + cluster.metrics.usage_rate(id);
    WorkloadSample {
        workload: id,
        // Of Jobs a workload counts the Jobs, and not their pods.
        replicas_desired: of_jobs.unwrap_or(workload.replicas),
        replicas_ready: workload.ready,
        requests_per_second: load.map_or(0.0, |load| load.model.throughput()),
        cpu_used_milli: cpu_used_milli + other_cpu as f64 * f64::from(workload.ready) / 1e3,
        memory_used_bytes,
        latency_mean_seconds: response.map(|(mean, _)| mean),
        latency_p99_seconds: response.map(|(_, p99)| p99),
    }
}

/// Memory in use by the Ready pods of a workload, whose load has been brought to `now`, in bytes; `None` if the scenario gives none.
fn memory_used(cluster: &Sampling<'_, '_>, now: SimTime, id: WorkloadId) -> Option<i64> {
    let (world, metrics, loads, usages) = (&cluster.sim.world, cluster.metrics, &*cluster.loads, cluster.usages);
    if !usage_loop::states_memory(loads, usages, id) {
        return None;
    }
    let load = loads.of.indices(id).first().and_then(|&load| loads.all.get(load));
    let cpu_of_replica = metrics.cpu_of_replica(id, load, now);
    let workload = world.workload(id);
    let memory = |pod| {
        let spec = &world.pod(pod).spec;
        let for_requests = load.and_then(|load| load.memory_of(metrics.used_by_pod(pod, cpu_of_replica, now)?));
        let stated = usage_loop::memory_of_pod((&usages.all, &usages.of), id, (spec, workload.ready));
        metrics_server::memory_in_use((for_requests, stated), spec).unwrap_or(0)
    };
    Some(workload.pods.iter().copied().filter(|&pod| world.pod(pod).is_ready()).map(memory).sum())
}
