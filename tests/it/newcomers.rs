//! What newcomers get wrong: each mistake is answered with its place and the way out.

use crate::cli::Place;

/// What the program says on stderr to `arguments`, which it refuses as bad input.
fn refused(place: &Place, arguments: &[&str]) -> String {
    let (out, err, code) = place.nodecast(arguments);
    assert_eq!((out.as_str(), code), ("", Some(2)), "{arguments:?}: {err}");
    // A long message is broken into lines.
    err.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ")
}

/// What `validate` says of the scenario, which can be run.
fn warned(place: &Place) -> String {
    let (out, err, code) = place.nodecast(&["validate", "scenario.yaml", "--quiet"]);
    assert_eq!((err.as_str(), code), ("", Some(0)), "{out}");
    out
}

/// The scenario of [`Place`] with more keys, and more objects in its manifests.
fn place(keys: &str, objects: &str) -> Place {
    let place = Place::new();
    for (file, more) in [("scenario.yaml", keys), ("cluster.yaml", objects)] {
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        place.put(file, &format!("{text}{more}"));
    }
    place
}

#[test]
fn edit_of_unknown_key_fails_before_run() {
    let place = Place::new();
    for (edit, words) in [
        ("NodePool[default].spec.disrupton.consolidateAfter=5m", "unknown key `disrupton` in a NodePool's spec"),
        ("NodePool[default].spec.disrupton.consolidateAfter=5m", "did you mean `disruption`?"),
        ("NodePool[default].spec.disruption={consolidateAftr: 5m}", "did you mean `consolidateAfter`?"),
        ("NodePool[default].spec.colour=red", "a NodePool's spec may have `template`"),
        ("NodePool[defalt].spec.weight=5", "no NodePool named `defalt` in the manifests"),
        ("NodePool[defalt].spec.weight=5", "did you mean `NodePool[default]`? they hold `default`"),
        (
            "NodePol[default].spec.weight=5",
            "did you mean `NodePool`? they hold `Deployment`, `EC2NodeClass` and `NodePool`",
        ),
        ("duratoin=5m", "did you mean `duration`?"),
    ] {
        for command in ["diff", "sweep"] {
            let err = refused(&place, &[command, "scenario.yaml", "--set", edit]);
            assert!(err.contains(words), "{command} {edit}: {err}");
            assert!(!place.path("reports").exists());
        }
    }
}

#[test]
fn edit_of_unsimulated_object_is_rejected() {
    let policy = "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\n";
    let err = refused(&place("", policy), &["diff", "scenario.yaml", "--set", "NetworkPolicy[web].spec.x=1"]);
    assert!(err.contains("`NetworkPolicy[web].spec.x` has no effect: this kind is not simulated"), "{err}");
}

