//! Every multiset of at most five pods over three kinds, for every three kinds of a list, and for every three instance types
//! of a list: each plan is checked for capacity, taints, selectors, spread, (anti-)affinity and limits.

use std::collections::BTreeSet;

use nodecast_karpenter::packing::{PackingPlan, PlannedClaim};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::topology::{PodAffinityTerm, WhenUnsatisfiable};
use nodecast_model::domain::{PodSpec, Requirements, ResourceName, Resources, Symbol};
use serde_json::{Value, json};

use super::world::{World, ZONES, instance_type};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// The kinds of pods. Each has the label `kind` with its number.
fn kinds() -> Vec<Value> {
    let selector = |kind: usize| json!({"matchLabels": {"kind": kind.to_string()}});
    let spread = |key: &str, kind: usize| json!([{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector(kind)}]);
    let required = |which: &str, key: &str, kind: usize| {
        let term = json!({"topologyKey": key, "labelSelector": selector(kind)});
        json!({which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    };
    let mut kinds = vec![
        json!({"cpu": "500m", "memory": "1Gi"}),
        json!({"cpu": "3", "memory": "1Gi"}),
        json!({"cpu": "100m", "memory": "7Gi"}),
        json!({"cpu": "1", "nodeSelector": {ZONE: ZONES[1]}}),
        json!({"cpu": "1", "nodeSelector": {"kubernetes.io/arch": "arm64"}}),
        json!({"cpu": "1", "tolerations": [{"key": "team", "operator": "Exists"}]}),
        json!({"cpu": "1", "topologySpreadConstraints": spread(ZONE, 6)}),
        json!({"cpu": "1", "topologySpreadConstraints": spread(HOST, 7)}),
        json!({"cpu": "1", "affinity": required("podAntiAffinity", HOST, 8)}),
        // Away from the pods of kind 0, zone by zone; together with those of kind 1, host by host.
        json!({"cpu": "1", "affinity": required("podAntiAffinity", ZONE, 0)}),
        json!({"cpu": "100m", "affinity": required("podAffinity", HOST, 1)}),
    ];
    for (number, kind) in kinds.iter_mut().enumerate() {
        kind["labels"] = json!({"kind": number.to_string()});
    }
    kinds
}

/// The numbers of pods of three kinds, one to five together.
fn multisets() -> Vec<[usize; 3]> {
    let mut found = Vec::new();
    for a in 0..=5 {
        for b in 0..=5 - a {
            for c in 0..=5 - a - b {
                if a + b + c > 0 {
                    found.push([a, b, c]);
                }
            }
        }
    }
    found
}

/// Every choice of three out of `count`.
fn triples(count: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..count).flat_map(move |a| (a + 1..count).flat_map(move |b| (b + 1..count).map(move |c| [a, b, c])))
}

/// A limited pool for those who tolerate its taint, an open one, and a node with a pod of kind 0 and one of kind 8.
fn cluster(kinds: &[Value]) -> World {
    let mut world = World::without_pools();
    world.types.truncate(0);
    let taints = json!([{"key": "team", "effect": "NoSchedule"}]);
    world.pool("limited", json!({"weight": 10, "taints": taints, "limits": {"cpu": "8"}}));
    world.pool("open", json!({}));
    world.node("node-1", ZONES[0], &[("bound-0", kinds[0].clone()), ("bound-8", kinds[8].clone())]);
    world
}

fn types() -> Vec<nodecast_karpenter::instance_types::InstanceType> {
    let of = |cpu: i64, gib: i64, arch: &str| instance_type(&format!("{arch}-{cpu}-{gib}"), cpu, gib, arch);
    vec![of(2, 4, "amd64"), of(4, 32, "amd64"), of(8, 16, "amd64"), of(2, 8, "arm64"), of(16, 32, "arm64")]
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn small_pod_multisets_have_valid_plans() {
    let kinds = kinds();
    let mut world = cluster(&kinds);
    world.types = types();
    let specs: Vec<_> = kinds.iter().map(|kind| super::world::pod_spec(kind.clone())).collect();
    let mut plans = 0;
    for chosen in triples(kinds.len()) {
        for counts in multisets() {
            world.pods.clear();
            for (kind, count) in chosen.into_iter().zip(counts) {
                let pods = (0..count).map(|pod| (format!("{kind}-{pod}"), Symbol::new("default"), specs[kind].clone()));
                world.pods.extend(pods);
            }
            check(&world, &world.plan());
            plans += 1;
        }
    }
    assert_eq!(plans, 165 * 55);
}

#[test]
fn small_multisets_on_three_types_have_valid_plans() {
    let kinds = kinds();
    let mut world = cluster(&kinds);
    let specs: Vec<_> = kinds.iter().map(|kind| super::world::pod_spec(kind.clone())).collect();
    for chosen in triples(types().len()) {
        world.types = chosen.map(|item| types()[item].clone()).to_vec();
        for kinds in [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 9, 10]] {
            for counts in multisets() {
                world.pods.clear();
                for (kind, count) in kinds.into_iter().zip(counts) {
                    let name = |pod: usize| format!("{kind}-{pod}");
                    let pods = (0..count).map(|pod| (name(pod), Symbol::new("default"), specs[kind].clone()));
                    world.pods.extend(pods);
                }
                check(&world, &world.plan());
            }
        }
    }
}

/// A node of the outcome: what its labels can be, and the pods on it, bound ones first.
struct Place<'w> {
    host: String,
    labels: Requirements,
    pods: Vec<&'w PodSpec>,
    /// How many of them were there before.
    bound: usize,
}

