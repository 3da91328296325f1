//! Scheduling passes of neighbouring releases: rules of docs/karpenter-releases.md that `tests/it/karpenter_releases.rs` lists as
//! shown here.

use std::sync::Arc;

use nodecast_karpenter::instance_types::{InstanceType, ProviderSettings, instance_types};
use nodecast_karpenter::packing::{DefaultSpread, PreferencePolicy, takes_on_in};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::topology::{NodeInclusionPolicy, TopologySpread, WhenUnsatisfiable};
use nodecast_model::domain::{KarpenterVersion, Labels, NodeClass, NodePool, ResourceName, Symbol, well_known};
use nodecast_prices::Catalog;
use serde_json::json;

use crate::packing::volumes::bound;
use crate::packing::world::{World, ZONES, instance_type, pod_spec};

/// A release by its name.
fn release(text: &str) -> KarpenterVersion {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A world under a release.
fn world(karpenter: &str) -> World {
    World { karpenter: release(karpenter), ..World::new() }
}

/// What real types offer to pods in a release, and their prices.
fn real_types(karpenter: &str, names: &[&str]) -> Vec<InstanceType> {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let class = NodeClass::named("default");
    let settings = ProviderSettings::for_version(release(karpenter));
    let mut types = instance_types(&region, &class, &NodePool::named("default"), settings);
    types.retain(|instance_type| names.contains(&instance_type.name.as_str()));
    types
}

/// The cheapest type of the one node that a pod needs among real types, On-Demand.
fn bought(karpenter: &str, names: &[&str], pod: serde_json::Value) -> &'static str {
    let mut world = World { types: real_types(karpenter, names), ..World::without_pools() };
    world.karpenter = release(karpenter);
    let on_demand = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]);
    world.pool("default", json!({"requirements": on_demand})).pod("web", pod);
    world.plan().claims[0].instance_types[0].name.as_str()
}

#[test]
fn node_overhead_decides_instance_type() {
    let m5 = ["m5.large", "m5.xlarge"];
    for (karpenter, name) in [("v0.26", "m5.xlarge"), ("v0.27.0", "m5.xlarge"), ("v0.27.1", "m5.large")] {
        assert_eq!(bought(karpenter, &m5, json!({"cpu": "1900m"})), name, "{karpenter}");
    }
    let m6g = ["m6g.large", "m6g.xlarge"];
    for (karpenter, name) in [("v0.27.8", "m6g.large"), ("v0.28", "m6g.xlarge")] {
        assert_eq!(bought(karpenter, &m6g, json!({"memory": "6850Mi"})), name, "{karpenter}");
    }
}

#[test]
fn spread_honours_min_domains_from_v0_28() {
    let spread = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "minDomains": 4, "labelSelector": {"matchLabels": {"app": "web"}}}]);
    for (karpenter, placed) in [("v0.27", 6), ("v0.28", 3)] {
        let mut world = world(karpenter);
        world.pods("web", 6, json!({"cpu": "1", "labels": {"app": "web"}, "topologySpreadConstraints": spread}));
        assert_eq!(6 - world.plan().unschedulable.len(), placed, "{karpenter}");
    }
}

#[test]
fn unmanaged_nodes_are_capacity_from_v0_30() {
    for (karpenter, place) in [("v0.29.2", "new-0"), ("v0.30.0", "group")] {
        let mut world = world(karpenter);
        world.node("group", ZONES[0], &[]).managed = false;
        world.pod("web", json!({"cpu": "1"}));
        assert_eq!(world.ask().place("web"), place, "{karpenter}");
    }
}

#[test]
fn missing_node_label_blocks_pods_from_v0_30() {
    for (karpenter, place) in [("v0.29", "node"), ("v0.30", "-")] {
        let mut world = world(karpenter);
        world.node("node", ZONES[0], &[]);
        world.pod("web", json!({"cpu": "1", "nodeSelector": {"team": "blue"}}));
        assert_eq!(world.ask().place("web"), place, "{karpenter}");
    }
}

#[test]
fn equal_weight_pools_are_ordered_from_v0_34() {
    for (karpenter, pool) in
        [("v0.32.9", "apple"), ("v0.32.10", "zebra"), ("v0.33.4", "apple"), ("v0.33.5", "zebra"), ("v0.34", "zebra")]
    {
        let mut world = World { karpenter: release(karpenter), ..World::without_pools() };
        world.pool("apple", json!({})).pool("zebra", json!({})).pod("web", json!({"cpu": "1"}));
        assert_eq!(world.plan().claims[0].node_pool.as_str(), pool, "{karpenter}");
    }
}

