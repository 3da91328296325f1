//! Deployments: one ReplicaSet for each template that they have had, and rollouts between these.
//!
//! Deviation: `progressDeadlineSeconds` applies to rollouts of a changed template, not to a new Deployment.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/deployment`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::kubelet;
use super::super::sim::Sim;
use super::{begin_workload, create_pods, is_available, pod_labels, refuse_edit, surplus, wake};
use crate::actors::actor_events::ActorEvent;
use crate::actors::vertical::Vertical;
use crate::actors::volumes::Volumes;
use crate::actors::workload_controllers::Controllers;
use crate::domain::pod::{IntOrPercent, OwnerKind};
use crate::domain::workload::{Deployment, ObjectName};
use crate::domain::{PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::{EventKind, WorkloadKind};
use nodecast_replicas::workloads::replica_set::BURST;
use nodecast_replicas::workloads::{
    PodChange, ReplicaSetView, RollingLimits, Rollout, pod_change, roll, scale_replica_sets,
};

/// What the controller remembers of a Deployment.
#[derive(Clone, Debug)]
pub(super) struct Deployed {
    /// Surge and unavailable; `None` for `Recreate`.
    limits: Option<(IntOrPercent, IntOrPercent)>,
    min_ready: SimDuration,
    /// Whether the manifest last applied states `replicas`.
    states_replicas: bool,
    /// The template as last applied.
    applied: Arc<PodSpec>,
    /// One for each template, by revision.
    sets: Vec<ReplicaSet>,
    /// Whether pods of former templates are being replaced.
    rolling: bool,
    deadline: SimDuration,
    progress: Progress,
}

/// How far a rollout has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Pods of the present template, those of others, Ready ones and available ones.
    pods: [usize; 4],
    /// When one of these last moved towards the end.
    moved: SimTime,
    /// Whether that was longer ago than the deadline.
    overdue: bool,
}

/// A ReplicaSet.
#[derive(Clone, Debug)]
struct ReplicaSet {
    template: Arc<PodSpec>,
    replicas: i64,
    created: SimTime,
    annotated_replicas: i64,
    annotated_maximum: i64,
}

/// A Deployment is applied: a new one comes to be, a known one takes over the new count and template.
pub(in crate::actors) fn apply(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    now: SimTime,
    deployment: &Deployment,
) {
    let known = sim.workload_named(deployment.name).filter(|id| controllers.deployments.contains_key(id));
    let workload = match known {
        Some(workload) => controllers.change_deployment(sim, now, workload, deployment),
        None => create(sim, controllers, now, deployment),
    };
    wake(sim, workload);
}

fn create(sim: &mut Sim<'_>, controllers: &mut Controllers, now: SimTime, deployment: &Deployment) -> WorkloadId {
    let (workload, template) = begin_workload(
        sim,
        controllers,
        now,
        deployment.name,
        WorkloadKind::Deployment,
        (&deployment.selector, &deployment.template),
        (OwnerKind::ReplicaSet, deployment.replicas.unwrap_or(1)),
    );
    sim.publish(ActorEvent::WorkloadApplied(workload));
    let first = ReplicaSet { template, replicas: 0, created: now, annotated_replicas: 0, annotated_maximum: 0 };
    controllers.deployments.insert(
        workload,
        Deployed {
            limits: limits(deployment),
            min_ready: deployment.min_ready,
            states_replicas: deployment.replicas.is_some(),
            applied: Arc::clone(&deployment.template),
            sets: vec![first],
            rolling: false,
            deadline: deployment.progress_deadline,
            progress: Progress::default(),
        },
    );
    workload
}

fn limits(deployment: &Deployment) -> Option<(IntOrPercent, IntOrPercent)> {
    deployment.max_surge.zip(deployment.max_unavailable)
}

