//! What can become of a pod.

use std::sync::Arc;

use super::state::{Pod, PodPhase, WorkloadKind};
use super::{Change, Cluster, Counts, Spec};
use crate::domain::{NodeId, PodId, PodSpec, SimDuration, SimTime, WorkloadId};

impl Cluster {
    /// Creates a pod of `workload` from the template of `revision`; a daemon's is pinned to its node.
    pub fn create_pod(
        &mut self,
        workload: WorkloadId,
        revision: u32,
        pinned: Option<NodeId>,
        created: SimTime,
    ) -> PodId {
        let id = PodId::from_index(self.pods.len());
        let owner = &mut self.workloads[workload.index()];
        let template = &mut owner.revisions[revision as usize];
        template.active += 1;
        let (spec_id, daemon) = (template.spec, owner.kind == WorkloadKind::DaemonSet);
        owner.pods.push(id);
        let spec = self.specs.get(spec_id);
        self.pods.push(Pod {
            workload,
            revision,
            namespace: owner.name.namespace,
            spec_id,
            spec: Arc::clone(&spec.pod),
            requests: Arc::clone(&spec.requests),
            pinned,
            phase: PodPhase::Pending,
            node: None,
            created,
            started: None,
            restarts: 0,
            ready_since: None,
            unschedulable: false,
            deletion_requested: None,
            deletion_ends: None,
            finished: false,
            daemon,
        });
        self.recount(daemon, None, Some(PodPhase::Pending));
        self.note_change(Change::Pod(id));
        id
    }

    /// The specification that a pod was made from.
    pub fn spec_of(&self, id: PodId) -> &Spec {
        self.specs.get(self.pods[id].spec_id)
    }

    /// The scheduler found no node for the pod; whether that is news.
    pub fn mark_unschedulable(&mut self, id: PodId) -> bool {
        let news = !std::mem::replace(&mut self.pods[id].unschedulable, true);
        if news {
            self.note_change(Change::Pod(id));
        }
        news
    }

    /// Binds the pod to a node.
    pub fn bind_pod(&mut self, id: PodId, node: NodeId) {
        let pod = &mut self.pods[id];
        assert_eq!(pod.phase, PodPhase::Pending, "{id:?} is bound once");
        pod.phase = PodPhase::Starting;
        pod.node = Some(node);
        pod.unschedulable = false;
        let daemon = pod.daemon;
        let target = &mut self.nodes[node.index()];
        target.pods.push(id);
        target.requested.add(&pod.requests);
        self.recount(daemon, Some(PodPhase::Pending), Some(PodPhase::Starting));
        self.note_change(Change::Placement(id));
    }

    /// The pod's containers run.
    pub fn start_pod(&mut self, id: PodId, at: SimTime) {
        let pod = &mut self.pods[id];
        pod.phase = PodPhase::Running;
        pod.started = Some(at);
        self.note_change(Change::Pod(id));
    }

    /// The pod is Ready.
    pub fn ready_pod(&mut self, id: PodId, at: SimTime) {
        let pod = &mut self.pods[id];
        pod.ready_since = Some(at);
        let (daemon, workload) = (pod.daemon, pod.workload);
        self.workloads[workload.index()].ready += 1;
        if !daemon {
            self.counts.starting -= 1;
            self.counts.ready += 1;
        }
        self.note_change(Change::Pod(id));
    }

    /// The pod answers no more; whether it did.
    pub fn lose_readiness(&mut self, id: PodId) -> bool {
        let pod = &mut self.pods[id];
        if pod.ready_since.take().is_none() {
            return false;
        }
        let (daemon, workload) = (pod.daemon, pod.workload);
        self.workloads[workload.index()].ready -= 1;
        if !daemon {
            self.counts.ready -= 1;
            self.counts.starting += 1;
        }
        self.note_change(Change::Pod(id));
        true
    }