#[test]
fn claim_type_limit_varies_by_release() {
    for (karpenter, listed) in
        [("v0.24", 120), ("v0.25", 100), ("v0.35", 100), ("v0.36", 60), ("v1.6", 60), ("v1.7", 120)]
    {
        let types = (0..120).map(|number| instance_type(&format!("t-{number:03}"), 4, 16, "amd64")).collect();
        let mut world = World { karpenter: release(karpenter), types, ..World::new() };
        world.pod("web", json!({"cpu": "1"}));
        assert_eq!(world.plan().claims[0].instance_types.len(), listed, "{karpenter}");
    }
}

#[test]
fn daemon_requirements_all_apply_from_v1_2() {
    let term =
        |arch: &str| json!({"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]});
    let amd64 = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]);
    for (karpenter, cpu) in [("v1.1", 1_000), ("v1.2", 2_000)] {
        let mut world = World { karpenter: release(karpenter), ..World::without_pools() };
        world.pool("default", json!({"requirements": amd64.clone()}));
        let either = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [term("arm64"), term("amd64")]}}});
        world.daemon(json!({"daemon": true, "cpu": "1", "affinity": either})).pod("web", json!({"cpu": "1"}));
        assert_eq!(world.plan().claims[0].requests.cpu_milli(), cpu, "{karpenter}");
    }
}

#[test]
fn device_claims_are_refused_from_v1_7() {
    let claim = json!([{"name": "chip", "resourceClaimTemplateName": "chip"}]);
    for (karpenter, place, cpu) in [("v1.6", "new-0", 2_200), ("v1.7", "-", 1_000)] {
        let mut world = world(karpenter);
        world.daemon(json!({"daemon": true, "cpu": "200m", "resourceClaims": claim}));
        world.pod("encode", json!({"cpu": "1", "resourceClaims": claim})).pod("web", json!({"cpu": "1"}));
        let answer = world.ask();
        assert_eq!(answer.place("encode"), place, "{karpenter}");
        assert_eq!(answer.plan.claims[0].requests.cpu_milli(), cpu, "{karpenter}");
    }
}

#[test]
fn default_spread_opens_node_per_zone_on_main() {
    let constraint = TopologySpread {
        topology_key: well_known::ZONE,
        max_skew: 1,
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
        selector: None,
        min_domains: None,
        node_affinity_policy: NodeInclusionPolicy::Honor,
        node_taints_policy: NodeInclusionPolicy::Ignore,
        match_label_keys: Vec::new(),
    };
    let service = (well_known::DEFAULT, Labels::new().with("app", "served"));
    let of_host = json!([{"maxSkew": 9, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let nodes = |karpenter: &str, pod: serde_json::Value, preferred: bool, preferences: PreferencePolicy| {
        let mut constraint = constraint.clone();
        if preferred {
            constraint.when_unsatisfiable = WhenUnsatisfiable::ScheduleAnyway;
        }
        let default_spread = Some(DefaultSpread { constraints: vec![constraint], services: vec![service.clone()] });
        let mut world = World { karpenter: release(karpenter), default_spread, ..World::new() };
        world.options.preferences = preferences;
        world.pods("web", 6, pod);
        world.plan().claims.len()
    };
    let owned =
        |kind: &str, app: &str| json!({"cpu": "1", "owner": kind, "labels": {"app": app, "pod-template-hash": "7"}});
    let (respect, ignore) = (PreferencePolicy::Respect, PreferencePolicy::Ignore);
    for (karpenter, zones) in [("v1.14", 1), ("main", 3)] {
        assert_eq!(nodes(karpenter, owned("ReplicaSet", "web"), false, respect), zones, "{karpenter}");
        assert_eq!(
            nodes(karpenter, owned("Job", "served"), false, respect),
            zones,
            "{karpenter}: a Service selects them"
        );
        assert_eq!(nodes(karpenter, owned("Job", "web"), false, respect), 1, "{karpenter}: nothing selects them");
        assert_eq!(nodes(karpenter, owned("ReplicaSet", "web"), true, respect), zones, "{karpenter}");
        assert_eq!(nodes(karpenter, owned("ReplicaSet", "web"), true, ignore), 1, "{karpenter}");
        let mut owned = owned("ReplicaSet", "web");
        owned["topologySpreadConstraints"] = of_host.clone();
        assert_eq!(nodes(karpenter, owned, false, respect), 1, "{karpenter}: one constraint replaces all defaults");
    }
}

#[test]
fn spread_honours_match_label_keys_from_v1_3() {
    let pod = |hash: &str| {
        json!({"cpu": "1", "labels": {"app": "web", "hash": hash}, "topologySpreadConstraints": [{"maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "matchLabelKeys": ["hash"], "labelSelector": {"matchLabels": {"app": "web"}}}]})
    };
    for (karpenter, place) in [("v1.2", "one"), ("v1.3", "two")] {
        let mut world = World { karpenter: release(karpenter), ..World::without_pools() };
        let zones = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": &ZONES[..2]}]);
        world.pool("default", json!({"requirements": zones}));
        world.node("one", ZONES[0], &[("a", pod("new"))]);
        world.node("two", ZONES[1], &[("b", pod("old")), ("c", pod("old"))]);
        world.pod("web", pod("new"));
        assert_eq!(world.ask().place("web"), place, "{karpenter}");
    }
}

#[test]
fn pod_relaxes_preferences_immediately_from_v1_4() {
    let elsewhere = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]});
    let prefers = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "preference": {"matchExpressions": [elsewhere]}}]}});
    for (karpenter, placed) in [("v1.3", "second"), ("v1.4", "first")] {
        let mut world = World { karpenter: release(karpenter), ..World::without_pools() };
        world.types = vec![instance_type("amd64-4", 4, 16, "amd64")];
        world.pool("default", json!({"limits": {"cpu": "4"}}));
        world.pod("first", json!({"cpu": "3", "affinity": prefers.clone()})).pod("second", json!({"cpu": "2"}));
        let answer = world.ask();
        let there: Vec<_> = answer.places().into_iter().filter(|(_, place)| place != "-").collect();
        assert_eq!(there, [(placed, "new-0".to_owned())], "{karpenter}");
    }
}

