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
    let policy = scenario.policies.iter().find(|this_policy| this_policy.name == policy).unwrap();
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
fn node_groups_replace_karpenter_without_edits() {
    let place = Place::new();
    place.put("cluster.yaml", &dump(false));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (mut scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let names: Vec<&str> = scenario.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["today", "cost-aware", "cluster-autoscaler", "auto-mode"]);
    let groups = &scenario.policies[2].manifests.node_groups;
    let sizes: Vec<_> =
        groups.iter().map(|group| (group.name.as_str(), group.min_size, group.desired_size, group.max_size)).collect();
    let expected = [("system", 2, 2, 2), ("general-spot-2cpu-8gib", 0, 2, 5), ("general-spot-4cpu-16gib", 0, 4, 8)];
    assert_eq!(sizes, expected);
    let four = &groups[2];
    assert_eq!(four.taints[0].key.as_str(), "shared");
    let label =
        |key: &str| four.labels.iter().find(|(this_key, _)| this_key.as_str() == key).map(|(_, value)| value.as_str());
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
    assert!(origins(&autoscaler).iter().all(|origin| origin.starts_with("group ")), "{:?}", origins(&autoscaler));
    let running = |outcome: &Outcome, name: &str| {
        outcome.record.pods.iter().filter(|pod| pod.name.starts_with(name) && pod.removed.is_none()).count()
    };
    assert_eq!((running(&autoscaler, "karpenter"), running(&autoscaler, "cluster-autoscaler")), (0, 1));
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(text.contains("no node group stands for idle, of which no node runs now."), "{text}");
}

