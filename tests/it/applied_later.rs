//! What acts on other objects: budgets, quotas and ranks that a timeline applies, budgets over pods of Jobs, annotations of NodePools, closed
//! gates of pods.

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::scenario::error::Render;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::EventKind;

use crate::cli::Place;
use crate::node_groups::{minutes, times};
use crate::pool_changes::{deployment, pool};

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";

/// Four pods of one Job that run to the end.
const JOB: &str = "---
apiVersion: batch/v1
kind: Job
metadata: {name: report, namespace: shop}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata: {labels: {app: report}}
    spec:
      restartPolicy: Never
      nodeSelector: {pool: general}
      containers: [{name: own, image: own, resources: {requests: {cpu: 500m, memory: 1Gi}}}]
";

fn budget(app: &str, rule: &str) -> String {
    format!(
        "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {app}, namespace: shop}}\n\
         spec: {{{rule}, selector: {{matchLabels: {{app: {app}}}}}}}\n"
    )
}

/// The cluster of these manifests for an hour; `later.yaml` is there for the timeline.
fn simulate(manifests: &str, later: &str, more: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    place.put("later.yaml", later);
    let text = "name: later\nregion: us-east-1\nduration: 1h\ncluster: { zones: [us-east-1a, us-east-1b] }\n\
                manifests: [cluster.yaml]\nec2: { capacity: infinite }\n";
    place.put("scenario.yaml", &format!("{text}{more}"));
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).map_err(|error| error.render()).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

#[test]
fn late_daemon_set_starts_after_startup_taint() {
    let tainted = "expireAfter: Never\n      startupTaints: [{key: own/agent, effect: NoSchedule}]";
    let pool = pool("general", "m5", "0").replace("expireAfter: Never", tainted);
    let manifests = CLASS.to_owned() + &pool + &deployment("web", 1, "general");
    let daemon = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: shop}\nspec:\n  \
        selector: {matchLabels: {app: agent}}\n  template:\n    metadata: {labels: {app: agent}}\n    spec: \
        {containers: [{name: own, image: own, resources: {requests: {cpu: 10m}}}]}\n";
    let ready = simulate(&manifests, daemon, "").record.nodes[0].ready.unwrap();
    // The taint comes off five seconds after that.
    let at = seconds(ready).ceil() + 1.0;
    let outcome = simulate(&manifests, daemon, &format!("timeline:\n  - {{ at: {at}s, manifests: [later.yaml] }}\n"));
    let made: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("agent")).collect();
    assert_eq!(made.len(), 1);
    assert!(made[0].ready.is_some() && seconds(made[0].created) > at + 1.0, "{:?}", made[0]);
}

fn seconds(at: SimTime) -> f64 {
    (at - SimTime::ZERO).as_secs_f64()
}

fn evictions(outcome: &Outcome) -> usize {
    times(outcome, EventKind::PodEvicted).len()
}

#[test]
fn timeline_pdb_blocks_and_later_allows_evictions() {
    let manifests = CLASS.to_owned() + &pool("general", "m5", "0") + &deployment("web", 4, "general");
    let drain = "  - { at: 20m, drain: { labels: { pool: general } } }\n";
    let free = simulate(&manifests, "", &format!("timeline:\n{drain}"));
    assert!(evictions(&free) >= 4, "{}", evictions(&free));
    let applied = "timeline:\n  - { at: 10m, manifests: [later.yaml] }\n";
    let held = simulate(&manifests, &budget("web", "minAvailable: 100%"), &format!("{applied}{drain}"));
    assert_eq!(evictions(&held), 0);
    assert!(held.record.events.iter().any(|event| event.message == "PodDisruptionBudget shop/web"));

    let strict = manifests + &budget("web", "minAvailable: 100%");
    let loosened = "timeline:\n  - { at: 30m, manifests: [later.yaml] }\n";
    let later = simulate(&strict, &budget("web", "maxUnavailable: 1"), &format!("{loosened}{drain}"));
    assert!(evictions(&later) >= 4, "{}", evictions(&later));
    assert!(times(&later, EventKind::PodEvicted).iter().all(|&at| at >= minutes(30)));
}

#[test]
fn timeline_quota_rejects_later_pods() {
    let manifests = CLASS.to_owned() + &pool("general", "m5", "0") + &deployment("web", 2, "general");
    let quota =
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small, namespace: shop}\nspec: {hard: {pods: 3}}\n";
    let scaled = "timeline:\n  - { at: 10m, manifests: [later.yaml] }\n  - { at: 20m, scale: { workload: shop/web, replicas: 6 } }\n";
    let outcome = simulate(&manifests, quota, scaled);
    let there = outcome.record.pods.iter().filter(|pod| pod.removed.is_none()).count();
    assert_eq!(there, 3);
}

