//! The node groups that a dump's nodes belong to.

use std::collections::{BTreeMap, BTreeSet};

use super::assumptions::Part;
use super::aws::Described;
use super::cluster::{Cluster, Launcher, zone_of};
use super::demanded::demanded;
use super::objects::Object;
use super::{Dump, Notes, limits};
use crate::catalog::Region;
use crate::domain::node_group::{group_of_node, is_spot_node, says_how_bought};
use crate::domain::words::counted;
use crate::domain::{Quantity, Symbol};
use crate::tree::{Node, NodeKind};

/// A node group as a scenario states it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Group {
    /// Its name.
    pub name: String,
    /// Whether EKS manages it.
    pub managed: bool,
    /// Its instance types, the most frequent first.
    pub types: Vec<String>,
    /// Capacity units of an instance by type; empty where each is one.
    pub weights: Vec<(String, i64)>,
    /// How many nodes it has.
    pub count: usize,
    /// How many it shall have.
    pub desired: usize,
    /// How many it may have at least and at most.
    pub sizes: (usize, usize),
    /// The limits within which the Cluster Autoscaler scales it; `None` if it does not.
    pub autoscaled: Option<(usize, usize)>,
    /// Whether it is of Spot instances.
    pub spot: bool,
    /// How it buys, where AWS said more of it than that.
    pub purchase: Option<Purchase>,
    /// Whether AWS said that it replaces instances at risk.
    pub rebalance: bool,
    /// Where its nodes are.
    pub zones: Vec<String>,
    /// Labels that its owner gave all its nodes.
    pub labels: Vec<(String, String)>,
    /// Taints that all its nodes have: key, value, effect.
    pub taints: Vec<[String; 3]>,
    /// The family of its machine images.
    pub family: &'static str,
    /// Its root volume in GiB.
    pub volume: Option<i64>,
    /// Pods that a node takes, where all say the same.
    pub pods: Option<i64>,
}

/// How a group buys Spot, as a scenario states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Purchase {
    /// Instances that are On-Demand before the share counts.
    pub on_demand_base: i64,
    /// The share of Spot above them, in percent.
    pub spot_percent: i64,
    /// How it picks Spot pools.
    pub strategy: &'static str,
    /// Over how many pools it spreads.
    pub pools: Option<i64>,
}

/// Labels by which a node is known to be launched by Karpenter.
pub(super) const OF_KARPENTER: [&str; 2] = ["karpenter.sh/nodepool", "karpenter.sh/provisioner-name"];
/// Prefixes of labels that Kubernetes, EKS and eksctl give nodes themselves.
const OWN_LABELS: [&str; 10] = [
    "kubernetes.io/",
    "node.kubernetes.io/",
    "beta.kubernetes.io/",
    "topology.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "topology.k8s.aws/",
    "topology.ebs.csi.aws.com/",
    "k8s.io/",
    "eks.amazonaws.com/",
    "alpha.eksctl.io/",
];
/// Those of them that nodes have here by themselves: of their machine and its place, and of the managed group that they are of.
const GIVEN_LABELS: [&str; 16] = [
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "kubernetes.io/hostname",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.k8s.aws/zone-id",
    "topology.ebs.csi.aws.com/zone",
    OF_MANAGED[0],
    OF_MANAGED[1],
];
/// Labels that EKS gives the nodes of a managed group: its name, and how it buys.
pub(super) const OF_MANAGED: [&str; 2] = ["eks.amazonaws.com/nodegroup", "eks.amazonaws.com/capacityType"];
/// Prefixes of taints that come and go with a node's condition.
const OWN_TAINTS: [&str; 4] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOf",
];

/// Whether Karpenter launched the node.
pub(super) fn is_karpenters(node: &Object<'_>) -> bool {
    OF_KARPENTER.iter().any(|key| node.label(key).is_some())
}

/// Whether a node's labels say that it is Spot.
pub(super) fn is_spot(node: &Object<'_>) -> bool {
    is_spot_node(|key| node.label(key))
}

/// Whether the node is a pod's own, on Fargate.
pub(super) fn is_on_fargate(node: &Object<'_>) -> bool {
    node.label("eks.amazonaws.com/compute-type") == Some("fargate")
}

