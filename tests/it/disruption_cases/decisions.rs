//! What consolidation of nodes comes to: nothing, deletion, or one cheaper node (F).

use std::sync::Arc;

use nodecast::domain::volumes::{PersistentVolume, PersistentVolumeClaim};
use nodecast::domain::{HourlyRate, Symbol, well_known};
use nodecast_karpenter::disruption::{Decision, Failure, Method, NoOp};
use nodecast_karpenter::instance_types::{Offering, Reservation};
use nodecast_karpenter::packing::{MinValuesPolicy, PreferencePolicy};
use serde_json::{Value, json};

use super::lab::{Lab, Node, Pod, ZONES, demanding_pool, free_pool, plain, pod, requires};

pub const ROWS: &[(&str, &str)] = &[
    ("F1", "a_node_whose_pods_fit_elsewhere_is_deleted"),
    ("F2", "a_node_whose_pods_fit_elsewhere_is_deleted"),
    ("F3", "a_node_gives_way_to_cheaper_types_alone"),
    ("F4", "what_may_be_spot_becomes_spot_alone"),
    ("F5", "more_expensive_replacements_are_rejected"),
    ("F6", "more_expensive_replacements_are_rejected"),
    ("F7", "an_equal_price_is_not_cheaper"),
    ("F8", "node_of_unknown_price_is_only_deleted"),
    ("F9", "most_expensive_zone_of_type_counts"),
    ("F10", "candidate_pods_do_not_wait_for_starting_nodes"),
    ("F11", "candidate_pods_do_not_wait_for_starting_nodes"),
    ("F12", "candidate_pods_do_not_wait_for_starting_nodes"),
    ("F13", "permanently_pending_pod_blocks_nothing"),
    ("F14", "pod_without_alternative_keeps_its_node"),
    ("F15", "one_node_is_never_replaced_by_two"),
    ("F16", "replacement_stays_in_zone_required_by_spread"),
    ("F17", "pods_that_keep_apart_keep_their_nodes"),
    ("F18", "local_volume_does_not_bind_its_pod"),
    ("F19", "broken_pool_does_not_block_other_pools"),
    ("F20", "too_few_types_block_replacement_under_min_values"),
    ("F21", "preferences_hold_a_node_unless_they_are_ignored"),
    ("F22", "a_free_reservation_takes_what_runs_elsewhere"),
    ("F23", "a_free_reservation_takes_what_runs_elsewhere"),
    ("F27", "pending_pod_turns_deletion_into_replacement"),
    ("F28", "pods_without_an_owner_move_like_any_other"),
    ("F29", "pending_large_pod_keeps_large_node"),
];

#[test]
fn a_node_whose_pods_fit_elsewhere_is_deleted() {
    let mut lab = Lab::on_demand();
    lab.node("used", "m-4", vec![plain("a", "1"), plain("b", "1")]);
    lab.node("idle", "m-4", vec![plain("c", "1")]);
    assert_eq!((lab.decision(&["idle"]), lab.told(Method::SingleNode)), ("delete".to_owned(), "idle".to_owned()));
    let mut lab = Lab::on_demand();
    lab.node("own", "m-4", vec![plain("a", "1")]);
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
    lab.unmanaged("bare", "m-4");
    assert_eq!(lab.decision(&["own"]), "delete");
}

#[test]
fn a_node_gives_way_to_cheaper_types_alone() {
    let mut lab = Lab::on_demand();
    lab.node("large", "m-16", vec![plain("web", "1")]);
    assert_eq!(lab.told(Method::SingleNode), "large by m-2 m-4 m-8");
}

#[test]
fn what_may_be_spot_becomes_spot_alone() {
    let mut lab = Lab::new();
    lab.node("own", "m-4", vec![plain("web", "1")]);
    assert_eq!(requires(&lab.replacement("own"), well_known::CAPACITY_TYPE), ["spot"]);
    // Its own type is cheaper from Spot, too.
    assert_eq!(lab.decision(&["own"]), "replace: m-2 m-4");
}

#[test]
fn more_expensive_replacements_are_rejected() {
    let mut lab = Lab::new();
    lab.node("own", "m-2", vec![plain("web", "1")]);
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
    for kind in ["m-2", "m-4", "m-8", "m-16"] {
        lab.reprice(kind, "spot", 2_000_000_000);
    }
    assert_eq!(lab.evaluation(&["own"]).decision, Decision::NoOp(NoOp::NotCheaper));
    let mut lab = Lab::on_demand();
    lab.node("own", "m-2", vec![plain("web", "1")]);
    assert_eq!(lab.evaluation(&["own"]).decision, Decision::NoOp(NoOp::NotCheaper));
}

