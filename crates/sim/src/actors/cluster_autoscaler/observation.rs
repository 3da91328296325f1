//! The cluster as the autoscaler sees it at the start of an iteration.
//!
//! Ages count from times of objects, which have whole seconds.
//!
//! Deviation: nodes that exist at the start have had their state and readiness for at least an hour.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::groups::KnownGroup;
use crate::actors::cluster_autoscaler::{AutoscalerLoop, Lists};
use crate::actors::sim::Sim;
use crate::cluster::{Change, Derived, NodePhase, PodPhase};
use crate::domain::pod::PodPhase as ReportedPhase;
use crate::domain::{Labels, NodeId, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId, well_known};
use crate::world::record::WorkloadKind;
use nodecast_cluster_autoscaler::view::{
    BudgetView, Controller, ControllerKind, DaemonSetView, Deletions, GroupView, InstanceView, Listing, NodeView,
    PodPlace, PodTraits, PodView, RestartPolicy,
};
use nodecast_cluster_autoscaler::{Flags, Observation, TO_BE_DELETED};
use nodecast_scheduler::PodVolumes;

/// How long nodes that are there from the start have been there, at least.
const BEFORE_START: SimDuration = SimDuration::from_secs(3_600);

/// What earlier iterations saw of a node.
#[derive(Clone, Debug)]
pub(super) struct KnownNode {
    name: Arc<str>,
    labels: Labels,
    /// When its object was created.
    created: SimTime,
}

/// What pods of a workload share that have one specification.
#[derive(Clone, Debug)]
pub(super) struct KnownTemplate {
    replicas: (i64, i64),
    /// They keep the specification alive, so that its address stays its own.
    traits: Arc<PodTraits>,
}

/// What an iteration sees.
#[derive(Clone, Debug)]
pub(super) struct IterationInput {
    nodes: Vec<NodeView>,
    pods: Arc<Vec<PodView>>,
    groups: Vec<GroupView>,
    daemon_sets: Vec<DaemonSetView>,
    budgets: Vec<BudgetView>,
    namespaces: Arc<Vec<(Symbol, Labels)>>,
    deletions: Deletions,
    listing: Listing,
}

impl IterationInput {
    pub(super) fn new(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, flags: &Flags) -> Self {
        let draws = sim.streams.ordinals("pod-listing");
        let listing = Listing(draws.nth(autoscaler.iterations));
        let nodes = nodes(sim, autoscaler, lists, listing);
        let (pods, daemon_sets) = (pods(sim, autoscaler, lists, flags), daemon_sets(sim, autoscaler, flags));
        let deletions = Deletions { empty: removals(autoscaler, true), drained: removals(autoscaler, false) };
        let (groups, budgets) = (groups(sim, autoscaler), budgets(sim));
        let namespaces = Arc::clone(lists.namespaces);
        Self { nodes, pods, groups, daemon_sets, budgets, namespaces, deletions, listing }
    }

    pub(super) fn observation(&self, now: SimTime) -> Observation<'_> {
        Observation {
            now,
            nodes: &self.nodes,
            pods: &self.pods,
            listing: Some(self.listing),
            groups: &self.groups,
            daemon_sets: &self.daemon_sets,
            budgets: &self.budgets,
            namespaces: &self.namespaces,
            deletions: &self.deletions,
            // Evictions are remembered for no time at all, as upstream.
            recent_evictions: &[],
        }
    }

    /// The node at a place of the observation.
    pub(super) fn node(&self, at: usize) -> NodeId {
        self.nodes[at].id
    }

    /// The same with all that is known of it.
    pub(super) fn view(&self, at: usize) -> &NodeView {
        &self.nodes[at]
    }

    /// How many nodes there are.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Whether a pod waits for room.
    pub(super) fn has_waiting_pods(&self) -> bool {
        self.pods.iter().any(|pod| matches!(pod.place, PodPlace::Unschedulable | PodPlace::Unprocessed))
    }

    /// The place of a node, if it is there.
    pub(super) fn place_of(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|view| view.id == node)
    }

    /// The place of a pod, if it waits for a node.
    pub(super) fn waiting(&self, pod: PodId) -> Option<usize> {
        let waits = |place| matches!(place, PodPlace::Unschedulable | PodPlace::Unprocessed);
        self.pods.iter().position(|view| view.id == pod && waits(view.place))
    }

    /// How many groups there are.
    pub(super) const fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The pod at a place of the observation.
    pub(super) fn pod(&self, at: usize) -> PodId {
        self.pods[at].id
    }

    /// The group at a place of the observation.
    pub(super) fn group(&self, at: usize) -> &GroupView {
        &self.groups[at]
    }
}

