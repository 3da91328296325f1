//! The scheduler and the workload controllers of a replay, which act together in steps.

use crate::actors::context::Context;
use crate::actors::{eviction, karpenter, replay};
use crate::cluster::{NodePhase, PodPhase};
use crate::domain::taints::first_untolerated;
use crate::domain::{NodeId, PodId, SimTime, TaintEffect, WorkloadId};
use crate::policy::karpenter::Input;
use crate::world::record::WorkloadKind;

/// One step: missing replicas are made, daemons placed, pending pods bound, pods of vanished nodes removed, budgets counted.
pub(in crate::actors) fn step(context: &mut Context<'_>, now: SimTime) {
    if let Some(replay) = &mut context.replay {
        replay.step_planned = false;
    }
    let workloads: Vec<(WorkloadId, WorkloadKind)> =
        context.world.workloads().map(|(id, workload)| (id, workload.kind)).collect();
    for &(workload, kind) in &workloads {
        if kind == WorkloadKind::Deployment {
            make_missing(context, now, workload);
        }
    }
    for &(workload, kind) in &workloads {
        if kind == WorkloadKind::DaemonSet {
            place_daemons(context, now, workload);
        }
    }
    bind_pending(context, now);
    remove_lost(context, now);
    let statuses = eviction::current_statuses(context);
    if let Some(replay) = &mut context.replay {
        replay.statuses = statuses;
    }
}

/// Makes the replicas that a workload lacks; nobody replaces pods without an owner.
pub(super) fn make_missing(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    if context.replay.as_ref().is_some_and(|replay| replay.bare.contains(&workload)) {
        return;
    }
    let state = context.world.workload(workload);
    let active = state.pods.iter().filter(|&&pod| context.world.pod(pod).is_active()).count();
    for _ in active..state.replicas as usize {
        context.world.create_pod(workload, None, now);
        replay::changed(context);
    }
}

/// Every Ready node whose taints a daemon tolerates gets one.
fn place_daemons(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    for node in context.world.live_nodes().to_vec() {
        let owner = context.world.workload(workload);
        let there = |&pod: &PodId| {
            let state = context.world.pod(pod);
            state.pinned == Some(node) && state.phase != PodPhase::Gone
        };
        if !takes_pods(context, node) || !accepts(context, node, &owner.template) || owner.pods.iter().any(there) {
            continue;
        }
        let name = format!("{}-{}", owner.name.name, context.world.node(node).name);
        let pod = context.world.create_named_pod(workload, Some(node), name, now);
        bind(context, now, pod, node);
    }
}

fn takes_pods(context: &Context<'_>, node: NodeId) -> bool {
    let state = context.world.node(node);
    state.phase == NodePhase::Registered && state.ready && state.deletion_requested.is_none()
}

fn accepts(context: &Context<'_>, node: NodeId, spec: &crate::domain::PodSpec) -> bool {
    let state = context.world.node(node);
    let repelling = state.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    first_untolerated(repelling, &spec.tolerations).is_none() && spec.selects_node(&state.labels, state.name.as_str())
}

/// Each pending pod, the oldest second first and then by name, goes to the first node by name that takes it.
fn bind_pending(context: &mut Context<'_>, now: SimTime) {
    let mut pending: Vec<PodId> = pending_pods(context).collect();
    pending.sort_by_key(|&pod| {
        let created = context.world.pod(pod).created.as_micros().div_euclid(1_000_000);
        (created, context.world.pod_name(pod).to_owned())
    });
    let mut nodes: Vec<NodeId> = context.world.live_nodes().to_vec();
    nodes.retain(|&node| takes_pods(context, node));
    nodes.sort_by_key(|&node| context.world.node(node).name);
    for pod in pending {
        let fits = |&&node: &&NodeId| {
            let (state, own) = (context.world.node(node), context.world.pod(pod));
            let mut left = state.allocatable.clone();
            left.subtract(&state.requested);
            own.requests.fits(&left) && accepts(context, node, &own.spec)
        };
        match nodes.iter().find(fits).copied() {
            Some(node) => bind(context, now, pod, node),
            None => refuse(context, now, pod),
        }
    }
}

fn pending_pods<'c>(context: &'c Context<'_>) -> impl Iterator<Item = PodId> + 'c {
    let pods = context.world.workloads().flat_map(|(_, workload)| workload.pods.iter().copied());
    pods.filter(|&pod| {
        let state = context.world.pod(pod);
        state.phase == PodPhase::Pending && state.is_active()
    })
}

/// Pods that have been refused and wait; none if no case is being replayed.
pub(in crate::actors) fn waiting_pods(context: &Context<'_>) -> Vec<PodId> {
    if context.replay.is_none() { Vec::new() } else { pending_pods(context).collect() }
}

/// A bound pod runs and is Ready at once.
fn bind(context: &mut Context<'_>, now: SimTime, pod: PodId, node: NodeId) {
    context.world.bind_pod(pod, node, now);
    context.world.start_pod(pod, now);
    context.world.ready_pod(pod, now);
    replay::changed(context);
    karpenter::tell(context, now, Input::PodBound(pod, node));
}

fn refuse(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    if !context.world.pod(pod).unschedulable {
        context.world.mark_unschedulable(pod, now, || "no node has room".to_owned());
        replay::changed(context);
        karpenter::tell(context, now, Input::PodUnschedulable(pod));
    }
}

/// Removes the pods whose nodes have vanished.
fn remove_lost(context: &mut Context<'_>, now: SimTime) {
    let pods = context.world.workloads().flat_map(|(_, workload)| workload.pods.iter().copied());
    let lost = |pod: &PodId| {
        let node = context.world.pod(*pod).node;
        node.is_some_and(|node| context.world.node(node).phase == NodePhase::Gone)
    };
    let lost: Vec<PodId> = pods.filter(lost).collect();
    for pod in lost {
        context.world.remove_pod(pod, now);
        karpenter::tell(context, now, Input::Changed);
        replay::changed(context);
    }
}
