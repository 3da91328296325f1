//! How long pods take that no manifest tells: to start, to run, to stop, and how many fail.

use std::collections::BTreeMap;

use nodecast_observed::claims::{Instant, PodLife};
use nodecast_observed::estimate::{Estimate, Proportion, median, proportion_interval};

use super::change::{Change, PodTime};
use super::{Fit, FitOutcome, Parameter, Unit, beats_assumed, counted, duration_text};
use crate::domain::workload::{Job, ObjectName};
use crate::domain::{PodSpec, SimDuration, Symbol};
use crate::scenario::definition::WorkloadTimes;
use crate::scenario::manifests::Manifests;

/// What is assumed of how long a pod runs that ends by itself.
const RUN_TIME: SimDuration = SimDuration::from_secs(60);
/// Pods that have to have ended before the share of failures says anything beside a default of none.
const ENDED_MIN: usize = 20;

/// The pod of each workload, by `namespace/name`.
pub(super) fn specs(manifests: &Manifests) -> BTreeMap<String, &PodSpec> {
    let deployments = manifests.deployments.iter().map(|deployment| (deployment.name, &*deployment.template));
    let sets = manifests.stateful_sets.iter().map(|stateful_set| (stateful_set.name, &*stateful_set.template));
    let daemons = manifests.daemon_sets.iter().map(|daemon_set| (daemon_set.name, &*daemon_set.template));
    let jobs = jobs(manifests).map(|job| (job.name, &*job.spec.template));
    let cron_jobs = manifests.cron_jobs.iter().map(|cron_job| (cron_job.name, &*cron_job.job.template));
    let scaled = manifests.scaled_jobs.iter();
    let scaled =
        scaled.map(|scaled| (ObjectName { namespace: scaled.namespace, name: scaled.name }, &*scaled.job.template));
    let all = deployments.chain(sets).chain(daemons).chain(jobs).chain(cron_jobs).chain(scaled);
    all.map(|(name, spec)| (name.to_string(), spec)).collect()
}

/// The Jobs that no CronJob or ScaledJob has made: pods of those run as long as their maker's.
fn jobs(manifests: &Manifests) -> impl Iterator<Item = &Job> {
    manifests.jobs.iter().filter(|job| manifests.maker_of(job).is_none())
}

/// Whether a workload's pods end by themselves.
fn ends_by_itself(manifests: &Manifests, name: &str) -> bool {
    let jobs = jobs(manifests).map(|job| job.name).chain(manifests.cron_jobs.iter().map(|cron_job| cron_job.name));
    jobs.map(|job| job.to_string()).any(|job| job == name)
}

pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    let mut by_workload: BTreeMap<&str, Vec<&PodLife>> = BTreeMap::new();
    for pod in fit.history.pods.iter().flatten() {
        if let Some(workload) = &pod.workload {
            by_workload.entry(workload).or_default().push(pod);
        }
    }
    let specs = specs(&fit.policy.manifests);
    let mut parameters = Vec::new();
    for (name, pods) in by_workload {
        let (Some(spec), Some((namespace, parts))) = (specs.get(name), name.split_once('/')) else { continue };
        let workload = ObjectName { namespace: Symbol::new(namespace), name: Symbol::new(parts) };
        let times = fit.scenario.times.get(&workload).copied().unwrap_or_default();
        let one = Workload { name, workload, spec, times, pods };
        if ends_by_itself(&fit.policy.manifests, name) {
            parameters.extend(one.run(fit));
            parameters.extend(one.failures(fit));
        } else {
            parameters.extend(one.start(fit));
            parameters.extend(one.shutdown(fit));
        }
    }
    parameters
}

/// A workload with its recorded pods.
struct Workload<'f> {
    name: &'f str,
    workload: ObjectName,
    spec: &'f PodSpec,
    times: WorkloadTimes,
    pods: Vec<&'f PodLife>,
}

