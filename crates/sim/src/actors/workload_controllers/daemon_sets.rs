//! DaemonSets: a pod on every node that they want, and updates of these.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/daemon`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::actor_events::ActorEvent;
use super::super::event::{WorkloadEvent, class};
use super::super::kubelet;
use super::super::sim::Sim;
use super::{REACTION, begin_workload, is_available, refuse_edit, wake, wake_after};
use crate::actors::vertical::Vertical;
use crate::actors::workload_controllers::Controllers;
use crate::cluster::{NodeOrigin, NodePhase};
use crate::domain::daemon_tolerations::daemon_tolerations;
use crate::domain::pod::{IntOrPercent, OwnerKind};
use crate::domain::taints::{TaintEffect, first_untolerated};
use crate::domain::workload::DaemonSet;
use crate::domain::{NodeId, PodId, PodSpec, SimDuration, SimTime, WorkloadId};
use crate::world::record::{EventKind, WorkloadKind};

/// What the controller remembers of a DaemonSet.
#[derive(Clone, Debug)]
pub(super) struct Daemons {
    applied: DaemonSet,
    /// Whether pods of former templates are being replaced.
    rolling: bool,
    /// Nodes that had a taint which its pods do not tolerate when they registered or changed.
    refused: BTreeSet<NodeId>,
}

/// A DaemonSet is applied: every node that it wants gets a pod; a known one takes over the new template. The selector cannot change.
///
/// Source: Kubernetes 1.36 `pkg/registry/apps/daemonset/strategy.go`, `ValidateUpdate`.
pub(in crate::actors) fn apply(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    daemon_set: &DaemonSet,
) {
    let known = sim.workload_named(daemon_set.name).filter(|id| controllers.daemon_sets.contains_key(id));
    let before = known.and_then(|id| controllers.daemon_sets.get(&id));
    if let Some(workload) =
        known.filter(|_| before.is_some_and(|daemons| daemons.applied.selector != daemon_set.selector))
    {
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), "DaemonSet");
        return refuse_edit(sim, now, workload, "selector");
    }
    let daemons = Daemons {
        applied: daemon_set.clone(),
        rolling: before.is_some_and(|before| before.rolling) && daemon_set.max_unavailable.is_some(),
        refused: before.map(|before| before.refused.clone()).unwrap_or_default(),
    };
    if let Some(workload) = known {
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), "DaemonSet");
        let before = controllers.daemon_sets.insert(workload, daemons);
        if before.is_none_or(|before| before.applied.template != daemon_set.template) {
            controllers.update(sim, now, workload, &daemon_set.template);
        }
        return;
    }
    let template = daemon_template(&daemon_set.template);
    let owner = (OwnerKind::DaemonSet, 0);
    let kind = WorkloadKind::DaemonSet;
    let (workload, _) =
        begin_workload(sim, controllers, now, daemon_set.name, kind, (&daemon_set.selector, &template), owner);
    controllers.daemon_sets.insert(workload, daemons);
    for node in sim.world.live_nodes().to_vec() {
        place_now_or_untainted(sim, controllers, vertical, now, workload, node);
    }
}

impl Controllers {
    /// Pods that are of the new template already, from before a template in between, stay.
    ///
    /// Source: `update.go`, `constructHistory`, which takes up the revision that is alike.
    fn update(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, template: &PodSpec) {
        let template = super::owned_template(&daemon_template(template), OwnerKind::DaemonSet);
        let revision = sim.world.revision_of(workload, template);
        sim.world.use_revision(workload, revision);
        sim.world.note(now, EventKind::RolloutStarted, Some(workload), format!("to revision {}", revision + 1));
        if let Some(daemon_set) = self.daemon_sets.get_mut(&workload) {
            daemon_set.rolling = daemon_set.applied.max_unavailable.is_some();
        }
        wake(sim, workload);
    }

    /// A pod has become Ready: an update may go on.
    pub(super) fn daemon_ready(&mut self, sim: &mut Sim<'_>, workload: WorkloadId) {
        let Some(daemon_set) = self.daemon_sets.get(&workload).filter(|daemon_set| daemon_set.rolling) else { return };
        let min_ready = daemon_set.applied.min_ready;
        wake_after(sim, workload, min_ready);
    }

