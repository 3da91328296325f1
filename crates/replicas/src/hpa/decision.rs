//! What a pass decides, and the texts in which the controller says so.

use smallvec::SmallVec;

use super::conditions::ConditionReason;
use super::proposals::{MetricProblem, Proposal};
use nodecast_model::domain::hpa::{MetricSource, MetricSpec, MetricTarget};
use nodecast_model::domain::labels::LabelSelector;

/// What a pass decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HpaDecision {
    /// The count that the target had been told.
    pub current: i32,
    /// The count that it is to be told; the same if nothing changes.
    pub desired: i32,
    /// Why the metrics (or the bounds) call for another count. It may be set although the limits then keep the current one.
    pub reason: RescaleReason,
    /// What each metric proposed, in the order of the specification; empty if no metric was read.
    pub proposals: SmallVec<[Result<Proposal, MetricProblem>; 1]>,
    /// Why the pass ended without a decision.
    pub failure: Option<String>,
    /// The events that the pass emits, in order.
    pub events: Vec<HpaEvent>,
}

impl HpaDecision {
    /// No change.
    pub(super) fn keep(current: i32) -> Self {
        Self {
            current,
            desired: current,
            reason: RescaleReason::None,
            proposals: SmallVec::new(),
            failure: None,
            events: Vec::new(),
        }
    }

    pub(super) fn propose(&mut self, desired: i32, reason: RescaleReason) {
        self.desired = desired;
        self.reason = reason;
    }

    pub(super) fn fail(&mut self, reason: HpaEventReason, event: String, failure: String) {
        self.events.push(HpaEvent::warning(reason, event));
        self.failure = Some(failure);
    }

    /// Whether the target is told another count.
    pub const fn rescales(&self) -> bool {
        self.desired != self.current
    }
}

/// Why another count is called for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RescaleReason {
    /// It is not.
    None,
    /// The current count is above the maximum.
    AboveMax,
    /// The current count is below the minimum.
    BelowMin,
    /// A metric is above its target.
    AboveTarget {
        /// The position of the metric.
        metric: usize,
    },
    /// No metric asks for the current count.
    AllBelowTarget,
}

impl RescaleReason {
    /// The reason as the controller's event says it.
    pub fn text(self, metrics: &[MetricSpec]) -> String {
        match self {
            Self::None => String::new(),
            Self::AboveMax => "Current number of replicas above Spec.MaxReplicas".to_owned(),
            Self::BelowMin => "Current number of replicas below Spec.MinReplicas".to_owned(),
            Self::AboveTarget { metric } => {
                let name = metrics.get(metric).map_or_else(String::new, metric_name);
                format!("{name} above target")
            }
            Self::AllBelowTarget => "All metrics below target".to_owned(),
        }
    }
}

/// An event of the controller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HpaEvent {
    /// Whether it is a warning.
    pub warning: bool,
    /// Its reason.
    pub reason: HpaEventReason,
    /// Its text.
    pub text: String,
}

impl HpaEvent {
    pub(super) const fn normal(reason: HpaEventReason, text: String) -> Self {
        Self { warning: false, reason, text }
    }

    pub(super) const fn warning(reason: HpaEventReason, text: String) -> Self {
        Self { warning: true, reason, text }
    }
}

/// The reason of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HpaEventReason {
    /// A new count was written.
    SuccessfulRescale,
    /// The metrics as a whole give no count.
    FailedComputeMetricsReplicas,
    /// One metric, or the selector, has a problem that is also a condition's reason.
    Problem(ConditionReason),
}

impl From<ConditionReason> for HpaEventReason {
    fn from(reason: ConditionReason) -> Self {
        Self::Problem(reason)
    }
}

/// A metric's name as the controller's events spell it. An Object metric with an average value is called external there too.
///
/// Source: Kubernetes 1.37 `horizontal.go`, `computeStatusFor...Metric`.
pub fn metric_name(metric: &MetricSpec) -> String {
    let with_selector = |name, selector: &Option<LabelSelector>| {
        format!("external metric {name}({})", selector.as_ref().map_or_else(|| "nil".to_owned(), selector_text))
    };
    match (&metric.source, metric.target) {
        (MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. }, target) => match target {
            MetricTarget::AverageValue(_) => format!("{name} resource"),
            _ => format!("{name} resource utilization (percentage of request)"),
        },
        (MetricSource::Pods { metric, .. }, _) => format!("pods metric {metric}"),
        (MetricSource::Object { metric, selector, .. }, MetricTarget::AverageValue(_)) => {
            with_selector(metric, selector)
        }
        (MetricSource::Object { metric, object, .. }, _) => format!("{} metric {metric}", object.kind),
        (MetricSource::External { metric, selector }, _) => with_selector(metric, selector),
    }
}

/// A label selector as the API types print themselves.
fn selector_text(selector: &LabelSelector) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("&LabelSelector{MatchLabels:map[string]string{");
    for (key, value) in selector.match_labels.iter() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for expression in &selector.expressions {
        let values: Vec<&str> = expression.values.iter().map(|value| value.as_str()).collect();
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{},Operator:{:?},Values:[{}],}},",
            expression.key,
            expression.operator,
            values.join(" ")
        );
    }
    text.push_str("},}");
    text
}

/// What the controller puts before a failing metric's own text when it reports on all of them.
pub(super) fn failure_prefix(metric: &MetricSpec, reason: ConditionReason) -> String {
    if reason == ConditionReason::InvalidMetricSourceType {
        return String::new();
    }
    match &metric.source {
        MetricSource::Resource { name } => format!("failed to get {name} resource metric value: "),
        MetricSource::ContainerResource { name, .. } => format!("failed to get {name} container metric value: "),
        MetricSource::Pods { .. } => "failed to get pods metric value: ".to_owned(),
        MetricSource::Object { .. } => "failed to get object metric value: ".to_owned(),
        MetricSource::External { metric, .. } => format!("failed to get {metric} external metric value: "),
    }
}
