//! The updater's loop: pods that request something else than is recommended are evicted, or resized where they run.

use std::collections::BTreeMap;

use super::resizing::Resizing;
use super::{Vertical, acts, resizing};
use crate::actors::event::{VerticalEvent, class};
use crate::actors::eviction;
use crate::actors::sim::Sim;

use crate::cluster::{PodPhase, SpecId, WorkloadKind};
use crate::domain::vertical::ContainerRecommendation;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, SimTime, Symbol, VerticalPodAutoscaler, WorkloadId};
use crate::world::record::VerticalMeans;
use nodecast_vpa::{
    Answers, ControllerKind, NamespaceLimits, PodGroup, PodToUpdate, Resize, Updater, UpdaterView, cap,
    container_states, priority,
};

/// One pass over the pods of every VerticalPodAutoscaler.
pub(in crate::actors) fn update(parts: &mut Resizing<'_, '_>, now: SimTime) {
    parts.sim.queue.schedule_in(parts.vertical.updating.interval, class::REPLICA_AUTOSCALER, VerticalEvent::Update);
    resizing::try_again(parts, now);
    for place in 0..parts.vertical.autoscalers.len() {
        let autoscaler = &parts.vertical.autoscalers[place];
        let mode = parts.vertical.updating.mode(&autoscaler.spec.update);
        let Some(target) = autoscaler.target.filter(|_| !autoscaler.retired && acts(mode)) else { continue };
        // Of several for one workload only one counts.
        if parts.vertical.position(target) == Some(place)
            && parts.vertical.wants_a_look(parts.sim, now, (place, target))
        {
            pass(parts, now, (place, target));
        }
    }
}

impl Vertical {
    /// Whether a pod wants a change: it requests what is out of bounds, has had a quick kill or a resize that has not come off, or it is old enough
    /// for any change that is large enough. What pods request is looked at once for all that request the same.
    fn wants_a_look(&self, sim: &Sim<'_>, now: SimTime, (place, target): (usize, WorkloadId)) -> bool {
        let autoscaler = &self.autoscalers[place];
        let recommendation = autoscaler.spec.recommendation.as_deref().unwrap_or_default();
        let limits = self.limits_of(autoscaler.spec.name.namespace);
        let looked_at = |pod: &&PodId| {
            let state = sim.world.pod(**pod);
            state.node.is_some() && state.is_active()
        };
        let pods = || sim.world.workload(target).pods.iter().filter(looked_at);
        if recommendation.is_empty() || is_left_alone(self, place, pods().count()) {
            return false;
        }
        let mut known: Vec<(SpecId, bool, bool)> = Vec::new();
        for &pod in pods() {
            let state = sim.world.pod(pod);
            if has_quick_kill(self, place, pod) || self.resizes.condition(pod).is_some() {
                return true;
            }
            let (outside, large) = match known.iter().find(|(spec, ..)| *spec == state.spec_id) {
                Some((_, outside, large)) => (*outside, *large),
                None => {
                    let found = self.by_request(sim, (place, &limits), recommendation, pod);
                    known.push((state.spec_id, found.0, found.1));
                    found
                }
            };
            let old = state.started.is_some_and(|started| now >= started + self.updating.lifetime_threshold);
            if outside || (large && old) {
                return true;
            }
        }
        false
    }

    /// Whether what a pod requests is out of bounds, and whether the change would be large enough.
    fn by_request(
        &self,
        sim: &Sim<'_>,
        (place, limits): (usize, &NamespaceLimits),
        recommendation: &[ContainerRecommendation],
        pod: PodId,
    ) -> (bool, bool) {
        let spec = &self.autoscalers[place].spec;
        let containers = container_states(&sim.world.pod(pod).spec);
        let Ok(capped) = cap(recommendation, spec, &containers, limits) else { return (true, true) };
        let asks = priority(&capped, &self.to_update(sim, pod, containers));
        (asks.outside_range, asks.change >= self.updating.update_threshold)
    }