#[test]
fn an_equal_price_is_not_cheaper() {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-4", vec![plain("web", "1")]);
    let price = lab.evaluation(&["own"]).price;
    lab.reprice("m-2", "on-demand", price.as_nanos());
    assert_eq!(lab.decision(&["own"]), "nothing");
    lab.reprice("m-2", "on-demand", price.as_nanos() - 1);
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
}

#[test]
fn node_of_unknown_price_is_only_deleted() {
    let mut lab = Lab::on_demand();
    lab.node("known", "m-16", vec![plain("a", "1")]);
    lab.node("unknown", "m-8", vec![plain("b", "1")]);
    assert_eq!(lab.decision(&["known", "unknown"]), "replace: m-4 m-8 m-16");
    for kind in lab.types.iter_mut().filter(|kind| kind.name.as_str() == "m-8") {
        kind.offerings.retain(|offering| offering.zone.as_str() != ZONES[0]);
    }
    let evaluation = lab.evaluation(&["known", "unknown"]);
    assert_eq!((evaluation.price, evaluation.decision), (HourlyRate::ZERO, Decision::NoOp(NoOp::NotCheaper)));
    lab.unmanaged("bare", "m-4");
    assert_eq!(lab.decision(&["known", "unknown"]), "delete");
}

#[test]
fn most_expensive_zone_of_type_counts() {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-4", vec![plain("web", "1")]);
    let kind = lab.types.iter_mut().find(|kind| kind.name.as_str() == "m-2");
    for offering in kind.unwrap().offerings.iter_mut().filter(|offering| offering.zone.as_str() == ZONES[1]) {
        offering.price = HourlyRate::from_nanos(999_000_000);
    }
    assert_eq!(lab.decision(&["own"]), "nothing");
    let zone = json!([{"key": well_known::ZONE.as_str(), "operator": "In", "values": [ZONES[0]]},
        {"key": well_known::CAPACITY_TYPE.as_str(), "operator": "In", "values": ["on-demand"]}]);
    lab.pools[0].0 = demanding_pool("default", zone);
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
}

#[test]
fn candidate_pods_do_not_wait_for_starting_nodes() {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-2", vec![plain("web", "1")]);
    lab.node("starting", "m-4", Vec::new()).initialized = false;
    let decision = lab.evaluation(&["own"]).decision;
    assert!(matches!(&decision, Decision::NoOp(NoOp::PodsStay(Failure::WaitsForNode))), "{decision:?}");
    // An initialized node is preferred, although its name comes later.
    lab.node("zzz-ready", "m-2", Vec::new());
    assert_eq!(lab.decision(&["own"]), "delete");
    // What has to leave another node anyway may wait.
    lab.node("leaving", "m-4", vec![plain("big", "3")]).marked = true;
    let evaluation = lab.evaluation(&["own"]);
    let waits = evaluation.simulation.plan.existing.iter().any(|plan| lab.nodes[plan.node].name == "starting");
    assert!(waits && evaluation.decision == Decision::Delete, "{:?}", evaluation.decision);
}

#[test]
fn permanently_pending_pod_blocks_nothing() {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-4", vec![plain("web", "1")]);
    lab.pending.push(pod("never", json!({"cpu": "1", "nodeSelector": {"is": "nowhere"}})));
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
}

#[test]
fn pod_without_alternative_keeps_its_node() {
    let mut lab = Lab::on_demand();
    let special = pod("special", json!({"cpu": "1", "nodeSelector": {"is": "special"}}));
    lab.node("own", "m-16", vec![special]).labels.set("is".into(), "special".into());
    let decision = lab.evaluation(&["own"]).decision;
    assert!(matches!(&decision, Decision::NoOp(NoOp::PodsStay(Failure::NoPlace { .. }))), "{decision:?}");
}

/// A pod that keeps away from others of its app.
fn apart(name: &str) -> Pod {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "apart"}}});
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    pod(name, json!({"cpu": "100m", "labels": {"app": "apart"}, "affinity": affinity}))
}

#[test]
fn one_node_is_never_replaced_by_two() {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-16", vec![apart("a"), apart("b")]);
    assert_eq!(lab.evaluation(&["own"]).decision, Decision::NoOp(NoOp::SeveralNodes(2)));
}

