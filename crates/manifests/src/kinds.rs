//! Which kinds of object are read, which change nothing, and which would but are left out.

use super::common::metadata;
use super::foreign::{Foreign, foreign, group_of, is_namesake, renderer};
use super::known_kinds::{API_VERSIONS, READ};
use super::pod::OBJECT;
use super::{
    Manifests, Namespace, admission, balancers, batch, capacity_buffer, config_map, eksctl, helm, hpa, keda, keda_jobs,
    legacy, monitor, names, network_plugin, node, node_claim, node_class, node_overlay, node_pool, pod, quota,
    replica_set, rollout, scheduler, security_groups, storage, vertical, workloads,
};
use crate::lints;
use nodecast_model::text::InputError;
use nodecast_model::text::error::{listed, nearest};
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Node, NodeKind};

/// Kinds that change neither capacity, nor cost, nor latency.
pub const WITHOUT_EFFECT: &[&str] = &[
    "APIService",
    "AlertmanagerConfig",
    "AppProject",
    "AuthorizationPolicy",
    "CSIStorageCapacity",
    "Certificate",
    "CertificateRequest",
    "CertificateSigningRequest",
    "ClusterIssuer",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterSecretStore",
    "ClusterTriggerAuthentication",
    "ControllerRevision",
    "CustomResourceDefinition",
    "DestinationRule",
    "Endpoints",
    "EndpointSlice",
    "EnvoyFilter",
    "Event",
    "ExternalSecret",
    "FlowSchema",
    "GRPCRoute",
    "Gateway",
    "GatewayClass",
    "HTTPRoute",
    "IPAddress",
    "IngressClassParams",
    "Issuer",
    "Lease",
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "NodeMetrics",
    "PeerAuthentication",
    "PodMetrics",
    "Policy",
    "PriorityLevelConfiguration",
    "Probe",
    "PrometheusRule",
    "ProxyConfig",
    "ReferenceGrant",
    "RequestAuthentication",
    "Role",
    "RoleBinding",
    "Secret",
    "SecretStore",
    "ServiceAccount",
    "ServiceCIDR",
    "ServiceEntry",
    "Sidecar",
    "TCPRoute",
    "TLSRoute",
    "TargetGroupBinding",
    "Telemetry",
    "TriggerAuthentication",
    "UDPRoute",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VirtualService",
    "VolumeAttachment",
    "WasmPlugin",
    "WorkloadEntry",
];

const PODS: &str = "its pods are ignored";
const NO_DEVICES: &str = "no node has devices, so pods with resource claims stay Pending (since Kubernetes 1.33); waits may be too long \
    and the cost too low";
/// How the warning of a kind that is in no list begins.
pub const UNKNOWN_KIND: &str = "unknown kind";

/// Kinds that would change a result but are not simulated, with what is left out.
pub const NOT_SIMULATED: &[(&str, &str)] = &[
    ("VerticalPodAutoscalerCheckpoint", "the recommender starts without its history"),
    ("MultidimPodAutoscaler", "its target keeps its replicas"),
    ("RuntimeClass", "it adds no overhead"),
    ("ENIConfig", "pods use their node's subnet"),
    ("Machine", "state the Node objects instead"),
    ("ResourceClaim", NO_DEVICES),
    ("ResourceClaimTemplate", NO_DEVICES),
    ("DeviceClass", NO_DEVICES),
    ("ResourceSlice", NO_DEVICES),
    ("ProvisioningRequest", "no capacity is reserved"),
];

/// The way out for a fleet file where one cluster is expected; `None` for any other document.
pub fn fleet_help(document: &Node<'_>) -> Option<&'static str> {
    document.get("fleet").is_some().then_some(
        "this is a fleet file: use `run`, `compare`, `check`, `recommend`, or `validate` for it; for all else pass the files of one cluster",
    )
}

/// Reads one document into `manifests`; lists are unwrapped.
pub(super) fn document<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
    manifests: &mut Manifests,
) -> Result<(), InputError> {
    if !matches!(object.kind, NodeKind::Map(_)) {
        let found = object.describe();
        return Err(reader
            .error(object.at, format!("a manifest is a map, not {found}"))
            .because(format!("this is {found}"))
            .help("write Kubernetes objects with `apiVersion`, `kind` and `metadata`, separated by `---` lines"));
    }
    let kind = object.get("kind").and_then(Node::as_text).unwrap_or_default();
    let version = object.get("apiVersion").and_then(Node::as_text).unwrap_or_default();
    if kind.is_empty() || version.is_empty() {
        let missing = if kind.is_empty() { "kind" } else { "apiVersion" };
        return Err(reader
            .error(object.at, format!("this is not a Kubernetes object: it has no `{missing}`"))
            .because("this object")
            .help(
                fleet_help(object)
                    .unwrap_or("add it, or take the file out of `manifests` if it is a fragment or a values file"),
            ));
    }
    match (kind.strip_suffix("List"), object.get("items")) {
        (Some(of), Some(items)) => {
            for item in reader.list(items, "items")? {
                list_item(reader, item, of, manifests)?;
            }
            Ok(())
        }
        _ => one(reader, object, kind, manifests),
    }
}

