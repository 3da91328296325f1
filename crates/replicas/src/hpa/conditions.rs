//! The conditions that the controller keeps in an autoscaler's status.

use nodecast_model::domain::SimTime;

/// Declares the reasons with their meanings, which serve as documentation.
macro_rules! condition_reasons {
    ($($name:ident = $meaning:literal;)*) => {
        /// Why a condition holds or does not. Names are those that Kubernetes prints.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ConditionReason {
            $(#[doc = concat!("Because ", $meaning, ".")] $name,)*
        }

        impl ConditionReason {
            /// The reason as Kubernetes prints it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

condition_reasons! {
    SucceededGetScale = "the target's replica count was read";
    SucceededRescale = "the target was given a new replica count";
    ReadyForNewScale = "no earlier recommendation holds the count";
    ScaleUpStabilized = "a lower recommendation within the scale-up window holds the count down";
    ScaleDownStabilized = "a higher recommendation within the scale-down window holds the count up";
    ValidMetricFound = "a replica count was computed from the metrics";
    ScalingDisabled = "the target has no replicas, which disables scaling";
    FailedGetResourceMetric = "a resource metric could not be used";
    FailedGetContainerResourceMetric = "a container resource metric could not be used";
    FailedGetPodsMetric = "a pods metric could not be used";
    FailedGetObjectMetric = "an object metric could not be used";
    FailedGetExternalMetric = "an external metric could not be used";
    InvalidMetricSourceType = "a metric has an unknown type";
    InvalidSelector = "the target's pod selector is missing or malformed";
    AmbiguousSelector = "the target's pods are selected by another autoscaler too";
    DesiredWithinRange = "the wanted count is within all limits";
    TooFewReplicas = "the wanted count is below the minimum";
    TooManyReplicas = "the wanted count is above the maximum";
    ScaleUpLimit = "the wanted count grows faster than allowed";
    ScaleDownLimit = "the wanted count shrinks faster than allowed";
    ScaledToZero = "the autoscaler itself took the target to zero";
    NotScaledToZero = "the autoscaler did not take the target to zero";
}

/// One condition; `None` inside until the controller first states it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Condition(Option<ConditionState>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ConditionState {
    holds: bool,
    reason: ConditionReason,
    since: SimTime,
}

impl Condition {
    /// States the condition; the instant of its last transition moves only when it turns from true to false or back.
    pub fn set(&mut self, holds: bool, reason: ConditionReason, now: SimTime) {
        let since = self.0.filter(|old| old.holds == holds).map_or(now, |old| old.since);
        self.0 = Some(ConditionState { holds, reason, since });
    }

    /// Whether the condition was stated and is true.
    pub fn is_true(self) -> bool {
        self.0.is_some_and(|stated| stated.holds)
    }

    /// Whether it holds, once stated.
    pub fn holds(self) -> Option<bool> {
        self.0.map(|stated| stated.holds)
    }

    /// Why, once stated.
    pub fn reason(self) -> Option<ConditionReason> {
        self.0.map(|stated| stated.reason)
    }

    /// Since when it has been true, or false, once stated.
    pub fn since(self) -> Option<SimTime> {
        self.0.map(|stated| stated.since)
    }
}

/// Writes `True/ReadyForNewScale`, or `Unknown` before the condition was first stated.
impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(ConditionState { holds, reason, .. }) => {
                write!(f, "{}/{}", if holds { "True" } else { "False" }, reason.as_str())
            }
            None => f.write_str("Unknown"),
        }
    }
}

/// The conditions of one autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Conditions {
    /// `AbleToScale`: whether the target can be read and written, and whether an earlier recommendation holds the count.
    pub able_to_scale: Condition,
    /// `ScalingActive`: whether the metrics give a count.
    pub scaling_active: Condition,
    /// `ScalingLimited`: whether a limit changed the wanted count.
    pub scaling_limited: Condition,
    /// `ScaledToZero`, from Kubernetes 1.37: whether this controller took the target to zero.
    pub scaled_to_zero: Condition,
}
