//! A small cluster to ask the methods of disruption about: nodes of a made-up provider with pods on them, everything that
//! stands for or against their removal set by hand.

use std::sync::Arc;

use nodecast::control_plane::eviction::Protections;
use nodecast::domain::node_pool::{Budget, DisruptionReason, NodePool};
use nodecast::domain::pod::{IntOrPercent, PodDisruptionBudget, PodPhase};
use nodecast::domain::requirements::Requirement;
use nodecast::domain::volumes::{PersistentVolume, PersistentVolumeClaim, Storage};
use nodecast::domain::{
    HourlyRate, KarpenterVersion, Labels, PodSpec, Resources, SimDuration, SimTime, Symbol, Taint, well_known,
};
use nodecast::scenario::manifests::{node_pool_from_json, pod_disruption_budget_from_json, pod_from_json};
use nodecast_karpenter::controller_time::SearchWork;
use nodecast_karpenter::disruption::{
    Blocker, Candidate, ClusterView, Command, Decision, Evaluation, EvictionCost, Memory, Method, MethodResult,
    NodeFacts, PodBudget, PodList, PodView, Rejection, WhatIf, candidates, drift, eligible, emptiness, evaluate,
    multi_node, single_node, validate,
};
use nodecast_karpenter::instance_types::InstanceType;
use nodecast_karpenter::packing::{
    NodeView, Packer, PackingOptions, PackingSetup, PendingPod, PlannedClaim, PoolView, TieBreak, Volumes,
};
use serde_json::{Value, json};

#[path = "../../../crates/karpenter/tests/karpenter/packing/types.rs"]
mod types;

pub use types::{ZONES, instance_type};

/// The instant of every question; nodes and pods are ten hours old then.
pub fn now() -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(36_000)
}

/// So many seconds before [`now`].
pub fn ago(seconds: i64) -> SimTime {
    now() - SimDuration::from_secs(seconds)
}

/// A pod with its status.
#[derive(Clone, Debug)]
pub struct Pod {
    pub namespace: &'static str,
    pub name: String,
    pub spec: Arc<PodSpec>,
    pub phase: PodPhase,
    pub deletion: Option<SimTime>,
    pub ready: bool,
    pub started: Option<SimTime>,
}

/// A Running and Ready pod of a ReplicaSet in the namespace `default`. `spec` is that of a manifest, with `cpu`, `labels`,
/// `annotations` and `owner` as shorthands.
pub fn pod(name: &str, mut spec: Value) -> Pod {
    let mut take = |key: &str| spec.as_object_mut().and_then(|fields| fields.remove(key)).unwrap_or(Value::Null);
    let (labels, annotations, owner, cpu) = (take("labels"), take("annotations"), take("owner"), take("cpu"));
    let requests = if cpu.is_null() { json!({}) } else { json!({"cpu": cpu}) };
    spec["containers"] = json!([{"name": "c", "resources": {"requests": requests}}]);
    let owners = match owner.as_str().unwrap_or("ReplicaSet") {
        "none" => json!([]),
        kind => json!([{"kind": kind, "controller": true}]),
    };
    let metadata = json!({"name": name, "labels": labels, "annotations": annotations, "ownerReferences": owners});
    let read = pod_from_json(&json!({"metadata": metadata, "spec": spec})).unwrap_or_else(|error| panic!("{error}"));
    Pod {
        namespace: "default",
        name: name.to_owned(),
        spec: Arc::new(read.spec),
        phase: PodPhase::Running,
        deletion: None,
        ready: true,
        started: Some(SimTime::ZERO),
    }
}

/// A pod that asks for CPU and nothing else.
pub fn plain(name: &str, cpu: &str) -> Pod {
    pod(name, json!({"cpu": cpu}))
}

/// A pod with `karpenter.sh/do-not-disrupt`.
pub fn protected(value: &str) -> Pod {
    pod("protected", json!({"cpu": "100m", "annotations": {"karpenter.sh/do-not-disrupt": value}}))
}

