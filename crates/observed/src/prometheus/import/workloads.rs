//! What workloads did: CPU, memory, requests, replicas, and what their autoscalers were set to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodecast_model::domain::SimTime;
use nodecast_model::domain::words::counted;
use nodecast_model::text::InputError;

use super::super::answer::{Sample, Series};
use super::super::catalogue::{PRODUCERS, Served, is_behind, producer_of};
use super::answer_reader::AnswerReader;
use super::curves::{Curve, Curves, lay, next_at};
use super::owners::Owners;
use super::{Frame, text};
use crate::observation::about::WorkloadFigures;
use crate::observation::{Autoscaler, MemoryUse, WorkloadState};

/// Seconds of a stretch in which CPU and requests are held against each other: the step of the question for CPU.
const STRETCH: i64 = 300;

/// A metric of an autoscaler: its name, what its target is in, the target.
type Metric = (Option<String>, Option<String>, Option<f64>);
/// The requests of a workload, with the role of the answer that tells them.
type Requests = BTreeMap<String, (String, Curve)>;

/// What was found of workloads.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    pub(super) states: Vec<WorkloadState>,
    pub(super) memory: Vec<MemoryUse>,
    pub(super) autoscalers: Vec<Autoscaler>,
    pub(super) figures: Vec<WorkloadFigures>,
    /// The roles whose answers tell the requests of a workload.
    pub(super) requests_from: BTreeSet<String>,
    /// Those of which it was guessed which workload they are of.
    pub(super) guessed: BTreeSet<String>,
    pub(super) warnings: Vec<String>,
}

impl Workloads {
    /// # Errors
    /// If an answer cannot be read.
    pub(super) fn new(told: &mut AnswerReader<'_>, owners: &Owners, frame: Frame) -> Result<Self, InputError> {
        let mut workloads = Self { autoscalers: autoscalers(told, frame)?, ..Self::default() };
        let daemons: BTreeSet<&str> = owners
            .workloads()
            .filter(|workload| workload.kind == "DaemonSet")
            .map(|workload| workload.workload.as_str())
            .collect();
        let cpu = without(workloads.used(told, owners, frame, ["cpu_by_pod", "cpu_by_workload"])?, &daemons);
        let memory = without(workloads.used(told, owners, frame, ["memory_by_pod", "memory_by_workload"])?, &daemons);
        workloads.memory = memory_use(memory);
        let wanted = replicas(told, frame, "wanted")?;
        let ready = replicas(told, frame, "ready")?;
        let names: BTreeSet<String> = wanted.keys().chain(cpu.keys()).cloned().collect();
        let requests = workloads.requests(told, owners, frame, &names)?;
        workloads.figures = workloads.figures(told, owners, &cpu, &requests, &wanted)?;
        workloads.states = states(&cpu, &requests, &wanted, &ready);
        Ok(workloads)
    }

