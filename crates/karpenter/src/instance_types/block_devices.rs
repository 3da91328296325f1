//! The EBS volumes that Karpenter's nodes are launched with, and the disk that pods have of them.
//!
//! What must not live here: what volumes cost (`ec2`), how manifests state them (`manifests`).

use crate::release::Behaviour;
use nodecast_model::catalog::InstanceFacts;
use nodecast_model::domain::NodeClass;
use nodecast_model::domain::node_pool::{AmiFamily, BlockDevice};
use nodecast_model::domain::volumes::{DiskClass, NodeVolume, NodeVolumes};

const GIB: i64 = 1 << 30;
const GB: i64 = 1_000_000_000;

/// GiB of a volume that nothing says more of (`DefaultEBS`).
const DEFAULT_GIB: i64 = 20;

/// Device and GiB of each volume of a node whose class states no `blockDeviceMappings`, all of them gp3: what a release orders, too,
/// which has the family under an older name.
///
/// Source: AWS provider v1.13 `pkg/providers/amifamily/{al2,al2023,bottlerocket,windows}.go`, `DefaultBlockDeviceMappings`; v0.37 and
/// before `pkg/providers/amifamily/ubuntu.go`.
/// Deviation: for custom images Karpenter orders no volume and leaves the volumes to the image. They are unknown, so
/// one volume of 20 GiB is assumed.
const fn default_volumes(family: AmiFamily) -> &'static [(&'static str, i64)] {
    match family {
        AmiFamily::Bottlerocket => &[("/dev/xvda", 4), ("/dev/xvdb", DEFAULT_GIB)],
        AmiFamily::AL2 | AmiFamily::AL2023 | AmiFamily::Custom => &[("/dev/xvda", DEFAULT_GIB)],
        AmiFamily::Ubuntu => &[("/dev/sda1", DEFAULT_GIB)],
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => &[("/dev/sda1", 50)],
    }
}

/// The device whose volume pods use.
///
/// Source: AWS provider v1.13 `pkg/providers/amifamily`, `EphemeralBlockDevice` of each family.
const fn name_for_pods(family: AmiFamily) -> &'static str {
    match family {
        AmiFamily::Bottlerocket => "/dev/xvdb",
        AmiFamily::AL2 | AmiFamily::AL2023 | AmiFamily::Custom => "/dev/xvda",
        AmiFamily::Ubuntu | AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => "/dev/sda1",
    }
}

/// The volumes that a node of this class is launched with, the root first: those that the class states, and those of its image of which
/// it says nothing. Karpenter hands mappings on as they are, and EC2 makes beside them whatever else the image maps: its root always.
///
/// Source: AWS provider v1.13 `pkg/providers/amifamily/resolver.go`, `resolveLaunchTemplates`, and
/// `pkg/providers/launchtemplate/launchtemplate.go`, `blockDeviceMappings`; EC2 user guide, `block-device-mapping-concepts` (2026).
/// Deviation: the size of image volumes that `blockDeviceMappings` omits is unknown. They have the size that
/// Karpenter orders for the family of a class without mappings. The root of a custom image counts as specified if
/// `/dev/xvda` or `/dev/sda1` is listed.
fn devices(class: &NodeClass) -> Vec<BlockDevice> {
    let stated = &class.block_devices;
    let is_stated = |name: &str| match class.ami_family.root_device() {
        Some(_) => stated.iter().any(|block_device| block_device.device == name),
        None => stated.iter().any(|block_device| ROOTS.contains(&block_device.device.as_str())),
    };
    let device = |&(name, gib): &(&str, i64)| BlockDevice {
        device: name.to_owned(),
        size_bytes: gib * GIB,
        root: false,
        disk: DiskClass::of_type("gp3"),
    };
    let of_image =
        default_volumes(class.ami_family).iter().filter(|default_volume| !is_stated(default_volume.0)).map(device);
    of_image.chain(stated.iter().cloned()).collect()
}

/// What images call their root.
const ROOTS: [&str; 2] = ["/dev/xvda", "/dev/sda1"];

/// The volumes that a node of this class is launched with.
pub(crate) fn volumes_of_new(class: &NodeClass) -> NodeVolumes {
    devices(class).iter().map(BlockDevice::volume).collect()
}

/// Disk for pods: the local disks if they are joined, else the volume that the node class gives to pods, else the image
/// family's default.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/types.go`, `ephemeralStorage`.
pub(super) fn ephemeral_storage(facts: &InstanceFacts, class: &NodeClass, behaviour: &Behaviour) -> i64 {
    let joins = class.instance_store_raid0 || (class.auto_mode && joins_in_auto_mode(facts, class));
    if behaviour.joins_local_disks && joins && facts.local_storage_gb > 0 {
        return i64::from(facts.local_storage_gb) * GB;
    }
    match device_for_pods(class.ami_family, &class.block_devices) {
        Some(stated) => stated.size_bytes,
        None => default_gib_for_pods(class.ami_family) * GIB,
    }
}

