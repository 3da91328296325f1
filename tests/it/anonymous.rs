//! `nodecast init --anonymise`: a dump that can be shown to others, and that gives the same answers.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::cli::Place;
use crate::migration::{nodes, workload};

const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/cluster.yaml");
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/small.yaml");
/// Names that every cluster has.
const EVERYBODYS: [&str; 12] = [
    "default",
    "karpenter",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "cluster-autoscaler",
    "cpu",
    "memory",
    "ephemeral-storage",
    "system-cluster-critical",
    "system-node-critical",
    "pods",
];

/// The texts of a dump that could name its owner: names, namespaces, labels of no known meaning, images, hosts.
fn names(dump: &str) -> BTreeSet<String> {
    const KEYS: [&str; 16] = [
        "name:",
        "namespace:",
        "app:",
        "team:",
        "image:",
        "nodeName:",
        "claimName:",
        "kubernetes.io/hostname:",
        "providerID:",
        "volumeHandle:",
        "role:",
        "pool:",
        "karpenter.sh/nodepool:",
        "eks.amazonaws.com/nodegroup:",
        "priorityClassName:",
        "address:",
    ];
    let value = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ");
        let key = KEYS.iter().find(|key| line.starts_with(**key))?;
        Some(line[key.len()..].trim().trim_matches('"').to_owned())
    };
    let known = |name: &String| {
        name.is_empty()
            // The ReplicaSet of Karpenter, and NodePools that are called after capacity types.
            || name.starts_with("karpenter-")
            || ["controller", "spot", "on-demand"].contains(&name.as_str())
            || EVERYBODYS.contains(&name.as_str())
            || name.contains("karpenter/controller:")
            || name.contains("/cluster-autoscaler:")
    };
    dump.lines().filter_map(value).filter(|name| !known(name)).collect()
}

/// The files of a scenario, one after the other.
fn written(place: &Place) -> String {
    let mut all = String::new();
    for file in fs::read_dir(place.path("own")).unwrap().map(|file| file.unwrap().path()) {
        // The schema of scenarios is the same whatever the dump.
        if !file.ends_with("scenario.schema.json") {
            all += &fs::read_to_string(file).unwrap();
        }
    }
    all
}

/// The words of a text.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| c.is_whitespace() || "\",:[]{}=()".contains(c)).collect()
}

fn init(dump: &str, more: &[&str]) -> Place {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&[&["init", "own", "--from", dump], more].concat());
    assert_eq!(code, Some(0), "{err}");
    place
}

#[test]
fn no_name_of_a_dump_is_left() {
    for dump in [DUMP, SMALL] {
        let text = fs::read_to_string(dump).unwrap();
        let place = init(dump, &["--anonymise"]);
        let all = written(&place);
        let said = words(&all);
        let names = names(&text);
        assert!(names.len() > 10, "{names:?}");
        let left: Vec<&String> = names.iter().filter(|name| said.contains(name.as_str())).collect();
        assert_eq!(left, Vec::<&String>::new(), "{dump}");
        for word in [
            "storefront",
            "checkout",
            "123456789012",
            "dkr.ecr",
            "ip-10-0",
            "not-for-the-repository",
            "last-applied",
            "env:",
        ] {
            assert!(!all.contains(word), "{word} of {dump}");
        }
        assert!(
            all.contains("topology.kubernetes.io/zone: eu-west-1a")
                || all.contains("topology.kubernetes.io/zone: \"eu-west-1a\"")
        );
    }
}

