//! The workload controllers: they make the pods that are missing and delete those that are too many. Here what
//! they share and ReplicaSets; one file below for each of the others.
//!
//! Source: Kubernetes 1.36 `pkg/controller/replicaset`.

pub(super) mod bare_pods;
pub(super) mod daemon_sets;
pub(super) mod deployments;
pub(super) mod ended_jobs;
mod job_indexes;
pub(super) mod job_state;
pub(super) mod jobs;
pub(super) mod pod_labels;
pub(super) mod replica_sets;
pub(super) mod stateful_sets;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::actor_events::ActorEvent;
use super::event::{WorkloadEvent, class};
use super::kubelet;
use super::quotas::Quotas;
use super::setup::Setup;
use super::sim::{Jitter, Sim};
use super::vertical::Vertical;
use super::volumes::Volumes;
use crate::cluster::NewWorkload;
use crate::cluster::PodPhase;
use crate::control_plane::call_limit::CallLimit;
use crate::domain::controller_time::{CallRate, ControllerManagerTime};
use crate::domain::pod::{OwnerKind, PodPhase as ReportedPhase};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, NodeId, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId, well_known};
use crate::world::controller_loops::LimitFacts;
use crate::world::record::WorkloadKind;
use nodecast_replicas::workloads::{VictimView, slow_start_batches, victims};

/// From a change to the controller's answer, in the mean; each lies within a half of it.
const REACTION: SimDuration = SimDuration::from_millis(100);

/// What the controllers remember of their workloads.
#[derive(Debug, Default)]
pub(super) struct Controllers {
    /// Limits of namespaces on the pods that controllers make.
    pub(super) quotas: Quotas,
    batches: BTreeMap<WorkloadId, jobs::Batch>,
    daemon_sets: BTreeMap<WorkloadId, daemon_sets::Daemons>,
    deployments: BTreeMap<WorkloadId, deployments::Deployed>,
    stateful_sets: BTreeMap<WorkloadId, stateful_sets::Ordered>,
    ended_jobs: ended_jobs::EndedJobs,
    /// The label `pod-template-hash` of the pods of Deployments with which the run begins.
    hashes_of_dump: BTreeMap<ObjectName, Symbol>,
    /// The ReplicaSet controller, where its calls take time.
    replica_sets: Option<replica_sets::ReplicaSets>,
    /// What the clients of the other controllers may call, likewise.
    limits: Option<Limits>,
}

/// The limits of the controllers that make pods without a ReplicaSet: each has a client of its own.
#[derive(Debug)]
struct Limits {
    stateful_sets: CallLimit,
    daemon_sets: CallLimit,
    jobs: CallLimit,
    /// When a workload is looked at again that had to wait.
    again: BTreeMap<WorkloadId, SimTime>,
}