fn removals(autoscaler: &AutoscalerLoop, empty: bool) -> Vec<NodeId> {
    let all = autoscaler.removals.iter();
    all.filter(|(_, removal)| removal.empty == empty).map(|(&node, _)| node).collect()
}

/// The Node objects, in a drawn order: those of instances that have just ended are still there, not ready.
fn nodes(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, listing: Listing) -> Vec<NodeView> {
    let mut views = Vec::with_capacity(sim.world.live_nodes().len());
    for place in 0..sim.world.live_nodes().len() {
        let id = sim.world.live_nodes()[place];
        let phase = sim.world.node(id).phase;
        let known = autoscaler.nodes.contains_key(&id);
        if phase != NodePhase::Registered && !(known && phase == NodePhase::Terminating) {
            continue;
        }
        if !known {
            let known = first_seen(sim, id);
            autoscaler.nodes.insert(id, known);
        }
        let state = sim.world.node(id);
        let Some(known) = autoscaler.nodes.get(&id) else { continue };
        views.push(NodeView {
            id,
            name: Arc::clone(&known.name),
            group: autoscaler.groups.group_of(id),
            labels: known.labels.clone(),
            annotations: state.annotations.clone(),
            taints: state.taints.clone(),
            unschedulable: state.taints.iter().any(|taint| taint.key == well_known::TAINT_UNSCHEDULABLE),
            allocatable: state.allocatable.clone(),
            capacity: state.capacity.clone(),
            volume_limits: lists.volumes.limits(id).to_vec(),
            created: known.created,
            ready: state.ready,
            ready_since: readiness_changed(sim, id, known.created),
            suspended: false,
            // For an instance that it does not know the provider goes by the taint.
            instance_gone: phase == NodePhase::Terminating
                && state.taints.iter().any(|taint| taint.key.as_str() == TO_BE_DELETED),
        });
    }
    views.sort_by_key(|view| listing.node(view.id));
    views
}

fn first_seen(sim: &Sim<'_>, id: NodeId) -> KnownNode {
    let state = sim.world.node(id);
    let mut labels = state.labels.clone();
    // Karpenter's own, which no node of a group carries.
    labels.remove(well_known::NODE_INITIALIZED);
    let registered = sim.world.record().nodes[id.index()].registered.unwrap_or(state.created);
    let from_start = registered == SimTime::ZERO;
    let created = if from_start { state.created.min(SimTime::ZERO - BEFORE_START) } else { registered };
    KnownNode { name: Arc::from(state.name.as_str()), labels, created: sim.whole_seconds(created) }
}

/// When the node became Ready, or stopped being so, given when its object was created.
fn readiness_changed(sim: &Sim<'_>, id: NodeId, created: SimTime) -> SimTime {
    let facts = &sim.world.record().nodes[id.index()];
    let changed = match (sim.world.node(id).ready, facts.not_ready.last()) {
        (true, Some((_, Some(again)))) => Some(*again),
        (true, _) => facts.ready.filter(|&first| first > SimTime::ZERO),
        (false, Some((down, None))) => Some(*down),
        (false, _) => facts.ready.and(facts.terminating),
    };
    changed.map_or(created, |changed| sim.whole_seconds(changed))
}

