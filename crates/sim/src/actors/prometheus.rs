//! Prometheus: scrapes the simulated series and answers queries about them; the metrics adapter in front of it.
//!
//! Counters of requests are whole numbers: of what a workload answers between two looks, each Ready pod gets its share, in
//! turn. A counter exists from the first request on, a series ends some time after its pod is gone.
//!
//! Deviation: all pods of a workload are scraped at the same time. The real program spreads targets over the
//! interval.
//!
//! Deviation: a target is found at the first scrape after its containers run, without the delay of service discovery.
//!
//! Source: Prometheus 3 `scrape/scrape.go`; prometheus-adapter `pkg/custom-provider`.

mod counters;

use super::event::{MetricsEvent, class};
use super::load_loop::Loads;
use super::setup::{PrometheusPlan, SeriesPlan};
use super::sim::Sim;
use crate::cluster::PodPhase;
use crate::domain::labels::{LabelSelector, Labels};
use crate::domain::{PodId, SimDuration, SimTime, Symbol, WorkloadId};
use nodecast_replicas::keda::QueryResult;
use nodecast_replicas::promql::{Element, LOOKBACK, Point, Query, QueryValue, SeriesSource, SeriesView};
use nodecast_settings::{SeriesKind, SeriesOwner};

use counters::RequestCounters;

/// The samples that Prometheus holds.
#[derive(Debug, Default)]
pub(super) struct Prometheus {
    /// In the order of the plan's series.
    series: Vec<SeriesState>,
    names: Vec<String>,
    reach: SimDuration,
    /// Requests of each pod so far, which counters show when they are scraped.
    counters: RequestCounters,
}

#[derive(Debug, Default)]
struct SeriesState {
    targets: Vec<Target>,
    /// When the first sample was there.
    born: Option<SimTime>,
}

#[derive(Debug)]
struct Target {
    /// The pod; `None` for what outlives pods.
    pod: Option<PodId>,
    labels: Labels,
    points: Vec<Point>,
    ended: Option<SimTime>,
}

impl Prometheus {
    pub(super) fn new(plan: Option<&PrometheusPlan<'_>>) -> Self {
        let Some(plan) = plan else { return Self::default() };
        Self {
            series: plan.series.iter().map(|_| SeriesState::default()).collect(),
            names: plan.series.iter().map(|series| series.spec.name.clone()).collect(),
            reach: plan.reach,
            counters: RequestCounters::default(),
        }
    }
}

impl SeriesSource for Prometheus {
    fn visit(&self, name: &str, visit: &mut dyn FnMut(SeriesView<'_>)) {
        for (state, _) in self.series.iter().zip(&self.names).filter(|(_, series)| *series == name) {
            for target in &state.targets {
                visit(SeriesView { labels: &target.labels, points: &target.points, ended: target.ended });
            }
        }
    }
}

/// Puts the first scrape of every series on the queue, at a phase of the workload's own.
pub(super) fn begin(sim: &mut Sim<'_>) {
    let Some(plan) = &sim.setup.prometheus else { return };
    for (index, series) in plan.series.iter().enumerate() {
        let phase = sim.streams.stream("scrape-phase", &series.spec.workload.to_string()).span_up_to(series.interval);
        sim.queue.schedule(SimTime::ZERO + phase, class::METRICS, MetricsEvent::Scrape(index as u32));
    }
}

impl Prometheus {
    /// One series is scraped from all its targets.
    pub(super) fn scrape(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, index: u32) {
        let Some(plan) = &sim.setup.prometheus else { return };
        let series = &plan.series[index as usize];
        sim.queue.schedule_in(series.interval, class::METRICS, MetricsEvent::Scrape(index));
        let Some(workload) = sim.workload_named(series.spec.workload) else { return };
        if is_down(plan, now) {
            return;
        }
        for load in &mut loads.all {
            load.model.advance(now);
        }
        self.counters.settle(workload, &loads.all);
        let values = match series.spec.owner {
            SeriesOwner::Pods => self.pod_values(sim, loads, series, workload),
            SeriesOwner::Gateway => vec![(None, self.gateway_value(sim, loads, series, workload))],
        };
        let state = &mut self.series[index as usize];
        let keep = self.reach + series.interval;
        for (pod, value) in values {
            let known = state.targets.iter_mut().find(|target| target.pod == pod && target.ended.is_none());
            let target = match known {
                Some(target) => target,
                // A counter is exported from the first request on.
                None if is_counter(series.spec.kind) && value < 1.0 => continue,
                None => {
                    let labels = labels(&sim.world, series, workload, pod);
                    state.targets.push(Target { pod, labels, points: Vec::new(), ended: None });
                    state.born = state.born.or(Some(now));
                    match state.targets.last_mut() {
                        Some(target) => target,
                        None => continue,
                    }
                }
            };
            debug_assert!(target.points.last().is_none_or(|last| last.at < now), "one sample an instant");
            target.points.push(Point { at: now, value });
            forget(&mut target.points, now, keep);
        }
        self.end_targets(sim, index as usize, series.interval, now, keep);
    }

