//! What the last scheduling pass was asked and what it came to: the same question has the same answer.
//!
//! Pods that wait for a node under way are asked about again and again until it is there, and mostly nothing has changed
//! since. A plan with claims is not kept: they change the cluster. Nor is anything where volumes could change a pod's places.
//! Builds with debug assertions pack all the same, and compare.

use std::sync::Arc;

use super::claims::is_marked;
use super::cluster_view::telling_ties;
use super::step::Step;
use super::type_lists::same;
use crate::cluster::Position;
use crate::domain::{NodeId, NodePool, PodId};
use crate::policy::packing::{PackingPlan, TieBreak};

/// All that a pass follows from.
#[derive(Debug)]
pub(super) struct Question {
    /// The last change of nodes and what is placed on them.
    placed: Position,
    /// The generation of the lists of instance types.
    types: u64,
    pools: Vec<Arc<NodePool>>,
    ties: Option<TieBreak>,
    /// Known nodes whose pods are to go, in order.
    marked: Vec<NodeId>,
    /// The pods to place.
    pub(super) pods: Vec<PodId>,
}

impl Question {
    /// Where these pods go on the known nodes as they are now, or on new ones.
    pub(super) fn now(step: &Step<'_>, known: &[NodeId], pods: Vec<PodId>) -> Self {
        let marked: Vec<NodeId> = known.iter().copied().filter(|&node| is_marked(step, node)).collect();
        debug_assert!(marked.is_sorted(), "nodes are known in the order in which they were made");
        Self {
            placed: step.cluster.placement_changed(),
            types: step.own.instance_types.generation(),
            pools: step.own.pools.clone(),
            ties: telling_ties(step),
            marked,
            pods,
        }
    }

    /// Whether the pods of a known node are to go.
    pub(super) fn is_marked(&self, node: NodeId) -> bool {
        self.marked.binary_search(&node).is_ok()
    }

    fn is(&self, other: &Self) -> bool {
        self.placed == other.placed
            && self.types == other.types
            && self.ties == other.ties
            && self.marked == other.marked
            && self.pods == other.pods
            && same(&self.pools, &other.pools)
    }
}

/// What is kept of the last pass.
#[derive(Debug, Default)]
pub(super) struct LastPass(Option<(Question, PackingPlan)>);

impl LastPass {
    /// The plan, if this is what it answers.
    pub(super) fn answer(self, question: &Question) -> Option<PackingPlan> {
        self.0.filter(|(asked, _)| asked.is(question)).map(|(_, plan)| plan)
    }

    /// Keeps a plan without claims if it can be.
    pub(super) fn keep(step: &mut Step<'_>, question: Question, plan: PackingPlan) {
        let lasts = step.outside.storage().is_empty();
        step.own.last_pass = Self(lasts.then_some((question, plan)));
    }
}
