//! How nodes come, join and end under neighbouring releases.

use nodecast::domain::{SimDuration, SimTime};
use nodecast::world::record::NodeEnd;
use serde_json::json;

use crate::disruption_cases::story::{Story, between, maybe, of_types, plain, pod};

pub const ROWS: &[&str] = &["L1", "L3", "L5", "L6", "L8", "D12", "D15", "P19"];

/// Nodes of one type, with or without `consolidateAfter`.
fn story(karpenter: &str) -> Story {
    Story::calm().release(karpenter).pool(json!({"template": {"spec": {"requirements": of_types(&["s-2"])}}}))
}

#[test]
fn unregistered_node_is_removed_from_v0_28() {
    for (karpenter, ends) in [("v0.27", [None, None]), ("v0.28", [Some(NodeEnd::NotRegistered), None])] {
        let told =
            story(karpenter).fault("neverRegister", 0.0, 60.0, &[]).run(0.25, "web", 1, plain("1")).until(3_600.0);
        assert_eq!(told.node(1).end, ends[0], "{karpenter}");
        assert_eq!(told.claims() > 1, ends[0].is_some(), "{karpenter}");
    }
}

#[test]
fn failing_launch_ends_sooner_from_v1_7() {
    for (karpenter, seconds) in [("v1.6", 900.0..=961.0), ("v1.7", 300.0..=361.0)] {
        let told = story(karpenter).fault("error", 0.0, 3_000.0, &[]).run(0.25, "web", 1, plain("1")).until(1_200.0);
        let first = told.node(1);
        let after = between(Some(first.requested), first.terminated);
        assert!(seconds.contains(&after), "{karpenter}: {after} s");
    }
}

#[test]
fn disruption_mark_depends_on_release() {
    for (karpenter, mark) in [
        ("v0.31", "node.kubernetes.io/unschedulable"),
        ("v0.32", "karpenter.sh/disruption"),
        ("v0.37", "karpenter.sh/disruption"),
        ("v1.0", "karpenter.sh/disrupted"),
    ] {
        let told = story(karpenter).run(0.25, "web", 1, plain("1")).delete_node_of(60.25, "web-00000").until(120.0);
        assert_eq!(told.said(nodecast::world::record::EventKind::NodeTainted), Some(mark), "{karpenter}");
    }
}

#[test]
fn drain_takes_five_seconds_from_v1_10() {
    for (karpenter, least) in [("v1.9", 0.0), ("v1.10", 5.0)] {
        let told = story(karpenter)
            .pool(json!({"disruption": {"consolidateAfter": "0s"}}))
            .run(0.25, "web", 1, plain("1"))
            .scale(60.25, "web", 0)
            .until(200.0);
        let node = told.node(1);
        let took = between(node.deletion_requested, node.terminating);
        assert!(took >= least && took < least + 2.0, "{karpenter}: {took} s");
    }
}

/// A node that expires after 100 s, with a pod under a budget that allows so many to go.
fn expires(karpenter: &str, allowed: u32) -> crate::disruption_cases::story::StoryOutcome {
    Story::calm()
        .release(karpenter)
        .pool(json!({"template": {"spec": {"expireAfter": "100s", "requirements": of_types(&["s-2"])}}}))
        .run(0.25, "web", 1, pod("1500m", json!({"labels": {"app": "web"}})))
        .budget(0.25, "web", "web", json!({"maxUnavailable": allowed}))
        .until(190.0)
}

#[test]
fn expired_node_is_replaced_first_before_v1() {
    let replaced = expires("v0.37", 1);
    assert_eq!((replaced.node(1).end, replaced.claims()), (Some(NodeEnd::Expired), 2));
    assert!(replaced.node(1).deletion_requested >= replaced.node(2).initialized);
    let deleted = expires("v1.0", 1);
    assert_eq!(
        (deleted.node(1).end, maybe(deleted.node(1).deletion_requested)),
        (Some(NodeEnd::Expired), "101.00".into())
    );
    assert!(deleted.node(1).deletion_requested < deleted.node(2).initialized);
}

