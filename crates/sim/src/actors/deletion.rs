//! `kubectl delete`: the object goes, and what it owns goes with it.
//!
//! Deviation: the objects that a deleted object owns are deleted at once. The garbage collector deletes them some
//! tenths of a second later.

use crate::actors::actor_events::ActorEvent;
use crate::actors::components::Components;
use crate::actors::node_groups::NodeGroups;
use crate::actors::scheduler_loop::SchedulerLoop;
use crate::actors::sim::Sim;
use crate::actors::volumes::Volumes;
use crate::actors::{job_loop, keda_loop, kubectl, kubelet, node_autoscaler, workload_controllers};
use crate::cluster::{Node, NodeOrigin, NodePhase, PodPhase, WorkloadKind};
use crate::control_plane::eviction::Protections;
use crate::domain::which::{By, ObjectKind, Which};
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, SimTime, Symbol};
use crate::manifests::Manifests;
use crate::world::record::EventKind;

/// Objects are deleted.
pub(super) fn delete(
    components: &mut Components<'_>,
    now: SimTime,
    kind: ObjectKind,
    namespace: Symbol,
    which: &Which,
) {
    let found = match (kind, &which.by) {
        (ObjectKind::Node, _) => delete_nodes(components, now, which),
        (ObjectKind::NodeClaim, _) => delete_claims(components, now, which),
        (ObjectKind::Pod, _) => delete_pods(&mut components.sim, now, namespace, which),
        (_, By::Name(name)) => delete_named(components, now, kind, *name),
        // Only what is made during a run is chosen by its labels; the scenario is read so.
        (_, By::Labels(_)) => false,
    };
    if !found {
        components.sim.world.note_unmet(now, format!("there is no {} {which} to delete", kind.as_str()));
    }
}

/// Deletes an object of a name; whether it was there.
fn delete_named(components: &mut Components<'_>, now: SimTime, kind: ObjectKind, name: ObjectName) -> bool {
    let workload = |kind| delete_workload_of(kind);
    let found = match kind {
        ObjectKind::Deployment => return workload(WorkloadKind::Deployment)(components, now, name),
        ObjectKind::StatefulSet => return workload(WorkloadKind::StatefulSet)(components, now, name),
        ObjectKind::DaemonSet => return workload(WorkloadKind::DaemonSet)(components, now, name),
        ObjectKind::Job => return workload(WorkloadKind::Job)(components, now, name),
        ObjectKind::CronJob => return workload(WorkloadKind::CronJob)(components, now, name),
        ObjectKind::ScaledJob => {
            job_loop::retire(&mut components.sim, &mut components.jobs, name);
            return workload(WorkloadKind::ScaledJob)(components, now, name);
        }
        ObjectKind::HorizontalPodAutoscaler => components.autoscalers.retire(&mut components.sim, now, name),
        ObjectKind::VerticalPodAutoscaler => components.vertical.retire(name),
        ObjectKind::ScaledObject => keda_loop::retire(
            &mut components.sim,
            &mut components.autoscalers,
            &mut components.scaled_objects,
            now,
            name,
        ),
        ObjectKind::PodDisruptionBudget => delete_budget(&mut components.sim, name),
        ObjectKind::PersistentVolumeClaim => components.volumes.delete_by_hand(&components.sim, name),
        ObjectKind::Service | ObjectKind::Ingress => stands_in_front(&components.sim, now, kind, name),
        ObjectKind::NodePool => node_autoscaler::delete_pool(components, now, name.name),
        ObjectKind::Pod | ObjectKind::NodeClaim | ObjectKind::Node => false,
    };
    if found {
        let named = if kind.has_namespace() { name.to_string() } else { name.name.to_string() };
        components.sim.world.note(now, EventKind::ObjectDeleted, None, format!("{} {named}", kind.as_str()));
    }
    found
}

/// Whether a Service or an Ingress is there: no actor keeps them, and what load balancers they have is worked out for the bill from the same
/// steps.
fn stands_in_front(sim: &Sim<'_>, now: SimTime, kind: ObjectKind, name: ObjectName) -> bool {
    let holds = |manifests: &Manifests| match kind {
        ObjectKind::Service => manifests.services.iter().any(|service| service.name == name),
        _ => manifests.ingresses.iter().any(|ingress| ingress.name == name),
    };
    let mut is_there = holds(&sim.setup.policy.manifests);
    for step in &sim.setup.scenario.timeline {
        match &step.action {
            nodecast_settings::Action::Apply(newer) if step.at <= now => is_there |= holds(newer),
            nodecast_settings::Action::Delete { kind: this_kind, which, .. } if step.at < now && *this_kind == kind => {
                is_there &= which.by != By::Name(name);
            }
            _ => {}
        }
    }
    is_there
}