fn check(world: &World, plan: &PackingPlan) {
    let mut seen: Vec<usize> = plan.unschedulable.iter().map(|plan| plan.pod).collect();
    for claim in &plan.claims {
        seen.extend(&claim.pods);
        claim_is_sound(world, claim);
    }
    for placement in &plan.existing {
        seen.extend(&placement.pods);
        node_is_sound(world, placement.node, &placement.pods);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..world.pods.len()).collect::<Vec<_>>(), "every pod has one place or none");
    limits_hold(world, plan);
    let places = places(world, plan);
    for place in &places {
        for (position, spec) in place.pods.iter().enumerate().skip(place.bound) {
            topology_holds(&places, place, position, spec);
        }
    }
}

fn selects(spec: &PodSpec, labels: &Requirements) -> bool {
    let fits = |wanted: &Requirements| {
        wanted.iter().all(|one| {
            labels.get(one.key).is_some_and(|label| label.intersection(one) == *label && !label.values.is_empty())
        })
    };
    fits(&Requirements::from_labels(&spec.node_selector))
}

fn claim_is_sound(world: &World, claim: &PlannedClaim) {
    let mut requests = claim.daemon_requests.clone();
    for &pod in &claim.pods {
        let spec = &world.pods[pod].2;
        requests.add(&spec.requests());
        assert_eq!(first_untolerated(&claim.taints, &spec.tolerations), None);
        assert!(selects(spec, &claim.requirements), "{} in {}", world.pods[pod].0, claim.requirements);
    }
    assert!(!claim.instance_types.is_empty() && !claim.pods.is_empty());
    for instance_type in claim.instance_types.iter() {
        let instance_type = &world.types[instance_type.index as usize];
        assert!(requests.fits(&instance_type.allocatable), "{} cannot hold {requests}", instance_type.name);
        assert!(instance_type.requirements.intersects(&claim.requirements).is_ok(), "{}", instance_type.name);
        let allowed = instance_type.offerings.iter().any(|offering| {
            let zone = claim.requirements.get(well_known::ZONE).is_none_or(|zones| zones.has(offering.zone));
            let kinds = claim.requirements.get(well_known::CAPACITY_TYPE);
            offering.available && zone && kinds.is_none_or(|kinds| kinds.has(offering.capacity_type))
        });
        assert!(allowed, "{} has no offering", instance_type.name);
    }
}

fn node_is_sound(world: &World, node: usize, pods: &[usize]) {
    let node = &world.nodes[node];
    let mut used = Resources::new();
    node.pods.iter().for_each(|(_, spec)| used.add(&spec.requests()));
    for &pod in pods {
        let spec = &world.pods[pod].2;
        used.add(&spec.requests());
        assert!(
            spec.selects_node(&node.labels, &node.name) && first_untolerated(&node.taints, &spec.tolerations).is_none()
        );
    }
    assert!(used.fits(&node.allocatable), "{} holds {used}", node.name);
}

