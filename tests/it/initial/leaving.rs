//! Pods that are on their way out when a run begins with a dump: being deleted, or not to be borne by their node for much longer.

use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::Outcome;

use super::{NODE_GROUP, OF_GROUP, cluster, deployment, node, outcome, pod};
use crate::cli::Place;

const STATIC: &str = "policies: [{ name: own, autoscaler: static }]\n";

/// A pod that nothing controls, with more of a specification and of metadata.
fn by_hand(name: &str, spec: &str, metadata: &str) -> String {
    let pod = pod(name, "s1", None, 100);
    let pod = pod.replace("  nodeName: s1\n", &format!("  nodeName: s1\n{spec}"));
    pod.replace("  namespace: shop\n", &format!("  namespace: shop\n{metadata}"))
}

/// A node with a taint that evicts, and what more the taint says.
fn tainted(more: &str) -> String {
    let spec = format!("spec: {{taints: [{{key: maintenance, effect: NoExecute{more}}}]}}\nstatus:\n");
    node("s1", OF_GROUP, 20).replace("status:\n", &spec)
}

/// A pod that bears the taint for so many seconds, or for ever.
fn bearing(name: &str, seconds: Option<u32>) -> String {
    let limit = seconds.map_or_else(String::new, |seconds| format!(", tolerationSeconds: {seconds}"));
    by_hand(name, &format!("  tolerations: [{{key: maintenance, operator: Exists{limit}}}]\n"), "")
}

/// When the deletion of a pod began, in seconds.
fn asked(outcome: &Outcome, name: &str) -> Option<i64> {
    let pod = outcome.record.pods.iter().find(|pod| pod.name == name).unwrap();
    pod.deletion_requested.map(SimTime::as_secs)
}

#[test]
fn taint_toleration_counts_from_taint_time() {
    let pods =
        [bearing("due", Some(600)), bearing("later", Some(4_500)), bearing("stays", None), by_hand("bare", "", "")];
    let begun = |more: &str| {
        let place = cluster(&deployment("web", 0), &(tainted(more) + &pods.concat()), &format!("{NODE_GROUP}{STATIC}"));
        let outcome = outcome(&place, "scenario.yaml");
        ["due", "later", "stays", "bare"].map(|name| asked(&outcome, name))
    };
    // The run begins at 12:00: ten minutes were over at 11:10, an hour and a quarter are at 12:15.
    assert_eq!(begun(", timeAdded: \"2026-10-31T11:00:00Z\""), [Some(0), Some(900), None, Some(0)]);
    // Whoever put it there did not say when: as if the controller had been started just now.
    assert_eq!(begun(""), [Some(600), None, None, Some(0)]);
}

#[test]
fn deleting_pod_keeps_remaining_grace_period() {
    let leaving = |name: &str, until: &str| {
        by_hand(name, "", &format!("  deletionTimestamp: \"2026-10-31T{until}Z\"\n  deletionGracePeriodSeconds: 600\n"))
    };
    let pods = [leaving("due", "11:59:00"), leaving("soon", "12:00:20"), leaving("later", "12:05:00")].concat();
    let dump = node("s1", OF_GROUP, 20) + &pods;
    let more = format!("{NODE_GROUP}{STATIC}workloads: [{{ name: shop/own, shutdown_time: 4m }}]\n");
    let controlled = |name: &str, until: &str| {
        pod(name, "s1", Some(("ReplicaSet", "own-5f4d7")), 250).replace(
            "  namespace: shop\n",
            &format!("  namespace: shop\n  deletionTimestamp: \"2026-10-31T{until}Z\"\n"),
        )
    };
    let dump = dump + &controlled("own-late", "12:02:00") + &controlled("own-long", "12:30:00");
    let outcome = outcome(&cluster(&deployment("own", 0), &dump, &more), "scenario.yaml");
    let gone = |name: &str| {
        let pod = outcome.record.pods.iter().find(|pod| pod.name == name).unwrap();
        pod.removed.map(|removed| removed - SimTime::ZERO)
    };
    let seconds = |seconds: i64| Some(SimDuration::from_secs(seconds));
    assert_eq!(gone("due"), seconds(0), "its time was over before the run began");
    // An application of which the scenario says nothing takes a second.
    assert_eq!((gone("soon"), gone("later")), (seconds(1), seconds(1)));
    assert_eq!((gone("own-late"), gone("own-long")), (seconds(120), seconds(240)), "at most what it takes");
}

