//! When a node may be consolidated and when it expires (J).

use nodecast::world::record::{EventKind, NodeEnd};
use serde_json::{Value, json};

use super::story::{Story, maybe, of_types, plain, pod, protected};

pub const ROWS: &[(&str, &str)] = &[
    ("J2", "a_node_that_never_held_a_pod_counts_from_its_initialization"),
    ("J3", "neither_never_nor_an_uninitialized_node_is_consolidated"),
    ("J5", "daemons_do_not_count_as_events"),
    ("J6", "a_node_expires_once_to_the_second_whatever_stands_against_it"),
];

/// When the node is first proposed; it is left alone from the moment on that the story says.
fn proposed(after: &str, story: impl FnOnce(Story) -> Story) -> Vec<String> {
    story(Story::new().pool(json!({"disruption": {"consolidateAfter": after}}))).until(150.0).proposed()
}

#[test]
fn a_node_that_never_held_a_pod_counts_from_its_initialization() {
    // The pod is gone before the node is initialized, at 13.90, which the API keeps as 13.
    let bare = |story: Story| story.run(0.25, "web", 1, plain("1")).scale(5.25, "web", 0);
    for (after, at) in [("30s", "50.37"), ("37s", "50.37"), ("38s", "60.37")] {
        assert_eq!(proposed(after, bare), [format!("{at} empty 1")], "{after}");
    }
}

#[test]
fn neither_never_nor_an_uninitialized_node_is_consolidated() {
    let emptied = |story: Story| story.run(0.25, "web", 1, plain("1")).scale(45.25, "web", 0);
    assert_eq!(proposed("0s", emptied), ["50.37 empty 1"]);
    assert_eq!(proposed("Never", emptied), Vec::<String>::new());
    let broken = |story: Story| emptied(story.fault("neverReady", 0.0, 10.0, &[]));
    assert_eq!(proposed("0s", broken), Vec::<String>::new());
}

#[test]
fn daemons_do_not_count_as_events() {
    let emptied = |story: Story| story.run(0.25, "web", 1, plain("1")).scale(61.25, "web", 0);
    let alone = proposed("30s", emptied);
    let with_daemon = proposed("30s", |story| {
        let daemon = json!({"op": "daemonSet", "name": "agent", "daemonSet": plain("100m")});
        emptied(story).at(80.25, daemon)
    });
    let with_pod = proposed("30s", |story| emptied(story).run(80.25, "late", 1, plain("100m")).scale(81.25, "late", 0));
    assert_eq!((alone[0].as_str(), &with_daemon), ("100.37 empty 1", &alone));
    assert_eq!(with_pod, ["110.37 empty 1"]);
}

/// A node with a pod that nothing may move, under a budget that allows nothing.
fn bound(expire: &str, owned: Value) -> Story {
    Story::new()
        .pool(json!({"template": {"spec": {"expireAfter": expire, "requirements": of_types(&["s-2"])}},
            "disruption": {"budgets": [{"nodes": "0"}]}}))
        .run(0.25, "web", 1, owned)
}

#[test]
fn a_node_expires_once_to_the_second_whatever_stands_against_it() {
    for owned in [plain("1"), protected("1"), pod("1", json!({"labels": {"app": "web"}}))] {
        let told = bound("100s", owned).budget(0.25, "web", "web", json!({"maxUnavailable": 0})).until(350.0);
        // The claim is made at 1.30, which the API keeps as 1.
        assert_eq!(maybe(told.node(1).deletion_requested), "101.00");
        assert_eq!(told.node(1).end, Some(NodeEnd::Expired));
        assert_eq!(told.times(EventKind::NodeDisrupted, 1).len(), 1);
    }
    let told = bound("Never", plain("1")).until(3_600.0);
    assert_eq!(told.node(1).deletion_requested, None);
}
