//! How long the loops of controllers took: sums, which cost the same however long the run is.

use super::World;
use crate::control_plane::call_limit::Used;
use crate::domain::SimDuration;
use crate::domain::controller_time::CallRate;

/// A loop whose time is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerLoop {
    /// Karpenter's scheduling passes.
    KarpenterPass,
    /// Looks and validations of Karpenter's disruption loop.
    KarpenterLook,
    /// Iterations of the Cluster Autoscaler's main loop.
    AutoscalerIteration,
}

impl ControllerLoop {
    /// Every loop, in the order of [`ControllerLoops::facts`].
    pub const ALL: [Self; 3] = [Self::KarpenterPass, Self::KarpenterLook, Self::AutoscalerIteration];

    /// What the loop does, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KarpenterPass => "karpenter scheduling",
            Self::KarpenterLook => "karpenter disruption",
            Self::AutoscalerIteration => "cluster-autoscaler",
        }
    }
}

/// What a loop took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopFacts {
    /// How often it ran.
    pub runs: u64,
    /// How long it was busy in all.
    pub busy: SimDuration,
    /// The longest run.
    pub longest: SimDuration,
    /// Runs that a limit of time cut short.
    pub cut: u64,
}

/// What the limit of a client of the API server came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitFacts {
    /// Whose client.
    pub client: &'static str,
    /// The limit.
    pub rate: CallRate,
    /// Calls made.
    pub calls: u64,
    /// How many of them had to wait.
    pub delayed: u64,
    /// The longest wait.
    pub longest: SimDuration,
    /// The longest time for which calls waited without a pause.
    pub held: SimDuration,
}

impl LimitFacts {
    /// What the limit of a client came to that made calls.
    pub fn new(client: &'static str, rate: CallRate, used: Used) -> Option<Self> {
        let Used { calls, delayed, longest, held } = used;
        (calls > 0).then_some(Self { client, rate, calls, delayed, longest, held })
    }
}

/// Passes over HorizontalPodAutoscalers, of which so many are evaluated at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AutoscalerPasses {
    /// How many at a time.
    pub at_once: u32,
    /// Passes.
    pub passes: u64,
    /// How many of them had to wait.
    pub delayed: u64,
    /// The longest wait.
    pub longest: SimDuration,
}

/// What each loop took and what limits on calls came to; nothing where controllers take no time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ControllerLoops {
    loops: [LoopFacts; ControllerLoop::ALL.len()],
    /// Clients that made calls.
    pub limits: Vec<LimitFacts>,
    /// Passes over autoscalers, where they take time and there are any.
    pub autoscalers: Option<AutoscalerPasses>,
    /// The limit of kube-scheduler's client, where it has one.
    pub scheduler: Option<CallRate>,
}

impl ControllerLoops {
    /// What a loop took.
    pub const fn facts(&self, controller_loop: ControllerLoop) -> LoopFacts {
        self.loops[controller_loop as usize]
    }
}

impl World {
    /// A loop has run for so long; `cut` if a limit of time stopped it.
    pub fn note_loop(&mut self, controller_loop: ControllerLoop, took: SimDuration, cut: bool) {
        let facts = &mut self.record.controllers.loops[controller_loop as usize];
        facts.runs += 1;
        facts.busy += took;
        facts.longest = facts.longest.max(took);
        facts.cut += u64::from(cut);
    }
}
