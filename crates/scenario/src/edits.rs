//! Changes to single values of a scenario and its manifests, as `--set PATH=VALUE` states them.
//!
//! A path begins at the scenario (`duration`, `policies[cas].flags.expander`) or, with a capital letter, at the objects of
//! a kind (`NodePool[default].spec.disruption.consolidateAfter`, `Deployment[web/api].spec.replicas`; without brackets all
//! objects of the kind). Brackets choose from a list by number, or by the item's `name`, `key`, `workload` or `kind`, and
//! from a map a key that holds dots; `[*]` stands for every item of a list that has what leads to the value, and for every object of
//! a kind, and `[+]` at the end of a path appends to a list, which is added where it is not there. A key that is not there is added, and whoever reads the object refuses it if it means nothing there. A path that ends at
//! one object (`Deployment[web/api]`) sets the whole of it: one that no manifest has is added. A name without a namespace is enough where one
//! namespace has it. `load[*].requests.scale` reaches loads in cores too (`demand`).
//!
//! What must not live here: what any other key means.

mod demand;
mod fitting;

use std::collections::BTreeSet;

use super::error::{ScenarioError, listed, nearest};
use super::manifests::READ;
use super::source::{Limits, Source};
use super::tree::{self, Entries, Entry, Location, Node, NodeKind, Variables};
use crate::domain::words::counted;
use demand::demand_key;

/// A change to one value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The path as it was written.
    path: String,
    /// The value as it was written.
    value: String,
    object: Option<ObjectChoice>,
    steps: Vec<Step>,
    /// The value under a key, which the parser of documents needs.
    source: Source,
}

/// The objects that a path begins at.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ObjectChoice {
    kind: String,
    /// `name` or `namespace/name`; `None` for all of the kind.
    name: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// A key of a map.
    Key(String),
    /// An item of a list, or a key of a map that holds dots.
    Choice(String),
}

/// What stands before the value in the source of an edit.
const KEY_OF_VALUE: &str = "value: ";

/// A path, and where it counts as standing.
#[derive(Clone, Copy)]
struct Path<'p> {
    text: &'p str,
    offset: usize,
}

/// The choice of everything.
const ALL: &str = "*";
/// The choice of a new item at the end of a list.
const NEW: &str = "+";

/// Keys by which an item of a list is known.
pub(crate) const NAMES: [&str; 5] = ["name", "key", "workload", "kind", "type"];

