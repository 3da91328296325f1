//! One scheduling cycle in its plain form: filters on nodes one by one, scores, totals; and the same for every node, for
//! those who want to know why.

use std::sync::Arc;

use super::cluster_view::{ClusterView, Slot};
use super::node::{NodeEntry, PlacedPod};
use super::plugins::{Plugin, Reason, Rejection, Unschedulable};
use super::shape::PodShape;
use super::topology_state::TopologyState;
use super::{PendingPod, SchedulerConfig, feasible_nodes_to_find, filters, scores};
use nodecast_model::domain::{NodeId, SimTime};

/// What the scheduler thinks of one node for a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeEvaluation {
    /// The node.
    pub node: NodeId,
    /// The refusal of the first plugin that refused, if one did.
    pub rejection: Option<Rejection>,
    /// The normalised scores, 0 to 100, of a node that passed, by plugin; plugins that leave the pod out are absent.
    pub scores: Vec<(Plugin, i64)>,
    /// The weighted sum of the scores.
    pub total: Option<i64>,
}

/// What the scheduler thinks of every node for a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evaluation {
    /// The nodes in the order in which the scheduler looks at them.
    pub nodes: Vec<NodeEvaluation>,
    /// The nodes with the highest total.
    pub best: Vec<NodeId>,
    /// Why no node takes the pod, if none does.
    pub unschedulable: Option<Unschedulable>,
}

/// Looks at every node for a pod, without sampling. Nothing is decided: this is for explanations.
pub fn evaluate(config: &SchedulerConfig, view: &ClusterView, pod: &PendingPod) -> Evaluation {
    let order = view.order();
    let mut cycle = Cycle::new(view, pod);
    if let Some(conflict) = named_nothing(view, &cycle.shape) {
        return Evaluation { nodes: Vec::new(), best: Vec::new(), unschedulable: Some(conflict) };
    }
    let named = named_slots(view, pod, &cycle.shape, &order);
    let mut search = cycle.search(named.as_ref().unwrap_or(&order), 0, 100);
    let feasible = std::mem::take(&mut search.feasible);
    let by_plugin = scores::normalised(config, view, &cycle.shape, &cycle.state, &cycle.candidates(&feasible));
    let rejection_of = |slot: Slot| search.rejected.iter().find(|entry| entry.0 == slot).map(|entry| entry.1.clone());
    let mut nodes = Vec::with_capacity(order.len());
    for &slot in &order {
        let Some(entry) = view.entry(slot) else { continue };
        let (scores, total, rejection) = match feasible.iter().position(|&other| other == slot) {
            Some(at) => {
                let scores: Vec<_> = by_plugin.iter().map(|(plugin, values)| (*plugin, values[at])).collect();
                let total = scores.iter().map(|(plugin, score)| plugin.weight() * score).sum();
                (scores, Some(total), None)
            }
            None => {
                let unseen = || Rejection::unresolvable(Reason::NotNamedByNodeAffinity);
                (Vec::new(), None, Some(rejection_of(slot).unwrap_or_else(unseen)))
            }
        };
        nodes.push(NodeEvaluation { node: entry.id, rejection, scores, total });
    }
    let highest = nodes.iter().filter_map(|node| node.total).max();
    let best = nodes.iter().filter(|node| highest.is_some() && node.total == highest).map(|node| node.node).collect();
    let unschedulable = feasible.is_empty().then(|| cycle.unschedulable(search, order.len()));
    Evaluation { nodes, best, unschedulable }
}

/// What a search through the nodes found.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Nodes that passed every filter, in the order found.
    pub(super) feasible: Vec<Slot>,
    /// Nodes that did not, with the refusal.
    pub(super) rejected: Vec<(Slot, Rejection)>,
    /// Nodes looked at.
    pub(super) examined: usize,
}

/// One pod's attempt, in its plain form: everything is counted anew.
pub(super) struct Cycle<'a> {
    pub(super) view: &'a ClusterView,
    pub(super) shape: Arc<PodShape>,
    pub(super) state: TopologyState,
    /// Pods of equal or higher priority nominated for nodes.
    nominated: Vec<(Slot, PlacedPod)>,
}

impl<'a> Cycle<'a> {
    pub(super) fn new(view: &'a ClusterView, pod: &PendingPod) -> Self {
        let shape = Arc::clone(view.shared_shape(pod.shape));
        let state = TopologyState::new(view, &shape);
        Self { view, nominated: rivals(view, pod), shape, state }
    }

    /// Filters nodes from `start` on, round and round, until enough are found.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `findNodesThatPassFilters`.
    pub(super) fn search(&mut self, nodes: &[Slot], start: usize, percentage: u8) -> Search {
        let wanted = feasible_nodes_to_find(nodes.len(), percentage);
        let mut search = Search::default();
        for turn in 0..nodes.len() {
            let slot = nodes[(start + turn) % nodes.len()];
            search.examined += 1;
            match self.check(slot) {
                Ok(()) => search.feasible.push(slot),
                Err(rejection) => search.rejected.push((slot, rejection)),
            }
            if search.feasible.len() >= wanted {
                break;
            }
        }
        search
    }

    /// Runs every filter on one node: with the pods nominated for it, if any, and without.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/runtime/framework.go`, `RunFilterPluginsWithNominatedPods`.
    pub(super) fn check(&mut self, slot: Slot) -> Result<(), Rejection> {
        let Some(entry) = self.view.entry(slot) else {
            return Err(Rejection::unresolvable(Reason::OtherNodeName));
        };
        check_with_rivals(self.view, &self.shape, &mut self.state, &self.nominated, slot, entry)?;
        check_entry(self.view, &self.shape, &self.state, slot, entry)
    }

