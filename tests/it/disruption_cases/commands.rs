//! Commands on their way: what they wait for, how they end, and what goes on beside them (H), with the cases of other parts
//! that only a running loop shows.

use nodecast::world::record::EventKind;
use serde_json::{Value, json};

use super::story::{Story, between, maybe, of_types, plain, pod, time};

pub const ROWS: &[(&str, &str)] = &[
    ("A19", "nominated_node_is_protected_for_twenty_seconds"),
    ("E9", "empty_drifted_node_goes_as_empty"),
    ("F24", "pending_pod_fitting_starting_node_launches_nothing"),
    ("F25", "node_for_evicted_pods_waits_for_them"),
    ("F26", "replacements_of_several_commands_start_side_by_side"),
    ("M4", "rejected_emptiness_tries_next_method_at_once"),
    ("H1", "a_node_stays_until_its_replacement_is_initialized"),
    ("H2", "failed_command_keeps_ready_replacements"),
    ("H3", "a_node_without_a_replacement_goes_at_once"),
    ("H4", "commands_end_in_the_order_of_their_replacements"),
    ("H5", "timed_out_command_is_rolled_back"),
    ("H8", "replacement_without_capacity_is_retried_later"),
    ("H9", "taint_of_failed_command_is_removed_next_pass"),
    ("H10", "a_node_stays_until_its_replacement_is_initialized"),
    ("H11", "failed_command_keeps_ready_replacements"),
    ("H12", "unlaunched_claim_blocks_new_commands"),
    ("I2", "failed_command_keeps_ready_replacements"),
    ("I7", "replacement_without_capacity_is_retried_later"),
];

#[test]
fn nominated_node_is_protected_for_twenty_seconds() {
    // The second pod is placed on the starting node 1.05 s after its arrival; both are gone before the pass at 20.37.
    for (arrives, looked_at) in [(9.25, "30.37"), (9.45, "40.37")] {
        let told = Story::new()
            .pool(json!({"disruption": {"consolidateAfter": "0s"}}))
            .run(-3.0, "one", 1, plain("500m"))
            .run(arrives, "two", 1, plain("500m"))
            .scale(14.25, "one", 0)
            .scale(14.25, "two", 0)
            .until(100.0);
        assert_eq!(told.proposed(), [format!("{looked_at} empty 1")], "arrives at {arrives}");
    }
}

#[test]
fn empty_drifted_node_goes_as_empty() {
    for (after, started) in [("0s", "85.37 Empty 1"), ("Never", "70.37 Drifted 1")] {
        let told = Story::new()
            .pool(json!({"disruption": {"consolidateAfter": after}}))
            .run(0.25, "web", 1, plain("1"))
            .scale(61.25, "web", 0)
            .at(61.35, json!({"op": "driftNode", "onNodeOf": "web-00000"}))
            .until(120.0);
        assert_eq!(told.started(), [started], "consolidateAfter {after}");
    }
}

/// A node of the type s-4 that from 60.25 on holds only a pod of 500m.
fn oversized(story: Story) -> Story {
    story.run(0.25, "big", 1, plain("3")).run(0.25, "small", 1, plain("500m")).scale(60.25, "big", 0)
}

#[test]
fn pending_pod_fitting_starting_node_launches_nothing() {
    let story = |cpu: &str| {
        oversized(Story::new().latency("readySeconds", 60.4)).run(120.25, "late", 1, plain(cpu)).until(300.0)
    };
    assert_eq!((story("300m").claims(), story("1900m").claims()), (2, 3));
    let told = story("300m");
    assert_eq!(told.started(), ["115.37 Underutilized 1 +1"]);
    assert_eq!(told.pod("late-00000").node, Some(told.pod("small-00001").node.unwrap()));
}

#[test]
fn node_for_evicted_pods_waits_for_them() {
    let story = Story::new()
        .pool(json!({"disruption": {"consolidateAfter": "0s"}}))
        .run(0.25, "web", 1, pod("1", json!({"labels": {"app": "web"}})))
        .budget(0.25, "web", "web", json!({"minAvailable": 1}))
        .delete_node_of(60.25, "web-00000");
    let opened = json!({"op": "patchPDB", "name": "web", "patch": {"spec": {"minAvailable": 0}}});
    let told = story.at(150.25, opened).until(200.0);
    // The node is empty for over a minute before the pod may leave the other one.
    assert!(between(told.node(2).initialized, told.pod("web-00000").deletion_requested) > 60.0);
    assert_eq!((told.proposed(), told.claims()), (Vec::new(), 2));
    assert_eq!(told.record.nodes[told.pod("web-00001").node.unwrap().index()].name, told.node(2).name);
}

