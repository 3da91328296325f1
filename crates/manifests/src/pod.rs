//! Pods and pod templates.

use super::affinity;
use super::common::{
    Metadata, current_label, labels, metadata, metadata_and_life, resource_map, resources, taint_effect,
};
use super::containers::{CONTAINER_RESOURCES, all_containers};
use super::fractions;
use super::offered::warn_of_unknown_values;
use super::readiness_gates;
use super::storage::requested_bytes;
use crate::lints;
use nodecast_model::domain::pod::{ClaimSource, OwnerKind, PodPhase, PreemptionPolicy, VolumeRef};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::TolerationOperator;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Labels, PodSpec, Resources, SimDuration, SimTime, Symbol, Toleration};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

/// A Pod object.
#[derive(Clone, PartialEq, Debug)]
pub struct PodObject {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it asks for.
    pub spec: PodSpec,
    /// The name of what controls it; its kind stands in the specification.
    pub controller: Option<Symbol>,
    /// How far it is, as its status says; `Pending` without one.
    pub phase: PodPhase,
    /// When it was created, since 1970.
    pub created: Option<SimTime>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When its grace period is over, since 1970, if it is being deleted.
    pub gone_by: Option<SimTime>,
    /// Whether its `Ready` condition, if there is one, is true.
    pub ready: bool,
    /// What kube-scheduler said of it.
    pub verdict: SchedulerVerdict,
}

/// What kube-scheduler said of a pod without a node, as its status shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchedulerVerdict {
    /// The object has no conditions: it comes from a manifest, not from a cluster.
    #[default]
    NotAsked,
    /// Nothing yet, or something else than that it does not fit.
    Waiting,
    /// Condition `PodScheduled` has the reason `Unschedulable`.
    Unschedulable,
    /// Pods of lower priority are being removed from this node for it (`nominatedNodeName`).
    Nominated(Symbol),
}

pub(super) static OBJECT: Shape = Shape {
    name: "an object",
    keys: &["apiVersion", "kind", "metadata", "spec"],
    without_effect: &["status"],
    unsupported: &[],
    strict: false,
};
static TEMPLATE: Shape =
    Shape { name: "a pod template", keys: &["metadata", "spec"], without_effect: &[], unsupported: &[], strict: false };
