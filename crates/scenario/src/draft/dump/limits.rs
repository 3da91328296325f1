//! Which of the groups that the AWS CLI printed are those of the dump's nodes, and what that says of each.
//!
//! A group is known by EKS's or eksctl's tag, else by the ids of its instances. The AWS CLI prints those of all clusters of an account, in
//! several of which a group may have the same name.
//!
//! What must not live here: how what the AWS CLI prints is read (`aws`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

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
/// The label by which eksctl says of which cluster a node is.
const CLUSTER_OF_EKSCTL: &str = NAMES_CLUSTER[1];
/// Prefixes of tags whose key ends with the cluster's name.
const OF_CLUSTER: [&str; 2] = ["kubernetes.io/cluster/", "k8s.io/cluster-autoscaler/"];
const LABEL_TAG: &str = "k8s.io/cluster-autoscaler/node-template/label/";
const TAINT_TAG: &str = "k8s.io/cluster-autoscaler/node-template/taint/";

impl AutoScalingGroup {
    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.iter().find(|(this_key, _)| this_key == key).map(|(_, value)| value.as_str())
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
        if let Some(metadata) = find_mut(Rc::make_mut(&mut node.node), &["metadata"]) {
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

/// The Auto Scaling groups of a dump's group, as far as they were printed: those that a tag, a managed group or an instance says are its.
fn printed_of<'d>(
    group: &'d Group,
    nodes: &'d [Object<'_>],
    described: &'d Described,
) -> impl Iterator<Item = &'d AutoScalingGroup> {
    let has_instance = move |auto_scaling_group: &AutoScalingGroup| {
        let of_group = nodes.iter().filter(|node| {
            !is_karpenters(node) && group_of_node(|key| node.label(key)) == (group.name.clone(), group.managed)
        });
        of_group.filter_map(instance).any(|id| auto_scaling_group.instances.iter().any(|known| known == id))
    };
    described.groups.iter().filter(move |this_group| {
        let mut managers = described.managed.iter().filter(|managed| managed.groups.contains(&this_group.name));
        managers.any(|managed| group.managed && managed.name == group.name)
            || this_group.node_group() == (group.name.clone(), group.managed)
            || has_instance(this_group)
    })
}

/// Whether AWS calls one of the Auto Scaling groups of a dump's group so.
pub(super) fn is_of_auto_scaling_group(group: &Group, name: &str, nodes: &[Object<'_>], described: &Described) -> bool {
    printed_of(group, nodes, described).any(|printed| printed.name == name)
}

/// The tags of the Auto Scaling groups of a dump's group; `None` if none was printed.
pub(super) fn tags_of_group(
    group: &Group,
    nodes: &[Object<'_>],
    described: &Described,
) -> Option<Vec<(String, String)>> {
    let mut printed = printed_of(group, nodes, described).peekable();
    printed.peek().is_some().then(|| printed.flat_map(|printed| printed.tags.iter().cloned()).collect())
}

/// What was printed of one node group.
#[derive(Clone, Default)]
struct Of<'d> {
    groups: Vec<&'d AutoScalingGroup>,
    managed: Option<&'d ManagedGroup>,
    /// The clusters that each of them names.
    clusters: Vec<BTreeSet<&'d str>>,
}

impl Of<'_> {
    /// Whether two of them name clusters, and none that is the same.
    fn is_of_several(&self) -> bool {
        let mut named = self.clusters.iter().filter(|cluster| !cluster.is_empty());
        let Some(first) = named.next() else { return false };
        let mut shared = first.clone();
        named.for_each(|item| shared.retain(|cluster| item.contains(cluster)));
        shared.is_empty()
    }

    /// The sizes of all its Auto Scaling groups together: EKS's own figures may lag behind them.
    fn sizes(&self) -> Option<Sizes> {
        let sum = |all: Sizes, auto_scaling_group: &&AutoScalingGroup| Sizes {
            least: all.least + auto_scaling_group.sizes.least,
            desired: all.desired + auto_scaling_group.sizes.desired,
            most: all.most + auto_scaling_group.sizes.most,
        };
        match self.groups.as_slice() {
            [] => self.managed.map(|managed| managed.sizes),
            groups => Some(groups.iter().fold(Sizes::default(), sum)),
        }
    }

    fn mixed(&self) -> Option<&MixedInstances> {
        self.groups.iter().find_map(|group| group.mixed.as_ref())
    }
}

