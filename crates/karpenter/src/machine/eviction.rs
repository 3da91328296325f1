//! Karpenter's queue of evictions, with its back-off.
//!
//! A first try is made at once; only tries after a refusal draw on the queue's limit, as upstream adds pods to its queue
//! without it.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/termination/terminator/eviction.go`, for a controller that requests one
//! CPU.

use super::claims::is_marked;
use super::cluster_view::unnamed_pod_view;
use super::io::{Action, Timer};
use super::step::Step;
use super::{pace, termination};
use nodecast_model::control_plane::call_limit::CallLimit;
use nodecast_model::domain::{PodId, SimDuration, SimTime};

/// Between the first try and the second; it doubles with every further one.
const BACKOFF: SimDuration = SimDuration::from_millis(100);
const BACKOFF_MAX: SimDuration = SimDuration::from_secs(10);

/// After so long one more try after a refusal may be made: 100 a second.
const RETRY_EVERY: SimDuration = SimDuration::from_millis(10);
/// Tries after a refusal that may be made at once.
const RETRY_BURST: i64 = 1_000;

/// The limit on tries after a refusal, of all pods together.
#[derive(Clone, Debug)]
pub(super) struct RetryLimit(CallLimit);

impl Default for RetryLimit {
    fn default() -> Self {
        Self(CallLimit::every(RETRY_EVERY, RETRY_BURST))
    }
}

/// Puts the pod in the queue, unless it is there, and tries at once.
pub(super) fn enqueue(step: &mut Step<'_>, now: SimTime, pod: PodId) {
    if let std::collections::btree_map::Entry::Vacant(place) = step.karpenter.evictions.entry(pod) {
        place.insert(0);
        let at = pace::eviction_at(step, now);
        if at > now {
            step.wake(at, Timer::EvictionRetry(pod));
        } else {
            attempt(step, now, pod);
        }
    }
}

/// Tries to evict a pod of the queue.
///
/// Source: for the queue that also deletes pods, Karpenter core 226646810 `pkg/controllers/node/termination/terminator/eviction.go`,
/// `Queue.Reconcile`.
pub(super) fn attempt(step: &mut Step<'_>, now: SimTime, pod: PodId) {
    if !step.karpenter.evictions.contains_key(&pod) {
        return;
    }
    let state = step.cluster.pod(pod);
    let leaves = state.node.filter(|&node| is_marked(step, node));
    let deletes = step.karpenter.behaviour.queue_forces_deletion;
    if let Some(grace) = leaves.filter(|_| deletes).and_then(|node| termination::forced_grace(step, now, node, pod)) {
        step.karpenter.evictions.remove(&pod);
        step.act(Action::DeletePod(pod, grace));
    } else if leaves.is_none() || !state.is_active() {
        step.karpenter.evictions.remove(&pod);
    } else if deletes && unnamed_pod_view(step, pod).do_not_disrupt(now) {
        answered(step, now, pod, false);
    } else {
        step.act(Action::Evict(pod));
    }
}

/// A refusal is tried again, ever more slowly.
pub(super) fn answered(step: &mut Step<'_>, now: SimTime, pod: PodId, allowed: bool) {
    let Some(&failures) = step.karpenter.evictions.get(&pod) else { return };
    if allowed {
        step.karpenter.evictions.remove(&pod);
        return;
    }
    step.karpenter.evictions.insert(pod, failures + 1);
    let wait = (BACKOFF * i64::from(1_u32 << failures.min(7))).min(BACKOFF_MAX);
    let wait = wait.max(step.karpenter.eviction_retries.0.reserve(now) - now);
    step.wake(now + wait, Timer::EvictionRetry(pod));
}

#[cfg(test)]
mod tests {
    use super::RetryLimit;
    use nodecast_model::domain::{SimDuration, SimTime};

    #[test]
    fn eviction_retries_allow_1000_then_100_per_second() {
        let at = |millis: i64| SimTime::ZERO + SimDuration::from_millis(millis);
        let mut limit = RetryLimit::default().0;
        assert!((0..1_000).all(|_| limit.reserve(at(5_000)) == at(5_000)));
        assert_eq!(limit.reserve(at(5_000)), at(5_010));
        assert_eq!(limit.reserve(at(5_000)), at(5_020));
        // Two seconds later two hundred have come back, and two of them are spoken for.
        assert!((0..198).all(|_| limit.reserve(at(7_000)) == at(7_000)));
        assert_eq!(limit.reserve(at(7_000)), at(7_010));
        assert_eq!(limit.reserve(at(60_000)), at(60_000));
    }
}
