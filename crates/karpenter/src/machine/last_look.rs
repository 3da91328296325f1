//! What the disruption loop saw when it last looked, and what each method came to: at the same cluster it comes to the same.
//!
//! Upstream's memo holds only what nothing but a change of the cluster could alter; a method that a budget kept from something
//! looks again at every pass. Most of these looks see what the last one saw, and are answered from here.
//!
//! What is kept is stale as soon as one of these differs: nodes and the pods on them (by the cluster's journal), a condition of a node or what Karpenter has in
//! mind for it, the pods that wait, pools, instance types with their offerings, the breaking of ties, what a budget allows now, or
//! the order of the candidates, whose lives grow shorter. Nothing is kept where volumes could change a pod's places, or a
//! pod is protected for a time. Builds with debug assertions look all the same, and compare.

use std::sync::Arc;

use super::claims::Condition;
use super::cluster_view::{known_nodes, telling_ties};
use super::step::Step;
use super::type_lists::same;
use crate::controller_time::SearchWork;
use crate::disruption::{
    Allowance, Candidate, ClusterView, Disturbance, Method, NodeCount, Obstacle, PodsDigest, allowed, compare_by_cost,
};
use crate::packing::TieBreak;
use nodecast_model::cluster::Position;
use nodecast_model::control_plane::eviction::BudgetStatus;
use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::{NodeId, NodePool, PodId, SimTime};

/// A cluster as a look saw it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Seen {
    /// The last change of nodes and what is placed on them, or where budgets look at the health of pods of anything.
    changed: Position,
    /// The generation of the lists of instance types.
    types: u64,
    ties: Option<TieBreak>,
    pending: Vec<PodId>,
    /// The generation of CapacityBuffers.
    buffers: u64,
    nodes: Vec<Condition>,
    /// What budgets of pods allow, as their controller last said.
    statuses: Vec<BudgetStatus>,
}

impl Seen {
    /// The cluster as it is now. `pending` are the pods that provisioning would take on.
    pub(super) fn now(step: &Step<'_>, now: SimTime, pending: &[PodId]) -> Self {
        let condition = |node| Condition::of(step, now, node, step.own.nodes.get(&node));
        let has_budgets = !step.cluster.budgets().is_empty();
        Self {
            changed: if has_budgets { step.cluster.changed() } else { step.cluster.placement_changed() },
            types: step.own.instance_types.generation(),
            ties: telling_ties(step),
            pending: pending.to_vec(),
            buffers: step.own.buffers.generation(),
            nodes: known_nodes(step).into_iter().map(condition).collect(),
            statuses: step.outside.budget_statuses(),
        }
    }
}

/// What a method came to that found nothing to do.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Answer {
    /// Whether that holds until something changes; otherwise a budget stood in the way, or there was no candidate.
    pub(super) lasting: bool,
    /// How many candidates there were.
    pub(super) candidates: u32,
    /// What it was for upstream.
    pub(super) work: SearchWork,
    /// What kept nodes, in their order in the cluster, which unlike that of the candidates no passing of time changes.
    pub(super) met: Vec<(NodeId, Obstacle)>,
    /// What each pool's budgets allowed.
    allowed: Vec<i64>,
    /// The candidates in their order, where their order counts and time can change it.
    order: Vec<(NodeId, Disturbance)>,
}

impl Answer {
    /// What a method came to at a view of these nodes that had these allowances before it; `ordered` are its candidates where it
    /// takes them in an order that time can change.
    pub(super) fn new(
        view: &ClusterView<'_>,
        nodes: &[NodeId],
        candidates: usize,
        ordered: &[Candidate],
        allowances: &[Allowance],
    ) -> Self {
        let mut answer = Self {
            lasting: false,
            candidates: candidates as u32,
            work: SearchWork::default(),
            met: Vec::new(),
            allowed: allowances.iter().map(|own| own.0).collect(),
            order: Vec::new(),
        };
        answer.keep_order(view, nodes, ordered);
        answer
    }

    /// Makes the answer hold only as long as the candidates stand in this order.
    pub(super) fn keep_order(&mut self, view: &ClusterView<'_>, nodes: &[NodeId], ordered: &[Candidate]) {
        let disturbance = |candidate: &Candidate| Disturbance::of(&view.nodes[candidate.node]);
        self.order = ordered.iter().map(|candidate| (nodes[candidate.node], disturbance(candidate))).collect();
    }
}

/// What is kept of the last look.
#[derive(Debug, Default)]
pub(super) struct LastLook {
    seen: Option<Seen>,
    pools: Vec<Arc<NodePool>>,
    /// Nodes that count for the budgets of each pool.
    counted: Vec<NodeCount>,
    answers: Vec<(Method, Answer)>,
}

impl LastLook {
    /// What the methods would come to, if all of them have been asked about a cluster that is still as it was seen.
    pub(super) fn answers(
        &self,
        step: &Step<'_>,
        now: SimTime,
        seen: &Seen,
        methods: &[Method],
    ) -> Option<Vec<(Method, Answer)>> {
        if !self.is_about(step, seen) {
            return None;
        }
        let known = |method: &Method| {
            let (_, answer) = self.answers.iter().find(|(own, _)| own == method)?;
            let holds = self.allow_the_same(step, now, method.reason(), answer) && in_order(step, now, &answer.order);
            holds.then(|| (*method, answer.clone()))
        };
        methods.iter().map(known).collect()
    }

    fn is_about(&self, step: &Step<'_>, seen: &Seen) -> bool {
        self.seen.as_ref() == Some(seen) && same(&self.pools, &step.own.pools)
    }

    fn allow_the_same(&self, step: &Step<'_>, now: SimTime, reason: DisruptionReason, answer: &Answer) -> bool {
        let unix_seconds = step.own.settings.unix_seconds(now);
        let now_allowed = |(pool, count): (&Arc<NodePool>, &NodeCount)| allowed(pool, reason, *count, unix_seconds).0;
        self.pools.iter().zip(&self.counted).map(now_allowed).eq(answer.allowed.iter().copied())
    }

    /// Keeps what the methods came to, beside what others came to at the same cluster.
    pub(super) fn keep(
        &mut self,
        step: &Step<'_>,
        seen: Seen,
        counted: Vec<NodeCount>,
        answers: Vec<(Method, Answer)>,
    ) {
        if !self.is_about(step, &seen) {
            *self = Self { seen: Some(seen), pools: step.own.pools.clone(), counted, answers: Vec::new() };
        }
        self.answers.retain(|(method, _)| answers.iter().all(|(own, _)| own != method));
        self.answers.extend(answers);
    }

    /// Forgets what was seen.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Whether the candidates would still be taken in this order.
fn in_order(step: &Step<'_>, now: SimTime, order: &[(NodeId, Disturbance)]) -> bool {
    let key = |(node, disturbance): &(NodeId, Disturbance)| {
        let state = step.cluster.node(*node);
        (disturbance.at(now), state.created, state.api_name())
    };
    order.is_sorted_by(|one, next| compare_by_cost(key(one), key(next)).is_le())
}

/// Whether what is found at such a cluster can be kept: nothing in it changes unseen.
pub(super) fn can_be_kept(step: &Step<'_>, view: &ClusterView<'_>) -> bool {
    let mut digests = view.nodes.iter().map(|node| node.digest);
    step.outside.storage().is_empty() && !digests.any(PodsDigest::is_protected_for_a_time)
}