impl Edit {
    /// Reads `PATH=VALUE`; the value is YAML.
    ///
    /// # Errors
    /// If it has no `=`, or path or value have not the form that they need.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let (path, value) = split(text).ok_or_else(|| {
            ScenarioError::new(format!("`{}` has no `=`", shown(text))).help("write for example `duration=2h`")
        })?;
        Self::new(path, value)
    }

    /// The change of the value at `path` to `value`, which is YAML.
    ///
    /// # Errors
    /// If path or value have not the form that they need.
    pub fn new(path: &str, value: &str) -> Result<Self, ScenarioError> {
        let steps = steps(path)?;
        let source = Source::new(format!("the value of {path}"), format!("{KEY_OF_VALUE}{value}"));
        if value_of(&source)?.is_none() {
            return Err(ScenarioError::new(format!("`{}` is not a single value", shown(value)))
                .help("use YAML: `30s`, `[spot, on-demand]`, `{cpu: 100}`"));
        }
        let (object, steps) = match steps.as_slice() {
            [Step::Key(kind), rest @ ..] if kind.starts_with(|c: char| c.is_ascii_uppercase()) => {
                let kind = kind.clone();
                match rest {
                    [Step::Choice(name), rest @ ..] => {
                        (Some(ObjectChoice { kind, name: Some(name.clone()) }), rest.to_vec())
                    }
                    rest => (Some(ObjectChoice { kind, name: None }), rest.to_vec()),
                }
            }
            _ => (None, steps),
        };
        if object.as_ref().and_then(|object| object.name.as_deref()) == Some(NEW) {
            return Err(ScenarioError::new(format!("`{}` names no object", shown(path)))
                .help("name the new object, for example `NodePool[burst]={spec: ...}`; `[+]` appends to a list"));
        }
        let is_one = object.as_ref().and_then(|object| object.name.as_deref()).is_some_and(|name| name != ALL);
        let is_map =
            || value_of(&source).is_ok_and(|value| value.is_some_and(|value| matches!(value.kind, NodeKind::Map(_))));
        if steps.is_empty() && !(is_one && is_map()) {
            return Err(ScenarioError::new(format!("`{}` is an object, not a value inside it", shown(path))).help(
                "append the path to the value, for example `.spec.replicas`, or pass the whole object as a map",
            ));
        }
        Ok(Self { path: path.to_owned(), value: value.to_owned(), object, steps, source })
    }

    /// The path as it was written.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value as it was written.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// `PATH=VALUE`.
    pub(super) fn text(&self) -> String {
        format!("{}={}", self.path, self.value)
    }

    /// Whether the path begins at an object of a manifest.
    pub fn is_of_manifest(&self) -> bool {
        self.object.is_some()
    }

    /// Whether it sets a whole object.
    pub(super) fn is_whole(&self) -> bool {
        self.steps.is_empty()
    }

    /// The object that it sets, with the kind and name of the path where the value does not state them. It stands from `offset` on.
    ///
    /// # Errors
    /// If the value states another kind or name.
    pub(super) fn whole(&self, offset: usize) -> Result<Option<Node<'_>>, ScenarioError> {
        let (Some(choice), Some(mut object)) = (&self.object, value_of(&self.source)?) else { return Ok(None) };
        relocate(&mut object, KEY_OF_VALUE.len(), offset + self.path.len() + 1);
        let path = Path { text: &self.path, offset };
        let name = choice.name.as_deref().unwrap_or_default();
        let (namespace, name) = name.split_once('/').map_or((None, name), |(namespace, name)| (Some(namespace), name));
        state(entry(&mut object, "kind", path)?, &choice.kind, path)?;
        let metadata = entry(&mut object, "metadata", path)?;
        state(entry(metadata, "name", path)?, name, path)?;
        if let Some(namespace) = namespace {
            state(entry(metadata, "namespace", path)?, namespace, path)?;
        }
        Ok(Some(object))
    }

    /// Why the path means nothing if it begins at an object of a kind that is not read.
    pub(super) fn flaw(&self) -> Option<ScenarioError> {
        let kind = self.object.as_ref()?.kind.as_str();
        (!READ.contains(&kind)).then(|| {
            let near = nearest(kind, READ.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let none = || "see \u{201c}Manifests\u{201d} in docs/scenario.md for the simulated kinds".to_owned();
            ScenarioError::new(format!("`{}` has no effect: this kind is not simulated", shown(&self.path)))
                .help(near.unwrap_or_else(none))
        })
    }

    /// Why a path whose object is named without a namespace means nothing if objects of several namespaces, out of `objects`, have that name: one
    /// of them is meant.
    pub(super) fn ambiguous(&self, objects: &BTreeSet<(String, String)>) -> Option<ScenarioError> {
        let choice = self.object.as_ref()?;
        let wanted = choice.name.as_deref().filter(|name| *name != ALL && !name.contains('/'))?;
        let of_kind = objects.iter().filter(|(kind, _)| *kind == choice.kind).map(|(_, name)| name.as_str());
        let named = of_kind.filter(|name| name.rsplit_once('/').map_or(*name, |(_, item)| item) == wanted);
        let whole = |name: &str| if name.contains('/') { name.to_owned() } else { format!("default/{name}") };
        let all: Vec<String> = named.map(whole).collect();
        (all.len() > 1).then(|| {
            let names: Vec<&str> = all.iter().map(String::as_str).collect();
            ScenarioError::new(format!(
                "`{}` may mean a {} of any of several namespaces",
                shown(&self.path),
                choice.kind
            ))
            .help(format!("add the namespace; candidates: {}", some(&names)))
        })
    }

    /// Why the path, which begins at an object, found none among `objects`: pairs of kind and name, in order.
    pub(super) fn missed(&self, objects: &BTreeSet<(String, String)>) -> ScenarioError {
        let kind = self.object.as_ref().map_or("", |choice| choice.kind.as_str());
        let names: Vec<&str> = objects.iter().filter(|(key, _)| key == kind).map(|(_, name)| name.as_str()).collect();
        if names.is_empty() {
            let mut kinds: Vec<&str> = objects.iter().map(|(kind, _)| kind.as_str()).collect();
            kinds.dedup();
            let near = nearest(kind, kinds.iter().copied()).map(|near| format!("did you mean `{near}`? "));
            return ScenarioError::new(format!("no manifest of the scenario holds a {}", shown(kind))).help(format!(
                "{}they hold {}",
                near.unwrap_or_default(),
                some(&kinds)
            ));
        }
        let wanted = self.object.as_ref().and_then(|choice| choice.name.as_deref()).unwrap_or_default();
        let near = nearest(wanted, names.iter().copied()).map(|near| format!("did you mean `{kind}[{near}]`? "));
        ScenarioError::new(format!("no {kind} named `{}` in the manifests", shown(wanted))).help(format!(
            "{}they hold {}",
            near.unwrap_or_default(),
            some(&names)
        ))
    }

    /// Changes the documents of a scenario file or of a manifest; true if it found a place in any. What it sets stands
    /// from `offset` on, where the source of the documents has the edit.
    ///
    /// # Errors
    /// If the path leads through a value that is neither a map nor a list, or to an item that is not there.
    pub(super) fn apply<'s>(&'s self, documents: &mut [Node<'s>], offset: usize) -> Result<bool, ScenarioError> {
        let mut found = false;
        for document in documents {
            found |= self.apply_to(document, offset)?;
        }
        Ok(found)
    }

    fn apply_to<'s>(&'s self, document: &mut Node<'s>, offset: usize) -> Result<bool, ScenarioError> {
        if let Some(choice) = &self.object {
            if let NodeKind::Map(entries) = &mut document.kind
                && let Some(list) = entries.iter_mut().find(|entry| entry.key == "items")
                && let NodeKind::Seq(items) = &mut list.value.kind
            {
                let mut found = false;
                for item in items {
                    found |= self.apply_to(item, offset)?;
                }
                return Ok(found);
            }
            if !choice.names(document) {
                return Ok(false);
            }
            if self.is_whole() {
                let Some(object) = self.whole(offset)? else { return Ok(false) };
                *document = object;
                return Ok(true);
            }
        }
        let Some(mut value) = value_of(&self.source)? else { return Ok(false) };
        relocate(&mut value, KEY_OF_VALUE.len(), offset + self.path.len() + 1);
        set(document, &self.steps, value, Path { text: &self.path, offset })?;
        Ok(true)
    }
}

