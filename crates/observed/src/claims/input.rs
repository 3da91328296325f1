//! Files: which kind each is, by what it holds, and what is wrong with one that cannot be used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nodecast_model::domain::words::refusal;
use nodecast_model::text::dump::without_logs;
use nodecast_model::text::error::{InputError, Place, listed};
use nodecast_model::text::source::{Limits, Source};
use nodecast_model::text::tree::{Node, NodeKind, Variables, parse};
use serde_json::Value;

use crate::gzip;

use super::lives::{History, Window};
use super::values::text;
use super::{cloud_events, karpenter_log, ledger::Ledger, log_lines, objects, run_tables};

/// What can be read, for who names something else.
const KINDS: &str = "name NodeClaims, Nodes, Pods or Events as `kubectl get -o yaml` or `-o json` prints them, a watch of NodeClaims, \
                     Karpenter's log (in JSON or console form, also as stern, container runtimes, CloudWatch Logs or Loki wrap it), records of CloudTrail or EventBridge, or the folder of a run's report";

/// Lines of a file among which one of Karpenter's log is looked for.
const LINES_TRIED: usize = 1_000;
/// An answer of a store of logs.
const LOG_ANSWER: &str = "an answer with Karpenter's log";

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files, and folders: of a run's tables, or of files.
    pub paths: Vec<PathBuf>,
    /// The time over which the cluster's own sources recorded everything; `None` for from their first to their last instant.
    pub window: Option<Window>,
}

/// Reads everything.
///
/// # Errors
/// At the first file that cannot be used; a folder's files that are of no known kind are passed over, and named.
pub fn read(sources: &Sources) -> Result<History, InputError> {
    let mut ledger = Ledger::default();
    if let Some(window) = sources.window {
        ledger.set_window(window);
    }
    for path in &sources.paths {
        if !path.is_dir() {
            file(&mut ledger, path)?;
        } else if run_tables::is_one(path) {
            run_tables::folder(&mut ledger, path)?;
        } else {
            folder(&mut ledger, path)?;
        }
    }
    Ok(ledger.conclude())
}

fn folder(ledger: &mut Ledger, directory: &Path) -> Result<(), InputError> {
    let unreadable = |error: &std::io::Error| cannot_read(directory, error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|error| unreadable(&error))? {
        paths.push(entry.map_err(|error| unreadable(&error))?.path());
    }
    paths.sort();
    let known = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        path.is_file() && ["json", "jsonl", "log", "yaml", "yml"].contains(&extension)
    };
    let paths: Vec<PathBuf> = paths.into_iter().filter(known).collect();
    if paths.is_empty() {
        return Err(InputError::new(format!("`{}` holds nothing that can be read", directory.display())).help(KINDS));
    }
    paths.iter().try_for_each(|path| file(ledger, path))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> InputError {
    InputError::new(format!("cannot read `{}`: {}", path.display(), refusal(error)))
        .help("check that the path is right and that you may read the file")
}

