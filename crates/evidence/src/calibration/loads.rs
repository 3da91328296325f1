//! What a request costs: CPU in use against the rate of requests, with what is used without any.

use std::collections::BTreeMap;

use nodecast_observed::estimate::{Estimate, line};

use super::change::Change;
use super::{Fit, FitOutcome, Parameter, Unit, counted, duration_text};
use crate::domain::SimDuration;

/// The share of CPU without requests above which a model without idle CPU is warned of.
const IDLE_MAX: f64 = 0.10;
/// Seconds between samples of a pod's CPU, as kube-prometheus-stack and most others scrape at most. An assumption.
const SCRAPE: f64 = 60.0;

pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    let mut by_workload: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in fit.history.loads.iter().flatten().filter(|sample| sample.requests_per_second > 0.0) {
        let point = (sample.requests_per_second, sample.cpu_used_milli / 1_000.0);
        by_workload.entry(&sample.workload).or_default().push(point);
    }
    by_workload.into_iter().filter_map(|(workload, points)| of_workload(fit, workload, &points)).collect()
}

/// The slope is seconds of CPU for each request. The scenario has to state it, so that it is only shown.
fn of_workload(fit: &mut Fit<'_>, workload: &str, points: &[(f64, f64)]) -> Option<Parameter> {
    let fitted = line(points)?;
    let mean = points.iter().map(|(_, cpu)| cpu).sum::<f64>() / points.len() as f64;
    let idle = fitted.intercept.value / mean;
    if idle > IDLE_MAX && fitted.intercept.low > 0.0 {
        fit.warnings.push(format!(
            "{workload} uses {:.0}% of its CPU without any request, which the model of requests has not: state more per request, or less load",
            idle * 100.0
        ));
    }
    let load = fit.scenario.load.iter().find(|load| load.workload.to_string() == workload);
    let assumed = load.map(|load| load.service.cpu_per_request.as_secs_f64());
    let unseen = if fit.history.sampled { unseen(fit, workload) } else { Some(0.0) };
    let slope = Estimate { high: fitted.slope.high * (1.0 + unseen.unwrap_or(0.0)), ..fitted.slope };
    let change = load.map(|load| {
        let span: SimDuration = SimDuration::from_secs_f64(fitted.slope.value.max(0.0));
        Change::CpuPerRequest(load.workload, span)
    });
    let mut shown = Parameter {
        assumed,
        change,
        ..Parameter::shown(
            format!("CPU of a request to {workload}"),
            Unit::Seconds,
            slope,
            counted(points.len(), "sample", "samples"),
        )
    };
    shown.taken = FitOutcome::Shown;
    shown.notes.push(format!("{:.0}% of the CPU is used without requests", idle.max(0.0) * 100.0));
    match unseen {
        Some(share) if share > 0.0 => {
            shown.notes.push(format!("up to {:.1}% more, which pods use before their second sample", share * 100.0));
        }
        Some(_) => {}
        None => shown.notes.push(
            "more by what pods use before their second sample: starts of pods are not recorded, so its share is unknown".to_owned(),
        ),
    }
    shown.notes.push(format!(
        "the scenario states it: write `service: {{ cpu_per_request: {} }}`",
        duration_text_fine(fitted.slope.value)
    ));
    Some(shown)
}

/// The share of CPU that no rate shows at most: a rate begins with a pod's second sample, a scrape interval after the first. When pods
/// ended is seldom recorded: the replica counts give the total time that all of them ran. `None` where pods are not recorded.
fn unseen(fit: &Fit<'_>, workload: &str) -> Option<f64> {
    let pods = fit.history.pods.as_ref()?;
    let loads = || fit.history.loads.iter().flatten().filter(|sample| sample.workload == workload);
    let replicas: Vec<f64> = loads().filter_map(|sample| sample.replicas).collect();
    let ends = loads().map(|sample| sample.at).min().zip(loads().map(|sample| sample.at).max());
    let Some((from, until)) = ends.filter(|_| !replicas.is_empty()) else { return Some(0.0) };
    let mean = replicas.iter().sum::<f64>() / replicas.len() as f64;
    let this_pod = pods.iter().filter(|pod| pod.workload.as_deref() == Some(workload));
    let starts = this_pod.filter(|pod| pod.started.is_some_and(|at| at >= from)).count() as f64;
    let ran = mean * until.seconds_since(from);
    Some(if ran > 0.0 { (starts * SCRAPE / ran).min(1.0) } else { 0.0 })
}

/// To microseconds: requests cost milliseconds.
fn duration_text_fine(seconds: f64) -> String {
    if seconds >= 1.0 {
        return duration_text(seconds);
    }
    SimDuration::from_micros(libm::round(seconds.max(0.0) * 1e5) as i64 * 10).to_string()
}
