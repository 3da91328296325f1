//! The controllers of Deployments and DaemonSets: they make the pods that are missing and delete those that are too many.
//!
//! Source: Kubernetes 1.36 `pkg/controller/replicaset`, `pkg/controller/daemon`.

use std::sync::Arc;

use super::context::Context;
use super::event::{Event, class};
use super::{job_loop, kubelet, load_loop, replay, scheduler_loop};
use crate::domain::pod::{OwnerKind, PodPhase as ReportedPhase};
use crate::domain::taints::{TaintEffect, Toleration, first_untolerated};
use crate::domain::workload::{DaemonSet, Deployment};
use crate::domain::{NodeId, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId, well_known};
use crate::policy::workloads::{VictimView, victims};
use crate::world::PodPhase;
use crate::world::pod_operations::NewWorkload;
use crate::world::record::WorkloadKind;

/// From a change to the controller's answer.
const REACTION: SimDuration = SimDuration::from_millis(100);
/// Pods that one pass of a ReplicaSet's controller makes or deletes at most.
const BURST: usize = 500;

/// A Deployment is applied: a new one comes to be, a known one takes over the new count.
pub(super) fn apply_deployment(context: &mut Context<'_>, now: SimTime, deployment: &Deployment) {
    let mut template = (*deployment.template).clone();
    template.owner = OwnerKind::ReplicaSet;
    // No claim is simulated; kept, these would make the packer refuse the pod for a claim that it does not know.
    template.volumes.clear();
    let workload = context.world.add_workload(NewWorkload {
        name: deployment.name,
        kind: WorkloadKind::Deployment,
        selector: deployment.selector.clone(),
        template: Arc::new(template),
        replicas: deployment.replicas.unwrap_or(1),
        has_load: context.loads.iter().any(|load| load.workload == deployment.name),
    });
    kubelet::note_applied(context, now, workload, "Deployment");
    load_loop::workload_applied(context, workload);
    wake(context, workload);
}

/// A DaemonSet is applied: every node that it wants gets a pod.
pub(super) fn apply_daemon_set(context: &mut Context<'_>, now: SimTime, daemon_set: &DaemonSet) {
    let workload = context.world.add_workload(NewWorkload {
        name: daemon_set.name,
        kind: WorkloadKind::DaemonSet,
        selector: daemon_set.selector.clone(),
        template: Arc::new(daemon_template(&daemon_set.template)),
        replicas: 0,
        has_load: false,
    });
    kubelet::note_applied(context, now, workload, "DaemonSet");
    for node in context.world.live_nodes().to_vec() {
        if context.world.node(node).phase == crate::world::NodePhase::Registered {
            place_daemon(context, now, workload, node);
        }
    }
}

/// Has a workload's controller look at it shortly.
pub(super) fn wake(context: &mut Context<'_>, workload: WorkloadId) {
    if replay::changed(context) {
        return;
    }
    context.queue.schedule_in(REACTION, class::CONTROLLERS, Event::Reconcile(workload));
}

/// A node has registered: the daemons that it wants are made.
pub(super) fn node_registered(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let daemon_sets: Vec<WorkloadId> = context
        .world
        .workloads()
        .filter(|(_, workload)| workload.kind == WorkloadKind::DaemonSet)
        .map(|(id, _)| id)
        .collect();
    for workload in daemon_sets {
        place_daemon(context, now, workload, node);
    }
}

/// The templates of all DaemonSets, for those who reckon with daemons on nodes to come.
pub(super) fn daemon_templates(context: &Context<'_>) -> Vec<Arc<PodSpec>> {
    context
        .world
        .workloads()
        .filter(|(_, workload)| workload.kind == WorkloadKind::DaemonSet)
        .map(|(_, workload)| Arc::clone(&workload.template))
        .collect()
}

/// A workload's controller makes what is missing and deletes what is too many.
pub(super) fn reconcile(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    let state = context.world.workload(workload);
    if state.kind == WorkloadKind::ScaledJob {
        return job_loop::reconcile(context, now, workload);
    }
    if state.kind != WorkloadKind::Deployment {
        return;
    }
    let wanted = state.replicas as usize;
    let active: Vec<PodId> = state.pods.iter().copied().filter(|&pod| context.world.pod(pod).is_active()).collect();
    if active.len() < wanted {
        let missing = wanted - active.len();
        for _ in 0..missing.min(BURST) {
            let pod = context.world.create_pod(workload, None, now);
            scheduler_loop::pod_created(context, now, pod);
        }
        if missing > BURST {
            wake(context, workload);
        }
    } else if active.len() > wanted {
        let surplus = (active.len() - wanted).min(BURST);
        let views: Vec<VictimView> = active.iter().map(|&pod| victim_view(context, &active, pod)).collect();
        for position in victims(&views, surplus, now) {
            kubelet::delete(context, now, active[position], false, "the workload has too many replicas");
        }
    }
}

fn victim_view(context: &Context<'_>, active: &[PodId], pod: PodId) -> VictimView {
    let state = context.world.pod(pod);
    let siblings = active.iter().filter(|&&other| context.world.pod(other).node == state.node).count();
    let cost_key = Symbol::new("controller.kubernetes.io/pod-deletion-cost");
    let cost = state.spec.annotations.get(cost_key).and_then(|cost| cost.as_str().parse().ok());
    VictimView {
        assigned: state.node.is_some(),
        phase: if state.phase == PodPhase::Running { ReportedPhase::Running } else { ReportedPhase::Pending },
        ready_since: state.ready_since,
        deletion_cost: cost.unwrap_or(0),
        siblings_on_node: if state.node.is_some() { siblings as u32 } else { 0 },
        restarts: 0,
        sidecar_restarts: 0,
        created: state.created,
        uid: pod_uid(context, pod),
    }
}

/// A number that stands for the pod's random UID.
pub(super) fn pod_uid(context: &Context<'_>, pod: PodId) -> u64 {
    (context.streams.nth("pod-uid", "", u64::from(pod.0)).uniform() * (1_u64 << 53) as f64) as u64
}

fn place_daemon(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, node: NodeId) {
    let host = context.world.node(node);
    let template = &context.world.workload(workload).template;
    let repelling = host.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    let wanted = template.selects_node(&host.labels, host.name.as_str())
        && first_untolerated(repelling, &template.tolerations).is_none();
    if wanted && host.deletion_requested.is_none() {
        let pod = context.world.create_pod(workload, Some(node), now);
        scheduler_loop::pod_created(context, now, pod);
    }
}

/// The template with what the DaemonSet controller adds to every pod.
///
/// Source: Kubernetes 1.36 `pkg/controller/daemon/util`, `AddOrUpdateDaemonPodTolerations`.
fn daemon_template(template: &PodSpec) -> PodSpec {
    let mut template = template.clone();
    template.owner = OwnerKind::DaemonSet;
    for (key, effect) in [
        (well_known::TAINT_NOT_READY, TaintEffect::NoExecute),
        (well_known::TAINT_UNREACHABLE, TaintEffect::NoExecute),
        (well_known::TAINT_DISK_PRESSURE, TaintEffect::NoSchedule),
        (well_known::TAINT_MEMORY_PRESSURE, TaintEffect::NoSchedule),
        (well_known::TAINT_PID_PRESSURE, TaintEffect::NoSchedule),
        (well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule),
    ] {
        template.tolerations.push(Toleration::exists(key, Some(effect)));
    }
    template
}
