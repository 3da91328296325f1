//! What holds for every plan, on random clusters; and the laws of the requirement algebra.

use std::collections::BTreeMap;

use nodecast_karpenter::packing::{PackingPlan, PlannedClaim, TieBreak};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{HourlyRate, PodSpec, ResourceName, Resources, Symbol};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;
use serde_json::{Value, json};

use super::world::World;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// What a random workload may ask for beside cpu and memory.
#[derive(Clone, Copy, Debug)]
pub enum Trait {
    Plain,
    ZoneSpread,
    HostSpread,
    HostAntiAffinity,
    InZone(usize),
    OnArm,
    Tolerating,
    Preferring(usize),
}

pub type Workload = (usize, i64, i64, Trait);

pub fn workload() -> impl Strategy<Value = Workload> {
    let kind = prop_oneof![
        Just(Trait::Plain),
        Just(Trait::ZoneSpread),
        Just(Trait::HostSpread),
        Just(Trait::HostAntiAffinity),
        (0..3_usize).prop_map(Trait::InZone),
        Just(Trait::OnArm),
        Just(Trait::Tolerating),
        (0..3_usize).prop_map(Trait::Preferring),
    ];
    (1..12_usize, 50..5_000_i64, 32..16_384_i64, kind)
}

pub fn spec(number: usize, (_, cpu, memory, kind): Workload) -> Value {
    let app = format!("app-{number}");
    let selector = json!({"matchLabels": {"app": app}});
    let spread = |key: &str| json!([{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
    let mut spec = json!({"labels": {"app": app}, "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
    match kind {
        Trait::Plain => {}
        Trait::ZoneSpread => spec["topologySpreadConstraints"] = spread(ZONE),
        Trait::HostSpread => spec["topologySpreadConstraints"] = spread(HOST),
        Trait::HostAntiAffinity => {
            let term = json!({"topologyKey": HOST, "labelSelector": selector});
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        }
        Trait::InZone(zone) => spec["nodeSelector"] = json!({ZONE: super::world::ZONES[zone]}),
        Trait::OnArm => spec["nodeSelector"] = json!({"kubernetes.io/arch": "arm64"}),
        Trait::Tolerating => spec["tolerations"] = json!([{"key": "team", "operator": "Exists"}]),
        Trait::Preferring(zone) => {
            let expression = json!([{"key": ZONE, "operator": "In", "values": [super::world::ZONES[zone]]}]);
            spec["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 1, "preference": {"matchExpressions": expression}}]}});
        }
    }
    spec
}

/// Two pools, the heavier one tainted and limited; some nodes; the workloads pending.
pub fn world(workloads: &[Workload], nodes: usize, limit: i64, ties: TieBreak) -> World {
    let mut world = World::without_pools();
    let taints = json!([{"key": "team", "effect": "NoSchedule"}]);
    world.pool("limited", json!({"weight": 10, "taints": taints, "limits": {"cpu": limit.to_string()}}));
    world.pool("default", json!({}));
    world.daemon(json!({"cpu": "100m", "tolerations": [{"operator": "Exists"}]}));
    for number in 0..nodes {
        world.node(&format!("node-{number}"), super::world::ZONES[number % 3], &[]);
    }
    for (number, &workload) in workloads.iter().enumerate() {
        world.pods(&format!("w{number}"), workload.0, spec(number, workload));
    }
    world.ties = ties;
    world
}

pub fn check(world: &World, plan: &PackingPlan) {
    everyone_is_accounted_for(world, plan);
    for claim in &plan.claims {
        claim_is_sound(world, claim);
    }
    for placement in &plan.existing {
        let node = &world.nodes[placement.node];
        let mut used = Resources::new();
        for &pod in &placement.pods {
            let spec = &world.pods[pod].2;
            used.add(&spec.requests());
            assert!(
                spec.selects_node(&node.labels, &node.name) || prefers(spec),
                "{} on {}",
                world.pods[pod].0,
                node.name
            );
        }
        assert!(used.fits(&node.allocatable), "{} holds {used}", node.name);
    }
    limits_hold(world, plan);
    topology_holds(world, plan);
}

fn prefers(spec: &PodSpec) -> bool {
    !spec.node_affinity.preferred.is_empty()
}

fn everyone_is_accounted_for(world: &World, plan: &PackingPlan) {
    let mut seen: Vec<usize> = plan.unschedulable.iter().map(|plan| plan.pod).collect();
    seen.extend(plan.existing.iter().flat_map(|placement| placement.pods.iter().copied()));
    seen.extend(plan.claims.iter().flat_map(|claim| claim.pods.iter().copied()));
    seen.sort_unstable();
    assert_eq!(seen, (0..world.pods.len()).collect::<Vec<_>>());
}

fn claim_is_sound(world: &World, claim: &PlannedClaim) {
    assert!(!claim.instance_types.is_empty() && !claim.pods.is_empty());
    assert!(claim.instance_types.is_sorted_by_key(|instance_type| (instance_type.price, instance_type.name)));
    let mut requests = claim.daemon_requests.clone();
    for &pod in &claim.pods {
        let spec = &world.pods[pod].2;
        requests.add(&spec.requests());
        assert_eq!(first_untolerated(&claim.taints, &spec.tolerations), None);
        for (key, value) in spec.node_selector.iter() {
            assert!(
                claim
                    .requirements
                    .get(key)
                    .is_some_and(|requirement| requirement.has(value) && requirement.values.len() == 1)
            );
        }
    }
    assert_eq!(requests, claim.requests);
    for instance_type in claim.instance_types.iter() {
        let instance_type = &world.types[instance_type.index as usize];
        assert!(
            claim.requests.fits(&instance_type.allocatable),
            "{} cannot hold {}",
            instance_type.name,
            claim.requests
        );
        assert!(instance_type.requirements.intersects(&claim.requirements).is_ok());
    }
}

/// The limited pool's claims, each as its smallest type, stay within the limit.
fn limits_hold(world: &World, plan: &PackingPlan) {
    let limit = world.pools[0].limits.get(ResourceName::CPU);
    let claims = plan.claims.iter().filter(|claim| claim.pool == 0);
    let largest = claims.map(|claim| {
        let cores = claim
            .instance_types
            .iter()
            .map(|instance_type| world.types[instance_type.index as usize].capacity.cpu_milli());
        cores.max().unwrap_or(0)
    });
    assert!(largest.sum::<i64>() <= limit);
}

/// Pods of one app: at most one on a host where they repel each other or spread over hosts; zone counts within the skew.
fn topology_holds(world: &World, plan: &PackingPlan) {
    let mut hosts: Vec<(Option<Symbol>, &[usize])> = Vec::new();
    for placement in &plan.existing {
        hosts.push((world.nodes[placement.node].labels.get(Symbol::new(ZONE)), &placement.pods));
    }
    for claim in &plan.claims {
        let zone = claim
            .requirements
            .get(Symbol::new(ZONE))
            .filter(|requirement| requirement.values.len() == 1 && !requirement.complement);
        hosts.push((zone.and_then(|zone| zone.values.first().copied()), &claim.pods));
    }
    let mut zones: BTreeMap<Symbol, BTreeMap<Symbol, i64>> = BTreeMap::new();
    for (zone, pods) in hosts {
        let mut on_host: BTreeMap<Symbol, usize> = BTreeMap::new();
        for &pod in pods {
            let spec = &world.pods[pod].2;
            let app = spec.labels.get(Symbol::new("app")).unwrap();
            let over_hosts = spec.topology_spread.iter().any(|item| item.topology_key.as_str() == HOST);
            if over_hosts || !spec.pod_anti_affinity.required.is_empty() {
                *on_host.entry(app).or_default() += 1;
            }
            if spec.topology_spread.iter().any(|item| item.topology_key.as_str() == ZONE) {
                let zone = zone.expect("a spread pod's node has one zone");
                *zones.entry(app).or_default().entry(zone).or_default() += 1;
            }
        }
        assert!(on_host.values().all(|&pods| pods == 1), "{on_host:?}");
    }
    for counts in zones.values() {
        let count = |zone: &str| counts.get(&Symbol::new(zone)).copied().unwrap_or(0);
        let counts: Vec<i64> = super::world::ZONES.iter().map(|zone| count(zone)).collect();
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    }
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let values =
        prop::collection::vec(prop_oneof![Just("1"), Just("3"), Just("5"), Just("9"), Just("x"), Just("y")], 0..4);
    let operator = prop_oneof![
        Just(Operator::In),
        Just(Operator::NotIn),
        Just(Operator::Exists),
        Just(Operator::DoesNotExist),
        Just(Operator::Gt),
        Just(Operator::Lt),
        Just(Operator::Gte),
        Just(Operator::Lte),
    ];
    (operator, values).prop_map(|(operator, values)| {
        let mut values: Vec<Symbol> = values.into_iter().map(Symbol::new).collect();
        match operator {
            Operator::Exists | Operator::DoesNotExist => values.clear(),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => values = vec![Symbol::new("4")],
            _ => {}
        }
        Requirement::new(Symbol::new("key"), operator, values)
    })
}

/// The values that tell requirements over this alphabet apart.
const PROBES: [&str; 9] = ["1", "3", "4", "5", "9", "100", "-7", "x", "unheard-of"];

fn allowed(requirement: &Requirement) -> Vec<bool> {
    PROBES.iter().map(|value| requirement.has(Symbol::new(value))).collect()
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases * 3 / 8, ..Config::default() })]

    #[test]
    fn every_plan_is_sound(
        workloads in prop::collection::vec(workload(), 1..9),
        nodes in 0..6_usize,
        limit in 0..64_i64,
        seed in any::<u64>(),
        smallest in any::<bool>(),
    ) {
        let ties = if smallest { TieBreak::SmallestName } else { TieBreak::Seeded { seed, pass: 1 } };
        let world = world(&workloads, nodes, limit, ties);
        let plan = world.plan();
        check(&world, &plan);
        assert_eq!(plan, world.plan(), "the same question has the same answer");
    }

    #[test]
    fn reused_packer_matches_fresh_packer(
        workloads in prop::collection::vec(workload(), 1..7),
        nodes in 2..6_usize,
        gone in 0..2_usize,
    ) {
        let before = world(&workloads, nodes, 32, TieBreak::SmallestName);
        let mut after = before.clone();
        after.nodes[gone].offered = false;
        after.pods.reverse();
        assert_eq!(before.plans_by_one_packer(&after), [before.plan(), after.plan(), before.plan()]);
    }

    #[test]
    fn packer_with_updated_types_matches_fresh_packer(
        workloads in prop::collection::vec(workload(), 1..7),
        changes in prop::collection::vec((0..6_usize, 0..64_u8, 0..4_i64), 8),
    ) {
        let before = world(&workloads, 1, 32, TieBreak::SmallestName);
        let mut after = before.clone();
        for (own, (kind, sold_out, gone)) in after.types.iter_mut().zip(changes) {
            for (position, offering) in own.offerings.iter_mut().enumerate() {
                offering.available = kind > 2 || sold_out & (1 << position) == 0;
                offering.price = if kind == 3 { HourlyRate::from_nanos(1_000_000 * (position as i64 + 1)) } else { offering.price };
            }
            if kind >= 4 {
                own.allocatable.subtract(&Resources::cpu_memory(gone * 700, 0));
            }
        }
        assert_eq!(before.plans_by_one_packer(&after), [before.plan(), after.plan(), before.plan()]);
    }

    #[test]
    fn intersection_is_commutative_associative_and_idempotent(a in requirement(), b in requirement(), c in requirement()) {
        assert_eq!(a.intersection(&b), b.intersection(&a));
        assert_eq!(a.intersection(&a), a.clone());
        let (left, right) = (a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
        assert_eq!(allowed(&left), allowed(&right));
    }

    #[test]
    fn an_intersection_allows_exactly_what_both_allow(a in requirement(), b in requirement()) {
        let both: Vec<bool> = allowed(&a).iter().zip(allowed(&b)).map(|(x, y)| *x && y).collect();
        assert_eq!(allowed(&a.intersection(&b)), both);
        assert_eq!(a.has_intersection(&b), b.has_intersection(&a));
        assert!(a.has_intersection(&b) || !both.contains(&true));
    }
}
