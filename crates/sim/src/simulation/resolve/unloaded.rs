//! Warnings about autoscalers that read nothing but zero: the scenario has no load for what they scale, so they stay at their minimum.
//!
//! Must not warn of metrics that fail: `metrics` and `replicas` do.

use super::metrics::is_measured;
use super::replicas::cannot_read;
use crate::actors::{Action, PodUsageModel, ScalingPlan, Setup, TriggerReader};
use crate::domain::external_metrics::{ExternalSubject, stated_for};
use crate::domain::hpa::{MetricSource, MetricSpec};
use crate::domain::keda::Reads;
use crate::domain::words::some_of;
use crate::domain::workload::ObjectName;
use crate::domain::{HorizontalPodAutoscaler, PodSpec, ResourceName, SimDuration, Symbol};
use nodecast_replicas::hpa::effective_metrics;
use nodecast_replicas::promql::Query;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;
use nodecast_settings::{Requests, SeriesKind};

/// What an autoscaler gets from one of its metrics.
enum MetricValue {
    /// Values that the scenario gives, or makes.
    Simulated,
    /// The calendar, which says nothing of load.
    Calendar,
    /// An error, which has its own warning.
    Error,
    /// Zero, whatever happens.
    Zero(ZeroCause),
}

/// Why a metric is always zero.
#[derive(Clone, PartialEq, Eq)]
enum ZeroCause {
    /// Nothing says what the pods use.
    UnknownUse,
    /// No requests come to the workload that these series count.
    NoRequests(String),
    /// No messages come into these queues.
    EmptyQueues(String),
}

/// Autoscalers of one kind that stay at their minimum for the same cause.
struct IdleAutoscalers {
    kind: &'static str,
    cause: ZeroCause,
    has_calendar: bool,
    names: Vec<String>,
}

/// Warns of every autoscaler with room above its minimum all of whose metrics are zero, because the scenario has no load for them.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let mut found: Vec<IdleAutoscalers> = Vec::new();
    for step in &setup.timeline {
        let idle = match &step.action {
            Action::Autoscale(spec) => idle_autoscaler(spec, setup),
            Action::ScaleObject(plan) => idle_scaled_object(plan, setup),
            _ => None,
        };
        let Some(idle) = idle else { continue };
        let same = |group: &&mut IdleAutoscalers| {
            (group.kind, &group.cause, group.has_calendar) == (idle.kind, &idle.cause, idle.has_calendar)
        };
        match found.iter_mut().find(same) {
            // An autoscaler that is applied again is no second one.
            Some(group) if idle.names.iter().all(|name| group.names.contains(name)) => {}
            Some(group) => group.names.extend(idle.names),
            None => found.push(idle),
        }
    }
    found.iter().for_each(|group| warnings.add(&setup::WITHOUT_LOAD, sentence(group)));
}

fn sentence(group: &IdleAutoscalers) -> String {
    let several = group.names.len() > 1;
    let subject = format!("{}{} {}", group.kind, if several { "s" } else { "" }, some_of(&group.names));
    let reads = if several { "read" } else { "reads" };
    let each = if several { " for each workload" } else { " for its workload" };
    let (lack, cause, remedy) = match &group.cause {
        ZeroCause::UnknownUse => (
            "no load",
            "0 CPU, because neither `load` nor `usage` says what the pods use".to_owned(),
            format!("Add an entry under `load`{each}"),
        ),
        ZeroCause::NoRequests(series) => (
            "no load",
            format!("0 from {series}, because no `load` has `requests` for what it counts"),
            format!("Add an entry under `load`{each}"),
        ),
        ZeroCause::EmptyQueues(queues) => (
            "no messages",
            format!("0 from {queues}, because no messages come or wait there"),
            "Set `messages` under `queues`".to_owned(),
        ),
    };
    let stay = if group.has_calendar {
        "Outside the windows of cron triggers replicas stay at the minimum"
    } else {
        "Replicas stay at the minimum"
    };
    format!("{lack}: {subject} {reads} {cause}. {stay}, so cost and waits are too low. {remedy}")
}

/// The name of an autoscaler, with that of what it scales where that is another one.
fn shown(name: ObjectName, target: ObjectName) -> String {
    if name == target { name.to_string() } else { format!("{name} ({target})") }
}

