//! What nodes of node groups offer, from the text of a ClusterConfig and real instance types.

#![allow(clippy::unwrap_used)]

use nodecast_karpenter::instance_types::{Measured, node_of_group, pods_by_eks};
use nodecast_manifests::{Manifests, read_manifests};
use nodecast_model::catalog::InstanceFacts;
use nodecast_model::domain::{PodAddresses, ResourceName, Symbol};
use nodecast_model::text::{InputError, Source};
use nodecast_prices::Catalog;

/// The instance type `name` as the price data have it.
fn facts(name: &str) -> InstanceFacts {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    InstanceFacts::clone(&region.instance_type(Symbol::new(name)).unwrap().facts)
}

fn groups(kind: &str, rest: &str) -> Result<Manifests, InputError> {
    let text = format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
         {kind}:\n- {{name: a, instanceType: m5.large, {rest}}}\n"
    );
    read_manifests(&Source::new("cluster.yaml", text))
}

#[test]
fn node_offers_disk_size_of_its_group() {
    for (rest, gib, pods) in [
        ("minSize: 0", 80, 29),
        ("volumeSize: 200", 200, 29),
        ("volumeSize: 50, amiFamily: Bottlerocket, maxPodsPerNode: 20", 50, 20),
    ] {
        let read = groups("managedNodeGroups", rest).unwrap();
        let node = node_of_group(&facts("m5.large"), &read.node_groups[0], Measured::default(), None);
        let disk = |resources: &nodecast_model::domain::Resources| resources.get(ResourceName::EPHEMERAL_STORAGE);
        let bytes: i64 = gib << 30;
        assert_eq!(disk(&node.capacity), bytes, "{rest}");
        // A tenth is kept free, and 1 GiB is the kubelet's.
        assert_eq!(disk(&node.allocatable), bytes - (bytes + 9) / 10 - (1 << 30), "{rest}");
        assert_eq!(node.allocatable.pods(), pods, "{rest}");
    }
}

#[test]
fn managed_group_uses_smallest_pod_limit() {
    let managed = groups("managedNodeGroups", "minSize: 0").unwrap().node_groups.remove(0);
    let pods = |types: &[&str], addresses| {
        let facts: Vec<_> = types.iter().map(|name| facts(name)).collect();
        pods_by_eks(&managed, &facts, addresses)
    };
    let plain = PodAddresses::default();
    let prefixes = PodAddresses { prefixes: true, ..plain };
    let ipv6 = PodAddresses { ipv6: true, ..plain };
    let others = PodAddresses { of_other_subnets: true, ..plain };
    for (types, addresses, expected) in [
        (&["m5.large"][..], plain, 29),
        (&["m5.large"], prefixes, 110),
        (&["m5.large"], ipv6, 110),
        (&["m5.large"], others, 20),
        (&["m5.large"], prefixes.and(others), 110),
        (&["m5.large", "m5.xlarge"], plain, 29),
        // 234 by its interfaces.
        (&["m5.4xlarge"], plain, 110),
        (&["m5.8xlarge"], plain, 234),
        (&["m5.8xlarge"], prefixes, 250),
        (&["m5.8xlarge", "m5.large"], prefixes, 110),
        // Of Xen, without prefixes.
        (&["m4.large"], prefixes, 20),
    ] {
        assert_eq!(pods(types, addresses), Some(expected), "{types:?} {addresses:?}");
    }
}

#[test]
fn image_decides_pod_limit_unless_eks_boots_node() {
    let types = [facts("m5.4xlarge")];
    for (kind, rest) in [
        ("nodeGroups", "minSize: 0"),
        ("managedNodeGroups", "ami: ami-0123456789abcdef0"),
        ("managedNodeGroups", "amiFamily: WindowsServer2022CoreContainer"),
    ] {
        let group = groups(kind, rest).unwrap().node_groups.remove(0);
        assert_eq!(pods_by_eks(&group, &types, PodAddresses::default()), None, "{kind} {rest}");
    }
}
