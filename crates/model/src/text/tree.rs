//! A YAML or JSON document as a tree whose keys and values know where they stand.
//!
//! Scalars keep their text, because only the reader knows whether `1.20` is a version or a number. Variables of the form
//! `${NAME}` are filled in here, so that every reader sees the result.

mod entries;
mod json;
mod stream;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, ScanError, Span};

use super::error::InputError;
use super::source::{Limits, Source};
use super::template;
pub use entries::Entries;
use entries::SharedMaps;
use stream::Stream;

/// Where a key or a value stands in its file: a range of bytes, or nowhere for values that came without a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    offset: u32,
    length: u32,
}

impl Location {
    /// Nowhere.
    pub const NONE: Self = Self { offset: u32::MAX, length: 0 };

    /// `length` bytes from `offset` on.
    pub fn new(offset: usize, length: usize) -> Self {
        match (u32::try_from(offset), u32::try_from(length)) {
            (Ok(offset), Ok(length)) => Self { offset, length },
            _ => Self::NONE,
        }
    }

    /// The place of the same text after what stood at byte `from` has moved to `to`.
    pub fn moved(self, from: usize, to: usize) -> Self {
        self.range().map_or(Self::NONE, |(offset, length)| Self::new(offset.saturating_sub(from) + to, length))
    }

    /// Byte offset and length in the source's text; `None` for nowhere.
    pub fn range(self) -> Option<(usize, usize)> {
        (self != Self::NONE).then_some((self.offset as usize, self.length as usize))
    }
}

/// A value of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node<'s> {
    /// What it is.
    pub kind: NodeKind<'s>,
    /// Where it stands; for a map or list its first character.
    pub at: Location,
}

/// The kinds of value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeKind<'s> {
    /// `null`, `~` or nothing.
    Null,
    /// Text, a number or a truth value.
    Scalar {
        /// The text after escapes and variables.
        text: Cow<'s, str>,
        /// Whether it was written without quotes, so that it may be a number or a truth value.
        plain: bool,
    },
    /// A list.
    Seq(Vec<Node<'s>>),
    /// A map, in the order written, each key once.
    Map(Entries<'s>),
}

/// A key with its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry<'s> {
    /// The key.
    pub key: Cow<'s, str>,
    /// Where the key stands.
    pub key_at: Location,
    /// The value.
    pub value: Node<'s>,
    /// Whether an edit has led through this key: then it has to mean something.
    pub edited: bool,
}

impl<'s> Entry<'s> {
    /// A key with its value, as a document states them.
    pub fn new(key: Cow<'s, str>, key_at: Location, value: Node<'s>) -> Self {
        Self { key, key_at, value, edited: false }
    }
}

