//! How many EBS volumes a node attaches, and since when kube-scheduler can see it.
//!
//! A node whose CSINode does not list the driver yet counts as one without a limit. The driver's pod on the node reports the limit
//! a moment after it is Ready; pods that were bound before may be more than the node attaches, and stay on it. With
//! `preventPodSchedulingIfMissing` of the CSIDriver, kube-scheduler binds no pod with such volumes before.
//!
//! Deviation: if no manifest of the start has the DaemonSet `ebs-csi-node`, kube-scheduler sees the limit of a node
//! from its registration.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`; kubernetes issue 95911; KEP 5030.

use std::collections::BTreeSet;

use super::Volumes;
use crate::actors::actor_events::ActorEvent;
use crate::actors::event::{NodeEvent, class};
use crate::actors::setup::Setup;
use crate::actors::sim::Sim;
use crate::cluster::NodeOrigin;
use crate::domain::pod::VolumeRef;
use crate::domain::taints::{TaintEffect, first_untolerated};
use crate::domain::workload::DaemonSet;
use crate::domain::{KubernetesBehaviour, NodeId, PodId, SimDuration, SimTime, Symbol, Taint, well_known};
use nodecast_karpenter::instance_types::ebs_attach_limit;

/// The DaemonSet of the driver of EBS volumes, as its chart and EKS's add-on call it.
pub(crate) const EBS_DAEMON_SET: &str = "ebs-csi-node";

/// Time from the pod of a CSI driver being Ready until its CSINode names the driver, which then removes its startup taint.
///
/// Source: measured, aws-ebs-csi-driver issue 2447 (v1.39, 2025-04).
pub(in crate::actors) const DRIVER_REGISTERS: SimDuration = SimDuration::from_millis(2_500);

/// Time from a new node being Ready until a volume of EFS is mounted there; the first attempt fails.
///
/// Source: measured, aws-efs-csi-driver issue 1936 (2026-08): containers run 23 s after Ready on 7 of 7 nodes. Assumption: of these the pull
/// of a small image and its start take 2.5 s.
const FIRST_EFS_MOUNT: SimDuration = SimDuration::from_millis(20_500);
const EFS_DRIVER: &str = "efs.csi.aws.com";

/// When the volumes of EFS that a pod uses are mounted on a node that was launched during the run; `None` for a pod without any.
pub(in crate::actors) fn efs_mounted(volumes: &Volumes, sim: &Sim<'_>, pod: PodId, node: NodeId) -> Option<SimTime> {
    let state = sim.world.pod(pod);
    let is_efs = |volume: &VolumeRef| {
        let claim = volumes.storage.claim(state.namespace, &volume.claim_name(sim.world.pod_name(pod)));
        let driver = claim.and_then(|claim| volumes.storage.bound(claim)).and_then(|volume| volume.driver);
        driver.is_some_and(|driver| driver.as_str() == EFS_DRIVER)
    };
    let is_new = sim.machine(node).is_some_and(|machine| machine.boot.ready > SimDuration::ZERO);
    let ready = sim.world.record().nodes.get(node.index())?.ready.filter(|_| is_new)?;
    state.spec.volumes.iter().any(is_efs).then(|| ready + FIRST_EFS_MOUNT)
}

impl Volumes {
    /// A node is there with all that runs on it: its driver has reported how many volumes it attaches.
    pub(in crate::actors) fn node_found(&mut self, sim: &Sim<'_>, node: NodeId, instance_type: Symbol) {
        if let Some(limit) = limit(sim, instance_type) {
            self.limits.insert(node, vec![(well_known::EBS_DRIVER, limit)]);
        }
    }

    /// A new node has registered: its driver has yet to start, where its DaemonSet is known.
    pub(in crate::actors) fn node_registered(&mut self, sim: &mut Sim<'_>, node: NodeId, instance_type: Symbol) {
        let lacks_driver = self.requires_driver && drivers(sim).next().is_some();
        if !runs_ebs_driver(sim, node) && !lacks_driver {
            return self.node_found(sim, node, instance_type);
        }
        if let Some(limit) = limit(sim, instance_type) {
            self.unreported.insert(node, limit);
        }
    }

