//! Patches: a change of documents as a unified diff of their file, which `git apply` and `patch` take.
//!
//! Only the changed values are replaced, so that comments and layout of the file stay.
//!
//! Must not read or write files.

use std::ops::Range;

use super::document::Content;
use super::source::{Limits, Source};
use super::tree::{self, Entry, Node, NodeKind, Variables};

/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// A replacement of a range of bytes.
type Replacement = (Range<usize>, String);

/// The unified diff of the file `name` whose documents become `after`; `None` if nothing changes, or the text does not show where.
pub fn patch(name: &str, text: &str, before: &[&Content], after: &[&Content]) -> Option<String> {
    let source = Source::new(name.to_owned(), text.to_owned());
    let nodes = tree::parse(&source, &Variables::new(), &Limits::default()).ok()?;
    // A file that several policies name is read for each.
    let count = nodes.len();
    if count == 0 || !before.len().is_multiple_of(count) || before.len() != after.len() {
        return None;
    }
    let (before, after) = (&before[..count], &after[..count]);
    let mut all = Vec::new();
    for ((node, before), after) in nodes.iter().zip(before).zip(after) {
        replace(text, node, (before, after), &mut all)?;
    }
    all.sort_by_key(|(range, _)| range.start);
    let is_clear = all.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start);
    let changed = changed(text, &all);
    let says = |text: String| {
        let source = Source::new(name.to_owned(), text);
        let nodes = tree::parse(&source, &Variables::new(), &Limits::default()).ok()?;
        Some(nodes.iter().map(Content::from_node).collect::<Vec<Content>>())
    };
    // What cannot be read again as it is to be is no patch.
    let is_right =
        is_clear && says(changed).is_some_and(|say| say.iter().zip(after).all(|(say, other)| same(say, other)));
    (is_right && !all.is_empty()).then(|| unified(name, text, &all))
}

