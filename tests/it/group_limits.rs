//! Limits of node groups from what the AWS CLI prints, beside a dump.

use nodecast::catalog::Catalog;
use nodecast::domain::node_group::{NodeGroup, SpotStrategy};
use nodecast::scenario::draft::Wishes;
use nodecast::scenario::error::Render;
use nodecast::scenario::{Draft, ScenarioError, Source};
use nodecast::simulation::run;

use crate::cli::Place;
use crate::migration::{nodes, origins, workload};

/// A cluster with three managed groups.
fn dump() -> String {
    let autoscaler = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0";
    [
        nodes("system", 2, "m5.large", false, None),
        nodes("workers", 6, "m5.xlarge", false, None),
        nodes("batch", 4, "c5.xlarge", true, Some("batch")),
        workload("cluster-autoscaler", autoscaler, 1, 100, ("system", 2), None),
        workload("web", "web", 18, 900, ("workers", 6), None),
        workload("jobs", "jobs", 8, 1_500, ("batch", 4), Some("batch")),
    ]
    .concat()
}

/// An Auto Scaling group as the AWS CLI prints it, with more keys than are read.
fn auto_scaling_group(name: &str, sizes: [u32; 3], tags: &[(&str, &str)], more: &str) -> String {
    let tags: Vec<String> = tags
        .iter()
        .map(|(key, value)| {
            format!(
                "{{\"ResourceId\": \"{name}\", \"ResourceType\": \"auto-scaling-group\", \"Key\": \"{key}\", \"Value\": \"{value}\", \"PropagateAtLaunch\": true}}"
            )
        })
        .collect();
    format!(
        "{{\"AutoScalingGroupName\": \"{name}\", \"AutoScalingGroupARN\": \"arn:aws:autoscaling:us-east-1:1:x\", \"MinSize\": {}, \"MaxSize\": {}, \"DesiredCapacity\": {}, \"DefaultCooldown\": 300, \"AvailabilityZones\": [\"us-east-1a\", \"us-east-1b\", \"us-east-1d\"], \"Tags\": [{}]{more}}}",
        sizes[0],
        sizes[2],
        sizes[1],
        tags.join(", ")
    )
}

fn all(groups: &[String]) -> String {
    format!("{{\"AutoScalingGroups\": [{}]}}", groups.join(", "))
}

const WORKERS: &str = r#"{"nodegroup": {"nodegroupName": "workers", "nodegroupArn": "arn:x", "clusterName": "shop", "version": "1.33", "status": "ACTIVE", "capacityType": "ON_DEMAND", "scalingConfig": {"minSize": 3, "maxSize": 12, "desiredSize": 6}, "instanceTypes": ["m5.xlarge", "m5a.xlarge"], "amiType": "AL2023_x86_64_STANDARD", "labels": {"role": "workers"}, "resources": {"autoScalingGroups": [{"name": "eks-workers-1"}]}}}"#;
const GPUS: &str = r#"{"nodegroup": {"nodegroupName": "gpus", "clusterName": "shop", "capacityType": "SPOT", "scalingConfig": {"minSize": 0, "maxSize": 5, "desiredSize": 0}, "instanceTypes": ["g5.xlarge"], "amiType": "BOTTLEROCKET_x86_64_NVIDIA", "diskSize": 100, "labels": {"role": "gpus"}, "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]}}"#;

/// The groups of the policy `today` that `init` makes of these files.
fn groups(place: &Place, more: &[&str]) -> Vec<NodeGroup> {
    let mut words = vec!["init", "own", "--from", "cluster.yaml"];
    words.extend(more.iter().flat_map(|file| ["--from", file]));
    let (_, err, code) = place.nodecast(&words);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    scenario.policies[0].manifests.node_groups.clone()
}

fn sizes(groups: &[NodeGroup]) -> Vec<(&str, u32, u32, u32)> {
    let mut all: Vec<_> =
        groups.iter().map(|group| (group.name.as_str(), group.min_size, group.desired_size, group.max_size)).collect();
    all.sort_unstable();
    all
}

