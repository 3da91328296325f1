//! What a pod asks for.

use std::borrow::Cow;
use std::sync::Arc;

use super::labels::{LabelSelector, Labels};
use super::requirements::{Operator, Requirement, Requirements};
use super::resources::{ResourceName, Resources};
use super::symbol::Symbol;
use super::taints::Toleration;
use super::time::SimDuration;
use super::topology::{PodAffinity, TopologySpread};
use super::versions::{KubernetesBehaviour, KubernetesVersion};

/// A port that a container opens on its node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPort {
    /// Port number on the node.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Symbol,
    /// Address on the node; empty for all.
    pub ip: Symbol,
}

/// A container of a pod.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Container {
    /// The container's name.
    pub name: String,
    /// The image, as written.
    pub image: String,
    /// Whether its command does nothing but stay.
    pub idles: bool,
    /// `securityContext.privileged`.
    pub privileged: bool,
    /// Requests as written.
    pub requests: Resources,
    /// Limits as written.
    pub limits: Resources,
    /// Ports opened on the node.
    pub host_ports: Vec<HostPort>,
    /// Seconds after start before the first readiness probe, and between probes; `None` without a probe.
    pub readiness_probe: Option<Probe>,
    /// The start-up probe.
    pub startup_probe: Option<Probe>,
    /// The liveness probe.
    pub liveness_probe: Option<Probe>,
    /// How long its `preStop` hook sleeps.
    pub pre_stop: SimDuration,
}

/// The timing of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Probe {
    /// `initialDelaySeconds`, 0 unless given.
    pub initial_delay: SimDuration,
    /// `periodSeconds`, 10 unless given.
    pub period: SimDuration,
    /// `successThreshold`, 1 unless given.
    pub success_threshold: u32,
    /// `failureThreshold`, 3 unless given.
    pub failure_threshold: u32,
    /// `terminationGracePeriodSeconds`, in place of the pod's when the probe kills the container.
    pub termination_grace: Option<SimDuration>,
}

impl Container {
    /// Requests, with limits standing in for requests that are not stated, as the API server defaults them.
    pub fn effective_requests(&self) -> Resources {
        let mut requests = self.requests.clone();
        for (name, amount) in self.limits.iter() {
            if requests.find(name).is_none() {
                requests.set(name, amount);
            }
        }
        requests
    }
}

/// A container that runs before the app containers; with `restartPolicy: Always` a sidecar that goes on beside them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct InitContainer {
    /// The container.
    pub container: Container,
    /// Whether it is a sidecar.
    pub sidecar: bool,
}

/// One expression of node affinity.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NodeSelectorExpression {
    /// The label's key, as written.
    pub key: Symbol,
    /// How its value is tested.
    pub operator: Operator,
    /// The values.
    pub values: Vec<Symbol>,
}

/// A term of node affinity: all expressions and all fields must hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct NodeSelectorTerm {
    /// `matchExpressions`, on labels.
    pub expressions: Vec<NodeSelectorExpression>,
    /// `matchFields`; only `metadata.name` exists.
    pub fields: Vec<NodeSelectorExpression>,
}

impl NodeSelectorTerm {
    /// The term's label expressions as requirements, renamed keys rewritten.
    pub fn requirements(&self) -> Requirements {
        self.expressions
            .iter()
            .map(|e| Requirement::new(super::labels::normalized_key(e.key), e.operator, e.values.iter().copied()))
            .collect()
    }
}

/// A preferred term with a weight from 1 to 100.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PreferredNodeTerm {
    /// The weight.
    pub weight: i64,
    /// The term.
    pub term: NodeSelectorTerm,
}

/// Node affinity of a pod.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct NodeAffinity {
    /// Required terms, one of which must hold; empty means no requirement.
    pub required: Vec<NodeSelectorTerm>,
    /// Preferred terms.
    pub preferred: Vec<PreferredNodeTerm>,
}

/// Whether a pod may evict others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PreemptionPolicy {
    /// It may evict pods of lower priority.
    #[default]
    PreemptLowerPriority,
    /// It waits.
    Never,
}

