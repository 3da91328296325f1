//! The cluster as Karpenter's decisions want to see it.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use super::claims::Condition;
use super::{is_managed, kept_pods};
use crate::actors::context::Context;
use crate::actors::eviction::statuses;
use crate::actors::workload_controllers::{daemon_sets, pod_uid};
use crate::cluster::{NodePhase, PodPhase};
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::{NodeId, PodId, PodSpec, SimTime};
use crate::policy::disruption::{ClusterView, NodeFacts, PodBudget, PodList, PodView, PodsDigest};
use crate::policy::packing::{
    NamespaceView, NodePods, NodeView, PackingOptions, PackingSetup, PendingPod, PoolView, QueuedPods, TieBreak,
    Volumes,
};

/// Nodes that exist, or will because their instance is launched.
pub(super) fn known_nodes(context: &Context<'_>) -> Vec<NodeId> {
    let known = |&node: &NodeId| matches!(context.world.node(node).phase, NodePhase::Launched | NodePhase::Registered);
    let live = context.world.live_nodes();
    let mut nodes = Vec::with_capacity(live.len());
    nodes.extend(live.iter().copied().filter(known));
    nodes
}

/// How ties between topology domains are broken in this pass.
pub(super) fn ties(context: &Context<'_>) -> TieBreak {
    if context.replay.is_some() {
        TieBreak::SmallestName
    } else {
        TieBreak::Seeded { seed: context.setup.seed, pass: context.karpenter.passes }
    }
}

/// The same, unless no pod cares where others are, so that no topology has ties to break.
pub(super) fn telling_ties(context: &Context<'_>) -> Option<TieBreak> {
    context.world.has_topology().then(|| ties(context))
}

/// Hands over what stays the same for all questions to the packer.
pub(super) fn with_packing_setup<R>(context: &Context<'_>, ask: impl FnOnce(PackingSetup<'_>) -> R) -> R {
    let karpenter = &context.karpenter;
    let pools: Vec<PoolView<'_>> = karpenter
        .pools
        .iter()
        .zip(karpenter.instance_types.iter())
        .map(|(pool, instance_types)| PoolView { pool, instance_types })
        .collect();
    let daemons: Vec<Arc<PodSpec>> = daemon_sets::templates(context);
    let namespaces: Vec<NamespaceView<'_>> =
        context.setup.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
    ask(PackingSetup {
        karpenter: context.setup.versions.karpenter,
        options: PackingOptions::default(),
        pools: &pools,
        daemons: &daemons,
        namespaces: &namespaces,
        volumes: Volumes::of(context.volumes.storage()),
    })
}

/// Hands over the cluster as the methods of disruption see it, with the node behind each position. `pending` are the pods
/// that provisioning would take on.
pub(super) fn with_view<R>(
    context: &Context<'_>,
    now: SimTime,
    pending: &[PodId],
    ask: impl FnOnce(PackingSetup<'_>, &ClusterView<'_>, &[NodeId]) -> R,
) -> R {
    let known = known_nodes(context);
    let kept: Vec<OfNode> = known.iter().map(|&node| kept_pods::with_digest(context, node)).collect();
    let pods: Vec<PodsOnNode<'_>> = known.iter().map(|&node| PodsOnNode::new(context, node)).collect();
    let facts = known.iter().zip(&pods).zip(&kept);
    let nodes: Vec<NodeFacts<'_>> =
        facts.map(|((&node, pods), kept)| node_facts(context, now, node, pods, kept)).collect();
    let pending: Vec<PendingPod<'_>> = pending.iter().map(|&pod| pending_pod(context, pod)).collect();
    let allowed = statuses(context);
    let pod_budgets: Vec<PodBudget<'_>> = context
        .world
        .budgets()
        .iter()
        .zip(allowed)
        .map(|(budget, status)| PodBudget {
            namespace: budget.namespace,
            selector: budget.selector.as_ref(),
            allowed: status.disruptions_allowed,
            always_allow_unhealthy: budget.always_allow_unhealthy,
            allows_nothing: budget.rule.allows_nothing(),
        })
        .collect();
    with_packing_setup(context, |setup| {
        let view = ClusterView {
            now,
            karpenter: setup.karpenter,
            spot_to_spot: context.karpenter.settings.is_some_and(|settings| settings.gates.spot_to_spot),
            pools: setup.pools,
            nodes: &nodes,
            pending: &pending,
            pod_budgets: &pod_budgets,
            protections: &context.protections,
            ties: ties(context),
        };
        ask(setup, &view, &known)
    })
}