/// The clusters of an Auto Scaling group: those of the managed groups that it is of, and those that its tags name.
fn clusters_of<'d>(group: &'d AutoScalingGroup, described: &'d Described) -> impl Iterator<Item = &'d str> {
    let managed = described.managed.iter().filter(|item| item.groups.contains(&group.name));
    managed.map(|managed| managed.cluster.as_str()).chain(group.clusters())
}

/// The clusters whose nodes the dump shows: those that eksctl's label and the groups of its instances name, else the one that has groups of
/// most of the dump's names. None if nothing says which.
fn own_clusters<'d>(groups: &[Group], nodes: &'d [Object<'_>], described: &'d Described) -> BTreeSet<&'d str> {
    let ids: BTreeSet<&str> = nodes.iter().filter_map(instance).collect();
    let with_nodes = described.groups.iter().filter(|group| group.instances.iter().any(|id| ids.contains(id.as_str())));
    let mut texts: BTreeSet<&str> = with_nodes.flat_map(|group| clusters_of(group, described)).collect();
    texts.extend(nodes.iter().filter_map(|node| node.label(CLUSTER_OF_EKSCTL)));
    if !texts.is_empty() {
        return texts;
    }
    let mut names: BTreeMap<&str, BTreeSet<(String, bool)>> = BTreeMap::new();
    let has = |name: &(String, bool)| groups.iter().any(|group| group.name == name.0 && group.managed == name.1);
    for group in &described.groups {
        for cluster in clusters_of(group, described) {
            names.entry(cluster).or_default().extend([group.node_group()].into_iter().filter(has));
        }
    }
    for group in &described.managed {
        let name = (group.name.clone(), true);
        names.entry(group.cluster.as_str()).or_default().extend([name].into_iter().filter(has));
    }
    let most = names.values().map(BTreeSet::len).max().unwrap_or_default();
    let mut first = names.iter().filter(|(_, key)| key.len() == most).map(|(cluster, _)| *cluster);
    match (first.next(), first.next()) {
        (Some(cluster), None) if most > 0 => BTreeSet::from([cluster]),
        _ => BTreeSet::new(),
    }
}

/// Whether something is of other clusters than those of the dump, as far as it names any.
fn is_of_others<'c>(mut clusters: impl Iterator<Item = &'c str>, texts: &BTreeSet<&str>) -> bool {
    let Some(first) = clusters.next().filter(|_| !texts.is_empty()) else { return false };
    !texts.contains(first) && !clusters.any(|cluster| texts.contains(cluster))
}

/// What was printed but for other clusters, by the names of node groups and whether EKS manages them.
fn by_name<'d>(described: &'d Described, texts: &BTreeSet<&str>) -> BTreeMap<(String, bool), Of<'d>> {
    let mut all: BTreeMap<(String, bool), Of<'d>> = BTreeMap::new();
    let mut of_managed: BTreeMap<&str, &ManagedGroup> = BTreeMap::new();
    for managed in &described.managed {
        of_managed.extend(managed.groups.iter().map(|group| (group.as_str(), managed)));
        if !is_of_others(std::iter::once(managed.cluster.as_str()), texts) {
            let of = all.entry((managed.name.clone(), true)).or_default();
            of.clusters.push(BTreeSet::from([managed.cluster.as_str()]));
            of.managed = Some(managed);
        }
    }
    for group in described.groups.iter().filter(|group| !is_of_others(clusters_of(group, described), texts)) {
        let managed = of_managed.get(group.name.as_str()).map(|managed| (managed.name.clone(), true));
        let of = all.entry(managed.unwrap_or_else(|| group.node_group())).or_default();
        of.clusters.push(clusters_of(group, described).collect());
        of.groups.push(group);
    }
    all
}

