//! The cluster that is there when the simulation begins: nodes with the pods on them, as a dump shows them.
//!
//! Each controller takes up what is its own, and nobody waits for anything: what runs, runs. Objects of manifests have been applied
//! before. What must not live here: which node belongs to whom (`simulation`).
//!
//! Deviation: controllers start without their memory, as after a restart: back-offs, missing capacity, and the time
//! since a node is unneeded. A pod of a Job runs for its whole time from the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::actor_events::ActorEvent;
use super::components::Components;
use super::dispatch::settle;
use super::job_loop::ScaledJobs;
use super::node_autoscaler::take_up_node;
use super::node_templates::NodeTemplates;
use super::setup::{InitialNode, InitialPlan};
use super::sim::{Machine, Sim};
use super::workload_controllers::Controllers;
use super::workload_controllers::job_state::FoundJobPod;
use super::workload_controllers::{bare_pods, daemon_sets};
use super::{fargate, kubelet, names, node_life, pod_trace};
use crate::cloud::BootTimes;
use crate::cluster::{NewNode, WorkloadKind};
use crate::domain::node::NodeObject;
use crate::domain::node_pool::AmiFamily;
use crate::domain::pod::{OwnerKind, PodPhase};
use crate::domain::volumes::{NodeVolume, NodeVolumes};
use crate::domain::workload::{Job, JobMaker, ObjectName};
use crate::domain::{
    Labels, NodeId, PodId, PodSpec, ResourceName, SimTime, Symbol, Taint, TaintEffect, WorkloadId, well_known,
};
use crate::single_pass::NamedPod;
use crate::world::found::{FoundNode, FoundPod};
use crate::world::record::NodeOrigin;
use nodecast_karpenter::instance_types::volumes_of_found;

/// Bytes of a gibibyte.
const GIB: i64 = 1 << 30;
/// The root volume of a node that does not say how large it is, in GiB: that of a node class without one.
const VOLUME_GIB: i64 = 20;

