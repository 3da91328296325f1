//! What makes a claim drift, and which drifted node goes first (I).

use nodecast::world::record::EventKind;
use nodecast_karpenter::disruption::{Method, has_lost_its_type};
use serde_json::{Value, json};

use super::lab::{Lab, ago, plain as lab_plain, pod as lab_pod};
use super::story::{Story, StoryOutcome, between, maybe, of_types, plain, time};

pub const ROWS: &[(&str, &str)] = &[
    ("I5", "drifted_node_with_unplaceable_pods_is_skipped"),
    ("I6", "running_commands_use_up_drift_budget"),
    ("I8", "static_pool_replaces_drifted_nodes_one_by_one"),
    ("I9", "static_pool_replacement_respects_node_limit"),
    ("I10", "static_pools_are_looked_after_each_by_itself"),
    ("I11", "only_template_fields_cause_drift"),
    ("I13", "requirements_cause_drift_only_when_excluding_node"),
    ("I14", "the_template_comes_before_the_requirements"),
    ("I15", "withdrawn_type_causes_drift_after_one_hour"),
    ("I16", "reserved_node_may_fall_back_to_on_demand"),
    ("I17", "claim_drifts_only_after_launch"),
];

#[test]
fn drifted_node_with_unplaceable_pods_is_skipped() {
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
fn running_commands_use_up_drift_budget() {
    let told = Story::calm()
        .pool(json!({"template": {"spec": {"requirements": of_types(&["s-2"])}},
            "disruption": {"budgets": [{"nodes": "3"}]}}))
        .latency("readySeconds", 100.4)
        .run(0.25, "web", 5, plain("1500m"))
        .drift_all(130.25)
        .until(600.0);
    let commands = &told.record.commands;
    assert_eq!(commands.len(), 5);
    for (number, command) in commands.iter().enumerate() {
        let under_way = commands[..number].iter().filter(|other| other.succeeded > command.started).count();
        assert!(under_way < 3, "{:?}", told.started());
    }
    let first_end = commands.iter().filter_map(|command| command.succeeded).min();
    assert_eq!(commands.iter().filter(|command| command.started < first_end).count(), 3, "{:?}", told.started());
}

/// A node, and what a change of its pool makes of it.
fn changed(spec: Value) -> StoryOutcome {
    Story::calm()
        .pool(json!({"disruption": {"budgets": [{"nodes": "0"}]}}))
        .run(0.25, "web", 1, plain("1"))
        .change_pool(60.25, spec)
        .until(90.0)
}

#[test]
fn only_template_fields_cause_drift() {
    let template = |value: Value| json!({"template": value});
    let spec = |value: Value| template(json!({"spec": value}));
    let taint = json!([{"key": "new", "effect": "NoSchedule"}]);
    for template in [
        template(json!({"metadata": {"annotations": {"new": "true"}}})),
        template(json!({"metadata": {"labels": {"new": "true"}}})),
        spec(json!({"taints": taint})),
        spec(json!({"startupTaints": taint})),
        spec(json!({"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "other"}})),
        spec(json!({"expireAfter": "720h"})),
        spec(json!({"terminationGracePeriod": "1h"})),
    ] {
        let told = changed(template.clone());
        assert_eq!(told.times(EventKind::NodeDrifted, 1), ["60.25"], "{template}");
        assert_eq!(told.said(EventKind::NodeDrifted), Some("NodePoolDrifted"));
    }
    for item in [json!({"weight": 7}), json!({"limits": {"cpu": "100"}}), json!({"disruption": {"budgets": []}})] {
        assert_eq!(changed(item.clone()).said(EventKind::NodeDrifted), None, "{item}");
    }
}

#[test]
fn requirements_cause_drift_only_when_excluding_node() {
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
fn claim_drifts_only_after_launch() {
    let told =
        Story::calm().latency("launchSeconds", 30.2).run(0.25, "web", 1, plain("1")).drift_all(10.25).until(60.0);
    assert_eq!(told.times(EventKind::NodeDrifted, 1), ["31.50"]);
    assert_eq!(maybe(told.node(1).launched), "31.50");
}

/// A pool with so many nodes, fixed.
fn fixed(nodes: u32, limits: Value) -> Story {
    Story::new().option("staticCapacity", json!(true)).pool(json!({"replicas": nodes, "limits": limits}))
}

/// How many claims are neither gone nor on their way out.
fn active(told: &StoryOutcome) -> usize {
    told.record.nodes.iter().filter(|node| node.deletion_requested.is_none()).count()
}

#[test]
fn static_pool_replaces_drifted_nodes_one_by_one() {
    let told = fixed(2, json!({})).drift_all(60.25).until(300.0);
    assert_eq!(told.started(), ["63.37 Drifted 1 +1", "63.37 Drifted 2 +1"]);
    assert_eq!((told.claims(), active(&told)), (4, 2));
    // Such a claim asks for nothing, its daemons' share included.
    assert!(told.record.nodes.iter().all(|node| node.claim.as_ref().unwrap().requests.is_empty()));
    for (old, new) in [(1, 3), (2, 4)] {
        let gap = between(told.node(new).initialized, told.node(old).deletion_requested);
        assert!((0.0..=1.0).contains(&gap), "{gap} s after its replacement is initialized");
    }
    // Without pods they are empty all the time, and stay.
    assert_eq!(fixed(2, json!({})).until(300.0).proposed(), Vec::<String>::new());
}

#[test]
fn static_pool_replacement_respects_node_limit() {
    for (limit, together) in [(3, 0), (4, 1), (5, 2), (9, 3)] {
        let told = fixed(3, json!({"nodes": limit.to_string()})).drift_all(60.25).until(75.0);
        assert_eq!(told.started().len(), together, "limit {limit}");
    }
    let told =
        fixed(3, json!({})).pool(json!({"disruption": {"budgets": [{"nodes": "1"}]}})).drift_all(60.25).until(75.0);
    assert_eq!(told.started().len(), 1);
    // Three nodes and one wanted: the surplus goes first, then the one that is left is replaced.
    let fewer = json!({"replicas": 1, "template": {"metadata": {"labels": {"generation": "2"}}}});
    let told = fixed(3, json!({})).change_pool(60.25, fewer).until(300.0);
    let ends: Vec<String> = told.record.nodes.iter().take(3).map(|node| maybe(node.deletion_requested)).collect();
    assert_eq!(ends.iter().filter(|end| *end == "60.25").count(), 2, "{ends:?}");
    assert_eq!((told.started().len(), active(&told)), (1, 1));
}

#[test]
fn static_pools_are_looked_after_each_by_itself() {
    let told = fixed(2, json!({"nodes": "1"}))
        .another_pool("none", json!({"replicas": 0, "limits": null}))
        .another_pool("many", json!({"replicas": 4, "limits": null}))
        .until(60.0);
    let of = |pool: &str| told.record.nodes.iter().filter(|node| node.origin.name().as_str() == pool).count();
    assert_eq!((of("default"), of("none"), of("many")), (1, 0, 4));
    // A node that somebody deletes is made again; without the gate there are none.
    let told = fixed(1, json!({})).run(20.25, "web", 1, plain("1")).delete_node_of(60.25, "web-00000").until(90.0);
    assert_eq!((told.claims(), time(told.node(2).requested)), (2, "60.25".to_owned()));
    assert_eq!(fixed(2, json!({})).option("staticCapacity", json!(false)).until(60.0).claims(), 0);
}

#[test]
fn withdrawn_type_causes_drift_after_one_hour() {
    let withdrawn = |seconds: f64| {
        let story = Story::calm().run(0.25, "web", 1, plain("1"));
        let told = story.at(seconds, json!({"op": "withdrawType", "name": "s-2"})).until(9_200.0);
        assert_eq!(told.said(EventKind::NodeDrifted), Some("InstanceTypeNotFound"));
        assert_eq!(told.node(2).instance_type.map(|name| name.as_str()), Some("s-4"));
        told.times(EventKind::NodeDrifted, 1)
    };
    // The claim is made at 1.30, which the API keeps as 1; afterwards its type is looked for every half an hour.
    assert_eq!((withdrawn(600.25), withdrawn(5_000.25)), (vec!["3601.00".to_owned()], vec!["5401.00".to_owned()]));
    let mut lab = Lab::new();
    lab.node("own", "m-4", Vec::new());
    let labels = lab.nodes[0].labels.clone();
    assert!(!has_lost_its_type(&lab.types, &labels));
    lab.types[1].offerings.retain(|offering| offering.capacity_type.as_str() == "spot");
    assert!(has_lost_its_type(&lab.types, &labels));
    lab.types.remove(1);
    assert!(has_lost_its_type(&lab.types, &labels));
}

#[test]
fn reserved_node_may_fall_back_to_on_demand() {
    let mut lab = Lab::new();
    lab.node_of("default", "own", "m-4", "reserved", Vec::new());
    let labels = lab.nodes[0].labels.clone().with("karpenter.k8s.aws/capacity-reservation-id", "cr-gone");
    let lost = |kinds: &[&str]| {
        let mut types = lab.types.clone();
        types[1].offerings.retain(|offering| kinds.contains(&offering.capacity_type.as_str()));
        has_lost_its_type(&types, &labels)
    };
    assert!(!lost(&["on-demand", "spot"]) && !lost(&["on-demand"]) && lost(&["spot"]) && lost(&[]));
    // Any reservation will do, too.
    let mut types = lab.types.clone();
    for offering in &mut types[1].offerings {
        offering.capacity_type = "reserved".into();
    }
    assert!(!has_lost_its_type(&types, &labels));
}
