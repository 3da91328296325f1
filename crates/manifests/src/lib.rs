//! Kubernetes manifests, read into the domain's vocabulary.

mod admission;
mod affinity;
mod balancers;
mod batch;
mod bounds;
mod capacity_buffer;
mod class_hash;
mod class_refusals;
pub mod common;
mod config_map;
mod containers;
mod disks;
mod eksctl;
mod fargate;
mod foreign;
mod fractions;
mod generated;
mod helm;
mod hpa;
mod hpa_annotations;
mod hpa_old;
mod job_status;
mod keda;
mod keda_jobs;
mod kinds;
mod known_kinds;
mod legacy;
pub mod lints;
mod load_balancers;
mod monitor;
mod names;
mod namespaces;
mod network_plugin;
mod node;
mod node_claim;
mod node_class;
pub mod node_group;
mod node_overlay;
mod node_pool;
mod offered;
mod pod;
mod quota;
mod readiness_gates;
mod references;
mod replica_set;
mod restricted;
mod rollout;
mod scheduler;
mod security_groups;
mod storage;
mod success_policy;
mod user_data;
mod vertical;
mod workloads;

pub use admission::LimitRange;
pub use balancers::{BalancerRequest, Ingress, IngressClass};
pub use config_map::{StatedRanks, schedulers_of};
pub use eksctl::{FAMILIES as AMI_FAMILIES, changed_keys, image_update};
pub use fargate::{check_profile_label, check_profile_name, check_profile_namespace};
pub use foreign::{Foreign, KUSTOMIZE, foreign, group_of, is_namesake, knows_group};
pub use generated::Generated;
pub use keda::check_query;
pub use kinds::{NOT_SIMULATED, UNKNOWN_KIND, WITHOUT_EFFECT, fleet_help};
pub use known_kinds::{API_VERSIONS, READ};
pub use load_balancers::{BalancerCaller, BalancerMaker, LoadBalancer, StandingBalancers};
pub use monitor::Monitor;
pub use namespaces::Namespaces;
pub use network_plugin::NetworkPlugin;
pub use pod::{PodObject, SchedulerVerdict};
pub use replica_set::ReplicaSet;
pub use rollout::RolloutOfWorkload;
pub use scheduler::SchedulerSettings;
pub use security_groups::SecurityGroupPolicy;
pub use storage::{AttachLimits, CsiDriver};
pub use workloads::PriorityClass;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use nodecast_model::catalog::Region;
use nodecast_model::domain::keda::{ScaledJob, ScaledObject};
use nodecast_model::domain::node_group::NodeGroup;
use nodecast_model::domain::node_pool::ClusterInfo;
use nodecast_model::domain::pod::PodDisruptionBudget;
use nodecast_model::domain::quota::ResourceQuota;
use nodecast_model::domain::volumes::{PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttributesClass};
use nodecast_model::domain::workload::{CronJob, DaemonSet, Deployment, Job, JobMaker, ObjectName, StatefulSet};
use nodecast_model::domain::{
    CapacityBuffer, HorizontalPodAutoscaler, Labels, NodeClaimObject, NodeClass, NodeObject, NodeOverlay, NodePool,
    PodSpec, PodTemplate, Symbol, VerticalPodAutoscaler,
};
use nodecast_model::fargate::Profile;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{self, Location, Node, Variables};
use nodecast_model::text::{InputError, Limits, Source, Warning};

/// A Service: what kube-scheduler spreads pods by unless they say otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    /// Namespace and name.
    pub name: ObjectName,
    /// Labels of the pods behind it; none for a Service without a selector.
    pub selector: Labels,
    /// What it says of its load balancer, if it is of the type that has one.
    pub balancer: Option<BalancerRequest>,
    /// Whether calls go to pods in the caller's zone where there are enough: topology-aware routing, or a traffic distribution that
    /// prefers what is close.
    pub keeps_zone: bool,
    /// Whether callers get the addresses of all pods, so that no proxy chooses one.
    pub is_headless: bool,
}

/// A Namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Name.
    pub name: Symbol,
    /// Labels, which affinity terms may select by.
    pub labels: Labels,
    /// Annotations, by which a service mesh may add its proxy.
    pub annotations: Labels,
}

