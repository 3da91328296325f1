//! From one metric's reading to the replica count that it proposes.
//!
//! Arithmetic is that of the controller: integers of thousandths divided with truncation, then binary64 in the order in
//! which the controller multiplies and divides, then rounded up.

use std::cmp::Ordering;

use super::conditions::ConditionReason;
use super::parameters::{HpaParameters, Tolerance};
use super::view::{HpaView, MetricReading, PodSample, PodView};
use nodecast_model::domain::SimTime;
use nodecast_model::domain::hpa::{MetricSource, MetricSpec, MetricTarget};
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::resources::ResourceName;

/// What a metric proposes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Proposal {
    /// Replicas.
    pub replicas: i32,
    /// The value that the status shows for the metric.
    pub reported: Reported,
}

/// The value of a metric in the status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reported {
    /// Use of the request.
    Utilization {
        /// In whole percent, truncated.
        percent: i32,
        /// Mean use of a pod, in thousandths.
        mean_milli: i64,
    },
    /// A mean for each pod, in thousandths.
    AverageValue(i64),
    /// A total, in thousandths.
    Value(i64),
}

/// Why a metric proposes nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{text}")]
pub struct MetricProblem {
    /// The reason for condition and event.
    pub reason: ConditionReason,
    /// What happened.
    pub text: String,
}

/// How many of the selected pods take part in a metric, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PodGroups {
    /// Their samples count.
    pub ready: usize,
    /// Not yet able to show their load: their samples are dropped, and on the way up they count as idle.
    pub unready: usize,
    /// Without a sample.
    pub missing: usize,
    /// Ended or being deleted: they take no part.
    pub ignored: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Ready,
    Unready,
    Missing,
    Ignored,
}

/// Sorts the selected pods into groups. `cpu` says whether the metric is the resource `cpu`, which alone looks at readiness.
///
/// A pod that turned unready long after its start still counts as ready; during the first
/// [`HpaParameters::cpu_initialization_period`] a pod counts only after a whole window of the metric since it became ready.
///
/// Source: Kubernetes 1.37 `replica_calculator.go`, `groupPods`.
pub fn group_pods(
    pods: &[PodView],
    samples: &[PodSample],
    cpu: bool,
    now: SimTime,
    parameters: &HpaParameters,
) -> PodGroups {
    let mut groups = PodGroups::default();
    for (pod, sample) in with_samples(pods, samples) {
        *match group_of(pod, sample, cpu, now, parameters) {
            Group::Ready => &mut groups.ready,
            Group::Unready => &mut groups.unready,
            Group::Missing => &mut groups.missing,
            Group::Ignored => &mut groups.ignored,
        } += 1;
    }
    groups
}

/// Each pod with its sample; a list of samples that is too short leaves the rest of the pods without.
fn with_samples<'a>(
    pods: &'a [PodView],
    samples: &'a [PodSample],
) -> impl Iterator<Item = (&'a PodView, PodSample)> + 'a {
    pods.iter().enumerate().map(|(index, pod)| (pod, samples.get(index).copied().unwrap_or_default()))
}

fn group_of(pod: &PodView, sample: PodSample, cpu: bool, now: SimTime, parameters: &HpaParameters) -> Group {
    if pod.deleted_or_ended() {
        return Group::Ignored;
    }
    if pod.phase == PodPhase::Pending {
        return Group::Unready;
    }
    let Some(sample) = sample.sample else { return Group::Missing };
    if !cpu {
        return Group::Ready;
    }
    let (Some(start), Some(condition)) = (pod.start_time, pod.ready) else { return Group::Unready };
    let unready = if start + parameters.cpu_initialization_period > now {
        !condition.ready || sample.at < condition.since + sample.window
    } else {
        !condition.ready && start + parameters.initial_readiness_delay > condition.since
    };
    if unready { Group::Unready } else { Group::Ready }
}

impl PodView {
    fn deleted_or_ended(&self) -> bool {
        self.deleting || self.phase.is_terminal()
    }
}

/// What one metric proposes for the target of `view`.
///
/// # Errors
/// The reading failed, no pod takes part, a request is missing, or the kind of target does not go with the source.
pub fn propose(
    metric: &MetricSpec,
    reading: MetricReading<'_>,
    view: &HpaView<'_>,
    tolerance: Tolerance,
    parameters: &HpaParameters,
) -> Result<Proposal, MetricProblem> {
    match reading {
        MetricReading::UnknownType(spelled) => {
            let text = format!("unknown metric source type {spelled:?}");
            return Err(MetricProblem { reason: ConditionReason::InvalidMetricSourceType, text });
        }
        MetricReading::PerPod { .. } | MetricReading::Series(_) | MetricReading::Failed(_) => {}
    }
    let outcome = match &metric.source {
        MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. } => {
            per_pod_metric(Some(*name), metric.target, reading, view, tolerance, parameters)
        }
        MetricSource::Pods { .. } => per_pod_metric(None, metric.target, reading, view, tolerance, parameters),
        MetricSource::Object { .. } | MetricSource::External { .. } => {
            let api = if matches!(metric.source, MetricSource::External { .. }) { "external" } else { "custom" };
            whole_metric(api, metric.target, reading, view, tolerance)
        }
    };
    outcome.map_err(|text| MetricProblem { reason: failure_reason(&metric.source), text: described(metric, &text) })
}

