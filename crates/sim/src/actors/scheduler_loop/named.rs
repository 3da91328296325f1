//! Pods that name their node themselves (`spec.nodeName`): no scheduler looks at them, the kubelet of the node takes them or fails them.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/eventhandlers.go`, `assignedPod`; `pkg/kubelet/lifecycle/predicate.go`, `Admit`.
//!
//! Deviation: a pod of a controller that names its node waits while the node does not admit it. In a cluster it fails
//! and is created again and again.
//! Deviation: a pod that names a missing node waits for it. In a cluster, the garbage collector deletes it after 40
//! to 60 seconds, and its controller creates it again.

use super::super::kubelet;
use super::super::sim::Sim;
use super::{PodEntry, bound_elsewhere};
use crate::actors::scheduler_loop::SchedulerLoop;
use crate::cluster::NodePhase;
use crate::domain::{NodeId, PodId, SimTime};
use crate::world::record::WorkloadKind;

/// Whether the pod has gone to the node that it names, or has failed there. One whose node is not there or not Ready waits.
pub(super) fn goes_by_itself(
    sim: &mut Sim<'_>,
    scheduler: &mut SchedulerLoop,
    now: SimTime,
    pod: PodId,
    known: PodEntry,
) -> bool {
    let Some(node) = named_node(sim, pod) else { return false };
    match scheduler.view.admitted_by_kubelet(node, known.shape) {
        None => bound_elsewhere(sim, scheduler, now, pod, node),
        Some(rejection) => {
            let owner = sim.world.pod(pod).workload;
            if sim.world.workload(owner).kind != WorkloadKind::Pods {
                return false;
            }
            let version = sim.setup.scheduler.version;
            let reasons: Vec<String> = rejection.reasons.iter().map(|reason| reason.text(version)).collect();
            kubelet::rejected(sim, now, pod, &reasons.join(", "));
        }
    }
    true
}

/// Whether the scheduler knows nothing of the pod, so that it writes no condition of it, evicts no other for it, and no autoscaler looks at it.
///
/// Source: Karpenter core v1.13 `pkg/utils/pod/scheduling.go`, `IsProvisionable` (`FailedToSchedule`); Cluster Autoscaler 1.36
/// `utils/kubernetes/listers.go`, `UnschedulablePods`.
pub(super) fn is_unknown_to_scheduler(sim: &Sim<'_>, pod: PodId) -> bool {
    sim.world.pod(pod).spec.node_name.is_some()
}

/// The Ready node that the pod names.
fn named_node(sim: &Sim<'_>, pod: PodId) -> Option<NodeId> {
    let name = sim.world.pod(pod).spec.node_name?;
    sim.world.live_nodes().iter().copied().find(|&node| {
        let host = sim.world.node(node);
        host.name.as_str() == name.as_str() && host.phase == NodePhase::Registered && host.ready
    })
}
