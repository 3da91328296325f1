//! Disruption budgets as the API server and the controllers read them.
//!
//! Must not: evict a pod.

use std::cell::RefCell;

use crate::cluster::Derived;
use crate::control_plane::budgets::{ProtectedByBudgets, eviction_answer};
use crate::control_plane::eviction::{BudgetStatus, EvictionAnswer, Protections};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimTime};
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

    /// Creates a budget, or replaces it by this form.
    pub(super) fn apply_budget(&mut self, world: &mut World, now: SimTime, budget: &PodDisruptionBudget) {
        let text = format!("PodDisruptionBudget {}/{}", budget.namespace, budget.name);
        world.note(now, EventKind::ManifestApplied, None, text);
        world.apply_budget(budget.clone());
        // It remembers which budgets protect the pods of a specification.
        self.protections = Protections::default();
    }

    /// What the API server answers to an eviction of the pod now.
    pub(super) fn answer(&self, world: &World, pod: PodId) -> EvictionAnswer {
        let state = world.pod(pod);
        let budgets = self.protections.of_pod(world, state);
        eviction_answer(world, &self.statuses(world), state, &budgets)
    }

    /// Whether the pod's budgets would allow its eviction now.
    pub(super) fn is_allowed(&self, world: &World, pod: PodId) -> bool {
        matches!(self.answer(world, pod), EvictionAnswer::Evicted { .. })
    }

    /// The budgets that select the pod, if they would refuse its eviction now: one that allows none, or several, with which the API server
    /// evicts no pod.
    pub(super) fn refused_by(&self, world: &World, pod: PodId) -> Vec<ObjectName> {
        let state = world.pod(pod);
        let budgets = self.protections.of_pod(world, state);
        match eviction_answer(world, &self.statuses(world), state, &budgets) {
            EvictionAnswer::Evicted { .. } => Vec::new(),
            EvictionAnswer::TooManyRequests | EvictionAnswer::SeveralBudgets => {
                let all = budgets.iter().filter_map(|&budget| world.budgets().get(budget as usize));
                all.map(|item| ObjectName { namespace: item.namespace, name: item.name }).collect()
            }
        }
    }

    /// Every budget with the disruptions that it allows now, for a scheduler that weighs whom to evict.
    pub(super) fn budget_states(&self, world: &World) -> Vec<BudgetState> {
        let budgets = world.budgets().iter().zip(self.statuses(world));
        let state = budgets.map(|(budget, status)| BudgetState {
            namespace: budget.namespace,
            selector: budget.selector.clone(),
            disruptions_allowed: status.disruptions_allowed,
        });
        state.collect()
    }

    /// The status of every budget as it is now.
    pub(super) fn statuses(&self, world: &World) -> Vec<BudgetStatus> {
        if world.budgets().is_empty() {
            return Vec::new();
        }
        let mut protected = self.protected.borrow_mut();
        protected.catch_up(world);
        protected.value().statuses().to_vec()
    }
}
