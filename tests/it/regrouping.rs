//! From the dump of a cluster with Karpenter to an answer about node groups and the Cluster Autoscaler, without an edit.

use nodecast::catalog::Catalog;
use nodecast::scenario::Scenario;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::PodFacts;

use crate::cli::Place;
use crate::migration::{nodes, origins, workload};

/// A big cluster with three NodePools.
const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/cluster.yaml");

fn outcome(scenario: &Scenario, policy: &str) -> Outcome {
    let policy = scenario.policies.iter().find(|own| own.name == policy).unwrap();
    run(scenario, policy, Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

fn waiting(outcome: &Outcome) -> usize {
    let waits = |pod: &PodFacts| pod.scheduled.is_none() && pod.removed.is_none();
    outcome.record.pods.iter().filter(waits).count()
}

/// A cluster with one NodePool, of two sizes and both capacity types, and a system group with Karpenter on it.
fn dump(zonal: bool) -> String {
    let of_pool = |text: String, kind: &str| {
        text.replace("eks.amazonaws.com/nodegroup: ", "karpenter.sh/nodepool: general, team: shop, was: ").replace(
            "eks.amazonaws.com/capacityType: SPOT",
            &format!("karpenter.sh/capacity-type: spot, karpenter.k8s.aws/instance-family: {kind}"),
        )
    };
    let pool = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: general}\nspec:\n  template:\n    metadata: {labels: {team: shop}}\n    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      taints: [{key: shared, value: \"true\", effect: NoSchedule}]\n      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]\n---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: idle}\nspec:\n  template:\n    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]\n";
    let web = workload("web", "web", 8, 900, ("four", 4), Some("shared"));
    let selects = "nodeSelector: {karpenter.sh/capacity-type: spot, team: shop}";
    let web = web.replace("nodeSelector: {role: four}", selects);
    let spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}], containers:";
    [
        nodes("system", 2, "m5.large", false, None),
        of_pool(nodes("four", 4, "m5.xlarge", true, Some("shared")), "m5"),
        of_pool(nodes("two", 2, "m5.large", true, Some("shared")), "m5"),
        workload("karpenter", "public.ecr.aws/karpenter/controller:1.8.2", 2, 200, ("system", 2), None),
        if zonal { web.replace("containers:", spread) } else { web },
        pool.to_owned(),
    ]
    .concat()
}

#[test]
fn node_groups_take_the_place_of_karpenter_without_an_edit() {
    let place = Place::new();
    place.put("cluster.yaml", &dump(false));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (mut scenario, _) = Scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let names: Vec<&str> = scenario.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["today", "cost-aware", "cluster-autoscaler"]);
    let groups = &scenario.policies[2].manifests.node_groups;
    let sizes: Vec<_> =
        groups.iter().map(|own| (own.name.as_str(), own.min_size, own.desired_size, own.max_size)).collect();
    let expected = [("system", 2, 2, 2), ("general-spot-2cpu-8gib", 0, 2, 5), ("general-spot-4cpu-16gib", 0, 4, 8)];
    assert_eq!(sizes, expected);
    let four = &groups[2];
    assert_eq!(four.taints[0].key.as_str(), "shared");
    let label = |key: &str| four.labels.iter().find(|(own, _)| own.as_str() == key).map(|(_, value)| value.as_str());
    assert_eq!((label("team"), label("karpenter.sh/capacity-type")), (Some("shop"), Some("spot")));
    assert_eq!(
        (label("karpenter.sh/nodepool"), label("karpenter.k8s.aws/instance-family")),
        (None, None),
        "no pod asks"
    );
    assert!(four.distribution.is_spot() && four.managed);
    scenario.duration = nodecast::domain::SimDuration::from_secs(3_600);
    let (today, autoscaler) = (outcome(&scenario, "today"), outcome(&scenario, "cluster-autoscaler"));
    assert_eq!((waiting(&today), waiting(&autoscaler)), (0, 0));
    assert!(origins(&today).contains(&"NodePool general".to_owned()), "{:?}", origins(&today));
    assert!(origins(&autoscaler).iter().all(|own| own.starts_with("group ")), "{:?}", origins(&autoscaler));
    let running = |outcome: &Outcome, name: &str| {
        outcome.record.pods.iter().filter(|pod| pod.name.starts_with(name) && pod.removed.is_none()).count()
    };
    assert_eq!((running(&autoscaler, "karpenter"), running(&autoscaler, "cluster-autoscaler")), (0, 1));
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(text.contains("no node group stands for idle, of which no node runs now."), "{text}");
}

#[test]
fn where_pods_are_bound_to_zones_each_zone_has_a_group() {
    let place = Place::new();
    place.put("cluster.yaml", &dump(true));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (mut scenario, _) = Scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let groups = &scenario.policies[2].manifests.node_groups;
    assert!(groups.iter().any(|own| own.name.as_str() == "general-spot-4cpu-16gib-us-east-1b"), "{groups:?}");
    assert!(groups.iter().filter(|own| own.name.as_str() != "system").all(|own| own.zones.len() == 1));
    scenario.duration = nodecast::domain::SimDuration::from_secs(3_600);
    assert_eq!(waiting(&outcome(&scenario, "cluster-autoscaler")), 0);
}

#[test]
fn a_comparison_with_node_groups_places_every_pod_of_a_big_cluster() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["init", "own", "--from", DUMP]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let words = ["compare", "own/scenario.yaml", "--policies", "today,cluster-autoscaler", "--duration", "1h"];
    let (out, err, code) = place.nodecast(&[&words[..], &["--replications", "1", "--out", "out"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("cluster-autoscaler is ") || out.contains("cluster-autoscaler costs "), "{out}");
    assert!(!out.contains("pending at the end"), "{out}");
}
