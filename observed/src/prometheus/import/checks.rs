//! Whether answers can be trusted: several clusters or replicas in one store, gaps between scrapes, series that outlive their
//! objects, and what the server warned of.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_decisions::text::InputError;

use super::super::answer::Answer;
use super::super::saved::Answers;
use super::series;

/// Labels in which replicas of a Prometheus differ.
const REPLICA_LABELS: [&str; 3] = ["prometheus_replica", "replica", "__replica__"];

/// The values of a label in an answer, without the empty one.
fn values(answer: &Answer, label: &str) -> BTreeSet<String> {
    let all = answer.series.iter().filter_map(|own| own.labels.get(label));
    all.filter(|value| !value.is_empty()).cloned().collect()
}

/// What chose the cluster: the label that all of its nodes have.
pub(super) fn clusters(answers: &Answers) -> Vec<String> {
    let names = answers.asked("clusters").map(|asked| values(&asked.answer, "cluster")).unwrap_or_default();
    names.into_iter().map(|name| format!("cluster={name:?}")).collect()
}

/// Refuses answers of several clusters, and of several replicas that recorded the same, as the answers to `clusters` and `replicas`
/// show them.
///
/// # Errors
/// If there are several.
pub(super) fn one_of_each(role: &str, answer: &Answer) -> Result<(), InputError> {
    match role {
        "clusters" => one_cluster(answer),
        "replicas" => one_replica(answer),
        _ => Ok(()),
    }
}

fn one_cluster(answer: &Answer) -> Result<(), InputError> {
    let clusters = values(answer, "cluster");
    let nameless = answer.series.iter().any(|own| own.label("cluster").is_empty());
    if clusters.len() + usize::from(nameless) <= 1 {
        return Ok(());
    }
    let names: Vec<&str> = clusters.iter().map(String::as_str).collect();
    let first = names.first().copied().unwrap_or_default();
    Err(InputError::new(format!("the store holds several clusters: {}", names.join(", ")))
        .help(format!("choose one: --match 'cluster=\"{first}\"'")))
}

fn one_replica(answer: &Answer) -> Result<(), InputError> {
    for label in REPLICA_LABELS {
        let replicas = values(answer, label);
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

/// What whoever uses the observation has to know of its answers.
pub(super) fn warnings(answers: &Answers) -> Vec<String> {
    let mut warnings = Vec::new();
    for (role, own) in answers.all() {
        let said =
            [("warns", &own.answer.warnings), ("remarks", &own.answer.infos), ("was put right", &own.answer.repairs)];
        for (how, texts) in said {
            let texts: BTreeSet<&String> = texts.iter().collect();
            warnings.extend(texts.into_iter().map(|text| match how {
                "was put right" => format!("{role}: {text}"),
                _ => format!("{role}: the server {how}: {text}"),
            }));
        }
    }
    warnings.extend(slow_scrapes(answers));
    warnings.extend(stale_series(answers));
    warnings.extend(no_types(answers));
    warnings
}

/// A rate needs four scrapes in its window: with fewer it is empty now and then, and from Prometheus 3.0 with two it always is.
fn slow_scrapes(answers: &Answers) -> Option<String> {
    let asked = answers.answered("cpu_by_pod")?;
    let window = rate_window(&asked.query)?;
    let mut slowest: BTreeMap<&str, f64> = BTreeMap::new();
    for own in series(answers.asked("scrapes")) {
        // The job of the kubelet, of the controllers, of whoever counts: all take part in rates.
        let scrapes =
            own.samples.iter().map(|sample| sample.value).filter(|count| *count > 0.0).fold(f64::INFINITY, f64::min);
        if scrapes.is_finite() {
            slowest.insert(own.label("job"), 600.0 / scrapes);
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
fn rate_window(query: &str) -> Option<f64> {
    let inner = query.split_once('[')?.1.split_once(']')?.0;
    inner.parse::<nodecast_decisions::domain::SimDuration>().ok().map(|span| span.as_secs_f64())
}

/// Series without markers of staleness live on for the server's look-back, five minutes unless it is told otherwise.
fn stale_series(answers: &Answers) -> Option<String> {
    let asked = answers.answered("stale")?;
    let samples: Vec<f64> =
        asked.answer.series.iter().flat_map(|own| own.samples.iter().map(|sample| sample.value)).collect();
    let stale = samples.iter().filter(|value| **value > 0.0).count();
    (stale * 20 > samples.len()).then(|| {
        "series outlive their objects (no markers of staleness, as after a backfill): pods and nodes count up to five minutes too long".to_owned()
    })
}

/// Nodes that are counted, but not by type.
fn no_types(answers: &Answers) -> Option<String> {
    let asked = answers.answered("nodes")?;
    let typed = asked.answer.series.iter().any(|own| !own.label("label_node_kubernetes_io_instance_type").is_empty());
    (!typed).then(|| {
        format!(
            "kube_node_labels says no instance type; from now on it does with the helm value {}",
            super::super::catalogue::LABELS_VALUE
        )
    })
}
