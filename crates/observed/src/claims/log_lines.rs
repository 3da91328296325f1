//! Lines of Karpenter's log out of what stores wrap them in: a pod's name before each line (stern, `kubectl logs --prefix`), a time
//! (`--timestamps`), files of container runtimes (CRI, Docker), answers of CloudWatch Logs and Loki, and the console form, which is
//! Karpenter's own up to v0.32.
//!
//! Must not: read what a line says (`karpenter_log`).
//!
//! Source: zap v1.27 `zapcore/console_encoder.go`, `EncodeEntry`; Kubernetes CRI `kuberuntime/logs/logs.go`; Docker `json-file`; CloudWatch
//! Logs API, `FilterLogEvents`, `GetQueryResults`; Loki HTTP API, `query_range`.

use serde_json::{Map, Value};

use super::Instant;
use super::values::{items, text};

/// Keys under which collectors keep the line.
const KEYS: [&str; 5] = ["log", "line", "message", "@message", "_raw"];
/// Levels of the console form.
const LEVELS: [&str; 7] = ["DEBUG", "INFO", "WARN", "ERROR", "DPANIC", "PANIC", "FATAL"];
/// Wrappings around one line at most.
const DEPTH: usize = 4;

/// The fields of a line of Karpenter's log, whatever is around it; `None` if it is none.
pub(super) fn fields(line: &str) -> Option<Value> {
    of_text(line.trim(), DEPTH)
}

fn of_text(line: &str, depth: usize) -> Option<Value> {
    let below = depth.checked_sub(1)?;
    if let Some(console) = console(line) {
        return Some(console);
    }
    // The first brace after a prefix begins the object, unless a prefix of labels has braces too.
    let starts = line.match_indices('{').take(DEPTH).map(|(at, _)| &line[at..]);
    starts.filter_map(|rest| serde_json::from_str::<Value>(rest).ok()).find_map(|value| of_value(&value, below))
}

/// The fields in a value of JSON: its own, or those of the line that it wraps.
fn of_value(value: &Value, depth: usize) -> Option<Value> {
    let wrapped = KEYS.iter().find_map(|key| of_text(text(value, &[key])?.trim(), depth));
    let make = || is_line(value).then(|| value.clone());
    wrapped.or_else(make).or_else(|| value.get("log_processed").filter(|inner| is_line(inner)).cloned())
}

/// Whether a value is itself a line.
fn is_line(value: &Value) -> bool {
    text(value, &["message"]).is_some() && (value.get("time").is_some() || value.get("ts").is_some())
}

/// A line of the console form: time, level, perhaps logger and caller, message, and perhaps fields as JSON, with tabs between.
fn console(line: &str) -> Option<Value> {
    let cells: Vec<&str> = line.split('\t').collect();
    let level = cells.iter().position(|cell| LEVELS.contains(cell)).filter(|at| *at > 0)?;
    let time = cells[level - 1].rsplit(' ').next().filter(|time| Instant::parse(time).is_some())?;
    let rest = &cells[level + 1..];
    let (fields, rest) = match rest.split_last() {
        Some((last, before)) if last.starts_with('{') => (serde_json::from_str(last).ok()?, before),
        _ => (Map::new(), rest),
    };
    let mut fields: Map<String, Value> = fields;
    fields.insert("time".to_owned(), Value::String(time.to_owned()));
    fields.insert("message".to_owned(), Value::String((*rest.last()?).to_owned()));
    Some(Value::Object(fields))
}

/// The lines in an answer of CloudWatch Logs or Loki, the oldest first; `None` for anything else.
pub(super) fn of_answer(value: &Value) -> Option<Vec<String>> {
    let of_events = || -> Vec<(i128, String)> {
        let events = items(value, &["events"]).iter();
        events
            .filter_map(|event| Some((number(event.get("timestamp")?)?, text(event, &["message"])?.to_owned())))
            .collect()
    };
    let of_query = || -> Vec<(i128, String)> {
        let rows = items(value, &["results"]).iter().filter_map(Value::as_array);
        let message = |row: &Vec<Value>| {
            let cell = row.iter().find(|cell| text(cell, &["field"]) == Some("@message"))?;
            Some((0, text(cell, &["value"])?.to_owned()))
        };
        rows.filter_map(message).collect()
    };
    let of_streams = || -> Vec<(i128, String)> {
        let pairs = items(value, &["data", "result"]).iter().flat_map(|stream| items(stream, &["values"]));
        pairs.filter_map(|pair| Some((number(pair.get(0)?)?, pair.get(1)?.as_str()?.to_owned()))).collect()
    };
    let mut lines = [of_events(), of_query(), of_streams()].into_iter().find(|lines| !lines.is_empty())?;
    lines.sort_by_key(|(at, _)| *at);
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    lines.iter().any(|line| fields(line).is_some()).then_some(lines)
}

fn number(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_str()?.parse().ok())
}

