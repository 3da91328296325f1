//! The Vertical Pod Autoscaler's three programs: the recommender reads what pods use and the updater looks at pods once a minute each, the
//! admission controller changes pods as they are made.
//!
//! The recommender is told what each container used on average since it looked before, and once a container has run for half a minute:
//! metrics-server knows nothing of it earlier.
//!
//! Deviation: the Vertical Pod Autoscaler's recommender starts with the run, without checkpoints. metrics-server
//! reports windows of about fifteen seconds; here it reports the minute since the last query. Usage without a
//! container is divided among all containers in proportion to the requests of the template. A resource of a container
//! without usage data gets no recommendation, where the real program would see some usage.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/main.go`, `pkg/updater/main.go`; periods as their flags have them.

pub mod inquiry;
mod observing;
mod recommending;
mod resizing;
mod stated;
mod updating;

pub(super) use resizing::Resizing;
pub use stated::PodUsageModel;
pub(super) use updating::update;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::event::{VerticalEvent, class};
use super::setup::Setup;
use super::sim::Sim;
use crate::cluster::{SpecId, WorkloadKind};
use crate::domain::vertical::{UpdateMode, VerticalPodAutoscaler};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::EventKind;
use nodecast_settings::{VerticalSettings, namespace_limits};
use nodecast_vpa::{
    ContainerSlot, LastTermination, NamespaceLimits, OutOfMemory, Recommender, RecommenderSettings, Updater,
    UpdaterSettings, admit as admission, container_states, respecified,
};

use resizing::Resizes;

/// The three programs and what they remember.
#[derive(Debug)]
pub(super) struct Vertical {
    autoscalers: Vec<Autoscaler>,
    /// Whose pods they are for.
    of_workloads: BTreeMap<WorkloadId, SmallVec<[usize; 1]>>,
    limits: BTreeMap<Symbol, NamespaceLimits>,
    recommending: RecommenderSettings,
    updating: UpdaterSettings,
    updater: Updater,
    resizes: Resizes,
    /// How a container of a pod last ended, where memory was why.
    terminations: BTreeMap<PodId, Vec<LastTermination>>,
    /// From the start of the run to 1970: decay is counted in days of the calendar.
    start: SimDuration,
    begun: bool,
}

/// A VerticalPodAutoscaler, and what the recommender knows of its pods.
#[derive(Debug)]
struct Autoscaler {
    spec: VerticalPodAutoscaler,
    target: Option<WorkloadId>,
    retired: bool,
    /// Its position in the record.
    facts: Option<usize>,
    recommender: Recommender,
    /// That of the target.
    selector: LabelSelector,
    pods: BTreeMap<PodId, Tracked>,
    /// The usages that are stated of the target, by their places in the setup.
    usages: SmallVec<[usize; 2]>,
    /// Of which containers of its pods it is known what they use.
    stated: PodUsageModel,
    /// What the recommender saw when it last looked.
    observed: observing::Observed,
}

/// A pod of which the recommender knows.
#[derive(Debug)]
struct Tracked {
    name: ObjectName,
    /// What it was last told of it; `None` if nothing yet.
    spec: Option<SpecId>,
    revision: u32,
    /// When it was started, if it runs and is to stay.
    runs_since: Option<SimTime>,
    /// When it was last read, and what it had used by then.
    read: Option<(SimTime, i128)>,
    containers: SmallVec<[ReadContainer; 2]>,
}

/// A container that is read, by its position in its pod.
#[derive(Debug)]
struct ReadContainer {
    slot: ContainerSlot,
    /// Its place among what was seen of containers.
    seen: usize,
    /// Whether it is known how much CPU and how much memory it uses.
    known: (bool, bool),
    /// Memory that it can use, in bytes.
    limit: i64,
}

