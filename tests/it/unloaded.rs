//! Autoscalers for which the scenario has no load: they stay at their minimum, and a warning says so.

use nodecast::simulation::Outcome;

use crate::cli::Place;
use crate::keda::{cluster, deployment, run, scaled_object};

const CPU: &str = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}";
const MEMORY: &str = "{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}";

fn autoscaler(name: &str, target: &str, limits: (u32, u32), metrics: &str) -> String {
    let (least, most) = limits;
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}\n  minReplicas: {least}\n  \
         maxReplicas: {most}\n  metrics: [{metrics}]\n"
    )
}

/// The warnings on autoscalers without load.
fn unloaded(outcome: &Outcome) -> Vec<String> {
    let is_own = |text: &String| text.starts_with("no load: ") || text.starts_with("no messages: ");
    outcome.warnings.texts().into_iter().filter(is_own).collect()
}

fn warned(rest: &str, objects: &str) -> Vec<String> {
    unloaded(&run("2m", rest, &format!("{}{objects}", cluster(2)), &[]))
}

#[test]
fn autoscaler_without_load_stays_at_minimum_and_warns() {
    let outcome = run("20m", "", &format!("{}{}", cluster(4), autoscaler("h", "worker", (2, 9), CPU)), &[]);
    assert_eq!(
        unloaded(&outcome),
        [
            "no load: HorizontalPodAutoscaler default/h (default/worker) reads 0 CPU, because neither `load` nor `usage` says what \
             the pods use. Replicas stay at the minimum, so cost and waits are too low. Add an entry under `load` for its workload"
        ]
    );
    assert_eq!(outcome.record.replica_changes.last().map(|change| change.to), Some(2));
}

#[test]
fn stated_use_of_any_kind_silences_warning() {
    let hpa = autoscaler("worker", "worker", (2, 9), CPU);
    let load = "load: [{workload: worker, requests: {constant: 4}, service: {cpu_per_request: 1ms, concurrency: 5}}]";
    let cores = "load: [{workload: worker, cpu: {constant: 0.1}}]";
    let later = "timeline: [{at: 1m, load: {workload: worker, cpu: {constant: 0.1}}}]";
    let usage = "usage: [{workload: worker, cpu: {constant: 0.02}}]";
    let external = "external_metrics: [{workload: worker, values: [{at: 0s, value: 30}]}]";
    let queue = "queues: [{name: q, kind: sqs, workload: worker, time_per_message: 1s, cpu_per_message: 5ms, messages: {constant: 1}}]";
    for rest in [load, cores, later, usage, external, queue] {
        assert_eq!(warned(rest, &hpa), [] as [&str; 0], "{rest}");
    }
    assert_eq!(warned("", &hpa).len(), 1);
}

#[test]
fn use_of_other_things_leaves_warning() {
    let hpa = autoscaler("worker", "worker", (2, 9), CPU);
    let memory = "usage: [{workload: worker, memory: {constant: 60}}]";
    let start_up = "usage: [{workload: worker, start_up: {cpu: 0.5, for: 20s}}]";
    let free = "queues: [{name: q, kind: sqs, workload: worker, time_per_message: 1s, messages: {constant: 1}}]";
    for rest in [memory, start_up, free] {
        assert_eq!(warned(rest, &hpa).len(), 1, "{rest}");
    }
    // One of its metrics has values.
    assert_eq!(warned(memory, &autoscaler("worker", "worker", (2, 9), &format!("{CPU}, {MEMORY}"))), [] as [&str; 0]);
    // A container of which nothing is stated.
    let sidecar = "usage: [{workload: worker, container: app, cpu: {constant: 0.02}}]";
    let of = |container: &str| {
        let source =
            format!("{{name: cpu, container: {container}, target: {{type: Utilization, averageUtilization: 50}}}}");
        autoscaler("worker", "worker", (2, 9), &format!("{{type: ContainerResource, containerResource: {source}}}"))
    };
    assert_eq!(warned(sidecar, &of("app")), [] as [&str; 0]);
}

#[test]
fn autoscalers_whose_metric_cannot_matter_are_silent() {
    assert_eq!(warned("", &autoscaler("worker", "worker", (3, 3), CPU)), [] as [&str; 0]);
    let idle = deployment("idle", 0) + &autoscaler("idle", "idle", (1, 5), CPU);
    assert_eq!(warned("", &idle), [] as [&str; 0], "an autoscaler does not scale from zero");
    let scaled = format!("timeline: [{}]", "{at: 1m, scale: {workload: idle, replicas: 2}}");
    assert_eq!(warned(&scaled, &idle).len(), 1);
    let paused = scaled_object(
        "  minReplicaCount: 1\n  triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"50\"}}]\n",
    )
    .replace(
        "metadata: {name: worker}",
        "metadata: {name: worker, annotations: {autoscaling.keda.sh/paused: \"true\"}}",
    );
    assert_eq!(warned("", &paused), [] as [&str; 0]);
}

