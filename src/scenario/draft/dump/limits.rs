//! Which of the groups that the AWS CLI printed are those of the dump's nodes, and what that says of each.
//!
//! A group is known by EKS's or eksctl's tag, else by the ids of its instances.
//!
//! What must not live here: how what the AWS CLI prints is read (`aws`).

use std::collections::{BTreeMap, BTreeSet};

use super::Notes;
use super::aws::{AutoScalingGroup, Described, ManagedGroup, MixedInstances, Sizes};
use super::groups::{Group, Purchase, is_karpenters, is_on_fargate, type_that_is_sold};
use super::objects::{Object, find_mut, map, scalar, set};
use crate::catalog::Region;
use crate::domain::Symbol;
use crate::domain::node_group::group_of_node;
use crate::domain::words::counted;

const OF_EKS: &str = "eks:nodegroup-name";
const OF_EKSCTL: &str = "alpha.eksctl.io/nodegroup-name";
/// Tags whose value is the cluster's name.
const NAMES_CLUSTER: [&str; 2] = ["eks:cluster-name", "alpha.eksctl.io/cluster-name"];
/// Prefixes of tags whose key ends with the cluster's name.
const OF_CLUSTER: [&str; 2] = ["kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/"];
const LABEL_TAG: &str = "k8s.io/cluster-autoscaler/node-template/label/";
const TAINT_TAG: &str = "k8s.io/cluster-autoscaler/node-template/taint/";

impl AutoScalingGroup {
    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// The name of its node group, and whether EKS manages it. One without a tag for it is called after itself.
    fn node_group(&self) -> (String, bool) {
        if let Some(name) = self.tag(OF_EKS) {
            return (name.to_owned(), true);
        }
        let name = self.tag(OF_EKSCTL).unwrap_or(&self.name);
        let kept = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        (name.chars().map(kept).collect(), false)
    }

    /// The clusters that its tags name.
    fn clusters(&self) -> impl Iterator<Item = &str> {
        let by_value = NAMES_CLUSTER.iter().filter_map(|key| self.tag(key));
        let by_key =
            self.tags.iter().filter_map(|(key, _)| OF_CLUSTER.iter().find_map(|prefix| key.strip_prefix(prefix)));
        by_value.chain(by_key.filter(|name| *name != "enabled" && !name.contains('/')))
    }
}

/// The id of a node's instance, with which its `providerID` ends.
fn instance<'o>(node: &'o Object<'_>) -> Option<&'o str> {
    node.text(&["spec", "providerID"])?.rsplit('/').next().filter(|id| id.starts_with("i-"))
}

/// Whether a node's labels name its group.
fn is_labelled(node: &Object<'_>) -> bool {
    ["eks.amazonaws.com/nodegroup", OF_EKSCTL].iter().any(|key| node.label(key).is_some())
}

/// Gives nodes whose labels name no group the label of the one whose instance they are: a run then knows whose they are, too.
pub(super) fn label(nodes: &mut [Object<'_>], described: &Described, notes: &mut Notes) {
    let of_instance: BTreeMap<&str, &AutoScalingGroup> =
        described.groups.iter().flat_map(|group| group.instances.iter().map(move |id| (id.as_str(), group))).collect();
    let mut named: BTreeSet<String> = BTreeSet::new();
    for node in nodes.iter_mut().filter(|node| !is_labelled(node) && !is_karpenters(node) && !is_on_fargate(node)) {
        let Some(group) = instance(node).and_then(|id| of_instance.get(id)) else { continue };
        let (name, _) = group.node_group();
        if let Some(metadata) = find_mut(&mut node.node, &["metadata"]) {
            if metadata.get("labels").is_none() {
                set(metadata, "labels", map([]));
            }
            if let Some(labels) = find_mut(metadata, &["labels"]) {
                set(labels, OF_EKSCTL, scalar(name.clone()));
            }
        }
        named.insert(name);
    }
    if !named.is_empty() {
        let names: Vec<&str> = named.iter().map(String::as_str).collect();
        notes.assume(format!(
            "Nodes whose labels name no node group have the label {OF_EKSCTL} of the Auto Scaling group that they are an instance of: {}.",
            names.join(", ")
        ));
    }
}

/// What was printed of one node group.
#[derive(Clone, Default)]
struct Of<'d> {
    groups: Vec<&'d AutoScalingGroup>,
    managed: Option<&'d ManagedGroup>,
}

