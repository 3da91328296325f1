//! A cluster as it stands: the nodes, pods and budgets of a dump as a [`Cluster`], and Karpenter as it would find them if it were
//! started now. What it is asked is answered by the code that decides.
//!
//! Instants are since 1970. What a dump does not say is taken as mildly as it can be: a node without a NodeClaim became
//! initialized when it was created, and the last pod came to it when its newest one was created.
//!
//! Deviation: a dump lacks Karpenter's memory: offerings that just lacked capacity, pods on their way to a node, and
//! commands under way. Nodes match their NodePool unless their NodeClaim is drifted.
//!
//! What must not live here: time that passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{LAST, NamedPod, NodeWithPods, PackingQuestion, last_heard_of};
use nodecast_karpenter::instance_types::{Offering, labels_of_node};
use nodecast_karpenter::machine::inquiry::NodeAnswer;
use nodecast_karpenter::machine::{Input, Karpenter, Outside, Settings, Written};
use nodecast_model::catalog::Region;
use nodecast_model::cluster::{Cluster, Follow, NewNode, NewWorkload, NodeOrigin, WorkloadKind};
use nodecast_model::control_plane::budgets::{ProtectedByBudgets, eviction_answer};
use nodecast_model::control_plane::eviction::{BudgetStatus, EvictionAnswer, Protections};
use nodecast_model::domain::node_group::is_spot_node;
use nodecast_model::domain::pod::{OwnerKind, PodPhase};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::volumes::Storage;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{
    HourlyRate, KarpenterVersion, KubernetesVersion, LabelSelector, Labels, NodeClaimObject, NodeClass, NodeId,
    NodePool, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId,
};

/// A cluster, and Karpenter on it.
#[derive(Debug)]
pub struct Standing {
    /// The instant of the dump: when anything in it was last heard of.
    pub now: SimTime,
    /// The cluster.
    pub cluster: Cluster,
    karpenter: Karpenter,
    rest: Rest,
}

/// What there is beside the cluster.
#[derive(Debug)]
struct Rest {
    /// Names of pods, by id.
    pods: Vec<String>,
    storage: Storage,
    volume_limits: Vec<Vec<(Symbol, u32)>>,
    statuses: Vec<BudgetStatus>,
    kubernetes: KubernetesVersion,
    protections: Protections,
}

impl Outside for Rest {
    fn pod_name(&self, pod: PodId) -> &str {
        self.pods.get(pod.index()).map_or("", String::as_str)
    }

    fn storage(&self) -> &Storage {
        &self.storage
    }

    fn volume_limits(&self, node: NodeId) -> &[(Symbol, u32)] {
        self.volume_limits.get(node.index()).map_or(&[], Vec::as_slice)
    }

    fn budget_statuses(&self) -> Vec<BudgetStatus> {
        self.statuses.clone()
    }

    fn protections(&self) -> &Protections {
        &self.protections
    }

    fn control_plane(&self) -> KubernetesVersion {
        self.kubernetes
    }
}

impl Standing {
    /// The cluster that a dump shows.
    pub fn from_question(question: &PackingQuestion) -> Self {
        let now = instant_of(question);
        let claims = claims_by_node(&question.node_claims);
        let mut builder = Builder::default();
        for budget in &question.disruption_budgets {
            builder.cluster.apply_budget(budget.clone());
        }
        for (&name, template) in question.daemon_sets.iter().zip(&question.daemons) {
            builder.workload(WorkloadKind::DaemonSet, name, template);
        }
        for node in &question.nodes {
            builder.node(node, question, claims.get(&*node.node.name).copied(), now);
        }
        for pod in question.pods.iter().filter(|pod| pod.leaves.is_none()) {
            let id = builder.pod(pod, now);
            builder.cluster.mark_unschedulable(id);
        }
        builder.count_replicas();
        let Builder { cluster, pods, volume_limits, .. } = builder;
        let statuses = ProtectedByBudgets::build(&cluster).statuses().to_vec();
        let storage = question.storage.clone();
        let (kubernetes, protections) = (question.setup.kubernetes, Protections::default());
        let rest = Rest { pods, storage, volume_limits, statuses, kubernetes, protections };
        let karpenter = karpenter(question, &claims, &cluster, &rest, now);
        Self { now, cluster, karpenter, rest }
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.cluster.live_nodes().iter().copied().find(|&node| self.cluster.node(node).name.as_str() == name)
    }

