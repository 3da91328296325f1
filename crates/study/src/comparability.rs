//! What makes a comparison uneven: nodes that one policy keeps and another need not, and autoscalers that never did anything.

use serde::{Deserialize, Serialize};

use super::comparison::Comparison;
use super::points::Point;
use crate::domain::words::counted;
use crate::scenario::lints::studies;
use crate::scenario::{Autoscaler, Caveat, PolicyVariant};

/// From this share of the difference of costs on, what is uneven decides the answer.
const DECIDES: f64 = 0.5;

/// What a policy has to do with its nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeManagement {
    /// The policy's name in the comparison.
    pub policy: String,
    /// What adds and removes nodes; `None` where nothing does.
    autoscaler: Option<&'static str>,
    /// Its node groups.
    groups: Vec<Group>,
}

/// A node group under one policy.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group {
    name: String,
    /// Nodes that the policy can never do without.
    least: u32,
    /// Whether nothing ever changes their number.
    kept: bool,
}

impl NodeManagement {
    /// That of a policy, which the comparison calls `name`.
    pub fn new(name: &str, policy: &PolicyVariant) -> Self {
        let autoscaler = match policy.autoscaler {
            Autoscaler::Karpenter => Some("Karpenter"),
            Autoscaler::EksAutoMode => Some("EKS Auto Mode"),
            Autoscaler::ClusterAutoscaler => Some("Cluster Autoscaler"),
            Autoscaler::None => None,
        };
        let group = |group: &crate::domain::NodeGroup| {
            let item = (i64::from(group.min_size), i64::from(group.max_size));
            let limits = policy.flags.as_ref().and_then(|flags| flags.discovery.limits(group, item));
            let least = limits.map_or(group.desired_size, |(min, _)| u32::try_from(min).unwrap_or(0));
            Group { name: group.name.to_string(), least, kept: limits.is_none() }
        };
        Self { policy: name.to_owned(), autoscaler, groups: policy.manifests.node_groups.iter().map(group).collect() }
    }

    fn least(&self, name: &str) -> u32 {
        self.groups.iter().find(|group| group.name == name).map_or(0, |group| group.least)
    }

    /// Groups of which this policy keeps more nodes than the other has to.
    fn keeps_more(&self, other: &Self) -> Vec<&Group> {
        self.groups.iter().filter(|group| group.kept && group.least > other.least(&group.name)).collect()
    }
}

/// Something that makes a comparison uneven.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Uneven {
    /// `launched_nothing`, `answers_nothing` or `keeps_nodes`.
    pub kind: String,
    /// The policy.
    pub policy: String,
    /// The policy that it is not even with.
    pub against: String,
    /// What there is to say.
    pub message: String,
    /// Whether it decides the answer: at least half of the difference of the two costs comes from it.
    pub decides: bool,
}

/// Finds what is uneven between the policies of a comparison, and adds it to the comparison and its warnings.
pub fn weigh(comparison: &mut Comparison, footings: &[NodeManagement]) {
    let mut found = launched_nothing(comparison, footings);
    found.extend(answers_nothing(comparison));
    for one in footings.iter().filter(|footing| footing.autoscaler.is_some()) {
        for other in footings.iter().filter(|footing| footing.autoscaler.is_some() && footing.policy != one.policy) {
            found.extend(keeps_nodes(comparison, one, other));
        }
    }
    // They matter more than what any one policy leaves out, of which a table shows the first few.
    let caveat = |uneven: &Uneven| Caveat::new(&studies::UNEVEN_POLICIES, &*uneven.message);
    comparison.warnings.precede(found.iter().map(caveat).collect());
    comparison.uneven = found;
}

fn points<'c>(comparison: &'c Comparison, policy: &'c str) -> impl Iterator<Item = &'c Point> {
    comparison.points.iter().filter(move |point| point.policy == policy)
}

/// Policies whose autoscaler launched nothing in any replication, while that of another did.
fn launched_nothing(comparison: &Comparison, footings: &[NodeManagement]) -> Vec<Uneven> {
    let launches = |node_management: &NodeManagement| {
        let position = comparison.policies.iter().position(|policy| policy.name == node_management.policy)?;
        comparison.figure(position, "launches")?.mean.map(|mean| mean.mean)
    };
    let subject = |policy: &str| comparison.wording.subject(policy);
    let autoscaled = || footings.iter().filter_map(|footing| Some((footing, footing.autoscaler?, launches(footing)?)));
    let Some((busy, _, _)) = autoscaled().find(|(_, _, launches)| *launches > 0.0) else { return Vec::new() };
    autoscaled()
        .filter(|(_, _, launches)| *launches <= 0.0)
        .map(|(key, autoscaler, _)| Uneven {
            kind: "launched_nothing".to_owned(),
            policy: key.policy.clone(),
            against: busy.policy.clone(),
            message: format!(
                "{} launched no nodes with {autoscaler}, but {} did; its cost covers only nodes that existed at the start",
                subject(&key.policy),
                subject(&busy.policy)
            ),
            decides: true,
        })
        .collect()
}

