//! Levers of node groups and of the Cluster Autoscaler that sizes them.

use super::{BaselineFacts, Kind, Level, Lever, OBJECTS_MAX, dearest};
use crate::axes::Setting;
use crate::catalog::InstanceFacts;
use crate::domain::Symbol;
use crate::domain::node_group::NodeGroup;
use crate::scenario::definition::Autoscaler;
use crate::scenario::document::Content;
use nodecast_cluster_autoscaler::Flags;

/// Levers of the flags, if the Cluster Autoscaler is there, and of the groups that cost most.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    if let (Autoscaler::ClusterAutoscaler, Some(flags)) = (known.policy.autoscaler, &known.policy.flags) {
        all.extend(of_flags(known, flags));
    }
    let groups = &known.policy.manifests.node_groups;
    let chosen = dearest(groups.iter().map(|group| group.name.as_str()), known.by_origin, OBJECTS_MAX);
    for group in groups.iter().filter(|group| chosen.contains(&group.name.as_str())) {
        let Some(place) = place(known, group) else { continue };
        all.extend([types(known, group, &place), least(group, &place)]);
    }
}

fn of_flags(known: &BaselineFacts<'_>, flags: &Flags) -> Vec<Lever> {
    let lever = |flag: &str, today: String, tried: &[&str]| {
        let path = format!("policies[{}].flags.{flag}", known.policy.name);
        let tried = tried.iter().filter(|value| **value != today);
        let levels = tried.map(|value| Level::new(*value, [(path.clone(), *value)])).collect();
        Lever { kind: Kind::Flags, subject: format!("--{flag}"), today, levels }
    };
    let threshold = format!("{}", flags.scale_down_utilization_threshold);
    let expander = flags.expander.filters().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    vec![
        lever("scale-down-unneeded-time", flags.scale_down_unneeded_time.to_string(), &["2m", "5m", "20m"]),
        lever("scale-down-delay-after-add", flags.scale_down_delay_after_add.to_string(), &["2m", "10m"]),
        lever("scale-down-utilization-threshold", threshold, &["0.5", "0.65", "0.8"]),
        lever("expander", expander, &["least-waste", "least-nodes"]),
        lever("skip-nodes-with-system-pods", flags.skip_nodes_with_system_pods.to_string(), &["false"]),
        lever("skip-nodes-with-local-storage", flags.skip_nodes_with_local_storage.to_string(), &["false"]),
    ]
}

/// Where a group is stated.
pub(super) struct Place<'k> {
    /// The path of its map.
    pub(super) path: String,
    /// Its map.
    stated: &'k Content,
}

impl Place<'_> {
    fn states(&self, key: &str) -> bool {
        self.stated.get(key).and_then(Content::as_text).is_some_and(|text| text != "null")
            || self.stated.get(key).is_some_and(|value| !value.items().is_empty())
    }

    /// The path of a key that a scenario may spell in two ways. eksctl has the second one.
    fn key(&self, names: [&str; 2]) -> String {
        let is_second = self.path.starts_with("ClusterConfig.") || self.states(names[1]);
        format!("{}.{}", self.path, names[usize::from(is_second)])
    }

    /// The path of its least size.
    fn least(&self) -> String {
        self.key(["min", "minSize"])
    }

    /// The path of its zones.
    pub(super) fn zones(&self) -> String {
        self.key(["zones", "availabilityZones"])
    }

    /// The values with which all its nodes have one type. eksctl adds `instanceType` to `instanceTypes`, so both change.
    pub(super) fn types(&self, name: Symbol) -> Setting {
        let path = &self.path;
        let distribution = "instancesDistribution";
        if self.stated.get(distribution).is_some_and(|of_group| of_group.get("instanceTypes").is_some()) {
            return vec![(format!("{path}.{distribution}.instanceTypes"), format!("[{name}]"))];
        }
        let single = self.states("instanceType").then(|| (format!("{path}.instanceType"), name.to_string()));
        if single.is_some() && !self.states("instanceTypes") {
            return single.into_iter().collect();
        }
        let none = single.map(|(path, _)| (path, "null".to_owned()));
        std::iter::once((format!("{path}.instanceTypes"), format!("[{name}]"))).chain(none).collect()
    }
}

