use proptest::prelude::*;

use super::*;
use nodecast_model::domain::hpa::{Behavior, ScaleTargetRef, ScalingRules};
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::quantity::Quantity;
use nodecast_model::domain::{KubernetesVersion, SimDuration, Symbol};

fn at(secs: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(secs)
}

fn cpu(percent: i32) -> MetricSpec {
    MetricSpec {
        source: MetricSource::Resource { name: ResourceName::CPU },
        target: MetricTarget::Utilization(percent),
    }
}

fn external(average_milli: i64) -> MetricSpec {
    MetricSpec {
        source: MetricSource::External { metric: Symbol::new("queue"), selector: None },
        target: MetricTarget::AverageValue(Quantity::from_nanos(i128::from(average_milli) * 1_000_000)),
    }
}

fn autoscaler(min: i32, max: i32, metrics: Vec<MetricSpec>, behavior: Option<Behavior>) -> HorizontalPodAutoscaler {
    HorizontalPodAutoscaler {
        namespace: Symbol::new("web"),
        name: Symbol::new("frontend"),
        target: ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("frontend") },
        min_replicas: Some(min),
        max_replicas: max,
        metrics,
        behavior,
    }
}

const OLD_AND_READY: PodView = PodView {
    phase: PodPhase::Running,
    deleting: false,
    start_time: Some(SimTime::from_micros(-1_000_000_000_000)),
    ready: Some(ReadyCondition { ready: true, since: SimTime::from_micros(-1_000_000_000_000) }),
};

fn sampled(usage: i64, request: i64, now: SimTime) -> PodSample {
    let sample = Sample { milli: usage, at: now, window: SimDuration::from_secs(15) };
    PodSample { sample: Some(sample), request: Some(request) }
}

/// One pass over `replicas` old, ready pods that each use `usage` of a request of 1000 millicores.
fn pass(hpa: &HorizontalPodAutoscaler, state: &mut HpaState, replicas: i32, usage: i64, now: SimTime) -> HpaDecision {
    let pods = vec![OLD_AND_READY; replicas.unsigned_abs() as usize];
    let samples = vec![sampled(usage, 1_000, now); pods.len()];
    let readings = [MetricReading::PerPod { samples: &samples, unmatched: &[] }];
    let view = HpaView {
        now,
        spec_replicas: replicas,
        status_replicas: replicas,
        pods: &pods,
        settled: SettledPods::default(),
        readings: &readings,
        selector_problem: None,
    };
    sync(hpa, state, &view, &HpaParameters::default())
}

fn external_pass(
    hpa: &HorizontalPodAutoscaler,
    state: &mut HpaState,
    replicas: i32,
    reading: MetricReading<'_>,
    version: u8,
) -> HpaDecision {
    let view = HpaView {
        now: at(1_000),
        spec_replicas: replicas,
        status_replicas: replicas,
        pods: &[],
        settled: SettledPods::default(),
        readings: &[reading],
        selector_problem: None,
    };
    let version = KubernetesVersion::from_minor(version).unwrap_or_default();
    sync(hpa, state, &view, &HpaParameters::for_version(version))
}

#[test]
fn empty_hpa_behavior_allows_one_extra_replica() {
    let without = autoscaler(1, 100, vec![cpu(10)], None);
    let with = autoscaler(1, 100, vec![cpu(10)], Some(Behavior::default()));
    assert_eq!(pass(&without, &mut HpaState::default(), 3, 900, at(0)).desired, 6);
    assert_eq!(pass(&with, &mut HpaState::default(), 3, 900, at(0)).desired, 7);
}

#[test]
fn new_hpa_cannot_scale_down_for_300_seconds() {
    let hpa = autoscaler(1, 10, vec![cpu(50)], None);
    let mut state = HpaState::default();
    assert_eq!(pass(&hpa, &mut state, 4, 100, at(0)).desired, 4);
    assert_eq!(state.conditions.able_to_scale.reason(), Some(ConditionReason::ScaleDownStabilized));
    // An entry exactly 300 s old still counts.
    assert_eq!(pass(&hpa, &mut state, 4, 100, at(300)).desired, 4);
    let decision = pass(&hpa, &mut state, 4, 100, at(315));
    assert_eq!(decision.desired, 1);
    assert_eq!(decision.events[0].text, "New size: 1; reason: All metrics below target");
    assert_eq!(state.last_scale_time, Some(at(315)));
}

#[test]
fn the_recommendation_log_reuses_its_slots() {
    let hpa = autoscaler(1, 10, vec![cpu(50)], None);
    let mut state = HpaState::default();
    for tick in 0..10_000 {
        pass(&hpa, &mut state, 4, 200, at(tick * 15));
    }
    let entries = state.recommendations.as_ref().map_or(0, Vec::len);
    assert!(entries <= 23, "the log grew to {entries} entries");
}

#[test]
fn utilization_is_truncated_before_hpa_ratio() {
    let hpa = autoscaler(1, 1_000, vec![cpu(100)], None);
    let mut state = HpaState { recommendations: Some(Vec::new()), ..HpaState::default() };
    assert_eq!(pass(&hpa, &mut state, 100, 550, at(0)).desired, 56);
}

