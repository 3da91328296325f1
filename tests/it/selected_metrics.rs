//! Metrics of one name that autoscalers ask for with selectors of their own, or of objects of their own.

use nodecast::simulation::Outcome;
use nodecast::world::record::ReplicaChange;

use crate::keda::{cluster, deployment, load, run};

fn autoscaler(name: &str, metric: &str) -> String {
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}\n  maxReplicas: 20\n  metrics: [{metric}]\n"
    )
}

fn external(selector: &str) -> String {
    format!(
        "{{type: External, external: {{metric: {{name: depth{selector}}}, target: {{type: AverageValue, averageValue: \"10\"}}}}}}"
    )
}

fn of_service(name: &str) -> String {
    format!(
        "{{type: Object, object: {{metric: {{name: rate}}, describedObject: {{apiVersion: v1, kind: Service, name: {name}}}, target: {{type: AverageValue, averageValue: \"100\"}}}}}}"
    )
}

/// How many replicas a workload was given last; 1 where nobody gave it any.
fn last(outcome: &Outcome, name: &str) -> u32 {
    let of = |change: &&ReplicaChange| outcome.record.workloads[change.workload.index()].name.name.as_str() == name;
    outcome.record.replica_changes.iter().rev().find(of).map_or(1, |change| change.to)
}

/// Warnings of one value for several metrics.
fn shared(outcome: &Outcome) -> Vec<String> {
    outcome.warnings.texts().into_iter().filter(|text| text.contains("one value of")).collect()
}

#[test]
fn hpa_reads_value_of_selector_or_object() {
    let objects = [
        cluster(1),
        deployment("web", 1),
        autoscaler("worker", &external(", selector: {matchLabels: {queue: a}}")),
        autoscaler("web", &of_service("web")),
    ]
    .concat();
    let stated = "external_metrics:
- {metric: depth, values: [{at: 0s, value: 10}]}
- {metric: depth, selector: 'queue in (a)', values: [{at: 0s, value: 60}]}
- {metric: rate, object: default/web, values: [{at: 0s, value: 300}]}
- {metric: rate, object: default/other, values: [{at: 0s, value: 90}]}
";
    let outcome = run("10m", stated, &objects, &[]);
    assert_eq!((last(&outcome, "worker"), last(&outcome, "web")), (6, 3));
    assert_eq!(shared(&outcome), [] as [String; 0]);
}

#[test]
fn one_value_for_several_metrics_is_warned_about() {
    let objects = [
        cluster(1),
        deployment("web", 1),
        autoscaler("worker", &external(", selector: {matchLabels: {queue: a}}")),
        autoscaler("web", &external(", selector: {matchLabels: {queue: b}}")),
    ]
    .concat();
    let stated = "external_metrics: [{metric: depth, values: [{at: 0s, value: 60}]}]";
    let said = shared(&run("1m", stated, &objects, &[]));
    assert_eq!(
        said,
        [
            "`external_metrics` states one value of depth, which autoscalers read as 2 metrics of different selectors or objects (with `queue=a`; with `queue=b`): state it for each with `selector` or `object`"
        ]
    );
    let same = objects.replace("{queue: b}", "{queue: a}");
    assert_eq!(shared(&run("1m", stated, &same, &[])), [] as [String; 0]);
}

#[test]
fn adapter_sums_only_selected_series() {
    let rate = |query: &str| {
        format!(
            "load: [{{workload: worker, at: 1m, requests: {{constant: 40}}, service: {{cpu_per_request: 1ms, concurrency: 50}}}}]\n\
             prometheus:\n  scrape_interval: 15s\n  series:\n  \
             - {{name: http_requests_total, workload: worker, shows: requests, labels: {{verb: GET}}}}\n  \
             - {{name: http_requests_total, workload: worker, shows: requests, labels: {{verb: PUT}}}}\n  \
             adapter: [{{metric: rps, query: '{query}'}}]\n"
        )
    };
    let pods = |selector: &str| {
        let target = "target: {type: AverageValue, averageValue: \"5\"}";
        format!("{{type: Pods, pods: {{metric: {{name: rps{selector}}}, {target}}}}}")
    };
    let get = cluster(1) + &autoscaler("worker", &pods(", selector: {matchLabels: {verb: GET}}"));
    let all = cluster(1) + &autoscaler("worker", &pods(""));
    // Whether or not the query keeps the label: it is among the matchers of its series.
    for by in ["namespace, pod", "namespace, pod, verb"] {
        let query = rate(&format!("sum by ({by}) (rate(http_requests_total[1m]))"));
        let replicas = last(&run("40m", &query, &get, &[]), "worker");
        assert!((7..=9).contains(&replicas), "{by}: {replicas}; 40 a second are 8 of 5 each");
    }
    let query = rate("sum by (namespace, pod) (rate(http_requests_total[1m]))");
    let replicas = last(&run("40m", &query, &all, &[]), "worker");
    assert!((14..=18).contains(&replicas), "{replicas}; both together are 80 a second");
}

#[test]
fn selector_and_object_require_a_metric() {
    let mistake = |stated: &str| {
        let loaded = std::panic::catch_unwind(|| load("1m", stated, &cluster(1), &[]));
        *loaded.unwrap_err().downcast::<String>().unwrap()
    };
    for (stated, words) in [
        ("{metric: m, selector: 'a in (b', values: [{at: 0s, value: 1}]}", "no label selector"),
        ("{workload: worker, selector: a=b, values: [{at: 0s, value: 1}]}", "without `metric`"),
        ("{workload: worker, object: shop/a, values: [{at: 0s, value: 1}]}", "without `metric`"),
        (
            "{metric: m, selector: a=b, values: [{at: 0s, value: 1}]}, {metric: m, selector: a=b, values: [{at: 0s, value: 2}]}",
            "two external metrics",
        ),
    ] {
        let shown = mistake(&format!("external_metrics: [{stated}]"));
        assert!(shown.contains(words), "{stated}: {shown}");
    }
}
