//! The packing-quality suite: it is what its generator writes, and packing that gets worse is noticed.

use std::path::Path;

use serde_json::Value;

use crate::cli::Place;

fn suite(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/packing").join(path)
}

/// A folder with two small instances of the suite.
fn small_suite() -> Place {
    let place = Place::new();
    for file in ["cluster.yaml", "nodepool.yaml", "daemonset.yaml"] {
        place.put(&format!("suite/{file}"), &std::fs::read_to_string(suite(file)).unwrap());
    }
    for file in ["social-network/pods.csv", "mixed-sizes-500/deployments.yaml"] {
        place.put(&format!("suite/{file}"), &std::fs::read_to_string(suite(file)).unwrap());
    }
    place
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn synthetic_instances_are_what_the_generator_writes() {
    for (path, content) in agreement::packing_suite::files() {
        let committed = std::fs::read_to_string(suite(&path)).unwrap_or_default();
        assert!(
            committed == content,
            "scenarios/packing/{path}: cargo run --example generate-packing-suite -- scenarios/packing"
        );
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn packing_is_no_worse_than_the_committed_baseline() {
    let place = Place::new();
    let (folder, baseline) = (suite(""), suite("baseline.json"));
    let arguments = ["pack", "--suite", folder.to_str().unwrap(), "--baseline", baseline.to_str().unwrap()];
    let (out, err, code) = place.nodecast(&[&arguments[..], &["--tolerance", "0", "--time-limit", "0"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.ends_with("\nnot worse than the baseline\n"), "{out}");
}

#[test]
fn costlier_packing_fails_unless_within_tolerance() {
    let place = small_suite();
    let written = place.nodecast(&["pack", "--suite", "suite", "--write-baseline", "baseline.json"]);
    assert_eq!(written.2, Some(0), "{}", written.1);
    let before = std::fs::read_to_string(place.path("baseline.json")).unwrap();
    let same = place.nodecast(&["pack", "--suite", "suite", "--baseline", "baseline.json", "--tolerance", "0"]);
    assert_eq!(same.2, Some(0), "{}{}", same.0, same.1);
    // The instance as it was when packing was four percent cheaper.
    let mut better = json(&before);
    let cost = better["instances"][0]["per_hour"].as_f64().unwrap();
    better["instances"][0]["per_hour"] = Value::from(cost * 0.96);
    place.put("better.json", &better.to_string());
    let (out, err, code) = place.nodecast(&["pack", "--suite", "suite", "--baseline", "better.json"]);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(
        out.contains("worse: mixed-sizes-500 costs ") && err.contains("packing got worse: mixed-sizes-500"),
        "{err}"
    );
    let wide = ["pack", "--suite", "suite", "--baseline", "better.json", "--tolerance", "5"];
    assert_eq!(place.nodecast(&wide).2, Some(0));
}

#[test]
fn missing_instance_or_pending_pods_are_worse() {
    let place = small_suite();
    place.nodecast(&["pack", "--suite", "suite", "--write-baseline", "baseline.json"]);
    let baseline = std::fs::read_to_string(place.path("baseline.json")).unwrap();
    place.put("suite/social-network/pods.csv", "name,replicas,cpu,memory\nweb,3,200,1Gi\n");
    place.put("gone.json", &baseline.replace("mixed-sizes-500", "mixed-sizes-400"));
    let arguments = ["pack", "--suite", "suite", "--baseline", "gone.json", "--format", "json"];
    let (out, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(1), "{err}");
    let changes: Vec<String> = json(&out)["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| format!("{} {} {}", change["worse"], change["instance"], change["what"]))
        .collect();
    assert_eq!(
        changes,
        [
            "false \"mixed-sizes-500\" \"is new: the baseline does not know it\"",
            "true \"social-network\" \"leaves 3 pods pending, 0 before\"",
            "true \"mixed-sizes-400\" \"is in the baseline but not in the suite\"",
        ]
    );
}

#[test]
fn worse_packer_than_baseline_is_detected() {
    let place = small_suite();
    let suite = ["pack", "--suite", "suite"];
    let cheap = place.nodecast(&[&suite[..], &["--packer", "cost-aware", "--write-baseline", "cheap.json"]].concat());
    assert_eq!(cheap.2, Some(0), "{}", cheap.1);
    let same = [&suite[..], &["--packer", "cost-aware", "--baseline", "cheap.json", "--tolerance", "0"]].concat();
    assert_eq!(place.nodecast(&same).2, Some(0));
    let (out, _, code) = place.nodecast(&[&suite[..], &["--baseline", "cheap.json"]].concat());
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("worse: mixed-sizes-500 costs"), "{out}");
}

#[test]
fn cost_aware_packing_needs_known_release_rules() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/eks-101");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        place.put(&format!("eks/{name}"), &std::fs::read_to_string(&path).unwrap());
    }
    let scenario = std::fs::read_to_string(place.path("eks/scenario.yaml")).unwrap();
    let policy = |release: &str| {
        let text = format!(
            "policies:\n  - name: cheaper\n    autoscaler: karpenter\n    packer: cost-aware\n    versions: {{ karpenter: {release} }}\n    manifests: [nodepool.yaml]\n"
        );
        scenario.replacen("policies:\n", &text, 1)
    };
    place.put("eks/new.yaml", &policy("v1.13"));
    place.put("eks/old.yaml", &policy("v0.6"));
    let (out, err, code) = place.nodecast(&["run", "eks/new.yaml", "--policy", "cheaper", "--out", "new"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("policy cheaper"), "{out}");
    let (_, err, code) = place.nodecast(&["run", "eks/old.yaml", "--policy", "cheaper", "--out", "old"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("does not support Karpenter v0.6.3"), "{err}");
}

#[test]
fn suite_without_shared_files_shows_their_location() {
    let place = small_suite();
    let told = |place: &Place| place.nodecast(&["pack", "--suite", "suite"]).1.replace('\n', " ");
    place.put("suite/mixed-sizes-500/nodepool.yaml", &std::fs::read_to_string(suite("nodepool.yaml")).unwrap());
    for file in ["nodepool.yaml", "daemonset.yaml"] {
        std::fs::remove_file(place.path(&format!("suite/{file}"))).unwrap();
    }
    let shared = told(&place);
    assert!(shared.contains("there is no NodePool") && !shared.contains("all instances share"), "{shared}");
    std::fs::remove_file(place.path("suite/cluster.yaml")).unwrap();
    let alone = told(&place);
    assert!(
        alone.contains("no region given or found in the files") && alone.contains("all instances share"),
        "{alone}"
    );
}

#[test]
fn missing_suite_or_baseline_is_reported() {
    let place = small_suite();
    place.put("broken.json", "{}");
    place.put("empty/README.md", "");
    for (arguments, words) in [
        (&["--suite", "nowhere"][..], "nowhere: "),
        (&["--suite", "empty"], "no folder with manifests or tables"),
        (&["--suite", "suite", "--baseline", "broken.json"], "broken.json: missing field"),
        (&["--suite", "suite", "--baseline", "broken.json", "--tolerance=-1"], "`-1` is no percentage"),
        (&["--suite", "suite", "cluster.yaml"], "cannot be used with"),
        (&["cluster.yaml", "--baseline", "broken.json"], "cannot be used with"),
        (&["cluster.yaml", "--write-baseline", "new.json"], "cannot be used with"),
    ] {
        let (out, err, code) = place.nodecast(&[&["pack"], arguments].concat());
        assert_eq!((out.as_str(), code), ("", Some(2)), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}

#[test]
fn suite_json_keys_match_documentation() {
    let documentation = include_str!("../../docs/outputs.md");
    let place = small_suite();
    place.nodecast(&["pack", "--suite", "suite", "--write-baseline", "baseline.json"]);
    let changed = std::fs::read_to_string(place.path("baseline.json")).unwrap().replace("social", "old");
    place.put("changed.json", &changed);
    let arguments = ["pack", "--suite", "suite", "--baseline", "changed.json", "--format", "json"];
    let answer = json(&place.nodecast(&arguments).0);
    let inner = ["/instances/0", "/changes/0"]
        .into_iter()
        .flat_map(|part| answer.pointer(part).unwrap().as_object().unwrap().keys());
    for key in answer.as_object().unwrap().keys().chain(inner) {
        let names = [format!("`{key}`"), format!("`{key}[]`")];
        assert!(names.iter().any(|name| documentation.contains(name)), "docs/outputs.md does not explain `{key}`");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn the_guard_of_scenarios_guards_suites_too() {
    let place = small_suite();
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let (_, err, code) = check(&["--update", "suite"]);
    assert_eq!(code, Some(0), "{err}");
    let (out, err, code) = check(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("metrics, none worse"), "{out}");
    let (_, err, code) = check(&["--set", "seed=2"]);
    assert!(code == Some(2) && err.contains("is a packing suite"), "{err}");
    // A pool that may launch only large machines packs few pods badly.
    let pool = std::fs::read_to_string(suite("nodepool.yaml")).unwrap();
    let large = pool.replace("operator: Lt, values: [\"97\"]", "operator: Gt, values: [\"63\"]");
    assert_ne!(pool, large);
    place.put("suite/nodepool.yaml", &large);
    let (out, _, code) = check(&[]);
    assert_eq!(code, Some(1), "{out}");
    for policy in ["mixed-sizes-500 (karpenter)", "mixed-sizes-500 (cost-aware)"] {
        let told = out.lines().find(|line| line.contains(policy) && line.contains("cost per hour"));
        assert!(told.is_some_and(|line| line.ends_with("WORSE")), "{out}");
    }
}
