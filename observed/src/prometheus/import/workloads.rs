//! What workloads did: CPU, memory, requests, replicas, and what their autoscalers were set to.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_decisions::domain::SimTime;
use nodecast_decisions::domain::words::counted;

use super::super::answer::Series;
use super::super::catalogue::{PRODUCERS, Served, producer_of};
use super::super::saved::{Answers, Asked};
use super::owners::Owners;
use super::{Frame, series, text};
use crate::observation::about::WorkloadFigures;
use crate::observation::{Autoscaler, MemoryUse, WorkloadState};

/// A curve: values by instant.
pub(super) type Curve = BTreeMap<SimTime, f64>;
/// A metric of an autoscaler: its name, what its target is in, the target.
type Metric = (Option<String>, Option<String>, Option<f64>);
/// Curves by workload.
type Curves = BTreeMap<String, Curve>;

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
    pub(super) fn of(answers: &Answers, owners: &Owners, frame: Frame) -> Self {
        let mut own = Self::default();
        let daemons: BTreeSet<&str> =
            owners.workloads().filter(|own| own.kind == "DaemonSet").map(|own| own.workload.as_str()).collect();
        let cpu = without(own.used(answers, owners, frame, ["cpu_by_pod", "cpu_by_workload"]), &daemons);
        let memory = without(own.used(answers, owners, frame, ["memory_by_pod", "memory_by_workload"]), &daemons);
        let [wanted, ready] = ["wanted", "ready"].map(|what| replicas(answers, frame, what));
        let names: BTreeSet<String> = wanted.keys().chain(cpu.keys()).cloned().collect();
        let requests = own.requests(answers, owners, frame, &names);
        own.figures = own.figures(answers, owners, &cpu, &requests, &wanted);
        own.states = states(&cpu, &requests, &wanted, &ready);
        own.memory = memory
            .into_iter()
            .flat_map(|(workload, curve)| curve.into_iter().map(move |(at, bytes)| (at, workload.clone(), bytes)))
            .map(|(at, workload, bytes)| MemoryUse { at, workload, memory_bytes: libm::round(bytes) as i64 })
            .collect();
        own.memory.sort_by(|one, other| (one.at, &one.workload).cmp(&(other.at, &other.workload)));
        own.autoscalers = autoscalers(answers, frame);
        own
    }

    /// What pods use, added up by workload; of answers that the server has joined, as they are.
    fn used(&mut self, answers: &Answers, owners: &Owners, frame: Frame, [by_pod, by_workload]: [&str; 2]) -> Curves {
        let mut curves = Curves::new();
        let Some(asked) = answers.answered(by_pod) else {
            for own in series(answers.asked(by_workload)) {
                let name = format!("{}/{}", own.label("namespace"), own.label("workload"));
                add(curves.entry(name).or_default(), own, frame);
            }
            return curves;
        };
        let mut unknown = 0_u64;
        for own in &asked.answer.series {
            match owners.of_pod(own.label("namespace"), own.label("pod")) {
                Some(owner) => add(curves.entry(owner.workload.clone()).or_default(), own, frame),
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            let pods = counted(unknown, "pod has", "pods have");
            self.warnings.push(format!("{by_pod}: {pods} no known owner and count nowhere"));
        }
        curves
    }

    /// The requests of each workload, by the first producer that has any, with the role of its answer.
    fn requests(
        &mut self,
        answers: &Answers,
        owners: &Owners,
        frame: Frame,
        names: &BTreeSet<String>,
    ) -> BTreeMap<String, (String, Curve)> {
        let mut all: BTreeMap<String, (String, Curve)> = BTreeMap::new();
        let mut roles: Vec<(usize, String, &Asked)> = answers
            .beginning("requests_")
            .filter_map(|(suffix, asked)| {
                let labels = &asked.answer.series.first()?.labels;
                let producer = producer_of(suffix, labels)?;
                let rank = PRODUCERS.iter().position(|own| own == producer)?;
                Some((rank, format!("requests_{suffix}"), asked))
            })
            .collect();
        roles.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        for (rank, role, asked) in roles {
            let mut curves = Curves::new();
            let mut nowhere = 0_u64;
            for own in &asked.answer.series {
                match served(PRODUCERS[rank].served, own, owners, names) {
                    Some(workload) => add(curves.entry(workload).or_default(), own, frame),
                    None => nowhere += 1,
                }
            }
            if nowhere > 0 {
                let series = counted(nowhere, "series", "series");
                self.warnings
                    .push(format!("{role}: {series} of requests name no workload that was seen, and count nowhere"));
            }
            let served_by = PRODUCERS[rank].served;
            let is_guess = matches!(served_by, Served::Service { .. } | Served::TraefikService | Served::EnvoyCluster);
            for (workload, curve) in curves {
                // A counter that stands still may be of an endpoint that nobody calls.
                let counts = curve.values().any(|rate| *rate > 0.0);
                if counts && !all.contains_key(&workload) {
                    self.requests_from.insert(role.clone());
                    if is_guess {
                        self.guessed.insert(role.clone());
                    }
                    all.insert(workload, (role.clone(), curve));
                }
            }
        }
        all
    }

    /// Figures of each workload.
    fn figures(
        &mut self,
        answers: &Answers,
        owners: &Owners,
        cpu: &Curves,
        requests: &BTreeMap<String, (String, Curve)>,
        wanted: &Curves,
    ) -> Vec<WorkloadFigures> {
        let cpu_seconds = increases(answers.answered("cpu_increase_by_pod"), |own| {
            owners.of_pod(own.label("namespace"), own.label("pod")).map(|owner| owner.workload.clone())
        });
        let names: BTreeSet<&String> = cpu.keys().chain(requests.keys()).chain(wanted.keys()).collect();
        let known: BTreeSet<String> = names.iter().map(|name| (*name).clone()).collect();
        let mut all = Vec::new();
        for workload in names {
            let (role, rate) = requests.get(workload).map_or((None, None), |(role, curve)| (Some(role), mean(curve)));
            let used = cpu.get(workload).and_then(mean);
            let counted = role.and_then(|role| {
                let suffix = role.strip_prefix("requests_")?;
                let asked = answers.answered(&format!("request_increase_{suffix}"))?;
                let producer = producer_of(suffix, &asked.answer.series.first()?.labels)?;
                increases(Some(asked), |own| served(producer.served, own, owners, &known)).remove(workload)
            });
            let exact = counted.zip(cpu_seconds.get(workload).copied());
            let exact = exact.filter(|(requests, _)| *requests > 0.0).map(|(requests, seconds)| seconds / requests);
            let by_rate = used.zip(rate).filter(|(_, rate)| *rate > 0.0).map(|(used, rate)| used / rate);
            let basis = if exact.is_some() { Some("increase") } else { by_rate.map(|_| "rate") };
            all.push(WorkloadFigures {
                workload: workload.clone(),
                requests_per_second: rate,
                requests_from: role.map(|role| role.trim_start_matches("requests_").to_owned()),
                cpu_used_milli: used.map(|cores| cores * 1e3),
                cpu_per_request_seconds: exact.or(by_rate),
                cpu_per_request_by: basis.map(str::to_owned),
                replicas_desired: wanted.get(workload).and_then(mean),
            });
        }
        if all.iter().any(|own| own.cpu_per_request_by.as_deref() == Some("rate")) {
            self.warnings.push(
                "CPU per request is worked out of rates, which lose what a new pod does before its second scrape: a little low"
                    .to_owned(),
            );
        }
        all
    }
}