#[test]
fn shorter_run_warns_about_unreached_steps() {
    let later = "timeline: [{at: 8m, scale: {workload: shop/web, replicas: 3}}]\nfaults: [{at: 9m, spot_interruption: {fraction: 1}}]\n";
    let place = place(later, "");
    assert_eq!(warned(&place), "");
    let (_, err, code) = place.nodecast(&["diff", "scenario.yaml", "--set", "duration=5m", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    let scenario = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &scenario.replace("duration: 10m", "duration: 5m"));
    let said = warned(&place);
    for words in [
        "warning: scenario.yaml:7:17: the step at 8m never happens: the run ends at 5m",
        "warning: scenario.yaml:8:15: the fault at 9m never happens: the run ends at 5m",
        "help: raise `duration` if it is to happen",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn warnings_about_objects_say_where_these_stand() {
    let objects = "\
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: front, namespace: shop}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: front}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: other}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gone}, requirements: []}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: batch}
spec:
  schedule: \"0 * * * *\"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
";
    let place = place("", objects);
    let cluster = std::fs::read_to_string(place.path("cluster.yaml")).unwrap();
    let line = |words: &str| cluster.lines().position(|line| line.contains(words)).unwrap() + 1;
    let said = warned(&place);
    for (object, column, words) in [
        (
            "name: front, namespace",
            18,
            "HorizontalPodAutoscaler shop/front has no target: Deployment front does not exist",
        ),
        ("name: other", 18, "NodePool other names the node class `gone`, which no manifest defines"),
        ("name: report", 18, "unknown run time for pods of CronJob batch/report: assuming 1 minute"),
    ] {
        let wanted = format!("warning: cluster.yaml:{}:{column}: {words}", line(object));
        assert!(said.contains(&wanted), "{wanted}\n{said}");
    }
}

#[test]
fn missing_baseline_error_has_no_errno() {
    let place = Place::new();
    let err = refused(&place, &["check", "--baseline", "missing.json"]);
    assert!(err.contains("cannot read the baseline `missing.json`: there is no such file"), "{err}");
    assert!(err.contains("nodecast check --baseline missing.json --update SCENARIO..."), "{err}");
    for arguments in [
        &["check", "--baseline", "missing.json"][..],
        &["merge", "part-1-of-2.json"],
        &["pack", "--suite", "nowhere"],
        &["run", "nowhere.yaml"],
        &["run", "scenario.yaml", "--pricing-data", "nowhere"],
        &["pricing", "import", "--out", "own", "nowhere.json"],
        &["init", "own", "--from", "nowhere.yaml"],
    ] {
        let err = refused(&place, arguments);
        assert!(
            !err.contains("os error") && err.contains("nowhere") | err.contains("missing") | err.contains("part-1"),
            "{err}"
        );
    }
}

/// What the program says of the scenario with the first `old` of a file replaced.
fn spoilt(file: &str, old: &str, new: &str) -> String {
    let place = place("load: [{workload: shop/web, requests: {constant: 5}, service: {cpu_per_request: 5ms}}]\n", "");
    let text = std::fs::read_to_string(place.path(file)).unwrap();
    assert!(text.contains(old), "{old}");
    place.put(file, &text.replacen(old, new, 1));
    refused(&place, &["validate", "scenario.yaml"])
}

#[test]
fn dangling_reference_error_suggests_name() {
    let err = spoilt("cluster.yaml", "kind: Deployment", "kind: Deploymnet");
    assert!(err.contains("no Deployment or StatefulSet is called `shop/web`"), "{err}");
    assert!(err.contains("cluster.yaml:18:7 has an unknown kind `Deploymnet`"), "{err}");
    let err = spoilt("scenario.yaml", "workload: shop/web", "workload: web");
    assert!(err.contains("did you mean `shop/web`?"), "{err}");
    let err = spoilt("cluster.yaml", "cpu: 500m", "cpus: 500m");
    assert!(err.contains("a container can have no resource `cpus`") && err.contains("did you mean `cpu`?"), "{err}");
    let err = spoilt("scenario.yaml", "cpu_per_request: 5ms", "cpu_per_request: 5");
    assert!(err.contains("add its unit, for example `5ms`; the units are"), "{err}");
    let err = spoilt("scenario.yaml", "duration: 10m", "duration: 24");
    assert!(err.contains("add its unit, for example `24h`") && !err.contains("24s"), "{err}");
    let err =
        spoilt("scenario.yaml", "seed: 7", "seed: 7\ntimeline: [{at: 5, scale: {workload: shop/web, replicas: 1}}]");
    assert!(err.contains("add its unit: `ms`, `s`, `m`, `h` or `d`"), "{err}");
    let err = spoilt("scenario.yaml", "seed: 7", "seed: 7\nversions: {karpenter: v1.15}");
    assert!(err.contains("write `versions: { karpenter: v1.14 }`, the nearest that is reproduced; known are"), "{err}");
}

#[test]
fn error_in_edit_points_into_edit() {
    let place = place(
        "load: [{workload: shop/web, requests: {constant: 5}, service: {cpu_per_request: 5ms, concurrency: 8}}]\n",
        "",
    );
    let refused = |edit: &str| place.nodecast(&["diff", "scenario.yaml", "--set", "seed=8", "--set", edit]).1;
    for (edit, column) in [
        ("NodePool[default].spec.disruption.consolidateAfter=5", 52),
        ("NodePool[default].spec.disruption={consolidateAfter: 5}", 54),
        ("NodePool[default].spec.disruptoin=5", 24),
        ("load[web].service.cpu_per_request=20", 35),
    ] {
        let err = refused(edit);
        let line = err.lines().find(|line| line.contains("1 | ")).unwrap_or_default();
        assert!(err.contains(&format!("--set:1:{column}")) && line.ends_with(edit), "{edit}: {err}");
    }
    let err = refused("load[api].service.cpu_per_request=20ms");
    assert!(err.contains("the list has no item `api`") && err.contains("it has `shop/web`"), "{err}");
}

#[test]
fn time_accepts_duration_clock_or_date() {
    let place = Place::new();
    let asked = |node: &str, at: &str| place.nodecast(&["explain", "scenario.yaml", "node", node, "--at", at]);
    let nodes = place.nodecast(&["run", "scenario.yaml", "--out", "out"]);
    assert_eq!(nodes.2, Some(0), "{}", nodes.1);
    let table = std::fs::read_to_string(place.path("out/nodes.csv")).unwrap();
    let node = table.lines().nth(1).and_then(|line| line.split(',').next()).unwrap();
    let first = asked(node, "9m");
    assert_eq!(first.2, Some(0), "{}", first.1);
    for form in ["00:09", "2026-11-27T01:09+01:00", "27 Nov 00:09"] {
        assert_eq!(asked(node, form), first, "{form}");
    }
    for (form, words) in [
        ("noon", "`noon` is not a time"),
        ("2026-11-26 23:00", "`2026-11-26 23:00` is before the start of the run"),
        ("", "the clock, `00:05:00`, or date and time, `2026-11-27T00:05:00Z`"),
        ("00:11", "the run ends 10m after start (00:10), before 11m after start (00:11)"),
    ] {
        let said = refused(&place, &["explain", "scenario.yaml", "node", node, "--at", form]);
        assert!(said.contains(words), "{form}: {said}");
    }
    let said = refused(&place, &["explain", "scenario.yaml", "node", node, "--at", "0s"]);
    assert!(said.contains("is not there 0 s after start (00:00)") && said.contains("it is there from "), "{said}");
}

#[test]
fn manifest_given_as_scenario_is_recognised() {
    let err = refused(&Place::new(), &["run", "cluster.yaml"]);
    assert!(err.contains("this file contains Kubernetes objects, not a scenario"), "{err}");
    let err = refused(&place("objectives: {cost: $400}\n", ""), &["run", "scenario.yaml"]);
    assert!(err.contains("write a number in the currency of the region"), "{err}");
}

#[test]
fn sweep_lists_settings_and_marks_pareto_front() {
    let place = place("ec2: { launch_latency: { spread: false } }\n", "");
    let (out, err, code) = place.nodecast(&[
        "sweep",
        "scenario.yaml",
        "--replications",
        "1",
        "--set",
        "NodePool[default].spec.template.spec.requirements[node.kubernetes.io/instance-type].values=[m5.large],[m5.4xlarge]",
    ]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.starts_with("running 2 simulations of 10m each\n"), "{err}");
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with("karpenter ")).collect();
    let [small, large] = rows[..] else { panic!("two settings: {out}") };
    assert!(small.ends_with('*') && !large.ends_with('*'), "{out}");
    assert!(
        out.contains(": Cheapest: policy karpenter, ") && out.contains("One replication gives no confidence interval"),
        "{out}"
    );
    assert!(out.contains("\n* Pareto-optimal: no other setting is both cheaper and faster"), "{out}");
}
