//! Where the metrics of replica autoscalers come from, and warnings about those that come from nowhere.

use crate::actors::{Action, ScalingPlan, Setup, TriggerReader};
use crate::domain::external_metrics::ExternalSubject;
use crate::domain::hpa::MetricSource;
use crate::domain::keda::{ScaledObject, Trigger, TriggerSource};
use crate::domain::selector_text::parse_selector;
use crate::domain::workload::ObjectName;
use crate::domain::{HorizontalPodAutoscaler, ResourceName};
use crate::policy::replicas::hpa::effective_metrics;
use crate::policy::replicas::keda::{CronWindow, Formula, external_metric_name, horizontal_pod_autoscaler};
use crate::scenario::Scenario;

/// A ScaledObject with its autoscaler and the source of each trigger.
pub(super) fn scaling_plan(object: &ScaledObject, scenario: &Scenario) -> ScalingPlan {
    let formula = object.scaling_modifiers.as_ref().and_then(|modifiers| Formula::parse(&modifiers.formula).ok());
    ScalingPlan {
        object: object.clone(),
        autoscaler: horizontal_pod_autoscaler(object),
        readers: object.triggers.iter().map(|trigger| trigger_reader(trigger, scenario)).collect(),
        formula,
    }
}

fn trigger_reader(trigger: &Trigger, scenario: &Scenario) -> TriggerReader {
    let unreachable = |why: String| TriggerReader::Unreachable(why);
    match &trigger.source {
        TriggerSource::Resource { .. } => TriggerReader::MetricsServer,
        TriggerSource::Cron(cron) => {
            CronWindow::new(cron).map_or_else(|problem| unreachable(problem.to_string()), TriggerReader::Calendar)
        }
        TriggerSource::KubernetesWorkload { pod_selector, .. } => {
            parse_selector(pod_selector).map_or_else(|error| unreachable(error.to_string()), TriggerReader::Pods)
        }
        TriggerSource::External { scaler_address, .. } => {
            let serves = |name: Option<crate::domain::Symbol>| {
                scenario.external_metrics.iter().position(|metric| {
                    metric.subject == ExternalSubject::Scaler { address: scaler_address.clone(), trigger: name }
                })
            };
            let found = trigger.name.and_then(|name| serves(Some(name))).or_else(|| serves(None));
            found.map_or_else(
                || unreachable(format!("`external_metrics` has no values of the scaler {scaler_address}")),
                TriggerReader::External,
            )
        }
        TriggerSource::Prometheus { .. }
        | TriggerSource::SqsQueue { .. }
        | TriggerSource::Kafka(_)
        | TriggerSource::RabbitMq(_)
        | TriggerSource::RedisList { .. } => unreachable("nothing in the simulation serves it".to_owned()),
    }
}

/// Warns of metrics that nothing serves. They fail, and a failing metric vetoes scaling down.
pub(super) fn warn(setup: &Setup, warnings: &mut Vec<String>) {
    for step in &setup.timeline {
        match &step.action {
            Action::Autoscale(spec) => warn_about_autoscaler(spec, setup, warnings),
            Action::ScaleObject(plan) => warn_about_triggers(plan, warnings),
            _ => {}
        }
    }
}

fn warn_about_autoscaler(spec: &HorizontalPodAutoscaler, setup: &Setup, warnings: &mut Vec<String>) {
    let stated = |metric| {
        let subject = ExternalSubject::Metric(metric);
        setup.external_metrics.iter().any(|stated| stated.subject == subject)
    };
    let unserved = effective_metrics(spec).iter().filter(|metric| match metric.source {
        MetricSource::Resource { name } | MetricSource::ContainerResource { name, .. } => name != ResourceName::CPU,
        MetricSource::Object { metric, .. } | MetricSource::External { metric, .. } => !stated(metric),
        MetricSource::Pods { .. } => true,
    });
    let count = unserved.count();
    if count > 0 {
        let name = ObjectName { namespace: spec.namespace, name: spec.name };
        warnings.push(format!(
            "HorizontalPodAutoscaler {name}: {count} metric(s) cannot be read, which keeps it from scaling down"
        ));
    }
}

fn warn_about_triggers(plan: &ScalingPlan, warnings: &mut Vec<String>) {
    let name = ObjectName { namespace: plan.object.namespace, name: plan.object.name };
    for (index, reader) in plan.readers.iter().enumerate() {
        if let TriggerReader::Unreachable(why) = reader {
            let trigger = external_metric_name(&plan.object, index);
            warnings.push(format!("ScaledObject {name}: the trigger {trigger} always fails: {why}"));
        }
    }
    let memory = |trigger: &&Trigger| matches!(trigger.source, TriggerSource::Resource { name, .. } if name != ResourceName::CPU);
    if plan.object.triggers.iter().any(|trigger| memory(&trigger)) {
        warnings
            .push(format!("ScaledObject {name}: its memory trigger cannot be read, which keeps it from scaling down"));
    }
}