/// A pod that waits for a node.
pub(super) fn pending_pod<'c>(context: &'c Context<'_>, pod: PodId) -> PendingPod<'c> {
    PendingPod { name: context.world.pod_name(pod), ..unnamed_pending_pod(context, pod) }
}

/// The same for those who do not ask for its name, which is far from the rest in memory.
pub(super) fn unnamed_pending_pod<'c>(context: &'c Context<'_>, pod: PodId) -> PendingPod<'c> {
    let state = context.world.pod(pod);
    PendingPod {
        namespace: state.namespace,
        name: "",
        spec: &state.spec,
        created: state.created,
        uid_rank: pod_uid(context, pod),
    }
}

/// A pod on a node.
pub(super) fn pod_view<'c>(context: &'c Context<'_>, pod: PodId) -> PodView<'c> {
    PodView { name: context.world.pod_name(pod), ..unnamed_pod_view(context, pod) }
}

/// The same for those who do not ask for its name.
pub(super) fn unnamed_pod_view<'c>(context: &'c Context<'_>, pod: PodId) -> PodView<'c> {
    let state = context.world.pod(pod);
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
        started: state.started.map(super::claims::whole),
        uid_rank: pod_uid(context, pod),
    }
}

/// What is kept of a node's pods.
type OfNode = (NodePods, Arc<PodsDigest>);

/// The pods of a node, listed when somebody asks.
struct PodsOnNode<'c> {
    context: &'c Context<'c>,
    node: NodeId,
    pods: OnceCell<Vec<PodView<'c>>>,
}

impl<'c> PodsOnNode<'c> {
    fn new(context: &'c Context<'_>, node: NodeId) -> Self {
        Self { context, node, pods: OnceCell::new() }
    }
}

impl fmt::Debug for PodsOnNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pods of {:?}", self.node)
    }
}

impl PodList for PodsOnNode<'_> {
    fn pods(&self) -> &[PodView<'_>] {
        self.pods.get_or_init(|| pod_views(self.context, self.node))
    }

    fn queued(&self, positions: &[usize]) -> Arc<QueuedPods> {
        kept_pods::queued(self.context, self.node, positions)
    }
}

/// The pods of a node.
pub(super) fn pod_views<'c>(context: &'c Context<'_>, node: NodeId) -> Vec<PodView<'c>> {
    context.world.node(node).pods.iter().map(|&pod| pod_view(context, pod)).collect()
}

fn node_facts<'c>(
    context: &'c Context<'_>,
    now: SimTime,
    node: NodeId,
    pods: &'c PodsOnNode<'c>,
    (bound, digest): &'c OfNode,
) -> NodeFacts<'c> {
    let state = context.world.node(node);
    let claim = context.karpenter.nodes.get(&node);
    let condition = Condition::of(context, now, node, claim);
    let view = view_of(context, node, condition.marked);
    NodeFacts {
        view: NodeView { summed: view.offered.then_some(bound), ..view },
        pods,
        digest,
        created: state.created,
        expire_after: claim.and_then(|claim| claim.template.expire_after),
        grace_limited: claim.is_some_and(|claim| claim.template.termination_grace_period.is_some()),
        annotations: &state.annotations,
        queued: condition.queued,
        instance_terminating: state.phase >= NodePhase::Terminating,
        ready: state.ready,
        nominated: condition.nominated,
        consolidatable: condition.consolidatable,
        drifted: condition.drifted,
    }
}

/// A node without its pods, given whether these are to go.
pub(super) fn view_of<'c>(context: &'c Context<'_>, node: NodeId, marked: bool) -> NodeView<'c> {
    let state = context.world.node(node);
    let managed = is_managed(context, node);
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
        volume_limits: context.volumes.limits(node),
    }
}
