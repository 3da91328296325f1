//! Evictions: the queue with its back-off, and the API server's answers. PodDisruptionBudgets are looked at anew for every
//! pod.
//!
//! A first try is made at once; only tries after a refusal draw on the queue's limit, as upstream adds pods to its queue
//! without it.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/termination/terminator/eviction.go`, for a controller that requests one
//! CPU.

use std::sync::Arc;

use super::claims::is_marked;
use super::pace;
use crate::actors::call_limit::CallLimit;
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::kubelet;
use crate::cluster::PodPhase;
use crate::domain::pod::{PodDisruptionBudget, PodPhase as ReportedPhase};
use crate::domain::{PodId, PodSpec, SimDuration, SimTime, Symbol};
use crate::policy::budgets::{
    BudgetStatus, EvictionAnswer, EvictionBudget, EvictionView, ProtectedPods, Protectors, budget_status, eviction,
    is_healthy,
};
use crate::policy::kube_scheduler::BudgetState;
use crate::world::record::WorkloadKind;

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
pub(super) fn enqueue(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    if let std::collections::btree_map::Entry::Vacant(place) = context.karpenter.evictions.entry(pod) {
        place.insert(0);
        let at = pace::eviction_at(context, now);
        if at > now {
            context.queue.schedule(at, class::NODE_AUTOSCALER, Event::EvictionRetry(pod));
        } else {
            attempt(context, now, pod);
        }
    }
}

/// Tries to evict a pod of the queue; a refusal is tried again, ever more slowly.
pub(in crate::actors) fn attempt(context: &mut Context<'_>, now: SimTime, pod: PodId) {
    let Some(&failures) = context.karpenter.evictions.get(&pod) else { return };
    let state = context.world.pod(pod);
    let on_leaving_node = state.node.is_some_and(|node| is_marked(context, node));
    if !state.is_active() || !on_leaving_node || evict(context, now, pod, "its node is being removed") {
        context.karpenter.evictions.remove(&pod);
        return;
    }
    context.karpenter.evictions.insert(pod, failures + 1);
    let wait = (BACKOFF * i64::from(1_u32 << failures.min(7))).min(BACKOFF_MAX);
    let wait = wait.max(context.karpenter.eviction_retries.0.reserve(now) - now);
    context.queue.schedule_in(wait, class::NODE_AUTOSCALER, Event::EvictionRetry(pod));
}

/// Evicts the pod if its budgets allow it now; whether they did.
pub(in crate::actors) fn evict(context: &mut Context<'_>, now: SimTime, pod: PodId, reason: &str) -> bool {
    let grace = context.world.pod(pod).spec.grace_period();
    evict_within(context, now, pod, grace, reason)
}

/// The same with a grace period of the evicting program's choice.
pub(in crate::actors) fn evict_within(
    context: &mut Context<'_>,
    now: SimTime,
    pod: PodId,
    grace: SimDuration,
    reason: &str,
) -> bool {
    let state = context.world.pod(pod);
    let view = EvictionView {
        phase: if state.phase == PodPhase::Running { ReportedPhase::Running } else { ReportedPhase::Pending },
        deleting: !state.is_active(),
        ready: state.is_ready(),
    };
    let statuses = allowances(context, now);
    let own = protectors(context, state.namespace, &state.spec);
    let budgets: Vec<EvictionBudget> = own
        .iter()
        .map(|&budget| budget as usize)
        .map(|budget| EvictionBudget {
            status: statuses[budget],
            always_allow_unhealthy: context.pod_budgets[budget].always_allow_unhealthy,
        })
        .collect();
    match eviction(view, &budgets) {
        EvictionAnswer::Evicted { uses_budget } => {
            if let (true, Some(replay)) = (uses_budget, &mut context.replay) {
                own.iter().for_each(|&budget| replay.use_budget(budget as usize));
            }
            if context.world.pod(pod).is_active() {
                kubelet::delete_within(context, now, pod, grace, true, reason);
            }
            true
        }
        EvictionAnswer::TooManyRequests | EvictionAnswer::SeveralBudgets => false,
    }
}