fn failure_reason(source: &MetricSource) -> ConditionReason {
    match source {
        MetricSource::Resource { .. } => ConditionReason::FailedGetResourceMetric,
        MetricSource::ContainerResource { .. } => ConditionReason::FailedGetContainerResourceMetric,
        MetricSource::Pods { .. } => ConditionReason::FailedGetPodsMetric,
        MetricSource::Object { .. } => ConditionReason::FailedGetObjectMetric,
        MetricSource::External { .. } => ConditionReason::FailedGetExternalMetric,
    }
}

/// A failure with the metric that it belongs to.
fn described(metric: &MetricSpec, text: &str) -> String {
    match &metric.source {
        MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. } => match metric.target {
            MetricTarget::AverageValue(_) => format!("failed to get {name} usage: {text}"),
            _ => format!("failed to get {name} utilization: {text}"),
        },
        MetricSource::Pods { metric, .. } => format!("unable to get metric {metric}: {text}"),
        MetricSource::Object { metric, object, .. } => {
            format!("unable to get metric {metric} of {} {}: {text}", object.kind, object.name)
        }
        MetricSource::External { metric, .. } => format!("failed to get {metric} external metric: {text}"),
    }
}

/// Sums over the pods of one metric, gathered in one pass and without a map of pods.
#[derive(Default)]
struct Gathered {
    ready: i64,
    unready: i64,
    missing: i64,
    usage: i128,
    request: i128,
    unready_request: i128,
    missing_request: i128,
    /// What missing pods are taken to use when the target might shrink.
    missing_use: i128,
    any_sample: bool,
    request_unknown: bool,
}

impl Gathered {
    fn over(
        view: &HpaView<'_>,
        samples: &[PodSample],
        cpu: bool,
        parameters: &HpaParameters,
        missing_use: impl Fn(i64) -> i64,
    ) -> Self {
        let mut sums = Self::default();
        if cpu {
            let settled = view.settled;
            (sums.ready, sums.usage, sums.request) = (settled.pods, settled.usage_milli, settled.request_milli);
            sums.any_sample = settled.pods > 0;
        }
        for (pod, sample) in with_samples(view.pods, samples) {
            let request = sample.request.unwrap_or(0);
            sums.request_unknown |= sample.request.is_none();
            sums.any_sample |= sample.sample.is_some();
            match group_of(pod, sample, cpu, view.now, parameters) {
                Group::Ready => {
                    sums.ready += 1;
                    sums.usage += sample.sample.map_or(0, |sample| i128::from(sample.milli));
                    sums.request += i128::from(request);
                }
                Group::Unready => {
                    sums.unready += 1;
                    sums.unready_request += i128::from(request);
                }
                Group::Missing => {
                    sums.missing += 1;
                    sums.missing_request += i128::from(request);
                    sums.missing_use += i128::from(missing_use(request));
                }
                Group::Ignored => {}
            }
        }
        sums
    }
}

