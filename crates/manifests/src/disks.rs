//! What the EBS volumes of nodes are ordered as: type, I/O operations and throughput.

use super::bounds::volume_type;
use crate::lints;
use nodecast_model::domain::Symbol;
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::domain::volumes::{DiskClass, NodeVolume, ebs_iops, ebs_sizes};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};

/// What an object calls the properties of a volume, and what it takes for those that it does not state.
pub(super) struct Keys {
    volume_type: &'static str,
    iops: &'static str,
    throughput: &'static str,
    /// Operations of io1 where none are stated; `None` where they have to be.
    io1_iops: Option<u32>,
}

/// `ebs` of a block device mapping.
pub(super) static KARPENTER: Keys =
    Keys { volume_type: "volumeType", iops: "iops", throughput: "throughput", io1_iops: None };
/// A node group of eksctl, and each of its `additionalVolumes`.
///
/// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/defaults.go`, `setVolumeDefaults`.
static EKSCTL: Keys =
    Keys { volume_type: "volumeType", iops: "volumeIOPS", throughput: "volumeThroughput", io1_iops: Some(100) };

/// Types that nothing boots from.
///
/// Source: EC2 API reference, `CreateVolume`, `VolumeType` (2026).
const NEVER_ROOT: [&str; 2] = ["st1", "sc1"];

/// MiB per second that can be ordered of gp3, of which alone throughput can be.
const THROUGHPUT: (i64, i64) = (125, 2_000);
/// Operations that come with gp3.
const IOPS_OF_GP3: i64 = 3_000;
/// Operations that gp3 needs for each MiB per second.
const IOPS_PER_MIB: i64 = 4;

/// What a volume of so many GiB, if that is stated, is ordered as; gp3 where no type is stated. `root` says whether it is what its
/// instance boots from.
///
/// # Errors
/// If EC2 refuses such a volume: numbers out of its type's range, or too large for its size or for each other, or of a type that takes none;
/// a size that its type does not have; a root of a type that nothing boots from; io1 and io2 without operations.
pub(super) fn ordered<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    keys: &'static Keys,
    (gib, root): (Option<i64>, bool),
) -> Result<DiskClass, InputError> {
    let stated = fields.optional(keys.volume_type, |n, what| volume_type(reader, n, what))?;
    let volume_type = stated.unwrap_or_else(|| Symbol::new("gp3"));
    let name = volume_type.as_str();
    refuse_root(reader, fields, keys, (name, root))?;
    refuse_size(reader, fields, (name, gib))?;
    let range = ebs_iops(name).map(|ebs_iop| (ebs_iop.least, ebs_iop.most));
    let iops = number(reader, fields, keys.iops, name, range)?;
    let of_gp3 = (name == "gp3").then_some(THROUGHPUT);
    let throughput_mib = number(reader, fields, keys.throughput, name, of_gp3)?.unwrap_or(0);
    let default = if name == "io1" { keys.io1_iops } else { None };
    let iops = match iops.or(default) {
        None if matches!(name, "io1" | "io2") => {
            return Err(reader
                .error(fields.at, format!("a volume of type {name} needs `{}`", keys.iops))
                .because(format!("`{}` is missing here", keys.iops))
                .help("EC2 launches no such volume without it: write the I/O operations per second, or another type"));
        }
        iops => iops.unwrap_or(0),
    };
    refuse_disproportion(reader, fields, keys, (name, gib), (i64::from(iops), i64::from(throughput_mib)))?;
    Ok(DiskClass { volume_type: Some(volume_type), iops, iops_per_gib: 0, throughput_mib })
}

/// Refuses a root volume that nothing boots from.
fn refuse_root<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    keys: &'static Keys,
    (volume_type, root): (&str, bool),
) -> Result<(), InputError> {
    if !root || !NEVER_ROOT.contains(&volume_type) {
        return Ok(());
    }
    let at = fields.get(keys.volume_type).map_or(fields.at, |node| node.at);
    Err(reader
        .error(at, format!("volume type {volume_type} cannot be a root volume"))
        .because("EC2 cannot boot from it")
        .help("use gp3, and a separate data volume if you need this type"))
}

/// Refuses a size that volumes of its type do not have.
fn refuse_size<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    (volume_type, gib): (&str, Option<i64>),
) -> Result<(), InputError> {
    let (Some(gib), Some((least, most))) = (gib, ebs_sizes(volume_type)) else { return Ok(()) };
    if (least..=most).contains(&gib) {
        return Ok(());
    }
    let at = fields.get("volumeSize").map_or(fields.at, |node| node.at);
    Err(reader
        .error(at, format!("a volume of type {volume_type} cannot have {gib} GiB"))
        .because(format!("outside {least} to {most} GiB"))
        .help(format!("EC2 rejects this size: use {least} to {most} GiB, or another volume type")))
}

