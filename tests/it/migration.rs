//! From the dump of a cluster with the Cluster Autoscaler to an answer about Karpenter in its place, without an edit.

use std::fmt::Write as _;

use nodecast::catalog::Catalog;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::NodeOrigin;

use crate::cli::Place;

/// Nodes of one managed group, with its labels and taints.
pub(crate) fn nodes(group: &str, count: usize, kind: &str, spot: bool, taint: Option<&str>) -> String {
    let (capacity, bought) = if kind.ends_with("xlarge") { ("4", "3920m") } else { ("2", "1930m") };
    let taints = taint
        .map_or_else(String::new, |key| format!("  taints: [{{key: {key}, value: \"true\", effect: NoSchedule}}]\n"));
    let mut text = String::new();
    for number in 0..count {
        let (zone, name) = (["a", "b", "c"][number % 3], format!("{group}-{number}"));
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: \"2026-10-20T08:00:00Z\"
  labels: {{eks.amazonaws.com/nodegroup: {group}, eks.amazonaws.com/capacityType: {}, role: {group}, node.kubernetes.io/instance-type: {kind}, kubernetes.io/arch: amd64, kubernetes.io/os: linux, topology.kubernetes.io/region: us-east-1, topology.kubernetes.io/zone: us-east-1{zone}, kubernetes.io/hostname: {name}}}
spec:
  providerID: aws:///us-east-1{zone}/i-0{name}
{taints}status:
  capacity: {{cpu: \"{capacity}\", memory: 15Gi, pods: \"29\", ephemeral-storage: 20893676Ki}}
  allocatable: {{cpu: {bought}, memory: 14Gi, pods: \"29\"}}
  conditions: [{{type: Ready, status: \"True\", lastHeartbeatTime: \"2026-10-31T12:00:00Z\"}}]
  nodeInfo: {{kubeletVersion: v1.33.4-eks-1, osImage: Amazon Linux 2023}}
",
            if spot { "SPOT" } else { "ON_DEMAND" }
        );
    }
    text
}

/// A Deployment with its pods on the nodes of its group, in turn.
pub(crate) fn workload(
    name: &str,
    image: &str,
    replicas: usize,
    milli: u32,
    group: (&str, usize),
    taint: Option<&str>,
) -> String {
    let tolerations =
        taint.map_or_else(String::new, |key| format!("tolerations: [{{key: {key}, operator: Exists}}], "));
    let spec = format!(
        "nodeSelector: {{role: {}}}, {tolerations}containers: [{{name: own, image: \"{image}\", resources: {{requests: {{cpu: {milli}m, memory: 512Mi}}}}}}]",
        group.0
    );
    let mut text = format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{{spec}}}}}
"
    );
    for number in 0..replicas {
        let node = format!("{}-{}", group.0, number % group.1);
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}-5f4d7-{number}
  namespace: shop
  labels: {{app: {name}, pod-template-hash: 5f4d7}}
  creationTimestamp: \"2026-10-30T08:00:00Z\"
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {name}-5f4d7, uid: u, controller: true}}]
spec: {{nodeName: {node}, {spec}}}
status: {{phase: Running, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        );
    }
    text
}

fn dump() -> String {
    let autoscaler = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0";
    [
        nodes("system", 2, "m5.large", false, None),
        nodes("workers", 6, "m5.xlarge", false, None),
        nodes("batch", 4, "c5.xlarge", true, Some("batch")),
        workload("cluster-autoscaler", autoscaler, 1, 100, ("system", 2), None),
        workload("web", "web", 18, 900, ("workers", 6), None),
        workload("jobs", "jobs", 8, 1_500, ("batch", 4), Some("batch")),
    ]
    .concat()
}

