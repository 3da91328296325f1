//! Persistent volumes, as far as they decide where a pod may run and what is billed for them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::pod::{ClaimSource, NodeSelectorTerm, VolumeRef};
use super::symbol::{Symbol, well_known};
use super::workload::ObjectName;

/// When a StorageClass makes the volume for a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum VolumeBindingMode {
    /// As soon as the claim exists.
    #[default]
    Immediate,
    /// When the first pod that uses the claim is placed.
    WaitForFirstConsumer,
}

/// What EBS volumes are billed by beside their size: those of a StorageClass, of a node class and of a node group.
///
/// Source: aws-ebs-csi-driver 1.40 `docs/parameters.md`; EC2 API reference, `EbsBlockDevice`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DiskClass {
    /// The EBS volume type, for example `gp2`; `None` where none is stated, which is taken for `gp3`.
    pub volume_type: Option<Symbol>,
    /// I/O operations per second that are ordered, in all.
    pub iops: u32,
    /// The same for each GiB, where no number for all is given.
    pub iops_per_gib: u32,
    /// Throughput that is ordered, in MiB per second.
    pub throughput_mib: u32,
}

/// GiB that an EBS volume of a type may have: least and most; `None` for a type that is not known.
///
/// Source: EC2 API reference, `ModifyVolume`, `Size` (2026).
pub fn ebs_sizes(volume_type: &str) -> Option<(i64, i64)> {
    const SIZES: [(&str, i64, i64); 7] = [
        ("gp2", 1, 16_384),
        ("gp3", 1, 65_536),
        ("io1", 4, 16_384),
        ("io2", 4, 65_536),
        ("st1", 125, 16_384),
        ("sc1", 125, 16_384),
        ("standard", 1, 1_024),
    ];
    SIZES.iter().find(|size| size.0 == volume_type).map(|&(_, least, most)| (least, most))
}

/// I/O operations per second that can be ordered of EBS volumes of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EbsIops {
    /// The least; of gp3 what comes with every volume.
    pub least: i64,
    /// The most.
    pub most: i64,
    /// The most for each GiB.
    pub per_gib: i64,
}

/// I/O operations that can be ordered of a type; `None` for a type of which none can be.
///
/// Source: EC2 API reference, `EbsBlockDevice`; EBS user guide, `general-purpose` and `provisioned-iops` (2026).
pub fn ebs_iops(volume_type: &str) -> Option<EbsIops> {
    let (least, most, per_gib) = match volume_type {
        "gp3" => (3_000, 80_000, 500),
        "io1" => (100, 64_000, 50),
        "io2" => (100, 256_000, 1_000),
        _ => return None,
    };
    Some(EbsIops { least, most, per_gib })
}

impl DiskClass {
    /// The type's name: gp3 where none is stated.
    pub fn type_name(&self) -> &'static str {
        self.volume_type.map_or("gp3", Symbol::as_str)
    }

    /// I/O operations per second that are ordered of a volume of so many GiB: no more than there are of its type, and for its size.
    ///
    /// Source: aws-ebs-csi-driver `pkg/cloud/cloud.go`, `CreateDisk`, `capIOPS` (2026; the most that there is it asks EC2 for).
    pub fn ordered_iops(&self, gib: i64) -> i64 {
        let wanted = if self.iops > 0 { self.iops.into() } else { i64::from(self.iops_per_gib).saturating_mul(gib) };
        let Some(EbsIops { least, most, per_gib }) = ebs_iops(self.type_name()) else { return wanted };
        let for_size = per_gib.saturating_mul(gib);
        wanted.min(if for_size >= least { most.min(for_size) } else { most })
    }

    /// This as a VolumeAttributesClass with these parameters changes it.
    pub fn changed_by(self, by: Self) -> Self {
        let is_new_rate = by.iops > 0 || by.iops_per_gib > 0;
        let (iops, iops_per_gib) =
            if is_new_rate { (by.iops, by.iops_per_gib) } else { (self.iops, self.iops_per_gib) };
        let throughput_mib = if by.throughput_mib > 0 { by.throughput_mib } else { self.throughput_mib };
        Self { volume_type: by.volume_type.or(self.volume_type), iops, iops_per_gib, throughput_mib }
    }

    /// A type, with the operations and the throughput that come with it.
    pub fn of_type(volume_type: &str) -> Self {
        Self { volume_type: Some(Symbol::new(volume_type)), ..Self::default() }
    }
}

