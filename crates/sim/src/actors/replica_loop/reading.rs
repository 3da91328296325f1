//! What a pass over an autoscaler reads: from metrics-server, from an adapter of Prometheus, from KEDA, or as the scenario
//! states it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Syncing;
use crate::actors::load_loop::Loads;
use crate::actors::metrics_server::MetricsServer;
use crate::actors::sim::Sim;
use crate::actors::usage_loop;
use crate::actors::usage_loop::Usages;
use crate::cluster::PodPhase;
use crate::domain::external_metrics::{ExternalMetric, ExternalSubject, stated_for};
use crate::domain::hpa::MetricSource;
use crate::domain::workload::ObjectName;
use crate::domain::{PodId, PodSpec, ResourceName, SimDuration, SimTime, Symbol};
use nodecast_replicas::hpa::{HpaView, MetricReading, PodSample, Sample, effective_metrics, pod_request_milli};
use nodecast_replicas::promql::Element;

/// What reading a resource needs anew at every pass, or nearly so.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) samples: Vec<PodSample>,
    /// What a pod of a template requests of the resource last asked about.
    request: Option<(Arc<PodSpec>, ResourceName, Option<i64>)>,
}

impl Reading {
    fn request(&mut self, template: &Arc<PodSpec>, (name, container): (ResourceName, Option<&str>)) -> Option<i64> {
        if container.is_some() {
            return pod_request_milli(template, name, container).ok();
        }
        if let Some((known, of, request)) = &self.request
            && Arc::ptr_eq(known, template)
            && *of == name
        {
            return *request;
        }
        let request = pod_request_milli(template, name, None).ok();
        self.request = Some((Arc::clone(template), name, request));
        request
    }
}

/// What was read for one metric.
pub(super) enum MetricRead {
    PerPod(Vec<PodSample>),
    Series(Vec<i64>),
    Failed(String),
}

impl MetricRead {
    /// The samples, for their room.
    pub(super) fn into_samples(self) -> Option<Vec<PodSample>> {
        match self {
            Self::PerPod(samples) => Some(samples),
            Self::Series(_) | Self::Failed(_) => None,
        }
    }

    pub(super) fn as_reading(&self) -> MetricReading<'_> {
        match self {
            Self::PerPod(samples) => MetricReading::PerPod { samples, unmatched: &[] },
            Self::Series(values) => MetricReading::Series(values),
            Self::Failed(why) => MetricReading::Failed(why),
        }
    }
}

/// Reads every metric, those of each pod in the order of `pods`. At zero replicas the controller asks for nothing unless it
/// scales from there.
pub(super) fn read_metrics(
    parts: &mut Syncing<'_, '_>,
    index: u32,
    view: &HpaView<'_>,
    pods: &[PodId],
    room: &mut Reading,
) -> SmallVec<[MetricRead; 1]> {
    if view.spec_replicas == 0 && !parts.autoscalers.wakes(parts.sim, index) {
        return SmallVec::new();
    }
    let metrics = effective_metrics(parts.autoscalers.all[index as usize].spec).len();
    (0..metrics).map(|metric| read_metric(parts, view.now, index, pods, metric, room)).collect()
}

/// Reads the metric at `position`.
fn read_metric(
    parts: &mut Syncing<'_, '_>,
    now: SimTime,
    index: u32,
    pods: &[PodId],
    position: usize,
    room: &mut Reading,
) -> MetricRead {
    let (spec, owner) = (parts.autoscalers.all[index as usize].spec, parts.autoscalers.all[index as usize].owner);
    let target = ObjectName { namespace: spec.namespace, name: spec.target.name };
    let source = &effective_metrics(spec)[position].source;
    match source {
        MetricSource::Resource { name } => read_resource(parts, now, index, (target, pods), (*name, None), room),
        MetricSource::ContainerResource { name, container } => {
            read_resource(parts, now, index, (target, pods), (*name, Some(container.as_str())), room)
        }
        MetricSource::External { .. } if owner.is_some() => {
            match parts.scaled_objects.external_metric(
                parts.sim,
                parts.prometheus,
                parts.queues,
                now,
                owner.unwrap_or_default(),
                position,
            ) {
                Ok(milli) => MetricRead::Series(vec![milli]),
                Err(why) => MetricRead::Failed(why),
            }
        }
        MetricSource::External { metric, selector } => {
            match parts.prometheus.adapted(parts.sim, now, (*metric, selector.as_ref())) {
                Some(Ok(elements)) => series(elements.iter().map(|element| element.value).collect()),
                Some(Err(why)) => MetricRead::Failed(why),
                None => stated(parts.sim, now, spec.namespace, source),
            }
        }
        MetricSource::Object { metric, selector, object } => {
            match parts.prometheus.adapted(parts.sim, now, (*metric, selector.as_ref())) {
                Some(Ok(elements)) => {
                    let kind = Symbol::new(&object.kind.as_str().to_ascii_lowercase());
                    let matches = |element: &&Element| {
                        is_in(element, spec.namespace) && element.labels.get(kind) == Some(object.name)
                    };
                    series(elements.iter().filter(matches).map(|element| element.value).collect())
                }
                Some(Err(why)) => MetricRead::Failed(why),
                None => stated(parts.sim, now, spec.namespace, source),
            }
        }
        MetricSource::Pods { metric, selector } => {
            match parts.prometheus.adapted(parts.sim, now, (*metric, selector.as_ref())) {
                Some(Ok(elements)) => of_pods(parts.sim, now, spec.namespace, pods, &elements),
                Some(Err(why)) => MetricRead::Failed(why),
                None => MetricRead::Failed(NO_PIPELINE.to_owned()),
            }
        }
    }
}