/// The objects of one file or of several.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Manifests {
    /// The cluster, where an eksctl ClusterConfig describes it.
    pub cluster: Option<ClusterInfo>,
    /// Managed (and self-managed) node groups.
    pub node_groups: Vec<NodeGroup>,
    /// Fargate profiles of eksctl ClusterConfigs.
    pub fargate_profiles: Vec<Profile>,
    /// How the scheduler scores nodes, if a KubeSchedulerConfiguration says so.
    pub scheduler: Option<SchedulerSettings>,
    /// Ranks of node groups for Cluster Autoscaler's expander `priority`, if a ConfigMap states them.
    pub group_ranks: Option<StatedRanks>,
    /// The namespace of such a ConfigMap that Cluster Autoscaler does not read, because it is not in its own.
    pub unread_ranks: Option<Symbol>,
    /// Karpenter's NodePools and Provisioners.
    pub node_pools: Vec<NodePool>,
    /// EC2NodeClasses and AWSNodeTemplates.
    pub node_classes: Vec<NodeClass>,
    /// Karpenter's NodeOverlays.
    pub node_overlays: Vec<NodeOverlay>,
    /// CapacityBuffers.
    pub capacity_buffers: Vec<CapacityBuffer>,
    /// PodTemplates.
    pub pod_templates: Vec<PodTemplate>,
    /// Nodes that exist from the start.
    pub nodes: Vec<NodeObject>,
    /// What Karpenter has written down of those that it launched.
    pub node_claims: Vec<NodeClaimObject>,
    /// Deployments, and what is read as such.
    pub deployments: Vec<Deployment>,
    /// ReplicaSets that a Deployment or Rollout manages.
    pub replica_sets: Vec<ReplicaSet>,
    /// Rollouts whose template another workload has.
    pub rollouts: Vec<RolloutOfWorkload>,
    /// StatefulSets.
    pub stateful_sets: Vec<StatefulSet>,
    /// Jobs.
    pub jobs: Vec<Job>,
    /// CronJobs.
    pub cron_jobs: Vec<CronJob>,
    /// DaemonSets.
    pub daemon_sets: Vec<DaemonSet>,
    /// Pods of no workload.
    pub pods: Vec<PodObject>,
    /// HorizontalPodAutoscalers.
    pub autoscalers: Vec<HorizontalPodAutoscaler>,
    /// VerticalPodAutoscalers.
    pub vertical_autoscalers: Vec<VerticalPodAutoscaler>,
    /// KEDA's ScaledObjects.
    pub scaled_objects: Vec<ScaledObject>,
    /// KEDA's ScaledJobs.
    pub scaled_jobs: Vec<ScaledJob>,
    /// PodDisruptionBudgets.
    pub disruption_budgets: Vec<PodDisruptionBudget>,
    /// PriorityClasses.
    pub priority_classes: Vec<PriorityClass>,
    /// Services.
    pub services: Vec<Service>,
    /// Ingresses.
    pub ingresses: Vec<Ingress>,
    /// IngressClasses.
    pub ingress_classes: Vec<IngressClass>,
    /// Namespaces.
    pub namespaces: Vec<Namespace>,
    /// LimitRanges.
    pub limit_ranges: Vec<LimitRange>,
    /// SecurityGroupPolicies.
    pub security_group_policies: Vec<SecurityGroupPolicy>,
    /// What the Amazon VPC network plugin is told.
    pub network_plugin: NetworkPlugin,
    /// ResourceQuotas.
    pub resource_quotas: Vec<ResourceQuota>,
    /// ServiceMonitors and PodMonitors.
    pub monitors: Vec<Monitor>,
    /// StorageClasses.
    pub storage_classes: Vec<StorageClass>,
    /// VolumeAttributesClasses.
    pub attribute_classes: Vec<VolumeAttributesClass>,
    /// PersistentVolumes.
    pub volumes: Vec<PersistentVolume>,
    /// PersistentVolumeClaims.
    pub volume_claims: Vec<PersistentVolumeClaim>,
    /// CSIDrivers.
    pub csi_drivers: Vec<CsiDriver>,
    /// CSINodes.
    pub attach_limits: Vec<AttachLimits>,
    /// Objects whose names the API server makes (`generateName`), by kind.
    pub generated: Vec<Generated>,
    /// What was left out.
    pub warnings: Vec<Warning>,
    /// Where the objects stand that checks of the whole speak of, by kind, namespace and name.
    pub origins: BTreeMap<(Symbol, Symbol, Symbol), Origin>,
}

