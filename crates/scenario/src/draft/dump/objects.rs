//! The objects of a dump, without what the cluster added to them.

use std::borrow::Cow;
use std::rc::Rc;

use super::anonymous::is_dropped;
use crate::ScenarioError;
use crate::manifests::{fleet_help, group_of, is_namesake};
use crate::source::Source;
use crate::tree::{Entries, Entry, Location, Node, NodeKind};

/// How a dump is made, for those who give something else.
pub(super) const COMMAND: &str = "kubectl get deploy,sts,ds,cj,jobs,hpa,pdb,nodepools,ec2nodeclasses,nodeclaims,nodes,pods,pvc,pv,sc -A -o yaml > cluster.yaml";

/// An object of a dump with its file.
#[derive(Clone, Debug)]
pub(super) struct Object<'s> {
    pub(super) source: &'s Source,
    /// Shared, because pods are in several lists; a change copies it.
    pub(super) node: Rc<Node<'s>>,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

fn group<'n>(node: &'n Node<'_>) -> &'n str {
    group_of(find(node, &["apiVersion"]).and_then(Node::as_text).unwrap_or_default())
}

/// What a kind is called here.
fn called(group: &str, kind: &str) -> String {
    if is_namesake(group, kind) { format!("{kind}.{group}") } else { kind.to_owned() }
}

/// What controls an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner<'o> {
    /// The API group; empty for the oldest kinds.
    pub(super) group: &'o str,
    pub(super) kind: &'o str,
    pub(super) name: &'o str,
}

impl Owner<'_> {
    /// What its kind is called, as that of an [`Object`] is.
    pub(super) fn called(&self) -> String {
        called(self.group, self.kind)
    }
}

impl<'s> Object<'s> {
    /// The object in `node`, which is of this kind. A kind of another project that has the name of one that is read is called as
    /// `kubectl` calls it, with its group.
    pub(super) fn new(source: &'s Source, node: Node<'s>, kind: String) -> Self {
        let kind = called(group(&node), &kind);
        let text = |key| find(&node, &["metadata", key]).and_then(Node::as_text).unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        Self { source, node: Rc::new(node), kind, namespace, name }
    }

    /// The API group; empty for the oldest kinds.
    pub(super) fn group(&self) -> &str {
        group(&self.node)
    }

    /// The value at a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Node<'s>> {
        find(&self.node, path)
    }

    /// The text at a path of keys.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path).and_then(Node::as_text)
    }

    /// A label.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.text(&["metadata", "labels", key])
    }

    /// Kind and name of the object that controls this one.
    pub(super) fn controller(&self) -> Option<(&str, &str)> {
        self.owner().map(|owner| (owner.kind, owner.name))
    }

    /// The object that controls this one.
    pub(super) fn owner(&self) -> Option<Owner<'_>> {
        let owners = self.at(&["metadata", "ownerReferences"]).map_or(&[][..], Node::items);
        let controls = |owner: &&Node<'s>| owner.get("controller").and_then(Node::as_text) == Some("true");
        let owner = owners.iter().find(controls)?;
        let text = |key| owner.get(key).and_then(Node::as_text);
        let group = group_of(text("apiVersion").unwrap_or_default());
        Some(Owner { group, kind: text("kind")?, name: text("name")? })
    }

    /// Whether the object is on its way out.
    pub(super) fn is_deleted(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// The namespace, also of an object that states none.
    pub(super) fn own_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }

    /// `namespace/name`, with the namespace that an object without one is in.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.own_namespace(), self.name)
    }
}

/// The value at a path of keys.
pub(super) fn find<'n, 's>(node: &'n Node<'s>, path: &[&str]) -> Option<&'n Node<'s>> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

/// The value at a path of keys, to be changed.
pub(super) fn find_mut<'n, 's>(node: &'n mut Node<'s>, path: &[&str]) -> Option<&'n mut Node<'s>> {
    let Some((first, rest)) = path.split_first() else { return Some(node) };
    find_mut(entries_mut(node)?.iter_mut().find(|entry| entry.key == *first).map(|entry| &mut entry.value)?, rest)
}

fn entries_mut<'n, 's>(node: &'n mut Node<'s>) -> Option<&'n mut Vec<Entry<'s>>> {
    match &mut node.kind {
        NodeKind::Map(entries) => Some(entries),
        _ => None,
    }
}

