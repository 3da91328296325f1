//! Levers of node groups and of the Cluster Autoscaler that sizes them.

use super::{BaselineFacts, Kind, Level, Lever, OBJECTS_MAX, dearest};
use crate::catalog::InstanceFacts;
use crate::domain::Symbol;
use crate::domain::node_group::NodeGroup;
use crate::scenario::definition::Autoscaler;
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

/// Where a group is stated: the path of its map, and the key of its least size there.
pub(super) fn place(known: &BaselineFacts<'_>, group: &NodeGroup) -> Option<(String, &'static str)> {
    let bases = [
        (format!("policies[{}].nodeGroups[{}]", known.policy.name, group.name), "min"),
        (format!("nodeGroups[{}]", group.name), "min"),
        (format!("ClusterConfig.managedNodeGroups[{}]", group.name), "minSize"),
        (format!("ClusterConfig.nodeGroups[{}]", group.name), "minSize"),
    ];
    let stands =
        |(base, key): &(String, &str)| (known.can_set)(&vec![(format!("{base}.{key}"), group.min_size.to_string())]);
    bases.into_iter().find(stands)
}

fn lever(kind: Kind, group: &NodeGroup, today: String, levels: Vec<Level>) -> Lever {
    Lever { kind, subject: format!("node group {}", group.name), today, levels }
}

fn least(group: &NodeGroup, (base, key): &(String, &'static str)) -> Lever {
    let today = group.min_size;
    let tried = [0, today / 2].into_iter().filter(|count| *count < today);
    let tried: std::collections::BTreeSet<u32> = tried.collect();
    let path = format!("{base}.{key}");
    let levels =
        tried.into_iter().map(|count| Level::new(count.to_string(), [(path.clone(), count.to_string().as_str())]));
    lever(Kind::GroupSizes, group, format!("at least {today}"), levels.collect())
}

/// Types of the same shape that cost less.
fn types(known: &BaselineFacts<'_>, group: &NodeGroup, (base, _): &(String, &'static str)) -> Lever {
    let today = group.instance_types.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let alternatives = group.instance_types.first().map(|first| cheaper(known, *first)).unwrap_or_default();
    let levels = alternatives.into_iter().map(|name| Level {
        label: name.to_string(),
        sets: vec![(format!("{base}.instanceTypes"), format!("[{name}]"))],
        requirements: Vec::new(),
    });
    lever(Kind::GroupTypes, group, today, levels.collect())
}

/// The three cheapest types with as much CPU and at least as much memory, on the same architecture.
fn cheaper(known: &BaselineFacts<'_>, today: Symbol) -> Vec<Symbol> {
    let Some(instance_type) = known.region.instance_type(today) else { return Vec::new() };
    let Some(price) = instance_type.on_demand.map(|price| price.rate) else { return Vec::new() };
    let fits = |facts: &InstanceFacts| {
        facts.arch == instance_type.facts.arch
            && facts.burstable == instance_type.facts.burstable
            && facts.vcpus == instance_type.facts.vcpus
            && facts.memory_mib >= instance_type.facts.memory_mib
    };
    let mut all: Vec<_> = known
        .region
        .types
        .iter()
        .filter(|kind| kind.facts.name != today && fits(&kind.facts))
        .filter_map(|kind| Some((kind.on_demand?.rate, kind.facts.name)))
        .filter(|(rate, _)| *rate < price)
        .collect();
    all.sort();
    all.into_iter().take(3).map(|(_, name)| name).collect()
}
