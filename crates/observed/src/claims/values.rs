//! Looking into objects of JSON.

use serde_json::Value;

use super::Instant;

/// The value at a path of keys.
pub(super) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The text at a path, if it is text and not empty.
pub(super) fn text<'v>(value: &'v Value, path: &[&str]) -> Option<&'v str> {
    at(value, path)?.as_str().filter(|text| !text.is_empty())
}

/// The instant at a path.
pub(super) fn instant(value: &Value, path: &[&str]) -> Option<Instant> {
    Instant::parse(text(value, path)?)
}

/// The number at a path, which YAML may have left as text.
pub(super) fn number(value: &Value, path: &[&str]) -> Option<f64> {
    let value = at(value, path)?;
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// The items of the list at a path; none if there is no list.
pub(super) fn items<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `namespace/name` of an object's metadata or of a reference.
pub(super) fn full_name(value: &Value) -> Option<String> {
    let name = text(value, &["name"])?;
    Some(format!("{}/{name}", text(value, &["namespace"]).unwrap_or("default")))
}
