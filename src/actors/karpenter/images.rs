//! Machine images: those of a family are of the control plane's release. A node that is launched after an upgrade comes with the
//! new one; those that are there keep theirs and, from v1 on, are drifted.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/providers/version/controller.go` (the release is read every 5
//! minutes), `pkg/providers/amifamily`, `pkg/cloudprovider/drift.go`; v0.22 puts drift behind a feature gate that is off.
//!
//! Deviation: an image for the new release is there as soon as Karpenter has read the release, which is at full five minutes of
//! simulated time.

use super::claims::{self, ClaimState};
use super::disruption;
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::domain::{KubernetesVersion, NodeId, NodePool, SimDuration, SimTime};

/// Between two looks at the control plane's release.
const READ_EVERY: SimDuration = SimDuration::from_secs(300);

/// The control plane was upgraded: Karpenter will read that.
pub(in crate::actors) fn control_plane_upgraded(context: &mut Context<'_>, now: SimTime) {
    if context.karpenter.settings.is_some() {
        let period = READ_EVERY.as_micros();
        let next = SimTime::from_micros((now.as_micros().div_euclid(period) + 1) * period);
        context.queue.schedule(next, class::NODE_AUTOSCALER, Event::ControlPlaneSeen);
    }
}

/// Karpenter reads the control plane's release: nodes of an older one may be drifted now.
pub(in crate::actors) fn control_plane_seen(context: &mut Context<'_>, now: SimTime) {
    context.karpenter.kubernetes = Some(context.control_plane);
    disruption::changed(context, now);
    let nodes: Vec<NodeId> = context.karpenter.nodes.keys().copied().collect();
    for node in nodes {
        claims::look_at_drift(context, now, node);
    }
}

/// A node was launched with the image that its class has now.
pub(super) fn launched(context: &mut Context<'_>, node: NodeId) {
    let Some(pool) = super::pool_of(context, node) else { return };
    let release = image_for(context, pool);
    if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
        claim.image_for = Some(release);
    }
    context.world.describe_kubelet(node, release);
}

/// Whether the class of a pool has another image by now than a node of it was launched with.
pub(super) fn have_changed(context: &Context<'_>, pool: &NodePool, claim: &ClaimState) -> bool {
    claim.image_for.is_some_and(|release| release != image_for(context, pool))
}

/// The release that the images of a pool's class are for.
fn image_for(context: &Context<'_>, pool: &NodePool) -> KubernetesVersion {
    let class = context.setup.node_classes.iter().find(|class| class.name == pool.node_class);
    let fixed = class.is_some_and(|class| class.fixed_images);
    let at_start = context.setup.versions.kubernetes;
    if fixed { at_start } else { context.karpenter.kubernetes.unwrap_or(at_start) }
}