/// Names for a sentence, of which the first dozen are listed.
fn some(names: &[&str]) -> String {
    const MOST: usize = 12;
    let more = names.len().saturating_sub(MOST);
    let first = listed(names.iter().take(MOST).copied());
    if more == 0 { first } else { format!("{first} and {}", counted(more as u64, "other", "others")) }
}

/// Adds kind and name of each object in `document`, those in lists too, to `objects`. Of namespaces all but `default`
/// are named.
pub(super) fn note_objects(document: &Node<'_>, objects: &mut BTreeSet<(String, String)>) {
    if let Some(items) = document.get("items") {
        items.items().iter().for_each(|item| note_objects(item, objects));
        return;
    }
    let text = |node: Option<&Node<'_>>| node.and_then(Node::as_text).map(str::to_owned);
    let metadata = document.get("metadata");
    let (Some(kind), Some(name)) = (text(document.get("kind")), text(metadata.and_then(|m| m.get("name")))) else {
        return;
    };
    let namespace = text(metadata.and_then(|metadata| metadata.get("namespace"))).filter(|name| name != "default");
    objects.insert((kind, namespace.map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))));
}

/// `PATH=VALUE` at the first `=` outside brackets.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    for (at, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The steps of `a.b[c].d`.
fn steps(path: &str) -> Result<Vec<Step>, ScenarioError> {
    let malformed = || {
        ScenarioError::new(format!("`{}` is not a path to a value", shown(path)))
            .help("write for example `duration`, `policies[cas].flags.expander` or `NodePool[default].spec.limits.cpu`")
    };
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end == 0 {
            return Err(malformed());
        }
        steps.push(Step::Key(rest[..end].to_owned()));
        rest = &rest[end..];
        while let Some(inner) = rest.strip_prefix('[') {
            let end = inner.find(']').filter(|end| *end > 0).ok_or_else(malformed)?;
            steps.push(Step::Choice(inner[..end].to_owned()));
            rest = &inner[end + 1..];
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(steps),
            None => return Err(malformed()),
        }
    }
}

