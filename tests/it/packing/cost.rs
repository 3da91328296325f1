//! What plans cost, and what they could not cost less than.

use std::path::Path;

use nodecast::policy::bin_packing::Effort;
use nodecast::policy::packing::{PackingPlan, TieBreak, lower_bound, pack};
use proptest::prelude::{prop, proptest};
use proptest::test_runner::Config;
use serde_json::json;

use super::properties::{workload, world};
use super::world::{World, placed};
use crate::agreement::karpenter_case::{Case, Catalogs, read_json};

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
fn pods_that_repel_each_other_cost_a_node_each() {
    let mut world = World::new();
    let selector = json!({"matchLabels": {"app": "db"}});
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
    world.pods(
        "db",
        5,
        json!({"cpu": "100m", "labels": {"app": "db"},
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}),
    );
    let plan = world.plan();
    assert_eq!(plan.claims.len(), 5);
    assert_eq!(world.bound(&plan).per_hour.as_nanos(), cost(&plan), "five of the cheapest type is the optimum");
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
}