/// A node with everything that a method looks at.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Vec<Taint>,
    pub capacity: Resources,
    pub allocatable: Resources,
    pub managed: bool,
    pub registered: bool,
    pub initialized: bool,
    pub marked: bool,
    pub created: SimTime,
    pub expire_after: Option<SimDuration>,
    pub grace_limited: bool,
    pub queued: bool,
    pub instance_terminating: bool,
    pub ready: bool,
    pub nominated: bool,
    pub consolidatable: bool,
    pub drifted: Option<SimTime>,
    pub pods: Vec<Pod>,
}

/// A cluster.
#[derive(Clone, Debug)]
pub struct Lab {
    pub karpenter: KarpenterVersion,
    pub spot_to_spot: bool,
    pub options: PackingOptions,
    pub types: Vec<InstanceType>,
    /// Pools, each with instance types of its own if it has any.
    pub pools: Vec<(NodePool, Option<Vec<InstanceType>>)>,
    pub nodes: Vec<Node>,
    pub pending: Vec<Pod>,
    pub budgets: Vec<(PodDisruptionBudget, i64)>,
    pub claims: Vec<PersistentVolumeClaim>,
    pub volumes: Vec<PersistentVolume>,
}

/// A pool under which everything may be disrupted at once: any type, zone and capacity type, nodes never expire.
pub fn free_pool(name: &str) -> NodePool {
    let mut pool = NodePool::named(name);
    pool.expire_after = None;
    pool.disruption.budgets = vec![nodes_budget(IntOrPercent::Percent(100))];
    pool
}

/// A pool whose nodes must meet `requirements`, free in everything else.
pub fn demanding_pool(name: &str, requirements: Value) -> NodePool {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let spec = json!({"template": {"spec": {"nodeClassRef": class, "requirements": requirements}}});
    let read = node_pool_from_json(&json!({"metadata": {"name": name}, "spec": spec}));
    NodePool { requirements: read.unwrap_or_else(|error| panic!("{error}")).requirements, ..free_pool(name) }
}

/// A budget that always applies.
pub fn nodes_budget(nodes: IntOrPercent) -> Budget {
    Budget { nodes, reasons: None, schedule: None, duration: None }
}

impl Lab {
    /// The pool `default`, types `m-2`, `m-4`, `m-8` and `m-16`, no nodes.
    pub fn new() -> Self {
        Self {
            karpenter: KarpenterVersion::V1_13,
            spot_to_spot: false,
            options: PackingOptions::default(),
            types: [2, 4, 8, 16].map(|cpu| instance_type(&format!("m-{cpu}"), cpu, cpu * 4, "amd64")).into(),
            pools: vec![(free_pool("default"), None)],
            nodes: Vec::new(),
            pending: Vec::new(),
            budgets: Vec::new(),
            claims: Vec::new(),
            volumes: Vec::new(),
        }
    }

    /// Types of equal size named `t-01`, `t-02`, ..., each a little dearer than the one before.
    pub fn ladder(count: usize) -> Self {
        let rung = |number: usize| {
            let mut instance_type = instance_type(&format!("t-{number:02}"), 4, 16, "amd64");
            for offering in &mut instance_type.offerings {
                offering.price = HourlyRate::from_nanos(number as i64 * 1_000_000);
            }
            instance_type
        };
        Self { types: (1..=count).map(rung).collect(), ..Self::new() }
    }

    /// The same with On-Demand nodes alone.
    pub fn on_demand() -> Self {
        let mut lab = Self::new();
        lab.pool().requirements = on_demand();
        lab
    }

    /// The pool `default`.
    pub fn pool(&mut self) -> &mut NodePool {
        &mut self.pools[0].0
    }

    /// Lets so many nodes of the pool `default` be away.
    pub fn allow(&mut self, nodes: i64) -> &mut Self {
        self.pool().disruption.budgets = vec![nodes_budget(IntOrPercent::Count(nodes))];
        self
    }

    /// Adds an On-Demand node of the pool `default` in the first zone.
    pub fn node(&mut self, name: &str, kind: &str, pods: Vec<Pod>) -> &mut Node {
        self.node_of("default", name, kind, "on-demand", pods)
    }

    /// Adds a Spot node of the pool `default` in the first zone.
    pub fn spot(&mut self, name: &str, kind: &str, pods: Vec<Pod>) -> &mut Node {
        self.node_of("default", name, kind, "spot", pods)
    }