#[test]
fn init_keeps_terminating_pods_on_nodes() {
    let leaving = by_hand("leaving", "", "  deletionTimestamp: \"2026-10-31T12:00:20Z\"\n");
    let place = Place::new();
    place.put("all.yaml", &(node("s1", OF_GROUP, 20) + &deployment("web", 1) + &leaving));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "all.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    place.put("own/scenario.yaml", &text.replace("duration: 24h", "duration: 1h"));
    let workloads = std::fs::read_to_string(place.path("own/workloads.yaml")).unwrap();
    assert!(!workloads.contains("leaving"), "nothing makes it again: {workloads}");
    let outcome = outcome(&place, "own/scenario.yaml");
    assert_eq!(asked(&outcome, "leaving"), Some(0));
    assert!(outcome.record.pods.iter().any(|pod| pod.name == "leaving" && pod.removed.is_some()));
}

#[test]
fn pods_leave_not_ready_node_after_five_minutes() {
    let begun = |taint: &str, added: &str| {
        let spec = format!(
            "spec: {{taints: [{{key: node.kubernetes.io/{taint}, effect: NoExecute, timeAdded: \"2026-10-31T{added}Z\"}}]}}\nstatus:\n"
        );
        let node = node("s1", OF_GROUP, 20).replace("status:\n", &spec);
        let node = node.replace("{type: Ready, status: \"True\"", "{type: Ready, status: Unknown");
        let dump = node + &pod("web-a", "s1", Some(("ReplicaSet", "web-5f4d7")), 250);
        let place = cluster(&deployment("web", 1), &dump, &format!("{NODE_GROUP}{STATIC}"));
        let outcome = outcome(&place, "scenario.yaml");
        let again = outcome.record.pods.iter().filter(|pod| pod.name != "web-a" && pod.ready.is_some()).count();
        let old = outcome.record.pods.iter().find(|pod| pod.name == "web-a").unwrap();
        let removed = old.removed.map(|removed| (removed - SimTime::ZERO).as_secs());
        (asked(&outcome, "web-a"), removed, again)
    };
    assert_eq!(begun("unreachable", "11:57:00"), (Some(120), None, 1), "its kubelet stops nothing");
    assert_eq!(begun("not-ready", "11:50:00"), (Some(0), Some(1), 1));
}

#[test]
fn pods_are_deleted_with_their_deleted_owner() {
    let going = |text: String, finalizer: &str| {
        let more = format!("namespace: shop, deletionTimestamp: \"2026-10-31T11:59:50Z\", finalizers: [{finalizer}]}}");
        text.replacen("namespace: shop}", &more, 1)
    };
    let job = |name: &str, status: &str| {
        format!(
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{completions: 9, template: {{spec: \
             {{restartPolicy: Never, containers: [{{name: own, image: own, resources: {{requests: {{cpu: 100m, memory: 900Mi}}}}}}]}}}}}}\n\
             status: {{{status}}}\n"
        )
    };
    let dump = [
        node("s1", OF_GROUP, 20),
        deployment("web", 1),
        going(deployment("old", 1), "foregroundDeletion"),
        going(deployment("kept", 1), "orphan"),
        going(job("stopped", "active: 1"), "foregroundDeletion"),
        job("failed", "active: 1, failed: 7, conditions: [{type: FailureTarget, status: \"True\"}]"),
        pod("web-5f4d7-x", "s1", Some(("ReplicaSet", "web-5f4d7")), 250),
        pod("old-5f4d7-x", "s1", Some(("ReplicaSet", "old-5f4d7")), 250),
        pod("kept-5f4d7-x", "s1", Some(("ReplicaSet", "kept-5f4d7")), 250),
        pod("stopped-x", "s1", Some(("Job", "stopped")), 100),
        pod("failed-x", "s1", Some(("Job", "failed")), 100),
    ]
    .concat();
    let place = Place::new();
    place.put("all.yaml", &dump);
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "all.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("add `jobs,cronjobs`"), "{err}");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(text.contains("3 pods go as the run begins"), "{text}");
    place.put("own/scenario.yaml", &text.replace("duration: 24h", "duration: 1h"));
    let outcome = outcome(&place, "own/scenario.yaml");
    for name in ["old-5f4d7-x", "stopped-x", "failed-x"] {
        assert_eq!(asked(&outcome, name), Some(0), "{name}");
        let of_maker = name.split('-').next().unwrap();
        let made = outcome.record.pods.iter().filter(|pod| pod.name.starts_with(of_maker)).count();
        assert_eq!(made, 1, "nothing makes {name} again");
    }
    for name in ["web-5f4d7-x", "kept-5f4d7-x"] {
        assert_eq!(asked(&outcome, name), None, "{name}");
    }
    let warnings = outcome.warnings.texts().join("\n");
    assert!(!warnings.contains("is not in the scenario"), "{warnings}");
}
