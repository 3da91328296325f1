//! What can happen to a workload and to a pod.

use std::sync::Arc;

use super::record::{AvailabilityFacts, Event, EventKind, PodFacts, ReplicaChange, WorkloadFacts, WorkloadKind};
use super::state::{Pod, PodPhase, Revision, Workload};
use super::{Counts, World};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, NodeId, PodId, PodSpec, SimDuration, SimTime, WorkloadId};

/// A workload about to come to be.
#[derive(Clone, Debug)]
pub struct NewWorkload {
    /// Namespace and name.
    pub name: ObjectName,
    /// What it is.
    pub kind: WorkloadKind,
    /// The pods it owns.
    pub selector: LabelSelector,
    /// What its pods look like.
    pub template: Arc<PodSpec>,
    /// Replicas wanted.
    pub replicas: u32,
    /// Whether requests are simulated for it.
    pub has_load: bool,
}

impl World {
    /// Adds a workload; its pods are made by its controller. Whether its replicas serve is counted from the first change
    /// on, or from when [`count_replicas`](Self::count_replicas) says so.
    pub fn add_workload(&mut self, new: NewWorkload) -> WorkloadId {
        let id = WorkloadId::from_index(self.workloads.len());
        self.topology |= new.template.has_topology();
        let requests = Arc::new(new.template.requests());
        let placeholder = new.template.is_placeholder();
        let facts = WorkloadFacts { name: new.name, kind: new.kind, has_load: new.has_load, placeholder };
        self.record.workloads.push(facts);
        self.record.availability.push(AvailabilityFacts::default());
        self.workloads.push(Workload {
            name: new.name,
            kind: new.kind,
            selector: new.selector,
            template: Arc::clone(&new.template),
            requests: Arc::clone(&requests),
            revision: 0,
            revisions: vec![Revision { template: new.template, requests, placeholder, active: 0 }],
            replicas: new.replicas,
            pods: Vec::new(),
            ready: 0,
            next_pod: 0,
        });
        id
    }

    /// Sets the number of replicas wanted.
    pub fn set_replicas(&mut self, workload: WorkloadId, replicas: u32, at: SimTime, kind: EventKind, reason: &str) {
        self.rescale(workload, replicas, at, kind, (reason, ""));
    }

    /// Sets the number of replicas wanted for a reason, with the values behind it.
    pub fn rescale(
        &mut self,
        workload: WorkloadId,
        replicas: u32,
        at: SimTime,
        kind: EventKind,
        (reason, values): (&str, &str),
    ) {
        let state = &mut self.workloads[workload.index()];
        let from = state.replicas;
        let mut message = format!("{from} to {replicas} replicas");
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        if !values.is_empty() {
            message = format!("{message} ({values})");
        }
        state.replicas = replicas;
        self.count_replicas(workload, at);
        let because = if values.is_empty() { reason } else { values };
        let change = ReplicaChange { at, workload, kind, from, to: replicas, because: because.into() };
        self.record.replica_changes.push(change);
        self.bystanders += 1;
        self.note(at, kind, Some(workload), message);
    }

    /// Counts the pods of a namespace that nothing controls.
    pub fn count_bare_pods(&mut self, workload: WorkloadId, there: u32) {
        self.workloads[workload.index()].replicas = there;
    }

    /// A Job has finished; `left` of the workload's have not.
    pub fn finish_job(&mut self, workload: WorkloadId, left: u32, at: SimTime) {
        self.workloads[workload.index()].replicas = left;
        self.note(at, EventKind::JobFinished, Some(workload), format!("{left} running"));
    }

    /// A Job has been given up; `left` of the workload's have not ended.
    pub fn fail_job(&mut self, workload: WorkloadId, left: u32, at: SimTime, reason: &str) {
        self.workloads[workload.index()].replicas = left;
        self.note(at, EventKind::JobFailed, Some(workload), format!("{reason}; {left} running"));
    }

    /// Gives a workload a further template and returns its revision; pods are made from it once it is [in
    /// use](Self::use_revision) or asked for.
    pub fn add_revision(&mut self, workload: WorkloadId, template: Arc<PodSpec>) -> u32 {
        self.topology |= template.has_topology();
        let state = &mut self.workloads[workload.index()];
        let requests = Arc::new(template.requests());
        let placeholder = template.is_placeholder();
        state.revisions.push(Revision { template, requests, placeholder, active: 0 });
        (state.revisions.len() - 1) as u32
    }

