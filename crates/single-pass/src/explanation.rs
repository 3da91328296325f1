//! Why each NodePool and its instance types could or could not take one pod.

use std::cmp::Reverse;

use super::{SinglePass, packed};
use nodecast_karpenter::packing::{PoolVerdict, Refusal, refusal_of};

/// What became of one pod, and what each NodePool says to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// Position of the pod in the question.
    pub pod: usize,
    /// What became of it.
    pub outcome: PodOutcome,
    /// The existing nodes that were asked, in that order, with why they do not take it; the last one may take it.
    pub nodes: Vec<(usize, Option<Refusal>)>,
    /// The NodePools in the order in which they are tried.
    pub pools: Vec<PoolVerdict>,
}

/// What became of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PodOutcome {
    /// It goes on the claim at this position of the plan.
    NewNode(usize),
    /// It goes on the node at this position of the question.
    ExistingNode(usize),
    /// It stays pending.
    Pending(String),
}

impl SinglePass<'_> {
    /// Why the pod at `pod` of the question goes where it goes.
    ///
    /// A NodePool that was asked in the pass answers as it did then, about the whole node that the pod went on; one that
    /// was not, because the pod had found a place before, is asked about a node for this pod alone.
    pub fn explain(&self, pod: usize) -> Explanation {
        let outcome = self.outcome(pod);
        let pools = &self.question.node_pools;
        let mut order: Vec<usize> = (0..pools.len()).collect();
        order.sort_by_key(|&pool| (Reverse(pools[pool].weight), Reverse(pools[pool].name)));
        let taken_on = self.asked.contains(&pod);
        let pools = order.into_iter().map(|pool| self.ask(pool, pod, taken_on, &outcome)).collect();
        Explanation { pod, outcome, nodes: self.ask_nodes(pod), pools }
    }

    /// What existing nodes said to the pod at its last attempt: the pass, run again, writes it down.
    fn ask_nodes(&self, pod: usize) -> Vec<(usize, Option<Refusal>)> {
        let Some(watched) = self.asked.iter().position(|&asked| asked == pod) else { return Vec::new() };
        let every: Vec<usize> = (0..self.question.node_pools.len()).collect();
        let plan = packed(self.question, &self.types, &every, &self.asked, true, Some(watched));
        plan.verdicts.into_iter().map(|verdict| (verdict.node, verdict.refusal)).collect()
    }

    /// What became of the pod at `pod` of the question.
    pub fn outcome(&self, pod: usize) -> PodOutcome {
        if let Some((_, reason)) = self.left_out.iter().find(|(position, _)| *position == pod) {
            return PodOutcome::Pending(reason.clone());
        }
        let is_it = |position: &usize| self.asked[*position] == pod;
        if let Some(claim) = self.plan.claims.iter().position(|claim| claim.pods.iter().any(is_it)) {
            return match &self.launches[claim] {
                Ok(_) => PodOutcome::NewNode(claim),
                Err(error) => PodOutcome::Pending(error.to_string()),
            };
        }
        if let Some(placement) = self.plan.existing.iter().find(|placement| placement.pods.iter().any(is_it)) {
            return PodOutcome::ExistingNode(placement.node);
        }
        let unplaced = self.plan.unschedulable.iter().find(|unplaced| is_it(&unplaced.pod));
        PodOutcome::Pending(unplaced.map_or_else(String::new, |unplaced| unplaced.reason.to_string()))
    }

    fn ask(&self, pool: usize, pod: usize, taken_on: bool, outcome: &PodOutcome) -> PoolVerdict {
        let node_pool = &self.question.node_pools[pool];
        let nothing = |refusal: String| PoolVerdict::without_types(node_pool.name, refusal);
        if let Some(aside) = PoolVerdict::aside(node_pool) {
            return aside;
        }
        let types = (self.question.karpenter, &self.types[pool][..]);
        if !taken_on {
            return nothing("it was not asked: no pass takes the pod on".to_owned());
        }
        if let Some(refusal) = refusal_of(&self.plan, node_pool.name, self.asked.iter().position(|&asked| asked == pod))
        {
            return PoolVerdict::refused(node_pool.name, refusal, types);
        }
        if let PodOutcome::NewNode(claim) = outcome
            && self.plan.claims[*claim].pool == pool
        {
            return PoolVerdict::usable(&self.plan.claims[*claim], types);
        }
        let alone = packed(self.question, &self.types, &[pool], &[pod], false, None);
        if let Some(claim) = alone.claims.first() {
            return PoolVerdict::usable(claim, types);
        }
        match (refusal_of(&alone, node_pool.name, Some(0)), alone.unschedulable.first()) {
            (Some(refusal), _) => PoolVerdict::refused(node_pool.name, refusal, types),
            (None, Some(unplaced)) => nothing(unplaced.reason.to_string()),
            (None, None) => nothing("it has no answer".to_owned()),
        }
    }
}
