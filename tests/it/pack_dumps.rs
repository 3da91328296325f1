//! `nodecast pack` on what a dump of a cluster says beside the pods' requests: volumes, objects on their way out, what
//! kube-scheduler said, running daemons, NodePools that are not ready; and what existing nodes say to a pod.
//! `crates/karpenter/tests/karpenter/packing.rs` lists the cases of Karpenter's suites that this file pins.

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
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";

/// A pod that waits; `more` goes into its spec, `status` and `metadata` beside it.
fn pod(name: &str, cpu: &str, metadata: &str, more: &str, status: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{metadata}}}\nspec:\n  containers:\n    - {{name: c, resources: {{requests: {{cpu: \"{cpu}\", memory: 100Mi}}}}}}\n{more}{status}"
    )
}

/// A node of four cores in us-east-1a.
fn node(name: &str, metadata: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n{metadata}  labels: {{kubernetes.io/hostname: {name}, topology.kubernetes.io/zone: us-east-1a, kubernetes.io/os: linux}}\nstatus:\n  capacity: {{cpu: \"4\", memory: 16Gi, pods: \"50\"}}\n  allocatable: {{cpu: \"4\", memory: 16Gi, pods: \"50\"}}\n"
    )
}

fn asked(objects: &[String], more: &[&str]) -> (String, String) {
    let place = Place::new();
    place.put("objects.yaml", &format!("{POOL}{}", objects.concat()));
    let arguments = [&["pack", "objects.yaml", "--region", "us-east-1"], more].concat();
    let (out, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    (out, err)
}

fn answer(objects: &[String]) -> Value {
    serde_json::from_str(&asked(objects, &["--format", "json"]).0).unwrap()
}

/// `namespace/name` of the pods on new nodes, by node.
fn on_new_nodes(answer: &Value) -> Vec<Vec<String>> {
    let texts = |pods: &Value| pods.as_array().unwrap().iter().map(|pod| pod.as_str().unwrap().to_owned()).collect();
    answer["launches"].as_array().unwrap().iter().map(|array| texts(&array["pods"])).collect()
}

const CLASS: &str = "---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
  - matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [us-east-1c]}]
";

fn bound_claim(name: &str, zone: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: pv-{name}}}\nspec:\n  csi: {{driver: ebs.csi.aws.com, volumeHandle: vol-1}}\n  nodeAffinity:\n    required:\n      nodeSelectorTerms:\n        - matchExpressions: [{{key: topology.kubernetes.io/zone, operator: In, values: [{zone}]}}]\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, annotations: {{pv.kubernetes.io/bind-completed: \"yes\"}}}}\nspec: {{storageClassName: gp3, volumeName: pv-{name}}}\n"
    )
}

fn with_claim(name: &str, claim: &str) -> String {
    let volumes = format!("  volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]\n");
    pod(name, "1", "", &volumes, "")
}

#[test]
fn pod_follows_zone_of_volume_or_class() {
    let unbound =
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: new}\nspec: {storageClassName: gp3}\n";
    let objects = [
        CLASS.to_owned(),
        bound_claim("old", "us-east-1b"),
        unbound.to_owned(),
        with_claim("a", "old"),
        with_claim("b", "new"),
    ];
    let answer = answer(&objects);
    let zones: Vec<&Value> = answer["launches"].as_array().unwrap().iter().map(|array| &array["zones"]).collect();
    assert_eq!(zones, [&serde_json::json!(["us-east-1b"]), &serde_json::json!(["us-east-1c"])]);
}

#[test]
fn pod_with_nonexistent_claim_stays_pending() {
    let (out, err) = asked(&[CLASS.to_owned(), with_claim("a", "gone")], &[]);
    assert!(out.contains("persistent volume claim gone does not exist"), "{out}{err}");
    let (out, err) = asked(&[with_claim("a", "gone")], &[]);
    assert!(out.contains("1 node") && err.contains("no claim is in these files"), "{out}{err}");
}

#[test]
fn pods_naming_missing_nodes_are_reported() {
    let place = Place::new();
    place.put("objects.yaml", &format!("{POOL}{}", pod("own", "1", "", "  nodeName: gone\n", "")));
    let (_, err, code) = place.nodecast(&["pack", "objects.yaml", "--region", "us-east-1"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no pod in these files waits for a node: 1 pod names its node"), "{err}");
}

#[test]
fn node_volume_limit_comes_from_csinode() {
    let limit = "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-1, allocatable: {count: 1}}]}\n";
    let claims = ["x", "y"].map(|name| bound_claim(name, "us-east-1a")).concat();
    let objects =
        [CLASS.to_owned(), claims, limit.to_owned(), node("n1", ""), with_claim("a", "x"), with_claim("b", "y")];
    let (out, _) = asked(&objects, &["--explain", "b"]);
    assert!(out.contains("1 node: would exceed the volume limit of ebs.csi.aws.com (n1)"), "{out}");
    assert_eq!(on_new_nodes(&answer(&objects)), [["default/b"]]);
}

#[test]
fn only_stateful_set_pods_return_from_leaving_node() {
    let going = "  deletionTimestamp: 2026-01-01T00:00:00Z\n";
    let owned = |kind: &str| {
        format!(
            ", deletionTimestamp: 2026-01-01T00:00:00Z, ownerReferences: [{{kind: {kind}, name: o, controller: true}}]"
        )
    };
    let on_node = "  nodeName: n1\n";
    let objects = [
        node("n1", going),
        pod("stateful", "1", &owned("StatefulSet"), on_node, ""),
        pod("replica", "1", &owned("ReplicaSet"), on_node, ""),
        pod("active", "1", ", ownerReferences: [{kind: ReplicaSet, name: o, controller: true}]", on_node, ""),
        pod("waiting", "1", "", "", ""),
    ];
    let answer = answer(&objects);
    let mut pods = on_new_nodes(&answer).concat();
    pods.sort_unstable();
    assert_eq!(pods, ["default/active", "default/stateful", "default/waiting"]);
    assert!(answer["existing_nodes"].as_array().unwrap().is_empty(), "a node on its way out takes no pod");
}

#[test]
fn pack_takes_only_unschedulable_pods() {
    let status = |condition: &str, more: &str| format!("status: {{phase: Pending, conditions: [{condition}]{more}}}\n");
    let unschedulable = "{type: PodScheduled, status: \"False\", reason: Unschedulable}";
    let objects = [
        pod("told", "1", "", "", &status(unschedulable, "")),
        pod("not-yet", "1", "", "", &status("{type: PodReadyToStartContainers, status: \"False\"}", "")),
        pod("preempting", "1", "", "", &status(unschedulable, ", nominatedNodeName: n7")),
        pod("from-a-manifest", "1", "", "", ""),
    ];
    let (out, _) = asked(&objects, &[]);
    assert!(out.contains("kube-scheduler has not said that it fits no node"), "{out}");
    assert!(out.contains("pods of lower priority are leaving node n7 for it"), "{out}");
    let mut pods = on_new_nodes(&answer(&objects)).concat();
    pods.sort_unstable();
    assert_eq!(pods, ["default/from-a-manifest", "default/told"]);
}

#[test]
fn of_equal_pods_the_older_comes_first() {
    let created = |at: &str| format!(", creationTimestamp: {at}");
    let objects = [
        node("n1", ""),
        pod("young", "3", &created("2026-01-01T00:00:09Z"), "", ""),
        pod("old", "3", &created("2026-01-01T00:00:01Z"), "", ""),
        pod("undated", "3", "", "", ""),
    ];
    let answer = answer(&objects);
    assert_eq!(answer["existing_nodes"][0]["pods"], serde_json::json!(["default/old"]));
    assert_eq!(on_new_nodes(&answer).concat(), ["default/young", "default/undated"]);
}

#[test]
fn daemon_pod_represents_daemon_set_with_template_affinity() {
    let set = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    spec:\n      containers: [{name: c, resources: {requests: {cpu: 100m}}}]\n";
    let mutated = pod(
        "agent-x",
        "1500m",
        ", labels: {app: agent}, ownerReferences: [{kind: DaemonSet, name: agent, controller: true}]",
        "  nodeName: n1\n  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]\n",
        "",
    );
    let objects = [set.to_owned(), node("n1", ""), mutated, pod("big", "3", "", "", "")];
    assert_eq!(answer(&objects)["launches"][0]["daemon_requests"]["cpu_milli"], 1_500);
    let template_alone = [set.to_owned(), pod("big", "3", "", "", "")];
    assert_eq!(answer(&template_alone)["launches"][0]["daemon_requests"]["cpu_milli"], 100);
}

#[test]
fn unready_or_deleted_node_pools_launch_nothing() {
    let other = |name: &str, metadata: &str, status: &str| {
        format!(
            "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}{metadata}}}\nspec:\n  weight: 90\n  template: {{spec: {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}, requirements: []}}}}\n{status}"
        )
    };
    let going = other("going", ", deletionTimestamp: 2026-01-01T00:00:00Z", "");
    let unready = other("unready", "", "status: {conditions: [{type: Ready, status: \"False\"}]}\n");
    let ready = other("ready", "", "status: {conditions: [{type: Ready, status: \"True\"}]}\n");
    let waiting = pod("p", "1", "", "", "");
    let pool = |objects: &[String]| answer(objects)["launches"][0]["node_pool"].as_str().unwrap().to_owned();
    assert_eq!(pool(&[going.clone(), unready.clone(), waiting.clone()]), "default");
    assert_eq!(pool(&[ready, waiting.clone()]), "ready");
    let (out, err) = asked(&[unready, waiting, going], &["--explain", "p"]);
    assert!(out.contains("unready: not usable: it is not ready or is being deleted"), "{out}");
    assert!(err.contains("NodePool going is not ready or is being deleted: it launches nothing"), "{err}");
}

#[test]
fn zone_id_restricts_launch_to_its_zone() {
    let more = "  nodeSelector: {topology.k8s.aws/zone-id: use1-az2}\n";
    let answer = answer(&[pod("p", "1", "", more, "")]);
    assert_eq!(answer["launches"][0]["zones"].as_array().unwrap().len(), 1);
    let (_, err) = asked(&[pod("p", "1", "", &more.replace("az2", "az9"), "")], &[]);
    assert!(err.contains("p: `topology.k8s.aws/zone-id` (use1-az9) leaves no zone for a new node"), "{err}");
    assert!(err.contains("us-east-1a is taken for use1-az2"), "{err}");
}

#[test]
fn existing_nodes_report_rejection_reasons() {
    let tainted = node("n2", "")
        .replace("status:\n  capacity", "spec: {taints: [{key: gpu, effect: NoSchedule}]}\nstatus:\n  capacity");
    let objects = [
        node("n1", ""),
        tainted,
        node("n3", ""),
        pod("busy", "3", "", "  nodeName: n1\n", ""),
        pod("p", "2", "", "", ""),
    ];
    let (out, _) = asked(&objects, &["--explain", "p"]);
    let explanation = out.split("default/p goes on").nth(1).unwrap_or_else(|| panic!("{out}"));
    assert!(explanation.contains("the existing node n3"), "{out}");
    assert!(explanation.contains("existing nodes: 3 nodes checked, n3 fits it"), "{out}");
    assert!(explanation.contains("1 node: not enough cpu; n1 has 1 left of 2 requested"), "{out}");
    assert!(explanation.contains("1 node: did not tolerate taint gpu:NoSchedule (n2)"), "{out}");
    let json: Value = serde_json::from_str(&asked(&objects, &["--explain", "p", "--format", "json"]).0).unwrap();
    let nodes = json["explanation"]["existing_nodes"].as_array().unwrap();
    let told: Vec<_> = nodes.iter().map(|node| (node["node"].as_str().unwrap(), node["usable"] == true)).collect();
    assert_eq!(told, [("n1", false), ("n2", false), ("n3", true)]);
    assert_eq!(nodes[0]["short"]["missing"], "1");
}

#[test]
fn pending_stateful_set_uses_missing_ordinals() {
    let set = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 3\n  \
        selector: {matchLabels: {app: db}}\n  volumeClaimTemplates:\n  - metadata: {name: data}\n    \
        spec: {storageClassName: own, resources: {requests: {storage: 8Gi}}}\n  \
        template:\n    metadata: {labels: {app: db}}\n    spec:\n      \
        containers: [{name: db, resources: {requests: {cpu: \"1\", memory: 1Gi}}}]\n";
    let class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: own}\n\
        provisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n";
    let there = pod("db-1", "1", "", "  nodeName: here\n", "status: {phase: Running}\n");
    for objects in [vec![set.to_owned()], vec![set.to_owned(), class.to_owned()]] {
        let found = answer(&[&objects[..], &[node("here", ""), there.clone()]].concat());
        let mut pods: Vec<String> = on_new_nodes(&found).concat();
        let existing =
            found["existing_nodes"].as_array().unwrap().iter().flat_map(|array| array["pods"].as_array().unwrap());
        pods.extend(existing.map(|pod| pod.as_str().unwrap().to_owned()));
        pods.sort_unstable();
        assert_eq!(pods, ["default/db-0", "default/db-2"], "{found}");
    }
}

#[test]
fn undescribed_namespace_is_selected_by_name() {
    let apart = |name: &str| {
        let more = format!(
            "  affinity:\n    podAntiAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        - topologyKey: kubernetes.io/hostname\n          \
             namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {name}}}}}\n          labelSelector: {{matchLabels: {{app: web}}}}\n"
        );
        let web = |pod_name: &str| pod(pod_name, "500m", ", labels: {app: web}", &more, "");
        on_new_nodes(&answer(&[web("a"), web("b")])).len()
    };
    assert_eq!((apart("default"), apart("other")), (2, 1));
}