impl Of<'_> {
    /// The sizes of all its Auto Scaling groups together: EKS's own figures may lag behind them.
    fn sizes(&self) -> Option<Sizes> {
        let sum = |all: Sizes, own: &&AutoScalingGroup| Sizes {
            least: all.least + own.sizes.least,
            desired: all.desired + own.sizes.desired,
            most: all.most + own.sizes.most,
        };
        match self.groups.as_slice() {
            [] => self.managed.map(|own| own.sizes),
            groups => Some(groups.iter().fold(Sizes::default(), sum)),
        }
    }

    fn mixed(&self) -> Option<&MixedInstances> {
        self.groups.iter().find_map(|group| group.mixed.as_ref())
    }
}

/// What was printed, by the names of node groups and whether EKS manages them.
fn by_name(described: &Described) -> BTreeMap<(String, bool), Of<'_>> {
    let mut all: BTreeMap<(String, bool), Of<'_>> = BTreeMap::new();
    let mut of_managed: BTreeMap<&str, &ManagedGroup> = BTreeMap::new();
    for own in &described.managed {
        all.entry((own.name.clone(), true)).or_default().managed = Some(own);
        of_managed.extend(own.groups.iter().map(|group| (group.as_str(), own)));
    }
    for group in &described.groups {
        let managed = of_managed.get(group.name.as_str()).map(|own| (own.name.clone(), true));
        all.entry(managed.unwrap_or_else(|| group.node_group())).or_default().groups.push(group);
    }
    all
}

/// Lays what was printed over the groups that a dump's nodes show, and adds those of the cluster that have no node now. Says which
/// groups it knows the limits of.
pub(super) fn lay_over(
    groups: &mut Vec<Group>,
    nodes: &[Object<'_>],
    described: &Described,
    region: &Region,
    notes: &mut Notes,
) -> BTreeSet<String> {
    let mut all = by_name(described);
    let mut clusters: BTreeSet<&str> = BTreeSet::new();
    let mut known = BTreeSet::new();
    let of_instances = by_instances(groups, nodes, described);
    for group in groups.iter_mut() {
        let by_name = all.remove(&(group.name.clone(), group.managed));
        let Some(own) = by_name.or_else(|| of_instances.get(&group.name).cloned()) else { continue };
        clusters.extend(own.groups.iter().flat_map(|group| group.clusters()));
        clusters.extend(own.managed.map(|own| own.cluster.as_str()));
        if lay_over_one(group, &own, region, notes) {
            known.insert(group.name.clone());
        }
    }
    if known.is_empty() && !described.is_empty() {
        let count = counted((described.groups.len() + described.managed.len()) as u64, "node group", "node groups");
        notes.warn(format!(
            "the AWS CLI was asked of {count}, and none is of this dump: no tag names a group of its nodes, and no instance is one of them"
        ));
        return known;
    }
    for ((name, managed), own) in all {
        let of_cluster = own.groups.iter().flat_map(|group| group.clusters());
        let mut named = of_cluster.chain(own.managed.map(|own| own.cluster.as_str()));
        if groups.iter().all(|group| group.name != name)
            && named.any(|cluster| clusters.contains(cluster))
            && let Some(group) = without_nodes(name, managed, &own, region, notes)
        {
            known.insert(group.name.clone());
            groups.push(group);
        }
    }
    groups.sort_by(|a, b| (&a.name, a.managed).cmp(&(&b.name, b.managed)));
    known
}

/// What was printed of groups that no tag names: those of which their nodes are instances.
fn by_instances<'d>(groups: &[Group], nodes: &[Object<'_>], described: &'d Described) -> BTreeMap<String, Of<'d>> {
    let names: BTreeSet<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let node_groups: BTreeMap<&str, String> = nodes
        .iter()
        .filter(|node| !is_karpenters(node))
        .filter_map(|node| Some((instance(node)?, group_of_node(|key| node.label(key)).0)))
        .collect();
    let mut all: BTreeMap<String, Of<'d>> = BTreeMap::new();
    for group in &described.groups {
        let of_node = group.instances.iter().find_map(|id| node_groups.get(id.as_str()));
        if let Some(name) = of_node.filter(|name| names.contains(name.as_str())) {
            all.entry(name.clone()).or_default().groups.push(group);
        }
    }
    all
}

