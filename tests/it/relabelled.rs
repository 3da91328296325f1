//! What a change of labels and taints of a managed group does to the pods of its nodes; pods that name their node.

use nodecast::simulation::Outcome;

use crate::keda::{deployment, run};
use crate::workloads::{LATER, at, pods, there};

/// A managed group of one node with these further keys.
fn group(keys: &str) -> String {
    format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
         managedNodeGroups: [{{name: ng, instanceType: m5.4xlarge, desiredCapacity: 1, minSize: 1, maxSize: 1, {keys}}}]\n"
    )
}

const NO_EXECUTE: &str = "taints: [{key: team, value: a, effect: NoExecute}]";

/// The group changes at ten minutes from `before` to `after`.
fn changed(before: &str, after: &str, objects: &str) -> Outcome {
    run("20m", LATER, &format!("{}{objects}", group(before)), &[("later.yaml", &group(after))])
}

fn tolerating(toleration: &str) -> String {
    let pod = "    spec:\n      containers:";
    deployment("worker", 2).replace(pod, &format!("    spec:\n      tolerations: [{toleration}]\n      containers:"))
}

#[test]
fn no_execute_taint_evicts_intolerant_pods() {
    let outcome = changed("spot: false", NO_EXECUTE, &deployment("worker", 2));
    let pods = pods(&outcome, "worker");
    assert_eq!(there(&pods, at(599)), (2, 2));
    assert!(pods[..2].iter().all(|pod| pod.deletion_requested == Some(at(600))), "{pods:?}");
    assert_eq!(there(&pods, at(1_199)), (2, 0), "nothing takes the new ones");
}

#[test]
fn toleration_seconds_delay_eviction() {
    let tolerated = |seconds: &str| {
        let toleration = format!("{{key: team, operator: Exists, effect: NoExecute{seconds}}}");
        let outcome = changed("spot: false", NO_EXECUTE, &tolerating(&toleration));
        pods(&outcome, "worker")
    };
    let some = tolerated(", tolerationSeconds: 90");
    assert!(some[..2].iter().all(|pod| pod.deletion_requested == Some(at(690))), "{some:?}");
    assert!(some.len() > 2, "those made again are placed there, and leave again");
    let always = tolerated("");
    assert!(always.len() == 2 && always.iter().all(|pod| pod.deletion_requested.is_none()), "{always:?}");
}

#[test]
fn taint_removed_in_time_evicts_no_pods() {
    let toleration = "{key: team, operator: Exists, effect: NoExecute, tolerationSeconds: 90}";
    let timeline = "timeline: [{at: 10m, manifests: [later.yaml]}, {at: 11m, manifests: [again.yaml]}]";
    let objects = format!("{}{}", group("spot: false"), tolerating(toleration));
    let others = [("later.yaml", &*group(NO_EXECUTE)), ("again.yaml", &*group("spot: false"))];
    let pods = pods(&run("20m", timeline, &objects, &others), "worker");
    assert!(pods.len() == 2 && pods.iter().all(|pod| pod.deletion_requested.is_none()), "{pods:?}");
}

const AGENT: &str = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  \
    selector: {matchLabels: {d: agent}}\n  template:\n    metadata: {labels: {d: agent}}\n    spec:\n      \
    nodeSelector: {gpu: \"true\"}\n      containers: [{name: a, image: a, resources: {requests: {cpu: 100m, memory: 64Mi}}}]\n";
const GPU: &str = "labels: {gpu: \"true\"}";

#[test]
fn daemon_starts_when_node_labels_match() {
    let pods = pods(&changed("spot: false", GPU, AGENT), "agent");
    assert_eq!(pods.len(), 1);
    assert!(pods[0].created >= at(600) && pods[0].ready.is_some(), "{pods:?}");
}

#[test]
fn daemon_stops_when_node_labels_mismatch() {
    let pods = pods(&changed(GPU, "spot: false", AGENT), "agent");
    assert_eq!(pods.len(), 1, "none is made again");
    assert!(pods[0].ready.is_some() && pods[0].deletion_requested == Some(at(600)), "{pods:?}");
}

/// A node of 4 CPUs that is cordoned, with these further keys of its `spec`, and a pod that names it and asks for `cpu`.
fn named(more: &str, cpu: &str) -> Outcome {
    let objects = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: n1, labels: {{kubernetes.io/hostname: n1}}}}\n\
         spec: {{unschedulable: true{more}}}\nstatus:\n  allocatable: {{cpu: \"4\", memory: 8Gi, pods: \"20\"}}\n  \
         capacity: {{cpu: \"4\", memory: 8Gi, pods: \"20\"}}\n  conditions: [{{type: Ready, status: \"True\"}}]\n\
         ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: own}}\n\
         spec: {{nodeName: n1, containers: [{{name: a, image: a, resources: {{requests: {{cpu: \"{cpu}\"}}}}}}]}}\n"
    );
    run("5m", "", &objects, &[])
}

#[test]
fn pod_with_node_name_bypasses_scheduler() {
    let outcome = named("", "1");
    let pods = pods(&outcome, "(pods)");
    assert!(pods.len() == 1 && pods[0].ready.is_some(), "it runs though the node is cordoned: {pods:?}");
}

#[test]
fn pod_with_unsuitable_node_name_fails() {
    for (more, cpu) in [("", "5"), (", taints: [{key: team, effect: NoExecute}]", "1")] {
        let outcome = named(more, cpu);
        let failed = outcome.record.events.iter().any(|event| event.kind.as_str() == "PodFailed");
        assert!(failed && pods(&outcome, "(pods)").iter().all(|pod| pod.ready.is_none()), "{more} {cpu}");
    }
}