    /// `namespace/name` of a pod.
    pub fn pod_name(&self, pod: PodId) -> String {
        format!("{}/{}", self.cluster.pod(pod).namespace, self.rest.pod_name(pod))
    }

    /// What stands against the removal of a node, and what it would come to; `None` if Karpenter has no say about it.
    pub fn about_node(&mut self, node: NodeId) -> Option<NodeAnswer> {
        self.karpenter.about_node(self.now, &self.cluster, &self.rest, node)
    }

    /// The status of every budget, in the order of the cluster.
    pub fn budgets(&self) -> &[BudgetStatus] {
        &self.rest.statuses
    }

    /// The budgets that protect a pod, by position, and what the API server would answer to its eviction now.
    pub fn eviction(&self, pod: PodId) -> (Vec<usize>, EvictionAnswer) {
        let state = self.cluster.pod(pod);
        let protectors = self.rest.protections.of_pod(&self.cluster, state);
        let answer = eviction_answer(&self.cluster, &self.rest.statuses, state, &protectors);
        (protectors.iter().map(|&budget| budget as usize).collect(), answer)
    }

    /// Whether the API server never evicts a pod, however long one tries: several budgets protect it, or one that wants as many healthy pods
    /// as there are, or that cannot ask how many pods there should be.
    ///
    /// Source: Kubernetes 1.36.2 `pkg/registry/core/pod/storage/eviction.go`, `EvictionREST.Create`;
    /// `pkg/controller/disruption/disruption.go`, `updatePdbStatus`, `failSafe`.
    pub fn is_never_evicted(&self, pod: PodId) -> bool {
        let (protectors, answer) = self.eviction(pod);
        let never_allows = |budget: &usize| {
            self.rest.statuses.get(*budget).is_some_and(|status| {
                status.desired_healthy >= status.expected || status.healthy > status.desired_healthy
            })
        };
        match answer {
            EvictionAnswer::Evicted { .. } => false,
            EvictionAnswer::SeveralBudgets => true,
            // It allows none now.
            EvictionAnswer::TooManyRequests => protectors.iter().any(never_allows),
        }
    }
}

/// When anything in a dump was last heard of.
fn instant_of(question: &PackingQuestion) -> SimTime {
    last_heard_of(&question.nodes, &question.pods, &question.node_claims).unwrap_or(SimTime::ZERO)
}

/// NodeClaims by the name of the node that registered for them.
pub fn claims_by_node(claims: &[NodeClaimObject]) -> BTreeMap<&str, &NodeClaimObject> {
    claims.iter().filter_map(|claim| Some((claim.node.as_deref()?, claim))).collect()
}

fn karpenter(
    question: &PackingQuestion,
    claims: &BTreeMap<&str, &NodeClaimObject>,
    cluster: &Cluster,
    rest: &Rest,
    now: SimTime,
) -> Karpenter {
    let types = question.instance_types();
    let mut settings = Settings {
        node_classes: question.node_classes.clone(),
        namespaces: question.namespaces.clone(),
        begins: now,
        flags: question.setup.flags,
        ..Settings::new(question.karpenter, question.setup.kubernetes)
    };
    // Where nothing states the gate: nodes of a static pool are there only behind it.
    if !question.setup.knows_gates {
        settings.flags.gates.static_capacity = question.node_pools.iter().any(|pool| pool.replicas.is_some());
    }
    let mut karpenter = Karpenter::new(settings, question.node_pools.clone(), types);
    if let Some(as_of) = karpenter.prices_due(now) {
        karpenter.read_prices(as_of, |name, offering| price(question, name, offering));
    }
    for (node, &id) in question.nodes.iter().zip(cluster.live_nodes()) {
        let claim = claims.get(&*node.node.name);
        let created = cluster.node(id).created;
        let initialized = cluster.node(id).initialized;
        let written = written(node, claim.copied(), initialized.then_some(created));
        karpenter.step(now, cluster, rest, Input::Adopt(id, written));
    }
    karpenter
}

