//! What happens from outside in a replay.

use std::sync::Arc;

use super::{NodeChange, PodChange, ReplayAction, cluster};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::{karpenter, kubelet, replay};
use crate::cluster::NewWorkload;
use crate::domain::pod::{OwnerKind, PodDisruptionBudget};
use crate::domain::workload::ObjectName;
use crate::domain::{
    LabelSelector, Labels, NodeId, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId, well_known,
};
use crate::policy::budgets::Protections;
use crate::policy::disruption::ConditionStatus;
use crate::policy::karpenter::Input;
use crate::world::record::{EventKind, WorkloadKind};

/// From the loss of an instance to its node's Ready condition being unknown.
const NOTICED_AFTER: SimDuration = SimDuration::from_millis(40_200);

/// Puts what happens from outside on the queue.
pub(in crate::actors) fn begin(context: &mut Context<'_>) {
    let actions = context.setup.replay.iter().flat_map(|replay| &replay.actions);
    for (number, (at, _)) in actions.enumerate() {
        context.queue.schedule(*at, class::PEOPLE, Event::ReplayAction(number as u32));
    }
}

/// One of these things happens.
pub(in crate::actors) fn act(context: &mut Context<'_>, now: SimTime, number: u32) {
    let setup = context.setup;
    let Some((_, action)) = setup.replay.as_ref().and_then(|replay| replay.actions.get(number as usize)) else {
        return;
    };
    match action {
        ReplayAction::SetReplicas { name, replicas, pod } => {
            if let Some(workload) = replica_set(context, *name, pod.as_ref()) {
                scale(context, now, workload, *replicas);
            }
        }
        ReplayAction::AddReplica { name, pod } => {
            if let Some(workload) = replica_set(context, *name, pod.as_ref()) {
                let replicas = context.world.workload(workload).replicas + 1;
                scale(context, now, workload, replicas);
            }
        }
        ReplayAction::CreateBarePods { name, count, pod } => create_bare(context, now, *name, *count, pod),
        ReplayAction::FinishPod(name) => finish(context, now, *name),
        ReplayAction::PatchPod(name, change) => patch_pod(context, *name, change),
        ReplayAction::PatchNode(pod, change) => patch_node(context, now, *pod, change),
        ReplayAction::ReplaceNodePool(pool) => karpenter::tell(context, now, Input::PoolReplaced(pool.clone())),
        ReplayAction::ApplyBudget(budget) => apply_budget(context, budget),
        ReplayAction::RunDaemon(daemon_set) => {
            let (name, selector) = (daemon_set.name, daemon_set.selector.clone());
            let template = owned(&daemon_set.template, OwnerKind::DaemonSet);
            add_workload(context, name, WorkloadKind::DaemonSet, selector, template);
        }
        ReplayAction::DeleteClaim(pod) => with_node(context, *pod, |context, node| {
            karpenter::tell(context, now, Input::ClaimDeleted(node));
        }),
        ReplayAction::Drift(pod) => with_node(context, *pod, |context, node| {
            karpenter::tell(context, now, Input::ClaimChanged(node));
        }),
        ReplayAction::Notice(pod, notice) => with_node(context, *pod, |context, node| {
            karpenter::tell(context, now, Input::Notice(node, *notice));
        }),
        ReplayAction::StatusCheck(pod, failed) => with_node(context, *pod, |context, node| {
            karpenter::tell(context, now, Input::StatusChecked(node, *failed));
        }),
        ReplayAction::WithdrawType(name) => karpenter::tell(context, now, Input::TypeWithdrawn(*name)),
        ReplayAction::KillInstance(pod) => with_node(context, *pod, |context, node| {
            karpenter::tell(context, now, Input::InstanceGone(node));
            context.queue.schedule_in(NOTICED_AFTER, class::MACHINES, Event::ReplayUnknown(node));
        }),
    }
    replay::changed(context);
}

fn pod_named(context: &Context<'_>, name: Symbol) -> Option<PodId> {
    let mut pods = context.world.workloads().flat_map(|(_, workload)| workload.pods.iter().copied());
    pods.find(|&pod| context.world.pod_name(pod) == name.as_str())
}

/// Does something to the node of a pod.
fn with_node<'s>(context: &mut Context<'s>, pod: Symbol, act: impl FnOnce(&mut Context<'s>, NodeId)) {
    if let Some(node) = pod_named(context, pod).and_then(|pod| context.world.pod(pod).node) {
        act(context, node);
    }
}

