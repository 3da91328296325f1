//! `external_metrics`: values that the scenario states for scalers and metrics that no model stands behind.

use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::ScenarioError;
use crate::domain::SimTime;
use crate::domain::external_metrics::{ExternalMetric, ExternalSubject, ExternalValue};
use crate::scenario::schema::metrics::{EXTERNAL_METRIC, EXTERNAL_VALUE};

/// Reads `external_metrics`.
pub(super) fn read<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<ExternalMetric>, ScenarioError> {
    let mut metrics: Vec<ExternalMetric> = Vec::new();
    for node in fields.optional("external_metrics", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let metric = metric(reader, node)?;
        if metrics.iter().any(|other| other.subject == metric.subject) {
            return Err(reader
                .error(node.at, "two external metrics are of the same scaler or metric")
                .because("the second one")
                .help("put all its values into one entry, in order of time"));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

fn metric<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<ExternalMetric, ScenarioError> {
    let fields = reader.fields(node, &EXTERNAL_METRIC.shape)?;
    let scaler = fields.optional("scaler", |n, what| reader.text(n, what))?;
    let metric = fields.optional("metric", |n, what| reader.symbol(n, what))?;
    let trigger = fields.optional("trigger", |n, what| reader.symbol(n, what))?;
    let subject = match (scaler, metric) {
        (Some(address), None) => ExternalSubject::Scaler { address: address.to_owned(), trigger },
        (None, Some(name)) if trigger.is_none() => ExternalSubject::Metric(name),
        _ => {
            return Err(reader
                .error(node.at, "an external metric has `scaler` (and perhaps `trigger`) or `metric`")
                .because("here")
                .help("write the `scalerAddress` of a KEDA trigger, or the name of a metric that an HPA reads"));
        }
    };
    let values_node = fields.required(reader, "values")?;
    let values = values(reader, values_node)?;
    Ok(ExternalMetric {
        subject,
        active_above: fields.optional("active_above", |n, what| reader.quantity(n, what))?.map_or(0.0, |q| q.as_f64()),
        values,
    })
}

fn values<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Vec<ExternalValue>, ScenarioError> {
    let mut values: Vec<ExternalValue> = Vec::new();
    for node in reader.list(node, "values")? {
        let fields = reader.fields(node, &EXTERNAL_VALUE.shape)?;
        let at_node = fields.required(reader, "at")?;
        let at = SimTime::ZERO + reader.duration(at_node, "at")?;
        if values.last().is_some_and(|last| last.at >= at) {
            return Err(reader
                .error(at_node.at, "values come in order of time")
                .because("not after the value before")
                .help("sort them; `at` counts from the start of the run"));
        }
        let value = fields.optional("value", |n, what| reader.quantity(n, what))?.map(|q| q.as_f64());
        let fails = fields.optional("fails", |n, what| reader.truth(n, what))?.unwrap_or(false);
        if value.is_some() == fails {
            return Err(reader
                .error(node.at, "an instant has a `value` or `fails: true`")
                .because("this instant")
                .help("write for example `{ at: 10m, value: 25 }`"));
        }
        values.push(ExternalValue { at, value });
    }
    if values.is_empty() {
        return Err(reader
            .error(node.at, "there is no value")
            .because("an empty list")
            .help("write for example `values: [{ at: 0s, value: 25 }]`"));
    }
    Ok(values)
}
