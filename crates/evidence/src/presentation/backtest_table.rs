//! The table that `backtest` prints.

use super::backtest_words::{error, judged_time, links, sentences, simulated, value};
use super::{aligned_within, warnings};
use crate::backtest::{Answer, FigureResult, Mode, Verdict, WorkloadResult};
use crate::domain::words::grouped;
use crate::report::columns::printed;
use crate::report::format::percent;

/// Workloads that are printed; the page has all.
const WORKLOADS_MAX: usize = 12;

/// The table of the answer, with columns below one another where lines have no more than `width` characters.
pub fn table(answer: &Answer, width: Option<usize>) -> String {
    let mut lines = sentences(answer);
    if let Some(first) = lines.first_mut() {
        *first = format!("{}: {first}", answer.scenario);
    }
    lines.push(String::new());
    let mode = match answer.mode {
        Mode::Replay => "replay",
        Mode::Forecast => "forecast",
    };
    lines.push(format!(
        "policy {}, against {}: {mode}, {} seeds from {}",
        answer.policy,
        answer.recorded,
        grouped(&answer.replications.to_string()),
        answer.first_seed
    ));
    lines.push(format!("judged: {}", judged_time(answer)));
    lines.push(String::new());
    lines.extend(aligned_within(&figures(answer), 1, width));
    let workloads = workloads(answer);
    if workloads.len() > 1 {
        lines.push(String::new());
        lines.extend(aligned_within(&workloads, 1, width));
        let more = answer.findings.workloads.len().saturating_sub(WORKLOADS_MAX);
        if more > 0 {
            lines.push(format!("and {more} more workloads in the report"));
        }
    }
    if let Some(bill) = &answer.bill {
        lines.push(String::new());
        lines.extend(aligned_within(&links(bill), 1, width));
    }
    warnings(&answer.warnings, &mut lines);
    printed(&lines, width)
}

/// One line for each figure.
pub(super) fn figures(answer: &Answer) -> Vec<Vec<String>> {
    let header = [
        "metric",
        "observed",
        "simulated (95%)",
        "error",
        "tolerance",
        "floor",
        "deviations",
        "naive (day before)",
        "verdict",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    if let Some(days) = answer.findings.naive_days.filter(|days| *days > 1) {
        rows[0][7] = format!("{days} days before");
    }
    let currency = answer.currency.as_deref();
    rows.extend(answer.findings.figures.iter().map(|figure| figure_row(figure, currency)));
    if answer.findings.naive_days.is_none() {
        rows.iter_mut().for_each(|row| drop(row.remove(7)));
    }
    rows
}

fn figure_row(figure: &FigureResult, currency: Option<&str>) -> Vec<String> {
    let judged = &figure.judged;
    vec![
        figure.label.clone(),
        value(figure.unit, currency, judged.observed),
        simulated(figure.unit, currency, judged),
        error(judged.error),
        format!("\u{b1}{}", percent(figure.tolerance)),
        format!("\u{b1}{}", value(figure.unit, currency, judged.floor)),
        deviations(judged.z),
        error(figure.naive_error),
        judged.verdict.as_str().to_owned(),
    ]
}

/// How far off the simulation is in units of its spread, with the sign of its error.
fn deviations(z: Option<f64>) -> String {
    let shown = |z: f64| if z.abs() < 99.95 { format!("{z:+.1}") } else { format!("{z:+.0}") };
    z.map_or_else(|| "\u{2013}".to_owned(), |z| shown(-z).replace('-', "\u{2212}"))
}

/// One line for each workload, those with most replicas first.
fn workloads(answer: &Answer) -> Vec<Vec<String>> {
    let mut rows = vec![workload_header()];
    rows.extend(answer.findings.workloads.iter().take(WORKLOADS_MAX).map(workload_row));
    rows
}

/// What the columns of workloads hold.
pub(super) fn workload_header() -> Vec<String> {
    let header = [
        "replicas wanted",
        "observed",
        "simulated",
        "error (WAPE)",
        "naive (day before)",
        "CPU in use",
        "p99 response",
        "verdict",
    ];
    header.map(str::to_owned).to_vec()
}

/// The line of a workload.
pub(super) fn workload_row(workload: &WorkloadResult) -> Vec<String> {
    let dash = || "\u{2013}".to_owned();
    let worst = workload.judged().map(|judged| judged.verdict).max().unwrap_or(Verdict::Agrees);
    vec![
        workload.workload.clone(),
        format!("{:.1}", workload.replicas.observed),
        format!("{:.1}", workload.replicas.simulated),
        percent(workload.replicas_weighted_error),
        workload.replicas_naive_weighted_error.map_or_else(dash, percent),
        workload.cpu_milli.as_ref().map_or_else(dash, |judged| error(judged.error)),
        workload.latency_p99_seconds.as_ref().map_or_else(dash, |judged| error(judged.error)),
        worst.as_str().to_owned(),
    ]
}