/// Where the pods of a dump belong.
struct Owners {
    /// Pods that nothing controls, which their manifests have made just now.
    by_hand: BTreeMap<ObjectName, PodId>,
    workloads: BTreeMap<(&'static str, ObjectName), WorkloadId>,
    /// Jobs that a CronJob or ScaledJob made.
    jobs: BTreeMap<ObjectName, FoundJob>,
}

/// A Job that a CronJob or ScaledJob made before the run began.
#[derive(Clone, Copy)]
struct FoundJob {
    /// What made it.
    workload: WorkloadId,
    /// Its place among those of it that have not ended, and the revision that its pods are of; `None` if it has ended.
    running: Option<(usize, u32)>,
}

/// Nodes and pods are taken up.
pub(super) fn take_up(components: &mut Components<'_>, now: SimTime) {
    let setup = components.sim.setup;
    let Some(initial) = &setup.initial else { return };
    // The pods of a trace that are there from the start are among those that have their nodes.
    pod_trace::step(&mut components.sim, &mut components.pod_trace, now);
    settle(components, now);
    let workloads =
        components.sim.world.workloads().map(|(id, workload)| ((workload.kind.as_str(), workload.name), id)).collect();
    let mut owners = Owners { by_hand: pods_by_hand(&components.sim), workloads, jobs: BTreeMap::new() };
    for &job in &initial.jobs {
        if let Some(workload) = maker_of(&owners, job) {
            find_job(
                &mut components.sim,
                &mut components.controllers,
                &mut components.jobs,
                now,
                &mut owners,
                workload,
                (job.name, Some(job)),
            );
        }
    }
    let nodes: Vec<NodeId> = initial.nodes.iter().map(|node| find_node(components, now, initial, node)).collect();
    settle(components, now);
    for (this_node, &node) in initial.nodes.iter().zip(&nodes) {
        for pod in &this_node.found.pods {
            find_pod(components, now, initial, &mut owners, pod, node);
            settle(components, now);
        }
    }
    for pod in &initial.waiting {
        find_waiting(&mut components.sim, &mut components.controllers, &mut components.jobs, now, &mut owners, pod);
        settle(components, now);
    }
    for (this_node, &node) in initial.nodes.iter().zip(&nodes) {
        daemon_sets::node_found(&mut components.sim, &mut components.controllers, &mut components.vertical, now, node);
        settle(components, now);
        take_up_node(components, now, node, this_node.written.since(initial.seen), this_node.found.node.deleting);
        settle(components, now);
        let added = this_node.found.node.tainted.iter().map(|&(key, at)| (key, initial.instant(Some(at))));
        let added: Vec<_> = added.collect();
        components.taint_evictions.node_found(&mut components.sim, now, node, &added);
        if !this_node.found.node.ready {
            components.darkness.node_found(&mut components.sim, now, node, &added);
        }
    }
    components.node_groups.fill(&mut components.sim);
}

/// A node is there, with its machine if one is known.
fn find_node(
    components: &mut Components<'_>,
    now: SimTime,
    initial: &InitialPlan<'_>,
    initial_node: &InitialNode<'_>,
) -> NodeId {
    let node = &initial_node.found.node;
    let drawn = Some(names::of_found(initial_node.claim.unwrap_or(&node.name), &node.name));
    let volumes = volumes_of(&components.sim, &components.node_templates, initial_node);
    let next = components.sim.world.next_node();
    let instance = initial_node.pool.and_then(|pool| components.sim.ec2.add_running(pool, next, &volumes, now));
    if let (Some(id), Some(has_one)) = (instance, public_address(&components.node_templates, initial_node)) {
        components.sim.ec2.set_public_address(id, has_one);
    }
    let machine = instance.map(|id| {
        let launched = components.sim.ec2.instance(id).clone();
        let (capacity, allocatable) = (node.capacity.clone(), node.allocatable.clone());
        // What its own labels say comes on top.
        let labels = (AmiFamily::AL2023, Labels::new());
        node_life::launch_facts(&components.sim, (id, launched.pool, launched.rate), labels, capacity, allocatable)
    });
    let id = components.sim.world.find_node(FoundNode {
        new: NewNode { drawn, ..NewNode::called(node.name.clone(), initial_node.origin) },
        created: initial.instant(initial_node.created),
        machine,
        labels: &node.labels,
        annotations: &node.annotations,
        taints: &taints_of(node, initial_node.origin),
        capacity: node.capacity.clone(),
        allocatable: node.allocatable.clone(),
        ready: node.ready,
        initialized: initial_node.initialized,
    });
    components.sim.world.describe_kubelet(id, components.sim.setup.policy.versions.kubernetes);
    if let (Some(instance), Some(pool)) = (instance, initial_node.pool) {
        let boot = BootTimes::default();
        components.sim.set_machine(id, Machine { instance, boot });
        if let Some(group) = initial_node.group {
            components.sim.groups.adopt(group, instance, &components.sim.ec2);
        }
        components.volumes.node_found(&components.sim, id, pool.instance_type);
        components.sim.publish(ActorEvent::InstanceLaunched(id, pool));
    }
    components.scheduler.node_changed(&mut components.sim, &mut components.volumes, now, id);
    components.metrics.node_registered(&mut components.sim, id);
    id
}

/// The taints of a node: the node lifecycle controller has one for each that is not Ready, whether the dump was taken before it was put there
/// or not.
///
/// One of Fargate has the taint of Fargate, which no pod bears that Fargate's own scheduler has not put there.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, `doNoScheduleTaintingPass`; EKS user guide,
/// `fargate`.
fn taints_of(node: &NodeObject, origin: NodeOrigin) -> Vec<Taint> {
    let mut taints = node.taints.clone();
    let unready = [well_known::TAINT_NOT_READY, well_known::TAINT_UNREACHABLE];
    if !node.ready && !taints.iter().any(|taint| unready.contains(&taint.key)) {
        taints.push(Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule));
    }
    let of_fargate = fargate::taint();
    if matches!(origin, NodeOrigin::Fargate(_)) && !taints.iter().any(|taint| taint.key == of_fargate.key) {
        taints.push(of_fargate);
    }
    taints
}

