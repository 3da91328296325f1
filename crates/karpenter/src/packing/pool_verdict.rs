//! What a NodePool says to a pod, instance type by instance type: read from the plan and judged by the packer's own tables.

use super::{PackingPlan, PlannedClaim, Refusal, Unschedulable, judge_types};
use crate::instance_types::InstanceType;
use nodecast_model::domain::{HourlyRate, KarpenterVersion, NodePool, Requirements, ResourceName, Resources, Symbol};

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

impl PoolVerdict {
    /// The verdict of a pool that launches nothing for pods; `None` if it does.
    pub fn aside(pool: &NodePool) -> Option<Self> {
        let nothing = |why: &str| Some(Self::without_types(pool.name, why.to_owned()));
        match (pool.ready, pool.replicas) {
            (false, _) => nothing("it is not ready or is being deleted"),
            (true, Some(_)) => nothing("it is static (`replicas`): it launches nothing for pods"),
            (true, None) => None,
        }
    }

    /// The verdict of a pool that was not asked about its types.
    pub fn without_types(node_pool: Symbol, refusal: String) -> Self {
        Self { node_pool, refusal: Some(refusal), requests: None, usable: Vec::new(), refused: Vec::new() }
    }

    /// The verdict of the pool that opens the node of `claim`. The claim may come from a plan with this pool alone: its own
    /// position of the pool is not looked at. `types` are the pool's, as a release labels them.
    pub fn usable(claim: &PlannedClaim, (karpenter, types): (KarpenterVersion, &[InstanceType])) -> Self {
        Self {
            node_pool: claim.node_pool,
            refusal: None,
            requests: Some(claim.requests.clone()),
            usable: claim.instance_types.iter().map(|kind| kind.name).collect(),
            refused: groups(karpenter, types, &claim.requirements, &claim.requests),
        }
    }

    /// The verdict of a pool that refused the pod.
    pub fn refused(
        node_pool: Symbol,
        refusal: &Refusal,
        (karpenter, types): (KarpenterVersion, &[InstanceType]),
    ) -> Self {
        let mut verdict = Self::without_types(node_pool, refusal.to_string());
        if let Refusal::InstanceTypes(missed) = refusal {
            verdict.requests = Some(missed.requests.clone());
            verdict.refused = groups(karpenter, types, &missed.requirements, &missed.requests);
        }
        verdict
    }
}

/// What the pool called `name` had against the pod at `position` of the pass.
pub fn refusal_of(plan: &PackingPlan, name: Symbol, position: Option<usize>) -> Option<&Refusal> {
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
    let alone = |asked: &&nodecast_model::domain::Requirement| {
        let one: Requirements = std::iter::once((*asked).clone()).collect();
        entry.requirements.intersects(&one).is_err()
    };
    requirements.iter().find(alone).map(|asked| format!("does not meet {asked}"))
}
