//! Startup taints: taints that a component of the cluster removes from new nodes.
//!
//! Cilium and the CSI drivers of EBS, EFS, and S3 have such taints; the scenario adds others (`cluster.startup_taints`). So are all
//! `startupTaints` of a NodePool, and what Cluster Autoscaler's flags and prefixes declare. A NodePool, a node group, or something
//! else puts the taint on a node, and the component removes it once its pod there is Ready.
//!
//! Must not: decide what an autoscaler makes of a tainted node (the deciding crates).
//!
//! Deviation: nodes that exist when a run starts have no startup taints. A node of a dump keeps those in the dump.
//! Deviation: if no manifest has the component's DaemonSet, the time from Ready is assumed: 10s for Cilium, 7.5s for
//! EFS, 5s for others.
//!
//! Source: Cilium 1.18 `operator/watchers/node_taint.go`; aws-ebs-csi-driver v1.40 `pkg/driver/node.go`, `removeNotReadyTaint`;
//! measured: aws-ebs-csi-driver issue 2447 (2.5 s from the start of the driver to its CSINode), aws-efs-csi-driver issue 1936.

use std::collections::BTreeMap;

use super::actor_events::ActorEvent;
use super::event::{NodeEvent, class};
use super::setup::Setup;
use super::sim::Sim;
use super::taint_eviction::TaintEvictions;
use super::volumes::{DRIVER_REGISTERS, EBS_DAEMON_SET};
use crate::cluster::{NodeOrigin, NodePhase};
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Symbol, Taint};
use nodecast_cluster_autoscaler::templates::{has_startup_prefix, is_startup_taint};
use nodecast_model::auto_mode;

/// Time from Ready to the removal of a taint of which nothing is known.
const ASSUMED: SimDuration = SimDuration::from_secs(5);

/// A component that removes a taint from new nodes.
#[derive(Clone, Copy, Debug)]
struct Component {
    key: &'static str,
    /// Its DaemonSet, as its chart and EKS's add-on call it.
    daemon_set: &'static str,
    /// Time from its pod on the node being Ready.
    after: SimDuration,
    /// Time from the node being Ready, where its DaemonSet is in no manifest.
    assumed: SimDuration,
}

const COMPONENTS: [Component; 4] = [
    Component {
        key: "node.cilium.io/agent-not-ready",
        daemon_set: "cilium",
        after: SimDuration::ZERO,
        assumed: SimDuration::from_secs(10),
    },
    Component {
        key: "ebs.csi.aws.com/agent-not-ready",
        daemon_set: EBS_DAEMON_SET,
        after: DRIVER_REGISTERS,
        assumed: ASSUMED,
    },
    Component {
        key: "efs.csi.aws.com/agent-not-ready",
        daemon_set: "efs-csi-node",
        after: DRIVER_REGISTERS,
        assumed: SimDuration::from_millis(7_500),
    },
    Component {
        key: "s3.csi.aws.com/agent-not-ready",
        daemon_set: "s3-csi-node",
        after: DRIVER_REGISTERS,
        assumed: ASSUMED,
    },
];

/// How a taint leaves new nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaintRemoval {
    /// The DaemonSet whose pod on the node has to be Ready; `None` for the node itself.
    pub daemon_set: Option<ObjectName>,
    /// Time from then until the taint is removed.
    pub after: SimDuration,
    /// Share of new nodes that keep the taint.
    pub stuck: f64,
    /// Whether the time is assumed.
    pub assumed: bool,
}

/// Whether a component or the scenario is known to remove taints with this key.
pub fn is_known_key(setup: &Setup<'_>, key: Symbol) -> bool {
    COMPONENTS.iter().any(|component| component.key == key.as_str())
        || setup.scenario.startup_taints.iter().any(|stated| stated.key == key)
}

/// Whether the taint of a node group is a startup taint by Cluster Autoscaler's flags, or by its name.
pub fn is_declared(setup: &Setup<'_>, taint: &Taint) -> bool {
    match &setup.policy.flags {
        Some(flags) => is_startup_taint(flags, taint),
        None => has_startup_prefix(taint.key),
    }
}

/// How a taint leaves new nodes; `None` for one that stays. Some taints are startup taints because something declares them so.
pub fn removal(setup: &Setup<'_>, key: Symbol, is_declared: bool) -> Option<TaintRemoval> {
    let stated = setup.scenario.startup_taints.iter().find(|stated| stated.key == key);
    let component = COMPONENTS.iter().find(|component| component.key == key.as_str());
    if stated.is_none() && component.is_none() && !is_declared {
        return None;
    }
    let since_ready = stated.is_some_and(|stated| stated.after.is_some());
    let of_component =
        || component.filter(|_| !since_ready).and_then(|component| daemon_set_called(setup, component.daemon_set));
    let daemon_set = stated.and_then(|stated| stated.removed_by).or_else(of_component);
    let usual = match (daemon_set, component) {
        (Some(_), component) => component.map_or(SimDuration::ZERO, |component| component.after),
        (None, component) => component.map_or(ASSUMED, |component| component.assumed),
    };
    Some(TaintRemoval {
        daemon_set,
        after: stated.and_then(|stated| stated.after).unwrap_or(usual),
        stuck: stated.map_or(0.0, |stated| stated.stuck),
        assumed: daemon_set.is_none() && !since_ready,
    })
}

/// A DaemonSet of this name that the policy has at some time of the run and that runs on its nodes.
fn daemon_set_called(setup: &Setup<'_>, name: &str) -> Option<ObjectName> {
    let later = setup.scenario.timeline.iter().filter_map(|timed| timed.action.applied().map(|manifests| &**manifests));
    let all = std::iter::once(&*setup.policy.manifests).chain(later).flat_map(|manifests| &manifests.daemon_sets);
    let of_nodes = setup.policy.auto_mode.is_some();
    all.filter(|set| !(of_nodes && auto_mode::is_part_of_nodes(set)))
        .map(|set| set.name)
        .find(|found| found.name.as_str() == name)
}

