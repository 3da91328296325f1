//! The end of a node: what is evicted in which order, what holds the node up, and what ends the waiting (K).

use nodecast::domain::SimDuration;
use nodecast::domain::pod::PodPhase;
use nodecast::world::record::EventKind;
use serde_json::{Value, json};

use super::lab::{self, Pod, ago, now, pod_view};
use super::story::{Story, StoryOutcome, between, maybe, of_types, plain, pod, protected};

pub const ROWS: &[(&str, &str)] = &[
    ("K1", "four_groups_leave_one_after_the_other"),
    ("K2", "pods_tolerating_disruption_taint_do_not_block"),
    ("K3", "who_tolerates_only_an_unschedulable_node_is_evicted"),
    ("K4", "static_ended_and_stuck_pods_hold_nothing_up"),
    ("K5", "static_ended_and_stuck_pods_hold_nothing_up"),
    ("K6", "refused_evictions_are_tried_ever_more_slowly"),
    ("K7", "a_pod_under_two_budgets_is_never_evicted"),
    ("K8", "successor_pod_is_not_evicted"),
    ("K9", "static_ended_and_stuck_pods_hold_nothing_up"),
    ("K10", "node_without_instance_is_removed_unless_ready"),
    ("K11", "a_drain_takes_at_least_five_seconds"),
    ("K15", "protected_pod_is_deleted_at_grace_deadline"),
    ("K16", "protected_pod_is_deleted_at_grace_deadline"),
    ("K17", "slow_pod_gets_the_remaining_grace_period"),
    ("K18", "a_pod_is_given_a_second_at_least"),
    ("K19", "without_grace_period_no_pod_is_force_deleted"),
    ("K20", "grace_deadline_is_set_once"),
    ("K21", "instance_termination_is_polled_every_five_seconds"),
    ("K22", "a_claim_that_never_registered_is_not_drained"),
    ("K23", "without_grace_period_no_pod_is_force_deleted"),
];

/// A node with pods, deleted at 60.25. The pod `web-00000` is one of them.
fn deleted(value: Value, story: impl FnOnce(Story) -> Story) -> StoryOutcome {
    let begin = Story::calm().pool(json!({"template": {"spec": {"requirements": of_types(&["s-4"])}}}));
    story(begin.run(0.25, "web", 1, value)).delete_node_of(60.25, "web-00000").until(700.0)
}

fn with_grace(period: &str) -> impl FnOnce(Story) -> Story {
    let json = json!({"template": {"spec": {"terminationGracePeriod": period}}});
    move |story| story.pool(json)
}

#[test]
fn four_groups_leave_one_after_the_other() {
    let slow = |more: Value| {
        let mut pod = pod("100m", json!({"annotations": {"sim/shutdown-seconds": "10"}}));
        agreement_timelines::karpenter_timeline::merge(&mut pod["spec"], &more);
        pod
    };
    let critical = || slow(json!({"priorityClassName": "system-cluster-critical"}));
    let daemon = |name: &str, value: Value| json!({"op": "daemonSet", "name": name, "daemonSet": value});
    let told = deleted(slow(json!({})), |story| {
        story
            .run(0.25, "critical", 1, critical())
            .at(0.05, daemon("agent", slow(json!({}))))
            .at(0.05, daemon("vital-agent", critical()))
    });
    let order = ["web-00000", "agent-default-00001", "critical-00000", "vital-agent-default-00001"];
    for (earlier, later) in order.iter().zip(&order[1..]) {
        let gap = between(told.pod(earlier).removed, told.pod(later).deletion_requested);
        assert!((0.0..=1.0).contains(&gap), "{later} goes {gap} s after {earlier} is gone");
    }
}

#[test]
fn pods_tolerating_disruption_taint_do_not_block() {
    for toleration in [
        json!({"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoSchedule"}),
        json!({"key": "karpenter.sh/disrupted", "operator": "Equal", "effect": "NoSchedule"}),
        json!({"operator": "Exists"}),
    ] {
        let told = deleted(pod("1", json!({"tolerations": [toleration]})), |story| story);
        assert_eq!(told.pod("web-00000").deletion_requested, None, "{toleration}");
        assert_eq!(maybe(told.node(1).terminating), "65.25", "{toleration}");
    }
}