/// Lays what was printed over one group; whether its limits are known then.
fn lay_over_one(group: &mut Group, own: &Of<'_>, region: &Region, notes: &mut Notes) -> bool {
    if own.mixed().is_some_and(|mixed| mixed.weighted) {
        notes.warn(format!(
            "node group {}: its instances have weights, which is not simulated: its limits are assumed as if nothing were known of them",
            group.name
        ));
        return false;
    }
    let Some(sizes) = own.sizes() else { return false };
    if sizes.desired != group.count && group.count > 0 {
        notes.warn(format!(
            "node group {}: {} wanted by AWS, and the dump shows {}",
            group.name,
            counted(sizes.desired as u64, "node is", "nodes are"),
            group.count
        ));
    }
    group.sizes = (sizes.least, sizes.most);
    group.desired = sizes.desired;
    let zones: BTreeSet<&String> = own.groups.iter().flat_map(|group| &group.zones).collect();
    let zones: Vec<String> =
        zones.into_iter().filter(|zone| region.zone_index(Symbol::new(zone)).is_some()).cloned().collect();
    if !zones.is_empty() {
        group.zones = zones;
    }
    if let Some(mixed) = own.mixed() {
        buy(group, mixed, region, notes);
        group.rebalance = own.groups.iter().any(|group| group.rebalance);
    } else if let Some(managed) = own.managed {
        stated_types(group, &managed.types, region, notes);
    }
    true
}

/// Lays a mixed instances policy over a group.
fn buy(group: &mut Group, mixed: &MixedInstances, region: &Region, notes: &mut Notes) {
    let name = group.name.clone();
    if mixed.by_attributes {
        notes.warn(format!(
            "node group {name}: it names instance types by attributes, which is not simulated: it has the types of its nodes"
        ));
    } else {
        stated_types(group, &mixed.types, region, notes);
    }
    // EKS writes the policy of a managed group, whose label says all of it.
    if group.managed {
        return;
    }
    if mixed.on_demand_by_price && (mixed.on_demand_base > 0 || mixed.on_demand_percent > 0) {
        notes.warn(format!(
            "node group {name}: it chooses among On-Demand types by price, and here by the order in which it names them"
        ));
    }
    group.spot = mixed.on_demand_base == 0 && mixed.on_demand_percent == 0;
    if mixed.on_demand_percent < 100 {
        group.purchase = Some(Purchase {
            on_demand_base: mixed.on_demand_base,
            spot_percent: 100 - mixed.on_demand_percent,
            strategy: mixed.spot_strategy,
            pools: mixed.spot_pools.filter(|_| mixed.spot_strategy == "lowest-price"),
        });
    }
}

/// Gives a group the types that it states, as far as they have prices.
fn stated_types(group: &mut Group, types: &[String], region: &Region, notes: &mut Notes) {
    let sold: Vec<String> =
        types.iter().filter(|kind| type_that_is_sold(&group.name, kind, region, notes)).cloned().collect();
    if !sold.is_empty() {
        group.types = sold;
    }
}

/// A group of the cluster that has no node now; none if nothing says what its nodes would be.
fn without_nodes(name: String, managed: bool, own: &Of<'_>, region: &Region, notes: &mut Notes) -> Option<Group> {
    let mut group = Group { name, managed, family: "AmazonLinux2023", ..Group::default() };
    if let Some(own) = own.managed {
        group.spot = own.spot;
        group.labels.clone_from(&own.labels);
        group.taints.clone_from(&own.taints);
        (group.family, group.volume) = (own.family, own.volume);
    } else {
        let tags = || own.groups.iter().flat_map(|group| &group.tags);
        group.labels =
            tags().filter_map(|(key, value)| Some((key.strip_prefix(LABEL_TAG)?.to_owned(), value.clone()))).collect();
        group.taints = tags().filter_map(|(key, value)| taint(key.strip_prefix(TAINT_TAG)?, value)).collect();
    }
    let known = lay_over_one(&mut group, own, region, notes);
    if group.types.is_empty() {
        notes.warn(format!(
            "node group {} has no node in the dump, and nothing says of which instance types its nodes would be: it is left out",
            group.name
        ));
        return None;
    }
    known.then_some(group)
}

/// A taint as the Cluster Autoscaler's tags write it: `value:effect`.
fn taint(key: &str, value: &str) -> Option<[String; 3]> {
    let (value, effect) = value.split_once(':')?;
    let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect);
    known.then(|| [key.to_owned(), value.to_owned(), effect.to_owned()])
}