/// An item of a list; those of a typed list (`PodList`) need not say their kind again.
fn list_item<'s>(
    reader: &mut Reader<'s>,
    item: &Node<'s>,
    of: &str,
    manifests: &mut Manifests,
) -> Result<(), InputError> {
    if of.is_empty() || item.get("kind").is_some() {
        document(reader, item, manifests)
    } else {
        one(reader, item, of, manifests)
    }
}

fn one<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
    kind: &str,
    manifests: &mut Manifests,
) -> Result<(), InputError> {
    reader.set_subject(super::subject(object));
    let group = group_of(object.get("apiVersion").and_then(Node::as_text).unwrap_or_default());
    if is_namesake(group, kind) {
        left_out(reader, object, group, kind);
        return Ok(());
    }
    if READ.contains(&kind)
        && let Some((node, hook)) = helm::not_installed(object)
    {
        let message = "hooks of Helm that an install does not run are left out: tests, and what is for an upgrade, a rollback or a deletion";
        let because = format!("`{}`", hook.chars().take(80).collect::<String>());
        let help = "`helm template --no-hooks` prints none; to run one, take the annotation `helm.sh/hook` off";
        reader.warn(&lints::HELM_HOOK, node.at, message, &because, help);
        return Ok(());
    }
    check_api_version(reader, object, kind);
    names::check(reader, object, kind)?;
    manifests.note_origin(reader, object, kind);
    match kind {
        "Deployment" => manifests.deployments.push(workloads::deployment(reader, object)?),
        "ReplicaSet" | "ReplicationController" => {
            let set = replica_set::replica_set(reader, object)?;
            match set.is_managed {
                true => manifests.replica_sets.push(set),
                false => manifests.deployments.push(set.deployment),
            }
        }
        "Rollout" => match rollout::rollout(reader, object)? {
            rollout::Rollout::OwnTemplate(template) => manifests.deployments.push(template),
            rollout::Rollout::OfWorkload(workload) => manifests.rollouts.push(workload),
        },
        "StatefulSet" => manifests.stateful_sets.push(workloads::stateful_set(reader, object)?),
        "Job" => {
            manifests.jobs.push(batch::job(reader, object)?);
            manifests.name_last(reader, kind, object);
        }
        "CronJob" => manifests.cron_jobs.push(batch::cron_job(reader, object)?),
        "DaemonSet" => {
            manifests.daemon_sets.push(workloads::daemon_set(reader, object)?);
            let plugin = network_plugin::of_daemon_set(object).unwrap_or_default();
            manifests.network_plugin = manifests.network_plugin.then(plugin);
        }
        "SecurityGroupPolicy" => manifests.security_group_policies.push(security_groups::policy(reader, object)?),
        "Pod" => {
            manifests.pods.push(pod::pod(reader, object)?);
            manifests.name_last(reader, kind, object);
        }
        "Node" => manifests.nodes.push(node::node(reader, object)?),
        "NodeClaim" => manifests.node_claims.push(node_claim::node_claim(reader, object)?),
        "HorizontalPodAutoscaler" => manifests.autoscalers.push(hpa::autoscaler(reader, object)?),
        "VerticalPodAutoscaler" => {
            manifests.vertical_autoscalers.push(vertical::vertical_pod_autoscaler(reader, object)?);
        }
        "ScaledJob" => manifests.scaled_jobs.push(keda_jobs::scaled_job(reader, object)?),
        "ScaledObject" => manifests.scaled_objects.push(keda::scaled_object(reader, object)?),
        "PodDisruptionBudget" => {
            manifests.disruption_budgets.push(workloads::pod_disruption_budget(reader, object)?);
        }
        "ResourceQuota" => manifests.resource_quotas.push(quota::resource_quota(reader, object)?),
        "LimitRange" => manifests.limit_ranges.push(admission::limit_range(reader, object)?),
        "PriorityClass" => manifests.priority_classes.push(workloads::priority_class(reader, object)?),
        "Service" => {
            manifests.services.push(balancers::service(reader, object)?);
            manifests.name_last(reader, kind, object);
        }
        "Ingress" => {
            manifests.ingresses.push(balancers::ingress(reader, object)?);
            manifests.name_last(reader, kind, object);
        }
        "IngressClass" => manifests.ingress_classes.push(balancers::ingress_class(reader, object)?),
        "Namespace" => manifests.namespaces.push(namespace(reader, object)?),
        "NodePool" => manifests.node_pools.push(node_pool::node_pool(reader, object)?),
        "EC2NodeClass" => manifests.node_classes.push(node_class::node_class(reader, object)?),
        "NodeClass" => manifests.node_classes.push(node_class::auto_mode_class(reader, object)?),
        "Provisioner" => {
            let (pool, class) = legacy::provisioner(reader, object)?;
            manifests.node_pools.push(pool);
            manifests.node_classes.extend(class);
        }
        "AWSNodeTemplate" => manifests.node_classes.push(legacy::node_template(reader, object)?),
        "ClusterConfig" => {
            let read = eksctl::cluster_config(reader, object)?;
            manifests.cluster = Some(read.cluster);
            manifests.node_groups.extend(read.groups);
            manifests.fargate_profiles.extend(read.profiles);
            manifests.network_plugin = manifests.network_plugin.then(read.plugin);
        }
        "NodeOverlay" => manifests.node_overlays.push(node_overlay::node_overlay(reader, object)?),
        "CapacityBuffer" => manifests.capacity_buffers.push(capacity_buffer::capacity_buffer(reader, object)?),
        "PodTemplate" => manifests.pod_templates.push(capacity_buffer::pod_template(reader, object)?),
        "ServiceMonitor" | "PodMonitor" => manifests.monitors.push(monitor::monitor(reader, object)?),
        "StorageClass" => manifests.storage_classes.push(storage::storage_class(reader, object)?),
        "VolumeAttributesClass" => manifests.attribute_classes.push(storage::attributes_class(reader, object)?),
        "PersistentVolume" => manifests.volumes.push(storage::volume(reader, object)?),
        "PersistentVolumeClaim" => manifests.volume_claims.push(storage::claim(reader, object)?),
        "CSIDriver" => manifests.csi_drivers.push(storage::csi_driver(reader, object)?),
        "CSINode" => manifests.attach_limits.push(storage::csi_node(reader, object)?),
        "KubeSchedulerConfiguration" => manifests.scheduler = Some(scheduler::scheduler(reader, object)?),
        "ConfigMap" => {
            config_map::warn_of_sharing(reader, object);
            config_map::warn_of_scheduler(reader, object);
            let unread = &mut manifests.unread_ranks;
            manifests.group_ranks = config_map::group_ranks(reader, object, unread)?.or(manifests.group_ranks.take());
        }
        _ => left_out(reader, object, group, kind),
    }
    Ok(())
}