#[test]
fn replacements_of_several_commands_start_side_by_side() {
    let make = |pool: &str, cpu: &str| pod(cpu, json!({"nodeSelector": {"karpenter.sh/nodepool": pool}}));
    let mut story =
        Story::new().latency("readySeconds", 200.4).another_pool("p2", json!({})).another_pool("p3", json!({}));
    for pool in ["default", "p2", "p3"] {
        let (big, small) = (format!("{pool}-big"), format!("{pool}-small"));
        story =
            story.run(0.25, &big, 1, make(pool, "3")).run(0.25, &small, 1, make(pool, "500m")).scale(260.25, &big, 0);
    }
    let told = story.until(700.0);
    let commands: Vec<_> = told.record.commands.iter().filter(|command| command.started.is_some()).collect();
    assert_eq!(commands.len(), 3, "{:?}", told.started());
    let last_started = commands.iter().filter_map(|command| command.started).max();
    let first_ended = commands.iter().filter_map(|command| command.succeeded).min();
    assert!(last_started < first_ended, "{:?}", told.started());
}

#[test]
fn rejected_emptiness_tries_next_method_at_once() {
    let told = Story::new()
        .pool(json!({"template": {"spec": {"requirements": of_types(&["s-4"])}}}))
        .run(0.25, "full", 1, plain("3800m"))
        .run(0.25, "half", 2, plain("3"))
        .run(30.25, "rest", 2, plain("800m"))
        .scale(61.25, "full", 0)
        .scale(61.25, "half", 0)
        .run(105.25, "late", 1, plain("100m"))
        .until(117.0);
    assert_eq!(told.proposed(), ["100.37 empty 1", "115.37 multi 2 3"]);
    assert_eq!(told.rejected(), ["115.37 empty churn"]);
}

#[test]
fn a_node_stays_until_its_replacement_is_initialized() {
    let told = oversized(Story::new()).until(300.0);
    let command = &told.record.commands[0];
    assert_eq!(told.started(), ["105.37 Underutilized 1 +1"]);
    assert_eq!(told.times(EventKind::NodeTainted, 1), ["105.37"]);
    let ready = told.node(2).initialized;
    let gap = between(ready, told.node(1).deletion_requested);
    assert!((0.0..=1.0).contains(&gap), "{gap} s after the replacement is initialized");
    assert_eq!(command.succeeded, told.node(1).deletion_requested);
    // The pod of the tainted node got no second new node.
    assert_eq!(told.claims(), 2);
}

/// A node of the type s-8 with two pods that, when the pool gives up that type, need a node each.
fn split(story: Story) -> Story {
    story
        .run(0.25, "large", 1, plain("3500m"))
        .run(0.25, "small", 1, plain("1500m"))
        .change_pool(60.25, json!({"template": {"spec": {"requirements": of_types(&["s-2", "s-4"])}}}))
}

#[test]
fn failed_command_keeps_ready_replacements() {
    let told = split(Story::calm()).until(300.0);
    assert_eq!(told.started(), ["60.37 Drifted 1 +2"]);
    assert!(told.record.commands[0].succeeded.is_some());
    let told = split(Story::calm().fault("neverReady", 60.0, 100.0, &["s-2"])).until(665.0);
    assert!(told.node(2).initialized.is_some() && told.node(3).initialized.is_none());
    assert_eq!(told.node(1).deletion_requested, None);
    assert_eq!(told.record.commands[0].failed.as_ref().map(|(at, _)| time(*at)), Some("661.37".to_owned()));
    assert_eq!(told.times(EventKind::NodeUntainted, 1)[..1], ["661.37"]);
    assert_eq!(told.node(2).deletion_requested, None);
}

#[test]
fn a_node_without_a_replacement_goes_at_once() {
    let told = Story::new().run(0.25, "web", 1, plain("1")).scale(61.25, "web", 0).until(130.0);
    let command = &told.record.commands[0];
    assert_eq!((command.succeeded, told.node(1).deletion_requested), (command.started, command.started));
}