    /// Adds a node.
    pub fn node_of(&mut self, pool: &str, name: &str, kind: &str, bought: &str, pods: Vec<Pod>) -> &mut Node {
        let this_kind = self
            .types
            .iter()
            .find(|this_kind| this_kind.name.as_str() == kind)
            .unwrap_or_else(|| panic!("no type {kind}"));
        let labels = Labels::new()
            .with(well_known::HOSTNAME, name)
            .with(well_known::ZONE, ZONES[0])
            .with(well_known::CAPACITY_TYPE, bought)
            .with(well_known::NODEPOOL, pool)
            .with(well_known::ARCH, "amd64")
            .with(well_known::OS, "linux")
            .with(well_known::INSTANCE_TYPE, kind);
        self.nodes.push(Node {
            name: name.to_owned(),
            labels,
            annotations: Labels::new(),
            taints: Vec::new(),
            capacity: this_kind.capacity.clone(),
            allocatable: this_kind.allocatable.clone(),
            managed: true,
            registered: true,
            initialized: true,
            marked: false,
            created: SimTime::ZERO,
            expire_after: None,
            grace_limited: false,
            queued: false,
            instance_terminating: false,
            ready: true,
            nominated: false,
            consolidatable: true,
            drifted: None,
            pods,
        });
        let last = self.nodes.len() - 1;
        &mut self.nodes[last]
    }

    /// Adds a node that Karpenter did not launch.
    pub fn unmanaged(&mut self, name: &str, kind: &str) -> &mut Node {
        let node = self.node(name, kind, Vec::new());
        node.managed = false;
        node.labels.remove(well_known::NODEPOOL);
        node
    }

    /// Adds a PodDisruptionBudget over the pods with the label `app`, with a status.
    pub fn budget(&mut self, app: &str, spec: Value, allowed: i64) -> &mut PodDisruptionBudget {
        let mut spec = spec;
        spec["selector"] = json!({"matchLabels": {"app": app}});
        let manifest = json!({"metadata": {"name": format!("budget-{}", self.budgets.len())}, "spec": spec});
        let read = pod_disruption_budget_from_json(&manifest).unwrap_or_else(|error| panic!("{error}"));
        self.budgets.push((read, allowed));
        let last = self.budgets.len() - 1;
        &mut self.budgets[last].0
    }

    /// Hands the cluster over as the methods want it.
    pub fn ask<R>(&self, question: impl FnOnce(&mut Packer<'_>, &ClusterView<'_>) -> R) -> R {
        let pools: Vec<PoolView<'_>> = self
            .pools
            .iter()
            .map(|(pool, types)| PoolView { pool, instance_types: types.as_ref().unwrap_or(&self.types) })
            .collect();
        let pods: Vec<Vec<PodView<'_>>> =
            self.nodes.iter().map(|node| node.pods.iter().enumerate().map(pod_view).collect()).collect();
        let digests: Vec<EvictionCost> = pods.iter().map(|pods| EvictionCost::from_pods(pods)).collect();
        let nodes = self.nodes.iter().zip(&pods).zip(&digests);
        let nodes: Vec<NodeFacts<'_>> = nodes.map(|((node, pods), digest)| facts(node, pods, digest)).collect();
        let pending: Vec<PendingPod<'_>> = self.pending.iter().enumerate().map(pending_pod).collect();
        let pod_budgets: Vec<PodBudget<'_>> = self.budgets.iter().map(pod_budget).collect();
        let view = ClusterView {
            now: now(),
            karpenter: self.karpenter,
            spot_to_spot: self.spot_to_spot,
            pools: &pools,
            nodes: &nodes,
            pending: &pending,
            pod_budgets: &pod_budgets,
            protections: &Protections::default(),
            ties: TieBreak::SmallestName,
        };
        let storage = Storage::new(self.claims.iter().copied(), self.volumes.iter().cloned(), Vec::new());
        let setup = PackingSetup {
            karpenter: self.karpenter,
            options: self.options,
            pools: &pools,
            daemons: &[],
            namespaces: &[],
            volumes: Volumes::from_storage(&storage),
            default_spread: None,
        };
        question(&mut Packer::new(setup), &view)
    }

