//! Facts of a dump are used by `nodecast init --from`, or a warning names them.

use std::fmt::Write as _;

use nodecast::catalog::Catalog;
use nodecast::domain::SimDuration;
use nodecast::scenario::draft::{Observed, ObservedLoad, Wishes};
use nodecast::scenario::{Draft, Source};
use nodecast::simulation::{Outcome, run};

use crate::cli::Place;
use crate::migration::{nodes, workload};

/// A ReplicaSet with pods of this application; `owner` is the object that controls it, if one does.
fn replica_set(name: &str, app: &str, replicas: u32, owner: Option<&str>, hash: Option<&str>) -> String {
    let owners = owner.map_or_else(String::new, |owner| {
        format!(
            ", ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: {owner}, uid: u, controller: true}}]"
        )
    });
    let labels = hash.map_or_else(|| format!("app: {app}"), |hash| format!("app: {app}, pod-template-hash: {hash}"));
    format!(
        "---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}, namespace: shop{owners}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{{labels}}}}}
  template:
    metadata: {{labels: {{{labels}}}}}
    spec: {{containers: [{{name: own, image: own, resources: {{requests: {{cpu: 200m, memory: 256Mi}}}}}}]}}
"
    )
}

/// The draft that `init` makes of a dump, shortened to half an hour, and what it said on one line.
fn drafted(files: &[(&str, &str)]) -> (Place, String) {
    let place = Place::new();
    let mut words = vec!["init", "own"];
    for (name, text) in files {
        place.put(name, text);
        words.extend(["--from", name]);
    }
    let (_, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let text = read(&place, "own/scenario.yaml");
    place.put("own/scenario.yaml", &text.replace("duration: 24h", "duration: 30m"));
    (place, err.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn read(place: &Place, file: &str) -> String {
    std::fs::read_to_string(place.path(file)).unwrap()
}

/// The comments and sentences of a scenario on one line.
fn words_of(place: &Place) -> String {
    read(place, "own/scenario.yaml").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn outcome(place: &Place, file: &str) -> Outcome {
    let (scenario, _) = nodecast::scenario::load(&place.path(file)).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn pods(outcome: &Outcome, prefix: &str) -> usize {
    outcome.record.pods.iter().filter(|pod| pod.name.starts_with(prefix)).count()
}

#[test]
fn replica_sets_of_missing_deployment_become_it() {
    let dump = nodes("web", 2, "m5.large", false, None)
        + &replica_set("teller-7d9b6c4f8", "teller", 2, Some("teller"), Some("7d9b6c4f8"))
        + &replica_set("teller-5f4d7", "teller", 1, Some("teller"), Some("5f4d7"))
        + &replica_set("teller-99f9d", "teller", 0, Some("teller"), Some("99f9d"));
    let (place, err) = drafted(&[("cluster.yaml", &dump)]);
    assert_eq!(err, "");
    assert!(
        words_of(&place)
            .contains("1 Deployment that the dump does not hold is made of its ReplicaSets: shop/teller (3 replicas).")
    );
    let workloads = read(&place, "own/workloads.yaml");
    assert!(workloads.contains("kind: Deployment") && !workloads.contains("7d9b6c4f8"), "{workloads}");
    assert_eq!(pods(&outcome(&place, "own/scenario.yaml"), "teller-"), 3);
}

#[test]
fn standalone_replica_set_adopts_its_pods() {
    let mut dump = nodes("web", 1, "m5.large", false, None) + &replica_set("my-cache", "cache", 2, None, None);
    for name in ["my-cache-x1", "my-cache-x2"] {
        let _ = write!(
            dump,
            "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: shop
  labels: {{app: cache}}
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: my-cache, uid: u, controller: true}}]
spec: {{nodeName: web-0, containers: [{{name: own, image: own, resources: {{requests: {{cpu: 200m, memory: 256Mi}}}}}}]}}
status: {{phase: Running, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        );
    }
    let (place, err) = drafted(&[("cluster.yaml", &dump)]);
    assert_eq!(err, "");
    let outcome = outcome(&place, "own/scenario.yaml");
    assert_eq!(pods(&outcome, "my-cache-"), 2, "those of the dump, and no others");
    let (out, err, code) = place.nodecast(&["run", "own/scenario.yaml", "--quiet", "--format", "json", "--out", "out"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.contains("is not in the scenario"), "{out}");
}

#[test]
fn replication_controller_of_manifest_runs() {
    let place = Place::new();
    let controller = "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: old, namespace: shop}\nspec:\n  replicas: 4\n  \
        selector: {app: old}\n  template:\n    metadata: {labels: {app: old}}\n    \
        spec: {containers: [{name: own, image: own, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}\n";
    let base = read(&place, "cluster.yaml");
    place.put("cluster.yaml", &format!("{base}---\n{controller}{}", replica_set("one", "one", 1, None, None)));
    let outcome = outcome(&place, "scenario.yaml");
    assert_eq!((pods(&outcome, "old-"), pods(&outcome, "one-")), (4, 1));
}

/// A Rollout that takes its template from the Deployment `engine`, which has so many replicas.
fn rollout(name: &str, scale_down: &str, of_deployment: u32) -> String {
    format!(
        "---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: 5
  workloadRef: {{apiVersion: apps/v1, kind: Deployment, name: engine{scale_down}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: engine, namespace: shop}}
spec:
  replicas: {of_deployment}
  selector: {{matchLabels: {{app: engine}}}}
  template:
    metadata: {{labels: {{app: engine}}}}
    spec: {{containers: [{{name: own, image: own, resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}}}]}}
"
    )
}

#[test]
fn rollout_runs_as_the_deployment_it_names() {
    let made = |objects: &str, names: [&str; 2]| {
        let place = Place::new();
        let base = read(&place, "cluster.yaml");
        place.put("cluster.yaml", &(base + objects));
        let outcome = outcome(&place, "scenario.yaml");
        names.map(|name| pods(&outcome, name))
    };
    let names = ["front-", "engine-"];
    assert_eq!(made(&rollout("front", ", scaleDown: onsuccess", 3), names), [5, 0]);
    assert_eq!(made(&rollout("front", "", 3), names), [5, 3], "`never` is what holds unless stated");
    assert_eq!(made(&rollout("engine", ", scaleDown: progressively", 3), names), [0, 5]);
    assert_eq!(made(&rollout("engine", ", scaleDown: never", 3), names), [0, 8], "both run under one name");
    let place = Place::new();
    let base = read(&place, "cluster.yaml");
    let alone = rollout("front", "", 3)
        .replace("kind: Deployment\nmetadata: {name: engine", "kind: Deployment\nmetadata: {name: other");
    place.put("cluster.yaml", &(base + &alone));
    let (out, ..) = place.nodecast(&["validate", "scenario.yaml", "--quiet"]);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("takes its template from the Deployment shop/engine, which is in no file"), "{out}");
}

/// The Deployment of a Cluster Autoscaler of this release with these flags.
fn autoscaler(release: &str, flags: &[&str]) -> String {
    let flags: String = flags.iter().map(|flag| format!(", \"{flag}\"")).collect();
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: cluster-autoscaler, namespace: kube-system}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: autoscaler}}}}
  template:
    metadata: {{labels: {{app: autoscaler}}}}
    spec:
      containers:
        - name: own
          image: registry.k8s.io/autoscaling/cluster-autoscaler:{release}
          command: [./cluster-autoscaler, --cloud-provider=aws{flags}]
          resources: {{requests: {{cpu: 100m, memory: 300Mi}}}}
