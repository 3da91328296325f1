//! What disruption removes under neighbouring releases, and in which order.

use nodecast::domain::node_pool::ConsolidationPolicy;
use nodecast::domain::{HourlyRate, well_known};
use nodecast::world::record::NodeEnd;
use nodecast_karpenter::disruption::Method;
use serde_json::{Value, json};

use super::release;
use crate::disruption_cases::lab::{Lab, instance_type, plain as lab_plain};
use crate::disruption_cases::story::{Story, StoryOutcome, between, of_types, plain, pod, time};

pub const ROWS: &[&str] = &[
    "D1", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D13", "D14", "D16", "D17", "D18", "D19", "D21",
    "D22", "D23", "D24",
];

/// Nodes for one pod of 1500m each.
fn singles(karpenter: &str) -> Story {
    Story::new().release(karpenter).pool(
        json!({"template": {"spec": {"requirements": of_types(&["s-2"])}}, "disruption": {"consolidateAfter": "0s"}}),
    )
}

fn calm(story: Story) -> Story {
    story.pool(json!({"disruption": {"consolidateAfter": "Never"}}))
}

fn ended(told: &StoryOutcome, end: NodeEnd) -> usize {
    told.record.nodes.iter().filter(|node| node.end == Some(end)).count()
}

#[test]
fn silent_provisioner_removes_empty_node_from_v0_32() {
    // What a Provisioner without a word on it is read as.
    let silent = json!({"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}});
    for (karpenter, patch, gone) in [("v0.31", silent, 0), ("v0.32", json!({}), 1), ("v0.37", json!({}), 1)] {
        let told =
            singles(karpenter).pool(patch).run(0.25, "web", 1, plain("1500m")).scale(60.25, "web", 0).until(200.0);
        assert_eq!(ended(&told, NodeEnd::Empty), gone, "{karpenter}");
        if gone == 1 {
            let waited = between(Some(told.pod("web-00000").removed.unwrap()), told.node(1).deletion_requested);
            assert!((14.0..=26.0).contains(&waited), "{karpenter}: {waited} s");
        }
    }
}

#[test]
fn beta_when_empty_waits_for_consolidate_after() {
    for (karpenter, policy, least, most) in [
        ("v0.37", "WhenEmpty", 60.0, 72.0),
        ("v0.37", "WhenUnderutilized", 15.0, 27.0),
        ("v1.0", "WhenEmpty", 75.0, 87.0),
        ("v1.0", "WhenEmptyOrUnderutilized", 75.0, 87.0),
    ] {
        let told = singles(karpenter)
            .pool(json!({"disruption": {"consolidationPolicy": policy, "consolidateAfter": "60s"}}))
            .run(0.25, "web", 1, plain("1500m"))
            .scale(100.25, "web", 0)
            .until(300.0);
        let waited = between(told.pod("web-00000").removed, told.node(1).deletion_requested);
        assert!((least - 1.0..=most).contains(&waited), "{karpenter} {policy}: {waited} s");
    }
}

#[test]
fn underutilized_node_honours_consolidate_after_from_v1() {
    for (karpenter, late) in [("v0.37", false), ("v1.0", true)] {
        let told = Story::new()
            .release(karpenter)
            .pool(json!({"disruption": {"consolidateAfter": "10m"}}))
            .run(0.25, "big", 1, plain("3"))
            .run(0.25, "small", 1, plain("500m"))
            .scale(60.25, "big", 0)
            .until(900.0);
        let waited = between(told.pod("big-00000").removed, told.node(1).deletion_requested);
        assert_eq!(waited > 590.0, late, "{karpenter}: {waited} s");
        assert_eq!(told.node(1).end, Some(NodeEnd::Underutilized));
    }
}

#[test]
fn drifted_node_is_replaced_from_v0_33() {
    for (karpenter, replaced) in [("v0.32", 0), ("v0.33", 1), ("v1.0", 1)] {
        let told = calm(singles(karpenter)).run(0.25, "web", 1, plain("1500m")).drift_all(60.25).until(200.0);
        assert_eq!(ended(&told, NodeEnd::Drifted), replaced, "{karpenter}");
    }
}

#[test]
fn budgets_limit_disruption_from_v0_34() {
    for (karpenter, first) in [("v0.33", 20), ("v0.34", 2)] {
        let told = singles(karpenter)
            .pool(json!({"disruption": {"budgets": [{"nodes": "10%"}]}}))
            .run(0.25, "web", 20, plain("1500m"))
            .scale(60.25, "web", 0)
            .until(600.0);
        let command = told.record.commands.iter().find(|command| command.started.is_some()).unwrap();
        assert_eq!(command.nodes.len(), first, "{karpenter}");
        assert_eq!(ended(&told, NodeEnd::Empty), 20, "{karpenter}");
    }
}

#[test]
fn reasons_of_budgets_count_from_v1_0_on() {
    let none_for_drift = json!({"disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}});
    for (karpenter, gone) in [("v0.37", 0), ("v1.0", 1)] {
        let told = singles(karpenter)
            .pool(none_for_drift.clone())
            .run(0.25, "web", 1, plain("1500m"))
            .scale(60.25, "web", 0)
            .until(200.0);
        assert_eq!(ended(&told, NodeEnd::Empty), gone, "{karpenter}");
    }
}

#[test]
fn pending_pod_blocks_consolidation_until_v0_29() {
    for (karpenter, decision) in [("v0.29", "nothing"), ("v0.30", "delete")] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        lab.node("one", "m-4", vec![lab_plain("web", "1")]);
        lab.node("two", "m-4", vec![lab_plain("other", "1")]);
        lab.pending.push(lab_plain("huge", "1000"));
        assert_eq!(lab.decision(&["one"]), decision, "{karpenter}");
    }
}

#[test]
fn unready_node_takes_no_pods_until_v0_33() {
    for (karpenter, decision) in [("v0.33", "nothing"), ("v0.34", "delete")] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        lab.node("one", "m-4", vec![lab_plain("web", "1")]);
        lab.node("two", "m-4", vec![lab_plain("other", "1")]).ready = false;
        assert_eq!(lab.decision(&["one"]), decision, "{karpenter}");
    }
}

#[test]
fn node_annotation_protects_by_presence_until_v0_37() {
    for (karpenter, free) in [("v0.37", false), ("v1.0", true)] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        let node = lab.node("one", "m-4", vec![lab_plain("web", "1")]);
        node.annotations.set("karpenter.sh/do-not-disrupt".into(), "no".into());
        assert_eq!(lab.may("one", Method::SingleNode), free, "{karpenter}");
    }
}

#[test]
fn multi_node_limit_applies_from_v0_30() {
    for (karpenter, most) in [("v0.29", 119), ("v0.30", 101)] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        for number in 0..120 {
            lab.node(&format!("n-{number:03}"), "m-2", vec![lab_plain(&format!("web-{number}"), "10m")]);
        }
        let taken = lab.command(Method::MultiNode).nodes.len();
        assert!((most - 1..=most).contains(&taken), "{karpenter}: {taken}");
    }
}