#[test]
fn several_autoscalers_share_one_warning() {
    let one = |name: &str| deployment(name, 2) + &autoscaler(name, name, (2, 9), CPU);
    let objects: String = ["a", "b", "c", "d", "e"].into_iter().map(one).collect();
    let load = "load: [{workload: c, cpu: {constant: 0.1}}]";
    let found = warned(load, &objects);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("no load: HorizontalPodAutoscalers default/a, default/b, default/d and 1 more read 0 CPU"),
        "{found:?}"
    );
    assert!(found[0].ends_with("Add an entry under `load` for each workload"), "{found:?}");
}

#[test]
fn scaled_objects_without_load_or_messages_warn() {
    let cpu = "{type: cpu, metricType: Utilization, metadata: {value: \"50\"}}";
    let cron = "{type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: \"4\"}}";
    let of = |triggers: &str| scaled_object(&format!("  minReplicaCount: 1\n  triggers: [{triggers}]\n"));
    let found = warned("", &of(cpu));
    assert!(found.len() == 1 && found[0].contains("ScaledObject default/worker reads 0 CPU"), "{found:?}");
    let found = warned("", &of(&format!("{cpu}, {cron}")));
    assert!(found.len() == 1 && found[0].contains("Outside the windows of cron triggers"), "{found:?}");
    assert_eq!(warned("", &of(cron)), [] as [&str; 0], "a calendar needs no load");
    let sqs = "{type: aws-sqs-queue, metadata: {queueURL: \"https://sqs.us-east-1.amazonaws.com/1/orders\", awsRegion: us-east-1, queueLength: \"5\"}}";
    let queue =
        |rest: &str| format!("queues: [{{name: orders, kind: sqs, workload: worker, time_per_message: 1s{rest}}}]");
    let found = warned(&queue(""), &of(sqs));
    assert!(
        found.len() == 1
            && found[0].starts_with("no messages: ScaledObject default/worker reads 0 from the queue `orders`"),
        "{found:?}"
    );
    assert_eq!(warned(&queue(", waiting: 5"), &of(sqs)), [] as [&str; 0]);
}

#[test]
fn series_of_workload_without_requests_warns() {
    let prometheus = "prometheus: {series: [{name: http_requests_total, workload: worker, shows: requests}]}\n";
    let query = "{type: prometheus, metadata: {serverAddress: p, threshold: \"5\", query: \"sum(rate(http_requests_total[1m]))\"}}";
    let object = scaled_object(&format!("  minReplicaCount: 1\n  triggers: [{query}]\n"));
    let cores = format!("{prometheus}load: [{{workload: worker, cpu: {{constant: 0.1}}}}]");
    for rest in [prometheus, &cores] {
        let found = warned(rest, &object);
        assert!(found.len() == 1 && found[0].contains("reads 0 from `http_requests_total`"), "{found:?}");
    }
    let load = "load: [{workload: worker, requests: {constant: 4}, service: {cpu_per_request: 1ms, concurrency: 5}}]";
    assert_eq!(warned(&format!("{prometheus}{load}"), &object), [] as [&str; 0]);
}

#[test]
fn missing_load_is_reported_everywhere() {
    let place = Place::new();
    place.put("cluster.yaml", &format!("{}{}", cluster(2), autoscaler("worker", "worker", (2, 9), CPU)));
    place.put("scenario.yaml", "name: bare\nregion: us-east-1\nduration: 5m\nmanifests: [cluster.yaml]\npolicies: [{name: only, autoscaler: none}]\n");
    let said = "no load: HorizontalPodAutoscaler default/worker reads 0 CPU";
    let (out, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
    assert!(code == Some(0) && out.contains(&format!("warning: {said}")), "{out}{err}");
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "report"]);
    assert!(code == Some(0) && out.contains(said), "{out}{err}");
    for file in ["report/summary.json", "report/report.html"] {
        let text = std::fs::read_to_string(place.path(file)).unwrap().replace('\u{a0}', " ");
        assert!(text.contains(said), "{file}");
    }
}
