//! Rates from files: curves, lists of arrivals, what Prometheus answered.

use serde::Deserialize;

use super::super::ScenarioError;
use super::records::{Recorded, Values};
use super::{Measure, Open, STEPS_MAX, records, spans};
use crate::domain::SimDuration;
use crate::error::lacks;
use nodecast_load::{Curve, CurveStep};

/// The columns of a curve.
fn columns(measure: Measure) -> [&'static str; 2] {
    match measure {
        Measure::Requests => ["t_seconds", "requests_per_second"],
        Measure::Cores => ["t_seconds", "cores"],
        Measure::Mebibytes => ["t_seconds", "mebibytes"],
    }
}

/// The columns of a list of arrivals; the second may be missing.
const ARRIVALS: [&str; 2] = ["t_seconds", "count"];
/// Single arrivals become a rate in stretches of this length.
const ARRIVAL_BIN: SimDuration = SimDuration::from_secs(1);

/// The load of single arrivals, which are in order of time.
pub(super) fn of_arrivals(arrivals: Vec<SimDuration>) -> Open {
    Open { curve: Curve::of_arrivals(&arrivals, ARRIVAL_BIN), arrivals: Some(arrivals) }
}

/// An error about a line of a table.
fn wrong(file: &str, line: u64, what: &str, help: &str) -> ScenarioError {
    ScenarioError::new(format!("{file}:{line}: {what}")).help(help)
}

/// The numbers in two columns of a CSV file, row by row, with the line of each.
fn rows(
    bytes: &[u8],
    file: &str,
    columns: [&str; 2],
    both: bool,
    help: &str,
) -> Result<Vec<(u64, f64, f64)>, ScenarioError> {
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = table.headers().map_err(|_| wrong(file, 1, "is not text", help))?.clone();
    let column = |name| {
        let found = header.iter().position(|title| title == name);
        found.ok_or_else(|| wrong(file, 1, &lacks(&header, name), help))
    };
    let first = column(columns[0])?;
    let second = if both { Some(column(columns[1])?) } else { column(columns[1]).ok() };
    let mut found = Vec::new();
    let mut row = csv::StringRecord::new();
    loop {
        let line = table.position().line();
        match table.read_record(&mut row) {
            Ok(true) => {}
            Ok(false) => return Ok(found),
            Err(_) => {
                return Err(wrong(file, line, "has another number of columns than the header, or is not text", help));
            }
        }
        let number = |column: usize| row.get(column).and_then(|cell| cell.parse::<f64>().ok()).filter(|n| *n >= 0.0);
        let (Some(a), Some(b)) = (number(first), second.map_or(Some(1.0), number)) else {
            return Err(wrong(file, line, "is not two numbers of 0 or more", help));
        };
        if found.len() == STEPS_MAX {
            return Err(wrong(file, line, "there are more than ten million rows", help));
        }
        found.push((line, a, b));
    }
}

/// A file of mean rates, or of cores: each row holds from its time to that of the next, the last as long as the one before it.
pub(super) fn curve_of_rows(bytes: &[u8], file: &str, measure: Measure) -> Result<Curve, ScenarioError> {
    let columns = columns(measure);
    let kind = match measure {
        Measure::Requests => "rate curve",
        Measure::Cores => "curve of CPU in use",
        Measure::Mebibytes => "curve of memory in use",
    };
    let help = format!("a {kind} is a CSV file with the columns `{}` and `{}`, times rising", columns[0], columns[1]);
    let mut steps: Vec<CurveStep> = Vec::new();
    for (line, seconds, rate) in rows(bytes, file, columns, true, &help)? {
        let from = SimDuration::from_secs_f64(seconds);
        if !seconds.is_finite() || !rate.is_finite() {
            let what = if rate.is_finite() { "the time is not finite" } else { "the rate is not finite" };
            return Err(wrong(file, line, what, &help));
        }
        if let Some(last) = steps.last().filter(|last| last.from >= from) {
            let what = if last.from == from { "the time is that of the row before" } else { "the time falls" };
            return Err(wrong(file, line, what, &help));
        }
        steps.push(CurveStep { from, rate });
    }
    let [.., before, last] = steps.as_slice() else {
        return Err(wrong(file, 1, "a curve has at least two rows", &help));
    };
    let end = last.from + (last.from - before.from);
    steps.push(CurveStep { from: end, rate: 0.0 });
    Ok(Curve::from_steps(steps))
}