impl Controllers {
    /// A count that the former manifest stated and this one does not goes back to the API's default, as `kubectl apply` has it. The selector
    /// cannot change.
    ///
    /// Source: Kubernetes 1.36 `pkg/registry/apps/deployment/strategy.go`, `ValidateUpdate`.
    fn change_deployment(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        deployment: &Deployment,
    ) -> WorkloadId {
        sim.world.note(now, EventKind::ManifestApplied, Some(workload), "Deployment");
        if sim.world.workload(workload).selector != deployment.selector {
            refuse_edit(sim, now, workload, "selector");
            return workload;
        }
        let Some(this_deployment) = self.deployments.get_mut(&workload) else { return workload };
        let replicas = deployment.replicas.or_else(|| this_deployment.states_replicas.then_some(1));
        this_deployment.limits = limits(deployment);
        this_deployment.min_ready = deployment.min_ready;
        this_deployment.deadline = deployment.progress_deadline;
        this_deployment.states_replicas = deployment.replicas.is_some();
        let same_template = this_deployment.applied == deployment.template;
        this_deployment.applied = Arc::clone(&deployment.template);
        if let Some(replicas) = replicas.filter(|&replicas| replicas != sim.world.workload(workload).replicas) {
            sim.world.set_replicas(workload, replicas, now, EventKind::ReplicasSet, "the manifest says so");
        }
        if !same_template && !deployment.rolls_out {
            let name = deployment.name;
            let text = format!(
                "ReplicaSet {name}: its new template is for pods made from now on, which is not simulated: all keep the former one"
            );
            sim.world.note_unmet(now, text);
        } else if !same_template {
            self.take_template(sim, now, workload, &deployment.template);
        }
        workload
    }

    /// Pods are made from this template from now on: a ReplicaSet that has it already is taken up again.
    fn take_template(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, template: &PodSpec) {
        let template = super::owned_template(template, OwnerKind::ReplicaSet);
        let Some(deployment) = self.deployments.get_mut(&workload) else { return };
        // Of a dump's template the label says another hash than of the same one that is applied later.
        let bare = |template: &PodSpec| {
            let mut bare = template.clone();
            pod_labels::remove_hash(&mut bare);
            bare
        };
        let wanted = bare(&template);
        let same = |set: &ReplicaSet| bare(&set.template) == wanted;
        let known = deployment.sets.iter().position(same);
        let revision = match known {
            Some(known) => {
                deployment.sets[known].created = deployment.sets[known].created.max(now);
                known as u32
            }
            None => {
                let template = Arc::new(template);
                deployment.sets.push(ReplicaSet {
                    template: Arc::clone(&template),
                    replicas: 0,
                    created: now,
                    annotated_replicas: 0,
                    annotated_maximum: 0,
                });
                sim.world.add_revision(workload, template)
            }
        };
        deployment.rolling = true;
        deployment.progress = Progress { moved: now, ..Progress::default() };
        let (limits, deadline) = (deployment.limits, deployment.deadline);
        super::wake_after(sim, workload, deadline);
        sim.world.use_revision(workload, revision);
        let how = match limits {
            None => "Recreate".to_owned(),
            Some((surge, unavailable)) => {
                let replicas = i64::from(sim.world.workload(workload).replicas);
                let limits = RollingLimits::new(replicas, surge, unavailable);
                format!("RollingUpdate, {} more and {} fewer of {replicas}", limits.surge, limits.unavailable)
            }
        };
        sim.world.note(now, EventKind::RolloutStarted, Some(workload), format!("to revision {}: {how}", revision + 1));
    }

    /// A pod has become Ready: a rollout may go on, at once or when the pod counts as available.
    pub(super) fn deployment_pod_ready(
        &mut self,
        sim: &mut Sim<'_>,
        now: SimTime,
        workload: WorkloadId,
        revision: u32,
    ) {
        self.begin_if_changed(sim, now, workload, revision);
        let Some(deployment) = self.deployments.get(&workload).filter(|deployment| deployment.rolling) else { return };
        let min_ready = deployment.min_ready;
        super::wake_after(sim, workload, min_ready);
    }

    /// Reports a rollout that has made no progress for longer than its deadline; what it does goes on.
    ///
    /// Source: `progress.go`, `syncRolloutStatus`; `deployment_util.go`, `DeploymentProgressing` and `DeploymentTimedOut`.
    fn watch_progress(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, current: u32) {
        let Some(deployment) = self.deployments.get(&workload).filter(|deployment| deployment.rolling) else { return };
        let (deadline, mut progress) = (deployment.deadline, deployment.progress);
        let mut pods = [0; 4];
        for &pod in &sim.world.workload(workload).pods {
            let state = sim.world.pod(pod);
            pods[usize::from(state.revision != current)] += usize::from(state.is_active());
            pods[2] += usize::from(state.is_active() && state.is_ready());
            pods[3] += usize::from(is_available(sim, now, pod, deployment.min_ready));
        }
        let before = std::mem::replace(&mut progress.pods, pods);
        if pods[0] > before[0] || pods[1] < before[1] || pods[2] > before[2] || pods[3] > before[3] {
            progress = Progress { pods, moved: now, overdue: false };
            super::wake_after(sim, workload, deadline);
        } else if !progress.overdue && progress.moved + deadline <= now {
            progress.overdue = true;
            let message = format!(
                "ProgressDeadlineExceeded: nothing has moved for {}, with {} pods of revision {} and {} of others, {} of all available",
                deadline,
                pods[0],
                current + 1,
                pods[1],
                pods[3]
            );
            sim.world.note(now, EventKind::RolloutStalled, Some(workload), message);
        }
        if let Some(deployment) = self.deployments.get_mut(&workload) {
            deployment.progress = progress;
        }
    }

