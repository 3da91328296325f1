//! A dump with pods of what is not simulated.

use std::fmt::Write as _;

use super::Place;

/// When the dump was made.
const SEEN: &str = "2026-11-02T10:00:00Z";
const NODE: &str = "ip-10-0-0-1.ec2.internal";

/// An object of a pod with this metadata, specification and status besides.
fn pod(metadata: &str, spec: &str, status: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{{metadata}, creationTimestamp: '2026-11-02T09:50:00Z'}}\n\
         spec: {{nodeName: {NODE}, {spec}}}\nstatus: {{startTime: '2026-11-02T09:50:00Z', {status}}}\n---\n"
    )
}

fn owned(name: &str, namespace: &str, api: &str, kind: &str, owner: &str) -> String {
    format!(
        "name: {name}, namespace: {namespace}, labels: {{app: {owner}}}, \
         ownerReferences: [{{apiVersion: {api}, kind: {kind}, name: {owner}, uid: u, controller: true}}]"
    )
}

fn container(name: &str, cpu: &str) -> String {
    format!("{{name: {name}, image: '{name}:1', resources: {{requests: {{cpu: {cpu}, memory: 64Mi}}}}}}")
}

const RUNNING: &str = "phase: Running, conditions: [{type: Ready, status: 'True'}]";

/// One node; runners of CI; brokers with volumes; a Rollout; a workload with a proxy, scaled by KEDA.
fn dump() -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: {NODE}\n  creationTimestamp: '2026-11-01T10:00:00Z'\n  \
         labels: {{node.kubernetes.io/instance-type: m5.4xlarge, topology.kubernetes.io/zone: us-east-1a, \
         topology.kubernetes.io/region: us-east-1, eks.amazonaws.com/nodegroup: base, kubernetes.io/arch: amd64, kubernetes.io/os: linux}}\n\
         spec: {{providerID: 'aws:///us-east-1a/i-1'}}\nstatus:\n  capacity: {{cpu: '16', memory: 64Gi, pods: '200'}}\n  \
         allocatable: {{cpu: 15890m, memory: 60Gi, pods: '200'}}\n  \
         conditions: [{{type: Ready, status: 'True', lastHeartbeatTime: '{SEEN}'}}]\n  \
         images: [{{names: ['docker.io/library/web:1'], sizeBytes: 123456789}}]\n  \
         nodeInfo: {{kubeletVersion: v1.33.0-eks-1}}\n---\n"
    );
    let runner = |name: &str| owned(name, "ci", "actions.github.com/v1alpha1", "EphemeralRunner", name);
    let tolerant =
        "tolerations: [{key: ci, operator: Exists, effect: NoSchedule}], nodeSelector: {kubernetes.io/os: linux}";
    for name in ["run-1", "run-2"] {
        text += &pod(&runner(name), &format!("{tolerant}, containers: [{}]", container("runner", "500m")), RUNNING);
    }
    text += &pod(
        &runner("run-0"),
        &format!("containers: [{}]", container("runner", "500m")),
        "phase: Succeeded, containerStatuses: [{name: runner, state: {terminated: {finishedAt: '2026-11-02T10:05:00Z'}}}]",
    );
    for number in 0..2 {
        let (name, claim) = (format!("kafka-{number}"), format!("data-{number}"));
        let volumes = format!("volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]");
        let owner = owned(&name, "kafka", "core.strimzi.io/v1beta2", "StrimziPodSet", "kafka");
        text += &pod(&owner, &format!("{volumes}, containers: [{}]", container("kafka", "1")), RUNNING);
        let _ = write!(
            text,
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {claim}, namespace: kafka}}\n\
             spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 10Gi}}}}}}\n---\n"
        );
    }
    text += "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: kafka, namespace: kafka}\nspec: {kafka: {replicas: 2}}\n---\n";
    text += &workloads();
    text
}

fn workloads() -> String {
    let template = |name: &str| {
        format!(
            "selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{}]}}}}",
            container(name, "200m")
        )
    };
    let mut text = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: shop, namespace: shop}}\n\
         spec: {{replicas: 1, strategy: {{canary: {{steps: [{{setWeight: 20}}]}}}}, {}}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec: {{replicas: 2, {}}}\n---\n",
        template("shop"),
        template("web")
    );
    let labelled = |name: &str, set: &str, hash: &str| {
        format!(
            "name: {name}, namespace: shop, labels: {{app: {}, {hash}}}, ownerReferences: \
             [{{apiVersion: apps/v1, kind: ReplicaSet, name: {set}, uid: u, controller: true}}]",
            set.split('-').next().unwrap()
        )
    };
    let of_shop = labelled("shop-1a-x", "shop-1a", "rollouts-pod-template-hash: 1a");
    text += &pod(&of_shop, &format!("containers: [{}]", container("shop", "200m")), RUNNING);
    for name in ["web-2b-x", "web-2b-y"] {
        let containers = format!("containers: [{}, {}]", container("web", "200m"), container("istio-proxy", "150m"));
        text += &pod(&labelled(name, "web-2b", "pod-template-hash: 2b"), &containers, RUNNING);
    }
    text + "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: web, namespace: shop}\n\
            spec: {scaleTargetRef: {name: web}, minReplicaCount: 1, triggers: [{type: mysql, metadata: {queryValue: '10'}}]}\n---\n\
            apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: keda-hpa-web\n  namespace: shop\n  \
            ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: web, uid: u, controller: true}]\n\
            spec: {scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 10, metrics: [{type: External, external: \
            {metric: {name: s0-mysql}, target: {type: AverageValue, averageValue: '10'}}}]}\n\
            status: {currentReplicas: 2, currentMetrics: [{type: External, external: {metric: {name: s0-mysql}, current: {averageValue: '8'}}}]}\n"
}

