//! Spot replaced by Spot (S), and several nodes at once (M).

use nodecast::domain::well_known;
use nodecast_karpenter::disruption::{Decision, Memory, Method, NoOp};
use serde_json::json;

use super::lab::{Lab, Pod, demanding_pool, plain};

pub const ROWS: &[(&str, &str)] = &[
    ("S1", "spot_to_spot_needs_gate_and_fifteen_types"),
    ("S2", "spot_to_spot_needs_gate_and_fifteen_types"),
    ("S3", "spot_to_spot_needs_gate_and_fifteen_types"),
    ("S4", "fifteen_cheapest_types_are_sent"),
    ("S5", "fifteen_cheapest_types_are_sent"),
    ("S6", "min_values_raise_number_of_sent_types"),
    ("S7", "several_spot_nodes_become_one_without_fifteen_types"),
    ("M1", "three_underused_nodes_become_one"),
    ("M2", "one_of_two_equal_nodes_is_deleted"),
    ("M3", "filter_violating_min_values_invalidates_command"),
    ("M6", "timed_out_search_takes_best_prefix"),
    ("M7", "multi_node_consolidation_is_limited_to_101_nodes"),
    ("M8", "search_stops_at_first_invalid_prefix"),
];

/// A Spot node of the `own`-th of `types` types, the cheapest first.
fn spot_ladder(types: usize, number: usize) -> Lab {
    let mut lab = Lab::ladder(types);
    lab.spot_to_spot = true;
    lab.spot("own", &format!("t-{number:02}"), vec![plain("web", "1")]);
    lab
}

#[test]
fn spot_to_spot_needs_gate_and_fifteen_types() {
    let mut lab = spot_ladder(20, 20);
    lab.spot_to_spot = false;
    assert_eq!(lab.evaluation(&["own"]).decision, Decision::NoOp(NoOp::SpotToSpotOff));
    for (key, cheaper) in [(10, 9), (15, 14)] {
        let decision = spot_ladder(20, key).evaluation(&["own"]).decision;
        assert_eq!(decision, Decision::NoOp(NoOp::FewSpotTypes(cheaper)));
    }
    assert!(matches!(spot_ladder(20, 16).evaluation(&["own"]).decision, Decision::Replace(_)));
}

/// The names of the cheapest types of the ladder, as a decision.
fn cheapest(count: usize) -> String {
    (1..=count).map(|number| format!(" t-{number:02}")).fold("replace:".to_owned(), |all, text| all + &text)
}

#[test]
fn fifteen_cheapest_types_are_sent() {
    let mut lab = spot_ladder(20, 20);
    lab.types.reverse();
    assert_eq!(lab.decision(&["own"]), cheapest(15));
    lab.types.reverse();
    assert_eq!(lab.decision(&["own"]), cheapest(15));
    assert_eq!(demanding(20, 20, 10).decision(&["own"]), cheapest(15));
}

/// The same under a pool that wants so many different types.
fn demanding(types: usize, number: usize, least: usize) -> Lab {
    let mut lab = spot_ladder(types, number);
    let wanted = json!([{"key": well_known::INSTANCE_TYPE.as_str(), "operator": "Exists", "minValues": least}]);
    lab.pools[0].0 = demanding_pool("default", wanted);
    lab
}

#[test]
fn min_values_raise_number_of_sent_types() {
    assert_eq!(demanding(18, 18, 16).decision(&["own"]), cheapest(16));
    assert_eq!(demanding(18, 18, 18).decision(&["own"]), "nothing");
}

#[test]
fn several_spot_nodes_become_one_without_fifteen_types() {
    let mut lab = Lab::new();
    for name in ["a", "b"] {
        lab.spot(name, "m-4", vec![plain("web", "500m")]);
    }
    assert_eq!(lab.told(Method::MultiNode), "nothing");
    lab.spot_to_spot = true;
    assert_eq!(lab.told(Method::MultiNode), "a b by m-2");
    lab.spot("c", "m-4", vec![plain("web", "500m")]);
    assert_eq!(lab.told(Method::MultiNode), "a b c by m-2");
}

