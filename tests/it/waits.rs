//! Who waits: by workload and by priority, with placeholders apart.

use nodecast::report::Summary;

use crate::cli::Place;

fn deployment(name: &str, replicas: u32, class: &str, image: &str, cpu: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
         priorityClassName: {class}\n      terminationGracePeriodSeconds: 0\n      \
         containers: [{{name: c, {image}, resources: {{requests: {{cpu: {cpu}, memory: 256Mi}}}}}}]\n---\n"
    )
}

/// A cluster with a web service, a batch worker of negative priority that works, and two kinds of placeholders.
fn place() -> Place {
    let place = Place::new();
    let classes = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n---\n\
                   apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -10\n---\n";
    let manifests = [
        classes.to_owned(),
        deployment("front", 3, "high", "image: web", "500m"),
        deployment("worker", 2, "low", "image: worker", "500m"),
        deployment("pause", 2, "low", "image: \"registry.k8s.io/pause:3.10\"", "500m"),
        deployment("sleeper", 1, "low", "image: busybox, command: [sh, -c, sleep infinity]", "500m"),
        std::fs::read_to_string(place.path("cluster.yaml")).unwrap(),
    ];
    place.put("all.yaml", &manifests.concat());
    place.put(
        "scenario.yaml",
        "\
name: waits
region: us-east-1
duration: 20m
manifests: [all.yaml]
objectives:
  waits:
    - { workload: shop/front, p95: 1s, longest: 10m }
    - { priority: -10, mean: 10m }
",
    );
    place
}

#[test]
fn waits_are_reported_by_workload_and_priority() {
    let place = place();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--verbose", "--out", "report"]);
    assert_eq!(code, Some(0), "{err}");
    let text = std::fs::read_to_string(place.path("report/summary.json")).unwrap();
    let summary: Summary = serde_json::from_str(&text).unwrap();
    let of = |name: &str| {
        let workload = summary.pods.by_workload.iter().find(|workload| workload.workload == name).unwrap();
        (workload.placeholder, workload.waits.pods, workload.waits.waited)
    };
    assert_eq!((of("shop/front"), of("shop/worker")), ((false, 3, 3), (false, 2, 2)));
    assert_eq!((of("shop/pause").0, of("shop/sleeper").0), (true, true), "by image and by command");
    assert_eq!((summary.pods.placeholders.created, summary.pods.placeholders.waits.pods), (3, 3));
    let priorities: Vec<(i32, u64)> =
        summary.pods.by_priority.iter().map(|priority| (priority.priority, priority.waits.pods)).collect();
    assert!(priorities.starts_with(&[(1_000, 3)]) && priorities.ends_with(&[(-10, 2)]), "{priorities:?}");
    let waits = summary.pods.wait_for_node.unwrap().count;
    assert_eq!(waits, summary.pods.created);
    assert_eq!(waits, priorities.iter().map(|(_, pods)| pods).sum::<u64>());
    // Availability counts nobody whose only work is to hold room.
    let placeholders = summary.availability.workloads.iter().filter(|workload| workload.placeholder).count();
    assert_eq!(placeholders, 2);
    assert!(out.contains("  shop/front") && out.contains("  placeholder pods"), "{out}");
    let verdicts: Vec<(&str, Option<bool>)> =
        summary.objectives.iter().map(|objective| (objective.name.as_str(), objective.met)).collect();
    assert_eq!(
        verdicts,
        [
            ("p95 wait of shop/front", Some(false)),
            ("longest wait of shop/front", Some(true)),
            ("mean wait of priority -10", Some(true)),
        ]
    );
}

#[test]
fn sweep_shows_wait_limits_and_workloads() {
    let place = place();
    let arguments = [
        "sweep",
        "scenario.yaml",
        "--set",
        "Deployment[shop/front].spec.replicas=1,3",
        "--replications",
        "1",
        "--out",
        "s",
    ];
    let (out, err, code) = place.nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    for column in ["p95 wait of shop/front", "pods that waited over 1 s", "pod wait for a node, mean"] {
        assert!(out.contains(column), "{column}: {out}");
    }
    let csv = std::fs::read_to_string(place.path("s/sweep.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains("p95 wait of shop/front"), "{csv}");
}

#[test]
fn invalid_wait_objective_is_rejected() {
    let place = place();
    for (entry, expected) in [
        ("{ workload: shop/fornt, p95: 1s }", "did you mean `shop/front`?"),
        ("{ workload: shop/front }", "an entry of `waits` limits nothing"),
        ("{ workload: shop/front, priority: 3, p95: 1s }", "those of one workload or of one priority"),
        ("{ p95: 1s }", "those of one workload or of one priority"),
    ] {
        place.put(
            "bad.yaml",
            &format!("name: waits\nregion: us-east-1\nduration: 20m\nmanifests: [all.yaml]\nobjectives: {{ waits: [{entry}] }}\n"),
        );
        let (_, err, code) = place.nodecast(&["run", "bad.yaml"]);
        assert!(code == Some(2) && err.contains(expected) && err.contains("bad.yaml:5"), "{entry}: {err}");
    }
}