/// The pods in order of creation. Kept from one iteration to the next, because most pods stay what they are: to look at thirty thousand of them
/// takes longer than all else.
fn pods(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, flags: &Flags) -> Arc<Vec<PodView>> {
    let mut views = std::mem::take(&mut autoscaler.views);
    if flags.min_replica_count > 0 {
        // A pod changes with its siblings then.
        views = Derived::default();
    }
    views.catch_up_with(
        &mut (sim, &mut *autoscaler),
        |(sim, _)| &sim.world,
        |(sim, autoscaler)| Arc::new(all_pods(sim, autoscaler, lists, flags)),
        |pods, (sim, autoscaler), changes| follow(sim, autoscaler, lists, flags, Arc::make_mut(pods), changes),
    );
    let pods = Arc::clone(views.value());
    autoscaler.views = views;
    pods
}

fn all_pods(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, flags: &Flags) -> Vec<PodView> {
    let mut pods: Vec<PodId> = sim.world.workloads().flat_map(|(_, workload)| &workload.pods).copied().collect();
    pods.sort_unstable();
    pods.into_iter().map(|pod| pod_view(sim, autoscaler, lists, pod, flags)).collect()
}

/// Looks again at those pods that something happened to, and at those whose places others than the cluster decide on.
fn follow(
    sim: &Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    flags: &Flags,
    pods: &mut Vec<PodView>,
    changes: &[Change],
) {
    let touched = changes.iter().filter_map(|change| match *change {
        Change::Pod(pod) | Change::Placement(pod) => Some(pod),
        Change::Node(_) | Change::Workload(_) | Change::Budgets => None,
    });
    let touched: Vec<PodId> = touched.collect::<BTreeSet<PodId>>().into_iter().collect();
    let last = pods.last().map(|pod| pod.id);
    let (known, new) = touched.split_at(touched.partition_point(|&pod| last.is_some_and(|last| pod <= last)));
    let mut known = known.iter().peekable();
    pods.retain_mut(|view| {
        while known.next_if(|&&pod| pod < view.id).is_some() {}
        let touched = known.next_if(|&&pod| pod == view.id).is_some();
        if touched && is_gone(sim, view.id) {
            return false;
        }
        if touched || !matches!(view.place, PodPlace::Bound(_)) || !view.traits.spec.volumes.is_empty() {
            *view = pod_view(sim, autoscaler, lists, view.id, flags);
        }
        true
    });
    let new: Vec<PodId> = new.iter().copied().filter(|&pod| !is_gone(sim, pod)).collect();
    pods.extend(new.into_iter().map(|pod| pod_view(sim, autoscaler, lists, pod, flags)));
}

fn is_gone(sim: &Sim<'_>, pod: PodId) -> bool {
    sim.world.pod(pod).phase == PodPhase::Gone
}

fn daemon_sets(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, flags: &Flags) -> Vec<DaemonSetView> {
    let all = sim.world.daemon_sets();
    let all: Vec<_> = all.map(|(id, group)| (id, group.name.name, Arc::clone(&group.template))).collect();
    let view = |(id, name, template)| DaemonSetView {
        name,
        pods: traits_of(sim, autoscaler, id, (&template, PodVolumes::default()), flags),
    };
    all.into_iter().map(view).collect()
}

/// A pod as an iteration sees it.
pub(super) fn pod_view(
    sim: &Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    id: PodId,
    flags: &Flags,
) -> PodView {
    let state = sim.world.pod(id);
    let (workload, spec) = (state.workload, Arc::clone(&state.spec));
    let volumes = lists.volumes.of_pod(sim, id);
    let traits = traits_of(sim, autoscaler, workload, (&spec, volumes), flags);
    view(sim, lists, id, traits)
}