#[test]
fn who_tolerates_only_an_unschedulable_node_is_evicted() {
    let toleration = json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"});
    let told = deleted(pod("1", json!({"tolerations": [toleration]})), |story| story);
    assert_eq!(maybe(told.pod("web-00000").deletion_requested), "60.25");
    assert!(told.pod("web-00000").evicted);
}

#[test]
fn static_ended_and_stuck_pods_hold_nothing_up() {
    let owned = |owner: &str| lab::pod("own", json!({"cpu": "1", "owner": owner}));
    let ending = |at| Pod { deletion: Some(at), ..owned("ReplicaSet") };
    for (what, item, evicted, awaited) in [
        ("a plain pod", owned("ReplicaSet"), true, true),
        ("a pod without an owner", owned("none"), true, true),
        ("a daemon", owned("DaemonSet"), true, true),
        ("a static pod", owned("Node"), false, false),
        ("an ended pod", Pod { phase: PodPhase::Succeeded, ..owned("ReplicaSet") }, false, false),
        ("a failed pod", Pod { phase: PodPhase::Failed, ..owned("ReplicaSet") }, false, false),
        ("an ending pod", ending(now() + SimDuration::from_secs(5)), false, true),
        ("a pod that should be gone", ending(ago(60)), false, true),
        ("a stuck pod", ending(ago(61)), false, false),
    ] {
        let view = pod_view((0, &item));
        assert_eq!((view.is_evictable(now()), view.waits_for_eviction(now())), (evicted, awaited), "{what}");
    }
    // The same in a drain: the pod that has ended stays until the node goes.
    let told = deleted(plain("1"), |story| story.at(30.25, json!({"op": "finishPod", "name": "web-00000"})));
    assert_eq!(told.pod("web-00000").deletion_requested, None);
    assert_eq!(maybe(told.node(1).terminating), "65.25");
}

#[test]
fn refused_evictions_are_tried_ever_more_slowly() {
    let make = || pod("1", json!({"labels": {"app": "web"}}));
    let opened = json!({"op": "patchPDB", "name": "web", "patch": {"spec": {"minAvailable": 0}}});
    // Tries at 60.25 and 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7, 22.7, 32.7 s later.
    for (opens, goes) in [(60.32, "60.55"), (61.0, "61.75"), (67.0, "72.95"), (75.0, "82.95"), (83.2, "92.95")] {
        let told = deleted(make(), |story| {
            story.budget(0.25, "web", "web", json!({"minAvailable": 1})).at(opens, opened.clone())
        });
        assert_eq!(maybe(told.pod("web-00000").deletion_requested), goes, "open from {opens} on");
    }
}

#[test]
fn a_pod_under_two_budgets_is_never_evicted() {
    let make = || pod("1", json!({"labels": {"app": "web"}}));
    let one = |story: Story| story.budget(0.25, "one", "web", json!({"maxUnavailable": 1}));
    let two = |story: Story| one(story).budget(0.25, "two", "web", json!({"maxUnavailable": 1}));
    assert_eq!(maybe(deleted(make(), one).pod("web-00000").deletion_requested), "60.25");
    let told = deleted(make(), two);
    assert_eq!(told.pod("web-00000").deletion_requested, None);
    assert_eq!((told.node(1).terminating, told.times(EventKind::NodeTainted, 1)), (None, vec!["60.25".to_owned()]));
}

#[test]
fn successor_pod_is_not_evicted() {
    let pod = pod("1", json!({"labels": {"app": "web"}}));
    let told = deleted(pod, |story| {
        let story = story.budget(0.25, "web", "web", json!({"minAvailable": 1}));
        story.scale(100.25, "web", 0).scale(120.25, "web", 1)
    });
    assert!(!told.pod("web-00000").evicted && told.pod("web-00000").removed.is_some());
    assert_eq!(told.pod("web-00001").deletion_requested, None);
    assert!(told.node(1).terminated.is_some());
}

#[test]
fn node_without_instance_is_removed_unless_ready() {
    let killed = |deleted_at: f64| {
        Story::calm()
            .run(0.25, "web", 1, plain("1"))
            .at(30.25, json!({"op": "killInstance", "onNodeOf": "web-00000"}))
            .delete_node_of(deleted_at, "web-00000")
            .until(200.0)
    };
    let told = killed(60.25);
    assert_eq!(maybe(told.pod("web-00000").deletion_requested), "60.25");
    assert!(between(told.node(1).deletion_requested, told.node(1).terminated) >= 5.0);
    // From 70.45 on its node is not Ready.
    let told = killed(75.25);
    assert_eq!(told.pod("web-00000").deletion_requested, None);
    assert_eq!(maybe(told.node(1).terminated), "75.25");
}

