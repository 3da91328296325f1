//! The answers of `/api/v1/query_range` and `/api/v1/query`.
//!
//! Source: Prometheus 3.14 `docs/querying/api.md`. Numbers come as texts, since JSON has no NaN and no infinity; `warnings` and
//! `infos` beside a good answer say that it may be a part of the whole.

use std::collections::BTreeMap;

use nodecast_decisions::text::InputError;
use serde::Deserialize;

/// The series that answer a query, in order of their labels.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// The series; none where the server has no such series, which is not a zero.
    pub series: Vec<Series>,
    /// What the server warns of: the answer may lack series.
    pub warnings: Vec<String>,
    /// What the server remarks.
    pub infos: Vec<String>,
    /// What was put right in reading it.
    pub repairs: Vec<String>,
}

/// A series: what it is of, and its samples in order of time, one for an instant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Labels by name.
    pub labels: BTreeMap<String, String>,
    /// Samples.
    pub samples: Vec<Sample>,
}

/// A value at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Microseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The value, which may be NaN or infinite.
    pub value: f64,
}

impl Series {
    /// A label, empty where the series has none of the name: to Prometheus that is the same.
    ///
    /// Where a target is scraped without `honor_labels`, its own labels win and the series' are called `exported_*`: these
    /// come first.
    pub fn label(&self, name: &str) -> &str {
        let exported = self.labels.get(&format!("exported_{name}")).filter(|value| !value.is_empty());
        exported.or_else(|| self.labels.get(name)).map_or("", String::as_str)
    }
}

/// The answer as JSON.
#[derive(Deserialize)]
struct Written {
    status: Option<String>,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    data: Option<WrittenData>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    infos: Vec<String>,
}

#[derive(Deserialize)]
struct WrittenData {
    #[serde(rename = "resultType")]
    kind: String,
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct WrittenSeries {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
    value: Option<(f64, String)>,
    #[serde(default)]
    histograms: Vec<serde_json::Value>,
}

/// What a server says that refuses a query, if `body` is its answer: the kind of error, and the message.
pub fn refusal(body: &str) -> Option<(String, String)> {
    let written: Written = serde_json::from_str(body).ok()?;
    (written.status.as_deref() == Some("error"))
        .then(|| (written.error_type.unwrap_or_default(), written.error.unwrap_or_default()))
}

impl Answer {
    /// Reads the answer that `file` holds.
    ///
    /// Samples that stand in another order, or twice with one value, are put right and counted in [`Answer::repairs`].
    ///
    /// # Errors
    /// If it is no JSON or cut off, another kind of JSON, the answer of a server that refused, or has two values for one
    /// instant of a series.
    pub fn read(text: &str, file: &str) -> Result<Self, InputError> {
        let written: Written = serde_json::from_str(text).map_err(|error| not_read(&error, file))?;
        if written.status.as_deref() == Some("error") {
            let (kind, message) = (written.error_type.unwrap_or_default(), written.error.unwrap_or_default());
            return Err(InputError::new(format!("{file}: the server refused the query: {message} ({kind})"))
                .help("ask again: `curl` saves an error as it saves an answer"));
        }
        let data = written.data.ok_or_else(|| not_an_answer(file))?;
        let series = series_of(&data, file)?;
        let mut answer =
            Self { series: Vec::new(), warnings: written.warnings, infos: written.infos, repairs: Vec::new() };
        let (mut out_of_order, mut twice, mut histograms) = (0_u64, 0_u64, 0_u64);
        for own in series {
            histograms += u64::from(!own.histograms.is_empty());
            let labels = own.metric;
            let mut samples = Vec::with_capacity(own.values.len() + 1);
            for (seconds, value) in own.values.into_iter().chain(own.value) {
                samples.push(sample(seconds, &value, file)?);
            }
            out_of_order += samples.windows(2).filter(|pair| pair[1].at < pair[0].at).count() as u64;
            samples.sort_by_key(|sample| sample.at);
            twice += without_doubles(&mut samples, &labels, file)?;
            answer.series.push(Series { labels, samples });
        }
        answer.series.sort_by(|one, other| one.labels.cmp(&other.labels));
        if let Some(pair) = answer.series.windows(2).find(|pair| pair[0].labels == pair[1].labels) {
            return Err(InputError::new(format!("{file}: the series {} is there twice", shown(&pair[0].labels))).help(
                "answers of several servers are not to be put together by hand: save each under a name of its own",
            ));
        }
        for (count, what) in [
            (out_of_order, "samples out of order, sorted"),
            (twice, "samples that were there twice, taken once"),
            (histograms, "series of native histograms, left out"),
        ] {
            if count > 0 {
                answer.repairs.push(format!("{count} {what}"));
            }
        }
        Ok(answer)
    }

