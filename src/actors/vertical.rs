//! The Vertical Pod Autoscaler's three programs: the recommender reads what pods use and the updater looks at pods once a minute each, the
//! admission controller changes pods as they are made.
//!
//! The recommender is told what each container used on average since it looked before, and once a container has run for half a minute:
//! metrics-server knows nothing of it earlier.
//!
//! Deviation: the Vertical Pod Autoscaler's recommender begins with the run, without checkpoints; metrics-server tells it of windows of about
//! fifteen seconds, here of the minute since it last asked. What nobody says which container of a pod uses is divided among all in the
//! proportion of what the template has them request. A resource of which nothing is said is not recommended, where the real program would
//! see some use of it.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/main.go`, `pkg/updater/main.go`; periods as their flags have them.

mod observing;
mod resizing;
mod updating;

pub(super) use observing::end;
pub use observing::known as known_use;
pub(super) use updating::update;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::context::Context;
use super::event::{VerticalEvent, class};
use super::setup::Setup;
use crate::cluster::{PodPhase, SpecId, WorkloadKind};
use crate::domain::vertical::{UpdateMode, VerticalPodAutoscaler};
use crate::domain::workload::ObjectName;
use crate::domain::{Container, PodId, PodSpec, ResourceName, Resources, SimDuration, SimTime, Symbol, WorkloadId};
use crate::policy::vertical::{
    AdmittedContainer, Bounds, ContainerState, LastTermination, NamespaceLimits, OutOfMemory, Recommender,
    RecommenderSettings, Updater, UpdaterSettings, admit as admission,
};
use crate::scenario::manifests::Manifests;
use crate::world::record::EventKind;

use resizing::Resizes;

/// `--recommender-interval` and `--updater-interval`.
const PERIOD: SimDuration = SimDuration::from_secs(60);

/// The three programs and what they remember.
#[derive(Debug)]
pub(super) struct Vertical {
    autoscalers: Vec<Autoscaler>,
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
    pods: BTreeMap<PodId, Tracked>,
    /// Whether it is known what its pods use: CPU, memory.
    known: (bool, bool),
    /// What the recommender saw when it last looked.
    observed: observing::Observed,
}

/// A pod of which the recommender knows.
#[derive(Debug)]
struct Tracked {
    name: ObjectName,
    spec: SpecId,
    /// When it was last read, and what it had used by then.
    read: Option<(SimTime, i128)>,
}

