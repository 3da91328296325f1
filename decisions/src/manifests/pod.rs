//! Pods and pod templates.

use super::affinity;
use super::common::{
    Metadata, current_label, labels, metadata, metadata_and_life, resource_map, resources, taint_effect,
};
use super::fractions;
use super::offered::warn_of_unknown_values;
use super::readiness_gates;
use super::storage::requested_gib;
use crate::domain::pod::{
    ClaimSource, HostPort, InitContainer, OwnerKind, PodPhase, PreemptionPolicy, Probe, VolumeRef,
};
use crate::domain::symbol::well_known;
use crate::domain::taints::TolerationOperator;
use crate::domain::workload::ObjectName;
use crate::domain::{Container, Labels, PodSpec, Resources, SimDuration, SimTime, Symbol, Toleration};
use crate::text::InputError;
use crate::text::error::{Effect, listed, nearest};
use crate::text::reader::{Fields, Reader, Shape};
use crate::text::tree::Node;

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
static CONTAINER: Shape = Shape {
    name: "a container",
    keys: &[
        "name",
        "image",
        "resources",
        "ports",
        "readinessProbe",
        "startupProbe",
        "livenessProbe",
        "restartPolicy",
        "lifecycle",
        "command",
        "args",
    ],
    without_effect: &[
        "env",
        "envFrom",
        "workingDir",
        "volumeMounts",
        "volumeDevices",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
        "resizePolicy",
        "restartPolicyRules",
    ],
    unsupported: &[],
    strict: false,
};
static CONTAINER_RESOURCES: Shape = Shape {
    name: "resources",
    keys: &["requests", "limits"],
    without_effect: &["claims"],
    unsupported: &[],
    strict: false,
};
static PORT: Shape = Shape {
    name: "a container's port",
    keys: &["containerPort", "hostPort", "hostIP", "protocol"],
    without_effect: &["name"],
    unsupported: &[],
    strict: false,
};
static PROBE: Shape = Shape {
    name: "a probe",
    keys: &[
        "initialDelaySeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
        "terminationGracePeriodSeconds",
    ],
    without_effect: &["httpGet", "tcpSocket", "exec", "grpc", "timeoutSeconds"],
    unsupported: &[],
    strict: false,
};
static TOLERATION: Shape = Shape {
    name: "a toleration",
    keys: &["key", "operator", "value", "effect", "tolerationSeconds"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
const NO_PLACE: &str = "the volume does not bind the pod to a zone";
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
        ready: object.get("status").and_then(|own| own.get("conditions")).is_none_or(super::node::is_ready),
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
    let of = |kind: &str| conditions.iter().find(|own| own.get("type").and_then(Node::as_text) == Some(kind));
    match of("PodScheduled").and_then(|own| own.get("reason")).and_then(Node::as_text) {
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
        let message = "only the default scheduler is simulated: the pod is placed by it";
        reader.note(Effect::MayChangeAnswer, node.at, message, "another scheduler", "");
    }
    if let Some(node) = fields.get("runtimeClassName")
        && fields.get("overhead").is_none()
    {
        let message = "runtime classes are not simulated: the pod has no overhead";
        reader.left_out(node.at, message, "state the class's `overhead` in the pod's spec");
    }
    Ok(())
}

/// The owner that is marked as controller.
fn controlling<'n, 's>(owners: &'n [Node<'s>]) -> Option<&'n Node<'s>> {
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

type Containers = (Vec<Container>, Vec<InitContainer>);

fn all_containers<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    host_network: bool,
) -> Result<Containers, InputError> {
    let app = fields.optional("containers", |n, what| reader.list(n, what))?.unwrap_or_default();
    let init = fields.optional("initContainers", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut containers = Vec::with_capacity(app.len());
    for node in app {
        containers.push(container(reader, node, host_network)?.0);
    }
    let mut init_containers = Vec::with_capacity(init.len());
    for node in init {
        let (container, sidecar) = container(reader, node, host_network)?;
        init_containers.push(InitContainer { container, sidecar });
    }
    Ok((containers, init_containers))
}

/// Amounts under `key` of a container. Names without a domain are Kubernetes' own, and it refuses others.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `validateContainerResourceName`.
fn container_resources<'s>(
    reader: &mut Reader<'s>,
    amounts: Fields<'_, 's>,
    key: &'static str,
) -> Result<Resources, InputError> {
    const OWN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    let Some(node) = amounts.get(key) else { return Ok(Resources::new()) };
    let own = |name: &str| OWN.contains(&name) || name.starts_with("hugepages-") || name.contains('/');
    if let Some(entry) = reader.entries(node, key)?.iter().find(|entry| !own(&entry.key)) {
        let shown: String = entry.key.chars().take(80).collect();
        let help = nearest(&shown, OWN).map_or_else(
            || format!("Kubernetes has {}; other resources have a domain, as `nvidia.com/gpu` has", listed(OWN)),
            |near| format!("did you mean `{near}`?"),
        );
        let error = reader.error(entry.key_at, format!("a container can have no resource `{shown}`"));
        return Err(error.because("Kubernetes refuses it").help(help));
    }
    fractions::warn(reader, node, key)?;
    resource_map(reader, node, key)
}

