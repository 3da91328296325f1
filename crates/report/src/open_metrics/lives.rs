//! What the record tells about pods and nodes, as metrics count it.

use std::collections::BTreeMap;

use super::exposition::{Labels, Level};
use crate::domain::{NodeId, PodId, ResourceName, Resources, SimDuration, SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::{EventKind, NodeFacts, NodeOrigin, PodFacts, Sample, WorkloadFacts};

/// For so long an object that has ended by itself is shown.
pub(super) const FINISHED_STAYS: SimDuration = SimDuration::from_secs(600);

/// What pods and nodes went through, gathered once.
pub(super) struct Lives<'o> {
    pub outcome: &'o Outcome,
    /// When a pod's containers had ended, and whether they failed.
    finished: BTreeMap<PodId, (SimTime, bool)>,
    /// For each node that was lost or not ready for a while: when it was so and when no longer.
    troubled: BTreeMap<NodeId, Vec<(SimTime, EventKind)>>,
    /// For each pod whose containers were killed: when they ended, ran and were Ready from the first time on.
    restarted: BTreeMap<PodId, Vec<(SimTime, EventKind)>>,
    /// When workloads were deleted.
    deleted: BTreeMap<WorkloadId, SimTime>,
}

impl<'o> Lives<'o> {
    pub(super) fn from_outcome(outcome: &'o Outcome) -> Self {
        let mut finished = BTreeMap::new();
        let mut restarted: BTreeMap<PodId, Vec<(SimTime, EventKind)>> = BTreeMap::new();
        let mut troubled: BTreeMap<NodeId, Vec<(SimTime, EventKind)>> = BTreeMap::new();
        for event in &outcome.record.events {
            match (event.kind, event.pod, event.node) {
                (EventKind::PodFinished | EventKind::PodSucceeded | EventKind::PodFailed, Some(pod), _) => {
                    let ended = finished.entry(pod).or_insert((event.at, false));
                    ended.1 |= event.kind == EventKind::PodFailed;
                }
                (EventKind::NodeNotReady | EventKind::NodeUnreachable | EventKind::NodeReachable, _, Some(node)) => {
                    troubled.entry(node).or_default().push((event.at, event.kind));
                }
                (EventKind::PodKilled, Some(pod), _) => restarted.entry(pod).or_default().push((event.at, event.kind)),
                (EventKind::PodStarted | EventKind::PodReady, Some(pod), _) => {
                    if let Some(restarted) = restarted.get_mut(&pod) {
                        restarted.push((event.at, event.kind));
                    }
                }
                _ => {}
            }
        }
        let deletions = outcome
            .record
            .replica_changes
            .iter()
            .filter(|replica_change| replica_change.kind == EventKind::ObjectDeleted);
        let deleted = deletions.map(|deletion| (deletion.workload, deletion.at)).collect();
        Self { outcome, finished, troubled, restarted, deleted }
    }