    /// What pods use, added up by workload; of answers that the server has joined, as they are.
    fn used(
        &mut self,
        told: &mut AnswerReader<'_>,
        owners: &Owners,
        frame: Frame,
        [by_pod, by_workload]: [&str; 2],
    ) -> Result<Curves, InputError> {
        let mut curves = Curves::new();
        let series = told.series(by_pod)?;
        if !told.is_answered(by_pod) {
            for series in told.series(by_workload)? {
                let name = format!("{}/{}", series.label("namespace"), series.label("workload"));
                curves.entry(name).or_default().add(&series, frame);
            }
            return Ok(curves);
        }
        let mut unknown = 0_u64;
        for series in &series {
            match owners.of_pod(series.label("namespace"), series.label("pod")) {
                Some(owner) => curves.entry(owner.workload.clone()).or_default().add(series, frame),
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            let pods = counted(unknown, "pod has", "pods have");
            self.warnings.push(format!("{by_pod}: {pods} no known owner and count nowhere"));
        }
        Ok(curves)
    }

    /// The requests of each workload, by the first producer that has any, with the role of its answer.
    fn requests(
        &mut self,
        told: &mut AnswerReader<'_>,
        owners: &Owners,
        frame: Frame,
        names: &BTreeSet<String>,
    ) -> Result<Requests, InputError> {
        let mut all = Requests::new();
        for (rank, role) in ranked(told)? {
            let mut curves = Curves::new();
            let mut nowhere = 0_u64;
            let served_by = PRODUCERS[rank].served;
            for series in told.series(role)? {
                match served(served_by, &series, owners, names) {
                    Some(workload) => curves.entry(workload).or_default().add(&series, frame),
                    None => nowhere += 1,
                }
            }
            if nowhere > 0 {
                let series = counted(nowhere, "series", "series");
                self.warnings
                    .push(format!("{role}: {series} of requests name no workload that was seen, and count nowhere"));
            }
            let is_guess = !matches!(served_by, Served::Pod | Served::Workload { .. });
            for (workload, curve) in curves {
                // A counter that stands still may be of an endpoint that nobody calls.
                let counts = curve.points().iter().any(|(_, rate)| *rate > 0.0);
                if counts && !all.contains_key(&workload) {
                    self.requests_from.insert(role.to_owned());
                    if is_guess {
                        self.guessed.insert(role.to_owned());
                    }
                    all.insert(workload, (role.to_owned(), curve));
                }
            }
        }
        Ok(all)
    }

    /// Figures of each workload.
    fn figures(
        &mut self,
        told: &mut AnswerReader<'_>,
        owners: &Owners,
        cpu: &Curves,
        requests: &Requests,
        wanted: &Curves,
    ) -> Result<Vec<WorkloadFigures>, InputError> {
        let cpu_seconds = increases(&told.series("cpu_increase_by_pod")?, |series| {
            owners.of_pod(series.label("namespace"), series.label("pod")).map(|owner| owner.workload.clone())
        });
        let names: BTreeSet<String> = cpu.keys().chain(requests.keys()).chain(wanted.keys()).cloned().collect();
        let mut counts: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for role in &self.requests_from {
            counts.insert(role.clone(), counts_of(told, role, owners, &names)?);
        }
        let mut all = Vec::new();
        for workload in &names {
            let (role, rate) = requests.get(workload).map_or((None, None), |(role, curve)| (Some(role), curve.mean()));
            let used = cpu.get(workload).and_then(Curve::mean);
            let counted = role.and_then(|role| counts.get(role)?.get(workload).copied());
            let exact = counted.zip(cpu_seconds.get(workload).copied());
            let exact = exact.filter(|(requests, _)| *requests > 0.0).map(|(requests, seconds)| seconds / requests);
            let both = cpu.get(workload).zip(requests.get(workload).map(|(_, curve)| curve));
            let by_rate = both.and_then(|(cpu, requests)| of_one(cpu, requests));
            let basis = if exact.is_some() { Some("increase") } else { by_rate.map(|_| "rate") };
            all.push(WorkloadFigures {
                workload: workload.clone(),
                requests_per_second: rate,
                requests_from: role.map(|role| role.trim_start_matches("requests_").to_owned()),
                cpu_used_milli: used.map(|cores| cores * 1e3),
                cpu_per_request_seconds: exact.or(by_rate),
                cpu_per_request_by: basis.map(str::to_owned),
                replicas_desired: wanted.get(workload).and_then(Curve::mean),
            });
        }
        if all.iter().any(|workload_figures| workload_figures.cpu_per_request_by.as_deref() == Some("rate")) {
            self.warnings.push(
                "CPU per request is worked out of rates, which lose what a new pod does before its second scrape: a little low"
                    .to_owned(),
            );
        }
        Ok(all)
    }
}

/// CPU seconds of one request by the rates of both, of the stretches in which both were recorded; `None` where none is.
fn of_one(cpu: &Curve, requests: &Curve) -> Option<f64> {
    let stretches = |curve: &Curve| -> BTreeSet<i64> {
        curve.points().iter().map(|(at, _)| at.as_secs().div_euclid(STRETCH)).collect()
    };
    let (of_cpu, of_requests) = (stretches(cpu), stretches(requests));
    let mean = |curve: &Curve| {
        let is_common = |at: i64| of_cpu.contains(&at) && of_requests.contains(&at);
        let values = curve.points().iter().filter(|(at, _)| is_common(at.as_secs().div_euclid(STRETCH)));
        let (count, sum) = values.fold((0_usize, 0.0), |(count, sum), (_, value)| (count + 1, sum + value));
        (count > 0).then(|| sum / count as f64)
    };
    let (used, rate) = mean(cpu).zip(mean(requests))?;
    (rate > 0.0).then(|| used / rate)
}

/// The roles that tell of requests, with the place of their producers in the order in which these are believed.
fn ranked<'a>(told: &mut AnswerReader<'a>) -> Result<Vec<(usize, &'a str)>, InputError> {
    let mut roles = Vec::new();
    for role in told.beginning("requests_") {
        let suffix = role.trim_start_matches("requests_");
        let is_named = PRODUCERS.iter().any(|producer| producer.name == suffix);
        // Only where the name does not say it do labels.
        let first = if is_named { Some(Series::default()) } else { told.series(role)?.into_iter().next() };
        let producer = first.and_then(|series| producer_of(suffix, &series.labels));
        roles.extend(
            producer.and_then(|producer| PRODUCERS.iter().position(|one| one == producer)).map(|rank| (rank, role)),
        );
    }
    roles.sort_unstable();
    Ok(roles)
}