"
    )
}

/// Limits and desired size of the node groups of the first policy.
fn sizes(place: &Place) -> Vec<(String, u32, u32, u32)> {
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let groups = scenario.policies[0].manifests.node_groups.iter();
    let mut all: Vec<_> =
        groups.map(|group| (group.name.to_string(), group.min_size, group.desired_size, group.max_size)).collect();
    all.sort_unstable();
    all
}

const UUID: &str = "1ac7a2f3-3c5d-9a01-77f0-5b2c8d9e0f11";

#[test]
fn autoscaler_flags_limit_the_groups_they_name() {
    let flags = [format!("--nodes=3:14:eks-blue-{UUID}"), format!("--nodes=0:9:eks-gone-{UUID}")];
    let base = nodes("blue", 4, "m5.large", false, None) + &nodes("green", 2, "m5.large", false, None);
    let dump = base
        + &autoscaler("v1.33.1", &[&flags[0], &flags[1], "--balancing-ignore-label=a", "--balancing-ignore-label=b"]);
    let (place, err) = drafted(&[("cluster.yaml", &dump)]);
    assert!(err.contains(&format!("flag `--nodes=0:9:eks-gone-{UUID}` is ignored")), "{err}");
    assert!(!err.contains("eks-blue"), "{err}");
    assert_eq!(sizes(&place), [("blue".to_owned(), 3, 4, 14), ("green".to_owned(), 2, 2, 2)]);
    let told = words_of(&place);
    assert!(told.contains("nodes: \"3:14:blue\""), "{told}");
    assert!(told.contains("balancing-ignore-label: [\"a\", \"b\"]"), "{told}");
    assert!(
        told.contains("does not scale 1 node group, which its flags neither name nor find by a tag: green"),
        "{told}"
    );
}

