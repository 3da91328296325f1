//! What others than Prometheus recorded: answers of CloudWatch and Datadog, tables with instants in them.

use serde::Deserialize;

use super::super::ScenarioError;
use super::spans;
use crate::error::lacks;
use nodecast_load::Curve;

/// What a value tells of the period that it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// How much there was in it: `Sum` of CloudWatch, `as_count()` of Datadog.
    Totals,
    /// A mean over it, or a rate per second: `Average`, `as_rate()`.
    Rates,
}

/// Samples of one series: seconds since 1970, and values where there are any.
type Samples = Vec<(f64, Option<f64>)>;

/// The answer of `aws cloudwatch get-metric-data`, or of one page of it.
#[derive(Deserialize)]
struct CloudWatch {
    #[serde(rename = "MetricDataResults")]
    results: Vec<MetricData>,
}

#[derive(Deserialize)]
struct MetricData {
    #[serde(rename = "Label", default)]
    label: String,
    #[serde(rename = "Timestamps")]
    timestamps: Vec<String>,
    #[serde(rename = "Values")]
    values: Vec<f64>,
    #[serde(rename = "StatusCode", default)]
    status: String,
}

/// The answer of Datadog's `/api/v1/query`.
#[derive(Deserialize)]
struct Datadog {
    series: Vec<DatadogSeries>,
}

#[derive(Deserialize)]
struct DatadogSeries {
    pointlist: Vec<(f64, Option<f64>)>,
}

/// A file with what CloudWatch answered: the sum of all its results, counted from the first sample.
///
/// # Errors
/// If it is another file, a result is not complete, or a value is below zero or no number.
pub(super) fn of_cloudwatch(bytes: &[u8], file: &str, values: Values) -> Result<Recorded, ScenarioError> {
    let help = "export it with `aws cloudwatch get-metric-data --metric-data-queries … --start-time … --end-time … --scan-by TimestampAscending --output json`";
    let answer: CloudWatch = json(bytes, file, "the answer of `aws cloudwatch get-metric-data`", help)?;
    let mut series = Vec::with_capacity(answer.results.len());
    for answer in &answer.results {
        let wrong = |what: String| ScenarioError::new(format!("{file}: `{}` {what}", answer.label)).help(help);
        if !["", "Complete"].contains(&&*answer.status) {
            return Err(wrong(format!("is {}, so that a part of it is missing", answer.status)));
        }
        if answer.timestamps.len() != answer.values.len() {
            return Err(wrong("has another number of timestamps than of values".to_owned()));
        }
        let instants = answer.timestamps.iter().map(|text| instant(text));
        let instants: Option<Vec<f64>> = instants.collect();
        let instants = instants.ok_or_else(|| wrong("has a timestamp that is no instant".to_owned()))?;
        series.push(instants.into_iter().zip(answer.values.iter().copied().map(Some)).collect());
    }
    sum(series, values).map_err(|what| ScenarioError::new(format!("{file}: {what}")).help(help))
}

/// A file with what Datadog answered: the sum of all its series, counted from the first sample.
///
/// # Errors
/// If it is another file, or a value is below zero or no number.
pub(super) fn of_datadog(bytes: &[u8], file: &str, values: Values) -> Result<Recorded, ScenarioError> {
    let help = "export the JSON of a query, for example `curl …/api/v1/query?from=…&to=…&query=sum:trace.http.request.hits{service:web}.as_rate()`";
    let answer: Datadog = json(bytes, file, "the answer of Datadog to a query", help)?;
    let points = |datadog_series: &DatadogSeries| {
        datadog_series.pointlist.iter().map(|(at, value)| (at / 1e3, *value)).collect()
    };
    let series = answer.series.iter().map(points).collect();
    sum(series, values).map_err(|what| ScenarioError::new(format!("{file}: {what}")).help(help))
}

/// A curve that is counted from its first sample, and when that was, in seconds since 1970.
pub(super) type Recorded = (Curve, f64);

/// The curve of a table, and what is to be said of rows that are missing.
type Table = (Recorded, Option<String>);

/// Titles that a column of instants has, in small letters.
const TIMES: [&str; 4] = ["timestamp", "time", "date", "datetime"];