#[test]
fn unknown_type_can_be_empty_from_v1_1() {
    for (karpenter, may) in [("v1.0", false), ("v1.1", true)] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        lab.node("one", "m-4", Vec::new()).labels.set("node.kubernetes.io/instance-type".into(), "gone".into());
        assert_eq!(lab.may("one", Method::Emptiness), may, "{karpenter}");
    }
}

#[test]
fn single_node_pools_alternate_from_v1_4() {
    for (karpenter, first) in [("v1.3", "a-2"), ("v1.4", "b-1")] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        lab.pools.push((crate::disruption_cases::lab::free_pool("other"), None));
        // Two cheap to disturb that cannot go, then one more of the same pool and one of the other, dearer each.
        let pods =
            |count: usize| (0..count).map(|index| lab_plain(&format!("web-{index}"), "100m")).collect::<Vec<_>>();
        lab.node_of(
            "default",
            "a-1",
            "m-2",
            "on-demand",
            vec![crate::disruption_cases::lab::pod("bound", json!({"cpu": "1", "nodeSelector": {"is": "here"}}))],
        )
        .labels
        .set("is".into(), "here".into());
        lab.node_of("default", "a-2", "m-16", "on-demand", pods(2));
        lab.node_of("other", "b-1", "m-16", "on-demand", pods(3));
        assert!(lab.told(Method::SingleNode).starts_with(first), "{karpenter}: {}", lab.told(Method::SingleNode));
    }
}

