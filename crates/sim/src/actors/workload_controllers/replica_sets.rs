//! The ReplicaSet controller where its calls take time: a few ReplicaSets are worked on at once, each makes its pods in batches
//! that double, and every call waits for a token of the controller's one client.
//!
//! What must not live here: how many pods a ReplicaSet wants (`deployments`), and which are deleted first (the deciding crates).
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/replicaset/replica_set.go`, `syncReplicaSet`, `manageReplicas`, `slowStartBatch`.
//!
//! The events that tell of pods made and deleted are written through the same client, one after the other.
//!
//! Deviation: of the other calls of kube-controller-manager, only those that create and delete pods of StatefulSets,
//! DaemonSets, and Jobs count. Their events, and the writes of Deployments, autoscalers, and endpoints, are not
//! limited.

use std::collections::{BTreeMap, VecDeque};

use super::surplus;
use crate::actors::event::{WorkloadEvent, class};
use crate::actors::kubelet;
use crate::actors::sim::{Jitter, Sim};
use crate::actors::vertical::Vertical;
use crate::actors::workload_controllers::Controllers;
use crate::control_plane::call_limit::CallLimit;
use crate::domain::controller_time::ControllerManagerTime;
use crate::domain::{PodId, SimDuration, SimTime, WorkloadId};
use nodecast_replicas::workloads::{PodChange, pod_change, slow_start_batches};

/// From the last call of a batch to its answer: at least so long, and up to so much longer, as beside a busy control plane.
const CALL: SimDuration = SimDuration::from_millis(40);
const CALL_SPREAD: SimDuration = SimDuration::from_millis(120);

/// Events about one ReplicaSet that are written at once, and the time in which one more may be.
///
/// Source: client-go v0.36 `tools/record/events_cache.go`, `defaultSpamBurst`, `defaultSpamQPS`.
const EVENTS_OF_ONE: (i64, SimDuration) = (25, SimDuration::from_secs(300));

/// A ReplicaSet: the workload, and which of its templates.
type Key = (WorkloadId, u32);

/// The controller's queue and workers.
#[derive(Debug)]
pub(super) struct ReplicaSets {
    limit: CallLimit,
    /// ReplicaSets to look at, each once.
    waiting: VecDeque<Key>,
    /// Those that are worked on, with whether they have changed since.
    busy: BTreeMap<Key, bool>,
    /// What each worker does.
    workers: Vec<Option<Sync>>,
    events: Events,
}

/// Events to be written.
#[derive(Debug, Default)]
struct Events {
    /// How many, the one under way included.
    waiting: u32,
    /// What may still be written about each ReplicaSet.
    allowed: BTreeMap<Key, CallLimit>,
}

/// A sync of a ReplicaSet under way.
#[derive(Debug)]
struct Sync {
    key: Key,
    work: Work,
    /// Whether the API server refused a pod, so that the next attempt comes after a back-off.
    refused: bool,
}

/// What is left of it.
#[derive(Debug)]
enum Work {
    /// Pods to be made: of the batch that is under way, and the batches after it.
    Create { batch: i64, after: VecDeque<i64> },
    /// Pods to be deleted, the last one first.
    Delete { pods: Vec<PodId> },
    /// The ReplicaSet's status is written.
    Status,
}

impl ReplicaSets {
    pub(super) fn new(time: ControllerManagerTime) -> Self {
        Self {
            limit: CallLimit::new(time.calls),
            waiting: VecDeque::new(),
            busy: BTreeMap::new(),
            workers: (0..time.replica_set_syncs.max(1)).map(|_| None).collect(),
            events: Events::default(),
        }
    }

    /// The limit of the controller's client.
    pub(super) const fn limit(&self) -> &CallLimit {
        &self.limit
    }
}

impl Controllers {
    /// Something about a ReplicaSet has changed: it is looked at when a worker is free. Whether there is such a controller: without
    /// one pods are made at once.
    pub(super) fn begin_if_changed(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        revision: u32,
    ) -> bool {
        let Some(replica_sets) = &mut self.replica_sets else { return false };
        let key = (workload, revision);
        match replica_sets.busy.get_mut(&key) {
            Some(again) => *again = true,
            None if replica_sets.waiting.contains(&key) => {}
            None => replica_sets.waiting.push_back(key),
        }
        self.begin_waiting(sim, now);
        true
    }

    /// Gives free workers what waits.
    fn begin_waiting(&mut self, sim: &mut Sim<'_>, now: SimTime) {
        while let Some(replica_sets) = &mut self.replica_sets {
            let Some(worker) = replica_sets.workers.iter().position(Option::is_none) else { return };
            let Some(key) = replica_sets.waiting.pop_front() else { return };
            self.begin_sync(sim, now, worker, key);
        }
    }

    /// A worker takes up a ReplicaSet.
    fn begin_sync(&mut self, sim: &mut Sim<'_>, now: SimTime, worker: usize, key: Key) {
        let (workload, revision) = key;
        let active = i64::from(sim.world.workload(workload).active(revision));
        let wanted = self.wanted(workload, revision);
        let work = match pod_change(active, wanted) {
            PodChange::Keep => {
                let Some(replica_sets) = &mut self.replica_sets else { return };
                if replica_sets.limit.take(now).is_ok() {
                    return;
                }
                Work::Status
            }
            PodChange::Create(count) => Work::Create { batch: 0, after: slow_start_batches(count).collect() },
            PodChange::Delete(count) => {
                let mut pods = surplus(sim, now, workload, revision, count);
                pods.reverse();
                Work::Delete { pods }
            }
        };
        let Some(replica_sets) = &mut self.replica_sets else { return };
        replica_sets.busy.insert(key, false);
        let calls = match &work {
            Work::Delete { pods } => pods.len(),
            Work::Status => 1,
            Work::Create { .. } => 0,
        };
        replica_sets.workers[worker] = Some(Sync { key, work, refused: false });
        if calls == 0 {
            self.next_batch(sim, now, worker);
        } else {
            self.make_call(sim, now, worker, calls);
        }
    }

    /// Whether a ReplicaSet has other pods than it wants.
    fn lacks_or_exceeds(&self, sim: &Sim<'_>, (workload, revision): Key) -> bool {
        let active = i64::from(sim.world.workload(workload).active(revision));
        pod_change(active, self.wanted(workload, revision)) != PodChange::Keep
    }

    /// Asks for the tokens of so many calls, which are made together.
    fn make_call(&mut self, sim: &mut Sim<'_>, now: SimTime, worker: usize, calls: usize) {
        let Some(replica_sets) = &mut self.replica_sets else { return };
        for _ in 0..calls {
            let at = replica_sets.limit.reserve(now);
            sim.queue.schedule(at, class::CONTROLLERS, WorkloadEvent::ReplicaSetSync(worker as u32));
        }
    }

    /// The next batch of pods, or the end of the sync.
    fn next_batch(&mut self, sim: &mut Sim<'_>, now: SimTime, worker: usize) {
        let Some(replica_sets) = &mut self.replica_sets else { return };
        let Some(Sync { work, .. }) = &mut replica_sets.workers[worker] else { return };
        let size = match work {
            Work::Create { batch, after } => {
                *batch = after.pop_front().unwrap_or(0);
                *batch
            }
            Work::Delete { .. } | Work::Status => 0,
        };
        if size == 0 {
            *work = Work::Status;
        }
        self.make_call(sim, now, worker, usize::try_from(size).unwrap_or(0).max(1));
    }

    /// A call was refused: no batch follows this one.
    fn stop_sync(&mut self, worker: usize) {
        let Some(replica_sets) = &mut self.replica_sets else { return };
        if let Some(Sync { work: Work::Create { after, .. }, refused, .. }) = &mut replica_sets.workers[worker] {
            after.clear();
            *refused = true;
        }
    }

    /// A pod has been made or deleted: an event tells of it, unless there have been too many about this ReplicaSet.
    ///
    /// Source: Kubernetes 1.36.2 `pkg/controller/controller_utils.go`, `RealPodControl`; `replica_set.go`, `Run`.
    fn note_call(&mut self, sim: &mut Sim<'_>, now: SimTime, key: Key) {
        let Some(replica_sets) = &mut self.replica_sets else { return };
        let (burst, every) = EVENTS_OF_ONE;
        let allowed = replica_sets.events.allowed.entry(key).or_insert_with(|| CallLimit::every(every, burst));
        if allowed.take(now).is_err() {
            return;
        }
        replica_sets.events.waiting += 1;
        if replica_sets.events.waiting == 1 {
            self.write_event(sim, now);
        }
    }

    /// Asks for the token of the next event: one is written when the last has been answered, as by one more worker.
    fn write_event(&mut self, sim: &mut Sim<'_>, now: SimTime) {
        let Some(replica_sets) = &mut self.replica_sets else { return };
        if replica_sets.events.waiting > 0 {
            let writer = replica_sets.workers.len();
            let turn = replica_sets.limit.reserve(now);
            let answered = turn + CALL + sim.jitter(Jitter::Call, writer as u32, turn, CALL_SPREAD);
            sim.queue.schedule(answered, class::CONTROLLERS, WorkloadEvent::ReplicaSetSync(writer as u32));
        }
    }

    /// The sync is over. The ReplicaSet is looked at again if it has changed meanwhile, or if the sync has not done all: each pod that was
    /// made or deleted puts it back in the queue once it is seen, whether or not the pod has a node. After a refusal the queue's back-off
    /// does so.
    ///
    /// Source: Kubernetes 1.36.2 `pkg/controller/replicaset/replica_set.go`, `addPod`, `deletePod`, `processNextWorkItem`.
    fn finish(&mut self, sim: &mut Sim<'_>, now: SimTime, worker: usize) {
        let Some(replica_sets) = &mut self.replica_sets else { return };
        let Some(Sync { key, refused, .. }) = replica_sets.workers[worker].take() else { return };
        let changed = replica_sets.busy.remove(&key) == Some(true);
        if changed || (!refused && self.lacks_or_exceeds(sim, key)) {
            let Some(replica_sets) = &mut self.replica_sets else { return };
            replica_sets.waiting.push_back(key);
        }
        // Its Deployment sees the status that was written.
        self.set_changed(sim, key.0);
        self.begin_waiting(sim, now);
    }
}

/// A call of a sync has its turn, or has been answered.
pub(in crate::actors) fn proceed(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    worker: u32,
) {
    let worker = worker as usize;
    let Some(replica_sets) = &mut controllers.replica_sets else { return };
    if worker == replica_sets.workers.len() {
        replica_sets.events.waiting -= 1;
        return controllers.write_event(sim, now);
    }
    let Some(Sync { key, work, .. }) = &mut replica_sets.workers[worker] else { return };
    let (workload, revision) = *key;
    match work {
        // All calls are out: the last one has been answered.
        Work::Create { batch: 0, .. } => controllers.next_batch(sim, now, worker),
        Work::Create { batch, .. } => {
            *batch -= 1;
            let last = *batch == 0;
            if super::create_pod(sim, controllers, vertical, now, workload, revision) {
                controllers.note_call(sim, now, (workload, revision));
            } else {
                controllers.stop_sync(worker);
            }
            answer_after(sim, now, last, worker);
        }
        Work::Delete { pods } => match pods.pop() {
            Some(pod) => {
                let last = pods.is_empty();
                kubelet::delete(sim, now, pod, false, "the workload has too many replicas");
                controllers.note_call(sim, now, (workload, revision));
                answer_after(sim, now, last, worker);
            }
            None => controllers.next_batch(sim, now, worker),
        },
        Work::Status => controllers.finish(sim, now, worker),
    }
}

/// The last of the calls that were made together is answered in a moment.
fn answer_after(sim: &mut Sim<'_>, now: SimTime, last: bool, worker: usize) {
    if last {
        let answered = CALL + sim.jitter(Jitter::Call, worker as u32, now, CALL_SPREAD);
        sim.queue.schedule_in(answered, class::CONTROLLERS, WorkloadEvent::ReplicaSetSync(worker as u32));
    }
}
