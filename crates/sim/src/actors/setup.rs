//! What a simulation is told: plain data, resolved and validated beforehand.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::load_steps::{LoadStep, LoadSteps};
use crate::catalog::{InstanceFacts, Region};
use crate::cloud::Pool;
use crate::cluster::NodeOrigin;
use crate::domain::GroupRanks;
use crate::domain::PodAddresses;
use crate::domain::check::Check;
use crate::domain::cron::CronWindow;
use crate::domain::keda::{ScaledJob, ScaledObject, Trigger};
use crate::domain::node_group::{InstanceRefresh, VersionUpdate};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::quota::ResourceQuota;
use crate::domain::volumes::{PersistentVolume, PersistentVolumeClaim, Storage};
use crate::domain::which::{ObjectKind, Which};
use crate::domain::workload::{CronJob, DaemonSet, Deployment, Job, ObjectName, StatefulSet};
use crate::domain::{
    ControlPlaneTier, HorizontalPodAutoscaler, KubernetesVersion, LabelSelector, Labels, NodeClass, NodeGroup,
    NodeOverlay, NodePool, SimDuration, SimTime, Symbol, VerticalPodAutoscaler,
};
use crate::load::{Service, Spacing};
use crate::manifests::{Namespaces, PodObject};
use crate::single_pass::{NamedPod, NodeWithPods};
use nodecast_cluster_autoscaler::Flags;
use nodecast_karpenter::instance_types::{RealNode, node_of_group, pods_by_eks};
pub use nodecast_karpenter::machine::KarpenterSettings;
use nodecast_karpenter::machine::{Buffer, Written};
use nodecast_replicas::keda::Formula;
use nodecast_replicas::promql::Query;
use nodecast_scheduler::SchedulerConfig;
use nodecast_settings::{PolicyVariant, PrometheusSettings, QueueSpec, Scenario, SeriesSpec};

/// Names of the random streams that a simulation draws from.
pub const STREAM_NAMES: &[&str] = &[
    "api",
    "api-error",
    "api-lag",
    "api-retry",
    "asg-health",
    "asg-in-service",
    "asg-reaction",
    "backoff-phase",
    "boot",
    "boot-fate",
    "capacity",
    "claim-name",
    "disruption-phase",
    "expander-ties",
    "fargate-start",
    "fargate-zone",
    "fault-hit",
    "fault-shortage",
    "flush-phase",
    "garbage-phase",
    "group-reading",
    "group-update",
    "handler-poll",
    "hpa-drift",
    "hpa-phase",
    "initialization",
    "jitter",
    "job-fate",
    "job-name",
    "keda-drift",
    "keda-phase",
    "load-factor",
    "load-noise",
    "metrics-age",
    "metrics-phase",
    "node-name",
    "notice-delivery",
    "orphan-phase",
    "pod-uid",
    "preemption-start",
    "price",
    "price-error",
    "reclaim",
    "reclaim-hit",
    "reclaim-local",
    "reclaim-reach",
    "relist-phase",
    "request-arrival",
    "request-service",
    "reservation-end",
    "restart-looks",
    "scan-phase",
    "scheduler-ties",
    "scrape-phase",
    "shutdown",
    "start-second",
    "startup-taint-stuck",
    "supply",
    "supply-delay",
    "supply-shared",
    "volume-zone",
    "vpa-phase",
    "warm-boot",
    "warm-pool",
    "zone-choice",
    "zone-spread",
];