    pub(super) fn candidates(&self, feasible: &[Slot]) -> Vec<scores::Candidate<'a>> {
        feasible.iter().filter_map(|&slot| Some((slot, self.view.entry(slot)?))).collect()
    }

    /// Sums up why no node takes the pod.
    pub(super) fn unschedulable(&self, search: Search, nodes: usize) -> Unschedulable {
        let unseen = nodes - search.examined.min(nodes);
        let mut tally = Tally::default();
        for (_, rejection) in &search.rejected {
            tally.add(&rejection.reasons, 1);
        }
        tally.sum_up(nodes, unseen)
    }
}

/// Refusals counted by reason.
#[derive(Debug, Default)]
pub(super) struct Tally {
    // There are few different reasons, and comparing them for order compares texts.
    reasons: Vec<(Reason, usize)>,
}

impl Tally {
    /// So many nodes gave these reasons.
    pub(super) fn add(&mut self, reasons: &[Reason], nodes: usize) {
        for &reason in reasons {
            match self.reasons.iter_mut().find(|entry| entry.0 == reason) {
                Some(entry) => entry.1 += nodes,
                None => self.reasons.push((reason, nodes)),
            }
        }
    }

    /// The sum. `unseen` nodes were left out because the pod names others.
    pub(super) fn sum_up(self, nodes: usize, unseen: usize) -> Unschedulable {
        let Self { mut reasons } = self;
        if unseen > 0 {
            reasons.push((Reason::NotNamedByNodeAffinity, unseen));
        }
        reasons.sort_unstable();
        let rejected_by = reasons.iter().map(|(reason, _)| reason.plugin()).collect();
        Unschedulable { nodes, reasons, rejected_by, conflicting_affinity: false }
    }
}

/// The answer if the pod's required affinity names no node that could be meant.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go`, `PreFilter`.
pub(super) fn named_nothing(view: &ClusterView, shape: &PodShape) -> Option<Unschedulable> {
    shape.named_nodes.as_ref().is_some_and(Vec::is_empty).then(|| Unschedulable {
        nodes: view.node_count(),
        reasons: Vec::new(),
        rejected_by: [Plugin::NodeAffinity].into_iter().collect(),
        conflicting_affinity: true,
    })
}

/// The nodes that the pod's required affinity names, in the order of nodes; `None` if it names none.
pub(super) fn named_slots(view: &ClusterView, pod: &PendingPod, shape: &PodShape, order: &[Slot]) -> Option<Vec<Slot>> {
    if let Some(node) = pod.pinned_to {
        return Some(view.slot(node).into_iter().collect());
    }
    let names = shape.named_nodes.as_ref()?;
    let named = |slot: &Slot| {
        view.entry(*slot).is_some_and(|entry| names.iter().any(|name| name.as_str() == &*entry.node.name))
    };
    Some(order.iter().copied().filter(named).collect())
}

/// Pods nominated for nodes that `pod` may not elbow aside: those of equal or higher priority.
pub(super) fn rivals(view: &ClusterView, pod: &PendingPod) -> Vec<(Slot, PlacedPod)> {
    let priority = view.shape_of(pod.shape).spec.priority;
    view.nominated()
        .filter(|&(other, _, shape)| other != pod.id && view.shape_of(shape).spec.priority >= priority)
        .map(|(other, slot, shape)| {
            (slot, PlacedPod { pod: other, shape, started: SimTime::FAR_FUTURE, terminating: false })
        })
        .collect()
}

/// Runs the filters on the node as if the pods nominated for it were there; passes if there are none.
pub(super) fn check_with_rivals(
    view: &ClusterView,
    shape: &PodShape,
    state: &mut TopologyState,
    rivals: &[(Slot, PlacedPod)],
    slot: Slot,
    entry: &NodeEntry,
) -> Result<(), Rejection> {
    let mut rivals = rivals.iter().filter(|rival| rival.0 == slot).peekable();
    if rivals.peek().is_none() {
        return Ok(());
    }
    let mut imagined = entry.clone();
    for (_, rival) in rivals {
        imagined.place(*rival, view.shape_of(rival.shape));
    }
    check_imagined(view, shape, state, slot, entry, &imagined)
}

/// Runs the filters on a node as it is imagined to be, leaving the counts as they were.
pub(super) fn check_imagined(
    view: &ClusterView,
    shape: &PodShape,
    state: &mut TopologyState,
    slot: Slot,
    real: &NodeEntry,
    imagined: &NodeEntry,
) -> Result<(), Rejection> {
    state.follow(view, slot, Some(imagined));
    state.settle();
    let outcome = check_entry(view, shape, state, slot, imagined);
    state.follow(view, slot, Some(real));
    state.settle();
    outcome
}

/// Runs every filter on one node.
pub(super) fn check_entry(
    view: &ClusterView,
    shape: &PodShape,
    state: &TopologyState,
    slot: Slot,
    entry: &NodeEntry,
) -> Result<(), Rejection> {
    match filters::check_node(shape, entry) {
        Err(refusal) if !state.refuses_before(&refusal) => Err(refusal),
        Ok(()) | Err(_) => Ok(state.gate(view).check(slot)?),
    }
}