    /// Adds what another answer to the same query says of another time.
    ///
    /// # Errors
    /// If both have a value for one instant of a series, and not the same.
    pub fn append(&mut self, other: Self, file: &str) -> Result<(), InputError> {
        let mut by_labels: BTreeMap<BTreeMap<String, String>, Vec<Sample>> =
            std::mem::take(&mut self.series).into_iter().map(|own| (own.labels, own.samples)).collect();
        for series in other.series {
            let samples = by_labels.entry(series.labels.clone()).or_default();
            samples.extend(series.samples);
            samples.sort_by_key(|sample| sample.at);
            without_doubles(samples, &series.labels, file)?;
        }
        self.series = by_labels.into_iter().map(|(labels, samples)| Series { labels, samples }).collect();
        for (own, others) in
            [(&mut self.warnings, other.warnings), (&mut self.infos, other.infos), (&mut self.repairs, other.repairs)]
        {
            own.extend(others);
            own.sort_unstable();
            own.dedup();
        }
        Ok(())
    }
}

fn not_read(error: &serde_json::Error, file: &str) -> InputError {
    let place = format!("{file}:{}:{}", error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Eof => {
            InputError::new(format!("{place}: ends in the middle: the answer was cut off"))
                .help("delete the file and ask again; an import goes on with what is missing")
        }
        serde_json::error::Category::Data => not_an_answer(file),
        _ => InputError::new(format!("{place}: is not JSON"))
            .help("what stands there is mostly the page of a proxy that asks to log in"),
    }
}

fn not_an_answer(file: &str) -> InputError {
    InputError::new(format!("{file}: is JSON, but not an answer of Prometheus"))
        .help("save what `/api/v1/query_range` answers, as it is: `{\"status\":\"success\",\"data\":…}`")
}

fn series_of(data: &WrittenData, file: &str) -> Result<Vec<WrittenSeries>, InputError> {
    let result = match data.kind.as_str() {
        "matrix" | "vector" => data.result.clone(),
        "scalar" => serde_json::json!([{ "value": data.result }]),
        other => {
            return Err(InputError::new(format!(
                "{file}: holds a `{other}`; a query of numbers answers with a `matrix`"
            )));
        }
    };
    serde_json::from_value(result).map_err(|_| not_an_answer(file))
}

fn sample(seconds: f64, value: &str, file: &str) -> Result<Sample, InputError> {
    let value: f64 = value
        .parse()
        .map_err(|_| InputError::new(format!("{file}: the sample `{value}` at {seconds} is not a number")))?;
    // A Unix time has room for microseconds in the 53 bits of a float.
    Ok(Sample { at: libm::round(seconds * 1e6) as i64, value })
}

/// Takes samples of one instant once; how many went.
fn without_doubles(
    samples: &mut Vec<Sample>,
    labels: &BTreeMap<String, String>,
    file: &str,
) -> Result<u64, InputError> {
    let differs = |pair: &&[Sample]| pair[0].at == pair[1].at && pair[0].value.to_bits() != pair[1].value.to_bits();
    if let Some(pair) = samples.windows(2).find(differs) {
        let [one, other] = [pair[0], pair[1]];
        return Err(InputError::new(format!(
            "{file}: {} has two values at {}: {} and {}",
            shown(labels),
            one.at / 1_000_000,
            one.value,
            other.value
        ))
        .help("two answers of different times or servers overlap: ask once, for the whole window"));
    }
    let before = samples.len();
    samples.dedup_by_key(|sample| sample.at);
    Ok((before - samples.len()) as u64)
}

/// Labels as PromQL writes them.
pub(crate) fn shown(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Answer, refusal};

