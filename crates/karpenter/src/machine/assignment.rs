//! Pods that go to a node of their own: v0.4 and v0.6 made the Node object when they launched the machine and bound the pods
//! to it, which therefore were no longer pending when the next pass came.
//!
//! Source: Karpenter v0.6.3 `pkg/controllers/provisioning/provisioner.go`, `launch`, `bind`.
//!
//! Deviation: v0.4 and v0.6 bound pods to the node that they had just requested. Here the scheduler binds them when
//! the node is Ready. Until ten seconds later no other node is launched for them.

use super::step::Step;
use nodecast_model::cluster::NodePhase;
use nodecast_model::domain::{NodeId, PodId, SimDuration, SimTime};

/// The scheduler's time to bind what waits for a node that is Ready.
const BINDING: SimDuration = SimDuration::from_secs(10);

/// The pods go to the node that is launched for them.
pub(super) fn assign(step: &mut Step<'_>, pods: Vec<PodId>, node: NodeId) {
    if step.karpenter.behaviour.binds_pods {
        step.karpenter.assigned.extend(pods.into_iter().map(|pod| (pod, node)));
    }
}

/// Whether a node for the pod is on its way.
pub(super) fn is_assigned(step: &Step<'_>, now: SimTime, pod: PodId) -> bool {
    let Some(&node) = step.karpenter.assigned.get(&pod) else { return false };
    let state = step.cluster.node(node);
    let comes = state.phase < NodePhase::Terminating && state.deletion_requested.is_none();
    comes && bound_until(step, node).is_none_or(|until| now < until)
}

/// Until when pods are expected on the node, if some have it for their own and are not there yet.
pub(super) fn awaited_until(step: &Step<'_>, now: SimTime, node: NodeId) -> Option<SimTime> {
    let waits = |(pod, node_id): (&PodId, &NodeId)| *node_id == node && step.cluster.pod(*pod).is_active();
    let awaited = step.karpenter.assigned.iter().any(waits);
    awaited.then(|| bound_until(step, node).unwrap_or(now))
}

/// When the scheduler should have bound the node's pods; `None` before it is initialized.
fn bound_until(step: &Step<'_>, node: NodeId) -> Option<SimTime> {
    Some(step.karpenter.nodes.get(&node)?.initialized_at? + BINDING)
}