    /// Drivers without which the node takes no pods with their volumes, and that it does not have.
    pub(in crate::actors) fn missing_drivers(&self, node: NodeId) -> Vec<Symbol> {
        let is_missing = self.requires_driver && self.unreported.contains_key(&node) && self.limits(node).is_empty();
        if is_missing { vec![well_known::EBS_DRIVER] } else { Vec::new() }
    }

    /// A pod is Ready: the driver's reports in a moment.
    pub(in crate::actors) fn pod_ready(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let state = sim.world.pod(pod);
        let Some(node) = state.node.filter(|node| state.daemon && self.unreported.contains_key(node)) else {
            return;
        };
        let is_driver = sim.world.workload(state.workload).name.name.as_str() == EBS_DAEMON_SET;
        if is_driver && self.limits(node).is_empty() {
            sim.queue.schedule(now + DRIVER_REGISTERS, class::MACHINES, NodeEvent::DriverRegistered(node));
        }
    }
}

/// Whether a node without the driver of EBS volumes takes no pods with such volumes: its CSIDriver says so, and the release honours it.
pub(super) fn requires_driver(setup: &Setup<'_>) -> bool {
    let mut drivers = setup.policy.manifests.csi_drivers.iter();
    setup.policy.versions.kubernetes.has(KubernetesBehaviour::VolumeLimitScaling)
        && drivers.any(|driver| driver.name == well_known::EBS_DRIVER && driver.is_required)
}

/// DaemonSets of the driver of EBS volumes.
fn drivers<'s>(sim: &Sim<'s>) -> impl Iterator<Item = &'s DaemonSet> {
    sim.setup.policy.manifests.daemon_sets.iter().filter(|set| set.name.name.as_str() == EBS_DAEMON_SET)
}

fn limit(sim: &Sim<'_>, instance_type: Symbol) -> Option<u32> {
    let kind = sim.setup.region.instance_type(instance_type).filter(|_| !sim.setup.storage.is_empty())?;
    Some(ebs_attach_limit(&kind.facts))
}

/// Whether the driver of EBS volumes has a pod on the node: its DaemonSet is there, and the node is one that it selects and tolerates.
pub(in crate::actors) fn runs_ebs_driver(sim: &Sim<'_>, node: NodeId) -> bool {
    let host = sim.world.node(node);
    if matches!(host.origin, NodeOrigin::Fargate(_)) {
        return false;
    }
    drivers(sim).any(|set| {
        let lasts =
            |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule && taint.key != well_known::TAINT_NOT_READY;
        let repelling = host.taints.iter().filter(lasts);
        set.template.selects_node(&host.labels, host.name.as_str())
            && first_untolerated(repelling, &set.template.tolerations).is_none()
    })
}

/// The driver of a node has reported: kube-scheduler counts its volumes from now on.
pub(in crate::actors) fn driver_registered(sim: &mut Sim<'_>, volumes: &mut Volumes, node: NodeId) {
    if let Some(&limit) = volumes.unreported.get(&node) {
        volumes.limits.insert(node, vec![(well_known::EBS_DRIVER, limit)]);
        sim.publish(ActorEvent::AttachLimitReported(node));
    }
}

impl Volumes {
    /// The number of volumes that a node attaches, if pods on it use that many.
    ///
    /// A node whose limit has been known from the start is never given more.
    pub(super) fn full(&self, node: NodeId) -> Option<u32> {
        let limit = *self.unreported.get(&node)?;
        let attached = self.on_node.get(&node).into_iter().flatten();
        let used = attached.filter(|id| !self.attachments[id.0 as usize].pods.is_empty()).count();
        (used >= limit as usize).then_some(limit)
    }

    /// Pods and nodes that met a limit that kube-scheduler had not seen.
    pub(in crate::actors) fn over_limits(&self) -> (usize, usize) {
        let nodes: BTreeSet<NodeId> = self.refused.iter().map(|(node, _)| *node).collect();
        (self.refused.len(), nodes.len())
    }
}
