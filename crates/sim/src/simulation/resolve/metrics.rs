//! Where the metrics of replica autoscalers come from, and warnings about those that come from nowhere.

use regex_lite::Regex;

use super::replicas;
use crate::actors::{
    Action, AdapterPlan, JobPlan, PrometheusPlan, ScalingPlan, SeriesPlan, Setup, TriggerReader, TriggerSources,
};
use crate::domain::cron::CronWindow;
use crate::domain::external_metrics::ExternalSubject;
use crate::domain::keda::{Reads, ScaledJob, ScaledObject, Trigger};
use crate::domain::selector_text::parse_selector;
use crate::domain::workload::ObjectName;
use crate::domain::{ResourceName, SimDuration, Symbol};
use crate::manifests::{Manifests, Monitor};
use nodecast_replicas::keda::{Formula, horizontal_pod_autoscaler, trigger_metric_name};
use nodecast_replicas::promql::{LOOKBACK, Query};
use nodecast_settings::QueueSpec;
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, Scenario};

/// A ScaledObject with its autoscaler and the source of each trigger.
pub(super) fn scaling_plan(object: &ScaledObject, scenario: &Scenario) -> ScalingPlan {
    let formula = object.scaling_modifiers.as_ref().and_then(|modifiers| Formula::parse(&modifiers.formula).ok());
    ScalingPlan {
        object: object.clone(),
        autoscaler: horizontal_pod_autoscaler(object),
        readers: trigger_readers(
            ObjectName { namespace: object.namespace, name: object.name },
            &object.triggers,
            scenario,
        ),
        formula,
    }
}

/// A ScaledJob with the source of each trigger and the queue that its pods work off.
pub(super) fn job_plan(job: &ScaledJob, scenario: &Scenario) -> JobPlan {
    let name = ObjectName { namespace: job.namespace, name: job.name };
    JobPlan {
        job: job.clone(),
        readers: trigger_readers(name, &job.triggers, scenario),
        queue: scenario.queues.iter().position(|queue| queue.workload == name),
    }
}

/// The sources of an object's triggers: what the scenario states of one by its name or place goes before what the simulation
/// makes, and what it states of the object stands in where nothing does.
fn trigger_readers(object: ObjectName, triggers: &[Trigger], scenario: &Scenario) -> Vec<TriggerReader> {
    let stated = |trigger: Option<Symbol>| {
        let subject = ExternalSubject::Trigger { object, trigger };
        scenario.external_metrics.iter().position(|metric| metric.subject == subject)
    };
    let reader = |(place, trigger): (usize, &Trigger)| {
        if trigger.source.is_resource() {
            return TriggerReader::MetricsServer;
        }
        let item = trigger.name.and_then(|name| stated(Some(name)));
        let item = item.or_else(|| stated(Some(Symbol::new(&format!("s{place}")))));
        let reader = item.map_or_else(|| trigger_reader(trigger, scenario), TriggerReader::External);
        match (reader, stated(None)) {
            (TriggerReader::Unreachable(_) | TriggerReader::Unknown(_), Some(position)) => {
                TriggerReader::External(position)
            }
            (reader, _) => reader,
        }
    };
    triggers.iter().enumerate().map(reader).collect()
}