/// Refuses more operations than a volume of its size may have, and more throughput than its operations allow.
fn refuse_disproportion<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    keys: &'static Keys,
    (volume_type, gib): (&str, Option<i64>),
    (iops, throughput): (i64, i64),
) -> Result<(), InputError> {
    if let (Some(node), Some(gib), Some(range)) = (fields.get(keys.iops), gib, ebs_iops(volume_type)) {
        let each = range.per_gib;
        let most = range.least.max(gib.saturating_mul(each));
        if iops > most {
            let message = format!("`{}` is more than a volume of {gib} GiB of type {volume_type} has", keys.iops);
            return Err(reader
                .error(node.at, message)
                .because(format!("{each} for each GiB"))
                .help(format!("EC2 refuses it: order {most} at most, or a larger volume")));
        }
    }
    let needed = throughput * IOPS_PER_MIB;
    if let Some(node) = fields.get(keys.throughput).filter(|_| needed > iops.max(IOPS_OF_GP3)) {
        return Err(reader
            .error(node.at, format!("`{}` of {throughput} MiB/s needs {needed} I/O operations", keys.throughput))
            .because(format!("{IOPS_PER_MIB} for each MiB/s"))
            .help(format!("EC2 rejects this: also set `{}`, or lower the throughput", keys.iops)));
    }
    Ok(())
}

/// The number under `key` within the range of the type; a type without a range takes none.
fn number<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    key: &'static str,
    volume_type: &str,
    range: Option<(i64, i64)>,
) -> Result<Option<u32>, InputError> {
    let Some(node) = fields.get(key) else { return Ok(None) };
    let Some((least, most)) = range else {
        return Err(reader
            .error(node.at, format!("`{key}` is not supported for volume type {volume_type}"))
            .because("EC2 refuses it")
            .help(format!("remove `{key}`, or use a type that supports it, for example gp3")));
    };
    let number = reader.integer(node, key, least, most)?;
    Ok(u32::try_from(number).ok())
}

/// What the volume of a node group of eksctl, of so many GiB, is ordered as: the root, of Bottlerocket the volume for pods.
///
/// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/defaults.go`, `bottlerocketDataDisk`.
pub(super) fn of_group<'s>(
    reader: &Reader<'s>,
    group: Fields<'_, 's>,
    (gib, family): (i64, AmiFamily),
) -> Result<DiskClass, InputError> {
    ordered(reader, group, &EKSCTL, (Some(gib), family != AmiFamily::Bottlerocket))
}

static ADDITIONAL: Shape = Shape {
    name: "an additional volume",
    keys: &["volumeName", "volumeSize", "volumeType", "volumeIOPS", "volumeThroughput"],
    without_effect: &["volumeEncrypted", "volumeKmsKeyID", "snapshotID"],
    unsupported: &[],
    strict: false,
};

/// `additionalVolumes` of a node group of eksctl with images of this family; eksctl makes none of those without name or size.
///
/// Source: eksctl `pkg/cfn/builder/block_device_mapping.go`, `makeBlockDeviceMapping`.
///
/// # Errors
/// As [`ordered`], and if two volumes of the group are one device.
pub(super) fn additional<'s>(
    reader: &mut Reader<'s>,
    group: Fields<'_, 's>,
    family: AmiFamily,
) -> Result<Vec<NodeVolume>, InputError> {
    let items = group.optional("additionalVolumes", |n, what| reader.list(n, what))?.unwrap_or_default();
    let stated = group.optional("volumeName", |n, what| reader.text(n, what))?;
    let of_family = if family == AmiFamily::Bottlerocket { Some("/dev/xvdb") } else { family.root_device() };
    let mut devices: Vec<&str> = stated.or(of_family).into_iter().collect();
    let mut volumes = Vec::new();
    for node in items {
        let fields = reader.fields(node, &ADDITIONAL)?;
        let size = fields.optional("volumeSize", |n, what| reader.integer(n, what, 0, 65_536))?.unwrap_or(0);
        let name = fields.optional("volumeName", |n, what| reader.text(n, what))?.filter(|name| !name.is_empty());
        let Some(name) = name.filter(|_| size > 0) else {
            let message = "eksctl makes no additional volume without `volumeName` and `volumeSize`";
            reader.warn(&lints::EKSCTL_VOLUME, node.at, message, "not made", "state both, or take the volume out");
            continue;
        };
        if devices.contains(&name) {
            let shown: String = name.chars().take(80).collect();
            return Err(reader
                .error(node.at, format!("two volumes of the node group are the device `{shown}`"))
                .because("the second")
                .help("EC2 refuses it: give each its own `volumeName`"));
        }
        devices.push(name);
        volumes.push(NodeVolume { gib: size, class: ordered(reader, fields, &EKSCTL, (Some(size), false))? });
    }
    Ok(volumes)
}