#[test]
fn group_limits_come_from_aws_or_assumptions() {
    let place = Place::new();
    place.put("cluster.yaml", &dump());
    let batch = auto_scaling_group(
        "eks-batch-7",
        [0, 4, 40],
        &[("eks:nodegroup-name", "batch"), ("eks:cluster-name", "shop")],
        "",
    );
    let spare = auto_scaling_group(
        "spare",
        [0, 0, 7],
        &[
            ("k8s.io/cluster-autoscaler/shop", "owned"),
            ("k8s.io/cluster-autoscaler/enabled", "true"),
            ("k8s.io/cluster-autoscaler/node-template/label/role", "spare"),
            ("k8s.io/cluster-autoscaler/node-template/taint/spare", "yes:NoSchedule"),
        ],
        ", \"MixedInstancesPolicy\": {\"LaunchTemplate\": {\"Overrides\": [{\"InstanceType\": \"r5.large\"}]}}",
    );
    let of_others = auto_scaling_group("other", [1, 1, 9], &[("eks:cluster-name", "mail")], "");
    place.put("asg.json", &all(&[batch, spare, of_others]));
    place.put("workers.json", WORKERS);
    place.put("gpus.json", GPUS);
    let groups = groups(&place, &["asg.json", "workers.json", "gpus.json"]);
    assert_eq!(
        sizes(&groups),
        [("batch", 0, 4, 40), ("gpus", 0, 0, 5), ("spare", 0, 0, 7), ("system", 1, 2, 5), ("workers", 3, 6, 12)]
    );
    let named = |name: &str| groups.iter().find(|group| group.name.as_str() == name).unwrap();
    let types =
        |name: &str| named(name).instance_types.iter().map(|instance_type| instance_type.as_str()).collect::<Vec<_>>();
    assert_eq!(types("workers"), ["m5.xlarge", "m5a.xlarge"]);
    assert_eq!((types("gpus"), types("spare")), (vec!["g5.xlarge"], vec!["r5.large"]));
    assert!(named("gpus").distribution.is_spot() && named("spare").distribution.is_on_demand());
    assert_eq!((named("gpus").taints.len(), named("gpus").volume_bytes >> 30), (1, 100));
    assert_eq!(named("spare").taints[0].key.as_str(), "spare");
    assert!(named("batch").zones.iter().any(|zone| zone.as_str() == "us-east-1d"), "where no node is yet");
    let text = std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(!text.contains("their real limits are not in a dump"), "{text}");
    assert!(text.contains("nor a flag of the Cluster Autoscaler tells them: system 1 to 5."), "{text}");
}

#[test]
fn unlabelled_nodes_join_group_by_instance() {
    let place = Place::new();
    let unlabelled = dump()
        .replace("eks.amazonaws.com/nodegroup: workers, ", "")
        .replace("eks.amazonaws.com/nodegroup: batch, ", "");
    place.put("cluster.yaml", &unlabelled);
    // One group of two types: without AWS it would be two.
    let instances: Vec<String> = (0..6)
        .map(|n| format!("workers-{n}"))
        .chain((0..4).map(|n| format!("batch-{n}")))
        .map(|name| format!("{{\"InstanceId\": \"i-0{name}\", \"InstanceType\": \"m5.large\"}}"))
        .collect();
    let more = format!(
        ", \"Instances\": [{}], \"CapacityRebalance\": true, \"MixedInstancesPolicy\": {{\"LaunchTemplate\": {{\"Overrides\": [{{\"InstanceType\": \"m5.xlarge\", \"WeightedCapacity\": \"1\"}}, {{\"InstanceType\": \"c5.xlarge\"}}, {{\"InstanceType\": \"m5.xlarge\"}}]}}, \"InstancesDistribution\": {{\"OnDemandAllocationStrategy\": \"prioritized\", \"OnDemandBaseCapacity\": 2, \"OnDemandPercentageAboveBaseCapacity\": 30, \"SpotAllocationStrategy\": \"lowest-price\", \"SpotInstancePools\": 3}}}}",
        instances.join(", ")
    );
    place.put("asg.json", &all(&[auto_scaling_group("shop workers", [4, 10, 30], &[], &more)]));
    let groups = groups(&place, &["asg.json"]);
    assert_eq!(sizes(&groups), [("shop-workers", 4, 10, 30), ("system", 1, 2, 5)]);
    let mixed = groups.iter().find(|group| group.name.as_str() == "shop-workers").unwrap();
    assert!(!mixed.managed && mixed.capacity_rebalance);
    assert_eq!((mixed.distribution.on_demand_base, mixed.distribution.on_demand_percent), (2, 30));
    assert_eq!(mixed.distribution.spot_strategy, SpotStrategy::LowestPrice { pools: 3 });
    assert_eq!(
        mixed.instance_types.iter().map(|instance_type| instance_type.as_str()).collect::<Vec<_>>(),
        ["m5.xlarge", "c5.xlarge"]
    );
    // The run finds the nodes as those of the group.
    let (mut scenario, _) = nodecast::scenario::load(&place.path("own/scenario.yaml")).unwrap();
    scenario.duration = nodecast::domain::SimDuration::from_secs(300);
    let outcome = run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap();
    assert_eq!(origins(&outcome), ["group shop-workers", "group system"]);
    assert_eq!(outcome.record.nodes.len(), 12, "all were there, none was launched");
}

