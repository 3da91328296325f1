//! EKS on Fargate: a pod that a profile takes gets a machine of its own, which nobody else uses and which goes with it.
//!
//! A pod waits for a launch token and for vCPUs of the quota, then for its machine; from then on it is bound to a Node of its own, whose
//! cache of images is empty. Neither kube-scheduler nor a node autoscaler sees it wait.
//!
//! Source: EKS user guide, `fargate` (2024-12 and later). How long a machine takes is assumed: 45 s in the median, between 25 and 150 s,
//! as published measurements have it (2019 to 2022).
//!
//! Deviation: Fargate's patching of its machines, which evicts pods after a notice, is omitted. The effect of a lost
//! zone on them is omitted, too.
//! Deviation: a pod waits if its zone has no free address. Fargate may choose another subnet.
//! Deviation: affinity and topology spread of a pod on Fargate are ignored. Its subnet is drawn evenly or
//! round-robin.
//! Deviation: a pod of a DaemonSet matches no profile, so add-ons of a matching namespace run on their nodes. In a
//! cluster it may be refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::actor_events::ActorEvent;
use super::event::{FargateEvent, class};
use super::node_life;
use super::sim::Sim;
use super::volumes::Volumes;
use crate::cloud::billing::FargatePod;
use crate::cluster::{NewNode, NodeOrigin, NodePhase, PodPhase};
use crate::domain::keda::ScaledJob;
use crate::domain::taints::TaintEffect;
use crate::domain::{
    Labels, NodeId, PodId, ResourceName, Resources, SimDuration, SimTime, Symbol, Taint, WorkloadId, well_known,
};
use crate::manifests::Manifests;
use crate::world::node_operations::LaunchFacts;
use crate::world::record::{EventKind, NodeEnd, WorkloadKind};
use nodecast_model::fargate::{self, Billed};
use nodecast_settings::FargateSettings;

/// Ids of zones in which EKS accepts no cluster subnets.
const WITHOUT_CLUSTER_SUBNETS: [&str; 3] = ["use1-az3", "usw1-az2", "cac1-az3"];

/// How far start times spread, and between which they lie, in seconds.
const SPREAD: f64 = 0.30;
const BOUNDS: (f64, f64) = (25.0, 150.0);
/// Between two looks whether the quota has vCPUs (assumed).
const QUOTA_RETRY: SimDuration = SimDuration::from_secs(30);
/// Between two looks whether a subnet has an address (assumed).
const ADDRESS_RETRY: SimDuration = SimDuration::from_secs(30);

/// What is remembered of pods on Fargate.
#[derive(Debug, Default)]
pub(super) struct Fargate {
    taken: BTreeMap<PodId, AdmittedPod>,
    /// Pods that were there when the run began, with their machines.
    found: BTreeMap<PodId, NodeId>,
    machines: BTreeMap<NodeId, usize>,
    lives: Vec<FargatePod>,
    /// The subnet of each machine that has an address of one.
    subnets: BTreeMap<NodeId, u32>,
    /// Machines of pods that have finished and are not deleted, by workload, the oldest first.
    finished: BTreeMap<WorkloadId, VecDeque<NodeId>>,
    launches: BTreeMap<WorkloadId, u64>,
}

/// A pod that a profile has taken.
#[derive(Clone, Copy, Debug)]
struct AdmittedPod {
    profile: Symbol,
    size: Billed,
    /// Which launch of its workload it is.
    launch: u64,
    /// Whether it has its vCPUs.
    admitted: bool,
    node: Option<NodeId>,
    finished: bool,
}

impl Fargate {
    /// What is billed.
    pub(super) fn lives(&self) -> &[FargatePod] {
        &self.lives
    }
}