impl Controllers {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let time = setup.policy.controller_time.controller_manager;
        let limits = |time: ControllerManagerTime| {
            let limit = CallLimit::new(time.calls);
            Limits { stateful_sets: limit.clone(), daemon_sets: limit.clone(), jobs: limit, again: BTreeMap::new() }
        };
        Self {
            replica_sets: time.map(replica_sets::ReplicaSets::new),
            limits: time.map(limits),
            quotas: Quotas::new(&setup.policy.manifests),
            hashes_of_dump: pod_labels::hashes_of_dump(setup),
            ..Self::default()
        }
    }

    /// What the limits of the controllers' clients came to.
    pub(super) fn limits(&self, rate: CallRate) -> impl Iterator<Item = LimitFacts> {
        let sets = self.replica_sets.iter().map(|replica_set| ("replicaset-controller", replica_set.limit()));
        let others = self.limits.iter().flat_map(|limit| {
            [
                ("statefulset-controller", &limit.stateful_sets),
                ("daemonset-controller", &limit.daemon_sets),
                ("job-controller", &limit.jobs),
            ]
        });
        sets.chain(others).filter_map(move |(client, limit)| LimitFacts::new(client, rate, limit.used()))
    }

    /// When the DaemonSet controller can make a call that it asks for now.
    fn reserve_for_daemon(&mut self, now: SimTime) -> SimTime {
        self.limits.as_mut().map_or(now, |limits| limits.daemon_sets.reserve(now))
    }

    /// Whether the controller of a StatefulSet or of Jobs may make a call about a pod now; if not, it looks at the workload again
    /// when it may.
    pub(super) fn may_call(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId) -> bool {
        let kind = sim.world.workload(workload).kind;
        let Some(limits) = &mut self.limits else { return true };
        let limit = if kind == WorkloadKind::StatefulSet { &mut limits.stateful_sets } else { &mut limits.jobs };
        let Err(at) = limit.take(now) else { return true };
        if limits.again.insert(workload, at) != Some(at) {
            sim.queue.schedule(at, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        }
        false
    }

    /// A pod has become Ready: some controllers wait for that.
    pub(super) fn pod_ready(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId) {
        let (workload, revision) = (sim.world.pod(pod).workload, sim.world.pod(pod).revision);
        self.daemon_ready(sim, workload);
        if self.deployments.contains_key(&workload) {
            self.deployment_pod_ready(sim, now, workload, revision);
        }
        self.ordinal_ready(sim, workload);
    }
}

/// Adds a workload with the template that its pods are made from, which is returned.
fn begin_workload(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    now: SimTime,
    name: ObjectName,
    kind: WorkloadKind,
    (selector, template): (&LabelSelector, &PodSpec),
    (owner, replicas): (OwnerKind, u32),
) -> (WorkloadId, Arc<PodSpec>) {
    let mut template = owned_template(template, owner);
    // Pods of a dump have been made from the template that is applied with it.
    let known = controllers.hashes_of_dump.get(&name).copied();
    if known.is_some() && owner == OwnerKind::ReplicaSet && now == SimTime::ZERO {
        pod_labels::set_hash(&mut template, known);
    }
    let template = Arc::new(template);
    let has_load = sim.setup.loads.iter().any(|load| load.workload == name);
    let workload = sim.world.add_workload(
        NewWorkload { name, kind, selector: selector.clone(), template: Arc::clone(&template), replicas },
        has_load,
    );
    if let Some(whole) = sim.times_of(workload).part_of {
        sim.world.count_as_part(workload, whole);
    }
    sim.world.count_replicas(workload, now);
    kubelet::note_applied(sim, now, workload, kind.as_str());
    (workload, template)
}

/// Notes an edit of a workload that the API server refuses, since it changes a field that cannot change.
fn refuse_edit(sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, field: &str) {
    let workload = sim.world.workload(workload);
    let text = format!(
        "`{field}` of the {} {} cannot change: nothing of it was changed; delete it first",
        workload.kind.as_str(),
        workload.name
    );
    sim.world.note_unmet(now, text);
}

/// A template as the pods have it, with the label by which their controller tells it from others.
fn owned_template(template: &PodSpec, owner: OwnerKind) -> PodSpec {
    let mut template = template.clone();
    template.owner = owner;
    pod_labels::set_hash(&mut template, None);
    template
}

/// Has a workload's controller look at it shortly.
pub(super) fn wake(sim: &mut Sim<'_>, workload: WorkloadId) {
    wake_after(sim, workload, SimDuration::ZERO);
}

