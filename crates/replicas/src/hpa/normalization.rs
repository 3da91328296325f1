//! From the metrics' proposal to a count within all limits.
//!
//! Two paths, as in the controller. Without a behavior block: stabilization downwards, and at most a doubling (four at
//! least) in one pass. With one: two windows, and rate policies against the changes written before. An empty block is not
//! the same as none: from three replicas one pass may reach seven with it and six without.

use super::conditions::ConditionReason;
use super::parameters::HpaParameters;
use super::state::{HpaState, Recommendation, ScaleEvent};
use nodecast_model::domain::hpa::{
    Behavior, HorizontalPodAutoscaler, ScalingPolicy, ScalingPolicyKind, ScalingRules, SelectPolicy,
};
use nodecast_model::domain::{SimDuration, SimTime};

const FIFTEEN_SECONDS: SimDuration = SimDuration::from_secs(15);

/// The API's default policies upwards.
const DEFAULT_UP: &[ScalingPolicy] = &[
    ScalingPolicy { kind: ScalingPolicyKind::Pods, value: 4, period: FIFTEEN_SECONDS },
    ScalingPolicy { kind: ScalingPolicyKind::Percent, value: 100, period: FIFTEEN_SECONDS },
];
/// The API's default policy downwards.
const DEFAULT_DOWN: &[ScalingPolicy] =
    &[ScalingPolicy { kind: ScalingPolicyKind::Percent, value: 100, period: FIFTEEN_SECONDS }];

/// A count within all limits, and what limited it.
pub(super) struct Normalized {
    pub replicas: i32,
    pub stability: ConditionReason,
    pub limited: bool,
    pub limit: ConditionReason,
}

/// Step 5 of a pass, for (current, proposal, minimum).
pub(super) fn normalize(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    (current, proposal, min): (i32, i32, i32),
    now: SimTime,
    parameters: &HpaParameters,
) -> Normalized {
    let log = state.recommendations.get_or_insert_with(Vec::new);
    let max = hpa.max_replicas;
    let (stable, stability, (mut replicas, limit)) = match &hpa.behavior {
        None => {
            let stable = stabilize_without_behavior(log, proposal, parameters.downscale_stabilization, now);
            let held = stable != proposal;
            let why = if held { ConditionReason::ScaleDownStabilized } else { ConditionReason::ReadyForNewScale };
            (stable, why, clamp_without_behavior(current, stable, (min, max), parameters.scale_up_limit_factor))
        }
        Some(behavior) => {
            let windows = stabilization_windows(behavior, parameters);
            let (stable, why) = stabilize_with_behavior(log, (current, proposal), windows, now);
            let bounds = BehaviorBounds { behavior, min, max };
            let events = (state.scale_up_events.as_slice(), state.scale_down_events.as_slice());
            (stable, why, limit_rate((current, stable), bounds, events, now))
        }
    };
    let limited = replicas != stable;
    if current == 0 && replicas < min {
        // The minimum was raised while this controller held the target at zero (Kubernetes 1.37): no limit, says the
        // condition, which the controller has stated before.
        replicas = min;
    }
    Normalized { replicas, stability, limited, limit }
}

/// The largest of the proposal and the log's entries that are not older than `window`; an entry exactly that old counts.
/// Records the proposal: in the slot of the last older entry in list order, else in a new one.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `stabilizeRecommendation`.
pub fn stabilize_without_behavior(
    log: &mut Vec<Recommendation>,
    proposal: i32,
    window: SimDuration,
    now: SimTime,
) -> i32 {
    let mut highest = proposal;
    // Beyond the last slot, which stands for none.
    let mut reusable = log.len();
    let window_began = now - window;
    for (slot, entry) in log.iter().enumerate() {
        // One of twenty is old, and never the one of the pass before: told apart without a branch.
        let is_old = entry.at < window_began;
        reusable = if is_old { slot } else { reusable };
        highest = highest.max(if is_old { i32::MIN } else { entry.replicas });
    }
    record(log, reusable, Recommendation { replicas: proposal, at: now });
    highest
}

fn record<T>(slots: &mut Vec<T>, reusable: usize, entry: T) {
    match slots.get_mut(reusable) {
        Some(slot) => *slot = entry,
        None => slots.push(entry),
    }
}

/// Limits a stabilized count without a behavior block to (min, max) and to `max(factor * current, 4)`.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `convertDesiredReplicasWithRules`, `calculateScaleUpLimit`.
pub fn clamp_without_behavior(
    current: i32,
    desired: i32,
    (min, max): (i32, i32),
    factor: f64,
) -> (i32, ConditionReason) {
    let limit = libm::fmax(factor * f64::from(current), 4.0) as i32;
    let (upper, reason) =
        if max > limit { (limit, ConditionReason::ScaleUpLimit) } else { (max, ConditionReason::TooManyReplicas) };
    if desired < min {
        (min, ConditionReason::TooFewReplicas)
    } else if desired > upper {
        (upper, reason)
    } else {
        (desired, ConditionReason::DesiredWithinRange)
    }
}

/// The windows upwards and downwards of a behavior block, filled from the API's default and the controller's flag.
pub fn stabilization_windows(behavior: &Behavior, parameters: &HpaParameters) -> (SimDuration, SimDuration) {
    (
        behavior.scale_up.stabilization_window.unwrap_or(SimDuration::ZERO),
        behavior.scale_down.stabilization_window.unwrap_or(parameters.downscale_stabilization),
    )
}

