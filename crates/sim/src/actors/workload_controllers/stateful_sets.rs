//! StatefulSets: pods with ordinals, made and deleted in their order.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/statefulset`.

use std::collections::BTreeMap;

use super::super::actor_events::ActorEvent;
use super::super::kubelet;
use super::super::sim::Sim;
use super::{begin_workload, is_available, owned_template, pod_labels, refuse_edit, wake, wake_after};
use crate::actors::vertical::Vertical;
use crate::actors::volumes::Volumes;
use crate::actors::workload_controllers::Controllers;
use crate::cluster::PodPhase;
use crate::domain::pod::OwnerKind;
use crate::domain::workload::StatefulSet;
use crate::domain::{PodId, PodSpec, SimTime, WorkloadId};
use crate::world::record::{EventKind, WorkloadKind};
use nodecast_replicas::workloads::{OrdinalStep, OrdinalView, StatefulSetView, fixed_of_stateful_set, ordinal_steps};

/// What the controller remembers of a StatefulSet.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    /// As last applied.
    applied: StatefulSet,
    /// The revision of pods below the partition: the last one that all pods had.
    former: u32,
    /// Whether a template that was applied has not reached all pods yet.
    rolling: bool,
    ordinals: BTreeMap<PodId, u32>,
}

/// A StatefulSet is applied: a new one comes to be, a known one takes over the new count and template.
pub(in crate::actors) fn apply(sim: &mut Sim<'_>, controllers: &mut Controllers, now: SimTime, set: &StatefulSet) {
    let known = sim.workload_named(set.name).filter(|id| controllers.stateful_sets.contains_key(id));
    let workload = match known {
        Some(workload) => {
            controllers.change_stateful_set(sim, now, workload, set);
            workload
        }
        None => {
            let owner = (OwnerKind::StatefulSet, set.replicas.unwrap_or(1));
            let kind = WorkloadKind::StatefulSet;
            let (workload, _) =
                begin_workload(sim, controllers, now, set.name, kind, (&set.selector, &set.template), owner);
            sim.publish(ActorEvent::WorkloadApplied(workload));
            let ordered = Ordered { applied: set.clone(), former: 0, rolling: false, ordinals: BTreeMap::new() };
            controllers.stateful_sets.insert(workload, ordered);
            workload
        }
    };
    wake(sim, workload);
}

impl Controllers {
    fn change_stateful_set(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, set: &StatefulSet) {
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), "StatefulSet");
        let Some(stateful_set) = self.stateful_sets.get_mut(&workload) else { return };
        if let Some(field) = fixed_of_stateful_set(&stateful_set.applied, set) {
            return refuse_edit(sim, now, workload, field);
        }
        let before = std::mem::replace(&mut stateful_set.applied, set.clone());
        stateful_set.rolling |= before.template != set.template;
        let replicas = set.replicas.or_else(|| before.replicas.map(|_| 1));
        if let Some(replicas) = replicas.filter(|&replicas| replicas != sim.world.workload(workload).replicas) {
            sim.world.set_replicas(workload, replicas, now, EventKind::ReplicasSet, "the manifest says so");
        }
        if before.template != set.template {
            let template: PodSpec = owned_template(&set.template, OwnerKind::StatefulSet);
            let revision = sim.world.revision_of(workload, template);
            sim.world.use_revision(workload, revision);
            let message = format!("to revision {}", revision + 1);
            sim.world.note(now, EventKind::RolloutStarted, Some(workload), message);
        }
    }

    /// A pod is there: its name tells its ordinal.
    pub(in crate::actors) fn find_ordinal(&mut self, sim: &mut Sim<'_>, workload: WorkloadId, pod: PodId) {
        let ordinal = sim.world.pod_name(pod).rsplit('-').next().and_then(|text| text.parse().ok());
        if let (Some(stateful_set), Some(ordinal)) = (self.stateful_sets.get_mut(&workload), ordinal) {
            stateful_set.ordinals.insert(pod, ordinal);
            pod_labels::label_ordinal(sim, pod, ordinal);
        }
    }

    /// A StatefulSet is deleted: the claims that it made go with it, if it says so.
    pub(super) fn stateful_set_deleted(&mut self, sim: &Sim<'_>, volumes: &mut Volumes, workload: WorkloadId) {
        let Some(stateful_set) = self.stateful_sets.remove(&workload) else { return };
        if !stateful_set.applied.leaves_claims {
            volumes.delete_of_set(sim, stateful_set.applied.name, &stateful_set.applied.template.volumes);
        }
    }

    /// A pod has become Ready: what waits for it may go on once it counts as available.
    pub(super) fn ordinal_ready(&mut self, sim: &mut Sim<'_>, workload: WorkloadId) {
        let Some(stateful_set) = self.stateful_sets.get(&workload) else { return };
        let min_ready = stateful_set.applied.min_ready;
        wake_after(sim, workload, min_ready);
    }
}

