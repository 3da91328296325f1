//! Documents of a scenario as they are after edits, to be shown and written again: what an edit changes in which object, and the
//! whole as YAML.
//!
//! Scalars keep the form in which they were written, so that what is written means what was read; comments are lost.

use super::tree::{Entry, Node, NodeKind};
use nodecast_model::text::yaml::{is_word, quoted, word};

/// Stands for a file in documents of objects that `--set` adds.
pub const ADDED: &str = "--set";

/// A document of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// The file, as the scenario names it, or [`ADDED`]; nothing for the scenario itself.
    pub file: Option<String>,
    /// What it holds.
    pub content: Content,
}

/// The documents after a change of the same scenario, each with what it was before; nothing for an object that the change adds.
pub fn paired<'d>(
    before: &'d [Document],
    after: &'d [Document],
) -> impl Iterator<Item = (Option<&'d Document>, &'d Document)> {
    let is_added = |document: &&Document| document.file.as_deref() == Some(ADDED);
    let mut of_files = before.iter().filter(move |item| !is_added(item));
    after.iter().map(move |document| {
        let same =
            || before.iter().filter(is_added).find(|one| one.content.object_name() == document.content.object_name());
        (if is_added(&document) { same() } else { of_files.next() }, document)
    })
}

/// A value of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A scalar as YAML writes it, `null` too.
    Scalar(String),
    /// A list.
    List(Vec<Content>),
    /// A map, in the order written.
    Map(Vec<(String, Content)>),
}

/// A value that differs between two documents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The place, as `spec.disruption.consolidateAfter`.
    pub path: String,
    /// What stands there in the first, on one line; `None` for nothing.
    pub before: Option<String>,
    /// What stands there in the second; `None` for nothing.
    pub after: Option<String>,
}

/// Width up to which a map or list is written on one line.
const LINE: usize = 110;

impl Content {
    pub(super) fn from_node(node: &Node<'_>) -> Self {
        match &node.kind {
            NodeKind::Null => Self::Scalar("null".to_owned()),
            NodeKind::Scalar { text, plain } if is_safe(text) && (*plain || is_word(text)) => {
                Self::Scalar(text.to_string())
            }
            NodeKind::Scalar { text, .. } => Self::text(text),
            NodeKind::Seq(items) => Self::List(items.iter().map(Self::from_node).collect()),
            NodeKind::Map(entries) => {
                let entry = |entry: &Entry<'_>| (entry.key.to_string(), Self::from_node(&entry.value));
                Self::Map(entries.iter().map(entry).collect())
            }
        }
    }

    /// A text in quotes.
    pub fn text(text: &str) -> Self {
        Self::Scalar(quoted(text))
    }

    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries.iter().find(|(this_key, _)| this_key == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The text of a scalar.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Scalar(text) => Some(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.clone())),
            _ => None,
        }
    }

    /// Sets `key` of a map, at the end if it is new.
    pub fn set(&mut self, key: &str, value: Self) {
        if let Self::Map(entries) = self {
            match entries.iter_mut().find(|(this_key, _)| this_key == key) {
                Some((_, place)) => *place = value,
                None => entries.push((key.to_owned(), value)),
            }
        }
    }

    /// Every scalar, to be changed.
    pub fn for_each_scalar(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Scalar(text) => change(text),
            Self::List(items) => items.iter_mut().for_each(|item| item.for_each_scalar(change)),
            Self::Map(entries) => entries.iter_mut().for_each(|(_, value)| value.for_each_scalar(change)),
        }
    }

    /// The value on one line.
    pub fn on_a_line(&self) -> String {
        match self {
            Self::Scalar(text) => text.clone(),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::on_a_line).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entry = |(key, value): &(String, Self)| format!("{}: {}", word(key), value.on_a_line());
                format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The document as YAML, a line feed at the end.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        match self {
            Self::Map(entries) if !entries.is_empty() => block(entries, 0, &mut text),
            other => {
                text.push_str(&other.on_a_line());
                text.push('\n');
            }
        }
        text
    }

    /// Whether it is written over several lines.
    fn is_long(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::List(items) if items.is_empty() => false,
            Self::Map(entries) if entries.is_empty() => false,
            Self::List(items) if items.iter().all(|item| matches!(item, Self::Scalar(_))) => {
                self.on_a_line().len() > LINE
            }
            Self::List(_) | Self::Map(_) => true,
        }
    }

    /// What differs from here to `other`, in the order of either.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut all = Vec::new();
        differ("", Some(self), Some(other), &mut all);
        all
    }

    /// Kind and name of an object: `NodePool default`, `Deployment web/api`; nothing for what is none.
    pub fn object_name(&self) -> Option<String> {
        let kind = self.get("kind")?.as_text()?;
        let metadata = self.get("metadata")?;
        let name = metadata.get("name")?.as_text()?;
        let namespace = metadata.get("namespace").and_then(Self::as_text).filter(|text| text != "default");
        Some(namespace.map_or_else(|| format!("{kind} {name}"), |namespace| format!("{kind} {namespace}/{name}")))
    }
}

/// Whether a text without quotes stays what it is wherever it is put: between the brackets of a list, too.
fn is_safe(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+%-".contains(c);
    !text.is_empty() && text.chars().all(plain) && !text.starts_with('%') && text != "-"
}