impl Vertical {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let VerticalSettings { recommender: recommending, updater: updating } = (*setup.policy.vertical).clone();
        Self {
            autoscalers: Vec::new(),
            of_workloads: BTreeMap::new(),
            limits: namespace_limits(&setup.policy.manifests),
            recommending,
            updater: Updater::new(updating.clone()),
            updating,
            resizes: Resizes::default(),
            terminations: BTreeMap::new(),
            start: SimDuration::from_micros(setup.scenario.start.as_microsecond()),
            begun: false,
        }
    }

    /// An instant of the run since 1970.
    fn calendar(&self, now: SimTime) -> SimTime {
        now + self.start
    }

    /// Notes once more whose pods each is for.
    fn index(&mut self) {
        self.of_workloads.clear();
        for (place, autoscaler) in self.autoscalers.iter().enumerate() {
            if let Some(target) = autoscaler.target {
                self.of_workloads.entry(target).or_default().push(place);
            }
        }
    }

    /// The one that a workload's pods belong to: of several the oldest, then the first by name.
    fn position(&self, workload: WorkloadId) -> Option<usize> {
        let all = self.of_workloads.get(&workload)?.iter().map(|&place| (place, &self.autoscalers[place]));
        let item = all.filter(|(_, autoscaler)| !autoscaler.retired);
        item.min_by_key(|(_, item)| (item.spec.created, item.spec.name)).map(|(place, _)| place)
    }

    fn limits_of(&self, namespace: Symbol) -> NamespaceLimits {
        self.limits.get(&namespace).cloned().unwrap_or_default()
    }
}

impl Vertical {
    /// A VerticalPodAutoscaler is applied; a known one takes its new form and keeps what it has learned.
    pub(super) fn apply(&mut self, sim: &mut Sim<'_>, now: SimTime, spec: &VerticalPodAutoscaler) {
        let name = spec.name;
        let target = sim.scaled_workload(name.namespace, spec.target);
        sim.world.note(now, EventKind::ManifestApplied, target, format!("VerticalPodAutoscaler {name}"));
        let named = |autoscaler: &Autoscaler| !autoscaler.retired && autoscaler.spec.name == name;
        let known = self.autoscalers.iter().position(named);
        let place = known.unwrap_or_else(|| self.add(sim, spec, target));
        let selector = target.map(|target| sim.world.workload(target).selector.clone()).unwrap_or_default();
        let of_target = ObjectName { namespace: name.namespace, name: spec.target.name };
        let usages = sim.setup.usages.iter().enumerate().filter(|(_, plan)| plan.workload == of_target);
        let autoscaler = &mut self.autoscalers[place];
        autoscaler.usages = usages.map(|(usage, _)| usage).collect();
        let recommendation = autoscaler.spec.recommendation.take();
        autoscaler.spec = VerticalPodAutoscaler { recommendation, ..spec.clone() };
        (autoscaler.selector, autoscaler.target) = (selector, target);
        self.index();
        self.begin(sim);
    }

    /// A VerticalPodAutoscaler that was not there; its place.
    fn add(&mut self, sim: &mut Sim<'_>, spec: &VerticalPodAutoscaler, target: Option<WorkloadId>) -> usize {
        let mode = self.updating.mode(&spec.update);
        let facts = target.map(|target| sim.world.add_vertical(spec.name, target, mode));
        let of_target = ObjectName { namespace: spec.name.namespace, name: spec.target.name };
        let stated = PodUsageModel::new(sim.setup, of_target);
        self.autoscalers.push(Autoscaler {
            spec: spec.clone(),
            target,
            retired: false,
            facts,
            recommender: Recommender::new(self.recommending.clone()),
            selector: LabelSelector::default(),
            pods: BTreeMap::new(),
            usages: SmallVec::new(),
            stated,
            observed: observing::Observed::default(),
        });
        self.autoscalers.len() - 1
    }

