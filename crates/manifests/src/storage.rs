//! Persistent volumes, their claims and classes, and how many volumes a node can attach.

use super::affinity;
use super::common::{current_label, metadata, metadata_and_life, symbols};
use crate::lints;
use nodecast_model::domain::Symbol;
use nodecast_model::domain::pod::{ClaimSource, NodeSelectorExpression, NodeSelectorTerm, VolumeRef};
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::volumes::{
    DiskClass, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttributesClass, VolumeBindingMode,
    whole_gib,
};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Node, NodeKind};

/// The annotation by which claims and volumes named their class before there was `storageClassName`.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// How many volumes of each CSI driver a node can attach, as its CSINode object says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachLimits {
    /// The node.
    pub node: Symbol,
    /// Driver and count; drivers without a limit are not listed.
    pub drivers: Vec<(Symbol, u32)>,
}

/// A CSIDriver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CsiDriver {
    /// Name.
    pub name: Symbol,
    /// `preventPodSchedulingIfMissing`: a node whose CSINode does not list the driver takes no pods with its volumes.
    pub is_required: bool,
}

static CLASS: Shape = Shape {
    name: "a StorageClass",
    keys: &[
        "apiVersion",
        "kind",
        "metadata",
        "provisioner",
        "parameters",
        "reclaimPolicy",
        "volumeBindingMode",
        "allowedTopologies",
        "allowVolumeExpansion",
    ],
    without_effect: &["mountOptions"],
    unsupported: &[],
    strict: false,
};
static ATTRIBUTES: Shape = Shape {
    name: "a VolumeAttributesClass",
    keys: &["apiVersion", "kind", "metadata", "driverName", "parameters"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TOPOLOGY_TERM: Shape = Shape {
    name: "an allowed topology",
    keys: &["matchLabelExpressions"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TOPOLOGY_EXPRESSION: Shape = Shape {
    name: "an expression of an allowed topology",
    keys: &["key", "values"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static OBJECT: Shape = Shape {
    name: "an object",
    keys: &["apiVersion", "kind", "metadata", "spec", "status"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static VOLUME: Shape = Shape {
    name: "a PersistentVolume's spec",
    keys: &[
        "nodeAffinity",
        "capacity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "csi",
        "local",
        "hostPath",
        "awsElasticBlockStore",
        "gcePersistentDisk",
        "claimRef",
    ],
    without_effect: &["accessModes", "mountOptions", "volumeMode", "nfs", "iscsi", "fc"],
    unsupported: &[],
    strict: false,
};
static CLAIM_REF: Shape = Shape {
    name: "`claimRef`",
    keys: &["namespace", "name", "uid"],
    without_effect: &["apiVersion", "kind", "resourceVersion", "fieldPath"],
    unsupported: &[],
    strict: false,
};
static CLAIM: Shape = Shape {
    name: "a PersistentVolumeClaim's spec",
    keys: &["storageClassName", "volumeAttributesClassName", "volumeName", "resources", "accessModes"],
    without_effect: &["volumeMode", "selector", "dataSource", "dataSourceRef"],
    unsupported: &[],
    strict: false,
};
static CSI_DRIVER: Shape = Shape {
    name: "a CSIDriver's spec",
    keys: &["preventPodSchedulingIfMissing"],
    without_effect: &[
        "attachRequired",
        "fsGroupPolicy",
        "nodeAllocatableUpdatePeriodSeconds",
        "podInfoOnMount",
        "requiresRepublish",
        "seLinuxMount",
        "serviceAccountTokenInSecrets",
        "storageCapacity",
        "tokenRequests",
        "volumeLifecycleModes",
    ],
    unsupported: &[],
    strict: false,
};
static CSI_NODE: Shape =
    Shape { name: "a CSINode's spec", keys: &["drivers"], without_effect: &[], unsupported: &[], strict: false };

/// A StorageClass. Drivers of volumes built into Kubernetes are named by the CSI driver that took them over, and that of EKS Auto Mode by the
/// one whose volumes its own are.
///
/// Source: Kubernetes 1.36 `k8s.io/csi-translation-lib/plugins`; EKS user guide, "Create a storage class" (Auto Mode).
pub(super) fn storage_class<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<StorageClass, InputError> {
    let fields = reader.fields(object, &CLASS)?;
    let metadata = metadata(reader, fields.get("metadata"))?;
    let provisioner = reader.symbol(fields.required(reader, "provisioner")?, "provisioner")?;
    let modes = [
        ("Immediate", VolumeBindingMode::Immediate),
        ("WaitForFirstConsumer", VolumeBindingMode::WaitForFirstConsumer),
    ];
    let mode = fields.optional("volumeBindingMode", |n, what| reader.choice(n, what, &modes))?;
    let mut allowed_topologies = Vec::new();
    for term in fields.optional("allowedTopologies", |n, what| reader.list(n, what))?.unwrap_or_default() {
        allowed_topologies.push(allowed_topology(reader, term)?);
    }
    let marks = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let default_class = marks.iter().any(|key| metadata.annotations.get((*key).into()) == Some(well_known::TRUE));
    Ok(StorageClass {
        name: metadata.name.name,
        provisioner: csi_name(provisioner),
        binding_mode: mode.unwrap_or_default(),
        allowed_topologies,
        default_class,
        disk: fields.get("parameters").map_or(Ok(DiskClass::default()), |field| disk_class(reader, field))?,
        retain: fields.get("reclaimPolicy").and_then(Node::as_text) == Some("Retain"),
        expandable: fields.optional("allowVolumeExpansion", |n, what| reader.truth(n, what))?.unwrap_or(false),
    })
}

/// A VolumeAttributesClass; drivers are named as those of StorageClasses are.
pub(super) fn attributes_class<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
) -> Result<VolumeAttributesClass, InputError> {
    let fields = reader.fields(object, &ATTRIBUTES)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let driver = csi_name(reader.symbol(fields.required(reader, "driverName")?, "driverName")?);
    let disk = fields.get("parameters").map_or(Ok(DiskClass::default()), |field| disk_class(reader, field))?;
    Ok(VolumeAttributesClass { name, driver, disk })
}

/// The VolumeAttributesClass that a claim or a volume names; the empty name stands for none.
fn attributes<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<Option<Symbol>, InputError> {
    let name = spec.optional("volumeAttributesClassName", |n, what| reader.symbol(n, what))?;
    Ok(name.filter(|name| *name != well_known::EMPTY))
}

/// The parameters of a class that its volumes are billed by; their names are the same in capitals.
fn disk_class<'s>(reader: &Reader<'s>, parameters: &Node<'s>) -> Result<DiskClass, InputError> {
    let mut disk = DiskClass::default();
    let entries = reader.entries(parameters, "parameters")?;
    for entry in entries.iter().filter(|entry| entry.value.kind != NodeKind::Null) {
        let (key, value) = (entry.key.to_ascii_lowercase(), &entry.value);
        let number = || Ok(reader.integer(value, entry.key.as_ref(), 0, 1_000_000)? as u32);
        match key.as_str() {
            "type" => disk.volume_type = Some(Symbol::new(&reader.text(value, "type")?.to_ascii_lowercase())),
            "iops" => disk.iops = number()?,
            "iopspergb" => disk.iops_per_gib = number()?,
            "throughput" => disk.throughput_mib = number()?,
            _ => {}
        }
    }
    Ok(disk)
}

/// A size in whole GiB, rounded up, as EBS has it.
fn gib<'s>(reader: &Reader<'s>, sizes: Option<&Node<'s>>) -> Result<Option<u32>, InputError> {
    Ok(bytes(reader, sizes)?.and_then(whole_gib))
}

fn bytes<'s>(reader: &Reader<'s>, sizes: Option<&Node<'s>>) -> Result<Option<i64>, InputError> {
    let Some(size) = sizes.and_then(|sizes| sizes.get("storage")) else { return Ok(None) };
    Ok(Some(reader.quantity(size, "storage")?.value()).filter(|bytes| *bytes > 0))
}

/// The size in bytes that the `resources` of a claim ask for.
pub(super) fn requested_bytes<'s>(
    reader: &Reader<'s>,
    resources: Option<&Node<'s>>,
) -> Result<Option<i64>, InputError> {
    bytes(reader, resources.and_then(|resources| resources.get("requests")))
}

/// The driver under the name by which the simulation knows it.
fn csi_name(driver: Symbol) -> Symbol {
    match driver.as_str() {
        // Auto Mode's own driver makes and attaches the same volumes of EBS.
        "kubernetes.io/aws-ebs" | "ebs.csi.eks.amazonaws.com" => well_known::EBS_DRIVER,
        "kubernetes.io/gce-pd" => Symbol::new("pd.csi.storage.gke.io"),
        "kubernetes.io/azure-disk" => Symbol::new("disk.csi.azure.com"),
        _ => driver,
    }
}

fn allowed_topology<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<NodeSelectorTerm, InputError> {
    let fields = reader.fields(node, &TOPOLOGY_TERM)?;
    let mut expressions = Vec::new();
    for item in fields.optional("matchLabelExpressions", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(item, &TOPOLOGY_EXPRESSION)?;
        expressions.push(NodeSelectorExpression {
            key: current_label(reader.symbol(fields.required(reader, "key")?, "key")?),
            operator: Operator::In,
            values: symbols(reader, fields, "values")?,
        });
    }
    Ok(NodeSelectorTerm { expressions, fields: Vec::new() })
}

/// A PersistentVolume.
pub(super) fn volume<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<PersistentVolume, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let spec = reader.fields(fields.required(reader, "spec")?, &VOLUME)?;
    let node_affinity = match spec.get("nodeAffinity").and_then(|node| node.get("required")) {
        Some(required) => affinity::required_terms(reader, required)?,
        None => Vec::new(),
    };
    Ok(PersistentVolume {
        name: metadata.name.name,
        driver: driver_of(reader, spec)?,
        node_affinity,
        node_local: spec.get("local").is_some() || spec.get("hostPath").is_some(),
        deleting: life.deleting,
        class: match metadata.annotations.get(BETA_CLASS.into()) {
            Some(class) => Some(class),
            None => spec.optional("storageClassName", |n, what| reader.symbol(n, what))?,
        },
        attributes: attributes(reader, spec)?,
        gib: gib(reader, spec.get("capacity"))?,
        retain: spec.get("persistentVolumeReclaimPolicy").and_then(Node::as_text) != Some("Delete"),
        kept_for: spec.optional("claimRef", |n, _| kept_for(reader, n))?.flatten(),
    })
}

/// The claim that a volume is kept for; none where it is that of a `uid`, which a claim that is applied does not have: that one names its
/// volume itself, or is gone.
fn kept_for<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Option<ObjectName>, InputError> {
    let fields = reader.fields(node, &CLAIM_REF)?;
    let Some(name) = fields.optional("name", |n, what| reader.symbol(n, what))? else { return Ok(None) };
    let namespace = fields.optional("namespace", |n, what| reader.symbol(n, what))?.unwrap_or(well_known::DEFAULT);
    Ok(fields.get("uid").is_none().then_some(ObjectName { namespace, name }))
}

fn driver_of(reader: &Reader<'_>, spec: Fields<'_, '_>) -> Result<Option<Symbol>, InputError> {
    if let Some(driver) = spec.get("csi").and_then(|csi| csi.get("driver")) {
        return reader.text(driver, "driver").map(|name| Some(csi_name(Symbol::new(name))));
    }
    let built_in = [("awsElasticBlockStore", "kubernetes.io/aws-ebs"), ("gcePersistentDisk", "kubernetes.io/gce-pd")];
    let found = built_in.iter().find(|(key, _)| spec.get(key).is_some());
    Ok(found.map(|(_, name)| csi_name(Symbol::new(name))))
}

/// A PersistentVolumeClaim. The class in its older annotation goes before `storageClassName`.
///
/// Source: Kubernetes 1.36 `k8s.io/component-helpers/storage/volume/helpers.go`, `GetPersistentVolumeClaimClass`.
///
/// Deviation: Karpenter reads only `storageClassName`. It launches nothing for pods whose unbound claim has its class
/// in the annotation. The simulated Karpenter reads both, with a warning.
pub(super) fn claim<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<PersistentVolumeClaim, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let mut claim = PersistentVolumeClaim {
        namespace: metadata.name.namespace,
        name: metadata.name.name,
        class: None,
        attributes: None,
        volume: None,
        bind_completed: metadata.annotations.get("pv.kubernetes.io/bind-completed".into()).is_some(),
        lost: fields.get("status").and_then(|status| status.get("phase")).and_then(Node::as_text) == Some("Lost"),
        deleting: life.deleting,
        bytes: None,
        one_pod: false,
    };
    if let Some(given) = fields.get("spec") {
        let spec = reader.fields(given, &CLAIM)?;
        claim.class = spec.optional("storageClassName", |n, what| reader.symbol(n, what))?;
        if let Some(class) = metadata.annotations.get(BETA_CLASS.into()) {
            if claim.class != Some(class) {
                warn_of_annotation(reader, object, class);
            }
            claim.class = Some(class);
        }
        claim.attributes = attributes(reader, spec)?;
        let volume = spec.optional("volumeName", |n, what| reader.symbol(n, what))?;
        claim.volume = volume.filter(|name| *name != well_known::EMPTY);
        claim.bytes = requested_bytes(reader, spec.get("resources"))?;
        claim.one_pod = symbols(reader, spec, "accessModes")?.iter().any(|mode| mode.as_str() == "ReadWriteOncePod");
    }
    Ok(claim)
}

/// Warns of a class that Kubernetes reads and Karpenter does not.
///
/// Source: Karpenter v1.13 `pkg/controllers/provisioning/scheduling/volumetopology.go`, `ValidatePersistentVolumeClaims`.
fn warn_of_annotation<'s>(reader: &mut Reader<'s>, claim: &Node<'s>, class: Symbol) {
    let annotations = claim.get("metadata").and_then(|claim| claim.get("annotations"));
    let at = annotations.and_then(|annotation| annotation.get(BETA_CLASS)).map_or(claim.at, |annotation| annotation.at);
    let message = format!(
        "the class `{class}` of a claim stands in the annotation `{BETA_CLASS}`, which Karpenter does not read: it launches no node for such a pod, the simulated one does"
    );
    reader.warn(&lints::CLAIM_ANNOTATION, at, message, "an older place", "write it as `storageClassName` of the spec");
}