/// The groups of the nodes that Karpenter did not launch, in order of name.
pub(super) fn groups(dump: &Dump<'_>, described: &Described, cluster: &Cluster, notes: &mut Notes) -> Vec<Group> {
    let demanded = demanded(dump);
    let mut members: BTreeMap<(String, bool), Vec<&Object<'_>>> = BTreeMap::new();
    let mut fargate = 0_u64;
    for node in &dump.nodes {
        if is_on_fargate(node) {
            fargate += 1;
        } else if !is_karpenters(node) {
            members.entry(group_of_node(|key| node.label(key))).or_default().push(node);
        }
    }
    if fargate > 0 {
        let pods = counted(fargate, "pod runs", "pods run");
        notes.warn(format!(
            "{pods} on Fargate: a dump has no price of it, so it stays where it is and costs nothing; once it is gone, its successor is on Fargate if `fargate` has a profile for it, and else takes room on other nodes"
        ));
    }
    let grow = matches!(cluster.launcher, Launcher::ClusterAutoscaler { .. });
    let groups = members.into_iter().filter_map(|((name, managed), nodes)| {
        let Some(group) = group(name.clone(), managed, &nodes, cluster, notes) else {
            let count = counted(nodes.len() as u64, "node", "nodes");
            notes.warn(format!(
                "no instance type of node group {name} is known, so it is no group here: its {count} of the dump stay as they are, cost nothing, and nothing launches or removes others"
            ));
            return None;
        };
        let sizes = if grow { (1, room_to_grow(group.count)) } else { (group.count, group.count) };
        let labels = common(&nodes, |node| labels(node, &demanded));
        Some(Group { sizes, labels, ..group })
    });
    let mut groups: Vec<Group> = groups.collect();
    let mut known = limits::lay_over(&mut groups, &dump.nodes, described, &cluster.region, notes);
    tell_how_bought(&groups, &dump.nodes, notes);
    groups.iter_mut().for_each(|group| group.autoscaled = Some(group.sizes));
    if let Launcher::ClusterAutoscaler { flags, .. } = &cluster.launcher {
        flags.lay_over(&mut groups, (dump, described), &mut known, notes);
    }
    if known.is_empty() {
        assume_sizes(&groups, grow, notes)
    } else {
        assume_other_sizes(&groups, &known, notes)
    }
    groups
}

/// How large a group of so many nodes may be taken to become: twice as large, three nodes more at least.
pub(super) fn room_to_grow(count: usize) -> usize {
    (2 * count).max(count + 3)
}

/// Says what stands in for the limits of groups of which nothing but their nodes is known.
fn assume_sizes(groups: &[Group], grow: bool, notes: &mut Notes) {
    if grow && !groups.is_empty() {
        notes.assume_of(
            Part::NodePools(groups.iter().map(|group| group.name.clone()).collect()),
            "Node groups may shrink to one node and grow to twice their size: their real limits are not in a dump.",
        );
    } else if !groups.is_empty() {
        let sizes: Vec<String> = groups.iter().map(|group| format!("{} has {}", group.name, group.count)).collect();
        let text = format!(
            "Node groups keep the size that they have in the dump, as their least and their largest: {}. Their real limits are not in a dump.",
            sizes.join(", ")
        );
        notes.assume_of(Part::NodePools(groups.iter().map(|group| group.name.clone()).collect()), text);
    }
}

/// Says what stands in for the limits of those groups that the AWS CLI was not asked of.
fn assume_other_sizes(groups: &[Group], known: &BTreeSet<String>, notes: &mut Notes) {
    let others = groups.iter().filter(|group| !known.contains(&group.name));
    let others: Vec<String> =
        others.map(|group| format!("{} {} to {}", group.name, group.sizes.0, group.sizes.1)).collect();
    if !others.is_empty() {
        notes.assume(format!(
            "Limits of these node groups are assumed, because neither the AWS CLI nor a flag of the Cluster Autoscaler tells them: {}.",
            others.join(", ")
        ));
    }
}

pub(super) fn instance_type<'o>(node: &'o Object<'_>) -> Option<&'o str> {
    node.label("node.kubernetes.io/instance-type").or_else(|| node.label("beta.kubernetes.io/instance-type"))
}

