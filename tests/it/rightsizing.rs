//! `nodecast rightsize`: its answer, and that its patches keep the promise.

use std::path::Path;
use std::process::Command;

use nodecast::recommend::rightsizing::RightSizing;

const SCENARIO: &str = "scenarios/right-sizing/scenario.yaml";
/// A little more than the shortest history that is gone by.
const LENGTH: &str = "duration=25h";

/// What the program answers, and its exit code.
fn nodecast(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_nodecast"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// The values of a patch as `--set` states them.
fn edit(patch: &str) -> String {
    let after = |key: &str| {
        let line = patch.lines().find(|line| line.trim_start().starts_with(key)).unwrap();
        line.split_once(": ").unwrap().1.to_owned()
    };
    let (kind, name, namespace) = (after("kind:"), after("name:"), after("namespace:"));
    let resources = patch.split_once("resources:\n").unwrap().1;
    let mut parts: Vec<String> = Vec::new();
    for line in resources.lines() {
        match line.trim().split_once(':').unwrap() {
            (part, "") => parts.push(format!("{part}: {{")),
            (name, amount) => parts.last_mut().unwrap().push_str(&format!("{name}: {}, ", amount.trim())),
        }
    }
    let parts: Vec<String> = parts.into_iter().map(|part| format!("{}}}", part.trim_end_matches(", "))).collect();
    format!("{kind}[{namespace}/{name}].spec.template.spec.containers[app].resources={{{}}}", parts.join(", "))
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn patches_applied_cost_what_the_table_promises() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("patches");
    let (out, err, code) = nodecast(&[
        "rightsize",
        SCENARIO,
        "--set",
        LENGTH,
        "--replications",
        "2",
        "--size",
        "p99",
        "--write",
        folder.to_str().unwrap(),
        "--format",
        "json",
        "--quiet",
    ]);
    assert_eq!(code, Some(0), "{err}");
    let answer: RightSizing = serde_json::from_str(&out).unwrap();
    assert_eq!(out, std::fs::read_to_string(folder.join("rightsizing.json")).unwrap());
    let names: Vec<&str> = answer.sizings.iter().map(|sizing| sizing.name.as_str()).collect();
    assert_eq!(names, ["today", "recommended", "p50", "p90", "p99"]);
    assert_eq!((answer.containers.len(), answer.workloads.len(), answer.left_alone.len()), (8, 8, 1));
    assert!(answer.left_alone[0].workload == "shop/legacy", "{:?}", answer.left_alone);
    let cost = |at: usize| answer.sizings[at].cost_per_month.unwrap();
    assert!(cost(1).mean < 0.9 * cost(0).mean, "{} of {}", cost(1).mean, cost(0).mean);
    let kills = |at: usize| answer.sizings[at].out_of_memory.unwrap().mean;
    assert!(kills(0).abs() < f64::EPSILON && kills(2) > kills(4), "half of the time is not enough memory");
    // Every patch is listed, and taken up by hand.
    let listed = std::fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
    let mut edits = vec![LENGTH.to_owned()];
    for line in listed.lines().filter_map(|line| line.trim().strip_prefix("- path: ")) {
        edits.push(edit(&std::fs::read_to_string(folder.join(line)).unwrap()));
    }
    assert_eq!(edits.len(), 9, "{edits:?}");
    let mut arguments =
        vec!["compare", SCENARIO, "--policies", "as-they-are", "--replications", "2", "--format", "json", "--quiet"];
    let out_folder = place.path().join("compared");
    arguments.extend(["--out", out_folder.to_str().unwrap()]);
    arguments.extend(edits.iter().flat_map(|edit| ["--set", edit.as_str()]));
    let (out, err, code) = nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let compared: nodecast::experiment::Comparison = serde_json::from_str(&out).unwrap();
    let comes_to = compared.figure(0, "cost_per_month").unwrap().mean.unwrap().mean;
    let promised = cost(4);
    assert!(promised.low.unwrap() <= comes_to && comes_to <= promised.high.unwrap(), "{comes_to}, {promised:?}");
}

#[test]
fn rightsize_rejects_foreign_output_directory() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("mine.txt"), "mine").unwrap();
    let folder = place.path().to_str().unwrap();
    let (out, err, code) = nodecast(&["rightsize", SCENARIO, "--write", folder]);
    assert!(code == Some(2) && out.is_empty() && err.contains("is not replaced"), "{code:?} {err}");
    assert!(Path::new(folder).join("mine.txt").exists());
}

