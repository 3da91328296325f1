//! Whether answers can be trusted: several clusters or replicas in one store, gaps between scrapes, series that outlive their
//! objects, and what the server warned of.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_model::text::InputError;

use super::super::answer::Series;
use super::super::catalogue::{BALANCER_ROLE, CHANGES, period_of};
use super::answer_reader::AnswerReader;
use super::nodes::Basis;

/// Labels in which replicas of a Prometheus differ.
const REPLICA_LABELS: [&str; 3] = ["prometheus_replica", "replica", "__replica__"];

/// Fewer changes in an hour do not tell how often sums are taken.
const CHANGES_MIN: f64 = 5.0;
/// By which factor a period may be off how often sums change before that is remarkable.
const PERIOD_MARGIN: f64 = 1.5;

/// The values of a label in an answer, without the empty one.
fn values(series: &[Series], label: &str) -> BTreeSet<String> {
    let all = series.iter().filter_map(|series| series.labels.get(label));
    all.filter(|value| !value.is_empty()).cloned().collect()
}

/// What chose the cluster: the label that all of its nodes have.
///
/// # Errors
/// If the answers are of several clusters or replicas, or cannot be read.
pub(super) fn clusters(told: &mut AnswerReader<'_>) -> Result<Vec<String>, InputError> {
    let clusters = told.series("clusters")?;
    one_cluster(&clusters)?;
    one_replica(&told.series("replicas")?)?;
    Ok(values(&clusters, "cluster").into_iter().map(|name| format!("cluster={name:?}")).collect())
}

/// Refuses answers of several clusters, and of several replicas that recorded the same, as the answers to `clusters` and `replicas`
/// show them.
///
/// # Errors
/// If there are several.
pub(super) fn one_of_each(role: &str, series: &[Series]) -> Result<(), InputError> {
    match role {
        "clusters" => one_cluster(series),
        "replicas" => one_replica(series),
        _ => Ok(()),
    }
}

fn one_cluster(series: &[Series]) -> Result<(), InputError> {
    let clusters = values(series, "cluster");
    let nameless = series.iter().any(|series| series.label("cluster").is_empty());
    if clusters.len() + usize::from(nameless) <= 1 {
        return Ok(());
    }
    let names: Vec<&str> = clusters.iter().map(String::as_str).collect();
    let first = names.first().copied().unwrap_or_default();
    Err(InputError::new(format!("the store holds several clusters: {}", names.join(", ")))
        .help(format!("choose one: --match 'cluster=\"{first}\"'")))
}

fn one_replica(series: &[Series]) -> Result<(), InputError> {
    for label in REPLICA_LABELS {
        let replicas = values(series, label);
        if replicas.len() > 1 {
            let names: Vec<&str> = replicas.iter().map(String::as_str).collect();
            return Err(InputError::new(format!(
                "the store holds what {} replicas of a Prometheus recorded, by `{label}`: {}; every sum would count twice",
                replicas.len(),
                names.join(", ")
            ))
            .help(format!("take what they recorded once: --replica-label {label}, or on Thanos --param dedup=true")));
        }
    }
    Ok(())
}

/// What whoever uses the observation has to know of its answers, all of which are read for it. `basis`: by what nodes are counted.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn warnings(told: &mut AnswerReader<'_>, basis: Basis) -> Result<Vec<String>, InputError> {
    let slow_scrapes = slow_scrapes(told)?;
    let stale_series = stale_series(told)?;
    let other_period = other_period(told)?;
    told.read_the_rest()?;
    let mut warnings: Vec<String> = told.remarks().cloned().collect();
    warnings.extend(slow_scrapes);
    warnings.extend(stale_series);
    warnings.extend(other_period);
    warnings.extend(untyped(basis));
    Ok(warnings)
}

/// A rate needs four scrapes in its window: with fewer it is empty now and then, and from Prometheus 3.0 with two it always is.
fn slow_scrapes(told: &mut AnswerReader<'_>) -> Result<Option<String>, InputError> {
    let scrapes = told.series("scrapes")?;
    let asked = told.asked("cpu_by_pod").filter(|_| told.is_answered("cpu_by_pod"));
    Ok(asked.and_then(|asked| rate_window(&asked.query)).and_then(|window| slowest_scrape(&scrapes, window)))
}

