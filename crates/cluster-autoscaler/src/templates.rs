//! What a new node of a group will be: taken from a good node of the group, from one seen before, from what the provider says,
//! or as a last resort from any node.
//!
//! Source: Cluster Autoscaler 1.36 `processors/nodeinfosprovider/mixed_nodeinfos_processor.go`,
//! `simulator/node_info_utils.go`, `utils/taints/taints.go`, `cloudprovider/aws` (resources of the template).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TO_BE_DELETED;
use super::flags::Flags;
use super::view::{
    Controller, ControllerKind, DaemonSetView, GroupView, NodeTemplate, NodeView, Observation, PodTraits,
};
use nodecast_model::domain::daemon_tolerations::daemon_tolerations;
use nodecast_model::domain::pod::PreemptionPolicy;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{Labels, ResourceName, SimDuration, SimTime, Symbol, Taint, TaintEffect};

/// How long a node must have been ready to serve as an example.
const STABLE_AFTER: SimDuration = SimDuration::from_secs(60);

/// Taints that say how a node is rather than what it is for.
const CONDITION_TAINTS: [&str; 11] = [
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
];
const IMPAIRED_VOLUMES: &str = "NodeWithImpairedVolumes";
const STARTUP_PREFIXES: [&str; 2] =
    ["startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/"];
const STATUS_PREFIX: &str = "status-taint.cluster-autoscaler.kubernetes.io/";

/// Labels that were renamed, and that a template from the provider carries under both names. System and architecture are not among them:
/// for a pod that selects `beta.kubernetes.io/os` no group without nodes grows.
///
/// Source: Cluster Autoscaler 1.36 `utils/labels/labels.go`, `UpdateDeprecatedLabels`.
const DEPRECATED_LABELS: [(&str, &str); 3] = [
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
];

/// Whether the key alone says that a taint goes away when a node has started up.
pub fn has_startup_prefix(key: Symbol) -> bool {
    STARTUP_PREFIXES.iter().any(|prefix| key.as_str().starts_with(prefix))
}

/// Whether a taint goes away when a node has started up.
pub fn is_startup_taint(flags: &Flags, taint: &Taint) -> bool {
    let key = taint.key.as_str();
    flags.startup_taints.contains(&taint.key)
        || has_startup_prefix(taint.key)
        || flags.startup_taint_prefixes.iter().any(|prefix| key.starts_with(prefix.as_str()))
}

/// Whether templates leave a taint out: it says how a node is, and not what it is for.
pub fn is_left_out(flags: &Flags, taint: &Taint) -> bool {
    let key = taint.key.as_str();
    CONDITION_TAINTS.contains(&key)
        || key == IMPAIRED_VOLUMES
        || flags.status_taints.contains(&taint.key)
        || key.starts_with(STATUS_PREFIX)
        || is_startup_taint(flags, taint)
}

/// The taints that a fresh node will have, of those that a node has.
fn sanitized_taints(flags: &Flags, taints: &[Taint]) -> Vec<Taint> {
    taints.iter().filter(|taint| !is_left_out(flags, taint)).copied().collect()
}

/// Whether the scheduler may use the node as far as its state goes: its condition, and no taint that says otherwise.
pub fn is_ready(node: &NodeView) -> bool {
    if !node.ready || node.taints.is_empty() {
        return node.ready;
    }
    let unready = [
        well_known::TAINT_NOT_READY,
        well_known::TAINT_DISK_PRESSURE,
        Symbol::new("node.kubernetes.io/network-unavailable"),
    ];
    !node.taints.iter().any(|taint| unready.contains(&taint.key))
}

/// Pods that a real node has, as far as a template needs them.
pub type PodsOf<'a> = &'a dyn Fn(usize) -> Vec<Arc<PodTraits>>;

#[derive(Clone, PartialEq, Debug)]
struct Cached {
    template: Arc<NodeTemplate>,
    at: SimTime,
}

/// Templates that were taken from good nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TemplateCache {
    by_group: BTreeMap<Symbol, Cached>,
}

impl TemplateCache {
    /// The template of each group, `None` where there is nothing to go by. `usable` says of each node whether it is ready
    /// and started up; `pods_of` gives its pods that are not being deleted.
    pub fn templates(
        &mut self,
        flags: &Flags,
        seen: &Observation<'_>,
        usable: &dyn Fn(&NodeView) -> bool,
        pods_of: PodsOf<'_>,
    ) -> Vec<Option<Arc<NodeTemplate>>> {
        let Observation { now, nodes, groups, daemon_sets, .. } = *seen;
        let expire = flags.node_info_cache_expire_time;
        self.by_group.retain(|_, cached| cached.at + expire > now);
        let good = |node: &NodeView| {
            usable(node)
                && node.ready_since + STABLE_AFTER < now
                && !node.unschedulable
                && !node.taints.iter().any(|taint| taint.key.as_str() == TO_BE_DELETED)
        };
        let from_node = |at: usize, group: &GroupView| {
            let template = from_example(flags, &nodes[at], &pods_of(at), daemon_sets);
            Arc::new(with_provider_resources(template, group.template.as_deref()))
        };
        let one = |(at, group): (usize, &GroupView)| {
            let matches = |node: &&(usize, &NodeView)| node.1.group == Some(at);
            if let Some((node, _)) = nodes.iter().enumerate().filter(|node| matches(&node)).find(|node| good(node.1)) {
                let template = from_node(node, group);
                self.by_group.insert(group.id, Cached { template: Arc::clone(&template), at: now });
                return Some(template);
            }
            if let Some(cached) = self.by_group.get(&group.id) {
                return Some(Arc::clone(&cached.template));
            }
            if let Some(provided) = &group.template {
                return Some(Arc::new(from_provider(flags, provided, daemon_sets)));
            }
            let any = nodes.iter().enumerate().find(|node| matches(&node))?;
            Some(from_node(any.0, group))
        };
        groups.iter().enumerate().map(one).collect()
    }
}

