//! Descriptions of the keys of a schema, from the reference.
//!
//! A key has, in this order: the meaning of its own row; the phrase that names it in the row of a key above it; the row of a form
//! (`...pods[]`); the meaning that it has in all documents; and the whole clause that names it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::reference::{COMMON, Part, Row, names, part_with, rows, unlinked};

/// Nesting of keys that one row describes.
const DEPTH_MAX: usize = 4;

/// Gives the keys of a schema the meanings in these sections of the reference.
pub(super) fn describe(schema: &mut Value, sections: &[&str]) {
    let rows: Vec<Row> = sections.iter().flat_map(|section| rows(section)).collect();
    let mentions = Mentions::from_rows(schema, &rows);
    put_rows(schema, &rows, false);
    mentions.put(schema, Part::Phrase);
    put_rows(schema, &rows, true);
    for row in self::rows(COMMON) {
        for name in row.paths.iter().flatten() {
            for place in keys_with_name(schema, name.trim_end_matches("[]")) {
                put(schema, &place, &unlinked(row.meaning));
            }
        }
    }
    mentions.put(schema, Part::Clause);
}

/// Gives keys the meanings of their own rows: of forms, or of all others.
fn put_rows(schema: &mut Value, rows: &[Row], forms: bool) {
    for row in rows {
        for path in row.paths.iter().filter(|path| is_form(path) == forms) {
            for place in places(schema, path) {
                put(schema, &place, &unlinked(row.meaning));
            }
        }
    }
}

/// Keys that rows name in their meanings.
struct Mentions<'r> {
    rows: &'r [Row],
    /// Names of the keys whose values are a definition, by its pointer.
    users: BTreeMap<String, BTreeSet<String>>,
    /// Keys with a row of their own.
    defined: BTreeSet<String>,
}

impl<'r> Mentions<'r> {
    fn from_rows(schema: &Value, rows: &'r [Row]) -> Self {
        let mut users = BTreeMap::new();
        for place in keys(schema) {
            if let Some(key) = schema.pointer(&place) {
                note_definitions(key, place.rsplit('/').next().unwrap_or_default(), &mut users);
            }
        }
        let defined = rows.iter().flat_map(|row| &row.paths).flat_map(|path| places(schema, path)).collect();
        Self { rows, users, defined }
    }

    /// Describes keys that have no description yet. Keys right below that of a row come first.
    fn put(&self, schema: &mut Value, part: Part) {
        for depth in [1, DEPTH_MAX] {
            for row in self.rows {
                let all: Vec<String> = row.paths.iter().flat_map(|path| places(schema, path)).collect();
                for place in all {
                    self.put_below(schema, &place, row, part, depth);
                }
            }
        }
    }

    fn put_below(&self, schema: &mut Value, place: &str, row: &Row, part: Part, depth: usize) {
        let object = object(schema, place);
        if depth == 0 || !self.is_about(row, &object) {
            return;
        }
        let Some(Value::Object(properties)) = schema.pointer(&format!("{object}/properties")) else { return };
        for name in properties.keys().cloned().collect::<Vec<_>>() {
            let Some(text) = part_with(row.meaning, &name, part) else { continue };
            let key = format!("{object}/properties/{name}");
            put(schema, &key, &text);
            if !self.defined.contains(&key) {
                self.put_below(schema, &key, row, part, depth - 1);
            }
        }
    }

    /// Whether a row names all keys that share the definition: what it says of one of them need not hold for another.
    fn is_about(&self, row: &Row, object: &str) -> bool {
        let Some(users) = self.users.get(object) else { return true };
        let last = row.paths.iter().filter_map(|path| path.last()).map(String::as_str);
        let named: BTreeSet<&str> = last.chain(names(row.meaning)).map(|name| name.trim_end_matches("[]")).collect();
        users.iter().all(|user| named.contains(user.as_str()))
    }
}

/// Adds the definitions in the schema of the key called `name`, without those of keys in it.
fn note_definitions(schema: &Value, name: &str, users: &mut BTreeMap<String, BTreeSet<String>>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                let definition = reference.trim_start_matches('#').to_owned();
                users.entry(definition).or_default().insert(name.to_owned());
            }
            let inner = map.iter().filter(|(keyword, _)| *keyword != "properties");
            inner.for_each(|(_, value)| note_definitions(value, name, users));
        }
        Value::Array(items) => items.iter().for_each(|item| note_definitions(item, name, users)),
        _ => {}
    }
}

