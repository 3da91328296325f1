//! The other worlds of EKS Auto Mode: its NodePools in place of those of Karpenter of one's own, and the other way round.
//!
//! Labels of instance types have other names on either side: NodePools and whatever selects nodes by such a label go along.
//!
//! What must not live here: how a policy is written into the scenario (`text`).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::cluster::{Cluster, Launcher, is_of_auto_mode, is_of_karpenter};
use super::groups::{Group, is_karpenters};
use super::migration::{self, stopped};
use super::objects::{Object, find_mut, map, scalar, set};
use super::yaml::{document, word};
use super::{DraftFile, Dump, Notes};
use crate::domain::labels::{auto_mode_label, is_of_karpenters_types, karpenter_label};
use crate::domain::{KubernetesBehaviour, Symbol};
use crate::manifests::Manifests;
use crate::tree::{Node, NodeKind};
use nodecast_model::auto_mode::{EXPIRE_AFTER, GRACE_PERIOD, LONGEST_LIFE, STORAGE_GIB};

/// The file of Auto Mode's objects.
pub(super) const FILE: &str = "auto-mode.yaml";
/// The node group of Karpenter itself.
pub(super) const HOME: &str = "karpenter";
/// What the nodes of Auto Mode do without a pod for, and others need: EKS's add-ons with their requests.
const ADDONS: [(&str, &str); 3] = [
    ("aws-node", "requests: { cpu: 50m }"),
    ("kube-proxy", "requests: { cpu: 100m }"),
    ("ebs-csi-node", "requests: { cpu: 30m, memory: 120Mi }"),
];

/// Whether a dump with Karpenter of one's own has a counterpart with Auto Mode: NodePools of v1 that have launched nodes.
pub(super) fn has_counterpart(dump: &Dump<'_>, cluster: &Cluster) -> bool {
    let supported = cluster.kubernetes.has(KubernetesBehaviour::EksAutoMode);
    let legacy = dump.carried.iter().any(|object| {
        object.kind == "Provisioner"
            || object.kind == "NodePool" && object.text(&["apiVersion"]) != Some("karpenter.sh/v1")
    });
    let launched = dump.nodes.iter().any(is_karpenters);
    cluster.launcher == Launcher::Karpenter && supported && launched && !legacy
}

/// The NodePools as Auto Mode takes them, what selects nodes by labels that it calls otherwise, and Karpenter's Deployment without replicas.
pub(super) fn file(dump: &Dump<'_>, manifests: &Manifests, groups: &[Group], notes: &mut Notes) -> DraftFile {
    let mut text =
        "# EKS Auto Mode in place of Karpenter; `nodecast init --from` made it of the NodePools.\n".to_owned();
    let mut lost = BTreeSet::new();
    let mut shorter = Vec::new();
    for object in dump.carried.iter().filter(|item| item.kind == "NodePool" && !is_of_auto_mode(item)) {
        let mut pool = Node::clone(&object.node);
        rename(&mut pool, &to_auto_mode, &mut lost);
        refer_to(&mut pool, ["eks.amazonaws.com", "NodeClass", "default"]);
        if lives_too_long(&object.name, manifests) {
            shorter.push(object.name.as_str());
            if let Some(spec) = find_mut(&mut pool, &["spec", "template", "spec"]) {
                let hours = |span: crate::domain::SimDuration| format!("{}h", span.as_micros() / 3_600_000_000);
                set(spec, "expireAfter", scalar(hours(EXPIRE_AFTER)));
                set(spec, "terminationGracePeriod", scalar(hours(GRACE_PERIOD)));
            }
        }
        document(&pool, &mut text);
    }
    selecting(dump, &to_auto_mode, &mut lost, &mut text);
    let coredns = |object: &&Object<'_>| groups.is_empty() && object.full_name() == "kube-system/coredns";
    for item in dump.carried.iter().filter(|item| item.kind == "Deployment" && (is_of_karpenter(item) || coredns(item)))
    {
        let what = if is_of_karpenter(item) { "AWS runs Karpenter" } else { "DNS is part of the nodes" };
        let _ = writeln!(text, "# {what}.");
        stopped(item, &mut text);
    }
    notes.assume(
        "In the policy auto-mode EKS Auto Mode has NodePools of the same names and requirements, without volumes, images and kubelet settings of \
         the node classes; node groups stay."
            .to_owned(),
    );
    if !shorter.is_empty() {
        notes.assume(format!(
            "In the policy auto-mode nodes of {} are replaced after {}: EKS Auto Mode lets none live for more than {}.",
            shorter.join(", "),
            EXPIRE_AFTER,
            LONGEST_LIFE
        ));
    }
    tell_lost(&lost, "auto-mode", notes);
    DraftFile { name: FILE.into(), text }
}

