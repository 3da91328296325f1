//! What ResourceQuotas and LimitRanges refuse, and when it comes all the same.

use nodecast::domain::SimDuration;
use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::cli::Place;
use crate::node_groups::minutes;
use crate::reserved_capacity::run_file;

fn deployment(name: &str, replicas: u32, resources: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name}, namespace: shop }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: {name} }} }}
  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec: {{ containers: [{{ name: own, image: own, resources: {{ {resources} }} }}] }}
"
    )
}

fn object(kind: &str, spec: &str) -> String {
    format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{ name: fair, namespace: shop }}\nspec: {spec}\n")
}

/// Twenty cores in a group of nodes that are there.
fn run(manifests: &str, lines: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    place.put(
        "scenario.yaml",
        &format!(
            "name: quotas\nregion: us-east-1\nduration: 1h\nmanifests: [cluster.yaml]\n\
             nodeGroups: [{{ name: workers, instanceTypes: [m5.xlarge], desired: 5, max: 5 }}]\n\
             policies: [{{ name: fixed, autoscaler: static }}]\n{lines}"
        ),
    );
    run_file(&place.path("scenario.yaml"))
}

fn made(outcome: &Outcome, name: &str) -> usize {
    outcome.record.pods.iter().filter(|pod| pod.name.starts_with(name)).count()
}

fn refusals(outcome: &Outcome) -> Vec<&str> {
    let all = outcome.record.events.iter().filter(|event| event.kind == EventKind::FailedCreate);
    all.map(|event| event.message).collect()
}

#[test]
fn quota_limits_pods_and_reports_it() {
    let asks = "requests: { cpu: 500m, memory: 256Mi }";
    for (hard, pods, told) in [
        ("{ pods: \"4\" }", 4, "exceeded quota: fair, limited: pods=4"),
        ("{ requests.cpu: \"2\" }", 4, "exceeded quota: fair, limited: requests.cpu"),
        ("{ memory: 1Gi }", 4, "exceeded quota: fair, limited: requests.memory"),
        ("{ limits.cpu: \"8\" }", 0, "failed quota: fair: must specify limits.cpu for: own"),
        ("{ count/deployments.apps: \"0\", services: \"1\" }", 6, ""),
    ] {
        let outcome = run(&(deployment("web", 6, asks) + &object("ResourceQuota", &format!("{{ hard: {hard} }}"))), "");
        assert_eq!(made(&outcome, "web"), pods, "{hard}");
        assert_eq!(refusals(&outcome).first().copied().unwrap_or_default(), told, "{hard}");
        assert!(refusals(&outcome).len() < 3, "said once: {:?}", refusals(&outcome));
    }
}

#[test]
fn refused_replica_set_waits_for_its_back_off() {
    // It lacks more pods than one sync makes, and still does not ask again at once.
    let quota = object("ResourceQuota", "{ hard: { pods: \"30\" } }");
    let outcome = run(&(deployment("web", 1_150, "") + &quota), "");
    assert_eq!(made(&outcome, "web"), 30);
    let calls = outcome.record.controllers.limits.iter().find(|limit| limit.client == "replicaset-controller");
    assert!(calls.is_some_and(|limit| limit.calls < 200), "{calls:?}");
}

#[test]
fn quota_counts_pod_level_and_sidecar_limits() {
    let whole = deployment("web", 4, "").replace("containers:", "resources: { limits: { cpu: 2 } }, containers:");
    let limited = "resources: { limits: { cpu: 1 } }";
    let sidecar =
        format!("initContainers: [{{ name: side, image: own, restartPolicy: Always, {limited} }}], containers:");
    let beside = deployment("web", 4, "limits: { cpu: 1 }").replace("containers:", &sidecar);
    for manifests in [whole, beside] {
        let outcome = run(&(manifests + &object("ResourceQuota", "{ hard: { limits.cpu: \"4\" } }")), "");
        assert_eq!((made(&outcome, "web"), refusals(&outcome)[0]), (2, "exceeded quota: fair, limited: limits.cpu"));
    }
}

#[test]
fn claim_quota_blocks_stateful_set_pods() {
    let claims = "  volumeClaimTemplates: [{ metadata: { name: d }, spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 500Mi } } } }]\n";
    let set = deployment("web", 3, "requests: { cpu: 100m }").replace("Deployment", "StatefulSet") + claims;
    let class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n\
                 metadata: { name: gold, annotations: { storageclass.kubernetes.io/is-default-class: 'true' } }\n";
    for (hard, pods, told) in [
        ("{ persistentvolumeclaims: '1' }", 1, "claim d-web-1: exceeded quota: fair, limited: persistentvolumeclaims"),
        ("{ requests.storage: 1Gi }", 2, "claim d-web-2: exceeded quota: fair, limited: requests.storage"),
        ("{ requests.storage: 1500Mi, persistentvolumeclaims: '3' }", 3, ""),
        (
            "{ gold.storageclass.storage.k8s.io/requests.storage: 1Gi }",
            2,
            "claim d-web-2: exceeded quota: fair, limited: gold.storageclass.storage.k8s.io/requests.storage",
        ),
        ("{ silver.storageclass.storage.k8s.io/persistentvolumeclaims: '1' }", 3, ""),
    ] {
        let quota = object("ResourceQuota", &format!("{{ hard: {hard} }}"));
        let outcome = run(&format!("{set}{class}{quota}"), "");
        assert_eq!(made(&outcome, "web"), pods, "{hard}");
        assert_eq!(refusals(&outcome).first().copied().unwrap_or_default(), told, "{hard}");
    }
}