    /// Notes the end of an update: all pods are of the present template and available.
    fn finish_daemon_update(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, min_ready: SimDuration) {
        let state = sim.world.workload(workload);
        let current = state.revision;
        let done = state
            .pods
            .iter()
            .all(|&pod| sim.world.pod(pod).revision == current && is_available(sim, now, pod, min_ready));
        if done {
            if let Some(daemon_set) = self.daemon_sets.get_mut(&workload) {
                daemon_set.rolling = false;
            }
            sim.world.note(now, EventKind::RolloutFinished, Some(workload), format!("revision {}", current + 1));
        }
    }
}

/// A node has registered: the daemons that it wants are made.
pub(in crate::actors) fn node_registered(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    node: NodeId,
) {
    let daemon_sets: Vec<WorkloadId> = controllers.daemon_sets.keys().copied().collect();
    for workload in daemon_sets {
        place_now_or_untainted(sim, controllers, vertical, now, workload, node);
    }
}

/// Makes the daemon of a node if it wants one. One that is there and does not is looked at again when its taints come off.
fn place_now_or_untainted(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    node: NodeId,
) {
    if wants(sim, workload, node) {
        place(sim, controllers, vertical, now, workload, node);
    } else if stays(sim, node)
        && let Some(daemon_set) = controllers.daemon_sets.get_mut(&workload)
    {
        daemon_set.refused.insert(node);
    }
}

/// Taints of a node have come off: daemons that did not tolerate them are made.
pub(in crate::actors) fn node_untainted(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    node: NodeId,
) {
    let refused = controllers.daemon_sets.iter().filter(|(_, key)| key.refused.contains(&node));
    let refused: Vec<WorkloadId> = refused.map(|(workload, _)| *workload).collect();
    for workload in refused.into_iter().filter(|&workload| wants(sim, workload, node)).collect::<Vec<_>>() {
        if let Some(daemon_set) = controllers.daemon_sets.get_mut(&workload) {
            daemon_set.refused.remove(&node);
        }
        place(sim, controllers, vertical, now, workload, node);
    }
}

/// Labels or taints of a node have changed: DaemonSets that want it now get their pod, and the pods of those go that are not to be on it
/// any longer.
///
/// Source: `daemon_controller.go`, `updateNode`, `podsShouldBeOnNode`.
pub(in crate::actors) fn node_relabelled(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    node: NodeId,
) {
    let daemon_sets: Vec<WorkloadId> = controllers.daemon_sets.keys().copied().collect();
    for workload in daemon_sets {
        let pods = &sim.world.workload(workload).pods;
        let there: Vec<PodId> = pods.iter().copied().filter(|&pod| sim.world.pod(pod).pinned == Some(node)).collect();
        manage(sim, controllers, vertical, now, workload, (node, &there));
    }
}

/// A node, which has these pods of a DaemonSet, gets one if it lacks one that it wants; they go where none is to stay.
///
/// Source: `daemon_controller.go`, `podsShouldBeOnNode`.
fn manage(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    (node, there): (NodeId, &[PodId]),
) {
    let (wanted, stays) = (wants(sim, workload, node), stays(sim, node));
    if let Some(daemon_set) = controllers.daemon_sets.get_mut(&workload) {
        // One that has not registered yet is looked at when it does.
        if wanted {
            daemon_set.refused.remove(&node);
        } else if stays {
            daemon_set.refused.insert(node);
        }
    }
    if wanted && there.is_empty() {
        place(sim, controllers, vertical, now, workload, node);
    } else if !wanted && !keeps(sim, workload, node) {
        for &pod in there.iter().filter(|&&pod| sim.world.pod(pod).is_active()).collect::<Vec<_>>() {
            kubelet::delete(sim, now, pod, false, "its node is not one of its DaemonSet's any longer");
        }
    }
}

/// Whether a pod of the DaemonSet that is on the node stays there: a node of its own with no `NoExecute` taint that it does not tolerate.
///
/// Source: `daemon_controller.go`, `NodeShouldRunDaemonPod`.
fn keeps(sim: &Sim<'_>, workload: WorkloadId, node: NodeId) -> bool {
    let host = sim.world.node(node);
    let template = &sim.world.workload(workload).template;
    let ending = host.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
    template.selects_node(&host.labels, host.name.as_str())
        && first_untolerated(ending, &template.tolerations).is_none()
}