fn trigger_reader(trigger: &Trigger, scenario: &Scenario) -> TriggerReader {
    let unreachable = |why: String| TriggerReader::Unreachable(why);
    match &trigger.source.reads {
        Reads::Resource { .. } => TriggerReader::MetricsServer,
        Reads::Cron(cron) => {
            CronWindow::new(cron).map_or_else(|problem| unreachable(problem.to_string()), TriggerReader::Calendar)
        }
        Reads::KubernetesWorkload { pod_selector, .. } => {
            parse_selector(pod_selector).map_or_else(|error| unreachable(error.to_string()), TriggerReader::Pods)
        }
        Reads::External { scaler_address, .. } => {
            let serves = |name: Option<Symbol>| {
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
        Reads::Outside => {
            TriggerReader::Unknown(format!("`external_metrics` has no values of its trigger `{}`", trigger.source.kind))
        }
        Reads::Prometheus { query, .. } => match Query::parse(query) {
            Err(error) => TriggerReader::Unknown(error.to_string()),
            Ok(_) if scenario.prometheus.is_none() => unreachable("the scenario has no `prometheus`".to_owned()),
            Ok(query) => TriggerReader::Query(query),
        },
        Reads::Queue(_) | Reads::Kafka(_) | Reads::RabbitMq(_) => {
            let found: Vec<usize> = (0..scenario.queues.len())
                .filter(|&position| reads_queue(&trigger.source.reads, &scenario.queues[position]))
                .collect();
            if found.is_empty() {
                return unreachable(format!("no entry under `queues` has {}", expected_queue(&trigger.source.reads)));
            }
            TriggerReader::Queues(found)
        }
    }
}

/// The keys of an entry under `queues` that a trigger reads; empty for triggers that read no queue.
fn expected_queue(reads: &Reads) -> String {
    match reads {
        Reads::Queue(queue) => format!("kind `{}` and name `{}`", queue.system, queue.name),
        Reads::Kafka(kafka) => {
            let topic = kafka.topic.as_ref().map(|topic| format!(", name `{topic}`,")).unwrap_or_default();
            format!("kind `kafka`{topic} and consumer_group `{}`", kafka.consumer_group)
        }
        Reads::RabbitMq(rabbit) if rabbit.operation.is_some() => {
            format!("kind `rabbitmq` and a name that matches `{}`", rabbit.queue)
        }
        Reads::RabbitMq(rabbit) => format!("kind `rabbitmq` and name `{}`", rabbit.queue),
        _ => String::new(),
    }
}

/// Whether a trigger looks at a queue.
fn reads_queue(reads: &Reads, queue: &QueueSpec) -> bool {
    let system = queue.kind.system;
    match (reads, &queue.kind.topic) {
        (Reads::Queue(queue_trigger), _) => queue_trigger.system == system && queue_trigger.name == queue.name,
        (Reads::Kafka(kafka), Some(topic)) => {
            kafka.consumer_group == topic.group && kafka.topic.as_ref().is_none_or(|topic| *topic == queue.name)
        }
        (Reads::RabbitMq(rabbit), _) if system == "rabbitmq" && rabbit.operation.is_some() => {
            Regex::new(&rabbit.queue).is_ok_and(|pattern| pattern.is_match(&queue.name))
        }
        (Reads::RabbitMq(rabbit), _) => system == "rabbitmq" && rabbit.queue == queue.name,
        _ => false,
    }
}

/// Prometheus with the interval at which each series is scraped: that of the monitor that selects its pods, or the scenario's,
/// or a minute.
pub(super) fn prometheus_plan<'s>(scenario: &'s Scenario, manifests: &Manifests) -> Option<PrometheusPlan<'s>> {
    let settings = scenario.prometheus.as_ref()?;
    let adapter: Vec<AdapterPlan> = settings
        .adapter
        .iter()
        .filter_map(|rule| Some(AdapterPlan { metric: rule.metric, query: Query::parse(&rule.query).ok()? }))
        .collect();
    let triggers = scenario.timeline.iter().filter_map(|step| Some(&**step.action.applied()?));
    let objects = std::iter::once(manifests).chain(triggers).flat_map(|manifests| {
        let objects = manifests.scaled_objects.iter().flat_map(|object| &object.triggers);
        objects.chain(manifests.scaled_jobs.iter().flat_map(|job| &job.triggers))
    });
    let queries = objects.filter_map(|trigger| match &trigger.source.reads {
        Reads::Prometheus { query, .. } => Query::parse(query).ok(),
        _ => None,
    });
    let reach = queries.map(|query| query.reach()).chain(adapter.iter().map(|rule| rule.query.reach())).max();
    let series = settings.istio.iter().chain(&settings.series).map(|spec| SeriesPlan {
        spec,
        interval: scrape_interval(spec.workload, manifests)
            .or(settings.scrape_interval)
            .unwrap_or(SimDuration::from_secs(60)),
    });
    Some(PrometheusPlan { settings, series: series.collect(), adapter, reach: reach.unwrap_or(LOOKBACK) })
}

/// The shortest interval of the monitors that select the workload's pods, or a Service of theirs.
fn scrape_interval(workload: ObjectName, manifests: &Manifests) -> Option<SimDuration> {
    let deployment = manifests.deployments.iter().find(|deployment| deployment.name == workload)?;
    let pods = &deployment.template.labels;
    let selects = |monitor: &&Monitor| {
        let looks = monitor.namespaces.as_ref().is_none_or(|listed| listed.contains(&workload.namespace));
        // Labels of a Service are not read, so a ServiceMonitor is held against the pods' labels, which are mostly the same.
        looks && monitor.selector.matches(pods)
    };
    manifests.monitors.iter().filter(selects).filter_map(|monitor| monitor.interval).min()
}