/// The job of a kubelet that is scraped too seldom for rates over so many seconds.
fn slowest_scrape(scrapes: &[Series], window: f64) -> Option<String> {
    let mut slowest: BTreeMap<&str, f64> = BTreeMap::new();
    for scrape in scrapes {
        // The job of the kubelet, of the controllers, of whoever counts: all take part in rates. Where the record begins, the ten minutes before
        // hold hardly a scrape: the middle of the counts tells.
        let mut counts: Vec<f64> =
            scrape.samples.iter().map(|sample| sample.value).filter(|count| *count > 0.0).collect();
        counts.sort_by(f64::total_cmp);
        if let Some(scrapes) = counts.get(counts.len() / 2) {
            slowest.insert(scrape.label("job"), 600.0 / scrapes);
        }
    }
    let (job, seconds) = slowest
        .into_iter()
        .filter(|(job, _)| job.contains("kubelet"))
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    (seconds * 4.0 > window).then(|| {
        format!(
            "{job} is scraped every {seconds:.0} s: a rate over {window:.0} s has fewer than four samples; ask with --rate-window {:.0}s",
            libm::ceil(seconds * 4.0)
        )
    })
}

/// The seconds of the first range in a query.
/// Over how many seconds rates were asked for.
pub(super) fn rated(told: &AnswerReader<'_>) -> Option<i64> {
    let asked = ["cpu_by_pod", "cpu_by_workload"].into_iter().find_map(|role| told.asked(role));
    asked.and_then(|asked| rate_window(&asked.query)).map(|window| window as i64)
}

fn rate_window(query: &str) -> Option<f64> {
    let inner = query.split_once('[')?.1.split_once(']')?.0;
    inner.parse::<nodecast_model::domain::SimDuration>().ok().map(|span| span.as_secs_f64())
}

/// Series without markers of staleness live on for the server's look-back, five minutes unless it is told otherwise.
fn stale_series(told: &mut AnswerReader<'_>) -> Result<Option<String>, InputError> {
    let series = told.series("stale")?;
    let samples: Vec<f64> = series.iter().flat_map(|series| series.samples.iter().map(|sample| sample.value)).collect();
    let stale = samples.iter().filter(|value| **value > 0.0).count();
    Ok((stale * 20 > samples.len()).then(|| {
        "series outlive their objects (no markers of staleness, as after a backfill): pods and nodes count up to five minutes too long".to_owned()
    }))
}

/// Sums of CloudWatch that change at other times than those of the period that they were taken to be over: it may be another.
fn other_period(told: &mut AnswerReader<'_>) -> Result<Option<String>, InputError> {
    let changes = told.series(CHANGES)?;
    let asked = told.asked(BALANCER_ROLE).filter(|_| told.is_answered(BALANCER_ROLE));
    let Some(period) = asked.and_then(|asked| period_of(&asked.query)) else { return Ok(None) };
    let most = changes.iter().flat_map(|change| change.samples.iter().map(|sample| sample.value)).fold(0.0, f64::max);
    // The first value of an hour is no change, and quiet hours have equal sums: the busiest hour tells, if it is busy.
    let seconds = 3_600.0 / (most + 1.0);
    let is_told = most >= CHANGES_MIN && !(period / PERIOD_MARGIN..=period * PERIOD_MARGIN).contains(&seconds);
    Ok(is_told.then(|| {
        format!(
            "{BALANCER_ROLE}: sums that change every {seconds:.0} s were taken to be over {period:.0} s; if the exporter's `period` is another, \
             requests are wrong by as much: ask with --sum-period"
        )
    }))
}

/// Nodes of which the type is not known, or that nobody counted.
fn untyped(basis: Basis) -> Option<String> {
    let value = super::super::catalogue::LABELS_VALUE;
    match basis {
        Basis::Labels => None,
        Basis::Untyped => Some(format!(
            "kube_node_labels says no instance type: nodes that Karpenter does not know have none; from now on it does with the helm value {value}"
        )),
        Basis::Unlabelled => Some(format!(
            "labels of nodes are not exported: nodes that Karpenter does not know are counted without a type; from now on it is known with the helm value {value}"
        )),
        Basis::KarpenterAlone => Some(format!(
            "only the nodes that Karpenter knows are counted: those of node groups are in no sum of nodes, not in node-hours and not in what a backtest \
             takes for the record; from now on they are with kube-state-metrics and the helm value {value}"
        )),
    }
}