fn view(sim: &Sim<'_>, lists: Lists<'_>, id: PodId, traits: Arc<PodTraits>) -> PodView {
    let state = sim.world.pod(id);
    // A daemon's pod that waits takes room on its own node and nowhere else.
    let promised = state.pinned.or_else(|| lists.scheduler.nominated_node(id));
    let place = match (state.node, promised) {
        (Some(node), _) => PodPlace::Bound(node),
        (None, Some(node)) => PodPlace::Nominated(node),
        // No scheduler is asked.
        (None, None) if state.spec.node_name.is_some() => PodPlace::Gated,
        (None, None) if state.unschedulable => PodPlace::Unschedulable,
        (None, None) => PodPlace::Unprocessed,
    };
    let phase = match state.phase {
        _ if state.finished => ReportedPhase::Succeeded,
        PodPhase::Running => ReportedPhase::Running,
        PodPhase::Pending | PodPhase::Starting | PodPhase::Gone => ReportedPhase::Pending,
    };
    PodView {
        id,
        traits,
        created: sim.whole_seconds(state.created),
        phase,
        deleted_at: state.deletion_requested,
        place,
    }
}

/// What the workload's pods of one specification share whose volumes ask for the same; the same value as before while
/// nothing about it changed.
fn traits_of(
    sim: &Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    id: WorkloadId,
    (spec, volumes): (&Arc<PodSpec>, PodVolumes),
    flags: &Flags,
) -> Arc<PodTraits> {
    let workload = sim.world.workload(id);
    // Only with a least number of replicas does their number matter.
    let counts = flags.min_replica_count > 0;
    let replicas = if counts { (i64::from(workload.replicas), workload.pods.len() as i64) } else { (0, 0) };
    let key = (id, Arc::as_ptr(spec).addr(), volumes);
    if let Some(known) = autoscaler.pods.get(&key)
        && known.replicas == replicas
    {
        return Arc::clone(&known.traits);
    }
    let kind = match workload.kind {
        WorkloadKind::Deployment => Some(ControllerKind::ReplicaSet),
        WorkloadKind::DaemonSet => Some(ControllerKind::DaemonSet),
        WorkloadKind::StatefulSet => Some(ControllerKind::StatefulSet),
        WorkloadKind::ScaledJob | WorkloadKind::Job | WorkloadKind::CronJob => Some(ControllerKind::Job),
        WorkloadKind::Pods => None,
    };
    let controller = kind.map(|kind| Controller {
        kind,
        name: workload.name.name,
        exists: true,
        replicas: replicas.0,
        current_replicas: replicas.1,
    });
    let mut traits = PodTraits::new(workload.name.namespace, Arc::clone(spec), controller);
    traits.local_volumes.clone_from(&spec.local_volumes);
    traits.volumes.clone_from(&key.2);
    if kind == Some(ControllerKind::Job) {
        traits.restart_policy = RestartPolicy::Never;
    }
    let traits = Arc::new(traits);
    autoscaler.pods.insert(key, KnownTemplate { replicas, traits: Arc::clone(&traits) });
    traits
}

/// The disruption budgets with what they allow now.
pub(super) fn budgets(sim: &Sim<'_>) -> Vec<BudgetView> {
    let all = sim.budgets.budget_states(&sim.world).into_iter();
    all.map(|budget| BudgetView {
        namespace: budget.namespace,
        selector: budget.selector,
        disruptions_allowed: budget.disruptions_allowed,
    })
    .collect()
}

/// The groups in order of name, as the provider knows them.
fn groups(sim: &Sim<'_>, autoscaler: &AutoscalerLoop) -> Vec<GroupView> {
    autoscaler.groups.groups.iter().map(|known| group(sim, known)).collect()
}

fn group(sim: &Sim<'_>, known: &KnownGroup) -> GroupView {
    let instances = known.remembered.iter().map(|instance| InstanceView {
        id: Arc::clone(&instance.name),
        // A node that has been seen is not waited for again, even if it is gone.
        node: instance
            .instance
            .map(|id| sim.ec2.instance(id).node)
            .filter(|&node| sim.world.node(node).phase >= NodePhase::Registered),
        deleting: instance.terminating,
        error: instance.error,
    });
    GroupView {
        id: known.name,
        auto_scaling_group: known.auto_scaling_group,
        min: known.limits.0,
        max: known.limits.1,
        target: known.desired,
        template: known.template.clone(),
        instances: instances.collect(),
        options: known.options.clone(),
        price_per_hour: None,
        exists: true,
    }
}
