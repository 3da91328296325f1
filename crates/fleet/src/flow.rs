//! Values of a document as YAML on one line.

use nodecast_model::text::tree::{Node, NodeKind};
use nodecast_model::text::yaml::{quoted, word};

/// A value on one line, as `--set` takes it.
pub(crate) fn flow(node: &Node<'_>) -> String {
    match &node.kind {
        NodeKind::Null => "null".to_owned(),
        NodeKind::Scalar { text, plain: true } if !text.contains([',', ':', '{', '}', '[', ']', '#']) => {
            text.to_string()
        }
        NodeKind::Scalar { text, .. } => quoted(text),
        NodeKind::Seq(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        NodeKind::Map(entries) => {
            let entry =
                |entry: &nodecast_model::text::tree::Entry<'_>| format!("{}: {}", word(&entry.key), flow(&entry.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}
