//! The workload controllers: they make the pods that are missing and delete those that are too many. Here what
//! they share and ReplicaSets; one file below for each of the others.
//!
//! Source: Kubernetes 1.36 `pkg/controller/replicaset`.

pub(super) mod bare_pods;
pub(super) mod daemon_sets;
pub(super) mod deployments;
pub(super) mod jobs;
pub(super) mod stateful_sets;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::context::Context;
use super::event::{Event, class};
use super::{job_loop, kubelet, pod_trace, replay, scheduler_loop};
use crate::domain::pod::{OwnerKind, PodPhase as ReportedPhase};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, NodeId, PodId, PodSpec, SimDuration, SimTime, WorkloadId, well_known};
use crate::policy::workloads::{VictimView, slow_start_batches, victims};
use crate::world::PodPhase;
use crate::world::pod_operations::NewWorkload;
use crate::world::record::WorkloadKind;

/// From a change to the controller's answer.
const REACTION: SimDuration = SimDuration::from_millis(100);

/// What the controllers remember of their workloads.
#[derive(Debug, Default)]
pub(super) struct Controllers {
    batches: BTreeMap<WorkloadId, jobs::Batch>,
    daemon_sets: BTreeMap<WorkloadId, daemon_sets::Daemons>,
    deployments: BTreeMap<WorkloadId, deployments::Deployed>,
    stateful_sets: BTreeMap<WorkloadId, stateful_sets::Ordered>,
    /// UIDs of pods that were asked for: a ReplicaSet that shrinks step by step asks for those of its pods each time.
    uids: Vec<Option<u64>>,
}

/// Adds a workload with the template that its pods are made from, which is returned.
fn begin_workload(
    context: &mut Context<'_>,
    now: SimTime,
    name: ObjectName,
    kind: WorkloadKind,
    selector: &LabelSelector,
    template: &PodSpec,
    (owner, replicas): (OwnerKind, u32),
) -> (WorkloadId, Arc<PodSpec>) {
    let template = Arc::new(owned_template(template, owner));
    let workload = context.world.add_workload(NewWorkload {
        name,
        kind,
        selector: selector.clone(),
        template: Arc::clone(&template),
        replicas,
        has_load: context.loads.iter().any(|load| load.workload == name),
    });
    context.world.count_replicas(workload, now);
    kubelet::note_applied(context, now, workload, kind.as_str());
    (workload, template)
}

/// A template as the pods have it.
fn owned_template(template: &PodSpec, owner: OwnerKind) -> PodSpec {
    let mut template = template.clone();
    template.owner = owner;
    template
}

/// Has a workload's controller look at it shortly.
pub(super) fn wake(context: &mut Context<'_>, workload: WorkloadId) {
    if replay::changed(context) {
        return;
    }
    wake_after(context, workload, SimDuration::ZERO);
}

/// The same once `wait` is over.
fn wake_after(context: &mut Context<'_>, workload: WorkloadId, wait: SimDuration) {
    context.queue.schedule_in(wait + REACTION, class::CONTROLLERS, Event::Reconcile(workload));
}

/// A pod has become Ready: some controllers wait for that.
pub(super) fn pod_ready(context: &mut Context<'_>, workload: WorkloadId) {
    daemon_sets::pod_ready(context, workload);
    deployments::pod_ready(context, workload);
    stateful_sets::pod_ready(context, workload);
}

/// A pod's containers run: some controllers' pods end by themselves.
pub(super) fn pod_started(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    match context.world.workload(context.world.pod(pod).workload).kind {
        WorkloadKind::ScaledJob => job_loop::pod_started(context, now, pod),
        WorkloadKind::Job | WorkloadKind::CronJob => jobs::pod_started(context, pod),
        WorkloadKind::Pods => pod_trace::pod_started(context, pod),
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {}
    }
}