/// The value of a source that holds it under a key.
fn value_of(source: &Source) -> Result<Option<Node<'_>>, ScenarioError> {
    let documents = tree::parse(source, &Variables::new(), &Limits::default())?;
    let [document] = documents.as_slice() else { return Ok(None) };
    let NodeKind::Map(entries) = &document.kind else { return Ok(None) };
    Ok(if entries.len() == 1 { document.get("value").cloned() } else { None })
}

impl ObjectChoice {
    fn names(&self, document: &Node<'_>) -> bool {
        let text = |node: Option<&Node<'_>>| node.and_then(Node::as_text).map(str::to_owned);
        if text(document.get("kind")).as_deref() != Some(self.kind.as_str()) {
            return false;
        }
        let Some(wanted) = self.name.as_ref().filter(|name| *name != ALL) else { return true };
        let metadata = document.get("metadata");
        let name = text(metadata.and_then(|metadata| metadata.get("name"))).unwrap_or_default();
        let namespace = text(metadata.and_then(|metadata| metadata.get("namespace")));
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        *wanted == name || *wanted == format!("{namespace}/{name}")
    }
}

/// Puts `value` at the end of `steps`, adding maps on the way.
fn set<'s>(node: &mut Node<'s>, steps: &'s [Step], value: Node<'s>, path: Path<'_>) -> Result<(), ScenarioError> {
    let Some((step, rest)) = steps.split_first() else {
        *node = value;
        return Ok(());
    };
    let at = node.at;
    if let (Step::Choice(choice), NodeKind::Seq(items)) = (step, &mut node.kind)
        && choice == ALL
    {
        return set_in_all(items, rest, &value, path);
    }
    if matches!(step, Step::Choice(choice) if choice == NEW) {
        return append(node, rest, value, path);
    }
    let next = match step {
        Step::Key(key) => entry(node, demand_key(node, key, rest, path.text), path)?,
        Step::Choice(choice) if matches!(node.kind, NodeKind::Seq(_)) => item(node, choice, path.text)?,
        Step::Choice(key) => entry(node, key, path)?,
    };
    if next.at == Location::NONE {
        next.at = at;
    }
    set(next, rest, value, path)
}

/// Adds `value` as the last item of a list.
fn append<'s>(node: &mut Node<'s>, rest: &[Step], value: Node<'s>, path: Path<'_>) -> Result<(), ScenarioError> {
    if node.kind == NodeKind::Null {
        node.kind = NodeKind::Seq(Vec::new());
    }
    let found = node.describe();
    match &mut node.kind {
        NodeKind::Seq(items) if rest.is_empty() => {
            items.push(value);
            Ok(())
        }
        NodeKind::Seq(_) => Err(ScenarioError::new(format!("`{}` has keys after `[+]`", path.text)).help(
            "`[+]` ends a path: give the new item as a map, for example `load[+]={workload: shop/web, requests: 5}`",
        )),
        _ => Err(ScenarioError::new(format!("`{}` appends to {found}", path.text))
            .help("`[+]` appends to a list; leave it out to set the value")),
    }
}