/// Groups of the same name in two clusters of one account: the AWS CLI prints both.
fn of_two_clusters(instances: &str) -> String {
    let of = |cluster: &str, sizes: [u32; 3], more: &str| {
        let tags = [("eks:nodegroup-name", "workers"), ("eks:cluster-name", cluster)];
        auto_scaling_group(&format!("eks-workers-{cluster}"), sizes, &tags, more)
    };
    all(&[of("shop", [1, 6, 9], instances), of("dev", [0, 10, 50], "")])
}

#[test]
fn same_named_groups_of_other_clusters_are_ignored() {
    let place = Place::new();
    let workers = |groups: &[NodeGroup]| {
        let (_, least, desired, most) = sizes(groups).into_iter().find(|size| size.0 == "workers").unwrap();
        (least, desired, most)
    };
    // Known by an instance, by another group of the same cluster, or by eksctl's label.
    place.put("asg.json", &of_two_clusters(", \"Instances\": [{\"InstanceId\": \"i-0workers-0\"}]"));
    place.put("cluster.yaml", &dump());
    assert_eq!(workers(&groups(&place, &["asg.json"])), (1, 6, 9));
    let place = Place::new();
    place.put("asg.json", &of_two_clusters(""));
    let batch = [("eks:nodegroup-name", "batch"), ("eks:cluster-name", "shop")];
    place.put("batch.json", &all(&[auto_scaling_group("eks-batch-7", [0, 4, 40], &batch, "")]));
    place.put("cluster.yaml", &dump());
    assert_eq!(workers(&groups(&place, &["asg.json", "batch.json"])), (1, 6, 9));
    let place = Place::new();
    place.put("shop.json", &WORKERS.replace("eks-workers-1", "eks-workers-shop"));
    place.put("dev.json", &WORKERS.replace("\"shop\"", "\"dev\"").replace("\"maxSize\": 12", "\"maxSize\": 99"));
    place.put("cluster.yaml", &dump().replace("labels: {eks", "labels: {alpha.eksctl.io/cluster-name: shop, eks"));
    assert_eq!(workers(&groups(&place, &["shop.json", "dev.json"])), (3, 6, 12));
}

#[test]
fn same_named_groups_of_unknown_cluster_warn() {
    let draft = drafted(&of_two_clusters("")).unwrap();
    let said: Vec<&str> = draft.warnings.iter().map(|warning| warning.message()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("groups of this name of the clusters dev, shop, and nothing says which"), "{said:?}");
    let text = &draft.files[0].text;
    assert!(text.contains("max: 12") && !text.contains("max: 59"), "as if nothing were known: {text}");
}