/// Every budget with the disruptions that it allows now, for a scheduler that weighs whom to evict.
pub(in crate::actors) fn budget_states(context: &Context<'_>, now: SimTime) -> Vec<BudgetState> {
    let state = |(budget, pods): (&PodDisruptionBudget, ProtectedPods)| BudgetState {
        namespace: budget.namespace,
        selector: budget.selector.clone(),
        disruptions_allowed: budget_status(budget.rule, pods).disruptions_allowed,
    };
    context.pod_budgets.iter().zip(protected(context, now)).map(state).collect()
}

/// The status of every budget: as it is now, or as the controller of a replayed case last wrote it.
pub(in crate::actors) fn allowances(context: &Context<'_>, now: SimTime) -> Vec<BudgetStatus> {
    match &context.replay {
        Some(replay) => replay.budget_statuses(context.pod_budgets.len()),
        None => current_statuses(context, now),
    }
}

/// The status of every budget as it is now.
pub(in crate::actors) fn current_statuses(context: &Context<'_>, now: SimTime) -> Vec<BudgetStatus> {
    let budgets = context.pod_budgets.iter().zip(protected(context, now));
    budgets.map(|(budget, pods)| budget_status(budget.rule, pods)).collect()
}

/// Whether the pod's budgets never let it go: there are several, or one whose rule allows no disruption whatever the
/// number of pods.
///
/// Source: Karpenter core v1.13 `pkg/utils/pdb/pdb.go`, `IsFullyBlocked`.
pub(super) fn is_fully_blocked(context: &Context<'_>, pod: PodId) -> bool {
    let state = context.world.pod(pod);
    match protectors(context, state.namespace, &state.spec)[..] {
        [] => false,
        [only] => {
            let only = &context.pod_budgets[only as usize];
            only.rule.allows_nothing() && (state.is_ready() || !only.always_allow_unhealthy)
        }
        _ => true,
    }
}

/// Positions of the budgets that protect pods of a specification.
fn protectors(context: &Context<'_>, namespace: Symbol, spec: &Arc<PodSpec>) -> Protectors {
    if context.pod_budgets.is_empty() {
        return Protectors::new();
    }
    let budgets = context.pod_budgets.iter().map(|budget| (budget.namespace, budget.selector.as_ref()));
    context.protections.of(namespace, spec, budgets)
}

/// What each budget protects: the pods of every workload whose template it selects. An evicted pod is asked to go in the same
/// instant and counts as ending from then on; upstream's two minutes bridge the time until its controller has seen that.
fn protected(context: &Context<'_>, now: SimTime) -> Vec<ProtectedPods> {
    let mut found = vec![ProtectedPods::default(); context.pod_budgets.len()];
    if found.is_empty() {
        return found;
    }
    let count = |pods: &mut ProtectedPods, pod: PodId| {
        let state = context.world.pod(pod);
        pods.selected += 1;
        pods.healthy += i64::from(is_healthy(state.is_ready(), !state.is_active(), None, now));
    };
    for (_, workload) in context.world.workloads() {
        if workload.kind == WorkloadKind::Pods {
            // Pods that nothing controls: each counts by its own labels, and none is wanted by a controller.
            for &pod in &workload.pods {
                let state = context.world.pod(pod);
                for budget in protectors(context, state.namespace, &state.spec) {
                    count(&mut found[budget as usize], pod);
                }
            }
            continue;
        }
        for budget in protectors(context, workload.name.namespace, &workload.template) {
            let pods = &mut found[budget as usize];
            pods.wanted += i64::from(workload.replicas);
            workload.pods.iter().for_each(|&pod| count(pods, pod));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::RetryLimit;
    use crate::domain::{SimDuration, SimTime};

    #[test]
    fn a_thousand_tries_are_free_and_a_hundred_a_second_after_that() {
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