/// Where a group is stated: in the policy, in the scenario, or in an eksctl ClusterConfig.
pub(super) fn place<'k>(known: &BaselineFacts<'k>, group: &NodeGroup) -> Option<Place<'k>> {
    let has_name =
        |content: &Content, name: &str| content.get("name").and_then(Content::as_text).as_deref() == Some(name);
    let of_list = |list: Option<&'k Content>, name: &str| {
        list.map_or(&[][..], Content::items).iter().find(|content| has_name(content, name))
    };
    let (policy, name) = (known.policy.name.as_str(), group.name.as_str());
    let of_policy = of_list(known.root.get("policies"), policy).and_then(|policy| policy.get("nodeGroups"));
    let is_cluster =
        |content: &&Content| content.get("kind").and_then(Content::as_text).as_deref() == Some("ClusterConfig");
    let cluster = known.objects.iter().rev().find(is_cluster);
    let lists = [
        (format!("policies[{policy}].nodeGroups"), of_policy),
        ("nodeGroups".to_owned(), known.root.get("nodeGroups")),
        ("ClusterConfig.managedNodeGroups".to_owned(), cluster.and_then(|cluster| cluster.get("managedNodeGroups"))),
        ("ClusterConfig.nodeGroups".to_owned(), cluster.and_then(|cluster| cluster.get("nodeGroups"))),
    ];
    let found = |(path, list): (String, Option<&'k Content>)| {
        Some(Place { path: format!("{path}[{name}]"), stated: of_list(list, name)? })
    };
    let place = lists.into_iter().find_map(found)?;
    // A path that names no single object cannot be set.
    (known.can_set)(&vec![(place.least(), group.min_size.to_string())]).then_some(place)
}

fn lever(kind: Kind, group: &NodeGroup, today: String, levels: Vec<Level>) -> Lever {
    Lever { kind, subject: format!("node group {}", group.name), today, levels }
}

fn least(group: &NodeGroup, place: &Place<'_>) -> Lever {
    let today = group.min_size;
    let tried = [0, today / 2].into_iter().filter(|count| *count < today);
    let tried: std::collections::BTreeSet<u32> = tried.collect();
    let path = place.least();
    let levels =
        tried.into_iter().map(|count| Level::new(count.to_string(), [(path.clone(), count.to_string().as_str())]));
    lever(Kind::GroupSizes, group, format!("at least {today}"), levels.collect())
}

/// Types with as many vCPUs that cost less.
fn types(known: &BaselineFacts<'_>, group: &NodeGroup, place: &Place<'_>) -> Lever {
    let today = group.instance_types.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let alternatives = group.instance_types.first().map(|first| cheaper(known, *first)).unwrap_or_default();
    let level = |(name, label): (Symbol, String)| Level { label, sets: place.types(name), requirements: Vec::new() };
    lever(Kind::GroupTypes, group, today, alternatives.into_iter().map(level).collect())
}

/// Shares of today's memory, as divisors, and how many of the cheapest types with at least so much are tried. Of families with 8, 4, and 2 GiB
/// per vCPU, each has half the memory of the one before.
const MEMORY: [(u64, usize); 3] = [(1, 3), (2, 1), (4, 1)];

/// The cheapest types with as much CPU on the same architecture: with at least as much memory, with half, and with a quarter.
fn cheaper(known: &BaselineFacts<'_>, today: Symbol) -> Vec<(Symbol, String)> {
    let Some(instance_type) = known.region.instance_type(today) else { return Vec::new() };
    let Some(price) = instance_type.on_demand.map(|price| price.rate) else { return Vec::new() };
    let facts = &instance_type.facts;
    let is_alike = |other: &InstanceFacts| {
        (other.arch, other.burstable, other.vcpus) == (facts.arch, facts.burstable, facts.vcpus)
            && (other.gpu.is_none(), other.bare_metal) == (facts.gpu.is_none(), facts.bare_metal)
    };
    let kinds = known.region.types.iter().filter(|kind| kind.facts.name != today && is_alike(&kind.facts));
    let prices = kinds.filter_map(|kind| Some((kind.on_demand?.rate, &kind.facts)));
    let mut all: Vec<_> = prices.filter(|(rate, _)| *rate < price).collect();
    all.sort_by_key(|(rate, facts)| (*rate, facts.name));
    let mut found: Vec<(Symbol, String)> = Vec::new();
    for (divisor, count) in MEMORY {
        let memory = u64::from(facts.memory_mib) / divisor;
        for (_, other) in all.iter().filter(|(_, other)| u64::from(other.memory_mib) >= memory).take(count) {
            let less = if divisor == 1 { "" } else { ", with less memory" };
            if found.iter().all(|(name, _)| *name != other.name) {
                found.push((other.name, format!("{}{less}", other.name)));
            }
        }
    }
    found
}