/// A table whose first column of such a title has instants (RFC 3339, `2026-10-13 00:00:00` in UTC, or seconds or milliseconds since 1970)
/// and whose column `column` has values, as Grafana and others export it; counted from the first row. A row holds until the next; with the
/// curve comes what is to be said of rows that are missing.
///
/// # Errors
/// With the line, if the table has no such columns or a row does not read.
pub(super) fn of_table(bytes: &[u8], file: &str, column: &str, values: Values) -> Result<Table, ScenarioError> {
    let help = format!(
        "the CSV file has a column `timestamp` (or `time`, `date`, `datetime`) with instants such as 2026-10-13T00:00:00Z, and a column `{column}`"
    );
    let wrong = |line: u64, what: &str| ScenarioError::new(format!("{file}:{line}: {what}")).help(&*help);
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = table.headers().map_err(|_| wrong(1, "is not text"))?.clone();
    let time = header.iter().position(|title| TIMES.contains(&&*title.trim_start_matches('\u{feff}').to_lowercase()));
    let time = time.ok_or_else(|| wrong(1, &lacks(&header, "timestamp")))?;
    let value = header.iter().position(|title| title == column).ok_or_else(|| wrong(1, &lacks(&header, column)))?;
    let mut samples: Samples = Vec::new();
    let mut row = csv::StringRecord::new();
    loop {
        let line = table.position().line();
        match table.read_record(&mut row) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => return Err(wrong(line, "has another number of columns than the header, or is not text")),
        }
        let cell = row.get(value).unwrap_or_default();
        let Some(at) = row.get(time).and_then(instant) else { return Err(wrong(line, "has no instant")) };
        // A gap of a recorder is an empty cell.
        let amount = if cell.is_empty() { None } else { Some(cell.parse::<f64>()) };
        let Ok(amount) = amount.transpose() else { return Err(wrong(line, "the value is not a number")) };
        if samples.last().is_some_and(|(last, _)| *last >= at) {
            return Err(wrong(line, "the time does not rise"));
        }
        samples.push((at, amount));
    }
    let missing = spans::missing(&samples, file);
    let period = spans::usual(&samples);
    let curve = curve(&[(samples, period)], values).map_err(|what| wrong(1, what))?;
    Ok((curve, missing))
}

/// An instant as people and programs write it, in seconds since 1970.
fn instant(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        // Nobody has seconds of the year 5138, or milliseconds of 1973.
        return (number.is_finite() && number >= 0.0).then_some(if number >= 1e11 { number / 1e3 } else { number });
    }
    let seconds = |instant: jiff::Timestamp| instant.as_microsecond() as f64 / 1e6;
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Some(seconds(instant));
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| seconds(zoned.timestamp()))
}

/// JSON of a kind; broken JSON is told from JSON of another kind.
pub(super) fn json<T: for<'a> Deserialize<'a>>(
    bytes: &[u8],
    file: &str,
    kind: &str,
    help: &str,
) -> Result<T, ScenarioError> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| {
        ScenarioError::new(format!("{file}:{}:{}: is not JSON", error.line(), error.column())).help(help)
    })?;
    serde_json::from_value(value).map_err(|_| ScenarioError::new(format!("{file}: is not {kind}")).help(help))
}

/// Every sample holds for the step of its series; where a series has none it counts nothing.
fn sum(mut series: Vec<Samples>, values: Values) -> Result<Recorded, &'static str> {
    // CloudWatch gives the newest first unless it is asked otherwise.
    series.iter_mut().for_each(|item| item.sort_by(|one, other| one.0.total_cmp(&other.0)));
    let with_step = |samples: Samples| {
        let step = spans::step(std::slice::from_ref(&samples));
        (samples, step)
    };
    let series: Vec<(Samples, f64)> = series.into_iter().map(with_step).collect();
    curve(&series, values)
}

/// The sum of series in order of time, each with the time for which one of its samples stands.
fn curve(series: &[(Samples, f64)], values: Values) -> Result<Recorded, &'static str> {
    let mut curves = Vec::with_capacity(series.len());
    let first = series.iter().flat_map(|(key, _)| key).map(|(at, _)| *at).fold(f64::INFINITY, f64::min);
    for (key, period) in series {
        if key.iter().filter_map(|(_, value)| *value).any(|value| !value.is_finite() || value < 0.0) {
            return Err("a value is negative or not finite");
        }
        if key.is_empty() {
            continue;
        }
        if !period.is_finite() {
            return Err("a curve needs at least two samples of each series");
        }
        if key.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
            return Err("two samples of a series have one time");
        }
        let samples: Samples = key.iter().map(|(at, value)| (at - first, *value)).collect();
        curves.push(spans::held(&samples, *period, values));
    }
    if curves.is_empty() {
        return Err("there is no sample");
    }
    Ok((Curve::sum(&curves), first))
}

#[cfg(test)]
mod tests {
    use super::{Recorded, Values, of_cloudwatch, of_datadog, of_table};
    use crate::ScenarioError;

    fn read(curve: Result<Recorded, ScenarioError>) -> Result<Vec<(i64, f64)>, String> {
        let (curve, _) = curve.map_err(|error| error.to_string())?;
        Ok(curve.steps().iter().map(|step| (step.from.as_secs(), step.rate)).collect())
    }