    /// From now on the workload's pods are made from the template of this revision.
    pub fn use_revision(&mut self, workload: WorkloadId, revision: u32) {
        let state = &mut self.workloads[workload.index()];
        if let Some(known) = state.revisions.get(revision as usize) {
            state.template = Arc::clone(&known.template);
            state.requests = Arc::clone(&known.requests);
            state.revision = revision;
            self.record.workloads[workload.index()].placeholder = state.template.is_placeholder();
            self.unrecorded += 1;
        }
    }

    /// Creates a pod of `workload`; a daemon's is pinned to its node.
    pub fn create_pod(&mut self, workload: WorkloadId, pinned: Option<NodeId>, at: SimTime) -> PodId {
        let revision = self.workloads[workload.index()].revision;
        let name = self.next_pod_name(workload);
        self.create_pod_of(workload, revision, pinned, name, at)
    }

    /// The same with a name of its own.
    pub fn create_named_pod(
        &mut self,
        workload: WorkloadId,
        pinned: Option<NodeId>,
        name: String,
        at: SimTime,
    ) -> PodId {
        let revision = self.workloads[workload.index()].revision;
        self.create_pod_of(workload, revision, pinned, name, at)
    }

    /// The name of the workload's next pod, where nothing else names it.
    pub fn next_pod_name(&mut self, workload: WorkloadId) -> String {
        let owner = &mut self.workloads[workload.index()];
        let name = numbered(owner.name.name.as_str(), owner.next_pod);
        owner.next_pod += 1;
        name
    }

    /// Creates a pod of `workload` from the template of `revision`.
    pub fn create_pod_of(
        &mut self,
        workload: WorkloadId,
        revision: u32,
        pinned: Option<NodeId>,
        name: String,
        at: SimTime,
    ) -> PodId {
        let id = PodId::from_index(self.pods.len());
        let owner = &mut self.workloads[workload.index()];
        let shared = &mut owner.revisions[revision as usize];
        shared.active += 1;
        let (spec, requests) = (Arc::clone(&shared.template), Arc::clone(&shared.requests));
        let (priority, placeholder) = (spec.priority, shared.placeholder);
        owner.pods.push(id);
        let daemon = owner.kind == WorkloadKind::DaemonSet;
        self.pods.push(Pod {
            workload,
            revision,
            namespace: owner.name.namespace,
            spec,
            requests: Arc::clone(&requests),
            pinned,
            phase: PodPhase::Pending,
            node: None,
            created: at,
            started: None,
            restarts: 0,
            ready_since: None,
            unschedulable: false,
            deletion_requested: None,
            deletion_ends: None,
            finished: false,
            daemon,
        });
        self.record.pods.push(PodFacts {
            name,
            workload,
            requests,
            priority,
            placeholder,
            created: at,
            unschedulable: None,
            scheduled: None,
            started: None,
            ready: None,
            cut_off: None,
            deletion_requested: None,
            removed: None,
            node: None,
            evicted: false,
            grace: None,
        });
        self.recount(daemon, None, Some(PodPhase::Pending), false);
        self.pod_progress(at, EventKind::PodCreated, id, "");
        id
    }

    /// The scheduler found no node for the pod; `message` is asked for only if that is news.
    pub fn mark_unschedulable(&mut self, id: PodId, at: SimTime, message: impl FnOnce() -> String) {
        let pod = &mut self.pods[id.index()];
        let news = !pod.unschedulable;
        pod.unschedulable = true;
        let facts = &mut self.record.pods[id.index()];
        if facts.unschedulable.is_none() {
            facts.unschedulable = Some(at);
        }
        if news {
            self.pod_progress(at, EventKind::PodUnschedulable, id, &message());
        }
    }

