//! `external_metrics`: values that the scenario states for scalers, metrics and resources in place of a model.

use super::{Reading, ScenarioError};
use crate::domain::external_metrics::{ExternalMetric, ExternalSubject, ExternalValue};
use crate::domain::{ResourceName, SimDuration, SimTime};
use crate::error::lacks;
use crate::reader::Fields;
use crate::schema::Section;
use crate::schema::metrics::ExternalMetricKeys;
use crate::tree::Location;

/// The columns of a file of values.
const COLUMNS: [&str; 2] = ["t_seconds", "value"];

/// An external metric with who serves its values, by the one key that says so.
pub(crate) fn metric(
    reading: &mut Reading<'_, '_>,
    fields: Fields<'_, '_>,
    external_metric_keys: ExternalMetricKeys,
) -> Result<ExternalMetric, ScenarioError> {
    let subject = match (
        external_metric_keys.scaler,
        external_metric_keys.metric,
        external_metric_keys.workload,
        external_metric_keys.scaled_object,
        external_metric_keys.trigger,
        external_metric_keys.resource,
    ) {
        (Some(address), None, None, None, trigger, None) => ExternalSubject::Scaler { address, trigger },
        (None, Some(name), None, None, None, None) => {
            let object = external_metric_keys.object.map(|(object, _)| object);
            return Ok(ExternalMetric {
                subject: ExternalSubject::Metric { name, selector: external_metric_keys.selector, object },
                active_above: external_metric_keys.active_above,
                values: external_metric_keys.values,
            });
        }
        (None, None, Some((workload, at)), None, None, resource) => {
            reading.workloads.find(&reading.reader, at, workload)?;
            ExternalSubject::Resource { workload, resource: resource.unwrap_or(ResourceName::CPU) }
        }
        (None, None, None, Some((object, at)), trigger, None) => {
            reading.workloads.find_trigger(&reading.reader, at, object, trigger)?;
            ExternalSubject::Trigger { object, trigger }
        }
        _ => {
            return Err(reading
                .error(
                    fields.at,
                    "an external metric has `scaled_object` or `scaler` (and perhaps `trigger`), or `metric`, or `workload` (and perhaps `resource`)",
                )
                .because("here")
                .help(
                    "write what KEDA scales, the `scalerAddress` of one of its triggers, the name of a metric that an HPA reads, or the \
                     workload whose pods use what you state",
                ));
        }
    };
    for (key, stated) in
        [("selector", external_metric_keys.selector.is_some()), ("object", external_metric_keys.object.is_some())]
    {
        if let Some(node) = fields.get(key).filter(|_| stated) {
            return Err(reading
                .error(node.at, format!("`{key}` says which of the metrics of one name is meant"))
                .because("here it stands without `metric`")
                .help(format!("leave `{key}` out, or write `metric` with the name that autoscalers ask for")));
        }
    }
    Ok(ExternalMetric { subject, active_above: external_metric_keys.active_above, values: external_metric_keys.values })
}

/// What is wrong with an external metric whose values come from nowhere, or from two places.
pub(crate) fn no_values(reading: &Reading<'_, '_>, _: &Section, fields: Fields<'_, '_>, _: usize) -> ScenarioError {
    reading
        .error(fields.at, "an external metric has its values from `values` or from a file, `csv`")
        .because("here")
        .help("write for example `values: [{ at: 0s, value: 25 }]`")
}

/// What is wrong with an instant that neither has a value nor fails, or does both.
pub(crate) fn no_value(reading: &Reading<'_, '_>, _: &Section, fields: Fields<'_, '_>, _: usize) -> ScenarioError {
    without_value(reading, fields.at)
}

/// The same about what stands `at`.
pub(crate) fn without_value(reading: &Reading<'_, '_>, at: Location) -> ScenarioError {
    reading
        .error(at, "an instant has a `value` or `fails: true`")
        .because("this instant")
        .help("write for example `{ at: 10m, value: 25 }`")
}

/// A file of values: each row holds from its time to that of the next. An empty value is a reading that fails.
pub(crate) fn of_rows(bytes: &[u8], file: &str) -> Result<Vec<ExternalValue>, ScenarioError> {
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
    fn empty_recorded_value_means_failed_metric() {
        let values = of_rows(b"t_seconds,value\n0,45\n15.5,130.25\n30,\n", "u.csv").unwrap();
        let read: Vec<(i64, Option<f64>)> = values.iter().map(|value| (value.at.as_micros(), value.value)).collect();
        assert_eq!(read, [(0, Some(45.0)), (15_500_000, Some(130.25)), (30_000_000, None)]);
    }

    #[test]
    fn recorded_value_errors_show_their_lines() {
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