/// A file of arrival times, one row for each request (or for `count` of them at once).
pub(super) fn arrivals_of_rows(bytes: &[u8], file: &str) -> Result<Vec<SimDuration>, ScenarioError> {
    let help = format!(
        "a trace is a CSV file with the column `{}`, times not falling; a column `{}` may say how many arrive at once",
        ARRIVALS[0], ARRIVALS[1]
    );
    let mut arrivals: Vec<SimDuration> = Vec::new();
    for (line, seconds, count) in rows(bytes, file, ARRIVALS, false, &help)? {
        let at = SimDuration::from_secs_f64(seconds);
        if !seconds.is_finite() {
            return Err(wrong(file, line, "the time is not finite", &help));
        }
        if arrivals.last().is_some_and(|last| *last > at) {
            return Err(wrong(file, line, "the time falls", &help));
        }
        if libm::trunc(count).to_bits() != count.to_bits() || arrivals.len() as f64 + count > STEPS_MAX as f64 {
            return Err(wrong(
                file,
                line,
                "the count is not whole, or there are more than ten million arrivals",
                &help,
            ));
        }
        arrivals.extend(std::iter::repeat_n(at, count as usize));
    }
    if arrivals.is_empty() {
        return Err(wrong(file, 1, "there is no arrival", &help));
    }
    Ok(arrivals)
}

/// The answer of `/api/v1/query_range`.
#[derive(Deserialize)]
struct Answer {
    status: Option<String>,
    error: Option<String>,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: Option<String>,
    result: Vec<Series>,
}

/// One series; the values of a range query are pairs of a time and a text.
#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// The forms in which the answer is exported: whole, its `data`, or the series alone (`promtool query range -o json`).
#[derive(Deserialize)]
#[serde(untagged)]
enum Exported {
    Whole(Answer),
    Data(Data),
    Series(Vec<Series>),
}

/// A file with the answer to a range query: the sum of all its series, counted from the first sample.
pub(super) fn curve_of_matrix(bytes: &[u8], file: &str) -> Result<Recorded, ScenarioError> {
    let help = "export the JSON of a range query, for example `curl …/api/v1/query_range?query=sum(rate(requests_total[1m]))&start=…&end=…&step=60`";
    let wrong = |what: String| ScenarioError::new(format!("{file}: {what}")).help(help);
    let exported = records::json(bytes, file, "the answer to a range query", help)?;
    let data = match exported {
        Exported::Whole(Answer { status, error, data }) => {
            if status.as_deref() == Some("error") {
                return Err(wrong(format!("Prometheus answered with an error: {}", error.unwrap_or_default())));
            }
            data
        }
        Exported::Data(data) => data,
        Exported::Series(result) => Data { kind: None, result },
    };
    if let Some(kind) = data.kind.filter(|kind| kind != "matrix") {
        return Err(wrong(format!("holds a `{kind}`, not a `matrix`: it is the answer to another kind of query")));
    }
    sum_of_series(&data.result).map_err(|what| wrong(what.to_owned()))
}

/// Every sample holds until the next evaluation of the query; where a series has no sample, or one that is not a number, it
/// counts nothing.
fn sum_of_series(series: &[Series]) -> Result<Recorded, &'static str> {
    let all: Vec<Vec<(f64, Option<f64>)>> = series.iter().map(samples).collect::<Result<_, _>>()?;
    let first = all.iter().flatten().map(|(at, _)| *at).fold(f64::INFINITY, f64::min);
    let step = spans::step(&all);
    if !first.is_finite() || !step.is_finite() {
        return Err("a curve needs a series with at least two samples");
    }
    if all.iter().any(|item| item.windows(2).any(|pair| pair[1].0 <= pair[0].0)) {
        return Err("the times of a series do not rise");
    }
    let counted = |item: &Vec<(f64, Option<f64>)>| {
        let item: Vec<_> = item.iter().map(|(at, rate)| (at - first, *rate)).collect();
        spans::held(&item, step, Values::Rates)
    };
    Ok((Curve::sum(&all.iter().map(counted).collect::<Vec<_>>()), first))
}