/// A container, and whether it says `restartPolicy: Always`.
fn container<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    host_network: bool,
) -> Result<(Container, bool), InputError> {
    let fields = reader.fields(node, &CONTAINER)?;
    let mut container = Container {
        name: fields.optional("name", |n, what| reader.text(n, what))?.unwrap_or_default().to_owned(),
        image: fields.optional("image", |n, what| reader.text(n, what))?.unwrap_or_default().to_owned(),
        ..Container::default()
    };
    if let Some(node) = fields.get("resources") {
        let amounts = reader.fields(node, &CONTAINER_RESOURCES)?;
        container.requests = container_resources(reader, amounts, "requests")?;
        container.limits = container_resources(reader, amounts, "limits")?;
        reject_requests_above_limits(reader, amounts, &container)?;
    }
    for node in fields.optional("ports", |n, what| reader.list(n, what))?.unwrap_or_default() {
        container.host_ports.extend(host_port(reader, node, host_network)?);
    }
    container.readiness_probe = fields.get("readinessProbe").map(|n| probe(reader, n)).transpose()?;
    container.startup_probe = fields.get("startupProbe").map(|n| probe(reader, n)).transpose()?;
    container.liveness_probe = fields.get("livenessProbe").map(|n| probe(reader, n)).transpose()?;
    container.idles = idles(&[fields.get("command"), fields.get("args")]);
    let privileged = node.get("securityContext").and_then(|own| own.get("privileged"));
    container.privileged = privileged.and_then(Node::as_text) == Some("true");
    container.pre_stop = fields.get("lifecycle").map_or(SimDuration::ZERO, |n| pre_stop(reader, n));
    let sidecar = fields.optional("restartPolicy", |n, what| reader.text(n, what))? == Some("Always");
    Ok((container, sidecar))
}

/// Whether a command and its arguments do nothing but stay: `sleep` alone, `tail -f /dev/null`, `pause`, in a shell or not.
fn idles(parts: &[Option<&Node<'_>>]) -> bool {
    let items = parts.iter().flatten().flat_map(|node| node.items()).filter_map(Node::as_text);
    let words: Vec<&str> = items.flat_map(str::split_whitespace).collect();
    let shell = |word: &&str| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "-c" | "exec"));
    let words: Vec<&str> = words.into_iter().skip_while(shell).collect();
    match words.as_slice() {
        [first] => first.trim_start_matches('/') == "pause",
        ["sleep" | "/bin/sleep", span] => span.chars().all(|letter| letter.is_ascii_alphanumeric()),
        words => words == ["tail", "-f", "/dev/null"],
    }
}

/// The API server refuses a request above its limit, so a simulation of it would answer a question nobody can ask.
fn reject_requests_above_limits(
    reader: &Reader<'_>,
    amounts: Fields<'_, '_>,
    container: &Container,
) -> Result<(), InputError> {
    for (name, request) in container.requests.iter() {
        let Some(limit) = container.limits.find(name).filter(|limit| request > *limit) else { continue };
        let at = amounts.get("requests").and_then(|n| n.get(name.0.as_str())).map_or(amounts.at, |n| n.at);
        return Err(reader
            .error(at, format!("the request of {name} is above its limit of {}", name.format(limit)))
            .because("above the limit")
            .help("Kubernetes refuses such a pod; lower the request or raise the limit"));
    }
    Ok(())
}