    /// Binds the pod to a node.
    pub fn bind_pod(&mut self, id: PodId, node: NodeId, at: SimTime) {
        self.settle_node(node, at);
        let pod = &mut self.pods[id.index()];
        pod.phase = PodPhase::Starting;
        pod.node = Some(node);
        pod.unschedulable = false;
        let daemon = pod.daemon;
        let target = &mut self.nodes[node.index()];
        target.pods.push(id);
        target.requested.add(&pod.requests);
        let facts = &mut self.record.pods[id.index()];
        facts.scheduled = Some(at);
        facts.node = Some(node);
        self.recount(daemon, Some(PodPhase::Pending), Some(PodPhase::Starting), false);
        self.pod_event(at, EventKind::PodScheduled, id, "");
    }

    /// The pod's containers run.
    pub fn start_pod(&mut self, id: PodId, at: SimTime) {
        let pod = &mut self.pods[id.index()];
        pod.phase = PodPhase::Running;
        pod.started = Some(at);
        self.record.pods[id.index()].started.get_or_insert(at);
        self.pod_progress(at, EventKind::PodStarted, id, "");
    }

    /// The pod is Ready.
    pub fn ready_pod(&mut self, id: PodId, at: SimTime) {
        let pod = &mut self.pods[id.index()];
        pod.ready_since = Some(at);
        let (daemon, workload) = (pod.daemon, pod.workload);
        self.workloads[workload.index()].ready += 1;
        self.count_replicas(workload, at);
        let facts = &mut self.record.pods[id.index()];
        facts.ready.get_or_insert(at);
        facts.cut_off = None;
        self.recount(daemon, Some(PodPhase::Running), Some(PodPhase::Running), true);
        self.pod_progress(at, EventKind::PodReady, id, "");
    }

    /// The pod's containers were killed, and are to start again.
    pub fn restart_pod(&mut self, id: PodId, at: SimTime, message: &str) {
        self.lose_readiness(id, at);
        let pod = &mut self.pods[id.index()];
        pod.phase = PodPhase::Starting;
        pod.started = None;
        pod.restarts += 1;
        self.pod_progress(at, EventKind::PodKilled, id, message);
    }

    /// The pod answers no more.
    pub fn unready_pod(&mut self, id: PodId, at: SimTime) {
        self.lose_readiness(id, at);
        self.unrecorded += 1;
        self.bystanders += 1;
    }

    /// The pod's containers have ended well: its room on the node is free, the object stays.
    pub fn finish_pod(&mut self, id: PodId, at: SimTime) {
        self.lose_readiness(id, at);
        self.free_room(id, at);
        self.lose_active(id);
        self.pods[id.index()].finished = true;
        self.pod_event(at, EventKind::PodFinished, id, "");
    }

    /// Changes what the pod is by itself, its annotations for instance.
    pub fn respecify_pod(&mut self, id: PodId, spec: Arc<PodSpec>) {
        self.topology |= spec.has_topology();
        self.pods[id.index()].spec = spec;
        self.change_unrecorded(id);
    }

    /// Asks for the pod's deletion: its endpoint leaves at once, the pod when its containers have stopped, at the latest when
    /// its grace period ends. Asked again, only the end of the grace period changes.
    pub fn request_pod_deletion(&mut self, id: PodId, at: SimTime, grace: SimDuration, evicted: bool, reason: &str) {
        self.lose_readiness(id, at);
        let pod = &mut self.pods[id.index()];
        let whole = SimTime::from_micros(at.as_micros().div_euclid(1_000_000) * 1_000_000);
        pod.deletion_ends = Some(whole + grace);
        if pod.deletion_requested.is_some() {
            return self.change_unrecorded(id);
        }
        self.lose_active(id);
        self.pods[id.index()].deletion_requested = Some(at);
        let facts = &mut self.record.pods[id.index()];
        facts.deletion_requested = Some(at);
        facts.evicted = evicted;
        facts.grace = Some(grace);
        self.pod_event(at, if evicted { EventKind::PodEvicted } else { EventKind::PodDeleted }, id, reason);
    }

    /// The pod is gone; its room on the node is free.
    pub fn remove_pod(&mut self, id: PodId, at: SimTime) {
        self.lose_readiness(id, at);
        self.free_room(id, at);
        if let Some(node) = self.pods[id.index()].node {
            self.nodes[node.index()].pods.retain(|&pod| pod != id);
        }
        self.lose_active(id);
        let pod = &mut self.pods[id.index()];
        let (before, daemon, workload) = (pod.phase, pod.daemon, pod.workload);
        pod.phase = PodPhase::Gone;
        self.workloads[workload.index()].pods.retain(|&own| own != id);
        self.record.pods[id.index()].removed = Some(at);
        self.recount(daemon, Some(before), None, false);
        self.pod_event(at, EventKind::PodRemoved, id, "");
    }