impl<'s> Node<'s> {
    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            NodeKind::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The text of a scalar.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Self] {
        match &self.kind {
            NodeKind::Seq(items) => items,
            _ => &[],
        }
    }

    /// The entries of a map; none for anything else.
    pub fn entries(&self) -> &[Entry<'s>] {
        match &self.kind {
            NodeKind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// What kind of value this is, for a sentence.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            NodeKind::Null => "nothing",
            NodeKind::Scalar { plain: true, text } if is_true_or_false(text) => "a truth value",
            NodeKind::Scalar { plain: true, text } if text.parse::<f64>().is_ok() => "a number",
            NodeKind::Scalar { .. } => "text",
            NodeKind::Seq(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }

    /// How many values the tree holds, itself included.
    fn size(&self) -> usize {
        1 + match &self.kind {
            NodeKind::Null | NodeKind::Scalar { .. } => 0,
            NodeKind::Seq(items) => items.iter().map(Self::size).sum::<usize>(),
            NodeKind::Map(entries) => entries.iter().map(|entry| entry.value.size()).sum::<usize>(),
        }
    }

    /// The tree of a JSON value, without positions.
    ///
    /// # Errors
    /// If it is nested too deeply.
    pub fn from_json(value: &'s serde_json::Value, limits: &Limits) -> Result<Self, InputError> {
        from_json(value, limits.depth_max)
    }
}

fn is_true_or_false(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

fn from_json(value: &serde_json::Value, depth_left: usize) -> Result<Node<'_>, InputError> {
    use serde_json::Value;
    let Some(below) = depth_left.checked_sub(1) else {
        return Err(InputError::new("the value is nested too deeply"));
    };
    let scalar = |text, plain| NodeKind::Scalar { text, plain };
    let kind = match value {
        Value::Null => NodeKind::Null,
        Value::Bool(truth) => scalar(Cow::Borrowed(if *truth { "true" } else { "false" }), true),
        Value::Number(number) => scalar(Cow::Owned(number.to_string()), true),
        Value::String(text) => scalar(Cow::Borrowed(text.as_str()), false),
        Value::Array(items) => {
            NodeKind::Seq(items.iter().map(|item| from_json(item, below)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => NodeKind::Map(
            fields
                .iter()
                .map(|(key, value)| {
                    let value = from_json(value, below)?;
                    Ok(Entry::new(Cow::Borrowed(key.as_str()), Location::NONE, value))
                })
                .collect::<Result<_, InputError>>()?,
        ),
    };
    Ok(Node { kind, at: Location::NONE })
}

/// Values for `${NAME}`; a name without a value is left as it is.
pub type Variables = BTreeMap<String, String>;

/// Reads every document of a YAML or JSON file; empty documents are left out.
///
/// # Errors
/// If the text is not YAML, a key occurs twice, an alias refers to nothing, or a limit is passed.
pub fn parse<'s>(source: &'s Source, variables: &Variables, limits: &Limits) -> Result<Vec<Node<'s>>, InputError> {
    parse_part(source, 0..source.text.len(), variables, limits)
}

/// As [`parse`], for a part of the text.
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_part<'s>(
    source: &'s Source,
    part: Range<usize>,
    variables: &Variables,
    limits: &Limits,
) -> Result<Vec<Node<'s>>, InputError> {
    let shared = &mut SharedMaps::default();
    if let Some(document) = json::parse(&source.text, part.clone(), variables, limits, shared) {
        return Ok(vec![document]);
    }
    let start = part.start;
    match stream::objects(&source.text[part.clone()]) {
        Stream::Other => yaml(source, part, variables, limits, shared),
        Stream::Cut(at) => Err(InputError::new(format!("`{}` ends in the middle of a JSON object", source.name))
            .at(source.place(Location::new(start + at, 1)))
            .because("this object has no end")
            .help("write the file again: what wrote it was stopped")),
        Stream::Objects(objects) => {
            let mut documents = Vec::new();
            for object in objects {
                let part = start + object.start..start + object.end;
                match json::parse(&source.text, part.clone(), variables, limits, shared) {
                    Some(document) => documents.push(document),
                    None => documents.extend(yaml(source, part, variables, limits, shared)?),
                }
            }
            Ok(documents)
        }
    }
}

fn yaml<'s>(
    source: &'s Source,
    part: Range<usize>,
    variables: &Variables,
    limits: &Limits,
    shared: &mut SharedMaps<'s>,
) -> Result<Vec<Node<'s>>, InputError> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: limits.depth_max,
        block_nesting_limit: limits.depth_max,
    };
    options.set_emit_comments(false);
    let base = part.start;
    let mut builder = Builder {
        source,
        base,
        variables,
        limits,
        open: Vec::new(),
        anchors: FxHashMap::default(),
        nodes: 0,
        alias_nodes: 0,
        documents: Vec::new(),
        shared,
    };
    for event in Parser::new_from_str_with_options(&source.text[part], options) {
        let (event, span) = event.map_err(|error| syntax_error(source, base, &error, limits))?;
        builder.take(event, span)?;
    }
    Ok(builder.documents)
}

fn syntax_error(source: &Source, base: usize, error: &ScanError, limits: &Limits) -> InputError {
    use granit_parser::ErrorKind;
    let offset = base + error.marker().byte_offset().unwrap_or(0);
    let place = source.place(Location::new(offset, 1));
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => {
            InputError::new(format!("values are nested more than {} levels deep", limits.depth_max))
                .at(place)
                .because("too deep from here on")
                .help("no Kubernetes object nests that deeply; check the brackets and the indentation")
        }
        ErrorKind::UnknownAnchor => InputError::new("an alias refers to an anchor that is not defined")
            .at(place)
            .because("no such anchor above")
            .help("quote the text if the `*` is meant literally"),
        kind => {
            let unrendered = place.as_ref().and_then(|place| template::way_out(&place.text));
            let help = match kind {
                _ if unrendered.is_some() => unrendered.as_deref().unwrap_or_default(),
                ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
                    "indent with spaces"
                }
                _ => "check the indentation, the quotes and the brackets on this line and the one above",
            };
            InputError::new("this is not YAML").at(place).because(kind.to_string()).help(help)
        }
    }
}

