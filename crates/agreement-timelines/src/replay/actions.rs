//! What happens from outside in a replay.

use std::sync::Arc;

use nodecast_sim::actors::class;

use super::{Happening, NodeChange, PodChange, ReplayAction, Run, cluster};
use nodecast_karpenter::disruption::ConditionStatus;
use nodecast_karpenter::machine::Input;
use nodecast_model::cluster::NewWorkload;
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{
    LabelSelector, Labels, NodeId, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId, well_known,
};
use nodecast_world::record::{EventKind, WorkloadKind};

/// From the loss of an instance to its node's Ready condition being unknown.
const NOTICED_AFTER: SimDuration = SimDuration::from_millis(40_200);

/// One of these things happens.
pub(super) fn act(run: &mut Run, now: SimTime, number: u32) {
    let Some((_, action)) = run.case.actions.get(number as usize).cloned() else { return };
    match action {
        ReplayAction::SetReplicas { name, replicas, pod } => {
            if let Some(workload) = replica_set(run, name, pod.as_ref()) {
                scale(run, now, workload, replicas);
            }
        }
        ReplayAction::AddReplica { name, pod } => {
            if let Some(workload) = replica_set(run, name, pod.as_ref()) {
                let replicas = run.world.workload(workload).replicas + 1;
                scale(run, now, workload, replicas);
            }
        }
        ReplayAction::CreateBarePods { name, count, pod } => create_bare(run, now, name, count, &pod),
        ReplayAction::FinishPod(name) => finish(run, now, name),
        ReplayAction::PatchPod(name, change) => patch_pod(run, name, &change),
        ReplayAction::PatchNode(pod, change) => patch_node(run, now, pod, &change),
        ReplayAction::ReplaceNodePool(pool) => run.tell(now, Input::PoolReplaced(pool)),
        ReplayAction::ApplyBudget(budget) => run.apply_budget(&budget),
        ReplayAction::RunDaemon(daemon_set) => {
            let (name, selector) = (daemon_set.name, daemon_set.selector.clone());
            let template = owned(&daemon_set.template, OwnerKind::DaemonSet);
            add_workload(run, name, WorkloadKind::DaemonSet, selector, template);
        }
        ReplayAction::DeleteClaim(pod) => with_node(run, pod, |run, node| run.tell(now, Input::ClaimDeleted(node))),
        ReplayAction::Drift(pod) => with_node(run, pod, |run, node| run.tell(now, Input::ClaimChanged(node))),
        ReplayAction::Notice(pod, notice) => {
            with_node(run, pod, |run, node| run.tell(now, Input::Notice(node, notice)));
        }
        ReplayAction::StatusCheck(pod, failed) => {
            with_node(run, pod, |run, node| run.tell(now, Input::StatusChecked(node, failed)));
        }
        ReplayAction::WithdrawType(name) => run.tell(now, Input::TypeWithdrawn(name)),
        ReplayAction::KillInstance(pod) => with_node(run, pod, |run, node| {
            run.tell(now, Input::InstanceGone(node));
            run.queue.schedule(now + NOTICED_AFTER, class::MACHINES, Happening::Unknown(node));
        }),
    }
    run.changed();
}

fn pod_named(run: &Run, name: Symbol) -> Option<PodId> {
    let mut pods = run.world.workloads().flat_map(|(_, workload)| workload.pods.iter().copied());
    pods.find(|&pod| run.world.pod_name(pod) == name.as_str())
}

fn workload_named(run: &Run, name: ObjectName) -> Option<WorkloadId> {
    run.world.workloads().find(|(_, workload)| workload.name == name).map(|(id, _)| id)
}

/// Does something to the node of a pod.
fn with_node(run: &mut Run, pod: Symbol, act: impl FnOnce(&mut Run, NodeId)) {
    if let Some(node) = pod_named(run, pod).and_then(|pod| run.world.pod(pod).node) {
        act(run, node);
    }
}

fn owned(spec: &PodSpec, owner: OwnerKind) -> Arc<PodSpec> {
    Arc::new(PodSpec { owner, ..spec.clone() })
}

