//! `--set` and `--duration`: a run, a comparison and an explanation with an edit are those of the edited scenario.

use std::fs;

use crate::cli::Place;

const REPLICAS: &str = "Deployment[shop/web].spec.replicas=9";

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn edited_run_equals_run_of_edited_scenario() {
    let place = Place::new();
    let words = ["run", "scenario.yaml", "--set", REPLICAS, "--duration", "20m", "--out", "here", "--format", "json"];
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let summary = json(&out);
    assert_eq!((&summary["pods"]["created"], &summary["about"]["duration_seconds"]), (&9.into(), &1_200.0.into()));
    let page = fs::read_to_string(place.path("here/report.html")).unwrap();
    assert!(page.contains("--set &#39;Deployment[shop/web].spec.replicas=9&#39; --set duration=20m"), "no command");
    let cluster = fs::read_to_string(place.path("cluster.yaml")).unwrap();
    place.put("cluster.yaml", &cluster.replace("replicas: 2", "replicas: 9"));
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &scenario.replace("duration: 10m", "duration: 20m"));
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "there", "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(json(&out)["event_hash"], summary["event_hash"]);
}

#[test]
fn edited_comparison_can_be_sharded() {
    let place = Place::new();
    let words = ["compare", "scenario.yaml", "--set", REPLICAS, "--duration", "5m", "--replications", "2"];
    let compare = |more: &[&str]| {
        let (_, err, code) = place.nodecast(&[&words[..], more].concat());
        assert_eq!(code, Some(0), "{err}");
    };
    compare(&["--out", "whole"]);
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    let comparison = json(&read("whole/comparison.json"));
    assert_eq!(comparison["about"]["duration_seconds"], 300.0);
    assert_eq!(comparison["about"]["set"], serde_json::json!([REPLICAS, "duration=5m"]));
    let page = read("whole/comparison.html");
    assert!(page.contains("--set duration=5m"), "no command");
    assert!(read("whole/karpenter/report.html").contains("--set duration=5m"), "no command");
    assert_eq!(json(&read("whole/karpenter/summary.json"))["pods"]["created"], 9);
    for shard in ["1/2", "2/2"] {
        compare(&["--shard", shard, "--out", "parts"]);
    }
    let parts = ["parts/part-1-of-2.json", "parts/part-2-of-2.json"];
    let (_, err, code) = place.nodecast(&["merge", parts[0], parts[1], "--out", "merged"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(read("merged/comparison.json"), read("whole/comparison.json"));
}

#[test]
fn explain_with_edit_uses_edited_run() {
    let place = Place::new();
    let ask = |more: &[&str]| place.nodecast(&[&["explain", "scenario.yaml", "pod"], more].concat());
    let (_, err, code) = ask(&["web-00008"]);
    assert_eq!(code, Some(2), "{err}");
    let (out, err, code) = ask(&["web-00008", "--set", REPLICAS]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("web-00008"), "{out}");
    let (_, err, code) = ask(&["web-00000", "--at", "8m", "--duration", "5m"]);
    assert!(code == Some(2) && err.contains("8m"), "{err}");
}

#[test]
fn invalid_edit_is_shown_by_every_command() {
    let place = Place::new();
    let edit = "NodePool[default].spec.disruptoin=5";
    for command in [&["run"][..], &["compare"], &["explain"]] {
        let rest: &[&str] = if command == ["explain"] { &["pod", "web-00000"] } else { &[] };
        let (out, err, code) = place.nodecast(&[command, &["scenario.yaml", "--set", edit], rest].concat());
        assert_eq!((out.as_str(), code), ("", Some(2)), "{command:?}: {err}");
        assert!(err.contains("--set:1:24") && err.contains("did you mean `disruption`?"), "{command:?}: {err}");
        assert!(!place.path("reports").exists());
    }
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--duration", "5"]);
    let unit = "invalid value '5' for '--duration <TIME>': missing unit: use 5s, 5m, or 5h";
    assert!(code == Some(2) && err.contains(unit), "{err}");
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--duration", "5hours"]);
    assert!(code == Some(2) && err.contains("is not a duration; use for example 30s, 5m, 1h30m, or 7d"), "{err}");
    for seed in ["-1", "one", "18446744073709551616"] {
        let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--seed", seed]);
        let range = "a seed is a whole number from 0 to 18446744073709551615";
        assert!(code == Some(2) && err.contains(range), "{seed}: {err}");
    }
    let both = ["run", "scenario.yaml", "--duration", "5m", "--set", "duration=6m"];
    let (_, err, code) = place.nodecast(&both);
    assert!(code == Some(2) && err.contains("both set the duration"), "{err}");
}

#[test]
fn pod_trace_after_shortened_run_warns() {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &format!("{scenario}pods: {{csv: trace.csv}}\n"));
    place.put("trace.csv", "create_s,cpu_milli,memory_mib\n480,100,128\n");
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "here"]);
    assert!(code == Some(0) && !out.contains("is not reached"), "{out}{err}");
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--duration", "5m", "--out", "here"]);
    assert_eq!(code, Some(0), "{err}");
    let warning = "the first pod of the trace at 8m never happens: the run ends at 5m";
    assert!(out.contains(warning), "{out}");
    place.put("trace.csv", "create_s,cpu_milli,memory_mib\n");
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "here"]);
    assert!(code == Some(2) && err.contains("there is no pod in this file"), "{err}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn edit_without_effect_warns_in_every_command() {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put(
        "pause.yaml",
        &fs::read_to_string(place.path("cluster.yaml")).unwrap().replace("name: web", "name: pause"),
    );
    let policies = "policies:\n  - {name: plain, autoscaler: karpenter}\n  - {name: paused, autoscaler: karpenter, manifests: [pause.yaml]}\n";
    place.put("scenario.yaml", &format!("{scenario}{policies}"));
    let ask = |words: &[&str]| {
        let (out, err, code) = place.nodecast(words);
        assert_eq!(code, Some(0), "{words:?}: {err}");
        // Lines of the table are cut where the screen ends.
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let idle = "Deployment[shop/pause].spec.replicas=5";
    let warning = |policies: &str| format!("`--set {idle}` has no effect in {policies}");
    let one = warning("the policy that runs (plain)");
    let out = ask(&["run", "scenario.yaml", "--set", idle, "--out", "a"]);
    assert!(out.contains(&one), "{out}");
    let out = ask(&["diff", "scenario.yaml", "--set", idle, "--replications", "1"]);
    assert!(out.contains(&one), "{out}");
    let compare = ["compare", "scenario.yaml", "--replications", "1", "--out", "b", "--set", idle];
    assert!(ask(&[&compare[..], &["--policies", "plain"]].concat()).contains(&one));
    assert!(!ask(&compare).contains("has no effect"), "one of the policies has it");
    let axis = "Deployment[shop/pause].spec.replicas=0,4";
    let sweep = ["sweep", "scenario.yaml", "--replications", "1", "--out", "c", "--set", axis];
    let none = "no value of `Deployment[shop/pause].spec.replicas` has any effect in";
    assert!(ask(&sweep).contains(&format!("{none} the policy that runs (plain)")), "{}", ask(&sweep));
    assert!(!ask(&[&sweep[..], &["--policies", "paused"]].concat()).contains("no value of"));
    // What is so already is no change either; an objective judges, and is one.
    let same = "Deployment[shop/web].spec.replicas=2";
    assert!(ask(&["run", "scenario.yaml", "--set", same, "--out", "a"]).contains("has no effect"));
    let judged = "objectives.cost=5";
    assert!(!ask(&["run", "scenario.yaml", "--set", judged, "--out", "a"]).contains("has no effect"));
    // Nothing of the cluster looks at an Ingress, but the bill does: at the start and later.
    let ingress = |name: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}}}\nspec: {{ingressClassName: alb}}\n"
        )
    };
    place.put("front.yaml", &ingress("docs"));
    place.put("later.yaml", &ingress("help"));
    let scenario = scenario.replace("[cluster.yaml]", "[cluster.yaml, front.yaml]");
    place.put("scenario.yaml", &format!("{scenario}timeline: [{{at: 5m, manifests: [later.yaml]}}]\n"));
    for name in ["docs", "help"] {
        let edit = format!("Ingress[{name}].spec.ingressClassName=nginx");
        assert!(!ask(&["run", "scenario.yaml", "--set", &edit, "--out", "a"]).contains("has no effect"), "{name}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn simulating_commands_accept_duration_and_policy_options() {
    let place = Place::new();
    let ask = |words: &[&str]| {
        let (out, err, code) = place.nodecast(words);
        assert_eq!(code, Some(0), "{words:?}: {err}");
        out
    };
    let lasts = |words: &[&str]| {
        let more = ["--duration", "5m", "--format", "json", "--quiet"];
        json(&ask(&[words, &more].concat()))["about"]["duration_seconds"].clone()
    };
    assert_eq!(lasts(&["run", "scenario.yaml", "--policies", "karpenter", "--out", "a"]), serde_json::json!(300.0));
    assert_eq!(
        lasts(&["compare", "scenario.yaml", "--policy", "karpenter", "--replications", "1", "--out", "b"]),
        serde_json::json!(300.0)
    );
    let diff = ["diff", "scenario.yaml", "--set", REPLICAS, "--policies", "karpenter", "--replications", "1"];
    assert_eq!(lasts(&diff), serde_json::json!(300.0));
    ask(&[&diff[..], &["--duration", "5m", "--html", "diff.html"]].concat());
    let page = fs::read_to_string(place.path("diff.html")).unwrap();
    assert!(page.contains("--policy karpenter --duration 5m"), "{page}");
    ask(&["explain", "scenario.yaml", "pod", "web-00000", "--policies", "karpenter", "--duration", "5m"]);
    let axis = "Deployment[shop/web].spec.replicas=2,9";
    let sweep = ["sweep", "scenario.yaml", "--set", axis, "--policy", "karpenter", "--replications", "1"];
    assert_eq!(lasts(&[&sweep[..], &["--out", "c"]].concat()), serde_json::json!(300.0));
    let written = fs::read_to_string(place.path("c/sweep.json")).unwrap();
    let page = fs::read_to_string(place.path("c/sweep.html")).unwrap();
    assert!(page.contains("--duration 5m"), "no command");
    for shard in ["1/2", "2/2"] {
        ask(&[&sweep[..], &["--duration", "5m", "--shard", shard, "--out", "parts"]].concat());
    }
    ask(&["merge", "parts/part-1-of-2.json", "parts/part-2-of-2.json", "--out", "merged"]);
    assert_eq!(fs::read_to_string(place.path("merged/sweep.json")).unwrap(), written);
    let both = [&sweep[..], &["--duration", "5m", "--set", "duration=5m,6m"]].concat();
    let (_, err, code) = place.nodecast(&both);
    assert!(
        code == Some(2) && err.contains("`--duration 5m` and `--set duration=5m,6m` both set the duration"),
        "{err}"
    );
}

#[test]
fn check_uses_baseline_duration_and_rejects_others() {
    let place = Place::new();
    let check = |more: &[&str]| place.nodecast(&[&["check", "--baseline", "baseline.json"], more].concat());
    let baseline = || json(&fs::read_to_string(place.path("baseline.json")).unwrap());
    let (_, err, code) = check(&["--update", "scenario.yaml", "--replications", "1", "--duration", "5m"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(baseline()["scenarios"][0]["duration"], "5m");
    for more in [&[][..], &["--duration", "5m"]] {
        let (out, err, code) = check(more);
        assert!(code == Some(0) && err.contains("of 5m") && out.contains("none worse"), "{out}{err}");
    }
    let (out, err, code) = check(&["--duration", "6m"]);
    assert_eq!((out.as_str(), code), ("", Some(2)), "{err}");
    let words: Vec<&str> = err.split_whitespace().filter(|word| !["│", "|"].contains(word)).collect();
    let said = words.join(" ");
    assert!(said.contains("has figures of 5m of `scenario.yaml`, and `--duration` asks for 6m"), "{said}");
    assert!(said.contains("--update --duration 6m scenario.yaml"), "{said}");
    let (_, err, code) = check(&["--duration", "5m", "--set", "duration=5m"]);
    assert!(code == Some(2) && err.contains("both set the duration"), "{err}");
    // As long as the scenario says is nothing to write down.
    let (_, err, code) = check(&["--update", "scenario.yaml", "--duration", "10m"]);
    assert!(code == Some(0) && err.contains("of 10m"), "{err}");
    assert!(baseline()["scenarios"][0].get("duration").is_none());
    let (_, err, code) = check(&["--duration", "5m"]);
    assert!(code == Some(2) && err.contains("has figures of 10m"), "{err}");
}

const PAUSE: &str = "{apiVersion: apps/v1, spec: {replicas: 3, selector: {matchLabels: {app: pause}}, template: {metadata: {labels: \
                     {app: pause}}, spec: {containers: [{name: pause, image: pause}]}}}}";

#[test]
fn complete_object_edit_adds_or_replaces() {
    let place = Place::new();
    let created = |edits: &[&str]| {
        let mut words = vec!["run", "scenario.yaml", "--duration", "5m", "--out", "here", "--format", "json"];
        edits.iter().for_each(|edit| words.extend(["--set", edit]));
        let (out, err, code) = place.nodecast(&words);
        assert_eq!(code, Some(0), "{err}");
        json(&out)["pods"]["created"].as_u64()
    };
    let before = created(&[]);
    let (added, other) = (format!("Deployment[shop/pause]={PAUSE}"), format!("Deployment[shop/web]={PAUSE}"));
    assert_eq!(created(&[&added]), before.map(|count| count + 3));
    // Later changes of it find it.
    assert_eq!(created(&[&added, "Deployment[shop/pause].spec.replicas=5"]), before.map(|count| count + 5));
    let without = created(&["Deployment[shop/web].spec.replicas=0"]);
    assert_eq!(created(&[&other]), without.map(|count| count + 3));
}

#[test]
fn complete_object_edit_must_match_path() {
    let place = Place::new();
    let refused = |edit: &str| {
        let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--set", edit]);
        assert_eq!(code, Some(2), "{edit}: {err}");
        err
    };
    insta::assert_snapshot!(
        [
            "Deployment[shop/pause]=5",
            "Deployment[*]={apiVersion: apps/v1}",
            "Deployment[shop/pause]={apiVersion: apps/v1, kind: StatefulSet}",
            "Deployment[shop/pause]={apiVersion: apps/v1, metadata: {name: other}}",
            "Deployment[shop/pause]={apiVersion: apps/v1, spec: {replicas: many}}",
            "Widget[shop/pause]={apiVersion: example.com/v1, spec: {}}",
        ]
        .map(refused)
        .join("\n")
    );
}

#[test]
fn edit_applies_where_it_fits() {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put(
        "scenario.yaml",
        &format!(
            "{scenario}policies:\n- {{name: own, autoscaler: karpenter}}\n\
             - {{name: auto, autoscaler: eks-auto-mode, manifests: [auto.yaml]}}\n"
        ),
    );
    place.put(
        "auto.yaml",
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec: {template: {spec: {\
         nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}, requirements: [\
         {key: eks.amazonaws.com/instance-family, operator: In, values: [m6i]}]}}}\n",
    );
    let requirements = "NodePool[default].spec.template.spec.requirements";
    let edit = format!(
        "{requirements}=[{{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}, \
         {{key: karpenter.k8s.aws/instance-family, operator: In, values: [c6i]}}]"
    );
    let run = |policy: &str, edit: &str| {
        place.nodecast(&["run", "scenario.yaml", "--policy", policy, "--set", edit, "--format", "json"])
    };
    let (out, err, code) = run("own", &edit);
    assert_eq!(code, Some(0), "{err}");
    assert!(json(&out)["cost"]["by_family"].to_string().contains("c6i"), "{out}");
    assert!(out.contains("not changed in auto.yaml: ") && out.contains("EKS Auto Mode refuses the label"), "{out}");
    let (_, err, code) = run("own", &format!("{requirements}[karpenter.k8s.aws/instance-memory].values=[\"1\"]"));
    // Whatever the width of the lines is.
    let words: Vec<&str> = err.split_whitespace().filter(|word| !["|", "\u{2502}"].contains(word)).collect();
    assert!(code != Some(0) && words.join(" ").contains("the list has no item"), "{err}");
}