/// Startup taints of the nodes of a run.
#[derive(Debug, Default)]
pub(super) struct StartupTaints {
    /// Taints that are going to be removed.
    pending: BTreeMap<NodeId, Vec<Pending>>,
    /// Taints that were removed: a node that registers again has them again.
    removed: BTreeMap<NodeId, Vec<Taint>>,
}

#[derive(Debug)]
struct Pending {
    taint: Taint,
    removal: TaintRemoval,
    /// Whether the removal is on the queue.
    is_due: bool,
}

impl StartupTaints {
    /// Whether a taint of the node is still going to be removed.
    pub(super) fn awaits(&self, node: NodeId) -> bool {
        self.pending.get(&node).is_some_and(|pending| !pending.is_empty())
    }

    /// The node is gone.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.pending.remove(&node);
        self.removed.remove(&node);
    }

    /// The taints that a node gets as it registers besides its own: those of an earlier registration, and those that something puts on
    /// every new node.
    pub(super) fn added(&mut self, sim: &Sim<'_>, node: NodeId) -> Vec<Taint> {
        self.pending.remove(&node);
        let mut added = self.removed.remove(&node).unwrap_or_default();
        let stated = sim.setup.scenario.startup_taints.iter();
        added.extend(stated.filter_map(|stated| Some(Taint::new(stated.key, stated.on_every_node?))));
        added
    }

    /// A node has registered with its taints: those that something removes are watched, but for a share that stays.
    pub(super) fn registered(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let mut pending = Vec::new();
        for (taint, removal) in removals(sim, node) {
            let entity = format!("{}/{}", sim.world.node(node).name, taint.key);
            let is_stuck =
                removal.stuck > 0.0 && sim.streams.stream("startup-taint-stuck", &entity).uniform() < removal.stuck;
            if !is_stuck {
                pending.push(Pending { taint, removal, is_due: false });
            }
        }
        if !pending.is_empty() {
            self.pending.insert(node, pending);
            self.check(sim, now, node);
        }
    }

    /// A node has been there since before the run: its components have removed their taints.
    pub(super) fn settled(&mut self, sim: &mut Sim<'_>, node: NodeId) {
        let taints: Vec<Taint> = removals(sim, node).into_iter().map(|(taint, _)| taint).collect();
        for taint in &taints {
            sim.world.untaint_node(node, taint.key);
        }
        if !taints.is_empty() {
            self.removed.insert(node, taints);
        }
    }

    /// Schedules the removals whose time is known now, because what they wait for is Ready.
    pub(super) fn check(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let Some(pending) = self.pending.get(&node) else { return };
        let is_ready = |pending: &Pending| match pending.removal.daemon_set {
            Some(name) => has_ready_daemon(sim, node, name),
            None => sim.world.node(node).ready,
        };
        let due: Vec<bool> = pending.iter().map(|taint| !taint.is_due && is_ready(taint)).collect();
        let Some(pending) = self.pending.get_mut(&node) else { return };
        for (key, _) in pending.iter_mut().zip(due).filter(|(_, is_due)| *is_due) {
            key.is_due = true;
            let event = NodeEvent::StartupTaintRemoved(node, key.taint.key);
            sim.queue.schedule(now + key.removal.after, class::MACHINES, event);
        }
    }

    /// A pod is Ready: its component may remove taints of its node.
    pub(super) fn pod_ready(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let state = sim.world.pod(pod);
        if let Some(node) = state.node.filter(|_| state.daemon) {
            self.check(sim, now, node);
        }
    }
}

fn removals(sim: &Sim<'_>, node: NodeId) -> Vec<(Taint, TaintRemoval)> {
    let (setup, state) = (sim.setup, sim.world.node(node));
    let is_startup = |taint: &Taint| match state.origin {
        NodeOrigin::NodePool(_) => state.startup_taints.contains(taint),
        _ => is_declared(setup, taint),
    };
    let of_taint = |taint: &Taint| Some((*taint, removal(setup, taint.key, is_startup(taint))?));
    state.taints.iter().filter_map(of_taint).collect()
}

/// Whether a pod of a DaemonSet on the node is Ready.
pub(super) fn has_ready_daemon(sim: &Sim<'_>, node: NodeId, daemon_set: ObjectName) -> bool {
    sim.world.node(node).pods.iter().any(|&pod| {
        let state = sim.world.pod(pod);
        state.daemon && state.is_ready() && sim.world.workload(state.workload).name == daemon_set
    })
}

/// A component removes its taint from the node.
pub(super) fn removed(
    sim: &mut Sim<'_>,
    taint_evictions: &mut TaintEvictions,
    startup_taints: &mut StartupTaints,
    now: SimTime,
    node: NodeId,
    key: Symbol,
) {
    let Some(pending) = startup_taints.pending.get_mut(&node) else { return };
    let gone: Vec<Taint> =
        pending.iter().filter(|taint| taint.is_due && taint.taint.key == key).map(|taint| taint.taint).collect();
    pending.retain(|taint| !(taint.is_due && taint.taint.key == key));
    if gone.is_empty() || sim.world.node(node).phase != NodePhase::Registered {
        return;
    }
    startup_taints.removed.entry(node).or_default().extend(gone);
    sim.world.untaint_node(node, key);
    taint_evictions.node_changed(sim, now, node);
    sim.publish(ActorEvent::NodeUntainted(node));
    if sim.world.node(node).ready && !startup_taints.awaits(node) {
        sim.publish(ActorEvent::NodeUsable(node));
    }
}
