//! What plans cost, and what they could not cost less than.

use std::sync::Arc;

use std::path::Path;

use nodecast_karpenter::bin_packing::Effort;
use nodecast_karpenter::packing::{Packer, PackingPlan, PackingSetup, TieBreak, lower_bound, pack};
use nodecast_model::domain::labels::with_namespace_name;
use nodecast_model::domain::requirements::Requirement;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, Labels, Resources, Symbol};
use proptest::prelude::{prop, proptest};
use proptest::test_runner::Config;
use serde_json::json;

use super::properties::{check, workload, world};
use super::world::{World, instance_type, placed};
use agreement::karpenter_case::{Case, Catalogs};
use agreement::tally::read_json;

/// Price of the launches of a plan for an hour in nano-units.
fn cost(setup: &PackingSetup<'_>, plan: &PackingPlan) -> i64 {
    plan.launch_cost(setup).unwrap().as_nanos()
}

/// The same for a plan of a world.
fn cost_in(world: &World, plan: &PackingPlan) -> i64 {
    world.with_setup(|setup| cost(&setup, plan))
}

/// The recorded cases of Karpenter.
fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/karpenter/cases.json.gz");
    let file = read_json(&path).unwrap();
    let mut catalogs = Catalogs::new(None);
    let cases = file["cases"].as_array().unwrap().iter();
    cases
        .map(|case| Case::read(case, catalogs.find(&path, case["catalog"].as_str().unwrap()).unwrap()).unwrap())
        .collect()
}

#[test]
fn recorded_plans_cost_at_least_their_bound() {
    let mut bounded = 0;
    for case in cases() {
        case.with(|setup, situation| {
            let plan = pack(setup, situation);
            let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
            let bound = lower_bound(&setup, situation.nodes, situation.pods, &placed(&plan), &mut effort);
            let (bound, cost) = (bound.per_hour.as_nanos(), cost(&setup, &plan));
            assert!(bound <= cost, "{}: bound {bound}, cost {cost}", case.name);
            bounded += usize::from(bound > 0);
        });
    }
    assert!(bounded > 60, "only {bounded} cases have a bound above zero");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn cost_aware_packer_never_raises_recorded_cost() {
    let mut cheaper = 0;
    for case in cases() {
        case.with(|setup, situation| {
            let usual = pack(setup, situation);
            let mut effort = Effort { steps: 2_000_000, go_on: &mut || true };
            let cheap = Packer::new(setup).pack_cost_aware(situation, &mut effort);
            let (less, more) = (cost(&setup, &cheap), cost(&setup, &usual));
            assert!(less <= more, "{}: {less} and {more}", case.name);
            assert!(cheap.unschedulable.len() <= usual.unschedulable.len(), "{}", case.name);
            let mut placed = placed(&cheap);
            placed.sort_unstable();
            let all = placed.len();
            placed.dedup();
            assert_eq!(placed.len(), all, "{}: a pod is in two places", case.name);
            assert_eq!(all + cheap.unschedulable.len(), situation.pods.len(), "{}", case.name);
            for claim in &cheap.claims {
                let mut requests = claim.daemon_requests.clone();
                for &pod in &claim.pods {
                    requests.add(&situation.pods[pod].spec.requests());
                }
                for kind in claim.instance_types.iter() {
                    assert!(requests.fits(&case.types[kind.index as usize].allocatable), "{}", case.name);
                }
            }
            cheaper += usize::from(less < more);
        });
    }
    assert!(cheaper > 30, "only {cheaper} cases became cheaper");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn cost_aware_packer_nears_bound_on_large_inputs() {
    for name in ["plain-5k-l", "plain-20k-l"] {
        let path = format!("../../tests/cases/karpenter-large/{name}.json.gz");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let file = read_json(&path).unwrap();
        let mut catalogs = Catalogs::new(None);
        let case = Case::read(&file, catalogs.find(&path, file["catalog"].as_str().unwrap()).unwrap()).unwrap();
        case.with(|setup, situation| {
            let usual = cost(&setup, &pack(setup, situation));
            let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
            let plan = Packer::new(setup).pack_cost_aware(situation, &mut effort);
            let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
            let bound = lower_bound(&setup, situation.nodes, situation.pods, &placed(&plan), &mut effort);
            let (bound, cost) = (bound.per_hour.as_nanos(), cost(&setup, &plan));
            let above = |cost: i64| (cost - bound) as f64 / bound as f64 * 100.0;
            let shown = format!("{name}: {:.1} % above the bound, Karpenter {:.1} %", above(cost), above(usual));
            assert!(plan.unschedulable.is_empty() && bound <= cost && cost < usual, "{shown}");
            assert!(above(cost) < 10.0 && above(usual) > 30.0, "{shown}");
        });
    }
}

#[test]
fn mutually_repelling_pods_cost_one_node_each() {
    let item = json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}});
    for namespaces in [None, Some(json!({})), Some(item)] {
        let mut world = World::new();
        let default = Symbol::new("default");
        world.namespaces = vec![(default, with_namespace_name(Labels::new(), default))];
        let selector = json!({"matchLabels": {"app": "db"}});
        let mut term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
        if let Some(selector) = &namespaces {
            term["namespaceSelector"] = selector.clone();
        }
        world.pods(
            "db",
            5,
            json!({"cpu": "100m", "labels": {"app": "db"},
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}),
        );
        let plan = world.plan();
        assert_eq!(plan.claims.len(), 5, "{namespaces:?}");
        let optimum = "five of the cheapest type is the optimum";
        assert_eq!(world.bound(&plan).per_hour.as_nanos(), cost_in(&world, &plan), "{namespaces:?}: {optimum}");
    }
}