fn idle_autoscaler(spec: &HorizontalPodAutoscaler, setup: &Setup<'_>) -> Option<IdleAutoscalers> {
    let target = ObjectName { namespace: spec.namespace, name: spec.target.name };
    if spec.min_replicas.unwrap_or(1) >= spec.max_replicas || !has_replicas(target, setup) {
        return None;
    }
    let values = effective_metrics(spec).iter().map(|metric| metric_value(spec, metric, setup));
    let (cause, has_calendar) = only_zero(values)?;
    let name = ObjectName { namespace: spec.namespace, name: spec.name };
    Some(IdleAutoscalers { kind: "HorizontalPodAutoscaler", cause, has_calendar, names: vec![shown(name, target)] })
}

fn idle_scaled_object(plan: &ScalingPlan, setup: &Setup<'_>) -> Option<IdleAutoscalers> {
    let (spec, object) = (plan.autoscaler.as_ref()?, &plan.object);
    let target = ObjectName { namespace: spec.namespace, name: spec.target.name };
    let least = object.min_replica_count.unwrap_or(0);
    if object.annotations.paused_scale_out || least >= spec.max_replicas || templates(target, setup).next().is_none() {
        return None;
    }
    let sources = object.triggers.iter().map(|trigger| &trigger.source.reads);
    let values = sources.zip(&plan.readers).map(|source| match source {
        (Reads::Resource { name, container, .. }, _) => resource_value(spec, (*name, *container), setup),
        (_, TriggerReader::Calendar(_)) => MetricValue::Calendar,
        (_, TriggerReader::Query(query)) => query_value(query, setup),
        (_, TriggerReader::Queues(places)) => queues_value(places, setup),
        (_, TriggerReader::Unreachable(_) | TriggerReader::Unknown(_)) => MetricValue::Error,
        (_, TriggerReader::MetricsServer | TriggerReader::Pods(_) | TriggerReader::External(_)) => {
            MetricValue::Simulated
        }
    });
    let (cause, has_calendar) = only_zero(values)?;
    let name = ObjectName { namespace: object.namespace, name: object.name };
    Some(IdleAutoscalers { kind: "ScaledObject", cause, has_calendar, names: vec![shown(name, target)] })
}

/// The cause of the first zero, and whether the calendar scales too; `None` if something that the scenario gives can scale.
fn only_zero(values: impl Iterator<Item = MetricValue>) -> Option<(ZeroCause, bool)> {
    let (mut cause, mut has_calendar) = (None, false);
    for value in values {
        match value {
            MetricValue::Simulated => return None,
            MetricValue::Calendar => has_calendar = true,
            MetricValue::Error => {}
            MetricValue::Zero(zero) => cause = cause.or(Some(zero)),
        }
    }
    cause.map(|cause| (cause, has_calendar))
}

fn metric_value(spec: &HorizontalPodAutoscaler, metric: &MetricSpec, setup: &Setup<'_>) -> MetricValue {
    if cannot_read(spec, metric, setup) {
        return MetricValue::Error;
    }
    let adapted = |name: Symbol| {
        let rules = setup.prometheus.iter().flat_map(|plan| &plan.adapter);
        let query = rules.filter(|rule| rule.metric == name).map(|rule| &rule.query).next();
        query.map_or(MetricValue::Error, |query| query_value(query, setup))
    };
    match &metric.source {
        MetricSource::Resource { name } => resource_value(spec, (*name, None), setup),
        MetricSource::ContainerResource { name, container } => resource_value(spec, (*name, Some(*container)), setup),
        MetricSource::Pods { metric, .. } => adapted(*metric),
        source @ (MetricSource::Object { metric, .. } | MetricSource::External { metric, .. }) => {
            match stated_for(&setup.scenario.external_metrics, spec.namespace, source) {
                Some(_) => MetricValue::Simulated,
                None => adapted(*metric),
            }
        }
    }
}