#[test]
fn rescale_event_names_metric_with_highest_demand() {
    let hpa = autoscaler(1, 100, vec![cpu(50)], None);
    let decision = pass(&hpa, &mut HpaState::default(), 3, 100 * 10, at(0));
    let text = "New size: 6; reason: cpu resource utilization (percentage of request) above target";
    assert_eq!(decision.events.last().map(|event| event.text.as_str()), Some(text));
}

#[test]
fn a_failing_metric_vetoes_shrinking_and_says_why() {
    let hpa = autoscaler(1, 10, vec![external(1_000)], None);
    let mut state = HpaState { desired_replicas: 3, ..HpaState::default() };
    let decision = external_pass(&hpa, &mut state, 3, MetricReading::Failed("no answer"), 36);
    assert!(!decision.rescales());
    let failure = "invalid metrics (1 invalid out of 1), first error is: failed to get queue external metric value: \
                   failed to get queue external metric: no answer";
    assert_eq!(decision.failure.as_deref(), Some(failure));
    assert_eq!(state.conditions.scaling_active.to_string(), "False/FailedGetExternalMetric");
    assert_eq!(state.desired_replicas, 3);
}

#[test]
fn hpa_1_36_needs_zero_minimum_to_wake() {
    let kept = autoscaler(1, 10, vec![external(1_000)], None);
    let mut state = HpaState::default();
    assert_eq!(external_pass(&kept, &mut state, 0, MetricReading::Series(&[5_000]), 36).desired, 0);
    assert_eq!(state.conditions.scaling_active.to_string(), "False/ScalingDisabled");
    let woken = autoscaler(0, 10, vec![external(1_000)], None);
    assert_eq!(external_pass(&woken, &mut HpaState::default(), 0, MetricReading::Series(&[3_000]), 36).desired, 3);
}

#[test]
fn hpa_1_37_wakes_only_targets_it_zeroed() {
    let hpa = autoscaler(0, 10, vec![external(1_000)], None);
    let mut by_hand = HpaState::default();
    assert_eq!(external_pass(&hpa, &mut by_hand, 0, MetricReading::Series(&[3_000]), 37).desired, 0);
    let mut hpa_state = HpaState { recommendations: Some(Vec::new()), ..HpaState::default() };
    assert_eq!(external_pass(&hpa, &mut hpa_state, 2, MetricReading::Series(&[0]), 37).desired, 0);
    assert_eq!(hpa_state.conditions.scaled_to_zero.to_string(), "True/ScaledToZero");
    assert_eq!(external_pass(&hpa, &mut hpa_state, 0, MetricReading::Series(&[3_000]), 37).desired, 3);
    assert_eq!(hpa_state.conditions.scaled_to_zero.to_string(), "False/NotScaledToZero");
}

#[test]
fn hpa_1_37_without_gate_stays_at_zero() {
    let hpa = autoscaler(0, 10, vec![external(1_000)], None);
    let mut state = HpaState { recommendations: Some(Vec::new()), ..HpaState::default() };
    state.conditions.scaled_to_zero.set(true, ConditionReason::ScaledToZero, at(0));
    let gate_off = HpaParameters {
        scale_to_zero: false,
        ..HpaParameters::for_version(KubernetesVersion::from_minor(37).unwrap_or_default())
    };
    let view = |replicas, readings| HpaView {
        now: at(1_000),
        spec_replicas: replicas,
        status_replicas: replicas,
        pods: &[],
        settled: SettledPods::default(),
        readings,
        selector_problem: None,
    };
    let decision = sync(&hpa, &mut state, &view(0, &[MetricReading::Series(&[3_000])]), &gate_off);
    assert!(!decision.rescales() && decision.proposals.is_empty());
    assert_eq!(state.conditions.scaling_active.to_string(), "False/ScalingDisabled");
    sync(&hpa, &mut state, &view(2, &[MetricReading::Series(&[3_000])]), &gate_off);
    assert_eq!(state.conditions.scaled_to_zero.to_string(), "Unknown");
}

#[test]
fn hpa_1_37_leaves_zero_for_raised_minimum() {
    let mut state = HpaState { recommendations: Some(Vec::new()), ..HpaState::default() };
    let hpa = autoscaler(0, 10, vec![external(1_000)], Some(Behavior::default()));
    assert_eq!(external_pass(&hpa, &mut state, 2, MetricReading::Series(&[0]), 37).desired, 0);
    let raised = autoscaler(2, 10, vec![external(1_000)], Some(Behavior::default()));
    assert_eq!(external_pass(&raised, &mut state, 0, MetricReading::Series(&[0]), 37).desired, 2);
    assert_eq!(state.conditions.scaling_limited.to_string(), "False/DesiredWithinRange");
}