    fn position(&self, name: &str) -> usize {
        self.nodes.iter().position(|node| node.name == name).unwrap_or_else(|| panic!("no node {name}"))
    }

    /// The node as a candidate of the method, or everything against it.
    pub fn candidate(&self, node: &str, method: Method) -> Result<Candidate, Vec<Blocker>> {
        self.ask(|_, view| eligible(view, self.position(node), method))
    }

    /// Whether the method may take the node.
    pub fn may(&self, node: &str, method: Method) -> bool {
        self.candidate(node, method).is_ok()
    }

    /// The method's candidates in its order.
    pub fn order(&self, method: Method) -> Vec<String> {
        self.ask(|_, view| {
            candidates(view, method).iter().map(|candidate| self.nodes[candidate.node].name.clone()).collect()
        })
    }

    /// How many more nodes of the pool `default` may be disrupted for a reason.
    pub fn allowance(&self, reason: DisruptionReason) -> i64 {
        self.ask(|_, view| view.allowances(reason, 0)[0].0)
    }

    /// What consolidation of the nodes comes to.
    pub fn evaluation(&self, nodes: &[&str]) -> Evaluation {
        self.ask(|packer, view| {
            let all = candidates(view, Method::SingleNode);
            let matches = |name: &&str| all.iter().find(|lab| lab.node == self.position(name));
            let taken: Vec<&Candidate> = nodes.iter().filter_map(matches).collect();
            assert_eq!(taken.len(), nodes.len(), "a node is no candidate");
            evaluate(&mut WhatIf::new(packer, view), &taken)
        })
    }

    /// `delete`, `replace: TYPES`, or `nothing`.
    pub fn decision(&self, nodes: &[&str]) -> String {
        match self.evaluation(nodes).decision {
            Decision::NoOp(_) => "nothing".to_owned(),
            Decision::Delete => "delete".to_owned(),
            Decision::Replace(claim) => format!("replace: {}", types(&claim)),
        }
    }

    /// The claim that would replace the node.
    pub fn replacement(&self, node: &str) -> PlannedClaim {
        match self.evaluation(&[node]).decision {
            Decision::Replace(claim) => *claim,
            other => panic!("{node} is not replaced: {other:?}"),
        }
    }

    /// What the method finds.
    pub fn found(&self, method: Method) -> MethodResult {
        self.found_within(method, None, &mut Memory::default())
    }

    /// What the method finds with so many simulations.
    pub fn found_within(&self, method: Method, evaluations: Option<usize>, memory: &mut Memory) -> MethodResult {
        self.ask(|packer, view| {
            let all = candidates(view, method);
            let mut allowances = view.allowances(method.reason(), 0);
            let mut what_if = WhatIf::new(packer, view);
            match method {
                Method::Emptiness | Method::EmptyConsolidation => emptiness(&all, &mut allowances),
                Method::MultiNode => {
                    // The one during which the time ends is lost.
                    let over = |work: SearchWork| evaluations.is_some_and(|most| work.simulations > most as u64);
                    multi_node(&mut what_if, &all, &mut allowances, Some(&over))
                }
                Method::SingleNode => {
                    let over = |work: SearchWork| evaluations.is_some_and(|most| work.simulations >= most as u64);
                    single_node(&mut what_if, &all, &allowances, memory, Some(&over))
                }
                Method::Expiration | Method::Drift | Method::StaticDrift => {
                    drift(&mut what_if, &all, &allowances).0.map_or(MethodResult::Nothing, MethodResult::Command)
                }
            }
        })
    }

    /// What the method finds in words: `nothing`, `not now`, or the nodes and the types of their replacements.
    pub fn told(&self, method: Method) -> String {
        self.words(&self.found(method))
    }

    pub fn words(&self, found: &MethodResult) -> String {
        match found {
            MethodResult::Nothing => "nothing".to_owned(),
            MethodResult::NotNow => "not now".to_owned(),
            MethodResult::Command(command) => {
                let nodes: Vec<&str> = command.nodes.iter().map(|&node| self.nodes[node].name.as_str()).collect();
                let made: Vec<String> = command.replacements.iter().map(types).collect();
                let by = if made.is_empty() { String::new() } else { format!(" by {}", made.join(" and ")) };
                format!("{}{by}", nodes.join(" "))
            }
        }
    }

