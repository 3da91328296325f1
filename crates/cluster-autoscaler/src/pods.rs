//! Which pods an iteration looks at: those that find no room on the nodes that are there or will come.
//!
//! Source: Cluster Autoscaler 1.36 `core/podlistprocessor/`, `simulator/scheduling/hinting_simulator.go`,
//! `core/static_autoscaler.go` (`filterOutYoungPods`), `utils/kubernetes/listers.go`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::equivalence::SimilarPods;
use super::flags::Flags;
use super::snapshot::{NodeAt, PodAt, Snapshot, SnapshotNode};
use super::view::{Deletions, PodPlace, PodTraits, PodView};
use nodecast_model::domain::durations::duration;
use nodecast_model::domain::{NodeId, PodId, PodSpec, SimTime};

/// The observed pods by what the autoscaler makes of them, as places in the list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Split {
    /// On a node, or on their way to one whose pods they evicted.
    pub placed: Vec<(usize, NodeId)>,
    /// Waiting: first those that the scheduler gave up on, then those that it has not looked at.
    pub waiting: Vec<usize>,
}

/// Sorts pods by state.
pub fn split(flags: &Flags, pods: &[PodView]) -> Split {
    let mut split = Split::default();
    let mut unprocessed = Vec::new();
    for (at, pod) in pods.iter().enumerate() {
        let allowed = &flags.allowed_scheduler_names;
        if pod.phase.is_terminal() || !(allowed.is_empty() || allowed.contains(&pod.traits.scheduler)) {
            continue;
        }
        match pod.place {
            PodPlace::Bound(node) => split.placed.push((at, node)),
            _ if pod.deleted_at.is_some() => {}
            PodPlace::Nominated(node) => split.placed.push((at, node)),
            PodPlace::Unschedulable => split.waiting.push(at),
            PodPlace::Unprocessed if flags.bypassed_scheduler_names.contains(&pod.traits.scheduler) => {
                unprocessed.push(at);
            }
            PodPlace::Unprocessed | PodPlace::Gated => {}
        }
    }
    split.waiting.append(&mut unprocessed);
    split
}

/// Nodes with pods whose deletion was asked for.
pub fn nodes_of_terminating(pods: &[PodView]) -> FxHashSet<NodeId> {
    let terminating = pods.iter().filter(|pod| pod.deleted_at.is_some());
    let node = |pod: &PodView| match pod.place {
        PodPlace::Bound(node) => Some(node),
        PodPlace::Nominated(_) | PodPlace::Unschedulable | PodPlace::Unprocessed | PodPlace::Gated => None,
    };
    terminating.filter_map(node).collect()
}

/// Whether a pod's priority is so low that it neither counts nor is helped.
pub fn is_expendable(flags: &Flags, traits: &PodTraits) -> bool {
    traits.has_priority && is_low_priority(flags, &traits.spec)
}

/// Whether the priority that a pod has is below `expendable-pods-priority-cutoff`. Pods of a cluster always have one: the API server
/// states it.
pub fn is_low_priority(flags: &Flags, spec: &PodSpec) -> bool {
    i64::from(spec.priority) < flags.expendable_pods_priority_cutoff
}

/// Where pods went in an earlier simulation, tried first in the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    now: FxHashMap<PodId, NodeId>,
    before: FxHashMap<PodId, NodeId>,
}

impl Hints {
    fn get(&self, pod: PodId) -> Option<NodeId> {
        self.now.get(&pod).or_else(|| self.before.get(&pod)).copied()
    }

    /// Where a pod found room when it was last looked at.
    pub(super) fn found(&self, pod: PodId) -> Option<NodeId> {
        self.get(pod)
    }

    pub(super) fn set(&mut self, pod: PodId, node: NodeId) {
        self.now.insert(pod, node);
    }