/// Three nodes that become empty, one of which gets a pod while the others are looked at again.
fn one_comes_back(karpenter: &str) -> StoryOutcome {
    calm(singles(karpenter))
        .run(0.25, "web", 3, plain("1500m"))
        .scale(60.25, "web", 0)
        .change_pool(70.25, json!({"disruption": {"consolidateAfter": "0s"}}))
        .run(75.25, "late", 1, plain("1500m"))
        .until(95.0)
}

#[test]
fn still_empty_nodes_go_from_v1_5() {
    for (karpenter, gone) in [("v1.4", 0), ("v1.5", 2)] {
        let told = one_comes_back(karpenter);
        let asked = told.record.nodes.iter().filter(|node| node.deletion_requested.is_some()).count();
        assert_eq!(asked, gone, "{karpenter}: {:?}", told.started());
    }
}

#[test]
fn emptiness_comes_before_drift_from_v1_5_on() {
    for (karpenter, first) in [("v1.4", "Drifted"), ("v1.5", "Empty")] {
        let told = calm(singles(karpenter))
            .run(0.25, "web", 1, plain("1500m"))
            .run(5.25, "other", 1, plain("1500m"))
            .scale(60.25, "other", 0)
            .at(70.25, json!({"op": "driftNode", "onNodeOf": "web-00000"}))
            .change_pool(70.25, json!({"disruption": {"consolidateAfter": "0s"}}))
            .until(200.0);
        let reason = told.started()[0].split(' ').nth(1).unwrap().to_owned();
        assert_eq!(reason, first, "{karpenter}: {:?}", told.started());
    }
}

#[test]
fn drift_skips_empty_nodes_in_v1_5() {
    for (karpenter, commands) in [("v1.4", vec![2]), ("v1.5", vec![]), ("v1.6", vec![]), ("v1.7", vec![1, 1])] {
        let told = calm(singles(karpenter))
            .run(0.25, "web", 2, plain("1500m"))
            .scale(60.25, "web", 0)
            .drift_all(90.25)
            .until(300.0);
        let nodes: Vec<usize> = told.record.commands.iter().map(|command| command.nodes.len()).collect();
        assert_eq!(nodes, commands, "{karpenter}");
    }
}

#[test]
fn do_not_disrupt_has_duration_from_v1_12() {
    let protected = |cpu: &str| -> Value { pod(cpu, json!({"annotations": {"karpenter.sh/do-not-disrupt": "10m"}})) };
    for (karpenter, late) in [("v1.11", false), ("v1.12", true)] {
        let told = Story::new()
            .release(karpenter)
            .pool(json!({"disruption": {"consolidateAfter": "0s"}}))
            .run(0.25, "big", 1, plain("3"))
            .run(0.25, "small", 1, protected("500m"))
            .scale(60.25, "big", 0)
            .until(1_200.0);
        let at = time(told.node(1).deletion_requested.unwrap()).parse::<f64>().unwrap();
        assert_eq!(at > 600.0, late, "{karpenter}: {at}");
    }
}

#[test]
fn best_savings_ratio_goes_first_from_v1_14() {
    for (karpenter, first) in [("v1.13", "small"), ("v1.14", "large")] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        let pods =
            |count: usize| (0..count).map(|index| lab_plain(&format!("web-{index}"), "100m")).collect::<Vec<_>>();
        lab.node("small", "m-2", pods(1));
        lab.node("large", "m-16", pods(3));
        lab.unmanaged("rest", "m-16");
        lab.allow(1);
        assert!(lab.told(Method::SingleNode).starts_with(first), "{karpenter}: {}", lab.told(Method::SingleNode));
    }
}

