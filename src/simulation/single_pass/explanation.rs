//! Why each NodePool and its instance types could or could not take one pod.

use std::cmp::Reverse;

use super::{SinglePass, packed};
use crate::domain::{HourlyRate, KarpenterVersion, Requirements, ResourceName, Resources, Symbol};
use crate::policy::instance_types::InstanceType;
use crate::policy::packing::{PackingPlan, PlannedClaim, Refusal, Unschedulable, judge_types};

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

/// What a NodePool says to a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolVerdict {
    /// The NodePool.
    pub node_pool: Symbol,
    /// Why it is not usable; `None` if it could open a node for the pod.
    pub refusal: Option<String>,
    /// What a node for the pod would have requested of it: the pod and the daemons. `None` where it did not come to that.
    pub requests: Option<Resources>,
    /// Instance types that would do.
    pub usable: Vec<Symbol>,
    /// Instance types that would not, grouped by reason, the largest group first.
    pub refused: Vec<TypeGroup>,
}

/// Instance types with one thing against them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeGroup {
    /// What.
    pub reason: String,
    /// How many types.
    pub types: usize,
    /// The type that comes nearest; of equally near ones the cheapest.
    pub nearest: Symbol,
    /// What that type lacks: the resource, what is asked, what it offers.
    pub short: Option<(ResourceName, i64, i64)>,
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

    fn outcome(&self, pod: usize) -> PodOutcome {
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
        let own = &self.question.node_pools[pool];
        let nothing = |refusal: String| PoolVerdict {
            node_pool: own.name,
            refusal: Some(refusal),
            requests: None,
            usable: Vec::new(),
            refused: Vec::new(),
        };
        if !own.ready {
            return nothing("it is not ready or is being deleted".to_owned());
        }
        if own.replicas.is_some() {
            return nothing("it is static (`replicas`): it launches nothing for pods".to_owned());
        }
        if !taken_on {
            return nothing("it was not asked: no pass takes the pod on".to_owned());
        }
        if let Some(refusal) = refusal_in(&self.plan, own.name, self.asked.iter().position(|&asked| asked == pod)) {
            return self.refused(pool, refusal);
        }
        if let PodOutcome::NewNode(claim) = outcome
            && self.plan.claims[*claim].pool == pool
        {
            return self.usable(pool, &self.plan.claims[*claim]);
        }
        let alone = packed(self.question, &self.types, &[pool], &[pod], false, None);
        if let Some(claim) = alone.claims.first() {
            return self.usable(pool, claim);
        }
        match (refusal_in(&alone, own.name, Some(0)), alone.unschedulable.first()) {
            (Some(refusal), _) => self.refused(pool, refusal),
            (None, Some(unplaced)) => nothing(unplaced.reason.to_string()),
            (None, None) => nothing("it has no answer".to_owned()),
        }
    }

    /// The verdict of a pool that opens a node. `claim` may come from a plan with this pool alone: its own position of the
    /// pool is not looked at.
    fn usable(&self, pool: usize, claim: &PlannedClaim) -> PoolVerdict {
        PoolVerdict {
            node_pool: claim.node_pool,
            refusal: None,
            requests: Some(claim.requests.clone()),
            usable: claim.instance_types.iter().map(|kind| kind.name).collect(),
            refused: groups(self.question.karpenter, &self.types[pool], &claim.requirements, &claim.requests),
        }
    }

    fn refused(&self, pool: usize, refusal: &Refusal) -> PoolVerdict {
        let (requests, refused) = match refusal {
            Refusal::InstanceTypes(types) => (
                Some(types.requests.clone()),
                groups(self.question.karpenter, &self.types[pool], &types.requirements, &types.requests),
            ),
            _ => (None, Vec::new()),
        };
        PoolVerdict {
            node_pool: self.question.node_pools[pool].name,
            refusal: Some(refusal.to_string()),
            requests,
            usable: Vec::new(),
            refused,
        }
    }
}

/// What the pool called `name` had against the pod at `position` of the pass.
fn refusal_in(plan: &PackingPlan, name: Symbol, position: Option<usize>) -> Option<&Refusal> {
    if let Some(dropped) = plan.dropped_pools.iter().find(|dropped| dropped.node_pool == name) {
        return Some(&dropped.reason);
    }
    let unplaced = plan.unschedulable.iter().find(|unplaced| Some(unplaced.pod) == position)?;
    match &unplaced.reason {
        Unschedulable::Refused(refusals) => {
            refusals.iter().find(|refusal| refusal.node_pool == name).map(|refusal| &refusal.reason)
        }
        _ => None,
    }
}

/// The types that do not meet everything, by the first thing against each.
fn groups(
    karpenter: KarpenterVersion,
    types: &[InstanceType],
    requirements: &Requirements,
    requests: &Resources,
) -> Vec<TypeGroup> {
    let mut groups: Vec<(TypeGroup, (i64, HourlyRate))> = Vec::new();
    for (verdict, entry) in judge_types(karpenter, types, requirements, requests).into_iter().zip(types) {
        let (reason, short) = if !verdict.requirements {
            let key = entry.requirements.intersects(requirements).err().map(|conflict| conflict.to_string());
            (conflict_in_words(entry, requirements).or(key).unwrap_or_default(), None)
        } else if let Some(resource) = verdict.lacking {
            let (asked, offered) = (requests.get(resource), entry.allocatable.get(resource));
            (format!("not enough {resource}"), Some((resource, asked, offered)))
        } else if !verdict.offering {
            ("no offering in the zones and capacity types allowed".to_owned(), None)
        } else {
            continue;
        };
        let price = entry.offerings.iter().filter(|offering| offering.available).map(|offering| offering.price).min();
        let distance = short.map_or(0, |(_, asked, offered)| asked.saturating_sub(offered));
        let nearness = (distance, price.unwrap_or(HourlyRate::from_nanos(i64::MAX)));
        match groups.iter_mut().find(|(group, _)| group.reason == reason) {
            Some((group, nearest)) => {
                group.types += 1;
                if nearness < *nearest {
                    *nearest = nearness;
                    (group.nearest, group.short) = (entry.name, short);
                }
            }
            None => groups.push((TypeGroup { reason, types: 1, nearest: entry.name, short }, nearness)),
        }
    }
    groups.sort_by(|(a, _), (b, _)| b.types.cmp(&a.types).then_with(|| a.reason.cmp(&b.reason)));
    groups.into_iter().map(|(group, _)| group).collect()
}

/// The first requirement, in order of key, that a type cannot meet.
fn conflict_in_words(entry: &InstanceType, requirements: &Requirements) -> Option<String> {
    let alone = |asked: &&crate::domain::Requirement| {
        let one: Requirements = std::iter::once((*asked).clone()).collect();
        entry.requirements.intersects(&one).is_err()
    };
    requirements.iter().find(alone).map(|asked| format!("does not meet {asked}"))
}