/// One pass of the controller.
pub(in crate::actors) fn reconcile(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    volumes: &mut Volumes,
    now: SimTime,
    workload: WorkloadId,
) {
    let Some(mut stateful_set) = controllers.stateful_sets.remove(&workload) else { return };
    let pods = sim.world.workload(workload).pods.clone();
    forget_gone(sim, volumes, workload, &mut stateful_set);
    let current = sim.world.workload(workload).revision;
    let view = |&pod: &PodId| OrdinalView {
        ordinal: stateful_set.ordinals.get(&pod).copied().unwrap_or(u32::MAX),
        available: is_available(sim, now, pod, stateful_set.applied.min_ready),
        deleting: !sim.world.pod(pod).is_active(),
        updated: sim.world.pod(pod).revision == current,
    };
    let views: Vec<OrdinalView> = pods.iter().map(view).collect();
    let replicas = sim.world.workload(workload).replicas;
    let steps = ordinal_steps(&StatefulSetView {
        replicas,
        first_ordinal: stateful_set.applied.first_ordinal,
        parallel: stateful_set.applied.parallel,
        update: stateful_set.applied.update,
        version: sim.setup.policy.versions.kubernetes,
        pods: &views,
    });
    finish_update(sim, now, workload, &mut stateful_set, &views);
    for step in steps {
        if !controllers.may_call(sim, now, workload) {
            break;
        }
        match step {
            OrdinalStep::Create { ordinal, updated } => {
                let revision = if updated { current } else { stateful_set.former };
                let name = format!("{}-{ordinal}", sim.world.workload(workload).name.name);
                if !controllers.quotas.admits_ordinal(sim, vertical, volumes, now, workload, (revision, &name)) {
                    break;
                }
                let pod = sim.world.create_pod_of(workload, revision, None, name, now);
                stateful_set.ordinals.insert(pod, ordinal);
                pod_labels::label_ordinal(sim, pod, ordinal);
                sim.publish(ActorEvent::PodCreated(pod));
            }
            OrdinalStep::Delete(position) => {
                let surplus = !is_in_range(&stateful_set.applied, replicas, views[position].ordinal);
                let reason = if surplus { "the workload has too many replicas" } else { "its template has changed" };
                kubelet::delete(sim, now, pods[position], false, reason);
            }
        }
    }
    controllers.stateful_sets.insert(workload, stateful_set);
}

/// Whether a pod of this ordinal is one of so many replicas.
///
/// Source: `stateful_set_utils.go`, `podInOrdinalRange`.
fn is_in_range(set: &StatefulSet, replicas: u32, ordinal: u32) -> bool {
    let first = u64::from(set.first_ordinal);
    (first..first + u64::from(replicas)).contains(&u64::from(ordinal))
}

/// Forgets pods that are gone; claims of those that are too many go too, if the StatefulSet says so.
fn forget_gone(sim: &Sim<'_>, volumes: &mut Volumes, workload: WorkloadId, ordered: &mut Ordered) {
    let gone = |pod: &PodId| sim.world.pod(*pod).phase == PodPhase::Gone;
    let left: Vec<PodId> = ordered.ordinals.keys().copied().filter(gone).collect();
    let replicas = sim.world.workload(workload).replicas;
    for pod in left {
        let ordinal = ordered.ordinals.remove(&pod);
        if !ordered.applied.keeps_claims
            && ordinal.is_some_and(|ordinal| !is_in_range(&ordered.applied, replicas, ordinal))
        {
            volumes.delete_templates(sim, pod);
        }
    }
}

/// Once all pods have the present template, it is what pods below a partition are made from.
fn finish_update(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, ordered: &mut Ordered, views: &[OrdinalView]) {
    let (current, replicas) = (sim.world.workload(workload).revision, sim.world.workload(workload).replicas);
    let done =
        views.len() == replicas as usize && views.iter().all(|pod| pod.updated && pod.available && !pod.deleting);
    if (ordered.rolling || ordered.former != current) && done {
        (ordered.former, ordered.rolling) = (current, false);
        sim.world.note(now, EventKind::RolloutFinished, Some(workload), format!("revision {}", current + 1));
    }
}