/// Where an object stands: in which file, as the user named it, and at what place of its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The file.
    pub file: Symbol,
    /// The place in its text.
    pub at: Location,
}

/// Kinds whose places are kept.
const PLACED: [&str; 9] = [
    "NodePool",
    "Provisioner",
    "HorizontalPodAutoscaler",
    "ScaledObject",
    "Job",
    "CronJob",
    "ScaledJob",
    "ClusterConfig",
    "Service",
];

/// Reads every object of a YAML or JSON file.
///
/// # Errors
/// If the text is not YAML, a document is no Kubernetes object, or a value cannot be what its key says.
pub fn read_manifests(source: &Source) -> Result<Manifests, InputError> {
    read_manifests_with(source, &Variables::new(), &Limits::default(), None)
}

/// As [`read_manifests`], with values for `${NAME}`, other limits, and the region whose instance types and zones there are.
///
/// # Errors
/// As [`read_manifests`].
pub fn read_manifests_with(
    source: &Source,
    variables: &Variables,
    limits: &Limits,
    region: Option<&Region>,
) -> Result<Manifests, InputError> {
    read_documents(source, &tree::parse(source, variables, limits)?, region)
}

/// Reads the documents that `source` holds. No document at all is a warning: `kubectl apply` passes over such a file of a directory.
///
/// # Errors
/// As [`read_manifests`].
pub fn read_documents<'s>(
    source: &'s Source,
    documents: &[impl Borrow<Node<'s>>],
    region: Option<&Region>,
) -> Result<Manifests, InputError> {
    let mut reader = Reader::new(Some(source)).with_region(region);
    let mut manifests = Manifests::default();
    if documents.is_empty() {
        let text = format!("`{}` holds no object: it changes nothing", source.name);
        manifests
            .warnings
            .push(Warning::from_lint(&lints::EMPTY_FILE, text).help("leave the file out, or write objects into it"));
        return Ok(manifests);
    }
    for document in documents {
        kinds::document(&mut reader, document.borrow(), &mut manifests)?;
    }
    manifests.warnings = reader.into_warnings();
    Ok(manifests)
}

impl Manifests {
    /// Where the object of this kind and name stands; a kind without namespaces is in `default`.
    pub fn origin(&self, kind: &str, name: ObjectName) -> Option<Origin> {
        self.origins.get(&(Symbol::new(kind), name.namespace, name.name)).copied()
    }

    /// The CronJob or ScaledJob among these objects that made a Job.
    pub fn maker_of(&self, job: &Job) -> Option<ObjectName> {
        let (maker, name) = job.maker?;
        let name = ObjectName { namespace: job.name.namespace, name };
        let is_here = match maker {
            JobMaker::CronJob => self.cron_jobs.iter().any(|cron_job| cron_job.name == name),
            JobMaker::ScaledJob => self
                .scaled_jobs
                .iter()
                .any(|scaled_job| scaled_job.namespace == name.namespace && scaled_job.name == name.name),
        };
        is_here.then_some(name)
    }

    /// Keeps the place of `object` if checks of the whole may speak of it.
    fn note_origin(&mut self, reader: &Reader<'_>, object: &Node<'_>, kind: &str) {
        if !PLACED.contains(&kind) {
            return;
        }
        let Some(file) = reader.file() else { return };
        let metadata = object.get("metadata");
        let text = |key| metadata.and_then(|metadata| metadata.get(key)).and_then(Node::as_text);
        let (namespace, name) = (text("namespace").unwrap_or("default"), text("name").unwrap_or_default());
        let at = metadata.and_then(|metadata| metadata.get("name")).map_or(object.at, |name| name.at);
        let key = (Symbol::new(kind), Symbol::new(namespace), Symbol::new(name));
        self.origins.insert(key, Origin { file: Symbol::new(file), at });
    }