/// What the class of a node that was found says of its public address.
fn public_address(node_templates: &NodeTemplates, initial_node: &InitialNode<'_>) -> Option<bool> {
    let NodeOrigin::NodePool(pool) = initial_node.origin else { return None };
    node_templates.of_pool(pool)?.1.public_address
}

/// The EBS volumes of a node that was found: those that its group or its node class comes to, of which the one for pods is as large as
/// the node says.
fn volumes_of(sim: &Sim<'_>, node_templates: &NodeTemplates, initial_node: &InitialNode<'_>) -> NodeVolumes {
    let gib = initial_node.found.node.capacity.get(ResourceName::EPHEMERAL_STORAGE) / GIB;
    let reported = if gib > 0 { gib + 1 } else { VOLUME_GIB };
    if let Some(group) = initial_node.group {
        let stated = sim.groups.spec(group).volumes.iter().enumerate();
        let volume = |(place, node_volume): (usize, &NodeVolume)| {
            if place == 0 { NodeVolume { gib: reported, ..*node_volume } } else { *node_volume }
        };
        return stated.map(volume).collect();
    }
    let NodeOrigin::NodePool(pool) = initial_node.origin else { return NodeVolumes::gp3(reported) };
    let class = node_templates.of_pool(pool).map(|(_, class)| class);
    let kind = initial_node.pool.and_then(|pool| sim.setup.region.instance_type(pool.instance_type));
    match class.zip(kind) {
        Some((class, kind)) => volumes_of_found(&kind.facts, &class, reported),
        None => NodeVolumes::gp3(reported),
    }
}

/// A pod is on its node.
fn find_pod(
    components: &mut Components<'_>,
    now: SimTime,
    initial: &InitialPlan<'_>,
    owners: &mut Owners,
    pod: &NamedPod,
    node: NodeId,
) {
    let running = pod.phase == PodPhase::Running;
    let found = FoundPod { node, running, ready: pod.ready };
    let created = initial.instant(Some(pod.created));
    let id = match known_pod(owners, pod) {
        Some(id) => {
            components.scheduler.forget(id);
            id
        }
        None => add_pod(
            &mut components.sim,
            &mut components.controllers,
            &mut components.jobs,
            (now, created),
            owners,
            pod,
            node,
        ),
    };
    components.sim.world.place_found_pod(id, created, found);
    components.fargate.pod_found(&components.sim, id, node);
    components.scheduler.pod_found(&mut components.sim, &mut components.volumes, id, node, created);
    components.volumes.pod_bound(&mut components.sim, now, id, node);
    kubelet::found(&mut components.sim, &mut components.images, &mut components.volumes, now, id, found);
    if pod.deleting {
        // Somebody may have given it more or less time than its own, and some of that is over.
        let whole = components.sim.world.pod(id).spec.grace_period();
        let left = pod.gone_by.map_or(whole, |at| initial.until(at));
        kubelet::delete_within(&mut components.sim, now, id, left, false, "it was being deleted when the run began");
    } else if is_of_ended_job(&components.controllers, owners, pod) {
        kubelet::delete(&mut components.sim, now, id, false, "its Job has ended");
    }
}

/// The workload that made a Job.
fn maker_of(owners: &Owners, job: &Job) -> Option<WorkloadId> {
    let (maker, name) = job.maker?;
    let kind = match maker {
        JobMaker::CronJob => WorkloadKind::CronJob,
        JobMaker::ScaledJob => WorkloadKind::ScaledJob,
    };
    owners.workloads.get(&(kind.as_str(), ObjectName { name, ..job.name })).copied()
}

