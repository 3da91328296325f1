//! Metrics of replica autoscalers that can never be read: they fail as in a cluster, and the warning says why and what would help.

use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{changes, cluster, run, scaled_object};

const LOAD: &str =
    "load: [{workload: worker, at: 1m, requests: {constant: 40}, service: {cpu_per_request: 10ms, concurrency: 50}}]\n";
const NO_REQUEST: &str = "cpu in percent of requests (the container `app` of its pods requests none: state a request, or an \
                          `averageValue`)";

fn autoscaler(metrics: &str) -> String {
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: h}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: worker}}\n  maxReplicas: 10\n  metrics: [{metrics}]\n"
    )
}

/// The warnings that name a metric which cannot be read.
fn unread(outcome: &Outcome) -> Vec<String> {
    outcome
        .warnings
        .texts()
        .into_iter()
        .filter(|text| text.contains("no data for") || text.contains("cannot be read"))
        .collect()
}

/// A cluster whose pods request nothing.
fn without_requests() -> String {
    cluster(1).replace("{requests: {cpu: 100m, memory: 64Mi}}", "{}")
}

#[test]
fn unknown_container_fails_the_metric() {
    for target in ["{type: Utilization, averageUtilization: 50}", "{type: AverageValue, averageValue: 50m}"] {
        let metric = |container: &str| {
            let source = format!("{{name: cpu, container: {container}, target: {target}}}");
            autoscaler(&format!("{{type: ContainerResource, containerResource: {source}}}"))
        };
        let outcome = run("10m", LOAD, &format!("{}{}", cluster(1), metric("application")), &[]);
        assert_eq!(
            unread(&outcome),
            [
                "HorizontalPodAutoscaler default/h: no data for 1 metric, so it does not scale with load: cpu of the container \
                 `application` (its pods have none of that name, but `app`)"
            ]
        );
        assert_eq!(changes(&outcome), []);
        let failed = outcome.record.events.iter().any(|event| {
            event.kind == EventKind::RescaleFailed
                && event.message.contains("container application not present in metrics")
        });
        assert!(failed, "{target}");
        let outcome = run("10m", LOAD, &format!("{}{}", cluster(1), metric("app")), &[]);
        assert_eq!(unread(&outcome), [] as [String; 0]);
        assert!(!changes(&outcome).is_empty(), "{target}");
    }
}

#[test]
fn utilization_without_request_warns_unless_limit_range() {
    let half =
        autoscaler("{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}");
    let outcome = run("10m", LOAD, &format!("{}{half}", without_requests()), &[]);
    let said = format!(
        "HorizontalPodAutoscaler default/h: no data for 1 metric, so it does not scale with load: {NO_REQUEST}"
    );
    assert_eq!(unread(&outcome), [said]);
    assert_eq!(changes(&outcome), []);
    let range = "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Container, \
                 defaultRequest: {cpu: 100m}}]}\n";
    let outcome = run("10m", LOAD, &format!("{}{half}{range}", without_requests()), &[]);
    assert_eq!(unread(&outcome), [] as [String; 0]);
    assert!(!changes(&outcome).is_empty());
    let keda = scaled_object(
        "  minReplicaCount: 1\n  triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"50\"}}]\n",
    );
    let outcome = run("10m", LOAD, &format!("{}{keda}", without_requests()), &[]);
    let said = format!("ScaledObject default/worker: {NO_REQUEST} cannot be read, so it cannot scale down");
    assert_eq!(unread(&outcome), [said]);
}

#[test]
fn unreadable_metrics_name_their_remedy() {
    let all = autoscaler(
        "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}, {type: Pods, pods: \
         {metric: {name: packets}, target: {type: AverageValue, averageValue: 1k}}}, {type: Object, object: {metric: {name: \
         rate}, describedObject: {kind: Ingress, name: main}, target: {type: Value, value: 10k}}}, {type: External, external: \
         {metric: {name: depth}, target: {type: AverageValue, averageValue: 30}}}",
    );
    let outcome = run("1m", "", &format!("{}{all}", cluster(1)), &[]);
    assert_eq!(
        unread(&outcome),
        ["HorizontalPodAutoscaler default/h: no data for 3 metrics, so it cannot scale down: packets of its pods \
             (a rule of `prometheus.adapter` serves it); rate of Ingress main (`external_metrics` states it, or a rule of \
             `prometheus.adapter` serves it); depth from outside the cluster (`external_metrics` states it, or a rule of \
             `prometheus.adapter` serves it)"]
    );
}

#[test]
fn memory_that_usage_states_can_be_read() {
    let memory =
        autoscaler("{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}");
    let objects = format!("{}{memory}", cluster(1));
    let said = "HorizontalPodAutoscaler default/h: no data for 1 metric, so it does not scale with load: memory of its pods (`memory` of \
                a load's `service`, `usage` or `external_metrics` states it)";
    assert_eq!(unread(&run("10m", "", &objects, &[])), [said]);
    let usage = "usage: [{workload: default/worker, memory: {constant: 60}}]\n";
    let outcome = run("10m", usage, &objects, &[]);
    assert_eq!(unread(&outcome), [] as [String; 0]);
    assert!(!changes(&outcome).is_empty(), "60 of 64 MiB are more than half");
}

#[test]
fn standalone_unsupported_query_is_warned_about() {
    let query =
        "  triggers: [{type: prometheus, metadata: {serverAddress: p, threshold: \"5\", query: \"topk(3, a)\"}}]\n";
    let outcome = run("1m", "", &format!("{}{}", cluster(1), scaled_object(query)), &[]);
    assert_eq!(outcome.warnings.texts(), [] as [&str; 0], "the scenario's own warnings have it, with its place");
}
