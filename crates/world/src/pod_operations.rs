//! What can happen to a workload and to a pod.

use std::sync::Arc;

use super::World;
use super::record::{AvailabilityFacts, Event, EventKind, PodFacts, ReplicaChange, WorkloadFacts};
use crate::cluster::NewWorkload;
use crate::domain::{NodeId, PodId, PodSpec, SimDuration, SimTime, WorkloadId};

impl World {
    /// Adds a workload, of which the load says whether requests are simulated for it; its pods are made by its controller. Whether
    /// its replicas serve is counted from the first change on, or from when [`count_replicas`](Self::count_replicas) says so.
    pub fn add_workload(&mut self, new: NewWorkload, has_load: bool) -> WorkloadId {
        let placeholder = new.template.is_placeholder();
        let image = image_of(&new.template);
        let labels = new.template.labels.clone();
        let facts =
            WorkloadFacts { name: new.name, kind: new.kind, has_load, placeholder, image, labels, part_of: None };
        self.record.workloads.push(facts);
        self.record.availability.push(AvailabilityFacts::default());
        self.next_pods.push(0);
        self.cluster.add_workload(new)
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
        let from = self.cluster.set_replicas(workload, replicas);
        let mut message = format!("{from} to {replicas} replicas");
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        if !values.is_empty() {
            message = format!("{message} ({values})");
        }
        self.count_replicas(workload, at);
        let because = if values.is_empty() { reason } else { values };
        let change = ReplicaChange { at, workload, kind, from, to: replicas, because: because.into() };
        self.record.replica_changes.push(change);
        self.note(at, kind, Some(workload), message);
    }

    /// A workload is deleted.
    pub fn delete_workload(&mut self, workload: WorkloadId, at: SimTime) {
        let from = self.cluster.workload(workload).replicas;
        self.cluster.delete_workload(workload);
        self.count_replicas(workload, at);
        self.end_jobs_of(workload, at);
        let (kind, because) = (EventKind::ObjectDeleted, "somebody deleted it".into());
        self.record.replica_changes.push(ReplicaChange { at, workload, kind, from, to: 0, because });
        self.note(at, kind, Some(workload), self.cluster.workload(workload).kind.as_str());
    }

    /// Counts the pods of a namespace that nothing controls.
    pub fn count_bare_pods(&mut self, workload: WorkloadId, there: u32) {
        self.cluster.set_replicas(workload, there);
    }

    /// A Job has finished; `left` of the workload's have not.
    pub fn finish_job(&mut self, workload: WorkloadId, left: u32, at: SimTime) {
        self.cluster.set_replicas(workload, left);
        self.note(at, EventKind::JobFinished, Some(workload), format!("{left} running"));
    }

    /// A Job has been given up; `left` of the workload's have not ended.
    pub fn fail_job(&mut self, workload: WorkloadId, left: u32, at: SimTime, reason: &str) {
        self.cluster.set_replicas(workload, left);
        self.note(at, EventKind::JobFailed, Some(workload), format!("{reason}; {left} running"));
    }

    /// Gives a workload a further template and returns its revision; pods are made from it once it is [in
    /// use](Self::use_revision) or asked for.
    pub fn add_revision(&mut self, workload: WorkloadId, template: Arc<PodSpec>) -> u32 {
        self.cluster.add_revision(workload, template)
    }

    /// The revision of a template that the workload has had, or of a further one.
    pub fn revision_of(&mut self, workload: WorkloadId, template: PodSpec) -> u32 {
        self.cluster.revision_of(workload, template)
    }

    /// From now on the workload's pods are made from the template of this revision.
    pub fn use_revision(&mut self, workload: WorkloadId, revision: u32) {
        if self.cluster.use_revision(workload, revision) {
            let template = &self.cluster.workload(workload).template;
            let facts = &mut self.record.workloads[workload.index()];
            (facts.placeholder, facts.image) = (template.is_placeholder(), image_of(template));
            facts.labels = template.labels.clone();
        }
    }

