//! The keys and values of a map. Equal maps of recorded pods share them, because the pods of a workload differ in little.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Entry, Node, NodeKind};

/// The entries of a map, in the order written. A change of one map copies entries that others share.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Entries<'s>(Arc<Vec<Entry<'s>>>);

impl<'s> Deref for Entries<'s> {
    type Target = Vec<Entry<'s>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Entries<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl<'s> FromIterator<Entry<'s>> for Entries<'s> {
    fn from_iter<I: IntoIterator<Item = Entry<'s>>>(entries: I) -> Self {
        Self(Arc::new(entries.into_iter().collect()))
    }
}

impl<'s> IntoIterator for Entries<'s> {
    type Item = Entry<'s>;
    type IntoIter = std::vec::IntoIter<Entry<'s>>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

/// The maps within the pods of a file.
#[derive(Default)]
pub(super) struct SharedMaps<'s>(FxHashSet<Shared<'s>>);

impl<'s> SharedMaps<'s> {
    /// Replaces each map within an object, if that is a pod of a dump, by an equal one of an earlier pod, whose location counts for both.
    /// A pod in a manifest has no status.
    pub(super) fn share_pod(&mut self, object: &mut Entries<'s>) {
        let is_pod = |entry: &Entry<'s>| entry.key == "kind" && entry.value.as_text() == Some("Pod");
        if object.iter().any(is_pod) && object.iter().any(|entry| entry.key == "status") {
            object.iter_mut().for_each(|entry| self.share(&mut entry.value));
        }
    }

    fn share(&mut self, node: &mut Node<'s>) {
        match &mut node.kind {
            NodeKind::Null | NodeKind::Scalar { .. } => {}
            NodeKind::Seq(items) => items.iter_mut().for_each(|item| self.share(item)),
            NodeKind::Map(entries) => {
                entries.iter_mut().for_each(|entry| self.share(&mut entry.value));
                let shared = Shared(entries.clone());
                match self.0.get(&shared) {
                    Some(Shared(earlier)) => *entries = earlier.clone(),
                    None => drop(self.0.insert(shared)),
                }
            }
        }
    }
}

/// A map whose inner maps are shared, compared without locations.
struct Shared<'s>(Entries<'s>);

impl PartialEq for Shared<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Entry<'_>, &Entry<'_>)| one.key == other.key && is_same(&one.value, &other.value);
        self.0.len() == other.0.len() && self.0.iter().zip(&*other.0).all(same)
    }
}

impl Eq for Shared<'_> {}

impl Hash for Shared<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for entry in &*self.0 {
            entry.key.hash(state);
            hash(&entry.value, state);
        }
    }
}

fn is_same(one: &Node<'_>, other: &Node<'_>) -> bool {
    match (&one.kind, &other.kind) {
        (NodeKind::Map(one), NodeKind::Map(other)) => Arc::ptr_eq(&one.0, &other.0),
        (NodeKind::Seq(one), NodeKind::Seq(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (one, other) => one == other,
    }
}

fn hash<H: Hasher>(node: &Node<'_>, state: &mut H) {
    match &node.kind {
        NodeKind::Null => 0_u8.hash(state),
        NodeKind::Scalar { text, plain } => (text, plain).hash(state),
        NodeKind::Seq(items) => items.iter().for_each(|item| hash(item, state)),
        NodeKind::Map(entries) => Arc::as_ptr(&entries.0).hash(state),
    }
}