    /// The pod's containers, which are Ready no more, were killed and are to start again.
    pub fn restart_pod(&mut self, id: PodId) {
        let pod = &mut self.pods[id];
        pod.phase = PodPhase::Starting;
        pod.started = None;
        pod.restarts += 1;
        self.note_change(Change::Pod(id));
    }

    /// The pod's containers have ended well: its room on the node is free, the object stays.
    pub fn finish_pod(&mut self, id: PodId) {
        self.free_room(id);
        self.lose_active(id);
        self.pods[id].finished = true;
        self.note_change(Change::Placement(id));
    }

    /// Changes what the pod is by itself, its annotations for instance.
    pub fn respecify_pod(&mut self, id: PodId, spec: Arc<PodSpec>) {
        let spec_id = self.specs.intern(spec);
        let pod = &mut self.pods[id];
        pod.spec_id = spec_id;
        let spec = self.specs.get(spec_id);
        (pod.spec, pod.requests) = (Arc::clone(&spec.pod), Arc::clone(&spec.requests));
        self.note_change(Change::Placement(id));
    }

    /// Changes what a pod on a node requests and what limits it; the room that is left on the node changes with it.
    pub fn resize_pod(&mut self, id: PodId, spec: Arc<PodSpec>) {
        self.free_room(id);
        self.respecify_pod(id, spec);
        let pod = &self.pods[id];
        if let (Some(node), false) = (pod.node, pod.finished) {
            self.nodes[node.index()].requested.add(&pod.requests);
        }
    }

    /// Asks for the deletion of the pod, which is to be gone when its grace period ends; whether that is asked for the first time. When it
    /// is asked for again, a shorter grace period counts in place of the first one, from the first request on, and a longer one changes nothing.
    ///
    /// Source: Kubernetes 1.36.2 `staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go`, `BeforeDelete`.
    pub fn request_pod_deletion(&mut self, id: PodId, at: SimTime, grace: SimDuration) -> bool {
        // The API server knows whole seconds.
        let ends = |asked: SimTime| asked - SimDuration::from_micros(asked.as_micros().rem_euclid(1_000_000)) + grace;
        let pod = &mut self.pods[id];
        let first = pod.deletion_requested.is_none();
        let ends = ends(pod.deletion_requested.unwrap_or(at));
        pod.deletion_ends = Some(pod.deletion_ends.map_or(ends, |known| known.min(ends)));
        if first {
            self.lose_active(id);
            self.pods[id].deletion_requested = Some(at);
        }
        self.note_change(Change::Placement(id));
        first
    }

    /// The pod, which is Ready no more, is gone; its room on the node is free.
    pub fn remove_pod(&mut self, id: PodId) {
        self.free_room(id);
        if let Some(node) = self.pods[id].node {
            self.nodes[node.index()].pods.retain(|&pod| pod != id);
        }
        self.lose_active(id);
        let pod = &mut self.pods[id];
        let (before, daemon, workload) = (pod.phase, pod.daemon, pod.workload);
        pod.phase = PodPhase::Gone;
        self.workloads[workload.index()].pods.retain(|&pod| pod != id);
        self.recount(daemon, Some(before), None);
        self.note_change(Change::Placement(id));
        self.pods.note_gone(id, self.journal.end());
        self.pods.forget(self.journal.start());
    }

    /// Gives back what the pod has requested of its node, unless it has ended before.
    fn free_room(&mut self, id: PodId) {
        let pod = &self.pods[id];
        if let (Some(node), false) = (pod.node, pod.finished) {
            self.nodes[node.index()].requested.subtract(&pod.requests);
        }
    }

    /// The pod is about to be active no more, if it still is.
    fn lose_active(&mut self, id: PodId) {
        let pod = &self.pods[id];
        if pod.is_active() {
            self.workloads[pod.workload.index()].revisions[pod.revision as usize].active -= 1;
        }
    }

    /// Keeps the counts true when a pod goes from one phase to another.
    fn recount(&mut self, daemon: bool, from: Option<PodPhase>, to: Option<PodPhase>) {
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
        counter(&mut self.counts, from, -1);
        counter(&mut self.counts, to, 1);
    }
}
