//! The estimator and its limits.

use std::sync::Arc;

use nodecast_cluster_autoscaler::estimator::{Estimate, NodeLimit, PackingGroup, estimate};
use nodecast_cluster_autoscaler::snapshot::{PodAt, Snapshot};
use nodecast_cluster_autoscaler::view::{NodeTemplate, PodTraits};
use nodecast_model::domain::Symbol;
use nodecast_model::domain::pod::HostPort;

use super::lab::{Lab, spec, spread, template, traits};

pub const ROWS: &[&str] =
    &["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "B1", "B2", "B3", "B4", "B5", "B6"];

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn in_zone(milli_cpu: i64, memory: i64, zone: &str) -> NodeTemplate {
    let mut template = template(milli_cpu, memory);
    template.labels.set(Symbol::new(ZONE), Symbol::new(zone));
    template
}

/// Packs onto nodes of a template, with or without a tiny node of another zone beside.
fn pack_beside(
    beside: bool,
    groups: &[(Arc<PodTraits>, usize)],
    template: &NodeTemplate,
    limit: NodeLimit,
    fast: bool,
) -> Estimate {
    let mut snapshot = Snapshot::new(0);
    let mut lab = Lab::default();
    if beside {
        let node = lab.lone_node(1, 1);
        lab.nodes[node].labels.set(Symbol::new(ZONE), Symbol::new("other"));
        snapshot.add_node(0, &lab.nodes[node]);
    }
    let pods: Vec<Vec<PodAt>> =
        groups.iter().map(|(traits, count)| (0..*count).map(|_| snapshot.add_pod(None, traits)).collect()).collect();
    let packing: Vec<PackingGroup<'_>> = pods.iter().map(|pods| PackingGroup { pods }).collect();
    estimate(&mut snapshot, &packing, template, limit, fast)
}

fn pack(groups: &[(Arc<PodTraits>, usize)], template: &NodeTemplate, limit: NodeLimit) -> (usize, Vec<usize>) {
    let plain = pack_beside(true, groups, template, limit, false);
    if groups.len() == 1 {
        // A9: with the fast path switched on nothing changes.
        let fast = pack_beside(true, groups, template, limit, true);
        assert_eq!((fast.nodes, &fast.placed), (plain.nodes, &plain.placed));
        assert!(fast.work.pods <= plain.work.pods);
    }
    (plain.nodes, plain.placed)
}

fn some(name: &str, milli_cpu: i64, memory: i64) -> Arc<PodTraits> {
    traits(name, spec(name, milli_cpu, memory))
}

#[test]
fn scarcest_resource_limits_pods_per_node() {
    let none = NodeLimit::Unlimited;
    assert_eq!(pack(&[(some("a", 350, 1_000), 10)], &template(1_000, 2_000), none), (5, vec![10]));
    assert_eq!(pack(&[(some("a", 10, 100), 20)], &template(10_000, 20_000), none), (2, vec![20]));
    let mut with_port = spec("a", 200, 1_000);
    let port = HostPort { port: 5_555, protocol: Symbol::new("TCP"), ip: Symbol::new("") };
    with_port.containers[0].host_ports.push(port);
    assert_eq!(pack(&[(traits("a", with_port), 8)], &template(1_000, 5_000), none), (8, vec![8]));
}

#[test]
fn remaining_pods_fill_nodes_at_node_limit() {
    let limit = NodeLimit::Nodes(5);
    assert_eq!(pack(&[(some("a", 500, 1_000), 20)], &template(1_000, 5_000), limit), (5, vec![10]));
    // The pods with the larger share of a node come first and leave no CPU.
    let groups = [(some("small", 50, 1_000), 10), (some("large", 500, 1_000), 10)];
    assert_eq!(pack(&groups, &template(1_000, 5_000), limit), (5, vec![0, 10]));
}

#[test]
fn topology_spread_counts_estimated_nodes() {
    let none = NodeLimit::Unlimited;
    let spread_pods = |milli_cpu, memory, key: &str, skew, domains| {
        let mut spec = spec("a", milli_cpu, memory);
        spec.topology_spread.push(spread("a", key, skew, domains));
        traits("a", spec)
    };
    let node = in_zone(1_000, 5_000, "here");
    assert_eq!(pack(&[(spread_pods(200, 200, HOST, 2, None), 8)], &node, none), (4, vec![8]));
    assert_eq!(pack(&[(spread_pods(20, 100, ZONE, 2, None), 8)], &node, none), (1, vec![2]));
    // Only going back to the other nodes once the newest may take no more gets all pods a place.
    let alone = pack_beside(false, &[(spread_pods(20, 100, HOST, 1, Some(3)), 12)], &node, none, false);
    assert_eq!((alone.nodes, alone.placed), (3, vec![12]));
}

#[test]
fn later_pod_group_fills_gaps_on_nodes() {
    let groups = [(some("large", 600, 100), 4), (some("small", 400, 100), 5)];
    // Four nodes have 400 left each; only the fifth small pod needs a node.
    assert_eq!(pack(&groups, &template(1_000, 5_000), NodeLimit::Unlimited), (5, vec![4, 5]));
}

#[test]
fn useless_estimated_node_is_not_counted() {
    let mut spec = spec("a", 2_000, 100);
    let estimate = pack(&[(traits("a", spec.clone()), 3)], &template(1_000, 5_000), NodeLimit::Unlimited);
    assert_eq!(estimate, (0, vec![0]));
    // The same where other nodes matter.
    spec.topology_spread.push(spread("a", HOST, 1, None));
    assert_eq!(pack(&[(traits("a", spec), 3)], &template(1_000, 5_000), NodeLimit::Unlimited), (0, vec![0]));
}

#[test]
fn the_fast_path_packs_one_node_and_multiplies() {
    let groups = [(some("large", 600, 100), 4), (some("many", 300, 100), 100)];
    let plain = pack_beside(true, &groups, &template(1_000, 5_000), NodeLimit::Unlimited, false);
    let fast = pack_beside(true, &groups, &template(1_000, 5_000), NodeLimit::Unlimited, true);
    assert_eq!((plain.nodes, &plain.placed), (fast.nodes, &fast.placed));
    assert!(fast.work.pods < plain.work.pods, "it is quicker: {fast:?}");
    let limited = pack_beside(true, &groups, &template(1_000, 5_000), NodeLimit::Nodes(10), true);
    assert_eq!((limited.nodes, limited.placed), (10, vec![4, 4 + 6 * 3]));
}

#[test]
fn thresholds_combine_to_the_tightest() {
    let of = |thresholds: [i64; 2]| NodeLimit::of_thresholds(thresholds);
    assert_eq!(of([-10, 10]), NodeLimit::Nodes(0));
    assert_eq!(of([-10, 0]), NodeLimit::Nodes(0));
    assert_eq!(of([0, 0]), NodeLimit::Unlimited);
    assert_eq!(of([0, 10]), NodeLimit::Nodes(10));
    assert_eq!(of([5, 10]), NodeLimit::Nodes(5));
}

#[test]
fn node_limit_adds_similar_groups_free_capacity() {
    assert_eq!(NodeLimit::free_room([(10, 20), (5, 10), (50, 100), (3, 5)]), 67);
    assert_eq!(NodeLimit::free_room([(10, 5), (5, 10), (11, 10), (5, 0)]), 5);
    let full = NodeLimit::free_room([(10, 10), (12, 10)]);
    assert_eq!(NodeLimit::of_thresholds([1_000, full]), NodeLimit::Nodes(0));
    assert_eq!(NodeLimit::cluster_room(0, 500), 0);
    assert_eq!([(10, 10), (10, 12)].map(|(most, nodes)| NodeLimit::cluster_room(most, nodes)), [-1, -1]);
    assert_eq!(NodeLimit::cluster_room(10, 4), 6);
}

#[test]
fn every_estimate_counts_its_nodes_from_zero() {
    let mut snapshot = Snapshot::new(0);
    let pods: Vec<PodAt> = (0..20).map(|_| snapshot.add_pod(None, &some("a", 500, 100))).collect();
    let node = template(1_000, 5_000);
    let mut again = || estimate(&mut snapshot, &[PackingGroup { pods: &pods }], &node, NodeLimit::Nodes(3), false);
    assert_eq!((again().nodes, again().nodes), (3, 3));
}