/// What Karpenter has written down of a node; of one without a NodeClaim, what is as good as true.
pub fn written(node: &NodeWithPods, claim: Option<&NodeClaimObject>, initialized: Option<SimTime>) -> Written {
    Written {
        initialized: claim.and_then(|claim| claim.initialized).or(initialized),
        last_pod_event: claim.and_then(|claim| claim.last_pod_event).or_else(|| newest_pod(node)),
        drifted: claim.and_then(|claim| claim.drifted),
    }
}

/// When the newest pod of a node was created that is no daemon: at the earliest, it has come to its node then.
fn newest_pod(node: &NodeWithPods) -> Option<SimTime> {
    let pods = node.pods.iter().filter(|pod| !matches!(pod.spec.owner, OwnerKind::DaemonSet | OwnerKind::Node));
    pods.map(|pod| pod.created).filter(|&created| created < LAST).max()
}

/// The price that Karpenter reads: On-Demand as its release has it listed, where it is to be had at all.
fn price(question: &PackingQuestion, name: Symbol, offering: &Offering) -> Option<HourlyRate> {
    let here = rate_of(&question.region, name, offering.zone, offering.capacity_type)?;
    match offering.capacity_type == well_known::SPOT {
        true => Some(here),
        false => question.price_list.instance_type(name)?.karpenter_price(),
    }
}

/// What an instance costs an hour, as the region's list has it.
pub fn rate_of(region: &Region, instance_type: Symbol, zone: Symbol, capacity_type: Symbol) -> Option<HourlyRate> {
    let kind = region.instance_type(instance_type)?;
    let zone = region.zone_index(zone).filter(|&zone| kind.offered_in(zone))?;
    let price = if capacity_type == well_known::SPOT { kind.spot(zone) } else { kind.on_demand };
    price.map(|price| price.rate)
}

/// What a node costs an hour, by its labels and the region's list; `None` where these do not say.
pub fn rate_of_node(region: &Region, labels: &Labels) -> Option<HourlyRate> {
    rate_of(region, labels.get(well_known::INSTANCE_TYPE)?, labels.get(well_known::ZONE)?, capacity_type_of(labels))
}

/// How the machine of a node was bought, by its labels: `spot`, or else `on-demand`.
pub fn capacity_type_of(labels: &Labels) -> Symbol {
    let label = |key: &str| labels.get(Symbol::existing(key)?).map(Symbol::as_str);
    if is_spot_node(label) { well_known::SPOT } else { well_known::ON_DEMAND }
}

/// The labels of its instance type that a node of a NodePool lacks. Karpenter gives its nodes all of them, and looks for them when it
/// looks for drift; a dump may have left some out.
pub fn missing_labels(
    labels: &Labels,
    pools: &[NodePool],
    classes: &[NodeClass],
    region: &Region,
    release: KarpenterVersion,
) -> Labels {
    let pool = labels.get(well_known::NODEPOOL).and_then(|name| pools.iter().find(|pool| pool.name == name));
    let kind = labels.get(well_known::INSTANCE_TYPE).and_then(|kind| region.instance_type(kind));
    let (Some(pool), Some(kind)) = (pool, kind) else { return Labels::new() };
    let class = classes.iter().find(|class| class.name == pool.node_class).cloned();
    let class = class.unwrap_or_else(|| NodeClass::named(pool.node_class));
    let all = labels_of_node(&kind.facts, &class, release);
    all.iter().filter(|(key, _)| labels.get(*key).is_none()).collect()
}