/// Everything that a simulation is told: what the scenario states, and what is worked out of it beforehand.
#[derive(Clone, Debug)]
pub struct Setup<'s> {
    /// What the author of the scenario states.
    pub scenario: &'s Scenario,
    /// The policy, one of the scenario's.
    pub policy: &'s PolicyVariant,
    /// The region with its prices.
    pub region: Arc<Region>,
    /// The region whose On-Demand prices Karpenter's release orders types by: the same but for old releases in China.
    pub price_list: Arc<Region>,
    /// Whether what is kept is worked out anew and compared. The answer is the same.
    pub check: Check,
    /// Whether what only `metrics.om` tells is kept: what meters read at each sample, and when pods took their share of the work.
    pub keeps_meters: bool,
    /// The seed.
    pub seed: u64,
    /// The seed of Spot prices and of the capacity of pools: the same as `seed`, but for clusters of a fleet.
    pub market_seed: u64,
    /// Who adds and removes nodes.
    pub autoscaler: Autoscaler,
    /// Settings of kube-scheduler.
    pub scheduler: SchedulerConfig,
    /// Karpenter's NodePools.
    pub node_pools: Vec<NodePool>,
    /// Their node classes.
    pub node_classes: Vec<NodeClass>,
    /// NodeOverlays that Karpenter heeds.
    pub node_overlays: Vec<NodeOverlay>,
    /// CapacityBuffers that Karpenter heeds.
    pub buffers: Vec<Buffer>,
    /// Claims and volumes of the start, and all storage classes. Whoever makes the setup sees to it that every claim which a pod names is
    /// there or is applied later, and every class that a claim needs.
    pub storage: Storage,
    /// Prometheus, if there is one.
    pub prometheus: Option<PrometheusPlan<'s>>,
    /// Queues.
    pub queues: Vec<QueuePlan<'s>>,
    /// Requests to workloads.
    pub loads: Vec<LoadPlan>,
    /// What pods use beside them.
    pub usages: Vec<UsagePlan>,
    /// What is there when the simulation begins beside what manifests and node groups state.
    pub initial: Option<InitialPlan<'s>>,
    /// What happens from outside, in order of time.
    pub timeline: Vec<Step>,
    /// Keys of labels by which something selects pods at some time of the run: controllers put labels that tell pods of one template
    /// apart on pods only if they are among these.
    pub selecting_labels: BTreeSet<Symbol>,
    /// Time between samples for the report.
    pub sample_interval: SimDuration,
}

impl Setup<'_> {
    /// Says whether what is kept is worked out anew and compared, by everything that keeps something.
    pub fn set_check(&mut self, check: Check) {
        self.check = check;
        self.scheduler.check = check;
    }

    /// Unix time in whole seconds.
    pub fn unix_seconds(&self, now: SimTime) -> i64 {
        self.scenario.start.as_second() + now.as_micros().div_euclid(1_000_000)
    }

    /// Every namespace in which something stands at some time of the run, in order of name, with its labels at the start: what
    /// kube-scheduler and the autoscalers select namespaces from. One in which nothing stands yet has no pod that could count.
    pub fn namespaces(&self) -> impl Iterator<Item = (Symbol, Labels)> {
        let later = self.scenario.timeline.iter().filter_map(|timed| timed.action.applied());
        let found = self.initial.iter().flat_map(|initial| {
            let of_nodes = initial.nodes.iter().flat_map(|node| &node.found.pods);
            of_nodes.chain(initial.waiting.iter().copied()).map(|pod| pod.namespace)
        });
        let later = Namespaces::from_objects(later.map(|item| &**item)).into_iter().map(|(name, _)| name);
        Namespaces::from_objects([&*self.policy.manifests]).with(found).with(later).into_iter()
    }

    /// What addresses the network plugin has for pods.
    pub fn pod_addresses(&self) -> PodAddresses {
        let plugin = self.policy.manifests.network_plugin.addresses;
        PodAddresses { prefixes: plugin.prefixes || self.scenario.ec2.cloud.network.prefix_delegation, ..plugin }
    }

    /// What the kubelet of a group's node reports that is a machine of this type.
    pub fn node_of_group(&self, facts: &InstanceFacts, group: &NodeGroup) -> RealNode {
        let measured = self.scenario.ec2.measured.get(&facts.name).copied().unwrap_or_default();
        let types = group.instance_types.iter().filter_map(|name| self.region.instance_type(*name));
        let pods = pods_by_eks(group, types.map(|instance_type| &*instance_type.facts), self.pod_addresses());
        node_of_group(facts, group, measured, pods)
    }

    /// Who adds and removes nodes, with its release: `Karpenter v1.13`.
    pub fn autoscaler_name(&self) -> String {
        match &self.autoscaler {
            Autoscaler::Karpenter(_) if self.policy.auto_mode.is_some() => "EKS Auto Mode".to_owned(),
            Autoscaler::Karpenter(_) => format!("Karpenter {}", self.policy.versions.karpenter),
            Autoscaler::ClusterAutoscaler(_) => {
                format!("Cluster Autoscaler {}", self.policy.versions.cluster_autoscaler)
            }
            Autoscaler::Static => "no autoscaler".to_owned(),
        }
    }
}