    fn matrix(result: &str) -> String {
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#)
    }

    fn error(text: &str) -> String {
        Answer::read(text, "a.json").unwrap_err().to_string()
    }

    #[test]
    fn numbers_that_json_has_not_come_as_texts() {
        let text = matrix(r#"[{"metric":{"a":"b"},"values":[[1,"NaN"],[2.5,"+Inf"],[3,"-Inf"],[4,"1e-3"]]}]"#);
        let answer = Answer::read(&text, "a.json").unwrap();
        let samples = &answer.series[0].samples;
        assert!(samples[0].value.is_nan() && samples[1].value > f64::MAX && samples[2].value < f64::MIN);
        assert_eq!((samples[1].at, samples[3].value.to_bits()), (2_500_000, 0.001_f64.to_bits()));
    }

    #[test]
    fn vectors_and_scalars_are_series_with_one_sample() {
        let vector = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[7,"2"]}]}}"#;
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[7,"2"]}}"#;
        assert_eq!(Answer::read(vector, "a").unwrap().series, Answer::read(scalar, "a").unwrap().series);
        assert!(error(r#"{"status":"success","data":{"resultType":"string","result":[7,"x"]}}"#).contains("`string`"));
    }

    #[test]
    fn a_part_of_the_whole_is_told() {
        let text = r#"{"status":"success","warnings":["a store did not answer"],"infos":["PromQL info"],"data":{"resultType":"matrix","result":[]}}"#;
        let answer = Answer::read(text, "a.json").unwrap();
        assert_eq!((answer.warnings.len(), answer.infos.len(), answer.series.len()), (1, 1, 0));
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        assert_eq!(error(r#"{"status":"succ"#), "a.json:1:15: ends in the middle: the answer was cut off");
        assert_eq!(error("<html>log in</html>"), "a.json:1:1: is not JSON");
        assert_eq!(error("[1]"), "a.json: is JSON, but not an answer of Prometheus");
        let refused = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(error(refused), "a.json: the server refused the query: parse error (bad_data)");
        assert_eq!(refusal(refused), Some(("bad_data".to_owned(), "parse error".to_owned())));
        assert_eq!(refusal("busy"), None);
    }

    #[test]
    fn disorder_is_put_right_and_said_and_contradictions_are_refused() {
        let answer = Answer::read(&matrix(r#"[{"metric":{},"values":[[2,"5"],[1,"4"],[2,"5"]]}]"#), "a.json").unwrap();
        assert_eq!(answer.series[0].samples.iter().map(|own| own.at).collect::<Vec<_>>(), [1_000_000, 2_000_000]);
        assert_eq!(answer.repairs, ["1 samples out of order, sorted", "1 samples that were there twice, taken once"]);
        let contradiction = matrix(r#"[{"metric":{"x":"y"},"values":[[2,"5"],[2,"6"]]}]"#);
        assert_eq!(error(&contradiction), "a.json: {x=\"y\"} has two values at 2: 5 and 6");
        assert!(error(&matrix(r#"[{"metric":{},"values":[]},{"metric":{},"values":[]}]"#)).contains("is there twice"));
    }

    #[test]
    fn the_labels_of_a_series_win_over_those_of_its_target() {
        let text = matrix(r#"[{"metric":{"namespace":"monitoring","exported_namespace":"shop"},"values":[]}]"#);
        assert_eq!(Answer::read(&text, "a.json").unwrap().series[0].label("namespace"), "shop");
    }
}
