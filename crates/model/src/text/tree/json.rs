//! JSON text into a tree, without the detour through YAML's far slower grammar.
//!
//! This reader refuses whatever is unusual (syntax errors, duplicate keys, passed limits) without saying why: the caller
//! then reads the text as YAML, of which JSON is a part, and that reader explains.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use rustc_hash::FxHashSet;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use super::{Entries, Entry, Location, Node, NodeKind, SharedMaps, Variables, substituted};
use crate::text::Limits;

/// The tree of a part of `text`, if it is one plain JSON object within the limits.
pub(super) fn parse<'s>(
    text: &'s str,
    part: Range<usize>,
    variables: &Variables,
    limits: &Limits,
    shared: &mut SharedMaps<'s>,
) -> Option<Node<'s>> {
    let this_text = &text[part.clone()];
    if !this_text.trim_start().starts_with('{') {
        return None;
    }
    let mut state = State { text, variables, nodes_left: limits.nodes_max, shared };
    let mut deserializer = serde_json::Deserializer::from_str(this_text);
    let at = Location::new(part.start + this_text.len() - this_text.trim_start().len(), 1);
    let root = Value { state: &mut state, at, depth_left: limits.depth_max };
    let node = root.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok().map(|()| node)
}

struct State<'s, 'a> {
    text: &'s str,
    variables: &'a Variables,
    nodes_left: usize,
    shared: &'a mut SharedMaps<'s>,
}

impl<'s> State<'s, '_> {
    /// Where `part` stands, which was borrowed from the text, quotes left out.
    fn location(&self, part: &'s str) -> Location {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        if offset <= self.text.len() { Location::new(offset, part.len().max(1)) } else { Location::NONE }
    }
}

/// A value to be read. Numbers, truth values and maps are said to stand where their key does, because JSON's reader does
/// not tell where it is.
struct Value<'b, 's, 'a> {
    state: &'b mut State<'s, 'a>,
    at: Location,
    depth_left: usize,
}

impl<'s> Value<'_, 's, '_> {
    fn plain<E>(self, text: impl Into<Cow<'s, str>>) -> Result<Node<'s>, E> {
        Ok(Node { kind: NodeKind::Scalar { text: text.into(), plain: true }, at: self.at })
    }

    fn quoted<E>(self, text: Cow<'s, str>, at: Location) -> Result<Node<'s>, E> {
        let text = substituted(text, self.state.variables);
        Ok(Node { kind: NodeKind::Scalar { text, plain: false }, at })
    }
}

impl<'s> DeserializeSeed<'s> for Value<'_, 's, '_> {
    type Value = Node<'s>;

    fn deserialize<D: serde::Deserializer<'s>>(self, deserializer: D) -> Result<Node<'s>, D::Error> {
        self.state.nodes_left = self.state.nodes_left.checked_sub(1).ok_or_else(|| D::Error::custom("too many"))?;
        deserializer.deserialize_any(self)
    }
}

impl<'s> Visitor<'s> for Value<'_, 's, '_> {
    type Value = Node<'s>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'s>, E> {
        Ok(Node { kind: NodeKind::Null, at: self.at })
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Node<'s>, E> {
        self.plain(if truth { "true" } else { "false" })
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node<'s>, E> {
        self.plain(number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node<'s>, E> {
        self.plain(number.to_string())
    }

    /// Refused, because the digits as written are lost: `1.20` may be a version.
    fn visit_f64<E: Error>(self, _number: f64) -> Result<Node<'s>, E> {
        Err(E::custom("a fraction"))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'s str) -> Result<Node<'s>, E> {
        let at = self.state.location(text);
        self.quoted(Cow::Borrowed(text), at)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'s>, E> {
        let at = self.at;
        self.quoted(Cow::Owned(text.to_owned()), at)
    }

    fn visit_seq<A: SeqAccess<'s>>(self, mut items: A) -> Result<Node<'s>, A::Error> {
        let depth_left = self.depth_left.checked_sub(1).ok_or_else(|| A::Error::custom("too deep"))?;
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element_seed(Value { state: self.state, at: self.at, depth_left })? {
            nodes.push(node);
        }
        nodes.shrink_to_fit();
        Ok(Node { kind: NodeKind::Seq(nodes), at: self.at })
    }

    fn visit_map<A: MapAccess<'s>>(self, mut fields: A) -> Result<Node<'s>, A::Error> {
        let depth_left = self.depth_left.checked_sub(1).ok_or_else(|| A::Error::custom("too deep"))?;
        let mut entries = Entries::default();
        while let Some((key, key_at)) = fields.next_key_seed(Key { state: self.state, at: self.at })? {
            let value = fields.next_value_seed(Value { state: self.state, at: key_at, depth_left })?;
            entries.push(Entry::new(key, key_at, value));
        }
        if has_duplicates(&entries) {
            return Err(A::Error::custom("a key is given twice"));
        }
        entries.shrink_to_fit();
        self.state.shared.share_pod(&mut entries);
        Ok(Node { kind: NodeKind::Map(entries), at: self.at })
    }
}

fn has_duplicates(entries: &[Entry<'_>]) -> bool {
    if entries.len() <= 16 {
        return (1..entries.len()).any(|later| entries[..later].iter().any(|e| e.key == entries[later].key));
    }
    let mut seen = FxHashSet::default();
    !entries.iter().all(|entry| seen.insert(&entry.key))
}

struct Key<'b, 's, 'a> {
    state: &'b State<'s, 'a>,
    at: Location,
}

impl<'s> DeserializeSeed<'s> for Key<'_, 's, '_> {
    type Value = (Cow<'s, str>, Location);

    fn deserialize<D: serde::Deserializer<'s>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'s> Visitor<'s> for Key<'_, 's, '_> {
    type Value = (Cow<'s, str>, Location);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'s str) -> Result<Self::Value, E> {
        Ok((substituted(Cow::Borrowed(text), self.state.variables), self.state.location(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((substituted(Cow::Owned(text.to_owned()), self.state.variables), self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::text::Limits;
    use crate::text::tree::{SharedMaps, Variables};

    fn is_read(text: &str) -> bool {
        parse(text, 0..text.len(), &Variables::new(), &Limits::default(), &mut SharedMaps::default()).is_some()
    }

    #[test]
    fn unusual_json_falls_back_to_yaml_reader() {
        assert!(is_read(r#" {"a": [1, -2, true, null, "x", "\n"], "b": {}} "#));
        assert!(!is_read("{a: 1}"), "flow YAML");
        assert!(!is_read(r#"{"a": 1, "a": 2}"#), "duplicate key");
        assert!(!is_read(r#"{"version": 1.20}"#), "a fraction loses its digits");
        assert!(!is_read(r#"{"a": 1} {"b": 2}"#), "two documents");
        assert!(!is_read(&format!("{{\"a\": {}{}}}", "[".repeat(110), "]".repeat(110))), "too deep");
        let few = Limits { nodes_max: 3, ..Limits::default() };
        assert!(
            parse(r#"{"a": [1, 2, 3]}"#, 0..16, &Variables::new(), &few, &mut SharedMaps::default()).is_none(),
            "too many values"
        );
    }

    #[test]
    fn texts_know_where_they_stand() {
        let node =
            parse(r#"{"a": {"b": "four"}}"#, 0..20, &Variables::new(), &Limits::default(), &mut SharedMaps::default())
                .unwrap();
        let value = node.get("a").and_then(|a| a.get("b")).unwrap();
        assert_eq!(value.at.range(), Some((13, 4)));
    }
}
