//! The cluster as Karpenter's decisions want to see it.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use super::claims::{Condition, age_limit};
use super::settings::Ties;
use super::step::Step;
use super::{daemons, node_pods_cache};
use crate::disruption::{ClusterView, EvictionCost, NodeFacts, PodBudget, PodList, PodView};
use crate::packing::{
    NamespaceView, NodePods, NodeView, PackingOptions, PackingSetup, PendingPod, PoolView, QueuedPods, TieBreak,
    Volumes,
};
use nodecast_model::cluster::{NodePhase, PodPhase};
use nodecast_model::domain::pod::PodPhase as ReportedPhase;
use nodecast_model::domain::{NodeId, PodId, PodSpec, SimTime, well_known};

/// Nodes that exist, or will because their instance is launched.
pub(super) fn known_nodes(step: &Step<'_>) -> Vec<NodeId> {
    let known = |&node: &NodeId| matches!(step.cluster.node(node).phase, NodePhase::Launched | NodePhase::Registered);
    let live = step.cluster.live_nodes();
    let mut nodes = Vec::with_capacity(live.len());
    nodes.extend(live.iter().copied().filter(known));
    nodes
}

/// How ties between topology domains are broken in this pass.
pub(super) fn ties(step: &Step<'_>) -> TieBreak {
    match step.karpenter.settings.ties {
        Ties::ByName => TieBreak::SmallestName,
        Ties::Seeded(seed) => TieBreak::Seeded { seed, pass: step.karpenter.passes },
    }
}

/// Hands over what stays the same for all questions to the packer.
pub(super) fn with_packing_setup<R>(step: &Step<'_>, ask: impl FnOnce(PackingSetup<'_>) -> R) -> R {
    let karpenter = &*step.karpenter;
    let pools: Vec<PoolView<'_>> = karpenter
        .pools
        .iter()
        .zip(karpenter.instance_types.iter())
        .map(|(pool, instance_types)| PoolView { pool, instance_types })
        .collect();
    let daemons: Vec<Arc<PodSpec>> = daemons::representatives(step);
    let namespaces: Vec<NamespaceView<'_>> =
        step.karpenter.settings.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
    ask(PackingSetup {
        karpenter: step.karpenter.settings.release,
        options: options(step),
        pools: &pools,
        daemons: &daemons,
        namespaces: &namespaces,
        volumes: Volumes::from_storage(step.outside.storage()),
        default_spread: Some(&step.karpenter.settings.default_spread)
            .filter(|spread| step.karpenter.behaviour.knows_default_spread && !spread.constraints.is_empty()),
    })
}

/// How the packer treats preferences and `minValues`, as far as the release lets its user choose.
pub(super) fn options(step: &Step<'_>) -> PackingOptions {
    let (behaviour, flags) = (step.karpenter.behaviour, &step.karpenter.settings.flags);
    let packing_options = PackingOptions { check: step.cluster.check(), ..PackingOptions::default() };
    PackingOptions {
        preferences: if behaviour.knows_preference_policy { flags.preferences } else { packing_options.preferences },
        min_values: if behaviour.knows_min_values_policy { flags.min_values } else { packing_options.min_values },
        ..packing_options
    }
}

/// Hands over the cluster as the methods of disruption see it, with the node behind each position. `pending` are the pods
/// that provisioning would take on; those of CapacityBuffers stand behind them.
pub(super) fn with_view<R>(
    step: &Step<'_>,
    now: SimTime,
    pending: &[PodId],
    ask: impl FnOnce(PackingSetup<'_>, &ClusterView<'_>, &[NodeId]) -> R,
) -> R {
    let known = known_nodes(step);
    let kept: Vec<OfNode> = known.iter().map(|&node| node_pods_cache::with_digest(step, node)).collect();
    let pods: Vec<PodsOnNode<'_>> = known.iter().map(|&node| PodsOnNode::new(step, node)).collect();
    let facts = known.iter().zip(&pods).zip(&kept);
    let nodes: Vec<NodeFacts<'_>> =
        facts.map(|((&node, pods), kept)| node_facts(step, now, node, pods, kept)).collect();
    let mut pending: Vec<PendingPod<'_>> = pending.iter().map(|&pod| pending_pod(step, pod)).collect();
    pending.extend(step.karpenter.buffers.pending());
    let allowed = step.outside.budget_statuses();
    let pod_budgets: Vec<PodBudget<'_>> = step
        .cluster
        .budgets()
        .iter()
        .zip(allowed)
        .map(|(budget, status)| PodBudget {
            namespace: budget.namespace,
            selector: budget.selector.as_ref(),
            allowed: status.disruptions_allowed,
            always_allow_unhealthy: budget.always_allow_unhealthy && step.karpenter.behaviour.knows_unhealthy_policy,
            allows_nothing: budget.rule.allows_nothing(),
        })
        .collect();
    with_packing_setup(step, |setup| {
        let view = ClusterView {
            now,
            karpenter: setup.karpenter,
            spot_to_spot: step.karpenter.settings.flags.gates.spot_to_spot
                && step.karpenter.behaviour.knows_spot_to_spot,
            pools: setup.pools,
            nodes: &nodes,
            pending: &pending,
            pod_budgets: &pod_budgets,
            protections: step.outside.protections(),
            ties: ties(step),
        };
        ask(setup, &view, &known)
    })
}

