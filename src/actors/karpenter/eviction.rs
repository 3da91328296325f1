//! Evictions, as the API server answers them: PodDisruptionBudgets are looked at anew for every pod.
//!
//! Deviation: a refused eviction is tried again at the next look at the node, a second later; upstream's eviction queue backs
//! off from 0.1 to 10 seconds.

use crate::actors::context::Context;
use crate::actors::kubelet;
use crate::domain::pod::{PodDisruptionBudget, PodPhase as ReportedPhase};
use crate::domain::{PodId, SimTime};
use crate::policy::budgets::{
    EvictionAnswer, EvictionBudget, EvictionView, ProtectedPods, budget_status, eviction, is_healthy,
};
use crate::policy::kube_scheduler::BudgetState;
use crate::world::PodPhase;

/// Evicts the pod if its budgets allow it now.
pub(in crate::actors) fn evict(context: &mut Context<'_>, now: SimTime, pod: PodId, reason: &str) {
    let state = context.world.pod(pod);
    let view = EvictionView {
        phase: if state.phase == PodPhase::Running { ReportedPhase::Running } else { ReportedPhase::Pending },
        deleting: !state.is_active(),
        ready: state.is_ready(),
    };
    let budgets: Vec<EvictionBudget> = context
        .setup
        .disruption_budgets
        .iter()
        .filter(|budget| protects(context, budget, pod))
        .map(|budget| EvictionBudget {
            status: budget_status(budget.rule, protected(context, now, budget)),
            always_allow_unhealthy: budget.always_allow_unhealthy,
        })
        .collect();
    if matches!(eviction(view, &budgets), EvictionAnswer::Evicted { .. }) {
        kubelet::delete(context, now, pod, true, reason);
    }
}

/// Every budget with the disruptions that it allows now, for a scheduler that weighs whom to evict.
pub(in crate::actors) fn budget_states(context: &Context<'_>, now: SimTime) -> Vec<BudgetState> {
    let state = |budget: &PodDisruptionBudget| BudgetState {
        namespace: budget.namespace,
        selector: budget.selector.clone(),
        disruptions_allowed: budget_status(budget.rule, protected(context, now, budget)).disruptions_allowed,
    };
    context.setup.disruption_budgets.iter().map(state).collect()
}

/// Whether the pod's budgets never let it go: there are several, or one whose rule allows no disruption whatever the
/// number of pods.
///
/// Source: Karpenter core v1.13 `pkg/utils/pdb/pdb.go`, `IsFullyBlocked`.
pub(super) fn is_fully_blocked(context: &Context<'_>, pod: PodId) -> bool {
    let budgets: Vec<&PodDisruptionBudget> =
        context.setup.disruption_budgets.iter().filter(|budget| protects(context, budget, pod)).collect();
    match budgets.as_slice() {
        [] => false,
        [only] => {
            let goes_unready = only.always_allow_unhealthy && !context.world.pod(pod).is_ready();
            only.rule.allows_nothing() && !goes_unready
        }
        _ => true,
    }
}

fn protects(context: &Context<'_>, budget: &PodDisruptionBudget, pod: PodId) -> bool {
    let state = context.world.pod(pod);
    state.namespace == budget.namespace
        && budget.selector.as_ref().is_some_and(|selector| selector.matches(&state.spec.labels))
}

/// What the budget protects: the pods of every workload whose template it selects.
fn protected(context: &Context<'_>, now: SimTime, budget: &PodDisruptionBudget) -> ProtectedPods {
    let mut pods = ProtectedPods::default();
    for (_, workload) in context.world.workloads() {
        let selected = workload.name.namespace == budget.namespace
            && budget.selector.as_ref().is_some_and(|selector| selector.matches(&workload.template.labels));
        if !selected {
            continue;
        }
        pods.wanted += i64::from(workload.replicas);
        for &pod in &workload.pods {
            let state = context.world.pod(pod);
            pods.selected += 1;
            pods.healthy += i64::from(is_healthy(state.is_ready(), !state.is_active(), None, now));
        }
    }
    pods
}