#[test]
fn replacement_stays_in_zone_required_by_spread() {
    let spread = json!([{"topologyKey": well_known::ZONE.as_str(), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}}}]);
    let make = |name: &str| {
        pod(name, json!({"cpu": "1500m", "labels": {"app": "spread"}, "topologySpreadConstraints": spread}))
    };
    let mut lab = Lab::on_demand();
    for (zone, kind) in ZONES.iter().zip(["m-2", "m-2", "m-16"]) {
        let name = format!("node-{zone}");
        lab.node(&name, kind, vec![make(&name)]).labels.set(well_known::ZONE, Symbol::new(zone));
    }
    assert_eq!(requires(&lab.replacement("node-zone-3"), well_known::ZONE), ["zone-3"]);
}

#[test]
fn pods_that_keep_apart_keep_their_nodes() {
    let mut lab = Lab::on_demand();
    lab.node("a", "m-2", vec![apart("a")]);
    lab.node("b", "m-2", vec![apart("b")]);
    assert_eq!(lab.decision(&["a"]), "nothing");
    lab.nodes[1].pods = vec![plain("b", "100m")];
    assert_eq!(lab.decision(&["a"]), "delete");
}

#[test]
fn local_volume_does_not_bind_its_pod() {
    let hostname = json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": ["own"]}]);
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": hostname}]});
    let bound =
        pod("p", json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}));
    let mut lab = Lab::on_demand();
    lab.claims.push(PersistentVolumeClaim {
        volume: Some("disk".into()),
        bind_completed: true,
        ..PersistentVolumeClaim::unbound("default".into(), "data".into(), None)
    });
    lab.volumes.push(PersistentVolume {
        name: "disk".into(),
        driver: None,
        node_affinity: bound.spec.node_affinity.required.clone(),
        node_local: true,
        deleting: false,
        class: None,
        attributes: None,
        gib: None,
        retain: false,
        kept_for: None,
    });
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    lab.node("own", "m-4", vec![pod("db", json!({"cpu": "1", "volumes": volumes}))]);
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
    // The same words in the pod itself do hold it.
    lab.nodes[0].pods.push(bound);
    assert_eq!(lab.decision(&["own"]), "nothing");
}

#[test]
fn broken_pool_does_not_block_other_pools() {
    let mut lab = Lab::on_demand();
    lab.node("own", "m-4", vec![plain("web", "1")]);
    let mut broken = free_pool("a-broken-one");
    broken.weight = 50;
    lab.pools.push((broken, Some(Vec::new())));
    assert_eq!(lab.told(Method::SingleNode), "own by m-2");
}

#[test]
fn too_few_types_block_replacement_under_min_values() {
    let requirements = |least: u32| {
        json!([{"key": well_known::INSTANCE_TYPE.as_str(), "operator": "Exists", "minValues": least},
            {"key": well_known::CAPACITY_TYPE.as_str(), "operator": "In", "values": ["on-demand"]}])
    };
    for policy in [MinValuesPolicy::Strict, MinValuesPolicy::BestEffort] {
        let mut lab = Lab::new();
        lab.options.min_values = policy;
        lab.node("own", "m-4", vec![plain("web", "1")]);
        lab.pools[0].0 = demanding_pool("default", requirements(2));
        let decision = lab.evaluation(&["own"]).decision;
        assert_eq!(decision, Decision::NoOp(NoOp::MinValues(well_known::INSTANCE_TYPE)), "{policy:?}");
        lab.pools[0].0 = demanding_pool("default", requirements(1));
        assert_eq!(lab.decision(&["own"]), "replace: m-2", "{policy:?}");
    }
}

#[test]
fn preferences_hold_a_node_unless_they_are_ignored() {
    let elsewhere = json!([{"key": well_known::ZONE.as_str(), "operator": "In", "values": [ZONES[1]]}]);
    let preferred = json!([{"weight": 1, "preference": {"matchExpressions": elsewhere}}]);
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    let mut lab = Lab::on_demand();
    lab.node("own", "m-2", vec![pod("web", json!({"cpu": "1", "affinity": affinity}))]);
    lab.node("room", "m-2", Vec::new());
    assert_eq!(lab.decision(&["own"]), "nothing");
    lab.options.preferences = PreferencePolicy::Ignore;
    assert_eq!(lab.decision(&["own"]), "delete");
}

