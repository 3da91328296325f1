//! What a user may change of a scenario, found in its objects: each lever with the levels that it is tried at.
//!
//! A level is a list of values to set, as `--set` states them. Requirements of NodePools are lists that several levers change: their
//! terms are kept apart by key, and put together when a setting is made.

mod additions;
mod blockers;
mod daemon_sets;
mod groups;
mod network;
mod pools;
mod schedules;
mod support;
mod unused;
mod volumes;
mod workloads;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::allowed::{Allowance, Exclusion, confine};
use super::search::Choice;
use crate::axes::Setting;
use crate::domain::Symbol;
use crate::domain::requirements::Requirement;
use crate::scenario::document::Content;
use crate::scenario::{PolicyVariant, Scenario};

/// Kinds of lever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Which nodes of a NodePool consolidation considers.
    Consolidation,
    /// How long it leaves a node alone.
    ConsolidateAfter,
    /// How many nodes it may disrupt at once.
    Budgets,
    /// What blocks every disruption: budgets, PodDisruptionBudgets, annotations.
    Blockers,
    /// Which instance families a NodePool may have.
    Families,
    /// Which sizes of them.
    Sizes,
    /// Which processor architectures.
    Architectures,
    /// Spot and On-Demand.
    Spot,
    /// Which NodePool is tried first.
    Weights,
    /// How much a NodePool may launch.
    Limits,
    /// Which workloads have a NodePool of their own.
    Split,
    /// What HorizontalPodAutoscalers aim at.
    HpaTargets,
    /// The least number of replicas.
    HpaMinimum,
    /// How long they wait before they scale down.
    HpaBehavior,
    /// What containers request.
    Requests,
    /// Requests of DaemonSets.
    DaemonSets,
    /// Replicas at quiet hours, and none while no trigger is active.
    Schedules,
    /// How many placeholder pods keep nodes in reserve.
    Headroom,
    /// The instance types of node groups.
    GroupTypes,
    /// The least size of node groups.
    GroupSizes,
    /// Flags of the Cluster Autoscaler.
    Flags,
    /// Type, performance and size of EBS volumes.
    Volumes,
    /// Nodes that commitments of the scenario cover.
    UnusedCommitments,
    /// Release and tier of the control plane.
    Support,
    /// Zones of nodes.
    Zones,
    /// Calls that stay in their zone.
    TopologyRouting,
    /// VPC endpoints next to NAT gateways.
    Endpoints,
    /// Savings Plans.
    Commitments,
}

impl Kind {
    /// All of them, with their names on the command line.
    pub const ALL: [(&'static str, Self); 28] = [
        ("consolidation", Self::Consolidation),
        ("consolidate-after", Self::ConsolidateAfter),
        ("budgets", Self::Budgets),
        ("blockers", Self::Blockers),
        ("families", Self::Families),
        ("sizes", Self::Sizes),
        ("architectures", Self::Architectures),
        ("spot", Self::Spot),
        ("weights", Self::Weights),
        ("limits", Self::Limits),
        ("split", Self::Split),
        ("hpa-targets", Self::HpaTargets),
        ("hpa-minimum", Self::HpaMinimum),
        ("hpa-behavior", Self::HpaBehavior),
        ("requests", Self::Requests),
        ("daemonsets", Self::DaemonSets),
        ("schedules", Self::Schedules),
        ("headroom", Self::Headroom),
        ("group-types", Self::GroupTypes),
        ("group-sizes", Self::GroupSizes),
        ("flags", Self::Flags),
        ("volumes", Self::Volumes),
        ("unused-commitments", Self::UnusedCommitments),
        ("support", Self::Support),
        ("zones", Self::Zones),
        ("topology-routing", Self::TopologyRouting),
        ("endpoints", Self::Endpoints),
        ("commitments", Self::Commitments),
    ];

    /// Those that are tried unless somebody says otherwise: no manifest tells which processors an image runs on.
    pub fn usual() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(_, kind)| kind).filter(|kind| *kind != Self::Architectures)
    }

    /// Its name on the command line and in files.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The kind called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(key, _)| *key == name).map(|(_, kind)| *kind)
    }
}

/// Something that a user may change.
#[derive(Clone, PartialEq, Debug)]
pub struct Lever {
    /// What kind of thing it is.
    pub kind: Kind,
    /// What it belongs to: `NodePool default`.
    pub subject: String,
    /// How it is today, for people.
    pub today: String,
    /// What is tried instead.
    pub levels: Vec<Level>,
}

/// A level that a lever is tried at.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Level {
    /// What it is, for people.
    pub label: String,
    /// Paths with values.
    pub sets: Setting,
    /// Requirements of NodePools that it changes.
    pub requirements: Vec<Terms>,
}

