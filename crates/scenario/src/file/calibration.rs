//! `calibration`: values that were fitted to a cluster take the place of defaults, and never of what the scenario states.
//!
//! The file is laid under the scenario before anything of either is read, so that its values are read and checked as the scenario's
//! own would be, and errors show the line of the file where they stand.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Reader, ScenarioError};
use crate::definition::Calibrated;
use crate::error::listed;
use crate::source::{Limits, Source, load};
use crate::tree::{self, Entry, Node, NodeKind, Variables};

/// The key of the scenario, and of the file the one that says how good each value is.
pub(crate) const KEY: &str = "calibration";
const GRADES: &str = "grades";
/// What can be calibrated: never policies, requests or limits, which are facts.
const CALIBRATED: [&str; 3] = ["ec2", "images", "workloads"];
/// What a list's items are told apart by.
const NAME: &str = "name";
/// What answers rest on that nobody knows without looking: the values that `nodecast calibrate` fits.
pub(crate) const FITTED: [&str; 6] =
    ["ec2.launch_latency", "ec2.spot.interruptions", "ec2.failures", "images.sizes", "images.pull_rate", "workloads"];

/// The paths of all values that the scenario at `path` states itself.
///
/// # Errors
/// If it cannot be read, or is no document of YAML.
pub(crate) fn stated(path: &Path, limits: &Limits) -> Result<BTreeSet<String>, ScenarioError> {
    let source = load(path, path.display().to_string(), limits)?;
    let documents = tree::parse(&source, &Variables::new(), limits)?;
    let mut paths = Vec::new();
    documents.iter().for_each(|root| note(root, "", &mut paths));
    Ok(paths.into_iter().collect())
}

/// Lays the calibration of `source`, which the scenario calls `name` and whose text is appended to its own at `offset`, under the
/// scenario's `root`.
///
/// # Errors
/// If it holds anything else than what can be calibrated.
pub(super) fn lay_under<'s>(
    root: &mut Node<'s>,
    mut documents: Vec<Node<'s>>,
    (name, source, offset): (&str, &'s Source, usize),
) -> Result<Calibrated, ScenarioError> {
    let reader = Reader::new(Some(source));
    let mut calibration = match documents.len() {
        1 => documents.remove(0),
        _ => {
            return Err(ScenarioError::new(format!("`{}` is not one YAML document", source.name))
                .help("write it with `nodecast calibrate`"));
        }
    };
    let stated = FITTED.iter().filter(|path| has(root, path)).map(|path| (*path).to_owned()).collect();
    let grades = grades(&reader, &calibration)?;
    let NodeKind::Map(entries) = &mut calibration.kind else {
        return Err(reader
            .error(calibration.at, "a calibration is a map of keys")
            .because("not a map")
            .help("write it with `nodecast calibrate`"));
    };
    entries.retain(|entry| entry.key != GRADES);
    for entry in entries.iter() {
        if !CALIBRATED.contains(&&*entry.key) {
            return Err(reader
                .error(entry.key_at, format!("`{}` is not calibrated", entry.key))
                .because("not a value that is fitted")
                .help(format!("state it in the scenario; a calibration holds {}", listed(CALIBRATED))));
        }
    }
    relocate(&mut calibration, offset);
    let mut laid = Vec::new();
    merge(root, calibration, "", &mut laid);
    let (shrunk, measured) = laid.into_iter().partition(|path| is_shrunk(&grades, path));
    let mut calibrated = Calibrated { file: name.to_owned(), measured, shrunk, stated, assumed: Vec::new() };
    let assumed = FITTED.iter().filter(|path| !has(root, path)).map(|path| (*path).to_owned());
    calibrated.assumed.extend(assumed);
    Ok(calibrated)
}

/// Whether there is anything at a path of keys.
fn has(root: &Node<'_>, path: &str) -> bool {
    path.split('.').try_fold(root, |node, key| node.get(key)).is_some_and(|node| node.kind != NodeKind::Null)
}

