//! What may be done with a pod.
//!
//! Source: Karpenter core v1.13 `pkg/utils/pod/scheduling.go`.

use std::sync::Arc;

use crate::packing::PendingPod;
use nodecast_model::domain::pod::{OwnerKind, PodPhase};
use nodecast_model::domain::taints::TaintEffect;
use nodecast_model::domain::{PodSpec, SimDuration, SimTime, Symbol, Taint, well_known};

/// A pod so long after the end of its grace period no longer holds anything up.
const STUCK_AFTER: SimDuration = SimDuration::from_secs(60);

/// A pod that is bound to a node.
#[derive(Clone, Copy, Debug)]
pub struct PodView<'a> {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: &'a str,
    /// Its specification with its annotations as they are now.
    pub spec: &'a Arc<PodSpec>,
    /// Its phase.
    pub phase: PodPhase,
    /// The end of its grace period, once its deletion was asked for.
    pub deletion: Option<SimTime>,
    /// Whether it is Ready.
    pub ready: bool,
    /// When it was created.
    pub created: SimTime,
    /// When the kubelet took it up (`status.startTime`).
    pub started: Option<SimTime>,
    /// Its place in the order of UIDs.
    pub uid_rank: u64,
}

impl<'a> PodView<'a> {
    /// What the packer is told of it when it has to go elsewhere.
    pub(super) fn as_pending(&self) -> PendingPod<'a> {
        let Self { namespace, name, spec, created, uid_rank, .. } = *self;
        PendingPod { namespace, name, spec, created, uid_rank }
    }

    /// Neither ended nor being deleted.
    pub fn is_active(&self) -> bool {
        !self.phase.is_terminal() && self.deletion.is_none()
    }

    /// Whether its deletion should have been over for a minute.
    fn is_stuck(&self, now: SimTime) -> bool {
        self.deletion.is_some_and(|end| now - end > STUCK_AFTER)
    }

    /// Whether it would have to go somewhere if its node went.
    pub fn is_reschedulable(&self) -> bool {
        let comes_back = self.is_active() || (self.deletion.is_some() && self.spec.owner == OwnerKind::StatefulSet);
        comes_back && self.spec.owner != OwnerKind::DaemonSet && !self.is_static()
    }

    /// Whether `karpenter.sh/do-not-disrupt` protects it now: `"true"` always does, a duration does until the pod has run
    /// for that long. Anything else counts for nothing.
    pub fn do_not_disrupt(&self, now: SimTime) -> bool {
        let Some(value) = self.spec.annotations.get(well_known::DO_NOT_DISRUPT) else { return false };
        if value == well_known::TRUE {
            return true;
        }
        match value.as_str().parse::<SimDuration>() {
            Ok(span) if span > SimDuration::ZERO => self.started.is_none_or(|started| now - started < span),
            _ => false,
        }
    }

    /// Whether its own annotations let a method touch its node.
    pub fn is_disruptable(&self, now: SimTime) -> bool {
        !self.is_active() || !self.do_not_disrupt(now)
    }

    /// Whether the eviction API is asked to take it away.
    pub fn is_evictable(&self, now: SimTime) -> bool {
        self.is_active() && !tolerates_disruption(self.spec) && !self.is_static() && !self.do_not_disrupt(now)
    }

    /// Whether a drain waits for it.
    pub fn waits_for_eviction(&self, now: SimTime) -> bool {
        !self.phase.is_terminal() && !tolerates_disruption(self.spec) && !self.is_stuck(now) && !self.is_static()
    }

    fn is_static(&self) -> bool {
        self.spec.owner == OwnerKind::Node
    }
}

/// Whether the pod stays on a node that is being removed.
///
/// Deviation: for v0.32 to v0.37, too, pods must tolerate the taint of v1, `karpenter.sh/disrupted`.
fn tolerates_disruption(spec: &PodSpec) -> bool {
    let taint = Taint::new(well_known::TAINT_DISRUPTED, TaintEffect::NoSchedule);
    spec.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}
