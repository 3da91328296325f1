//! What people do with kubectl during a run: cordon, drain, delete; and the death of one node.

use std::collections::BTreeSet;

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::report::{Summary, tables};
use nodecast::scenario::Scenario;
use nodecast::scenario::error::Render;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts, PodFacts};

use crate::cli::Place;
use crate::node_groups::{minutes, times};
use crate::pool_changes::{deployment, pool};

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";

/// At most one replica of `web` is missing at a time.
const BUDGET: &str = "---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
";

/// A pod that nothing controls.
const BARE: &str = "---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: shop, labels: {app: alone}}
spec:
  nodeSelector: {pool: general}
  containers: [{name: own, image: own, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
";

/// Four replicas on two nodes or so of a pool that disrupts nothing by itself.
fn cluster() -> String {
    CLASS.to_owned() + &pool("general", "m5", "0") + &deployment("web", 4, "general")
}

fn load(manifests: &str, more: &str) -> Result<Scenario, String> {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    let text = "name: hand\nregion: us-east-1\nduration: 1h\ncluster: { zones: [us-east-1a, us-east-1b] }\n\
                manifests: [cluster.yaml]\nec2: { capacity: infinite }\n";
    place.put("scenario.yaml", &format!("{text}{more}"));
    nodecast::scenario::load(&place.path("scenario.yaml")).map(|(scenario, _)| scenario).map_err(|error| error.render())
}

fn simulate(manifests: &str, more: &str) -> Outcome {
    let scenario = load(manifests, more).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

fn steps(manifests: &str, steps: &str) -> Outcome {
    simulate(manifests, &format!("timeline:\n{steps}"))
}

fn seconds(at: SimTime) -> f64 {
    (at - SimTime::ZERO).as_secs_f64()
}

fn first_node(outcome: &Outcome) -> &NodeFacts {
    &outcome.record.nodes[0]
}

/// The pods that were on the node, without daemons.
fn pods_on(outcome: &Outcome, node: usize) -> Vec<PodFacts> {
    outcome.record.pods.iter().filter(|pod| pod.node.is_some_and(|this_node| this_node.index() == node)).collect()
}

/// Pods that are there and scheduled at the end.
fn running(outcome: &Outcome) -> usize {
    outcome.record.pods.iter().filter(|pod| pod.scheduled.is_some() && pod.removed.is_none()).count()
}

fn of_group(size: u32) -> String {
    format!("nodeGroups: [{{ name: workers, instanceTypes: [m5.large], desired: {size}, max: 4 }}]\n")
}

fn web_on_group() -> String {
    crate::node_groups::web(3)
}

#[test]
fn drain_speed_is_limited_by_pdb() {
    let drain = "  - { at: 30m, drain: { labels: { karpenter.sh/nodepool: general }, count: 1 } }\n";
    let outcome = steps(&(cluster() + BUDGET), drain);
    assert_eq!(times(&outcome, EventKind::NodeCordoned), [minutes(30)]);
    let there = pods_on(&outcome, 0);
    assert!(there.len() >= 3, "{}", there.len());
    assert!(there.iter().all(|pod| pod.evicted && pod.deletion_requested.unwrap() >= minutes(30)));
    let mut evicted: Vec<i64> =
        there.iter().map(|pod| (pod.deletion_requested.unwrap() - minutes(30)).as_micros()).collect();
    evicted.sort_unstable();
    assert_eq!(evicted[0], 0);
    for pair in evicted.windows(2) {
        assert!(pair[1] > pair[0], "one at a time: {evicted:?}");
        assert_eq!((pair[1] - pair[0]) % 5_000_000, 0, "tried every five seconds: {evicted:?}");
    }
    assert_eq!(times(&outcome, EventKind::NodeDrained).len(), 1);
    assert_eq!(running(&outcome), 4);
    assert!(outcome.warnings.iter().all(|warning| !warning.contains("there is no")), "{:?}", outcome.warnings);
    let free = steps(&cluster(), drain);
    assert!(
        pods_on(&free, 0).iter().all(|pod| pod.deletion_requested == Some(minutes(30))),
        "without a budget all go at once"
    );
}

#[test]
fn drain_spares_bare_pods_unless_forced() {
    let drain = |force: bool| format!("  - {{ at: 30m, drain: {{ labels: {{ pool: general }}, force: {force} }} }}\n");
    let manifests = CLASS.to_owned() + &pool("general", "m5", "0") + BARE;
    let careful = steps(&manifests, &drain(false));
    assert_eq!(times(&careful, EventKind::DrainFailed), [minutes(30)]);
    assert_eq!(times(&careful, EventKind::NodeCordoned), [minutes(30)], "cordoned all the same");
    assert_eq!(running(&careful), 1);
    let forced = steps(&manifests, &drain(true));
    assert_eq!(times(&forced, EventKind::DrainFailed), []);
    assert_eq!(running(&forced), 0, "nobody makes it again");
}

#[test]
fn drain_blocked_by_pdb_times_out() {
    let never = BUDGET.replace("maxUnavailable: 1", "maxUnavailable: 0");
    let outcome =
        steps(&(cluster() + &never), "  - { at: 30m, drain: { labels: { pool: general }, count: 1, timeout: 2m } }\n");
    assert_eq!(times(&outcome, EventKind::DrainFailed), [minutes(32)]);
    assert_eq!(times(&outcome, EventKind::PodEvicted), []);
    let later = "  - { at: 30m, drain: { labels: { pool: general }, count: 1 } }
  - { at: 40m, delete: { kind: PodDisruptionBudget, name: shop/web } }
";
    let outcome = steps(&(cluster() + &never), later);
    assert!(
        pods_on(&outcome, 0).iter().all(|pod| pod.deletion_requested == Some(minutes(40))),
        "until somebody deletes the budget"
    );
}

#[test]
fn cordoned_node_takes_no_pods() {
    let scale = |at: &str, replicas: u32| {
        format!("  - {{ at: {at}, scale: {{ workload: shop/web, replicas: {replicas} }} }}\n")
    };
    let manifests = CLASS.to_owned() + &pool("general", "m5", "0") + &deployment("web", 1, "general");
    let free = steps(&manifests, &scale("30m", 2));
    assert_eq!(free.record.nodes.len(), 1, "there is room for a second replica");
    let cordon = "  - { at: 20m, cordon: { name: general-00001 } }\n";
    let held = steps(&manifests, &(cordon.to_owned() + &scale("30m", 2)));
    assert_eq!(held.record.nodes.len(), 2);
    let uncordon = "  - { at: 25m, uncordon: { labels: { topology.kubernetes.io/region: us-east-1 } } }\n";
    let again = steps(&manifests, &(cordon.to_owned() + uncordon + &scale("30m", 2)));
    assert_eq!(again.record.nodes.len(), 1);
}

#[test]
fn deleting_missing_object_is_reported() {
    let outcome = steps(
        &cluster(),
        "  - { at: 20m, cordon: { name: general-99999 } }
  - { at: 20m, drain: { labels: { no: such } } }
  - { at: 20m, delete: { kind: Node, name: general-99999 } }
  - { at: 20m, delete: { kind: Pod, namespace: shop, labels: { app: none } } }
",
    );
    let said: Vec<&str> =
        outcome.warnings.iter().filter_map(|warning| warning.strip_prefix("at 00:20:00: there is no ")).collect();
    let expected = [
        "node general-99999 to cordon",
        "node no=such to drain",
        "Node general-99999 to delete",
        "Pod app=none to delete",
    ];
    assert_eq!(said, expected);
}

#[test]
fn deleted_deployment_can_be_recreated() {
    let place = Place::new();
    place.put("cluster.yaml", &(CLASS.to_owned() + &pool("general", "m5", "100%") + &deployment("web", 4, "general")));
    place.put("again.yaml", &deployment("web", 2, "general"));
    place.put(
        "scenario.yaml",
        "name: hand\nregion: us-east-1\nduration: 1h\nmanifests: [cluster.yaml]\ntimeline:
  - { at: 20m, delete: { kind: Deployment, name: shop/web } }
  - { at: 40m, manifests: [again.yaml] }
",
    );
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let outcome = run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    let deleted =
        outcome.record.pods.iter().filter(|pod| pod.deletion_requested == Some(minutes(20)) && !pod.evicted).count();
    assert_eq!(deleted, 4);
    let empty = outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Empty));
    assert!(empty.clone().count() >= 1 && empty.clone().all(|node| node.terminated.unwrap() < minutes(30)));
    let made: Vec<PodFacts> = outcome.record.pods.iter().filter(|pod| pod.created >= minutes(20)).collect();
    assert_eq!(made.len(), 2, "nobody makes them again before it is applied again");
    assert!(made.iter().all(|pod| pod.created >= minutes(40) && pod.scheduled.is_some()));
    // It is one for who reads of it, and no autoscaler has touched it.
    let summary = Summary::from_outcome(&outcome);
    assert_eq!((summary.scaling.rescales, summary.scaling.workloads.len()), (0, 1));
    assert_eq!(summary.scaling.workloads[0].max_replicas_desired, 4);
    let available: Vec<&str> = summary.availability.workloads.iter().map(|workload| &*workload.workload).collect();
    let waited: Vec<u64> = summary.pods.by_workload.iter().map(|workload| workload.waits.pods).collect();
    assert_eq!((available, waited), (vec!["shop/web"], vec![6]));
    let table = String::from_utf8(tables::bytes(tables::workloads, &outcome).unwrap()).unwrap();
    let keys: Vec<String> = table.lines().map(|line| line.split(',').take(2).collect::<Vec<_>>().join(",")).collect();
    let different: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(different.len(), keys.len(), "one line for a workload and an instant");
}

#[test]
fn deleted_hpa_leaves_replicas_unchanged() {
    let hpa = "---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {minReplicas: 6, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
";
    let manifests = cluster() + hpa;
    let held = steps(&manifests, "  - { at: 30m, scale: { workload: shop/web, replicas: 2 } }\n");
    assert_eq!(running(&held), 6);
    let freed = steps(
        &manifests,
        "  - { at: 20m, delete: { kind: HorizontalPodAutoscaler, name: shop/web } }
  - { at: 30m, scale: { workload: shop/web, replicas: 2 } }
",
    );
    assert_eq!(running(&freed), 2);
}

#[test]
fn deleted_pool_drains_and_pods_move() {
    let any = |name: &str, family: &str, weight: u32| {
        pool(name, family, "0")
            .replace(&format!("pool: {name}"), "pool: any")
            .replace("spec:\n  template:", &format!("spec:\n  weight: {weight}\n  template:"))
    };
    let manifests = CLASS.to_owned() + &any("first", "m5", 10) + &any("second", "c5", 1) + &deployment("web", 8, "any");
    let outcome = steps(&manifests, "  - { at: 30m, delete: { kind: NodePool, name: first } }\n");
    let of = |pool: &str| -> Vec<&NodeFacts> {
        outcome.record.nodes.iter().filter(|node| node.name.starts_with(pool)).collect()
    };
    assert!(of("first").len() >= 2);
    for node in of("first") {
        assert_eq!((node.deletion_requested, node.end), (Some(minutes(30)), Some(NodeEnd::Deleted)), "{}", node.name);
        assert!(node.terminated.is_some_and(|at| at < minutes(40)));
    }
    assert!(of("second").iter().all(|node| node.launched.unwrap() >= minutes(30)));
    assert_eq!(running(&outcome), 8);
}

#[test]
fn deleted_node_claim_drains_first() {
    for kind in ["NodeClaim", "Node"] {
        let step = format!("  - {{ at: 30m, delete: {{ kind: {kind}, labels: {{ pool: general }}, count: 1 }} }}\n");
        let outcome = steps(&(cluster() + BUDGET), &step);
        let node = first_node(&outcome);
        assert_eq!((node.deletion_requested, node.end), (Some(minutes(30)), Some(NodeEnd::Deleted)), "{kind}");
        let last = pods_on(&outcome, 0).iter().filter_map(|pod| pod.removed).max().unwrap();
        assert!(node.drained.unwrap() >= last, "{kind}: the budget holds for its pods");
        assert!(node.terminated.unwrap() > node.drained.unwrap());
        assert_eq!(running(&outcome), 4, "{kind}");
    }
}

#[test]
fn deleted_group_node_leaves_billed_instance() {
    let delete = "timeline:\n  - { at: 20m, delete: { kind: Node, name: workers-00000 } }\n";
    let outcome = simulate(&web_on_group(), &(of_group(3) + delete));
    let node = first_node(&outcome);
    assert_eq!(node.terminating, None);
    assert_eq!(outcome.record.nodes.len(), 3, "nobody makes another");
    let moved: Vec<PodFacts> = pods_on(&outcome, 0).into_iter().filter(|pod| pod.removed.is_some()).collect();
    assert!(!moved.is_empty());
    for pod in moved {
        let after = seconds(pod.removed.unwrap()) - 1_200.0;
        assert!((40.0..=60.0).contains(&after), "the garbage collector waits 40 s: {after}");
    }
    assert_eq!(running(&outcome), 3);
    let kept = simulate(&web_on_group(), &of_group(3));
    assert_eq!(outcome.bill.total(), kept.bill.total(), "three instances cost what they cost");
    let smaller = format!("{delete}  - {{ at: 30m, scale_group: {{ group: workers, desired: 0 }} }}\n");
    let group = "nodeGroups: [{ name: workers, instanceTypes: [m5.large], desired: 3, min: 0, max: 4 }]\n";
    let outcome = simulate(&web_on_group(), &(group.to_owned() + &smaller));
    assert!(outcome.record.nodes.iter().all(|node| node.terminated.is_some()), "the group still knows its instance");
}

#[test]
fn cluster_autoscaler_removes_instance_of_deleted_node() {
    let delete = "timeline:\n  - { at: 10m, delete: { kind: Node, name: workers-00000 } }\n";
    let policies = "policies: [{ name: groups, autoscaler: cluster-autoscaler }]\n";
    let outcome =
        simulate(&web_on_group(), &(of_group(3).replace("desired: 3", "desired: 3, min: 1") + policies + delete));
    let given_up = first_node(&outcome).terminating.unwrap();
    assert!(given_up > minutes(25) && given_up < minutes(27), "after the provision time of 15 min: {given_up}");
    assert_eq!(running(&outcome), 3);
}

#[test]
fn the_instance_of_one_node_fails() {
    let fault = |what: &str| format!("faults:\n  - {{ at: 30m, {what} }}\n");
    let name = "general-00001";
    let outcome = simulate(&cluster(), &fault(&format!("node_failure: {{ node: {name}, mode: terminated }}")));
    let lost: Vec<&NodeFacts> =
        outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::InstanceLost)).collect();
    assert_eq!(lost.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), [name]);
    assert_eq!(lost[0].terminating, Some(minutes(30)));
    assert_eq!(running(&outcome), 4);
    let none = simulate(&cluster(), &fault("node_failure: { node: general-00042 }"));
    let said = "at 00:30:00: there is no running instance of the node general-00042 that the fault could strike";
    assert!(none.warnings.iter().any(|warning| &**warning == said), "{:?}", none.warnings);
}

#[test]
fn steps_that_mean_nothing_or_everything_are_refused() {
    for (step, expected) in [
        ("drain: { count: 1 }", "the step says of nothing which it means"),
        ("cordon: { name: a, labels: { b: c } }", "the step says by name and by labels which it means"),
        ("cordon: { labels: {} }", "`labels` holds no label"),
        ("delete: { kind: Deployment, labels: { app: web } }", "a Deployment is deleted by its name"),
        ("delete: { kind: Deployment, name: shop/wep }", "did you mean `shop/web`?"),
        ("delete: { kind: NodePool, name: generall }", "did you mean `general`?"),
        (
            "delete: { kind: Pod, namespace: shop, name: web-1 }",
            "`namespace` belongs to pods that are chosen by labels",
        ),
        ("delete: { kind: Secret, name: shop/web }", "Secret"),
    ] {
        let error = load(&cluster(), &format!("timeline:\n  - {{ at: 30m, {step} }}\n")).unwrap_err();
        assert!(error.contains(expected), "{step}: {error}");
        assert!(error.contains("help:"), "{step}: {error}");
    }
}