#[test]
fn rejected_pods_are_created_once_quota_allows() {
    let asks = "requests: { cpu: 500m, memory: 256Mi }";
    let manifests = deployment("old", 4, asks)
        + &deployment("web", 4, asks)
        + &object("ResourceQuota", "{ hard: { pods: \"6\" } }");
    let outcome = run(&manifests, "timeline: [{ at: 20m, scale: { workload: shop/old, replicas: 1 } }]\n");
    let first = outcome.record.pods.iter().filter(|pod| pod.created < minutes(20)).count();
    assert_eq!((first, made(&outcome, "web")), (6, 4));
    let later: Vec<_> = outcome.record.pods.iter().map(|pod| pod.created).filter(|at| *at >= minutes(20)).collect();
    assert!(!later.is_empty());
    // The ReplicaSet controller tries again ever more slowly, at most every thousand seconds.
    assert!(later.iter().all(|at| *at - minutes(20) <= SimDuration::from_secs(1_010)), "{later:?}");
}

#[test]
fn a_scope_leaves_other_pods_alone() {
    let quota = object("ResourceQuota", "{ hard: { pods: \"1\" }, scopes: [BestEffort] }");
    let manifests = deployment("asks", 3, "requests: { cpu: 100m }") + &deployment("none", 3, "") + &quota;
    let outcome = run(&manifests, "");
    assert_eq!((made(&outcome, "asks"), made(&outcome, "none")), (3, 1));
    let class = "{ hard: { pods: \"1\" }, scopeSelector: { matchExpressions: [{ scopeName: PriorityClass, operator: In, values: [high] }] } }";
    let outcome = run(&(deployment("asks", 3, "requests: { cpu: 100m }") + &object("ResourceQuota", class)), "");
    assert_eq!(made(&outcome, "asks"), 3);
}

#[test]
fn jobs_and_stateful_sets_wait_for_quota() {
    let job = "---
apiVersion: batch/v1
kind: Job
metadata: { name: count, namespace: shop }
spec:
  parallelism: 4
  completions: 8
  template: { spec: { restartPolicy: Never, containers: [{ name: own, image: own, resources: { requests: { cpu: 100m } } }] } }
";
    let set = deployment("store", 3, "requests: { cpu: 100m }").replace("Deployment", "StatefulSet");
    let manifests = set + job + &object("ResourceQuota", "{ hard: { pods: \"4\" } }");
    let outcome = run(&manifests, "workloads: [{ name: shop/count, run_time: 1m }]\n");
    assert_eq!((made(&outcome, "count"), made(&outcome, "store")), (8, 3));
    let most = outcome.record.pods.iter().filter_map(|pod| Some((pod.created, pod.removed?))).collect::<Vec<_>>();
    let at_once = |at| most.iter().filter(|(from, to)| *from <= at && at < *to).count();
    assert!(most.iter().all(|(from, _)| at_once(*from) <= 4));
    assert!(!refusals(&outcome).is_empty());
}

#[test]
fn limit_range_violations_prevent_pod_creation() {
    let asks = "requests: { cpu: 500m, memory: 256Mi }, limits: { cpu: 2, memory: 1Gi }";
    for (limits, pods) in [
        ("[{ type: Container, max: { cpu: 1 } }]", 0),
        ("[{ type: Container, max: { cpu: 2 } }]", 2),
        ("[{ type: Pod, max: { memory: 512Mi } }]", 0),
        ("[{ type: Pod, min: { cpu: 600m } }]", 0),
        ("[{ type: Pod, min: { cpu: 500m }, max: { cpu: 2 } }]", 2),
    ] {
        let outcome =
            run(&(deployment("web", 2, asks) + &object("LimitRange", &format!("{{ limits: {limits} }}"))), "");
        assert_eq!(made(&outcome, "web"), pods, "{limits}");
        assert_eq!(refusals(&outcome).is_empty(), pods > 0, "{limits}: {:?}", refusals(&outcome));
    }
}

#[test]
fn security_group_pods_share_branch_interfaces() {
    let pods = deployment("web", 100, "requests: { cpu: 10m }");
    let policy = "---\napiVersion: vpcresources.k8s.aws/v1beta1\nkind: SecurityGroupPolicy\nmetadata: { name: own, namespace: shop }\n\
                  spec: { podSelector: { matchLabels: { app: web } }, securityGroups: { groupIds: [sg-1] } }\n";
    // An m5.xlarge has 18 of them.
    for (with, ready) in [(policy, 90), ("", 100)] {
        let outcome = run(&format!("{pods}{with}"), "");
        assert_eq!(outcome.record.pods.iter().filter(|pod| pod.ready.is_some()).count(), ready, "{with}");
    }
}