/// A pod has been created; whether it is Fargate's.
pub(super) fn pod_created(
    sim: &mut Sim<'_>,
    volumes: &Volumes,
    fargate: &mut Fargate,
    now: SimTime,
    pod: PodId,
) -> bool {
    let Some(settings) = &sim.setup.policy.fargate else { return false };
    let state = sim.world.pod(pod);
    if state.daemon {
        return false;
    }
    let Some(profile) = fargate::chosen(&settings.profiles, state.namespace.as_str(), &state.spec.labels) else {
        return false;
    };
    let (profile, workload) = (profile.name, state.workload);
    let refused = fargate::unsupported(&state.spec, has_foreign_volume(sim, volumes, pod));
    let size = refused.map_or_else(|| fargate::size(&state.spec, &settings.sidecars()), Err);
    match size {
        Err(why) => {
            sim.world.mark_unschedulable(pod, now, || {
                format!("UnsupportedOnFargate: Pod not supported on Fargate: {why} (profile {profile})")
            });
        }
        Ok(size) => {
            let launch = *fargate.launches.entry(workload).and_modify(|launch| *launch += 1).or_insert(0);
            let taken = AdmittedPod { profile, size, launch, admitted: false, node: None, finished: false };
            fargate.taken.insert(pod, taken);
            let token = sim.ec2.take_fargate_token(settings.burst, settings.per_second, now);
            sim.queue.schedule(token, class::MACHINES, FargateEvent::Token(pod));
        }
    }
    true
}

/// Whether one of a pod's volumes is not one of EFS.
fn has_foreign_volume(sim: &Sim<'_>, volumes: &Volumes, pod: PodId) -> bool {
    let state = sim.world.pod(pod);
    let storage = volumes.storage();
    let is_efs = |driver: Symbol| driver.as_str() == "efs.csi.aws.com";
    state.spec.volumes.iter().any(|volume| {
        let claim = storage.claim(state.namespace, &volume.claim_name(sim.world.pod_name(pod)));
        let bound = claim.and_then(|claim| storage.bound(claim)).and_then(|volume| volume.driver);
        !bound.is_some_and(is_efs)
    })
}

/// Lets one event happen.
pub(super) fn handle(sim: &mut Sim<'_>, fargate: &mut Fargate, now: SimTime, event: FargateEvent) {
    match event {
        FargateEvent::Token(pod) => fargate.admit(sim, now, pod),
        FargateEvent::Started(pod) => started(sim, fargate, now, pod),
        FargateEvent::Deleted(node) => close(sim, fargate, now, node),
    }
}

impl Fargate {
    /// A pod has its launch token: it takes vCPUs of the quota, or waits for them.
    fn admit(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let Some(settings) = &sim.setup.policy.fargate else { return };
        let Some(taken) = self.taken.get(&pod).copied() else { return };
        if !sim.ec2.admit_on_fargate(taken.size.cpu_milli, settings.vcpu_quota, now) {
            sim.queue.schedule_in(QUOTA_RETRY, class::MACHINES, FargateEvent::Token(pod));
            return;
        }
        if let Some(admitted_pod) = self.taken.get_mut(&pod) {
            admitted_pod.admitted = true;
        }
        let name = sim.world.workload(sim.world.pod(pod).workload).name.to_string();
        let mut stream = sim.streams.nth("fargate-start", &name, taken.launch);
        let median = settings.start_time.as_secs_f64();
        // The bounds are those of the published median, and move with another one.
        let scale = median / FargateSettings::START_TIME.as_secs_f64();
        let seconds = stream.lognormal(median, SPREAD).clamp(BOUNDS.0 * scale, BOUNDS.1 * scale);
        sim.queue.schedule_in(SimDuration::from_secs_f64(seconds), class::MACHINES, FargateEvent::Started(pod));
    }

    /// The zone of a machine.
    fn zone(&self, sim: &Sim<'_>, pod: PodId, launch: u64) -> Symbol {
        let zones = zones(sim);
        let count = zones.len().max(1) as u64;
        let goes_round = sim.setup.policy.fargate.as_ref().is_some_and(|fargate| fargate.round_robin);
        let chosen = if goes_round {
            self.lives.len() as u64 % count
        } else {
            let name = sim.world.workload(sim.world.pod(pod).workload).name.to_string();
            sim.streams.nth("fargate-zone", &name, launch).word() % count
        };
        zones.get(chosen as usize).copied().unwrap_or(well_known::EMPTY)
    }

    /// A pod is there when the run begins: on a machine of Fargate's, which goes with it.
    pub(super) fn pod_found(&mut self, sim: &Sim<'_>, pod: PodId, node: NodeId) {
        let state = sim.world.node(node);
        if matches!(state.origin, NodeOrigin::Fargate(_)) && !sim.world.pod(pod).daemon {
            self.found.insert(pod, node);
        }
    }