/// Gives a value that is not there the text that the path has for it; one that is there has to have it already.
fn state<'s>(node: &mut Node<'s>, text: &'s str, path: Path<'_>) -> Result<(), ScenarioError> {
    if node.kind == NodeKind::Null {
        let at = Location::new(path.offset, path.text.len());
        *node = Node { kind: NodeKind::Scalar { text: text.into(), plain: true }, at };
    }
    if node.as_text() == Some(text) {
        return Ok(());
    }
    let other = node.as_text().map_or_else(|| node.describe().to_owned(), |other| format!("`{}`", shown(other)));
    Err(ScenarioError::new(format!("`{}` is given an object that says it is {other}, not `{text}`", path.text))
        .help("leave `kind`, `metadata.name` and `metadata.namespace` out of the value: they are those of the path"))
}

/// Puts `value` at the end of `steps` in every item that has all but the last of them.
fn set_in_all<'s>(
    items: &mut [Node<'s>],
    steps: &'s [Step],
    value: &Node<'s>,
    path: Path<'_>,
) -> Result<(), ScenarioError> {
    let mut found = false;
    for item in items.iter_mut().filter(|item| leads(item, steps, path.text)) {
        found = true;
        set(item, steps, value.clone(), path)?;
    }
    if found {
        return Ok(());
    }
    Err(ScenarioError::new(format!("`{}` finds nothing: no item of the list has what leads to the value", path.text))
        .help("`[*]` changes only items that contain the whole path except the last key"))
}

/// Whether all but the last of `steps` are there.
fn leads(node: &Node<'_>, steps: &[Step], path: &str) -> bool {
    let Some((step, rest)) = steps.split_first().filter(|(_, rest)| !rest.is_empty()) else { return true };
    match step {
        Step::Choice(choice) if matches!(node.kind, NodeKind::Seq(_)) => {
            let items = node.items();
            let chosen = |item: &&Node<'_>| {
                choice == ALL || NAMES.iter().any(|key| item.get(key).and_then(Node::as_text) == Some(choice))
            };
            let numbered = choice.parse::<usize>().ok().and_then(|number| items.get(number));
            items.iter().filter(chosen).chain(numbered).any(|item| leads(item, rest, path))
        }
        Step::Key(key) => node.get(demand_key(node, key, rest, path)).is_some_and(|next| leads(next, rest, path)),
        Step::Choice(key) => node.get(key).is_some_and(|next| leads(next, rest, path)),
    }
}

/// The value of `key`, which is added if it is not there.
fn entry<'n, 's>(node: &'n mut Node<'s>, key: &'s str, path: Path<'_>) -> Result<&'n mut Node<'s>, ScenarioError> {
    if node.kind == NodeKind::Null {
        node.kind = NodeKind::Map(Entries::default());
    }
    let found = node.describe();
    let NodeKind::Map(entries) = &mut node.kind else {
        return Err(ScenarioError::new(format!("`{}` asks for `{key}` of {found}", path.text))
            .help("choose an item of a list in brackets, by its number or name: `policies[0]`, `policies[cas]`"));
    };
    let position = entries.iter().position(|entry| entry.key == key).unwrap_or(entries.len());
    if position == entries.len() {
        let value = Node { kind: NodeKind::Null, at: Location::NONE };
        let within = path.text.rfind(key).unwrap_or(0);
        entries.push(Entry::new(key.into(), Location::new(path.offset + within, key.len()), value));
    }
    let entry = &mut entries[position];
    entry.edited = true;
    Ok(&mut entry.value)
}

