//! What the controller remembers about one autoscaler between passes.

use super::conditions::Conditions;
use nodecast_model::domain::SimTime;

/// One entry of the recommendation log: a proposal before stabilization.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recommendation {
    /// Replicas proposed.
    pub replicas: i32,
    /// When.
    pub at: SimTime,
}

/// One change that was written, kept for rate policies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScaleEvent {
    /// By how many replicas, without its sign.
    pub change: i32,
    /// When.
    pub at: SimTime,
    /// Older than the longest policy period when last looked at: its slot may be used again.
    pub outdated: bool,
}

/// What the controller remembers about one autoscaler. A controller that restarts begins with the default, and then cannot
/// shrink its target for a whole scale-down window.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HpaState {
    /// The recommendation log; `None` before the first pass, which seeds it with the current count.
    pub recommendations: Option<Vec<Recommendation>>,
    /// Changes upwards, in the order of their slots.
    pub scale_up_events: Vec<ScaleEvent>,
    /// Changes downwards, in the order of their slots.
    pub scale_down_events: Vec<ScaleEvent>,
    /// The conditions in the status.
    pub conditions: Conditions,
    /// When a new count was last written.
    pub last_scale_time: Option<SimTime>,
    /// `desiredReplicas` in the status.
    pub desired_replicas: i32,
}

impl HpaState {
    /// Creates the recommendation log with the current count if there is none yet.
    pub(super) fn seed(&mut self, current: i32, now: SimTime) {
        if self.recommendations.is_none() {
            self.recommendations = Some(vec![Recommendation { replicas: current, at: now }]);
        }
    }
}