/// A volume of a pod that matters to placement: a claim by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VolumeRef {
    /// The PersistentVolumeClaim's name, or the part of it that pods of one template share.
    pub claim: Symbol,
    /// Whose claim it is.
    pub source: ClaimSource,
    /// The size in bytes that a claim made for the pod asks for; `None` where it is not given or the claim is there.
    pub bytes: Option<i64>,
    /// The VolumeAttributesClass of a claim made for the pod.
    pub attributes: Option<Symbol>,
}

/// Whose claim a pod's volume is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClaimSource {
    /// One that exists beside the pod, called as the volume says.
    Named,
    /// One that comes and goes with the pod, a generic ephemeral volume, called `<pod>-<volume>`: its storage class, empty for
    /// the default class.
    Ephemeral(Symbol),
    /// One that a StatefulSet made for the pod's ordinal, called `<template>-<pod>`: its storage class, `None` when not given.
    Template(Option<Symbol>),
}

impl VolumeRef {
    /// The name of the claim that a pod of this name means.
    pub fn claim_name(&self, pod: &str) -> Cow<'static, str> {
        match self.source {
            ClaimSource::Named => Cow::Borrowed(self.claim.as_str()),
            ClaimSource::Ephemeral(_) => Cow::Owned(format!("{pod}-{}", self.claim)),
            ClaimSource::Template(_) => Cow::Owned(format!("{}-{pod}", self.claim)),
        }
    }
}

/// Where a pod is in its life, as its status says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PodPhase {
    /// Accepted; not all containers have been started yet.
    Pending,
    /// Bound to a node, at least one container runs.
    #[default]
    Running,
    /// All containers ended well and will not start again.
    Succeeded,
    /// All containers ended, at least one badly.
    Failed,
    /// Its node does not answer.
    Unknown,
}

impl PodPhase {
    /// Whether the pod has ended for good.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The kind of object that controls a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum OwnerKind {
    /// Nothing controls it.
    #[default]
    None,
    /// A ReplicaSet (of a Deployment).
    ReplicaSet,
    /// A DaemonSet.
    DaemonSet,
    /// A StatefulSet.
    StatefulSet,
    /// A Job.
    Job,
    /// The node itself (a static pod).
    Node,
    /// Anything else.
    Other,
}

/// Everything about a pod that does not change during its life and that its siblings share: its labels and its
/// specification. Pods of one template share one value behind an `Arc`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PodSpec {
    /// The pod's labels.
    pub labels: Labels,
    /// The pod's annotations.
    pub annotations: Labels,
    /// What controls the pod.
    pub owner: OwnerKind,
    /// App containers.
    pub containers: Vec<Container>,
    /// Init containers and sidecars, in order.
    pub init_containers: Vec<InitContainer>,
    /// `hostNetwork`: whether the pod is in the network of its node.
    pub host_network: bool,
    /// What the runtime class adds.
    pub overhead: Resources,
    /// Pod-level requests, which replace the sum over containers.
    pub pod_requests: Option<Resources>,
    /// Pod-level limits.
    pub pod_limits: Option<Resources>,
    /// `nodeSelector`.
    pub node_selector: Labels,
    /// Node affinity.
    pub node_affinity: NodeAffinity,
    /// Pod affinity.
    pub pod_affinity: PodAffinity,
    /// Pod anti-affinity.
    pub pod_anti_affinity: PodAffinity,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Topology spread constraints.
    pub topology_spread: Vec<TopologySpread>,
    /// Numeric priority, resolved from the class.
    pub priority: i32,
    /// The priority class's name, if given.
    pub priority_class: Option<Symbol>,
    /// Whether the pod may evict others.
    pub preemption_policy: PreemptionPolicy,
    /// Names of scheduling gates that are still closed.
    pub scheduling_gates: Vec<Symbol>,
    /// Volumes that bind the pod to a place.
    pub volumes: Vec<VolumeRef>,
    /// Names of volumes on the node's disk: `hostPath`, and `emptyDir` that is not in memory.
    pub local_volumes: Vec<Symbol>,
    /// Whether the pod asks for devices through dynamic resource allocation.
    pub resource_claims: bool,
    /// Why a LimitRange admits no pod of the template, if one does not.
    pub refused: Option<Symbol>,
    /// The template of a DaemonSet as its object has it, where admission gives its pods more.
    pub as_written: Option<Arc<PodSpec>>,
    /// `nodeName`, if the manifest pins the pod.
    pub node_name: Option<Symbol>,
    /// Time between SIGTERM and SIGKILL (30 s unless given).
    pub termination_grace: Option<SimDuration>,
    /// `minReadySeconds` of the owner does not live here; readiness gates by name do.
    pub readiness_gates: Vec<Symbol>,
}

