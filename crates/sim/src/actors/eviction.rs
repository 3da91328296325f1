//! Evictions through the API server: who asks is told whether the pod's budgets allow it now.

use std::cell::RefCell;

use super::context::Context;
use super::kubelet;
use super::sim::Sim;
use crate::cluster::Derived;
use crate::control_plane::budgets::{ProtectedByBudgets, eviction_answer};
use crate::control_plane::eviction::{BudgetStatus, EvictionAnswer, Protections};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimDuration, SimTime};
use crate::world::World;
use crate::world::record::EventKind;
use nodecast_scheduler::BudgetState;

/// Disruption budgets: their status, and the pods that they protect.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Follows the journal; brought up to date at each question.
    protected: RefCell<Derived<ProtectedByBudgets>>,
    /// The budgets that protect the pods of a specification.
    pub(super) protections: Protections,
}

impl Budgets {
    pub(super) fn new(world: &World) -> Self {
        Self { protected: RefCell::new(Derived::new(world)), protections: Protections::default() }
    }
}

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

impl Budgets {
    /// A budget comes to be, or changes to this form.
    pub(super) fn apply_budget(&mut self, sim: &mut Sim<'_>, now: SimTime, budget: &PodDisruptionBudget) {
        let text = format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name);
        sim.world.note(now, EventKind::ManifestApplied, None, text);
        sim.world.apply_budget(budget.clone());
        // It remembers which budgets protect the pods of a specification.
        self.protections = Protections::default();
    }

    /// Whether the pod's budgets would allow its eviction now.
    pub(super) fn is_allowed(&mut self, sim: &Sim<'_>, pod: PodId) -> bool {
        let state = sim.world.pod(pod);
        let budgets = self.protections.of_pod(&sim.world, state);
        matches!(eviction_answer(&sim.world, &self.statuses(sim), state, &budgets), EvictionAnswer::Evicted { .. })
    }

    /// The budgets that select the pod, if they would refuse its eviction now: one that allows none, or several, with which the API server
    /// evicts no pod.
    pub(super) fn refused_by(&self, sim: &Sim<'_>, pod: PodId) -> Vec<ObjectName> {
        let state = sim.world.pod(pod);
        let budgets = self.protections.of_pod(&sim.world, state);
        match eviction_answer(&sim.world, &self.statuses(sim), state, &budgets) {
            EvictionAnswer::Evicted { .. } => Vec::new(),
            EvictionAnswer::TooManyRequests | EvictionAnswer::SeveralBudgets => {
                let all = budgets.iter().filter_map(|&budget| sim.world.budgets().get(budget as usize));
                all.map(|own| ObjectName { namespace: own.namespace, name: own.name }).collect()
            }
        }
    }

    /// Every budget with the disruptions that it allows now, for a scheduler that weighs whom to evict.
    pub(super) fn budget_states(&self, sim: &Sim<'_>) -> Vec<BudgetState> {
        let budgets = sim.world.budgets().iter().zip(self.statuses(sim));
        let state = budgets.map(|(budget, status)| BudgetState {
            namespace: budget.namespace,
            selector: budget.selector.clone(),
            disruptions_allowed: status.disruptions_allowed,
        });
        state.collect()
    }

    /// The status of every budget as it is now.
    pub(super) fn statuses(&self, sim: &Sim<'_>) -> Vec<BudgetStatus> {
        if sim.world.budgets().is_empty() {
            return Vec::new();
        }
        let mut protected = self.protected.borrow_mut();
        protected.catch_up(&sim.world);
        protected.value().statuses().to_vec()
    }
}

fn ask_within(context: &mut Context<'_>, now: SimTime, pod: PodId, grace: SimDuration, reason: &str) -> EvictionAnswer {
    let state = context.world.pod(pod);
    let budgets = context.budgets.protections.of_pod(&context.world, state);
    let answer = eviction_answer(&context.world, &context.budgets.statuses(&context.sim), state, &budgets);
    if matches!(answer, EvictionAnswer::Evicted { .. }) && context.world.pod(pod).is_active() {
        kubelet::delete_within(context, now, pod, grace, true, reason);
    }
    answer
}
