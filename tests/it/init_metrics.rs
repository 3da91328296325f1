//! What `nodecast init --from` makes of what HorizontalPodAutoscalers measured: nothing where they measured nothing in use, and each
//! metric from outside as what its autoscaler asked for.

use nodecast::catalog::Catalog;
use nodecast::scenario::draft::Wishes;
use nodecast::scenario::{Draft, Source};

use crate::migration::{nodes, workload};

/// The draft of a cluster with three workloads and the autoscaler of each: its metrics, what it measured, and how many replicas it saw.
fn draft(autoscalers: &[(&str, &str, &str, u32)]) -> Draft {
    let mut dump = nodes("w", 2, "m5.xlarge", false, None);
    for (name, metrics, current, replicas) in autoscalers {
        dump += &workload(name, name, 2, 500, ("w", 2), None);
        dump += &format!(
            "---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: {name}, namespace: shop}}
spec:
  minReplicas: 1
  maxReplicas: 30
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  metrics: [{metrics}]
status: {{currentReplicas: {replicas}, desiredReplicas: {replicas}, currentMetrics: [{current}]}}
"
        );
    }
    let wishes = Wishes { name: "own".to_owned(), ..Wishes::default() };
    Draft::of_dump(&[Source::new("cluster.yaml", dump)], &wishes, Catalog::embedded().unwrap()).unwrap()
}

const CPU: &str = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}";
const MEMORY: &str = "{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}}";
const NO_CPU: &str = "{type: Resource, resource: {name: cpu, current: {averageUtilization: 0, averageValue: \"0\"}}}";

fn warnings(draft: &Draft) -> Vec<&str> {
    draft.warnings.iter().map(|warning| warning.message()).collect()
}

#[test]
fn workload_without_cpu_usage_has_no_load() {
    let idle = draft(&[("idle", CPU, NO_CPU, 2)]);
    assert_eq!(warnings(&idle), ["shop/idle has no load: its autoscaler measured that it used no CPU"]);
    let text = &idle.files[0].text;
    assert!(!text.contains("nothing was measured") && !text.contains("\nload:"), "{text}");
    let unmeasured = draft(&[("new", CPU, "", 2)]);
    assert!(
        unmeasured.files[0].text.contains("shop/new uses as much CPU as its autoscaler aims at: nothing was measured.")
    );
    let asleep = draft(&[("asleep", CPU, "", 0)]);
    assert_eq!(warnings(&asleep), ["shop/asleep has no load: it had zero replicas"]);
    assert!(!asleep.files[0].text.contains("aims at"), "nothing is assumed of what has no load");
}

#[test]
fn idle_workload_memory_becomes_memory_usage() {
    let current = format!(
        "{{type: Resource, resource: {{name: memory, current: {{averageUtilization: 50, averageValue: \"268435456\"}}}}}}, {NO_CPU}"
    );
    let idle = draft(&[("idle", &format!("{CPU}, {MEMORY}"), &current, 2)]);
    let text = &idle.files[0].text;
    assert!(text.contains("- { workload: shop/idle, cpu: { constant: 0.000 }, memory: { constant: 256 } }"), "{text}");
    assert!(text.contains("shop/idle uses all day as much memory as its autoscaler measured, and no CPU."), "{text}");
}

fn external(queue: &str) -> String {
    let selector = format!("selector: {{matchLabels: {{queue: {queue}}}}}");
    format!(
        "{{type: External, external: {{metric: {{name: depth, {selector}}}, target: {{type: AverageValue, averageValue: \"10\"}}}}}}"
    )
}

fn read(queue: &str, each: &str) -> String {
    let selector = format!("selector: {{matchLabels: {{queue: {queue}}}}}");
    format!("{{type: External, external: {{metric: {{name: depth, {selector}}}, current: {{averageValue: {each}}}}}}}")
}

fn object(name: &str, more: &str) -> String {
    let described = format!("describedObject: {{apiVersion: v1, kind: Service, name: {name}}}");
    format!("{{type: Object, object: {{metric: {{name: rate}}, {described}, {more}}}}}")
}

#[test]
fn same_named_metrics_keep_selectors_and_objects() {
    let target = "target: {type: Value, value: \"100\"}";
    let two = draft(&[
        ("a", &external("a"), &read("a", "\"10\""), 2),
        ("b", &external("b"), &read("b", "100m"), 2),
        ("c", &object("c", target), &object("c", "current: {value: \"90\"}"), 2),
        ("d", &object("d", target), &object("d", "current: {value: \"500\"}"), 2),
    ]);
    let text = &two.files[0].text;
    for line in [
        "- { metric: depth, selector: \"queue=a\", values: [{ at: 0s, value: 20 }] }",
        "- { metric: depth, selector: \"queue=b\", values: [{ at: 0s, value: 0.2 }] }",
        "- { metric: rate, object: shop/c, values: [{ at: 0s, value: 90 }] }",
        "- { metric: rate, object: shop/d, values: [{ at: 0s, value: 500 }] }",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let one = draft(&[("a", &external("a"), &read("a", "\"10\""), 2)]);
    assert!(one.files[0].text.contains("- { metric: depth, values: [{ at: 0s, value: 20 }] }"), "it is the only one");
}

#[test]
fn conflicting_values_of_same_metric_warn() {
    let both = draft(&[("a", &external("q"), &read("q", "\"10\""), 2), ("b", &external("q"), &read("q", "\"30\""), 2)]);
    let said = warnings(&both);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with(
            "HorizontalPodAutoscaler shop/b read depth as 60, and another one that asks for the same read 20"
        ),
        "{said:?}"
    );
}