/// The item of a list with this number, or with this text under one of the keys that name items.
fn item<'n, 's>(node: &'n mut Node<'s>, choice: &str, path: &str) -> Result<&'n mut Node<'s>, ScenarioError> {
    let NodeKind::Seq(items) = &mut node.kind else {
        return Err(ScenarioError::new(format!("`{path}`: `[{choice}]` needs a list here")));
    };
    let named =
        items.iter().position(|item| NAMES.iter().any(|key| item.get(key).and_then(Node::as_text) == Some(choice)));
    // Of a workload its name is enough where no other namespace has one.
    let bare = |item: &Node<'_>| {
        let whole = item.get("workload").and_then(Node::as_text);
        whole.and_then(|whole| whole.rsplit_once('/')).is_some_and(|(_, name)| name == choice)
    };
    let mut alike = items.iter().enumerate().filter(|(_, item)| bare(item)).map(|(position, _)| position);
    let alike = alike.next().filter(|_| alike.next().is_none());
    let numbered = choice.parse::<usize>().ok().filter(|number| *number < items.len());
    let names: Vec<String> = items
        .iter()
        .filter_map(|item| NAMES.iter().find_map(|key| item.get(key).and_then(Node::as_text)).map(str::to_owned))
        .collect();
    match named.or(numbered).or(alike).and_then(|position| items.get_mut(position)) {
        Some(item) => Ok(item),
        None => {
            let known = if names.is_empty() {
                "its items have no names; use a zero-based index".to_owned()
            } else {
                format!("it has {}", listed(names.iter().map(String::as_str)))
            };
            Err(ScenarioError::new(format!("`{path}`: the list has no item `{choice}`")).help(known))
        }
    }
}

