//! The answers of `/api/v1/query_range` and `/api/v1/query`.
//!
//! Source: Prometheus 3.14 `docs/querying/api.md`. Numbers come as texts, since JSON has no NaN and no infinity; `warnings` and
//! `infos` beside a good answer say that it may be a part of the whole.

mod reading;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use nodecast_model::text::InputError;
use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny};

use self::reading::Reading;

/// Bytes that are read at once of an answer that arrives.
const PIECE: usize = 1 << 16;

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

/// The answer as JSON, without its series.
#[derive(Deserialize)]
struct Written {
    status: Option<String>,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    data: Option<WrittenData>,
    #[serde(default, rename = "warnings")]
    _warnings: Vec<String>,
    #[serde(default, rename = "infos")]
    _infos: Vec<String>,
}

#[derive(Deserialize)]
struct WrittenData {
    #[serde(rename = "resultType")]
    kind: String,
    #[serde(rename = "result")]
    _result: IgnoredAny,
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
        let mut reading = Reading::from_file(file);
        match read_into(&mut reading, serde_json::Deserializer::from_str(text)) {
            Ok(()) => Self::from_reading(reading),
            Err(_) => Err(why_not(text, reading.failure, file)),
        }
    }

    /// Reads an answer as it arrives; `None` if there is something wrong with it. What that is [`Answer::read`] says of the whole.
    ///
    /// # Errors
    /// If it ceases to arrive.
    pub fn arriving(from: impl Read) -> Result<Option<Self>, std::io::Error> {
        let mut reading = Reading::from_file("");
        match read_into(&mut reading, serde_json::Deserializer::from_reader(BufReader::with_capacity(PIECE, from))) {
            Ok(()) => Ok(Self::from_reading(reading).ok()),
            Err(error) if error.is_io() => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// The answer that has been read.
    fn from_reading(reading: Reading<'_>) -> Result<Self, InputError> {
        let Reading { file, status, error_type, error, mut warnings, infos, is_partial, .. } = reading;
        let Reading { kind, mut series, scalar, repairs, .. } = reading;
        warnings.extend(is_partial.then(|| "the answer is partial: part of the storage did not answer".to_owned()));
        check(status.as_deref(), [error_type, error], kind.as_deref(), file)?;
        if (kind.as_deref() == Some("scalar")) != scalar.is_some() {
            return Err(not_an_answer(file));
        }
        series.extend(scalar.map(|sample| Series { labels: BTreeMap::new(), samples: vec![sample] }));
        // Prometheus has sorted them already.
        if !series.is_sorted_by(|one, other| one.labels <= other.labels) {
            series.sort_by(|one, other| one.labels.cmp(&other.labels));
        }
        if let Some(pair) = series.windows(2).find(|pair| pair[0].labels == pair[1].labels) {
            return Err(InputError::new(format!("{file}: the series {} is there twice", shown(&pair[0].labels))).help(
                "answers of several servers are not to be put together by hand: save each under a name of its own",
            ));
        }
        let words = [
            "samples out of order, sorted",
            "samples that were there twice, taken once",
            "series of native histograms, left out",
        ];
        let repairs = repairs.iter().zip(words).filter(|(count, _)| **count > 0);
        let repairs = repairs.map(|(count, what)| format!("{count} {what}")).collect();
        Ok(Self { series, warnings, infos, repairs })
    }

    /// Adds what another answer to the same query says of another time.
    ///
    /// # Errors
    /// If both have a value for one instant of a series, and not the same.
    pub fn append(&mut self, other: Self, file: &str) -> Result<(), InputError> {
        if self.series.is_empty() {
            self.series = other.series;
        } else {
            let mut by_labels: BTreeMap<BTreeMap<String, String>, Vec<Sample>> =
                std::mem::take(&mut self.series).into_iter().map(|series| (series.labels, series.samples)).collect();
            for series in other.series {
                let samples = by_labels.entry(series.labels.clone()).or_default();
                samples.extend(series.samples);
                samples.sort_by_key(|sample| sample.at);
                without_doubles(samples, &series.labels, file)?;
            }
            self.series = by_labels.into_iter().map(|(labels, samples)| Series { labels, samples }).collect();
        }
        for (key, others) in
            [(&mut self.warnings, other.warnings), (&mut self.infos, other.infos), (&mut self.repairs, other.repairs)]
        {
            key.extend(others);
            key.sort_unstable();
            key.dedup();
        }
        Ok(())
    }
}

fn read_into<'d, R: serde_json::de::Read<'d>>(
    reading: &mut Reading<'_>,
    mut from: serde_json::Deserializer<R>,
) -> Result<(), serde_json::Error> {
    reading.deserialize(&mut from)?;
    from.end()
}

/// Why a text that could not be read is no answer: the first of all reasons in the order of how much they explain. A text that was cut off
/// is told to be that, whatever else is wrong with what there is of it.
fn why_not(text: &str, failure: Option<InputError>, file: &str) -> InputError {
    let written: Written = match serde_json::from_str(text) {
        Ok(written) => written,
        Err(error) => return not_read(&error, file),
    };
    let kind = written.data.as_ref().map(|data| data.kind.as_str());
    let checked = check(written.status.as_deref(), [written.error_type, written.error], kind, file);
    checked.err().or(failure).unwrap_or_else(|| not_an_answer(file))
}

/// Checks what stands beside the series.
fn check(
    status: Option<&str>,
    [error_type, error]: [Option<String>; 2],
    kind: Option<&str>,
    file: &str,
) -> Result<(), InputError> {
    if status == Some("error") {
        let (error_type, error) = (error_type.unwrap_or_default(), error.unwrap_or_default());
        return Err(InputError::new(format!("{file}: the server refused the query: {error} ({error_type})"))
            .help("ask again: `curl` saves an error as it saves an answer"));
    }
    match kind {
        None => Err(not_an_answer(file)),
        Some(kind) if reading::is_of_numbers(kind) => Ok(()),
        Some(other) => {
            Err(InputError::new(format!("{file}: holds a `{other}`; a query of numbers answers with a `matrix`")))
        }
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
    fn unordered_samples_are_sorted_and_conflicts_rejected() {
        let answer = Answer::read(&matrix(r#"[{"metric":{},"values":[[2,"5"],[1,"4"],[2,"5"]]}]"#), "a.json").unwrap();
        assert_eq!(answer.series[0].samples.iter().map(|sample| sample.at).collect::<Vec<_>>(), [1_000_000, 2_000_000]);
        assert_eq!(answer.repairs, ["1 samples out of order, sorted", "1 samples that were there twice, taken once"]);
        let contradiction = matrix(r#"[{"metric":{"x":"y"},"values":[[2,"5"],[2,"6"]]}]"#);
        assert_eq!(error(&contradiction), "a.json: {x=\"y\"} has two values at 2: 5 and 6");
        assert!(error(&matrix(r#"[{"metric":{},"values":[]},{"metric":{},"values":[]}]"#)).contains("is there twice"));
    }

    #[test]
    fn keys_stand_in_any_order() {
        let data = r#"{"result":[{"values":[[1,"2"]],"metric":{"a":"b"},"x":[{}]}],"resultType":"matrix"}"#;
        let answer = Answer::read(&format!(r#"{{"data":{data},"more":1,"status":"success"}}"#), "a.json").unwrap();
        assert_eq!(answer, Answer::read(&matrix(r#"[{"metric":{"a":"b"},"values":[[1,"2"]]}]"#), "a.json").unwrap());
        let scalar = r#"{"data":{"result":[7,"2"],"resultType":"scalar"},"status":"success"}"#;
        assert_eq!(Answer::read(scalar, "a.json").unwrap().series[0].samples.len(), 1);
        assert!(error(r#"{"data":{"result":[7,"x"],"resultType":"string"}}"#).contains("holds a `string`"));
        assert!(
            error(r#"{"data":{"result":[{"stream":{},"values":[["7","x"]]}],"resultType":"streams"}}"#)
                .contains("`streams`")
        );
        let refused = r#"{"data":{"result":[],"resultType":"matrix"},"error":"no","errorType":"x","status":"error"}"#;
        assert!(error(refused).ends_with("the server refused the query: no (x)"));
    }

    #[test]
    fn non_numeric_sample_is_named_in_error() {
        let bad = r#"[{"metric":{},"values":[[1,"2"],[2.5,"two\u0021"]]}]"#;
        assert_eq!(error(&matrix(bad)), "a.json: the sample `two!` at 2.5 is not a number");
        let text = matrix(bad);
        assert!(error(&text[..text.len() - 1]).ends_with("the answer was cut off"));
        assert!(error(&format!("{text} x")).ends_with("is not JSON"));
        let scalar = r#"{"data":{"resultType":"scalar","result":[7,"seven"]}}"#;
        assert!(error(scalar).contains("the sample `seven` at 7 "));
    }

    #[test]
    fn what_has_another_form_is_no_answer() {
        let not = "a.json: is JSON, but not an answer of Prometheus";
        for result in [
            "null",
            "7",
            "{}",
            r#"[7,"1"]"#,
            "[[]]",
            "[{},7]",
            r#"[{"values":null}]"#,
            r#"[{"values":[null]}]"#,
            r#"[{"values":[[1]]}]"#,
            r#"[{"values":[[1,2]]}]"#,
            r#"[{"values":[[1,"2",3]]}]"#,
            r#"[{"values":[["1","2"]]}]"#,
            r#"[{"metric":{"a":1}}]"#,
            r#"[{"metric":{},"value":[1]}]"#,
            r#"[{"histograms":7}]"#,
        ] {
            assert_eq!(error(&matrix(result)), not, "{result}");
        }
        for data in [
            r#"{"resultType":"matrix"}"#,
            r#"{"result":[]}"#,
            "7",
            "null",
            r#"{"resultType":"scalar","result":[]}"#,
            r#"{"resultType":"scalar","result":[7]}"#,
            r#"{"resultType":"scalar","result":[7,"1",2]}"#,
            r#"{"resultType":"scalar","result":[{}]}"#,
            r#"{"resultType":"matrix","result":[],"result":[]}"#,
        ] {
            assert_eq!(error(&format!(r#"{{"status":"success","data":{data}}}"#)), not, "{data}");
        }
        assert_eq!(error(r#"{"status":"success"}"#), not);
        let empty = Answer::read(&matrix(r#"[{"metric":{},"value":null,"histograms":[]}]"#), "a.json").unwrap();
        assert!(empty.series[0].samples.is_empty() && empty.repairs.is_empty());
    }

    #[test]
    fn an_answer_is_the_same_as_it_arrives() {
        let good = matrix(
            r#"[{"metric":{"a":"\u00e4"},"values":[[2,"5"],[1,"NaN"]],"histograms":[[1,{}]]},{"metric":{},"value":[7,"1"]}]"#,
        );
        let (read, arrived) =
            (Answer::read(&good, "a.json").unwrap(), Answer::arriving(good.as_bytes()).unwrap().unwrap());
        assert_eq!(format!("{read:?}"), format!("{arrived:?}"));
        assert_eq!(read.repairs, ["1 samples out of order, sorted", "1 series of native histograms, left out"]);
        for bad in [&good[..good.len() - 1], &good.replace("NaN", "none"), "[1]", &good.replace("success", "error")] {
            assert!(Answer::arriving(bad.as_bytes()).unwrap().is_none(), "{bad}");
        }
    }

    #[test]
    fn series_labels_override_target_labels() {
        let text = matrix(r#"[{"metric":{"namespace":"monitoring","exported_namespace":"shop"},"values":[]}]"#);
        assert_eq!(Answer::read(&text, "a.json").unwrap().series[0].label("namespace"), "shop");
    }
}