#[test]
fn unsimulated_pods_stay_or_become_a_trace() {
    let place = Place::new();
    place.put("dump.yaml", &dump());
    let (_, told, code) = place.nodecast(&["init", "own", "--from", "dump.yaml"]);
    assert_eq!(code, Some(0), "{told}");
    let read = |name: &str| std::fs::read_to_string(place.path(&format!("own/{name}"))).unwrap();
    let (scenario, workloads, trace) = (read("scenario.yaml"), read("workloads.yaml"), read("passing.csv"));
    // Those that run have run for ten of the fifteen minutes that the one took that has ended; one goes, one comes.
    let mut rows = trace.lines().skip(1);
    assert_eq!(rows.next(), Some("0,300,1,run-1,500,64,0,kubernetes.io/os=linux,ci:NoSchedule,0"));
    assert_eq!(rows.next(), Some("0,300,1,run-2,500,64,0,kubernetes.io/os=linux,ci:NoSchedule,0"));
    assert_eq!(rows.next(), Some("450,900,1,,500,64,0,kubernetes.io/os=linux,ci:NoSchedule,0"));
    for text in [
        "pods:                               # pods that come and go by themselves\n  csv: passing.csv\n  namespace: ci\n",
        "{ scaled_object: shop/web, trigger: s0, values: [{ at: 0s, value: 16 }] }",
        "    \"web:1\": 123456789\n",
        "StrimziPodSet is not simulated: the 2 pods of StrimziPodSet stay as Deployments of a fixed size",
    ] {
        assert!(scenario.contains(text), "{text}\n{scenario}");
    }
    assert!(workloads.contains("name: kafka-0") && workloads.contains("name: kafka-1"), "{workloads}");
    assert!(workloads.contains("istio-proxy"), "{workloads}");
    assert!(!scenario.contains("its pods are ignored"), "{scenario}");
    place.put("own/scenario.yaml", &scenario.replace("duration: 24h", "duration: 1h"));
    std::fs::rename(place.path("own/scenario.yaml"), place.path("own/hour.yaml")).unwrap();
    let (answer, told, code) = place.nodecast(&["run", "own/hour.yaml", "--format", "json", "--out", "out"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(answer.contains("\"warnings\""));
    let pods = std::fs::read_to_string(place.path("out/pods.csv")).unwrap();
    let on_node = |name: &str| pods.lines().any(|line| line.contains(name) && line.contains(NODE));
    for name in ["run-1", "run-2", "kafka-0", "kafka-1", "shop-1a-x", "web-2b-x", "web-2b-y"] {
        assert!(on_node(name), "{name}: {pods}");
    }
    let events = std::fs::read_to_string(place.path("out/events.jsonl")).unwrap();
    let evicted = events.lines().filter(|line| line.contains("Evicted") || line.contains("ReplicasSet")).count();
    assert_eq!(evicted, 0, "nothing is moved and nothing scaled");
}

#[test]
fn strangers_are_the_same_under_other_names() {
    let [item, other] = [&[][..], &["--anonymise"]].map(|more| {
        let place = Place::new();
        place.put("dump.yaml", &dump());
        let (_, told, code) = place.nodecast(&[&["init", "own", "--from", "dump.yaml"][..], more].concat());
        assert_eq!(code, Some(0), "{told}");
        let read = |name: &str| std::fs::read_to_string(place.path(&format!("own/{name}"))).unwrap();
        let trace: Vec<String> = read("passing.csv")
            .lines()
            .map(|line| {
                line.split(',').enumerate().filter(|(at, _)| ![3, 7, 8].contains(at)).map(|(_, cell)| cell).collect()
            })
            .collect();
        let values = read("scenario.yaml").matches("values: [{ at: 0s, value: 16 }]").count();
        let words = ["run", "own/scenario.yaml", "--duration", "1h", "--format", "json", "--out", "out"];
        let (answer, told, code) = place.nodecast(&words);
        assert_eq!(code, Some(0), "{told}");
        let mut summary: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let cost = summary["cost"]["total"].clone();
        let mut pods = summary["pods"].take();
        for of_workload in pods["by_workload"].as_array_mut().unwrap() {
            // Their names are what differs.
            assert!(of_workload["workload"].take().is_string());
        }
        (trace, values, pods, cost, read("workloads.yaml").matches("name: istio-proxy").count())
    });
    assert_eq!(item, other);
}