#[test]
fn balanced_prices_allowed_offerings_from_v1_14_1() {
    // One of two nodes that cost 0.50 each gives way to one at 0.40, or at 0.10 on Spot, which the pool excludes. Its share of the
    // disruption is 3 of 10.
    let priced = |name: &str, cpu: i64, on_demand: &str, spot: &str| {
        let mut instance_type = instance_type(name, cpu, cpu * 4, "amd64");
        for offering in &mut instance_type.offerings {
            let price = if offering.capacity_type == well_known::SPOT { spot } else { on_demand };
            offering.price = HourlyRate::parse(price).unwrap();
        }
        instance_type
    };
    for (karpenter, told) in
        [("v1.14.0", "light by small"), ("v1.14.1", "nothing"), ("v1.14", "nothing"), ("main", "nothing")]
    {
        let types = vec![priced("small", 2, "0.4", "0.1"), priced("big", 4, "0.5", "0.2")];
        let mut lab = Lab { karpenter: release(karpenter), types, ..Lab::on_demand() };
        lab.pool().disruption.policy = ConsolidationPolicy::Balanced;
        let pods =
            |count: usize| (0..count).map(|index| lab_plain(&format!("web-{index}"), "600m")).collect::<Vec<_>>();
        lab.node("light", "big", pods(2));
        lab.node("full", "big", pods(6));
        assert_eq!(lab.told(Method::SingleNode), told, "{karpenter}");
    }
}

#[test]
fn failed_validation_tries_next_node_until_v0_27() {
    // Two nodes for either of which a third has room; the first may not go any more by the time of its validation.
    let labelled = |cpu: &str, name: &str| pod(cpu, json!({"labels": {"app": name}}));
    for (karpenter, after) in [("v0.27", 0.0..=0.01), ("v0.28", 0.0..=1.1), ("v0.30", 9.9..=10.1)] {
        let only = json!({"template": {"spec": {"requirements": of_types(&["s-4"])}}});
        let told = calm(Story::new().release(karpenter).pool(only))
            .run(0.25, "fill", 1, plain("2200m"))
            .run(0.25, "one", 1, labelled("1500m", "one"))
            .run(20.25, "more", 1, plain("2200m"))
            .run(20.25, "two", 2, plain("750m"))
            .run(40.25, "three", 3, plain("730m"))
            .scale(60.25, "fill", 0)
            .scale(60.25, "more", 0)
            .change_pool(100.25, json!({"disruption": {"consolidateAfter": "0s"}}))
            .budget(105.25, "held", "one", json!({"maxUnavailable": 0}))
            .until(160.0);
        let (rejected, proposed) = (told.rejected(), told.proposed());
        let second = proposed.get(1).unwrap_or_else(|| panic!("{karpenter}: {proposed:?} {rejected:?}"));
        let at = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(after.contains(&(at(second) - at(&rejected[0]))), "{karpenter}: {proposed:?} {rejected:?}");
    }
}

#[test]
fn unplaceable_pods_prevent_expiry_from_v0_30() {
    for (karpenter, gone) in [("v0.29", true), ("v0.30", false), ("v0.37", false)] {
        let told = calm(singles(karpenter))
            .pool(json!({"template": {"metadata": {"labels": {"tier": "old"}}, "spec": {"expireAfter": "100s"}}}))
            .run(0.25, "web", 1, pod("1500m", json!({"nodeSelector": {"tier": "old"}})))
            .change_pool(50.25, json!({"template": {"metadata": {"labels": {"tier": "new"}}}}))
            .until(190.0);
        assert_eq!(told.node(1).deletion_requested.is_some(), gone, "{karpenter}: {:?}", told.started());
    }
}

