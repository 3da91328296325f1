//! Warnings about metrics of replica autoscalers that cannot be read, each with what would make it known.

use super::metrics::is_measured;
use super::vertical;
use crate::actors::{Action, Setup};
use crate::domain::external_metrics::{ExternalMetric, ExternalSubject, stated_for};
use crate::domain::hpa::{MetricSource, MetricSpec, MetricTarget};
use crate::domain::vertical::UpdateMode;
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{HorizontalPodAutoscaler, LabelSelector, PodSpec, ResourceName, Symbol};
use nodecast_replicas::hpa::{effective_metrics, pod_request_milli};
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// What makes a metric known that is not of the pods.
const OUTSIDE: &str = "`external_metrics` states it, or a rule of `prometheus.adapter` serves it";

/// Warns of the metrics of an autoscaler that fail whenever it looks at them. One of several keeps it from scaling down; where all
/// fail, it proposes nothing.
///
/// Source: Kubernetes 1.36 `pkg/controller/podautoscaler/horizontal.go`, `computeReplicasForMetrics`.
pub(super) fn warn_about_autoscaler(spec: &HorizontalPodAutoscaler, setup: &Setup<'_>, warnings: &mut Caveats) {
    let metrics = effective_metrics(spec);
    let unread: Vec<String> = metrics.iter().filter_map(|metric| unreadable(spec, metric, setup)).collect();
    if unread.is_empty() {
        return;
    }
    let name = ObjectName { namespace: spec.namespace, name: spec.name };
    let follows =
        if unread.len() == metrics.len() { "so it does not scale with load" } else { "so it cannot scale down" };
    warnings.add(
        &setup::METRIC_WITHOUT_DATA,
        format!(
            "HorizontalPodAutoscaler {name}: no data for {}, {follows}: {}",
            counted(unread.len() as u64, "metric", "metrics"),
            unread.join("; ")
        ),
    );
}

/// Warns of resources of its pods that the autoscaler of a ScaledObject cannot read, but for those that metrics-server does not
/// know.
pub(super) fn warn_about_resources(
    name: &str,
    spec: &HorizontalPodAutoscaler,
    setup: &Setup<'_>,
    warnings: &mut Caveats,
) {
    for lack in spec.metrics.iter().filter_map(|metric| lack(spec, metric, setup)) {
        warnings.add(&setup::RESOURCE_WITHOUT_DATA, format!("{name}: {lack} cannot be read, so it cannot scale down"));
    }
}

/// Whether a metric fails whenever the autoscaler reads it.
pub(super) fn cannot_read(spec: &HorizontalPodAutoscaler, metric: &MetricSpec, setup: &Setup<'_>) -> bool {
    unreadable(spec, metric, setup).is_some()
}

/// A metric that fails, with the cause or the way out.
fn unreadable(spec: &HorizontalPodAutoscaler, metric: &MetricSpec, setup: &Setup<'_>) -> Option<String> {
    let source = &metric.source;
    let adapted = |metric| setup.prometheus.iter().any(|plan| plan.adapter.iter().any(|rule| rule.metric == metric));
    let stated =
        |metric| adapted(metric) || stated_for(&setup.scenario.external_metrics, spec.namespace, source).is_some();
    match source {
        MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. } => {
            let target = ObjectName { namespace: spec.namespace, name: spec.target.name };
            lack(spec, metric, setup).or_else(|| (!is_measured(*name, target, setup)).then(|| unmeasured(*name)))
        }
        MetricSource::Pods { metric, .. } if !adapted(*metric) => {
            Some(format!("{metric} of its pods (a rule of `prometheus.adapter` serves it)"))
        }
        MetricSource::Object { metric, object, .. } if !stated(*metric) => {
            Some(format!("{metric} of {} {} ({OUTSIDE})", object.kind, object.name))
        }
        MetricSource::External { metric, .. } if !stated(*metric) => {
            Some(format!("{metric} from outside the cluster ({OUTSIDE})"))
        }
        MetricSource::Pods { .. } | MetricSource::Object { .. } | MetricSource::External { .. } => None,
    }
}

/// Warns of one stated value that autoscalers read as different metrics of one name: with different selectors, or of different objects.
pub(super) fn warn_about_shared(setup: &Setup<'_>, warnings: &mut Caveats) {
    let adapted = |metric| setup.prometheus.iter().any(|plan| plan.adapter.iter().any(|rule| rule.metric == metric));
    for stated in &setup.scenario.external_metrics {
        let ExternalSubject::Metric { name, .. } = &stated.subject else { continue };
        let asked = if adapted(*name) { Vec::new() } else { asked_of(stated, setup) };
        if asked.len() > 1 {
            warnings.add(&setup::SHARED_METRIC, format!(
                "`external_metrics` states one value of {name}, which autoscalers read as {} of different selectors or objects ({}): state it for each with `selector` or `object`",
                counted(asked.len() as u64, "metric", "metrics"),
                asked.join("; ")
            ));
        }
    }
}

