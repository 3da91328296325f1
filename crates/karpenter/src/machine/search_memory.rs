//! The last answers of multi-node and single-node consolidation, where they found nothing.
//!
//! A budget that stands in the way, or the end of the time for a search, lets a method search again at every pass of the loop. While only
//! time has passed, a search has the same answer. Builds with debug assertions search all the same, and compare.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::claims::Condition;
use super::step::Step;
use super::type_lists::same;
use crate::controller_time::SearchWork;
use crate::disruption::{Allowance, Candidate, ClusterView, Memory, MethodResult};
use crate::packing::{PackingSetup, TieBreak};
use nodecast_model::cluster::{Change, Cluster, Position};
use nodecast_model::control_plane::eviction::BudgetStatus;
use nodecast_model::domain::{NodeId, NodePool, PodId, PodSpec, SimTime, Symbol};

/// Everything besides settings that the answers of one look depend on.
#[derive(Clone, Debug)]
pub(super) struct LookInput {
    cluster: Position,
    values: Values,
    /// Compared by address.
    pools: Vec<Arc<NodePool>>,
    daemons: Vec<Arc<PodSpec>>,
}

#[derive(Clone, PartialEq, Debug)]
struct Values {
    types: u64,
    ties: TieBreak,
    pending: Vec<PodId>,
    nodes: Vec<NodeId>,
    conditions: Vec<Condition>,
    statuses: Vec<BudgetStatus>,
}

impl LookInput {
    /// The input of a look at these nodes; `None` where time alone can change the places of a pod, or CapacityBuffers do.
    pub(super) fn new(
        step: &Step<'_>,
        now: SimTime,
        setup: &PackingSetup<'_>,
        (view, nodes): (&ClusterView<'_>, &[NodeId]),
        pending: &[PodId],
    ) -> Option<Self> {
        let protected = view.nodes.iter().any(|node| node.digest.is_protected());
        if protected || !step.outside.storage().is_empty() || !step.karpenter.buffers.is_empty() {
            return None;
        }
        let condition = |&node: &NodeId| Condition::new(step, now, node, step.karpenter.nodes.get(&node));
        let values = Values {
            types: step.karpenter.instance_types.changes_end(),
            ties: view.ties,
            pending: pending.to_vec(),
            nodes: nodes.to_vec(),
            conditions: nodes.iter().map(condition).collect(),
            statuses: step.outside.budget_statuses(),
        };
        let (pools, daemons) = (step.karpenter.pools.clone(), setup.daemons.to_vec());
        Some(Self { cluster: step.cluster.changed(), values, pools, daemons })
    }

    /// Whether a search of now has the answer of this earlier input.
    fn is_same(&self, now: &Self, cluster: &Cluster) -> bool {
        is_unchanged(cluster, self.cluster)
            && self.values == now.values
            && same(&self.pools, &now.pools)
            && same(&self.daemons, &now.daemons)
    }
}

/// Whether nothing has happened since then that could change the answer of a search: pods may have become Ready, which only disruption
/// budgets ask for, and workloads may have been scaled.
fn is_unchanged(cluster: &Cluster, since: Position) -> bool {
    let has_budgets = !cluster.budgets().is_empty();
    let is_harmless = |change: &Change| match change {
        Change::Pod(_) => !has_budgets,
        Change::Workload(_) => true,
        Change::Placement(_) | Change::Node(_) | Change::Budgets => false,
    };
    cluster.journal().since(since).is_some_and(|changes| changes.iter().all(is_harmless))
}

/// What the answer of one method depends on as well.
#[derive(Clone, PartialEq, Debug)]
struct MethodInput {
    candidates: Vec<NodeId>,
    allowances: Vec<i64>,
    unseen: BTreeSet<Symbol>,
}

/// An answer, the work of upstream for it, and what single-node consolidation remembers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SearchAnswer {
    pub(super) found: Option<MethodResult>,
    pub(super) work: SearchWork,
    pub(super) memory: Memory,
}

/// The last search of one method that found nothing.
#[derive(Debug, Default)]
pub(super) struct SearchMemory(Option<(LookInput, MethodInput, SearchAnswer)>);

/// A search that is due, with the answer if it is known.
#[derive(Debug)]
pub(super) struct Search<'i> {
    look: &'i LookInput,
    method: MethodInput,
    pub(super) known: Option<SearchAnswer>,
}

impl SearchMemory {
    /// A search of candidates in their order, with what the budgets of each pool allow, and what single-node consolidation remembers.
    pub(super) fn search<'i>(
        &self,
        cluster: &Cluster,
        look: &'i LookInput,
        (nodes, candidates): (&[NodeId], &[Candidate]),
        allowances: &[Allowance],
        memory: &Memory,
    ) -> Search<'i> {
        let method = MethodInput {
            candidates: candidates.iter().map(|candidate| nodes[candidate.node]).collect(),
            allowances: allowances.iter().map(|allowance| allowance.0).collect(),
            unseen: memory.unseen.clone(),
        };
        let last = self.0.as_ref();
        let known =
            last.filter(|(last_look, last_method, _)| *last_method == method && last_look.is_same(look, cluster));
        Search { look, known: known.map(|(_, _, answer)| answer.clone()), method }
    }

    /// Keeps an answer without a command.
    pub(super) fn keep(&mut self, Search { look, method, .. }: Search<'_>, answer: &SearchAnswer) {
        let found = matches!(answer.found, Some(MethodResult::Command(_)));
        self.0 = (!found).then(|| (look.clone(), method, answer.clone()));
    }
}
