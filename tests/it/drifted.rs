//! Nodes that drift and are not replaced: the report tells of them and of what keeps them.

use std::fs;

use serde_json::{Value, json};

use crate::cli::Place;

const SCENARIO: &str = "\
name: drifts
region: us-east-1
duration: 25m
manifests: [pool.yaml, web.yaml]
cluster: { zones: [us-east-1a] }
ec2: { failures: none, spot: { interruptions: none } }
timeline: [{ at: 15m, manifests: [edit.yaml] }]
policies: [{ name: only, autoscaler: karpenter }]
";
const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}
";

fn pool(nodes: u32, template: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default}}
spec:
  disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{{nodes: '{nodes}'}}]}}
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
{template}"
    )
}

/// The run in which the pool becomes another.
fn run(edit: &str) -> (Value, String, Place) {
    let place = Place::new();
    for (name, text) in
        [("scenario.yaml", SCENARIO), ("web.yaml", WEB), ("pool.yaml", &pool(1, "")), ("edit.yaml", edit)]
    {
        place.put(name, text);
    }
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--verbose", "--out", "here"]);
    assert_eq!(code, Some(0), "{err}");
    (serde_json::from_str(&fs::read_to_string(place.path("here/summary.json")).unwrap()).unwrap(), out, place)
}

#[test]
fn pods_not_tolerating_new_taint_block_drift() {
    let (summary, out, place) = run(&pool(1, "      taints: [{key: x, effect: NoSchedule}]\n"));
    let told = json!({"nodes": 2, "blocked": [{"name": "a pod cannot be rescheduled", "count": 2}]});
    assert_eq!(summary["churn"]["drifted_at_end"], told);
    assert!(out.contains("2 nodes not replaced: a pod cannot be rescheduled (2 nodes)"), "{out}");
    let (text, err, _) = place.nodecast(&["explain", "scenario.yaml", "node", "default-00001"]);
    assert!(text.contains("drift: cannot be replaced: a pod cannot be rescheduled"), "{text}{err}");
}

#[test]
fn nodes_that_a_budget_keeps_stay_drifted() {
    let (summary, _, _) = run(&pool(0, "      startupTaints: []\n      expireAfter: 1000h\n"));
    let told = json!({"nodes": 2, "blocked": [{"name": "the NodePool's disruption budget", "count": 2}]});
    assert_eq!(summary["churn"]["drifted_at_end"], told);
}

#[test]
fn nothing_is_told_where_no_node_is_drifted() {
    let (summary, out, _) = run(&pool(1, ""));
    assert!(summary["churn"].get("drifted_at_end").is_none() && !out.contains("still drifted"), "{out}");
}