/// How many requests of each workload were counted where `role` tells their rates.
fn counts_of(
    told: &mut AnswerReader<'_>,
    role: &str,
    owners: &Owners,
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, f64>, InputError> {
    let Some(suffix) = role.strip_prefix("requests_") else { return Ok(BTreeMap::new()) };
    let series = told.series(&format!("request_increase_{suffix}"))?;
    let producer = series.first().and_then(|first| producer_of(suffix, &first.labels));
    Ok(producer
        .map(|producer| increases(&series, |one| served(producer.served, one, owners, names)))
        .unwrap_or_default())
}

/// The workload that a series of requests is of.
fn served(served: Served, series: &Series, owners: &Owners, names: &BTreeSet<String>) -> Option<String> {
    let named = |namespace: &str, name: &str| {
        let (namespace, name) = (series.label(namespace), series.label(name));
        (!namespace.is_empty() && !name.is_empty() && name != "unknown").then(|| format!("{namespace}/{name}"))
    };
    match served {
        Served::Pod => {
            owners.of_pod(series.label("namespace"), series.label("pod")).map(|owner| owner.workload.clone())
        }
        Served::Workload { namespace, name } => named(namespace, name),
        Served::Service { namespace, name } => named(namespace, name).filter(|name| names.contains(name)),
        Served::TraefikService => {
            let service = series.label("service").strip_suffix("@kubernetes")?;
            let is_of = |name: &&String| service.starts_with(&format!("{}-", name.replacen('/', "-", 1)));
            // The longest: `shop-web-admin-80` is of `shop/web-admin` where there is `shop/web` too.
            names.iter().filter(is_of).max_by_key(|name| name.len()).cloned()
        }
        Served::EnvoyCluster => behind_envoy(series.label("envoy_cluster_name"), names),
        Served::TargetGroup => {
            let mut all = names.iter().filter(|own_name| {
                own_name.split_once('/').is_some_and(|(namespace, name)| is_behind(series, namespace, name))
            });
            // Names are cut off there: of two that begin alike none is known to be meant.
            all.next().filter(|_| all.next().is_none()).cloned()
        }
    }
}

/// The workload that stands behind what Envoy calls a cluster, by the names in it.
fn behind_envoy(cluster: &str, names: &BTreeSet<String>) -> Option<String> {
    let words: Vec<&str> = cluster.split(['/', '|', '_', ':']).filter(|word| !word.is_empty()).collect();
    let of_address = |word: &&str| {
        let mut parts = word.split('.');
        let (name, namespace) = (parts.next()?, parts.next()?);
        (parts.next() == Some("svc")).then(|| format!("{namespace}/{name}"))
    };
    let pairs = words.windows(2).map(|pair| format!("{}/{}", pair[0], pair[1]));
    words.iter().filter_map(of_address).chain(pairs).find(|name| names.contains(name))
}

/// The sum of all samples by workload: of increases over stretches that touch each other, that of the window.
fn increases(all: &[Series], of: impl Fn(&Series) -> Option<String>) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for series in all {
        if let Some(workload) = of(series) {
            let values = series.samples.iter().map(|sample| sample.value).filter(|value| value.is_finite());
            *sums.entry(workload).or_default() += values.sum::<f64>();
        }
    }
    sums
}

fn without(mut curves: Curves, daemons: &BTreeSet<&str>) -> Curves {
    curves.retain(|name, _| !daemons.contains(name.as_str()));
    curves
}

/// Memory by instant and workload.
fn memory_use(curves: Curves) -> Vec<MemoryUse> {
    let mut all: Vec<MemoryUse> = Vec::with_capacity(curves.values().map(|curve| curve.points().len()).sum());
    for (workload, curve) in curves {
        let workload: Arc<str> = workload.into();
        all.extend(curve.points().iter().map(|(at, bytes)| MemoryUse {
            at: *at,
            workload: Arc::clone(&workload),
            memory_bytes: libm::round(*bytes) as i64,
        }));
    }
    // Of one instant they are in order of workloads already.
    all.sort_by_key(|item| item.at);
    all
}

/// Replicas of Deployments and StatefulSets.
fn replicas(told: &mut AnswerReader<'_>, frame: Frame, what: &str) -> Result<Curves, InputError> {
    let mut curves = Curves::new();
    for (prefix, label) in [("", "deployment"), ("statefulset_", "statefulset")] {
        for series in told.series(&format!("{prefix}replicas_{what}"))? {
            let name = format!("{}/{}", series.label("namespace"), series.label(label));
            curves.entry(name).or_default().add(&series, frame);
        }
    }
    Ok(curves)
}

/// What is left to be told of a workload: points of its CPU, its requests, the replicas wanted and those ready.
struct Rest<'c> {
    workload: Arc<str>,
    curves: [&'c [(SimTime, f64)]; 4],
}