/// What a level makes of the requirements of a NodePool on one label.
#[derive(Clone, PartialEq, Debug)]
pub struct Terms {
    /// The path of the NodePool's requirements.
    pub path: String,
    /// The label.
    pub key: Symbol,
    /// The terms on it; none to have it free.
    pub terms: Vec<Value>,
}

impl Level {
    /// A level that sets values.
    fn new<'a>(label: impl Into<String>, sets: impl IntoIterator<Item = (String, &'a str)>) -> Self {
        let sets = sets.into_iter().map(|(path, value)| (path, value.to_owned())).collect();
        Self { label: label.into(), sets, requirements: Vec::new() }
    }
}

/// The requirements of each NodePool as they are today: by path, terms by label.
pub type Requirements = BTreeMap<String, Vec<(Symbol, Vec<Value>)>>;

/// What is known of today that levers go by.
pub struct BaselineFacts<'k> {
    /// The scenario.
    pub scenario: &'k Scenario,
    /// The policy that is to become cheaper.
    pub policy: &'k PolicyVariant,
    /// The region's prices.
    pub region: &'k std::sync::Arc<crate::catalog::Region>,
    /// What nodes cost, by NodePool or node group.
    pub by_origin: &'k BTreeMap<String, f64>,
    /// What workloads cost, by namespace and name.
    pub by_workload: &'k BTreeMap<String, f64>,
    /// Whether values can be set: paths that lead nowhere cannot.
    pub can_set: &'k dyn Fn(&Setting) -> bool,
    /// The scenario's own document.
    pub root: &'k Content,
    /// The objects as they are stated.
    pub objects: &'k [Content],
    /// What flags allow beyond the nodes of today.
    pub allowance: Allowance,
}

/// NodePools, node groups and autoscalers that are tried one by one, those that cost most; with more of them a search has no end.
const OBJECTS_MAX: usize = 4;
/// The same of HorizontalPodAutoscalers.
const AUTOSCALERS_MAX: usize = 8;

/// Every lever of a scenario, of whatever kind, and the parts of them that a NodePool excludes; those of [`Kind::Requests`] and
/// [`Kind::Commitments`] need runs and come from elsewhere.
pub fn levers(known: &BaselineFacts<'_>) -> (Vec<Lever>, Vec<Exclusion>) {
    let mut all = Vec::new();
    if known.policy.autoscaler.is_karpenter() {
        pools::levers(known, &mut all);
    }
    groups::levers(known, &mut all);
    workloads::levers(known, &mut all);
    volumes::levers(known, &mut all);
    all.extend(blockers::lever(known));
    all.extend(daemon_sets::lever(known));
    schedules::levers(known, &mut all);
    unused::levers(known, &mut all);
    support::levers(known, &mut all);
    network::levers(known, &mut all);
    all.retain(|lever| !lever.levels.is_empty());
    let excluded = confine(known, &mut all);
    (all, excluded)
}

pub(super) use pools::template;
pub(super) use support::{RELEASE, TIER};

/// What the NodePools of a policy require today.
pub fn requirements(policy: &PolicyVariant) -> Requirements {
    let pools = policy.manifests.node_pools.iter();
    pools.map(|pool| (format!("{}.requirements", pools::template(pool)), by_key(&pool.requirements))).collect()
}

/// Terms by label. A NodePool may state several requirements on one label, `Gt` and `Lt` for instance, and a level takes the place of all.
fn by_key(requirements: &[Requirement]) -> Vec<(Symbol, Vec<Value>)> {
    let mut all: Vec<(Symbol, Vec<Value>)> = Vec::new();
    for requirement in requirements {
        match all.iter_mut().find(|(key, _)| *key == requirement.key) {
            Some((_, known)) => known.extend(terms(requirement)),
            None => all.push((requirement.key, terms(requirement))),
        }
    }
    all
}

/// A requirement as a manifest states it.
fn terms(requirement: &Requirement) -> Vec<Value> {
    let key = requirement.key.as_str();
    let mut terms = Vec::new();
    let values: Vec<&str> = requirement.values.iter().map(|value| value.as_str()).collect();
    match (requirement.complement, values.is_empty()) {
        (false, true) => terms.push(json!({"key": key, "operator": "DoesNotExist"})),
        (false, false) => terms.push(json!({"key": key, "operator": "In", "values": values})),
        (true, false) => terms.push(json!({"key": key, "operator": "NotIn", "values": values})),
        (true, true) if requirement.gte.is_none() && requirement.lte.is_none() => {
            terms.push(json!({"key": key, "operator": "Exists"}))
        }
        (true, true) => {}
    }
    let bound = |operator: &str, value: i64| json!({"key": key, "operator": operator, "values": [value.to_string()]});
    terms.extend(requirement.gte.map(|least| bound("Gt", least.saturating_sub(1))));
    terms.extend(requirement.lte.map(|most| bound("Lt", most.saturating_add(1))));
    if let (Some(least), Some(Value::Object(first))) = (requirement.min_values, terms.first_mut()) {
        first.insert("minValues".to_owned(), json!(least));
    }
    terms
}

