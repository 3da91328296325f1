//! Inputs that other tools write: wrapped logs, empty manifests, records of another time, configuration inside a ConfigMap; and `--set` that
//! appends to lists.

use crate::cli::Place;

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template: {metadata: {labels: {app: api}}, spec: {containers: [{name: own, resources: {requests: {cpu: 500m, memory: 512Mi}}}]}}
";
const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: burst}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: burst}
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m6i]}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: burst}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";

/// A scenario of five minutes with these manifests and this load.
fn scenario(manifests: &str, load: &str) -> Place {
    let place = Place::new();
    place.put("web.yaml", WEB);
    place.put("pool.yaml", POOL);
    place.put("empty.yaml", "# disabled for now\n---\n# nothing here\n");
    place.put(
        "scenario.yaml",
        &format!("name: odd\nregion: eu-west-1\nstart: 2026-11-02T00:00:00Z\nduration: 5m\nmanifests: [{manifests}]\npolicies: [{{name: k, autoscaler: karpenter}}]\n{load}"),
    );
    place
}

fn unbroken(text: &str) -> String {
    text.split_whitespace().filter(|word| !["│", "|"].contains(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn manifest_without_objects_is_a_warning() {
    let (out, err, code) = scenario("pool.yaml, web.yaml, empty.yaml", "").nodecast(&["validate", "scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(unbroken(&(out + &err)).contains("`empty.yaml` holds no object"));
    let place = scenario("empty.yaml", "");
    let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &text.replace("autoscaler: karpenter", "autoscaler: static"));
    let (_, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
    assert!(
        code == Some(2) && unbroken(&err).contains("`empty.yaml` holds no object, and no other manifest does"),
        "{err}"
    );
}

#[test]
fn record_of_another_time_tells_both_times() {
    let entry = |more: &str| {
        format!(
            "load: [{{workload: shop/api, requests: {{csv: r.csv, column: rps, values: rates{more}}}, service: {{cpu_per_request: 10ms, concurrency: 4}}}}]\n"
        )
    };
    let said = |start: &str, more: &str| {
        let place = scenario("pool.yaml, web.yaml", &entry(more));
        place.put("r.csv", &format!("time,rps\n{start},5\n2026-11-02T07:01:00Z,6\n2026-11-02T07:02:00Z,6\n"));
        let (out, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
        assert_eq!(code, Some(0), "{err}");
        unbroken(&(out + &err))
    };
    let moved = said("2026-11-02T07:00:00Z", "");
    assert!(moved.contains("is of 2026-11-02T07:00:00Z, and its load starts at 2026-11-02T00:00:00Z"), "{moved}");
    assert!(moved.contains("`start: 2026-11-02T07:00:00Z`"), "{moved}");
    assert!(!said("2026-11-02T00:00:00Z", "").contains("is moved"));
    assert!(!said("2026-11-02T07:00:00Z", ", shift: 1m").contains("is moved"));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn set_appends_to_lists_in_every_command() {
    let place = scenario("pool.yaml, web.yaml", "");
    let requirement = "NodePool[burst].spec.template.spec.requirements[+]={key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}";
    let load =
        "load[+]={workload: shop/api, requests: {constant: 3}, service: {cpu_per_request: 10ms, concurrency: 4}}";
    let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", "--set", requirement, "--set", load]);
    assert_eq!(code, Some(0), "{out}{err}");
    // Only a load has response times, and Spot is gone.
    assert!(out.contains("response time, p99"), "{out}");
    let (out, err, code) =
        place.nodecast(&["run", "scenario.yaml", "--set", requirement, "--set", load, "--format", "json"]);
    assert_eq!(code, Some(0), "{err}");
    let run: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(run.to_string().contains("shop/api"), "{run}");
    let (out, err, code) = place.nodecast(&["sweep", "scenario.yaml", "--replications", "1", "--set", requirement]);
    assert_eq!(code, Some(0), "{out}{err}");
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--set", "name[+]=x"]);
    assert!(code == Some(2) && err.contains("appends to text"), "{err}");
}

#[test]
fn scheduler_configuration_of_a_dump_is_warned_of() {
    let place = Place::new();
    let config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: packer, namespace: platform}\ndata:\n  conf: |\n    kind: KubeSchedulerConfiguration\n    profiles: [{schedulerName: tight}]\n";
    place.put("dump.yaml", &format!("{WEB}---\n{POOL}{config}"));
    for arguments in [
        &["init", "own", "--from", "dump.yaml", "--region", "eu-west-1"][..],
        &["pack", "dump.yaml", "--region", "eu-west-1"],
    ] {
        let (out, err, code) = place.nodecast(arguments);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(unbroken(&err).contains("KubeSchedulerConfiguration in ConfigMap packer is not used"), "{err}");
    }
}

#[test]
fn wrapped_logs_calibrate_like_the_log_itself() {
    let place = scenario("pool.yaml, web.yaml", "");
    let line = |second: usize, message: &str, claim: usize| {
        format!(
            "{{\"level\":\"INFO\",\"time\":\"2026-03-02T07:{:02}:{:02}.500Z\",\"message\":\"{message}\",\"NodeClaim\":{{\"name\":\"c-{claim}\"}},\"instance-type\":\"m6i.large\"}}",
            claim, second
        )
    };
    let lines: Vec<String> = (0..12)
        .flat_map(|claim| {
            [
                (0, "created nodeclaim"),
                (3, "launched nodeclaim"),
                (40, "registered nodeclaim"),
                (47, "initialized nodeclaim"),
            ]
            .map(|(second, message)| line(second, message, claim))
        })
        .collect();
    let console = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| value[key].as_str().unwrap();
        let fields =
            serde_json::json!({"nodeclaim": value["NodeClaim"]["name"], "instance-type": value["instance-type"]});
        format!("{}\tINFO\tcontroller.x\t{}\t{fields}\n", text("time"), text("message"))
    };
    let quoted = |line: &String| serde_json::to_string(line).unwrap();
    let events =
        lines.iter().enumerate().map(|(at, line)| format!("{{\"timestamp\":{at},\"message\":{}}}", quoted(line)));
    let forms = [
        ("plain", lines.join("\n") + "\n"),
        ("stern", lines.iter().map(|line| format!("karpenter-6f-x controller {line}\n")).collect()),
        ("cri", lines.iter().map(|line| format!("2026-03-02T07:00:00.1Z stderr F {line}\n")).collect()),
        ("docker", lines.iter().map(|line| format!("{{\"log\":{},\"stream\":\"stderr\"}}\n", quoted(line))).collect()),
        ("console", lines.iter().map(console).collect()),
        (
            "watched",
            format!("{{\n  \"events\": [{}],\n  \"nextToken\": \"t\"\n}}\n", events.collect::<Vec<_>>().join(",\n")),
        ),
    ];
    let mut answers = Vec::new();
    for (name, text) in forms {
        place.put(&format!("{name}.log"), &text);
        let out = format!("{name}.yaml");
        let (table, err, code) = place.nodecast(&[
            "calibrate",
            "scenario.yaml",
            "--from",
            &format!("{name}.log"),
            "--no-effects",
            "--out",
            &out,
        ]);
        assert_eq!(code, Some(0), "{name}: {err}");
        answers.push((name, table.lines().take(6).collect::<Vec<_>>().join("\n")));
    }
    assert!(answers[0].1.contains("12 boots"), "{}", answers[0].1);
    for (name, answer) in &answers {
        assert_eq!(*answer, answers[0].1, "{name}");
    }
}