/// The same once `wait` is over.
fn wake_after(sim: &mut Sim<'_>, workload: WorkloadId, wait: SimDuration) {
    let reaction = reaction(sim);
    sim.queue.schedule_in(wait + reaction, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
}

/// How long a controller takes to answer a change that happens now. Workloads that change at
/// one instant are answered in that order.
fn reaction(sim: &Sim<'_>) -> SimDuration {
    let half = SimDuration::from_micros(REACTION.as_micros() / 2);
    half + sim.jitter(Jitter::Reaction, 0, sim.queue.now(), REACTION)
}

/// A workload is deleted: its controller forgets it, and its pods are deleted with their own grace periods.
pub(super) fn delete(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    volumes: &mut Volumes,
    now: SimTime,
    workload: WorkloadId,
) {
    controllers.jobs_deleted(sim, workload);
    controllers.forget_ended(sim, workload);
    controllers.daemon_sets.remove(&workload);
    controllers.deployments.remove(&workload);
    controllers.stateful_set_deleted(sim, volumes, workload);
    sim.world.delete_workload(workload, now);
    let kind = sim.world.workload(workload).kind.as_str();
    let reason = format!("its {kind} was deleted");
    for pod in sim.world.workload(workload).pods.clone() {
        kubelet::delete(sim, now, pod, false, &reason);
    }
}

/// Whether the pod has been Ready for `min_ready`.
fn is_available(sim: &Sim<'_>, now: SimTime, pod: PodId, min_ready: SimDuration) -> bool {
    let state = sim.world.pod(pod);
    state.is_active() && state.ready_since.is_some_and(|since| since + min_ready <= now)
}

/// Creates `count` pods of a ReplicaSet: each batch is twice as large as the one before, until the API server refuses a pod.
/// Returns whether it accepted all.
fn create_pods(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    revision: u32,
    count: i64,
) -> bool {
    for batch in slow_start_batches(count) {
        let mut all = true;
        for _ in 0..batch {
            all &= create_pod(sim, controllers, vertical, now, workload, revision);
        }
        if !all {
            return false;
        }
    }
    true
}

/// Makes a pod; whether the API server takes it.
fn create_pod(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    revision: u32,
) -> bool {
    // A call that was on its way when the workload was deleted makes nothing.
    if sim.world.workload(workload).deleted {
        return true;
    }
    if !controllers.quotas.admits(sim, vertical, now, workload, revision) {
        return false;
    }
    let name = sim.world.next_pod_name(workload);
    let pod = sim.world.create_pod_of(workload, revision, None, name, now);
    sim.publish(ActorEvent::PodCreated(pod));
    true
}

/// The active pods of a ReplicaSet that it deletes when it has so many too many, in that order.
fn surplus(sim: &Sim<'_>, now: SimTime, workload: WorkloadId, revision: u32, count: i64) -> Vec<PodId> {
    let pod_ids: Vec<PodId> = deployments::active_of(sim, workload, revision).collect();
    let mut on_node: FxHashMap<NodeId, u32> = FxHashMap::default();
    for &pod in &sim.world.workload(workload).pods {
        let state = sim.world.pod(pod);
        if let (true, Some(node)) = (state.is_active(), state.node) {
            *on_node.entry(node).or_insert(0) += 1;
        }
    }
    let views: Vec<VictimView> = pod_ids.iter().map(|&pod| victim_view(sim, &on_node, pod, sim.pod_uid(pod))).collect();
    let victims = victims(&views, usize::try_from(count).unwrap_or(0), now);
    victims.into_iter().map(|position| pod_ids[position]).collect()
}

fn victim_view(sim: &Sim<'_>, on_node: &FxHashMap<NodeId, u32>, pod: PodId, uid: u64) -> VictimView {
    let state = sim.world.pod(pod);
    let siblings = state.node.and_then(|node| on_node.get(&node)).copied();
    let cost = state.spec.annotations.get(well_known::POD_DELETION_COST).and_then(|cost| cost.as_str().parse().ok());
    VictimView {
        assigned: state.node.is_some(),
        phase: if state.phase == PodPhase::Running { ReportedPhase::Running } else { ReportedPhase::Pending },
        ready_since: state.ready_since.map(|since| sim.whole_seconds(since)),
        deletion_cost: cost.unwrap_or(0),
        siblings_on_node: siblings.unwrap_or(0),
        restarts: state.restarts,
        sidecar_restarts: 0,
        created: sim.whole_seconds(state.created),
        uid,
    }
}