/// The values to set for a choice of levels.
pub fn setting(levers: &[Lever], choice: &Choice, today: &Requirements) -> Setting {
    let chosen = levers.iter().zip(choice).filter_map(|(lever, level)| lever.levels.get(level.checked_sub(1)?));
    let mut setting = Setting::new();
    let mut changed: BTreeMap<&str, Vec<(Symbol, Vec<Value>)>> = BTreeMap::new();
    for level in chosen {
        setting.extend(level.sets.iter().cloned());
        for requirement in &level.requirements {
            let of_pool = changed
                .entry(requirement.path.as_str())
                .or_insert_with(|| today.get(&requirement.path).cloned().unwrap_or_default());
            match of_pool.iter_mut().find(|(key, _)| *key == requirement.key) {
                Some(place) => place.1.clone_from(&requirement.terms),
                None => of_pool.push((requirement.key, requirement.terms.clone())),
            }
        }
    }
    let list = |terms: Vec<(Symbol, Vec<Value>)>| -> Vec<Value> { terms.into_iter().flat_map(|term| term.1).collect() };
    setting.extend(changed.into_iter().map(|(path, terms)| (path.to_owned(), Value::Array(list(terms)).to_string())));
    setting
}

/// The names of the objects that cost most, at most `count` of them.
pub(crate) fn dearest<'a>(
    names: impl Iterator<Item = &'a str>,
    costs: &BTreeMap<String, f64>,
    count: usize,
) -> Vec<&'a str> {
    let mut all: Vec<&str> = names.collect();
    let cost = |name: &str| costs.get(name).copied().unwrap_or(0.0);
    all.sort_by(|one, other| cost(other).total_cmp(&cost(one)));
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Kind, Level, Lever, Requirements, Terms, by_key, setting, terms};
    use crate::domain::Symbol;
    use crate::domain::requirements::{Operator, Requirement};

    #[test]
    fn requirements_read_as_manifests_state_them() {
        let of = |operator, values: &[&str]| {
            terms(&Requirement::new(Symbol::new("k"), operator, values.iter().map(|value| Symbol::new(value))))
        };
        assert_eq!(of(Operator::In, &["b", "a"]), [json!({"key": "k", "operator": "In", "values": ["a", "b"]})]);
        assert_eq!(of(Operator::NotIn, &["a"]), [json!({"key": "k", "operator": "NotIn", "values": ["a"]})]);
        assert_eq!(of(Operator::Gt, &["2"]), [json!({"key": "k", "operator": "Gt", "values": ["2"]})]);
        assert_eq!(of(Operator::Exists, &[]), [json!({"key": "k", "operator": "Exists"})]);
        assert_eq!(of(Operator::DoesNotExist, &[]), [json!({"key": "k", "operator": "DoesNotExist"})]);
    }

    #[test]
    fn lever_level_replaces_requirements_on_label() {
        let key = Symbol::new("karpenter.k8s.aws/instance-cpu");
        let make = |operator, value| Requirement::new(key, operator, [Symbol::new(value)]);
        let stated = [make(Operator::Gt, "1"), make(Operator::Lt, "17")];
        let path = "NodePool[a].spec.template.spec.requirements".to_owned();
        let today = Requirements::from([(path.clone(), by_key(&stated))]);
        assert_eq!(today[&path].len(), 1);
        let requirements = vec![Terms { path: path.clone(), key, terms: vec![json!("any")] }];
        let levels = vec![Level { requirements, ..Level::default() }];
        let lever = Lever { kind: Kind::Sizes, subject: String::new(), today: String::new(), levels };
        assert_eq!(setting(&[lever], &vec![1], &today), [(path, r#"["any"]"#.to_owned())]);
    }

    #[test]
    fn levers_of_one_list_are_put_together() {
        let (path, one, two) = ("NodePool[a].spec.template.spec.requirements", Symbol::new("one"), Symbol::new("two"));
        let lever = |key: Symbol, value: &str| Lever {
            kind: Kind::Families,
            subject: String::new(),
            today: String::new(),
            levels: vec![Level {
                requirements: vec![Terms { path: path.to_owned(), key, terms: vec![json!(value)] }],
                ..Level::default()
            }],
        };
        let today = Requirements::from([(path.to_owned(), vec![(one, vec![json!("x")])])]);
        let levers = [lever(one, "y"), lever(two, "z")];
        let of = |choice: &[usize]| setting(&levers, &choice.to_vec(), &today);
        assert_eq!(of(&[0, 0]), []);
        assert_eq!(of(&[0, 1]), [(path.to_owned(), r#"["x","z"]"#.to_owned())]);
        assert_eq!(of(&[1, 1]), [(path.to_owned(), r#"["y","z"]"#.to_owned())]);
    }
}
