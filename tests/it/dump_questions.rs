//! Questions about a dump with the Karpenter that it states, dumps in other forms, and short names of nodes.

mod cluster;

use serde_json::Value;

use crate::cli::Place;

/// A node with a pod on it, and a pool; `karpenter` is the object that runs Karpenter.
fn small(karpenter: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: burst}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: burst}}
      requirements: [{{key: karpenter.k8s.aws/instance-family, operator: In, values: [c5]}}]
---
{karpenter}---
{}---
{}---
apiVersion: v1
kind: Pod
metadata: {{name: wait, namespace: jobs}}
spec: {{containers: [{{name: own, resources: {{requests: {{cpu: 900m, memory: 1Gi}}}}}}]}}
",
        node("ip-10-9-0-4.eu-west-1.compute.internal"),
        node("ip-10-9-0-5.eu-west-1.compute.internal"),
    )
}

fn node(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: \"2026-10-01T08:00:00Z\"
  labels: {{karpenter.sh/nodepool: burst, karpenter.sh/capacity-type: spot, karpenter.sh/initialized: \"true\",
    kubernetes.io/arch: amd64, kubernetes.io/os: linux, node.kubernetes.io/instance-type: c5.large,
    topology.kubernetes.io/zone: eu-west-1b, topology.kubernetes.io/region: eu-west-1}}
status:
  capacity: {{cpu: \"2\", memory: 4Gi, pods: \"29\"}}
  allocatable: {{cpu: 1930m, memory: 3Gi, pods: \"29\"}}
  nodeInfo: {{kubeletVersion: v1.34.1-eks-1}}
  conditions: [{{type: Ready, status: \"True\"}}]
"
    )
}

/// The spec of Karpenter's pods.
fn spec(tag: &str, environment: &str) -> String {
    format!(
        "{{containers: [{{name: controller, image: \"mirror.example/karpenter/controller:{tag}\", env: [{environment}]}}]}}"
    )
}

fn deployment(tag: &str, environment: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: autoscaler, namespace: platform}}\nspec:\n  replicas: 0\n  \
         selector: {{matchLabels: {{app: k}}}}\n  template: {{metadata: {{labels: {{app: k}}}}, spec: {}}}\n",
        spec(tag, environment)
    )
}

fn answer(place: &Place, arguments: &[&str]) -> Value {
    let (out, err, code) = place.nodecast(&[arguments, &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

const GATES: &str = "{name: FEATURE_GATES, value: \"SpotToSpotConsolidation=true,NodeRepair=true\"}";

#[test]
fn dump_questions_use_the_dumps_karpenter() {
    let place = Place::new();
    place.put("dump.yaml", &small(&deployment("1.6.2", GATES)));
    let node = "ip-10-9-0-4";
    for question in [&["pack", "dump.yaml"][..], &["explain", "dump.yaml", "node", node], &["drain", "dump.yaml", node]]
    {
        let found = answer(&place, question);
        let source = found["karpenter_source"].as_str().unwrap();
        assert_eq!(
            (found["karpenter"].as_str(), source),
            (Some("v1.6.2"), "from the dump's Deployment platform/autoscaler"),
            "{question:?}"
        );
        assert_eq!(found["feature_gates"], serde_json::json!(["SpotToSpotConsolidation", "NodeRepair"]));
        let override_options = ["--karpenter", "v1.3", "--feature-gates", "NodeRepair=false"];
        let found = answer(&place, &[question, &override_options].concat());
        assert_eq!(
            (found["karpenter"].as_str(), found["karpenter_source"].as_str()),
            (Some("v1.3"), Some("from --karpenter"))
        );
        assert_eq!(found["feature_gates"], serde_json::json!(["SpotToSpotConsolidation"]));
        let (text, ..) = place.nodecast(question);
        assert!(
            text.contains("Karpenter v1.6.2, with SpotToSpotConsolidation, NodeRepair, from the dump's Deployment"),
            "{text}"
        );
    }
}

#[test]
fn drain_page_is_written_and_named() {
    let place = Place::new();
    place.put("dump.yaml", &small(""));
    let page = |name: &str| {
        let (_, err, code) = place.nodecast(&["drain", "dump.yaml", "ip-10-9-0-4", "--html", name]);
        assert!(code == Some(0) && err.contains(&format!("page: {name}")), "{err}");
        std::fs::read_to_string(place.path(name)).unwrap()
    };
    let first = page("first.html");
    assert!(first.contains("ip-10-9-0-4.eu-west-1.compute.internal can be drained: no pods"), "{first}");
    assert_eq!(first, page("second.html"));
}

#[test]
fn spot_gate_of_dump_decides_consolidation() {
    let place = Place::new();
    place.put("on.yaml", &small(&deployment("1.6.2", GATES)));
    place.put("off.yaml", &small(&deployment("1.6.2", "{name: FEATURE_GATES, value: NodeRepair=true}")));
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: own, namespace: jobs, ownerReferences: [{kind: ReplicaSet, name: o-1, controller: true}]}\n\
               spec: {nodeName: ip-10-9-0-4.eu-west-1.compute.internal, containers: [{name: own, resources: {requests: {cpu: 1500m}}}]}\n\
               status: {phase: Running}\n";
    let reason = |file: &str| {
        let text = std::fs::read_to_string(place.path(file)).unwrap() + pod;
        place.put("cluster.yaml", &text);
        let found = answer(&place, &["explain", "cluster.yaml", "node", "ip-10-9-0-4"]);
        found["node"]["removal"].to_string() + &found["node"]["methods"].to_string()
    };
    let (on, off) = (reason("on.yaml"), reason("off.yaml"));
    assert!(off.contains("gate") && !on.contains("only with the gate"), "{on}\n{off}");
}

#[test]
fn karpenters_pod_states_release_without_deployment() {
    let place = Place::new();
    let owner = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: k-1, controller: true}]";
    let pod = spec("v1.9.0", "{name: FEATURE_GATES, value: NodeOverlay=true}").replacen(
        '{',
        "{nodeName: ip-10-9-0-4.eu-west-1.compute.internal, ",
        1,
    );
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: k-1-a, namespace: platform, {owner}}}\nspec: {pod}\nstatus: {{phase: Running}}\n"
    );
    place.put("dump.yaml", &small(&pod));
    let found = answer(&place, &["pack", "dump.yaml"]);
    assert_eq!(
        (found["karpenter"].as_str(), found["karpenter_source"].as_str()),
        (Some("v1.9.0"), Some("from the dump's Pod platform/k-1-a"))
    );
    assert_eq!(found["feature_gates"], serde_json::json!(["NodeOverlay"]));
    place.put("none.yaml", &small(""));
    let found = answer(&place, &["pack", "none.yaml"]);
    assert_eq!(found["karpenter_source"].as_str(), Some("assumed, no file states the release"));
    let (_, err, code) = place.nodecast(&["pack", "none.yaml", "--feature-gates", "SpotToSpt=true"]);
    assert!(code == Some(2) && err.contains("unknown feature gate `SpotToSpt`"), "{err}");
}

