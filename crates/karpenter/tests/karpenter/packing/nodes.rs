//! Existing nodes: who goes on them before a new one is opened.

use nodecast_model::domain::{ResourceName, Symbol, Taint, TaintEffect};
use serde_json::json;

use super::world::{World, pod_spec};

pub const ROWS: &[u16] = &[50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66];

fn taint(key: &str) -> Taint {
    Taint::new(Symbol::new(key), TaintEffect::NoSchedule)
}

#[test]
fn a_pod_that_fits_a_node_opens_none() {
    let mut world = World::new();
    world.node("n", "zone-1", &[]);
    world.pod("p", json!({"cpu": "1", "nodeSelector": {"topology.kubernetes.io/zone": "zone-1"}}));
    assert_eq!(world.ask().place("p"), "n");
}

#[test]
fn full_incompatible_or_leaving_node_takes_no_pods() {
    let full = |world: &mut World| {
        world.node("n", "zone-1", &[("old", json!({"cpu": "3.5"}))]);
    };
    let elsewhere = |world: &mut World| {
        world.node("n", "zone-2", &[]);
    };
    let leaving = |world: &mut World| world.node("n", "zone-1", &[]).offered = false;
    let cases: [&dyn Fn(&mut World); 3] = [&full, &elsewhere, &leaving];
    for arrange in cases {
        let mut world = World::new();
        arrange(&mut world);
        world.pod("p", json!({"cpu": "1", "nodeSelector": {"topology.kubernetes.io/zone": "zone-1"}}));
        assert_eq!(world.ask().place("p"), "new-0");
    }
}

#[test]
fn startup_and_passing_taints_count_only_after_initialization() {
    for (key, startup, initialized, place) in [
        ("example.com/agent", true, false, "n"),
        ("example.com/agent", true, true, "new-0"),
        ("example.com/agent", false, false, "new-0"),
        ("node.kubernetes.io/not-ready", false, false, "n"),
        ("node.kubernetes.io/not-ready", false, true, "new-0"),
        ("readiness.k8s.io/gpu", false, false, "n"),
    ] {
        let mut world = World::new();
        let node = world.node("n", "zone-1", &[]);
        node.initialized = initialized;
        node.taints.push(taint(key));
        if startup {
            node.startup_taints.push(taint(key));
        }
        world.pod("p", json!({}));
        assert_eq!(world.ask().place("p"), place, "{key} startup {startup} initialized {initialized}");
    }
}

#[test]
fn unbound_daemons_reserve_capacity_on_nodes() {
    // Four cores offer 3.9; a daemon of one core leaves 2.9 until it is bound, and the same afterwards.
    for (bound, cpu, place) in [(true, "2.9", "n"), (false, "2.9", "n"), (true, "3", "new-0"), (false, "3", "new-0")] {
        let mut world = World::new();
        world.daemon(json!({"cpu": "1"}));
        let daemon = json!({"cpu": "1", "daemon": true});
        let pods = [("daemon", daemon)];
        world.node("n", "zone-1", if bound { &pods } else { &[] });
        world.pod("p", json!({"cpu": cpu}));
        assert_eq!(world.ask().place("p"), place, "bound {bound}, {cpu}");
    }
}

#[test]
fn an_unexpected_daemon_never_gives_room_back() {
    let mut world = World::new();
    world.daemon(json!({"cpu": "1", "nodeSelector": {"late-label": "yes"}}));
    world.node("n", "zone-1", &[("daemon", json!({"cpu": "1", "daemon": true}))]);
    world.pod("p", json!({"cpu": "3.5"}));
    assert_eq!(world.ask().place("p"), "new-0");
}

#[test]
fn non_matching_daemon_reserves_no_capacity() {
    let mut world = World::new();
    world.daemon(json!({"cpu": "3", "nodeSelector": {"kubernetes.io/arch": "arm64"}}));
    world.node("n", "zone-1", &[]);
    world.pod("p", json!({"cpu": "3.5"}));
    assert_eq!(world.ask().place("p"), "n");
}

