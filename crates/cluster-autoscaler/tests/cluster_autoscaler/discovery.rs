//! Which groups the Cluster Autoscaler finds, by tags and by names.

use nodecast_cluster_autoscaler::Flags;
use nodecast_cluster_autoscaler::discovery::{Discovery, ENABLED_TAG};
use nodecast_manifests::read_manifests;
use nodecast_model::domain::{KubernetesVersion, Labels, NodeGroup};
use nodecast_model::text::Source;

/// A group of eksctl that has these tags, and no others.
fn group(kind: &str, name: &str, tags: &Labels) -> NodeGroup {
    let text = format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: shop, region: us-east-1}}\n\
         {kind}:\n- {{name: {name}, instanceType: m5.large}}\n"
    );
    let mut read = read_manifests(&Source::new("cluster.yaml", text)).unwrap().node_groups.remove(0);
    read.tags = tags.clone();
    read
}

/// What a flag says, or why it cannot.
fn told(flag: &str, value: &str) -> Result<Discovery, String> {
    let version: KubernetesVersion = "1.36".parse().unwrap();
    Flags::parse(version, [(flag, value)]).map(|flags| flags.discovery).map_err(|error| error.to_string())
}

#[test]
fn groups_are_discovered_by_all_tags_or_name() {
    let tags = Labels::new().with(ENABLED_TAG, "true").with("k8s.io/cluster-autoscaler/shop", "owned");
    let web = group("managedNodeGroups", "web", &tags);
    let untagged = group("managedNodeGroups", "web", &Labels::new());
    assert_eq!(Discovery::default().limits(&web, (1, 9)), Some((1, 9)));
    assert_eq!(Discovery::default().limits(&untagged, (1, 9)), None);
    let by = |text: &str| told("node-group-auto-discovery", text).map(|item| item.limits(&web, (1, 9)));
    assert_eq!(by("asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/shop=owned"), Ok(Some((1, 9))));
    assert_eq!(by("asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/other"), Ok(None));
    assert!(by("tag=a").is_err() && by("asg:tag=a,").is_err());
    assert!(told("nodes", "2:5").is_err() && told("nodes", "5:2:web").is_err());
    let named = told("nodes", "2:5:web").unwrap();
    assert_eq!(named.limits(&untagged, (1, 9)), Some((2, 5)));
    let other = group("managedNodeGroups", "api", &tags);
    assert_eq!(named.limits(&other, (1, 9)), None, "only those that are named");
}

#[test]
fn groups_are_named_as_aws_calls_them() {
    let none = Labels::new();
    let limits =
        |text: &str, group: &NodeGroup| told("nodes", &format!("2:5:{text}")).unwrap().limits(group, (1, 9)).is_some();
    let managed = group("managedNodeGroups", "w", &none);
    let own_name = managed.auto_scaling_group_name();
    assert!(own_name.starts_with("eks-w-") && own_name.len() == "eks-w-".len() + 36, "{own_name}");
    assert_eq!(own_name, group("managedNodeGroups", "w", &none).auto_scaling_group_name());
    assert!(limits(&own_name, &managed) && limits("eks-w-1234", &managed) && limits("w", &managed));
    let longer = group("managedNodeGroups", "w-a1", &none).auto_scaling_group_name();
    assert!(!limits(&longer, &managed) && !limits("eks-w-spot-12", &managed) && !limits("eks-w-", &managed));
    let group = group("nodeGroups", "w", &none);
    let own_name = group.auto_scaling_group_name();
    assert!(own_name.starts_with("eksctl-shop-nodegroup-w-NodeGroup-"), "{own_name}");
    assert!(limits(&own_name, &group) && limits("eksctl-shop-nodegroup-w-NodeGroup-1TVZ3LZJ2QXKA", &group));
    assert!(!limits("eks-w-1234", &group));
}
