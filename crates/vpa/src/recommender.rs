//! The recommender: what it has been told of containers, and what it makes of it.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/model/cluster.go`, `pkg/recommender/routines/recommender.go`.

use std::collections::{BTreeMap, BTreeSet};

use super::aggregation::Aggregation;
use super::checkpoint::Checkpoint;
use super::container::{OutOfMemory, TrackedContainer};
use super::estimate::estimate;
use super::post_processing::post_process;
use super::settings::RecommenderSettings;
use nodecast_model::domain::vertical::{ContainerPolicy, ContainerRecommendation};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{LabelSelector, Labels, SimDuration, SimTime, Symbol, VerticalPodAutoscaler};

/// How often histories are looked through for what is to be forgotten.
const FORGETS_EVERY: SimDuration = SimDuration::from_secs(3_600);

/// Why a sample does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotTaken {
    /// There is no such container in any pod that is known.
    #[error("there is no such container in any pod that is known")]
    UnknownContainer,
    /// It is older than what was taken before.
    #[error("it is older than what was taken before")]
    Outdated,
}

/// Whose history it is: namespace, name of the container, labels of the pod.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    namespace: Symbol,
    container: Symbol,
    labels: Vec<(Symbol, Symbol)>,
}

impl Key {
    fn is_selected(&self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> bool {
        let labels: Labels = self.labels.iter().copied().collect();
        self.namespace == vpa.name.namespace && selector.matches(&labels)
    }
}

#[derive(Clone, Debug)]
struct TrackedPod {
    labels: Labels,
    containers: Vec<(Symbol, ContainerSlot)>,
}

/// A container with the place of its history.
#[derive(Clone, Debug)]
struct Tracked {
    history: usize,
    own: TrackedContainer,
}

/// A container of a pod that the recommender was told of: by it samples are taken without looking for names. It is that container's until
/// its pod is removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ContainerSlot(u32);

/// The recommender.
#[derive(Clone, Debug)]
pub struct Recommender {
    settings: RecommenderSettings,
    pods: BTreeMap<ObjectName, TrackedPod>,
    /// By slot; those of pods that are gone are given out again.
    tracked: Vec<Tracked>,
    free: Vec<ContainerSlot>,
    histories: Histories,
    /// What was restored from checkpoints, by VerticalPodAutoscaler and container.
    restored: BTreeMap<ObjectName, BTreeMap<Symbol, Aggregation>>,
    last_forgetting: Option<SimTime>,
}

/// Histories by whose they are; those that are forgotten leave their places.
#[derive(Clone, Debug, Default)]
struct Histories {
    places: BTreeMap<Key, usize>,
    all: Vec<Option<Aggregation>>,
}

impl Histories {
    /// The place of a history, which begins now if there is none.
    fn begin(&mut self, key: Key, settings: &RecommenderSettings, now: SimTime) -> usize {
        let next = self.all.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.all.push(None);
        }
        self.at(place, settings, now);
        place
    }

    /// The history at a place; one that was forgotten begins anew.
    fn at(&mut self, place: usize, settings: &RecommenderSettings, now: SimTime) -> &mut Aggregation {
        let item = &mut self.all[place];
        item.get_or_insert_with(|| Aggregation::new(settings, now))
    }
}

impl Recommender {
    /// One that has been told nothing yet.
    pub fn new(settings: RecommenderSettings) -> Self {
        Self {
            settings,
            pods: BTreeMap::new(),
            tracked: Vec::new(),
            free: Vec::new(),
            histories: Histories::default(),
            restored: BTreeMap::new(),
            last_forgetting: None,
        }
    }

