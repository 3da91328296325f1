//! The HorizontalPodAutoscaler controller's decision: from a specification, what the controller remembers and what it
//! reads, to a replica count with its reasons.
//!
//! [`sync`] is one pass of the controller over one autoscaler. It reads an [`HpaView`] (slices that the caller owns, so
//! that nothing is allocated for a pod), changes the [`HpaState`] that the controller keeps between passes, and returns an
//! [`HpaDecision`]. The steps are public on their own: [`group_pods`], [`propose`], [`clamp_without_behavior`],
//! [`stabilize_without_behavior`], [`stabilize_with_behavior`], [`limit_rate`], [`store_scale_event`].
//!
//! Source: Kubernetes 1.37 `pkg/controller/podautoscaler/horizontal.go` and `replica_calculator.go`, with the behaviour of
//! earlier releases where [`HpaParameters`] selects it.

mod conditions;
mod decision;
mod normalization;
mod parameters;
mod proposals;
mod state;
mod view;

pub use conditions::{Condition, ConditionReason, Conditions};
pub use decision::{HpaDecision, HpaEvent, HpaEventReason, RescaleReason, metric_name};
pub use normalization::{
    BehaviorBounds, clamp_without_behavior, limit_rate, longest_policy_period, replica_change, stabilization_windows,
    stabilize_with_behavior, stabilize_without_behavior, store_scale_event,
};
pub use parameters::{HpaParameters, Tolerance, tolerance_of};
pub use proposals::{MetricProblem, PodGroups, Proposal, Reported, group_pods, propose};
pub use state::{HpaState, Recommendation, ScaleEvent};
pub use view::{
    HpaView, MetricReading, PodSample, PodView, ReadyCondition, Sample, SelectorProblem, SettledPods, UnknownRequest,
    pod_request_milli,
};

use std::cmp::Ordering;

use nodecast_model::domain::SimTime;
use nodecast_model::domain::hpa::{HorizontalPodAutoscaler, MetricSource, MetricSpec, MetricTarget};
use nodecast_model::domain::resources::ResourceName;

static DEFAULT_METRICS: [MetricSpec; 1] =
    [MetricSpec { source: MetricSource::Resource { name: ResourceName::CPU }, target: MetricTarget::Utilization(80) }];

/// The metrics of an autoscaler; an empty list stands for CPU utilization 80 %, which the API server would fill in.
///
/// Source: Kubernetes 1.37 `pkg/apis/autoscaling/v2/defaults.go`.
pub fn effective_metrics(hpa: &HorizontalPodAutoscaler) -> &[MetricSpec] {
    if hpa.metrics.is_empty() { &DEFAULT_METRICS } else { &hpa.metrics }
}

/// One pass of the controller over one autoscaler, the write of the new count included and taken to succeed.
///
/// `view.readings` holds one reading for each of [`effective_metrics`], in their order.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `reconcileAutoscaler`.
pub fn sync(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    view: &HpaView<'_>,
    parameters: &HpaParameters,
) -> HpaDecision {
    let mut decision = decide(hpa, state, view, parameters);
    if decision.desired != decision.current {
        confirm_write(hpa, state, &mut decision, view.now, parameters);
    }
    decision
}

/// A pass without its write: the caller then calls [`confirm_write`] if `desired` differs from
/// `current`. Most callers want [`sync`].
pub fn decide(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    view: &HpaView<'_>,
    parameters: &HpaParameters,
) -> HpaDecision {
    let (now, current) = (view.now, view.spec_replicas);
    let min = hpa.min_replicas.unwrap_or(1);
    state.conditions.able_to_scale.set(true, ConditionReason::SucceededGetScale, now);
    state.seed(current, now);
    let mut decision = HpaDecision::keep(current);
    if current == 0 && !scales_from_zero(hpa, state, min, parameters) {
        state.conditions.scaling_active.set(false, ConditionReason::ScalingDisabled, now);
    } else if current > hpa.max_replicas {
        decision.propose(hpa.max_replicas, RescaleReason::AboveMax);
    } else if current < min && current != 0 {
        decision.propose(min, RescaleReason::BelowMin);
    } else {
        decide_by_metrics(hpa, state, view, parameters, &mut decision);
    }
    if decision.failure.is_none() && decision.desired == current {
        state.desired_replicas = current;
    }
    decision
}

/// Whether an autoscaler whose target has no replicas looks at its metrics at all.
///
/// Up to 1.36 only with a minimum of zero, which is what lets KEDA own zero. From 1.37 only if this controller itself took
/// the count to zero, so that a zero set by hand pauses the autoscaler; with the gate off it never did.
fn scales_from_zero(hpa: &HorizontalPodAutoscaler, state: &HpaState, min: i32, parameters: &HpaParameters) -> bool {
    if !parameters.leaves_zero_by_condition() {
        return min == 0;
    }
    parameters.scale_to_zero && state.conditions.scaled_to_zero.is_true() && (min != 0 || has_metric_without_pods(hpa))
}

/// Whether a metric of the autoscaler can be read while there are no pods.
fn has_metric_without_pods(hpa: &HorizontalPodAutoscaler) -> bool {
    let without_pods =
        |metric: &MetricSpec| matches!(metric.source, MetricSource::Object { .. } | MetricSource::External { .. });
    effective_metrics(hpa).iter().any(without_pods)
}

