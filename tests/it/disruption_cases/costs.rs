//! What the removal of a node disturbs, and the order that follows from it (C).

use nodecast::domain::SimDuration;
use nodecast_karpenter::disruption::{Memory, Method, MethodResult};
use serde_json::json;

use super::lab::{Lab, Pod, ago, free_pool, plain, pod};

pub const ROWS: &[(&str, &str)] = &[
    ("C5", "disruption_cost_counts_pods_and_remaining_lifetime"),
    ("C6", "disruption_cost_counts_pods_and_remaining_lifetime"),
    ("C7", "pools_take_turns_with_cheapest_node_first"),
    ("C8", "unseen_pools_come_first_until_all_are_seen"),
    ("C9", "unseen_pools_come_first_until_all_are_seen"),
    ("C10", "timeout_remembers_unreached_pools"),
    ("C11", "early_command_keeps_list_of_unseen_pools"),
];

#[test]
fn disruption_cost_counts_pods_and_remaining_lifetime() {
    let daemon = || pod("daemon", json!({"cpu": "100m", "owner": "DaemonSet"}));
    let pods: Vec<Pod> = std::iter::once(plain("app", "100m")).chain((0..4).map(|_| daemon())).collect();
    let mut lab = Lab::new();
    lab.node("long-lived", "m-4", pods.clone());
    for (name, age) in [("half", 1_800), ("expired", 3_600), ("near", 3_000)] {
        let node = lab.node(name, "m-4", pods.clone());
        (node.created, node.expire_after) = (ago(age), Some(SimDuration::from_secs(3_600)));
    }
    let cost = |name| (lab.candidate(name, Method::SingleNode).unwrap().cost * 1e3).round() as i64;
    assert_eq!(["long-lived", "half", "expired"].map(cost), [5_000, 2_500, 0]);
    assert_eq!(lab.order(Method::SingleNode), ["expired", "near", "half", "long-lived"]);
}

/// Three pools with three nodes each, of 1, 2 and 3 pods. Only the pods of `movable` have somewhere to go.
fn three_pools(movable: &str) -> Lab {
    let mut lab = Lab::new();
    lab.pools = ["p1", "p2", "p3"].map(|name| (free_pool(name), Some(Lab::new().types))).into();
    lab.unmanaged("room", "m-4").labels.set("home".into(), "room".into());
    for pool in ["p1", "p2", "p3"] {
        for pods in 1..=3 {
            let name = format!("{pool}-{pods}");
            let home = if name == movable { "room" } else { "nowhere" };
            let pod = (0..pods).map(|_| pod("web", json!({"cpu": "100m", "nodeSelector": {"home": home}})));
            let pod = pod.collect();
            lab.node_of(pool, &name, "m-4", "on-demand", pod);
        }
    }
    lab
}

/// How many simulations it takes to come to each of `nodes`.
fn turns(nodes: &[&str], unseen: &[&str]) -> Vec<usize> {
    let turn = |node: &&str| {
        let lab = three_pools(node);
        let found = |evaluations: &usize| {
            let mut memory = Memory { unseen: unseen.iter().map(|&name| name.into()).collect(), ..Memory::default() };
            matches!(lab.found_within(Method::SingleNode, Some(*evaluations), &mut memory), MethodResult::Command(_))
        };
        (1..=9).find(found).unwrap_or(usize::MAX)
    };
    nodes.iter().map(turn).collect()
}

#[test]
fn pools_take_turns_with_cheapest_node_first() {
    for (round, pods) in [(0, 1), (1, 2), (2, 3)] {
        let names = ["p1", "p2", "p3"].map(|pool| format!("{pool}-{pods}"));
        let mut found = turns(&names.each_ref().map(String::as_str), &[]);
        found.sort_unstable();
        assert_eq!(found, [3 * round + 1, 3 * round + 2, 3 * round + 3]);
    }
}

#[test]
fn unseen_pools_come_first_until_all_are_seen() {
    assert_eq!(turns(&["p2-1", "p3-1"], &["p2"]), [1, 3]);
    assert_eq!(turns(&["p3-1"], &["p3"]), [1]);
    let mut memory = Memory { unseen: ["p2".into()].into(), ..Memory::default() };
    let lab = three_pools("none of them");
    assert_eq!(lab.found_within(Method::SingleNode, None, &mut memory), MethodResult::Nothing);
    assert!(memory.unseen.is_empty());
}

#[test]
fn timeout_remembers_unreached_pools() {
    let lab = three_pools("p3-3");
    let mut memory = Memory::default();
    assert_eq!(lab.found_within(Method::SingleNode, Some(0), &mut memory), MethodResult::NotNow);
    assert_eq!(memory.unseen, ["p1".into(), "p2".into(), "p3".into()].into());
    let mut memory = Memory::default();
    assert_eq!(lab.found_within(Method::SingleNode, Some(2), &mut memory), MethodResult::NotNow);
    assert_eq!(memory.unseen, ["p3".into()].into());
}

#[test]
fn early_command_keeps_list_of_unseen_pools() {
    let mut memory = Memory { unseen: ["p2".into(), "p3".into()].into(), ..Memory::default() };
    let found = three_pools("p2-1").found_within(Method::SingleNode, None, &mut memory);
    assert!(matches!(found, MethodResult::Command(_)));
    assert_eq!(memory.unseen, ["p2".into(), "p3".into()].into());
}