#[test]
fn flag_minimum_above_nodes_sets_desired_size() {
    let flag = format!("--nodes=5:8:eks-blue-{UUID}");
    let dump = nodes("blue", 2, "m5.large", false, None) + &autoscaler("v1.33.1", &[&flag]);
    let (place, _) = drafted(&[("cluster.yaml", &dump)]);
    assert_eq!(sizes(&place), [("blue".to_owned(), 5, 5, 8)]);
    let told = words_of(&place);
    assert!(
        told.contains(
            "begins with 5 nodes, within the 5 to 8 of the Cluster Autoscaler's flag `--nodes`: the dump shows 2"
        ),
        "{told}"
    );
    assert!(!told.contains("may shrink to one node"), "{told}");
}

#[test]
fn discovery_by_a_tag_leaves_other_groups_alone() {
    let group = |name: &str, tag: &str| {
        format!(
            "{{\"AutoScalingGroupName\": \"eks-{name}-1\", \"MinSize\": 1, \"MaxSize\": 6, \"DesiredCapacity\": 2, \
             \"AvailabilityZones\": [\"us-east-1a\"], \"Tags\": [{{\"Key\": \"eks:nodegroup-name\", \"Value\": \"{name}\"}}, \
             {{\"Key\": \"{tag}\", \"Value\": \"on\"}}]}}"
        )
    };
    let dump = nodes("blue", 2, "m5.large", false, None)
        + &nodes("green", 2, "m5.large", false, None)
        + &autoscaler("v1.34.0", &["--node-group-auto-discovery=asg:tag=team/scale=on"]);
    let printed = format!("{{\"AutoScalingGroups\": [{}, {}]}}", group("blue", "team/scale"), group("green", "other"));
    let (place, _) = drafted(&[("cluster.yaml", &dump), ("groups.json", &printed)]);
    let told = words_of(&place);
    assert!(told.contains("nodes: \"1:6:blue\""), "{told}");
    assert!(told.contains("neither name nor find by a tag: green"), "{told}");
    let (place, _) = drafted(&[("cluster.yaml", &dump)]);
    let told = words_of(&place);
    assert!(
        told.contains("are assumed to have the tags by which the Cluster Autoscaler finds groups (team/scale)"),
        "{told}"
    );
    assert!(!told.contains("nodes: "), "{told}");
}

#[test]
fn old_autoscaler_gives_way_to_nearest_release() {
    let dump = nodes("blue", 2, "m5.large", false, None) + &autoscaler("v1.28.5", &["--salvo-scale-up=true"]);
    let (place, err) = drafted(&[("cluster.yaml", &dump)]);
    assert!(err.contains("Cluster Autoscaler v1.28.5 is not supported; using 1.32"), "{err}");
    assert!(
        err.contains("flag `--salvo-scale-up=true` is ignored: the Cluster Autoscaler 1.32 has no such flag"),
        "{err}"
    );
    assert!(read(&place, "own/scenario.yaml").contains("  cluster-autoscaler: \"1.32\"\n"));
    let dump = nodes("blue", 2, "m5.large", false, None) + &autoscaler("v1.36.0", &["--salvo-scale-up=true"]);
    assert_eq!(drafted(&[("cluster.yaml", &dump)]).1, "");
}

/// An autoscaler of the workload `web` with one external metric.
fn external(owner: &str, name: &str, target: &str, current: &str) -> String {
    format!(
        "---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web, namespace: shop{owner}}}
spec:
  minReplicas: 1
  maxReplicas: 30
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  metrics: [{{type: External, external: {{metric: {{name: {name}}}, target: {target}}}}}]
status: {{currentReplicas: 3, desiredReplicas: 3, currentMetrics: [{{type: External, external: {{metric: {{name: {name}}}, current: {current}}}}}]}}
"
    )
}