    /// Takes over the objects of `newer`, as `kubectl apply` would: an object of the same kind and name is replaced.
    /// One whose name is generated is another object each time.
    pub fn apply(&mut self, mut newer: Self) {
        newer.tell_apart(&[self]);
        self.generated.append(&mut newer.generated);
        self.cluster = newer.cluster.or(self.cluster.take());
        self.scheduler = newer.scheduler.or(self.scheduler.take());
        self.group_ranks = newer.group_ranks.or(self.group_ranks.take());
        self.unread_ranks = newer.unread_ranks.or(self.unread_ranks);
        replace(&mut self.node_groups, newer.node_groups, |group| group.name);
        // Clusters are not applied: two profiles of one name are told apart, and refused, by whoever uses them.
        let others = newer
            .fargate_profiles
            .into_iter()
            .filter(|fargate_profile| !self.fargate_profiles.contains(fargate_profile));
        let others: Vec<Profile> = others.collect();
        self.fargate_profiles.extend(others);
        replace(&mut self.node_pools, newer.node_pools, |pool| pool.name);
        replace(&mut self.node_classes, newer.node_classes, |class| (class.auto_mode, class.name));
        replace(&mut self.node_overlays, newer.node_overlays, |overlay| overlay.name);
        replace(&mut self.capacity_buffers, newer.capacity_buffers, |buffer| buffer.name);
        replace(&mut self.pod_templates, newer.pod_templates, |template| template.name);
        replace(&mut self.nodes, newer.nodes, |node| Symbol::new(&node.name));
        replace(&mut self.node_claims, newer.node_claims, |claim| Symbol::new(&claim.name));
        replace(&mut self.deployments, newer.deployments, |deployment| deployment.name);
        replace(&mut self.replica_sets, newer.replica_sets, |set| set.name);
        replace(&mut self.rollouts, newer.rollouts, |rollout| rollout.name);
        replace(&mut self.stateful_sets, newer.stateful_sets, |set| set.name);
        replace(&mut self.jobs, newer.jobs, |job| job.name);
        replace(&mut self.cron_jobs, newer.cron_jobs, |cron| cron.name);
        replace(&mut self.daemon_sets, newer.daemon_sets, |set| set.name);
        replace(&mut self.pods, newer.pods, |pod| pod.name);
        replace(&mut self.autoscalers, newer.autoscalers, |hpa| (hpa.namespace, hpa.name));
        replace(&mut self.vertical_autoscalers, newer.vertical_autoscalers, |vpa| vpa.name);
        replace(&mut self.scaled_jobs, newer.scaled_jobs, |job| (job.namespace, job.name));
        replace(&mut self.scaled_objects, newer.scaled_objects, |object| (object.namespace, object.name));
        replace(&mut self.disruption_budgets, newer.disruption_budgets, |pdb| (pdb.namespace, pdb.name));
        replace(&mut self.priority_classes, newer.priority_classes, |class| class.name);
        replace(&mut self.services, newer.services, |service| service.name);
        replace(&mut self.ingresses, newer.ingresses, |ingress| ingress.name);
        replace(&mut self.ingress_classes, newer.ingress_classes, |class| class.name);
        replace(&mut self.namespaces, newer.namespaces, |namespace| namespace.name);
        replace(&mut self.limit_ranges, newer.limit_ranges, |range| range.name);
        replace(&mut self.security_group_policies, newer.security_group_policies, |policy| policy.name);
        self.network_plugin = self.network_plugin.then(newer.network_plugin);
        replace(&mut self.resource_quotas, newer.resource_quotas, |quota| quota.name);
        replace(&mut self.monitors, newer.monitors, |monitor| (monitor.of_services, monitor.name));
        replace(&mut self.storage_classes, newer.storage_classes, |class| class.name);
        replace(&mut self.attribute_classes, newer.attribute_classes, |class| class.name);
        replace(&mut self.volumes, newer.volumes, |volume| volume.name);
        replace(&mut self.volume_claims, newer.volume_claims, |claim| (claim.namespace, claim.name));
        replace(&mut self.csi_drivers, newer.csi_drivers, |driver| driver.name);
        replace(&mut self.attach_limits, newer.attach_limits, |limits| limits.node);
        self.warnings.extend(newer.warnings);
        self.origins.extend(newer.origins);
    }

    /// Gives every pod and template the priority of its class. Classes are looked up here, among those that `exist`
    /// already, and among Kubernetes' own.
    ///
    /// # Errors
    /// If a pod names a class that does not exist; Kubernetes refuses such a pod.
    pub fn resolve_priorities(&mut self, exist: &[PriorityClass]) -> Result<(), InputError> {
        let classes: Vec<PriorityClass> = self.priority_classes.iter().chain(exist).copied().collect();
        self.give_priorities(&classes)
    }

