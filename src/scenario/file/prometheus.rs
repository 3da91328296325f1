//! `prometheus`: which series there are, how often they are scraped, and what the metrics adapter makes of them.

use super::super::definition::{AdapterRule, Outage, PrometheusSettings, SeriesKind, SeriesOwner, SeriesSpec};
use super::super::error::{ScenarioError, listed};
use super::super::manifests::check_query;
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::checks::Workloads;
use super::timeline::object_name;
use crate::domain::labels::Labels;
use crate::domain::{SimDuration, SimTime, Symbol};
use crate::scenario::schema::metrics::{ISTIO, OUTAGE, PROMETHEUS, RULE, SERIES};

const KINDS: &[(&str, SeriesKind)] = &[
    ("requests", SeriesKind::Requests),
    ("requests_in_flight", SeriesKind::RequestsInFlight),
    ("replicas_ready", SeriesKind::ReplicasReady),
    ("replicas_desired", SeriesKind::ReplicasDesired),
];

/// Reads `prometheus`; without it there is none.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    workloads: &Workloads,
) -> Result<Option<PrometheusSettings>, ScenarioError> {
    let Some(node) = fields.get("prometheus") else { return Ok(None) };
    let fields = reader.fields(node, &PROMETHEUS.shape)?;
    let mut settings = PrometheusSettings {
        scrape_interval: interval(reader, fields, "scrape_interval")?,
        relist_interval: interval(reader, fields, "relist_interval")?.unwrap_or(SimDuration::from_secs(600)),
        ..PrometheusSettings::default()
    };
    for node in fields.optional("istio", |n, what| reader.list(n, what))?.unwrap_or_default() {
        settings.series.push(istio(reader, node, workloads)?);
    }
    for node in fields.optional("series", |n, what| reader.list(n, what))?.unwrap_or_default() {
        settings.series.push(series(reader, node, workloads)?);
    }
    for node in fields.optional("adapter", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let rule = rule(reader, node)?;
        if settings.adapter.iter().any(|other| other.metric == rule.metric) {
            return Err(reader
                .error(node.at, format!("two rules of the adapter serve `{}`", rule.metric))
                .because("the second one")
                .help("an autoscaler could not tell them apart; give one another name"));
        }
        settings.adapter.push(rule);
    }
    for node in fields.optional("outages", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &OUTAGE.shape)?;
        let from = SimTime::ZERO + reader.duration(fields.required(reader, "at")?, "at")?;
        let until = from + reader.duration(fields.required(reader, "for")?, "for")?;
        settings.outages.push(Outage { from, until });
    }
    Ok(Some(settings))
}

fn interval<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    key: &'static str,
) -> Result<Option<SimDuration>, ScenarioError> {
    let Some(node) = fields.get(key) else { return Ok(None) };
    let interval = reader.duration(node, key)?;
    if interval < SimDuration::from_secs(1) {
        return Err(reader
            .error(node.at, format!("`{key}` is {interval}"))
            .because("shorter than a second")
            .help("write at least `1s`"));
    }
    Ok(Some(interval))
}

fn labels<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<Labels, ScenarioError> {
    let Some(node) = fields.get("labels") else { return Ok(Labels::new()) };
    let mut labels = Labels::new();
    for entry in reader.entries(node, "labels")? {
        labels.set(Symbol::new(&entry.key), reader.symbol(&entry.value, &entry.key)?);
    }
    Ok(labels)
}

fn istio<'s>(reader: &mut Reader<'s>, node: &Node<'s>, workloads: &Workloads) -> Result<SeriesSpec, ScenarioError> {
    const REPORTERS: &[(&str, SeriesOwner)] = &[("destination", SeriesOwner::Pods), ("source", SeriesOwner::Gateway)];
    let fields = reader.fields(node, &ISTIO.shape)?;
    let workload_node = fields.required(reader, "workload")?;
    let workload = object_name(reader, workload_node)?;
    workloads.find(reader, workload_node.at, workload)?;
    let owner = fields.optional("reporter", |n, what| reader.choice(n, what, REPORTERS))?;
    Ok(SeriesSpec {
        name: "istio_requests_total".to_owned(),
        workload,
        kind: SeriesKind::IstioRequests,
        owner: owner.unwrap_or(SeriesOwner::Pods),
        labels: labels(reader, fields)?,
    })
}

fn series<'s>(reader: &mut Reader<'s>, node: &Node<'s>, workloads: &Workloads) -> Result<SeriesSpec, ScenarioError> {
    let fields = reader.fields(node, &SERIES.shape)?;
    let name_node = fields.required(reader, "name")?;
    let name = reader.text(name_node, "name")?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
    if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
        return Err(reader
            .error(name_node.at, "the name of a series is made of letters, digits, `_` and `:`")
            .because("no such name")
            .help("write for example `http_requests_total`"));
    }
    let workload_node = fields.required(reader, "workload")?;
    let workload = object_name(reader, workload_node)?;
    workloads.find(reader, workload_node.at, workload)?;
    let kind = reader.choice(fields.required(reader, "shows")?, "shows", KINDS)?;
    let owner = match kind {
        SeriesKind::ReplicasReady | SeriesKind::ReplicasDesired => SeriesOwner::Gateway,
        SeriesKind::IstioRequests | SeriesKind::Requests | SeriesKind::RequestsInFlight => SeriesOwner::Pods,
    };
    Ok(SeriesSpec { name: name.to_owned(), workload, kind, owner, labels: labels(reader, fields)? })
}

fn rule<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<AdapterRule, ScenarioError> {
    let fields = reader.fields(node, &RULE.shape)?;
    let metric = reader.symbol(fields.required(reader, "metric")?, "metric")?;
    let query_node = fields.required(reader, "query")?;
    let query = check_query(reader, query_node)?;
    if query.series_names().is_empty() {
        return Err(reader
            .error(query_node.at, "the query selects no series")
            .because("a number for every pod and object")
            .help(format!("select one of the series under {}", listed(["istio", "series"]))));
    }
    Ok(AdapterRule { metric, query: reader.text(query_node, "query")?.to_owned() })
}
