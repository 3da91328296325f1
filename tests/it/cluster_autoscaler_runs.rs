//! The Cluster Autoscaler in a running cluster: when groups grow and shrink, what happens when EC2 has nothing to give, and
//! how a node ends. `crates/cluster-autoscaler/tests/cluster_autoscaler/main.rs` lists the cases that this file pins.

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::report::Summary;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{Event, EventKind, NodeEnd, NodeFacts};

use crate::node_groups::{minutes, ready, run, times, web};

/// A scenario of an hour under the Cluster Autoscaler; `groups` and `flags` are the inside of a list and of a map, `more` are
/// further keys.
pub(crate) fn scenario(groups: &str, flags: &str, more: &str) -> String {
    format!(
        "name: cas\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\n\
         manifests: [manifests.yaml]\nec2: {{ capacity: infinite, spot: {{ interruptions: none }} }}\n\
         nodeGroups: [{groups}]\npolicies: [{{ name: cas, autoscaler: cluster-autoscaler, flags: {{{flags}}} }}]\n{more}\n"
    )
}

pub(crate) const WORKERS: &str = "{ name: workers, instanceType: m5.large, min: 1, desired: 1, max: 6 }";

fn seconds(seconds: i64) -> nodecast::domain::SimDuration {
    nodecast::domain::SimDuration::from_secs(seconds)
}

pub(crate) fn scaled(steps: &[(i64, u32)]) -> String {
    let steps = steps
        .iter()
        .map(|(at, replicas)| format!("{{ at: {at}m, scale: {{ workload: default/web, replicas: {replicas} }} }}"));
    format!("timeline: [{}]", steps.collect::<Vec<_>>().join(", "))
}

fn events(outcome: &Outcome, kind: EventKind) -> Vec<Event<'_>> {
    outcome.record.events.iter().filter(|event| event.kind == kind).collect()
}

fn messages(outcome: &Outcome, kind: EventKind) -> Vec<&str> {
    events(outcome, kind).into_iter().map(|event| event.message).collect()
}

/// Nodes whose end was decided, in order of decision.
fn leaving(outcome: &Outcome) -> Vec<&NodeFacts> {
    let mut nodes: Vec<&NodeFacts> =
        outcome.record.nodes.iter().filter(|node| node.deletion_requested.is_some()).collect();
    nodes.sort_by_key(|node| node.deletion_requested);
    nodes
}

#[test]
fn group_grows_for_pending_pods_and_shrinks_later() {
    let outcome = run(&scenario(WORKERS, "", &scaled(&[(5, 8), (20, 2)])), &web(2));
    let resized = times(&outcome, EventKind::DesiredCapacitySet);
    assert_eq!(resized.len(), 1, "all at once: {:?}", messages(&outcome, EventKind::DesiredCapacitySet));
    assert!(resized[0] > minutes(5) + seconds(2) && resized[0] < minutes(5) + seconds(25), "pods are new at first");
    let grown = messages(&outcome, EventKind::ScaledUpGroup);
    assert_eq!(grown, ["[{workers 1->4 (max: 6)}] for 6 pods: least-waste of 1 option (workers x3 for 6)"]);
    assert_eq!(events(&outcome, EventKind::TriggeredScaleUp).len(), 6);
    assert_eq!((ready(&outcome, minutes(5)), ready(&outcome, minutes(15))), (1, 4));
    let leaving = leaving(&outcome);
    assert_eq!(leaving.len(), 3);
    for node in &leaving {
        let decided = node.deletion_requested.unwrap();
        assert!(decided > minutes(30) && decided < minutes(45), "{decided:?}");
        assert!(node.terminating.unwrap() >= decided + seconds(5), "the taint comes first");
        assert!(matches!(node.end, Some(NodeEnd::Empty | NodeEnd::Underutilized)));
    }
    let reason = messages(&outcome, EventKind::NodeDisrupted)[0];
    assert!(reason.starts_with("unneeded for 10m") && reason.ends_with("requested"), "{reason}");
    assert_eq!(ready(&outcome, minutes(50)), 1, "the least size stays");
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0);
    assert_eq!(outcome.about.autoscaler, "Cluster Autoscaler 1.36");
}