/// The text of a file.
pub(super) fn load(path: &Path) -> Result<String, InputError> {
    let name = path.display();
    let most = Limits::default().file_bytes_max as u64;
    let bytes = gzip::read(path, most + 1).map_err(|error| cannot_read(path, &error))?;
    if bytes.len() as u64 > most {
        return Err(
            InputError::new(format!("`{name}` is larger than {} MiB", most >> 20)).help("split it into several files")
        );
    }
    let mut text = String::from_utf8(bytes).map_err(|_| {
        InputError::new(format!("`{name}` is not text")).help("unpack it first if it is compressed; save it as UTF-8")
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// That a text is not the JSON that it began as, with the place.
pub(super) fn not_json(name: &str, text: &str, error: &serde_json::Error) -> InputError {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let offset = (before + error.column().saturating_sub(1)).min(text.len().saturating_sub(1));
    let reason = if error.is_eof() { "the file ends here, in the middle of a value" } else { "not JSON from here on" };
    let help = if error.is_eof() {
        "the file is not whole: copy or print it again"
    } else {
        "check what wrote it; a file holds JSON, JSON a line, or YAML"
    };
    InputError::new(format!("`{name}` is not whole JSON"))
        .at(Some(Place::new(name, text, offset, 1)))
        .because(reason)
        .help(help)
}

/// That a table is not one.
pub(super) fn unreadable_table(name: &str, text: &str, error: &csv::Error) -> InputError {
    let place = error.position().map(|position| {
        let offset = usize::try_from(position.byte()).unwrap_or(0).min(text.len().saturating_sub(1));
        Place::new(name, text, offset, 1)
    });
    InputError::new(format!("`{name}` is not a table of CSV: {error}"))
        .at(place)
        .because("not as many cells as columns, or not text")
        .help("name the folder of a report as `nodecast run` wrote it")
}

fn file(ledger: &mut Ledger, path: &Path) -> Result<(), InputError> {
    let name = path.display().to_string();
    let text = load(path)?;
    let text = without_logs(&text);
    if text.trim().is_empty() {
        return Err(InputError::new(format!("`{name}` is empty")).help(KINDS));
    }
    // A manifest may hold such a line as a value.
    let is_manifest = text.lines().any(|line| ["apiVersion:", "kind:"].iter().any(|key| line.starts_with(key)));
    if !is_manifest && log_lines::of_file(&text).take(LINES_TRIED).any(|line| log_lines::fields(&line).is_some()) {
        log(ledger, &name, &text);
        return Ok(());
    }
    if text.trim_start().starts_with(['{', '[']) {
        return json(ledger, &name, &text);
    }
    yaml(ledger, &name, &text)
}

/// Whole lines only: the last one of a file that grows may not have its end yet.
fn log(ledger: &mut Ledger, name: &str, text: &str) {
    ledger.begin(name, "Karpenter's log");
    for line in log_lines::of_file(text) {
        if line.ends_with('\n') || log_lines::fields(&line).is_some() {
            let line = line.trim();
            if !line.is_empty() {
                karpenter_log::line(ledger, line);
            }
        } else {
            ledger.remark("its last line is not whole yet and was left out");
        }
    }
}

/// What a value of JSON is, by its keys.
fn kind_of(value: &Value) -> Option<&'static str> {
    let is_watch = matches!(text(value, &["type"]), Some("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"));
    if is_watch && value.get("object").is_some() {
        return Some("a watch");
    }
    if text(value, &["kind"]).is_some() && value.get("apiVersion").is_some() {
        return Some("objects of Kubernetes");
    }
    let trail = |value: &Value| value.get("eventName").is_some() || value.get("CloudTrailEvent").is_some();
    let listed = ["Records", "Events"].iter().any(|key| value.get(key).and_then(|list| list.get(0)).is_some_and(trail));
    if listed || trail(value) {
        return Some("records of CloudTrail");
    }
    value.get("detail-type").is_some().then_some("events of EventBridge")
}

/// One or many values of JSON, one after the other, or in a list.
fn json(ledger: &mut Ledger, name: &str, text: &str) -> Result<(), InputError> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut seen = BTreeSet::new();
    let mut kind: Option<&'static str> = None;
    for value in values {
        let value = match value {
            Ok(value) => value,
            // A file that grows: its last value may not have its end yet.
            Err(error) if error.is_eof() && kind.is_some() && !text.ends_with('\n') => {
                ledger.remark("its last line is not whole yet and was left out");
                return Ok(());
            }
            Err(error) => return Err(not_json(name, text, &error)),
        };
        // A store answers page by page.
        if let (None | Some(LOG_ANSWER), Some(lines)) = (kind, log_lines::of_answer(&value)) {
            if kind.replace(LOG_ANSWER).is_none() {
                ledger.begin(name, "Karpenter's log");
            }
            lines.iter().for_each(|line| karpenter_log::line(ledger, line));
            continue;
        }
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let this_kind = kind_of(&value);
            if kind.is_none() {
                kind = Some(this_kind.ok_or_else(|| foreign(name, &value))?);
                ledger.begin(name, this_kind.unwrap_or_default());
            }
            take(ledger, this_kind, &value, &mut seen);
        }
    }
    if kind.is_none() {
        return Err(InputError::new(format!("`{name}` holds nothing")).help(KINDS));
    }
    Ok(())
}

fn take(ledger: &mut Ledger, kind: Option<&str>, value: &Value, seen: &mut BTreeSet<String>) {
    match kind {
        Some("a watch") => objects::change(ledger, value, &mut |name| seen.insert(name.to_owned())),
        Some("objects of Kubernetes") => objects::object(ledger, value),
        Some("records of CloudTrail") => {
            ledger.tells_ends();
            let list = ["Records", "Events"].iter().find_map(|key| value.get(key)?.as_array());
            match list {
                Some(list) => list.iter().for_each(|record| cloud_events::trail(ledger, record)),
                None => cloud_events::trail(ledger, value),
            }
        }
        Some(_) => {
            ledger.tells_ends();
            cloud_events::bridge(ledger, value);
        }
        None => ledger.left(&value.to_string()),
    }
}

fn foreign(name: &str, value: &Value) -> InputError {
    let keys: Vec<&str> =
        value.as_object().map_or_else(Vec::new, |map| map.keys().map(String::as_str).take(5).collect());
    let holds = if keys.is_empty() { "no object".to_owned() } else { format!("the keys {}", listed(keys)) };
    InputError::new(format!("`{name}` is of no kind that tells how a cluster lived: it has {holds}")).help(KINDS)
}

fn yaml(ledger: &mut Ledger, name: &str, text: &str) -> Result<(), InputError> {
    let source = Source::new(name, text);
    let documents = parse(&source, &Variables::new(), &Limits::default())?;
    let values: Vec<Value> = documents.iter().map(value_of).collect();
    let Some(first) = values.first() else { return Err(InputError::new(format!("`{name}` is empty")).help(KINDS)) };
    if kind_of(first) != Some("objects of Kubernetes") {
        return Err(foreign(name, first));
    }
    ledger.begin(name, "objects of Kubernetes");
    values.iter().for_each(|value| objects::object(ledger, value));
    Ok(())
}

/// A tree of YAML as JSON; all its scalars are text.
fn value_of(node: &Node<'_>) -> Value {
    match &node.kind {
        NodeKind::Null => Value::Null,
        NodeKind::Scalar { text, .. } => Value::String(text.to_string()),
        NodeKind::Seq(items) => Value::Array(items.iter().map(value_of).collect()),
        NodeKind::Map(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.key.to_string(), value_of(&entry.value))).collect())
        }
    }
}