    /// Deployments whose rollouts stand still, past their deadlines, with the claim whose volume one of the new pods waits for where it is attached
    /// to the node of another.
    pub fn stalled(&self, sim: &Sim<'_>, volumes: &Volumes) -> Vec<(ObjectName, Option<Symbol>)> {
        let all = self.deployments.iter();
        let overdue = all.filter(|(_, deployed)| deployed.rolling && deployed.progress.overdue);
        let told = overdue.map(|(&workload, _)| {
            let workload = sim.world.workload(workload);
            (workload.name, workload.pods.iter().find_map(|&pod| volumes.waits_for(sim, pod)))
        });
        told.collect()
    }

    /// A ReplicaSet has made or deleted pods: a rollout may go on.
    pub(super) fn set_changed(&mut self, sim: &mut Sim<'_>, workload: WorkloadId) {
        if self.deployments.get(&workload).is_some_and(|deployment| deployment.rolling) {
            wake(sim, workload);
        }
    }

    /// How many pods a ReplicaSet is to have.
    pub(super) fn wanted(&self, workload: WorkloadId, revision: u32) -> i64 {
        let deployment = self.deployments.get(&workload);
        deployment.and_then(|deployment| deployment.sets.get(revision as usize)).map_or(0, |set| set.replicas)
    }
}

/// The Deployment's ReplicaSets get their sizes, then their pods.
pub(in crate::actors) fn reconcile(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
) {
    let replicas = i64::from(sim.world.workload(workload).replicas);
    let current = sim.world.workload(workload).revision as usize;
    let Some(deployment) = controllers.deployments.get_mut(&workload) else { return };
    let has_former = |deployed: &Deployed| {
        deployed.sets.iter().enumerate().any(|(set, deployed)| set != current && deployed.replicas > 0)
    };
    let sizes: SmallVec<[i64; 4]> = if deployment.rolling || has_former(deployment) {
        let mut deployment = deployment.clone();
        size_sets(sim, now, workload, &mut deployment, replicas, current);
        annotate(&mut deployment, replicas, current);
        let sizes = deployment.sets.iter().map(|set| set.replicas).collect();
        controllers.deployments.insert(workload, deployment);
        sizes
    } else {
        deployment.sets[current].replicas = replicas;
        annotate(deployment, replicas, current);
        deployment.sets.iter().map(|set| set.replicas).collect()
    };
    for (revision, wanted) in sizes.into_iter().enumerate() {
        fill(sim, controllers, vertical, now, workload, revision as u32, wanted);
    }
    controllers.watch_progress(sim, now, workload, current as u32);
}

/// What the controller writes down of the count of the time, for [`scale_replica_sets`].
fn annotate(deployed: &mut Deployed, replicas: i64, current: usize) {
    let surge = surge(deployed, replicas);
    for (revision, set) in deployed.sets.iter_mut().enumerate() {
        if set.replicas > 0 || revision == current {
            set.annotated_replicas = replicas;
            set.annotated_maximum = replicas.saturating_add(surge);
        }
    }
}

fn surge(deployed: &Deployed, replicas: i64) -> i64 {
    deployed.limits.map_or(0, |(surge, unavailable)| RollingLimits::new(replicas, surge, unavailable).surge)
}