/// Values as the adapter hands them on: thousandths, truncated.
fn series(values: Vec<f64>) -> MetricRead {
    if values.is_empty() {
        return MetricRead::Failed("the adapter has no value of the metric".to_owned());
    }
    MetricRead::Series(values.into_iter().map(|value| (value * 1e3) as i64).collect())
}

/// Whether an element belongs to the namespace; one without the label is taken to.
fn is_in(element: &Element, namespace: Symbol) -> bool {
    element.labels.get(Symbol::new("namespace")).is_none_or(|label| label == namespace)
}

/// The values of the pods; those without one are missing.
fn of_pods(sim: &Sim<'_>, now: SimTime, namespace: Symbol, pods: &[PodId], elements: &[Element]) -> MetricRead {
    let label = Symbol::new("pod");
    let values: FxHashMap<Symbol, f64> = elements
        .iter()
        .filter(|element| is_in(element, namespace))
        .filter_map(|element| Some((element.labels.get(label)?, element.value)))
        .collect();
    let sample = |&pod: &PodId| {
        let value = Symbol::existing(sim.world.pod_name(pod)).and_then(|name| values.get(&name));
        let window = SimDuration::from_secs(60);
        PodSample { sample: value.map(|value| Sample { milli: (value * 1e3) as i64, at: now, window }), request: None }
    };
    let samples: Vec<PodSample> = pods.iter().map(sample).collect();
    if samples.iter().all(|sample| sample.sample.is_none()) {
        return MetricRead::Failed("the adapter has no value of any pod".to_owned());
    }
    MetricRead::PerPod(samples)
}

const NO_PIPELINE: &str = "no metrics pipeline serves this metric in the simulation";

/// Answer of metrics-server before its first reading of a pod.
const NO_READING: &str = "no metrics returned from resource metrics API";

const FAILS: &str = "the scenario says that reading it fails";

/// The value that the scenario states for a metric.
fn stated(sim: &Sim<'_>, now: SimTime, namespace: Symbol, source: &MetricSource) -> MetricRead {
    match stated_for(&sim.setup.scenario.external_metrics, namespace, source) {
        Some(stated) => match stated.at(now) {
            Some(value) => MetricRead::Series(vec![(value * 1e3) as i64]),
            None => MetricRead::Failed(FAILS.to_owned()),
        },
        None => MetricRead::Failed(NO_PIPELINE.to_owned()),
    }
}

fn stated_of<'s>(sim: &Sim<'s>, subject: &ExternalSubject) -> Option<&'s ExternalMetric> {
    sim.setup.scenario.external_metrics.iter().find(|stated| stated.subject == *subject)
}