/// Who adds and removes nodes.
#[derive(Clone, Debug)]
pub enum Autoscaler {
    /// Nobody: the node groups stay as they are.
    Static,
    /// Karpenter.
    Karpenter(KarpenterSettings),
    /// The Cluster Autoscaler, on the node groups.
    ClusterAutoscaler(Box<ClusterAutoscalerSettings>),
}

/// The Cluster Autoscaler's own settings.
#[derive(Clone, Debug)]
pub struct ClusterAutoscalerSettings {
    /// Its flags.
    pub flags: Arc<Flags>,
    /// Ranks of groups for the expander `priority`; `None` without the ConfigMap.
    pub ranks: Option<GroupRanks>,
}

/// Requests to one workload over time.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The workload.
    pub workload: ObjectName,
    /// Whether requests are simulated one by one.
    pub exact: bool,
    /// What a request may cost and how requests may be spaced.
    pub parts: Vec<LoadPart>,
    /// From when on requests come from where, in order of time.
    pub steps: LoadSteps,
}

impl LoadPlan {
    /// Whether clients may give up or be refused from a step on.
    pub fn may_fail(&self, step: LoadStep) -> bool {
        let part = self.parts.get(step.part as usize);
        part.is_some_and(|part| part.service.timeout.is_some() || part.service.queue_per_replica.is_some())
    }
}

/// What stays the same over many steps of a load.
#[derive(Clone, Debug)]
pub struct LoadPart {
    /// What a request costs.
    pub service: Service,
    /// How arrivals are spaced.
    pub spacing: Spacing,
}

/// What the pods of a workload use over time beside requests and messages.
#[derive(Clone, Debug)]
pub struct UsagePlan {
    /// The workload.
    pub workload: ObjectName,
    /// The container; `None` for all, in the proportion of what the template has them request.
    pub container: Option<Symbol>,
    /// Whether it is what all Ready pods use together, and not what each does.
    pub of_workload: bool,
    /// From when on how much CPU is in use, in millionths of a CPU, in order of time; nothing where that is not stated.
    pub cpu: Vec<(SimTime, i64)>,
    /// The same of memory, in bytes.
    pub memory: Vec<(SimTime, i64)>,
    /// How much more CPU each pod uses from its start on, in millionths of a CPU, and for how long.
    pub start_up: Option<(i64, SimDuration)>,
}

/// Something that happens from outside.
#[derive(Clone, Debug)]
pub struct Step {
    /// When.
    pub at: SimTime,
    /// What.
    pub action: Action,
}

/// A cluster that is there when the simulation begins.
#[derive(Clone, Debug)]
pub struct InitialPlan<'s> {
    /// The instant since 1970 at which it was so: the simulation's first.
    pub seen: SimTime,
    /// Its nodes with their pods, without those whose NodePool or group the policy has done away with.
    pub nodes: Vec<InitialNode<'s>>,
    /// Pods without a node, and those of nodes that the policy has done away with.
    pub waiting: Vec<&'s NamedPod>,
    /// Jobs that a CronJob or ScaledJob of the policy has made, those that began first first: nobody applies them.
    pub jobs: Vec<&'s Job>,
    /// Whether node groups have the nodes that are among these, and no others.
    pub has_groups: bool,
    /// What a node of each group and NodePool with each of its instance types offers, as far as some are there.
    pub examples: Vec<Example>,
}

/// A node that stands for those to come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// Whose it is.
    pub origin: NodeOrigin,
    /// Its type.
    pub instance_type: Symbol,
    /// What its kubelet reports.
    pub offers: RealNode,
}

impl InitialPlan<'_> {
    /// What a node of this group or NodePool with this type offers, if there is one.
    pub fn example(&self, origin: NodeOrigin, instance_type: Symbol) -> Option<&RealNode> {
        let found =
            self.examples.iter().find(|example| example.origin == origin && example.instance_type == instance_type);
        found.map(|example| &example.offers)
    }

    /// Whether it comes from a dump, and not from nodes among manifests.
    pub const fn is_dump(&self) -> bool {
        self.has_groups
    }

    /// An instant since 1970 as one of the simulation: its first, where nothing states one.
    pub fn instant(&self, at: Option<SimTime>) -> SimTime {
        at.map_or(SimTime::ZERO, |at| (SimTime::ZERO + (at - self.seen)).min(SimTime::ZERO))
    }

    /// How long after the simulation's first instant an instant since 1970 is; nothing for one that is past.
    pub fn until(&self, at: SimTime) -> SimDuration {
        at.saturating_since(self.seen)
    }
}

