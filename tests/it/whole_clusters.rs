//! Manifests in the shape that public projects publish load whatever kinds and triggers they hold: what is not simulated is
//! warned of, and nothing is refused. So do dumps with what other projects' controllers made.

mod strangers;

use std::fmt::Write as _;

use crate::cli::Place;

/// A scenario of one file of manifests on two nodes that stay.
const SCENARIO: &str = "\
name: whole
duration: 10m
region: us-east-1
manifests: [cluster.yaml]
nodeGroups: [{name: base, instanceTypes: [m5.4xlarge], min: 2, desired: 2, max: 2}]
policies: [{name: fixed, autoscaler: static}]
";

/// The files by name with their texts.
fn clusters() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/clusters");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut texts: Vec<(String, String)> = files
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    texts.sort();
    texts
}

/// The answer of a run that ends well, as `summary.json` has it.
fn summary(place: &Place, name: &str) -> serde_json::Value {
    let (answer, told, code) = place.nodecast(&["run", "scenario.yaml", "--format", "json"]);
    assert_eq!(code, Some(0), "{name}: {told}");
    serde_json::from_str(&answer).unwrap()
}

/// The warnings of a run of these manifests and this much of a scenario more, one in a line.
fn warnings(name: &str, cluster: &str, more: &str) -> String {
    let place = Place::new();
    place.put("scenario.yaml", &format!("{SCENARIO}{more}"));
    place.put("cluster.yaml", cluster);
    let summary = summary(&place, name);
    let told = summary["warnings"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    told.map(|line| format!("{line}\n")).collect()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn thirty_published_clusters_load_without_errors() {
    let clusters = clusters();
    assert!(clusters.len() >= 30);
    let mut report = String::new();
    for (name, text) in &clusters {
        let _ = writeln!(report, "# {name}\n{}", warnings(name, text, ""));
    }
    insta::assert_snapshot!("what_thirty_projects_leave_to_warnings", report);
}

/// A Deployment of three and a ScaledObject with this trigger.
fn scaled(trigger: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: worker, namespace: shop}}\nspec:\n  replicas: 3\n  \
         selector: {{matchLabels: {{app: worker}}}}\n  template:\n    metadata: {{labels: {{app: worker}}}}\n    \
         spec: {{containers: [{{name: w, image: w, resources: {{requests: {{cpu: 100m}}}}}}]}}\n---\n\
         apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: worker, namespace: shop}}\nspec:\n  \
         scaleTargetRef: {{name: worker}}\n  minReplicaCount: 1\n  fallback: {{failureThreshold: 2, replicas: 9}}\n  \
         triggers: [{trigger}]\n"
    )
}

/// The replicas at the end of a run.
fn replicas(trigger: &str, more: &str) -> u64 {
    let place = Place::new();
    place.put("scenario.yaml", &format!("{SCENARIO}{more}"));
    place.put("cluster.yaml", &scaled(trigger));
    let _ = summary(&place, trigger);
    let table = std::fs::read_to_string(place.path("reports/whole/workloads.csv")).unwrap();
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let column = rows.headers().unwrap().iter().position(|name| name == "replicas_desired").unwrap();
    rows.records().last().unwrap().unwrap()[column].parse().unwrap()
}

#[test]
fn any_trigger_type_uses_explicit_values() {
    let mysql = "{type: mysql, name: rows, metadata: {query: SELECT 1, queryValue: '10'}}";
    assert_eq!(replicas(mysql, ""), 3, "neither scaled nor in fallback");
    let stated = |rest: &str| format!("external_metrics: [{{scaled_object: shop/worker, {rest}}}]\n");
    assert_eq!(replicas(mysql, &stated("values: [{at: 0s, value: 55}]")), 6);
    assert_eq!(replicas(mysql, &stated("trigger: rows, values: [{at: 0s, value: 71}]")), 8);
    assert_eq!(replicas(mysql, &stated("trigger: s0, values: [{at: 0s, value: 20}]")), 2);
    assert_eq!(replicas(mysql, &stated("values: [{at: 0s, fails: true}]")), 9, "what is stated to fail does");
    let sqs = "{type: aws-sqs-queue, metadata: {queueURLFromEnv: URL, queueLength: '5'}}";
    assert_eq!(replicas(sqs, &stated("values: [{at: 0s, value: 20}]")), 4);
}

#[test]
fn values_for_missing_trigger_are_an_error() {
    for (rest, help) in [
        ("{scaled_object: shop/wroker, values: [{at: 0s, value: 1}]}", "did you mean `shop/worker`?"),
        ("{scaled_object: shop/worker, trigger: s1, values: [{at: 0s, value: 1}]}", "its triggers are `rows` and `s0`"),
    ] {
        let place = Place::new();
        place.put("scenario.yaml", &format!("{SCENARIO}external_metrics: [{rest}]\n"));
        place.put("cluster.yaml", &scaled("{type: mysql, name: rows, metadata: {queryValue: '1'}}"));
        let (_, told, code) = place.nodecast(&["run", "scenario.yaml"]);
        assert_eq!(code, Some(2));
        assert!(told.contains(help), "{told}");
    }
}

#[test]
fn autoscalers_of_v2beta1_read_their_old_targets() {
    let text = clusters().into_iter().find(|(name, _)| name.starts_with("28")).unwrap().1;
    let manifests = nodecast::scenario::manifests::read_manifests(&nodecast::scenario::source::Source::new(
        "m.yaml",
        text.as_str(),
    ))
    .unwrap();
    let targets: Vec<String> = manifests
        .autoscalers
        .iter()
        .flat_map(|autoscaler| &autoscaler.metrics)
        .map(|metric| format!("{:?}", metric.target))
        .collect();
    assert!(targets.iter().any(|target| target.starts_with("Utilization")), "{targets:?}");
    assert!(targets.iter().any(|target| target.starts_with("AverageValue")), "{targets:?}");
}