/// A Job is there that `workload` made, with its object if there is one.
fn find_job<'s>(
    sim: &mut Sim<'s>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'s>,
    now: SimTime,
    owners: &mut Owners,
    workload: WorkloadId,
    (name, object): (ObjectName, Option<&'s Job>),
) -> FoundJob {
    let has_ended = object.is_some_and(|job| job.status.end.is_some());
    let running = (!has_ended).then(|| match sim.world.workload(workload).kind {
        WorkloadKind::ScaledJob => jobs.begin_found(sim, now, workload, (name.name, object)),
        _ => controllers.begin_found_job(sim, now, workload, (name.name, object)),
    });
    let found = FoundJob { workload, running };
    owners.jobs.insert(name, found);
    found
}

/// The Job of a pod, if `workload` makes Jobs.
fn job_of<'s>(
    sim: &mut Sim<'s>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'s>,
    now: SimTime,
    owners: &mut Owners,
    workload: WorkloadId,
    pod: &NamedPod,
) -> Option<FoundJob> {
    let kind = sim.world.workload(workload).kind;
    if !matches!(kind, WorkloadKind::CronJob | WorkloadKind::ScaledJob) {
        return None;
    }
    let name = controller_name(pod);
    let known = owners.jobs.get(&name).copied();
    Some(known.unwrap_or_else(|| find_job(sim, controllers, jobs, now, owners, workload, (name, None))))
}

/// Whether a pod is of a Job that had ended before the run began: the controller deletes those that are left.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`, `syncJob` (`deleteActivePods`).
fn is_of_ended_job(controllers: &Controllers, owners: &Owners, pod: &NamedPod) -> bool {
    if pod.spec.owner != OwnerKind::Job {
        return false;
    }
    match owners.jobs.get(&controller_name(pod)) {
        Some(job) => job.running.is_none(),
        None => owner_of(owners, pod).is_some_and(|workload| controllers.jobs_have_ended(workload)),
    }
}

/// What controls a pod, by name.
fn controller_name(pod: &NamedPod) -> ObjectName {
    let name = pod.workload.rsplit('/').next().unwrap_or_default();
    ObjectName { namespace: pod.namespace, name: Symbol::new(name) }
}

/// The pods that nothing controls.
fn pods_by_hand(sim: &Sim<'_>) -> BTreeMap<ObjectName, PodId> {
    let owners = sim.world.workloads().filter(|(_, item)| item.kind == WorkloadKind::Pods);
    let pods = owners
        .flat_map(|(_, vertical_answer)| vertical_answer.pods.iter().map(|&pod| (vertical_answer.name.namespace, pod)));
    let named = |pod| Symbol::new(sim.world.pod_name(pod));
    pods.map(|(namespace, pod)| (ObjectName { namespace, name: named(pod) }, pod)).collect()
}

/// The pod of this name that its manifest has made just now: one that nothing controls.
fn known_pod(owners: &Owners, pod: &NamedPod) -> Option<PodId> {
    let name = ObjectName { namespace: pod.namespace, name: Symbol::new(&pod.name) };
    owners.by_hand.get(&name).copied().filter(|_| pod.spec.owner == OwnerKind::None)
}

/// Adds a pod to the workload that made it; one whose workload is not there belongs to nobody, and nobody makes it again.
fn add_pod<'s>(
    sim: &mut Sim<'s>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'s>,
    (now, created): (SimTime, SimTime),
    owners: &mut Owners,
    pod: &NamedPod,
    node: NodeId,
) -> PodId {
    let Some(workload) = owner_of(owners, pod) else {
        return bare_pods::find(sim, pod.namespace, &pod.spec, pod.name.clone(), created);
    };
    let job = job_of(sim, controllers, jobs, now, owners, workload, pod).and_then(|job| job.running);
    let kind = sim.world.workload(workload).kind;
    let revision = job.map_or(sim.world.workload(workload).revision, |(_, revision)| revision);
    let pinned = (kind == WorkloadKind::DaemonSet).then_some(node);
    let id = sim.world.find_pod((workload, revision), pod.name.clone(), created, pinned);
    if let Some(spec) = spec_of_its_own(&sim.world.pod(id).spec, &pod.spec) {
        sim.world.respecify_pod(id, Arc::new(spec));
    }
    let found = FoundJobPod { id, created, running: pod.phase == PodPhase::Running, deleting: pod.deleting };
    match (kind, job) {
        (WorkloadKind::StatefulSet, _) => controllers.find_ordinal(sim, workload, id),
        (WorkloadKind::Job, _) => controllers.find_job_pod(sim, now, workload, (found, 0)),
        (WorkloadKind::CronJob, Some((place, _))) => controllers.find_job_pod(sim, now, workload, (found, place)),
        (WorkloadKind::ScaledJob, Some((place, _))) => jobs.found(sim, now, workload, (found, place)),
        _ => {}
    }
    id
}

