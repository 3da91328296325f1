//! Nodes of a cluster with the Cluster Autoscaler, asked of its dump.

use serde_json::Value;

use crate::cli::Place;

fn node(name: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: 2026-11-20T08:00:00Z
  labels:
    kubernetes.io/hostname: {name}
    kubernetes.io/arch: amd64
    kubernetes.io/os: linux
    node.kubernetes.io/instance-type: m5.xlarge
    topology.kubernetes.io/zone: us-east-1a
    topology.kubernetes.io/region: us-east-1
    eks.amazonaws.com/nodegroup: workers
    eks.amazonaws.com/capacityType: ON_DEMAND
spec: {{ providerID: aws:///us-east-1a/i-{name} }}
status:
  capacity: {{ cpu: \"4\", memory: 16Gi, pods: \"58\" }}
  allocatable: {{ cpu: 3920m, memory: 15Gi, pods: \"58\" }}
  conditions: [{{ type: Ready, status: \"True\", lastTransitionTime: 2026-11-20T08:01:00Z }}]
"
    )
}

fn deployment(name: &str, replicas: u32, cpu: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name}, namespace: shop, uid: d-{name} }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: {name} }} }}
  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec: {{ containers: [{{ name: own, image: own, resources: {{ requests: {{ cpu: {cpu} }} }} }}] }}
"
    )
}

fn pod(name: &str, of: &str, node: &str, cpu: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: shop
  labels: {{ app: {of} }}
  creationTimestamp: 2026-11-20T09:00:00Z
  ownerReferences: [{{ apiVersion: apps/v1, kind: ReplicaSet, name: {of}-5d4f8c7b9d, uid: r-{of}, controller: true }}]
spec:
  nodeName: {node}
  containers: [{{ name: own, image: own, resources: {{ requests: {{ cpu: {cpu} }} }} }}]
status: {{ phase: Running, conditions: [{{ type: Ready, status: \"True\", lastTransitionTime: 2026-11-20T09:01:00Z }}] }}
"
    )
}

/// Three nodes: a busy one, one with little on it that would fit elsewhere, one whose pods a budget holds.
fn cluster(autoscaler: &str) -> Place {
    let place = Place::new();
    let autoscaler = deployment("ca", 1, "100m").replace(
        "image: own",
        &format!("image: \"registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0\", command: [./cluster-autoscaler, --cloud-provider=aws{autoscaler}]"),
    );
    let budget = "---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: held, namespace: shop }
spec: { maxUnavailable: 0, selector: { matchLabels: { app: held } } }
";
    let text = ["busy", "light", "kept"].map(node).concat()
        + &autoscaler
        + &deployment("web", 2, "1")
        + &deployment("small", 1, "500m")
        + &deployment("held", 1, "500m")
        + budget
        + &pod("ca-5d4f8c7b9d-aaaaa", "ca", "busy", "100m")
        + &pod("web-5d4f8c7b9d-aaaaa", "web", "busy", "1")
        + &pod("web-5d4f8c7b9d-bbbbb", "web", "busy", "1")
        + &pod("small-5d4f8c7b9d-aaaaa", "small", "light", "500m")
        + &pod("held-5d4f8c7b9d-aaaaa", "held", "kept", "500m");
    place.put("cluster.yaml", &text);
    place
}

fn asked(place: &Place, name: &str) -> Value {
    let (out, err, code) = place.nodecast(&["explain", "cluster.yaml", "node", name, "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn explain_shows_why_autoscaler_keeps_dumped_nodes() {
    let place = cluster("");
    let figures = |name: &str| asked(&place, name)["node"]["cluster_autoscaler"].clone();
    insta::assert_snapshot!(
        "explained_nodes_of_groups",
        ["busy", "light", "kept"].map(|name| place.nodecast(&["explain", "cluster.yaml", "node", name]).0).join("\n")
    );
    assert!(figures("light").is_object() && figures("busy") != figures("light") && figures("kept") != figures("light"));
    let (_, err, code) = place.nodecast(&["explain", "cluster.yaml", "node", "ligth"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("did you mean `light`?"), "{err}");
}

#[test]
fn flags_of_the_cluster_autoscaler_count() {
    let place = cluster(", --scale-down-enabled=false");
    let (text, told, code) = place.nodecast(&["explain", "cluster.yaml", "node", "light"]);
    assert_eq!(code, Some(0), "{told}");
    assert_ne!(text, cluster("").nodecast(&["explain", "cluster.yaml", "node", "light"]).0);
}

#[test]
fn drain_saves_only_if_autoscaler_removes_node() {
    let drained = |flags: &str, image: &str, nodes: &[&str]| {
        let place = cluster(flags);
        let objects = std::fs::read_to_string(place.path("cluster.yaml")).unwrap();
        place.put("cluster.yaml", &objects.replace("autoscaling/cluster-autoscaler", image));
        let arguments = [&["drain", "cluster.yaml"], nodes, &["--format", "json"]].concat();
        let (out, err, code) = place.nodecast(&arguments);
        assert_eq!(code, Some(0), "{err}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        let nodes = answer["nodes"].as_array().unwrap().iter().map(|node| node["stays_because"].clone());
        (answer["per_hour"].as_f64().unwrap(), nodes.collect::<Vec<_>>())
    };
    let autoscaled = "autoscaling/cluster-autoscaler";
    assert_eq!(drained("", autoscaled, &["light"]), (0.192, vec![Value::Null]));
    // The group has three nodes and keeps one.
    let (saved, whys) = drained("", autoscaled, &["light", "busy", "kept"]);
    assert_eq!(whys, [Value::Null, Value::Null, "node group workers is at its minimum of 1 node".into()]);
    assert!((saved - 0.384).abs() < 1e-9, "{saved}");
    for (flags, image) in [("", "own"), (", --scale-down-enabled=false", autoscaled)] {
        let (saved, whys) = drained(flags, image, &["light"]);
        let why = "node group workers keeps its size: nothing in the dump scales it down";
        assert_eq!((saved, whys), (0.0, vec![why.into()]), "{flags} {image}");
    }
}
