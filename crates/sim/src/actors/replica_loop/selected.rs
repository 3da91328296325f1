//! Which pods an autoscaler looks at: those that the selector of its target's scale takes, whoever made them.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/podautoscaler/replica_calculator.go` (pods are listed by selector),
//! `horizontal.go` (`validateAndParseSelector`, `hpasControllingPodsUnderSelector`).

use rustc_hash::FxHashMap;

use crate::actors::context::Context;
use crate::domain::{KubernetesBehaviour, PodId, WorkloadId};

/// The pods of others that the target's selector takes, in order of creation: mostly none.
pub(super) fn of_others(context: &Context<'_>, target: WorkloadId) -> Vec<PodId> {
    let mut taken = context.taken_from_others.borrow_mut();
    if !taken.is_current(&context.world) {
        taken.catch_up(&context.world);
    }
    taken.value().by(target).collect()
}

/// Whether another autoscaler looks at a pod that this one looks at, which the controller refuses from Kubernetes 1.26 on.
pub(super) fn is_ambiguous(context: &Context<'_>, index: u32) -> bool {
    let own = &context.autoscalers[index as usize];
    if !context.setup.policy.versions.kubernetes.has(KubernetesBehaviour::HpaAmbiguousSelector) {
        return false;
    }
    own.has_rival || own.target.is_some_and(|target| shares_pods(context, target))
}

/// Whether the target of another autoscaler shares pods with this one.
fn shares_pods(context: &Context<'_>, target: WorkloadId) -> bool {
    let taken = context.taken_from_others.borrow();
    if taken.value().is_empty() {
        return false;
    }
    let namespace = context.world.workload(target).name.namespace;
    let mut others = context.replica_autoscalers().map(|(_, other)| other).filter(|&other| other != target);
    others.any(|other| {
        let beside = context.world.workload(other).name.namespace == namespace;
        beside && taken.value().meet(&context.world, target, other)
    })
}

/// Finds out which autoscalers scale the same workload: an autoscaler or its target has come or gone.
pub(super) fn find_rivals(context: &mut Context<'_>) {
    let mut scalers: FxHashMap<WorkloadId, u32> = FxHashMap::default();
    for (_, target) in context.replica_autoscalers() {
        *scalers.entry(target).or_default() += 1;
    }
    for own in &mut context.autoscalers {
        let others = |target| scalers.get(&target).copied().unwrap_or(0) - u32::from(!own.retired);
        own.has_rival = own.target.is_some_and(|target| others(target) > 0);
    }
}
