//! A machine's life: running, registered, Ready, gone.

use super::actor_events::ActorEvent;
use super::event::{NodeEvent, class};
use super::node_groups::NodeGroups;
use super::node_templates::NodeTemplates;
use super::sim::{Machine, Sim};
use super::startup_taints::StartupTaints;
use super::{kubelet, volumes};
use crate::cloud::api::instance_name;
use crate::cloud::{InstanceId, LaunchOutcome, Pool};
use crate::cluster::NodePhase;
use crate::domain::labels::deprecated_node_labels;
use crate::domain::node_pool::{AmiFamily, KubeletConfig};
use crate::domain::taints::TaintEffect;
use crate::domain::{
    HourlyRate, KubernetesBehaviour, Labels, NodeId, Resources, SimDuration, SimTime, Symbol, Taint, well_known,
};
use crate::world::node_operations::LaunchFacts;
use crate::world::record::NodeOrigin;
use nodecast_cluster_autoscaler::aws::promised_devices;
use nodecast_karpenter::instance_types::{NodeSettings, RealNode, add_extended, kubelet_of_nodes, measured_node};

/// What a launched instance adds to its node: place, type, price. Its system is that of the family of its images.
pub(super) fn launch_facts(
    sim: &Sim<'_>,
    (instance, pool, rate): (InstanceId, Pool, HourlyRate),
    (images, mut labels): (AmiFamily, Labels),
    capacity: Resources,
    allocatable: Resources,
) -> LaunchFacts {
    let arch = sim.setup.region.instance_type(pool.instance_type).map_or(well_known::AMD64, |kind| kind.facts.arch);
    labels.set(well_known::INSTANCE_TYPE, pool.instance_type);
    labels.set(well_known::ZONE, pool.zone);
    labels.set(well_known::REGION, sim.setup.region.name);
    labels.set(well_known::ARCH, arch);
    labels.set(well_known::OS, if images.is_windows() { well_known::WINDOWS } else { well_known::LINUX });
    LaunchFacts {
        instance: instance_name(instance).into(),
        instance_type: pool.instance_type,
        zone: pool.zone,
        capacity_type: pool.capacity_type,
        arch,
        rate,
        currency: sim.setup.region.currency,
        labels,
        capacity,
        allocatable,
    }
}

/// What a node is labelled with as it registers, beside what its launch has brought: the same under deprecated names, the id of its
/// zone, and where the driver of EBS volumes runs, the zone under its name. Neither the NodeClaim nor what the Cluster Autoscaler's
/// provider knows of a group without nodes has all of them.
///
/// Source: cloud-provider-aws v1.36 `pkg/providers/v1/instances_v2.go`, `getAdditionalLabels` (since v1.30, pull request 855); for
/// deprecated names see [`deprecated_node_labels`]; aws-ebs-csi-driver v1.40 `pkg/driver/node.go`, `NodeGetInfo`. The controller adds its
/// labels a moment after the kubelet has registered the node and before pods go there, and the driver its own when its pod runs; here all
/// come at once.
pub(super) fn registration_labels(sim: &Sim<'_>, node: NodeId) -> Labels {
    let known = &sim.world.node(node).labels;
    let mut labels = deprecated_node_labels(known);
    let region = &sim.setup.region;
    let zone = known.get(well_known::ZONE).and_then(|zone| region.zone_index(zone)).map(|zone| region.zones[zone].id);
    let labelled = sim.control_plane.has(KubernetesBehaviour::ZoneIdLabel) && known.get(well_known::ZONE_ID).is_none();
    if let Some(id) = zone.filter(|_| labelled) {
        labels.set(well_known::ZONE_ID, id);
    }
    if let Some(zone) = known.get(well_known::ZONE).filter(|_| volumes::runs_ebs_driver(sim, node)) {
        labels.set(well_known::EBS_ZONE, zone);
    }
    labels
}