/// A node is there with its pods: the daemons that it wants and has not are made.
pub(in crate::actors) fn node_found(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    node: NodeId,
) {
    let pods = &sim.world.node(node).pods;
    let there: BTreeSet<WorkloadId> = pods.iter().map(|&pod| sim.world.pod(pod).workload).collect();
    let daemon_sets: Vec<WorkloadId> = controllers.daemon_sets.keys().copied().collect();
    for workload in daemon_sets.into_iter().filter(|workload| !there.contains(workload)) {
        place_now_or_untainted(sim, controllers, vertical, now, workload, node);
    }
}

/// A daemon is gone: the controller looks whether its node wants another.
pub(in crate::actors) fn pod_gone(sim: &mut Sim<'_>, pod: PodId) {
    if sim.world.pod(pod).daemon {
        sim.queue.schedule_in(REACTION, class::CONTROLLERS, WorkloadEvent::DaemonGone(pod));
    }
}

/// The node of a daemon that is gone gets another, if it stays, wants one and has none.
pub(in crate::actors) fn come_back(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    pod: PodId,
) {
    let state = sim.world.pod(pod);
    let Some(node) = state.pinned else { return };
    let workload = state.workload;
    let there = |&pod_id: &PodId| sim.world.pod(pod_id).pinned == Some(node);
    if stays(sim, node) && !sim.world.workload(workload).pods.iter().any(there) {
        place(sim, controllers, vertical, now, workload, node);
    }
    // Where no other pod comes, nothing else tells the update that it may be at its end.
    if controllers.daemon_sets.get(&workload).is_some_and(|daemon_set| daemon_set.rolling)
        && !wants(sim, workload, node)
    {
        wake(sim, workload);
    }
}

/// Whether daemons are made for the node: it has registered, and nobody removes it.
fn stays(sim: &Sim<'_>, node: NodeId) -> bool {
    let host = sim.world.node(node);
    host.phase == NodePhase::Registered && host.deletion_requested.is_none()
}

/// After an edit: whatever the strategy, pods go at once from nodes that are not selected any longer and come to those that are. In the
/// middle of an update, daemons that have gone come back with the new template, and further old ones go.
///
/// Source: `daemon_controller.go`, `updateDaemonSet`, which manages all nodes first; `update.go`, `rollingUpdate`.
pub(in crate::actors) fn reconcile(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
) {
    if !controllers.daemon_sets.contains_key(&workload) {
        return;
    }
    let of_nodes = pods_of_nodes(sim, workload);
    for node in sim.world.live_nodes().to_vec() {
        manage(sim, controllers, vertical, now, workload, (node, of_nodes.get(&node).map_or(&[], Vec::as_slice)));
    }
    let Some(daemon_set) = controllers.daemon_sets.get(&workload).filter(|daemon_set| daemon_set.rolling) else {
        return;
    };
    let (min_ready, most) =
        (daemon_set.applied.min_ready, daemon_set.applied.max_unavailable.unwrap_or(IntOrPercent::Count(1)));
    let surge = daemon_set.applied.max_surge;
    let surge = surge.of_rounded_up(of_nodes.len() as i64);
    if surge > 0 {
        surge_step(sim, controllers, vertical, now, (workload, min_ready), &of_nodes, surge);
        controllers.finish_daemon_update(sim, now, workload, min_ready);
        return;
    }
    let state = sim.world.workload(workload);
    let (current, pods) = (state.revision, state.pods.clone());
    let most = most.of_rounded_up(pods.len() as i64).max(1);
    let old = |pod: &PodId| sim.world.pod(*pod).revision != current && sim.world.pod(*pod).is_active();
    let there = |pod: &PodId| is_available(sim, now, *pod, min_ready);
    let (available, unavailable): (Vec<PodId>, Vec<PodId>) = pods.iter().copied().partition(there);
    let mut go: Vec<PodId> = unavailable.iter().copied().filter(old).collect();
    let room = (most - unavailable.len() as i64).max(0);
    go.extend(available.iter().copied().filter(old).take(usize::try_from(room).unwrap_or(0)));
    for pod in go {
        kubelet::delete(sim, now, pod, false, "its template has changed");
    }
    controllers.finish_daemon_update(sim, now, workload, min_ready);
}