#[test]
fn command_waits_for_node_removal_until_v0_32() {
    let small = pod(
        "500m",
        json!({"labels": {"app": "web"}, "terminationGracePeriodSeconds": 300, "affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "web"}}}]}}}),
    );
    for (karpenter, waits) in [("v0.32", true), ("v0.33", false), ("v0.34", false)] {
        let all = of_types(&["s-2", "s-4"]);
        let now = json!({"disruption": {"consolidateAfter": "0s"}, "template": {"spec": {"requirements": all}}});
        let told = calm(Story::new().release(karpenter))
            .pool(json!({"template": {"spec": {"requirements": of_types(&["s-4"])}}}))
            .latency("podShutdownSeconds", 250.0)
            .run(0.25, "big", 2, pod("3", json!({"labels": {"app": "big"}})))
            .run(0.25, "web", 2, small.clone())
            .scale(60.25, "big", 0)
            .change_pool(400.25, now)
            .until(1_200.0);
        let commands: Vec<_> = told.record.commands.iter().filter(|command| command.started.is_some()).collect();
        assert!(commands.len() >= 2, "{karpenter}: {:?}", told.proposed());
        let first = &told.record.nodes[commands[0].nodes[0].index()];
        let late = commands[1].started >= first.terminated.or(first.terminating);
        assert_eq!(late, waits, "{karpenter}: {:?}", told.started());
    }
}

#[test]
fn spot_to_spot_gate_exists_from_v0_34() {
    let story = |karpenter: &str, gate: bool| {
        let types: Vec<String> = (1..=17).map(|index| format!("t-{index:02}")).collect();
        let names: Vec<&str> = types.iter().map(String::as_str).collect();
        let mut bought = of_types(&names);
        bought[0]["values"] = json!(["spot"]);
        Story::ladder(17)
            .release(karpenter)
            .option("spotToSpot", gate.into())
            .fault("noCapacity", 0.0, 20.0, &names[..16])
            .pool(json!({"template": {"spec": {"requirements": bought}}, "disruption": {"consolidateAfter": "0s"}}))
            .run(0.25, "web", 1, plain("1500m"))
            .until(900.0)
    };
    for (karpenter, gate, replaced) in
        [("v0.33", true, false), ("v0.34", false, false), ("v0.34", true, true), ("v1.13", true, true)]
    {
        let told = story(karpenter, gate);
        assert_eq!(told.node(1).end == Some(NodeEnd::Underutilized), replaced, "{karpenter}: {:?}", told.proposed());
    }
}

#[test]
fn v0_34_0_sends_unsorted_spot_types() {
    for karpenter in ["v0.34.0", "v0.34.1"] {
        let mut lab = Lab { karpenter: release(karpenter), spot_to_spot: true, ..Lab::ladder(20) };
        // The later in the alphabet the cheaper.
        for (number, kind) in lab.types.iter_mut().enumerate() {
            for offering in &mut kind.offerings {
                offering.price = nodecast::domain::HourlyRate::from_nanos((40 - number as i64) * 1_000_000);
            }
        }
        lab.spot("one", "t-01", vec![lab_plain("web", "1")]);
        let claim = lab.replacement("one");
        let names: Vec<&str> = claim.instance_types.iter().map(|instance_type| instance_type.name.as_str()).collect();
        assert_eq!(names.len(), 15, "{karpenter}");
        assert_eq!(names.contains(&"t-02"), karpenter == "v0.34.0", "{karpenter}: {names:?}");
        assert_eq!(names.contains(&"t-20"), karpenter == "v0.34.1", "{karpenter}: {names:?}");
    }
}

#[test]
fn protected_daemon_blocks_from_v0_34() {
    for (karpenter, may) in [("v0.33", true), ("v0.34", false)] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        let annotations = json!({"karpenter.sh/do-not-disrupt": "true"});
        let daemon = crate::disruption_cases::lab::pod(
            "agent",
            json!({"cpu": "100m", "owner": "DaemonSet", "annotations": annotations}),
        );
        lab.node("one", "m-4", vec![lab_plain("web", "1"), daemon]);
        assert_eq!(lab.may("one", Method::SingleNode), may, "{karpenter}");
    }
}

#[test]
fn withdrawn_offering_blocks_consolidation_until_v1_8() {
    for (karpenter, decision) in [("v1.8", "nothing"), ("v1.9", "delete")] {
        let mut lab = Lab { karpenter: release(karpenter), ..Lab::on_demand() };
        lab.node("one", "m-4", vec![lab_plain("web", "1")]);
        lab.node("two", "m-8", vec![lab_plain("other", "1")]);
        lab.types[1].offerings.retain(|offering| offering.zone.as_str() != crate::disruption_cases::lab::ZONES[0]);
        assert_eq!(lab.decision(&["one"]), decision, "{karpenter}");
    }
}