/// A metric with a value for each pod: Resource, ContainerResource, Pods.
fn per_pod_metric(
    resource: Option<ResourceName>,
    target: MetricTarget,
    reading: MetricReading<'_>,
    view: &HpaView<'_>,
    tolerance: Tolerance,
    parameters: &HpaParameters,
) -> Result<Proposal, String> {
    let (samples, unmatched) = match reading {
        MetricReading::PerPod { samples, unmatched } => (samples, unmatched),
        MetricReading::Failed(text) => return Err(text.to_owned()),
        _ => return Err("the reading has no value for each pod".to_owned()),
    };
    let cpu = resource == Some(ResourceName::CPU);
    match (target, resource) {
        (MetricTarget::AverageValue(quantity), _) => {
            let target = quantity.milli_value();
            let sums = Gathered::over(view, samples, cpu, parameters, |_| target);
            check_samples(&sums, view, unmatched, resource)?;
            Ok(average_value(&sums, unmatched, target, view.spec_replicas, tolerance))
        }
        (MetricTarget::Utilization(percent), Some(name)) => {
            // Missing pods are taken to use their whole request, or the target where that is more than all of it.
            let fill = i128::from(percent.max(100));
            let filled = |request: i64| clamp_i64(i128::from(request) * fill / 100);
            let sums = Gathered::over(view, samples, cpu, parameters, filled);
            check_samples(&sums, view, unmatched, resource)?;
            if sums.request_unknown {
                return Err(format!("missing request for {name} in a container of a selected pod"));
            }
            utilization(&sums, unmatched.len(), percent, view.spec_replicas, tolerance)
        }
        (_, Some(_)) => Err("neither an average utilization nor an average value is set as target".to_owned()),
        (_, None) => Err("no average value is set as target".to_owned()),
    }
}