/// The workload that made a pod.
fn owner_of(owners: &Owners, pod: &NamedPod) -> Option<WorkloadId> {
    let name = pod.workload.rsplit('/').next().unwrap_or_default();
    let find = |kind: WorkloadKind, name: &str| {
        let name = ObjectName { namespace: pod.namespace, name: Symbol::new(name) };
        owners.workloads.get(&(kind.as_str(), name)).copied()
    };
    match pod.spec.owner {
        OwnerKind::ReplicaSet => find(WorkloadKind::Deployment, name),
        // What makes pods and is not simulated has become a Deployment of its name, or one for each pod with a volume.
        OwnerKind::Other => find(WorkloadKind::Deployment, name).or_else(|| find(WorkloadKind::Deployment, &pod.name)),
        OwnerKind::DaemonSet => find(WorkloadKind::DaemonSet, name),
        OwnerKind::StatefulSet => find(WorkloadKind::StatefulSet, name),
        OwnerKind::Job => {
            let known = owners.jobs.get(&controller_name(pod)).map(|job| job.workload);
            // A CronJob names its Jobs after itself and the minute, KEDA after their ScaledJob and five letters.
            let makers = [WorkloadKind::CronJob, WorkloadKind::ScaledJob];
            let maker = || makers.iter().find_map(|&kind| find(kind, name.rsplit_once('-')?.0));
            known.or_else(|| find(WorkloadKind::Job, name)).or_else(maker)
        }
        OwnerKind::None | OwnerKind::Node => None,
    }
}

/// What a pod is by itself if it asks for something else than its template: a container that was injected, or resources changed in
/// place.
fn spec_of_its_own(template: &PodSpec, pod_spec: &PodSpec) -> Option<PodSpec> {
    let same = template.requests() == pod_spec.requests();
    (!same).then(|| PodSpec {
        containers: pod_spec.containers.clone(),
        init_containers: pod_spec.init_containers.clone(),
        ..template.clone()
    })
}

/// A pod waits for a node, and has for a while. The controllers make those of their own that wait, but for pods with names; a Job whose
/// pods all wait is there as well.
fn find_waiting<'s>(
    sim: &mut Sim<'s>,
    controllers: &mut Controllers,
    jobs: &mut ScaledJobs<'s>,
    now: SimTime,
    owners: &mut Owners,
    pod: &NamedPod,
) {
    if let Some(workload) = owner_of(owners, pod) {
        job_of(sim, controllers, jobs, now, owners, workload, pod);
    } else if known_pod(owners, pod).is_none() {
        let id = bare_pods::find(sim, pod.namespace, &pod.spec, pod.name.clone(), now);
        sim.publish(ActorEvent::PodCreated(id));
    }
}

#[cfg(test)]
mod tests {
    use super::spec_of_its_own;
    use crate::domain::{Container, PodSpec, ResourceName, Resources};

    fn requesting(milli: i64) -> PodSpec {
        let requests = Resources::from_iter([(ResourceName::CPU, milli)]);
        PodSpec { containers: vec![Container { requests, ..Container::default() }], ..PodSpec::default() }
    }

    #[test]
    fn initial_pod_keeps_differing_requests() {
        assert_eq!(spec_of_its_own(&requesting(100), &requesting(100)), None);
        let spec = spec_of_its_own(&requesting(100), &requesting(250)).unwrap();
        assert_eq!(spec.requests().cpu_milli(), 250);
    }
}