#[test]
fn commands_end_in_the_order_of_their_replacements() {
    let agent = pod("100m", json!({"tolerations": [{"operator": "Exists"}]}));
    let done = |pod: &str| json!({"op": "patchNode", "onNodeOf": pod, "patch": {"spec": {"taints": null}}});
    let told = Story::calm()
        .pool(json!({"template": {"spec": {"requirements": of_types(&["s-2"]),
            "startupTaints": [{"key": "agent", "effect": "NoSchedule"}]}}}))
        .at(0.05, json!({"op": "daemonSet", "name": "agent", "daemonSet": agent}))
        .run(0.25, "web", 2, plain("1500m"))
        .at(30.25, done("agent-default-00001"))
        .at(30.25, done("agent-default-00002"))
        .drift_all(60.25)
        .at(120.25, done("agent-default-00004"))
        .at(150.25, done("agent-default-00003"))
        .until(300.0);
    let started: Vec<String> = told.record.commands.iter().map(|command| maybe(command.started)).collect();
    let succeeded: Vec<String> = told.record.commands.iter().map(|command| maybe(command.succeeded)).collect();
    assert_eq!(started, ["60.37", "63.37"]);
    assert_eq!(succeeded, ["150.37", "120.37"]);
}

#[test]
fn timed_out_command_is_rolled_back() {
    let told =
        oversized(Story::new().fault("neverReady", 100.0, 200.0, &[])).run(720.25, "late", 1, plain("1")).until(740.0);
    assert_eq!(told.started(), ["105.37 Underutilized 1 +1"]);
    assert_eq!(told.record.commands[0].failed.as_ref().map(|(at, _)| time(*at)), Some("706.37".to_owned()));
    assert_eq!(told.times(EventKind::NodeUntainted, 1), ["706.37"]);
    assert_eq!(told.node(1).deletion_requested, None);
    // The node takes pods again.
    assert_eq!(told.pod("late-00000").node, told.pod("small-00000").node);
}

#[test]
fn replacement_without_capacity_is_retried_later() {
    for drifts in [false, true] {
        let story = if drifts {
            Story::calm().run(0.25, "web", 1, plain("1")).drift_all(114.25)
        } else {
            oversized(Story::new())
        };
        let told = story.fault("noCapacity", 100.0, 130.0, &[]).until(900.0);
        let commands = &told.record.commands;
        assert!(commands[0].failed.is_some() && commands[0].succeeded.is_none(), "drift: {drifts}");
        assert!(between(commands[0].started, commands[0].failed.as_ref().map(|failed| failed.0)) < 6.0);
        assert_eq!(told.times(EventKind::NodeUntainted, 1).len(), commands.len() - 1, "drift: {drifts}");
        assert!(commands.last().unwrap().succeeded.is_some(), "drift: {drifts}");
    }
}

#[test]
fn taint_of_failed_command_is_removed_next_pass() {
    let limited: Value = json!({"limits": {"cpu": "3"}});
    let told = oversized(Story::new()).change_pool(70.25, limited).until(700.0);
    assert_eq!(told.started(), Vec::<String>::new());
    assert_eq!(told.claims(), 1);
    let seconds = |kind| told.times(kind, 1).iter().map(|time| time.parse().unwrap()).collect::<Vec<f64>>();
    let (tainted, untainted) = (seconds(EventKind::NodeTainted), seconds(EventKind::NodeUntainted));
    assert!((tainted[0] - 105.37).abs() < 0.001, "{tainted:?}");
    // The next pass comes 5 ms later, then 10 ms, 20 ms and so on, and each proposal is looked at again after 15 s.
    assert!(tainted.len() > 8, "{tainted:?}");
    let mut wait = 0.005;
    for (goes, (comes, next)) in untainted.iter().zip(tainted.iter().zip(&tainted[1..])) {
        assert!((goes - comes - wait).abs() < 0.011 && (next - goes - 15.0).abs() < 0.011, "{comes} {goes} {next}");
        wait *= 2.0;
    }
}

#[test]
fn unlaunched_claim_blocks_new_commands() {
    let told = Story::calm()
        .pool(json!({"template": {"spec": {"requirements": of_types(&["s-2"])}}}))
        .latency("launchSeconds", 7.2)
        .run(0.25, "web", 2, plain("1500m"))
        .drift_all(60.25)
        .until(90.0);
    // The second replacement waits for the first one's instance, 7.2 s after 60.37, and is started by the next of the looks
    // that follow each other every second.
    assert_eq!(told.started(), ["60.37 Drifted 1 +1", "68.37 Drifted 2 +1"]);
}