    /// Other pods of the workload answer requests from now on: what was answered until now is shared out among those before.
    pub(super) fn replicas_changed(&mut self, sim: &Sim<'_>, loads: &mut Loads, workload: WorkloadId) {
        let Some(plan) = &sim.setup.prometheus else { return };
        let state = sim.world.workload(workload);
        if !plan.series.iter().any(|series| series.spec.workload == state.name && is_counter(series.spec.kind)) {
            return;
        }
        let ready = state.pods.iter().copied().filter(|&pod| sim.world.pod(pod).is_ready()).collect();
        self.counters.settle(workload, &loads.all);
        self.counters.set_ready(workload, ready);
    }

    /// The value of each pod whose containers run.
    fn pod_values(
        &self,
        sim: &Sim<'_>,
        loads: &Loads,
        series: &SeriesPlan<'_>,
        workload: WorkloadId,
    ) -> Vec<(Option<PodId>, f64)> {
        let state = sim.world.workload(workload);
        let running = state.pods.iter().copied().filter(|&pod| sim.world.pod(pod).phase == PodPhase::Running);
        let in_flight = match series.spec.kind {
            SeriesKind::RequestsInFlight => loads.in_flight(workload) / f64::from(state.ready.max(1)),
            _ => 0.0,
        };
        let value = |pod: PodId| match series.spec.kind {
            SeriesKind::IstioRequests | SeriesKind::Requests => self.counters.of_pod(workload, pod) as f64,
            SeriesKind::RequestsInFlight if sim.world.pod(pod).is_ready() => in_flight,
            _ => 0.0,
        };
        running.map(|pod| (Some(pod), value(pod))).collect()
    }

    fn gateway_value(&self, sim: &Sim<'_>, loads: &Loads, series: &SeriesPlan<'_>, workload: WorkloadId) -> f64 {
        let state = sim.world.workload(workload);
        match series.spec.kind {
            SeriesKind::IstioRequests | SeriesKind::Requests => self.counters.total(workload) as f64,
            SeriesKind::RequestsInFlight => loads.in_flight(workload),
            SeriesKind::ReplicasReady => f64::from(state.ready),
            SeriesKind::ReplicasDesired => f64::from(state.replicas),
        }
    }
}

const fn is_counter(kind: SeriesKind) -> bool {
    matches!(kind, SeriesKind::IstioRequests | SeriesKind::Requests)
}

fn is_down(plan: &PrometheusPlan<'_>, now: SimTime) -> bool {
    plan.settings.outages.iter().any(|outage| outage.from <= now && now < outage.until)
}

/// Drops samples that no query reaches any more, now and then.
fn forget(points: &mut Vec<Point>, now: SimTime, keep: SimDuration) {
    let reached = points.partition_point(|point| point.at + keep < now);
    if reached > 64 {
        points.drain(..reached);
    }
}

impl Prometheus {
    /// Series whose pod is gone count as ended a little more than two intervals after their last sample: so long Prometheus
    /// waits for the target to come back before it marks them.
    fn end_targets(&mut self, sim: &Sim<'_>, index: usize, interval: SimDuration, now: SimTime, keep: SimDuration) {
        let world = &sim.world;
        let state = &mut self.series[index];
        for target in state.targets.iter_mut().filter(|target| target.ended.is_none()) {
            let gone = target.pod.is_some_and(|pod| world.pod(pod).phase == PodPhase::Gone);
            if let (true, Some(last)) = (gone, target.points.last()) {
                let patience = SimDuration::from_micros(interval.as_micros() / 10 * 21);
                target.ended = Some(last.at + patience);
            }
        }
        let lookback = keep + LOOKBACK;
        state.targets.retain(|target| target.ended.is_none_or(|ended| ended + lookback >= now));
    }