/// Takes out what is of several clusters under one name; whether a group of the dump has such a name, of which it is said.
fn take_out_shared(all: &mut BTreeMap<(String, bool), Of<'_>>, groups: &[Group], notes: &mut Notes) -> bool {
    let mut any = false;
    all.retain(|(name, managed), item| {
        if !item.is_of_several() {
            return true;
        }
        if groups.iter().any(|group| group.name == *name && group.managed == *managed) {
            any = true;
            let clusters: BTreeSet<&str> = item.clusters.iter().flatten().copied().collect();
            let clusters: Vec<&str> = clusters.into_iter().collect();
            notes.warn(format!(
                "node group {name}: the AWS CLI printed groups of this name of the clusters {}, and nothing says which of them the dump is of: its limits are assumed as if nothing were known of them; hand over the groups of your cluster alone",
                clusters.join(", ")
            ));
        }
        false
    });
    any
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
    let mut clusters = own_clusters(groups, nodes, described);
    let mut all = by_name(described, &clusters);
    let is_unclear = take_out_shared(&mut all, groups, notes);
    let mut known = BTreeSet::new();
    let of_instances = by_instances(groups, nodes, described);
    for group in groups.iter_mut() {
        let by_name = all.remove(&(group.name.clone(), group.managed));
        let Some(name) = by_name.or_else(|| of_instances.get(&group.name).cloned()) else { continue };
        clusters.extend(name.groups.iter().flat_map(|group| group.clusters()));
        clusters.extend(name.managed.map(|managed| managed.cluster.as_str()));
        if lay_over_one(group, &name, region, notes) {
            known.insert(group.name.clone());
        }
    }
    if known.is_empty() && !described.is_empty() && !is_unclear {
        let count = counted((described.groups.len() + described.managed.len()) as u64, "node group", "node groups");
        notes.warn(format!(
            "the AWS CLI was asked of {count}, and none is of this dump: no tag names a group of its nodes, and no instance is one of them"
        ));
        return known;
    }
    for ((name, managed), item) in all {
        let of_cluster = item.groups.iter().flat_map(|group| group.clusters());
        let mut named = of_cluster.chain(item.managed.map(|managed| managed.cluster.as_str()));
        if groups.iter().all(|group| group.name != name)
            && named.any(|cluster| clusters.contains(cluster))
            && let Some(group) = without_nodes(name, managed, &item, region, notes)
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
fn lay_over_one(group: &mut Group, item: &Of<'_>, region: &Region, notes: &mut Notes) -> bool {
    let is_weighted = item.mixed().is_some_and(|mixed| !mixed.weights.is_empty());
    if is_weighted && group.managed {
        notes.warn(format!(
            "node group {}: its instances have weights, which EKS does not set in a managed group; its limits are assumed",
            group.name
        ));
        return false;
    }
    let Some(sizes) = item.sizes() else { return false };
    if sizes.desired != group.count && group.count > 0 && !is_weighted {
        notes.warn(format!(
            "node group {}: {} wanted by AWS, and the dump shows {}",
            group.name,
            counted(sizes.desired as u64, "node is", "nodes are"),
            group.count
        ));
    }
    group.sizes = (sizes.least, sizes.most);
    group.desired = sizes.desired;
    let zones: BTreeSet<&String> = item.groups.iter().flat_map(|group| &group.zones).collect();
    let zones: Vec<String> =
        zones.into_iter().filter(|zone| region.zone_index(Symbol::new(zone)).is_some()).cloned().collect();
    if !zones.is_empty() {
        group.zones = zones;
    }
    if let Some(mixed) = item.mixed() {
        buy(group, mixed, region, notes);
        group.rebalance = item.groups.iter().any(|group| group.rebalance);
    } else if let Some(managed) = item.managed {
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
        let weights = mixed.types.iter().cloned().zip(mixed.weights.iter().copied());
        group.weights = weights.filter(|(name, _)| group.types.contains(name)).collect();
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
fn without_nodes(name: String, managed: bool, item: &Of<'_>, region: &Region, notes: &mut Notes) -> Option<Group> {
    let mut group = Group { name, managed, family: "AmazonLinux2023", ..Group::default() };
    if let Some(managed) = item.managed {
        group.spot = managed.spot;
        group.labels.clone_from(&managed.labels);
        group.taints.clone_from(&managed.taints);
        (group.family, group.volume) = (managed.family, managed.volume);
    } else {
        let tags = || item.groups.iter().flat_map(|group| &group.tags);
        group.labels =
            tags().filter_map(|(key, value)| Some((key.strip_prefix(LABEL_TAG)?.to_owned(), value.clone()))).collect();
        group.taints = tags().filter_map(|(key, value)| taint(key.strip_prefix(TAINT_TAG)?, value)).collect();
    }
    let known = lay_over_one(&mut group, item, region, notes);
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