/// Tells the account how many pods with addresses of their own each node has; nothing where no subnet is stated.
pub(super) fn count_addresses(sim: &mut Sim<'_>) {
    // Pods with IPv6 take none of the addresses that subnets are stated to have.
    let ipv6 = sim.setup.pod_addresses().ipv6;
    if ipv6 || sim.setup.scenario.ec2.cloud.network.subnets.is_empty() {
        return;
    }
    for node in sim.world.live_nodes().to_vec() {
        let state = sim.world.node(node);
        let Some(machine) = sim.machine(node).filter(|_| state.phase == NodePhase::Registered) else { continue };
        let pods = state.pods.iter().filter(|&&pod| !sim.world.pod(pod).daemon).count();
        sim.ec2.set_pods(machine.instance, u32::try_from(pods).unwrap_or(u32::MAX));
    }
}

/// EC2 has launched an instance for a claim: its milestones are put on the queue.
pub(super) fn launched(sim: &mut Sim<'_>, now: SimTime, node: NodeId, machine: Machine) {
    sim.set_machine(node, machine);
    let at = |span: SimDuration| now + span;
    let fate = sim.ec2.boot_fate(machine.instance);
    let first =
        if fate == LaunchOutcome::Aborted { NodeEvent::LaunchAborted(node) } else { NodeEvent::InstanceRunning(node) };
    sim.queue.schedule(at(machine.boot.running), class::MACHINES, first);
    if fate == LaunchOutcome::Joins {
        sim.queue.schedule(at(machine.boot.registered), class::MACHINES, NodeEvent::NodeRegistered(node));
    }
}

/// EC2 gives up the launch: the instance goes without having run.
pub(super) fn aborted(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    let Some(machine) = sim.machine(node) else { return };
    if sim.world.node(node).phase < NodePhase::Terminating {
        let gone_in = sim.ec2.reclaim(machine.instance, now);
        sim.world.abort_instance(node, now);
        goes(sim, now, node, gone_in);
    }
}

/// The instance enters `running`.
pub(super) fn running(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    let Some(machine) = sim.machine(node) else { return };
    if sim.world.node(node).phase < NodePhase::Terminating {
        sim.ec2.mark_running(machine.instance, now);
        sim.world.run_instance(node, now);
    }
}

/// The kubelet registers the node, which is not Ready yet.
pub(super) fn registered(
    sim: &mut Sim<'_>,
    startup_taints: &mut StartupTaints,
    node_templates: &NodeTemplates,
    now: SimTime,
    node: NodeId,
) {
    let Some(machine) = sim.machine(node) else { return };
    let state = sim.world.node(node);
    if state.phase != NodePhase::Launched {
        return;
    }
    let instance_type = sim.ec2.instance(machine.instance).pool.instance_type;
    let Some(offer) = real_offer(sim, node_templates, node, instance_type) else { return };
    let mut taints = vec![
        Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule),
        Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoExecute),
    ];
    taints.extend_from_slice(&state.startup_taints);
    taints.extend(startup_taints.added(sim, node));
    let labels = registration_labels(sim, node);
    sim.world.register_node(node, offer.capacity, offer.allocatable, (&labels, &taints), now);
    startup_taints.registered(sim, now, node);
    sim.publish(ActorEvent::NodeRegistered(node, instance_type));
    let ready_in = machine.boot.ready - machine.boot.registered;
    sim.queue.schedule_in(ready_in, class::MACHINES, NodeEvent::NodeReady(node));
}

/// The node reports Ready: its not-ready taints come off, and pods can be bound.
pub(super) fn ready(
    sim: &mut Sim<'_>,
    startup_taints: &mut StartupTaints,
    node_groups: &mut NodeGroups,
    now: SimTime,
    node: NodeId,
) {
    if sim.world.node(node).phase != NodePhase::Registered {
        return;
    }
    sim.world.ready_node(node, now);
    sim.world.untaint_node(node, well_known::TAINT_NOT_READY);
    sim.publish(ActorEvent::NodeUntainted(node));
    node_groups.node_ready(sim, now, node);
    if startup_taints.awaits(node) {
        startup_taints.check(sim, now, node);
    } else {
        sim.publish(ActorEvent::NodeUsable(node));
    }
}