/// An EBS volume that a node is launched with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeVolume {
    /// Its size in GiB.
    pub gib: i64,
    /// What it is ordered as.
    pub class: DiskClass,
}

/// The EBS volumes that a node is launched with. Nodes of one node class or group share them, so that a copy costs nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeVolumes(Arc<[NodeVolume]>);

impl NodeVolumes {
    /// One gp3 volume of so many GiB, with the operations and the throughput that come with it.
    pub fn gp3(gib: i64) -> Self {
        Self(Arc::from([NodeVolume { gib, class: DiskClass::of_type("gp3") }]))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &NodeVolume> {
        self.0.iter()
    }
}

impl FromIterator<NodeVolume> for NodeVolumes {
    fn from_iter<I: IntoIterator<Item = NodeVolume>>(volumes: I) -> Self {
        Self(volumes.into_iter().collect())
    }
}

/// A StorageClass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageClass {
    /// Name.
    pub name: Symbol,
    /// The driver, for example `ebs.csi.aws.com`.
    pub provisioner: Symbol,
    /// When volumes are made.
    pub binding_mode: VolumeBindingMode,
    /// `allowedTopologies`: alternatives, each a set of label expressions; empty means anywhere.
    pub allowed_topologies: Vec<NodeSelectorTerm>,
    /// Whether claims that name no class get this one.
    pub default_class: bool,
    /// What its volumes are billed by.
    pub disk: DiskClass,
    /// Whether its volumes stay when their claims are deleted (`reclaimPolicy: Retain`).
    pub retain: bool,
    /// Whether the claims of its volumes may ask for more (`allowVolumeExpansion`).
    pub expandable: bool,
}

/// A VolumeAttributesClass: what it states goes before the parameters of a StorageClass.
///
/// Source: Kubernetes 1.36 `k8s.io/api/storage/v1`, `VolumeAttributesClass`; aws-ebs-csi-driver `docs/modify-volume.md` (2026).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeAttributesClass {
    /// Name.
    pub name: Symbol,
    /// The driver whose volumes it is for.
    pub driver: Symbol,
    /// What its volumes are billed by.
    pub disk: DiskClass,
}

/// A PersistentVolume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentVolume {
    /// Name.
    pub name: Symbol,
    /// The CSI driver; in-tree names are translated by whoever reads the manifest. `None` for volumes without one.
    pub driver: Option<Symbol>,
    /// The alternatives of its required node affinity; empty means anywhere.
    pub node_affinity: Vec<NodeSelectorTerm>,
    /// Whether it is a `local` or `hostPath` volume, whose hostname affinity a new node could never meet.
    pub node_local: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// `storageClassName`; `None` when not given.
    pub class: Option<Symbol>,
    /// `volumeAttributesClassName`; `None` when not given.
    pub attributes: Option<Symbol>,
    /// Its size in GiB, rounded up; `None` if it is in no file.
    pub gib: Option<u32>,
    /// Whether it stays when its claim is deleted (`persistentVolumeReclaimPolicy`).
    pub retain: bool,
    /// The claim that it is kept for by whoever made it (`claimRef` without a `uid`).
    pub kept_for: Option<ObjectName>,
}

