//! The other world of a cluster with the Cluster Autoscaler: Karpenter in place of its node groups. `regrouping` goes the other way.
//!
//! NodePools have the families, sizes, capacity types, labels and taints of the groups. One group stays, for Karpenter itself.
//!
//! What must not live here: how a policy is written into the scenario (`text`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::cluster::{Cluster, Launcher, images};
use super::cluster_autoscaler::is_of_autoscaler;
use super::demanded::demanded;
use super::groups::{Group, OF_MANAGED};
use super::objects::{Object, find_mut, scalar, set};
use super::yaml::{document, word};
use super::{DraftFile, Dump, Notes};
use crate::domain::node_group::group_of_node;
use crate::domain::words::counted;
use crate::tree::Node;

/// The file of Karpenter's objects.
pub(super) const FILE: &str = "karpenter.yaml";
/// Nodes of the group that stays: Karpenter runs twice.
pub(super) const NODES: usize = 2;

/// What becomes of the groups when Karpenter comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Migration {
    /// The group that stays: its position.
    pub home: usize,
    /// Whether it keeps fewer nodes than it has.
    pub shrinks: bool,
}

impl Migration {
    /// That of a cluster whose nodes the Cluster Autoscaler launches.
    pub(super) fn new(dump: &Dump<'_>, cluster: &Cluster, groups: &[Group]) -> Option<Self> {
        if !matches!(cluster.launcher, Launcher::ClusterAutoscaler { .. }) || groups.is_empty() {
            return None;
        }
        let of_autoscaler = home_of_autoscaler(dump);
        let named = groups.iter().position(|group| Some(&group.name) == of_autoscaler.as_ref());
        let stable = |group: &Group| !group.spot && group.purchase.is_none();
        let with_nodes = || groups.iter().position(|group| stable(group) && group.desired > 0);
        let home = named.or_else(with_nodes).or_else(|| groups.iter().position(stable)).unwrap_or(0);
        Some(Self { home, shrinks: groups[home].desired > NODES })
    }
}

/// The group on whose node the Cluster Autoscaler runs.
fn home_of_autoscaler(dump: &Dump<'_>) -> Option<String> {
    let runs_it = |pod: &&Object<'_>| {
        let containers = pod.at(&["spec", "containers"]).map_or(&[][..], Node::items);
        let mut images = containers.iter().filter_map(|container| container.get("image").and_then(Node::as_text));
        images.any(is_of_autoscaler)
    };
    let name = dump.running.iter().find(runs_it)?.text(&["spec", "nodeName"])?;
    let node = dump.nodes.iter().find(|node| node.name == name)?;
    Some(group_of_node(|key| node.label(key)).0)
}

/// What makes nodes alike for pods: their labels and taints. Such groups become one NodePool.
type Likeness<'g> = (Vec<(String, String)>, &'g [[String; 3]]);

/// The labels of a group's nodes that nodes of a NodePool in its place have to have: pods that select nodes by those that EKS gives a
/// managed group would find none otherwise.
fn labels(group: &Group, demanded: &BTreeSet<&str>) -> Vec<(String, String)> {
    let [name, bought] = OF_MANAGED;
    let purchase = if group.spot { "SPOT" } else { "ON_DEMAND" };
    let of_eks = [(name, group.name.as_str()), (bought, purchase)].into_iter();
    let of_eks = of_eks.filter(|(key, _)| group.managed && demanded.contains(key));
    group.labels.iter().cloned().chain(of_eks.map(|(key, value)| (key.to_owned(), value.to_owned()))).collect()
}

/// Karpenter's objects, and the Cluster Autoscaler's Deployment without replicas.
pub(super) fn file(dump: &Dump<'_>, groups: &[Group], migration: Migration, notes: &mut Notes) -> DraftFile {
    let demanded = demanded(dump);
    let mut pools: BTreeMap<Likeness<'_>, Vec<&Group>> = BTreeMap::new();
    for (position, group) in groups.iter().enumerate() {
        if position != migration.home || migration.shrinks || groups.len() == 1 {
            pools.entry((labels(group, &demanded), &group.taints)).or_default().push(group);
        }
    }
    let mut text = "# Karpenter in place of the node groups, one of which stays for Karpenter itself. `nodecast init --from` made it of the\n\
                    # groups: wider families and sizes are where Karpenter saves most.\n"
        .to_owned();
    let mut classes: Vec<(&str, Option<i64>)> = Vec::new();
    for ((labels, _), pool) in &pools {
        let Some(first) = pool.first() else { continue };
        let class = (alias(first.family), first.volume);
        let number = classes.iter().position(|this_class| *this_class == class).unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        node_pool(pool, labels, &class_name(number), &mut text);
    }
    for (number, (alias, volume)) in classes.iter().enumerate() {
        node_class(&class_name(number), alias, *volume, &mut text);
    }
    karpenter(&groups[migration.home], &mut text);
    let autoscaler = dump.carried.iter().find(|item| item.kind == "Deployment" && images(item).any(is_of_autoscaler));
    if let Some(autoscaler) = autoscaler {
        text += "# The Cluster Autoscaler is gone.\n";
        stopped(autoscaler, &mut text);
    }
    let home = &groups[migration.home].name;
    notes.assume(format!(
        "In the policy karpenter {} the {} of the cluster but for {home}, on {} of which Karpenter runs, with half a core and 512 MiB for each of its two pods.",
        counted(pools.len() as u64, "NodePool takes the place of", "NodePools take the place of"),
        if groups.len() == 1 { "node group" } else { "node groups" },
        counted(NODES.min(groups[migration.home].desired) as u64, "node", "nodes"),
    ));
    tell_of_labels(pools.keys().map(|(labels, _)| labels.as_slice()), notes);
    DraftFile { name: FILE.into(), text }
}

