//! Machines that answer no more while EC2 goes on calling them running: those of a zone without power, and those whose hardware
//! fails. Nobody is told.
//!
//! What the machines of a zone would have done waits until the power is back; failed hardware does not come back. Meanwhile the node controller finds that leases are
//! not renewed, marks the nodes unreachable and, when the pods' patience is over, evicts them; their replacements need
//! room elsewhere.
//!
//! Source: Kubernetes 1.36 `pkg/controller/nodelifecycle`, `pkg/controller/tainteviction`; admission plugin
//! DefaultTolerationSeconds.
//! Deviation: pods in a zone without power receive no requests from the first moment. In a cluster some requests get
//! lost until the endpoints change. The same holds for pods of a kubelet that stops; in a cluster they serve until their node
//! is not Ready. Machines keep their state: they do not boot again when the power is back. Failed
//! hardware is not recovered, although EC2 may start the instance again on another host.

use std::collections::BTreeMap;

use super::actor_events::ActorEvent;
use super::event::{Event, KubeletEvent, MetricsEvent, NodeEvent, WorkloadEvent, class};
use super::sim::Sim;
use super::{kubelet, node_groups};
use crate::cluster::{NodePhase, PodPhase};
use crate::domain::taints::TaintEffect;
use crate::domain::{
    KubernetesBehaviour, KubernetesVersion, NodeId, PodId, SimDuration, SimTime, Symbol, Taint, well_known,
};

/// How long an unrenewed lease is taken for a hiccup (`--node-monitor-grace-period`), by release.
fn grace(version: KubernetesVersion) -> SimDuration {
    SimDuration::from_secs(if version.has(KubernetesBehaviour::NodeMonitorGrace50s) { 50 } else { 40 })
}

/// How long a pod stays on an unreachable node, or on one that is not Ready, unless it says otherwise.
const PATIENCE: SimDuration = SimDuration::from_secs(300);

/// Machines without power.
#[derive(Debug, Default)]
pub(super) struct Darkness(BTreeMap<NodeId, DarkNode>);

/// A machine without power.
#[derive(Debug, Default)]
struct DarkNode {
    /// Pods that answered before.
    cut_off: Vec<PodId>,
    /// What would have happened on it meanwhile.
    held: Vec<Event>,
    /// Whether it stays so.
    for_good: bool,
}

/// The zone loses power.
pub(super) fn begins(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, zone: Symbol) {
    let hit: Vec<NodeId> = sim.world.live_nodes().iter().copied().filter(|&node| is_in(sim, node, zone)).collect();
    for node in hit {
        // Failed hardware stays as it is.
        if !darkness.is_dark(node) {
            goes_dark(sim, darkness, now, node, Cause::Power);
        }
    }
}

/// Why a machine answers no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// Its zone has no power.
    Power,
    /// Its hardware fails.
    Hardware,
    /// Its kubelet stops; for EC2 it is healthy.
    Kubelet,
}

/// The machine answers no more.
fn goes_dark(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, node: NodeId, cause: Cause) {
    let pods = sim.world.node(node).pods.clone();
    let cut_off: Vec<PodId> = pods.into_iter().filter(|&pod| sim.world.pod(pod).is_ready()).collect();
    for &pod in &cut_off {
        kubelet::cut_off(sim, now, pod);
    }
    darkness.0.insert(node, DarkNode { cut_off, held: Vec::new(), for_good: cause != Cause::Power });
    if cause != Cause::Kubelet {
        node_groups::power_lost(sim, now, node);
    }
    let noticed = grace(sim.setup.policy.versions.kubernetes);
    sim.queue.schedule_in(noticed, class::CONTROLLERS, NodeEvent::NodeUnreachable(node));
}

/// From the failure of a machine's hardware to the first status check that finds it: they come every minute.
const STATUS_CHECK: SimDuration = SimDuration::from_secs(60);

/// The hardware of a machine fails: it answers no more, and EC2's status checks find that.
pub(super) fn hardware_fails(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, node: NodeId) {
    match darkness.0.get_mut(&node) {
        Some(dark) => dark.for_good = true,
        None => goes_dark(sim, darkness, now, node, Cause::Hardware),
    }
    sim.queue.schedule_in(STATUS_CHECK, class::CLOUD, NodeEvent::StatusCheckFails(node));
}

/// The kubelet of a healthy machine stops: EC2's status checks find nothing, so only node repair replaces the node.
pub(super) fn kubelet_stops(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, node: NodeId) {
    if !darkness.is_dark(node) {
        goes_dark(sim, darkness, now, node, Cause::Kubelet);
    }
}

/// EC2's status checks of a machine fail from now on, if it is still there: Karpenter asks for that.
pub(super) fn status_check_fails(sim: &mut Sim<'_>, darkness: &Darkness, node: NodeId) {
    if darkness.is_dark(node) {
        sim.publish(ActorEvent::StatusCheckFails(node));
    }
}

fn is_in(sim: &Sim<'_>, node: NodeId, zone: Symbol) -> bool {
    let alive = matches!(sim.world.node(node).phase, NodePhase::Launched | NodePhase::Registered);
    let machine = sim.machine(node).filter(|_| alive);
    machine.is_some_and(|machine| sim.ec2.instance(machine.instance).pool.zone == zone)
}

impl Darkness {
    /// Whether the node's machine has no power.
    pub(super) fn is_dark(&self, node: NodeId) -> bool {
        self.0.contains_key(&node)
    }