#[test]
fn host_ports_of_pool_claims_depend_on_release() {
    let ports = json!([{"containerPort": 8080, "hostPort": 8080}]);
    for (karpenter, claims) in [("v1.3", 2), ("v1.4", 1), ("v1.12", 1), ("v1.13", 2)] {
        let mut world = world(karpenter);
        world.pods("web", 2, json!({"cpu": "100m", "ports": ports.clone()}));
        assert_eq!(world.plan().claims.len(), claims, "{karpenter}");
    }
    // Up to v1.3 a new claim does not know the ports of daemons.
    for (karpenter, placed) in [("v1.3", true), ("v1.4", false), ("v1.13", false)] {
        let mut world = world(karpenter);
        world.daemon(json!({"daemon": true, "cpu": "100m", "ports": ports.clone()}));
        world.pod("web", json!({"cpu": "100m", "ports": ports.clone()}));
        assert_eq!(world.plan().unschedulable.is_empty(), placed, "{karpenter}");
    }
}

#[test]
fn restricted_preferred_terms_are_checked_to_v1_4() {
    let restricted = json!({"key": "karpenter.sh/nonsense", "operator": "In", "values": ["x"]});
    let spec = pod_spec(json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 1, "preference": {"matchExpressions": [restricted]}}]}}}));
    assert!(takes_on_in(&spec, release("v1.4")).is_err());
    assert!(takes_on_in(&spec, release("v1.5")).is_ok());
}

#[test]
fn spread_ignores_volume_zone_from_v1_9() {
    let mut claims = Vec::new();
    for karpenter in ["v1.8", "v1.9"] {
        let mut world = world(karpenter);
        let spread = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3, "labelSelector": {"matchLabels": {"app": "web"}}}]);
        let item = json!({"cpu": "100m", "labels": {"app": "web"}});
        for zone in ZONES {
            world.node(zone, zone, &[("own", item.clone())]);
        }
        bound(&mut world, "claim", &[&ZONES[..1]]);
        world.pod(
            "web",
            json!({"cpu": "100m", "labels": {"app": "web"}, "topologySpreadConstraints": spread,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]}),
        );
        claims.push(world.ask().place("web"));
    }
    assert_eq!(claims, ["-", ZONES[0]]);
}

#[test]
fn all_volume_locations_are_tried_from_v1_13() {
    for (karpenter, placed) in [("v1.12", false), ("v1.13", true)] {
        let mut world = world(karpenter);
        bound(&mut world, "claim", &[&["nowhere"], &ZONES[2..]]);
        world.pod(
            "web",
            json!({"cpu": "1",
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]}),
        );
        assert_eq!(world.plan().claims.len(), usize::from(placed), "{karpenter}");
    }
}