fn owned(spec: &PodSpec, owner: OwnerKind) -> Arc<PodSpec> {
    Arc::new(PodSpec { owner, ..spec.clone() })
}

fn add_workload(
    context: &mut Context<'_>,
    name: ObjectName,
    kind: WorkloadKind,
    selector: LabelSelector,
    template: Arc<PodSpec>,
) -> WorkloadId {
    let new = NewWorkload { name, kind, selector, template, replicas: 0 };
    let workload = context.world.add_workload(new, false);
    replay::changed(context);
    workload
}

/// The ReplicaSet of a name; made from `pod` if there is none.
fn replica_set(context: &mut Context<'_>, name: Symbol, pod: Option<&Arc<PodSpec>>) -> Option<WorkloadId> {
    let name = ObjectName { namespace: well_known::DEFAULT, name };
    if let Some(known) = context.workload_named(name) {
        return Some(known);
    }
    let template = owned(pod?, OwnerKind::ReplicaSet);
    let selector = LabelSelector { match_labels: template.labels.clone(), ..LabelSelector::default() };
    Some(add_workload(context, name, WorkloadKind::Deployment, selector, template))
}

/// Sets the replicas, which are made or deleted at once, the highest names first.
fn scale(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, replicas: u32) {
    context.world.set_replicas(workload, replicas, now, EventKind::ReplicasSet, "replay");
    cluster::make_missing(context, now, workload);
    let pods = context.world.workload(workload).pods.clone();
    let mut active: Vec<PodId> = pods.into_iter().filter(|&pod| context.world.pod(pod).is_active()).collect();
    active.sort_by_key(|&pod| context.world.pod_name(pod).to_owned());
    for pod in active.into_iter().skip(replicas as usize).rev() {
        kubelet::delete(context, now, pod, false, "the workload has too many replicas");
    }
}

fn create_bare(context: &mut Context<'_>, now: SimTime, name: Symbol, count: u32, pod: &Arc<PodSpec>) {
    let name = ObjectName { namespace: well_known::DEFAULT, name };
    let workload = context.workload_named(name).unwrap_or_else(|| {
        add_workload(context, name, WorkloadKind::Deployment, LabelSelector::default(), owned(pod, OwnerKind::None))
    });
    if let Some(replay) = &mut context.replay {
        replay.bare.insert(workload);
    }
    for _ in 0..count {
        context.world.create_pod(workload, None, now);
    }
}

fn finish(context: &mut Context<'_>, now: SimTime, name: Symbol) {
    let Some(pod) = pod_named(context, name) else { return };
    let Some(node) = context.world.pod(pod).node else { return };
    context.world.finish_pod(pod, now);
    karpenter::tell(context, now, Input::PodFinished(pod, node));
}

fn patch_pod(context: &mut Context<'_>, name: Symbol, change: &PodChange) {
    let Some(pod) = pod_named(context, name) else { return };
    let mut spec = PodSpec::clone(&context.world.pod(pod).spec);
    merge(&mut spec.annotations, &change.annotations);
    merge(&mut spec.labels, &change.labels);
    context.world.respecify_pod(pod, Arc::new(spec));
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

fn patch_node(context: &mut Context<'_>, now: SimTime, pod: Symbol, change: &NodeChange) {
    with_node(context, pod, |context, node| {
        for &(key, value) in &change.annotations {
            context.world.annotate_node(node, key, value);
        }
        if !change.labels.is_empty() {
            let mut labels = context.world.node(node).labels.clone();
            merge(&mut labels, &change.labels);
            context.world.relabel_node(node, labels);
        }
        if let Some(taints) = &change.taints {
            context.world.set_taints(node, taints.clone());
        }
        for &(kind, status) in &change.conditions {
            match (kind.as_str(), status) {
                ("Ready", ConditionStatus::True) => context.world.ready_node(node, now),
                ("Ready", _) => context.world.unready_node(node, now),
                _ => {}
            }
            karpenter::tell(context, now, Input::ConditionChanged(node, kind, status));
        }
        karpenter::tell(context, now, Input::LookAtInitialization(node));
    });
}

fn apply_budget(context: &mut Context<'_>, budget: &PodDisruptionBudget) {
    context.world.apply_budget(budget.clone());
    context.protections = Protections::default();
}