/// The sizes in the middle of a rollout; notes its end.
fn size_sets(
    sim: &mut Sim<'_>,
    now: SimTime,
    workload: WorkloadId,
    deployed: &mut Deployed,
    replicas: i64,
    current: usize,
) {
    let mut views: Vec<ReplicaSetView> =
        (0..deployed.sets.len()).map(|set| view(sim, now, workload, deployed, set)).collect();
    let scaled = |view: &ReplicaSetView| view.replicas > 0 && view.annotated_replicas != replicas;
    if views.iter().any(scaled) {
        let sizes = scale_replica_sets(replicas, surge(deployed, replicas), &views, Some(current));
        for (view, size) in views.iter_mut().zip(sizes) {
            view.replicas = size;
            view.available = view.available.min(size);
        }
    }
    match deployed.limits {
        Some((surge, unavailable)) => {
            roll_to_the_end(&mut views, replicas, RollingLimits::new(replicas, surge, unavailable), current);
        }
        None => recreate(sim, workload, &mut views, replicas, current),
    }
    for (set, view) in deployed.sets.iter_mut().zip(&views) {
        set.replicas = view.replicas;
    }
    let complete = views[current].available >= replicas
        && views.iter().enumerate().all(|(set, view)| set == current || view.replicas == 0);
    if deployed.rolling && complete {
        deployed.rolling = false;
        sim.world.note(now, EventKind::RolloutFinished, Some(workload), format!("revision {}", current + 1));
    }
}

/// Steps until nothing changes: each change of a ReplicaSet wakes the controller again within moments.
fn roll_to_the_end(views: &mut [ReplicaSetView], replicas: i64, limits: RollingLimits, current: usize) {
    loop {
        let old: Vec<usize> = (0..views.len()).filter(|&set| set != current && views[set].replicas > 0).collect();
        let old_views: Vec<ReplicaSetView> = old.iter().map(|&set| views[set]).collect();
        let (new, sizes) = roll(&Rollout { replicas, limits, new: views[current], old: &old_views });
        let before: Vec<i64> = old_views.iter().map(|view| view.replicas).collect();
        if new == views[current].replicas && sizes == before {
            return;
        }
        views[current].replicas = new;
        for (set, size) in old.into_iter().zip(sizes) {
            views[set].replicas = size;
            views[set].available = views[set].available.min(size);
        }
    }
}

/// All old pods go, those that end included, before the first new one comes.
///
/// Source: `recreate.go`, `rolloutRecreate`.
fn recreate(sim: &Sim<'_>, workload: WorkloadId, views: &mut [ReplicaSetView], replicas: i64, current: usize) {
    for (_, view) in views.iter_mut().enumerate().filter(|(set, _)| *set != current) {
        view.replicas = 0;
    }
    let state = sim.world.workload(workload);
    let old_there = state.pods.iter().any(|&pod| sim.world.pod(pod).revision as usize != current);
    if !old_there {
        views[current].replicas = replicas;
    }
}

fn view(sim: &Sim<'_>, now: SimTime, workload: WorkloadId, deployed: &Deployed, revision: usize) -> ReplicaSetView {
    let set = &deployed.sets[revision];
    let pods = active_of(sim, workload, revision as u32);
    let available = pods.filter(|&pod| is_available(sim, now, pod, deployed.min_ready)).count() as i64;
    ReplicaSetView {
        replicas: set.replicas,
        available: available.min(set.replicas),
        created: set.created,
        annotated_replicas: set.annotated_replicas,
        annotated_maximum: set.annotated_maximum,
    }
}

pub(super) fn active_of(sim: &Sim<'_>, workload: WorkloadId, revision: u32) -> impl Iterator<Item = PodId> {
    let pods = sim.world.workload(workload).pods.iter().copied();
    pods.filter(move |&pod| {
        let state = sim.world.pod(pod);
        state.is_active() && state.revision == revision
    })
}

/// One ReplicaSet makes what is missing and deletes what is too many.
fn fill(
    sim: &mut Sim<'_>,
    controllers: &mut Controllers,
    vertical: &mut Vertical,
    now: SimTime,
    workload: WorkloadId,
    revision: u32,
    wanted: i64,
) {
    let active = i64::from(sim.world.workload(workload).active(revision));
    let check = sim.setup.check;
    if check.compares() {
        let anew = active_of(sim, workload, revision).count() as i64;
        check.hold(active == anew, || format!("{workload:?} was known to have {active} active pods and has {anew}"));
    }
    let went_well = match pod_change(active, wanted) {
        PodChange::Keep => return,
        _ if controllers.begin_if_changed(sim, now, workload, revision) => return,
        PodChange::Create(count) => create_pods(sim, controllers, vertical, now, workload, revision, count),
        PodChange::Delete(count) => {
            for pod in surplus(sim, now, workload, revision, count) {
                kubelet::delete(sim, now, pod, false, "the workload has too many replicas");
            }
            true
        }
    };
    // A pass makes or deletes so many at most; the rest follows, after a back-off if the API server refused a pod.
    if went_well && active.abs_diff(wanted) > BURST.unsigned_abs() {
        wake(sim, workload);
    }
}