    /// The pods with their ids.
    pub(super) fn pods(&self) -> impl Iterator<Item = (PodId, PodFacts)> + use<'o> {
        self.outcome.record.pods.iter().enumerate().map(|(index, pod)| (PodId::from_index(index), pod))
    }

    /// The nodes with their ids.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeId, &'o NodeFacts)> + use<'o> {
        self.outcome.record.nodes.iter().enumerate().map(|(index, node)| (NodeId::from_index(index), node))
    }

    /// The last sample of the cluster up to an instant.
    pub(super) fn sample(&self, at: SimTime) -> Option<&'o Sample> {
        let samples = &self.outcome.record.samples;
        samples.get(samples.partition_point(|sample| sample.at <= at).checked_sub(1)?)
    }

    /// The node of a pod.
    pub(super) fn node_of(&self, pod: &PodFacts) -> Option<&'o NodeFacts> {
        self.outcome.record.nodes.get(pod.node?.index())
    }

    /// The workload of a pod.
    pub(super) fn workload_of(&self, pod: &PodFacts) -> Option<&'o WorkloadFacts> {
        self.outcome.record.workloads.get(pod.workload.index())
    }

    /// The namespace and name of a workload as labels, the latter called `key`.
    pub(super) fn workload_labels(&self, workload: WorkloadId, key: &'static str) -> Labels {
        let name = self.outcome.record.workloads.get(workload.index()).map(|facts| facts.name);
        name.map_or_else(Vec::new, |name| vec![("namespace", name.namespace.to_string()), (key, name.name.to_string())])
    }

    /// When a pod's containers had ended, and whether they failed.
    pub(super) fn finished(&self, id: PodId) -> Option<(SimTime, bool)> {
        self.finished.get(&id).copied()
    }

    /// When a workload was deleted.
    pub(super) fn deleted(&self, workload: WorkloadId) -> Option<SimTime> {
        self.deleted.get(&workload).copied()
    }

    /// When the object of a pod was gone. One whose containers have ended by themselves stays for a while, as an object with
    /// `ttlSecondsAfterFinished` does, unless its node goes.
    pub(super) fn gone(&self, id: PodId, pod: &PodFacts) -> Option<SimTime> {
        match self.finished(id) {
            Some((at, _)) if pod.removed == Some(at) => {
                earliest([Some(at + FINISHED_STAYS), self.node_of(pod).and_then(|node| node.terminated)])
                    .map(|gone| gone.max(at))
            }
            _ => pod.removed,
        }
    }

    /// The instants since which a pod's containers run, or since which it is Ready, each until the next or until `until`.
    pub(super) fn since(
        &self,
        id: PodId,
        (first, kind): (Option<SimTime>, EventKind),
        until: Option<SimTime>,
    ) -> Vec<(SimTime, Option<SimTime>)> {
        let Some(first) = first else { return Vec::new() };
        let again = self.restarted.get(&id).into_iter().flatten();
        let mut instants = vec![(first, true)];
        let states =
            again.map(|(at, again)| (*at, *again)).filter(|(_, item)| *item == kind || *item == EventKind::PodKilled);
        instants.extend(states.map(|(at, state)| (at, state == kind)));
        let ends = instants.iter().skip(1).map(|(at, _)| Some(*at)).chain([None]);
        let spells = instants.iter().zip(ends).filter(|((_, is_so), _)| *is_so);
        spells.map(|((from, _), over)| (*from, earliest([over, until]))).collect()
    }

    /// When a pod stopped to take room on its node.
    pub(super) fn room_until(&self, id: PodId, pod: &PodFacts) -> Option<SimTime> {
        earliest([self.finished(id).map(|(at, _)| at), pod.removed])
    }

    /// When a pod stopped to count as a replica: it ended, or was told to.
    pub(super) fn active_until(&self, id: PodId, pod: &PodFacts) -> Option<SimTime> {
        earliest([self.room_until(id, pod), pod.deletion_requested])
    }

    /// Whether a node is Ready (1), not Ready (0) or not heard of (-1), over time.
    pub(super) fn readiness(&self, id: NodeId, node: &NodeFacts) -> Level {
        let gone = earliest([node.terminating, node.terminated]);
        let mut states = vec![(node.ready, 1), (gone, 0)];
        states.extend(self.troubled.get(&id).into_iter().flatten().map(|(at, kind)| {
            let state = match kind {
                EventKind::NodeUnreachable => -1,
                EventKind::NodeReachable => i64::from(node.ready.is_some_and(|ready| ready <= *at)),
                _ => 0,
            };
            (Some(*at).filter(|at| gone.is_none_or(|gone| *at < gone)), state)
        }));
        let mut states: Vec<(SimTime, i64)> = states.into_iter().filter_map(|(at, state)| Some((at?, state))).collect();
        states.sort_by_key(|(at, _)| *at);
        let mut before = 0;
        let differences = states.into_iter().map(|(at, state)| {
            let by = state - before;
            before = state;
            (at, by)
        });
        Level::from_changes(differences.collect())
    }

    /// What pods request on each node over time, `pods` among the resources.
    pub(super) fn requested(&self) -> BTreeMap<NodeId, BTreeMap<ResourceName, Level>> {
        let mut changes: BTreeMap<NodeId, BTreeMap<ResourceName, Vec<(SimTime, i64)>>> = BTreeMap::new();
        for (id, ref pod) in self.pods() {
            let (Some(node), Some(from)) = (pod.node, pod.scheduled) else { continue };
            let this_changes = changes.entry(node).or_default();
            let end = self.room_until(id, pod).unwrap_or(SimTime::FAR_FUTURE);
            for (from, until, requests) in pod.requests_between(from, end) {
                for (resource, amount) in amounts(requests, 1) {
                    let changes = this_changes.entry(resource).or_default();
                    changes.push((from, amount));
                    changes.extend((until < SimTime::FAR_FUTURE).then_some((until, -amount)));
                }
            }
        }
        let levels = |item: BTreeMap<_, _>| {
            item.into_iter().map(|(name, changes)| (name, Level::from_changes(changes))).collect()
        };
        changes.into_iter().map(|(node, change)| (node, levels(change))).collect()
    }
}

/// The first of several instants, as far as they came.
pub(super) fn earliest<const N: usize>(instants: [Option<SimTime>; N]) -> Option<SimTime> {
    instants.into_iter().flatten().min()
}

/// CPU, memory and `pods` pods.
pub(super) fn amounts(resources: &Resources, pods: i64) -> [(ResourceName, i64); 3] {
    [
        (ResourceName::CPU, resources.cpu_milli()),
        (ResourceName::MEMORY, resources.memory_bytes()),
        (ResourceName::PODS, pods),
    ]
}

/// What an amount is divided by to be in the unit of metrics, which count whole CPUs.
pub(super) fn scale(resource: ResourceName) -> f64 {
    if resource == ResourceName::CPU { 1e3 } else { 1.0 }
}

/// The NodePool of a node, if Karpenter made it.
pub(super) fn pool_of(node: &NodeFacts) -> Option<String> {
    match node.origin {
        NodeOrigin::NodePool(name) => Some(name.to_string()),
        NodeOrigin::NodeGroup(_) | NodeOrigin::Fargate(_) => None,
    }
}

/// A symbol as the value of a label, nothing where there is none.
pub(super) fn value(symbol: Option<crate::domain::Symbol>) -> String {
    symbol.map_or_else(String::new, |symbol| symbol.to_string())
}