    /// A pod is there, with its labels, its containers and what each requests of CPU, in thousandths; to be said again when one of them
    /// changes.
    pub fn add_pod(
        &mut self,
        pod: ObjectName,
        labels: &Labels,
        containers: impl IntoIterator<Item = (Symbol, i64)>,
        now: SimTime,
    ) {
        let Self { settings, pods, tracked, free, histories, .. } = self;
        let none = || TrackedPod { labels: labels.clone(), containers: Vec::new() };
        let known = pods.entry(pod).or_insert_with(none);
        for (container, request_milli) in containers {
            if let Some((_, slot)) = known.containers.iter().find(|(key, _)| *key == container) {
                tracked[slot.0 as usize].own.request_milli = request_milli;
                continue;
            }
            let history = histories.begin(key(pod.namespace, container, labels), settings, now);
            let fresh = Tracked { history, own: TrackedContainer::new(request_milli) };
            let slot = free.pop().unwrap_or(ContainerSlot(tracked.len() as u32));
            match tracked.get_mut(slot.0 as usize) {
                Some(place) => *place = fresh,
                None => tracked.push(fresh),
            }
            known.containers.push((container, slot));
        }
        // With other labels it is of another history from now on.
        if known.labels != *labels {
            known.labels = labels.clone();
            for (container, slot) in &known.containers {
                let history = histories.begin(key(pod.namespace, *container, labels), settings, now);
                tracked[slot.0 as usize].history = history;
            }
        }
    }

    /// A pod is gone; what it used counts until it is forgotten.
    pub fn remove_pod(&mut self, pod: ObjectName) {
        if let Some(gone) = self.pods.remove(&pod) {
            self.free.extend(gone.containers.into_iter().map(|(_, slot)| slot));
        }
    }

    /// The slot of a container of a pod.
    pub fn slot(&self, pod: ObjectName, container: Symbol) -> Option<ContainerSlot> {
        let containers = &self.pods.get(&pod)?.containers;
        containers.iter().find(|(key, _)| *key == container).map(|(_, slot)| *slot)
    }

    /// A container was seen to use so many thousandths of a CPU; `now` is when that is learned.
    ///
    /// # Errors
    /// If the container is not known, or the sample is no younger than its last one.
    pub fn cpu_sample(
        &mut self,
        (pod, container): (ObjectName, Symbol),
        at: SimTime,
        milli: i64,
        now: SimTime,
    ) -> Result<(), NotTaken> {
        let slot = self.slot(pod, container).ok_or(NotTaken::UnknownContainer)?;
        self.cpu_sample_of(slot, at, milli, now)
    }

    /// The same of the container of a slot.
    ///
    /// # Errors
    /// If the sample is no younger than its last one.
    pub fn cpu_sample_of(
        &mut self,
        slot: ContainerSlot,
        at: SimTime,
        milli: i64,
        now: SimTime,
    ) -> Result<(), NotTaken> {
        self.tell(slot, now, |tracked, told| tracked.cpu(told, at, milli))
    }

    /// A container was seen to use so many bytes.
    ///
    /// # Errors
    /// If the container is not known, or the sample is older than its last one.
    pub fn memory_sample(
        &mut self,
        (pod, container): (ObjectName, Symbol),
        at: SimTime,
        bytes: i64,
        now: SimTime,
    ) -> Result<(), NotTaken> {
        let slot = self.slot(pod, container).ok_or(NotTaken::UnknownContainer)?;
        self.memory_sample_of(slot, at, bytes, now)
    }

    /// The same of the container of a slot.
    ///
    /// # Errors
    /// If the sample is older than its last one.
    pub fn memory_sample_of(
        &mut self,
        slot: ContainerSlot,
        at: SimTime,
        bytes: i64,
        now: SimTime,
    ) -> Result<(), NotTaken> {
        self.tell(slot, now, |tracked, told| tracked.memory(told, at, bytes))
    }

    /// A container was killed for lack of memory; `policy` is that of the VerticalPodAutoscaler for it.
    ///
    /// # Errors
    /// If the container is not known, or was killed before the window of its memory.
    pub fn out_of_memory(
        &mut self,
        (pod, container): (ObjectName, Symbol),
        kill: OutOfMemory,
        policy: Option<&ContainerPolicy>,
        now: SimTime,
    ) -> Result<(), NotTaken> {
        let slot = self.slot(pod, container).ok_or(NotTaken::UnknownContainer)?;
        self.tell(slot, now, |tracked, told| tracked.out_of_memory(told, kill, policy))
    }