/// Warns about an API version that no release of the kind has had: its keys may mean something else.
fn check_api_version(reader: &mut Reader<'_>, object: &Node<'_>, kind: &str) {
    let Some((_, versions)) = API_VERSIONS.iter().find(|(name, _)| *name == kind) else { return };
    let Some(node) = object.get("apiVersion") else { return };
    let stated = node.as_text().unwrap_or_default();
    if versions.contains(&stated) {
        return;
    }
    let shown: String = stated.chars().take(80).collect();
    let message = format!("{kind} has no API version `{shown}`: it is read as `{}`", versions[0]);
    reader.warn(
        &lints::API_VERSION,
        node.at,
        message,
        "not known",
        &format!("known are {}", listed(versions.iter().copied())),
    );
}

/// Warns about a kind that is not read, unless it changes nothing.
fn left_out(reader: &mut Reader<'_>, object: &Node<'_>, group: &str, kind: &str) {
    let at = object.get("kind").map_or(object.at, |node| node.at);
    match foreign(group, kind) {
        Some(Foreign::MakesPods) => {
            let message = format!("{kind} ({group}) is not simulated: {PODS}");
            return reader.warn(&lints::CONTROLLER_NOT_SIMULATED, at, message, "left out", "");
        }
        Some(Foreign::Scales) => {
            let message = format!("{kind} ({group}) is not simulated: its target keeps a fixed replica count");
            let help = "write it as a ScaledObject of `keda.sh/v1alpha1`, which is";
            return reader.warn(&lints::SCALER_NOT_SIMULATED, at, message, "left out", help);
        }
        Some(Foreign::Renders) => return not_rendered(reader, object, group, kind),
        Some(Foreign::Quiet) => return,
        None => {}
    }
    if is_namesake(group, kind) {
        let shown: String = group.chars().take(80).collect();
        let help = consequence(object);
        return reader.left_out(
            &lints::KIND_NOT_SIMULATED,
            at,
            format!("`{kind}` in {shown} is not the Kubernetes built-in kind"),
            help,
        );
    }
    if WITHOUT_EFFECT.contains(&kind) {
        return;
    }
    if let Some((_, consequence)) = NOT_SIMULATED.iter().find(|(name, _)| *name == kind) {
        reader.left_out(&lints::KIND_NOT_SIMULATED, at, format!("{kind} is not simulated: {consequence}"), "");
        return;
    }
    let shown: String = kind.chars().take(80).collect();
    let known = READ.iter().chain(WITHOUT_EFFECT).copied().chain(NOT_SIMULATED.iter().map(|(name, _)| *name));
    let help =
        nearest(kind, known).map_or_else(|| consequence(object).to_owned(), |near| format!("did you mean `{near}`?"));
    reader.left_out(&lints::UNKNOWN_KIND, at, format!("{UNKNOWN_KIND} `{shown}`"), &help);
}

