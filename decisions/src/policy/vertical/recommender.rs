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
use crate::domain::vertical::{ContainerPolicy, ContainerRecommendation};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, Labels, SimDuration, SimTime, Symbol, VerticalPodAutoscaler};

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

#[derive(Clone, Debug)]
struct TrackedPod {
    labels: Labels,
    containers: BTreeMap<Symbol, Tracked>,
}

/// A container with what its history goes by.
#[derive(Clone, Debug)]
struct Tracked {
    key: Key,
    own: TrackedContainer,
}

/// The recommender.
#[derive(Clone, Debug)]
pub struct Recommender {
    settings: RecommenderSettings,
    pods: BTreeMap<ObjectName, TrackedPod>,
    histories: BTreeMap<Key, Aggregation>,
    /// What was restored from checkpoints, by VerticalPodAutoscaler and container.
    restored: BTreeMap<ObjectName, BTreeMap<Symbol, Aggregation>>,
    last_forgetting: Option<SimTime>,
}

impl Recommender {
    /// One that has been told nothing yet.
    pub fn new(settings: RecommenderSettings) -> Self {
        let (pods, histories, restored) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { settings, pods, histories, restored, last_forgetting: None }
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
        let none = || TrackedPod { labels: labels.clone(), containers: BTreeMap::new() };
        let tracked = self.pods.entry(pod).or_insert_with(none);
        let mut fresh = BTreeSet::new();
        for (container, request_milli) in containers {
            if let Some(known) = tracked.containers.get_mut(&container) {
                known.own.request_milli = request_milli;
            } else {
                let key = key(pod.namespace, container, labels);
                tracked.containers.insert(container, Tracked { key, own: TrackedContainer::new(request_milli) });
                fresh.insert(container);
            }
        }
        // With other labels it is of another history from now on.
        if tracked.labels != *labels {
            tracked.labels = labels.clone();
            for (container, known) in &mut tracked.containers {
                known.key = key(pod.namespace, *container, labels);
                fresh.insert(*container);
            }
        }
        for container in fresh {
            let key = key(pod.namespace, container, labels);
            self.histories.entry(key).or_insert_with(|| Aggregation::new(&self.settings, now));
        }
    }

    /// A pod is gone; what it used counts until it is forgotten.
    pub fn remove_pod(&mut self, pod: ObjectName) {
        self.pods.remove(&pod);
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
        self.with(pod, container, now, |tracked, told| tracked.cpu(told, at, milli))
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
        self.with(pod, container, now, |tracked, told| tracked.memory(told, at, bytes))
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
        self.with(pod, container, now, |tracked, told| tracked.out_of_memory(told, kill, policy))
    }

    fn with(
        &mut self,
        pod: ObjectName,
        container: Symbol,
        now: SimTime,
        tell: impl FnOnce(&mut TrackedContainer, (&mut Aggregation, &RecommenderSettings)) -> Result<(), NotTaken>,
    ) -> Result<(), NotTaken> {
        let tracked = self.pods.get_mut(&pod).ok_or(NotTaken::UnknownContainer)?;
        let tracked = tracked.containers.get_mut(&container).ok_or(NotTaken::UnknownContainer)?;
        if let Some(history) = self.histories.get_mut(&tracked.key) {
            return tell(&mut tracked.own, (history, &self.settings));
        }
        // One that was forgotten begins anew.
        let none = || Aggregation::new(&self.settings, now);
        let history = self.histories.entry(tracked.key.clone()).or_insert_with(none);
        tell(&mut tracked.own, (history, &self.settings))
    }

    /// What is recommended for the containers of the pods that `selector` selects in the namespace of the VerticalPodAutoscaler, in
    /// order of name. Containers of which nothing is known or that are off are not among them.
    ///
    /// Histories that decay are brought to the same reference here, which is why they change.
    pub fn recommend(&mut self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> Vec<ContainerRecommendation> {
        let mut merged = self.merged(vpa, selector);
        merged.retain(|container, _| vpa.policy_of(*container).is_none_or(|policy| !policy.off));
        let containers = merged.len();
        let recommended = merged.iter().map(|(container, history)| {
            let estimated = estimate(&self.settings, *container, history, containers);
            post_process(&self.settings, vpa, estimated)
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
        for (container, tracked) in selected.flat_map(|(_, pod)| &pod.containers) {
            if let (Some(history), Some((end, peak))) = (merged.get_mut(container), tracked.own.open_peak(now)) {
                history.subtract_peak(end, peak);
            }
        }
        merged.iter().map(|(container, history)| Checkpoint::of(*container, history)).collect()
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
        let used = self.pods.iter().flat_map(|(name, pod)| {
            pod.containers.keys().map(|container| key(name.namespace, *container, &pod.labels))
        });
        let used: BTreeSet<Key> = used.collect();
        let history = self.settings.memory_interval * self.settings.memory_interval_count;
        self.histories.retain(|key, aggregation| !aggregation.is_forgotten(now, used.contains(key), history));
    }

    fn merged(&mut self, vpa: &VerticalPodAutoscaler, selector: &LabelSelector) -> BTreeMap<Symbol, Aggregation> {
        let settings = &self.settings;
        let mut merged: BTreeMap<Symbol, Aggregation> = BTreeMap::new();
        let mut add = |container: Symbol, history: &mut Aggregation| {
            merged.entry(container).or_insert_with(|| Aggregation::new(settings, history.created)).merge(history);
        };
        for (key, history) in &mut self.histories {
            let labels: Labels = key.labels.iter().copied().collect();
            if key.namespace == vpa.name.namespace && selector.matches(&labels) {
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