/// The samples of a series; one that is not a number counts nothing.
fn samples(series: &Series) -> Result<Vec<(f64, Option<f64>)>, &'static str> {
    let mut samples = Vec::with_capacity(series.values.len());
    for (at, text) in &series.values {
        let rate = text.parse::<f64>().map_err(|_| "a sample is not a number")?;
        if rate.is_infinite() || rate < 0.0 {
            return Err("a sample is negative or infinite; requests per second are not");
        }
        samples.push((*at, Some(rate).filter(|rate| !rate.is_nan())));
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::{Measure, arrivals_of_rows, curve_of_matrix, curve_of_rows};
    use nodecast_load::Curve;

    fn read(curve: &Curve) -> Vec<(i64, f64)> {
        curve.steps().iter().map(|step| (step.from.as_secs(), step.rate)).collect()
    }

    #[test]
    fn load_curve_ends_one_span_after_last_row() {
        let curve = curve_of_rows(b"t_seconds,requests_per_second\n0,1.5\n60,2\n", "a.csv", Measure::Requests).unwrap();
        assert_eq!(read(&curve), [(0, 1.5), (60, 2.0), (120, 0.0)]);
    }

    #[test]
    fn a_broken_curve_names_its_line() {
        let read = |text: &str| curve_of_rows(text.as_bytes(), "a.csv", Measure::Requests).unwrap_err().to_string();
        assert_eq!(read("time,rate\n0,1\n"), "a.csv:1: the header has no column `t_seconds`, but `time` and `rate`");
        assert_eq!(
            read("t_seconds,request_per_second\n0,1\n"),
            "a.csv:1: the header has no column `requests_per_second`, but `t_seconds` and `request_per_second`; is `request_per_second` meant?"
        );
        let of = |row: &str| read(&format!("t_seconds,requests_per_second\n9,1\n{row}\n"));
        assert_eq!(of("9,2"), "a.csv:3: the time is that of the row before");
        assert_eq!(of("8,2"), "a.csv:3: the time falls");
        assert_eq!(of("10,inf"), "a.csv:3: the rate is not finite");
        assert_eq!(of("inf,1"), "a.csv:3: the time is not finite");
        assert_eq!(read("t_seconds,requests_per_second\n0,1\n60,many\n"), "a.csv:3: is not two numbers of 0 or more");
        assert_eq!(read("t_seconds,requests_per_second\n0,1\n"), "a.csv:1: a curve has at least two rows");
    }

    #[test]
    fn a_trace_may_have_other_columns_and_counts() {
        let arrivals = arrivals_of_rows(b"t_seconds,tokens,count\n0.5,9,1\n0.5,9,2\n3,9,1\n", "a.csv").unwrap();
        assert_eq!(
            arrivals.iter().map(|at| at.as_micros()).collect::<Vec<_>>(),
            [500_000, 500_000, 500_000, 3_000_000]
        );
        let error = arrivals_of_rows(b"t_seconds\n5\n4\n", "a.csv").unwrap_err();
        assert_eq!(error.to_string(), "a.csv:3: the time falls");
    }

    #[test]
    fn series_add_up_and_gaps_count_nothing() {
        let whole = br#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"code":"200"},"values":[[100,"1"],[160,"2"],[280,"4"]]},
            {"metric":{"code":"500"},"values":[[160,"NaN"],[220,"0.5"]]}]}}"#;
        let sum = [(0, 1.0), (60, 2.0), (120, 0.5), (180, 4.0), (240, 0.0)];
        assert_eq!(read(&curve_of_matrix(whole, "p.json").unwrap().0), sum);
        let late = br#"[{"values":[[0,"1"],[60,"1"],[61,"1"],[120,"1"],[180,"1"]]}]"#;
        let late = read(&curve_of_matrix(late, "p.json").unwrap().0);
        assert_eq!(late.last(), Some(&(240, 0.0)));
        assert!(late.iter().all(|item| item.0 == 240 || item.1 > 0.0), "{late:?}");
        let alone = br#"[{"metric":{},"values":[[100,"1"],[160,"2"]]}]"#;
        assert_eq!(read(&curve_of_matrix(alone, "p.json").unwrap().0), [(0, 1.0), (60, 2.0), (120, 0.0)]);
    }

    #[test]
    fn another_answer_is_told_from_broken_text() {
        let error = |text: &str| curve_of_matrix(text.as_bytes(), "p.json").unwrap_err().to_string();
        assert_eq!(error("{\n\"status\": }"), "p.json:2:11: is not JSON");
        assert_eq!(error("{}"), "p.json: is not the answer to a range query");
        assert_eq!(
            error(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#),
            "p.json: holds a `vector`, not a `matrix`: it is the answer to another kind of query"
        );
        assert_eq!(
            error(r#"{"data":{"result":[{"values":[[1,"1"]]}]}}"#),
            "p.json: a curve needs a series with at least two samples"
        );
    }
}