/// A node that is there when the simulation begins. Instants are since 1970.
#[derive(Clone, Debug)]
pub struct InitialNode<'s> {
    /// The node with its pods.
    pub found: Cow<'s, NodeWithPods>,
    /// The name of its NodeClaim.
    pub claim: Option<&'s str>,
    /// When it was created.
    pub created: Option<SimTime>,
    /// What Karpenter has written down of it.
    pub written: Written,
    /// Whether whoever launched it counts it as initialized.
    pub initialized: bool,
    /// Whose it is.
    pub origin: NodeOrigin,
    /// The position of its node group.
    pub group: Option<usize>,
    /// Where its machine comes from; `None` where its labels name none that is for sale.
    pub pool: Option<Pool>,
}

/// What can happen from outside.
#[derive(Clone, Debug)]
pub enum Action {
    /// The cluster that is there when the simulation begins is taken up.
    TakeUp,
    /// A Deployment is applied.
    Deploy(Deployment),
    /// A StatefulSet is applied.
    DeployStateful(Box<StatefulSet>),
    /// A Job is applied.
    RunJob(Box<Job>),
    /// A CronJob is applied.
    RunCronJob(Box<CronJob>),
    /// A pod that nothing controls is applied.
    RunPod(Box<PodObject>),
    /// A DaemonSet is applied.
    RunDaemon(DaemonSet),
    /// Somebody sets a replica count.
    Scale {
        /// The workload.
        workload: ObjectName,
        /// Replicas wanted.
        replicas: u32,
    },
    /// Somebody sets the desired size of a node group.
    ScaleGroup {
        /// The node group.
        group: Symbol,
        /// Instances wanted.
        desired: u32,
    },
    /// A node group is updated: sizes, and of a managed group labels and taints.
    UpdateGroup(Box<NodeGroup>),
    /// A managed node group is updated to another release or machine image.
    UpdateVersion(VersionUpdate),
    /// Somebody starts an instance refresh of a node group.
    RefreshGroup(InstanceRefresh),
    /// A node class is applied: it changes to this form.
    ReplaceClass(Box<NodeClass>),
    /// A NodePool is applied: it comes to be, or changes to this form.
    ReplacePool(Box<NodePool>),
    /// NodeOverlays are applied: all that there are from then on.
    ReplaceOverlays(Vec<NodeOverlay>),
    /// CapacityBuffers, or PodTemplates of theirs, are applied: all that there are from then on.
    ReplaceBuffers(Vec<Buffer>),
    /// A Namespace is applied: its labels are these.
    LabelNamespace(Symbol, Labels),
    /// A PodDisruptionBudget is applied: it comes to be, or changes to this form.
    ApplyBudget(PodDisruptionBudget),
    /// A PersistentVolume is applied.
    ApplyVolume(Box<PersistentVolume>),
    /// A PersistentVolumeClaim is applied: it comes to be, or asks for more.
    ApplyClaim(PersistentVolumeClaim),
    /// A ResourceQuota is applied.
    ApplyQuota(ResourceQuota),
    /// The ConfigMap of Cluster Autoscaler's expander `priority` is applied.
    ReplaceRanks(Box<GroupRanks>),
    /// `kubectl cordon`.
    Cordon(Which),
    /// `kubectl uncordon`.
    Uncordon(Which),
    /// `kubectl drain`.
    Drain {
        /// The nodes.
        nodes: Which,
        /// Whether pods that nothing controls are evicted too.
        force: bool,
        /// After this time the drain of a node is given up.
        timeout: Option<SimDuration>,
    },
    /// `kubectl delete`.
    Delete {
        /// What is deleted.
        kind: ObjectKind,
        /// Where objects are that are named by their labels.
        namespace: Symbol,
        /// Which of them.
        which: Which,
    },
    /// The control plane is upgraded.
    UpgradeControlPlane(KubernetesVersion),
    /// The control plane has another tier from now on.
    ChangeControlPlaneTier(ControlPlaneTier),
    /// A HorizontalPodAutoscaler is applied.
    Autoscale(HorizontalPodAutoscaler),
    /// A VerticalPodAutoscaler is applied.
    AutoscaleVertically(Box<VerticalPodAutoscaler>),
    /// A ScaledObject is applied.
    ScaleObject(Box<ScalingPlan>),
    /// A ScaledJob is applied.
    ScaleJobs(Box<JobPlan>),
}