    /// The result of a query as a KEDA trigger of the type `prometheus` sees it.
    ///
    /// # Errors
    /// Prometheus is down, or the query has no result.
    pub(super) fn trigger_result(&self, sim: &Sim<'_>, now: SimTime, query: &Query) -> Result<QueryResult, String> {
        match self.ask(sim, now, query)? {
            QueryValue::Scalar(_) => Err("the result is a number without series".to_owned()),
            QueryValue::Vector(elements) => Ok(match elements.as_slice() {
                [] => QueryResult::Empty,
                [only] => QueryResult::Value(only.value),
                _ => QueryResult::Several,
            }),
        }
    }

    fn ask(&self, sim: &Sim<'_>, now: SimTime, query: &Query) -> Result<QueryValue, String> {
        ask_of(sim, now, query, self)
    }

    /// What the metrics adapter serves under the name of a metric: elements with the namespace, and the label that names what
    /// they are about. `None` if no rule is of that name.
    ///
    /// The adapter knows a metric from the first look at Prometheus after its series came to be. It puts an autoscaler's selector among the
    /// matchers of the query, so that only series with such labels are added up.
    ///
    /// Source: prometheus-adapter `pkg/custom-provider/series_registry.go`, `--metrics-relist-interval`; `pkg/naming/metrics_query.go`,
    /// `<<.LabelMatchers>>`.
    pub(super) fn adapted(
        &self,
        sim: &Sim<'_>,
        now: SimTime,
        (metric, selector): (Symbol, Option<&LabelSelector>),
    ) -> Option<Result<Vec<Element>, String>> {
        let plan = sim.setup.prometheus.as_ref()?;
        let rule = plan.adapter.iter().find(|rule| rule.metric == metric)?;
        let names = rule.query.series_names();
        let states = self.series.iter().zip(&self.names);
        let born = states.filter(|(_, name)| names.contains(&name.as_str())).filter_map(|(state, _)| state.born).min();
        let phase = sim.streams.stream("relist-phase", "").span_up_to(plan.settings.relist_interval);
        if born.is_none_or(|born| next_relist(born, phase, plan.settings.relist_interval) > now) {
            return Some(Err("the adapter does not know the metric yet".to_owned()));
        }
        let source = Selected { all: self, selector };
        Some(ask_of(sim, now, &rule.query, &source).map(|value| match value {
            QueryValue::Scalar(_) => Vec::new(),
            QueryValue::Vector(elements) => elements.into_iter().filter(|element| element.value.is_finite()).collect(),
        }))
    }
}

impl Loads {
    /// Requests being served or waiting, by Little's law from throughput and response time, and the backlog where nothing is
    /// served.
    fn in_flight(&self, workload: WorkloadId) -> f64 {
        let loads = self.all.iter().filter(|load| load.id == Some(workload));
        loads
            .map(|load| match load.model.response_time() {
                Some(response) => load.model.throughput() * response.mean(),
                None => load.model.backlog(),
            })
            .sum()
    }
}

/// The labels of a series. Those of Istio are what its proxies report of plain HTTP through an ingress gateway.
///
/// Source: Istio 1.20 `extensions/stats`, `docs/reference/config/metrics`.
fn labels(world: &crate::world::World, series: &SeriesPlan<'_>, workload: WorkloadId, pod: Option<PodId>) -> Labels {
    let state = world.workload(workload);
    let (namespace, name) = (state.name.namespace, state.name.name);
    let mut labels = Labels::new().with("namespace", namespace);
    if series.spec.kind == SeriesKind::IstioRequests {
        let make = |key: &str| Symbol::existing(key).and_then(|key| state.template.labels.get(key));
        let app = make("app").unwrap_or_else(|| Symbol::new("unknown"));
        let canonical = make("app.kubernetes.io/name").or(make("app")).unwrap_or(name);
        let reporter = if pod.is_some() { "destination" } else { "source" };
        for (key, value) in [
            ("reporter", reporter),
            ("source_app", "istio-ingressgateway"),
            ("source_workload", "istio-ingressgateway"),
            ("source_workload_namespace", "istio-system"),
            ("request_protocol", "http"),
            ("response_code", "200"),
            ("response_flags", "-"),
        ] {
            labels.set(Symbol::new(key), Symbol::new(value));
        }
        for (key, value) in [
            ("destination_app", app),
            ("destination_canonical_service", canonical),
            ("destination_service_name", name),
            ("destination_service_namespace", namespace),
            ("destination_workload", name),
            ("destination_workload_namespace", namespace),
            ("destination_service", Symbol::new(&format!("{name}.{namespace}.svc.cluster.local"))),
        ] {
            labels.set(Symbol::new(key), value);
        }
        if pod.is_none() {
            labels.set(Symbol::new("namespace"), Symbol::new("istio-system"));
        }
    }
    if let Some(pod) = pod {
        let name = Symbol::new(world.pod_name(pod));
        labels = labels.with("pod", name);
        if series.spec.kind == SeriesKind::IstioRequests {
            labels = labels.with("pod_name", name).with("container", "istio-proxy");
        }
    } else if !is_counter(series.spec.kind) {
        labels = labels.with("deployment", name);
    }
    labels.extend(&series.spec.labels);
    labels
}

/// What Prometheus answers of some of its series.
fn ask_of(sim: &Sim<'_>, now: SimTime, query: &Query, source: &dyn SeriesSource) -> Result<QueryValue, String> {
    let plan = sim.setup.prometheus.as_ref().ok_or("there is no Prometheus")?;
    if is_down(plan, now) {
        return Err("Prometheus does not answer".to_owned());
    }
    query.evaluate(source, now).map_err(|error| error.to_string())
}

/// The series that a selector selects.
struct Selected<'c> {
    all: &'c Prometheus,
    selector: Option<&'c LabelSelector>,
}

impl SeriesSource for Selected<'_> {
    fn visit(&self, name: &str, visit: &mut dyn FnMut(SeriesView<'_>)) {
        self.all.visit(name, &mut |series| {
            if self.selector.is_none_or(|selector| selector.matches(series.labels)) {
                visit(series);
            }
        });
    }
}

/// The first look of the adapter at or after `at`.
fn next_relist(at: SimTime, phase: SimDuration, interval: SimDuration) -> SimTime {
    let first = SimTime::ZERO + phase;
    let after = at.saturating_since(first).as_micros();
    let looks = after.div_euclid(interval.as_micros().max(1)) + i64::from(after % interval.as_micros().max(1) > 0);
    first + interval * looks
}

#[cfg(test)]
mod tests {
    use super::next_relist;
    use crate::domain::{SimDuration, SimTime};

    #[test]
    fn prometheus_adapter_relists_at_phase_and_interval() {
        let at = |secs| SimTime::ZERO + SimDuration::from_secs(secs);
        let next = |secs| next_relist(at(secs), SimDuration::from_secs(100), SimDuration::from_secs(600)).as_secs();
        assert_eq!([next(0), next(100), next(101), next(700), next(701)], [100, 100, 700, 700, 1_300]);
    }
}