static POD_SPEC: Shape = Shape {
    name: "a pod's spec",
    keys: &[
        "containers",
        "initContainers",
        "overhead",
        "resources",
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "schedulingGates",
        "volumes",
        "resourceClaims",
        "nodeName",
        "terminationGracePeriodSeconds",
        "readinessGates",
        "hostNetwork",
        "schedulerName",
        "runtimeClassName",
    ],
    without_effect: &[
        "restartPolicy",
        "dnsPolicy",
        "dnsConfig",
        "serviceAccountName",
        "serviceAccount",
        "automountServiceAccountToken",
        "hostPID",
        "hostIPC",
        "hostUsers",
        "shareProcessNamespace",
        "securityContext",
        "imagePullSecrets",
        "hostname",
        "hostnameOverride",
        "subdomain",
        "hostAliases",
        "enableServiceLinks",
        "setHostnameAsFQDN",
        "os",
        "ephemeralContainers",
    ],
    unsupported: &[("activeDeadlineSeconds", "the pod runs without a deadline")],
    strict: false,
};
static TOLERATION: Shape = Shape {
    name: "a toleration",
    keys: &["key", "operator", "value", "effect", "tolerationSeconds"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
const NO_PLACE: &str = "the volume does not restrict the pod to a zone";
static VOLUME: Shape = Shape {
    name: "a volume",
    keys: &["name", "persistentVolumeClaim", "ephemeral", "emptyDir", "hostPath"],
    without_effect: &[
        "configMap",
        "secret",
        "projected",
        "downwardAPI",
        "csi",
        "nfs",
        "image",
        "gitRepo",
        "iscsi",
        "cephfs",
        "glusterfs",
        "rbd",
        "flexVolume",
        "fc",
    ],
    unsupported: &[
        ("awsElasticBlockStore", NO_PLACE),
        ("gcePersistentDisk", NO_PLACE),
        ("azureDisk", NO_PLACE),
        ("azureFile", NO_PLACE),
        ("cinder", NO_PLACE),
        ("vsphereVolume", NO_PLACE),
        ("portworxVolume", NO_PLACE),
        ("scaleIO", NO_PLACE),
        ("storageos", NO_PLACE),
        ("quobyte", NO_PLACE),
        ("flocker", NO_PLACE),
        ("photonPersistentDisk", NO_PLACE),
    ],
    strict: false,
};

/// A Pod object.
pub(super) fn pod<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<PodObject, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let spec = pod_spec(reader, fields, &metadata, None)?;
    let phases = [
        ("Pending", PodPhase::Pending),
        ("Running", PodPhase::Running),
        ("Succeeded", PodPhase::Succeeded),
        ("Failed", PodPhase::Failed),
        ("Unknown", PodPhase::Unknown),
    ];
    let stated = object.get("status").and_then(|status| status.get("phase"));
    let phase = stated.map(|node| reader.choice(node, "phase", &phases)).transpose()?;
    let controller = controlling(metadata.owners).and_then(|owner| owner.get("name")).and_then(Node::as_text);
    Ok(PodObject {
        name: metadata.name,
        spec,
        controller: controller.map(Symbol::new),
        phase: phase.unwrap_or(PodPhase::Pending),
        created: life.created,
        deleting: life.deleting,
        gone_by: life.gone_by,
        ready: object.get("status").and_then(|object| object.get("conditions")).is_none_or(super::node::is_ready),
        verdict: object.get("status").map_or(SchedulerVerdict::NotAsked, verdict),
    })
}

/// What the status of a pod says about its place.
fn verdict(status: &Node<'_>) -> SchedulerVerdict {
    let nominated = status.get("nominatedNodeName").and_then(Node::as_text).filter(|name| !name.is_empty());
    if let Some(node) = nominated {
        return SchedulerVerdict::Nominated(Symbol::new(node));
    }
    let conditions = status.get("conditions").map_or(&[][..], Node::items);
    let of =
        |kind: &str| conditions.iter().find(|condition| condition.get("type").and_then(Node::as_text) == Some(kind));
    match of("PodScheduled").and_then(|item| item.get("reason")).and_then(Node::as_text) {
        Some("Unschedulable") => SchedulerVerdict::Unschedulable,
        None if conditions.is_empty() => SchedulerVerdict::NotAsked,
        _ => SchedulerVerdict::Waiting,
    }
}

/// The pod template in `node`, whose pods are controlled by an `owner`.
pub(super) fn template<'s>(reader: &mut Reader<'s>, node: &Node<'s>, owner: OwnerKind) -> Result<PodSpec, InputError> {
    let fields = reader.fields(node, &TEMPLATE)?;
    let metadata = metadata(reader, fields.get("metadata"))?;
    pod_spec(reader, fields, &metadata, Some(owner))
}