/// Such a pod has done its work.
pub(super) fn pod_done(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    match context.world.workload(context.world.pod(pod).workload).kind {
        WorkloadKind::ScaledJob => job_loop::pod_done(context, now, pod),
        WorkloadKind::Job | WorkloadKind::CronJob => jobs::pod_done(context, now, pod),
        WorkloadKind::Pods => pod_trace::pod_done(context, now, pod),
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {}
    }
}

/// Whether the pod has been Ready for `min_ready`.
fn is_available(context: &Context<'_>, now: SimTime, pod: PodId, min_ready: SimDuration) -> bool {
    let state = context.world.pod(pod);
    state.is_active() && state.ready_since.is_some_and(|since| since + min_ready <= now)
}

/// A workload's controller makes what is missing and deletes what is too many.
pub(super) fn reconcile(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    match context.world.workload(workload).kind {
        WorkloadKind::Deployment => deployments::reconcile(context, now, workload),
        WorkloadKind::StatefulSet => stateful_sets::reconcile(context, now, workload),
        WorkloadKind::Job | WorkloadKind::CronJob => jobs::reconcile(context, now, workload),
        WorkloadKind::ScaledJob => job_loop::reconcile(context, now, workload),
        WorkloadKind::Pods => bare_pods::reconcile(context, workload),
        WorkloadKind::DaemonSet => daemon_sets::reconcile(context, now, workload),
    }
}

/// A ReplicaSet makes so many pods. Nothing refuses one here, so every batch is followed by the next, twice as large.
fn create_pods(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, revision: u32, count: i64) {
    for _ in 0..slow_start_batches(count).sum::<i64>() {
        let name = context.world.next_pod_name(workload);
        let pod = context.world.create_pod_of(workload, revision, None, name, now);
        scheduler_loop::pod_created(context, now, pod);
    }
}

/// A ReplicaSet deletes so many of its active pods.
fn delete_surplus(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, own: &[PodId], count: i64) {
    let mut on_node: FxHashMap<NodeId, u32> = FxHashMap::default();
    for &pod in &context.world.workload(workload).pods {
        let state = context.world.pod(pod);
        if let (true, Some(node)) = (state.is_active(), state.node) {
            *on_node.entry(node).or_insert(0) += 1;
        }
    }
    let views: Vec<VictimView> = own
        .iter()
        .map(|&pod| {
            let uid = pod_uid(context, pod);
            victim_view(context, &on_node, pod, uid)
        })
        .collect();
    for position in victims(&views, usize::try_from(count).unwrap_or(0), now) {
        kubelet::delete(context, now, own[position], false, "the workload has too many replicas");
    }
}

fn victim_view(context: &Context<'_>, on_node: &FxHashMap<NodeId, u32>, pod: PodId, uid: u64) -> VictimView {
    let state = context.world.pod(pod);
    let siblings = state.node.and_then(|node| on_node.get(&node)).copied();
    let cost = state.spec.annotations.get(well_known::POD_DELETION_COST).and_then(|cost| cost.as_str().parse().ok());
    VictimView {
        assigned: state.node.is_some(),
        phase: if state.phase == PodPhase::Running { ReportedPhase::Running } else { ReportedPhase::Pending },
        ready_since: state.ready_since,
        deletion_cost: cost.unwrap_or(0),
        siblings_on_node: siblings.unwrap_or(0),
        restarts: state.restarts,
        sidecar_restarts: 0,
        created: state.created,
        uid,
    }
}

/// A number that stands for the pod's random UID.
pub(super) fn pod_uid(context: &mut Context<'_>, pod: PodId) -> u64 {
    let Context { controllers: Controllers { uids, .. }, streams, .. } = context;
    if uids.len() <= pod.index() {
        uids.resize(pod.index() + 1, None);
    }
    *uids[pod.index()]
        .get_or_insert_with(|| (streams.nth("pod-uid", "", u64::from(pod.0)).uniform() * (1_u64 << 53) as f64) as u64)
}