/// Whether two values are the same but for the order of keys.
fn same(one: &Content, other: &Content) -> bool {
    match (one, other) {
        (Content::Map(one), Content::Map(other)) => {
            let find = |key: &String| other.iter().find(|(this_key, _)| this_key == key);
            one.len() == other.len()
                && one.iter().all(|(key, item)| find(key).is_some_and(|(_, value)| same(item, value)))
        }
        (Content::List(one), Content::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other,
    }
}

/// The text with all replacements, which are in order.
fn changed(text: &str, all: &[Replacement]) -> String {
    let mut changed = String::new();
    let mut from = 0;
    for (range, new) in all {
        changed.push_str(text.get(from..range.start).unwrap_or_default());
        changed.push_str(new);
        from = range.end;
    }
    changed + text.get(from..).unwrap_or_default()
}

/// Finds the text of each value that differs, below a node that is a map or a list in both.
fn replace(text: &str, node: &Node<'_>, both: (&Content, &Content), all: &mut Vec<Replacement>) -> Option<()> {
    match (&node.kind, both) {
        (_, (before, after)) if before == after => Some(()),
        (NodeKind::Map(entries), (Content::Map(before), Content::Map(after))) => {
            for (key, value) in after {
                let old = before.iter().find(|(this_key, _)| this_key == key).map(|(_, old)| old);
                match (entries.iter().find(|entry| entry.key == *key), old) {
                    (Some(entry), Some(old)) => replace_value(text, entry, (old, value), all)?,
                    (None, None) => all.push(insertion(text, entries.first()?, key, value)?),
                    _ => return None,
                }
            }
            before.iter().all(|(key, _)| after.iter().any(|(this_key, _)| this_key == key)).then_some(())
        }
        (NodeKind::Seq(nodes), (Content::List(before), Content::List(after))) => {
            for ((node, before), after) in nodes.iter().zip(before).zip(after) {
                match node.kind {
                    NodeKind::Scalar { .. } if before != after => all.push((span(text, node)?, after.on_a_line())),
                    _ => replace(text, node, (before, after), all)?,
                }
            }
            (nodes.len() == before.len() && before.len() == after.len()).then_some(())
        }
        _ => None,
    }
}

/// Replaces the value of an entry, or parts of it.
fn replace_value(text: &str, entry: &Entry<'_>, both: (&Content, &Content), all: &mut Vec<Replacement>) -> Option<()> {
    let known = all.len();
    if replace(text, &entry.value, both, all).is_some() {
        return Some(());
    }
    all.truncate(known);
    let (at, length) = entry.key_at.range()?;
    let colon = at + length + text.get(at + length..)?.find(':')? + 1;
    let end = match entry.value.kind {
        NodeKind::Null if entry.value.at.range().is_none_or(|(_, length)| length == 0) => colon,
        _ => span(text, &entry.value)?.end,
    };
    all.push((colon..end.max(colon), format!(" {}", both.1.on_a_line())));
    Some(())
}

/// A new entry before the first one of a map, in the style of the map.
fn insertion(text: &str, first: &Entry<'_>, key: &str, value: &Content) -> Option<Replacement> {
    let (at, _) = first.key_at.range()?;
    let entry = Content::Map(vec![(key.to_owned(), value.clone())]).on_a_line();
    let entry = entry.strip_prefix("{ ")?.strip_suffix(" }")?;
    let line = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let before = text.get(line..at)?;
    // In braces, or on lines of its own.
    let is_block = before.chars().all(|c| c == ' ' || c == '-');
    let indent = " ".repeat(before.chars().count());
    Some((at..at, if is_block { format!("{entry}\n{indent}") } else { format!("{entry}, ") }))
}

/// The range of a value: to the end of its last scalar, and of the bracket that closes it.
fn span(text: &str, node: &Node<'_>) -> Option<Range<usize>> {
    let (at, length) = node.at.range()?;
    let last = match &node.kind {
        NodeKind::Null | NodeKind::Scalar { .. } => return Some(at..at + length),
        NodeKind::Seq(items) => items.last(),
        NodeKind::Map(entries) => entries.last().map(|entry| &entry.value),
    };
    let inner = match last {
        Some(last) => span(text, last)?.end,
        None => at + 1,
    };
    let closing = match text.as_bytes().get(at)? {
        b'[' => ']',
        b'{' => '}',
        _ => return Some(at..inner),
    };
    Some(at..inner + text.get(inner..)?.find(closing)? + 1)
}

/// The replacements as hunks of whole lines.
fn unified(name: &str, text: &str, all: &[Replacement]) -> String {
    let mut starts = vec![0];
    starts.extend(text.char_indices().filter(|(_, c)| *c == '\n').map(|(at, _)| at + 1));
    starts.retain(|start| *start < text.len());
    let line_of = |at: usize| starts.partition_point(|start| *start <= at).saturating_sub(1);
    let end_of = |line: usize| starts.get(line + 1).copied().unwrap_or(text.len());
    // Replacements on neighbouring lines are one hunk.
    let mut hunks: Vec<(Range<usize>, Vec<&Replacement>)> = Vec::new();
    for item in all {
        let lines = line_of(item.0.start)..line_of(item.0.end.saturating_sub(1).max(item.0.start)) + 1;
        match hunks.last_mut().filter(|(known, _)| lines.start <= known.end + 2 * CONTEXT) {
            Some((known, replacements)) => {
                known.end = known.end.max(lines.end);
                replacements.push(item);
            }
            None => hunks.push((lines, vec![item])),
        }
    }
    let mut diff = format!("--- a/{name}\n+++ b/{name}\n");
    let mut shift = 0_isize;
    for (lines, replacements) in hunks {
        let (from, until) = (lines.start.saturating_sub(CONTEXT), (lines.end + CONTEXT).min(starts.len()));
        let offset = starts[lines.start];
        let old = &text[offset..end_of(lines.end - 1)];
        let moved: Vec<Replacement> =
            replacements.iter().map(|(range, new)| (range.start - offset..range.end - offset, new.clone())).collect();
        let new = changed(old, &moved);
        let around = |lines: Range<usize>| lines.map(|line| text[starts[line]..end_of(line)].to_owned());
        let count = |text: &str| text.split_inclusive('\n').count();
        let context = lines.start - from + until - lines.end;
        let (removed, added) = (count(old) + context, count(&new) + context);
        let begin = (from as isize + 1 + shift).max(1);
        diff.push_str(&format!("@@ -{},{removed} +{begin},{added} @@\n", from + 1));
        let mut put = |sign: char, line: &str| {
            diff.push(sign);
            diff.push_str(line);
            if !line.ends_with('\n') {
                diff.push_str("\n\\ No newline at end of file\n");
            }
        };
        around(from..lines.start).for_each(|line| put(' ', &line));
        old.split_inclusive('\n').for_each(|line| put('-', line));
        new.split_inclusive('\n').for_each(|line| put('+', line));
        around(lines.end..until).for_each(|line| put(' ', &line));
        shift += added as isize - removed as isize;
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::patch;
    use crate::document::Content;
    use crate::source::{Limits, Source};
    use crate::tree::{self, Variables};

    const FILE: &str = "# Kept.\nkind: A\nspec:\n  nodes: \"0\"   # why\n  list:\n  - a: 1\n  - b\n  map: { x: 1 }\n---\nkind: B\nend: 1\n";

    fn contents(text: &str) -> Vec<Content> {
        let source = Source::new("f", text.to_owned());
        tree::parse(&source, &Variables::new(), &Limits::default()).unwrap().iter().map(Content::from_node).collect()
    }

    fn patched(after: &str) -> Option<String> {
        let (before, after) = (contents(FILE), contents(after));
        patch("f.yaml", FILE, &before.iter().collect::<Vec<_>>(), &after.iter().collect::<Vec<_>>())
    }

    #[test]
    fn values_change_and_comments_stay() {
        let diff = patched(&FILE.replace("\"0\"", "\"1\"").replace("end: 1", "end: null")).unwrap();
        assert!(diff.contains("-  nodes: \"0\"   # why\n") && diff.contains("+  nodes: \"1\"   # why\n"), "{diff}");
        assert!(diff.contains("-end: 1\n") && diff.contains("+end: null\n"), "{diff}");
    }

    #[test]
    fn keys_are_added_and_lists_are_replaced() {
        let diff = patched(&FILE.replace("{ x: 1 }", "{ x: 1, z: 2 }").replace("  - b\n", "  - b\n  - c\n")).unwrap();
        assert!(diff.contains("+  map: { z: 2, x: 1 }\n"), "{diff}");
        assert!(diff.contains("-  - b\n") && diff.contains("+  list: ["), "{diff}");
    }

    #[test]
    fn unchanged_documents_have_no_patch() {
        assert_eq!(patched(FILE), None);
    }
}