#[test]
fn batches_fill_existing_nodes_first() {
    let mut world = World::new();
    world.types.retain(|instance_type| instance_type.name.as_str() == "amd64-4");
    for (batch, pods) in [3, 1, 7, 2, 5, 4, 6, 1, 2, 3].into_iter().enumerate() {
        world.pods(&format!("batch-{batch}"), pods, json!({"cpu": "0.9"}));
        world.settle();
        let with_room = world.nodes.iter().filter(|node| node.pods.len() < 4).count();
        assert!(with_room <= 1, "after batch {batch} {with_room} nodes have room");
    }
}

#[test]
fn initialized_nodes_come_first_then_names() {
    let mut world = World::new();
    for number in 0..100 {
        world.node(&format!("a-{number:03}"), "zone-1", &[]).initialized = false;
    }
    world.node("z", "zone-1", &[]);
    world.pod("p", json!({"cpu": "1"}));
    assert_eq!(world.ask().place("p"), "z");
    world.nodes.pop();
    world.nodes.reverse();
    assert_eq!(world.ask().place("p"), "a-000");
}

#[test]
fn unmanaged_nodes_are_used_except_by_old_releases() {
    let mut world = World::new();
    let node = world.node("own", "zone-1", &[]);
    node.managed = false;
    node.labels.remove(Symbol::new("karpenter.sh/nodepool"));
    world.pod("p", json!({}));
    assert_eq!(world.ask().place("p"), "own");
    world.karpenter = nodecast_model::domain::KarpenterVersion::V0_18;
    assert_eq!(world.ask().place("p"), "new-0");
}

#[test]
fn missing_node_label_sends_pod_to_new_node() {
    let mut world = World::without_pools();
    world.pool("default", json!({"labels": {"team": "a"}}));
    world.node("n", "zone-1", &[]);
    world.pod("p", json!({"nodeSelector": {"team": "a"}}));
    assert_eq!(world.ask().place("p"), "new-0");
}

#[test]
fn unreported_device_counts_as_in_claim() {
    let mut world = World::new();
    let node = world.node("n", "zone-1", &[]);
    node.initialized = false;
    node.allocatable.set(ResourceName::NVIDIA_GPU, 1);
    world.pod("p", json!({"requests": {"nvidia.com/gpu": "1"}}));
    assert_eq!(world.ask().place("p"), "n");
}

#[test]
fn a_host_port_is_given_once_per_node() {
    let port = |port: u16, ip: &str, protocol: &str| json!({"ports": [{"containerPort": 80, "hostPort": port, "hostIP": ip, "protocol": protocol}]});
    for (first, second, nodes) in [
        (port(80, "", "TCP"), port(80, "", "TCP"), 2),
        (port(80, "", "TCP"), port(81, "", "TCP"), 1),
        (port(80, "", "TCP"), port(80, "", "UDP"), 1),
        (port(80, "10.0.0.1", "TCP"), port(80, "10.0.0.2", "TCP"), 1),
        (port(80, "10.0.0.1", "TCP"), port(80, "0.0.0.0", "TCP"), 2),
    ] {
        let mut world = World::new();
        world.pod("p", first.clone()).pod("q", second.clone());
        assert_eq!(world.ask().sizes().len(), nodes, "{first} {second}");
    }
    let mut world = World::new();
    world.node("n", "zone-1", &[("old", port(80, "", "TCP"))]);
    world.pod("p", port(80, "", "TCP"));
    assert_eq!(world.ask().place("p"), "new-0");
}

#[test]
fn self_affinity_follows_zone_of_first_batch() {
    let affine = json!({"labels": {"app": "a"}, "cpu": "3", "affinity": {"podAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "a"}}}]}}});
    let mut world = World::new();
    world.types.retain(|instance_type| instance_type.name.as_str() == "amd64-4");
    world.node("n", "zone-2", &[]).pods.push(("first".to_owned(), pod_spec(affine.clone())));
    world.pod("next", affine);
    let answer = world.ask();
    assert_eq!(answer.place("next"), "new-0");
    assert_eq!(answer.requires(0, "topology.kubernetes.io/zone"), "topology.kubernetes.io/zone In [zone-2]");
}
