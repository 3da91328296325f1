//! What disruption budgets still allow while nodes are chosen for removal, and how many deletions may run at once.
//!
//! Source: Cluster Autoscaler 1.36 `core/scaledown/pdb/basic.go`, `core/scaledown/budgets/budgets.go`.

use super::flags::Flags;
use super::view::{BudgetView, Deletions, PodTraits};

/// Disruption budgets with what was taken off them.
#[derive(Clone, Debug)]
pub struct RemainingBudgets<'a> {
    budgets: &'a [BudgetView],
    allowed: Vec<i64>,
}

impl<'a> RemainingBudgets<'a> {
    /// All of what the budgets allow.
    pub fn new(budgets: &'a [BudgetView]) -> Self {
        Self { budgets, allowed: budgets.iter().map(|budget| budget.disruptions_allowed).collect() }
    }

    fn covering(&self, traits: &PodTraits) -> impl Iterator<Item = usize> + '_ {
        let (namespace, labels) = (traits.namespace, traits.spec.labels.clone());
        let covers = move |budget: &BudgetView| {
            budget.namespace == namespace && budget.selector.as_ref().is_some_and(|selector| selector.matches(&labels))
        };
        self.budgets.iter().enumerate().filter(move |(_, budget)| covers(budget)).map(|(at, _)| at)
    }

    /// Whether some budget covers such pods.
    pub fn cover(&self, traits: &PodTraits) -> bool {
        self.covering(traits).next().is_some()
    }

    /// Whether a budget that covers such pods allows no disruption.
    pub fn forbid(&self, traits: &PodTraits) -> bool {
        self.covering(traits).any(|at| self.allowed[at] < 1)
    }

    /// Whether all these pods could be evicted at once.
    pub fn allow_at_once<'p>(&self, pods: impl Iterator<Item = &'p PodTraits>) -> bool {
        let mut left = self.allowed.clone();
        for pod in pods {
            for at in self.covering(pod) {
                left[at] -= 1;
            }
        }
        left.iter().zip(&self.allowed).all(|(left, allowed)| left == allowed || *left >= 0)
    }

    /// Takes these pods off.
    pub fn take<'p>(&mut self, pods: impl Iterator<Item = &'p PodTraits>) {
        for pod in pods {
            let covering: Vec<usize> = self.covering(pod).collect();
            for at in covering {
                self.allowed[at] -= 1;
            }
        }
    }
}

/// Crops the nodes chosen for deletion to what may run at once: first empty ones, group by group, then nodes to drain.
/// Nodes come with their groups.
pub fn crop<T: Copy>(
    flags: &Flags,
    under_way: &Deletions,
    empty: &[(usize, T)],
    drain: &[(usize, T)],
) -> (Vec<T>, Vec<T>) {
    let room = flags.max_scale_down_parallelism - under_way.len() as i64;
    let empty = crop_group_by_group(empty, room);
    let drains = flags.max_drain_parallelism - under_way.drained.len() as i64;
    let drain = crop_group_by_group(drain, (room - empty.len() as i64).min(drains));
    (empty, drain)
}

fn crop_group_by_group<T: Copy>(nodes: &[(usize, T)], room: i64) -> Vec<T> {
    let mut groups: Vec<usize> = Vec::new();
    for (group, _) in nodes {
        if !groups.contains(group) {
            groups.push(*group);
        }
    }
    let in_turn = groups.iter().flat_map(|group| nodes.iter().filter(move |node| node.0 == *group));
    in_turn.take(usize::try_from(room).unwrap_or(0)).map(|node| node.1).collect()
}
