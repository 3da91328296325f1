//! How many pods EKS lets the nodes of a managed group take, which goes by the addresses that the network plugin has for them.

use crate::catalog::InstanceFacts;
use crate::domain::NodeGroup;

/// Addresses in a prefix.
const PREFIX: i64 = 16;
/// Pods whose address is their node's: one of the network plugin and one of kube-proxy.
const WITHOUT_ADDRESS: i64 = 2;
/// vCPUs from which on EKS lets nodes take more pods, and how many it lets them take below and from there on.
const LARGE: u32 = 30;
const MOST_PODS: i64 = 110;
const MOST_PODS_OF_LARGE: i64 = 250;

/// What addresses the network plugin has for pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PodAddresses {
    /// Whether it takes them in prefixes of 16 (`ENABLE_PREFIX_DELEGATION`).
    pub prefixes: bool,
    /// Whether they are of IPv6, which always come in prefixes.
    pub ipv6: bool,
    /// Whether they are of other subnets than the node's (custom networking), so that the first interface has none for pods.
    pub of_other_subnets: bool,
}

impl PodAddresses {
    /// What this or `other` says.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            prefixes: self.prefixes || other.prefixes,
            ipv6: self.ipv6 || other.ipv6,
            of_other_subnets: self.of_other_subnets || other.of_other_subnets,
        }
    }

    /// Pods that a node of this type has addresses for.
    fn pods_on(self, facts: &InstanceFacts) -> i64 {
        let interfaces = i64::from(facts.enis) - i64::from(self.of_other_subnets);
        // Machines of Xen have no prefixes.
        let xen = facts.hypervisor.is_some_and(|own| own.as_str() == "xen");
        let each = if (self.prefixes || self.ipv6) && !xen { PREFIX } else { 1 };
        interfaces.max(0) * (i64::from(facts.ipv4_per_eni) - 1) * each + WITHOUT_ADDRESS
    }
}

/// Pods that EKS lets the kubelets of the group's nodes take, whose `types` are these; `None` where it leaves that to the machine image. All nodes of
/// a managed group have the least of what its types have, each at most 110 pods, or 250 from 30 vCPUs on.
///
/// Source: EKS user guide, *Choose an optimal Amazon EC2 node instance type* ("How maxPods is determined") and *Assign more IP addresses to Amazon EKS
/// nodes with prefixes* (2026).
pub fn pods_by_eks<'f>(
    group: &NodeGroup,
    types: impl IntoIterator<Item = &'f InstanceFacts>,
    addresses: PodAddresses,
) -> Option<i64> {
    if !group.managed || group.own_image || group.ami_family.is_windows() {
        return None;
    }
    let most = |facts: &InstanceFacts| if facts.vcpus < LARGE { MOST_PODS } else { MOST_PODS_OF_LARGE };
    types.into_iter().map(|facts| addresses.pods_on(facts).min(most(facts))).min()
}

#[cfg(test)]
mod tests {
    use super::{PodAddresses, pods_by_eks};
    use crate::catalog::testing::facts;
    use crate::domain::NodeGroup;
    use crate::manifests::read_manifests;
    use crate::text::Source;

    fn group(kind: &str, rest: &str) -> NodeGroup {
        let text = format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
             {kind}:\n- {{name: a, instanceType: m5.large{rest}}}\n"
        );
        read_manifests(&Source::new("cluster.yaml", text)).unwrap().node_groups.remove(0)
    }

    #[test]
    fn a_managed_group_takes_what_the_least_of_its_types_has_addresses_for() {
        let managed = group("managedNodeGroups", "");
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
    fn images_say_it_of_groups_that_eks_does_not_boot() {
        let types = [facts("m5.4xlarge")];
        for (kind, rest) in [
            ("nodeGroups", ""),
            ("managedNodeGroups", ", ami: ami-0123456789abcdef0"),
            ("managedNodeGroups", ", amiFamily: WindowsServer2022CoreContainer"),
        ] {
            assert_eq!(pods_by_eks(&group(kind, rest), &types, PodAddresses::default()), None, "{kind} {rest}");
        }
    }
}
