//! Pod affinity and anti-affinity.

use nodecast_model::domain::Labels;
use nodecast_model::domain::symbol::Symbol;
use serde_json::{Value, json};

use super::world::{World, pod_spec};

pub const ROWS: &[u16] = &[90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102];

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn term(key: &str, app: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

/// A pod labelled `app: own` with one term, required or preferred, of `podAffinity` or `podAntiAffinity`.
fn pod(text: &str, kind: &str, required: bool, term: Value) -> Value {
    let rule = if required {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
    } else {
        json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]})
    };
    json!({"labels": {"app": text}, "cpu": "100m", "affinity": {kind: rule}})
}

fn plain(text: &str) -> Value {
    json!({"labels": {"app": text}, "cpu": "100m"})
}

fn with(mut base: Value, key: &str, value: Value) -> Value {
    base[key] = value;
    base
}

#[test]
fn a_follower_lands_where_its_target_is() {
    let mut world = World::new();
    world.pod("target", with(plain("t"), "nodeSelector", json!({"kubernetes.io/arch": "arm64"})));
    world.pod("follower", pod("f", "podAffinity", true, term(HOST, "t")));
    let answer = world.ask();
    assert_eq!((answer.place("follower"), answer.sizes()), (answer.place("target"), vec![2]));
}

#[test]
fn host_self_affinity_stays_on_first_host() {
    let mut world = World::new();
    for instance_type in &mut world.types {
        instance_type.allocatable.set(nodecast_model::domain::ResourceName::PODS, 5);
    }
    world.pods("p", 10, pod("a", "podAffinity", true, term(HOST, "a")));
    assert_eq!((world.ask().sizes(), world.ask().unplaced()), (vec![5], 5));
    world.settle();
    assert_eq!((world.ask().sizes(), world.ask().unplaced()), (vec![], 5));
}

#[test]
fn host_in_wrong_zone_still_attracts_affine_pods() {
    let affine = pod("a", "podAffinity", true, term(HOST, "a"));
    let mut world = World::new();
    world.node("n", "zone-1", &[("first", affine.clone())]);
    let zones = json!([{"key": ZONE, "operator": "In", "values": ["zone-2", "zone-3"]}]);
    let mut limited = affine;
    limited["affinity"]["nodeAffinity"] = json!({"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": zones}]}});
    world.pods("p", 3, limited);
    assert_eq!(world.ask().unplaced(), 3);
}

#[test]
fn zone_self_affinity_starts_in_requested_zone() {
    let affine = pod("a", "podAffinity", true, term(ZONE, "a"));
    let in_zone = |zone: &str| with(affine.clone(), "nodeSelector", json!({ZONE: zone}));
    let mut world = World::new();
    world.pods("p", 10, in_zone("zone-3"));
    assert_eq!(world.ask().requires(0, ZONE), format!("{ZONE} In [zone-3]"));
    assert_eq!(world.ask().sizes(), [10]);
    world.pod("q", in_zone("zone-1"));
    assert_eq!(world.ask().sizes(), [10, 1], "nobody is where the second could go, so it starts anew");
}

#[test]
fn match_label_keys_use_the_pods_labels() {
    let of = |tenant: &str, term: Value| {
        with(pod("a", "podAntiAffinity", true, term), "labels", json!({"app": "a", "tenant": tenant}))
    };
    let keyed = |keys: &str| with(term(HOST, "a"), keys, json!(["tenant"]));
    for (keys, sizes) in [("mismatchLabelKeys", vec![3, 3]), ("matchLabelKeys", vec![2, 2, 2])] {
        let mut world = World::new();
        world.pods("x", 3, of("x", keyed(keys))).pods("y", 3, of("y", keyed(keys)));
        let mut found = world.ask().sizes();
        found.sort_unstable();
        assert_eq!(found, sizes, "{keys}");
    }
    // Pods that run repel others likewise.
    let mut world = World::new();
    world.node("n", "zone-1", &[("first", of("x", keyed("mismatchLabelKeys")))]);
    world.pods("x", 1, of("x", keyed("mismatchLabelKeys"))).pods("y", 1, of("y", keyed("mismatchLabelKeys")));
    assert_eq!(world.ask().sizes(), [1]);
}

#[test]
fn preferences_give_way() {
    let mut world = World::new();
    world.pod("lonely", pod("l", "podAffinity", false, term(HOST, "nobody")));
    let anti = with(pod("a", "podAntiAffinity", false, term(ZONE, "a")), "cpu", json!("1"));
    world.pods("p", 8, anti);
    assert_eq!(world.ask().unplaced(), 0);
}