/// Deletes the workload of this kind and a name; whether there is one.
fn delete_workload_of(kind: WorkloadKind) -> impl Fn(&mut Components<'_>, SimTime, ObjectName) -> bool {
    move |components, now, name| {
        let known = components.sim.workload_named(name).filter(|&id| components.sim.world.workload(id).kind == kind);
        if let Some(workload) = known {
            let Components { sim, controllers, volumes, .. } = components;
            workload_controllers::delete(sim, controllers, volumes, now, workload);
            components.autoscalers.target_deleted(workload);
            components.scaled_objects.target_deleted(workload);
        }
        known.is_some()
    }
}

fn delete_budget(sim: &mut Sim<'_>, name: ObjectName) -> bool {
    let found = sim.world.remove_budget(name);
    // It remembers budgets by their places in the list.
    sim.budgets.protections = Protections::default();
    found
}

/// Deletes pods with their own grace periods, oldest first.
fn delete_pods(sim: &mut Sim<'_>, now: SimTime, namespace: Symbol, which: &Which) -> bool {
    let namespace = match &which.by {
        By::Name(name) => name.namespace,
        By::Labels(_) => namespace,
    };
    let of_namespace = sim.world.workloads().filter(|(_, item)| item.name.namespace == namespace);
    let mut pods: Vec<PodId> = of_namespace.flat_map(|(_, item)| item.pods.iter().copied()).collect();
    let called = which.name();
    pods.retain(|&pod| {
        let state = sim.world.pod(pod);
        let meant = match called {
            Some(name) => sim.world.pod_name(pod) == name.as_str(),
            None => which.has_labels(&state.spec.labels),
        };
        meant && state.is_active() && state.phase != PodPhase::Gone
    });
    pods.sort_by_key(|&pod| (sim.world.pod(pod).created, pod));
    pods.truncate(which.most.map_or(usize::MAX, |most| most as usize));
    for &pod in &pods {
        kubelet::delete(sim, now, pod, false, "somebody deleted it");
    }
    !pods.is_empty()
}

/// Deletes NodeClaims: their nodes drain.
fn delete_claims(components: &mut Components<'_>, now: SimTime, which: &Which) -> bool {
    let of_pool = |origin| matches!(origin, NodeOrigin::NodePool(_));
    let there = |node: &Node| node.phase < NodePhase::Terminating && of_pool(node.origin);
    let Some(claims) = kubectl::chosen_or_say(&mut components.sim, now, which, there) else { return true };
    for &claim in &claims {
        components.sim.world.note_node(claim, now, EventKind::ObjectDeleted, "NodeClaim");
        node_autoscaler::delete_claim(components, now, claim);
    }
    !claims.is_empty()
}

/// Deletes nodes. One of Karpenter's has a finalizer, which drains it and ends its instance first; any other goes at once, and its
/// instance stays.
fn delete_nodes(components: &mut Components<'_>, now: SimTime, which: &Which) -> bool {
    let there = |node: &Node| node.phase == NodePhase::Registered;
    let Some(nodes) = kubectl::chosen_or_say(&mut components.sim, now, which, there) else { return true };
    for &node in &nodes {
        components.sim.world.note_node(node, now, EventKind::ObjectDeleted, "Node");
        if !node_autoscaler::delete_claim(components, now, node) {
            unregister(&mut components.sim, &mut components.node_groups, now, node);
        }
    }
    !nodes.is_empty()
}

/// The Node object goes, and nothing else. The kubelet registers its node when it starts, and not again.
fn unregister(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    node_groups.forget_drain(node);
    sim.world.unregister_node(node, now);
    sim.publish(ActorEvent::NodeDeleted(node));
}

/// The garbage collector of pods deletes those that are bound to a node that has not been there for a while, those that have ended too.
pub(super) fn collect_orphans(
    sim: &mut Sim<'_>,
    scheduler: &mut SchedulerLoop,
    volumes: &mut Volumes,
    now: SimTime,
    node: NodeId,
) {
    volumes.delete_ended_on(sim, node);
    for pod in sim.world.node(node).pods.clone() {
        scheduler.pod_removed(sim, now, pod, Some(node));
        kubelet::lost(sim, now, pod);
    }
}