    fn give_priorities(&mut self, classes: &[PriorityClass]) -> Result<(), InputError> {
        for deployment in &mut self.deployments {
            give_priority(Arc::make_mut(&mut deployment.template), classes, "Deployment", deployment.name)?;
        }
        for set in &mut self.stateful_sets {
            give_priority(Arc::make_mut(&mut set.template), classes, "StatefulSet", set.name)?;
        }
        for job in &mut self.jobs {
            give_priority(Arc::make_mut(&mut job.spec.template), classes, "Job", job.name)?;
        }
        for cron in &mut self.cron_jobs {
            give_priority(Arc::make_mut(&mut cron.job.template), classes, "CronJob", cron.name)?;
        }
        for set in &mut self.daemon_sets {
            give_priority(Arc::make_mut(&mut set.template), classes, "DaemonSet", set.name)?;
        }
        for job in &mut self.scaled_jobs {
            let name = ObjectName { namespace: job.namespace, name: job.name };
            give_priority(Arc::make_mut(&mut job.job.template), classes, "ScaledJob", name)?;
        }
        for pod in &mut self.pods {
            give_priority(&mut pod.spec, classes, "Pod", pod.name)?;
        }
        Ok(())
    }
}

/// Adds `newer` to `objects`; of two with one key the newer takes the place of the older.
fn replace<T, K: Eq + std::hash::Hash>(objects: &mut Vec<T>, newer: Vec<T>, key: impl Fn(&T) -> K) {
    let mut places: rustc_hash::FxHashMap<K, usize> =
        objects.iter().enumerate().map(|(place, object)| (key(object), place)).collect();
    for object in newer {
        match places.entry(key(&object)) {
            std::collections::hash_map::Entry::Occupied(place) => objects[*place.get()] = object,
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(objects.len());
                objects.push(object);
            }
        }
    }
}

/// Kubernetes' own priority classes.
///
/// Source: Kubernetes 1.36 `pkg/apis/scheduling/v1/helpers.go`.
pub const SYSTEM_CLASSES: &[(&str, i32)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// Source: Kubernetes 1.36 `plugin/pkg/admission/priority/admission.go`.
/// Deviation: a pod with its own `priority` keeps it. The admission plugin requires that it agrees with the class.
fn give_priority(
    spec: &mut PodSpec,
    classes: &[PriorityClass],
    kind: &str,
    name: ObjectName,
) -> Result<(), InputError> {
    if spec.priority != 0 {
        return Ok(());
    }
    let Some(wanted) = spec.priority_class else {
        if let Some(default) = classes.iter().find(|class| class.global_default) {
            spec.priority = default.value;
            spec.preemption_policy = default.preemption_policy;
        }
        return Ok(());
    };
    if let Some(class) = classes.iter().find(|class| class.name == wanted) {
        spec.priority = class.value;
        spec.preemption_policy = class.preemption_policy;
        return Ok(());
    }
    let system_class = SYSTEM_CLASSES.iter().find(|(name, _)| *name == wanted.as_str());
    let Some((_, value)) = system_class else {
        return Err(InputError::new(format!(
            "{kind} {name} names the priority class `{wanted}`, which no manifest defines"
        ))
        .help("add the PriorityClass to the manifests, or remove `priorityClassName`"));
    };
    spec.priority = *value;
    Ok(())
}

/// Reads a `v1` Pod from JSON, as `kubectl get pod -o json` prints it.
///
/// # Errors
/// If a value cannot be what its key says. Unknown and unsupported keys are passed over.
pub fn pod_from_json(value: &Value) -> Result<PodObject, InputError> {
    from_json(value, pod::pod)
}

/// Reads a `v1` Node from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn node_from_json(value: &Value) -> Result<NodeObject, InputError> {
    from_json(value, node::node)
}

/// Reads a `karpenter.sh` `v1` or `v1beta1` NodePool from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn node_pool_from_json(value: &Value) -> Result<NodePool, InputError> {
    from_json(value, node_pool::node_pool)
}

/// Reads an `apps/v1` Deployment from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn deployment_from_json(value: &Value) -> Result<Deployment, InputError> {
    from_json(value, workloads::deployment)
}