/// A ScaledObject, ready to be polled.
#[derive(Clone, Debug)]
pub struct ScalingPlan {
    /// The object.
    pub object: ScaledObject,
    /// Its autoscaler; `None` while it is paused.
    pub autoscaler: Option<HorizontalPodAutoscaler>,
    /// Where the value of each trigger comes from, in the order of the triggers.
    pub readers: Vec<TriggerReader>,
    /// The formula of its scaling modifiers.
    pub formula: Option<Formula>,
}

impl ScalingPlan {
    /// The triggers with their sources.
    pub fn sources(&self) -> TriggerSources<'_> {
        TriggerSources { namespace: self.object.namespace, triggers: &self.object.triggers, readers: &self.readers }
    }
}

/// A ScaledJob, ready to be polled.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// The object.
    pub job: ScaledJob,
    /// Where the value of each trigger comes from, in the order of the triggers.
    pub readers: Vec<TriggerReader>,
    /// The queue from which its pods take messages, by its position in [`Setup::queues`].
    pub queue: Option<usize>,
}

impl JobPlan {
    /// The triggers with their sources.
    pub fn sources(&self) -> TriggerSources<'_> {
        TriggerSources { namespace: self.job.namespace, triggers: &self.job.triggers, readers: &self.readers }
    }
}

/// Triggers of one object with their sources.
#[derive(Clone, Copy, Debug)]
pub struct TriggerSources<'p> {
    /// The object's namespace.
    pub namespace: Symbol,
    /// The triggers.
    pub triggers: &'p [Trigger],
    /// Their sources, in the same order.
    pub readers: &'p [TriggerReader],
}

/// Where the value of a trigger comes from.
#[derive(Clone, Debug)]
pub enum TriggerReader {
    /// metrics-server, which the autoscaler asks itself.
    MetricsServer,
    /// The calendar.
    Calendar(CronWindow),
    /// The pods of its namespace that match.
    Pods(LabelSelector),
    /// A value of the scenario, by its position in [`Scenario::external_metrics`].
    External(usize),
    /// Prometheus.
    Query(Query),
    /// Queues, by their positions in [`Setup::queues`].
    Queues(Vec<usize>),
    /// Nothing: every read fails with this text.
    Unreachable(String),
    /// A system of which the scenario says nothing, as the text tells: nobody scales by it, and no fallback stands in for it.
    Unknown(String),
}

/// Prometheus and the metrics adapter in front of it.
#[derive(Clone, Debug)]
pub struct PrometheusPlan<'s> {
    /// What the scenario states.
    pub settings: &'s PrometheusSettings,
    /// The series that there are.
    pub series: Vec<SeriesPlan<'s>>,
    /// What the adapter serves.
    pub adapter: Vec<AdapterPlan>,
    /// The longest time back that any query looks.
    pub reach: SimDuration,
}

/// Series of one name that tell of one workload.
#[derive(Clone, Copy, Debug)]
pub struct SeriesPlan<'s> {
    /// What they are.
    pub spec: &'s SeriesSpec,
    /// Time between two scrapes.
    pub interval: SimDuration,
}

/// What the adapter serves under the name of a metric.
#[derive(Clone, Debug)]
pub struct AdapterPlan {
    /// The name that a HorizontalPodAutoscaler uses.
    pub metric: Symbol,
    /// The query behind it.
    pub query: Query,
}

/// A queue and its arrivals.
#[derive(Clone, Debug)]
pub struct QueuePlan<'s> {
    /// What it is.
    pub spec: &'s QueueSpec,
    /// From when on messages arrive at which rate per second, in order of time.
    pub arrivals: Vec<(SimTime, f64)>,
}