/// The group of these nodes, of its present size and without labels; none if nothing is known of their types.
pub(super) fn group(
    name: String,
    managed: bool,
    nodes: &[&Object<'_>],
    cluster: &Cluster,
    notes: &mut Notes,
) -> Option<Group> {
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in nodes.iter().filter_map(|node| instance_type(node)) {
        *types.entry(kind).or_default() += 1;
    }
    let mut types: Vec<(&str, usize)> = types.into_iter().collect();
    types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    types.retain(|(kind, _)| type_that_is_sold(&name, kind, &cluster.region, notes));
    if types.is_empty() {
        return None;
    }
    let first = nodes.first()?;
    let spot = is_spot(first);
    let mut zones: Vec<String> = nodes.iter().filter_map(|node| zone_of(node)).map(str::to_owned).collect();
    zones.sort_unstable();
    zones.dedup();
    zones.retain(|zone| cluster.region.zone_index(Symbol::new(zone)).is_some());
    Some(Group {
        managed,
        types: types.into_iter().map(|(kind, _)| kind.to_owned()).collect(),
        weights: Vec::new(),
        count: nodes.len(),
        desired: nodes.len(),
        sizes: (nodes.len(), nodes.len()),
        autoscaled: None,
        spot,
        purchase: None,
        rebalance: false,
        zones,
        labels: Vec::new(),
        taints: common(nodes, taints),
        family: family(first),
        volume: first.text(&["status", "capacity", "ephemeral-storage"]).and_then(gibibytes),
        pods: common(nodes, |node| {
            node.text(&["status", "capacity", "pods"]).and_then(|pods| pods.parse().ok()).into_iter().collect()
        })
        .first()
        .copied()
        .filter(|pods| (1..=10_000).contains(pods)),
        name,
    })
}

/// Whether there are prices for an instance type of a group; it is said of those without that they are left out.
pub(super) fn type_that_is_sold(group: &str, kind: &str, region: &Region, notes: &mut Notes) -> bool {
    let sold = region.instance_type(Symbol::new(kind)).is_some();
    if !sold {
        let region = region.name;
        notes.warn(format!("node group {group}: there is no price for {kind} in {region}, so it is left out"));
    }
    sold
}

/// What all nodes have.
pub(super) fn common<T: PartialEq>(nodes: &[&Object<'_>], of: impl Fn(&Object<'_>) -> Vec<T>) -> Vec<T> {
    let Some((first, rest)) = nodes.split_first() else { return Vec::new() };
    let mut all = of(first);
    for node in rest {
        let item = of(node);
        all.retain(|one| item.contains(one));
    }
    all
}

fn labels(node: &Object<'_>, demanded: &BTreeSet<&str>) -> Vec<(String, String)> {
    all_labels(node).into_iter().filter(|(key, _)| is_carried(key, demanded)).collect()
}

/// Whether a label that all nodes of a group have is one of the group: not what Kubernetes, EKS or eksctl gives nodes itself, unless
/// something asks for it and nodes do not have it here anyway.
pub(super) fn is_carried(key: &str, demanded: &BTreeSet<&str>) -> bool {
    let is_own = OWN_LABELS.iter().any(|label| key.starts_with(label));
    !is_own || (demanded.contains(key) && !GIVEN_LABELS.contains(&key))
}

/// Says by what groups without a word of EKS or AWS are taken to be of Spot instances, or that their nodes do not agree.
fn tell_how_bought(groups: &[Group], nodes: &[Object<'_>], notes: &mut Notes) {
    for group in groups.iter().filter(|group| group.purchase.is_none()) {
        let is_its = |node: &&Object<'_>| {
            !is_karpenters(node) && group_of_node(|key| node.label(key)) == (group.name.clone(), group.managed)
        };
        let objects: Vec<&Object<'_>> = nodes.iter().filter(is_its).collect();
        let spot = objects.iter().filter(|node| is_spot(node)).count();
        let mut keys =
            objects.iter().filter(|node| is_spot(node)).filter_map(|node| says_how_bought(|key| node.label(key)));
        let Some(key) = keys.next() else { continue };
        let (name, all) = (&group.name, objects.len());
        let bought = if group.spot { "Spot" } else { "On-Demand" };
        notes.assume(match spot == all {
            true => format!("Node group {name} is of Spot instances: its nodes' label {key} says so."),
            false => format!(
                "Node group {name} is {bought}, as the first of its {all} nodes, of which {spot} have a label {key} that says Spot."
            ),
        });
    }
}

/// The labels of a node.
pub(super) fn all_labels(node: &Object<'_>) -> Vec<(String, String)> {
    let Some(Node { kind: NodeKind::Map(entries), .. }) = node.at(&["metadata", "labels"]) else {
        return Vec::new();
    };
    entries.iter().map(|entry| (entry.key.to_string(), entry.value.as_text().unwrap_or_default().to_owned())).collect()
}

fn taints(node: &Object<'_>) -> Vec<[String; 3]> {
    let taints = node.at(&["spec", "taints"]).map_or(&[][..], Node::items);
    let text = |taint: &Node<'_>, key| taint.get(key).and_then(Node::as_text).unwrap_or_default().to_owned();
    let all = taints.iter().map(|taint| ["key", "value", "effect"].map(|key| text(taint, key)));
    all.filter(|[key, _, effect]| {
        !OWN_TAINTS.iter().any(|taint| key.starts_with(taint))
            && ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect.as_str())
    })
    .collect()
}

/// eksctl's name for the family of a node's machine image.
pub(super) fn family(node: &Object<'_>) -> &'static str {
    let image = node.text(&["status", "nodeInfo", "osImage"]).unwrap_or_default();
    if image.starts_with("Bottlerocket") {
        "Bottlerocket"
    } else if image.starts_with("Ubuntu") {
        "Ubuntu2204"
    } else if image == "Amazon Linux 2" {
        "AmazonLinux2"
    } else if image.starts_with("Windows Server 2019") {
        "WindowsServer2019CoreContainer"
    } else if image.starts_with("Windows Server 2022") {
        "WindowsServer2022CoreContainer"
    } else {
        "AmazonLinux2023"
    }
}

/// A volume's size, of which the file system shows a little less.
fn gibibytes(text: &str) -> Option<i64> {
    let bytes = text.parse::<Quantity>().ok()?.value();
    Some((bytes / (1 << 30)).saturating_add(1)).filter(|size| (1..=65_536).contains(size))
}