/// Gives a type so many free instances in a reservation in the first zone, at a price in nano-units.
fn reserve(lab: &mut Lab, kind: &str, id: &str, free: u32, price: i64) {
    let kind = lab.types.iter_mut().find(|this_kind| this_kind.name.as_str() == kind).unwrap();
    kind.offerings.push(Offering {
        zone: Symbol::new(ZONES[0]),
        zone_id: None,
        capacity_type: well_known::RESERVED,
        price: HourlyRate::from_nanos(price),
        available: free > 0,
        reservation: Some(Reservation { id: Symbol::new(id), free, block_ends: None }),
        overlay: None,
    });
    let ids = kind.offerings.iter().filter_map(|offering| offering.reservation.map(|reservation| reservation.id));
    let ids = nodecast::domain::Requirement::new(
        well_known::CAPACITY_RESERVATION_ID,
        nodecast::domain::requirements::Operator::In,
        ids,
    );
    let kinds = ["reserved", "spot", "on-demand"].map(Symbol::new);
    let kinds = nodecast::domain::Requirement::new(
        well_known::CAPACITY_TYPE,
        nodecast::domain::requirements::Operator::In,
        kinds,
    );
    let requirements = Arc::make_mut(&mut kind.requirements);
    for requirement in [ids, kinds] {
        requirements.remove(requirement.key);
        requirements.add(requirement);
    }
}

#[test]
fn a_free_reservation_takes_what_runs_elsewhere() {
    for bought in ["on-demand", "spot"] {
        let mut lab = Lab::new();
        lab.node_of("default", "own", "m-2", bought, vec![plain("web", "1")]);
        reserve(&mut lab, "m-4", "cr-1", 0, 22);
        let without = lab.decision(&["own"]);
        assert!(!without.contains("m-4"), "{bought}: {without}");
        let mut lab = Lab::new();
        lab.node_of("default", "own", "m-2", bought, vec![plain("web", "1")]);
        reserve(&mut lab, "m-4", "cr-1", 1, 22);
        let claim = lab.replacement("own");
        assert_eq!(requires(&claim, well_known::CAPACITY_TYPE), ["reserved"], "{bought}");
        assert_eq!(lab.decision(&["own"]), "replace: m-4", "{bought}");
    }
    let mut lab = Lab::new();
    reserve(&mut lab, "m-8", "cr-large", 0, 43);
    reserve(&mut lab, "m-4", "cr-small", 1, 22);
    let in_reservation = |node: &mut Node| node.labels.set(well_known::CAPACITY_RESERVATION_ID, "cr-large".into());
    in_reservation(lab.node_of("default", "own", "m-8", "reserved", vec![plain("web", "1")]));
    assert_eq!(lab.decision(&["own"]), "replace: m-4");
    lab.types.iter_mut().flat_map(|kind| &mut kind.offerings).for_each(|offering| {
        if let Some(reservation) = &mut offering.reservation {
            (reservation.free, offering.available) = (0, false);
        }
    });
    assert_eq!(lab.decision(&["own"]), "nothing");
}

#[test]
fn pending_pod_turns_deletion_into_replacement() {
    for (kind, expected) in [("m-4", "nothing"), ("m-8", "nothing"), ("m-16", "replace: m-8")] {
        let mut lab = Lab::on_demand();
        lab.unmanaged("room", "m-2");
        lab.node("own", kind, vec![plain("web", "100m")]);
        assert_eq!(lab.decision(&["own"]), "delete");
        lab.pending.push(plain("waits", "7"));
        // The node itself could hold the pod that waits, but for the question it is gone.
        assert_eq!(lab.decision(&["own"]), expected, "{kind}");
    }
}

#[test]
fn pods_without_an_owner_move_like_any_other() {
    let bare: Value = json!({"cpu": "1", "owner": "none"});
    let mut lab = Lab::on_demand();
    lab.node("own", "m-4", vec![pod("bare", bare)]);
    assert_eq!(lab.decision(&["own"]), "replace: m-2");
    lab.unmanaged("room", "m-4");
    assert_eq!(lab.decision(&["own"]), "delete");
}

#[test]
fn pending_large_pod_keeps_large_node() {
    for cpu in ["14", "15500m"] {
        let mut lab = Lab::on_demand();
        lab.node("large", "m-16", vec![plain("web", "1")]);
        assert_eq!(lab.decision(&["large"]), "replace: m-2 m-4 m-8");
        lab.pending.push(plain("waits", cpu));
        assert_eq!(lab.decision(&["large"]), "nothing", "{cpu}");
    }
}
