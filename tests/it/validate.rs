//! `nodecast validate` refuses what `run` refuses, with the same words, and says what a scenario holds.

use std::path::Path;

use serde_json::Value;

use nodecast::catalog::Catalog;
use nodecast::experiment::inspection::inspect;
use nodecast::experiment::presentation::inspection::table;
use nodecast::scenario::error::Render;

use crate::cli::{Place, assert_fits};

/// A Deployment with a misspelled key.
const MISSPELLED: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replcas: 3
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: api, image: api, resources: {requests: {cpu: 250m}}}]}
";

/// Objects with a slip in each of many places.
const SLIPS: &str = "\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest, nme: x}], role: nodes}
---
apiVersion: karpenter.sh/v1beta2
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidateAfer: 5m}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.larg, m5.large]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m55, m5]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [mm, m]}
        - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['4']}
        - {key: kubernetes.io/arch, operator: In, values: [x86, amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [ondemand, spot]}
        - {key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1a, us-east-1a]}
        - {key: topology.kubernetes.io/zone, operator: NotIn, values: [us-east-1z]}
---
apiVersion: apps/v2
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {node.kubernetes.io/instance-type: m5.larrge, team: shop}
      containers: [{name: web, image: web, resource: {}}]
---
apiVersion: keda.sh/v1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  triggers:
    - {type: cron, metadata: {timezone: UTC, start: 0 1 * * *, end: 0 2 * * *, desiredReplicas: '4'}}
";

/// A directory with a scenario of two policies, of which one has a warning, next to the usual one.
fn place() -> Place {
    let place = Place::new();
    place.put("api.yaml", MISSPELLED);
    let scenario = std::fs::read_to_string(place.path("scenario.yaml")).unwrap().replace("two-pods", "two-policies");
    place.put(
        "policies.yaml",
        &format!(
            "{scenario}\
             timeline: [{{at: 5m, scale: {{workload: shop/web, replicas: 4}}}}]\n\
             faults: [{{at: 1m, api_latency: {{factor: 2}}}}]\n\
             policies:\n\
             \x20 - {{name: karpenter, autoscaler: karpenter}}\n\
             \x20 - {{name: more, autoscaler: karpenter, versions: {{karpenter: v1.14}}, manifests: [api.yaml]}}\n"
        ),
    );
    place
}

#[test]
fn validate_prints_contents_and_warnings() {
    let place = place();
    let (out, err, code) = place.nodecast(&["validate", "scenario.yaml", "policies.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)), "{out}");
    insta::assert_snapshot!("validate", out);
    let (out, err, code) = place.nodecast(&["validate", "--quiet", "scenario.yaml"]);
    assert_eq!((out.as_str(), err.as_str(), code), ("", "", Some(0)));
}

#[test]
fn json_has_the_same_with_places() {
    let place = place();
    let (out, err, code) = place.nodecast(&["validate", "policies.yaml", "--format", "json"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found[0]["warnings"][0]["line"], 5);
    assert_eq!(found[0]["warnings"][0]["help"], "did you mean `replicas`?");
    let policies = &found[0]["holds"]["policies"];
    assert_eq!((&policies[0]["pods_at_start"], &policies[1]["pods_at_start"]), (&2.into(), &3.into()));
}

#[test]
fn initial_pod_count_matches_workloads() {
    let deployment = |n: usize| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: finch-{n:03}, namespace: aviary}}\nspec:\n  replicas: 2\n  \
             selector: {{matchLabels: {{app: finch-{n:03}}}}}\n  template:\n    metadata: {{labels: {{app: finch-{n:03}}}}}\n    \
             spec: {{containers: [{{name: a, image: a, resources: {{requests: {{cpu: 10m}}}}}}]}}\n"
        )
    };
    // One at a time, three at once of seven, one alone, and one for each node.
    const OTHERS: &str = "\
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: heron, namespace: aviary}
spec:
  replicas: 9
  serviceName: heron
  selector: {matchLabels: {app: heron}}
  template:
    metadata: {labels: {app: heron}}
    spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 10m}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: hatch, namespace: aviary}
spec:
  parallelism: 3
  completions: 7
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: a, resources: {requests: {cpu: 10m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: owl, namespace: aviary}
spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 10m}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nest, namespace: aviary}
spec:
  selector: {matchLabels: {app: nest}}
  template:
    metadata: {labels: {app: nest}}
    spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 10m}}}]}
