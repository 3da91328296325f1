//! `external_metrics`: values that the scenario states for scalers, metrics and resources in place of a model.

use super::super::error::lacks;
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::checks::Workloads;
use super::timeline::object_name;
use super::{Files, ScenarioError};
use crate::domain::external_metrics::{ExternalMetric, ExternalSubject, ExternalValue};
use crate::domain::{ResourceName, SimDuration, SimTime};
use crate::scenario::schema::metrics::{EXTERNAL_METRIC, EXTERNAL_VALUE};

/// The columns of a file of values.
const COLUMNS: [&str; 2] = ["t_seconds", "value"];

/// Reads `external_metrics`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    files: &mut Files<'_>,
    workloads: &Workloads,
) -> Result<Vec<ExternalMetric>, ScenarioError> {
    let mut metrics: Vec<ExternalMetric> = Vec::new();
    for node in fields.optional("external_metrics", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let metric = metric(reader, node, files, workloads)?;
        if metrics.iter().any(|other| other.subject == metric.subject) {
            return Err(reader
                .error(node.at, "two external metrics are of the same scaler, metric or resource")
                .because("the second one")
                .help("put all its values into one entry, in order of time"));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

fn metric<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    files: &mut Files<'_>,
    workloads: &Workloads,
) -> Result<ExternalMetric, ScenarioError> {
    let fields = reader.fields(node, &EXTERNAL_METRIC.shape)?;
    let subject = subject(reader, node, fields, workloads)?;
    let values = match (fields.get("values"), fields.get("csv")) {
        (Some(node), None) => values(reader, node)?,
        (None, Some(node)) => recorded(reader, node, files)?,
        _ => {
            return Err(reader
                .error(node.at, "an external metric has its values from `values` or from a file, `csv`")
                .because("here")
                .help("write for example `values: [{ at: 0s, value: 25 }]`"));
        }
    };
    Ok(ExternalMetric {
        subject,
        active_above: fields.optional("active_above", |n, what| reader.quantity(n, what))?.map_or(0.0, |q| q.as_f64()),
        values,
    })
}

/// Who serves the values, by the one key that says so.
fn subject<'s>(
    reader: &Reader<'s>,
    node: &Node<'s>,
    fields: Fields<'_, 's>,
    workloads: &Workloads,
) -> Result<ExternalSubject, ScenarioError> {
    const RESOURCES: &[(&str, ResourceName)] = &[("cpu", ResourceName::CPU), ("memory", ResourceName::MEMORY)];
    let scaler = fields.optional("scaler", |n, what| reader.text(n, what))?;
    let metric = fields.optional("metric", |n, what| reader.symbol(n, what))?;
    let trigger = fields.optional("trigger", |n, what| reader.symbol(n, what))?;
    let workload = fields.optional("workload", |n, _| object_name(reader, n))?;
    let resource = fields.optional("resource", |n, what| reader.choice(n, what, RESOURCES))?;
    match (scaler, metric, workload) {
        (Some(address), None, None) if resource.is_none() => {
            Ok(ExternalSubject::Scaler { address: address.to_owned(), trigger })
        }
        (None, Some(name), None) if trigger.is_none() && resource.is_none() => Ok(ExternalSubject::Metric(name)),
        (None, None, Some(workload)) if trigger.is_none() => {
            if let Some(node) = fields.get("workload") {
                workloads.find(reader, node.at, workload)?;
            }
            Ok(ExternalSubject::Resource { workload, resource: resource.unwrap_or(ResourceName::CPU) })
        }
        _ => Err(reader
            .error(
                node.at,
                "an external metric has `scaler` (and perhaps `trigger`), or `metric`, or `workload` (and perhaps `resource`)",
            )
            .because("here")
            .help(
                "write the `scalerAddress` of a KEDA trigger, the name of a metric that an HPA reads, or the workload whose pods \
                 use what you state",
            )),
    }
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

/// A file of values: each row holds from its time to that of the next. An empty value is a reading that fails.
fn recorded<'s>(
    reader: &Reader<'s>,
    node: &Node<'s>,
    files: &mut Files<'_>,
) -> Result<Vec<ExternalValue>, ScenarioError> {
    let name = reader.text(node, "csv")?;
    let bytes = files.bytes(reader, node, name)?;
    of_rows(&bytes, &files.directory.join(name).display().to_string())
}

fn of_rows(bytes: &[u8], file: &str) -> Result<Vec<ExternalValue>, ScenarioError> {
    let wrong = |line: u64, what: &str| {
        ScenarioError::new(format!("{file}:{line}: {what}")).help(format!(
            "values stand in a CSV file with the columns `{}` and `{}`, times rising",
            COLUMNS[0], COLUMNS[1]
        ))
    };
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = table.headers().map_err(|_| wrong(1, "is not text"))?.clone();
    let column = |name| header.iter().position(|title| title == name).ok_or_else(|| wrong(1, &lacks(&header, name)));
    let (time, value) = (column(COLUMNS[0])?, column(COLUMNS[1])?);
    let mut values: Vec<ExternalValue> = Vec::new();
    let mut row = csv::StringRecord::new();
    loop {
        let line = table.position().line();
        match table.read_record(&mut row) {
            Ok(true) => {}
            Ok(false) if values.is_empty() => return Err(wrong(line, "there is no value")),
            Ok(false) => return Ok(values),
            Err(_) => return Err(wrong(line, "has another number of columns than the header, or is not text")),
        }
        let number = |column: usize| {
            let cell = row.get(column).unwrap_or_default();
            let number = cell.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            number.ok_or_else(|| wrong(line, &format!("`{cell}` is not a number of 0 or more")))
        };
        let at = SimTime::ZERO + SimDuration::from_secs_f64(number(time)?);
        if values.last().is_some_and(|last| last.at >= at) {
            return Err(wrong(line, "the time does not rise"));
        }
        let value = if row.get(value).unwrap_or_default().is_empty() { None } else { Some(number(value)?) };
        values.push(ExternalValue { at, value });
    }
}

#[cfg(test)]
mod tests {
    use super::of_rows;

    #[test]
    fn recorded_values_hold_from_row_to_row_and_an_empty_one_fails() {
        let values = of_rows(b"t_seconds,value\n0,45\n15.5,130.25\n30,\n", "u.csv").unwrap();
        let read: Vec<(i64, Option<f64>)> = values.iter().map(|value| (value.at.as_micros(), value.value)).collect();
        assert_eq!(read, [(0, Some(45.0)), (15_500_000, Some(130.25)), (30_000_000, None)]);
    }

    #[test]
    fn every_mistake_in_recorded_values_is_shown_with_its_line() {
        for (text, mistake) in [
            ("t,value\n0,1\n", "u.csv:1: "),
            ("t_seconds,value\n", "u.csv:2: there is no value"),
            ("t_seconds,value\n0,1\n0,2\n", "u.csv:3: the time does not rise"),
            ("t_seconds,value\n0,much\n", "u.csv:2: `much` is not a number of 0 or more"),
            ("t_seconds,value\n0\n", "u.csv:2: has another number of columns"),
        ] {
            let error = of_rows(text.as_bytes(), "u.csv").unwrap_err().to_string();
            assert!(error.starts_with(mistake), "{text:?}: {error}");
        }
    }
}
