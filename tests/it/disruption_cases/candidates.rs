//! Which nodes may be disrupted (A), and for how long pods protect theirs (B).

use nodecast::domain::pod::PodPhase;
use nodecast::domain::{SimDuration, well_known};
use nodecast_karpenter::disruption::{Blocker, Method, NotEligible};
use serde_json::{Value, json};

use super::lab::{CONSOLIDATION, Lab, Pod, ago, now, plain, pod, protected};

pub const ROWS: &[(&str, &str)] = &[
    ("A1", "do_not_disrupt_pod_blocks_for_any_owner"),
    ("A2", "do_not_disrupt_pod_blocks_for_any_owner"),
    ("A3", "do_not_disrupt_pod_blocks_for_any_owner"),
    ("A4", "drift_with_grace_period_ignores_pods_and_pdbs"),
    ("A5", "drift_with_grace_period_ignores_pods_and_pdbs"),
    ("A6", "drift_with_grace_period_ignores_pods_and_pdbs"),
    ("A7", "drift_with_grace_period_ignores_pods_and_pdbs"),
    ("A8", "terminating_protected_pod_does_not_block"),
    ("A9", "terminating_protected_pod_does_not_block"),
    ("A10", "on_a_node_only_the_word_true_counts"),
    ("A11", "on_a_node_only_the_word_true_counts"),
    ("A12", "two_pdbs_on_a_pod_block_its_node"),
    ("A13", "exhausted_pdb_blocks_daemons_but_not_unevicted_pods"),
    ("A14", "exhausted_pdb_blocks_daemons_but_not_unevicted_pods"),
    ("A15", "exhausted_pdb_blocks_daemons_but_not_unevicted_pods"),
    ("A16", "a_budget_of_another_namespace_does_not_count"),
    ("A17", "always_allow_pdb_releases_unready_pod"),
    ("A18", "unregistered_or_leaving_nodes_are_skipped"),
    ("A20", "unregistered_or_leaving_nodes_are_skipped"),
    ("A21", "unregistered_or_leaving_nodes_are_skipped"),
    ("A22", "unregistered_or_leaving_nodes_are_skipped"),
    ("A23", "unpriced_node_drifts_but_is_not_consolidated"),
    ("A24", "unregistered_or_leaving_nodes_are_skipped"),
    ("A25", "pool_without_types_blocks_only_its_nodes"),
    ("B1", "do_not_disrupt_duration_counts_from_pod_start"),
    ("B2", "do_not_disrupt_duration_counts_from_pod_start"),
    ("B3", "what_is_no_positive_duration_protects_nothing"),
    ("B4", "do_not_disrupt_duration_counts_from_pod_start"),
    ("B5", "of_several_durations_the_longest_decides"),
    ("B6", "drift_waits_for_durations_too"),
];

/// A node with these pods.
fn holding(pods: Vec<Pod>) -> Lab {
    let mut lab = Lab::new();
    lab.node("node", "m-4", pods).drifted = Some(ago(60));
    lab
}

/// What stands against single-node consolidation of it.
fn blockers(lab: &Lab) -> Vec<Blocker> {
    lab.candidate("node", Method::SingleNode).err().unwrap_or_default()
}

