//! What people ask of the Vertical Pod Autoscaler in a running simulation: what it would make of a pod if its updater looked now.

use super::resizing;
use crate::actors::sim::Sim;
use crate::actors::vertical::Vertical;
use crate::actors::workload_controllers::Controllers;
use crate::domain::vertical::{ContainerRecommendation, UpdateMode};
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, ResourceName, Resources, SimTime, Symbol, VerticalPodAutoscaler};
use nodecast_vpa::{Answers, Cap, Priority, Resize, ResizeCondition, UpdaterView, Verdict, cap, container_states};

/// What a VerticalPodAutoscaler makes of one of its pods.
#[derive(Clone, PartialEq, Debug)]
pub struct VerticalAnswer {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its mode, that of the release where it states none.
    pub mode: UpdateMode,
    /// Each container of the pod.
    pub containers: Vec<ContainerAnswer>,
    /// What the updater would do with the pod in a look at this instant.
    pub verdict: Verdict,
    /// How much the pod wants a change.
    pub priority: Priority,
    /// How far the kubelet is with a resize of the pod.
    pub resize: Option<ResizeCondition>,
    /// Pods of its workload that the updater sees, and how many it wants at least to touch any.
    pub pods: (usize, i32),
}

/// What is recommended for a container of a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct ContainerAnswer {
    /// Its name.
    pub name: Symbol,
    /// What it requests.
    pub requests: Resources,
    /// What is recommended, as narrowed to the pod; `None` for nothing.
    pub recommended: Option<ContainerRecommendation>,
    /// What changed the target.
    pub caps: Vec<(ResourceName, Cap)>,
}

/// The API server, asked and not told.
struct ApiServerView<'a, 's> {
    sim: &'a Sim<'s>,
    controllers: &'a Controllers,
    vertical: &'a Vertical,
    pods: Vec<(ObjectName, PodId)>,
}

impl ApiServerView<'_, '_> {
    fn id(&self, pod: ObjectName) -> Option<PodId> {
        self.pods.iter().find(|(name, _)| *name == pod).map(|(_, id)| *id)
    }
}

impl Answers for ApiServerView<'_, '_> {
    fn evict(&mut self, pod: ObjectName) -> bool {
        self.id(pod).is_some_and(|id| self.sim.budgets.is_allowed(&self.sim.world, id))
    }

    fn resize(&mut self, resize: Resize) -> bool {
        let id = self.id(resize.pod);
        id.is_some_and(|id| resizing::is_taken(self.sim, self.controllers, self.vertical, id, &resize.containers))
    }
}

/// What the VerticalPodAutoscaler that a pod belongs to makes of it; `None` if it belongs to none, or does not exist yet.
pub(in crate::actors) fn vertical(
    sim: &Sim<'_>,
    controllers: &Controllers,
    vertical: &Vertical,
    now: SimTime,
    pod: PodId,
) -> Option<VerticalAnswer> {
    let workload = sim.world.get_pod(pod)?.workload;
    let place = vertical.position(workload)?;
    let vpa = vertical.autoscalers[place].spec.clone();
    let groups = vertical.groups(sim, workload);
    let all = groups.iter().flat_map(|group| &group.pods);
    let seen = all.clone().count();
    let item = all.clone().find(|item| item.uid == sim.pod_uid(pod));
    let (resize, name) = (item.and_then(|item| item.resize), item.map(|item| item.name));
    let limits = vertical.limits_of(vpa.name.namespace);
    let view = UpdaterView { now: vertical.calendar(now), vpa: &vpa, limits: &limits, groups: &groups };
    let mut updater = vertical.updater.clone();
    let pods = vertical.named_pods(sim, workload);
    let ranked = updater.run(&view, &mut ApiServerView { sim, controllers, vertical, pods });
    let found = ranked.into_iter().find(|item| Some(item.pod) == name);
    let (verdict, priority) = found.map_or((Verdict::Filtered, Priority::default()), |vertical_answer| {
        (vertical_answer.verdict, vertical_answer.priority)
    });
    let settings = &vertical.updating;
    Some(VerticalAnswer {
        name: vpa.name,
        mode: settings.mode(&vpa.update),
        containers: vertical.containers(sim, pod, &vpa),
        verdict,
        priority,
        resize,
        pods: (seen, vpa.update.min_replicas.unwrap_or(settings.min_replicas)),
    })
}

impl Vertical {
    fn containers(&self, sim: &Sim<'_>, pod: PodId, vpa: &VerticalPodAutoscaler) -> Vec<ContainerAnswer> {
        let states = container_states(&sim.world.pod(pod).spec);
        let limits = self.limits_of(vpa.name.namespace);
        let capped = cap(vpa.recommendation.as_deref().unwrap_or_default(), vpa, &states, &limits).unwrap_or_default();
        let answer = |container_state: &nodecast_vpa::ContainerState| ContainerAnswer {
            name: container_state.name,
            requests: container_state.requests.clone(),
            recommended: capped.container(container_state.name).cloned(),
            caps: capped
                .caps
                .iter()
                .filter(|(name, ..)| *name == container_state.name)
                .map(|(_, name, cap)| (*name, *cap))
                .collect(),
        };
        states.iter().map(answer).collect()
    }
}
