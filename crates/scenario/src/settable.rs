//! Paths that `--set` can change, for completion on a command line.
//!
//! Must not: change anything. The rules of a path are those of [`Edit`](crate::Edit).

use std::collections::BTreeSet;

use crate::document::{Content, Document};
use crate::edits::NAMES;
use crate::manifests::READ;

/// Parts of an object that no simulation reads from `--set`.
const SKIPPED: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The paths of all values in the documents of a scenario, the scenario itself first.
pub fn paths(documents: &[Document]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for document in documents {
        match document.file {
            None => walk(&document.content, "", &mut found),
            Some(_) => walk_objects(&document.content, &mut found),
        }
    }
    found
}

/// Continuations of `start`: the paths that begin so, up to the end of their next step. A whole path ends in `=`.
pub fn continued(paths: &BTreeSet<String>, start: &str) -> BTreeSet<String> {
    let later = paths.range(start.to_owned()..).take_while(|path| path.starts_with(start));
    later.map(|path| format!("{start}{}", next_step(&path[start.len()..], is_open(start)))).collect()
}

/// Whether the last bracket of `text` has no end yet.
fn is_open(text: &str) -> bool {
    text.rfind('[') > text.rfind(']') || (text.contains('[') && !text.contains(']'))
}

/// The part of `rest` up to the end of the step that it begins in, which may be within a bracket.
fn next_step(rest: &str, mut is_open: bool) -> String {
    for (at, character) in rest.char_indices() {
        match character {
            ']' => is_open = false,
            '[' if at > 0 => return rest[..=at].to_owned(),
            '[' => is_open = true,
            '.' if !is_open => return rest[..=at].to_owned(),
            _ => {}
        }
    }
    format!("{rest}=")
}

fn walk_objects(content: &Content, found: &mut BTreeSet<String>) {
    let items = content.get("items").map(Content::items).unwrap_or_default();
    items.iter().for_each(|item| walk_objects(item, found));
    let text = |key: &str| content.get(key).and_then(Content::as_text);
    let metadata =
        |key: &str| content.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Content::as_text);
    let (Some(kind), Some(name), Content::Map(entries)) = (text("kind"), metadata("name"), content) else { return };
    if !READ.contains(&kind.as_str()) {
        return;
    }
    let namespace = metadata("namespace").map_or_else(String::new, |namespace| format!("{namespace}/"));
    for (key, value) in entries.iter().filter(|(key, _)| !SKIPPED.contains(&key.as_str())) {
        walk(value, &format!("{kind}[{namespace}{name}].{key}"), found);
    }
}

fn walk(content: &Content, path: &str, found: &mut BTreeSet<String>) {
    match content {
        Content::Map(entries) => {
            for (key, value) in entries {
                let step = match (key.contains(['.', '[', ']']), path.is_empty()) {
                    (true, _) => format!("{path}[{key}]"),
                    (false, true) => key.clone(),
                    (false, false) => format!("{path}.{key}"),
                };
                walk(value, &step, found);
            }
        }
        Content::List(items) if items.iter().any(|item| matches!(item, Content::Map(_))) => {
            for (number, item) in items.iter().enumerate() {
                let name = NAMES.iter().find_map(|key| item.get(key)?.as_text());
                walk(item, &format!("{path}[{}]", name.unwrap_or_else(|| number.to_string())), found);
            }
        }
        Content::List(_) | Content::Scalar(_) => {
            found.insert(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{continued, paths};
    use crate::document::{Content, Document};
    use crate::tree::{self, Variables};
    use crate::{Limits, Source};

    fn document(file: Option<&str>, text: &str) -> Document {
        let source = Source::new("test.yaml".to_owned(), text.to_owned());
        let nodes = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
        Document { file: file.map(str::to_owned), content: Content::from_node(&nodes[0]) }
    }

    fn known() -> BTreeSet<String> {
        paths(&[
            document(None, "name: x\nload: [{workload: a/b, requests: {constant: 5}}]\nmanifests: [m.yaml]\n"),
            document(
                Some("m.yaml"),
                "kind: List\nitems:\n- kind: NodePool\n  metadata: {name: batch}\n  spec: {limits: {cpu: 5, nvidia.com/gpu: 1}}\n\
                 - {kind: Event, metadata: {name: e}, reason: x}\n",
            ),
        ])
    }

    #[test]
    fn paths_of_scenario_and_manifests_are_found() {
        let known: Vec<String> = known().into_iter().collect();
        let wanted = [
            "NodePool[batch].spec.limits.cpu",
            "NodePool[batch].spec.limits[nvidia.com/gpu]",
            "load[a/b].requests.constant",
            "load[a/b].workload",
            "manifests",
            "name",
        ];
        assert_eq!(known, wanted);
    }

    #[test]
    fn completion_goes_one_step_further() {
        let next = |start: &str| continued(&known(), start).into_iter().collect::<Vec<_>>();
        assert_eq!(next("N"), ["NodePool["]);
        assert_eq!(next("NodePool["), ["NodePool[batch]."]);
        assert_eq!(
            next("NodePool[batch].spec.limits"),
            ["NodePool[batch].spec.limits.", "NodePool[batch].spec.limits[nvidia.com/gpu]="]
        );
        assert_eq!(next("NodePool[batch].spec.limits[nv"), ["NodePool[batch].spec.limits[nvidia.com/gpu]="]);
        assert_eq!(next("load[a/b].requests."), ["load[a/b].requests.constant="]);
        assert_eq!(next("none"), Vec::<String>::new());
    }
}