fn owned(owner: &str, more: Value) -> Pod {
    let mut spec = json!({"cpu": "100m", "owner": owner, "labels": {"app": "web"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    pod("own", spec)
}

fn do_not_disrupt() -> Value {
    json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
}

#[test]
fn do_not_disrupt_pod_blocks_for_any_owner() {
    for owner in ["ReplicaSet", "Node", "DaemonSet", "none"] {
        let lab = holding(vec![plain("other", "100m"), owned(owner, do_not_disrupt())]);
        assert_eq!(blockers(&lab), [Blocker::PodDoNotDisrupt("own".to_owned())], "{owner}");
        let lab = holding(vec![plain("other", "100m"), owned(owner, json!({}))]);
        assert!(lab.may("node", Method::SingleNode), "{owner}");
    }
}

#[test]
fn drift_with_grace_period_ignores_pods_and_pdbs() {
    let mut annotated = holding(vec![owned("ReplicaSet", do_not_disrupt())]);
    let mut budgeted = holding(vec![owned("ReplicaSet", json!({}))]);
    budgeted.budget("web", json!({"maxUnavailable": 0}), 0);
    for lab in [&mut annotated, &mut budgeted] {
        for (limited, method, expected) in [
            (true, Method::Drift, true),
            (false, Method::Drift, false),
            (true, Method::SingleNode, false),
            (true, Method::MultiNode, false),
        ] {
            lab.nodes[0].grace_limited = limited;
            assert_eq!(lab.may("node", method), expected, "{method:?}, grace period: {limited}");
        }
    }
}

#[test]
fn terminating_protected_pod_does_not_block() {
    let ending = Pod { deletion: Some(now() + SimDuration::from_secs(30)), ..protected("true") };
    assert!(holding(vec![ending]).may("node", Method::SingleNode));
    for phase in [PodPhase::Succeeded, PodPhase::Failed] {
        let ended = Pod { phase, ..protected("true") };
        assert!(holding(vec![ended]).may("node", Method::SingleNode), "{phase:?}");
    }
    let running = Pod { phase: PodPhase::Pending, ..protected("true") };
    assert!(!holding(vec![running]).may("node", Method::SingleNode));
}

#[test]
fn on_a_node_only_the_word_true_counts() {
    for (value, free) in [("true", false), ("false", true), ("1h", true), ("", true)] {
        let mut lab = holding(vec![plain("web", "1")]);
        lab.nodes[0].annotations.set(well_known::DO_NOT_DISRUPT, value.into());
        for method in [Method::SingleNode, Method::MultiNode, Method::Drift] {
            assert_eq!(lab.may("node", method), free, "{value:?} {method:?}");
        }
    }
}

#[test]
fn two_pdbs_on_a_pod_block_its_node() {
    let mut lab = holding(vec![owned("ReplicaSet", json!({}))]);
    lab.budget("web", json!({"maxUnavailable": 5}), 5);
    assert!(lab.may("node", Method::SingleNode));
    lab.budget("web", json!({"maxUnavailable": 5}), 5);
    assert_eq!(blockers(&lab), [Blocker::SeveralPodBudgets("own".to_owned())]);
}

#[test]
fn exhausted_pdb_blocks_daemons_but_not_unevicted_pods() {
    let ending = Pod { deletion: Some(now()), ..owned("ReplicaSet", json!({})) };
    let ended = Pod { phase: PodPhase::Succeeded, ..owned("ReplicaSet", json!({})) };
    let staying = json!({"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]});
    for (what, item, free) in [
        ("a plain pod", owned("ReplicaSet", json!({})), false),
        ("a daemon", owned("DaemonSet", json!({})), false),
        ("a static pod", owned("Node", json!({})), true),
        ("an ending pod", ending, true),
        ("an ended pod", ended, true),
        ("a pod that tolerates the taint", owned("ReplicaSet", staying), true),
    ] {
        let mut lab = holding(vec![item]);
        lab.budget("web", json!({"maxUnavailable": 0}), 0);
        assert_eq!(lab.may("node", Method::SingleNode), free, "{what}");
    }
}

#[test]
fn a_budget_of_another_namespace_does_not_count() {
    let mut lab = holding(vec![owned("ReplicaSet", json!({}))]);
    lab.budget("web", json!({"maxUnavailable": 0}), 0).namespace = "elsewhere".into();
    assert!(lab.may("node", Method::SingleNode));
    lab.budgets[0].0.namespace = "default".into();
    assert!(!lab.may("node", Method::SingleNode));
}

#[test]
fn always_allow_pdb_releases_unready_pod() {
    let unready = Pod { ready: false, ..owned("ReplicaSet", json!({})) };
    for (policy, ready, free) in
        [(Some("AlwaysAllow"), false, true), (Some("AlwaysAllow"), true, false), (None, false, false)]
    {
        let mut lab = holding(vec![Pod { ready, ..unready.clone() }]);
        let mut spec = json!({"maxUnavailable": 0});
        if let Some(policy) = policy {
            spec["unhealthyPodEvictionPolicy"] = policy.into();
        }
        lab.budget("web", spec, 0);
        assert_eq!(lab.may("node", Method::SingleNode), free, "{policy:?}, ready: {ready}");
    }
}

#[test]
fn unregistered_or_leaving_nodes_are_skipped() {
    type Change = fn(&mut super::lab::Node);
    let changes: [(Change, Blocker); 7] = [
        (|node| node.managed = false, Blocker::Unmanaged),
        (|node| node.registered = false, Blocker::NotRegistered),
        (|node| node.initialized = false, Blocker::NotInitialized),
        (|node| node.marked = true, Blocker::MarkedForDeletion),
        (|node| node.queued = true, Blocker::Queued),
        (|node| node.labels.remove(well_known::NODEPOOL), Blocker::NoNodePool),
        (
            |node| node.labels.set(well_known::NODEPOOL, "unheard-of".into()),
            Blocker::UnknownNodePool("unheard-of".into()),
        ),
    ];
    for (change, blocker) in changes {
        let mut lab = holding(vec![plain("web", "1")]);
        change(&mut lab.nodes[0]);
        for method in [Method::SingleNode, Method::MultiNode, Method::Drift] {
            let found = lab.candidate("node", method).err();
            assert_eq!(found, Some(vec![blocker.clone()]), "{method:?}");
        }
    }
}

#[test]
fn unpriced_node_drifts_but_is_not_consolidated() {
    for (key, why) in [
        (well_known::CAPACITY_TYPE, NotEligible::NoCapacityType),
        (well_known::ZONE, NotEligible::NoZone),
        (well_known::INSTANCE_TYPE, NotEligible::UnknownInstanceType),
    ] {
        let mut lab = holding(Vec::new());
        lab.nodes[0].labels.remove(key);
        assert!(lab.may("node", Method::Drift) && lab.may("node", Method::Emptiness), "{key}");
        for method in CONSOLIDATION {
            assert_eq!(lab.candidate("node", method).err(), Some(vec![Blocker::Method(why)]), "{key}");
        }
    }
    let mut lab = holding(Vec::new());
    lab.nodes[0].labels.set(well_known::INSTANCE_TYPE, "unheard-of".into());
    assert!(lab.may("node", Method::Drift) && !lab.may("node", Method::SingleNode));
}

#[test]
fn pool_without_types_blocks_only_its_nodes() {
    let mut lab = holding(vec![plain("web", "1")]);
    lab.pools.push((super::lab::free_pool("other"), None));
    lab.node_of("other", "other", "m-4", "on-demand", vec![plain("web", "1")]);
    lab.pools[0].1 = Some(Vec::new());
    assert_eq!(blockers(&lab), [Blocker::UnknownNodePool("default".into())]);
    assert_eq!(lab.order(Method::SingleNode), ["other"]);
}

#[test]
fn do_not_disrupt_duration_counts_from_pod_start() {
    for (started, free) in [(Some(ago(540)), false), (Some(ago(599)), false), (Some(ago(600)), true), (None, false)] {
        let lab = holding(vec![Pod { started, ..protected("10m") }]);
        assert_eq!(lab.may("node", Method::SingleNode), free, "started at {started:?}");
    }
}

#[test]
fn what_is_no_positive_duration_protects_nothing() {
    for value in ["abc", "0s", "-5m", "", "false"] {
        let young = Pod { started: Some(ago(1)), ..protected(value) };
        assert!(holding(vec![young]).may("node", Method::SingleNode), "{value:?}");
    }
}

#[test]
fn of_several_durations_the_longest_decides() {
    for (age, free) in [(299, false), (301, false), (1_199, false), (1_200, true)] {
        let make = |value| Pod { started: Some(ago(age)), ..protected(value) };
        assert_eq!(holding(vec![make("5m"), make("20m")]).may("node", Method::SingleNode), free, "{age} s");
    }
}

#[test]
fn drift_waits_for_durations_too() {
    let lab = holding(vec![Pod { started: Some(ago(60)), ..protected("10m") }]);
    assert_eq!(lab.told(Method::Drift), "nothing");
    let lab = holding(vec![Pod { started: Some(ago(600)), ..protected("10m") }]);
    assert_eq!(lab.told(Method::Drift), "node by m-2 m-4 m-8 m-16");
}
