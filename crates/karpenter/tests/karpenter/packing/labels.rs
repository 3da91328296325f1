//! Requirements and labels: what a pod may ask for, and what the node then looks like.

use std::sync::Arc;

use nodecast_karpenter::packing::{LeftOut, takes_on};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::{Symbol, well_known};
use serde_json::{Value, json};

use super::world::{World, pod_spec};

pub const ROWS: &[u16] = &[13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 30, 31];

fn required(key: &str, operator: &str, values: &[&str]) -> Value {
    let expression = json!({"key": key, "operator": operator, "values": values});
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})
}

fn preferred(key: &str, operator: &str, values: &[&str]) -> Value {
    let expression = json!({"key": key, "operator": operator, "values": values});
    json!({"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "preference": {"matchExpressions": [expression]}}]})
}

/// A pool that requires `team In [a, b]`.
fn with_team() -> World {
    let mut world = World::without_pools();
    world.pool("default", json!({"requirements": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}));
    world
}

#[test]
fn undefined_label_can_only_be_excluded() {
    for (operator, values, placed) in
        [("In", &["x"][..], false), ("Exists", &[], false), ("NotIn", &["x"], true), ("DoesNotExist", &[], true)]
    {
        let mut world = World::new();
        world.pod("p", json!({"affinity": required("nosuch", operator, values)}));
        let answer = world.ask();
        assert_eq!(answer.unplaced() == 0, placed, "{operator}");
        if placed {
            assert_eq!(answer.plan.claims[0].labels.get(Symbol::new("nosuch")), None, "{operator}");
        } else {
            assert!(answer.reason().contains("label \"nosuch\" does not have known values"), "{}", answer.reason());
        }
    }
}

#[test]
fn pool_label_is_matched_and_set_on_node() {
    for (operator, values, label) in [
        ("In", &["a"][..], Some("a")),
        ("In", &["c"], None),
        ("NotIn", &["a"], Some("b")),
        ("NotIn", &["a", "b"], None),
        ("Exists", &[], Some("a")),
        ("DoesNotExist", &[], None),
    ] {
        let mut world = with_team();
        world.pod("p", json!({"affinity": required("team", operator, values)}));
        let plan = world.plan();
        let found = plan.claims.first().and_then(|claim| claim.labels.get(Symbol::new("team"))).map(Symbol::as_str);
        assert_eq!(found, label, "{operator} {values:?}");
    }
}

#[test]
fn conflicting_pods_do_not_share_a_node() {
    let mut world = with_team();
    world.pod("p", json!({"nodeSelector": {"team": "a"}})).pod("q", json!({"nodeSelector": {"team": "a"}}));
    world.pod("r", json!({"nodeSelector": {"team": "b"}}));
    assert_eq!(world.ask().sizes(), [2, 1]);
}

#[test]
fn exists_operator_keeps_value_of_other_pod() {
    let mut world = with_team();
    world.pod("p", json!({"cpu": "1", "nodeSelector": {"team": "b"}}));
    world.pod("q", json!({"affinity": required("team", "Exists", &[])}));
    let answer = world.ask();
    assert_eq!((answer.sizes(), answer.requires(0, "team")), (vec![2], "team In [b]".to_owned()));
}

#[test]
fn pod_with_hostname_gets_no_new_node() {
    let mut world = World::new();
    world.node("n", "zone-1", &[]);
    world.pod("new", json!({"nodeSelector": {"kubernetes.io/hostname": "elsewhere"}}));
    world.pod("old", json!({"nodeSelector": {"kubernetes.io/hostname": "n"}}));
    let answer = world.ask();
    assert_eq!((answer.place("new"), answer.place("old")), ("-".to_owned(), "n".to_owned()));
}

#[test]
fn pods_with_restricted_labels_or_fields_are_skipped() {
    let reason = |spec: Value| takes_on(&pod_spec(spec)).err();
    let restricted = |key: &str| Some(LeftOut::RestrictedLabel(Symbol::new(key)));
    for key in ["kubernetes.io/hostname", "karpenter.sh/custom", "sub.karpenter.k8s.aws/x"] {
        assert_eq!(reason(json!({"nodeSelector": {key: "x"}})), restricted(key));
        assert_eq!(reason(json!({"affinity": required(key, "In", &["x"])})), restricted(key));
    }
    for key in ["karpenter.sh/nodepool", "karpenter.sh/provisioner-name"] {
        let excludes = json!({"affinity": required(key, "DoesNotExist", &[])});
        assert_eq!(reason(excludes), Some(LeftOut::NotForKarpenter));
    }
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["n"]});
    let by_field = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchFields": [field]}]}}}});
    assert_eq!(reason(by_field), Some(LeftOut::MatchFields));
    for key in ["team", "node-restriction.kubernetes.io/x", "topology.kubernetes.io/zone", "karpenter.sh/nodepool"] {
        assert_eq!(reason(json!({"nodeSelector": {key: "x"}})), None, "{key}");
    }
}