/// A pod that waits for a node.
pub(super) fn pending_pod<'c>(step: &'c Step<'_>, pod: PodId) -> PendingPod<'c> {
    PendingPod { name: step.outside.pod_name(pod), ..unnamed_pending_pod(step, pod) }
}

/// The same for those who do not ask for its name, which is far from the rest in memory.
pub(super) fn unnamed_pending_pod<'c>(step: &'c Step<'_>, pod: PodId) -> PendingPod<'c> {
    let state = step.cluster.pod(pod);
    PendingPod {
        namespace: state.namespace,
        name: "",
        spec: &state.spec,
        created: state.created,
        uid_rank: step.outside.uid_rank(pod),
    }
}

/// When a pod has started for releases that protect none for a time: the time is over for all of them.
const LONG_AGO: Option<SimTime> = Some(SimTime::from_micros(i64::MIN / 4));

/// A pod on a node.
fn pod_view<'c>(step: &'c Step<'_>, pod: PodId) -> PodView<'c> {
    PodView { name: step.outside.pod_name(pod), ..unnamed_pod_view(step, pod) }
}

/// The same for those who do not ask for its name.
pub(super) fn unnamed_pod_view<'c>(step: &'c Step<'_>, pod: PodId) -> PodView<'c> {
    let state = step.cluster.pod(pod);
    let phase = match state.phase {
        _ if state.finished => ReportedPhase::Succeeded,
        PodPhase::Running => ReportedPhase::Running,
        PodPhase::Pending | PodPhase::Starting | PodPhase::Gone => ReportedPhase::Pending,
    };
    PodView {
        namespace: state.namespace,
        name: "",
        spec: &state.spec,
        phase,
        deletion: state.deletion_ends,
        ready: state.is_ready(),
        created: state.created,
        started: if step.karpenter.behaviour.knows_timed_protection {
            state.started.map(super::claims::whole)
        } else {
            LONG_AGO
        },
        uid_rank: step.outside.uid_rank(pod),
    }
}

/// What is kept of a node's pods.
type OfNode = (NodePods, Arc<EvictionCost>);

/// The pods of a node, listed when somebody asks.
struct PodsOnNode<'c> {
    step: &'c Step<'c>,
    node: NodeId,
    pods: OnceCell<Vec<PodView<'c>>>,
}

impl<'c> PodsOnNode<'c> {
    fn new(step: &'c Step<'_>, node: NodeId) -> Self {
        Self { step, node, pods: OnceCell::new() }
    }
}

impl fmt::Debug for PodsOnNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pods of {:?}", self.node)
    }
}

impl PodList for PodsOnNode<'_> {
    fn pods(&self) -> &[PodView<'_>] {
        self.pods.get_or_init(|| pod_views(self.step, self.node))
    }

    fn name(&self, position: usize) -> &str {
        self.step.outside.pod_name(self.step.cluster.node(self.node).pods[position])
    }

    fn queued(&self, positions: &[usize]) -> Arc<QueuedPods> {
        node_pods_cache::queued(self.step, self.node, positions)
    }
}

/// The pods of a node. Names are far from the rest in memory, and nobody asks for many but for the sake of volumes.
fn pod_views<'c>(step: &'c Step<'_>, node: NodeId) -> Vec<PodView<'c>> {
    let view = |&pod: &PodId| {
        let with_volumes = !step.cluster.pod(pod).spec.volumes.is_empty();
        if with_volumes { pod_view(step, pod) } else { unnamed_pod_view(step, pod) }
    };
    step.cluster.node(node).pods.iter().map(view).collect()
}

fn node_facts<'c>(
    step: &'c Step<'_>,
    now: SimTime,
    node: NodeId,
    pods: &'c PodsOnNode<'c>,
    (bound, digest): &'c OfNode,
) -> NodeFacts<'c> {
    let state = step.cluster.node(node);
    let claim = step.karpenter.nodes.get(&node);
    let condition = Condition::new(step, now, node, claim);
    let view = view_of(step, node, condition.marked);
    NodeFacts {
        view: NodeView { summed: view.offered.then_some(bound), ..view },
        pods,
        digest,
        created: state.created,
        expire_after: claim.and_then(|claim| age_limit(step, node, claim)),
        grace_limited: claim.is_some_and(|claim| claim.template.termination_grace_period.is_some()),
        node_pool: state.labels.get(well_known::NODEPOOL),
        annotations: &state.annotations,
        queued: condition.queued,
        instance_terminating: state.phase >= NodePhase::Terminating,
        ready: state.ready,
        nominated: condition.nominated,
        buffered: step.karpenter.buffers.are_on(node),
        consolidatable: condition.consolidatable,
        drifted: condition.drifted,
    }
}

/// A node without its pods, given whether these are to go.
pub(super) fn view_of<'c>(step: &'c Step<'_>, node: NodeId, marked: bool) -> NodeView<'c> {
    let state = step.cluster.node(node);
    let managed = step.is_managed(node);
    NodeView {
        name: state.api_name(),
        labels: &state.labels,
        taints: &state.taints,
        startup_taints: &state.startup_taints,
        capacity: &state.capacity,
        allocatable: &state.allocatable,
        managed,
        initialized: state.initialized || !managed,
        registered: state.phase == NodePhase::Registered,
        offered: !marked,
        pods: &[],
        summed: None,
        volume_limits: step.outside.volume_limits(node),
    }
}