/// The port that a container opens on its node, if it opens one. On the host's network every container port is one, as
/// the API server defaults it.
fn host_port<'s>(reader: &mut Reader<'s>, node: &Node<'s>, host_network: bool) -> Result<Option<HostPort>, InputError> {
    let fields = reader.fields(node, &PORT)?;
    let number = |key| fields.optional(key, |n, what| reader.integer(n, what, 0, 65_535));
    let inherited = if host_network { number("containerPort")? } else { None };
    let Some(port) = number("hostPort")?.filter(|port| *port > 0).or(inherited) else { return Ok(None) };
    let text = |key| fields.optional(key, |n, what| reader.symbol(n, what));
    Ok(Some(HostPort {
        port: u16::try_from(port).unwrap_or(u16::MAX),
        protocol: text("protocol")?.unwrap_or_else(|| Symbol::new("TCP")),
        ip: text("hostIP")?.unwrap_or(well_known::EMPTY),
    }))
}

/// A probe. 0 counts as not given where the API has a default other than 0.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/v1/defaults.go`, `SetDefaults_Probe`.
fn probe<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Probe, InputError> {
    let fields = reader.fields(node, &PROBE)?;
    let threshold = |key, default| -> Result<u32, InputError> {
        let number = fields.optional(key, |n, what| reader.integer(n, what, 0, i64::from(i32::MAX)))?;
        Ok(number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0).unwrap_or(default))
    };
    let period = fields.optional("periodSeconds", |n, what| reader.integer(n, what, 0, 1_000_000_000))?;
    let period = period.filter(|seconds| *seconds > 0);
    Ok(Probe {
        initial_delay: fields
            .optional("initialDelaySeconds", |n, what| reader.seconds(n, what))?
            .unwrap_or(SimDuration::ZERO),
        period: SimDuration::from_secs(period.unwrap_or(10)),
        success_threshold: threshold("successThreshold", 1)?,
        failure_threshold: threshold("failureThreshold", 3)?,
        termination_grace: fields.optional("terminationGracePeriodSeconds", |n, what| reader.seconds(n, what))?,
    })
}

/// How long the hook before the end sleeps; of a hook that runs something else that is not known.
fn pre_stop<'s>(reader: &mut Reader<'s>, lifecycle: &Node<'s>) -> SimDuration {
    if let Some(hook) = lifecycle.get("postStart") {
        reader.left_out(hook.at, "`postStart` is not simulated: it takes no time", "");
    }
    let Some(hook) = lifecycle.get("preStop") else { return SimDuration::ZERO };
    let stated = hook.get("sleep").and_then(|sleep| sleep.get("seconds")).and_then(Node::as_text);
    // `sleep 5`, on its own or as the last word of a shell's command.
    let command = hook.get("exec").and_then(|exec| exec.get("command")).map_or(&[][..], Node::items);
    let words: Vec<&str> = command.iter().filter_map(Node::as_text).flat_map(str::split_whitespace).collect();
    let slept = words.iter().rposition(|word| word.ends_with("sleep")).and_then(|place| words.get(place + 1).copied());
    match stated.or(slept).and_then(|seconds| seconds.parse::<u32>().ok()) {
        Some(seconds) => SimDuration::from_secs(i64::from(seconds)),
        None => {
            reader.left_out(hook.at, "how long this hook takes is not known: it takes no time", "");
            SimDuration::ZERO
        }
    }
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
                gib: None,
            });
        } else if let Some(ephemeral) = fields.get("ephemeral") {
            let class = ["volumeClaimTemplate", "spec", "storageClassName"]
                .iter()
                .try_fold(ephemeral, |node, key| node.get(key))
                .and_then(Node::as_text)
                .map_or(well_known::EMPTY, Symbol::new);
            let claim = fields.optional("name", |n, what| reader.symbol(n, what))?.unwrap_or(well_known::EMPTY);
            let spec = ephemeral.get("volumeClaimTemplate").and_then(|template| template.get("spec"));
            let gib = spec.map_or(Ok(None), |spec| requested_gib(reader, spec.get("resources")))?;
            volumes.push(VolumeRef { claim, source: ClaimSource::Ephemeral(class), gib });
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