    /// Creates a pod of `workload`; a daemon's is pinned to its node.
    pub fn create_pod(&mut self, workload: WorkloadId, pinned: Option<NodeId>, at: SimTime) -> PodId {
        let revision = self.cluster.workload(workload).revision;
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
        let revision = self.cluster.workload(workload).revision;
        self.create_pod_of(workload, revision, pinned, name, at)
    }

    /// The name of the workload's next pod, where nothing else names it.
    pub fn next_pod_name(&mut self, workload: WorkloadId) -> String {
        let next = &mut self.next_pods[workload.index()];
        let name = numbered(self.cluster.workload(workload).name.name.as_str(), *next);
        *next += 1;
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
        let id = self.add_pod(workload, revision, pinned, name, at);
        self.pod_event(at, EventKind::PodCreated, id, "");
        id
    }

    /// The same without a word.
    pub(super) fn add_pod(
        &mut self,
        workload: WorkloadId,
        revision: u32,
        pinned: Option<NodeId>,
        name: String,
        at: SimTime,
    ) -> PodId {
        let id = self.cluster.create_pod(workload, revision, pinned, at);
        let spec = self.cluster.spec_of(id);
        let (requests, priority, placeholder) = (Arc::clone(&spec.requests), spec.pod.priority, spec.placeholder);
        self.record.pods.push(PodFacts {
            name,
            workload,
            revision,
            job: None,
            requests,
            requested_before: Vec::new(),
            priority,
            placeholder,
            created: at,
            found: false,
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
            serving: Vec::new(),
        });
        id
    }

    /// The scheduler found no node for the pod; `message` is asked for only if that is news.
    pub fn mark_unschedulable(&mut self, id: PodId, at: SimTime, message: impl FnOnce() -> String) {
        if self.cluster.mark_unschedulable(id) {
            self.record.pods.change(id).unschedulable.get_or_insert(at);
            self.pod_event(at, EventKind::PodUnschedulable, id, &message());
        }
    }

    /// Binds the pod to a node.
    pub fn bind_pod(&mut self, id: PodId, node: NodeId, at: SimTime) {
        self.settle_node(node, at);
        self.cluster.bind_pod(id, node);
        let facts = self.record.pods.change(id);
        // Its wait has one end.
        debug_assert!(facts.node.is_none(), "{} is bound twice", facts.name);
        facts.scheduled = Some(at);
        facts.node = Some(node);
        self.pod_event(at, EventKind::PodScheduled, id, "");
    }

    /// The pod's containers run.
    pub fn start_pod(&mut self, id: PodId, at: SimTime) {
        self.cluster.start_pod(id, at);
        let facts = self.record.pods.change(id);
        // A pod starts on a node.
        debug_assert!(facts.node.is_some(), "{} starts without a node", facts.name);
        facts.started.get_or_insert(at);
        self.pod_event(at, EventKind::PodStarted, id, "");
    }

    /// The pod is Ready.
    pub fn ready_pod(&mut self, id: PodId, at: SimTime) {
        self.cluster.ready_pod(id, at);
        self.count_replicas(self.cluster.pod(id).workload, at);
        let facts = self.record.pods.change(id);
        // The time from start to Ready is reported.
        debug_assert!(facts.started.is_some(), "{} is Ready before it starts", facts.name);
        facts.ready.get_or_insert(at);
        facts.cut_off = None;
        self.pod_event(at, EventKind::PodReady, id, "");
    }

    /// The pod's containers were killed, and are to start again.
    pub fn restart_pod(&mut self, id: PodId, at: SimTime, message: &str) {
        self.lose_readiness(id, at);
        self.cluster.restart_pod(id);
        self.pod_event(at, EventKind::PodKilled, id, message);
    }