#[test]
fn in_tolerance_average_value_keeps_existing_pod_count() {
    let hpa = autoscaler(1, 10, vec![external(1_000)], None);
    let view = HpaView {
        now: at(0),
        spec_replicas: 6,
        status_replicas: 4,
        pods: &[],
        settled: SettledPods::default(),
        readings: &[MetricReading::Series(&[4_000])],
        selector_problem: None,
    };
    let decision = decide(&hpa, &mut HpaState::default(), &view, &HpaParameters::default());
    assert_eq!(decision.proposals.first().and_then(|one| one.as_ref().ok()).map(|one| one.replicas), Some(4));
}

#[test]
fn an_ambiguous_selector_stops_the_pass() {
    let hpa = autoscaler(1, 10, vec![cpu(50)], None);
    let view = HpaView {
        now: at(0),
        spec_replicas: 3,
        status_replicas: 3,
        pods: &[OLD_AND_READY; 3],
        settled: SettledPods::default(),
        readings: &[],
        selector_problem: Some(SelectorProblem::Ambiguous),
    };
    let mut state = HpaState::default();
    assert!(!sync(&hpa, &mut state, &view, &HpaParameters::default()).rescales());
    assert_eq!(state.conditions.scaling_active.to_string(), "False/AmbiguousSelector");
}

fn any_behavior() -> impl Strategy<Value = Option<Behavior>> {
    let rules = || {
        (proptest::option::of(0_i64..600), any::<bool>()).prop_map(|(window, disabled)| ScalingRules {
            stabilization_window: window.map(SimDuration::from_secs),
            select_policy: disabled.then_some(nodecast_model::domain::hpa::SelectPolicy::Disabled),
            ..ScalingRules::default()
        })
    };
    proptest::option::of((rules(), rules()).prop_map(|(scale_up, scale_down)| Behavior { scale_up, scale_down }))
}

proptest! {
    #[test]
    fn hpa_replicas_stay_within_spec_bounds(
        min in 1_i32..20,
        extra in 0_i32..80,
        replicas in 1_i32..120,
        target in 1_i32..200,
        loads in proptest::collection::vec(0_i64..5_000, 1..12),
        behavior in any_behavior(),
    ) {
        let hpa = autoscaler(min, min + extra, vec![cpu(target)], behavior);
        let mut state = HpaState::default();
        let mut current = replicas;
        for (tick, load) in loads.into_iter().enumerate() {
            let decision = pass(&hpa, &mut state, current, load, at(tick as i64 * 15));
            if decision.rescales() {
                prop_assert!((min..=min + extra).contains(&decision.desired), "{decision:?}");
            }
            current = decision.desired;
        }
    }

    #[test]
    fn default_hpa_at_most_doubles_or_reaches_four(
        replicas in 1_i32..200,
        target in 1_i32..100,
        load in 0_i64..100_000,
    ) {
        let hpa = autoscaler(1, 100_000, vec![cpu(target)], None);
        let decision = pass(&hpa, &mut HpaState::default(), replicas, load, at(0));
        prop_assert!(decision.desired <= (2 * replicas).max(4));
    }

    #[test]
    fn more_load_never_proposes_fewer_replicas(
        replicas in 1_i32..60,
        target in 1_i32..150,
        load in 0_i64..4_000,
        more in 0_i64..4_000,
    ) {
        let hpa = autoscaler(1, i32::MAX, vec![cpu(target)], None);
        let proposed = |load| {
            let decision = pass(&hpa, &mut HpaState::default(), replicas, load, at(0));
            decision.proposals.first().and_then(|one| one.as_ref().ok()).map(|one| one.replicas)
        };
        prop_assert!(proposed(load) <= proposed(load + more));
    }

    #[test]
    fn summing_settled_pods_up_beforehand_changes_no_decision(
        usage in proptest::collection::vec((0_i64..3_000, 100_i64..2_000), 0..20),
        replicas in 1_i32..40,
        apart in 0_usize..20,
        waiting in 0_usize..3,
        target in 1_i32..150,
    ) {
        let hpa = autoscaler(1, 100, vec![cpu(target)], None);
        let waits = PodView { phase: PodPhase::Pending, deleting: false, start_time: None, ready: None };
        let decided = |apart: usize| {
            let (summed, shown) = usage.split_at(apart.min(usage.len()));
            let pods = [vec![OLD_AND_READY; shown.len()], vec![waits; waiting]].concat();
            let samples: Vec<PodSample> = shown.iter().map(|&(usage, request)| sampled(usage, request, at(0))).collect();
            let none = vec![PodSample { sample: None, request: Some(500) }; waiting];
            let view = HpaView {
                now: at(0),
                spec_replicas: replicas,
                status_replicas: (usage.len() + waiting) as i32,
                pods: &pods,
                settled: SettledPods {
                    pods: summed.len() as i64,
                    usage_milli: summed.iter().map(|&(usage, _)| i128::from(usage)).sum(),
                    request_milli: summed.iter().map(|&(_, request)| i128::from(request)).sum(),
                },
                readings: &[MetricReading::PerPod { samples: &[samples, none].concat(), unmatched: &[] }],
                selector_problem: None,
            };
            sync(&hpa, &mut HpaState::default(), &view, &HpaParameters::default())
        };
        prop_assert_eq!(decided(apart), decided(0));
    }
}
