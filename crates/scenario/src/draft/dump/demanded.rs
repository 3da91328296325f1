//! The labels of nodes that anything in a dump asks for.
//!
//! What must not live here: which of them the nodes of a group or of a NodePool get (`groups`, `regrouping`, `migration`).

use std::collections::BTreeSet;

use super::Dump;
use crate::tree::{Node, NodeKind};

/// The labels of nodes that anything asks for.
pub(super) fn demanded<'d>(dump: &'d Dump<'_>) -> BTreeSet<&'d str> {
    let mut keys = BTreeSet::new();
    for object in dump.carried.iter().chain(&dump.running) {
        if let Some(spec) = object.at(&["spec"]).filter(|_| !["NodePool", "Provisioner"].contains(&&*object.kind)) {
            demanded_in(spec, &mut keys);
        }
    }
    keys
}

fn demanded_in<'n>(node: &'n Node<'_>, keys: &mut BTreeSet<&'n str>) {
    match &node.kind {
        NodeKind::Map(entries) => {
            for entry in entries.iter() {
                match (entry.key.as_ref(), &entry.value.kind) {
                    ("nodeSelector", NodeKind::Map(selected)) => {
                        keys.extend(selected.iter().map(|section| section.key.as_ref()));
                    }
                    ("key" | "topologyKey", NodeKind::Scalar { text, .. }) => {
                        keys.insert(text);
                    }
                    _ => demanded_in(&entry.value, keys),
                }
            }
        }
        NodeKind::Seq(items) => items.iter().for_each(|item| demanded_in(item, keys)),
        NodeKind::Null | NodeKind::Scalar { .. } => {}
    }
}