";
    let place = Place::new();
    let cluster = std::fs::read_to_string(place.path("cluster.yaml")).unwrap();
    let before = |place: &Place| {
        let (out, err, code) = place.nodecast(&["validate", "scenario.yaml", "--format", "json"]);
        assert_eq!(code, Some(0), "{err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        found[0]["holds"]["policies"][0]["pods_at_start"].as_u64().unwrap()
    };
    let others = before(&place);
    let finches: String = (0..140).map(deployment).collect();
    place.put("cluster.yaml", &format!("{cluster}{finches}{OTHERS}"));
    assert_eq!(before(&place), others + 280 + 9 + 3 + 1);
}

#[test]
fn validate_errors_match_run_and_others_continue() {
    let place = place();
    let usable = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    for (name, from, to) in [
        ("key.yaml", "duration:", "durations:"),
        ("missing.yaml", "cluster.yaml", "clusters.yaml"),
        ("region.yaml", "us-east-1", "us-east-9"),
        ("manifest.yaml", "cluster.yaml", "policies.yaml"),
        ("table.yaml", "seed: 7", "pods: {csv: nowhere.csv}"),
    ] {
        place.put(name, &usable.replace(from, to));
        let (_, of_run, code) = place.nodecast(&["run", name]);
        assert_eq!(code, Some(2), "{of_run}");
        let (out, err, code) = place.nodecast(&["validate", name]);
        assert_eq!((out.as_str(), err, code), ("", of_run, Some(2)), "{name}");
    }
    let (out, err, code) = place.nodecast(&["validate", "key.yaml", "scenario.yaml"]);
    assert!(out.contains("scenario.yaml: valid, no warnings"), "{out}");
    assert!(err.contains("key.yaml:4:1") && err.ends_with("1 of 2 scenarios cannot be run\n"), "{err}");
    assert_eq!(code, Some(2));
    let (out, _, code) = place.nodecast(&["validate", "key.yaml", "--format", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found[0]["usable"], &found[0]["error"]["line"], code), (&false.into(), &4.into(), Some(2)));
}

#[test]
fn strict_allows_no_warning() {
    let place = place();
    let (_, err, code) = place.nodecast(&["validate", "--strict", "scenario.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (out, err, code) = place.nodecast(&["validate", "--strict", "scenario.yaml", "policies.yaml"]);
    assert_eq!((err.as_str(), code), ("1 warning; --strict treats warnings as failures\n", Some(1)), "{out}");
}

#[test]
fn manifest_typos_warn_with_suggestions() {
    let place = Place::new();
    place.put("slips.yaml", SLIPS);
    let scenario = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("slips-scenario.yaml", &scenario.replace("[cluster.yaml]", "[slips.yaml]"));
    let (out, err, code) = place.nodecast(&["validate", "--quiet", "slips-scenario.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    insta::assert_snapshot!("slips", out);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn every_scenario_of_the_gallery_can_be_run() {
    let scenarios = scenarios();
    assert!(scenarios.len() > 10);
    let place = Place::new();
    let arguments: Vec<&str> =
        ["validate", "--quiet"].into_iter().chain(scenarios.iter().map(String::as_str)).collect();
    let (_, err, code) = place.nodecast(&arguments);
    assert_eq!((err.as_str(), code), ("", Some(0)));
}

/// Every scenario that is part of the project.
pub(crate) fn scenarios() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name == "scenario.yaml") {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn pods_fitting_no_type_warn_before_run() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let huge = std::fs::read_to_string(place.path("cluster.yaml")).unwrap();
    // The pool admits m5.large alone, with two CPUs of which the kubelet keeps some.
    place.put("cluster.yaml", &huge.replace("cpu: 500m", "cpu: 2"));
    let (out, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let told = format!("{out}{err}");
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("shop/web: each pod requests 2 CPUs and 256 MiB of memory"), "{told}");
    assert!(words.contains("so its pods stay pending"), "{told}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn no_line_is_wider_than_the_terminal() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/black-friday/scenario.yaml");
    let (scenario, _) = nodecast::scenario::load(&scenario).unwrap_or_else(|error| panic!("{}", error.render()));
    let (holds, _) = inspect(&scenario, Catalog::embedded().unwrap()).unwrap();
    for width in [100, 79, 60] {
        assert_fits(&table(&holds, None), &table(&holds, Some(width)), width);
    }
}
