//! Reading the fields of a case, with the path of what is missing or malformed.

use std::collections::BTreeSet;
use std::sync::Mutex;

use nodecast_model::domain::{SimDuration, SimTime};
use serde_json::Value;

/// The instant at which every case decides; ages are subtracted from it.
pub const NOW: SimTime = SimTime::from_micros(1_000_000_000_000_000);

/// Fields of questions that nothing read.
static UNREAD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Fields of the questions so far that nothing read, in order of name.
pub fn unread() -> Vec<String> {
    UNREAD.lock().map(|unread| unread.iter().cloned().collect()).unwrap_or_default()
}

/// The fields of `value` that are none of `known`.
pub fn beyond<'a>(value: &'a Value, known: &'a [&str]) -> impl Iterator<Item = &'a String> {
    value.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| !known.contains(&key.as_str()))
}

/// Notes the fields of a question that are none of `known`. The answer is compared all the same: whoever reads that it agrees
/// must know that they were left out.
pub fn note_unread(what: &str, value: &Value, known: &[&str]) {
    if let Ok(mut unread) = UNREAD.lock() {
        unread.extend(beyond(value, known).map(|key| format!("{what}: {key}")));
    }
}

/// Fails on a field of an answer that is not one of `known`: nothing would be compared with it.
pub fn check_read(what: &str, value: &Value, known: &[&str]) -> Result<(), String> {
    match beyond(value, known).next() {
        Some(key) => Err(format!("{what}: unknown field {key:?}")),
        None => Ok(()),
    }
}

/// The value at the first of `keys` that is there: for fields that Kubernetes spells differently.
pub fn either<'a>(value: &'a Value, keys: [&str; 2]) -> &'a Value {
    if value[keys[0]].is_null() { &value[keys[1]] } else { &value[keys[0]] }
}

/// The list at `key`; absent or null is empty.
pub fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    match &value[key] {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(format!("{key}: {other} is not a list")),
    }
}

/// The text at `key`; absent or null is `None`.
pub fn text<'a>(value: &'a Value, key: &str) -> Result<Option<&'a str>, String> {
    match &value[key] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(format!("{key}: {other} is not a text")),
    }
}

/// The whole number at `key`, which may be written with a fraction of zero; absent or null is `None`.
pub fn integer(value: &Value, key: &str) -> Result<Option<i64>, String> {
    let written_with_fraction = |number: &f64| number.fract().abs() < f64::EPSILON && number.abs() < 9e15;
    match &value[key] {
        Value::Null => Ok(None),
        other => {
            let whole = || other.as_f64().filter(written_with_fraction).map(|number| number as i64);
            let found = other.as_i64().or_else(whole);
            found.map(Some).ok_or_else(|| format!("{key}: {other} is not a whole number"))
        }
    }
}

/// The whole number at `key`, which must be there and fit a replica count.
pub fn count(value: &Value, key: &str) -> Result<i32, String> {
    let number = integer(value, key)?.ok_or_else(|| format!("{key} is missing"))?;
    i32::try_from(number).map_err(|_| format!("{key}: {number} is no replica count"))
}

/// The same, or `default` if it is absent.
pub fn count_or(value: &Value, key: &str, default: i32) -> Result<i32, String> {
    if value[key].is_null() { Ok(default) } else { count(value, key) }
}

/// The number at `key`, or `default`.
pub fn number_or(value: &Value, key: &str, default: f64) -> Result<f64, String> {
    match &value[key] {
        Value::Null => Ok(default),
        other => other.as_f64().ok_or_else(|| format!("{key}: {other} is not a number")),
    }
}

/// The truth value at `key`, or `default`.
pub fn flag_or(value: &Value, key: &str, default: bool) -> Result<bool, String> {
    match &value[key] {
        Value::Null => Ok(default),
        other => other.as_bool().ok_or_else(|| format!("{key}: {other} is neither true nor false")),
    }
}

/// The span of seconds at `key`, or `default`.
pub fn seconds_or(value: &Value, key: &str, default: SimDuration) -> Result<SimDuration, String> {
    match &value[key] {
        Value::Null => Ok(default),
        other => {
            let seconds = other.as_f64().ok_or_else(|| format!("{key}: {other} is not a number of seconds"))?;
            Ok(SimDuration::from_secs_f64(seconds))
        }
    }
}

/// The instant that lies `key` seconds before the decision; `None` if the field is absent.
pub fn ago(value: &Value, key: &str) -> Result<Option<SimTime>, String> {
    let age = seconds_or(value, key, SimDuration::ZERO)?;
    let there = !value[key].is_null();
    Ok(there.then(|| SimTime::from_micros(NOW.as_micros() - age.as_micros())))
}

/// Compares a condition, written as `True/Reason`, with what is expected: the same, or the status alone.
pub fn same_condition(name: &str, found: Option<&str>, wanted: Option<&str>) -> Result<(), String> {
    let Some(wanted) = wanted else { return Ok(()) };
    let status = found.map(|found| found.split('/').next().unwrap_or(found));
    same(name, if wanted.contains('/') { found } else { status }, Some(wanted))
}

/// Says that `what` differs.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}
