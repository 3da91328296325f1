//! Volumes: where they are and how many a node takes.

use nodecast_karpenter::packing::{Unschedulable, VolumeRefusal};
use nodecast_model::domain::Symbol;
use nodecast_model::domain::pod::NodeSelectorTerm;
use nodecast_model::domain::volumes::{
    DiskClass, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeBindingMode,
};
use serde_json::{Value, json};

use super::world::{World, pod_spec};

pub const ROWS: &[u16] = &[89, 119, 120, 121, 122];

const ZONE: &str = "topology.kubernetes.io/zone";

fn in_zones(zones: &[&str]) -> NodeSelectorTerm {
    let expression = json!([{"key": ZONE, "operator": "In", "values": zones}]);
    let pod = pod_spec(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": expression}]}}}}));
    pod.node_affinity.required[0].clone()
}

/// A claim bound to a volume whose alternatives are these zone lists.
pub fn bound(world: &mut World, name: &str, alternatives: &[&[&str]]) {
    world.claims.push(PersistentVolumeClaim {
        volume: Some(Symbol::new(name)),
        bind_completed: true,
        ..PersistentVolumeClaim::unbound(Symbol::new("default"), Symbol::new(name), None)
    });
    world.volumes.push(PersistentVolume {
        name: Symbol::new(name),
        driver: Some(Symbol::new("ebs.csi.aws.com")),
        node_affinity: alternatives.iter().map(|zones| in_zones(zones)).collect(),
        node_local: false,
        deleting: false,
        class: None,
        attributes: None,
        gib: None,
        retain: false,
        kept_for: None,
    });
}

fn uses(claims: &[&str]) -> Value {
    let volumes: Vec<Value> =
        claims.iter().map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}})).collect();
    json!({"cpu": "100m", "volumes": volumes})
}

#[test]
fn a_pod_goes_where_its_volumes_are() {
    let mut world = World::new();
    bound(&mut world, "one", &[&["zone-2"]]);
    bound(&mut world, "either", &[&["zone-1"], &["zone-2"]]);
    world.pod("p", uses(&["one", "either"]));
    let answer = world.ask();
    assert_eq!(answer.requires(0, ZONE), format!("{ZONE} In [zone-2]"));
}

#[test]
fn alternatives_are_tried_in_turn_and_never_relaxed() {
    let mut world = World::new();
    bound(&mut world, "either", &[&["nowhere"], &["zone-3"]]);
    bound(&mut world, "nowhere", &[&["nowhere"]]);
    world.pod("p", uses(&["either"]));
    let mut choosy = uses(&["nowhere"]);
    choosy["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
        "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-1"]}]}}]}});
    world.pod("q", choosy);
    let answer = world.ask();
    assert_eq!((answer.requires(0, ZONE), answer.place("q")), (format!("{ZONE} In [zone-3]"), "-".to_owned()));
}

#[test]
fn volume_zone_affects_spread_only_through_node() {
    let mut world = World::new();
    bound(&mut world, "one", &[&["zone-1"]]);
    let spread = json!([{"topologyKey": ZONE, "maxSkew": 1, "minDomains": 3, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}}]);
    let pod = json!({"labels": {"app": "a"}, "cpu": "1.5", "topologySpreadConstraints": spread});
    for zone in super::world::ZONES {
        world.node(&format!("node-{zone}"), zone, &[("old", pod.clone())]);
    }
    let mut with_volume = pod;
    with_volume["volumes"] = uses(&["one"])["volumes"].clone();
    world.pod("p", with_volume);
    assert_eq!(world.ask().place("p"), "node-zone-1");
}

#[test]
fn shared_volume_counts_once_against_node_limit() {
    let driver = Symbol::new("ebs.csi.aws.com");
    let mut world = World::new();
    for claim in 0..12 {
        bound(&mut world, &format!("claim-{claim}"), &[]);
    }
    world.node("n", "zone-1", &[]).volume_limits = vec![(driver, 10)];
    for pod in 0..6 {
        world.pod(&format!("p-{pod}"), uses(&[&format!("claim-{}", 2 * pod), &format!("claim-{}", 2 * pod + 1)]));
    }
    let answer = world.ask();
    assert_eq!((answer.plan.existing[0].pods.len(), answer.place("p-5")), (5, "new-0".to_owned()));
    world.pods.clear();
    world.nodes[0].volume_limits = vec![(driver, 1)];
    world.pods("shared", 6, uses(&["claim-0"]));
    assert_eq!(world.ask().plan.existing[0].pods.len(), 6);
}

#[test]
fn unusable_volume_excludes_only_its_pod() {
    let name = Symbol::new("c");
    let claim = PersistentVolumeClaim::unbound(Symbol::new("default"), name, None);
    let class = |binding_mode| StorageClass {
        name: Symbol::new("standard"),
        provisioner: Symbol::new("ebs.csi.aws.com"),
        binding_mode,
        allowed_topologies: vec![in_zones(&["zone-2"])],
        default_class: false,
        disk: DiskClass::default(),
        retain: false,
        expandable: false,
    };
    let standard = Some(Symbol::new("standard"));
    let immediate = vec![class(VolumeBindingMode::Immediate)];
    let waiting = vec![class(VolumeBindingMode::WaitForFirstConsumer)];
    let cases = [
        (vec![], vec![], Some(VolumeRefusal::ClaimMissing(name))),
        (vec![PersistentVolumeClaim { deleting: true, ..claim }], vec![], Some(VolumeRefusal::ClaimDeleting(name))),
        (vec![PersistentVolumeClaim { lost: true, ..claim }], vec![], Some(VolumeRefusal::ClaimLost(name))),
        (
            vec![PersistentVolumeClaim { volume: Some(name), ..claim }],
            vec![],
            Some(VolumeRefusal::BindingUnfinished(name)),
        ),
        (
            vec![PersistentVolumeClaim { volume: Some(name), bind_completed: true, ..claim }],
            vec![],
            Some(VolumeRefusal::VolumeMissing(name)),
        ),
        (vec![claim], vec![], Some(VolumeRefusal::NoStorageClass(name))),
        (
            vec![PersistentVolumeClaim { class: standard, ..claim }],
            vec![],
            Some(VolumeRefusal::StorageClassMissing(Symbol::new("standard"))),
        ),
        (
            vec![PersistentVolumeClaim { class: standard, ..claim }],
            immediate,
            Some(VolumeRefusal::ImmediateBinding(name)),
        ),
        (vec![PersistentVolumeClaim { class: standard, ..claim }], waiting, None),
    ];
    for (claims, classes, refusal) in cases {
        let mut world = World::new();
        (world.claims, world.classes) = (claims, classes);
        world.pod("p", uses(&["c"])).pod("other", json!({}));
        let answer = world.ask();
        assert_ne!(answer.place("other"), "-");
        let found = answer.plan.unschedulable.first().map(|plan| plan.reason.clone());
        assert_eq!(found, refusal.map(Unschedulable::Volume));
    }
}
