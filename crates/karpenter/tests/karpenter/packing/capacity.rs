//! How much goes on a node, and on how many.

use nodecast_karpenter::packing::{CriteriaMissed, Refusal, Unschedulable, judge_types};
use nodecast_model::domain::{ResourceName, Resources, Symbol};
use serde_json::{Value, json};

use super::world::{GI, World, instance_type};

pub const ROWS: &[u16] = &[12, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48];

fn only(sizes: &[(&str, i64, i64)]) -> World {
    let mut world = World::new();
    world.types = sizes.iter().map(|&(name, cpu, gib)| instance_type(name, cpu, gib, "amd64")).collect();
    world
}

#[test]
fn small_pods_share_one_smallest_node() {
    let mut world = World::new();
    world.pods("p", 5, json!({"cpu": "10m"}));
    assert_eq!((world.ask().sizes(), world.ask().types()), (vec![5], vec!["amd64-2"]));
}

#[test]
fn full_node_opens_next_and_gaps_are_filled() {
    let mut world = only(&[("small", 2, 2), ("large", 4, 4)]);
    world.pods("big", 40, json!({"memory": "1.8G", "cpu": "10m"}));
    assert_eq!(world.ask().sizes(), vec![2; 20]);
    world.pods("little", 20, json!({"memory": "400M", "cpu": "5m"}));
    assert_eq!(world.ask().sizes(), vec![3; 20]);
}

#[test]
fn remaining_pods_open_nodes_of_different_sizes() {
    let mut world = only(&[("one", 1, 4), ("two", 2, 8), ("three", 3, 12), ("four", 4, 16), ("five", 5, 20)]);
    world.pod("big", json!({"cpu": "4.5"})).pod("little", json!({"cpu": "1"}));
    assert_eq!(world.ask().types(), ["five", "two"]);
}

#[test]
fn zero_resource_request_excludes_no_type() {
    let mut world = World::new();
    world.pod("p", json!({"requests": {"foo.com/weird": "0"}}));
    assert_eq!(world.ask().types(), ["amd64-2"]);
}

#[test]
fn pod_larger_than_any_type_is_unschedulable() {
    let mut world = World::new();
    world.pod("p", json!({"cpu": "100"}));
    let answer = world.ask();
    let Unschedulable::Refused(refusals) = &answer.plan.unschedulable[0].reason else { panic!("{}", answer.reason()) };
    let Refusal::InstanceTypes(types) = &refusals[0].reason else { panic!("{}", answer.reason()) };
    assert_eq!(types.missed, CriteriaMissed::Resources);
    let verdicts = judge_types(world.karpenter, &world.types, &types.requirements, &types.requests);
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict.requirements && verdict.offering && verdict.lacking == Some(ResourceName::CPU))
    );
}

#[test]
fn pod_slots_run_out_like_any_resource() {
    let mut world = World::new();
    for instance_type in &mut world.types {
        instance_type.capacity.set(ResourceName::PODS, 3);
        instance_type.allocatable.set(ResourceName::PODS, 3);
    }
    world.pods("p", 7, json!({}));
    assert_eq!(world.ask().sizes(), [3, 3, 1]);
}

#[test]
fn what_a_pod_requests_follows_kubernetes_arithmetic() {
    let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
    let app = |amount: &str| json!([{"name": "c", "resources": cpu(amount)}]);
    let init = |amount: &str| json!({"name": "i", "resources": cpu(amount)});
    let sidecar = |amount: &str| json!({"name": "s", "restartPolicy": "Always", "resources": cpu(amount)});
    let cases: [(Value, &str); 8] = [
        (json!({"containers": app("1"), "initContainers": [init("3")]}), "amd64-4"),
        (json!({"containers": app("3"), "initContainers": [init("1")]}), "amd64-4"),
        (json!({"containers": app("1"), "initContainers": [init("1"), sidecar("2")]}), "amd64-4"),
        (json!({"containers": app("1"), "initContainers": [sidecar("2"), init("3")]}), "amd64-8"),
        (json!({"containers": app("1"), "initContainers": [init("3"), sidecar("2"), init("1")]}), "amd64-4"),
        (json!({"containers": app("1"), "overhead": {"cpu": "1"}}), "amd64-4"),
        (json!({"containers": app("1"), "resources": {"requests": {"cpu": "5"}}}), "amd64-8"),
        (json!({"containers": app("1"), "initContainers": [init("100")]}), ""),
    ];
    for (spec, cheapest) in cases {
        let mut world = World::new();
        world.pod("p", spec.clone());
        assert_eq!(world.ask().types().first().copied().unwrap_or_default(), cheapest, "{spec}");
    }
}

