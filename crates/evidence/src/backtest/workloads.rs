//! Workloads in a back-test: replicas, CPU in use and response times over time, and the curves that a page draws.

use serde::Serialize;

use super::Stretch;
use super::figures::{Basis, Window};
use super::floors::{self, FigureTolerance};
use super::history::{History, WorkloadState};
use super::verdict::{Judged, judge, judge_curve, root_mean_square, weighted_error};
use crate::domain::{SimDuration, SimTime};

/// Curves are compared minute by minute; long stretches less often, at so many instants.
const STEP: SimDuration = SimDuration::from_secs(60);
const INSTANTS_MAX: i64 = 5_000;

/// A workload, judged.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct WorkloadResult {
    /// Namespace and name.
    pub workload: String,
    /// Replicas wanted: means, and whether the curves agree.
    pub replicas: Judged,
    /// The sum of absolute differences of the mean simulated curve over the sum of what happened.
    pub replicas_weighted_error: f64,
    /// The root of their mean square.
    pub replicas_root_mean_square: f64,
    /// The weighted error of the naive forecast; `null` without one.
    pub replicas_naive_weighted_error: Option<f64>,
    /// CPU in use, in thousandths; `null` where none was recorded.
    pub cpu_milli: Option<Judged>,
    /// 99th percentile of the response time in seconds, the mean over the samples; `null` where none was recorded.
    pub latency_p99_seconds: Option<Judged>,
    /// The limit of replicas at which one side stays and that the other passes.
    #[serde(skip)]
    pub limit: Option<Limit>,
}

/// A limit of a HorizontalPodAutoscaler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The most replicas.
    Most,
    /// The fewest.
    Fewest,
}

impl WorkloadResult {
    /// All that is judged of it.
    pub fn judged(&self) -> impl Iterator<Item = &Judged> {
        std::iter::once(&self.replicas).chain(&self.cpu_milli).chain(&self.latency_p99_seconds)
    }
}

/// A curve of what happened among those of simulations, at equal distances.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What it shows.
    pub name: String,
    /// What happened.
    pub observed: Vec<f64>,
    /// The mean of the simulations.
    pub simulated: Vec<f64>,
    /// The least and the most of the simulations.
    pub band: Vec<(f64, f64)>,
}

/// All workloads of a back-test.
#[derive(Clone, PartialEq, Debug)]
pub struct Workloads {
    /// Judged, those with most replicas first.
    pub results: Vec<WorkloadResult>,
    /// Their replicas, in the same order.
    pub curves: Vec<Curve>,
}

impl Workloads {
    /// Judges the workloads that were recorded and are simulated. `before` is the stretch of the naive forecast.
    pub fn new(recorded: &History, simulations: &[History], stretch: Stretch, before: Option<Window>) -> Self {
        let mut judged: Vec<(WorkloadResult, Curve)> = recorded
            .workloads
            .iter()
            .flatten()
            .filter_map(|(name, states)| workload(name, states, simulations, stretch, before))
            .collect();
        judged.sort_by(|one, other| other.0.replicas.observed.total_cmp(&one.0.replicas.observed));
        let (results, curves) = judged.into_iter().unzip();
        Self { results, curves }
    }
}

fn workload(
    name: &str,
    states: &[WorkloadState],
    simulations: &[History],
    stretch: Stretch,
    before: Option<Window>,
) -> Option<(WorkloadResult, Curve)> {
    let simulated: Vec<&[WorkloadState]> =
        simulations.iter().filter_map(|history| history.workloads.as_ref()?.get(name)).map(Vec::as_slice).collect();
    if simulated.is_empty() {
        return None;
    }
    let observed = sampled(states, stretch.recorded, replicas)?;
    let curves: Vec<Vec<f64>> =
        simulated.iter().filter_map(|states| sampled(states, stretch.simulated, replicas)).collect();
    let (judged, centre) = judge_curve(&observed, &curves, floors::REPLICAS)?;
    let naive = before.and_then(|before| sampled(states, before, replicas));
    let of_means = |of: fn(&WorkloadState) -> Option<f64>, known: FigureTolerance| {
        let happened = mean(states, stretch.recorded, of).filter(|value| *value > 0.0)?;
        let values: Vec<f64> = simulated.iter().filter_map(|states| mean(states, stretch.simulated, of)).collect();
        judge(happened, &values, known.tolerance, known.share * happened)
    };
    let result = WorkloadResult {
        workload: name.to_owned(),
        replicas: judged,
        replicas_weighted_error: weighted_error(&observed, &centre)?,
        replicas_root_mean_square: root_mean_square(&observed, &centre)?,
        replicas_naive_weighted_error: naive.and_then(|naive| weighted_error(&observed, &naive)),
        cpu_milli: of_means(|state| state.cpu_milli, floors::CPU),
        latency_p99_seconds: of_means(|state| state.latency_p99, floors::LATENCY),
        limit: limit(&observed, &centre),
    };
    let curve = Curve { name: name.to_owned(), band: band(&curves, observed.len()), observed, simulated: centre };
    Some((result, curve))
}

