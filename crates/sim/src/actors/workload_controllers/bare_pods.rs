//! Pods that nothing controls: once deleted, evicted or lost, nobody makes them again.

use std::sync::Arc;

use super::super::actor_events::ActorEvent;
use super::super::sim::Sim;
use super::owned_template;
use crate::cluster::NewWorkload;
use crate::domain::pod::OwnerKind;
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, PodId, PodSpec, SimTime, Symbol, WorkloadId};
use crate::world::record::{EventKind, WorkloadKind};

/// The name of what stands for the owner of a namespace's pods without one.
const OWNER: &str = "(pods)";

/// A pod is applied; one of this name that is still there stays as it is.
pub(in crate::actors) fn apply(sim: &mut Sim<'_>, now: SimTime, name: ObjectName, spec: &PodSpec) {
    let template = owned_template(spec, OwnerKind::None);
    let (workload, new) = owner(sim, name.namespace, &template);
    let there = |&pod: &PodId| sim.world.pod_name(pod) == name.name.as_str();
    if sim.world.workload(workload).pods.iter().any(there) {
        return;
    }
    let revision = sim.world.revision_of(workload, template);
    if new {
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), "Pod");
    }
    create(sim, now, workload, revision, name.name.to_string());
}

/// Makes a pod of one of the templates of `workload`.
pub(in crate::actors) fn create(
    sim: &mut Sim<'_>,
    now: SimTime,
    workload: WorkloadId,
    revision: u32,
    name: String,
) -> PodId {
    let replicas = sim.world.workload(workload).replicas;
    sim.world.count_bare_pods(workload, replicas + 1);
    let pod = sim.world.create_pod_of(workload, revision, None, name, now);
    sim.publish(ActorEvent::PodCreated(pod));
    pod
}

/// A pod is there whose owner is not: it stays as it is, and nobody makes it again.
pub(in crate::actors) fn find(
    sim: &mut Sim<'_>,
    namespace: Symbol,
    spec: &PodSpec,
    name: String,
    created: SimTime,
) -> PodId {
    let mut template = owned_template(spec, if spec.owner == OwnerKind::Node { spec.owner } else { OwnerKind::None });
    template.node_name = None;
    let (workload, _) = owner(sim, namespace, &template);
    let revision = sim.world.revision_of(workload, template);
    let replicas = sim.world.workload(workload).replicas;
    sim.world.count_bare_pods(workload, replicas + 1);
    sim.world.find_pod((workload, revision), name, created, None)
}

/// What stands for the owner of a namespace's pods without one, and whether it is new.
fn owner(sim: &mut Sim<'_>, namespace: Symbol, template: &PodSpec) -> (WorkloadId, bool) {
    let name = ObjectName { namespace, name: Symbol::new(OWNER) };
    if let Some(known) = sim.workload_named(name) {
        return (known, false);
    }
    let new = NewWorkload {
        name,
        kind: WorkloadKind::Pods,
        // It selects nothing: pods without a controller are not spread by one.
        selector: LabelSelector::default(),
        template: Arc::new(template.clone()),
        replicas: 0,
    };
    (sim.world.add_workload(new, false), true)
}

/// A pod of the namespace's is gone.
pub(in crate::actors) fn reconcile(sim: &mut Sim<'_>, workload: WorkloadId) {
    let left = sim.world.workload(workload).pods.len() as u32;
    sim.world.count_bare_pods(workload, left);
}