/// Policies under which workloads answer none of their requests, in no replication, and under the first they do, or the other way around.
/// Figures of response times are of those that answer, and a small workload is not seen among all lost requests.
fn answers_nothing(comparison: &Comparison) -> Vec<Uneven> {
    let Some((first, others)) = comparison.policies.split_first() else { return Vec::new() };
    let first = first.name.as_str();
    let pairs = others.iter().map(|other| other.name.as_str()).flat_map(|other| [(other, first), (first, other)]);
    let found = pairs.filter_map(|(policy, against)| {
        let theirs = silent(comparison, against);
        let names: Vec<String> =
            silent(comparison, policy).into_iter().filter(|name| !theirs.contains(name)).map(str::to_owned).collect();
        let answer = if names.len() == 1 { "answers none of its requests" } else { "answer none of their requests" };
        let under = comparison.wording.under(policy);
        (!names.is_empty()).then(|| Uneven {
            kind: "answers_nothing".to_owned(),
            policy: policy.to_owned(),
            against: against.to_owned(),
            message: format!(
                "{} {answer} {under}, unlike {against}; response times {under} cover only the workloads that answer",
                several(&names)
            ),
            decides: false,
        })
    });
    found.collect()
}

/// Workloads that answer none of their requests in any replication of a policy.
fn silent<'c>(comparison: &'c Comparison, policy: &'c str) -> Vec<&'c str> {
    let Some(first) = points(comparison, policy).next() else { return Vec::new() };
    let always = |name: &&String| points(comparison, policy).all(|point| point.silent.contains(*name));
    first.silent.iter().filter(always).map(String::as_str).collect()
}

/// The first of these names and how many others there are.
fn several(names: &[String]) -> String {
    const NAMED: usize = 3;
    let listed = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => listed,
        more => format!("{listed} and {}", counted(more as u64, "other", "others")),
    }
}

/// That one policy keeps nodes of groups that the other can do without.
fn keeps_nodes(comparison: &Comparison, one: &NodeManagement, other: &NodeManagement) -> Option<Uneven> {
    let groups = one.keeps_more(other);
    if groups.is_empty() {
        return None;
    }
    let each: Vec<String> = groups
        .iter()
        .map(|group| {
            let (name, nodes) = (&group.name, counted(u64::from(group.least), "node", "nodes"));
            let less = match other.groups.iter().find(|this_group| this_group.name == group.name) {
                Some(group) if group.kept => format!("at {}", group.least),
                Some(group) => format!("may go down to {}", group.least),
                None => "is not there".to_owned(),
            };
            let [here, there] = [one, other].map(|side| comparison.wording.under(&side.policy));
            format!("{name} stays at {nodes} {here} and {less} {there}")
        })
        .collect();
    let of_groups = |policy| {
        let cost = |point: &Point| {
            let names = groups.iter().map(|group| point.cost_by_origin.get(&group.name).copied().unwrap_or(0.0));
            names.sum::<f64>()
        };
        points(comparison, policy).map(cost).sum::<f64>()
    };
    let cost = |policy| points(comparison, policy).filter_map(|point| *point.figures.first()?).sum::<f64>();
    let kept = of_groups(&one.policy) - of_groups(&other.policy);
    let whole = cost(&one.policy) - cost(&other.policy);
    Some(Uneven {
        kind: "keeps_nodes".to_owned(),
        policy: one.policy.clone(),
        against: other.policy.clone(),
        message: format!("the policies have different node groups: {}", each.join(", ")),
        decides: kept * whole > 0.0 && kept.abs() >= DECIDES * whole.abs(),
    })
}

#[cfg(test)]
mod tests {
    use super::answers_nothing;
    use crate::comparison::{About, compare};
    use crate::figures::FIGURES;
    use crate::points::Point;
    use crate::scenario::Caveats;

    fn point(policy: &str, seed: u64, silent: &[&str]) -> Point {
        Point {
            setting: 0,
            policy: policy.to_owned(),
            seed,
            figures: vec![Some(1.0); FIGURES.len()],
            objectives: Vec::new(),
            event_hash: String::new(),
            unconfirmed: 0.0,
            cost_by_origin: Default::default(),
            spot: false,
            never_registered: 0,
            silent: silent.iter().map(|&name| name.to_owned()).collect(),
            at_zero_seconds: Default::default(),
            price_date: String::new(),
            warnings: Caveats::new(),
        }
    }

    #[test]
    fn workload_failing_under_one_policy_is_reported() {
        let points = vec![
            point("before", 1, &["shop/dead", "shop/late"]),
            point("after", 1, &["shop/dead", "shop/tiny"]),
            point("before", 2, &["shop/dead"]),
            point("after", 2, &["shop/dead", "shop/tiny"]),
        ];
        let policies = ["before".to_owned(), "after".to_owned()];
        let found = answers_nothing(&compare(About::of_test(1, 2), &policies, points, Caveats::new()));
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.policy.as_str(), one.against.as_str()), ("after", "before"));
        assert!(one.message.starts_with("shop/tiny answers none of its requests under after"), "{}", one.message);
    }
}