impl Rest<'_> {
    /// Its row at an instant, if anything of it was observed then.
    fn at(&mut self, at: SimTime) -> Option<WorkloadState> {
        let now = self.curves.each_mut().map(|curve| next_at(curve, at));
        let [cores, rate, wanted, ready] = now;
        now.iter().any(Option::is_some).then(|| WorkloadState {
            at,
            workload: Arc::clone(&self.workload),
            replicas_desired: wanted.map(|item| libm::round(item) as i64),
            replicas_ready: ready.map(|ready| libm::round(ready) as i64),
            requests_per_second: rate,
            cpu_used_milli: cores.map(|cores| cores * 1e3),
            latency_mean_seconds: None,
            latency_p99_seconds: None,
        })
    }
}

/// One row for each workload at each instant at which anything of it was observed.
fn states(cpu: &Curves, requests: &Requests, wanted: &Curves, ready: &Curves) -> Vec<WorkloadState> {
    let names: BTreeSet<&String> = cpu.keys().chain(requests.keys()).chain(wanted.keys()).chain(ready.keys()).collect();
    let mut workloads = Vec::new();
    let mut instants: Vec<(SimTime, ())> = Vec::new();
    let mut rows = 0;
    for name in names {
        let requests = requests.get(name).map(|(_, curve)| curve);
        let curves = [cpu.get(name), requests, wanted.get(name), ready.get(name)];
        let curves = curves.map(|curve| curve.map_or(&[][..], Curve::points));
        let mut item: Vec<(SimTime, ())> = Vec::new();
        for curve in curves {
            lay(&mut item, curve.iter().map(|(at, _)| (*at, ())), |(), ()| ());
        }
        rows += item.len();
        lay(&mut instants, item.into_iter(), |(), ()| ());
        workloads.push(Rest { workload: name.as_str().into(), curves });
    }
    // Their number is known: a table that grows would lie in memory twice.
    let mut all = Vec::with_capacity(rows);
    for (at, ()) in instants {
        all.extend(workloads.iter_mut().filter_map(|workload| workload.at(at)));
    }
    all
}

/// What autoscalers were set to, with a row for each metric whenever anything changed.
///
/// # Errors
/// If an answer cannot be read.
fn autoscalers(told: &mut AnswerReader<'_>, frame: Frame) -> Result<Vec<Autoscaler>, InputError> {
    let name = |series: &Series| format!("{}/{}", series.label("namespace"), series.label("horizontalpodautoscaler"));
    let mut bounds = |role: &str| -> Result<BTreeMap<(String, SimTime), i64>, InputError> {
        let value = |sample: &Sample| libm::round(sample.value) as i64;
        let all = told.series(role)?;
        Ok(all
            .iter()
            .flat_map(|series| series.samples.iter().map(|sample| ((name(series), frame.at(sample)), value(sample))))
            .collect())
    };
    let (least, most) = (bounds("hpa_min")?, bounds("hpa_max")?);
    let targets: BTreeMap<String, String> = told
        .series("hpa_target_of")?
        .iter()
        .filter_map(|series| {
            Some((name(series), format!("{}/{}", series.label("namespace"), text(series, "scaletargetref_name")?)))
        })
        .collect();
    let mut metrics: BTreeMap<(String, SimTime), Vec<Metric>> = BTreeMap::new();
    for series in told.series("hpa")? {
        for sample in &series.samples {
            let metric = (text(&series, "metric_name"), text(&series, "metric_target_type"), Some(sample.value));
            metrics.entry((name(&series), frame.at(sample))).or_default().push(metric);
        }
    }
    let mut rows: Vec<Autoscaler> = Vec::new();
    let mut before: BTreeMap<String, Vec<Autoscaler>> = BTreeMap::new();
    let instants: BTreeSet<&(String, SimTime)> = least.keys().chain(most.keys()).chain(metrics.keys()).collect();
    for key @ (autoscaler, at) in instants {
        let this_metric = metrics.get(key).cloned().unwrap_or_else(|| vec![(None, None, None)]);
        let now: Vec<Autoscaler> = this_metric
            .into_iter()
            .map(|(metric, unit, target)| Autoscaler {
                at: SimTime::ZERO,
                autoscaler: autoscaler.clone(),
                workload: targets.get(autoscaler).cloned(),
                min_replicas: least.get(key).copied(),
                max_replicas: most.get(key).copied(),
                metric,
                unit,
                target,
            })
            .collect();
        if before.get(autoscaler) != Some(&now) {
            rows.extend(now.iter().map(|item| Autoscaler { at: *at, ..item.clone() }));
            before.insert(autoscaler.clone(), now);
        }
    }
    rows.sort_by(|one, other| {
        (one.at, &one.autoscaler, &one.metric).cmp(&(other.at, &other.autoscaler, &other.metric))
    });
    Ok(rows)
}