/// Gives a value that stands at byte `from` of its source its place in the edit, `to`, and marks all its keys as the edit's.
fn relocate(node: &mut Node<'_>, from: usize, to: usize) {
    node.at = node.at.moved(from, to);
    match &mut node.kind {
        NodeKind::Null | NodeKind::Scalar { .. } => {}
        NodeKind::Seq(items) => items.iter_mut().for_each(|item| relocate(item, from, to)),
        NodeKind::Map(entries) => {
            for entry in entries.iter_mut() {
                entry.key_at = entry.key_at.moved(from, to);
                entry.edited = true;
                relocate(&mut entry.value, from, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Edit;
    use crate::source::{Limits, Source};
    use crate::tree::{self, Node, Variables};

    const OBJECTS: &str = "\
kind: NodePool\nmetadata: {name: a}\nspec:\n  disruption: {consolidateAfter: 1m}\n  reqs: [{key: k/x, values: [a]}]\n---\n\
kind: NodePool\nmetadata: {name: b}\nspec: {disruption: {}}\n";

    fn edited<T>(text: &str, edit: &str, look: impl Fn(&[Node<'_>], bool) -> T) -> T {
        let source = Source::new("objects.yaml", text);
        let edit = Edit::parse(edit).unwrap();
        let mut documents = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
        let found = edit.apply(&mut documents, source.edit_offset(0)).unwrap();
        look(&documents, found)
    }

    fn text<'n>(node: &'n Node<'_>, path: &[&str]) -> &'n str {
        path.iter().try_fold(node, |node, key| node.get(key)).and_then(Node::as_text).unwrap()
    }

    #[test]
    fn star_edit_applies_to_matching_items() {
        let loads = "load: [{cpu: {csv: a}}, {requests: {csv: b}}, {cpu: {csv: c, scale: 2}}]\n";
        edited(loads, "load[*].cpu.scale=5", |documents, found| {
            let items = documents[0].get("load").unwrap().items();
            let scale = |at: usize| items[at].get("cpu").and_then(|cpu| cpu.get("scale")).and_then(Node::as_text);
            assert!(found && items[1].get("cpu").is_none());
            assert_eq!((scale(0), scale(2)), (Some("5"), Some("5")));
        });
        edited(OBJECTS, "NodePool[*].spec.disruption.consolidateAfter=5m", |documents, _| {
            let path = ["spec", "disruption", "consolidateAfter"];
            assert_eq!((text(&documents[0], &path), text(&documents[1], &path)), ("5m", "5m"));
        });
        let source = Source::new("a.yaml", loads);
        let edit = Edit::parse("load[*].service.timeout=5s").unwrap();
        let mut documents = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
        let error = edit.apply(&mut documents, source.edit_offset(0)).unwrap_err();
        assert!(error.message().starts_with("`load[*].service.timeout` finds nothing"), "{error}");
    }

    #[test]
    fn plus_appends_an_item_to_a_list() {
        edited(OBJECTS, "NodePool[a].spec.reqs[+]={key: z, values: [q]}", |documents, found| {
            let items = documents[0].get("spec").and_then(|spec| spec.get("reqs")).unwrap().items();
            assert!(found && items.len() == 2 && documents[1].get("spec").unwrap().get("reqs").is_none());
            assert_eq!((text(&items[0], &["key"]), text(&items[1], &["key"])), ("k/x", "z"));
        });
        edited(OBJECTS, "NodePool.spec.taints[+]={key: t}", |documents, _| {
            let taints =
                |at: usize| documents[at].get("spec").and_then(|spec| spec.get("taints")).unwrap().items().len();
            assert_eq!((taints(0), taints(1)), (1, 1));
        });
        for refused in ["NodePool[a].spec.reqs[+].key=z", "NodePool[a].spec.disruption[+]=1"] {
            let source = Source::new("objects.yaml", OBJECTS);
            let edit = Edit::parse(refused).unwrap();
            let mut documents = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
            assert!(
                edit.apply(&mut documents, source.edit_offset(0)).unwrap_err().message().contains("append")
                    || refused.contains("].key")
            );
        }
        assert!(Edit::parse("NodePool[+]={spec: {}}").is_err());
    }

    #[test]
    fn edit_changes_only_the_named_object() {
        let path = ["spec", "disruption", "consolidateAfter"];
        edited(OBJECTS, "NodePool[b].spec.disruption.consolidateAfter=5m", |documents, found| {
            assert!(found);
            assert_eq!(text(&documents[0], &path), "1m");
            assert_eq!(text(&documents[1], &path), "5m");
        });
        edited(OBJECTS, "NodePool.spec.disruption.consolidateAfter=5m", |documents, _| {
            assert_eq!((text(&documents[0], &path), text(&documents[1], &path)), ("5m", "5m"));
        });
        edited(OBJECTS, "NodePool[c].spec.weight=1", |_, found| assert!(!found));
    }

    #[test]
    fn ambiguous_object_name_needs_namespace() {
        let objects =
            [("Deployment", "tiny"), ("Deployment", "shop/tiny"), ("Deployment", "shop/web"), ("NodePool", "tiny")];
        let objects = objects.map(|(kind, name)| (kind.to_owned(), name.to_owned())).into();
        let of = |edit: &str| Edit::parse(edit).unwrap().ambiguous(&objects);
        let refused = of("Deployment[tiny].spec.replicas=5").unwrap();
        assert_eq!(
            refused.message(),
            "`Deployment[tiny].spec.replicas` may mean a Deployment of any of several namespaces"
        );
        for edit in ["Deployment[shop/tiny].spec.replicas=5", "Deployment[default/tiny].spec.replicas=5"] {
            assert!(of(edit).is_none(), "{edit}");
        }
        for edit in ["Deployment[web].spec.replicas=5", "Deployment[*].spec.replicas=5", "NodePool[tiny].spec.weight=1"]
        {
            assert!(of(edit).is_none(), "{edit}");
        }
    }

    #[test]
    fn edit_selects_items_by_name_and_bracketed_keys() {
        edited(OBJECTS, "NodePool[a].spec.reqs[k/x].values=[b, c]", |documents, _| {
            let items = documents[0].get("spec").unwrap().get("reqs").unwrap().items();
            assert_eq!(items[0].get("values").unwrap().items().len(), 2);
        });
        edited("a: 1\n", "labels[example.com/team]=red", |documents, _| {
            assert_eq!(documents[0].get("labels").unwrap().get("example.com/team").unwrap().as_text(), Some("red"));
        });
    }

    #[test]
    fn what_is_no_edit_is_refused() {
        for text in ["duration", "=1", "a..b=1", "a[=1", "a[]=1", "NodePool[a]=1", "a=b\nc: d", "a=[1"] {
            assert!(Edit::parse(text).is_err(), "{text}");
        }
        assert_eq!(Edit::parse("a[x=y].b=c=d").unwrap().value(), "c=d");
    }
}
