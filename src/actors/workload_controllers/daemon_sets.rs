//! DaemonSets: a pod on every node that they want, and updates of these.
//!
//! Deviation: a daemon that is evicted without an update under way comes back with its node's next pod only; `maxSurge` of an
//! update is 0, the API's default.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/daemon`.

use std::sync::Arc;

use super::super::context::Context;
use super::super::{kubelet, scheduler_loop};
use super::{begin_workload, is_available, wake, wake_after};
use crate::domain::pod::{IntOrPercent, OwnerKind};
use crate::domain::taints::{TaintEffect, Toleration, first_untolerated};
use crate::domain::workload::DaemonSet;
use crate::domain::{NodeId, PodId, PodSpec, SimTime, WorkloadId, well_known};
use crate::world::NodePhase;
use crate::world::record::{EventKind, WorkloadKind};

/// What the controller remembers of a DaemonSet.
#[derive(Clone, Debug)]
pub(super) struct Daemons {
    applied: DaemonSet,
    /// Whether pods of former templates are being replaced.
    rolling: bool,
}

/// A DaemonSet is applied: every node that it wants gets a pod; a known one takes over the new template.
pub(in crate::actors) fn apply(context: &mut Context<'_>, now: SimTime, daemon_set: &DaemonSet) {
    let known = context.workload_named(daemon_set.name).filter(|id| context.controllers.daemon_sets.contains_key(id));
    let daemons = Daemons { applied: daemon_set.clone(), rolling: false };
    if let Some(workload) = known {
        context.world.note(now, EventKind::ManifestApplied, Some(workload), "DaemonSet");
        let before = context.controllers.daemon_sets.insert(workload, daemons);
        if before.is_none_or(|before| before.applied.template != daemon_set.template) {
            update(context, now, workload, &daemon_set.template);
        }
        return;
    }
    let template = daemon_template(&daemon_set.template);
    let owner = (OwnerKind::DaemonSet, 0);
    let kind = WorkloadKind::DaemonSet;
    let (workload, _) = begin_workload(context, now, daemon_set.name, kind, &daemon_set.selector, &template, owner);
    context.controllers.daemon_sets.insert(workload, daemons);
    for node in context.world.live_nodes().to_vec() {
        place(context, now, workload, node);
    }
}

fn update(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, template: &PodSpec) {
    let template = super::owned_template(&daemon_template(template), OwnerKind::DaemonSet);
    let revision = context.world.add_revision(workload, Arc::new(template));
    context.world.use_revision(workload, revision);
    context.world.note(now, EventKind::RolloutStarted, Some(workload), format!("to revision {}", revision + 1));
    if let Some(own) = context.controllers.daemon_sets.get_mut(&workload) {
        own.rolling = own.applied.max_unavailable.is_some();
    }
    wake(context, workload);
}

/// A node has registered: the daemons that it wants are made.
pub(in crate::actors) fn node_registered(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let daemon_sets: Vec<WorkloadId> = context.controllers.daemon_sets.keys().copied().collect();
    for workload in daemon_sets {
        place(context, now, workload, node);
    }
}

/// The templates of all DaemonSets, for those who reckon with daemons on nodes to come.
pub(in crate::actors) fn templates(context: &Context<'_>) -> Vec<Arc<PodSpec>> {
    context
        .world
        .workloads()
        .filter(|(_, workload)| workload.kind == WorkloadKind::DaemonSet)
        .map(|(_, workload)| Arc::clone(&workload.template))
        .collect()
}

/// A pod has become Ready: an update may go on.
pub(super) fn pod_ready(context: &mut Context<'_>, workload: WorkloadId) {
    let Some(own) = context.controllers.daemon_sets.get(&workload).filter(|own| own.rolling) else { return };
    let min_ready = own.applied.min_ready;
    wake_after(context, workload, min_ready);
}

/// In the middle of an update: daemons that have gone come back with the new template, and further old ones go.
///
/// Source: `update.go`, `rollingUpdate`.
pub(super) fn reconcile(context: &mut Context<'_>, now: SimTime, workload: WorkloadId) {
    let Some(own) = context.controllers.daemon_sets.get(&workload).filter(|own| own.rolling) else { return };
    let (min_ready, most) = (own.applied.min_ready, own.applied.max_unavailable.unwrap_or(IntOrPercent::Count(1)));
    for node in context.world.live_nodes().to_vec() {
        if !context.world.workload(workload).pods.iter().any(|&pod| context.world.pod(pod).pinned == Some(node)) {
            place(context, now, workload, node);
        }
    }
    let state = context.world.workload(workload);
    let (current, pods) = (state.revision, state.pods.clone());
    let most = most.of_rounded_up(pods.len() as i64).max(1);
    let old = |pod: &PodId| context.world.pod(*pod).revision != current && context.world.pod(*pod).is_active();
    let there = |pod: &PodId| is_available(context, now, *pod, min_ready);
    let (available, unavailable): (Vec<PodId>, Vec<PodId>) = pods.iter().copied().partition(there);
    let mut go: Vec<PodId> = unavailable.iter().copied().filter(old).collect();
    let room = (most - unavailable.len() as i64).max(0);
    go.extend(available.iter().copied().filter(old).take(usize::try_from(room).unwrap_or(0)));
    let done = pods.iter().all(|&pod| context.world.pod(pod).revision == current) && unavailable.is_empty();
    for pod in go {
        kubelet::delete(context, now, pod, false, "its template has changed");
    }
    if done {
        if let Some(own) = context.controllers.daemon_sets.get_mut(&workload) {
            own.rolling = false;
        }
        context.world.note(now, EventKind::RolloutFinished, Some(workload), format!("revision {}", current + 1));
    }
}

/// Makes the daemon of a node, if it wants one.
fn place(context: &mut Context<'_>, now: SimTime, workload: WorkloadId, node: NodeId) {
    let host = context.world.node(node);
    if host.phase != NodePhase::Registered {
        return;
    }
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