impl PersistentVolume {
    /// Whether it is kept for this claim and the controller binds it to it.
    ///
    /// Source: Kubernetes 1.36 `k8s.io/component-helpers/storage/volume/pv_helpers.go`, `FindMatchingVolume` and `IsVolumeBoundToClaim`.
    pub fn is_kept_for(&self, claim: &PersistentVolumeClaim) -> bool {
        let named = self.kept_for == Some(ObjectName { namespace: claim.namespace, name: claim.name });
        let is_large_enough = self.gib.zip(claim.gib()).is_none_or(|(there, asked)| there >= asked);
        named && is_large_enough && !self.deleting
    }
}

/// A PersistentVolumeClaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PersistentVolumeClaim {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// `storageClassName`; `None` when not given.
    pub class: Option<Symbol>,
    /// `volumeAttributesClassName`; `None` when not given.
    pub attributes: Option<Symbol>,
    /// The volume it is bound to.
    pub volume: Option<Symbol>,
    /// Whether binding has finished (annotation `pv.kubernetes.io/bind-completed`).
    pub bind_completed: bool,
    /// Whether its volume is lost.
    pub lost: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The size that is asked for in bytes; `None` if it is in no file.
    pub bytes: Option<i64>,
    /// Whether one pod of the cluster may use it at a time (access mode `ReadWriteOncePod`).
    pub one_pod: bool,
}

/// A size in whole GiB, rounded up, as EBS has it; `None` for nothing.
pub fn whole_gib(bytes: i64) -> Option<u32> {
    u32::try_from(bytes.max(0).unsigned_abs().div_ceil(1 << 30)).ok().filter(|&gib| gib > 0)
}

impl PersistentVolumeClaim {
    /// The size that is asked for in whole GiB.
    pub fn gib(&self) -> Option<u32> {
        self.bytes.and_then(whole_gib)
    }

    /// The claim that comes with a pod, or that a StatefulSet makes for it; `None` for one that is there beside the pod.
    pub fn made_for(volume: &VolumeRef, namespace: Symbol, pod: &str) -> Option<Self> {
        let class = match volume.source {
            ClaimSource::Named => return None,
            ClaimSource::Ephemeral(class) => (class != well_known::EMPTY).then_some(class),
            ClaimSource::Template(class) => class,
        };
        let name = Symbol::new(&volume.claim_name(pod));
        Some(Self { bytes: volume.bytes, attributes: volume.attributes, ..Self::unbound(namespace, name, class) })
    }

    /// A claim without a volume.
    pub const fn unbound(namespace: Symbol, name: Symbol, class: Option<Symbol>) -> Self {
        Self {
            namespace,
            name,
            class,
            attributes: None,
            volume: None,
            bind_completed: false,
            lost: false,
            deleting: false,
            bytes: None,
            one_pod: false,
        }
    }
}

/// The claims, volumes and classes of a cluster, found by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Storage {
    claims: FxHashMap<(Symbol, Symbol), PersistentVolumeClaim>,
    volumes: FxHashMap<Symbol, PersistentVolume>,
    classes: Vec<StorageClass>,
    attribute_classes: Vec<VolumeAttributesClass>,
}

impl Storage {
    /// These objects; of two with one name the later counts.
    pub fn new(
        claims: impl IntoIterator<Item = PersistentVolumeClaim>,
        volumes: impl IntoIterator<Item = PersistentVolume>,
        classes: Vec<StorageClass>,
    ) -> Self {
        let mut storage = Self { classes, ..Self::default() };
        claims.into_iter().for_each(|claim| storage.put_claim(claim));
        volumes.into_iter().for_each(|volume| storage.put_volume(volume));
        storage
    }

    /// The same with these VolumeAttributesClasses.
    pub fn with_attributes(self, attribute_classes: Vec<VolumeAttributesClass>) -> Self {
        Self { attribute_classes, ..self }
    }