/// The failures that come before any arithmetic.
fn check_samples(
    sums: &Gathered,
    view: &HpaView<'_>,
    unmatched: &[i64],
    resource: Option<ResourceName>,
) -> Result<(), String> {
    if !sums.any_sample && unmatched.is_empty() {
        return Err(match resource {
            Some(name) => {
                format!("unable to get metrics for resource {name}: no metrics returned from resource metrics API")
            }
            None => "no metrics returned from custom metrics API".to_owned(),
        });
    }
    if view.pods.is_empty() && view.settled.pods == 0 {
        return Err("no pods returned by selector while calculating replica count".to_owned());
    }
    if sums.ready == 0 && unmatched.is_empty() {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    Ok(())
}

/// Source: Kubernetes 1.37 `replica_calculator.go`, `GetResourceReplicas`, with `metrics/utilization.go`.
fn utilization(
    sums: &Gathered,
    unmatched: usize,
    target: i32,
    current: i32,
    tolerance: Tolerance,
) -> Result<Proposal, String> {
    let percent = |usage: i128, request: i128| -> Result<i32, String> {
        // Samples of unknown pods have no request, so nothing but them leaves nothing to divide by.
        let quotient = divided(usage * 100, request).filter(|_| request > 0);
        quotient.map(clamp_i32).ok_or_else(|| "no metrics returned matched known pods".to_owned())
    };
    let used = percent(sums.usage, sums.request)?;
    let mean_milli = divided(sums.usage, i128::from(sums.ready)).map_or(0, clamp_i64);
    let reported = Reported::Utilization { percent: used, mean_milli };
    let ratio = f64::from(used) / f64::from(target);
    let unready_count = sums.unready > 0 && ratio > 1.0;
    if sums.missing == 0 && !unready_count {
        let replicas = if tolerance.contains(ratio) { current } else { ceil_i32(ratio * sums.ready as f64) };
        return Ok(Proposal { replicas, reported });
    }
    let mut count = sums.ready + unmatched as i64;
    let (mut usage, mut request) = (sums.usage, sums.request);
    if let Some(missing_use) = use_of_missing(ratio, sums) {
        count += sums.missing;
        request += sums.missing_request;
        usage += missing_use;
    }
    if unready_count {
        count += sums.unready;
        request += sums.unready_request;
    }
    let refilled = f64::from(percent(usage, request)?) / f64::from(target);
    Ok(Proposal { replicas: after_refill(ratio, refilled, count, current, tolerance), reported })
}

/// Source: Kubernetes 1.37 `replica_calculator.go`, `calcPlainMetricReplicas`, with `metrics/utilization.go`.
fn average_value(sums: &Gathered, unmatched: &[i64], target: i64, current: i32, tolerance: Tolerance) -> Proposal {
    let usage = sums.usage + unmatched.iter().map(|&value| i128::from(value)).sum::<i128>();
    let mean_ratio = |usage: i128, count: i64| {
        let mean = divided(usage, i128::from(count)).map_or(0, clamp_i64);
        (mean, mean as f64 / target as f64)
    };
    let sampled = sums.ready + unmatched.len() as i64;
    let (mean, ratio) = mean_ratio(usage, sampled);
    let reported = Reported::AverageValue(mean);
    let unready_count = sums.unready > 0 && ratio > 1.0;
    if sums.missing == 0 && !unready_count {
        let replicas = if tolerance.contains(ratio) { current } else { ceil_i32(ratio * sums.ready as f64) };
        return Proposal { replicas, reported };
    }
    let (mut count, mut refilled_usage) = (sampled, usage);
    if let Some(missing_use) = use_of_missing(ratio, sums) {
        count += sums.missing;
        refilled_usage += missing_use;
    }
    if unready_count {
        count += sums.unready;
    }
    let (_, refilled) = mean_ratio(refilled_usage, count);
    Proposal { replicas: after_refill(ratio, refilled, count, current, tolerance), reported }
}

/// What pods without a sample are taken to use: enough to slow shrinking, nothing when growing, and at a ratio of exactly 1
/// they stay out.
fn use_of_missing(ratio: f64, sums: &Gathered) -> Option<i128> {
    match ratio.partial_cmp(&1.0)? {
        Ordering::Less => Some(sums.missing_use),
        Ordering::Greater => Some(0),
        Ordering::Equal => None,
    }
}

/// The count after pods without a usable sample were given one: never a change that the refill would turn around.
fn after_refill(ratio: f64, refilled: f64, count: i64, current: i32, tolerance: Tolerance) -> i32 {
    let turned = (ratio < 1.0 && refilled > 1.0) || (ratio > 1.0 && refilled < 1.0);
    if turned || tolerance.contains(refilled) {
        return current;
    }
    let replicas = ceil_i32(refilled * count as f64);
    let against = (refilled < 1.0 && replicas > current) || (refilled > 1.0 && replicas < current);
    if against { current } else { replicas }
}

/// A metric with one value for the whole target: Object and External, which come from different metrics APIs.
///
/// Source: Kubernetes 1.37 `replica_calculator.go`, `GetObjectMetricReplicas`, `GetExternalMetricReplicas`,
/// `GetObjectPerPodMetricReplicas`, `GetExternalPerPodMetricReplicas`.
fn whole_metric(
    api: &str,
    target: MetricTarget,
    reading: MetricReading<'_>,
    view: &HpaView<'_>,
    tolerance: Tolerance,
) -> Result<Proposal, String> {
    let series = match reading {
        MetricReading::Series([]) => return Err(format!("no metrics returned from {api} metrics API")),
        MetricReading::Series(series) => series,
        MetricReading::Failed(text) => return Err(text.to_owned()),
        _ => return Err("the reading has no series".to_owned()),
    };
    let total = clamp_i64(series.iter().map(|&value| i128::from(value)).sum());
    match target {
        MetricTarget::Value(quantity) => {
            let ratio = total as f64 / quantity.milli_value() as f64;
            let replicas = value_replicas(ratio, view, tolerance)?;
            Ok(Proposal { replicas, reported: Reported::Value(total) })
        }
        MetricTarget::AverageValue(quantity) => {
            let target = quantity.milli_value() as f64;
            let status = f64::from(view.status_replicas);
            let keeps = tolerance.contains(total as f64 / (target * status));
            // "Keep" means the pods that exist, not what the target was told.
            let replicas = if keeps { view.status_replicas } else { ceil_i32(total as f64 / target) };
            let mean = if view.status_replicas == 0 { 0 } else { libm::ceil(total as f64 / status) as i64 };
            Ok(Proposal { replicas, reported: Reported::AverageValue(mean) })
        }
        MetricTarget::Utilization(_) => Err("neither a value nor an average value is set as target".to_owned()),
    }
}

/// The count that a ratio of a total to its target asks for: relative to the pods that are ready now.
fn value_replicas(ratio: f64, view: &HpaView<'_>, tolerance: Tolerance) -> Result<i32, String> {
    if view.spec_replicas == 0 {
        return Ok(ceil_i32(ratio));
    }
    if tolerance.contains(ratio) {
        return Ok(view.spec_replicas);
    }
    if view.pods.is_empty() && view.settled.pods == 0 {
        let why = "no pods returned by selector while calculating replica count";
        return Err(format!("unable to calculate ready pods: {why}"));
    }
    let ready = view.pods.iter().filter(|pod| pod.is_ready()).count() as i64 + view.settled.pods;
    Ok(ceil_i32(ratio * ready as f64))
}

/// Rounded up, and limited to what a replica count can hold; not-a-number is zero.
fn ceil_i32(value: f64) -> i32 {
    libm::ceil(value) as i32
}

/// The quotient of two numbers, truncated; nothing for a division by zero. Nearly all fit in 64 bits, for which the machine has
/// an instruction.
fn divided(number: i128, by: i128) -> Option<i128> {
    match (i64::try_from(number), i64::try_from(by)) {
        (Ok(number), Ok(by)) if by > 0 => Some(i128::from(number / by)),
        _ => number.checked_div(by),
    }
}

fn clamp_i32(value: i128) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

fn clamp_i64(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}