    #[test]
    fn cloudwatch_results_are_sorted_and_summed() {
        let text = br#"{"MetricDataResults":[
            {"Id":"a","Label":"RequestCount","Timestamps":["2026-10-13T00:02:00Z","2026-10-13T00:01:00+00:00","2026-10-13T00:00:00Z"],"Values":[30,120,60],"StatusCode":"Complete"},
            {"Id":"b","Label":"other","Timestamps":[],"Values":[],"StatusCode":"Complete"},
            {"Id":"c","Label":"late","Timestamps":["2026-10-13T00:01:00Z","2026-10-13T00:02:00Z"],"Values":[60,0],"StatusCode":"Complete"}],"Messages":[]}"#;
        let totals = read(of_cloudwatch(text, "c.json", Values::Totals));
        assert_eq!(totals, Ok(vec![(0, 1.0), (60, 3.0), (120, 0.5), (180, 0.0)]));
        let rates = read(of_cloudwatch(text, "c.json", Values::Rates));
        assert_eq!(rates, Ok(vec![(0, 60.0), (60, 180.0), (120, 30.0), (180, 0.0)]));
    }

    #[test]
    fn what_cloudwatch_did_not_finish_is_refused() {
        let text = br#"{"MetricDataResults":[{"Label":"RequestCount","Timestamps":[],"Values":[],"StatusCode":"PartialData"}]}"#;
        let said = read(of_cloudwatch(text, "c.json", Values::Totals));
        assert_eq!(said, Err("c.json: `RequestCount` is PartialData, so that a part of it is missing".to_owned()));
        let said = read(of_cloudwatch(b"[]", "c.json", Values::Totals));
        assert_eq!(said, Err("c.json: is not the answer of `aws cloudwatch get-metric-data`".to_owned()));
        assert_eq!(read(of_cloudwatch(b"{\n,", "c.json", Values::Totals)), Err("c.json:2:1: is not JSON".to_owned()));
    }

    #[test]
    fn datadog_has_milliseconds_and_gaps() {
        let text = br#"{"status":"ok","series":[{"metric":"hits","interval":60,"pointlist":[[1760313600000,5.0],[1760313660000,null],[1760313720000,7.0],[1760313780000,1.0]]}]}"#;
        let rates = read(of_datadog(text, "d.json", Values::Rates));
        assert_eq!(rates, Ok(vec![(0, 5.0), (60, 0.0), (120, 7.0), (180, 1.0), (240, 0.0)]));
        assert_eq!(
            read(of_datadog(br#"{"series":[]}"#, "d.json", Values::Rates)),
            Err("d.json: there is no sample".to_owned())
        );
    }

    #[test]
    fn load_table_accepts_several_time_formats() {
        for times in [
            ["2026-10-13T02:00:00+02:00", "2026-10-13T00:05:00Z", "2026-10-13T00:10:00Z"],
            ["2026-10-13 00:00:00", "2026-10-13 00:05:00", "2026-10-13 00:10:00"],
            ["1791849600", "1791849900", "1791850200"],
            ["1791849600000", "1791849900000", "1791850200000"],
        ] {
            let [one, two, three] = times;
            let text = format!("\u{feff}\"Time\",\"m\",\"reqs\"\n\"{one}\",1,600\n\"{two}\",2,\n\"{three}\",2,300\n");
            let gap = read(of_table(text.as_bytes(), "t.csv", "reqs", Values::Totals).map(|table| table.0));
            assert_eq!(gap, Ok(vec![(0, 2.0), (300, 0.0), (600, 1.0), (900, 0.0)]), "{one}");
        }
        let said = |text: &str| read(of_table(text.as_bytes(), "t.csv", "reqs", Values::Rates).map(|table| table.0));
        assert_eq!(
            said("time,value\n"),
            Err("t.csv:1: the header has no column `reqs`, but `time` and `value`".to_owned())
        );
        assert_eq!(said("time,reqs\nnow,1\n"), Err("t.csv:2: has no instant".to_owned()));
        assert_eq!(said("time,reqs\n9,1\n9,2\n"), Err("t.csv:3: the time does not rise".to_owned()));
        assert_eq!(said("time,reqs\n9,1\n19,-2\n"), Err("t.csv:1: a value is negative or not finite".to_owned()));
    }
    #[test]
    fn one_late_row_keeps_other_spans() {
        let rows: String = (0..288)
            .map(|row| 1_791_849_600 + row * 300 + i64::from(row == 100))
            .flat_map(|at| if at % 300 == 1 { vec![at - 1, at] } else { vec![at] })
            .map(|at| format!("{at},200\n"))
            .collect();
        let ((curve, _), missing) =
            of_table(format!("time,r\n{rows}").as_bytes(), "t.csv", "r", Values::Rates).unwrap();
        assert!((curve.requests_until(crate::domain::SimDuration::from_secs(86_400)) - 17_280_000.0).abs() < 1e-3);
        assert_eq!(missing, None);
        let series = r#"{"series":[{"pointlist":[[0,1],[60000,1],[61000,1],[120000,1],[180000,1]]}]}"#;
        let (curve, _) = of_datadog(series.as_bytes(), "d.json", Values::Rates).unwrap();
        assert!((curve.requests_until(crate::domain::SimDuration::from_secs(900)) - 240.0).abs() < 1e-9);
    }
}
