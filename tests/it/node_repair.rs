//! EKS node auto repair of managed groups, and kubelets that stop on healthy machines.

use nodecast::simulation::Outcome;
use nodecast::world::record::{NodeEnd, NodeFacts};

use crate::node_groups::{minutes, run, try_load, web};

/// Two hours of a group of so many nodes, on some of which the kubelet stops at 10 minutes.
fn stopped(nodes: u32, stopped: u32, group: &str) -> Outcome {
    let text = format!(
        "name: repair\nregion: us-east-1\nduration: 2h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [manifests.yaml]\nec2: {{ \
         capacity: infinite }}\nversions: {{ kubernetes: \"1.36\" }}\nnodeGroups:\n  - {{ name: repaired, instanceType: m6i.large, desired: \
         {nodes}, max: {nodes}, {group} }}\nfaults: [{{ at: 10m, node_failure: {{ count: {stopped}, node_pool: repaired, mode: kubelet }} }}]\n"
    );
    run(&text, &web(1))
}

/// Minutes after the fault at which nodes were found unhealthy and ended.
fn repaired(outcome: &Outcome) -> Vec<f64> {
    let ended = |node: &&NodeFacts| node.end == Some(NodeEnd::Unhealthy);
    let after = |node: &NodeFacts| (node.terminating.unwrap() - minutes(10)).as_secs_f64() / 60.0;
    outcome.record.nodes.iter().filter(ended).map(after).collect()
}

const REPAIR: &str = "nodeRepairConfig: { enabled: true }";

#[test]
fn two_of_ten_stopped_kubelets_are_replaced() {
    let outcome = stopped(10, 2, REPAIR);
    let times = repaired(&outcome);
    // Not Ready after the grace period of 50 s, then 30 minutes.
    assert_eq!(times.len(), 2);
    assert!(times.iter().all(|after| (30.8..=31.0).contains(after)), "{times:?}");
    assert_eq!(outcome.record.nodes.len(), 12, "each is replaced");
}

#[test]
fn repair_stops_above_a_fifth_of_a_group() {
    assert!(repaired(&stopped(10, 3, REPAIR)).is_empty());
    assert_eq!(repaired(&stopped(5, 2, REPAIR)).len(), 2, "a small group has no limit");
    let strict = "nodeRepairConfig: { maxUnhealthyNodeThresholdCount: 1 }";
    assert!(repaired(&stopped(5, 2, strict)).is_empty());
}

#[test]
fn without_repair_a_stopped_kubelet_stays() {
    let outcome = stopped(4, 1, "labels: { a: b }");
    assert_eq!((repaired(&outcome).len(), outcome.record.nodes.len()), (0, 4));
    let down: Vec<_> = outcome.record.nodes.iter().filter(|node| !node.not_ready.is_empty()).collect();
    assert_eq!(down.len(), 1);
    assert!(down[0].not_ready[0].1.is_none(), "it stays not Ready");
}

#[test]
fn parallel_limit_repairs_one_node_after_another() {
    let limited = "nodeRepairConfig: { maxParallelNodesRepairedCount: 1, wait: 10m }";
    let times = repaired(&stopped(4, 2, limited));
    assert_eq!(times.len(), 2);
    assert!(times[0].min(times[1]) < 11.0 && (times[0] - times[1]).abs() >= 0.9, "{times:?}");
}

#[test]
fn managed_group_rejects_suspended_zone_rebalance() {
    let text = |managed: bool| {
        format!(
            "name: repair\nregion: us-east-1\nduration: 1h\nmanifests: [manifests.yaml]\nnodeGroups:\n  - {{ name: fixed, managed: {managed}, \
             instanceType: m6i.large, desired: 2, zoneRebalance: false }}\n"
        )
    };
    let error = try_load(&text(true), &web(1)).unwrap_err();
    assert!(error.contains("a managed node group without zone rebalance"), "{error}");
    assert!(!try_load(&text(false), &web(1)).unwrap().policies[0].manifests.node_groups[0].zone_rebalance);
}
