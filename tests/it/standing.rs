//! Questions about a cluster as a dump shows it: why a node stays, what a drain comes to.

use serde_json::Value;

use crate::cli::Place;

const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 10m}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";
/// What protects the pods called `web`.
const BUDGET: &str = "---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
";

/// A node of Karpenter's, with its claim: since when it is initialized, and when a pod last came or went.
fn node(name: &str, kind: &str, cpu: &str, last_pod_event: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: \"2026-11-20T08:00:00Z\"
  labels:
    karpenter.sh/nodepool: default
    karpenter.sh/capacity-type: on-demand
    karpenter.sh/initialized: \"true\"
    karpenter.sh/registered: \"true\"
    kubernetes.io/arch: amd64
    kubernetes.io/os: linux
    kubernetes.io/hostname: {name}
    node.kubernetes.io/instance-type: {kind}
    topology.kubernetes.io/zone: us-east-1a
    topology.kubernetes.io/region: us-east-1
status:
  capacity: {{cpu: \"{cpu}\", memory: 16Gi, pods: \"29\"}}
  allocatable: {{cpu: \"{cpu}\", memory: 15Gi, pods: \"29\"}}
  conditions: [{{type: Ready, status: \"True\", lastHeartbeatTime: \"2026-11-20T12:00:00Z\"}}]
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: default-{name}, creationTimestamp: \"2026-11-20T07:59:00Z\"}}
status:
  nodeName: {name}
  lastPodEventTime: \"{last_pod_event}\"
  conditions: [{{type: Initialized, status: \"True\", lastTransitionTime: \"2026-11-20T08:01:00Z\"}}]
"
    )
}

fn pod(name: &str, node: &str, cpu: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: default
  labels: {{app: web}}
  creationTimestamp: \"2026-11-20T08:02:00Z\"
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-5f4, uid: u, controller: true}}]
spec:
  nodeName: {node}
  containers: [{{name: c, resources: {{requests: {{cpu: {cpu}, memory: 500Mi}}}}}}]
status: {{phase: Running, conditions: [{{type: Ready, status: \"True\"}}]}}
"
    )
}

/// Two nodes with room for each other's pods; `last_pod_event` is that of the first.
fn cluster(last_pod_event: &str, more: &str) -> String {
    let nodes = node("one", "m5.large", "2", last_pod_event) + &node("two", "m5.large", "2", "2026-11-20T09:00:00Z");
    let pods = pod("web-a", "one", "400m") + &pod("web-b", "one", "400m") + &pod("web-c", "two", "500m");
    format!("{POOL}{nodes}{pods}{more}")
}

fn asked(objects: &str, arguments: &[&str]) -> (String, String, Option<i32>) {
    let place = Place::new();
    place.put("cluster.yaml", objects);
    place.put("scenario.yaml", "name: mine\n");
    place.nodecast(arguments)
}

fn json(objects: &str, arguments: &[&str]) -> Value {
    let (out, err, code) = asked(objects, &[arguments, &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

fn consolidation(answer: &Value) -> Vec<&str> {
    reasons(answer, "consolidation")
}

/// What stands against a method.
fn reasons<'a>(answer: &'a Value, method: &str) -> Vec<&'a str> {
    let methods = answer["node"]["methods"].as_array().unwrap();
    let method = methods.iter().find(|this_method| this_method["method"] == method).unwrap();
    method["reasons"].as_array().unwrap().iter().map(|reason| reason.as_str().unwrap()).collect()
}

#[test]
fn removable_node_shows_pod_destinations() {
    let answer = json(&cluster("2026-11-20T11:00:00Z", ""), &["explain", "cluster.yaml", "node", "one"]);
    assert_eq!(answer["as_of"], "2026-11-20T12:00:00Z");
    assert_eq!(consolidation(&answer), [""; 0]);
    let removal = &answer["node"]["removal"];
    assert_eq!((&removal["verdict"], &removal["pods"][0]["node"]), (&"delete".into(), &"two".into()));
    assert_eq!(answer["node"]["consolidatable_from_seconds"], -50.0 * 60.0);
}

#[test]
fn recently_used_node_waits_for_consolidate_after() {
    let answer = json(&cluster("2026-11-20T11:55:00Z", ""), &["explain", "cluster.yaml", "node", "one"]);
    assert_eq!(answer["node"]["consolidatable_from_seconds"], 5.0 * 60.0);
    assert_eq!(consolidation(&answer).len(), 1);
}

#[test]
fn type_labels_apply_despite_missing_dump_labels() {
    let drift = |family: &str| {
        let more = format!("- {{key: karpenter.k8s.aws/instance-family, operator: In, values: [{family}]}}");
        let objects = cluster("2026-11-20T11:00:00Z", "");
        let objects = objects.replace(
            "- {key: karpenter.sh/capacity-type",
            &format!("{more}\n        - {{key: karpenter.sh/capacity-type"),
        );
        let answer = json(&objects, &["explain", "cluster.yaml", "node", "one"]);
        reasons(&answer, "drift").join(", ")
    };
    assert_eq!((drift("m5").as_str(), drift("m6i").as_str()), ("the node is not drifted", ""));
}

/// The cluster with another family required, for which its nodes are drifted, and with another line in the NodePool's template or
/// before it.
fn drifted(before: &str, template: &str) -> String {
    let more = "- {key: karpenter.k8s.aws/instance-family, operator: In, values: [m6i]}";
    cluster("2026-11-20T11:00:00Z", "")
        .replace("- {key: karpenter.sh/capacity-type", &format!("{more}\n        - {{key: karpenter.sh/capacity-type"))
        .replace("[m5.large, m5.xlarge]", "[m6i.large]")
        .replace("  template:\n    spec:\n", &format!("{before}  template:\n    spec:\n{template}"))
}

#[test]
fn drifted_static_node_needs_node_limit_headroom() {
    let drift = |before: &str| {
        let answer = json(&drifted(before, ""), &["explain", "cluster.yaml", "node", "one"]);
        assert_eq!(answer["node"]["replacement"], Value::Null);
        reasons(&answer, "drift").join(", ")
    };
    assert_eq!(drift("  replicas: 2\n"), "");
    assert_eq!(drift("  replicas: 1\n"), "static NodePool is over its replica count");
    let room = "the NodePool's limit of nodes leaves no room for a replacement";
    assert_eq!(drift("  replicas: 2\n  limits: {nodes: 2}\n"), room);
}

#[test]
fn drifted_node_shows_replacement_cost() {
    // One of the two pods does not fit on the other node.
    let ask = |template: &str| {
        let objects = drifted("", template).replace("cpu: 500m", "cpu: 1500m");
        let answer = json(&objects, &["explain", "cluster.yaml", "node", "one"]);
        assert_eq!(reasons(&answer, "drift"), [""; 0]);
        let (text, _, _) = asked(&objects, &["explain", "cluster.yaml", "node", "one"]);
        (answer["node"]["replacement"].clone(), text)
    };
    let (moved, text) = ask("");
    assert_eq!((&moved["verdict"], &moved["pods"][1]["to"]), (&"replace".into(), &"new node".into()));
    assert!(text.contains("  drift replacement, ignoring blockers:\n    replace\n"), "{text}");
    let (held, text) = ask("      taints: [{key: x, effect: NoSchedule}]\n");
    assert_eq!((&held["verdict"], &held["pods"][1]["to"]), (&"nothing".into(), &"nowhere".into()));
    assert!(text.contains("  drift: cannot be replaced: a pod cannot be rescheduled"), "{text}");
}

#[test]
fn region_is_inferred_from_node_zone() {
    let unlabelled = cluster("2026-11-20T11:00:00Z", "").replace("    topology.kubernetes.io/region: us-east-1\n", "");
    let zone = "    topology.kubernetes.io/zone: us-east-1a\n";
    let by_machine =
        unlabelled.replace(zone, "").replace("status:\n  capacity", &format!("{MACHINE}status:\n  capacity"));
    for objects in [unlabelled, by_machine] {
        assert_eq!(json(&objects, &["drain", "cluster.yaml", "one"])["region"], "us-east-1");
    }
}

const MACHINE: &str = "spec: {providerID: \"aws:///us-east-1a/i-0abc\"}\n";

#[test]
fn drain_proceeds_in_rounds_under_pdb() {
    let answer = json(&cluster("2026-11-20T11:00:00Z", BUDGET), &["drain", "cluster.yaml", "one"]);
    let budget = &answer["budgets"][0];
    assert_eq!((&budget["name"], &budget["pods"], &budget["allowed"]), (&"default/web".into(), &2.into(), &1.into()));
    assert_eq!(budget["rounds"], 2);
    let to: Vec<&Value> = answer["pods"].as_array().unwrap().iter().map(|pod| &pod["node"]).collect();
    assert_eq!(to, ["two", "two"]);
    assert_eq!((&answer["per_hour"], &answer["launched_per_hour"]), (&0.096.into(), &0.0.into()));
}

#[test]
fn drain_blocked_by_pdb_saves_nothing() {
    let budget = BUDGET.replace("maxUnavailable: 1", "minAvailable: 3");
    let objects = cluster("2026-11-20T11:00:00Z", &budget);
    let answer = json(&objects, &["drain", "cluster.yaml", "one"]);
    for pod in answer["pods"].as_array().unwrap() {
        assert_eq!((&pod["to"], &pod["keeps_node"]), (&"stays".into(), &true.into()), "{pod}");
    }
    assert_eq!((&answer["budgets"][0]["pods"], &answer["budgets"][0]["rounds"]), (&2.into(), &Value::Null));
    let (text, _, _) = asked(&objects, &["drain", "cluster.yaml", "one"]);
    assert!(text.contains("one stays because PodDisruptionBudgets never allow eviction of its pods"), "{text}");
    assert!(!answer["launched_per_hour"].as_f64().unwrap().is_sign_negative(), "an empty sum is 0, not -0");
}

#[test]
fn a_drain_asks_nothing_of_do_not_disrupt() {
    let objects = cluster("2026-11-20T11:00:00Z", "").replace(
        "  labels: {app: web}",
        "  labels: {app: web}\n  annotations: {karpenter.sh/do-not-disrupt: \"true\"}",
    );
    let answer = json(&objects, &["drain", "cluster.yaml", "one"]);
    for pod in answer["pods"].as_array().unwrap() {
        assert_eq!((&pod["to"], &pod["node"]), (&"node".into(), &"two".into()), "{pod}");
    }
    assert_eq!(answer["pods"].as_array().unwrap().len(), 2);
}

#[test]
fn a_drained_node_that_stays_empty_saves_nothing() {
    for (from, to, why) in [
        ("  template:\n", "  replicas: 2\n  template:\n", "NodePool default keeps 2 nodes"),
        ("consolidateAfter: 10m", "consolidateAfter: Never", "NodePool default never consolidates"),
        (
            "  name: one\n",
            "  name: one\n  annotations: {karpenter.sh/do-not-disrupt: \"true\"}\n",
            "annotation `karpenter.sh/do-not-disrupt`",
        ),
    ] {
        let objects = cluster("2026-11-20T11:00:00Z", "").replace(from, to);
        let answer = json(&objects, &["drain", "cluster.yaml", "one"]);
        let stays = answer["nodes"][0]["stays_because"].as_str().unwrap();
        assert!(stays.starts_with(why), "{stays}");
        assert_eq!((&answer["per_hour"], &answer["pods"][0]["node"]), (&0.0.into(), &"two".into()));
        let (text, _, _) = asked(&objects, &["drain", "cluster.yaml", "one"]);
        assert!(text.contains(&format!("$0.0000 per month; one stays, so it saves nothing: {why}")), "{text}");
    }
}

#[test]
fn pdb_allows_eviction_once_pod_is_ready() {
    let budget = BUDGET.replace("maxUnavailable: 1", "minAvailable: 2");
    let objects = cluster("2026-11-20T11:00:00Z", &budget);
    let (before, after) = objects.rsplit_once("status: \"True\"}]}").unwrap();
    let objects = format!("{before}status: \"False\"}}]}}{after}");
    let answer = json(&objects, &["drain", "cluster.yaml", "one"]);
    assert_eq!((&answer["budgets"][0]["allowed"], &answer["budgets"][0]["rounds"]), (&0.into(), &2.into()));
    assert!(answer["pods"].as_array().unwrap().iter().all(|pod| pod["to"] == "node" && pod["keeps_node"] == false));
    let (text, _, _) = asked(&objects, &["drain", "cluster.yaml", "one"]);
    assert!(text.contains("allows 0 now: 2 rounds after all its pods are Ready"), "{text}");
}

#[test]
fn a_drain_of_all_nodes_launches_others() {
    let answer = json(&cluster("2026-11-20T11:00:00Z", ""), &["drain", "cluster.yaml", "two", "one", "one"]);
    assert_eq!(answer["launches"].as_array().unwrap().len(), 1);
    assert!(answer["pods"].as_array().unwrap().iter().all(|pod| pod["to"] == "new node" && pod["launch"] == 0));
    let (text, _, _) = asked(&cluster("2026-11-20T11:00:00Z", BUDGET), &["drain", "cluster.yaml", "one", "two"]);
    insta::assert_snapshot!(text);
}

#[test]
fn unanswerable_dump_question_gets_helpful_error() {
    let objects = cluster("2026-11-20T11:00:00Z", "");
    for (arguments, words) in [
        (&["explain", "cluster.yaml", "node", "on"][..], "did you mean `one`?"),
        (&["explain", "cluster.yaml", "node", "one", "--at", "5m"], "remove `--at`"),
        (&["explain", "cluster.yaml", "decision", "d1"], "explain a node instead"),
        (&["drain", "cluster.yaml", "three"], "no node `three` in this cluster"),
        (&["explain", "scenario.yaml", "node", "one", "--karpenter", "v1.5"], "remove it; use `--set`"),
    ] {
        let (_, err, code) = asked(&objects, arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(err.contains(words), "{err}");
    }
}