#[test]
fn average_target_reads_what_was_measured_for_each() {
    let base = nodes("w", 2, "m5.xlarge", false, None) + &workload("web", "web", 3, 200, ("w", 2), None);
    let text = |more: &str| read(&drafted(&[("cluster.yaml", &(base.clone() + more))]).0, "own/scenario.yaml");
    let average = "{type: AverageValue, averageValue: \"20\"}";
    let both = "{averageValue: 12500m, value: \"0\"}";
    let this_text = text(&external("", "depth", average, both));
    assert!(this_text.contains("{ metric: depth, values: [{ at: 0s, value: 37.5 }] }"), "{this_text}");
    let value = text(&external("", "depth", "{type: Value, value: \"20\"}", "{averageValue: \"7\", value: \"21\"}"));
    assert!(value.contains("{ metric: depth, values: [{ at: 0s, value: 21 }] }"), "{value}");
    let of_keda =
        ", ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: web, uid: u, controller: true}]";
    let object = "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: web, namespace: shop}\n\
        spec: {scaleTargetRef: {name: web}, triggers: [{type: mysql, metadata: {queryValue: '20'}}]}\n";
    let keda = text(&(object.to_owned() + &external(of_keda, "s0-mysql", average, both)));
    assert!(keda.contains("{ scaled_object: shop/web, trigger: s0, values: [{ at: 0s, value: 37.5 }] }"), "{keda}");
}

/// The scenario of a dump that replays an hour of two cores on `shop/web`.
fn replayed(dump: String) -> String {
    let load = ObservedLoad {
        workload: "shop/web".to_owned(),
        curve: "t_seconds,cores\n0,2\n60,2\n".to_owned(),
        basis: "2 cores on average".to_owned(),
        ..ObservedLoad::default()
    };
    let observed = Observed { length: SimDuration::from_secs(3_600), loads: vec![load], ..Observed::default() };
    let wishes = Wishes { name: "own".to_owned(), observed: Some(observed), ..Wishes::default() };
    let draft = Draft::of_dump(&[Source::new("cluster.yaml", dump)], &wishes, Catalog::embedded().unwrap()).unwrap();
    draft.files[0].text.clone()
}