/// A draft of a dump whose nodes `workers` are instances of a group with weights, which EKS does not manage.
pub(crate) fn drafted_with_weights() -> Draft {
    let instances: Vec<String> = (0..6).map(|n| format!("{{\"InstanceId\": \"i-0workers-{n}\"}}")).collect();
    let policy = "{\"LaunchTemplate\": {\"Overrides\": [{\"InstanceType\": \"m5.xlarge\", \"WeightedCapacity\": \"4\"}, {\"InstanceType\": \"m5.2xlarge\", \"WeightedCapacity\": \"8\"}]}}";
    let more = format!(", \"Instances\": [{}], \"MixedInstancesPolicy\": {policy}", instances.join(", "));
    let group = all(&[auto_scaling_group("shop units", [4, 24, 80], &[], &more)]);
    let nodes = dump().replace("eks.amazonaws.com/nodegroup: workers, ", "");
    let wishes = Wishes { name: "own".to_owned(), ..Wishes::default() };
    let sources = [Source::new("cluster.yaml", nodes), Source::new("aws.json", group)];
    Draft::of_dump(&sources, &wishes, Catalog::embedded().unwrap()).unwrap()
}

fn drafted(json: &str) -> Result<Draft, ScenarioError> {
    let wishes = Wishes { name: "own".to_owned(), ..Wishes::default() };
    let sources = [Source::new("cluster.yaml", dump()), Source::new("aws.json", json)];
    Draft::of_dump(&sources, &wishes, Catalog::embedded().unwrap())
}

#[test]
fn foreign_or_unsimulated_groups_warn_and_are_ignored() {
    let warnings = |json: &str| -> Vec<String> {
        drafted(json).unwrap().warnings.iter().map(|warning| warning.message().to_owned()).collect()
    };
    let other = all(&[auto_scaling_group("other", [1, 1, 9], &[("eks:cluster-name", "mail")], "")]);
    let said = warnings(&other);
    assert!(said.iter().any(|said| said.contains("asked of 1 node group, and none is of this dump")), "{said:?}");
    assert_eq!(warnings(&all(&[])), Vec::<String>::new());
    let weights = auto_scaling_group(
        "w",
        [1, 12, 90],
        &[("eks:nodegroup-name", "workers")],
        ", \"MixedInstancesPolicy\": {\"LaunchTemplate\": {\"Overrides\": [{\"InstanceType\": \"m5.xlarge\", \"WeightedCapacity\": \"2\"}]}}",
    );
    let said = warnings(&all(&[weights]));
    assert!(said.iter().any(|said| said.contains("node group workers: its instances have weights")), "{said:?}");
    let behind = auto_scaling_group("w", [1, 7, 90], &[("eks:nodegroup-name", "workers")], "");
    let said = warnings(&all(&[behind]));
    let words = "node group workers: 7 nodes are wanted by AWS, and the dump shows 6";
    assert!(said.iter().any(|said| said == words), "{said:?}");
}

#[test]
fn unusable_aws_cli_json_gets_place_and_help() {
    let whole = all(&[auto_scaling_group("w", [1, 2, 3], &[], "")]);
    for (json, words) in [
        ("{\"nodegroups\": [\"workers\"]}", ["does not say how large", "aws eks describe-nodegroup"]),
        (&whole.replace("\"MinSize\": 1, ", ""), ["an Auto Scaling group needs `MinSize`", "without `--query`"]),
        (&whole.replace("\"MaxSize\": 3", "\"MaxSize\": \"many\""), ["MaxSize", "many"]),
        (&whole.replace("\"MaxSize\": 3", "\"MaxSize\": 1"), ["min 1, max 1, desired 2", "again"]),
        ("{\"AutoScalingGroups\": {\"a\": 1}}", ["`AutoScalingGroups` is a list", "list"]),
        (&WORKERS.replace("minSize", "least"), ["`scalingConfig` needs `minSize`", "AWS CLI"]),
        (&GPUS.replace("NO_SCHEDULE", "NEVER"), ["unknown `effect`: `NEVER`", "NO_SCHEDULE"]),
        ("{\"Reservations\": []}", ["not a Kubernetes object", "kubectl get"]),
    ] {
        let shown = drafted(json).unwrap_err().render();
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("aws.json:1:") && words.iter().all(|word| flat.contains(word)), "{json}: {shown}");
    }
}
