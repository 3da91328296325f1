//! What plans cost, and what they could not cost less than.

use std::path::Path;

use nodecast::domain::labels::with_namespace_name;
use nodecast::domain::{Labels, Symbol};
use nodecast::policy::bin_packing::Effort;
use nodecast::policy::packing::{Packer, PackingPlan, TieBreak, lower_bound, pack};
use proptest::prelude::{prop, proptest};
use proptest::test_runner::Config;
use serde_json::json;

use super::properties::{check, workload, world};
use super::world::{World, placed};
use agreement::karpenter_case::{Case, Catalogs};
use agreement::tally::read_json;

/// What the nodes of a plan cost in an hour, each at its cheapest type; in nano-units.
fn cost(plan: &PackingPlan) -> i64 {
    plan.claims.iter().map(|claim| claim.instance_types[0].price.map_or(0, |price| price.as_nanos())).sum()
}

/// The recorded cases of Karpenter.
fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/karpenter/cases.json.gz");
    let file = read_json(&path).unwrap();
    let mut catalogs = Catalogs::new(None);
    let cases = file["cases"].as_array().unwrap().iter();
    cases
        .map(|case| Case::read(case, catalogs.find(&path, case["catalog"].as_str().unwrap()).unwrap()).unwrap())
        .collect()
}

#[test]
fn no_plan_of_a_recorded_case_costs_less_than_its_bound() {
    let mut bounded = 0;
    for case in cases() {
        case.with(|setup, situation| {
            let plan = pack(setup, situation);
            let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
            let bound = lower_bound(&setup, situation.nodes, situation.pods, &placed(&plan), &mut effort);
            let (bound, cost) = (bound.per_hour.as_nanos(), cost(&plan));
            assert!(bound <= cost, "{}: bound {bound}, cost {cost}", case.name);
            bounded += usize::from(bound > 0);
        });
    }
    assert!(bounded > 60, "only {bounded} cases have a bound above zero");
}

#[test]
fn the_cost_aware_packer_is_never_dearer_in_a_recorded_case_and_places_as_many_pods() {
    let mut cheaper = 0;
    for case in cases() {
        case.with(|setup, situation| {
            let usual = pack(setup, situation);
            let mut effort = Effort { steps: 2_000_000, go_on: &mut || true };
            let cheap = Packer::new(setup).pack_cost_aware(situation, &mut effort);
            assert!(cost(&cheap) <= cost(&usual), "{}: {} and {}", case.name, cost(&cheap), cost(&usual));
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
            cheaper += usize::from(cost(&cheap) < cost(&usual));
        });
    }
    assert!(cheaper > 30, "only {cheaper} cases became cheaper");
}

#[test]
fn on_large_inputs_the_cost_aware_packer_comes_within_ten_percent_of_the_bound() {
    for name in ["plain-5k-l", "plain-20k-l"] {
        let path = format!("tests/cases/karpenter-large/{name}.json.gz");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let file = read_json(&path).unwrap();
        let mut catalogs = Catalogs::new(None);
        let case = Case::read(&file, catalogs.find(&path, file["catalog"].as_str().unwrap()).unwrap()).unwrap();
        case.with(|setup, situation| {
            let usual = cost(&pack(setup, situation));
            let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
            let plan = Packer::new(setup).pack_cost_aware(situation, &mut effort);
            let mut effort = Effort { steps: Effort::THOROUGH, go_on: &mut || true };
            let bound = lower_bound(&setup, situation.nodes, situation.pods, &placed(&plan), &mut effort);
            let (bound, cost) = (bound.per_hour.as_nanos(), cost(&plan));
            let above = |cost: i64| (cost - bound) as f64 / bound as f64 * 100.0;
            let shown = format!("{name}: {:.1} % above the bound, Karpenter {:.1} %", above(cost), above(usual));
            assert!(plan.unschedulable.is_empty() && bound <= cost && cost < usual, "{shown}");
            assert!(above(cost) < 10.0 && above(usual) > 30.0, "{shown}");
        });
    }
}

#[test]
fn pods_that_repel_each_other_cost_a_node_each() {
    let own = json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}});
    for namespaces in [None, Some(json!({})), Some(own)] {
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
        assert_eq!(world.bound(&plan).per_hour.as_nanos(), cost(&plan), "{namespaces:?}: {optimum}");
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

proptest! {
    #![proptest_config(Config { cases: 64, ..Config::default() })]

    #[test]
    fn no_plan_of_a_random_cluster_costs_less_than_its_bound(
        workloads in prop::collection::vec(workload(), 1..9),
        nodes in 0..4_usize,
        limit in 0..64_i64,
    ) {
        let world = world(&workloads, nodes, limit, TieBreak::SmallestName);
        let plan = world.plan();
        let (bound, cost) = (world.bound(&plan).per_hour.as_nanos(), cost(&plan));
        assert!(bound <= cost, "bound {bound}, cost {cost}");
    }

    #[test]
    fn the_cost_aware_packer_keeps_every_rule_and_is_never_dearer(
        workloads in prop::collection::vec(workload(), 1..9),
        nodes in 0..4_usize,
        limit in 0..64_i64,
    ) {
        let world = world(&workloads, nodes, limit, TieBreak::SmallestName);
        let (usual, cheap) = (world.plan(), world.cheap_plan());
        check(&world, &cheap);
        assert!(cost(&cheap) <= cost(&usual));
        assert!(cheap.unschedulable.len() <= usual.unschedulable.len());
        assert_eq!(cheap, world.cheap_plan(), "the same question has the same answer");
    }
}
