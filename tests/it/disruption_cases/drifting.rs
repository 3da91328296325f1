//! What makes a claim drift, and which drifted node goes first (I).

use nodecast::policy::disruption::Method;
use nodecast::world::record::EventKind;
use serde_json::{Value, json};

use super::lab::{Lab, ago, plain as lab_plain, pod as lab_pod};
use super::story::{Story, Told, of_types, plain};

pub const ROWS: &[(&str, &str)] = &[
    ("I5", "a_drifted_node_whose_pods_have_no_other_place_is_passed_over"),
    ("I6", "commands_that_run_use_up_the_budget_of_drift"),
    ("I11", "every_field_of_the_template_makes_nodes_drift_and_no_other_field_does"),
    ("I13", "requirements_make_nodes_drift_only_where_they_exclude_them"),
    ("I14", "the_template_comes_before_the_requirements"),
    ("I17", "a_claim_drifts_only_once_it_has_its_instance"),
];

#[test]
fn a_drifted_node_whose_pods_have_no_other_place_is_passed_over() {
    let mut lab = Lab::on_demand();
    let bound = lab_pod("bound", json!({"cpu": "1", "nodeSelector": {"is": "here"}}));
    lab.node("first", "m-4", vec![bound]).drifted = Some(ago(100));
    lab.node("second", "m-4", vec![lab_plain("web", "1")]).drifted = Some(ago(50));
    lab.node("third", "m-4", vec![lab_plain("web", "1")]).drifted = Some(ago(10));
    lab.nodes[0].labels.set("is".into(), "here".into());
    assert_eq!(lab.order(Method::Drift), ["first", "second", "third"]);
    assert!(lab.told(Method::Drift).starts_with("second"), "{}", lab.told(Method::Drift));
}

#[test]
fn commands_that_run_use_up_the_budget_of_drift() {
    let told = Story::calm()
        .pool(json!({"template": {"spec": {"requirements": of_types(&["s-2"])}},
            "disruption": {"budgets": [{"nodes": "3"}]}}))
        .latency("readySeconds", 100.4)
        .run(0.25, "web", 5, plain("1500m"))
        .drift_all(130.25)
        .until(600.0);
    let commands = &told.record.commands;
    assert_eq!(commands.len(), 5);
    for (number, own) in commands.iter().enumerate() {
        let under_way = commands[..number].iter().filter(|other| other.succeeded > own.started).count();
        assert!(under_way < 3, "{:?}", told.started());
    }
    let first_end = commands.iter().filter_map(|own| own.succeeded).min();
    assert_eq!(commands.iter().filter(|own| own.started < first_end).count(), 3, "{:?}", told.started());
}

/// A node, and what a change of its pool makes of it.
fn changed(spec: Value) -> Told {
    Story::calm()
        .pool(json!({"disruption": {"budgets": [{"nodes": "0"}]}}))
        .run(0.25, "web", 1, plain("1"))
        .change_pool(60.25, spec)
        .until(90.0)
}

#[test]
fn every_field_of_the_template_makes_nodes_drift_and_no_other_field_does() {
    let template = |own: Value| json!({"template": own});
    let spec = |own: Value| template(json!({"spec": own}));
    let taint = json!([{"key": "new", "effect": "NoSchedule"}]);
    for own in [
        template(json!({"metadata": {"annotations": {"new": "true"}}})),
        template(json!({"metadata": {"labels": {"new": "true"}}})),
        spec(json!({"taints": taint})),
        spec(json!({"startupTaints": taint})),
        spec(json!({"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "other"}})),
        spec(json!({"expireAfter": "720h"})),
        spec(json!({"terminationGracePeriod": "1h"})),
    ] {
        let told = changed(own.clone());
        assert_eq!(told.times(EventKind::NodeDrifted, 1), ["60.25"], "{own}");
        assert_eq!(told.said(EventKind::NodeDrifted), Some("NodePoolDrifted"));
    }
    for own in [json!({"weight": 7}), json!({"limits": {"cpu": "100"}}), json!({"disruption": {"budgets": []}})] {
        assert_eq!(changed(own.clone()).said(EventKind::NodeDrifted), None, "{own}");
    }
}

#[test]
fn requirements_make_nodes_drift_only_where_they_exclude_them() {
    let types = |types: &[&str]| json!({"template": {"spec": {"requirements": of_types(types)}}});
    for (now, drifted) in [
        (types(&["s-2", "s-4", "s-8", "s-16"]), None),
        (types(&["s-2"]), None),
        (types(&["s-4", "s-8"]), Some("RequirementsDrifted")),
    ] {
        assert_eq!(changed(now.clone()).said(EventKind::NodeDrifted), drifted, "{now}");
    }
}

#[test]
fn the_template_comes_before_the_requirements() {
    let both = json!({"template": {"metadata": {"labels": {"new": "true"}},
        "spec": {"requirements": of_types(&["s-8"])}}});
    assert_eq!(changed(both).said(EventKind::NodeDrifted), Some("NodePoolDrifted"));
}

#[test]
fn a_claim_drifts_only_once_it_has_its_instance() {
    let told =
        Story::calm().latency("launchSeconds", 30.2).run(0.25, "web", 1, plain("1")).drift_all(10.25).until(60.0);
    assert_eq!(told.times(EventKind::NodeDrifted, 1), ["31.50"]);
    assert_eq!(super::story::maybe(told.node(1).launched), "31.50");
}