/// Pools and groups of the nodes that were there at some time.
pub(crate) fn origins(outcome: &Outcome) -> Vec<String> {
    let mut names: Vec<String> = outcome
        .record
        .nodes
        .iter()
        .map(|node| match node.origin {
            NodeOrigin::NodePool(name) => format!("NodePool {name}"),
            NodeOrigin::NodeGroup(name) => format!("group {name}"),
            NodeOrigin::Fargate(name) => format!("profile {name}"),
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn karpenter_replaces_node_groups_without_edits() {
    let place = Place::new();
    place.put("cluster.yaml", &dump());
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let names: Vec<&str> = scenario.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["today", "fixed", "karpenter"]);
    let mut shortened = scenario.clone();
    shortened.duration = nodecast::domain::SimDuration::from_secs(2 * 3_600);
    let run = |policy: usize| {
        run(&shortened, &shortened.policies[policy], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
    };
    let (today, karpenter) = (run(0), run(2));
    assert_eq!(origins(&today), ["group batch", "group system", "group workers"]);
    assert_eq!(origins(&karpenter), ["NodePool batch", "NodePool workers", "group system"]);
    for outcome in [&today, &karpenter] {
        let waits = |pod: &nodecast::world::record::PodFacts| pod.scheduled.is_none() && pod.removed.is_none();
        assert_eq!(outcome.record.pods.iter().filter(waits).count(), 0);
        assert!(outcome.record.nodes.iter().filter(|node| node.origin.name().as_str() == "system").count() <= 2);
    }
    let named = |outcome: &Outcome, name: &str| {
        outcome.record.pods.iter().filter(|pod| pod.name.starts_with(name) && pod.removed.is_none()).count()
    };
    assert_eq!((named(&today, "web-"), named(&karpenter, "web-")), (18, 18));
    assert_eq!((named(&today, "cluster-autoscaler"), named(&karpenter, "cluster-autoscaler")), (1, 0));
    assert_eq!((named(&today, "karpenter"), named(&karpenter, "karpenter")), (0, 2));
}

#[test]
fn a_comparison_says_what_the_move_saves() {
    let place = Place::new();
    place.put("cluster.yaml", &dump());
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (out, err, code) =
        place.nodecast(&["compare", "own/scenario.yaml", "--duration", "2h", "--replications", "2", "--out", "out"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("karpenter is ") || out.contains("karpenter costs "), "{out}");
    assert!(!out.contains("pending at the end"), "{out}");
}

/// A dump whose pods select nodes by labels of EKS, of eksctl and by one of Kubernetes' prefixes.
fn selecting() -> String {
    dump()
        .replace("role: workers, ", "alpha.eksctl.io/nodegroup-name: workers, alpha.eksctl.io/cluster-name: shop, ")
        .replace("{role: workers}", "{alpha.eksctl.io/nodegroup-name: workers, eks.amazonaws.com/nodegroup: workers}")
        .replace(
            "eks.amazonaws.com/nodegroup: batch, eks.amazonaws.com/capacityType: SPOT, role: batch, ",
            "alpha.eksctl.io/nodegroup-name: batch, node.kubernetes.io/lifecycle: spot, node.kubernetes.io/other: x, ",
        )
        .replace("{role: batch}", "{node.kubernetes.io/lifecycle: spot}")
}

#[test]
fn new_nodes_have_labels_that_pods_select() {
    let place = Place::new();
    place.put("cluster.yaml", &selecting());
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let shown = |labels: &nodecast::domain::Labels| -> Vec<String> {
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    let group = |name: &str| {
        scenario.policies[0]
            .manifests
            .node_groups
            .iter()
            .find(|node_group| node_group.name.as_str() == name)
            .unwrap()
            .clone()
    };
    let workers = shown(&group("workers").labels);
    assert!(workers.contains(&"alpha.eksctl.io/nodegroup-name=workers".to_owned()), "{workers:?}");
    assert!(!workers.iter().any(|worker| worker.contains("cluster-name")), "nothing asks for it: {workers:?}");
    let batch = group("batch");
    let labels = ["alpha.eksctl.io/nodegroup-name=batch", "node.kubernetes.io/lifecycle=spot"];
    assert_eq!(shown(&batch.labels), labels, "what something asks for, and nothing else under such prefixes");
    assert!(batch.distribution.is_spot() && !batch.managed, "by the label that people give Spot nodes");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(text.contains("its nodes' label node.kubernetes.io/lifecycle says so"), "{text}");
    assert!(text.contains("(4 Spot)"), "{text}");
    let pools = &scenario.policies[2].manifests.node_pools;
    let pool = pools.iter().find(|pool| pool.name.as_str() == "workers").unwrap();
    let labels = shown(&pool.labels);
    for text in ["alpha.eksctl.io/nodegroup-name=workers", "eks.amazonaws.com/nodegroup=workers"] {
        assert!(labels.contains(&text.to_owned()), "{labels:?}");
    }
    let mut shortened = scenario.clone();
    shortened.duration = nodecast::domain::SimDuration::from_secs(2 * 3_600);
    for policy in [0, 2] {
        let outcome =
            run(&shortened, &shortened.policies[policy], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
        let waits = |pod: &nodecast::world::record::PodFacts| pod.scheduled.is_none() && pod.removed.is_none();
        assert_eq!(outcome.record.pods.iter().filter(waits).count(), 0, "policy {policy}");
    }
}