/// A resource of each pod, or of one container of each: from metrics-server, or as the scenario states it for the workload that made
/// the pod. `target` is the one that is scaled. The samples are put where `room` has them.
fn read_resource(
    parts: &Syncing<'_, '_>,
    now: SimTime,
    index: u32,
    (target, pods): (ObjectName, &[PodId]),
    (name, container): (ResourceName, Option<&str>),
    room: &mut Reading,
) -> MetricRead {
    let stated = |workload| stated_of(parts.sim, &ExternalSubject::Resource { workload, resource: name });
    let of_target = stated(target).map(|stated| stated.at(now));
    if of_target == Some(None) {
        return MetricRead::Failed(FAILS.to_owned());
    }
    let is_memory = name == ResourceName::MEMORY;
    let has_memory = || pods.iter().any(|&pod| parts.metrics.memory_sample(pod, now).is_some());
    if of_target.is_none() && name != ResourceName::CPU && !(is_memory && has_memory()) {
        let workload = parts.sim.workload_named(target).filter(|_| is_memory);
        let served = workload.is_some_and(|workload| usage_loop::states_memory(parts.loads, parts.usages, workload));
        return MetricRead::Failed(if served { NO_READING } else { NO_PIPELINE }.to_owned());
    }
    let mut samples = std::mem::take(&mut room.samples);
    samples.clear();
    let times = &parts.autoscalers.all[index as usize].times;
    let sample = |&pod: &PodId| {
        let state = parts.sim.world.pod(pod);
        let request = room.request(&state.spec, (name, container));
        let maker = parts.sim.world.workload(state.workload).name;
        let percent = if maker == target { of_target } else { stated(maker).map(|stated| stated.at(now)) };
        let sample = match percent {
            _ if state.phase != PodPhase::Running => None,
            Some(percent) => stated_sample(parts.sim, parts.metrics, parts.loads, now, pod, percent.zip(request)),
            None => {
                metered_sample(parts.sim, parts.metrics, parts.loads, parts.usages, now, pod, (is_memory, container))
            }
        };
        PodSample { sample: sample.map(|sample| times.stamped(pod, sample)), request }
    };
    samples.extend(pods.iter().map(sample));
    of_container(parts.sim, pods, container, samples, room)
}

/// What metrics-server says of a pod, or of one of its containers.
fn metered_sample(
    sim: &Sim<'_>,
    metrics: &MetricsServer,
    loads: &Loads,
    usages: &Usages,
    now: SimTime,
    pod: PodId,
    (is_memory, container): (bool, Option<&str>),
) -> Option<Sample> {
    let state = sim.world.pod(pod);
    let sample = match is_memory {
        true => metrics.memory_sample(pod, now),
        false => metrics.sample(pod, (state.workload, state.started), &loads.all, now),
    };
    let part = |milli: i64| match container {
        None => milli,
        Some(container) if is_memory => milli.saturating_sub(usages.memory_of_others(sim, pod, container)),
        Some(container) => cpu_of_container(sim, metrics, usages, now, (pod, milli), container),
    };
    sample.map(|sample| Sample { milli: part(sample.milli).max(0), ..sample })
}

/// What a container uses of the CPU of its pod: the one that does the work all of it but for what is stated of the others, another what is
/// stated of itself.
fn cpu_of_container(
    sim: &Sim<'_>,
    metrics: &MetricsServer,
    usages: &Usages,
    now: SimTime,
    (pod, of_pod): (PodId, i64),
    container: &str,
) -> i64 {
    let (item, all) = usages.stated_cpu(sim, metrics, pod, container);
    let works = sim.world.pod(pod).spec.working_container().is_some_and(|worker| worker.name == container);
    if works {
        of_pod.saturating_sub(all - item)
    } else {
        of_pod.min(item + usages.start_up_of(sim, now, pod, container))
    }
}

/// So many percent of what a pod requests, from when on metrics-server knows anything of it: what is stated is what metrics-server
/// answers with at once.
fn stated_sample(
    sim: &Sim<'_>,
    metrics: &MetricsServer,
    loads: &Loads,
    now: SimTime,
    pod: PodId,
    percent_of_request: Option<(f64, i64)>,
) -> Option<Sample> {
    let state = sim.world.pod(pod);
    let (percent, request) = percent_of_request?;
    let known = metrics.sample(pod, (state.workload, state.started), &loads.all, now)?;
    // Rounded up, since what the autoscaler makes of it is cut to whole percent.
    Some(Sample { milli: libm::ceil(request as f64 * percent / 100.0 - 1e-6) as i64, ..known })
}

/// The samples, unless they are of a container that a pod which metrics-server knows has not.
///
/// Source: Kubernetes 1.36 `pkg/controller/podautoscaler/metrics/client.go`, `getContainerMetrics`.
fn of_container(
    sim: &Sim<'_>,
    pods: &[PodId],
    container: Option<&str>,
    samples: Vec<PodSample>,
    room: &mut Reading,
) -> MetricRead {
    let lacks = |name: &str| {
        let mut known = pods.iter().zip(&samples).filter(|(_, pod)| pod.sample.is_some());
        known.find(|(pod, _)| !sim.world.pod(**pod).spec.has_container(name)).map(|(pod, _)| *pod)
    };
    let Some((name, pod)) = container.and_then(|name| Some((name, lacks(name)?))) else {
        return MetricRead::PerPod(samples);
    };
    room.samples = samples;
    let pod = sim.world.pod_name(pod);
    MetricRead::Failed(format!(
        "failed to get container metrics: container {name} not present in metrics for pod {pod}"
    ))
}