/// Warns of what another program makes of an object; a cluster that keeps the object has that too.
fn not_rendered(reader: &mut Reader<'_>, object: &Node<'_>, group: &str, kind: &str) {
    if object.get("metadata").and_then(|object| object.get("uid")).is_some() {
        return;
    }
    let at = object.get("kind").map_or(object.at, |node| node.at);
    let help = format!("pass the output of {} instead", renderer(group, kind).unwrap_or_default());
    let message = format!("what {kind} ({group}) renders is not read: {PODS}");
    reader.warn(&lints::NOT_RENDERED, at, message, "not rendered", &help);
}

/// What an object of which nothing is known is taken to come to.
fn consequence(object: &Node<'_>) -> &'static str {
    if object.get("spec").is_some_and(speaks_of_pods) {
        "it may create pods, which are ignored"
    } else {
        "assuming it does not affect capacity, cost, or latency"
    }
}

/// Whether replicas or containers are spoken of anywhere.
fn speaks_of_pods(node: &Node<'_>) -> bool {
    match &node.kind {
        NodeKind::Map(entries) => entries.iter().any(|entry| {
            ["replicas", "containers", "podTemplate", "podSpec"].contains(&&*entry.key) || speaks_of_pods(&entry.value)
        }),
        NodeKind::Seq(items) => items.iter().any(speaks_of_pods),
        _ => false,
    }
}

fn namespace<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Namespace, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let metadata = metadata(reader, fields.get("metadata"))?;
    Ok(Namespace { name: metadata.name.name, labels: metadata.labels, annotations: metadata.annotations })
}

#[cfg(test)]
mod tests {
    use super::{NOT_SIMULATED, READ, WITHOUT_EFFECT};
    use crate::read_manifests;
    use nodecast_model::text::Source;

    #[test]
    fn outdated_scaler_kinds_warn_of_fixed_replicas() {
        for (version, kind) in [("keda.k8s.io/v1alpha1", "ScaledObject"), ("http.keda.sh/v1alpha1", "HTTPScaledObject")]
        {
            let text =
                format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{replicas: {{min: 5}}}}\n");
            let read = read_manifests(&Source::new("a.yaml", text)).unwrap();
            let [warning] = read.warnings.as_slice() else { panic!("{:?}", read.warnings) };
            assert!(warning.message().ends_with("its target keeps a fixed replica count"), "{warning}");
            assert!(warning.way_out().is_some_and(|help| help.contains("keda.sh/v1alpha1")), "{warning}");
        }
    }

    #[test]
    fn every_kind_is_in_one_list_only() {
        let mut all: Vec<&str> = READ.iter().chain(WITHOUT_EFFECT).copied().collect();
        all.extend(NOT_SIMULATED.iter().map(|(name, _)| *name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
