//! The other world of a cluster with Karpenter: node groups and the Cluster Autoscaler in place of its NodePools.
//!
//! The Cluster Autoscaler takes the nodes of a group to be alike. So there is a group for each NodePool, capacity type,
//! architecture and size of machine that runs now; where something binds pods to a zone, for each zone too, for it cannot ask a
//! group for a node in one of several.
//!
//! What must not live here: how a policy is written into the scenario (`text`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::cluster::{Cluster, Launcher, is_of_karpenter, zone_of};
use super::demanded::demanded;
use super::groups::{self, Group, OF_KARPENTER, instance_type, is_karpenters, is_spot, room_to_grow};
use super::migration::stopped;
use super::objects::Object;
use super::{DraftFile, Dump, Notes};
use crate::domain::Symbol;
use crate::domain::words::counted;

/// The file of the Cluster Autoscaler.
pub(super) const FILE: &str = "cluster-autoscaler.yaml";
/// The label of a node's zone, by which pods are bound to zones.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Prefixes of labels that Karpenter gives its nodes.
const OF_KARPENTERS_OWN: [&str; 3] = ["karpenter.sh/", "karpenter.k8s.aws/", "eks.amazonaws.com/"];
/// Prefix of taints by which Karpenter marks nodes that are to come or to go.
const MARKS: &str = "karpenter.sh/";

/// What makes nodes of one NodePool alike to the Cluster Autoscaler.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness<'o> {
    pool: &'o str,
    spot: bool,
    arch: &'static str,
    /// vCPUs, memory in MiB, GPUs.
    size: (u32, u32, u32),
    zone: Option<&'o str>,
}

impl Likeness<'_> {
    fn new<'o>(node: &'o Object<'_>, cluster: &Cluster, by_zone: bool) -> Option<Likeness<'o>> {
        let pool = OF_KARPENTER.iter().find_map(|key| node.label(key))?;
        let facts = &cluster.region.instance_type(Symbol::new(instance_type(node)?))?.facts;
        Some(Likeness {
            pool,
            spot: is_spot(node),
            arch: facts.arch.as_str(),
            size: (facts.vcpus, facts.memory_mib, facts.gpu.as_ref().map_or(0, |gpu| gpu.count)),
            zone: zone_of(node).filter(|_| by_zone),
        })
    }

    /// A name for people: `default-spot-4cpu-16gib`.
    fn name(&self) -> String {
        let (cpu, memory, gpus) = self.size;
        let bought = if self.spot { "spot" } else { "on-demand" };
        let mut name = format!("{}-{bought}", self.pool);
        if self.arch != "amd64" {
            name += &format!("-{}", self.arch);
        }
        // Memory is a whole number of GiB for all but the smallest types.
        let memory =
            if memory.is_multiple_of(1_024) { format!("{}gib", memory / 1_024) } else { format!("{memory}mib") };
        name += &format!("-{cpu}cpu-{memory}");
        if gpus > 0 {
            name += &format!("-{gpus}gpu");
        }
        if let Some(zone) = self.zone {
            name += &format!("-{zone}");
        }
        name
    }
}

/// The groups that can hold what runs on Karpenter's nodes; none if it has not launched any.
pub(super) fn groups(dump: &Dump<'_>, cluster: &Cluster, notes: &mut Notes) -> Vec<Group> {
    if cluster.launcher != Launcher::Karpenter {
        return Vec::new();
    }
    let demanded = demanded(dump);
    let by_zone = demanded.contains(ZONE) || dump.carried.iter().any(|item| item.kind == "PersistentVolume");
    let mut members: BTreeMap<Likeness<'_>, Vec<&Object<'_>>> = BTreeMap::new();
    for node in dump.nodes.iter().filter(|node| is_karpenters(node)) {
        if let Some(likeness) = Likeness::new(node, cluster, by_zone) {
            members.entry(likeness).or_default().push(node);
        }
    }
    let mut all = Vec::new();
    for (likeness, nodes) in &members {
        let Some(group) = groups::group(likeness.name(), true, nodes, cluster, notes) else {
            let count = counted(nodes.len() as u64, "node", "nodes");
            let name = likeness.name();
            notes.warn(format!("node group {name} is left out with its {count}: no instance type of it is known"));
            continue;
        };
        let matches = |key: &str| OF_KARPENTERS_OWN.iter().any(|prefix| key.starts_with(prefix));
        let mut labels = groups::common(nodes, groups::all_labels);
        labels.retain(|(key, _)| match matches(key) {
            true => demanded.contains(key.as_str()),
            false => groups::is_carried(key, &demanded),
        });
        let taints = group.taints.into_iter().filter(|[key, ..]| !key.starts_with(MARKS)).collect();
        all.push(Group { sizes: (0, room_to_grow(group.count)), spot: likeness.spot, labels, taints, ..group });
    }
    if !all.is_empty() {
        tell(dump, &all, by_zone, notes);
    }
    all
}