fn add_workload(
    run: &mut Run,
    name: ObjectName,
    kind: WorkloadKind,
    selector: LabelSelector,
    template: Arc<PodSpec>,
) -> WorkloadId {
    let new = NewWorkload { name, kind, selector, template, replicas: 0 };
    let workload = run.world.add_workload(new, false);
    run.changed();
    workload
}

/// The ReplicaSet of a name; made from `pod` if there is none.
fn replica_set(run: &mut Run, name: Symbol, pod: Option<&Arc<PodSpec>>) -> Option<WorkloadId> {
    let name = ObjectName { namespace: well_known::DEFAULT, name };
    if let Some(known) = workload_named(run, name) {
        return Some(known);
    }
    let template = owned(pod?, OwnerKind::ReplicaSet);
    let selector = LabelSelector { match_labels: template.labels.clone(), ..LabelSelector::default() };
    Some(add_workload(run, name, WorkloadKind::Deployment, selector, template))
}

/// Sets the replicas, which are made or deleted at once, the highest names first.
fn scale(run: &mut Run, now: SimTime, workload: WorkloadId, replicas: u32) {
    run.world.set_replicas(workload, replicas, now, EventKind::ReplicasSet, "replay");
    cluster::make_missing(run, now, workload);
    let pods = run.world.workload(workload).pods.clone();
    let mut active: Vec<PodId> = pods.into_iter().filter(|&pod| run.world.pod(pod).is_active()).collect();
    active.sort_by_key(|&pod| run.world.pod_name(pod).to_owned());
    for pod in active.into_iter().skip(replicas as usize).rev() {
        run.delete(now, pod, "the workload has too many replicas");
    }
}

fn create_bare(run: &mut Run, now: SimTime, name: Symbol, count: u32, pod: &Arc<PodSpec>) {
    let name = ObjectName { namespace: well_known::DEFAULT, name };
    let workload = workload_named(run, name).unwrap_or_else(|| {
        add_workload(run, name, WorkloadKind::Deployment, LabelSelector::default(), owned(pod, OwnerKind::None))
    });
    run.bare.insert(workload);
    for _ in 0..count {
        run.world.create_pod(workload, None, now);
    }
}

fn finish(run: &mut Run, now: SimTime, name: Symbol) {
    let Some(pod) = pod_named(run, name) else { return };
    let Some(node) = run.world.pod(pod).node else { return };
    run.world.finish_pod(pod, now);
    run.tell(now, Input::PodFinished(pod, node));
}

fn patch_pod(run: &mut Run, name: Symbol, change: &PodChange) {
    let Some(pod) = pod_named(run, name) else { return };
    let mut spec = PodSpec::clone(&run.world.pod(pod).spec);
    merge(&mut spec.annotations, &change.annotations);
    merge(&mut spec.labels, &change.labels);
    run.world.respecify_pod(pod, Arc::new(spec));
}

/// Sets and removes entries.
fn merge(entries: &mut Labels, changes: &[(Symbol, Option<Symbol>)]) {
    for &(key, value) in changes {
        match value {
            Some(value) => entries.set(key, value),
            None => entries.remove(key),
        }
    }
}

fn patch_node(run: &mut Run, now: SimTime, pod: Symbol, change: &NodeChange) {
    with_node(run, pod, |run, node| {
        for &(key, value) in &change.annotations {
            run.world.annotate_node(node, key, value);
        }
        if !change.labels.is_empty() {
            let mut labels = run.world.node(node).labels.clone();
            merge(&mut labels, &change.labels);
            run.world.relabel_node(node, labels);
        }
        if let Some(taints) = &change.taints {
            run.world.set_taints(node, taints.clone());
        }
        for &(kind, status) in &change.conditions {
            match (kind.as_str(), status) {
                ("Ready", ConditionStatus::True) => run.world.ready_node(node, now),
                ("Ready", _) => run.world.unready_node(node, now),
                _ => {}
            }
            run.tell(now, Input::ConditionChanged(node, kind, status));
        }
        run.tell(now, Input::LookAtInitialization(node));
    });
}