    /// A pod has ended by itself: until it is deleted it goes on costing.
    pub(super) fn pod_finished(&mut self, pod: PodId) {
        if let Some(item) = self.taken.get_mut(&pod) {
            item.finished = true;
        }
    }
}

/// Zones of machines: those of the scenario. Where these are all zones of the region, without those that have no cluster subnets.
///
/// Source: Amazon EKS user guide, `network-reqs` ("Subnet requirements for clusters").
fn zones(sim: &Sim<'_>) -> Vec<Symbol> {
    let (stated, region) = (&sim.setup.scenario.zones, &sim.setup.region);
    let are_default = stated.len() == region.zones.len();
    let excluded = |name: Symbol| {
        region.zones.iter().any(|zone| zone.name == name && WITHOUT_CLUSTER_SUBNETS.contains(&zone.id.as_str()))
    };
    stated.iter().copied().filter(|&name| !(are_default && excluded(name))).collect()
}

/// A pod's machine is there and has registered: the pod is bound to it, and its images are pulled.
fn started(sim: &mut Sim<'_>, fargate: &mut Fargate, now: SimTime, pod: PodId) {
    let Some(taken) = fargate.taken.get(&pod).copied() else { return };
    if sim.world.pod(pod).phase != PodPhase::Pending {
        return;
    }
    let zone = fargate.zone(sim, pod, taken.launch);
    // Every pod has an address of its own.
    let Ok(subnet) = sim.ec2.take_address(zone, now) else {
        sim.queue.schedule_in(ADDRESS_RETRY, class::MACHINES, FargateEvent::Started(pod));
        return;
    };
    let node = add_node(sim, fargate, now, zone, taken);
    if let Some(subnet) = subnet {
        fargate.subnets.insert(node, subnet);
    }
    let life = FargatePod {
        node,
        zone,
        from: now,
        until: None,
        cpu_milli: taken.size.cpu_milli,
        memory_mib: taken.size.memory_mib,
        extra_storage_gib: taken.size.extra_storage_gib,
    };
    fargate.machines.insert(node, fargate.lives.len());
    fargate.lives.push(life);
    if let Some(fargate) = fargate.taken.get_mut(&pod) {
        fargate.node = Some(node);
    }
    sim.publish(ActorEvent::PodPlaced(pod, node));
}

fn add_node(sim: &mut Sim<'_>, fargate: &mut Fargate, now: SimTime, zone: Symbol, taken: AdmittedPod) -> NodeId {
    let AdmittedPod { profile, size, .. } = taken;
    let number = fargate.lives.len() + 1;
    let fargate = Symbol::new("fargate");
    let labels = Labels::new()
        .with(well_known::EKS_COMPUTE_TYPE, fargate)
        .with(well_known::ZONE, zone)
        .with(well_known::REGION, sim.setup.region.name)
        .with(well_known::ARCH, well_known::AMD64)
        .with(well_known::OS, well_known::LINUX);
    let new = NewNode {
        taints: vec![taint()],
        ..NewNode::called(format!("fargate-{number:05}"), NodeOrigin::Fargate(profile))
    };
    let node = sim.world.add_node(new, now, &format!("profile {profile}, {size}"));
    let capacity: Resources = [
        (ResourceName::CPU, size.cpu_milli),
        (ResourceName::MEMORY, size.memory_mib << 20),
        (ResourceName::EPHEMERAL_STORAGE, (size.extra_storage_gib + fargate::STORAGE_INCLUDED_GIB) << 30),
        (ResourceName::PODS, 1),
    ]
    .into_iter()
    .collect();
    let rate = sim.fargate_prices().hourly(size.cpu_milli, size.memory_mib, size.extra_storage_gib);
    let facts = LaunchFacts {
        instance: format!("fargate-{number:05}").into(),
        instance_type: fargate,
        zone,
        capacity_type: fargate,
        arch: well_known::AMD64,
        rate,
        currency: sim.setup.region.currency,
        labels,
        capacity: capacity.clone(),
        allocatable: capacity.clone(),
    };
    sim.world.launch_node(node, &facts, now);
    sim.world.run_instance(node, now);
    let labels = node_life::registration_labels(sim, node);
    sim.world.register_node(node, capacity.clone(), capacity, (&labels, &[]), now);
    sim.world.ready_node(node, now);
    sim.publish(ActorEvent::NodeFound(node, None));
    node
}