#[test]
fn protected_pod_blocks_expiry_until_v0_37() {
    for (karpenter, deleted, claims) in
        [("v0.37", false, 1), ("v1.0", true, 2), ("v1.3", true, 2), ("v1.4", true, 1), ("v1.13", true, 1)]
    {
        let told = expires(karpenter, 0);
        assert_eq!((told.node(1).deletion_requested.is_some(), told.claims()), (deleted, claims), "{karpenter}");
    }
}

/// Claims where each of these passes, a minute apart, wants this number of nodes of a pool with this limit.
fn claims_within(karpenter: &str, limit: u32, passes: &[u32]) -> usize {
    let mut story = story(karpenter).pool(json!({"limits": {"nodes": limit.to_string()}}));
    for (number, &pods) in passes.iter().enumerate() {
        story = story.run(0.25 + 60.0 * number as f64, &format!("web{number}"), pods, plain("1500m"));
    }
    story.until(60.0 * passes.len() as f64 + 120.0).claims()
}

#[test]
fn node_limit_acts_by_release() {
    for (karpenter, nodes) in [("v0.37", 4), ("v1.0", 3), ("v1.4", 3), ("v1.10", 3), ("v1.11", 2), ("v1.13", 2)] {
        assert_eq!(claims_within(karpenter, 2, &[1, 1, 1, 1]), nodes, "{karpenter}");
    }
}

/// A pass does not count the nodes that it opens itself, in v1.11 and later either: `subtractMax` takes the capacity of instance types off,
/// which has no `nodes`, and claims without an instance are not counted at their creation.
#[test]
fn one_pass_exceeds_node_limit_in_every_release() {
    for (karpenter, nodes) in [("v1.8", 6), ("v1.11", 5), ("v1.13", 5), ("v1.14", 5)] {
        assert_eq!(claims_within(karpenter, 4, &[5]), 5, "{karpenter}");
        // Four nodes are not more than four, so releases that check creation alone go on.
        assert_eq!(claims_within(karpenter, 5, &[5, 1, 1]), nodes, "{karpenter}");
    }
}

#[test]
fn pods_deleted_in_time_delay_no_tier_on_main() {
    let slow = |name: &str, more: serde_json::Value, shutdown: &str| {
        let mut pod = pod("100m", json!({"annotations": {"sim/shutdown-seconds": shutdown}, "labels": {"app": name}}));
        agreement_timelines::karpenter_timeline::merge(&mut pod["spec"], &more);
        pod
    };
    for (karpenter, evicted) in [("v1.14", 250.0..=261.0), ("main", 60.0..=71.0)] {
        let told = story(karpenter)
            .pool(json!({"template": {"spec": {"terminationGracePeriod": "300s"}}}))
            .run(0.25, "web", 1, slow("web", json!({"terminationGracePeriodSeconds": 600}), "190"))
            .run(0.25, "dns", 1, slow("dns", json!({"priorityClassName": "system-cluster-critical"}), "10"))
            .delete_node_of(60.25, "web-00000")
            .until(500.0);
        let web = told.pod("web-00000");
        assert_eq!(maybe(web.deletion_requested), "60.25", "{karpenter}");
        assert_eq!(web.grace.map(SimDuration::as_secs), Some(299), "{karpenter}");
        let at = between(Some(SimTime::ZERO), told.pod("dns-00000").deletion_requested);
        assert!(evicted.contains(&at), "{karpenter}: {at} s");
    }
}

#[test]
fn protected_pod_waits_in_the_queue_on_main() {
    // Protection ends 110 s after the start; polls find that within a second, the queue on its next try.
    let annotations = json!({"karpenter.sh/do-not-disrupt": "110s", "sim/shutdown-seconds": "5"});
    for (karpenter, late) in [("v1.14", -1.0..=1.1), ("main", 1.2..=10.1)] {
        let told = story(karpenter)
            .run(0.25, "web", 1, pod("100m", json!({"annotations": annotations})))
            .delete_node_of(60.25, "web-00000")
            .until(400.0);
        let web = told.pod("web-00000");
        let after = between(web.started, web.deletion_requested) - 110.0;
        assert!(late.contains(&after), "{karpenter}: {after} s");
    }
}