/// Says by which rule the groups are made, and of which NodePools there is none.
fn tell(dump: &Dump<'_>, all: &[Group], by_zone: bool, notes: &mut Notes) {
    notes.assume(format!(
        "In the policy cluster-autoscaler {} of Karpenter's NodePools: one for each NodePool, capacity type, architecture and size of machine{} of which nodes run now, with the types that run now. Each begins with as many nodes as now, and may shrink to none and grow to twice as many, three more at least.",
        counted(all.len() as u64, "node group takes the place", "node groups take the place"),
        if by_zone { ", and zone (something binds pods to zones)," } else { "" },
    ));
    let used: BTreeSet<&str> =
        dump.nodes.iter().flat_map(|node| OF_KARPENTER.iter().find_map(|key| node.label(key))).collect();
    let pools = dump.carried.iter().filter(|item| ["NodePool", "Provisioner"].contains(&&*item.kind));
    let idle: Vec<&str> = pools.map(|pool| pool.name.as_str()).filter(|name| !used.contains(name)).collect();
    if !idle.is_empty() {
        notes.assume(format!(
            "In the policy cluster-autoscaler no node group stands for {}, of which no node runs now.",
            idle.join(", ")
        ));
    }
}

/// The Cluster Autoscaler, and Karpenter's Deployment without replicas.
pub(super) fn file(dump: &Dump<'_>) -> DraftFile {
    let mut text = "# The Cluster Autoscaler in place of Karpenter; `nodecast init --from` made it.\n".to_owned();
    text += "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cluster-autoscaler\n  namespace: kube-system\nspec:\n  replicas: 1\n  selector:\n    matchLabels: { app: cluster-autoscaler }\n  template:\n    metadata:\n      labels: { app: cluster-autoscaler }\n    spec:\n      priorityClassName: system-cluster-critical\n      tolerations:\n      - { key: CriticalAddonsOnly, operator: Exists }\n      containers:\n      - name: cluster-autoscaler\n        image: registry.k8s.io/autoscaling/cluster-autoscaler\n        resources: { requests: { cpu: 100m, memory: 600Mi } }\n";
    for item in dump.carried.iter().filter(|item| item.kind == "Deployment" && is_of_karpenter(item)) {
        text += "# Karpenter is gone.\n";
        stopped(item, &mut text);
    }
    DraftFile { name: FILE.into(), text }
}

/// The policy, its groups written by `one`.
pub(super) fn policy(groups: &[Group], cluster: &Cluster, text: &mut String, one: impl Fn(&Group, &mut String)) {
    *text += "  - name: cluster-autoscaler          # node groups in place of the NodePools: their types and limits are below\n";
    let _ = writeln!(text, "    autoscaler: cluster-autoscaler\n    manifests: [{FILE}]");
    let kubernetes = cluster.kubernetes.to_string();
    if kubernetes.parse::<crate::domain::versions::ClusterAutoscalerVersion>().is_ok() {
        let _ = writeln!(text, "    versions: {{ cluster-autoscaler: \"{kubernetes}\" }}");
    }
    *text += "    flags: { expander: least-waste, balance-similar-node-groups: \"true\" }\n    nodeGroups:\n";
    groups.iter().for_each(|group| one(group, text));
}
