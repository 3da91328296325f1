//! Machine images: those of a family are of the control plane's release. A node that is launched after an upgrade comes with the
//! new one; those that are there keep theirs and, from v1 on, are drifted.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/controllers/providers/version/controller.go` (the release is read every 5
//! minutes), `pkg/providers/amifamily`, `pkg/cloudprovider/drift.go`; v0.22 puts drift behind a feature gate that is off.
//!
//! Deviation: an image for the new release is available as soon as Karpenter has read the release, at full five
//! minutes of simulated time.

use std::sync::Arc;

use super::claims::ClaimState;
use super::io::Timer;
use super::step::Step;
use nodecast_model::domain::{KubernetesVersion, NodeClass, NodeId, NodePool, SimDuration, SimTime};

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
    step.karpenter.kubernetes = Some(step.outside.control_plane());
    step.changed(now);
    step.look_at_drift_of_all(now);
}

/// Puts the next release of an image on the timer, where images are released on a schedule.
pub(super) fn await_release(step: &mut Step<'_>, now: SimTime) {
    if let Some(releases) = step.karpenter.settings.images {
        step.wake(releases.next(now, step.karpenter.settings.epoch), Timer::ImageReleased);
    }
}

/// An image is released: nodes that were launched before are drifted now.
pub(super) fn released(step: &mut Step<'_>, now: SimTime) {
    step.karpenter.images += 1;
    await_release(step, now);
    step.changed(now);
    step.look_at_drift_of_all(now);
}

/// A node was launched with the image that its class has now: the release that it is for.
pub(super) fn launched(step: &mut Step<'_>, node: NodeId) -> Option<KubernetesVersion> {
    let pool = step.pool_of(node)?;
    let (release, class) = (image_for(step, pool), class_of(step, pool).cloned());
    let image = step.karpenter.images;
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        claim.image = image;
        claim.image_for = Some(release);
        claim.class = class.map(Arc::new);
    }
    Some(release)
}

/// Whether the class of a pool has another image by now than a node of it was launched with.
///
/// Deviation: a changed image selector finds other images, and an unchanged one finds the same images.
pub(super) fn have_changed(step: &Step<'_>, pool: &NodePool, claim: &ClaimState) -> bool {
    let selects_others =
        || claim.class.as_ref().zip(class_of(step, pool)).is_some_and(|(class, now)| class.images != now.images);
    let takes_newest = class_of(step, pool).is_some_and(|class| class.newest_images);
    let is_old = takes_newest && claim.image_for.is_some() && claim.image != step.karpenter.images;
    is_old || claim.image_for.is_some_and(|release| release != image_for(step, pool)) || selects_others()
}

/// Whether a pool's class is another by now than a node of it was launched with, in what Karpenter compares by hash.
pub(super) fn class_has_changed(step: &Step<'_>, pool: &NodePool, claim: &ClaimState) -> bool {
    let both = claim.class.as_ref().zip(class_of(step, pool));
    both.is_some_and(|(node_class, now)| node_class.name == now.name && !node_class.has_same_hash(now))
}

/// Whether a pool's class selects other security groups by now than a node of it was launched with.
///
/// Deviation: the result of a selector for security groups or subnets is unknown. A changed selector finds other
/// security groups, and none of the subnets of nodes. An unchanged one finds the same.
pub(super) fn security_groups_have_changed(step: &Step<'_>, pool: &NodePool, claim: &ClaimState) -> bool {
    claim.class.as_ref().zip(class_of(step, pool)).is_some_and(|(class, now)| !class.has_same_security_groups(now))
}

/// The same of its subnets.
pub(super) fn subnets_have_changed(step: &Step<'_>, pool: &NodePool, claim: &ClaimState) -> bool {
    claim.class.as_ref().zip(class_of(step, pool)).is_some_and(|(class, now)| !class.has_same_subnets(now))
}

/// The class of a pool.
fn class_of<'s>(step: &'s Step<'_>, pool: &NodePool) -> Option<&'s NodeClass> {
    step.karpenter.settings.node_classes.iter().find(|class| class.name == pool.node_class)
}

/// The release that the images of a pool's class are for.
fn image_for(step: &Step<'_>, pool: &NodePool) -> KubernetesVersion {
    let fixed = class_of(step, pool).is_some_and(|class| class.fixed_images);
    let at_start = step.karpenter.settings.kubernetes;
    if fixed { at_start } else { step.karpenter.kubernetes.unwrap_or(at_start) }
}