#[test]
fn room_on_existing_nodes_costs_nothing() {
    let mut world = World::new();
    world.node("node-0", super::world::ZONES[0], &[]);
    world.pods("web", 3, json!({"cpu": "500m"}));
    let plan = world.plan();
    assert_eq!((plan.claims.len(), world.bound(&plan).per_hour.as_nanos()), (0, 0));
}

/// A world with 20 pods of 3 cores in which a type of 64 cores named `large` costs a twentieth of another that is as large.
fn world_with_bargain(large: &str) -> World {
    let mut world = World::new();
    let mut bargain = instance_type(large, 64, 256, "amd64");
    for offering in &mut bargain.offerings {
        offering.price = HourlyRate::from_nanos(offering.price.as_nanos() / 20);
    }
    world.types.extend([bargain, instance_type("amd64-64", 64, 256, "amd64")]);
    world.pods("web", 20, json!({"cpu": "3", "nodeSelector": {"kubernetes.io/arch": "amd64"}}));
    world
}

#[test]
fn unrequested_bare_metal_type_makes_no_bin() {
    let without = {
        let mut world = world_with_bargain("big.metal");
        world.types.retain(|kind| kind.name.as_str() != "big.metal");
        world
    };
    let (plan, bound) = (without.cheap_plan(), without.bound(&without.plan()).per_hour);
    let world = world_with_bargain("big.metal");
    assert_eq!(cost_in(&world, &world.cheap_plan()), cost_in(&without, &plan));
    assert_eq!(world.bound(&world.plan()).per_hour, bound);
    // The same type is a bargain where it is launched: not as bare metal, or where requirements leave nothing else.
    let plain = world_with_bargain("big.16xlarge");
    assert!(cost_in(&plain, &plain.cheap_plan()) * 5 < cost_in(&without, &plan));
    let mut only = world_with_bargain("big.metal");
    only.pools.clear();
    only.pool(
        "metal",
        json!({"requirements": [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["big.metal"]}]}),
    );
    assert_eq!(cost_in(&only, &only.cheap_plan()), cost_in(&plain, &plain.cheap_plan()));
    assert!(only.bound(&only.plan()).per_hour.as_nanos() * 5 < bound.as_nanos());
}

#[test]
fn bare_metal_with_min_values_is_planned() {
    let mut world = world_with_bargain("big.metal");
    world.pools.clear();
    world.pool(
        "default",
        json!({"requirements": [
        {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]}),
    );
    let plain = world_with_bargain("big.16xlarge");
    assert_eq!(cost_in(&world, &world.cheap_plan()), cost_in(&plain, &plain.cheap_plan()));
}

/// A world of two pools; Karpenter uses the heavier one, whose types cost more.
fn world_of_two_pools() -> World {
    let mut world = World::without_pools();
    for instance_type in world.types.clone() {
        let mut dear = instance_type.clone();
        dear.name = Symbol::new(&format!("dear-{}", instance_type.name));
        let labels = Arc::make_mut(&mut dear.requirements);
        labels.remove(well_known::INSTANCE_TYPE);
        labels.add(Requirement::equals(well_known::INSTANCE_TYPE, dear.name));
        for offering in &mut dear.offerings {
            offering.price = HourlyRate::from_nanos(offering.price.as_nanos() * 3);
        }
        world.types.push(dear);
    }
    let names = |prefix: &str| [2, 4, 8, 16].map(|cpu| format!("{prefix}amd64-{cpu}"));
    let family = |names: [String; 4]| {
        json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}])
    };
    world.pool("preferred", json!({"weight": 10, "requirements": family(names("dear-"))}));
    world.pool("cheap", json!({"requirements": family(names(""))}));
    world.pods("web", 12, json!({"cpu": "1500m"}));
    world
}