/// A map or list whose end has not come yet.
struct Open<'s> {
    node: Node<'s>,
    /// The key that waits for its value.
    key: Option<(Cow<'s, str>, Location)>,
    /// The position of the `<<` of a map.
    merge: Option<usize>,
    anchor: usize,
}

struct Builder<'s, 'a> {
    source: &'s Source,
    /// Where the part of the text starts that is read.
    base: usize,
    variables: &'a Variables,
    limits: &'a Limits,
    open: Vec<Open<'s>>,
    anchors: FxHashMap<usize, Node<'s>>,
    nodes: usize,
    alias_nodes: usize,
    documents: Vec<Node<'s>>,
    shared: &'a mut SharedMaps<'s>,
}

impl<'s> Builder<'s, '_> {
    fn take(&mut self, event: Event<'s>, span: Span) -> Result<(), InputError> {
        let at = location(self.base, span);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let null = plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let kind = if null {
                    NodeKind::Null
                } else {
                    NodeKind::Scalar { text: substituted(text, self.variables), plain }
                };
                self.add(Node { kind, at }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(NodeKind::Seq(Vec::new()), at, anchor),
            Event::MappingStart(_, anchor, _) => self.begin(NodeKind::Map(Entries::default()), at, anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut open) = self.open.pop() else { return Ok(()) };
                match &mut open.node.kind {
                    NodeKind::Map(entries) => {
                        self.reject_duplicates(entries)?;
                        open.merge.map_or(Ok(()), |at| self.merge(entries, at))?;
                        entries.shrink_to_fit();
                        self.shared.share_pod(entries);
                    }
                    NodeKind::Seq(items) => items.shrink_to_fit(),
                    NodeKind::Null | NodeKind::Scalar { .. } => {}
                }
                self.add(open.node, open.anchor)
            }
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor) else {
                    return Err(self.error(at, "an alias refers to the value that it is part of"));
                };
                self.alias_nodes += target.size();
                if self.alias_nodes > self.limits.alias_nodes_max {
                    return Err(self
                        .error(at, format!("aliases repeat more than {} values", self.limits.alias_nodes_max))
                        .because("the limit is passed here")
                        .help("write the values out, or split the file"));
                }
                let mut copy = target.clone();
                copy.at = at;
                self.add(copy, 0)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, kind: NodeKind<'s>, at: Location, anchor: usize) -> Result<(), InputError> {
        // Said at once, because reading on could take long and would find nothing of use.
        if self.open.is_empty() && matches!(kind, NodeKind::Seq(_)) {
            return Err(self
                .error(at, "a document is a map of keys and values, not a list")
                .because("the list begins here")
                .help("begin with a `key:` line; several objects are separated by `---` lines"));
        }
        if self.open.len() >= self.limits.depth_max {
            return Err(self
                .error(at, format!("values are nested more than {} levels deep", self.limits.depth_max))
                .help("no Kubernetes object nests that deeply; check the brackets and the indentation"));
        }
        self.open.push(Open { node: Node { kind, at }, key: None, merge: None, anchor });
        Ok(())
    }

    /// Puts a finished value where it belongs: under its key, into its list, or (at the top) into the documents.
    fn add(&mut self, node: Node<'s>, anchor: usize) -> Result<(), InputError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes_max {
            return Err(self
                .error(node.at, format!("the file holds more than {} values", self.limits.nodes_max))
                .help("split it into several files"));
        }
        if anchor != 0 {
            // Counted, because anchors inside anchored values are kept several times over.
            self.nodes += node.size();
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            if node.kind != NodeKind::Null {
                self.documents.push(node);
            }
            return Ok(());
        };
        match (&mut open.node.kind, open.key.take()) {
            (NodeKind::Map(entries), Some((key, key_at))) => entries.push(Entry::new(key, key_at, node)),
            (NodeKind::Map(entries), None) => match node.kind {
                NodeKind::Scalar { text, plain } => {
                    // Quoted, it is a key like any other.
                    if plain && text == "<<" {
                        open.merge = Some(entries.len());
                    }
                    open.key = Some((text, node.at));
                }
                _ => {
                    let found = node.describe();
                    let error = self.error(node.at, format!("a key must be text, not {found}"));
                    let unrendered = error.place().and_then(|place| template::way_out(&place.text));
                    let help = "quote it if braces, brackets or `?` are meant literally";
                    return Err(error
                        .because(format!("this is {found}"))
                        .help(unrendered.unwrap_or_else(|| help.to_owned())));
                }
            },
            (NodeKind::Seq(items), _) => items.push(node),
            (NodeKind::Null | NodeKind::Scalar { .. }, _) => {}
        }
        Ok(())
    }

    /// Carries out the `<<: *anchor` at a position: keys of the other map that this one does not state itself.
    fn merge(&self, entries: &mut Vec<Entry<'s>>, at: usize) -> Result<(), InputError> {
        let merged = entries.remove(at).value;
        let sources = match merged.kind {
            NodeKind::Seq(items) => items,
            kind => vec![Node { kind, ..merged }],
        };
        let mut stated: FxHashSet<Cow<'s, str>> = entries.iter().map(|entry| entry.key.clone()).collect();
        for source in sources {
            let NodeKind::Map(inherited) = source.kind else {
                let found = source.describe();
                return Err(self
                    .error(source.at, "only a map can be merged with `<<`")
                    .because(format!("this is {found}"))
                    .help("name the anchor of a map (`<<: *anchor`), or quote the key if it is meant literally"));
            };
            for entry in inherited {
                if stated.insert(entry.key.clone()) {
                    entries.push(entry);
                }
            }
        }
        Ok(())
    }

    fn reject_duplicates(&self, entries: &[Entry<'s>]) -> Result<(), InputError> {
        let duplicate = if entries.len() <= 16 {
            (1..entries.len()).find_map(|later| {
                let earlier = entries[..later].iter().find(|entry| entry.key == entries[later].key)?;
                Some((earlier, &entries[later]))
            })
        } else {
            let mut seen: FxHashMap<&str, &Entry<'_>> = FxHashMap::default();
            entries.iter().find_map(|entry| seen.insert(&entry.key, entry).map(|earlier| (earlier, entry)))
        };
        let Some((earlier, later)) = duplicate else { return Ok(()) };
        let line = self.source.place(earlier.key_at).map_or(0, |place| place.line);
        Err(self
            .error(later.key_at, format!("the key `{}` is given twice", later.key))
            .because(format!("already given on line {line}"))
            .help("keep one of the two"))
    }

    fn error(&self, at: Location, message: impl Into<String>) -> InputError {
        InputError::new(message).at(self.source.place(at))
    }
}