    #[inline]
    fn tell(
        &mut self,
        slot: ContainerSlot,
        now: SimTime,
        tell: impl FnOnce(&mut TrackedContainer, (&mut Aggregation, &RecommenderSettings)) -> Result<(), NotTaken>,
    ) -> Result<(), NotTaken> {
        let Self { settings, tracked, histories, .. } = self;
        let tracked = tracked.get_mut(slot.0 as usize).ok_or(NotTaken::UnknownContainer)?;
        tell(&mut tracked.own, (histories.at(tracked.history, settings, now), settings))
    }

    /// What is recommended for the containers of the pods that `selector` selects in the namespace of the VerticalPodAutoscaler, in
    /// order of name. Containers of which nothing is known or that are off are not among them.
    ///
    /// Histories that decay are brought to the same reference here, which is why they change.
    pub fn recommend(&mut self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> Vec<ContainerRecommendation> {
        let mut merged = self.merged(vpa, selector);
        merged.retain(|container, _| !vpa.policy_of(*container).is_some_and(|policy| policy.off));
        let (settings, containers) = (&self.settings, merged.len());
        let recommended = merged.iter().map(|(container, history)| {
            let estimated = estimate(settings, *container, history, containers);
            post_process(settings, vpa, estimated)
        });
        recommended.collect()
    }

    /// What is written down to survive a restart: everything but the peaks of windows that are open.
    pub fn checkpoints(
        &mut self,
        vpa: &VerticalPodAutoscaler,
        selector: &LabelSelector,
        now: SimTime,
    ) -> Vec<Checkpoint> {
        let mut merged = self.merged(vpa, selector);
        let selected = self
            .pods
            .iter()
            .filter(|(name, pod)| name.namespace == vpa.name.namespace && selector.matches(&pod.labels));
        for (container, slot) in selected.flat_map(|(_, pod)| &pod.containers) {
            let open = self.tracked[slot.0 as usize].own.open_peak(now);
            if let (Some(history), Some((end, peak))) = (merged.get_mut(container), open) {
                history.subtract_peak(end, peak);
            }
        }
        merged.iter().map(|(container, history)| Checkpoint::new(*container, history)).collect()
    }

    /// Takes up what was written down for a VerticalPodAutoscaler. It does not expire.
    pub fn restore(&mut self, vpa: ObjectName, checkpoints: &[Checkpoint]) {
        let restored = self.restored.entry(vpa).or_default();
        for checkpoint in checkpoints {
            restored.insert(checkpoint.container, checkpoint.restored(&self.settings));
        }
    }

    /// Forgets histories that are too old or of no use any more, once an hour.
    pub fn forget(&mut self, now: SimTime) {
        if self.last_forgetting.is_some_and(|last| now - last < FORGETS_EVERY) {
            return;
        }
        self.last_forgetting = Some(now);
        let slots = self.pods.values().flat_map(|pod| &pod.containers);
        let used: BTreeSet<usize> = slots.map(|(_, slot)| self.tracked[slot.0 as usize].history).collect();
        let long_ago = self.settings.memory_interval * self.settings.memory_interval_count;
        for (place, history) in self.histories.all.iter_mut().enumerate() {
            let in_use = used.contains(&place);
            if history.as_ref().is_some_and(|history| history.is_forgotten(now, in_use, long_ago)) {
                *history = None;
            }
        }
    }

    fn merged(&mut self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> BTreeMap<Symbol, Aggregation> {
        let settings = &self.settings;
        let mut merged: BTreeMap<Symbol, Aggregation> = BTreeMap::new();
        let mut add = |container: Symbol, history: &mut Aggregation| {
            merged.entry(container).or_insert_with(|| Aggregation::new(settings, history.created)).merge(history);
        };
        for (key, place) in &self.histories.places {
            if let (true, Some(history)) = (key.is_selected(vpa, selector), &mut self.histories.all[*place]) {
                add(key.container, history);
            }
        }
        for (container, history) in self.restored.get_mut(&vpa.name).into_iter().flatten() {
            add(*container, history);
        }
        merged
    }
}

fn key(namespace: Symbol, container: Symbol, labels: &Labels) -> Key {
    Key { namespace, container, labels: labels.iter().collect() }
}