#[test]
fn pool_that_can_launch_nothing_changes_nothing() {
    let alone = world_of_two_pools();
    let (plan, bound) = (cost_in(&alone, &alone.cheap_plan()), alone.bound(&alone.plan()).per_hour);
    assert!(plan * 2 < cost_in(&alone, &alone.plan()));
    for limits in [json!({"cpu": "0"}), json!({"cpu": "1"}), json!({"memory": "1Gi"}), json!({"nodes": "0"})] {
        // One pool of the same types whose bins stand before those of the other, and one of every type.
        for requirements in [json!([]), json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}])] {
            let mut world = world_of_two_pools();
            world.pool("unused", json!({"limits": limits, "requirements": requirements}));
            assert_eq!(cost_in(&world, &world.cheap_plan()), plan, "{limits}");
            assert_eq!(world.bound(&world.plan()).per_hour, bound, "{limits}");
        }
    }
}

#[test]
fn pool_near_its_limit_is_used_up_first() {
    let alone = world_of_two_pools();
    let without = cost_in(&alone, &alone.cheap_plan());
    let mut last = without;
    for cores in [2, 8, 16, 40] {
        let mut world = world_of_two_pools();
        world.pools.retain(|pool| pool.name.as_str() != "cheap");
        let types = ["amd64-2", "amd64-4", "amd64-8", "amd64-16"];
        world.pool(
            "cheap",
            json!({"limits": {"cpu": cores.to_string()}, "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}]}),
        );
        let plan = world.cheap_plan();
        let cost = cost_in(&world, &plan);
        let this_claim = plan.claims.iter().filter(|claim| claim.node_pool.as_str() == "cheap");
        let charged: i64 = this_claim
            .map(|claim| {
                let capacity = |at: u32| world.types[at as usize].capacity.cpu_milli();
                claim.instance_types.iter().map(|kind| capacity(kind.index)).max().unwrap_or(0)
            })
            .sum();
        assert!(charged <= cores * 1_000 && charged > 0, "{cores}: {charged}");
        assert!(plan.unschedulable.is_empty() && cost < cost_in(&world, &world.plan()), "{cores}");
        assert!(cores == 2 || cost < last, "{cores}: {cost} after {last}");
        last = cost;
    }
    assert_eq!(last, without, "a limit that leaves enough has no effect");
}

#[test]
fn limits_far_away_take_no_types_from_claims() {
    let mut world = world_of_two_pools();
    let types =
        |world: &World| world.cheap_plan().claims.iter().map(|claim| claim.instance_types.len()).collect::<Vec<_>>();
    let before = types(&world);
    world.pools.iter_mut().for_each(|pool| pool.limits = Resources::cpu_memory(1_000_000_000, 1 << 50));
    assert_eq!(types(&world), before);
    assert!(before.iter().any(|&types| types > 1), "{before:?}");
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases / 4, ..Config::default() })]

    #[test]
    fn random_cluster_plans_cost_at_least_bound(
        workloads in prop::collection::vec(workload(), 1..9),
        nodes in 0..4_usize,
        limit in 0..64_i64,
    ) {
        let world = world(&workloads, nodes, limit, TieBreak::SmallestName);
        let plan = world.plan();
        let (bound, cost) = (world.bound(&plan).per_hour.as_nanos(), cost_in(&world, &plan));
        assert!(bound <= cost, "bound {bound}, cost {cost}");
    }

    #[test]
    fn cost_aware_packer_obeys_constraints_at_lower_cost(
        workloads in prop::collection::vec(workload(), 1..9),
        nodes in 0..4_usize,
        limit in 0..64_i64,
    ) {
        let world = world(&workloads, nodes, limit, TieBreak::SmallestName);
        let (usual, cheap) = (world.plan(), world.cheap_plan());
        check(&world, &cheap);
        assert!(cost_in(&world, &cheap) <= cost_in(&world, &usual));
        assert!(cheap.unschedulable.len() <= usual.unschedulable.len());
        assert_eq!(cheap, world.cheap_plan(), "the same question has the same answer");
    }
}