impl Workload<'_> {
    fn spans(&self, from: impl Fn(&PodLife) -> Option<Instant>, to: impl Fn(&PodLife) -> Option<Instant>) -> Vec<f64> {
        let span = |pod: &&PodLife| Some(to(pod)?.seconds_since(from(pod)?));
        self.pods.iter().filter_map(span).filter(|seconds| *seconds >= 0.0).collect()
    }

    /// The median of the spans in the place of what is assumed.
    fn time(
        &self,
        fit: &Fit<'_>,
        (what, key, which): (&str, &str, PodTime),
        assumed: SimDuration,
        measured: Estimate,
    ) -> Parameter {
        // A default of nothing is no guess that a measurement could be less sure than.
        let is_measured = assumed == SimDuration::ZERO || beats_assumed(&measured) || measured.n >= 6;
        let halfway = || libm::sqrt(measured.value.max(0.01) * assumed.as_secs_f64());
        let value = if is_measured { measured.value } else { halfway() };
        let text = duration_text(value);
        let path = ["workloads", &format!("[{}]", self.name), key];
        let span = text.parse().unwrap_or(assumed);
        Parameter {
            assumed: Some(assumed.as_secs_f64()),
            taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
            value,
            keys: vec![fit.key(&path, text, assumed.to_string())],
            change: Some(Change::PodTime(self.workload, which, span)),
            ..Parameter::shown(
                format!("{what} of {}", self.name),
                Unit::Seconds,
                measured,
                counted(measured.n, "pod", "pods"),
            )
        }
    }

    /// Ready less started: it includes the wait for a probe's next period, which the model waits for as well.
    fn start(&self, fit: &Fit<'_>) -> Option<Parameter> {
        let probes = self.spec.containers.iter().filter_map(|container| container.readiness_probe);
        let period = probes.map(|probe| probe.period).max()?;
        let measured = median(&self.spans(|pod| pod.started, |pod| pod.ready))?;
        let low = (measured.low - period.as_secs_f64()).max(0.0);
        let measured = Estimate { low, ..measured };
        let mut parameter = self.time(fit, ("start", "start_time", PodTime::Start), self.times.start_time, measured);
        parameter.notes.push(format!("as the readiness probe sees it, which looks every {period}"));
        // A Ready that comes with the first look says nothing of an application that answers at once.
        let at_once = self.times.start_time == SimDuration::ZERO && measured.value <= 1.0;
        (!at_once).then_some(parameter)
    }

    fn run(&self, fit: &Fit<'_>) -> Option<Parameter> {
        let spans = self.spans(|pod| pod.started.filter(|_| !pod.failed), |pod| pod.finished);
        let assumed = self.times.run_time.unwrap_or(RUN_TIME);
        Some(self.time(fit, ("run", "run_time", PodTime::Run), assumed, median(&spans)?))
    }

    fn shutdown(&self, fit: &Fit<'_>) -> Option<Parameter> {
        let measured = median(&self.spans(|pod| pod.deletion_asked, |pod| pod.gone))?;
        Some(self.time(fit, ("stop", "shutdown_time", PodTime::Shutdown), self.times.shutdown_time, measured))
    }

    fn failures(&self, fit: &Fit<'_>) -> Option<Parameter> {
        let ended: Vec<&&PodLife> =
            self.pods.iter().filter(|pod| pod.finished.is_some() && !pod.outcome_unknown).collect();
        let failures = ended.iter().filter(|pod| pod.failed).count();
        let measured = proportion_interval(Proportion { tries: ended.len(), failures })?;
        let from = counted(ended.len(), "pod", "pods");
        let shown = Parameter {
            assumed: Some(self.times.failures),
            ..Parameter::shown(format!("failures of {}", self.name), Unit::Share, measured, from)
        };
        if ended.len() < ENDED_MIN {
            return Some(shown);
        }
        let path = ["workloads", &format!("[{}]", self.name), "failures"];
        let text = |share: f64| format!("{}", libm::round(share * 1e4) / 1e4);
        let keys = vec![fit.key(&path, text(measured.value), text(self.times.failures))];
        let change = Some(Change::PodFailures(self.workload, measured.value));
        Some(Parameter { taken: FitOutcome::Measured, keys, change, ..shown })
    }
}