/// A template after the example of a node that runs `pods`.
pub fn from_example(
    flags: &Flags,
    node: &NodeView,
    pods: &[Arc<PodTraits>],
    daemon_sets: &[DaemonSetView],
) -> NodeTemplate {
    let bare = NodeTemplate {
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        unschedulable: node.unschedulable,
        allocatable: node.allocatable.clone(),
        capacity: node.capacity.clone(),
        pods: pods.to_vec(),
    };
    complete(flags, bare, daemon_sets, flags.force_ds)
}

/// A template after what the provider says, with all DaemonSets that would run on such a node.
pub fn from_provider(flags: &Flags, provided: &NodeTemplate, daemon_sets: &[DaemonSetView]) -> NodeTemplate {
    let mut template = complete(flags, provided.clone(), daemon_sets, true);
    for (current, old) in DEPRECATED_LABELS {
        if let Some(value) = template.labels.get(Symbol::new(current)) {
            template.labels.set(Symbol::new(old), value);
        }
    }
    template
}

fn complete(
    flags: &Flags,
    mut template: NodeTemplate,
    daemon_sets: &[DaemonSetView],
    all_daemons: bool,
) -> NodeTemplate {
    template.taints = sanitized_taints(flags, &template.taints);
    template.unschedulable &= !flags.scale_from_unschedulable;
    template.labels.remove(well_known::HOSTNAME);
    template.pods.retain(|pod| pod.is_mirror() || pod.is_daemon());
    let running = |daemon_set: &DaemonSetView| {
        template.pods.iter().any(|pod| {
            pod.namespace == daemon_set.pods.namespace
                && pod.controller.is_some_and(|controller| {
                    controller.kind == ControllerKind::DaemonSet && controller.name == daemon_set.name
                })
        })
    };
    let missing: Vec<&DaemonSetView> = daemon_sets.iter().filter(|daemon_set| !running(daemon_set)).collect();
    for daemon_set in missing {
        let wanted = all_daemons || preempts_as_node_critical(&daemon_set.pods);
        if wanted && should_run(daemon_set, &template) {
            template.pods.push(daemon_pod(daemon_set));
        }
    }
    template.labels.set(Symbol::new("cluster-autoscaler.kubernetes.io/template-node"), well_known::TRUE);
    template
}

fn preempts_as_node_critical(pods: &PodTraits) -> bool {
    pods.spec.priority_class.is_some_and(|class| class.as_str() == "system-node-critical")
        && pods.spec.preemption_policy == PreemptionPolicy::PreemptLowerPriority
}

/// Whether the DaemonSet controller would start a pod on such a node, whatever room there is.
///
/// Source: Kubernetes 1.36 `pkg/controller/daemon/daemon_controller.go`, `NodeShouldRunDaemonPod`.
fn should_run(daemon_set: &DaemonSetView, template: &NodeTemplate) -> bool {
    let spec = &daemon_set.pods.spec;
    let mut tolerations = spec.tolerations.clone();
    tolerations.extend(daemon_tolerations());
    let hard = template.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    spec.node_name.is_none()
        && spec.selects_node(&template.labels, "template-node")
        && first_untolerated(hard, &tolerations).is_none()
}

fn daemon_pod(daemon_set: &DaemonSetView) -> Arc<PodTraits> {
    let kind = ControllerKind::DaemonSet;
    let controller = Controller { kind, name: daemon_set.name, exists: true, replicas: 0, current_replicas: 0 };
    Arc::new(PodTraits { controller: Some(controller), ..(*daemon_set.pods).clone() })
}

/// Adds resources that the provider's template names and the example does not: a device plugin may not have reported them
/// yet.
fn with_provider_resources(mut template: NodeTemplate, provided: Option<&NodeTemplate>) -> NodeTemplate {
    let Some(provided) = provided else { return template };
    let add = |resources: &mut nodecast_model::domain::Resources, others: &nodecast_model::domain::Resources| {
        for (name, amount) in others.iter() {
            if resources.find(name).is_none() {
                resources.set(name, amount);
            }
        }
    };
    add(&mut template.capacity, &provided.capacity);
    add(&mut template.allocatable, &provided.allocatable);
    template
}

/// The mirror pod that the AWS provider puts on its templates: kube-proxy with a tenth of a CPU.
///
/// Source: Cluster Autoscaler 1.36 `cloudprovider/cloud_provider.go`, `BuildKubeProxy`.
pub fn kube_proxy() -> Arc<PodTraits> {
    let requests = nodecast_model::domain::Resources::new().with(ResourceName::CPU, 100);
    let spec = nodecast_model::domain::PodSpec {
        annotations: Labels::new()
            .with("kubernetes.io/config.source", "file")
            .with("kubernetes.io/config.mirror", "1234567890abcdef"),
        labels: Labels::new().with("component", "kube-proxy"),
        containers: vec![nodecast_model::domain::Container {
            requests,
            ..nodecast_model::domain::Container::default()
        }],
        ..nodecast_model::domain::PodSpec::default()
    };
    Arc::new(PodTraits::new(Symbol::new("kube-system"), Arc::new(spec), None))
}