/// The group of Karpenter itself in place of EKS Auto Mode: two small nodes.
pub(super) fn home(cluster: &Cluster) -> Group {
    Group {
        name: HOME.into(),
        managed: true,
        types: vec!["t3.medium".into()],
        desired: migration::NODES,
        sizes: (migration::NODES, migration::NODES),
        zones: cluster.zones.iter().map(|zone| zone.as_str().to_owned()).collect(),
        taints: vec![["CriticalAddonsOnly".into(), "true".into(), "NoSchedule".into()]],
        family: "AmazonLinux2023",
        ..Group::default()
    }
}

/// The NodePools as Karpenter of one's own takes them, node classes, EKS's add-ons, and Karpenter itself.
pub(super) fn self_run(dump: &Dump<'_>, cluster: &Cluster, notes: &mut Notes) -> DraftFile {
    let mut text =
        "# Karpenter of one's own in place of EKS Auto Mode; `nodecast init --from` made it of its NodePools.\n"
            .to_owned();
    let mut lost = BTreeSet::new();
    let mut classes: BTreeSet<String> = BTreeSet::new();
    for object in dump.carried.iter().filter(|item| item.kind == "NodePool") {
        let mut pool = Node::clone(&object.node);
        rename(&mut pool, &to_karpenter, &mut lost);
        let class = object.text(&["spec", "template", "spec", "nodeClassRef", "name"]).unwrap_or("default");
        refer_to(&mut pool, ["karpenter.k8s.aws", "EC2NodeClass", class]);
        classes.insert(class.to_owned());
        document(&pool, &mut text);
    }
    for class in &classes {
        let of_name = |object: &&Object<'_>| object.kind == "NodeClass" && object.name == *class;
        let storage =
            dump.carried.iter().find(of_name).and_then(|item| item.text(&["spec", "ephemeralStorage", "size"]));
        node_class(class, storage, &mut text);
    }
    selecting(dump, &to_karpenter, &mut lost, &mut text);
    let added = addons(dump, &mut text);
    migration::karpenter(&home(cluster), &mut text);
    notes.assume(format!(
        "In the policy karpenter you run Karpenter on two nodes of t3.medium, with half a core and 512 MiB for each of its two pods{}.",
        if added.is_empty() { String::new() } else { format!(", and {} on every node or beside it", added.join(", ")) }
    ));
    tell_lost(&lost, "karpenter", notes);
    DraftFile { name: migration::FILE.into(), text }
}

fn tell_lost(lost: &BTreeSet<String>, policy: &str, notes: &mut Notes) {
    if !lost.is_empty() {
        let labels: Vec<&str> = lost.iter().map(String::as_str).collect();
        notes.assume(format!(
            "In the policy {policy} nothing asks for {}, which have no counterpart there.",
            labels.join(", ")
        ));
    }
}