/// Reads an `apps/v1` DaemonSet from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn daemon_set_from_json(value: &Value) -> Result<DaemonSet, InputError> {
    from_json(value, workloads::daemon_set)
}

/// Reads a `policy/v1` PodDisruptionBudget from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn pod_disruption_budget_from_json(value: &Value) -> Result<PodDisruptionBudget, InputError> {
    from_json(value, workloads::pod_disruption_budget)
}

/// Reads an `autoscaling.k8s.io` `v1` or `v1beta2` VerticalPodAutoscaler from JSON.
///
/// # Errors
/// As [`pod_from_json`].
pub fn vertical_pod_autoscaler_from_json(value: &Value) -> Result<VerticalPodAutoscaler, InputError> {
    from_json(value, vertical::vertical_pod_autoscaler)
}

fn from_json<'v, T>(
    value: &'v Value,
    read: fn(&mut Reader<'v>, &Node<'v>) -> Result<T, InputError>,
) -> Result<T, InputError> {
    let tree = Node::from_json(value, &Limits::default())?;
    let mut reader = Reader::new(None);
    reader.set_subject(subject(&tree));
    read(&mut reader, &tree)
}

/// What a message calls an object: its kind and name.
fn subject(object: &Node<'_>) -> String {
    let text = |node: Option<&Node<'_>>| node.and_then(Node::as_text).map(str::to_owned);
    let metadata = object.get("metadata");
    let kind = text(object.get("kind")).unwrap_or_else(|| "object".to_owned());
    let name = text(metadata.and_then(|m| m.get("name"))).unwrap_or_default();
    match text(metadata.and_then(|m| m.get("namespace"))) {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{node_from_json, node_pool_from_json, pod_from_json};
    use nodecast_model::domain::pod::OwnerKind;

    #[test]
    fn pod_limits_replace_missing_requests() {
        let pod = pod_from_json(&json!({
            "metadata": {"name": "p", "namespace": "web", "labels": {"app": "p"},
                "ownerReferences": [{"kind": "ReplicaSet", "controller": true}]},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": 1, "memory": "2G"}}}],
                "initContainers": [{"name": "s", "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "100m"}}}],
                "tolerations": [{"operator": "Exists"}],
            }
        }))
        .unwrap();
        assert_eq!(pod.name.to_string(), "web/p");
        assert_eq!(pod.spec.owner, OwnerKind::ReplicaSet);
        assert_eq!(pod.spec.requests().to_string(), "cpu 1100m, memory 1953125Ki, pods 1");
    }

    #[test]
    fn an_error_without_a_position_names_the_object() {
        let error = pod_from_json(&json!({
            "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "4GB"}}}]}
        }))
        .unwrap_err();
        assert_eq!(error.to_string(), "Pod p: `cpu` is `4GB`, which has the unknown suffix `GB`");
    }

    #[test]
    fn host_network_container_ports_are_host_ports() {
        let pod = pod_from_json(&json!({"spec": {
            "hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}]
        }}))
        .unwrap();
        let ports: Vec<_> = pod.spec.host_ports().map(|port| (port.port, port.protocol.as_str())).collect();
        assert_eq!(ports, [(80, "TCP"), (53, "UDP")]);
    }

    #[test]
    fn node_pool_reads_with_api_defaults() {
        let pool = node_pool_from_json(&json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "main"},
                "requirements": [{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["3"]}],
            }}, "limits": {"cpu": "1000"}}
        }))
        .unwrap();
        assert_eq!(pool.node_class.as_str(), "main");
        assert_eq!(pool.limits.cpu_milli(), 1_000_000);
        assert_eq!(pool.requirements[0].gte, Some(4));
        assert_eq!(pool.expire_after.map(|d| d.to_string()).as_deref(), Some("30d"));
        assert_eq!(pool.disruption.budgets.len(), 1);
    }

    #[test]
    fn a_node_without_allocatable_offers_its_capacity() {
        let node = node_from_json(&json!({
            "metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4", "pods": "58"},
                "conditions": [{"type": "Ready", "status": "False"}]}
        }))
        .unwrap();
        assert_eq!(node.allocatable.to_string(), "cpu 4, pods 58");
        assert_eq!(node.taints[0].to_string(), "a:NoSchedule");
        assert!(!node.ready);
    }
}