/// Warns of metrics that nothing serves. They fail, and a failing metric vetoes scaling down.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    replicas::warn_about_shared(setup, warnings);
    for step in &setup.timeline {
        match &step.action {
            Action::Autoscale(spec) => replicas::warn_about_autoscaler(spec, setup, warnings),
            Action::ScaleObject(plan) => {
                let name = format!("ScaledObject {}/{}", plan.object.namespace, plan.object.name);
                let measured = |name| match &plan.autoscaler {
                    Some(spec) => {
                        is_measured(name, ObjectName { namespace: spec.namespace, name: spec.target.name }, setup)
                    }
                    None => true,
                };
                warn_about_triggers(&name, &plan.sources(), measured, warnings);
                warn_about_queries(&name, &plan.sources(), setup, warnings);
                if let Some(spec) = &plan.autoscaler {
                    replicas::warn_about_resources(&name, spec, setup, warnings);
                }
            }
            Action::ScaleJobs(plan) => {
                let name = format!("ScaledJob {}/{}", plan.job.namespace, plan.job.name);
                warn_about_triggers(&name, &plan.sources(), |name| name == ResourceName::CPU, warnings);
                warn_about_queries(&name, &plan.sources(), setup, warnings);
                let workload = ObjectName { namespace: plan.job.namespace, name: plan.job.name };
                let states_time = setup.scenario.times.get(&workload).is_some_and(|times| times.run_time.is_some());
                if plan.queue.is_none() && !states_time {
                    warnings.add(
                        &setup::QUEUE_MISSING,
                        format!(
                            "{name}: no entry under `queues` names it, so each Job pod is assumed to run for 1 minute"
                        ),
                    );
                }
            }
            _ => {}
        }
    }
}

fn warn_about_triggers(
    name: &str,
    sources: &TriggerSources<'_>,
    is_measured: impl Fn(ResourceName) -> bool,
    warnings: &mut Caveats,
) {
    for (index, reader) in sources.readers.iter().enumerate() {
        if let TriggerReader::Unreachable(why) = reader {
            let trigger = trigger_metric_name(sources.namespace, sources.triggers, index);
            warnings.add(&setup::TRIGGER_FAILS, format!("{name}: trigger {trigger} always fails: {why}"));
        }
        // A query that is not answered is warned of where it stands.
        let is_query = matches!(sources.triggers[index].source.reads, Reads::Prometheus { .. });
        if let (TriggerReader::Unknown(why), false) = (reader, is_query) {
            let trigger = trigger_metric_name(sources.namespace, sources.triggers, index);
            warnings.add(
                &setup::TRIGGER_WITHOUT_DATA,
                format!("{name}: trigger {trigger} has no data, so it never scales: {why}"),
            );
        }
    }
    let unmeasured =
        |trigger: &Trigger| matches!(trigger.source.reads, Reads::Resource { name, .. } if !is_measured(name));
    if sources.triggers.iter().any(unmeasured) {
        warnings
            .add(&setup::MEMORY_TRIGGER, format!("{name}: no data for its memory trigger, so it cannot scale down"));
    }
}

/// Whether metrics-server knows a resource of a workload's pods: CPU always, memory where a load says what requests need or the
/// scenario states it.
pub(super) fn is_measured(name: ResourceName, workload: ObjectName, setup: &Setup<'_>) -> bool {
    let subject = ExternalSubject::Resource { workload, resource: name };
    if setup.scenario.external_metrics.iter().any(|stated| stated.subject == subject) {
        return true;
    }
    let mut parts = setup.loads.iter().filter(|plan| plan.workload == workload).flat_map(|plan| &plan.parts);
    let used = || setup.usages.iter().any(|usage| usage.workload == workload && !usage.memory.is_empty());
    name == ResourceName::CPU
        || (name == ResourceName::MEMORY && (parts.any(|part| part.service.memory.is_some()) || used()))
}

/// Warns of queries that find no series, and of those that never fall.
fn warn_about_queries(name: &str, sources: &TriggerSources<'_>, setup: &Setup<'_>, warnings: &mut Caveats) {
    let known: Vec<&str> =
        setup.prometheus.iter().flat_map(|plan| &plan.series).map(|series| series.spec.name.as_str()).collect();
    for (index, reader) in sources.readers.iter().enumerate() {
        let TriggerReader::Query(query) = reader else { continue };
        let trigger = trigger_metric_name(sources.namespace, sources.triggers, index);
        for series in query.series_names() {
            if !known.contains(&series) {
                let there = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                warnings.add(&setup::SERIES_MISSING, format!(
                    "{name}: the query of {trigger} uses series `{series}`, which is not under `prometheus` (available: {there})"
                ));
            }
        }
        for counter in query.bare_counters() {
            warnings.add(&setup::COUNTER_WITHOUT_RATE, format!(
                "{name}: the query of {trigger} reads counter `{counter}` without rate() or increase(), so the value never falls while its pods run"
            ));
        }
    }
}