    /// Whether there is neither a claim nor a class.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.classes.is_empty()
    }

    /// The claim called `name`. Takes text, so that asking for a claim that does not exist leaves nothing behind.
    pub fn claim(&self, namespace: Symbol, name: &str) -> Option<&PersistentVolumeClaim> {
        self.claims.get(&(namespace, Symbol::existing(name)?))
    }

    /// All claims, in order of namespace and name.
    pub fn claims_in_order(&self) -> Vec<&PersistentVolumeClaim> {
        let mut claims: Vec<&PersistentVolumeClaim> = self.claims.values().collect();
        claims.sort_unstable_by_key(|claim| (claim.namespace, claim.name));
        claims
    }

    /// The claims of a namespace, in no order.
    pub fn claims_in(&self, namespace: Symbol) -> impl Iterator<Item = &PersistentVolumeClaim> {
        self.claims.values().filter(move |claim| claim.namespace == namespace)
    }

    /// The volume called `name`.
    pub fn volume(&self, name: Symbol) -> Option<&PersistentVolume> {
        self.volumes.get(&name)
    }

    /// All volumes, in order of name.
    pub fn volumes_in_order(&self) -> Vec<&PersistentVolume> {
        let mut volumes: Vec<&PersistentVolume> = self.volumes.values().collect();
        volumes.sort_unstable_by_key(|volume| volume.name);
        volumes
    }

    /// The class called `name`.
    pub fn class(&self, name: Symbol) -> Option<&StorageClass> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// The VolumeAttributesClass called `name`, if it is for volumes of the driver.
    pub fn attributes(&self, name: Option<Symbol>, driver: Option<Symbol>) -> Option<&VolumeAttributesClass> {
        self.attribute_classes
            .iter()
            .find(|attribute_class| Some(attribute_class.name) == name && Some(attribute_class.driver) == driver)
    }

    /// What a volume is billed by.
    pub fn disk_of(&self, volume: &PersistentVolume) -> DiskClass {
        let disk = volume.class.and_then(|name| self.class(name)).map(|class| class.disk).unwrap_or_default();
        self.attributes(volume.attributes, volume.driver).map_or(disk, |attribute| disk.changed_by(attribute.disk))
    }

    /// What the volume of a claim that is not bound will be billed by; `None` without a class that makes one.
    pub fn disk_for(&self, claim: &PersistentVolumeClaim) -> Option<DiskClass> {
        let class = self.class_of(claim)?;
        let attributes = self.attributes(claim.attributes, Some(class.provisioner));
        Some(attributes.map_or(class.disk, |attribute| class.disk.changed_by(attribute.disk)))
    }

    /// The class of claims that name none.
    pub fn default_class(&self) -> Option<&StorageClass> {
        self.classes.iter().find(|class| class.default_class)
    }

    /// The class of a claim that is not bound; `None` if there is none, or if the claim asks for a volume made by hand.
    pub fn class_of(&self, claim: &PersistentVolumeClaim) -> Option<&StorageClass> {
        match claim.class {
            Some(name) if name == well_known::EMPTY => None,
            Some(name) => self.class(name),
            None => self.default_class(),
        }
    }

    /// The volume that a claim is bound to.
    pub fn bound(&self, claim: &PersistentVolumeClaim) -> Option<&PersistentVolume> {
        self.volume(claim.volume.filter(|_| claim.bind_completed)?)
    }

    /// Adds a claim or replaces the one of its name.
    pub fn put_claim(&mut self, claim: PersistentVolumeClaim) {
        self.claims.insert((claim.namespace, claim.name), claim);
    }

    /// Adds a volume or replaces the one of its name.
    pub fn put_volume(&mut self, volume: PersistentVolume) {
        self.volumes.insert(volume.name, volume);
    }

    /// Takes a claim away, with the volume that it is bound to, which is returned.
    pub fn remove_claim(&mut self, namespace: Symbol, name: Symbol) -> Option<PersistentVolume> {
        let claim = self.claims.remove(&(namespace, name));
        self.volumes.remove(&claim?.volume?)
    }
}