/// The instance's termination is asked for.
pub(super) fn terminate(sim: &mut Sim<'_>, node: NodeId) {
    if sim.machine(node).is_some() {
        sim.publish(ActorEvent::TerminationRequested(node));
    }
}

/// A machine that has left `running` will be gone in a while.
pub(super) fn goes(sim: &mut Sim<'_>, now: SimTime, node: NodeId, gone_in: SimDuration) {
    sim.queue.schedule(now + gone_in, class::MACHINES, NodeEvent::InstanceGone(node));
    sim.publish(ActorEvent::InstanceLeaves(node));
}

/// The machine is gone, and its last pods with it; the node goes too, at once or when Karpenter looks.
pub(super) fn gone(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    if let Some(machine) = sim.machine(node) {
        sim.ec2.mark_terminated(machine.instance, now);
        for pod in sim.world.node(node).pods.clone() {
            kubelet::lost(sim, now, pod);
        }
    }
    sim.publish(ActorEvent::InstanceGone(node));
}

/// The node goes.
pub(super) fn remove(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    sim.world.remove_node(node, now);
    sim.publish(ActorEvent::NodeGone(node));
}

/// What NodeOverlays have promised of a node: whatever provides it is taken to be installed.
fn extended(sim: &Sim<'_>, node_templates: &NodeTemplates, node: NodeId) -> Resources {
    let promised = &sim.world.node(node).capacity;
    let topology_state = node_templates.extended().filter_map(|name| Some((name, promised.find(name)?)));
    topology_state.collect()
}

/// What the kubelet of the node reports: by the node class of its NodePool, or by its node group; and where a dump shows a node of the same
/// pool or group and type, as that one does.
///
/// Deviation: for a group without a similar node in a dump, the Cluster Autoscaler sees the extended resources in the
/// tags of its Auto Scaling group, as if their provider ran on every node.
pub(super) fn real_offer(
    sim: &Sim<'_>,
    node_templates: &NodeTemplates,
    node: NodeId,
    instance_type: Symbol,
) -> Option<RealNode> {
    let setup = sim.setup;
    let facts = &setup.region.instance_type(instance_type)?.facts;
    let measured = setup.scenario.ec2.measured.get(&instance_type).copied().unwrap_or_default();
    let origin = sim.world.node(node).origin;
    let example = setup.initial.as_ref().and_then(|initial| initial.example(origin, instance_type));
    let as_found = |real_node: RealNode, kubelet: &KubeletConfig, keeps_devices: bool| match example {
        Some(example) => real_node.like(example, NodeSettings { kubelet, measured, keeps_devices }),
        None => real_node,
    };
    match origin {
        NodeOrigin::NodePool(name) => {
            let (pool, class) = node_templates.of_node(node, name)?;
            let kubelet = &kubelet_of_nodes(&pool, &class);
            let reserved_enis = setup.policy.provider_settings().reserved_enis;
            let mut real = measured_node(facts, &class, kubelet, (measured, reserved_enis));
            let extended = extended(sim, node_templates, node);
            add_extended(&mut real.capacity, &mut real.allocatable, &extended);
            Some(as_found(real, kubelet, true))
        }
        NodeOrigin::NodeGroup(name) => {
            let group = setup.policy.manifests.node_groups.iter().find(|group| group.name == name)?;
            let mut real = setup.node_of_group(facts, group);
            if example.is_none() {
                for tags in [&group.tags, &group.own_tags] {
                    add_extended(&mut real.capacity, &mut real.allocatable, &promised_devices(tags));
                }
            }
            Some(as_found(real, &group.kubelet, false))
        }
        // It is as large as its pod, and no instance type says how large that is.
        NodeOrigin::Fargate(_) => None,
    }
}