/// Takes keys out of a map.
pub(super) fn remove(node: &mut Node<'_>, keys: &[&str]) {
    if let Some(entries) = entries_mut(node) {
        entries.retain(|entry| !keys.contains(&&*entry.key));
    }
}

/// Sets a key of a map.
pub(super) fn set<'s>(node: &mut Node<'s>, key: &'static str, value: Node<'s>) {
    let Some(entries) = entries_mut(node) else { return };
    match entries.iter_mut().find(|entry| entry.key == key) {
        Some(entry) => entry.value = value,
        None => entries.push(Entry::new(Cow::Borrowed(key), Location::NONE, value)),
    }
}

/// A text that is quoted only where it has to be.
pub(super) fn scalar<'s>(text: impl Into<Cow<'s, str>>) -> Node<'s> {
    Node { kind: NodeKind::Scalar { text: text.into(), plain: true }, at: Location::NONE }
}

/// A map of these keys.
pub(super) fn map<'s>(entries: impl IntoIterator<Item = (&'static str, Node<'s>)>) -> Node<'s> {
    let entry = |(key, value)| Entry::new(Cow::Borrowed(key), Location::NONE, value);
    Node { kind: NodeKind::Map(entries.into_iter().map(entry).collect()), at: Location::NONE }
}

/// The objects of a dump's documents; lists are unwrapped, and of two objects of one kind and name the later counts.
///
/// # Errors
/// If a document is no Kubernetes object.
pub(super) fn objects<'s>(source: &'s Source, documents: Vec<Node<'s>>) -> Result<Vec<Object<'s>>, ScenarioError> {
    let mut found = Vec::new();
    for document in documents {
        take(source, document, None, &mut found)?;
    }
    if found.is_empty() {
        return Err(ScenarioError::new(format!("`{}` contains no objects", source.name))
            .help(format!("make a dump: `{COMMAND}`")));
    }
    Ok(found)
}

fn take<'s>(
    source: &'s Source,
    mut document: Node<'s>,
    of_list: Option<(&str, &str)>,
    found: &mut Vec<Object<'s>>,
) -> Result<(), ScenarioError> {
    if !matches!(document.kind, NodeKind::Map(_)) {
        let shown = document.describe();
        return Err(ScenarioError::new("this is not what `kubectl get -o yaml` prints")
            .at(source.place(document.at))
            .because(format!("this is {shown}, not an object"))
            .help(format!("make a dump: `{COMMAND}`")));
    }
    let text = |key: &str| document.get(key).and_then(Node::as_text).map(str::to_owned);
    let kind = text("kind").or_else(|| of_list.map(|(kind, _)| kind.to_owned())).filter(|kind| !kind.is_empty());
    let version = text("apiVersion").or_else(|| of_list.map(|(_, version)| version.to_owned()));
    let (Some(kind), Some(version)) = (kind, version.filter(|version| !version.is_empty())) else {
        return Err(ScenarioError::new("this is not a Kubernetes object: it has no `kind` or no `apiVersion`")
            .at(source.place(document.at))
            .because("this object")
            .help(fleet_help(&document).map_or_else(|| format!("make a dump: `{COMMAND}`"), str::to_owned)));
    };
    if let Some(of) = kind.strip_suffix("List") {
        let items = find_mut(&mut document, &["items"]).map(|items| std::mem::replace(&mut items.kind, NodeKind::Null));
        let Some(NodeKind::Seq(items)) = items else { return Ok(()) };
        for item in items {
            take(source, item, Some((of, &version)), found)?;
        }
        return Ok(());
    }
    // Items of a typed list (`PodList`) need not say their kind again.
    for (key, value) in [("apiVersion", &version), ("kind", &kind)] {
        if document.get(key).is_none() {
            set(&mut document, key, scalar(value.clone()));
        }
    }
    if kind == "Pod" {
        shorten(&mut document);
    }
    found.push(Object::new(source, document, kind));
    Ok(())
}

