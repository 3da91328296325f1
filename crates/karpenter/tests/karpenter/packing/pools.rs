//! Pools: weights, taints, limits, preferences, daemons, `minValues`, reservations.

use std::sync::Arc;

use nodecast_karpenter::instance_types::{Offering, Reservation};
use nodecast_karpenter::packing::{MinValuesPolicy, PreferencePolicy, ReservedMode, Unschedulable};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, Symbol};
use serde_json::{Value, json};

use super::world::{World, pod_spec};

pub const ROWS: &[u16] = &[
    5, 7, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 118, 123, 124, 125, 126, 127, 128, 129,
    130, 131,
];

const ZONE: &str = "topology.kubernetes.io/zone";

fn anti_affine(cpu: &str) -> Value {
    json!({"labels": {"app": "a"}, "cpu": cpu, "affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}]}}})
}

fn in_zone(zone: &str) -> Value {
    json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]})
}

fn prefer(weights: &[(i64, &str)]) -> Value {
    weights.iter().map(|(weight, zone)| json!({"weight": weight, "preference": in_zone(zone)})).collect()
}

#[test]
fn without_a_dynamic_pool_nothing_is_opened() {
    let mut world = World::without_pools();
    world.pod("p", json!({}));
    assert_eq!(world.plan().unschedulable[0].reason, Unschedulable::NoDynamicPools);
    world.pool("static", json!({"replicas": 3}));
    assert_eq!(world.plan().unschedulable[0].reason, Unschedulable::NoDynamicPools);
    world.pool("dynamic", json!({}));
    assert_eq!(world.plan().claims[0].node_pool.as_str(), "dynamic");
}

#[test]
fn required_affinity_terms_are_tried_in_order() {
    for (terms, zone) in [
        (vec!["nowhere"], None),
        (vec!["nowhere", "neither", "zone-2"], Some("zone-2")),
        (vec!["zone-3", "zone-1"], Some("zone-3")),
    ] {
        let terms: Vec<Value> = terms.into_iter().map(in_zone).collect();
        let mut world = World::new();
        world.pod(
            "p",
            json!({"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}),
        );
        let answer = world.ask();
        let found = (answer.unplaced() == 0).then(|| answer.requires(0, ZONE));
        assert_eq!(found, zone.map(|zone| format!("{ZONE} In [{zone}]")));
    }
}

#[test]
fn heaviest_impossible_preference_is_dropped_first() {
    let mut world = World::new();
    let preferred = prefer(&[(1, "zone-1"), (100, "nowhere"), (50, "zone-2")]);
    world.pod(
        "p",
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}),
    );
    assert_eq!(world.ask().requires(0, ZONE), format!("{ZONE} In [zone-2]"));
    world.options.preferences = PreferencePolicy::Ignore;
    assert_eq!(world.ask().requires(0, ZONE), "");
}

