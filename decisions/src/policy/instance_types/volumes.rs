//! How many EBS volumes an instance can attach, as its CSI driver tells the scheduler.

use crate::catalog::InstanceFacts;

/// Attachments that a Nitro instance shares between volumes, network interfaces and local disks.
const NITRO_ATTACHMENTS: u32 = 28;
/// Volumes of an instance on Xen.
const XEN_VOLUMES: u32 = 39;
/// Network interfaces that are attached when the driver starts: the first, and the one that the VPC CNI keeps warm. Assumed.
const INTERFACES: u32 = 2;
/// The root volume.
const ROOT: u32 = 1;

/// Volumes beside the root volume that a node of this type can attach.
///
/// Deviation: types whose volumes have a limit of their own (most since the seventh generation, 32 and more) get the shared one.
///
/// Source: aws-ebs-csi-driver 1.40 `pkg/driver/node.go`, `getVolumesLimit`.
pub fn ebs_attach_limit(facts: &InstanceFacts) -> u32 {
    let xen = facts.hypervisor.is_some_and(|hypervisor| hypervisor.as_str() == "xen");
    let limit = if xen {
        XEN_VOLUMES
    } else {
        let local = if facts.local_nvme { facts.local_disks } else { 0 };
        NITRO_ATTACHMENTS.saturating_sub(INTERFACES + local)
    };
    limit.saturating_sub(ROOT).max(1)
}

#[cfg(test)]
mod tests {
    use super::ebs_attach_limit;
    use crate::catalog::testing::facts;

    #[test]
    fn interfaces_and_local_disks_of_nitro_take_places_of_volumes() {
        let limit = |name| ebs_attach_limit(&facts(name));
        assert_eq!((limit("m5.large"), limit("m5d.24xlarge"), limit("t2.large")), (25, 21, 38));
    }
}
