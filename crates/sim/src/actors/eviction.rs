//! Evictions through the API server: who asks is told whether the pod's budgets allow it now.

use super::context::Context;
use super::kubelet;
use crate::control_plane::budgets::eviction_answer;
use crate::control_plane::eviction::{BudgetStatus, EvictionAnswer, Protections};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimDuration, SimTime};
use crate::world::record::EventKind;
use nodecast_scheduler::BudgetState;

/// Evicts the pod if its budgets allow it now; whether they did.
pub(super) fn evict(context: &mut Context<'_>, now: SimTime, pod: PodId, reason: &str) -> bool {
    let grace = context.world.pod(pod).spec.grace_period();
    evict_within(context, now, pod, grace, reason)
}

/// The same with a grace period of the evicting program's choice.
pub(super) fn evict_within(
    context: &mut Context<'_>,
    now: SimTime,
    pod: PodId,
    grace: SimDuration,
    reason: &str,
) -> bool {
    matches!(ask_within(context, now, pod, grace, reason), EvictionAnswer::Evicted { .. })
}

/// Evicts the pod if its budgets allow it now, for somebody to whom it matters why they do not.
pub(super) fn ask(context: &mut Context<'_>, now: SimTime, pod: PodId, reason: &str) -> EvictionAnswer {
    let grace = context.world.pod(pod).spec.grace_period();
    ask_within(context, now, pod, grace, reason)
}

/// A budget comes to be, or changes to this form.
pub(super) fn apply_budget(context: &mut Context<'_>, now: SimTime, budget: &PodDisruptionBudget) {
    let text = format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name);
    context.world.note(now, EventKind::ManifestApplied, None, text);
    context.world.apply_budget(budget.clone());
    // It remembers which budgets protect the pods of a specification.
    context.protections = Protections::default();
}

/// Whether the pod's budgets would allow its eviction now.
pub(super) fn is_allowed(context: &mut Context<'_>, pod: PodId) -> bool {
    let state = context.world.pod(pod);
    let budgets = context.protections.of_pod(&context.world, state);
    matches!(eviction_answer(&context.world, &statuses(context), state, &budgets), EvictionAnswer::Evicted { .. })
}

/// The budgets that select the pod, if they would refuse its eviction now: one that allows none, or several, with which the API server
/// evicts no pod.
pub(super) fn refused_by(context: &Context<'_>, pod: PodId) -> Vec<ObjectName> {
    let state = context.world.pod(pod);
    let budgets = context.protections.of_pod(&context.world, state);
    match eviction_answer(&context.world, &statuses(context), state, &budgets) {
        EvictionAnswer::Evicted { .. } => Vec::new(),
        EvictionAnswer::TooManyRequests | EvictionAnswer::SeveralBudgets => {
            let all = budgets.iter().filter_map(|&budget| context.world.budgets().get(budget as usize));
            all.map(|own| ObjectName { namespace: own.namespace, name: own.name }).collect()
        }
    }
}

fn ask_within(context: &mut Context<'_>, now: SimTime, pod: PodId, grace: SimDuration, reason: &str) -> EvictionAnswer {
    let state = context.world.pod(pod);
    let budgets = context.protections.of_pod(&context.world, state);
    let answer = eviction_answer(&context.world, &statuses(context), state, &budgets);
    if matches!(answer, EvictionAnswer::Evicted { .. }) && context.world.pod(pod).is_active() {
        kubelet::delete_within(context, now, pod, grace, true, reason);
    }
    answer
}

/// Every budget with the disruptions that it allows now, for a scheduler that weighs whom to evict.
pub(super) fn budget_states(context: &Context<'_>) -> Vec<BudgetState> {
    let budgets = context.world.budgets().iter().zip(statuses(context));
    let state = budgets.map(|(budget, status)| BudgetState {
        namespace: budget.namespace,
        selector: budget.selector.clone(),
        disruptions_allowed: status.disruptions_allowed,
    });
    state.collect()
}

/// The status of every budget as it is now.
pub(super) fn statuses(context: &Context<'_>) -> Vec<BudgetStatus> {
    if context.world.budgets().is_empty() {
        return Vec::new();
    }
    let mut protected = context.protected.borrow_mut();
    protected.catch_up(&context.world);
    protected.value().statuses().to_vec()
}
