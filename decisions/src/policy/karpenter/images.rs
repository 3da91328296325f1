//! Machine images: those of a family are of the control plane's release. A node that is launched after an upgrade comes with the
//! new one; those that are there keep theirs and, from v1 on, are drifted.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/providers/version/controller.go` (the release is read every 5
//! minutes), `pkg/providers/amifamily`, `pkg/cloudprovider/drift.go`; v0.22 puts drift behind a feature gate that is off.
//!
//! Deviation: an image for the new release is there as soon as Karpenter has read the release, which is at full five minutes of
//! simulated time.

use super::claims::ClaimState;
use super::io::Timer;
use super::step::Step;
use crate::domain::{KubernetesVersion, NodeId, NodePool, SimDuration, SimTime};

/// Between two looks at the control plane's release.
const READ_EVERY: SimDuration = SimDuration::from_secs(300);

/// The control plane was upgraded: Karpenter will read that.
pub(super) fn control_plane_upgraded(step: &mut Step<'_>, now: SimTime) {
    let period = READ_EVERY.as_micros();
    let next = SimTime::from_micros((now.as_micros().div_euclid(period) + 1) * period);
    step.wake(next, Timer::ControlPlaneSeen);
}

/// Karpenter reads the control plane's release: nodes of an older one may be drifted now.
pub(super) fn control_plane_seen(step: &mut Step<'_>, now: SimTime) {
    step.own.kubernetes = Some(step.outside.control_plane());
    step.changed(now);
    step.look_at_drift_of_all(now);
}

/// A node was launched with the image that its class has now: the release that it is for.
pub(super) fn launched(step: &mut Step<'_>, node: NodeId) -> Option<KubernetesVersion> {
    let release = image_for(step, step.pool_of(node)?);
    if let Some(claim) = step.own.nodes.get_mut(&node) {
        claim.image_for = Some(release);
    }
    Some(release)
}

/// Whether the class of a pool has another image by now than a node of it was launched with.
pub(super) fn have_changed(step: &Step<'_>, pool: &NodePool, claim: &ClaimState) -> bool {
    claim.image_for.is_some_and(|release| release != image_for(step, pool))
}

/// The release that the images of a pool's class are for.
fn image_for(step: &Step<'_>, pool: &NodePool) -> KubernetesVersion {
    let class = step.own.settings.node_classes.iter().find(|class| class.name == pool.node_class);
    let fixed = class.is_some_and(|class| class.fixed_images);
    let at_start = step.own.settings.kubernetes;
    if fixed { at_start } else { step.own.kubernetes.unwrap_or(at_start) }
}