    /// The loops begin with the first VerticalPodAutoscaler, each at a phase of its own.
    fn begin(&mut self, sim: &mut Sim<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let loops = [
            (VerticalEvent::Recommend, "recommender", self.recommending.interval),
            (VerticalEvent::Update, "updater", self.updating.interval),
        ];
        for (event, program, interval) in loops {
            let phase = sim.streams.stream("vpa-phase", program).span_up_to(interval);
            sim.queue.schedule_in(phase, class::REPLICA_AUTOSCALER, event);
        }
    }

    /// A VerticalPodAutoscaler is deleted; whether there was one of that name. Its pods keep what they have.
    pub(super) fn retire(&mut self, name: ObjectName) -> bool {
        let all = &mut self.autoscalers;
        let found = all.iter_mut().find(|autoscaler| !autoscaler.retired && autoscaler.spec.name == name);
        found.map(|autoscaler| autoscaler.retired = true).is_some()
    }

    /// The admission controller changes a pod that is being made.
    pub(super) fn admit(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        if self.autoscalers.is_empty() {
            return;
        }
        let state = sim.world.pod(pod);
        let (workload, spec) = (state.workload, Arc::clone(&state.spec));
        if let Some((spec, facts)) = self.admitted(sim, workload, &spec) {
            sim.world.respecify_pod(pod, Arc::new(spec));
            if let Some(facts) = facts {
                sim.world.vertical_means(facts).admitted += 1;
            }
        }
    }

    /// What the admission controller makes of a pod of the workload, with the position of the autoscaler in the record; `None` if it leaves it
    /// as it is.
    pub(super) fn admitted(
        &mut self,
        sim: &Sim<'_>,
        workload: WorkloadId,
        spec: &PodSpec,
    ) -> Option<(PodSpec, Option<usize>)> {
        let place = self.position(workload)?;
        let (autoscaler, of) = (&self.autoscalers[place], sim.world.workload(workload));
        let limits = self.limits_of(of.name.namespace);
        let admitted = admission(&autoscaler.spec, &container_states(spec), of.kind != WorkloadKind::Pods, &limits);
        if admitted.untouched.is_some() {
            return None;
        }
        Some((respecified(spec, &admitted.containers)?, autoscaler.facts))
    }

    /// What a pod is to become once there is room on its node, if it waits for that.
    pub(super) fn deferred(&self, pod: PodId) -> Option<&PodSpec> {
        self.resizes.deferred(pod)
    }

    /// A container is about to be killed for lack of memory: the recommender hears of it, and the updater sees how it ended.
    pub(super) fn out_of_memory(&mut self, sim: &mut Sim<'_>, now: SimTime, pod: PodId, container: usize) {
        if self.autoscalers.is_empty() {
            return;
        }
        let state = sim.world.pod(pod);
        let Some(place) = self.position(state.workload) else { return };
        let Some(container) = state.spec.containers.get(container) else { return };
        let (name, request_bytes) = (Symbol::new(&container.name), container.effective_requests().memory_bytes());
        let ran_for = state.started.map_or(SimDuration::ZERO, |started| now - started);
        let ended = self.terminations.entry(pod).or_default();
        ended.retain(|last| last.container != name);
        ended.push(LastTermination { container: name, out_of_memory: true, ran_for });
        let at = self.calendar(now);
        let autoscaler = &mut self.autoscalers[place];
        let policy = autoscaler.spec.policy_of(name).cloned();
        if let Some(tracked) = autoscaler.pods.get(&pod) {
            let kill = OutOfMemory { at, request_bytes };
            // One that is older than the window of its memory does not count.
            let _ = autoscaler.recommender.out_of_memory((tracked.name, name), kill, policy.as_ref(), at);
        }
        if let Some(facts) = autoscaler.facts {
            sim.world.vertical_means(facts).out_of_memory += 1;
        }
    }
}

/// Whether the updater does anything in this mode.
const fn acts(mode: UpdateMode) -> bool {
    !matches!(mode, UpdateMode::Off | UpdateMode::Initial)
}
