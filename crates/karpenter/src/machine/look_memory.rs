//! The last look of the disruption loop that found nothing to do.
//!
//! A budget that stands in the way, the end of the time for a search, or a method without candidates lets the loop ask again at every
//! pass. While only time has passed, all answers stay the same. Builds with debug assertions ask all the same, and compare.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::claims::Condition;
use super::cluster_view::{known_nodes, ties};
use super::daemons;
use super::disruption::Answer;
use super::step::Step;
use super::type_lists::same;
use crate::disruption::{Allowance, Disturbance, Method, NodeCount, allowed};
use crate::packing::TieBreak;
use nodecast_model::cluster::{Change, Cluster, Position};
use nodecast_model::control_plane::eviction::BudgetStatus;
use nodecast_model::domain::{NodeId, NodePool, PodId, PodSpec, SimTime, Symbol};

/// Everything besides settings and time that the answers of a look depend on.
#[derive(Debug)]
struct LookInput {
    cluster: Position,
    types: u64,
    ties: TieBreak,
    pending: Vec<PodId>,
    conditions: Vec<Condition>,
    statuses: Vec<BudgetStatus>,
    /// Compared by address.
    pools: Vec<Arc<NodePool>>,
    daemons: Vec<Arc<PodSpec>>,
}

impl LookInput {
    /// The input of a look of now, in which provisioning would take on the pods `pending`.
    fn new(step: &Step<'_>, now: SimTime, pending: &[PodId]) -> Self {
        Self {
            cluster: step.cluster.changed(),
            types: step.karpenter.instance_types.changes_end(),
            ties: ties(step),
            pending: pending.to_vec(),
            conditions: conditions(step, now).collect(),
            statuses: step.outside.budget_statuses(),
            pools: step.karpenter.pools.clone(),
            daemons: daemons::representatives(step),
        }
    }

    /// Whether a look of now has the same input. The cheapest questions stand first.
    fn is_same(&self, step: &Step<'_>, now: SimTime, pending: &[PodId]) -> bool {
        self.types == step.karpenter.instance_types.changes_end()
            && is_unchanged(step.cluster, self.cluster)
            && self.ties == ties(step)
            && self.pending == pending
            && same(&self.pools, &step.karpenter.pools)
            && same(&self.daemons, &daemons::representatives(step))
            && self.statuses == step.outside.budget_statuses()
            && conditions(step, now).eq(self.conditions.iter().copied())
    }
}

fn conditions<'s>(step: &'s Step<'_>, now: SimTime) -> impl Iterator<Item = Condition> + use<'s> {
    let condition = move |node| Condition::new(step, now, node, step.karpenter.nodes.get(&node));
    known_nodes(step).into_iter().map(condition)
}

/// Whether nothing has happened since then that could change an answer: pods may have become Ready, which only disruption budgets ask
/// for, and workloads may have been scaled.
fn is_unchanged(cluster: &Cluster, since: Position) -> bool {
    let has_budgets = !cluster.budgets().is_empty();
    let is_harmless = |change: &Change| match change {
        Change::Pod(_) => !has_budgets,
        Change::Workload(_) => true,
        Change::Placement(_) | Change::Node(_) | Change::Budgets => false,
    };
    cluster.journal().since(since).is_some_and(|changes| changes.iter().all(is_harmless))
}

/// Whether a look depends on nothing but its [`LookInput`]: volumes, CapacityBuffers, and nodes that this pass has refused are not part
/// of it.
pub(super) fn is_plain(step: &Step<'_>) -> bool {
    step.outside.storage().is_empty()
        && step.karpenter.buffers.is_empty()
        && step.karpenter.disruption.refused.is_empty()
}

/// An answer, and what time could change of the question.
#[derive(Debug)]
pub(super) struct MethodMemory {
    pub(super) method: Method,
    pub(super) answer: Answer,
    /// What the budgets of each pool allowed before the method took any.
    pub(super) allowances: Vec<Allowance>,
    /// The candidates in their order, where it is by what their removal disturbs.
    pub(super) by_cost: Vec<(NodeId, Disturbance)>,
}

impl MethodMemory {
    fn is_same(&self, step: &Step<'_>, now: SimTime, counted: &[NodeCount]) -> bool {
        let unix_seconds = step.karpenter.settings.unix_seconds(now);
        let allowed =
            |(pool, count): (&Arc<NodePool>, &NodeCount)| allowed(pool, self.method.reason(), *count, unix_seconds);
        let key = |(node, disturbance): &(NodeId, Disturbance)| {
            let node = step.cluster.node(*node);
            (disturbance.at(now), node.created, node.api_name())
        };
        // Nodes can share a drawn name: the sort is stable, so these stay in the order of the view.
        let in_order = |one: &(f64, SimTime, &str), next: &(f64, SimTime, &str)| {
            one.0.total_cmp(&next.0).then_with(|| (one.1, one.2).cmp(&(next.1, next.2))).is_le()
        };
        self.by_cost.iter().map(key).is_sorted_by(in_order)
            && step.karpenter.pools.iter().zip(counted).map(allowed).eq(self.allowances.iter().copied())
    }
}

/// The answers of a look that found nothing, and what single-node consolidation left unseen.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LookAnswer {
    pub(super) methods: Vec<(Method, Answer)>,
    pub(super) unseen: BTreeSet<Symbol>,
}

/// What the last look knew, if it found nothing.
#[derive(Debug, Default)]
pub(super) struct LookMemory(Option<Known>);

#[derive(Debug)]
struct Known {
    input: LookInput,
    /// Nodes of each pool that count for its budgets.
    counted: Vec<NodeCount>,
    methods: Vec<MethodMemory>,
    /// What single-node consolidation had left unseen before this look, and after it.
    unseen: [BTreeSet<Symbol>; 2],
}

impl LookMemory {
    /// What a look of now would answer for these methods, if that is known.
    pub(super) fn answer(
        &self,
        step: &Step<'_>,
        now: SimTime,
        pending: &[PodId],
        open: &[Method],
    ) -> Option<LookAnswer> {
        let known = self.0.as_ref()?;
        let unseen = &step.karpenter.disruption.memory.unseen;
        let searches = open.contains(&Method::SingleNode);
        if (searches && *unseen != known.unseen[0]) || !is_plain(step) {
            return None;
        }
        let kept = |method: &Method| known.methods.iter().find(|kept| kept.method == *method);
        let kept: Vec<&MethodMemory> = open.iter().map(kept).collect::<Option<_>>()?;
        let holds =
            known.input.is_same(step, now, pending) && kept.iter().all(|kept| kept.is_same(step, now, &known.counted));
        holds.then(|| LookAnswer {
            methods: kept.iter().map(|kept| (kept.method, kept.answer.clone())).collect(),
            unseen: if searches { &known.unseen[1] } else { unseen }.clone(),
        })
    }

    /// That of a look of now that found nothing. `before` is what single-node consolidation had left unseen.
    pub(super) fn new(
        step: &Step<'_>,
        now: SimTime,
        pending: &[PodId],
        (counted, methods): (Vec<NodeCount>, Vec<MethodMemory>),
        before: BTreeSet<Symbol>,
    ) -> Self {
        let unseen = [before, step.karpenter.disruption.memory.unseen.clone()];
        Self(Some(Known { input: LookInput::new(step, now, pending), counted, methods, unseen }))
    }
}