#[test]
fn kubernetes_domain_labels_can_be_custom_labels() {
    let mut world = World::without_pools();
    world.pool("default", json!({"labels": {"node-role.k8s.io/x": "yes"}}));
    world.pod("p", json!({"nodeSelector": {"node-role.k8s.io/x": "yes"}}));
    assert_eq!(world.ask().sizes(), [1]);
}

#[test]
fn integer_bounds_select_the_types_on_their_side() {
    for (operator, bound, types) in [
        ("Gt", "8", &["16"][..]),
        ("Gte", "8", &["8", "16"]),
        ("Lt", "4", &["2"]),
        ("Lte", "4", &["2", "4"]),
        ("Gt", "16", &[]),
    ] {
        let mut world = World::new();
        world.pod("p", json!({}));
        let key = well_known::INSTANCE_CPU;
        let operator = match operator {
            "Gt" => Operator::Gt,
            "Gte" => Operator::Gte,
            "Lt" => Operator::Lt,
            _ => Operator::Lte,
        };
        world.pools[0].requirements.push(Requirement::new(key, operator, [Symbol::new(bound)]));
        let plan = world.plan();
        let mut found: Vec<i64> = plan
            .claims
            .iter()
            .flat_map(|claim| claim.instance_types.iter())
            .map(|instance_type| world.types[instance_type.index as usize].capacity.cpu_milli() / 1_000)
            .collect();
        found.dedup();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, types, "{operator} {bound}");
    }
}

#[test]
fn contradicting_preference_is_dropped_but_requirement_is_not() {
    let zone = "topology.kubernetes.io/zone";
    for (spec, placed) in [
        (
            json!({"nodeSelector": {zone: "zone-1"}, "affinity": {"nodeAffinity": preferred(zone, "In", &["zone-2"])}}),
            true,
        ),
        (
            json!({"nodeSelector": {zone: "zone-1"}, "affinity": {"nodeAffinity": preferred(zone, "NotIn", &["zone-1"])}}),
            true,
        ),
        (json!({"nodeSelector": {zone: "zone-1"}, "affinity": required(zone, "In", &["zone-2"])}), false),
    ] {
        let mut world = World::new();
        world.pod("p", spec);
        let answer = world.ask();
        assert_eq!(answer.unplaced() == 0, placed);
        if placed {
            assert_eq!(answer.requires(0, zone), format!("{zone} In [zone-1]"));
        }
    }
}

#[test]
fn selector_requirement_and_preference_narrow_the_node_together() {
    let mut world = World::new();
    let mut affinity = required("topology.kubernetes.io/zone", "In", &["zone-1", "zone-2"]);
    let types = preferred("node.kubernetes.io/instance-type", "In", &["arm64-8"]);
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
        types["preferredDuringSchedulingIgnoredDuringExecution"].clone();
    world.pod("p", json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}, "affinity": affinity}));
    let answer = world.ask();
    assert_eq!(answer.types(), ["arm64-8"]);
    assert_eq!(answer.requires(0, "kubernetes.io/arch"), "kubernetes.io/arch In [arm64]");
    let zones = "topology.kubernetes.io/zone In [zone-1 zone-2]";
    assert_eq!(answer.requires(0, "topology.kubernetes.io/zone"), zones);
}

#[test]
fn partially_defined_label_selects_or_excludes_types() {
    let gpu = "karpenter.k8s.aws/instance-gpu-name";
    for (operator, values, first) in [("In", &["t4"][..], "amd64-16"), ("DoesNotExist", &[], "amd64-2")] {
        let mut world = World::new();
        let instance_type =
            world.types.iter_mut().find(|instance_type| instance_type.name.as_str() == "amd64-16").unwrap();
        let labels = Arc::make_mut(&mut instance_type.requirements);
        labels.remove(well_known::INSTANCE_GPU_NAME);
        labels.add(Requirement::equals(well_known::INSTANCE_GPU_NAME, Symbol::new("t4")));
        world.pod("p", json!({"affinity": required(gpu, operator, values)}));
        assert_eq!(world.ask().types(), [first], "{operator}");
    }
}

#[test]
fn well_known_label_may_be_undefined_on_pool() {
    let key = "node.kubernetes.io/windows-build";
    let mut world = World::new();
    world.node("n", "zone-1", &[]);
    world.pod("p", json!({"nodeSelector": {"karpenter.k8s.aws/instance-cpu": "8"}}));
    assert_eq!(world.ask().place("p"), "new-0");
    world.pod("q", json!({"nodeSelector": {key: "10"}}));
    assert_eq!(world.ask().place("q"), "new-0", "no type speaks against a label that none states");
}

#[test]
fn misspelt_label_gets_suggestion() {
    let mut world = World::without_pools();
    world.pool("default", json!({"labels": {"company/department": "x"}}));
    world.pod("p", json!({"nodeSelector": {"company/departmnet": "x"}}));
    let answer = world.ask();
    let hint = format!("{:?}", answer.plan.unschedulable[0].reason);
    assert!(hint.contains("company/department"), "{hint}");
}