/// A cluster as it is put together.
#[derive(Default)]
struct Builder {
    cluster: Cluster,
    pods: Vec<String>,
    volume_limits: Vec<Vec<(Symbol, u32)>>,
    workloads: BTreeMap<(&'static str, ObjectName), WorkloadId>,
}

impl Builder {
    fn node(
        &mut self,
        this_node: &NodeWithPods,
        question: &PackingQuestion,
        claim: Option<&NodeClaimObject>,
        now: SimTime,
    ) {
        let NodeWithPods { node, pods, volume_limits } = this_node;
        let (pools, classes) = (&question.node_pools, &question.node_classes);
        let missing = missing_labels(&node.labels, pools, classes, &question.region, question.karpenter);
        let pool = node.labels.get(well_known::NODEPOOL);
        let group = node.labels.get(well_known::EKS_NODEGROUP).unwrap_or(Symbol::new("no NodePool or node group"));
        let origin = pool.map_or(NodeOrigin::NodeGroup(group), NodeOrigin::NodePool);
        let created = node.created.or(claim.and_then(|claim| claim.created)).unwrap_or(now);
        let new = NewNode { labels: node.labels.clone(), ..NewNode::called(node.name.as_str(), origin) };
        let id = self.cluster.add_node(new, created);
        self.cluster.launch_node(id, &missing, node.capacity.clone(), node.allocatable.clone());
        let (capacity, allocatable) = (node.capacity.clone(), node.allocatable.clone());
        self.cluster.register_node(id, capacity, allocatable, &Labels::new(), &node.taints);
        self.cluster.set_ready(id, node.ready);
        for (key, value) in node.annotations.iter() {
            self.cluster.annotate_node(id, key, Some(value));
        }
        if pool.is_none() || node.labels.get(well_known::NODE_INITIALIZED) == Some(well_known::TRUE) {
            self.cluster.initialize_node(id);
        }
        if node.deleting {
            self.cluster.set_deletion_requested(id, Some(now));
        }
        self.volume_limits.push(volume_limits.clone());
        for pod in pods {
            let pod_id = self.pod(pod, now);
            self.cluster.bind_pod(pod_id, id);
            if pod.phase == PodPhase::Running {
                self.cluster.start_pod(pod_id, pod.created);
                if pod.ready {
                    self.cluster.ready_pod(pod_id, pod.created);
                }
            }
            if pod.deleting {
                self.cluster.request_pod_deletion(pod_id, now, SimDuration::from_secs(30));
            }
        }
    }

    /// The workload of this kind and name; where it is new, its pods look like this.
    fn workload(&mut self, kind: WorkloadKind, name: ObjectName, template: &Arc<PodSpec>) -> WorkloadId {
        let cluster = &mut self.cluster;
        let (selector, template) = (LabelSelector::default(), Arc::clone(template));
        let new = || cluster.add_workload(NewWorkload { name, kind, selector, template, replicas: 0 });
        *self.workloads.entry((kind.as_str(), name)).or_insert_with(new)
    }

    fn pod(&mut self, pod: &NamedPod, now: SimTime) -> PodId {
        let kind = kind_of(pod.spec.owner);
        let name = match kind {
            WorkloadKind::Pods => well_known::EMPTY,
            _ => Symbol::new(pod.workload.rsplit('/').next().unwrap_or_default()),
        };
        let workload = self.workload(kind, ObjectName { namespace: pod.namespace, name }, &pod.spec);
        let revision = self.cluster.revision_of(workload, (*pod.spec).clone());
        let id = self.cluster.create_pod(workload, revision, None, pod.created.min(now));
        self.pods.push(pod.name.clone());
        id
    }

    /// Each workload wants the pods that it has: those that a Deployment lacks are among those that wait.
    fn count_replicas(&mut self) {
        let counts: Vec<_> = self.cluster.workloads().map(|(id, workload)| (id, workload.pods.len())).collect();
        for (workload, pods) in counts {
            self.cluster.set_replicas(workload, u32::try_from(pods).unwrap_or(u32::MAX));
        }
    }
}

fn kind_of(owner: OwnerKind) -> WorkloadKind {
    match owner {
        OwnerKind::ReplicaSet | OwnerKind::Other => WorkloadKind::Deployment,
        OwnerKind::DaemonSet => WorkloadKind::DaemonSet,
        OwnerKind::StatefulSet => WorkloadKind::StatefulSet,
        OwnerKind::Job => WorkloadKind::Job,
        OwnerKind::None | OwnerKind::Node => WorkloadKind::Pods,
    }
}