    /// The pod answers no more.
    pub fn unready_pod(&mut self, id: PodId, at: SimTime) {
        self.lose_readiness(id, at);
    }

    /// The pod's containers have ended well: its room on the node is free, the object stays.
    pub fn finish_pod(&mut self, id: PodId, at: SimTime) {
        self.lose_readiness(id, at);
        self.settle_node_of(id, at);
        self.cluster.finish_pod(id);
        self.pod_event(at, EventKind::PodFinished, id, "");
    }

    /// Changes what the pod is by itself, its annotations for instance; what it requests, only before it has a node.
    pub fn respecify_pod(&mut self, id: PodId, spec: Arc<PodSpec>) {
        self.cluster.respecify_pod(id, spec);
        self.record.pods.change(id).requests = Arc::clone(&self.cluster.spec_of(id).requests);
    }

    /// Changes what a pod on a node requests and what limits it, where it runs.
    pub fn resize_pod(&mut self, id: PodId, spec: Arc<PodSpec>, at: SimTime, message: &str) {
        self.settle_node_of(id, at);
        self.cluster.resize_pod(id, spec);
        let facts = self.record.pods.change(id);
        let before = std::mem::replace(&mut facts.requests, Arc::clone(&self.cluster.spec_of(id).requests));
        facts.requested_before.push((at, before));
        self.pod_event(at, EventKind::PodResized, id, message);
    }

    /// Asks for the pod's deletion: its endpoint leaves at once, the pod when its containers have stopped, at the latest when
    /// its grace period ends. Asked again, the grace period can only end sooner.
    pub fn request_pod_deletion(&mut self, id: PodId, at: SimTime, grace: SimDuration, evicted: bool, reason: &str) {
        self.lose_readiness(id, at);
        if !self.cluster.request_pod_deletion(id, at, grace) {
            return;
        }
        let facts = self.record.pods.change(id);
        // Its record is closed with its end.
        debug_assert!(facts.removed.is_none(), "{} is deleted after its end", facts.name);
        facts.deletion_requested = Some(at);
        facts.evicted = evicted;
        facts.grace = Some(grace);
        self.pod_event(at, if evicted { EventKind::PodEvicted } else { EventKind::PodDeleted }, id, reason);
    }

    /// The pod is gone; its room on the node is free.
    pub fn remove_pod(&mut self, id: PodId, at: SimTime) {
        self.lose_readiness(id, at);
        self.settle_node_of(id, at);
        self.cluster.remove_pod(id);
        let facts = self.record.pods.change(id);
        // The replicas of its workload would be counted down twice.
        debug_assert!(facts.removed.is_none(), "{} goes twice", facts.name);
        facts.removed = Some(at);
        self.pod_event(at, EventKind::PodRemoved, id, "");
        self.record.pods.end(id);
    }

    /// The room of the pod on its node is about to be free, unless the pod has ended before.
    fn settle_node_of(&mut self, id: PodId, at: SimTime) {
        let pod = self.cluster.pod(id);
        if let (Some(node), false) = (pod.node, pod.finished) {
            self.settle_node(node, at);
        }
    }

    fn lose_readiness(&mut self, id: PodId, at: SimTime) {
        if self.cluster.lose_readiness(id) {
            let pod = self.cluster.pod(id);
            if pod.deletion_requested.is_none() {
                self.record.pods.change(id).cut_off = Some(at);
            }
            self.count_replicas(pod.workload, at);
        }
    }

    /// Records that something happened to a pod.
    pub(super) fn pod_event(&mut self, at: SimTime, kind: EventKind, id: PodId, message: &str) {
        let pod = self.cluster.pod(id);
        let (node, workload) = (pod.node, Some(pod.workload));
        self.record.events.push(Event { at, kind, pod: Some(id), node, workload, command: None, message });
    }
}

/// The image of the first container.
fn image_of(template: &PodSpec) -> Box<str> {
    template.containers.first().map_or("", |container| &container.image).into()
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