/// GiB that pods have of the family's own volumes.
fn default_gib_for_pods(family: AmiFamily) -> i64 {
    let default_volume = default_volumes(family).iter().find(|(device, _)| *device == name_for_pods(family));
    default_volume.map_or(DEFAULT_GIB, |&(_, gib)| gib)
}

/// The one of a class's volumes that pods use, if it is among them.
fn device_for_pods(family: AmiFamily, devices: &[BlockDevice]) -> Option<&BlockDevice> {
    devices.iter().find(|device| device.root).or_else(|| match family {
        AmiFamily::Custom => devices.last(),
        _ => devices.iter().find(|device| device.device == name_for_pods(family)),
    })
}

/// The volumes that a node of EKS Auto Mode with this type has, where its local disks are joined for pods: that for pods is smaller
/// then, and has no more operations than gp3 takes for each GiB.
///
/// Source: EKS user guide, `automode/create-node-class` (2026), `ephemeralStorage`; EBS user guide, `general-purpose` (2026).
pub fn volumes_beside_local_disks(facts: &InstanceFacts, class: &NodeClass) -> Option<NodeVolumes> {
    const DATA_GIB: i64 = 20;
    const IOPS_PER_GIB: u32 = 500;
    if !class.auto_mode || !joins_in_auto_mode(facts, class) {
        return None;
    }
    let volume = |block_device: &BlockDevice| {
        let stated = block_device.volume();
        if block_device.device == "/dev/xvda" {
            return stated;
        }
        let iops = stated.class.iops.min(IOPS_PER_GIB * DATA_GIB as u32);
        NodeVolume { gib: DATA_GIB, class: DiskClass { iops, ..stated.class } }
    };
    Some(class.block_devices.iter().map(volume).collect())
}

/// The volumes of a node of this class and type that was found: those that it would be launched with, of which the one for pods has
/// `reported_gib`, unless that is what its local disks come to.
pub fn volumes_of_found(facts: &InstanceFacts, class: &NodeClass, reported_gib: i64) -> NodeVolumes {
    if let Some(volumes) = volumes_beside_local_disks(facts, class) {
        return volumes;
    }
    let devices = devices(class);
    let joins = class.instance_store_raid0 && facts.local_storage_gb > 0;
    let for_pods = device_for_pods(class.ami_family, &devices).filter(|_| !joins);
    let volume = |block_device: &BlockDevice| {
        let ordered = block_device.volume();
        if for_pods == Some(block_device) { NodeVolume { gib: reported_gib, ..ordered } } else { ordered }
    };
    devices.iter().map(volume).collect()
}

/// Whether EKS Auto Mode joins the local disks for pods: where they hold more than `ephemeralStorage` asks for.
///
/// Source: EKS user guide, `automode/create-node-class` (2026), `ephemeralStorage`.
fn joins_in_auto_mode(facts: &InstanceFacts, class: &NodeClass) -> bool {
    let wanted: i64 = class
        .block_devices
        .iter()
        .filter(|block_device| block_device.device == "/dev/xvdb")
        .map(|block_device| block_device.size_bytes)
        .sum();
    facts.local_nvme && i64::from(facts.local_storage_gb) * GB > wanted
}

#[cfg(test)]
mod tests {
    use super::super::ProviderSettings;
    use super::super::capacity::node;
    use super::{volumes_of_found, volumes_of_new};
    use crate::testing::facts;
    use nodecast_model::domain::node_pool::{AmiFamily, BlockDevice};
    use nodecast_model::domain::quantity::format_bytes;
    use nodecast_model::domain::volumes::{DiskClass, NodeVolumes};
    use nodecast_model::domain::{NodeClass, ResourceName};

    const FAMILIES: [AmiFamily; 8] = [
        AmiFamily::AL2,
        AmiFamily::AL2023,
        AmiFamily::Bottlerocket,
        AmiFamily::Ubuntu,
        AmiFamily::Windows2019,
        AmiFamily::Windows2022,
        AmiFamily::Windows2025,
        AmiFamily::Custom,
    ];

    fn volume(device: &str, gib: i64, root: bool) -> BlockDevice {
        BlockDevice { device: device.to_owned(), size_bytes: gib << 30, root, disk: DiskClass::of_type("gp3") }
    }

    fn class(family: AmiFamily, block_devices: Vec<BlockDevice>) -> NodeClass {
        NodeClass { ami_family: family, block_devices, ..NodeClass::named("c") }
    }