#[test]
fn anti_affinity_separates_and_runs_out_of_domains() {
    for (key, values) in [(ZONE, &["zone-1", "zone-2", "zone-3"][..]), ("kubernetes.io/arch", &["amd64", "arm64"])] {
        let mut world = World::new();
        for value in values.iter().chain(&values[..1]) {
            let pod = pod("a", "podAntiAffinity", true, term(key, "a"));
            world.pod(&format!("p-{}", world.pods.len()), with(pod, "nodeSelector", json!({key: value})));
        }
        assert_eq!((world.ask().sizes(), world.ask().unplaced()), (vec![1; values.len()], 1), "{key}");
    }
    let mut world = World::new();
    world.pods("p", 5, pod("a", "podAntiAffinity", true, term(HOST, "a")));
    assert_eq!(world.ask().sizes(), [1; 5]);
}

#[test]
fn pod_repelled_in_every_zone_is_unschedulable() {
    let mut world = World::new();
    for zone in super::world::ZONES {
        let guard = pod("guard", "podAntiAffinity", true, term(ZONE, "victim"));
        world.pod(&format!("guard-{zone}"), with(with(guard, "nodeSelector", json!({ZONE: zone})), "cpu", json!("1")));
    }
    world.pod("victim", plain("victim"));
    assert_eq!(world.ask().place("victim"), "-");
}

#[test]
fn undecided_zone_blocks_all_zones_until_next_pass() {
    let mut world = World::new();
    let guard = with(pod("guard", "podAntiAffinity", true, term(ZONE, "victim")), "cpu", json!("1"));
    world.pod("guard", guard).pod("victim", plain("victim"));
    assert_eq!(world.ask().place("victim"), "-");
    world.settle();
    let answer = world.ask();
    assert_eq!(answer.place("victim"), "new-0");
    assert_eq!(answer.requires(0, ZONE), format!("{ZONE} In [zone-2 zone-3]"));
}

#[test]
fn running_pods_block_only_with_required_anti_affinity() {
    for (required, place) in [(true, "new-0"), (false, "n")] {
        let mut world = World::new();
        world.node("n", "zone-1", &[("guard", pod("guard", "podAntiAffinity", required, term(HOST, "victim")))]);
        world.pod("victim", plain("victim"));
        assert_eq!(world.ask().place("victim"), place);
    }
}

#[test]
fn affinity_to_nobody_fails() {
    let mut world = World::new();
    world.pods("p", 2, pod("a", "podAffinity", true, term(ZONE, "nobody")));
    assert_eq!(world.ask().unplaced(), 2);
}

#[test]
fn affinity_chain_is_placed_in_one_pass() {
    for (order, unplaced) in
        [(["a", "b", "c", "d"], 0), (["d", "c", "b", "a"], 0), (["c", "a", "d", "b"], 0), (["x", "b", "c", "d"], 3)]
    {
        let mut world = World::new();
        for name in order {
            let spec = match name {
                "a" | "x" => plain(name),
                "b" => pod("b", "podAffinity", true, term(HOST, "a")),
                "c" => pod("c", "podAffinity", true, term(HOST, "b")),
                _ => pod("d", "podAffinity", true, term(HOST, "c")),
            };
            world.pod(name, spec);
        }
        assert_eq!(world.ask().unplaced(), unplaced, "{order:?}");
    }
}

#[test]
fn affinity_terms_default_to_pod_namespace() {
    let other = Symbol::new("other");
    let follower = |extra: &[(&str, Value)]| {
        let mut term = term(HOST, "t");
        for (key, value) in extra {
            term[*key] = value.clone();
        }
        pod("f", "podAffinity", true, term)
    };
    for (extra, placed) in [
        (vec![], false),
        (vec![("namespaces", json!(["other"]))], true),
        (vec![("namespaces", json!(["third"]))], false),
        (vec![("namespaceSelector", json!({}))], true),
        (vec![("namespaceSelector", json!({"matchLabels": {"kind": "x"}}))], true),
        (vec![("namespaceSelector", json!({"matchLabels": {"kind": "y"}}))], false),
    ] {
        let mut world = World::new();
        world.namespaces = vec![(other, Labels::new().with("kind", "x")), (Symbol::new("default"), Labels::new())];
        world.pods.push(("target".to_owned(), other, pod_spec(with(plain("t"), "cpu", json!("1")))));
        world.pod("follower", follower(&extra));
        assert_eq!(world.ask().unplaced() == 0, placed, "{extra:?}");
    }
}
