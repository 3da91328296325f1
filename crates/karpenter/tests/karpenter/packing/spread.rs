//! Topology spread constraints.

use nodecast_model::domain::requirements::Requirement;
use nodecast_model::domain::{Symbol, Taint, TaintEffect};
use serde_json::{Value, json};

use super::world::World;

pub const ROWS: &[u16] = &[67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 87, 88, 160];

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const CAPACITY: &str = "karpenter.sh/capacity-type";

/// A constraint over pods labelled `app: a`.
fn over(key: &str, max_skew: i64) -> Value {
    json!({"topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}})
}

/// A pod labelled `app: a` of 1.1 cores with these constraints.
fn spread(constraints: &[Value]) -> Value {
    json!({"labels": {"app": "a"}, "cpu": "1.1", "topologySpreadConstraints": constraints})
}

fn with(mut base: Value, key: &str, value: Value) -> Value {
    base[key] = value;
    base
}

fn settled(world: &mut World, pods: usize, spec: Value, key: &str) -> (String, usize) {
    world.pods("p", pods, spec).settle();
    (world.bound_by(key), world.pods.len())
}

#[test]
fn four_pods_spread_two_one_one() {
    let mut world = World::new();
    assert_eq!(settled(&mut world, 4, spread(&[over(ZONE, 1)]), ZONE), ("zone-1=2 zone-2=1 zone-3=1".into(), 0));
}

#[test]
fn unknown_topology_key_blocks_only_its_pod() {
    let mut world = World::new();
    world.pod("lost", spread(&[over("nosuch", 1)])).pod("fine", json!({}));
    let answer = world.ask();
    assert_eq!((answer.place("lost"), answer.place("fine")), ("-".into(), "new-0".into()));
}

#[test]
fn a_constraint_without_a_selector_counts_nobody() {
    let mut world = World::new();
    let mut constraint = over(HOST, 1);
    constraint.as_object_mut().unwrap().remove("labelSelector");
    world.pods("p", 3, with(spread(&[constraint]), "cpu", json!("10m")));
    assert_eq!(world.ask().sizes(), [3]);
}

#[test]
fn only_zones_of_pools_are_spread_domains() {
    let zones = |values: &[&str]| json!([{"key": ZONE, "operator": "In", "values": values}]);
    let two = json!({"requirements": zones(&["zone-1", "zone-2"])});
    let by_label = json!({"labels": {ZONE: "zone-1"}});
    for (pools, expected) in [
        (vec![two], "zone-1=2 zone-2=2"),
        (vec![by_label.clone()], "zone-1=4"),
        (vec![by_label, json!({"requirements": zones(&["zone-2"])})], "zone-1=2 zone-2=2"),
    ] {
        let mut world = World::without_pools();
        for (number, pool) in pools.into_iter().enumerate() {
            world.pool(&format!("pool-{number}"), pool);
        }
        assert_eq!(settled(&mut world, 4, spread(&[over(ZONE, 1)]), ZONE), (expected.into(), 0));
    }
}

#[test]
fn remaining_skew_fills_the_last_zone() {
    let mut world = World::new();
    for zone in ["zone-1", "zone-2"] {
        let full = with(spread(&[]), "cpu", json!("3.9"));
        world.node(&format!("node-{zone}"), zone, &[("old", full)]);
    }
    world.pools[0].requirements.push(Requirement::equals(Symbol::new(ZONE), Symbol::new("zone-3")));
    let (bound, left) = settled(&mut world, 10, spread(&[over(ZONE, 5)]), ZONE);
    assert_eq!((bound.as_str(), left), ("zone-1=1 zone-2=1 zone-3=6", 4));
}

#[test]
fn replacement_pods_go_to_short_zones() {
    let mut world = World::new();
    let pod = spread(&[over(ZONE, 1)]);
    let three = [("a", pod.clone()), ("b", pod.clone()), ("c", pod.clone())];
    world.node("n", "zone-1", &three);
    assert_eq!(settled(&mut world, 3, pod, ZONE), ("zone-1=3 zone-2=2 zone-3=1".into(), 0));
}

#[test]
fn zone_of_unmanaged_node_is_spread_domain() {
    let mut world = World::new();
    let node = world.node("n", "zone-elsewhere", &[("old", spread(&[]))]);
    node.allocatable.set(nodecast_model::domain::ResourceName::CPU, 1_100);
    let (bound, left) = settled(&mut world, 3, spread(&[over(ZONE, 1)]), ZONE);
    assert_eq!((bound.as_str(), left), ("zone-1=1 zone-2=1 zone-3=1 zone-elsewhere=1", 0));
}

#[test]
fn spread_counts_only_matching_running_pods() {
    let mut world = World::new();
    let plain = json!({"cpu": "1"});
    world.node("n", "zone-1", &[("x", plain.clone()), ("y", plain.clone()), ("z", plain)]);
    // Three pods without the label do not keep the fourth out of their zone.
    assert_eq!(settled(&mut world, 1, spread(&[over(ZONE, 1)]), ZONE).0, "zone-1=4");
    let mut world = World::new();
    let pod = spread(&[over(ZONE, 1)]);
    world.node("n", "zone-1", &[("x", pod.clone()), ("y", pod.clone())]);
    world.node("m", "zone-2", &[("z", pod.clone())]);
    assert_eq!(settled(&mut world, 2, pod, ZONE), ("zone-1=2 zone-2=2 zone-3=1".into(), 0));
}

#[test]
fn too_few_domains_make_the_least_count_zero() {
    for (zones, wanted, pods, expected) in [
        (&["zone-1", "zone-2"][..], 3, 3, ("zone-1=1 zone-2=1", 1)),
        (&["zone-1", "zone-2", "zone-3"], 3, 11, ("zone-1=4 zone-2=4 zone-3=3", 0)),
        (&["zone-1", "zone-2", "zone-3"], 2, 11, ("zone-1=4 zone-2=4 zone-3=3", 0)),
    ] {
        let mut world = World::without_pools();
        world.pool("default", json!({"requirements": [{"key": ZONE, "operator": "In", "values": zones}]}));
        let pod = spread(&[with(over(ZONE, 1), "minDomains", json!(wanted))]);
        let (bound, left) = settled(&mut world, pods, pod, ZONE);
        assert_eq!((bound.as_str(), left), expected);
    }
}

#[test]
fn pods_not_matching_spread_selector_are_uncounted() {
    let mut world = World::new();
    let pod = with(spread(&[over(HOST, 1)]), "labels", json!({"app": "b"}));
    world.pods("p", 5, with(pod, "cpu", json!("10m")));
    assert_eq!(world.ask().sizes(), [5]);
}

#[test]
fn host_skew_limits_pods_per_node() {
    for (skew, sizes) in [(1, vec![1, 1, 1, 1]), (4, vec![4])] {
        let mut world = World::new();
        world.pods("p", 4, with(spread(&[over(HOST, skew)]), "cpu", json!("10m")));
        assert_eq!(world.ask().sizes(), sizes);
    }
}

#[test]
fn two_workloads_spread_over_hosts_share_the_nodes() {
    let constraint = |app: &str| with(over(HOST, 1), "labelSelector", json!({"matchLabels": {"app": app}}));
    let pod = |app: &str| json!({"labels": {"app": app}, "cpu": "1", "topologySpreadConstraints": [constraint(app)]});
    let mut world = World::new();
    world.pods("a", 2, pod("a")).pods("b", 3, pod("b"));
    assert_eq!(world.ask().sizes().len(), 3);
    let arch = |app: &str, arch: &str| with(pod(app), "nodeSelector", json!({"kubernetes.io/arch": arch}));
    let mut world = World::new();
    world.pods("a", 2, arch("a", "amd64")).pods("b", 2, arch("b", "arm64"));
    assert_eq!(world.ask().sizes(), [1, 1, 1, 1]);
}

#[test]
fn capacity_types_are_domains_and_soft_spread_relaxes() {
    let mut world = World::new();
    let pod = spread(&[over(CAPACITY, 1)]);
    assert_eq!(settled(&mut world, 4, pod.clone(), CAPACITY), ("on-demand=2 spot=2".into(), 0));
    for (when, expected) in
        [("DoNotSchedule", ("on-demand=2 spot=1", 3)), ("ScheduleAnyway", ("on-demand=5 spot=1", 0))]
    {
        let mut world = World::new();
        let node = world.node("n", "zone-1", &[("old", with(pod.clone(), "cpu", json!("3.9")))]);
        node.labels.set(Symbol::new(CAPACITY), Symbol::new("spot"));
        world.pools[0].requirements.push(Requirement::equals(Symbol::new(CAPACITY), Symbol::new("on-demand")));
        let pod = spread(&[with(over(CAPACITY, 1), "whenUnsatisfiable", json!(when))]);
        let (bound, left) = settled(&mut world, 5, pod, CAPACITY);
        assert_eq!((bound.as_str(), left), expected);
    }
}

#[test]
fn node_affinity_policy_decides_which_nodes_count() {
    for (policy, expected) in [("Honor", ("zone-1=1 zone-2=5", 0)), ("Ignore", ("zone-1=1 zone-2=2", 3))] {
        let mut world = World::new();
        world.node("n", "zone-1", &[("old", with(spread(&[]), "cpu", json!("3.9")))]);
        let constraint = with(over(ZONE, 1), "nodeAffinityPolicy", json!(policy));
        let pod = with(spread(&[constraint]), "nodeSelector", json!({"team": "x"}));
        world.pools.clear();
        let zone = json!([{"key": ZONE, "operator": "In", "values": ["zone-2"]}]);
        world.pool("default", json!({"labels": {"team": "x"}, "requirements": zone}));
        let (bound, left) = settled(&mut world, 5, pod, ZONE);
        assert_eq!((bound.as_str(), left), expected, "{policy}");
    }
}

#[test]
fn spread_shares_follow_pool_label_values() {
    let mut world = World::without_pools();
    for (name, values) in [("spot", &["2", "3", "4", "5"][..]), ("on-demand", &["1"])] {
        let requirements = json!([
            {"key": CAPACITY, "operator": "In", "values": [name]},
            {"key": "share", "operator": "In", "values": values},
        ]);
        world.pool(name, json!({"requirements": requirements}));
    }
    assert_eq!(settled(&mut world, 20, spread(&[over("share", 1)]), CAPACITY), ("on-demand=4 spot=16".into(), 0));
}

#[test]
fn revisions_are_counted_apart_by_their_label() {
    let keyed = |revision: &str, key: &str| {
        let pod = spread(&[with(over(HOST, 1), "matchLabelKeys", json!([key]))]);
        with(with(pod, "labels", json!({"app": "a", "rev": revision})), "cpu", json!("10m"))
    };
    let mut world = World::new();
    world.pods("old", 2, keyed("1", "rev")).pods("new", 2, keyed("2", "rev"));
    assert_eq!(world.ask().sizes(), [2, 2]);
    let mut world = World::new();
    world.pods("old", 2, keyed("1", "nosuch")).pods("new", 2, keyed("2", "nosuch"));
    assert_eq!(world.ask().sizes(), [1, 1, 1, 1]);
}

#[test]
fn ignored_taints_make_tainted_domains_count() {
    for (policy, expected) in [("Ignore", ("zone-1=1 zone-2=2", 2)), ("Honor", ("zone-1=1 zone-2=4", 0))] {
        let mut world = World::without_pools();
        let zone = |name: &str| json!([{"key": ZONE, "operator": "In", "values": [name]}]);
        let taints = json!([{"key": "team", "value": "x", "effect": "NoSchedule"}]);
        world.pool("tainted", json!({"requirements": zone("zone-1"), "taints": taints}));
        world.pool("default", json!({"requirements": zone("zone-2")}));
        let node = world.node("n", "zone-1", &[("old", spread(&[]))]);
        let value = Symbol::new("x");
        node.taints.push(Taint { value, ..Taint::new(Symbol::new("team"), TaintEffect::NoSchedule) });
        let pod = spread(&[with(over(ZONE, 1), "nodeTaintsPolicy", json!(policy))]);
        let (bound, left) = settled(&mut world, 4, pod, ZONE);
        assert_eq!((bound.as_str(), left), expected, "{policy}");
    }
}

#[test]
fn requirements_shrink_the_domains_and_preferences_do_not() {
    let expression = json!([{"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}]);
    let required = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": expression}]}}});
    let preferred = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "preference": {"matchExpressions": expression}}]}});
    let pod = spread(&[over(ZONE, 1)]);
    for (pod, expected) in [
        (with(pod.clone(), "nodeSelector", json!({ZONE: "zone-1"})), "zone-1=6"),
        (with(pod.clone(), "affinity", required), "zone-1=3 zone-2=3"),
        (with(pod, "affinity", preferred), "zone-1=2 zone-2=2 zone-3=2"),
    ] {
        let mut world = World::new();
        assert_eq!(settled(&mut world, 6, pod, ZONE), (expected.into(), 0));
    }
}