/// The taint of a machine of Fargate.
pub(super) fn taint() -> Taint {
    let value = Symbol::new("fargate");
    Taint { key: well_known::EKS_COMPUTE_TYPE, value, effect: TaintEffect::NoSchedule }
}

/// A pod is gone: so is its machine, unless it has finished and nobody has deleted it.
pub(super) fn pod_gone(sim: &mut Sim<'_>, fargate: &mut Fargate, now: SimTime, pod: PodId) {
    if let Some(node) = fargate.found.remove(&pod) {
        return close_found(sim, now, node);
    }
    let Some(taken) = fargate.taken.remove(&pod) else { return };
    let Some(node) = taken.node else {
        if taken.admitted {
            sim.ec2.release_on_fargate(taken.size.cpu_milli, now);
        }
        return;
    };
    if !taken.finished {
        return close(sim, fargate, now, node);
    }
    let workload = sim.world.pod(pod).workload;
    if let Some(after) = deleted_after(sim, workload) {
        sim.queue.schedule_in(after, class::MACHINES, FargateEvent::Deleted(node));
        return;
    }
    let kept = kept(sim, workload);
    let finished = fargate.finished.entry(workload).or_default();
    finished.push_back(node);
    if finished.len() > kept
        && let Some(oldest) = finished.pop_front()
    {
        close(sim, fargate, now, oldest);
    }
}

/// What is applied at the start and later.
fn manifests<'s>(sim: &Sim<'s>) -> impl Iterator<Item = &'s Arc<Manifests>> {
    let later = sim.setup.scenario.timeline.iter().filter_map(|timed| timed.action.applied());
    std::iter::once(&sim.setup.policy.manifests).chain(later)
}

/// Finished Jobs of a workload that stay (`successfulJobsHistoryLimit`).
fn kept(sim: &Sim<'_>, workload: WorkloadId) -> usize {
    let (workload, mut all) = (sim.world.workload(workload), manifests(sim));
    let limit = match workload.kind {
        WorkloadKind::CronJob => all
            .find_map(|one| one.cron_jobs.iter().find(|cron| cron.name == workload.name))
            .map(|cron| cron.successful_jobs_history_limit),
        WorkloadKind::ScaledJob => {
            let is = |job: &&ScaledJob| job.namespace == workload.name.namespace && job.name == workload.name.name;
            all.find_map(|one| one.scaled_jobs.iter().find(is)).map(|job| job.successful_jobs_history_limit)
        }
        _ => None,
    };
    limit.map_or(usize::MAX, |limit| limit as usize)
}

/// How long after its end a Job of a workload is deleted (`ttlSecondsAfterFinished`).
fn deleted_after(sim: &Sim<'_>, workload: WorkloadId) -> Option<SimDuration> {
    let (workload, mut all) = (sim.world.workload(workload), manifests(sim));
    match workload.kind {
        WorkloadKind::Job => all.find_map(|one| one.jobs.iter().find(|job| job.name == workload.name))?.spec.ttl,
        WorkloadKind::CronJob => {
            all.find_map(|one| one.cron_jobs.iter().find(|cron| cron.name == workload.name))?.job.ttl
        }
        _ => None,
    }
}

/// A machine goes that was there when the run began, unless somebody has deleted its node before.
fn close_found(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    if sim.world.node(node).phase <= NodePhase::Registered {
        sim.world.reclaim_instance(node, now, EventKind::InstanceTerminating, NodeEnd::PodGone, "");
        node_life::remove(sim, now, node);
    }
}

/// A machine goes.
fn close(sim: &mut Sim<'_>, fargate: &mut Fargate, now: SimTime, node: NodeId) {
    let Some(place) = fargate.machines.remove(&node) else { return };
    let Some(life) = fargate.lives.get_mut(place) else { return };
    life.until = Some(now);
    sim.ec2.release_on_fargate(life.cpu_milli, now);
    if let Some(subnet) = fargate.subnets.remove(&node) {
        sim.ec2.return_address(subnet);
    }
    sim.world.reclaim_instance(node, now, EventKind::InstanceTerminating, NodeEnd::PodGone, "");
    node_life::remove(sim, now, node);
}