#[test]
fn autoscaler_flags_change_a_reproducible_run() {
    let flags = "scale-down-unneeded-time: 2m, scale-down-delay-after-add: 2m, max-nodes-total: 3";
    let scenario = scenario(WORKERS, flags, &scaled(&[(5, 8), (20, 2)]));
    let outcome = run(&scenario, &web(2));
    assert_eq!(ready(&outcome, minutes(15)), 3);
    assert_eq!(
        messages(&outcome, EventKind::AutoscalingHeldBack),
        ["the cluster has as many nodes as max-nodes-total allows"]
    );
    let told = messages(&outcome, EventKind::NotTriggerScaleUp);
    assert!(!told.is_empty());
    let reason = "pod didn't trigger scale-up: the cluster has as many nodes as max-nodes-total allows";
    assert!(told.iter().all(|text| *text == reason), "{told:?}");
    assert!(leaving(&outcome).iter().all(|node| node.deletion_requested.unwrap() < minutes(26)));
    let again = run(&scenario, &web(2));
    assert_eq!(outcome.event_hash, again.event_hash);
    assert_eq!(format!("{:?}", outcome.record.events), format!("{:?}", again.record.events));
}

/// Each policy has its own manifests: what one of them states in the wrong place is of no matter to the others.
#[test]
fn priorities_in_wrong_namespace_warn_priority_expander() {
    let place = tempfile::tempdir().unwrap();
    let ranks = |namespace: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: cluster-autoscaler-priority-expander, namespace: {namespace}}}\n\
             data:\n  priorities: |\n    50: ['.*']\n"
        )
    };
    for (name, text) in [("web.yaml", web(2)), ("good.yaml", ranks("kube-system")), ("bad.yaml", ranks("default"))] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let policy = |name: &str, manifests: &str, expander: &str| {
        format!(
            "  - {{name: {name}, autoscaler: cluster-autoscaler, manifests: [{manifests}], flags: {{expander: {expander}}}}}\n"
        )
    };
    let text = format!(
        "name: ranks\nregion: us-east-1\nduration: 10m\nmanifests: [web.yaml]\n\
         nodeGroups: [{{name: g, instanceType: m5.large, min: 1, desired: 1, max: 6}}]\npolicies:\n{}{}{}",
        policy("good", "good.yaml", "priority"),
        policy("bad", "bad.yaml", "priority"),
        policy("other", "bad.yaml", "least-waste")
    );
    std::fs::write(place.path().join("scenario.yaml"), text).unwrap();
    let (scenario, warnings) = nodecast::scenario::load(&place.path().join("scenario.yaml")).unwrap();
    assert!(!warnings.iter().any(|warning| warning.message().contains("priority-expander")), "{warnings:?}");
    let told = |name: &str| {
        let policy = scenario.for_policy(Some(name)).unwrap();
        let resolved = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), 1).unwrap();
        resolved.warnings.texts().iter().any(|text| text.contains("the one in namespace `default` is not read"))
    };
    assert_eq!([told("good"), told("bad"), told("other")], [false, true, false]);
}

#[test]
fn group_without_capacity_yields_to_lower_priority() {
    let groups = "{ name: cheap, instanceType: m5.large, min: 1, desired: 1, max: 6 }, \
                  { name: dear, instanceType: m5a.large, min: 0, desired: 0, max: 6 }";
    let ranks = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander, namespace: \
                 kube-system}\ndata:\n  priorities: |\n    50: [cheap]\n    10: ['.*']\n";
    let fault = "faults: [{ at: 1m, for: 50m, insufficient_capacity: { family: m5 } }]\n";
    let more = format!("{fault}{}", scaled(&[(5, 8)]));
    let outcome = run(&scenario(groups, "expander: priority", &more), &format!("{}{ranks}", web(2)));
    let sizes = messages(&outcome, EventKind::DesiredCapacitySet);
    assert_eq!(
        sizes[..3],
        [
            "cheap: 4 (Cluster Autoscaler scales up)",
            "cheap: 1 (Cluster Autoscaler gives up instances that do not come)",
            "dear: 3 (Cluster Autoscaler scales up)"
        ]
    );
    let failed = events(&outcome, EventKind::FailedToScaleUpGroup);
    assert_eq!(
        failed[0].message,
        "cheap: EC2 had no capacity for its instances (3 asked for); it is left alone for a while"
    );
    assert!(failed[0].at < minutes(7) + seconds(30), "seen at the next reading of the groups: {:?}", failed[0].at);
    assert_eq!(
        messages(&outcome, EventKind::DeleteUnregistered),
        ["cheap: i-placeholder-cheap-1, i-placeholder-cheap-2, i-placeholder-cheap-3"]
    );
    assert_eq!(ready(&outcome, minutes(12)), 4);
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0);
}