#[test]
fn too_short_history_changes_nothing() {
    let (out, err, code) = nodecast(&[
        "rightsize",
        SCENARIO,
        "--set",
        "duration=2h",
        "--set",
        "warm_up=0s",
        "--replications",
        "1",
        "--quiet",
    ]);
    assert_eq!(code, Some(0), "{err}");
    insta::assert_snapshot!("too_short_a_history", out);
}

#[test]
fn page_is_written_and_named() {
    let place = tempfile::tempdir().unwrap();
    let page = |name: &str| {
        let file = place.path().join(name);
        let mut words =
            vec!["rightsize", SCENARIO, "--set", "duration=2h", "--set", "warm_up=0s", "--replications", "1"];
        words.extend(["--html", file.to_str().unwrap()]);
        let (_, err, code) = nodecast(&words);
        assert!(code == Some(0) && err.contains(&format!("page: {}", file.display())), "{err}");
        std::fs::read_to_string(file).unwrap()
    };
    let first = page("first.html");
    assert!(first.contains("No request changes: no container has enough usage data."), "{first}");
    assert_eq!(first, page("second.html"));
}

/// A Deployment of two containers of which `usage` names one alone.
const TWO_CONTAINERS: &str = "---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: x
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: x, resources: {requests: {cpu: 1500m, memory: 1Gi}, limits: {cpu: 3, memory: 2Gi}}}
      - {name: b, image: x, resources: {requests: {cpu: 200m, memory: 2Gi}}}
";

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn container_without_usage_is_not_resized() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("all.yaml"), TWO_CONTAINERS).unwrap();
    let scenario = "name: two\nregion: us-east-1\nduration: 25h\nreplications: 2\ncluster: {zones: [us-east-1a]}\nmanifests: [all.yaml]\nusage: [{workload: default/web, container: a, cpu: {constant: 0.3}, memory: {constant: 500}}]\n";
    std::fs::write(place.path().join("two.yaml"), scenario).unwrap();
    let [file, folder] = ["two.yaml", "patches"].map(|name| place.path().join(name).to_str().unwrap().to_owned());
    let arguments = ["rightsize", &file, "--write", &folder, "--format", "json", "--quiet"];
    let (out, err, code) = nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let answer: RightSizing = serde_json::from_str(&out).unwrap();
    let sized: Vec<&str> = answer.containers.iter().map(|container| container.container.as_str()).collect();
    assert_eq!(sized, ["a"]);
    let [alone] = &answer.left_alone[..] else { panic!("{:?}", answer.left_alone) };
    assert_eq!((alone.container.as_deref(), alone.why.as_str()), (Some("b"), "the scenario has no usage data for it"));
    assert!(answer.warnings.iter().any(|warning| warning.contains("recommends nothing for the container `b`")));
    let patch = std::fs::read_to_string(place.path().join("patches/deployment-default-web.yaml")).unwrap();
    assert!(patch.contains("- name: a\n") && !patch.contains("- name: b\n"), "{patch}");
    // Today each pod of 1.7 cores has a node of its own. With 350m + 200m for CPU and 600 MiB + 2 GiB for memory two share one of them.
    let cost = |at: usize| answer.sizings[at].cost_per_month.unwrap().mean;
    let of_nodes = |at: usize| cost(at) - 73.0;
    let ratio = of_nodes(1) / of_nodes(0);
    assert!((0.48..0.54).contains(&ratio), "{ratio}: {:?}", answer.sizings);
    let (out, err, code) = nodecast(&["rightsize", &file, "--replications", "1", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("skipped: Deployment default/web, container b: the scenario has no usage data for it"),
        "{out}"
    );
}