/// Removes from a pod what no run reads, because a large cluster has many pods: addresses, what the API server stores with it, and
/// statuses of containers that have not ended.
fn shorten(pod: &mut Node<'_>) {
    for part in ["metadata", "status"] {
        if let Some(entries) = find_mut(pod, &[part]).and_then(entries_mut) {
            entries.retain(|entry| ["uid", "generateName"].contains(&&*entry.key) || !is_dropped(&entry.key));
            entries.shrink_to_fit();
        }
    }
    if let Some(Node { kind: NodeKind::Seq(containers), .. }) = find_mut(pod, &["status", "containerStatuses"]) {
        let runs = |container: &&mut Node<'_>| find(container, &["state", "terminated"]).is_none();
        containers.iter_mut().filter(runs).for_each(|container| container.kind = NodeKind::Map(Entries::default()));
    }
}

#[cfg(test)]
mod tests {
    use nodecast_model::text::dump::parse;

    use super::{find, find_mut, remove};
    use crate::source::{Limits, Source};
    use crate::tree::{Node, NodeKind, Variables};

    /// Entries that lists and maps have room for, and those that they have.
    fn room(node: &Node<'_>) -> (usize, usize) {
        let plus = |sum: (usize, usize), node: &Node<'_>| {
            let (room, used) = room(node);
            (sum.0 + room, sum.1 + used)
        };
        match &node.kind {
            NodeKind::Seq(items) => items.iter().fold((items.capacity(), items.len()), plus),
            NodeKind::Map(entries) => {
                entries.iter().map(|entry| &entry.value).fold((entries.capacity(), entries.len()), plus)
            }
            NodeKind::Null | NodeKind::Scalar { .. } => (0, 0),
        }
    }

    #[test]
    fn objects_hold_no_room_in_reserve() {
        for text in ["a: {b: 1}\nc: [x, y, {d: [2]}]\n", "{\"a\": {\"b\": 1}, \"c\": [\"x\", {\"d\": [2, 3, 4]}]}"] {
            let source = Source::new("dump.yaml", text);
            let documents = parse(&source, &Variables::new(), &Limits::default()).unwrap();
            let (room, used) = room(&documents[0]);
            assert_eq!(room, used, "{text}");
            assert!(used > 6, "{used}");
        }
    }

    /// Where the entries of the map at a path are in memory.
    fn address(object: &Node<'_>, path: &[&str]) -> usize {
        let found = find(object, path).unwrap();
        let found = found.items().first().unwrap_or(found);
        found.entries().as_ptr().addr()
    }

    #[test]
    fn pods_share_equal_maps_until_one_changes() {
        let object = |kind: &str, name: &str, cpu: u32| {
            format!(
                "{{\"kind\": \"{kind}\", \"metadata\": {{\"name\": \"{name}\", \"labels\": {{\"app\": \"x\"}}}}, \
                 \"spec\": {{\"nodeName\": \"{name}\", \"containers\": [{{\"name\": \"c\", \"cpu\": {cpu}}}]}}, \"status\": {{}}}}"
            )
        };
        let objects = [("Pod", "a", 1), ("Pod", "b", 1), ("Pod", "c", 2), ("Other", "d", 1)];
        let objects = objects.map(|(kind, name, cpu)| object(kind, name, cpu));
        let yaml: String = objects.iter().map(|object| format!("- {object}\n")).collect();
        for text in [objects.join("\n"), format!("kind: List\nitems:\n{yaml}")] {
            let source = Source::new("dump.yaml", text.as_str());
            let documents = parse(&source, &Variables::new(), &Limits::default()).unwrap();
            let mut all = Vec::new();
            for document in documents {
                match document.get("items") {
                    Some(items) => all.extend_from_slice(items.items()),
                    None => all.push(document),
                }
            }
            for (path, shared) in [
                (&["spec", "containers"][..], [true, false, false]),
                (&["metadata", "labels"], [true, true, false]),
                (&["spec"], [false, false, false]),
            ] {
                let same = [1, 2, 3].map(|at| address(&all[at], path) == address(&all[0], path));
                assert_eq!(same, shared, "{path:?} of {text}");
            }
            remove(find_mut(&mut all[0], &["metadata", "labels"]).unwrap(), &["app"]);
            assert_eq!([0, 1].map(|at| find(&all[at], &["metadata", "labels"]).unwrap().entries().len()), [0, 1]);
        }
    }
}