#[test]
fn replay_keeps_what_only_the_dump_measured() {
    let base = nodes("w", 2, "m5.xlarge", false, None) + &workload("web", "web", 3, 200, ("w", 2), None);
    let metric = |name: &str| {
        format!("{{type: Resource, resource: {{name: {name}, target: {{type: Utilization, averageUtilization: 60}}}}}}")
    };
    let of_both = format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         minReplicas: 1\n  maxReplicas: 30\n  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n  \
         metrics: [{}, {}]\nstatus: {{currentReplicas: 3, currentMetrics: [{{type: Resource, resource: {{name: memory, current: \
         {{averageValue: \"201326592\"}}}}}}, {{type: Resource, resource: {{name: cpu, current: {{averageValue: 150m}}}}}}]}}\n",
        metric("cpu"),
        metric("memory")
    );
    let text = replayed(base.clone() + &of_both);
    assert!(text.contains("  - { workload: shop/web, memory: { constant: 192 } }   # 3 pods"), "{text}");
    assert!(text.contains("    cpu: { csv: cores.shop.web.csv }") && !text.contains("diurnal"), "{text}");
    let average = "{type: AverageValue, averageValue: \"20\"}";
    let text = replayed(base.clone() + &external("", "depth", average, "{averageValue: \"11\"}"));
    assert!(text.contains("{ metric: depth, values: [{ at: 0s, value: 33 }] }"), "{text}");
    let used = "---\napiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\nmetadata: {name: web-5f4d7-0, namespace: shop}\n\
        containers: [{name: own, usage: {cpu: 700m, memory: 96Mi}}]\n";
    let text = replayed(base + used);
    assert!(text.contains("  - { workload: shop/web, container: own, memory: { constant: 96 } }   # 1 pod"), "{text}");
}

/// Pods of the object `ledger` of an operator, each with a claim of its own, or with these requests.
fn instances(claims: bool, cpu: [u32; 3]) -> String {
    let mut text = String::new();
    for (number, cpu) in (0..3).zip(cpu) {
        let name = format!("ledger-{}", number + 4);
        let volumes = if claims {
            format!("volumes: [{{name: data, persistentVolumeClaim: {{claimName: data-{name}}}}}], ")
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: data
  labels: {{db: ledger}}
  ownerReferences: [{{apiVersion: psmdb.percona.com/v1, kind: PerconaServer, name: ledger, uid: u, controller: true}}]
spec: {{nodeName: w-{number}, {volumes}containers: [{{name: own, image: own, resources: {{requests: {{cpu: {cpu}m, memory: 256Mi}}}}}}]}}
status: {{phase: Running, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        );
        if claims {
            let _ = write!(
                text,
                "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data-{name}, namespace: data}}\n\
                 spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 10Gi}}}}}}\n"
            );
        }
    }
    text
}

#[test]
fn instances_of_one_object_count_as_one_workload() {
    let base = nodes("w", 3, "m5.large", false, None) + &workload("web", "web", 3, 100, ("w", 3), None);
    for dump in [instances(true, [300; 3]), instances(false, [300, 500, 300])] {
        let (place, _) = drafted(&[("cluster.yaml", &(base.clone() + &dump))]);
        let text = read(&place, "own/scenario.yaml");
        assert!(text.contains("  - { name: data/ledger-5, part_of: data/ledger }"), "{text}");
        // One instance after the other is away for a while.
        place.put(
            "own/scenario.yaml",
            &(text + "\ntimeline:\n  - { at: 5m, delete: { kind: Pod, namespace: data, labels: { db: ledger }, count: 1 } }\n"),
        );
        let (out, err, code) =
            place.nodecast(&["run", "own/scenario.yaml", "--quiet", "--format", "json", "--out", "out"]);
        assert_eq!(code, Some(0), "{err}");
        let summary: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert!(!summary["warnings"].to_string().contains("is not in the scenario"), "{}", summary["warnings"]);
        let all = summary["availability"]["workloads"].as_array().unwrap();
        let item: Vec<_> = all.iter().filter(|item| item["workload"].as_str().unwrap().contains("ledger")).collect();
        assert_eq!(item.len(), 1, "{all:?}");
        assert_eq!(item[0]["workload"], "data/ledger");
        assert_eq!(item[0]["wanted_pod_minutes"], 90.0);
        assert!(item[0]["unavailable_pod_minutes"].as_f64().unwrap() > 0.0, "{}", item[0]);
        assert_eq!(item[0]["at_zero_seconds"], 0.0, "{}", item[0]);
    }
}

#[test]
fn alike_pods_of_one_object_are_one_deployment() {
    let base = nodes("w", 3, "m5.large", false, None);
    let (place, _) = drafted(&[("cluster.yaml", &(base + &instances(false, [300; 3])))]);
    let workloads = read(&place, "own/workloads.yaml");
    assert!(workloads.contains("name: ledger\n") && workloads.contains("replicas: 3"), "{workloads}");
    assert!(!read(&place, "own/scenario.yaml").contains("part_of"));
}

#[test]
fn controllers_of_a_dump_are_used_or_named() {
    let program = |kind: &str, name: &str, image: &str, more: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: kube-system}}\nspec:\n  \
             selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
             spec: {{containers: [{{name: own, image: \"{image}\", {more}}}]}}\n"
        )
    };
    let metrics = |more: &str| {
        program("Deployment", "metrics-server", "registry.k8s.io/metrics-server/metrics-server:v0.8.0", more)
    };
    let plugin = program(
        "DaemonSet",
        "aws-node",
        "602401143452.dkr.ecr.us-east-1.amazonaws.com/amazon-k8s-cni:v1.20.1",
        "env: [{name: ENABLE_PREFIX_DELEGATION, value: \"true\"}, {name: SECRET, value: hidden}]",
    );
    let recommended = "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: web, namespace: shop}\n\
        spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, updatePolicy: {updateMode: Initial}}\n\
        status: {recommendation: {containerRecommendations: [{containerName: own, target: {cpu: 900m, memory: 128Mi}}]}}\n";
    let base = nodes("w", 2, "m5.xlarge", false, None) + &workload("web", "web", 2, 200, ("w", 2), None);
    let kured = program("DaemonSet", "kured", "ghcr.io/kubereboot/kured:1.17", "args: [x]");
    let dump = base.clone() + &metrics("args: [--metric-resolution=40s]") + &plugin + recommended + &kured;
    let (place, err) = drafted(&[("cluster.yaml", &dump)]);
    assert!(
        err.contains("DaemonSet kube-system/kured: kured is not simulated: no node is drained for a reboot"),
        "{err}"
    );
    assert!(
        words_of(&place).contains("metrics_server: # as its Deployment sets it up resolution: 40s"),
        "{}",
        words_of(&place)
    );
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let manifests = &scenario.policies[0].manifests;
    assert!(manifests.network_plugin.addresses.prefixes && !read(&place, "own/cluster.yaml").contains("hidden"));
    assert!(manifests.vertical_autoscalers[0].recommendation.is_some());
    for (more, resolution) in [("args: [--metric-resolution=15s]", 15), ("args: [x]", 60), ("tty: false", 15)] {
        let (place, err) = drafted(&[("cluster.yaml", &(base.clone() + &metrics(more)))]);
        let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
        assert_eq!(scenario.metrics_server.resolution, SimDuration::from_secs(resolution), "{more}: {err}");
    }
}