    /// Keeps `event` for later if the machine that it happens on is without power.
    pub(super) fn holds(&mut self, sim: &Sim<'_>, event: Event) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let node = match event {
            Event::Node(NodeEvent::NodeRegistered(node) | NodeEvent::NodeReady(node))
            | Event::Metrics(MetricsEvent::MetricsTick(node)) => Some(node),
            Event::Kubelet(
                KubeletEvent::PodStarted(pod)
                | KubeletEvent::PodReady(pod)
                | KubeletEvent::WorkerStarts(pod)
                | KubeletEvent::ProbeGivesUp(pod)
                | KubeletEvent::PodStopped(pod),
            )
            | Event::Workloads(WorkloadEvent::JobPodDone(pod)) => sim.world.pod(pod).node,
            _ => None,
        };
        let dark = node.and_then(|node| self.0.get_mut(&node));
        dark.is_some_and(|dark| {
            dark.held.push(event);
            true
        })
    }

    /// A node is there when the run begins that is not Ready; its taints were added at these instants. Where the node controller has had time to put the
    /// one there that evicts, its pods leave when what is left of their patience is over. A node that does not answer stops none of them, and
    /// nothing on it comes to an end.
    pub(super) fn node_found(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId, added: &[(Symbol, SimTime)]) {
        let taints = &sim.world.node(node).taints;
        let evicts =
            |key: Symbol| taints.iter().any(|taint| taint.key == key && taint.effect == TaintEffect::NoExecute);
        let keys = [well_known::TAINT_UNREACHABLE, well_known::TAINT_NOT_READY];
        let Some(key) = keys.into_iter().find(|&key| evicts(key)) else { return };
        let is_silent = key == well_known::TAINT_UNREACHABLE;
        if is_silent {
            self.0.insert(node, DarkNode { for_good: true, ..DarkNode::default() });
        }
        let first = added.iter().find(|(this_key, _)| *this_key == key).map_or(now, |&(_, at)| at);
        for pod in sim.world.node(node).pods.clone() {
            let Some(patience) = patience(sim, pod, key) else { continue };
            let due = (first.max(sim.world.pod(pod).created) + patience).max(now);
            let over = if is_silent { NodeEvent::PatienceOver(pod) } else { NodeEvent::TaintPatienceOver(pod) };
            sim.queue.schedule(due, class::CONTROLLERS, over);
        }
    }

    /// The machine is gone for good.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.0.remove(&node);
    }
}

/// The node controller has not heard of the node for too long.
pub(super) fn unreachable(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, node: NodeId) {
    if !darkness.0.contains_key(&node) || sim.world.node(node).phase != NodePhase::Registered {
        return;
    }
    sim.world.lose_node(node, now);
    sim.publish(ActorEvent::NodeLost(node));
    for effect in [TaintEffect::NoSchedule, TaintEffect::NoExecute] {
        sim.world.taint_node(node, Taint::new(well_known::TAINT_UNREACHABLE, effect));
    }
    sim.publish(ActorEvent::NodeTainted(node));
    for pod in sim.world.node(node).pods.clone() {
        if let Some(patience) = patience(sim, pod, well_known::TAINT_UNREACHABLE) {
            sim.queue.schedule_in(patience, class::CONTROLLERS, NodeEvent::PatienceOver(pod));
        }
    }
}

/// How long the pod stays on a node with this taint of the node controller; `None` for ever.
fn patience(sim: &Sim<'_>, pod: PodId, key: Symbol) -> Option<SimDuration> {
    let state = sim.world.pod(pod);
    let taint = Taint::new(key, TaintEffect::NoExecute);
    let tolerated = state.spec.tolerations.iter().find(|toleration| toleration.tolerates(&taint));
    match tolerated {
        // The DaemonSet controller gives its pods this toleration.
        None if state.daemon => None,
        None => Some(PATIENCE),
        Some(toleration) => toleration.toleration_seconds,
    }
}

/// A pod has waited on an unreachable node for as long as it tolerates.
pub(super) fn patience_over(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, pod: PodId) {
    let node = sim.world.pod(pod).node;
    if node.is_some_and(|node| darkness.0.contains_key(&node)) {
        kubelet::delete(sim, now, pod, true, "its node has been unreachable for too long");
    }
}

/// The power is back.
pub(super) fn ends(sim: &mut Sim<'_>, darkness: &mut Darkness, now: SimTime, zone: Symbol) {
    let dark = darkness.0.iter().filter(|(_, dark)| !dark.for_good).map(|(&node, _)| node);
    let back: Vec<NodeId> = dark.filter(|&node| is_in(sim, node, zone)).collect();
    for node in back {
        let Some(dark) = darkness.0.remove(&node) else { continue };
        if sim.world.node(node).phase == NodePhase::Registered {
            sim.world.untaint_node(node, well_known::TAINT_UNREACHABLE);
            sim.world.regain_node(node, now);
            sim.publish(ActorEvent::NodeRegained(node));
            sim.publish(ActorEvent::NodeTainted(node));
        }
        for pod in dark.cut_off {
            if sim.world.pod(pod).phase == PodPhase::Running {
                kubelet::ready(sim, now, pod);
            }
        }
        for event in dark.held {
            sim.queue.schedule(now, class::MACHINES, event);
        }
    }
}