/// At which limit one side stays for a twentieth of the time and more, while the other passes it by more than a tenth; both agree while
/// neither is there, or it is no limit that keeps them apart.
fn limit(observed: &[f64], simulated: &[f64]) -> Option<Limit> {
    const STAYS: f64 = 0.05;
    const PASSES: f64 = 1.1;
    let stays = |values: &[f64], at: f64| {
        let there = values.iter().filter(|value| (*value - at).abs() < 0.5).count();
        there as f64 >= STAYS * values.len() as f64
    };
    let pairs = || observed.iter().copied().zip(simulated.iter().copied());
    let agree = |away: &dyn Fn(f64) -> bool| {
        let (one, two): (Vec<f64>, Vec<f64>) = pairs().filter(|(one, two)| away(*one) && away(*two)).unzip();
        weighted_error(&one, &two).is_some_and(|error| error < floors::REPLICAS.tolerance)
    };
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let fewest = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let (low, high) = (most(observed).min(most(simulated)), most(observed).max(most(simulated)));
    let lower = if most(observed) <= most(simulated) { observed } else { simulated };
    if high > PASSES * low && stays(lower, low) && agree(&|value| value * PASSES < low) {
        return Some(Limit::Most);
    }
    let (low, high) = (fewest(observed).min(fewest(simulated)), fewest(observed).max(fewest(simulated)));
    let upper = if fewest(observed) >= fewest(simulated) { observed } else { simulated };
    let is_fewest = high > PASSES * low && stays(upper, high) && agree(&|value| value > PASSES * high);
    is_fewest.then_some(Limit::Fewest)
}

fn replicas(state: &WorkloadState) -> Option<f64> {
    state.desired.or(state.ready)
}

/// The mean over the states of a window that have the value.
fn mean(states: &[WorkloadState], window: Window, of: impl Fn(&WorkloadState) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = states.iter().filter(|state| window.holds(state.at)).filter_map(of).collect();
    crate::statistics::mean(&values)
}

/// How far apart the instants of a window are at which curves are compared.
fn step(window: Window) -> SimDuration {
    let least = window.length().as_micros() / INSTANTS_MAX;
    SimDuration::from_micros(STEP.as_micros().max(least))
}

/// The instants of a window at which curves are compared.
pub(super) fn instants(window: Window) -> impl Iterator<Item = SimTime> {
    let step = step(window);
    std::iter::successors(Some(window.from), move |at| Some(*at + step)).take_while(move |at| *at < window.until)
}

/// The value that holds at each instant of the window, as the last state says; `None` if no state has one.
fn sampled(states: &[WorkloadState], window: Window, of: impl Fn(&WorkloadState) -> Option<f64>) -> Option<Vec<f64>> {
    let mut known = states.iter().filter_map(|state| Some((state.at, of(state)?))).peekable();
    let mut holds = None;
    let values = instants(window).map(|at| {
        while let Some((_, value)) = known.next_if(|(from, _)| *from <= at) {
            holds = Some(value);
        }
        holds
    });
    let values: Vec<Option<f64>> = values.collect();
    // A workload that came later had none before.
    values.iter().any(Option::is_some).then(|| values.into_iter().map(|value| value.unwrap_or(0.0)).collect())
}

fn band(curves: &[Vec<f64>], length: usize) -> Vec<(f64, f64)> {
    (0..length)
        .map(|place| {
            let values = curves.iter().filter_map(|curve| curve.get(place).copied());
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
        })
        .collect()
}

/// Nodes at once over the stretch, recorded and simulated.
pub fn nodes(recorded: &History, simulations: &[History], stretch: Stretch) -> Curve {
    let basis = Basis::from_recorded(recorded);
    let observed = nodes_of(recorded, stretch.recorded, basis);
    let curves: Vec<Vec<f64>> = simulations.iter().map(|history| nodes_of(history, stretch.simulated, basis)).collect();
    let simulated = (0..observed.len())
        .map(|place| curves.iter().filter_map(|curve| curve.get(place)).sum::<f64>() / curves.len().max(1) as f64)
        .collect();
    Curve { name: "nodes".to_owned(), band: band(&curves, observed.len()), observed, simulated }
}

fn nodes_of(history: &History, window: Window, basis: Basis) -> Vec<f64> {
    let spans = history.nodes.iter().flatten().filter_map(|node| basis.presence(node, history.end()));
    let mut turns: Vec<(SimTime, f64)> = spans.flat_map(|(from, until)| [(from, 1.0), (until, -1.0)]).collect();
    turns.sort_by_key(|(at, _)| *at);
    let mut turns = turns.into_iter().peekable();
    let mut now = 0.0;
    instants(window)
        .map(|at| {
            while let Some((_, turn)) = turns.next_if(|(turned, _)| *turned <= at) {
                now += turn;
            }
            now
        })
        .collect()
}