    fn to_update(&self, sim: &Sim<'_>, pod: PodId, containers: Vec<nodecast_vpa::ContainerState>) -> PodToUpdate {
        let (state, vertical) = (sim.world.pod(pod), self);
        PodToUpdate {
            name: self.name_of(sim, pod),
            uid: sim.pod_uid(pod),
            started: state.started.map(|started| vertical.calendar(started)),
            // Containers that start anew after a kill leave the pod Running.
            pending: state.phase != PodPhase::Running && state.restarts == 0,
            resize: vertical.resizes.condition(pod),
            containers,
            observed: None,
            restarts_on_resize: false,
            terminations: vertical.terminations.get(&pod).cloned().unwrap_or_default(),
        }
    }

    /// The name of a pod, where the recommender has it already as that has it.
    fn name_of(&self, sim: &Sim<'_>, pod: PodId) -> ObjectName {
        let state = sim.world.pod(pod);
        let known = self.position(state.workload).and_then(|position| self.autoscalers[position].pods.get(&pod));
        let name = || Symbol::new(sim.world.pod_name(pod));
        known.map_or_else(|| ObjectName { namespace: state.namespace, name: name() }, |known| known.name)
    }

    /// The pods of a workload with their names.
    pub(super) fn named_pods(&self, sim: &Sim<'_>, target: WorkloadId) -> Vec<(ObjectName, PodId)> {
        sim.world.workload(target).pods.iter().map(|&pod| (self.name_of(sim, pod), pod)).collect()
    }

    /// The pods of a workload by what controls each: its ReplicaSets, or itself.
    pub(super) fn groups(&self, sim: &Sim<'_>, target: WorkloadId) -> Vec<PodGroup> {
        let workload = sim.world.workload(target);
        let mut of_revision: BTreeMap<u32, Vec<PodToUpdate>> = BTreeMap::new();
        for &pod in &workload.pods {
            let state = sim.world.pod(pod);
            if state.node.is_some() && state.is_active() {
                let revision = if workload.kind == WorkloadKind::Deployment { state.revision } else { 0 };
                of_revision.entry(revision).or_default().push(self.to_update(sim, pod, container_states(&state.spec)));
            }
        }
        let alone = of_revision.len() == 1;
        let group = |pods: Vec<PodToUpdate>| {
            let controller = match workload.kind {
                // While a rollout goes on each ReplicaSet is taken to want the pods that it has.
                WorkloadKind::Deployment if !alone => ControllerKind::Replicated(pods.len() as i64),
                WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
                    ControllerKind::Replicated(i64::from(workload.replicas))
                }
                WorkloadKind::DaemonSet => ControllerKind::Replicated(i64::from(workload.ready)),
                WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::ScaledJob => ControllerKind::Job,
                WorkloadKind::Pods => ControllerKind::Custom,
            };
            PodGroup { controller, pods }
        };
        of_revision.into_values().map(group).collect()
    }
}

/// Whether there are fewer pods than the updater ever touches, whatever controls each.
fn is_left_alone(vertical: &Vertical, place: usize, pods: usize) -> bool {
    let (autoscaler, settings) = (&vertical.autoscalers[place], &vertical.updating);
    let least = autoscaler.spec.update.min_replicas.unwrap_or(settings.min_replicas);
    !settings.skips_budget() && (pods as i64) < i64::from(least)
}

/// Whether a container of the pod was killed for memory soon after its start.
fn has_quick_kill(vertical: &Vertical, place: usize, pod: PodId) -> bool {
    let soon = vertical.updating.quick_oom(&vertical.autoscalers[place].spec.update);
    let ended = vertical.terminations.get(&pod);
    ended.is_some_and(|all| all.iter().any(|last| last.out_of_memory && last.ran_for < soon))
}

/// The API server, as the updater asks it.
struct Api<'a, 'b, 's> {
    parts: &'a mut Resizing<'b, 's>,
    now: SimTime,
    pods: &'a BTreeMap<ObjectName, PodId>,
    /// What each pod is to get, for the log.
    reasons: &'a BTreeMap<ObjectName, String>,
    means: VerticalMeans,
}