#[test]
fn ignored_preferences_let_pods_share_a_node() {
    let mut pod = anti_affine("100m");
    let term = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0].take();
    pod["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "podAffinityTerm": term}]}});
    pod["topologySpreadConstraints"] = json!([{"topologyKey": "kubernetes.io/hostname", "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "a"}}}]);
    for (policy, nodes) in [(PreferencePolicy::Respect, 4), (PreferencePolicy::Ignore, 1)] {
        let mut world = World::new();
        world.options.preferences = policy;
        world.pods("p", 4, pod.clone());
        assert_eq!(world.ask().sizes().len(), nodes);
    }
}

#[test]
fn prefer_no_schedule_taint_is_tolerated_last() {
    let taints = json!([{"key": "team", "value": "x", "effect": "PreferNoSchedule"}]);
    let mut world = World::without_pools();
    world.pool("tainted", json!({"weight": 100, "taints": taints}));
    let preferred = prefer(&[(1, "nowhere")]);
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    world.pod("p", json!({"affinity": affinity}));
    assert_eq!(world.plan().claims[0].node_pool.as_str(), "tainted");
    world.pool("clean", json!({}));
    assert_eq!(world.plan().claims[0].node_pool.as_str(), "clean");
}

#[test]
fn pools_are_tried_by_weight_then_reverse_name() {
    let mut world = World::without_pools();
    world.pool("b", json!({"weight": 20})).pool("a", json!({"weight": 20})).pool("z", json!({"weight": 10}));
    world.pod("p", json!({}));
    assert_eq!(world.plan().claims[0].node_pool.as_str(), "b");
    world.pods.clear();
    world.pod("q", json!({"nodeSelector": {"karpenter.sh/nodepool": "z"}}));
    assert_eq!(world.plan().claims[0].node_pool.as_str(), "z");
}

#[test]
fn startup_taints_need_no_toleration() {
    let taint = json!([{"key": "team", "value": "x", "effect": "NoSchedule"}]);
    let mut world = World::without_pools();
    world.pool("default", json!({"taints": taint, "startupTaints": [{"key": "agent", "effect": "NoExecute"}]}));
    world.pod("p", json!({}));
    assert!(world.ask().reason().contains("did not tolerate taint team=x:NoSchedule"), "{}", world.ask().reason());
    world.pod("q", json!({"tolerations": [{"key": "team", "operator": "Exists"}]}));
    let plan = world.plan();
    assert_eq!((plan.claims[0].taints.len(), plan.claims[0].startup_taints.len()), (1, 1));
}

#[test]
fn limits_bind_within_a_pass_and_across_passes() {
    let limited = |limits: Value| {
        let mut world = World::without_pools();
        world.pool("default", json!({"limits": limits}));
        world.types.retain(|instance_type| instance_type.name.as_str().starts_with("amd64"));
        world
    };
    let mut none = limited(json!({"cpu": "1"}));
    none.pod("p", json!({"cpu": "1"}));
    assert_eq!(none.ask().reason(), "default: all available instance types exceed limits for nodepool");
    let mut exactly = limited(json!({"cpu": "2"}));
    exactly.pod("p", json!({"cpu": "1.75"}));
    assert_eq!(exactly.ask().types(), ["amd64-2"]);
    exactly.settle().pod("q", json!({"cpu": "1.75"}));
    assert_eq!(exactly.ask().unplaced(), 1);
    let mut one_of_two = limited(json!({"cpu": "3"}));
    one_of_two.pods("p", 2, anti_affine("1.5"));
    assert_eq!((one_of_two.ask().sizes(), one_of_two.ask().unplaced()), (vec![1], 1));
    let mut devices = limited(json!({"nvidia.com/gpu": "0"}));
    for instance_type in &mut devices.types {
        instance_type.capacity.set(nodecast_model::domain::ResourceName::NVIDIA_GPU, 1);
    }
    devices.pod("p", json!({}));
    assert_eq!(devices.ask().unplaced(), 1);
}

#[test]
fn node_limit_applies_only_between_passes() {
    let mut world = World::without_pools();
    world.pool("default", json!({"limits": {"nodes": "2"}}));
    world.pods("p", 5, anti_affine("1"));
    assert_eq!(world.ask().sizes(), [1; 5]);
    world.pods.clear();
    for pass in 0..3 {
        world.pod(&format!("q-{pass}"), anti_affine("1")).settle();
    }
    assert_eq!((world.nodes.len(), world.ask().reason()), (2, "default: the limit on nodes is reached".to_owned()));
}

#[test]
fn claim_charges_pool_limit_with_largest_type() {
    let mut world = World::without_pools();
    world.types = vec![
        super::world::instance_type("four", 4, 16, "amd64"),
        super::world::instance_type("forty-eight", 48, 192, "amd64"),
    ];
    world.pool("default", json!({"limits": {"cpu": "64"}}));
    world.pods("p", 6, anti_affine("1"));
    // 64 less 48 leave room for four more claims that can only be the small type.
    assert_eq!((world.ask().sizes().len(), world.ask().unplaced()), (5, 1));
    world.types.remove(0);
    assert_eq!((world.ask().sizes().len(), world.ask().unplaced()), (1, 5));
}

#[test]
fn daemons_reserve_resources_and_ports_on_new_nodes() {
    let port = json!([{"containerPort": 9100, "hostPort": 9100}]);
    let mut world = World::new();
    world.daemon(json!({"cpu": "1", "ports": port}));
    world.pod("p", json!({"cpu": "1.5"})).pod("clash", json!({"ports": port}));
    let answer = world.ask();
    assert_eq!((answer.types(), answer.place("clash")), (vec!["amd64-4"], "-".to_owned()));
    world.daemons[0] = pod_spec(json!({"cpu": "100"}));
    assert_eq!(world.ask().unplaced(), 2);
}

#[test]
fn which_daemons_count_for_a_pool() {
    let tainted = json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]});
    let soft = json!({"taints": [{"key": "team", "value": "x", "effect": "PreferNoSchedule"}]});
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let terms = |terms: Vec<Value>| {
        json!({"cpu": "1", "affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    };
    let preference = json!({"cpu": "1", "affinity": {"nodeAffinity":
        {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": in_zone("nowhere")}]}}});
    for (pool, daemon, counts) in [
        (json!({}), json!({"cpu": "1"}), true),
        (tainted.clone(), json!({"cpu": "1"}), false),
        (tainted, json!({"cpu": "1", "tolerations": [{"operator": "Exists"}]}), true),
        (soft, json!({"cpu": "1"}), true),
        (json!({}), json!({"cpu": "1", "nodeSelector": {"nosuch": "x"}}), false),
        (json!({}), terms(vec![expression("nosuch", "NotIn", &["x"])]), true),
        (json!({"labels": {"team": "a"}}), terms(vec![expression("team", "In", &["b"])]), false),
        (json!({"labels": {"team": "a"}}), terms(vec![expression("team", "In", &["b"]), in_zone("zone-1")]), true),
        (json!({}), preference, true),
    ] {
        let mut world = World::without_pools();
        let tolerations = json!([{"operator": "Exists"}]);
        world.pool("default", pool.clone()).daemon(daemon.clone()).pod("p", json!({"tolerations": tolerations}));
        assert_eq!(world.plan().claims[0].daemon_requests.cpu_milli() == 1_000, counts, "{pool} {daemon}");
    }
}

#[test]
fn cheapest_allowed_type_comes_first() {
    for (pool, pod, cheapest) in [
        (json!({}), json!({}), "amd64-2"),
        (json!({}), json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}}), "arm64-2"),
        (
            json!({"requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}),
            json!({}),
            "arm64-2",
        ),
    ] {
        let mut world = World::without_pools();
        world.pool("default", pool).pod("p", pod);
        assert_eq!(world.ask().types(), [cheapest]);
    }
    // On Spot the larger type is the cheaper one; the pool that only buys On-Demand does not see that.
    for (capacity_type, cheapest) in [("spot", "amd64-4"), ("on-demand", "amd64-2")] {
        let mut world = World::without_pools();
        let larger = world.types.iter_mut().find(|instance_type| instance_type.name.as_str() == "amd64-4").unwrap();
        for offering in larger.offerings.iter_mut().filter(|offering| offering.capacity_type == well_known::SPOT) {
            offering.price = HourlyRate::from_nanos(1);
        }
        let requirement = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]}]);
        world.pool("default", json!({"requirements": requirement})).pod("p", json!({}));
        assert_eq!(world.ask().types(), [cheapest]);
    }
}

fn with_min_values(least: u32) -> World {
    let mut world = World::new();
    world.types.retain(|instance_type| instance_type.name.as_str().starts_with("amd64"));
    let exists = Requirement::new(well_known::INSTANCE_TYPE, Operator::Exists, []);
    world.pools[0].requirements.push(exists.with_min_values(Some(least)));
    world
}

#[test]
fn pods_are_split_so_that_enough_types_remain() {
    let mut world = with_min_values(3);
    world.pods("p", 4, json!({"cpu": "1.8"}));
    let plan = world.plan();
    assert_eq!(world.ask().sizes(), [2, 2], "a third pod on a node would leave only two types");
    assert!(plan.claims.iter().all(|claim| claim.instance_types.len() >= 3 && !claim.min_values_relaxed));
    let twice = Requirement::new(well_known::INSTANCE_TYPE, Operator::Exists, []).with_min_values(Some(4));
    world.pools[0].requirements.push(twice);
    assert_eq!(world.ask().sizes(), [1; 4], "of several for one key the largest counts");
}

#[test]
fn unmet_min_values_reject_pod_or_are_relaxed() {
    let mut world = with_min_values(4);
    world.pod("p", json!({"cpu": "3"}));
    assert!(world.ask().reason().contains("minValues requirement is not met"), "{}", world.ask().reason());
    world.options.min_values = MinValuesPolicy::BestEffort;
    let plan = world.plan();
    assert!(plan.claims[0].min_values_relaxed);
    let lowered = plan.claims[0].requirements.get(well_known::INSTANCE_TYPE).unwrap().min_values;
    assert_eq!(lowered, Some(3));
    world.pool("lighter", json!({}));
    world.pools[0].weight = 1;
    assert_eq!(world.plan().claims[0].node_pool.as_str(), "default", "the heavier pool is relaxed before the next");
}

#[test]
fn truncation_breaking_min_values_drops_claim() {
    let mut world = with_min_values(3);
    world.options.max_instance_types = 2;
    world.pod("p", json!({}));
    assert!(matches!(world.plan().unschedulable[0].reason, Unschedulable::CutBrokeMinValues { .. }));
    world.options.min_values = MinValuesPolicy::BestEffort;
    let plan = world.plan();
    assert_eq!((plan.claims[0].instance_types.len(), plan.claims[0].instance_types_before_cut), (2, 4));
}

/// Types of 2 and 4 cores with one reserved instance of each size.
fn with_reservations() -> World {
    let mut world = World::new();
    world.types.retain(|instance_type| ["amd64-2", "amd64-4"].contains(&instance_type.name.as_str()));
    for (instance_type, id) in world.types.iter_mut().zip(["small", "medium"]) {
        let id = Symbol::new(id);
        instance_type.offerings.push(Offering {
            zone: Symbol::new("zone-1"),
            zone_id: None,
            capacity_type: well_known::RESERVED,
            price: HourlyRate::from_nanos(1),
            available: true,
            reservation: Some(Reservation { id, free: 1, block_ends: None }),
            overlay: None,
        });
        let labels = Arc::make_mut(&mut instance_type.requirements);
        labels.remove(well_known::CAPACITY_RESERVATION_ID);
        labels.add(Requirement::equals(well_known::CAPACITY_RESERVATION_ID, id));
        labels.remove(well_known::CAPACITY_TYPE);
        let kinds = ["spot", "on-demand", "reserved"].map(Symbol::new);
        labels.add(Requirement::new(well_known::CAPACITY_TYPE, Operator::In, kinds));
    }
    world
}

#[test]
fn pods_wait_for_reservations_that_may_free_up() {
    let mut world = with_reservations();
    world.pool("lighter", json!({}));
    world.pools[0].weight = 1;
    world.pods("p", 3, anti_affine("1.8"));
    let answer = world.ask();
    assert_eq!((answer.sizes(), answer.unplaced()), (vec![1], 2));
    assert_eq!(answer.requires(0, "karpenter.sh/capacity-type"), "karpenter.sh/capacity-type In [reserved]");
    let ids = "karpenter.k8s.aws/capacity-reservation-id In [medium small]";
    assert_eq!(answer.requires(0, "karpenter.k8s.aws/capacity-reservation-id"), ids);
    world.reserved = ReservedMode::Fallback;
    assert_eq!((world.ask().sizes(), world.ask().unplaced()), (vec![1, 1, 1], 0));
}

#[test]
fn pod_waiting_for_reservation_keeps_preferences() {
    let mut world = with_reservations();
    let preferred = prefer(&[(1, "zone-1")]);
    let mut pod = anti_affine("1.8");
    pod["affinity"]["nodeAffinity"] = json!({"preferredDuringSchedulingIgnoredDuringExecution": preferred});
    world.pods("p", 2, pod);
    let answer = world.ask();
    assert_eq!((answer.sizes(), answer.unplaced()), (vec![1], 1));
    assert!(answer.reason().contains("capacity reservations"), "{}", answer.reason());
}

#[test]
fn packer_handles_pool_selling_out_and_returning() {
    let mut open = World::without_pools();
    let requirement = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]);
    open.pool("spot", json!({"requirements": requirement, "weight": 10, "labels": {"team": "a"}}));
    open.pool("any", json!({"labels": {"team": "b"}})).pods("p", 3, json!({"cpu": "1"}));
    // On which pool a daemon runs decides on what it asks of the next.
    open.daemon(json!({"cpu": "500m", "nodeSelector": {"team": "a"}}));
    let mut closed = open.clone();
    for offering in closed.types.iter_mut().flat_map(|instance_type| &mut instance_type.offerings) {
        offering.available = offering.capacity_type != well_known::SPOT;
    }
    let (before, after) = (open.plan(), closed.plan());
    assert_eq!(before.claims[0].node_pool.as_str(), "spot");
    assert_eq!((after.claims[0].node_pool.as_str(), after.dropped_pools.len()), ("any", 1));
    assert_eq!(open.plans_by_one_packer(&closed), [before.clone(), after.clone(), before.clone()]);
    assert_eq!(closed.plans_by_one_packer(&open), [after.clone(), before, after]);
}