/// Stabilizes (current, proposal) by two windows (up, down): a rise must have been asked for throughout the first, a fall
/// throughout the second. Entries exactly as old as a window no longer count. Records the proposal in the slot of the last
/// entry older than both, else in a new one. The reason is `ReadyForNewScale` where nothing held.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `stabilizeRecommendationWithBehaviors`.
pub fn stabilize_with_behavior(
    log: &mut Vec<Recommendation>,
    (current, proposal): (i32, i32),
    (up_window, down_window): (SimDuration, SimDuration),
    now: SimTime,
) -> (i32, ConditionReason) {
    let (mut lowest, mut highest) = (proposal, proposal);
    let mut reusable = log.len();
    for (slot, entry) in log.iter().enumerate() {
        let age = now - entry.at;
        if age < up_window {
            lowest = lowest.min(entry.replicas);
        }
        if age < down_window {
            highest = highest.max(entry.replicas);
        }
        if age > up_window && age > down_window {
            reusable = slot;
        }
    }
    record(log, reusable, Recommendation { replicas: proposal, at: now });
    let stable = current.max(lowest).min(highest);
    let reason = if stable == proposal {
        ConditionReason::ReadyForNewScale
    } else if proposal >= current {
        ConditionReason::ScaleUpStabilized
    } else {
        ConditionReason::ScaleDownStabilized
    };
    (stable, reason)
}

/// The rules and bounds that limit a change when there is a behavior block.
#[derive(Clone, Copy, Debug)]
pub struct BehaviorBounds<'a> {
    /// The block.
    pub behavior: &'a Behavior,
    /// `minReplicas`.
    pub min: i32,
    /// `maxReplicas`.
    pub max: i32,
}

/// Limits (current, stabilized) by the rate policies of a behavior block and by its bounds; a count that does not change is
/// not limited at all. `events` are the changes written before, upwards and downwards.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `convertDesiredReplicasWithBehaviorRate`.
pub fn limit_rate(
    (current, desired): (i32, i32),
    bounds: BehaviorBounds<'_>,
    events: (&[ScaleEvent], &[ScaleEvent]),
    now: SimTime,
) -> (i32, ConditionReason) {
    let BehaviorBounds { behavior, min, max } = bounds;
    if desired > current {
        let limit = rate_limit(current, &behavior.scale_up, Direction::Up, events, now).max(current);
        let (upper, reason) =
            if max > limit { (limit, ConditionReason::ScaleUpLimit) } else { (max, ConditionReason::TooManyReplicas) };
        if desired > upper {
            return (upper, reason);
        }
    } else if desired < current {
        let limit = rate_limit(current, &behavior.scale_down, Direction::Down, events, now).min(current);
        let (lower, reason) =
            if min < limit { (limit, ConditionReason::ScaleDownLimit) } else { (min, ConditionReason::TooFewReplicas) };
        if desired < lower {
            return (lower, reason);
        }
    }
    (desired, ConditionReason::DesiredWithinRange)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// How far the policies of one direction let the count go.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `calculateScaleUpLimitWithScalingRules`, `calculateScaleDownLimitWithBehaviors`.
fn rate_limit(
    current: i32,
    rules: &ScalingRules,
    direction: Direction,
    (added, removed): (&[ScaleEvent], &[ScaleEvent]),
    now: SimTime,
) -> i32 {
    let default = if direction == Direction::Up { DEFAULT_UP } else { DEFAULT_DOWN };
    let policies = rules.policies.as_deref().unwrap_or(default);
    let reached =
        policies.iter().map(|policy| {
            let base = current
                .saturating_sub(replica_change(added, policy.period, now))
                .saturating_add(replica_change(removed, policy.period, now));
            match (policy.kind, direction) {
                (ScalingPolicyKind::Pods, Direction::Up) => base.saturating_add(policy.value),
                (ScalingPolicyKind::Pods, Direction::Down) => base.saturating_sub(policy.value),
                // Rounded up, so that a small percentage of few replicas still lets one be added.
                (ScalingPolicyKind::Percent, Direction::Up) => {
                    libm::ceil(f64::from(base) * (1.0 + f64::from(policy.value) / 100.0)) as i32
                }
                (ScalingPolicyKind::Percent, Direction::Down) => {
                    (f64::from(base) * (1.0 - f64::from(policy.value) / 100.0)) as i32
                }
            }
        });
    // The largest change is the highest count upwards and the lowest downwards. Without any policy nothing may change.
    let highest = (direction == Direction::Up) == (rules.select_policy != Some(SelectPolicy::Min));
    match rules.select_policy {
        Some(SelectPolicy::Disabled) => None,
        _ if highest => reached.max(),
        _ => reached.min(),
    }
    .unwrap_or(current)
}

/// How many replicas the stored changes younger than `period` sum up to.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `getReplicasChangePerPeriod`.
pub fn replica_change(events: &[ScaleEvent], period: SimDuration, now: SimTime) -> i32 {
    events.iter().filter(|event| now - event.at < period).fold(0, |sum, event| sum.saturating_add(event.change))
}

/// The longest period of the policies of one direction. Both directions' default policies have the same.
pub fn longest_policy_period(rules: &ScalingRules) -> SimDuration {
    let policies = rules.policies.as_deref().unwrap_or(DEFAULT_UP);
    policies.iter().map(|policy| policy.period).max().unwrap_or(SimDuration::ZERO)
}

/// Stores a change that was written: flags entries older than `longest_period`, then takes the slot of the last flagged one,
/// or a new one.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `storeScaleEvent`, `markScaleEventsOutdated`.
pub fn store_scale_event(events: &mut Vec<ScaleEvent>, change: i32, longest_period: SimDuration, now: SimTime) {
    let mut reusable = events.len();
    for (slot, event) in events.iter_mut().enumerate() {
        event.outdated |= now - event.at > longest_period;
        if event.outdated {
            reusable = slot;
        }
    }
    record(events, reusable, ScaleEvent { change, at: now, outdated: false });
}