impl Container {
    /// Whether the container does nothing but stay: by its command, or because its image is one of those called `pause`.
    fn does_nothing(&self) -> bool {
        let name = self.image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let name = name.split(':').next().unwrap_or_default();
        self.idles || name == "pause" || name.starts_with("pause-")
    }
}

impl PodSpec {
    /// Whether the pod is a placeholder: it holds room for others, to which it gives way, and does nothing itself. That is a
    /// pod of negative priority each of whose containers does nothing.
    ///
    /// Source: the over-provisioning that the documentation of Cluster Autoscaler (FAQ) and Kubernetes (Node Overprovisioning) describe.
    pub fn is_placeholder(&self) -> bool {
        self.priority < 0 && !self.containers.is_empty() && self.containers.iter().all(Container::does_nothing)
    }

    /// The sidecars: init containers that go on beside the app containers (`restartPolicy: Always`).
    pub fn sidecars(&self) -> impl Iterator<Item = &Container> {
        self.init_containers.iter().filter(|init| init.sidecar).map(|init| &init.container)
    }

    /// The sidecar of this name.
    pub fn sidecar(&self, name: &str) -> Option<&Container> {
        self.sidecars().find(|sidecar| sidecar.name == name)
    }

    /// Whether one of the containers that run side by side, sidecars included, has this name.
    pub fn has_container(&self, name: &str) -> bool {
        self.containers.iter().chain(self.sidecars()).any(|container| container.name == name)
    }

    /// What the scheduler counts for the pod, with `pods: 1`: the larger of the running containers' sum and the
    /// init containers' peak, plus overhead; pod-level requests replace the sum for the resources they name.
    ///
    /// Source: Kubernetes 1.36 `k8s.io/component-helpers/resource`, `PodRequests`.
    pub fn requests(&self) -> Resources {
        let mut running = Resources::new();
        for container in &self.containers {
            running.add(&container.effective_requests());
        }
        let mut sidecars = Resources::new();
        let mut init_peak = Resources::new();
        for init in &self.init_containers {
            let effective_requests = init.container.effective_requests();
            if init.sidecar {
                sidecars.add(&effective_requests);
                running.add(&effective_requests);
                init_peak.raise_to(&sidecars);
            } else {
                let mut together = effective_requests;
                together.add(&sidecars);
                init_peak.raise_to(&together);
            }
        }
        running.raise_to(&init_peak);
        for (name, amount) in self.pod_requests.iter().flat_map(Resources::iter) {
            running.set(name, amount);
        }
        if let Some(limits) = &self.pod_limits {
            for (name, amount) in limits.iter() {
                if running.find(name).is_none() {
                    running.set(name, amount);
                }
            }
        }
        running.add(&self.overhead);
        running.with(ResourceName::PODS, 1)
    }

    /// Whether the pod's node selector and one of its required terms accept a node with these labels and this name.
    ///
    /// Source: Kubernetes 1.36 `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.
    pub fn selects_node(&self, node_labels: &Labels, node_name: &str) -> bool {
        self.node_selector.iter().all(|(key, value)| node_labels.get(key) == Some(value))
            && (self.node_affinity.required.is_empty()
                || self.node_affinity.required.iter().any(|term| term.accepts(node_labels, node_name)))
    }

    /// Host ports of all containers.
    pub fn host_ports(&self) -> impl Iterator<Item = HostPort> + '_ {
        let sidecars = self.init_containers.iter().filter(|init| init.sidecar).map(|init| &init.container);
        self.containers.iter().chain(sidecars).flat_map(|container| container.host_ports.iter().copied())
    }

    /// The time that a deletion without its own grace period leaves the pod.
    pub fn grace_period(&self) -> SimDuration {
        self.termination_grace.unwrap_or(SimDuration::from_secs(30))
    }
}