    fn disk(class: &NodeClass) -> String {
        let node = node(&facts("c5d.large"), class, &class.kubelet, ProviderSettings::default());
        format_bytes(node.capacity.get(ResourceName::EPHEMERAL_STORAGE))
    }

    fn sizes(volumes: &NodeVolumes) -> Vec<i64> {
        assert!(volumes.iter().all(|volume| volume.class == DiskClass::of_type("gp3")));
        volumes.iter().map(|volume| volume.gib).collect()
    }

    #[test]
    fn ephemeral_storage_is_size_of_pod_volume() {
        let volumes = vec![volume("/dev/xvda", 4, false), volume("/dev/xvdb", 80, false)];
        assert_eq!(disk(&class(AmiFamily::Bottlerocket, volumes.clone())), "80Gi");
        assert_eq!(disk(&class(AmiFamily::AL2023, volumes.clone())), "4Gi");
        assert_eq!(disk(&class(AmiFamily::Custom, volumes)), "80Gi");
        assert_eq!(disk(&class(AmiFamily::AL2023, vec![volume("/dev/sdz", 9, true)])), "9Gi");
        let joined = NodeClass { instance_store_raid0: true, ..NodeClass::named("c") };
        assert_eq!(disk(&joined), format_bytes(50_000_000_000));
    }

    #[test]
    fn class_without_mappings_uses_family_volumes() {
        for family in FAMILIES {
            let class = class(family, Vec::new());
            let (volumes, for_pods) = match family {
                AmiFamily::Bottlerocket => (vec![4, 20], "20Gi"),
                AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => (vec![50], "50Gi"),
                _ => (vec![20], "20Gi"),
            };
            assert_eq!((sizes(&volumes_of_new(&class)), disk(&class).as_str()), (volumes, for_pods), "{family:?}");
        }
    }

    #[test]
    fn class_mappings_replace_family_volumes() {
        let class = class(AmiFamily::Windows2022, vec![volume("/dev/sda1", 80, false), volume("xvdb", 7, false)]);
        assert_eq!((sizes(&volumes_of_new(&class)), disk(&class).as_str()), (vec![80, 7], "80Gi"));
    }

    #[test]
    fn volumes_without_mapping_come_from_image() {
        let of = |family, stated: &[(&str, i64)]| {
            let stated = stated.iter().map(|&(device, gib)| volume(device, gib, false)).collect();
            sizes(&volumes_of_new(&class(family, stated)))
        };
        assert_eq!(of(AmiFamily::AL2023, &[("/dev/xvdb", 100)]), [20, 100]);
        assert_eq!(of(AmiFamily::AL2023, &[("/dev/xvdb", 100), ("/dev/xvda", 30)]), [100, 30]);
        assert_eq!(of(AmiFamily::Bottlerocket, &[("/dev/xvdb", 100)]), [4, 100]);
        assert_eq!(of(AmiFamily::Bottlerocket, &[("/dev/xvda", 10)]), [20, 10]);
        assert_eq!(of(AmiFamily::Windows2022, &[("/dev/xvda", 10)]), [50, 10]);
        assert_eq!(of(AmiFamily::Ubuntu, &[("/dev/sda1", 10)]), [10]);
        assert_eq!(of(AmiFamily::Custom, &[("/dev/sdf", 10)]), [20, 10]);
        assert_eq!(of(AmiFamily::Custom, &[("/dev/sda1", 10)]), [10]);
        // That a mapping is marked as root says where the kubelet keeps what it has, not what EC2 boots from.
        let marked = class(AmiFamily::Bottlerocket, vec![volume("/dev/xvdb", 100, true)]);
        assert_eq!((sizes(&volumes_of_new(&marked)), disk(&marked).as_str()), (vec![4, 100], "100Gi"));
        let found =
            volumes_of_found(&facts("m5.large"), &class(AmiFamily::AL2, vec![volume("/dev/xvdb", 9, false)]), 70);
        assert_eq!(sizes(&found), [70, 9], "pods have the root, of which the class says nothing");
    }

    #[test]
    fn existing_node_pod_volume_has_reported_size() {
        let found = |name: &str, node_class: &NodeClass| sizes(&volumes_of_found(&facts(name), node_class, 100));
        assert_eq!(found("m5.large", &class(AmiFamily::Bottlerocket, Vec::new())), [4, 100]);
        assert_eq!(found("m5.large", &class(AmiFamily::Windows2022, Vec::new())), [100]);
        assert_eq!(found("m5.large", &class(AmiFamily::Custom, Vec::new())), [100]);
        let joined = NodeClass { instance_store_raid0: true, ..NodeClass::named("c") };
        assert_eq!(found("m5.large", &joined), [100]);
        assert_eq!(found("c5d.large", &joined), [20], "what it says is what its local disks come to");
    }
}
