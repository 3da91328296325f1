//! Autoscalers whose target's selector takes pods of others: the controller looks at these as if they were the target's.

use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{changes, cluster, deployment, run};

/// A Deployment `web` whose selector takes everything with `app: shop`.
fn web() -> String {
    deployment("web", 2).replace("app: web", "app: shop")
}

fn worker(replicas: u32) -> String {
    deployment("worker", replicas).replace("{app: worker}", "{app: shop, part: worker}")
}

/// Two nodes' worth of room, and these objects.
fn objects(parts: &[String]) -> String {
    let whole = cluster(0);
    let (groups, _) = whole.split_once("---").unwrap();
    groups.to_owned() + &parts.concat()
}

fn autoscaler(of: &str, percent: u32) -> String {
    format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {of}}}\nspec:\n  \
         scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {of}}}\n  minReplicas: 2\n  maxReplicas: 10\n  \
         metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {percent}}}}}}}]\n"
    )
}

/// What the pods of both use, in percent of their requests.
fn used(web: u32, worker: u32) -> String {
    format!(
        "external_metrics: [{{workload: web, values: [{{at: 0s, value: {web}}}]}}, \
         {{workload: worker, values: [{{at: 0s, value: {worker}}}]}}]"
    )
}

/// The warnings about such autoscalers, and each change of replicas.
fn came_to(outcome: &Outcome) -> (Vec<String>, Vec<(u32, u32)>) {
    let said = outcome.warnings.texts().into_iter().filter(|text| text.contains("looks at the pods of")).collect();
    (said, changes(outcome).into_iter().map(|(_, _, from, to)| (from, to)).collect())
}

#[test]
fn the_use_of_others_counts_as_the_targets() {
    // Once metrics-server knows all of them.
    let rest = format!("{}\ntimeline: [{{at: 5m, manifests: [late.yaml]}}]", used(10, 80));
    let late = autoscaler("web", 70);
    let outcome = run("20m", &rest, &objects(&[web(), worker(4)]), &[("late.yaml", &late)]);
    let (said, replicas) = came_to(&outcome);
    // Two at 10 % and four at 80 % are at 56 %: 0.8 of six pods, which are five, of which a pass adds two. Two that are not known yet count
    // as idle: 42 % of eight. Then ten at 38 % are 5.4.
    assert_eq!(replicas, [(2, 4), (4, 5), (5, 6)]);
    assert_eq!(
        said,
        [
            "HorizontalPodAutoscaler default/web looks at the pods of Deployment default/worker, too, which the selector of its target takes, and \
             goes by their use and requests as by its target's: give the target's selector a label that no others have"
        ]
    );
    let outcome = run("20m", &used(10, 70), &objects(&[web(), worker(4), autoscaler("worker", 70)]), &[]);
    assert_eq!(came_to(&outcome), (vec![], vec![]), "its own selector takes its own alone");
}

#[test]
fn two_autoscalers_that_share_pods_scale_nothing() {
    let both = [web(), worker(4), autoscaler("web", 70), autoscaler("worker", 70)];
    let outcome = run("20m", &used(150, 150), &objects(&both), &[]);
    let (said, replicas) = came_to(&outcome);
    assert_eq!(replicas, []);
    assert_eq!(said.len(), 1, "the other's selector takes no more than its own: {said:?}");
    assert!(said[0].contains("neither scales (AmbiguousSelector)"), "{said:?}");
    let failed = outcome.record.events.iter().filter(|event| event.kind == EventKind::RescaleFailed);
    assert!(failed.count() >= 2, "both tell it");
    // Without pods of the worker there is nothing that both look at.
    let apart = [web(), worker(0), autoscaler("web", 70), autoscaler("worker", 70)];
    let outcome = run("20m", &used(150, 150), &objects(&apart), &[]);
    assert!(!came_to(&outcome).1.is_empty());
}

#[test]
fn requestless_job_pod_blocks_hpa_scaling() {
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: seed}\nspec:\n  template:\n    metadata: {labels: {app: shop}}\n    spec:\n      \
               restartPolicy: Never\n      containers: [{name: app, image: app, resources: {requests: {memory: 64Mi}}}]\n";
    let rest = format!("{}\nworkloads: [{{name: seed, run_time: 10m}}]", used(150, 0));
    let rest = rest.replace(", {workload: worker, values: [{at: 0s, value: 0}]}", "");
    let outcome = run("20m", &rest, &objects(&[web(), job.to_owned(), autoscaler("web", 70)]), &[]);
    let rescaled = changes(&outcome);
    assert!(rescaled.first().is_some_and(|first| first.0 > 600), "{rescaled:?}");
    let told = |text: &str| outcome.record.events.iter().any(|event| event.message.contains(text));
    assert!(told("missing request for cpu"));
}