impl NodeSelectorTerm {
    /// Whether a node with these labels and this name meets the term. A term without any expression meets nothing.
    pub fn accepts(&self, node_labels: &Labels, node_name: &str) -> bool {
        if self.expressions.is_empty() && self.fields.is_empty() {
            return false;
        }
        self.expressions.iter().all(|e| e.accepts(node_labels.get(e.key).map(Symbol::as_str)))
            && self.fields.iter().all(|e| e.accepts(Some(node_name)))
    }
}

impl NodeSelectorExpression {
    /// Whether a label with this value (or without one) meets the expression.
    pub fn accepts(&self, value: Option<&str>) -> bool {
        let listed = |text: &str| self.values.iter().any(|v| v.as_str() == text);
        let compared = |test: fn(i64, i64) -> bool| {
            let bound = self.values.first().and_then(|v| v.as_str().parse::<i64>().ok());
            let number = value.and_then(|text| text.parse::<i64>().ok());
            matches!((number, bound), (Some(number), Some(bound)) if test(number, bound))
        };
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => compared(|item, bound| item > bound),
            Operator::Lt => compared(|item, bound| item < bound),
            Operator::Gte => compared(|item, bound| item >= bound),
            Operator::Lte => compared(|item, bound| item <= bound),
        }
    }
}

/// A PodDisruptionBudget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodDisruptionBudget {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
    /// The pods it protects; `None` (no selector) protects none.
    pub selector: Option<LabelSelector>,
    /// How many may be away, or must stay.
    pub rule: DisruptionRule,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`.
    pub always_allow_unhealthy: bool,
}

impl PodDisruptionBudget {
    /// Drops `unhealthyPodEvictionPolicy` where the API server of this release does not know it, or not unless a feature gate is opened.
    pub const fn drop_unknown(&mut self, version: KubernetesVersion) {
        self.always_allow_unhealthy &= version.has(KubernetesBehaviour::UnhealthyPodEvictionPolicy);
    }
}

/// A count or a percentage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntOrPercent {
    /// A number of pods or nodes.
    Count(i64),
    /// A percentage of them.
    Percent(i64),
}

impl IntOrPercent {
    /// The number that this is of `total`, a fraction rounded up.
    pub fn of_rounded_up(self, total: i64) -> i64 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => clamped((i128::from(percent) * i128::from(total) + 99).div_euclid(100)),
        }
    }

    /// The number that this is of `total`, a fraction rounded down.
    pub fn of_rounded_down(self, total: i64) -> i64 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => clamped((i128::from(percent) * i128::from(total)).div_euclid(100)),
        }
    }
}

fn clamped(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// The rule of a PodDisruptionBudget.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DisruptionRule {
    /// `minAvailable`.
    MinAvailable(IntOrPercent),
    /// `maxUnavailable`.
    MaxUnavailable(IntOrPercent),
}

impl DisruptionRule {
    /// Whether the rule allows no disruption whatever the number of pods: `maxUnavailable` of 0 or 0 %, `minAvailable` of
    /// 100 %.
    pub fn allows_nothing(self) -> bool {
        matches!(
            self,
            Self::MaxUnavailable(IntOrPercent::Count(0) | IntOrPercent::Percent(0))
                | Self::MinAvailable(IntOrPercent::Percent(100))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Container, InitContainer, PodSpec};
    use crate::domain::resources::Resources;

    fn container(cpu_milli: i64, memory: i64) -> Container {
        Container { requests: Resources::cpu_memory(cpu_milli, memory), ..Container::default() }
    }

    #[test]
    fn missing_requests_default_to_limits() {
        let limited = Container { limits: Resources::cpu_memory(1_000, 2_000_000_000), ..Container::default() };
        let pod = PodSpec { containers: vec![limited], ..PodSpec::default() };
        assert_eq!(pod.requests().to_string(), "cpu 1, memory 1953125Ki, pods 1");
    }

    #[test]
    fn pod_request_is_max_of_init_and_sum() {
        let pod = PodSpec {
            containers: vec![container(100, 10)],
            init_containers: vec![
                InitContainer { container: container(50, 5), sidecar: true },
                InitContainer { container: container(300, 1), sidecar: false },
            ],
            overhead: Resources::cpu_memory(7, 0),
            ..PodSpec::default()
        };
        let requests = pod.requests();
        assert_eq!((requests.cpu_milli(), requests.memory_bytes()), (357, 15));
    }
}