/// The lines of a file, those that a container runtime split in parts put together. A last line without an end comes as it is.
pub(super) fn of_file(text: &str) -> impl Iterator<Item = String> {
    let mut begun = String::new();
    text.split_inclusive('\n').filter_map(move |line| match part(line) {
        Some((head, "P", rest)) => {
            if begun.is_empty() {
                begun.push_str(head);
            }
            begun.push_str(rest.trim_end_matches('\n'));
            None
        }
        Some((_, _, rest)) if !begun.is_empty() => Some(std::mem::take(&mut begun) + rest),
        _ => Some(line.to_owned()),
    })
}

/// What stands before the text of a line of a CRI file, whether the line is whole (`F`) or a part (`P`), and its text.
fn part(line: &str) -> Option<(&str, &str, &str)> {
    let mut words = line.splitn(4, ' ');
    let (time, stream, tag, rest) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_cri = ["stdout", "stderr"].contains(&stream) && ["F", "P"].contains(&tag) && Instant::parse(time).is_some();
    is_cri.then(|| (&line[..=time.len()], tag, rest))
}

#[cfg(test)]
mod tests {
    use super::{fields, of_answer, of_file};
    use crate::claims::values::text;

    const LINE: &str =
        r#"{"level":"INFO","time":"2025-03-02T07:00:01.5Z","message":"launched nodeclaim","NodeClaim":{"name":"a-1"}}"#;

    fn claim(line: &str) -> Option<String> {
        let fields = fields(line)?;
        let this_text =
            text(&fields, &["NodeClaim", "name"]).or_else(|| text(&fields, &["nodeclaim"])).map(str::to_owned);
        this_text
            .filter(|_| text(&fields, &["message"]) == Some("launched nodeclaim") && text(&fields, &["time"]).is_some())
    }

    #[test]
    fn wrapped_lines_give_the_fields_of_the_line() {
        let quoted = serde_json::to_string(&format!("{LINE}\n")).unwrap();
        let console = "2025-03-02T07:00:01.5Z\tINFO\tcontroller.x\tlaunched nodeclaim\t{\"commit\": \"c\", \"nodeclaim\": \"a-1\"}";
        let wrapped = [
            LINE.to_owned(),
            format!("karpenter-7d-x karpenter {LINE}"),
            format!("[pod/karpenter-7d-x/controller] {LINE}"),
            format!("2025-03-02T07:00:01.500000000Z {LINE}"),
            format!("2025-03-02T07:00:01.500000000Z stdout F {LINE}"),
            format!("{{\"log\":{quoted},\"stream\":\"stderr\",\"time\":\"2025-03-02T07:00:02Z\"}}"),
            format!("{{\"timestamp\":1740898801500,\"message\":{quoted}}}"),
            format!("{{\"labels\":{{\"app\":\"karpenter\"}},\"line\":{quoted}}}"),
            format!("{{app=\"karpenter\"}} {LINE}"),
            console.to_owned(),
            format!("karpenter-7d-x {console}"),
            console.replace("controller.x\t", ""),
        ];
        for line in wrapped {
            assert_eq!(claim(&line).as_deref(), Some("a-1"), "{line}");
        }
        for other in
            ["", "panic: x", "{\"message\": \"no time\"}", "{\"time\": \"2025-03-02T07:00:01Z\"}", "a\tINFO\tb"]
        {
            assert!(fields(other).is_none(), "{other}");
        }
    }

    #[test]
    fn log_store_responses_yield_ordered_lines() {
        let quoted = serde_json::to_string(LINE).unwrap();
        let later = serde_json::to_string(&LINE.replace("a-1", "b-2")).unwrap();
        for answer in [
            format!(
                "{{\"events\":[{{\"timestamp\":2,\"message\":{later}}},{{\"timestamp\":1,\"message\":{quoted}}}]}}"
            ),
            format!(
                "{{\"status\":\"success\",\"data\":{{\"result\":[{{\"values\":[[\"20\",{later}],[\"10\",{quoted}]]}}]}}}}"
            ),
            format!(
                "{{\"results\":[[{{\"field\":\"@message\",\"value\":{quoted}}}],[{{\"field\":\"@message\",\"value\":{later}}}]]}}"
            ),
        ] {
            let lines = of_answer(&serde_json::from_str(&answer).unwrap()).unwrap();
            assert_eq!(lines.iter().filter_map(|line| claim(line)).collect::<Vec<_>>(), ["a-1", "b-2"], "{answer}");
        }
        assert!(of_answer(&serde_json::json!({"events": [{"timestamp": 1, "message": "hello"}]})).is_none());
    }

    #[test]
    fn parts_of_a_long_line_are_one_line() {
        let (first, second) = LINE.split_at(40);
        let stamp = "2025-03-02T07:00:01.5Z stdout";
        let file = format!("{stamp} P {first}\n{stamp} F {second}\n{stamp} F other\n");
        let lines: Vec<String> = of_file(&file).collect();
        assert_eq!((lines.len(), claim(&lines[0]).as_deref()), (2, Some("a-1")));
    }
}