    /// Forgets hints that were not used since the last call.
    pub fn drop_old(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

/// Tries to place pods one after the other: on the node of the hint, else on the first that takes it. Gives back the places in
/// `pods` of those that found none; with `stop` only up to the first such.
pub fn try_to_place(
    snapshot: &mut Snapshot,
    hints: &mut Hints,
    pods: &[(PodAt, PodId)],
    accepts: &dyn Fn(NodeAt, &SnapshotNode) -> bool,
    stop: bool,
) -> Vec<usize> {
    let traits: Vec<_> = pods.iter().map(|(pod, _)| std::sync::Arc::clone(snapshot.traits(*pod))).collect();
    let mut similar = SimilarPods::default();
    let mut left = Vec::new();
    for (at, &(pod, id)) in pods.iter().enumerate() {
        let hinted = hints.get(id).and_then(|node| snapshot.find(node)).filter(|&node| {
            let shape = snapshot.shape_of(pod);
            accepts(node, snapshot.node(node)) && snapshot.passes(shape, node)
        });
        let node = match hinted {
            Some(node) => {
                snapshot.place(pod, node);
                Some(node)
            }
            None if similar.knows(&traits[at]) => None,
            None => snapshot.place_anywhere(pod, accepts),
        };
        match node {
            Some(node) => hints.set(id, snapshot.node(node).id),
            None => {
                similar.remember(&traits[at]);
                left.push(at);
                if stop {
                    break;
                }
            }
        }
    }
    left
}

/// A pod that waits for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingPod {
    /// Its place among the observed pods.
    pub observed: usize,
    /// It in the snapshot.
    pub at: PodAt,
}

/// Takes the waiting pods through the list processors: expendable ones go, pods of nodes being drained come in, those that fit
/// somewhere are placed there, and pods of DaemonSets go.
pub fn process(
    flags: &Flags,
    snapshot: &mut Snapshot,
    hints: &mut Hints,
    pods: &[PodView],
    waiting: &[usize],
    deletions: &Deletions,
) -> Vec<WaitingPod> {
    let mut listed: Vec<usize> =
        waiting.iter().copied().filter(|&at| !is_expendable(flags, &pods[at].traits)).collect();
    listed.extend(of_drained_nodes(snapshot, pods, deletions));
    // Of equal priority, in the order listed.
    listed.sort_by_key(|&at| std::cmp::Reverse(pods[at].traits.spec.priority));
    let added: Vec<(PodAt, PodId)> =
        listed.iter().map(|&at| (snapshot.add_pod(Some(at), &pods[at].traits), pods[at].id)).collect();
    let left = try_to_place(snapshot, hints, &added, &|_, _| true, false);
    hints.drop_old();
    let kept = left.into_iter().map(|at| WaitingPod { observed: listed[at], at: added[at].0 });
    kept.filter(|pod| !pods[pod.observed].traits.is_daemon()).collect()
}

/// Pods on nodes that are being drained: they will come back and need room.
fn of_drained_nodes(snapshot: &Snapshot, pods: &[PodView], deletions: &Deletions) -> Vec<usize> {
    let nodes = deletions.drained.iter().filter_map(|&node| snapshot.find(node));
    let on_nodes = nodes.flat_map(|node| snapshot.node(node).pods.iter());
    on_nodes
        .filter_map(|&pod| snapshot.observed_pod(pod))
        .filter(|&at| is_recreatable(&pods[at].traits) && pods[at].deleted_at.is_none())
        .collect()
}

/// Whether a controller would make up for the pod elsewhere.
pub fn is_recreatable(traits: &PodTraits) -> bool {
    !(traits.is_static() || traits.is_mirror() || traits.is_daemon())
}

/// Whether a pod is old enough for the autoscaler to act: `new-pod-scale-up-delay`, or the pod's own, longer delay.
pub fn is_old_enough(flags: &Flags, pod: &PodView, now: SimTime) -> bool {
    let annotation = pod.traits.annotation("cluster-autoscaler.kubernetes.io/pod-scale-up-delay");
    let duration = annotation.and_then(|text| duration(text).ok());
    let delay = duration.map_or(flags.new_pod_scale_up_delay, |duration| duration.max(flags.new_pod_scale_up_delay));
    pod.created + delay < now
}