#[test]
fn every_fitting_type_stays_whatever_it_costs() {
    let mut world = only(&[("dear", 2, 8), ("fair", 4, 16), ("cheap", 16, 64)]);
    for (instance_type, price) in world.types.iter_mut().zip([9, 5, 1]) {
        for offering in &mut instance_type.offerings {
            offering.price = nodecast_model::domain::HourlyRate::from_nanos(price);
        }
    }
    world.pod("p", json!({"cpu": "1"}));
    let plan = world.plan();
    let names: Vec<&str> =
        plan.claims[0].instance_types.iter().map(|instance_type| instance_type.name.as_str()).collect();
    assert_eq!(names, ["cheap", "fair", "dear"]);
}

#[test]
fn incompatible_resources_need_two_nodes() {
    let mut world = only(&[("a", 4, 16), ("b", 4, 16)]);
    for (instance_type, name) in world.types.iter_mut().zip(["gpu/a", "gpu/b"]) {
        let name = ResourceName(Symbol::new(name));
        instance_type.capacity.set(name, 1);
        instance_type.allocatable.set(name, 1);
    }
    world.pod("both", json!({"requests": {"gpu/a": "1", "gpu/b": "1"}}));
    world.pod("a", json!({"requests": {"gpu/a": "1"}})).pod("b", json!({"requests": {"gpu/b": "1"}}));
    let answer = world.ask();
    assert_eq!((answer.place("both"), answer.types()), ("-".to_owned(), vec!["a", "b"]));
}

#[test]
fn pods_with_different_selectors_get_separate_nodes() {
    for (key, values) in [
        ("kubernetes.io/arch", ["amd64", "arm64"]),
        ("topology.kubernetes.io/zone", ["zone-1", "zone-2"]),
        ("node.kubernetes.io/instance-type", ["amd64-2", "arm64-4"]),
        ("karpenter.sh/capacity-type", ["spot", "on-demand"]),
    ] {
        let mut world = World::new();
        for value in values {
            world.pod(value, json!({"nodeSelector": {key: value}}));
        }
        let answer = world.ask();
        assert_eq!(answer.sizes(), [1, 1], "{key}");
        assert_eq!(answer.requires(0, key), format!("{key} In [{}]", values[0]));
    }
}

#[test]
fn pools_without_types_give_same_reason() {
    let mut world = World::without_pools();
    let nowhere = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}]);
    world.pool("default", json!({"requirements": nowhere})).pods("p", 3, json!({}));
    let plan = world.plan();
    assert_eq!(plan.dropped_pools.len(), 1);
    assert!(plan.unschedulable.iter().all(|plan| plan.reason == Unschedulable::PoolsFilteredEverything));
    assert_eq!(plan.unschedulable.len(), 3);
}

#[test]
fn pods_with_resource_claims_are_rejected() {
    let mut world = World::new();
    world.pod("claims", json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})).pod("p", json!({}));
    let answer = world.ask();
    assert_eq!((answer.place("claims"), answer.place("p")), ("-".to_owned(), "new-0".to_owned()));
    assert_eq!(answer.plan.unschedulable[0].reason, Unschedulable::ResourceClaims);
}

#[test]
fn new_node_requests_include_daemons_and_pods() {
    let mut world = World::new();
    world.daemon(json!({"cpu": "100m", "memory": "1Gi"})).pods("p", 2, json!({"cpu": "1", "memory": "1Gi"}));
    let plan = world.plan();
    let expected = Resources::cpu_memory(2_100, 3 * GI).with(ResourceName::PODS, 3);
    assert_eq!(plan.claims[0].requests, expected);
    assert_eq!(plan.claims[0].daemon_requests, Resources::cpu_memory(100, GI).with(ResourceName::PODS, 1));
}