/// Says that nodes of Karpenter have labels by which pods ask for managed groups.
fn tell_of_labels<'l>(pools: impl Iterator<Item = &'l [(String, String)]>, notes: &mut Notes) {
    let keys: BTreeSet<&str> = pools.flatten().map(|(key, _)| key.as_str()).collect();
    let kept: Vec<&str> = OF_MANAGED.into_iter().filter(|managed| keys.contains(managed)).collect();
    if !kept.is_empty() {
        notes.assume(format!(
            "In the policy karpenter NodePools state the label{} {} of the groups whose place they take, for pods ask for it.",
            if kept.len() > 1 { "s" } else { "" },
            kept.join(" and ")
        ));
    }
}

/// A Deployment without replicas.
pub(super) fn stopped(deployment: &Object<'_>, text: &mut String) {
    let mut stopped = Node::clone(&deployment.node);
    if let Some(spec) = find_mut(&mut stopped, &["spec"]) {
        set(spec, "replicas", scalar("0"));
    }
    document(&stopped, text);
}

fn class_name(number: usize) -> String {
    if number == 0 { "default".to_owned() } else { format!("default-{}", number + 1) }
}

/// The alias of the machine images of one of eksctl's families.
fn alias(family: &str) -> &'static str {
    match family {
        "Bottlerocket" => "bottlerocket@latest",
        "AmazonLinux2" => "al2@latest",
        "WindowsServer2019CoreContainer" => "windows2019@latest",
        "WindowsServer2022CoreContainer" => "windows2022@latest",
        _ => "al2023@latest",
    }
}

fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(word).collect::<Vec<_>>().join(", ")
}

fn node_pool(pool: &[&Group], labels: &[(String, String)], class: &str, text: &mut String) {
    let Some(first) = pool.first() else { return };
    let types = || pool.iter().flat_map(|group| &group.types).filter_map(|kind| kind.split_once('.'));
    let (families, sizes): (BTreeSet<&str>, BTreeSet<&str>) = types().unzip();
    let spot = [("spot", true), ("on-demand", false)];
    let buys = |group: &Group, spot| group.purchase.is_some() || group.spot == spot;
    let bought = spot.iter().filter(|(_, spot)| pool.iter().any(|group| buys(group, *spot)));
    let zones: BTreeSet<&str> = pool.iter().flat_map(|group| &group.zones).map(String::as_str).collect();
    let _ = write!(
        text,
        "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: {}\nspec:\n  template:\n",
        word(&first.name)
    );
    if !labels.is_empty() {
        *text += "    metadata:\n      labels:\n";
        for (key, value) in labels {
            let _ = writeln!(text, "        {}: {}", word(key), word(value));
        }
    }
    let _ = write!(
        text,
        "    spec:\n      nodeClassRef:\n        group: karpenter.k8s.aws\n        kind: EC2NodeClass\n        name: {class}\n      expireAfter: 720h\n"
    );
    if !first.taints.is_empty() {
        *text += "      taints:\n";
        for [key, value, effect] in &first.taints {
            let _ = writeln!(text, "      - {{ key: {}, value: {}, effect: {effect} }}", word(key), word(value));
        }
    }
    *text += "      requirements:\n";
    for (key, values) in [
        ("karpenter.sh/capacity-type", list(bought.map(|(word, _)| *word))),
        ("karpenter.k8s.aws/instance-family", list(families)),
        ("karpenter.k8s.aws/instance-size", list(sizes)),
        ("topology.kubernetes.io/zone", list(zones)),
    ] {
        if !values.is_empty() {
            let _ = writeln!(text, "      - {{ key: {key}, operator: In, values: [{values}] }}");
        }
    }
    *text += "  disruption:\n    consolidationPolicy: WhenEmptyOrUnderutilized\n    consolidateAfter: 1m\n    budgets:\n    - nodes: \"10%\"\n";
}

fn node_class(name: &str, alias: &str, volume: Option<i64>, text: &mut String) {
    let _ = write!(
        text,
        "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata:\n  name: {name}\nspec:\n  amiSelectorTerms:\n  - alias: {alias}\n  role: nodes\n"
    );
    if let Some(gib) = volume {
        // Bottlerocket keeps pods and images on its second volume.
        let device = if alias.starts_with("bottlerocket") { "/dev/xvdb" } else { "/dev/xvda" };
        let _ = write!(
            text,
            "  blockDeviceMappings:\n  - deviceName: {device}\n    ebs: {{ volumeSize: {gib}Gi, volumeType: gp3 }}\n"
        );
    }
}

/// Karpenter itself: on the group that stays, never on a node of its own.
pub(super) fn karpenter(home: &Group, text: &mut String) {
    *text += "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: karpenter\n  namespace: kube-system\nspec:\n  replicas: 2\n  selector:\n    matchLabels: { app.kubernetes.io/name: karpenter }\n  template:\n    metadata:\n      labels: { app.kubernetes.io/name: karpenter }\n    spec:\n      priorityClassName: system-cluster-critical\n";
    *text += "      affinity:\n        nodeAffinity:\n          requiredDuringSchedulingIgnoredDuringExecution:\n            nodeSelectorTerms:\n            - matchExpressions:\n              - { key: karpenter.sh/nodepool, operator: DoesNotExist }\n      tolerations:\n      - { key: CriticalAddonsOnly, operator: Exists }\n";
    for [key, ..] in home.taints.iter().filter(|[key, ..]| key != "CriticalAddonsOnly") {
        let _ = writeln!(text, "      - {{ key: {}, operator: Exists }}", word(key));
    }
    *text += "      containers:\n      - name: controller\n        image: karpenter\n        resources: { requests: { cpu: 500m, memory: 512Mi } }\n";
}