/// The workload that a series of requests is of.
fn served(served: Served, own: &Series, owners: &Owners, names: &BTreeSet<String>) -> Option<String> {
    let named = |namespace: &str, name: &str| {
        let (namespace, name) = (own.label(namespace), own.label(name));
        (!namespace.is_empty() && !name.is_empty() && name != "unknown").then(|| format!("{namespace}/{name}"))
    };
    match served {
        Served::Pod => owners.of_pod(own.label("namespace"), own.label("pod")).map(|owner| owner.workload.clone()),
        Served::Workload { namespace, name } => named(namespace, name),
        Served::Service { namespace, name } => named(namespace, name).filter(|name| names.contains(name)),
        Served::TraefikService => {
            let service = own.label("service").strip_suffix("@kubernetes")?;
            let is_of = |name: &&String| service.starts_with(&format!("{}-", name.replacen('/', "-", 1)));
            // The longest: `shop-web-admin-80` is of `shop/web-admin` where there is `shop/web` too.
            names.iter().filter(is_of).max_by_key(|name| name.len()).cloned()
        }
        Served::EnvoyCluster => behind_envoy(own.label("envoy_cluster_name"), names),
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

/// Adds a series to a curve; what is no number counts nothing.
fn add(curve: &mut Curve, own: &Series, frame: Frame) {
    for sample in own.samples.iter().filter(|sample| sample.value.is_finite()) {
        *curve.entry(frame.at(sample)).or_default() += sample.value;
    }
}

/// The sum of all samples by workload: of increases over stretches that touch each other, that of the window.
fn increases(asked: Option<&Asked>, of: impl Fn(&Series) -> Option<String>) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for own in series(asked) {
        if let Some(workload) = of(own) {
            let values = own.samples.iter().map(|sample| sample.value).filter(|value| value.is_finite());
            *sums.entry(workload).or_default() += values.sum::<f64>();
        }
    }
    sums
}

fn without(mut curves: Curves, daemons: &BTreeSet<&str>) -> Curves {
    curves.retain(|name, _| !daemons.contains(name.as_str()));
    curves
}

/// The mean over the instants of a curve; `None` without any.
pub(super) fn mean(curve: &Curve) -> Option<f64> {
    (!curve.is_empty()).then(|| curve.values().sum::<f64>() / curve.len() as f64)
}

/// Replicas of Deployments and StatefulSets.
fn replicas(answers: &Answers, frame: Frame, what: &str) -> Curves {
    let mut curves = Curves::new();
    for (prefix, label) in [("", "deployment"), ("statefulset_", "statefulset")] {
        for own in series(answers.asked(&format!("{prefix}replicas_{what}"))) {
            let name = format!("{}/{}", own.label("namespace"), own.label(label));
            add(curves.entry(name).or_default(), own, frame);
        }
    }
    curves
}

/// One row for each workload at each instant at which anything of it was observed.
fn states(
    cpu: &Curves,
    requests: &BTreeMap<String, (String, Curve)>,
    wanted: &Curves,
    ready: &Curves,
) -> Vec<WorkloadState> {
    let mut rows: BTreeMap<(SimTime, &str), WorkloadState> = BTreeMap::new();
    fill(&mut rows, cpu.iter().map(|(name, curve)| (name.as_str(), curve)), |row, cores| {
        row.cpu_used_milli = Some(cores * 1e3)
    });
    fill(&mut rows, requests.iter().map(|(name, (_, curve))| (name.as_str(), curve)), |row, rate| {
        row.requests_per_second = Some(rate)
    });
    fill(&mut rows, wanted.iter().map(|(name, curve)| (name.as_str(), curve)), |row, own| {
        row.replicas_desired = Some(libm::round(own) as i64)
    });
    fill(&mut rows, ready.iter().map(|(name, curve)| (name.as_str(), curve)), |row, own| {
        row.replicas_ready = Some(libm::round(own) as i64)
    });
    rows.into_values().collect()
}

fn fill<'c>(
    rows: &mut BTreeMap<(SimTime, &'c str), WorkloadState>,
    curves: impl Iterator<Item = (&'c str, &'c Curve)>,
    set: fn(&mut WorkloadState, f64),
) {
    for (workload, curve) in curves {
        for (at, value) in curve {
            let new = || WorkloadState { at: *at, workload: workload.to_owned(), ..WorkloadState::default() };
            set(rows.entry((*at, workload)).or_insert_with(new), *value);
        }
    }
}

/// What autoscalers were set to, with a row for each metric whenever anything changed.
fn autoscalers(answers: &Answers, frame: Frame) -> Vec<Autoscaler> {
    let name = |own: &Series| format!("{}/{}", own.label("namespace"), own.label("horizontalpodautoscaler"));
    let bounds = |role: &str| -> BTreeMap<(String, SimTime), i64> {
        let all = series(answers.asked(role)).iter();
        all.flat_map(|own| {
            own.samples.iter().map(|sample| ((name(own), frame.at(sample)), libm::round(sample.value) as i64))
        })
        .collect()
    };
    let (least, most) = (bounds("hpa_min"), bounds("hpa_max"));
    let targets: BTreeMap<String, String> = series(answers.asked("hpa_target_of"))
        .iter()
        .filter_map(|own| {
            Some((name(own), format!("{}/{}", own.label("namespace"), text(own, "scaletargetref_name")?)))
        })
        .collect();
    let mut metrics: BTreeMap<(String, SimTime), Vec<Metric>> = BTreeMap::new();
    for own in series(answers.asked("hpa")) {
        for sample in &own.samples {
            let metric = (text(own, "metric_name"), text(own, "metric_target_type"), Some(sample.value));
            metrics.entry((name(own), frame.at(sample))).or_default().push(metric);
        }
    }
    let mut rows: Vec<Autoscaler> = Vec::new();
    let mut before: BTreeMap<String, Vec<Autoscaler>> = BTreeMap::new();
    let instants: BTreeSet<&(String, SimTime)> = least.keys().chain(most.keys()).chain(metrics.keys()).collect();
    for key @ (autoscaler, at) in instants {
        let own = metrics.get(key).cloned().unwrap_or_else(|| vec![(None, None, None)]);
        let now: Vec<Autoscaler> = own
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
            rows.extend(now.iter().map(|own| Autoscaler { at: *at, ..own.clone() }));
            before.insert(autoscaler.clone(), now);
        }
    }
    rows.sort_by(|one, other| {
        (one.at, &one.autoscaler, &one.metric).cmp(&(other.at, &other.autoscaler, &other.metric))
    });
    rows
}
