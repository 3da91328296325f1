//! The scheduler and the workload controllers of a replay, which act together in steps.

use super::Run;
use nodecast_karpenter::machine::Input;
use nodecast_model::cluster::{NodePhase, PodPhase};
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{NodeId, PodId, SimTime, TaintEffect, WorkloadId};
use nodecast_world::record::WorkloadKind;

/// One step: missing replicas are made, daemons placed, pending pods bound, pods of vanished nodes removed, budgets counted.
pub(super) fn step(run: &mut Run, now: SimTime) {
    run.step_planned = false;
    let workloads: Vec<(WorkloadId, WorkloadKind)> =
        run.world.workloads().map(|(id, workload)| (id, workload.kind)).collect();
    for &(workload, kind) in &workloads {
        if kind == WorkloadKind::Deployment {
            make_missing(run, now, workload);
        }
    }
    for &(workload, kind) in &workloads {
        if kind == WorkloadKind::DaemonSet {
            place_daemons(run, now, workload);
        }
    }
    bind_pending(run, now);
    remove_lost(run, now);
    run.count_budgets();
}

/// Makes the replicas that a workload lacks; nobody replaces pods without an owner.
pub(super) fn make_missing(run: &mut Run, now: SimTime, workload: WorkloadId) {
    if run.bare.contains(&workload) {
        return;
    }
    let state = run.world.workload(workload);
    let active = state.pods.iter().filter(|&&pod| run.world.pod(pod).is_active()).count();
    for _ in active..state.replicas as usize {
        run.world.create_pod(workload, None, now);
        run.changed();
    }
}

/// Every Ready node whose taints a daemon tolerates gets one.
fn place_daemons(run: &mut Run, now: SimTime, workload: WorkloadId) {
    for node in run.world.live_nodes().to_vec() {
        let owner = run.world.workload(workload);
        let there = |&pod: &PodId| {
            let state = run.world.pod(pod);
            state.pinned == Some(node) && state.phase != PodPhase::Gone
        };
        if !takes_pods(run, node) || !accepts(run, node, &owner.template) || owner.pods.iter().any(there) {
            continue;
        }
        let name = format!("{}-{}", owner.name.name, run.world.node(node).name);
        let pod = run.world.create_named_pod(workload, Some(node), name, now);
        bind(run, now, pod, node);
    }
}

fn takes_pods(run: &Run, node: NodeId) -> bool {
    let state = run.world.node(node);
    state.phase == NodePhase::Registered && state.ready && state.deletion_requested.is_none()
}

fn accepts(run: &Run, node: NodeId, spec: &nodecast_model::domain::PodSpec) -> bool {
    let state = run.world.node(node);
    let repelling = state.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    first_untolerated(repelling, &spec.tolerations).is_none() && spec.selects_node(&state.labels, state.name.as_str())
}

/// Each pending pod, the oldest second first and then by name, goes to the first node by name that takes it.
fn bind_pending(run: &mut Run, now: SimTime) {
    let mut pending: Vec<PodId> = pending_pods(run).collect();
    pending.sort_by_key(|&pod| {
        let created = run.world.pod(pod).created.as_micros().div_euclid(1_000_000);
        (created, run.world.pod_name(pod).to_owned())
    });
    let mut nodes: Vec<NodeId> = run.world.live_nodes().to_vec();
    nodes.retain(|&node| takes_pods(run, node));
    nodes.sort_by_key(|&node| run.world.node(node).name);
    for pod in pending {
        let fits = |&&node: &&NodeId| {
            let (state, pod) = (run.world.node(node), run.world.pod(pod));
            let mut left = state.allocatable.clone();
            left.subtract(&state.requested);
            pod.requests.fits(&left) && accepts(run, node, &pod.spec)
        };
        match nodes.iter().find(fits).copied() {
            Some(node) => bind(run, now, pod, node),
            None => refuse(run, now, pod),
        }
    }
}

pub(super) fn pending_pods<'c>(run: &'c Run) -> impl Iterator<Item = PodId> + 'c {
    let pods = run.world.workloads().flat_map(|(_, workload)| workload.pods.iter().copied());
    pods.filter(|&pod| {
        let state = run.world.pod(pod);
        state.phase == PodPhase::Pending && state.is_active()
    })
}

/// A bound pod runs and is Ready at once.
fn bind(run: &mut Run, now: SimTime, pod: PodId, node: NodeId) {
    run.world.bind_pod(pod, node, now);
    run.world.start_pod(pod, now);
    run.world.ready_pod(pod, now);
    run.changed();
    run.tell(now, Input::PodBound(pod, node));
}

fn refuse(run: &mut Run, now: SimTime, pod: PodId) {
    if !run.world.pod(pod).unschedulable {
        run.world.mark_unschedulable(pod, now, || "no node has room".to_owned());
        run.changed();
        run.tell(now, Input::PodUnschedulable(pod));
    }
}

/// Removes the pods whose nodes have vanished.
fn remove_lost(run: &mut Run, now: SimTime) {
    let pods = run.world.workloads().flat_map(|(_, workload)| workload.pods.iter().copied());
    let lost = |pod: &PodId| {
        let node = run.world.pod(*pod).node;
        node.is_some_and(|node| run.world.node(node).phase == NodePhase::Gone)
    };
    let lost: Vec<PodId> = pods.filter(lost).collect();
    for pod in lost {
        run.world.remove_pod(pod, now);
        run.tell(now, Input::Changed);
        run.changed();
    }
}
