//! Dumps of a cluster as kubectl prints them: objects, lists, several of them one after the other, watches
//! (`--watch --output-watch-events`), and `kubectl cluster-info dump`, which has logs of containers between its lists.
//!
//! Must not: read what an object says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::error::InputError;
use super::source::{Limits, Source};
use super::tree::{Node, NodeKind, Variables, parse_part};

/// Start and end of a container's log.
///
/// Source: kubectl v1.36 `pkg/cmd/clusterinfo/clusterinfo_dump.go`, `Run`.
const LOG: [&str; 2] = ["==== START logs for container ", "==== END logs for container "];
/// Types of watch events that have an object.
const CHANGES: [&str; 3] = ["ADDED", "MODIFIED", "DELETED"];
/// Types of watch events that say nothing of an object.
const NOTICES: [&str; 2] = ["BOOKMARK", "ERROR"];

/// Reads the objects of a dump. Of an object that occurs more than once the last state counts; one that a watch saw deleted is left out.
///
/// # Errors
/// If the text is neither YAML nor JSON, or a limit is passed.
pub fn parse<'s>(source: &'s Source, variables: &Variables, limits: &Limits) -> Result<Vec<Node<'s>>, InputError> {
    let mut documents = Vec::new();
    for part in parts_without_logs(&source.text) {
        documents.extend(parse_part(source, part, variables, limits)?);
    }
    let is_watch = documents.iter().any(|document| change(document).is_some());
    Ok(if documents.len() > 1 || is_watch { latest(documents) } else { documents })
}

/// The text with logs of containers blanked; everything else stays where it is.
pub fn without_logs(text: &str) -> Cow<'_, str> {
    let parts = parts_without_logs(text);
    if parts.len() == 1 {
        return Cow::Borrowed(text);
    }
    let mut blanked = String::with_capacity(text.len());
    for part in parts {
        blanked.extend(text[blanked.len()..part.start].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        blanked.push_str(&text[part]);
    }
    Cow::Owned(blanked)
}

/// The parts of `text` outside logs of containers.
fn parts_without_logs(text: &str) -> Vec<Range<usize>> {
    let [start, end] = LOG;
    if !text.contains(start) {
        return std::iter::once(0..text.len()).collect();
    }
    let (mut parts, mut part, mut at, mut in_log) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if in_log && line.starts_with(end) {
            (in_log, part) = (false, next);
        } else if !in_log && line.starts_with(start) {
            parts.push(part..at);
            in_log = true;
        }
        at = next;
    }
    parts.push(if in_log { at..at } else { part..at });
    parts
}

/// The type of a watch event; `None` for anything else.
fn change<'n>(document: &'n Node<'_>) -> Option<&'n str> {
    let kind = document.get("type").and_then(Node::as_text)?;
    let known = CHANGES.contains(&kind) || NOTICES.contains(&kind);
    (known && document.get("object").is_some()).then_some(kind)
}