#[test]
fn timeline_group_priorities_apply_to_later_launches() {
    let ranks = |first: &str, second: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: cluster-autoscaler-priority-expander, namespace: kube-system}}\n\
             data:\n  priorities: |\n    50: [{first}.*]\n    10: [{second}.*]\n"
        )
    };
    let web = deployment("web", 0, "general").replace("900m", "3");
    let more = "nodeGroups:
  - { name: old, instanceType: m5.xlarge, min: 0, desired: 0, max: 10, labels: { pool: general } }
  - { name: new, instanceType: m5.xlarge, min: 0, desired: 0, max: 10, labels: { pool: general } }
policies: [{ name: ca, autoscaler: cluster-autoscaler, flags: { expander: priority } }]
timeline:
  - { at: 5m, scale: { workload: shop/web, replicas: 1 } }
  - { at: 20m, manifests: [later.yaml] }
  - { at: 25m, scale: { workload: shop/web, replicas: 2 } }
";
    let outcome = simulate(&format!("{}{web}", ranks("old", "new")), &ranks("new", "old"), more);
    let groups: Vec<&str> = outcome.record.nodes.iter().map(|node| node.origin.name().as_str()).collect();
    assert_eq!(groups, ["old", "new"]);
}

#[test]
fn job_pdb_needs_absolute_min_available() {
    let manifests = CLASS.to_owned() + &pool("general", "m5", "0") + JOB;
    let more = "workloads: [{ name: shop/report, run_time: 10h }]\ntimeline:\n  - { at: 20m, drain: { labels: { pool: general } } }\n";
    let evicted = |rule: &str| evictions(&simulate(&(manifests.clone() + &budget("report", rule)), "", more));
    assert_eq!(evicted("maxUnavailable: 1"), 0);
    assert_eq!(evicted("minAvailable: 50%"), 0);
    assert!(evicted("minAvailable: 1") >= 3);
}

#[test]
fn annotations_of_a_node_pool_reach_its_nodes() {
    let web = deployment("web", 6, "general");
    let disrupted = |annotated: bool| {
        let labels = "metadata: {labels: {pool: general}}";
        let this_pool = pool("general", "m5", "100%");
        let annotation = "metadata: {labels: {pool: general}, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}";
        let pool = if annotated { this_pool.replace(labels, annotation) } else { this_pool };
        let manifests = CLASS.to_owned() + &pool + &web;
        let down = "timeline:\n  - { at: 20m, scale: { workload: shop/web, replicas: 1 } }\n";
        times(&simulate(&manifests, "", down), EventKind::NodeDisrupted).len()
    };
    assert!(disrupted(false) > 0);
    assert_eq!(disrupted(true), 0);
}

#[test]
fn scheduling_gates_prevent_node_launches() {
    let web = deployment("web", 2, "general")
        .replace("      nodeSelector", "      schedulingGates: [{name: queue}]\n      nodeSelector");
    let outcome = simulate(&(CLASS.to_owned() + &pool("general", "m5", "0") + &web), "", "");
    assert_eq!(outcome.record.nodes.len(), 0);
    assert_eq!(outcome.record.pods.iter().filter(|pod| pod.scheduled.is_none() && pod.removed.is_none()).count(), 2);
    let told = outcome.warnings.iter().filter(|warning| warning.contains("schedulingGates")).count();
    assert_eq!(told, 1, "{:?}", outcome.warnings);
}

#[test]
fn not_ready_node_gets_no_pods() {
    let node = |name: &str, ready: &str| {
        let holds = "{ cpu: \"4\", memory: 8Gi, pods: \"20\" }";
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{pool: general}}}}\n\
             status: {{allocatable: {holds}, capacity: {holds}, conditions: [{{type: Ready, status: \"{ready}\"}}]}}\n"
        )
    };
    let manifests = node("up", "True") + &node("down", "False") + &deployment("web", 6, "general");
    let outcome = simulate(&manifests, "", "policies: [{ name: static, autoscaler: static }]\n");
    let on = |name: &str| {
        let placed = outcome.record.pods.iter().filter_map(|pod| pod.node);
        placed.filter(|node| outcome.record.nodes[node.index()].name.as_str() == name).count()
    };
    assert_eq!((on("up"), on("down")), (4, 0));
}
