//! Rollouts by what their strategies allow, and those that get stuck; daemons that come back.

use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

use crate::keda::{cluster, run};
use crate::workloads::{LATER, at, count, daemon_set, extremes, noted, pods, slow, stateful, there, update_daemons};

#[test]
fn surging_daemon_set_keeps_ready_pods_everywhere() {
    let strategy =
        |surge: u32| format!("  updateStrategy: {{rollingUpdate: {{maxSurge: {surge}, maxUnavailable: 0}}}}\n");
    for (surge, most) in [(1, 4), (2, 5)] {
        let outcome = update_daemons(&strategy(surge), 3);
        let pods = pods(&outcome, "agent");
        let (found, fewest, ready) = extremes(&pods);
        assert_eq!((pods.len(), found, fewest, ready), (6, most, 3, 3), "{surge}");
        assert_eq!(there(&pods, at(1_199)), (3, 3));
        assert_eq!(count(&outcome, EventKind::RolloutFinished), 1);
    }
}

#[test]
fn preempted_daemon_waits_for_its_node() {
    let urgent = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n---\n\
                  apiVersion: v1\nkind: Pod\nmetadata: {name: urgent}\nspec: {priorityClassName: urgent, \
                  containers: [{name: a, image: one, resources: {requests: {cpu: 10}}}]}\n";
    let manifests = format!("{}{}", cluster(0), daemon_set("", "image: one, resources: {requests: {cpu: 10}}"));
    let outcome = run("20m", LATER, &manifests, &[("later.yaml", urgent)]);
    let pods = pods(&outcome, "agent");
    assert_eq!(pods.len(), 2, "one is evicted, one waits for its place");
    assert!(pods[0].removed.is_some() && pods[1].scheduled.is_none() && pods[1].deletion_requested.is_none());
}

#[test]
fn stateful_set_updates_max_unavailable_pods_together() {
    let strategy = "  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}\n";
    let run_with = |rest: &str| {
        let rest = format!("{LATER}\n{rest}");
        let first = format!("{}{}", cluster(0), stateful(5, "one", strategy));
        run("20m", &rest, &first, &[("later.yaml", &stateful(5, "two", strategy))])
    };
    let fewest_ready = |rest: &str| {
        let outcome = run_with(rest);
        let pods = pods(&outcome, "web");
        assert_eq!(pods.len(), 10);
        extremes(&pods).2
    };
    assert_eq!(fewest_ready(""), 3);
    assert_eq!(fewest_ready("versions: {kubernetes: '1.34'}"), 4, "the field counts from 1.35 on");
}

#[test]
fn stalled_rollout_is_reported_after_deadline() {
    let impossible =
        |rest: &str| slow(2, "two", rest).replace("containers:", "nodeSelector: {disk: none}\n      containers:");
    let stalled = |strategy: &str, later: &str| {
        let first = format!("{}{}", cluster(0), slow(2, "one", strategy));
        let outcome = run("30m", LATER, &first, &[("later.yaml", later)]);
        let notes = noted(&outcome, EventKind::RolloutStalled);
        notes.into_iter().map(|(at, text)| (at, text.to_owned())).collect::<Vec<_>>()
    };
    let strategy = "  progressDeadlineSeconds: 120\n";
    assert_eq!(
        stalled(strategy, &impossible(strategy)),
        [(
            720,
            "ProgressDeadlineExceeded: nothing has moved for 2m, with 1 pods of revision 2 and 2 of others, 2 of all available"
                .to_owned()
        )]
    );
    let by_default = stalled("", &impossible(""));
    assert_eq!(by_default.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1_200]);
    assert!(stalled(strategy, &slow(2, "two", strategy)).is_empty(), "this one gets on");
}

/// A DaemonSet on three nodes of which other forms are applied.
fn daemons(timeline: &str) -> Outcome {
    let form = |image: &str| daemon_set("", &format!("image: {image}, readinessProbe: {{initialDelaySeconds: 20}}"));
    let nodes =
        cluster(0).replace("desiredCapacity: 1, minSize: 1, maxSize: 1", "desiredCapacity: 3, minSize: 3, maxSize: 3");
    let others = [("one.yaml", form("one")), ("two.yaml", form("two"))];
    let others: Vec<(&str, &str)> = others.iter().map(|(name, text)| (*name, text.as_str())).collect();
    run("20m", timeline, &format!("{nodes}{}", form("one")), &others)
}