/// Gives the key at `place` its meaning, unless it has one.
fn put(root: &mut Value, place: &str, meaning: &str) {
    let Some(Value::Object(key)) = root.pointer_mut(place) else { return };
    // Draft 7 ignores what stands next to a reference.
    if let Some(reference) = key.remove("$ref") {
        let mut to = Map::new();
        to.insert("$ref".to_owned(), reference);
        key.insert("allOf".to_owned(), Value::Array(vec![Value::Object(to)]));
    }
    key.entry("description").or_insert_with(|| Value::from(meaning));
}

/// Whether a path ends in any place with its name.
pub(super) fn is_form(path: &[String]) -> bool {
    path.first().is_some_and(String::is_empty)
}

/// Pointers to the keys that a path of the reference means. `[]` follows the name of a list.
pub(super) fn places(root: &Value, path: &[String]) -> Vec<String> {
    let mut parts = path.iter().skip_while(|part| part.is_empty());
    let Some(first) = parts.next() else { return Vec::new() };
    let starts = if is_form(path) { keys_with_name(root, first) } else { key(root, "", first).into_iter().collect() };
    parts.fold(starts, |places, part| places.iter().filter_map(|place| key(root, place, part)).collect())
}

/// Pointers to all keys of a schema.
pub(super) fn keys(root: &Value) -> Vec<String> {
    let mut found = Vec::new();
    add_keys(root, "", false, &mut found);
    found
}

/// Adds the keys in the value at `place`, whose own keys are names if it is a map of properties or of definitions.
fn add_keys(value: &Value, place: &str, is_map: bool, found: &mut Vec<String>) {
    let mut add = |name: &str, inner: &Value, is_map: bool| add_keys(inner, &format!("{place}/{name}"), is_map, found);
    match value {
        Value::Object(map) if is_map => map.iter().for_each(|(name, inner)| add(name, inner, false)),
        Value::Object(map) => {
            map.iter()
                .for_each(|(word, inner)| add(word, inner, ["properties", "definitions"].contains(&word.as_str())));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(at, inner)| add(&at.to_string(), inner, false)),
        _ => {}
    }
    if !is_map && place.rsplit('/').nth(1) == Some("properties") {
        found.push(place.to_owned());
    }
}

fn keys_with_name(root: &Value, name: &str) -> Vec<String> {
    let plain = name.trim_end_matches("[]");
    let named = keys(root).into_iter().filter(|place| place.rsplit('/').next() == Some(plain));
    named.filter(|place| is_list_if_named(root, place, name)).collect()
}

/// The pointer to a key of the object that the value at `place` is, or whose list or map it is.
fn key(root: &Value, place: &str, name: &str) -> Option<String> {
    let found = format!("{}/properties/{}", object(root, place), name.trim_end_matches("[]"));
    (root.pointer(&found).is_some() && is_list_if_named(root, &found, name)).then_some(found)
}

/// Whether the key at `place` is a list, if `name` says so.
fn is_list_if_named(root: &Value, place: &str, name: &str) -> bool {
    !name.ends_with("[]") || root.pointer(&format!("{}/items", resolved(root, place.to_owned()))).is_some()
}

/// The place to which references and optional values lead from `place`.
fn resolved(root: &Value, mut place: String) -> String {
    loop {
        let schema = root.pointer(&place);
        if let Some(reference) = schema.and_then(|schema| schema.get("$ref")).and_then(Value::as_str) {
            place = reference.trim_start_matches('#').to_owned();
        } else if let Some(either) =
            ["allOf", "anyOf"].iter().find(|key| schema.is_some_and(|schema| schema.get(**key).is_some()))
        {
            place = format!("{place}/{either}/0");
        } else {
            return place;
        }
    }
}

/// The object that the value at `place` is, or whose list or map it is.
fn object(root: &Value, place: &str) -> String {
    let mut place = resolved(root, place.to_owned());
    while let Some(schema) = root.pointer(&place).filter(|schema| schema.get("properties").is_none()) {
        let inner =
            ["items", "additionalProperties"].into_iter().find(|word| schema.get(word).is_some_and(Value::is_object));
        let Some(word) = inner else { break };
        place = resolved(root, format!("{place}/{word}"));
    }
    place
}