/// Each claim counts as the largest type that it may still become.
fn limits_hold(world: &World, plan: &PackingPlan) {
    for (position, pool) in world.pools.iter().enumerate() {
        let Some(limit) = pool.limits.find(ResourceName::CPU) else { continue };
        let claims = plan.claims.iter().filter(|claim| claim.pool == position);
        let largest = claims.map(|claim| {
            claim
                .instance_types
                .iter()
                .map(|instance_type| world.types[instance_type.index as usize].capacity.cpu_milli())
                .max()
                .unwrap_or(0)
        });
        assert!(largest.sum::<i64>() <= limit, "{} is over its limit", pool.name);
    }
}

fn places<'w>(world: &'w World, plan: &PackingPlan) -> Vec<Place<'w>> {
    let spec = |&pod: &usize| &*world.pods[pod].2;
    let mut places = Vec::new();
    for (position, node) in world.nodes.iter().enumerate() {
        let bound = node.pods.iter().map(|(_, spec)| &**spec);
        let here = plan.existing.iter().filter(|plan| plan.node == position).flat_map(|plan| &plan.pods).map(spec);
        let labels = Requirements::from_labels(&node.labels);
        places.push(Place {
            host: node.name.clone(),
            labels,
            pods: bound.chain(here).collect(),
            bound: node.pods.len(),
        });
    }
    for (number, claim) in plan.claims.iter().enumerate() {
        let pods = claim.pods.iter().map(spec).collect();
        places.push(Place { host: format!("new-{number}"), labels: (*claim.requirements).clone(), pods, bound: 0 });
    }
    places
}

/// The domains of a key that a place may be in.
fn domains(place: &Place<'_>, key: Symbol) -> BTreeSet<Symbol> {
    if key.as_str() == HOST {
        return BTreeSet::from([Symbol::new(&place.host)]);
    }
    let any = Requirement::new(key, Operator::In, ZONES.map(Symbol::new));
    place.labels.get(key).map_or(any.clone(), |label| label.intersection(&any)).values
}

fn topology_holds(places: &[Place<'_>], place: &Place<'_>, position: usize, spec: &PodSpec) {
    let meant = |term: &PodAffinityTerm, other: &PodSpec| {
        term.selector.as_ref().is_some_and(|selector| selector.matches(&other.labels))
    };
    let others = |key: Symbol, wanted: &dyn Fn(&PodSpec) -> bool| {
        let here = domains(place, key);
        let same = places.iter().filter(|other| !domains(other, key).is_disjoint(&here));
        same.flat_map(|other| other.pods.iter().enumerate().map(move |(index, pod)| (other, index, *pod)))
            .filter(|(other, index, _)| other.host != place.host || *index != position)
            .filter(|(_, _, pod)| wanted(pod))
            .count()
    };
    for term in &spec.pod_anti_affinity.required {
        assert_eq!(others(term.topology_key, &|pod| meant(term, pod)), 0, "a pod that is kept away is near");
    }
    for term in &spec.pod_affinity.required {
        assert!(others(term.topology_key, &|pod| meant(term, pod)) > 0, "nobody of those wanted is near");
    }
    for spread in spec
        .topology_spread
        .iter()
        .filter(|topology_spread| topology_spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule)
    {
        let counted = |pod: &PodSpec| spread.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels));
        let count = |domain: Symbol| {
            let there = places.iter().filter(|place| domains(place, spread.topology_key) == BTreeSet::from([domain]));
            there.flat_map(|place| &place.pods).filter(|pod| counted(pod)).count() as i64
        };
        let here = domains(place, spread.topology_key);
        assert_eq!(here.len(), 1, "a spread pod's node has one domain");
        let by_host = spread.topology_key.as_str() == HOST;
        let least = if by_host { 0 } else { ZONES.map(|zone| count(Symbol::new(zone))).into_iter().min().unwrap_or(0) };
        assert!(here.into_iter().all(|domain| count(domain) - least <= spread.max_skew), "the skew is too large");
    }
}