#[test]
fn unregistered_instances_are_deleted_after_fifteen_minutes() {
    let fault = "faults: [{ at: 1m, for: 6m, boot_failure: { probability: 1 } }]\n";
    let outcome = run(&scenario(WORKERS, "", &format!("{fault}{}", scaled(&[(5, 3)]))), &web(2));
    let failed = events(&outcome, EventKind::FailedToScaleUpGroup);
    assert!(failed[0].message.contains("did not come within max-node-provision-time"), "{}", failed[0].message);
    assert!(failed[0].at > minutes(20) && failed[0].at < minutes(21), "{:?}", failed[0].at);
    assert!(!messages(&outcome, EventKind::DeleteUnregistered).is_empty());
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0, "another one comes");
}

#[test]
fn pod_fitting_no_group_gets_reasons() {
    let huge = web(1).replace("700m", "\"64\"");
    let outcome = run(&scenario(WORKERS, "", ""), &huge);
    let told = messages(&outcome, EventKind::NotTriggerScaleUp);
    assert_eq!(told, ["pod didn't trigger scale-up: 1 whose nodes do not take it"], "once, not with every iteration");
    assert!(times(&outcome, EventKind::DesiredCapacitySet).is_empty());
}

/// K6.
#[test]
fn empty_node_receiving_pod_after_taint_stays() {
    let groups = "{ name: workers, instanceType: m5.large, min: 1, desired: 2, max: 2 }";
    let late = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: late}\nspec:\n  replicas: 0\n  selector: \
                {matchLabels: {app: late}}\n  template:\n    metadata: {labels: {app: late}}\n    spec:\n      tolerations: \
                [{operator: Exists}]\n      containers: [{name: late, resources: {requests: {cpu: 700m}}}]\n";
    let manifests = format!("{}{late}", web(1));
    let empty = run(&scenario(groups, "", ""), &manifests);
    let tainted = times(&empty, EventKind::NodeTainted);
    assert_eq!((leaving(&empty).len(), tainted.len()), (1, 1));
    assert!(leaving(&empty)[0].terminated.is_some());
    // The pod arrives two seconds later: the other node has room too, so there are enough of them for both.
    let at = (tainted[0] - SimTime::ZERO).as_secs() + 2;
    let scale = format!("timeline: [{{ at: {at}s, scale: {{ workload: default/late, replicas: 2 }} }}]");
    let occupied = run(&scenario(groups, "", &scale), &manifests);
    assert_eq!(messages(&occupied, EventKind::NodeUntainted), ["it is not empty any more"]);
    assert_eq!(ready(&occupied, minutes(15)), 2);
    let spared = occupied.record.nodes.iter().all(|node| node.deletion_requested.is_none() && node.end.is_none());
    assert!(spared, "nothing is left of the decision");
}

/// Two nodes with two pods each; one of the pods of the node that goes may leave at a time.
fn drained(readiness: &str) -> Outcome {
    let groups = "{ name: workers, instanceType: m5.xlarge, min: 1, desired: 2, max: 2 }";
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {maxUnavailable: 1, \
                  selector: {matchLabels: {app: web}}}\n";
    let ready_after = format!(
        "readinessProbe: {{httpGet: {{path: /, port: 80}}, {readiness}}}, resources: {{requests: {{cpu: 700m, memory: 1Gi}}}}"
    );
    let web = web(4).replace("resources: {requests: {cpu: 700m, memory: 1Gi}}", &ready_after);
    assert!(web.contains("readinessProbe"));
    run(&scenario(groups, "", ""), &format!("{web}{budget}"))
}

/// K8.
#[test]
fn rejected_eviction_is_retried_every_ten_seconds() {
    let outcome = drained("periodSeconds: 1");
    let evicted = times(&outcome, EventKind::PodEvicted);
    assert_eq!(evicted.len(), 2);
    assert_eq!((evicted[1] - evicted[0]).as_secs(), 10);
    let node = leaving(&outcome)[0];
    assert_eq!(node.end, Some(NodeEnd::Underutilized));
    assert_eq!((evicted[0] - node.deletion_requested.unwrap()).as_secs(), 5);
    assert!(node.drained.unwrap() > evicted[1] && node.terminated.is_some());
}

/// K8.
#[test]
fn node_with_unevictable_pods_stays() {
    let outcome = drained("initialDelaySeconds: 300");
    let evicted = times(&outcome, EventKind::PodEvicted);
    assert_eq!(messages(&outcome, EventKind::NodeUntainted)[0], "pods on it could not be evicted in time");
    let given_back = times(&outcome, EventKind::NodeUntainted)[0];
    assert_eq!((given_back - evicted[0]).as_secs(), 120);
    assert!(events(&outcome, EventKind::PodEvicted).iter().filter(|event| event.at <= given_back).count() == 1);
}