/// Types of which two have GPUs, with a daemon of two cores for those.
fn with_gpu_daemon(karpenter: &str, selector: serde_json::Value) -> World {
    let mut world = world(karpenter);
    world.types.retain(|instance_type| instance_type.name.as_str().starts_with("amd64"));
    let gpus = Requirement::equals(well_known::INSTANCE_GPU_NAME, Symbol::new("t4"));
    for cpu in [4, 8] {
        let mut instance_type = instance_type(&format!("gpu-{cpu}"), cpu, cpu * 4, "amd64");
        let labels = Arc::make_mut(&mut instance_type.requirements);
        labels.remove(well_known::INSTANCE_GPU_NAME);
        labels.add(gpus.clone());
        instance_type.offerings.iter_mut().for_each(|offering| offering.price = offering.price + offering.price);
        world.types.push(instance_type);
    }
    let exists = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
        [{"matchExpressions": [{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "Exists"}]}]}}});
    world.daemon(json!({"daemon": true, "cpu": "2", "affinity": exists, "nodeSelector": selector}));
    world
}

#[test]
fn daemon_counts_on_compatible_types_from_v1_14() {
    for (karpenter, name, cpu) in [("v1.13", "amd64-4", 3_000), ("v1.14", "amd64-2", 1_000)] {
        let mut world = with_gpu_daemon(karpenter, json!({}));
        world.pod("web", json!({"cpu": "1"}));
        let plan = world.plan();
        let claim = &plan.claims[0];
        assert_eq!((claim.instance_types[0].name.as_str(), claim.requests.cpu_milli()), (name, cpu), "{karpenter}");
    }
    // Where it does run it is reckoned with: with it and the pod a GPU type of four cores is too small.
    let mut world = with_gpu_daemon("v1.14", json!({}));
    world.pod("web", json!({"cpu": "2", "nodeSelector": {"karpenter.k8s.aws/instance-gpu-name": "t4"}}));
    let plan = world.plan();
    assert_eq!(
        plan.claims[0].instance_types.iter().map(|instance_type| instance_type.name.as_str()).collect::<Vec<_>>(),
        ["gpu-8"]
    );
    assert_eq!(plan.claims[0].requests.get(ResourceName::CPU), 4_000);
}

#[test]
fn initialized_node_daemons_count_from_v1_14() {
    for (karpenter, cpu) in [("v1.13", 1_000), ("v1.14", 2_000)] {
        let mut world = world(karpenter);
        world.daemon(json!({"daemon": true, "cpu": "1", "nodeSelector": {"karpenter.sh/initialized": "true"}}));
        world.pod("web", json!({"cpu": "1"}));
        assert_eq!(world.plan().claims[0].requests.cpu_milli(), cpu, "{karpenter}");
    }
}

#[test]
fn v1_11_0_counts_domains_of_compatible_pools() {
    let zones = |zones: &[&str]| {
        let requirement = Requirement::new(well_known::ZONE, Operator::In, zones.iter().map(|zone| Symbol::new(zone)));
        assert_eq!(requirement.values.len(), zones.len());
        json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones}])
    };
    let spread = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    for (karpenter, placed) in
        [("v1.10", 1), ("v1.11.0", 3), ("v1.11.1", 1), ("v1.11.2", 3), ("v1.11.3", 1), ("v1.12", 1)]
    {
        let mut world = World { karpenter: release(karpenter), ..World::without_pools() };
        world.pool("x", json!({"requirements": zones(&ZONES[..1])})).pool("y", json!({"requirements": zones(&ZONES)}));
        world.pods(
            "web",
            3,
            json!({"cpu": "1", "labels": {"app": "web"}, "topologySpreadConstraints": spread,
            "nodeSelector": {"karpenter.sh/nodepool": "x"}}),
        );
        assert_eq!(3 - world.plan().unschedulable.len(), placed, "{karpenter}");
    }
}

#[test]
fn initialized_nodes_come_first_and_then_names() {
    for karpenter in ["v0.28", "v1.13"] {
        let mut world = world(karpenter);
        world.node("a", ZONES[0], &[]).initialized = false;
        world.node("c", ZONES[0], &[]);
        world.node("b", ZONES[0], &[]);
        world.pod("web", json!({"cpu": "1"}));
        assert_eq!(world.ask().place("web"), "b", "{karpenter}");
    }
}

#[test]
fn v1_8_4_counts_only_node_domains() {
    let spread = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    for (karpenter, placed) in [("v1.8.3", 2), ("v1.8.4", 0), ("v1.8.5", 2)] {
        let mut world = world(karpenter);
        world.pods("web", 2, json!({"cpu": "1", "labels": {"app": "web"}, "topologySpreadConstraints": spread}));
        assert_eq!(2 - world.plan().unschedulable.len(), placed, "{karpenter}");
    }
}
