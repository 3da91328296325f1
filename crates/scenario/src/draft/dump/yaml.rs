//! Trees as YAML text, in the form that `kubectl` prints.
//!
//! Plain words stay as the file had them, so that `1.20` stays a version and `100m` a quantity.

use crate::tree::{Node, NodeKind};
pub(super) use nodecast_model::text::yaml::{quoted, word};

/// Appends a document.
pub(super) fn document(node: &Node<'_>, text: &mut String) {
    if !text.is_empty() {
        text.push_str("---\n");
    }
    block(node, 0, text);
}

fn block(node: &Node<'_>, indent: usize, text: &mut String) {
    match &node.kind {
        NodeKind::Map(entries) => {
            for entry in entries.iter() {
                text.extend(std::iter::repeat_n(' ', indent));
                text.push_str(&word(&entry.key));
                text.push(':');
                value(&entry.value, indent, text);
            }
        }
        NodeKind::Seq(items) => {
            for item in items {
                text.extend(std::iter::repeat_n(' ', indent));
                text.push('-');
                if is_nested(item) {
                    // The first key of an item stands beside the dash.
                    let mut inner = String::new();
                    block(item, indent + 2, &mut inner);
                    text.push(' ');
                    text.push_str(inner.trim_start_matches(' '));
                } else {
                    value(item, indent, text);
                }
            }
        }
        NodeKind::Null | NodeKind::Scalar { .. } => value(node, indent, text),
    }
}

/// What stands behind a key or a dash.
fn value(node: &Node<'_>, indent: usize, text: &mut String) {
    match &node.kind {
        NodeKind::Null => text.push('\n'),
        NodeKind::Scalar { text: this_text, plain } => {
            text.push(' ');
            let plain = *plain && !this_text.is_empty() && fits_a_line(this_text);
            text.push_str(&if plain { this_text.to_string() } else { word(this_text) });
            text.push('\n');
        }
        NodeKind::Map(entries) if entries.is_empty() => text.push_str(" {}\n"),
        NodeKind::Seq(items) if items.is_empty() => text.push_str(" []\n"),
        NodeKind::Map(_) => {
            text.push('\n');
            block(node, indent + 2, text);
        }
        // kubectl does not indent lists.
        NodeKind::Seq(_) => {
            text.push('\n');
            block(node, indent, text);
        }
    }
}

fn is_nested(node: &Node<'_>) -> bool {
    match &node.kind {
        NodeKind::Map(entries) => !entries.is_empty(),
        NodeKind::Seq(items) => !items.is_empty(),
        NodeKind::Null | NodeKind::Scalar { .. } => false,
    }
}

/// Whether a plain word stays what it is when it stands alone on a line.
fn fits_a_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
        && text.trim() == text
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.starts_with(|c: char| "-?:,[]{}#&*!|>'\"%@`".contains(c) && !is_number(text))
}

fn is_number(text: &str) -> bool {
    text.starts_with('-') && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::document;
    use crate::tree::{Entry, Location, Node, NodeKind, Variables, parse};
    use crate::{Limits, Source};

    const NOWHERE: Location = Location::NONE;

    fn rewritten(text: &str) -> String {
        let source = Source::new("a.yaml", text);
        let mut written = String::new();
        for node in parse(&source, &Variables::new(), &Limits::default()).unwrap() {
            document(&node, &mut written);
        }
        written
    }

    #[test]
    fn words_stay_as_they_were_written() {
        let text = "a: 1.20\nb: \"1.20\"\nc: []\nd:\n- x: 100m\n  z: {}\n- -5\ne:\nf: \"a: b #c\"\ng: http://x:80/\n\"yes\": \"yes\"\n";
        assert_eq!(rewritten(text), text);
    }

    #[test]
    fn texts_of_several_lines_are_kept() {
        assert_eq!(rewritten("a: |\n  one\n   two\nb: >-\n  c\n  d\n"), "a: \"one\\n two\\n\"\nb: \"c d\"\n");
    }

    /// The same tree with every place forgotten, and quotes, which may be added or dropped.
    fn meant<'s>(node: &Node<'s>) -> Node<'s> {
        let kind = match &node.kind {
            NodeKind::Scalar { text, .. } => NodeKind::Scalar { text: text.clone(), plain: true },
            NodeKind::Seq(items) => NodeKind::Seq(items.iter().map(meant).collect()),
            NodeKind::Map(entries) => NodeKind::Map(
                entries.iter().map(|entry| Entry::new(entry.key.clone(), NOWHERE, meant(&entry.value))).collect(),
            ),
            NodeKind::Null => NodeKind::Null,
        };
        Node { kind, at: NOWHERE }
    }

    #[test]
    fn a_quoted_merge_key_stays_a_key() {
        assert_eq!(rewritten("\"<<\":\n- 1\n"), "\"<<\":\n- 1\n");
    }

    proptest! {
        #[test]
        fn any_json_reads_back_as_it_was(text in "[ -~\u{e9}\u{2028}\n\t\u{85}\u{7f}]{0,12}", key in "[ -~]{1,8}", number in any::<i32>()) {
            let value = serde_json::json!({&key: [text, number, null, {"k": text, "l": [[text]]}, [], {}], "z": {"a": text}});
            let node = Node::from_json(&value, &Limits::default()).unwrap();
            let mut written = String::new();
            document(&node, &mut written);
            let source = Source::new("a.yaml", written);
            let read = parse(&source, &Variables::new(), &Limits::default()).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(meant(&read[0]), meant(&node), "{}", &source.text);
        }
    }
}