impl Vertical {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let (recommending, updating) = (RecommenderSettings::default(), UpdaterSettings::default());
        Self {
            autoscalers: Vec::new(),
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

    /// The one that a workload's pods belong to: of several the oldest, then the first by name.
    fn of(&self, workload: WorkloadId) -> Option<usize> {
        let own = self.autoscalers.iter().enumerate().filter(|(_, own)| own.target == Some(workload) && !own.retired);
        own.min_by_key(|(_, own)| (own.spec.created, own.spec.name)).map(|(place, _)| place)
    }

    fn limits_of(&self, namespace: Symbol) -> NamespaceLimits {
        self.limits.get(&namespace).cloned().unwrap_or_default()
    }
}

/// What the LimitRanges of each namespace say.
pub fn namespace_limits(manifests: &Manifests) -> BTreeMap<Symbol, NamespaceLimits> {
    let mut limits: BTreeMap<Symbol, NamespaceLimits> = BTreeMap::new();
    for range in &manifests.limit_ranges {
        let own = limits.entry(range.name.namespace).or_default();
        let [min, max, default] = range.of_containers();
        own.add_container(&Bounds { min: min.clone(), max: max.clone(), default: default.clone() });
        let [min, max] = range.of_pods();
        if !(min.is_empty() && max.is_empty()) {
            own.add_pod(&Bounds { min: min.clone(), max: max.clone(), default: Resources::new() });
        }
    }
    limits
}

/// A VerticalPodAutoscaler is applied; a known one takes its new form and keeps what it has learned.
pub(super) fn apply(context: &mut Context<'_>, now: SimTime, spec: &VerticalPodAutoscaler) {
    let name = spec.name;
    let target = context.workload_named(ObjectName { namespace: name.namespace, name: spec.target.name });
    let target = target.filter(|&id| context.world.workload(id).kind.as_str() == spec.target.kind.as_str());
    context.world.note(now, EventKind::ManifestApplied, target, format!("VerticalPodAutoscaler {name}"));
    let vertical = &mut context.vertical;
    if let Some(known) = vertical.autoscalers.iter_mut().find(|own| !own.retired && own.spec.name == name) {
        let recommendation = known.spec.recommendation.take();
        known.spec = VerticalPodAutoscaler { recommendation, ..spec.clone() };
        known.target = target;
        return;
    }
    let mode = vertical.updating.mode(&spec.update);
    let facts = target.map(|target| context.world.add_vertical(name, target, mode));
    let known = observing::known(context.setup, ObjectName { namespace: name.namespace, name: spec.target.name });
    let vertical = &mut context.vertical;
    vertical.autoscalers.push(Autoscaler {
        spec: spec.clone(),
        target,
        retired: false,
        facts,
        recommender: Recommender::new(vertical.recommending.clone()),
        pods: BTreeMap::new(),
        known,
        observed: observing::Observed::default(),
    });
    begin(context);
}

/// The loops begin with the first VerticalPodAutoscaler, each at a phase of its own.
fn begin(context: &mut Context<'_>) {
    if std::mem::replace(&mut context.vertical.begun, true) {
        return;
    }
    for (event, program) in [(VerticalEvent::Recommend, "recommender"), (VerticalEvent::Update, "updater")] {
        let phase = context.streams.stream("vpa-phase", program).span_up_to(PERIOD);
        context.queue.schedule_in(phase, class::REPLICA_AUTOSCALER, event);
    }
}

/// A VerticalPodAutoscaler is deleted; whether there was one of that name. Its pods keep what they have.
pub(super) fn retire(context: &mut Context<'_>, name: ObjectName) -> bool {
    let all = &mut context.vertical.autoscalers;
    let found = all.iter_mut().find(|own| !own.retired && own.spec.name == name);
    found.map(|own| own.retired = true).is_some()
}

/// The recommender's loop: it reads what pods use, and recommends.
pub(super) fn recommend(context: &mut Context<'_>, now: SimTime) {
    context.queue.schedule_in(PERIOD, class::REPLICA_AUTOSCALER, VerticalEvent::Recommend);
    for place in 0..context.vertical.autoscalers.len() {
        let own = &context.vertical.autoscalers[place];
        let Some(target) = own.target.filter(|_| !own.retired) else { continue };
        // Another recommender is asked, which nobody simulates.
        let asks_another =
            !own.spec.recommenders.is_empty() && own.spec.recommenders.iter().all(|name| name.as_str() != "default");
        if asks_another || own.known == (false, false) {
            continue;
        }
        observing::follow_pods(context, now, (place, target));
        observing::read(context, now, (place, target));
        conclude(context, now, (place, target));
    }
}

/// What is recommended now.
fn conclude(context: &mut Context<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
    let selector = context.world.workload(target).selector.clone();
    let at = context.vertical.calendar(now);
    let own = &mut context.vertical.autoscalers[place];
    own.recommender.forget(at);
    let mut recommended = own.recommender.recommend(&own.spec, &selector);
    let unknown = [(ResourceName::CPU, own.known.0), (ResourceName::MEMORY, own.known.1)];
    for (resource, _) in unknown.into_iter().filter(|(_, known)| !known) {
        for container in &mut recommended {
            for amounts in [
                &mut container.target,
                &mut container.lower_bound,
                &mut container.upper_bound,
                &mut container.uncapped_target,
            ] {
                amounts.remove(resource);
            }
        }
    }
    let first = own.spec.recommendation.as_ref().is_none_or(Vec::is_empty) && !recommended.is_empty();
    own.spec.recommendation = Some(recommended);
    if first {
        let message = format!("VerticalPodAutoscaler {}", own.spec.name);
        context.world.note(now, EventKind::RecommendationProvided, Some(target), message);
    }
    observing::note(context, now, (place, target));
}

/// What the containers of a pod request and where their limits are.
pub fn container_states(spec: &PodSpec) -> Vec<ContainerState> {
    let state = |own: &Container| ContainerState {
        name: Symbol::new(&own.name),
        requests: own.effective_requests(),
        limits: own.limits.clone(),
    };
    spec.containers.iter().map(state).collect()
}

/// A pod's specification with other requests and limits; `None` if they are what they were.
pub fn respecified(spec: &PodSpec, containers: &[AdmittedContainer]) -> Option<PodSpec> {
    let same = |(own, new): (&Container, &AdmittedContainer)| {
        own.effective_requests() == new.requests && own.limits == new.limits
    };
    if spec.containers.iter().zip(containers).all(same) {
        return None;
    }
    let mut changed = spec.clone();
    for (own, new) in changed.containers.iter_mut().zip(containers) {
        (own.requests, own.limits) = (new.requests.clone(), new.limits.clone());
    }
    Some(changed)
}

/// The admission controller changes a pod that is being made.
pub(super) fn admit(context: &mut Context<'_>, pod: PodId) {
    if context.vertical.autoscalers.is_empty() {
        return;
    }
    let state = context.world.pod(pod);
    let controlled = context.world.workload(state.workload).kind != WorkloadKind::Pods;
    let Some(place) = context.vertical.of(state.workload) else { return };
    let own = &context.vertical.autoscalers[place];
    let limits = context.vertical.limits_of(state.namespace);
    let admitted = admission(&own.spec, &container_states(&state.spec), controlled, &limits);
    if admitted.untouched.is_some() {
        return;
    }
    if let Some(spec) = respecified(&state.spec, &admitted.containers) {
        let facts = own.facts;
        context.world.respecify_pod(pod, Arc::new(spec));
        if let Some(facts) = facts {
            context.world.vertical_means(facts).admitted += 1;
        }
    }
}

/// A container is about to be killed for lack of memory: the recommender hears of it, and the updater sees how it ended.
pub(super) fn out_of_memory(context: &mut Context<'_>, now: SimTime, pod: PodId, container: usize) {
    if context.vertical.autoscalers.is_empty() {
        return;
    }
    let state = context.world.pod(pod);
    let Some(place) = context.vertical.of(state.workload) else { return };
    let Some(own) = state.spec.containers.get(container) else { return };
    let (name, request_bytes) = (Symbol::new(&own.name), own.effective_requests().memory_bytes());
    let ran_for = state.started.map_or(SimDuration::ZERO, |started| now - started);
    let vertical = &mut context.vertical;
    let ended = vertical.terminations.entry(pod).or_default();
    ended.retain(|last| last.container != name);
    ended.push(LastTermination { container: name, out_of_memory: true, ran_for });
    let at = vertical.calendar(now);
    let own = &mut vertical.autoscalers[place];
    let policy = own.spec.policy_of(name).cloned();
    if let Some(tracked) = own.pods.get(&pod) {
        let kill = OutOfMemory { at, request_bytes };
        // One that is older than the window of its memory does not count.
        let _ = own.recommender.out_of_memory((tracked.name, name), kill, policy.as_ref(), at);
    }
    if let Some(facts) = own.facts {
        context.world.vertical_means(facts).out_of_memory += 1;
    }
}

/// Whether the updater does anything in this mode.
const fn acts(mode: UpdateMode) -> bool {
    !matches!(mode, UpdateMode::Off | UpdateMode::Initial)
}

/// Whether a pod runs and is to stay.
fn runs(context: &Context<'_>, pod: PodId) -> bool {
    let state = context.world.pod(pod);
    state.phase == PodPhase::Running && state.is_active()
}