fn block(entries: &[(String, Content)], indent: usize, text: &mut String) {
    for (key, value) in entries {
        text.push_str(&" ".repeat(indent));
        text.push_str(&word(key));
        text.push(':');
        under(value, indent, text);
    }
}

/// A value after its key.
fn under(value: &Content, indent: usize, text: &mut String) {
    match value {
        Content::Map(entries) if value.is_long() => {
            text.push('\n');
            block(entries, indent + 2, text);
        }
        Content::List(items) if value.is_long() => {
            text.push('\n');
            items.iter().for_each(|item| list_item(item, indent + 2, text));
        }
        short => {
            text.push(' ');
            text.push_str(&short.on_a_line());
            text.push('\n');
        }
    }
}

fn list_item(item: &Content, indent: usize, text: &mut String) {
    text.push_str(&" ".repeat(indent));
    text.push_str("- ");
    match item {
        Content::Map(entries) if item.is_long() => {
            let mut inner = String::new();
            block(entries, indent + 2, &mut inner);
            text.push_str(inner.trim_start_matches(' '));
        }
        other => {
            text.push_str(&other.on_a_line());
            text.push('\n');
        }
    }
}

/// Whether a list holds maps, of which each may differ by itself.
fn is_of_maps(items: &[Content]) -> bool {
    items.iter().all(|item| matches!(item, Content::Map(_)))
}

fn differ(path: &str, before: Option<&Content>, after: Option<&Content>, all: &mut Vec<Difference>) {
    let below = |key: &str| {
        let step = if key.contains('.') { format!("[{key}]") } else { format!(".{key}") };
        format!("{path}{step}").trim_start_matches('.').to_owned()
    };
    match (before, after) {
        (Some(one), Some(other)) if one == other => {}
        (Some(Content::Map(one)), Some(Content::Map(other))) => {
            let added = other.iter().filter(|(key, _)| one.iter().all(|(this_key, _)| this_key != key));
            for (key, _) in one.iter().chain(added) {
                let of = |entries: &'_ [(String, Content)]| entries.iter().position(|(this_key, _)| this_key == key);
                differ(&below(key), of(one).map(|at| &one[at].1), of(other).map(|at| &other[at].1), all);
            }
        }
        (Some(Content::List(one)), Some(Content::List(other))) if one.len() == other.len() && is_of_maps(one) => {
            for (number, (one, other)) in one.iter().zip(other).enumerate() {
                differ(&format!("{path}[{number}]"), Some(one), Some(other), all);
            }
        }
        // Below a key that was not there, what is new is told, not each of its parents.
        (None, Some(Content::Map(other))) if !other.is_empty() => {
            other.iter().for_each(|(key, value)| differ(&below(key), None, Some(value), all));
        }
        (one, other) => all.push(Difference {
            path: path.to_owned(),
            before: one.map(Content::on_a_line),
            after: other.map(Content::on_a_line),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::Content;
    use crate::source::{Limits, Source};
    use crate::tree::{self, Variables};

    fn read(text: &str) -> Content {
        let source = Source::new("a.yaml".to_owned(), text.to_owned());
        match tree::parse(&source, &Variables::new(), &Limits::default()) {
            Ok(documents) => Content::from_node(&documents[0]),
            Err(error) => panic!("{error}: {text}"),
        }
    }

    const TEXT: &str = "kind: NodePool\nmetadata: { name: a, namespace: web }\nspec:\n  at: '0644'\n  on: true\n  none: ~\n  empty: {}\n  \
                        list: [1, two, \"three: x\"]\n  deep:\n    - key: k\n      values: [a]\n    - plain\n  \"odd key\": 0.10\n";

    #[test]
    fn what_is_written_again_means_the_same() {
        let content = read(TEXT);
        let text = content.to_yaml();
        assert_eq!(read(&text), content, "{text}");
        assert!(text.contains("at: \"0644\"") && text.contains("\"odd key\": 0.10"), "{text}");
        assert_eq!(content.object_name().as_deref(), Some("NodePool web/a"));
    }

    #[test]
    fn differences_are_told_where_they_are() {
        let (before, after) = (read("a: { b: 1, c: [x] }\nd: 1\n"), read("a: { b: 2, c: [x, y], e: { f: 1 } }\n"));
        let shown: Vec<String> = before
            .differences(&after)
            .into_iter()
            .map(|difference| {
                format!(
                    "{} {:?} {:?}",
                    difference.path,
                    difference.before.unwrap_or_default(),
                    difference.after.unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(shown, ["a.b \"1\" \"2\"", "a.c \"[x]\" \"[x, y]\"", "a.e.f \"\" \"1\"", "d \"1\" \"\""]);
    }

    #[test]
    fn only_meaningful_quotes_are_differences() {
        let of = |one: &str, other: &str| read(one).differences(&read(other)).len();
        assert_eq!(of("a: [spot, c6i]\n", "a: [\"spot\", 'c6i']\n"), 0);
        assert_eq!(of("a: 6\n", "a: '6'\n"), 1);
        assert_eq!(of("a: Yes\n", "a: 'Yes'\n"), 1);
    }
}