impl Api<'_, '_, '_> {
    fn reason(&self, pod: ObjectName) -> String {
        self.reasons.get(&pod).cloned().unwrap_or_default()
    }
}

impl Answers for Api<'_, '_, '_> {
    fn evict(&mut self, pod: ObjectName) -> bool {
        let Some(&id) = self.pods.get(&pod) else { return false };
        let reason = self.reason(pod);
        let evicted = eviction::evict(self.parts.sim, self.now, id, &reason);
        if evicted {
            self.means.evicted += 1;
        } else {
            self.means.refused += 1;
        }
        evicted
    }

    fn resize(&mut self, resize: Resize) -> bool {
        let Some(&id) = self.pods.get(&resize.pod) else { return false };
        let reason = self.reason(resize.pod);
        resizing::ask(self.parts, self.now, id, &resize.containers, (&reason, &mut self.means))
    }
}

/// A look at every pod of one VerticalPodAutoscaler.
fn pass(parts: &mut Resizing<'_, '_>, now: SimTime, (place, target): (usize, WorkloadId)) {
    let groups = parts.vertical.groups(parts.sim, target);
    let autoscaler = &parts.vertical.autoscalers[place];
    let (vpa, facts) = (autoscaler.spec.clone(), autoscaler.facts);
    let pods: BTreeMap<ObjectName, PodId> = autoscaler.pods.iter().map(|(&pod, known)| (known.name, pod)).collect();
    let at = parts.vertical.calendar(now);
    let limits = parts.vertical.limits_of(vpa.name.namespace);
    let reasons = reasons(&groups, &vpa, &limits);
    let view = UpdaterView { now: at, vpa: &vpa, limits: &limits, groups: &groups };
    let empty = Updater::new(parts.vertical.updating.clone());
    let mut updater = std::mem::replace(&mut parts.vertical.updater, empty);
    let mut api = Api { parts, now, pods: &pods, reasons: &reasons, means: VerticalMeans::default() };
    updater.run(&view, &mut api);
    let means = api.means;
    parts.vertical.updater = updater;
    if let Some(facts) = facts {
        let vertical_means = parts.sim.world.vertical_means(facts);
        vertical_means.evicted += means.evicted;
        vertical_means.refused += means.refused;
        vertical_means.resized += means.resized;
        vertical_means.deferred += means.deferred;
        vertical_means.infeasible += means.infeasible;
    }
}

/// What is to become of each pod, in words.
fn reasons(groups: &[PodGroup], vpa: &VerticalPodAutoscaler, limits: &NamespaceLimits) -> BTreeMap<ObjectName, String> {
    let recommendation = vpa.recommendation.as_deref().unwrap_or_default();
    let pods = groups.iter().flat_map(|group| &group.pods);
    let reason = |pod: &PodToUpdate| {
        let capped = cap(recommendation, vpa, &pod.containers, limits).unwrap_or_default();
        let parts = pod.containers.iter().filter_map(|container| {
            let wanted = capped.container(container.name)?;
            let changes = wanted.target.iter().filter(|(name, amount)| container.requests.get(*name) != *amount);
            let changes = changes.map(|(name, amount)| {
                format!("{} {} to {}", name.0, name.format(container.requests.get(name)), name.format(amount))
            });
            let changes: Vec<String> = changes.collect();
            (!changes.is_empty()).then(|| format!("{}: {}", container.name, changes.join(", ")))
        });
        let parts: Vec<String> = parts.collect();
        let asks = priority(&capped, pod);
        let need = if asks.outside_range {
            "a request is out of its bounds".to_owned()
        } else if pod.terminations.iter().any(|last| last.out_of_memory) {
            "a container was killed for memory".to_owned()
        } else {
            format!("the change is {:.0}% of its requests", asks.change * 100.0)
        };
        format!("VerticalPodAutoscaler {}: {need}; {}", vpa.name, parts.join("; "))
    };
    pods.map(|pod| (pod.name, reason(pod))).collect()
}