#[test]
fn all_constraints_hold_after_each_of_several_batches() {
    let counts = |world: &World, key: &str| -> Vec<i64> {
        world.bound_by(key).split(' ').map(|part| part.split_once('=').unwrap().1.parse().unwrap()).collect()
    };
    let skew = |world: &World, key: &str, domains: usize| {
        let counts = counts(world, key);
        let least = if counts.len() < domains { 0 } else { counts.iter().copied().min().unwrap() };
        counts.into_iter().max().unwrap() - least
    };
    for by_capacity in [false, true] {
        let mut constraints = vec![over(ZONE, 1), over(HOST, 3)];
        if by_capacity {
            constraints.push(over(CAPACITY, 1));
        }
        let mut world = World::new();
        for (batch, pods) in [2, 3, 5, 11].into_iter().enumerate() {
            world.pods(&format!("batch-{batch}"), pods, spread(&constraints)).settle();
            assert!(world.pods.is_empty(), "batch {batch}: {} pods are left", world.pods.len());
            assert!(skew(&world, ZONE, 3) <= 1, "batch {batch}: {}", world.bound_by(ZONE));
            assert!(counts(&world, HOST).into_iter().all(|pods| pods <= 3), "batch {batch}: {}", world.bound_by(HOST));
            assert!(!by_capacity || skew(&world, CAPACITY, 2) <= 1, "batch {batch}: {}", world.bound_by(CAPACITY));
        }
    }
}

#[test]
fn first_min_domains_applies_to_equal_constraints() {
    let zones = json!([{"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}]);
    let strict = || spread(&[with(over(ZONE, 1), "minDomains", json!(3))]);
    let plain = || spread(&[over(ZONE, 1)]);
    for (first, second, left) in [(strict(), plain(), 2), (plain(), strict(), 0)] {
        let mut world = World::without_pools();
        world.pool("default", json!({"requirements": zones}));
        world.pods("first", 2, first).pods("second", 2, second);
        assert_eq!(world.ask().unplaced(), left);
    }
}