/// The paths that were drawn towards the default.
fn grades(reader: &Reader<'_>, calibration: &Node<'_>) -> Result<Vec<String>, ScenarioError> {
    let Some(grades) = calibration.get(GRADES) else { return Ok(Vec::new()) };
    let mut shrunk = Vec::new();
    for entry in reader.entries(grades, GRADES)? {
        if reader.choice(&entry.value, "grade", &[("measured", false), ("shrunk", true)])? {
            shrunk.push(entry.key.to_string());
        }
    }
    Ok(shrunk)
}

fn is_shrunk(grades: &[String], path: &str) -> bool {
    grades
        .iter()
        .any(|grade| path == grade || path.strip_prefix(grade.as_str()).is_some_and(|rest| rest.starts_with('.')))
}

/// Puts into `node` what it lacks of `other`; `laid` takes the paths of the values.
fn merge<'s>(node: &mut Node<'s>, other: Node<'s>, path: &str, laid: &mut Vec<String>) {
    match (&mut node.kind, other.kind) {
        (NodeKind::Map(kind), NodeKind::Map(entries)) => {
            for entry in entries {
                let below = if path.is_empty() { entry.key.to_string() } else { format!("{path}.{}", entry.key) };
                match kind.iter_mut().find(|known| known.key == entry.key) {
                    Some(known) => merge(&mut known.value, entry.value, &below, laid),
                    None => add(kind, entry, &below, laid),
                }
            }
        }
        (NodeKind::Seq(kind), NodeKind::Seq(items)) => {
            for item in items {
                let below = format!("{path}{}", item_name(&item));
                let name = item.get(NAME).and_then(Node::as_text).map(str::to_owned);
                let known = kind.iter_mut().find(|known| same_name(known, name.as_deref()));
                match known {
                    Some(known) => merge(known, item, &below, laid),
                    None => {
                        note(&item, &below, laid);
                        kind.push(item);
                    }
                }
            }
        }
        // Nothing under a key is as good as no key.
        (NodeKind::Null, kind) => {
            let other = Node { kind, at: other.at };
            note(&other, path, laid);
            *node = other;
        }
        // The scenario says it in its own way.
        _ => {}
    }
}

fn add<'s>(entries: &mut Vec<Entry<'s>>, entry: Entry<'s>, path: &str, laid: &mut Vec<String>) {
    note(&entry.value, path, laid);
    entries.push(entry);
}

/// A workload without a namespace is in `default`.
fn whole(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("default/{name}") }
}

fn same_name(node: &Node<'_>, name: Option<&str>) -> bool {
    match (node.get(NAME).and_then(Node::as_text), name) {
        (Some(text), Some(name)) => whole(text) == whole(name),
        _ => false,
    }
}

fn item_name(item: &Node<'_>) -> String {
    item.get(NAME).and_then(Node::as_text).map_or_else(String::new, |name| format!("[{}]", whole(name)))
}

/// The paths of the values below `node`.
fn note(node: &Node<'_>, path: &str, laid: &mut Vec<String>) {
    match &node.kind {
        NodeKind::Map(entries) => {
            let named = entries.iter().filter(|entry| entry.key != NAME || !path.ends_with(']'));
            named.for_each(|entry| {
                let below = if path.is_empty() { entry.key.to_string() } else { format!("{path}.{}", entry.key) };
                note(&entry.value, &below, laid);
            });
        }
        NodeKind::Seq(items) => {
            items.iter().for_each(|item| note(item, &format!("{path}{}", item_name(item)), laid));
        }
        NodeKind::Null => {}
        NodeKind::Scalar { .. } => laid.push(path.to_owned()),
    }
}

/// Gives everything its place behind the scenario's text.
fn relocate(node: &mut Node<'_>, to: usize) {
    node.at = node.at.moved(0, to);
    match &mut node.kind {
        NodeKind::Null | NodeKind::Scalar { .. } => {}
        NodeKind::Seq(items) => items.iter_mut().for_each(|item| relocate(item, to)),
        NodeKind::Map(entries) => {
            for entry in entries.iter_mut() {
                entry.key_at = entry.key_at.moved(0, to);
                relocate(&mut entry.value, to);
            }
        }
    }
}