#[test]
fn three_underused_nodes_become_one() {
    for (bought, gate) in [(["on-demand"; 3], false), (["spot"; 3], true), (["spot", "on-demand", "spot"], false)] {
        let mut lab = Lab::new();
        lab.spot_to_spot = gate;
        for (name, bought) in ["a", "b", "c"].iter().zip(bought) {
            lab.node_of("default", name, "m-16", bought, vec![plain("web", "500m")]);
        }
        let found = lab.told(Method::MultiNode);
        assert!(found.starts_with("a b c by m-2 m-4 m-8"), "{bought:?}: {found}");
        assert_eq!(lab.command(Method::MultiNode).replacements.len(), 1);
    }
}

#[test]
fn one_of_two_equal_nodes_is_deleted() {
    let mut lab = Lab::on_demand();
    lab.node("two-pods", "m-2", vec![plain("a", "500m"), plain("b", "500m")]);
    lab.node("one-pod", "m-2", vec![plain("c", "500m")]);
    assert_eq!(lab.told(Method::MultiNode), "nothing");
    assert_eq!(lab.told(Method::SingleNode), "one-pod");
}

#[test]
fn filter_violating_min_values_invalidates_command() {
    for (least, expected) in [(2, "a b by m-2 m-4"), (3, "nothing")] {
        let mut lab = Lab::new();
        for name in ["a", "b"] {
            lab.node(name, "m-8", vec![plain("web", "500m")]);
        }
        let wanted = json!([{"key": well_known::INSTANCE_TYPE.as_str(), "operator": "Exists", "minValues": least},
            {"key": well_known::CAPACITY_TYPE.as_str(), "operator": "In", "values": ["on-demand"]}]);
        lab.pools[0].0 = demanding_pool("default", wanted);
        assert_eq!(lab.told(Method::MultiNode), expected, "{least} values");
    }
}

/// So many nodes whose pods all fit on a node of somebody else's.
fn crowd(count: usize) -> Lab {
    let mut lab = Lab::new();
    lab.unmanaged("room-1", "m-16");
    lab.unmanaged("room-2", "m-16");
    for number in 0..count {
        lab.node(&format!("node-{number:03}"), "m-2", vec![plain("web", "10m")]);
    }
    lab
}

fn nodes(lab: &Lab, evaluations: Option<usize>) -> usize {
    let found = lab.found_within(Method::MultiNode, evaluations, &mut Memory::default());
    match found {
        nodecast_karpenter::disruption::MethodResult::Command(command) => command.nodes.len(),
        _ => 0,
    }
}

#[test]
fn timed_out_search_takes_best_prefix() {
    let lab = crowd(9);
    let found: Vec<usize> = (0..=4).map(|evaluations| nodes(&lab, Some(evaluations))).collect();
    assert_eq!(found, [0, 5, 7, 8, 9]);
}

#[test]
fn multi_node_consolidation_is_limited_to_101_nodes() {
    for (candidates, expected) in [(99, 99), (100, 100), (101, 101), (150, 101)] {
        assert_eq!(nodes(&crowd(candidates), None), expected, "of {candidates}");
    }
}

#[test]
fn search_stops_at_first_invalid_prefix() {
    // Two such nodes would need an m-4, which costs as much as both; three or four would be cheaper as one m-4.
    let lab = |nodes: usize| {
        let mut lab = Lab::on_demand();
        for number in 0..nodes {
            let pods: Vec<Pod> = vec![plain("web", "960m")];
            lab.node(&format!("node-{number}"), "m-2", pods);
        }
        lab
    };
    assert_eq!(lab(3).decision(&["node-0", "node-1"]), "nothing");
    assert_eq!(lab(3).decision(&["node-0", "node-1", "node-2"]), "replace: m-4");
    // Of three the search asks about the first two alone; of four about the first three, then about all.
    assert_eq!(lab(3).told(Method::MultiNode), "nothing");
    assert_eq!(lab(4).told(Method::MultiNode), "node-0 node-1 node-2 node-3 by m-4");
}