fn location(base: usize, span: Span) -> Location {
    match (span.start.byte_offset(), span.end.byte_offset()) {
        (Some(start), Some(end)) => Location::new(base + start, end.saturating_sub(start).max(1)),
        _ => Location::NONE,
    }
}

/// `text` with every `${NAME}` that has a value replaced by it.
fn substituted<'s>(text: Cow<'s, str>, variables: &Variables) -> Cow<'s, str> {
    if variables.is_empty() || !text.contains("${") {
        return text;
    }
    let mut result = String::new();
    let mut rest = &*text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        result.push_str(before);
        let Some(end) = from.find('}') else {
            rest = from;
            break;
        };
        match variables.get(&from[2..end]) {
            Some(value) => result.push_str(value),
            None => result.push_str(&from[..=end]),
        }
        rest = &from[end + 1..];
    }
    result.push_str(rest);
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::{Node, NodeKind, Variables, parse};
    use crate::text::{InputError, Limits, Source};

    fn read(text: &str, check: impl FnOnce(&[Node<'_>])) {
        let source = Source::new("a.yaml", text);
        match parse(&source, &Variables::new(), &Limits::default()) {
            Ok(documents) => check(&documents),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn refused(text: &str) -> InputError {
        let source = Source::new("a.yaml", text);
        parse(&source, &Variables::new(), &Limits::default()).expect_err("must be refused")
    }

    #[test]
    fn keys_and_values_know_where_they_stand() {
        read("a:\n  b: [1, \"two\"]\n", |documents| {
            let list = documents[0].get("a").and_then(|a| a.get("b")).unwrap();
            let NodeKind::Seq(items) = &list.kind else { panic!("{list:?}") };
            assert_eq!(items[1].as_text(), Some("two"));
            assert_eq!(items[1].at.range(), Some((12, 5)));
        });
    }

    #[test]
    fn scalar_keeps_text_and_quoting() {
        read("a: [1.20, \"1.20\", ~, null, '']", |documents| {
            let items = documents[0].get("a").map(Node::items).unwrap_or_default();
            assert_eq!(items[0].kind, NodeKind::Scalar { text: "1.20".into(), plain: true });
            assert_eq!(items[1].kind, NodeKind::Scalar { text: "1.20".into(), plain: false });
            assert_eq!((&items[2].kind, &items[3].kind), (&NodeKind::Null, &NodeKind::Null));
            assert_eq!(items[4].as_text(), Some(""));
        });
    }

    #[test]
    fn empty_documents_are_left_out() {
        read("---\n---\na: 1\n---\n# nothing\n", |documents| assert_eq!(documents.len(), 1));
        read("", |documents| assert!(documents.is_empty()));
    }

    #[test]
    fn aliases_and_merges_are_carried_out() {
        read("base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}\ncopy: *b\n", |documents| {
            let mine = documents[0].get("mine").unwrap();
            assert_eq!(mine.get("x").and_then(Node::as_text), Some("1"));
            assert_eq!(mine.get("y").and_then(Node::as_text), Some("3"));
            assert_eq!(documents[0].get("copy").and_then(|c| c.get("y")).and_then(Node::as_text), Some("2"));
        });
    }

    #[test]
    fn only_plain_merge_key_merges_maps() {
        read("'<<': 5\n", |documents| {
            assert_eq!(documents[0].get("<<").and_then(Node::as_text), Some("5"));
        });
        for text in ["a: {<<: 5}", "a: {<<: }", "a: {<<: [x]}"] {
            assert_eq!(refused(text).message(), "only a map can be merged with `<<`", "{text}");
        }
        assert_eq!(refused("a: &a {x: 1}\nb: {<<: *a, <<: *a}").message(), "the key `<<` is given twice");
    }

    #[test]
    fn duplicate_key_error_shows_both_places() {
        let error = refused("a: 1\nb: 2\na: 3\n");
        assert_eq!(error.message(), "the key `a` is given twice");
        assert_eq!(error.place().map(|p| (p.line, p.column)), Some((3, 1)));
    }

    #[test]
    fn alias_bombs_and_deep_nesting_are_refused() {
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (letter, before) in "bcdefghij".chars().zip("abcdefghi".chars()) {
            let repeated = vec![format!("*{before}"); 9].join(", ");
            bomb.push_str(&format!("{letter}: &{letter} [{repeated}]\n"));
        }
        assert_eq!(refused(&bomb).message(), "aliases repeat more than 100000 values");
        let deep = "values are nested more than 100 levels deep";
        assert_eq!(refused(&format!("a: {}", "[".repeat(100_000))).message(), deep);
        assert_eq!(refused(&format!("a:\n{}", "- ".repeat(5_000))).message(), deep);
        let recursive = refused("a: &a [*a]");
        assert_eq!(recursive.message(), "an alias refers to the value that it is part of");
    }

    #[test]
    fn known_variables_are_replaced_and_unknown_kept() {
        let source = Source::new("a.yaml", "kubernetes.io/cluster/${NAME}: \"${NAME}-x-${OTHER}-${\"");
        let variables = Variables::from([("NAME".to_owned(), "demo".to_owned())]);
        let documents = parse(&source, &variables, &Limits::default()).unwrap();
        let value = documents[0].get("kubernetes.io/cluster/demo").and_then(Node::as_text);
        assert_eq!(value, Some("demo-x-${OTHER}-${"));
    }

    #[test]
    fn json_reads_as_yaml_and_from_a_value() {
        let text = r#"{"a": {"b": [1, "x", true, null]}}"#;
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let from_value = Node::from_json(&value, &Limits::default()).unwrap();
        read(text, |documents| {
            let list = |root: &Node<'_>| match root.get("a").and_then(|a| a.get("b")).map(|b| b.kind.clone()) {
                Some(NodeKind::Seq(items)) => items.iter().map(|i| format!("{:?}", i.kind)).collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            };
            assert_eq!(list(&documents[0]), list(&from_value));
        });
    }
}