/// The claims that a StatefulSet makes for each of its pods, as volumes of the pods.
pub(super) fn claim_templates<'s>(reader: &mut Reader<'s>, set: Fields<'_, 's>) -> Result<Vec<VolumeRef>, InputError> {
    let mut volumes = Vec::new();
    for template in set.optional("volumeClaimTemplates", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let claim = claim(reader, template)?;
        volumes.push(VolumeRef {
            claim: claim.name,
            source: ClaimSource::Template(claim.class),
            bytes: claim.bytes,
            attributes: claim.attributes,
        });
    }
    Ok(volumes)
}

/// A CSIDriver.
pub(super) fn csi_driver<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<CsiDriver, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let spec = fields.get("spec").map(|spec| reader.fields(spec, &CSI_DRIVER)).transpose()?;
    let is_required = spec
        .and_then(|spec| spec.optional("preventPodSchedulingIfMissing", |n, what| reader.truth(n, what)).transpose());
    Ok(CsiDriver { name: csi_name(name), is_required: is_required.transpose()?.unwrap_or(false) })
}

/// A CSINode.
pub(super) fn csi_node<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<AttachLimits, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let node = metadata(reader, fields.get("metadata"))?.name.name;
    let mut drivers = Vec::new();
    if let Some(given) = fields.get("spec") {
        let spec = reader.fields(given, &CSI_NODE)?;
        for driver in spec.optional("drivers", |n, what| reader.list(n, what))?.unwrap_or_default() {
            let name = driver.get("name").map(|name| reader.symbol(name, "name")).transpose()?;
            let count = driver.get("allocatable").and_then(|driver| driver.get("count"));
            let count = count.map(|count| reader.integer(count, "count", 0, i64::from(u32::MAX))).transpose()?;
            if let (Some(name), Some(count)) = (name, count.and_then(|count| u32::try_from(count).ok())) {
                drivers.push((csi_name(name), count));
            }
        }
    }
    Ok(AttachLimits { node, drivers })
}