/// As what autoscalers read a stated value, each once.
fn asked_of(stated: &ExternalMetric, setup: &Setup<'_>) -> Vec<String> {
    let mut asked: Vec<String> = Vec::new();
    for step in &setup.timeline {
        let Action::Autoscale(spec) = &step.action else { continue };
        for metric in effective_metrics(spec) {
            let item = stated_for(&setup.scenario.external_metrics, spec.namespace, &metric.source);
            if item.is_none_or(|item| item.subject != stated.subject) {
                continue;
            }
            let (selector, object) = match &metric.source {
                MetricSource::External { selector, .. } => (selector, String::new()),
                MetricSource::Object { selector, object, .. } => {
                    (selector, format!(" of {} {}/{}", object.kind, spec.namespace, object.name))
                }
                MetricSource::Resource { .. } | MetricSource::ContainerResource { .. } | MetricSource::Pods { .. } => {
                    continue;
                }
            };
            let selector = selector.as_ref().map(LabelSelector::to_string).filter(|text| !text.is_empty());
            let shown =
                selector.map_or_else(|| "with no selector".to_owned(), |text| format!("with `{text}`")) + &object;
            if !asked.contains(&shown) {
                asked.push(shown);
            }
        }
    }
    asked.sort();
    asked
}

/// A resource of pods that nothing measures.
fn unmeasured(name: ResourceName) -> String {
    if name == ResourceName::MEMORY {
        return format!("{name} of its pods (`memory` of a load's `service`, `usage` or `external_metrics` states it)");
    }
    format!("{name} of its pods (metrics-server knows CPU and memory alone)")
}

/// A resource that cannot be read of any pods that the target ever has: of a container that they have not, or as a percentage of
/// a request that a container does not state. What a LimitRange adds stands in the templates already.
///
/// Source: Kubernetes 1.36 `pkg/controller/podautoscaler/metrics/client.go`, `getContainerMetrics`, and `replica_calculator.go`,
/// `calculatePodRequestsFromContainers`.
fn lack(spec: &HorizontalPodAutoscaler, metric: &MetricSpec, setup: &Setup<'_>) -> Option<String> {
    let (name, container) = match metric.source {
        MetricSource::Resource { name } => (name, None),
        MetricSource::ContainerResource { name, container } => (name, Some(container)),
        MetricSource::Pods { .. } | MetricSource::Object { .. } | MetricSource::External { .. } => return None,
    };
    let templates = templates(spec, setup);
    let first = *templates.first()?;
    if let Some(container) = container
        && !templates.iter().any(|template| template.has_container(container.as_str()))
    {
        let names = first.containers.iter().map(|container| format!("`{}`", container.name));
        let names: Vec<String> = names.collect();
        return Some(format!(
            "{name} of the container `{container}` (its pods have none of that name, but {})",
            names.join(", ")
        ));
    }
    if !matches!(metric.target, MetricTarget::Utilization(_)) || is_given_requests(spec, name, setup) {
        return None;
    }
    let request = |template: &PodSpec| pod_request_milli(template, name, container.map(Symbol::as_str));
    if templates.iter().any(|template| request(template).is_ok()) {
        return None;
    }
    let missing = request(first).err()?;
    Some(format!(
        "{name} in percent of requests (the container `{}` of its pods requests none: state a request, or an `averageValue`)",
        missing.container
    ))
}

/// The templates that the target has at some time.
fn templates<'a>(spec: &HorizontalPodAutoscaler, setup: &'a Setup<'_>) -> Vec<&'a PodSpec> {
    let target = ObjectName { namespace: spec.namespace, name: spec.target.name };
    let is_set = spec.target.kind.as_str() == "StatefulSet";
    let action = setup.timeline.iter().filter_map(|step| match &step.action {
        Action::Deploy(deploy) if !is_set && deploy.name == target => Some(&*deploy.template),
        Action::DeployStateful(deploy_stateful) if is_set && deploy_stateful.name == target => {
            Some(&*deploy_stateful.template)
        }
        _ => None,
    });
    action.collect()
}

/// Whether a VerticalPodAutoscaler has the target's pods request the resource, whatever their template says.
fn is_given_requests(spec: &HorizontalPodAutoscaler, name: ResourceName, setup: &Setup<'_>) -> bool {
    setup.timeline.iter().any(|step| {
        let Action::AutoscaleVertically(vpa) = &step.action else { return false };
        vpa.update.mode != Some(UpdateMode::Off)
            && (vpa.name.namespace, vpa.target) == (spec.namespace, spec.target)
            && vertical::controls(vpa, name)
    })
}