/// A resource of the target's pods: what is not measured fails, and what is measured and not stated is zero.
fn resource_value(
    spec: &HorizontalPodAutoscaler,
    (resource, container): (ResourceName, Option<Symbol>),
    setup: &Setup<'_>,
) -> MetricValue {
    let target = ObjectName { namespace: spec.namespace, name: spec.target.name };
    if !is_measured(resource, target, setup) {
        return MetricValue::Error;
    }
    let subject = ExternalSubject::Resource { workload: target, resource };
    let external = setup.scenario.external_metrics.iter().any(|stated| stated.subject == subject);
    if external || resource != ResourceName::CPU || uses_cpu(target, container, setup) {
        return MetricValue::Simulated;
    }
    MetricValue::Zero(ZeroCause::UnknownUse)
}

/// Whether the scenario says that pods of a workload use CPU, and where a container is asked about, that one.
fn uses_cpu(target: ObjectName, container: Option<Symbol>, setup: &Setup<'_>) -> bool {
    let has_load = setup.loads.iter().any(|plan| plan.workload == target);
    let has_usage = setup.usages.iter().any(|plan| plan.workload == target && !plan.cpu.is_empty());
    let mut queues = setup.queues.iter().map(|plan| plan.spec).filter(|queue| queue.workload == target);
    if !has_load && !has_usage && !queues.any(|queue| queue.work.cpu_per_message > SimDuration::ZERO) {
        return false;
    }
    let stated = PodUsageModel::new(setup, target);
    let says_of = |name| templates(target, setup).any(|template| stated.of_container(template, name).0);
    container.is_none_or(says_of)
}

/// A query whose series all count requests to workloads that get none is zero; series that nothing exports have their own warning.
fn query_value(query: &Query, setup: &Setup<'_>) -> MetricValue {
    let names = query.series_names();
    let all: Vec<_> = setup.prometheus.iter().flat_map(|plan| &plan.series).map(|plan| plan.spec).collect();
    let gets_requests = |workload: ObjectName| {
        let mut loads = setup.scenario.load.iter().filter(|load| load.workload == workload);
        loads.any(|load| !matches!(load.requests, Requests::Cpu(_)))
    };
    let read: Vec<_> = all.iter().filter(|spec| names.contains(&spec.name.as_str())).collect();
    let is_zero = |kind, workload| match kind {
        SeriesKind::IstioRequests | SeriesKind::Requests | SeriesKind::RequestsInFlight => !gets_requests(workload),
        SeriesKind::ReplicasReady | SeriesKind::ReplicasDesired => false,
    };
    if read.is_empty() {
        return MetricValue::Error;
    }
    if !read.iter().all(|spec| is_zero(spec.kind, spec.workload)) {
        return MetricValue::Simulated;
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    MetricValue::Zero(ZeroCause::NoRequests(some_of(&names)))
}

/// Queues in which nothing waits and into which nothing comes.
fn queues_value(places: &[usize], setup: &Setup<'_>) -> MetricValue {
    let queues: Vec<_> = places.iter().map(|&place| setup.queues[place].spec).collect();
    if queues.iter().any(|queue| queue.messages.is_some() || queue.waiting > 0.0) {
        return MetricValue::Simulated;
    }
    let names: Vec<String> = queues.iter().map(|queue| format!("the queue `{}`", queue.name)).collect();
    MetricValue::Zero(ZeroCause::EmptyQueues(some_of(&names)))
}

/// Whether a workload has replicas at some time: an autoscaler does not scale one from zero.
fn has_replicas(target: ObjectName, setup: &Setup<'_>) -> bool {
    setup.timeline.iter().any(|step| match &step.action {
        Action::Deploy(deployment) => deployment.name == target && deployment.replicas != Some(0),
        Action::DeployStateful(set) => set.name == target && set.replicas != Some(0),
        Action::Scale { workload, replicas } => *workload == target && *replicas > 0,
        _ => false,
    })
}

/// The templates of a workload, one for each time that it is applied.
fn templates<'s>(target: ObjectName, setup: &'s Setup<'_>) -> impl Iterator<Item = &'s PodSpec> {
    setup.timeline.iter().filter_map(move |step| match &step.action {
        Action::Deploy(deployment) if deployment.name == target => Some(&*deployment.template),
        Action::DeployStateful(set) if set.name == target => Some(&*set.template),
        _ => None,
    })
}