/// Steps 4 and 5 of a pass: proposals, their combination, and the limits on the result.
fn decide_by_metrics(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    view: &HpaView<'_>,
    parameters: &HpaParameters,
    decision: &mut HpaDecision,
) {
    let current = decision.current;
    let Some((proposal, metric)) = combine_metrics(hpa, state, view, parameters, decision) else { return };
    let (desired, reason) = settle_on(hpa, state, (current, proposal, metric), view.now, parameters);
    decision.propose(desired, reason);
}

/// The count within all limits for (current, proposal, the metric that made it), and why another than the current one is
/// called for.
fn settle_on(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    (current, proposal, metric): (i32, i32, usize),
    now: SimTime,
    parameters: &HpaParameters,
) -> (i32, RescaleReason) {
    // A proposal below zero cannot arise from metrics; the controller starts from zero all the same.
    let proposal = proposal.max(0);
    let reason = match proposal.cmp(&current) {
        Ordering::Greater => RescaleReason::AboveTarget { metric },
        Ordering::Less => RescaleReason::AllBelowTarget,
        Ordering::Equal => RescaleReason::None,
    };
    let min = hpa.min_replicas.unwrap_or(1);
    let normalized = normalization::normalize(hpa, state, (current, proposal, min), now, parameters);
    state.conditions.able_to_scale.set(true, normalized.stability, now);
    state.conditions.scaling_limited.set(normalized.limited, normalized.limit, now);
    (normalized.replicas, reason)
}

/// The largest proposal and the metric that made it, or `None` if the pass must end without a change: all metrics failed,
/// or some failed and the rest would shrink the target.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `computeReplicasForMetrics`.
fn combine_metrics(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    view: &HpaView<'_>,
    parameters: &HpaParameters,
    decision: &mut HpaDecision,
) -> Option<(i32, usize)> {
    if let Some(problem) = view.selector_problem {
        state.conditions.scaling_active.set(false, problem.reason(), view.now);
        decision.fail(problem.reason().into(), problem.to_string(), problem.to_string());
        return None;
    }
    let metrics = effective_metrics(hpa);
    let tolerance = tolerance_of(hpa, parameters);
    let mut best: Option<(i32, usize)> = None;
    let mut first_problem: Option<usize> = None;
    for (index, metric) in metrics.iter().enumerate() {
        let reading = view.readings.get(index).copied().unwrap_or(MetricReading::Failed("nothing was read"));
        let outcome = propose(metric, reading, view, tolerance, parameters);
        match &outcome {
            Ok(proposal) => {
                // A best of zero gives way even to another zero, so that the later metric names the reason.
                if best.is_none_or(|(replicas, _)| replicas == 0 || proposal.replicas > replicas) {
                    best = Some((proposal.replicas, index));
                }
            }
            Err(problem) => {
                decision.events.push(HpaEvent::warning(problem.reason.into(), problem.text.clone()));
                first_problem = first_problem.or(Some(index));
            }
        }
        decision.proposals.push(outcome);
    }
    let failed =
        first_problem.and_then(|index| decision.proposals[index].as_ref().err().map(|problem| (index, problem)));
    if let Some((index, problem)) = failed
        && best.is_none_or(|(replicas, _)| replicas < decision.current)
    {
        let count = decision.proposals.iter().filter(|outcome| outcome.is_err()).count();
        let text = format!(
            "invalid metrics ({count} invalid out of {}), first error is: {}{}",
            metrics.len(),
            decision::failure_prefix(&metrics[index], problem.reason),
            problem.text
        );
        let reason = problem.reason;
        state.conditions.scaling_active.set(false, reason, view.now);
        decision.fail(HpaEventReason::FailedComputeMetricsReplicas, text.clone(), text);
        return None;
    }
    state.conditions.scaling_active.set(true, ConditionReason::ValidMetricFound, view.now);
    best
}

/// Records that the new count was written: condition, event, last scale time, and with a behavior block the change itself.
pub fn confirm_write(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    decision: &mut HpaDecision,
    now: SimTime,
    parameters: &HpaParameters,
) {
    let (current, desired) = (decision.current, decision.desired);
    state.conditions.able_to_scale.set(true, ConditionReason::SucceededRescale, now);
    let text = format!("New size: {desired}; reason: {}", decision.reason.text(effective_metrics(hpa)));
    decision.events.push(HpaEvent::normal(HpaEventReason::SuccessfulRescale, text));
    if let Some(behavior) = &hpa.behavior {
        if desired > current {
            let period = longest_policy_period(&behavior.scale_up);
            store_scale_event(&mut state.scale_up_events, desired.saturating_sub(current), period, now);
        } else {
            let period = longest_policy_period(&behavior.scale_down);
            store_scale_event(&mut state.scale_down_events, current.saturating_sub(desired), period, now);
        }
    }
    if parameters.remembers_scaling_to_zero() {
        let to_zero = desired == 0 && current > 0 && hpa.min_replicas == Some(0) && has_metric_without_pods(hpa);
        let reason = if to_zero { ConditionReason::ScaledToZero } else { ConditionReason::NotScaledToZero };
        state.conditions.scaled_to_zero.set(to_zero, reason, now);
    } else {
        // What a controller with the gate on left behind goes with the next write.
        state.conditions.scaled_to_zero = Condition::default();
    }
    state.desired_replicas = desired;
    state.last_scale_time = Some(now);
}

#[cfg(test)]
mod tests;