#[test]
fn drain_has_one_reason_for_each_budget() {
    let place = Place::new();
    let drain = |ready: &str| {
        let objects = format!(
            "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: cache-1, namespace: jobs}}\nspec: {{replicas: 1, selector: \
             {{matchLabels: {{app: cache}}}}, template: {{metadata: {{labels: {{app: cache}}}}, spec: {{containers: [{{name: c}}]}}}}}}\n\
             ---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: cache, namespace: jobs}}\n\
             spec: {{minAvailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow, selector: {{matchLabels: {{app: cache}}}}}}\n\
             ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: cache-1-x, namespace: jobs, labels: {{app: cache}}, ownerReferences: \
             [{{kind: ReplicaSet, name: cache-1, controller: true}}]}}\nspec: {{nodeName: ip-10-9-0-4.eu-west-1.compute.internal, \
             containers: [{{name: c, resources: {{requests: {{cpu: 100m}}}}}}]}}\n\
             status: {{phase: Running, conditions: [{{type: Ready, status: \"{ready}\"}}]}}\n"
        );
        place.put("dump.yaml", &(small("") + &objects));
        let (out, err, code) = place.nodecast(&["drain", "dump.yaml", "ip-10-9-0-4"]);
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let kept = drain("True");
    assert!(kept.contains("PodDisruptionBudget jobs/cache covers 1 of these pods, allows 0 now: it never"), "{kept}");
    assert!(kept.contains("stays; jobs/cache never allows its eviction") && !kept.contains("blocked now"), "{kept}");
    let unready = drain("False");
    assert!(unready.contains("jobs/cache-1-x") && !unready.contains("PodDisruptionBudget"), "{unready}");
}

#[test]
fn unambiguous_short_node_name_is_accepted() {
    let place = Place::new();
    place.put("one.yaml", &small(""));
    let found = answer(&place, &["explain", "one.yaml", "node", "ip-10-9-0-5"]);
    assert_eq!(found["node"]["name"].as_str(), Some("ip-10-9-0-5.eu-west-1.compute.internal"));
    place.put("two.yaml", &(small("") + "---\n" + &node("ip-10-9-0-5.other.internal")));
    for question in [&["explain", "two.yaml", "node", "ip-10-9-0-5"][..], &["drain", "two.yaml", "ip-10-9-0-5"]] {
        let (_, err, code) = place.nodecast(question);
        let err = err.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("ip-10-9-0-5.eu-west-1.compute.internal, ip-10-9-0-5.other.internal"), "{err}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn streams_of_json_are_read_as_dumps() {
    let place = Place::new();
    let list: Value = serde_json::from_str(&cluster::dump()).unwrap();
    let items = list["items"].as_array().unwrap();
    let lines =
        |wrap: &dyn Fn(&Value) -> Value| items.iter().map(|item| wrap(item).to_string() + "\n").collect::<String>();
    let log =
        "==== START logs for container c of pod a/b ====\n{\"half\n==== END logs for container c of pod a/b ====\n";
    let (nodes, rest): (Vec<&Value>, Vec<&Value>) = items.iter().partition(|item| item["kind"] == "Node");
    let list_of =
        |items: Vec<&Value>| serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    place.put("list.json", &cluster::dump());
    place.put("lines.json", &lines(&Value::clone));
    place.put("watch.json", &lines(&|item| serde_json::json!({"type": "ADDED", "object": item})));
    place.put("two.json", &format!("{}\n{log}{}\n{log}", list_of(nodes), list_of(rest)));
    let name = &cluster::nodes()[3];
    for question in [&["pack", "{}", "--repack"][..], &["explain", "{}", "node", name], &["drain", "{}", name]] {
        let of = |file: &str| {
            let arguments: Vec<&str> = question.iter().map(|word| if *word == "{}" { file } else { word }).collect();
            answer(&place, &arguments)
        };
        let whole = of("list.json");
        for file in ["lines.json", "watch.json", "two.json"] {
            assert_eq!(of(file), whole, "{file}: {question:?}");
        }
    }
    for file in ["lines.json", "watch.json", "two.json"] {
        let (out, err, code) = place.nodecast(&["init", &file.replace(".json", ""), "--from", file]);
        assert_eq!(code, Some(0), "{out}{err}");
    }
    let text = std::fs::read_to_string(place.path("lines.json")).unwrap();
    place.put("cut.json", &text[..text.len() - 40]);
    let (_, err, code) = place.nodecast(&["pack", "cut.json"]);
    assert!(code == Some(2) && err.contains("ends in the middle of a JSON object"), "{err}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn every_command_answers_about_a_whole_cluster() {
    let place = Place::new();
    place.put("cluster.json", &cluster::dump());
    let answered = |arguments: &[&str]| {
        let (out, err, code) = place.nodecast(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        out
    };
    answered(&["init", "own", "--from", "cluster.json"]);
    let scenario = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(scenario.contains("v1.8") && scenario.contains("spot_to_spot_consolidation: true"), "{scenario}");
    answered(&["run", "own/scenario.yaml", "--duration", "10m"]);
    let nodes = cluster::nodes();
    for name in nodes.iter().step_by(4) {
        let out = answered(&["explain", "cluster.json", "node", name]);
        assert!(out.contains("Karpenter v1.8.1") || out.contains("node group"), "{out}");
        answered(&["drain", "cluster.json", name]);
    }
    let out = answered(&["pack", "cluster.json", "--repack", "--time-limit", "0"]);
    assert!(out.contains("Karpenter's 22 nodes cost") && out.contains("Karpenter v1.8.1"), "{out}");
    let (_, err, code) = place.nodecast(&["explain", "cluster.json", "pod", "shop/web3-6d5f-5"]);
    assert!(matches!(code, Some(0 | 2)) && !err.contains("panicked"), "{err}");
}