#[test]
fn zone_bound_pods_get_one_group_per_zone() {
    let place = Place::new();
    place.put("cluster.yaml", &dump(true));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (mut scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let groups = &scenario.policies[2].manifests.node_groups;
    assert!(groups.iter().any(|group| group.name.as_str() == "general-spot-4cpu-16gib-us-east-1b"), "{groups:?}");
    assert!(groups.iter().filter(|group| group.name.as_str() != "system").all(|group| group.zones.len() == 1));
    scenario.duration = nodecast::domain::SimDuration::from_secs(3_600);
    assert_eq!(waiting(&outcome(&scenario, "cluster-autoscaler")), 0);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn node_group_comparison_places_all_pods() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["init", "own", "--from", DUMP]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let words = ["compare", "own/scenario.yaml", "--policies", "today,cluster-autoscaler", "--duration", "1h"];
    let (out, err, code) = place.nodecast(&[&words[..], &["--replications", "1", "--out", "out"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("cluster-autoscaler is ") || out.contains("cluster-autoscaler costs "), "{out}");
    assert!(!out.contains("pending at the end"), "{out}");
}

/// The objects as EKS Auto Mode has them: its labels, its class, and no Karpenter of one's own.
fn of_auto_mode(dump: &str) -> String {
    let dump = dump.replace(
        "karpenter.sh/nodepool: general",
        "karpenter.sh/nodepool: general, eks.amazonaws.com/compute-type: auto",
    );
    dump.replace("group: karpenter.k8s.aws, kind: EC2NodeClass", "group: eks.amazonaws.com, kind: NodeClass")
        .replace("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-")
        .replace("public.ecr.aws/karpenter/controller:1.8.2", "operator")
        .replace("name: karpenter", "name: operator")
        .replace("expireAfter: 720h", "expireAfter: 336h")
}

/// With requirements on what only one of the two calls so, a life that Auto Mode refuses, and a pod that asks for a label.
fn demanding() -> String {
    let requirements = "requirements: [{key: karpenter.k8s.aws/instance-category, operator: In, values: [m]}, {key: karpenter.k8s.aws/instance-capability-flex, operator: NotIn, values: [\"true\"]}, ";
    let text = dump(false).replacen("requirements: [", requirements, 1);
    let text = text.replacen("      taints: [{key: shared", "      expireAfter: 720h\n      taints: [{key: shared", 1);
    text.replace("team: shop}, tolerations", "team: shop, karpenter.k8s.aws/instance-category: m}, tolerations")
}

#[test]
fn auto_mode_replaces_karpenter_without_edits() {
    let place = Place::new();
    place.put("cluster.yaml", &demanding());
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (mut scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let policy = scenario.policies.iter().find(|policy| policy.name == "auto-mode").unwrap();
    let general = policy.manifests.node_pools.iter().find(|node_pool| node_pool.name.as_str() == "general").unwrap();
    assert!(general.auto_mode && general.taints[0].key.as_str() == "shared");
    let keys: Vec<&str> = general.requirements.iter().map(|requirement| requirement.key.as_str()).collect();
    assert_eq!(keys, ["eks.amazonaws.com/instance-category", "karpenter.sh/capacity-type"]);
    assert_eq!(general.expire_after, Some(nodecast::domain::SimDuration::from_secs(336 * 3_600)));
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    for said in
        ["EKS Auto Mode lets none live for more than", "nothing asks for karpenter.k8s.aws/instance-capability-flex"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    scenario.duration = nodecast::domain::SimDuration::from_secs(3_600);
    let managed = outcome(&scenario, "auto-mode");
    assert_eq!(waiting(&managed), 0);
    let of_pools = managed.record.nodes.iter().filter(|node| node.origin.name().as_str() == "general");
    assert!(
        of_pools.clone().count() > 0 && of_pools.clone().all(|pool| pool.requested > nodecast::domain::SimTime::ZERO)
    );
    assert!(managed.bill.lines.iter().any(|line| line.item == nodecast::cloud::BillItem::AutoModeFee));
    let running = managed.record.pods.iter().filter(|pod| pod.name.starts_with("karpenter") && pod.removed.is_none());
    assert_eq!(running.count(), 0, "AWS runs it");
}

#[test]
fn karpenter_replaces_auto_mode_without_edits() {
    let place = Place::new();
    place.put(
        "cluster.yaml",
        &of_auto_mode(
            &demanding().replace(
                "{key: karpenter.k8s.aws/instance-capability-flex, operator: NotIn, values: [\"true\"]}, ",
                "",
            ),
        ),
    );
    let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let (mut scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    let names: Vec<&str> = scenario.policies.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["today", "karpenter"]);
    let general = scenario.policies[1]
        .manifests
        .node_pools
        .iter()
        .find(|node_pool| node_pool.name.as_str() == "general")
        .unwrap();
    assert!(!general.auto_mode);
    assert_eq!(general.requirements[0].key.as_str(), "karpenter.k8s.aws/instance-category");
    scenario.duration = nodecast::domain::SimDuration::from_secs(3_600);
    let (today, this_outcome) = (outcome(&scenario, "today"), outcome(&scenario, "karpenter"));
    assert_eq!((waiting(&today), waiting(&this_outcome)), (0, 0));
    let launched = |outcome: &Outcome| {
        let launched = outcome.record.nodes.iter().filter(|node| node.requested > nodecast::domain::SimTime::ZERO);
        launched.filter(|launched| launched.origin.name().as_str() == "general").count()
    };
    assert_eq!(launched(&today), 0, "a run that changes nothing begins quiet");
    assert!(launched(&this_outcome) > 0);
    assert!(!this_outcome.bill.lines.iter().any(|line| line.item == nodecast::cloud::BillItem::AutoModeFee));
    let agents = this_outcome.record.pods.iter().filter(|pod| pod.name.starts_with("aws-node")).count();
    assert!(agents >= launched(&this_outcome), "each node has the network plugin's pod: {agents}");
}

#[test]
fn network_costs_follow_node_addresses() {
    let place = Place::new();
    let written = |dump: &str| {
        place.put("cluster.yaml", dump);
        let _ = std::fs::remove_dir_all(place.path("own"));
        let (_, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
        assert_eq!(code, Some(0), "{err}");
        std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap()
    };
    let private = written(&dump(false));
    assert!(private.contains("    nat_gateways: { count: 3 }"), "{private}");
    assert!(private.contains("pull images through 3 NAT gateways, one in each zone"), "{private}");
    let addresses = "status:\n  addresses: [{type: ExternalIP, address: 203.0.113.7}]\n  capacity";
    let public = written(&dump(false).replace("status:\n  capacity", addresses));
    assert!(public.contains("    public_ipv4: 0.005") && !public.contains("nat_gateways"), "{public}");
}