#[test]
fn a_drain_takes_at_least_five_seconds() {
    let quick = pod("1", json!({"annotations": {"sim/shutdown-seconds": "0.1"}}));
    let told = deleted(quick, |story| story);
    assert_eq!(
        (maybe(told.pod("web-00000").removed), maybe(told.node(1).terminating)),
        ("60.35".into(), "65.25".into())
    );
}

/// A pod with `karpenter.sh/do-not-disrupt` and so long a grace period.
fn guarded(grace: u32) -> Value {
    let annotations = json!({"karpenter.sh/do-not-disrupt": "true"});
    pod("1", json!({"annotations": annotations, "terminationGracePeriodSeconds": grace}))
}

#[test]
fn protected_pod_is_deleted_at_grace_deadline() {
    // The deletion at 60.25 is kept as 60, so that the grace period ends at 360.
    for (grace, deleted_at, given) in [(300, "60.25", 299), (60, "300.25", 59), (30, "330.25", 29)] {
        let told = deleted(guarded(grace), with_grace("300s"));
        let pod = told.pod("web-00000");
        assert_eq!(maybe(pod.deletion_requested), deleted_at, "grace {grace} s");
        assert_eq!(pod.grace.map(SimDuration::as_secs), Some(given), "grace {grace} s");
        assert!(between(pod.removed, told.node(1).terminating) < 5.1);
    }
}

#[test]
fn slow_pod_gets_the_remaining_grace_period() {
    let annotations = json!({"sim/shutdown-seconds": "5000"});
    let slow = pod("1", json!({"annotations": annotations, "terminationGracePeriodSeconds": 6_000}));
    let told = deleted(slow.clone(), |story| with_grace("300s")(story).scale(50.25, "web", 0));
    assert_eq!(maybe(told.pod("web-00000").removed), "359.65");
    let told = deleted(slow, |story| story.scale(50.25, "web", 0));
    assert_eq!((told.pod("web-00000").removed, told.node(1).terminating), (None, None));
}

#[test]
fn a_pod_is_given_a_second_at_least() {
    let told = deleted(guarded(60), with_grace("0s"));
    assert_eq!(told.pod("web-00000").grace.map(SimDuration::as_secs), Some(1));
}

#[test]
fn without_grace_period_no_pod_is_force_deleted() {
    let told = deleted(protected("1"), |story| story);
    assert_eq!((told.pod("web-00000").deletion_requested, told.node(1).terminating), (None, None));
    // The drain goes on when the pod ends by itself.
    let finished = json!({"op": "finishPod", "name": "web-00000"});
    let told = deleted(protected("1"), |story| story.at(300.35, finished));
    assert_eq!(maybe(told.node(1).terminating), "301.25");
}

#[test]
fn grace_deadline_is_set_once() {
    let expiring = |story: Story| {
        let json = json!({"template": {"spec": {"expireAfter": "100s"}}});
        with_grace("300s")(story).pool(json).delete_node_of(80.25, "web-00000")
    };
    // Neither a second deletion nor the expiry at 101 moves it.
    assert_eq!(maybe(deleted(guarded(60), expiring).pod("web-00000").deletion_requested), "300.25");
}

#[test]
fn instance_termination_is_polled_every_five_seconds() {
    // It takes 21.3 s to be gone.
    let told = deleted(plain("1"), |story| story);
    assert_eq!((maybe(told.node(1).terminating), maybe(told.node(1).terminated)), ("65.25".into(), "90.25".into()));
}

#[test]
fn a_claim_that_never_registered_is_not_drained() {
    let told = Story::calm().fault("neverRegister", 0.0, 10.0, &[]).run(0.25, "web", 1, plain("1")).until(1_000.0);
    // The claim is made at 1.30, which the API keeps as 1.
    assert_eq!(maybe(told.node(1).deletion_requested), "901.00");
    assert_eq!(maybe(told.node(1).terminating), "901.00");
    assert_eq!((told.times(EventKind::NodeTainted, 1).len(), told.node(1).drained), (0, None));
}
