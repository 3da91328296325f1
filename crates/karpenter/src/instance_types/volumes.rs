//! How many EBS volumes an instance can attach, as its CSI driver tells the scheduler.

use nodecast_model::catalog::{EbsVolumes, InstanceFacts};

/// Volumes and interfaces beside the first that an instance on Nitro can attach of which the driver knows no more.
const NITRO_ATTACHMENTS: u32 = 27;
/// Volumes of an instance on Xen.
const XEN_VOLUMES: u32 = 39;
/// Network interfaces beside the first that are attached when the driver starts: the one that the VPC CNI keeps warm. Assumed.
const WARM_INTERFACES: u32 = 1;
/// The root volume.
const ROOT: u32 = 1;

/// Volumes beside the root volume that a node of this type can attach.
///
/// Source: aws-ebs-csi-driver at 429e202 (2026-08-19), table of volume limits and `pkg/driver/node.go`, `getVolumesLimit`.
pub fn ebs_attach_limit(facts: &InstanceFacts) -> u32 {
    let limit = match facts.ebs_volumes {
        Some(EbsVolumes::Alone(volumes)) => volumes,
        Some(EbsVolumes::WithInterfaces(attachments)) => attachments.saturating_sub(WARM_INTERFACES),
        None if facts.hypervisor.is_some_and(|hypervisor| hypervisor.as_str() == "xen") => XEN_VOLUMES,
        None => {
            let local = if facts.local_nvme { facts.local_disks } else { 0 };
            NITRO_ATTACHMENTS.saturating_sub(WARM_INTERFACES + local)
        }
    };
    limit.saturating_sub(ROOT).max(1)
}

#[cfg(test)]
mod tests {
    use super::ebs_attach_limit;
    use crate::testing::facts;
    use nodecast_model::catalog::InstanceFacts;

    #[test]
    fn nitro_interfaces_and_disks_reduce_volume_slots() {
        let limit = |name| ebs_attach_limit(&facts(name));
        assert_eq!((limit("m5.large"), limit("m5d.24xlarge"), limit("t2.large")), (25, 21, 38));
    }

    #[test]
    fn newer_types_have_places_for_volumes_alone() {
        let limit = |name| ebs_attach_limit(&facts(name));
        assert_eq!((limit("m7i.large"), limit("m7i.48xlarge"), limit("g5.xlarge")), (31, 127, 23));
    }

    #[test]
    fn unlisted_type_has_nitro_volume_limit() {
        let local = InstanceFacts { local_nvme: true, local_disks: 2, ..InstanceFacts::plain("x99.large", 2, 8_192) };
        assert_eq!(ebs_attach_limit(&InstanceFacts::plain("x99.large", 2, 8_192)), 25);
        assert_eq!(ebs_attach_limit(&local), 23);
    }
}