/// An expendable pod alone on a node, or beside one that has to move; it holds up nothing and ends with the instance.
#[test]
fn expendable_pods_are_neither_evicted_nor_waited_for() {
    let groups = "{ name: base, instanceType: m5.xlarge, min: 1, desired: 1, max: 1 }, \
                  { name: more, instanceType: m5.xlarge, min: 0, desired: 1, max: 1, labels: { role: more } }";
    let low = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -20\n---\n\
               apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: low}\nspec:\n  selector: {matchLabels: {app: low}}\n  \
               template:\n    metadata: {labels: {app: low}, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: \
               \"false\"}}\n    spec:\n      priorityClassName: low\n      nodeSelector: {role: more}\n      containers: \
               [{name: low, resources: {requests: {cpu: 100m}}}]\n";
    for (web, end) in [(String::new(), NodeEnd::Empty), (web(2), NodeEnd::Underutilized)] {
        // The scheduler puts one pod of `web` on each node.
        let outcome = run(&scenario(groups, "", ""), &format!("{web}{low}"));
        assert!(messages(&outcome, EventKind::NodeUntainted).is_empty(), "{end:?}");
        let node = *leaving(&outcome).iter().find(|node| node.name.starts_with("more")).unwrap();
        assert_eq!(node.end, Some(end));
        assert!(node.terminated.is_some());
        let evicted: Vec<&str> = messages(&outcome, EventKind::PodEvicted);
        assert_eq!(
            evicted.iter().filter(|text| text.starts_with("Cluster Autoscaler")).count(),
            usize::from(!web.is_empty())
        );
    }
    let kept = run(&scenario(groups, "", ""), &low.replace("-20", "-5"));
    assert!(leaving(&kept).iter().all(|node| !node.name.starts_with("more")), "-10 is the cutoff");
}

#[test]
fn a_policy_without_autoscaler_keeps_its_nodes() {
    let text = scenario(WORKERS, "", &scaled(&[(5, 8)]))
        .replace("autoscaler: cluster-autoscaler, flags: {}", "autoscaler: static");
    let outcome = run(&text, &web(2));
    assert_eq!((ready(&outcome, minutes(15)), outcome.about.autoscaler.as_str()), (1, "no autoscaler"));
    assert!(Summary::from_outcome(&outcome).pods.pending_at_end > 0);
}

#[test]
fn untagged_groups_are_ignored_unless_named() {
    let cluster = "---\napiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: shop, region: us-east-1}\n\
                   nodeGroups: [{name: own, instanceType: m5.2xlarge, minSize: 1, maxSize: 5, desiredCapacity: 1}]\n";
    let manifests = format!("{}{cluster}", web(30));
    let outcome = run(&scenario(WORKERS, "", ""), &manifests);
    assert!(
        outcome
            .warnings
            .iter()
            .any(|text| &**text == "node group own is not discovered by Cluster Autoscaler, so it keeps its size")
    );
    assert!(messages(&outcome, EventKind::DesiredCapacitySet).iter().all(|text| text.starts_with("workers: ")));
    let tagged =
        manifests.replace("desiredCapacity: 1", "desiredCapacity: 1, iam: {withAddonPolicies: {autoScaler: true}}");
    assert!(run(&scenario(WORKERS, "", ""), &tagged).warnings.is_empty(), "eksctl tags such a group");
    let named = run(&scenario(WORKERS, "nodes: ['1:3:own']", ""), &manifests);
    let sizes = messages(&named, EventKind::DesiredCapacitySet);
    assert_eq!(sizes, ["own: 3 (Cluster Autoscaler scales up)"], "up to the limit that the flag states");
}

#[test]
fn a_volume_on_the_disk_keeps_its_node() {
    let volume = "volumes: [{name: scratch, emptyDir: {}}]\n      containers:";
    let manifests = web(2).replace("containers:", volume);
    let groups = "{ name: workers, instanceType: m5.xlarge, min: 1, desired: 2, max: 2 }";
    let kept = run(&scenario(groups, "", ""), &manifests);
    assert!(leaving(&kept).is_empty());
    let why = messages(&kept, EventKind::NodeNotRemovable);
    assert_eq!(why.len(), 2, "once for each node: {why:?}");
    assert!(why[0].starts_with("BlockedByPod: web-") && why[0].ends_with("(LocalStorageRequested)"), "{}", why[0]);
    let moved = run(&scenario(groups, "skip-nodes-with-local-storage: false", ""), &manifests);
    assert_eq!(leaving(&moved).len(), 1);
}