/// The last state of each object.
fn latest(documents: Vec<Node<'_>>) -> Vec<Node<'_>> {
    let states: Vec<(Node<'_>, bool)> = documents.into_iter().filter_map(state).collect();
    let mut keys = Vec::new();
    states.iter().for_each(|(document, is_gone)| note_keys(document, "", *is_gone, &mut keys));
    let mut last: BTreeMap<Key, usize> = BTreeMap::new();
    for (position, (key, _)) in keys.iter().enumerate() {
        last.extend(key.clone().map(|key| (key, position)));
    }
    let is_last = |position: usize, key: &Option<Key>| key.as_ref().is_none_or(|key| last.get(key) == Some(&position));
    let kept = keys.iter().enumerate().map(|(position, (key, is_gone))| is_last(position, key) && !is_gone);
    let mut kept = kept.collect::<Vec<bool>>().into_iter();
    states.into_iter().filter_map(|(document, _)| retained(document, &mut kept)).collect()
}

/// The object of a watch event, with whether it is gone; any other document as it is. `None` for an event without an object.
fn state(document: Node<'_>) -> Option<(Node<'_>, bool)> {
    let (is_notice, is_gone) = match change(&document) {
        None => return Some((document, false)),
        Some(kind) => (NOTICES.contains(&kind), kind == "DELETED"),
    };
    let NodeKind::Map(entries) = document.kind else { return None };
    let object = entries.into_iter().find(|entry| entry.key == "object")?.value;
    (!is_notice).then_some((object, is_gone))
}

/// Group, kind, namespace and name.
type Key = [String; 4];

/// Adds the key of each object in a document, those in lists too; `None` for one without a name.
fn note_keys(document: &Node<'_>, of_list: &str, is_gone: bool, keys: &mut Vec<(Option<Key>, bool)>) {
    let text = |node: Option<&Node<'_>>| node.and_then(Node::as_text).unwrap_or_default().to_owned();
    let own_kind = text(document.get("kind"));
    if let Some(items) = items_of(document) {
        let kind = own_kind.strip_suffix("List").unwrap_or_default();
        return items.iter().for_each(|item| note_keys(item, kind, is_gone, keys));
    }
    let kind = if own_kind.is_empty() { of_list.to_owned() } else { own_kind };
    let metadata = |key: &str| text(document.get("metadata").and_then(|metadata| metadata.get(key)));
    let version = text(document.get("apiVersion"));
    let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let (namespace, name) = (metadata("namespace"), metadata("name"));
    keys.push(((!name.is_empty()).then_some([group, kind, namespace, name]), is_gone));
}

/// The items of a list of objects.
fn items_of<'n, 's>(document: &'n Node<'s>) -> Option<&'n [Node<'s>]> {
    let is_list = document.get("kind").and_then(Node::as_text).is_some_and(|kind| kind.ends_with("List"));
    document.get("items").filter(|items| is_list && matches!(items.kind, NodeKind::Seq(_))).map(Node::items)
}

/// A document with the objects that are kept, in the order of [`note_keys`].
fn retained<'s>(mut document: Node<'s>, kept: &mut impl Iterator<Item = bool>) -> Option<Node<'s>> {
    if items_of(&document).is_none() {
        return kept.next().unwrap_or(true).then_some(document);
    }
    if let NodeKind::Map(entries) = &mut document.kind
        && let Some(list) = entries.iter_mut().find(|entry| entry.key == "items")
        && let NodeKind::Seq(items) = &mut list.value.kind
    {
        *items = std::mem::take(items).into_iter().filter_map(|item| retained(item, kept)).collect();
    }
    Some(document)
}

#[cfg(test)]
mod tests {
    use super::{parse, without_logs};
    use crate::text::tree::{Node, Variables};
    use crate::text::{Limits, Source};

    fn names(text: &str) -> Vec<String> {
        let source = Source::new("dump.json", text);
        let documents = parse(&source, &Variables::new(), &Limits::default()).unwrap();
        let name = |object: &Node<'_>| {
            let text = |node: Option<&Node<'_>>| node.and_then(Node::as_text).unwrap_or_default().to_owned();
            text(object.get("metadata").and_then(|metadata| metadata.get("name"))) + &text(object.get("state"))
        };
        let objects = documents.iter().flat_map(|document| match document.get("items") {
            Some(items) => items.items().iter().collect::<Vec<_>>(),
            None => vec![document],
        });
        objects.map(name).collect()
    }

    fn object(name: &str, state: u8) -> String {
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"{name}\"}}, \"state\": {state}}}"
        )
    }

    #[test]
    fn objects_of_a_stream_count_as_last_seen() {
        let text = [object("a", 1), object("b", 1), object("a", 2)].join("\n");
        assert_eq!(names(&text), ["b1", "a2"]);
        let list = format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}]}}", object("b", 2));
        assert_eq!(names(&format!("{text}{list}")), ["a2", "b2"]);
    }

    #[test]
    fn deleted_objects_of_a_watch_are_gone() {
        let event = |kind: &str, object: String| format!("{{\"type\": \"{kind}\", \"object\": {object}}}\n");
        let watch = [event("ADDED", object("a", 1)), event("MODIFIED", object("a", 2)), event("ADDED", object("b", 1))];
        assert_eq!(names(&watch.concat()), ["a2", "b1"]);
        assert_eq!(names(&(watch.concat() + &event("DELETED", object("a", 2)))), ["b1"]);
        assert_eq!(names(&event("ADDED", object("c", 7))), ["c7"]);
        assert_eq!(names(&(event("DELETED", object("a", 2)) + &watch[0])), ["a1"]);
    }

    #[test]
    fn logs_between_lists_are_passed_over() {
        let log = "==== START logs for container c of pod x/p ====\n{\"message\": \"hm\"}\n: [ no yaml\n==== END logs for container c of pod x/p ====\n";
        let text =
            [object("a", 1), "\n".to_owned(), log.to_owned(), object("b", 1), "\n".to_owned(), log.to_owned()].concat();
        assert_eq!(names(&text), ["a1", "b1"]);
        let blanked = without_logs(&text);
        assert_eq!((blanked.lines().count(), blanked.find("\"b\"")), (text.lines().count(), text.find("\"b\"")));
        assert_eq!(names("kind: Pod\nmetadata: {name: y}\n"), ["y"]);
    }
}
