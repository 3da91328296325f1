//! The last answer of multi-node consolidation, where it found nothing.
//!
//! A budget that stands in the way, or the end of the time for a search, lets the method search again at every pass of the loop. While only
//! time has passed, a search has the same answer. Any change of the cluster makes the answer stale, whatever it is. Builds with debug
//! assertions search all the same, and compare.

use std::sync::Arc;

use super::claims::Condition;
use super::step::Step;
use super::type_lists::same;
use crate::controller_time::SearchWork;
use crate::disruption::{Allowance, Candidate, ClusterView, MethodResult};
use crate::packing::{PackingSetup, TieBreak};
use nodecast_model::cluster::Position;
use nodecast_model::control_plane::eviction::BudgetStatus;
use nodecast_model::domain::{NodeId, NodePool, PodId, PodSpec, SimTime};

/// Everything besides settings that the answer depends on.
#[derive(Clone, Debug)]
pub(super) struct SearchInput {
    values: Values,
    /// Compared by address.
    pools: Vec<Arc<NodePool>>,
    daemons: Vec<Arc<PodSpec>>,
}

#[derive(Clone, PartialEq, Debug)]
struct Values {
    cluster: Position,
    types: u64,
    ties: TieBreak,
    pending: Vec<PodId>,
    conditions: Vec<Condition>,
    statuses: Vec<BudgetStatus>,
    candidates: Vec<NodeId>,
    allowances: Vec<i64>,
}

impl SearchInput {
    /// The input of a search over a view of these nodes; `None` where time alone can change the places of a pod, or CapacityBuffers do.
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
            cluster: step.cluster.changed(),
            types: step.karpenter.instance_types.changes_end(),
            ties: view.ties,
            pending: pending.to_vec(),
            conditions: nodes.iter().map(condition).collect(),
            statuses: step.outside.budget_statuses(),
            candidates: Vec::new(),
            allowances: Vec::new(),
        };
        Some(Self { values, pools: step.karpenter.pools.clone(), daemons: setup.daemons.to_vec() })
    }

    /// The same with the candidates in their order, and what the budgets of each pool allow.
    pub(super) fn with_candidates(
        mut self,
        nodes: &[NodeId],
        candidates: &[Candidate],
        allowances: &[Allowance],
    ) -> Self {
        self.values.candidates = candidates.iter().map(|candidate| nodes[candidate.node]).collect();
        self.values.allowances = allowances.iter().map(|allowance| allowance.0).collect();
        self
    }
}

/// An answer and the work of upstream for it.
pub(super) type SearchAnswer = (Option<MethodResult>, SearchWork);

/// The last search that found nothing.
#[derive(Debug, Default)]
pub(super) struct MultiNodeMemory(Option<(SearchInput, SearchAnswer)>);

impl MultiNodeMemory {
    /// The answer, if the input is that of the last search.
    pub(super) fn answer(&self, input: &SearchInput) -> Option<SearchAnswer> {
        let (last, answer) = self.0.as_ref()?;
        let is_same =
            last.values == input.values && same(&last.pools, &input.pools) && same(&last.daemons, &input.daemons);
        is_same.then(|| answer.clone())
    }

    /// Keeps an answer without a command.
    pub(super) fn keep(&mut self, input: SearchInput, answer: &SearchAnswer) {
        let found = matches!(answer.0, Some(MethodResult::Command(_)));
        self.0 = (!found).then(|| (input, answer.clone()));
    }
}