fn pod_spec<'s>(
    reader: &mut Reader<'s>,
    parent: Fields<'_, 's>,
    metadata: &Metadata<'_, 's>,
    owner: Option<OwnerKind>,
) -> Result<PodSpec, InputError> {
    let node = parent.required(reader, "spec")?;
    let fields = reader.fields(node, &POD_SPEC)?;
    warn_of_other_programs(reader, fields)?;
    let host_network = fields.optional("hostNetwork", |n, what| reader.truth(n, what))?.unwrap_or(false);
    let (containers, init_containers) = all_containers(reader, fields, host_network)?;
    let pod_resources = fields.get("resources").map(|n| reader.fields(n, &CONTAINER_RESOURCES)).transpose()?;
    let mut stated = |key: &'static str| -> Result<Option<Resources>, InputError> {
        let Some(node) = pod_resources.and_then(|fields| fields.get(key)) else { return Ok(None) };
        fractions::warn(reader, node, key)?;
        resource_map(reader, node, key).map(Some)
    };
    let (pod_requests, pod_limits) = (stated("requests")?, stated("limits")?);
    let preemption =
        [("PreemptLowerPriority", PreemptionPolicy::PreemptLowerPriority), ("Never", PreemptionPolicy::Never)];
    let mut spec = PodSpec {
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        owner: owner.unwrap_or_else(|| controller(metadata.owners)),
        containers,
        init_containers,
        host_network,
        overhead: resources(reader, fields, "overhead")?,
        pod_requests,
        pod_limits,
        node_selector: node_selector(reader, fields)?,
        tolerations: tolerations(reader, fields)?,
        topology_spread: affinity::topology_spread(reader, fields)?,
        priority: priority(reader, fields, "priority")?.unwrap_or(0),
        priority_class: fields.optional("priorityClassName", |n, what| reader.symbol(n, what))?,
        preemption_policy: fields
            .optional("preemptionPolicy", |n, what| reader.choice(n, what, &preemption))?
            .unwrap_or_default(),
        scheduling_gates: names(reader, fields, "schedulingGates", "name")?,
        volumes: volumes(reader, fields)?,
        local_volumes: local_volumes(reader, fields)?,
        refused: None,
        resource_claims: fields
            .optional("resourceClaims", |n, what| reader.list(n, what))?
            .is_some_and(|l| !l.is_empty()),
        node_name: fields.optional("nodeName", |n, what| reader.symbol(n, what))?.filter(|n| *n != well_known::EMPTY),
        termination_grace: fields.optional("terminationGracePeriodSeconds", |n, what| reader.seconds(n, what))?,
        readiness_gates: readiness_gates::read(reader, fields)?,
        ..PodSpec::default()
    };
    if let Some(node) = fields.get("affinity") {
        affinity::read(reader, node, &mut spec)?;
    }
    Ok(spec)
}

/// The labels that a pod's node must have, renamed keys rewritten.
fn node_selector<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Labels, InputError> {
    for entry in fields.optional("nodeSelector", |n, what| reader.entries(n, what))?.unwrap_or_default() {
        if let Some(value) = entry.value.as_text() {
            let (key, value) = (current_label(Symbol::new(&entry.key)), Symbol::new(value));
            warn_of_unknown_values(reader, key, &[value], std::slice::from_ref(&entry.value));
        }
    }
    Ok(labels(reader, fields, "nodeSelector")?.iter().map(|(key, value)| (current_label(key), value)).collect())
}

/// A priority, which is any 32-bit number.
pub(super) fn priority(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    key: &'static str,
) -> Result<Option<i32>, InputError> {
    let number = fields.optional(key, |n, what| reader.integer(n, what, i64::from(i32::MIN), i64::from(i32::MAX)))?;
    Ok(number.and_then(|number| i32::try_from(number).ok()))
}

/// Warns where another program than those simulated decides over the pod.
fn warn_of_other_programs<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<(), InputError> {
    if let Some(node) = fields.get("schedulerName")
        && reader.text(node, "schedulerName")? != "default-scheduler"
    {
        let message = "only the default scheduler is simulated; it schedules this pod";
        reader.warn(&lints::OTHER_SCHEDULER, node.at, message, "another scheduler", "");
    }
    if let Some(node) = fields.get("runtimeClassName")
        && fields.get("overhead").is_none()
    {
        let message = "runtime classes are not simulated: the pod has no overhead";
        reader.left_out(&lints::RUNTIME_CLASS, node.at, message, "state the class's `overhead` in the pod's spec");
    }
    Ok(())
}

/// The owner that is marked as controller.
pub(super) fn controlling<'n, 's>(owners: &'n [Node<'s>]) -> Option<&'n Node<'s>> {
    owners.iter().find(|owner| owner.get("controller").and_then(Node::as_text) == Some("true"))
}

