//! Replicas that are missing: what a failed zone, failed hardware and an autoscaler without room come to in the figures.

use nodecast::domain::{SimDuration, SimTime};
use nodecast::report::Summary;
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, NodeEnd};

use crate::cli::Place;
use crate::spot_market::shop;

/// A database of one replica in one zone, and a web service of three that may run in two, with load and an autoscaler.
const CLUSTER: &str = "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: node
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: data}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeSelector: {topology.kubernetes.io/zone: us-east-1a}
      containers: [{name: db, image: db, resources: {requests: {cpu: 500m, memory: 1Gi}}}]
";

/// The scenario, with a zone without power for an hour or without; an hour of it is warm-up.
fn scenario(faults: &str) -> String {
    format!(
        "\
name: outage
region: us-east-1
duration: 4h
warm_up: 30m
replications: 2
versions: {{ karpenter: v1.13 }}
cluster: {{ zones: [us-east-1a, us-east-1b] }}
manifests: [cluster.yaml]
ec2: {{ failures: none }}
{faults}
objectives: {{ unavailable_pod_minutes: 30, at_zero: 10m }}
"
    )
}

const OUTAGE: &str = "faults: [{ at: 1h, for: 1h, zone_outage: { zone: us-east-1a, mode: power } }]";

fn place() -> Place {
    let place = Place::new();
    place.put("cluster.yaml", CLUSTER);
    place.put("scenario.yaml", &scenario(OUTAGE));
    place.put("calm.yaml", &scenario(""));
    place
}

#[test]
fn zone_outage_of_single_replica_misses_objective() {
    let place = place();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--verbose", "--out", "report"]);
    assert_eq!(code, Some(0), "{err}");
    let first: Vec<&str> = out.lines().take(30).collect();
    let line = |start: &str| *first.iter().find(|line| line.trim_start().starts_with(start)).unwrap_or(&"");
    // The pod that was there stays until the power is back; a new one starts then.
    assert!(line("missing replicas").contains("60.") && line("missing replicas").contains("pod-minutes"), "{out}");
    assert!(line("zero Ready replicas").contains("data/db for 1h"), "{out}");
    assert!(out.contains("MISSED   missing replicas"), "{out}");
    assert_eq!(out.matches("MISSED").count(), 2, "{out}");
    let summary: Summary =
        serde_json::from_str(&std::fs::read_to_string(place.path("report/summary.json")).unwrap()).unwrap();
    let db = summary.availability.workloads.iter().find(|workload| workload.workload == "data/db").unwrap();
    assert_eq!((db.times_at_zero, db.longest_at_zero_from_seconds), (1, Some(3_600.0)));
    assert!((3_600.0..3_660.0).contains(&db.at_zero_seconds), "{db:?}");
    let page = std::fs::read_to_string(place.path("report/report.html")).unwrap();
    let page = page.replace('\u{a0}', " ");
    assert!(page.contains("</a> missing: ") && page.contains("zero Ready replicas: data/db for 1h"));
}

#[test]
fn diff_reports_hour_with_zero_ready_replicas() {
    let place = place();
    let (out, err, code) = place.nodecast(&["diff", "calm.yaml", "scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("missing replicas (pod-minutes)"), "{out}");
    assert!(out.contains("longest time at zero Ready replicas"), "{out}");
    let sentence = "one workload had zero Ready replicas for 1h (now: 0 s).";
    assert!(out.contains("The cluster with the change has 60.") && out.contains(sentence), "{out}");
    assert!(
        out.contains("Objective unavailable_pod_minutes \u{2264} 30.0 pod-minutes: met now in 2 of 2 runs"),
        "{out}"
    );
}

fn at(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

/// The shop, calm but for these faults.
fn failing(faults: &str) -> Outcome {
    shop("1h", "v1.13", &format!("ec2: {{ spot: {{ interruptions: none }}, failures: none }}\nfaults:\n{faults}"))
}

#[test]
fn hardware_failure_is_detected_late_and_replaced() {
    let calm = Summary::from_outcome(&failing("  - { at: 20m, node_failure: { count: 0 } }"));
    let outcome = failing("  - { at: 20m, node_failure: { count: 2, node_pool: default } }");
    let lost: Vec<_> = outcome.record.events.iter().filter(|event| event.kind == EventKind::NodeUnreachable).collect();
    assert_eq!(lost.len(), 2);
    assert!(lost.iter().all(|event| event.at == at(20) + SimDuration::from_secs(50)), "since 1.32");
    let failed: Vec<_> = outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Unhealthy)).collect();
    assert_eq!(failed.len(), 2);
    for node in &failed {
        // The first check fails a minute later, two minutes of failing count, Karpenter asks every minute.
        let asked = node.deletion_requested.unwrap() - at(20);
        assert!((180..=300).contains(&asked.as_secs()), "{}: {asked}", node.name);
        // The kubelet ends no pod any more: a minute after their grace period they count as stuck, and the instance goes.
        let drained = node.terminating.unwrap() - node.deletion_requested.unwrap();
        assert!(drained.as_secs() <= 120, "{}: {drained}", node.name);
    }
    let cut: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.cut_off == Some(at(20))).collect();
    assert!(!cut.is_empty());
    let summary = Summary::from_outcome(&outcome);
    let missing = summary.availability.unavailable_pod_minutes - calm.availability.unavailable_pod_minutes;
    let replicas = cut.iter().filter(|pod| !pod.name.starts_with("aws-") && !pod.name.starts_with("kube-")).count();
    // Each is missing for at least the three minutes until its node goes.
    assert!(missing > 3.0 * replicas as f64 * 0.9, "{missing} for {replicas}");
    assert_eq!(summary.pods.pending_at_end, 0);
}

#[test]
fn terminated_hardware_ends_billing_at_once() {
    let outcome = failing("  - { at: 20m, node_failure: { fraction: 50%, node_pool: default, mode: terminated } }");
    let lost: Vec<_> = outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::InstanceLost)).collect();
    assert!(!lost.is_empty());
    assert!(lost.iter().all(|node| node.terminating == Some(at(20))));
    let free = Summary::from_outcome(&outcome).cost.by_item.iter().any(|part| part.name == "free first hour");
    assert!(!free, "only what EC2 takes back is free");
}

#[test]
fn only_autoscaled_workload_reports_max_replicas() {
    let place = Place::new();
    let hpa = |name: &str, least: u32, most: u32| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  replicas: 1\n  \
             selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: \
             {{containers: [{{name: c, image: c, resources: {{requests: {{cpu: 200m, memory: 256Mi}}}}}}]}}\n---\n\
             apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  \
             scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}\n  minReplicas: {least}\n  \
             maxReplicas: {most}\n  metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, \
             averageUtilization: 50}}}}}}]\n---\n"
        )
    };
    place.put("cluster.yaml", &format!("{}{}{CLUSTER}", hpa("full", 1, 2), hpa("fixed", 2, 2)));
    place.put(
        "scenario.yaml",
        "\
name: full
region: us-east-1
duration: 30m
manifests: [cluster.yaml]
load: [{ workload: shop/full, requests: { constant: 40 }, service: { cpu_per_request: 20ms, concurrency: 16 } }]
objectives: { at_max: 5m }
",
    );
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--verbose", "--out", "report"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("at max replicas       shop/full, 2 replicas, for 2"), "{out}");
    assert!(!out.contains("shop/fixed, 2 replicas"), "{out}");
    assert!(out.contains("MISSED   at max replicas"), "{out}");
}