    /// Gives back what the pod has requested of its node, unless it has ended before.
    fn free_room(&mut self, id: PodId, at: SimTime) {
        let pod = &self.pods[id.index()];
        let (Some(node), false) = (pod.node, pod.finished) else { return };
        let requests = Arc::clone(&pod.requests);
        self.settle_node(node, at);
        self.nodes[node.index()].requested.subtract(&requests);
    }

    /// The pod is about to be active no more, if it still is.
    fn lose_active(&mut self, id: PodId) {
        let pod = &self.pods[id.index()];
        if pod.is_active() {
            self.workloads[pod.workload.index()].revisions[pod.revision as usize].active -= 1;
        }
    }

    fn lose_readiness(&mut self, id: PodId, at: SimTime) {
        let pod = &mut self.pods[id.index()];
        if pod.ready_since.take().is_some() {
            let workload = pod.workload;
            self.workloads[workload.index()].ready -= 1;
            if !pod.daemon {
                self.counts.ready -= 1;
                self.counts.starting += 1;
            }
            if pod.deletion_requested.is_none() {
                self.record.pods[id.index()].cut_off = Some(at);
            }
            self.count_replicas(workload, at);
        }
    }

    /// Keeps the counts true when a pod goes from one phase to another; `became_ready` within Running.
    fn recount(&mut self, daemon: bool, from: Option<PodPhase>, to: Option<PodPhase>, became_ready: bool) {
        if daemon {
            return;
        }
        let counter = |counts: &mut Counts, phase: Option<PodPhase>, change: i32| {
            let slot = match phase {
                Some(PodPhase::Pending) => &mut counts.pending,
                Some(PodPhase::Starting | PodPhase::Running) => &mut counts.starting,
                Some(PodPhase::Gone) | None => return,
            };
            *slot = slot.saturating_add_signed(change);
        };
        if became_ready {
            self.counts.starting -= 1;
            self.counts.ready += 1;
        } else {
            counter(&mut self.counts, from, -1);
            counter(&mut self.counts, to, 1);
        }
    }

    /// Something about a pod has changed of which no event tells.
    fn change_unrecorded(&mut self, id: PodId) {
        self.unrecorded += 1;
        self.change_pods_of_node(id);
    }

    fn change_pods_of_node(&mut self, id: PodId) {
        if let Some(node) = self.pods[id.index()].node {
            self.nodes[node.index()].pods_revision += 1;
        }
    }

    /// Something happened to a pod that changes what its node has, or whether it has one.
    pub(super) fn pod_event(&mut self, at: SimTime, kind: EventKind, id: PodId, message: &str) {
        self.change_pods_of_node(id);
        self.record_pod_event(at, kind, id, message);
    }

    /// A pod has come further, where it is.
    fn pod_progress(&mut self, at: SimTime, kind: EventKind, id: PodId, message: &str) {
        self.bystanders += 1;
        self.record_pod_event(at, kind, id, message);
    }

    fn record_pod_event(&mut self, at: SimTime, kind: EventKind, id: PodId, message: &str) {
        let pod = &self.pods[id.index()];
        let (node, workload) = (pod.node, Some(pod.workload));
        self.record.event(Event { at, kind, pod: Some(id), node, workload, command: None, message: message.into() });
    }
}

/// The name with a number of at least five digits behind it, as `format!("{name}-{number:05}")` has it, which takes several
/// times as long; every pod has such a name.
fn numbered(name: &str, number: u32) -> String {
    let mut digits = [b'0'; 10];
    let (mut at, mut rest) = (digits.len(), number);
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let digits = &digits[at.min(5)..];
    let mut text = String::with_capacity(name.len() + 1 + digits.len());
    text.push_str(name);
    text.push('-');
    text.extend(digits.iter().copied().map(char::from));
    text
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn a_number_has_five_digits_or_more() {
        for number in [0, 7, 10, 99_999, 100_000, u32::MAX] {
            assert_eq!(numbered("web", number), format!("web-{number:05}"));
        }
    }
}