/// The kind of the owner that is marked as controller.
fn controller(owners: &[Node<'_>]) -> OwnerKind {
    match controlling(owners).and_then(|owner| owner.get("kind")).and_then(Node::as_text) {
        None => OwnerKind::None,
        Some("ReplicaSet") => OwnerKind::ReplicaSet,
        Some("DaemonSet") => OwnerKind::DaemonSet,
        Some("StatefulSet") => OwnerKind::StatefulSet,
        Some("Job") => OwnerKind::Job,
        Some("Node") => OwnerKind::Node,
        Some(_) => OwnerKind::Other,
    }
}

/// The `field` of every item of the list under `key`.
pub(super) fn names(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    key: &'static str,
    field: &'static str,
) -> Result<Vec<Symbol>, InputError> {
    let items = fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default();
    items.iter().filter_map(|item| item.get(field)).map(|node| reader.symbol(node, field)).collect()
}

fn tolerations<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<Toleration>, InputError> {
    let items = fields.optional("tolerations", |n, what| reader.list(n, what))?.unwrap_or_default();
    items.iter().map(|item| toleration(reader, item)).collect()
}

fn toleration<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Toleration, InputError> {
    let fields = reader.fields(node, &TOLERATION)?;
    let text = |key| fields.optional(key, |n, what| reader.symbol(n, what));
    let operators = [("Equal", TolerationOperator::Equal), ("Exists", TolerationOperator::Exists)];
    let key = text("key")?.unwrap_or(well_known::EMPTY);
    let operator = fields
        .get("operator")
        .filter(|n| n.as_text() != Some(""))
        .map(|n| reader.choice(n, "operator", &operators))
        .transpose()?
        .unwrap_or(TolerationOperator::Equal);
    if key == well_known::EMPTY && operator == TolerationOperator::Equal {
        return Err(reader
            .error(node.at, "a toleration without a key tolerates nothing")
            .because("no `key`")
            .help("add a `key:`, or `operator: Exists` to tolerate every taint"));
    }
    Ok(Toleration {
        key,
        operator,
        value: text("value")?.unwrap_or(well_known::EMPTY),
        effect: fields
            .get("effect")
            .filter(|n| n.as_text() != Some(""))
            .map(|n| taint_effect(reader, n))
            .transpose()?,
        // Zero and below evict at once.
        toleration_seconds: fields
            .optional("tolerationSeconds", |n, what| reader.integer(n, what, -1_000_000_000_000, 1_000_000_000_000))?
            .map(|seconds| SimDuration::from_secs(seconds.max(0))),
    })
}

fn volumes<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<VolumeRef>, InputError> {
    let items = fields.optional("volumes", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut volumes = Vec::new();
    for item in items {
        let fields = reader.fields(item, &VOLUME)?;
        if let Some(claim) = fields.get("persistentVolumeClaim").and_then(|n| n.get("claimName")) {
            volumes.push(VolumeRef {
                claim: reader.symbol(claim, "claimName")?,
                source: ClaimSource::Named,
                bytes: None,
                attributes: None,
            });
        } else if let Some(ephemeral) = fields.get("ephemeral") {
            let spec = ephemeral.get("volumeClaimTemplate").and_then(|template| template.get("spec"));
            let named = |key| spec.and_then(|spec| spec.get(key)).and_then(Node::as_text).map(Symbol::new);
            let class = named("storageClassName").unwrap_or(well_known::EMPTY);
            let claim = fields.optional("name", |n, what| reader.symbol(n, what))?.unwrap_or(well_known::EMPTY);
            let bytes = spec.map_or(Ok(None), |spec| requested_bytes(reader, spec.get("resources")))?;
            let attributes = named("volumeAttributesClassName").filter(|name| *name != well_known::EMPTY);
            volumes.push(VolumeRef { claim, source: ClaimSource::Ephemeral(class), bytes, attributes });
        }
    }
    Ok(volumes)
}

/// Names of volumes that keep data on the node.
fn local_volumes(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Vec<Symbol>, InputError> {
    let items = fields.optional("volumes", |n, what| reader.list(n, what))?.unwrap_or_default();
    let on_disk = |volume: &Node<'_>| volume.get("medium").and_then(Node::as_text) != Some("Memory");
    let local = items.iter().filter(|item| item.get("hostPath").is_some() || item.get("emptyDir").is_some_and(on_disk));
    local.map(|item| item.get("name").map_or(Ok(well_known::EMPTY), |name| reader.symbol(name, "name"))).collect()
}