#[test]
fn anonymised_label_and_volume_names_stay_consistent() {
    let more = "---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: acme-scaler, namespace: shop}
spec:
  scaleTargetRef: {name: acme-web}
  triggers:
  - {type: cron, metadata: {timezone: Europe/Berlin, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: \"20\"}}
  - {type: prometheus, name: acme_rate, metadata: {serverAddress: \"http://prometheus.acme.example\", query: \"sum(rate(acme_requests_total[5m]))\", threshold: \"100\"}, authenticationRef: {name: acme-login}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ledger, namespace: shop, annotations: {acme.example/owner: jane}}
spec:
  replicas: 1
  serviceName: ledger
  selector: {matchLabels: {acme.example/part: ledger}}
  template:
    metadata: {labels: {acme.example/part: ledger}}
    spec:
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: acme.example/rack, labelSelector: {matchExpressions: [{key: acme.example/part, operator: In, values: [ledger]}]}}]}}
      containers: [{name: acme-db, image: \"registry.acme.example/db:1\", command: [/acme/run], resources: {requests: {cpu: 100m, memory: 1Gi}}}]
  volumeClaimTemplates: [{metadata: {name: acme-data}, spec: {accessModes: [ReadWriteOnce], storageClassName: acme-fast, resources: {requests: {storage: 10Gi}}}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: acme-data-ledger-0, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: acme-fast, resources: {requests: {storage: 10Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: acme-fast}
provisioner: ebs.csi.aws.com
status: {conditions: [{type: AcmeReady, status: \"True\"}]}
parameters: {type: gp3, acme.example/tier: gold}
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: acme.example/v1
kind: AcmeJob
metadata: {name: acme-secret-project}
";
    let place = Place::new();
    let autoscaler = "registry.acme.example/autoscaling/cluster-autoscaler:v1.33.0";
    let dump = [
        nodes("acme-system", 2, "m5.large", false, None),
        nodes("acme-workers", 3, "m5.xlarge", false, Some("acme.example/only")),
        workload("cluster-autoscaler", autoscaler, 1, 100, ("acme-system", 2), None),
        workload("acme-web", "registry.acme.example/web:7", 6, 900, ("acme-workers", 3), Some("acme.example/only")),
        more.to_owned(),
    ];
    place.put("cluster.yaml", &dump.concat());
    place.put(
        "asg.json",
        r#"{"AutoScalingGroups": [{"AutoScalingGroupName": "acme-asg", "MinSize": 1, "MaxSize": 9, "DesiredCapacity": 3, "AvailabilityZones": ["us-east-1a"], "Tags": [{"Key": "eks:nodegroup-name", "Value": "acme-workers"}, {"Key": "k8s.io/cluster-autoscaler/acme", "Value": "owned"}, {"Key": "Owner", "Value": "acme jane"}]}]}"#,
    );
    let words = ["init", "own", "--from", "cluster.yaml", "--from", "asg.json", "--anonymise"];
    let (_, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let all = written(&place) + &err;
    for word in ["acme", "jane", "ledger", "shop", "Acme", "gold"] {
        let left: Vec<&str> = all.lines().filter(|line| line.contains(word)).collect();
        assert_eq!(left, Vec::<&str>::new(), "{word}");
    }
    for kept in ["Europe/Berlin", "desiredReplicas: \"20\"", "type: gp3", "cluster-autoscaler:v1.33.0", "max: 9"] {
        assert!(all.contains(kept), "{kept}: {all}");
    }
    let (out, err, code) = place.nodecast(&["run", "own/scenario.yaml", "--duration", "20m", "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(summary["pods"]["pending_at_end"], 0, "selectors, tolerations and claims still match");
}

/// Objects that no dump of the test data has: what Karpenter believes of prices, and room that it keeps.
const OVERLAYS: &str = "---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: acme-discount}
spec:
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]
  priceAdjustment: \"-12.5%\"
  weight: 3
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: acme-room, namespace: shop}
spec:
  provisioningStrategy: buffer.x-k8s.io/active-capacity
  scalableRef: {apiGroup: apps, kind: Deployment, name: storefront}
  replicas: 3
";

#[test]
fn anonymised_overlays_and_buffers_keep_meaning() {
    let place = Place::new();
    place.put("cluster.yaml", &(fs::read_to_string(DUMP).unwrap() + OVERLAYS));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml", "--anonymise"]);
    assert_eq!(code, Some(0), "{err}");
    let all = fs::read_to_string(place.path("own/anonymous.yaml")).unwrap();
    assert!(!all.contains("acme") && !all.contains("storefront"));
    for kept in ["-12.5%", "buffer.x-k8s.io/active-capacity", "autoscaling.x-k8s.io/v1beta1", "apiGroup: apps"] {
        assert!(all.contains(kept), "{kept}");
    }
    let gates = "policies[0].karpenter={feature_gates: {node_overlay: true, capacity_buffer: true}}";
    let release = "versions.karpenter=v1.14";
    let words = ["run", "own/scenario.yaml", "--policy", "today", "--duration", "5m", "--set", release, "--set", gates];
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let said = out + &err;
    assert!(!said.contains("CapacityBuffer") && !said.contains("unknown kind"), "the Deployment is found: {said}");
}

#[test]
fn anonymised_flags_images_and_labels_reveal_nothing() {
    let image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0";
    let flags = "--cluster-name=acme, --namespace=acme, --user-agent=acme, --config-map=acme, --balancing-label=acme.example/pool, --startup-taint=acme.example/boot, --status-taint=node.kubernetes.io/not-ready, --scale-down-unneeded-time=5m";
    let dump = [
        nodes("system", 2, "m5.large", false, None),
        nodes("workers", 2, "m5.xlarge", false, Some("acme.example/boot"))
            .replace("role: workers", "acme.example/pool: x, node.kubernetes.io/acme: y, lifecycle: Ec2Spot"),
        workload("cluster-autoscaler", image, 1, 100, ("system", 2), None)
            .replace("name: own, ", &format!("name: own, command: [./cluster-autoscaler, {flags}], ")),
    ]
    .concat()
    .replace("osImage: Amazon Linux 2023", "osImage: Amazon Linux 2023 acme");
    let scaled = "---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: own, namespace: shop}
spec: {scaleTargetRef: {name: cluster-autoscaler}, triggers: [{type: acme-scaler, metadata: {value: \"1\"}}]}
";
    let place = Place::new();
    place.put("cluster.yaml", &(dump + scaled));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml", "--anonymise"]);
    assert_eq!(code, Some(0), "{err}");
    let all = written(&place);
    assert!(!all.contains("acme"), "{all}");
    let text = fs::read_to_string(place.path("own/anonymous.yaml")).unwrap();
    let named = |flag: &str| text.split(flag).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let (label, taint) = (named("--balancing-label="), named("--startup-taint="));
    assert!(!label.is_empty() && text.contains(&format!("{label}: ")), "{text}");
    assert!(!taint.is_empty() && text.contains(&format!("key: {taint}\n")), "{text}");
    for kept in ["--status-taint=node.kubernetes.io/not-ready", "--scale-down-unneeded-time=5m", "lifecycle: Ec2Spot"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

/// The figures of a run that say nothing of names.
fn figures(place: &Place, policy: &str) -> Value {
    let words = [
        "run",
        "own/scenario.yaml",
        "--policy",
        policy,
        "--duration",
        "1h",
        "--format",
        "json",
        "--quiet",
        "--out",
        "out",
    ];
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    summary
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn anonymised_run_has_same_metrics() {
    for (dump, policy) in [(SMALL, "today"), (SMALL, "karpenter"), (DUMP, "today")] {
        let [item, other] = [&[][..], &["--anonymise"]].map(|more| figures(&init(dump, more), policy));
        assert_eq!(item["pods"], other["pods"], "{dump}, {policy}");
        for figure in ["max_ready", "at_start", "at_end", "launches", "terminations"] {
            assert_eq!(item["nodes"][figure], other["nodes"][figure], "{figure} of {dump}, {policy}");
        }
        let cost = |summary: &Value| summary["cost"]["total"].as_f64().unwrap();
        // How long a machine takes to start or to end is drawn by its name; so are the nodes on which pods meet, and pull an image once.
        let off = (cost(&item) - cost(&other)).abs() / cost(&item);
        let drawn = if policy == "today" && dump == SMALL { 0.0 } else { 0.01 };
        assert!(off <= drawn, "{dump}, {policy}: {} against {}", cost(&item), cost(&other));
    }
}

#[test]
fn the_dump_under_other_names_is_a_dump() {
    let other = init(SMALL, &["--anonymise"]);
    let anonymous = other.path("own/anonymous.yaml");
    let again = init(anonymous.to_str().unwrap(), &[]);
    for file in ["workloads.yaml", "dump.yaml", "cluster.yaml", "scenario.yaml"] {
        let read = |place: &Place| fs::read_to_string(place.path(&format!("own/{file}"))).unwrap_or_default();
        assert_eq!(read(&other), read(&again), "{file}");
    }
    let big = init(DUMP, &["--anonymise"]);
    for words in [&["pack", "own/anonymous.yaml"][..], &["pack", "own/anonymous.yaml", "--repack"]] {
        let (out, err, code) = big.nodecast(words);
        assert_eq!(code, Some(0), "{out}{err}");
    }
    let (_, err, code) = Place::new().nodecast(&["init", "own", "--anonymise"]);
    assert!(code == Some(2) && err.contains("--from"), "{err}");
}
