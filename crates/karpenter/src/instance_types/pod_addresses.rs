//! How many pods EKS lets the nodes of a managed group take, which goes by the addresses that the network plugin has for them.

use nodecast_model::catalog::InstanceFacts;
use nodecast_model::domain::{NodeGroup, PodAddresses};

/// Addresses in a prefix.
const PREFIX: i64 = 16;
/// Pods whose address is their node's: one of the network plugin and one of kube-proxy.
const WITHOUT_ADDRESS: i64 = 2;
/// vCPUs from which on EKS lets nodes take more pods, and how many it lets them take below and from there on.
const LARGE: u32 = 30;
const MOST_PODS: i64 = 110;
const MOST_PODS_OF_LARGE: i64 = 250;

/// Pods that a node of this type has addresses for.
fn pods_on(addresses: PodAddresses, facts: &InstanceFacts) -> i64 {
    let interfaces = i64::from(facts.enis) - i64::from(addresses.of_other_subnets);
    // Machines of Xen have no prefixes.
    let xen = facts.hypervisor.is_some_and(|hypervisor| hypervisor.as_str() == "xen");
    let each = if (addresses.prefixes || addresses.ipv6) && !xen { PREFIX } else { 1 };
    interfaces.max(0) * (i64::from(facts.ipv4_per_eni) - 1) * each + WITHOUT_ADDRESS
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
    types.into_iter().map(|facts| pods_on(addresses, facts).min(most(facts))).min()
}