/// Pods of the DaemonSet by their node.
fn pods_of_nodes(sim: &Sim<'_>, workload: WorkloadId) -> BTreeMap<NodeId, Vec<PodId>> {
    let mut of_nodes: BTreeMap<NodeId, Vec<PodId>> = BTreeMap::new();
    for &pod in &sim.world.workload(workload).pods {
        if let Some(node) = sim.world.pod(pod).pinned {
            of_nodes.entry(node).or_default().push(pod);
        }
    }
    of_nodes
}

/// New pods come beside old ones on at most `surge` nodes at once; an old one goes when the new one is available, or when it
/// is not Ready itself.
///
/// Source: `update.go`, `rollingUpdate`; `daemon_controller.go`, `podsShouldBeOnNode`.
fn surge_step(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    (workload, min_ready): (WorkloadId, SimDuration),
    of_nodes: &BTreeMap<NodeId, Vec<PodId>>,
    surge: i64,
) {
    let current = sim.world.workload(workload).revision;
    let (mut surging, mut places, mut candidates, mut go) = (0, Vec::new(), Vec::new(), Vec::new());
    for (&node, pods) in of_nodes {
        let find = |updated: bool| {
            let is = |pod: &PodId| {
                let state = sim.world.pod(*pod);
                state.is_active() && (state.revision == current) == updated
            };
            pods.iter().copied().find(is)
        };
        let available = |pod: PodId| is_available(sim, now, pod, min_ready);
        match (find(false), find(true)) {
            (Some(old), None) if available(old) => candidates.push(node),
            (Some(_), None) => places.push(node),
            (Some(old), Some(new)) if available(new) => go.push(old),
            (Some(old), Some(_)) => {
                surging += 1;
                go.extend(Some(old).filter(|&old| !sim.world.pod(old).is_ready()));
            }
            (None, _) => {}
        }
    }
    places.extend(candidates.into_iter().take(usize::try_from(surge - surging).unwrap_or(0)));
    for node in places {
        place(sim, controllers, vertical, now, workload, node);
    }
    for pod in go {
        kubelet::delete(sim, now, pod, false, "its template has changed");
    }
}

/// Makes the daemon of a node, if it wants one, when the controller may.
fn place(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    node: NodeId,
) {
    if !wants(sim, workload, node) {
        return;
    }
    let at = controllers.reserve_for_daemon(now);
    if at > now {
        sim.queue.schedule(at, class::CONTROLLERS, WorkloadEvent::DaemonDue(workload, node));
    } else {
        make(sim, controllers, vertical, now, workload, node);
    }
}

/// The controller may make the daemon of a node that wanted one.
pub(in crate::actors) fn due(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    node: NodeId,
) {
    let current = sim.world.workload(workload).revision;
    let there = |&pod: &PodId| {
        let state = sim.world.pod(pod);
        state.pinned == Some(node) && state.is_active() && state.revision == current
    };
    let there = sim.world.workload(workload).pods.iter().any(there);
    if !there && wants(sim, workload, node) {
        make(sim, controllers, vertical, now, workload, node);
    }
}

fn make(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    node: NodeId,
) {
    let revision = sim.world.workload(workload).revision;
    if !controllers.quotas.admits(sim, vertical, now, workload, revision) {
        return;
    }
    let pod = sim.world.create_pod(workload, Some(node), now);
    sim.publish(ActorEvent::PodCreated(pod));
}

/// Whether a node is to have a pod of the DaemonSet.
fn wants(sim: &Sim<'_>, workload: WorkloadId, node: NodeId) -> bool {
    // A machine of Fargate is its pod's alone.
    if matches!(sim.world.node(node).origin, NodeOrigin::Fargate(_)) {
        return false;
    }
    if !stays(sim, node) || sim.world.workload(workload).deleted {
        return false;
    }
    let host = sim.world.node(node);
    let template = &sim.world.workload(workload).template;
    let repelling = host.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    template.selects_node(&host.labels, host.name.as_str())
        && first_untolerated(repelling, &template.tolerations).is_none()
}

/// The template with what the DaemonSet controller adds to every pod.
fn daemon_template(template: &PodSpec) -> PodSpec {
    let mut template = template.clone();
    template.tolerations.extend(daemon_tolerations());
    template
}