#[test]
fn daemon_set_rollback_replaces_only_updated_pods() {
    let outcome = daemons("timeline: [{at: 10m, manifests: [two.yaml]}, {at: 630s, manifests: [one.yaml]}]");
    let pods = pods(&outcome, "agent");
    let updated = pods.iter().filter(|pod| pod.revision == 1).count();
    assert!((1..3).contains(&updated), "{updated}");
    assert_eq!((pods.len(), there(&pods, at(1_199))), (3 + 2 * updated, (3, 3)));
    assert_eq!(pods[..3].iter().filter(|pod| pod.deletion_requested.is_none()).count(), 3 - updated);
    assert_eq!(count(&outcome, EventKind::RolloutFinished), 1);
}

#[test]
fn reapplied_daemon_set_continues_update() {
    let outcome = daemons("timeline: [{at: 10m, manifests: [two.yaml]}, {at: 605s, manifests: [two.yaml]}]");
    let pods = pods(&outcome, "agent");
    assert_eq!((pods.len(), pods.iter().filter(|pod| pod.revision == 1).count()), (6, 3));
}

#[test]
fn rollout_proceeds_with_anti_affinity_per_template() {
    let strategy = "  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n";
    let term = "{topologyKey: kubernetes.io/hostname, matchLabelKeys: [pod-template-hash], \
                labelSelector: {matchLabels: {app: web}}}";
    let affinity =
        format!("affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}");
    let form = |image: &str| slow(3, image, strategy).replace("containers:", &format!("{affinity}\n      containers:"));
    let nodes =
        cluster(0).replace("desiredCapacity: 1, minSize: 1, maxSize: 1", "desiredCapacity: 3, minSize: 3, maxSize: 3");
    let outcome = run("20m", LATER, &format!("{nodes}{}", form("one")), &[("later.yaml", &form("two"))]);
    let pods = pods(&outcome, "web");
    assert_eq!((pods.len(), there(&pods, at(1_199))), (6, (3, 3)));
    assert_eq!(count(&outcome, EventKind::RolloutFinished), 1);
    let of_revision = |revision: u32| {
        let nodes = pods.iter().filter(|pod| pod.revision == revision).map(|pod| pod.node.unwrap());
        nodes.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((of_revision(0), of_revision(1)), (3, 3), "each on a node of its own");
}

/// A DaemonSet that is on the nodes of one kind and, after ten minutes, on those of the other; two nodes each.
fn moved_daemons(strategy: &str) -> Outcome {
    let groups = ["a", "b"].map(|disk| {
        format!("{{name: {disk}, instanceType: m5.large, desiredCapacity: 2, minSize: 2, maxSize: 2, labels: {{disk: {disk}}}}}")
    });
    let cluster = format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\nmanagedNodeGroups: [{}]\n",
        groups.join(", ")
    );
    let form = |disk: &str| {
        daemon_set(strategy, "image: one, readinessProbe: {initialDelaySeconds: 20}")
            .replace("containers:", &format!("nodeSelector: {{disk: {disk}}}, containers:"))
    };
    run("20m", LATER, &format!("{cluster}{}", form("a")), &[("later.yaml", &form("b"))])
}

#[test]
fn daemons_follow_selector_regardless_of_strategy() {
    for strategy in [
        "",
        "  updateStrategy: {type: OnDelete}\n",
        "  updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n",
    ] {
        let outcome = moved_daemons(strategy);
        let pods = pods(&outcome, "agent");
        assert_eq!((pods.len(), there(&pods, at(1_199))), (4, (2, 2)), "{strategy}");
        let left = pods.iter().filter_map(|pod| pod.deletion_requested).map(|at| at.as_secs());
        assert_eq!(left.collect::<Vec<_>>(), [600, 600], "{strategy}");
        assert!(pods[2..].iter().all(|pod| pod.created.as_secs() == 600), "{strategy}");
        let finished = usize::from(!strategy.contains("OnDelete"));
        assert_eq!(count(&outcome, EventKind::RolloutFinished), finished, "{strategy}");
    }
}

#[test]
fn stateful_set_rollback_finishes_with_old_revision() {
    let timeline = "timeline: [{at: 10m, manifests: [two.yaml]}, {at: 610s, manifests: [one.yaml]}]";
    let (one, two) = (stateful(3, "one", ""), stateful(3, "two", ""));
    let others = [("two.yaml", two.as_str()), ("one.yaml", one.as_str())];
    let outcome = run("20m", timeline, &format!("{}{one}", cluster(0)), &others);
    assert_eq!((count(&outcome, EventKind::RolloutStarted), count(&outcome, EventKind::RolloutFinished)), (2, 1));
    assert!(pods(&outcome, "web").iter().any(|pod| pod.revision == 1));
}