    /// The command that the method finds.
    pub fn command(&self, method: Method) -> Command {
        match self.found(method) {
            MethodResult::Command(command) => command,
            other => panic!("no command but {other:?}"),
        }
    }

    /// Whether a command that the method has proposed may go ahead in this cluster.
    pub fn validation(&self, method: Method, command: &Command) -> Result<(), Rejection> {
        self.ask(|packer, view| {
            let fresh = candidates(view, method);
            let mut allowances = view.allowances(method.reason(), 0);
            validate(&mut WhatIf::new(packer, view), command, &fresh, &mut allowances)
        })
    }

    /// Sets the price of a type's offerings of a kind in all zones, in nano-units.
    pub fn reprice(&mut self, kind: &str, bought: &str, nanos: i64) {
        for kind in self.types.iter_mut().filter(|this_kind| this_kind.name.as_str() == kind) {
            for offering in kind.offerings.iter_mut().filter(|offering| offering.capacity_type.as_str() == bought) {
                offering.price = HourlyRate::from_nanos(nanos);
            }
        }
    }
}

/// The instance types of a claim, cheapest first.
fn types(claim: &PlannedClaim) -> String {
    claim.instance_types.iter().map(|instance_type| instance_type.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// What a claim requires of a label.
pub fn requires(claim: &PlannedClaim, key: Symbol) -> Vec<&'static str> {
    let requirement = claim.requirements.get(key);
    requirement.map(|requirement| requirement.values.iter().map(|value| value.as_str()).collect()).unwrap_or_default()
}

/// The methods of consolidation.
pub const CONSOLIDATION: [Method; 2] = [Method::MultiNode, Method::SingleNode];

pub fn pod_view((rank, pod): (usize, &Pod)) -> PodView<'_> {
    PodView {
        namespace: Symbol::new(pod.namespace),
        name: &pod.name,
        spec: &pod.spec,
        phase: pod.phase,
        deletion: pod.deletion,
        ready: pod.ready,
        created: SimTime::ZERO,
        started: pod.started,
        uid_rank: rank as u64,
    }
}

fn pending_pod((rank, pod): (usize, &Pod)) -> PendingPod<'_> {
    PendingPod {
        namespace: Symbol::new(pod.namespace),
        name: &pod.name,
        spec: &pod.spec,
        created: SimTime::ZERO,
        uid_rank: 1_000 + rank as u64,
    }
}

fn pod_budget((budget, allowed): &(PodDisruptionBudget, i64)) -> PodBudget<'_> {
    PodBudget {
        namespace: budget.namespace,
        selector: budget.selector.as_ref(),
        allowed: *allowed,
        always_allow_unhealthy: budget.always_allow_unhealthy,
        allows_nothing: budget.rule.allows_nothing(),
    }
}

fn facts<'l>(node: &'l Node, pods: &'l dyn PodList, digest: &'l EvictionCost) -> NodeFacts<'l> {
    NodeFacts {
        view: NodeView {
            name: &node.name,
            labels: &node.labels,
            taints: &node.taints,
            startup_taints: &[],
            capacity: &node.capacity,
            allocatable: &node.allocatable,
            managed: node.managed,
            initialized: node.initialized,
            registered: node.registered,
            offered: !node.marked,
            pods: &[],
            summed: None,
            volume_limits: &[],
        },
        pods,
        digest,
        created: node.created,
        expire_after: node.expire_after,
        grace_limited: node.grace_limited,
        node_pool: node.labels.get(well_known::NODEPOOL),
        annotations: &node.annotations,
        queued: node.queued,
        instance_terminating: node.instance_terminating,
        ready: node.ready,
        nominated: node.nominated,
        buffered: false,
        consolidatable: node.consolidatable,
        drifted: node.drifted,
    }
}

/// The requirement that nodes are On-Demand.
pub fn on_demand() -> Vec<Requirement> {
    vec![Requirement::equals(well_known::CAPACITY_TYPE, well_known::ON_DEMAND)]
}
