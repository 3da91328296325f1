//! The updater: which running pods are evicted, or resized where they run, so that they get what is recommended.
//!
//! [`Updater::run`] is one pass over the pods of one VerticalPodAutoscaler. What it wants done it asks [`Answers`] for, as what the API
//! refuses decides what comes next.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/updater`: `logic/updater.go`, `restriction`, `inplace`.

mod acceptance;
mod group;
mod pass;
mod ranking;

pub use ranking::{Priority, priority};

use std::collections::BTreeMap;

use super::admission::AdmittedContainer;
use super::capping::ContainerState;
use super::limits::NamespaceLimits;
use super::settings::UpdaterSettings;
use nodecast_model::domain::vertical::{ContainerRecommendation, UpdateMode};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{SimDuration, SimTime, Symbol, VerticalPodAutoscaler};

/// What there is to see of the pods of one VerticalPodAutoscaler.
#[derive(Clone, Copy, Debug)]
pub struct UpdaterView<'v> {
    /// The instant.
    pub now: SimTime,
    /// The VerticalPodAutoscaler, with its recommendation.
    pub vpa: &'v VerticalPodAutoscaler,
    /// What the LimitRanges of its namespace say.
    pub limits: &'v NamespaceLimits,
    /// Its pods by what controls each directly. Among equals the first comes first.
    pub groups: &'v [PodGroup],
}

/// The pods of one controller: those that have a node, have not ended and are not being deleted.
#[derive(Clone, PartialEq, Debug)]
pub struct PodGroup {
    /// What controls them.
    pub controller: ControllerKind,
    /// The pods.
    pub pods: Vec<PodToUpdate>,
}

/// What controls pods directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerKind {
    /// A ReplicaSet, StatefulSet or ReplicationController that wants so many replicas, or a DaemonSet of which so many are ready.
    Replicated(i64),
    /// A Job.
    Job,
    /// Anything else: how many pods it wants is not asked for, and all may go at once.
    Custom,
}

/// A pod.
#[derive(Clone, PartialEq, Debug)]
pub struct PodToUpdate {
    /// Namespace and name.
    pub name: ObjectName,
    /// What tells it from others of the same name.
    pub uid: u64,
    /// `status.startTime`.
    pub started: Option<SimTime>,
    /// Whether its phase is Pending.
    pub pending: bool,
    /// How far the kubelet is with a resize: what the first of the conditions PodResizePending and PodResizeInProgress says, if it is true.
    pub resize: Option<ResizeCondition>,
    /// Its containers, in their order.
    pub containers: Vec<ContainerState>,
    /// Which of them the admission controller saw (annotation `vpaObservedContainers`); the others are not looked at. Without the annotation all
    /// are.
    pub observed: Option<Vec<Symbol>>,
    /// Whether a container is restarted where one of its resources is resized.
    pub restarts_on_resize: bool,
    /// How its containers last ended, of those that did.
    pub terminations: Vec<LastTermination>,
}

impl PodToUpdate {
    fn observes(&self, container: Symbol) -> bool {
        self.observed.as_ref().is_none_or(|observed| observed.contains(&container))
    }
}

/// How far the kubelet is with a resize.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResizeCondition {
    /// Pending: it could fit later.
    Deferred,
    /// Pending: it never fits the node.
    Infeasible,
    /// Pending for another reason.
    PendingOther,
    /// In progress.
    InProgress,
    /// It failed.
    Error,
    /// In progress, with another reason or a message.
    InProgressOther,
}

/// How a container last ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastTermination {
    /// The container.
    pub container: Symbol,
    /// Whether it was killed for lack of memory.
    pub out_of_memory: bool,
    /// From its start to its end.
    pub ran_for: SimDuration,
}

/// What the API answers.
pub trait Answers {
    /// Evicts a pod; `false` where a budget refuses that.
    fn evict(&mut self, pod: ObjectName) -> bool;
    /// Writes new requests and limits into a running pod; `false` where that is refused.
    fn resize(&mut self, resize: Resize) -> bool;
}

/// New requests and limits of a running pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resize {
    /// The pod.
    pub pod: ObjectName,
    /// Its containers as they are to be.
    pub containers: Vec<AdmittedContainer>,
}

/// What a pass made of a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct RankedPod {
    /// The pod.
    pub pod: ObjectName,
    /// How much it wants a change.
    pub priority: Priority,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a pod in a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It was evicted.
    Evicted,
    /// It was resized.
    Resized,
    /// The API refused to evict it.
    EvictionRefused,
    /// The API refused to resize it.
    ResizeRefused,
    /// It wanted a change; the others have used up the budget, or in the mode InPlace there are too few replicas.
    AcceptedNoAction,
    /// It is within the bounds and young.
    YoungInRange,
    /// It is within the bounds, and the change would be small.
    ChangeTooSmall,
    /// It was killed for memory soon after its start, and nothing would change.
    OomWithoutChange,
    /// `evictionRequirements` are not met.
    EvictionRequirement,
    /// It was not looked at: for the mode, as there are too few replicas or none may go, or as it waits for a resize.
    Filtered,
    /// The real program dies of it; it is left as it is.
    Crash,
}

/// The updater, and what it remembers for as long as it runs.
#[derive(Clone, Debug)]
pub struct Updater {
    settings: UpdaterSettings,
    /// When a pod was first seen to wait for a resize. That is kept for good, by name: a second wait hours later is over at once.
    first_waits: BTreeMap<ObjectName, SimTime>,
    /// What did not fit a pod's node, by pod, in the mode InPlace.
    infeasible: BTreeMap<u64, Vec<ContainerRecommendation>>,
}

/// How pods get what is recommended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Evict,
    ResizeOrEvict,
    Resize,
}

impl Updater {
    /// One that has just been started.
    pub fn new(settings: UpdaterSettings) -> Self {
        Self { settings, first_waits: BTreeMap::new(), infeasible: BTreeMap::new() }
    }

    /// One pass over the pods of one VerticalPodAutoscaler. All of them are in what comes back, in the order of the groups.
    ///
    /// Deviation: the Vertical Pod Autoscaler's updater takes pods of equal priority in random order. Here it takes
    /// them in the given order.
    ///
    /// Deviation: if a LimitRange of pods makes the Vertical Pod Autoscaler's updater crash on a pod, that pod stays
    /// unchanged, and the updater continues with the others. In a cluster the program dies at each pass.
    pub fn run(&mut self, view: &UpdaterView<'_>, answers: &mut dyn Answers) -> Vec<RankedPod> {
        pass::run(self, view, answers)
    }

    /// How pods of a VerticalPodAutoscaler get what is recommended; `None` if only new pods do, or none.
    fn way(&self, vpa: &VerticalPodAutoscaler) -> Option<Way> {
        let (settings, behaviour) = (&self.settings, self.settings.behaviour);
        match settings.mode(&vpa.update) {
            UpdateMode::Off | UpdateMode::Initial => None,
            UpdateMode::Recreate | UpdateMode::Auto => Some(Way::Evict),
            UpdateMode::InPlaceOrRecreate => {
                let in_place = behaviour.in_place_or_recreate.is_on(settings.in_place_or_recreate);
                Some(if in_place { Way::ResizeOrEvict } else { Way::Evict })
            }
            UpdateMode::InPlace => (settings.in_place && behaviour.knows_in_place).then_some(Way::Resize),
        }
    }
}