/// What becomes of a label.
enum Renamed {
    /// It is called the same.
    Same,
    /// It has another name.
    To(&'static str),
    /// There is nothing of the kind.
    Lost,
}

fn to_auto_mode(key: &str) -> Renamed {
    let key = Symbol::new(key);
    match auto_mode_label(key) {
        Some(auto_mode_label) => Renamed::To(auto_mode_label.as_str()),
        None if is_of_karpenters_types(key) => Renamed::Lost,
        None => Renamed::Same,
    }
}

fn to_karpenter(key: &str) -> Renamed {
    match karpenter_label(Symbol::new(key)) {
        Some(karpenter_label) => Renamed::To(karpenter_label.as_str()),
        // Every node of Auto Mode has it, and no other one.
        None if key == "eks.amazonaws.com/compute-type" => Renamed::Lost,
        None => Renamed::Same,
    }
}

/// Gives labels their other names, wherever one is a key or named by `key` or `topologyKey`; takes out what asks for a label that is lost.
/// Whether anything changed.
fn rename(node: &mut Node<'_>, to: &dyn Fn(&str) -> Renamed, lost: &mut BTreeSet<String>) -> bool {
    let mut changed = false;
    match &mut node.kind {
        NodeKind::Map(entries) => {
            entries.retain_mut(|entry| match to(&entry.key) {
                Renamed::Lost => {
                    changed = true;
                    lost.insert(entry.key.clone().into_owned());
                    false
                }
                Renamed::To(item) => {
                    changed = true;
                    entry.key = Cow::Borrowed(item);
                    true
                }
                Renamed::Same => true,
            });
            for entry in entries.iter_mut() {
                if let (true, NodeKind::Scalar { text, .. }) = (is_key(&entry.key), &mut entry.value.kind)
                    && let Renamed::To(item) = to(text)
                {
                    changed = true;
                    *text = Cow::Borrowed(item);
                }
                changed |= rename(&mut entry.value, to, lost);
            }
        }
        NodeKind::Seq(items) => {
            let before = items.len();
            items.retain(|item| match named(item).map(|key| (key, to(key))) {
                Some((key, Renamed::Lost)) => {
                    lost.insert(key.to_owned());
                    false
                }
                _ => true,
            });
            changed |= items.len() < before;
            for item in items {
                changed |= rename(item, to, lost);
            }
        }
        NodeKind::Null | NodeKind::Scalar { .. } => {}
    }
    changed
}

fn is_key(key: &str) -> bool {
    ["key", "topologyKey"].contains(&key)
}

/// The label that an item of a list asks for.
fn named<'n>(item: &'n Node<'_>) -> Option<&'n str> {
    ["key", "topologyKey"].iter().find_map(|key| item.get(key)?.as_text())
}

/// Workloads that select nodes by a label with another name.
fn selecting(dump: &Dump<'_>, to: &dyn Fn(&str) -> Renamed, lost: &mut BTreeSet<String>, text: &mut String) {
    const WITH_PODS: [&str; 8] =
        ["Deployment", "Rollout", "StatefulSet", "DaemonSet", "CronJob", "Job", "ScaledJob", "Pod"];
    for object in dump.carried.iter().filter(|item| WITH_PODS.contains(&&*item.kind)) {
        let mut node = Node::clone(&object.node);
        if rename(&mut node, to, lost) {
            document(&node, text);
        }
    }
}

fn refer_to(pool: &mut Node<'_>, [group, kind, name]: [&str; 3]) {
    if let Some(spec) = find_mut(pool, &["spec", "template", "spec"]) {
        let make = |word: &str| scalar(word.to_owned());
        set(spec, "nodeClassRef", map([("group", make(group)), ("kind", make(kind)), ("name", make(name))]));
    }
}

/// Whether nodes of a NodePool of Karpenter may live for longer than Auto Mode lets them.
fn lives_too_long(pool: &str, manifests: &Manifests) -> bool {
    let Some(node_pool) = manifests.node_pools.iter().find(|node_pool| node_pool.name.as_str() == pool) else {
        return false;
    };
    let grace = node_pool.termination_grace_period.unwrap_or(GRACE_PERIOD);
    node_pool.expire_after.is_none_or(|age| age + grace > LONGEST_LIFE)
}

fn node_class(name: &str, storage: Option<&str>, text: &mut String) {
    let size = storage.map_or_else(|| format!("{STORAGE_GIB}Gi"), word);
    let _ = write!(
        text,
        "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata:\n  name: {}\nspec:\n  amiSelectorTerms:\n  - alias: bottlerocket@latest\n  role: nodes\n  blockDeviceMappings:\n  - deviceName: /dev/xvda\n    ebs: {{ volumeSize: 4Gi, volumeType: gp3 }}\n  - deviceName: /dev/xvdb\n    ebs: {{ volumeSize: {size}, volumeType: gp3 }}\n",
        word(name)
    );
}

/// EKS's add-ons that the dump does not have; their names.
fn addons(dump: &Dump<'_>, text: &mut String) -> Vec<&'static str> {
    let has =
        |name: &str| dump.carried.iter().any(|object| object.own_namespace() == "kube-system" && object.name == name);
    let mut added = Vec::new();
    for (name, resources) in ADDONS.into_iter().filter(|(name, _)| !has(name)) {
        let _ = write!(
            text,
            "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: {name}\n  namespace: kube-system\nspec:\n  selector:\n    matchLabels: {{ app: {name} }}\n  template:\n    metadata:\n      labels: {{ app: {name} }}\n    spec:\n      priorityClassName: system-node-critical\n      tolerations:\n      - {{ operator: Exists }}\n      containers:\n      - name: {name}\n        image: {name}\n        resources: {{ {resources} }}\n"
        );
        added.push(name);
    }
    if !has("coredns") {
        *text += "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: coredns\n  namespace: kube-system\nspec:\n  replicas: 2\n  selector:\n    matchLabels: { app: coredns }\n  template:\n    metadata:\n      labels: { app: coredns }\n    spec:\n      priorityClassName: system-cluster-critical\n      tolerations:\n      - { key: CriticalAddonsOnly, operator: Exists }\n      containers:\n      - name: coredns\n        image: coredns\n        resources: { requests: { cpu: 100m, memory: 70Mi } }\n";
        added.push("coredns");
    }
    added
}
